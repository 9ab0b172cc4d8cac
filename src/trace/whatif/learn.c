/* trace/whatif/learn.c -- what a trace says of which calls are alike. See trace/whatif/like.h. */
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/whatif/like.h"

enum { PAIRS_MAX = 1 << 19 /* remembered; more can be found out again */ };

int64_t *pair_at(struct whatif *w, uint32_t made, uint32_t other)
{
    int64_t key = (int64_t)((uint64_t)made << 32 | other), *bits = map_get(&w->pairs, key);

    if (!bits && w->learnt && w->pairs.count >= PAIRS_MAX) {
        w->scratch = 0;
        return &w->scratch;
    }
    return bits ? bits : map_put(&w->pairs, key);
}

const char *text_copy(struct whatif *w, const char *text)
{
    return arena_text(&w->texts, text, strlen(text));
}

/* ---- rows of schemas/whatif.sql ------------------------------------------ */

/* A map's key and value. */
static bool map_row(void *map, const int64_t *v, unsigned nulls)
{
    *map_put(map, v[0]) = v[1];
    return true;
}

static bool rest_row(void *context, const int64_t *v, unsigned nulls)
{
    struct whatif *w = context;
    struct rest rest = {replay_index(&w->r->code_ids, v[0]), replay_index(&w->r->code_ids, v[1])};

    if (rest.code != REPLAY_NONE && rest.resume != REPLAY_NONE) {
        *list_add(&w->rests) = rest;
        w->codes[rest.code].breaks = true;
    }
    return true;
}

/* A guard of which the call that made an entry is known to have failed it, though another decided.
 * */
static bool failed_row(void *context, const int64_t *v, unsigned nulls)
{
    struct whatif *w = context;

    map_put(&w->failing, v[1]);
    map_put(&w->failed_by, failed_key(replay_index(&w->r->entry_ids, v[0]), v[1]));
    return true;
}

/* ---- who is like whom ---------------------------------------------------- */

/* The class of a call that ran no entry: its code, signature and backend. KNOWN: what makes a class
 * -> its number + 1. */
static uint32_t miss_class(struct whatif *w, struct map *known, uint32_t lookup)
{
    const struct replay_lookup *k = &w->r->lookups.at[lookup];
    struct like_class made = {.signature = k->signature,
                              .code = w->r->caches.at[k->cache].code,
                              .backend = REPLAY_NONE,
                              .founder = lookup};
    uint64_t key =
        (uint64_t)made.code * 0x9e3779b97f4a7c15u ^ (uint64_t)made.signature * 0xc2b2ae3d27d4eb4fu;
    int64_t *number;

    for (uint32_t i = k->checks; i < k->checks + k->check_count; i++)
        if (w->r->checks.at[i].entry != REPLAY_CHECK_NONE &&
            w->r->checks.at[i].result != CHECK_BACKEND_MISMATCH)
            made.backend = w->classes.at[w->r->checks.at[i].entry].backend;
    number = map_put(known, (int64_t)(key ^ made.backend * 0x9e3779b9u));
    if (!*number) {
        *list_add(&w->classes) = made;
        *number = (int64_t)w->classes.count;
    }
    return (uint32_t)*number - 1;
}

/* A call that was seen from outside and found nothing: the entries that were there did not fit. */
static void learn_unseen(struct whatif *w, uint32_t lookup)
{
    const struct replay_lookup *k = &w->r->lookups.at[lookup];
    const struct replay_cache *cache = &w->r->caches.at[k->cache];

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const struct replay_entry *e = &w->r->entries.at[cache->entries[i]];
        if (e->born_ns >= k->start_ns)
            break;
        if (e->died_ns > k->end_ns && e->region < 0 && cache->entries[i] != w->class_of[lookup])
            *pair_at(w, cache->entries[i], w->class_of[lookup]) |= FIRST_FAIL;
    }
}

/* What the checks of LOOKUP, whose class is known, say of guards and backends. */
static void learn_checks(struct whatif *w, uint32_t lookup, bool first)
{
    const struct replay_lookup *k = &w->r->lookups.at[lookup];
    uint32_t class_ = w->class_of[lookup], process = w->r->caches.at[k->cache].process;

    for (uint32_t i = k->checks; i < k->checks + k->check_count; i++) {
        const struct replay_check *c = &w->r->checks.at[i];
        const struct replay_entry *e =
            c->entry == REPLAY_CHECK_NONE ? NULL : &w->r->entries.at[c->entry];
        if (e && e->shared && e->process == process &&
            w->classes.at[c->entry].seen_ns < k->start_ns)
            w->classes.at[c->entry].seen_ns = k->start_ns;
        if (c->failed)
            map_put(&w->failing, c->failed);
        if (c->failed && first)
            map_put(&w->failed_by, failed_key(class_, c->failed));
        if (c->entry == REPLAY_CHECK_NONE || c->result != CHECK_BACKEND_MISMATCH)
            continue;
        if (w->classes.at[c->entry].backend == w->classes.at[class_].backend)
            w->codes[w->r->caches.at[k->cache].code].namesakes = true;
        *pair_at(w, c->entry, class_) |= SEEN_MISMATCH;
    }
}

