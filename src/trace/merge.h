/* trace/merge.h -- many traces as one.
 *
 * The traces are copied one after the other, table by table. The ids of each trace are shifted by
 * the number of ids that the traces before it have used:
 *
 *     A: frames 1..900     B: frames 1..500  ->  901..1400
 *
 * so parents keep smaller ids than their children and a thread's frames follow start time, as
 * within each trace. Times are shifted to count from the start of the earliest trace, by the
 * machines' wall clocks or by the ranks' common clock, if they have one (cmd/run/rank.c). A trace's
 * host and rank become `process.host` and `process.rank` of each of its processes. One trace is
 * open at a time.
 *
 * What a column holds is in tables.h; the SQL in schemas/merge.sql. */
#ifndef DYNTRACE_MERGE_H
#define DYNTRACE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which frames are copied. */
enum merge_frames {
    MERGE_FRAMES, /* all */
    /* frames of calls that were skipped or disabled: they have no lookup, and are counted by frames
     */
    MERGE_DECISIONS,
    /* the same, but meta.frame_count and open_frame_count count all frames: for a table of totals
     */
    MERGE_COUNTED,
};

struct db;

/* Fill PATH, an empty file, with the traces in GIVEN (trace/given.h). Unreadable traces are
 * reported and removed from GIVEN; *MERGED is the number of the others. False on an error, which
 * has been reported, or if none is left. *LOST: events that the traces lost. */
bool merge_traces(const char *path, struct db *given, enum merge_frames frames, size_t *merged,
                  int64_t *lost);

#endif
