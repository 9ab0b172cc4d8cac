/* collector/liveness.h -- does a recording go on?
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_LIVENESS_H
#define DYNTRACE_LIVENESS_H

enum liveness { LIVE_NO, LIVE_YES, LIVE_UNKNOWN };

/* Does the collector of the session in DIRECTORY run, which is what `meta` calls session? NULL is LIVE_UNKNOWN. */
enum liveness session_live(const char *directory);

#endif
