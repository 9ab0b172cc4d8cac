/* cmd/parquet.h -- traces as a dataset of Parquet files: `dyntrace export --format parquet`. */
#ifndef DYNTRACE_PARQUET_H
#define DYNTRACE_PARQUET_H

#include <stdbool.h>

/* Write the traces named by FILES (ends with a NULL) below OUT, a new directory, which is complete
 * or not made at all. PYTHON: an interpreter with pyarrow (NULL: that of dyntrace's virtual
 * environment, or python3). FRAMES: also write frames. Returns the exit status. */
int parquet_export(char *const *files, const char *out, const char *python, bool frames);

#endif
