/* trace/why/parent.c -- what a recompile follows from: the same change in a caller, or before the graph break. See
 * trace/why/why.h.
 *
 * Runs in: the viewer.
 *
 * When the size of an input changes, a function is compiled again, and so is what it calls on the other side of a
 * graph break: the resume function, and functions that are compiled on their own. These follow from the first. The
 * calls around a compile are found by its frame's parents; of those, the outermost compile that was needed for the
 * same source or the same change of a value is named. Without stored frames only the function that a resume function
 * belongs to is known: its last compile, if it was not called again since.
 *
 * Callers count in another way as well: one that has reached its limit lets nothing new be compiled for its callees,
 * and torch.compiler.disable on a function is seen from the graph break at its call. */
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "trace/why/why.h"

/* One of COMPILE's causes is the same source, or the same change of a value. */
static bool is_same_change(const struct why *why, const struct compile *compile, const struct cause *other)
{
    for (size_t i = compile->first_cause; i < compile->first_cause + compile->causes && i < why->causes.count; i++) {
        const struct cause *mine = &why->causes.at[i];
        const char *wanted = cause_wanted(mine), *seen = cause_seen(mine);
        if (prose_filled(mine->source) && prose_same(mine->source, other->source) &&
            prose_same(mine->kind, other->kind))
            return true;
        if (wanted && seen && prose_same(wanted, cause_wanted(other)) && prose_same(seen, cause_seen(other)))
            return true;
    }
    return false;
}

/* The first that the statement NAME finds for each recompile. */
static void follow(struct why *why, const char *name)
{
    struct query *query = why_ask(why, name);

    while (query_step(query)) {
        struct compile *compile = list_find(&why->compiles, compile_id, query_integer(query, 0));
        struct cause cause = {0};
        struct parent parent = {0};
        if (!compile || compile->follows_from.compile_id)
            continue;
        if (!why_row(why, query, cause_fields, &cause) || !why_row(why, query, parent_fields, &parent))
            break;
        if (!is_same_change(why, compile, &cause))
            continue;
        parent.source = cause_name(why, &cause);
        parent.expected = cause_wanted(&cause);
        parent.actual = cause_seen(&cause);
        compile->follows_from = parent;
    }
    why_asked(why, query);
}

static void gather_recompiles(struct why *why)
{
    /* While a trace is recorded it has neither frames nor that index. */
    bool frames = db_meta_integer(why->db, "frame_count", 0) > 0;
    bool settled =
        frames || !db_integer(why->db, 0, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'lookup_code')");

    if (!why->causes.count)
        return;
    follow(why, "why/by-frames");
    if (!settled)
        follow(why, "why/by-origin");
}

/* No call was looked up: does a graph break say that somebody disabled the function? */
static void gather_disabled(struct why *why)
{
    struct query *query;

    if (!why->torch.number || why->all_calls <= 0 || why_calls(why, OUTCOME_PLAIN) + why->undecided != why->all_calls)
        return;
    query = why_ask(why, "why/disabled");
    if (query_step(query))
        why_row(why, query, why_fields, why);
    why_asked(why, query);
}

void why_gather_parents(struct why *why)
{
    gather_recompiles(why);
    if (why_calls(why, OUTCOME_RUN_ONLY))
        READ(why, forbidders, "why/forbidders", forbidder_fields);
    gather_disabled(why);
}
