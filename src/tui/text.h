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
 * Text from a trace goes through doc_safe(): then no byte of it can be taken for a style. */
#ifndef DYNTRACE_TUI_TEXT_H
#define DYNTRACE_TUI_TEXT_H

#include "lib/list.h"
#include "tui/view.h"

struct doc_line {
    const char *text;     /* marked; in the arena */
    struct target target; /* owned */
    int64_t source_line;  /* in the doc's file, 0: none */
    bool part;            /* a heading */
};

struct doc {
    LIST(struct doc_line) lines;
    struct arena arena;     /* texts of the lines, and what doc_safe made */
    const struct view_ops *ops; /* borrowed, as the next: of the view */
    struct target target;
    int columns;            /* of the screen */
    bool dense;             /* set by build(): no empty lines between parts */
    bool quick;             /* only what takes no time, for the first look */
    bool more;              /* set by build(): quick was not all */
    bool failed;            /* no memory */
    const char *heading;    /* the last one of a page */
    char title[160];        /* set by build() */
    char *file;             /* owned: set by build(): of source_line, and for an editor */
    int64_t file_line;
    size_t start;           /* set by build(): the line to begin on */
    struct target subject;  /* owned: set by build(): what it is about */
};

struct text_job;

struct text {
    struct view view;
    struct doc *doc;        /* owned, or NULL */
    bool moved;             /* the user has chosen a line */
    int skip, built;        /* columns scrolled to the right; width that it was built for */
    char *failed;           /* owned */
    struct text_job *job;   /* owned */
};

/* A line, by printf. */
void doc_line(struct doc *doc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A heading. */
void doc_part(struct doc *doc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where the last line leads. TARGET is taken over. */
void doc_target(struct doc *doc, struct target target);
void doc_leads(struct doc *doc, enum view_kind kind, int64_t id, const char *where, const char *title);
void doc_source(struct doc *doc, int64_t line);

/* TEXT escaped and cut to WIDTH bytes; NULL is "?". Lives as long as DOC. */
const char *doc_safe(struct doc *doc, const char *text, size_t width);
const char *doc_count(struct doc *doc, int64_t count);
const char *doc_time(struct doc *doc, int64_t ns);
const char *doc_print(struct doc *doc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* TEXT cut or filled to COLUMNS on the screen. */
const char *doc_fit(struct doc *doc, const char *text, int columns);

/* TEXT escaped, at most MOST bytes of it, in as many lines as it needs, the first after BEFORE. */
void doc_wrap(struct doc *doc, const char *before, int indent, const char *text, size_t most);

/* Lines of a longer text, each with INDENT spaces; at most MOST. */
void doc_text(struct doc *doc, const char *text, int indent, size_t most);

bool text_open(struct view *view);
/* Build it anew: what it is about has changed. */
void text_restart(struct text *text);
void text_close(struct view *view);
void text_settle(struct view *view);
void text_draw(struct view *view, struct screen *screen);
bool text_request(struct view *view, enum request request, const struct key *key);
void text_refresh(struct view *view);
bool text_search(struct view *view, const char *text, int direction);
bool text_export(struct view *view, const char *path);
bool text_place(struct view *view, char **file, int64_t *line);
void text_subject(struct view *view, struct target *subject);

#define TEXT_OPS .size = sizeof(struct text), .open = text_open, .close = text_close, .settle = text_settle, \
    .draw = text_draw, .request = text_request, .refresh = text_refresh, .search = text_search, .export = text_export, \
    .place = text_place, .subject = text_subject

#endif
