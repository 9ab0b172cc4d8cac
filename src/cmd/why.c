/* cmd/why.c -- `dyntrace why`: what was decided about one function's calls, and why.
 *
 * Runs in: the viewer.
 *
 * The facts are gathered first (trace/why/why.h), then the page is written from them:
 *
 *     calls       how each class of calls was decided, how many, since when
 *     compiles    and for each recompile the guard that did not hold
 *     histories   what a failing source was over the recompiles: 16, 18, 20
 *     entries     how often tried and hit, which died and of what
 *     limit, guards, graph breaks, where compile time went
 *     remedies    the smallest changes that would have helped (trace/remedy.h)
 *
 * Of a program that uses torch it is told in torch's words: its labels and
 * names, "eagerly" for what others call "as Python". */
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "lib/table.h"
#include "lib/times.h"
#include "trace/torch_words.h"
#include "trace/why/why.h"

enum {
    /* lines of the page */
    HITS_SHOWN = 6, COMPILES_FIRST = 4, COMPILES_LAST = 2, CAUSES_SHOWN = 4, OLDER_SHOWN = 3, HISTORIES_SHOWN = 6,
    ENTRIES_SHOWN = 8, GUARDS_SHOWN = 3, BREAKS_SHOWN = 5, INPUTS_SHOWN = 3, PHASES_SHOWN = 6, MARKS_SHOWN = 4, RANKS_SHOWN = 16,
    WIDTH = WHY_WIDTH,      /* bytes of a text from the trace within a line */
};

static const char *value_of(const char *text)
{
    return text && *text ? text : NULL;
}

/* ---- for people ------------------------------------------------------------ */

