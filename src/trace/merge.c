/* trace/merge.c -- merges many traces into one. See trace/merge.h. */
#include "trace/merge.h"

#include <inttypes.h>
#include <malloc.h>

#include "lib/list.h"
#include "lib/say.h"
#include "schema.h"
#include "tables.h"
#include "trace/db.h"
#include "trace/doubts.h"

/* the most bytes of a statement; enough, because a table has at most 18 columns */
enum { SQL_MOST = 2000 };

struct merge {
    struct db *out;                 /* owned */
    struct query *puts[ROW_TABLES]; /* owned: for each table, the statement that inserts a row */
    /* owned: for each table, the SQL that reads the table of a trace */
    char *gets[ROW_TABLES];
    enum merge_frames frames;
    /* for each kind of id, the number that is added to ids of the trace being copied */
    int64_t base[ROW_IDS];
    int64_t top[ROW_IDS]; /* for each kind of id, the greatest id that was written so far */
    /* `rows`: for each table, the rows written so far. `kept`: the rows that were written before
     * the current trace */
    int64_t rows[ROW_TABLES], kept[ROW_TABLES];
    /* maps a signature_id of the trace being copied to the signature_id of the same text in the
     * merged trace */
    struct map signatures;
    int64_t started_ns; /* when the earliest trace began */
    int64_t shift_ns;   /* what is added to the times of the trace being copied */
    /* borrowed: the statement merge/traces, whose row is about the trace being copied */
    struct query *said;
    struct progress progress;
};

/* Prepare the statements that read rows of TABLE and write them. */
static void prepare_table_statements(struct merge *merge, enum row_table table)
{
    const struct row_table_facts *facts = &row_tables[table];
    bool some = table == TABLE_frame && merge->frames != MERGE_FRAMES;
    const char *which = some ? schema_statement("merge/only-decided") : "";
    char names[SQL_MOST] = "";
    char marks[100] = "";
    char *put;

    for (const struct row_column *c = facts->columns; c->name; c++) {
        size_t used = strlen(names);
        const char *comma = used ? ", " : "";
        if (c->id == ID_ROW) /* a rowid is not copied: the merged table assigns a new one */
            break;
        snprintf(names + used, sizeof names - used, "%s%s", comma, c->name);
        strcat(marks, used ? ", ?" : "?");
    }
    put = say_print("INSERT INTO %s(%s) VALUES (%s)", facts->name, names, marks);
    if (table == TABLE_frame)
        merge->puts[table] = db_query(merge->out, schema_statement("merge/frame"));
    else
        merge->puts[table] = db_query(merge->out, put);
    merge->gets[table] = say_print("SELECT %s FROM %s NOT INDEXED %s", names, facts->name, which);
    free(put);
}

/* Bind the value in column I of FROM's row to TO. NAME is the column's name in TABLE. If a process
 * has no host or rank, bind the host or rank of its trace. */
static void bind_value(struct merge *merge, enum row_table table, const char *name,
                       struct query *from, struct query *to, int i)
{
    bool missing = table == TABLE_process && query_type(from, i) == QUERY_NULL;

    if (missing && !strcmp(name, "host"))
        query_bind_column(to, i + 1, merge->said, 2);
    else if (missing && !strcmp(name, "rank"))
        query_bind_column(to, i + 1, merge->said, 3);
    else
        query_bind_column(to, i + 1, from, i);
}

/* Bind the signature_id in column I of FROM's row to TO. The merged trace has another signature_id
 * for the same text; bind NULL if it has none. */
static void bind_merged_signature(struct merge *merge, struct query *from, struct query *to, int i)
{
    const int64_t *made = NULL;

    if (query_type(from, i) != QUERY_NULL)
        made = map_get(&merge->signatures, query_integer(from, i));
    if (made)
        query_bind_integer(to, i + 1, *made);
    else
        query_bind_text(to, i + 1, NULL);
}

/* Bind the id or the time in column I of FROM's row to TO, shifted for the merged trace. Returns
 * false if the id or time is invalid. */
static bool bind_shifted_value(struct merge *merge, const struct row_column *column,
                               struct query *from, struct query *to, int i)
{
    int64_t shift = column->id ? merge->base[column->id] : merge->shift_ns;
    int64_t number, value;

    if (query_type(from, i) != QUERY_INTEGER)
        return false;
    number = query_integer(from, i);
    if (column->id && number < 0)
        return false;
    if (__builtin_add_overflow(number, shift, &value))
        return false;
    if (column->id && value > merge->top[column->id])
        merge->top[column->id] = value;
    query_bind_integer(to, i + 1, value);
    return true;
}

