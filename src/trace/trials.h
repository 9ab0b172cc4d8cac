/* trace/trials.h -- reads and stores the runs of `dyntrace try` (trials) that a trace holds.
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
 *     trials_count_calls(db_of_the_run, &arena, &figures);
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

/* One run of `dyntrace try`. An integer that is NULL in the trace is FACT_UNKNOWN
 * (trace/template.h). If the run left no trace, all counts are unknown. */
struct trial {
    int64_t trial_id;
    /* the trial_id of the baseline: the unchanged run with which this one is compared */
    int64_t batch;
    /* the settings as given to --set, separated by blanks; "" for the baseline */
    const char *setting;
    /* why the run cannot be compared, for example because a setting was refused; otherwise NULL */
    const char *error;
    const char *values_same; /* "equal", "close" or "different"; NULL if values were not compared */
    int64_t exit_code, exit_signal, output_same;
    int64_t compiles, recompiles, breaks, eager, hits, compile_ns, step_ns;
    /* this is the unchanged run with which all other runs of its batch are compared */
    bool baseline;
    bool works; /* the run ended as the baseline did, with the same output and results */
    bool gain;  /* the run works, and has better counts than the baseline */
    /* in words what the run gained, or why it does not work; NULL for a baseline that works */
    const char *note;
};

struct trials {
    struct trial *at; /* owned */
    size_t count, room;
};

/* Add the trials of DB to INTO, oldest first. IDS are the code ids, "3, 7", of the function whose
 * counts are read (find_code.h); if IDS is NULL, the counts are those of the whole run. The texts
 * live in ARENA. Returns false on error, which has been reported. */
bool trials_read(struct db *db, struct arena *arena, const char *ids, struct trials *into);

/* Return the baseline of TRIAL's batch, or NULL if TRIALS does not have it. */
const struct trial *trials_find_baseline(const struct trials *trials, const struct trial *trial);

/* Return what stands for DB in a `dyntrace try` command: the path of its file. Returns "TRACE" if
 * DB was merged from several traces, because then it has no file that the user knows. */
const char *trials_path_of_trace(const struct db *db);

/* ---- the counts of a run, which `try` stores ----------------------------- */

struct trial_counts {
    int64_t compiles, recompiles, breaks, compile_ns, hits;
    /* number of eager calls; FACT_UNKNOWN if the compiler gave up a function, because then its
     * later calls were not recorded */
    int64_t eager;
    int64_t step_ns; /* time of a step; FACT_UNKNOWN if there were too few calls to tell */
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
bool trials_count_calls(struct db *db, struct arena *arena, struct trial_figures *figures);

/* Return the counts of the function FIND, or NULL if it was neither compiled nor called. */
const struct trial_counts *trials_find_counts(const struct trial_figures *figures,
                                              const struct trial_function *find);

/* Return the function_id that FUNCTION has in DB. Returns FACT_UNKNOWN if DB does not
 * have the function. */
int64_t trials_function_id(struct db *db, const struct trial_function *function);

/* What is stored about a trial apart from its counts. An integer may be FACT_UNKNOWN, which is
 * stored as NULL. A text may be NULL. */
struct trial_row {
    /* the trial_id of the baseline of this trial; FACT_UNKNOWN if it is a baseline itself */
    int64_t batch;
    const char *setting, *command, *difference, *values_same, *error;
    /* the function whose step time is stored in step_ns, or NULL */
    const struct trial_function *function;
    int64_t started_unix_ns, duration_ns, exit_code, exit_signal, output_same;
};

/* Add the trial ROW to DB, with the counts FIGURES unless this is NULL. Returns the new trial_id,
 * or 0 on error, which has been reported. */
int64_t trials_store(struct db *db, const struct trial_row *row,
                     const struct trial_figures *figures);

#endif
