/* tui/views/sql.c -- the view `sql`: a prompt for a query, and its result as a list. Until a
 * query is typed, the list shows the named queries. */
#include "trace/db.h"
#include "trace/sql_words.h"
#include "tui/list.h"

static const char names[] = ".queries"; /* the command that lists the named queries */

static void show_query(struct view *view, const char *text)
{
    struct list *list = (struct list *)view;
    char *named = sql_name_of_line(text);
    char *sql = arena_keep(&view->arena, named ? named : strdup(text));

    for (char *end = sql + strlen(sql); end > sql && strchr("; \t\r\n", end[-1]); end--)
        end[-1] = 0;
    view_close(view);
    *list = (struct list){.view = *view, .q = {.sql = sql, .sort = -1, .typed = true}};
    view->at = view->top = 0;
    view->head = 1;
    rows_start_query(list);
}

static void run_typed_query(struct view *view, const char *text)
{
    text += strspn(text, " ");
    if (!*text)
        return;
    snprintf(view->title, sizeof view->title, "%.150s", text);
    view->target.where = arena_print(&view->arena, "%s", text);
    show_query(view, text);
}

static void sql_open(struct view *view)
{
    if (view->target.where) {
        run_typed_query(view, view->target.where);
        return;
    }
    show_query(view, names);
    if (!view->aside)
        tui_ask_for_line(view->tui, view->ops->asks, "");
}

static void sql_get_target(struct view *view, struct arena *arena, struct target *target)
{
    struct list *list = (struct list *)view;
    const struct value *row = row_at(list, view->at);
    bool tables = !view->target.where || !strcmp(view->target.where, names);
    const struct value *chosen;

    if (!row)
        return;
    if (tables && row->type == QUERY_TEXT) {
        *target = (struct target){.kind = VIEW_SQL, .where = row->text};
        return;
    }
    if (list->column >= column_count(list))
        return;
    chosen = row + list->column;
    /* an integer may be the id of a row in one of the trace's tables */
    if (chosen->type == QUERY_INTEGER)
        *target = target_from_id_column(column_at(list, list->column)->name, chosen->integer);
}

const struct view_ops view_sql = {
    .summary = "a prompt for SQL, and the result; :sql QUERY",
    .base = &list_ops,
    .open = sql_open,
    .lead = sql_get_target,
    .asks = "SQL: ",
    .input = run_typed_query,
    .keys = "i query  Enter opens  s sort  f filter  / search  e export",
};
