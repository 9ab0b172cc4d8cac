/* tui/view.h -- what the loop of `dyntrace tui` (tui.c) and its views share.
 *
 * A key becomes a request (tui/keys.h). The view on top takes it or hands it back, then the loop
 * may know what to do. A view says where a line leads by a target; the loop opens the view that a
 * target names, on top of the others, so that going back finds each as it was left.
 *
 *     open -> { settle -> draw -> request }* -> close
 *
 * settle() takes what jobs have found and asks for what will be drawn; draw() changes nothing. Most
 * views are a list (tui/list.h) or a page (tui/text.h), which are all in their file of
 * schemas/tui/. */
#ifndef DYNTRACE_TUI_VIEW_H
#define DYNTRACE_TUI_VIEW_H

#include "lib/list.h"
#include "tui/screen.h"
#include "tui/work.h"

/* What the program under `run --live` has printed (tui/views/output.c). */
struct output {
    LIST(char) text; /* and a NUL at its end */
    size_t lines;    /* that have ended in it */
    bool cut;        /* its beginning was left out */
    bool open;       /* more may come */
    bool screen;     /* it draws a whole screen, as an editor does */
    int input_fd;    /* lines are typed into this, -1: no */
};

/* Take what is there. False: no more will come. */
bool output_read(struct output *output, int fd);
/* The last line; the caller frees it; NULL: none. */
char *output_last(const struct output *output);
/* All of it, as it came. */
void output_print(const struct output *output);

struct db;
struct tui;
struct target;

/* What a view has the loop do: tui/requests.c, which lies above the views, fills it in. The macros
 * and functions tui_go() to tui_ask(), below, call it. */
struct tui_calls {
    void (*go)(struct tui *tui, const struct target *target);
    void (*open)(struct tui *tui);
    bool (*wait)(struct tui *tui);
    void (*print)(struct tui *tui, bool alarm, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*ask)(struct tui *tui, const char *label, const char *text);
};

/* What views see of the loop. Borrowed. */
struct tui {
    const struct tui_calls *calls;
    const struct view_ops *const *views; /* by enum view_kind; NULL: VIEW_NONE (tui/view_table.c) */
    const struct page_part *parts;       /* what C makes of pages (tui/text.h) */
    struct work *work;
    struct db *db; /* for what is known at once */
    struct screen *screen;
    int64_t moment_ns; /* the one that was looked at last, 0: none */
    int below;         /* lines at the bottom that no view has, but the last */
    bool split;        /* what Enter opens stands beside the view on top */
    /* keys come from a script: what changes while one looks is not shown */
    bool scripted;
    char searched[200]; /* what the last search looked for, "" when there was none */
    /* what the program under `run --live` has printed, NULL where none runs */
    const struct output *output;
};

struct target {
    enum view_kind kind; /* VIEW_NONE: it leads nowhere */
    int64_t id;          /* of which row, by the view's own table */
    int64_t at_ns;       /* the moment that it is about, 0: none */
    /* replay, timeline, what-if: whose row ID is, as the view of one has it */
    enum view_kind about;
    const char *where; /* borrowed: an SQL condition on the view's columns, or NULL */
    const char *title; /* borrowed: what that condition means, in words, or NULL */
};

/* A copy whose texts are in ARENA. */
struct target target_keep(struct arena *arena, const struct target *target);

struct view;
struct doc;
struct db;

