/* command.h -- the description of a subcommand.
 *
 * Runs in: the command line.
 *
 * A command is a constant in the file that holds its function; main.c only lists them. Its command
 * line is described here alone: --help, the man page and the completions are made from it
 * (cmd/help.c). */
#ifndef DYNTRACE_COMMAND_H
#define DYNTRACE_COMMAND_H

#include <stdbool.h>

struct option;

struct command {
    const char *name;             /* as typed: "run" */
    const char *summary;          /* one line for `dyntrace help` */
    const char *operands;         /* as --help has them, "FUNC [FILE]"; "": none */
    const char *about;            /* description: paragraphs separated by empty lines */
    const struct option *options; /* lib/option.h; ends with OPTION_END */
    const char *more;             /* what --help says after the options, or NULL */
    int operands_most;            /* how many it takes */
    const char *too_many;         /* error for one operand too many; NULL: "one trace at a time" */
    bool internal;                /* started by dyntrace itself */
    bool runs;                    /* the operands are a program with its arguments */
    /* Gets the operands, a NULL or two behind them; options are stored already. Returns the exit
     * status: 0, 1 for "looked and found something wrong", 2 for bad usage or bad input. */
    int (*run)(int count, char **operands);
};

#define OPERANDS_ANY 0x7fffffff

extern const struct command command_run, command_collect, command_report, command_why, command_show,
    command_sql, command_replay, command_fsck, command_doctor;
extern const struct command command_tui, command_check, command_export, command_merge, command_diff,
    command_import, command_ranks, command_try, command_tree;

/* Read the command line, ARGV[0] being the command's name, and run COMMAND. Returns the exit
 * status. */
int command_start(const struct command *command, int argc, char **argv);

/* `dyntrace ...`: find the command among COMMANDS, which ends with a NULL, and start it. */
int command_main(const struct command *const *commands, int argc, char **argv);

#endif
