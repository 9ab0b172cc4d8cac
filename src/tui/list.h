/* tui/list.h -- a view that is a table of rows, which a query finds.
 *
 * Runs in: the viewer.
 *
 * A list is its file in schemas/tui/ (tui/sheet.h). Everything else -- scrolling, sorting, filters, search, export,
 * refreshing, where Enter leads -- is here.
 *
 *     whole      all rows are read once and kept (up to a limit): for results that take time to compute and are short.
 *                Sorted and filtered here.
 *     windowed   only the ids of all rows are kept, 8 bytes each; what is on the screen is fetched by id. For tables of
 *                millions of rows, which open at once. Sorted and filtered by SQLite.
 *
 * The words of its block:
 *
 *     --| name   format width   => VIEW {id} ...     a column, in the order of the statement; what Enter opens there.
 *                                                    Columns that the statement has after these are not shown.
 *     --row => VIEW {id} ...       what Enter opens elsewhere
 *     --id column                  names a row when rows are asked for again;  --window column: and the list is windowed
 *     --sort column                by which it begins sorted; without, as the statement has it
 *     --title column               names the row in titles
 *     --subject => VIEW {id} ...   what the row is about, for replay, timeline, what-if
 *     --none words                 when there are no rows
 *
 * A column "where", FILE:LINE, is what `o` opens. With two blocks the first is quick: the same columns as far as they are
 * known at once, shown until the others are. */
#ifndef DYNTRACE_TUI_LIST_H
#define DYNTRACE_TUI_LIST_H

#include "tui/rows.h"

bool list_open(struct view *view);
/* Any SQL; columns are what it has. */
bool list_open_sql(struct list *list, const char *sql);

void list_close(struct view *view);
void list_draw(struct view *view, struct screen *screen);
bool list_request(struct view *view, enum request request, const struct key *key);
void list_refresh(struct view *view);
char *list_sql(struct view *view);
bool list_search(struct view *view, const char *text, int direction);
void list_filter(struct view *view, const char *text);
bool list_export(struct view *view, const char *path);
bool list_place(struct view *view, char **file, int64_t *line);
void list_subject(struct view *view, struct target *subject);

#define LIST_OPS .size = sizeof(struct list), .close = list_close, .settle = list_settle, .draw = list_draw, \
    .request = list_request, .refresh = list_refresh, .sql = list_sql, .search = list_search, .filter = list_filter, \
    .export = list_export, .place = list_place, .subject = list_subject

#endif
