/* trace/cause_read.h -- reads a cause from a row of a query. */
#ifndef DYNTRACE_CAUSE_READ_H
#define DYNTRACE_CAUSE_READ_H

#include "trace/cause.h"

struct query;

/* The columns that a statement must select for cause_read(). In the statement, `r` is a row of
 * recompile_cause. */
#define CAUSE_COLUMNS                                                                              \
    "substr(r.kind, 1, 200), substr(r.source, 1, 400), r.aspect, r.dimension, substr(r.expected, " \
    "1, 400),\n"                                                                                   \
    "       substr(r.actual, 1, 400), substr(r.text, 1, 400), r.guard_id, r.compile_id, "          \
    "r.cache_entry_id"
enum { CAUSE_READ = 10 /* the number of columns of CAUSE_COLUMNS */ };

/* Return the cause in the current row of QUERY, whose CAUSE_COLUMNS begin at column FIRST. The
 * texts are borrowed from the row. */
struct cause cause_read(struct query *query, int first);

#endif
