/* tui/views/replay.c -- the view `replay`: steps forward and back through the recorded
 * decisions, and shows the cache as it was then.
 *
 * The view uses the cursor of `dyntrace replay` (trace/replay/cursor.h), with its filters. The
 * view queues moves. A job, which owns the cursor, makes these moves and prints the page that
 * the view then shows. Keys that are typed while a job runs are queued for the next job, so a
 * held key does not make a job for each step. */
#include <inttypes.h>
#include <stdatomic.h>

#include "lib/list.h"
#include "lib/say.h"
#include "lib/times.h"
#include "trace/db.h"
#include "trace/replay/cursor.h"
#include "tui/text.h"

enum {
    LINES_MOST = 10000,
    UPDATE_WAIT_MS = 8,
    PAGE_EVENTS = 20 /* number of events by which Ctrl-D and Ctrl-U move */
};

struct replay_job {
    struct job job;
    /* owned, with its replay: a new job takes it from the job before; NULL until the first job has
     * read the decisions */
    struct cursor *cursor;
    struct arena moves; /* the moves to make: commands of `dyntrace replay` */
    int64_t function;   /* if not 0, show only events of the function of this code object */
    /* ---- results of the job ---- */
    struct doc page;  /* the text to show; only the lines and the arena of this struct are used */
    char said[300];   /* the last line that a move has printed, such as "3 of 90 events pass" */
    struct target at; /* what the event is about: a call, compile, graph break or cache entry */
    size_t event, events;
    bool filtered;
    bool failed; /* the decisions could not be read */
};

struct replay_view {
    struct view view;
    struct replay_job *job; /* owned: the job that runs, or NULL */
    /* owned: the job that has ended last, whose page is shown; or NULL */
    struct replay_job *shown;
    struct arena moves;    /* moves that are made when the running job has ended */
    enum cursor_what unit; /* the kind of event to which the keys ] and [ step, such as misses */
};

/* ---- moving the cursor, in a thread -------------------------------------- */

/* Return a filter command for the function of the code object CODE_ID. */
static const char *make_function_filter(struct doc *page, struct db *db, int64_t code_id)
{
    const char *filter = "function ?";

    db_rows(row, db, "SELECT qualname FROM code WHERE code_id = ?1", code_id) filter =
        doc_print(page, "function %s", query_text(row, 0, NULL));
    return filter;
}

/* Store the position of the cursor, and the row of its event, in JOB. */
static void store_position(struct replay_job *job, struct cursor *c)
{
    static const enum view_kind kinds[] = {[REPLAY_LOOKUP] = VIEW_CALL,
                                           [REPLAY_COMPILE] = VIEW_COMPILE,
                                           [REPLAY_BREAK] = VIEW_BREAK,
                                           [REPLAY_DEATH] = VIEW_ENTRY};
    const struct replay_event *event = cursor_get_event(c);
    struct replay_subject about;

    job->event = c->at;
    job->events = c->r->events.count;
    job->filtered = c->filtered != NULL;
    if (event) {
        about = cursor_get_subject(c);
        job->at = (struct target){.kind = kinds[event->kind],
                                  .id = event->kind == REPLAY_LOOKUP ? -about.id : about.id};
    }
    job->at.at_ns = cursor_get_time(c);
}

static bool is_job_cancelled(void *job)
{
    return atomic_load(&((struct job *)job)->cancelled);
}

/* Make the moves of JOB with the cursor. Each is a command such as "next miss". */
static void make_moves(struct replay_job *job, struct cursor *c, struct db *db)
{
    if (job->function) {
        if (cursor_add_filter(c, make_function_filter(&job->page, db, job->function)))
            strcpy(job->said, "this function alone; f and Enter end that");
    }
    for (size_t i = 0; i < job->moves.things.count && !is_job_cancelled(job); i++) {
        char *rest;
        char *name = strtok_r(job->moves.things.at[i], " ", &rest);
        cursor_run_command(c, name, rest);
    }
}

