/* main.c -- `dyntrace`: finds the subcommand and runs it.
 *
 * Runs in: the command line. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "lib/say.h"

static const struct command *const commands[] = {
    &command_run,    &command_tui,    &command_report, &command_why, &command_show, &command_replay, &command_check,
    &command_export, &command_merge,  &command_import, &command_diff, &command_sql, &command_fsck,   &command_doctor,
    &command_collect,
};
enum { COMMANDS = sizeof commands / sizeof *commands };

const char *command_library_directory(void)
{
    static char path[PATH_MAX + 64];
    char self[PATH_MAX], place[PATH_MAX + 64], *real, *slash;
    ssize_t length;

    if (path[0])
        return path;
    length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        length = 0;
    self[length] = 0;
    slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    /* In place: build/dyntrace with build/lib beside it. Installed: PREFIX/bin. */
    snprintf(place, sizeof place, "%s/lib/inject/sitecustomize.py", self);
    snprintf(place, sizeof place, access(place, F_OK) ? "%s/../lib/dyntrace" : "%s/lib", self);
    real = realpath(place, NULL);
    snprintf(path, sizeof path, "%s", real ? real : place);
    free(real);
    return path;
}

static void help(FILE *out)
{
    fputs("usage: dyntrace COMMAND [ARGUMENTS]\n\n"
          "Records what Python frame evaluation decides, call by call, into SQLite.\n\n", out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`dyntrace COMMAND --help` tells more.\n", out);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;

    if (!name) {
        help(stderr);
        return 2;
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) {
        if (argc > 2) {
            name = argv[2];
            argv[2] = "--help";
        } else {
            help(stdout);
            return 0;
        }
    }
    if (!strcmp(name, "--version") || !strcmp(name, "version")) {
        puts("dyntrace " DYNTRACE_VERSION);
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(name, commands[i]->name)) {
            if (argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"))) {
                fputs(commands[i]->usage, stdout);
                return 0;
            }
            return commands[i]->run(argc - 1, argv + 1);
        }
    say_error("%s: no such command; `dyntrace help` lists them", name);
    return 2;
}
