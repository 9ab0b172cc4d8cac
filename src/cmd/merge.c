/* cmd/merge.c -- `dyntrace merge`: many traces as one.
 *
 * The traces are copied one after the other, table by table. Ids of each are moved up by what the ones before it have
 * used, of that kind:
 *
 *     A: frames 1..900     B: frames 1..500  ->  901..1400
 *
 * so parents keep smaller ids than their children and a thread's frames follow start time, as within each trace. Times
 * are moved so that they count from the start of the earliest, by the wall clocks of the machines. A process is known
 * by (host, pid, start): `process.host` says the machine where they differ, and a process that two traces have is
 * refused, for its frames would count twice.
 *
 * What a column holds is in tables.h; the rest of the SQL in schemas/merge.sql. */
#include <inttypes.h>

#include "command.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "schema.h"
#include "tables.h"
#include "trace/db.h"

enum { SQL_MOST = 2000 /* a table has 18 columns at most */ };

struct merge {
    struct db *out;        /* owned */
    int64_t base[ROW_IDS]; /* added to ids of the trace being copied */
    int64_t top[ROW_IDS];  /* the greatest id written so far */
    int64_t started_ns;    /* of the earliest */
    int64_t shift_ns;      /* added to times of the trace being copied */
    struct progress progress;
};

static bool is_moved(const struct row_column *column)
{
    return column->holds == ROW_TIME || (column->id && column->id != ID_ROW);
}

/* Can the ids and times of TABLE be moved? Then the greatest ids are known. */
static bool table_fits(struct merge *merge, struct db *source, enum row_table table)
{
    const struct row_table_facts *facts = &row_tables[table];
    char sql[SQL_MOST] = "SELECT 0";
    size_t used = strlen(sql);
    struct query *query;
    int at = 1;
    bool fits;

    for (const struct row_column *c = facts->columns; c->name; c++)
        if (is_moved(c))
            used += (size_t)snprintf(sql + used, sizeof sql - used, ", MIN(%s), MAX(%s)", c->name, c->name);
    snprintf(sql + used, sizeof sql - used, " FROM %s NOT INDEXED", facts->name);
    query = db_query(source, sql);
    fits = query_step(query);
    for (const struct row_column *c = facts->columns; fits && c->name; c++) {
        int64_t by = c->id ? merge->base[c->id] : merge->shift_ns, least, most;
        if (!is_moved(c))
            continue;
        if (query_type(query, at) != QUERY_NULL) {
            fits = query_type(query, at) == QUERY_INTEGER && query_type(query, at + 1) == QUERY_INTEGER &&
                   (!c->id || query_integer(query, at) >= 0) && !__builtin_add_overflow(query_integer(query, at), by, &least) &&
                   !__builtin_add_overflow(query_integer(query, at + 1), by, &most);
            if (fits && most > merge->top[c->id])
                merge->top[c->id] = most;
        }
        at += 2;
    }
    if (!fits && !query_failed(query))
        say_error("%s: table %s has an id or a time that cannot be: `dyntrace fsck` says more", db_path(source), facts->name);
    query_close(query);
    return fits;
}

/* Rowids are given anew, in the order of the old ones. */
static void table_copy(struct merge *merge, enum row_table table)
{
    const struct row_table_facts *facts = &row_tables[table];
    char sql[SQL_MOST];
    size_t used = (size_t)snprintf(sql, sizeof sql, "INSERT INTO main.%s SELECT ", facts->name);

    for (const struct row_column *c = facts->columns; c->name && c->id != ID_ROW; c++) {
        used += (size_t)snprintf(sql + used, sizeof sql - used, "%s", c == facts->columns ? "" : ", ");
        if (c->id == ID_SIGNATURE)
            used += (size_t)snprintf(sql + used, sizeof sql - used, "(SELECT made FROM renumbered WHERE id = %s)", c->name);
        else if (is_moved(c))
            used += (size_t)snprintf(sql + used, sizeof sql - used, "%s + (%" PRId64 ")", c->name,
                                     c->id ? merge->base[c->id] : merge->shift_ns);
        else if (table == TABLE_process && !strcmp(c->name, "host"))
            used += (size_t)snprintf(sql + used, sizeof sql - used, "COALESCE(host, (SELECT value FROM source.meta WHERE key = 'host'))");
        else
            used += (size_t)snprintf(sql + used, sizeof sql - used, "%s", c->name);
    }
    snprintf(sql + used, sizeof sql - used, " FROM source.%s NOT INDEXED", facts->name);
    db_run(merge->out, sql);
}

/* Open the trace PATH, and to MERGE as `source`; NULL, said, when it cannot be merged. */
static struct db *source_open(struct merge *merge, const char *path)
{
    struct db *source = db_open(path);

