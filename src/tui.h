/* tui.h -- what the loop of `dyntrace tui` and its views share.
 *
 * Runs in: the viewer.
 *
 * A key becomes a request (the table in tui.c). The view on top takes it or
 * hands it back, then the loop may know what to do. A view says where a line
 * leads by a target; the loop opens the view that a target names, on top of the
 * others, so that going back finds each as it was left.
 *
 *     open -> { settle -> draw -> request }* -> close
 *
 * settle() takes what jobs have found and asks for what will be drawn; draw()
 * changes nothing. */
#ifndef DYNTRACE_TUI_H
#define DYNTRACE_TUI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tui/screen.h"
#include "tui/work.h"

struct tui;

/* ---- where a line leads ---------------------------------------------------- */

enum view_kind {
    VIEW_NONE, VIEW_OVERVIEW, VIEW_FUNCTIONS, VIEW_FUNCTION, VIEW_ENTRIES, VIEW_ENTRY, VIEW_RECOMPILES, VIEW_CAUSES,
    VIEW_COMPILES, VIEW_COMPILE, VIEW_BREAKS, VIEW_BREAK, VIEW_LEDGER, VIEW_CALL, VIEW_REPLAY, VIEW_TIMELINE, VIEW_FLAME,
    VIEW_GUARDS, VIEW_CHECKS, VIEW_PROCESSES, VIEW_LOSSES, VIEW_SQL, VIEW_HELP, VIEW_WHATIF, VIEW_OUTPUT, VIEW_KINDS,
};

struct target {
    enum view_kind kind; /* VIEW_NONE: it leads nowhere */
    int64_t id;          /* of which row, by the view's own table */
    int64_t at_ns;       /* the moment that it is about, 0: none */
    enum view_kind about; /* replay, timeline, what-if: whose row ID is, as the view of one has it */
    char *where;         /* owned: an SQL condition on the view's columns, or NULL */
    char *title;         /* owned: what that condition means, in words, or NULL */
};

struct target target_make(enum view_kind kind, int64_t id, const char *where, const char *title);
struct target target_copy(const struct target *target);
void target_free(struct target *target);

/* ---- requests -------------------------------------------------------------- */

enum request {
    REQUEST_NONE,
    /* moving */
    REQUEST_UP, REQUEST_DOWN, REQUEST_LEFT, REQUEST_RIGHT, REQUEST_PAGE_UP, REQUEST_PAGE_DOWN, REQUEST_HALF_UP,
    REQUEST_HALF_DOWN, REQUEST_HOME, REQUEST_END, REQUEST_NEXT_PART, REQUEST_PREVIOUS_PART, REQUEST_OPEN, REQUEST_BACK,
    REQUEST_QUIT, REQUEST_CLICK, REQUEST_DOUBLE, REQUEST_WHEEL_UP, REQUEST_WHEEL_DOWN,
    /* finding */
    REQUEST_SEARCH, REQUEST_SEARCH_NEXT, REQUEST_SEARCH_PREVIOUS, REQUEST_FILTER, REQUEST_SORT, REQUEST_SORT_TURN,
    /* views */
    REQUEST_VIEW_1, REQUEST_VIEW_2, REQUEST_VIEW_3, REQUEST_VIEW_4, REQUEST_VIEW_5, REQUEST_VIEW_6, REQUEST_VIEW_7,
    REQUEST_VIEW_8, REQUEST_VIEW_9, REQUEST_VIEW_0, REQUEST_HELP, REQUEST_COMMAND,
    /* with what is shown */
    REQUEST_EDIT, REQUEST_COPY, REQUEST_EXPORT, REQUEST_SQL, REQUEST_REPLAY, REQUEST_TIMELINE, REQUEST_WHATIF,
    REQUEST_ZOOM_IN, REQUEST_ZOOM_OUT, REQUEST_ZOOM_ALL, REQUEST_TOGGLE, REQUEST_INPUT,
    REQUEST_STEP, REQUEST_STEP_BACK, REQUEST_BREAKPOINT, REQUEST_RUN, REQUEST_RUN_BACK,
    /* the program */
    REQUEST_CANCEL, REQUEST_REFRESH, REQUEST_REDRAW, REQUEST_FOLLOW, REQUEST_OUTPUT, REQUEST_STOP, REQUESTS,
};

