/* trace/template.h -- the language of all pages: text with fields of rows, in files below schemas/.
 *
 * A file is SQL statements. Above each, lines that begin with "--" say how its rows are printed:
 *
 *     --# graph breaks
 *     --|     line {line}: {reason:200}[, at {place}]
 *     SELECT ...
 *
 * Blocks of schemas/pages/ have no statement: C fills in the rows (struct row_facts).
 *
 * docs/internals.md, "Templates", has the words and the fields. This file reads the lines and fills
 * in the fields; tui/page.c prints the lines on the screen, trace/page_text.c elsewhere.
 *
 * Values are text of traced programs: long, hostile. A field escapes its value for where it is
 * printed, and cuts it; nothing of a value is read as a template. */
#ifndef DYNTRACE_TEMPLATE_H
#define DYNTRACE_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/list.h"
#include "lib/style.h"

struct query;

/* What a row is, read by a query. Texts are cut. */
struct value {
    unsigned char type; /* enum query_type */
    union {
        int64_t integer;
        double real;
        const char *text; /* borrowed */
    };
};

/* How it is shown, and the word for that in the files of schemas/. The first six are for texts;
 * ended is how a process ended; differ is a value that is to be told from another such one beside
 * it; words are an outcome's; phase and reason are torch's: what a phase of a compile is about,
 * what broke a graph. percent has one decimal, share three digits, rough two. shell is a text as
 * one word of a shell. */
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

/* By its word, BYTES long; FORMATS: there is none. */
enum cell_format format_named(const char *word, size_t bytes);

/* What a function is called: one without a name is seen, too. */
static inline const char *name_shown(const char *name)
{
    return *name ? name : "''";
}

/* Its text is in ARENA, the first MOST bytes of it. Columns `function` have names. */
enum {
    VALUE_TEXT = 400,
    VALUE_LONG = 4000
}; /* on the screen; elsewhere, unless all is asked for */
struct value value_read(struct arena *arena, struct query *query, int column, size_t most);

/* MADE has room for CELL_TEXT bytes and is returned. WIDTH: how many columns a bar or a line of
 * bars has. */
enum { CELL_TEXT = 512 };
const char *value_print(char *made, const struct value *value, enum cell_format format, int width);

/* SHARE of 1 as a bar, into MADE, of at most WIDTH columns. A bar of a line of them, so high; NONE
 * where there is nothing. A line of them. */
const char *bar_print(char *made, double share, int width);
const char *spark_glyph(double share, const char *none);
void spark_line(char *made, const double *heights, int width);

/* Less than, equal to or greater than zero; NULL is least, numbers come before texts. */
int value_compare(const struct value *a, const struct value *b);

/* TEXT escaped and cut to WIDTH bytes; NULL is "?". */
const char *text_safe(struct arena *arena, const char *text, size_t width);

/* TEXT, which may have styles marked in it, cut or filled to COLUMNS on the screen. */
const char *text_fit(struct arena *arena, const char *text, int columns);

/* "1 call", "2 calls", "2 entries": COUNT of what the BYTES of NOUN name; BRIEFLY: "41.2 M". */
const char *text_counted_as(struct arena *arena, int64_t count, bool briefly, const char *noun,
                            size_t bytes);

/* TEXT between QUOTEs, which are doubled in it. */
void text_quote(FILE *out, const char *text, size_t bytes, char quote);

/* The style of a word, an outcome or a result, and its letter in marked text; STYLE_NORMAL for
 * others. */
int word_style(const char *word);
char word_mark(const char *word);

struct template_line {
    char *word, *rest;
};

struct template_block {
    LIST(struct template_line) lines;
    const char *sql; /* "" : none */
};

struct template
{
    struct arena arena; /* the file, cut into the parts of the blocks */
    LIST(struct template_block) blocks;
};

/* The blocks of TEXT, which is copied, in an empty TEMPLATE. */
void template_open(struct template *template, const char *text);
void template_close(struct template *template);

/* What stands behind WORD; NULL: the block, which may be NULL, has no such line. */
const char *block_word(const struct template_block *block, const char *word);

/* The row that fields are of. */
struct row {
    const struct value *values;
    const char *const *names;
    int count;
};

/* A row that C fills in, for lines without a statement. Names and texts are borrowed. */
enum { FACTS_MOST = 64 };
#define FACT_UNKNOWN INT64_MIN /* an integer that is NULL */
struct row_facts {
    struct value values[FACTS_MOST];
    const char *names[FACTS_MOST];
    int count;
};

void fact_text(struct row_facts *facts, const char *name, const char *text); /* NULL is NULL */
void fact_integer(struct row_facts *facts, const char *name, int64_t integer);
void fact_real(struct row_facts *facts, const char *name, double real);

/* For {?name}: NULL unless IS. */
void fact_is(struct row_facts *facts, const char *name, bool is);

/* The one of these that is for VALUE's type; a condition is an int in C. */
#define fact_of(facts, name, value) \
    _Generic((value),                   \
        bool: fact_is,                  \
        int: fact_is,                   \
        double: fact_real,              \
        char *: fact_text,              \
        const char *: fact_text,        \
        default: fact_integer)(facts, name, value)

struct row facts_row(const struct row_facts *facts);

/* The value of the first field of TEXT, and as an integer. NULL, false: there is none. */
const struct value *row_field(const struct row *row, const char *text);
bool row_integer(const struct row *row, const char *text, int64_t *integer);

/* Where a line is printed: values are escaped for that, styles are what it has for them. */
enum template_way {
    TEMPLATE_PLAIN,    /* as they are, without styles */
    TEMPLATE_SENTENCE, /* as they are, and brackets are text: rules of remedies.txt */
    TEMPLATE_MARKED,   /* on the screen: styles are marked (lib/style.h) */
    TEMPLATE_LINES,    /* in a terminal or a file, without styles */
    TEMPLATE_COLOUR,   /* in a terminal that has colours */
    TEMPLATE_WHOLE,    /* as TEMPLATE_LINES, but no value is cut */
    TEMPLATE_CELL,     /* in a cell of lib/table.h, which escapes itself */
    TEMPLATE_HTML,     /* markup of the template stays, values have none */
    TEMPLATE_SQL,      /* as literals; brackets are text */
};

/* TEXT for HTML: markup is spelled out, so are controls but line ends; cut to WIDTH bytes. */
void html_text(FILE *out, const char *text, size_t width);

/* BYTES of TEXT with fields filled in. NULL: all of it stood in brackets and is left out. */
const char *template_print(struct arena *arena, const struct row *row, enum template_way way,
                           const char *text, size_t bytes);

/* TEXT up to its "=>", with fields filled in; as template_print. */
const char *row_print(struct arena *arena, const struct row *row, const char *text,
                      enum template_way way);

#endif
