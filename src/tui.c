/* tui.c -- `dyntrace tui`: the loop, and the screen's frame. See tui.h; what views see of it is tui/view.h.
 *
 * Runs in: the viewer.
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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/bounds.h"
#include "lib/say.h"
#include "lib/state_file.h"
#include "trace/db.h"
#include "trace/sql_words.h"
#include "tui/output.h"
#include "tui/prompt.h"
#include "tui/script.h"
#include "tui/view.h"

enum {
    STACK = 64,          /* views; the oldest but the first goes when there are more */
    DRAW_WAIT_MS = 20,   /* for what a key asked, so that a screen is drawn once and not twice */
    TICK_MS = 500,       /* between two looks at a live trace */
    SAY = 400,
};

struct tui {
    const struct tui_options *options; /* borrowed */
    struct screen *screen;  /* owned */
    struct work *work;      /* owned */
    struct db *db;          /* borrowed, or `fresh`: for what is known at once: names to complete, whether the trace changed */
    struct view *stack[STACK]; /* owned */
    int depth;
    struct prompt prompt;
    struct prompt_past past;
    struct sql_words words; /* owned; gathered when first needed */
    size_t next_word;
    enum request asked;     /* what the prompt is for */
    char message[SAY];
    bool alarm, quit, scripted;
    bool clicked;           /* the last key was a click, and opened a view */
    char searched[200];
    char *path;             /* owned: absolute */
    dev_t device;
    ino_t inode;
    bool gone, replaced;    /* the user knows that the file is not there any more, or is another */
    struct db *fresh;       /* owned: of the file that took its place, or NULL */
    int64_t version, ticked_ms;
    const char *seen;       /* borrowed from a db: which one VERSION is of */
    bool live, hold;
    struct output output;   /* owned: what the program printed */
};

/* Where two targets would show the same. */
static bool target_same(const struct target *a, const struct target *b)
{
    return a->kind == b->kind && a->id == b->id && (a->where && b->where ? !strcmp(a->where, b->where) : a->where == b->where);
}

/* ---- what the loop does for views ------------------------------------------ */

struct work *tui_work(struct tui *tui)
{
    return tui->work;
}

struct screen *tui_screen(struct tui *tui)
{
    return tui->screen;
}

bool tui_scripted(const struct tui *tui)
{
    return tui->scripted;
}

const struct output *tui_output(struct tui *tui)
{
    return tui->options->running ? &tui->output : NULL;
}

const char *tui_searched(const struct tui *tui)
{
    return tui->searched;
}

void tui_say(struct tui *tui, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(tui->message, sizeof tui->message, format, arguments);
    va_end(arguments);
    tui->alarm = false;
}

void tui_alarm(struct tui *tui, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(tui->message, sizeof tui->message, format, arguments);
    va_end(arguments);
    tui->alarm = true;
}

static void on_error(void *context, const char *line)
{
    tui_alarm(context, "%s", line);
}

static struct view *top(struct tui *tui)
{
    return tui->depth ? tui->stack[tui->depth - 1] : NULL;
}

static void view_end(struct view *view)
{
    if (view->ops->close)
        view->ops->close(view);
    target_free(&view->target);
    free(view);
}

static void view_place(struct tui *tui, struct view *view)
{
    view->y = 1;
    view->rows = tui->screen->rows - 2;
    view->columns = tui->screen->columns;
    if (view->rows < 1)
        view->rows = 1;
}

void tui_go(struct tui *tui, const struct target *target)
{
    const struct view_ops *ops = view_of((int)target->kind);
    struct view *view;

    if (!ops) {
        tui_alarm(tui, "there is no such view");
        return;
    }
    if (tui->depth && target_same(&top(tui)->target, target) && !target->at_ns)
        return;
    if (!(view = calloc(1, ops->size)))
        return;
    view->ops = ops;
    view->tui = tui;
    view->target = target_copy(target);
    view_place(tui, view);
    if (!ops->open(view)) {
        view_end(view);
        return;
    }
    if (tui->depth == STACK) {
        view_end(tui->stack[1]);
        memmove(&tui->stack[1], &tui->stack[2], (STACK - 2) * sizeof *tui->stack);
        tui->depth--;
    }
    tui->stack[tui->depth++] = view;
}

