/* trace/merge.c -- many traces as one. See trace/merge.h. */
#include "trace/merge.h"

#include <inttypes.h>

#include "lib/list.h"
#include "lib/say.h"
#include "schema.h"
#include "tables.h"
#include "trace/db.h"

enum { SQL_MOST = 2000 /* a table has 18 columns at most */ };

struct merge {
    struct db *out;                  /* owned */
    struct query *puts[ROW_TABLES];  /* owned: insert a row */
    char *gets[ROW_TABLES];          /* owned: the statement that reads a table */
    enum merge_frames frames;
    int64_t base[ROW_IDS];           /* added to ids of the trace being copied */
    int64_t top[ROW_IDS];            /* the greatest id written so far */
    int64_t rows[ROW_TABLES], kept[ROW_TABLES]; /* written; and before the trace being copied */
    struct map signatures;           /* of the trace being copied: what number its text has here */
    int64_t started_ns;              /* of the earliest */
    int64_t shift_ns;                /* added to times of the trace being copied */
    char *host;                      /* of the trace being copied; NULL: it does not say. Owned */
    int64_t rank;                    /* the same; -1: it does not say */
    struct progress progress;
};

/* How to read a table, and to write a row of it. */
static void table_prepare(struct merge *merge, enum row_table table)
{
    const struct row_table_facts *facts = &row_tables[table];
    bool some = table == TABLE_frame && merge->frames != MERGE_FRAMES;
    char names[SQL_MOST] = "", marks[100] = "", *put;

    for (int i = 0; facts->columns[i].name && facts->columns[i].id != ID_ROW; i++) { /* a rowid is given anew */
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", facts->columns[i].name);
        strcat(marks, i ? ", ?" : "?");
    }
    put = say_print("INSERT INTO %s(%s) VALUES (%s)", facts->name, names, marks);
    merge->puts[table] = db_query(merge->out, put);
    merge->gets[table] = say_print("SELECT %s FROM %s NOT INDEXED%s", names, facts->name, some ? " WHERE outcome IN (4, 7)" : "");
    free(put);
}

/* Give the row of FROM to TO. False: it has an id or a time that cannot be. */
static bool row_bind(struct merge *merge, enum row_table table, struct query *from, struct query *to)
{
    const struct row_column *columns = row_tables[table].columns;
    bool orphan = table == TABLE_frame && merge->frames != MERGE_FRAMES; /* its parent is not there */

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
                __builtin_add_overflow(query_integer(from, i), column->id ? merge->base[column->id] : merge->shift_ns, &value))
                return false;
            if (column->id && value > merge->top[column->id])
                merge->top[column->id] = value;
            query_bind_integer(to, i + 1, value);
        } else if (table == TABLE_process && type == QUERY_NULL && !strcmp(column->name, "host")) {
            query_bind_text(to, i + 1, merge->host);
        } else if (table == TABLE_process && type == QUERY_NULL && merge->rank >= 0 && !strcmp(column->name, "rank")) {
            query_bind_integer(to, i + 1, merge->rank);
        } else {
            query_bind_column(to, i + 1, from, i);
        }
    }
    return true;
}

