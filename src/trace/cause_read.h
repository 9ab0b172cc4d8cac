/* trace/cause_read.h -- a cause from a row of a query. */
#ifndef DYNTRACE_CAUSE_READ_H
#define DYNTRACE_CAUSE_READ_H

#include "trace/cause.h"

struct query;

/* What cause_read() reads, of a row r of recompile_cause. */
#define CAUSE_COLUMNS                                                                              \
    "substr(r.kind, 1, 200), substr(r.source, 1, 400), r.aspect, r.dimension, substr(r.expected, " \
    "1, 400),\n"                                                                                   \
    "       substr(r.actual, 1, 400), substr(r.text, 1, 400), r.guard_id, r.compile_id, "          \
    "r.cache_entry_id"
enum { CAUSE_READ = 10 /* columns */ };

/* The cause in the current row of QUERY, from column FIRST on; its texts are the row's. */
struct cause cause_read(struct query *query, int first);

#endif
