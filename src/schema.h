/* schema.h -- the texts under schemas/, built into the program.
 *
 * Runs in: the collector (makes the tables) and the viewer (views, named queries, its own statements).
 *
 * The Makefile turns the files into build/schema_sql.c. */
#ifndef DYNTRACE_SCHEMA_H
#define DYNTRACE_SCHEMA_H

enum { SCHEMA_VERSION = 1 }; /* the newest meta.schema_version that this program reads */

extern const char schema_trace_sql[]; /* schemas/trace.sql */
extern const char schema_views_sql[]; /* schemas/views.sql */

/* A file of schemas/queries/. Its first line is a comment that says what it shows. */
struct schema_query {
    const char *name; /* file name without ".sql" */
    const char *text; /* the whole file */
};
extern const struct schema_query schema_queries[];
extern const int schema_query_count;

/* A file of another folder of schemas/, by folder and name without ".sql": "tui/ledger". It has to be there. */
const char *schema_statement(const char *name);

#endif
