/* cmd/run/live.h -- a program that runs while its recording is on the screen: `dyntrace run --live`.
 *
 * Runs in: the command line.
 *
 *     run ---fork---> command     writes to a pseudo terminal
 *         ---fork---> screen      shows the trace, and what the command wrote
 *         ---thread-> waits for the screen's end, then passes on what the command still writes
 */
#ifndef DYNTRACE_LIVE_H
#define DYNTRACE_LIVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct live {
    int master, slave; /* of the pseudo terminal; -1: none */
    int in, out;       /* the user's, which `run` lets go of once the command has them */
    pid_t screen;
    pthread_t thread;
    bool started;
    atomic_bool ended; /* the command has */
};

#define LIVE_CLOSED {.master = -1, .slave = -1, .in = -1, .out = -1}

/* False: it was said why there can be no screen. */
bool live_open(struct live *live);

/* In the command, before it is executed. */
void live_command(struct live *live);

/* The command runs: show TRACE. */
void live_show(struct live *live, const char *trace);

/* The command has ended and the trace is whole: wait until the user has seen enough. Harmless when nothing was opened. */
void live_close(struct live *live);

#endif
