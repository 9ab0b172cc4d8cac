/* lib/bounds.h -- how much memory and processor time a reader of traces may take.
 *
 * Runs in: the viewer.
 *
 * A trace may come from anybody, and a small file can ask for endless work. So a process that has
 * opened one (bounds_trace, by db_open) is held to
 *
 *     memory          512 MB, and four times the size of the traces
 *     processor time   60 s, and 600 s for each GB of them
 *
 * which is some five times what any command takes for its largest. Past a bound the process says so
 * in one line, takes unfinished files away, gives the terminal back, and ends with status 2: there
 * is no way out of half an answer that would be simpler to get right. Memory is held by
 * RLIMIT_DATA, so that it counts whoever asks for it: our own malloc and its kin end here (they are
 * wrapped at the link), those inside of libraries fail. Processor time is held by ITIMER_PROF, so
 * that it counts in any loop.
 *
 * On a screen with a person before it (bounds_attended) time counts from the last key, and ends the
 * query that runs, not the program. What is asked by `dyntrace sql`, and an import, may run as long
 * as the user likes; their memory is bounded all the same.
 *
 * DYNTRACE_LIMITS=off lifts both, DYNTRACE_LIMITS=SECONDS:MEGABYTES sets the part that does not
 * depend on the size. */
#ifndef DYNTRACE_BOUNDS_H
#define DYNTRACE_BOUNDS_H

#include <stdbool.h>

/* From now on, or further: this trace is being read. PATH is copied. */
void bounds_trace(const char *path);

/* Processor time is the user's own affair from here on. */
void bounds_no_time(void);

/* Somebody is there, now: time counts from here, and it is for bounds_time_over to ask. */
void bounds_attended(void);

/* What to say in a process that is attended, once its time is over: stop what runs. NULL: it is
 * not. Borrowed. */
const char *bounds_time_over(void);

/* From here on memory never lacks: our own malloc, calloc, realloc and strdup, and what is made of
 * them (lib/list.h, say_print), answer with memory or end the process by one line, with or without
 * a bound; nobody asks for NULL. So it is in every command (command_start), and behind db_open. The
 * collector, and `run` while it waits for one, go on without. */
void bounds_memory_needed(bool is);

/* Memory is over. Returns only where it is not needed. */
void bounds_memory_over(void);

/* Call CALL before the end at a bound; it must be safe in a signal handler. At most four. */
void bounds_at_end(void (*call)(void));

/* In a forked child that is to become another program: what it had before. */
void bounds_child(void);

#endif
