/* main.c -- `dyntrace`: the list of commands.
 *
 * Runs in: the command line. */
#include <stddef.h>

#include "command.h"

static const struct command *const commands[] = {
    &command_run,
    &command_attach,
    &command_detach,
    &command_tui,
    &command_report,
    &command_why,
    &command_tree,
    &command_try,
    &command_show,
    &command_replay,
    &command_check,
    &command_export,
    &command_merge,
    &command_import,
    &command_diff,
    &command_ranks,
    &command_sql,
    &command_fsck,
    &command_ls,
    &command_snapshot,
    &command_doctor,
    &command_collect,
    NULL,
};

int main(int argc, char **argv)
{
    return command_main(commands, argc, argv);
}
