/* tui/views/guards.c -- the views `guards`, what guards cost by kind and source, and `checks`, each time that an entry's
 * guards were run.
 *
 * Runs in: the viewer. */
#include "tui/list.h"

/* Checks that ended alike are counted first: a row per guard of each check, as the view guard_evaluation has it, would be
 * far more. A guard ran in those checks that got as far as its place in the order of that moment. */
static const char guards_sql[] =
    "WITH ended AS MATERIALIZED ("
    "  SELECT k.cache_entry_id, k.guards_run, k.failed_guard_id, k.result,"
    "         CASE WHEN k.cache_entry_id IN (SELECT cache_entry_id FROM guard_order) THEN"
    "           (SELECT w.rowid FROM guard_order w WHERE w.cache_entry_id = k.cache_entry_id"
    "             AND w.from_ns <= (SELECT l.start_ns FROM lookup l WHERE l.lookup_id = k.lookup_id)"
    "            ORDER BY w.from_ns DESC, w.rowid DESC LIMIT 1) END AS orders,"
    "         COUNT(*) AS n, SUM(k.duration_ns * 1.0 / NULLIF(k.guards_run, 0)) AS share"
    "  FROM guard_check k GROUP BY 1, 2, 3, 4, 5) "
    "SELECT MIN(g.guard_id) AS guard_id, g.kind AS kind, g.source AS source, COUNT(DISTINCT g.cache_entry_id) AS entries,"
    " SUM(d.n) AS evaluations, SUM(CASE WHEN g.guard_id = d.failed_guard_id AND d.result <> 'pass' THEN d.n ELSE 0 END) AS failures,"
    " CAST(SUM(d.share) AS INTEGER) AS \"time (est.)\", MIN(g.expression) AS expression "
    "FROM ended d CROSS JOIN guard g ON g.cache_entry_id = d.cache_entry_id LEFT JOIN guard_order o ON o.rowid = d.orders "
    "WHERE g.guard_id = d.failed_guard_id"
    "   OR COALESCE((SELECT j.key FROM json_each(CASE WHEN json_valid(o.ordinals) THEN o.ordinals ELSE '[]' END) j"
    "                WHERE j.value = g.ordinal), g.ordinal) < d.guards_run "
    "GROUP BY g.kind, g.source ORDER BY SUM(d.share) DESC, 1";

/* What can be said at once: which guards there are. */
static const char guards_quick[] =
    "SELECT MIN(guard_id) AS guard_id, kind, source, COUNT(DISTINCT cache_entry_id) AS entries, NULL AS evaluations, NULL AS failures,"
    " NULL AS \"time (est.)\", MIN(expression) AS expression FROM guard GROUP BY kind, source ORDER BY COUNT(*) DESC, 1";

#define ALIKE "FROM guard g JOIN guard one ON one.guard_id = %lld AND g.kind IS one.kind AND g.source IS one.source"

static const struct list_column guards_columns[] = {
    {"guard_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"kind", AS_TEXT, 14, VIEW_NONE, NULL, NULL},
    {"source", AS_TEXT, 20, VIEW_NONE, NULL, NULL},
    {"entries", AS_COUNT, 0, VIEW_ENTRIES, "cache_entry_id IN (SELECT g.cache_entry_id " ALIKE ")", NULL},
    {"evaluations", AS_COUNT, 0, VIEW_CHECKS, "cache_entry_id IN (SELECT g.cache_entry_id " ALIKE ")", NULL},
    {"failures", AS_ALARM_COUNT, 0, VIEW_CHECKS, "failed_guard_id IN (SELECT g.guard_id " ALIKE ")", NULL},
    {"time (est.)", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"expression", AS_TEXT, 24, VIEW_NONE, NULL, NULL},
};

static const struct list_spec guards_spec = {
    .sql = guards_sql, .quick = guards_quick, .columns = guards_columns, .column_count = LENGTH(guards_columns), .row = VIEW_CHECKS,
    .row_where = "failed_guard_id IN (SELECT g.guard_id " ALIKE ")", .empty = "no guard was recorded", .slow = true, .title_column = 2,
};

static bool guards_open(struct view *view)
{
    return list_open((struct list *)view, &guards_spec);
}

const struct view_ops view_guards = {
    .name = "guards", .summary = "what guards cost, by kind and source; Enter: where they failed", .open = guards_open, LIST_OPS,
};

/* ---- checks ---------------------------------------------------------------- */

static const char checks_sql[] =
    "SELECT k.guard_check_id, l.start_ns AS at, k.result AS result, c.qualname AS function, e.label AS entry, k.position AS position,"
    " k.guards_run AS ran, k.duration_ns AS time, g.kind AS kind, COALESCE(NULLIF(g.expression, ''), g.source) AS failed, k.lookup_id AS lookup_id,"
    " k.cache_entry_id AS cache_entry_id, k.failed_guard_id AS failed_guard_id, l.code_id AS code_id "
    "FROM guard_check k LEFT JOIN lookup l ON l.lookup_id = k.lookup_id LEFT JOIN code c ON c.code_id = l.code_id"
    " LEFT JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id LEFT JOIN guard g ON g.guard_id = k.failed_guard_id";

static const struct list_column checks_columns[] = {
    {"guard_check_id", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"at", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"result", AS_OUTCOME, 6, VIEW_NONE, NULL, NULL},
    {"function", AS_TEXT, 12, VIEW_FUNCTION, NULL, "code_id"},
    {"entry", AS_TEXT, 4, VIEW_ENTRY, NULL, "cache_entry_id"},
    {"position", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"ran", AS_COUNT, 0, VIEW_NONE, NULL, NULL},
    {"time", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"kind", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"failed", AS_TEXT, 16, VIEW_NONE, NULL, NULL},
    {"lookup_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"cache_entry_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"failed_guard_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
};

static const struct list_spec checks_spec = {
    .sql = checks_sql, .key = "guard_check_id", .columns = checks_columns, .column_count = LENGTH(checks_columns), .sort = "guard_check_id",
    .row = VIEW_CALL, .row_id = "lookup_id", .empty = "no check was recorded", .title_column = 9,
};

static bool checks_open(struct view *view)
{
    return list_open((struct list *)view, &checks_spec);
}

static void checks_subject(struct view *view, struct target *subject)
{
    const struct value *lookup = list_value((struct list *)view, "lookup_id"), *at = list_value((struct list *)view, "at");

    *subject = target_make(VIEW_CALL, lookup ? lookup->integer : 0, NULL, NULL);
    subject->at_ns = at ? at->integer : 0;
}

const struct view_ops view_checks = {
    .name = "checks", .summary = "each time that an entry's guards were run", .open = checks_open, .subject = checks_subject, LIST_OPS,
};
