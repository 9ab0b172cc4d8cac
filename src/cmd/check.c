/* cmd/check.c -- `dyntrace check`: does a trace keep the limits that its program set itself? For CI.
 *
 * Runs in: the viewer.
 *
 * Compiles and graph breaks are few: SQL finds them (schemas/check.sql). Lookups and guard checks are many: one pass over
 * each (trace/counts.h).
 *
 * Numbers of compiles, breaks and the eager share are held against the limit for each process by itself, so that a gate
 * does not depend on how many ranks there were. The offending rows are all of them: nobody can say which one was one too
 * many. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/counts.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "vocabulary.h"

/* ---- limits ---------------------------------------------------------------- */

enum { RECOMPILES, COMPILES, BREAKS, GUARDS, EAGER, REQUIRE, LIMITS = REQUIRE + 256 }; /* from REQUIRE on: --require-compiled */

static struct limit {
    const char *words;
    const char *name;     /* of the option; NULL: it was not given */
    const char *function; /* REQUIRE: which is compiled */
    double allowed, found; /* found: of the worst process or function */
    int64_t rows;         /* that offend */
    bool checked;
} limits[LIMITS] = {
    [RECOMPILES].words = "recompiles", [COMPILES].words = "compiles", [BREAKS].words = "graph breaks",
    [GUARDS].words = "us in guards", [EAGER].words = "of the calls ran as Python",
};

static struct {
    LIST(char) globs;      /* of --function, a NUL behind each */
    int64_t warmup, limit; /* limit: rows for each limit; -1: all */
    bool json;
} given = {.limit = 100};

#define EACH_LIMIT(l) (struct limit *l = limits; l < limits + LIMITS; l++)

static const char *limit_read(const struct option *option, const char *value)
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
    return limit != &limits[GUARDS] && limit->allowed != trunc(limit->allowed) ? "not a whole number" : NULL;
}

static const char *required_read(const struct option *option, const char *value)
{
    struct limit *limit = option->to;

    while (limit < limits + LIMITS && limit->name)
        limit++;
    if (!*value || limit == limits + LIMITS)
        return !*value ? option_empty : "that is one too many";
    *limit = (struct limit){.name = option->name, .function = value};
    return NULL;
}

static const char *glob_read(const struct option *option, const char *value)
{
    size_t bytes = strlen(value) + 1;

    (void)option;
    memcpy(list_add_many(&given.globs, bytes), value, bytes);
    return *value ? NULL : option_empty;
}

static const struct option options[] = {
    {"max-recompiles", .value = "N", .read = limit_read, .to = &limits[RECOMPILES],
     .help = "recompiles, in each process: compiles of code for which its cache has held an entry, made there or inherited by fork"},
    {"max-compiles", .value = "N", .read = limit_read, .to = &limits[COMPILES],
     .help = "compiles that made code, in each process"},
    {"max-graph-breaks", .value = "N", .read = limit_read, .to = &limits[BREAKS],
     .help = "graph breaks of all compiles, in each process"},
    {"max-guard-us", .value = "T", .read = limit_read, .to = &limits[GUARDS],
     .help = "microseconds in guards for a call of a function, on average over its calls"},
    {"max-eager-share", .value = "P", .read = limit_read, .to = &limits[EAGER],
     .help = "of the calls that the compiler was asked about, those that ran as Python, in each process: 0.05 or 5%"},
    {"require-compiled", .value = "FUNC", .read = required_read, .to = &limits[REQUIRE], .many = true,
     .help = "some call of FUNC ran compiled code; may be repeated"},
    {"function", .value = "GLOB", .read = glob_read, .many = true,
     .help = "only functions whose qualified name (or the last part of it) or file matches, and what a compiler made of them; "
             "may be repeated: one match is enough"},
    {"after-warmup", .value = "N", .read = option_count, .to = &given.warmup,
     .help = "the first N calls of each function, and what was compiled in them, do not count"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit,
     .help = "rows printed for each limit; 0 is all. The default is 100"},
    {"json", .read = option_flag, .to = &given.json, .help = "the result for a program"},
    OPTION_END,
};

/* ---- what was found -------------------------------------------------------- */

/* Time in the guards of a function's calls. */
struct guard_time {
    double ns;
    int64_t known; /* checks whose time is known */
};

