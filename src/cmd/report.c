/* cmd/report.c -- `dyntrace report`: a trace on one page.
 *
 * Runs in: the viewer.
 *
 * What was recorded, what is missing, which processes and threads there were,
 * how calls were decided, what was compiled, again and why, where graphs broke,
 * what guards cost, where the time went. Frames are not read, so that it is
 * quick on a day's recording, and works while that goes on. Losses come before
 * anything that they make doubtful. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/db.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "trace/prose.h"
#include "cmd/report/report.h"
#include "trace/result.h"
#include "lib/say.h"
#include "schema.h"
#include "lib/table.h"

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

/* ---- for people ------------------------------------------------------------ */

static void title_print(struct report *report, const char *title)
{
    bool colour = say_colour(report->out);

    fprintf(report->out, "\n%s%s%s\n", colour ? "\033[1m" : "", title, colour ? "\033[0m" : "");
}

/* QUERY is at the last of the ROWS that were shown. */
static void more_print(struct report *report, int64_t rows, struct query *query)
{
    int64_t all = rows;

    while (rows == report->limit && query_step(query))
        all++;
    if (all > rows)
        fprintf(report->out, "(%" PRId64 " of %" PRId64 "; --limit 0 shows all)\n", rows, all);
}

/* A line of the head: "frames  41.2 M". */
static void fact_print(void *table, const char *name, const char *value)
{
    table_string(table, name);
    table_string(table, value);
}

static bool head_print(struct report *report)
{
    struct table *table = table_open(report->out, table_format(report->out, false), 2, (const char *[]){"", ""});
    bool ok;

    if (!table)
        return false;
    table_headless(table);
    ok = report_facts(report, fact_print, table);
    return table_close(table) && ok;
}

static bool losses_print(struct report *report)
{
    struct query *query = db_query(report->db, schema_statement("report/losses"));
    struct table *table = NULL;
    char human[TABLE_HUMAN];
    int64_t rows = 0;
    bool any = query_step(query);

    if (any) {
        title_print(report, "Losses");
        table = table_open(report->out, table_format(report->out, false), 5,
                           (const char *[]){"", "events", "times", "first at", "cause"});
    }
    for (; table && any; rows++, any = rows != report->limit && query_step(query)) {
        bool stall = query_integer(query, 6) != 0;
        if (!stall)
            table_alarm(table);
        table_string(table, stall ? "waited" : "LOSS");
        table_figure(table, query_type(query, 2) == QUERY_NULL ? "?" : table_count(human, query_integer(query, 2)));
        table_figure(table, table_count(human, query_integer(query, 1)));
        table_figure(table, table_duration(human, query_integer(query, 3)));
        result_cell(table, query, 0);
    }
    if (table && table_close(table))
        more_print(report, rows, query);
    return query_close(query);
}

static bool processes_print(struct report *report)
{
    struct query *query = db_query(report->db, schema_statement("report/any_process"));
    bool any = query_step(query), ranks = any && query_integer(query, 0), torch = any && query_integer(query, 1);
    const char *names[8] = {"pid", "ended", "ran", "threads", "python"};
    struct table *table;
    char human[TABLE_HUMAN], words[64], pid[160], rank[64], *argv;
    int64_t rows = 0;
    int columns = 5;

    query_close(query);
    query = db_query(report->db, schema_statement("report/processes"));
    title_print(report, "Processes");
    if (ranks)
        names[columns++] = "rank";
    if (torch)
        names[columns++] = "torch";
    names[columns++] = "command";
    table = table_open(report->out, table_format(report->out, false), columns, names);
    for (; table && rows != report->limit && query_step(query); rows++) {
        snprintf(pid, sizeof pid, "%*s%" PRId64, (int)query_integer(query, PROCESS_DEPTH) * 2, "",
                 query_integer(query, PROCESS_PID));
        table_string(table, pid);
        table_string(table, report_ended(report, query, words));
        table_figure(table, query_type(query, PROCESS_RAN) == QUERY_NULL ? "" : table_duration(human, query_integer(query, PROCESS_RAN)));
        table_integer(table, query_integer(query, PROCESS_THREADS));
        table_string(table, query_text(query, PROCESS_PYTHON, NULL));
        if (ranks && query_type(query, PROCESS_RANK) == QUERY_NULL)
            table_null(table);
        else if (ranks) {
            int made = snprintf(rank, sizeof rank, "%" PRId64, query_integer(query, PROCESS_RANK));
            if (query_type(query, PROCESS_LOCAL_RANK) != QUERY_NULL &&
                query_integer(query, PROCESS_LOCAL_RANK) != query_integer(query, PROCESS_RANK))
                snprintf(rank + made, sizeof rank - (size_t)made, " (%" PRId64 " here)",
                         query_integer(query, PROCESS_LOCAL_RANK));
            table_string(table, rank);
        }
        if (torch)
            result_cell(table, query, PROCESS_TORCH_MODE);
        argv = report_words(report->db, query_text(query, PROCESS_ARGV, NULL));
        table_string(table, argv ? argv : "");
        free(argv);
    }
    if (table_close(table))
        more_print(report, rows, query);
    return query_close(query);
}

