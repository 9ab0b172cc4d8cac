/* cmd/ranks.c -- `dyntrace ranks`: which rank of a job differs from the others, where first, and
 * what it cost.
 *
 * Ranks of a job do the same, so what most of them do is what is meant. One trace is open at a
 * time: of each the ranks, their compiles and their longer waits are kept in a database of our own
 * (schemas/ranks.sql). A compile has a key: how it ended, what made it needed, where it broke, and
 * which guards its entry got. Where the nth compile of a function has another key in some ranks
 * than in most, or is not there, they differ; if the keys differ by guards alone the two traces are
 * opened once more, to name the guard.
 *
 * A key leaves out what differs between any two processes: addresses, and the number of a device.
 * */
#include "cmd/ranks.h"

#include <ctype.h>
#include <inttypes.h>

#include "command.h"
#include "lib/bounds.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/result.h"
#include "trace/traces.h"

enum {
    LIMIT = 20,            /* rows of each table, unless --limit */
    ADDRESS = 8,           /* digits: a number as long is an address or an id */
    FRAMES_READ = 5000000, /* of a trace, at most, for waits */
};

/* Where ranks wait for each other, in torch/distributed/distributed_c10d.py. */
static const char collectives[] =
    "[\"init_process_group\",\"barrier\",\"monitored_barrier\",\"all_reduce\",\"all_gather\",\"all_"
    "gather_into_tensor\",\"all_gather_object\",\"reduce\",\"reduce_scatter\",\"reduce_scatter_"
    "tensor\",\"broadcast\",\"broadcast_object_list\",\"all_to_all\",\"all_to_all_single\","
    "\"gather\",\"scatter\",\"send\",\"recv\"]";

struct ranks {
    struct db *all;                               /* owned */
    struct query *rank, *function, *event, *wait; /* owned: put a row there */
    const char *glob;                             /* borrowed: of functions, or NULL */
    struct progress progress;
};

/* ---- keys ---------------------------------------------------------------- */

