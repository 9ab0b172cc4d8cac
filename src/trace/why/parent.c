/* trace/why/parent.c -- what a recompile follows from: the same change in a caller, or before the graph break. See trace/why/why.h.
 *
 * Runs in: the viewer.
 *
 * When the size of an input changes, a function is compiled again, and so is what it calls on the other side of a graph
 * break: the function for the rest, and functions that are compiled on their own. These follow from the first. The calls
 * around a compile are found by its frame's parents; of those, the outermost compile that was needed for the same source
 * or the same change of a value is told. Without stored frames only the function that a rest belongs to is known: its
 * last compile, if it was not called again since.
 *
 * Callers count in another way as well: one that has reached its limit lets nothing new be compiled for its callees, and
 * torch.compiler.disable on a function is told by the graph break at its call. */
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "trace/why/why.h"

/* What comes of either search: of which compile it is, then m, the compile around it, its code c, and a cause r. */
#define FOUND "SELECT of.compile_id, m.compile_id, c.qualname, m.label, " CAUSE_COLUMNS "\n"
#define CAUSES "JOIN recompile_cause r ON r.compile_id = m.compile_id LEFT JOIN code c ON c.code_id = m.code_id\n"
#define FIRST "COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.rowid LIMIT 20000"
#define RECOMPILES "SELECT * FROM compile WHERE code_id IN ($codes) AND compile_id IN (SELECT compile_id FROM recompile_cause)\n" \
                   "    ORDER BY compile_id LIMIT 500"

static const char by_frames[] =
    "WITH RECURSIVE up(compile_id, code_id, frame_id, depth) AS (\n"
    "    SELECT o.compile_id, o.code_id, f.parent_id, 1 FROM (" RECOMPILES ") o\n"
    "    CROSS JOIN frame f ON f.frame_id = o.frame_id WHERE f.parent_id < f.frame_id\n"
    "    UNION ALL SELECT compile_id, up.code_id, f.parent_id, depth + 1 FROM up CROSS JOIN frame f ON f.frame_id = up.frame_id\n"
    "    WHERE depth < 200 AND f.parent_id < f.frame_id)\n"
    FOUND "FROM up of CROSS JOIN compile m ON m.frame_id = of.frame_id " CAUSES
    "WHERE m.code_id <> of.code_id AND m.compile_id < of.compile_id ORDER BY of.compile_id, of.depth DESC, m.compile_id, " FIRST;
static const char by_origin[] =
    FOUND "FROM (" RECOMPILES ") of CROSS JOIN code o ON o.code_id = of.code_id\n"
    "CROSS JOIN compile m ON m.code_id = o.origin_code_id " CAUSES
    "WHERE m.compile_id = (SELECT MAX(p.compile_id) FROM compile p WHERE p.code_id = o.origin_code_id\n"
    "                      AND p.thread_id = of.thread_id AND p.end_ns <= of.start_ns)\n"
    "AND NOT EXISTS (SELECT 1 FROM lookup l WHERE l.code_id = m.code_id AND l.thread_id = m.thread_id\n"
    "                AND l.start_ns > m.end_ns AND l.start_ns < of.start_ns)\n"
    "ORDER BY of.compile_id, " FIRST;

/* One of COMPILE's causes is the same source, or the same change of a value. */
static bool is_same_change(const struct why *why, const struct compile *compile, const struct cause *other)
{
    for (size_t i = compile->first_cause; i < compile->first_cause + compile->causes && i < why->causes.count; i++) {
        const struct cause *mine = &why->causes.items[i];
        const char *wanted = cause_wanted(mine), *seen = cause_seen(mine);
        if (mine->source && *mine->source && prose_same(mine->source, other->source) && prose_same(mine->kind, other->kind))
            return true;
        if (wanted && seen && prose_same(wanted, cause_wanted(other)) && prose_same(seen, cause_seen(other)))
            return true;
    }
    return false;
}

