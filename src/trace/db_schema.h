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

#include <stdbool.h>
#include <stddef.h>

struct sqlite3;

/* True when HANDLE, opened from PATH, may be read. False: SQLite's error is in *STATUS, or that is SQLITE_OK and it was
 * said why not, unless QUIET. Makes our views in `temp`. */
bool db_schema_trust(struct sqlite3 *handle, const char *path, bool quiet, int *status);

/* What schemas/ makes: "table", "view" or "index", its name, and the statement as SQLite keeps it. Borrowed, not
 * terminated. */
struct schema_object {
    const char *type, *name, *sql;
    size_t name_bytes, sql_bytes;
};

/* One after the other, from a walk that begins as zeros. False after the last. */
struct schema_walk {
    int text;
    const char *at;
};
bool schema_object_next(struct schema_walk *walk, struct schema_object *object);

/* Is SQL the statement of OBJECT but for comments and white space? */
bool schema_object_same(const struct schema_object *object, const char *sql, size_t bytes);

#endif
