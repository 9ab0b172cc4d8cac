/* trace/remedy.c -- the smallest change to a program that would have helped: programs with a compiler of their own.
 *
 * Runs in: the viewer. See trace/remedy.h. */
#include "trace/remedy.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/cause.h"
#include "trace/torch_words.h"

enum { WORD_BYTES = 100 }; /* of a fact within a sentence */

/* ---- the tables ------------------------------------------------------------ */

/* A text speaks of facts in braces: {source}, {base} (the source without what is
 * asked of it: L['x'] of L['x'].size()[0]), {name} (x, where it is so simple), {dim}, {kind}, {expected}, {actual},
 * {values}, {text}, {function}, {count}, {calls} ("1 call"), {entries} ("1 entry"), {needed}, {at} (" at line 12", of a
 * break), {limit} (torch's option for it), {what} and {hint} (of torch's reason, trace/torch_words.h), {apart} (a sentence
 * where sizes 0 and 1 are concerned). */
struct cause_case {
    const char *name;
    const char *kind;          /* pattern, letter case does not matter */
    enum remedy_change change; /* CHANGE_ANY: whatever changed */
    const char *source;        /* pattern */
    const char *text;
};

static const struct cause_case cause_cases[] = {
    {"backend", "BACKEND_*", CHANGE_ANY, "*",
     "Use one backend object for {function}: an entry serves only the backend that compiled it. Make the callback once "
     "and pass the same object each time."},
    {"keep alive", "*", CHANGE_DEAD, "*",
     "Keep {base} alive between calls: its entry ends with the object. Hold it in a variable that outlives the loop."},
    {"dynamic dimension", "*", CHANGE_SIZE, "*",
     "Make dimension {dim} of {base} dynamic: it was {values}. TENSOR_MATCH({base}, dynamic_sizes=[{dim}]), in torch "
     "mark_dynamic({name}, {dim}); or pad it to one size."},
    {"dynamic stride", "*", CHANGE_STRIDE, "*",
     "Give {base} one memory layout: its stride {dim} was {values}. Call .contiguous() before the call, or leave the "
     "strides out: TENSOR_MATCH({base}, dynamic_strides=[{dim}])."},
    {"one rank", "*", CHANGE_RANK, "*",
     "Pass {base} with one number of dimensions (it was {values}): reshape before the call. A rank cannot be dynamic."},
    {"one dtype", "*", CHANGE_DTYPE, "*",
     "Cast {base} to one dtype before the call (it was {values}); if all of them are needed, each needs an entry."},
    {"one device", "*", CHANGE_DEVICE, "*",
     "Move {base} to one device before the call (it was {values}); if all of them are needed, each needs an entry."},
    {"one grad mode", "*", CHANGE_GRAD, "*",
     "Call {function} with one setting of requires_grad for {base}: detach() it, or call under no_grad() always or never."},
    {"one length", "*LENGTH*", CHANGE_ANY, "*",
     "Keep the length of {base} fixed (it was {values}): pad it, or pass its items as one array."},
    {"one set of keys", "DICT_*", CHANGE_ANY, "*",
     "Keep the keys of {base} fixed: fill in absent ones with a default before the call."},
    {"define once", "*FUNCTION_MATCH", CHANGE_ANY, "*",
     "Define the function {source} once, outside of the loop: a lambda or nested def is a new object each time."},
    {"define once", "*CLOSURE*", CHANGE_ANY, "*",
     "Make the closure {source} once, outside of the loop; or pass what it captures as an argument."},
    {"builtin", "BUILTIN_MATCH", CHANGE_ANY, "*",
     "Do not replace the builtin {source} between calls; wrap it before the first call."},
    {"attribute", "*HASATTR", CHANGE_ANY, "*",
     "Set {source} in __init__, so that the attribute is there from the first call on."},
    {"global state", "*GLOBAL_STATE*", CHANGE_ANY, "*",
     "Call {function} in one global state (grad mode, autocast, number of threads): enter the context outside of the loop."},
    {"grad mode", "GRAD_MODE*", CHANGE_ANY, "*",
     "Call {function} under one grad mode: enter no_grad() outside of the loop."},
    {"aliasing", "*ALIASING*", CHANGE_ANY, "*",
     "Pass either one object twice or different objects always: {source} changed between the two; clone() one of them."},
    {"one type", "*", CHANGE_TYPE, "*",
     "Pass one type as {base} (it was {values}); if all of them are needed, each needs an entry."},
    {"one object", "ID_MATCH", CHANGE_ANY, "G\\[*",
     "Set the global {source} once, before the first call: it was another object each time."},
    {"one object", "ID_MATCH", CHANGE_ANY, "*",
     "Make {source} once and pass the same object: the guard asks for that very object."},
    {"weak reference", "WEAKREF_ALIVE", CHANGE_ANY, "*",
     "Keep {base} alive between calls: its entry ends with the object. Hold it in a variable that outlives the loop."},
    {"hoist", "*", CHANGE_NUMBER, "G\\[*",
     "Set the global {source} once, before the first call (it was {values}), or pass it as an array: its value is "
     "compiled in."},
    {"hoist", "*", CHANGE_NUMBER, "L\\['self'\\]*",
     "Do not count in an attribute that {function} reads: {source} was {values} and its value is compiled in. Keep it out "
     "of the compiled function, or make it an array."},
    {"hoist", "*", CHANGE_NUMBER, "*",
     "Do not pass a changing number as a constant: {source} was {values} and its value is compiled in. Pass it as a "
     "0-dimensional array, make it dynamic, or hoist it out of {function}."},
    {"one value", "*EQUALS_MATCH", CHANGE_ANY, "*",
     "Hoist {source} out of {function}, or call it with few values: its value is compiled in (it was {values})."},
    {"one value", "CONSTANT_MATCH", CHANGE_ANY, "*",
     "Hoist {source} out of {function}, or call it with few values: its value is compiled in (it was {values})."},
    {"one value", "NONE_MATCH", CHANGE_ANY, "*", "Pass {source} always or never: None and a value need an entry each."},
    {"one value", "TRUE_MATCH", CHANGE_ANY, "*", "Keep {source} fixed: True and False need an entry each."},
    {"one value", "FALSE_MATCH", CHANGE_ANY, "*", "Keep {source} fixed: True and False need an entry each."},
    {"shape relation", "*SHAPE*", CHANGE_ANY, "*",
     "The compiled code holds only while {expected}; compile with the inputs that break it first, or pad them: {source}."},
    {"one value", "*", CHANGE_ANY, "?*",
     "Keep {source} as the guard {kind} wants it, or allow an entry for each of its values."},
    {"name the guard", "*", CHANGE_ANY, "*",
     "The guard is opaque ({text}): build it from dyntrace.guards, so that its failures say what they saw."},
};