/* Return a cursor at the first event of the trace DB. Returns NULL if the decisions could not be
 * read, which has been reported. */
static struct cursor *make_cursor(struct db *db)
{
    struct replay *replay = replay_open(db, false);
    struct cursor *c;

    if (!replay)
        return NULL;
    c = calloc(1, sizeof *c);
    cursor_init(c, db, replay, NULL);
    return c;
}

/* Make the moves of JOB. Returns the text that they printed, which the caller frees. Copies the
 * text's last line to job->said. */
static char *run_moves(struct replay_job *job, struct db *db)
{
    struct cursor *c = job->cursor;
    char *said, *rest, *line;
    size_t bytes;

    c->out = open_memstream(&said, &bytes);
    make_moves(job, c, db);
    fclose(c->out);
    rest = strdup(said);
    for (char *next = rest; (line = strsep(&next, "\n")) && next;)
        snprintf(job->said, sizeof job->said, "%s", line);
    free(rest);
    return said;
}

static void run_replay_job(struct job *base, struct db *db)
{
    struct replay_job *job = (struct replay_job *)base;
    struct cursor *c = job->cursor;
    char *said, *text;
    size_t bytes;

    if (!c)
        c = make_cursor(db);
    job->cursor = c;
    job->failed = !c;
    if (!c)
        return;
    /* take this job's connection: each job may run in another thread, which has its own */
    c->db = db;
    c->r->db = db;
    said = run_moves(job, db);
    c->out = open_memstream(&text, &bytes);
    /* also keep what a failed move printed, such as the functions that a name may mean */
    if (base->error)
        fputs(said, c->out);
    free(said);
    if (c->r->events.count)
        replay_print_page(c);
    else
        fputs("There is nothing to replay: no lookup, compile or graph break was recorded.\n",
              c->out);
    store_position(job, c);
    fclose(c->out);
    doc_add_wrapped_text(&job->page, text, 0, LINES_MOST);
    free(text);
}

static void free_replay_job(struct job *base)
{
    struct replay_job *job = (struct replay_job *)base;

    arena_free(&job->moves);
    list_free(&job->page.lines);
    arena_free(&job->page.arena);
    if (job->cursor) {
        cursor_end(job->cursor);
        replay_free(job->cursor->r);
        free(job->cursor);
    }
}

/* ---- queueing moves, and drawing ----------------------------------------- */

#define move_add(r, ...) arena_print(&(r)->moves, __VA_ARGS__)

/* Queue moves that go to the last event at or before AT_NS. */
static void queue_moves_to_moment(struct replay_view *r, int64_t at_ns)
{
    move_add(r, "goto %" PRId64 "ns", times_add(at_ns, 1));
    move_add(r, "previous event");
}

static void start_moves_job(struct replay_view *r)
{
    struct replay_job *job =
        job_make(sizeof *job, run_replay_job, free_replay_job, !r->shown || !r->shown->cursor);

    job->page.columns = r->view.columns;
    job->moves = r->moves;
    job->function = !r->shown && r->view.target.about == VIEW_FUNCTION ? r->view.target.id : 0;
    r->moves = (struct arena){0};
    if (r->shown) {
        job->cursor = r->shown->cursor;
        r->shown->cursor = NULL;
    }
    r->job = job;
    work_start_job(r->view.tui->work, &job->job);
}

/* Has the job ended? If a page is shown already, waits at most UPDATE_WAIT_MS for the job. */
static bool has_job_ended(struct replay_view *r)
{
    struct work *work = r->view.tui->work;
    struct job *job = &r->job->job;

    return work_done(work, job) || work_wait_for_job(work, job, r->shown ? UPDATE_WAIT_MS : 0);
}

/* Show the page of the job that has ended, and the message that it left. */
static void take_finished_page(struct replay_view *r)
{
    const struct replay_job *job = r->job;

    if (job->job.error && !job->failed)
        tui_alarm(r->view.tui, "%s", job->job.error);
    else if (job->said[0])
        tui_say(r->view.tui, "%s", job->said);
    work_drop(r->view.tui->work, r->shown);
    r->shown = r->job;
    r->job = NULL;
}

