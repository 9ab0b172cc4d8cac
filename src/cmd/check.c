/* cmd/check.c -- `dyntrace check`: does a trace keep the limits that its program
 * set itself? For CI.
 *
 * Runs in: the viewer.
 *
 * Compiles and graph breaks are few: SQL counts them (schemas/check.sql). Lookups
 * and guard checks are many: one pass over each (trace/counts.h).
 *
 * Numbers of compiles, breaks and the eager share are held against the limit for
 * each process by itself, so that a gate does not depend on how many ranks there
 * were. The offending rows are all of them: nobody can say which one was one too
 * many. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/counts.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/option.h"
#include "lib/progress.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "lib/say.h"
#include "schema.h"
#include "lib/table.h"
#include "vocabulary.h"

enum {
    LIMIT = 100,            /* rows shown for each check, unless --limit */
    REQUIRED = 256,         /* --require-compiled */
    TICK_ROWS = 1 << 15,
};

/* ---- limits, and what was found ---------------------------------------------- */

enum kind { RECOMPILES, COMPILES, BREAKS, GUARDS, EAGER, REQUIRE, KINDS };
static const char *const kind_names[KINDS] = {
    "max-recompiles", "max-compiles", "max-graph-breaks", "max-guard-us", "max-eager-share", "require-compiled",
};
static const char *const kind_words[KINDS] = {
    "recompiles", "compiles", "graph breaks", "us in guards", "of the calls ran as Python", "compiled",
};

struct result {
    enum kind kind;
    double allowed, found; /* found: of the worst process or function */
    bool ok;
    int64_t rows;          /* that offend */
    const char *function;  /* borrowed: of --require-compiled */
};

/* Time in the guards of a function's calls. */
struct guard_time {
    double ns;
    int64_t known; /* checks whose time is known */
};

struct check {
    struct db *db;         /* owned */
    FILE *out;             /* borrowed */
    bool json, given[KINDS];
    double allowed[KINDS];
    char *globs;           /* owned: a JSON array of --function, or NULL */
    const char *required[REQUIRED]; /* borrowed */
    int required_count;
    int64_t warmup, limit; /* limit -1: all */
    struct map meant;      /* code ids that --function means; of use with globs */
    struct counts counts;
    LIST(struct guard_time) guards; /* by the index of the calls in counts */
    bool any_duration;
    struct result results[KINDS + REQUIRED];
    int result_count;
    struct table *table;   /* owned: offending rows, made with the first */
    struct progress progress;
};

static bool means(const struct check *check, int64_t code_id)
{
    return !check->globs || map_get(&check->meant, code_id);
}

static bool meant_read(struct check *check)
{
    struct query *query;
    bool ok = true;

    if (!check->globs)
        return true;
    query = db_query(check->db, schema_statement("check/meant"));
    query_bind_text(query, 1, check->globs);
    while (ok && query_step(query))
        ok = map_put(&check->meant, query_integer(query, 0)) != NULL;
    if (!ok)
        say_error("%s: out of memory", db_path(check->db));
    ok = query_close(query) && ok;
    if (ok && !check->meant.count) {
        say_error("%s: no function matches --function, so there is nothing to check", db_path(check->db));
        return false;
    }
    return ok;
}

/* One check of guards: code_id, thread_id, lookup_id, duration_ns. */
static bool guard_add(void *context, const int64_t *values, unsigned nulls)
{
    struct check *check = context;
    const struct count *count = nulls & 1u << 3 ? NULL : counts_of(&check->counts, values[0], values[1]);
    struct guard_time *time;

    if (!(++check->counts.rows % TICK_ROWS))
        progress_tick(&check->progress, values[2], check->counts.last_id);
    if (!count || values[2] <= count->warm_id)
        return true;
    time = &check->guards.at[count - check->counts.all.at];
    time->ns += (double)values[3];
    time->known++;
    check->any_duration = true;
    return true;
}

