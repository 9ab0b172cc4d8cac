/* cmd_why.c -- `dyntrace why`: what was decided about one function's calls, and why.
 *
 * Runs in: the viewer.
 *
 * The facts are gathered first (why.h), then the page is written from them:
 *
 *     calls       how each class of calls was decided, how many, since when
 *     compiles    and for each recompile the guard that did not hold
 *     histories   what a failing source was over the recompiles: 16, 18, 20
 *     entries     how often tried and hit, which died and of what
 *     limit, guards, graph breaks
 *     remedies    the smallest changes that would have helped (remedy.h) */
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "db.h"
#include "json.h"
#include "prose.h"
#include "say.h"
#include "table.h"
#include "why.h"

enum {
    /* lines of the page */
    HITS_SHOWN = 6, COMPILES_FIRST = 4, COMPILES_LAST = 2, CAUSES_SHOWN = 4, OLDER_SHOWN = 3, HISTORIES_SHOWN = 6,
    ENTRIES_SHOWN = 8, GUARDS_SHOWN = 3, BREAKS_SHOWN = 5, INPUTS_SHOWN = 3,
    WIDTH = WHY_WIDTH,      /* bytes of a text from the trace within a line */
};

static const char usage[] =
    "usage: dyntrace why FUNC [FILE] [--sql] [--json]\n\n"
    "What was decided about the calls of a function, and why: hits, compiles and recompiles with the\n"
    "guard that failed, calls that ran as Python, entries that died, and what would have helped.\n"
    "FUNC is a qualified name, its last part, FILE:LINE, a GLOB, or a compile such as 0/1.\n"
    "FILE is the newest *.db trace here unless given.\n\n"
    "  --sql   also print the SQL that answers\n"
    "  --json  the same for a program, times in nanoseconds\n";

static const char *value_of(const char *text)
{
    return text && *text ? text : NULL;
}

/* ---- for people ------------------------------------------------------------ */

static const struct outcome_words {
    const char *name, *words;
    bool python; /* ran as Python though a compiler was set */
} outcome_words[CALL_KINDS] = {
    [CALL_PLAIN] = {"plain", "no compiler was asked", false},
    [CALL_HIT] = {"hit", "ran compiled code", false},
    [CALL_COMPILED] = {"compiled", "no entry fitted: compiled, then ran that", false},
    [CALL_RUN_ONLY] = {"run_only", "no entry fitted, compiling was not allowed: ran as Python", true},
    [CALL_SKIP] = {"skip", "marked never to be compiled: ran as Python", true},
    [CALL_LIMIT] = {"limit", "no entry fitted, the limit was reached: ran as Python", true},
    [CALL_DECLINED] = {"declined", "the compiler gave no code: ran as Python", true},
    [CALL_DISABLED] = {"disabled", "the compiler was off on this thread: ran as Python", true},
    [CALL_GUARD_ERROR] = {"guard_error", "a guard raised: the call failed", false},
    [CALL_CALLBACK_ERROR] = {"callback_error", "the compiler raised: the call failed", false},
};

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static int64_t recompiles_of(const struct why *why)
{
    int64_t count = 0;

    for (size_t i = 0; i < why->compiles.count; i++)
        count += why->compiles.items[i].recompile;
    return count;
}

