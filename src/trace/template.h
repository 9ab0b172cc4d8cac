/* trace/template.h -- the language of all pages: text with fields of rows, in files below schemas/.
 *
 * A file consists of SQL statements. The lines above a statement begin with "--" and tell how its
 * rows are printed:
 *
 *     --# graph breaks
 *     --|     line {line}: {reason:200}[, at {place}]
 *     SELECT ...
 *
 * Blocks of schemas/pages/ have no statement: C fills in the rows (struct row_facts).
 *
 * docs/internals.md, "Templates", describes the lines and the fields. template.c parses the lines
 * and fills in the fields; tui/page.c prints the lines on the screen, trace/page_text.c elsewhere.
 *
 * Values come from traced programs, so they can be long and hostile. A field cuts its value and
 * escapes it for its target. No part of a value is read as a template. */
#ifndef DYNTRACE_TEMPLATE_H
#define DYNTRACE_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/list.h"
#include "lib/style.h"

struct query;

/* A value of a row that a query has read. Long texts are cut. */
struct value {
    unsigned char type; /* the type of the value: enum query_type */
    union {
        int64_t integer;
        double real;
        const char *text; /* borrowed */
    };
};

/* The formats of a field, and the word for each in the files of schemas/:
 *
 *     text                    a text
 *     path                    the last two parts of a path
 *     ended                   how a process ended
 *     differ                  a value, shortened so that it differs from the value beside it
 *     outcome                 an outcome, in its style
 *     spark                   a line of small bars
 *     words                   what an outcome means
 *     phase, reason           what a phase of torch's compile is about; what broke torch's graph
 *     percent, share, rough   a number with one decimal, with three digits, with two digits
 *     shell                   a text as one word of a shell
 *     hidden                  not printed: a column for conditions and links */
/* clang-format off */
#define FORMAT_ROWS(X)    \
    X(TEXT, "text") \
    X(PATH, "path") \
    X(ENDED, "ended") \
    X(DIFFER, "differ") \
    X(OUTCOME, "outcome") \
    X(SPARK, "spark") \
    X(INTEGER, "integer") \
    X(COUNT, "count") \
    X(ALARM_COUNT, "alarm") \
    X(DURATION, "duration") \
    X(TIME, "time") \
    X(SECONDS, "seconds") \
    X(SHARE, "share") \
    X(BAR, "bar") \
    X(WORDS, "words") \
    X(PHASE, "phase") \
    X(REASON, "reason") \
    X(PERCENT, "percent") \
    X(ROUGH, "rough") \
    X(SHELL, "shell") \
    X(HIDDEN, "hidden")
/* clang-format on */

#define FORMAT_(NAME, word) AS_##NAME,
enum cell_format { FORMAT_ROWS(FORMAT_) FORMATS };
#undef FORMAT_

/* Return the format called WORD (BYTES long), or FORMATS if there is none. */
enum cell_format format_named(const char *word, size_t bytes);

/* Return a function's name as it is printed: '' for an empty name, so that people see it. */
static inline const char *name_shown(const char *name)
{
    return *name ? name : "''";
}

/* Return the value of COLUMN. A text is copied to ARENA, at most MOST bytes of it. In a column
 * called `function` an empty name is replaced (name_shown). */
enum {
    VALUE_TEXT = 400, /* most bytes of a text on the screen */
    VALUE_LONG = 4000 /* most bytes elsewhere, unless the user asks for whole texts */
};
struct value value_read(struct arena *arena, struct query *query, int column, size_t most);

/* Write VALUE as text to MADE, which has room for CELL_TEXT bytes, and return MADE. WIDTH is the
 * number of columns of a bar, or of a line of small bars. */
enum { CELL_TEXT = 512 };
const char *value_print(char *made, const struct value *value, enum cell_format format, int width);

/* bar_print: write to MADE a horizontal bar of SHARE (0 to 1) of WIDTH columns.
 *
 * spark_glyph: return one small vertical bar of the height SHARE (0 to 1), or NONE for 0.
 *
 * spark_line: write to MADE a line of WIDTH small bars. The greatest of HEIGHTS has full height. */
const char *bar_print(char *made, double share, int width);
const char *spark_glyph(double share, const char *none);
void spark_line(char *made, const double *heights, int width);

/* Compare two values. Returns a number less than, equal to or greater than zero. NULL comes before
 * numbers, and numbers before texts. */
int value_compare(const struct value *a, const struct value *b);

/* Return TEXT escaped and cut to WIDTH bytes, or "?" for NULL. */
const char *text_safe(struct arena *arena, const char *text, size_t width);

