/* cmd/parquet.h -- writes traces as Parquet files: `dyntrace export --format parquet`. */
#ifndef DYNTRACE_PARQUET_H
#define DYNTRACE_PARQUET_H

#include <stdbool.h>

/* Write the traces named by FILES, which ends with a NULL, to the new directory OUT. OUT is
 * complete or does not exist. PYTHON is an interpreter with pyarrow, or NULL for the interpreter of
 * dyntrace's virtual environment or, without one, python3. FRAMES: write frames too. Returns the
 * exit status. */
int parquet_export_traces(char *const *files, const char *out, const char *python, bool frames);

#endif
