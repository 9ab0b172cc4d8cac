/* trace/merge.c -- merges many traces into one. See trace/merge.h. */
#include "trace/merge.h"

#include <inttypes.h>

#include "lib/list.h"
#include "lib/say.h"
#include "schema.h"
#include "tables.h"
#include "trace/db.h"

enum { SQL_MOST = 2000 /* enough: a table has 18 columns at most */ };

struct merge {
    struct db *out;                 /* owned */
    struct query *puts[ROW_TABLES]; /* owned: the statements that insert a row, by table */
    char *gets[ROW_TABLES];         /* owned: the SQL that reads a table, by table */
    enum merge_frames frames;
    int64_t base[ROW_IDS]; /* added to the ids of the trace being copied */
    int64_t top[ROW_IDS];  /* the greatest id written so far */
    int64_t rows[ROW_TABLES],
        kept[ROW_TABLES]; /* rows written so far; `kept`: rows written before the current trace */
    /* signature id of the trace being copied to the id of the same text in the merged trace */
    struct map signatures;
    int64_t started_ns; /* start of the earliest trace */
    int64_t shift_ns;   /* added to the times of the trace being copied */
    /* borrowed: the row of merge/traces about the trace being copied */
    struct query *said;
    struct progress progress;
};

/* Prepare the statements that read rows of TABLE and write them. */
static void table_prepare(struct merge *merge, enum row_table table)
{
    const struct row_table_facts *facts = &row_tables[table];
    bool some = table == TABLE_frame && merge->frames != MERGE_FRAMES;
    char names[SQL_MOST] = "", marks[100] = "", *put;

    /* rowids are not copied: new rows get new ones */
    for (int i = 0; facts->columns[i].name && facts->columns[i].id != ID_ROW; i++) {
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 facts->columns[i].name);
        strcat(marks, i ? ", ?" : "?");
    }
    put = say_print("INSERT INTO %s(%s) VALUES (%s)", facts->name, names, marks);
    merge->puts[table] = db_query(merge->out, put);
    merge->gets[table] = say_print("SELECT %s FROM %s NOT INDEXED %s", names, facts->name,
                                   some ? schema_statement("merge/only-decided") : "");
    free(put);
}

/* Bind the columns of FROM's row to TO, which inserts them. Ids and times are shifted. Returns
 * false if an id or a time is invalid. */
static bool row_bind(struct merge *merge, enum row_table table, struct query *from,
                     struct query *to)
{
    const struct row_column *columns = row_tables[table].columns;
    /* the frame's parent is perhaps not copied */
    bool orphan = table == TABLE_frame && merge->frames != MERGE_FRAMES;

    for (int i = 0; columns[i].name && columns[i].id != ID_ROW; i++) {
        const struct row_column *column = &columns[i];
        enum query_type type = query_type(from, i);
        int64_t value, *made;
        if (column->id == ID_SIGNATURE) {
            made = type == QUERY_NULL ? NULL : map_get(&merge->signatures, query_integer(from, i));
            if (made)
                query_bind_integer(to, i + 1, *made);
            else
                query_bind_text(to, i + 1, NULL);
        } else if (orphan && column->id == ID_FRAME && column->holds != ROW_KEY) {
            query_bind_text(to, i + 1, NULL);
        } else if (type != QUERY_NULL && (column->id || column->holds == ROW_TIME)) {
            if (type != QUERY_INTEGER || (column->id && query_integer(from, i) < 0) ||
                __builtin_add_overflow(query_integer(from, i),
                                       column->id ? merge->base[column->id] : merge->shift_ns,
                                       &value))
                return false;
            if (column->id && value > merge->top[column->id])
                merge->top[column->id] = value;
            query_bind_integer(to, i + 1, value);
        } else if (table == TABLE_process && type == QUERY_NULL && !strcmp(column->name, "host")) {
            query_bind_column(to, i + 1, merge->said, 2);
        } else if (table == TABLE_process && type == QUERY_NULL && !strcmp(column->name, "rank")) {
            query_bind_column(to, i + 1, merge->said, 3);
        } else {
            query_bind_column(to, i + 1, from, i);
        }
    }
    return true;
}

/* Copy the rows of TABLE from SOURCE. Returns false if SOURCE cannot be copied, which has been
 * reported, or if writing failed. */
static bool table_copy(struct merge *merge, struct db *source, enum row_table table)
{
    struct query *from = db_query(source, merge->gets[table]), *to = merge->puts[table];
    bool fits = true;

    while (fits && query_step(from)) {
        if (!(fits = row_bind(merge, table, from, to)))
            say_error("%s: table %s has an id or a time that cannot be: `dyntrace fsck` says more",
                      db_path(source), row_tables[table].name);
        else
            query_step(to);
        query_reset(to);
        if (!(++merge->rows[table] % 4096))
            progress_tick(&merge->progress, -1, 0);
        fits = fits && !db_failed(merge->out);
    }
    query_close(from);
    return fits && !db_failed(source);
}

/* Copy the table `signature`, whose texts describe the inputs of calls. A text that several traces
 * have is stored once. */
