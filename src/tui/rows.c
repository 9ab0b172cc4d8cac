/* tui/rows.c -- reads, keeps, filters and sorts the rows of a list. See tui/list.h. Runs in: the
 * viewer; run_list_job() in a thread. */
#include "lib/out_file.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/db.h"
#include "trace/result.h"
#include "tui/list.h"

enum {
    ROWS_MOST = 100000,    /* the most rows that a whole list keeps */
    BYTES_MOST = 48 << 20, /* the most bytes that the rows of a whole list take */
    IDS_MOST = 20000000,   /* the most rows of a windowed list */
    FIRST_IDS = 400,       /* how many ids the first query of a windowed list reads */
    /* how long to wait for a window of rows before the screen is drawn without them */
    FETCH_WAIT_MS = 8,
    WINDOW_MARGIN = 100, /* how many rows are fetched above and below those on the screen */
};

/* ---- writing the SQL of a list ------------------------------------------- */

/* Write an SQL condition: some text column contains the word at WORD, which has LENGTH bytes. */
static void write_word_condition(FILE *out, const struct question *q, const char *word,
                                 size_t length)
{
    fputs("(0", out);
    list_each(column, &q->columns) {
        if (column->format > AS_OUTCOME)
            continue;
        fputs(" OR instr(lower(", out);
        text_quote(out, column->name, strlen(column->name), '"');
        fputs("), lower(", out);
        text_quote(out, word, length, '\'');
        fputs("))", out);
    }
    fputs(")", out);
}

/* Write an SQL condition: each word of the filter is in some text column. */
static void write_words_condition(FILE *out, const struct question *q)
{
    const char *word = q->filter + strspn(q->filter, " ");
    const char *between = "";

    while (*word) {
        size_t length = strcspn(word, " ");
        fputs(between, out);
        write_word_condition(out, q, word, length);
        between = " AND ";
        word += length;
        word += strspn(word, " ");
    }
}

/* Write " WHERE ..." with the conditions on the rows that are shown. FILTER: include the user's
 * filter. Returns false if nothing was written, because all rows are shown. */
static bool write_where(FILE *out, const struct question *q, bool filter)
{
    if (q->where)
        fprintf(out, " WHERE (%s)", q->where);
    if (!filter)
        return q->where;
    fputs(q->where ? " AND (" : " WHERE (", out);
    if (q->condition)
        fprintf(out, "%s\n", q->condition);
    else
        write_words_condition(out, q);
    putc(')', out);
    return true;
}

static void write_order_by(FILE *out, const struct question *q)
{
    const char *by = q->columns.at[q->sort].name;

    fputs(" ORDER BY ", out);
    text_quote(out, by, strlen(by), '"');
    if (q->descending)
        fputs(" DESC", out);
    if (q->key && strcmp(q->key, by))
        fprintf(out, ", %s", q->key);
}

/* Write the SQL condition and order that select the last row at or before the moment ?1. */
static void write_moment_condition(FILE *out, const struct question *q, bool filter)
{
    bool part = write_where(out, q, filter);

    fprintf(out, "%s at <= ?1 ORDER BY at DESC, %s DESC LIMIT 1", part ? " AND" : " WHERE", q->id);
}

char *question_make_sql(const struct question *q, enum ask what, bool first)
{
    bool sqlite_filters = q->condition || q->key || q->cut;
    bool filter = q->filter && (sqlite_filters || what == ASK_MOMENT);
    bool sqlite_sorts = what != ASK_ROWS || q->typed || q->cut;
    bool quick = what == ASK_ROWS && first && q->quick;
    bool ids = what == ASK_IDS || what == ASK_MOMENT;
    bool as_typed = q->typed && !filter;
    char *made = NULL;
    size_t bytes;
    FILE *out;

    if (as_typed && q->sort < 0)
        return strdup(q->sql);
    if (what == ASK_WINDOW || what == ASK_SEEK)
        return say_print("SELECT * FROM (%s\n) WHERE %s = ?1", q->sql, q->key);
    out = open_memstream(&made, &bytes);
    fprintf(out, "SELECT %s FROM (%s\n)", ids ? q->id : "*", quick ? q->quick : q->sql);
    if (what == ASK_MOMENT) {
        write_moment_condition(out, q, filter);
    } else {
        write_where(out, q, filter);
        if (q->sort >= 0 && sqlite_sorts)
            write_order_by(out, q);
    }
    if (what == ASK_IDS)
        fprintf(out, " LIMIT %d", first ? FIRST_IDS : IDS_MOST + 1);
    fclose(out);
    return made;
}