static bool guards_read(struct check *check)
{
    if (check->counts.all.count && !list_reach(&check->guards, check->counts.all.count - 1)) {
        say_error("%s: out of memory", db_path(check->db));
        return false;
    }
    check->progress.what = "reading guard checks";
    return db_each(check->db, schema_statement("check/guards"), guard_add, check);
}

/* ---- offending rows -------------------------------------------------------- */

/* A limit that is held against: further rows are its. */
static struct result *result_add(struct check *check, enum kind kind)
{
    struct result *result = &check->results[check->result_count++];

    *result = (struct result){.kind = kind, .allowed = check->allowed[kind], .ok = true};
    return result;
}

/* An amount, whole where it is. */
static void number_cell(struct table *table, double number)
{
    if (number < 1e12 && (double)(int64_t)number == number)
        table_integer(table, (int64_t)number);
    else
        table_real(table, number < 1e12 ? (double)(int64_t)(number * 1e4 + 0.5) / 1e4 : number);
}

/* What offends. Unknown process: -1, that in which the code was first seen. */
struct offence {
    double found;
    int64_t process_id, code_id, calls;
    struct query *event; /* the compile, in a row of the statements compiles and breaks; or NULL */
    const char *why, *function; /* function: that the trace does not know */
};

/* Columns of those statements; a process after the other. */
enum { EVENT_PROCESS, EVENT_COMPILE, EVENT_CODE, EVENT_LABEL, EVENT_AT, EVENT_WHY, EVENT_AGAIN };

/* pid, function, where. */
static void place_cells(struct check *check, const struct offence *offence)
{
    struct query *query = db_query(check->db, schema_statement("check/code"));
    char *where = NULL;

    query_bind_integer(query, 1, offence->code_id);
    if (offence->process_id >= 0)
        query_bind_integer(query, 2, offence->process_id);
    if (query_step(query)) {
        const char *path = query_text(query, 2, NULL);
        result_cell(check->table, query, 0);
        result_cell(check->table, query, 1);
        if (asprintf(&where, "%s:%" PRId64, check->json ? path : prose_path(path), query_integer(query, 3)) < 0)
            where = NULL;
        table_string(check->table, where);
    } else {
        table_null(check->table);
        table_string(check->table, offence->function);
        table_null(check->table);
    }
    free(where);
    query_close(query);
}

/* A row of the result. */
static void offend(struct check *check, struct result *result, const struct offence *offence)
{
    static const char *const names[] = {
        "check", "allowed", "found", "pid", "function", "where", "calls", "compile", "compile_id", "at_ns", "why",
    };

    result->ok = false;
    result->rows++;
    if (check->limit >= 0 && result->rows > check->limit)
        return;
    if (!check->table)
        check->table = table_open(check->out, table_format(check->out, check->json), sizeof names / sizeof *names,
                                  names);
    if (!check->table)
        return;
    table_string(check->table, kind_names[result->kind]);
    if (result->kind == REQUIRE) {
        table_string(check->table, "compiled");
        table_null(check->table);
    } else {
        number_cell(check->table, result->allowed);
        number_cell(check->table, offence->found);
    }
    place_cells(check, offence);
    table_integer(check->table, offence->calls);
    for (int column = 0; column < 3; column++)
        if (offence->event)
            result_cell(check->table, offence->event, (const int[]){EVENT_LABEL, EVENT_COMPILE, EVENT_AT}[column]);
        else
            table_null(check->table);
    table_string(check->table, offence->why);
}

/* Note what was found of a process or a function. True: it is more than is allowed. */
static bool found_more(struct result *result, double found)
{
    if (found > result->found)
        result->found = found;
    return found > result->allowed;
}

/* ---- limits on compiles and breaks ----------------------------------------- */

static const struct count *event_count(const struct check *check, struct query *query)
{
    return counts_find(&check->counts, query_integer(query, EVENT_CODE), query_integer(query, EVENT_PROCESS));
}

