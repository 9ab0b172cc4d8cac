/* tui/rows.c -- the rows of a list: asked for, kept, filtered and sorted. See tui/list.h.
 *
 * Runs in: the viewer. */
#include "lib/table.h"
#include "trace/db.h"
#include "tui/list.h"

enum {
    FETCH_WAIT_MS = 8,   /* for a window, before the screen is drawn without it */
    WINDOW_MARGIN = 100, /* rows fetched beyond the screen */
};

/* ---- the rows that are there ------------------------------------------------ */

const struct value *row_at(const struct list *list, size_t at)
{
    const struct list_job *job = windowed(list) ? list->window : list->read;

    if (at >= list->view.count || !job)
        return NULL;
    at = windowed(list) ? at - job->from : list->order[at]; /* before the window: beyond its end */
    return at < job->row_count ? &job->values.at[at * (size_t)job->width] : NULL;
}

const struct value *value_at(const struct list *list, size_t at, const char *column)
{
    const struct value *row = row_at(list, at);

    for (int i = 0; row && column && i < column_count(list); i++)
        if (!strcmp(column_at(list, i)->name, column))
            return &row[i];
    return NULL;
}

/* By which the row that is shown as number AT is found again; -1: by nothing. */
static int64_t id_at(const struct list *list, size_t at)
{
    const struct value *value = windowed(list) ? NULL : value_at(list, at, list->id);

    if (windowed(list))
        return at < list->view.count ? list->read->ids.at[at] : -1;
    return value && value->type == QUERY_INTEGER ? value->integer : -1;
}

const char *cell_print(const struct list *list, char *made, const struct value *row, int column)
{
    return value_print(made, &row[column], column_at(list, column)->format, column_at(list, column)->width);
}

/* The row that is chosen now is to be chosen when rows come anew, or in another order. */
static void place_keep(struct list *list)
{
    list->wanted_id = list->ready ? id_at(list, list->view.at) : -1;
}

/* Go to the row that was wanted, or stay near where it was. */
static void place_restore(struct list *list)
{
    struct view *view = &list->view;
    size_t above = view->at >= view->top ? view->at - view->top : 0;

    for (size_t i = 0; list->wanted_id >= 0 && i < list->view.count; i++)
        if (id_at(list, i) == list->wanted_id) {
            view->at = i;
            view->top = i >= above ? i - above : 0;
            break;
        }
    list->wanted_id = -1;
    view_choose(view, view->at);
}

/* ---- whole lists: filtered and sorted ---------------------------------------- */

