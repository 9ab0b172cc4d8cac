/* trace/doubts.c -- tells what makes any answer from a trace uncertain. See trace/doubts.h. */
#include "trace/doubts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "lib/say.h"
#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"

char *doubts_describe_losses(struct db *db, int64_t *events)
{
    char *words = NULL;

    *events = 0;
    db_rows(row, db, schema_statement("doubts/lost"))
    {
        words = query_copy(row, 0);
        *events = query_type(row, 1) == QUERY_NULL ? -1 : query_integer(row, 1);
    }
    return words;
}

struct doubts doubts_print_warnings(struct db *db, const char *so_far, const char *missing)
{
    char *state = db_meta(db, "state");
    struct doubts doubts = {
        .recording = state && !strcmp(state, "recording"),
    };
    char *lost = doubts_describe_losses(db, &doubts.lost);
    bool is_warning = so_far || missing;

    if (is_warning && doubts_describe_kept_window(db))
        say_error("%s: holds %s; compiles, causes and totals are of the whole run", db_get_path(db),
                  doubts_describe_kept_window(db));
    if (doubts.recording && so_far)
        say_error("%s: is still being recorded, or was interrupted: %s", db_get_path(db), so_far);
    if (lost && missing)
        say_error("%s: %s (`dyntrace report` says where): %s", db_get_path(db), lost, missing);
    free(lost);
    free(state);
    return doubts;
}

static int64_t count_frames_without_rows(struct db *db)
{
    return db_integer(db, 0, "SELECT SUM(frames) FROM frame_count");
}

/* Append REASON to WORDS, which has room for BYTES. */
static void append_reason(char *words, size_t bytes, const char *reason)
{
    size_t length = strlen(words);

    snprintf(words + length, bytes - length, "%s%s", length ? "; " : "", reason);
}

const char *doubts_describe_totals_only(struct db *db)
{
    static _Thread_local char words[200];
    int64_t shortest_ns = db_meta_integer(db, "min_duration_ns", 0);
    int64_t thin = db_meta_integer(db, "thin", 0);
    char human[TABLE_HUMAN];

    if (shortest_ns > 0)
        snprintf(words, sizeof words, "frames under %s are in the totals only (--min-duration)",
                 table_duration(human, shortest_ns));
    else if (thin > 0)
        snprintf(words, sizeof words,
                 "of functions called over a million times all but the first million calls, the "
                 "slowest, and one in %" PRId64 " of the rest are in the totals only (--thin)",
                 thin);
    else
        return NULL;
    return words;
}

const char *doubts_describe_unstored_frames(struct db *db)
{
    static _Thread_local char words[600];
    const char *totals_only = doubts_describe_totals_only(db);
    bool is_left_out = db_meta_integer(db, "min_duration_ns", 0) > 0 ||
                       db_integer(db, 0, schema_statement("doubts/thinned"));
    int64_t counted = count_frames_without_rows(db);
    char human[TABLE_HUMAN];
    char reason[200];

    *words = 0;
    if (counted > 0) {
        snprintf(reason, sizeof reason,
                 "%s frames of libraries inside torch's compiles and imports were counted, not "
                 "stored (--frames all stores them)",
                 table_count(human, counted));
        append_reason(words, sizeof words, reason);
    }
    if (totals_only && is_left_out)
        append_reason(words, sizeof words, totals_only);
    if (doubts_describe_kept_window(db))
        append_reason(words, sizeof words, "older frames were dropped (--keep)");
    return *words ? words : NULL;
}

void doubts_report_unstored_frames(struct db *db, const char *meaning)
{
    const char *words = doubts_describe_unstored_frames(db);

    if (words)
        say_error("%s: %s: %s", db_get_path(db), words, meaning);
}

/* Return a text about which frames DB has if some of torch's were only counted. Returns NULL if
 * none were. Borrowed until the next call. */
static const char *describe_stored_frames(struct db *db)
{
    static _Thread_local char words[160];
    int64_t frames = count_frames_without_rows(db);
    char human[TABLE_HUMAN];

    if (frames <= 0)
        return NULL;
    snprintf(words, sizeof words,
             "all but %s of libraries inside torch's compiles and imports, which were counted "
             "(--frames all stores them)",
             table_count(human, frames));
    return words;
}

