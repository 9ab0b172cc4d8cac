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

struct doubts doubts_say(struct db *db, const char *so_far, const char *missing)
{
    char *state = db_meta(db, "state");
    struct doubts doubts = {
        .recording = state && !strcmp(state, "recording"),
        .lost = db_integer(db, 0, "SELECT SUM(COALESCE(events, 1)) FROM losses WHERE NOT is_stall"),
    };

    bool is_warning = so_far || missing;

    if (is_warning && doubts_window(db))
        say_error("%s: holds %s; compiles, causes and totals are of the whole run", db_path(db),
                  doubts_window(db));
    if (doubts.recording && so_far)
        say_error("%s: is still being recorded, or was interrupted: %s", db_path(db), so_far);
    if (doubts.lost > 0 && missing)
        say_error("%s: %" PRId64 " events were lost (`dyntrace report` says where): %s",
                  db_path(db), doubts.lost, missing);
    free(state);
    return doubts;
}

int64_t doubts_count(struct db *db)
{
    return db_integer(db, 0, "SELECT SUM(frames) FROM frame_count");
}

const char *doubts_counted(struct db *db)
{
    static _Thread_local char words[160];
    int64_t frames = doubts_count(db);
    char human[TABLE_HUMAN];

    if (frames <= 0)
        return NULL;
    snprintf(words, sizeof words,
             "%s frames of libraries inside torch's compiles and imports were counted, not stored "
             "(--frames all stores them)",
             table_count(human, frames));
    return words;
}

void doubts_say_counted(struct db *db, const char *meaning)
{
    const char *words = doubts_counted(db);

    if (words)
        say_error("%s: %s: %s", db_path(db), words, meaning);
}

/* Describe the frames that were counted and have no rows. Borrowed until the next call; NULL: there
 * are none. */
static const char *counted_words(struct db *db)
{
    static _Thread_local char words[160];
    int64_t frames = doubts_count(db);
    char human[TABLE_HUMAN];

    if (frames <= 0)
        return NULL;
    snprintf(words, sizeof words,
             "all but %s of libraries inside torch's compiles and imports, which were counted "
             "(--frames all stores them)",
             table_count(human, frames));
    return words;
}

const char *doubts_window(struct db *db)
{
    static _Thread_local char words[160];
    int64_t from_ns = db_meta_integer(db, "kept_from_ns", 0);
    int64_t span_ns = db_meta_integer(db, "span_ns", 0);
    char from[TABLE_HUMAN];
    char last[TABLE_HUMAN];

    if (from_ns <= 0)
        return NULL;
    snprintf(words, sizeof words, "frames and lookups of the last %s, from %s on (--keep)",
             table_duration(last, times_span(from_ns, span_ns)), table_duration(from, from_ns));
    return words;
}

const char *doubts_frames(struct db *db)
{
    if (doubts_window(db))
        return doubts_window(db);
    if (db_integer(db, 0, "SELECT EXISTS (SELECT 1 FROM process WHERE mode = 'decided')"))
        return "only calls that a compiler decided (--frames decided)";
    if (db_integer(db, 0, "SELECT EXISTS (SELECT 1 FROM process WHERE mode = 'user')"))
        return "not the standard library's, not site-packages', but for what a compiler decided "
               "(--frames user)";
    return counted_words(db);
}

/* Return a text about the frames that an option left out, which are in the current row of the
 * statement doubts/left_out. USER: the trace was recorded with --frames user. The caller
 * frees the text. */
static char *left_out_words(struct query *query, bool user)
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

char *doubts_left_out(struct db *db)
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
        words = left_out_words(query, user);
    query_close(query);
    return words;
}

const char *doubts_values(struct db *db)
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

char *doubts_settings(struct db *db)
{
    struct query *query = db_query(db, schema_statement("doubts/settings"));
    char *words = query_step(query) ? strdup(query_text(query, 0, NULL)) : NULL;

    query_close(query);
    return words;
}

void doubts_say_settings(struct db *db)
{
    char *words = doubts_settings(db);

    if (words)
        say_error("%s: was recorded under %s", db_path(db), words);
    free(words);
}

void doubts_json_settings(struct db *db, struct json *json)
{
    db_rows(query, db, schema_statement("doubts/settings"))
    {
        size_t bytes;
        const char *list = query_whole(query, 1, &bytes);
        json_raw(json, "settings", list, bytes);
    }
}

void doubts_say_trials(struct db *db)
{
    db_rows(row, db, schema_statement("doubts/trials"))
    {
        long long runs = query_integer(row, 0);
        long long gains = query_integer(row, 1);
        const char *setting = query_text(row, 2, NULL);
        say_error("%s: holds %lld trial%s of `dyntrace try`, %lld a gain%s%.200s; the recording is "
                  "what is checked",
                  db_path(db), runs, runs == 1 ? "" : "s", gains, *setting ? ", such as " : "",
                  setting);
    }
}