static void head_print(struct why *why)
{
    FILE *out = why->out;
    char human[TABLE_HUMAN];
    int64_t python = 0, recompiles = recompiles_of(why), hits = why_calls(why, CALL_HIT);

    prose_text(out, why->code.qualname, 200);
    fputs("  ", out);
    prose_text(out, prose_path(why->code.filename), 200);
    fprintf(out, ":%" PRId64 "  ", why->code.first_line);
    prose_text(out, why->code.kind, 40);
    if (why->code.code_objects > 1)
        fprintf(out, ", %" PRId64 " code objects in %" PRId64 " process%s", why->code.code_objects, why->code.processes,
                why->code.processes == 1 ? "" : "es");
    for (size_t i = 0; i < why->calls.count; i++)
        if (outcome_words[why->calls.items[i].outcome].python)
            python += why->calls.items[i].calls;
    if (why->all_calls < 0)
        fputs("\ncalls: not known\n", out);
    else
        fprintf(out, "\n%s call%s: ", table_count(human, why->all_calls), plural(why->all_calls));
    if (why->all_calls > 0 && hits + python + (int64_t)why->compiles.count == 0)
        fputs("no compiler had to do with them", out);
    else if (why->all_calls > 0) {
        fprintf(out, "%.3g %% ran compiled code, %.3g %% ran as Python though a compiler was set; ",
                100.0 * (double)(hits + why_calls(why, CALL_COMPILED)) / (double)why->all_calls,
                100.0 * (double)python / (double)why->all_calls);
        fprintf(out, "%zu compile%s (%" PRId64 " recompile%s)", why->compiles.count,
                plural((int64_t)why->compiles.count), recompiles, plural(recompiles));
    }
    if (why->all_calls >= 0)
        putc('\n', out);
    if (why->missing)
        fputs("LOSS: events are missing from this recording (`dyntrace report`); counts may be too low\n", out);
}

static void moments_print(FILE *out, const struct call_class *class)
{
    char first[TABLE_HUMAN], last[TABLE_HUMAN];

    if (!class->timed)
        return;
    if (class->calls > 1)
        fprintf(out, "; first at %s, last at %s", table_duration(first, class->first_ns), table_duration(last, class->last_ns));
    else
        fprintf(out, "; at %s", table_duration(first, class->first_ns));
}

static void calls_print(struct why *why)
{
    FILE *out = why->out;
    char human[TABLE_HUMAN];
    int64_t folded = 0, folded_entries = 0;
    int hits = 0;

    if (!why->calls.count && !why->undecided)
        return;
    prose_title(out, "Its calls");
    for (size_t i = 0; i < why->calls.count; i++) {
        const struct call_class *class = &why->calls.items[i];
        if (class->outcome == CALL_HIT && ++hits > HITS_SHOWN) {
            folded += class->calls;
            folded_entries++;
            continue;
        }
        fprintf(out, "%9s %5.1f %%  %-14s  ", table_count(human, class->calls),
                why->all_calls > 0 ? 100.0 * (double)class->calls / (double)why->all_calls : 100.0,
                outcome_words[class->outcome].name);
        fputs(outcome_words[class->outcome].words, out);
        if (class->outcome == CALL_HIT) {
            fputs(" of ", out);
            prose_text(out, class->entry, 40);
        }
        moments_print(out, class);
        putc('\n', out);
    }
    if (folded)
        fprintf(out, "%9s %5.1f %%  %-14s  ran compiled code of %" PRId64 " other entries\n", table_count(human, folded),
                100.0 * (double)folded / (double)why->all_calls, "hit", folded_entries);
    if (why->undecided)
        fprintf(out, "%9s %5.1f %%  %-14s  without a lookup: plain, skipped or disabled (frames that tell are not stored, "
                "or too many to read here)\n", table_count(human, why->undecided),
                100.0 * (double)why->undecided / (double)why->all_calls, "?");
}

/* "0/0 wanted 16, 0/1 wanted 18" for the causes FROM..END that are like FIRST. */
static void wanted_print(struct why *why, size_t from, size_t end, const struct cause *first)
{
    FILE *out = why->out;
    int told = 0, more = 0;

    for (size_t i = from; i < end; i++) {
        const struct cause *c = &why->causes.items[i];
        if (!prose_same(c->source, first->source) || !prose_same(c->kind, first->kind) ||
            !prose_same(c->actual, first->actual) || c->observed != first->observed)
            continue;
        if (told >= OLDER_SHOWN) {
            more++;
            continue;
        }
        fputs(told++ ? ", " : "", out);
        prose_text(out, c->entry ? c->entry : "an older entry", 40);
        fputs(" wanted ", out);
        prose_text(out, c->expected ? c->expected + cause_value_at(c) : NULL, WIDTH);
    }
    if (more)
        fprintf(out, ", %d more entries something else", more);
}

