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
        why_row(why, query, torch_fields, &row);
        row.number = torch_version(row.version);
        torch->observed = torch->observed || prose_same(row.mode, "observe");
        if (!row.number)
            continue;
        torch->versions += !prose_same(row.version, torch->version);
        torch->modes += !prose_same(row.mode, torch->mode);
        if (torch->number && row.number >= torch->number)
            continue;
        torch->number = row.number;
        torch->version = row.version;
        torch->mode = row.mode;
        torch->note = row.note;
    }
    query_close(query);
}

/* ---- graph breaks ---------------------------------------------------------- */

static int break_more(const void *a, const void *b)
{
    const struct graph_break *x = a, *y = b;

    return list_order(y->times, x->times) ?: list_order(x->line, y->line);
}

/* Graph breaks, those alike as one. */
static void gather_breaks(struct why *why)
{
    struct query *query = why_ask(why, "why/breaks");

    while (query_step(query)) {
        struct graph_break row = {0}, *b = why->breaks.at, *end = b + why->breaks.count;
        why_row(why, query, break_fields, &row);
        while (b < end && !(b->line == row.line && torch_reason_same(b->reason, row.reason)))
            b++;
        if (b == end && why->breaks.count == BREAKS_KEPT)
            continue;
        if (b == end)
            b = list_add(&why->breaks);
        row.times = b->times + 1;
        if (!b->resume_function) /* an analysis that starts anew has none yet */
            *b = row;
        b->times = row.times;
    }
    query_close(query);
    list_sort(&why->breaks, break_more);
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
    phase = list_add(&why->phases);
    phase->late = late;
    phase->name = arena_text(&why->arena, name, length);
    return phase;
}

static int phase_longer(const void *a, const void *b)
{
    const struct phase *x = a, *y = b;

    return list_order(y->self_ns, x->self_ns) ?: strcmp(x->name, y->name);
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
        query_close(query);
    }
    list_sort(&why->phases, phase_longer);
}

void why_gather_torch(struct why *why)
{
    gather_processes(why);
    if (why->compiles.count) {
        READ(why, ranks, "why/ranks", rank_fields);
        if (db_integer(why->db, 0, "SELECT EXISTS (SELECT 1 FROM graph_break)"))
            gather_breaks(why);
        gather_phases(why);
    }
    READ(why, marks, "why/marks", mark_fields);
}
