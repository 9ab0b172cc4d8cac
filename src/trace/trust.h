/* trace/trust.h -- decides whether a file may be read as a trace. For trace/db.c.
 *
 * A trace may come from anybody, and its schema is a program that SQLite would run. */
#ifndef DYNTRACE_TRUST_H
#define DYNTRACE_TRUST_H

#include <stdbool.h>

struct sqlite3;

/* Check whether HANDLE's file may be read as a trace. If it may, return NULL, and if VIEWS, create
 * our views in `temp`. If it may not, return the reason, which the caller frees. On an error of
 * SQLite, return NULL and set *STATUS. NEW is false if the file's schema equals that of a file that
 * was trusted before. */
char *trust_check_schema(struct sqlite3 *handle, bool new, bool views, int *status);

/* Return the schema of HANDLE's file, and where its tables are in the file. If two files have equal
 * results, the same prepared statements can read them. The caller frees the result. Returns NULL on
 * an error, with *STATUS set. */
char *trust_read_schema(struct sqlite3 *handle, int *status);

/* Return the schema that schemas/ defines, as SQLite stores it: a JSON array of objects with type,
 * name and sql. Borrowed. */
const char *trust_make_expected_schema(void);

/* Create the tables and views of trials in HANDLE's file, unless it has them. The file must be
 * trusted and writable. Returns SQLite's status. */
int trust_make_trials(struct sqlite3 *handle);

#endif
