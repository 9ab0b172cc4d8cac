/* cmd/ranks.h -- who of a job's ranks differs: `dyntrace ranks`, and `why --ranks` of one function.
 * */
#ifndef DYNTRACE_RANKS_H
#define DYNTRACE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

struct db;

/* What the ranks of the traces that FILES, which ends with a NULL, name have in common and where
 * they differ, for the statements `about`, `ranks`, `differs` and `storms` of schemas/ranks.sql;
 * FUNCTION, a GLOB: only in functions of that name. NULL: the error has been reported. The caller
 * ends it with
 * db_close. */
struct db *ranks_compared(char *const *files, const char *function);

/* Compare the ranks of the traces that FILES, which ends with a NULL, name; FUNCTION, a GLOB: only
 * in functions of that name; LIMIT: rows of each table, -1 all. Returns the exit status. */
int ranks_compare(char *const *files, const char *function, int64_t limit, bool json);

#endif
