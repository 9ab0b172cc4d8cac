/* cmd/diff.c -- `dyntrace diff`: what is different in B?
 *
 * Runs in: the viewer.
 *
 * Each trace gives its functions and facts about them: how calls ended, entries, reasons of recompiles, graph breaks,
 * times. They are copied into a database in memory, where one statement says which functions are the same and another
 * what differs (schemas/diff.sql). Times differ from run to run: they are a difference beyond --tolerance only.
 *
 * --lookups goes through the lookups of both in order of time, thread by thread of one name, up to the first that was
 * decided differently: where one rank began to do what the others did not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/counts.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"

enum {
    LIMIT = 200,    /* rows, unless --limit */
    TICK = 1 << 15, /* rows read between two looks at the clock */
    STEPS = 5,      /* of diff/pairs */
};

enum kind { FUNCTION, CODE, OUTCOME, ENTRY, REASON, BREAK, GUARD, TIME, LOOKUP, KINDS };

static const char *const kind_names[KINDS] = {"function", "code",  "outcome", "entry", "reason",
                                              "break",    "guard", "time",    "lookup"};

struct side {
    struct db *db; /* owned */
    int64_t rank;  /* of --rank; -1: every process */

    /* of --lookups, which are read one after the other, thread by thread */
    struct query *rows, *threads; /* owned; THREADS at the one that is compared */
    int64_t at;                   /* its place among them, from 1 */
    bool more, thread;            /* there is a row, a thread */
    struct map codes, entries;    /* what is the same in both has one number */
};

static struct diff {
    struct side sides[2]; /* A and B */
    struct db *both;      /* owned: in memory */
    const char *glob;     /* borrowed, or NULL */
    bool json, lookups, fail[KINDS];
    double tolerance;
    int64_t limit, found[KINDS]; /* limit -1: all */
    struct table *table;         /* owned; NULL: no row yet */
    struct progress progress;
} diff = {.sides = {{.rank = -1}, {.rank = -1}}, .tolerance = 0.2, .limit = LIMIT};

/* ---- what is compared --------------------------------------------------------- */

/* The statement NAME of schemas/diff.sql, with --function and --rank as its ?1 and ?2. */
static struct query *ask(const struct side *side, const char *name)
{
    struct query *query = db_query(side->db, schema_statement(name));

    if (diff.glob)
        query_bind_text(query, 1, diff.glob);
    if (side->rank >= 0)
        query_bind_integer(query, 2, side->rank);
    return query;
}

/* What STATEMENT finds in SIDE, as rows that SQL inserts. */
static void rows_copy(const struct side *side, const char *statement, const char *sql)
{
    struct query *from = ask(side, statement), *to = db_query(diff.both, sql);

    query_bind_integer(to, 1, side - diff.sides);
    while (query_step(from)) {
        for (int i = 0; i < query_columns(from); i++)
            query_bind_column(to, i + 2, from, i);
        query_step(to);
        query_reset(to);
    }
    query_close(from);
    query_close(to);
}

static void fact_add(const struct side *side, int64_t code_id, const char *kind, int64_t number, const char *what,
                     int64_t value)
{
    struct query *to = db_query(diff.both, "INSERT INTO fact VALUES (?1, ?2, ?3, ?4, ?5, ?6)");

    query_bind_integer(to, 1, side - diff.sides);
    query_bind_integer(to, 2, code_id);
    query_bind_text(to, 3, kind);
    query_bind_integer(to, 4, number);
    query_bind_text(to, 5, what);
    query_bind_integer(to, 6, value);
    query_step(to);
    query_close(to);
}

