/* trace/result.h -- where a query (trace/db.h) meets the table it is printed in (lib/table.h).
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_RESULT_H
#define DYNTRACE_RESULT_H

struct json;
struct query;
struct table;

/* The current row of QUERY as the next cells of TABLE, one for each column. */
void result_row(struct table *table, struct query *query);

/* One cell of it. */
void result_cell(struct table *table, struct query *query, int column);

/* The same as a member of what JSON has open. */
void result_member(struct json *json, const char *key, struct query *query, int column);

#endif
