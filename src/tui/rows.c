/* tui/rows.c -- the rows of a list: asked for beside the keys, kept, filtered and sorted. See
 * tui/list.h.
 *
 * Runs in: the viewer; list_run() in a thread. */
#include "lib/out_file.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/db.h"
#include "trace/result.h"
#include "tui/list.h"

enum {
    ROWS_MOST = 100000,    /* of a whole list */
    BYTES_MOST = 48 << 20, /* of them */
    IDS_MOST = 20000000,   /* of a windowed list */
    FIRST_IDS = 400,       /* what is asked for first */
    FETCH_WAIT_MS = 8,     /* for a window, before the screen is drawn without it */
    WINDOW_MARGIN = 100,   /* rows fetched beyond the screen */
};

/* ---- the question, as SQL ------------------------------------------------ */

/* Each word must be in some text column. */
static void words_put(FILE *out, const struct question *q)
{
    const char *words = q->filter;
    const char *between = "";

    while (*(words += strspn(words, " "))) {
        size_t length = strcspn(words, " ");
        fprintf(out, "%s(0", between);
        for (size_t i = 0; i < q->columns.count; i++) {
            if (q->columns.at[i].format > AS_OUTCOME)
                continue;
            fputs(" OR instr(lower(", out);
            text_quote(out, q->columns.at[i].name, strlen(q->columns.at[i].name), '"');
            fputs("), lower(", out);
            text_quote(out, words, length, '\'');
            fputs("))", out);
        }
        fputs(")", out);
        between = " AND ";
        words += length;
    }
}

/* " WHERE ..." of what is shown. FILTER: with the filter. False: all rows. */
static bool where_put(FILE *out, const struct question *q, bool filter)
{
    if (q->where)
        fprintf(out, " WHERE (%s)", q->where);
    if (!filter)
        return q->where;
    fputs(q->where ? " AND (" : " WHERE (", out);
    if (q->condition)
        fprintf(out, "%s\n", q->condition);
    else
        words_put(out, q);
    putc(')', out);
    return true;
}

static void order_put(FILE *out, const struct question *q)
{
    const char *by = q->columns.at[q->sort].name;

    fputs(" ORDER BY ", out);
    text_quote(out, by, strlen(by), '"');
    if (q->descending)
        fputs(" DESC", out);
    if (q->key && strcmp(q->key, by))
        fprintf(out, ", %s", q->key);
}

char *question_sql(const struct question *q, enum ask what, bool first)
{
    bool by_sql = q->condition || q->key || q->cut || what == ASK_MOMENT;
    bool filter = q->filter && by_sql;
    bool sorted = q->sort >= 0 && (what != ASK_ROWS || q->typed || q->cut);
    bool quick = what == ASK_ROWS && first && q->quick;
    bool ids = what == ASK_IDS || what == ASK_MOMENT;
    char *made = NULL;
    size_t bytes;
    bool part;
    FILE *out;

    if (q->typed && !filter && q->sort < 0)
        return strdup(q->sql);
    if (what == ASK_WINDOW || what == ASK_SEEK)
        return say_print("SELECT * FROM (%s\n) WHERE %s = ?1", q->sql, q->key);
    out = open_memstream(&made, &bytes);
    fprintf(out, "SELECT %s FROM (%s\n)", ids ? q->id : "*", quick ? q->quick : q->sql);
    part = where_put(out, q, filter);
    if (what == ASK_MOMENT) /* only of those that are shown */
        fprintf(out, "%s at <= ?1 ORDER BY at DESC, %s DESC LIMIT 1", part ? " AND" : " WHERE",
                q->id);
    else if (sorted)
        order_put(out, q);
    if (what == ASK_IDS)
        fprintf(out, " LIMIT %d", first ? FIRST_IDS : IDS_MOST + 1);
    fclose(out);
    return made;
}

/* ---- asking, in a thread ------------------------------------------------- */