/* The causes of a recompile, those alike on one line. */
static void causes_print(struct why *why, const struct compile *compile)
{
    FILE *out = why->out;
    size_t from = compile->first_cause, end = from + compile->causes;
    int told = 0, more = 0;

    for (size_t i = from; i < end; i++) {
        const struct cause *c = &why->causes.items[i];
        bool values = value_of(c->expected) || value_of(c->actual), alike = false;
        for (size_t j = from; j < i && !alike; j++) {
            const struct cause *o = &why->causes.items[j];
            alike = prose_same(o->source, c->source) && prose_same(o->kind, c->kind) && o->observed == c->observed &&
                    prose_same(o->actual, c->actual) && (values || (prose_same(o->text, c->text) && o->entry_id == c->entry_id));
        }
        if (alike)
            continue;
        if (told >= CAUSES_SHOWN) {
            more++;
            continue;
        }
        told++;
        fputs(c->observed ? "         " : "         also ", out);
        if (values) {
            prose_text(out, value_of(c->source) ? c->source : c->kind, WIDTH);
            char *aspect = cause_aspect(c);
            if (aspect)
                putc(' ', out), prose_text(out, aspect, 40);
            free(aspect);
            fputs(" was ", out);
            prose_text(out, c->actual ? c->actual + cause_value_at(c) : NULL, WIDTH);
            fputs("; ", out);
            wanted_print(why, from, end, c);
        } else {
            prose_text(out, c->entry ? c->entry : "an older entry", 40);
            fputs(": ", out);
            prose_text(out, value_of(c->text) ? c->text : value_of(c->source) ? c->source : "no reason was recorded", WIDTH * 2);
        }
        fputs("  [", out);
        if (c->kind)
            prose_text(out, c->kind, 40);
        fprintf(out, "%s%s]\n", c->kind ? ", " : "", c->observed ? "observed" : "re-checked");
        if (i - from > 5000)
            break;
    }
    if (more)
        fprintf(out, "         %d other failing guards; --json has them all\n", more);
}

/* A recompile that no guard asked for: did an entry die before it? */
static bool deaths_before_print(struct why *why, const struct compile *compile)
{
    FILE *out = why->out;
    char human[TABLE_HUMAN];
    int told = 0;

    for (size_t i = why->entries.count; i-- > 0; ) {
        const struct entry *e = &why->entries.items[i];
        if (!e->died || e->code_id != compile->code_id || e->died_ns > compile->start_ns || told == 2)
            continue;
        told++;
        fputs("         ", out);
        prose_text(out, e->label, 40);
        fprintf(out, " had died at %s: ", table_duration(human, e->died_ns));
        prose_text(out, e->death ? e->death : "the cause was not recorded", WIDTH * 2);
        putc('\n', out);
    }
    return told;
}

static void compile_print(struct why *why, const struct compile *compile)
{
    FILE *out = why->out;
    char human[TABLE_HUMAN];
    bool made = compile_made(compile);

    fputs("  ", out);
    prose_text(out, compile->label ? compile->label : "?", 20);
    fprintf(out, "%*s at %s", (int)(5 - (compile->label ? strnlen(compile->label, 5) : 1)), "",
            table_duration(human, compile->start_ns));
    if (compile->ended)
        fprintf(out, ", took %s", table_duration(human, compile->end_ns - compile->start_ns));
    else
        fputs(", did not end", out);
    if (!made) {
        fputs(": ", out);
        prose_text(out, compile->outcome, 40);
    }
    if (!made && value_of(compile->reason)) {
        fputs(": ", out);
        prose_text(out, compile->reason, WIDTH * 2);
    } else if (made && !compile->recompile) {
        fputs(": the first", out);
    }
    putc('\n', out);
    if (compile->causes)
        causes_print(why, compile);
    else if (compile->recompile && !deaths_before_print(why, compile) && made) {
        fputs("         ", out);
        prose_text(out, value_of(compile->reason) ? compile->reason : "why is not recorded", WIDTH * 2);
        putc('\n', out);
    }
    if (compile->inputs) {
        fputs("         inputs: ", out);
        prose_text(out, compile->inputs, WIDTH * 2);
        putc('\n', out);
    }
}

