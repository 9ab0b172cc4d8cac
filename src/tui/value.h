/* tui/value.h -- values of rows: as text, and in order.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_TUI_VALUE_H
#define DYNTRACE_TUI_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct query;

/* What a row is, read by a query. Texts are cut. */
struct value {
    unsigned char type; /* enum query_type */
    union {
        int64_t integer;
        double real;
        char *text; /* owned */
    };
};

/* How it is shown: the words by which the files of schemas/tui/ name these are in value.c. */
enum cell_format {
    AS_TEXT, AS_PATH, AS_OUTCOME, AS_SPARK, /* texts */
    AS_INTEGER, AS_COUNT, AS_ALARM_COUNT, AS_DURATION, AS_TIME, AS_SECONDS, AS_BAR,
    AS_WORDS, AS_PHASE, AS_REASON, /* of an outcome; of torch: what a phase of a compile is about; what broke a graph */
    AS_HIDDEN, FORMATS,
};

/* By its word, BYTES long; FORMATS: there is none. */
enum cell_format format_named(const char *word, size_t bytes);

struct value value_read(struct query *query, int column);
void values_free(struct value *values, size_t count); /* their texts */

/* MADE has room for CELL_TEXT bytes and is returned. WIDTH: how many columns a bar or a line of bars has. */
enum { CELL_TEXT = 512 };
const char *value_print(char *made, const struct value *value, enum cell_format format, int width);

/* Less than, equal to or greater than zero; NULL is least, numbers come before texts. */
int value_compare(const struct value *a, const struct value *b);

/* How many bytes of TEXT, which may have styles marked in it, stand in COLUMNS on the screen, and how many they USE. */
size_t text_room(const char *text, int columns, int *used);

/* TEXT cut or filled to COLUMNS. */
void text_fit(FILE *out, const char *text, int columns);

/* TEXT between QUOTEs, which are doubled in it. */
void text_quote(FILE *out, const char *text, size_t bytes, char quote);

/* The style of a word, an outcome or a result, and its letter in marked text; STYLE_NORMAL for others. */
int word_style(const char *word);
char word_mark(const char *word);

#endif
