/* trace/merge.h -- many traces as one.
 *
 * The traces are copied one after the other, table by table. Ids of each are moved up by what the
 * ones before it have used, of that kind:
 *
 *     A: frames 1..900     B: frames 1..500  ->  901..1400
 *
 * so parents keep smaller ids than their children and a thread's frames follow start time, as
 * within each trace. Times are moved so that they count from the start of the earliest, by the wall
 * clocks of the machines, and the clock that ranks have in common where they know one
 * (cmd/run/rank.c). What a trace says of all of its processes, `process.host` and `process.rank`
 * say of each. One trace is open at a time.
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
    /* those of calls that were skipped or disabled, which have no lookup and are counted by them */
    MERGE_DECISIONS,
    /* the same, but meta.frame_count and open_frame_count are those of all: for a table of totals
     * */
    MERGE_COUNTED,
};

struct db;

/* Make PATH, an empty file, one trace of those in GIVEN (trace/given.h). What cannot be read is
 * said and forgotten there; *MERGED is how many are left. False: it could not be made, which has
 * been reported, or none was left. *LOST: events that the traces lost. */
bool merge_traces(const char *path, struct db *given, enum merge_frames frames, size_t *merged,
                  int64_t *lost);

#endif
