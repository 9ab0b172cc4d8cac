/* cmd/replay/step.h -- a trace's decisions one by one, by commands.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_REPLAY_STEP_H
#define DYNTRACE_REPLAY_STEP_H

#include <stdbool.h>
#include <stdio.h>

struct db;
struct replay;

/* What to do, in order: a command with its words, or with NAME NULL a list of them with ';' between. */
enum { REPLAY_COMMANDS = 256 };
struct replay_script {
    struct replay_command {
        const char *name, *words;
    } commands[REPLAY_COMMANDS]; /* borrowed */
    int count;
};

/* Do SCRIPT, or, when that is empty, what is typed at a prompt or comes from stdin. The exit status: 2 when a command
 * of a script could not be done. */
int replay_step(struct db *db, struct replay *replay, const struct replay_script *script, FILE *out);

#endif
