/* cmd/export/frames.h -- writes all frames of a trace as Chrome's trace events or as CSV.
 *
 * The result has the same bytes as one made by the statement export/track_frames, or from the view
 * `frames`, but takes a third of the time: frames are read directly from the pages of the file
 * (trace/scan.h), and the texts about a thread or a code object are made once. */
#ifndef DYNTRACE_EXPORT_FRAMES_H
#define DYNTRACE_EXPORT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/table.h"

struct db;
struct json;

struct frames_to {
    struct db *db; /* borrowed */
    FILE *out;     /* borrowed */
    /* the end of frames that never ended, if the end of their thread is not known either */
    int64_t end_ns;
    /* Called every few thousand frames; returns false to stop. */
    bool (*tick)(void *context, int64_t frame_id);
    void *context;
};

/* Write each frame as an item of the list that is open in JSON. JSON must write to the file of
 * TO. */
void frames_write_as_events(const struct frames_to *to, struct json *json);

/* Write the rows of the view `frames` as CSV, with a line of column names. FORMAT is TABLE_CSV or
 * TABLE_SAFE_CSV. Writes nothing and returns false if the view has other columns than we know. Does
 * the same if TO's file is a terminal, because texts must be escaped there. */
bool frames_write_as_csv(const struct frames_to *to, enum table_format format);

#endif
