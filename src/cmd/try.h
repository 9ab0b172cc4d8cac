/* cmd/try.h -- `dyntrace try`, for `why --try`. */
#ifndef DYNTRACE_TRY_H
#define DYNTRACE_TRY_H

#include <stdbool.h>

/* Run the recorded command of FILES, which ends with a NULL, under the settings that `why` has for
 * NAME (NULL: for the worst functions), and store what that measured. Prints the table only with
 * TABLE. The exit status: 0 when at least the unchanged run was made. */
int try_measure(char *const *files, const char *name, bool table);

#endif