static void compiles_print(struct why *why)
{
    size_t count = why->compiles.count;

    if (!count)
        return;
    prose_title(why->out, "Compiles, and the guard that made each needed");
    for (size_t i = 0; i < count; i++) {
        if (count > COMPILES_FIRST + COMPILES_LAST && i == COMPILES_FIRST) {
            fprintf(why->out, "  ...   %zu more; --json has them all\n", count - COMPILES_FIRST - COMPILES_LAST);
            i = count - COMPILES_LAST;
        }
        compile_print(why, &why->compiles.items[i]);
    }
}

static void histories_print(struct why *why)
{
    FILE *out = why->out;
    size_t shown = 0;

    if (!why->histories.count)
        return;
    for (size_t i = 0; i < why->histories.count && shown < HISTORIES_SHOWN; i++) {
        const struct history *h = &why->histories.items[i];
        bool alike = false;
        if (!value_of(h->values))
            continue;
        for (size_t j = 0; j < i && !alike; j++) /* the same in another process */
            alike = prose_same(why->histories.items[j].source, h->source) && prose_same(why->histories.items[j].kind, h->kind) &&
                    prose_same(why->histories.items[j].aspect, h->aspect) && prose_same(why->histories.items[j].values, h->values);
        if (alike)
            continue;
        if (!shown++)
            prose_title(out, "What failing sources were over the recompiles");
        fputs("  ", out);
        prose_text(out, value_of(h->source) ? h->source : h->kind, WIDTH);
        if (h->aspect)
            putc(' ', out), prose_text(out, h->aspect, 40);
        fputs("  ", out);
        prose_text(out, h->values, WIDTH * 2);
        fprintf(out, "  [decided %" PRId64 " recompile%s]\n", h->recompiles, plural(h->recompiles));
    }
}

static void entries_print(struct why *why)
{
    FILE *out = why->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN];
    size_t shown = 0;

    if (!why->entries.count)
        return;
    prose_title(out, "Cache entries");
    for (size_t i = 0; i < why->entries.count && shown < ENTRIES_SHOWN; i++, shown++) {
        const struct entry *e = &why->entries.items[i];
        fputs("  ", out);
        prose_text(out, e->label, 40);
        if (e->backend) {
            fputs("  ", out);
            prose_text(out, e->backend, 40);
        }
        fprintf(out, "  %" PRId64 " guard%s, tried %s time%s, ", e->guards, plural(e->guards), table_count(a, e->tried),
                plural(e->tried));
        if (e->hits)
            fprintf(out, "hit %s, last at %s", table_count(a, e->hits), table_duration(b, e->last_hit_ns));
        else
            fputs("never hit", out);
        if (e->mismatched)
            fprintf(out, ", passed over %s time%s: another backend asked", table_count(a, e->mismatched), plural(e->mismatched));
        if (e->died) {
            fprintf(out, "; died at %s: ", table_duration(a, e->died_ns));
            prose_text(out, e->death ? e->death : "the cause was not recorded", WIDTH);
        }
        putc('\n', out);
    }
    if (shown < why->entries.count)
        fprintf(out, "  (%zu of %zu; --json has them all)\n", shown, why->entries.count);
}

static void limit_print(struct why *why)
{
    FILE *out = why->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN], c[TABLE_HUMAN];

    for (size_t i = 0; i < why->calls.count; i++) {
        const struct call_class *class = &why->calls.items[i];
        if (class->outcome != CALL_LIMIT)
            continue;
        prose_title(out, "Limit");
        fprintf(out, "  Reached at %s with %zu compile%s; since then %s call%s ran as Python, the last at %s.\n",
                table_duration(a, class->first_ns), why->compiles.count, plural((int64_t)why->compiles.count),
                table_count(b, class->calls), plural(class->calls), table_duration(c, class->last_ns));
    }
    for (size_t i = 0; i < why->inputs.count && i < INPUTS_SHOWN; i++) {
        fprintf(out, "  inputs of %s call%s: ", table_count(a, why->inputs.items[i].calls), plural(why->inputs.items[i].calls));
        prose_text(out, why->inputs.items[i].text, WIDTH * 2);
        putc('\n', out);
    }
}

