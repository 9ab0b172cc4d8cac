/* cmd/run/run.h -- the parts of `dyntrace run`: program, job control, screen.
 *
 * A process has one of each. */
#ifndef DYNTRACE_RUN_H
#define DYNTRACE_RUN_H

#include <sys/types.h>

#include "collector/launch.h"

/* ---- the program (program.c) --------------------------------------------- */

/* Scripts that interpreters run to answer questions: src/cmd/ask/. */
extern const char ask_which_py[], ask_alone_py[], ask_recorded_py[], ask_settings_py[];

/* A Python that runs meanwhile. */
struct asked {
    pid_t pid;
    int fd;    /* -1: nothing was asked */
    int error; /* errno: why it could not be run, or 0 */
};

/* Run ARGV, an interpreter with code; its first word is searched on PATH unless it is a path. The
 * answer is its standard output, with ERRORS also its standard error; nothing is shown. */
struct asked interpreter_ask(const char *const *argv, bool errors);

/* Read the answer, cut to ROOM. False: it could not be run (errno), or nothing was asked. */
bool interpreter_answer(struct asked *asked, char *text, size_t room);

/* A text why PROGRAM (a path, or a name searched on PATH) cannot be run, after the kernel's ERROR.
 * Owned by the callee. */
const char *program_why_not(const char *program, int error);

struct program {
    char **argv;         /* owned (the array only) */
    char path[PATH_MAX]; /* what to execute */
    const char *name;    /* base of the trace's file name */
    bool python;         /* path is an interpreter, argv[1..] its arguments */
    bool interpreted;    /* chosen because of a script, -m or -c, not named itself */
};

/* The interpreter of the caller's environment, else "python3", to be searched on PATH. Owned by the
 * callee. */
const char *program_python(void);
/* Parse ARGV: a script, -m, -c or a program; the first three are run by PYTHON. 0, or -1 on an
 * error, which has been reported. */
int program_find(struct program *t, const char *python, int argc, char **argv);

/* Ask T's interpreter for its version, unless T is a program or the interpreter's name tells. */
struct asked program_ask(const struct program *t, bool capture);

/* False: the interpreter is not supported, or has no extension; reported unless QUIET. */
bool program_fits(const struct program *t, struct asked *asked, bool capture, bool quiet);

/* Write what to do without an extension for PYTHON into REMEDY. Returns REMEDY. */
const char *extension_remedy(const char *python, char remedy[PATH_MAX + 80]);
/* Where interpreters find sitecustomize.py (inject.h); NULL after saying why they would not. Owned
 * by the callee. */
const char *program_inject(void);

/* Print why nothing of T was recorded. ENDED: T's status of waitpid(). */
void program_say_unrecorded(const struct program *t, int ended);

/* Check the settings as far as possible before T runs. Each invalid one is reported, in a line that
 * begins with WHO ("run: --set "). */
bool settings_fit(const struct program *t, const struct session_options *options, const char *who);

/* Report the settings without effect, listed in TEXT (from struct collector_result). Returns their
 * number. */
int settings_print_unused(const char *text);

/* ---- how it can run again (again.c) -------------------------------------- */

/* Fill AGAIN for T, run with OPTIONS, from our own command line. With --no-argv it
 * stays empty. */
void again_fill(struct session_again *again, const struct program *t,
                const struct session_options *options);
void again_free(struct session_again *again);

/* COUNT words as a JSON array, which the caller frees. */
char *again_words(size_t count, char *const *words);

/* ---- its recording on the screen: --live (live.c) ------------------------ */

/*     run ---fork---> command     writes to a pseudo terminal
 *         ---fork---> screen      shows the trace, and what the command wrote
 *         ---thread-> waits for the screen's end, then passes on what the command still writes
 *
 * All but live_open do nothing where it is not open. */

/* False: there can be no screen, and the error has been reported. */
bool live_open(void);

/* In the command, before it is executed. */
void live_command(void);

/* The command runs: show TRACE. */
void live_show(const char *trace);

/* The command has ended and the trace is complete: wait until the user leaves the screen. */
void live_close(void);

/* ---- a trace that is recorded apart from its place (rank.c) -------------- */

/* Ends OUTPUT, of -o, in a slash, or has its name a %h, %r or %p? */
bool output_is_per_rank(const char *output);

/* Can files be locked in the directory of PATH? SQLite cannot write there otherwise. */
bool rank_locks_work(const char *path);

/* Create OUTPUT's directory under HERE; store the destination and its clock skew in SESSION. PATH
 * becomes the recording's path, in a new directory on a local disk. With FORCE an existing file is
 * removed. False on error, which has been reported. */
bool rank_place(struct session *session, const char *output, const char *here, bool force,
                char *path, size_t room);

/* ---- the job in the terminal (job.c) ------------------------------------- */

/* It gets our original standard streams, directory, signals and environment, with two variables
 * changed. We pass on signals sent to us alone, and stop when it stops. */

/* Start T, recorded by L's collector or not (NULL). SCREEN: it has the terminal. 0, or -1 after
 * saying why. */
int job_start(const struct program *t, const struct launch *l, bool screen);

pid_t job_pid(void);

/* Its exit status, 128+N for signal N; in *ENDED as waitpid has it. A collector of L (NULL: none)
 * that dies meanwhile is replaced. */
int job_wait(struct launch *l, int *ended);

/* The command has ended: handle signals ourselves again. Returns the flag that Ctrl-C sets from now
 * on. */
volatile sig_atomic_t *job_end(void);

#endif
