/* cmd/report.c -- `dyntrace report`: prints a trace on one page.
 *
 * The page tells what to look at first (trace/findings.h), what was compiled again and why, where
 * graphs broke, which calls ran eagerly, where the time went, and what was recorded. Only --html
 * reads all frames. Other reports do not, so they are quick for a day's recording, even while it
 * continues. Losses are printed before the tables that they make uncertain. */
#include <math.h>

#include "cmd/report/browser.h"
#include "cmd/report/report.h"
#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/findings.h"
#include "trace/page_text.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "trace/traces.h"

enum {
    LIMIT = 20,       /* how many rows of each table are printed, unless --limit is given */
    PAGE_LIMIT = 500, /* rows of each table of the HTML page, which can be searched */
};

static struct {
    bool json, force, open;
    const char *page; /* the value of --html: the path of the page, or NULL */
    int64_t limit;    /* the value of --limit: 0 if not given, -1 for all rows */
    const char *file; /* the trace file of the command line, or NULL */
} given;

static const struct option options[] = {
    {"json", .read = option_flag, .to = &given.json,
     .help = "the same for a program, times in nanoseconds"},
    TABLE_WIDE_OPTION,
    {"html", .value = "OUT", .read = option_text, .to = &given.page,
     .help = "one file for a browser that loads nothing from elsewhere: all of that in tables that "
             "sort and filter, a timeline of threads with compiles and misses, and a flame graph. "
             "It reads every frame, and prints remedies with the lines of the program's source"},
    {"open", .read = option_flag, .to = &given.open,
     .help = "show the page of --html in a browser, the command of $BROWSER or the system's; "
             "without --html it is made in a new directory of TMPDIR, and its name is printed"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace OUT"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit,
     .help = "rows of each table; 0 is all. The default is 20, of a page 500"},
    OPTION_END,
};

/* ---- printing the report for a terminal ---------------------------------- */

static void print_fact(void *table, const char *name, const char *value)
{
    table_put_string(table, name);
    table_put_string(table, value);
}

/* Print facts about the recording: its command, machine, times and options. */
static void print_recording_facts(struct report *report)
{
    struct table *table =
        table_open(report->out, table_format(report->out, false), 2, (const char *[]){"", ""});

    prose_print_title(report->out, "The recording");
    table_omit_headings(table);
    report_facts(report, print_fact, table);
    table_close(table);
}

/* Print a warning if the trace is not complete. */
static void warn_if_incomplete(const struct report *report)
{
    if (!report->state || !strcmp(report->state, "complete"))
        return;
    prose_print_text(report->out, report_describe_state(report), 200);
    putc('\n', report->out);
}

static void print_processes(struct report *report)
{
    report_print_table(report, "processes", false);
    report_print_table(report, "threads", false);
}

/* Print the report for a terminal. */
static void print_report_as_text(struct report *report)
{
    static const char *const tables[] = {"causes",  "breaks",   "eager",         "outcomes",
                                         "trials",  "spans",    "own_functions", "slowest",
                                         "waiting", "packages", "compiles",      "guard_costs"};
    bool has_own = db_integer(report->db, 0, schema_statement("report/has-own"));
    bool is_several = db_integer(report->db, 0, schema_statement("report/is-several"));

    /* losses come first, because they make the tables below uncertain */
    if (report_has_doubts(report))
        report_print_table(report, "losses", false);
    warn_if_incomplete(report);
    findings_print(report->db, report->out, page_text_choose_way(report->out, false), given.file);
    if (is_several)
        print_processes(report);
    for (size_t i = 0; i < array_count(tables); i++)
        if (strcmp(tables[i], "outcomes") != 0 || report_has_decisions(report))
            report_print_table(report, tables[i], false);
    if (!has_own)
        report_print_table(report, "functions", false);
    print_recording_facts(report);
    if (!report_has_doubts(report))
        report_print_table(report, "losses", false);
    if (!is_several)
        print_processes(report);
}

/* ---- printing the report as JSON ----------------------------------------- */

/* Write the rows of the statement NAME to JSON as the member KEY. Columns that begin with `_` are
 * only for people, and left out. The column argv is JSON already. */
static void write_rows_as_json(struct report *report, struct json *json, const char *key,
                               const char *name)
{
    char path[64];
    struct query *query;
    struct table *table;
    int columns = 0;
    int all;

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
        for (int i = 0; i < all; i++)
            if (!strcmp(query_name(query, i), "argv") && query_type(query, i) == QUERY_TEXT)
                table_put_json(table, query_whole_value(query, i, NULL));
            else if (*query_name(query, i) != '_')
                result_put_cell(table, query, i);
    table_close(table);
    query_close(query);
}

static void write_meta_as_json(struct report *report, struct json *json)
{
    json_object(json, "meta");
    db_rows(query, report->db, schema_statement("report/meta"))
    {
        size_t bytes;
        const char *key = query_whole_value(query, 0, NULL);
        const char *text;
        if (query_type(query, 1) != QUERY_NULL && query_integer(query, 2)) {
            text = query_whole_value(query, 1, &bytes);
            json_raw(json, key, text, bytes);
        } else {
            result_put_json_member(json, key, query, 1);
        }
    }
    json_end(json);
}

