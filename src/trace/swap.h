/* trace/swap.h -- one connection for trace after trace: for trace/db.c.
 *
 * SQLite parses a file's schema when it opens the file, and a statement when it is prepared. For
 * the trace of one rank that takes longer than reading it, and all traces of a job have the same
 * schema. So a connection that uses this VFS keeps schema and statements while the file below it is
 * exchanged. The caller must check that the new file's schema is the same, byte for byte: SQLite
 * compares only its number. */
#ifndef DYNTRACE_SWAP_H
#define DYNTRACE_SWAP_H

#include <stdbool.h>

struct sqlite3;

/* The name of the VFS, for sqlite3_open_v2. It reads as SQLite's own does. Its files are plain
 * (trace/path.h): a log or a journal belongs to a name. */
const char *swap_vfs(void);

/* swap_out(): HANDLE releases its file; it must run no statement and have no transaction.
 * swap_in(): HANDLE reads the file at PATH from here on. LOCKS: this file can be locked (see struct
 * path_facts). False: the file cannot be opened. */
void swap_out(struct sqlite3 *handle);
bool swap_in(struct sqlite3 *handle, const char *path, bool locks);

#endif