static void event_row(struct check *check, struct result *result, struct query *query, int64_t found)
{
    const struct count *count = event_count(check, query);
    const char *why = query_text(query, EVENT_WHY, NULL);
    char *line = query_type(query, EVENT_WHY) == QUERY_NULL ? NULL : strndup(why, strcspn(why, "\n"));

    offend(check, result, &(struct offence){(double)found, query_integer(query, EVENT_PROCESS), query_integer(query, EVENT_CODE),
                                            count ? count_calls(count) : 0, query, line, NULL});
    free(line);
}

/* True when the current row counts for KIND. */
static bool event_counts(struct check *check, enum kind kind, struct query *query)
{
    const struct count *count = event_count(check, query);

    return means(check, query_integer(query, EVENT_CODE)) && (kind != RECOMPILES ||
                                                              query_integer(query, EVENT_AGAIN)) &&
           (count ? query_integer(query, EVENT_AT) >= count->warm_ns : !check->warmup);
}

/* The events of SQL, counted by process; those of a process with too many are rows. */
static bool check_events(struct check *check, enum kind kind, const char *sql)
{
    struct result *result = result_add(check, kind);
    struct query *count = db_query(check->db, sql), *rows = db_query(check->db, sql);
    bool more = query_step(count);

    while (more) {
        int64_t process = query_integer(count, 0), found = 0, behind = 0;
        for (; more && query_integer(count, 0) == process; more = query_step(count), behind++)
            found += event_counts(check, kind, count);
        found_more(result, (double)found);
        while (behind-- > 0 && query_step(rows))
            if ((double)found > result->allowed && event_counts(check, kind, rows))
                event_row(check, result, rows, found);
    }
    return query_close(count) & query_close(rows);
}

/* ---- limits on calls ------------------------------------------------------- */

static bool check_guards(struct check *check)
{
    struct result *result = result_add(check, GUARDS);
    char why[128];
    bool asked = false;

    for (size_t i = 0; i < check->counts.all.count; i++) {
        const struct count *count = &check->counts.all.at[i];
        const struct guard_time *time = &check->guards.at[i];
        int64_t calls = count_calls(count);
        double mean = calls ? time->ns / 1e3 / (double)calls : 0;
        if (!means(check, count->code_id) || !calls)
            continue;
        asked = true;
        if (!time->known)
            continue;
        snprintf(why, sizeof why, "%" PRId64 " guard checks took %.3f ms", time->known, time->ns / 1e6);
        if (found_more(result, mean))
            offend(check, result, &(struct offence){mean, count->process_id, count->code_id, calls, NULL, why, NULL});
    }
    if (asked && !check->any_duration && db_integer(check->db, 0, "SELECT EXISTS (SELECT 1 FROM guard_check)")) {
        say_error("%s: --max-guard-us cannot be checked: how long guards took was not seen (torch observed, not on dyntrace's "
                  "evaluator)", db_path(check->db));
        return false;
    }
    return true;
}

/* The sums of a function's calls that count in its process's share: all 0 when it was turned away, unless it was
 * named. */
static struct call_sums shared(const struct check *check, const struct count *count)
{
    bool counts = means(check, count->code_id) && (check->globs || !count->turned_away);

    return counts ? calls_sum(count->calls) : (struct call_sums){0};
}

/* Rows for the functions of a process whose share is too large. */
static void eager_rows(struct check *check, struct result *result, int64_t process_id, double share)
{
    for (size_t i = 0; i < check->counts.all.count; i++) {
        const struct count *count = &check->counts.all.at[i];
        char why[400] = "";
        size_t made = 0;
        if (count->process_id != process_id || !shared(check, count).python)
            continue;
        for (int o = 0; o < OUTCOMES; o++)
            if (outcome_facts[o].python && count->calls[o])
                made += (size_t)snprintf(why + made, sizeof why - made, "%s%" PRId64 " %s", made ? ", " : "",
                                         count->calls[o],
                                         outcome_word(o));
        offend(check, result, &(struct offence){share, process_id, count->code_id, count_calls(count), NULL, why, NULL});
    }
}

