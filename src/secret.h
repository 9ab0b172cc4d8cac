/* secret.h -- tells which names look secret, and removes the values of such names from texts.
 *
 * Runs in: the traced process (facts) and the command line (`dyntrace run`'s own command).
 *
 *     password = 'hunter2'               password = '<redacted>'
 *     L['api_key'] == 'abc'              L['api_key'] == '<redacted>'
 *     postgres://me:hunter2@host/db      postgres://me:<redacted>@host/db
 *     --token abc, --password=abc        --token <redacted>, --password=<redacted>
 *
 * Names are split into words: "dbPassword", "DB_PASSWORD" and "db-password" are "db", "password". A
 * list of words decides whether a name is secret. Machine learning programs use "token" for pieces
 * of text. So "tokens", "token_ids", "num_token" and "pad_token" are not secret, and for another
 * name that ends with "token" only strings are secret. SECURITY.md tells readers about this. */
#ifndef DYNTRACE_SECRET_H
#define DYNTRACE_SECRET_H

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_WORD "<redacted>"

enum secret {
    SECRET_NO,
    SECRET_STRINGS,   /* strings of this name are secret; numbers are not: "token" */
    SECRET_ALL,       /* strings and numbers of this name are secret: "password" */
    SECRET_OF_MODULE, /* the name is that of a module's body, whose result is not recorded */
};

/* Names that the user wants to be secret (`run --redact`). */
struct secret_rules {
    const char *globs; /* patterns of names, each with its NUL; borrowed */
    uint32_t count;
};

/* ---- decide whether a name is secret ------------------------------------------ */

/* SECRET_WORDS_MOST: a name of SECRET_NAME_BYTES has no more words, because a word takes two bytes
 * at least: two letters, or a letter and a separator. */
enum { SECRET_WORD_BYTES = 24, SECRET_NAME_BYTES = 200, SECRET_WORDS_MOST = 101 };

/* words that make a name secret, wherever they are in the name; and, only for strings, as its last
 * word */
#define SECRET_STRONG_WORDS                                                                     \
    " password passwords passwd passphrase passphrases passcode secret secrets apikey apikeys " \
    "authorization cookie cookies credential credentials privatekey secretkey accesskey "       \
    "accesstoken authtoken apitoken csrftoken xsrftoken refreshtoken bearer jwt "
#define SECRET_WEAK_WORDS " auth sessionid csrf xsrf "

/* The words of a name, in lower case, without digits at their end. A longer word is cut. */
struct secret_words {
    unsigned count;
    char at[SECRET_WORDS_MOST][SECRET_WORD_BYTES];
};

/* Does a word of a name begin at NAME[AT]? Words begin after a separator, and as in "dbPassword"
 * and "APIKey". */
static inline bool secret_is_word_begin(const char *name, size_t bytes, size_t at)
{
    bool upper = isupper((unsigned char)name[at]);
    bool before_lower = at + 1 < bytes && islower((unsigned char)name[at + 1]);

    if (!at || !isalnum((unsigned char)name[at - 1]))
        return true;
    if (!upper)
        return false;
    return !isupper((unsigned char)name[at - 1]) || before_lower;
}

static inline void secret_split_name(const char *name, size_t bytes, struct secret_words *words)
{
    char *word = NULL;
    size_t used = 0;

    words->count = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!isalnum((unsigned char)name[i]))
            continue;
        if (secret_is_word_begin(name, bytes, i)) {
            if (words->count == SECRET_WORDS_MOST)
                return;
            word = words->at[words->count++];
            used = 0;
        }
        if (word && used < SECRET_WORD_BYTES - 1)
            word[used++] = (char)tolower((unsigned char)name[i]);
        if (word)
            word[used] = 0;
    }
    for (unsigned i = 0; i < words->count; i++)
        for (used = strlen(words->at[i]);
             used > 1 && isdigit((unsigned char)words->at[i][used - 1]);)
            words->at[i][--used] = 0;
}

/* Can the name be secret at all? Each word that makes a name secret contains three letters that
 * stand here. Most of the thousands of names in the texts of a compile contain none of them. */
