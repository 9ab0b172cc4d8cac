/* cmd/replay/step.c -- a trace's decisions one by one, told by commands. See cmd/replay/step.h.
 *
 * Runs in: the viewer.
 *
 * Each command is a row of a table, which `help` prints. The place is kept by trace/replay/cursor.c and told by
 * trace/replay/page.c. */
#include "cmd/replay/step.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace/db.h"
#include "cmd/prompt.h"
#include "trace/prose.h"
#include "replay.h"
#include "trace/replay/cursor.h"
#include "trace/replay/page.h"
#include "lib/say.h"

enum {
    WIDTH = 70,
    PLAY_GAP_MS = 5000, /* no longer than that is waited between two events */
};

struct stepper {
    struct cursor c;
    struct replay_page page;
    FILE *out;             /* borrowed */
    enum cursor_what last; /* what `next` alone goes to */
    double speed;
    bool failed; /* a command could not be done */
};

static void say(struct stepper *s, const char *what, const char *why)
{
    s->failed = true;
    say_error("replay: %s: %s", what, why);
}

/* ---- commands -------------------------------------------------------------- */

/* Tell what came of a move to WHAT; WHERE it was looked for if there is none. */
static void moved(struct stepper *s, enum cursor_result result, const char *where, enum cursor_what what)
{
    if (result == CURSOR_THERE)
        replay_page_print(&s->page, false);
    else if (result == CURSOR_ERROR)
        s->failed = true;
    else
        fprintf(s->out, "(no %s%s%s)\n", where, cursor_whats[what],
                what == NEXT_FRAME ? " on this thread"
                : s->c.filtered    ? " that passes the filter"
                                   : "");
}

static void step(struct stepper *s, char *rest, int direction)
{
    const char *word = cursor_word(&rest);

    if (word && !cursor_what(word, &s->last))
        say(s, word, "no such event: lookup, compile, recompile, break, death, hit, miss, event or frame");
    else
        moved(s, cursor_step(&s->c, s->last, direction), direction > 0 ? "later " : "earlier ", s->last);
}

static void do_next(struct stepper *s, char *rest)
{
    step(s, rest, 1);
}

static void do_previous(struct stepper *s, char *rest)
{
    step(s, rest, -1);
}

static void do_here(struct stepper *s, char *rest)
{
    (void)rest;
    replay_page_print(&s->page, false);
}

static void do_goto(struct stepper *s, char *rest)
{
    enum cursor_what what;
    enum cursor_result result = cursor_goto(&s->c, rest, &what);

    moved(s, result, "", what);
}

static void do_filter(struct stepper *s, char *rest)
{
    rest = cursor_words(rest);
    if (!strcmp(rest, "off"))
        cursor_filter_off(&s->c);
    if (*rest && strcmp(rest, "off")) {
        if (cursor_filter(&s->c, rest))
            fprintf(s->out, "%zu of %zu events pass\n", cursor_passing(&s->c), s->c.r->event_count);
        else
            s->failed = true;
    } else {
        fputs(s->c.filtered ? "filter: " : "no filter", s->out);
        if (s->c.filtered)
            prose_text(s->out, s->c.filtered, WIDTH * 4);
        putc('\n', s->out);
    }
}

