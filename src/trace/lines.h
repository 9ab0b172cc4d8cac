/* trace/lines.h -- single lines of the traced program's source.
 *
 * A line is read from its file only if it is certainly the one that ran: the file is on the machine
 * that recorded, and neither it nor its name has changed since the recording began. Otherwise there
 * is no text, and pages print only file and line number.
 *
 * The file names come from the trace, which may be a stranger's. Only Python files are read, so
 * that a report made from it cannot contain a line of a private key. */
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
