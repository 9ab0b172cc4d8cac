/* tui/list.h -- a view that is a table of the rows of a query.
 *
 * Runs in: the viewer; the jobs in threads.
 *
 * A list is described by its file in schemas/tui/ (see tui/lead.h). list.c draws the list and
 * handles its keys. rows.c runs the queries, and filters, sorts and keeps the rows.
 *
 *     whole      all rows are read once and kept (up to a limit): for results that take time to
 *                compute and are short. rows.c sorts and filters them.
 *     windowed   only the ids of all rows are kept, at most 4 bytes each; rows on the screen are
 *                fetched by id. For tables of millions of rows, which open at once. SQLite sorts
 *                and filters them. */
#ifndef DYNTRACE_TUI_LIST_H
#define DYNTRACE_TUI_LIST_H

#include "tui/lead.h"

struct list_column {
    const char *name; /* the column's name in the SQL, and its heading */
    enum cell_format format;
    int width; /* least width; text columns share the space that is left on the line */
    /* the target that Enter opens when this column is chosen (see tui/lead.h), or NULL if Enter
     * opens the row's target */
    const char *lead;
    /* every row has NULL or 0 here; set only if the whole list was read for a template */
    bool empty;
};

typedef LIST(struct list_column) list_columns;

struct question {
    /* the query that returns the rows (all strings of struct question are borrowed) */
    const char *sql;
    /* whole lists: a faster query for the first look, with the same columns but without the slow
     * values; or NULL */
    const char *quick;
    /* the column that identifies a row in a windowed list; NULL in a whole list */
    const char *key;
    /* the column that identifies a row: `key` in a windowed list, another column in a whole
     * list, or NULL if there is none */
    const char *id;
    const char *where; /* an SQL condition that limits the rows, or NULL */
    list_columns columns;
    const char *filter; /* the filter that the user typed: words, or an SQL condition; or NULL */
    /* the filter as SQL, with numbers for units: "total > 10ms" becomes "total > 10000000"; NULL
     * if the filter is words */
    const char *condition;
    int sort; /* the column to sort by, or -1 for the order of the query */
    bool descending;
    bool typed; /* the user typed `sql` as a query; not every query can be used as a subquery */
    bool cut;   /* whole list: some rows were not kept, so SQLite sorts and filters them */
};

/* The kinds of queries of a list.
 *
 *     ASK_ROWS    whole lists: read all rows; the first time only the columns that are quick
 *     ASK_IDS     windowed lists: read the ids of all rows, sorted and filtered; the first time
 *                 only FIRST_IDS of them
 *     ASK_WINDOW  windowed lists: read the rows with the given ids
 *     ASK_SEEK    windowed lists: find the next row that contains a text
 *     ASK_MOMENT  find the id of the last row at or before a moment
 *     ASK_EXPORT  write all rows to a file */
enum ask { ASK_ROWS, ASK_IDS, ASK_WINDOW, ASK_SEEK, ASK_MOMENT, ASK_EXPORT };

struct list_job {
    struct job job;
    enum ask what;
    char *sql;  /* owned */
    bool first; /* the job reads only the first rows; a second job will read all */

    /* ---- input of the job, and what it finds where marked ---- */
    size_t id_count; /* how many ids: the input of ASK_WINDOW and ASK_SEEK, the result of ASK_IDS */
    /* the ids, each as its difference from `base`; empty if the ids are consecutive numbers */
    LIST(int32_t) ids;
    int64_t base; /* the first id; after ASK_MOMENT: the id that was found, or -1 */
    /* ASK_WINDOW: the number of the first row to read; ASK_SEEK: the row where the search
     * begins, and then the row that was found */
    size_t from;
    int direction;
    int64_t moment_ns; /* ASK_MOMENT: the moment to look for */
    /* owned: the text to search for (ASK_SEEK), or a file's path (ASK_EXPORT) */
    char *text;
    list_columns columns; /* ASK_SEEK: the columns to search, with their formats */

    /* ---- results of the job ---- */
    LIST(struct value) values; /* row_count rows of `width` values; their strings are in `arena` */
    size_t row_count, bytes;
    int width;
    LIST(const char *) names; /* the names of the columns; their strings are in `arena` */
    struct arena arena;
    bool cut, found;
};

struct list {
    struct view view;
    /* owned: the jobs that are running, or NULL */
    struct list_job *asking, *fetching, *seeking, *exporting;
    /* the jobs whose results are shown, or NULL */
    struct list_job *read;   /* owned: a whole list's rows, or a windowed list's ids */
    struct list_job *window; /* owned: the rows of a windowed list that have been fetched */

    struct template template; /* owned */
    /* the list's block of the template; NULL if the user typed SQL */
    const struct template_block *block;
    struct question q;  /* the query; the list owns its columns */
    struct arena names; /* names of columns that the template does not describe */
    /* whole list: the number of the column that identifies a row, or -1 */
    int id;

    /* owned: whole list: the numbers of the rows to show, filtered and sorted; view.count of
     * them */
    uint32_t *order;
    bool ready;       /* the first result has arrived */
    char failed[400]; /* why there are no rows, or "" */
    /* the chosen column, and the first shown column after the fixed first one */
    int column, scroll;
    int64_t moment_ns; /* go to the last row at or before this moment; 0 if no move is due */
    int64_t wanted_id; /* the id of the row to stay on when new rows arrive, or -1 */
};

static inline struct list_column *column_at(const struct list *list, int column)
{
    return &list->q.columns.at[column];
}

static inline int column_count(const struct list *list)
{
    return (int)list->q.columns.count;
}

/* Is COLUMN drawn? An empty column is hidden unless it is chosen or the rows are sorted by it. */
static inline bool column_shown(const struct list *list, int column)
{
    return column_at(list, column)->format != AS_HIDDEN &&
           (!column_at(list, column)->empty || column == list->column || column == list->q.sort);
}

/* Return the number of the column called NAME, or -1 if there is none. */
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

/* The operations that all list views share. */
extern const struct view_ops list_ops;

/* Write the SQL for a query of the kind WHAT. FIRST limits the query to what is quick. The
 * caller frees the text. (This function and those below are in rows.c.) */
char *question_sql(const struct question *question, enum ask what, bool first);
/* Return the values of row number AT, as the rows are shown, or NULL if the row has not been
 * fetched. */
const struct value *row_at(const struct list *list, size_t at);
/* Does a visible column of ROW contain TEXT? PLAIN compares the stored value instead of the text
 * that is drawn. */
bool row_has(const list_columns *columns, const struct value *row, const char *text, bool plain);
/* Start the query for the rows. The first time the query reads a screenful, or the quick
 * columns. */
void rows_ask(struct list *list);
/* Apply a new order or filter. A whole list rearranges the rows that it has, unless ASK is set;
 * then, and in a windowed list, the query runs again. */
void rows_again(struct list *list, bool ask);
/* Search the rows of a windowed list for TEXT in a job. */
void rows_seek(struct list *list, const char *text, int direction);
void rows_forget(struct list *list);
/* The functions of list_ops that are in rows.c. list_moment() goes to a moment by the column
 * `at`. */
bool list_export(struct view *view, const char *path);
void list_moment(struct view *view, int64_t at_ns, bool near);
void list_settle(struct view *view);

#endif
