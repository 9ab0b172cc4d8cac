/* cmd/diff.c -- `dyntrace diff`: what is different in B?
 *
 * Runs in: the viewer.
 *
 * A function of A and one of B are the same when file, qualified name and kind
 * agree. Directories may differ (another checkout, another machine), so what is
 * compared of the file is its last part, and where that leaves several, first
 * line and fingerprint decide. What is left over on both sides is the same when
 * name and fingerprint agree: it moved to another file.
 *
 *     what            A                    B
 *     same key        C.f  m.py  #1 fp 7   C.f  m.py  #1 fp 7     same fingerprint: nothing to say
 *     same key        C.g  m.py  fp 8      C.g  m.py  fp 9        'code': its bytecode changed
 *     moved           C.h  m.py  fp 5      C.h  n.py  fp 5        nothing to say
 *     only in one     C.i  m.py            -                      'function': gone, if it was compiled
 *
 * Each trace is read into a list of functions sorted by that key, with totals
 * added up in one pass over lookups and guard checks; then the two lists are
 * walked together. Times differ from run to run: they are a difference beyond
 * --tolerance only.
 *
 * --lookups goes through the lookups of both in order of time, thread by thread
 * of the same rank and name, up to the first that was decided differently: where
 * one rank began to do what the others did not. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/db.h"
#include "cmd/diff/diff.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/progress.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "lib/table.h"
#include "lib/times.h"

enum {
    LIMIT = 200,           /* rows, unless --limit */
    LEAST_NS = 5000000,    /* a function's own time below this is noise, whatever the ratio */
    LEAST_GUARD_NS = 1000, /* the same for guards of a call */
};

static const char *const kind_names[KINDS] = {"function", "code", "outcome", "entry", "reason", "break", "guard", "time", "lookup"};

/* ---- one side -------------------------------------------------------------- */

static struct code *code_find(struct side *side, int64_t id)
{
    size_t low = 0, high = side->code_count;
    uint64_t guess = high ? (uint64_t)id - (uint64_t)side->codes[0].id : 0;