/* Make the note of the view, such as "filtered by miss 12/90". */
static void make_view_note(struct replay_view *r)
{
    const struct replay_job *shown = r->shown;
    struct view *view = &r->view;

    view->note[0] = 0;
    if (!shown)
        return;
    snprintf(view->note, sizeof view->note, "%sby %s  %zu/%zu", shown->filtered ? "filtered  " : "",
             cursor_whats[r->unit], shown->events ? shown->event + 1 : 0, shown->events);
}

static void replay_update(struct view *view)
{
    struct replay_view *r = (struct replay_view *)view;

    if (r->job && has_job_ended(r))
        take_finished_page(r);
    if (!r->job && r->moves.things.count && !r->shown->failed)
        start_moves_job(r);
    make_view_note(r);
}

/* Draw a message in place of the page: that the decisions are being read, or why reading failed. */
static void draw_message_of_view(struct replay_view *r, struct screen *screen)
{
    const char *words = "… reading the decisions";

    if (r->shown) {
        const char *error = r->shown->job.error;
        words = error ? error : "cancelled";
    }
    view_draw_words(&r->view, screen, r->shown ? STYLE_ALARM : STYLE_DIM, words);
}

/* Draw a line with a mark at the position of the event among all events. */
static void draw_progress_line(const struct replay_view *r, struct screen *screen, int y)
{
    int wide = r->view.columns;

    for (int x = 0; x < wide; x++)
        screen_put(screen, y, x, 1, STYLE_DIM, "─");
    if (r->shown->events) {
        double share = (double)r->shown->event / (double)r->shown->events;
        screen_put(screen, y, (int)(share * (wide - 1)), 1, STYLE_MATCH, "◆");
    }
}

static void replay_draw(struct view *view, struct screen *screen)
{
    struct replay_view *r = (struct replay_view *)view;
    size_t count = r->shown ? r->shown->page.lines.count : 0;
    size_t line;

    if (!r->shown || r->shown->failed) {
        draw_message_of_view(r, screen);
        return;
    }
    if (view->top >= count)
        view->top = count ? count - 1 : 0;
    line = view->top;
    for (int i = 0; i < view->rows - 1 && line < count; i++) {
        const char *text = r->shown->page.lines.at[line].text;
        int style = line ? STYLE_NORMAL : STYLE_BOLD;
        screen_put_text(screen, view->y + i, 1, view->columns - 1, 0, style, text, true);
        line++;
    }
    draw_progress_line(r, screen, view->y + view->rows - 1);
}

static bool replay_handle_request(struct view *view, enum request request, const struct key *key)
{
    struct replay_view *r = (struct replay_view *)view;
    static const struct {
        enum request request;
        int times;
        /* a command, in which "%s" stands for the kind of event to which ] and [ step */
        const char *move;
    } moves[] = {
        {REQUEST_DOWN, 1, "next event"},
        {REQUEST_WHEEL_DOWN, 1, "next event"},
        {REQUEST_HALF_DOWN, PAGE_EVENTS, "next event"},
        {REQUEST_UP, 1, "previous event"},
        {REQUEST_WHEEL_UP, 1, "previous event"},
        {REQUEST_HALF_UP, PAGE_EVENTS, "previous event"},
        {REQUEST_STEP, 1, "next %s"},
        {REQUEST_RIGHT, 1, "next %s"},
        {REQUEST_STEP_BACK, 1, "previous %s"},
        {REQUEST_LEFT, 1, "previous %s"},
        {REQUEST_HOME, 1, "goto first event"},
        {REQUEST_END, 1, "goto last event"},
    };
    size_t half = (size_t)view->rows / 2;

    for (size_t i = 0; i < array_count(moves); i++)
        if (moves[i].request == request) {
            for (int n = 0; n < moves[i].times; n++)
                move_add(r, moves[i].move, cursor_whats[r->unit]);
            return true;
        }
    switch (request) {
    case REQUEST_PAGE_DOWN:
        view->top += half;
        break;
    case REQUEST_PAGE_UP:
        view->top -= view->top > half ? half : view->top;
        break;
    case REQUEST_SORT:
    case REQUEST_NEXT_PART:
    case REQUEST_SORT_TURN:
    case REQUEST_PREVIOUS_PART:
        r->unit = (r->unit +
                   (request == REQUEST_SORT || request == REQUEST_NEXT_PART ? 1 : NEXT_KINDS - 1)) %
                  NEXT_KINDS;
        tui_say(view->tui, "] and [ step by %s", cursor_whats[r->unit]);
        break;
    case REQUEST_INPUT:
        tui_ask_for_line(view->tui, "go to (50%, 1.5s, lookup 20, first miss): ", "");
        break;
    case REQUEST_CLICK:
        break;
    default:
        return false;
    }
    return true;
}

