/* trace/scan.h -- the rows of a table that holds only numbers, from the pages of its file.
 *
 * SQLite takes 100 ns for a row of `frame`, mostly in its virtual machine; this takes a fifth. It
 * reads only the usual form of a page (https://www.sqlite.org/fileformat2.html, "B-tree Pages").
 * From any other page on, SQLite reads the rest and reports errors. */
#ifndef DYNTRACE_SCAN_H
#define DYNTRACE_SCAN_H

#include <stdbool.h>

#include "tables.h"

struct db;

/* Call ROW for every row of TABLE, in order of its key, with a struct row_TABLE, in which NULL is
 * 0. NULLS has a bit for each value that is NULL. False from ROW stops, which is no error. */
void scan_rows(struct db *db, enum row_table table,
               bool (*row)(void *context, const int64_t *values, unsigned nulls), void *context);
#define row_null(nulls, table, column) \
    ((nulls) >> offsetof(struct row_##table, column) / sizeof(int64_t) & 1)

#endif
