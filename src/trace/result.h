/* trace/result.h -- where a query (trace/db.h) meets the table it is printed in (lib/table.h). */
#ifndef DYNTRACE_RESULT_H
#define DYNTRACE_RESULT_H

#include "lib/table.h"

struct json;
struct query;

/* A table with the columns of QUERY, which stays the caller's, and before them one called EXTRA
 * unless that is NULL. */
struct table *result_open(FILE *out, enum table_format format, struct query *query,
                          const char *extra);

/* The current row of QUERY as the next cells of TABLE, one for each column. */
void result_row(struct table *table, struct query *query);

/* One cell of it. */
void result_cell(struct table *table, struct query *query, int column);

/* The same as a member of what JSON has open. */
void result_member(struct json *json, const char *key, struct query *query, int column);

#endif