/* False: SOURCE cannot be copied, which was said, or nothing can be written. */
static bool table_copy(struct merge *merge, struct db *source, enum row_table table)
{
    struct query *from = db_query(source, merge->gets[table]), *to = merge->puts[table];
    bool fits = true;

    while (fits && query_step(from)) {
        if (!(fits = row_bind(merge, table, from, to)))
            say_error("%s: table %s has an id or a time that cannot be: `dyntrace fsck` says more", db_path(source),
                      row_tables[table].name);
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

/* Each text is stored once. */
static bool signatures_copy(struct merge *merge, struct db *source)
{
    struct query *from = db_query(source, "SELECT signature_id, text FROM signature NOT INDEXED WHERE text IS NOT NULL");
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

/* Take away what was copied of a trace that is left out after all. The file has no journal. */
static void trace_undo(struct merge *merge)
{
    char sql[200];

    memcpy(merge->top, merge->base, sizeof merge->top);
    for (int i = 0; i < ROW_TABLES; i++) {
        const struct row_column *first = &row_tables[i].columns[0];
        bool by_id = first->holds == ROW_KEY || i == TABLE_graph_node; /* the others have rowids without gaps */
        if (i != TABLE_signature)
            snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s > %" PRId64, row_tables[i].name, by_id ? first->name : "rowid",
                     by_id ? merge->base[first->id] : merge->kept[i]);
        if (i != TABLE_signature)
            db_run(merge->out, sql);
    }
    memcpy(merge->rows, merge->kept, sizeof merge->rows);
}

bool merge_ended(struct db *db)
{
    bool ended = !db_integer(db, 0, "SELECT value = 'recording' FROM meta WHERE key = 'state'");

    if (!ended)
        say_error("%s: is still being recorded, or was interrupted (then `dyntrace fsck FILE --recover` completes it)", db_path(db));
    return ended;
}

/* When SOURCE began, by the clock that the traces share if they share one. */
static int64_t began_ns(struct db *source)
{
    int64_t started = db_meta_integer(source, "started_unix_ns", 0), offset = db_meta_integer(source, "clock_offset_ns", 0);

    return started <= 0 || __builtin_add_overflow(started, offset, &started) ? 0 : started;
}

/* Open the trace PATH; NULL, said, when it cannot be merged. */
static struct db *source_open(const char *path)
{
    struct db *source = db_open_tables(path);
    bool ended = source && merge_ended(source);

    if (ended && began_ns(source) > 0)
        return source;
    if (ended)
        say_error("%s: does not say when it began, so its times cannot be put beside those of others", path);
    db_close(source);
    return NULL;
}

/* Has none of the traces that were read the processes of this one, NUMBER? */
static bool processes_apart(struct merge *merge, struct db *source, int64_t number, int64_t started)
{
    struct query *to = db_query(merge->out, schema_statement("merge/process"));
    struct query *twice = db_query(merge->out, schema_statement("merge/twice"));
    bool apart;

    db_rows(row, source, schema_statement("merge/processes"), started) {
        query_bind_integer(to, 1, number);
        query_bind_row(to, 2, row, 3);
        query_put(to);
    }
    query_bind_integer(twice, 1, number);
    if (!(apart = !query_step(twice)))
        say_error("%s: has the process %" PRId64 " of the same machine and moment that %s has: its frames would count twice",
                  db_path(source), query_integer(twice, 0), query_text(twice, 1, NULL));
    query_close(to);
    query_close(twice);
    return apart;
}

/* What trace NUMBER says of itself. False: it cannot be merged, which was said. */
static bool trace_read(struct merge *merge, const char *path, int64_t number)
{
    struct db *source = source_open(path);
    struct query *put;
    int64_t started;
    bool fits;

    if (!source)
        return false;
    started = began_ns(source);
    put = db_query(merge->out, "INSERT INTO given VALUES (?1, ?2, ?3)");
    query_bind_integer(put, 1, number);
    db_rows(row, source, "SELECT key, value FROM meta WHERE value IS NOT NULL UNION ALL SELECT NULL, NULL") {
        query_bind_column(put, 2, row, 0);
        query_bind_column(put, 3, row, 1);
        if (query_type(row, 0) == QUERY_NULL)
            query_bind_text(put, 3, path);
        query_put(put);
    }
    query_close(put);
    fits = processes_apart(merge, source, number, started) && !db_failed(source);
    if (!fits)
        db_rows(row, merge->out, schema_statement("merge/forget"), number) {}
    else if (!merge->started_ns || started < merge->started_ns)
        merge->started_ns = started;
    db_close(source);
    return fits;
}

/* False: it was left out, or nothing can be written (db_failed). */
static bool trace_copy(struct merge *merge, const char *path, int64_t number)
{
    struct db *source = source_open(path);
    bool fits = source;

    memcpy(merge->base, merge->top, sizeof merge->base);
    memcpy(merge->kept, merge->rows, sizeof merge->kept);
    if (source) {
        merge->host = db_meta(source, "host");
        merge->rank = db_meta_integer(source, "rank", -1);
        merge->shift_ns = began_ns(source) - merge->started_ns;
        for (int i = 0; fits && i < ROW_TABLES; i++)
            fits = i == TABLE_signature ? signatures_copy(merge, source) : table_copy(merge, source, (enum row_table)i);
        free(merge->host);
        db_close(source);
    }
    if (!fits && !db_failed(merge->out)) {
        trace_undo(merge);
        db_rows(row, merge->out, schema_statement("merge/forget"), number) {}
    }
    return fits;
}

static void traces_copy(struct merge *merge, char *const *paths, size_t count, size_t *merged)
{
    LIST(int64_t) whole = {0}; /* those that can be merged, from 1 on */

    for (size_t i = 0; i < count && !db_failed(merge->out); i++) {
        progress_tick(&merge->progress, (int64_t)i, (int64_t)count * 2);
        if (trace_read(merge, paths[i], (int64_t)i + 1))
            *list_add(&whole) = (int64_t)i + 1;
    }
    for (int i = 0; i < ROW_TABLES; i++)
        table_prepare(merge, (enum row_table)i);
    for (size_t i = 0; i < whole.count && !db_failed(merge->out); i++) {
        progress_tick(&merge->progress, (int64_t)(count + i), (int64_t)(count + whole.count));
        *merged += trace_copy(merge, paths[whole.at[i] - 1], whole.at[i]);
    }
    for (int i = 0; i < ROW_TABLES; i++) {
        query_close(merge->puts[i]);
        free(merge->gets[i]);
    }
    list_free(&whole);
}

bool merge_traces(const char *path, char *const *paths, size_t count, enum merge_frames frames, size_t *merged, int64_t *lost)
{
    struct merge merge = {.frames = frames, .progress = progress_begin("merging"), .out = db_make(path)};
    bool ok = merge.out && db_run(merge.out, schema_statement("merge/begin")) && db_run(merge.out, "BEGIN");

    *merged = 0;
    if (ok) {
        traces_copy(&merge, paths, count, merged);
        db_on_progress(merge.out, progress_spin, &merge.progress);
        ok = !db_failed(merge.out) && *merged && db_run(merge.out, schema_statement("merge/meta")) &&
             (frames != MERGE_COUNTED || db_run(merge.out, schema_statement("merge/counted"))) && db_run(merge.out, "COMMIT") &&
             db_made(merge.out);
        *lost = ok ? db_integer(merge.out, 0, "SELECT SUM(COALESCE(events, 1)) FROM losses WHERE NOT is_stall") : 0;
    }
    progress_end(&merge.progress);
    map_free(&merge.signatures);
    db_close(merge.out);
    return ok;
}
