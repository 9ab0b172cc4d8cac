/* trace/lines.h -- single lines of the traced program's source.
 *
 * A line is read from its file only if it is certainly the line that ran: the file is on the
 * machine that recorded, and neither the file nor its name has changed since the recording began.
 * Otherwise pages print only the file and the line number.
 *
 * The names of files come from the trace, which may be a stranger's. Only Python files are read,
 * because a report must not show, for example, a line of a private key. */
#ifndef DYNTRACE_LINES_H
#define DYNTRACE_LINES_H

#include <stdint.h>

#include "trace/source.h"

enum { LINES_FILES = 8 };

struct lines {
    /* files that were changed after this wall-clock time are not read; 0: no file may be read */
    int64_t until_ns;
    struct {
        char *path; /* owned: the path of the file; NULL if this element is unused */
        struct source source;
    } files[LINES_FILES];
    unsigned next; /* index of the element that will hold the next file */
};

/* Return the file PATH if its lines are certainly the lines that ran. Borrowed until the next call.
 * Otherwise returns NULL, and sets *WHY to the reason, which is borrowed as well. */
const struct source *lines_read_file(struct lines *lines, const char *path, const char **why);

/* Return line LINE of the file PATH without its indentation. Borrowed until the next call. Returns
 * NULL if the line is not known for certain. */
const char *lines_get_line(struct lines *lines, const char *path, int64_t line);

void lines_free(struct lines *lines);

#endif