struct death_case {
    const char *name;
    const char *text_like; /* pattern on the cause, letter case does not matter */
    const char *text;
};

static const struct death_case death_cases[] = {
    {"no reset", "*reset*", "Do not reset the cache while {function} is in use ({count} entries died of it)."},
    {"define once", "*code object*",
     "Define {function} once: its entries die with the code object ({text})."},
    {"keep alive", "*",
     "Keep alive what the entry was made for ({text}; {count} entries died): an object that is guarded by identity takes its "
     "entries with it."},
};

struct outcome_case {
    const char *name;
    enum outcome outcome;
    bool needs_count; /* only if `needed` is known */
    const char *text;
};

static const struct outcome_case outcome_cases[] = {
    {"raise the limit", OUTCOME_LIMIT, true,
     "Raise recompile_limit to {needed}, the number of different inputs seen; {count} calls ran as Python for want of it."},
    {"raise the limit", OUTCOME_LIMIT, false, "Raise recompile_limit; {count} calls ran as Python for want of it."},
    {"warm up", OUTCOME_RUN_ONLY, true,
     "Warm up with all {needed} kinds of input before compiling is turned off (callback False, or the code marked run-only)."},
    {"warm up", OUTCOME_RUN_ONLY, false,
     "Warm up with all kinds of input before compiling is turned off (callback False, or the code marked run-only)."},
    {"unskip", OUTCOME_SKIP, false,
     "Find out who marked {function} to be skipped: skip_code, a strategy that applies to the code, or a callback that "
     "returned None ({text}). reset_code makes the compiler look again."},
    {"declined", OUTCOME_DECLINED, false, "Read why the compiler gave no code: {text}."},
    {"turn on", OUTCOME_DISABLED, false,
     "Turn the compiler on where {function} is called: the callback is set per thread, and is None inside guards, callbacks "
     "and `disable`."},
    {"mend the guard", OUTCOME_GUARD_ERROR, false,
     "Mend the guard that raised ({source}: {text}): the call fails, and the callback stays None on its thread."},
    {"mend the compiler", OUTCOME_CALLBACK_ERROR, false,
     "Mend what the compiler raised ({text}): the call fails, and the callback stays None on its thread."},
    {"turn on", OUTCOME_PLAIN, false,
     "Set the callback before {function} is called, and on the thread that calls it: no compiler was asked."},
};

