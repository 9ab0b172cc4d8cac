/* collector/totals.h -- code_total made again from the frames.
 *
 * Runs in: the collector, when one before it was killed. */
#ifndef DYNTRACE_TOTALS_H
#define DYNTRACE_TOTALS_H

#include <sqlite3.h>

/* Fill the empty table code_total of DB, whose `frame` is whole. 0 or -1. */
int totals_from_frames(sqlite3 *db);

#endif
