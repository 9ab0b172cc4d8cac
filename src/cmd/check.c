/* cmd/check.c -- `dyntrace check`: checks a trace against limits from the command line, for CI.
 *
 * A trace may have very many lookups and guard checks, so their tables are read only once. They are
 * counted by function and process (trace/counts.h), and the counts are stored in a table.
 * Statements in schemas/check.sql compare this table, the compiles and the graph breaks with the
 * limits.
 *
 * The number of compiles, the number of graph breaks and the eager share are compared with the
 * limit for each process separately, so that a result does not depend on the number of ranks. If a
 * limit is exceeded, all rows that it counted are printed: any of them may be the one too many. */
#include <inttypes.h>
#include <math.h>

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
#include "trace/prose.h"
#include "trace/range.h"
#include "trace/result.h"
#include "trace/traces.h"
#include "vocabulary.h"

/* ---- the limits and the options that set them ---------------------------- */

/* The indexes of `limits`. The first --require-compiled has the index REQUIRE, the second one the
 * next index. */
enum { RECOMPILES, COMPILES, BREAKS, GUARDS, EAGER, REQUIRE, LIMITS = REQUIRE + 256 };

enum { IDLE_NAMED = 3 };

static struct limit {
    const char *words;
    /* a statement of schemas/check.sql, which finds the rows that count against the limit */
    const char *statement;
    /* the name of the option that sets the limit, or NULL if it was not given */
    const char *name;
    const char *function; /* for --require-compiled: the function that must be compiled */
    /* allowed: the value of the option. found: the value that the trace has, for the worst process
     * or function */
    double allowed, found;
    int64_t rows; /* number of rows of `statement` that exceed the limit */
    bool checked;
} limits[LIMITS] = {
    [RECOMPILES] = {"recompiles", "check/compiles"},
    [COMPILES] = {"compiles", "check/compiles"},
    [BREAKS] = {"graph breaks", "check/breaks"},
    [GUARDS] = {"us in guards", "check/guards"},
    [EAGER] = {"of the calls ran as Python", "check/eager"},
};

static struct {
    LIST(char) globs;      /* the globs of all --function options, each followed by a NUL */
    int64_t warmup, limit; /* limit: how many rows are printed for each limit, or -1 for all */
    bool json, partly;
} given = {.limit = 100};

#define EACH_LIMIT(l) (struct limit *l = limits; l < limits + LIMITS; l++)

static const char *read_limit_option(const struct option *option, const char *value)
{
    struct limit *limit = option->to;
    const char *why;
    char *end;

    limit->name = option->name;
    if (limit == &limits[EAGER]) {
        why = option_share(&(struct option){.to = &limit->allowed}, value);
        return !why && limit->allowed > 1 ? "a share is at most 1, or 100%" : why;
    }
    limit->allowed = strtod(value, &end);
    if (end == value || *end || !isfinite(limit->allowed) || limit->allowed < 0)
        return limit == &limits[GUARDS] ? "not a number of microseconds" : "not a number from 0 on";
    return limit != &limits[GUARDS] && limit->allowed != trunc(limit->allowed)
               ? "not a whole number"
               : NULL;
}

static const char *read_required_option(const struct option *option, const char *value)
{
    struct limit *limit = option->to;

    while (limit < limits + LIMITS && limit->name)
        limit++;
    if (!*value || limit == limits + LIMITS)
        return !*value ? option_empty : "that is one too many";
    *limit = (struct limit){.statement = "check/required", .name = option->name, .function = value};
    return NULL;
}

static const char *read_pattern_option(const struct option *option, const char *value)
{
    size_t bytes = strlen(value) + 1;

    memcpy(list_add_many(&given.globs, bytes), value, bytes);
    return *value ? NULL : option_empty;
}

