/* collector/collector.h -- drains the rings of a session into its trace.
 *
 * Runs in: the collector, a process of its own. */
#ifndef DYNTRACE_COLLECTOR_H
#define DYNTRACE_COLLECTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector/session.h"

/* From the parent to the collector, through a pipe. */
struct collector_order {
    enum { ORDER_BEGAN, ORDER_ENDED, ORDER_STOP, ORDER_DONE } what; /* DONE: the program records itself no more */
    int32_t pid, status; /* of the command: BEGAN its pid, ENDED its wait status */
};

/* What the collector says when it is done, through another pipe. A byte 'R'
 * comes first, when it is ready for the command to start. */
struct collector_result {
    uint64_t frames, missing;
    uint32_t processes;
    char unsupported[512], torch_note[512];
    char worst[256];                /* the largest of what is missing */
    char error[2 * PATH_MAX + 512]; /* "" = the trace is complete */
};

struct collector_start {
    int orders, result;               /* pipe ends, -1: there is no parent */
    const char *argv;                 /* the command, a JSON array; NULL: carry on the work of one that was killed */
    uint32_t first, root;             /* recorder_create's; not when carrying on */
};

/* The life of a collector of SESSION, whose lock is held. Returns the exit status for the process. */
int collector_run(struct session *session, const struct collector_start *start);

#endif
