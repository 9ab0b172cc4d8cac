/* cmd/check.c -- `dyntrace check`: does a trace keep the limits that its program
 * set itself? For CI.
 *
 * Runs in: the viewer.
 *
 * Compiles and graph breaks are few: SQL counts them. Lookups and guard checks
 * are many: one pass over each, in order of id, adds them up per code object,
 * which is several times faster than a GROUP BY that sorts.
 *
 *     code_read         every code object, whether --function means it
 *     lookups_read      outcomes; where each function's warm-up ends
 *     guards_read       time of guards
 *     check_*           one limit each: what was found, the rows that offend
 *
 * Numbers of compiles, breaks and the eager share are held against the limit for
 * each process by itself, so that a gate does not depend on how many ranks there
 * were. The offending rows are all of them: nobody can say which one was one too
 * many. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/progress.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "lib/table.h"
#include "vocabulary.h"

enum {
    LIMIT = 100,            /* rows shown for each check, unless --limit */
    REQUIRED = 256,         /* --require-compiled */
    TICK_ROWS = 1 << 15,
};

/* ---- what is known of each code object ------------------------------------- */

struct code {
    int64_t id, process_id, origin;
    bool meant;                /* --function matches it, or what it was made from */
    bool looked_at;            /* the compiler did not only turn it away */
    int64_t seen;              /* lookups, also those of the warm-up */
    int64_t counted[OUTCOMES]; /* lookups after the warm-up, by outcome */
    int64_t calls;             /* the sum of those */
    int64_t warm_id;           /* lookups with greater ids count */
    int64_t warm_ns;           /* what began then or later counts; INT64_MAX: nothing does */
    double guards_ns;          /* time of guards after the warm-up */
    int64_t guards_known;      /* checks whose time is known */
};

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

struct check {
    struct db *db;         /* owned */
    FILE *out;             /* borrowed */
    bool json, given[KINDS];
    double allowed[KINDS];
    char *globs;           /* owned: a JSON array of --function, or NULL */
    const char *required[REQUIRED]; /* borrowed */
    int required_count;
    int64_t warmup, limit; /* limit -1: all */
    bool any_lookup, any_duration;
    struct code *codes;    /* owned: by id */
    size_t code_count;
    struct result results[KINDS + REQUIRED];
    int result_count;
    struct table *table;   /* owned: offending rows, made with the first */
    struct progress progress;
};

static struct code *code_find(struct check *check, int64_t id)
{
    size_t low = 0, high = check->code_count;
    uint64_t guess = high ? (uint64_t)id - (uint64_t)check->codes[0].id : 0;

    if (guess < high && check->codes[guess].id == id) /* ids seldom have gaps */
        return &check->codes[guess];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (check->codes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == check->code_count || check->codes[low].id != id)
        return NULL;
    return &check->codes[low];
}

static bool code_read(struct check *check)
{
    static const char sql[] =
        "SELECT code_id, process_id, origin_code_id,"
        "       ?1 IS NULL OR EXISTS (SELECT 1 FROM json_each(?1) g WHERE c.qualname GLOB g.value"
        "                             OR c.qualname GLOB '*.' || g.value OR c.filename GLOB g.value) "
        "FROM code c ORDER BY code_id";
    struct query *query = db_query(check->db, sql);
    size_t room = 0;
    bool meant = false, changed = check->globs != NULL;

    if (query && check->globs)
        query_bind_text(query, 1, check->globs);
    while (query_step(query)) {
        if (check->code_count == room) {
            struct code *more = realloc(check->codes, (room = room ? room * 2 : 1024) * sizeof *more);
            if (!more) {
                say_error("%s: out of memory", db_path(check->db));
                query_close(query);
                return false;
            }
            check->codes = more;
        }
        check->codes[check->code_count++] = (struct code){
            .id = query_integer(query, 0), .process_id = query_integer(query, 1),
            .origin = query_type(query, 2) == QUERY_NULL ? INT64_MIN : query_integer(query, 2),
            .meant = query_integer(query, 3) != 0,
            .warm_id = check->warmup ? INT64_MAX : INT64_MIN, .warm_ns = check->warmup ? INT64_MAX : INT64_MIN,
        };
        meant = meant || query_integer(query, 3);
    }
    if (!query_close(query))
        return false;
    if (check->globs && !meant) {
        say_error("%s: no function matches --function, so there is nothing to check", db_path(check->db));
        return false;
    }
    /* The rest of a function after a graph break is the function, too. A chain has as many links as breaks. */
    for (int depth = 0; changed && depth < 1000; depth++) {
        changed = false;
        for (size_t i = 0; i < check->code_count; i++) {
            struct code *code = &check->codes[i], *origin;
            if (!code->meant && code->origin != INT64_MIN && (origin = code_find(check, code->origin)) && origin->meant)
                code->meant = changed = true;
        }
    }
    return true;
}

