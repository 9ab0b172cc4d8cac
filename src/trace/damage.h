/* trace/damage.h -- finds damage in a trace's file: what, where, and what is still readable.
 *
 * SQLite reports a damaged file as malformed, mostly without a page or a table, and does not open a
 * truncated file. So the file is read here page by page (trace/pages.h). */
#ifndef DYNTRACE_DAMAGE_H
#define DYNTRACE_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/list.h"
#include "trace/pages.h"

/* Sentences about a file. Owned. */
struct damage {
    struct pages pages;
    LIST(char *) faults; /* faults of the whole file: "is cut: it has 27 of its 108 pages" */
    char *log_fault;     /* in its log; during the recording this may be a page being written */
    LIST(char *) tables; /* "table frame: pages 20, 54 cannot be read; 5980 rows can" */
    int64_t rows;        /* readable rows of all tables */
    int64_t broken;      /* damaged tables and indexes */
};

/* Look at the header, length and log of the file PATH, which is quick. False: the file cannot be
 * opened (errno). The caller ends it with damage_free in both cases. */
bool damage_open(struct damage *damage, const char *path);

/* Visit all tables and indexes of the file, and add sentences about those that are damaged. */
void damage_find(struct damage *damage);

/* Copy every readable row of the file to the new trace PATH, with a row of `loss` for each
 * sentence. Returns the number of rows; -1 on error, which has been reported. */
int64_t damage_salvage(struct damage *damage, const char *path);

void damage_free(struct damage *damage);

#endif