static void go_kind(struct tui *tui, enum view_kind kind)
{
    struct target target = {.kind = kind};

    tui_go(tui, &target);
}

/* ---- the prompt ------------------------------------------------------------ */

/* Names of commands, then of views; for SQL the trace's own words. */
static char *complete(void *context, const char *word, bool first, int again)
{
    struct tui *tui = context;
    size_t length = strlen(word);
    int skip = again;

    if (tui->asked == REQUEST_COMMAND && first) {
        for (int i = 0; i < REQUESTS + VIEW_KINDS; i++) {
            const struct view_ops *ops = view_of(i - REQUESTS);
            const char *name = i < REQUESTS ? bindings[i].name : ops ? ops->name : NULL;
            if (name && !strncmp(name, word, length) && skip-- == 0)
                return strdup(name);
        }
        return NULL;
    }
    if (!tui->words.count)
        sql_words_gather(&tui->words, tui->db);
    return sql_match(word, (const char *const *)tui->words.words, tui->words.count, &tui->next_word, again);
}

static void ask_line(struct tui *tui, enum request asked, const char *label, const char *text, enum prompt_history history)
{
    tui->asked = asked;
    tui_prompt_begin(&tui->prompt, label, text, history);
    tui->prompt.complete = complete;
    tui->prompt.context = tui;
    tui->message[0] = 0;
}

void tui_ask(struct tui *tui, const char *label, const char *text, bool sql)
{
    ask_line(tui, REQUEST_INPUT, label, text, sql ? HISTORY_SQL : HISTORY_COMMAND);
}

static void search_from(struct tui *tui, int direction)
{
    struct view *view = top(tui);

    if (!tui->searched[0])
        tui_say(tui, "nothing was searched for; / begins");
    else if (!view->ops->search)
        tui_say(tui, "there is nothing to search in this view");
    else if (!view->ops->search(view, tui->searched, direction))
        tui_alarm(tui, "%s: not found", tui->searched);
}

static void request(struct tui *tui, enum request request, const struct key *key);
static void file_reopen(struct tui *tui);

static void search_for(struct tui *tui, const char *text)
{
    snprintf(tui->searched, sizeof tui->searched, "%s", text);
    if (*text)
        search_from(tui, 1);
}

/* To line NUMBER. */
static void line_go(struct tui *tui, long number)
{
    static const struct key none = {KEY_NONE, 0, 0};

    request(tui, REQUEST_HOME, &none);
    for (long i = 1; i < number && i < 20000000; i++)
        top(tui)->ops->request(top(tui), REQUEST_DOWN, &none);
}

/* `:view REST`: its number, or what to filter by, or what is typed into it. */
static void view_command(struct tui *tui, enum view_kind kind, const char *rest)
{
    const struct view_ops *ops = view_of((int)kind);
    struct target target = {.kind = kind, .id = ops->all ? strtoll(rest, NULL, 10) : 0};

    if (ops->all && target.id <= 0)
        target = (struct target){.kind = ops->all};
    tui_go(tui, &target);
    if (!*rest || target.id > 0)
        return;
    if (top(tui)->ops->input) {
        tui->prompt.active = false; /* what it asked for as it opened is given */
        top(tui)->ops->input(top(tui), rest);
    } else if (top(tui)->ops->filter) {
        top(tui)->ops->filter(top(tui), rest);
    }
}

static void name_command(struct tui *tui, enum request asked, const char *rest)
{
    static const struct key none = {KEY_NONE, 0, 0};
    struct view *view = top(tui);

    if (asked == REQUEST_SEARCH)
        search_for(tui, rest);
    else if (asked == REQUEST_FILTER && view->ops->filter)
        view->ops->filter(view, rest);
    else if (asked == REQUEST_EXPORT && *rest && view->ops->export)
        view->ops->export(view, rest);
    else
        request(tui, asked, &none);
}