struct share {
    int64_t process_id, calls, python;
};

static bool check_eager(struct check *check)
{
    struct result *result = result_add(check, EAGER);
    LIST(struct share) shares = {0};
    struct map by_process = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < check->counts.all.count; i++) {
        const struct count *count = &check->counts.all.at[i];
        struct call_sums sums = shared(check, count);
        int64_t *at = map_put(&by_process, count->process_id);
        if (at && !*at && list_add(&shares))
            *at = (int64_t)shares.count;
        ok = at && *at;
        if (ok) {
            struct share *share = &shares.at[*at - 1];
            share->process_id = count->process_id;
            share->calls += sums.asked;
            share->python += sums.python;
        }
    }
    for (size_t i = 0; ok && i < shares.count; i++) {
        double share = shares.at[i].calls ? (double)shares.at[i].python / (double)shares.at[i].calls : 0;
        if (found_more(result, share))
            eager_rows(check, result, shares.at[i].process_id, share);
    }
    if (!ok)
        say_error("%s: out of memory", db_path(check->db));
    list_free(&shares);
    map_free(&by_process);
    return ok;
}

static bool check_required(struct check *check, const char *name)
{
    struct found_code found;
    struct result *result;
    const struct count *count = NULL;
    int64_t calls = 0, ran = 0;
    char why[128];

    switch (find_code(check->db, name, &found, stderr, false)) {
    case FIND_ONE:
        break;
    case FIND_NONE: /* said: with the nearest names */
        result = result_add(check, REQUIRE);
        result->function = name;
        offend(check, result, &(struct offence){.process_id = -1, .code_id = -1, .why = "is not in the trace", .function = name});
        return true;
    default:
        return false;
    }
    result = result_add(check, REQUIRE);
    result->function = name;
    for (const char *p = found.ids; *p; p += strcspn(p, ","), p += strspn(p, ", ")) {
        int64_t *place = map_get(&check->counts.by_code, strtoll(p, NULL, 10));
        for (size_t at = place ? (size_t)*place : 0; at; at = count->next) {
            count = &check->counts.all.at[at - 1];
            calls += count_calls(count);
            ran += count->calls[OUTCOME_HIT] + count->calls[OUTCOME_COMPILED];
        }
    }
    result->found = (double)ran;
    if (calls)
        snprintf(why, sizeof why, "none of %" PRId64 " calls ran compiled code; `dyntrace why` tells why", calls);
    else
        snprintf(why, sizeof why, "%s", check->warmup ? "the compiler was not asked about a call after the warm-up"
                                                       : "the compiler was never asked about it");
    if (!ran)
        offend(check, result, &(struct offence){0, count ? count->process_id : -1, strtoll(found.ids, NULL, 10), calls, NULL, why, NULL});
    found_code_free(&found);
    return true;
}

/* ---- the result ------------------------------------------------------------ */

static void ok_print(struct check *check)
{
    say_escaped(check->out, db_path(check->db), strlen(db_path(check->db)));
    fputs(": ok", check->out);
    for (int i = 0; i < check->result_count; i++) {
        const struct result *r = &check->results[i];
        fputs(i ? ", " : ": ", check->out);
        if (r->kind == REQUIRE) {
            say_escaped(check->out, r->function, strlen(r->function));
            fputs(" compiled", check->out);
        } else if (r->kind == EAGER) {
            fprintf(check->out, "%.4g %% (at most %.4g %%) %s", r->found * 100, r->allowed * 100, kind_words[r->kind]);
        } else {
            fprintf(check->out, "%.4g (at most %.10g) %s", r->found, r->allowed, kind_words[r->kind]);
        }
    }
    putc('\n', check->out);
}

