/* trace/swap.h -- lets one connection read trace after trace, for trace/db.c.
 *
 * SQLite parses a file's schema when it opens the file, and a statement when it is prepared. For
 * the trace of one rank this takes longer than reading the rows, and all traces of a job have the
 * same schema. A connection that uses this VFS therefore keeps its schema and statements while the
 * file below it is exchanged. The caller must check that the new file's schema is the same, byte
 * for byte, because SQLite compares only the schema's version number. */
#ifndef DYNTRACE_SWAP_H
#define DYNTRACE_SWAP_H

#include <stdbool.h>

struct sqlite3;

/* Return the name of the VFS, for sqlite3_open_v2. It reads files like SQLite's own VFS. Files must
 * be plain (trace/path.h), because SQLite finds a log or a journal by the name of the file. */
const char *swap_vfs_name(void);

/* swap_close_file: close the file of HANDLE, which must have no running statement and no
 * transaction.
 *
 * swap_open_other_file: make HANDLE read the file at PATH from now on. LOCKS tells whether the file
 * can be locked (struct path_facts). Returns false if the file cannot be opened. */
void swap_close_file(struct sqlite3 *handle);
bool swap_open_other_file(struct sqlite3 *handle, const char *path, bool locks);

#endif
