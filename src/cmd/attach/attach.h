/* cmd/attach/attach.h -- the parts of `dyntrace attach` and `detach`.
 *
 * Runs in: the command line. */
#ifndef DYNTRACE_ATTACH_H
#define DYNTRACE_ATTACH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- the process (target.c) ----------------------------------------------- */

/* What /proc tells about a process. */
struct target {
    pid_t pid;        /* as we see it */
    uint32_t own_pid; /* in its own pid namespace */
    uint64_t started; /* start time, so that a later process with this pid is not taken for it */
    uid_t uid;        /* effective ids */
    gid_t gid;
    char exe[PATH_MAX]; /* its program, by the name that it has there */
    char root[40]; /* where we see its files: "", or "/proc/PID/root" in a namespace of its own */
    int minor;     /* it is CPython 3.MINOR; 0: not known */
    bool python;   /* its program is an interpreter */
    bool listens;  /* it has our handler of SIGURG: tracer/attach.c */
    char session[PATH_MAX]; /* the directory of the session that it is in, as it sees it; or "" */
};

/* Read what /proc tells about the process that WORD names. Returns false if it cannot be attached
 * to, which has been reported in a line that begins with the name of COMMAND. */
bool target_read(struct target *target, const char *word, const char *command);

/* Read what /proc tells about process PID, another of the user of TARGET, with its namespaces.
 * Returns false if it is none. */
bool target_like(struct target *other, const struct target *target, pid_t pid);

/* Is the process still there? */
bool target_lives(const struct target *target);

/* Read again whether it is in a session, and whether it listens. */
void target_look(struct target *target);

/* ---- the way into it (inject.c) ------------------------------------------- */

/* A process runs a few lines of Python of ours, at a point where its main thread could run a signal
 * handler. */
enum inject_result {
    INJECT_DONE,   /* the lines have run, or will run soon */
    INJECT_LATER,  /* they run when the main thread comes back to Python */
    INJECT_CANNOT, /* there is no way; the reason is in the text */
};

/* A process that kept the rights which we gave up, and works for us. */
struct injector {
    int link; /* socket; -1: we have all rights ourselves */
};

/* Become the user of TARGET for good, if we are root and it is another user's. What needs root's
 * rights is done by a process that keeps them. Returns false on error, which has been reported. */
bool inject_open(struct injector *injector, const struct target *target);
void inject_close(struct injector *injector);

/* Have TARGET join the session in DIRECTORY, as it sees it; or with DIRECTORY NULL leave the one
 * that it is in. BLOCKED: only if a thread of it sleeps in a system call. WHY (of 600 bytes) gets
 * the reason for INJECT_CANNOT. */
enum inject_result inject_run(const struct injector *injector, const struct target *target,
                              const char *directory, bool blocked, char *why);
/* Take back what inject_run() left, after INJECT_LATER. */
void inject_cancel(const struct injector *injector, const struct target *target);

#endif
