/* cmd/ranks.h -- compares the ranks of a job, for `dyntrace ranks` and `why --ranks`. */
#ifndef DYNTRACE_RANKS_H
#define DYNTRACE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

struct db;

/* Compare the ranks of the traces named by FILES, which ends with a NULL. The result is a database
 * for the statements `about`, `ranks`, `differs` and `storms` of schemas/ranks.sql. If FUNCTION, a
 * GLOB pattern, is not NULL, only functions that match it are compared. Returns NULL after
 * reporting an error. The caller closes the database with db_close. */
struct db *ranks_compare(char *const *files, const char *function);

/* Print the result of ranks_compare. LIMIT: rows of each table, or -1 for all. Returns the exit
 * status. */
int ranks_compare_and_print(char *const *files, const char *function, int64_t limit, bool json);

#endif
