/* cmd_report.c -- `dyntrace report`: a trace on one page.
 *
 * Runs in: the viewer.
 *
 * What was recorded, what is missing, which processes and threads there were,
 * what was compiled, where the time went. It reads the small tables and the live totals only, so
 * it is as quick on a day's recording as on a second's, and works while the
 * recording goes on. Losses come before anything that they make doubtful. */
#include <inttypes.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "command.h"
#include "db.h"
#include "find_code.h"
#include "json.h"
#include "prose.h"
#include "result.h"
#include "say.h"
#include "table.h"

enum {
    LIMIT = 20,            /* rows of each table, unless --limit */
    COUNTABLE = 2000000,   /* frames that can be read in passing */
};

static const char usage[] =
    "usage: dyntrace report [FILE] [--json] [--limit N]\n\n"
    "A trace on one page: losses, processes, threads, what was compiled, where the time went.\n"
    "FILE is the newest *.db trace here unless given; it may still be recorded.\n\n"
    "  --json     the same for a program, times in nanoseconds\n"
    "  --limit N  rows of each table (20; 0 is all)\n";

/* ---- what all parts share -------------------------------------------------- */

enum liveness { LIVE_NO, LIVE_YES, LIVE_UNKNOWN };

struct report {
    struct db *db; /* owned */
    FILE *out;     /* borrowed */
    int64_t limit; /* -1: all */
    bool json;
    char *state;   /* owned: meta.state */
    enum liveness live;
    bool torch;    /* the trace says how torch was watched */
    bool compiles; /* it has the tables about compiles */
};

/* Processes in the order of a tree, a parent before its children. A process
 * whose parent was not followed, or is itself, is a root. */
#define PROCESS_TREE \
    "WITH RECURSIVE tree(process_id, depth, path) AS (" \
    "  SELECT process_id, 0, printf('%020d', process_id) FROM process" \
    "  WHERE parent_process_id IS NULL OR parent_process_id = process_id" \
    "     OR parent_process_id NOT IN (SELECT process_id FROM process)" \
    "  UNION ALL" \
    "  SELECT p.process_id, depth + 1, path || printf('%020d', p.process_id)" \
    "  FROM tree CROSS JOIN process p ON p.parent_process_id = tree.process_id" \
    "  WHERE depth < 60 AND p.process_id <> tree.process_id) "

/* As the view of this name; the one in a stranger's file may be anything. */
#define HOT_FUNCTIONS \
    "SELECT c.qualname, c.filename, c.first_line, c.kind, SUM(n.calls) AS calls, SUM(n.total_ns) AS total_ns," \
    "       SUM(n.self_ns) AS self_ns, SUM(n.total_ns) / NULLIF(SUM(n.calls), 0) AS ns_per_call," \
    "       SUM(n.raised) AS raised " \
    "FROM code_total n LEFT JOIN code c ON c.code_id = n.code_id " \
    "GROUP BY c.filename, c.qualname, c.first_line, c.kind " \
    "ORDER BY self_ns DESC, calls DESC LIMIT ?1"

/* Many losses have one cause: a row per cause and kind, the worst first. */
#define LOSSES \
    "SELECT cause, COUNT(*) AS times, SUM(events) AS events, MIN(at_ns) AS first_ns, MAX(at_ns) AS last_ns," \
    "       COUNT(DISTINCT process_id) AS processes, cause LIKE 'stall:%' AS is_stall " \
    "FROM loss GROUP BY cause ORDER BY is_stall, events DESC LIMIT ?1"

/* What was compiled, a row per function, those that were compiled again most often first. What torch only turned
 * away (its own functions, those without tensors) is in the query `skips`. */
