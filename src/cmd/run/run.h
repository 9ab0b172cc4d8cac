/* cmd/run/run.h -- the parts of `dyntrace run`: program, job control, screen.
 *
 * There is one program, one job and one screen in a process. */
#ifndef DYNTRACE_RUN_H
#define DYNTRACE_RUN_H

#include <sys/types.h>

#include "collector/launch.h"
#include "lib/option.h"

/* ---- recordings (run.c) --------------------------------------------------- */

/* Options that only `attach` has. */
extern struct attach_given {
    uint64_t duration_ns; /* --for; 0: not given */
    const char *calls;    /* --calls; or NULL */
} attach_given;
extern const struct option attach_options[];

/* Return the options of the command line that the session gets. */
struct session_options *recording_options(void);

/* Create the session and the empty trace. The trace is the file of --output, or one named after the
 * last part of NAME. The trace of a rank is created on a local disk and moved later.
 *
 * Returns 0, or -1 on error, which has been reported. The caller removes and closes the session in
 * both cases. After this function a failed allocation does not end the process, because the process
 * must wait for the collector. */
int trace_begin(struct session *session, const char *name);

/* Wait until the trace is complete. Returns false if no collector was left to complete it, which
 * has been reported. */
bool trace_end(struct launch *l, volatile sig_atomic_t *interrupted, struct collector_result *said);

/* ---- the program (program.c) --------------------------------------------- */

/* Python code that interpreters run to answer a question: src/cmd/ask/. */
extern const char ask_which_py[], ask_alone_py[], ask_recorded_py[], ask_settings_py[];

/* A Python that is running to answer a question. */
struct asked {
    pid_t pid;
    int fd;    /* the read end of the answer's pipe; -1 if nothing was asked */
    int error; /* errno if the Python could not be run, otherwise 0 */
};

/* Run ARGV, which is an interpreter with code. Its first word is searched on PATH unless it is a
 * path. The answer is its standard output and, if ERRORS, its standard error. Nothing is shown to
 * the user. */
struct asked interpreter_ask(const char *const *argv, bool errors);

/* Read the answer into TEXT, cut to ROOM bytes. Returns false, with errno set, if the interpreter
 * could not be run or if nothing was asked. */
bool interpreter_answer(struct asked *asked, char *text, size_t room);

/* Return why PROGRAM cannot be run. PROGRAM is a path or a name searched on PATH, ERROR the
 * kernel's error. Owned by the callee. */
const char *program_why_not(const char *program, int error);

struct program {
    char **argv;         /* the array is owned, its words are borrowed */
    char path[PATH_MAX]; /* the file to execute */
    const char *name;    /* the file that gives the trace its name */
    bool python;         /* `path` is a Python interpreter, and argv[1..] are its arguments */
    bool interpreted;    /* the interpreter was chosen because a script, -m or -c was given */
};

/* Return the interpreter of dyntrace's virtual environment, or "python3", which is searched on
 * PATH. Owned by the callee. */
const char *program_python(void);
/* Parse ARGV: a script, -m, -c or a program. PYTHON runs the first three. Returns 0, or -1 on
 * error, which has been reported. */
int program_find(struct program *t, const char *python, int argc, char **argv);

/* Start asking T's interpreter for its version. Nothing is asked if T is not an interpreter, or if
 * the interpreter's name tells. */
struct asked program_ask(const struct program *t, bool capture);

/* Can T be recorded? Returns false if its interpreter is not supported or has no extension, which
 * is reported unless QUIET. */
bool program_fits(const struct program *t, struct asked *asked, bool capture, bool quiet);

/* Write to REMEDY how the user gets an extension for PYTHON. Returns REMEDY. */
const char *extension_remedy(const char *python, char remedy[PATH_MAX + 80]);
/* Return the directory in which interpreters find sitecustomize.py (inject.h). Returns NULL if they
 * could not find it, which has been reported. Owned by the callee. */
const char *program_inject(void);

/* Print why nothing of T was recorded. ENDED is T's status from waitpid(). */
void program_say_unrecorded(const struct program *t, int ended);

/* Check the settings as far as possible before T runs. Each invalid setting is reported in a line
 * that begins with WHO ("run: --set "). */
bool settings_fit(const struct program *t, const struct session_options *options, const char *who);

/* Report the settings without effect, which are listed in TEXT (from struct collector_result).
 * Returns their number. */
int settings_print_unused(const char *text);

/* ---- how the command can be run again (again.c) ------------------------------------- */

/* Fill AGAIN from our own command line. T was run with OPTIONS. With --no-argv AGAIN stays
 * empty. */
void again_fill(struct session_again *again, const struct program *t,
                const struct session_options *options);
void again_free(struct session_again *again);

/* Return the COUNT words of the command as a JSON array, which the caller frees: as far as OPTIONS
 * lets them be kept. Sets *REDACTED if secret values were left out. */
char *again_command(const struct session_options *options, int count, char *const *words,
                    bool *redacted);

/* ---- the recording on the screen: --live (live.c) ------------------------------- */

/*     run ---fork---> command     writes to a pseudo terminal
 *         ---fork---> screen      shows the trace, and what the command writes
 *         ---thread-> waits for the end of the screen, then passes on the command's output
 *
 * The functions below do nothing if live_open was not called. */

/* Prepare the pseudo terminal. Returns false if there can be no screen, which has been reported. */
bool live_open(void);

/* Connect the command to the pseudo terminal. Called in the child, before the command is
 * executed. */
void live_command(void);

/* Show TRACE on the screen. Called when the command runs. */
void live_show(const char *trace);

/* Wait until the user leaves the screen. Called when the command has ended and the trace is
 * complete. */
void live_close(void);

/* ---- a trace that is recorded on a local disk and then moved (rank.c) ------------------ */

/* Does each rank get its own trace for OUTPUT, the value of -o? True if OUTPUT ends in a slash, or
 * if its last part has %h, %r or %p. */
bool output_is_per_rank(const char *output);

/* Can files in the directory of PATH be locked? SQLite cannot write there otherwise. */
bool rank_locks_work(const char *path);

/* Create OUTPUT's directory under HERE, and store the trace's destination and clock skew in
 * SESSION. PATH becomes the path of the recording, in a new directory on a local disk. With FORCE
 * an existing file at the destination is removed. Returns false on error, which has been
 * reported. */
bool rank_place(struct session *session, const char *output, const char *here, bool force,
                char *path, size_t room);

/* ---- the job in the terminal (job.c) ------------------------------------- */

/* The job is the command. It gets our original standard streams, directory, signals and
 * environment, except two changed variables. We pass on signals that were sent to us alone, and
 * stop when the command stops. */

/* Signal NUMBER to this process asks the collector for a snapshot, and the command does not get
 * it. If NUMBER is 0, no signal does. Call this before job_start. */
void job_snapshot_on(int number);
/* Start T. L's collector records it, or nothing does if L is NULL. SCREEN: the screen has the
 * terminal, not T. Returns 0, or -1 on error, which has been reported. */
int job_start(const struct program *t, const struct launch *l, bool screen);

pid_t job_pid(void);

/* Wait for the command's end. Returns its exit status, or 128+N if signal N killed it, and stores
 * its waitpid() status in *ENDED. A collector of L that dies meanwhile is replaced; L may
 * be NULL. */
int job_wait(struct launch *l, int *ended);

/* Handle signals ourselves again, after the command's end. Returns the flag that Ctrl-C sets from
 * now on. */
volatile sig_atomic_t *job_end(void);

#endif