static const struct option options[] = {
    {"max-recompiles", .value = "N", .read = read_limit_option, .to = &limits[RECOMPILES],
     .help = "recompiles, in each process: compiles of code for which its cache has held an entry, "
             "made there or inherited by fork"},
    {"max-compiles", .value = "N", .read = read_limit_option, .to = &limits[COMPILES],
     .help = "compiles that made code, in each process"},
    {"max-graph-breaks", .value = "N", .read = read_limit_option, .to = &limits[BREAKS],
     .help = "graph breaks of all compiles, in each process; with --after-warmup those that are "
             "met after it, too"},
    {"max-guard-us", .value = "T", .read = read_limit_option, .to = &limits[GUARDS],
     .help = "microseconds in guards for a call of a function, on average over its calls"},
    {"max-eager-share", .value = "P", .read = read_limit_option, .to = &limits[EAGER],
     .help = "of the calls that the compiler was asked about, those that ran as Python, in each "
             "process: 0.05 or 5%"},
    {"require-compiled", .value = "FUNC", .read = read_required_option, .to = &limits[REQUIRE],
     .many = true, .help = "some call of FUNC ran compiled code; may be repeated"},
    {"function", .value = "GLOB", .read = read_pattern_option, .many = true,
     .help = "only functions whose qualified name (or the last part of it) or file matches, and "
             "what a compiler made of them; may be repeated: one match is enough"},
    {"after-warmup", .value = "N", .read = option_count, .to = &given.warmup,
     .help = "the first N calls of each function, and what was compiled in them, do not count; a "
             "graph break does if a later call meets it"},
    {"time", .value = "FROM..TO", .read = range_read_time_option,
     .help = "only calls and compiles that began between these times since the recording began: "
             "1.5s..2s; either may be missing"},
    {"process", .value = "PID", .read = range_read_option, .many = true,
     .help = "only in this process; may be repeated"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit,
     .help = "rows printed for each limit; 0 is all. The default is 100"},
    {"allow-left-out", .read = option_flag, .to = &given.partly,
     .help = "traces that cannot be read do not fail the check"},
    {"json", .read = option_flag, .to = &given.json, .help = "the result for a program"},
    TABLE_WIDE_OPTION,
    OPTION_END,
};

/* ---- counting calls and guards, and comparing them with the limits ------- */

/* The time that guards took in the calls of a function. */
struct guard_time {
    int64_t ns, known; /* known: the number of checks whose time is known */
};

struct check {
    struct db *db; /* owned */
    struct counts counts;
    /* the guard times of each count in `counts.all`, at the same index */
    LIST(struct guard_time) guards;
    struct progress progress;
};

/* Add the guard time of one row of the table guard_check. VALUES: code_id, thread_id, lookup_id,
 * duration_ns. */
static bool add_guard_time(void *context, const int64_t *values, unsigned nulls)
{
    struct check *check = context;
    const struct count *count =
        nulls & 1u << 3 ? NULL : counts_find_of_thread(&check->counts, values[0], values[1]);
    struct guard_time *time;

    counts_show_progress(&check->counts, values[2]);
    if (!count || values[2] <= count->warm_id)
        return true;
    time = &check->guards.at[count - check->counts.all.at];
    time->ns = times_add(time->ns, values[3]);
    time->known++;
    return true;
}

/* Copy the counts and guard times into the database table `counted`, which schemas/check.sql
 * compares with the limits. */
static void store_counts(struct check *check)
{
    struct query *put = db_query(check->db, schema_statement("check/count"));

    for (size_t i = 0; i < check->counts.all.count; i++, query_reset(put)) {
        const struct count *count = &check->counts.all.at[i];
        const struct guard_time *time = &check->guards.at[i];
        bool shared = given.globs.count || !count->turned_away;
        struct count_calls decided = counts_sum_calls_by_outcome(&check->counts, count);
        struct call_sums sums = calls_sum_outcomes(decided.calls);
        const int64_t numbers[] = {
            count->code_id,
            count->process_id,
            sums.all,
            shared ? sums.asked : 0,
            shared ? sums.python : 0,
            decided.calls[OUTCOME_HIT] + decided.calls[OUTCOME_COMPILED],
            count->warm_ns,
            time->ns,
            time->known,
        };
        enum { NUMBERS = array_count(numbers) };
        char python[400] = "";
        size_t made = 0;
        for (int n = 0; n < NUMBERS; n++)
            query_bind_integer(put, n + 1, numbers[n]);
        for (int o = 0; o < OUTCOMES; o++)
            if (outcome_facts[o].python && decided.calls[o])
                made += (size_t)snprintf(python + made, sizeof python - made, "%s%" PRId64 " %s",
                                         made ? ", " : "", decided.calls[o], outcome_to_word(o));
        query_bind_text(put, NUMBERS + 1, python);
        query_step(put);
    }
    query_close(put);
}

