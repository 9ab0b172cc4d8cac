/* tui.c -- `dyntrace tui`: the loop, and the screen's frame. See tui.h; what views see of it is tui/view.h.
 *
 *     row 0       name of the trace, the views on the stack ... a note of the one on top
 *     rows 1 to   the view on top
 *     last row    a message, a line that is typed, or what the keys are
 *
 * Keys never wait for the trace: views ask in threads (tui/work.h) and are drawn
 * with what they have. With --keys the same code waits before each key until
 * nothing is asked any more, so that a script sees the same screens every time. */
#include "tui.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "lib/bounds.h"
#include "schema.h"
#include "lib/say.h"
#include "lib/out_file.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/sql_words.h"
#include "tui/places.h"
#include "tui/prompt.h"
#include "tui/rates.h"
#include "tui/view.h"

enum {
    DRAW_WAIT_MS = 20,   /* for what a key asked, so that a screen is drawn once and not twice */
    TICK_MS = 500,       /* between two looks at a live trace */
    SAY = 400,
};

struct loop {
    struct tui face;        /* screen and work are owned */
    const struct tui_options *options; /* borrowed */
    struct places places;   /* owned: the views */
    struct prompt prompt;
    enum request asked;     /* what the prompt is for */
    struct sql_words words; /* owned; gathered when first needed */
    size_t next_word;
    char message[SAY];
    bool alarm, quit;
    bool clicked;           /* the last key was a click, and opened a view */
    struct output output;   /* owned: what the program printed */

    /* the trace, whose file may be deleted, replaced or written to */
    struct db *fresh;       /* owned: of the file that took its place, or NULL */
    char *path;             /* owned: absolute */
    int ended_fd;           /* owned: readable when a job has ended */
    struct stat file;       /* as it was opened */
    bool gone, replaced;    /* there is none of that name any more, or another */
    bool live, hold;
    int64_t ticked_ms;
    struct rates rates;     /* while it is live */
    int killed;             /* how often the program was told to end */
    int64_t version;        /* of its rows when it was looked at last, 0: not yet */
};

/* ---- what the loop does for views ------------------------------------------ */

void tui_print(struct tui *tui, bool alarm, const char *format, ...)
{
    struct loop *loop = (struct loop *)tui;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(loop->message, sizeof loop->message, format, arguments);
    va_end(arguments);
    loop->alarm = alarm;
}

static void on_error(void *context, const char *line)
{
    tui_alarm(context, "%s", line);
}

static struct view *top(struct loop *loop)
{
    return places_top(&loop->places);
}

/* What the line of the view on top is about. */
static struct target subject(struct loop *loop)
{
    struct target subject = {0};

    if (loop->places.depth && view_op(top(loop)->ops, subject))
        view_op(top(loop)->ops, subject)(top(loop), &subject);
    return subject;
}

/* The view on top shows the moment that was looked at last; NEAR: from near by. False: it has none to show. */
static bool moment_show(struct loop *loop, bool near)
{
    struct view *view = top(loop);

    if (!view_op(view->ops, moment))
        return false;
    if (near || subject(loop).at_ns != loop->face.moment_ns)
        view_op(view->ops, moment)(view, loop->face.moment_ns, near);
    return true;
}

void tui_go(struct tui *tui, const struct target *target)
{
    struct loop *loop = (struct loop *)tui;
    struct target was = subject(loop);
    bool again;

    if (was.at_ns > 0)
        tui->moment_ns = was.at_ns;
    again = places_go(&loop->places, target);
    if (again && target->kind == VIEW_OVERVIEW) { /* all is as it was at first */
        tui->moment_ns = 0;
        if (tui->split)
            places_split(&loop->places);
    }
    if (!again && tui->moment_ns && !target->id && !target->at_ns && !target->where)
        moment_show(loop, false);
}

void tui_open(struct tui *tui)
{
    struct loop *loop = (struct loop *)tui;
    struct target target = places_lead(&loop->places);

    if (target.kind)
        tui_go(tui, &target);
    else
        tui_say(tui, "this leads nowhere further; o opens the source where there is one");
}

/* ---- a trace that changes -------------------------------------------------- */