static void guards_print(struct why *why)
{
    FILE *out = why->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN], c[TABLE_HUMAN];

    if (!why->checks)
        return;
    prose_title(out, "Guards");
    fprintf(out, "  %s check%s took %s, %s each", table_count(a, why->checks), plural(why->checks),
            table_duration(b, why->check_ns), table_duration(c, why->check_ns / why->checks));
    if (why->total_ns > 0)
        fprintf(out, ": %.2g %% of the time in the function", 100.0 * (double)why->check_ns / (double)why->total_ns);
    putc('\n', out);
    for (size_t i = 0; i < why->guards.count && i < GUARDS_SHOWN; i++) {
        const struct failed_guard *g = &why->guards.items[i];
        bool mismatch = prose_same(g->result, "backend_mismatch");
        fprintf(out, "  %s %s time%s: ", mismatch ? "not asked" : prose_same(g->result, "error") ? "raised" : "failed",
                table_count(a, g->times), plural(g->times));
        prose_text(out, g->entry ? g->entry : "?", 40);
        putc(' ', out);
        if (mismatch)
            fputs("(another backend)", out);
        else if (g->kind) {
            prose_text(out, g->kind, 40);
            putc(' ', out);
            prose_text(out, value_of(g->source) ? g->source : g->expression, WIDTH);
        } else
            fputs("(which guard is not recorded)", out);
        putc('\n', out);
    }
    if (why->guards.count > GUARDS_SHOWN)
        fprintf(out, "  and %zu others; --json has them all\n", why->guards.count - GUARDS_SHOWN);
}

static void breaks_print(struct why *why)
{
    FILE *out = why->out;

    if (!why->breaks.count)
        return;
    prose_title(out, "Graph breaks");
    for (size_t i = 0; i < why->breaks.count && i < BREAKS_SHOWN; i++) {
        const struct graph_break *b = &why->breaks.items[i];
        fprintf(out, "  line %" PRId64 ", %" PRId64 " time%s: ", b->line, b->times, plural(b->times));
        prose_text(out, b->reason, WIDTH * 2);
        if (b->resume) {
            fputs("; goes on in ", out);
            prose_text(out, b->resume, WIDTH);
        }
        putc('\n', out);
    }
    if (why->breaks.count > BREAKS_SHOWN)
        fprintf(out, "  (%d of %zu)\n", BREAKS_SHOWN, why->breaks.count);
}

static void remedies_print(struct why *why)
{
    if (!why->remedies.count)
        return;
    prose_title(why->out, "What would have helped");
    for (size_t i = 0; i < why->remedies.count; i++) {
        fprintf(why->out, "  %zu. ", i + 1);
        prose_text(why->out, why->remedies.items[i].text, 1000);
        putc('\n', why->out);
    }
}

static void sql_print(struct why *why)
{
    prose_title(why->out, "SQL");
    for (size_t i = 0; i < why->asked.count; i++) {
        fprintf(why->out, "-- %s\n", why->asked.items[i].title);
        prose_lines(why->out, why->asked.items[i].sql, 0, -1);
        fputs(";\n", why->out);
    }
}

/* ---- for programs ---------------------------------------------------------- */

static struct table *member(struct why *why, const char *name, int columns, const char *const *names)
{
    fprintf(why->out, ",\n\"%s\": ", name);
    return table_open(why->out, TABLE_JSON, columns, names);
}

static void maybe_integer(struct table *table, bool known, int64_t value)
{
    if (known)
        table_integer(table, value);
    else
        table_null(table);
}

