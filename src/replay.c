/* replay.c -- finding a place among the decisions of a trace, and a cache as it stood there. See replay.h.
 *
 * Runs in: the viewer. */
#include "replay.h"

#include "trace/replay/cache_order.h"

enum { FORKS_MAX = 64 /* generations of processes that hand a cache on */ };

int replay_by_birth(const void *a, const void *b, void *context)
{
    const struct replay_entry *entries = context, *x = &entries[*(const uint32_t *)a],
                              *y = &entries[*(const uint32_t *)b];

    if (x->born_ns != y->born_ns)
        return x->born_ns < y->born_ns ? -1 : 1;
    return (x > y) - (x < y);
}

int replay_by_moment(const void *a, const void *b)
{
    const struct replay_event *x = a, *y = b;

    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* ---- finding a place ------------------------------------------------------- */

bool *replay_codes(const struct replay *r, const char *ids)
{
    bool *codes = calloc(r->codes.count + 1, sizeof *codes);
    char *end;

    for (const char *at = ids; at && *at; at = end + strspn(end, ", ")) {
        uint32_t code = replay_index(&r->code_ids, strtoll(at, &end, 10));
        if (end == at)
            break;
        if (code != REPLAY_NONE)
            codes[code] = true;
    }
    return codes;
}

uint32_t replay_lookup_at(const struct replay *r, int64_t lookup_id)
{
    const struct replay_lookup *found = list_find(&r->lookups, id, lookup_id);

    return found ? (uint32_t)(found - r->lookups.at) : REPLAY_NONE;
}

size_t replay_seek(const struct replay *r, int64_t at_ns)
{
    return sorted_count(r->events.count, i, r->events.at[i].at_ns < at_ns);
}

struct replay_subject replay_about(const struct replay *r, enum replay_kind kind, uint32_t index)
{
    struct replay_subject s = {0, 0, REPLAY_NONE, REPLAY_NONE, REPLAY_NONE, REPLAY_NONE};

    if (kind == REPLAY_LOOKUP) {
        const struct replay_lookup *l = &r->lookups.at[index];
        const struct replay_cache *cache = &r->caches.at[l->cache];
        return (struct replay_subject){l->id, l->start_ns, cache->code, l->thread, cache->process, l->entry};
    }
    if (kind == REPLAY_DEATH) {
        const struct replay_entry *e = &r->entries.at[index];
        return (struct replay_subject){e->id, e->died_ns, e->code, REPLAY_NONE, e->process, index};
    }
    if (kind == REPLAY_BREAK) { /* when and where its compile is */
        uint32_t compile = r->breaks.at[index].compile;
        s = compile == REPLAY_NONE ? s : replay_about(r, REPLAY_COMPILE, compile);
        s.id = r->breaks.at[index].id;
        s.entry = REPLAY_NONE;
        return s;
    }
    const struct replay_compile *c = &r->compiles.at[index];
    s = (struct replay_subject){c->id, c->start_ns, c->code, c->thread, REPLAY_NONE, c->entry};
    if (c->thread != REPLAY_NONE)
        s.process = r->threads.at[c->thread].process;
    return s;
}

size_t replay_event_of(const struct replay *r, enum replay_kind kind, uint32_t index)
{
    struct replay_event wanted = {replay_about(r, kind, index).at_ns, index, kind};

    return sorted_count(r->events.count, i, replay_by_moment(&r->events.at[i], &wanted) < 0);
}

uint32_t replay_place(const struct replay *r, const struct replay_cache *cache, uint32_t entry)
{
    size_t place =
        sorted_count(cache->entry_count, i, replay_by_birth(&cache->entries[i], &entry, r->entries.at) < 0);

    return place < cache->entry_count && cache->entries[place] == entry ? (uint32_t)place : cache->entry_count;
}

/* ---- the state of a cache -------------------------------------------------- */

/* The place of the entry that lookup number RANK of CACHE hit; entry_count: it hit none. */
static uint32_t place_hit(const struct replay *r, const struct replay_cache *cache, uint32_t rank)
{
    const struct replay_lookup *l = &r->lookups.at[cache->lookups[rank]];

    return l->outcome == OUTCOME_HIT && l->entry != REPLAY_NONE ? replay_place(r, cache, l->entry) : cache->entry_count;
}

/* The hits of cache INDEX by entry, found when they are first wanted. */
static const struct replay_hits *hits_of(const struct replay *r, uint32_t index)
{
    const struct replay_cache *cache = &r->caches.at[index];
    struct replay_hits *hits = &r->hits[index];
    uint32_t *next;

    if (hits->from)
        return hits;
    hits->ranks = malloc((cache->count + 1) * sizeof *hits->ranks);
    hits->from = next = calloc(cache->entry_count + 3, sizeof *next);
    for (uint32_t i = 0; i < cache->count; i++)
        next[place_hit(r, cache, i) + 2]++;
    for (uint32_t i = 2; i < cache->entry_count + 2; i++)
        next[i] += next[i - 1];
    for (uint32_t i = 0; i < cache->count; i++)
        hits->ranks[next[place_hit(r, cache, i) + 1]++] = i;
    return hits;
}

/* Add to SLOTS, the first COUNT entries of cache OF, what cache INDEX had hit before its lookup number RANK. OF is that
 * cache, or one that a fork made from it. */
static void hits_add(const struct replay *r, uint32_t index, uint32_t rank, const struct replay_cache *of,
                     struct replay_slot *slots, uint32_t count)
{
    const struct replay_cache *cache = &r->caches.at[index];
    const struct replay_hits *hits = hits_of(r, index);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = cache == of ? i : replay_place(r, cache, of->entries[i]), before;
        const uint32_t *ranks;
        if (place == cache->entry_count)
            continue;
        ranks = hits->ranks + hits->from[place];
        before = (uint32_t)sorted_count(hits->from[place + 1] - hits->from[place], k, ranks[k] < rank);
        slots[i].hits += before;
        if (before && slots[i].last_hit_ns < 0)
            slots[i].last_hit_ns = r->lookups.at[cache->lookups[ranks[before - 1]]].start_ns;
    }
}

