/* trace/remedy_rules.c -- the rules of src/trace/remedies.txt, parsed once. See trace/remedy.h.
 *
 * The file is built into the program (remedies_txt); its head explains how to write a rule. An
 * unknown word in the file aborts the program. tests/unit/test_remedies.c reads the whole file, so
 * this never happens to a user. */
#include <ctype.h>
#include <pthread.h>
#include <stddef.h>

#include "trace/remedy.h"

extern const char remedies_txt[]; /* the text of remedies.txt, embedded by src/cmd/embed.sh */

static struct {
    LIST(struct remedy_rule) rules; /* all rules; behind the last one is a rule without a name */
    struct arena texts;
} book;
static pthread_once_t book_once = PTHREAD_ONCE_INIT;

static void abort_unknown_word(const char *what, const char *word)
{
    fprintf(stderr, "src/trace/remedies.txt: %s: no such %s\n", word, what);
    abort();
}

/* A word of remedies.txt and the enum value that it stands for. */
struct named {
    const char *word;
    int number;
};

static const struct named events[] = {
    {"cause", ON_CAUSE},   {"death", ON_DEATH},         {"break", ON_BREAK},
    {"guards", ON_GUARDS}, {"again", ON_AGAIN},         {"best", ON_BEST},
    {"tried", ON_TRIED},   {"unguarded", ON_UNGUARDED}, {NULL, 0},
};

static const struct named efforts[] = {
    {"now", EFFORT_NOW},
    {"line", EFFORT_LINE},
    {"calls", EFFORT_CALLS},
    {"rewrite", EFFORT_REWRITE},
    {"put_off", EFFORT_PUT_OFF},
    {"normal", EFFORT_NORMAL},
    {"unguarded", EFFORT_UNGUARDED},
    {NULL, 0},
};

static const struct named effects[] = {
    {"same", EFFECT_SAME},
    {"none", EFFECT_NONE},
    {NULL, 0},
};

static const struct named whens[] = {
    {"small", WHEN_SMALL},
    {"needed", WHEN_NEEDED},
    {"hint", WHEN_HINT},
    {"limited", WHEN_LIMITED},
    {"inlined", WHEN_INLINED},
    {"rest", WHEN_REST},
    {NULL, 0},
};

static const struct named uses[] = {
    {"computed", USE_COMPUTED}, {"counted", USE_COUNTED},
    {"tested", USE_TESTED},     {"sliced", USE_SLICED},
    {"passed", USE_PASSED},     {"key", USE_KEY},
    {"stored", USE_STORED},     {NULL, 0},
};

static const struct named answers[] = {
    {"no", false},
    {"yes", true},
    {NULL, 0},
};

static int number_of_name(const struct named *list, const char *what, const char *word)
{
    while (list->word && strcmp(list->word, word))
        list++;
    if (!list->word)
        abort_unknown_word(what, word);
    return list->number;
}

/* The conditions of a rule that are texts. Each has the name of its member of
 * struct remedy_rule. */
#define TEXT_KEYS(X) \
    X(kind)          \
    X(source)        \
    X(aspect)        \
    X(said)          \
    X(reason)        \
    X(words)         \
    X(code)          \
    X(is)            \
    X(expected)      \
    X(function)      \
    X(stack)         \
    X(line)          \
    X(set)

/* Parse a version: 213 for "2.13". */
static int parse_version(const char *text)
{
    char *end;
    long major = strtol(text, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;

    return (int)(major * 100 + minor);
}

static void read_condition(struct remedy_rule *rule, const char *key, const char *value)
{
#define X(name)                \
    if (!strcmp(key, #name)) { \
        rule->name = value;    \
        return;                \
    }
    TEXT_KEYS(X)
#undef X
    if (!strcmp(key, "effort"))
        rule->effort = (enum remedy_effort)number_of_name(efforts, "effort", value);
    else if (!strcmp(key, "effect"))
        rule->effect = (enum remedy_effect)number_of_name(effects, "effect", value);
    else if (!strcmp(key, "when"))
        rule->when = (__typeof__(rule->when))number_of_name(whens, "when", value);
    else if (!strcmp(key, "use"))
        rule->use = (enum remedy_use)number_of_name(uses, "use", value);
    else if (!strcmp(key, "proven"))
        rule->proven = number_of_name(answers, "answer", value);
    else if (!strcmp(key, "beside"))
        rule->beside = number_of_name(answers, "answer", value);
    else if (!strcmp(key, "since"))
        rule->since = parse_version(value);
    else if (!strcmp(key, "until"))
        rule->until = parse_version(value);
    else
        abort_unknown_word("condition", key);
}

/* Parse a line of conditions: "kind BACKEND_*; effort line". */
static void read_conditions(struct remedy_rule *rule, char *line)
{
    while (line) {
        char *next = strstr(line, "; ");
        char *value;
        if (next) {
            *next = 0;
            next += strlen("; ");
        }
        value = strchr(line, ' ');
        if (!value)
            abort_unknown_word("condition", line);
        *value = 0;
        read_condition(rule, line, value + 1);
        line = next;
    }
}

/* Parse the head of a rule: "[torch cause] one rank" is a rule for torch, about a cause, and named
 * "one rank". */
static void read_rule_head(struct remedy_rule *rule, char *line)
{
    char *event = strchr(line, ' ');
    char *end = strchr(line, ']');

    if (!event || !end || event > end)
        abort_unknown_word("head of a rule", line);
    *event = 0;
    *end = 0;
    event++;
    rule->name = end + 2;
    rule->torch = !strcmp(line + 1, "torch");
    if (!rule->torch && strcmp(line + 1, "own"))
        abort_unknown_word("whom", line + 1);
    for (int i = 0; i < OUTCOMES; i++)
        if (!strcmp(outcome_facts[i].word, event)) {
            rule->on = ON_OUTCOME;
            rule->outcome = (enum outcome)i;
            return;
        }
    rule->on = (enum remedy_on)number_of_name(events, "event", event);
}

static void read_all_rules(void)
{
    char *text = arena_text(&book.texts, remedies_txt, strlen(remedies_txt));
    struct remedy_rule *rule = NULL;

    for (char *line; (line = strsep(&text, "\n"));) {
        bool is_remark = !*line || *line == '#';
        bool is_text = line[0] == ' ' && line[1] == ' ';
        if (is_remark)
            continue;
        if (*line == '[') {
            rule = list_add(&book.rules);
            read_rule_head(rule, line);
        } else if (!rule) {
            abort_unknown_word("rule", line);
        } else if (!is_text) {
            read_conditions(rule, line);
        } else if (rule->text) {
            rule->text = arena_print(&book.texts, "%s %s", rule->text, line + 2);
        } else {
            rule->text = line + 2;
        }
    }
    list_add(&book.rules);
}

const struct remedy_rule *remedy_rules(void)
{
    pthread_once(&book_once, read_all_rules);
    return book.rules.at;
}
