/* trace/trials.h -- the runs of `dyntrace try` that a trace holds.
 *
 *     struct trials trials = {0};
 *     trials_read(db, &arena, code.ids, &trials);
 *     for (size_t i = 0; i < trials.count; i++)   ... trials.at[i]
 *     list_free(&trials);
 *
 * `try` runs the command, counts events in the trace of this run, and stores the counts in the
 * trace that it was given:
 *
 *     struct trial_figures figures = {0};
 *     trials_count(db_of_the_run, &arena, &figures);
 *     trials_store(db, &trial, &figures);              db: of db_open_for_trials()
 *
 * schemas/views.sql defines which trials work and which are a gain (views `trials` and
 * `trial_functions`; docs/answers.md). A trace without the tables has no trials. */
#ifndef DYNTRACE_TRIALS_H
#define DYNTRACE_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/list.h"

struct db;

/* A trial. An integer that is NULL in the trace is FACT_UNKNOWN (trace/template.h). All counts are
 * unknown if the run left no trace. */
struct trial {
    int64_t trial_id;
    int64_t batch; /* the trial_id of the baseline with which this trial is compared */
    /* the settings as given to --set, separated by blanks; "" for the baseline */
    const char *setting;
    const char *error; /* why the run does not count, for example a refused setting; or NULL */
    const char *values_same; /* "equal", "close" or "different"; NULL if values were not compared */
    int64_t exit_code, exit_signal, output_same;
    int64_t compiles, recompiles, breaks, eager, hits, compile_ns, step_ns;
    bool baseline; /* the unchanged run with which the other runs of its batch are compared */
    bool works;    /* the run ended like the baseline, with the same output and results */
    bool gain;     /* the trial works, and is better than the baseline */
    /* the gain in words, or why the trial does not work; NULL for a baseline that works */
    const char *note;
};

struct trials {
    struct trial *at; /* owned */
    size_t count, room;
};

/* Add the trials of DB to INTO, oldest first. IDS are the code ids "3, 7" of the function
 * (find_code.h) whose counts are read; for NULL the counts are those of the whole run. Texts live
 * in ARENA. Returns false on error, which has been reported. */
bool trials_read(struct db *db, struct arena *arena, const char *ids, struct trials *into);

/* Return the baseline of TRIAL's batch, or NULL if TRIALS does not have it. */
const struct trial *trials_baseline(const struct trials *trials, const struct trial *trial);

/* Return the word that names DB in a `dyntrace try` command: its path, or TRACE for several traces,
 * which have no file of their own. */
const char *trials_trace(const struct db *db);

/* ---- the counts that `try` stores --------------------------------------------- */

struct trial_counts {
    int64_t compiles, recompiles, breaks, compile_ns, hits;
    /* FACT_UNKNOWN if the compiler gave up a function, because its later calls were not recorded */
    int64_t eager;
    int64_t step_ns; /* time of a step; FACT_UNKNOWN if there were too few calls */
};

/* A function in the trace of a trial. Its counts are sums over all processes. */
struct trial_function {
    const char *filename, *qualname;
    int64_t first_line;
    struct trial_counts counts;
};

struct trial_figures {
    struct trial_counts run;
    LIST(struct trial_function) functions;
};

/* Count events in DB, the trace of a run, as views.sql defines them. Texts live in ARENA. Returns
 * false on error, which has been reported. */
bool trials_count(struct db *db, struct arena *arena, struct trial_figures *figures);

/* Return the counts of the function that FIND names, or NULL if it was neither compiled
 * nor called. */
const struct trial_counts *trials_counts_of(const struct trial_figures *figures,
                                            const struct trial_function *find);

/* Return the function_id of FUNCTION in DB, or FACT_UNKNOWN if DB does not have the function. */
int64_t trials_function_id(struct db *db, const struct trial_function *function);

/* A row of `trial` without its counts. Integers may be FACT_UNKNOWN, which is stored as NULL; texts
 * may be NULL. */
struct trial_row {
    int64_t batch; /* the batch of the trial; FACT_UNKNOWN for a baseline */
    const char *setting, *command, *difference, *values_same, *error;
    const struct trial_function *function; /* the function that step_ns is about, or NULL */
    int64_t started_unix_ns, duration_ns, exit_code, exit_signal, output_same;
};

/* Add ROW to DB, with FIGURES unless this is NULL. Returns its trial_id, or 0 on error, which has
 * been reported. */
int64_t trials_store(struct db *db, const struct trial_row *row,
                     const struct trial_figures *figures);

#endif