const char *why_python(const struct why *why)
{
    return why->torch.version ? "eagerly" : "as Python";
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

int64_t why_recompiles(const struct why *why)
{
    int64_t count = 0;

    for (size_t i = 0; i < why->compiles.count; i++)
        count += why->compiles.items[i].recompile && compile_made(&why->compiles.items[i]);
    return count;
}

/* Which torch, how it was watched, and what that leaves unseen. */
static void torch_print(struct why *why)
{
    const struct torch_facts *torch = &why->torch;
    FILE *out = why->out;

    if (!torch->version)
        return;
    fputs("torch ", out);
    prose_text(out, torch->text, 40);
    if (torch->versions > 1)
        fputs(" and others", out);
    if (torch->modes > 1)
        fputs(", watched in different ways in different processes", out);
    else if (prose_same(torch->mode, "shim"))
        fputs(", shim: every guard check was seen", out);
    else if (prose_same(torch->mode, "observe"))
        fputs(", observe: not seen are the entries that were tried in vain before a hit or an eager call, and what guards "
              "took", out);
    else if (prose_same(torch->mode, "import"))
        fputs(", imported", out);
    else if (torch->mode)
        fputs(", ", out), prose_text(out, torch->mode, 40);
    putc('\n', out);
    if (torch->note) {
        prose_text(out, torch->note, 300);
        putc('\n', out);
    }
}

/* Ranks should compile alike: one that compiles alone lets the others wait. */
static void ranks_print(struct why *why)
{
    FILE *out = why->out;
    bool differ = false;

    for (size_t i = 1; i < why->ranks.count; i++)
        differ = differ || why->ranks.items[i].compiles != why->ranks.items[0].compiles;
    if (!why->ranks.count)
        return;
    fprintf(out, "rank%s", plural((int64_t)why->ranks.count));
    for (size_t i = 0; i < why->ranks.count && i < RANKS_SHOWN; i++) {
        fprintf(out, "%s %" PRId64, i ? "," : "", why->ranks.items[i].rank);
        if (differ)
            fprintf(out, ": %" PRId64 " compile%s", why->ranks.items[i].compiles, plural(why->ranks.items[i].compiles));
    }
    if (why->ranks.count > RANKS_SHOWN)
        fprintf(out, " and %zu more", why->ranks.count - RANKS_SHOWN);
    fputs(differ ? "; they differ\n" : "\n", out);
}

static void head_print(struct why *why)
{
    FILE *out = why->out;
    char human[TABLE_HUMAN], *rest_of = NULL;
    int64_t python = 0, recompiles = why_recompiles(why), hits = why_calls(why, OUTCOME_HIT), made = 0, line;

    prose_text(out, why->code.qualname, 200);
    fputs("  ", out);
    prose_text(out, prose_path(why->code.filename), 200);
    fprintf(out, ":%" PRId64 "  ", why->code.first_line);
    if (torch_resume(why->code.qualname, &rest_of, &line))
        torch_name_print(out, why->code.qualname, 200);
    else
        prose_text(out, why->code.kind, 40);
    free(rest_of);
    if (why->code.code_objects > 1)
        fprintf(out, ", %" PRId64 " code objects in %" PRId64 " process%s", why->code.code_objects, why->code.processes,
                why->code.processes == 1 ? "" : "es");
    for (size_t i = 0; i < why->calls.count; i++)
        if (outcome_facts[why->calls.items[i].outcome].python)
            python += why->calls.items[i].calls;
    for (size_t i = 0; i < why->compiles.count; i++)
        made += compile_made(&why->compiles.items[i]);
    if (why->all_calls < 0)
        fputs("\ncalls: not known\n", out);
    else
        fprintf(out, "\n%s call%s: ", table_count(human, why->all_calls), plural(why->all_calls));
    if (!why->all_calls && !why->compiles.count)
        fputs("it is known, but was never called while this was recorded", out);
    else if (why->all_calls > 0 && hits + python + (int64_t)why->compiles.count == 0)
        fputs("no compiler had to do with them", out);
    else if (why->all_calls > 0) {
        fprintf(out, "%.3g %% ran compiled code, %.3g %% ran %s though a compiler was set; ",
                100.0 * (double)(hits + why_calls(why, OUTCOME_COMPILED)) / (double)why->all_calls,
                100.0 * (double)python / (double)why->all_calls, why_python(why));
        fprintf(out, "%" PRId64 " compile%s (%" PRId64 " recompile%s)", made, plural(made), recompiles, plural(recompiles));
        if ((int64_t)why->compiles.count > made)
            fprintf(out, ", %" PRId64 " without code", (int64_t)why->compiles.count - made);
    }
    if (why->all_calls >= 0)
        putc('\n', out);
    if (why->missing)
        fputs("LOSS: events are missing from this recording (`dyntrace report`); counts may be too low\n", out);
    if (doubts_values(why->db))
        fprintf(out, "%s\n", doubts_values(why->db));
    torch_print(why);
    ranks_print(why);
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

static const char *words_of(const struct why *why, enum outcome outcome)
{
    if (!why->torch.version || !outcome_facts[outcome].torch)
        return outcome_facts[outcome].words;
    if (outcome == OUTCOME_PLAIN && why->torch.observed)
        return "ran eagerly; whether torch was asked was not seen";
    return outcome_facts[outcome].torch;
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
        if (class->outcome == OUTCOME_HIT && ++hits > HITS_SHOWN) {
            folded += class->calls;
            folded_entries++;
            continue;
        }
        fprintf(out, "%9s %5.1f %%  %-14s  ", table_count(human, class->calls),
                why->all_calls > 0 ? 100.0 * (double)class->calls / (double)why->all_calls : 100.0,
                outcome_word(class->outcome));
        fputs(words_of(why, class->outcome), out);
        if (class->outcome == OUTCOME_HIT) {
            fputs(" of ", out);
            prose_text(out, class->entry, 40);
        }
        moments_print(out, class);
        putc('\n', out);
    }
    if (folded)
        fprintf(out, "%9s %5.1f %%  %-14s  ran compiled code of %" PRId64 " other entries\n", table_count(human, folded),
                100.0 * (double)folded / (double)why->all_calls, "hit", folded_entries);
    if (why->disabled_words) {
        fputs("           called in line ", out);
        fprintf(out, "%" PRId64 " of ", why->disabled_line);
        prose_text(out, why->disabled_by, WIDTH);
        fputs(" after a graph break: ", out);
        span_print(out, torch_reason_split(why->disabled_words).what, WIDTH * 2);
        putc('\n', out);
    }
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
            !prose_same(c->actual, first->actual) || c->decided != first->decided)
            continue;
        if (told >= OLDER_SHOWN) {
            more++;
            continue;
        }
        fputs(told++ ? ", " : "", out);
        prose_text(out, c->entry ? c->entry : "an older entry", 40);
        fputs(" wanted ", out);
        prose_text(out, cause_wanted(c), WIDTH);
    }
    if (more)
        fprintf(out, ", %d more entr%s something else", more, more == 1 ? "y" : "ies");
}

