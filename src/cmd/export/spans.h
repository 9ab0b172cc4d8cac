/* cmd/export/spans.h -- writes spans as profiles of speedscope. */
#ifndef DYNTRACE_EXPORT_SPANS_H
#define DYNTRACE_EXPORT_SPANS_H

#include <stdint.h>

struct db;
struct json;

/* Write an item for each name of a span into the open list shared.frames. */
void spans_write_names(struct db *db, struct json *json);

/* Write the profiles of spans into the open list of profiles. FIRST is the index in shared.frames
 * of the first item that spans_write_names() wrote. */
void spans_write_profiles(struct db *db, struct json *json, int64_t first);

#endif
