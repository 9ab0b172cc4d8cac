/* cmd/replay/step.c -- a trace's decisions one by one, by commands. See cmd/replay/step.h.
 *
 * Runs in: the viewer.
 *
 * Each command is a row of a table, which `help` prints. The place is kept by trace/replay/cursor.c and printed by
 * trace/replay/page.c. */
#include "cmd/replay/step.h"

#include <unistd.h>

#include "cmd/prompt.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/replay/cursor.h"
#include "lib/say.h"

struct stepper {
    struct cursor c;
    enum cursor_what last; /* what `next` alone goes to */
    bool failed;           /* a command could not be done */
};

static void say(struct stepper *s, const char *what, const char *why)
{
    s->failed = true;
    say_error("replay: %s: %s", what, why);
}

/* ---- commands: of each the words after it, and what its row has ------------ */

/* Print where a move to WHAT led; WHERE it was looked for if there is none. */
static void moved(struct stepper *s, enum cursor_result result, const char *where, enum cursor_what what)
{
    if (result == CURSOR_THERE)
        replay_page(&s->c);
    else if (result == CURSOR_ERROR)
        s->failed = true;
    else
        printf("(no %s%s%s)\n", where, cursor_whats[what],
               what == NEXT_FRAME ? " on this thread"
               : s->c.filtered    ? " that passes the filter"
                                  : "");
}

static void do_step(struct stepper *s, char *rest, int direction)
{
    if (*rest && !cursor_what(rest, &s->last))
        say(s, rest, "no such event: lookup, compile, recompile, break, death, hit, miss, event or frame");
    else
        moved(s, cursor_step(&s->c, s->last, direction), direction > 0 ? "later " : "earlier ", s->last);
}

static void do_here(struct stepper *s, char *rest, int unused)
{
    (void)rest, (void)unused;
    replay_page(&s->c);
}

static void do_goto(struct stepper *s, char *rest, int unused)
{
    enum cursor_what what;
    enum cursor_result result = cursor_goto(&s->c, rest, &what);

    (void)unused;
    moved(s, result, "", what);
}

static void do_filter(struct stepper *s, char *rest, int unused)
{
    (void)unused;
    if (!strcmp(rest, "off")) {
        cursor_filter_off(&s->c);
    } else if (*rest) {
        if (cursor_filter(&s->c, rest))
            printf("%zu of %zu events pass\n", cursor_passing(&s->c), s->c.r->events.count);
        else
            s->failed = true;
        return;
    }
    prose_print(stdout, s->c.filtered ? "filter: %.280s\n" : "no filter\n", s->c.filtered);
}

static void do_stop(struct stepper *s, char *rest, int unused)
{
    (void)unused;
    if (!strcmp(rest, "off")) {
        cursor_stops_off(&s->c);
    } else if (*rest) {
        s->failed = !cursor_stop_add(&s->c, rest) || s->failed;
        return;
    }
    for (size_t i = 0; i < s->c.stops.count; i++)
        prose_print(stdout, "%jd. %.140s\n", (int64_t)i + 1, s->c.stops.at[i].text);
    if (!s->c.stops.count)
        puts("no stops");
}

/* On to a stop, DIRECTION 1 or -1. */
static void do_run(struct stepper *s, char *rest, int direction)
{
    const struct cursor_stop *stop = NULL;
    size_t passed = 0;

    (void)rest;
    for (; !stop && !prompt_interrupted() && cursor_step(&s->c, NEXT_EVENT, direction) == CURSOR_THERE; passed++)
        stop = cursor_stopped(&s->c);
    if (stop) {
        prose_print(stdout, "stopped: %.140s\n", stop->text);
        replay_page(&s->c);
    } else {
        printf("(%s after %zu events)\n",
               prompt_interrupted() ? "interrupted"
               : direction > 0      ? "the end"
                                    : "the beginning",
               passed);
    }
}