    if (!source)
        return NULL;
    if (db_integer(source, 0, "SELECT value = 'recording' FROM meta WHERE key = 'state'"))
        say_error("%s: is still being recorded, or was interrupted (then `dyntrace fsck FILE --recover` completes it)", path);
    else if (db_meta_integer(source, "started_unix_ns", 0) <= 0)
        say_error("%s: does not say when it began, so its times cannot be put beside those of others", path);
    else if (db_attach(merge->out, source))
        return source;
    db_close(source);
    return NULL;
}

/* What trace NUMBER says of itself. False: it cannot be merged, which was said. */
static bool trace_read(struct merge *merge, const char *path, int number)
{
    struct db *source = source_open(merge, path);
    struct query *given;
    int64_t started;
    bool fits;

    if (!source)
        return false;
    started = db_meta_integer(source, "started_unix_ns", 0);
    if (number == 1 || started < merge->started_ns)
        merge->started_ns = started;
    given = db_query(merge->out, schema_statement("merge/given"));
    query_bind_integer(given, 1, number);
    query_bind_text(given, 2, path);
    query_step(given);
    query_close(given);
    fits = !db_failed(merge->out) && db_attach(merge->out, NULL);
    db_close(source);
    return fits;
}

static bool trace_copy(struct merge *merge, const char *path)
{
    struct db *source = source_open(merge, path);
    bool fits = source;

    if (!source)
        return false;
    memcpy(merge->base, merge->top, sizeof merge->base);
    merge->shift_ns = db_meta_integer(source, "started_unix_ns", 0) - merge->started_ns;
    db_run(merge->out, "BEGIN");
    for (int i = 0; fits && i < ROW_TABLES && !db_failed(merge->out); i++)
        if (i == TABLE_signature)
            db_run(merge->out, schema_statement("merge/signatures"));
        else if ((fits = table_fits(merge, source, (enum row_table)i)))
            table_copy(merge, (enum row_table)i);
    fits = fits && !db_failed(merge->out) && db_run(merge->out, "COMMIT") && db_attach(merge->out, NULL);
    db_close(source);
    return fits;
}

/* Is no process there twice? */
static bool processes_apart(struct merge *merge)
{
    struct query *twice = db_query(merge->out, schema_statement("merge/twice"));
    bool apart = !query_step(twice);

    if (!apart)
        say_error("merge: two of the traces have the process %" PRId64 " of the same machine and moment: its frames would count twice",
                  query_integer(twice, 0));
    query_close(twice);
    return apart;
}

static bool traces_merge(struct merge *merge, char **paths, int count)
{
    for (int i = 0; i < count; i++)
        if (!trace_read(merge, paths[i], i + 1))
            return false;
    for (int i = 0; i < count; i++)
        if (!trace_copy(merge, paths[i]))
            return false;
    if (!processes_apart(merge))
        return false;
    db_run(merge->out, schema_statement("merge/meta"));
    return db_made(merge->out);
}

/* ---- the command line ------------------------------------------------------ */

static int merge_main(int count, char **operands)
{
    struct merge merge = {0};
    struct out_file out = {0};
    int64_t lost = 0;
    bool ok;

    if (!out_is_named(out_given.path)) {
        say_error("merge: -o FILE names the trace to make");
        return 2;
    }
    if (count < 2) {
        say_error("merge: needs two traces or more; `dyntrace merge A B... -o FILE`");
        return 2;
    }
    for (int i = 0; i < count; i++)
        if (out_is(out_given.path, operands[i])) {
            say_error("merge: %s: is one of the traces to merge", out_given.path);
            return 2;
        }
    if (!out_open(&out, out_given.path, out_given.force))
        return 2;
    merge.progress = progress_begin("merging");
    merge.out = db_make(out.temporary);
    if ((ok = merge.out && db_run(merge.out, schema_statement("merge/begin")))) {
        db_on_progress(merge.out, progress_spin, &merge.progress);
        ok = traces_merge(&merge, operands, count);
        lost = ok ? db_integer(merge.out, 0, "SELECT SUM(COALESCE(events, 1)) FROM losses WHERE NOT is_stall") : 0;
    }
    progress_end(&merge.progress);
    db_close(merge.out);
    ok = ok && out_commit(&out);
    if (ok && lost)
        say_error("%s: the traces lost %" PRId64 " events; `dyntrace report` says where", out_given.path, lost);
    out_close(&out);
    return ok ? 0 : 2;
}

const struct command command_merge = {
    .name = "merge",
    .summary = "many traces as one",
    .operands = "A B...",
    .about = "Many traces as one: of ranks that were recorded by themselves, of machines, of runs. Processes stay apart; times "
             "count from the start of the earliest trace, by the machines' clocks.",
    .options = out_options,
    .more = "Traces that are still being recorded, and two that have a process in common, are refused.",
    .operands_most = OPERANDS_ANY,
    .run = merge_main,
};