bool row_has(const list_columns *columns, const struct value *row, const char *text, bool plain)
{
    char made[CELL_TEXT];

    for (size_t i = 0; i < columns->count; i++) {
        const struct list_column *c = &columns->at[i];
        if (c->format != AS_HIDDEN &&
            strcasestr(value_print(made, &row[i], plain ? AS_TEXT : c->format, c->width), text))
            return true;
    }
    return false;
}

/* A row; without a query one of nothing. */
static void row_read(struct list_job *ask, struct query *query)
{
    struct value *row = list_add_many(&ask->values, (size_t)ask->width);

    for (int i = 0; query && i < ask->width; i++) {
        row[i] = value_read(&ask->arena, query, i, VALUE_TEXT);
        ask->bytes += sizeof *row + (row[i].type == QUERY_TEXT ? strlen(row[i].text) + 16 : 0);
    }
    ask->row_count++;
}

static void ask_rows(struct list_job *ask, struct query *query)
{
    if (query && !ask->width)
        say_error("this finds no rows: only SELECT does");
    while (ask->width && !ask->cut && query_step(query)) {
        ask->cut = ask->row_count >= ROWS_MOST || ask->bytes > BYTES_MOST;
        if (!ask->cut)
            row_read(ask, query);
    }
}

static int64_t job_id(const struct list_job *job, size_t at)
{
    return job->base + (job->ids.count ? job->ids.at[at] : (int64_t)at);
}

static void ask_ids(struct list_job *ask, struct query *query)
{
    while (!ask->cut && query_step(query)) {
        int64_t id = query_integer(query, 0);
        int64_t more = 0;
        ask->base = ask->id_count ? ask->base : id;
        ask->cut = ask->id_count == IDS_MOST || __builtin_sub_overflow(id, ask->base, &more) ||
                   more != (int32_t)more;
        if (ask->cut)
            break;
        /* from here on they are kept */
        for (size_t i = 0; more != (int64_t)ask->id_count && ask->ids.count < ask->id_count; i++)
            *list_add(&ask->ids) = (int32_t)i;
        if (ask->ids.count)
            *list_add(&ask->ids) = (int32_t)more;
        ask->id_count++;
    }
}

/* To the row of the id at AT. */
static bool id_step(struct list_job *ask, struct query *query, size_t at)
{
    query_reset(query);
    query_bind_integer(query, 1, job_id(ask, at));
    return query_step(query);
}

static void ask_window(struct list_job *ask, struct query *query)
{
    for (size_t i = 0; i < ask->id_count && !query_failed(query); i++)
        row_read(ask, id_step(ask, query, i) ? query : NULL); /* else it is gone since */
}

/* Onwards from where it stood, around the end. */
static void ask_seek(struct list_job *ask, struct query *query)
{
    size_t count = ask->id_count;

    for (size_t i = 0;
         i < count && !ask->found && !query_failed(query) && !atomic_load(&ask->job.cancelled);
         i++) {
        ask->from = (ask->from + (ask->direction > 0 ? 1 : count - 1)) % count;
        if (!id_step(ask, query, ask->from))
            continue;
        row_read(ask, query);
        ask->found = row_has(&ask->columns, ask->values.at, ask->text, false);
        ask->values.count = 0;
        arena_free(&ask->arena);
    }
}

static void ask_moment(struct list_job *ask, struct query *query)
{
    query_bind_integer(query, 1, ask->moment_ns);
    ask->found = query_step(query);
    ask->base = ask->found ? query_integer(query, 0) : -1;
}

static void ask_export(struct list_job *ask, struct query *query)
{
    struct out_file out = {0};
    struct table *table;

    if (!query || !out_open(&out, ask->text, false))
        return;
    table = result_open(out.file, TABLE_CSV, query, NULL);
    while (query_step(query)) {
        result_row(table, query);
        if (++ask->row_count % 4096 == 0 && ferror(out.file))
            break;
    }
    table_close(table); /* out_commit says what could not be written */
    ask->found = !query_failed(query) && out_commit(&out);
    out_close(&out);
}

