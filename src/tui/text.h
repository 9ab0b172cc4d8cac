/* tui/text.h -- a view that is lines of text, each of which may have a target.
 *
 * Runs in: the viewer; ops->build() in a thread.
 *
 *     static void help_build(struct doc *doc, struct db *db)
 *     {
 *         doc_part(doc, "Why");
 *         doc_line(doc, "  it is %s", doc_safe(doc, text, 80));
 *         doc_leads(doc, VIEW_FUNCTION, code_id, NULL, NULL);      the target of that line
 *     }
 *
 * Text from a trace goes through doc_safe(), so that no byte of it can be taken for a style
 * mark.
 *
 * Most text views are pages: page_build() makes their lines from a file in schemas/tui/
 * (tui/lead.h). */
#ifndef DYNTRACE_TUI_TEXT_H
#define DYNTRACE_TUI_TEXT_H

#include "lib/table.h"
#include "tui/lead.h"

struct source;

struct doc_line {
    const char *text; /* with style marks; this string and the target's are in the doc's arena */
    struct target target;
    int64_t source_line; /* the line of source that `o` opens in an editor, or 0 */
    const char *file;    /* the file of source_line; NULL means the file of the doc's subject */
    bool part;           /* the line is a heading */
    /* the column where the line's right half begins, or 0 if it has no halves */
    int half;
    struct target beside; /* the target of the right half */
};

struct doc {
    struct job job; /* the job that runs build() */
    LIST(struct doc_line) lines;
    struct arena arena;         /* owns the strings of lines and targets, and those of doc_safe() */
    const struct view_ops *ops; /* borrowed: the operations of the view */
    /* borrowed; build() runs in a thread and may read only the tables of views and parts,
     * because the loop changes the other members meanwhile */
    const struct tui *tui;
    struct target target; /* what the view shows */
    int columns, rows;    /* the size of the view */
    bool aside;           /* the view is the one beside the view on top */
    bool dense;           /* set by build(): no empty line before a heading */
    /* set by build(): the number of lines depends on the height of the view */
    bool fills;
    bool quick; /* make only what takes no time; a second doc will have the rest */
    bool whole; /* make everything, also what build() left out before with `cut` set */
    /* set by build(): `more`: the quick doc left something out; `cut`: a part was not read to
     * its end */
    bool more, cut;
    bool failed;           /* the first line says why the text is incomplete */
    const char *heading;   /* the heading that a page has added last */
    char title[160];       /* set by build() */
    size_t start;          /* set by build(): the line where the cursor begins */
    struct target subject; /* set by build(): the row that the text is about */
    /* set by build(): the targets of the keys p and n; a target of the same kind replaces this
     * view's own */
    struct target previous, next;
};

struct text {
    struct view view;
    /* owned: the doc that is being made, and the doc that is shown; or NULL */
    struct doc *asked, *doc;
    bool stale; /* the view's target has changed since `doc` was made */
    int skip;   /* how many columns the text is scrolled to the right */
    /* the right half of the chosen line is chosen, if the line has halves */
    bool right;
};

/* The operations that all text views share. Each view's own ops->build() makes the text. */
extern const struct view_ops text_ops;

/* Format as printf() does: doc_print() returns a string that lives as long as DOC, doc_line()
 * adds a line, doc_part() adds a heading. */
#define doc_print(doc, ...) arena_print(&(doc)->arena, __VA_ARGS__)
/* hand the malloc()ed TEXT to DOC, which frees it */
#define doc_keep(doc, text) arena_keep(&(doc)->arena, text)
#define doc_line(doc, ...) doc_add(doc, doc_print(doc, __VA_ARGS__))
#define doc_part(doc, ...) doc_add_part(doc, doc_print(doc, __VA_ARGS__))
/* Add a line or a heading. doc_add() returns the doc's last line, which is the new one unless
 * DOC already has the most lines allowed. */
struct doc_line *doc_add(struct doc *doc, const char *text);
void doc_add_part(struct doc *doc, const char *text);

/* Set the target of the last line, unless the line has a target. The strings of the target are
 * borrowed, and must live as long as DOC. */
void doc_target(struct doc *doc, struct target target);
#define doc_leads(doc, kind, id, where, title) \
    doc_target(doc, (struct target){kind, id, 0, VIEW_NONE, where, title})

/* doc_safe() escapes TEXT and cuts it to WIDTH bytes; NULL becomes "?". doc_fit() cuts TEXT or
 * fills it with spaces to COLUMNS columns. doc_counted(), doc_count() and doc_time() print
 * numbers. All results live as long as DOC. */
#define doc_safe(doc, text, width) text_safe(&(doc)->arena, text, width)
#define doc_fit(doc, text, columns) text_fit(&(doc)->arena, text, columns)
#define doc_counted(doc, count, noun) \
    text_counted_as(&(doc)->arena, count, true, noun, strlen(noun))
#define doc_count(doc, count) table_count(arena_take(&(doc)->arena, TABLE_HUMAN), count)
#define doc_time(doc, ns) table_duration(arena_take(&(doc)->arena, TABLE_HUMAN), ns)

/* Add a line of two halves: LEFT in COLUMNS columns, and RIGHT, whose target is TARGET. */
void doc_beside(struct doc *doc, const char *left, int columns, const char *right,
                struct target target);

/* Add TEXT, which has style marks, wrapped into as many lines as it needs. All of them have the
 * target TARGET. TEXT must live as long as DOC. */
void doc_wrap(struct doc *doc, const char *text, struct target target);

/* Add the lines of a longer text, each indented by INDENT spaces; at most MOST lines. */
void doc_text(struct doc *doc, const char *text, int indent, size_t most);

/* A mark beside one line of source (see source_put() in page.c). */
struct gutter {
    int64_t line;
    const char *mark; /* text at the left, with style marks, at most six columns wide */
    const char *note; /* text after the source line, with style marks, or NULL */
    int64_t id;       /* the id of the target of the line */
    int kind;         /* the kind of the target of the line: an enum view_kind */
};

/* Add lines FROM to TO of SOURCE, with the marks GUTTER. An arrow points at line AT. If the file
 * is missing or was changed since the recording, a line says so. */
void source_put(struct doc *doc, struct db *db, const struct source *source, int64_t from,
                int64_t to, int64_t at, const struct gutter *gutter, size_t gutters);

/* text_restart() builds the text again, because the view's target has changed. text_input()
 * makes the typed TEXT the target's `where` first. */
void text_restart(struct view *view);
void text_input(struct view *view, const char *text);

void page_build(struct doc *doc, struct db *db);

/* Return the code objects of the function that CODE_ID belongs to, as an SQL list such as "(1,
 * 2)". */
const char *page_codes(struct doc *doc, struct db *db, int64_t code_id);

/* A part of a page that a C function adds, by the NAME that a template's line `call NAME` has. */
struct page_part {
    const char *name; /* NULL marks the end of a table of parts */
    void (*put)(struct doc *doc, struct db *db, struct query *row);
};

/* The names of all page parts. Their functions part_NAME() are in tui/views/; tui/view_table.c
 * makes the table of them. */
/* clang-format off */
#define PAGE_PARTS(X) \
    X(doubts) X(findings) X(guards) X(bytecode) X(compile_remedy) X(break_remedy) \
    X(break_source) X(origin) \
    X(function_source) X(spread) X(rank) X(inside)
/* clang-format on */
#define X(name) void part_##name(struct doc *doc, struct db *db, struct query *row);
PAGE_PARTS(X)
#undef X

#endif
