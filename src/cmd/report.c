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
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "trace/prose.h"
#include "cmd/report/report.h"
#include "trace/result.h"
#include "lib/say.h"
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
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit, .help = "rows of each table; 0 is all. The default is 20, of a page 500"},
    OPTION_END,
};

/* ---- for people ------------------------------------------------------------ */

static void title_print(struct report *report, const char *title)
{
    bool colour = say_colour(report->out);

    fprintf(report->out, "\n%s%s%s\n", colour ? "\033[1m" : "", title, colour ? "\033[0m" : "");
}

static void more_print(struct report *report, int64_t all)
{
    if (report->limit >= 0 && all > report->limit)
        fprintf(report->out, "(%" PRId64 " of %" PRId64 "; --limit 0 shows all)\n", report->limit, all);
}

/* A line of the head: "frames  41.2 M". */
static void fact_print(struct table *table, const char *name, const char *value)
{
    table_string(table, name);
    table_string(table, value);
}

/* "torch  2.13.0+cpu, shim" and why it is not shim. */
static bool torch_facts_print(struct report *report, struct table *table)
{
    struct query *query;
    char *text;

    if (!report->torch)
        return true;
    query = db_query(report->db, report_torch);
    query_bind_integer(query, 1, 10);
    while (query_step(query)) {
        int64_t processes = query_integer(query, 3);
        char human[TABLE_HUMAN] = "";
        char *version = prose_column(query, 0), *mode = prose_column(query, 1);
        if (processes > 1)
            table_count(human, processes);
        if (asprintf(&text, "%.100s%s%.20s%s%s%s", version ? version : "?", mode ? ", " : "", mode ? mode : "",
                     processes > 1 ? ", " : "", human, processes > 1 ? " processes" : "") >= 0) {
            fact_print(table, "torch", text);
            free(text);
        }
        if (query_type(query, 2) != QUERY_NULL)
            fact_print(table, "", query_text(query, 2, NULL));
        free(version);
        free(mode);
    }
    return query_close(query);
}

static bool head_print(struct report *report)
{
    struct db *db = report->db;
    struct table *table = table_open(report->out, table_format(report->out, false), 2, (const char *[]){"", ""});
    const char *which = doubts_frames(db), *values = doubts_values(db);
    char *command = db_meta(db, "command"), *words = command ? report_words(db, command) : NULL, *host = db_meta(db, "host");
    char *clock = db_meta(db, "clock"), *version = db_meta(db, "dyntrace_version"), *text = NULL;
    char human[TABLE_HUMAN], other[TABLE_HUMAN], day[64];
    int64_t started = db_meta_integer(db, "started_unix_ns", 0), span = db_meta_integer(db, "span_ns", -1);
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = report_open_frames(db, frames);
    int64_t shortest = db_meta_integer(db, "min_duration_ns", 0);
    bool ok = false;

    if (!table)
        goto out;
    table_headless(table);
    fact_print(table, "trace", db_path(db));
    fact_print(table, "state", report_state(report));
    if (words)
        fact_print(table, "command", *words ? words : "not recorded (--no-argv)");
    if (started > 0) {
        time_t seconds = (time_t)(started / 1000000000);
        struct tm tm;
        if (localtime_r(&seconds, &tm) && strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &tm) &&
            asprintf(&text, "%s%s%s%s%s", day, host ? " on " : "", host ? host : "", version ? " by dyntrace " : "",
                     version ? version : "") >= 0) {
            fact_print(table, "recorded", text);
            free(text);
        }
    }
    if (span >= 0)
        fact_print(table, "span", table_duration(human, span));
    if (frames < 0)
        text = strdup("not known yet");
    else if (asprintf(&text, "%s%s%s%s%s", table_count(human, frames), open > 0 ? ", of which " : "",
                      open > 0 ? table_count(other, open) : "", open > 0 ? " still open" : "",
                      report->live != LIVE_NO && frames == 0 ? " (single frames are stored at the end)" : "") < 0)
        text = NULL;
    fact_print(table, "frames", text);
    free(text);
    if (which)
        fact_print(table, "which", which);
    if (values)
        fact_print(table, "values", values);
    if (shortest > 0 && asprintf(&text, "frames under %s are in the totals only", table_duration(human, shortest)) >= 0) {
        fact_print(table, "stored", text);
        free(text);
    }
    fact_print(table, "processes", table_count(human, db_integer(db, 0, "SELECT COUNT(*) FROM process")));
    fact_print(table, "threads", table_count(human, db_integer(db, 0, "SELECT COUNT(*) FROM thread")));
    if (clock)
        fact_print(table, "clock", clock);
    ok = torch_facts_print(report, table);
out:
    if (!table_close(table))
        ok = false;
    free(command);
    free(words);
    free(host);
    free(clock);
    free(version);
    return ok;
}