/* ---- running the queries, in a thread ------------------------------------ */

bool row_contains_text(const list_columns *columns, const struct value *row, const char *text,
                       bool plain)
{
    char made[CELL_TEXT];

    for (size_t i = 0; i < columns->count; i++) {
        const struct list_column *column = &columns->at[i];
        enum cell_format format = plain ? AS_TEXT : column->format;
        const char *cell;
        if (column->format == AS_HIDDEN)
            continue;
        cell = value_print(made, &row[i], format, column->width);
        if (strcasestr(cell, text))
            return true;
    }
    return false;
}

/* Add the current row of QUERY to the rows of the job. If QUERY is NULL, add a row of NULLs. */
static void add_row_of_query(struct list_job *ask, struct query *query)
{
    struct value *row = list_add_many(&ask->values, (size_t)ask->width);

    for (int i = 0; query && i < ask->width; i++) {
        row[i] = value_read(&ask->arena, query, i, VALUE_TEXT);
        ask->bytes += sizeof *row;
        if (row[i].type == QUERY_TEXT)
            ask->bytes += strlen(row[i].text) + 16;
    }
    ask->row_count++;
}

static void read_rows(struct list_job *ask, struct query *query)
{
    if (query && !ask->width)
        say_error("this finds no rows: only SELECT does");
    if (!ask->width)
        return;
    while (!ask->cut && query_step(query)) {
        ask->cut = ask->row_count >= ROWS_MOST || ask->bytes > BYTES_MOST;
        if (!ask->cut)
            add_row_of_query(ask, query);
    }
}

static int64_t job_id(const struct list_job *job, size_t at)
{
    return job->base + (job->ids.count ? job->ids.at[at] : (int64_t)at);
}

/* Compute *OFFSET, the difference between ID and the first id. Returns false if it does not
 * fit into 32 bits. */
static bool compute_id_offset(const struct list_job *ask, int64_t id, int64_t *offset)
{
    if (__builtin_sub_overflow(id, ask->base, offset))
        return false;
    return *offset == (int32_t)*offset;
}

/* Store the ids that QUERY selects. An id is stored as its offset from the first id. As long as the
 * ids are consecutive, this is the row's number, and no offsets are stored. After the first gap,
 * the offsets of all rows are stored. */
static void read_ids(struct list_job *ask, struct query *query)
{
    while (!ask->cut && query_step(query)) {
        int64_t id = query_integer(query, 0);
        int64_t offset = 0;
        bool gap;
        if (!ask->id_count)
            ask->base = id;
        ask->cut = ask->id_count == IDS_MOST || !compute_id_offset(ask, id, &offset);
        if (ask->cut)
            break;
        gap = offset != (int64_t)ask->id_count;
        if (gap) {
            for (size_t i = ask->ids.count; i < ask->id_count; i++)
                *list_add(&ask->ids) = (int32_t)i;
        }
        if (gap || ask->ids.count)
            *list_add(&ask->ids) = (int32_t)offset;
        ask->id_count++;
    }
}

/* Step QUERY to the row whose id has the index AT. Returns false if there is no such row. */
static bool step_to_id(struct list_job *ask, struct query *query, size_t at)
{
    query_reset(query);
    query_bind_integer(query, 1, job_id(ask, at));
    return query_step(query);
}

static void read_rows_of_window(struct list_job *ask, struct query *query)
{
    for (size_t i = 0; i < ask->id_count && !query_failed(query); i++)
        /* add a row of NULLs if the row has been deleted meanwhile */
        add_row_of_query(ask, step_to_id(ask, query, i) ? query : NULL);
}

