/* trace/page_text.h -- pages of commands: the rows of statements, printed by their templates.
 *
 * Above each statement of schemas/ are the lines that print its rows (trace/template.h). For each
 * row the lines are printed in the order of the file:
 *
 *     --# heading         before the first row
 *     --| line            a line; left out if all its text is in brackets and no bracket is printed
 *     --+ words           the same without the end of the line, which the next --| prints
 *     --text N  {column}  a longer text, at most N lines of it, indented to the column of the brace
 *     --rows NAME {id}    the rows of another statement, whose ?1 is the id
 *     --call NAME         what C prints about the row
 *     --more N line       replaces row N and all rows after it, unless all are asked for
 *     --fill N            at most N rows, unless all are asked for
 *     --none line         if there is no row
 *
 * A block with --+ and without --| is a part of a line: --# and --more do not end the line. A block
 * of schemas/pages/ has no statement: C passes it each row.
 *
 * docs/internals.md, "Templates", describes the fields. */
#ifndef DYNTRACE_PAGE_TEXT_H
#define DYNTRACE_PAGE_TEXT_H

#include <stdio.h>

#include "trace/template.h"

struct db;

/* A page that is being printed. All pointers are borrowed. */
struct page_text {
    FILE *out;
    struct db *db;
    enum template_way way; /* TEMPLATE_WHOLE if nothing is cut or left out */
    bool all;              /* no row is left out, but long texts are cut */
    bool is_begun;         /* part of a line has been printed, without its end */
    struct row_facts facts;
    const void *context; /* the first argument of `bind` */
    /* Bind the parameters after ?1 of each statement of the page. NULL if there are none. */
    void (*bind)(const void *context, struct query *query);
    /* Print the part NAME of a "--call NAME" line about the row ROW. ROW is NULL if C passed the
     * row. */
    void (*call)(struct page_text *page, const char *name, struct query *row);
};

/* Return TEMPLATE_WHOLE if WHOLE, otherwise the way that fits OUT: with colours or without. */
enum template_way page_text_way(FILE *out, bool whole);

/* Print the rows of the statement NAME, such as "show/guards", about ID. Returns the number of rows
 * printed. */
int64_t page_text_print(struct page_text *page, const char *name, int64_t id);

/* Add a field to the row that page_text_row() prints next. */
#define fact(page, name, value) fact_of(&(page)->facts, name, value)

/* Print page->facts as row NUMBER (from 0) of the block NAME, such as "pages/why/entry", and empty
 * page->facts. Returns false if this row and all later ones are left out. */
bool page_text_row(struct page_text *page, const char *name, int64_t number);

#endif
