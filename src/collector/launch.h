/* collector/launch.h -- start a collector, replace it when it dies, and wait for what it made.
 *
 * Runs in: the command line (`run`, `collect`; of a recording that was left: `run`, `fsck --recover`). */
#ifndef DYNTRACE_LAUNCH_H
#define DYNTRACE_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector/collector.h"
#include "collector/session.h"

struct launch {
    struct session *session;     /* borrowed */
    pid_t pid;                   /* the collector's; 0: it is dead */
    int orders, result;          /* pipe ends; -1: none */
    struct collector_order began, ended; /* orders sent, to be repeated to the next one; pid 0: not yet */
    uint64_t born_ns, pause_ns;  /* CLOCK_MONOTONIC: when it began; how long the next is waited with */
    unsigned replaced;           /* how often */
    bool done;                   /* it has ended, and said what it made */
    bool orphan;                 /* it is nobody's child: when it dies nobody takes its place */
};

/* Let go of standard input and output and of inherited descriptors; stderr stays. */
void launch_let_go(void);

/* Fork the collector of SESSION, whose lock goes over to it. ARGV: the command, a
 * JSON array; FIRST, ROOT: recorder_create's. 0 when it is ready; -1 after saying why not. */
int launch_collector(struct launch *l, struct session *session, const char *argv, uint32_t first, uint32_t root);

/* Fork one that goes on with what a killed collector left, in nobody's terminal. The lock goes over to it. */
int launch_orphan(struct launch *l, struct session *session);

/* Tell it how the command began or ended. */
void launch_order(struct launch *l, const struct collector_order *order);

/* Has the collector died? Then put another in its place. Milliseconds after which to ask again, -1: no need to. */
int launch_look(struct launch *l);

/* Wait until the trace is whole. When *INTERRUPTED (NULL: never) becomes non-zero
 * the collector stops waiting for stragglers. False: it died again and again. */
bool launch_wait(struct launch *l, volatile sig_atomic_t *interrupted, struct collector_result *said);

void launch_close(struct launch *l);

/* ---- collector/recover.c: recordings whose collector was killed ---- */

/* Finish the interrupted recording of trace PATH, or with NULL every one of this
 * user. Says what it did. Returns 0 (done, or nothing to do), 1 (some failed). */
int recover_trace(const char *path);

/* The same for all, silent when there is nothing to do: for the start of `run`. */
void recover_all_quietly(void);

#endif
