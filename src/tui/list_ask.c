/* tui/list_ask.c -- what a list asks the trace, beside the keys. See tui/list.h.
 *
 * Runs in: the viewer; list_run() in a thread. */
#include <sys/stat.h>

#include "lib/out_file.h"
#include "lib/say.h"
#include "trace/db.h"
#include "trace/result.h"
#include "tui/list.h"

enum {
    ROWS_MOST = 100000,      /* of a whole list */
    BYTES_MOST = 48 << 20,   /* of them */
    IDS_MOST = 8000000,      /* of a windowed list */
};

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
        fprintf(out, "%s(0", between);
        for (size_t i = 0; i < q->columns.count; i++) {
            if (q->columns.at[i].format > AS_OUTCOME)
                continue;
            fputs(" OR instr(lower(", out);
            name_put(out, q->columns.at[i].name);
            fputs("), lower(", out);
            text_quote(out, words, length, '\'');
            fputs("))", out);
        }
        fputs(")", out);
        between = " AND ";
        words += length;
    }
}

static void order_put(FILE *out, const struct question *q)
{
    const char *by = q->columns.at[q->sort].name;

    fputs(" ORDER BY ", out);
    name_put(out, by);
    fputs(q->descending ? " DESC" : "", out);
    if (q->key && strcmp(q->key, by))
        fprintf(out, ", %s", q->key);
}

char *question_sql(const struct question *q, enum ask what, bool first)
{
    bool filter = q->filter && (q->filter_sql || q->key);
    char *made = NULL;
    size_t bytes;
    FILE *out;

    if (q->typed && !filter && q->sort < 0)
        return strdup(q->sql);
    out = open_memstream(&made, &bytes);
    fprintf(out, "SELECT %s FROM (%s\n)", what == ASK_IDS ? q->key : "*",
            what == ASK_ROWS && first && q->quick ? q->quick : q->sql);
    if (what == ASK_WINDOW || what == ASK_SEEK) {
        fprintf(out, " WHERE %s = ?1", q->key);
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

/* A row; without a query one of nothing. */
static void row_read(struct list_job *ask, struct query *query)
{
    struct value *row = list_add_many(&ask->values, (size_t)ask->width);

    for (int i = 0; query && i < ask->width; i++) {
        row[i] = value_read(query, i);
        ask->bytes += sizeof *row + (row[i].type == QUERY_TEXT ? strlen(row[i].text) + 16 : 0);
    }
    ask->row_count++;
}

bool row_has(const list_columns *columns, const struct value *row, const char *text, bool plain)
{
    char made[CELL_TEXT];

    for (size_t i = 0; i < columns->count; i++) {
        const struct list_column *c = &columns->at[i];
        if (c->format != AS_HIDDEN && strcasestr(value_print(made, &row[i], plain ? AS_TEXT : c->format, c->width), text))
            return true;
    }
    return false;
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

static void ask_ids(struct list_job *ask, struct query *query)
{
    while (!ask->cut && query_step(query)) {
        ask->cut = ask->ids.count == IDS_MOST;
        if (!ask->cut)
            *list_add(&ask->ids) = query_integer(query, 0);
    }
}

/* To the row of the id at AT. */
static bool id_step(struct list_job *ask, struct query *query, size_t at)
{
    query_reset(query);
    query_bind_integer(query, 1, ask->ids.at[at]);
    return query_step(query);
}

static void ask_window(struct list_job *ask, struct query *query)
{
    for (size_t i = 0; i < ask->ids.count && query && !query_failed(query); i++)
        row_read(ask, id_step(ask, query, i) ? query : NULL); /* else it is gone since */
}

static void ask_seek(struct list_job *ask, struct query *query)
{
    size_t count = ask->ids.count;

    for (size_t i = 0; query && i < count && !ask->found && !atomic_load(&ask->job.cancelled); i++) {
        /* Onwards from where it stood, around the end. */
        ask->at = ask->direction > 0 ? (ask->from + 1 + i) % count : (ask->from + 2 * count - 1 - i) % count;
        if (!id_step(ask, query, ask->at))
            continue;
        row_read(ask, query);
        ask->found = row_has(&ask->columns, ask->values.at, ask->text, false);
        values_free(ask->values.at, ask->values.count);
        ask->values.count = 0;
    }
}

static void ask_export(struct list_job *ask, struct query *query)
{
    struct out_file out = {0};
    struct table *table;
    struct stat st;

    if (lstat(ask->text, &st) == 0) {
        say_error("%s: exists already; choose another name", ask->text);
        return;
    }
    if (!query || !out_open(&out, ask->text, false))
        return;
    table = result_open(out.file, TABLE_CSV, query, NULL);
    while (query_step(query)) {
        result_row(table, query);
        if (++ask->row_count % 4096 == 0 && out_failed(&out))
            break;
    }
    table_close(table); /* out_commit says what could not be written */
    ask->found = !query_failed(query) && out_commit(&out);
    out_close(&out);
}

static void list_run(struct job *job, struct db *db)
{
    static void (*const runs[])(struct list_job *ask, struct query *query) = {
        [ASK_ROWS] = ask_rows, [ASK_IDS] = ask_ids, [ASK_WINDOW] = ask_window, [ASK_SEEK] = ask_seek,
        [ASK_EXPORT] = ask_export,
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

    values_free(ask->values.at, ask->values.count);
    list_free(&ask->values);
    list_free(&ask->names);
    list_free(&ask->ids);
    list_free(&ask->columns);
    arena_free(&ask->arena);
    free(ask->text);
    free(ask->sql);
}

struct list_job *list_ask(const struct question *q, enum ask what, bool first)
{
    bool slow = what == ASK_SEEK || what == ASK_EXPORT || (what == ASK_IDS && !first) ||
                (what == ASK_ROWS && !first && (q->typed || q->quick));
    struct list_job *ask = job_new(sizeof *ask, list_run, list_job_free, slow);

    ask->what = what;
    ask->first = first;
    ask->sql = question_sql(q, what, first);
    return ask;
}
