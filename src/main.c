/* main.c -- `dyntrace`: the list of commands.
 *
 * Runs in: the command line. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command.h"

static const struct command *const commands[] = {
    &command_run,    &command_tui,    &command_report, &command_why, &command_show, &command_replay, &command_check,
    &command_export, &command_merge,  &command_import, &command_diff, &command_sql, &command_fsck,   &command_doctor,
    &command_collect, NULL,
};

const char *command_library_directory(void)
{
    static char path[PATH_MAX + 64];
    char self[PATH_MAX], place[PATH_MAX + 64], *real;
    ssize_t length;

    if (path[0])
        return path;
    length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    /* In place: build/dyntrace with build/lib beside it. Installed: PREFIX/bin. */
    snprintf(place, sizeof place, "%s/lib/inject/sitecustomize.py", dirname(self));
    snprintf(place, sizeof place, access(place, F_OK) ? "%s/../lib/dyntrace" : "%s/lib", self);
    real = realpath(place, NULL);
    snprintf(path, sizeof path, "%s", real ? real : place);
    free(real);
    return path;
}

int main(int argc, char **argv)
{
    return command_main(commands, argc, argv);
}
