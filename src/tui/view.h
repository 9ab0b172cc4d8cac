/* tui/view.h -- what the loop of `dyntrace tui` (tui.c) and its views share.
 *
 * A key becomes a request (tui/keys.h). The view on top handles the request or returns false, and
 * then the loop handles it. What a line of a view leads to is called a target: the loop opens the
 * target's view on top of the other views, which stay as they are until the user comes back.
 *
 *     open -> { update -> draw -> request }* -> close
 *
 * update() takes the results of finished jobs, and starts jobs for what will be drawn. draw()
 * changes nothing. Most views are a list (tui/list.h) or a page (tui/text.h), and are described
 * by a file in schemas/tui/. */
#ifndef DYNTRACE_TUI_VIEW_H
#define DYNTRACE_TUI_VIEW_H

#include "lib/list.h"
#include "tui/screen.h"
#include "tui/work.h"

/* The output of the program under `run --live` (tui/views/output.c). */
struct output {
    LIST(char) text; /* the output, with a NUL behind it */
    size_t lines;    /* the number of newlines in the text */
    bool cut;        /* the beginning of the output was dropped, because it was too long */
    bool open;       /* the program may still write more output */
    bool screen;     /* the program draws on the whole screen, as an editor does */
    int input_fd;    /* where lines for the program are written, or -1 if it reads no input */
};

/* Read what can be read from FD now into OUTPUT. Returns false at the end of the output. */
bool output_read_from_program(struct output *output, int fd);
/* Return the last line, or NULL if nothing was printed. The caller frees it. */
char *output_get_last_line(const struct output *output);
/* Print the whole output to standard output, unchanged. */
void output_print(const struct output *output);

struct db;
struct tui;
struct target;

/* Functions of the loop that views call. tui/requests.c fills in this table, because views must not
 * include it. Views call the functions through tui_open_view() to tui_ask_for_line() below. */
struct tui_calls {
    void (*go)(struct tui *tui, const struct target *target);
    void (*open)(struct tui *tui);
    bool (*wait)(struct tui *tui);
    void (*print)(struct tui *tui, bool alarm, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*ask)(struct tui *tui, const char *label, const char *text);
};

/* What views see of the loop. All members are borrowed. */
struct tui {
    const struct tui_calls *calls;
    /* the operations of each view, indexed by enum view_kind; NULL for VIEW_NONE
     * (tui/view_table.c) */
    const struct view_ops *const *views;
    const struct page_part *parts; /* the parts of pages that C functions make (tui/text.h) */
    struct work *work;
    struct db *db; /* a connection to the trace, for queries that take no time */
    struct screen *screen;
    int64_t moment_ns; /* the moment that the user looked at last, or 0 */
    /* how many lines at the bottom of the screen views leave free above the last one: 1 while a
     * trace is recorded */
    int below;
    /* the screen is split: beside the view on top stands what Enter would open */
    bool split;
    /* the keys come from a script, so nothing is drawn that depends on the speed of queries */
    bool scripted;
    char searched[200]; /* the text of the last search, or "" */
    /* the output of the program under `run --live`, or NULL without one */
    const struct output *output;
};

struct target {
    enum view_kind kind; /* the view to open; VIEW_NONE means that there is none */
    /* the id of the row to show, in the table that the view shows; 0 if none */
    int64_t id;
    int64_t at_ns; /* the moment to show, or 0 */
    /* what `id` is, for the views replay, timeline and what-if: the kind of view that shows such a
     * row. VIEW_COMPILE: it is a compile_id */
    enum view_kind about;
    const char *where; /* borrowed: an SQL condition on the columns of the view, or NULL */
    const char *title; /* borrowed: what the condition means, in words, or NULL */
};

/* Copy TARGET. Its strings are copied to ARENA. */
struct target target_copy(struct arena *arena, const struct target *target);

struct view;
struct doc;
struct db;

