/* tui/text.h -- a view that consists of lines of text, each of which may lead to another view.
 *
 * Runs in: the viewer; ops->build() in a thread.
 *
 *     static void build_help_view(struct doc *doc, struct db *db)
 *     {
 *         doc_part(doc, "Why");
 *         doc_line(doc, "  it is %s", doc_safe(doc, text, 80));
 *         doc_leads(doc, VIEW_FUNCTION, code_id, NULL, NULL);      the target of that line
 *     }
 *
 * Text from a trace goes through doc_safe(), so that no byte of it can be taken for a style
 * mark.
 *
 * Most text views are pages: page_build_doc() makes their lines from a file in schemas/tui/
 * (tui/lead.h). */
#ifndef DYNTRACE_TUI_TEXT_H
#define DYNTRACE_TUI_TEXT_H

#include "lib/table.h"
#include "tui/lead.h"

struct source;

struct doc_line {
    /* the text, with style marks; its string and those of the target are in the arena of the doc */
    const char *text;
    struct target target;
    int64_t source_line; /* number of the source line that the key `o` opens in an editor, or 0 */
    /* the file of source_line; NULL means the file of what the text is about */
    const char *file;
    bool part; /* the line is a heading of the page */
    /* the column where the right half of the line begins, or 0 if the line has no halves */
    int half;
    struct target beside; /* what the right half of the line leads to */
};

struct doc {
    struct job job; /* the job that makes the text by build() */
    LIST(struct doc_line) lines;
    struct arena arena;         /* owns the strings of lines and targets, and those of doc_safe() */
    const struct view_ops *ops; /* borrowed: the operations of the view */
    /* borrowed. build() runs in a thread, and may read only the tables of views and parts, because
     * the loop changes all other members meanwhile */
    const struct tui *tui;
    struct target target; /* what the text is about, as the target of the view */
    int columns, rows;    /* the size of the view in which the text is shown */
    bool aside;           /* this view stands beside the view on top */
    bool dense;           /* build() sets this: headings have no empty line above them */
    /* build() sets this: the number of lines depends on the height of the view */
    bool fills;
    bool quick; /* leave out what takes time; it will be in a second text */
    bool whole; /* read every part to its end, because the text that is shown has `cut` */
    /* build() sets these. more: a quick text left something out. cut: a part was not
     * read to its end */
    bool more, cut;
    bool failed;           /* the text is incomplete, and its first line tells why */
    const char *heading;   /* the heading that was added last */
    char title[160];       /* build() sets this: text behind the name of the view */
    size_t start;          /* build() sets this: index of the line where the cursor is at first */
    struct target subject; /* build() sets this: the row that the text is about */
    /* build() sets these: what the keys p and n lead to. If a view of the same kind shows it,
     * this view does */
    struct target previous, next;
};

struct text {
    struct view view;
    /* owned: the text that is being made, and the text that is shown; each may be NULL */
    struct doc *asked, *doc;
    bool stale; /* the view shows another target since `doc` was made */
    int skip;   /* number of columns by which the text is scrolled to the right */
    /* if the chosen line has halves, the right one is chosen */
    bool right;
};

/* The operations of all views that are text. Each view has its own build(), which
 * makes the text. */
extern const struct view_ops text_ops;

/* Format as printf() does. doc_print() returns a string that lives as long as DOC, doc_line() adds
 * a line, doc_part() adds a heading. */
#define doc_print(doc, ...) arena_print(&(doc)->arena, __VA_ARGS__)
/* let DOC own the malloc()ed TEXT, and free it */
#define doc_keep(doc, text) arena_keep(&(doc)->arena, text)
#define doc_line(doc, ...) doc_add_line(doc, doc_print(doc, __VA_ARGS__))
#define doc_part(doc, ...) doc_add_part(doc, doc_print(doc, __VA_ARGS__))
/* Add a line or a heading. doc_add_line() returns the last line of DOC, which is the new line,
 * unless DOC has the most lines allowed. */
struct doc_line *doc_add_line(struct doc *doc, const char *text);
void doc_add_part(struct doc *doc, const char *text);

/* Set what the last line leads to, unless that is set already. The strings of the target are
 * borrowed, and must live as long as DOC. */
void doc_set_target(struct doc *doc, struct target target);
#define doc_leads(doc, kind, id, where, title) \
    doc_set_target(doc, (struct target){kind, id, 0, VIEW_NONE, where, title})

/* doc_safe() escapes TEXT and cuts it to WIDTH bytes; NULL becomes "?". doc_fit() cuts TEXT to
 * COLUMNS columns, or fills it with blanks. doc_counted(), doc_count() and doc_time() print
 * numbers. All results live as long as DOC. */
#define doc_safe(doc, text, width) text_make_printable(&(doc)->arena, text, width)
#define doc_fit(doc, text, columns) text_shorten_to_columns(&(doc)->arena, text, columns)
#define doc_counted(doc, count, noun) \
    text_count_with_noun(&(doc)->arena, count, true, noun, strlen(noun))
#define doc_count(doc, count) table_count(arena_take(&(doc)->arena, TABLE_HUMAN), count)
#define doc_time(doc, ns) table_duration(arena_take(&(doc)->arena, TABLE_HUMAN), ns)

/* Add a line of two halves: LEFT, which is COLUMNS wide, and RIGHT, which leads to TARGET. */
void doc_add_halves(struct doc *doc, const char *left, int columns, const char *right,
                    struct target target);

/* Add TEXT, which has style marks, wrapped into as many lines as it needs. All of them lead to
 * TARGET. TEXT must live as long as DOC. */
void doc_add_wrapped_line(struct doc *doc, const char *text, struct target target);

/* Add the lines of a longer text, each indented by INDENT spaces; at most MOST lines. */
void doc_add_wrapped_text(struct doc *doc, const char *text, int indent, size_t most);

/* What stands beside one line of source (see source_add_lines() in page.c). */
struct gutter {
    int64_t line;
    /* at the left of the source line: a text with style marks, at most six columns wide */
    const char *mark;
    const char *note; /* behind the source line: a text with style marks, or NULL */
    int64_t id;       /* the id of what the line leads to */
    int kind;         /* the kind of what the line leads to, an enum view_kind */
};

/* Add lines FROM to TO of SOURCE, with the marks GUTTER. An arrow points at line AT. If the file
 * is missing or was changed since the recording, a line says so. */
void source_add_lines(struct doc *doc, struct db *db, const struct source *source, int64_t from,
                      int64_t to, int64_t at, const struct gutter *gutter, size_t gutters);

/* text_build_again() makes the text again, because the view shows another target. text_input()
 * first puts TEXT, which the user typed, into the `where` of the target. */
void text_build_again(struct view *view);
void text_input(struct view *view, const char *text);

void page_build_doc(struct doc *doc, struct db *db);

/* Return the code objects of the function that CODE_ID belongs to, as an SQL list such as "(1,
 * 2)". */
const char *page_list_codes(struct doc *doc, struct db *db, int64_t code_id);

/* A part of a page that a C function adds. In a template it stands as a line `call NAME`. */
struct page_part {
    const char *name; /* the name of the part; NULL at the end of the table */
    void (*put)(struct doc *doc, struct db *db, struct query *row);
};

/* The names of all parts of pages that C functions add. The functions part_NAME() are in
 * tui/views/; tui/view_table.c makes a table of them. */
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
