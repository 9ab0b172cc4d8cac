/* trace/lines.h -- single lines of the traced program's source.
 *
 * A line is read from its file only where it is known to be the one that ran: the file lies on the
 * machine that recorded, and neither it nor its name changed since the recording began. Else there
 * is no text, and a page prints the place alone.
 *
 * The names come from the trace, which may be anybody's. Only Python files are read, so that a
 * report made from a stranger's trace holds no line of a private key. */
#ifndef DYNTRACE_LINES_H
#define DYNTRACE_LINES_H

#include <stdint.h>

#include "trace/source.h"

enum { LINES_FILES = 8 };

struct lines {
    int64_t until_ns; /* wall clock: the latest change of a file that is read; 0: read none */
    struct {
        char *path; /* owned; NULL: free */
        struct source source;
    } files[LINES_FILES];
    unsigned next; /* the place that is used again */
};

/* LINE of the file PATH, without its indentation; borrowed until the next call. NULL: not known. */
const char *lines_text(struct lines *lines, const char *path, int64_t line);

void lines_free(struct lines *lines);

#endif