/* A row of the key table: help and the names of commands are made from it. */
struct binding {
    enum request request;
    const char *name;  /* as a command: ":page-down" */
    int keys[4];       /* 0 ends them */
    const char *help;  /* NULL: as the one above */
    const char *group; /* title of the help's part, where one begins */
};
extern const struct binding tui_bindings[];
extern const size_t tui_binding_count;

/* What a key is called: "Enter", "C-z", "j". MADE has room for 16 bytes. */
const char *key_name(int code, char *made);

/* ---- views ----------------------------------------------------------------- */

struct view;

struct view_ops {
    const char *name;    /* of the view, as `:name` opens it */
    const char *summary; /* for the help */
    size_t size;         /* of the struct that begins with a struct view */
    bool (*open)(struct view *view);  /* target is set; false: it was told why not */
    void (*close)(struct view *view);
    void (*settle)(struct view *view);
    void (*draw)(struct view *view, struct screen *screen);
    bool (*request)(struct view *view, enum request request, const struct key *key); /* true: taken */
    void (*refresh)(struct view *view);                       /* ask again, stay where it is; or NULL */
    char *(*sql)(struct view *view);                          /* what is shown, as SQL; the caller frees it; or NULL */
    bool (*search)(struct view *view, const char *text, int direction); /* false: not found; or NULL */
    void (*filter)(struct view *view, const char *text);      /* "" ends it; or NULL */
    bool (*export)(struct view *view, const char *path);      /* true: it goes its way; or NULL */
    bool (*place)(struct view *view, char **file, int64_t *line); /* for an editor; the caller frees *FILE; or NULL */
    void (*subject)(struct view *view, struct target *subject); /* what the line is about, for replay, timeline ...; or NULL */
    void (*input)(struct view *view, const char *text);       /* what was typed after REQUEST_INPUT; or NULL */
};

struct view {
    const struct view_ops *ops;
    struct tui *tui;       /* borrowed */
    struct target target;  /* owned: by which it was opened */
    int y, x, rows, columns; /* of the screen, set before settle() */
    char title[160];       /* beside the name: made by the view */
    char note[120];        /* at the right: how many rows, what is asked */
    bool busy;             /* something is still being asked */
};

extern const struct view_ops view_overview, view_functions, view_function, view_entries, view_entry, view_recompiles, view_causes,
    view_compiles, view_compile, view_breaks, view_break, view_ledger, view_call, view_guards, view_checks, view_processes,
    view_losses, view_sql, view_help, view_flame, view_timeline, view_replay, view_whatif, view_output;

/* ---- what the loop does for views ------------------------------------------ */

struct work *tui_work(struct tui *tui);
struct screen *tui_screen(struct tui *tui);
const char *tui_path(struct tui *tui); /* of the trace */

/* Open what TARGET names on top. TARGET stays the caller's. */
void tui_go(struct tui *tui, const struct target *target);

/* A line for the user, at the bottom until the next key. */
void tui_say(struct tui *tui, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tui_alarm(struct tui *tui, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ask for a line, begun with TEXT; ops->input() of the view on top gets it. */
void tui_ask(struct tui *tui, const char *prompt, const char *text, const char *history);

/* A clock that stands still where keys come from a script. */
bool tui_scripted(const struct tui *tui);

/* What the last search looked for, "" when there was none. */
const char *tui_searched(const struct tui *tui);

/* ---- SQL pieces ------------------------------------------------------------ */

/* Condition on a column: it names one of the code objects that are the same function as code ID. */
#define SAME_FUNCTION "(SELECT same.code_id FROM code same JOIN code one ON one.code_id = %lld AND same.filename IS one.filename" \
                      " AND same.qualname IS one.qualname AND same.first_line IS one.first_line AND same.kind IS one.kind)"

/* The calls themselves of these code objects; reads all frames. */
#define FRAMES_OF(codes) "SELECT frame_id, start_ns, duration_ns, outcome, qualname, thread, pid, parent_id, code_id, cache_entry_id" \
                         " FROM frames WHERE code_id IN " codes

/* When an entry ran last, of its rows of lookup: one that was compiled ran when that was over. */
#define LAST_USE "MAX(iif(outcome = 2, start_ns + COALESCE(duration_ns, 0), start_ns))"

#endif