/* ---- what changed ---------------------------------------------------------- */

static bool has(const char *text, const char *word)
{
    return text && strcasestr(text, word);
}

enum remedy_change remedy_change(const struct remedy_facts *facts)
{
    static const struct { const char *aspect; enum remedy_change change; } changes[] = {
        {"size", CHANGE_SIZE}, {"stride", CHANGE_STRIDE}, {"ndim", CHANGE_RANK}, {"dtype", CHANGE_DTYPE}, {"device", CHANGE_DEVICE},
        {"requires_grad", CHANGE_GRAD}, {"type", CHANGE_TYPE}, {"alive", CHANGE_DEAD}, {"value", CHANGE_NUMBER},
    };
    enum remedy_change change = CHANGE_ANY;

    for (size_t i = 0; facts->aspect && i < sizeof changes / sizeof *changes; i++)
        if (!strcmp(facts->aspect, changes[i].aspect))
            change = changes[i].change;
    return change == CHANGE_NUMBER && !(cause_number(facts->expected) && cause_number(facts->actual)) ? CHANGE_ANY : change;
}

/* ---- sentences ------------------------------------------------------------- */

/* TEXT without line ends, cut to WORD_BYTES and to whole runes. */
static void put_word(FILE *out, const char *text, int length)
{
    int bytes = length < 0 ? (int)strnlen(text, WORD_BYTES + 1) : length;
    bool cut = bytes > WORD_BYTES;

    if (cut) {
        bytes = WORD_BYTES;
        while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
            bytes--;
    }
    while (bytes > 0 && text[bytes - 1] == '.' && !cut && length < 0)
        bytes--; /* the sentence has its own */
    for (int i = 0; i < bytes; i++)
        putc(text[i] == '\n' ? ' ' : text[i], out);
    if (cut)
        fputs("…", out);
}

/* L['x'].a as the program writes it: x.a. */
static void put_name(FILE *out, const char *source)
{
    int length = cause_base(source);
    const char *quote = strlen(source) > 4 && strchr("LG", source[0]) && !strncmp(source + 1, "['", 2) ? strstr(source + 3, "']") : NULL;

    if (quote && quote + 2 <= source + length) {
        put_word(out, source + 3, (int)(quote - source - 3));
        if (quote + 2 < source + length)
            put_word(out, quote + 2, (int)(source + length - quote - 2));
    } else {
        put_word(out, source, length);
    }
}