/* The file that has its name now becomes the trace; when it cannot be read all is as it was. */
static void reopen(struct loop *loop)
{
    struct stat st;
    struct db *fresh = db_open(loop->path);

    if (!fresh || stat(loop->path, &st) != 0) {
        db_close(fresh);
        return;
    }
    db_close(loop->fresh);
    loop->face.db = loop->fresh = fresh;
    loop->file = st;
    loop->gone = loop->replaced = false;
    loop->version = 0;
    work_reconnect(loop->face.work);
}

/* How the program ended, which is the first process of the trace. */
static void end_say(struct loop *loop, const char *state)
{
    struct query *query = db_query(loop->face.db, "SELECT ended FROM process_tree ORDER BY path LIMIT 1");
    char *ended = query_step(query) && query_type(query, 0) != QUERY_NULL ? prose_ended(query_text(query, 0, NULL)) : NULL;

    tui_print(&loop->face, ended && !strncmp(ended, "signal", 6), "the program has ended%s%s: the trace is %s", ended ? ", " : "", ended ? ended : "", state);
    free(ended);
    query_close(query);
}

static void live_set(struct loop *loop, bool live)
{
    loop->live = live;
    loop->face.below = live;
    places_fit(&loop->places);
}

/* See whether the file is still there, and has other rows. */
static void tick(struct loop *loop)
{
    struct stat st;
    int64_t version;
    char *state;
    bool recording;

    loop->ticked_ms = clock_monotonic_ms();
    if (!loop->gone && !loop->replaced) {
        loop->gone = stat(loop->path, &st) != 0;
        loop->replaced = !loop->gone && (st.st_dev != loop->file.st_dev || st.st_ino != loop->file.st_ino);
        if (loop->gone)
            tui_alarm(&loop->face, "the trace was deleted; what it had can still be read here");
        else if (loop->replaced && !loop->live)
            tui_alarm(&loop->face, "the trace was replaced by another file; R looks into that");
    }
    if (!loop->live || (loop->hold && !loop->replaced))
        return;
    if (loop->replaced) /* the recorder puts the whole trace in the place of the one that it wrote */
        reopen(loop);
    rates_look(&loop->rates, loop->face.db);
    version = db_integer(loop->face.db, 0, "PRAGMA data_version");
    if (version == loop->version)
        return;
    loop->version = version;
    state = db_meta(loop->face.db, "state");
    recording = !state || !strcmp(state, "recording");
    if (!recording)
        work_reconnect(loop->face.work); /* frames were joined to the file without SQLite: it need not notice */
    places_refresh(&loop->places);
    if (!recording) {
        live_set(loop, false);
        end_say(loop, state);
    }
    free(state);
}

/* Commands of dyntrace that `:` runs on the trace, and shows. */
static const char *const commands[] = {"check", "diff", "fsck", "report", "show", "verify", "why"};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* ---- the prompt ------------------------------------------------------------ */

/* Names of commands, then of views; for a filter the columns first; for SQL the trace's own words. */
static char *complete(void *context, const char *word, bool first, int again)
{
    struct loop *loop = context;
    size_t length = strlen(word);
    int skip = again;

    if (loop->asked == REQUEST_COMMAND && first) {
        for (int i = 0; i < REQUESTS + VIEW_KINDS + (int)COMMANDS; i++) {
            const struct view_ops *ops = view_of(i - REQUESTS);
            const char *name = i < REQUESTS ? bindings[i].name : ops ? ops->name : i >= REQUESTS + VIEW_KINDS ? commands[i - REQUESTS - VIEW_KINDS] : NULL;
            if (name && !strncmp(name, word, length) && skip-- == 0)
                return strdup(name);
        }
        return NULL;
    }
    for (size_t at = 0; loop->asked == REQUEST_FILTER && view_op(top(loop)->ops, column); at++) {
        const char *name = view_op(top(loop)->ops, column)(top(loop), at);
        if (!name)
            break;
        if (!strncmp(name + (*name == '"'), word, length) && skip-- == 0)
            return strdup(name);
    }
    if (loop->asked == REQUEST_FILTER)
        again = skip;
    if (!loop->words.words.count)
        sql_words_gather(&loop->words, loop->face.db);
    return sql_match(word, loop->words.words.at, loop->words.words.count, &loop->next_word, again);
}