static void json_print(struct check *check, struct json *json, bool ok, struct doubts doubts)
{
    json_string(json, "file", db_path(check->db));
    json_bool(json, "ok", ok);
    json_bool(json, "recording", doubts.recording);
    json_integer(json, "lost_events", doubts.lost);
    json_list(json, "checks");
    json_lines(json);
    for (int i = 0; i < check->result_count; i++) {
        const struct result *r = &check->results[i];
        json_object(json, NULL);
        json_string(json, "check", kind_names[r->kind]);
        if (r->kind == REQUIRE)
            json_string(json, "function", r->function);
        else
            json_real(json, "allowed", r->allowed, 15);
        json_real(json, "found", r->found, 15);
        json_bool(json, "ok", r->ok);
        json_integer(json, "row_count", r->rows);
        json_end(json);
    }
    json_end(json);
    json_end(json);
    putc('\n', json->out);
}

/* Every limit that was asked about. False when one could not be checked. */
static bool checks_run(struct check *check)
{
    bool calls = check->warmup || check->given[GUARDS] || check->given[EAGER] || check->required_count;
    bool ok = meant_read(check);

    check->progress.what = "reading lookups";
    check->counts.warmup = check->warmup;
    ok = ok && counts_read(&check->counts, check->db, &check->progress);
    if (ok && calls && !check->counts.all.count &&
        db_integer(check->db, 0, "SELECT EXISTS (SELECT 1 FROM compile)")) { /* as imported ones: no calls is not "none ran as Python" */
        say_error("%s: --%s cannot be checked: the trace has compiles, but no calls", db_path(check->db),
                  check->warmup ? "after-warmup" : kind_names[check->given[GUARDS] ? GUARDS : check->given[EAGER] ? EAGER : REQUIRE]);
        return false;
    }
    if (ok && check->given[GUARDS])
        ok = guards_read(check);
    progress_end(&check->progress);
    for (enum kind kind = 0; ok && kind < REQUIRE; kind++)
        if (check->given[kind])
            ok = kind == GUARDS  ? check_guards(check)
                 : kind == EAGER ? check_eager(check)
                                 : check_events(check, kind,
                                                schema_statement(kind == BREAKS ? "check/breaks" : "check/compiles"));
    for (int i = 0; ok && i < check->required_count; i++)
        ok = check_required(check, check->required[i]);
    return ok;
}

static int check_trace(struct check *check)
{
    bool ok = true, answered;
    struct json json = {.out = check->out};
    struct doubts doubts;

    db_run(check->db, "BEGIN");
    check->progress = progress_begin("reading");
    if (check->json) {
        json_object(&json, NULL);
        json_lines(&json);
        json_key(&json, "rows");
    }
    answered = checks_run(check);
    progress_end(&check->progress);
    if (check->json && !check->table)
        fputs("[]", check->out);
    if (check->table && !table_close(check->table))
        answered = false;
    for (int i = 0; i < check->result_count; i++) {
        const struct result *r = &check->results[i];
        ok = ok && r->ok;
        if (!check->json && check->limit >= 0 && r->rows > check->limit)
            say_error("%s: %s: %" PRId64 " of %" PRId64 " rows; --limit 0 shows all", db_path(check->db),
                      kind_names[r->kind],
                      check->limit, r->rows);
    }
    doubts = doubts_say(check->db, "what is checked is what it has so far", "there may be more than was counted");
    if (check->json)
        json_print(check, &json, answered && ok, doubts);
    else if (answered && ok)
        ok_print(check);
    return !answered ? 2 : ok ? 0 : 1;
}

/* ---- the command line ------------------------------------------------------ */

static struct check asked = {.limit = LIMIT};
static struct {
    FILE *file;   /* owned: writes text */
    char *text;   /* owned: the globs of --function, a NUL behind each */
    size_t bytes;
} globs;