static void json_members(struct why *why)
{
    FILE *out = why->out;
    struct table *t;

    t = member(why, "calls", 7, (const char *[]){"outcome", "cache_entry_id", "entry", "calls", "first_ns", "last_ns", "lookup_ns"});
    for (size_t i = 0; t && i < why->calls.count; i++) {
        const struct call_class *c = &why->calls.items[i];
        table_string(t, outcome_words[c->outcome].name);
        maybe_integer(t, c->entry_id, c->entry_id);
        table_string(t, c->entry);
        table_integer(t, c->calls);
        maybe_integer(t, c->timed, c->first_ns);
        maybe_integer(t, c->timed, c->last_ns);
        table_integer(t, c->lookup_ns);
    }
    table_close(t);
    t = member(why, "compiles", 9, (const char *[]){"compile_id", "code_id", "label", "start_ns", "end_ns", "outcome",
               "cache_entry_id", "reason", "inputs"});
    for (size_t i = 0; t && i < why->compiles.count; i++) {
        const struct compile *c = &why->compiles.items[i];
        table_integer(t, c->compile_id);
        table_integer(t, c->code_id);
        table_string(t, c->label);
        table_integer(t, c->start_ns);
        maybe_integer(t, c->ended, c->end_ns);
        table_string(t, c->outcome);
        maybe_integer(t, c->entry_id, c->entry_id);
        table_string(t, c->reason);
        table_string(t, c->inputs);
    }
    table_close(t);
    t = member(why, "causes", 9, (const char *[]){"compile_id", "cache_entry_id", "older_entry", "kind", "source", "expected",
               "actual", "text", "how"});
    for (size_t i = 0; t && i < why->causes.count; i++) {
        const struct cause *c = &why->causes.items[i];
        table_integer(t, c->compile_id);
        maybe_integer(t, c->entry_id, c->entry_id);
        table_string(t, c->entry);
        table_string(t, c->kind);
        table_string(t, c->source);
        table_string(t, c->expected);
        table_string(t, c->actual);
        table_string(t, c->text);
        table_string(t, c->observed ? "observed" : "rechecked");
    }
    table_close(t);
    t = member(why, "histories", 6, (const char *[]){"code_id", "kind", "source", "aspect", "recompiles", "values"});
    for (size_t i = 0; t && i < why->histories.count; i++) {
        const struct history *h = &why->histories.items[i];
        table_integer(t, h->code_id);
        table_string(t, h->kind);
        table_string(t, h->source);
        table_string(t, h->aspect);
        table_integer(t, h->recompiles);
        table_json(t, h->json ? h->json : "[]");
    }
    table_close(t);
    t = member(why, "entries", 12, (const char *[]){"cache_entry_id", "code_id", "label", "backend", "guards", "born_ns", "tried", "hit",
               "last_hit_ns", "backend_mismatches", "died_ns", "death_cause"});
    for (size_t i = 0; t && i < why->entries.count; i++) {
        const struct entry *e = &why->entries.items[i];
        table_integer(t, e->entry_id);
        table_integer(t, e->code_id);
        table_string(t, e->label);
        table_string(t, e->backend);
        table_integer(t, e->guards);
        table_integer(t, e->born_ns);
        table_integer(t, e->tried);
        table_integer(t, e->hits);
        maybe_integer(t, e->hits, e->last_hit_ns);
        table_integer(t, e->mismatched);
        maybe_integer(t, e->died, e->died_ns);
        table_string(t, e->death);
    }
    table_close(t);
    t = member(why, "failed_guards", 6, (const char *[]){"result", "times", "entry", "kind", "source", "expression"});
    for (size_t i = 0; t && i < why->guards.count; i++) {
        const struct failed_guard *g = &why->guards.items[i];
        table_string(t, g->result);
        table_integer(t, g->times);
        table_string(t, g->entry);
        table_string(t, g->kind);
        table_string(t, g->source);
        table_string(t, g->expression);
    }
    table_close(t);
    t = member(why, "eager_inputs", 2, (const char *[]){"calls", "inputs"});
    for (size_t i = 0; t && i < why->inputs.count; i++) {
        table_integer(t, why->inputs.items[i].calls);
        table_string(t, why->inputs.items[i].text);
    }
    table_close(t);
    t = member(why, "graph_breaks", 4, (const char *[]){"line", "times", "reason", "resume_function"});
    for (size_t i = 0; t && i < why->breaks.count; i++) {
        table_integer(t, why->breaks.items[i].line);
        table_integer(t, why->breaks.items[i].times);
        table_string(t, why->breaks.items[i].reason);
        table_string(t, why->breaks.items[i].resume);
    }
    table_close(t);
    t = member(why, "remedies", 2, (const char *[]){"name", "text"});
    for (size_t i = 0; t && i < why->remedies.count; i++) {
        table_string(t, why->remedies.items[i].name);
        table_string(t, why->remedies.items[i].text);
    }
    table_close(t);
    if (why->sql) {
        t = member(why, "sql", 2, (const char *[]){"title", "sql"});
        for (size_t i = 0; t && i < why->asked.count; i++) {
            table_string(t, why->asked.items[i].title);
            table_string(t, why->asked.items[i].sql);
        }
        table_close(t);
    }
    fprintf(out, ",\n\"guards\": {\"checks\": %" PRId64 ", \"check_ns\": %" PRId64 "}", why->checks, why->check_ns);
}