static void ask_line(struct loop *loop, enum request asked, const char *label, const char *text)
{
    loop->asked = asked;
    loop->message[0] = 0;
    tui_prompt_begin(&loop->prompt, label, text);
}

void tui_ask(struct tui *tui, const char *label, const char *text)
{
    ask_line((struct loop *)tui, REQUEST_INPUT, label, text);
}

/* HAS, and if not, it is said. */
static bool can(struct loop *loop, bool has, const char *otherwise)
{
    if (!has)
        tui_say(&loop->face, "%s", otherwise);
    return has;
}

static void search_from(struct loop *loop, int direction)
{
    struct view *view = top(loop);

    if (can(loop, loop->face.searched[0], "nothing was searched for; / begins") &&
        can(loop, view_op(view->ops, search), "there is nothing to search in this view") &&
        !view_op(view->ops, search)(view, loop->face.searched, direction))
        tui_alarm(&loop->face, "%s: not found", loop->face.searched);
}

static void request(struct loop *loop, enum request request, const struct key *key);

static const struct key no_key = {KEY_NONE, 0, 0};

/* To line NUMBER; where lines are events, or lanes, so many down. */
static void line_go(struct loop *loop, long number)
{
    struct view *view = top(loop);

    request(loop, REQUEST_HOME, &no_key);
    if (number > 2 && view->count) {
        view_choose(view, (size_t)number - 2);
        number = 2;
    }
    for (long i = 1; i < number && i < 1000; i++)
        view_op(view->ops, request)(view, REQUEST_DOWN, &no_key);
}

/* To a moment, in the view on top or in the timeline. */
static void moment_go(struct loop *loop, int64_t ns)
{
    loop->face.moment_ns = ns > 1 ? ns : 1;
    if (!moment_show(loop, true)) {
        places_go(&loop->places, &(struct target){.kind = VIEW_TIMELINE});
        moment_show(loop, true);
    }
}

/* Where "+1s" counts from. */
static int64_t moment_now(struct loop *loop)
{
    int64_t here = subject(loop).at_ns;

    return here ? here : loop->face.moment_ns;
}

/* Another trace takes the place of this one, unless it cannot be read, which is said. */
static void trace_open(struct loop *loop, const char *path)
{
    struct db *fresh = db_open(path);
    char *absolute = fresh ? realpath(db_path(fresh), NULL) : NULL;
    struct work *work = absolute && stat(absolute, &loop->file) == 0 ? work_open(absolute, loop->ended_fd) : NULL;

    if (!work) {
        db_close(fresh);
        free(absolute);
        return;
    }
    places_close(&loop->places);
    work_close(loop->face.work);
    loop->face.work = work;
    sql_words_free(&loop->words);
    loop->words = (struct sql_words){0};
    db_close(loop->fresh);
    loop->face.db = loop->fresh = fresh;
    free(loop->path);
    loop->path = absolute;
    loop->gone = loop->replaced = false;
    live_set(loop, false);
    loop->face.moment_ns = 0;
    tui_go(&loop->face, &(struct target){.kind = VIEW_OVERVIEW});
}

/* `:view REST`: its number, or what to filter by, or what is typed into it. */
static void view_command(struct loop *loop, enum view_kind kind, const char *rest)
{
    const struct view_ops *ops = view_of((int)kind);
    struct target target = {.kind = kind, .id = ops->all ? strtoll(rest, NULL, 10) : 0};

    if (ops->all && target.id <= 0)
        target = (struct target){.kind = ops->all};
    tui_go(&loop->face, &target);
    if (!*rest || target.id > 0)
        return;
    if (view_op(top(loop)->ops, input)) {
        loop->prompt.active = false; /* what it asked for as it opened is given */
        view_op(top(loop)->ops, input)(top(loop), rest);
    } else if (view_op(top(loop)->ops, filter)) {
        view_op(top(loop)->ops, filter)(top(loop), rest);
    }
}

static void answer(struct loop *loop, enum request asked, char *text);

