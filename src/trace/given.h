/* trace/given.h -- reads the metadata of several traces, and leaves out those that do not belong
 * together.
 *
 * Before a command answers for several traces as one, the metadata and processes of each trace are
 * read. A trace is left out, with a message that names it, for one of these reasons: it cannot be
 * read; it is still being recorded; it has no start time; another trace has one of its processes
 * (the same host, pid and start), which would count twice; it belongs to another job than most
 * traces; or its rank was started again later, and another trace has the later start.
 *
 * The metadata of the remaining traces are kept in a private database: schemas/given.sql. */
#ifndef DYNTRACE_GIVEN_H
#define DYNTRACE_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

struct db;

/* Read the *COUNT files at PATHS. The caller owns each path. The path of a trace that is left out
 * is removed from PATHS and freed. Reports an error and returns NULL if the database cannot be
 * made. The caller closes the result with db_close. */
struct db *given_read_metadata(char **paths, size_t *count);

/* Is the recording of DB complete? If not, reports an error and returns false. */
bool given_check_complete(struct db *db);

#endif