static void do_stop(struct stepper *s, char *rest)
{
    rest = cursor_words(rest);
    if (!strcmp(rest, "off"))
        cursor_stops_off(&s->c);
    if (*rest && strcmp(rest, "off")) {
        if (!cursor_stop_add(&s->c, rest))
            s->failed = true;
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

/* On to a stop, DIRECTION 1 or -1; PLAY: print what passes, in time. */
static void run_on(struct stepper *s, int direction, bool play)
{
    const struct cursor_stop *stop = NULL;
    int64_t before = cursor_ns(&s->c);
    size_t passed = 0;

    while (!stop && !prompt_interrupted() && cursor_step(&s->c, NEXT_EVENT, direction) == CURSOR_THERE) {
        if (play) {
            double ms = (double)(cursor_ns(&s->c) - before) / 1e6 / s->speed;
            if (ms > PLAY_GAP_MS)
                ms = PLAY_GAP_MS;
            if (ms >= 1) {
                fflush(s->out);
                nanosleep(
                    &(struct timespec){(time_t)(ms / 1000), (long)((ms - 1000 * (double)(time_t)(ms / 1000)) * 1e6)},
                    NULL);
                if (prompt_interrupted())
                    break;
            }
            before = cursor_ns(&s->c);
        }
        passed++;
        stop = cursor_stopped(&s->c);
        if (play && !stop)
            replay_page_print(&s->page, true);
    }
    if (stop) {
        fputs("stopped: ", s->out);
        prose_text(s->out, stop->text, WIDTH * 2);
        putc('\n', s->out);
        replay_page_print(&s->page, false);
    } else {
        fprintf(s->out, "(%s after %zu events)\n",
                prompt_interrupted() ? "interrupted"
                : direction > 0      ? "the end"
                                     : "the beginning",
                passed);
    }
}

static void do_continue(struct stepper *s, char *rest)
{
    (void)rest;
    run_on(s, 1, false);
}

static void do_back(struct stepper *s, char *rest)
{
    (void)rest;
    run_on(s, -1, false);
}

static void do_play(struct stepper *s, char *rest)
{
    char *word = cursor_word(&rest), *end = NULL;
    double speed = word ? strtod(word, &end) : s->speed;

    if (word && (*end || !(speed > 0 && speed < 1e9))) {
        say(s, word, "not a speed: 1 is as recorded, 10 ten times as fast");
        return;
    }
    s->speed = speed;
    run_on(s, 1, true);
}

static void do_cache(struct stepper *s, char *rest)
{
    (void)rest;
    if (!replay_page_cache(&s->page, true))
        say(s, "cache", "here is no decision about one; `next` goes to one");
}

static void do_guards(struct stepper *s, char *rest)
{
    const char *label = cursor_word(&rest);

    if (!replay_page_guards(&s->page, label))
        say(s, label, "no such entry; `cache` lists those of the function");
}

static void do_stack(struct stepper *s, char *rest)
{
    (void)rest;
    if (!replay_page_stack(&s->page))
        fputs("(no frame is known here)\n", s->out);
}

static void do_source(struct stepper *s, char *rest)
{
    (void)rest;
    replay_page_source(&s->page);
}

static void do_help(struct stepper *s, char *rest);

static const struct step_command {
    const char *name, *brief, *words, *help;
    void (*run)(struct stepper *s, char *rest);
} commands[] = {
    {"next", "n", "[WHAT]",
     "the next lookup, compile, recompile, break, death, hit, miss, event or frame; alone: as before", do_next},
    {"previous", "p", "[WHAT]", "the one before", do_previous},
    {"goto", "g", "PLACE", "1.5s, 50%, lookup 20, compile 3, frame 7, first miss, last compile", do_goto},
    {"here", ".", "", "print this place again", do_here},
    {"filter", "f", "[BY WHAT]",
     "function NAME, file GLOB, thread ID, process ID, outcome NAME, where SQL (of call_ledger); off", do_filter},
    {"stop", "s", "[WHEN]", "when FUNC recompiles, compiles, misses, is called; when entry 0/3 is hit, dies; off",
     do_stop},
    {"continue", "c", "", "on to the next stop, or the end", do_continue},
    {"back", "b", "", "back to the stop before, or the beginning", do_back},
    {"play", "", "[SPEED]", "tell one event after the other in recorded time; Ctrl-C stops", do_play},
    {"cache", "", "", "all entries of the cache, as they stood", do_cache},
    {"guards", "", "[LABEL]", "the guards of this entry, or of the one with that label", do_guards},
    {"stack", "", "", "the whole call stack", do_stack},
    {"source", "", "", "source lines", do_source},
    {"help", "h", "", "this", do_help},
    {"quit", "q", "", "or Ctrl-D", NULL},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void do_help(struct stepper *s, char *rest)
{
    (void)rest;
    for (int i = 0; i < COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].words);
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
            commands[i].run(s, rest);
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

int replay_step(struct db *db, struct replay *replay, const struct replay_script *script, double speed, FILE *out)
{
    struct stepper s = {.out = out, .speed = speed, .last = NEXT_LOOKUP};
    bool scripted = script->count > 0, terminal = !scripted && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
         go_on = true;
    char *line = NULL;
    size_t room = 0;

    cursor_begin(&s.c, db, replay, out);
    s.page = (struct replay_page){.db = db, .c = &s.c, .out = out};
    s.page.checks_indexed =
        db_integer(db, 0, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'index' AND name = 'guard_check_lookup'") >
        0;
    if (terminal) {
        fputs("Replays the decisions recorded in ", out);
        prose_text(out, db_path(db), WIDTH);
        fprintf(out, " (%zu lookups, %zu compiles), not the program. \"help\" tells more.\n", replay->lookup_count,
                replay->compile_count);
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
