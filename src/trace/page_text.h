/* trace/page_text.h -- pages of commands: the rows of statements, printed by their templates.
 *
 * A statement of schemas/ has the lines of its rows above it (trace/template.h). For each row come,
 * in the order in which they stand there:
 *
 *     --# heading         before the first row
 *     --| line            a line; left out where all of it stands in brackets and is NULL
 *     --text N  {column}  a longer text, at most N lines of it, set in as far as the brace is
 *     --rows NAME {id}    the rows of another statement, whose ?1 is the id
 *     --call NAME         what C prints of the row
 *     --more N line       in place of row N, which is the last, unless all is asked for
 *     --none line         when there is no row
 *
 * docs/internals.md, "Templates", has the fields. */
#ifndef DYNTRACE_PAGE_TEXT_H
#define DYNTRACE_PAGE_TEXT_H

#include <stdio.h>

#include "trace/template.h"

struct db;

/* All of it borrowed. */
struct page_text {
    FILE *out;
    struct db *db;
    enum template_way way; /* TEMPLATE_WHOLE: nothing is cut or left out */
    const void *context;   /* of bind() */
    /* Bind what all statements of the page take, but ?1. */
    void (*bind)(const void *context, struct query *query);
    /* Print the part NAME, behind --call, of a row. */
    void (*call)(const char *name, struct query *row);
};

/* TEMPLATE_WHOLE if all is asked for; else as OUT has colours. */
enum template_way page_text_way(FILE *out, bool whole);

/* Print the rows of the statement NAME, "show/guards", about ID. How many lines were of rows. */
int64_t page_text_print(struct page_text *page, const char *name, int64_t id);

#endif