/* Does the row whose id has the index AT contain the text that the job searches for? */
static bool contains_sought_text(struct list_job *ask, struct query *query, size_t at)
{
    bool found;

    if (!step_to_id(ask, query, at))
        return false;
    add_row_of_query(ask, query);
    found = row_contains_text(&ask->columns, ask->values.at, ask->text, false);
    ask->values.count = 0;
    arena_free(&ask->arena);
    return found;
}

/* Search the rows, beginning behind the row `from` in the job's direction. At the end the
 * search starts over. */
static void search_rows(struct list_job *ask, struct query *query)
{
    size_t count = ask->id_count;
    size_t step = ask->direction > 0 ? 1 : count - 1;

    for (size_t i = 0; i < count && !ask->found; i++) {
        if (query_failed(query) || atomic_load(&ask->job.cancelled))
            break;
        ask->from = (ask->from + step) % count;
        ask->found = contains_sought_text(ask, query, ask->from);
    }
}

static void find_row_of_moment(struct list_job *ask, struct query *query)
{
    query_bind_integer(query, 1, ask->moment_ns);
    ask->found = query_step(query);
    ask->base = ask->found ? query_integer(query, 0) : -1;
}

static void write_export(struct list_job *ask, struct query *query)
{
    struct out_file out = {0};
    struct table *table;

    if (!query || !out_open(&out, ask->text, false))
        return;
    table = result_open(out.file, TABLE_CSV, query, NULL);
    while (query_step(query)) {
        bool is_due;
        result_put_row(table, query);
        ask->row_count++;
        is_due = ask->row_count % 4096 == 0;
        if (is_due && ferror(out.file))
            break;
    }
    table_close(table); /* a write error is reported by out_commit() below */
    ask->found = !query_failed(query) && out_commit(&out);
    out_close(&out);
}

static void run_list_job(struct job *job, struct db *db)
{
    typedef void ask_run(struct list_job * ask, struct query * query);
    static ask_run *const runs[] = {
        [ASK_ROWS] = read_rows,
        [ASK_IDS] = read_ids,
        [ASK_WINDOW] = read_rows_of_window,
        [ASK_SEEK] = search_rows,
        [ASK_MOMENT] = find_row_of_moment,
        [ASK_EXPORT] = write_export,
    };
    struct list_job *ask = (struct list_job *)job;
    struct query *query = db_query(db, ask->sql);

    ask->width = query_columns(query);
    for (int i = 0; i < ask->width; i++)
        *list_add(&ask->names) = arena_print(&ask->arena, "%s", query_name(query, i));
    runs[ask->what](ask, query);
    query_close(query);
}

static void free_list_job(struct job *job)
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

/* May the query take seconds? If so, its job counts as slow (struct job). */
static bool may_query_be_slow(const struct question *q, enum ask what, bool first)
{
    switch (what) {
    case ASK_ROWS:
        return !first && (q->typed || q->quick);
    case ASK_IDS:
        return !first;
    case ASK_WINDOW:
        return false;
    case ASK_SEEK:
    case ASK_MOMENT:
    case ASK_EXPORT:
        return true;
    }
    return true;
}

static struct work *work_of(const struct list *list)
{
    return list->view.tui->work;
}

/* Make a job, but do not start it. It replaces the job in *HELD, which is dropped. */
static struct list_job *make_list_job(struct list *list, struct list_job **held, enum ask what,
                                      bool first)
{
    bool slow = may_query_be_slow(&list->q, what, first);
    struct list_job *ask = job_make(sizeof *ask, run_list_job, free_list_job, slow);

    work_drop(work_of(list), *held);
    ask->what = what;
    ask->first = first;
    ask->sql = question_make_sql(&list->q, what, first);
    *held = ask;
    return ask;
}

/* ---- access to rows, and the order of a whole list ----------------------- */

static const struct value *value_at(const struct list_job *job, size_t row, int column)
{
    return &job->values.at[row * (size_t)job->width + (size_t)column];
}