struct view_ops {
    /* a phrase that describes the view in the help. Members below that are marked
     * "optional" may be NULL */
    const char *summary;
    const char *writes; /* the extension of the files that key e writes, such as "csv" */
    /* the keys of the view and what they do, with two blanks between them: "+ - zooms  n finds";
     * shown in the last line of the screen and in the help */
    const char *keys;
    /* bytes of the view's struct: a struct view comes first, then pointers to its jobs (owned or
     * NULL), then other members */
    size_t size;
    /* `jobs` is the number of pointers to jobs in the view's struct. The first `asked` of them are
     * running jobs: the view is busy as long as one of these is not NULL */
    int asked, jobs;
    void (*open)(struct view *view);  /* optional: begin to show the view's target, which is set */
    void (*close)(struct view *view); /* optional: free what the view owns, except its jobs */
    void (*update)(struct view *view);
    void (*draw)(struct view *view, struct screen *screen);
    /* handle REQUEST; returns false if the view does not handle it */
    bool (*request)(struct view *view, enum request request, const struct key *key);
    /* optional: run the queries again, and keep the cursor where it is */
    void (*refresh)(struct view *view);
    /* optional: return the SQL of what is shown; the caller frees the text */
    char *(*sql)(struct view *view);
    /* optional: does line AT contain TEXT, for which the user searches? */
    bool (*has)(struct view *view, size_t at, const char *text);
    /* optional: search for TEXT in another way than by `has`; returns false if it was not found */
    bool (*search)(struct view *view, const char *text, int direction);
    /* optional: show only what fits TEXT, or everything if TEXT is "" */
    void (*filter)(struct view *view, const char *text);
    /* optional: return the name, borrowed, of column number AT, so that a filter can use it; NULL
     * if there are fewer columns */
    const char *(*column)(struct view *view, size_t at);
    /* optional: write what is shown to PATH; returns true if the file was written or a job is
     * writing it */
    bool (*export)(struct view *view, const char *path);
    /* optional: set TARGET to what the chosen line leads to; strings are in ARENA or borrowed.
     * Without this operation, a line leads to its subject() */
    void (*lead)(struct view *view, struct arena *arena, struct target *target);
    /* optional: show the moment AT_NS; NEAR zooms in on it */
    void (*moment)(struct view *view, int64_t at_ns, bool near);
    /* optional: find the file (borrowed) and the line that the key o opens in an editor. Returns
     * false if the chosen line has no source of its own; then the editor opens the code of the
     * line's target or subject */
    bool (*place)(struct view *view, const char **file, int64_t *line);
    /* optional: set SUBJECT to the row that the chosen line is about (strings are borrowed), for
     * which the views replay, timeline and what-if open */
    void (*subject)(struct view *view, struct target *subject);
    /* optional: use TEXT, which the user typed after REQUEST_INPUT */
    void (*input)(struct view *view, const char *text);
    /* what the key i asks the user, whose answer goes to input(); NULL if the view asks nothing */
    const char *asks;
    /* of text views (tui/text.h): make the lines; runs in a thread */
    void (*build)(struct doc *doc, struct db *db);
    bool slow;    /* build() may take seconds */
    bool at_once; /* build() needs no trace, so it runs at once and not as a job */
    /* of a view of one row: the list of all such rows, which `:name` opens without a number */
    enum view_kind all;
    /* the operations that this view has where its own are NULL; NULL if there are none */
    const struct view_ops *base;
};

/* The member NAME of OPS. If it is NULL, the member NAME of the operations that OPS inherits. */
#define view_op(ops, name) ((ops)->name || !(ops)->base ? (ops)->name : (ops)->base->name)