    if (guess < high && side->codes[guess].id == id) /* ids seldom have gaps */
        return &side->codes[guess];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (side->codes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < side->code_count && side->codes[low].id == id ? &side->codes[low] : NULL;
}

static int function_order(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (!order)
        order = strcmp(x->file, y->file);
    return order ? order : strcmp(x->kind, y->kind);
}

/* With the line and fingerprint: those of one key in an order that both sides share. */
static int function_order_full(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    int order = function_order(a, b);

    if (!order)
        order = (x->line > y->line) - (x->line < y->line);
    return order ? order : (x->fingerprint > y->fingerprint) - (x->fingerprint < y->fingerprint);
}

void function_free(struct function *f)
{
    free(f->name);
    free(f->file);
    free(f->kind);
}

void diff_bind(const struct diff *diff, const struct side *side, struct query *query, int first)
{
    if (query && diff->glob)
        query_bind_text(query, first, diff->glob);
    if (query && side->rank >= 0)
        query_bind_integer(query, first + 1, side->rank);
}

static bool codes_read(struct diff *diff, struct side *side)
{
    struct query *query = db_query(side->db,
        "SELECT c.code_id, c.qualname, c.filename, c.kind, c.first_line, c.fingerprint, n.calls, n.self_ns FROM code c"
        " LEFT JOIN code_total n ON n.code_id = c.code_id WHERE c.kind IS NOT 'compiled' AND (?1 IS NULL OR c.qualname GLOB ?1"
        " OR c.qualname GLOB '*.' || ?1) AND " OF_RANK " ORDER BY c.code_id");
    size_t room = 0;

    diff_bind(diff, side, query, 1);
    while (query_step(query)) {
        const char *path = query_text(query, 2, NULL), *slash = strrchr(path, '/');
        if (side->code_count == room) {
            struct code *more = realloc(side->codes, (room = room ? room * 2 : 1024) * sizeof *more);
            if (!more)
                goto memory;
            side->codes = more;
        }
        struct code *code = &side->codes[side->code_count++];
        *code = (struct code){.id = query_integer(query, 0)};
        code->f = (struct function){
            .file = strdup(slash ? slash + 1 : path), .line = query_integer(query, 4), .fingerprint = query_integer(query, 5),
            .calls = query_integer(query, 6), .self_ns = query_integer(query, 7),
        };
        code->f.name = strdup(query_text(query, 1, NULL));
        code->f.kind = strdup(query_text(query, 3, NULL));
        if (!code->f.file || !code->f.name || !code->f.kind)
            goto memory;
    }
    return query_close(query);
memory:
    say_error("%s: out of memory", db_path(side->db));
    query_close(query);
    return false;
}

static bool lookups_read(struct diff *diff, struct side *side)
{
    struct query *query = db_query(side->db, "SELECT code_id, outcome FROM lookup");
    int64_t rows = 0;

    while (query_step(query)) {
        struct code *code = code_find(side, query_integer(query, 0));
        if (!(++rows % DIFF_TICK))
            progress_tick(&diff->progress, 0, 0);
        if (code) {
            code->f.outcomes[outcome_of(query_integer(query, 1))]++;
            code->f.lookups++;
        }
    }
    return query_close(query);
}

/* SQL's rows are (code_id, entries, breaks). */
static bool counts_read(struct side *side, const char *sql)
{
    struct query *query = db_query(side->db, sql);

    while (query_step(query)) {
        struct code *code = code_find(side, query_integer(query, 0));
        if (!code)
            continue;
        code->f.entries += query_integer(query, 1);
        code->f.breaks += query_integer(query, 2);
    }
    return query_close(query);
}

/* Guards of each entry are its code's. Entries are few, checks many: read in their order, which needs no sorting. */
static bool guards_read(struct diff *diff, struct side *side)
{
    struct query *query = db_query(side->db, "SELECT cache_entry_id, code_id FROM cache_entry ORDER BY cache_entry_id");
    struct { int64_t id; struct code *code; } *entries = NULL;
    size_t count = 0, room = 0;
    int64_t rows = 0;
    bool ok;

    while (query_step(query)) {
        if (count == room) {
            void *more = realloc(entries, (room = room ? room * 2 : 1024) * sizeof *entries);
            if (!more) {
                say_error("%s: out of memory", db_path(side->db));
                free(entries);
                query_close(query);
                return false;
            }
            entries = more;
        }
        entries[count].id = query_integer(query, 0);
        entries[count++].code = code_find(side, query_integer(query, 1));
    }
    ok = query_close(query);
    query = ok ? db_query(side->db, "SELECT cache_entry_id, duration_ns FROM guard_check WHERE duration_ns IS NOT NULL") : NULL;
    while (query_step(query)) {
        int64_t id = query_integer(query, 0);
        size_t low = 0, high = count;
        if (!(++rows % DIFF_TICK))
            progress_tick(&diff->progress, 0, 0);
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (entries[middle].id < id)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < count && entries[low].id == id && entries[low].code) {
            entries[low].code->f.checks++;
            entries[low].code->f.guards_ns = times_sum(entries[low].code->f.guards_ns, query_integer(query, 1));
        }
    }
    free(entries);
    return query_close(query) && ok;
}

/* Code objects of one function, such as those of several processes, become one. */
static bool functions_join(struct side *side)
{
    size_t kept = 0;

    side->functions = calloc(side->code_count + 1, sizeof *side->functions);
    if (!side->functions) {
        say_error("%s: out of memory", db_path(side->db));
        return false;
    }
    for (size_t i = 0; i < side->code_count; i++) {
        side->functions[i] = side->codes[i].f;
        side->codes[i].f = (struct function){0};
    }
    qsort(side->functions, side->code_count, sizeof *side->functions, function_order_full);
    for (size_t i = 0; i < side->code_count; i++) {
        struct function *to = kept ? &side->functions[kept - 1] : NULL, *from = &side->functions[i];
        /* Two functions of one name in one file stay two: they differ in their line. */
        if (!to || function_order(to, from) || to->line != from->line) {
            side->functions[kept++] = *from;
            continue;
        }
        if (to->fingerprint != from->fingerprint)
            to->fingerprint = (int64_t)((uint64_t)to->fingerprint * 31 + (uint64_t)from->fingerprint);
        to->calls = times_sum(to->calls, from->calls);
        to->self_ns = times_sum(to->self_ns, from->self_ns);
        to->lookups += from->lookups;
        to->entries += from->entries;
        to->breaks += from->breaks;
        to->checks += from->checks;
        to->guards_ns = times_sum(to->guards_ns, from->guards_ns);
        for (int o = 0; o < OUTCOMES; o++)
            to->outcomes[o] += from->outcomes[o];
        function_free(from);
    }
    side->function_count = kept;
    return true;
}

