/* tui/source.h -- source files of the traced program, as far as they are still what they were.
 *
 * Runs in: the viewer. The names come from the trace: only regular files are read, and never more than some MB. */
#ifndef DYNTRACE_TUI_SOURCE_H
#define DYNTRACE_TUI_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct doc;

struct source {
    char *text;          /* owned: the whole file, NUL at the end; NULL: see `why` */
    char **lines;        /* owned: beginnings of lines in it, each ended by NUL */
    size_t count;
    char why[160];       /* why it cannot be read */
    int64_t changed_ns;  /* when it was changed last, wall clock */
};

struct source source_read(const char *path);
void source_free(struct source *source);

/* The last line of what is defined at FIRST: where the indentation ends. */
int64_t source_end(const struct source *source, int64_t first);

/* What stands at the left of a line of source. */
struct gutter {
    int64_t line;
    const char *mark;   /* marked text, some columns */
    const char *note;   /* marked text after the line, or NULL */
    int64_t id;         /* where it leads */
    int kind;           /* enum view_kind */
};

/* Lines FROM to TO of it, or why there are none; also when it changed since it was recorded. AT is pointed at. */
void source_put(struct doc *doc, struct db *db, const struct source *source, int64_t from, int64_t to, int64_t at, const struct gutter *gutter,
                size_t gutters);

#endif