static void learn_pairs(struct whatif *w)
{
    const struct replay *r = w->r;
    struct map known = {0};

    for (uint32_t i = 0; i < r->lookups.count; i++) { /* who made what */
        const struct replay_lookup *k = &r->lookups.at[i];
        if (k->outcome == OUTCOME_COMPILED && k->entry != REPLAY_NONE &&
            w->classes.at[k->entry].founder == REPLAY_NONE) {
            w->classes.at[k->entry].founder = i;
            w->classes.at[k->entry].signature = k->signature;
        }
    }
    for (uint32_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = &r->lookups.at[i];
        bool ran = k->entry != REPLAY_NONE &&
                   (k->outcome == OUTCOME_HIT || k->outcome == OUTCOME_COMPILED),
             first = !ran || k->outcome == OUTCOME_COMPILED;
        w->class_of[i] = ran ? k->entry : miss_class(w, &known, i);
        if (k->observed && first)
            learn_unseen(w, i);
        learn_checks(w, i, first);
    }
    map_free(&known);
    w->learnt = true;
}

/* ---- limits, times, forks ------------------------------------------------ */

int64_t like_region(const struct replay *r, const struct replay_lookup *k, uint32_t ran)
{
    int64_t region = ran < r->entries.count ? r->entries.at[ran].region : -1;

    for (uint32_t i = k->checks; i < k->checks + k->check_count && region < 0; i++)
        if (r->checks.at[i].entry != REPLAY_CHECK_NONE)
            region = r->entries.at[r->checks.at[i].entry].region;
    return region;
}

/* Entries that count towards the limit for lookup K, as recorded. */
static int64_t counted_recorded(const struct replay *r, const struct replay_lookup *k)
{
    const struct replay_cache *cache = &r->caches.at[k->cache];
    bool torch = replay_torch(r, k->cache);
    int64_t region = like_region(r, k, k->entry), count = 0;

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const struct replay_entry *e = &r->entries.at[cache->entries[i]];
        if (e->born_ns >= k->start_ns)
            break;
        if (k->outcome == OUTCOME_COMPILED && cache->entries[i] == k->entry)
            continue; /* observed lookups are timed apart from what they make */
        count +=
            (!torch || e->region == region) && (e->died_ns >= k->start_ns || (torch && !e->reset));
    }
    return count;
}

/* Entries that the stand-alone shim counts towards the limit on all entries ever, for lookup K. */
static int64_t made_recorded(const struct replay *r, const struct replay_lookup *k)
{
    const struct replay_cache *cache = &r->caches.at[k->cache];
    int64_t made = 0;

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const struct replay_entry *e = &r->entries.at[cache->entries[i]];
        bool forgotten = e->reset && e->died_ns < k->start_ns;
        if (e->born_ns >= k->start_ns)
            break;
        made += !forgotten;
    }
    return made;
}

/* K met a limit, or compiled, in the stand-alone shim. LEAST living entries did not stop an earlier
 * compile: with fewer, K met the limit on all entries ever. Else it may have been either limit,
 * unless a later compile shows that more entries ever are allowed. */
static void learn_accumulated(struct whatif *w, const struct replay_lookup *k, int64_t count,
                              int64_t least)
{
    struct like_code *code = &w->codes[w->r->caches.at[k->cache].code];
    int64_t made = made_recorded(w->r, k);

    if (k->outcome == OUTCOME_LIMIT && !code->limit)
        code->maybe_ever = made;
    if (k->outcome == OUTCOME_COMPILED && made >= code->maybe_ever)
        code->maybe_ever = 0;
    if (k->outcome == OUTCOME_LIMIT && !code->limit && count < least) {
        code->accumulated = true;
        code->limit = made;
    } else if (k->outcome == OUTCOME_COMPILED && code->accumulated && made >= code->limit) {
        code->limit = LIMIT_VARIES;
    }
}

/* What the trace shows of limits: a call that met one, with how many entries; and none that
 * compiled with as many. */
static void learn_limits(struct whatif *w)
{
    const struct replay *r = w->r;
    /* by code: the limit must be this at least */
    int64_t *least = calloc(r->codes.count + 1, sizeof *least);

    for (size_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = &r->lookups.at[r->order[i]];
        uint32_t code = r->caches.at[k->cache].code;
        int64_t count;
        bool asked = k->outcome == OUTCOME_COMPILED || k->outcome == OUTCOME_DECLINED;
        if (!asked && (k->outcome != OUTCOME_LIMIT || w->codes[code].limit))
            continue;
        count = counted_recorded(r, k);
        if (!replay_torch(r, k->cache))
            learn_accumulated(w, k, count, least[code]);
        if (k->outcome == OUTCOME_LIMIT && !w->codes[code].limit)
            w->codes[code].limit = count ? count : LIMIT_VARIES;
        else if (count >= least[code])
            least[code] = count + 1;
    }
    for (size_t i = 0; i < r->codes.count; i++) {
        w->codes[i].least = least[i];
        if (w->codes[i].limit && w->codes[i].limit < least[i])
            w->codes[i].limit = LIMIT_VARIES;
        w->codes[i].accumulated = w->codes[i].accumulated && w->codes[i].limit > 0;
    }
    free(least);
}