#define COMPILED \
    "WITH broken AS MATERIALIZED (SELECT m.code_id, COUNT(*) AS breaks FROM graph_break b" \
    "  CROSS JOIN compile m ON m.compile_id = b.compile_id GROUP BY m.code_id)," \
    " tried AS MATERIALIZED (SELECT code_id, COUNT(*) AS tries, COUNT(cache_entry_id) AS made," \
    "  SUM(end_ns - start_ns) AS ns, SUM(outcome IS 'limit') AS limits, SUM(outcome IS 'error') AS errors" \
    "  FROM compile GROUP BY code_id) " \
    "SELECT c.qualname, c.filename, c.first_line, SUM(t.made) AS compiles, SUM(t.made) - SUM(t.made > 0) AS recompiles," \
    "       COALESCE(SUM(b.breaks), 0) AS graph_breaks, SUM(t.tries - t.made) AS without_code, SUM(t.ns) AS compile_ns," \
    "       SUM(t.limits) AS limits, SUM(t.errors) AS errors " \
    "FROM tried t LEFT JOIN code c ON c.code_id = t.code_id LEFT JOIN broken b ON b.code_id = t.code_id " \
    "GROUP BY c.filename, c.qualname, c.first_line HAVING SUM(t.made) + SUM(t.limits) + SUM(t.errors) > 0 " \
    "ORDER BY recompiles DESC, graph_breaks DESC, compile_ns DESC, c.qualname LIMIT ?1"

/* Which torch there was, a row per version and way of watching it. */
#define TORCH \
    "SELECT torch_version, torch_mode, torch_note, COUNT(*) AS processes FROM process WHERE torch_version IS NOT NULL " \
    "GROUP BY torch_version, torch_mode, torch_note ORDER BY processes DESC, torch_version LIMIT ?1"

/* Does the collector of the session in DIRECTORY run? It holds a lock on a file
 * there. /proc/locks tells without touching the lock, which could get in the
 * way of a collector that is just starting. */
static enum liveness session_live(const char *directory)
{
    enum liveness live = LIVE_UNKNOWN;
    char *path = NULL, line[256];
    struct stat st;
    FILE *locks = NULL;

    if (!directory || asprintf(&path, "%s/collector.lock", directory) < 0)
        return LIVE_UNKNOWN;
    if (stat(path, &st) != 0 || !(locks = fopen("/proc/locks", "re")))
        goto out;
    live = LIVE_NO;
    while (fgets(line, sizeof line, locks)) {
        unsigned long long inode;
        /* "1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF" */
        if (sscanf(line, "%*s FLOCK %*s WRITE %*s %*x:%*x:%llu", &inode) == 1 && inode == st.st_ino)
            live = LIVE_YES;
    }
out:
    if (locks)
        fclose(locks);
    free(path);
    return live;
}

static const char *state_words(const struct report *report)
{
    if (!report->state)
        return "unknown";
    if (!strcmp(report->state, "recording"))
        return report->live == LIVE_YES ? "still recording"
               : report->live == LIVE_NO ? "interrupted: the recorder is gone; `dyntrace fsck FILE --recover` completes it"
                                         : "still recording, or interrupted (then `dyntrace fsck FILE --recover` completes it)";
    if (!strcmp(report->state, "recovered"))
        return "recovered after the recorder was killed";
    return report->state;
}

/* The words of a JSON array with spaces between them. The caller frees it. */
static char *words_of(struct db *db, const char *json)
{
    struct query *query = db_query(db,
        "SELECT CASE WHEN json_valid(?1) THEN"
        " (SELECT group_concat(value, ' ') FROM json_each(CASE WHEN json_valid(?1) THEN ?1 ELSE '[]' END))"
        " ELSE ?1 END");
    char *words = NULL;

    query_bind_text(query, 1, json);
    if (query_step(query))
        words = strdup(query_text(query, 0, NULL));
    query_close(query);
    return words;
}

/* Open frames: counted by the recorder, or here where that is quick; else -1. */
static int64_t open_frames(struct db *db, int64_t frames)
{
    int64_t count = db_meta_integer(db, "open_frame_count", -1);

    if (count < 0 && frames >= 0 && frames <= COUNTABLE)
        count = db_integer(db, -1, "SELECT COUNT(*) FROM (SELECT end_ns FROM frame LIMIT 2000000) WHERE end_ns IS NULL");
    return count;
}

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
    query = db_query(report->db, TORCH);
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
    char *command = db_meta(db, "command"), *words = command ? words_of(db, command) : NULL, *host = db_meta(db, "host");
    char *clock = db_meta(db, "clock"), *version = db_meta(db, "dyntrace_version"), *text = NULL;
    char human[TABLE_HUMAN], other[TABLE_HUMAN], day[64];
    int64_t started = db_meta_integer(db, "started_unix_ns", 0), span = db_meta_integer(db, "span_ns", -1);
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = open_frames(db, frames);
    int64_t shortest = db_meta_integer(db, "min_duration_ns", 0);
    bool ok = false;

    if (!table)
        goto out;
    table_headless(table);
    fact_print(table, "trace", db_path(db));
    fact_print(table, "state", state_words(report));
    if (words)
        fact_print(table, "command", words);
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
    struct query *query = db_query(report->db, LOSSES);
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

