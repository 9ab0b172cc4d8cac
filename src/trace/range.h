/* trace/range.h -- a part of a trace, by options: between two times, of processes, threads,
 * functions.
 *
 * A command lists these options among its own and applies them to the opened trace.
 * schemas/range.sql computes the result: tables `part_frame` and so on, and `asked`, which is empty
 * without options. Views can replace tables. */
#ifndef DYNTRACE_RANGE_H
#define DYNTRACE_RANGE_H

#include "lib/option.h"

struct db;

option_reader range_read; /* the option's name selects the field */
option_reader range_time; /* "1.5s..2s": either may be missing */

/* Was any of the options given? */
bool range_asked(void);

/* VIEWS: "range/calls" or "range/picture", created if an option was given. False if nothing
 * matches, which has been reported. */
bool range_apply(struct db *db, const char *views);

#endif
