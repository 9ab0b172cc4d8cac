/* tui.h -- `dyntrace tui`: a trace on the whole screen.
 *
 * What the loop and its views share is tui/view.h. */
#ifndef DYNTRACE_TUI_H
#define DYNTRACE_TUI_H

#include <stdbool.h>

struct db;
struct screen;

struct tui_options {
    const char *keys; /* borrowed: typed first, or NULL */
    bool dump;        /* then print the screen and end */
    bool live;
    bool running;     /* under `run --live`: output_fd is what the program prints */
    int output_fd;
};

/* SCREEN is taken over. Returns the exit status. */
int tui_run(const struct tui_options *options, struct db *db, struct screen *screen);

#endif
