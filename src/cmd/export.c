/* cmd/export.c -- `dyntrace export`: a trace in the formats of other programs.
 *
 * Runs in: the viewer. See cmd/export/export.h for the formats. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "trace/doubts.h"
#include "cmd/export/export.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"

static const char usage[] =
    "usage: dyntrace export [FILE] --format FORMAT [-o OUT] [--force] [--table NAME] [--safe-csv]\n\n"
    "A trace in the formats of other programs:\n\n"
    "  perfetto, chrome  Chrome's Trace Event JSON: frames, lookups and compiles on a timeline;\n"
    "                    for ui.perfetto.dev or chrome://tracing\n"
    "  speedscope        frames of each thread, for speedscope.app\n"
    "  folded            own nanoseconds of every stack, a line each, for flamegraph.pl\n"
    "  csv               frames with their names, or the table or view that --table names\n"
    "  jsonl             every row of every table as a line of JSON, or of --table\n\n"
    "  -o OUT        write this file; standard output unless given\n"
    "  --force       replace OUT\n"
    "  --table NAME  csv, jsonl: this table or view\n"
    "  --safe-csv    csv: an apostrophe before texts that a spreadsheet would take for a formula (= + - @, tab, CR)\n\n"
    "FILE is the newest *.db trace here unless given. Frames that were still open end with the recording.\n";

static const struct format {
    const char *name;
    bool (*write)(struct export *export);
    bool tables; /* --table means something */
} formats[] = {
    {"perfetto", export_chrome, false}, {"chrome", export_chrome, false}, {"folded", export_folded, false},
    {"speedscope", export_speedscope, false}, {"csv", export_csv, true}, {"jsonl", export_jsonl, true},
};
enum { FORMATS = sizeof formats / sizeof *formats };

bool export_tick(struct export *export, int64_t done, int64_t all)
{
    progress_tick(&export->progress, done, all);
    return !out_failed(export->out);
}

void export_string(struct export *export, struct query *query, int column)
{
    size_t bytes;
    const char *text;

    if (query_type(query, column) == QUERY_NULL) {
        fputs("\"?\"", export->out->file);
        return;
    }
    text = query_text(query, column, &bytes);
    json_string(export->out->file, text, bytes);
}

/* Where open frames are drawn to: not before anything that was seen. */
static int64_t end_of(struct db *db)
{
    int64_t end = db_meta_integer(db, "span_ns", -1);
    int64_t process = db_integer(db, 0, "SELECT MAX(end_ns) FROM process");
    int64_t last = db_integer(db, 0, "SELECT start_ns FROM frame ORDER BY frame_id DESC LIMIT 1");

    if (end < 0) /* it does not say how long it is */
        end = db_integer(db, 0, "SELECT MAX(end_ns) FROM frame");
    if (process > end)
        end = process;
    return last > end ? last : end;
}

static int export_trace(const char *path, const struct format *format, const char *out_path, const char *table, bool force,
                        bool safe_csv)
{
    struct db *db = db_open(path);
    struct out_file out = {0};
    struct export export = {.db = db, .out = &out, .table = table, .safe_csv = safe_csv};
    struct query *snapshot;
    bool ok = false;

    if (!db)
        return 2;
    if (out_path && out_is(out_path, db_path(db))) {
        say_error("export: %s: is the trace itself", out_path);
        goto out;
    }
    if (!out_open(&out, out_path, force))
        goto out;
    snapshot = db_query(db, "BEGIN");
    query_step(snapshot);
    query_close(snapshot);
    export.decisions = find_column(db, "lookup", "lookup_id") && find_column(db, "compile", "cache_entry_id") &&
                       find_column(db, "cache_entry", "cache_entry_id") && find_column(db, "graph_break", "compile_id") &&
                       find_column(db, "recompile_cause", "text") && find_column(db, "signature", "text");
    export.end_ns = end_of(db);
    export.last_frame = db_integer(db, 0, "SELECT MAX(frame_id) FROM frame");
    export.progress = progress_begin("exporting");
    ok = format->write(&export);
    progress_end(&export.progress);
    if (ok)
        ok = out_commit(&out);
    if (ok)
        doubts_say(db, "single frames are stored at the end", "they are not in the result");
out:
    out_close(&out);
    db_close(db);
    return ok ? 0 : 2;
}

static int export_main(int argc, char **argv)
{
    const char *path = NULL, *table = NULL, *wanted = NULL;
    const struct format *format = NULL;
    struct option_out out = {0};
    bool options = true, safe_csv = false;

    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = NULL;
        if (options && !strcmp(a, "--")) {
            options = false;
        } else if (options && (!strcmp(a, "--help") || !strcmp(a, "-h"))) {
            fputs(usage, stdout);
            return 0;
        } else if (options && !strcmp(a, "--safe-csv")) {
            safe_csv = true;
        } else if (options && option_out(argc, argv, &i, &out)) {
            value = out.path ? out.path : "--force";
        } else if (options && (value = option_value(argc, argv, &i, "--format"))) {
            wanted = value;
        } else if (options && (value = option_value(argc, argv, &i, "--table"))) {
            table = value;
        } else if (options && a[0] == '-' && a[1]) {
            say_error("export: %s: no such option; `dyntrace export --help` lists them", a);
            return 2;
        } else if (path) {
            say_error("export: %s: one trace at a time", a);
            return 2;
        } else {
            path = a;
        }
        if (value && !*value) {
            say_error("export: %s: needs a value", a);
            return 2;
        }
    }
    for (int i = 0; wanted && i < FORMATS; i++)
        if (!strcmp(wanted, formats[i].name))
            format = &formats[i];
    if (!format) {
        say_error("export: %s%s--format is one of perfetto, chrome, speedscope, folded, csv, jsonl", wanted ? wanted : "",
                  wanted ? ": no such format; " : "which format? ");
        return 2;
    }
    if (table && !format->tables) {
        say_error("export: --table is for csv and jsonl");
        return 2;
    }
    if (safe_csv && strcmp(format->name, "csv")) {
        say_error("export: --safe-csv is for csv");
        return 2;
    }
    if (!out.path && isatty(STDOUT_FILENO)) {
        say_error("export: -o OUT names the file to write; `-o -` prints it here");
        return 2;
    }
    setlocale(LC_CTYPE, "");
    return export_trace(path, format, out.path, table, out.force, safe_csv);
}

const struct command command_export = {
    "export", "write Perfetto, Chrome, speedscope, folded stacks, csv, jsonl", usage, export_main,
};
