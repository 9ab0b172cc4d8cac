/* cmd/parquet.h -- traces as a dataset of Parquet files: `dyntrace export --format parquet`. */
#ifndef DYNTRACE_PARQUET_H
#define DYNTRACE_PARQUET_H

#include <stdbool.h>

/* Write the traces that FILES, which ends with a NULL, name below OUT, a directory that is made
 * whole or not at all, by the interpreter PYTHON (NULL: that of dyntrace's virtual environment, or
 * python3), which has pyarrow. FRAMES: theirs, too. Returns the exit status. */
int parquet_export(char *const *files, const char *out, const char *python, bool frames);

#endif