/* `:name rest`. */
static void command(struct loop *loop, char *text)
{
    const struct view_ops *ops = top(loop)->ops;
    char *name = text + strspn(text, " :"), *rest = name + strcspn(name, " "), *end;
    long number = strtol(name, &end, 10);
    int64_t ns;
    enum view_kind kind = view_named(name, (size_t)(rest - name));
    int i = REQUEST_NONE + 1;
    char *whole = arena_print(&top(loop)->arena, "%s", name);
    size_t at = 0;

    while (at < COMMANDS && (strlen(commands[at]) != (size_t)(rest - name) || strncmp(commands[at], name, (size_t)(rest - name))))
        at++;
    if (*rest)
        *rest++ = 0;
    rest += strspn(rest, " ");
    while (i < REQUESTS && strcmp(bindings[i].name, name))
        i++;
    if (!*name)
        return;
    if (moment_read(name, false, moment_now(loop), &ns))
        moment_go(loop, ns);
    else if (!*end && number > 0)
        line_go(loop, number);
    else if (!strcmp(name, "q") || !strcmp(name, "qa") || !strcmp(name, "quit!"))
        loop->quit = true;
    else if (!strcmp(name, "open") && *rest)
        trace_open(loop, rest);
    else if (at < COMMANDS)
        tui_go(&loop->face, &(struct target){.kind = VIEW_DYNTRACE, .where = whole});
    else if (kind)
        view_command(loop, kind, rest);
    else if (i == REQUEST_SEARCH || (i == REQUEST_FILTER && view_op(ops, filter)) ||
             (i == REQUEST_EXPORT && view_op(ops, export) && *rest))
        answer(loop, (enum request)i, rest);
    else if (i < REQUESTS)
        request(loop, (enum request)i, &no_key);
    else
        tui_alarm(&loop->face, "%s: no such command; ? lists them", name);
}

/* What was typed, and for what it was asked. */
static void answer(struct loop *loop, enum request asked, char *text)
{
    struct view *view = top(loop);
    struct stat st;
    int64_t ns;

    switch (asked) {
    case REQUEST_SEARCH:
        snprintf(loop->face.searched, sizeof loop->face.searched, "%s", text);
        view->searched = *text;
        if (*text)
            search_from(loop, 1);
        break;
    case REQUEST_FILTER:
        view_op(view->ops, filter)(view, text);
        break;
    case REQUEST_EXPORT:
        if (*text && lstat(text, &st) == 0)
            tui_alarm(&loop->face, "not exported: %s: exists already; choose another name", text);
        else if (*text && view_op(view->ops, export)(view, text) && !loop->message[0])
            tui_say(&loop->face, "writing %s", text);
        break;
    case REQUEST_INPUT:
        view_op(view->ops, input)(view, text);
        break;
    case REQUEST_MOMENT:
        if (moment_read(text, true, moment_now(loop), &ns))
            moment_go(loop, ns);
        else if (*text)
            tui_alarm(&loop->face, "%s: not a moment such as 0.3, 15.2s, +100ms", text);
        break;
    default:
        command(loop, text);
    }
}

/* ---- requests that no view takes ------------------------------------------- */

static void copy(struct loop *loop)
{
    struct view *view = top(loop);
    char *sql = view_op(view->ops, sql) ? view_op(view->ops, sql)(view) : NULL;

    if (can(loop, sql, "this view is not one query")) {
        screen_copy(loop->face.screen, sql);
        tui_say(&loop->face, "copied: %.300s", sql);
    }
    free(sql);
}

static void export(struct loop *loop)
{
    struct view *view = top(loop);
    char name[80];

    if (!can(loop, view_op(view->ops, export), "this view cannot be exported"))
        return;
    snprintf(name, sizeof name, "%s.%s", view->ops->name, view_op(view->ops, writes));
    ask_line(loop, REQUEST_EXPORT, "write to: ", name);
}

/* Open KIND about what the line of the view on top is about. */
static void go_subject(struct loop *loop, enum view_kind kind)
{
    struct target about = subject(loop);

    tui_go(&loop->face, &(struct target){.kind = kind, .id = about.id, .at_ns = about.at_ns, .about = about.kind});
}

