/* tui/views/processes.c -- the views `processes` and `losses`.
 *
 * Runs in: the viewer. */
#include "tui/list.h"

/* In the order of a tree, children under their parents. */
static const char processes_sql[] =
    "WITH RECURSIVE tree(process_id, depth, path) AS ("
    "  SELECT process_id, 0, printf('%020d', process_id) FROM process"
    "  WHERE parent_process_id IS NULL OR parent_process_id = process_id"
    "     OR parent_process_id NOT IN (SELECT process_id FROM process)"
    "  UNION ALL"
    "  SELECT p.process_id, depth + 1, path || printf('%020d', p.process_id)"
    "  FROM tree CROSS JOIN process p ON p.parent_process_id = tree.process_id"
    "  WHERE depth < 60 AND p.process_id <> tree.process_id) "
    "SELECT t.process_id, substr('                                                            ', 1, t.depth * 2) || p.pid AS pid, p.rank AS rank,"
    " CASE WHEN p.exit_signal IS NOT NULL THEN 'signal ' || p.exit_signal WHEN p.exit_code IS NOT NULL THEN 'exit ' || p.exit_code"
    "      WHEN p.end_ns IS NOT NULL THEN 'ended' ELSE 'no end seen' END AS ended,"
    " p.end_ns - p.start_ns AS ran, (SELECT COUNT(*) FROM thread h WHERE h.process_id = p.process_id) AS threads,"
    " p.start_ns AS started, p.python_version AS python, p.torch_version AS torch, p.mode AS mode,"
    " CASE WHEN json_valid(p.argv) THEN (SELECT group_concat(value, ' ') FROM json_each(CASE WHEN json_valid(p.argv) THEN p.argv ELSE '[]' END))"
    "      ELSE p.argv END AS command "
    "FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path";

static const struct list_column processes_columns[] = {
    {"process_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"pid", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"rank", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"ended", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"ran", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"threads", AS_COUNT, 0, VIEW_TIMELINE, NULL, NULL},
    {"started", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"python", AS_TEXT, 7, VIEW_NONE, NULL, NULL},
    {"torch", AS_TEXT, 6, VIEW_NONE, NULL, NULL},
    {"mode", AS_TEXT, 5, VIEW_NONE, NULL, NULL},
    {"command", AS_TEXT, 20, VIEW_NONE, NULL, NULL},
};

static const struct list_spec processes_spec = {
    .sql = processes_sql, .columns = processes_columns, .column_count = LENGTH(processes_columns), .row = VIEW_LEDGER,
    .row_where = "process_id = %lld", .empty = "no process was recorded", .title_column = 1,
};

static bool processes_open(struct view *view)
{
    return list_open((struct list *)view, &processes_spec);
}

const struct view_ops view_processes = {
    .name = "processes", .summary = "the processes that were followed, as a tree; Enter: its calls", .open = processes_open, LIST_OPS,
};

static const char losses_sql[] =
    "SELECT l.rowid AS id, l.at_ns AS at, l.events AS events, p.pid AS pid, t.name AS thread, l.cause AS cause, l.process_id AS process_id "
    "FROM loss l LEFT JOIN process p ON p.process_id = l.process_id LEFT JOIN thread t ON t.thread_id = l.thread_id "
    "ORDER BY l.cause LIKE 'stall:%', l.at_ns, 1";

static const struct list_column losses_columns[] = {
    {"id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"at", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"events", AS_ALARM_COUNT, 0, VIEW_NONE, NULL, NULL},
    {"pid", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"thread", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"cause", AS_TEXT, 20, VIEW_NONE, NULL, NULL},
    {"process_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
};

static const struct list_spec losses_spec = {
    .sql = losses_sql, .columns = losses_columns, .column_count = LENGTH(losses_columns), .row = VIEW_PROCESSES, .row_where = "1",
    .empty = "nothing is missing, and the program never waited for the recorder", .title_column = 5,
};

static bool losses_open(struct view *view)
{
    return list_open((struct list *)view, &losses_spec);
}

const struct view_ops view_losses = {.name = "losses", .summary = "what is missing from the trace, and why", .open = losses_open, LIST_OPS};