/* A limit, by the place of `to` in asked.allowed. */
static const char *limit_read(const struct option *option, const char *value)
{
    double *allowed = option->to;
    enum kind kind = (enum kind)(allowed - asked.allowed);
    int64_t count;
    char *end;
    const char *why = kind == EAGER   ? option_share(option, value)
                      : kind < GUARDS ? option_count(&(struct option){.to = &count}, value)
                                      : NULL;

    if (kind < GUARDS && !why)
        *allowed = (double)count;
    if (kind == EAGER && !why && *allowed > 1)
        why = "a share is at most 1, or 100%";
    if (kind == GUARDS) {
        *allowed = strtod(value, &end);
        why = end == value || *end || !isfinite(*allowed) || *allowed < 0 ? "not a number of microseconds" : NULL;
    }
    asked.given[kind] = true;
    return why;
}

static const char *required_read(const struct option *option, const char *value)
{
    (void)option;
    if (!*value)
        return option_empty;
    if (asked.required_count == REQUIRED)
        return "that is one too many";
    asked.given[REQUIRE] = true;
    asked.required[asked.required_count++] = value;
    return NULL;
}

static const char *glob_read(const struct option *option, const char *value)
{
    (void)option;
    if (!*value)
        return option_empty;
    if (!globs.file)
        globs.file = open_memstream(&globs.text, &globs.bytes);
    return globs.file && fwrite(value, strlen(value) + 1, 1, globs.file) == 1 ? NULL : "out of memory";
}

static const struct option options[] = {
    {"max-recompiles", .value = "N", .read = limit_read, .to = &asked.allowed[RECOMPILES],
     .help = "recompiles, in each process: compiles of code for which its cache has held an entry, made there or inherited by fork"},
    {"max-compiles", .value = "N", .read = limit_read, .to = &asked.allowed[COMPILES],
     .help = "compiles that made code, in each process"},
    {"max-graph-breaks", .value = "N", .read = limit_read, .to = &asked.allowed[BREAKS],
     .help = "graph breaks of all compiles, in each process"},
    {"max-guard-us", .value = "T", .read = limit_read, .to = &asked.allowed[GUARDS],
     .help = "microseconds in guards for a call of a function, on average over its calls"},
    {"max-eager-share", .value = "P", .read = limit_read, .to = &asked.allowed[EAGER],
     .help = "of the calls that the compiler was asked about, those that ran as Python, in each process: 0.05 or 5%"},
    {"require-compiled", .value = "FUNC", .read = required_read, .many = true,
     .help = "some call of FUNC ran compiled code; may be repeated"},
    {"function", .value = "GLOB", .read = glob_read, .many = true,
     .help = "only functions whose qualified name (or the last part of it) or file matches, and what a compiler made of them; "
             "may be repeated: one match is enough"},
    {"after-warmup", .value = "N", .read = option_count, .to = &asked.warmup,
     .help = "the first N calls of each function, and what was compiled in them, do not count"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &asked.limit,
     .help = "rows printed for each limit; 0 is all. The default is 100"},
    {"json", .read = option_flag, .to = &asked.json, .help = "the result for a program"},
    OPTION_END,
};

static int check_main(int count, char **operands)
{
    struct check *check = &asked;
    int status = 2;

    (void)count;
    check->out = stdout;
    if (!memchr(check->given, true, sizeof check->given)) {
        say_error("check: no limit is given, such as --max-recompiles 0; `dyntrace check --help` lists them");
        goto out;
    }
    if (globs.file) {
        bool written = fclose(globs.file) == 0;
        if (!written || !(check->globs = json_array(globs.text, globs.bytes))) {
            say_error("check: out of memory");
            goto out;
        }
    }
    check->db = db_open(operands[0]);
    if (check->db)
        status = check_trace(check);
out:
    db_close(check->db);
    free(globs.text);
    free(check->globs);
    counts_free(&check->counts);
    map_free(&check->meant);
    list_free(&check->guards);
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
