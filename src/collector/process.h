/* collector/process.h -- looks up processes in /proc.
 *
 * Runs in: the command line and the collector. */
#ifndef DYNTRACE_PROCESS_H
#define DYNTRACE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Read a process's parent and start time from /proc/PID/stat. The start time tells apart processes
 * that had the same pid. Returns false if there is no such process. */
bool process_read_parent_and_start(uint32_t pid, uint32_t *parent, uint64_t *started);
/* Has a signal stopped process PID? */
bool process_is_stopped(uint32_t pid);

/* Open a descriptor to poll for the end of process PID. STARTED is its start time, or 0 if that is
 * not known. Returns -1 if the process has ended. */
int process_open_pidfd(uint32_t pid, uint64_t started);
/* Is the process alive? WATCH is a descriptor of process_open_pidfd(); with -1 the answer is
 * false. */
bool process_is_alive(int watch);
bool process_is_same(uint32_t pid, uint64_t started);

/* ---- find the process that writes a process file ----
 *
 * A process file tells which process writes it, as that process sees itself. In a pid namespace
 * the process's pid differs from the pid that we see; in a time namespace its start time
 * differs. So we look for what is the same on both sides: the namespace, and the file that the
 * process has mapped. */

struct process_claim {
    uint32_t pid;       /* the pid that the process itself sees */
    uint64_t started;   /* start time that the process read in its own /proc; 0 if it could not */
    uint64_t namespace; /* the process's pid namespace (namespaces.h); 0 if not known */
    const char *file;   /* borrowed: name of the process file */
    ino_t inode;        /* inode of the process file */
};

struct process_found {
    uint32_t pid;     /* the process's pid as we see it; 0 if we do not see the process */
    uint64_t started; /* the process's start time as we see it; 0 if not known */
    int watch;        /* owned: descriptor as from process_open_pidfd(), or -1 */
};

enum process_sight {
    PROCESS_SEEN,
    PROCESS_ENDED,  /* the process has certainly ended; FOUND has its pid */
    PROCESS_HIDDEN, /* the process may have ended, or may live where we cannot see it */
};

enum process_sight process_find(const struct process_claim *claim, struct process_found *found);

/* Has any other process opened or mapped the file of FD? Returns true also if the filesystem does
 * not tell. FD must be open for writing, and no other descriptor of ours may have the file open. */
bool process_file_is_used(int fd);

#endif