struct check {
    struct db *db;       /* owned */
    struct map meant;    /* code ids that --function means */
    struct counts counts;
    LIST(struct guard_time) guards; /* by the index of the calls in counts */
    struct limit *limit; /* whose rows come */
    struct query *row;   /* owned, like the table of offending rows: made with the first */
    struct table *table;
    struct progress progress;
};

static bool means(const struct check *check, int64_t code_id)
{
    return !given.globs.count || map_get(&check->meant, code_id);
}

/* Note what was found of a process or a function. True: it is more than is allowed. */
static bool found_more(struct check *check, double found)
{
    if (found > check->limit->found)
        check->limit->found = found;
    return found > check->limit->allowed;
}

/* A row of the result: what a function did in a process (-1: that in which it was first seen), or that it is not there
 * (CODE_ID -1); FOUND is of the process or function, COMPILE_ID -1: none. */
static void offend(struct check *check, double found, int64_t process_id, int64_t code_id, int64_t calls,
                   int64_t compile_id, const char *why)
{
    double numbers[] = {check->limit->allowed, found};

    if (check->limit->rows++ >= given.limit && given.limit >= 0)
        return;
    if (!check->row)
        check->row = db_query(check->db, schema_statement("check/row"));
    if (!check->table)
        check->table = result_open(stdout, table_format(stdout, given.json), check->row, NULL);
    query_bind_text(check->row, 1, check->limit->name);
    for (int i = 0; i < 2; i++) {
        char *number = say_print("%.4f", numbers[i]);
        query_bind_text(check->row, 2 + i, number);
        free(number);
    }
    query_bind_integer(check->row, 4, process_id);
    query_bind_integer(check->row, 5, code_id);
    query_bind_integer(check->row, 6, calls);
    query_bind_integer(check->row, 7, compile_id);
    query_bind_text(check->row, 8, why);
    query_bind_text(check->row, 9, check->limit->function);
    query_bind_integer(check->row, 10, given.json);
    if (query_step(check->row))
        result_row(check->table, check->row);
    query_reset(check->row);
}

/* ---- limits on compiles and breaks ----------------------------------------- */

/* They are counted by process; those of a process with too many are rows. */
static void check_events(struct check *check)
{
    enum { PROCESS, CODE, AGAIN, AT, COMPILE, WHY }; /* the statements' columns */
    bool breaks = check->limit == &limits[BREAKS], again = check->limit == &limits[RECOMPILES];
    struct query *query = db_query(check->db, schema_statement(breaks ? "check/breaks" : "check/compiles"));
    struct map by_process = {0};

    for (int pass = 0; pass < 2; pass++, query_reset(query))
        while (query_step(query)) {
            int64_t process_id = query_integer(query, PROCESS), code_id = query_integer(query, CODE);
            const struct count *count = counts_find(&check->counts, code_id, process_id);
            bool warm = count ? query_integer(query, AT) >= count->warm_ns : !given.warmup;
            int64_t *found = map_put(&by_process, process_id);
            if (!warm || !means(check, code_id) || (again && !query_integer(query, AGAIN)))
                continue;
            if (pass == 0)
                found_more(check, (double)++*found);
            else if (found_more(check, (double)*found))
                offend(check, (double)*found, process_id, code_id, count ? calls_sum(count->calls).all : 0,
                       query_integer(query, COMPILE), query_type(query, WHY) == QUERY_NULL ? NULL : query_text(query, WHY, NULL));
        }
    query_close(query);
    map_free(&by_process);
}

/* ---- limits on calls ------------------------------------------------------- */

/* One check of guards: code_id, thread_id, lookup_id, duration_ns. */
static bool guard_add(void *context, const int64_t *values, unsigned nulls)
{
    struct check *check = context;
    const struct count *count = nulls & 1u << 3 ? NULL : counts_of(&check->counts, values[0], values[1]);
    struct guard_time *time;

    counts_tick(&check->counts, values[2]);
    if (!count || values[2] <= count->warm_id)
        return true;
    time = &check->guards.at[count - check->counts.all.at];
    time->ns += (double)values[3];
    time->known++;
    return true;
}