/* Keep where the line leads, or else the view itself. */
static void mark(struct loop *loop)
{
    struct target target = places_lead(&loop->places);
    const struct view *view = top(loop);
    char words[240];

    target = target.kind ? target : view->target;
    snprintf(words, sizeof words, "%s %.160s%s", view_of((int)target.kind)->name, target.title ? target.title : "",
             target.where && !target.title ? target.where : "");
    places_mark(&loop->places, &target, words);
    tui_say(&loop->face, "marked: %s; ' lists what is marked", words);
}

/* To the program under `run --live`. */
static void program_signal(struct loop *loop, int number, const char *done)
{
    if (!can(loop, loop->options->running && loop->options->program_fd >= 0, "no program runs under this screen: that is for run --live"))
        return;
    if (syscall(SYS_pidfd_send_signal, loop->options->program_fd, number, NULL, 0) == 0)
        tui_say(&loop->face, "%s", done);
    else
        tui_alarm(&loop->face, "the program was not reached: %s", errno == ESRCH ? "it has ended" : strerror(errno));
}

static void request(struct loop *loop, enum request request, const struct key *key)
{
    struct view *view = top(loop);
    struct tui *tui = &loop->face;

    if (view_op(view->ops, request)(view, request, key))
        return;
    switch (request) {
    case REQUEST_BACK:
        if (places_move(&loop->places, -1))
            break;
        if (key->code == 'q')
            loop->quit = true;
        else
            tui_say(tui, "this is the first view; q or :quit ends");
        break;
    case REQUEST_FORWARD: can(loop, places_move(&loop->places, 1), "there is nothing to go forward to"); break;
    case REQUEST_OPEN: tui_open(tui); break;
    case REQUEST_SPLIT: places_split(&loop->places); break;
    case REQUEST_BOOKMARK: mark(loop); break;
    case REQUEST_MOMENT: ask_line(loop, request, "go to: ", ""); break;
    case REQUEST_HELP: tui_go(tui, &(struct target){.kind = VIEW_HELP, .about = view->target.kind}); break;
    case REQUEST_FILTER:
        if (can(loop, view_op(view->ops, filter), "there are no rows to filter in this view"))
            ask_line(loop, request, "filter: ", "");
        break;
    case REQUEST_REFRESH:
        if (loop->replaced)
            reopen(loop);
        places_refresh(&loop->places);
        break;
    case REQUEST_FOLLOW:
        loop->hold = !loop->hold;
        tui_say(tui, !loop->live   ? "the trace is not live"
                     : loop->hold ? "holding still; F follows again"
                                  : "following");
        break;
    case REQUEST_CANCEL:
        tui_say(tui, work_cancel(tui->work) ? "cancelled" : "nothing is being asked; q goes back, Q ends");
        break;
    case REQUEST_REPLAY:
    case REQUEST_TIMELINE:
    case REQUEST_WHATIF: go_subject(loop, bindings[request].view); break;
    case REQUEST_INTERRUPT: program_signal(loop, SIGINT, "the program was interrupted (SIGINT)"); break;
    case REQUEST_KILL:
        if (loop->killed++)
            program_signal(loop, SIGKILL, "the program was killed (SIGKILL)");
        else
            program_signal(loop, SIGTERM, "the program was told to end (SIGTERM); again: SIGKILL");
        break;
    case REQUEST_SEARCH: ask_line(loop, request, "/", ""); break;
    case REQUEST_COMMAND: ask_line(loop, request, ":", ""); break;
    case REQUEST_SEARCH_NEXT: search_from(loop, 1); break;
    case REQUEST_SEARCH_PREVIOUS: search_from(loop, -1); break;
    case REQUEST_QUIT: loop->quit = true; break;
    case REQUEST_EDIT: view_edit(view); break;
    case REQUEST_COPY: copy(loop); break;
    case REQUEST_EXPORT: export(loop); break;
    case REQUEST_TOGGLE: view_op(view->ops, request)(view, REQUEST_PAGE_DOWN, key); break;
    case REQUEST_REDRAW: screen_resize(tui->screen, tui->screen->rows, tui->screen->columns); break;
    case REQUEST_STOP: screen_stop(tui->screen); break;
    default:
        if (can(loop, bindings[request].view, "that means nothing in this view; ? lists the keys"))
            tui_go(tui, &(struct target){.kind = bindings[request].view});
    }
}

