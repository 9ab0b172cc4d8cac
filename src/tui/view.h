/* tui/view.h -- what the loop of `dyntrace tui` (tui.c) and its views share.
 *
 * A key becomes a request (tui/keys.h). The view on top handles the request or returns false,
 * and then the loop handles it. A view names what a line leads to by a target. The loop opens
 * the view of a target on top of the other views, which keep their state until the user comes
 * back.
 *
 *     open -> { settle -> draw -> request }* -> close
 *
 * settle() takes the results of finished jobs, and starts jobs for what will be drawn. draw()
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
    bool cut;        /* the beginning of the output was dropped */
    bool open;       /* more output may come */
    bool screen;     /* the program draws on the whole screen, as an editor does */
    int input_fd;    /* where lines for the program are written, or -1 if it reads no input */
};

/* Read what FD has now into OUTPUT. Returns false at the end of the output. */
bool output_read(struct output *output, int fd);
/* Return the last line, or NULL if nothing was printed. The caller frees it. */
char *output_last(const struct output *output);
/* Print the whole output to standard output, unchanged. */
void output_print(const struct output *output);

struct db;
struct tui;
struct target;

/* Functions of the loop that views call. tui/requests.c, which views must not include, fills in
 * the table; views call the functions through tui_go() to tui_ask() below. */
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
    /* indexed by enum view_kind; NULL for VIEW_NONE (tui/view_table.c) */
    const struct view_ops *const *views;
    const struct page_part *parts; /* the parts of pages that C functions make (tui/text.h) */
    struct work *work;
    struct db *db; /* a connection for queries that take no time */
    struct screen *screen;
    int64_t moment_ns; /* the moment that the user looked at last, or 0 */
    /* how many lines above the last are taken from the bottom of views: 1 while a trace is live */
    int below;
    /* the screen is split: beside the view on top stands what Enter would open */
    bool split;
    /* the keys come from a script, so nothing is drawn that depends on how fast queries are */
    bool scripted;
    char searched[200]; /* the text of the last search, or "" */
    /* the output of the program under `run --live`, or NULL without one */
    const struct output *output;
};

struct target {
    enum view_kind kind; /* the view to open; VIEW_NONE means that the line leads nowhere */
    int64_t id;          /* the id of the row to show, in the table that the view shows; or 0 */
    int64_t at_ns;       /* the moment that the target is about, or 0 */
    /* for replay, timeline and what-if: the kind of view that shows row `id` (VIEW_COMPILE: `id`
     * is a compile_id) */
    enum view_kind about;
    const char *where; /* borrowed: an SQL condition on the view's columns, or NULL */
    const char *title; /* borrowed: what that condition means, in words, or NULL */
};

/* Copy TARGET, and its strings into ARENA. */
struct target target_keep(struct arena *arena, const struct target *target);

struct view;
struct doc;
struct db;