static void do_part(struct stepper *s, char *rest, int part)
{
    const char *label = part == PAGE_GUARDS && *rest ? rest : NULL;

    if (replay_page_part(&s->c, (enum page_part)part, label))
        return;
    if (part == PAGE_STACK)
        puts("(no frame is known here)");
    else if (part == PAGE_CACHE)
        say(s, "cache", "here is no decision about one; `next` goes to one");
    else
        say(s, label, "no such entry; `cache` lists those of the function");
}

static void do_help(struct stepper *s, char *rest, int unused);

static const struct step_command {
    const char *name, *brief, *words, *help;
    void (*run)(struct stepper *s, char *rest, int with);
    int with;
} commands[] = {
#define X(...) {__VA_ARGS__},
    STEP_COMMANDS(X)
#undef X
    {"help", "h", NULL, "this", do_help, 0},
    {"quit", "q", NULL, "or Ctrl-D", NULL, 0},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void do_help(struct stepper *s, char *rest, int unused)
{
    (void)s, (void)rest, (void)unused;
    for (int i = 0; i < COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].words ? commands[i].words : "");
        printf("  %-2s %-20s %s\n", commands[i].brief, left, commands[i].help);
    }
    puts("Recorded decisions are replayed, not the program: nothing of it runs.");
}

/* One command, LINE, which is changed. False: that was the last one. */
static bool do_one(struct stepper *s, char *line)
{
    char *rest, *word = strtok_r(line, " \t\r", &rest);

    if (!word)
        return true;
    rest += strspn(rest, " \t\r");
    for (char *end = rest + strlen(rest); end > rest && strchr(" \t\r", end[-1]);)
        *--end = 0;
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(word, commands[i].name) || (*commands[i].brief && !strcmp(word, commands[i].brief))) {
            if (!commands[i].run)
                return false;
            commands[i].run(s, rest, commands[i].with);
            return true;
        }
    say(s, word, "no such command; `help` lists them");
    return true;
}

/* Commands with ';' or line ends between them; a ';' within quotes is not one. */
static bool do_list(struct stepper *s, char *list)
{
    while (*list) {
        char *end = list, quote = 0;
        bool last;
        for (; *end && (quote || (*end != ';' && *end != '\n')); end++)
            if (*end == '\'' || *end == '"')
                quote = !quote ? *end : quote == *end ? 0 : quote;
        last = !*end;
        *end = 0;
        if (!do_one(s, list))
            return false;
        list = last ? end : end + 1;
    }
    return true;
}

/* The next line that is typed, or comes from stdin; the caller frees it. NULL: that was all. */
static char *line_read(bool terminal)
{
    char *line = NULL;
    size_t room = 0;

    if (terminal && (line = prompt_line("replay> ")))
        prompt_remember(line);
    else if (terminal)
        putchar('\n');
    else if (getline(&line, &room, stdin) < 0) {
        free(line);
        line = NULL;
    }
    return line;
}

int replay_step(struct db *db, struct replay *replay, const replay_script *script)
{
    struct stepper s = {.last = NEXT_LOOKUP};
    bool scripted = script->count > 0, terminal = !scripted && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
         go_on = true;
    char *line;

    cursor_begin(&s.c, db, replay, stdout);
    if (terminal) {
        prose_print(stdout, "Replays the decisions recorded in %.70s (%jd lookups, %jd compiles), not the program."
                            " \"help\" lists the commands.\n",
                    db_path(db), (int64_t)replay->lookups.count, (int64_t)replay->compiles.count);
        prompt_begin();
    }
    for (size_t i = 0; i < script->count && go_on; i++) {
        const struct replay_command *c = &script->at[i];
        line = c->name ? say_print("%s %s", c->name, c->words) : strdup(c->words);
        go_on = c->name ? do_one(&s, line) : do_list(&s, line);
        free(line);
    }
    while (!scripted && go_on && (line = line_read(terminal))) {
        go_on = do_list(&s, line);
        free(line);
    }
    cursor_end(&s.c);
    return s.failed && !terminal ? 2 : 0;
}
