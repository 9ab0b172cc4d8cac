/* cmd/report/facts.c -- the recording as a whole, and how its calls were decided. See report.h. */
#include "cmd/report/report.h"
#include "lib/json.h"
#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"

enum { COUNTABLE = 2000000 /* frames that can be read in passing */ };

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

void report_calls_read(struct report *report)
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
