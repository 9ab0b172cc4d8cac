/* trace/trust.h -- may this file be read as a trace? For trace/db.c.
 *
 * A trace may come from anybody, and its schema is a program that SQLite would run. */
#ifndef DYNTRACE_TRUST_H
#define DYNTRACE_TRUST_H

#include <stdbool.h>

struct sqlite3;

/* NULL: HANDLE is a trace that we can read; with VIEWS, our views are in `temp`. Else the reason,
 * which the caller frees, or NULL with SQLite's error in *STATUS. If not NEW, the schema equals
 * that of a file already trusted. */
char *trust_refused(struct sqlite3 *handle, bool new, bool views, int *status);

/* The schema of HANDLE's file, and where in the file its parts are: two files of which this is
 * equal are read alike. The caller frees it; NULL with an error in *STATUS, where there was none.
 * */
char *trust_schema(struct sqlite3 *handle, int *status);

/* What schemas/ makes, as SQLite keeps it: a JSON array of objects with type, name and sql.
 * Borrowed. */
const char *trust_schema_made(void);

/* Make the tables and views of trials in HANDLE's file, which may be read and can be written, where
 * it has none. SQLite's status. */
int trust_make_trials(struct sqlite3 *handle);

#endif
