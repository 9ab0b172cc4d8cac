/* trace/trust.h -- decides whether a file may be read as a trace. For trace/db.c.
 *
 * A trace may come from anybody, and its schema is a program that SQLite would run. */
#ifndef DYNTRACE_TRUST_H
#define DYNTRACE_TRUST_H

#include <stdbool.h>

struct sqlite3;

/* Check whether HANDLE's file may be read as a trace. If so, create our views in `temp` if VIEWS,
 * and return NULL. Otherwise return the reason, which the caller frees, or NULL with SQLite's error
 * in *STATUS. NEW is false if the schema equals that of a file already trusted. */
char *trust_refused(struct sqlite3 *handle, bool new, bool views, int *status);

/* Return the schema of HANDLE's file, and where its tables are in the file. Two files with equal
 * results can be read by the same prepared statements. The caller frees it. Returns NULL on an
 * error, with *STATUS set. */
char *trust_schema(struct sqlite3 *handle, int *status);

/* Return the schema that schemas/ defines, as SQLite stores it: a JSON array of objects with type,
 * name and sql. Borrowed. */
const char *trust_schema_made(void);

/* Create the tables and views of trials in HANDLE's file, unless it has them. The file must be
 * trusted and writable. Returns SQLite's status. */
int trust_make_trials(struct sqlite3 *handle);

#endif
