/* cmd/run/run.h -- the parts of `dyntrace run`: what it runs, as which job, with which screen.
 *
 * There is one of each in a process. */
#ifndef DYNTRACE_RUN_H
#define DYNTRACE_RUN_H

#include <sys/types.h>

#include "collector/launch.h"

/* ---- the program (program.c) --------------------------------------------- */

/* What interpreters are asked: src/cmd/ask/. */
extern const char ask_which_py[], ask_alone_py[], ask_recorded_py[], ask_settings_py[];

/* A Python that runs meanwhile. */
struct asked {
    pid_t pid;
    int fd;    /* -1: nothing was asked */
    int error; /* errno: why it could not be run, or 0 */
};

/* Run ARGV, an interpreter with code, its first word found on PATH if it is no path. What it prints
 * is the answer, with ERRORS also what it writes to its standard error; nothing of it is shown. */
struct asked interpreter_ask(const char *const *argv, bool errors);

/* What it printed, cut to ROOM. False: it could not be run, errno says why, or nothing was
 * asked. */
bool interpreter_answer(struct asked *asked, char *text, size_t room);

/* Why PROGRAM, a path or a name that is looked for on PATH, cannot be run, where the kernel said
 * ERROR: words, owned by the callee. */
const char *program_why_not(const char *program, int error);

struct program {
    char **argv;         /* owned (the array only) */
    char path[PATH_MAX]; /* what to execute */
    const char *name;    /* for the trace's file name */
    bool python;         /* path is an interpreter, argv[1..] its arguments */
    bool interpreted;    /* it is because of a script, -m or -c, not by its own name */
};

/* That of the environment that we were called from, else "python3", to be looked for on PATH. Owned
 * by the callee. */
const char *program_python(void);
/* What the words ARGV mean: a script, -m, -c or a program; the first three are run by PYTHON. 0, or
 * -1 after saying why not. */
int program_find(struct program *t, const char *python, int argc, char **argv);

/* Ask T's interpreter which it is; nothing is asked of a program, or where the interpreter's name
 * says it. */
struct asked program_ask(const struct program *t, bool capture);

/* False: the interpreter is not supported, or has no extension, which is said unless QUIET. */
bool program_fits(const struct program *t, struct asked *asked, bool capture, bool quiet);

/* What to do where there is no extension for PYTHON. Returns REMEDY. */
const char *extension_remedy(const char *python, char remedy[PATH_MAX + 80]);
/* Where interpreters find sitecustomize.py (inject.h); NULL after saying why they would not. Owned
 * by the callee. */
const char *program_inject(void);

/* Say why nothing of T was recorded, which ended as waitpid() says in ENDED. */
void program_say_unrecorded(const struct program *t, int ended);

/* Can the settings be, as far as can be told before T runs? If not each is reported, in a line that
 * begins with WHO, "run: --set ". */
bool settings_fit(const struct program *t, const struct session_options *options, const char *who);

/* Report those that did nothing, TEXT of struct collector_result. Returns how many. */
int settings_print_unused(const char *text);

/* ---- how it can run again (again.c) -------------------------------------- */

/* Fill AGAIN for T, run with OPTIONS as the words that our own command line is. Texts live till the
 * end. With --no-argv nothing is kept. */
void again_fill(struct session_again *again, const struct program *t,
                const struct session_options *options);

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

/* The command has ended and the trace is whole: wait until the user has seen enough. */
void live_close(void);

/* ---- a trace that is recorded apart from its place (rank.c) -------------- */

/* Ends OUTPUT, of -o, in a slash, or has its name a %h, %r or %p? */
bool rank_is_apart(const char *output);

/* Can files be locked in the directory of PATH? SQLite writes none there otherwise. */
bool rank_locks_work(const char *path);

/* Fill the destination of SESSION with OUTPUT below HERE, its directory made, and how far the clock
 * there is ahead; PATH becomes where to record it, in a new directory on a local disk. With FORCE
 * what is there now goes. False: the error has been reported. */
bool rank_place(struct session *session, const char *output, const char *here, bool force,
                char *path, size_t room);

/* ---- the job in the terminal (job.c) ------------------------------------- */

/* It gets our standard streams, directory, signals and environment as they were, with two variables
 * changed. We pass on signals that were sent to us alone, and stop when it stops. */

/* Start T, recorded by L's collector or not (NULL). SCREEN: it has the terminal. 0, or -1 after
 * saying why. */
int job_start(const struct program *t, const struct launch *l, bool screen);

pid_t job_pid(void);

/* Its exit status, 128+N for signal N; in *ENDED as waitpid has it. A collector of L (NULL: none)
 * that dies meanwhile is replaced. */
int job_wait(struct launch *l, int *ended);

/* It has ended: signals are our own again. Returns what a Ctrl-C sets from now on. */
volatile sig_atomic_t *job_end(void);

#endif
