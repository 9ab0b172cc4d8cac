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
#include "schema.h"

/* The rows of a statement as a member NAME. A column that is called argv is JSON already, one called given is left
 * out. */
static bool rows_json(struct report *report, struct json *json, const char *name, const char *statement)
{
    struct query *query = db_query(report->db, schema_statement(statement));
    const char *names[32] = {0};
    struct table *table;
    int columns = query_columns(query);

    if (!query || columns > 32) {
        query_close(query);
        return false;
    }
    columns -= !strcmp(query_name(query, columns - 1), "given");
    for (int i = 0; i < columns; i++)
        names[i] = query_name(query, i);
    json_key(json, name);
    table = table_open(report->out, TABLE_JSON, columns, names);
    for (int64_t row = 0; table && row != report->limit && query_step(query); row++)
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
    double hits = report_percent(report, report->sums.hits), eager = report_percent(report, report->sums.python);
    bool ok;

    json_object(json, NULL);
    json_lines(json);
    json_string(json, "file", db_path(db));
    if (report->live == LIVE_YES || report->live == LIVE_NO)
        json_bool(json, "live", report->live == LIVE_YES);
    else
        json_null(json, "live");
    json_object(json, "meta");
    query = db_query(db, schema_statement("report/meta"));
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
    ok = rows_json(report, json, "losses", "report/losses") && ok;
    ok = rows_json(report, json, "processes", "report/processes") && ok;
    ok = rows_json(report, json, "threads", "report/threads") && ok;
    ok = rows_json(report, json, "torch", "report/torch") && ok;
    ok = rows_json(report, json, "compiles", "report/compiles") && ok;
    json_object(json, "outcomes");
    for (int o = 0; o < OUTCOMES; o++) {
        json_object(json, outcome_word(o));
        json_integer(json, "calls", report->calls[o]);
        json_integer(json, "lookup_ns", report->times_ns[o]);
        json_end(json);
    }
    json_end(json);
    json_object(json, "turned_away");
    json_integer(json, "calls", report->turned_away);
    json_integer(json, "lookup_ns", report->turned_away_ns);
    json_end(json);
    json_real(json, "hit_rate", hits < 0 ? NAN : hits / 100, 6);
    json_real(json, "eager_share", eager < 0 ? NAN : eager / 100, 6);
    ok = rows_json(report, json, "recompile_causes", "report/causes") && ok;
    ok = rows_json(report, json, "recompiles", "report/recompiles") && ok;
    ok = rows_json(report, json, "graph_breaks", "report/breaks") && ok;
    ok = rows_json(report, json, "limits_reached", "report/limits") && ok;
    ok = rows_json(report, json, "guard_bill", "report/guards") && ok;
    ok = rows_json(report, json, "hot_functions", "report/functions") && ok;
    json_end(json);
    putc('\n', report->out);
    return ok;
}
