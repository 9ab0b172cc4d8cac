/* trace/range.h -- options that select a part of a trace: times, processes, threads, functions.
 *
 * A command lists these options among its own and applies them to the opened trace.
 * schemas/range.sql computes the selected part: tables such as `part_frame`, and the table `asked`,
 * which is empty if no option was given. Views of the selected rows can replace the tables of the
 * trace. */
#ifndef DYNTRACE_RANGE_H
#define DYNTRACE_RANGE_H

#include "lib/option.h"

struct db;

option_reader range_read; /* reads --process, --thread or --function */
option_reader range_time; /* reads a range of times, "1.5s..2s"; either end may be left out */

/* Was any of these options given? */
bool range_asked(void);

/* Restrict DB to what --time, --process, --thread and --function select. VIEWS is "range/calls" or
 * "range/picture", views that are created if an option was given, or NULL. Reports an error and
 * returns false if nothing matches. */
bool range_apply(struct db *db, const char *views);

#endif
