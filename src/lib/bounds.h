/* lib/bounds.h -- how much memory and processor time a reader of traces may take.
 *
 * Runs in: the viewer.
 *
 * A trace may come from a stranger, and a small file can cause endless work. So a process that has
 * opened one (bounds_trace, by db_open) is limited to
 *
 *     memory          512 MB, and four times the size of the traces
 *     processor time   60 s, and 600 s for each GB of them
 *
 * some five times the most that any command takes. Past a limit the process prints one line,
 * removes unfinished files, restores the terminal, and ends with status 2; stopping halfway through
 * an answer in any other way would be harder to get right. Memory is limited by RLIMIT_DATA, which
 * counts every allocation: our own malloc and its kin end the process (they are wrapped at link
 * time), those inside libraries fail. Processor time is limited by ITIMER_PROF, which counts in any
 * loop.
 *
 * On an interactive screen (bounds_attended) time counts from the last key, and the limit ends the
 * running query, not the program. Queries of `dyntrace sql`, and an import, may run as long as the
 * user likes; their memory is limited all the same.
 *
 * DYNTRACE_LIMITS=off lifts both, DYNTRACE_LIMITS=SECONDS:MEGABYTES sets the part that does not
 * depend on the size. */
#ifndef DYNTRACE_BOUNDS_H
#define DYNTRACE_BOUNDS_H

#include <stdbool.h>

/* Start the limits, or raise them, for reading the trace PATH. PATH is copied. */
void bounds_trace(const char *path);

/* No limit on processor time from here on. */
void bounds_no_time(void);

/* A user is present: time counts from now, and the limit is reported only by bounds_time_over. */
void bounds_attended(void);

/* The message once an interactive process is past its time limit: the caller stops the running
 * query. NULL: not past it. Borrowed. */
const char *bounds_time_over(void);

/* From now on our own malloc, calloc, realloc and strdup, and everything built on them (lib/list.h,
 * say_print), return memory or end the process with one line, with or without a limit; callers do
 * not check for NULL. Every command calls this (command_start), and db_open does. The collector,
 * and `run` while it waits for one, do not. */
void bounds_memory_needed(bool is);

/* Report that memory has run out and end the process; returns only where memory is not needed. */
void bounds_memory_over(void);

/* Register CALL, to be called when a limit ends the process. It must be safe in a signal handler.
 * At most four. */
void bounds_at_end(void (*call)(void));

/* In a forked child, before exec: restore the former limits. */
void bounds_child(void);

#endif