static void list_run(struct job *job, struct db *db)
{
    static void (*const runs[])(struct list_job * ask, struct query * query) = {
        [ASK_ROWS] = ask_rows, [ASK_IDS] = ask_ids,       [ASK_WINDOW] = ask_window,
        [ASK_SEEK] = ask_seek, [ASK_MOMENT] = ask_moment, [ASK_EXPORT] = ask_export,
    };
    struct list_job *ask = (struct list_job *)job;
    struct query *query = db_query(db, ask->sql);

    ask->width = query_columns(query);
    for (int i = 0; i < ask->width; i++)
        *list_add(&ask->names) = arena_print(&ask->arena, "%s", query_name(query, i));
    runs[ask->what](ask, query);
    query_close(query);
}

static void list_job_free(struct job *job)
{
    struct list_job *ask = (struct list_job *)job;

    list_free(&ask->values);
    list_free(&ask->names);
    list_free(&ask->ids);
    list_free(&ask->columns);
    arena_free(&ask->arena);
    free(ask->text);
    free(ask->sql);
}

/* A job that is not started yet, in the place of the one HELD. */
static struct list_job *job_make(struct list *list, struct list_job **held, enum ask what,
                                 bool first)
{
    const struct question *q = &list->q;
    bool slow = what == ASK_SEEK || what == ASK_MOMENT || what == ASK_EXPORT ||
                (what == ASK_IDS && !first) ||
                (what == ASK_ROWS && !first && (q->typed || q->quick));
    struct list_job *ask = job_new(sizeof *ask, list_run, list_job_free, slow);

    work_drop(list->view.tui->work, *held);
    ask->what = what;
    ask->first = first;
    ask->sql = question_sql(q, what, first);
    *held = ask;
    return ask;
}

/* ---- the rows that are there --------------------------------------------- */

const struct value *row_at(const struct list *list, size_t at)
{
    const struct list_job *job = windowed(list) ? list->window : list->read;

    if (at >= list->view.count || !job)
        return NULL;
    at = windowed(list) ? at - job->from : list->order[at]; /* before the window: beyond its end */
    return at < job->row_count ? &job->values.at[at * (size_t)job->width] : NULL;
}

/* By which the row that is shown as number AT is found again; -1: by nothing. */
static int64_t id_at(const struct list *list, size_t at)
{
    const struct value *row = windowed(list) || list->id < 0 ? NULL : row_at(list, at);

    if (windowed(list))
        return at < list->view.count ? job_id(list->read, at) : -1;
    return row && row[list->id].type == QUERY_INTEGER ? row[list->id].integer : -1;
}

/* Go to the row that was wanted, or stay near where it was. */
static void place_restore(struct list *list)
{
    struct view *view = &list->view;
    size_t above = view->at >= view->top ? view->at - view->top : 0;

    for (size_t i = 0; list->wanted_id >= 0 && i < view->count; i++)
        if (id_at(list, i) == list->wanted_id) {
            view->at = i;
            view->top = i >= above ? i - above : 0;
            break;
        }
    list->wanted_id = -1;
    view_choose(view, view->at);
}

/* Every word of the filter is somewhere in the row. */
static bool row_fits(const struct list *list, const struct value *row)
{
    char *words = list->q.filter ? strdupa(list->q.filter) : NULL;
    char *word;

    while ((word = strsep(&words, " ")))
        if (*word && !row_has(&list->q.columns, row, word, true))
            return false;
    return true;
}

static int order_compare(const void *a, const void *b, void *context)
{
    const struct list *list = context;
    const struct list_job *read = list->read;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    size_t width = (size_t)read->width;
    size_t sort = (size_t)list->q.sort;
    int less =
        value_compare(&read->values.at[x * width + sort], &read->values.at[y * width + sort]);

    if (list->q.descending)
        less = -less;
    return less ? less : (x > y) - (x < y);
}

