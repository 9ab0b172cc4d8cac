/* tui/output.h -- what a program printed while its recording is on the screen.
 *
 * Runs in: the viewer, under `dyntrace run --live`. */
#ifndef DYNTRACE_TUI_OUTPUT_H
#define DYNTRACE_TUI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/list.h"

struct output {
    LIST(char) text; /* and a NUL at its end */
    bool cut;   /* its beginning was left out */
    bool open;  /* more may come */
};

/* Take what is there. False: no more will come. */
bool output_read(struct output *output, int fd);

/* The last line; the caller frees it; NULL: none. */
char *output_last(const struct output *output);

/* All of it, as it came. */
void output_print(const struct output *output, int fd);

#endif