static bool check_guards(struct check *check)
{
    bool asked = false, timed = false;

    list_add_many(&check->guards, check->counts.all.count);
    check->progress.what = "reading guard checks";
    db_each(check->db, schema_statement("check/guards"), guard_add, check);
    for (size_t i = 0; i < check->counts.all.count; i++) {
        const struct count *count = &check->counts.all.at[i];
        const struct guard_time *time = &check->guards.at[i];
        int64_t calls = calls_sum(count->calls).all;
        double mean = calls ? time->ns / 1e3 / (double)calls : 0;
        timed = timed || time->known;
        if (!means(check, count->code_id) || !calls)
            continue;
        asked = true;
        if (time->known && found_more(check, mean)) {
            char *why = say_print("%" PRId64 " guard checks took %.3f ms", time->known, time->ns / 1e6);
            offend(check, mean, count->process_id, count->code_id, calls, -1, why);
            free(why);
        }
    }
    if (!asked || timed || db_failed(check->db) || !db_integer(check->db, 0, "SELECT EXISTS (SELECT 1 FROM guard_check)"))
        return true;
    say_error("%s: --max-guard-us cannot be checked: how long guards took was not seen (torch observed, not on dyntrace's "
              "evaluator)", db_path(check->db));
    return false;
}

/* The sums of a function's calls that count in its process's share: 0 when it was turned away, unless it was named. */
static struct call_sums shared(const struct check *check, const struct count *count)
{
    bool counts = means(check, count->code_id) && (given.globs.count || !count->turned_away);

    return counts ? calls_sum(count->calls) : (struct call_sums){0};
}

/* The share is a process's; the rows are the functions that ran as Python in one whose share is too large. */
static void check_eager(struct check *check)
{
    struct map asked = {0}, python = {0}; /* calls by process */

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < check->counts.all.count; i++) {
            const struct count *count = &check->counts.all.at[i];
            struct call_sums sums = shared(check, count);
            int64_t *all = map_put(&asked, count->process_id), *part = map_put(&python, count->process_id);
            double found = *all ? (double)*part / (double)*all : 0;
            char why[400] = "";
            size_t made = 0;
            if (pass == 0) {
                *all += sums.asked;
                *part += sums.python;
            } else if (found_more(check, found) && sums.python) {
                for (int o = 0; o < OUTCOMES; o++)
                    if (outcome_facts[o].python && count->calls[o])
                        made += (size_t)snprintf(why + made, sizeof why - made, "%s%" PRId64 " %s", made ? ", " : "",
                                                 count->calls[o], outcome_word(o));
                offend(check, found, count->process_id, count->code_id, calls_sum(count->calls).all, -1, why);
            }
        }
    map_free(&asked);
    map_free(&python);
}

static bool check_required(struct check *check)
{
    struct found_code found;
    const struct count *count = NULL;
    enum find_result which = find_code(check->db, check->limit->function, &found, stderr, false);
    int64_t calls = 0, ran = 0;
    char *why;

    if (which == FIND_NONE) /* said: with the nearest names */
        offend(check, 0, -1, -1, 0, -1, "is not in the trace");
    if (which != FIND_ONE)
        return which == FIND_NONE;
    for (const char *p = found.ids; *p; p += strcspn(p, ","), p += strspn(p, ", ")) {
        int64_t *place = map_get(&check->counts.by_code, strtoll(p, NULL, 10));
        for (size_t at = place ? (size_t)*place : 0; at; at = count->next) {
            count = &check->counts.all.at[at - 1];
            calls += calls_sum(count->calls).all;
            ran += count->calls[OUTCOME_HIT] + count->calls[OUTCOME_COMPILED];
        }
    }
    check->limit->found = (double)ran;
    why = calls          ? say_print("none of %" PRId64 " calls ran compiled code; `dyntrace why` tells why", calls)
          : given.warmup ? say_print("the compiler was not asked about a call after the warm-up")
                         : say_print("the compiler was never asked about it");
    if (!ran)
        offend(check, 0, count ? count->process_id : -1, strtoll(found.ids, NULL, 10), calls, -1, why);
    free(why);
    found_code_free(&found);
    return true;
}

/* ---- the result ------------------------------------------------------------ */

/* Which code --function means. False after saying that it is none. */
static bool meant_read(struct check *check)
{
    char *globs = json_array(given.globs.at, given.globs.count);
    struct query *query = db_query(check->db, schema_statement("check/meant"));

    query_bind_text(query, 1, globs);
    while (query_step(query))
        map_put(&check->meant, query_integer(query, 0));
    query_close(query);
    free(globs);
    if (given.globs.count && !check->meant.count && !db_failed(check->db))
        say_error("%s: no function matches --function, so there is nothing to check", db_path(check->db));
    return !given.globs.count || check->meant.count;
}

