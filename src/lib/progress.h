/* lib/progress.h -- one line on the terminal that says something long is under way.
 *
 * Runs in: the command line.
 *
 *     struct progress p = progress_begin("checking");
 *     for each piece: progress_tick(&p, done, all);
 *     progress_end(&p);
 *
 * Nothing is shown in the first second, nor when stderr is no terminal. */
#ifndef DYNTRACE_PROGRESS_H
#define DYNTRACE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what; /* borrowed */
    int64_t begun_ms, drawn_ms;
    bool terminal, drawn;
};

struct progress progress_begin(const char *what);

/* DONE of ALL; ALL 0 when nobody knows, then seconds are shown. Cheap enough to
 * be called every few thousand rows. */
void progress_tick(struct progress *progress, int64_t done, int64_t all);

/* Take the line away. Harmless twice. */
void progress_end(struct progress *progress);

#endif