static void time_add(struct whatif *w, uint32_t entry, enum timed kind, int64_t ns, int64_t count)
{
    struct like_times *both[] = {&w->classes.at[entry].times,
                                 &w->codes[w->classes.at[entry].code].times};

    for (int i = 0; i < 2; i++) {
        both[i]->ns[kind] += ns;
        both[i]->count[kind] += count;
    }
}

static void learn_times(struct whatif *w)
{
    const struct replay *r = w->r;

    for (size_t i = 0; i < r->compiles.count; i++) {
        const struct replay_compile *c = &r->compiles.at[i];
        if (c->entry != REPLAY_NONE)
            time_add(w, c->entry, TIMED_COMPILE,
                     c->end_ns > c->start_ns ? c->end_ns - c->start_ns : 0, 1);
    }
    for (uint32_t i = 0; i < 2 * r->entries.count; i++)
        time_add(w, i / 2, i % 2, r->times[i / 2].ns[i % 2], r->times[i / 2].count[i % 2]);
}

int64_t like_cost(const struct whatif *w, uint32_t class_, enum timed kind)
{
    const struct like_times *own = &w->classes.at[class_].times,
                            *all = &w->codes[w->classes.at[class_].code].times;
    const struct like_times *from = own->count[kind] ? own : all;

    if (!from->count[kind] && kind != TIMED_COMPILE)
        kind = !kind;
    return from->count[kind] ? from->ns[kind] / from->count[kind] : 0;
}

static int by_code(const void *a, const void *b)
{
    return list_order(((const struct rest *)a)->code, ((const struct rest *)b)->code);
}

static int by_fork_time(const void *a, const void *b, void *context)
{
    const struct replay *r = context;

    return list_order(r->processes.at[r->caches.at[*(const uint32_t *)a].process].start_ns,
                      r->processes.at[r->caches.at[*(const uint32_t *)b].process].start_ns);
}

/* Forks in the order of time. */
static void learn_forks(struct whatif *w)
{
    const struct replay *r = w->r;

    for (uint32_t i = 0; i < r->caches.count; i++)
        if (r->caches.at[i].parent != REPLAY_NONE)
            *list_add(&w->forks) = i;
    if (w->forks.count)
        qsort_r(w->forks.at, w->forks.count, sizeof *w->forks.at, by_fork_time, (void *)r);
}

void whatif_learn(struct whatif *w)
{
    const struct replay *r = w->r;
    struct map several = {0}, accumulated = {0}, backends = {0}, excluded = {0};

    db_each(w->db, schema_statement("whatif/several"), map_row, &several);
    db_each(w->db, schema_statement("whatif/accumulated"), map_row, &accumulated);
    db_each(w->db, schema_statement("whatif/excluded"), map_row, &excluded);
    db_each(w->db, schema_statement("whatif/backends"), map_row, &backends);
    db_each(w->db, schema_statement("whatif/killers"), map_row, &w->killers);
    db_each(w->db, schema_statement("whatif/freed"), map_row, &w->freed);
    w->blind = doubts_values(w->db) != NULL;
    w->class_of = malloc((r->lookups.count + 1) * sizeof *w->class_of);
    w->codes = calloc(r->codes.count + 1, sizeof *w->codes);
    for (size_t i = 0; i < r->entries.count; i++) {
        const struct replay_entry *e = &r->entries.at[i];
        *list_add(&w->classes) = (struct like_class){
            .code = e->code, .backend = replay_index(&backends, e->id), .founder = REPLAY_NONE};
        w->regions = w->regions || e->region >= 0;
    }
    for (size_t i = 0; i < r->codes.count; i++)
        w->codes[i] = (struct like_code){.several = map_get(&several, r->codes.at[i].id),
                                         .accumulated = map_get(&accumulated, r->codes.at[i].id),
                                         .excluded = map_get(&excluded, r->codes.at[i].id)};
    map_free(&several);
    map_free(&accumulated);
    map_free(&excluded);
    map_free(&backends);
    w->floats_later = db_integer(w->db, 0, schema_statement("whatif/floats-later"));
    db_each(w->db, schema_statement("whatif/rests"), rest_row, w);
    list_sort(&w->rests, by_code);
    learn_times(w);
    db_each(w->db, schema_statement("whatif/failed"), failed_row, w);
    learn_pairs(w);
    learn_limits(w);
    learn_forks(w);
}
