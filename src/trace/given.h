/* trace/given.h -- metadata of several traces, and which of them do not belong together.
 *
 * Before several traces are answered as one, the metadata and processes of each are read. A trace
 * is left out, with a line that names it, if it cannot be read, is still being recorded, has no
 * start time, shares a process (host, pid, start) with another trace, which would count twice,
 * belongs to another job than most, or holds a rank that was started again later. The data of the
 * rest are kept in a private database: schemas/given.sql. */
#ifndef DYNTRACE_GIVEN_H
#define DYNTRACE_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

struct db;

/* Read the *COUNT files at PATHS (each owned); those left out are freed and removed from PATHS.
 * NULL: no database could be made, which has been reported. The caller ends it with db_close. */
struct db *given_read(char **paths, size_t *count);

/* False if DB is still being recorded, which has been reported. */
bool given_ended(struct db *db);

#endif
