/* lib/table.h -- rows printed for people and for programs.
 *
 * Runs in: the viewer.
 *
 *     struct table *t = table_open(stdout, table_format(stdout, json), 2,
 *                                  (const char *[]){"pid", "name"});
 *     for each row:
 *         table_put_integer(t, pid);
 *         table_put_text(t, name, strlen(name));
 *     ok = table_close(t);
 *
 * TABLE_ALIGNED   aligned columns, texts cut where a row would not fit the terminal
 * TABLE_TSV       a line of names, then a line per row; NULL is the empty cell
 * TABLE_CSV       the same by RFC 4180: NULL is an empty cell, an empty text ""
 * TABLE_SAFE_CSV and an apostrophe before a cell that a spreadsheet would read as a formula
 * TABLE_JSON      an array of one object per row
 * TABLE_LINES     an object per row, each on a line
 * TABLE_ARRAYS    an array of the names, then an array per row, each on a line; a blob
 *                 is {"hex": ...}
 *
 * Text comes from traced programs, so control characters are escaped: as \xNN, \t and \n in the
 * first two formats, as \uNNNN in JSON. CSV keeps them, unless it is printed on a terminal. */
#ifndef DYNTRACE_TABLE_H
#define DYNTRACE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum table_format {
    TABLE_ALIGNED,
    TABLE_TSV,
    TABLE_CSV,
    TABLE_SAFE_CSV,
    TABLE_JSON,
    TABLE_LINES,
    TABLE_ARRAYS,
};

/* Return TABLE_JSON if JSON, otherwise TABLE_ALIGNED for a terminal and TABLE_TSV for anything
 * else. */
enum table_format table_format(FILE *out, bool json);

/* If true, the texts of aligned tables are printed whole, even where a row is wider than the
 * terminal. Set by --wide (TABLE_WIDE_OPTION). */
extern bool table_wide;
#define TABLE_WIDE_OPTION                                                 \
    {                                                                     \
        .name = "wide", .read = option_flag, .to = &table_wide,           \
        .help = "do not cut texts in tables to the width of the terminal" \
    }

struct table;

/* Begin a table with COLUMNS columns called NAMES, which are copied. The caller ends it with
 * table_close. */
struct table *table_open(FILE *out, enum table_format format, int columns,
                         const char *const *names);

/* Do not print the line of column names. */
void table_omit_headings(struct table *table);

/* Write the next cell of the current row. The cell of the last column ends the row. TEXT
 * is copied. */
void table_put_text(struct table *table, const char *text, size_t bytes);
/* Write a text cell. A TEXT of NULL is a NULL cell. */
void table_put_string(struct table *table, const char *text);
/* Write a text cell that is aligned right, like a number. */
void table_put_figure(struct table *table, const char *text);
void table_put_integer(struct table *table, int64_t value);
void table_put_real(struct table *table, double value);
void table_put_blob(struct table *table, const void *bytes, size_t count);
void table_put_null(struct table *table);
/* Write a cell whose text is JSON. The JSON formats do not quote it. */
void table_put_json(struct table *table, const char *json);

/* Print the current row in red if the output is a terminal with colours. */
void table_mark_row_red(struct table *table);

/* Print the remaining rows and free the table. Returns false if a write failed, or if TABLE is
 * NULL. */
bool table_close(struct table *table);

/* Format a number for people: "1.25 ms", "3 min 20 s", "41.2 M". MADE has room for TABLE_HUMAN
 * bytes and is returned. */
enum { TABLE_HUMAN = 32 };
const char *table_duration(char *made, int64_t nanoseconds);
const char *table_count(char *made, int64_t count);

/* Return how many bytes of TEXT fit into MOST screen columns. *WIDTH becomes the number of columns
 * that these bytes take. Style marks (lib/style.h) take no column. */
size_t text_bytes_that_fit(const char *text, int most, int *width);

#endif
