/* trace/page_text.h -- pages of commands: the rows of statements, printed by their templates.
 *
 * A statement of schemas/ has the lines of its rows above it (trace/template.h). For each row come,
 * in the order in which they stand there:
 *
 *     --# heading         before the first row
 *     --| line            a line; left out where all of it stands in brackets and is NULL
 *     --+ words           the same without the end of the line, which the next --| prints
 *     --text N  {column}  a longer text, at most N lines of it, set in as far as the brace is
 *     --rows NAME {id}    the rows of another statement, whose ?1 is the id
 *     --call NAME         what C prints of the row
 *     --more N line       in place of row N, which is the last, unless all is asked for
 *     --fill N            no more than N rows, unless all is asked for
 *     --none line         when there is no row
 *
 * A block with --+ and without --| is a part of a line: --# and --more do not end it. A block of
 * schemas/pages/ has no statement: C hands its rows over one by one.
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
    bool all;              /* no row is left out, but texts are cut */
    bool is_begun;         /* a line is, and has no end yet */
    struct row_facts facts;
    const void *context; /* of the functions */
    /* Bind what all statements of the page take, but ?1; NULL: that is all. */
    void (*bind)(const void *context, struct query *query);
    /* Print the part NAME, behind --call, of a row; ROW is NULL where C has it. */
    void (*call)(struct page_text *page, const char *name, struct query *row);
};

/* TEMPLATE_WHOLE if all is asked for; else as OUT has colours. */
enum template_way page_text_way(FILE *out, bool whole);

/* Print the rows of the statement NAME, "show/guards", about ID. How many lines were of rows. */
int64_t page_text_print(struct page_text *page, const char *name, int64_t id);

/* A fact of the row that page_text_row() prints next. */
#define fact(page, name, value) fact_of(&(page)->facts, name, value)

/* Print page->facts, which are none then, as row NUMBER, from 0, of the block NAME,
 * "pages/why/entry". False: it and those after it are left out. */
bool page_text_row(struct page_text *page, const char *name, int64_t number);

#endif