/* ---- the two passes -------------------------------------------------------- */

static bool lookups_read(struct check *check)
{
    struct query *query = db_query(check->db, "SELECT lookup_id, code_id, outcome, start_ns FROM lookup ORDER BY lookup_id");
    int64_t last = db_integer(check->db, 0, "SELECT MAX(lookup_id) FROM lookup"), read = 0;

    check->progress.what = "reading lookups";
    while (query_step(query)) {
        int64_t id = query_integer(query, 0), outcome = query_integer(query, 2);
        struct code *code = code_find(check, query_integer(query, 1));
        if (!(++read % TICK_ROWS))
            progress_tick(&check->progress, id, last);
        check->any_lookup = true;
        if (!code)
            continue;
        if (outcome < 0 || outcome >= OUTCOMES)
            outcome = 0;
        if (outcome && outcome != OUTCOME_SKIP && outcome != OUTCOME_DECLINED && outcome != 7)
            code->looked_at = true;
        if (check->warmup) {
            if (code->seen++ < check->warmup)
                continue;
            if (code->seen == check->warmup + 1) {
                code->warm_id = id - 1;
                code->warm_ns = query_integer(query, 3);
            }
        }
        code->counted[outcome]++;
        code->calls++;
    }
    return query_close(query);
}

static bool guards_read(struct check *check)
{
    struct query *entries = db_query(check->db, "SELECT cache_entry_id, code_id FROM cache_entry ORDER BY cache_entry_id");
    struct query *query = NULL;
    struct { int64_t id, code; } *entry = NULL, *more;
    size_t count = 0, room = 0, at = 0;
    int64_t last = db_integer(check->db, 0, "SELECT MAX(guard_check_id) FROM guard_check"), read = 0;
    bool ok = false;

    while (query_step(entries)) {
        if (count == room) {
            more = realloc(entry, (room = room ? room * 2 : 256) * sizeof *more);
            if (!more) {
                say_error("%s: out of memory", db_path(check->db));
                goto out;
            }
            entry = more;
        }
        entry[count].id = query_integer(entries, 0);
        entry[count++].code = query_integer(entries, 1);
    }
    check->progress.what = "reading guard checks";
    query = db_query(check->db, "SELECT guard_check_id, lookup_id, cache_entry_id, duration_ns FROM guard_check");
    while (query_step(query)) {
        int64_t id = query_integer(query, 2);
        size_t low = 0, high = count;
        struct code *code;
        if (!(++read % TICK_ROWS))
            progress_tick(&check->progress, query_integer(query, 0), last);
        at = count ? (size_t)((uint64_t)id - (uint64_t)entry[0].id) : 0;
        if (at >= count || entry[at].id != id) {
            while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (entry[middle].id < id)
                    low = middle + 1;
                else
                    high = middle;
            }
            at = low;
        }
        if (at >= count || entry[at].id != id || query_type(query, 3) == QUERY_NULL ||
            !(code = code_find(check, entry[at].code)) || query_integer(query, 1) <= code->warm_id)
            continue;
        check->any_duration = true;
        code->guards_ns += query_real(query, 3);
        code->guards_known++;
    }
    ok = true;
out:
    ok = query_close(entries) && ok;
    if (query || ok)
        ok = query_close(query) && ok;
    free(entry);
    return ok;
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

/* A row of the result, without what it is about. False when no row is wanted any more. */
static bool row_begin(struct check *check, struct result *result, double found)
{
    static const char *const names[] = {
        "check", "allowed", "found", "pid", "function", "where", "calls", "compile", "compile_id", "at_ns", "why",
    };

    result->ok = false;
    result->rows++;
    if (check->limit >= 0 && result->rows > check->limit)
        return false;
    if (!check->table)
        check->table = table_open(check->out, table_format(check->out, check->json), sizeof names / sizeof *names, names);
    if (!check->table)
        return false;
    table_string(check->table, kind_names[result->kind]);
    if (result->kind == REQUIRE)
        table_string(check->table, "compiled");
    else
        number_cell(check->table, result->allowed);
    if (result->kind == REQUIRE)
        table_null(check->table);
    else
        number_cell(check->table, found);
    return true;
}