static void key_take(struct loop *loop, const struct key *typed)
{
    const struct view *view = top(loop);
    struct key at = *typed, *key = &at;

    if (key->code == K_RESIZE) {
        screen_resize(loop->face.screen, key->y, key->x);
        places_fit(&loop->places);
        return;
    }
    if (key->code == K_CLOSED) {
        loop->quit = true;
        return;
    }
    if (loop->prompt.active && key->code != K_CONTROL('z') && key->code != K_CONTROL('l')) { /* these leave it as it is */
        if (tui_prompt_key(&loop->prompt, key)) {
            char *text = strdup(loop->prompt.text); /* what takes it may ask for another */
            answer(loop, loop->asked, text);
            free(text);
        }
        return;
    }
    if (key->code == K_DOUBLE && loop->clicked) /* its first press opened the line */
        return;
    loop->message[0] = 0;
    loop->clicked = false;
    if ((key->code == K_CLICK || key->code == K_DOUBLE) && !places_click(&loop->places, key))
        return;
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++)
        for (int k = 0; k < 4 && bindings[i].keys[k]; k++)
            if (bindings[i].keys[k] == key->code) {
                request(loop, (enum request)i, key);
                loop->clicked = key->code == K_CLICK && top(loop) != view;
                return;
            }
    tui_say(&loop->face, "no such key; ? lists them");
}

/* ---- drawing --------------------------------------------------------------- */

static void foot_draw(struct loop *loop)
{
    struct screen *screen = loop->face.screen;
    int y = screen->rows - 1;
    char line[400];

    if (loop->live) {
        rates_print(&loop->rates, loop->options->running ? loop->options->program_pid : 0, screen->columns, line, sizeof line);
        screen_put(screen, y - 1, 0, screen->columns, STYLE_HEAD, line);
    }
    if (loop->prompt.active) {
        tui_prompt_draw(&loop->prompt, screen);
    } else if (loop->message[0]) {
        screen_put(screen, y, 0, screen->columns, loop->alarm ? STYLE_ALARM : STYLE_NORMAL, loop->message);
    } else if (loop->output.screen && loop->output.open) {
        screen_put(screen, y, 0, screen->columns, STYLE_ALARM, "the program draws a screen of its own: run it without --live, and `dyntrace tui --live` on its trace in another terminal");
    } else if (loop->output.text.count && top(loop)->ops != view_of(VIEW_OUTPUT)) {
        char *last = output_last(&loop->output);
        int x = screen_put(screen, y, 0, screen->columns, STYLE_DIM, "O: ");
        screen_put(screen, y, x, screen->columns - x, STYLE_NORMAL, last);
        free(last);
    } else {
        places_hint_draw(&loop->places);
    }
}

static void settle(struct loop *loop)
{
    places_settle(&loop->places);
}

static void draw(struct loop *loop)
{
    struct screen *screen = loop->face.screen;

    screen_clear(screen);
    if (screen->rows < SCREEN_ROWS_LEAST || screen->columns < SCREEN_COLUMNS_LEAST) {
        screen_put(screen, screen->rows / 2, 0, screen->columns, STYLE_BOLD, "too small: 40x12 is needed");
    } else {
        places_draw(&loop->places);
        places_bar_draw(&loop->places, strrchr(loop->path, '/') + 1, !loop->live ? "" : loop->hold ? " (held)" : " (live)");
        foot_draw(loop);
    }
    screen_show(screen);
}

/* ---- the loop -------------------------------------------------------------- */

/* Until a job has ended, at most MS; ALSO: or something was typed or printed. */
static void wait_for_something(struct loop *loop, int64_t ms, bool also)
{
    struct pollfd polled[3] = {{loop->ended_fd, POLLIN, 0}, {loop->face.screen->keys_fd, POLLIN, 0},
                               {loop->options->output_fd, POLLIN, 0}};
    eventfd_t ended;

    poll(polled, !also ? 1 : loop->output.open ? 3 : 2, (int)ms);
    if (polled[0].revents)
        eventfd_read(polled[0].fd, &ended);
    if (polled[2].revents)
        loop->output.open = output_read(&loop->output, polled[2].fd);
}