/* How calls ended, in the processes of the side's rank. */
static void calls_read(const struct side *side)
{
    struct counts counts = {0};
    struct map processes = {0};
    struct query *query = ask(side, "diff/rank");

    while (query_step(query))
        map_put(&processes, query_integer(query, 0));
    query_close(query);
    counts_read(&counts, side->db, &diff.progress);
    for (size_t i = 0; i < counts.all.count; i++) {
        const struct count *count = &counts.all.at[i];
        for (int o = 0; o < OUTCOMES; o++)
            if (count->calls[o] && (side->rank < 0 || map_get(&processes, count->process_id)))
                fact_add(side, count->code_id, "outcome", o, outcome_word(o), count->calls[o]);
    }
    map_free(&processes);
    counts_free(&counts);
}

/* The time of guards, for each entry and so for its code object. */
static void checks_read(const struct side *side)
{
    struct query *query = ask(side, "diff/entries");
    struct checked { int64_t entry_id, code_id, checks, ns; } *entry = NULL;
    LIST(struct checked) entries = {0};

    while (query_step(query)) {
        entry = list_add(&entries);
        entry->entry_id = query_integer(query, 0);
        entry->code_id = query_integer(query, 2);
    }
    query_close(query);
    query = ask(side, "diff/checks");
    for (int64_t rows = 1; query_step(query); rows++) {
        if (rows % TICK == 0)
            progress_tick(&diff.progress, 0, 0);
        if (!entry || entry->entry_id != query_integer(query, 0))
            entry = list_find(&entries, entry_id, query_integer(query, 0));
        if (entry) {
            entry->checks++;
            entry->ns = times_sum(entry->ns, query_integer(query, 1));
        }
    }
    query_close(query);
    for (size_t i = 0; i < entries.count; i++)
        if (entries.at[i].checks)
            fact_add(side, entries.at[i].code_id, "guard", 0, "guards of a call", entries.at[i].ns);
    list_free(&entries);
}

static void statement_run(const char *name, int64_t parameter)
{
    struct query *query = db_query(diff.both, schema_statement(name));

    query_bind_integer(query, 1, parameter);
    query_step(query);
    query_close(query);
}

