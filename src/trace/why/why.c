/* trace/why/why.c -- gathers what is known about one function's calls. See trace/why/why.h.
 *
 * Runs in: the viewer.
 *
 * One query for each kind of fact (struct ask: that is also what --sql prints).
 *
 * `lookup`, `guard_check` and `frame` have no index besides their key, because
 * they grow while the program runs; each is read once from end to end and summed
 * up here: SQLite's GROUP BY sorts the rows, which takes four times as long. What
 * --sql prints for these three is the GROUP BY. */
#include "trace/why/why.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/doubts.h"
#include "lib/json.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "lib/times.h"

enum {
    FRAMES_READ = 12000000, /* more frames are not read to tell how calls without a lookup were decided */
    ROWS_READ = 10000,      /* failing guards; the SQL below bounds the rest */
};

void *why_grow(struct why *why, void **items, size_t *count, size_t *room, size_t size)
{
    if (*count == *room) {
        size_t more = *room ? *room * 2 : 16;
        void *grown = realloc(*items, more * size);
        if (!grown) {
            if (!why->failed)
                say_error("out of memory");
            why->failed = true;
            return NULL;
        }
        *items = grown;
        *room = more;
    }
    return memset((char *)*items + (*count)++ * size, 0, size);
}

/* SQL, in which every "$codes" stands for the ids of the function's code
 * objects. The caller frees it; NULL: out of memory. */
static char *sql_about(struct why *why, const char *sql)
{
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    for (const char *at; out && (at = strstr(sql, "$codes")); sql = at + 6)
        fprintf(out, "%.*s%s", (int)(at - sql), sql, why->code.ids);
    if (out) {
        fputs(sql, out);
        fclose(out);
    }
    if (!made)
        why->failed = true;
    return made;
}

/* Ask for the rows of ROWS, of which SQL is the summary. NULL: it was said why not. */
static struct query *ask_rows(struct why *why, const char *title, const char *sql, const char *rows)
{
    struct ask *ask = ADD(why, asked);
    struct query *query = NULL;
    char *made;

    if (!ask)
        return NULL;
    ask->title = title;
    ask->sql = sql_about(why, sql);
    made = sql_about(why, rows);
    if (made)
        query = db_query(why->db, made);
    free(made);
    return query;
}

struct query *why_ask(struct why *why, const char *title, const char *sql)
{
    return ask_rows(why, title, sql, sql);
}

void why_asked(struct why *why, struct query *query)
{
    if (!query_close(query))
        why->failed = true;
}