/* pid, function, where; CODE by its id. */
static void row_code(struct check *check, int64_t code_id)
{
    struct query *query = db_query(check->db, "SELECT p.pid, c.qualname, c.filename, c.first_line FROM code c"
                                              " LEFT JOIN process p ON p.process_id = c.process_id WHERE c.code_id = ?1");
    char *where = NULL;

    query_bind_integer(query, 1, code_id);
    if (query_step(query)) {
        if (query_type(query, 0) == QUERY_NULL)
            table_null(check->table);
        else
            table_integer(check->table, query_integer(query, 0));
        table_string(check->table, query_text(query, 1, NULL));
        if (asprintf(&where, "%s:%" PRId64, check->json ? query_text(query, 2, NULL) : prose_path(query_text(query, 2, NULL)),
                     query_integer(query, 3)) < 0)
            where = NULL;
        table_string(check->table, where);
    } else {
        for (int i = 0; i < 3; i++)
            table_null(check->table);
    }
    free(where);
    query_close(query);
}

/* calls, compile, compile_id, at_ns, why: for limits on calls. */
static void row_calls(struct check *check, int64_t calls, const char *why)
{
    table_integer(check->table, calls);
    for (int i = 0; i < 3; i++)
        table_null(check->table);
    table_string(check->table, why);
}

/* ---- limits on compiles and breaks ----------------------------------------- */

/* What counts, in order: process, then time. Columns: process, compile_id, code_id, label, at, why, is a recompile.
 * An entry that was made before for the same code makes a recompile, also one of the warm-up. */
static const char compiles_sql[] =
    "WITH made AS MATERIALIZED ("
    "  SELECT compile_id, code_id, label, start_ns, substr(reason, 1, 400) AS reason,"
    "         ROW_NUMBER() OVER (PARTITION BY code_id ORDER BY start_ns, compile_id) AS place"
    "  FROM compile WHERE cache_entry_id IS NOT NULL) "
    "SELECT c.process_id, m.compile_id, m.code_id, m.label, m.start_ns,"
    "       COALESCE((SELECT COALESCE(substr(r.text, 1, 400), r.source || ' was ' || r.actual || ', wanted ' || r.expected)"
    "                 FROM recompile_cause r WHERE r.compile_id = m.compile_id"
    "                 ORDER BY r.ordinal, r.cache_entry_id DESC LIMIT 1), m.reason), m.place > 1 "
    "FROM made m JOIN code c ON c.code_id = m.code_id ORDER BY c.process_id, m.start_ns, m.compile_id";

static const char breaks_sql[] =
    "SELECT c.process_id, b.compile_id, m.code_id, m.label, m.start_ns,"
    "       'line ' || COALESCE(b.line, '?') || ': ' || substr(COALESCE(b.reason, '?'), 1, 400), 1 "
    "FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id JOIN code c ON c.code_id = m.code_id "
    "ORDER BY c.process_id, b.graph_break_id";

static void event_row(struct check *check, struct result *result, struct query *query, int64_t found)
{
    const char *why = query_text(query, 5, NULL);
    struct code *code = code_find(check, query_integer(query, 2));
    char *line;

    if (!row_begin(check, result, (double)found))
        return;
    row_code(check, query_integer(query, 2));
    table_integer(check->table, code ? code->calls : 0);
    table_string(check->table, query_type(query, 3) == QUERY_NULL ? NULL : query_text(query, 3, NULL));
    table_integer(check->table, query_integer(query, 1));
    table_integer(check->table, query_integer(query, 4));
    line = strndup(why, strcspn(why, "\n"));
    table_string(check->table, query_type(query, 5) == QUERY_NULL ? NULL : line);
    free(line);
}

/* True when the current row counts for KIND. */
static bool event_counts(struct check *check, enum kind kind, struct query *query)
{
    struct code *code = code_find(check, query_integer(query, 2));

    return code && code->meant && query_integer(query, 4) >= code->warm_ns && (kind != RECOMPILES || query_integer(query, 6));
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
        if ((double)found > result->found)
            result->found = (double)found;
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

    for (size_t i = 0; i < check->code_count; i++) {
        struct code *code = &check->codes[i];
        double mean = code->calls ? code->guards_ns / 1e3 / (double)code->calls : 0;
        asked = asked || (code->meant && code->calls);
        if (!code->meant || !code->guards_known)
            continue;
        if (mean > result->found)
            result->found = mean;
        if (!(mean > result->allowed) || !row_begin(check, result, mean))
            continue;
        row_code(check, code->id);
        snprintf(why, sizeof why, "%" PRId64 " guard checks took %.3f ms", code->guards_known, code->guards_ns / 1e6);
        row_calls(check, code->calls, why);
    }
    if (asked && !check->any_duration && db_integer(check->db, 0, "SELECT EXISTS (SELECT 1 FROM guard_check)")) {
        say_error("%s: --max-guard-us cannot be checked: how long guards took was not seen (torch observed, not on dyntrace's "
                  "evaluator)", db_path(check->db));
        return false;
    }
    return true;
}

