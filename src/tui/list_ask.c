/* tui/list_ask.c -- what a list asks the trace, beside the keys. See tui/list_ask.h.
 *
 * Runs in: the viewer; list_run() in a thread. */
#include "tui/list_ask.h"

#include <sys/stat.h>

#include "lib/out_file.h"
#include "lib/say.h"
#include "trace/db.h"
#include "trace/result.h"

enum {
    ROWS_MOST = 100000,      /* of a whole list */
    BYTES_MOST = 48 << 20,   /* of them */
    IDS_MOST = 8000000,      /* of a windowed list */
};

/* ---- SQL ------------------------------------------------------------------- */

static void name_put(FILE *out, const char *name)
{
    text_quote(out, name, strlen(name), '"');
}

/* Each word must be in some text column. */
static void words_put(FILE *out, const struct question *q)
{
    const char *words = q->filter, *between = "";

    while (*(words += strspn(words, " "))) {
        size_t length = strcspn(words, " ");
        bool any = false;
        fprintf(out, "%s(", between);
        for (size_t i = 0; i < q->columns.count; i++) {
            const struct list_column *c = &q->columns.at[i];
            if (c->format > AS_OUTCOME)
                continue;
            fputs(any ? " OR instr(lower(" : "instr(lower(", out);
            name_put(out, c->name);
            fputs("), lower(", out);
            text_quote(out, words, length, '\'');
            fputs("))", out);
            any = true;
        }
        fputs(any ? ")" : "1)", out);
        between = " AND ";
        words += length;
    }
}

void order_put(FILE *out, const struct question *q)
{
    const char *by = q->columns.at[q->sort].name;

    fputs(" ORDER BY ", out);
    name_put(out, by);
    fputs(q->descending ? " DESC" : "", out);
    if (q->key && strcmp(q->key, by)) {
        fputs(", ", out);
        name_put(out, q->key);
    }
}

char *question_sql(const struct question *q, enum ask what, bool first)
{
    bool filter = q->filter && (q->filter_sql || q->key);
    char *made = NULL;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    if (!out)
        return NULL;
    if (q->typed && !filter && q->sort < 0) {
        fputs(q->sql, out);
        fclose(out);
        return made;
    }
    fputs("SELECT ", out);
    if (what == ASK_IDS)
        name_put(out, q->key);
    else
        putc('*', out);
    fprintf(out, " FROM (%s\n)", what == ASK_ROWS && first && q->quick ? q->quick : q->sql);
    if (what == ASK_WINDOW) {
        fputs(" WHERE ", out);
        name_put(out, q->key);
        fputs(" = ?1", out);
    } else {
        if (q->where)
            fprintf(out, " WHERE (%s)", q->where);
        if (filter) {
            fputs(q->where ? " AND (" : " WHERE (", out);
            if (q->filter_sql)
                fprintf(out, "%s\n", q->filter);
            else
                words_put(out, q);
            putc(')', out);
        }
        if (q->sort >= 0 && (what != ASK_ROWS || q->typed))
            order_put(out, q);
        if (what == ASK_IDS)
            fprintf(out, " LIMIT %d", first ? FIRST_IDS : IDS_MOST + 1);
    }
    fclose(out);
    return made;
}

/* ---- reading rows ---------------------------------------------------------- */

static void columns_read(struct list_job *ask, struct query *query)
{
    ask->width = query_columns(query);
    for (int i = 0; i < ask->width; i++) {
        char **name = list_add(&ask->names);
        if (name)
            *name = strdup(query_name(query, i));
        if (!name || !*name)
            ask->width = 0;
    }
}

/* A row; without a query one of nothing. False: no memory. */
static bool row_read(struct list_job *ask, struct query *query)
{
    struct value *row = list_add_many(&ask->values, (size_t)ask->width);

    if (!row) {
        say_error("out of memory");
        return false;
    }
    for (int i = 0; query && i < ask->width; i++) {
        row[i] = value_read(query, i);
        ask->bytes += sizeof *row + (row[i].type == QUERY_TEXT ? strlen(row[i].text) + 16 : 0);
    }
    ask->row_count++;
    return true;
}

static void ask_rows(struct list_job *ask, struct query *query)
{
    columns_read(ask, query);
    if (query && !ask->width)
        say_error("this finds no rows: only SELECT does");
    while (ask->width && query_step(query)) {
        ask->cut = ask->row_count >= ROWS_MOST || ask->bytes > BYTES_MOST;
        if (ask->cut || !row_read(ask, query))
            break;
    }
}

