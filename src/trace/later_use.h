/* trace/later_use.h -- finds what the lines below an assignment do with the assigned name.
 *
 * A program may take a number from a tensor on one line, and branch on it on a later one:
 *
 *     n = int(mask.sum())
 *     if n == 0:
 *
 * Torch breaks the graph at the first line; the second one tells which remedy helps. */
#ifndef DYNTRACE_LATER_USE_H
#define DYNTRACE_LATER_USE_H

#include <stdint.h>

struct lines;

enum later_use {
    LATER_UNKNOWN, /* the source is not known for certain, or nothing of the following was found */
    LATER_TESTED,  /* a line branches on the number */
    LATER_LOOPED,  /* a line loops over a range up to it */
    LATER_PRINTED, /* a line makes a text of it */
};

/* Return what the first of the later lines of the function does that uses the name which line LINE
 * of FILE assigns, and set *TEXT to this line, which the caller frees. Returns LATER_UNKNOWN, and
 * leaves *TEXT, if there is no such line. */
enum later_use find_later_use(struct lines *lines, const char *file, int64_t line, char **text);

#endif