struct view_ops {
    const char *summary; /* for the help */
    const char *writes;  /* how the names end of the files that e writes */
    /* what its keys do: "+ - zooms  n finds", two spaces between; for the last line, and the help
     *                               */
    const char *keys;
    /* of the struct that begins with a struct view, behind which stand pointers to its jobs, each
     * owned or NULL: */
    size_t size;
    /* so many that are being asked: until they are taken it is busy; and all of them */
    int asked, jobs;
    void (*open)(struct view *view);  /* target is set; or NULL */
    void (*close)(struct view *view); /* what it owns but its jobs; or NULL */
    void (*settle)(struct view *view);
    void (*draw)(struct view *view, struct screen *screen);
    /* true: taken */
    bool (*request)(struct view *view, enum request request, const struct key *key);
    /* ask again, stay where it is; or NULL */
    void (*refresh)(struct view *view);
    /* what is shown, as SQL; the caller frees it; or NULL */
    char *(*sql)(struct view *view);
    /* that line has it, for a search; or NULL */
    bool (*has)(struct view *view, size_t at, const char *text);
    /* for one that goes otherwise; false: not found; or NULL */
    bool (*search)(struct view *view, const char *text, int direction);
    void (*filter)(struct view *view, const char *text); /* "" ends it; or NULL */
    /* a name that a filter may have; borrowed; NULL: no more; or NULL */
    const char *(*column)(struct view *view, size_t at);
    bool (*export)(struct view *view, const char *path); /* true: it goes its way; or NULL */
    /* where the line leads; texts in ARENA or borrowed; NULL: to its subject */
    void (*lead)(struct view *view, struct arena *arena, struct target *target);
    /* show that, near: from near by; or NULL */
    void (*moment)(struct view *view, int64_t at_ns, bool near);
    /* for an editor; borrowed; false, or NULL: that of what the line leads to, or is about */
    bool (*place)(struct view *view, const char **file, int64_t *line);
    /* what the line is about, for replay ...; borrowed; or NULL */
    void (*subject)(struct view *view, struct target *subject);
    /* what was typed after REQUEST_INPUT; or NULL */
    void (*input)(struct view *view, const char *text);
    const char *asks; /* label of what i asks for: another target.where, for input(); or NULL */
    /* tui/text.h: makes the text, in a thread */
    void (*build)(struct doc *doc, struct db *db);
    bool slow;          /* build() may take seconds */
    bool at_once;       /* build() needs no trace: it is not a job */
    enum view_kind all; /* of a view of one: the list of all, opened by `:name` without a number */
    const struct view_ops *base; /* what it is built on and does not do in its own way; or NULL */
};

/* A member of view_ops, its own or that of what it is built on. */
#define view_op(ops, name) ((ops)->name || !(ops)->base ? (ops)->name : (ops)->base->name)

