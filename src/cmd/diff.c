/* cmd/diff.c -- `dyntrace diff`: what differs between trace A and trace B?
 *
 * For both traces the functions are copied to a database in memory, each with the outcomes of its
 * calls, its entries, recompile reasons, graph breaks and times. One statement matches the
 * functions of the two traces, another lists the differences (schemas/diff.sql). Times always
 * differ a little, so a difference of times is listed only if it is larger than --tolerance.
 *
 * --lookups compares the lookups of both traces in order of time, for each pair of threads with the
 * same name. The first lookup with another decision is the moment when, for example, one rank began
 * to differ. */
#include <inttypes.h>

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
#include "trace/traces.h"

enum {
    LIMIT = 200,    /* the most rows that are printed, unless --limit is given */
    TICK = 1 << 15, /* how many rows are read between two updates of the progress line */
    /* steps of work that the statement diff/pairs, which matches functions, reports as progress */
    STEPS = 6, /* times that the statement diff/pairs runs, each time less strictly */
};

struct side {
    struct db *db; /* owned */
    int64_t rank;  /* the value of --rank, or -1 for all processes */

    /* The members below are for --lookups, which compares the traces thread by thread. */
    /* owned: a query of the lookups, ordered by thread and time; it is at a lookup if `more` is
     * true */
    struct query *rows;
    bool more;
    int64_t thread; /* number of the thread whose lookups are being compared */
    /* numbers for ids of functions and entries; the same function or entry has the same number in
     * both traces */
    struct map codes, entries;
};

static struct diff {
    struct side sides[2]; /* A and B */
    struct db *both;      /* owned: the database in memory with the functions of both traces */
    /* borrowed, or NULL. glob: the value of --function. fails: the value of --fail-on */
    const char *glob, *fails;
    bool json, lookups;
    double tolerance;
    int64_t limit; /* the value of --limit, or -1 for all rows */
    struct progress progress;
} diff = {.sides = {{.rank = -1}, {.rank = -1}}, .tolerance = 0.2, .limit = LIMIT};

/* ---- collecting facts about the functions of both traces ----------------- */

/* Query the statement NAME of schemas/diff.sql on SIDE, with --function as ?1 and --rank as ?2. */
static struct query *query_one_trace(const struct side *side, const char *name)
{
    struct query *query = db_query(side->db, schema_statement(name));

    if (diff.glob)
        query_bind_text(query, 1, diff.glob);
    if (side->rank >= 0)
        query_bind_integer(query, 2, side->rank);
    return query;
}

static void run_and_close_query(struct query *query)
{
    query_step(query);
    query_close(query);
}

/* Run STATEMENT on the trace SIDE, and insert its rows into the memory database by the statement
 * SQL. */
static void copy_rows_to_memory(const struct side *side, const char *statement, const char *sql)
{
    struct query *from = query_one_trace(side, statement);
    struct query *to = db_query(diff.both, sql);

    query_bind_integer(to, 1, side - diff.sides);
    while (query_step(from)) {
        query_bind_row(to, 2, from, query_columns(from));
        query_execute(to);
    }
    query_close(from);
    query_close(to);
}

static void insert_fact(const struct side *side, int64_t code_id, const char *kind, int64_t number,
                        const char *what, int64_t value)
{
    struct query *to = db_query_with(diff.both, schema_statement("diff/fact"), side - diff.sides,
                                     code_id, number, value);

    query_bind_text(to, 5, kind);
    query_bind_text(to, 6, what);
    run_and_close_query(to);
}

/* Count the calls of each function by outcome, in the processes of --rank. */
static void read_call_outcomes(const struct side *side)
{
    struct counts counts = {0};
    struct map processes = {0};
    struct query *query = query_one_trace(side, "diff/rank");

    while (query_step(query))
        map_put(&processes, query_integer(query, 0));
    query_close(query);
    counts_read(&counts, side->db, &diff.progress);
    list_each(count, &counts.all) {
        struct count_calls decided = counts_sum_calls_by_outcome(&counts, count);
        for (int o = 0; o < OUTCOMES; o++)
            if (decided.calls[o] && (side->rank < 0 || map_get(&processes, count->process_id)))
                insert_fact(side, count->code_id, "outcome", o, outcome_to_word(o),
                            decided.calls[o]);
    }
    map_free(&processes);
    counts_free(&counts);
}

/* For each cache entry: sum up the time of its guards, and add the sum as a fact about the entry's
 * code object. */
