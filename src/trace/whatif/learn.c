/* trace/whatif/learn.c -- what a trace says of which calls are alike. See trace/whatif/like.h.
 *
 * Runs in: the viewer. */
#include "trace/whatif/like.h"

#include "replay.h"
#include "trace/db.h"
#include "trace/torch_words.h"
#include "lib/say.h"

enum {
    PAIRS_MAX = 1 << 19, /* remembered; more can be found out again */
    NEAR_ENTRIES = 256,  /* looked through for others of the same code */
};

int64_t *pair_at(struct likeness *l, uint32_t made, uint32_t other)
{
    int64_t key = (int64_t)((uint64_t)made << 32 | other), *bits = map_get(&l->pairs, key);

    if (!bits && (!l->learnt || l->pairs.count < PAIRS_MAX) && !(bits = map_put(&l->pairs, key)))
        l->failed = true;
    l->scratch = 0;
    return bits ? bits : &l->scratch;
}

const char *text_copy(struct likeness *l, const char *text)
{
    const char *copy = arena_text(&l->texts, text, strlen(text));

    l->failed = l->failed || !copy;
    return copy ? copy : "";
}

static int by_made(const void *a, const void *b)
{
    const struct difference *x = a, *y = b;

    return x->made != y->made ? (x->made < y->made ? -1 : 1) : (x->older > y->older) - (x->older < y->older);
}

static bool load_causes(struct likeness *l)
{
    struct query *query = db_query(
        l->db, "SELECT m.cache_entry_id, r.cache_entry_id, r.kind, r.source, r.aspect, r.dimension"
               " FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id WHERE m.cache_entry_id IS NOT NULL");

    while (!l->failed && query_step(query)) {
        uint32_t made = replay_index(&l->r->entry_ids, query_integer(query, 0)),
                 older = replay_index(&l->r->entry_ids, query_integer(query, 1));
        const char *aspect = query_text(query, 4, NULL);
        bool size = !strcmp(aspect, "size"), shaped = size || !strcmp(aspect, "stride"), backend;
        int dimension = size && query_type(query, 5) == QUERY_INTEGER ? (int)query_integer(query, 5) : -1;
        struct difference *c;
        if (made == REPLAY_NONE || older == REPLAY_NONE)
            continue;
        if (!(c = list_add(&l->differences))) {
            l->failed = true;
            break;
        }
        /* A stride follows from the sizes of other dimensions. */
        *c = (struct difference){.made = made,
                            .older = older,
                            .shaped = shaped,
                            .dimension = dimension,
                            .kind = text_copy(l, query_text(query, 2, NULL)),
                            .source = text_copy(l, query_text(query, 3, NULL))};
        backend = !strcmp(c->kind, "BACKEND_MATCH");
        if (!backend && guard_hidden(&l->facts, c->kind, c->source))
            l->codes[l->r->entries.at[made].code].varied = true;
        *pair_at(l, older, made) |= backend ? SEEN_MISMATCH : FIRST_FAIL;
    }
    if (l->differences.count)
        qsort(l->differences.at, l->differences.count, sizeof *l->differences.at, by_made);
    return query_close(query) && !l->failed;
}

static bool load_backends(struct likeness *l)
{
    struct query *query = db_query(l->db, "SELECT cache_entry_id, backend FROM cache_entry");

    while (!l->failed && query_step(query)) {
        uint32_t entry = replay_index(&l->r->entry_ids, query_integer(query, 0));
        const char *name = query_text(query, 1, NULL);
        int64_t *number = map_get_text(&l->backends, name);
        if (!number && (number = map_put_text(&l->backends, text_copy(l, name))))
            *number = (int64_t)l->backends.count - 1;
        if (entry != REPLAY_NONE && number)
            l->classes.at[entry].backend = (uint32_t)*number;
        l->failed = l->failed || !number;
    }
    return query_close(query) && !l->failed;
}