/* Every limit that was given. False when one could not be checked, which was said. */
static bool checks_run(struct check *check)
{
    const char *of_calls = given.warmup         ? "after-warmup"
                           : limits[GUARDS].name ? limits[GUARDS].name
                           : limits[EAGER].name  ? limits[EAGER].name
                                                 : limits[REQUIRE].name;

    if (!meant_read(check))
        return false;
    check->progress.what = "reading lookups";
    check->counts.warmup = given.warmup;
    if (!counts_read(&check->counts, check->db, &check->progress))
        return false;
    /* As imported ones: no calls is not "none ran as Python". */
    if (of_calls && !check->counts.all.count && db_integer(check->db, 0, "SELECT EXISTS (SELECT 1 FROM compile)")) {
        say_error("%s: --%s cannot be checked: the trace has compiles, but no calls", db_path(check->db), of_calls);
        return false;
    }
    for EACH_LIMIT(l) {
        if (!l->name)
            continue;
        check->limit = l;
        if (l < &limits[GUARDS])
            check_events(check);
        else if (l == &limits[EAGER])
            check_eager(check);
        else if (l == &limits[GUARDS] ? !check_guards(check) : !check_required(check))
            return false;
        l->checked = true;
    }
    return !db_failed(check->db);
}

static void ok_print(const struct check *check)
{
    const char *comma = ": ";

    prose_print(stdout, "%s: ok", db_path(check->db));
    for EACH_LIMIT(l) {
        if (!l->name)
            continue;
        if (l->function)
            prose_print(stdout, "%s%s compiled", comma, l->function);
        else if (l == &limits[EAGER])
            printf("%s%.4g %% (at most %.4g %%) %s", comma, l->found * 100, l->allowed * 100, l->words);
        else
            printf("%s%.4g (at most %.10g) %s", comma, l->found, l->allowed, l->words);
        comma = ", ";
    }
    putchar('\n');
}

static void json_print(struct check *check, struct json *json, bool ok, struct doubts doubts)
{
    json_string(json, "file", db_path(check->db));
    json_bool(json, "ok", ok);
    json_bool(json, "recording", doubts.recording);
    json_integer(json, "lost_events", doubts.lost);
    json_list(json, "checks");
    json_lines(json);
    for EACH_LIMIT(l) {
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
    bool ok = true, answered;
    struct json json = {.out = stdout};
    struct doubts doubts;

    db_run(check->db, "BEGIN");
    check->progress = progress_begin("reading");
    if (given.json) {
        json_object(&json, NULL);
        json_lines(&json);
        json_key(&json, "rows");
    }
    answered = checks_run(check);
    progress_end(&check->progress);
    if (given.json && !check->table)
        fputs("[]", stdout);
    if (check->table && !table_close(check->table))
        answered = false;
    for EACH_LIMIT(l) {
        ok = ok && !l->rows;
        if (!given.json && given.limit >= 0 && l->rows > given.limit)
            say_error("%s: %s: %" PRId64 " of %" PRId64 " rows; --limit 0 shows all", db_path(check->db), l->name,
                      given.limit, l->rows);
    }
    doubts = doubts_say(check->db, "what is checked is what it has so far", "there may be more than was counted");
    if (given.json)
        json_print(check, &json, answered && ok, doubts);
    else if (answered && ok)
        ok_print(check);
    return !answered ? 2 : ok ? 0 : 1;
}

static int check_main(int count, char **operands)
{
    struct check check = {0};
    bool any = false;
    int status = 2;

    (void)count;
    for EACH_LIMIT(l)
        any = any || l->name;
    if (!any)
        say_error("check: no limit is given, such as --max-recompiles 0; `dyntrace check --help` lists them");
    if (any && (check.db = db_open(operands[0])))
        status = check_trace(&check);
    query_close(check.row);
    db_close(check.db);
    counts_free(&check.counts);
    map_free(&check.meant);
    list_free(&check.guards);
    list_free(&given.globs);
    return status;
}

const struct command command_check = {
    .name = "check",
    .summary = "hold a trace against limits: a gate for CI",
    .operands = "[FILE]",
    .about = "Holds a trace against limits. Exit status: 0 it keeps them, 1 it does not, and the rows that offend are printed, all "
             "of them, 2 bad usage or a trace that cannot answer.",
    .options = options,
    .more = "Functions that the compiler only turned away unread (its own, those without tensors) count for --max-eager-share "
            "only when --function names them. FILE is the newest *.db trace here unless given.",
    .operands_most = 1,
    .run = check_main,
};
