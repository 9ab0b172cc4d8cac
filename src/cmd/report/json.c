/* cmd/report/json.c -- `dyntrace report --json`: the report for programs. See cmd/report/report.h.
 *
 * Runs in: the viewer. */
#include <math.h>
#include <string.h>

#include "cmd/report/report.h"
#include "lib/json.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/result.h"

/* The rows of the statement NAME as the member KEY. Columns that begin with _ are for people; argv is JSON already. */
static void rows_json(struct report *report, struct json *json, const char *key, const char *name)
{
    char path[64];
    struct query *query;
    struct table *table;
    int columns = 0, all;

    snprintf(path, sizeof path, "report/%s", name);
    query = db_query(report->db, schema_statement(path));
    all = query_columns(query);
    const char *names[all + 1];
    for (int i = 0; i < all; i++)
        if (*query_name(query, i) != '_')
            names[columns++] = query_name(query, i);
    json_key(json, key);
    table = table_open(report->out, TABLE_JSON, columns, names);
    for (int64_t row = 0; row != report->limit && query_step(query); row++)
        for (int i = 0; i < columns; i++)
            if (!strcmp(names[i], "argv") && query_type(query, i) == QUERY_TEXT)
                table_json(table, query_whole(query, i, NULL));
            else
                result_cell(table, query, i);
    table_close(table);
    query_close(query);
}

static void meta_json(struct report *report, struct json *json)
{
    struct query *query = db_query(report->db, schema_statement("report/meta"));

    json_object(json, "meta");
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
    query_close(query);
    json_end(json);
}

void report_json(struct report *report)
{
    static const char *const lists[][2] = {
        {"losses", "losses"}, {"processes", "processes"}, {"threads", "threads"}, {"torch", "torch"}, {"compiles", "compiles"},
        {NULL}, /* the outcomes */
        {"recompile_causes", "causes"}, {"recompiles", "recompiles"}, {"graph_breaks", "breaks"}, {"limits_reached", "limits"},
        {"guard_bill", "guards"}, {"hot_functions", "functions"},
    };
    struct json *json = &(struct json){.out = report->out};
    struct db *db = report->db;
    double hits = report_percent(report, report->sums.hits), eager = report_percent(report, report->sums.python);
    struct query *query = db_query(db, schema_statement("report/sums"));

    json_object(json, NULL);
    json_lines(json);
    json_string(json, "file", db_path(db));
    if (report->live == LIVE_UNKNOWN)
        json_null(json, "live");
    else
        json_bool(json, "live", report->live == LIVE_YES);
    meta_json(report, json);
    if (report->frames >= 0)
        query_bind_integer(query, 1, report->frames);
    if (report->open_frames >= 0)
        query_bind_integer(query, 2, report->open_frames);
    query_step(query);
    for (int i = 0; i < query_columns(query); i++)
        result_member(json, query_name(query, i), query, i);
    query_close(query);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lists[i][0]) {
            rows_json(report, json, lists[i][0], lists[i][1]);
            continue;
        }
        report_outcomes(report, json, "outcomes");
        json_object(json, "turned_away");
        json_integer(json, "calls", report->turned_away);
        json_integer(json, "lookup_ns", report->turned_away_ns);
        json_end(json);
        json_real(json, "hit_rate", hits < 0 ? NAN : hits / 100, 6);
        json_real(json, "eager_share", eager < 0 ? NAN : eager / 100, 6);
    }
    json_end(json);
    putc('\n', report->out);
}
