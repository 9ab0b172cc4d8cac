/* tui/main.h -- where the command (cmd/tui.c) meets the loop (tui.c).
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_TUI_MAIN_H
#define DYNTRACE_TUI_MAIN_H

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

/* The view of that number, or NULL: for the help. */
const struct view_ops *tui_view(int kind);

#endif
