/* cmd/diff/functions.c -- `dyntrace diff`: the functions of both traces, side by side. See cmd/diff/diff.h.
 *
 * Runs in: the viewer.
 *
 * A function of A and one of B are the same when file, qualified name and kind agree. Directories may differ (another
 * checkout, another machine), so what is compared of the file is its last part, and where that leaves several, first
 * line and fingerprint decide. What is left over on both sides is the same when name and fingerprint agree: it moved
 * to another file.
 *
 *     what            A                    B
 *     same key        C.f  m.py  #1 fp 7   C.f  m.py  #1 fp 7     same fingerprint: nothing to say
 *     same key        C.g  m.py  fp 8      C.g  m.py  fp 9        'code': its bytecode changed
 *     moved           C.h  m.py  fp 5      C.h  n.py  fp 5        nothing to say
 *     only in one     C.i  m.py            -                      'function': gone, if it was compiled
 *
 * Each trace is read into a list of functions sorted by that key, with totals added up in one pass over lookups and
 * guard checks; then the two lists are walked together. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/diff/diff.h"
#include "lib/table.h"
#include "lib/times.h"
#include "trace/db.h"

enum {
    LEAST_NS = 5000000,    /* a function's own time below this is noise, whatever the ratio */
    LEAST_GUARD_NS = 1000, /* the same for guards of a call */
};

/* ---- one side -------------------------------------------------------------- */

static int number_order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
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
        order = number_order(x->line, y->line);
    return order ? order : number_order(x->fingerprint, y->fingerprint);
}

static bool codes_read(struct diff *diff, struct side *side)
{
    struct query *query = diff_ask(diff, side, "diff/codes");

    while (query_step(query)) {
        struct function *f = list_add(&side->functions);
        const char *path = diff_text(side, query, 2), *slash = path ? strrchr(path, '/') : NULL;
        if (f)
            *f = (struct function){
                .code_id = query_integer(query, 0),
                .name = diff_text(side, query, 1),
                .file = slash ? slash + 1 : path,
                .kind = diff_text(side, query, 3),
                .line = query_integer(query, 4),
                .fingerprint = query_integer(query, 5),
                .calls = query_integer(query, 6),
                .self_ns = query_integer(query, 7),
            };
        if (!f || !f->name || !f->file || !f->kind) {
            query_close(query);
            return diff_no_memory();
        }
    }
    return query_close(query);
}

static void lookup_count(struct function *f, int64_t outcome)
{
    f->outcomes[outcome_of(outcome)]++;
    f->lookups++;
}

static void breaks_count(struct function *f, int64_t breaks)
{
    f->breaks += breaks;
}

static void check_count(struct function *f, int64_t duration_ns)
{
    f->checks++;
    f->guards_ns = times_sum(f->guards_ns, duration_ns);
}

/* The rows of a statement, which are a code object and a number; or what CODES has a code object for. */
static bool rows_count(struct diff *diff, struct side *side, const char *statement, const struct map *codes,
                       void (*count)(struct function *f, int64_t value))
{
    struct query *query = diff_ask(diff, side, statement);
    struct function *f = NULL;
    int64_t rows = 0;

    while (query_step(query)) {
        int64_t id = query_integer(query, 0), *code_id = codes ? map_get(codes, id) : &id;
        if (!(++rows % DIFF_TICK))
            progress_tick(&diff->progress, 0, 0);
        if (code_id && (!f || f->code_id != *code_id))
            f = list_find(&side->functions, code_id, *code_id);
        if (code_id && f)
            count(f, query_integer(query, 1));
    }
    return query_close(query);
}

/* CODES becomes the code objects of entries. */
static bool entries_read(struct diff *diff, struct side *side, struct map *codes)
{
    struct query *query = diff_ask(diff, side, "diff/entries");

    while (query_step(query)) {
        int64_t code_id = query_integer(query, 0), *slot = map_put(codes, query_integer(query, 1));
        struct function *f = list_find(&side->functions, code_id, code_id);
        if (!slot) {
            query_close(query);
            return diff_no_memory();
        }
        *slot = code_id;
        if (f)
            f->entries++;
    }
    return query_close(query);
}

/* Code objects of one function, such as those of several processes, become one. Two functions of one name in one file
 * stay two: they differ in their line. */
static void functions_join(struct side *side)
{
    size_t kept = 0;

    if (side->functions.count)
        qsort(side->functions.at, side->functions.count, sizeof *side->functions.at, function_order_full);
    for (size_t i = 0; i < side->functions.count; i++) {
        struct function *to = kept ? &side->functions.at[kept - 1] : NULL, *from = &side->functions.at[i];
        if (!to || function_order(to, from) || to->line != from->line) {
            side->functions.at[kept++] = *from;
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
    }
    side->functions.count = kept;
}

bool diff_read(struct diff *diff, struct side *side)
{
    struct map codes = {0};
    bool ok = codes_read(diff, side) && rows_count(diff, side, "diff/lookups", NULL, lookup_count) &&
              entries_read(diff, side, &codes) && rows_count(diff, side, "diff/breaks", NULL, breaks_count) &&
              rows_count(diff, side, "diff/checks", &codes, check_count);

    map_free(&codes);
    functions_join(side);
    return ok;
}

/* ---- differences ----------------------------------------------------------- */

static void number_row(struct diff *diff, enum kind kind, const struct function *f, const char *what, int64_t a,
                       int64_t b)
{
    char x[32], y[32];

    if (a == b)
        return;
    snprintf(x, sizeof x, "%" PRId64, a);
    snprintf(y, sizeof y, "%" PRId64, b);
    diff_row(diff, kind, f, what, x, y);
}

/* Times in nanoseconds that differ beyond what differs anyway. */
static void time_row(struct diff *diff, enum kind kind, const struct function *f, const char *what, double a, double b,
                     double least)
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
    if (a->fingerprint && b->fingerprint && a->fingerprint != b->fingerprint &&
        (function_matters(a) || function_matters(b)))
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
    double dx = fabs((double)x->a->self_ns - (double)x->b->self_ns),
           dy = fabs((double)y->a->self_ns - (double)y->b->self_ns);

    return (dx < dy) - (dx > dy);
}

