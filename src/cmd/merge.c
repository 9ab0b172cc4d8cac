/* cmd/merge.c -- `dyntrace merge`: many traces as one.
 *
 * Runs in: the viewer.
 *
 * The traces are copied one after the other, row by row. Ids of each are moved
 * up by what the ones before it have used, of that kind:
 *
 *     A: frames 1..900     B: frames 1..500  ->  901..1400
 *
 * so parents keep smaller ids than their children and a thread's frames follow
 * start time, as within each trace. Times are moved so that they count from the
 * start of the earliest, by the wall clocks of the machines. A process is known
 * by (host, pid, start): `process.host` says the machine where they differ, and a
 * process that two traces have is refused, for its frames would count twice.
 *
 * What a column holds is in tables.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "tables.h"
#include "trace/db.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/out_file.h"
#include "lib/progress.h"
#include "lib/say.h"
#include "cmd/writer.h"

enum { TICK_ROWS = 1 << 14, FRAME_END = 7 /* the column end_ns of `frame` */ };

struct renumbered {
    int64_t id, made; /* of a signature in the trace being copied, in the new one */
};

struct merge {
    struct writer *writer; /* owned */
    int64_t base[ROW_IDS]; /* added to ids of the trace being copied */
    int64_t top[ROW_IDS];  /* the greatest id written so far */
    int64_t shift_ns;      /* added to its times */
    const char *host;      /* borrowed: its machine, where its rows do not say */
    LIST(struct renumbered) signatures; /* each text is stored once */
    struct progress progress;
    int64_t rows, frames, open; /* copied */
};

/* VALUE of COLUMN in the trace being copied, as it is in the new one. False: it cannot be. */
static bool moved(struct merge *merge, const struct row_column *column, int64_t value, int64_t *made)
{
    struct renumbered *found = column->id == ID_SIGNATURE ? list_find(&merge->signatures, id, value) : NULL;

    if (column->holds == ROW_TIME)
        return !__builtin_add_overflow(value, merge->shift_ns, made);
    if (found) {
        *made = found->made;
        return true;
    }
    if (value < 0 || __builtin_add_overflow(value, merge->base[column->id], made))
        return false;
    if (*made > merge->top[column->id])
        merge->top[column->id] = *made;
    return true;
}

/* The statements that read a table and write it; rowids are given anew. How many columns; 0: no memory, said. */
static int statements_of(enum row_table table, char **select, char **into)
{
    const struct row_table_facts *facts = &row_tables[table];
    char *names = strdup(""), *marks = strdup(""), *more;
    const char *order = facts->columns[0].holds == ROW_KEY ? facts->columns[0].name : "rowid";
    int count = 0;

    for (const struct row_column *c = facts->columns; names && marks && c->name && c->id != ID_ROW; c++, count++) {
        more = asprintf(&more, "%s%s%s", names, count ? ", " : "", c->name) < 0 ? NULL : more;
        free(names);
        names = more;
        more = asprintf(&more, "%s%s?", marks, count ? ", " : "") < 0 ? NULL : more;
        free(marks);
        marks = more;
    }
    *select = *into = NULL;
    if (!names || !marks || asprintf(select, "SELECT %s FROM %s ORDER BY %s", names, facts->name, table == TABLE_graph_node ? "1, 2" : order) < 0 ||
        asprintf(into, "INSERT INTO %s(%s) VALUES (%s)", facts->name, names, marks) < 0) {
        say_error("out of memory");
        count = 0;
    }
    free(names);
    free(marks);
    return count;
}

/* The current row of QUERY. */
static bool row_copy(struct merge *merge, struct query *query, struct insert *insert, enum row_table table, int count)
{
    const struct row_column *columns = row_tables[table].columns;
    int64_t value;

    for (int c = 0; c < count; c++)
        if ((columns[c].id || columns[c].holds == ROW_TIME) && query_type(query, c) == QUERY_INTEGER) {
            if (!moved(merge, &columns[c], query_integer(query, c), &value))
                return false;
            insert_integer(insert, c + 1, value);
        } else if (columns[c].holds == ROW_KEY) {
            return false; /* a key that is no number */
        } else if (table == TABLE_process && query_type(query, c) == QUERY_NULL && !strcmp(columns[c].name, "host")) {
            insert_text(insert, c + 1, merge->host);
        } else {
            insert_copy(insert, c + 1, query, c);
        }
    return true;
}

static bool table_copy(struct merge *merge, struct db *db, enum row_table table)
{
    char *select, *into;
    int count = statements_of(table, &select, &into);
    struct query *query = count ? db_query(db, select) : NULL;
    struct insert *insert = query ? writer_insert(merge->writer, into) : NULL;
    bool ok = insert != NULL;

    while (ok && query_step(query)) {
        if (!(++merge->rows % TICK_ROWS))
            progress_tick(&merge->progress, 0, 0);
        ok = row_copy(merge, query, insert, table, count);
        if (!ok)
            say_error("%s: table %s has an id or a time that cannot be: `dyntrace fsck` says more", db_path(db), row_tables[table].name);
        else
            ok = insert_run(insert);
        merge->frames += table == TABLE_frame;
        merge->open += table == TABLE_frame && query_type(query, FRAME_END) == QUERY_NULL;
    }
    ok = query_close(query) && ok;
    insert_close(insert);
    free(select);
    free(into);
    return ok;
}

