/* cmd/report/facts.c -- what `dyntrace report` asks of a trace.
 *
 * Runs in: the viewer. See cmd/report/report.h.
 *
 * Small tables and the live totals are asked with SQL. Lookups and guard checks
 * can be millions: each is read once, which takes a second for some millions.
 * Frames are read only where single frames are shown, in cmd/report/svg.c. */
#include "cmd/report/report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/db.h"
#include "trace/remedy.h"
#include "lib/say.h"
#include "lib/times.h"

enum {
    COUNTABLE = 2000000, /* frames that can be read in passing */
    TICK_ROWS = 1 << 15,
};

/* ---- questions ------------------------------------------------------------- */

/* As the view hot_functions; the one in a stranger's file may be anything. */
const char report_hot[] =
    "SELECT c.qualname, c.filename, c.first_line, c.kind, SUM(n.calls) AS calls, SUM(n.total_ns) AS total_ns,"
    "       SUM(n.self_ns) AS self_ns, SUM(n.total_ns) / NULLIF(SUM(n.calls), 0) AS ns_per_call,"
    "       SUM(n.raised) AS raised "
    "FROM code_total n LEFT JOIN code c ON c.code_id = n.code_id "
    "GROUP BY c.filename, c.qualname, c.first_line, c.kind "
    "ORDER BY self_ns DESC, calls DESC LIMIT ?1";

/* Many losses have one cause: a row per cause and kind, the worst first. */
const char report_losses[] =
    "SELECT cause, COUNT(*) AS times, SUM(events) AS events, MIN(at_ns) AS first_ns, MAX(at_ns) AS last_ns,"
    "       COUNT(DISTINCT process_id) AS processes, cause LIKE 'stall:%' AS is_stall "
    "FROM loss GROUP BY cause ORDER BY is_stall, events DESC LIMIT ?1";

/* What was compiled, a row per function, those that were compiled again most often first. What torch only turned
 * away (its own functions, those without tensors) is in the query `skips`. */
const char report_compiled[] =
    "WITH broken AS MATERIALIZED (SELECT m.code_id, COUNT(*) AS breaks FROM graph_break b"
    "  CROSS JOIN compile m ON m.compile_id = b.compile_id GROUP BY m.code_id),"
    " tried AS MATERIALIZED (SELECT code_id, COUNT(*) AS tries, COUNT(cache_entry_id) AS made,"
    "  SUM(end_ns - start_ns) AS ns, SUM(outcome IS 'limit') AS limits, SUM(outcome IS 'error') AS errors"
    "  FROM compile GROUP BY code_id) "
    "SELECT c.qualname, c.filename, c.first_line, SUM(t.made) AS compiles, SUM(t.made) - SUM(t.made > 0) AS recompiles,"
    "       COALESCE(SUM(b.breaks), 0) AS graph_breaks, SUM(t.tries - t.made) AS without_code, SUM(t.ns) AS compile_ns,"
    "       SUM(t.limits) AS limits, SUM(t.errors) AS errors "
    "FROM tried t LEFT JOIN code c ON c.code_id = t.code_id LEFT JOIN broken b ON b.code_id = t.code_id "
    "GROUP BY c.filename, c.qualname, c.first_line HAVING SUM(t.made) + SUM(t.limits) + SUM(t.errors) > 0 "
    "ORDER BY recompiles DESC, graph_breaks DESC, compile_ns DESC, c.qualname LIMIT ?1";

/* Which torch there was, a row per version and way of watching it. */
const char report_torch[] =
    "SELECT torch_version, torch_mode, torch_note, COUNT(*) AS processes FROM process WHERE torch_version IS NOT NULL "
    "GROUP BY torch_version, torch_mode, torch_note ORDER BY processes DESC, torch_version LIMIT ?1";

/* The guard that decided each recompile, counted by function and by what it looked at. What it saw is a list in order,
 * of the first hundred. */
