/* trace/db_schema.h -- is the schema of a stranger's trace one that only holds rows?
 *
 * Runs in: the viewer.
 *
 * A file's schema is a program: a view or a generated column runs whenever it is read. Ours has neither but for the
 * views of schemas/views.sql, so a file with generated columns, virtual tables, triggers, indexes on expressions, or
 * views where tables belong is refused, and so is one that lacks a table of ours. Views are always our own: they are
 * made in `temp`, where SQLite looks first, so that SQL of readers may use them whatever the file has under their
 * names. */
#ifndef DYNTRACE_DB_SCHEMA_H
#define DYNTRACE_DB_SCHEMA_H

struct sqlite3;

/* NULL when HANDLE may be read: our views are in its `temp` then. Else why not, in words that the caller frees, or
 * NULL with SQLite's error in *STATUS. */
char *db_schema_trust(struct sqlite3 *handle, int *status);

/* What schemas/ makes, as SQLite keeps it: a JSON array of objects with type, name and sql. The caller frees it. */
char *db_schema_made(void);

#endif