/* A whole list, filtered and sorted. */
static void order_make(struct list *list)
{
    const struct list_job *read = list->read;
    bool by_sql = list->q.condition || list->q.cut; /* the rows are filtered already */

    list->view.count = 0;
    for (size_t i = 0; read && i < read->row_count; i++) {
        const struct value *row = &read->values.at[i * (size_t)read->width];
        if (by_sql || row_fits(list, row)) {
            list->order[list->view.count] = (uint32_t)i;
            list->view.count++;
        }
    }
    if (list->q.sort >= 0 && list->view.count)
        qsort_r(list->order, list->view.count, sizeof *list->order, order_compare, list);
    place_restore(list);
}

/* ---- what others ask for ------------------------------------------------- */

static void ask(struct list *list, bool first)
{
    struct list_job *job =
        job_make(list, &list->asking, windowed(list) ? ASK_IDS : ASK_ROWS, first);

    work_start(list->view.tui->work, &job->job);
}

void rows_ask(struct list *list)
{
    ask(list, windowed(list) || (list->q.quick && !list->ready));
}

void rows_again(struct list *list, bool ask)
{
    list->wanted_id = list->ready ? id_at(list, list->view.at) : -1;
    if ((windowed(list) || list->q.cut || ask) && list->q.sql) {
        work_drop(list->view.tui->work, list->seeking);
        work_drop(list->view.tui->work, list->fetching);
        rows_ask(list);
    } else if (list->ready) {
        order_make(list);
    }
}

/* COUNT ids from FROM on, for JOB. */
static void ids_give(const struct list *list, struct list_job *job, size_t from, size_t count)
{
    job->base = list->read->base + (list->read->ids.count ? 0 : (int64_t)from);
    job->id_count = count;
    if (list->read->ids.count)
        memcpy(list_add_many(&job->ids, count), list->read->ids.at + from,
               count * sizeof *job->ids.at);
}

void rows_seek(struct list *list, const char *text, int direction)
{
    struct list_job *job = job_make(list, &list->seeking, ASK_SEEK, false);
    size_t columns = list->q.columns.count;

    job->text = strdup(text);
    job->direction = direction;
    job->from = list->view.at;
    memcpy(list_add_many(&job->columns, columns), list->q.columns.at,
           columns * sizeof *job->columns.at);
    ids_give(list, job, 0, list->view.count);
    work_start(list->view.tui->work, &job->job);
}

void list_moment(struct view *view, int64_t at_ns, bool near)
{
    struct list *list = (struct list *)view;

    list->moment_ns = list->q.id && column_named(list, "at") >= 0 ? at_ns : 0;
}

/* What was asked for when all rows were not there yet. */
static void moment_settle(struct list *list)
{
    if (!list->moment_ns || !list->ready || list->asking || list->seeking)
        return;
    job_make(list, &list->seeking, ASK_MOMENT, false)->moment_ns = list->moment_ns;
    list->moment_ns = 0;
    work_start(list->view.tui->work, &list->seeking->job);
}

bool list_export(struct view *view, const char *path)
{
    struct list *list = (struct list *)view;

    if (!list->q.sql)
        return false;
    job_make(list, &list->exporting, ASK_EXPORT, false)->text = strdup(path);
    work_start(view->tui->work, &list->exporting->job);
    return true;
}

void rows_forget(struct list *list)
{
    work_drop(list->view.tui->work, list->read);
    work_drop(list->view.tui->work, list->window);
    free(list->order);
    list->order = NULL;
    list->view.count = 0;
}

/* ---- taking what was found ----------------------------------------------- */

static const struct value *value_at(const struct list_job *job, size_t row, int column)
{
    return &job->values.at[row * (size_t)job->width + (size_t)column];
}

/* A column of SQL that no template describes, by its values. */
static struct list_column column_guess(const char *name, const struct list_job *job, int column)
{
    struct list_column made = {.name = name, .format = AS_INTEGER, .width = 4};

    for (size_t row = 0; row < job->row_count; row++)
        if (value_at(job, row, column)->type == QUERY_TEXT) {
            made.format = AS_TEXT;
            made.width = 8;
        }
    return made;
}

static bool is_empty(const struct value *value)
{
    return value->type == QUERY_NULL || (value->type == QUERY_INTEGER && !value->integer);
}

