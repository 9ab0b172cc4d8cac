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

/* Warn on stderr if DB is still being recorded, and if DB lost events. The warnings end with SO_FAR
 * and MISSING, which explain the consequence for the answer; a NULL suppresses the warning. Returns
 * both facts. */
struct doubts doubts_say(struct db *db, const char *so_far, const char *missing);

/* Return a text about the window of frames and lookups that DB holds, or NULL if none was dropped.
 * Borrowed until the next call. */
const char *doubts_window(struct db *db);
/* Return a text about which frames DB has, or NULL if it has all of them. */
const char *doubts_frames(struct db *db);

/* A note for pictures of single frames in a trace with counted frames: the time of counted frames
 * is shown as their callers' time. */
#define DOUBTS_COUNTED "counted frames: their callers' time"

/* Return how many frames were counted and have no rows. */
int64_t doubts_count(struct db *db);

/* Return a text about the frames that were counted and have no rows, or NULL if there are none.
 * Borrowed until the next call. */
const char *doubts_counted(struct db *db);

/* Print on stderr the frames that were counted and have no rows, if any, and what that means for
 * the answer: MEANING. */
void doubts_say_counted(struct db *db, const char *meaning);

/* Return a text about the frames that options left out of DB: "14.5 k functions (2.26 M frames) by
 * --frames user, ...". Returns NULL if no frame was left out, or if this is not known. The caller
 * frees the text. */
char *doubts_left_out(struct db *db);

/* Return a text that tells which values DB has, or NULL if all were recorded. */
const char *doubts_values(struct db *db);

/* Return a text with the settings of `run --set` under which DB was recorded, and which of them had
 * no effect. Returns NULL if there were no settings. The caller frees the text. */
char *doubts_settings(struct db *db);
/* Print the text of doubts_settings on stderr, for a command that prints it nowhere else. */
void doubts_say_settings(struct db *db);
/* Write the settings of `run --set`, under which DB was recorded, to JSON as the list `settings`.
 * If there were no settings, write nothing. */
void doubts_json_settings(struct db *db, struct json *json);

/* If DB holds trials (trace/trials.h), print on stderr how many, and the setting of the last trial
 * that helped. Answers are about the recording, not about the trials. */
void doubts_say_trials(struct db *db);

#endif