static bool signatures_copy(struct merge *merge, struct db *source)
{
    struct query *from = db_query(
        source, "SELECT signature_id, text FROM signature NOT INDEXED WHERE text IS NOT NULL");
    struct query *to = db_query(merge->out, schema_statement("merge/signature"));
    struct query *made = db_query(merge->out, "SELECT signature_id FROM signature WHERE text = ?1");

    map_free(&merge->signatures);
    while (query_step(from)) {
        query_bind_column(to, 1, from, 1);
        query_bind_column(made, 1, from, 1);
        query_put(to);
        if (query_step(made))
            *map_put(&merge->signatures, query_integer(from, 0)) = query_integer(made, 0);
        query_reset(made);
    }
    query_close(from);
    query_close(to);
    query_close(made);
    return !db_failed(source) && !db_failed(merge->out);
}

/* Delete the rows copied so far from a trace that turns out to be invalid. The file has no journal,
 * so ROLLBACK is not possible. */
static void trace_undo(struct merge *merge)
{
    char sql[200];

    memcpy(merge->top, merge->base, sizeof merge->top);
    for (int i = 0; i < ROW_TABLES; i++) {
        const struct row_column *first = &row_tables[i].columns[0];
        /* Tables without an id of their own have rowids without gaps, so the number of rows kept is
         * the last rowid to keep. */
        bool by_id = first->holds == ROW_KEY || i == TABLE_graph_node;
        if (i != TABLE_signature)
            snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s > %" PRId64, row_tables[i].name,
                     by_id ? first->name : "rowid",
                     by_id ? merge->base[first->id] : merge->kept[i]);
        if (i != TABLE_signature)
            db_run(merge->out, sql);
    }
    memcpy(merge->rows, merge->kept, sizeof merge->rows);
}

/* Copy the trace that ROW of merge/traces describes. Returns false if the trace was left out, or if
 * writing failed (db_failed). */
static bool trace_copy(struct merge *merge, struct query *row)
{
    struct db *source = db_open_each(query_text(row, 0, NULL), false);
    bool fits = source;

    memcpy(merge->base, merge->top, sizeof merge->base);
    memcpy(merge->kept, merge->rows, sizeof merge->kept);
    if (source) {
        merge->said = row;
        merge->shift_ns = query_integer(row, 1) - merge->started_ns;
        for (int i = 0; fits && i < ROW_TABLES; i++)
            fits = i == TABLE_signature ? signatures_copy(merge, source)
                                        : table_copy(merge, source, (enum row_table)i);
        db_close(source);
    }
    if (!fits && !db_failed(merge->out))
        trace_undo(merge);
    return fits;
}

/* Copy the traces of GIVEN and return how many were copied. The others are removed from GIVEN. */
static size_t traces_copy(struct merge *merge, struct db *given)
{
    int64_t count = db_integer(given, 0, "SELECT COUNT(*) FROM trace"), done = 0;
    LIST(int64_t) left_out = {0};

    merge->started_ns = db_integer(given, 0, "SELECT MIN(began_ns) FROM trace");
    for (int i = 0; i < ROW_TABLES; i++)
        table_prepare(merge, (enum row_table)i);
    db_rows(row, given, schema_statement("merge/traces"))
    {
        progress_tick(&merge->progress, done++, count);
        if (!db_failed(merge->out) && !trace_copy(merge, row))
            *list_add(&left_out) = query_integer(row, 4);
    }
    for (int i = 0; i < ROW_TABLES; i++) {
        query_close(merge->puts[i]);
        free(merge->gets[i]);
    }
    for (size_t i = 0; i < left_out.count; i++)
        db_rows(row, given, "DELETE FROM trace WHERE trace_id = ?1", left_out.at[i])
        {
        }
    count -= (int64_t)left_out.count;
    list_free(&left_out);
    return (size_t)count;
}

/* Copy the rows of statement NAME of FROM into OUT's table `meta`. */
static void meta_put(struct db *out, struct db *from, const char *name)
{
    struct query *put = db_query(out, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)");

    db_rows(row, from, schema_statement(name))
    {
        query_bind_row(put, 1, row, 2);
        query_put(put);
    }
    query_close(put);
}

bool merge_traces(const char *path, struct db *given, enum merge_frames frames, size_t *merged,
                  int64_t *lost)
{
    struct merge merge = {
        .frames = frames, .progress = progress_begin("merging"), .out = db_make(path)};
    bool ok = merge.out &&
              db_run(merge.out, "CREATE UNIQUE INDEX signature_text ON signature(text); BEGIN");

    *merged = 0;
    if (ok && (*merged = traces_copy(&merge, given)) &&
        db_run(given, schema_statement("merge/alike"))) {
        db_on_progress(merge.out, progress_spin, &merge.progress);
        meta_put(merge.out, given, "merge/meta");
        if (frames == MERGE_COUNTED)
            meta_put(merge.out, given, "merge/counted");
        else
            meta_put(merge.out, merge.out, "merge/frames");
        ok = !db_failed(given) && db_run(merge.out, "DROP INDEX signature_text; COMMIT") &&
             db_made(merge.out);
        *lost = ok ? db_integer(merge.out, 0,
                                "SELECT SUM(COALESCE(events, 1)) FROM losses WHERE NOT is_stall")
                   : 0;
    }
    progress_end(&merge.progress);
    map_free(&merge.signatures);
    db_close(merge.out);
    return ok && *merged;
}
