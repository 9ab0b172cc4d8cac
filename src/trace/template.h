/* trace/template.h -- the language of all pages: text with fields that rows fill in, in files below
 * schemas/.
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

/* One value of a row. value_read() reads it from a query, and cuts a long text. */
struct value {
    unsigned char type; /* the type of the value, a member of enum query_type */
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
 *     differ                  a value, shortened but still different from the value next to it
 *     outcome                 an outcome, in its style
 *     spark                   a line of small bars
 *     words                   what an outcome means
 *     phase                   what a phase of torch's compile does
 *     reason                  the first part of torch's reason: what broke the graph
 *     percent, share, rough   a number with one decimal, with three digits, with two digits
 *     shell                   a text as one word of a shell
 *     hidden                  nothing: the column is only for conditions and links */
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

/* Return the format whose name is WORD, which has BYTES bytes. Returns FORMATS if there is none. */
enum cell_format format_from_name(const char *word, size_t bytes);

/* Return the name of a function as pages print it. An empty name, which nobody would see, is
 * printed as ''. */
static inline const char *name_to_show(const char *name)
{
    return *name ? name : "''";
}

/* Return the value of COLUMN in QUERY's current row. At most MOST bytes of a text are copied to
 * ARENA. If the column is called `function`, an empty name is replaced (name_to_show). */
enum {
    VALUE_TEXT = 400, /* the most bytes of a text that the screen shows */
    /* the most bytes of a text that is not on the screen, unless the user asks for whole texts */
    VALUE_LONG = 4000
};
struct value value_read(struct arena *arena, struct query *query, int column, size_t most);

/* Write VALUE as text to MADE, which has room for CELL_TEXT bytes, and return MADE. If FORMAT draws
 * bars, WIDTH is the number of columns that they take. */
enum { CELL_TEXT = 512 };
const char *value_print(char *made, const struct value *value, enum cell_format format, int width);

/* bar_print: write to MADE a horizontal bar of SHARE (0 to 1) of WIDTH columns.
 *
 * spark_choose_glyph: return one small vertical bar of the height SHARE (0 to 1), or NONE for 0.
 *
 * spark_make_line: write to MADE a line of WIDTH small bars. The greatest of HEIGHTS has full
 * height. */
const char *bar_print(char *made, double share, int width);
const char *spark_choose_glyph(double share, const char *none);
void spark_make_line(char *made, const double *heights, int width);

/* Compare two values. Returns a number less than, equal to or greater than zero. NULL comes before
 * numbers, and numbers before texts. */
int value_compare(const struct value *a, const struct value *b);

/* Return TEXT escaped and cut to WIDTH bytes. Returns "?" if TEXT is NULL. */
const char *text_make_printable(struct arena *arena, const char *text, size_t width);

/* Return TEXT cut to COLUMNS columns of the screen, or filled with blanks. TEXT may contain style
 * marks (lib/style.h). */
const char *text_shorten_to_columns(struct arena *arena, const char *text, int columns);

/* Return COUNT and the word NOUN, which has BYTES bytes, in singular or plural: "1 call", "2
 * calls", "2 entries". If BRIEFLY, large numbers are shortened: "41.2 M calls". */
const char *text_count_with_noun(struct arena *arena, int64_t count, bool briefly, const char *noun,
                                 size_t bytes);

/* Print TEXT between two characters QUOTE. A QUOTE inside TEXT is doubled, as in SQL. */
void text_quote(FILE *out, const char *text, size_t bytes, char quote);

/* word_choose_style: return the style of WORD if it is an outcome or the result of a check,
 * otherwise STYLE_NORMAL. word_choose_mark: return the letter of this style in marked text. */
int word_choose_style(const char *word);
char word_choose_mark(const char *word);

struct template_line {
    char *word, *rest;
};

struct template_block {
    LIST(struct template_line) lines;
    const char *sql; /* the SQL statement of the block, or "" if it has none */
};

struct template
{
    struct arena arena; /* owned: a copy of the file; the blocks have pointers into it */
    LIST(struct template_block) blocks;
};

/* Parse TEXT into the blocks of TEMPLATE, which is empty. TEXT is copied. */
void template_open(struct template *template, const char *text);
void template_close(struct template *template);

/* Return the text after WORD in the first line of BLOCK that begins with WORD. Returns NULL if
 * there is no such line, or if BLOCK is NULL. */
const char *block_text_after_word(const struct template_block *block, const char *word);

/* A row of a query, or of C, whose columns fill in the fields of a template. */
struct row {
    const struct value *values;
    const char *const *names;
    int count;
};

/* A row that C fills in, for blocks without a statement. Names and texts are borrowed. */
enum { FACTS_MOST = 64 };
#define FACT_UNKNOWN INT64_MIN /* an integer that stands for NULL */
struct row_facts {
    struct value values[FACTS_MOST];
    const char *names[FACTS_MOST];
    int count;
};

/* Set the field NAME to TEXT, which may be NULL. */
void fact_text(struct row_facts *facts, const char *name, const char *text);
void fact_integer(struct row_facts *facts, const char *name, int64_t integer);
void fact_real(struct row_facts *facts, const char *name, double real);

/* Set the field NAME to 1 if IS, otherwise to NULL. The condition {?name} tests such a field. */
void fact_bool(struct row_facts *facts, const char *name, bool is);

/* Set the field NAME by the function above that fits the type of VALUE. An int counts as a bool,
 * because comparisons have the type int in C. */
#define fact_of(facts, name, value) \
    _Generic((value),                   \
        bool: fact_bool,                  \
        int: fact_bool,                   \
        double: fact_real,              \
        char *: fact_text,              \
        const char *: fact_text,        \
        default: fact_integer)(facts, name, value)

struct row facts_make_row(const struct row_facts *facts);

/* TEXT is a line of a template. row_value_of_field: return ROW's value for the first field {name}
 * in TEXT. Returns NULL if TEXT has no field, or if ROW has no such column. row_integer_of_field:
 * store this value in *INTEGER. Returns false if it is not an integer. */
const struct value *row_value_of_field(const struct row *row, const char *text);
bool row_integer_of_field(const struct row *row, const char *text, int64_t *integer);

/* Where a line is printed. This decides how values are escaped and how styles look. */
enum template_way {
    TEMPLATE_PLAIN, /* as it is: values are not escaped, and there are no styles */
    /* for rules of remedies.txt: values are not escaped, and brackets are plain text */
    TEMPLATE_SENTENCE,
    TEMPLATE_MARKED, /* printed by the TUI, with marks for styles (lib/style.h) */
    TEMPLATE_LINES,  /* printed to a terminal or a file, without styles */
    TEMPLATE_COLOUR, /* printed to a terminal, with colours */
    TEMPLATE_WHOLE,  /* like TEMPLATE_LINES, but without cutting any value */
    TEMPLATE_CELL,   /* for a cell of lib/table.h, which escapes the text itself */
    TEMPLATE_HTML,   /* in HTML; the template may have markup, values may not */
    TEMPLATE_SQL,    /* for SQL: values are literals, and brackets are plain text */
};

/* Print TEXT escaped for HTML and cut to WIDTH bytes. Line ends stay; other control characters
 * become visible escapes. */
void html_text(FILE *out, const char *text, size_t width);

/* Return the first BYTES bytes of TEXT with the fields filled in. Returns NULL if the line is left
 * out: if TEXT begins with a bracket, and the result is empty. */
const char *template_print(struct arena *arena, const struct row *row, enum template_way way,
                           const char *text, size_t bytes);

/* Like template_print(), for TEXT up to its "=>". What follows "=>" is a link to another view. */
const char *row_print(struct arena *arena, const struct row *row, const char *text,
                      enum template_way way);

#endif
