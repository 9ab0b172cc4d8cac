/* trace/doubts.h -- what makes any answer from a trace uncertain. */
#ifndef DYNTRACE_DOUBTS_H
#define DYNTRACE_DOUBTS_H

#include <stdbool.h>
#include <stdint.h>

struct db;
struct json;

struct doubts {
    bool recording; /* it is still being recorded, or was interrupted */
    int64_t lost;   /* events that are missing */
};

/* Warn on stderr that DB is still being recorded (with SO_FAR, the effect on the answer) and that
 * it lost events (with MISSING). NULL: no such warning. */
struct doubts doubts_say(struct db *db, const char *so_far, const char *missing);

/* In words, which frames DB has, when that is not every one; or NULL. */
const char *doubts_frames(struct db *db);

/* A text about the frames that options left out of DB: "14.5 k functions (2.26 M frames) by
 * --frames user, ...". The caller frees it. NULL: none, or not known. */
char *doubts_left_out(struct db *db);

/* In words, what DB keeps of values, when that is not all; or NULL. */
const char *doubts_values(struct db *db);

/* A text about the settings of `run --set` and those without effect: owned; or NULL. */
char *doubts_settings(struct db *db);
/* Say that on stderr, for answers that have no place of their own for it. */
void doubts_say_settings(struct db *db);
/* The same as a member `settings`, a list, where there are any. */
void doubts_json_settings(struct db *db, struct json *json);

/* Print on stderr that DB has trials, which are not part of the recording, and the best one. */
void doubts_say_trials(struct db *db);

#endif
