/* trace/db.h -- a trace opened for reading: a thin layer over SQLite.
 *
 * A query reads like a query:
 *
 *     struct query *q = db_query(db, "SELECT pid FROM process WHERE process_id > ?1");
 *     query_bind_integer(q, 1, 3);
 *     while (query_step(q))
 *         printf("%lld\n", (long long)query_integer(q, 0));
 *     query_close(q);
 *     ok = !db_failed(db);
 *
 * A trace may come from a stranger. It is opened read-only and defensively: SQL in it cannot call
 * unsafe functions, SQL typed by the user cannot write to any file, memory and time are limited
 * (lib/bounds.h), and a schema that does more than hold rows is refused. SQL sees only our own
 * views (schemas/views.sql). Every function here that fails has reported the error on stderr, in
 * one line. */
#ifndef DYNTRACE_DB_H
#define DYNTRACE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct lines;
struct query;

/* Open the trace at PATH, or for NULL the newest *.db trace in the current directory. NULL when it
 * cannot be read, is no trace, or is one of another schema version. The caller ends it with
 * db_close. */
struct db *db_open(const char *path);

/* For the command that explains damage: the text to print about a damaged file instead of a hint at
 * that command. Borrowed. */
void db_damage_words(const char *words);

void db_close(struct db *db);

/* Open one of many traces, read one after the other. The connection of the last closed trace is
 * reused if its schema is the same, with its prepared statements (trace/swap.h). Pass false for
 * VIEWS to copy tables only. */
struct db *db_open_each(const char *path, bool views);

/* Does this directory have a trace, which db_open(NULL) would open? */
bool db_is_here(void);

/* Like db_open, for a file made from the traces that the user has named: messages call it NAME. */
struct db *db_open_called(const char *path, const char *name);

/* Open the trace at PATH for adding trials (trace/trials.h); nothing else can be written. Creates
 * the tables of trials if there are none. NULL on error, which has been reported. The caller ends
 * it with db_close. */
struct db *db_open_for_trials(const char *path);

/* A private database created by SCRIPT, for results computed from several traces. WHAT: prefix of
 * its error messages. */
struct db *db_scratch(const char *what, const char *script);

/* The absolute path of PATH without links; that of a file without a name (lib/out_file.h)
 * unchanged. NULL with errno. The caller frees it. */
char *db_absolute(const char *path);

/* db_path: the trace's name in messages: the path it was opened by, or db_open_called's NAME.
 * db_file: the path of its file, to open it again. Both are borrowed and live as long as DB. */
const char *db_path(const struct db *db);
const char *db_file(const struct db *db);

/* Make a running query of DB return an error soon. Safe in a signal handler. */
void db_interrupt(struct db *db);
/* Was db_interrupt called since db_retry, or is the time limit over? Long loops without a query
 * check this now and then. */
bool db_interrupted(struct db *db);

/* While a query runs, call CALL every few milliseconds or so. NULL ends that. */
void db_on_progress(struct db *db, void (*call)(void *context), void *context);

/* Prepare the first statement of SQL. NULL on an error (db_failed), or when SQL holds no statement.
 * db_query_next also sets *REST to what follows, which is borrowed from SQL. */
struct query *db_query(struct db *db, const char *sql);
struct query *db_query_next(struct db *db, const char *sql, const char **rest);

/* Does SQLite parse SQL, a statement that uses no table? A statement that makes one is such. */
bool db_parses(const char *sql);

/* The same with integers for its ?1, ?2, and so on; and a loop over its rows, with a query ROW of
 * its own, which is left by its end and by `continue` alone:
 *     db_rows(row, db, "SELECT pid FROM process WHERE process_id > ?1", 3)
 *         printf("%lld\n", (long long)query_integer(row, 0)); */