/* How calls that a compiler was asked about were decided. */
static bool outcomes_print(struct report *report)
{
    struct table *table;
    char human[TABLE_HUMAN], text[64];

    if (!report->sums.asked && !report->calls[OUTCOME_PLAIN] && !report->turned_away)
        return true;
    title_print(report, "Calls, as they were decided");
    if (report->sums.asked)
        fprintf(report->out, "%.3g %% hits, %.3g %% ran as Python, of %s calls\n",
                report_percent(report, report->sums.hits),
                report_percent(report, report->sums.python), table_count(human, report->sums.asked));
    if (report->turned_away)
        fprintf(report->out, "not counted: %s calls of functions that the compiler turned away unread (`dyntrace sql FILE skips`)\n",
                table_count(human, report->turned_away));
    table = table_open(report->out, table_format(report->out, false), 4,
                       (const char *[]){"calls", "share", "lookups", "outcome"});
    for (int o = 0; table && o < OUTCOMES; o++) {
        if (!report->calls[o])
            continue;
        table_figure(table, table_count(human, report->calls[o]));
        snprintf(text, sizeof text, "%.3g %%", report_percent(report, report->calls[o]));
        table_figure(table, outcome_facts[o].asked ? text : "");
        table_figure(table, table_duration(human, report->times_ns[o]));
        table_string(table, outcome_word(o));
    }
    return table_close(table);
}

/* What all compiles were, in a sentence. */
static bool compiles_sum(struct report *report)
{
    struct query *query = db_query(report->db, schema_statement("report/compile_sums"));
    FILE *out = report->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN], c[TABLE_HUMAN];

    if (query_step(query)) {
        int64_t made = query_integer(query, 0), of = query_integer(query, 1), again = query_integer(query, 3), breaks = query_integer(query, 4);
        int64_t limits = query_integer(query, 5), errors = query_integer(query, 6), without = query_integer(query, 7);
        fprintf(out, "%s compile%s of %s code object%s, %s", table_count(a, made), made == 1 ? "" : "s",
                table_count(b, of),
                of == 1 ? "" : "s", table_duration(c, query_integer(query, 2)));
        fprintf(out, "; %s recompile%s, %s graph break%s", table_count(a, again), again == 1 ? "" : "s",
                table_count(b, breaks),
                breaks == 1 ? "" : "s");
        if (limits)
            fprintf(out, "; %s reached the limit", table_count(a, limits));
        if (errors)
            fprintf(out, "; %s failed", table_count(a, errors));
        if (without)
            fprintf(out, "; %s attempt%s without code (`dyntrace sql FILE skips`)", table_count(a, without),
                    without == 1 ? "" : "s");
        putc('\n', out);
    }
    return query_close(query);
}

/* TEXT up to WIDTH bytes; 0: all of it. */
static void text_cell(struct table *table, struct query *query, int at, size_t width)
{
    const char *text = query_text(query, at, NULL);
    size_t bytes = width ? prose_cut(text, width) : 0;
    char *cut = NULL;

    if (!width || query_type(query, at) == QUERY_NULL) {
        result_cell(table, query, at);
        return;
    }
    if (asprintf(&cut, "%.*s%s", (int)bytes, text, text[bytes] ? "…" : "") < 0)
        cut = NULL;
    table_string(table, cut);
    free(cut);
}

