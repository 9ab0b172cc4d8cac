/* tui/requests.c -- handles requests that the view on top does not handle, and lines that the user
 * typed: commands after `:`, searches, filters, moments. It also has the functions of the loop that
 * views call (tui/view.h). */
#include "tui/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/say.h"
#include "trace/db.h"
#include "tui.h"

/* ---- functions of the loop that views call (struct tui_calls) ------------ */

static void show_message(struct tui *tui, bool alarm, const char *format, ...)
{
    struct loop *loop = (struct loop *)tui;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(loop->message, sizeof loop->message, format, arguments);
    va_end(arguments);
    loop->alarm = alarm;
}

static bool keep_key_until_queries_end(struct tui *tui)
{
    struct loop *loop = (struct loop *)tui;

    loop->waits = loop_top(loop)->busy && !tui->scripted;
    if (loop->waits)
        tui_say(tui, "waiting for what is being asked; Esc gives the key up");
    return loop->waits;
}

/* Return the row that the chosen line of the view on top is about. */
static struct target get_chosen_subject(struct loop *loop)
{
    struct target subject = {0};

    if (loop->places.depth)
        view_do(loop_top(loop), subject, &subject);
    return subject;
}

/* Let the view on top show the current moment, face.moment_ns. NEAR: zoom in on it. Returns false
 * if the view shows no moments. */
static bool show_moment_in_view(struct loop *loop, bool near)
{
    struct view *view = loop_top(loop);

    if (!view_op(view->ops, moment))
        return false;
    if (near || get_chosen_subject(loop).at_ns != loop->face.moment_ns)
        view_op(view->ops, moment)(view, loop->face.moment_ns, near);
    return true;
}

static void open_view_of_target(struct tui *tui, const struct target *target)
{
    struct loop *loop = (struct loop *)tui;
    struct target was = get_chosen_subject(loop);
    bool again;

    if (was.at_ns > 0)
        tui->moment_ns = was.at_ns;
    again = places_open(&loop->places, target);
    /* the overview was opened again: forget the moment, and end the split */
    if (again && target->kind == VIEW_OVERVIEW) {
        tui->moment_ns = 0;
        if (tui->split)
            places_split(&loop->places);
    }
    if (!again && tui->moment_ns && !target->id && !target->at_ns && !target->where)
        show_moment_in_view(loop, false);
}

static void open_target_under_cursor(struct tui *tui)
{
    struct loop *loop = (struct loop *)tui;
    struct target target = places_get_target(&loop->places);

    if (target.kind)
        tui_open_view(tui, &target);
    else if (!tui_wait_for_queries(tui))
        tui_say(tui, "this leads nowhere further; o opens the source where there is one");
}

/* ---- prompts, and the commands that the user types ----------------------- */

/* Commands of dyntrace that the user can run on the trace after `:`. Their output
 * becomes a view. */
static const char *const commands[] = {"check",  "diff", "fsck",   "ranks",
                                       "report", "show", "verify", "why"};
enum { COMMANDS = array_count(commands) };

/* Return one of the names that `:` accepts: I counts requests, then views, then commands. Returns
 * NULL if the request or view has no name. */
static const char *command_name(int i)
{
    if (i < REQUESTS)
        return bindings[i].name;
    i -= REQUESTS;
    return i < VIEW_KINDS ? view_name(i) : commands[i - VIEW_KINDS];
}

/* Return a name that begins with WORD, which the caller frees. The first SKIP names that do are
 * skipped. Returns NULL if there are no more. */
static char *complete_command(const char *word, int skip)
{
    size_t length = strlen(word);

    for (int i = 0; i < REQUESTS + VIEW_KINDS + (int)COMMANDS; i++) {
        const char *name = command_name(i);
        if (!name || strncmp(name, word, length))
            continue;
        if (!skip)
            return strdup(name);
        skip--;
    }
    return NULL;
}

/* Return a column of the view that begins with WORD; the caller frees it. The first *SKIP such
 * columns are skipped, and *SKIP is reduced by their number. Returns NULL if there are no more. */