static void read_guard_times(const struct side *side)
{
    struct query *query = query_one_trace(side, "diff/checks");
    struct map entries = {0};

    for (int64_t rows = 1; query_step(query); rows++) {
        int64_t *ns = map_put(&entries, query_integer(query, 0));
        *ns = times_add(*ns, query_integer(query, 1));
        if (rows % TICK == 0)
            progress_tick(&diff.progress, 0, 0);
    }
    query_close(query);
    query = query_one_trace(side, "diff/entries");
    while (query_step(query)) {
        const int64_t *ns = map_get(&entries, query_integer(query, 0));
        if (ns)
            insert_fact(side, query_integer(query, 2), "guard", 0, "guards of a call", *ns);
    }
    query_close(query);
    map_free(&entries);
}

/* Do both traces have the outcomes of calls? If not, reports that outcomes are not compared, and
 * returns false. */
static bool do_both_have_outcomes(void)
{
    for (const struct side *side = diff.sides; side < diff.sides + 2; side++) {
        if (!db_integer(side->db, 0, schema_statement("diff/lacks-lookups")))
            continue;
        say_error("%s: has compiles but no lookups, so outcomes of calls are not compared",
                  db_get_path(side->db));
        return false;
    }
    return true;
}

static void read_both_traces(void)
{
    bool has_outcomes = do_both_have_outcomes();

    for (const struct side *side = diff.sides; side < diff.sides + 2; side++) {
        copy_rows_to_memory(side, "diff/codes",
                            "INSERT INTO code VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
        copy_rows_to_memory(side, "diff/facts", "INSERT INTO fact VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
        copy_rows_to_memory(side, "diff/entries", "INSERT INTO entry VALUES (?1, ?2, ?3)");
        if (has_outcomes)
            read_call_outcomes(side);
        read_guard_times(side);
    }
    db_run(diff.both, schema_statement("diff/functions"));
    for (int step = 1; step <= STEPS; step++)
        run_and_close_query(db_query_with(diff.both, schema_statement("diff/pairs"), step));
    db_run(diff.both, schema_statement("diff/alone"));
    db_run(diff.both, schema_statement("diff/totals"));
}

/* Add the differences between functions: if TIMES, only differences of times, otherwise all
 * others. */
static void add_function_differences(bool times)
{
    struct query *query = db_query_with(diff.both, schema_statement("diff/rows"), times);
    char *tolerance = say_print("%.17g", diff.tolerance);

    query_bind_text(query, 2, tolerance);
    run_and_close_query(query);
    free(tolerance);
}

/* ---- --lookups: comparing the lookups one by one ------------------------- */

/* For each id of SIDE that STATEMENT selects, return the number that stands for it. The same
 * function or entry has the same number in both traces. */
static struct map number_common_rows(const struct side *side, const char *statement)
{
    struct map numbers = {0};

    db_rows(query, diff.both, schema_statement(statement), side - diff.sides) *
        map_put(&numbers, query_integer(query, 0)) = query_integer(query, 1);
    return numbers;
}

/* Is SIDE's current lookup on the thread that is being compared? */
static bool is_on_thread(const struct side *side)
{
    return side->more && query_integer(side->rows, 0) == side->thread;
}

/* Return the number of the function or entry whose id is in COLUMN of SIDE's current lookup. The
 * same function or entry has the same number in both traces. Returns 0 if the id has no number. */
static int64_t common_number_of_column(const struct side *side, int column,
                                       const struct map *numbers)
{
    int64_t *number = map_get(numbers, query_integer(side->rows, column));

    return number ? *number : 0;
}

static bool is_same_lookup(const struct side *a, const struct side *b)
{
    return is_on_thread(a) && is_on_thread(b) &&
           query_integer(a->rows, 3) == query_integer(b->rows, 3) &&
           common_number_of_column(a, 2, &a->codes) == common_number_of_column(b, 2, &b->codes) &&
           common_number_of_column(a, 4, &a->entries) == common_number_of_column(b, 4, &b->entries);
}

/* Describe SIDE's current lookup: "f hit 0/1 (lookup 7 at 1.2 ms; x: int[4])". Sets *FUNCTION and
 * *WHERE unless they are set already. The caller frees all three texts. */
static char *describe_lookup(const struct side *side, char **function, char **where)
{
    struct query *query = db_query(side->db, schema_statement("diff/lookup"));
    char human[TABLE_HUMAN];
    char *words = NULL;

    if (is_on_thread(side))
        query_bind_integer(query, 1, query_integer(side->rows, 1));
    if (query_step(query)) {
        *function = *function ? *function : strdup(query_text(query, 0, NULL));
        *where = *where ? *where : strdup(query_text(query, 1, NULL));
        words =
            say_print("%s%s%s", query_text(query, 2, NULL),
                      table_duration(human, query_integer(query, 3)), query_text(query, 4, NULL));
    }
    query_close(query);
    return words ? words : strdup("no more lookups");
}

/* Add a difference of the kind "lookup". A and B describe the two sides, where NULL means that the
 * side has no lookups. */
static void add_lookup_difference(const char *function, const char *where, const char *what,
                                  const char *a, const char *b)
{
    struct query *to =
        db_query(diff.both, "INSERT INTO difference VALUES ('lookup', ?1, ?2, ?3, ?4, ?5)");

    for (int i = 0; i < 5; i++)
        query_bind_text(to, i + 1, (const char *[]){function, where, what, a, b}[i]);
    run_and_close_query(to);
}

/* Compare the lookups of thread NAME one by one. Add a difference for the first pair with different
 * functions, outcomes or entries, or if one side has fewer lookups. */
static void add_first_difference(const char *name, struct side *a, struct side *b)
{
    char *function = NULL;
    char *where = NULL;
    char *in_a, *in_b, *what;
    int64_t alike = 0;

    for (; is_same_lookup(a, b); alike++) {
        if (alike % TICK == 0)
            progress_tick(&diff.progress, 0, 0);
        a->more = query_step(a->rows);
        b->more = query_step(b->rows);
    }
    if (!is_on_thread(a) && !is_on_thread(b))
        return;
    in_b = describe_lookup(b, &function, &where);
    in_a = describe_lookup(a, &function, &where);
    what = say_print("%.100s: after %" PRId64 " alike", name, alike);
    add_lookup_difference(function, where, what, in_a, in_b);
    free(function);
    free(where);
    free(in_a);
    free(in_b);
    free(what);
}

static void compare_lookups_in_order(void)
{
    static const char alone[] = "a thread with lookups";
    struct side *a = &diff.sides[0];
    struct side *b = &diff.sides[1];

    for (struct side *side = a; side <= b; side++) {
        copy_rows_to_memory(side, "diff/threads", "INSERT INTO thread VALUES (?1, ?2, ?3)");
        side->codes = number_common_rows(side, "diff/same-codes");
        side->entries = number_common_rows(side, "diff/same-entries");
        side->rows = query_one_trace(side, "diff/lookups");
        side->more = query_step(side->rows);
    }
    db_rows(threads, diff.both, schema_statement("diff/same-threads"))
    {
        const char *name = query_text(threads, 0, NULL);
        for (struct side *side = a; side <= b; side++) {
            side->thread = query_integer(threads, (int)(side - a) + 1);
            while (side->more && query_integer(side->rows, 0) < side->thread)
                side->more = query_step(side->rows);
        }
        if (a->thread && b->thread)
            add_first_difference(name, a, b);
        else
            add_lookup_difference(NULL, NULL, name, a->thread ? alone : NULL,
                                  b->thread ? alone : NULL);
    }
    for (struct side *side = a; side <= b; side++) {
        query_close(side->rows);
        map_free(&side->codes);
        map_free(&side->entries);
    }
}

/* ---- the command `diff` and its options ---------------------------------- */

static bool open_side_trace(struct side *side, char *path)
{
    struct query *query;
    bool any;

    if (!(side->db = traces_open((char *[]){path, NULL}, MERGE_DECISIONS)) ||
        !db_run(side->db, "BEGIN"))
        return false;
    /* use a small page cache, because each row is read only once and two traces are open */
    db_run(side->db, "PRAGMA cache_size = -12288");
    query = query_one_trace(side, "diff/rank");
    any = query_step(query) || side->rank < 0;
    query_close(query);
    if (!any && !db_has_failed(side->db))
        say_error("%s: no process of rank %" PRId64, path, side->rank);
    doubts_print_warnings(side->db, "what is compared is what it has so far",
                          "some differences may be due to that");
    doubts_report_settings(side->db);
    return any;
}

/* Print at most --limit differences. Values that are integers are printed as durations. */
static void print_differences(void)
{
    struct table *table =
        table_open(stdout, table_format(stdout, diff.json), 6,
                   (const char *[]){"kind", "function", "where", "what", "a", "b"});
    char human[TABLE_HUMAN];

    db_rows(query, diff.both, schema_statement("diff/differences"),
            diff.limit) for (int i = 0; i < 6; i++) if (query_type(query, i) == QUERY_INTEGER)
        table_put_string(table, table_duration(human, query_integer(query, i)));
    else table_put_string(table,
                          query_type(query, i) == QUERY_NULL ? NULL : query_text(query, i, NULL));
    table_close(table);
}

/* Compare the two traces and print the differences. Returns the exit status. */
static int compare_and_print(void)
{
    struct json json = {.out = stdout};
    struct query *query;
    int64_t all;
    bool fails;

    read_both_traces();
    if (!db_has_failed(diff.both) && diff.glob &&
        !db_integer(diff.both, 0, "SELECT COUNT(*) FROM function")) {
        say_error("diff: --function %s: no function of either trace matches, so there is nothing "
                  "to compare",
                  diff.glob);
        return 2;
    }
    add_function_differences(false);
    if (diff.lookups)
        compare_lookups_in_order();
    /* compare times last, because they differ in every run */
    add_function_differences(true);
    progress_end(&diff.progress);
    if (db_has_failed(diff.sides[0].db) || db_has_failed(diff.sides[1].db) ||
        db_has_failed(diff.both))
        return 2;
    all = db_integer(diff.both, 0, "SELECT COUNT(*) FROM difference");
    query = db_query(diff.both, schema_statement("diff/fails"));
    query_bind_text(query, 1, diff.fails);
    fails = query_step(query);
    if (fails && query_integer(query, 0))
        say_error("diff: only times differ, which equal runs do, too: kinds guard, time and any "
                  "are noisy; --fail-on decisions leaves them out");
    query_close(query);
    if (diff.json) {
        json_object(&json, NULL);
        json_begin_lines(&json);
        json_key(&json, "differences");
        print_differences();
        json_bool(&json, "fails", fails);
        json_object(&json, "counts");
        db_rows(row, diff.both, schema_statement("diff/counts"))
            json_integer(&json, query_text(row, 0, NULL), query_integer(row, 1));
        json_end(&json);
        json_end(&json);
        putchar('\n');
    } else if (!all) {
        puts("no difference");
    } else {
        print_differences();
        if (diff.limit >= 0 && all > diff.limit)
            say_error("diff: %" PRId64 " of %" PRId64 " differences; --limit 0 shows all",
                      diff.limit, all);
    }
    return fails;
}

/* Read the value of --fail-on, such as "outcome,entry" or "any". */
static const char *read_fail_on_option(const struct option *option, const char *list)
{
    char *words = say_print(" %s ", option->words);
    bool known = true;

    for (const char *at = list; *at && known; at += *at == ',') {
        char *word = say_print(" %.*s ", (int)strcspn(at, ", "), at);
        known = strstr(words, word);
        at += strlen(word) - 2;
        free(word);
    }
    free(words);
    diff.fails = list;
    diff.lookups = diff.lookups || strstr(list, "lookup") || strstr(list, "any");
    if (!known)
        return "not kinds such as outcome,entry, or any; `dyntrace diff --help` lists them";
    return *list ? NULL : option_empty;
}

static const char *read_rank_option(const struct option *option, const char *value)
{
    int64_t *a = &diff.sides[0].rank;
    int64_t *b = &diff.sides[1].rank;
    char *end;

    *a = *b = strtoll(value, &end, 10);
    if (end != value && *end == ',')
        *b = strtoll(value = end + 1, &end, 10);
    return end == value || *end || *a < 0 || *b < 0 ? "not one rank, or two such as 0,1" : NULL;
}

static const struct option options[] = {
    {"fail-on", .value = "KIND,...", .read = read_fail_on_option,
     .words = "function code outcome entry reason break guard time lookup any decisions",
     .help = "exit with 1 when there is a difference of these kinds, or of any, or of `decisions`: "
             "function, code, outcome, entry, reason and break, which equal runs have alike. "
             "`guard`, `time` and so `any` are noisy, as times differ from run to run\n"
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
     .help = "times that differ by less are alike: 0.2 or 20%, the default. Own times below 5 ms "
             "and guards below a microsecond a call are noise whatever the ratio"},
    {"lookups", .read = option_flag, .to = &diff.lookups,
     .help = "for each thread the first lookup that was decided differently; threads are matched "
             "by name, and by rank when the traces are of two ranks"},
    {"rank", .value = "R[,S]", .read = read_rank_option,
     .help = "only processes of rank R of A, and of rank S (or R) of B: `dyntrace diff job.db "
             "job.db --rank 0,1 --lookups` shows where rank 1 began to do something else"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &diff.limit,
     .help = "rows printed; 0 is all. The default is 200"},
    {"json", .read = option_flag, .to = &diff.json,
     .help = "the same for a program, with the number of differences of each kind"},
    TABLE_WIDE_OPTION,
    OPTION_END,
};

static int diff_main(int count, char **operands)
{
    int status = 2;

    if (count != 2) {
        say_error("diff: needs two traces: `dyntrace diff A B`");
        return 2;
    }
    diff.progress = progress_begin("comparing");
    if (open_side_trace(&diff.sides[0], operands[0]) &&
        open_side_trace(&diff.sides[1], operands[1]) &&
        (diff.both = db_open_scratch("diff", schema_statement("diff/tables"))))
        status = compare_and_print();
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
    .about = "What is different in trace B: functions are matched by name and file, then line and "
             "fingerprint; one that moved to another file, by name and fingerprint.",
    .options = options,
    .more =
        "Exit status: 0; 1 a difference of --fail-on; 2 bad usage, or a trace that cannot be read.",
    .operands_most = 2,
    .too_many = "two traces at a time",
    .run = diff_main,
};
