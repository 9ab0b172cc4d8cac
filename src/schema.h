/* schema.h -- the texts under schemas/, built into the program.
 *
 * Runs in: the collector (makes the tables) and the viewer.
 *
 *     schemas/trace.sql      what a trace is: its tables
 *     schemas/views.sql      the definitions: call, recompile, share. db_open creates these views
 *       over any trace, so that SQL in every file here may use them
 *     schemas/queries/       named queries, for users: `dyntrace sql NAME`
 *     schemas/WHO.sql        the statements of one command or part: report.sql, import.sql,
 *                            tui/ledger.sql
 *
 * A file of the last kind holds named statements:
 *
 *     -- name: functions
 *     -- Why it is asked, and what ?1 is.
 *     SELECT qualname FROM hot_functions LIMIT ?1;
 *
 * and C calls `db_query(db, schema_statement("report/functions"))`: the name is the path below
 * schemas/ without ".sql", then the statement's name. Text before the first name is a comment. A
 * file without names is one statement: "tui/ledger". The final ';' of a statement is removed, so
 * that the statement can be used in the FROM (...) of another. A list of ids is bound as a JSON
 * array: "IN (SELECT value FROM json_each(?1))". A new file needs no registration:
 * schemas/embed.sh, run by the Makefile, takes every *.sql. tests/unit/test_schema.c prepares the
 * statements on an empty trace, and `make lint` finds a name that does not exist. */
#ifndef DYNTRACE_SCHEMA_H
#define DYNTRACE_SCHEMA_H

/* meta.schema_version and user_version of the traces that this program makes and reads */
enum { SCHEMA_VERSION = 2 };

extern const char schema_trace_sql[]; /* the text of schemas/trace.sql */
extern const char schema_views_sql[]; /* the text of schemas/views.sql */

/* schema_empty: the bytes of a trace file without rows and views. schema_empty_pages: the result of
 * the statement recover/pages for that file. schema_view_rows: SQL that adds its views as rows of
 * sqlite_schema. Made by schemas/empty.c. */
extern const unsigned char schema_empty[];
extern const unsigned long schema_empty_bytes;
extern const char schema_empty_pages[], schema_view_rows[];

struct schema_query {
    const char *name;
    const char *text;
};

/* An item for each file of schemas/queries/: the file's name without ".sql", and its text. The
 * first line of the text is a comment that says what the query shows. */
extern const struct schema_query schema_queries[];
extern const int schema_query_count;

/* Return the statement called NAME, such as "report/functions", a static text. An unknown name ends
 * the program. */
const char *schema_statement(const char *name);

/* All statements; the last item has no name. */
extern const struct schema_query schema_statements[];

#endif
