/* trace/scan.h -- reads the rows of a table that holds only numbers from the pages of its file.
 *
 * SQLite takes 100 ns for a row of `frame`, mostly in its virtual machine; scan_rows() takes a
 * fifth of this. It reads only pages of the usual form (https://www.sqlite.org/fileformat2.html,
 * "B-tree Pages"). If it meets another page, SQLite reads the remaining rows and reports errors. */
#ifndef DYNTRACE_SCAN_H
#define DYNTRACE_SCAN_H

#include <stdbool.h>

#include "tables.h"

struct db;

/* Call ROW for every row of TABLE, in order of its key. VALUES is a struct row_TABLE in which NULL
 * is 0; NULLS has a bit for each value that is NULL. ROW returns false to stop early, which is no
 * error. */
void scan_rows(struct db *db, enum row_table table,
               bool (*row)(void *context, const int64_t *values, unsigned nulls), void *context);
#define row_null(nulls, table, column) \
    ((nulls) >> offsetof(struct row_##table, column) / sizeof(int64_t) & 1)

#endif