static bool side_read(struct diff *diff, struct side *side)
{
    return codes_read(diff, side) && lookups_read(diff, side) &&
           counts_read(side, "SELECT code_id, COUNT(*), 0 FROM cache_entry GROUP BY code_id") &&
           counts_read(side, "SELECT m.code_id, 0, COUNT(*) FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id"
                             " GROUP BY m.code_id") &&
           guards_read(diff, side) && functions_join(side);
}

static void side_free(struct side *side)
{
    for (size_t i = 0; i < side->code_count; i++)
        function_free(&side->codes[i].f);
    for (size_t i = 0; i < side->function_count; i++)
        function_free(&side->functions[i]);
    free(side->codes);
    free(side->functions);
    db_close(side->db);
}

/* ---- differences ----------------------------------------------------------- */

void diff_row(struct diff *diff, enum kind kind, const struct function *f, const char *what, const char *a, const char *b)
{
    char *where = NULL;

    diff->found[kind]++;
    if (diff->limit >= 0 && ++diff->rows > diff->limit)
        return;
    if (!diff->table)
        diff->table = table_open(stdout, table_format(stdout, diff->json), 6,
                                 (const char *[]){"kind", "function", "where", "what", "a", "b"});
    if (!diff->table)
        return;
    table_string(diff->table, kind_names[kind]);
    table_string(diff->table, f ? f->name : NULL);
    if (f && asprintf(&where, "%s:%" PRId64, f->file, f->line) < 0)
        where = NULL;
    table_string(diff->table, where);
    table_string(diff->table, what);
    table_string(diff->table, a);
    table_string(diff->table, b);
    free(where);
}

static void number_row(struct diff *diff, enum kind kind, const struct function *f, const char *what, int64_t a, int64_t b)
{
    char x[32], y[32];

    if (a == b)
        return;
    snprintf(x, sizeof x, "%" PRId64, a);
    snprintf(y, sizeof y, "%" PRId64, b);
    diff_row(diff, kind, f, what, x, y);
}

/* Times in nanoseconds that differ beyond what differs anyway. */
static void time_row(struct diff *diff, enum kind kind, const struct function *f, const char *what, double a, double b, double least)
{
    char x[TABLE_HUMAN], y[TABLE_HUMAN];
    double less = a < b ? a : b, more = a < b ? b : a;

    if (more - less < least || more <= less * (1 + diff->tolerance))
        return;
    diff_row(diff, kind, f, what, table_duration(x, (int64_t)a), table_duration(y, (int64_t)b));
}

/* Nobody misses a function that no compiler was asked about. */
static bool function_matters(const struct function *f)
{
    return f->lookups || f->entries || f->breaks;
}

static void functions_compare(struct diff *diff, const struct function *a, const struct function *b)
{
    if (a->fingerprint && b->fingerprint && a->fingerprint != b->fingerprint && (function_matters(a) || function_matters(b)))
        diff_row(diff, CODE, b, "bytecode", "as it was", "changed");
    for (int o = 0; o < OUTCOMES; o++)
        number_row(diff, OUTCOME, b, outcome_word(o), a->outcomes[o], b->outcomes[o]);
    number_row(diff, ENTRY, b, "cache entries", a->entries, b->entries);
    number_row(diff, BREAK, b, "graph breaks", a->breaks, b->breaks);
    if (a->checks && b->checks && a->lookups && b->lookups)
        time_row(diff, GUARD, b, "guards of a call", (double)a->guards_ns / (double)a->lookups,
                 (double)b->guards_ns / (double)b->lookups, LEAST_GUARD_NS);
}

static int pair_order(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    double dx = fabs((double)x->a->self_ns - (double)x->b->self_ns), dy = fabs((double)y->a->self_ns - (double)y->b->self_ns);

    return (dx < dy) - (dx > dy);
}

/* After all else, because every run differs in this: what changed most comes first. */
static void times_compare(struct diff *diff)
{
    qsort(diff->pairs, diff->pair_count, sizeof *diff->pairs, pair_order);
    for (size_t i = 0; i < diff->pair_count; i++) {
        const struct function *a = diff->pairs[i].a, *b = diff->pairs[i].b;
        if (a->calls && b->calls)
            time_row(diff, TIME, b, "own time", (double)a->self_ns, (double)b->self_ns, LEAST_NS);
    }
}