static char *complete_column(struct view *view, const char *word, int *skip)
{
    const char *(*column)(struct view * view, size_t at) = view_op(view->ops, column);
    size_t length = strlen(word);

    for (size_t at = 0; column; at++) {
        const char *name = column(view, at);
        if (!name)
            break;
        if (strncmp(name + (*name == '"'), word, length))
            continue;
        if (!*skip)
            return strdup(name);
        --*skip;
    }
    return NULL;
}

char *loop_complete_word(void *context, const char *word, bool first, int again)
{
    struct loop *loop = context;

    if (loop->asked == REQUEST_COMMAND && first)
        return complete_command(word, again);
    if (loop->asked == REQUEST_FILTER) {
        char *column = complete_column(loop_top(loop), word, &again);
        if (column)
            return column;
    }
    if (!loop->words.words.count)
        sql_words_gather(&loop->words, loop->face.db);
    return sql_match_words(word, loop->words.words.at, loop->words.words.count, &loop->next_word,
                           again);
}

static void ask_for_line(struct loop *loop, enum request asked, const char *label, const char *text)
{
    loop->asked = asked;
    loop->message[0] = 0;
    tui_prompt_begin(&loop->prompt, label, text);
}

static void ask_for_input_of_view(struct tui *tui, const char *label, const char *text)
{
    ask_for_line((struct loop *)tui, REQUEST_INPUT, label, text);
}

const struct tui_calls loop_calls = {
    .go = open_view_of_target,
    .open = open_target_under_cursor,
    .wait = keep_key_until_queries_end,
    .print = show_message,
    .ask = ask_for_input_of_view,
};

/* Return HAS. If it is false, show the message OTHERWISE. */
static bool check_or_show_message(struct loop *loop, bool has, const char *otherwise)
{
    if (!has)
        tui_say(&loop->face, "%s", otherwise);
    return has;
}

static void search_in_direction(struct loop *loop, int direction)
{
    struct view *view = loop_top(loop);
    const struct view_ops *ops = view->ops;
    const char *text = loop->face.searched;
    bool searches = view_op(ops, search) || view_op(ops, has);
    bool found;

    if (!check_or_show_message(loop, *text, "nothing was searched for; / begins"))
        return;
    if (!check_or_show_message(loop, searches, "there is nothing to search in this view"))
        return;
    if (view_op(ops, search))
        found = view_op(ops, search)(view, text, direction);
    else
        found = view_find_line(view, direction, view_op(ops, has), text);
    if (!found && !tui_wait_for_queries(&loop->face))
        tui_alarm(&loop->face, "%s: not found", text);
}

static const struct key no_key = {KEY_NONE, 0, 0};

/* Go to the line with the number NUMBER. In views without lines, such as replay and timeline, go to
 * the beginning and then NUMBER - 1 steps down. */
static void go_to_line(struct loop *loop, long number)
{
    struct view *view = loop_top(loop);

    if ((size_t)number > view->count && tui_wait_for_queries(&loop->face))
        return;
    loop_handle_request(loop, REQUEST_HOME, &no_key);
    if (number > 2 && view->count) {
        view_choose(view, (size_t)number - 2);
        number = 2;
    }
    for (long i = 1; i < number && i < 1000; i++)
        view_op(view->ops, request)(view, REQUEST_DOWN, &no_key);
}

/* Go to the moment NS in the view on top. If this view shows no moments, go there
 * in the timeline. */
static void go_to_moment(struct loop *loop, int64_t ns)
{
    loop->face.moment_ns = ns > 1 ? ns : 1;
    if (!show_moment_in_view(loop, true)) {
        places_open(&loop->places, &(struct target){.kind = VIEW_TIMELINE});
        show_moment_in_view(loop, true);
    }
}

/* Return the moment from which a typed "+1s" counts: that of the chosen line, or the one that
 * was shown last. */
static int64_t get_moment_of_cursor(struct loop *loop)
{
    int64_t here = get_chosen_subject(loop).at_ns;

    return here ? here : loop->face.moment_ns;
}

/* Run the command `:view REST` that the user typed. REST may be the id of a row, an answer to the
 * prompt of the view, or a filter. */