static inline bool secret_is_possible(const char *name, size_t bytes)
{
#define THREE(a, b, c) ((a) << 16 | (b) << 8 | (c))
    uint32_t last = 0;

    for (size_t i = 0; i < bytes; i++) {
        /* in lower case, if the character is a letter */
        last = (last << 8 | (uint8_t)(name[i] | 0x20)) & 0xffffff;
        switch (last) {
        case THREE('a', 'u', 't'): /* auth, authorization */
        case THREE('b', 'e', 'a'): /* bearer */
        case THREE('c', 'o', 'o'): /* cookie */
        case THREE('c', 'r', 'e'): /* credential */
        case THREE('c', 's', 'r'): /* csrf */
        case THREE('j', 'w', 't'):
        case THREE('k', 'e', 'y'):
        case THREE('p', 'a', 's'): /* pass, password */
        case THREE('p', 'w', 'd'):
        case THREE('s', 'e', 'c'): /* secret */
        case THREE('s', 'e', 's'): /* sessionid */
        case THREE('t', 'o', 'k'): /* token */
        case THREE('x', 's', 'r'): /* xsrf */
            return true;
        default:
            break;
        }
    }
    return false;
#undef THREE
}

/* Is WORD in LIST, whose words are separated and enclosed by blanks? */
static inline bool secret_is_word_listed(const char *list, const char *word)
{
    char wanted[SECRET_WORD_BYTES + 3] = " ";

    strcat(strcat(wanted, word), " ");
    return *word && strstr(list, wanted) != NULL;
}

static inline bool secret_does_word_end_with(const char *word, const char *end)
{
    size_t length = strlen(word);
    size_t tail = strlen(end);

    return length >= tail && !strcmp(word + length - tail, end);
}

/* Is a name with the word WORD secret, wherever WORD is in the name? */
static inline bool secret_is_strong_word(const char *word)
{
    return secret_is_word_listed(SECRET_STRONG_WORDS, word) ||
           secret_does_word_end_with(word, "password") || secret_does_word_end_with(word, "passwd");
}

/* Is a name secret in which WORD comes before "key" or "keys"? */
static inline bool secret_is_before_key(const char *word)
{
    static const char list[] =
        " api private secret access encryption signing ssh master auth account ";

    return secret_is_word_listed(list, word);
}

/* Does the first or last word of a name say that its value is only a property of a secret, such as
 * the length or the file of a password? */
static inline bool secret_is_name_of_property(const struct secret_words *words)
{
    static const char first[] = " num n len max min count has is no ";
    static const char last[] =
        " length len count size num file path dir type name names field policy prompt required "
        "expires expiry ttl timeout algorithm id ids ";
    const char *end = words->at[words->count - 1];
    bool is_identity = words->count > 1 && !strcmp(words->at[words->count - 2], "secret");

    if (!strcmp(end, "id") && is_identity) /* "secret_id" is itself a secret */
        return false;
    return words->count > 1 &&
           (secret_is_word_listed(first, words->at[0]) || secret_is_word_listed(last, end));
}

/* Does a name with these WORDS end with "token", "auth", "pwd" or the like, so that its strings are
 * secret? SHOUTED: the name ends with a capital letter. */
static inline bool secret_is_weak_name(const struct secret_words *words, bool shouted)
{
    /* words before "token" that mean a piece of text: "pad_token", "next_token" */
    static const char pieces[] =
        " pad eos bos mask cls sep unk special next last prev previous first start end begin stop "
        "image audio video new current cur per draft vocab sub word input output each every any "
        "target sample generated ";
    const char *last = words->at[words->count - 1];
    const char *before = words->count > 1 ? words->at[words->count - 2] : "";

    if (!strcmp(last, "token"))
        return !secret_is_word_listed(pieces, before);
    if (!strcmp(last, "id"))
        return !strcmp(before, "session");
    if (!strcmp(last, "pwd")) /* the variable PWD is the working directory */
        return *before || !shouted;
    if (!strcmp(last, "pass"))
        return words->count == 1 || secret_is_word_listed(" user db smtp login admin ", before);
    return secret_is_word_listed(SECRET_WEAK_WORDS, last);
}