/* That of VIEW is called, where there is one. */
#define view_do(view, name, ...) \
    (view_op((view)->ops, name) ? view_op((view)->ops, name)(view, ##__VA_ARGS__) : (void)0)

struct view {
    const struct view_ops *ops;
    struct tui *tui;         /* borrowed */
    struct arena arena;      /* lives as long as the view */
    struct target target;    /* by which it was opened; its texts are in the arena */
    int x, y, rows, columns; /* of the screen, set before settle() */
    bool searched;           /* the last search was made here: n goes on with it */
    bool aside;              /* it stands beside the one on top, and has no cursor */
    size_t count, at, top;   /* lines, the chosen one, and the first that is shown */
    int head;                /* rows above the first line */
    char title[160];         /* beside the name: made by the view */
    char note[200];          /* at the right: how many rows, what is asked */
    bool busy;               /* something is still being asked */
    const char *failed;      /* why there is no newer answer, or NULL */
};

/* The next of view_ops.keys at *AT, which moves on, and how many BYTES it has; NULL: there are no
 * more. */
const char *view_keys(const char **at, int *bytes);

/* The view of KIND; NULL: there is none. */
static inline const struct view_ops *view_of(const struct tui *tui, enum view_kind kind)
{
    return kind < VIEW_KINDS ? tui->views[kind] : NULL;
}

/* What `:name` opens it by, and the name of its file in schemas/tui/; NULL: VIEW_NONE has none. */
const char *view_name(enum view_kind kind);
/* The view with NAME, which is BYTES long; VIEW_NONE if there is none. */
enum view_kind view_named(const char *name, size_t bytes);

/* The editor, at the place of the line under the cursor. */
void view_edit(struct view *view);

/* "0.3", "15.2s", "@12.744", and "+100ms" from FROM_NS on, which is no more than 4e18: a moment.
 * False: it is none; without a unit, a point or a sign it is a number, unless one is SURE. */
bool moment_read(const char *text, bool sure, int64_t from_ns, int64_t *ns);

/* Choose line AT, or the last. */
void view_choose(struct view *view, size_t at);
/* The keys that move up and down: choose by them. False: it is none of them. */
bool view_move(struct view *view, enum request request);
/* Choose the next line in that direction that FITS, around the end. False: none does. */
typedef bool view_fits(struct view *view, size_t at, const char *text);
bool view_find(struct view *view, int direction, view_fits *fits, const char *text);
/* Choose the line of a click; false: there is none. AGAIN: it was chosen before. */
bool view_click(struct view *view, const struct key *key, bool *again);
/* Take what jobs have found; drop them, and what it owns besides. */
void view_settle(struct view *view);
void view_close(struct view *view);
/* Where to cut TEXT, of which ROOM bytes fit: before a space; ROOM if that is all; 0: no space. */
size_t text_cut(const char *text, size_t room);
/* Words in place of what is not there; and of what is not SHOWN: why, or that it will be (true). */
void view_words(struct view *view, struct screen *screen, int style, const char *words);
bool view_empty(struct view *view, struct screen *screen, const void *shown);

/* ASKED, a pointer to a job of VIEW, has its answer: it takes the place of SHOWN (true), but where
 * it failed. */
#define view_take(view, asked, shown) view_take_(view, (job_held *)&(asked), (job_held *)&(shown))
typedef struct job *job_held __attribute__((may_alias));
bool view_take_(struct view *view, job_held *asked, job_held *shown);
/* The ground of a line, which has a mark where it is the chosen one. Returns what that adds to its
 * styles. */
int view_row(const struct view *view, struct screen *screen, int y, bool chosen);

/* Open what TARGET names on top; TARGET stays the caller's. */
static inline void tui_go(struct tui *tui, const struct target *target)
{
    tui->calls->go(tui, target);
}

/* Open what the line under the cursor leads to. */
static inline void tui_open(struct tui *tui)
{
    tui->calls->open(tui);
}

/* What the key is about may still come: then it is taken again until it is there (true), and what
 * is typed meanwhile after it. */
static inline bool tui_wait(struct tui *tui)
{
    return tui->calls->wait(tui);
}

/* TEXT with VALUE for every NAME; TEXT as one word of a command (tui/views/commands.c). */
char *text_with(struct arena *arena, const char *text, const char *name, const char *value);
#define text_quoted(arena, text) arena_print(arena, "'%s'", text_with(arena, text, "'", "''"))

/* Have `dyntrace export` write to PATH, as OPTIONS say, and show what it says. */
bool view_export(struct view *view, const char *options, const char *path);

/* Where the code of the row that TARGET names stands, for view_ops.place; *FILE lives as long as
 * VIEW. */
bool view_source(struct view *view, const struct target *target, const char **file, int64_t *line);

/* What TARGET is called, in ARENA; it is about the moment AT_NS, 0: none. */
const char *target_words(struct tui *tui, struct arena *arena, const struct target *target,
                         int64_t at_ns);

/* A line for the user, at the bottom until the next key. */
#define tui_say(tui, ...) tui_print(tui, false, __VA_ARGS__)
#define tui_alarm(tui, ...) tui_print(tui, true, __VA_ARGS__)
#define tui_print(tui, alarm, ...) ((tui)->calls->print(tui, alarm, __VA_ARGS__))

/* Ask for a line, begun with TEXT; ops->input() of the view on top gets it. */
static inline void tui_ask(struct tui *tui, const char *label, const char *text)
{
    tui->calls->ask(tui, label, text);
}

#endif