/* Signatures: those that are there already keep their number. */
static bool signatures_copy(struct merge *merge, struct db *db)
{
    struct query *query = db_query(db, "SELECT signature_id, text FROM signature ORDER BY signature_id");
    struct insert *find = writer_insert(merge->writer, "SELECT signature_id FROM signature WHERE text = ?1");
    struct insert *insert = writer_insert(merge->writer, "INSERT INTO signature VALUES (?1, ?2)");
    bool ok = query && find && insert;

    merge->signatures.count = 0;
    while (ok && query_step(query)) {
        struct renumbered *one = list_add(&merge->signatures);
        if (!one) {
            say_error("out of memory");
            ok = false;
            break;
        }
        one->id = query_integer(query, 0);
        insert_copy(find, 1, query, 1);
        if (!insert_find(find, &one->made)) {
            one->made = ++merge->top[ID_SIGNATURE];
            insert_integer(insert, 1, one->made);
            insert_copy(insert, 2, query, 1);
            ok = insert_run(insert);
        }
    }
    insert_close(find);
    insert_close(insert);
    return query_close(query) && ok;
}

static bool trace_copy(struct merge *merge, struct db *db)
{
    bool ok = true;

    memcpy(merge->base, merge->top, sizeof merge->base);
    for (int i = 0; ok && i < ROW_TABLES; i++)
        ok = i == TABLE_signature ? signatures_copy(merge, db) : table_copy(merge, db, (enum row_table)i);
    /* There may be hundreds of traces, each with pages in memory. */
    struct query *shrink = db_query(db, "PRAGMA shrink_memory");
    query_step(shrink);
    return query_close(shrink) && ok;
}

/* ---- what the new trace says of itself ------------------------------------- */

struct source {
    struct db *db;        /* owned */
    char *host, *command; /* owned, or NULL */
    int64_t started_ns;
};

/* Read what SOURCE says; false, said, when it cannot be merged. */
static bool source_read(struct source *source, const char *path)
{
    char *state;
    bool ok = false;

    if (!(source->db = db_open(path)))
        return false;
    db_run(source->db, "BEGIN");
    state = db_meta(source->db, "state");
    source->host = db_meta(source->db, "host");
    source->command = db_meta(source->db, "command");
    source->started_ns = db_meta_integer(source->db, "started_unix_ns", 0);
    if (state && !strcmp(state, "recording"))
        say_error("%s: is still being recorded, or was interrupted (then `dyntrace fsck FILE --recover` completes it)", path);
    else if (source->started_ns <= 0)
        say_error("%s: does not say when it began, so its times cannot be put beside those of others", path);
    else
        ok = true;
    free(state);
    return ok;
}

static bool meta_put(struct insert *meta, const char *key, const char *text)
{
    insert_text(meta, 1, key);
    insert_text(meta, 2, text);
    return insert_run(meta);
}

static bool meta_number(struct insert *meta, const char *key, int64_t value)
{
    insert_text(meta, 1, key);
    insert_integer(meta, 2, value);
    return insert_run(meta);
}

/* The value that all sources have, or OTHERWISE. */
static bool meta_common(struct insert *meta, const struct source *sources, int count, const char *key, const char *otherwise)
{
    char *first = db_meta(sources[0].db, key);
    bool same = first != NULL, done;

    for (int i = 1; same && i < count; i++) {
        char *next = db_meta(sources[i].db, key);
        same = next && !strcmp(next, first);
        free(next);
    }
    done = meta_put(meta, key, same ? first : otherwise);
    free(first);
    return done;
}

/* [{"file": ..., "host": ..., "command": ..., "started_unix_ns": ...}, ...]. The caller frees it. */
static char *sources_json(const struct source *sources, int count)
{
    char *made = NULL;
    size_t bytes;
    struct json json = {.out = open_memstream(&made, &bytes)};

    if (!json.out)
        return NULL;
    json_list(&json, NULL);
    for (int i = 0; i < count; i++) {
        json_object(&json, NULL);
        json_string(&json, "file", db_path(sources[i].db));
        json_string(&json, "host", sources[i].host ? sources[i].host : "");
        json_string(&json, "command", sources[i].command ? sources[i].command : "");
        json_integer(&json, "started_unix_ns", sources[i].started_ns);
        json_end(&json);
    }
    json_end(&json);
    fclose(json.out);
    return made;
}