/* Codes with guards that are functions. */
static bool load_lambdas(struct likeness *l)
{
    struct query *query = db_query(
        l->db, "SELECT DISTINCT e.code_id FROM guard g JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id"
               " WHERE g.kind = 'LAMBDA' AND COALESCE(g.source, '') = ''");

    while (query_step(query)) {
        uint32_t code = replay_index(&l->r->code_ids, query_integer(query, 0));
        if (code != REPLAY_NONE)
            l->codes[code].lambdas = true;
    }
    return query_close(query);
}

/* The class of a call that ran no entry: its code, its signature, and the guards that failed where those look at
 * something else. KNOWN: what makes a class -> its number + 1. REPLAY_NONE: no memory. */
static uint32_t miss_class(struct likeness *l, struct map *known, uint32_t lookup)
{
    const struct replay_lookup *k = &l->r->lookups.at[lookup];
    int64_t signature = k->signature, *number;
    struct like_class made = {signature, l->r->caches.at[k->cache].code, REPLAY_NONE, signature <= 0}, *class_;
    uint64_t key = (uint64_t)made.code * 0x9e3779b97f4a7c15u ^ (uint64_t)signature * 0xc2b2ae3d27d4eb4fu;

    for (uint32_t i = k->checks; i < k->checks + k->check_count; i++) {
        const struct replay_check *c = &l->r->checks.at[i];
        int64_t failed = l->r->failed[i];
        const struct guard *g;
        if (c->entry == REPLAY_CHECK_NONE)
            continue;
        if (c->result != CHECK_BACKEND_MISMATCH)
            made.backend = l->classes.at[c->entry].backend;
        if (c->result == CHECK_FAIL && failed && (g = facts_guard(&l->facts, c->entry, failed)) &&
            guard_hidden(&l->facts, g->kind, g->source)) {
            made.hidden = true;
            key = key * 31 + (uint64_t)failed;
        }
    }
    number = map_put(known, (int64_t)(key ^ made.backend * 0x9e3779b9u));
    if (number && !*number && (class_ = list_add(&l->classes))) {
        *class_ = made;
        *number = (int64_t)l->classes.count;
    }
    return number && *number ? (uint32_t)*number - 1 : REPLAY_NONE;
}

/* A call that was seen from outside and found nothing: the entries that were there did not fit. */
static void learn_unseen(struct likeness *l, uint32_t lookup)
{
    const struct replay_lookup *k = &l->r->lookups.at[lookup];
    const struct replay_cache *cache = &l->r->caches.at[k->cache];

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const struct replay_entry *e = &l->r->entries.at[cache->entries[i]];
        if (e->born_ns >= k->start_ns)
            break;
        if (e->died_ns > k->end_ns && e->region < 0 && cache->entries[i] != l->class_of[lookup])
            *pair_at(l, cache->entries[i], l->class_of[lookup]) |= FIRST_FAIL;
    }
}

/* What the checks of LOOKUP, whose class is known, say of pairs. FIRST: it made an entry or ran none. */
static void learn_checks(struct likeness *l, uint32_t lookup, bool first)
{
    const struct replay_lookup *k = &l->r->lookups.at[lookup];
    uint32_t class_ = l->class_of[lookup];

    for (uint32_t i = k->checks; i < k->checks + k->check_count; i++) {
        const struct replay_check *c = &l->r->checks.at[i];
        if (c->entry == REPLAY_CHECK_NONE || c->entry == class_)
            continue;
        if (c->result == CHECK_BACKEND_MISMATCH) {
            if (l->classes.at[c->entry].backend == l->classes.at[class_].backend)
                l->codes[l->r->caches.at[k->cache].code].namesakes = true;
            *pair_at(l, c->entry, class_) |= SEEN_MISMATCH;
        } else if (c->result == CHECK_PASS) {
            *pair_at(l, c->entry, class_) |= SEEN_PASS;
        } else if (c->result == CHECK_FAIL) {
            *pair_at(l, c->entry, class_) |= first ? FIRST_FAIL : SEEN_FAIL;
        }
    }
}

