/* tui/list.h -- a view that is a table of the rows of a query.
 *
 * Runs in: the viewer; the jobs in threads.
 *
 * A list is described by its file in schemas/tui/ (see tui/lead.h). list.c draws the list and
 * handles its keys. rows.c runs the queries, and filters, sorts and keeps the rows.
 *
 * A list is of one of two kinds:
 *
 *   - whole: all rows are read once and kept, up to a limit. This is for results that take time
 *     to compute and are short. rows.c sorts and filters them.
 *   - windowed: only the ids of all rows are kept, at most 4 bytes each, and the rows on the
 *     screen are fetched by id. This is for tables of millions of rows, which open at once.
 *     SQLite sorts and filters them. */
#ifndef DYNTRACE_TUI_LIST_H
#define DYNTRACE_TUI_LIST_H

#include "tui/lead.h"

struct list_column {
    const char *name; /* the column's name in the SQL, and its heading */
    enum cell_format format;
    int width; /* the least width; text columns share the columns of the screen that are left */
    /* what Enter opens if this column is chosen, as in a template (see tui/lead.h); NULL: Enter
     * opens the target of the row */
    const char *lead;
    /* the column is NULL or 0 in all rows; set only if a whole list with a template was read */
    bool empty;
};

typedef LIST(struct list_column) list_columns;

struct question {
    /* the query that returns the rows; all strings of this struct are borrowed */
    const char *sql;
    /* for a whole list: a faster query for a first look, which has the same columns but not the
     * slow values; or NULL */
    const char *quick;
    /* the column whose value identifies a row of a windowed list; NULL in a whole list */
    const char *key;
    /* the column whose value identifies a row, in lists of both kinds; NULL if there is none */
    const char *id;
    const char *where; /* an SQL condition that all rows of the list fulfil, or NULL */
    list_columns columns;
    const char *filter; /* the filter that the user typed: words, or an SQL condition; or NULL */
    /* the filter as SQL, in which numbers have no units: "total > 10ms" becomes "total > 10000000";
     * NULL if the filter is words */
    const char *condition;
    int sort; /* the column to sort by, or -1 for the order of the query */
    bool descending;
    /* `sql` is a query that the user typed. It is made a subquery only when it must be filtered or
     * sorted, because not every query can be one */
    bool typed;
    bool cut; /* for a whole list: not all rows could be kept, so SQLite sorts and filters them */
};

/* The kinds of queries of a list:
 *
 *     ASK_ROWS    reads all rows of a whole list; at first only the columns that are quick;
 *     ASK_IDS     reads the sorted and filtered ids of a windowed list; at first FIRST_IDS;
 *     ASK_WINDOW  reads the rows of a windowed list that have the given ids;
 *     ASK_SEEK    finds the next row of a windowed list that contains a text;
 *     ASK_MOMENT  finds the id of the last row at or before a moment;
 *     ASK_EXPORT  writes all rows to a file. */
enum ask { ASK_ROWS, ASK_IDS, ASK_WINDOW, ASK_SEEK, ASK_MOMENT, ASK_EXPORT };

struct list_job {
    struct job job;
    enum ask what;
    char *sql; /* owned */
    /* this job reads only the first rows, or only what is quick; a second job will read all */
    bool first;

    /* ---- what the job needs, and for some kinds of queries also its result ---- */
    /* how many ids there are: needed by ASK_WINDOW and ASK_SEEK, the result of ASK_IDS */
    size_t id_count;
    /* the ids, each as its difference from `base`; empty if the ids are consecutive numbers */
    LIST(int32_t) ids;
    int64_t base; /* the first id; for ASK_MOMENT the result: the id that was found, or -1 */
    /* for ASK_WINDOW: the number of the first row to read. For ASK_SEEK: the row where the search
     * begins, and as its result the row that was found */
    size_t from;
    int direction;
    int64_t moment_ns; /* for ASK_MOMENT: the moment to look for */
    /* owned: for ASK_SEEK the text to search for, for ASK_EXPORT the path of the file */
    char *text;
    list_columns columns; /* for ASK_SEEK: the columns to search, with their formats */

    /* ---- the rows that the job has read ---- */
    /* the rows one after the other, each of `width` values; strings are in `arena` */
    LIST(struct value) values;
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
    /* owned: the job whose result is shown: the rows of a whole list, or the ids of a
     * windowed list; or NULL */
    struct list_job *read;
    /* owned: for a windowed list, the job that has the fetched rows; or NULL */
    struct list_job *window;

    struct template template; /* owned */
    /* the part of the template for this list; NULL if the user typed the SQL */
    const struct template_block *block;
    struct question q;  /* the query for the rows; the list owns its columns */
    struct arena names; /* owns the names of columns that the template does not describe */
    /* for a whole list: the index of the column that identifies a row, or -1 */
    int id;

    /* owned: for a whole list, the numbers of the rows to show, filtered and sorted; there
     * are view.count */
    uint32_t *order;
    bool ready;       /* the result of the first job has arrived */
    char failed[400]; /* why the list has no rows, or "" */
    /* column: the chosen column. scroll: the column that is drawn behind the first one */
    int column, scroll;
    int64_t moment_ns; /* go to the last row at or before this moment; 0: stay */
    int64_t wanted_id; /* the id of the row on which the cursor stays when new rows arrive, or -1 */
};

static inline struct list_column *column_at(const struct list *list, int column)
{
    return &list->q.columns.at[column];
}

static inline int column_count(const struct list *list)
{
    return (int)list->q.columns.count;
}

/* Is COLUMN drawn? A column without values is hidden unless it is chosen or the rows
 * are sorted by it. */
static inline bool is_column_shown(const struct list *list, int column)
{
    return column_at(list, column)->format != AS_HIDDEN &&
           (!column_at(list, column)->empty || column == list->column || column == list->q.sort);
}

/* Return the index of the column with the name NAME, or -1 if there is none. */
static inline int column_named(const struct list *list, const char *name)
{
    int column = name ? column_count(list) - 1 : -1;

    while (column >= 0 && strcmp(column_at(list, column)->name, name))
        column--;
    return column;
}

static inline bool is_windowed(const struct list *list)
{
    return list->q.key != NULL;
}

/* The operations of all views that are lists. */
extern const struct view_ops list_ops;

/* Write the SQL for a query of the kind WHAT. FIRST: only what is quick. The caller frees the text.
 * This function and those below are in rows.c. */
char *question_make_sql(const struct question *question, enum ask what, bool first);
/* Return the values of the row that is number AT in the order on the screen. Returns NULL if it has
 * not been fetched. */
const struct value *row_at(const struct list *list, size_t at);
/* Does ROW contain TEXT in a column that is shown? If PLAIN, the stored values are compared,
 * otherwise the texts that are drawn. */
bool row_contains_text(const list_columns *columns, const struct value *row, const char *text,
                       bool plain);
/* Start the query for the rows. The first query reads only a screenful, or only the
 * quick columns. */
void rows_start_query(struct list *list);
/* Show the rows in a new order, or with a new filter. A whole list rearranges the rows that it has,
 * unless ASK. If ASK, and in a windowed list, the query runs again. */
void rows_filter_and_sort(struct list *list, bool ask);
/* Start a job that searches the rows of a windowed list for TEXT. */
void rows_start_search(struct list *list, const char *text, int direction);
void rows_free(struct list *list);
/* Operations of lists that are in rows.c. list_show_moment() goes to a moment by the column
 * `at`. */
bool list_export(struct view *view, const char *path);
void list_show_moment(struct view *view, int64_t at_ns, bool near);
void list_update(struct view *view);

#endif