/* What was compared has no older value beside it: that another backend asked. */
static void backend_print(struct why *why, const struct compile *compile, const struct cause *cause)
{
    FILE *out = why->out;
    const char *older = NULL, *made = NULL;

    for (size_t i = 0; i < why->entries.count; i++) {
        if (why->entries.items[i].entry_id == cause->entry_id)
            older = why->entries.items[i].backend;
        if (compile->entry_id && why->entries.items[i].entry_id == compile->entry_id)
            made = why->entries.items[i].backend;
    }
    prose_text(out, cause->entry ? cause->entry : "an older entry", 40);
    fputs(" was compiled by another backend", out);
    if (older)
        fputs(", ", out), prose_text(out, older, 60);
    if (older && made && strcmp(older, made))
        fputs(", than now, ", out), prose_text(out, made, 60);
    else if (older && made)
        fputs(", another object of that name", out);
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
            alike = prose_same(o->source, c->source) && prose_same(o->kind, c->kind) && o->decided == c->decided &&
                    prose_same(o->actual, c->actual) && (values || (prose_same(o->text, c->text) && o->entry_id == c->entry_id));
        }
        if (alike)
            continue;
        if (told >= CAUSES_SHOWN) {
            more++;
            continue;
        }
        told++;
        fputs(c->decided ? "         " : "         also ", out);
        if (values) {
            char *about = cause_about(c), *part = cause_part(c);
            prose_text(out, about, WIDTH);
            if (part)
                putc(' ', out), prose_text(out, part, 40);
            free(about);
            free(part);
            fputs(" was ", out);
            prose_text(out, cause_seen(c), WIDTH);
            fputs("; ", out);
            wanted_print(why, from, end, c);
        } else if (why->torch.version && c->kind && !strncmp(c->kind, "BACKEND_", 8)) {
            backend_print(why, compile, c);
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

/* A recompile that no guard asked for: did an entry die before it, or was one not seen? */
static bool deaths_before_print(struct why *why, const struct compile *compile)
{
    const struct entry *other = why_other_region(why, compile);
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
    if (other) {
        fputs("         ", out);
        prose_text(out, other->label, 40);
        fprintf(out, " belongs to region %" PRId64 " and is not seen by others (isolate_recompiles)\n", other->region_id);
    }
    return told || other;
}

/* "skipped for good: frame is in the skipfiles list" */
static void unmade_print(struct why *why, const struct compile *compile)
{
    FILE *out = why->out;
    const char *said = why->torch.version ? compile_refusal(compile) : value_of(compile->reason);

    fputs(": ", out);
    prose_text(out, compile->outcome, 40);
    if (compile->sticky >= 0)
        fputs(compile->sticky ? ", for good" : ", for this call", out);
    if (said) {
        fputs(": ", out);
        if (why->torch.version)
            span_print(out, torch_reason_split(said).what, WIDTH * 2);
        else
            prose_text(out, said, WIDTH * 2);
    } else if (why->torch.version) {
        fputs(": torch did not say why", out);
    }
}

/* What the inputs of calls were like. Those that torch gives to functions for the rest after a break say nothing. */
static void inputs_print(FILE *out, const char *inputs)
{
    while (!strncmp(inputs, "__nested_", 9) && strstr(inputs, ", "))
        inputs = strstr(inputs, ", ") + 2;
    prose_text(out, inputs, WIDTH * 2);
    putc('\n', out);
}

/* "follows from: f 0/1 (L['x'] size[0] 16 -> 18)" */
static void parent_print(FILE *out, const struct parent *parent)
{
    fputs("         follows from: ", out);
    prose_text(out, parent->function, WIDTH);
    if (value_of(parent->label))
        putc(' ', out), prose_text(out, parent->label, 20);
    fputs(" (", out);
    prose_text(out, parent->source, WIDTH);
    if (parent->wanted && parent->seen) {
        putc(' ', out);
        prose_text(out, parent->wanted, WIDTH);
        fputs(" -> ", out);
        prose_text(out, parent->seen, WIDTH);
    }
    fputs(")\n", out);
}

static void compile_print(struct why *why, const struct compile *compile)
{
    FILE *out = why->out;
    char human[TABLE_HUMAN];
    const char *label = value_of(compile->label) ? compile->label : why->torch.version ? "-" : "?";
    bool made = compile_made(compile);

    fputs("  ", out);
    prose_text(out, label, 20);
    fprintf(out, "%*s ", (int)(5 - strnlen(label, 5)), "");
    if (why->ranks.count > 1 && compile->rank >= 0)
        fprintf(out, "rank %" PRId64 ", ", compile->rank);
    fprintf(out, "at %s", table_duration(human, compile->start_ns));
    if (compile->ended)
        fprintf(out, ", took %s", table_duration(human, times_span(compile->start_ns, compile->end_ns)));
    else
        fputs(", did not end", out);
    if (!made)
        unmade_print(why, compile);
    else if (!compile->recompile)
        fputs(": the first", out);
    putc('\n', out);
    if (compile->causes)
        causes_print(why, compile);
    else if (compile->recompile && !deaths_before_print(why, compile) && made) {
        fputs("         ", out);
        prose_text(out, value_of(compile->reason) ? compile->reason : "why is not recorded", WIDTH * 2);
        putc('\n', out);
    }
    if (compile->parent.compile_id)
        parent_print(out, &compile->parent);
    if (compile->inputs) {
        fputs("         inputs: ", out);
        inputs_print(out, compile->inputs);
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
        char *about;
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
        about = cause_about(h->cause);
        prose_text(out, about, WIDTH);
        free(about);
        if (h->aspect)
            putc(' ', out), prose_text(out, h->aspect, 40);
        fputs("  ", out);
        prose_text(out, h->values, WIDTH * 2);
        fprintf(out, "  [decided %" PRId64 " recompile%s", h->recompiles, plural(h->recompiles));
        if (h->refused)
            fprintf(out, ", %" PRId64 " that gave no code", h->refused);
        fputs(h->cause->observed ? "]\n" : ", as asking again tells]\n", out);
    }
}

static void entries_print(struct why *why)
{
    FILE *out = why->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN];
    size_t shown = 0;
    bool imported;

    if (!why->entries.count)
        return;
    imported = prose_same(why->torch.mode, "import");
    prose_title(out, "Cache entries");
    for (size_t i = 0; i < why->entries.count && shown < ENTRIES_SHOWN; i++, shown++) {
        const struct entry *e = &why->entries.items[i];
        fputs("  ", out);
        prose_text(out, e->label, 40);
        if (e->backend) {
            fputs("  ", out);
            prose_text(out, e->backend, 40);
        }
        if (e->in_region)
            fprintf(out, "  region %" PRId64, e->region_id);
        fprintf(out, "  %" PRId64 " guard%s, ", e->guards, plural(e->guards));
        if (imported) {
            fputs("its use is not known\n", out);
            continue;
        }
        if (!why->torch.observed) /* only the tries that ended in a hit were seen there */
            fprintf(out, "tried %s time%s, ", table_count(a, e->tried), plural(e->tried));
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

/* Which limit was reached, as the compiler says it, or NULL. */
static const char *limit_of(const struct why *why)
{
    for (size_t i = 0; i < why->compiles.count; i++)
        if (prose_same(why->compiles.items[i].outcome, "limit") && value_of(why->compiles.items[i].reason))
            return why->compiles.items[i].reason;
    return NULL;
}

/* Since when calls are not compiled, and why. */
static void marks_print(struct why *why)
{
    FILE *out = why->out;
    char human[TABLE_HUMAN];

    if (!why->marks.count)
        return;
    prose_title(out, "What was decided for good");
    for (size_t i = 0; i < why->marks.count && i < MARKS_SHOWN; i++) {
        const struct mark *m = &why->marks.items[i];
        bool skip = prose_same(m->action, "skip"), run_only = prose_same(m->action, "run_only");
        fprintf(out, "  since %s", table_duration(human, m->at_ns));
        if (m->in_region)
            fprintf(out, ", in region %" PRId64, m->region_id);
        if (skip)
            fprintf(out, ": never compiled, runs %s", why_python(why));
        fputs(skip ? "" : run_only ? ": entries are used, nothing new is compiled" : "", out);
        if (prose_same(m->callees, "skip"))
            fputs(skip ? ", and so do the calls that it makes" : ": the calls that it makes are never compiled", out);
        else if (prose_same(m->callees, "run_only"))
            fputs(run_only ? ", nor for the calls that it makes" : ": for the calls that it makes nothing new is compiled", out);
        if (run_only && limit_of(why)) { /* torch's words for it are about how it is done */
            fputs(": ", out);
            prose_text(out, limit_of(why), WIDTH);
        } else if (value_of(m->reason)) {
            fputs(": ", out);
            span_print(out, torch_reason_split(m->reason).what, WIDTH * 2);
        } else {
            fputs(!why_turned_away(why) ? ": it was asked to" : why->torch.version ? ": torch did not say why"
                                                                                  : ": the compiler gave no code", out);
        }
        putc('\n', out);
    }
    if (why->marks.count > MARKS_SHOWN)
        fprintf(out, "  (%d of %zu; --json has them all)\n", MARKS_SHOWN, why->marks.count);
}

static void limit_print(struct why *why)
{
    FILE *out = why->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN], c[TABLE_HUMAN];
    const char *limit = limit_of(why);
    int64_t made = 0;

    for (size_t i = 0; i < why->compiles.count; i++)
        made += compile_made(&why->compiles.items[i]);
    for (size_t i = 0; i < why->calls.count; i++) {
        const struct call_class *class = &why->calls.items[i];
        if (class->outcome != OUTCOME_LIMIT)
            continue;
        prose_title(out, "Limit");
        fputs("  ", out);
        if (limit)
            prose_text(out, limit, WIDTH);
        fprintf(out, "%s at %s with %" PRId64 " compile%s; since then %s call%s ran %s, the last at %s.\n",
                !limit ? "Reached" : strstr(limit, "reached") ? "" : ": reached", table_duration(a, class->first_ns),
                made, plural(made), table_count(b, class->calls), plural(class->calls), why_python(why),
                table_duration(c, class->last_ns));
    }
    if ((why->inputs.count || why->forbidders.count) && !why_calls(why, OUTCOME_LIMIT))
        prose_title(out, "Calls that no entry fitted");
    for (size_t i = 0; i < why->forbidders.count && i < INPUTS_SHOWN; i++) {
        const struct forbidder *f = &why->forbidders.items[i];
        fprintf(out, "  %s call%s: within ", table_count(a, f->calls), plural(f->calls));
        prose_text(out, f->function, WIDTH);
        fputs(", for whose calls nothing new is compiled", out);
        if (value_of(f->reason)) {
            fputs(": ", out);
            span_print(out, torch_reason_split(f->reason).what, WIDTH * 2);
        }
        putc('\n', out);
    }
    for (size_t i = 0; i < why->inputs.count && i < INPUTS_SHOWN; i++) {
        fprintf(out, "  inputs of %s call%s: ", table_count(a, why->inputs.items[i].calls), plural(why->inputs.items[i].calls));
        inputs_print(out, why->inputs.items[i].text ? why->inputs.items[i].text : "?");
    }
}

static void guards_print(struct why *why)
{
    FILE *out = why->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN], c[TABLE_HUMAN];

    if (!why->timed_checks && !why->guards.count && !why->guards_slow)
        return;
    prose_title(out, why->guards_slow ? "Guards: slow" : "Guards");
    if (why->timed_checks)
        fprintf(out, "  %s check%s took %s, %s each", table_count(a, why->timed_checks), plural(why->timed_checks),
                table_duration(b, why->check_ns), table_duration(c, why->check_ns / why->timed_checks));
    else if (why->guards_slow)
        fprintf(out, "  %s lookup%s that ended in a hit took %s", table_count(a, why->guard_calls), plural(why->guard_calls),
                table_duration(b, why->guard_ns));
    if (why->timed_checks || why->guards_slow) {
        if (why_guard_share(why) >= 0)
            fprintf(out, "; %s a call, %.2g %% of %s", table_duration(a, why->guard_ns / why->guard_calls), why_guard_share(why),
                    why->share_of_hits ? "a call that hits, with the lookup" : "the time in the function, compiles left aside");
        putc('\n', out);
    }
    for (size_t i = 0; i < why->costs.count && i < GUARDS_SHOWN; i++) {
        const struct guard_cost *g = &why->costs.items[i];
        fprintf(out, "  %s guard%s of kind ", table_count(a, g->guards), plural(g->guards));
        prose_text(out, g->kind, 40);
        if (why->check_ns > 0)
            fprintf(out, ": some %s, %.2g %% of that", table_duration(b, g->ns), 100.0 * (double)g->ns / (double)why->check_ns);
        putc('\n', out);
    }
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

/* The function for the rest after a break, and what it costs: it is called, looked up and compiled on its own. */
static void rest_print(struct why *why, const struct graph_break *b)
{
    const struct rest *rest = b->rest;
    FILE *out = why->out;
    char a[TABLE_HUMAN], c[TABLE_HUMAN];

    fputs("           goes on in ", out);
    torch_name_print(out, b->resume, WIDTH);
    fputs(" (", out);
    prose_text(out, b->resume, WIDTH * 2);
    putc(')', out);
    if (rest && rest->ids) {
        fprintf(out, ": %s call%s", table_count(a, rest->calls), plural(rest->calls));
        if (rest->eager)
            fprintf(out, ", %s of them eagerly", table_count(a, rest->eager));
        if (rest->compiles)
            fprintf(out, ", %" PRId64 " compile%s (%" PRId64 " recompile%s) took %s", rest->compiles, plural(rest->compiles),
                    rest->recompiles, plural(rest->recompiles), table_duration(c, rest->compile_ns));
        if (rest->lookup_ns)
            fprintf(out, ", lookups %s", table_duration(c, rest->lookup_ns));
        if (rest->recompiles || rest->eager) {
            char *function = NULL;
            int64_t line;
            if (torch_resume(b->resume, &function, &line) && function) {
                fputs("; see `dyntrace why ", out);
                prose_text(out, function, WIDTH);
                fprintf(out, "@%" PRId64 "`", line);
            }
            free(function);
        }
    }
    putc('\n', out);
}

static void breaks_print(struct why *why)
{
    FILE *out = why->out;

    if (!why->breaks.count)
        return;
    prose_title(out, "Graph breaks");
    for (size_t i = 0; i < why->breaks.count && i < BREAKS_SHOWN; i++) {
        const struct graph_break *b = &why->breaks.items[i];
        struct torch_reason reason = torch_reason_split(b->reason);
        fprintf(out, "  line %" PRId64 ", %" PRId64 " time%s: ", b->line, b->times, plural(b->times));
        if (!why->torch.version) {
            prose_text(out, b->reason, WIDTH * 2);
            if (b->resume) {
                fputs("; goes on in ", out);
                prose_text(out, b->resume, WIDTH);
            }
            putc('\n', out);
            continue;
        }
        span_print(out, reason.what, WIDTH * 2);
        putc('\n', out);
        if (reason.why.text) {
            fputs("           ", out);
            span_print(out, reason.why, WIDTH * 2);
            putc('\n', out);
        }
        if (value_of(b->stack) && strchr(b->stack, '\n')) /* one line is the break's own */
            prose_lines(out, b->stack, 11, 6);
        if (b->resume)
            rest_print(why, b);
    }
    if (why->breaks.count > BREAKS_SHOWN)
        fprintf(out, "  (%d of %zu)\n", BREAKS_SHOWN, why->breaks.count);
}

/* Where the time of compiles went. A phase's own time is what those within it leave. */
static void phases_print(struct why *why)
{
    FILE *out = why->out;
    char a[TABLE_HUMAN];
    int64_t all = 0, late = 0;
    size_t shown = 0;

    for (size_t i = 0; i < why->phases.count; i++)
        *(why->phases.items[i].late ? &late : &all) += why->phases.items[i].self_ns;
    if (all + late <= 0)
        return;
    prose_title(out, "Where compile time went");
    for (size_t i = 0; i < why->phases.count && shown < PHASES_SHOWN; i++) {
        const struct phase *p = &why->phases.items[i];
        const char *words = torch_phase_words(p->name);
        if (p->self_ns * 100 < all + late) /* less than one percent */
            continue;
        shown++;
        fprintf(out, "%9s %5.1f %%  ", table_duration(a, p->self_ns), 100.0 * (double)p->self_ns / (double)(all + late));
        prose_text(out, p->name, WIDTH);
        if (words)
            fprintf(out, ": %s", words);
        fputs(p->late ? " (later)\n" : "\n", out);
    }
    if (late)
        fprintf(out, "%9s %5.1f %%  of it later and on their own, as backward graphs are\n", table_duration(a, late),
                100.0 * (double)late / (double)(all + late));
}

/* TEXT as one word of a shell. */
static void shell_word(FILE *out, const char *text)
{
    char *made = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&made, &bytes);

    for (; to && *text; text++)
        *text == '\'' ? fputs("'\\''", to) : fputc(*text, to);
    if (to && !fclose(to) && made) {
        putc('\'', out);
        prose_text(out, made, 1000);
        putc('\'', out);
    }
    free(made);
}