/* Is there nothing in any row of COLUMN? */
static bool is_column_empty(const struct list_job *job, int column)
{
    for (size_t row = 0; row < job->row_count; row++)
        if (!is_empty(value_at(job, row, column)))
            return false;
    return job->row_count;
}

/* Hide the columns that have nothing in any row of a WHOLE answer. */
static void empty_find(struct list *list, const struct list_job *job, bool whole)
{
    bool hides = whole && list->block;

    if (windowed(list))
        return;
    for (int i = 0; i < job->width; i++)
        column_at(list, i)->empty = hides && is_column_empty(job, i);
}

/* What is wrong with JOB's answer, or NULL. Columns that it has after those of the template are
 * hidden; without a template all are shown. */
static const char *answer_fault(struct list *list, const struct list_job *job)
{
    if (job->job.error)
        return job->job.error;
    for (int i = column_count(list); i < job->width; i++) {
        const char *name = arena_print(&list->names, "%s", job->names.at[i]);
        struct list_column hidden = {.name = name, .format = AS_HIDDEN};
        *list_add(&list->q.columns) = list->block ? hidden : column_guess(name, job, i);
    }
    if (job->width == column_count(list) || job->what == ASK_IDS)
        return NULL;
    return "the columns are others than before";
}

/* Add the columns that a condition may name to the reason why it failed. */
static void columns_name(struct list *list)
{
    for (int i = 0; i < column_count(list); i++) {
        size_t used = strlen(list->failed);
        snprintf(list->failed + used, sizeof list->failed - used, "%s%s",
                 i ? ", " : "; text stands in '...'; there are ", column_at(list, i)->name);
    }
}

/* Show the rows of JOB. WHOLE: there are no more of them. */
static void rows_take(struct list *list, struct list_job *job, bool whole)
{
    int columns = column_count(list);

    list->read = job;
    if (job->cut && !windowed(list))
        list->q.cut = true;
    list->view.count = job->id_count;
    list->order = calloc(job->row_count + 1, sizeof *list->order);
    if (list->q.sort >= columns)
        list->q.sort = -1;
    if (list->column >= columns)
        list->column = 0;
    list->id = column_named(list, block_word(list->block, "id"));
    empty_find(list, job, whole);
}

/* Order the rows that are there. WHOLE as in rows_take(). */
static void places_take(struct list *list, bool whole)
{
    if (windowed(list)) {
        if (whole) /* with more to come the wanted place may be among the rows still missing */
            place_restore(list);
        return;
    }
    order_make(list);
    if (!whole && list->view.at > 0)
        list->wanted_id = id_at(list, list->view.at);
}

/* Show the answer. */
static void answer_take(struct list *list)
{
    struct list_job *job = list->asking;
    bool cancelled = atomic_load(&job->job.cancelled);
    bool was_cut = list->q.cut;
    bool again = false;
    const char *fault;
    bool more;

    list->asking = NULL;
    if (!list->block && !job->job.error) {
        list->q.columns.count = 0;
        arena_free(&list->names);
    }
    fault = answer_fault(list, job);
    snprintf(list->failed, sizeof list->failed, "%s", fault ? fault : "");
    if (fault && strstr(fault, "no such column"))
        columns_name(list);
    more = job->first && !fault && !cancelled;
    if (windowed(list) && job->id_count < FIRST_IDS)
        more = false;
    if (!fault || !list->ready || !cancelled) /* else the rows that are shown are still true */
        rows_forget(list);
    list->ready = true;
    if (fault) {
        work_drop(list->view.tui->work, job);
    } else {
        bool ordered = list->q.sort >= 0 || list->q.filter;
        rows_take(list, job, !more);
        /* by an order or a filter that came while it was not known that SQLite has to do it */
        again = !was_cut && list->q.cut && ordered;
    }
    places_take(list, !more);
    if (more || again)
        ask(list, false);
}

