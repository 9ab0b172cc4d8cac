/* cmd/attach/attach.h -- interface between the files of `dyntrace attach` and `detach`.
 *
 * Runs in: the command line. */
#ifndef DYNTRACE_ATTACH_H
#define DYNTRACE_ATTACH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- what /proc tells about a process (target.c) ------------------------- */

/* A process to attach to or detach from, and what /proc tells about it. */
struct target {
    pid_t pid;        /* the process's pid in our pid namespace */
    uint32_t own_pid; /* the process's pid in its own pid namespace */
    /* start time from /proc/PID/stat, which distinguishes it from a later process with the same
     * pid */
    uint64_t started;
    uid_t uid; /* effective ids */
    gid_t gid;
    /* path of the process's program, as the process itself sees the file system */
    char exe[PATH_MAX];
    /* what we put before a path of the process to open the file: "", or "/proc/PID/root" if the
     * process has another root directory or mount namespace than we */
    char root[40];
    int minor;   /* the process runs CPython 3.MINOR; 0 if the version is not known */
    bool python; /* the process's program is a Python interpreter */
    /* our extension in the process handles SIGURG, at which it joins or leaves a session
     * (tracer/attach.c) */
    bool listens;
    /* directory of the session that the process has joined, as the process sees the path; "" if the
     * process is not recorded */
    char session[PATH_MAX];
};

/* Read what /proc tells about the process whose pid is the text WORD. Returns false if the process
 * cannot be attached to, which has been reported in a line that begins with COMMAND, "attach" or
 * "detach". */
bool target_read(struct target *target, const char *word, const char *command);

/* Read what /proc tells about process PID into OTHER. Returns false if the process has ended, or
 * belongs to another user than TARGET. */
bool target_read_same_user(struct target *other, const struct target *target, pid_t pid);

/* Is the process TARGET still alive? */
bool target_is_alive(const struct target *target);

/* Read the members `session` and `listens` of TARGET again. They change when the process joins or
 * leaves a session. */
void target_reread_session(struct target *target);

/* ---- making the process run Python code (inject.c) ----------------------- */

/* The result of making a process run a few lines of Python. The lines run where the process could
 * run a Python signal handler, or in a thread that sleeps in a system call. */
enum inject_result {
    INJECT_DONE,   /* the lines have run, in a thread that slept in a system call */
    INJECT_LATER,  /* the lines will run when the main thread next evaluates Python */
    INJECT_CANNOT, /* no code can be run in the process; the caller's WHY has the reason */
};

/* The helper process of `attach`. It keeps root's rights when `attach` itself gives them up. */
struct injector {
    /* socket to the helper process; -1 if there is none, because `attach` gives up no rights */
    int link;
};

/* If we are root and TARGET belongs to another user: give up root's rights irrevocably by becoming
 * that user, and start a helper process that keeps them for the operations that need them. Returns
 * false on error, which has been reported. */
bool inject_open(struct injector *injector, const struct target *target);
void inject_close(struct injector *injector);

/* Make TARGET join the session in DIRECTORY, a path as TARGET sees it; if DIRECTORY is NULL, make
 * it leave its session. If BLOCKED, use only a thread that sleeps in a system call. WHY (of 600
 * bytes) gets the reason for INJECT_CANNOT. */
enum inject_result inject_make_process_run(const struct injector *injector,
                                           const struct target *target, const char *directory,
                                           bool blocked, char *why);
/* To be called after INJECT_LATER: cancel the lines that TARGET is going to run, unless they have
 * run already. */
void inject_cancel_pending(const struct injector *injector, const struct target *target);

#endif
