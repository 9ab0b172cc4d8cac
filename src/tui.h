/* tui.h -- `dyntrace tui`: a trace on the whole screen.
 *
 * What the loop and its views share is tui/view.h. */
#ifndef DYNTRACE_TUI_H
#define DYNTRACE_TUI_H

#include <stdbool.h>

struct tui_options {
    const char *keys; /* borrowed: typed first, or NULL */
    const char *name; /* borrowed: the trace's name; NULL: that of its file */
    /* then print the screen and end; it needs no terminal and is of this size: */
    bool dump;
    int rows, columns;
    bool ascii, live;
    bool replay;  /* begin at its view */
    bool running; /* under `run --live`: output_fd carries the program's output */
    /* bytes written to it are the program's typed input: */
    int output_fd;
    bool program_reads;
    int program_fd, program_pid; /* a pidfd, or -1 */
};

/* The trace at PATH, or for NULL the newest here. Returns the exit status. */
int tui_run(const struct tui_options *options, const char *path);

#endif