static void run_view_command(struct loop *loop, enum view_kind kind, const char *rest)
{
    const struct view_ops *ops = view_find_ops(&loop->face, kind);
    struct target target = {.kind = kind};
    struct view *view;

    if (ops->all) {
        target.id = strtoll(rest, NULL, 10);
        if (target.id <= 0)
            target = (struct target){.kind = ops->all};
    }
    tui_open_view(&loop->face, &target);
    if (!*rest || target.id > 0)
        return;
    view = loop_top(loop);
    if (view_op(view->ops, input)) {
        /* the view has just asked a question, and REST is the answer to it */
        loop->prompt.active = false;
        view_op(view->ops, input)(view, rest);
    } else {
        view_do(view, filter, rest);
    }
}

/* Return the index of the command NAME, or COMMANDS if there is none. */
static size_t find_command_named(const char *name)
{
    size_t at = 0;

    while (at < COMMANDS && strcmp(commands[at], name))
        at++;
    return at;
}

/* Return the request called NAME, or REQUESTS if there is none. */
static int find_request_named(const char *name)
{
    int i = REQUEST_NONE + 1;

    while (i < REQUESTS && strcmp(bindings[i].name, name))
        i++;
    return i;
}

/* May REST, which the user typed behind a command, be the answer to the prompt that
 * REQUEST would open? */
static bool may_text_be_answer(struct loop *loop, int request, const char *rest)
{
    const struct view_ops *ops = loop_top(loop)->ops;

    switch (request) {
    case REQUEST_SEARCH:
        return true;
    case REQUEST_FILTER:
        return view_op(ops, filter);
    case REQUEST_EXPORT:
        return view_op(ops, export) && *rest;
    default:
        return false;
    }
}

static bool is_quit_command(const char *name)
{
    return !strcmp(name, "q") || !strcmp(name, "qa") || !strcmp(name, "quit!");
}

/* Run the command TEXT, `:name rest`. Changes TEXT. */
static void run_command(struct loop *loop, char *text)
{
    char *name = text + strspn(text, " :");
    char *rest = name + strcspn(name, " ");
    char *whole = arena_print(&loop_top(loop)->arena, "%s", name);
    enum view_kind kind = view_named(name, (size_t)(rest - name));
    char *end;
    long number = strtol(name, &end, 10);
    int64_t ns;
    int request;

    if (*rest)
        *rest++ = 0;
    rest += strspn(rest, " ");
    request = find_request_named(name);
    if (!*name)
        return;
    if (moment_parse(name, false, get_moment_of_cursor(loop), &ns))
        go_to_moment(loop, ns);
    else if (!*end && number > 0)
        go_to_line(loop, number);
    else if (is_quit_command(name))
        loop->quit = true;
    else if (!strcmp(name, "open") && *rest)
        loop_open(loop, rest);
    else if (find_command_named(name) < COMMANDS)
        tui_open_view(&loop->face, &(struct target){.kind = VIEW_DYNTRACE, .where = whole});
    else if (kind)
        run_view_command(loop, kind, rest);
    else if (may_text_be_answer(loop, request, rest))
        loop_handle_answer(loop, (enum request)request, rest);
    else if (request < REQUESTS)
        loop_handle_request(loop, (enum request)request, &no_key);
    else
        tui_alarm(&loop->face, "%s: no such command; ? lists them", name);
}

/* ---- interrupting or ending the program of `run --live` ------------------ */

/* A signal for the program, the question that is asked before, and the message afterwards. */
struct ending {
    int signal;
    const char *asked, *sent;
};

static struct ending choose_ending(const struct loop *loop, enum request request)
{
    if (request == REQUEST_INTERRUPT)
        return (struct ending){SIGINT, "interrupt the program (SIGINT)? y/n: ",
                               "the program was interrupted (SIGINT)"};
    if (!loop->killed)
        return (struct ending){SIGTERM, "end the program (SIGTERM)? y/n: ",
                               "the program was told to end (SIGTERM); again: SIGKILL"};
    return (struct ending){SIGKILL,
                           "kill the program (SIGKILL)? y/n: ", "the program was killed (SIGKILL)"};
}

/* Send the signal NUMBER to the program; 0 only checks that the program can be reached. Returns
 * false if it cannot, which has been reported. */