/* Does the name, of at most SECRET_NAME_BYTES, match a pattern of RULES, which may be NULL? */
static inline bool secret_is_ruled(const struct secret_rules *rules, const char *name, size_t bytes)
{
    const char *glob;
    char whole[SECRET_NAME_BYTES + 1];

    if (!rules || !rules->count)
        return false;
    glob = rules->globs;
    memcpy(whole, name, bytes);
    whole[bytes] = 0;
    for (uint32_t i = 0; i < rules->count; i++) {
        if (!fnmatch(glob, whole, FNM_CASEFOLD))
            return true;
        glob += strlen(glob) + 1;
    }
    return false;
}

/* Does the name look secret? RULES adds names; NULL adds none. */
static inline enum secret secret_classify_name(const struct secret_rules *rules, const char *name,
                                               size_t bytes)
{
    struct secret_words words;
    bool shouted, is_number;

    if (bytes > SECRET_NAME_BYTES) {
        name += bytes - SECRET_NAME_BYTES;
        bytes = SECRET_NAME_BYTES;
    }
    if (secret_is_ruled(rules, name, bytes))
        return SECRET_ALL;
    if (!secret_is_possible(name, bytes))
        return SECRET_NO;
    secret_split_name(name, bytes, &words);
    if (!words.count)
        return SECRET_NO;
    shouted = isupper((unsigned char)name[bytes - 1]);
    is_number = words.count > 1 && secret_is_word_listed(" num n max min ", words.at[0]);
    if (secret_is_weak_name(&words, shouted) && !is_number)
        return SECRET_STRINGS;
    if (secret_is_name_of_property(&words))
        return SECRET_NO;
    for (unsigned i = 0; i < words.count; i++) {
        const char *next = i + 1 < words.count ? words.at[i + 1] : "";
        bool is_key = !strcmp(next, "key") || !strcmp(next, "keys");
        if (is_key && secret_is_before_key(words.at[i]))
            return SECRET_ALL;
        if (secret_is_strong_word(words.at[i]))
            return SECRET_ALL;
    }
    return SECRET_NO;
}

/* ---- remove secret values from a text ----------------------------------------- */

/* A text that is being written without its secret values. */
struct secret_text {
    char *text; /* owned */
    size_t bytes, room;
    size_t most;  /* secret_redact() may stop after writing this many bytes; 0: it must write all */
    bool changed; /* a secret value was left out */
    bool failed;  /* no memory: the text is not whole */
};

static inline void secret_append(struct secret_text *to, const char *text, size_t bytes)
{
    size_t room = to->room ? to->room : 256;
    char *more = to->text;

    while (room < to->bytes + bytes + 1)
        room *= 2;
    if (room != to->room)
        more = realloc(to->text, room);
    if (!more) {
        to->failed = true;
        return;
    }
    to->text = more;
    to->room = room;
    memcpy(to->text + to->bytes, text, bytes);
    to->bytes += bytes;
    to->text[to->bytes] = 0;
}

static inline void secret_append_placeholder(struct secret_text *to)
{
    secret_append(to, SECRET_WORD, strlen(SECRET_WORD));
    to->changed = true;
}

/* Return the character at AT, or 0 at END. */
static inline char secret_char_at(const char *at, const char *end)
{
    return at < end ? *at : 0;
}

/* Is C one of SET? */
static inline bool secret_is_char_in_set(char c, const char *set)
{
    return c && strchr(set, c);
}

static inline bool secret_is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

static inline bool secret_is_quote(char c)
{
    return c == '\'' || c == '"';
}

/* Return the end of the name that begins at AT. A name may contain hyphens: "x-api-key". */
static inline const char *secret_find_name_end(const char *at, const char *end)
{
    while (at < end) {
        bool is_hyphen = *at == '-' && isalnum((unsigned char)secret_char_at(at + 1, end));
        if (!is_hyphen && !secret_is_name_char(*at))
            break;
        at++;
    }
    return at;
}

/* Return the end of the string that begins with the quote at AT: the place after its closing quote,
 * or END. */