struct view_ops {
    /* a phrase that describes the view in the help (operations below that are marked "optional"
     * may be NULL) */
    const char *summary;
    const char *writes; /* the extension of the files that key e writes, such as "csv" */
    /* the keys of the view and what they do, with two spaces between them: "+ - zooms n finds";
     * shown in the last line of the screen and in the help */
    const char *keys;
    /* size of the view's struct: a struct view, then pointers to its jobs (owned or NULL), then
     * other members */
    size_t size;
    /* `jobs` is how many job pointers the struct has; the first `asked` of them are running
     * jobs, and the view is busy while one of those is not NULL */
    int asked, jobs;
    void (*open)(struct view *view);  /* optional: start the view, whose target is set */
    void (*close)(struct view *view); /* optional: free what the view owns, except its jobs */
    void (*settle)(struct view *view);
    void (*draw)(struct view *view, struct screen *screen);
    /* handle REQUEST; returns false if the view does not handle such requests */
    bool (*request)(struct view *view, enum request request, const struct key *key);
    /* optional: run the queries again, and keep the cursor where it is */
    void (*refresh)(struct view *view);
    /* optional: return the SQL of what is shown; the caller frees the text */
    char *(*sql)(struct view *view);
    /* optional, for a search: does line AT contain TEXT? */
    bool (*has)(struct view *view, size_t at, const char *text);
    /* optional: replaces the search by `has`; returns false if TEXT was not found */
    bool (*search)(struct view *view, const char *text, int direction);
    /* optional: show only what fits TEXT, or everything if TEXT is "" */
    void (*filter)(struct view *view, const char *text);
    /* optional: return the borrowed name of column number AT, which a filter may use, or NULL if
     * there are fewer columns */
    const char *(*column)(struct view *view, size_t at);
    /* optional: write what is shown to PATH; returns true if the file was written or a job is
     * writing it */
    bool (*export)(struct view *view, const char *path);
    /* optional: set TARGET to what the chosen line leads to, with strings in ARENA or borrowed;
     * without this operation lines lead to subject() */
    void (*lead)(struct view *view, struct arena *arena, struct target *target);
    /* optional: show the moment AT_NS; NEAR zooms in on it */
    void (*moment)(struct view *view, int64_t at_ns, bool near);
    /* optional: find the file and line to open in an editor (borrowed). Returns false if the
     * chosen line has no source of its own; then the editor opens the code of the line's target
     * or subject. */
    bool (*place)(struct view *view, const char **file, int64_t *line);
    /* optional: set SUBJECT to the row that the chosen line is about (strings are borrowed);
     * replay, timeline and what-if open for that row */
    void (*subject)(struct view *view, struct target *subject);
    /* optional: use TEXT, which the user typed after REQUEST_INPUT */
    void (*input)(struct view *view, const char *text);
    /* the prompt of key i, whose answer goes to input(); NULL if the view asks nothing */
    const char *asks;
    /* for text views (tui/text.h): make the lines; runs in a thread */
    void (*build)(struct doc *doc, struct db *db);
    bool slow;    /* build() may take seconds */
    bool at_once; /* build() needs no trace, so it runs at once and not as a job */
    /* for a view of one row: the list of all rows, which `:name` opens without a number */
    enum view_kind all;
    /* the operations that this view inherits where its own are NULL; NULL if it inherits none */
    const struct view_ops *base;
};

/* The member NAME of a view_ops, or the inherited one if OPS has none. */
#define view_op(ops, name) ((ops)->name || !(ops)->base ? (ops)->name : (ops)->base->name)

