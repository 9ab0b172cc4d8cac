/* trace/whatif/print.h -- `dyntrace replay --what-if`.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_REPLAY_WHATIF_H
#define DYNTRACE_REPLAY_WHATIF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct db;
struct replay;

enum { WHATIF_SETTINGS = 32 };
struct replay_whatif {
    const char *settings[WHATIF_SETTINGS]; /* borrowed: as they were typed */
    int count;
    bool json, calls;     /* calls: a row for each call */
    FILE *out;            /* borrowed; NULL: standard output */
    /* Called before the line of text that says what was recorded, of the function with this code, -1: of all; or NULL. */
    void (*recorded)(void *context, int64_t code_id);
    void *context;
    const char *function; /* borrowed: only this one is told, and weaker guards are its; or NULL */
};

/* The exit status. */
int replay_whatif(struct db *db, struct replay *replay, const struct replay_whatif *asked);

#endif
