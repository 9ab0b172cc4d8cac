/* tui/source.h -- lines of source in a text, with marks at their left.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_TUI_SOURCE_H
#define DYNTRACE_TUI_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/source.h"

struct db;
struct doc;

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