static bool learn(struct likeness *l)
{
    const struct replay *r = l->r;
    struct map known = {0};

    for (uint32_t i = 0; i < r->lookups.count; i++) { /* who made what */
        const struct replay_lookup *k = &r->lookups.at[i];
        if (k->outcome == OUTCOME_COMPILED && k->entry != REPLAY_NONE && l->founder[k->entry] == REPLAY_NONE) {
            l->founder[k->entry] = i;
            l->classes.at[k->entry].signature = k->signature;
        }
    }
    for (uint32_t i = 0; i < r->lookups.count && !l->failed; i++) {
        const struct replay_lookup *k = &r->lookups.at[i];
        bool ran = k->entry != REPLAY_NONE && (k->outcome == OUTCOME_HIT || k->outcome == OUTCOME_COMPILED),
             first = !ran || k->outcome == OUTCOME_COMPILED;
        l->class_of[i] = ran ? k->entry : miss_class(l, &known, i);
        if (l->class_of[i] == REPLAY_NONE) {
            l->failed = true;
            break;
        }
        if (k->observed && first)
            learn_unseen(l, i);
        learn_checks(l, i, first);
    }
    map_free(&known);
    l->learnt = true;
    return !l->failed && !l->facts.failed;
}

/* ---- limits, times, resume functions ---------------------------------------- */

int64_t likeness_region(const struct replay *r, const struct replay_lookup *k, uint32_t ran)
{
    int64_t region = ran < r->entries.count ? r->entries.at[ran].region : -1;

    for (uint32_t i = k->checks; i < k->checks + k->check_count && region < 0; i++)
        if (r->checks.at[i].entry != REPLAY_CHECK_NONE)
            region = r->entries.at[r->checks.at[i].entry].region;
    return region;
}

/* Entries that count towards the limit for lookup LOOKUP, as recorded. -1: no memory. */
static int64_t counted_recorded(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct replay_lookup *k = &r->lookups.at[lookup];
    bool torch = replay_torch(r, k->cache);
    int64_t region = likeness_region(r, k, k->entry), count = 0;

    replay_state_at(r, lookup, state);
    for (size_t i = 0; i < state->count; i++) {
        const struct replay_entry *e = &r->entries.at[state->at[i].entry];
        if (k->outcome == OUTCOME_COMPILED && state->at[i].entry == k->entry)
            continue; /* observed lookups are timed apart from what they make */
        count += (!torch || e->region == region) && (!state->at[i].dead || (torch && !e->reset));
    }
    return count;
}

/* What the trace shows of limits: a call that met one, with how many entries; and none that compiled with as many. */
static bool learn_limits(struct likeness *l)
{
    const struct replay *r = l->r;
    struct replay_state state = {0};
    int64_t *least = calloc(r->codes.count + 1, sizeof *least); /* by code: the limit must be this at least */
    struct query *query;
    bool ok = least != NULL;

    for (size_t i = 0; i < r->lookups.count && ok; i++) {
        const struct replay_lookup *k = &r->lookups.at[r->order[i]];
        uint32_t code = r->caches.at[k->cache].code;
        int64_t count;
        if (k->outcome != OUTCOME_COMPILED && (k->outcome != OUTCOME_LIMIT || l->codes[code].limit))
            continue;
        count = counted_recorded(r, r->order[i], &state);
        ok = count >= 0;
        if (k->outcome == OUTCOME_LIMIT)
            l->codes[code].limit = count ? count : LIMIT_VARIES;
        else if (count >= least[code])
            least[code] = count + 1;
    }
    for (size_t i = 0; ok && i < r->codes.count; i++)
        if (l->codes[i].limit && l->codes[i].limit < least[i])
            l->codes[i].limit = LIMIT_VARIES;
    free(least);
    list_free(&state);
    query = db_query(l->db, "SELECT DISTINCT code_id FROM compile WHERE outcome = 'limit'"
                            " AND substr(reason, 1, 400) LIKE '%accumulated%'");
    while (query_step(query)) {
        uint32_t code = replay_index(&r->code_ids, query_integer(query, 0));
        if (code != REPLAY_NONE)
            l->codes[code].accumulated = l->codes[code].limit > 0;
    }
    return query_close(query) && ok;
}

