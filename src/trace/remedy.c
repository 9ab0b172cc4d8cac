/* trace/remedy.c -- the smallest change to a program that would have helped. See trace/remedy.h.
 *
 * Runs in: the viewer. */
#include "trace/remedy.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/cause.h"
#include "trace/prose.h"
#include "trace/torch_words.h"

enum { WORD_BYTES = 100 }; /* of a fact within a sentence */

/* ---- which rule ------------------------------------------------------------ */

/* The parts of WORDS, with "*" between them, are in TEXT in this order. fnmatch() would take its time over a long one. */
static bool words_in(const char *text, char *words)
{
    for (char *part; (part = strsep(&words, "*")); text += strlen(part))
        if (!(text = strcasestr(text, part)))
            return false;
    return true;
}

/* The beginning of TEXT is like the shell pattern. */
static bool like(const char *text, char *pattern)
{
    char head[400];

    snprintf(head, sizeof head, "%s", text);
    return !fnmatch(pattern, head, FNM_CASEFOLD);
}

/* FITS says so of TEXT, where NULL is the empty one, and an alternative of a rule, of which "|" is between two. */
static bool any_of(const char *alternatives, const char *text, bool (*fits)(const char *text, char *alternative))
{
    char copy[400], *rest = copy;

    snprintf(copy, sizeof copy, "%s", alternatives);
    for (char *one; (one = strsep(&rest, "|"));)
        if (fits(text ? text : "", one))
            return true;
    return false;
}

static bool has_words(const char *text, const char *words)
{
    return text && any_of(words, text, words_in);
}

/* No patterns: it may be anything. */
static bool is_like(const char *patterns, const char *text)
{
    return !patterns || any_of(patterns, text, like);
}

static bool is_aspect(const char *aspect, const struct remedy_facts *facts)
{
    bool number = prose_same(facts->aspect, "value") && cause_number(facts->expected) && cause_number(facts->actual);

    return !aspect || (strcmp(aspect, "number") ? prose_same(facts->aspect, aspect) : number);
}

/* Sizes of 0 and 1 only, of "1, 0". */
static bool all_small(const char *values)
{
    return prose_filled(values) && strspn(values, "01, ") == strlen(values) && !strstr(values, "10") &&
           !strstr(values, "11");
}

static bool is_when(const struct remedy_rule *rule, const struct remedy_facts *facts)
{
    switch (rule->when) {
    case WHEN_RESUME:
        return facts->function && torch_resume(facts->function, NULL, NULL);
    case WHEN_SMALL:
        return all_small(facts->values);
    case WHEN_NONE:
        return prose_same(facts->expected, "None");
    case WHEN_FLAG:
        return prose_same(facts->expected, "True") || prose_same(facts->expected, "False");
    case WHEN_NEEDED:
        return facts->needed > 0;
    case WHEN_HINT:
        return torch_reason_split(facts->text).hint.text;
    default:
        return true;
    }
}

/* WORDS are in the reason for a break; with ^ first, in its first line. */
static bool break_says(const char *reason, const char *words)
{
    const struct span what = torch_reason_split(reason).what;
    char *line;
    bool says;

    if (!words || *words != '^')
        return !words || has_words(reason, words);
    line = what.text ? strndup(what.text, what.bytes) : NULL;
    says = has_words(line, words + 1);
    free(line);
    return says;
}

static bool fits(const struct remedy_rule *rule, enum remedy_on on, const struct remedy_facts *facts)
{
    enum outcome outcome = facts->torch && facts->outcome == OUTCOME_DECLINED ? OUTCOME_SKIP : facts->outcome;
    const char *said = rule->said;

    return rule->on == on && rule->torch == (facts->torch > 0) && (on != ON_OUTCOME || rule->outcome == outcome) &&
           facts->torch >= rule->since && (!rule->until || facts->torch <= rule->until) &&
           is_aspect(rule->aspect, facts) && is_like(rule->kind, facts->kind) && is_like(rule->source, facts->source) &&
           is_like(rule->reason, facts->text) && (!rule->code || prose_same(rule->code, facts->code)) &&
           (!said || has_words(facts->expected, said) || has_words(facts->actual, said) ||
            has_words(facts->text, said)) &&
           break_says(facts->text, rule->words) && is_when(rule, facts);
}

/* ---- sentences ------------------------------------------------------------- */

/* TEXT without line ends, cut to WORD_BYTES and to whole runes; all of it with its last dot away, the sentence has
 * its own. LENGTH: only so many bytes of it, or -1. */
static void put_word(FILE *out, const char *text, int length)
{
    size_t bytes = length < 0 ? strnlen(text, WORD_BYTES + 1) : (size_t)length;
    bool cut = bytes > WORD_BYTES;

    if (cut)
        bytes = prose_cut(text, WORD_BYTES);
    while (bytes > 0 && text[bytes - 1] == '.' && !cut && length < 0)
        bytes--;
    for (size_t i = 0; i < bytes; i++)
        putc(text[i] == '\n' ? ' ' : text[i], out);
    if (cut)
        fputs("…", out);
}