static bool send_signal_to_program(struct loop *loop, int number)
{
    const bool runs = loop->options->running && loop->options->program_fd >= 0;

    if (!check_or_show_message(loop, runs,
                               "no program runs under this screen: that is for run --live"))
        return false;
    if (syscall(SYS_pidfd_send_signal, loop->options->program_fd, number, NULL, 0) == 0)
        return true;
    tui_alarm(&loop->face, "the program was not reached: %s",
              errno == ESRCH ? "it has ended" : strerror(errno));
    return false;
}

/* Ask before the signal is sent, because a mistyped key must not end hours of work. */
static void confirm_signal(struct loop *loop, enum request request)
{
    if (send_signal_to_program(loop, 0))
        ask_for_line(loop, request, choose_ending(loop, request).asked, "");
}

static void answer_confirmation(struct loop *loop, enum request request, const char *text)
{
    struct ending ending = choose_ending(loop, request);
    const bool yes = !strcasecmp(text, "y") || !strcasecmp(text, "yes");

    if (!yes) {
        tui_say(&loop->face, "the program runs on");
        return;
    }
    if (!send_signal_to_program(loop, ending.signal))
        return;
    loop->killed += request == REQUEST_KILL;
    tui_say(&loop->face, "%s", ending.sent);
}

void loop_handle_answer(struct loop *loop, enum request asked, char *text)
{
    struct view *view = loop_top(loop);
    struct stat st;
    int64_t ns;

    switch (asked) {
    case REQUEST_SEARCH:
        snprintf(loop->face.searched, sizeof loop->face.searched, "%s", text);
        view->searched = *text;
        if (*text)
            search_in_direction(loop, 1);
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
        if (moment_parse(text, true, get_moment_of_cursor(loop), &ns))
            go_to_moment(loop, ns);
        else if (*text)
            tui_alarm(&loop->face, "%s: not a moment such as 0.3, 15.2s, +100ms", text);
        break;
    case REQUEST_INTERRUPT:
    case REQUEST_KILL:
        answer_confirmation(loop, asked, text);
        break;
    default:
        run_command(loop, text);
    }
}

/* ---- requests that no view handles --------------------------------------- */

static void copy_text(struct loop *loop)
{
    struct view *view = loop_top(loop);
    char *sql = view_op(view->ops, sql) ? view_op(view->ops, sql)(view) : NULL;

    if (check_or_show_message(loop, sql, "this view is not one query")) {
        screen_copy_to_clipboard(loop->face.screen, sql);
        tui_say(&loop->face, "copied: %.300s", sql);
    }
    free(sql);
}

static void export_view(struct loop *loop)
{
    struct view *view = loop_top(loop);
    char name[80];

    if (!check_or_show_message(loop, view_op(view->ops, export), "this view cannot be exported"))
        return;
    snprintf(name, sizeof name, "%s.%s", view_name(view->target.kind), view_op(view->ops, writes));
    ask_for_line(loop, REQUEST_EXPORT, "write to: ", name);
}

/* Open the view KIND for the row that the chosen line is about. */
static void go_to_subject(struct loop *loop, enum view_kind kind)
{
    struct target about = get_chosen_subject(loop);

    if (about.kind || about.at_ns || !tui_wait_for_queries(&loop->face))
        tui_open_view(&loop->face,
                      &(struct target){
                          .kind = kind, .id = about.id, .at_ns = about.at_ns, .about = about.kind});
}

/* Open the caller of the call under the cursor. */
static void go_to_caller(struct loop *loop)
{
    struct target about = get_chosen_subject(loop);
    int64_t caller = 0;

    if (about.kind == VIEW_CALL)
        db_rows(row, loop->face.db,
                "SELECT parent_id FROM frame WHERE frame_id = iif(?1 > 0, ?1, (SELECT frame_id "
                "FROM lookup WHERE lookup_id = -?1))",
                about.id) caller = query_integer(row, 0);
    if (caller > 0)
        tui_open_view(&loop->face, &(struct target){.kind = VIEW_CALL, .id = caller});
    else if (about.kind || !tui_wait_for_queries(&loop->face))
        tui_say(&loop->face, about.kind == VIEW_CALL
                                 ? "no call made this one: it is at the bottom of a stack"
                                 : "this line is not about one call");
}

