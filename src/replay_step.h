/* replay_step.h -- a trace's decisions one by one, told by commands.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_REPLAY_STEP_H
#define DYNTRACE_REPLAY_STEP_H

#include <stdio.h>

struct db;
struct replay;

/* Do COMMANDS, or for NULL those of a prompt or of stdin. SPEED is that of `play`. The exit status: 2 when a command of
 * a script could not be understood. */
int replay_step(struct db *db, struct replay *replay, const char *commands, double speed, FILE *out);

#endif
