/* main.c -- `dyntrace`: the list of commands.
 *
 * Runs in: the command line. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command.h"
#include "versions.h"

static const struct command *const commands[] = {
    &command_run,     &command_tui,   &command_report, &command_why,
    &command_try,     &command_show,  &command_replay, &command_check,
    &command_export,  &command_merge, &command_import, &command_diff,
    &command_ranks,   &command_sql,   &command_fsck,   &command_doctor,
    &command_collect, NULL,
};

const char *command_library_directory(const char *suffix)
{
    /* In place; by `make install`; by pip, as Pythons that share a bin/ have it, then with
     * --target. */
    static const char *const places[] = {"lib",
                                         "../lib/dyntrace",
                                         "../lib/python3.%d/site-packages/dyntrace",
                                         "../lib64/python3.%d/site-packages/dyntrace",
                                         "../lib/python3.%d/dist-packages/dyntrace",
                                         "../dyntrace",
                                         NULL};
    static char path[PATH_MAX + 64];
    char self[PATH_MAX], place[PATH_MAX + 64], file[PATH_MAX + 400], real[PATH_MAX];
    ssize_t length = path[0] && !suffix ? 0 : readlink("/proc/self/exe", self, sizeof self - 1);
    bool whole = path[0] && !suffix;

    self[length > 0 ? length : 0] = 0;
    dirname(self);
    for (int i = 0; places[i] && !whole; i++)
        for (int minor = CPYTHON_OLDEST; minor <= CPYTHON_NEWEST && !whole; minor++) {
            snprintf(place + snprintf(place, sizeof place, "%s/", self), 64, places[i], minor);
            snprintf(file, sizeof file, "%s/%s%s", place, suffix ? "_dyntrace" : "inject",
                     suffix ? suffix : "");
            if ((whole = access(file, R_OK) == 0))
                snprintf(path, sizeof path, "%s", realpath(place, real) ? real : place);
        }
    if (!path[0])
        snprintf(path, sizeof path, "%s/lib/dyntrace", dirname(self));
    return path;
}

int main(int argc, char **argv)
{
    return command_main(commands, argc, argv);
}