/* When a slot was last touched: by its birth, a hit that moved it, its death. */
static int64_t touched(const struct replay_entry *e, const struct replay_slot *slot)
{
    return slot->dead ? e->died_ns : slot->last_hit_ns > e->born_ns && !e->pinned ? slot->last_hit_ns : e->born_ns;
}

static int by_touch(const void *a, const void *b, void *entries)
{
    const struct replay_slot *s = a, *t = b;
    int64_t x = touched((struct replay_entry *)entries + s->entry, s),
            y = touched((struct replay_entry *)entries + t->entry, t);

    return x != y ? (x > y) - (x < y) : replay_by_birth(&s->entry, &t->entry, entries);
}

/* STATE's slots, by birth, into the order in which they are tried: the cache did with each what touched it last. */
static void state_order(const struct replay *r, const struct replay_cache *cache, struct replay_state *state)
{
    bool insertion = cache->process != REPLAY_NONE && r->processes.at[cache->process].insertion;
    struct cache_order order = {.policy = insertion ? ORDER_FIFO : ORDER_MRU};
    struct replay_slot *slots = malloc(state->count * sizeof *slots);
    size_t at = 0;

    if (!insertion)
        qsort_r(state->at, state->count, sizeof *state->at, by_touch, r->entries.at);
    memcpy(slots, state->at, state->count * sizeof *slots);
    for (size_t i = 0; i < state->count; i++)
        if (!slots[i].dead)
            cache_order_born(&order, (struct cached){.id = (uint32_t)i}, r->entries.at[slots[i].entry].pinned);
    for (; at < order.count; at++)
        state->at[at] = slots[order.at[at].id];
    for (size_t i = 0; i < state->count; i++)
        if (slots[i].dead)
            state->at[at++] = slots[i];
    free(slots);
    cache_order_free(&order);
}

/* Cache INDEX before its lookup number RANK. Births and deaths before END_NS have happened. */
static void state_make(const struct replay *r, uint32_t index, uint32_t rank, int64_t end_ns, struct replay_state *state)
{
    const struct replay_cache *cache = &r->caches.at[index], *heir = cache;

    state->count = 0;
    for (uint32_t i = 0; i < cache->entry_count && r->entries.at[cache->entries[i]].born_ns < end_ns; i++)
        *list_add(state) = (struct replay_slot){
            .entry = cache->entries[i], .dead = r->entries.at[cache->entries[i]].died_ns < end_ns, .last_hit_ns = -1};
    if (!state->count)
        return;
    hits_add(r, index, rank, cache, state->at, (uint32_t)state->count);
    for (int depth = 0; heir->parent != REPLAY_NONE && depth < FORKS_MAX; depth++) { /* as it was at the fork */
        const struct replay_cache *parent = &r->caches.at[heir->parent];
        int64_t fork_ns = r->processes.at[heir->process].start_ns;
        size_t before = sorted_count(parent->count, i, r->lookups.at[parent->lookups[i]].start_ns < fork_ns);
        hits_add(r, heir->parent, (uint32_t)before, cache, state->at, (uint32_t)state->count);
        heir = parent;
    }
    state_order(r, cache, state);
}

void replay_state_at(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct replay_lookup *l = &r->lookups.at[lookup];

    state_make(r, l->cache, r->ranks[lookup], l->start_ns, state);
}

void replay_state_when(const struct replay *r, uint32_t cache, int64_t at_ns, struct replay_state *state)
{
    const struct replay_cache *c = &r->caches.at[cache];
    size_t rank = sorted_count(c->count, i, r->lookups.at[c->lookups[i]].start_ns <= at_ns);

    state_make(r, cache, (uint32_t)rank, at_ns + 1, state);
}