/* `:name rest`. */
static void command(struct tui *tui, char *text)
{
    char *name = text + strspn(text, " :"), *rest = name + strcspn(name, " "), *end;
    long number = strtol(name, &end, 10);
    enum view_kind kind = view_named(name, (size_t)(rest - name));

    if (*rest)
        *rest++ = 0;
    rest += strspn(rest, " ");
    if (!*name)
        return;
    if (!*end && number > 0) {
        line_go(tui, number);
    } else if (!strcmp(name, "q") || !strcmp(name, "qa") || !strcmp(name, "quit!")) {
        tui->quit = true;
    } else if (kind) {
        view_command(tui, kind, rest);
    } else {
        int i = REQUEST_NONE + 1;
        while (i < REQUESTS && strcmp(bindings[i].name, name))
            i++;
        if (i < REQUESTS)
            name_command(tui, (enum request)i, rest);
        else
            tui_alarm(tui, "%s: no such command; ? lists them", name);
    }
}

static void prompt_take(struct tui *tui, const struct key *key)
{
    struct view *view = top(tui);
    char *text;

    if (tui_prompt_key(&tui->prompt, &tui->past, key) != PROMPT_DONE || !(text = strdup(tui->prompt.text)))
        return;
    switch (tui->asked) {
    case REQUEST_SEARCH:
        search_for(tui, text);
        break;
    case REQUEST_FILTER:
        view->ops->filter(view, text);
        break;
    case REQUEST_EXPORT:
        if (*text && view->ops->export(view, text) && !tui->message[0])
            tui_say(tui, "writing %s", text);
        break;
    case REQUEST_INPUT:
        if (view->ops->input)
            view->ops->input(view, text);
        break;
    default:
        command(tui, text);
    }
    free(text);
}

/* ---- requests that no view takes ------------------------------------------- */

/* $VISUAL or $EDITOR at a line of a file. The file's name came from the trace: it is an argument of its own, never
 * part of a command line, and does not begin with a dash. */
