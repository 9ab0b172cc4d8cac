/* command.h -- the description of a subcommand.
 *
 * Runs in: the command line.
 *
 * A command is a constant in the file that holds its function; main.c only lists the commands. The
 * constant describes the command line: cmd/help.c makes --help, the man page and the completions
 * from this description. */
#ifndef DYNTRACE_COMMAND_H
#define DYNTRACE_COMMAND_H

#include <stdbool.h>

struct option;

struct command {
    const char *name;    /* as typed: "run" */
    const char *summary; /* one line for `dyntrace help` */
    /* as --help prints the operands: "FUNC [FILE]"; "" if there are none */
    const char *operands;
    const char *about;            /* description: paragraphs separated by empty lines */
    const struct option *options; /* lib/option.h; ends with OPTION_END */
    const char *more;             /* what --help prints after the options, or NULL */
    int operands_most;            /* how many operands the command takes at most */
    /* the error if there are too many operands; if NULL: "one trace at a time" */
    const char *too_many;
    bool internal; /* only dyntrace itself starts this command */
    bool runs;     /* the operands are a program and its arguments */
    /* Run the command. The options are stored already; at least one NULL follows the operands.
     * Returns the exit status: 0, 1 if the command looked and found something wrong, 2 for bad
     * usage or bad input. */
    int (*run)(int count, char **operands);
};

#define OPERANDS_ANY 0x7fffffff

extern const struct command command_run, command_collect, command_report, command_why, command_show,
    command_sql, command_replay, command_fsck, command_doctor;
extern const struct command command_tui, command_check, command_export, command_merge, command_diff,
    command_import, command_ranks, command_try, command_tree, command_attach, command_detach;
extern const struct command command_snapshot, command_ls;

/* Read the command line and run COMMAND. ARGV[0] is the command's name. Returns the exit status. */
int command_parse_and_run(const struct command *command, int argc, char **argv);

/* Find the command of `dyntrace COMMAND ...` among COMMANDS, which ends with a NULL, and start it.
 * Returns the exit status. */
int command_main(const struct command *const *commands, int argc, char **argv);

#endif