static void json_print(struct why *why)
{
    FILE *out = why->out;

    fputs("{\"file\": ", out);
    json_string(out, db_path(why->db), strlen(db_path(why->db)));
    fputs(",\n\"function\": {\"qualname\": ", out);
    json_string(out, why->code.qualname, strlen(why->code.qualname));
    fputs(", \"filename\": ", out);
    json_string(out, why->code.filename, strlen(why->code.filename));
    fprintf(out, ", \"first_line\": %" PRId64 ", \"kind\": ", why->code.first_line);
    json_string(out, why->code.kind, strlen(why->code.kind));
    fprintf(out, ", \"code_ids\": [%s], \"code_objects\": %" PRId64 "}", why->code.ids, why->code.code_objects);
    fprintf(out, why->all_calls < 0 ? ",\n\"call_count\": null" : ",\n\"call_count\": %" PRId64, why->all_calls);
    fprintf(out, why->total_ns < 0 ? ",\n\"total_ns\": null" : ",\n\"total_ns\": %" PRId64, why->total_ns);
    fprintf(out, ",\n\"calls_not_told_apart\": %" PRId64 ",\n\"recompiles\": %" PRId64 ",\n\"losses\": %s", why->undecided,
            recompiles_of(why), why->missing ? "true" : "false");
    json_members(why);
    fputs("}\n", out);
}

/* ---- the command ----------------------------------------------------------- */

static void tick(void *context)
{
    progress_tick(context, 0, 0);
}

static int why_main(int argc, char **argv)
{
    static const char *const options[] = {"--sql", "--json", NULL};
    struct why why = {.out = stdout};
    const char *name, *path;
    bool set[2] = {false};
    struct query *snapshot;
    int status = find_arguments(argc, argv, usage, options, set, &name, &path);

    if (status >= 0)
        return status;
    why.sql = set[0];
    why.json = set[1];
    status = 2;
    setlocale(LC_CTYPE, "");
    why.db = db_open(path);
    if (!why.db)
        return 2;
    /* One snapshot, so that the facts agree while the recording goes on. */
    snapshot = db_query(why.db, "BEGIN");
    query_step(snapshot);
    query_close(snapshot);
    if (!find_tables(why.db))
        goto out;
    why.progress = progress_begin("reading decisions");
    db_on_progress(why.db, tick, &why.progress);
    switch (find_code(why.db, name, &why.code, stdout, why.json)) {
    case FIND_ONE:
        break;
    case FIND_SEVERAL:
        status = 1;
        goto out;
    default:
        goto out;
    }
    why_gather(&why);
    db_on_progress(why.db, NULL, NULL);
    progress_end(&why.progress);
    if (why.failed)
        goto out;
    if (why.json) {
        json_print(&why);
    } else {
        head_print(&why);
        calls_print(&why);
        compiles_print(&why);
        histories_print(&why);
        entries_print(&why);
        limit_print(&why);
        guards_print(&why);
        breaks_print(&why);
        remedies_print(&why);
        if (why.sql)
            sql_print(&why);
    }
    status = why.failed ? 2 : 0;
out:
    db_on_progress(why.db, NULL, NULL);
    progress_end(&why.progress);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say_error("output: cannot be written");
        status = 2;
    }
    why_free(&why);
    return status;
}

const struct command command_why = {
    "why", "why a function was compiled again, or ran as Python", usage, why_main,
};
