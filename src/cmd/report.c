/* cmd/report.c -- `dyntrace report`: a trace on one page.
 *
 * What was recorded, what is missing, which processes and threads there were,
 * how calls were decided, what was compiled, again and why, where graphs broke,
 * what guards cost, where the time went. Frames are not read, so that it is
 * quick on a day's recording, and works while that goes on. Losses come before
 * anything that they make doubtful. */
#include <math.h>

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
#include "trace/result.h"
#include "trace/traces.h"

enum {
    LIMIT = 20,          /* rows of each table, unless --limit */
    PAGE_LIMIT = 500,    /* the same of the HTML page, which can be searched */
    COUNTABLE = 2000000, /* frames that can be read in passing */
};

static struct {
    bool json, force;
    const char *page; /* --html */
    int64_t limit;    /* 0: not given, -1: all */
} given;

static const struct option options[] = {
    {"json", .read = option_flag, .to = &given.json,
     .help = "the same for a program, times in nanoseconds"},
    {"html", .value = "OUT", .read = option_text, .to = &given.page,
     .help = "one file for a browser that loads nothing from elsewhere: all of that in tables that "
             "sort and filter, a timeline of threads with compiles and misses, and a flame graph. "
             "It reads every frame"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace OUT"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit,
     .help = "rows of each table; 0 is all. The default is 20, of a page 500"},
    OPTION_END,
};

/* ---- calls --------------------------------------------------------------- */

/* Keep about REPORT_MARKS of the calls that were no hits, evenly: when they are too many, every
 * other is dropped, and from then on only every other is kept. */
static void call_mark(void *context, const struct counted_call *call)
{
    struct report *report = context;

    if (!outcome_facts[call->outcome].missed || call->outcome == OUTCOME_DECLINED ||
        report->missed++ % report->stride)
        return;
    if (report->mark_count == REPORT_MARKS) {
        for (size_t i = 0; i < REPORT_MARKS / 2; i++)
            report->marks[i] = report->marks[i * 2];
        report->mark_count = REPORT_MARKS / 2;
        report->stride *= 2;
    }
    report->marks[report->mark_count++] = *call;
}

static void calls_read(struct report *report)
{
    struct counts counts = {.each = call_mark, .context = report};

    report->frames = db_meta_integer(report->db, "frame_count", -1);
    report->open_frames = db_meta_integer(report->db, "open_frame_count", -1);
    if (report->open_frames < 0 && report->frames >= 0 && report->frames <= COUNTABLE)
        report->open_frames = db_integer(report->db, -1, schema_statement("report/open_frames"));
    counts_read(&counts, report->db, &report->progress);
    for (size_t i = 0; i < counts.all.count; i++) {
        const struct count *count = &counts.all.at[i];
        struct count_calls decided = counts_calls(&counts, count);
        for (int o = 0; o < OUTCOMES; o++) {
            int64_t *calls = count->turned_away ? &report->turned_away : &report->calls[o];
            int64_t *time = count->turned_away ? &report->turned_away_ns : &report->times_ns[o];
            *calls += decided.calls[o];
            *time = times_sum(*time, decided.times_ns[o]);
        }
    }
    report->sums = calls_sum(report->calls);
    counts_free(&counts);
}

bool report_decided(const struct report *report)
{
    return report->sums.asked || report->calls[OUTCOME_PLAIN] || report->turned_away;
}

double report_percent(const struct report *report, int64_t part)
{
    return report->sums.asked ? 100.0 * (double)part / (double)report->sums.asked : -1;
}

void report_outcomes(const struct report *report, struct json *json, const char *key)
{
    json_object(json, key);
    for (int o = 0; o < OUTCOMES; o++) {
        json_object(json, outcome_word(o));
        json_integer(json, "calls", report->calls[o]);
        json_integer(json, "lookup_ns", report->times_ns[o]);
        json_end(json);
    }
    json_end(json);
}

/* ---- the recording as a whole -------------------------------------------- */

static const char *state_words(const struct report *report)
{
    if (!report->state)
        return "unknown";
    if (!strcmp(report->state, "recording"))
        return report->live == LIVE_YES  ? "still recording"
               : report->live == LIVE_NO ? "interrupted: the recorder is gone; `dyntrace fsck FILE "
                                           "--recover` completes it"
                                         : "still recording, or interrupted (then `dyntrace fsck "
                                           "FILE --recover` completes it)";
    if (!strcmp(report->state, "recovered"))
        return "recovered after the recorder was killed";
    return report->state;
}

void report_facts(struct report *report, void (*put)(void *to, const char *name, const char *value),
                  void *to)
{
    struct db *db = report->db;
    const char *which = doubts_frames(db), *values = doubts_values(db);
    char *settings = doubts_settings(db);
    int64_t frames = report->frames, open = report->open_frames,
            shortest = db_meta_integer(db, "min_duration_ns", 0);
    char human[TABLE_HUMAN], other[TABLE_HUMAN], text[200], *left_out = doubts_left_out(db);

    put(to, "trace", db_path(db));
    put(to, "state", state_words(report));
    db_rows(query, db, schema_statement("report/facts"))
    {
        const char *name = query_text(query, 0, NULL);
        int64_t value = query_integer(query, 1);
        if (query_type(query, 1) == QUERY_TEXT)
            put(to, name, query_text(query, 1, NULL));
        else if (query_type(query, 1) == QUERY_INTEGER)
            put(to, name,
                !strcmp(name, "span") ? table_duration(human, value) : table_count(human, value));
        if (query_type(query, 2) != QUERY_NULL)
            put(to, "", query_text(query, 2, NULL));
        if (strcmp(name, "frames") != 0)
            continue;
        snprintf(text, sizeof text, "%s%s%s%s%s",
                 frames < 0 ? "not known yet" : table_count(human, frames),
                 open > 0 ? ", of which " : "", open > 0 ? table_count(other, open) : "",
                 open > 0 ? " still open" : "",
                 report->live != LIVE_NO && frames == 0 ? " (single frames are stored at the end)"
                                                        : "");
        put(to, "frames", text);
        if (which)
            put(to, "which", which);
        if (left_out)
            put(to, "left out", left_out);
        if (values)
            put(to, "values", values);
        if (settings)
            put(to, "settings", settings);
        snprintf(text, sizeof text, "frames under %s are in the totals only",
                 table_duration(human, shortest));
        if (shortest > 0)
            put(to, "stored", text);
    }
    free(left_out);
    free(settings);
}