static inline const char *secret_find_string_end(const char *at, const char *end)
{
    char quote = *at++;

    for (; at < end && *at != quote; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : end;
}

/* Hide the string at AT. Returns its end. */
static inline const char *secret_hide_string(struct secret_text *to, const char *at,
                                             const char *end)
{
    const char *after = secret_find_string_end(at, end);
    bool is_closed = after - at > 1 && after[-1] == *at;

    secret_append(to, at, 1);
    secret_append_placeholder(to);
    if (is_closed)
        secret_append(to, at, 1);
    return after;
}

static inline bool secret_begins_number(const char *at, const char *end)
{
    bool is_negative = *at == '-' && at + 1 < end;

    return isdigit((unsigned char)at[is_negative]);
}

static inline const char *secret_find_number_end(const char *at, const char *end)
{
    at++;
    while (isalnum((unsigned char)secret_char_at(at, end)) ||
           secret_is_char_in_set(secret_char_at(at, end), "._"))
        at++;
    return at;
}

/* Does the bracket at AT begin a subscript, as in L['x']? If not, it begins a list. */
static inline bool secret_begins_subscript(const char *begin, const char *at)
{
    return at > begin && (secret_is_name_char(at[-1]) || secret_is_char_in_set(at[-1], "])"));
}

/* Copy the text from AT to END without its strings and, if LEVEL is SECRET_ALL, without its
 * numbers. Subscripts are copied unchanged. */
static inline void secret_copy_without_literals(struct secret_text *to, enum secret level,
                                                const char *at, const char *end)
{
    const char *begin = at;

    while (at < end) {
        const char *after = at + 1;
        if (*at == '#') /* a comment begins, in which torch quotes a line of the program */
            level = SECRET_STRINGS;
        if (*at == '[' && secret_begins_subscript(begin, at)) {
            while (after < end && *after != ']')
                after = secret_is_quote(*after) ? secret_find_string_end(after, end) : after + 1;
        } else if (secret_is_quote(*at)) {
            at = secret_hide_string(to, at, end);
            continue;
        } else if (secret_is_name_char(*at) && !isdigit((unsigned char)*at)) {
            after = secret_find_name_end(at, end);
        } else if (secret_begins_number(at, end)) {
            after = secret_find_number_end(at, end);
            if (level == SECRET_ALL) {
                secret_append_placeholder(to);
                at = after;
                continue;
            }
        }
        secret_append(to, at, (size_t)(after - at));
        at = after;
    }
}

/* Return the end of the list, tuple or dict that begins at AT. */
static inline const char *secret_find_container_end(const char *at, const char *end)
{
    int depth = 0;

    while (at < end) {
        depth += (strchr("([{", *at) != NULL) - (strchr(")]}", *at) != NULL);
        at = secret_is_quote(*at) ? secret_find_string_end(at, end) : at + 1;
        if (depth <= 0)
            break;
    }
    return at;
}

/* Find the password in the URL whose "://" is at AT. Returns the password's end and sets *FROM to
 * its beginning; returns NULL if the URL has no password. */
static inline const char *secret_find_in_url(const char *at, const char *end, const char **from)
{
    *from = NULL;
    for (at += 3; at < end && !isspace((unsigned char)*at) && !strchr("/?#'\"", *at); at++) {
        if (*at == ':' && !*from)
            *from = at + 1;
        if (*at == '@')
            return *from && at > *from ? at : NULL;
    }
    return NULL;
}

/* Is the attribute NAME, BYTES long, a property of an array, such as its shape? */
static inline bool secret_is_shape_attribute(const char *name, size_t bytes)
{
    static const char *const shapes[] = {"size", "shape", "stride", "ndim", "dim", "dtype"};

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (bytes == strlen(shapes[i]) && !memcmp(name, shapes[i], bytes))
            return true;
    return false;
}

/* Return the end of WORD if AT points to WORD; otherwise AT. */
static inline const char *secret_skip_word(const char *word, const char *at, const char *end)
{
    size_t bytes = strlen(word);

    return (size_t)(end - at) > bytes && !memcmp(at, word, bytes) ? at + bytes : at;
}

/* Does a string or a number begin at AT? */
static inline bool secret_begins_literal(const char *at, const char *end)
{
    return at < end && (secret_is_quote(*at) || secret_begins_number(at, end));
}

/* Return where the value of a secret name begins; AT is the name's end. Returns NULL if no value
 * follows. *SHAPE becomes true if .size(), .shape or the like comes in between: the value is then
 * only a shape. */
static inline const char *secret_find_value(const char *at, const char *end, bool *shape)
{
    const char *before;

    *shape = false;
    do {
        before = at;
        while (secret_is_char_in_set(secret_char_at(at, end), "'\"])"))
            at++;
        if (secret_char_at(at, end) == '.') {
            const char *name = at + 1;
            at = secret_find_name_end(name, end);
            *shape |= secret_is_shape_attribute(name, (size_t)(at - name));
        }
        if (secret_is_char_in_set(secret_char_at(at, end), "[("))
            at = secret_find_container_end(at, end);
    } while (at > before && at < end);
    while (secret_char_at(at, end) == ' ')
        at++;
    before = at;
    at = secret_skip_word("is ", at, end);
    at = secret_skip_word("not ", at, end);
    at = secret_skip_word("in ", at, end);
    while (secret_is_char_in_set(secret_char_at(at, end), "=!<>:"))
        at++;
    if (at == before)
        return NULL;
    while (secret_char_at(at, end) == ' ')
        at++;
    /* skip the type in `password: str = 'x'` and `password: str 'x'` */
    before = secret_find_name_end(at, end);
    if (at[-1] != ' ' || !islower((unsigned char)secret_char_at(at, end)))
        return at;
    while (secret_is_char_in_set(secret_char_at(before, end), " ="))
        before++;
    if (before[-1] == ' ' && secret_begins_literal(before, end))
        at = before;
    return at;
}

/* Is AT at a scheme of HTTP's Authorization header: "Basic", "Bearer"? */
static inline bool secret_begins_auth_scheme(const char *at, const char *end)
{
    static const char *const schemes[] = {"Bearer ", "Basic ", "Digest ", "Token ", "bearer "};

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if ((size_t)(end - at) > strlen(schemes[i]) && !strncmp(at, schemes[i], strlen(schemes[i])))
            return true;
    return false;
}

/* Copy the value at AT without its secret parts, and return its end. LEVEL says how secret the
 * value's name is. BARE: the value need not be in quotes, as in a command line. */
static inline const char *secret_copy_value(struct secret_text *to, enum secret level, bool bare,
                                            const char *at, const char *end)
{
    const char *after = at;

    if (secret_is_char_in_set(secret_char_at(at, end), "bru") &&
        secret_is_quote(secret_char_at(at + 1, end)))
        after++;
    if (secret_is_quote(secret_char_at(after, end))) {
        secret_append(to, at, (size_t)(after - at));
        return secret_hide_string(to, after, end);
    }
    if (secret_is_char_in_set(secret_char_at(at, end), "([{")) {
        after = secret_find_container_end(at, end);
        secret_copy_without_literals(to, level, at, after);
        return after;
    }
    if (secret_begins_auth_scheme(at, end)) {
        while (after < end && !secret_is_char_in_set(*after, "'\"\n"))
            after++;
        secret_append_placeholder(to);
        return after;
    }
    if (bare) {
        while (after < end && !secret_is_char_in_set(*after, " \t\n&;,'\")"))
            after++;
        if (after > at)
            secret_append_placeholder(to);
        return after;
    }
    if (level == SECRET_ALL && secret_begins_literal(at, end)) {
        secret_append_placeholder(to);
        return secret_find_number_end(at, end);
    }
    return at;
}

/* Copy TEXT to TO without the values of secret names, and without passwords in URLs. RULES adds
 * names. BARE: values need not be in quotes, as in a command line. */
static inline void secret_redact(const struct secret_rules *rules, bool bare, const char *text,
                                 size_t bytes, struct secret_text *to)
{
    const char *at = text;
    const char *end = text + bytes;
    const char *copied = text; /* the text before this is in TO */

    while (at < end && (!to->most || to->bytes + (size_t)(at - copied) < to->most)) {
        const char *after = at + 1;
        const char *value;
        enum secret level = SECRET_NO;
        bool shape;
        if (end - at > 3 && !strncmp(at, "://", 3)) {
            const char *password_end = secret_find_in_url(at, end, &value);
            if (password_end) {
                secret_append(to, copied, (size_t)(value - copied));
                secret_append_placeholder(to);
                at = copied = password_end;
                continue;
            }
        }
        if (secret_is_name_char(*at)) {
            after = secret_find_name_end(at, end);
            level = isdigit((unsigned char)*at)
                        ? SECRET_NO
                        : secret_classify_name(rules, at, (size_t)(after - at));
        }
        value = level ? secret_find_value(after, end, &shape) : NULL;
        if (value && shape)
            level = SECRET_STRINGS;
        if (value) {
            secret_append(to, copied, (size_t)(value - copied));
            at = copied = secret_copy_value(to, level, bare, value, end);
            continue;
        }
        at = after;
    }
    if (at > copied)
        secret_append(to, copied, (size_t)(at - copied));
}

/* Return how secret the value of guard source SOURCE is, such as L['user']['password']. */
static inline enum secret secret_classify_source(const struct secret_rules *rules,
                                                 const char *source, size_t bytes)
{
    const char *end = source + bytes;
    enum secret found = SECRET_NO;

    for (const char *at = source; at < end;) {
        const char *after = secret_is_name_char(*at) ? secret_find_name_end(at, end) : at + 1;
        enum secret level = secret_is_name_char(*at)
                                ? secret_classify_name(rules, at, (size_t)(after - at))
                                : SECRET_NO;
        bool shape = false;
        if (level)
            secret_find_value(after, end, &shape);
        if (shape && level == SECRET_ALL)
            level = SECRET_STRINGS;
        found = level > found ? level : found;
        at = after;
    }
    return found;
}

/* ---- remove secret values from a command line ---------------------------------- */

/* Is the option NAME a switch, such as --no-password? Then the next word is not its value. */
static inline bool secret_is_option_without_value(const char *name, size_t bytes)
{
    static const char list[] =
        " no ask use with has show print generate require skip without disable "
        "enable ";
    struct secret_words words;

    secret_split_name(name, bytes, &words);
    return words.count && secret_is_word_listed(list, words.at[0]);
}

/* Copy one word of a command line. If *NEXT, the word is the value of a secret option and is
 * hidden; *NEXT is then set for the word after it. Set *NEXT to false before the first word. CODE:
 * the word is a program's text (-c). */
static inline void secret_copy_argument(const struct secret_rules *rules, const char *word,
                                        size_t bytes, bool *next, bool code, struct secret_text *to)
{
    size_t dashes = 0;
    const char *name = word;
    const char *end = word + bytes;
    const char *after;
    enum secret level;
    bool is_option, is_value;

    while (dashes < 2 && secret_char_at(word + dashes, end) == '-')
        dashes++;
    if (*next && !dashes) {
        *next = false;
        secret_append_placeholder(to);
        return;
    }
    *next = false;
    if (code) {
        secret_redact(rules, false, word, bytes, to);
        return;
    }
    name += dashes;
    after = secret_find_name_end(name, end);
    while (after < end && *after == '.') /* as in config.password=x */
        after = secret_find_name_end(after + 1, end);
    level = secret_classify_name(rules, name, (size_t)(after - name));
    is_option = level && dashes && after == end;
    is_value = level && after < end && (*after == '=' || *after == ':');
    if (is_option)
        *next = !secret_is_option_without_value(name, (size_t)(after - name));
    if (is_value) {
        after++;
        while (after < end && *after == ' ')
            after++;
        secret_append(to, word, (size_t)(after - word));
        if (after < end)
            secret_append_placeholder(to);
    } else {
        secret_redact(rules, true, word, bytes, to);
    }
}

/* Copy WORDS to TO without secret values: the words of a command line, BYTES long, each with its
 * NUL. */
static inline void secret_redact_command(const struct secret_rules *rules, const char *words,
                                         size_t bytes, struct secret_text *to)
{
    bool next = false;
    bool code = false;

    for (size_t at = 0; at < bytes;) {
        size_t length = strnlen(words + at, bytes - at);
        secret_copy_argument(rules, words + at, length, &next, code, to);
        if (at + length < bytes)
            secret_append(to, "", 1);
        code = length == 2 && !memcmp(words + at, "-c", 2);
        at += length + 1;
    }
}

#endif
