/* command.h -- what a subcommand is.
 *
 * Runs in: the command line.
 *
 * A command is a constant in the file that holds its function; main.c only
 * lists them. */
#ifndef DYNTRACE_COMMAND_H
#define DYNTRACE_COMMAND_H

struct command {
    const char *name;    /* as typed: "run" */
    const char *summary; /* one line for `dyntrace help` */
    const char *usage;   /* printed by `dyntrace NAME --help`, ends with a newline */
    /* ARGV[0] is the command's name. Returns the exit status: 0, 1 for "looked
     * and found something wrong", 2 for bad usage or bad input. */
    int (*run)(int argc, char **argv);
};

extern const struct command command_run, command_collect, command_report, command_why, command_show, command_sql, command_replay, command_fsck,
    command_doctor;
extern const struct command command_tui, command_check, command_export, command_merge, command_diff, command_import;

/* Where this program's data lies (the extensions, sitecustomize): "build/lib"
 * beside an uninstalled program, else PREFIX/lib/dyntrace. No symlinks in it. Owned by the callee. */
const char *command_library_directory(void);

#define DYNTRACE_VERSION "0.1.0"

#endif
