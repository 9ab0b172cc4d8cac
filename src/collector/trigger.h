/* collector/trigger.h -- takes snapshots by itself: `run --snapshot-on WHAT`.
 *
 * Runs in: the collector. It looks at what it records anyway, so the program does nothing for
 * these conditions:
 *
 *     FUNC>TIME   a call of FUNC that has ended took longer than TIME
 *     exception   threading's excepthook was called; or a process ended with a status other than 0
 *                 or an unknown one, and one of its outermost frames ended with an exception
 *     USR1, ...   `dyntrace run` got that signal (cmd/run/job.c), and ordered a snapshot
 *
 * A child of the collector takes the snapshot, as `dyntrace snapshot` does, and writes it to
 * TRACE-snapshot-N.db. */
#ifndef DYNTRACE_TRIGGER_H
#define DYNTRACE_TRIGGER_H

#include "collector/traced.h"

/* Read the conditions of the session. */
void trigger_begin(struct collector *c);
/* Take a snapshot if a condition was met. */
void trigger_serve(struct collector *c);
/* Is a snapshot being taken? */
bool trigger_is_busy(struct collector *c);
/* End a snapshot that is being taken; say in `meta` which were. */
void trigger_end(struct collector *c);

#endif
