/* trace/damage.h -- finds damage in a trace's file, and copies the rows that are still readable.
 *
 * SQLite calls a damaged file malformed, mostly without naming a page or a table, and does not open
 * a truncated file. The functions here therefore read the file themselves, page by page
 * (trace/pages.h). */
#ifndef DYNTRACE_DAMAGE_H
#define DYNTRACE_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/list.h"
#include "trace/pages.h"

/* Sentences about the damage in a file. The texts are owned. */
struct damage {
    struct pages pages;
    /* faults of the whole file, such as "is cut: it has 27 of its 108 pages" */
    LIST(char *) faults;
    /* owned: a fault of the write-ahead log, or NULL; while a recording runs, this may be a page
     * that is just being written */
    char *log_fault;
    /* owned: a sentence for each damaged table, such as "table frame: pages 20, 54 cannot be read;
     * 5980 rows can" */
    LIST(char *) tables;
    int64_t rows;   /* number of readable rows in all tables */
    int64_t broken; /* number of tables and indexes that are damaged */
};

/* Open the file PATH and check its header, length and log, which is quick. Returns false, with
 * errno set, if the file cannot be opened. The caller calls damage_free in both cases. */
bool damage_open(struct damage *damage, const char *path);

/* Visit all tables and indexes of the file and add a sentence for each damaged one. */
void damage_find(struct damage *damage);

/* Copy every readable row of the file to the new trace PATH. For each sentence of DAMAGE, add a row
 * to the table `loss` of the new trace. Returns the number of rows; -1 after reporting an error. */
int64_t damage_copy_rows(struct damage *damage, const char *path);

void damage_free(struct damage *damage);

#endif
