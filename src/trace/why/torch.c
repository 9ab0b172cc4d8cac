/* trace/why/torch.c -- what is known of how torch compiled a function: versions and modes, breaks and what they cost,
 * phases, marks. Other compilers have graph breaks as well.
 *
 * Runs in: the viewer. See trace/why/why.h.
 *
 * Resume functions, which run what comes after a graph break, are functions of their own, with calls, compiles and
 * guards. A code object is made for each break of each compile, so their figures are sums over those that agree in
 * name, file and line. */
#include <stdlib.h>
#include <string.h>

#include "lib/say.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "trace/why/why.h"

enum {
    PHASE_NAMES = 500, /* others are summed up in the last */
    PHASE_DEPTH = 64,  /* deeper ones count as the one that they lie in */
    BREAKS_KEPT = 1000,
    IDS_BYTES = 1 << 14,
};
static const int64_t PHASE_LONGEST = (int64_t)1 << 45; /* ten hours; more is not believed, so that sums stay numbers */

/* ---- which torch ----------------------------------------------------------- */

static void gather_processes(struct why *why)
{
    struct query *query = why_ask(why, "why/processes");
    struct torch_facts *torch = &why->torch, row;

    while (query_step(query)) {
        row = *torch;
        if (!why_row(why, query, torch_fields, &row))
            break;
        row.number = torch_version(row.version);
        torch->observed = torch->observed || prose_same(row.mode, "observe");
        torch->off = torch->off || prose_same(row.mode, "off");
        if (!row.number)
            continue;
        torch->versions += !prose_same(row.version, torch->version);
        torch->modes += !prose_same(row.mode, torch->mode);
        if (!torch->number || row.number < torch->number) {
            torch->number = row.number;
            torch->version = row.version;
            torch->mode = row.mode;
            torch->note = row.note;
        }
    }
    why_asked(why, query);
}

/* ---- graph breaks ---------------------------------------------------------- */

static const struct rest no_rest = {.rest_calls = UNKNOWN,
                                    .rest_eager_calls = UNKNOWN,
                                    .rest_compiles = UNKNOWN,
                                    .rest_entries = UNKNOWN,
                                    .rest_recompiles = UNKNOWN,
                                    .rest_compile_ns = UNKNOWN,
                                    .rest_lookup_ns = UNKNOWN};

static int break_more(const void *a, const void *b)
{
    const struct graph_break *x = a, *y = b;

    if (x->times != y->times)
        return x->times < y->times ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

/* Graph breaks, those alike as one. */
static void gather_breaks(struct why *why)
{
    struct query *query = why_ask(why, "why/breaks");

    while (query_step(query)) {
        struct graph_break row = {.rest = no_rest}, *b = why->breaks.at, *end = b + why->breaks.count;
        if (!why_row(why, query, break_fields, &row) || !why_row(why, query, rest_fields, &row.rest))
            break;
        while (b < end && !(b->line == row.line && torch_reason_same(b->reason, row.reason)))
            b++;
        if (b == end) {
            if (why->breaks.count == BREAKS_KEPT || !(b = ADD(why, breaks)))
                continue;
            *b = row;
        } else if (!b->rest.resume_function) { /* an analysis that starts anew has none yet */
            b->rest = row.rest;
        }
        b->times++;
    }
    why_asked(why, query);
    if (why->breaks.count)
        qsort(why->breaks.at, why->breaks.count, sizeof *why->breaks.at, break_more);
}

/* Calls and compiles of the resume functions. */
static void gather_rests(struct why *why)
{
    struct query *query = why->breaks.count ? why_ask(why, "why/rests") : NULL;
    struct rest rest;

    while (query_step(query) && why_row(why, query, rest_fields, &rest))
        for (size_t i = 0; i < why->breaks.count; i++) {
            struct rest *of = &why->breaks.at[i].rest;
            if (prose_same(of->resume_function, rest.resume_function) && prose_same(of->filename, rest.filename) &&
                of->first_line == rest.first_line)
                *of = rest;
        }
    if (query)
        why_asked(why, query);
}

/* ---- phases ---------------------------------------------------------------- */

static struct phase *phase_of(struct why *why, const char *name, bool late)
{
    size_t length = torch_phase_length(name);
    struct phase *phase;

    for (size_t i = 0; i < why->phases.count; i++) {
        phase = &why->phases.at[i];
        if (phase->late == late && !strncmp(phase->name, name, length) && !phase->name[length])
            return phase;
    }
    if (why->phases.count == PHASE_NAMES)
        return &why->phases.at[PHASE_NAMES - 1];
    if ((phase = ADD(why, phases))) {
        phase->late = late;
        phase->name = why_added(why, arena_text(&why->arena, name, length));
    }
    return phase && phase->name ? phase : NULL;
}

static int phase_longer(const void *a, const void *b)
{
    const struct phase *x = a, *y = b;

    if (x->self_ns != y->self_ns)
        return x->self_ns < y->self_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Phases lie within one another: what one took by itself is what those within leave. The rows come by compile and
 * start, a longer one before those that it holds. */
static void phases_read(struct why *why, struct query *query, bool late)
{
    struct { int64_t end; size_t phase; } open[PHASE_DEPTH];
    int64_t compile = -1;
    int depth = 0;

    while (query_step(query)) {
        int64_t id = query_integer(query, 0), start = query_integer(query, 2), end = query_integer(query, 3);
        struct phase *phase = phase_of(why, query_text(query, 1, NULL), late);
        if (!phase)
            return;
        if (id != compile)
            depth = 0;
        compile = id;
        if (start < 0 || end < start)
            start = end = 0;
        else if (end - start > PHASE_LONGEST)
            end = start + PHASE_LONGEST;
        while (depth > 0 && open[depth - 1].end <= start)
            depth--;
        phase->times++;
        phase->total_ns += end - start;
        phase->self_ns += end - start;
        if (depth > 0) { /* as much of it as lies within */
            struct phase *around = &why->phases.at[open[depth - 1].phase];
            around->self_ns -= (end < open[depth - 1].end ? end : open[depth - 1].end) - start;
            if (around->self_ns < 0)
                around->self_ns = 0;
        }
        if (depth < PHASE_DEPTH) {
            open[depth].end = end;
            open[depth++].phase = (size_t)(phase - why->phases.at);
        }
    }
}

/* Where the time of compiles went: their own phases, then what was compiled later. */
static void gather_phases(struct why *why)
{
    for (int late = 0; late < 2; late++) {
        struct query *query = why_ask(why, late ? "why/late" : "why/phases");
        phases_read(why, query, late);
        why_asked(why, query);
    }
    if (why->phases.count && !why->failed)
        qsort(why->phases.at, why->phases.count, sizeof *why->phases.at, phase_longer);
}

void why_gather_torch(struct why *why)
{
    gather_processes(why);
    if (why->compiles.count) {
        READ(why, ranks, "why/ranks", rank_fields);
        gather_breaks(why);
        gather_rests(why);
        gather_phases(why);
    }
    READ(why, marks, "why/marks", mark_fields);
}