const char report_causes[] =
    "WITH decided AS MATERIALIZED (SELECT r.compile_id, m.code_id, m.start_ns, r.kind, r.source,"
    "  MIN(r.expected) AS expected, r.actual, COALESCE(r.text, '') AS text, r.how"
    "  FROM recompile_cause r CROSS JOIN compile m ON m.compile_id = r.compile_id"
    "  WHERE r.ordinal = 0 GROUP BY r.compile_id, r.kind, r.source ORDER BY r.compile_id),"
    " ranked AS MATERIALIZED (SELECT d.*, c.qualname, c.filename, c.first_line,"
    "  ROW_NUMBER() OVER (PARTITION BY c.filename, c.qualname, c.first_line, d.kind, d.source ORDER BY d.compile_id) AS n"
    "  FROM decided d LEFT JOIN code c ON c.code_id = d.code_id) "
    "SELECT qualname, filename, first_line, COUNT(DISTINCT compile_id) AS recompiles, kind, source,"
    "       MAX(CASE WHEN n = 1 THEN expected END) AS expected,"
    "       group_concat(CASE WHEN n <= 100 THEN substr(actual, 1, 100) END, ', ') AS seen,"
    "       MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns, substr(MAX(text), 1, 1000) AS text,"
    "       MIN(how) AS how "
    "FROM ranked GROUP BY filename, qualname, first_line, kind, source "
    "ORDER BY recompiles DESC, first_ns, kind, source LIMIT ?1";

const char report_recompiles[] =
    "SELECT r.compile_id, m.label, m.start_ns, m.end_ns - m.start_ns AS compile_ns, c.qualname, c.filename, c.first_line,"
    "       e.label AS older_entry, r.kind, r.source, r.expected, r.actual, substr(r.text, 1, 2000) AS text, r.how "
    "FROM recompile_cause r CROSS JOIN compile m ON m.compile_id = r.compile_id"
    " LEFT JOIN code c ON c.code_id = m.code_id LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id "
    "WHERE r.ordinal = 0 ORDER BY r.compile_id, r.cache_entry_id LIMIT ?1";

/* The first line of the reason tells breaks apart; the rest is the same for all that begin so. */
const char report_breaks[] =
    "SELECT p.qualname, p.filename, p.first_line, p.line, p.times, p.what, p.reason, p.user_stack, r.qualname AS resume_function "
    "FROM (SELECT c.qualname, c.filename, c.first_line, b.line, COUNT(*) AS times,"
    "  substr(b.reason, 1, instr(substr(b.reason, 1, 500) || char(10), char(10)) - 1) AS what,"
    "  substr(MAX(b.reason), 1, 4000) AS reason, substr(MAX(b.user_stack), 1, 4000) AS user_stack,"
    "  MAX(b.resume_code_id) AS resume_code_id"
    "  FROM graph_break b LEFT JOIN compile m ON m.compile_id = b.compile_id"
    "  LEFT JOIN code c ON c.code_id = COALESCE(b.code_id, m.code_id)"
    "  GROUP BY c.filename, c.qualname, c.first_line, b.line, what) p"
    " LEFT JOIN code r ON r.code_id = p.resume_code_id "
    "ORDER BY p.times DESC, p.filename, p.line, p.what LIMIT ?1";

/* As the view guard_bill, but checks that ended alike are added up before their guards are looked at. The time is an
 * estimate: a check's, divided evenly among the guards that ran. The order of guards is that which they had last. */
const char report_guards[] =
    "WITH checks AS MATERIALIZED (SELECT cache_entry_id, failed_guard_id, guards_run, COUNT(*) AS times,"
    "  SUM(result <> 'pass') AS failures, SUM(duration_ns) AS ns FROM guard_check GROUP BY 1, 2, 3) "
    "SELECT g.kind, g.source, SUM(k.times) AS evaluations,"
    "       SUM(CASE WHEN g.guard_id = k.failed_guard_id THEN k.failures ELSE 0 END) AS failures,"
    "       CAST(SUM(k.ns * 1.0 / k.guards_run) AS INTEGER) AS estimated_ns, COUNT(DISTINCT g.cache_entry_id) AS entries "
    "FROM checks k CROSS JOIN guard g ON g.cache_entry_id = k.cache_entry_id "
    "WHERE k.guards_run > 0 AND (g.guard_id = k.failed_guard_id OR g.ordinal < k.guards_run) "
    "GROUP BY g.kind, g.source ORDER BY estimated_ns DESC, evaluations DESC, g.kind, g.source LIMIT ?1";