/* Bind the columns of FROM's row to TO, a statement that inserts a row. Ids and times are shifted
 * for the merged trace. Returns false if an id or a time is invalid. */
static bool bind_row(struct merge *merge, enum row_table table, struct query *from,
                     struct query *to)
{
    const struct row_column *columns = row_tables[table].columns;
    /* only some frames are copied, so the parent may be missing: bind NULL as parent_id */
    bool orphan = table == TABLE_frame && merge->frames != MERGE_FRAMES;

    for (int i = 0; columns[i].name && columns[i].id != ID_ROW; i++) {
        const struct row_column *column = &columns[i];
        bool is_parent = column->id == ID_FRAME && column->holds != ROW_KEY;
        bool shifts = column->id || column->holds == ROW_TIME;
        if (column->id == ID_SIGNATURE) {
            bind_merged_signature(merge, from, to, i);
        } else if (orphan && is_parent) {
            query_bind_text(to, i + 1, NULL);
        } else if (shifts && query_type(from, i) != QUERY_NULL) {
            if (!bind_shifted_value(merge, column, from, to, i))
                return false;
        } else {
            bind_value(merge, table, column->name, from, to, i);
        }
    }
    return true;
}

/* Copy the rows of TABLE from SOURCE. Returns false if SOURCE cannot be copied, which has been
 * reported, or if writing failed. */
static bool copy_table(struct merge *merge, struct db *source, enum row_table table)
{
    struct query *from = db_query(source, merge->gets[table]);
    struct query *to = merge->puts[table];
    bool fits = true;

    while (fits && query_step(from)) {
        fits = bind_row(merge, table, from, to);
        if (fits)
            query_step(to);
        else
            say_error("%s: table %s has an id or a time that cannot be: `dyntrace fsck` says more",
                      db_get_path(source), row_tables[table].name);
        query_reset(to);
        merge->rows[table]++;
        if (merge->rows[table] % 4096 == 0)
            progress_tick(&merge->progress, -1, 0);
        fits = fits && !db_has_failed(merge->out);
    }
    query_close(from);
    return fits && !db_has_failed(source);
}

/* Copy the table `signature`, whose texts describe the inputs of calls. A text that several traces
 * have is stored once. */
static bool copy_signatures(struct merge *merge, struct db *source)
{
    struct query *from = db_query(
        source, "SELECT signature_id, text FROM signature NOT INDEXED WHERE text IS NOT NULL");
    struct query *to = db_query(merge->out, schema_statement("merge/signature"));
    struct query *made = db_query(merge->out, "SELECT signature_id FROM signature WHERE text = ?1");

    map_free(&merge->signatures);
    while (query_step(from)) {
        query_bind_column(to, 1, from, 1);
        query_bind_column(made, 1, from, 1);
        query_execute(to);
        if (query_step(made))
            *map_put(&merge->signatures, query_integer(from, 0)) = query_integer(made, 0);
        query_reset(made);
    }
    query_close(from);
    query_close(to);
    query_close(made);
    return !db_has_failed(source) && !db_has_failed(merge->out);
}

/* Does the primary key of TABLE consist of two columns, of which the first is the id of
 * another table? */
static bool has_composite_key(enum row_table table)
{
    return table == TABLE_graph_node || table == TABLE_thread_cpu || table == TABLE_stretch;
}

/* Delete the rows copied so far from a trace that turns out to be invalid. The file has no journal,
 * so ROLLBACK is not possible. */
static void delete_copied_rows(struct merge *merge)
{
    char sql[200];

    memcpy(merge->top, merge->base, sizeof merge->top);
    for (int i = 0; i < ROW_TABLES; i++) {
        const struct row_column *first = &row_tables[i].columns[0];
        /* A table without ids has rowids without gaps. So the last row to keep has the number of
         * rows that were written before this trace as its rowid. */
        bool by_id = first->holds == ROW_KEY || has_composite_key((enum row_table)i);
        const char *name = by_id ? first->name : "rowid";
        int64_t last = by_id ? merge->base[first->id] : merge->kept[i];
        if (i == TABLE_signature)
            continue;
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s > %" PRId64, row_tables[i].name, name,
                 last);
        db_run(merge->out, sql);
    }
    memcpy(merge->rows, merge->kept, sizeof merge->rows);
}

/* Copy the trace that ROW of merge/traces describes. Returns false if the trace was left out, or if
 * writing failed (db_has_failed). */
