/* tui/views/sql.c -- the view `sql`: a prompt, and its result as a table.
 *
 * Columns that hold ids of the trace's tables (code_id, compile_id ...) lead to those rows. */
#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "trace/sql_words.h"
#include "tui/list.h"

static void sql_input(struct view *view, const char *text)
{
    char *named;

    text += strspn(text, " ");
    if (!*text)
        return;
    named = sql_named(text);
    snprintf(view->title, sizeof view->title, "%.150s", text);
    list_open_sql((struct list *)view, named ? named : text);
    free(named);
}

static void sql_open(struct view *view)
{
    struct list *list = (struct list *)view;

    list->q.sort = -1;
    if (view->target.where)
        sql_input(view, view->target.where);
    else
        tui_ask(view->tui, "SQL: ", "", true);
}

static bool sql_request(struct view *view, enum request request, const struct key *key)
{
    struct list *list = (struct list *)view;

    if (request == REQUEST_INPUT || request == REQUEST_SQL || (request == REQUEST_OPEN && !list->q.sql)) {
        const char *sql = list->q.sql && strlen(list->q.sql) < 300 && !strchr(list->q.sql, '\n') ? list->q.sql : "";
        tui_ask(view->tui, "SQL: ", sql, true);
        return true;
    }
    return list_ops.request(view, request, key);
}

static void sql_draw(struct view *view, struct screen *screen)
{
    struct list *list = (struct list *)view;

    if (list->q.sql) {
        list_ops.draw(view, screen);
        return;
    }
    screen_put(screen, view->y + 1, 2, view->columns - 4, STYLE_NORMAL, "i: type a query, or the name of one of these. Tab completes, Up is what was typed before.");
    for (int i = 0; i < schema_query_count && i + 3 < view->rows; i++) {
        const char *line = schema_queries[i].text + strspn(schema_queries[i].text, "- ");
        char made[200];
        snprintf(made, sizeof made, "%.*s", (int)strcspn(line, "\n"), line);
        screen_put(screen, view->y + 3 + i, 2, 22, STYLE_ACCENT, schema_queries[i].name);
        screen_put(screen, view->y + 3 + i, 26, view->columns - 27, STYLE_NORMAL, made);
    }
}

const struct view_ops view_sql = {
    .name = "sql", .summary = "a prompt for SQL, and the result; :sql QUERY", .base = &list_ops, .open = sql_open, .draw = sql_draw,
    .request = sql_request, .input = sql_input,
};
