/* tui/list.h -- a view that is a table of rows, which a query finds.
 *
 * Runs in: the viewer.
 *
 * A list is a constant: its SQL and its columns. Everything else -- scrolling,
 * sorting, filters, search, export, refreshing, where Enter leads -- is here.
 *
 *     whole      all rows are read once and kept (up to a limit): for results
 *                that are dear to compute and short. Sorted and filtered here.
 *     windowed   only the ids of all rows are kept, 8 bytes each; what is on the
 *                screen is fetched by id. For tables of millions of rows, which
 *                open at once. Sorted and filtered by SQLite.
 *
 * The SQL's first column is the row's id, which a target gets. */
#ifndef DYNTRACE_TUI_LIST_H
#define DYNTRACE_TUI_LIST_H

#include "tui.h"

enum cell_format {
    AS_TEXT, AS_PATH, AS_INTEGER, AS_COUNT, AS_DURATION, AS_TIME, AS_PERCENT, AS_OUTCOME, AS_ALARM_COUNT, AS_SPARK, AS_HIDDEN,
};

struct list_column {
    const char *name;        /* in the SQL, and the heading */
    enum cell_format format;
    int width;               /* at least; texts share what is left of the line */
    enum view_kind follow;   /* what Enter opens on this column; VIEW_NONE: what the row opens */
    const char *where;       /* with that: its condition, each %lld is the row's id; NULL: the id itself */
    const char *id;          /* with that: the column that has the id, or NULL: the first */
};

struct list_spec {
    const char *sql;
    const char *quick;       /* whole: the same columns as far as they are known at once, shown until the others are; or NULL */
    const char *key;         /* windowed: the column that names a row; NULL: whole */
    const struct list_column *columns;
    int column_count;
    const char *sort;        /* column that it begins sorted by, NULL: as the SQL has it */
    bool descending;
    enum view_kind row;      /* what Enter opens */
    const char *row_where, *row_id; /* as `where` and `id` of a column */
    const char *empty;       /* said when there are no rows */
    bool slow;               /* the query may take seconds */
    int title_column;        /* whose text names the row in titles */
};

/* What a row is, read by a query. Texts are cut. */
struct value {
    unsigned char type; /* enum query_type */
    union {
        int64_t integer;
        double real;
        char *text; /* owned */
    };
};

struct list_job;

struct list {
    struct view view;
    const struct list_spec *spec; /* borrowed */

    /* columns: the spec's, or those of any SQL */
    struct list_column *columns;  /* owned */
    char **names;                 /* owned: of columns that no spec names */
    int column_count;

    /* rows */
    struct value *values;         /* owned: whole: row_count * column_count; windowed: those of the window */
    size_t row_count;             /* whole: rows read; windowed: ids */
    int64_t *ids;                 /* owned: windowed */
    size_t window, window_count;  /* windowed: the first row that `values` has, and how many */
    uint32_t *order;              /* owned: whole: rows as they are shown */
    size_t shown;                 /* rows after the filter */
    bool cut, ready;              /* not all rows were taken; the first answer is there */
    char *failed;                 /* owned: why there is none */

    /* the eye */
    size_t top, at;
    int column, scroll;           /* the chosen column; the first one after the frozen */
    int sort; bool descending;    /* column, -1: as it comes */
    char *filter;                 /* owned, or NULL */
    bool filter_sql;
    char *sql_text;               /* owned: SQL that is no spec's */

    /* what is being asked */
    struct list_job *asking, *fetching, *seeking, *exporting;
    int64_t wanted_id;            /* stay on this row when rows come anew */
    bool want;
    bool follow;                  /* live: stay at the end */
};

bool list_open(struct list *list, const struct list_spec *spec);
/* Any SQL; columns are what it has. */
bool list_open_sql(struct list *list, const char *sql);
void list_restart(struct list *list);

void list_close(struct view *view);
void list_settle(struct view *view);
void list_draw(struct view *view, struct screen *screen);
bool list_request(struct view *view, enum request request, const struct key *key);
void list_refresh(struct view *view);
char *list_sql(struct view *view);
bool list_search(struct view *view, const char *text, int direction);
void list_filter(struct view *view, const char *text);
bool list_export(struct view *view, const char *path);

/* The chosen row's value, NULL when there is none (yet). */
const struct value *list_value(const struct list *list, const char *column);
int64_t list_id(const struct list *list);

/* "file:line" in that column of the chosen row, for an editor. */
bool list_place(struct list *list, const char *column, char **file, int64_t *line);

/* One value as it is shown. MADE has room for CELL_TEXT bytes. */
enum { CELL_TEXT = 512 };
void value_print(char *made, const struct value *value, enum cell_format format);

/* Less than, equal to or greater than zero; NULL is least, numbers come before texts. */
int value_compare(const struct value *a, const struct value *b);

#define LIST_OPS .size = sizeof(struct list), .close = list_close, .settle = list_settle, .draw = list_draw, \
    .request = list_request, .refresh = list_refresh, .sql = list_sql, .search = list_search, .filter = list_filter, \
    .export = list_export

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
