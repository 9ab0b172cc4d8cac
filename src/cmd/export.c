/* cmd/export.c -- `dyntrace export`: a trace in the formats of other programs.
 *
 * Runs in: the viewer. See cmd/export/export.h for the formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "cmd/export/export.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/doubts.h"
#include "trace/result.h"
#include "trace/stacks.h"

bool export_tick(struct export *export, int64_t done, int64_t all)
{
    progress_tick(&export->progress, done, all);
    export->failed = export->failed || out_failed(export->out);
    return !export->failed;
}

void export_string(struct json *json, const char *key, struct query *query, int column)
{
    size_t bytes;
    const char *text = query_text(query, column, &bytes);

    if (query_type(query, column) == QUERY_NULL)
        json_string(json, key, "?");
    else
        json_bytes(json, key, text, bytes);
}

static struct {
    int format;
    const char *out, *table;
    bool force, safe_csv;
} given = {.format = -1};

static const struct option options[] = {
    {"format", .value = "FORMAT", .read = option_choice, .to = &given.format, .words = "perfetto chrome speedscope folded csv jsonl",
     .help = "perfetto, chrome: Chrome's Trace Event JSON, for ui.perfetto.dev or chrome://tracing: a slice for each frame, an "
             "instant for each lookup, a track for compiles\n"
             "speedscope: frames of each thread, for speedscope.app\n"
             "folded: own nanoseconds of every stack, a line each, for flamegraph.pl\n"
             "csv: frames with their names, or the table or view that --table names\n"
             "jsonl: every row of every table as a line of JSON, or of --table",
     .needed = true},
    {"output", 'o', "OUT", option_text, &given.out, .help = "write this file; standard output unless given"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace OUT"},
    {"table", .value = "NAME", .read = option_text, .to = &given.table, .help = "csv, jsonl: this table or view"},
    {"safe-csv", .read = option_flag, .to = &given.safe_csv,
     .help = "csv: an apostrophe before texts that a spreadsheet would take for a formula (they begin with = + - @, a tab or a "
             "carriage return); a trace holds names that its program chose"},
    OPTION_END,
};

/* CSV is that of RFC 4180 with a line of names; NULL is an empty cell, an empty text "". It has one table, the frames spelled
 * out unless --table names another. JSON lines have every table unless --table names one; each line says of which table it
 * is. A blob is its hexadecimal digits.
 *
 * The rows of the table or view NAME, or of "frames", in FORMAT; where that has a column for it, each says its table. */
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
    else if (!query_failed(found))
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

static void csv_put(struct export *export)
{
    rows_put(export, given.safe_csv ? TABLE_SAFE_CSV : TABLE_CSV, given.table ? given.table : "frames");
}

static void jsonl_put(struct export *export)
{
    struct query *tables = db_query(export->db, schema_statement("export/tables"));

    if (given.table)
        rows_put(export, TABLE_LINES, given.table);
    while (!given.table && query_step(tables)) {
        char *name = strdup(query_whole(tables, 0, NULL));
        rows_put(export, TABLE_LINES, name);
        free(name);
    }
    query_close(tables);
}

static const struct format {
    const char *name;
    void (*write)(struct export *export);
    bool tables; /* --table means something */
} formats[] = {
    {"perfetto", export_chrome, false}, {"chrome", export_chrome, false}, {"speedscope", export_speedscope, false},
    {"folded", export_folded, false}, {"csv", csv_put, true}, {"jsonl", jsonl_put, true},
};

static int export_trace(const char *path, const struct format *format)
{
    struct db *db = db_open(path);
    struct out_file out = {0};
    struct export export = {.db = db, .out = &out};
    bool ok = false;

    if (!db)
        return 2;
    if (given.out && out_is(given.out, db_path(db))) {
        say_error("export: %s: is the trace itself", given.out);
    } else if (out_open(&out, given.out, given.force)) {
        db_run(db, "BEGIN");
        export.end_ns = stacks_end(db);
        export.last_frame = db_integer(db, 0, "SELECT MAX(frame_id) FROM frame");
        export.progress = progress_begin("exporting");
        format->write(&export);
        progress_end(&export.progress);
        ok = !export.failed && !db_failed(db) && out_commit(&out);
    }
    if (ok)
        doubts_say(db, "single frames are stored at the end", "they are not in the result");
    out_close(&out);
    db_close(db);
    return ok ? 0 : 2;
}

static int export_main(int count, char **operands)
{
    const struct format *format = given.format < 0 ? NULL : &formats[given.format];
    const char *wrong = !format                                       ? "which format? --format names one"
                        : given.table && !format->tables               ? "--table is for csv and jsonl"
                        : given.safe_csv && format->write != csv_put ? "--safe-csv is for csv"
                        : !given.out && isatty(STDOUT_FILENO)          ? "-o OUT names the file to write; `-o -` prints it here"
                                                                      : NULL;

    (void)count;
    if (wrong) {
        say_error("export: %s", wrong);
        return 2;
    }
    return export_trace(operands[0], format);
}

const struct command command_export = {
    .name = "export",
    .summary = "write Perfetto, Chrome, speedscope, folded stacks, csv, jsonl",
    .operands = "[FILE]",
    .about = "Writes a trace in the format of another program, reading it once; the result is there whole or not at all.",
    .options = options,
    .more = "FILE is the newest *.db trace here unless given. Frames that were still open end with the recording.",
    .operands_most = 1,
    .run = export_main,
};
