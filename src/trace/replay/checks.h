/* trace/replay/checks.h -- what each lookup tried, read from the trace beside the rest of it.
 *
 * Runs in: the viewer. Between trace/replay/load.c and trace/replay/checks.c. */
#ifndef DYNTRACE_REPLAY_CHECKS_H
#define DYNTRACE_REPLAY_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

struct check_reader;
struct query;
struct replay;

/* Begin to read what lookups tried, beside the caller where that can be. R's entries are known and stay where they are.
 * NULL: it was said why not. */
struct check_reader *check_reader_begin(const struct replay *r, bool times);

/* All of it into R, whose lookups are known now; READER is gone. False: it was said why not. */
bool check_reader_end(struct check_reader *reader, struct replay *r);

/* A column, OTHERWISE when it is NULL. Times of a hostile trace must not overflow when they are added and compared. */
int64_t replay_integer(struct query *query, int column, int64_t otherwise);
int64_t replay_time(struct query *query, int column, int64_t otherwise);

#endif
