/* tui/text.h -- a view that is lines of text, each of which may lead somewhere.
 *
 * Runs in: the viewer; build() in a thread.
 *
 *     static void breaks_build(struct doc *doc, struct db *db)
 *     {
 *         doc_part(doc, "Why");
 *         doc_line(doc, "  it is %s", doc_safe(doc, text, 80));
 *         doc_leads(doc, VIEW_FUNCTION, code_id, NULL, NULL);      that line
 *     }
 *
 * A view is a constant struct text_spec and such a function. Text from a trace
 * goes through doc_safe(): then no byte of it can be taken for a style. */
#ifndef DYNTRACE_TUI_TEXT_H
#define DYNTRACE_TUI_TEXT_H

#include "tui.h"

struct query;

struct doc_line {
    char *text;           /* owned, marked */
    struct target target; /* owned */
    int64_t source_line;  /* in the doc's file, 0: none */
    bool part;            /* a heading */
};

struct doc {
    struct doc_line *lines; /* owned */
    size_t count, room;
    char **scraps;          /* owned: what doc_safe made */
    size_t scrap_count, scrap_room;
    struct target target;   /* borrowed: of the view */
    int columns;            /* of the screen */
    bool dense;             /* set by build(): no empty lines between parts */
    bool ascii, quick;      /* quick: only what takes no time, for the first look */
    bool whole;             /* set by build(): quick was all */
    bool failed;            /* no memory */
    char title[160];        /* set by build() */
    char *file;             /* owned: set by build(): of source_line, and for an editor */
    int64_t file_line;
    size_t start;           /* set by build(): the line to begin on */
    char *sql;              /* owned: set by build() */
    struct target subject;  /* owned: set by build(): what it is about */
};

struct text_spec {
    void (*build)(struct doc *doc, struct db *db);
    bool staged;  /* build it quick first */
    bool slow;    /* it may take seconds */
    bool wide;    /* build again when the screen's width changes */
};

struct text_job;

struct text {
    struct view view;
    const struct text_spec *spec; /* borrowed */
    struct doc *doc;              /* owned, or NULL */
    size_t top, at;
    bool moved;                   /* the user has chosen a line */
    int skip, built;              /* columns scrolled to the right; width that it was built for */
    char *failed;                 /* owned */
    struct text_job *job;
};

/* A line, by printf. Returned by number. */
size_t doc_line(struct doc *doc, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t doc_part(struct doc *doc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where the last line leads. */
void doc_leads(struct doc *doc, enum view_kind kind, int64_t id, const char *where, const char *title);
void doc_source(struct doc *doc, int64_t line);

/* TEXT escaped and cut to WIDTH bytes; NULL is "?". Lives as long as DOC. */
const char *doc_safe(struct doc *doc, const char *text, size_t width);
const char *doc_column(struct doc *doc, struct query *query, int column, size_t width);
const char *doc_count(struct doc *doc, int64_t count);
const char *doc_time(struct doc *doc, int64_t ns);
const char *doc_print(struct doc *doc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* TEXT cut or filled to COLUMNS on the screen. */
const char *doc_fit(struct doc *doc, const char *text, int columns);

/* COUNT numbers as a line of bars. */
const char *doc_spark(struct doc *doc, const int64_t *numbers, int count);

/* A bar of PART in WHOLE, COLUMNS long. */
const char *doc_bar(struct doc *doc, int64_t part, int64_t whole, int columns);

/* TEXT escaped, at most MOST bytes of it, in as many lines as it needs, the first after BEFORE. The view's spec is `wide`. */
void doc_wrap(struct doc *doc, const char *before, int indent, const char *text, size_t most);

/* Lines of a longer text, each with INDENT spaces; at most MOST. */
void doc_text(struct doc *doc, const char *text, int indent, size_t most);

bool text_open(struct text *text, const struct text_spec *spec);
/* Build it anew: what it is about has changed. */
void text_restart(struct text *text);
void text_close(struct view *view);
void text_settle(struct view *view);
void text_draw(struct view *view, struct screen *screen);
bool text_request(struct view *view, enum request request, const struct key *key);
void text_refresh(struct view *view);
char *text_sql(struct view *view);
bool text_search(struct view *view, const char *text, int direction);
bool text_export(struct view *view, const char *path);
bool text_place(struct view *view, char **file, int64_t *line);
void text_subject(struct view *view, struct target *subject);

#define TEXT_OPS .size = sizeof(struct text), .close = text_close, .settle = text_settle, .draw = text_draw, \
    .request = text_request, .refresh = text_refresh, .sql = text_sql, .search = text_search, .export = text_export, \
    .place = text_place, .subject = text_subject

#endif
