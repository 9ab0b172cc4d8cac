/* collector/process.h -- what the kernel says of a process.
 *
 * Runs in: the command line and the collector. */
#ifndef DYNTRACE_PROCESS_H
#define DYNTRACE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