static bool code_eager_counts(const struct check *check, const struct code *code)
{
    return code->meant && code->calls && (check->globs || code->looked_at);
}

static int64_t code_eager(const struct code *code)
{
    return code->calls - code->counted[OUTCOME_HIT] - code->counted[OUTCOME_COMPILED];
}

struct share {
    int64_t process_id, calls, eager;
};

static int share_order(const void *a, const void *b)
{
    const struct share *x = a, *y = b;

    return (x->process_id > y->process_id) - (x->process_id < y->process_id);
}

static bool check_eager(struct check *check)
{
    struct result *result = result_add(check, EAGER);
    struct share *shares = calloc(check->code_count + 1, sizeof *shares);
    size_t count = 0, kept = 0;

    if (!shares) {
        say_error("%s: out of memory", db_path(check->db));
        return false;
    }
    for (size_t i = 0; i < check->code_count; i++) {
        struct code *code = &check->codes[i];
        if (code_eager_counts(check, code))
            shares[count++] = (struct share){code->process_id, code->calls, code_eager(code)};
    }
    qsort(shares, count, sizeof *shares, share_order);
    for (size_t i = 0; i < count; i++) /* a row per process */
        if (kept && shares[kept - 1].process_id == shares[i].process_id) {
            shares[kept - 1].calls += shares[i].calls;
            shares[kept - 1].eager += shares[i].eager;
        } else {
            shares[kept++] = shares[i];
        }
    for (size_t s = 0; s < kept; s++) {
        double share = (double)shares[s].eager / (double)shares[s].calls;
        if (share > result->found)
            result->found = share;
        if (!(share > result->allowed))
            continue;
        for (size_t i = 0; i < check->code_count; i++) {
            struct code *code = &check->codes[i];
            char why[400] = "";
            size_t made = 0;
            if (code->process_id != shares[s].process_id || !code_eager_counts(check, code) || !code_eager(code) ||
                !row_begin(check, result, share))
                continue;
            row_code(check, code->id);
            for (int o = 0; o < OUTCOMES; o++)
                if (o != OUTCOME_HIT && o != OUTCOME_COMPILED && code->counted[o])
                    made += (size_t)snprintf(why + made, sizeof why - made, "%s%" PRId64 " %s", made ? ", " : "",
                                             code->counted[o], outcome_word(o));
            row_calls(check, code->calls, why);
        }
    }
    free(shares);
    return true;
}

static bool check_required(struct check *check, const char *name)
{
    struct found_code found;
    struct result *result;
    int64_t calls = 0, ran = 0, first = -1, id;
    char why[128];

    switch (find_code(check->db, name, &found, stderr, false)) {
    case FIND_ONE:
        break;
    case FIND_NONE: /* said: with the nearest names */
        result = result_add(check, REQUIRE);
        result->function = name;
        if (row_begin(check, result, 0)) {
            table_null(check->table);
            table_string(check->table, name);
            table_null(check->table);
            row_calls(check, 0, "is not in the trace");
        }
        return true;
    default:
        return false;
    }
    result = result_add(check, REQUIRE);
    result->function = name;
    for (const char *p = found.ids; *p;) {
        char *end;
        id = strtoll(p, &end, 10);
        struct code *code = end == p ? NULL : code_find(check, id);
        if (code) {
            first = first < 0 ? id : first;
            calls += code->calls;
            ran += code->counted[OUTCOME_HIT] + code->counted[OUTCOME_COMPILED];
        }
        if (end == p)
            break;
        p = end + strspn(end, ", ");
    }
    result->found = (double)ran;
    if (!ran && row_begin(check, result, 0)) {
        row_code(check, first);
        if (calls)
            snprintf(why, sizeof why, "none of %" PRId64 " calls ran compiled code; `dyntrace why` tells why", calls);
        else
            snprintf(why, sizeof why, "%s", check->warmup ? "the compiler was not asked about a call after the warm-up"
                                                           : "the compiler was never asked about it");
        row_calls(check, calls, why);
    }
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
    bool lookups = check->warmup || check->given[GUARDS] || check->given[EAGER] || check->required_count ||
                   check->given[RECOMPILES] || check->given[COMPILES] || check->given[BREAKS];
    struct query *looked;
    bool ok = code_read(check) && (!lookups || lookups_read(check));

    if (ok && !check->any_lookup && (check->warmup || check->given[GUARDS] || check->given[EAGER] || check->required_count) &&
        db_integer(check->db, 0, "SELECT EXISTS (SELECT 1 FROM compile)")) { /* as imported ones: no calls is not "none ran as Python" */
        say_error("%s: --%s cannot be told: the trace has compiles, but no calls", db_path(check->db),
                  check->warmup ? "after-warmup" : kind_names[check->given[GUARDS] ? GUARDS : check->given[EAGER] ? EAGER : REQUIRE]);
        return false;
    }
    if (ok) {
        looked = db_query(check->db, "SELECT DISTINCT code_id FROM compile WHERE outcome IS NOT 'skipped' AND code_id IS NOT NULL");
        while (query_step(looked)) {
            struct code *code = code_find(check, query_integer(looked, 0));
            if (code)
                code->looked_at = true;
        }
        ok = query_close(looked);
    }
    if (ok && check->given[GUARDS])
        ok = guards_read(check);
    progress_end(&check->progress);
    if (ok && check->given[RECOMPILES])
        ok = check_events(check, RECOMPILES, compiles_sql);
    if (ok && check->given[COMPILES])
        ok = check_events(check, COMPILES, compiles_sql);
    if (ok && check->given[BREAKS])
        ok = check_events(check, BREAKS, breaks_sql);
    if (ok && check->given[GUARDS])
        ok = check_guards(check);
    if (ok && check->given[EAGER])
        ok = check_eager(check);
    for (int i = 0; ok && i < check->required_count; i++)
        ok = check_required(check, check->required[i]);
    return ok;
}