/* L['x'].a as the program writes it: x.a. */
static void put_name(FILE *out, const char *source)
{
    int length = cause_base(source);
    const char *quote = strlen(source) > 4 && strchr("LG", source[0]) && !strncmp(source + 1, "['", 2)
                            ? strstr(source + 3, "']")
                            : NULL;

    if (quote && quote + 2 <= source + length) {
        put_word(out, source + 3, (int)(quote - source - 3));
        if (quote + 2 < source + length)
            put_word(out, quote + 2, (int)(source + length - quote - 2));
    } else {
        put_word(out, source, length);
    }
}

/* Is 0 or 1 among "1, 5, 7"? */
static bool small_among(const char *values)
{
    for (const char *at = values; at && *at; at += strcspn(at, ","), at += *at == ',') {
        at += strspn(at, " ");
        if ((*at == '0' || *at == '1') && (!at[1] || at[1] == ','))
            return true;
    }
    return false;
}

static void put_span(FILE *out, struct span span, const char *otherwise)
{
    char *text = span.text ? strndup(span.text, span.bytes) : NULL;

    put_word(out, text ? text : otherwise, -1);
    free(text);
}

/* A function; a resume function as "the rest of f". */
static void put_function(FILE *out, const struct remedy_facts *facts)
{
    char *function = NULL;
    int64_t line;

    if (facts->torch && facts->function && torch_resume(facts->function, &function, &line) && function) {
        fputs("the rest of ", out);
        put_word(out, function, -1);
        fprintf(out, " after line %lld", (long long)line);
    } else {
        put_word(out, facts->function ? facts->function : "the function", -1);
    }
    free(function);
}

/* What stands for {NAME}. */
static void put_fact(FILE *out, const char *name, const struct remedy_facts *facts)
{
    const char *expected = facts->expected ? facts->expected : facts->text, *source = prose_filled(facts->source);
    const char *limit = torch_limit_name(facts->torch, facts->text && strcasestr(facts->text, "accumulated"));
    const struct { const char *name, *value, *otherwise;
    } words[] = {
        {"source", source, "the input"},
        {"kind", facts->kind, "that failed"},
        {"expected", expected, "its guards pass"},
        {"actual", facts->actual, "something else"},
        {"values", prose_filled(facts->values), "not always the same"},
        {"text", prose_filled(facts->text), "no reason was recorded"},
        {"limit", limit, ""},
    };
    const struct { const char *name, *format; int64_t value; } numbers[] = {
        {"count", "%lld", facts->count}, {"needed", "%lld", facts->needed},
        {"calls", facts->count == 1 ? "%lld call" : "%lld calls", facts->count},
        {"entries", facts->count == 1 ? "%lld entry" : "%lld entries", facts->count},
        {"dim", facts->dimension < 0 ? "N" : "%lld", facts->dimension},
        {"at", facts->line > 0 ? " at line %lld" : "", facts->line},
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(name, words[i].name))
            put_word(out, words[i].value ? words[i].value : words[i].otherwise, -1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name))
            fprintf(out, numbers[i].format, (long long)numbers[i].value);
    if (!strcmp(name, "base"))
        put_word(out, source ? source : "the input", source ? cause_base(source) : -1);
    else if (!strcmp(name, "name") && facts->source)
        put_name(out, facts->source);
    else if (!strcmp(name, "function"))
        put_function(out, facts);
    else if (!strcmp(name, "what"))
        put_span(out, torch_reason_split(facts->text).what, "no reason was recorded");
    else if (!strcmp(name, "hint"))
        put_span(out, torch_reason_split(facts->text).hint, "none");
    else if (!strcmp(name, "apart") && small_among(facts->values))
        fputs(" Sizes 0 and 1 are compiled apart all the same.", out);
}

static char *sentence(const char *text, const struct remedy_facts *facts)
{
    char *made = NULL, name[16];
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    while (*text) {
        size_t length = strcspn(text, "{");
        fwrite(text, 1, length, out);
        text += length;
        if (!*text)
            break;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 1, "}"), text + 1);
        put_fact(out, name, facts);
        text = strchr(text, '}') + 1;
    }
    fclose(out);
    return made;
}

/* What is between BEFORE and AFTER in TEXT; the caller frees it. NULL: nothing is. */
static char *between(const char *text, const char *before, const char *after)
{
    const char *start = text ? strstr(text, before) : NULL, *end = start ? strstr(start, after) : NULL;

    return end ? strndup(start + strlen(before), (size_t)(end - start) - strlen(before)) : NULL;
}

char *remedy_for(enum remedy_on on, const struct remedy_facts *facts, const struct remedy_rule **rule)
{
    const struct remedy_rule *found = remedy_rules;
    struct remedy_facts more = *facts;
    char *named = NULL, *made;

    while (found->name && !fits(found, on, facts))
        found++;
    if (!found->name)
        return NULL;
    if (on == ON_BREAK) { /* torch names what it was about */
        named = between(facts->text, "<function ", " at 0x");
        more.source = named ? named : "it";
    } else if (on == ON_DEATH && facts->torch && (named = between(facts->text, "because ", " got deallocated"))) {
        more.source = named;
    }
    if (rule)
        *rule = found;
    made = sentence(found->text, &more);
    free(named);
    return made;
}
