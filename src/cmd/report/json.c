/* cmd/report/json.c -- `dyntrace report --json`: the report for programs.
 *
 * Runs in: the viewer. See cmd/report/report.h. */
#include <math.h>
#include <string.h>

#include "trace/db.h"
#include "lib/json.h"
#include "cmd/report/report.h"
#include "trace/result.h"
#include "lib/table.h"

/* The rows of SQL as a member NAME of an object; ?1 is the limit. A column whose
 * name ends in "argv" is JSON already. */
static bool rows_json(struct report *report, struct json *json, const char *name, const char *sql)
{
    struct query *query = db_query(report->db, sql);
    const char *names[32] = {0};
    struct table *table;
    int columns = query_columns(query);

    if (!query || columns > 32) {
        query_close(query);
        return false;
    }
    for (int i = 0; i < columns; i++)
        names[i] = query_name(query, i);
    json_key(json, name);
    query_bind_integer(query, 1, report->limit);
    table = table_open(report->out, TABLE_JSON, columns, names);
    while (table && query_step(query))
        for (int i = 0; i < columns; i++)
            if (!strcmp(names[i], "argv") && query_type(query, i) == QUERY_TEXT)
                table_json(table, query_whole(query, i, NULL));
            else
                result_cell(table, query, i);
    table_close(table);
    return query_close(query);
}

bool report_json(struct report *report)
{
    struct json *json = &(struct json){.out = report->out};
    struct db *db = report->db;
    struct query *query;
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = report_open_frames(db, frames);
    double hits = report_hit_rate(report), eager = report_eager_share(report);
    bool ok;

    json_object(json, NULL);
    json_lines(json);
    json_string(json, "file", db_path(db));
    if (report->live == LIVE_YES || report->live == LIVE_NO)
        json_bool(json, "live", report->live == LIVE_YES);
    else
        json_null(json, "live");
    json_object(json, "meta");
    query = db_query(db, "SELECT key, CAST(CASE WHEN key = 'command' AND json_valid(value) THEN json(value) ELSE value END AS TEXT),"
                         "       typeof(value) = 'integer' OR (key = 'command' AND json_valid(value)) FROM meta");
    while (query_step(query)) {
        size_t bytes;
        const char *key = query_whole(query, 0, NULL), *text;
        if (query_type(query, 1) != QUERY_NULL && query_integer(query, 2)) {
            text = query_whole(query, 1, &bytes);
            json_raw(json, key, text, bytes);
        } else {
            result_member(json, key, query, 1);
        }
    }
    ok = query_close(query);
    json_end(json);
    json_maybe(json, "frames", frames >= 0, frames);
    json_maybe(json, "open_frames", open >= 0, open);
    json_integer(json, "process_count", db_integer(db, 0, "SELECT COUNT(*) FROM process"));
    json_integer(json, "thread_count", db_integer(db, 0, "SELECT COUNT(*) FROM thread"));
    json_integer(json, "lost_events", db_integer(db, 0, "SELECT SUM(events) FROM loss"));
    ok = rows_json(report, json, "losses", report_losses) && ok;
    ok = rows_json(report, json, "processes", report->torch ? PROCESS_TREE
        "SELECT p.process_id, p.pid, p.parent_process_id, t.depth, p.rank, p.local_rank,"
        "       CASE WHEN json_valid(p.argv) THEN json(p.argv) ELSE json_array(CAST(p.argv AS TEXT)) END AS argv,"
        "       p.executable, p.python_version, p.torch_version, p.mode, p.torch_mode, p.torch_note, p.start_ns, p.end_ns,"
        "       p.exit_code, p.exit_signal FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path LIMIT ?1"
        : PROCESS_TREE
        "SELECT p.process_id, p.pid, p.parent_process_id, t.depth, p.rank,"
        "       CASE WHEN json_valid(p.argv) THEN json(p.argv) ELSE json_array(CAST(p.argv AS TEXT)) END AS argv,"
        "       p.executable, p.python_version, p.torch_version, p.mode, p.start_ns, p.end_ns, p.exit_code, p.exit_signal "
        "FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path LIMIT ?1") && ok;
    ok = rows_json(report, json, "threads",
        "SELECT t.thread_id, t.process_id, p.pid, t.os_tid, t.name FROM thread t "
        "LEFT JOIN process p ON p.process_id = t.process_id ORDER BY t.process_id, t.thread_id LIMIT ?1") && ok;
    if (report->torch)
        ok = rows_json(report, json, "torch", report_torch) && ok;
    if (report->compiles)
        ok = rows_json(report, json, "compiles", report_compiled) && ok;
    if (report->lookups) {
        json_object(json, "outcomes");
        for (int o = 0; o < OUTCOMES; o++) {
            json_object(json, outcome_word(o));
            json_integer(json, "calls", report->outcomes[o]);
            json_integer(json, "lookup_ns", report->times_ns[o]);
            json_end(json);
        }
        json_end(json);
        json_real(json, "hit_rate", hits < 0 ? NAN : hits / 100, 6);
        json_real(json, "eager_share", eager < 0 ? NAN : eager / 100, 6);
        ok = rows_json(report, json, "recompile_causes", report_causes) && ok;
        ok = rows_json(report, json, "recompiles", report_recompiles) && ok;
        ok = rows_json(report, json, "graph_breaks", report_breaks) && ok;
        ok = rows_json(report, json, "limits_reached", report_reached) && ok;
        ok = rows_json(report, json, "guard_bill", report_guards) && ok;
    }
    ok = rows_json(report, json, "hot_functions", report_hot) && ok;
    json_end(json);
    putc('\n', report->out);
    return ok;
}
