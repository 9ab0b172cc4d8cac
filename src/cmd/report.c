/* cmd/report.c -- `dyntrace report`: a trace on one page.
 *
 * Runs in: the viewer.
 *
 * What was recorded, what is missing, which processes and threads there were,
 * how calls were decided, what was compiled, again and why, where graphs broke,
 * what guards cost, where the time went. Frames are not read, so that it is
 * quick on a day's recording, and works while that goes on. Losses come before
 * anything that they make doubtful. */
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report.h"
#include "command.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/db.h"

enum {
    LIMIT = 20,       /* rows of each table, unless --limit */
    PAGE_LIMIT = 500, /* the same of the HTML page, which can be searched */
};

static struct {
    bool json, force;
    const char *page; /* --html */
    int64_t limit;    /* 0: not given, -1: all */
} given;

static const struct option options[] = {
    {"json", .read = option_flag, .to = &given.json, .help = "the same for a program, times in nanoseconds"},
    {"html", .value = "OUT", .read = option_text, .to = &given.page,
     .help = "one file for a browser that loads nothing from elsewhere: all of that in tables that sort and filter, a timeline "
             "of threads with compiles and misses, and a flame graph. It reads every frame"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace OUT"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit,
     .help = "rows of each table; 0 is all. The default is 20, of a page 500"},
    OPTION_END,
};

static void fact_print(void *table, const char *name, const char *value)
{
    table_string(table, name);
    table_string(table, value);
}

/* The report for a terminal. */
static void report_text(struct report *report)
{
    static const char *const tables[] = {"losses", "processes", "threads", "outcomes", "compiles",
                                         "causes", "breaks", "guards", "functions"};
    struct table *table = table_open(report->out, table_format(report->out, false), 2, (const char *[]){"", ""});

    table_headless(table);
    report_facts(report, fact_print, table);
    table_close(table);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i], "outcomes") != 0 || report_decided(report))
            report_table(report, tables[i], false);
}

static bool report_make(struct report *report)
{
    char *directory;
    bool ok = true;

    /* One snapshot, so that the parts agree while the recording goes on. */
    db_run(report->db, "BEGIN");
    report->state = db_meta(report->db, "state");
    if (report->state && !strcmp(report->state, "recording")) {
        directory = db_meta(report->db, "session");
        report->live = session_live(directory);
        free(directory);
    }
    report->progress = progress_begin("reading");
    if (report->page)
        pictures_begin(report);
    report_read(report);
    if (db_failed(report->db))
        ok = false;
    else if (report->page)
        ok = report_html(report);
    else if (given.json)
        report_json(report);
    else
        report_text(report);
    ok = pictures_end(report) && ok;
    progress_end(&report->progress);
    return ok && !db_failed(report->db);
}

static int report_main(int count, char **operands)
{
    static struct report report;
    struct out_file out = {0};
    bool ok = false;

    (void)count;
    if (given.page && given.json) {
        say_error("report: --json and --html: one form at a time");
        return 2;
    }
    if (!(report.db = db_open(operands[0])))
        return 2;
    if (given.page && out_is(given.page, db_path(report.db))) {
        say_error("report: %s: is the trace itself", given.page);
    } else if (!given.page || out_open(&out, given.page, given.force)) {
        report.page = given.page;
        report.limit = given.limit ? given.limit : given.page ? PAGE_LIMIT : LIMIT;
        report.out = given.page ? out.file : stdout;
        ok = report_make(&report) && (!given.page || out_commit(&out));
    }
    out_close(&out);
    db_close(report.db);
    free(report.state);
    return ok ? 0 : 2;
}

const struct command command_report = {
    .name = "report",
    .summary = "a trace on one page, for a terminal, a program or a browser",
    .operands = "[FILE]",
    .about = "A trace on one page: losses, processes, threads, how calls were decided, what was compiled and why again, graph "
             "breaks, guards, where the time went. FILE is the newest *.db trace here unless given; it may still be recorded.",
    .options = options,
    .operands_most = 1,
    .run = report_main,
};
