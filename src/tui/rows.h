/* tui/rows.h -- the rows of a list (tui/list.h): asked for, kept, filtered and sorted.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_TUI_ROWS_H
#define DYNTRACE_TUI_ROWS_H

#include "tui/list_ask.h"
#include "tui/sheet.h"
#include "tui/view.h"

struct list {
    struct view view;
    struct sheet sheet;           /* owned */
    const struct sheet_block *block; /* of the sheet; NULL: any SQL */
    struct question q;            /* owned */
    LIST(char *) names;           /* of columns that the sheet does not name; each owned */
    const char *row, *id, *title; /* of the block, or NULL */

    /* rows */
    struct value *values;         /* owned: whole: of all rows; windowed: of the window */
    size_t row_count;             /* whole: rows read; windowed: ids */
    int64_t *ids;                 /* owned: windowed */
    size_t window, window_count;  /* windowed: the first row that `values` has, and how many */
    uint32_t *order;              /* owned: whole: rows as they are shown */
    size_t shown;                 /* rows after the filter */
    bool cut, ready;              /* not all rows were taken; the first answer is there */
    char *failed;                 /* owned: why there is none */

    int column, scroll;           /* the chosen column; the first one after the frozen */
    char *sql_text;               /* owned: a user's SQL */

    /* what is being asked */
    struct list_job *asking, *fetching, *seeking, *exporting;
    int64_t wanted_id;            /* stay on this row when rows come anew */
    bool want;
};

static inline bool is_text(const struct list_column *column)
{
    return column->format <= AS_SPARK;
}

static inline struct list_column *column_at(const struct list *list, int column)
{
    return &list->q.columns.at[column];
}

static inline int column_count(const struct list *list)
{
    return (int)list->q.columns.count;
}

static inline bool windowed(const struct list *list)
{
    return list->q.key != NULL;
}

static inline struct work *work_of(const struct list *list)
{
    return list->view.tui->work;
}

/* The values of the row that is shown as number AT, or NULL. */
const struct value *row_at(const struct list *list, size_t at);
/* A value of the chosen row, NULL when there is none (yet). */
const struct value *chosen_value(const struct list *list, const char *column);
const char *cell_print(const struct list *list, char *made, const struct value *row, int column);

void list_choose(struct list *list, size_t at);
/* The row that is chosen now is to be chosen when rows come anew, or in another order. */
void place_keep(struct list *list);
/* Whole lists: filter and sort what is there. */
void order_make(struct list *list);

/* Ask for the rows; FIRST: for a first screenful, or what is quick, to begin with. */
void rows_ask(struct list *list, bool first);
/* The same, for another question or a trace that has changed. */
void rows_restart(struct list *list);
/* COUNT ids from FROM on, for JOB. */
void ids_give(const struct list *list, struct list_job *job, size_t from, size_t count);

void window_forget(struct list *list);
void rows_forget(struct list *list);
void columns_forget(struct list *list);

/* ops->settle() */
void list_settle(struct view *view);

#endif
