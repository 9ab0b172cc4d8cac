/* cmd/export/frames.h -- writes all frames of a trace as Chrome's trace events or as CSV.
 *
 * The result is byte for byte that of the statement export/track_frames, and of the view `frames`,
 * in a third of the time: frames are read from the pages of the file (trace/scan.h), and what is
 * written about a thread or a code object is made once. */
#ifndef DYNTRACE_EXPORT_FRAMES_H
#define DYNTRACE_EXPORT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/table.h"

struct db;
struct json;

struct frames_to {
    struct db *db;  /* borrowed */
    FILE *out;      /* borrowed */
    int64_t end_ns; /* the end of frames that have none, whose thread's end is not known */
    /* Called every few thousand frames; returns false to stop. */
    bool (*tick)(void *context, int64_t frame_id);
    void *context;
};

/* Write a line for each frame: an item of the list that is open in JSON, which writes to the same
 * file. */
void frames_write_events(const struct frames_to *to, struct json *json);

/* Write the view `frames` with a line of names. FORMAT is TABLE_CSV or TABLE_SAFE_CSV. Returns
 * false, and writes nothing, if the view has other columns than we know, or if TO is a terminal,
 * for which texts are escaped. */
bool frames_write_csv(const struct frames_to *to, enum table_format format);

#endif
