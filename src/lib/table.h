/* lib/table.h -- rows printed for people and for programs.
 *
 * Runs in: the viewer.
 *
 *     struct table *t = table_open(stdout, table_format(stdout, json), 2, (const char *[]){"pid",
 *     "name"}); for each row:
 *         table_integer(t, pid);
 *         table_text(t, name, strlen(name));
 *     ok = table_close(t);
 *
 * TABLE_ALIGNED   aligned columns, texts cut where a row would not fit the terminal
 * TABLE_TSV       a line of names, then a line per row; NULL is the empty cell
 * TABLE_CSV       the same by RFC 4180: NULL is an empty cell, an empty text ""
 * TABLE_SAFE_CSV and an apostrophe before a cell that a spreadsheet would read as a formula
 * TABLE_JSON      an array of one object per row TABLE_LINES     an object per row, each on a line
 *
 * Text comes from traced programs, so control characters are escaped: \xNN, \t and \n in the first
 * two, \uNNNN in JSON. CSV, which goes into files, keeps them. */
#ifndef DYNTRACE_TABLE_H
#define DYNTRACE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum table_format { TABLE_ALIGNED, TABLE_TSV, TABLE_CSV, TABLE_SAFE_CSV, TABLE_JSON, TABLE_LINES };

/* JSON when asked for, aligned on a terminal, else TSV. */
enum table_format table_format(FILE *out, bool json);

/* Print texts of aligned tables whole, even where a row is wider than the terminal. A command that
 * has TABLE_WIDE_OPTION sets it for --wide. */
extern bool table_wide;
#define TABLE_WIDE_OPTION                                                 \
    {                                                                     \
        .name = "wide", .read = option_flag, .to = &table_wide,           \
        .help = "do not cut texts in tables to the width of the terminal" \
    }

struct table;

/* NAMES are copied. The caller ends it with table_close. */
struct table *table_open(FILE *out, enum table_format format, int columns,
                         const char *const *names);

/* Print no line of names. */
void table_headless(struct table *table);

/* Each call fills the next cell; the last column ends the row. TEXT is copied. */
void table_text(struct table *table, const char *text, size_t bytes);
void table_string(struct table *table, const char *text); /* NULL is the NULL cell */
void table_figure(struct table *table, const char *text); /* aligned right, like numbers */
void table_integer(struct table *table, int64_t value);
void table_real(struct table *table, double value);
void table_blob(struct table *table, const void *bytes, size_t count);
void table_null(struct table *table);
void table_json(struct table *table, const char *json); /* is JSON already; elsewhere its text */

/* Print the current row in red, where there are colours. */
void table_alarm(struct table *table);

/* Print the remaining rows and free the table. False: a write failed, or T is NULL. */
bool table_close(struct table *table);

/* "1.25 ms", "3 min 20 s", "41.2 M": for people. MADE has room for TABLE_HUMAN bytes and is
 * returned. */
enum { TABLE_HUMAN = 32 };
const char *table_duration(char *made, int64_t nanoseconds);
const char *table_count(char *made, int64_t count);

/* The number of TEXT's bytes that fit into MOST screen columns; *WIDTH: the columns they take. A
 * style (byte 1 and a letter, tui/screen.h) takes none. */
size_t text_room(const char *text, int most, int *width);

#endif
