/* trace/result.h -- prints the rows of a query (trace/db.h) as a table (lib/table.h) or as JSON. */
#ifndef DYNTRACE_RESULT_H
#define DYNTRACE_RESULT_H

#include "lib/table.h"

struct json;
struct query;

/* Open a table with the columns of QUERY, which is borrowed. If EXTRA is not NULL, a column with
 * the name EXTRA comes before them. */
struct table *result_open(FILE *out, enum table_format format, struct query *query,
                          const char *extra);

/* Write the current row of QUERY to TABLE, a cell for each column. */
void result_put_row(struct table *table, struct query *query);

/* Write one column of the current row of QUERY as the next cell of TABLE. */
void result_put_cell(struct table *table, struct query *query, int column);

/* Write one column of the current row of QUERY to JSON, as the member KEY of the open object. */
void result_put_json_member(struct json *json, const char *key, struct query *query, int column);

#endif