const struct value *row_at(const struct list *list, size_t at)
{
    const struct list_job *job = is_windowed(list) ? list->window : list->read;

    if (at >= list->view.count || !job)
        return NULL;
    if (is_windowed(list))
        /* for a row before the window this gives a huge number, which the check below rejects */
        at -= job->from;
    else
        at = list->order[at];
    if (at >= job->row_count)
        return NULL;
    return &job->values.at[at * (size_t)job->width];
}

/* Return the id by which row number AT is found when the rows are read again, or -1
 * if it has none. */
static int64_t id_at(const struct list *list, size_t at)
{
    const struct value *row;
    const struct value *id;

    if (at >= list->view.count)
        return -1;
    if (is_windowed(list))
        return job_id(list->read, at);
    row = list->id < 0 ? NULL : row_at(list, at);
    if (!row)
        return -1;
    id = &row[list->id];
    return id->type == QUERY_INTEGER ? id->integer : -1;
}

/* Put the cursor on the row with the id `wanted_id`, on the same line of the screen. If there is no
 * such row, the cursor stays where it is. */
static void restore_cursor(struct list *list)
{
    struct view *view = &list->view;
    size_t above = view->at >= view->top ? view->at - view->top : 0;

    for (size_t i = 0; list->wanted_id >= 0 && i < view->count; i++) {
        if (id_at(list, i) != list->wanted_id)
            continue;
        view->at = i;
        view->top = i >= above ? i - above : 0;
        break;
    }
    list->wanted_id = -1;
    view_choose(view, view->at);
}

/* Does every word of the filter occur in ROW? */
static bool does_row_match_filter(const struct list *list, const struct value *row)
{
    char *words = list->q.filter ? strdupa(list->q.filter) : NULL;
    char *word;

    while ((word = strsep(&words, " "))) {
        bool fits = !*word || row_contains_text(&list->q.columns, row, word, true);
        if (!fits)
            return false;
    }
    return true;
}

static int compare_rows_for_order(const void *a, const void *b, void *context)
{
    const struct list *list = context;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    int order =
        value_compare(value_at(list->read, x, list->q.sort), value_at(list->read, y, list->q.sort));

    if (list->q.descending)
        order = -order;
    return order ? order : list_compare_numbers(x, y);
}

/* Filter and sort the rows of a whole list into `order`. */
static void make_row_order(struct list *list)
{
    const struct list_job *read = list->read;
    /* true if SQLite has filtered the rows already */
    bool by_sql = list->q.condition || list->q.cut;

    list->view.count = 0;
    for (size_t i = 0; read && i < read->row_count; i++) {
        const struct value *row = value_at(read, i, 0);
        if (by_sql || does_row_match_filter(list, row)) {
            list->order[list->view.count] = (uint32_t)i;
            list->view.count++;
        }
    }
    if (list->q.sort >= 0 && list->view.count)
        qsort_r(list->order, list->view.count, sizeof *list->order, compare_rows_for_order, list);
    restore_cursor(list);
}

/* ---- starting queries ---------------------------------------------------- */

static void start_row_query(struct list *list, bool first)
{
    enum ask what = is_windowed(list) ? ASK_IDS : ASK_ROWS;
    struct list_job *job = make_list_job(list, &list->asking, what, first);

    work_start_job(work_of(list), &job->job);
}

void rows_start_query(struct list *list)
{
    bool is_quick = list->q.quick && !list->ready;

    start_row_query(list, is_windowed(list) || is_quick);
}

void rows_filter_and_sort(struct list *list, bool ask)
{
    bool sqlite_asked = ask || is_windowed(list) || list->q.cut;

    list->wanted_id = list->ready ? id_at(list, list->view.at) : -1;
    if (sqlite_asked && list->q.sql) {
        work_drop(work_of(list), list->seeking);
        work_drop(work_of(list), list->fetching);
        rows_start_query(list);
    } else if (list->ready) {
        make_row_order(list);
    }
}

