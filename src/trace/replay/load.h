/* trace/replay/load.h -- what the parts that read a trace for replay share.
 *
 * Runs in: the viewer. Between replay.c, trace/replay/load.c and trace/replay/checks.c. */
#ifndef DYNTRACE_REPLAY_LOAD_H
#define DYNTRACE_REPLAY_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay.h"

struct query;

/* The first of two with one key stays. False: no memory. */
bool replay_map_put(struct replay_map *map, int64_t key, uint32_t value);
void replay_map_free(struct replay_map *map);

/* A new item, zeroed, at the end of ARRAY, an array of COUNT items of SIZE; room doubles. NULL: no memory, and it was
 * said. */
void *replay_grow(void *array, size_t *count, size_t size);
#define GROW(r, array, count) ((__typeof__((r)->array))replay_grow(&(r)->array, &(r)->count, sizeof *(r)->array))

/* A column, OTHERWISE when it is NULL. Times of a hostile trace must not overflow when they are added and compared. */
int64_t replay_integer(struct query *query, int column, int64_t otherwise);
int64_t replay_time(struct query *query, int column, int64_t otherwise);

/* An entry's place in a cache's list of entries by birth. */
int replay_by_birth(const void *a, const void *b, void *entries);
/* Two events by time. */
int replay_by_moment(const void *a, const void *b);

/* ---- trace/replay/checks.c ------------------------------------------------------- */

struct check_reader;

/* Begin to read what lookups tried, beside the caller where that can be. R's entries are known and stay where they are.
 * NULL: it was said why not. */
struct check_reader *check_reader_begin(const struct replay *r, bool times);

/* All of it into R, whose lookups are known now; READER is gone. False: it was said why not. */
bool check_reader_end(struct check_reader *reader, struct replay *r);

#endif