static void traces_read(void)
{
    for (const struct side *side = diff.sides; side < diff.sides + 2; side++) {
        rows_copy(side, "diff/codes", "INSERT INTO code VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
        rows_copy(side, "diff/facts", "INSERT INTO fact VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
        rows_copy(side, "diff/entries", "INSERT INTO entry VALUES (?1, ?2, ?3)");
        calls_read(side);
        checks_read(side);
    }
    statement_run("diff/functions", 0);
    for (int step = 1; step <= STEPS; step++)
        statement_run("diff/pairs", step);
    statement_run("diff/alone", 0);
    statement_run("diff/totals", 0);
}

/* ---- differences -------------------------------------------------------------- */

/* A row: WHERE may be NULL; A and B are NULL for "not there". */
static void row_put(enum kind kind, const char *function, const char *where, const char *what, const char *a, const char *b)
{
    int64_t rows = 0;

    diff.found[kind]++;
    for (int k = 0; k < KINDS; k++)
        rows += diff.found[k];
    if (diff.limit >= 0 && rows > diff.limit)
        return;
    if (!diff.table)
        diff.table = table_open(stdout, table_format(stdout, diff.json), 6,
                                (const char *[]){"kind", "function", "where", "what", "a", "b"});
    for (int i = 0; i < 6; i++)
        table_string(diff.table, (const char *[]){kind_names[kind], function, where, what, a, b}[i]);
}

/* Where the current row has a function: columns FILE and the one after it. The caller frees it. */
static char *where_of(struct query *query, int file)
{
    return say_print("%s:%" PRId64, query_text(query, file, NULL), query_integer(query, file + 1));
}

static enum kind kind_of(const char *name)
{
    enum kind kind = 0;

    while (strcmp(kind_names[kind], name))
        kind++;
    return kind;
}

/* A value of the current row; durations in MADE. NULL: it is not there. */
static const char *value_of(struct query *query, int column, enum kind kind, char *made)
{
    if (query_type(query, column) == QUERY_NULL)
        return NULL;
    return kind == GUARD || kind == TIME ? table_duration(made, query_integer(query, column)) : query_text(query, column, NULL);
}

/* The rows of functions: times, or all else. */
static void functions_compare(bool times)
{
    struct query *query = db_query(diff.both, schema_statement("diff/rows"));
    char *tolerance = say_print("%.17g", diff.tolerance);

    query_bind_integer(query, 1, times);
    query_bind_text(query, 2, tolerance);
    while (query_step(query)) {
        enum kind kind = kind_of(query_text(query, 0, NULL));
        char a[TABLE_HUMAN], b[TABLE_HUMAN], *where = where_of(query, 2);
        row_put(kind, query_text(query, 1, NULL), where, query_text(query, 4, NULL), value_of(query, 5, kind, a),
                value_of(query, 6, kind, b));
        free(where);
    }
    query_close(query);
    free(tolerance);
}

/* ---- lookup by lookup --------------------------------------------------------- */

/* The numbers that STATEMENT gives what SIDE has. */
static struct map numbers_read(const struct side *side, const char *statement)
{
    struct query *query = db_query(diff.both, schema_statement(statement));
    struct map numbers = {0};

    query_bind_integer(query, 1, side - diff.sides);
    while (query_step(query))
        *map_put(&numbers, query_integer(query, 0)) = query_integer(query, 1);
    query_close(query);
    return numbers;
}

static void lookups_open(struct side *side)
{
    side->rows = ask(side, "diff/lookups");
    side->threads = ask(side, "diff/threads");
    side->more = query_step(side->rows);
    side->thread = query_step(side->threads);
    side->at = 1;
    side->codes = numbers_read(side, "diff/same-codes");
    side->entries = numbers_read(side, "diff/same-entries");
}

static void lookups_close(struct side *side)
{
    query_close(side->rows);
    query_close(side->threads);
    map_free(&side->codes);
    map_free(&side->entries);
}

/* Is the current row one of the current thread? */
static bool is_here(const struct side *side)
{
    return side->more && query_integer(side->rows, 0) == side->at;
}

static void thread_next(struct side *side)
{
    while (is_here(side))
        side->more = query_step(side->rows);
    side->thread = query_step(side->threads);
    side->at++;
}

/* A number of the current row by NUMBERS; 0 for what has none. */
static int64_t number_of(const struct side *side, int column, const struct map *numbers)
{
    int64_t *number = map_get(numbers, query_integer(side->rows, column));

    return number ? *number : 0;
}

static bool lookups_same(const struct side *a, const struct side *b)
{
    return query_integer(a->rows, 3) == query_integer(b->rows, 3) &&
           number_of(a, 2, &a->codes) == number_of(b, 2, &b->codes) &&
           number_of(a, 4, &a->entries) == number_of(b, 4, &b->entries);
}

/* The lookup that SIDE is at in words, "f hit 0/1 (lookup 7 at 1.2 ms; x: int[4])", which the caller frees; FUNCTION and
 * WHERE become its own where there is one. */
static char *lookup_words(const struct side *side, char **function, char **where)
{
    struct query *query = db_query(side->db, schema_statement("diff/lookup"));
    char human[TABLE_HUMAN], *words = NULL;

    if (is_here(side)) {
        query_bind_integer(query, 1, query_integer(side->rows, 1));
        if (query_step(query)) {
            free(*function), free(*where);
            *function = strdup(query_text(query, 0, NULL));
            *where = where_of(query, 1);
            words = say_print("%s%s%s", query_text(query, 3, NULL), table_duration(human, query_integer(query, 4)),
                              query_text(query, 5, NULL));
        }
    }
    query_close(query);
    return words ? words : strdup("no more lookups");
}

/* The lookups that both are at differ; one of them may have no more of this thread. */
static void diverge_put(const struct side *a, const struct side *b, int64_t alike)
{
    char *function = NULL, *where = NULL, *in_a = lookup_words(a, &function, &where), *in_b = lookup_words(b, &function, &where),
         *what = say_print("%.100s: after %" PRId64 " alike", query_text(b->threads, 1, NULL), alike);

    row_put(LOOKUP, function, where, what, in_a, in_b);
    free(function), free(where), free(in_a), free(in_b), free(what);
}

/* The first lookup of the threads that both are at that differs in function, outcome or entry. */
static void threads_compare(struct side *a, struct side *b)
{
    for (int64_t alike = 0; is_here(a) || is_here(b); alike++) {
        if (!is_here(a) || !is_here(b) || !lookups_same(a, b)) {
            diverge_put(a, b, alike);
            return;
        }
        if (alike % TICK == 0)
            progress_tick(&diff.progress, 0, 0);
        a->more = query_step(a->rows);
        b->more = query_step(b->rows);
    }
}

static void lookups_compare(void)
{
    static const char alone[] = "a thread with lookups";
    struct side *a = &diff.sides[0], *b = &diff.sides[1];

    lookups_open(a);
    lookups_open(b);
    while (a->thread || b->thread) {
        int order = !a->thread   ? 1
                    : !b->thread ? -1
                                 : strcmp(query_text(a->threads, 1, NULL), query_text(b->threads, 1, NULL));
        if (order)
            row_put(LOOKUP, NULL, NULL, query_text(order < 0 ? a->threads : b->threads, 1, NULL), order < 0 ? alone : NULL,
                    order > 0 ? alone : NULL);
        else
            threads_compare(a, b);
        if (order <= 0)
            thread_next(a);
        if (order >= 0)
            thread_next(b);
    }
    lookups_close(a);
    lookups_close(b);
}

/* ---- the command line ------------------------------------------------------ */

static bool side_open(struct side *side, const char *path)
{
    struct query *query;
    bool any;

    if (!(side->db = find_open(path)))
        return false;
    db_run(side->db, "PRAGMA cache_size = -12288"); /* what is read once needs no more, and there are two traces */
    query = ask(side, "diff/rank");
    any = query_step(query) || side->rank < 0;
    query_close(query);
    if (!any && !db_failed(side->db))
        say_error("%s: no process of rank %" PRId64, path, side->rank);
    doubts_say(side->db, "what is compared is what it has so far", "some differences may be due to that");
    return any;
}

static bool failed(void)
{
    return db_failed(diff.sides[0].db) || db_failed(diff.sides[1].db) || db_failed(diff.both);
}

static int traces_diff(void)
{
    struct json json = {.out = stdout};
    int64_t all = 0;
    bool fails = false, ok;

    traces_read();
    if (failed())
        return 2;
    if (diff.glob && !db_integer(diff.both, 0, "SELECT COUNT(*) FROM function")) {
        say_error("diff: --function %s: no function of either trace matches, so there is nothing to compare", diff.glob);
        return 2;
    }
    if (diff.json) {
        json_object(&json, NULL);
        json_lines(&json);
        json_key(&json, "differences");
    }
    functions_compare(false);
    if (diff.lookups)
        lookups_compare();
    functions_compare(true); /* after all else, because every run differs in times: what changed most comes first */
    progress_end(&diff.progress);
    ok = !diff.table || table_close(diff.table);
    if (!ok || failed())
        return 2;
    for (int k = 0; k < KINDS; k++) {
        all += diff.found[k];
        fails = fails || (diff.fail[k] && diff.found[k]);
    }
    if (diff.json) {
        fputs(diff.table ? "" : "[]", stdout);
        json_bool(&json, "fails", fails);
        json_object(&json, "counts");
        for (int k = 0; k < KINDS; k++)
            json_integer(&json, kind_names[k], diff.found[k]);
        json_end(&json);
        json_end(&json);
        putchar('\n');
    } else if (!all) {
        puts("no difference");
    } else if (diff.limit >= 0 && all > diff.limit) {
        say_error("diff: %" PRId64 " of %" PRId64 " differences; --limit 0 shows all", diff.limit, all);
    }
    return fails;
}

/* "outcome,entry" or "any". */
static const char *fail_read(const struct option *option, const char *list)
{
    (void)option;
    while (*list) {
        size_t length = strcspn(list, ",");
        bool known = false;
        for (int k = 0; k < KINDS; k++)
            if ((length == strlen(kind_names[k]) && !strncmp(list, kind_names[k], length)) ||
                (length == 3 && !strncmp(list, "any", 3)))
                diff.fail[k] = known = true;
        if (!known)
            return "not kinds such as outcome,entry, or any; `dyntrace diff --help` lists them";
        list += length;
        list += *list == ',';
    }
    return memchr(diff.fail, true, sizeof diff.fail) ? NULL : option_empty;
}

static const char *rank_read(const struct option *option, const char *value)
{
    int64_t *a = &diff.sides[0].rank, *b = &diff.sides[1].rank;
    char *end;

    (void)option;
    *a = *b = strtoll(value, &end, 10);
    if (end != value && *end == ',')
        *b = strtoll(value = end + 1, &end, 10);
    return end == value || *end || *a < 0 || *b < 0 ? "not one rank, or two such as 0,1" : NULL;
}

static const struct option options[] = {
    {"fail-on", .value = "KIND,...", .read = fail_read,
     .words = "function code outcome entry reason break guard time lookup any",
     .help = "exit with 1 when there is a difference of these kinds, or of any:\n"
             "  function: compiled in one only\n"
             "  code: its bytecode changed\n"
             "  outcome: how its calls ended\n"
             "  entry: cache entries, that is compiles\n"
             "  reason: of a recompile\n"
             "  break: graph breaks\n"
             "  guard: time of its guards\n"
             "  time: its own time\n"
             "  lookup: a lookup that diverges, with --lookups"},
    {"function", .value = "GLOB", .read = option_text, .to = &diff.glob,
     .help = "only functions whose qualified name, or the last part of it, matches"},
    {"tolerance", .value = "P", .read = option_share, .to = &diff.tolerance,
     .help = "times that differ by less are alike: 0.2 or 20%, the default. Own times below 5 ms and guards below a "
             "microsecond a call are noise whatever the ratio"},
    {"lookups", .read = option_flag, .to = &diff.lookups,
     .help = "for each thread the first lookup that was decided differently; threads are matched by name, and by rank "
             "when the traces are of two ranks"},
    {"rank", .value = "R[,S]", .read = rank_read,
     .help = "only processes of rank R of A, and of rank S (or R) of B: `dyntrace diff job.db job.db --rank 0,1 "
             "--lookups` shows where rank 1 began to do something else"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &diff.limit,
     .help = "rows printed; 0 is all. The default is 200"},
    {"json", .read = option_flag, .to = &diff.json,
     .help = "the same for a program, with the number of differences of each kind"},
    OPTION_END,
};

static int diff_main(int count, char **operands)
{
    int status = 2;

    if (count != 2) {
        say_error("diff: needs two traces: `dyntrace diff A B`");
        return 2;
    }
    if (diff.fail[LOOKUP])
        diff.lookups = true;
    diff.progress = progress_begin("comparing");
    if (side_open(&diff.sides[0], operands[0]) && side_open(&diff.sides[1], operands[1]) &&
        (diff.both = db_scratch("diff", schema_statement("diff/tables"))))
        status = traces_diff();
    progress_end(&diff.progress);
    db_close(diff.sides[0].db);
    db_close(diff.sides[1].db);
    db_close(diff.both);
    return status;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "what is different in another trace",
    .operands = "A B",
    .about = "What is different in trace B: functions are matched by name and file, then line and fingerprint; one "
             "that moved to another file, by name and fingerprint.",
    .options = options,
    .more = "Exit status: 0; 1 a difference of --fail-on; 2 bad usage, or a trace that cannot be read.",
    .operands_most = 2,
    .too_many = "two traces at a time",
    .run = diff_main,
};