/* Copy COUNT ids to JOB, beginning with the one that has the index FROM. */
static void copy_ids_to_job(const struct list *list, struct list_job *job, size_t from,
                            size_t count)
{
    const struct list_job *read = list->read;
    int32_t *ids;

    job->base = read->base;
    job->id_count = count;
    if (!read->ids.count) {
        job->base += (int64_t)from;
        return;
    }
    ids = list_add_many(&job->ids, count);
    memcpy(ids, read->ids.at + from, count * sizeof *ids);
}

void rows_start_search(struct list *list, const char *text, int direction)
{
    struct list_job *job = make_list_job(list, &list->seeking, ASK_SEEK, false);
    const list_columns *from = &list->q.columns;
    struct list_column *columns = list_add_many(&job->columns, from->count);

    memcpy(columns, from->at, from->count * sizeof *columns);
    job->text = strdup(text);
    job->direction = direction;
    job->from = list->view.at;
    copy_ids_to_job(list, job, 0, list->view.count);
    work_start_job(work_of(list), &job->job);
}

void list_show_moment(struct view *view, int64_t at_ns, bool near)
{
    struct list *list = (struct list *)view;
    bool has_moments = list->q.id && column_named(list, "at") >= 0;

    list->moment_ns = has_moments ? at_ns : 0;
}

/* If list_show_moment() was called, start the job that finds the row of that moment, as soon as all
 * rows have been read. */
static void start_search_of_moment(struct list *list)
{
    bool is_ready = list->ready && !list->asking && !list->seeking;
    struct list_job *job;

    if (!list->moment_ns || !is_ready)
        return;
    job = make_list_job(list, &list->seeking, ASK_MOMENT, false);
    job->moment_ns = list->moment_ns;
    list->moment_ns = 0;
    work_start_job(work_of(list), &job->job);
}

bool list_export(struct view *view, const char *path)
{
    struct list *list = (struct list *)view;
    struct list_job *job;

    if (!list->q.sql)
        return false;
    job = make_list_job(list, &list->exporting, ASK_EXPORT, false);
    job->text = strdup(path);
    work_start_job(view->tui->work, &job->job);
    return true;
}

void rows_free(struct list *list)
{
    work_drop(work_of(list), list->read);
    work_drop(work_of(list), list->window);
    free(list->order);
    list->order = NULL;
    list->view.count = 0;
}

/* ---- taking the results of finished jobs --------------------------------- */

/* Guess a format and a width for a column of the user's SQL from the column's values. */
static struct list_column guess_column_format(const char *name, const struct list_job *job,
                                              int column)
{
    struct list_column made = {.name = name, .format = AS_INTEGER, .width = 4};

    for (size_t row = 0; row < job->row_count; row++) {
        if (value_at(job, row, column)->type != QUERY_TEXT)
            continue;
        made.format = AS_TEXT;
        made.width = 8;
        break;
    }
    return made;
}

static bool is_null_or_zero(const struct value *value)
{
    return value->type == QUERY_NULL || (value->type == QUERY_INTEGER && !value->integer);
}

/* Is COLUMN NULL or 0 in all rows? Returns false if there are no rows. */
static bool is_column_empty(const struct list_job *job, int column)
{
    for (size_t row = 0; row < job->row_count; row++)
        if (!is_null_or_zero(value_at(job, row, column)))
            return false;
    return job->row_count;
}

/* Mark the columns that are empty in all rows, so that they are hidden. Does so only if WHOLE,
 * which means that all rows have been read, and if the list has a template. */
static void hide_empty_columns(struct list *list, const struct list_job *job, bool whole)
{
    bool hides = whole && list->block;

    if (is_windowed(list))
        return;
    for (int i = 0; i < job->width; i++)
        column_at(list, i)->empty = hides && is_column_empty(job, i);
}

/* Return why the result of JOB cannot be shown, or NULL if it can. If the result has columns
 * that the template does not list, they are added to the list. They are hidden, unless there
 * is no template. */