static struct entry *entry_by_id(struct why *why, int64_t entry_id)
{
    for (size_t low = 0, high = why->entries.count; low < high; ) { /* in order of id */
        size_t middle = (low + high) / 2;
        if (why->entries.items[middle].entry_id == entry_id)
            return &why->entries.items[middle];
        if (why->entries.items[middle].entry_id < entry_id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

struct compile *why_compile(struct why *why, int64_t compile_id)
{
    for (size_t low = 0, high = why->compiles.count; low < high; ) {
        size_t middle = (low + high) / 2;
        if (why->compiles.items[middle].compile_id == compile_id)
            return &why->compiles.items[middle];
        if (why->compiles.items[middle].compile_id < compile_id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- gathering ------------------------------------------------------------- */

static void gather_totals(struct why *why)
{
    struct query *query = why_ask(why, "calls and time in all",
        "SELECT SUM(calls), SUM(total_ns) FROM code_total WHERE code_id IN ($codes)");

    why->all_calls = why->total_ns = -1;
    if (query_step(query) && query_type(query, 0) != QUERY_NULL) {
        why->all_calls = query_integer(query, 0);
        why->total_ns = query_integer(query, 1);
    }
    why_asked(why, query);
    why->missing = db_integer(why->db, 0, "SELECT EXISTS (SELECT 1 FROM loss WHERE events IS NULL OR events > 0)");
}

static void gather_entries(struct why *why)
{
    struct query *query = why_ask(why, "its cache entries",
        "SELECT cache_entry_id, code_id, compile_id, label, backend, guard_count, born_ns, died_ns,\n"
        "       substr(death_cause, 1, 1000), region_id\n"
        "FROM cache_entry WHERE code_id IN ($codes) ORDER BY cache_entry_id LIMIT 10000");
    struct entry *e;

    while (query_step(query) && (e = ADD(why, entries))) {
        e->entry_id = query_integer(query, 0);
        e->code_id = query_integer(query, 1);
        e->compile_id = query_integer(query, 2);
        e->label = prose_column(query, 3);
        e->backend = prose_column(query, 4);
        e->guards = query_integer(query, 5);
        e->born_ns = query_integer(query, 6);
        e->died = query_type(query, 7) != QUERY_NULL;
        e->died_ns = query_integer(query, 7);
        e->death = prose_column(query, 8);
        e->in_region = query_type(query, 9) != QUERY_NULL;
        e->region_id = query_integer(query, 9);
        if (!e->label && asprintf(&e->label, "entry %" PRId64, e->entry_id) < 0)
            e->label = NULL;
    }
    why_asked(why, query);
}

static void gather_compiles(struct why *why)
{
#define COMPILES(sticky) \
        "SELECT m.compile_id, m.code_id, m.cache_entry_id, m.label, m.start_ns, m.end_ns, m.outcome,\n" \
        "       substr(m.reason, 1, 2000), " sticky ", p.rank, m.frame_id, m.thread_id\n" \
        "FROM compile m LEFT JOIN code c ON c.code_id = m.code_id LEFT JOIN process p ON p.process_id = c.process_id\n" \
        "WHERE m.code_id IN ($codes) ORDER BY m.compile_id LIMIT 10000"
    struct query *query = why_ask(why, "its compiles", find_column(why->db, "compile", "sticky") ? COMPILES("m.sticky")
                                                                                              : COMPILES("NULL AS sticky"));
#undef COMPILES
    struct compile *c;

    while (query_step(query) && (c = ADD(why, compiles))) {
        c->compile_id = query_integer(query, 0);
        c->code_id = query_integer(query, 1);
        c->entry_id = query_integer(query, 2);
        c->label = prose_column(query, 3);
        c->start_ns = query_integer(query, 4);
        c->ended = query_type(query, 5) != QUERY_NULL;
        c->end_ns = query_integer(query, 5);
        c->outcome = prose_column(query, 6);
        c->reason = prose_column(query, 7);
        c->rank = query_type(query, 9) == QUERY_NULL ? -1 : query_integer(query, 9);
        c->frame_id = query_integer(query, 10);
        c->thread_id = query_integer(query, 11);
        c->sticky = query_type(query, 8) == QUERY_NULL ? -1 : query_integer(query, 8) != 0;
        for (struct compile *older = why->compiles.items; older < c && !c->recompile; older++)
            c->recompile = older->code_id == c->code_id && older->entry_id;
    }
    why_asked(why, query);
}

/* Has a cause of this compile already said what it found wanting in this entry first? */
static bool entry_told(struct why *why, const struct compile *compile, int64_t entry_id)
{
    for (size_t i = compile->first_cause; i < compile->first_cause + compile->causes; i++)
        if (why->causes.items[i].entry_id == entry_id && why->causes.items[i].decided)
            return true;
    return false;
}

static void gather_causes(struct why *why)
{
    struct query *query = why_ask(why, "why each recompile was needed; the guard that decided comes first",
        "SELECT " CAUSE_COLUMNS ",\n"
        "       e.label, COALESCE(r.how, 'observed') = 'observed', COALESCE(r.ordinal, 0)\n"
        "FROM compile m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id\n"
        "LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id\n"
        "WHERE m.code_id IN ($codes)\n"
        "ORDER BY r.compile_id, COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.cache_entry_id, r.rowid LIMIT 20000");
    struct compile *compile = NULL;
    struct cause *c;

    while (query_step(query) && (c = ADD(why, causes))) {
        *c = cause_read(query, 0);
        c->entry = prose_column(query, CAUSE_READ);
        c->observed = query_integer(query, CAUSE_READ + 1);
        if (!c->entry && c->entry_id && asprintf(&c->entry, "entry %" PRId64, c->entry_id) < 0)
            c->entry = NULL;
        if (!compile || compile->compile_id != c->compile_id) {
            compile = why_compile(why, c->compile_id);
            if (compile)
                compile->first_cause = why->causes.count - 1;
        }
        if (!compile)
            continue;
        c->decided = query_integer(query, CAUSE_READ + 2) == 0 && !entry_told(why, compile, c->entry_id);
        compile->causes++;
        compile->recompile = true;
    }
    why_asked(why, query);
}

int64_t why_calls(const struct why *why, enum outcome outcome)
{
    int64_t calls = 0;

    for (size_t i = 0; i < why->calls.count; i++)
        if (why->calls.items[i].outcome == outcome)
            calls += why->calls.items[i].calls;
    return calls;
}

static struct call_class *class_of(struct why *why, enum outcome outcome, int64_t entry_id)
{
    struct call_class *class;

    for (size_t i = 0; i < why->calls.count; i++)
        if (why->calls.items[i].outcome == outcome && why->calls.items[i].entry_id == entry_id)
            return &why->calls.items[i];
    class = ADD(why, calls);
    if (class)
        *class = (struct call_class){.outcome = outcome, .entry_id = entry_id, .first_ns = INT64_MAX};
    return class;
}

static void class_add(struct call_class *class, int64_t calls, int64_t first_ns, int64_t last_ns, int64_t lookup_ns)
{
    class->calls += calls;
    if (first_ns < class->first_ns)
        class->first_ns = first_ns;
    if (last_ns > class->last_ns)
        class->last_ns = last_ns;
    class->lookup_ns = times_sum(class->lookup_ns, lookup_ns);
    class->timed = true;
}

static void gather_lookups(struct why *why)
{
    struct query *query = ask_rows(why, "how its calls were decided, hits by entry",
        "SELECT outcome, cache_entry_id, COUNT(*) AS calls, MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns,\n"
        "       SUM(duration_ns) AS lookup_ns, MIN(signature_id) AS signature_id\n"
        "FROM lookup WHERE code_id IN ($codes) GROUP BY outcome, cache_entry_id",
        "SELECT outcome, cache_entry_id, start_ns, duration_ns, signature_id FROM lookup WHERE code_id IN ($codes)");
    struct call_class sums[OUTCOMES], *class;
    struct entry *entry = NULL;

    for (int i = 0; i < OUTCOMES; i++)
        sums[i] = (struct call_class){.outcome = (enum outcome)i, .first_ns = INT64_MAX};
    while (query_step(query)) {
        enum outcome outcome = outcome_of(query_integer(query, 0));
        int64_t entry_id = query_integer(query, 1), start = query_integer(query, 2), spent = query_integer(query, 3);
        if (!entry || entry->entry_id != entry_id)
            entry = entry_by_id(why, entry_id);
        if (outcome == OUTCOME_HIT && entry) {
            if (!entry->hits++ || start < entry->first_hit_ns)
                entry->first_hit_ns = start;
            if (start > entry->last_hit_ns)
                entry->last_hit_ns = start;
            entry->lookup_ns = times_sum(entry->lookup_ns, spent);
            continue;
        }
        class_add(&sums[outcome], 1, start, start, spent);
        if (outcome == OUTCOME_COMPILED && entry) { /* its inputs are the compile's */
            struct compile *compile = why_compile(why, entry->compile_id);
            if (compile)
                compile->signature_id = query_integer(query, 4);
        }
    }
    why_asked(why, query);
    for (int i = 0; i < OUTCOMES; i++)
        if (sums[i].calls && (class = ADD(why, calls)))
            *class = sums[i];
    for (size_t i = 0; i < why->entries.count; i++) {
        entry = &why->entries.items[i];
        if (!entry->hits || !(class = class_of(why, OUTCOME_HIT, entry->entry_id)))
            continue;
        class_add(class, entry->hits, entry->first_hit_ns, entry->last_hit_ns, entry->lookup_ns);
        class->entry = entry->label ? strdup(entry->label) : NULL;
    }
}

/* What the inputs of the compiled calls were like. */
static void gather_signatures(struct why *why)
{
    struct query *query = db_query(why->db, "SELECT substr(text, 1, 400) FROM signature WHERE signature_id = ?1");

    for (size_t i = 0; i < why->compiles.count; i++) {
        if (!why->compiles.items[i].signature_id)
            continue;
        query_bind_integer(query, 1, why->compiles.items[i].signature_id);
        if (query_step(query))
            why->compiles.items[i].inputs = prose_column(query, 0);
        query_reset(query);
    }
    why_asked(why, query);
}

/* Calls without a lookup: their frames say how they were decided. */
static void gather_frames(struct why *why)
{
    int64_t decided = 0, frames = db_meta_integer(why->db, "frame_count", -1);
    struct call_class sums[OUTCOMES];
    struct query *query;

    for (size_t i = 0; i < why->calls.count; i++)
        decided += why->calls.items[i].calls;
    if (why->all_calls < decided)
        why->all_calls = decided ? decided : why->all_calls;
    why->undecided = why->all_calls > decided ? why->all_calls - decided : 0;
    if (!why->undecided || frames > FRAMES_READ)
        return;
    query = ask_rows(why, "the same by its frames, for calls that needed no lookup",
        "SELECT outcome, COUNT(*) AS calls, MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns FROM frame\n"
        "WHERE code_id IN ($codes) AND COALESCE(kind, 0) = 0 AND COALESCE(outcome, 0) IN (0, 4, 7) GROUP BY outcome",
        "SELECT outcome, start_ns FROM frame\n"
        "WHERE code_id IN ($codes) AND COALESCE(kind, 0) = 0 AND COALESCE(outcome, 0) IN (0, 4, 7)");
    for (int i = 0; i < OUTCOMES; i++)
        sums[i] = (struct call_class){.outcome = (enum outcome)i, .first_ns = INT64_MAX};
    while (query_step(query))
        class_add(&sums[outcome_of(query_integer(query, 0))], 1, query_integer(query, 1), query_integer(query, 1), 0);
    why_asked(why, query);
    for (int i = 0; i < OUTCOMES; i++) {
        struct call_class *class;
        int64_t calls = sums[i].calls - why_calls(why, sums[i].outcome); /* the others had a lookup as well */
        if (calls > why->undecided)
            calls = why->undecided;
        if (calls <= 0 || !(class = class_of(why, sums[i].outcome, 0)))
            continue;
        why->undecided -= calls;
        class_add(class, calls, sums[i].first_ns, sums[i].last_ns, 0);
    }
}

/* How often a guard ended a check, in a hash table: slots of 0 times are free. */
struct tally {
    int64_t guard_id, entry_id, times;
    char result; /* its first letter */
};
struct tallies {
    struct tally *slots; /* owned; ROOM of them, a power of two, at most half of them used */
    size_t used, room;
};

static struct tally *tally_slot(struct tallies *tallies, const struct tally *key)
{
    uint64_t hash = ((uint64_t)key->guard_id * 31 + (uint64_t)key->entry_id * 7 + (unsigned char)key->result) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 20) & (tallies->room - 1);

    while (tallies->slots[at].times && (tallies->slots[at].guard_id != key->guard_id ||
                                        tallies->slots[at].entry_id != key->entry_id || tallies->slots[at].result != key->result))
        at = (at + 1) & (tallies->room - 1);
    return &tallies->slots[at];
}

static bool tally_add(struct tallies *tallies, struct tally key)
{
    struct tally *slot;

    if (tallies->used * 2 >= tallies->room) {
        struct tallies more = {.room = tallies->room ? tallies->room * 2 : 256, .used = tallies->used};
        if (!(more.slots = calloc(more.room, sizeof *more.slots)))
            return false;
        for (size_t i = 0; i < tallies->room; i++)
            if (tallies->slots[i].times)
                *tally_slot(&more, &tallies->slots[i]) = tallies->slots[i];
        free(tallies->slots);
        *tallies = more;
    }
    slot = tally_slot(tallies, &key);
    if (!slot->times) {
        *slot = key;
        tallies->used++;
    }
    slot->times++;
    return true;
}

/* Errors first, then what failed most. */
static int tally_more(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;

    if ((x->result == 'e') != (y->result == 'e'))
        return x->result == 'e' ? -1 : 1;
    if (x->times != y->times)
        return x->times < y->times ? 1 : -1;
    if (x->entry_id != y->entry_id)
        return x->entry_id < y->entry_id ? -1 : 1;
    return (x->guard_id > y->guard_id) - (x->guard_id < y->guard_id);
}

/* The guards of TALLIES, which are sorted, with what they asked. */
static void failed_guards_make(struct why *why, const struct tallies *tallies)
{
    struct query *query = db_query(why->db, "SELECT kind, source, substr(expression, 1, 400) FROM guard WHERE guard_id = ?1");

    for (size_t i = 0; i < tallies->room && tallies->slots[i].times && i < ROWS_READ; i++) {
        const struct tally *tally = &tallies->slots[i];
        const struct entry *entry = entry_by_id(why, tally->entry_id);
        struct failed_guard *guard = ADD(why, guards);
        if (!guard)
            break;
        guard->times = tally->times;
        guard->result = strdup(tally->result == 'e' ? "error" : tally->result == 'b' ? "backend_mismatch" : "fail");
        guard->entry = entry && entry->label ? strdup(entry->label) : NULL;
        query_bind_integer(query, 1, tally->guard_id);
        if (query_step(query)) {
            guard->kind = prose_column(query, 0);
            guard->source = prose_column(query, 1);
            guard->expression = prose_column(query, 2);
        }
        query_reset(query);
    }
    why_asked(why, query);
}

static void gather_checks(struct why *why)
{
    struct tallies tallies = {0};
    struct entry *entry = NULL;
    struct query *query;

    if (!why->entries.count)
        return;
    query = ask_rows(why, "its entries' guards: how often tried, what failed, what it took",
        "SELECT k.*, g.kind, g.source, g.expression\n"
        "FROM (SELECT cache_entry_id, result, failed_guard_id, COUNT(*) AS times, SUM(duration_ns) AS duration_ns\n"
        "      FROM guard_check WHERE cache_entry_id IN (SELECT cache_entry_id FROM cache_entry WHERE code_id IN ($codes))\n"
        "      GROUP BY cache_entry_id, result, failed_guard_id) k\n"
        "LEFT JOIN guard g ON g.guard_id = k.failed_guard_id\n"
        "ORDER BY k.result = 'error' DESC, k.times DESC",
        "SELECT cache_entry_id, result, failed_guard_id, duration_ns FROM guard_check\n"
        "WHERE cache_entry_id IN (SELECT cache_entry_id FROM cache_entry WHERE code_id IN ($codes))");
    while (query_step(query)) {
        struct tally key = {query_integer(query, 2), query_integer(query, 0), 0, *query_text(query, 1, NULL)};
        int64_t spent = query_integer(query, 3);
        if (!entry || entry->entry_id != key.entry_id)
            entry = entry_by_id(why, key.entry_id);
        why->check_ns = times_sum(why->check_ns, spent);
        why->checks += key.result != 'b';
        why->timed_checks += key.result != 'b' && query_type(query, 3) != QUERY_NULL;
        if (entry) {
            entry->check_ns = times_sum(entry->check_ns, spent);
            *(key.result == 'b' ? &entry->mismatched : &entry->tried) += 1;
        }
        if (key.result != 'p' && !tally_add(&tallies, key)) {
            why->failed = true;
            break;
        }
    }
    why_asked(why, query);
    if (tallies.room) {
        size_t used = 0;
        for (size_t i = 0; i < tallies.room; i++)
            if (tallies.slots[i].times)
                tallies.slots[used++] = tallies.slots[i];
        for (size_t i = used; i < tallies.room; i++)
            tallies.slots[i].times = 0;
        qsort(tallies.slots, used, sizeof *tallies.slots, tally_more);
        failed_guards_make(why, &tallies);
    }
    free(tallies.slots);
}

/* What the calls were like that fitted no entry and ran as Python. */
static void gather_inputs(struct why *why)
{
    struct query *query;
    struct input *input;

    if (!why_calls(why, OUTCOME_LIMIT) && !why_calls(why, OUTCOME_RUN_ONLY))
        return;
    query = why_ask(why, "inputs of calls that fitted no entry and ran as Python",
        "SELECT (SELECT substr(text, 1, 400) FROM signature s WHERE s.signature_id = l.signature_id), calls\n"
        "FROM (SELECT signature_id, COUNT(*) AS calls FROM lookup\n"
        "      WHERE outcome IN (3, 5) AND signature_id IS NOT NULL AND code_id IN ($codes)\n"
        "      GROUP BY signature_id ORDER BY calls DESC, signature_id LIMIT 20) l ORDER BY calls DESC");
    while (query_step(query) && (input = ADD(why, inputs))) {
        input->text = prose_column(query, 0);
        input->calls = query_integer(query, 1);
    }
    why_asked(why, query);
    query = why_ask(why, "how many different inputs all misses had, and of how many of those that ran as Python it is not known",
        "SELECT COUNT(DISTINCT signature_id), SUM(outcome <> 2 AND signature_id IS NULL) FROM lookup\n"
        "WHERE outcome IN (2, 3, 5) AND code_id IN ($codes)");
    if (query_step(query) && !query_integer(query, 1) && !doubts_values(why->db)) /* else more than can be told apart */
        why->different_inputs = query_integer(query, 0);
    why_asked(why, query);
}

/* ---- all of it ------------------------------------------------------------- */

static int class_order(const void *a, const void *b)
{
    const struct call_class *x = a, *y = b;

    if (x->calls != y->calls)
        return x->calls < y->calls ? 1 : -1;
    if (x->outcome != y->outcome)
        return x->outcome < y->outcome ? -1 : 1;
    return (x->entry_id > y->entry_id) - (x->entry_id < y->entry_id);
}

void why_gather(struct why *why)
{
    gather_totals(why);
    gather_entries(why);
    gather_compiles(why);
    gather_causes(why);
    gather_lookups(why);
    gather_signatures(why);
    gather_frames(why);
    gather_checks(why);
    gather_inputs(why);
    why_gather_torch(why);
    why_gather_parents(why);
    why_gather_cost(why);
    if (why->failed)
        return;
    if (why->calls.count)
        qsort(why->calls.items, why->calls.count, sizeof *why->calls.items, class_order);
    why_follow(why);
}

void why_free(struct why *why)
{
    for (size_t i = 0; i < why->asked.count; i++)
        free(why->asked.items[i].sql);
    for (size_t i = 0; i < why->calls.count; i++)
        free(why->calls.items[i].entry);
    for (size_t i = 0; i < why->entries.count; i++)
        free(why->entries.items[i].label), free(why->entries.items[i].backend), free(why->entries.items[i].death);
    for (size_t i = 0; i < why->compiles.count; i++) {
        struct compile *c = &why->compiles.items[i];
        free(c->label), free(c->outcome), free(c->reason), free(c->inputs);
        free(c->parent.function), free(c->parent.label), free(c->parent.source), free(c->parent.wanted), free(c->parent.seen);
    }
    for (size_t i = 0; i < why->causes.count; i++)
        cause_free(&why->causes.items[i]);
    for (size_t i = 0; i < why->histories.count; i++)
        free(why->histories.items[i].values), free(why->histories.items[i].json), free(why->histories.items[i].aspect);
    for (size_t i = 0; i < why->guards.count; i++) {
        struct failed_guard *g = &why->guards.items[i];
        free(g->entry), free(g->kind), free(g->source), free(g->expression), free(g->result);
    }
    for (size_t i = 0; i < why->breaks.count; i++)
        free(why->breaks.items[i].reason), free(why->breaks.items[i].resume), free(why->breaks.items[i].stack);
    for (size_t i = 0; i < why->rest_count; i++)
        free(why->rests[i].qualname), free(why->rests[i].filename), free(why->rests[i].ids);
    for (size_t i = 0; i < why->phases.count; i++)
        free(why->phases.items[i].name);
    for (size_t i = 0; i < why->marks.count; i++)
        free(why->marks.items[i].action), free(why->marks.items[i].callees), free(why->marks.items[i].reason);
    free(why->torch.text), free(why->torch.mode), free(why->torch.note);
    for (size_t i = 0; i < why->inputs.count; i++)
        free(why->inputs.items[i].text);
    for (size_t i = 0; i < why->remedies.count; i++)
        free(why->remedies.items[i].text), free(why->remedies.items[i].settings);
    for (size_t i = 0; i < why->forbidders.count; i++)
        free(why->forbidders.items[i].function), free(why->forbidders.items[i].reason);
    for (size_t i = 0; i < why->costs.count; i++)
        free(why->costs.items[i].kind);
    free(why->disabled_by), free(why->disabled_words);
    free(why->forbidders.items), free(why->costs.items);
    free(why->asked.items), free(why->calls.items), free(why->entries.items), free(why->compiles.items);
    free(why->causes.items), free(why->histories.items), free(why->guards.items), free(why->breaks.items);
    free(why->inputs.items), free(why->remedies.items), free(why->phases.items), free(why->marks.items), free(why->ranks.items);
    found_code_free(&why->code);
    db_close(why->db);
}
