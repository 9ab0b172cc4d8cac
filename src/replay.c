/* replay.c -- finds an event among the recorded decisions, and a cache's state at that event. See
 * replay.h. */
#include "replay.h"

enum { FORKS_MAX = 64 /* longest chain of forks that is followed */ };

int replay_by_birth(const void *a, const void *b, void *context)
{
    const struct replay_entry *entries = context, *x = &entries[*(const uint32_t *)a],
                              *y = &entries[*(const uint32_t *)b];

    return list_order(x->code, y->code) ?: list_order(x->born_ns, y->born_ns) ?: (x > y) - (x < y);
}

int replay_by_time(const void *a, const void *b, void *context)
{
    const struct replay_lookup *lookups = context, *x = &lookups[*(const uint32_t *)a],
                               *y = &lookups[*(const uint32_t *)b];

    return list_order(x->start_ns, y->start_ns) ?: (x > y) - (x < y);
}

int replay_by_moment(const void *a, const void *b)
{
    const struct replay_event *x = a, *y = b;

    int order = list_order(x->at_ns, y->at_ns);

    if (!order)
        order = list_order(x->kind, y->kind);
    return order ? order : list_order(x->index, y->index);
}

/* ---- finding a place ----------------------------------------------------- */

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
        return (struct replay_subject){l->id,     l->start_ns,    cache->code,
                                       l->thread, cache->process, l->entry};
    }
    if (kind == REPLAY_DEATH) {
        const struct replay_entry *e = &r->entries.at[index];
        return (struct replay_subject){e->id, e->died_ns, e->code, REPLAY_NONE, e->process, index};
    }
    if (kind == REPLAY_BREAK) { /* a break has its compile's time, code and thread */
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
    size_t place = sorted_count(cache->entry_count, i,
                                replay_by_birth(&cache->entries[i], &entry, r->entries.at) < 0);

    return place < cache->entry_count && cache->entries[place] == entry ? (uint32_t)place
                                                                        : cache->entry_count;
}

/* ---- the state of a cache ------------------------------------------------ */

void replay_live_until(struct replay_live *live, int64_t now)
{
    const struct replay_cache *cache = live->cache;
    const struct replay_entry *entries = live->r->entries.at;

    for (;;) {
        const struct replay_entry *birth = NULL, *death = NULL;
        if (live->born < cache->entry_count)
            birth = &entries[cache->entries[live->born]];
        if (live->died < cache->entry_count)
            death = &entries[cache->deaths[live->died]];
        bool born = birth && birth->born_ns < now, died = death && death->died_ns < now;
        if (!born && !died)
            return;
        if (born && (!died || birth->born_ns <= death->died_ns)) {
            struct cached made = {.id = cache->entries[live->born++], .region = birth->region};
            cache_order_born(&live->order, made, birth->pinned);
        } else {
            size_t place = cache_order_find(&live->order, cache->deaths[live->died++]);
            if (place < live->order.count && !death->shared)
                cache_order_died(&live->order, place);
        }
    }
}

void replay_live_hit(struct replay_live *live, uint32_t entry)
{
    size_t place = cache_order_find(&live->order, entry);

    if (place < live->order.count)
        cache_order_hit(&live->order, place);
}

/* Apply the first RANK lookups of cache INDEX to LIVE, after the lookups of the caches that this
 * cache was forked from. SLOTS has an item per entry, which gets the hits. */
static void play(struct replay_live *live, uint32_t index, size_t rank, struct replay_slot *slots,
                 int generation)
{
    const struct replay *r = live->r;
    const struct replay_cache *cache = &r->caches.at[index];

    if (cache->parent != REPLAY_NONE && generation < FORKS_MAX) {
        const struct replay_cache *parent = &r->caches.at[cache->parent];
        int64_t fork_ns = r->processes.at[cache->process].start_ns;
        size_t before =
            sorted_count(parent->count, i, r->lookups.at[parent->lookups[i]].start_ns < fork_ns);
        play(live, cache->parent, before, slots, generation + 1);
    }
    for (size_t i = 0; i < rank; i++) {
        const struct replay_lookup *l = &r->lookups.at[cache->lookups[i]];
        uint32_t place;
        if (l->outcome != OUTCOME_HIT || l->entry == REPLAY_NONE)
            continue;
        if ((place = replay_place(r, live->cache, l->entry)) == live->cache->entry_count)
            continue;
        replay_live_until(live, l->start_ns);
        replay_live_hit(live, l->entry);
        slots[place].hits++;
        slots[place].last_hit_ns = l->start_ns;
    }
}

/* Store in STATE cache INDEX as it stood before its lookup number RANK, with all births and deaths
 * before END_NS. */
static void state_make(const struct replay *r, uint32_t index, size_t rank, int64_t end_ns,
                       struct replay_state *state)
{
    const struct replay_cache *cache = &r->caches.at[index];
    bool insertion = cache->process != REPLAY_NONE && r->processes.at[cache->process].insertion;
    struct replay_live live = {
        .r = r, .cache = cache, .order.policy = insertion ? ORDER_FIFO : ORDER_MRU};
    struct replay_slot *slots = malloc((cache->entry_count + 1) * sizeof *slots);

    for (uint32_t i = 0; i < cache->entry_count; i++)
        slots[i] = (struct replay_slot){.entry = cache->entries[i],
                                        .dead = r->entries.at[cache->entries[i]].died_ns < end_ns,
                                        .last_hit_ns = -1};
    play(&live, index, rank, slots, 0);
    replay_live_until(&live, end_ns);
    state->count = 0;
    for (size_t i = 0; i < live.order.count; i++)
        if (r->entries.at[live.order.at[i].id].died_ns >= end_ns)
            *list_add(state) = slots[replay_place(r, cache, live.order.at[i].id)];
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const struct replay_entry *e = &r->entries.at[cache->deaths[i]];
        if (e->died_ns < end_ns && e->born_ns < end_ns)
            *list_add(state) = slots[replay_place(r, cache, cache->deaths[i])];
    }
    free(slots);
    cache_order_free(&live.order);
}

void replay_state_at(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct replay_lookup *l = &r->lookups.at[lookup];
    const struct replay_cache *c = &r->caches.at[l->cache];
    size_t rank =
        sorted_count(c->count, i, replay_by_time(&c->lookups[i], &lookup, r->lookups.at) < 0);

    state_make(r, l->cache, rank, l->start_ns, state);
}

void replay_state_when(const struct replay *r, uint32_t cache, int64_t at_ns,
                       struct replay_state *state)
{
    const struct replay_cache *c = &r->caches.at[cache];
    size_t rank = sorted_count(c->count, i, r->lookups.at[c->lookups[i]].start_ns <= at_ns);

    state_make(r, cache, rank, at_ns + 1, state);
}
