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
 *     --call NAME         a part that C prints about the row (page_text.call)
 *     --more N line       a line in place of row N and all rows after it, unless all are wanted
 *     --fill N            at most N rows are printed, unless all are wanted
 *     --none line         a line that is printed if there are no rows
 *
 * A block with --+ and without --| prints a part of a line: its --# and --more do not end the line.
 * A block of schemas/pages/ has no statement: C fills in each row (page_text_print_row).
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
    /* how the page is printed; with TEMPLATE_WHOLE nothing is cut or left out */
    enum template_way way;
    bool all;      /* no row is left out, but long texts are cut */
    bool is_begun; /* the beginning of a line has been printed, but not its end */
    struct row_facts facts;
    const void *context; /* the first argument of the function `bind` */
    /* Bind the parameters after ?1 of a statement of the page. NULL if the
     * statements have only ?1. */
    void (*bind)(const void *context, struct query *query);
    /* Print the part of the page that the line "--call NAME" of a template stands for. ROW is the
     * current row of the query, or NULL if the row comes from C code and not from a query. */
    void (*call)(struct page_text *page, const char *name, struct query *row);
};

/* Return how to print a page to OUT: TEMPLATE_WHOLE if WHOLE, otherwise TEMPLATE_COLOUR if OUT
 * shows colours, otherwise TEMPLATE_LINES. */
enum template_way page_text_choose_way(FILE *out, bool whole);

/* Print the rows of the statement NAME, such as "show/guards", about ID. Returns the number of rows
 * printed. */
int64_t page_text_print_rows(struct page_text *page, const char *name, int64_t id);

/* Add a field to the row that page_text_print_row() prints next. */
#define fact(page, name, value) fact_of(&(page)->facts, name, value)

/* Print page->facts as row NUMBER (from 0) of the block NAME, such as "pages/why/entry". Then empty
 * page->facts. Returns false if this row is left out, and so are all later rows. */
bool page_text_print_row(struct page_text *page, const char *name, int64_t number);

#endif
