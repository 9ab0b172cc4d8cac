/* tui/list_ask.h -- what a list (tui/list.c) asks the trace, beside the keys.
 *
 * Runs in: the viewer; the jobs in threads. */
#ifndef DYNTRACE_TUI_LIST_ASK_H
#define DYNTRACE_TUI_LIST_ASK_H

#include <stdbool.h>

#include "lib/list.h"
#include "tui/value.h"
#include "tui/work.h"

enum { FIRST_IDS = 400 }; /* what is asked for first */

struct list_column {
    const char *name;        /* in the SQL, and the heading */
    enum cell_format format;
    int width;               /* at least; texts share what is left of the line */
    const char *lead;        /* what Enter opens on this column (tui/sheet.h); NULL: what the row opens */
};

struct question {
    const char *sql;         /* borrowed, as all but FILTER */
    const char *quick;       /* whole lists: the same columns as far as they are known at once, or NULL */
    const char *key;         /* windowed: the column that names a row; NULL: whole */
    const char *where;       /* a condition, or NULL */
    LIST(struct list_column) columns;
    char *filter;            /* owned: words, or a condition; or NULL */
    bool filter_sql;
    int sort;                /* column, -1: as it comes */
    bool descending;
    bool typed;              /* a user's SQL, not all of which can stand within another query */
};

/* ASK_IDS     ids of all rows as they are sorted and filtered: a first screenful at once, then all
 * ASK_ROWS    whole lists: all rows
 * ASK_WINDOW  windowed lists: the rows of some ids
 * ASK_SEEK    the next row with a text in it
 * ASK_EXPORT  all rows to a file */
enum ask { ASK_ROWS, ASK_IDS, ASK_WINDOW, ASK_SEEK, ASK_EXPORT };

struct list_job {
    struct job job;
    enum ask what;
    char *sql;             /* owned */
    bool first;            /* only the first screenful */

    /* given */
    LIST(int64_t) ids;     /* ASK_WINDOW, ASK_SEEK; ASK_IDS: found */
    size_t from;           /* ASK_WINDOW: which is the first; ASK_SEEK: where it stood */
    int direction;
    char *text;            /* owned: looked for; a path */
    LIST(struct list_column) columns; /* ASK_SEEK: their formats */

    /* found */
    LIST(struct value) values; /* row_count * width */
    size_t row_count, bytes, at;
    int width;
    LIST(char *) names;    /* of the columns; each owned */
    bool cut, found;
};

/* A job that is not started yet; NULL: no memory. */
struct list_job *list_ask(const struct question *question, enum ask what, bool first);

/* The SQL for that; the caller frees it. */
char *question_sql(const struct question *question, enum ask what, bool first);

/* " ORDER BY ..." */
void order_put(FILE *out, const struct question *question);

#endif
