/* cmd/run/run.h -- interface between the files of `dyntrace run`.
 *
 * There is one program, one job and one screen in a process. */
#ifndef DYNTRACE_RUN_H
#define DYNTRACE_RUN_H

#include <sys/types.h>

#include "collector/launch.h"
#include "lib/option.h"

/* ---- beginning and ending a recording (run.c) ---------------------------- */

/* Values of options that only `attach` has. */
extern struct attach_given {
    uint64_t duration_ns; /* value of --for in nanoseconds; 0 if not given */
    const char *calls;    /* value of --calls, or NULL */
} attach_given;
extern const struct option attach_options[];

/* Return the options of the command line that the session stores for its processes. */
struct session_options *recording_options(void);

/* Create the session and the empty trace. The trace is the file of --output, or one named after the
 * last part of NAME. The trace of a rank is created on a local disk and moved later.
 *
 * Returns 0, or -1 on error, which has been reported. The caller removes and closes the session in
 * both cases. After this function a failed allocation does not end the process, because the process
 * must wait for the collector. */
int recording_begin(struct session *session, const char *name);

/* Wait until the trace is complete. Returns false if no collector was left to complete it, which
 * has been reported. */
bool recording_finish(struct launch *l, volatile sig_atomic_t *interrupted,
                      struct collector_result *said);

/* ---- finding and checking the program to record (program.c) -------------- */

/* Python code from src/cmd/ask/, which interpreters run to answer a question. */
extern const char ask_which_py[], ask_alone_py[], ask_recorded_py[], ask_settings_py[];

/* An interpreter that was started to answer a question. */
struct asked {
    pid_t pid;
    int fd;    /* the read end of the pipe for the answer, or -1 if no interpreter was started */
    int error; /* errno if the interpreter could not be run, otherwise 0 */
};

/* Start ARGV, an interpreter with code to run. Its first word is searched on PATH unless it is a
 * path. The interpreter's answer is what it writes to standard output and, if ERRORS, to standard
 * error. The user sees none of it. */
struct asked interpreter_start_question(const char *const *argv, bool errors);

/* Wait for the answer of an interpreter and store it in TEXT, cut to ROOM bytes. Returns false,
 * with errno set, if the interpreter could not be run or if none was started. */
bool interpreter_read_answer(struct asked *asked, char *text, size_t room);

/* Return the reason why PROGRAM, a path or a name that is searched on PATH, cannot be run. ERROR is
 * the kernel's error. Owned by the callee. */
const char *program_find_reason(const char *program, int error);

struct program {
    /* array of the words of the command: the array is owned, the words are borrowed */
    char **argv;
    char path[PATH_MAX]; /* the path of the file to execute */
    const char *name;    /* the trace is named after this file */
    bool python;         /* `path` is a Python interpreter, and argv[1..] are its arguments */
    bool interpreted;    /* the interpreter was chosen because a script, -m or -c was given */
};

/* Return the interpreter of dyntrace's virtual environment, or "python3", which is searched on
 * PATH. Owned by the callee. */
const char *program_choose_python(void);
/* Parse ARGV: a script, -m, -c or a program. PYTHON runs the first three. Returns 0, or -1 on
 * error, which has been reported. */
int program_find(struct program *t, const char *python, int argc, char **argv);

/* Start T's interpreter to ask for its version. The caller reads the answer later. CAPTURE: an
 * extension for --capture is needed, too. Starts nothing if T is not an interpreter, or if its file
 * name tells the version. */
struct asked program_ask_version(const struct program *t, bool capture);

/* Can T be recorded? ASKED is the result of program_ask_version(). Returns false if the interpreter
 * is not supported or has no extension, which is reported unless QUIET. */
bool program_can_be_recorded(const struct program *t, struct asked *asked, bool capture,
                             bool quiet);

/* Write to REMEDY what the user can do to get an extension for PYTHON. Returns REMEDY. */
const char *extension_describe_remedy(const char *python, char remedy[PATH_MAX + 80]);
/* Return the directory from which interpreters load sitecustomize.py (inject.h). Returns NULL if
 * they could not load it, which has been reported. Owned by the callee. */
