/* cmd/ranks.h -- who of a job's ranks differs: `dyntrace ranks`, and `why --ranks` of one function.
 * */
#ifndef DYNTRACE_RANKS_H
#define DYNTRACE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

struct db;

/* Compare the ranks of the traces named by FILES (ends with a NULL). The result answers the
 * statements `about`, `ranks`, `differs` and `storms` of schemas/ranks.sql. FUNCTION, a GLOB,
 * limits it to matching functions. NULL on error, which has been reported. The caller ends it with
 * db_close. */
struct db *ranks_compared(char *const *files, const char *function);

/* Print that comparison. LIMIT: rows of each table, -1 all. Returns the exit status. */
int ranks_compare(char *const *files, const char *function, int64_t limit, bool json);

#endif