static int64_t mean(const int64_t *sum, int64_t otherwise)
{
    return sum[1] ? sum[0] / sum[1] : otherwise;
}

static bool learn_times(struct likeness *l)
{
    const struct replay *r = l->r;
    /* Of compiles, of failing and of passing checks: time, number. */
    int64_t(*sums)[6] = calloc(r->codes.count + 1, sizeof *sums);

    if (!sums)
        return false;
    for (size_t i = 0; i < r->entries.count; i++)
        l->costs[i].compile_ns = -1;
    for (size_t i = 0; i < r->compiles.count; i++) {
        const struct replay_compile *c = &r->compiles.at[i];
        if (c->entry == REPLAY_NONE)
            continue;
        l->costs[c->entry].compile_ns = c->end_ns > c->start_ns ? c->end_ns - c->start_ns : 0;
        sums[c->code][0] += l->costs[c->entry].compile_ns;
        sums[c->code][1]++;
    }
    for (size_t i = 0; i < r->entries.count; i++)
        for (int p = 0; p < 2; p++) {
            sums[r->entries.at[i].code][2 + p * 2] += r->times[i].ns[p];
            sums[r->entries.at[i].code][3 + p * 2] += r->times[i].count[p];
        }
    for (size_t i = 0; i < r->codes.count; i++) {
        struct cost *cost = &l->codes[i].cost;
        cost->compile_ns = mean(sums[i], 0);
        cost->check_ns[0] = mean(sums[i] + 2, mean(sums[i] + 4, 0));
        cost->check_ns[1] = mean(sums[i] + 4, cost->check_ns[0]);
    }
    for (size_t i = 0; i < r->entries.count; i++)
        for (int p = 0; p < 2; p++)
            l->costs[i].check_ns[p] = mean((int64_t[]){r->times[i].ns[p], r->times[i].count[p]},
                                           l->codes[r->entries.at[i].code].cost.check_ns[p]);
    free(sums);
    return true;
}

static int by_code(const void *a, const void *b)
{
    const struct rest *x = a, *y = b;

    return (x->code > y->code) - (x->code < y->code);
}

/* Resume functions, and what they are the rest of. */
static bool learn_rests(struct likeness *l)
{
    const struct map *ids = &l->r->code_ids;
    struct query *query = db_query(
        l->db, "SELECT code_id FROM code WHERE kind = 'resume' OR qualname GLOB '*torch_dynamo_resume_in_*'");

    while (query_step(query)) {
        uint32_t code = replay_index(ids, query_integer(query, 0));
        if (code != REPLAY_NONE)
            l->codes[code].resume = true;
    }
    if (!query_close(query))
        return false;
    query = db_query(l->db, "SELECT DISTINCT m.code_id, b.resume_code_id FROM graph_break b"
                            " JOIN compile m ON m.compile_id = b.compile_id WHERE b.resume_code_id IS NOT NULL");
    while (query_step(query)) {
        struct rest one = {replay_index(ids, query_integer(query, 0)), replay_index(ids, query_integer(query, 1))},
                    *added;
        if (one.code == REPLAY_NONE || one.resume == REPLAY_NONE)
            continue;
        if (!(added = list_add(&l->rests)))
            break;
        *added = one;
    }
    if (l->rests.count)
        qsort(l->rests.at, l->rests.count, sizeof *l->rests.at, by_code);
    return query_close(query);
}

