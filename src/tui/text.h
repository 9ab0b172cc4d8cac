/* tui/text.h -- a view that is lines of text, each of which may lead somewhere.
 *
 * Runs in: the viewer; ops->build() in a thread.
 *
 *     static void help_build(struct doc *doc, struct db *db)
 *     {
 *         doc_part(doc, "Why");
 *         doc_line(doc, "  it is %s", doc_safe(doc, text, 80));
 *         doc_leads(doc, VIEW_FUNCTION, code_id, NULL, NULL);      that line
 *     }
 *
 * Text from a trace goes through doc_safe(): then no byte of it can be taken for a style.
 *
 * Most of them are pages: made by page_build() from their file in schemas/tui/ (tui/lead.h). */
#ifndef DYNTRACE_TUI_TEXT_H
#define DYNTRACE_TUI_TEXT_H

#include "lib/table.h"
#include "tui/lead.h"

struct source;

struct doc_line {
    const char *text; /* marked; in the arena, as its target's texts */
    struct target target;
    int64_t source_line;  /* in FILE, or in that of the doc's subject; 0: none */
    const char *file;     /* or NULL */
    bool part;            /* a heading */
    int half;             /* where its right half begins, 0: it is one */
    struct target beside; /* where that leads */
};

struct doc {
    struct job job; /* that makes it */
    LIST(struct doc_line) lines;
    struct arena arena;         /* all texts of lines and targets, and what doc_safe made */
    const struct view_ops *ops; /* borrowed: of the view */
    /* borrowed; in a thread only its tables may be read: what else it has changes meanwhile */
    const struct tui *tui;
    struct target target;  /* of the view */
    int columns, rows;     /* of the view */
    bool aside;            /* it stands beside the one on top */
    bool dense;            /* set by build(): no empty lines between parts */
    bool fills;            /* set by build(): it has as many lines as there are rows */
    bool quick;            /* only what takes no time, for the first look */
    bool whole;            /* but this is the second: what build() cut then is wanted whole */
    bool more, cut;        /* set by build(): quick was not all; and a part of it is not whole */
    bool failed;           /* a line says why it is not all */
    const char *heading;   /* the last one of a page */
    char title[160];       /* set by build() */
    size_t start;          /* set by build(): the line to begin on */
    struct target subject; /* set by build(): what it is about */
    /* set by build(): what p and n show, in its place if it is another of its kind */
    struct target previous, next;
};

struct text {
    struct view view;
    struct doc *asked, *doc; /* owned: what is being made, and what is shown; or NULL */
    bool stale;              /* what is shown is not what the view is about now */
    int skip;                /* columns scrolled to the right */
    bool right;              /* the right half of lines that have one is chosen */
};

/* What views that are texts are built on; their ops->build() makes the text. */
extern const struct view_ops text_ops;

/* By printf: a text that lives as long as DOC, a line, a heading. */
#define doc_print(doc, ...) arena_print(&(doc)->arena, __VA_ARGS__)
#define doc_keep(doc, text) arena_keep(&(doc)->arena, text) /* TEXT is DOC's from here on */
#define doc_line(doc, ...) doc_add(doc, doc_print(doc, __VA_ARGS__))
#define doc_part(doc, ...) doc_add_part(doc, doc_print(doc, __VA_ARGS__))
/* the last line, which it is unless there are too many */
struct doc_line *doc_add(struct doc *doc, const char *text);
void doc_add_part(struct doc *doc, const char *text);

/* Where the last line leads; a line leads to one place. Texts of a target are borrowed for as long
 * as DOC lives. */
void doc_target(struct doc *doc, struct target target);
#define doc_leads(doc, kind, id, where, title) \
    doc_target(doc, (struct target){kind, id, 0, VIEW_NONE, where, title})

/* TEXT escaped and cut to WIDTH bytes, NULL is "?"; cut or filled to COLUMNS. They live as long as
 * DOC. */
#define doc_safe(doc, text, width) text_safe(&(doc)->arena, text, width)
#define doc_fit(doc, text, columns) text_fit(&(doc)->arena, text, columns)
#define doc_counted(doc, count, noun) \
    text_counted_as(&(doc)->arena, count, true, noun, strlen(noun))
#define doc_count(doc, count) table_count(arena_take(&(doc)->arena, TABLE_HUMAN), count)
#define doc_time(doc, ns) table_duration(arena_take(&(doc)->arena, TABLE_HUMAN), ns)

/* A line of two: RIGHT leads to TARGET, and stands beside LEFT, which has COLUMNS. */
void doc_beside(struct doc *doc, const char *left, int columns, const char *right,
                struct target target);

/* A line, marked, in as many as it needs, which all lead to TARGET. TEXT lives as long as DOC. */
void doc_wrap(struct doc *doc, const char *text, struct target target);

/* Lines of a longer text, each with INDENT spaces; at most MOST. */
void doc_text(struct doc *doc, const char *text, int indent, size_t most);

/* What stands at the left of a line of source (page.c). */
struct gutter {
    int64_t line;
    const char *mark; /* marked text, at most six columns */
    const char *note; /* marked text after the line, or NULL */
    int64_t id;       /* where it leads */
    int kind;         /* enum view_kind */
};

/* Lines FROM to TO of it, or why there are none; also when it changed since it was recorded. AT is
 * pointed at. */
void source_put(struct doc *doc, struct db *db, const struct source *source, int64_t from,
                int64_t to, int64_t at, const struct gutter *gutter, size_t gutters);

/* The last line of what is defined at FIRST: where the indentation ends. */
int64_t source_end(const struct source *source, int64_t first);

/* Build it anew: what it is about has changed; by what was typed. */
void text_restart(struct view *view);
void text_input(struct view *view, const char *text);

void page_build(struct doc *doc, struct db *db);

/* The code objects that are the same function as CODE_ID: "(1, 2)". */
const char *page_codes(struct doc *doc, struct db *db, int64_t code_id);

/* What C makes of a row of a page, by its NAME in `--call NAME`. */
struct page_part {
    const char *name; /* NULL ends a table of them */
    void (*put)(struct doc *doc, struct db *db, struct query *row);
};

/* All of them, in tui/views/; tui/view_table.c makes the table. */
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