static void ask_ids(struct list_job *ask, struct query *query)
{
    while (query_step(query)) {
        int64_t *id;
        ask->cut = ask->ids.count == IDS_MOST;
        if (ask->cut)
            break;
        if (!(id = list_add(&ask->ids))) {
            say_error("out of memory");
            break;
        }
        *id = query_integer(query, 0);
    }
}

static void ask_window(struct list_job *ask, struct query *query)
{
    bool more = query != NULL;

    columns_read(ask, query);
    for (size_t i = 0; more && i < ask->ids.count; i++) {
        query_reset(query);
        query_bind_integer(query, 1, ask->ids.at[i]);
        if (query_step(query))
            more = row_read(ask, query);
        else /* gone since */
            more = !query_failed(query) && row_read(ask, NULL);
    }
}

/* The row that QUERY is at has the text. */
static bool row_has(const struct list_job *ask, struct query *query)
{
    char made[CELL_TEXT];
    bool found = false;

    for (int c = 0; c < (int)ask->columns.count && !found; c++) {
        struct value value;
        if (ask->columns.at[c].format == AS_HIDDEN)
            continue;
        value = value_read(query, c);
        found = strcasestr(value_print(made, &value, ask->columns.at[c].format, ask->columns.at[c].width), ask->text) != NULL;
        value_free(&value);
    }
    return found;
}

static void ask_seek(struct list_job *ask, struct query *query)
{
    size_t count = ask->ids.count;

    for (size_t i = 0; query && i < count && !ask->found && !atomic_load(&ask->job.cancelled); i++) {
        /* Onwards from where it stood, around the end. */
        ask->at = ask->direction > 0 ? (ask->from + 1 + i) % count : (ask->from + 2 * count - 1 - i) % count;
        query_reset(query);
        query_bind_integer(query, 1, ask->ids.at[ask->at]);
        ask->found = query_step(query) && row_has(ask, query);
    }
}

static void ask_export(struct list_job *ask, struct db *db)
{
    struct out_file out = {0};
    struct query *query;
    struct table *table;
    struct stat st;

    if (lstat(ask->text, &st) == 0) {
        say_error("%s: exists already; choose another name", ask->text);
        return;
    }
    if (!out_open(&out, ask->text, false))
        return;
    query = db_query(db, ask->sql);
    table = result_open(out.file, TABLE_CSV, query, NULL);
    while (table && query_step(query)) {
        result_row(table, query);
        if (++ask->row_count % 4096 == 0 && out_failed(&out))
            break;
    }
    table_close(table); /* out_commit says what could not be written */
    if (query_close(query) && out_commit(&out))
        ask->found = true;
    out_close(&out);
}

static void list_run(struct job *job, struct db *db)
{
    struct list_job *ask = (struct list_job *)job;
    struct query *query;

    if (ask->what == ASK_EXPORT) {
        ask_export(ask, db);
        return;
    }
    query = db_query(db, ask->sql);
    if (ask->what == ASK_ROWS)
        ask_rows(ask, query);
    else if (ask->what == ASK_IDS)
        ask_ids(ask, query);
    else if (ask->what == ASK_WINDOW)
        ask_window(ask, query);
    else
        ask_seek(ask, query);
    query_close(query);
}

static void list_job_free(struct job *job)
{
    struct list_job *ask = (struct list_job *)job;

    values_free(ask->values.at, ask->values.count);
    for (size_t i = 0; i < ask->names.count; i++)
        free(ask->names.at[i]);
    list_free(&ask->names);
    list_free(&ask->ids);
    list_free(&ask->columns);
    free(ask->text);
    free(ask->sql);
}

struct list_job *list_ask(const struct question *q, enum ask what, bool first)
{
    bool slow = what == ASK_SEEK || what == ASK_EXPORT || (what == ASK_IDS && !first) ||
                (what == ASK_ROWS && !first && (q->typed || q->quick));
    struct list_job *ask = job_new(sizeof *ask, list_run, list_job_free, slow);

    if (!ask)
        return NULL;
    ask->what = what;
    ask->first = first;
    ask->sql = question_sql(q, what == ASK_SEEK ? ASK_WINDOW : what, first);
    if (!ask->sql) {
        free(ask);
        return NULL;
    }
    return ask;
}
