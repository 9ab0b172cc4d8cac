/* cmd/run/job.h -- the command as a job in the terminal: its start, its signals, its stops and its end.
 *
 * Runs in: the command line. There is one in a process.
 *
 * It gets our standard streams, directory, signals and environment as they were, with two variables changed. We pass on
 * signals that were sent to us alone, and stop when it stops. */
#ifndef DYNTRACE_RUN_JOB_H
#define DYNTRACE_RUN_JOB_H

#include <signal.h>

#include "cmd/run/live.h"
#include "cmd/run/program.h"
#include "collector/launch.h"

struct job_recording {
    const struct session *session; /* borrowed */
    int orders;                    /* the collector's */
    struct live *live;             /* borrowed: the screen of --live */
};

/* Start T, recorded or not (NULL). 0, or -1 after saying why. */
int job_start(const struct program *t, const struct job_recording *recording);

pid_t job_pid(void);

/* Its wait status. A collector of L (NULL: none) that dies meanwhile is replaced. */
int job_wait(struct launch *l);

/* It has ended: signals are our own again. Returns what a Ctrl-C sets from now on. */
volatile sig_atomic_t *job_end(void);

#endif