const char *doubts_describe_kept_window(struct db *db)
{
    static _Thread_local char words[160];
    int64_t from_ns = db_meta_integer(db, "kept_from_ns", 0);
    int64_t span_ns = db_meta_integer(db, "span_ns", 0);
    char from[TABLE_HUMAN];
    char last[TABLE_HUMAN];

    if (from_ns <= 0)
        return NULL;
    snprintf(words, sizeof words, "frames and lookups of the last %s, from %s on (--keep)",
             table_duration(last, times_span_or_zero(from_ns, span_ns)),
             table_duration(from, from_ns));
    return words;
}

const char *doubts_describe_stored_frames(struct db *db)
{
    if (doubts_describe_kept_window(db))
        return doubts_describe_kept_window(db);
    if (db_meta_integer(db, "decisions_only", 0))
        return "only calls that were skipped or disabled (merge --decisions-only)";
    if (db_integer(db, 0, "SELECT EXISTS (SELECT 1 FROM process WHERE mode = 'decided')"))
        return "only calls that a compiler decided (--frames decided)";
    if (db_integer(db, 0, "SELECT EXISTS (SELECT 1 FROM process WHERE mode = 'user')"))
        return "not the standard library's, not site-packages', but for what a compiler decided "
               "(--frames user)";
    return describe_stored_frames(db);
}

/* Return a text about the frames that an option left out, which are in the current row of the
 * statement doubts/left_out. USER: the trace was recorded with --frames user. The caller
 * frees the text. */
static char *describe_frames_left_out(struct query *query, bool user)
{
    char functions[TABLE_HUMAN];
    char frames[TABLE_HUMAN];
    char decisions[TABLE_HUMAN];
    int64_t counts[3];

    for (int i = 0; i < 3; i++)
        counts[i] = query_integer(query, i);
    table_count(functions, counts[0]);
    table_count(frames, counts[1]);
    table_count(decisions, counts[2]);
    return say_print("%s function%s (%s frame%s%s%s%s) by %s--include, --exclude or --max-depth",
                     functions, counts[0] == 1 ? "" : "s", frames, counts[1] == 1 ? "" : "s",
                     counts[2] ? ", " : "", counts[2] ? decisions : "",
                     counts[2] == 1  ? " decision"
                     : counts[2] > 1 ? " decisions"
                                     : "",
                     user ? "--frames user, " : "");
}

char *doubts_describe_frames_left_out(struct db *db)
{
    struct query *query;
    char *words = NULL;
    bool user;

    /* a trace made by an older version does not have the number of left-out frames */
    if (!db_integer(db, 0, schema_statement("doubts/has_left_out")))
        return NULL;
    user = db_integer(db, 0, schema_statement("doubts/user"));
    query = db_query(db, schema_statement("doubts/left_out"));
    if (query_step(query))
        words = describe_frames_left_out(query, user);
    query_close(query);
    return words;
}

const char *doubts_describe_stored_values(struct db *db)
{
    char *kept = db_meta(db, "values");
    const char *words =
        !kept || !strcmp(kept, "all") ? NULL
        : !strcmp(kept, "types")
            ? "types, shapes and dtypes were recorded, no values (--values types)"
        : !strcmp(kept, "off")
            ? "nothing of arguments and of what guards compare was recorded (--values off)"
            : "of some processes values were not recorded (--values)";

    free(kept);
    if (!words && db_integer(db, 0, schema_statement("doubts/redacted")))
        words = "values whose names look secret were not recorded (--no-redact keeps them)";
    return words;
}

char *doubts_describe_settings(struct db *db)
{
    struct query *query = db_query(db, schema_statement("doubts/settings"));
    char *words = query_step(query) ? strdup(query_text(query, 0, NULL)) : NULL;

    query_close(query);
    return words;
}

void doubts_report_settings(struct db *db)
{
    char *words = doubts_describe_settings(db);

    if (words)
        say_error("%s: was recorded under %s", db_get_path(db), words);
    free(words);
}

void doubts_write_settings_as_json(struct db *db, struct json *json)
{
    db_rows(query, db, schema_statement("doubts/settings"))
    {
        size_t bytes;
        const char *list = query_whole_value(query, 1, &bytes);
        json_raw(json, "settings", list, bytes);
    }
}

void doubts_report_trials(struct db *db)
{
    db_rows(row, db, schema_statement("doubts/trials"))
    {
        long long runs = query_integer(row, 0);
        long long gains = query_integer(row, 1);
        const char *setting = query_text(row, 2, NULL);
        say_error("%s: holds %lld trial%s of `dyntrace try`, %lld a gain%s%.200s; the recording is "
                  "what is checked",
                  db_get_path(db), runs, runs == 1 ? "" : "s", gains, *setting ? ", such as " : "",
                  setting);
    }
}
