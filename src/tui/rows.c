/* tui/rows.c -- the rows of a list: asked for, kept, filtered and sorted. See tui/rows.h.
 *
 * Runs in: the viewer. */
#include "tui/rows.h"

#include "lib/table.h"
#include "trace/db.h"

enum {
    FETCH_WAIT_MS = 8,   /* for a window, before the screen is drawn without it */
    WINDOW_MARGIN = 100, /* rows fetched beyond the screen */
};

/* ---- rows ------------------------------------------------------------------ */


const struct value *row_at(const struct list *list, size_t at)
{
    if (at >= list->shown)
        return NULL;
    if (!windowed(list))
        return &list->values[(size_t)list->order[at] * list->q.columns.count];
    if (at < list->window || at >= list->window + list->window_count)
        return NULL;
    return &list->values[(at - list->window) * list->q.columns.count];
}

/* A value of the chosen row, NULL when there is none (yet). */
const struct value *chosen_value(const struct list *list, const char *column)
{
    const struct value *row = row_at(list, list->view.at);

    for (int i = 0; row && column && i < column_count(list); i++)
        if (!strcmp(column_at(list, i)->name, column))
            return &row[i];
    return NULL;
}

/* By which the row that is shown as number AT is found again; -1: by nothing. */
static int64_t id_at(const struct list *list, size_t at)
{
    const struct value *row = row_at(list, at);

    if (windowed(list))
        return at < list->shown ? list->ids[at] : -1;
    for (int i = 0; row && list->id && i < column_count(list); i++)
        if (!strcmp(column_at(list, i)->name, list->id) && row[i].type == QUERY_INTEGER)
            return row[i].integer;
    return -1;
}

const char *cell_print(const struct list *list, char *made, const struct value *row, int column)
{
    return value_print(made, &row[column], column_at(list, column)->format, column_at(list, column)->width);
}

/* Every word of the filter is somewhere in the row. */
static bool row_fits(const struct list *list, const struct value *row)
{
    char word[128], made[CELL_TEXT];

    if (!list->q.filter || list->q.filter_sql)
        return true;
    for (const char *words = list->q.filter; *(words += strspn(words, " "));) {
        size_t length = strcspn(words, " ");
        bool any = false;
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        words += length;
        for (int i = 0; i < column_count(list) && !any; i++)
            any = column_at(list, i)->format != AS_HIDDEN && strcasestr(value_print(made, &row[i], AS_TEXT, 0), word);
        if (!any)
            return false;
    }
    return true;
}

static int order_compare(const void *a, const void *b, void *context)
{
    const struct list *list = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t columns = list->q.columns.count, sort = (size_t)list->q.sort;
    int less = value_compare(&list->values[x * columns + sort], &list->values[y * columns + sort]);

    if (list->q.descending)
        less = -less;
    return less ? less : (x > y) - (x < y);
}

void list_choose(struct list *list, size_t at)
{
    view_choose(&list->view, at, list->shown, list->view.rows - 1);
}

/* Go to the row that was wanted, or stay near where it was. */
static void place_restore(struct list *list)
{
    struct view *view = &list->view;
    size_t above = view->at >= view->top ? view->at - view->top : 0;

    if (list->want)
        for (size_t i = 0; i < list->shown; i++)
            if (id_at(list, i) == list->wanted_id) {
                view->at = i;
                view->top = i >= above ? i - above : 0;
                break;
            }
    list->want = false;
    list_choose(list, view->at);
}

void place_keep(struct list *list)
{
    list->want = list->ready && list->shown > 0;
    list->wanted_id = id_at(list, list->view.at);
}

/* Whole lists: filter and sort what is there. */
void order_make(struct list *list)
{
    if (windowed(list) || !list->order)
        return;
    list->shown = 0;
    for (size_t i = 0; i < list->row_count; i++)
        if (row_fits(list, &list->values[i * list->q.columns.count]))
            list->order[list->shown++] = (uint32_t)i;
    if (list->q.sort >= 0)
        qsort_r(list->order, list->shown, sizeof *list->order, order_compare, list);
    place_restore(list);
}

/* ---- asking ---------------------------------------------------------------- */

void rows_ask(struct list *list, bool first)
{
    work_drop(work_of(list), list->asking);
    if ((list->asking = list_ask(&list->q, windowed(list) ? ASK_IDS : ASK_ROWS, first)))
        work_start(work_of(list), &list->asking->job);
}

void rows_restart(struct list *list)
{
    work_drop(work_of(list), list->seeking);
    work_drop(work_of(list), list->fetching);
    place_keep(list);
    rows_ask(list, windowed(list) || (list->q.quick && !list->ready));
}

void window_forget(struct list *list)
{
    values_free(list->values, (windowed(list) ? list->window_count : list->row_count) * list->q.columns.count);
    list->values = NULL;
    list->window_count = 0;
}