#define db_asked(db, sql, ...)                              \
    db_asked_(db, sql, (const int64_t[]){0, ##__VA_ARGS__}, \
              sizeof(const int64_t[]){0, ##__VA_ARGS__} / sizeof(int64_t))
#define db_rows(row, ...) \
    for (struct query *row = db_asked(__VA_ARGS__); query_step(row) || (query_close(row), false);)
struct query *db_asked_(struct db *db, const char *sql, const int64_t *values, size_t count);

/* True when any query of DB has failed since it was opened, or since db_retry: the error has been
 * reported. So errors need not be passed upwards: a failed query has no more rows, and a command
 * checks once, at its end. db_retry clears the failure, and damage is reported again. */
bool db_failed(const struct db *db);
void db_retry(struct db *db);

/* Does SQL end with a ';' that is not inside a string or a comment? */
bool db_complete(const char *sql);

/* Parameters count from 1. TEXT is copied. */
void query_bind_integer(struct query *query, int parameter, int64_t value);
void query_bind_text(struct query *query, int parameter, const char *text);
/* of FROM's row */
void query_bind_column(struct query *query, int parameter, struct query *from, int column);
/* bind the first COLUMNS columns of FROM's row to PARAMETER and the parameters after it */
void query_bind_row(struct query *query, int parameter, struct query *from, int columns);

/* Go to the next row; false at the end and on an error. */
bool query_step(struct query *query);

/* True when a step ended in an error. */
bool query_failed(const struct query *query);

/* Execute it, ignoring rows, and reset it. */
void query_put(struct query *query);

/* Start again with the same or new parameters. */
void query_reset(struct query *query);

/* Finalize the query. NULL is allowed. */
void query_close(struct query *query);

/* Execute the statements of SQL, ignoring rows. After "BEGIN" all queries see one snapshot of a
 * trace that is still being recorded. */
bool db_run(struct db *db, const char *sql);

/* Call ROW for every row of SQL, "SELECT each(a, b, ...) FROM ...". For many rows of numbers this
 * takes two thirds of the time of stepping. NULLS has a bit for each value that is NULL, which is
 * 0; at most 16 columns. The rows come in the order in which the table is read, "FROM t NOT
 * INDEXED" by key. False from ROW stops, which is no error. */
void db_each(struct db *db, const char *sql,
             bool (*row)(void *context, const int64_t *values, unsigned nulls), void *context);

/* For trace/scan.c, which does the same for a whole table. */
struct sqlite3 *db_sqlite(struct db *db);

/* Lines of the recorded program's source. Borrowed. */
struct lines *db_lines(struct db *db);

/* Run SCRIPT, which creates tables in `temp` for counts made in C. From here on SQL may write
 * there. */
void db_temporary(struct db *db, const char *script);

/* SQLite's numbers, but for NULL */
enum query_type { QUERY_NULL, QUERY_INTEGER, QUERY_REAL, QUERY_TEXT, QUERY_BLOB };

/* Columns count from 0. Names, texts and blobs are borrowed until the next step. */
int query_columns(struct query *query);
const char *query_name(struct query *query, int column);
enum query_type query_type(struct query *query, int column);
int64_t query_integer(struct query *query, int column); /* NULL is 0 */
double query_real(struct query *query, int column);
/* never NULL; BYTES may be NULL */
const char *query_text(struct query *query, int column, size_t *bytes);

/* query_text cuts texts at 64 KB and marks the cut: for names, reasons, values. query_whole returns
 * up to 16 MB: for texts that are copied, parsed, or naturally long. */
const char *query_whole(struct query *query, int column, size_t *bytes);

/* A column as text that the caller frees; NULL when it is NULL. */
char *query_copy(struct query *query, int column);

/* The first column of the first row of a query that needs no parameters, or
 * OTHERWISE when there is none or it is NULL. */
int64_t db_integer(struct db *db, int64_t otherwise, const char *sql);

/* A value of `meta` as text, NULL when it is not there. The caller frees it. */
char *db_meta(struct db *db, const char *key);
int64_t db_meta_integer(struct db *db, const char *key, int64_t otherwise);

/* ---- a trace that is made ------------------------------------------------ */

/* Turn the empty file PATH into an empty trace that the functions above can write; NULL on an
 * error. The file has no journal and is invalid until db_made, after which nothing more may be
 * written. db_made: false when anything failed. */
struct db *db_make(const char *path);
bool db_made(struct db *db);

#endif
