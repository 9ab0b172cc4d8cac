/* collector/metrics.h -- counters as Prometheus text: `run --metrics FILE`.
 *
 * Runs in: the collector. node_exporter's textfile collector reads FILE. Every five seconds a new
 * file is written in the same directory and renamed to FILE. The last file has the final numbers,
 * with dyntrace_recording 0. */
#ifndef DYNTRACE_METRICS_H
#define DYNTRACE_METRICS_H

#include "collector/traced.h"

/* Write the file if five seconds have passed since the last write, or if NOW. Call this after a
 * commit. */
void metrics_write(struct collector *c, bool now);
/* Write the counters for the last time, because the recording has ended. */
void metrics_write_last(struct collector *c);

#endif