/* Called after a part of the trace was counted: read the guard times of this part, and store the
 * counts. */
static void store_counts_of_part(void *context, const struct count_part *part)
{
    struct check *check = context;

    check->guards.count = 0;
    list_add_many(&check->guards, check->counts.all.count);
    if (limits[GUARDS].name) {
        char *sql =
            say_print("%s AND k.guard_check_id > %" PRId64 " AND k.guard_check_id <= %" PRId64,
                      schema_statement("check/guard_times"), part->from[COUNT_CHECKS],
                      part->to[COUNT_CHECKS]);
        db_visit(check->db, sql, add_guard_time, check);
        free(sql);
    }
    store_counts(check);
}

/* Compare the trace with LIMIT. If LIMIT is about a function and several functions have this name,
 * lists them and returns false. */
static bool compare_with_limit(struct check *check, struct limit *limit)
{
    struct found_code code = {0};
    enum find_result which =
        limit->function ? find_code(check->db, limit->function, &code, stderr, false) : FIND_NONE;
    struct query *asked = db_query(check->db, schema_statement("check/limit"));
    struct query *query = db_query(check->db, schema_statement(limit->statement));
    char *allowed = say_print("%.17g", limit->allowed);

    query_bind_integer(asked, 1, limit - limits);
    query_bind_text(asked, 2, limit->name);
    query_bind_text(asked, 3, allowed);
    query_bind_text(asked, 4, limit->function);
    query_step(asked);
    query_bind_integer(query, 1, limit - limits);
    query_bind_integer(query, 2, given.warmup);
    query_bind_text(query, 3, which == FIND_ONE ? code.ids : "");
    if (which != FIND_SEVERAL)
        query_step(query);
    limit->checked = which != FIND_SEVERAL;
    query_close(asked);
    query_close(query);
    free(allowed);
    if (which == FIND_ONE)
        found_code_free(&code);
    return limit->checked;
}

/* Find the code objects that --function names. Reports an error and returns false if there are
 * none. */
static bool find_selected_code(struct check *check)
{
    char *globs = json_array(given.globs.at, given.globs.count);
    struct query *query = db_query(check->db, schema_statement("check/meant"));
    bool any;

    query_bind_text(query, 1, globs);
    query_step(query);
    query_close(query);
    free(globs);
    any = !given.globs.count || db_integer(check->db, 0, "SELECT EXISTS (SELECT 1 FROM meant)");
    if (!any && !db_has_failed(check->db))
        say_error("%s: no function matches --function, so there is nothing to check",
                  db_get_path(check->db));
    return any;
}

/* Did a compiler decide anything in the checked part of the trace? If not, reports an error and
 * returns false, because without decisions no check could fail. */
static bool has_compiler_decisions(struct check *check)
{
    struct query *query = db_query(check->db, schema_statement("check/undecided"));
    const bool undecided = query_step(query);

    if (undecided)
        say_error("%s: nothing can be checked: %s", db_get_path(check->db),
                  query_text(query, 0, NULL));
    query_close(query);
    return !undecided && !db_has_failed(check->db);
}

/* If there are several traces, report those in which no compiler decided anything. They are not
 * checked. */
static void report_idle_traces(struct check *check)
{
    struct query *query = db_query(check->db, schema_statement("check/idle"));
    size_t idle = 0;

    for (; query_step(query); idle++)
        if (idle < IDLE_NAMED)
            say_error("%s: not checked: no compiler decided anything in it",
                      query_text(query, 0, NULL));
    if (idle > IDLE_NAMED)
        say_error("%s: %zu more traces are not checked: no compiler decided anything in them",
                  db_get_path(check->db), idle - IDLE_NAMED);
    traces_count_left_out(idle);
    query_close(query);
}

