/* tui/sheet.h -- a view's file in schemas/tui/: SQL statements, and how their rows are shown.
 *
 * A file is blocks: lines "--word rest", then a statement. docs/internals.md, "The files of the
 * screen", has the words, and the fields that may stand behind them. */
#ifndef DYNTRACE_TUI_SHEET_H
#define DYNTRACE_TUI_SHEET_H

#include "tui/view.h"

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

/* How it is shown, and the word for that in the files of schemas/tui/. The first six are for texts;
 * ended is how a process ended; differ is a value that is to be told from another such one beside
 * it; words are an outcome's; phase and reason are torch's: what a phase of a compile is about,
 * what broke a graph. */
/* clang-format off */
#define FORMAT_ROWS(X)                                                                             \
    X(TEXT, "text") X(PATH, "path") X(ENDED, "ended") X(DIFFER, "differ") X(OUTCOME, "outcome")    \
    X(SPARK, "spark") X(INTEGER, "integer") X(COUNT, "count") X(ALARM_COUNT, "alarm")              \
    X(DURATION, "duration") X(TIME, "time") X(SECONDS, "seconds") X(BAR, "bar") X(WORDS, "words")  \
    X(PHASE, "phase") X(REASON, "reason") X(HIDDEN, "hidden")
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

/* Its text is in ARENA. Columns `function` have names. */
struct value value_read(struct arena *arena, struct query *query, int column);

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

/* "1 call", "2 calls", "2 entries": COUNT of what the BYTES of NOUN name. */
const char *text_counted(struct arena *arena, int64_t count, const char *noun, size_t bytes);

/* TEXT between QUOTEs, which are doubled in it. */
void text_quote(FILE *out, const char *text, size_t bytes, char quote);

/* The style of a word, an outcome or a result, and its letter in marked text; STYLE_NORMAL for
 * others. */
int word_style(const char *word);
char word_mark(const char *word);

struct sheet_line {
    char *word, *rest;
};

struct sheet_block {
    LIST(struct sheet_line) lines;
    const char *sql; /* "" : none */
};

struct sheet {
    struct arena arena; /* the file, cut into the parts of the blocks */
    LIST(struct sheet_block) blocks;
};

/* The view NAME's file, with CODES for "$codes", or NULL, as the blocks of an empty SHEET. */
void sheet_open(struct sheet *sheet, const char *name, const char *codes);
void sheet_close(struct sheet *sheet);

/* What stands behind WORD; NULL: the block, which may be NULL, has no such line. */
const char *block_word(const struct sheet_block *block, const char *word);

/* The row that fields are of. */
struct row {
    const struct value *values;
    const char *const *names;
    int count;
};

/* The value of the first field of TEXT, and as an integer. NULL, false: there is none. */
const struct value *row_field(const struct row *row, const char *text);
bool row_integer(const struct row *row, const char *text, int64_t *integer);

/* TEXT up to its "=>", with fields filled in. MARKED: styles are marked and values are escaped, for
 * a doc; else plain. NULL: all of it stood in brackets and is left out. */
const char *row_print(struct arena *arena, const struct row *row, const char *text, bool marked);

/* What a column called NAME, of SQL or of a command's output, leads to by the ID in it; VIEW_NONE:
 * nowhere. */
struct target id_target(const char *name, int64_t id);

/* Where TEXT leads; VIEW_NONE: nowhere. Its texts are in ARENA. */
struct target row_target(struct arena *arena, const struct row *row, const char *text);

#endif
