/* test_secret.c -- which names are secret, and texts without their values (src/secret.h).
 *
 * Runs in: tests. */
#include <assert.h>
#include <stdio.h>

#include "secret.h"

static void names(enum secret level, const char *list)
{
    char copy[4000];

    snprintf(copy, sizeof copy, "%s", list);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " "))
        if (secret_classify_name(NULL, name, strlen(name)) != level) {
            fprintf(stderr, "%s: %d, not %d\n", name, (int)secret_classify_name(NULL, name, strlen(name)), (int)level);
            abort();
        }
}

static void is(const char *text, const char *expected)
{
    struct secret_text to = {0};

    secret_redact(NULL, false, text, strlen(text), &to);
    if (strcmp(to.text, expected)) {
        fprintf(stderr, "%s: %s, not %s\n", text, to.text, expected);
        abort();
    }
    assert(to.changed == (strcmp(text, expected) != 0));
    free(to.text);
}

/* WORDS are separated by '|'. */
static void command(const char *words, const char *expected)
{
    struct secret_text to = {0};
    char copy[1000];
    size_t bytes = strlen(words) + 1;

    snprintf(copy, sizeof copy, "%s", words);
    for (size_t i = 0; i < bytes; i++)
        copy[i] = copy[i] == '|' ? 0 : copy[i];
    secret_redact_command(NULL, copy, bytes, &to);
    for (size_t i = 0; i + 1 < to.bytes; i++)
        to.text[i] = to.text[i] ? to.text[i] : '|';
    if (strcmp(to.text, expected)) {
        fprintf(stderr, "%s: %s, not %s\n", words, to.text, expected);
        abort();
    }
    free(to.text);
}

int main(void)
{
    const char globs[] = "pin\0iban_*";
    struct secret_rules rules = {globs, 2};
    struct secret_text long_text = {0};

    names(SECRET_ALL, SECRET_STRONG_WORDS);
    names(SECRET_STRINGS, SECRET_WEAK_WORDS);
    names(SECRET_ALL, "password Password PASSWORD db_password dbPassword DB_PASSWORD password2 passwords userpassword "
                      "passwd passphrase secret client_secret secrets SECRET_KEY secretKey api_key apikey apiKey APIKey "
                      "API_KEY x-api-key X-Api-Key authorization Authorization cookie cookies Set-Cookie credential "
                      "credentials private_key privateKey aws_secret_access_key access_key ssh_key secret_id jwt bearer");
    names(SECRET_STRINGS, "token TOKEN access_token accessToken hf_token HF_TOKEN auth auth_token csrf session_id "
                          "sessionid pwd db_pwd pass user_pass");
    names(SECRET_NO, "tokenizer tokens num_tokens token_ids token_id token_type_ids n_token num_token max_token "
                     "pad_token eos_token next_token tokenize detokenize secretary secretion key keys query_key "
                     "key_padding_mask attention keyboard author authors authority PWD OLDPWD compass "
                     "password_length len_password has_password password_file cookie_name forward_pass bypass x L self "
                     "passing session id public_key max_new_tokens monkey turkey");
    assert(secret_classify_name(&rules, "PIN", 3) == SECRET_ALL && secret_classify_name(&rules, "iban_from", 9) == SECRET_ALL);
    assert(secret_classify_name(&rules, "pins", 4) == SECRET_NO && secret_classify_name(&rules, "token", 5) == SECRET_STRINGS);

    is("L['password'] == 'hunter2'", "L['password'] == '<redacted>'");
    is("L['self'].password == \"hun'ter2\" and x", "L['self'].password == \"<redacted>\" and x");
    is("L['cfg']['password']['main'] == 'a' ", "L['cfg']['password']['main'] == '<redacted>' ");
    is("password == 1234", "password == <redacted>");
    is("L['token'] == 5", "L['token'] == 5");
    is("L['token'] is 'abc'", "L['token'] is '<redacted>'");
    is("L['secret'].size()[0] == 4", "L['secret'].size()[0] == 4");
    is("L['secret'].shape[0] == 4", "L['secret'].shape[0] == 4");
    is("L['token_ids'] == 'x'", "L['token_ids'] == 'x'");
    is("{'user': 'me', 'password': 'x', 'n': 3}", "{'user': 'me', 'password': '<redacted>', 'n': 3}");
    is("{'credentials': {'user': 'me', 'pin': 12}, 'n': 3}",
       "{'credentials': {'<redacted>': '<redacted>', '<redacted>': <redacted>}, 'n': 3}");
    is("Config(password='hun\\'ter', n=3)", "Config(password='<redacted>', n=3)");
    is("password: str = 'x'; b", "password: str = '<redacted>'; b");
    is("password: str 'x', n: int 3", "password: str '<redacted>', n: int 3");
    is("def f(password: str, token: int): pass", "def f(password: str, token: int): pass");
    is("password = b'x'", "password = b'<redacted>'");
    is("password = 'cut in the mid...", "password = '<redacted>");
    is("{'Authorization': 'Bearer abc', 'b': 'c'}", "{'Authorization': '<redacted>', 'b': 'c'}");
    is("'Authorization: Bearer abc'", "'Authorization: <redacted>'");
    is("open postgres://me:hunter2@host/db now", "open postgres://me:<redacted>@host/db now");
    is("http://host:80/a@b", "http://host:80/a@b");
    is("password", "password");
    is("password == str: value not recorded", "password == str: value not recorded");

    command("python|x.py|--password=a b|--token|abc|-n|3", "python|x.py|--password=<redacted>|--token|<redacted>|-n|3");
    command("env|API_KEY=abc|PATH=/bin|x", "env|API_KEY=<redacted>|PATH=/bin|x");
    command("x|--no-password|y|--token|--next|z", "x|--no-password|y|--token|--next|z");
    command("x|--max-tokens|50|--pad-token|<pad>|--tokenizer|t", "x|--max-tokens|50|--pad-token|<pad>|--tokenizer|t");
    command("curl|-H|Authorization: Bearer abc|https://u:p@h/?a=b&api_key=c&d=e",
            "curl|-H|Authorization: <redacted>|https://u:<redacted>@h/?a=b&api_key=<redacted>&d=e");
    command("python|-c|password = 'a'; f(password)|b", "python|-c|password = '<redacted>'; f(password)|b");
    command("x|db.password=a|--db.password|b", "x|db.password=<redacted>|--db.password|<redacted>");
    command("x|password=|y", "x|password=|y");

    for (int i = 0; i < 3000; i++) /* every prefix of hostile text ends */
        secret_redact(NULL, i & 1, "password ['({[\"\\ token://a:b@ '=:' .size( --", (size_t)i % 45, &long_text);
    assert(!long_text.failed);
    free(long_text.text);
    return 0;
}
