/* cmd/export/export.h -- where the formats of `dyntrace export` meet the command.
 *
 * Runs in: the viewer.
 *
 * A format is a row of the table in cmd/export.c and a function that writes the trace as it reads it. None keeps frames:
 * memory is bounded by the number of code objects, threads and, for folded stacks, different stacks. */
#ifndef DYNTRACE_EXPORT_H
#define DYNTRACE_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/out_file.h"
#include "lib/say.h"
#include "trace/db.h"

struct json;

struct export {
    struct db *db;        /* borrowed */
    struct out_file *out; /* borrowed */
    bool failed;          /* for another reason than the trace or OUT: it was said why */
    struct speedscope *speedscope; /* borrowed: of that format */
    struct progress progress;
    int64_t end_ns;       /* where frames without an end are drawn to */
    int64_t last_frame;   /* greatest frame_id: for progress */
};

void export_chrome(struct export *export);     /* cmd/export/chrome.c: perfetto, chrome */
void export_folded(struct export *export);     /* cmd/export/stacks.c */
void export_speedscope(struct export *export); /* cmd/export/stacks.c */

enum { EXPORT_TICK = 1 << 14 }; /* rows between two looks at progress and the disk */

/* Every EXPORT_TICK rows: show progress. False when going on is useless. */
bool export_tick(struct export *export, int64_t done, int64_t all);

/* A text column; NULL is "?". */
void export_string(struct json *json, const char *key, struct query *query, int column);

#endif
