/* cmd/report/json.c -- `dyntrace report --json`: the report for programs.
 *
 * Runs in: the viewer. See cmd/report/report.h. */
#include <inttypes.h>
#include <string.h>

#include "trace/db.h"
#include "lib/json.h"
#include "cmd/report/report.h"
#include "trace/result.h"
#include "lib/table.h"

/* The rows of SQL as a member NAME of an object; ?1 is the limit. A column whose
 * name ends in "argv" is JSON already. */
static bool rows_json(struct report *report, const char *name, const char *sql)
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
    fprintf(report->out, ",\n\"%s\": ", name);
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

/* A percentage as a share of 1, null when there is none. */
static void share_json(FILE *out, const char *name, double percent)
{
    fprintf(out, percent < 0 ? ",\n\"%s\": null" : ",\n\"%s\": %.6g", name, percent / 100);
}

bool report_json(struct report *report)
{
    FILE *out = report->out;
    struct db *db = report->db;
    struct query *query;
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = report_open_frames(db, frames);
    bool ok;

    fputs("{\"file\": ", out);
    json_string(out, db_path(db), strlen(db_path(db)));
    fprintf(out, ",\n\"live\": %s", report->live == LIVE_YES ? "true" : report->live == LIVE_NO ? "false" : "null");
    fputs(",\n\"meta\": {", out);
    query = db_query(db, "SELECT key, CAST(CASE WHEN key = 'command' AND json_valid(value) THEN json(value) ELSE value END AS TEXT),"
                         "       typeof(value) = 'integer' OR (key = 'command' AND json_valid(value)) FROM meta");
    for (bool first = true; query_step(query); first = false) {
        size_t bytes;
        const char *text = query_whole(query, 0, &bytes);
        fputs(first ? "" : ", ", out);
        json_string(out, text, bytes);
        fputs(": ", out);
        text = query_whole(query, 1, &bytes);
        if (query_type(query, 1) == QUERY_NULL)
            fputs("null", out);
        else if (query_integer(query, 2))
            json_text(out, text, bytes);
        else
            json_string(out, text, bytes);
    }
    ok = query_close(query);
    fputs("}", out);
    fprintf(out, frames < 0 ? ",\n\"frames\": null" : ",\n\"frames\": %" PRId64, frames);
    fprintf(out, open < 0 ? ",\n\"open_frames\": null" : ",\n\"open_frames\": %" PRId64, open);
    fprintf(out, ",\n\"process_count\": %" PRId64, db_integer(db, 0, "SELECT COUNT(*) FROM process"));
    fprintf(out, ",\n\"thread_count\": %" PRId64, db_integer(db, 0, "SELECT COUNT(*) FROM thread"));
    fprintf(out, ",\n\"lost_events\": %" PRId64, db_integer(db, 0, "SELECT SUM(events) FROM loss"));
    ok = rows_json(report, "losses", report_losses) && ok;
    ok = rows_json(report, "processes", report->torch ? PROCESS_TREE
        "SELECT p.process_id, p.pid, p.parent_process_id, t.depth, p.rank, p.local_rank,"
        "       CASE WHEN json_valid(p.argv) THEN json(p.argv) ELSE json_array(CAST(p.argv AS TEXT)) END AS argv,"
        "       p.executable, p.python_version, p.torch_version, p.mode, p.torch_mode, p.torch_note, p.start_ns, p.end_ns,"
        "       p.exit_code, p.exit_signal FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path LIMIT ?1"
        : PROCESS_TREE
        "SELECT p.process_id, p.pid, p.parent_process_id, t.depth, p.rank,"
        "       CASE WHEN json_valid(p.argv) THEN json(p.argv) ELSE json_array(CAST(p.argv AS TEXT)) END AS argv,"
        "       p.executable, p.python_version, p.torch_version, p.mode, p.start_ns, p.end_ns, p.exit_code, p.exit_signal "
        "FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path LIMIT ?1") && ok;
    ok = rows_json(report, "threads",
        "SELECT t.thread_id, t.process_id, p.pid, t.os_tid, t.name FROM thread t "
        "LEFT JOIN process p ON p.process_id = t.process_id ORDER BY t.process_id, t.thread_id LIMIT ?1") && ok;
    if (report->torch)
        ok = rows_json(report, "torch", report_torch) && ok;
    if (report->compiles)
        ok = rows_json(report, "compiles", report_compiled) && ok;
    if (report->lookups) {
        fputs(",\n\"outcomes\": {", out);
        for (int o = 0; o < OUTCOMES; o++)
            fprintf(out, "%s\"%s\": {\"calls\": %" PRId64 ", \"lookup_ns\": %" PRId64 "}", o ? ", " : "", outcome_word(o),
                    report->outcomes[o], report->times_ns[o]);
        fputs("}", out);
        share_json(out, "hit_rate", report_hit_rate(report));
        share_json(out, "eager_share", report_eager_share(report));
        ok = rows_json(report, "recompile_causes", report_causes) && ok;
        ok = rows_json(report, "recompiles", report_recompiles) && ok;
        ok = rows_json(report, "graph_breaks", report_breaks) && ok;
        ok = rows_json(report, "limits_reached", report_reached) && ok;
        ok = rows_json(report, "guard_bill", report_guards) && ok;
    }
    ok = rows_json(report, "hot_functions", report_hot) && ok;
    fputs("}\n", out);
    return ok;
}
