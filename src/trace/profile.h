/* trace/profile.h -- how long the calls of a function took, the slowest of them, and its callers.
 *
 *     struct profile profile = {0};
 *     profile_read(db, &code, &profile, &progress);
 *     ... profile_get_quantile(&profile, 0.95)
 *     profile_free(&profile);
 *
 * The frames are read twice (trace/stacks.h): first for the durations and the callers, then for the
 * callees of the slowest calls. A call is a frame; a generator or coroutine has a frame for each
 * stretch between two yields. */
#ifndef DYNTRACE_PROFILE_H
#define DYNTRACE_PROFILE_H

#include "lib/list.h"

struct db;
struct found_code;
struct json;

enum {
    PROFILE_SLOWEST = 3,
    PROFILE_PATH = 12, /* the most functions on the path below a slow call */
    PROFILE_BARS = 9,
};

/* A function on the path from a slow call down to the callee where its time went. */
struct path_step {
    int64_t code_id, calls, total_ns, self_ns;
};

struct slow_call {
    int64_t frame_id, start_ns, ns, self_ns;
    /* the functions on the path; the first is a callee of the slow call itself */
    struct path_step path[PROFILE_PATH];
    int steps;
};

struct caller {
    int64_t code_id; /* 0 if the function has no recorded caller */
    int64_t calls, ns;
};

/* The calls that took at least FROM_NS and less than TO_NS. */
struct duration_bar {
    int64_t from_ns, to_ns, calls;
};

struct profile {
    LIST(int64_t) durations; /* sorted */
    struct slow_call slowest[PROFILE_SLOWEST];
    int slow_count;
    LIST(struct caller) callers; /* the callers of the function, sorted by time, longest first */
};

/* Read the calls of the function CODE into PROFILE. Reports errors itself; see db_has_failed. */
void profile_read(struct db *db, const struct found_code *code, struct profile *profile,
                  struct progress *progress);
void profile_free(struct profile *profile);

/* Return the quantile SHARE (0 to 1) of the durations: that part of the calls took this long or
 * less. There must be at least one call. */
int64_t profile_get_quantile(const struct profile *profile, double share);

/* Fill BARS, from the shortest call to the longest, and return how many are used. The bounds of the
 * bars are 1, 2, 5, 10, ... ns, or powers of ten if there would be too many bars. */
int profile_count_bars(const struct profile *profile, struct duration_bar bars[PROFILE_BARS]);

/* Write the profile to JSON as the member KEY. schemas/profile.sql prints the same as text. */
void profile_write_as_json(const struct profile *profile, struct json *json, const char *key);

#endif
