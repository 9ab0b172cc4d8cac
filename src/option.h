/* option.h -- options of a command line that have a value.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_OPTION_H
#define DYNTRACE_OPTION_H

/* The value of option NAME at ARGV[*I], "--name value" or "--name=value"; NULL when it is another option. An option
 * without a value gives "". */
const char *option_value(int argc, char **argv, int *i, const char *name);

#endif
