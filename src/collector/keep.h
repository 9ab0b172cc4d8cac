/* collector/keep.h -- bounds a recording: `run --keep 60s`, `run --keep 2G`.
 *
 * Runs in: the collector.
 *
 * Frames, lookups and the rows that belong to them alone are dropped when they are too old. All
 * other rows are kept:
 *
 *     the last seconds or bytes   frame, lookup, guard_check, span, call_args, stretch, thread_cpu
 *     always                      every other table: processes, code, totals, entries, guards,
 *                                 compiles, causes, breaks, graphs, losses; and the lookups that
 *                                 asked the compiler. The table lookup_count has sums of the
 *                                 lookups that were dropped
 *
 *     trace.db         lookups and all other tables, written by SQLite. Rows are deleted
 *                      (schemas/recorder.sql), and SQLite reuses their pages. A frame that lasts
 *                      longer than its page is kept moves to `long_frame`, a table that only this
 *                      file has
 *     trace.db-frames  pages of frames; the place of a dropped page is reused (struct page_window
 *                      in frame_pages.h)
 *
 * The bound in bytes holds for both files together, at every moment:
 *
 *     bytes >= pages of frames + 4 * trace.db + its log
 *
 * trace.db counts four times, because at the end its tables are copied behind the frames and get
 * indexes, and because SQLite does not return free pages to the disk. While a reader holds a
 * transaction open, SQLite cannot reuse its log. So nothing is committed until the reader has ended
 * the transaction, and lookups are counted without getting a row. */
#ifndef DYNTRACE_COLLECTOR_KEEP_H
#define DYNTRACE_COLLECTOR_KEEP_H

#include "collector/traced.h"

enum { KEEP_LEAST = 16000000 /* the smallest bound that is allowed, in bytes */ };

/* Read the bounds from the session. A collector that replaces a killed one reads them from
 * trace.db. */
void keep_read_bounds(struct collector *c);
/* Return the bounds for the pages of frames, and what to call when pages are dropped. */
struct page_window keep_page_window(struct collector *c);
/* Limit the size of SQLite's log, and write the bounds to `meta`. */
void keep_begin(struct collector *c);
/* Drop rows and pages that are too old, or exceed the bound of bytes. Called before each commit. */
void keep_drop_old_rows(struct collector *c);
/* Drop rows and pages for the last time, before the two files are joined. Write the last rows of
 * `meta`. */
void keep_end(struct collector *c);
#endif