static const char *find_fault_of_result(struct list *list, const struct list_job *job)
{
    if (job->job.error)
        return job->job.error;
    for (int i = column_count(list); i < job->width; i++) {
        const char *name = arena_print(&list->names, "%s", job->names.at[i]);
        struct list_column hidden = {.name = name, .format = AS_HIDDEN};
        *list_add(&list->q.columns) = list->block ? hidden : guess_column_format(name, job, i);
    }
    if (job->width == column_count(list) || job->what == ASK_IDS)
        return NULL;
    return "the columns are others than before";
}

/* A filter named a column that does not exist: add the names of all columns to the
 * error message. */
static void add_columns_to_error(struct list *list)
{
    for (int i = 0; i < column_count(list); i++) {
        size_t used = strlen(list->failed);
        snprintf(list->failed + used, sizeof list->failed - used, "%s%s",
                 i ? ", " : "; text stands in '...'; there are ", column_at(list, i)->name);
    }
}

/* Show the result of JOB as the rows of the list. WHOLE: the job has read all rows. */
static void take_rows_of_job(struct list *list, struct list_job *job, bool whole)
{
    int columns = column_count(list);

    list->read = job;
    if (job->cut && !is_windowed(list))
        list->q.cut = true;
    list->view.count = job->id_count;
    list->order = calloc(job->row_count + 1, sizeof *list->order);
    if (list->q.sort >= columns)
        list->q.sort = -1;
    if (list->column >= columns)
        list->column = 0;
    list->id = column_named(list, block_text_after_word(list->block, "id"));
    hide_empty_columns(list, job, whole);
}

/* Sort the new rows, and put the cursor back on the row where it was. WHOLE: all rows
 * have been read. */
static void sort_rows_and_restore_cursor(struct list *list, bool whole)
{
    if (is_windowed(list)) {
        if (whole) /* if more rows will come, the row that the cursor was on may be among them */
            restore_cursor(list);
        return;
    }
    make_row_order(list);
    if (!whole && list->view.at > 0)
        list->wanted_id = id_at(list, list->view.at);
}

/* Take the result of the job `asking`. If it has read only the first rows, start the
 * job for all rows. */
static void take_finished_query(struct list *list)
{
    struct list_job *job = list->asking;
    bool cancelled = atomic_load(&job->job.cancelled);
    bool was_cut = list->q.cut;
    bool again = false;
    const char *fault;
    bool more, still_true;

    list->asking = NULL;
    if (!list->block && !job->job.error) {
        list->q.columns.count = 0;
        arena_free(&list->names);
    }
    fault = find_fault_of_result(list, job);
    snprintf(list->failed, sizeof list->failed, "%s", fault ? fault : "");
    if (fault && strstr(fault, "no such column"))
        add_columns_to_error(list);
    more = job->first && !fault && !cancelled;
    if (is_windowed(list) && job->id_count < FIRST_IDS)
        more = false;
    /* the query was cancelled, so the rows on the screen are still valid */
    still_true = fault && cancelled;
    if (!list->ready || !still_true)
        rows_free(list);
    list->ready = true;
    if (fault) {
        work_drop(work_of(list), job);
    } else {
        bool ordered = list->q.sort >= 0 || list->q.filter;
        take_rows_of_job(list, job, !more);
        /* not all rows could be kept, which was not known when the query was made: let SQLite
         * sort and filter */
        again = !was_cut && list->q.cut && ordered;
    }
    sort_rows_and_restore_cursor(list, !more);
    if (more || again)
        start_row_query(list, false);
}

/* Take the result of the job `fetching` as the rows of a windowed list. */
static void take_fetched_window(struct list *list)
{
    struct list_job *job = list->fetching;
    const char *fault = find_fault_of_result(list, job);
    bool cancelled = atomic_load(&job->job.cancelled);

    list->fetching = NULL;
    if (!fault) {
        work_drop(work_of(list), list->window);
        list->window = job;
        return;
    }
    if (!list->failed[0] && !cancelled)
        snprintf(list->failed, sizeof list->failed, "%s", fault);
    work_drop(work_of(list), job);
}