static void where_cell(struct table *table, struct query *query, int filename, int line)
{
    char *where;

    if (query_type(query, filename) == QUERY_NULL ||
        asprintf(&where, "%s:%" PRId64, prose_path(query_text(query, filename, NULL)), query_integer(query, line)) < 0)
        where = NULL;
    table_string(table, where);
    free(where);
}

static void cell_print(struct table *table, struct query *query, const struct column *column)
{
    int at = column->at - 'a';
    char human[TABLE_HUMAN];
    bool none = query_type(query, at) == QUERY_NULL;

    if (column->type == CELL_WHERE)
        where_cell(table, query, at, column->line - 'a');
    else if (column->type == CELL_COUNT || column->type == CELL_TIME)
        table_figure(table, none                         ? ""
                            : column->type == CELL_COUNT ? table_count(human, query_integer(query, at))
                                                         : table_duration(human, query_integer(query, at)));
    else
        text_cell(table, query, at, column->width);
}

/* A table; left out when it has no rows. */
static bool section_print(struct report *report, const struct section *section)
{
    struct query *query = db_query(report->db, schema_statement(section->statement));
    bool any = query_step(query);
    const char *names[12];
    struct table *table;
    int64_t rows = 0;
    int columns = (int)strlen(section->text);

    if (!any && !section->always)
        return query_close(query);
    title_print(report, section->title);
    if (!strcmp(section->id, "compiles") && !compiles_sum(report)) {
        query_close(query);
        return false;
    }
    for (int i = 0; i < columns; i++)
        names[i] = section_column(section, section->text, i)->name;
    table = table_open(report->out, table_format(report->out, false), columns, names);
    for (; table && any; rows++, any = rows != report->limit && query_step(query))
        for (int i = 0; i < columns; i++)
            cell_print(table, query, section_column(section, section->text, i));
    if (table_close(table))
        more_print(report, rows, query);
    return query_close(query);
}

/* ---- the command ----------------------------------------------------------- */

/* The page for a terminal. */
static bool report_text(struct report *report)
{
    bool ok = head_print(report);

    ok = losses_print(report) && ok;
    ok = processes_print(report) && ok;
    ok = section_print(report, &report_threads) && ok;
    ok = outcomes_print(report) && ok;
    for (const struct section *section = report_sections; section->id; section++)
        if (section->text)
            ok = section_print(report, section) && ok;
    return ok;
}

static bool report_run(struct report *report, const char *path, const char *page, bool force)
{
    struct out_file out = {0};
    char *directory;
    bool ok = false;

    report->db = db_open(path);
    if (!report->db)
        return false;
    if (page && out_is(page, db_path(report->db))) {
        say_error("report: %s: is the trace itself", page);
        return false;
    }
    if (page && !out_open(&out, page, force))
        goto out;
    report->out = page ? out.file : stdout;
    /* One snapshot, so that the parts agree while the recording goes on. */
    db_run(report->db, "BEGIN");
    report->state = db_meta(report->db, "state");
    if (report->state && !strcmp(report->state, "recording")) {
        directory = db_meta(report->db, "session");
        report->live = session_live(directory);
        free(directory);
    }
    report->progress = progress_begin("reading");
    ok = (!page || pictures_begin(report)) && report_read(report);
    if (ok)
        ok = page ? report_html(report) : report->json ? report_json(report) : report_text(report);
    pictures_free(report);
    progress_end(&report->progress);
    if (ok && page)
        ok = out_commit(&out);
out:
    out_close(&out);
    return ok;
}

static int report_main(int count, char **operands)
{
    struct report report = {.json = given.json, .limit = given.limit ? given.limit : given.page ? PAGE_LIMIT : LIMIT};
    bool ok;

    (void)count;
    if (given.page && given.json) {
        say_error("report: --json and --html: one form at a time");
        return 2;
    }
    ok = report_run(&report, operands[0], given.page, given.force);
    db_close(report.db);
    free(report.state);
    free(report.marks);
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