void loop_handle_request(struct loop *loop, enum request request, const struct key *key)
{
    struct view *view = loop_top(loop);
    struct tui *tui = &loop->face;

    if (view_op(view->ops, request)(view, request, key))
        return;
    if ((request == REQUEST_SQL || request == REQUEST_WHATIF) &&
        view->target.kind == bindings[request].view)
        /* the view is open already, so let it ask for another query or setting */
        request = REQUEST_INPUT;
    switch (request) {
    case REQUEST_BACK:
        if (places_go_back(&loop->places))
            break;
        if (key->code == 'q')
            loop->quit = true;
        else
            tui_say(tui, "this is the first view; q or :quit ends");
        break;
    case REQUEST_INPUT:
        if (check_or_show_message(loop, view_op(view->ops, asks),
                                  "nothing is typed into this view"))
            ask_for_line(loop, request, view_op(view->ops, asks),
                         view->target.where ? view->target.where : "");
        break;
    case REQUEST_OPEN:
        tui_open_target(tui);
        break;
    case REQUEST_SPLIT:
        places_split(&loop->places);
        break;
    case REQUEST_CALLER:
        go_to_caller(loop);
        break;
    case REQUEST_MOMENT:
        ask_for_line(loop, request, "go to: ", "");
        break;
    case REQUEST_HELP:
        tui_open_view(tui, &(struct target){.kind = VIEW_HELP, .about = view->target.kind});
        break;
    case REQUEST_FILTER:
        if (check_or_show_message(loop, view_op(view->ops, filter),
                                  "there are no rows to filter in this view"))
            ask_for_line(loop, request, "filter: ", "");
        break;
    case REQUEST_REFRESH:
        /* The running queries see the trace as it was before the refresh. So the key is handled
         * again when they have ended. */
        if (tui_wait_for_queries(tui))
            break;
        if (loop->replaced)
            loop_reopen(loop);
        places_refresh(&loop->places);
        break;
    case REQUEST_FOLLOW:
        loop->hold = !loop->hold;
        tui_say(tui, !loop->live  ? "the trace is not live"
                     : loop->hold ? "holding still; F follows again"
                                  : "following");
        break;
    case REQUEST_CANCEL:
        tui_say(tui, work_cancel_all(tui->work) ? "cancelled"
                                                : "nothing is being asked; q goes back, Q ends");
        break;
    case REQUEST_REPLAY:
    case REQUEST_TIMELINE:
    case REQUEST_WHATIF:
        go_to_subject(loop, bindings[request].view);
        break;
    case REQUEST_INTERRUPT:
    case REQUEST_KILL:
        confirm_signal(loop, request);
        break;
    case REQUEST_SEARCH:
        ask_for_line(loop, request, "/", "");
        break;
    case REQUEST_COMMAND:
        ask_for_line(loop, request, ":", "");
        break;
    case REQUEST_SEARCH_NEXT:
    case REQUEST_SEARCH_PREVIOUS:
        if (view->searched || !tui_wait_for_queries(tui))
            search_in_direction(loop, request == REQUEST_SEARCH_NEXT ? 1 : -1);
        break;
    case REQUEST_QUIT:
        loop->quit = true;
        break;
    case REQUEST_EDIT:
        view_open_editor(view);
        break;
    case REQUEST_COPY:
        copy_text(loop);
        break;
    case REQUEST_EXPORT:
        export_view(loop);
        break;
    case REQUEST_TOGGLE:
        view_op(view->ops, request)(view, REQUEST_PAGE_DOWN, key);
        break;
    case REQUEST_REDRAW:
        screen_resize(tui->screen, tui->screen->rows, tui->screen->columns);
        break;
    case REQUEST_STOP:
        screen_stop_process(tui->screen);
        break;
    default:
        if (!bindings[request].view && tui_wait_for_queries(tui))
            break;
        if (check_or_show_message(loop, bindings[request].view,
                                  "that means nothing in this view; ? lists the keys"))
            tui_open_view(tui, &(struct target){.kind = bindings[request].view});
    }
}
