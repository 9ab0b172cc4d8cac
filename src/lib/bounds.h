/* lib/bounds.h -- limits on the memory and processor time of a reader of traces.
 *
 * Runs in: the viewer.
 *
 * A trace may come from a stranger, and a small file can cause endless work. A process that has
 * opened a trace (db_open calls bounds_trace) is therefore limited to
 *
 *     memory          512 MB, and four times the size of the traces
 *     processor time   60 s, and 600 s for each GB of the traces
 *
 * These limits are some five times the most that any command takes. Past a limit the process
 * prints one line, removes unfinished files, restores the terminal, and ends with status 2. It
 * would be harder to make every function stop halfway through an answer.
 *
 * Memory is limited by RLIMIT_DATA, which counts every allocation. Our own malloc, calloc, realloc
 * and strdup are wrapped at link time and end the process; allocations inside libraries fail.
 * Processor time is limited by ITIMER_PROF, which interrupts any loop.
 *
 * On an interactive screen (bounds_attended) time counts from the last key, and the limit ends the
 * running query, not the program. Queries of `dyntrace sql`, and an import, may run as long as the
 * user likes; their memory is limited all the same.
 *
 * DYNTRACE_LIMITS=off lifts both limits. DYNTRACE_LIMITS=SECONDS:MEGABYTES replaces the 60 s and
 * the 512 MB. */
#ifndef DYNTRACE_BOUNDS_H
#define DYNTRACE_BOUNDS_H

#include <stdbool.h>

/* Start the limits for reading the trace at PATH, or raise them by its size. PATH is copied. */
void bounds_trace(const char *path);

/* Lift the limit on processor time. */
void bounds_no_time(void);

/* Count processor time from now on, because a user is present. Past the limit the process does not
 * end: bounds_time_over tells the caller. */
void bounds_attended(void);

/* Return the message to print if an interactive process is past its time limit, or NULL if it is
 * not. The caller stops the running query. Borrowed. */
const char *bounds_time_over(void);

/* If IS is true, our own malloc, calloc, realloc and strdup, and everything built on them
 * (lib/list.h, say_print), return memory or end the process with one line, with or without a limit.
 * Callers do not check for NULL. command_start calls this for every command, and so does db_open.
 * The collector, and `run` while it waits for a collector, do not. */
void bounds_memory_needed(bool is);

/* Report that memory has run out and end the process. Returns only in a process that has no limit
 * and where bounds_memory_needed was never called. */
void bounds_memory_over(void);

/* Register CALL, to be called when a limit ends the process. CALL must be safe in a signal handler.
 * At most four calls can be registered. */
void bounds_at_end(void (*call)(void));

/* Restore the former limits in a forked child, before exec. */
void bounds_child(void);

#endif
