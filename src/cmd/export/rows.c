/* cmd/export/rows.c -- rows of a trace as CSV and as lines of JSON.
 *
 * Runs in: the viewer.
 *
 * CSV is that of RFC 4180 with a line of names; NULL is an empty cell, an empty
 * text "". It has one table, the frames spelled out unless --table names
 * another. JSON lines have every table unless --table names one; each line says
 * of which table it is. A blob is its hexadecimal digits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/export.h"
#include "lib/json.h"
#include "lib/say.h"
#include "trace/csv.h"
#include "trace/result.h"

/* As the view of this name; the one in a stranger's file may be anything. */
static const char frames_sql[] =
    "SELECT f.frame_id, f.parent_id, t.process_id, p.pid, f.thread_id, t.name AS thread, f.code_id,"
    "       c.qualname, c.filename, c.first_line, c.kind AS code_kind,"
    "       (SELECT name FROM enum WHERE kind = 'frame.kind' AND value = f.kind) AS kind,"
    "       (SELECT name FROM enum WHERE kind = 'outcome' AND value = f.outcome) AS outcome,"
    "       (SELECT name FROM enum WHERE kind = 'frame.exit' AND value = f.exit) AS exit,"
    "       f.start_ns, f.end_ns, f.end_ns - f.start_ns AS duration_ns, f.cache_entry_id "
    "FROM frame f LEFT JOIN code c ON c.code_id = f.code_id LEFT JOIN thread t ON t.thread_id = f.thread_id"
    " LEFT JOIN process p ON p.process_id = t.process_id ORDER BY f.frame_id";

/* SELECT * FROM "NAME", which the caller frees. NULL: there is no such table, said. */
static char *table_sql(struct export *export, const char *name)
{
    struct query *query = db_query(export->db,
        "SELECT 'SELECT * FROM \"' || replace(name, '\"', '\"\"') || '\"' FROM sqlite_schema"
        " WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE AND name NOT LIKE 'sqlite|_%' ESCAPE '|'");
    char *sql = NULL;

    query_bind_text(query, 1, name);
    if (query_step(query))
        sql = strdup(query_whole(query, 0, NULL));
    else if (!query_failed(query))
        say_error("%s: has no table %s", db_path(export->db), name);
    query_close(query);
    return sql;
}

bool export_csv(struct export *export)
{
    FILE *out = export->out->file;
    bool frames = !export->table || !strcmp(export->table, "frames");
    char *sql = frames ? NULL : table_sql(export, export->table);
    struct query *query = frames || sql ? db_query(export->db, frames ? frames_sql : sql) : NULL;
    int64_t rows = 0;

    export->progress.what = "exporting";
    csv_head(out, query, export->safe_csv);
    while (query_step(query)) {
        if (!(++rows % EXPORT_TICK) && !export_tick(export, frames ? query_integer(query, 0) : 0, frames ? export->last_frame : 0))
            break;
        csv_row(out, query, export->safe_csv);
    }
    free(sql);
    return query_close(query);
}

/* The rows of SQL, each as {"table": NAME, ...}. */
static bool lines_put(struct export *export, const char *name, const char *sql)
{
    struct json json = {.out = export->out->file, .compact = true};
    struct query *query = db_query(export->db, sql);
    int columns = query_columns(query);
    int64_t rows = 0;

    while (query_step(query)) {
        if (!(++rows % EXPORT_TICK) && !export_tick(export, 0, 0))
            break;
        json_object(&json, NULL);
        json_string(&json, "table", name);
        for (int i = 0; i < columns; i++)
            result_member(&json, query_name(query, i), query, i);
        json_end(&json);
        putc('\n', json.out);
    }
    return query_close(query);
}

bool export_jsonl(struct export *export)
{
    struct query *tables;
    bool ok = true;
    char *sql;

    export->progress.what = "exporting";
    if (export->table && !strcmp(export->table, "frames"))
        return lines_put(export, "frames", frames_sql);
    if (export->table) {
        sql = table_sql(export, export->table);
        ok = sql && lines_put(export, export->table, sql);
        free(sql);
        return ok;
    }
    tables = db_query(export->db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
                                  " AND name NOT LIKE 'sqlite|_%' ESCAPE '|' ORDER BY rowid");
    while (ok && query_step(tables)) {
        char *name = strdup(query_whole(tables, 0, NULL));
        sql = name ? table_sql(export, name) : NULL;
        ok = sql && lines_put(export, name, sql);
        free(sql);
        free(name);
    }
    return query_close(tables) && ok;
}
