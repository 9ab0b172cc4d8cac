/* trace/source.h -- source files of the traced program.
 *
 * The names come from the trace, so only regular files of at most some MB are read. */
#ifndef DYNTRACE_SOURCE_H
#define DYNTRACE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct source {
    /* owned: the whole file, ended by NUL; NULL if it was not read, and `why` tells why */
    char *text;
    char **lines; /* owned: where each line begins in `text`; each line is ended by NUL */
    size_t count;
    char why[160];      /* why the file was not read */
    int64_t changed_ns; /* the file's modification time, wall clock */
    /* when the file, its name or its times were last changed; programs cannot set this time */
    int64_t touched_ns;
};

/* Return the number of columns by which LINE is indented, or -1 if it is empty. */
int source_indentation(const char *line);

/* Return the last line of the function or class that begins at line FIRST: the last before the
 * indentation ends. */
int64_t source_end(const struct source *source, int64_t first);

struct source source_read(const char *path);
void source_free(struct source *source);

#endif