/* What stands where the two lists are: -1 something of A alone, 1 of B alone, 0 the same function in both. */
static int place_order(const struct side *a, size_t i, const struct side *b, size_t j)
{
    const struct function *f = i < a->function_count ? &a->functions[i] : NULL;
    const struct function *g = j < b->function_count ? &b->functions[j] : NULL;
    int order = !f ? 1 : !g ? -1 : function_order(f, g);

    if (!order && f->line != g->line) { /* of several with this key, those of one line belong together; else they are taken in turn */
        bool more_a = i + 1 < a->function_count && !function_order(f, &a->functions[i + 1]);
        bool more_b = j + 1 < b->function_count && !function_order(g, &b->functions[j + 1]);
        if (more_a != more_b && f->fingerprint != g->fingerprint)
            order = more_a ? -1 : 1;
    }
    return order;
}

static int moved_order(const void *a, const void *b)
{
    const struct function *x = *(struct function *const *)a, *y = *(struct function *const *)b;
    int order = strcmp(x->name, y->name);

    if (!order)
        order = strcmp(x->kind, y->kind);
    return order ? order : (x->fingerprint > y->fingerprint) - (x->fingerprint < y->fingerprint);
}

/* What one trace alone has may be in another file of the other: then its name and its bytecode agree. */
static bool moved_find(struct side *a, struct side *b)
{
    struct function **left_a = malloc((a->function_count + 1) * sizeof *left_a), **left_b = malloc((b->function_count + 1) * sizeof *left_b);
    size_t count_a = 0, count_b = 0;
    bool ok = left_a && left_b;

    for (size_t i = 0, j = 0; ok && (i < a->function_count || j < b->function_count);) {
        int order = place_order(a, i, b, j);
        if (order < 0 && a->functions[i].fingerprint)
            left_a[count_a++] = &a->functions[i];
        if (order > 0 && b->functions[j].fingerprint)
            left_b[count_b++] = &b->functions[j];
        i += order <= 0;
        j += order >= 0;
    }
    if (ok) {
        qsort(left_a, count_a, sizeof *left_a, moved_order);
        qsort(left_b, count_b, sizeof *left_b, moved_order);
    }
    for (size_t i = 0, j = 0; ok && i < count_a && j < count_b;) {
        int order = moved_order(&left_a[i], &left_b[j]);
        if (!order) {
            left_a[i]->moved = left_b[j];
            left_b[j]->moved = left_a[i];
        }
        i += order <= 0;
        j += order >= 0;
    }
    if (!ok)
        say_error("diff: out of memory");
    free(left_a);
    free(left_b);
    return ok;
}

const char *diff_file(const struct diff *diff, const char *name, const char *file)
{
    const struct side *a = &diff->a;
    size_t low = 0, high = a->function_count;

    while (low < high) { /* the first of that name and file */
        size_t middle = low + (high - low) / 2;
        int order = strcmp(a->functions[middle].name, name);
        if (!order)
            order = strcmp(a->functions[middle].file, file);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < a->function_count && !strcmp(a->functions[low].name, name) && !strcmp(a->functions[low].file, file); low++)
        if (a->functions[low].moved)
            return a->functions[low].moved->file;
    return file;
}

static bool sides_compare(struct diff *diff)
{
    struct side *a = &diff->a, *b = &diff->b;

    diff->pairs = calloc(a->function_count + 1, sizeof *diff->pairs);
    if (!diff->pairs) {
        say_error("diff: out of memory");
        return false;
    }
    if (!moved_find(a, b))
        return false;
    for (size_t i = 0, j = 0; i < a->function_count || j < b->function_count;) {
        int order = place_order(a, i, b, j);
        const struct function *f = order <= 0 ? &a->functions[i++] : NULL, *g = order >= 0 ? &b->functions[j++] : NULL;
        if (!f && g->moved) /* told where A has it */
            continue;
        if (!g)
            g = f->moved;
        if (f && g) {
            functions_compare(diff, f, g);
            diff->pairs[diff->pair_count++] = (struct pair){f, g};
        } else if (function_matters(f ? f : g)) {
            diff_row(diff, FUNCTION, f ? f : g, "decided about", f ? "yes" : NULL, g ? "yes" : NULL);
        }
    }
    return true;
}

/* ---- the result ------------------------------------------------------------ */

static bool side_open(struct side *side, const char *path)
{
    struct query *query;
    bool any;

    if (!(side->db = find_open(path)))
        return false;
    db_run(side->db, "PRAGMA cache_size = -12288"); /* what is read once needs no more, and there are two traces */
    query = side->rank < 0 ? NULL : db_query(side->db, "SELECT 1 FROM process WHERE rank = ?1");
    if (query) {
        query_bind_integer(query, 1, side->rank);
        any = query_step(query);
        if (!query_close(query))
            return false;
        if (!any) {
            say_error("%s: no process of rank %" PRId64, path, side->rank);
            return false;
        }
    }
    doubts_say(side->db, "what is compared is what it has so far", "some differences may be due to that");
    return true;
}

