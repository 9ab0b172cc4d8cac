/* cmd/writer.h -- a trace being made from other traces: a thin layer over SQLite.
 *
 * Runs in: the viewer. (The collector has recorder_sqlite.)
 *
 *     struct writer *w = writer_open(path);            an empty trace: the schema
 *     struct insert *row = writer_insert(w, "INSERT INTO thread VALUES (?1, ?2, ?3, ?4)");
 *     insert_copy(row, 1, query, 0); ...; ok = insert_run(row);
 *     insert_close(row);
 *     ok = writer_finish(w);                           indexes; commits
 *     writer_close(w);
 *
 * Every function here that fails has said so on stderr, in one line. */
#ifndef DYNTRACE_WRITER_H
#define DYNTRACE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/option.h"

struct query;
struct writer;
struct insert;

/* What a command that makes a trace is given, and its options. */
extern struct writer_given {
    const char *out; /* -o */
    bool force;
} writer_given;
extern const struct option writer_options[];

/* Make PATH, an empty file, an empty trace. NULL on an error. The file is worth nothing before writer_finish: it has
 * no journal. */
struct writer *writer_open(const char *path);
bool writer_run(struct writer *writer, const char *sql);
bool writer_finish(struct writer *writer);
void writer_close(struct writer *writer);

struct insert *writer_insert(struct writer *writer, const char *sql);
void insert_integer(struct insert *insert, int parameter, int64_t value);
void insert_text(struct insert *insert, int parameter, const char *text); /* copied; NULL is NULL */
/* The COLUMN of the current row of QUERY, whatever its type. Borrowed until insert_run. */
void insert_copy(struct insert *insert, int parameter, struct query *query, int column);
/* Insert the row; parameters are NULL again. */
bool insert_run(struct insert *insert);
/* For a statement that asks: the number in the first column of its first row. False: it has no row. */
bool insert_find(struct insert *insert, int64_t *found);
/* For one that asks for more: go to its next row; false at the end, where it can be asked anew, and on an error. Texts are
 * borrowed until the next row; NULL is NULL. */
bool insert_next(struct insert *insert);
int64_t insert_get_integer(struct insert *insert, int column);
const char *insert_get_text(struct insert *insert, int column);
void insert_close(struct insert *insert);

#endif