/* Check every limit that was given. Reports an error and returns false if a limit cannot be
 * checked. */
static bool check_all_limits(struct check *check)
{
    const char *of_calls = given.warmup          ? "after-warmup"
                           : limits[GUARDS].name ? limits[GUARDS].name
                           : limits[EAGER].name  ? limits[EAGER].name
                                                 : limits[REQUIRE].name;

    db_run_in_temporary(check->db, schema_statement("check/tables"));
    if (!range_limit_views(check->db, "range/calls") || !find_selected_code(check))
        return false;
    check->progress.what = "reading lookups";
    check->counts.warmup = given.warmup;
    check->counts.part = store_counts_of_part;
    check->counts.context = check;
    if (!counts_read(&check->counts, check->db, &check->progress))
        return false;
    /* An imported trace has compiles but no calls, so limits about calls cannot be checked. */
    if (of_calls && !check->counts.any &&
        db_integer(
            check->db, 0,
            "SELECT EXISTS (SELECT 1 FROM compile) AND NOT EXISTS (SELECT 1 FROM main.lookup)")) {
        say_error("%s: --%s cannot be checked: the trace has compiles, but no calls",
                  db_get_path(check->db), of_calls);
        return false;
    }
    if (limits[EAGER].name && db_integer(check->db, 0, schema_statement("check/unseen"))) {
        say_error("%s: --max-eager-share cannot be checked while this is recorded: a function was "
                  "given up, and calls of such are known at the end",
                  db_get_path(check->db));
        return false;
    }
    if (limits[GUARDS].name && db_integer(check->db, 0, schema_statement("check/untimed"))) {
        say_error("%s: --max-guard-us cannot be checked: how long guards took was not seen (torch "
                  "observed, not on dyntrace's evaluator)",
                  db_get_path(check->db));
        return false;
    }
    /* no compiler decided anything, but --require-compiled still has an answer: the check fails */
    if (!limits[REQUIRE].name && !has_compiler_decisions(check))
        return false;
    for
        EACH_LIMIT(l)
    if (l->name && !compare_with_limit(check, l))
        return false;
    report_idle_traces(check);
    return !db_has_failed(check->db);
}

/* ---- printing the rows that exceed a limit ------------------------------- */

/* Print the rows that exceed a limit. Returns false if writing failed. */
static bool print_exceeding_rows(struct check *check)
{
    struct query *rows = db_query(check->db, schema_statement("check/rows"));
    struct table *table = NULL;
    bool ok = true;

    query_bind_integer(rows, 1, given.limit);
    query_bind_integer(rows, 2, given.json);
    while (query_step(rows)) {
        if (!table)
            table = result_open(stdout, table_format(stdout, given.json), rows, NULL);
        result_put_row(table, rows);
    }
    if (table)
        ok = table_close(table);
    else if (given.json)
        fputs("[]", stdout);
    db_rows(totals, check->db, schema_statement("check/totals"))
    {
        struct limit *limit = &limits[query_integer(totals, 0)];
        limit->found = query_real(totals, 1);
        limit->rows = query_integer(totals, 2);
    }
    query_close(rows);
    return ok && !db_has_failed(check->db);
}

static void print_success(const struct check *check)
{
    const char *comma = ": ";

    prose_print_text(stdout, db_get_path(check->db), SIZE_MAX - 1);
    fputs(": ok", stdout);
    for
        EACH_LIMIT(l)
        {
            if (!l->name)
                continue;
            fputs(comma, stdout);
            if (l->function) {
                prose_print_text(stdout, l->function, SIZE_MAX - 1);
                fputs(" compiled", stdout);
            } else if (l == &limits[EAGER]) {
                printf("%.4g %% (at most %.4g %%) %s", l->found * 100, l->allowed * 100, l->words);
            } else {
                printf("%.4g (at most %.10g) %s", l->found, l->allowed, l->words);
            }
            comma = ", ";
        }
    putchar('\n');
}

