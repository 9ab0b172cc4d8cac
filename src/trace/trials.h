/* trace/trials.h -- the runs of `dyntrace try` that a trace holds.
 *
 *     struct trials trials = {0};
 *     trials_read(db, &arena, code.ids, &trials);
 *     for (size_t i = 0; i < trials.count; i++)   ... trials.at[i]
 *     list_free(&trials);
 *
 * What works and what is a gain is defined in schemas/views.sql (views `trials` and
 * `trial_functions`; docs/answers.md). A trace without the tables has no trials. */
#ifndef DYNTRACE_TRIALS_H
#define DYNTRACE_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/list.h"

struct db;

/* A trial, oldest first. An integer that is NULL in the trace is PROSE_UNKNOWN (trace/prose.h): of
 * a run that left no trace, all counts. */
struct trial {
    int64_t trial_id;
    int64_t batch;           /* the trial_id of its baseline */
    const char *setting;     /* as given to --set, several separated by a blank; "": unchanged */
    const char *error;       /* why it is no answer, or NULL */
    const char *values_same; /* "equal", "close", "different"; NULL: not compared */
    int64_t exit_code, exit_signal, output_same;
    int64_t compiles, recompiles, breaks, eager, hits, compile_ns, step_ns;
    bool baseline; /* the unchanged run of its batch */
    bool works;    /* it ended, wrote and returned as the baseline did */
    bool gain;     /* it works, and beat the baseline */
};

struct trials {
    struct trial *at; /* owned */
    size_t count, room;
};

/* Add the trials of DB to INTO, with the counts of the function that has the code ids IDS, "3, 7"
 * (find_code.h), or of whole runs for NULL. Texts live in ARENA. False: it was said what failed. */
bool trials_read(struct db *db, struct arena *arena, const char *ids, struct trials *into);

/* The baseline of TRIAL among TRIALS; NULL: it is not there. */
const struct trial *trials_baseline(const struct trials *trials, const struct trial *trial);

#endif
