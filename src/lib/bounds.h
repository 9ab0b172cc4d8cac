/* lib/bounds.h -- limits on the memory and processor time of a reader of traces.
 *
 * Runs in: the viewer.
 *
 * A trace may come from a stranger, and a small file can cause endless work. So a process that has
 * opened a trace (db_open calls bounds_set_for_trace) is limited to
 *
 *     memory          512 MB, and four times the size of the traces
 *     processor time   60 s, and 600 s for each GB of the traces
 *
 * These limits are some five times the most that any command needs. Past a limit the process prints
 * one line, removes unfinished files, restores the terminal, and ends with status 2. To let every
 * function stop halfway through an answer would be harder.
 *
 * Memory is limited by RLIMIT_DATA, which counts every allocation. Our own malloc, calloc, realloc
 * and strdup are wrapped at link time and end the process; allocations inside libraries fail.
 * Processor time is limited by ITIMER_PROF, which interrupts any loop.
 *
 * On an interactive screen (bounds_wait_for_interrupt) the time counts from the last key, and the
 * limit ends the running query, not the program. Queries of `dyntrace sql`, and an import, may run
 * as long as the user likes; only their memory is limited.
 *
 * DYNTRACE_LIMITS=off lifts both limits. DYNTRACE_LIMITS=SECONDS:MEGABYTES replaces the 60 s and
 * the 512 MB. */
#ifndef DYNTRACE_BOUNDS_H
#define DYNTRACE_BOUNDS_H

#include <stdbool.h>

/* Start the limits for reading the trace at PATH, or raise them by its size. PATH is copied. */
void bounds_set_for_trace(const char *path);

/* Lift the limit on processor time. */
void bounds_lift_time_limit(void);

/* From now on count processor time for a user who is present. When the time is over, the process
 * does not end: bounds_get_time_message tells the caller. */
void bounds_wait_for_interrupt(void);

/* Return NULL, or, if an interactive process has used up its time, the message to print. The caller
 * stops the running query. Borrowed. */
const char *bounds_get_time_message(void);

/* If IS is true, our own malloc, calloc, realloc and strdup from now on end the process with one
 * line when memory has run out, instead of returning NULL. So do lib/list.h and say_print, which
 * use these, and their callers do not check for NULL. command_parse_and_run and db_open call this.
 * The collector, and `run` while it waits for a collector, must check for NULL. */
void bounds_allow_memory_failure(bool is);

/* Report that memory has run out, and end the process. Returns only if the process has no limit and
 * bounds_allow_memory_failure was never called. */
void bounds_end_without_memory(void);

/* Register CALL, to be called when a limit ends the process. CALL must be safe in a signal handler.
 * At most four calls can be registered. */
void bounds_call_at_end(void (*call)(void));

/* Restore the former limits in a forked child, before exec. */
void bounds_reset_in_child(void);

#endif