static int traces_diff(struct diff *diff, const char *a, const char *b)
{
    struct json json = {.out = stdout};
    int64_t all = 0;
    bool ok, fails = false;

    diff->progress = progress_begin("comparing");
    ok = side_open(&diff->a, a) && side_open(&diff->b, b) && side_read(diff, &diff->a) && side_read(diff, &diff->b);
    if (ok && diff->glob && !diff->a.function_count && !diff->b.function_count) {
        say_error("diff: --function %s: no function of either trace matches, so there is nothing to compare", diff->glob);
        ok = false;
    }
    if (ok && diff->json) {
        json_object(&json, NULL);
        json_lines(&json);
        json_key(&json, "differences");
    }
    if (ok) {
        ok = sides_compare(diff) && diff_reasons(diff) &&
             (!diff->lookups || diff_lookups(diff));
        if (ok)
            times_compare(diff);
    }
    progress_end(&diff->progress);
    if (diff->table && !table_close(diff->table))
        ok = false;
    for (int k = 0; k < KINDS; k++) {
        all += diff->found[k];
        fails = fails || (diff->fail[k] && diff->found[k]);
    }
    if (ok && diff->json) {
        fputs(diff->table ? "" : "[]", stdout);
        json_bool(&json, "fails", fails);
        json_object(&json, "counts");
        for (int k = 0; k < KINDS; k++)
            json_integer(&json, kind_names[k], diff->found[k]);
        json_end(&json);
        json_end(&json);
        putchar('\n');
    } else if (ok && !all) {
        puts("no difference");
    } else if (ok && diff->limit >= 0 && all > diff->limit) {
        say_error("diff: %" PRId64 " of %" PRId64 " differences; --limit 0 shows all", diff->limit, all);
    }
    return !ok ? 2 : fails ? 1 : 0;
}

/* ---- the command line ------------------------------------------------------ */

static struct diff diff = {.limit = LIMIT, .tolerance = 0.2, .a.rank = -1, .b.rank = -1};

/* "outcome,entry" or "any". */
static const char *fail_read(const struct option *option, const char *list)
{
    (void)option;
    while (*list) {
        size_t length = strcspn(list, ",");
        bool known = false;
        for (int k = 0; k < KINDS; k++)
            if ((length == strlen(kind_names[k]) && !strncmp(list, kind_names[k], length)) || (length == 3 && !strncmp(list, "any", 3)))
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
    char *end;

    (void)option;
    diff.a.rank = diff.b.rank = strtoll(value, &end, 10);
    if (end != value && *end == ',')
        diff.b.rank = strtoll(value = end + 1, &end, 10);
    return end == value || *end || diff.a.rank < 0 || diff.b.rank < 0 ? "not one rank, or two such as 0,1" : NULL;
}

static const struct option options[] = {
    {"fail-on", .value = "KIND,...", .read = fail_read, .words = "function code outcome entry reason break guard time lookup any",
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
     .help = "times that differ by less are alike: 0.2 or 20%, the default. Own times below 5 ms and guards below a microsecond a "
             "call are noise whatever the ratio"},
    {"lookups", .read = option_flag, .to = &diff.lookups,
     .help = "for each thread the first lookup that was decided differently; threads are matched by name, and by rank when the "
             "traces are of two ranks"},
    {"rank", .value = "R[,S]", .read = rank_read,
     .help = "only processes of rank R of A, and of rank S (or R) of B: `dyntrace diff job.db job.db --rank 0,1 --lookups` shows "
             "where rank 1 began to do something else"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &diff.limit, .help = "rows printed; 0 is all. The default is 200"},
    {"json", .read = option_flag, .to = &diff.json, .help = "the same for a program, with the number of differences of each kind"},
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
    status = traces_diff(&diff, operands[0], operands[1]);
    side_free(&diff.a);
    side_free(&diff.b);
    free(diff.pairs);
    return status;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "what is different in another trace",
    .operands = "A B",
    .about = "What is different in trace B: functions are matched by name and file, then line and fingerprint; one that moved to "
             "another file, by name and fingerprint.",
    .options = options,
    .more = "Exit status: 0; 1 a difference of --fail-on; 2 bad usage, or a trace that cannot be read.",
    .operands_most = 2,
    .too_many = "two traces at a time",
    .run = diff_main,
};
