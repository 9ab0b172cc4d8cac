/* cmd/try.h -- runs `dyntrace try` for `why --try`. */
#ifndef DYNTRACE_TRY_H
#define DYNTRACE_TRY_H

#include <stdbool.h>

/* Run the recorded command of FILES, which ends with a NULL, under the settings of `why`'s remedies
 * for NAME, and store the results. If NAME is NULL, the remedies are those of the worst functions.
 * Prints the table only if TABLE. Returns the exit status, which is 0 if at least the unchanged run
 * was made. */
int try_measure(char *const *files, const char *name, bool table);

#endif
