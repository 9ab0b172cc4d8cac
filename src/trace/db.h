/* trace/db.h -- a trace opened for reading: a thin layer over SQLite.
 *
 *     struct query *q = db_query(db, "SELECT pid FROM process WHERE process_id > ?1");
 *     query_bind_integer(q, 1, 3);
 *     while (query_step(q))
 *         printf("%lld\n", (long long)query_integer(q, 0));
 *     query_close(q);
 *     ok = !db_has_failed(db);
 *
 * A trace may come from a stranger, so it is opened read-only and defensively. SQL inside the trace
 * cannot call unsafe functions. SQL typed by the user cannot write to any file. Memory and time are
 * limited (lib/bounds.h). A schema that does more than hold rows is refused, and the views are
 * always our own (schemas/views.sql). Every function here that fails has reported the error on
 * stderr, in one line. */
#ifndef DYNTRACE_DB_H
#define DYNTRACE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct lines;
struct query;

/* Open the trace at PATH, or the newest *.db trace in the current directory if PATH is NULL.
 * Returns NULL if the file cannot be read, is not a trace, or has another schema version. The
 * caller closes the result with db_close. */
struct db *db_open(const char *path);

/* Set the text that is printed about a damaged file. The default text advises `dyntrace fsck`; fsck
 * itself sets another text. Borrowed. */
void db_describe_damage(const char *words);

void db_close(struct db *db);

/* Open one of many traces that are read one after the other. The connection of the last closed
 * trace and its prepared statements are reused if the schema is the same (trace/swap.h). Without
 * VIEWS the trace has no views, which is enough to copy its tables. */
struct db *db_open_single_trace(const char *path, bool views);

/* Replace the view NAME by a temporary table with the view's rows, for a command that reads the
 * view several times. Does nothing if the trace has so few code objects and lookups that its views
 * are quick, or if the trace is still being recorded. */
void db_store_view_as_table(struct db *db, const char *name);

/* Does the current directory have a trace that db_open(NULL) would open? */
bool db_is_trace_in_directory(void);

/* Like db_open, for a temporary file made from the traces that the user named. Messages call it
 * NAME. */
struct db *db_open_with_name(const char *path, const char *name);

/* Open the trace at PATH so that trials (trace/trials.h) can be added. Only the tables of trials
 * can be written; they are created if the trace does not have them. Returns NULL after reporting an
 * error. The caller closes the result with db_close. */
struct db *db_open_for_trials(const char *path);

/* Create a private database by running SCRIPT, for example for results that are computed from
 * several traces. Messages about its errors begin with WHAT. */
struct db *db_open_scratch(const char *what, const char *script);

/* Return the absolute path of PATH with symbolic links resolved. The path of a file without a name
 * (lib/out_file.h) is returned unchanged. Returns NULL and sets errno on error. The caller frees
 * the path. */
char *db_make_absolute_path(const char *path);

/* db_get_path: return the name that messages use for the trace: the path given to db_open, or the
 * NAME given to db_open_with_name. db_get_file_path: return the path of the trace's file, to open
 * it again. Both are borrowed and live as long as DB. */
const char *db_get_path(const struct db *db);
const char *db_get_file_path(const struct db *db);

/* Stop the running query of DB soon; the query fails. May be called in a signal handler. */
void db_interrupt(struct db *db);
/* Was db_interrupt called since db_allow_retry, or has the time limit passed? Long loops without
 * queries must call this function now and then. */
bool db_was_interrupted(struct db *db);

/* Call CALL every few milliseconds while a query of DB runs. NULL stops these calls. */
void db_set_progress_callback(struct db *db, void (*call)(void *context), void *context);

/* Prepare the first statement of SQL. Returns NULL on an error (see db_has_failed), or if SQL holds
 * no statement. db_query_next also sets *REST to the text after the statement, borrowed from
 * SQL. */
struct query *db_query(struct db *db, const char *sql);
struct query *db_query_next(struct db *db, const char *sql, const char **rest);

/* Does SQLite parse SQL? SQL is a statement that reads no table, such as CREATE TABLE. */
bool db_is_sql_complete(const char *sql);

/* db_query_with: like db_query, with the integers after SQL bound to ?1, ?2, and so on.
 * db_rows: a loop over the rows of such a query, which is named ROW. Leave the loop only at its end
 * or by `continue`, because the loop closes the query when no row is left:
 *     db_rows(row, db, "SELECT pid FROM process WHERE process_id > ?1", 3)
 *         printf("%lld\n", (long long)query_integer(row, 0)); */