/* Wait until nothing is asked any more, and all of it is shown. */
static void calm(struct loop *loop)
{
    for (int quiet = 0; quiet < 3; quiet++) { /* what settles may ask for more */
        settle(loop);
        while (work_pending(loop->face.work)) {
            wait_for_something(loop, 1000, false);
            settle(loop);
            quiet = 0;
        }
    }
}

static void keys_play(struct loop *loop, const char *keys)
{
    char *spaced = say_print(" %s", keys); /* a word begins after a space */
    const char *at = spaced;
    struct key key;

    calm(loop);
    draw(loop);
    while (!loop->quit && script_key(&at, &key)) {
        key_take(loop, &key);
        calm(loop);
        draw(loop);
    }
    free(spaced);
}

/* Give what a key asked a moment, so that the next screen has it. */
static void settle_soon(struct loop *loop)
{
    int64_t until = clock_monotonic_ms() + DRAW_WAIT_MS, left;

    settle(loop);
    while (top(loop)->busy && (left = until - clock_monotonic_ms()) > 0) {
        wait_for_something(loop, left, false);
        settle(loop);
    }
}

static void keys_take(struct loop *loop)
{
    while (!loop->quit) {
        int64_t idle;
        struct key key;
        bool any = false;
        if (!work_pending(loop->face.work)) /* what is asked from here on has its own time */
            bounds_attended();
        settle_soon(loop);
        draw(loop);
        idle = clock_monotonic_ms() - loop->ticked_ms;
        wait_for_something(loop, idle < TICK_MS ? TICK_MS - idle : 0, true);
        /* All keys that are there, then one screen: a held key does not queue up. */
        while (!loop->quit && (key = screen_key(loop->face.screen)).code != KEY_NONE) {
            bounds_attended();
            key_take(loop, &key);
            settle(loop);
            any = true;
        }
        if (!any && clock_monotonic_ms() - loop->ticked_ms >= TICK_MS)
            tick(loop);
    }
}

int tui_run(const struct tui_options *options, const char *path)
{
    struct db *db = db_open(path);
    struct loop all = {.options = options, .live = options->live}, *loop = &all;
    struct screen *screen;
    const char *why;
    bool open, damaged = false;

    if (!db)
        return 2;
    screen = options->dump ? screen_open_memory(options->rows, options->columns, options->ascii)
                           : screen_open_terminal(options->ascii, &why);
    if (!screen) {
        say_error("%s: %s", options->running ? "run: --live" : "tui", why);
        db_close(db);
        return 2;
    }
    loop->face = (struct tui){.screen = screen, .scripted = options->keys, .db = db, .output = options->running ? &loop->output : NULL};
    loop->places.tui = &loop->face;
    loop->face.marks = &loop->places.marks;
    loop->prompt = (struct prompt){.complete = complete, .context = loop};
    loop->output.open = options->running;
    loop->output.input_fd = options->running && options->program_reads ? options->output_fd : -1;
    loop->face.below = loop->live;
    loop->path = realpath(db_path(db), NULL);
    loop->ended_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    open = loop->path && stat(loop->path, &loop->file) == 0;
    if (!open)
        say_error("%s: %s", db_path(db), strerror(errno));
    open = open && (loop->face.work = work_open(loop->path, loop->ended_fd));
    if (open) {
        tui_prompt_past_read(&loop->prompt, options->keys ? NULL : state_file("tui_history"));
        say_divert(on_error, &loop->face);
        tui_go(&loop->face, &(struct target){.kind = VIEW_OVERVIEW});
        if (options->keys)
            keys_play(loop, options->keys);
        loop->face.scripted = false;
        if (options->dump)
            screen_dump(screen, stdout);
        else if (!loop->quit)
            keys_take(loop);
        damaged = options->dump && work_damaged(loop->face.work);
        say_divert(NULL, NULL);
    }
    places_close(&loop->places);
    screen_close(screen); /* first: should a query not end, Ctrl-C does */
    work_close(loop->face.work);
    close(loop->ended_fd);
    tui_prompt_past_keep(&loop->prompt);
    output_print(&loop->output); /* where it would have been printed */
    list_free(&loop->output.text);
    sql_words_free(&loop->words);
    db_close(loop->fresh);
    db_close(db);
    free(loop->path);
    return open && !damaged ? 0 : 2;
}
