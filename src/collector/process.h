/* collector/process.h -- what the kernel says of a process.
 *
 * Runs in: the command line and the collector. */
#ifndef DYNTRACE_PROCESS_H
#define DYNTRACE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Fields of /proc/PID/stat: parent and start time, which distinguishes processes with one pid. */
bool process_stat(uint32_t pid, uint32_t *parent, uint64_t *started);
/* Has a signal stopped it? */
bool process_is_stopped(uint32_t pid);

/* A descriptor that can be polled for the end of the process PID that began at STARTED (0: not
 * known); -1: it has ended. */
int process_watch(uint32_t pid, uint64_t started);
/* Has the process of that descriptor not ended? The same of one that is not watched. */
bool process_lives(int watch);
bool process_is(uint32_t pid, uint64_t started);

/* ---- the process that a file is of ----
 *
 * A process says in its file who it is, in its own words: in a pid namespace its pid is another
 * than ours for it, in a time namespace it began at another time. It is found by what is the same
 * from both sides: the namespace, and the file that it has mapped. */

struct process_claim {
    uint32_t pid;       /* as it calls itself */
    uint64_t started;   /* as its /proc says; 0: it could not read that */
    uint64_t namespace; /* of its pids (namespaces.h), 0: not known */
    const char *file;   /* name of the file; borrowed */
    ino_t inode;        /* of the file */
};

struct process_found {
    uint32_t pid;     /* as we see it; 0: we do not */
    uint64_t started; /* likewise */
    int watch;        /* as process_watch; owned by the caller */
};

enum process_sight {
    PROCESS_SEEN,
    PROCESS_ENDED,  /* certainly, and FOUND has its pid */
    PROCESS_HIDDEN, /* it may have ended, or be where we do not see it */
};

enum process_sight process_find(const struct process_claim *claim, struct process_found *found);

/* Has any process but this one opened or mapped the file of FD, by whichever descriptor? True where
 * the filesystem does not tell. FD is open for writing, and no other descriptor of ours is. */
bool process_file_is_used(int fd);

#endif
