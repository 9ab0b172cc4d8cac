/* cmd/run/program.h -- what `dyntrace run` runs, and whether it can be recorded.
 *
 * Runs in: the command line. */
#ifndef DYNTRACE_RUN_PROGRAM_H
#define DYNTRACE_RUN_PROGRAM_H

#include <stdbool.h>

#include "cmd/interpreter.h"

struct program {
    char **argv;      /* owned (the array only) */
    char *path;       /* owned: what to execute */
    const char *name; /* for the trace's file name */
    bool python;      /* path is an interpreter, argv[1..] its arguments */
};

/* What the words ARGV mean: a script, -m, -c or a program; the first three are run by PYTHON. 0, or -1 after saying why not. */
int program_find(struct program *t, const char *python, int argc, char **argv);
void program_free(struct program *t);

/* Ask T's interpreter which it is; nothing is asked of a program. */
struct asked program_ask(const struct program *t);

/* False: the interpreter is not supported, or has no extension, which is said unless QUIET. */
bool program_fits(const struct program *t, struct asked *asked, bool quiet);

/* Where interpreters find sitecustomize.py (inject.h); NULL after saying why they would not. Owned by the callee. */
const char *program_inject(void);

/* Can every user of this machine read it? */
bool program_inject_is_for_all(void);

#endif