static void replay_handle_input(struct view *view, const char *text)
{
    struct replay_view *r = (struct replay_view *)view;

    if (*text)
        move_add(r, "goto %s", text);
}

/* Queue a filter command of `dyntrace replay`: "function NAME", "outcome limit,skip". If TEXT
 * begins with no kind of filter, it is the name of a function. */
static void replay_queue_filter(struct view *view, const char *text)
{
    static const char *const kinds[] = {"function ", "file ",    "thread ",
                                        "process ",  "outcome ", "where "};
    struct replay_view *r = (struct replay_view *)view;
    bool known = !*text;

    for (size_t i = 0; i < array_count(kinds); i++)
        known = known || !strncmp(text, kinds[i], strlen(kinds[i]));
    move_add(r, "filter %s%s", known ? "" : "function ", *text ? text : "off");
}

static void replay_get_subject(struct view *view, struct target *subject)
{
    struct replay_view *r = (struct replay_view *)view;

    if (r->shown)
        *subject = r->shown->at;
}

static void replay_show_moment(struct view *view, int64_t at_ns, bool near)
{
    struct replay_view *r = (struct replay_view *)view;

    queue_moves_to_moment(r, at_ns);
    if (!r->job)
        start_moves_job(r);
}

static bool replay_search(struct view *view, const char *text, int direction)
{
    struct replay_view *r = (struct replay_view *)view;

    move_add(r, "%s %s", direction > 0 ? "next" : "previous", cursor_whats[r->unit]);
    return true;
}

static void replay_view_open(struct view *view)
{
    struct replay_view *r = (struct replay_view *)view;
    const struct target *about = &view->target;
    enum view_kind kind = about->about;

    r->unit = NEXT_MISS;
    if (about->id < 0) { /* a negative id means a call: its lookup has the id without the minus */
        move_add(r, "goto lookup %" PRId64, -about->id);
    } else if (about->id > 0 && (kind == VIEW_COMPILE || kind == VIEW_BREAK)) {
        move_add(r, "goto %s %" PRId64, view_name(kind), about->id);
    } else if (about->at_ns > 0 && !(about->id > 0 && kind == VIEW_FUNCTION)) {
        queue_moves_to_moment(r, about->at_ns);
    } else {
        move_add(r, "goto first event");
    }
    start_moves_job(r);
}

static void replay_view_close(struct view *view)
{
    arena_free(&((struct replay_view *)view)->moves);
}

const struct view_ops view_replay = {
    .summary = "step through the recorded decisions, the cache as it stood; it replays decisions, "
               "not the program",
    .size = sizeof(struct replay_view),
    .asked = 1,
    .jobs = 2,
    .open = replay_view_open,
    .close = replay_view_close,
    .update = replay_update,
    .draw = replay_draw,
    .request = replay_handle_request,
    .search = replay_search,
    .filter = replay_queue_filter,
    .subject = replay_get_subject,
    .moment = replay_show_moment,
    .input = replay_handle_input,
    .keys = "] [ step  s steps by what  i go to  Enter opens",
};
