/* cmd/try/try.h -- the parts of `dyntrace try`.
 *
 *     plan.c      the recorded command, and which settings are tried
 *     attempt.c   one run: started, watched, stopped, its output kept
 *     output.c compares the outputs of two runs
 *     cmd/try.c   asks, runs one after the other, compares, stores, prints */
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

/* ---- the plan ------------------------------------------------------------ */

struct words {
    const char **at; /* the array is owned, the words are not */
    size_t count, room;
};

struct plan {
    struct arena arena;     /* all texts below */
    const char *path;       /* the trace that trials are stored in */
    struct words command;   /* as given to `dyntrace run` */
    struct words options;   /* of `dyntrace run`, --set ones among them */
    struct words launcher;  /* of a rank: what starts all ranks; or none */
    const char *directory;  /* where to run */
    const char *executable; /* the executed file, or NULL */
    bool interpreted;       /* an interpreter, of a script, -m or -c */
    const char *command_json;
    bool any_owner;   /* the trace may be another user's; set before plan_read() */
    bool values_kept; /* recorded with --values all: output and values may be quoted */
    bool job;         /* several ranks: their lines come in any order */
    /* FUNC, if one was named; else the one with most recompiles, which step times are of */
    bool named;
    const char *given_name; /* borrowed, or NULL */
    bool known;             /* there is one of the two */
    struct found_code code;
    struct trial_function function;
    struct words settings; /* each may be several, as a shell would split them */
    bool chosen;           /* by us: pairs of the best follow */
};

/* Read the recorded command and how to run it from the trace of FILES. False: the trace lacks it,
 * which has been reported. */
bool plan_read(struct plan *plan, char *const *files);

/* Find the function NAME in DB; for NULL, the function with the most recompiles and eager calls.
 * False: NAME is unknown or ambiguous, which has been reported. */
bool plan_find(struct plan *plan, struct db *db, const char *name);

/* Add at most MOST settings from why's remedies for the named function, else for the worst
 * function. */
void plan_choose(struct plan *plan, char *const *files, struct db *db, size_t most);

/* Check PLAN's settings as far as possible before the command runs. Invalid ones are reported. */
bool plan_settings_fit(const struct plan *plan);

/* Split TEXT into settings, in ARENA. They are separated by blanks. A setting with a blank may
 * stand in single quotes; it need not if the text after the blank cannot be a setting. */
struct words settings_split(struct arena *arena, const char *text);

void plan_free(struct plan *plan);

/* ---- one run ------------------------------------------------------------- */

struct attempt_given {
    const char *folder; /* of files that are ours, gone at the end */
    int stdin_file;     /* standard input of each run, from its beginning; -1: none */
    uint64_t timeout_ns;
    int64_t calls; /* 0: as many as there are */
    bool compare;  /* keep, or compare, the function's return values */
    double rtol;
    const char *against; /* the attempt that values are compared with, or NULL */
};

struct attempt {
    const char *name;                       /* of its files in the folder */
    char out[PATH_MAX], err[PATH_MAX];      /* what it wrote */
    char trace[PATH_MAX], values[PATH_MAX]; /* its trace, or a directory of a job's; its values */
    int64_t started_unix_ns, duration_ns;
    int status;     /* of `dyntrace run`, or the launcher, as waitpid() has it */
    bool timed_out; /* we stopped it */
    bool stopped;   /* the user pressed Ctrl-C */
};

/* Run PLAN's command under SETTING and wait for its end; NAME begins the names of its files. TICK
 * is called a few times a second. False: the command could not be started, which has been
 * reported. */
bool attempt_run(const struct plan *plan, const struct attempt_given *given, const char *name,
                 const char *setting, struct attempt *attempt, void (*tick)(void *context),
                 void *context);

/* ---- output -------------------------------------------------------------- */

/* Is the output in file PATH the same as in BASELINE, except addresses, our own lines and torch's
 * log messages? AGAIN, unless NULL, is the output of another unchanged run: words in which it
 * differs from BASELINE are ignored. With SORTED lines may be in any order. */
bool output_same(const char *path, const char *baseline, const char *again, bool sorted);

/* The first line that differs, in words: "'loss 3', unchanged 'loss 4'", in ARENA; NULL: no line
 * differs. Lines in which AGAIN differs from BASELINE are ignored. */
const char *output_difference(struct arena *arena, const char *path, const char *baseline,
                              const char *again, bool sorted);

/* The last line of the file PATH that is not ours, "ValueError: no"; in ARENA, NULL: there is
 * none. */
const char *output_last_line(struct arena *arena, const char *path);

/* How the values that one run's function returned, in the folder PATH, compare with BASELINE's: the
 * worst of "equal", "close", "different"; NULL: none were compared. */
const char *values_same(const char *baseline, const char *path);

/* The text of our own lines in the file PATH, in ARENA; NULL: none. */
const char *output_our_words(struct arena *arena, const char *path);

#endif