static void print_result_as_json(struct check *check, struct json *json, bool ok,
                                 struct doubts doubts)
{
    json_string(json, "file", db_get_path(check->db));
    json_bool(json, "ok", ok);
    json_bool(json, "recording", doubts.recording);
    json_integer_or_null(json, "lost_events", doubts.lost >= 0, doubts.lost);
    json_list(json, "checks");
    json_begin_lines(json);
    for
        EACH_LIMIT(l)
        {
            if (!l->checked)
                continue;
            json_object(json, NULL);
            json_string(json, "check", l->name);
            if (l->function)
                json_string(json, "function", l->function);
            else
                json_real(json, "allowed", l->allowed, 15);
            json_real(json, "found", l->found, 15);
            json_bool(json, "ok", !l->rows);
            json_integer(json, "row_count", l->rows);
            json_end(json);
        }
    json_end(json);
    json_end(json);
    putchar('\n');
}

static int check_trace(struct check *check)
{
    bool ok = true;
    bool answered;
    struct json json = {.out = stdout};
    struct doubts doubts;

    /* use a small page cache, because SQLite's sorter may take as much memory as the page cache */
    db_run(check->db, "PRAGMA cache_size = -4096; BEGIN");
    check->progress = progress_begin("reading");
    answered = check_all_limits(check);
    progress_end(&check->progress);
    if (given.json) {
        json_object(&json, NULL);
        json_begin_lines(&json);
        json_key(&json, "rows");
    }
    answered = print_exceeding_rows(check) && answered;
    for
        EACH_LIMIT(l)
        {
            ok = ok && !l->rows;
            if (!given.json && given.limit >= 0 && l->rows > given.limit)
                say_error("%s: %s: %" PRId64 " of %" PRId64 " rows; --limit 0 shows all",
                          db_get_path(check->db), l->name, given.limit, l->rows);
        }
    doubts = doubts_print_warnings(check->db, "what is checked is what it has so far",
                                   "there may be more than was counted");
    doubts_report_settings(check->db);
    doubts_report_trials(check->db);
    if (given.json)
        print_result_as_json(check, &json, answered && ok, doubts);
    else if (answered && ok)
        print_success(check);
    return !answered ? 2 : ok ? 0 : 1;
}

static int check_main(int count, char **operands)
{
    struct check check = {0};
    bool any = false;
    int status = 2;

    for
        EACH_LIMIT(l)
    any = any || l->name;
    if (!any)
        say_error("check: no limit is given, such as --max-recompiles 0; `dyntrace check --help` "
                  "lists them");
    if (any && (check.db = traces_open(operands, MERGE_DECISIONS)))
        status = check_trace(&check);
    if (given.partly)
        traces_count_left_out(-traces_count_left_out(0));
    db_close(check.db);
    counts_free(&check.counts);
    list_free(&check.guards);
    return status;
}

const struct command command_check = {
    .name = "check",
    .summary = "hold a trace against limits: a gate for CI",
    .operands = "[FILE...]",
    .about = "Holds a trace against limits. Exit status: 0 it keeps them, 1 it does not, and the "
             "rows that offend are printed, all of them, 2 bad usage or a trace that cannot "
             "answer, 3 it keeps them but some traces were left out.\n\n"
             "Where no compiler decided anything no limit can be exceeded, and nothing is held "
             "against any: in a trace of a plain program, of one that loaded torch's compiler and "
             "compiled nothing, of a run that kept no frames, or in a part of a trace. That is "
             "status 2, and the line says which it is. Of several traces those are left out, but "
             "for that of a "
             "job's launcher. --require-compiled fails there: FUNC is not compiled.",
    .options = options,
    .more = "Functions that the compiler only turned away unread (its own, those without tensors) "
            "count for --max-eager-share only when --function names them. FILE is the newest *.db "
            "trace here unless given.",
    .operands_most = OPERANDS_ANY,
    .run = check_main,
};