static bool losses_print(struct report *report)
{
    struct query *query = db_query(report->db, report_losses);
    struct table *table = NULL;
    char human[TABLE_HUMAN];
    int64_t all = db_integer(report->db, 0, "SELECT COUNT(DISTINCT COALESCE(cause, '')) FROM loss");

    query_bind_integer(query, 1, report->limit);
    if (all > 0) {
        title_print(report, "Losses");
        table = table_open(report->out, table_format(report->out, false), 5,
                           (const char *[]){"", "events", "times", "first at", "cause"});
    }
    while (table && query_step(query)) {
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
        more_print(report, all);
    return query_close(query);
}

/* Columns that only some traces have a use for: ranks of a distributed job, torch. */
static bool any_process(struct report *report, const char *column)
{
    char *sql = NULL;
    bool any = asprintf(&sql, "SELECT EXISTS (SELECT 1 FROM process WHERE %s IS NOT NULL)", column) >= 0 &&
               db_integer(report->db, 0, sql);

    free(sql);
    return any;
}

#define PROCESSES(local_rank, torch_mode) PROCESS_TREE \
    "SELECT t.depth, p.pid, p.exit_code, p.exit_signal, p.end_ns, p.end_ns - p.start_ns, p.rank, p.python_version," \
    "       CASE WHEN json_valid(p.argv) THEN" \
    "         (SELECT group_concat(value, ' ') FROM json_each(CASE WHEN json_valid(p.argv) THEN p.argv ELSE '[]' END))" \
    "       ELSE p.argv END," \
    "       (SELECT COUNT(*) FROM thread h WHERE h.process_id = p.process_id), " local_rank ", " torch_mode " " \
    "FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path LIMIT ?1"

static bool processes_print(struct report *report)
{
    bool ranks = any_process(report, "rank"), torch = report->torch && any_process(report, "torch_version"), ok = false;
    const char *names[8] = {"pid", "ended", "ran", "threads", "python"};
    struct query *query = NULL;
    struct table *table = NULL;
    char human[TABLE_HUMAN], words[64], pid[160], rank[64];
    int columns = 5;

    query = db_query(report->db, report->torch ? PROCESSES("p.local_rank", "p.torch_mode") : PROCESSES("NULL", "NULL"));
    title_print(report, "Processes");
    if (ranks)
        names[columns++] = "rank";
    if (torch)
        names[columns++] = "torch";
    names[columns++] = "command";
    table = table_open(report->out, table_format(report->out, false), columns, names);
    query_bind_integer(query, 1, report->limit);
    while (table && query_step(query)) {
        snprintf(pid, sizeof pid, "%*s%" PRId64, (int)query_integer(query, 0) * 2, "", query_integer(query, 1));
        table_string(table, pid);
        table_string(table, report_ended(report, query, 2, 3, 4, words));
        table_figure(table, query_type(query, 5) == QUERY_NULL ? "" : table_duration(human, query_integer(query, 5)));
        table_integer(table, query_integer(query, 9));
        table_string(table, query_text(query, 7, NULL));
        if (ranks && query_type(query, 6) == QUERY_NULL)
            table_null(table);
        else if (ranks) {
            int made = snprintf(rank, sizeof rank, "%" PRId64, query_integer(query, 6));
            if (query_type(query, 10) != QUERY_NULL && query_integer(query, 10) != query_integer(query, 6))
                snprintf(rank + made, sizeof rank - (size_t)made, " (%" PRId64 " here)", query_integer(query, 10));
            table_string(table, rank);
        }
        if (torch)
            result_cell(table, query, 11);
        table_string(table, query_text(query, 8, NULL));
    }
    ok = table_close(table);
    if (ok)
        more_print(report, db_integer(report->db, 0, "SELECT COUNT(*) FROM process"));
    return query_close(query);
}

static bool threads_print(struct report *report)
{
    struct query *query = db_query(report->db,
        "SELECT p.pid, t.os_tid, COALESCE(t.name, '') FROM thread t LEFT JOIN process p ON p.process_id = t.process_id "
        "ORDER BY t.process_id, t.thread_id LIMIT ?1");
    struct table *table;

    title_print(report, "Threads");
    table = table_open(report->out, table_format(report->out, false), 3, (const char *[]){"pid", "tid", "name"});
    query_bind_integer(query, 1, report->limit);
    while (table && query_step(query))
        result_row(table, query);
    if (table_close(table))
        more_print(report, db_integer(report->db, 0, "SELECT COUNT(*) FROM thread"));
    return query_close(query);
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

/* What all compiles were, in a sentence. */
static bool compiles_sum(struct report *report)
{
    struct query *query = db_query(report->db,
        "SELECT COUNT(cache_entry_id), COUNT(DISTINCT CASE WHEN cache_entry_id IS NOT NULL THEN code_id END),"
        "       SUM(end_ns - start_ns), COUNT(*) - COUNT(cache_entry_id), (SELECT COUNT(*) FROM graph_break),"
        "       COUNT(DISTINCT CASE WHEN outcome = 'limit' THEN code_id END), SUM(outcome = 'error') FROM compile");
    FILE *out = report->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN], c[TABLE_HUMAN];

    if (query_step(query)) {
        int64_t made = query_integer(query, 0), of = query_integer(query, 1), breaks = query_integer(query, 4);
        int64_t limits = query_integer(query, 5), errors = query_integer(query, 6), without = query_integer(query, 3) - errors;
        fprintf(out, "%s compile%s of %s code object%s, %s", table_count(a, made), made == 1 ? "" : "s", table_count(b, of),
                of == 1 ? "" : "s", table_duration(c, query_integer(query, 2)));
        fprintf(out, "; %s recompile%s, %s graph break%s", table_count(a, made - of), made - of == 1 ? "" : "s",
                table_count(b, breaks), breaks == 1 ? "" : "s");
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

static bool compiles_print(struct report *report)
{
    struct query *query;
    struct table *table;
    char human[TABLE_HUMAN], words[64];

    if (!report->compiles || !db_integer(report->db, 0, "SELECT EXISTS (SELECT 1 FROM compile)"))
        return true;
    title_print(report, "Compiles, most recompiles first");
    if (!compiles_sum(report))
        return false;
    query = db_query(report->db, report_compiled);
    table = table_open(report->out, table_format(report->out, false), 7,
                       (const char *[]){"compiles", "recompiles", "breaks", "time", "ended", "function", "where"});
    query_bind_integer(query, 1, report->limit);
    while (table && query_step(query)) {
        int64_t limits = query_integer(query, 8), errors = query_integer(query, 9);
        table_figure(table, table_count(human, query_integer(query, 3)));
        table_figure(table, table_count(human, query_integer(query, 4)));
        table_figure(table, table_count(human, query_integer(query, 5)));
        table_figure(table, table_duration(human, query_integer(query, 7)));
        if (limits && !errors)
            table_string(table, "at the limit");
        else if (errors) {
            snprintf(words, sizeof words, "%sfailed %" PRId64 " time%s", limits ? "at the limit, " : "", errors,
                     errors == 1 ? "" : "s");
            table_string(table, words);
        } else
            table_string(table, "");
        result_cell(table, query, 0);
        where_cell(table, query, 1, 2);
    }
    if (table_close(table))
        more_print(report, db_integer(report->db, 0, "SELECT COUNT(*) FROM (SELECT 1 FROM compile m LEFT JOIN code c USING(code_id)"
                   " GROUP BY c.filename, c.qualname, c.first_line HAVING COUNT(m.cache_entry_id)"
                   " + SUM(m.outcome IS 'limit') + SUM(m.outcome IS 'error') > 0)"));
    return query_close(query);
}

/* How calls that a compiler was asked about were decided. */
static bool outcomes_print(struct report *report)
{
    struct table *table;
    char human[TABLE_HUMAN], text[64];
    double hits = report_hit_rate(report), eager = report_eager_share(report);

    if (!report->calls)
        return true;
    title_print(report, "Calls, as they were decided");
    if (hits >= 0)
        fprintf(report->out, "%.3g %% hits, %.3g %% ran as Python, of those that could run compiled code\n", hits, eager);
    table = table_open(report->out, table_format(report->out, false), 4, (const char *[]){"calls", "share", "lookups", "outcome"});
    for (int o = 0; table && o < OUTCOMES; o++) {
        if (!report->outcomes[o])
            continue;
        table_figure(table, table_count(human, report->outcomes[o]));
        snprintf(text, sizeof text, "%.3g %%", 100.0 * (double)report->outcomes[o] / (double)report->calls);
        table_figure(table, text);
        table_figure(table, table_duration(human, report->times_ns[o]));
        table_string(table, outcome_word(o));
    }
    return table_close(table);
}

/* TEXT up to WIDTH bytes. The caller frees it. */
static char *cut(const char *text, size_t width)
{
    size_t bytes = prose_cut(text, width);
    char *made = NULL;

    if (asprintf(&made, "%.*s%s", (int)bytes, text, text[bytes] ? "…" : "") < 0)
        return NULL;
    return made;
}

static void cut_cell(struct table *table, struct query *query, int column, size_t width)
{
    char *text = query_type(query, column) == QUERY_NULL ? NULL : cut(query_text(query, column, NULL), width);

    table_string(table, text);
    free(text);
}

/* A table that is left out when it has no rows. */
static struct table *section(struct report *report, struct query *query, const char *title, int columns, const char *const *names)
{
    query_bind_integer(query, 1, report->limit);
    if (!query_step(query))
        return NULL;
    title_print(report, title);
    return table_open(report->out, table_format(report->out, false), columns, names);
}

static bool causes_print(struct report *report)
{
    struct query *query = db_query(report->db, report_causes);
    struct table *table = section(report, query, "Recompiles, by what made them needed", 6,
                                  (const char *[]){"recompiles", "guard", "looked at", "saw", "function", "where"});
    char human[TABLE_HUMAN];

    if (table) {
        do {
            table_figure(table, table_count(human, query_integer(query, 3)));
            result_cell(table, query, 4);
            cut_cell(table, query, query_type(query, 5) == QUERY_NULL ? 10 : 5, 80);
            cut_cell(table, query, 7, 60);
            result_cell(table, query, 0);
            where_cell(table, query, 1, 2);
        } while (query_step(query));
        table_close(table);
    }
    return query_close(query);
}

static bool breaks_print(struct report *report)
{
    struct query *query = db_query(report->db, report_breaks);
    struct table *table = section(report, query, "Graph breaks, by place", 4, (const char *[]){"times", "reason", "function", "where"});
    char human[TABLE_HUMAN];

    if (table) {
        do {
            table_figure(table, table_count(human, query_integer(query, 4)));
            cut_cell(table, query, 5, 100);
            result_cell(table, query, 0);
            where_cell(table, query, 1, query_type(query, 3) == QUERY_NULL ? 2 : 3);
        } while (query_step(query));
        table_close(table);
    }
    return query_close(query);
}

static bool guards_print(struct report *report)
{
    struct query *query = db_query(report->db, report_guards);
    struct table *table = section(report, query, "Guards, dearest first (a check's time is divided evenly among those that ran)", 5,
                                  (const char *[]){"evaluations", "failures", "time", "guard", "looks at"});
    char human[TABLE_HUMAN];

    if (table) {
        do {
            table_figure(table, table_count(human, query_integer(query, 2)));
            table_figure(table, table_count(human, query_integer(query, 3)));
            table_figure(table, query_type(query, 4) == QUERY_NULL ? "?" : table_duration(human, query_integer(query, 4)));
            result_cell(table, query, 0);
            cut_cell(table, query, 1, 80);
        } while (query_step(query));
        table_close(table);
    }
    return query_close(query);
}

static bool functions_print(struct report *report)
{
    struct query *query = db_query(report->db, report_hot);
    struct table *table;
    char human[TABLE_HUMAN];

    title_print(report, "Hot functions, most own time first");
    table = table_open(report->out, table_format(report->out, false), 7,
                       (const char *[]){"calls", "total", "self", "per call", "raised", "function", "where"});
    query_bind_integer(query, 1, report->limit);
    while (table && query_step(query)) {
        table_figure(table, table_count(human, query_integer(query, 4)));
        table_figure(table, table_duration(human, query_integer(query, 5)));
        table_figure(table, table_duration(human, query_integer(query, 6)));
        table_figure(table, query_type(query, 7) == QUERY_NULL ? "" : table_duration(human, query_integer(query, 7)));
        table_figure(table, table_count(human, query_integer(query, 8)));
        result_cell(table, query, 0);
        where_cell(table, query, 1, 2);
    }
    table_close(table);
    return query_close(query);
}

/* ---- the command ----------------------------------------------------------- */

/* The page for a terminal. */
static bool report_text(struct report *report)
{
    bool ok = head_print(report);

    ok = losses_print(report) && ok;
    ok = processes_print(report) && ok;
    ok = threads_print(report) && ok;
    ok = outcomes_print(report) && ok;
    ok = compiles_print(report) && ok;
    if (report->lookups) {
        ok = causes_print(report) && ok;
        ok = breaks_print(report) && ok;
        ok = guards_print(report) && ok;
    }
    return functions_print(report) && ok;
}

static bool report_run(struct report *report, const char *path, const char *page, bool force)
{
    struct out_file out = {0};
    struct query *snapshot;
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
    snapshot = db_query(report->db, "BEGIN");
    query_step(snapshot);
    query_close(snapshot);
    report->state = db_meta(report->db, "state");
    report->torch = find_column(report->db, "process", "torch_mode");
    report->compiles = find_column(report->db, "compile", "cache_entry_id") && find_column(report->db, "graph_break", "compile_id");
    report->lookups = report->compiles && find_column(report->db, "lookup", "outcome") && find_column(report->db, "guard", "ordinal") &&
                      find_column(report->db, "guard_check", "failed_guard_id") && find_column(report->db, "recompile_cause", "ordinal") &&
                      find_column(report->db, "cache_entry", "label");
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
    setlocale(LC_CTYPE, "");
    ok = report_run(&report, operands[0], given.page, given.force);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say_error("output: cannot be written");
        ok = false;
    }
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
