/* tui/list.h -- a view that is a table of rows, which a query finds.
 *
 * Runs in: the viewer; the jobs in threads.
 *
 * A list is its file in schemas/tui/ (tui/lead.h). Everything else -- scrolling, sorting, filters,
 * search, export, refreshing, where Enter leads -- is in list.c (drawing, and the keys) and rows.c
 * (what is asked, and the rows that are there).
 *
 *     whole      all rows are read once and kept (up to a limit): for results that take time to
 *                compute and are short. Sorted and filtered here.
 *     windowed   only the ids of all rows are kept, at most 4 bytes each; what is on the screen is
 *                fetched by id. For tables of millions of rows, which open at once. Sorted and
 *                filtered by SQLite. */
#ifndef DYNTRACE_TUI_LIST_H
#define DYNTRACE_TUI_LIST_H

#include "tui/lead.h"

struct list_column {
    const char *name; /* in the SQL, and the heading */
    enum cell_format format;
    int width; /* at least; texts share what is left of the line */
    /* what Enter opens on this column (tui/lead.h); NULL: what the row opens */
    const char *lead;
    bool empty; /* whole lists of a template: no row has anything there but 0 */
};

typedef LIST(struct list_column) list_columns;

struct question {
    const char *sql; /* borrowed, as all texts here */
    /* whole lists: the same columns as far as they are known at once, or NULL */
    const char *quick;
    const char *key;   /* windowed: the column that names a row; NULL: whole */
    const char *id;    /* that, and of whole lists one that does; or NULL */
    const char *where; /* a condition, or NULL */
    list_columns columns;
    const char *filter; /* words, or a condition; or NULL */
    /* that, as SQL: "total > 10ms" with numbers for units; NULL: it is words */
    const char *condition;
    int sort; /* column, -1: as it comes */
    bool descending;
    bool typed; /* a user's SQL, not all of which can stand within another query */
    bool cut;   /* whole: not all rows are kept, so SQLite sorts and filters them */
};

/* ASK_ROWS    whole lists: all rows, at first those that are quick
 * ASK_IDS     windowed lists: ids of all rows as they are sorted and filtered; at first a screenful
 * ASK_WINDOW  windowed lists: the rows of some ids
 * ASK_SEEK    windowed lists: the next row with a text in it
 * ASK_MOMENT  the id of the last row that is not after a moment
 * ASK_EXPORT  all rows to a file */
enum ask { ASK_ROWS, ASK_IDS, ASK_WINDOW, ASK_SEEK, ASK_MOMENT, ASK_EXPORT };

struct list_job {
    struct job job;
    enum ask what;
    char *sql;  /* owned */
    bool first; /* another will ask for all */

    /* given */
    size_t id_count; /* ASK_WINDOW, ASK_SEEK; ASK_IDS: found */
    /* them, each less the first; or none, while each is one more than that before */
    LIST(int32_t) ids;
    int64_t base; /* the first; ASK_MOMENT: found */
    /* ASK_WINDOW: which is the first; ASK_SEEK: where it stood, then where it is */
    size_t from;
    int direction;
    int64_t moment_ns;    /* ASK_MOMENT */
    char *text;           /* owned: looked for; a path */
    list_columns columns; /* ASK_SEEK: their formats */

    /* found */
    LIST(struct value) values; /* row_count * width; their texts are in the arena */
    size_t row_count, bytes;
    int width;
    LIST(const char *) names; /* of the columns; in the arena */
    struct arena arena;
    bool cut, found;
};

struct list {
    struct view view;
    /* jobs, all owned: those that are being asked */
    struct list_job *asking, *fetching, *seeking, *exporting;
    /* and those that have answered */
    struct list_job *read;   /* the rows; windowed: the ids */
    struct list_job *window; /* windowed: some rows */

    struct template template;           /* owned */
    const struct template_block *block; /* of the template; NULL: any SQL */
    struct question q;                  /* owned */
    struct arena names;                 /* of columns that the template does not name */
    int id;                             /* whole: the column that names a row, -1: none does */

    /* owned: whole: rows as they are shown, after the filter; view.count of them */
    uint32_t *order;
    bool ready;         /* the first answer is there */
    char failed[400];   /* why there is none, or "" */
    int column, scroll; /* the chosen column; the first one after the frozen */
    int64_t moment_ns;  /* go to the last row that is not after it, 0: no */
    int64_t wanted_id;  /* stay on this row when rows come anew; -1: on none */
};

static inline struct list_column *column_at(const struct list *list, int column)
{
    return &list->q.columns.at[column];
}

static inline int column_count(const struct list *list)
{
    return (int)list->q.columns.count;
}

/* A column in which there is nothing leaves its room to others. */
static inline bool column_shown(const struct list *list, int column)
{
    return column_at(list, column)->format != AS_HIDDEN &&
           (!column_at(list, column)->empty || column == list->column || column == list->q.sort);
}

/* The column NAME, or -1. */
static inline int column_named(const struct list *list, const char *name)
{
    int column = name ? column_count(list) - 1 : -1;

    while (column >= 0 && strcmp(column_at(list, column)->name, name))
        column--;
    return column;
}

static inline bool windowed(const struct list *list)
{
    return list->q.key != NULL;
}

/* What views of the kind LIST are built on. */
extern const struct view_ops list_ops;

/* rows.c: the SQL for that; the caller frees it. */
char *question_sql(const struct question *question, enum ask what, bool first);
/* The values of the row that is shown as number AT, or NULL. */
const struct value *row_at(const struct list *list, size_t at);
/* A shown column of ROW has TEXT in it, PLAIN: as it is, not as it is shown. */
bool row_has(const list_columns *columns, const struct value *row, const char *text, bool plain);
/* Ask for the rows, at first for a screenful, or what is quick. */
void rows_ask(struct list *list);
/* It is sorted or filtered otherwise. ASK: for other rows; else a whole list arranges those that it
 * has. */
void rows_again(struct list *list, bool ask);
/* Look for TEXT in the rows of a windowed list. */
void rows_seek(struct list *list, const char *text, int direction);
void rows_forget(struct list *list);
/* rows.c, too: of list_ops. To a moment by the column `at`. */
bool list_export(struct view *view, const char *path);
void list_moment(struct view *view, int64_t at_ns, bool near);
void list_settle(struct view *view);

#endif