/* Which codes have calls of several regions or backends. */
static void learn_groups(struct likeness *l)
{
    const struct replay_entry *entries = l->r->entries.at;

    for (size_t i = 0; i < l->r->entries.count; i++) {
        l->regions = l->regions || entries[i].region >= 0;
        for (size_t k = i > NEAR_ENTRIES ? i - NEAR_ENTRIES : 0; k < i && !l->codes[entries[i].code].several; k++)
            if (entries[k].code == entries[i].code)
                l->codes[entries[i].code].several =
                    entries[i].region != entries[k].region ||
                    l->classes.at[i].backend != l->classes.at[k].backend;
    }
}

static int by_fork_time(const void *a, const void *b, void *context)
{
    const struct replay *r = ((const struct likeness *)context)->r;
    int64_t x = r->processes.at[r->caches.at[*(const uint32_t *)a].process].start_ns,
            y = r->processes.at[r->caches.at[*(const uint32_t *)b].process].start_ns;

    return (x > y) - (x < y);
}

/* Forks in the order of time. */
static bool learn_forks(struct likeness *l)
{
    const struct replay *r = l->r;

    l->by_fork = malloc((r->caches.count + 1) * sizeof *l->by_fork);
    for (uint32_t i = 0; l->by_fork && i < r->caches.count; i++)
        if (r->caches.at[i].parent != REPLAY_NONE && r->caches.at[i].process != REPLAY_NONE)
            l->by_fork[l->forks++] = i;
    if (l->forks)
        qsort_r(l->by_fork, l->forks, sizeof *l->by_fork, by_fork_time, l);
    return l->by_fork;
}

/* ---- opening --------------------------------------------------------------- */

struct likeness *likeness_open(struct db *db, const struct replay *r)
{
    struct likeness *l = calloc(1, sizeof *l);
    struct like_class *classes;
    struct query *query;
    bool ok = false;

    if (!l)
        goto out;
    l->db = db;
    l->r = r;
    l->class_of = malloc((r->lookups.count + 1) * sizeof *l->class_of);
    l->founder = malloc((r->entries.count + 1) * sizeof *l->founder);
    l->codes = calloc(r->codes.count + 1, sizeof *l->codes);
    l->costs = calloc(r->entries.count + 1, sizeof *l->costs);
    classes = list_add_many(&l->classes, r->entries.count + 1);
    if (!l->class_of || !l->founder || !l->codes || !l->costs || !classes)
        goto out;
    l->classes.count = r->entries.count;
    for (size_t i = 0; i < r->entries.count; i++) {
        classes[i] = (struct like_class){.code = r->entries.at[i].code, .backend = REPLAY_NONE};
        l->founder[i] = REPLAY_NONE;
    }
    query = db_query(db, "SELECT DISTINCT torch_version FROM process");
    while (query_step(query))
        l->floats_later = l->floats_later || torch_floats_later(torch_version(query_text(query, 0, NULL)));
    query_close(query);
    ok = facts_open(&l->facts, db, r) && load_backends(l) && load_lambdas(l) && load_causes(l) && learn(l) &&
         learn_limits(l) && learn_times(l) && learn_rests(l) && learn_forks(l);
    if (ok)
        learn_groups(l);
out:
    if (!ok) {
        if (!db_damaged(db))
            say_error("out of memory");
        likeness_free(l);
        return NULL;
    }
    return l;
}

void likeness_free(struct likeness *l)
{
    if (!l)
        return;
    if (l->facts.db)
        facts_close(&l->facts);
    list_free(&l->classes);
    list_free(&l->differences);
    list_free(&l->names);
    list_free(&l->values);
    list_free(&l->rests);
    map_free(&l->pairs);
    map_free(&l->backends);
    arena_free(&l->texts);
    free(l->class_of);
    free(l->founder);
    free(l->codes);
    free(l->costs);
    free(l->by_fork);
    free(l->drops);
    free(l);
}
