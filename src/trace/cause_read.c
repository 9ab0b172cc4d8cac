/* trace/cause_read.c -- reads a cause from a row of a query. See trace/cause_read.h. */
#include "trace/cause_read.h"

#include "trace/db.h"

static const char *text_or_null(struct query *query, int column)
{
    return query_type(query, column) == QUERY_NULL ? NULL : query_text(query, column, NULL);
}

struct cause cause_read(struct query *query, int first)
{
    return (struct cause){.kind = text_or_null(query, first),
                          .source = text_or_null(query, first + 1),
                          .aspect = text_or_null(query, first + 2),
                          .dimension = query_type(query, first + 3) == QUERY_INTEGER
                                           ? query_integer(query, first + 3)
                                           : -1,
                          .expected = text_or_null(query, first + 4),
                          .actual = text_or_null(query, first + 5),
                          .text = text_or_null(query, first + 6),
                          .guard_id = query_integer(query, first + 7),
                          .compile_id = query_integer(query, first + 8),
                          .cache_entry_id = query_integer(query, first + 9)};
}