static void edit(struct tui *tui)
{
    struct view *view = top(tui);
    char *file = NULL, *path = NULL, line[32];
    const char *editor = getenv("VISUAL") && *getenv("VISUAL") ? getenv("VISUAL") : getenv("EDITOR");
    int64_t number = 0;
    struct stat st;
    pid_t child;
    int status = 0;

    if (!view->ops->place || !view->ops->place(view, &file, &number)) {
        tui_say(tui, "no source belongs to this line");
        goto out;
    }
    if (stat(file, &st) != 0) {
        tui_alarm(tui, "%s: %s", file, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        tui_alarm(tui, "%s: not a regular file", file);
        goto out;
    }
    if (!tui->screen->terminal) {
        tui_say(tui, "%s +%" PRId64 " %s", editor ? editor : "vi", number, file);
        goto out;
    }
    if (asprintf(&path, "%s%s", file[0] == '/' ? "" : "./", file) < 0) {
        path = NULL;
        goto out;
    }
    snprintf(line, sizeof line, "+%" PRId64, number > 0 ? number : 1);
    screen_suspend(tui->screen);
    child = fork();
    if (child == 0) {
        bounds_child();
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        execl("/bin/sh", "sh", "-c", "exec $0 \"$@\"", editor && *editor ? editor : "vi", line, path, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    screen_resume(tui->screen);
    if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
        tui_alarm(tui, "%s: cannot be run; set EDITOR", editor ? editor : "vi");
out:
    free(file);
    free(path);
}

static void copy(struct tui *tui)
{
    struct view *view = top(tui);
    char *sql = view->ops->sql ? view->ops->sql(view) : NULL;

    if (sql) {
        screen_copy(tui->screen, sql);
        tui_say(tui, "copied: %.300s", sql);
    } else {
        tui_say(tui, "this view is not one query");
    }
    free(sql);
}

static void export(struct tui *tui)
{
    struct view *view = top(tui);
    char name[80];

    if (!view->ops->export) {
        tui_say(tui, "this view cannot be exported");
        return;
    }
    snprintf(name, sizeof name, "%s.%s", view->ops->name, view->ops->filter ? "csv" : "txt");
    ask_line(tui, REQUEST_EXPORT, "write to: ", name, HISTORY_FILE);
}

/* Open KIND about what the line of the view on top is about. */
static void go_subject(struct tui *tui, enum view_kind kind)
{
    struct view *view = top(tui);
    struct target subject = {0}, target;

    if (view->ops->subject)
        view->ops->subject(view, &subject);
    target = target_make(kind, subject.id, NULL, NULL);
    target.at_ns = subject.at_ns;
    target.about = subject.kind;
    tui_go(tui, &target);
    target_free(&target);
    target_free(&subject);
}

static void back(struct tui *tui)
{
    if (tui->depth > 1)
        view_end(tui->stack[--tui->depth]);
    else
        tui_say(tui, "this is the first view; q or :quit ends");
}

static void refresh_all(struct tui *tui)
{
    for (int i = 0; i < tui->depth; i++)
        if (tui->stack[i]->ops->refresh)
            tui->stack[i]->ops->refresh(tui->stack[i]);
}

static void request(struct tui *tui, enum request request, const struct key *key)
{
    struct view *view = top(tui);

    if (view->ops->request(view, request, key))
        return;
    switch (request) {
    case REQUEST_BACK:
        if (tui->depth == 1 && key->code == 'q')
            tui->quit = true;
        else
            back(tui);
        break;
    case REQUEST_QUIT:
        tui->quit = true;
        break;
    case REQUEST_SEARCH:
        ask_line(tui, request, "/", "", HISTORY_SEARCH);
        break;
    case REQUEST_SEARCH_NEXT:
        search_from(tui, 1);
        break;
    case REQUEST_SEARCH_PREVIOUS:
        search_from(tui, -1);
        break;
    case REQUEST_FILTER:
        if (view->ops->filter)
            ask_line(tui, request, "filter: ", "", HISTORY_FILTER);
        else
            tui_say(tui, "there are no rows to filter in this view");
        break;
    case REQUEST_COMMAND:
        ask_line(tui, request, ":", "", HISTORY_COMMAND);
        break;
    case REQUEST_EDIT:
        edit(tui);
        break;
    case REQUEST_COPY:
        copy(tui);
        break;
    case REQUEST_EXPORT:
        export(tui);
        break;
    case REQUEST_REPLAY:
    case REQUEST_TIMELINE:
    case REQUEST_WHATIF:
        go_subject(tui, (enum view_kind)bindings[request].view);
        break;
    case REQUEST_TOGGLE:
        view->ops->request(view, REQUEST_PAGE_DOWN, key);
        break;
    case REQUEST_CANCEL:
        tui_say(tui, "nothing is being asked; q goes back, Q ends");
        break;
    case REQUEST_REFRESH:
        if (tui->replaced)
            file_reopen(tui);
        refresh_all(tui);
        break;
    case REQUEST_FOLLOW:
        tui->hold = !tui->hold;
        tui_say(tui, !tui->live ? "the trace is not live" : tui->hold ? "holding still; F follows again" : "following");
        break;
    case REQUEST_REDRAW:
        screen_resize(tui->screen, tui->screen->rows, tui->screen->columns);
        break;
    case REQUEST_STOP:
        screen_stop(tui->screen);
        break;
    default:
        if (bindings[request].view)
            go_kind(tui, (enum view_kind)bindings[request].view);
        else
            tui_say(tui, "that means nothing in this view; ? lists the keys");
        break;
    }
}

static void key_take(struct tui *tui, const struct key *key)
{
    const struct view *view = top(tui);

    if (key->code == K_RESIZE) {
        screen_resize(tui->screen, key->y, key->x);
        for (int i = 0; i < tui->depth; i++)
            view_place(tui, tui->stack[i]);
        return;
    }
    if (key->code == K_CLOSED) {
        tui->quit = true;
        return;
    }
    if (tui->prompt.active && key->code != K_CONTROL('z') && key->code != K_CONTROL('l')) { /* these two leave it as it is */
        prompt_take(tui, key);
        return;
    }
    if (key->code == K_DOUBLE && tui->clicked) /* its first press opened the line */
        return;
    tui->message[0] = 0;
    tui->clicked = false;
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++)
        for (int k = 0; k < 4 && bindings[i].keys[k]; k++)
            if (bindings[i].keys[k] == key->code) {
                request(tui, (enum request)i, key);
                tui->clicked = key->code == K_CLICK && top(tui) != view;
                return;
            }
    tui_say(tui, "no such key; ? lists them");
}

/* ---- drawing --------------------------------------------------------------- */

/* "words.db > functions > scale": as many of the last views as there is room for. */
static void bar_draw(struct tui *tui)
{
    struct screen *screen = tui->screen;
    struct view *view = top(tui);
    const char *slash = strrchr(tui->path, '/');
    int note = screen_width(screen, view->note, screen->columns / 2), x = 1, from = tui->depth - 1, room;
    bool busy = view->busy && !tui->scripted;

    screen_fill(screen, 0, 0, screen->columns, STYLE_BAR);
    if (note)
        screen_put(screen, 0, screen->columns - note - 1, note, STYLE_BAR, view->note);
    if (busy)
        screen_put(screen, 0, screen->columns - note - 5, 3, STYLE_BAR, "...");
    room = screen->columns - note - 6;
    x += screen_put(screen, 0, x, room / 3, STYLE_BAR, slash ? slash + 1 : tui->path);
    if (tui->live)
        x += screen_put(screen, 0, x, room - x, STYLE_BAR, tui->hold ? " (held)" : " (live)");
    /* From the last one back, while they fit. */
    for (int used = x; from >= 0; from--) {
        int wide = 3 + screen_width(screen, tui->stack[from]->ops->name, 40);
        if (from == tui->depth - 1)
            wide += 1 + screen_width(screen, view->title, 100);
        if (used + wide > room && from < tui->depth - 1)
            break;
        used += wide;
    }
    for (int i = from + 1; i < tui->depth; i++) {
        const struct view *each = tui->stack[i];
        x += screen_put(screen, 0, x, room - x, STYLE_BAR, " > ");
        x += screen_put(screen, 0, x, room - x, STYLE_BAR, each->ops->name);
        if (i == tui->depth - 1 && each->title[0]) {
            x += screen_put(screen, 0, x, room - x, STYLE_BAR, " ");
            x += screen_put(screen, 0, x, room - x, STYLE_BAR, each->title);
        }
    }
}

/* Some of the keys, where nothing is to be said. */
static void hint_draw(struct screen *screen)
{
    static const enum request wide[] = {REQUEST_OPEN, REQUEST_BACK, REQUEST_SEARCH, REQUEST_FILTER, REQUEST_SORT, REQUEST_VIEW_1,
                                        REQUEST_COMMAND, REQUEST_HELP, REQUEST_QUIT, REQUEST_NONE},
                              narrow[] = {REQUEST_OPEN, REQUEST_BACK, REQUEST_HELP, REQUEST_QUIT, REQUEST_NONE};
    char line[160] = "", *end = line;

    for (const enum request *at = screen->columns < 72 ? narrow : wide; *at; at++)
        end = stpcpy(stpcpy(end, at == wide || at == narrow ? "" : "  "), bindings[*at].foot);
    screen_put(screen, screen->rows - 1, 0, screen->columns, STYLE_DIM, line);
}

static void foot_draw(struct tui *tui)
{
    struct screen *screen = tui->screen;
    int y = screen->rows - 1;

    if (tui->prompt.active) {
        tui_prompt_draw(&tui->prompt, screen);
    } else if (tui->message[0]) {
        screen_put(screen, y, 0, screen->columns, tui->alarm ? STYLE_ALARM : STYLE_NORMAL, tui->message);
    } else if (tui->output.text.count && top(tui)->ops != view_of(VIEW_OUTPUT)) {
        char *last = output_last(&tui->output);
        int x = screen_put(screen, y, 0, screen->columns, STYLE_DIM, "O: ");
        screen_put(screen, y, x, screen->columns - x, STYLE_NORMAL, last ? last : "");
        free(last);
    } else {
        hint_draw(screen);
    }
}

static void settle(struct tui *tui)
{
    for (int i = 0; i < tui->depth; i++)
        tui->stack[i]->ops->settle(tui->stack[i]);
}

static bool too_small(const struct tui *tui)
{
    return tui->screen->rows < SCREEN_ROWS_LEAST || tui->screen->columns < SCREEN_COLUMNS_LEAST;
}

static void draw(struct tui *tui)
{
    struct screen *screen = tui->screen;

    screen_clear(screen);
    if (too_small(tui)) {
        screen_put(screen, screen->rows / 2, 0, screen->columns, STYLE_BOLD, "too small: 40x12 is needed");
    } else {
        top(tui)->ops->draw(top(tui), screen);
        bar_draw(tui);
        foot_draw(tui);
    }
    screen_show(screen);
}

/* ---- a trace that changes -------------------------------------------------- */

/* The file under its name is not the one that was opened. */
static void file_look(struct tui *tui)
{
    struct stat st;

    if (tui->gone || tui->replaced)
        return;
    if (stat(tui->path, &st) != 0) {
        tui->gone = true;
        tui_alarm(tui, "the trace was deleted; what it had can still be read here");
    } else if (st.st_dev != tui->device || st.st_ino != tui->inode) {
        tui->replaced = true;
        if (!tui->live)
            tui_alarm(tui, "the trace was replaced by another file; R looks into that");
    }
}

/* The file that has its name now. */
static void file_reopen(struct tui *tui)
{
    struct stat st;
    struct db *fresh = db_open(tui->path);

    if (!fresh || stat(tui->path, &st) != 0) {
        db_close(fresh);
        return;
    }
    db_close(tui->fresh);
    tui->db = tui->fresh = fresh;
    tui->device = st.st_dev;
    tui->inode = st.st_ino;
    tui->gone = tui->replaced = false;
    work_reconnect(tui->work);
}

static void tick(struct tui *tui)
{
    int64_t version;
    char *state;

    tui->ticked_ms = work_now();
    file_look(tui);
    if (!tui->live || (tui->hold && !tui->replaced))
        return;
    if (tui->replaced) /* the recorder puts the whole trace in the place of the one that it wrote */
        file_reopen(tui);
    version = db_integer(tui->db, 0, "PRAGMA data_version");
    if (version == tui->version && db_path(tui->db) == tui->seen)
        return;
    tui->version = version;
    tui->seen = db_path(tui->db);
    state = db_meta(tui->db, "state");
    if (state && strcmp(state, "recording") != 0)
        work_reconnect(tui->work); /* frames were joined to the file without SQLite: a connection need not know of that */
    refresh_all(tui);
    if (state && strcmp(state, "recording") != 0) {
        tui->live = false;
        tui_say(tui, "the program has ended: the trace is %s", state);
    }
    free(state);
}

/* ---- the loop -------------------------------------------------------------- */

/* Wait until nothing is asked any more, and all of it is shown. */
static void calm(struct tui *tui)
{
    do {
        struct pollfd ended = {work_fd(tui->work), POLLIN, 0};
        work_quiet(tui->work);
        settle(tui);
        if (!work_pending(tui->work))
            break;
        poll(&ended, 1, 1000);
    } while (true);
    settle(tui);
    while (work_pending(tui->work)) {
        usleep(500);
        settle(tui);
    }
    settle(tui);
}

static void keys_play(struct tui *tui, const char *keys)
{
    /* A word begins after a space. */
    char *spaced = NULL;
    const char *at;
    struct key key;

    if (asprintf(&spaced, " %s", keys) < 0)
        return;
    at = spaced;
    calm(tui);
    draw(tui);
    while (!tui->quit && script_key(&at, &key)) {
        key_take(tui, &key);
        calm(tui);
        draw(tui);
    }
    free(spaced);
}

static void wait_for_something(struct tui *tui)
{
    int64_t since = work_now() - tui->ticked_ms;
    struct pollfd polled[3] = {{tui->screen->keys_fd, POLLIN, 0}, {work_fd(tui->work), POLLIN, 0}, {tui->options->output_fd, POLLIN, 0}};

    poll(polled, tui->output.open ? 3 : 2, since >= TICK_MS ? 0 : (int)(TICK_MS - since));
    if (tui->output.open && polled[2].revents)
        tui->output.open = output_read(&tui->output, tui->options->output_fd);
    if (polled[1].revents)
        work_quiet(tui->work);
}

/* Give what a key asked a moment, so that the next screen has it. */
static void settle_soon(struct tui *tui)
{
    int64_t until = work_now() + DRAW_WAIT_MS;

    settle(tui);
    while (top(tui)->busy && work_now() < until) {
        struct pollfd ended = {work_fd(tui->work), POLLIN, 0};
        if (poll(&ended, 1, (int)(until - work_now())) <= 0)
            break;
        work_quiet(tui->work);
        settle(tui);
    }
}

static void loop(struct tui *tui)
{
    while (!tui->quit) {
        struct key key;
        bool any = false;
        if (!work_pending(tui->work)) /* what is asked from here on has its own time */
            bounds_attended();
        settle_soon(tui);
        draw(tui);
        wait_for_something(tui);
        /* All keys that are there, then one screen: a held key does not queue up. */
        while (!tui->quit && (key = screen_key(tui->screen)).code != KEY_NONE) {
            bounds_attended();
            key_take(tui, &key);
            settle(tui);
            any = true;
        }
        if (!any && work_now() - tui->ticked_ms >= TICK_MS)
            tick(tui);
    }
}

int tui_run(const struct tui_options *options, struct db *db, struct screen *screen)
{
    struct tui *tui = calloc(1, sizeof *tui);
    struct stat st;
    int status = 2;

    if (!tui) {
        screen_close(screen);
        say_error("out of memory");
        return 2;
    }
    tui->options = options;
    tui->screen = screen;
    tui->db = db;
    tui->live = options->live;
    tui->path = realpath(db_path(db), NULL);
    if (!tui->path || stat(tui->path, &st) != 0) {
        say_error("%s: %s", db_path(db), strerror(errno));
        goto out;
    }
    tui->device = st.st_dev;
    tui->inode = st.st_ino;
    if (!(tui->work = work_open(tui->path)))
        goto out;
    tui->scripted = options->keys != NULL;
    tui->output.open = options->running;
    past_read(&tui->past, options->keys ? NULL : state_file("tui_history"));
    say_divert(on_error, tui);
    go_kind(tui, VIEW_OVERVIEW);
    if (options->keys)
        keys_play(tui, options->keys);
    tui->scripted = false;
    if (options->dump)
        screen_dump(screen, stdout);
    else if (!tui->quit)
        loop(tui);
    status = 0;
out:
    say_divert(NULL, NULL);
    while (tui->depth)
        view_end(tui->stack[--tui->depth]);
    screen_close(screen); /* first: should a query not end, Ctrl-C does */
    work_close(tui->work);
    tui_prompt_free(&tui->prompt);
    past_free(&tui->past);
    db_close(tui->fresh);
    output_print(&tui->output, STDOUT_FILENO); /* where it would have been printed */
    list_free(&tui->output.text);
    sql_words_free(&tui->words);
    free(tui->path);
    free(tui);
    return status;
}