/* Have the rows from FROM to TO been fetched? */
static bool are_rows_fetched(const struct list *list, size_t from, size_t to)
{
    const struct list_job *window = list->window;

    return window && window->from <= from && to <= window->from + window->row_count;
}

/* For a windowed list: start fetching the rows on the screen, unless they have been fetched. */
static void start_fetching_window(struct list *list)
{
    const struct view *view = &list->view;
    struct work *work = work_of(list);
    size_t top = view->top;
    size_t last = top + (size_t)view->rows;
    size_t from = top > WINDOW_MARGIN ? top - WINDOW_MARGIN : 0;
    size_t to = last + WINDOW_MARGIN;
    struct list_job *job;

    if (to > view->count)
        to = view->count;
    if (last > to)
        last = to;
    if (list->fetching && work_done(work, &list->fetching->job))
        take_fetched_window(list);
    if (list->failed[0] || !view->rows)
        return;
    if (from >= to || are_rows_fetched(list, top, last))
        return;
    if (list->fetching && list->fetching->from == from)
        return;
    job = make_list_job(list, &list->fetching, ASK_WINDOW, false);
    job->from = from;
    copy_ids_to_job(list, job, from, to - from);
    work_start_job(work, &job->job);
    if (work_wait_for_job(work, &job->job, FETCH_WAIT_MS))
        start_fetching_window(list);
}

/* Make the note of the view, such as "filter: words by total ↓ 1/20". */
static void make_view_note(struct list *list)
{
    struct view *view = &list->view;
    const struct question *q = &list->q;
    bool is_sorted = q->sort >= 0 && q->sort < column_count(list);
    bool is_cut = list->read && list->read->cut;
    size_t line = view->count ? view->at + 1 : 0;
    FILE *out = fmemopen(view->note, sizeof view->note, "w");
    char rows[TABLE_HUMAN];

    if (q->filter)
        fprintf(out, "%s: %.40s  ", q->condition ? "where" : "filter", q->filter);
    if (is_sorted)
        fprintf(out, "by %.24s %s  ", column_at(list, q->sort)->name, q->descending ? "↓" : "↑");
    snprintf(rows, sizeof rows, "%zu", view->count);
    if (view->count >= 100000)
        table_count(rows, (int64_t)view->count);
    if (list->ready)
        fprintf(out, "%zu/%s%s", line, rows, is_cut ? "+" : "");
    putc(0, out);
    fclose(out);
}

/* A search, or the job that looked for a moment, has ended: go to the row that it found. */
static void go_to_found_row(struct list *list)
{
    const struct list_job *seek = list->seeking;
    bool cancelled = atomic_load(&seek->job.cancelled);

    if (seek->what == ASK_MOMENT) {
        list->wanted_id = seek->base;
        restore_cursor(list);
    } else if (seek->found) {
        view_choose(&list->view, seek->from);
    } else if (!cancelled) {
        tui_alarm(list->view.tui, "%s: not found", seek->text);
    }
    work_drop(work_of(list), list->seeking);
}

/* Report that the export has been written, or why it has not. */
static void report_end_of_export(struct list *list)
{
    const struct list_job *export = list->exporting;
    const char *error = export->job.error;
    const char *plural = export->row_count == 1 ? "" : "s";

    if (export->found)
        tui_say(list->view.tui, "%s: %zu row%s written", export->text, export->row_count, plural);
    else
        tui_alarm(list->view.tui, "not exported: %s", error ? error : "cancelled");
    work_drop(work_of(list), list->exporting);
}

void list_update(struct view *view)
{
    struct list *list = (struct list *)view;
    struct work *work = view->tui->work;

    if (list->asking && work_done(work, &list->asking->job))
        take_finished_query(list);
    if (list->seeking && work_done(work, &list->seeking->job))
        go_to_found_row(list);
    if (list->exporting && work_done(work, &list->exporting->job))
        report_end_of_export(list);
    if (list->ready)
        view_choose(view, view->at);
    start_search_of_moment(list);
    if (is_windowed(list) && list->ready)
        start_fetching_window(list);
    make_view_note(list);
}
