/* tui/views/sql.c -- the view `sql`: a prompt for a query or the names of those that are there, and its result, a list. */
#include "schema.h"
#include "trace/sql_words.h"
#include "tui/list.h"

/* Columns that hold ids of the trace's tables (code_id, compile_id ...) lead to those rows: rows.c. */
static void sql_input(struct view *view, const char *text)
{
    struct list *list = (struct list *)view;
    char *named, *sql;

    text += strspn(text, " ");
    if (!*text)
        return;
    named = sql_named(text);
    sql = arena_keep(&view->arena, named ? named : strdup(text));
    for (char *end = sql + strlen(sql); end > sql && strchr("; \t\r\n", end[-1]); end--)
        end[-1] = 0;
    snprintf(view->title, sizeof view->title, "%.150s", text);
    view->target.where = arena_print(&view->arena, "%s", text);
    list_ops.close(view);
    *list = (struct list){.view = *view, .q = {.sql = sql, .sort = -1, .typed = true}};
    view->at = view->top = 0;
    view->head = 1;
    rows_ask(list);
}

static void sql_open(struct view *view)
{
    struct list *list = (struct list *)view;

    list->q.sort = -1;
    view->head = 2;
    view->count = (size_t)schema_query_count;
    if (view->target.where)
        sql_input(view, view->target.where);
    else if (!view->aside)
        tui_ask(view->tui, view->ops->asks, "");
}

static void sql_lead(struct view *view, struct arena *arena, struct target *target)
{
    if (((struct list *)view)->q.sql)
        list_ops.lead(view, arena, target);
    else
        *target = (struct target){.kind = VIEW_SQL, .where = schema_queries[view->at].name};
}

static bool sql_request(struct view *view, enum request request, const struct key *key)
{
    return (((struct list *)view)->q.sql ? list_ops.request : view_pick)(view, request, key);
}

static void sql_draw(struct view *view, struct screen *screen)
{
    struct list *list = (struct list *)view;

    if (list->q.sql) {
        list_ops.draw(view, screen);
        return;
    }
    screen_put(screen, view->y, 2, view->columns - 4, STYLE_NORMAL, "i: type a query, or choose one of these. Tab completes, Up is what was typed before.");
    for (size_t i = view->top; i < view->count && (int)(i - view->top) + 2 < view->rows; i++) {
        const char *line = schema_queries[i].text + strspn(schema_queries[i].text, "- ");
        int y = view->y + 2 + (int)(i - view->top), selected = view_row(view, screen, y, i == view->at);
        char made[200];
        snprintf(made, sizeof made, "%.*s", (int)strcspn(line, "\n"), line);
        screen_put(screen, y, 2, 22, STYLE_ACCENT | selected, schema_queries[i].name);
        screen_put(screen, y, 26, view->columns - 27, selected, made);
    }
}

const struct view_ops view_sql = {
    .keys = "i query  Enter opens  s sort  f filter  / search  e export", .name = "sql", .summary = "a prompt for SQL, and the result; :sql QUERY", .base = &list_ops, .open = sql_open, .draw = sql_draw,
    .request = sql_request, .lead = sql_lead, .asks = "SQL: ", .input = sql_input,
};