const char *program_find_inject_directory(void);

/* Print why nothing of T was recorded. ENDED is T's waitpid() status. */
void program_report_unrecorded(const struct program *t, int ended);

/* Check the settings as far as possible before T runs. Each invalid setting is reported in a line
 * that begins with WHO ("run: --set "). */
bool settings_are_valid(const struct program *t, const struct session_options *options,
                        const char *who);

/* Report the settings that had no effect. TEXT lists them (member `settings` of struct
 * collector_result). Returns their number. */
int settings_print_unused(const char *text);

/* ---- storing how the command can be run again (again.c) ------------------ */

/* Fill AGAIN from our own command line. OPTIONS are those with which T is recorded. With --no-argv
 * AGAIN stays empty. */
void again_read_command(struct session_again *again, const struct program *t,
                        const struct session_options *options);
void again_free(struct session_again *again);

/* Return the COUNT words of the command as a JSON array, without secret values; an empty array with
 * --no-argv. The caller frees it. Sets *REDACTED if secret values were left out. */
char *again_make_command(const struct session_options *options, int count, char *const *words,
                         bool *redacted);

/* ---- showing the recording on the screen: --live (live.c) ---------------- */

/* With --live, `run` has these children:
 *
 *     run ---fork---> command   writes to a pseudo terminal;
 *         ---fork---> screen    shows the trace, and what the command writes;
 *         ---thread-> waits for the end of the screen, then passes on the command's output.
 *
 * The functions below do nothing if live_open() was not called. */

/* Prepare the pseudo terminal. Returns false if there can be no screen, which has been reported. */
bool live_open(void);

/* Connect the command to the pseudo terminal. Called in the child, before the command is
 * executed. */
void live_connect_command(void);

/* Show TRACE on the screen. Called when the command has started. */
void live_show_screen(const char *trace);

/* Wait until the user leaves the screen. Called when the command has ended and the trace is
 * complete. */
void live_close(void);

/* ---- recording a trace on a local disk and moving it later (rank.c) ------ */

/* Does each rank get a trace of its own with OUTPUT, the value of -o? Yes if OUTPUT ends with a
 * slash, or if its last part has %h, %r or %p. */
bool output_is_per_rank(const char *output);

/* Can files in the directory of PATH be locked? Without locks SQLite cannot write there. */
bool rank_locks_work(const char *path);

/* Prepare the paths of a rank's trace. OUTPUT, the value of -o, names a directory, which is
 * created under HERE. SESSION gets the trace's final path, and how far the clock of that path's
 * file server is ahead of ours. PATH gets the file to record to, in a new directory on a local
 * disk. With FORCE an existing file at the final path is removed. Returns false on error, which
 * has been reported. */
bool rank_choose_output(struct session *session, const char *output, const char *here, bool force,
                        char *path, size_t room);

/* ---- running the command as a job in the terminal (job.c) ---------------- */

/* The job is the command that `run` records. It gets our own standard streams, directory, signals
 * and environment; only two variables of the environment are changed. We pass on signals that were
 * sent to us alone, and stop when the command stops. */

/* Set the signal that requests a snapshot, or 0 for none. When this process gets the signal, it
 * asks the collector for a snapshot, and the command does not get the signal. Call this before
 * job_start. */
void job_snapshot_on_signal(int number);
/* Start T. The collector of L records T; if L is NULL, T is not recorded. SCREEN: the screen has
 * the terminal, not T. Returns 0, or -1 on error, which has been reported. */
int job_start(const struct program *t, const struct launch *l, bool screen);

pid_t job_pid(void);

/* Wait for the command's end. Returns its exit status, or 128+N if signal N killed it, and stores
 * its waitpid() status in *ENDED. If the collector of L dies meanwhile, it is replaced. L may be
 * NULL. */
int job_wait(struct launch *l, int *ended);

/* After the command has ended, handle signals ourselves again. Returns the flag that Ctrl-C sets
 * from now on. */
volatile sig_atomic_t *job_interrupted_flag(void);

#endif