/* Return TEXT cut or filled to COLUMNS on the screen. TEXT may have styles marked in it. */
const char *text_fit(struct arena *arena, const char *text, int columns);

/* Return COUNT with NOUN (BYTES long) in singular or plural: "1 call", "2 calls", "2 entries". If
 * BRIEFLY, large numbers are shortened: "41.2 M calls". */
const char *text_counted_as(struct arena *arena, int64_t count, bool briefly, const char *noun,
                            size_t bytes);

/* Print TEXT between two QUOTEs. A QUOTE inside TEXT is doubled. */
void text_quote(FILE *out, const char *text, size_t bytes, char quote);

/* Return the style of an outcome's or a check result's WORD, or STYLE_NORMAL for other words.
 * word_mark returns the style's letter in marked text. */
int word_style(const char *word);
char word_mark(const char *word);

struct template_line {
    char *word, *rest;
};

struct template_block {
    LIST(struct template_line) lines;
    const char *sql; /* the SQL of the block; "" if the block has no statement */
};

struct template
{
    struct arena arena; /* owned: a copy of the file; the blocks point into it */
    LIST(struct template_block) blocks;
};

/* Parse TEXT into the blocks of TEMPLATE, which is empty. TEXT is copied. */
void template_open(struct template *template, const char *text);
void template_close(struct template *template);

/* Return the rest of the first line of BLOCK that begins with WORD. Returns NULL if there is no
 * such line, or if BLOCK is NULL. */
const char *block_word(const struct template_block *block, const char *word);

/* A row whose columns fill in fields. */
struct row {
    const struct value *values;
    const char *const *names;
    int count;
};

/* A row that C fills in, for blocks without a statement. Names and texts are borrowed. */
enum { FACTS_MOST = 64 };
#define FACT_UNKNOWN INT64_MIN /* the integer that stands for NULL */
struct row_facts {
    struct value values[FACTS_MOST];
    const char *names[FACTS_MOST];
    int count;
};

/* Set the field NAME to TEXT. A TEXT of NULL is the value NULL. */
void fact_text(struct row_facts *facts, const char *name, const char *text);
void fact_integer(struct row_facts *facts, const char *name, int64_t integer);
void fact_real(struct row_facts *facts, const char *name, double real);

/* Set NAME to 1 or NULL, for a condition {?name}. */
void fact_is(struct row_facts *facts, const char *name, bool is);

/* Call the function above that fits the type of VALUE. The type of a comparison in C is int. */
#define fact_of(facts, name, value) \
    _Generic((value),                   \
        bool: fact_is,                  \
        int: fact_is,                   \
        double: fact_real,              \
        char *: fact_text,              \
        const char *: fact_text,        \
        default: fact_integer)(facts, name, value)

struct row facts_row(const struct row_facts *facts);

/* row_field: return the value of the first field in TEXT, or NULL if there is none.
 *
 * row_integer: store the integer value of the first field in TEXT. Returns false if there
 * is none. */
const struct value *row_field(const struct row *row, const char *text);
bool row_integer(const struct row *row, const char *text, int64_t *integer);

/* Where a line is printed. The target decides how values are escaped and how styles look. */
enum template_way {
    TEMPLATE_PLAIN, /* without escapes and without styles */
    /* values unescaped, and brackets are plain text, for rules of remedies.txt */
    TEMPLATE_SENTENCE,
    TEMPLATE_MARKED, /* for the TUI, with styles as marks (lib/style.h) */
    TEMPLATE_LINES,  /* for a terminal or a file, without styles */
    TEMPLATE_COLOUR, /* for a terminal with colours */
    TEMPLATE_WHOLE,  /* like TEMPLATE_LINES, but no value is cut */
    TEMPLATE_CELL,   /* for a cell of lib/table.h, which escapes the text itself */
    TEMPLATE_HTML,   /* in HTML; the template may have markup, values may not */
    TEMPLATE_SQL,    /* values as SQL literals; brackets are plain text */
};

/* Print TEXT escaped for HTML and cut to WIDTH bytes. Line ends stay; other control characters are
 * written out. */
void html_text(FILE *out, const char *text, size_t width);

/* Return the first BYTES of TEXT with the fields filled in. Returns NULL if all text is in brackets
 * and none of them is printed. */
const char *template_print(struct arena *arena, const struct row *row, enum template_way way,
                           const char *text, size_t bytes);

/* Like template_print, for TEXT up to its "=>". */
const char *row_print(struct arena *arena, const struct row *row, const char *text,
                      enum template_way way);

#endif