static void write_report_as_json(struct report *report)
{
    static const char *const lists[][2] = {
        {"losses", "losses"},           {"processes", "processes"},
        {"threads", "threads"},         {"torch", "torch"},
        {"compiles", "compiles"},       {NULL}, /* NULL: here the calls by outcome are written */
        {"recompile_causes", "causes"}, {"recompiles", "recompiles"},
        {"trials", "trials"},           {"graph_breaks", "breaks"},
        {"limits_reached", "limits"},   {"guard_bill", "guards"},
        {"hot_functions", "functions"}, {"spans", "spans"},
    };
    struct json *json = &(struct json){.out = report->out};
    struct db *db = report->db;
    double hits = report_share_in_percent(report, report->sums.hits);
    double eager = report_share_in_percent(report, report->sums.python);
    struct query *query = db_query(db, schema_statement("report/sums"));
    char *left_out = doubts_describe_frames_left_out(db);

    json_object(json, NULL);
    json_begin_lines(json);
    json_string(json, "file", db_get_path(db));
    if (report->live == LIVE_UNKNOWN)
        json_null(json, "live");
    else
        json_bool(json, "live", report->live == LIVE_YES);
    write_meta_as_json(report, json);
    json_string(json, "left_out", left_out);
    free(left_out);
    findings_write_as_json(db, json);
    if (report->frames >= 0)
        query_bind_integer(query, 1, report->frames);
    if (report->open_frames >= 0)
        query_bind_integer(query, 2, report->open_frames);
    query_step(query);
    for (int i = 0; i < query_columns(query); i++)
        result_put_json_member(json, query_name(query, i), query, i);
    query_close(query);
    for (size_t i = 0; i < array_count(lists); i++) {
        if (lists[i][0]) {
            write_rows_as_json(report, json, lists[i][0], lists[i][1]);
            continue;
        }
        report_write_outcomes(report, json, "outcomes");
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

/* ---- the command `report` ------------------------------------------------ */

static bool make_report(struct report *report)
{
    char *directory;
    bool ok = true;

    /* read one snapshot of the database, so that all parts agree while the recording continues */
    db_run(report->db, "BEGIN");
    db_store_view_as_table(report->db, "functions");
    db_store_view_as_table(report->db, "hot_functions");
    db_store_view_as_table(report->db, "entry_calls");
    db_store_view_as_table(report->db, "findings");
    report->state = db_meta(report->db, "state");
    if (report->state && !strcmp(report->state, "recording")) {
        directory = db_meta(report->db, "session");
        report->live = session_has_running_collector(directory);
        free(directory);
    }
    report->progress = progress_begin("reading");
    report_read_calls(report);
    if (db_has_failed(report->db))
        ok = false;
    else if (report->page)
        ok = report_print_html(report);
    else if (given.json)
        write_report_as_json(report);
    else
        print_report_as_text(report);
    progress_end(&report->progress);
    return ok && !db_has_failed(report->db);
}

/* Return why the given options cannot be combined, or NULL if they can. */
static const char *find_wrong_options(void)
{
    bool is_page = given.page || given.open;
    bool is_printed = given.page && !out_is_named(given.page);

    if (is_page && given.json)
        return "--json, and --html or --open: one form at a time";
    if (given.open && is_printed)
        return "--open needs a file: --html OUT";
    return NULL;
}

/* Write the report to PAGE, or to standard output if PAGE is NULL. Returns false on error, which
 * has been reported. */
static bool write_report(struct report *report, const char *page)
{
    struct out_file out = {0};
    bool ok = false;

    report->page = page;
    report->stride = 1;
    report->limit = given.limit ? given.limit : page ? PAGE_LIMIT : LIMIT;
    if (page && traces_has(page)) {
        say_error("report: %s: is the trace itself", page);
    } else if (!page || out_open(&out, page, given.force)) {
        report->out = page ? out.file : stdout;
        ok = make_report(report) && (!page || out_commit(&out));
    }
    out_close(&out);
    return ok;
}

static int report_main(int count, char **operands)
{
    static struct report report;
    const char *wrong = find_wrong_options();
    bool is_page = given.page || given.open;
    char *made = NULL; /* owned: the path of the page, if --html was given without a path */
    bool ok = false;

    if (wrong) {
        say_error("report: %s", wrong);
        return 2;
    }
    given.file = *operands;
    if (!(report.db = traces_open(operands, is_page ? MERGE_FRAMES : MERGE_COUNTED)))
        return 2;
    if (given.open && !given.page)
        made = browser_make_page_path(db_get_path(report.db));
    if (made || given.page || !is_page)
        ok = write_report(&report, made ? made : given.page);
    if (made && !ok)
        browser_remove_page(made);
    if (made && ok)
        printf("%s\n", made);
    fflush(stdout); /* flush our output before the browser prints its own */
    if (ok && given.open)
        ok = browser_open(made ? made : given.page);
    free(made);
    db_close(report.db);
    free(report.state);
    return ok ? 0 : 2;
}

const struct command command_report = {
    .name = "report",
    .summary = "a trace on one page, for a terminal, a program or a browser",
    .operands = "[FILE...]",
    .about =
        "A trace on one page: losses, where the time of the program went, three things to look "
        "at first, what was compiled again and why, graph breaks, eager calls, spans, the "
        "program's "
        "own functions, other functions by package, guards, the recording. FILE is the newest "
        "*.db trace here unless given; it may still be recorded.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = report_main,
};
