/* lib/progress.c -- one line on the terminal that says something long is under way. See lib/progress.h.
 *
 * Runs in: the command line. */
#include "lib/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_MS = 1000, REDRAW_MS = 200 };

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct progress progress_begin(const char *what)
{
    int64_t now = now_ms();

    return (struct progress){what, now, now, isatty(STDERR_FILENO), false};
}

void progress_tick(struct progress *progress, int64_t done, int64_t all)
{
    int64_t now;

    if (!progress->terminal)
        return;
    now = now_ms();
    if (now - progress->begun_ms < QUIET_MS || now - progress->drawn_ms < REDRAW_MS)
        return;
    progress->drawn_ms = now;
    progress->drawn = true;
    fprintf(stderr, "\r%s: %d s", progress->what, (int)((now - progress->begun_ms) / 1000));
    if (all > 0)
        fprintf(stderr, ", %d %%", done >= all ? 100 : (int)((double)done * 100 / (double)all));
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_end(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
    fflush(stderr);
}