void rows_forget(struct list *list)
{
    window_forget(list);
    free(list->order);
    free(list->ids);
    list->order = NULL;
    list->ids = NULL;
    list->row_count = list->shown = 0;
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

/* The columns are those of JOB's answer: the sheet's, and others after them, which are hidden. False: they are not. */
static bool columns_take(struct list *list, struct list_job *job)
{
    for (int i = 0; i < job->width; i++) {
        struct list_column *column = i < column_count(list) ? column_at(list, i) : list_add(&list->q.columns);
        char **name;
        if (column && column->name) {
            if (!strcmp(column->name, job->names.at[i]))
                continue;
            return false;
        }
        if (!column || !(name = list_add(&list->names)))
            return false;
        *name = job->names.at[i];
        job->names.at[i] = NULL;
        *column = list->block ? (struct list_column){.name = *name, .format = AS_HIDDEN} : column_guess(*name, job, i);
    }
    return job->width == column_count(list);
}

void columns_forget(struct list *list)
{
    for (size_t i = 0; i < list->names.count; i++)
        free(list->names.at[i]);
    list_free(&list->names);
    list_free(&list->q.columns);
}

static void rows_take(struct list *list, struct list_job *job)
{
    rows_forget(list);
    list->cut = job->cut;
    if (windowed(list)) {
        list->ids = job->ids.at;
        list->row_count = list->shown = job->ids.count;
        memset(&job->ids, 0, sizeof job->ids);
        return;
    }
    if (!list->block)
        columns_forget(list);
    if (!columns_take(list, job) || !(list->order = calloc(job->row_count + 1, sizeof *list->order)))
        return;
    list->values = job->values.at;
    list->row_count = job->row_count;
    memset(&job->values, 0, sizeof job->values);
    if (list->q.sort >= column_count(list))
        list->q.sort = -1;
    if (list->column >= column_count(list))
        list->column = 0;
}

/* What asking found becomes what is shown. */
static void answer_take(struct list *list)
{
    struct list_job *job = list->asking;
    bool cancelled = atomic_load(&job->job.cancelled);
    bool more = job->first && !job->job.error && !cancelled &&
                (windowed(list) ? job->ids.count >= FIRST_IDS : list->q.quick != NULL);

    free(list->failed);
    list->failed = job->job.error ? strdup(job->job.error) : NULL;
    if (!list->failed)
        rows_take(list, job);
    else if (!list->ready || !cancelled) /* else what was shown is still true */
        rows_forget(list);
    list->ready = true;
    work_drop(work_of(list), list->asking);
    if (more && windowed(list)) { /* the place that is wanted may be further down: it is looked for among all of them */
        list_choose(list, list->view.at);
    } else {
        if (windowed(list))
            place_restore(list);
        else
            order_make(list);
        list->want = more && list->view.at > 0;
        list->wanted_id = id_at(list, list->view.at);
    }
    if (more)
        rows_ask(list, false);
}

/* Windowed lists: take the window that has come. */
static void window_take(struct list *list)
{
    struct list_job *job = list->fetching;

    if (!job->job.error && columns_take(list, job)) {
        window_forget(list);
        list->values = job->values.at;
        list->window = job->from;
        list->window_count = job->row_count;
        memset(&job->values, 0, sizeof job->values);
    } else if (job->job.error && !list->failed) {
        list->failed = strdup(job->job.error);
    }
    work_drop(work_of(list), list->fetching);
}

/* COUNT ids from FROM on, for JOB. */
void ids_give(const struct list *list, struct list_job *job, size_t from, size_t count)
{
    int64_t *ids = list_add_many(&job->ids, count);

    if (ids)
        memcpy(ids, list->ids + from, count * sizeof *ids);
}

/* Windowed lists: see that the rows on the screen are there, or asked for. */
static void window_settle(struct list *list)
{
    size_t top = list->view.top, last = top + (size_t)list->view.rows;
    size_t from = top > WINDOW_MARGIN ? top - WINDOW_MARGIN : 0, to = last + WINDOW_MARGIN;

    if (to > list->shown)
        to = list->shown;
    if (list->fetching && work_done(work_of(list), &list->fetching->job))
        window_take(list);
    if (list->failed || from >= to || !list->view.rows)
        return;
    if (list->values && list->window <= top && (last < to ? last : to) <= list->window + list->window_count)
        return;
    if (list->fetching && list->fetching->from == from)
        return;
    work_drop(work_of(list), list->fetching);
    if (!(list->fetching = list_ask(&list->q, ASK_WINDOW, false)))
        return;
    list->fetching->from = from;
    ids_give(list, list->fetching, from, to - from);
    work_start(work_of(list), &list->fetching->job);
    if (work_wait(work_of(list), &list->fetching->job, FETCH_WAIT_MS))
        window_settle(list);
}

static void note_make(struct list *list)
{
    struct view *view = &list->view;
    char rows[TABLE_HUMAN];
    FILE *out = fmemopen(view->note, sizeof view->note, "w");

    view->busy = list->asking || list->seeking || list->exporting || list->fetching;
    view->note[0] = 0;
    if (!out)
        return;
    if (list->q.filter)
        fprintf(out, "%s: %.40s  ", list->q.filter_sql ? "where" : "filter", list->q.filter);
    if (list->q.sort >= 0 && list->q.sort < column_count(list))
        fprintf(out, "by %.24s %s  ", column_at(list, list->q.sort)->name, list->q.descending ? "↓" : "↑");
    if (list->shown < 100000)
        snprintf(rows, sizeof rows, "%zu", list->shown);
    else
        table_count(rows, (int64_t)list->shown);
    if (list->ready)
        fprintf(out, "%zu/%s%s", list->shown ? view->at + 1 : 0, rows, list->cut ? "+" : "");
    fclose(out);
}

void list_settle(struct view *view)
{
    struct list *list = (struct list *)view;
    struct work *work = work_of(list);

    if (list->asking && work_done(work, &list->asking->job))
        answer_take(list);
    if (list->seeking && work_done(work, &list->seeking->job)) {
        if (list->seeking->found)
            list_choose(list, list->seeking->at);
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
        list_choose(list, view->at);
    if (windowed(list) && list->ready)
        window_settle(list);
    note_make(list);
}