#define db_query_with(db, sql, ...)                                     \
    db_query_with_values_(db, sql, (const int64_t[]){0, ##__VA_ARGS__}, \
                          sizeof(const int64_t[]){0, ##__VA_ARGS__} / sizeof(int64_t))
#define db_rows(row, ...)                                \
    for (struct query *row = db_query_with(__VA_ARGS__); \
         query_step(row) || (query_close(row), false);)
struct query *db_query_with_values_(struct db *db, const char *sql, const int64_t *values,
                                    size_t count);

/* db_has_failed: has any query of DB failed since DB was opened, or since the last db_allow_retry?
 * The error has been reported. Functions need not return it to their callers: a query that failed
 * has no more rows, and a command calls db_has_failed once, at its end. db_allow_retry: forget the
 * failure, so that damage will be reported again. */
bool db_has_failed(const struct db *db);
void db_allow_retry(struct db *db);

/* Is SQL complete: does it end with a ';' that is not inside a string or a comment? */
bool db_complete(const char *sql);

/* Return how many parameters QUERY has. */
int query_parameters(struct query *query);

/* Bind a value to a parameter. Parameters count from 1. A text is copied. */
void query_bind_integer(struct query *query, int parameter, int64_t value);
void query_bind_text(struct query *query, int parameter, const char *text);
/* Bind the value in COLUMN of FROM's current row. */
void query_bind_column(struct query *query, int parameter, struct query *from, int column);
/* Bind the first COLUMNS columns of FROM's current row to PARAMETER and the parameters after it. */
void query_bind_row(struct query *query, int parameter, struct query *from, int columns);

/* Go to the next row. Returns false at the end and on an error. */
bool query_step(struct query *query);

/* Did a step of QUERY fail? */
bool query_failed(const struct query *query);

/* Execute QUERY once, ignore its rows, and reset it. */
void query_execute(struct query *query);

/* Reset QUERY, so that the next step starts again with the same or new parameters. */
void query_reset(struct query *query);

/* End QUERY and free it. QUERY may be NULL. */
void query_close(struct query *query);

/* Execute the statements of SQL and ignore their rows. After "BEGIN" all queries see the same
 * snapshot of a trace that is still being recorded. */
bool db_run(struct db *db, const char *sql);

/* Call ROW for every row of SQL, which is "SELECT each(a, b, ...) FROM ..." with at most 16 columns
 * of integers. If there are many rows, this takes a third less time than query_step. A NULL is
 * passed as 0, and its bit is set in NULLS. The rows come in the order in which SQLite reads the
 * table; with "FROM t NOT INDEXED" this is the order of keys. ROW may return false to stop early,
 * which is no error. */
void db_visit(struct db *db, const char *sql,
              bool (*row)(void *context, const int64_t *values, unsigned nulls), void *context);

/* Return the SQLite connection, with which trace/scan.c reads a whole table fast. No other file
 * should use it. */
struct sqlite3 *db_sqlite(struct db *db);

/* Return the source lines of the recorded program. Borrowed. */
struct lines *db_get_source_lines(struct db *db);

/* Run SCRIPT, which creates tables in SQLite's schema `temp` for counts that C computes. From then
 * on SQL can write to these tables. */
void db_run_in_temporary(struct db *db, const char *script);

/* the types of values have SQLite's numbers, except that QUERY_NULL is 0 */
enum query_type { QUERY_NULL, QUERY_INTEGER, QUERY_REAL, QUERY_TEXT, QUERY_BLOB };

/* Read the columns of the current row, which count from 0. Names, texts and blobs are borrowed
 * until the next step. */
int query_columns(struct query *query);
const char *query_name(struct query *query, int column);
enum query_type query_type(struct query *query, int column);
int64_t query_integer(struct query *query, int column); /* 0 for NULL */
double query_real(struct query *query, int column);
/* Return the text of COLUMN, or "" for NULL. BYTES may be NULL. */
const char *query_text(struct query *query, int column, size_t *bytes);

/* Return the text or blob of COLUMN whole, up to 16 MB, for texts that are copied, parsed or
 * long by nature. For names, reasons and values use query_text, which cuts a text at 64 KB and
 * marks the cut. */
const char *query_whole_value(struct query *query, int column, size_t *bytes);

/* Copy the text of COLUMN. Returns NULL if the column is NULL. The caller frees the copy. */
char *query_copy(struct query *query, int column);

/* Return the first column of the first row of SQL, which has no parameters. Returns OTHERWISE if
 * there is no row or the column is NULL. */
int64_t db_integer(struct db *db, int64_t otherwise, const char *sql);

/* Return the value of KEY in table `meta`, or NULL if it is missing. The caller frees the text. */
char *db_meta(struct db *db, const char *key);
int64_t db_meta_integer(struct db *db, const char *key, int64_t otherwise);

/* ---- creating a new trace ------------------------------------------------ */

/* db_create_trace: create an empty trace in the empty file PATH, and open it for writing with the
 * functions above. Returns NULL on error. The file is written without a journal, so it is no valid
 * trace until db_finish_trace has been called.
 *
 * db_finish_trace: complete the trace. Returns false if anything failed. Nothing may be written
 * afterwards. */
struct db *db_create_trace(const char *path);
bool db_finish_trace(struct db *db);

#endif
