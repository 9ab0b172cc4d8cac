/* tui/list_ask.h -- where a list (tui/list.c) meets what it asks (tui/list_ask.c).
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_TUI_LIST_ASK_H
#define DYNTRACE_TUI_LIST_ASK_H

#include "tui/list.h"

enum ask { ASK_ROWS, ASK_IDS, ASK_WINDOW, ASK_SEEK, ASK_EXPORT };

struct list_job {
    struct job job;
    enum ask what;
    char *sql;             /* owned */
    bool first;            /* only the first screenful */

    /* given */
    int64_t *ids;          /* owned; ASK_IDS: found */
    size_t id_count, from; /* ASK_SEEK: where it stood */
    int direction;
    char *text;            /* owned: looked for; a path */
    unsigned char *formats; /* owned: ASK_SEEK: enum cell_format by column */

    /* found */
    struct value *values;  /* owned: row_count * columns */
    size_t row_count, room, bytes, at;
    int columns;
    char **names;          /* owned */
    bool cut, found;
};

/* A job that is not started yet; NULL: no memory. */
struct list_job *list_ask(struct list *list, enum ask what, bool first);

/* The SQL for that; the caller frees it. */
char *list_query(const struct list *list, enum ask what, bool first);

void values_free(struct value *values, size_t count);

/* NAME as an SQL name. */
void sql_name(FILE *out, const char *name);

#endif