void diff_times(struct diff *diff)
{
    if (diff->pairs.count)
        qsort(diff->pairs.at, diff->pairs.count, sizeof *diff->pairs.at, pair_order);
    for (size_t i = 0; i < diff->pairs.count; i++) {
        const struct function *a = diff->pairs.at[i].a, *b = diff->pairs.at[i].b;
        if (a->calls && b->calls)
            time_row(diff, TIME, b, "own time", (double)a->self_ns, (double)b->self_ns, LEAST_NS);
    }
}

/* ---- which belong together --------------------------------------------------- */

/* The function of A, or of B, that comes next in the two lists; both where it is the same one. */
struct place {
    size_t i, j; /* the next in A and in B */
    struct function *a, *b;
};

static bool place_next(struct side *a, struct side *b, struct place *at)
{
    const size_t left = a->functions.count - at->i, right = b->functions.count - at->j;
    struct function *f = left ? &a->functions.at[at->i] : NULL, *g = right ? &b->functions.at[at->j] : NULL;
    int order = !f ? 1 : !g ? -1 : function_order(f, g);

    if (!f && !g)
        return false;
    /* Of several with this key, those of one line belong together; else they are taken in turn. */
    if (!order && f->line != g->line) {
        bool more_a = left > 1 && !function_order(f, f + 1), more_b = right > 1 && !function_order(g, g + 1);
        if (more_a != more_b && f->fingerprint != g->fingerprint)
            order = more_a ? -1 : 1;
    }
    at->a = order <= 0 ? f : NULL;
    at->b = order >= 0 ? g : NULL;
    at->i += order <= 0;
    at->j += order >= 0;
    return true;
}

static int moved_order(const void *a, const void *b)
{
    const struct function *x = *(struct function *const *)a, *y = *(struct function *const *)b;
    int order = strcmp(x->name, y->name);

    if (!order)
        order = strcmp(x->kind, y->kind);
    return order ? order : number_order(x->fingerprint, y->fingerprint);
}

/* What one trace alone has may be in another file of the other: then its name and its bytecode agree. */
static bool moved_find(struct side *a, struct side *b)
{
    LIST(struct function *) left = {0}, right = {0};
    struct function **one;
    bool ok = true;

    for (struct place at = {0}; ok && place_next(a, b, &at);) {
        struct function *alone = !at.b ? at.a : !at.a ? at.b : NULL;
        if (!alone || !alone->fingerprint)
            continue;
        one = at.a ? list_add(&left) : list_add(&right);
        if ((ok = one))
            *one = alone;
    }
    if (left.count && right.count) {
        qsort(left.at, left.count, sizeof *left.at, moved_order);
        qsort(right.at, right.count, sizeof *right.at, moved_order);
    }
    for (size_t i = 0, j = 0; ok && i < left.count && j < right.count;) {
        int order = moved_order(&left.at[i], &right.at[j]);
        if (!order) {
            left.at[i]->moved = right.at[j];
            right.at[j]->moved = left.at[i];
        }
        i += order <= 0;
        j += order >= 0;
    }
    list_free(&left);
    list_free(&right);
    return ok || diff_no_memory();
}

const char *diff_file(const struct diff *diff, const char *name, const char *file)
{
    const struct function *f = diff->a.functions.at, *end = f + diff->a.functions.count;
    const struct function key = {.name = name, .file = file, .kind = ""};

    /* the first of that name and file */
    for (f += sorted_count(diff->a.functions.count, i, function_order(&diff->a.functions.at[i], &key) < 0);
         f < end && !strcmp(f->name, name) && !strcmp(f->file, file); f++)
        if (f->moved)
            return f->moved->file;
    return file;
}

bool diff_functions(struct diff *diff)
{
    if (!moved_find(&diff->a, &diff->b))
        return false;
    for (struct place at = {0}; place_next(&diff->a, &diff->b, &at);) {
        struct pair *pair;
        if (!at.a && at.b->moved) /* was compared where A has it */
            continue;
        if (!at.b)
            at.b = at.a->moved;
        if (!at.a || !at.b) {
            if (function_matters(at.a ? at.a : at.b))
                diff_row(diff, FUNCTION, at.a ? at.a : at.b, "decided about", at.a ? "yes" : NULL, at.b ? "yes" : NULL);
            continue;
        }
        functions_compare(diff, at.a, at.b);
        if (!(pair = list_add(&diff->pairs)))
            return diff_no_memory();
        *pair = (struct pair){at.a, at.b};
    }
    return true;
}