static int check_trace(struct check *check)
{
    struct query *snapshot = db_query(check->db, "BEGIN");
    bool ok = true, told;
    struct json json = {.out = check->out};
    struct doubts doubts;

    query_step(snapshot);
    query_close(snapshot);
    if (!find_tables(check->db))
        return 2;
    check->progress = progress_begin("reading");
    if (check->json) {
        json_object(&json, NULL);
        json_lines(&json);
        json_key(&json, "rows");
    }
    told = checks_run(check);
    progress_end(&check->progress);
    if (check->json && !check->table)
        fputs("[]", check->out);
    if (check->table && !table_close(check->table))
        told = false;
    for (int i = 0; i < check->result_count; i++) {
        const struct result *r = &check->results[i];
        ok = ok && r->ok;
        if (!check->json && check->limit >= 0 && r->rows > check->limit)
            say_error("%s: %s: %" PRId64 " of %" PRId64 " rows; --limit 0 shows all", db_path(check->db), kind_names[r->kind],
                      check->limit, r->rows);
    }
    doubts = doubts_say(check->db, "what is checked is what it has so far", "there may be more than was counted");
    if (check->json)
        json_print(check, &json, told && ok, doubts);
    else if (told && ok)
        ok_print(check);
    if (fflush(check->out) != 0 || ferror(check->out)) {
        say_error("output: cannot be written");
        told = false;
    }
    return !told ? 2 : ok ? 0 : 1;
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
     .help = "compiles of code that was compiled already, in each process"},
    {"max-compiles", .value = "N", .read = limit_read, .to = &asked.allowed[COMPILES],
     .help = "compiles that made code, in each process"},
    {"max-graph-breaks", .value = "N", .read = limit_read, .to = &asked.allowed[BREAKS],
     .help = "graph breaks of all compiles, in each process"},
    {"max-guard-us", .value = "T", .read = limit_read, .to = &asked.allowed[GUARDS],
     .help = "microseconds in guards for a call of a function, on average over its calls"},
    {"max-eager-share", .value = "P", .read = limit_read, .to = &asked.allowed[EAGER],
     .help = "of the calls that the compiler was asked about, those that ran as Python, in each process: 0.05 or 5%"},
    {"require-compiled", .value = "FUNC", .read = required_read, .many = true, .help = "some call of FUNC ran compiled code; may be repeated"},
    {"function", .value = "GLOB", .read = glob_read, .many = true,
     .help = "only functions whose qualified name (or the last part of it) or file matches, and what a compiler made of them; "
             "may be repeated: one match is enough"},
    {"after-warmup", .value = "N", .read = option_count, .to = &asked.warmup,
     .help = "the first N calls of each function, and what was compiled in them, do not count"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &asked.limit, .help = "rows printed for each limit; 0 is all. The default is 100"},
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
    setlocale(LC_CTYPE, "");
    check->db = db_open(operands[0]);
    if (check->db)
        status = check_trace(check);
out:
    db_close(check->db);
    free(globs.text);
    free(check->globs);
    free(check->codes);
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
