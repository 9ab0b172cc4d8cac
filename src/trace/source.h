/* trace/source.h -- source files of the traced program.
 *
 * The names come from the trace: only regular files are read, and never more than some MB. */
#ifndef DYNTRACE_SOURCE_H
#define DYNTRACE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct source {
    char *text;   /* owned: the whole file, NUL at the end; NULL: see `why` */
    char **lines; /* owned: beginnings of lines in it, each ended by NUL */
    size_t count;
    char why[160];      /* why it cannot be read */
    int64_t changed_ns; /* when it was changed last, wall clock */
    int64_t touched_ns; /* when it, its name or its times were changed last, which none can set */
};

struct source source_read(const char *path);
void source_free(struct source *source);

#endif