static bool copy_trace(struct merge *merge, struct query *row)
{
    struct db *source = db_open_single_trace(query_text(row, 0, NULL), false);
    bool fits = source;

    memcpy(merge->base, merge->top, sizeof merge->base);
    memcpy(merge->kept, merge->rows, sizeof merge->kept);
    if (source) {
        merge->said = row;
        merge->shift_ns = query_integer(row, 1) - merge->started_ns;
        for (int i = 0; fits && i < ROW_TABLES; i++) {
            if (i == TABLE_signature)
                fits = copy_signatures(merge, source);
            else
                fits = copy_table(merge, source, (enum row_table)i);
        }
        db_close(source);
    }
    if (!fits && !db_has_failed(merge->out))
        delete_copied_rows(merge);
    return fits;
}

/* Add a row to the table `merged` for the trace that was copied. ROW of merge/traces
 * describes this trace. */
static void add_row_for_merged_trace(struct merge *merge, struct query *row)
{
    static const enum row_id kinds[] = {
        ID_THREAD, ID_CODE, ID_FRAME, ID_LOOKUP, ID_CHECK,
    };
    struct query *put = db_query(merge->out, schema_statement("merge/merged"));
    int parameter = 1;

    query_bind_column(put, parameter++, row, 0);
    query_bind_column(put, parameter++, row, 1);
    for (int column = 5; column < 9; column++)
        query_bind_column(put, parameter++, row, column);
    for (size_t i = 0; i < array_count(kinds); i++)
        query_bind_integer(put, parameter++, merge->base[kinds[i]]);
    query_step(put);
    query_close(put);
}

/* Copy the traces of GIVEN and return how many were copied. Traces that cannot be copied are
 * removed from GIVEN. */
static size_t copy_all_traces(struct merge *merge, struct db *given)
{
    int64_t count = db_integer(given, 0, "SELECT COUNT(*) FROM trace");
    int64_t done = 0;
    LIST(int64_t) left_out = {0};

    merge->started_ns = db_integer(given, 0, "SELECT MIN(began_ns) FROM trace");
    for (int i = 0; i < ROW_TABLES; i++)
        prepare_table_statements(merge, (enum row_table)i);
    db_rows(row, given, schema_statement("merge/traces"))
    {
        progress_tick(&merge->progress, done, count);
        done++;
        if (db_has_failed(merge->out))
            continue;
        if (copy_trace(merge, row))
            add_row_for_merged_trace(merge, row);
        else
            *list_add(&left_out) = query_integer(row, 4);
    }
    for (int i = 0; i < ROW_TABLES; i++) {
        query_close(merge->puts[i]);
        free(merge->gets[i]);
    }
    list_each(trace_id, &left_out)
        db_rows(row, given, "DELETE FROM trace WHERE trace_id = ?1", *trace_id)
        {
        }
    count -= (int64_t)left_out.count;
    list_free(&left_out);
    return (size_t)count;
}

/* Copy the rows that the statement NAME selects from the database FROM into the table
 * `meta` of OUT. */
static void copy_meta_rows(struct db *out, struct db *from, const char *name)
{
    struct query *put = db_query(out, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)");

    db_rows(row, from, schema_statement(name))
    {
        query_bind_row(put, 1, row, 2);
        query_execute(put);
    }
    query_close(put);
}

/* Write the rows of the table `meta`, which describe the whole merged trace, and complete the file.
 * Returns false on an error. */
static bool finish_merged_trace(struct merge *merge, struct db *given)
{
    struct db *out = merge->out;

    db_set_progress_callback(out, progress_spin, &merge->progress);
    copy_meta_rows(out, given, "merge/meta");
    copy_meta_rows(out, out, "merge/merged-from");
    if (merge->frames == MERGE_COUNTED)
        copy_meta_rows(out, given, "merge/counted");
    else
        copy_meta_rows(out, out, "merge/frames");
    if (merge->frames == MERGE_DECISIONS)
        copy_meta_rows(out, out, "merge/decisions-only");
    if (db_has_failed(given))
        return false;
    return db_run(out, "DROP INDEX signature_text; COMMIT") && db_finish_trace(out);
}

bool merge_traces(const char *path, struct db *given, enum merge_frames frames, size_t *merged,
                  char **lost)
{
    struct merge merge = {
        .frames = frames,
        .progress = progress_begin("merging"),
        .out = db_create_trace(path),
    };
    int64_t events;
    bool ok = merge.out && db_run(merge.out, schema_statement("merge/begin"));

    *merged = 0;
    *lost = NULL;
    if (ok)
        *merged = copy_all_traces(&merge, given);
    if (*merged && db_run(given, schema_statement("merge/alike"))) {
        ok = finish_merged_trace(&merge, given);
        *lost = doubts_describe_losses(merge.out, &events);
    }
    progress_end(&merge.progress);
    map_free(&merge.signatures);
    db_close(merge.out);
    /* return freed memory to the system: the page cache leaves it in small pieces, which later
     * sorting cannot use */
    malloc_trim(0);
    return ok && *merged;
}
