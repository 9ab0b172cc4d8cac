/* tui/views/functions.c -- the view `functions`: what each of them did and cost.
 *
 * Runs in: the viewer. A function that ran in several processes is one row. */
#include "tui/list.h"

/* What is known without reading the lookups. */
#define PARTS \
    "made AS MATERIALIZED (SELECT code_id, COUNT(cache_entry_id) AS made, SUM(end_ns - start_ns) AS ns FROM compile GROUP BY code_id)," \
    " broken AS MATERIALIZED (SELECT m.code_id, COUNT(*) AS n FROM graph_break b CROSS JOIN compile m ON m.compile_id = b.compile_id" \
    "  GROUP BY m.code_id)," \
    " entered AS MATERIALIZED (SELECT code_id, COUNT(*) AS n FROM cache_entry GROUP BY code_id)"

#define HEAD "SELECT MIN(c.code_id) AS code_id, c.qualname AS function, SUM(n.calls) AS calls,"
#define MIDDLE \
    " MAX(COALESCE(SUM(m.made), 0) - COUNT(NULLIF(m.made, 0)), 0) AS recompiles, COALESCE(SUM(b.n), 0) AS breaks," \
    " COALESCE(SUM(e.n), 0) AS entries,"
#define TAIL \
    " SUM(m.ns) AS compiling, SUM(n.self_ns) AS self, SUM(n.total_ns) AS total,"
#define PLACE \
    " c.filename || ':' || c.first_line AS \"where\", c.kind AS kind "
#define JOINS \
    "FROM code c LEFT JOIN code_total n ON n.code_id = c.code_id LEFT JOIN made m ON m.code_id = c.code_id" \
    " LEFT JOIN broken b ON b.code_id = c.code_id LEFT JOIN entered e ON e.code_id = c.code_id"
#define GROUPED " GROUP BY c.filename, c.qualname, c.first_line, c.kind"

static const char functions_quick[] =
    "WITH " PARTS " " HEAD " NULL AS hits, NULL AS misses," MIDDLE " NULL AS guards," TAIL " NULL AS \"over time\"," PLACE
    JOINS GROUPED " ORDER BY recompiles DESC, breaks DESC, entries DESC, self DESC, 1";

static const char functions_sql[] =
    "WITH " PARTS ","
    " span AS (SELECT MAX(1, COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'span_ns'),"
    "  (SELECT start_ns FROM lookup ORDER BY lookup_id DESC LIMIT 1), 1)) AS ns),"
    " asked AS MATERIALIZED (SELECT code_id, outcome, CAST(start_ns * 23.999 / (SELECT ns FROM span) AS INTEGER) AS bucket, COUNT(*) AS n"
    "  FROM lookup GROUP BY 1, 2, 3),"
    " decided AS MATERIALIZED (SELECT code_id, SUM(n * (outcome = 1)) AS hits, SUM(n * (outcome NOT IN (0, 1, 4, 7))) AS misses,"
    "  group_concat(bucket || ':' || n) AS wave FROM asked GROUP BY code_id),"
    " checked AS MATERIALIZED (SELECT e.code_id, SUM(k.ns) AS ns FROM (SELECT cache_entry_id, SUM(duration_ns) AS ns FROM guard_check"
    "  GROUP BY cache_entry_id) k CROSS JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id GROUP BY e.code_id) "
    HEAD " SUM(d.hits) AS hits, SUM(d.misses) AS misses," MIDDLE " SUM(k.ns) AS guards," TAIL " group_concat(d.wave) AS \"over time\"," PLACE
    JOINS " LEFT JOIN decided d ON d.code_id = c.code_id LEFT JOIN checked k ON k.code_id = c.code_id" GROUPED
    " ORDER BY recompiles DESC, breaks DESC, hits + misses DESC, entries DESC, self DESC, 1";

#define LOOKED_UP "code_id IN " SAME_FUNCTION

static const struct list_column functions_columns[] = {
    {"code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"function", AS_TEXT, 24, VIEW_NONE, NULL, NULL},
    {"calls", AS_COUNT, 0, VIEW_SQL, FRAMES_OF(SAME_FUNCTION), NULL},
    {"hits", AS_COUNT, 0, VIEW_LEDGER, "outcome = 'hit' AND " LOOKED_UP, NULL},
    {"misses", AS_COUNT, 0, VIEW_LEDGER, "outcome NOT IN ('plain', 'hit', 'skip', 'disabled') AND " LOOKED_UP, NULL},
    {"recompiles", AS_ALARM_COUNT, 0, VIEW_CAUSES, LOOKED_UP, NULL},
    {"breaks", AS_ALARM_COUNT, 0, VIEW_BREAKS, LOOKED_UP, NULL},
    {"entries", AS_COUNT, 0, VIEW_ENTRIES, LOOKED_UP, NULL},
    {"guards", AS_DURATION, 0, VIEW_CHECKS, LOOKED_UP, NULL},
    {"compiling", AS_DURATION, 0, VIEW_COMPILES, LOOKED_UP, NULL},
    {"self", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"total", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"over time", AS_SPARK, 24, VIEW_TIMELINE, NULL, NULL},
    {"where", AS_PATH, 16, VIEW_NONE, NULL, NULL},
    {"kind", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
};

static const struct list_spec functions_spec = {
    .sql = functions_sql, .quick = functions_quick, .columns = functions_columns, .column_count = LENGTH(functions_columns),
    .row = VIEW_FUNCTION, .empty = "no function was recorded", .slow = true, .title_column = 1,
};

static bool functions_open(struct view *view)
{
    return list_open((struct list *)view, &functions_spec);
}

/* The chosen row's code id. */
static void functions_subject(struct view *view, struct target *subject)
{
    *subject = target_make(VIEW_FUNCTION, list_id((struct list *)view), NULL, NULL);
}

static bool functions_place(struct view *view, char **file, int64_t *line)
{
    return list_place((struct list *)view, "where", file, line);
}

const struct view_ops view_functions = {
    .name = "functions", .summary = "what each function did and cost", .open = functions_open, .subject = functions_subject,
    .place = functions_place, LIST_OPS,
};
