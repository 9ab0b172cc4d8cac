/* trace/whatif/learn.c -- what a trace says of which calls are alike. See trace/whatif/like.h.
 *
 * Runs in: the viewer. */
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/torch_words.h"
#include "trace/whatif/like.h"

enum { PAIRS_MAX = 1 << 19 /* remembered; more can be found out again */ };

int64_t *pair_at(struct likeness *l, uint32_t made, uint32_t other)
{
    int64_t key = (int64_t)((uint64_t)made << 32 | other), *bits = map_get(&l->pairs, key);

    if (!bits && l->learnt && l->pairs.count >= PAIRS_MAX) {
        l->scratch = 0;
        return &l->scratch;
    }
    return bits ? bits : map_put(&l->pairs, key);
}

const char *text_copy(struct likeness *l, const char *text)
{
    return arena_text(&l->texts, text, strlen(text));
}

/* ---- rows: each function takes one of schemas/whatif.sql ------------------- */

static bool signature_row(void *context, const int64_t *v, unsigned nulls)
{
    struct likeness *l = context;

    (void)nulls;
    list_add(&l->signatures)->id = v[0];
    return true;
}

static bool backend_row(void *context, const int64_t *v, unsigned nulls)
{
    struct likeness *l = context;
    uint32_t entry = replay_index(&l->r->entry_ids, v[0]);

    (void)nulls;
    if (entry != REPLAY_NONE)
        l->classes.at[entry].backend = (uint32_t)v[1];
    return true;
}

static bool code_row(void *context, const int64_t *v, unsigned nulls)
{
    struct likeness *l = context;
    uint32_t code = replay_index(&l->r->code_ids, v[0]);

    (void)nulls;
    if (code != REPLAY_NONE)
        l->codes[code] = (struct like_code){.lambdas = v[1], .several = v[2], .resume = v[3], .accumulated = v[4]};
    return true;
}

static bool rest_row(void *context, const int64_t *v, unsigned nulls)
{
    struct likeness *l = context;
    struct rest rest = {replay_index(&l->r->code_ids, v[0]), replay_index(&l->r->code_ids, v[1])};

    (void)nulls;
    if (rest.code != REPLAY_NONE && rest.resume != REPLAY_NONE)
        *list_add(&l->rests) = rest;
    return true;
}

/* By entry made, as indices follow row ids. */
static void load_causes(struct likeness *l)
{
    struct query *query = db_query(l->db, schema_statement("whatif/causes"));

    while (query_step(query)) {
        uint32_t made = replay_index(&l->r->entry_ids, query_integer(query, 0)),
                 older = replay_index(&l->r->entry_ids, query_integer(query, 1));
        struct difference c = {.made = made, .older = older, .shaped = query_integer(query, 4), .dimension = -1};
        bool backend;
        if (made == REPLAY_NONE || older == REPLAY_NONE)
            continue;
        c.kind = text_copy(l, query_text(query, 2, NULL));
        c.source = text_copy(l, query_text(query, 3, NULL));
        if (query_type(query, 5) == QUERY_INTEGER)
            c.dimension = (int)query_integer(query, 5);
        *list_add(&l->differences) = c;
        backend = !strcmp(c.kind, "BACKEND_MATCH");
        if (!backend && guard_hidden(l, c.kind, c.source))
            l->codes[l->r->entries.at[made].code].varied = true;
        *pair_at(l, older, made) |= backend ? SEEN_MISMATCH : FIRST_FAIL;
    }
    query_close(query);
}

/* ---- who is like whom ------------------------------------------------------ */

/* The class of a call that ran no entry: its code, its signature, and the guards that failed where those look at
 * something else. KNOWN: what makes a class -> its number + 1. */
