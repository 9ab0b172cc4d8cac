/* trace/profile.h -- how long the calls of a function took, which were the slowest, who called it.
 *
 *     struct profile profile = {0};
 *     profile_read(db, &code, &profile, &progress);
 *     ... profile_share(&profile, 0.95)
 *     profile_free(&profile);
 *
 * Two walks over the frames (trace/stacks.h): the first collects the durations and the callers, the
 * second what the slowest calls called. A call is a frame: of a generator or coroutine each stretch
 * between two yields is one. */
#ifndef DYNTRACE_PROFILE_H
#define DYNTRACE_PROFILE_H

#include "lib/list.h"

struct db;
struct found_code;
struct json;

enum {
    PROFILE_SLOWEST = 3,
    PROFILE_PATH = 12, /* functions of a path */
    PROFILE_BARS = 9,
};

/* A function on the way from a call to where its time went. */
struct path_step {
    int64_t code_id, calls, total_ns, self_ns;
};

struct slow_call {
    int64_t frame_id, start_ns, ns, self_ns;
    struct path_step path[PROFILE_PATH]; /* the first is a callee of the call */
    int steps;
};

struct caller {
    int64_t code_id; /* 0: the bottom of a stack */
    int64_t calls, ns;
};

/* Calls that took FROM_NS or longer, and less than TO_NS. */
struct duration_bar {
    int64_t from_ns, to_ns, calls;
};

struct profile {
    LIST(int64_t) durations; /* sorted */
    struct slow_call slowest[PROFILE_SLOWEST];
    int slow_count;
    LIST(struct caller) callers; /* most time first */
};

/* Read the calls of CODE. db_failed(): the error has been reported. */
void profile_read(struct db *db, const struct found_code *code, struct profile *profile,
                  struct progress *progress);
void profile_free(struct profile *profile);

/* The duration that SHARE (0 to 1) of the calls do not exceed; there is at least one call. */
int64_t profile_share(const struct profile *profile, double share);

/* Fill BARS, from the shortest call to the longest; returns how many. Their bounds are 1, 2, 5, 10,
 * ... or, where those are too many, powers of ten. */
int profile_bars(const struct profile *profile, struct duration_bar bars[PROFILE_BARS]);

/* All of it as the member KEY: what schemas/profile.sql prints, too. */
void profile_json(const struct profile *profile, struct json *json, const char *key);

#endif