/* Windowed lists: take the window that has come. */
static void window_take(struct list *list)
{
    struct list_job *job = list->fetching;
    const char *fault = answer_fault(list, job);

    list->fetching = NULL;
    if (!fault) {
        work_drop(list->view.tui->work, list->window);
        list->window = job;
        return;
    }
    if (!list->failed[0] && !atomic_load(&job->job.cancelled))
        snprintf(list->failed, sizeof list->failed, "%s", fault);
    work_drop(list->view.tui->work, job);
}

/* Has the window the rows FROM to TO? */
static bool has_window(const struct list *list, size_t from, size_t to)
{
    const struct list_job *window = list->window;

    return window && window->from <= from && to <= window->from + window->row_count;
}

/* Windowed lists: see that the rows on the screen are there, or asked for. */
static void window_settle(struct list *list)
{
    struct work *work = list->view.tui->work;
    size_t top = list->view.top;
    size_t last = top + (size_t)list->view.rows;
    size_t from = top > WINDOW_MARGIN ? top - WINDOW_MARGIN : 0;
    size_t to = last + WINDOW_MARGIN;

    if (to > list->view.count)
        to = list->view.count;
    if (last > to)
        last = to;
    if (list->fetching && work_done(work, &list->fetching->job))
        window_take(list);
    if (list->failed[0] || from >= to || !list->view.rows)
        return;
    if (has_window(list, top, last))
        return;
    if (list->fetching && list->fetching->from == from)
        return;
    job_make(list, &list->fetching, ASK_WINDOW, false)->from = from;
    ids_give(list, list->fetching, from, to - from);
    work_start(work, &list->fetching->job);
    if (work_wait(work, &list->fetching->job, FETCH_WAIT_MS))
        window_settle(list);
}

/* "filter: words  by total ↓  1/20" */
static void note_make(struct list *list)
{
    struct view *view = &list->view;
    const struct question *q = &list->q;
    FILE *out = fmemopen(view->note, sizeof view->note, "w");
    char rows[TABLE_HUMAN];

    if (q->filter)
        fprintf(out, "%s: %.40s  ", q->condition ? "where" : "filter", q->filter);
    if (q->sort >= 0 && q->sort < column_count(list))
        fprintf(out, "by %.24s %s  ", column_at(list, q->sort)->name, q->descending ? "↓" : "↑");
    snprintf(rows, sizeof rows, "%zu", view->count);
    if (view->count >= 100000)
        table_count(rows, (int64_t)view->count);
    if (list->ready)
        fprintf(out, "%zu/%s%s", view->count ? view->at + 1 : 0, rows,
                list->read && list->read->cut ? "+" : "");
    putc(0, out);
    fclose(out);
}

/* A search, or a moment that was asked for, was found or not. */
static void seek_take(struct list *list)
{
    const struct list_job *seek = list->seeking;

    if (seek->what == ASK_MOMENT) {
        list->wanted_id = seek->base;
        place_restore(list);
    } else if (seek->found) {
        view_choose(&list->view, seek->from);
    } else if (!atomic_load(&seek->job.cancelled)) {
        tui_alarm(list->view.tui, "%s: not found", seek->text);
    }
    work_drop(list->view.tui->work, list->seeking);
}

/* A file was written, or not. */
static void export_take(struct list *list)
{
    const struct list_job *export = list->exporting;
    const char *error = export->job.error;
    const char *plural = export->row_count == 1 ? "" : "s";

    if (export->found)
        tui_say(list->view.tui, "%s: %zu row%s written", export->text, export->row_count, plural);
    else
        tui_alarm(list->view.tui, "not exported: %s", error ? error : "cancelled");
    work_drop(list->view.tui->work, list->exporting);
}

void list_settle(struct view *view)
{
    struct list *list = (struct list *)view;
    struct work *work = view->tui->work;

    if (list->asking && work_done(work, &list->asking->job))
        answer_take(list);
    if (list->seeking && work_done(work, &list->seeking->job))
        seek_take(list);
    if (list->exporting && work_done(work, &list->exporting->job))
        export_take(list);
    if (list->ready)
        view_choose(view, view->at);
    moment_settle(list);
    if (windowed(list) && list->ready)
        window_settle(list);
    note_make(list);
}