static uint32_t miss_class(struct likeness *l, struct map *known, uint32_t lookup)
{
    const struct replay_lookup *k = &l->r->lookups.at[lookup];
    int64_t signature = k->signature, *number;
    struct like_class made = {signature, l->r->caches.at[k->cache].code, REPLAY_NONE, signature <= 0};
    uint64_t key = (uint64_t)made.code * 0x9e3779b97f4a7c15u ^ (uint64_t)signature * 0xc2b2ae3d27d4eb4fu;

    for (uint32_t i = k->checks; i < k->checks + k->check_count; i++) {
        const struct replay_check *c = &l->r->checks.at[i];
        int64_t failed = l->r->failed[i];
        const struct guard *g;
        if (c->entry == REPLAY_CHECK_NONE)
            continue;
        if (c->result != CHECK_BACKEND_MISMATCH)
            made.backend = l->classes.at[c->entry].backend;
        if (c->result == CHECK_FAIL && failed && (g = guard_of(l, c->entry, failed)) &&
            guard_hidden(l, g->kind, g->source)) {
            made.hidden = true;
            key = key * 31 + (uint64_t)failed;
        }
    }
    number = map_put(known, (int64_t)(key ^ made.backend * 0x9e3779b9u));
    if (!*number) {
        *list_add(&l->classes) = made;
        *number = (int64_t)l->classes.count;
    }
    return (uint32_t)*number - 1;
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

static void learn_pairs(struct likeness *l)
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
    for (uint32_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = &r->lookups.at[i];
        bool ran = k->entry != REPLAY_NONE && (k->outcome == OUTCOME_HIT || k->outcome == OUTCOME_COMPILED),
             first = !ran || k->outcome == OUTCOME_COMPILED;
        l->class_of[i] = ran ? k->entry : miss_class(l, &known, i);
        if (k->observed && first)
            learn_unseen(l, i);
        learn_checks(l, i, first);
    }
    map_free(&known);
    l->learnt = true;
}

/* ---- limits, times, forks --------------------------------------------------- */

int64_t likeness_region(const struct replay *r, const struct replay_lookup *k, uint32_t ran)
{
    int64_t region = ran < r->entries.count ? r->entries.at[ran].region : -1;

    for (uint32_t i = k->checks; i < k->checks + k->check_count && region < 0; i++)
        if (r->checks.at[i].entry != REPLAY_CHECK_NONE)
            region = r->entries.at[r->checks.at[i].entry].region;
    return region;
}

/* Entries that count towards the limit for lookup LOOKUP, as recorded. */
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
static void learn_limits(struct likeness *l)
{
    const struct replay *r = l->r;
    struct replay_state state = {0};
    int64_t *least = calloc(r->codes.count + 1, sizeof *least); /* by code: the limit must be this at least */

    for (size_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = &r->lookups.at[r->order[i]];
        uint32_t code = r->caches.at[k->cache].code;
        int64_t count;
        if (k->outcome != OUTCOME_COMPILED && (k->outcome != OUTCOME_LIMIT || l->codes[code].limit))
            continue;
        count = counted_recorded(r, r->order[i], &state);
        if (k->outcome == OUTCOME_LIMIT)
            l->codes[code].limit = count ? count : LIMIT_VARIES;
        else if (count >= least[code])
            least[code] = count + 1;
    }
    for (size_t i = 0; i < r->codes.count; i++) {
        if (l->codes[i].limit && l->codes[i].limit < least[i])
            l->codes[i].limit = LIMIT_VARIES;
        l->codes[i].accumulated = l->codes[i].accumulated && l->codes[i].limit > 0;
    }
    free(least);
    list_free(&state);
}

static void learn_times(struct likeness *l)
{
    const struct replay *r = l->r;

    for (size_t i = 0; i < r->entries.count; i++) {
        struct replay_times *all = &l->codes[r->entries.at[i].code].checks;
        l->compile_ns[i] = -1;
        for (int passed = 0; passed < 2; passed++) {
            all->ns[passed] += r->times[i].ns[passed];
            all->count[passed] += r->times[i].count[passed];
        }
    }
    for (size_t i = 0; i < r->compiles.count; i++) {
        const struct replay_compile *c = &r->compiles.at[i];
        if (c->entry == REPLAY_NONE)
            continue;
        l->compile_ns[c->entry] = c->end_ns > c->start_ns ? c->end_ns - c->start_ns : 0;
        l->codes[c->code].compile_ns += l->compile_ns[c->entry];
        l->codes[c->code].compiles++;
    }
}

