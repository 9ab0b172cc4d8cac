/* trace/range.h -- a part of a trace, by options: between two times, of processes, threads,
 * functions.
 *
 * A command lists the options that it has and applies them to what it has opened. schemas/range.sql
 * works out what that means: tables `part_frame` and so on, and `asked`, which is empty without
 * options. Views can take the place of tables. */
#ifndef DYNTRACE_RANGE_H
#define DYNTRACE_RANGE_H

#include "lib/option.h"

struct db;

option_reader range_read; /* the option's name is what is asked for */
option_reader range_time; /* "1.5s..2s": either may be missing */

/* Was any of them given? */
bool range_asked(void);

/* VIEWS: "range/calls" or "range/picture", made when anything was asked for. False after saying
 * that it is not there. */
bool range_apply(struct db *db, const char *views);

#endif