/* "4 compiles instead of 9" */
static void instead_print(FILE *out, const char *what, int64_t would, int64_t is)
{
    fprintf(out, would == is ? "still %" PRId64 " %s%s" : "%" PRId64 " %s%s", would, what, plural(would));
    if (would != is)
        fprintf(out, " instead of %" PRId64, is);
}

/* What would come of the remedy, or how to ask. */
static void whatif_print(struct why *why, const struct remedy *r)
{
    FILE *out = why->out;
    bool drops = r->cause && r->settings && !strncmp(r->settings, "drop_guard=", 11);

    if (!r->settings || !(r->predicted || why->long_trace))
        return;
    /* Without that guard alone others would not hold: no figure for the remedy, which mends what they all look at. */
    if (drops && r->predicted && r->would_compile == r->compiles && r->would_eager == r->eager && !r->undecided)
        return;
    fputs("     what-if ", out);
    if (!r->predicted) {
        fputs("takes a while on a trace this long: dyntrace replay ", out);
        shell_word(out, db_path(why->db));
        fputs(" --what-if ", out);
        shell_word(out, r->settings);
        fputs(" --function ", out);
        shell_word(out, why->code.qualname);
        fputs(", or why --what-if\n", out);
        return;
    }
    prose_text(out, r->settings, WIDTH * 2);
    if (drops && r->cause->kind) {
        fputs(" (", out);
        prose_text(out, r->cause->kind, 40);
        putc(' ', out);
        prose_text(out, value_of(r->cause->source) ? r->cause->source : "", WIDTH);
        fputs(" not checked)", out);
    }
    fputs(": ", out);
    instead_print(out, "compile", r->would_compile, r->compiles);
    if (r->eager || r->would_eager) {
        fputs(", ", out);
        instead_print(out, "eager call", r->would_eager, r->eager);
    }
    if (r->gone)
        fprintf(out, ", %" PRId64 " call%s not looked up any more", r->gone, plural(r->gone));
    if (r->unrecorded)
        fprintf(out, ", at least %" PRId64 " call%s of which the trace has nothing", r->unrecorded, plural(r->unrecorded));
    if (r->undecided)
        fprintf(out, "; %" PRId64 " call%s undecided, a guess is counted", r->undecided, plural(r->undecided));
    putc('\n', out);
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
        whatif_print(why, &why->remedies.items[i]);
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

/* ---- the command ----------------------------------------------------------- */

static void tick(void *context)
{
    progress_tick(context, 0, 0);
}

static struct {
    bool sql, json, whatif;
} given;

static const struct option options[] = {
    {"sql", .read = option_flag, .to = &given.sql, .help = "also print the SQL that answers"},
    {"json", .read = option_flag, .to = &given.json, .help = "the same for a program, complete, times in nanoseconds"},
    {"what-if", .read = option_flag, .to = &given.whatif,
     .help = "decide the recorded calls again for each remedy, on a long trace too. One with more than 200,000 lookups or a "
             "million guard checks would make the answer wait, so that only the command to ask for it is printed"},
    OPTION_END,
};

static int why_main(int count, char **operands)
{
    const char *name, *path;
    struct query *snapshot;
    struct why why = {.out = stdout, .sql = given.sql, .json = given.json, .force_whatif = given.whatif};
    int status = 2;

    if (!find_operands("why", count, operands, &name, &path))
        return 2;
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
    doubts_say(why.db, "what is told is what it has so far", NULL); /* losses are in the answer */
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
    if (!why.failed)
        why_whatif(&why);
    db_on_progress(why.db, NULL, NULL);
    progress_end(&why.progress);
    if (why.failed)
        goto out;
    if (why.json) {
        why_json(&why);
    } else {
        head_print(&why);
        calls_print(&why);
        compiles_print(&why);
        histories_print(&why);
        entries_print(&why);
        marks_print(&why);
        limit_print(&why);
        guards_print(&why);
        breaks_print(&why);
        phases_print(&why);
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
    if (db_damaged(why.db))
        status = 2;
    why_free(&why);
    return status;
}

const struct command command_why = {
    .name = "why",
    .summary = "why a function was compiled again, or ran as Python",
    .operands = "FUNC [FILE]",
    .about = "What was decided about the calls of a function, and why: hits, compiles and recompiles with the guard that "
             "failed, calls that ran as Python, entries that died, what would have helped, and how much.\n\n"
             "FUNC is a qualified name, its last part, FILE:LINE, a GLOB, a compile such as 0/1, or FUNC@LINE, the rest of FUNC "
             "after a graph break in that line. FILE is the newest *.db trace here unless given.",
    .options = options,
    .operands_most = 2,
    .too_many = "one function and one trace at a time",
    .run = why_main,
};
