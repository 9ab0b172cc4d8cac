/* trace/csv.h -- rows of a query as CSV, that of RFC 4180: NULL is an empty cell, an empty text "", a blob its hexadecimal digits.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_CSV_H
#define DYNTRACE_CSV_H

#include <stdbool.h>
#include <stdio.h>

struct query;

/* The names of QUERY's columns, and its current row, as lines. With SAFE, what a spreadsheet would take for a formula gets an
 * apostrophe before it, which makes it a text there. */
void csv_head(FILE *out, struct query *query, bool safe);
void csv_row(FILE *out, struct query *query, bool safe);

#endif
