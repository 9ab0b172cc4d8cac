/* cmd/export/spans.h -- writes spans as profiles of speedscope. */
#ifndef DYNTRACE_EXPORT_SPANS_H
#define DYNTRACE_EXPORT_SPANS_H

#include <stdint.h>

struct db;
struct json;

/* Write each name of a span as an item of the list shared.frames, which is open in JSON. */
void spans_write_names(struct db *db, struct json *json);

/* Write the profiles of spans into the list of profiles, which is open in JSON. FIRST is the index
 * in shared.frames of the first name that spans_write_names() wrote. */
void spans_write_profiles(struct db *db, struct json *json, int64_t first);

#endif
