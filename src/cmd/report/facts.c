/* cmd/report/facts.c -- collects facts about the recording as a whole, and counts its calls by
 * outcome. See report.h. */
#include "cmd/report/report.h"
#include "lib/json.h"
#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"

enum {
    COUNTABLE = 2000000, /* if a trace has more frames, its open frames are not counted */
    TEXT_BYTES = 200,
};

/* ---- counting calls by outcome ------------------------------------------- */

/* Keep about REPORT_MARKS of the calls that missed, evenly distributed over the run. When the array
 * is full, every other call is dropped, and from then on only half as many calls are kept. */
static void keep_missed_call(void *context, const struct counted_call *call)
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

/* Add the calls of COUNT, a row of COUNTS, to the report's sums by outcome. */
static void add_outcomes(struct report *report, const struct counts *counts,
                         const struct count *count)
{
    struct count_calls decided = counts_sum_calls_by_outcome(counts, count);

    for (int o = 0; o < OUTCOMES; o++) {
        int64_t *calls = &report->calls[o];
        int64_t *time = &report->times_ns[o];
        if (count->turned_away) {
            calls = &report->turned_away;
            time = &report->turned_away_ns;
        }
        *calls += decided.calls[o];
        *time = times_add(*time, decided.times_ns[o]);
    }
}

void report_read_calls(struct report *report)
{
    struct counts counts = {.each = keep_missed_call, .context = report};
    struct db *db = report->db;
    bool is_short;

    report->frames = db_meta_integer(db, "frame_count", -1);
    report->open_frames = db_meta_integer(db, "open_frame_count", -1);
    is_short = report->frames >= 0 && report->frames <= COUNTABLE;
    if (report->open_frames < 0 && is_short)
        report->open_frames = db_integer(db, -1, schema_statement("report/open_frames"));
    counts_read(&counts, db, &report->progress);
    for (size_t i = 0; i < counts.all.count; i++)
        add_outcomes(report, &counts, &counts.all.at[i]);
    report->sums = calls_sum_outcomes(report->calls);
    counts_free(&counts);
}

bool report_has_decisions(const struct report *report)
{
    return report->sums.asked || report->calls[OUTCOME_PLAIN] || report->turned_away;
}

double report_share_in_percent(const struct report *report, int64_t part)
{
    return report->sums.asked ? 100.0 * (double)part / (double)report->sums.asked : -1;
}

void report_write_outcomes(const struct report *report, struct json *json, const char *key)
{
    json_object(json, key);
    for (int o = 0; o < OUTCOMES; o++) {
        json_object(json, outcome_to_word(o));
        json_integer(json, "calls", report->calls[o]);
        json_integer(json, "lookup_ns", report->times_ns[o]);
        json_end(json);
    }
    json_end(json);
}

/* ---- facts about the recording as a whole -------------------------------- */

bool report_has_doubts(const struct report *report)
{
    return db_integer(report->db, 0, schema_statement("report/has-doubts"));
}

const char *report_describe_state(const struct report *report)
{
    const char *state = report->state ? report->state : "unknown";

    if (db_integer(report->db, 0, schema_statement("report/is-copied")))
        return "what could be read of a damaged file";
    if (!strcmp(state, "recovered"))
        return "recovered after the recorder was killed";
    if (strcmp(state, "recording") != 0)
        return state;
    switch (report->live) {
    case LIVE_YES:
        return "still recording";
    case LIVE_NO:
        return "interrupted: the recorder is gone; `dyntrace fsck FILE --recover` completes it";
    default:
        return "still recording, or interrupted (then `dyntrace fsck FILE --recover` completes it)";
    }
}

/* A receiver of the facts about the recording. put() is called for each fact, and `to` is passed to
 * it unchanged. */
struct facts_to {
    void (*put)(void *to, const char *name, const char *value);
    void *to;
};

static void pass_fact(const struct facts_to *to, const char *name, const char *value)
{
    if (value)
        to->put(to->to, name, value);
}

/* Pass the fact `frames` to TO, with a value such as "41.2 M, of which 3 still open". */
static void pass_frames_fact(const struct report *report, const struct facts_to *to)
{
    bool is_later = report->live != LIVE_NO && report->frames == 0;
    const char *later = is_later ? " (single frames are stored at the end)" : "";
    char frames[TABLE_HUMAN] = "not known yet";
    char human[TABLE_HUMAN];
    char open[TABLE_HUMAN + 32] = "";
    char text[TEXT_BYTES];

    if (report->frames >= 0)
        table_count(frames, report->frames);
    if (report->open_frames > 0)
        snprintf(open, sizeof open, ", of which %s still open",
                 table_count(human, report->open_frames));
    snprintf(text, sizeof text, "%s%s%s", frames, open, later);
    pass_fact(to, "frames", text);
}

/* Pass facts to TO that tell which frames and which values the trace stores. */
static void pass_stored_facts(const struct report *report, const struct facts_to *to)
{
    struct db *db = report->db;
    char *left_out = doubts_describe_frames_left_out(db);
    char *settings = doubts_describe_settings(db);

    pass_fact(to, "which", doubts_describe_stored_frames(db));
    pass_fact(to, "left out", left_out);
    pass_fact(to, "values", doubts_describe_stored_values(db));
    pass_fact(to, "settings", settings);
    pass_fact(to, "stored", doubts_describe_totals_only(db));
    free(left_out);
    free(settings);
}

/* Return the value of the fact NAME in QUERY's current row as text, or NULL. A number is written to
 * the buffer MADE. */
static const char *format_value(struct query *query, const char *name, char *made)
{
    int64_t value = query_integer(query, 1);

    switch (query_type(query, 1)) {
    case QUERY_TEXT:
        return query_text(query, 1, NULL);
    case QUERY_INTEGER:
        if (!strcmp(name, "span"))
            return table_duration(made, value);
        return table_count(made, value);
    default:
        return NULL;
    }
}

void report_facts(struct report *report, void (*put)(void *to, const char *name, const char *value),
                  void *to)
{
    const struct facts_to all = {put, to};
    char human[TABLE_HUMAN];

    pass_fact(&all, "trace", db_get_path(report->db));
    pass_fact(&all, "state", report_describe_state(report));
    db_rows(query, report->db, schema_statement("report/facts"))
    {
        const char *name = query_text(query, 0, NULL);
        pass_fact(&all, name, format_value(query, name, human));
        if (query_type(query, 2) != QUERY_NULL)
            pass_fact(&all, "", query_text(query, 2, NULL));
        if (!strcmp(name, "frames")) {
            pass_frames_fact(report, &all);
            pass_stored_facts(report, &all);
        }
    }
}
