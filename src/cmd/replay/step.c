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
#include "trace/replay/page.h"
#include "lib/say.h"

enum { WIDTH = 70 };

struct stepper {
    struct cursor c;
    FILE *out;             /* borrowed */
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
        fprintf(s->out, "(no %s%s%s)\n", where, cursor_whats[what],
                what == NEXT_FRAME ? " on this thread"
                : s->c.filtered    ? " that passes the filter"
                                   : "");
}

static void do_step(struct stepper *s, char *rest, int direction)
{
    const char *word = cursor_word(&rest);

    if (word && !cursor_what(word, &s->last))
        say(s, word, "no such event: lookup, compile, recompile, break, death, hit, miss, event or frame");
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
    bool off = !strcmp(rest = cursor_words(rest), "off");

    (void)unused;
    if (off)
        cursor_filter_off(&s->c);
    if (*rest && !off) {
        if (cursor_filter(&s->c, rest))
            fprintf(s->out, "%zu of %zu events pass\n", cursor_passing(&s->c), s->c.r->events.count);
        else
            s->failed = true;
        return;
    }
    fputs(s->c.filtered ? "filter: " : "no filter", s->out);
    if (s->c.filtered)
        prose_text(s->out, s->c.filtered, WIDTH * 4);
    putc('\n', s->out);
}

static void do_stop(struct stepper *s, char *rest, int unused)
{
    bool off = !strcmp(rest = cursor_words(rest), "off");

    (void)unused;
    if (off)
        cursor_stops_off(&s->c);
    if (*rest && !off) {
        s->failed = !cursor_stop_add(&s->c, rest) || s->failed;
        return;
    }
    for (int i = 0; i < s->c.stop_count; i++) {
        fprintf(s->out, "%d. ", i + 1);
        prose_text(s->out, s->c.stops[i].text, WIDTH * 2);
        putc('\n', s->out);
    }
    if (!s->c.stop_count)
        fputs("no stops\n", s->out);
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
        fputs("stopped: ", s->out);
        prose_text(s->out, stop->text, WIDTH * 2);
        putc('\n', s->out);
        replay_page(&s->c);
    } else {
        fprintf(s->out, "(%s after %zu events)\n",
                prompt_interrupted() ? "interrupted"
                : direction > 0      ? "the end"
                                     : "the beginning",
                passed);
    }
}

static void do_part(struct stepper *s, char *rest, int part)
{
    const char *label = part == PAGE_GUARDS ? cursor_word(&rest) : NULL;

    if (replay_page_part(&s->c, (enum page_part)part, label))
        return;
    if (part == PAGE_STACK)
        fputs("(no frame is known here)\n", s->out);
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
    (void)rest, (void)unused;
    for (int i = 0; i < COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].words ? commands[i].words : "");
        fprintf(s->out, "  %-2s %-20s %s\n", commands[i].brief, left, commands[i].help);
    }
    fputs("Recorded decisions are replayed, not the program: nothing of it runs.\n", s->out);
}

/* One command. False: that was the last one. */
static bool do_one(struct stepper *s, char *line)
{
    char *rest = line, *word = cursor_word(&rest);

    if (!word)
        return true;
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

int replay_step(struct db *db, struct replay *replay, const struct replay_script *script, FILE *out)
{
    struct stepper s = {.out = out, .last = NEXT_LOOKUP};
    bool scripted = script->count > 0, terminal = !scripted && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
         go_on = true;
    char *line = NULL;
    size_t room = 0;

    cursor_begin(&s.c, db, replay, out);
    if (terminal) {
        fputs("Replays the decisions recorded in ", out);
        prose_text(out, db_path(db), WIDTH);
        fprintf(out, " (%zu lookups, %zu compiles), not the program. \"help\" lists the commands.\n",
                replay->lookups.count, replay->compiles.count);
        prompt_begin();
    }
    for (int i = 0; i < script->count && go_on; i++) {
        const struct replay_command *c = &script->commands[i];
        free(line);
        if (!c->name)
            line = strdup(c->words);
        else if (asprintf(&line, "%s %s", c->name, c->words) < 0)
            line = NULL;
        go_on = line && (c->name ? do_one(&s, line) : do_list(&s, line));
    }
    while (!scripted && go_on) {
        if (terminal) {
            free(line);
            line = prompt_line("replay> ");
            if (line)
                prompt_remember(line);
            else
                putc('\n', out);
        }
        if (terminal ? !line : getline(&line, &room, stdin) < 0)
            break;
        go_on = do_list(&s, line);
    }
    free(line);
    cursor_end(&s.c);
    return s.failed && !terminal ? 2 : 0;
}
