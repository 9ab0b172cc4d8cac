/* collector/keep.h -- bounds a recording: `run --keep 60s`, `run --keep 2G`.
 *
 * Runs in: the collector.
 *
 * Frames, lookups and what belongs to them alone are kept for a while; the rest is kept for good:
 *
 *     the last seconds or bytes   frame, lookup, guard_check, span, call_args, stretch, thread_cpu
 *     always                      every other table: processes, code, totals, entries, guards,
 *                                 compiles, causes, breaks, graphs, losses; and the lookups that
 *                                 asked the compiler. Lookups that are dropped are added up in
 *                                 table lookup_count
 *
 *     trace.db         lookups and all other tables, written by SQLite. Rows are deleted
 *                      (schemas/recorder.sql), and SQLite uses their pages again. Frames that
 *                      outlast their page wait in `long_frame`, a table of this file alone
 *     trace.db-frames  pages of frames, used again (struct page_window in frame_pages.h)
 *
 * The bound in bytes holds for both files together, at every moment:
 *
 *     bytes >= pages of frames + 4 * trace.db + its log
 *
 * Four times, because at the end the tables of trace.db are copied behind the frames and get their
 * indexes, and because its free pages are not given back. A reader that holds
 * a transaction open keeps SQLite from using its log again. Then nothing is committed until the
 * reader is done, and lookups are counted without a row. */
#ifndef DYNTRACE_COLLECTOR_KEEP_H
#define DYNTRACE_COLLECTOR_KEEP_H

#include "collector/traced.h"

enum { KEEP_LEAST = 16000000 /* bytes: the least bound */ };

/* Read the bounds from the session, or of a killed collector's from the live trace. */
void keep_find(struct collector *c);
/* How the file of frames is to be opened. */
struct page_window keep_window(struct collector *c);
/* Begin in the open recorder, or carry on there. */
void keep_begin(struct collector *c);
/* Drop what is too old or too much. Called before each commit. */
void keep_trim(struct collector *c);
/* Before the two files are joined: drop what no longer fits, and write the last rows of `meta`. */
void keep_end(struct collector *c);
#endif
