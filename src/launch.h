/* launch.h -- start a collector, and wait for what it made.
 *
 * Runs in: the command line (`run`, `collect`). */
#ifndef DYNTRACE_LAUNCH_H
#define DYNTRACE_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector.h"
#include "session.h"

/* Let go of standard input and output and of inherited descriptors; stderr stays. */
void launch_let_go(void);

/* Fork the collector of SESSION, whose lock goes over to it. ARGV: the command, a
 * JSON array; FIRST, ROOT: recorder_create's. 0 with the pipes' ends, when it is
 * ready; -1 after saying why not. */
int launch_collector(struct session *session, const char *argv, uint32_t first, uint32_t root, int *orders, int *result);

/* Wait until the trace is whole. When *INTERRUPTED (NULL: never) becomes non-zero
 * the collector stops waiting for stragglers. False: it was killed. */
bool launch_wait(int orders, int result, volatile sig_atomic_t *interrupted, struct collector_result *said);

#endif
