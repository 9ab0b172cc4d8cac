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
#include "schema.h"
#include "trace/result.h"

/* SELECT * FROM "NAME", which the caller frees. NULL: there is no such table, said. */
static char *table_sql(struct export *export, const char *name)
{
    struct query *query = db_query(export->db, schema_statement("export/table"));
    char *sql = NULL;

    query_bind_text(query, 1, name);
    if (query_step(query))
        sql = strdup(query_whole(query, 0, NULL));
    else if (!query_failed(query))
        say_error("%s: has no table %s", db_path(export->db), name);
    query_close(query);
    return sql;
}

/* The rows of SQL, NULL for the frames, in FORMAT; where that has a column for it, each says that it is of table NAME. */
static bool rows_put(struct export *export, enum table_format format, const char *name, const char *sql)
{
    const char *extra = format == TABLE_LINES ? "table" : NULL;
    bool frames = !sql;
    struct query *query = db_query(export->db, sql ? sql : schema_statement("export/frames"));
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
    return !export->table || !strcmp(export->table, "frames") ? rows_put(export, format, "frames", NULL)
                                                              : table_put(export, format, export->table);
}

bool export_jsonl(struct export *export)
{
    struct query *tables;
    bool ok = true;

    export->progress.what = "exporting";
    if (export->table)
        return !strcmp(export->table, "frames") ? rows_put(export, TABLE_LINES, "frames", NULL)
                                                : table_put(export, TABLE_LINES, export->table);
    tables = db_query(export->db, schema_statement("export/tables"));
    while (ok && query_step(tables)) {
        char *name = strdup(query_whole(tables, 0, NULL));
        ok = name && table_put(export, TABLE_LINES, name);
        free(name);
    }
    return query_close(tables) && ok;
}