static bool meta_write(struct merge *merge, const struct source *sources, int count, int64_t started)
{
    struct insert *meta = writer_insert(merge->writer, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)");
    char *from = sources_json(sources, count);
    int64_t span = 0, shortest = 0, ends;
    bool ok = meta && from;

    for (int i = 0; i < count; i++) {
        struct db *db = sources[i].db;
        int64_t shift = sources[i].started_ns - started, least = db_meta_integer(db, "min_duration_ns", 0);
        ends = db_meta_integer(db, "span_ns", 0) + shift;
        span = ends > span ? ends : span;
        shortest = least > shortest ? least : shortest;
    }
    ok = ok && meta_put(meta, "dyntrace_version", DYNTRACE_VERSION) && meta_common(meta, sources, count, "state", "recovered") &&
         meta_common(meta, sources, count, "host", "several") &&
         meta_common(meta, sources, count, "command", "[\"dyntrace\", \"merge\"]") &&
         meta_common(meta, sources, count, "clock", "several") && meta_common(meta, sources, count, "values", "several") &&
         meta_put(meta, "merged_from", from) && meta_number(meta, "started_unix_ns", started) && meta_number(meta, "span_ns", span) &&
         meta_number(meta, "frame_count", merge->frames) && meta_number(meta, "open_frame_count", merge->open) &&
         meta_number(meta, "min_duration_ns", shortest);
    insert_close(meta);
    free(from);
    return ok;
}

/* Is a process there twice? Said. */
static bool processes_apart(struct merge *merge)
{
    struct insert *twice = writer_insert(merge->writer,
        "SELECT pid FROM process WHERE pid IS NOT NULL AND start_ns IS NOT NULL GROUP BY host, pid, start_ns HAVING COUNT(*) > 1");
    int64_t pid;
    bool apart = twice != NULL;

    if (twice && insert_find(twice, &pid)) {
        say_error("merge: two of the traces have the process %" PRId64 " of the same machine and moment: its frames would count twice",
                  pid);
        apart = false;
    }
    insert_close(twice);
    return apart;
}

static int traces_merge(char **paths, int count, const char *out_path, bool force)
{
    struct source *sources = calloc((size_t)count, sizeof *sources);
    struct merge merge = {0};
    struct out_file out = {0};
    int64_t started = INT64_MAX, lost = 0;
    bool ok = sources != NULL;

    for (int i = 0; ok && i < count; i++) {
        ok = source_read(&sources[i], paths[i]);
        if (ok && sources[i].started_ns < started)
            started = sources[i].started_ns;
        if (ok && out_is(out_path, paths[i])) {
            say_error("merge: %s: is one of the traces to merge", out_path);
            ok = false;
        }
    }
    ok = ok && out_open(&out, out_path, force);
    if (!ok)
        goto out;
    merge.progress = progress_begin("merging");
    ok = (merge.writer = writer_open(out.temporary)) && writer_run(merge.writer, "CREATE INDEX signature_text ON signature(text)");
    for (int i = 0; ok && i < count; i++) {
        merge.shift_ns = sources[i].started_ns - started;
        merge.host = sources[i].host;
        ok = trace_copy(&merge, sources[i].db);
        if (ok)
            lost += db_integer(sources[i].db, 0, "SELECT SUM(COALESCE(events, 1)) FROM loss WHERE cause NOT LIKE 'stall:%'");
    }
    ok = ok && processes_apart(&merge) && meta_write(&merge, sources, count, started) &&
         writer_run(merge.writer, "DROP INDEX signature_text") && writer_finish(merge.writer);
    progress_end(&merge.progress);
    writer_close(merge.writer);
    ok = ok && out_commit(&out);
    if (ok && lost)
        say_error("%s: the traces lost %" PRId64 " events; `dyntrace report` says where", out_path, lost);
out:
    out_close(&out);
    list_free(&merge.signatures);
    for (int i = 0; sources && i < count; i++) {
        db_close(sources[i].db);
        free(sources[i].host);
        free(sources[i].command);
    }
    free(sources);
    return ok ? 0 : 2;
}

/* ---- the command line ------------------------------------------------------ */

static int merge_main(int count, char **operands)
{
    if (!out_is_named(writer_given.out)) {
        say_error("merge: -o FILE names the trace to make");
        return 2;
    }
    if (count < 2) {
        say_error("merge: needs two traces or more; `dyntrace merge A B... -o FILE`");
        return 2;
    }
    return traces_merge(operands, count, writer_given.out, writer_given.force);
}

const struct command command_merge = {
    .name = "merge",
    .summary = "many traces as one",
    .operands = "A B...",
    .about = "Many traces as one: of ranks that were recorded by themselves, of machines, of runs. Processes stay apart; times "
             "count from the start of the earliest trace, by the machines' clocks.",
    .options = writer_options,
    .more = "Traces that are still being recorded, and two that have a process in common, are refused.",
    .operands_most = OPERANDS_ANY,
    .run = merge_main,
};
