/* cmd/try/try.h -- interface between the files of `dyntrace try`.
 *
 *     plan.c      finds the recorded command and the settings to try
 *     attempt.c   starts, watches and stops one run, and keeps its output
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

/* ---- what to run: the recorded command and the settings to try ----------- */

struct words {
    const char **at; /* array of the words; the array is owned, the words are borrowed */
    size_t count, room;
};

struct plan {
    struct arena arena;   /* owns all texts of the plan */
    const char *path;     /* the trace in which trials are stored */
    struct words command; /* the recorded command, as it was given to `dyntrace run` */
    struct words options; /* the options that `dyntrace run` had, including --set */
    /* if the trace is that of a rank: the words before the command that start all ranks; otherwise
     * empty */
    struct words launcher;
    const char *directory;  /* the directory in which the command runs */
    const char *executable; /* the file that the command executed, or NULL if not known */
    bool interpreted;       /* the executed file is an interpreter that runs a script, -m or -c */
    const char *command_json;
    bool any_owner; /* allow the trace of another user; set before plan_read() is called */
    /* the recording had --values all, so the program's output and values may be quoted */
    bool values_get_session_option;
    bool job; /* several ranks run, so the lines of the output come in any order */
    /* named: FUNC was given on the command line. The members below are about FUNC or, without FUNC,
     * about the function with the most recompiles. Step times are measured for this function. */
    bool named;
    const char *given_name; /* FUNC as it was typed, borrowed; NULL without FUNC */
    bool known;             /* a function was found: FUNC, or the one with the most recompiles */
    struct found_code code;
    struct trial_function function;
    /* the settings to try; one word may contain several settings for one run, with blanks between
     * them as in a shell */
    struct words settings;
    bool chosen; /* `try` chose the settings itself, so pairs of the best settings are tried, too */
};

/* Read from the trace of FILES the recorded command and how to run it. Reports an error and returns
 * false if the trace does not have them. */
bool plan_read(struct plan *plan, char *const *files);

/* Find the function NAME in DB. If NAME is NULL, find the function with the most recompiles and
 * eager calls. Reports an error and returns false if NAME is unknown or ambiguous. */
bool plan_find_function(struct plan *plan, struct db *db, const char *name);

/* Add at most MOST settings from why's remedies for the named function, or for the worst functions
 * if none was named. */
void plan_choose_settings(struct plan *plan, char *const *files, struct db *db, size_t most);

/* Check PLAN's settings as far as possible before the command runs. Reports an error and returns
 * false if any is invalid. */
bool plan_settings_are_valid(const struct plan *plan);

/* Split TEXT into settings, which live in ARENA. Settings are separated by blanks. A setting that
 * contains a blank may stand in single quotes. It needs them only if the text after the blank looks
 * like another setting. */
struct words settings_split_text(struct arena *arena, const char *text);

void plan_free(struct plan *plan);

/* ---- running the command under one setting ------------------------------- */

struct attempt_given {
    const char *folder; /* the folder for the files of all runs, removed at the end */
    int stdin_file;     /* the standard input of each run, read from its beginning, or -1 */
    uint64_t timeout_ns;
    int64_t calls; /* a process is ended after this many calls of the function; 0 for no limit */
    /* store the return values of the function; if `against` is set, compare them with the values
     * there */
    bool compare;
    double rtol;
    const char *against; /* folder with the values of another run to compare with, or NULL */
};

struct attempt {
    const char *name; /* the names of the files of this run begin with this name */
    /* files with the standard output and standard error of the run */
    char out[PATH_MAX], err[PATH_MAX];
    /* the trace of the run, or for a job the directory of its traces; and the folder of the run's
     * values */
    char trace[PATH_MAX], values[PATH_MAX];
    int64_t started_unix_ns, duration_ns;
    int status;     /* the waitpid() status of `dyntrace run`, or of the launcher if there is one */
    bool timed_out; /* `try` stopped the run because its time was over */
    bool stopped;   /* the user pressed Ctrl-C */
};

/* Run PLAN's command under SETTING and wait for its end. The names of its files begin with NAME.
 * TICK is called a few times a second. Reports an error and returns false if the command cannot be
 * started. */
bool attempt_run_command(const struct plan *plan, const struct attempt_given *given,
                         const char *name, const char *setting, struct attempt *attempt,
                         void (*tick)(void *context), void *context);

/* ---- comparing the output of a run with the baseline's ------------------- */

/* Is the output in the file PATH the same as in BASELINE, apart from addresses, dyntrace's own
 * messages and torch's log messages? AGAIN is the output of a second unchanged run, or NULL: words
 * in which AGAIN differs from BASELINE are ignored. If SORTED, lines may be in any order. */
bool output_is_same(const char *path, const char *baseline, const char *again, bool sorted);

/* Return a sentence about the first line that differs, in ARENA: "'loss 3', unchanged 'loss 4'".
 * Lines in which AGAIN, the output of a second unchanged run, differs from BASELINE are ignored.
 * Returns NULL if no line differs. */
const char *output_describe_difference(struct arena *arena, const char *path, const char *baseline,
                                       const char *again, bool sorted);

/* Return the last line of the file PATH that is not a message of dyntrace, such as "ValueError:
 * no", in ARENA. Returns NULL if there is none. */
const char *output_last_line(struct arena *arena, const char *path);

/* Compare the values that the function returned in one run, in the folder PATH, with those of the
 * baseline, in the folder BASELINE. Returns the worst of "equal", "close" and "different", or NULL
 * if no values were compared. */
const char *values_worst_verdict(const char *baseline, const char *path);

/* Return the first message of dyntrace in the file PATH, without "dyntrace: ", in ARENA. A message
 * about --set is preferred. Returns NULL if there is none. */
const char *output_find_own_message(struct arena *arena, const char *path);

#endif
