/* cmd/report/facts.c -- what `dyntrace report` says of a recording as a whole, and its calls. See cmd/report/report.h.
 *
 * Runs in: the viewer. */
#include "cmd/report/report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/say.h"
#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"

enum { COUNTABLE = 2000000 /* frames that can be read in passing */ };

/* ---- calls ------------------------------------------------------------------ */

/* Keep about REPORT_MARKS of those that come, evenly: when they are too many, every other is dropped, and from then on
 * only every other is kept. */
static void mark_add(struct report *report, const struct report_mark *mark, int64_t seen, int64_t *stride)
{
    if (seen % *stride)
        return;
    if (report->mark_count == REPORT_MARKS) {
        for (size_t i = 0; i < REPORT_MARKS / 2; i++)
            report->marks[i] = report->marks[i * 2];
        report->mark_count = REPORT_MARKS / 2;
        *stride *= 2;
        if (seen % *stride)
            return;
    }
    report->marks[report->mark_count++] = *mark;
}

struct reading {
    struct report *report; /* borrowed */
    int64_t seen, stride;
};

static void call_mark(void *context, const struct counted_call *call)
{
    struct reading *reading = context;

    if (outcome_facts[call->outcome].missed && call->outcome != OUTCOME_DECLINED)
        mark_add(reading->report, &(struct report_mark){call->lookup_id, call->thread_id, call->code_id, call->start_ns, (int)call->outcome},
                 reading->seen++, &reading->stride);
}

bool report_read(struct report *report)
{
    struct reading reading = {.report = report, .stride = 1};
    struct counts counts = {.each = call_mark, .context = &reading};
    bool ok;

    report->marks = malloc(REPORT_MARKS * sizeof *report->marks);
    if (!report->marks) {
        say_error("%s: out of memory", db_path(report->db));
        return false;
    }
    ok = counts_read(&counts, report->db, &report->progress);
    for (size_t i = 0; i < counts.all.count; i++) {
        const struct count *count = &counts.all.at[i];
        for (int o = 0; o < OUTCOMES; o++) {
            int64_t *calls = count->turned_away ? &report->turned_away : &report->calls[o];
            int64_t *time = count->turned_away ? &report->turned_away_ns : &report->times_ns[o];
            *calls += count->calls[o];
            *time = times_sum(*time, count->times_ns[o]);
        }
    }
    report->sums = calls_sum(report->calls);
    counts_free(&counts);
    return ok;
}

double report_percent(const struct report *report, int64_t part)
{
    return report->sums.asked ? 100.0 * (double)part / (double)report->sums.asked : -1;
}

/* ---- the recording as a whole ---------------------------------------------- */

static const char *report_state(const struct report *report)
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

char *report_words(struct db *db, const char *json)
{
    struct query *query = db_query(db, schema_statement("report/words"));
    char *words = NULL;

    query_bind_text(query, 1, json);
    if (query_step(query))
        words = strdup(query_text(query, 0, NULL));
    query_close(query);
    return words;
}

int64_t report_open_frames(struct db *db, int64_t frames)
{
    int64_t count = db_meta_integer(db, "open_frame_count", -1);

    if (count < 0 && frames >= 0 && frames <= COUNTABLE)
        count = db_integer(db, -1, "SELECT COUNT(*) FROM (SELECT end_ns FROM frame LIMIT 2000000) WHERE end_ns IS NULL");
    return count;
}

const char *report_ended(const struct report *report, struct query *query, char made[64])
{
    if (query_type(query, PROCESS_SIGNAL) != QUERY_NULL) {
        int number = (int)query_integer(query, PROCESS_SIGNAL);
        const char *name = sigabbrev_np(number);
        snprintf(made, 64, name ? "signal %d (SIG%s)" : "signal %d", number, name ? name : "");
        return made;
    }
    if (query_type(query, PROCESS_CODE) != QUERY_NULL) {
        snprintf(made, 64, "exit %" PRId64, query_integer(query, PROCESS_CODE));
        return made;
    }
    if (query_type(query, PROCESS_END) != QUERY_NULL)
        return "ended";
    return report->live == LIVE_NO ? "end not seen" : "still running";
}

/* A text of the query's, or "?"; cut to WIDTH bytes. */
#define SHOWN(query, column, width) \
    (width), query_type(query, column) == QUERY_NULL ? "?" : query_text(query, column, NULL)

bool report_facts(struct report *report, void (*put)(void *to, const char *name, const char *value), void *to)
{
    struct db *db = report->db;
    const char *which = doubts_frames(db), *values = doubts_values(db);
    char *command = db_meta(db, "command"), *words = command ? report_words(db, command) : NULL, *host = db_meta(db, "host");
    char *clock = db_meta(db, "clock"), *version = db_meta(db, "dyntrace_version");
    char human[TABLE_HUMAN], other[TABLE_HUMAN], day[64], text[600];
    int64_t started = db_meta_integer(db, "started_unix_ns", 0), span = db_meta_integer(db, "span_ns", -1);
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = report_open_frames(db, frames);
    int64_t shortest = db_meta_integer(db, "min_duration_ns", 0);
    time_t seconds = (time_t)(started / 1000000000);
    struct query *torch;
    struct tm tm;

    put(to, "trace", db_path(db));
    put(to, "state", report_state(report));
    if (words)
        put(to, "command", *words ? words : "not recorded (--no-argv)");
    if (started > 0 && localtime_r(&seconds, &tm) && strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &tm)) {
        snprintf(text, sizeof text, "%s%s%.200s%s%.100s", day, host ? " on " : "", host ? host : "",
                 version ? " by dyntrace " : "",
                 version ? version : "");
        put(to, "recorded", text);
    }
    if (span >= 0)
        put(to, "span", table_duration(human, span));
    snprintf(text, sizeof text, "%s%s%s%s%s", frames < 0 ? "not known yet" : table_count(human, frames),
             open > 0 ? ", of which " : "",
             open > 0 ? table_count(other, open) : "", open > 0 ? " still open" : "",
             report->live != LIVE_NO && frames == 0 ? " (single frames are stored at the end)" : "");
    put(to, "frames", text);
    if (which)
        put(to, "which", which);
    if (values)
        put(to, "values", values);
    if (shortest > 0) {
        snprintf(text, sizeof text, "frames under %s are in the totals only", table_duration(human, shortest));
        put(to, "stored", text);
    }
    put(to, "processes", table_count(human, db_integer(db, 0, "SELECT COUNT(*) FROM process")));
    put(to, "threads", table_count(human, db_integer(db, 0, "SELECT COUNT(*) FROM thread")));
    if (clock)
        put(to, "clock", clock);
    torch = db_query(db, schema_statement("report/torch"));
    for (int i = 0; i < 10 && query_step(torch); i++) { /* "2.13.0+cpu, shim", and why it is not shim */
        int length = snprintf(text, sizeof text, "%.*s", SHOWN(torch, 0, 100));
        if (query_type(torch, 1) != QUERY_NULL)
            length += snprintf(text + length, sizeof text - (size_t)length, ", %.*s", SHOWN(torch, 1, 20));
        if (query_integer(torch, 3) > 1)
            snprintf(text + length, sizeof text - (size_t)length, ", %s processes",
                     table_count(human, query_integer(torch, 3)));
        put(to, "torch", text);
        if (query_type(torch, 2) != QUERY_NULL)
            put(to, "", query_text(torch, 2, NULL));
    }
    free(command);
    free(words);
    free(host);
    free(clock);
    free(version);
    return query_close(torch);
}
