/* trace/path.h -- how SQLite reaches the file of a trace: for trace/db.c.
 *
 * A trace may be read where nothing can be written, and its file may have no name (lib/out_file.h). */
#ifndef DYNTRACE_PATH_H
#define DYNTRACE_PATH_H

#include <stdbool.h>

/* "file:/abs/path?mode=ro", with %NN where a byte would mean something in a URI; to WRITE it, "?mode=rw"; "&nolock=1" where it cannot be locked. The caller
 * frees it. */
char *path_uri(const char *absolute, bool write);

/* Can the file be locked? Not on a network file system without a lock server. Then it is read, and one that we make is written, without: whole
 * traces are there, which nobody changes. */
bool path_locks(const char *absolute);

/* SQLite can open what db_absolute says, and counts no memory: RLIMIT_DATA holds it (lib/bounds.h). */
void path_reach(void);

#endif
