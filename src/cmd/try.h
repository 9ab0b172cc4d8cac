/* cmd/try.h -- runs `dyntrace try` for `why --try`. */
#ifndef DYNTRACE_TRY_H
#define DYNTRACE_TRY_H

#include <stdbool.h>

/* Run the recorded command of FILES, which ends with a NULL, once under each setting that `why`
 * suggests as a remedy for the function NAME, and store the results. If NAME is NULL, the remedies
 * for the worst functions are used. Prints the table of results only if TABLE. Returns the exit
 * status, which is 0 if at least the unchanged run was made. */
int try_remedies(char *const *files, const char *name, bool table);

#endif
