/* trace/result.c -- prints the rows of a query as a table or as JSON. See trace/result.h. */
#include "trace/result.h"

#include <stdlib.h>

#include "lib/json.h"
#include "trace/db.h"

struct table *result_open(FILE *out, enum table_format format, struct query *query,
                          const char *extra)
{
    int columns = query_columns(query);
    int at = 0;
    const char **names = malloc(((size_t)columns + 1) * sizeof *names);
    struct table *table = NULL;

    if (extra)
        names[at++] = extra;
    for (int i = 0; i < columns; i++)
        names[at++] = query_name(query, i);
    if (query)
        table = table_open(out, format, at, names);
    free(names);
    return table;
}

void result_put_cell(struct table *table, struct query *query, int column)
{
    size_t bytes;
    const char *text;

    switch (query_type(query, column)) {
    case QUERY_NULL:
        table_put_null(table);
        break;
    case QUERY_INTEGER:
        table_put_integer(table, query_integer(query, column));
        break;
    case QUERY_REAL:
        table_put_real(table, query_real(query, column));
        break;
    case QUERY_TEXT:
        text = query_whole_value(query, column, &bytes);
        table_put_text(table, text, bytes);
        break;
    case QUERY_BLOB:
        text = query_whole_value(query, column, &bytes);
        table_put_blob(table, text, bytes);
        break;
    }
}

void result_put_row(struct table *table, struct query *query)
{
    for (int i = 0; i < query_columns(query); i++)
        result_put_cell(table, query, i);
}

void result_put_json_member(struct json *json, const char *key, struct query *query, int column)
{
    size_t bytes;
    const char *text;

    switch (query_type(query, column)) {
    case QUERY_NULL:
        json_null(json, key);
        break;
    case QUERY_INTEGER:
        json_integer(json, key, query_integer(query, column));
        break;
    case QUERY_REAL:
        json_real(json, key, query_real(query, column), 0);
        break;
    case QUERY_TEXT:
        text = query_whole_value(query, column, &bytes);
        json_bytes(json, key, text, bytes);
        break;
    case QUERY_BLOB:
        text = query_whole_value(query, column, &bytes);
        json_hex(json, key, text, bytes);
        break;
    }
}
