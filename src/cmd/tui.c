/* cmd/tui.c -- `dyntrace tui`: shows a trace on the whole screen.
 *
 * This file has the options. src/tui.c has the screen and its event loop. */
#include <signal.h>

#include "command.h"
#include "lib/option.h"
#include "lib/say.h"
#include "trace/traces.h"
#include "tui.h"
#include "tui/screen.h"

/* the values of the options; `rows` is 0 if --screen was not given */
static struct tui_options given;

static const char *read_size_option(const struct option *option, const char *value)
{
    char rest;

    return sscanf(value, "%dx%d%c", &given.columns, &given.rows, &rest) == 2 &&
                   given.columns >= 1 && given.rows >= 1 && given.columns <= SCREEN_MOST &&
                   given.rows <= SCREEN_MOST
               ? NULL
               : "not a size such as 100x30 (at most 1000x1000)";
}

static const struct option options[] = {
    {"live", .read = option_flag, .to = &given.live,
     .help = "follow a trace that is still being recorded"},
    {"ascii", .read = option_flag, .to = &given.ascii,
     .help = "use no other characters than ASCII"},
    {"keys", .value = "KEYS", .read = option_any, .to = &given.keys,
     .help =
         "type these first: 'j j Enter /forward Enter'; also Esc Tab S-Tab Space Up Down Left "
         "Right PgUp PgDn Home End Backspace Delete F1 C-l Click:X,Y WheelUp WheelDown Resize:WxH"},
    {"dump", .read = option_flag, .to = &given.dump,
     .help = "then print the screen as text and end; needs no terminal"},
    {"screen", .value = "WxH", .read = read_size_option,
     .help = "the size of that screen; 80x24 unless given"},
    OPTION_END,
};

static int tui_main(int count, char **operands)
{
    const char *path;
    const char *fault = given.dump ? NULL : screen_get_error();

    if (given.rows && !given.dump) {
        say_error("tui: --screen is for --dump: a terminal has its own size");
        return 2;
    }
    /* report this error before traces are merged, because merging may print messages */
    if (fault) {
        say_error("tui: %s", fault);
        return 2;
    }
    if (given.dump && !given.keys)
        given.keys = "";
    if (!given.rows) {
        given.rows = 24;
        given.columns = 80;
    }
    /* with SIGXFSZ ignored, an export that exceeds the file size limit reports an error; otherwise
     * the signal would kill us */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    path = operands[0] ? traces_make_one_file(operands, MERGE_FRAMES, &given.name) : NULL;
    return operands[0] && !path ? 2 : tui_run(&given, path);
}

const struct command command_tui = {
    .name = "tui",
    .summary = "look at a trace on the whole screen",
    .operands = "[FILE...]",
    .about = "Shows a trace on the whole screen: what was compiled and why, function by function "
             "and call by call. FILE is the newest *.db trace here unless given; it is only read. "
             "? lists the keys.",
    .options = options,
    .more = "NO_COLOR is honoured. VISUAL or EDITOR is what `o` opens.",
    .operands_most = OPERANDS_ANY,
    .run = tui_main,
};