/* How a process ended. Returns MADE or a constant. */
static const char *ended_words(const struct report *report, struct query *query, int code, int signal_, int end,
                               char made[64])
{
    if (query_type(query, signal_) != QUERY_NULL) {
        int number = (int)query_integer(query, signal_);
        const char *name = sigabbrev_np(number);
        snprintf(made, 64, name ? "signal %d (SIG%s)" : "signal %d", number, name ? name : "");
        return made;
    }
    if (query_type(query, code) != QUERY_NULL) {
        snprintf(made, 64, "exit %" PRId64, query_integer(query, code));
        return made;
    }
    if (query_type(query, end) != QUERY_NULL)
        return "ended";
    return report->live == LIVE_NO ? "end not seen" : "still running";
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
        table_string(table, ended_words(report, query, 2, 3, 4, words));
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
    query = db_query(report->db, COMPILED);
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

static bool functions_print(struct report *report)
{
    struct query *query = db_query(report->db, HOT_FUNCTIONS);
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

/* ---- for programs ---------------------------------------------------------- */

/* The rows of SQL as a member NAME of an object; ?1 is the limit. A column whose
 * name ends in "argv" is JSON already. */
static bool rows_json(struct report *report, const char *name, const char *sql)
{
    struct query *query = db_query(report->db, sql);
    const char *names[32] = {0};
    struct table *table;
    int columns = query_columns(query);

    if (!query || columns > 32) {
        query_close(query);
        return false;
    }
    for (int i = 0; i < columns; i++)
        names[i] = query_name(query, i);
    fprintf(report->out, ",\n\"%s\": ", name);
    query_bind_integer(query, 1, report->limit);
    table = table_open(report->out, TABLE_JSON, columns, names);
    while (table && query_step(query))
        for (int i = 0; i < columns; i++)
            if (!strcmp(names[i], "argv") && query_type(query, i) == QUERY_TEXT)
                table_json(table, query_text(query, i, NULL));
            else
                result_cell(table, query, i);
    table_close(table);
    return query_close(query);
}

static bool report_json(struct report *report)
{
    FILE *out = report->out;
    struct db *db = report->db;
    struct query *query;
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = open_frames(db, frames);
    bool ok;

    fputs("{\"file\": ", out);
    json_string(out, db_path(db), strlen(db_path(db)));
    fprintf(out, ",\n\"live\": %s", report->live == LIVE_YES ? "true" : report->live == LIVE_NO ? "false" : "null");
    fputs(",\n\"meta\": {", out);
    query = db_query(db, "SELECT key, CAST(CASE WHEN key = 'command' AND json_valid(value) THEN json(value) ELSE value END AS TEXT),"
                         "       typeof(value) = 'integer' OR (key = 'command' AND json_valid(value)) FROM meta");
    for (bool first = true; query_step(query); first = false) {
        size_t bytes;
        const char *text = query_text(query, 0, &bytes);
        fputs(first ? "" : ", ", out);
        json_string(out, text, bytes);
        fputs(": ", out);
        text = query_text(query, 1, &bytes);
        if (query_type(query, 1) == QUERY_NULL)
            fputs("null", out);
        else if (query_integer(query, 2))
            json_text(out, text, bytes);
        else
            json_string(out, text, bytes);
    }
    ok = query_close(query);
    fputs("}", out);
    fprintf(out, frames < 0 ? ",\n\"frames\": null" : ",\n\"frames\": %" PRId64, frames);
    fprintf(out, open < 0 ? ",\n\"open_frames\": null" : ",\n\"open_frames\": %" PRId64, open);
    fprintf(out, ",\n\"process_count\": %" PRId64, db_integer(db, 0, "SELECT COUNT(*) FROM process"));
    fprintf(out, ",\n\"thread_count\": %" PRId64, db_integer(db, 0, "SELECT COUNT(*) FROM thread"));
    fprintf(out, ",\n\"lost_events\": %" PRId64, db_integer(db, 0, "SELECT SUM(events) FROM loss"));
    ok = rows_json(report, "losses", LOSSES) && ok;
    ok = rows_json(report, "processes", report->torch ? PROCESS_TREE
        "SELECT p.process_id, p.pid, p.parent_process_id, t.depth, p.rank, p.local_rank,"
        "       CASE WHEN json_valid(p.argv) THEN json(p.argv) ELSE json_array(CAST(p.argv AS TEXT)) END AS argv,"
        "       p.executable, p.python_version, p.torch_version, p.mode, p.torch_mode, p.torch_note, p.start_ns, p.end_ns,"
        "       p.exit_code, p.exit_signal FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path LIMIT ?1"
        : PROCESS_TREE
        "SELECT p.process_id, p.pid, p.parent_process_id, t.depth, p.rank,"
        "       CASE WHEN json_valid(p.argv) THEN json(p.argv) ELSE json_array(CAST(p.argv AS TEXT)) END AS argv,"
        "       p.executable, p.python_version, p.torch_version, p.mode, p.start_ns, p.end_ns, p.exit_code, p.exit_signal "
        "FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path LIMIT ?1") && ok;
    ok = rows_json(report, "threads",
        "SELECT t.thread_id, t.process_id, p.pid, t.os_tid, t.name FROM thread t "
        "LEFT JOIN process p ON p.process_id = t.process_id ORDER BY t.process_id, t.thread_id LIMIT ?1") && ok;
    if (report->torch)
        ok = rows_json(report, "torch", TORCH) && ok;
    if (report->compiles)
        ok = rows_json(report, "compiles", COMPILED) && ok;
    ok = rows_json(report, "hot_functions", HOT_FUNCTIONS) && ok;
    fputs("}\n", out);
    return ok;
}

/* ---- the command ----------------------------------------------------------- */

static int report_main(int argc, char **argv)
{
    struct report report = {.out = stdout, .limit = LIMIT};
    const char *path = NULL;
    char *directory = NULL, *end;
    struct query *snapshot;
    bool options = true, ok;
    int status = 2;

    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (options && !strcmp(a, "--")) {
            options = false;
        } else if (options && !strcmp(a, "--json")) {
            report.json = true;
        } else if (options && (!strcmp(a, "--limit") || !strncmp(a, "--limit=", 8))) {
            const char *value = a[7] ? a + 8 : i + 1 < argc ? argv[++i] : "";
            report.limit = strtoll(value, &end, 10);
            if (end == value || *end || report.limit < 0) {
                say_error("report: --limit: needs a number of rows, 0 for all");
                return 2;
            }
            if (!report.limit)
                report.limit = -1;
        } else if (options && (!strcmp(a, "--help") || !strcmp(a, "-h"))) {
            fputs(usage, stdout);
            return 0;
        } else if (options && a[0] == '-' && a[1]) {
            say_error("report: %s: no such option; `dyntrace report --help` lists them", a);
            return 2;
        } else if (path) {
            say_error("report: %s: one trace at a time", a);
            return 2;
        } else {
            path = a;
        }
    }
    setlocale(LC_CTYPE, "");
    report.db = db_open(path);
    if (!report.db)
        return 2;
    /* One snapshot, so that the parts agree while the recording goes on. */
    snapshot = db_query(report.db, "BEGIN");
    query_step(snapshot);
    query_close(snapshot);
    report.state = db_meta(report.db, "state");
    report.torch = find_column(report.db, "process", "torch_mode");
    report.compiles = find_column(report.db, "compile", "cache_entry_id") && find_column(report.db, "graph_break", "compile_id");
    if (report.state && !strcmp(report.state, "recording")) {
        directory = db_meta(report.db, "session");
        report.live = session_live(directory);
    }
    if (report.json) {
        ok = report_json(&report);
    } else {
        ok = head_print(&report);
        ok = losses_print(&report) && ok;
        ok = processes_print(&report) && ok;
        ok = threads_print(&report) && ok;
        ok = compiles_print(&report) && ok;
        ok = functions_print(&report) && ok;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say_error("output: cannot be written");
        ok = false;
    }
    status = ok ? 0 : 2;
    db_close(report.db);
    free(directory);
    free(report.state);
    return status;
}

const struct command command_report = {
    "report", "a trace on one page", usage, report_main,
};
