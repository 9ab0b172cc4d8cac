/* trace/doubts.h -- what makes any answer from a trace uncertain: lost, dropped or unrecorded
 * data. */
#ifndef DYNTRACE_DOUBTS_H
#define DYNTRACE_DOUBTS_H

#include <stdbool.h>
#include <stdint.h>

struct db;
struct json;

struct doubts {
    bool recording; /* the trace is still being recorded, or the recording was interrupted */
    int64_t lost;   /* the number of lost events, or -1 if it is not known */
};

/* Warn on stderr if DB is still being recorded, and if DB lost events. The first warning ends with
 * SO_FAR, the second with MISSING: texts that tell what this means for the answer. If such a text
 * is NULL, the warning is not printed. Returns both facts. */
struct doubts doubts_print_warnings(struct db *db, const char *so_far, const char *missing);

/* Return a text such as "7 events were lost", or NULL if none were lost. *EVENTS gets the number of
 * lost events, or -1 if it is not known. The caller frees the text. */
char *doubts_describe_losses(struct db *db, int64_t *events);

/* If `run --keep` dropped older frames and lookups, return a text that tells of which span of time
 * DB still has them. Otherwise return NULL. Borrowed until the next call. */
const char *doubts_describe_kept_window(struct db *db);
/* Return a text that tells which frames DB has, or NULL if it has all of them. */
const char *doubts_describe_stored_frames(struct db *db);

/* Return a text that tells which frames --min-duration or --thin leave out, or NULL if the trace
 * was recorded with neither. Borrowed until the next call. */
const char *doubts_describe_totals_only(struct db *db);

/* Of some frames only totals are stored: of short ones with --min-duration, of most calls of a
 * frequent function with --thin, of those that --keep dropped, and of libraries inside torch's
 * compiles. Trees and pictures of frames show their time as the time of their callers. */
#define DOUBTS_UNSTORED "unstored frames: their callers' time"

/* Return why frames are not stored, or NULL if all are. Borrowed until the next call. */
const char *doubts_describe_unstored_frames(struct db *db);

/* If frames are not stored, print the reason on stderr, followed by MEANING: what this means for
 * the answer. */
void doubts_report_unstored_frames(struct db *db, const char *meaning);

/* Return a text about the frames that options left out of DB: "14.5 k functions (2.26 M frames) by
 * --frames user, ...". Returns NULL if no frame was left out, or if this is not known. The caller
 * frees the text. */
char *doubts_describe_frames_left_out(struct db *db);

/* Return a text that tells which values DB has, or NULL if all were recorded. */
const char *doubts_describe_stored_values(struct db *db);

/* Return a text with the settings of `run --set` under which DB was recorded, and which of them had
 * no effect. Returns NULL if there were no settings. The caller frees the text. */
char *doubts_describe_settings(struct db *db);
/* Print the text of doubts_describe_settings on stderr, for a command that prints it nowhere
 * else. */
void doubts_report_settings(struct db *db);
/* Write the settings of `run --set`, under which DB was recorded, to JSON as the list `settings`.
 * If there were no settings, write nothing. */
void doubts_write_settings_as_json(struct db *db, struct json *json);

/* If DB holds trials (trace/trials.h), print on stderr how many, and the setting of the last trial
 * that helped. Answers are about the recording, not about the trials. */
void doubts_report_trials(struct db *db);

#endif
