/* trace/source.h -- reads source files of the traced program. The names come from the trace, so
 * only regular files of at most a few MB are read. */
#ifndef DYNTRACE_SOURCE_H
#define DYNTRACE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct source {
    /* owned: the whole file, with a NUL at the end; NULL if the file was not read (see `why`) */
    char *text;
    char **lines; /* owned: where each line begins in `text`; a NUL ends each line */
    size_t count;
    char why[160];      /* if the file was not read, the reason why */
    int64_t changed_ns; /* when the file was modified last (wall clock) */
    /* when the file, its name or its times were last changed (ctime); unlike `changed_ns`,
     * programs cannot set it */
    int64_t touched_ns;
};

/* Return the number of columns by which LINE is indented, or -1 if it is empty. */
int source_indentation(const char *line);

/* Return the number of the last line of the function or class that begins at line FIRST: the last
 * line before a line that is not indented more than line FIRST. */
int64_t source_find_function_end(const struct source *source, int64_t first);

struct source source_read(const char *path);
void source_free(struct source *source);

#endif
