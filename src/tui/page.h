/* tui/page.h -- a text view that is made by its file in schemas/tui/ (tui/sheet.h).
 *
 * Runs in: the viewer, in a thread.
 *
 * The parts of a page are the blocks of the file. ?1 in a statement is the row that the view is about. For each row come,
 * in the order in which they stand there:
 *
 *     --| line                         a line
 *     --# heading                      before the first row, and where it is another one
 *     --text N {column}                a longer text, at most N lines of it
 *     --wrap N before{column}          a long line, at most N bytes of it, broken where it has to be
 *     --call NAME                      what C makes of the row: ops->part()
 *     --title words                    beside the view's name
 *     --file {column} {line}           the file that `o` opens
 *     --subject => VIEW {id} AT {ns}   what the page is about
 *     --start                          the cursor begins on the first row
 *     --more N line                    in place of row N, which is the last
 *     --none line                      when there is no row; "# " begins a heading
 *     --slow line                      not for the first look, which has this line instead, or none
 *     --dense                          no empty lines between parts
 */
#ifndef DYNTRACE_TUI_PAGE_H
#define DYNTRACE_TUI_PAGE_H

#include "tui/text.h"

void page_build(struct doc *doc, struct db *db);

/* For ops->part(): a statement of "tui/NAME", ?1 bound to what the page is about. */
struct query *page_query(struct doc *doc, struct db *db, const char *name);

#define PAGE_OPS .build = page_build, TEXT_OPS

#endif