/* Every word of the filter is somewhere in the row. */
static bool row_fits(const struct list *list, const struct value *row)
{
    char word[128];

    for (const char *words = list->q.filter; words && *(words += strspn(words, " "));) {
        size_t length = strcspn(words, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        words += length;
        if (!row_has(&list->q.columns, row, word, true))
            return false;
    }
    return true;
}

static int order_compare(const void *a, const void *b, void *context)
{
    const struct list *list = context;
    const struct list_job *read = list->read;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t width = (size_t)read->width, sort = (size_t)list->q.sort;
    int less = value_compare(&read->values.at[x * width + sort], &read->values.at[y * width + sort]);

    if (list->q.descending)
        less = -less;
    return less ? less : (x > y) - (x < y);
}

static void order_make(struct list *list)
{
    const struct list_job *read = list->read;

    list->view.count = 0;
    for (size_t i = 0; read && i < read->row_count; i++)
        if (list->q.filter_sql || row_fits(list, &read->values.at[i * (size_t)read->width]))
            list->order[list->view.count++] = (uint32_t)i;
    if (list->q.sort >= 0 && list->view.count)
        qsort_r(list->order, list->view.count, sizeof *list->order, order_compare, list);
    place_restore(list);
}

/* ---- asking ---------------------------------------------------------------- */

static void ask(struct list *list, bool first)
{
    work_drop(work_of(list), list->asking);
    list->asking = list_ask(&list->q, windowed(list) ? ASK_IDS : ASK_ROWS, first);
    work_start(work_of(list), &list->asking->job);
}

void rows_ask(struct list *list)
{
    ask(list, windowed(list) || (list->q.quick && !list->ready));
}

void rows_again(struct list *list, bool ask)
{
    place_keep(list);
    if ((windowed(list) || ask) && list->q.sql) {
        work_drop(work_of(list), list->seeking);
        work_drop(work_of(list), list->fetching);
        rows_ask(list);
    } else if (list->ready) {
        order_make(list);
    }
}

/* COUNT ids from FROM on, for JOB. */
static void ids_give(const struct list *list, struct list_job *job, size_t from, size_t count)
{
    memcpy(list_add_many(&job->ids, count), list->read->ids.at + from, count * sizeof *job->ids.at);
}

void rows_seek(struct list *list, const char *text, int direction)
{
    struct list_job *job = list_ask(&list->q, ASK_SEEK, false);
    size_t columns = list->q.columns.count;

    work_drop(work_of(list), list->seeking);
    list->seeking = job;
    job->text = strdup(text);
    job->direction = direction;
    job->from = list->view.at;
    memcpy(list_add_many(&job->columns, columns), list->q.columns.at, columns * sizeof *job->columns.at);
    ids_give(list, job, 0, list->view.count);
    work_start(work_of(list), &job->job);
}

void rows_forget(struct list *list)
{
    work_drop(work_of(list), list->read);
    work_drop(work_of(list), list->window);
    free(list->order);
    list->order = NULL;
    list->view.count = 0;
}

/* A column of SQL that no sheet describes: what its name says, and its values. */
static struct list_column column_guess(const char *name, const struct list_job *job, int column)
{
    static const struct { const char *name, *lead; } leads[] = {
        {"code_id", "=> function {code_id}"}, {"origin_code_id", "=> function {origin_code_id}"},
        {"resume_code_id", "=> function {resume_code_id}"}, {"cache_entry_id", "=> entry {cache_entry_id}"},
        {"compile_id", "=> compile {compile_id}"}, {"lookup_id", "=> call {lookup_id}"}, {"graph_break_id", "=> break {graph_break_id}"},
    };
    struct list_column made = {.name = name, .format = AS_INTEGER, .width = 4};

    for (size_t row = 0; row < job->row_count; row++)
        if (job->values.at[row * (size_t)job->width + (size_t)column].type == QUERY_TEXT)
            made.format = AS_TEXT, made.width = 8;
    for (size_t k = 0; k < sizeof leads / sizeof *leads; k++)
        if (!strcmp(name, leads[k].name))
            made.lead = leads[k].lead;
    return made;
}

/* The columns that JOB's answer has after those of the sheet, which are hidden; without a sheet all of them. What is wrong
 * with it, in words that are to be freed; NULL: nothing. */
static char *answer_fault(struct list *list, const struct list_job *job)
{
    for (int i = column_count(list); i < job->width && !job->job.error; i++) {
        const char *name = arena_print(&list->names, "%s", job->names.at[i]);
        struct list_column hidden = {.name = name, .format = AS_HIDDEN};
        *list_add(&list->q.columns) = list->block ? hidden : column_guess(name, job, i);
    }
    if (job->job.error)
        return strdup(job->job.error);
    return job->width == column_count(list) || job->what == ASK_IDS ? NULL : strdup("the columns are others than before");
}

/* What asking found becomes what is shown. */
static void answer_take(struct list *list)
{
    struct list_job *job = list->asking;
    bool cancelled = atomic_load(&job->job.cancelled), more;

    list->asking = NULL;
    if (!list->block && !job->job.error) {
        list->q.columns.count = 0;
        arena_free(&list->names);
    }
    free(list->failed);
    list->failed = answer_fault(list, job);
    if (!list->failed || !list->ready || !cancelled) /* else what was shown is still true */
        rows_forget(list);
    more = job->first && !list->failed && !cancelled && (!windowed(list) || job->ids.count >= FIRST_IDS);
    list->ready = true;
    if (list->failed) {
        work_drop(work_of(list), job);
    } else {
        list->read = job;
        list->view.count = job->ids.count;
        list->order = calloc(job->row_count + 1, sizeof *list->order);
        list->q.sort = list->q.sort < column_count(list) ? list->q.sort : -1;
        list->column = list->column < column_count(list) ? list->column : 0;
    }
    if (more && windowed(list)) { /* the place that is wanted may be further down: it is looked for among all of them */
        view_choose(&list->view, list->view.at);
    } else {
        if (windowed(list))
            place_restore(list);
        else
            order_make(list);
        list->wanted_id = more && list->view.at > 0 ? id_at(list, list->view.at) : -1;
    }
    if (more)
        ask(list, false);
}

/* Windowed lists: take the window that has come. */
static void window_take(struct list *list)
{
    struct list_job *job = list->fetching;
    char *fault = answer_fault(list, job);

    list->fetching = NULL;
    if (!fault) {
        work_drop(work_of(list), list->window);
        list->window = job;
        return;
    }
    if (list->failed || atomic_load(&job->job.cancelled))
        free(fault);
    else
        list->failed = fault;
    work_drop(work_of(list), job);
}

/* Windowed lists: see that the rows on the screen are there, or asked for. */
static void window_settle(struct list *list)
{
    size_t top = list->view.top, last = top + (size_t)list->view.rows;
    size_t from = top > WINDOW_MARGIN ? top - WINDOW_MARGIN : 0, to = last + WINDOW_MARGIN;

    if (to > list->view.count)
        to = list->view.count;
    if (list->fetching && work_done(work_of(list), &list->fetching->job))
        window_take(list);
    if (list->failed || from >= to || !list->view.rows)
        return;
    if (list->window && list->window->from <= top && (last < to ? last : to) <= list->window->from + list->window->row_count)
        return;
    if (list->fetching && list->fetching->from == from)
        return;
    work_drop(work_of(list), list->fetching);
    list->fetching = list_ask(&list->q, ASK_WINDOW, false);
    list->fetching->from = from;
    ids_give(list, list->fetching, from, to - from);
    work_start(work_of(list), &list->fetching->job);
    if (work_wait(work_of(list), &list->fetching->job, FETCH_WAIT_MS))
        window_settle(list);
}

static void note_make(struct list *list)
{
    struct view *view = &list->view;
    const struct question *q = &list->q;
    char rows[TABLE_HUMAN], filter[64] = "", sort[48] = "", place[64] = "";

    view->busy = list->asking || list->seeking || list->exporting || list->fetching;
    if (q->filter)
        snprintf(filter, sizeof filter, "%s: %.40s  ", q->filter_sql ? "where" : "filter", q->filter);
    if (q->sort >= 0 && q->sort < column_count(list))
        snprintf(sort, sizeof sort, "by %.24s %s  ", column_at(list, q->sort)->name, q->descending ? "↓" : "↑");
    if (list->view.count < 100000)
        snprintf(rows, sizeof rows, "%zu", list->view.count);
    else
        table_count(rows, (int64_t)list->view.count);
    if (list->ready)
        snprintf(place, sizeof place, "%zu/%s%s", view->count ? view->at + 1 : 0, rows,
                 list->read && list->read->cut ? "+" : "");
    snprintf(view->note, sizeof view->note, "%s%s%s", filter, sort, place);
}

void list_settle(struct view *view)
{
    struct list *list = (struct list *)view;
    struct work *work = work_of(list);

    if (list->asking && work_done(work, &list->asking->job))
        answer_take(list);
    if (list->seeking && work_done(work, &list->seeking->job)) {
        if (list->seeking->found)
            view_choose(view, list->seeking->at);
        else if (!atomic_load(&list->seeking->job.cancelled))
            tui_alarm(view->tui, "%s: not found", list->seeking->text);
        work_drop(work, list->seeking);
    }
    if (list->exporting && work_done(work, &list->exporting->job)) {
        if (list->exporting->found)
            tui_say(view->tui, "%s: %zu rows written", list->exporting->text, list->exporting->row_count);
        else
            tui_alarm(view->tui, "not exported: %s", list->exporting->job.error ? list->exporting->job.error : "cancelled");
        work_drop(work, list->exporting);
    }
    if (list->ready)
        view_choose(view, view->at);
    if (windowed(list) && list->ready)
        window_settle(list);
    note_make(list);
}
