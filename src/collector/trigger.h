/* collector/trigger.h -- takes snapshots when a condition is met: `run --snapshot-on WHAT`.
 *
 * Runs in: the collector. It checks the conditions on events that it records anyway, so they cost
 * the program nothing:
 *
 *     FUNC>TIME   a call of FUNC that has ended took longer than TIME
 *     exception   threading's excepthook was called; or a process ended with a status other than 0
 *                 or an unknown one, and one of its outermost frames ended with an exception
 *     USR1, ...   `dyntrace run` got this signal (cmd/run/job.c), and orders a snapshot
 *
 * A child of the collector takes the snapshot, as `dyntrace snapshot` does, and writes it to
 * TRACE-snapshot-N.db. */
#ifndef DYNTRACE_TRIGGER_H
#define DYNTRACE_TRIGGER_H

#include "collector/traced.h"

/* Read the conditions of --snapshot-on from the session. */
void trigger_begin(struct collector *c);
/* Take a snapshot if a condition of --snapshot-on was met. */
void trigger_serve_requests(struct collector *c);
/* Is a snapshot being taken? */
bool trigger_is_busy(struct collector *c);
/* Stop the snapshot that is being taken, if there is one, and write the list of snapshots to
 * `meta`. */
void trigger_end(struct collector *c);

#endif
