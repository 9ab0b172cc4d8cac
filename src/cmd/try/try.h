/* cmd/try/try.h -- the parts of `dyntrace try`.
 *
 *     plan.c      the recorded command, and which settings are tried
 *     attempt.c   one run: started, watched, stopped, its output kept
 *     output.c    compares the outputs of two runs
 *     cmd/try.c   asks the user, runs one after the other, compares, stores, prints */
#ifndef DYNTRACE_CMD_TRY_H
#define DYNTRACE_CMD_TRY_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/list.h"
#include "trace/find_code.h"
#include "trace/trials.h"

struct db;

/* ---- the plan: what is run --------------------------------------------------- */

struct words {
    const char **at; /* the array is owned, the words are borrowed */
    size_t count, room;
};

struct plan {
    struct arena arena;     /* owns all texts below */
    const char *path;       /* the trace in which trials are stored */
    struct words command;   /* the command, as it was given to `dyntrace run` */
    struct words options;   /* options of `dyntrace run`, including --set */
    struct words launcher;  /* for a rank: the words that start all ranks; otherwise empty */
    const char *directory;  /* the working directory of the runs */
    const char *executable; /* the executed file, or NULL */
    bool interpreted;       /* the executed file is an interpreter that runs a script, -m or -c */
    const char *command_json;
    bool any_owner;   /* allow a trace of another user; set before plan_read() */
    bool values_kept; /* recorded with --values all, so output and values may be quoted */
    bool job;         /* several ranks write, so lines come in any order */
    /* `named`: FUNC was given. The members below are about FUNC, or about the function with the
     * most recompiles. Step times are the step times of this function. */
    bool named;
    const char *given_name; /* the typed FUNC, borrowed, or NULL */
    bool known;             /* a function was found: FUNC, or the one with the most recompiles */
    struct found_code code;
    struct trial_function function;
    /* each word may be several settings, separated by blanks as in a shell */
    struct words settings;
    bool chosen; /* `try` chose the settings itself, so pairs of the best settings are tried, too */
};

/* Read from the trace of FILES the recorded command and how to run it. Reports an error and returns
 * false if the trace does not have them. */
bool plan_read(struct plan *plan, char *const *files);

/* Find the function NAME in DB. If NAME is NULL, find the function with the most recompiles and
 * eager calls. Reports an error and returns false if NAME is unknown or ambiguous. */
bool plan_find(struct plan *plan, struct db *db, const char *name);

/* Add at most MOST settings from why's remedies for the named function, or for the worst functions
 * if none was named. */
void plan_choose(struct plan *plan, char *const *files, struct db *db, size_t most);

/* Check PLAN's settings as far as possible before the command runs. Reports an error and returns
 * false if any is invalid. */
bool plan_settings_fit(const struct plan *plan);

/* Split TEXT into settings, which live in ARENA. They are separated by blanks. A setting that
 * contains a blank may stand in single quotes. The quotes are needed only if the text after the
 * blank looks like a setting. */
struct words settings_split(struct arena *arena, const char *text);

void plan_free(struct plan *plan);

/* ---- one run ------------------------------------------------------------- */

struct attempt_given {
    const char *folder; /* the folder for the files of all runs, removed at the end */
    int stdin_file;     /* the standard input of each run, read from its beginning, or -1 */
    uint64_t timeout_ns;
    int64_t calls; /* number of calls after which a process is ended, or 0 for no limit */
    bool compare;  /* keep or compare the function's return values */
    double rtol;
    const char *against; /* the folder of values to compare with, or NULL */
};

struct attempt {
    const char *name; /* the names of the run's files begin with this name */
    /* files with the standard output and standard error of the run */
    char out[PATH_MAX], err[PATH_MAX];
    /* the trace of the run, or its directory for a job; the folder of its values */
    char trace[PATH_MAX], values[PATH_MAX];
    int64_t started_unix_ns, duration_ns;
    int status;     /* the waitpid() status of `dyntrace run` or of the launcher */
    bool timed_out; /* `try` stopped the run because its time was over */
    bool stopped;   /* the user pressed Ctrl-C */
};

/* Run PLAN's command under SETTING and wait for its end. The names of its files begin with NAME.
 * TICK is called a few times a second. Reports an error and returns false if the command cannot be
 * started. */
bool attempt_run(const struct plan *plan, const struct attempt_given *given, const char *name,
                 const char *setting, struct attempt *attempt, void (*tick)(void *context),
                 void *context);

/* ---- comparing output ------------------------------------------------------------ */

/* Is the output in the file PATH the same as in BASELINE, apart from addresses, our own lines and
 * torch's log messages? AGAIN is the output of another unchanged run, or NULL: words in which AGAIN
 * differs from BASELINE are ignored. If SORTED, lines may be in any order. */
bool output_same(const char *path, const char *baseline, const char *again, bool sorted);

/* Return a sentence about the first line that differs: "'loss 3', unchanged 'loss 4'", in ARENA.
 * Lines in which AGAIN differs from BASELINE are ignored. Returns NULL if no line differs. */
const char *output_difference(struct arena *arena, const char *path, const char *baseline,
                              const char *again, bool sorted);

/* Return the last line of the file PATH that is not our own, such as "ValueError: no", in ARENA.
 * Returns NULL if there is none. */
const char *output_last_line(struct arena *arena, const char *path);

/* Compare the values that the function returned in one run, in the folder PATH, with BASELINE's.
 * Returns the worst of "equal", "close" and "different", or NULL if none were compared. */
const char *values_same(const char *baseline, const char *path);

/* Return the text of the first of our own lines in the file PATH, in ARENA. A line about --set is
 * preferred. Returns NULL if there is none. */
const char *output_our_words(struct arena *arena, const char *path);

#endif
