/* lib/option.h -- options of a command line that several commands have, or that have a value.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_OPTION_H
#define DYNTRACE_OPTION_H

#include <stdbool.h>

/* The value of option NAME at ARGV[*I], "--name value" or "--name=value"; NULL when it is another option. An option
 * without a value gives "". */
const char *option_value(int argc, char **argv, int *i, const char *name);

/* What a command writes: -o FILE, --force. */
struct option_out {
    const char *path; /* borrowed; NULL: not given, "": given without a name */
    bool force;
};

/* Take ARGV[*I] if it is one of those. */
bool option_out(int argc, char **argv, int *i, struct option_out *out);

/* True when OUT names a trace to make; else says that COMMAND needs that. */
bool option_out_trace(const struct option_out *out, const char *command);

#endif