static int64_t mean(const struct replay_times *times, bool passed, int64_t otherwise)
{
    return times->count[passed] ? times->ns[passed] / times->count[passed] : otherwise;
}

int64_t likeness_check_ns(const struct likeness *l, uint32_t class_, uint32_t code, bool passed)
{
    const struct replay_times *all = &l->codes[code].checks;
    int64_t usual = mean(all, passed, mean(all, !passed, 0));

    return class_ < l->r->entries.count ? mean(&l->r->times[class_], passed, usual) : usual;
}

int64_t likeness_compile_ns(const struct likeness *l, uint32_t class_, uint32_t code)
{
    const struct like_code *c = &l->codes[code];

    if (class_ < l->r->entries.count && l->compile_ns[class_] >= 0)
        return l->compile_ns[class_];
    return c->compiles ? c->compile_ns / c->compiles : 0;
}

static int by_code(const void *a, const void *b)
{
    const struct rest *x = a, *y = b;

    return (x->code > y->code) - (x->code < y->code);
}

static int by_fork_time(const void *a, const void *b, void *context)
{
    const struct replay *r = context;
    int64_t x = r->processes.at[r->caches.at[*(const uint32_t *)a].process].start_ns,
            y = r->processes.at[r->caches.at[*(const uint32_t *)b].process].start_ns;

    return (x > y) - (x < y);
}

/* Forks in the order of time. */
static void learn_forks(struct likeness *l)
{
    const struct replay *r = l->r;

    for (uint32_t i = 0; i < r->caches.count; i++)
        if (r->caches.at[i].parent != REPLAY_NONE)
            *list_add(&l->forks) = i;
    if (l->forks.count)
        qsort_r(l->forks.at, l->forks.count, sizeof *l->forks.at, by_fork_time, (void *)r);
}

/* ---- opening --------------------------------------------------------------- */

struct likeness *likeness_open(struct db *db, const struct replay *r)
{
    struct likeness *l = calloc(1, sizeof *l);
    struct query *query = db_query(db, schema_statement("whatif/torches"));

    l->db = db;
    l->r = r;
    l->blind = doubts_values(db) != NULL;
    l->class_of = malloc((r->lookups.count + 1) * sizeof *l->class_of);
    l->founder = malloc((r->entries.count + 1) * sizeof *l->founder);
    l->codes = calloc(r->codes.count + 1, sizeof *l->codes);
    l->compile_ns = malloc((r->entries.count + 1) * sizeof *l->compile_ns);
    l->guards = calloc(r->entries.count + 1, sizeof *l->guards);
    for (size_t i = 0; i < r->entries.count; i++) {
        *list_add(&l->classes) = (struct like_class){.code = r->entries.at[i].code, .backend = REPLAY_NONE};
        l->founder[i] = REPLAY_NONE;
        l->regions = l->regions || r->entries.at[i].region >= 0;
    }
    while (query_step(query))
        l->floats_later = l->floats_later || torch_floats_later(torch_version(query_text(query, 0, NULL)));
    query_close(query);
    db_each(db, schema_statement("whatif/signatures"), signature_row, l);
    db_each(db, schema_statement("whatif/backends"), backend_row, l);
    db_each(db, schema_statement("whatif/codes"), code_row, l);
    db_each(db, schema_statement("whatif/rests"), rest_row, l);
    if (l->rests.count)
        qsort(l->rests.at, l->rests.count, sizeof *l->rests.at, by_code);
    load_causes(l);
    learn_pairs(l);
    learn_limits(l);
    learn_times(l);
    learn_forks(l);
    return l;
}

void likeness_free(struct likeness *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->signatures.count; i++)
        list_free(&l->signatures.at[i].parts);
    for (size_t i = 0; i < l->r->entries.count; i++)
        list_free(&l->guards[i]);
    free(l->guards);
    free(l->class_of);
    free(l->founder);
    free(l->codes);
    free(l->compile_ns);
    list_free(&l->signatures);
    list_free(&l->classes);
    list_free(&l->differences);
    list_free(&l->names);
    list_free(&l->values);
    list_free(&l->rests);
    list_free(&l->forks);
    list_free(&l->drops);
    map_free(&l->pairs);
    arena_free(&l->texts);
    free(l);
}