/* Call the operation NAME of VIEW, if VIEW has one. */
#define view_do(view, name, ...) \
    (view_op((view)->ops, name) ? view_op((view)->ops, name)(view, ##__VA_ARGS__) : (void)0)

struct view {
    const struct view_ops *ops;
    struct tui *tui;         /* borrowed */
    struct arena arena;      /* owns what the view needs until it is closed */
    struct target target;    /* what the view shows; its strings are in the arena */
    int x, y, rows, columns; /* position and size on the screen, set before update() */
    bool searched;           /* the last search was in this view, so the key n continues it */
    bool aside;              /* the view stands beside the one on top, and draws no cursor */
    /* the number of lines, the index of the chosen line, and of the first line on the screen */
    size_t count, at, top;
    int head; /* rows of the screen that headings take above the first line */
    /* made by the view: text behind the view's name in the first line of the screen */
    char title[160];
    /* made by the view: text at the right of the first line: how many rows, or how
     * far a query is */
    char note[200];
    bool busy;          /* at least one job of the view is still running */
    const char *failed; /* why the view could not show a newer result, or NULL */
};

/* Return the part of view_ops.keys that begins at *AT, and move *AT behind it. *BYTES gets its
 * length. Returns NULL at the end. */
const char *view_read_key_words(const char **at, int *bytes);

/* Return the operations of the view KIND, or NULL if there is no such view. */
static inline const struct view_ops *view_find_ops(const struct tui *tui, enum view_kind kind)
{
    return kind < VIEW_KINDS ? tui->views[kind] : NULL;
}

/* Return the name of the view KIND, which is also that of its file in schemas/tui/ and of the
 * command `:name`. Returns NULL for VIEW_NONE. */
const char *view_name(enum view_kind kind);
/* Return the view with the name NAME, which has BYTES bytes. Returns VIEW_NONE if there is none. */
enum view_kind view_named(const char *name, size_t bytes);

/* Open the editor at the source of the line under the cursor. */
void view_open_editor(struct view *view);

/* Read TEXT as a moment: "0.3", "15.2s", "@12.744", or "+100ms", which counts from FROM_NS. A
 * moment is at most 4e18 ns. Returns false if TEXT is not one. A number without a unit, a point or
 * a sign is a moment only if SURE. */
bool moment_parse(const char *text, bool sure, int64_t from_ns, int64_t *ns);

/* Choose line AT, or the last line if there are fewer, and scroll to it. */
void view_choose(struct view *view, size_t at);
/* Handle the requests that move the cursor up and down. Returns false for all other requests. */
bool view_move(struct view *view, enum request request);
/* Choose the next line in DIRECTION for which FITS returns true, starting over at the end.
 * Returns false if there is none. */
typedef bool view_fits(struct view *view, size_t at, const char *text);
bool view_find_line(struct view *view, int direction, view_fits *fits, const char *text);
/* Choose the line that was clicked. *AGAIN tells whether that line was chosen already. Returns
 * false if the click was not on a line. */
bool view_click(struct view *view, const struct key *key, bool *again);
/* view_update() takes the results of the view's jobs. view_close() drops the jobs, and frees
 * what the view owns. */
void view_update(struct view *view);
void view_close(struct view *view);
/* Return where to break TEXT, of which ROOM bytes fit into a line: at the last blank among them.
 * Returns ROOM if all of TEXT fits, and 0 if there is no blank. */
size_t text_cut_length(const char *text, size_t room);
/* view_draw_words() draws WORDS where lines would be. view_draw_empty() draws view->failed or "…"
 * there if SHOWN is NULL, and then returns true. */
void view_draw_words(struct view *view, struct screen *screen, int style, const char *words);
bool view_draw_empty(struct view *view, struct screen *screen, const void *shown);

/* If the job ASKED of the view has ended, drop the job SHOWN, put ASKED in its place, and return
 * true. If ASKED failed, SHOWN stays, and view->failed gets the reason. */
#define view_take(view, asked, shown) take_job_(view, (job_held *)&(asked), (job_held *)&(shown))
typedef struct job *job_held __attribute__((may_alias));
bool take_job_(struct view *view, job_held *asked, job_held *shown);
/* Draw the background of a line. If the line is CHOSEN, draw a mark. Returns the style to add to
 * the styles of the line's texts. */
int view_draw_row_begin(const struct view *view, struct screen *screen, int y, bool chosen);

/* Open the view of TARGET on top of the others. TARGET is copied. */
static inline void tui_open_view(struct tui *tui, const struct target *target)
{
    tui->calls->go(tui, target);
}

/* Open what the line under the cursor leads to. */
static inline void tui_open_target(struct tui *tui)
{
    tui->calls->open(tui);
}

/* If queries of the view on top are running, return true: the loop then keeps the key that is
 * being handled, and handles it again when they have ended. Keys that are typed meanwhile
 * wait behind it. */
static inline bool tui_wait_for_queries(struct tui *tui)
{
    return tui->calls->wait(tui);
}

/* text_replace() returns TEXT with VALUE in place of every NAME. text_quoted() quotes TEXT as
 * one word of a command (tui/views/commands.c). */
char *text_replace(struct arena *arena, const char *text, const char *name, const char *value);
#define text_quoted(arena, text) arena_print(arena, "'%s'", text_replace(arena, text, "'", "''"))

/* Run `dyntrace export OPTIONS -o PATH`, and open a view with what the command prints. */
bool view_export(struct view *view, const char *options, const char *path);

/* Find the file and line of the code of the row that TARGET names, for view_ops.place. *FILE lives
 * as long as VIEW. Returns false if there is no such code. */
bool view_find_source(struct view *view, const struct target *target, const char **file,
                      int64_t *line);

/* Return words for TARGET, such as "function train at 0.3 s", in ARENA. AT_NS is 0 if the target
 * has no moment. */
const char *target_describe(struct tui *tui, struct arena *arena, const struct target *target,
                            int64_t at_ns);

/* Show a message in the last line of the screen, until the next key is typed. tui_alarm()
 * shows it in red. */
#define tui_say(tui, ...) tui_print(tui, false, __VA_ARGS__)
#define tui_alarm(tui, ...) tui_print(tui, true, __VA_ARGS__)
#define tui_print(tui, alarm, ...) ((tui)->calls->print(tui, alarm, __VA_ARGS__))

/* Ask the user for a line, which is TEXT at first. The answer goes to the input() of
 * the view on top. */
static inline void tui_ask_for_line(struct tui *tui, const char *label, const char *text)
{
    tui->calls->ask(tui, label, text);
}

#endif
