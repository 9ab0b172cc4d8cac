/* cmd/export/rows.c -- rows of a trace as CSV and as lines of JSON.
 *
 * Runs in: the viewer.
 *
 * CSV is that of RFC 4180 with a line of names; NULL is an empty cell, an empty
 * text "". It has one table, the frames spelled out unless --table names
 * another. JSON lines have every table unless --table names one; each line says
 * of which table it is. A blob is its hexadecimal digits. */
#include <stdlib.h>
#include <string.h>

#include "cmd/export/export.h"
#include "lib/say.h"
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

/* The rows of SQL in FORMAT; where that has a column for it, each says that it is of table NAME. */
static bool rows_put(struct export *export, enum table_format format, const char *name, const char *sql)
{
    const char *extra = format == TABLE_LINES ? "table" : NULL;
    bool frames = sql == frames_sql;
    struct query *query = db_query(export->db, sql);
    struct table *table = result_open(export->out->file, format, query, extra);
    int64_t rows = 0;
    bool ok = table;

    while (table && query_step(query)) {
        if (!(++rows % EXPORT_TICK) && !export_tick(export, frames ? query_integer(query, 0) : 0, frames ? export->last_frame : 0))
            break;
        if (extra)
            table_string(table, name);
        result_row(table, query);
    }
    table_close(table);
    return query_close(query) && ok;
}

/* The same of the table or view NAME. */
static bool table_put(struct export *export, enum table_format format, const char *name)
{
    char *sql = table_sql(export, name);
    bool ok = sql && rows_put(export, format, name, sql);

    free(sql);
    return ok;
}

bool export_csv(struct export *export)
{
    enum table_format format = export->safe_csv ? TABLE_SAFE_CSV : TABLE_CSV;

    export->progress.what = "exporting";
    return !export->table || !strcmp(export->table, "frames") ? rows_put(export, format, "frames", frames_sql)
                                                              : table_put(export, format, export->table);
}

bool export_jsonl(struct export *export)
{
    struct query *tables;
    bool ok = true;

    export->progress.what = "exporting";
    if (export->table)
        return !strcmp(export->table, "frames") ? rows_put(export, TABLE_LINES, "frames", frames_sql)
                                                : table_put(export, TABLE_LINES, export->table);
    tables = db_query(export->db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
                                  " AND name NOT LIKE 'sqlite|_%' ESCAPE '|' ORDER BY rowid");
    while (ok && query_step(tables)) {
        char *name = strdup(query_whole(tables, 0, NULL));
        ok = name && table_put(export, TABLE_LINES, name);
        free(name);
    }
    return query_close(tables) && ok;
}
