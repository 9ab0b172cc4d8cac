/* tui.h -- `dyntrace tui`: a trace on the whole screen.
 *
 * tui/view.h declares the types and functions that the loop and its views share. */
#ifndef DYNTRACE_TUI_H
#define DYNTRACE_TUI_H

#include <stdbool.h>

struct tui_options {
    const char *keys; /* borrowed: keys that are played first, or NULL */
    const char *name; /* borrowed: the trace's name; if NULL, the name of its file */
    /* play `keys`, print a screen of `rows` by `columns` cells and end; needs no terminal */
    bool dump;
    int rows, columns;
    bool ascii, live;
    bool replay;  /* begin at the replay view */
    bool running; /* under `run --live`: output_fd carries the program's output */
    /* descriptor with the program's output; with `program_reads`, the user's input is written to
     * it */
    int output_fd;
    bool program_reads;
    int program_fd, program_pid; /* pidfd of the program, or -1; and its pid */
};

/* Show the trace at PATH; if PATH is NULL, the newest trace in the current directory. Returns the
 * exit status. */
int tui_run(const struct tui_options *options, const char *path);

#endif
