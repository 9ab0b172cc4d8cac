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

/* The rows of the table or view NAME, or of "frames", in FORMAT; where that has a column for it, each says its table. */
static void rows_put(struct export *export, enum table_format format, const char *name)
{
    const char *extra = format == TABLE_LINES ? "table" : NULL;
    bool frames = !strcmp(name, "frames");
    struct query *found = db_query(export->db, schema_statement("export/table")), *query = NULL;
    struct table *table;
    int64_t rows = 0;

    query_bind_text(found, 1, name);
    if (frames)
        query = db_query(export->db, schema_statement("export/frames"));
    else if (query_step(found))
        query = db_query(export->db, query_whole(found, 0, NULL));
    else
        say_error("%s: has no table %s", db_path(export->db), name);
    query_close(found);
    export->failed = export->failed || !query;
    table = result_open(export->out->file, format, query, extra);
    while (query_step(query)) {
        if (!(++rows % EXPORT_TICK) && !export_tick(export, frames ? query_integer(query, 0) : 0, frames ? export->last_frame : 0))
            break;
        if (extra)
            table_string(table, name);
        result_row(table, query);
    }
    table_close(table);
    query_close(query);
}

void export_csv(struct export *export)
{
    export->progress.what = "exporting";
    rows_put(export, export->safe_csv ? TABLE_SAFE_CSV : TABLE_CSV, export->table ? export->table : "frames");
}

void export_jsonl(struct export *export)
{
    struct query *tables = db_query(export->db, schema_statement("export/tables"));

    export->progress.what = "exporting";
    if (export->table)
        rows_put(export, TABLE_LINES, export->table);
    while (!export->table && query_step(tables)) {
        char *name = strdup(query_whole(tables, 0, NULL));
        rows_put(export, TABLE_LINES, name);
        free(name);
    }
    query_close(tables);
}