/* The first that QUERY finds for each recompile. */
static void follow(struct why *why, struct query *query)
{
    while (query_step(query)) {
        struct compile *compile = why_compile(why, query_integer(query, 0));
        struct cause cause;
        if (!compile || compile->parent.compile_id)
            continue;
        cause = cause_read(query, 4);
        if (is_same_change(why, compile, &cause)) {
            char *about = cause_about(&cause), *part = cause_part(&cause), *source = NULL;
            const char *wanted = cause_wanted(&cause), *seen = cause_seen(&cause);
            if (asprintf(&source, "%s%s%s", about ? about : "?", part ? " " : "", part ? part : "") < 0)
                source = NULL;
            compile->parent = (struct parent){
                .compile_id = query_integer(query, 1), .function = prose_column(query, 2), .label = prose_column(query, 3),
                .source = source, .wanted = wanted ? strdup(wanted) : NULL, .seen = seen ? strdup(seen) : NULL};
            free(about), free(part);
        }
        cause_free(&cause);
    }
    why_asked(why, query);
}

static void gather_recompiles(struct why *why)
{
    bool settled = db_meta_integer(why->db, "frame_count", 0) > 0;

    if (!why->causes.count)
        return;
    /* While a trace is recorded it has neither frames nor that index. */
    settled = settled || !db_integer(why->db, 0, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'lookup_code')");
    follow(why, why_ask(why, "the same change in calls around a recompile", by_frames));
    if (!settled)
        follow(why, why_ask(why, "the same change before the graph break", by_origin));
}

/* Callers that have reached their limit, of calls that were not compiled. */
static void gather_forbidders(struct why *why)
{
    struct query *query;
    struct forbidder *forbidder;

    if (!why_calls(why, OUTCOME_RUN_ONLY) || !find_column(why->db, "code_mark", "recursive_action"))
        return;
    query = why_ask(why, "callers for whose sake its calls were not compiled",
        "WITH RECURSIVE up(call, frame_id, depth) AS (\n"
        "    SELECT * FROM (SELECT frame_id AS call, frame_id, 0 FROM lookup WHERE outcome = 3 AND code_id IN ($codes) LIMIT 100)\n"
        "    UNION ALL SELECT call, f.parent_id, depth + 1 FROM up CROSS JOIN frame f ON f.frame_id = up.frame_id\n"
        "    WHERE depth < 200 AND f.parent_id < f.frame_id)\n"
        "SELECT c.qualname, substr(COALESCE((SELECT m.reason FROM compile m WHERE m.code_id = k.code_id AND m.outcome = 'limit'),\n"
        "                                   k.reason), 1, 2000) AS why, COUNT(DISTINCT up.call)\n"
        "FROM up CROSS JOIN frame f ON f.frame_id = up.frame_id CROSS JOIN code_mark k ON k.code_id = f.code_id\n"
        "JOIN code c ON c.code_id = f.code_id\n"
        "WHERE up.depth > 0 AND k.recursive_action = 'run_only' AND k.at_ns <= COALESCE(f.end_ns, k.at_ns)\n"
        "GROUP BY c.qualname, why ORDER BY COUNT(*) DESC, c.qualname LIMIT 10");
    while (query_step(query) && (forbidder = ADD(why, forbidders))) {
        forbidder->function = prose_column(query, 0);
        forbidder->reason = prose_column(query, 1);
        forbidder->calls = query_integer(query, 2);
        if (!forbidder->function)
            forbidder->function = strdup("?");
    }
    why_asked(why, query);
}

/* No call was looked up: does a graph break say that somebody disabled the function? */
static void gather_disabled(struct why *why)
{
    struct query *query;

    if (!why->torch.version || why->all_calls <= 0 || why_calls(why, OUTCOME_PLAIN) + why->undecided != why->all_calls)
        return;
    query = why_ask(why, "graph breaks that speak of it",
        "SELECT c.qualname, b.line, substr(b.reason, 1, 400) FROM graph_break b\n"
        "JOIN (SELECT DISTINCT qualname FROM code WHERE code_id IN ($codes)) n ON instr(b.reason, '<function ' || n.qualname || ' at ')\n"
        "LEFT JOIN code c ON c.code_id = b.code_id WHERE b.reason LIKE '%disable%' ORDER BY b.graph_break_id LIMIT 1");
    if (query_step(query)) {
        why->disabled_by = prose_column(query, 0);
        why->disabled_line = query_integer(query, 1);
        why->disabled_words = prose_column(query, 2);
    }
    why_asked(why, query);
}

void why_gather_parents(struct why *why)
{
    gather_recompiles(why);
    gather_forbidders(why);
    gather_disabled(why);
}