const char report_reached[] =
    "SELECT c.qualname, c.filename, c.first_line, MIN(m.start_ns) AS at_ns, COUNT(*) AS times,"
    "       substr(MIN(m.reason), 1, 1000) AS reason FROM compile m LEFT JOIN code c ON c.code_id = m.code_id "
    "WHERE m.outcome = 'limit' GROUP BY c.filename, c.qualname, c.first_line ORDER BY at_ns LIMIT ?1";

/* ---- one pass over lookups ------------------------------------------------- */

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
    int64_t seen, stride, last;
};

/* One lookup: outcome, duration_ns, lookup_id, thread_id, code_id, start_ns. */
static bool lookup_add(void *context, const int64_t *values, unsigned nulls)
{
    struct reading *reading = context;
    struct report *report = reading->report;
    enum outcome outcome = outcome_of(values[0]);

    (void)nulls;
    report->outcomes[outcome]++;
    report->times_ns[outcome] = times_sum(report->times_ns[outcome], values[1]);
    if (!(++report->calls % TICK_ROWS))
        progress_tick(&report->progress, values[2], reading->last);
    if (outcome != OUTCOME_HIT && outcome != OUTCOME_PLAIN && outcome != OUTCOME_SKIP && outcome != OUTCOME_DECLINED)
        mark_add(report, &(struct report_mark){values[2], values[3], values[4], values[5], (int)outcome}, reading->seen++,
                 &reading->stride);
    return true;
}

bool report_read(struct report *report)
{
    struct reading reading = {.report = report, .stride = 1};

    if (!report->lookups)
        return true;
    reading.last = db_integer(report->db, 0, "SELECT MAX(lookup_id) FROM lookup");
    report->marks = malloc(REPORT_MARKS * sizeof *report->marks);
    if (!report->marks) {
        say_error("%s: out of memory", db_path(report->db));
        return false;
    }
    return db_each(report->db, "SELECT each(outcome, duration_ns, lookup_id, thread_id, code_id, start_ns) FROM lookup NOT INDEXED",
                   lookup_add, &reading);
}

/* Calls that ran compiled code, or could have. */
static int64_t asked(const struct report *report)
{
    const int64_t *o = report->outcomes;

    return o[OUTCOME_HIT] + o[OUTCOME_COMPILED] + o[OUTCOME_RUN_ONLY] + o[OUTCOME_LIMIT] + o[OUTCOME_GUARD_ERROR] + o[OUTCOME_CALLBACK_ERROR];
}

double report_hit_rate(const struct report *report)
{
    int64_t all = asked(report);

    return all ? 100.0 * (double)report->outcomes[OUTCOME_HIT] / (double)all : -1;
}

double report_eager_share(const struct report *report)
{
    int64_t all = asked(report), eager = all - report->outcomes[OUTCOME_HIT] - report->outcomes[OUTCOME_COMPILED];

    return all ? 100.0 * (double)eager / (double)all : -1;
}

/* ---- the recording as a whole ---------------------------------------------- */

const char *report_state(const struct report *report)
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
char *report_words(struct db *db, const char *json)
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
int64_t report_open_frames(struct db *db, int64_t frames)
{
    int64_t count = db_meta_integer(db, "open_frame_count", -1);

    if (count < 0 && frames >= 0 && frames <= COUNTABLE)
        count = db_integer(db, -1, "SELECT COUNT(*) FROM (SELECT end_ns FROM frame LIMIT 2000000) WHERE end_ns IS NULL");
    return count;
}

/* How a process ended. Returns MADE or a constant. */
const char *report_ended(const struct report *report, struct query *query, int code, int signal_, int end, char made[64])
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