/* The name of torch's option for the limit that TEXT speaks of. */
static const char *limit_name(const struct remedy_facts *facts)
{
    bool all = has(facts->text, "accumulated");

    if (facts->torch < 207) /* later versions know these names as well, but do not say them */
        return all ? "accumulated_cache_size_limit" : "cache_size_limit";
    return all ? "accumulated_recompile_limit" : "recompile_limit";
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

/* A function; the rest of one is told so. */
static void put_function(FILE *out, const char *qualname)
{
    char *function = NULL;
    int64_t line;

    if (torch_resume(qualname, &function, &line) && function) {
        fputs("the rest of ", out);
        put_word(out, function, -1);
        fprintf(out, " after line %lld", (long long)line);
    } else {
        put_word(out, qualname, -1);
    }
    free(function);
}

char *remedy_sentence(const char *text, const struct remedy_facts *facts)
{
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    if (!out)
        return NULL;
    while (*text) {
        size_t length = strcspn(text, "{");
        const char *name = text + length, *value = NULL;
        fwrite(text, 1, length, out);
        if (!*name)
            break;
#define IS(word) !strncmp(name, "{" word "}", sizeof word + 1)
        if (IS("source") || IS("base"))
            value = facts->source && *facts->source ? facts->source : "the input";
        else if (IS("kind"))
            value = facts->kind ? facts->kind : "that failed";
        else if (IS("expected"))
            value = facts->expected ? facts->expected : facts->text ? facts->text : "its guards pass";
        else if (IS("actual"))
            value = facts->actual ? facts->actual : "something else";
        else if (IS("values"))
            value = facts->values && *facts->values ? facts->values : "not always the same";
        else if (IS("text"))
            value = facts->text && *facts->text ? facts->text : "no reason was recorded";
        else if (IS("function"))
            value = facts->function ? facts->function : "the function";
        else if (IS("limit"))
            value = limit_name(facts);
        else if (IS("apart"))
            value = small_among(facts->values) ? " Sizes 0 and 1 are compiled apart all the same." : "";
        if (IS("name") && facts->source)
            put_name(out, facts->source);
        else if (IS("function") && facts->torch)
            put_function(out, value);
        else if (IS("apart"))
            fputs(value, out);
        else if (value)
            put_word(out, value, IS("base") && facts->source && *facts->source ? cause_base(value) : -1);
        else if (IS("what"))
            put_span(out, torch_reason_split(facts->text).what, "no reason was recorded");
        else if (IS("hint"))
            put_span(out, torch_reason_split(facts->text).hint, "none");
        else if (IS("dim") && facts->dimension >= 0)
            fprintf(out, "%d", facts->dimension);
        else if (IS("dim"))
            fputs("N", out);
        else if (IS("count"))
            fprintf(out, "%lld", (long long)facts->count);
        else if (IS("calls"))
            fprintf(out, "%lld call%s", (long long)facts->count, facts->count == 1 ? "" : "s");
        else if (IS("entries"))
            fprintf(out, "%lld entr%s", (long long)facts->count, facts->count == 1 ? "y" : "ies");
        else if (IS("needed"))
            fprintf(out, "%lld", (long long)facts->needed);
        else if (IS("at") && facts->line > 0)
            fprintf(out, " at line %lld", (long long)facts->line);
#undef IS
        text = strchr(name, '}') + 1;
    }
    if (fclose(out)) {
        free(made);
        return NULL;
    }
    return made;
}

bool remedy_like(const char *pattern, const char *text)
{
    /* "*" by hand: fnmatch does not match what is no text in this locale. */
    return !strcmp(pattern, "*") || !fnmatch(pattern, text ? text : "", FNM_CASEFOLD);
}

/* The sentence of a case without an effort of its own: what is told first is smallest. */
static char *told(const char *name, const char *text, const struct remedy_facts *facts, struct remedy_case *found)
{
    if (found)
        *found = (struct remedy_case){name, 0};
    return remedy_sentence(text, facts);
}

char *remedy_for_cause(const struct remedy_facts *facts, struct remedy_case *found)
{
    const struct cause_case *c = cause_cases;
    enum remedy_change change = remedy_change(facts);

    if (facts->torch)
        return remedy_torch_cause(facts, found);
    while (!(remedy_like(c->kind, facts->kind) && (c->change == CHANGE_ANY || c->change == change) &&
             remedy_like(c->source, facts->source)))
        c++;
    return told(c->name, c->text, facts, found);
}

char *remedy_for_death(const struct remedy_facts *facts, struct remedy_case *found)
{
    const struct death_case *c = death_cases;

    if (facts->torch)
        return remedy_torch_death(facts, found);
    while (!remedy_like(c->text_like, facts->text))
        c++;
    return told(c->name, c->text, facts, found);
}

char *remedy_for_outcome(enum outcome outcome, const struct remedy_facts *facts, struct remedy_case *found)
{
    if (facts->torch)
        return remedy_torch_outcome(outcome, facts, found);
    for (size_t i = 0; i < sizeof outcome_cases / sizeof *outcome_cases; i++) {
        const struct outcome_case *c = &outcome_cases[i];
        if (c->outcome == outcome && (!c->needs_count || facts->needed > 0))
            return told(c->name, c->text, facts, found);
    }
    return NULL;
}
