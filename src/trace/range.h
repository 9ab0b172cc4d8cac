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

option_reader range_read_option; /* reads the value of --process, --thread or --function */
/* reads the value of --time, a range of times such as "1.5s..2s"; either end may be left out */
option_reader range_read_time_option;

/* Was any option of this file given: --time, --process, --thread or --function? */
bool range_is_given(void);

/* Restrict DB to the part of the trace that --time, --process, --thread and --function select.
 * VIEWS is NULL, or names a statement that creates views of this part: "range/calls" or
 * "range/picture". The statement is run only if one of these options was given. Reports an error
 * and returns false if an option selects nothing. */
bool range_limit_views(struct db *db, const char *views);

#endif
