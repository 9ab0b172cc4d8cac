/* trace/trials.h -- the runs of `dyntrace try` that a trace holds.
 *
 *     struct trials trials = {0};
 *     trials_read(db, &arena, code.ids, &trials);
 *     for (size_t i = 0; i < trials.count; i++)   ... trials.at[i]
 *     list_free(&trials);
 *
 * `try` runs the command, counts what the trace of that run says, and stores it:
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

/* A trial, oldest first. An integer that is NULL in the trace is FACT_UNKNOWN (trace/template.h):
 * all counts of a run that left no trace. */
struct trial {
    int64_t trial_id;
    int64_t batch;           /* the trial_id of its baseline */
    const char *setting;     /* as given to --set, several separated by a blank; "": unchanged */
    const char *error;       /* why it is no answer, or NULL */
    const char *values_same; /* "equal", "close", "different"; NULL: not compared */
    int64_t exit_code, exit_signal, output_same;
    int64_t compiles, recompiles, breaks, eager, hits, compile_ns, step_ns;
    bool baseline;    /* the unchanged run of its batch */
    bool works;       /* it ended, wrote and returned as the baseline did */
    bool gain;        /* it works, and beat the baseline */
    const char *note; /* that in words, or why it does not work; NULL: a baseline that works */
};

struct trials {
    struct trial *at; /* owned */
    size_t count, room;
};

/* Add the trials of DB to INTO, with the counts of the function that has the code ids IDS, "3, 7"
 * (find_code.h), or of whole runs for NULL. Texts live in ARENA. False on error,
 * which has been reported. */
bool trials_read(struct db *db, struct arena *arena, const char *ids, struct trials *into);

/* The baseline of TRIAL among TRIALS; NULL: it is not there. */
const struct trial *trials_baseline(const struct trials *trials, const struct trial *trial);

/* The word that names DB in a `dyntrace try` command: its path, or TRACE for several traces that
 * are read as one and have no file of their own. */
const char *trials_trace(const struct db *db);

/* ---- what `try` stores --------------------------------------------------- */

struct trial_counts {
    int64_t compiles, recompiles, breaks, compile_ns, hits;
    int64_t eager;   /* FACT_UNKNOWN: a function was given up, and its later calls were not seen */
    int64_t step_ns; /* FACT_UNKNOWN: too few calls */
};

/* Of a function of the trial's own trace, in whichever process. */
struct trial_function {
    const char *filename, *qualname;
    int64_t first_line;
    struct trial_counts counts;
};

struct trial_figures {
    struct trial_counts run;
    LIST(struct trial_function) functions;
};

/* Count what DB, the trace of a run, says, by the definitions of views.sql. Texts live in ARENA.
 * False on error, which has been reported. */
bool trials_count(struct db *db, struct arena *arena, struct trial_figures *figures);

/* The counts of the function that FIND names; NULL: it was neither compiled nor called. */
const struct trial_counts *trials_counts_of(const struct trial_figures *figures,
                                            const struct trial_function *find);

/* The function_id of FUNCTION in DB; FACT_UNKNOWN: none. */
int64_t trials_function_id(struct db *db, const struct trial_function *function);

/* A trial's row without its figures. Integers may be FACT_UNKNOWN, stored as NULL; texts may be
 * NULL. */
struct trial_row {
    int64_t batch; /* UNKNOWN: it is a baseline */
    const char *setting, *command, *difference, *values_same, *error;
    const struct trial_function *function; /* the function that step_ns is about, or NULL */
    int64_t started_unix_ns, duration_ns, exit_code, exit_signal, output_same;
};

/* Add ROW to DB, with FIGURES unless that is NULL. Its trial_id; 0 after saying why not. */
int64_t trials_store(struct db *db, const struct trial_row *row,
                     const struct trial_figures *figures);

#endif