/* ---- for a terminal ------------------------------------------------------ */

static void fact_print(void *table, const char *name, const char *value)
{
    table_string(table, name);
    table_string(table, value);
}

/* The report for a terminal. */
static void report_text(struct report *report)
{
    static const char *const tables[] = {"losses", "processes", "threads", "outcomes", "compiles",
                                         "causes", "trials",    "breaks",  "guards",   "functions"};
    struct table *table =
        table_open(report->out, table_format(report->out, false), 2, (const char *[]){"", ""});

    table_headless(table);
    report_facts(report, fact_print, table);
    table_close(table);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i], "outcomes") != 0 || report_decided(report))
            report_table(report, tables[i], false);
}

/* ---- for programs -------------------------------------------------------- */

/* The rows of the statement NAME as the member KEY. Columns that begin with _ are for people; argv
 * is JSON already. */
static void rows_json(struct report *report, struct json *json, const char *key, const char *name)
{
    char path[64];
    struct query *query;
    struct table *table;
    int columns = 0, all;

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
                table_json(table, query_whole(query, i, NULL));
            else if (*query_name(query, i) != '_')
                result_cell(table, query, i);
    table_close(table);
    query_close(query);
}

static void meta_json(struct report *report, struct json *json)
{
    json_object(json, "meta");
    db_rows(query, report->db, schema_statement("report/meta"))
    {
        size_t bytes;
        const char *key = query_whole(query, 0, NULL), *text;
        if (query_type(query, 1) != QUERY_NULL && query_integer(query, 2)) {
            text = query_whole(query, 1, &bytes);
            json_raw(json, key, text, bytes);
        } else {
            result_member(json, key, query, 1);
        }
    }
    json_end(json);
}

static void report_json(struct report *report)
{
    static const char *const lists[][2] = {
        {"losses", "losses"},           {"processes", "processes"},
        {"threads", "threads"},         {"torch", "torch"},
        {"compiles", "compiles"},       {NULL}, /* the outcomes */
        {"recompile_causes", "causes"}, {"recompiles", "recompiles"},
        {"trials", "trials"},           {"graph_breaks", "breaks"},
        {"limits_reached", "limits"},   {"guard_bill", "guards"},
        {"hot_functions", "functions"},
    };
    struct json *json = &(struct json){.out = report->out};
    struct db *db = report->db;
    double hits = report_percent(report, report->sums.hits),
           eager = report_percent(report, report->sums.python);
    struct query *query = db_query(db, schema_statement("report/sums"));
    char *left_out = doubts_left_out(db);

    json_object(json, NULL);
    json_lines(json);
    json_string(json, "file", db_path(db));
    if (report->live == LIVE_UNKNOWN)
        json_null(json, "live");
    else
        json_bool(json, "live", report->live == LIVE_YES);
    meta_json(report, json);
    json_string(json, "left_out", left_out);
    free(left_out);
    if (report->frames >= 0)
        query_bind_integer(query, 1, report->frames);
    if (report->open_frames >= 0)
        query_bind_integer(query, 2, report->open_frames);
    query_step(query);
    for (int i = 0; i < query_columns(query); i++)
        result_member(json, query_name(query, i), query, i);
    query_close(query);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lists[i][0]) {
            rows_json(report, json, lists[i][0], lists[i][1]);
            continue;
        }
        report_outcomes(report, json, "outcomes");
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

/* ---- the command line ---------------------------------------------------- */

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
    calls_read(report);
    if (db_failed(report->db))
        ok = false;
    else if (report->page)
        ok = report_html(report);
    else if (given.json)
        report_json(report);
    else
        report_text(report);
    progress_end(&report->progress);
    return ok && !db_failed(report->db);
}

static int report_main(int count, char **operands)
{
    static struct report report;
    struct out_file out = {0};
    bool ok = false;

    if (given.page && given.json) {
        say_error("report: --json and --html: one form at a time");
        return 2;
    }
    if (!(report.db = traces_open(operands, given.page ? MERGE_FRAMES : MERGE_COUNTED)))
        return 2;
    if (given.page && traces_has(given.page)) {
        say_error("report: %s: is the trace itself", given.page);
    } else if (!given.page || out_open(&out, given.page, given.force)) {
        report.page = given.page;
        report.stride = 1;
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
    .operands = "[FILE...]",
    .about = "A trace on one page: losses, processes, threads, how calls were decided, what was "
             "compiled and why again, graph breaks, guards, where the time went. FILE is the "
             "newest *.db trace here unless given; it may still be recorded.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = report_main,
};
