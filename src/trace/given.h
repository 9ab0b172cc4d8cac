/* trace/given.h -- what each of several traces says of itself, and which of them do not go
 * together.
 *
 * Before several traces are answered as one each is asked for its meta and its processes. Left out,
 * by a line each, are those that cannot be read or are still being recorded, that do not say when
 * they began, and that have a process which another one has, for it would count twice: a process is
 * known by (host, pid, start); then those of another job than most are of, and of a rank that began
 * once more later. What is left is kept in a database of its own: schemas/given.sql. */
#ifndef DYNTRACE_GIVEN_H
#define DYNTRACE_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

struct db;

/* Of the *COUNT files at PATHS, each owned: those left out are freed and taken away. NULL: it
 * cannot be kept, which has been reported. The caller ends it with db_close. */
struct db *given_read(char **paths, size_t *count);

/* False after saying that the recording of DB goes on. */
bool given_ended(struct db *db);

#endif