/* A hash of TEXT, without addresses and the numbers of devices, that goes on from HASH. */
static uint64_t text_hash(uint64_t hash, const char *text)
{
    for (const char *at = text; *at; at++) {
        size_t digits =
            isalnum((unsigned char)*at) && (at == text || !isalnum((unsigned char)at[-1]))
                ? strspn(at, "0123456789abcdefABCDEFx")
                : 0;
        bool number = isdigit((unsigned char)*at);
        bool device = number && at > text &&
                      ((at - text >= 5 && !strncmp(at - 5, "cuda:", 5)) ||
                       (at - text >= 6 && !strncmp(at - 6, "index=", 6)));
        if (number && (digits >= ADDRESS || device)) {
            at += digits - 1;
            continue;
        }
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    }
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

/* Of each entry of DB the sum of its guards' hashes: their order does not matter. */
static struct map guards_hash(struct db *db)
{
    struct map entries = {0};

    db_rows(row, db, schema_statement("ranks/guards"))
    {
        const char *kind = query_text(row, 1, NULL);
        uint64_t hash = text_hash(0, kind);
        hash = text_hash(hash, query_text(row, 2, NULL));
        if (!strstr(kind, "ID_MATCH")) /* of an object that is somewhere else in each process */
            hash = text_hash(hash, query_text(row, 3, NULL));
        int64_t *sum = map_put(&entries, query_integer(row, 0));
        *sum = (int64_t)((uint64_t)*sum + hash);
    }
    return entries;
}

/* ---- what each trace says ------------------------------------------------ */

static void events_read(struct ranks *ranks, struct db *db)
{
    enum { RANK, FILENAME, QUALNAME, LINE, OUTCOME = 8, SOURCE, EXPECTED, ACTUAL, BREAKS, ENTRY };
    struct map guards = guards_hash(db);
    struct query *events = db_query(db, schema_statement("ranks/events"));

    query_bind_text(events, 1, ranks->glob);
    while (query_step(events)) {
        const int64_t *entry = map_get(&guards, query_integer(events, ENTRY));
        uint64_t key = entry ? (uint64_t)*entry : 0;
        for (int i = 0; i < 3; i++)
            query_bind_column(ranks->function, i + 1, events, FILENAME + i);
        query_put(ranks->function);
        for (int i = OUTCOME; i <= BREAKS; i++)
            key = text_hash(key, query_text(events, i, NULL));
        query_bind_text(ranks->event, 1, db_path(db));
        query_bind_row(ranks->event, 2, events, BREAKS);
        query_bind_integer(ranks->event, BREAKS + 2, (int64_t)key);
        query_put(ranks->event);
    }
    query_close(events);
    map_free(&guards);
}

static void waits_read(struct ranks *ranks, struct db *db)
{
    struct query *waits = db_query(db, schema_statement("ranks/waits"));

    query_bind_text(waits, 1, collectives);
    while (query_step(waits)) {
        query_bind_text(ranks->wait, 1, db_path(db));
        query_bind_row(ranks->wait, 2, waits, 4);
        query_put(ranks->wait);
    }
    query_close(waits);
}

/* What DB, whose name is its file's, has of its ranks. False: it has none, or cannot be read, which
 * was said. */
static bool trace_read(struct ranks *ranks, struct db *db)
{
    struct query *processes = db_query(db, schema_statement("ranks/processes"));
    bool any = false, waited = false;

    query_bind_text(processes, 1, collectives);
    for (; query_step(processes); any = true) {
        query_bind_text(ranks->rank, 1, db_path(db));
        query_bind_row(ranks->rank, 2, processes, 17);
        waited = waited || query_type(processes, 16) != QUERY_NULL;
        query_put(ranks->rank);
    }
    query_close(processes);
    if (any)
        events_read(ranks, db);
    if (waited && db_meta_integer(db, "frame_count", 0) <= FRAMES_READ)
        waits_read(ranks, db);
    if (!any && !db_failed(db))
        say_error("%s: has no rank: no launcher said which it was", db_path(db));
    return any && !db_failed(db);
}

/* False: there are none to compare, or they cannot be kept, which was said. */
static bool traces_read(struct ranks *ranks, struct traces *traces)
{
    ranks->rank = db_query(ranks->all, schema_statement("ranks/rank"));
    ranks->function = db_query(ranks->all, schema_statement("ranks/function"));
    ranks->event = db_query(ranks->all, schema_statement("ranks/event"));
    ranks->wait = db_query(
        ranks->all,
        "INSERT INTO wait SELECT rank_id, ?3, ?4, ?5 FROM rank WHERE file = ?1 AND rank = ?2");
    for (struct db *db; !db_failed(ranks->all) && (db = traces_next(traces)); db_close(db)) {
        progress_tick(&ranks->progress, (int64_t)traces->next, (int64_t)traces->paths.count);
        db_run(ranks->all, "SAVEPOINT one");
        if (!trace_read(ranks, db) && db_run(ranks->all, "ROLLBACK TO one"))
            traces_left_out(1);
        db_run(ranks->all, "RELEASE one");
    }
    query_close(ranks->rank);
    query_close(ranks->function);
    query_close(ranks->event);
    query_close(ranks->wait);
    return !db_failed(ranks->all) && db_integer(ranks->all, 0, "SELECT COUNT(*) FROM rank");
}

/* ---- where they differ --------------------------------------------------- */

/* The guards of compile COMPILE_ID of the trace FILE become those of SIDE. */
static void side_read(struct ranks *ranks, int side, const char *file, int64_t compile_id)
{
    struct db *db = db_open_each(file, true);
    struct query *to = db_query(ranks->all, schema_statement("ranks/guard"));

    if (db)
        db_rows(row, db, schema_statement("ranks/compile-guards"), compile_id)
        {
            query_bind_integer(to, 1, side);
            query_bind_row(to, 2, row, 4);
            query_put(to);
        }
    query_close(to);
    db_close(db);
}

static void guards_explain(struct ranks *ranks)
{
    struct query *rows = db_query(ranks->all, schema_statement("ranks/unexplained"));

    while (query_step(rows)) {
        side_read(ranks, 0, query_text(rows, 1, NULL), query_integer(rows, 2));
        side_read(ranks, 1, query_text(rows, 3, NULL), query_integer(rows, 4));
        db_rows(row, ranks->all, schema_statement("ranks/explain"), query_integer(rows, 0))
        {
        }
        db_run(ranks->all, "DELETE FROM side_guard");
    }
    query_close(rows);
}

/* A rank that compiled where most hit an entry: what did not fit in its own of that name says why.
 * What did not fit in others may be as it is in all ranks. */
static void recompile_explain(struct ranks *ranks, struct query *row, struct db *here,
                              struct db *there)
{
    struct query *hit = db_query(there, schema_statement("ranks/entry-hit")),
                 *cause = db_query(here, schema_statement("ranks/cause-of"));
    struct query *to = db_query(ranks->all, schema_statement("ranks/caused"));

    query_bind_column(hit, 1, row, 3);
    query_bind_column(hit, 2, row, 4);
    query_bind_column(hit, 3, row, 5);
    query_bind_column(hit, 4, row, 6);
    query_bind_column(hit, 5, row, 8);
    query_bind_column(cause, 1, row, 2);
    if (query_step(hit))
        query_bind_column(cause, 2, hit, 0);
    if (query_step(cause)) {
        query_bind_column(to, 1, row, 0);
        query_bind_row(to, 2, cause, 3);
        query_step(to);
    }
    query_close(hit);
    query_close(cause);
    query_close(to);
}

static void recompiles_explain(struct ranks *ranks)
{
    db_rows(row, ranks->all, schema_statement("ranks/recompiled"))
    {
        struct db *here = db_open(query_text(row, 1, NULL)),
                  *there = here ? db_open(query_text(row, 7, NULL)) : NULL;
        if (there)
            recompile_explain(ranks, row, here, there);
        db_close(here);
        db_close(there);
    }
}

/* ---- the answer ---------------------------------------------------------- */

/* The rows of the statement NAME: durations, columns that end with _ns, in words unless JSON.
 * Returns how many. */
static int64_t rows_print(struct db *all, const char *name, const char *title, int64_t limit,
                          bool json)
{
    struct query *query = db_query(all, schema_statement(name));
    const int columns = query_columns(query);
    struct arena names = {0};
    const char *heads[columns + 1];
    struct table *table = NULL;
    char human[TABLE_HUMAN];
    int64_t rows = 0;

    for (int i = 0; i < columns; i++) {
        char *head = arena_print(&names, "%s", query_name(query, i)), *unit = strstr(head, "_ns");
        if (unit && !json)
            *unit = 0;
        heads[i] = head;
    }
    query_bind_integer(query, 1, limit);
    for (; query_step(query); rows++) {
        if (!rows && title)
            printf("\n%s\n", title);
        if (!table)
            table = table_open(stdout, table_format(stdout, json), columns, heads);
        for (int i = 0; i < columns; i++)
            if (!json && strstr(query_name(query, i), "_ns") &&
                query_type(query, i) == QUERY_INTEGER)
                table_figure(table, table_duration(human, query_integer(query, i)));
            else
                result_cell(table, query, i);
    }
    if (table)
        table_close(table);
    else if (json)
        fputs("[]", stdout);
    query_close(query);
    arena_free(&names);
    return rows;
}

static void answer_print(struct db *all, int64_t limit)
{
    db_rows(row, all, schema_statement("ranks/about")) if (query_type(row, 1) != QUERY_NULL)
        printf("%-10s %s\n", query_text(row, 0, NULL), query_text(row, 1, NULL));
    rows_print(all, "ranks/ranks", "Ranks, those that differ first", limit, false);
    if (!rows_print(all, "ranks/differs", "Where ranks differ first, and what the others have",
                    limit, false))
        puts("\nAll ranks compiled alike.");
    rows_print(all, "ranks/storms", "Compiles for which others waited", limit, false);
}

/* All rows, whatever LIMIT. */
static void answer_json(struct db *all, int64_t limit)
{
    static const char *const lists[] = {"ranks", "differs", "storms"};
    struct json json = {.out = stdout};

    json_object(&json, NULL);
    json_lines(&json);
    db_rows(row, all, schema_statement("ranks/about"))
        result_member(&json, query_text(row, 0, NULL), row, 1);
    for (int i = 0; i < 3; i++) {
        char *name = say_print("ranks/%s", lists[i]);
        json_key(&json, i ? lists[i] : "table");
        rows_print(all, name, NULL, -1, true);
        free(name);
    }
    json_end(&json);
    putchar('\n');
}

struct db *ranks_compared(char *const *files, const char *function)
{
    struct traces traces = traces_together(files);
    struct ranks ranks = {.glob = function, .progress = progress_begin("reading")};
    bool ok =
        !traces.failed && (ranks.all = db_scratch("ranks", schema_statement("ranks/tables"))) &&
        db_run(ranks.all, "PRAGMA cache_size = -65536; BEGIN") && traces_read(&ranks, &traces);

    if (ok) {
        ranks.progress.what = "comparing";
        db_on_progress(ranks.all, progress_spin, &ranks.progress);
        ok = db_run(ranks.all, schema_statement("ranks/compare"));
        if (ok)
            guards_explain(&ranks), recompiles_explain(&ranks);
        db_on_progress(ranks.all, NULL, NULL);
        ok = ok && !db_failed(ranks.all);
    }
    progress_end(&ranks.progress);
    traces_free(&traces);
    if (ok)
        return ranks.all;
    db_close(ranks.all);
    return NULL;
}

int ranks_compare(char *const *files, const char *function, int64_t limit, bool json)
{
    struct db *all = *files ? ranks_compared(files, function) : NULL;
    bool ok;

    if (!*files)
        say_error("ranks: which traces? `dyntrace ranks DIR`");
    else if (all)
        (json ? answer_json : answer_print)(all, limit);
    ok = all && !db_failed(all);
    db_close(all);
    return ok ? 0 : 2;
}

/* ---- the command line ---------------------------------------------------- */

static struct {
    const char *function;
    bool json;
    int64_t limit;
} given = {.limit = LIMIT};

static const struct option options[] = {
    {"function", .value = "GLOB", .read = option_text, .to = &given.function,
     .help = "only functions whose qualified name, or the last part of it, matches"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit,
     .help = "rows of each table; 0 is all. The default is 20"},
    {"json", .read = option_flag, .to = &given.json,
     .help = "the same for a program, complete, times in nanoseconds"},
    OPTION_END,
};

static int ranks_main(int count, char **operands)
{
    return ranks_compare(operands, given.function, given.limit, given.json);
}

const struct command command_ranks = {
    .name = "ranks",
    .summary = "which rank of a job differs, where first, and what it cost",
    .operands = "FILE...",
    .about = "Compares the ranks of a job: which are missing or died, which compiled something "
             "else than most and at which guard first, with the values on each side, for which the "
             "others waited. FILE is a trace, a directory of *.db or a pattern, mostly what "
             "`dyntrace run -o DIR/` made.",
    .options = options,
    .more = "Waits are known where frames of torch's collectives were recorded. Traces without a "
            "rank are said and left out; the exit status is then 3.",
    .operands_most = OPERANDS_ANY,
    .run = ranks_main,
};
