/* collector/recover.h -- finish recordings whose collector was killed.
 *
 * Runs in: the command line. */
#ifndef DYNTRACE_RECOVER_H
#define DYNTRACE_RECOVER_H

/* Finish the interrupted recording of trace PATH, or with NULL every one of this
 * user. Says what it did. Returns 0 (done, or nothing to do), 1 (some failed). */
int recover_trace(const char *path);

/* The same for all, silent when there is nothing to do: for the start of `run`. */
void recover_all_quietly(void);

#endif
