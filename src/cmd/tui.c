/* cmd/tui.c -- `dyntrace tui`: a trace on the whole screen.
 *
 * Runs in: the viewer. The loop is in tui.c. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/db.h"
#include "lib/say.h"
#include "tui/main.h"
#include "tui/screen.h"

static const char usage[] =
    "usage: dyntrace tui [FILE] [--live] [--ascii] [--keys KEYS] [--screen WxH] [--dump]\n\n"
    "A trace on the whole screen: what was compiled and why, function by function and call by call.\n"
    "FILE is the newest *.db trace here unless given; it is only read. ? lists the keys.\n\n"
    "  --live        follow a trace that is still being recorded\n"
    "  --ascii       no other characters than ASCII\n"
    "  --keys KEYS   type these first: 'j j Enter /forward Enter'; also Esc Tab S-Tab Space Up Down Left Right PgUp\n"
    "                PgDn Home End Backspace Delete F1 C-l Click:X,Y Double:X,Y WheelUp WheelDown Resize:WxH\n"
    "  --dump        then print the screen as text and end; needs no terminal\n"
    "  --screen WxH  of that size (80x24)\n\n"
    "NO_COLOR is honoured. VISUAL or EDITOR is what `o` opens.\n";

static bool size_read(const char *text, int *columns, int *rows)
{
    char rest;

    return sscanf(text, "%dx%d%c", columns, rows, &rest) == 2 && *columns >= 1 && *rows >= 1 && *columns <= SCREEN_MOST &&
           *rows <= SCREEN_MOST;
}

static int tui_main(int argc, char **argv)
{
    struct tui_options options = {0};
    const char *path = NULL, *why = NULL;
    int columns = 80, rows = 24, status = 2;
    bool ascii = false, sized = false, only_options = true;
    struct screen *screen = NULL;
    struct db *db;

    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (only_options && !strcmp(a, "--")) {
            only_options = false;
        } else if (only_options && (!strcmp(a, "--help") || !strcmp(a, "-h"))) {
            fputs(usage, stdout);
            return 0;
        } else if (only_options && !strcmp(a, "--live")) {
            options.live = true;
        } else if (only_options && !strcmp(a, "--ascii")) {
            ascii = true;
        } else if (only_options && !strcmp(a, "--dump")) {
            options.dump = true;
        } else if (only_options && !strcmp(a, "--keys") && i + 1 < argc) {
            options.keys = argv[++i];
        } else if (only_options && !strcmp(a, "--screen") && i + 1 < argc) {
            sized = true;
            if (!size_read(argv[++i], &columns, &rows)) {
                say_error("tui: --screen %s: not a size such as 100x30 (at most %dx%d)", argv[i], SCREEN_MOST, SCREEN_MOST);
                return 2;
            }
        } else if (only_options && a[0] == '-' && a[1]) {
            say_error(!strcmp(a, "--keys") || !strcmp(a, "--screen") ? "tui: %s: what?" : "tui: %s: no such option; `dyntrace tui --help` lists them", a);
            return 2;
        } else if (path) {
            say_error("tui: %s: one trace at a time", a);
            return 2;
        } else {
            path = a;
        }
    }
    if (sized && !options.dump) {
        say_error("tui: --screen is for --dump: a terminal has its own size");
        return 2;
    }
    if (options.dump && !options.keys)
        options.keys = "";
    setlocale(LC_CTYPE, "");
    signal(SIGXFSZ, SIG_IGN); /* an export that may not grow fails, and that can be said */
    signal(SIGPIPE, SIG_IGN);
    if (!(db = db_open(path)))
        return 2;
    if (options.dump && !(screen = screen_open_memory(rows, columns, ascii)))
        why = "out of memory";
    else if (!options.dump)
        screen = screen_open_terminal(ascii, &why);
    if (!screen)
        say_error("tui: %s", why);
    else
        status = tui_run(&options, db, screen);
    db_close(db);
    return status;
}

const struct command command_tui = {
    "tui", "look at a trace on the whole screen", usage, tui_main,
};
