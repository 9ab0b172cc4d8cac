/* trace/merge.h -- merges many traces into one.
 *
 * The traces are copied one after the other, table by table. The ids of each trace are shifted
 * by the greatest id of the traces before it. If trace A has the frames 1..900, the frames
 * 1..500 of trace B become 901..1400. Parents therefore keep smaller ids than their children,
 * and the frames of a thread stay in the order of their start.
 *
 * Times are shifted to count from the start of the earliest trace. Starts are compared by the
 * ranks' common clock if there is one (cmd/run/rank.c), otherwise by the machines' wall clocks.
 *
 * The host and rank of a trace become `process.host` and `process.rank` of each of its
 * processes. One trace is open at a time. tables.h has the columns, schemas/merge.sql the SQL. */
#ifndef DYNTRACE_MERGE_H
#define DYNTRACE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which frames are copied. */
enum merge_frames {
    MERGE_FRAMES, /* all frames */
    /* only the frames of skipped and disabled calls. These calls have no lookup, so answers about
     * decisions need their frames */
    MERGE_DECISIONS,
    /* the same frames as MERGE_DECISIONS, but meta.frame_count and meta.open_frame_count count all
     * frames, for a table of totals */
    MERGE_COUNTED,
};

struct db;

/* Write the traces in GIVEN (trace/given.h) to PATH, an empty file. Traces that cannot be read are
 * reported and removed from GIVEN. *MERGED gets the number of merged traces. *LOST gets a text
 * about the events that these traces lost, which the caller frees, or NULL. Returns false if no
 * trace is left, or on an error, which has been reported. */
bool merge_traces(const char *path, struct db *given, enum merge_frames frames, size_t *merged,
                  char **lost);

#endif