/* Call the operation NAME of VIEW, if VIEW has one. */
#define view_do(view, name, ...) \
    (view_op((view)->ops, name) ? view_op((view)->ops, name)(view, ##__VA_ARGS__) : (void)0)

struct view {
    const struct view_ops *ops;
    struct tui *tui;         /* borrowed */
    struct arena arena;      /* freed when the view is closed */
    struct target target;    /* what the view was opened for; its strings are in the arena */
    int x, y, rows, columns; /* position and size on the screen, set before settle() */
    bool searched;           /* the last search was made in this view, so n continues that search */
    bool aside;              /* the view stands beside the one on top, and draws no cursor */
    /* the number of lines, the chosen line, and the first line on the screen */
    size_t count, at, top;
    int head; /* rows of the screen above the first line, for headings */
    /* shown behind the view's name in the first line of the screen; made by the view */
    char title[160];
    /* shown at the right of the first line: how many rows, or how far a query is */
    char note[200];
    bool busy;          /* a job of the view is still running */
    const char *failed; /* why there is no newer result, or NULL */
};

/* Return the next part of view_ops.keys at *AT, and move *AT behind it. *BYTES is the part's
 * length. Returns NULL at the end. */
const char *view_keys(const char **at, int *bytes);

/* Return the operations of the view KIND, or NULL if there is no such view. */
static inline const struct view_ops *view_of(const struct tui *tui, enum view_kind kind)
{
    return kind < VIEW_KINDS ? tui->views[kind] : NULL;
}

/* Return the name of the view KIND, by which `:name` opens it and its file in schemas/tui/ is
 * called; NULL for VIEW_NONE. */
const char *view_name(enum view_kind kind);
/* Return the view called NAME, which is BYTES long, or VIEW_NONE if there is none. */
enum view_kind view_named(const char *name, size_t bytes);

/* Open the editor at the source of the line under the cursor. */
void view_edit(struct view *view);

/* Read a moment: "0.3", "15.2s" or "@12.744", or "+100ms", which counts from FROM_NS. The moment
 * is at most 4e18 ns. Returns false if TEXT is not a moment. A number without a unit, a point or
 * a sign is a moment only if SURE. */
bool moment_read(const char *text, bool sure, int64_t from_ns, int64_t *ns);

/* Choose line AT, or the last line if there are fewer, and scroll to it. */
void view_choose(struct view *view, size_t at);
/* Handle the requests that move the cursor up and down. Returns false for all other requests. */
bool view_move(struct view *view, enum request request);
/* Choose the next line in DIRECTION for which FITS returns true, starting over at the end.
 * Returns false if there is none. */
typedef bool view_fits(struct view *view, size_t at, const char *text);
bool view_find(struct view *view, int direction, view_fits *fits, const char *text);
/* Choose the line that was clicked. *AGAIN: that line was chosen already. Returns false if the
 * click hit no line. */
bool view_click(struct view *view, const struct key *key, bool *again);
/* view_settle() takes the results of the view's jobs. view_close() drops the jobs, and frees
 * what the view owns. */
void view_settle(struct view *view);
void view_close(struct view *view);
/* Return where to break TEXT, of which ROOM bytes fit: at the last space. Returns ROOM if all of
 * TEXT fits, and 0 if there is no space. */
size_t text_cut(const char *text, size_t room);
/* view_words() draws WORDS in place of lines. view_empty() does this if SHOWN is NULL, with the
 * reason or "…" as the words, and returns true. */
void view_words(struct view *view, struct screen *screen, int style, const char *words);
bool view_empty(struct view *view, struct screen *screen, const void *shown);

/* If the job ASKED of VIEW has ended, drop SHOWN and put ASKED in its place (returns true). If
 * ASKED failed, SHOWN stays, and view->failed gets the reason. */
#define view_take(view, asked, shown) view_take_(view, (job_held *)&(asked), (job_held *)&(shown))
typedef struct job *job_held __attribute__((may_alias));
bool view_take_(struct view *view, job_held *asked, job_held *shown);
/* Draw the background of a line, with a mark if the line is CHOSEN. Returns the style to add to
 * the line's own styles. */
int view_row(const struct view *view, struct screen *screen, int y, bool chosen);

/* Open the view that TARGET names on top. TARGET is copied. */
static inline void tui_go(struct tui *tui, const struct target *target)
{
    tui->calls->go(tui, target);
}

/* Open the target of the line under the cursor. */
static inline void tui_open(struct tui *tui)
{
    tui->calls->open(tui);
}

/* If queries of the view on top are running, have the loop keep the present key and handle it
 * again when they have ended (returns true). Keys that are typed meanwhile wait behind it. */
static inline bool tui_wait(struct tui *tui)
{
    return tui->calls->wait(tui);
}

/* text_with() returns TEXT with every NAME replaced by VALUE. text_quoted() quotes TEXT as one
 * word of a command (tui/views/commands.c). */
char *text_with(struct arena *arena, const char *text, const char *name, const char *value);
#define text_quoted(arena, text) arena_print(arena, "'%s'", text_with(arena, text, "'", "''"))

/* Run `dyntrace export OPTIONS -o PATH`, and open a view with what the command prints. */
bool view_export(struct view *view, const char *options, const char *path);

/* Find the file and line of the code of the row that TARGET names, for view_ops.place. *FILE
 * lives as long as VIEW. Returns false if nothing was found. */
bool view_source(struct view *view, const struct target *target, const char **file, int64_t *line);

/* Describe TARGET in words, such as "function train at 0.3 s". The text is in ARENA. AT_NS is 0
 * if the target has no moment. */
const char *target_words(struct tui *tui, struct arena *arena, const struct target *target,
                         int64_t at_ns);

/* Show a message in the last line of the screen, until the next key. tui_alarm() shows it in
 * red. */
#define tui_say(tui, ...) tui_print(tui, false, __VA_ARGS__)
#define tui_alarm(tui, ...) tui_print(tui, true, __VA_ARGS__)
#define tui_print(tui, alarm, ...) ((tui)->calls->print(tui, alarm, __VA_ARGS__))

/* Ask the user for a line, which begins as TEXT. The answer goes to ops->input() of the view on
 * top. */
static inline void tui_ask(struct tui *tui, const char *label, const char *text)
{
    tui->calls->ask(tui, label, text);
}

#endif
