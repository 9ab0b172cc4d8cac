/* replay.c -- finds an event among the recorded decisions, and a cache's state at that event. See
 * replay.h. */
#include "replay.h"

enum { FORKS_MAX = 64 /* longest chain of forks that is followed */ };

int replay_compare_births(const void *a, const void *b, void *context)
{
    const struct replay_entry *entries = context;
    const struct replay_entry *x = &entries[*(const uint32_t *)a];
    const struct replay_entry *y = &entries[*(const uint32_t *)b];

    if (x->code != y->code)
        return list_compare_numbers(x->code, y->code);
    if (x->born_ns != y->born_ns)
        return list_compare_numbers(x->born_ns, y->born_ns);
    return (x > y) - (x < y);
}

int replay_compare_times(const void *a, const void *b, void *context)
{
    const struct replay_lookup *lookups = context;
    const struct replay_lookup *x = &lookups[*(const uint32_t *)a];
    const struct replay_lookup *y = &lookups[*(const uint32_t *)b];

    if (x->start_ns != y->start_ns)
        return list_compare_numbers(x->start_ns, y->start_ns);
    return (x > y) - (x < y);
}

int replay_compare_moments(const void *a, const void *b)
{
    const struct replay_event *x = a;
    const struct replay_event *y = b;

    if (x->at_ns != y->at_ns)
        return list_compare_numbers(x->at_ns, y->at_ns);
    if (x->kind != y->kind)
        return list_compare_numbers(x->kind, y->kind);
    return list_compare_numbers(x->index, y->index);
}

/* ---- finding a place ----------------------------------------------------- */

bool *replay_mark_codes(const struct replay *r, const char *ids)
{
    bool *codes = calloc(r->codes.count + 1, sizeof *codes);
    char *end;

    for (const char *at = ids; at && *at; at = end + strspn(end, ", ")) {
        uint32_t code = replay_index_of_id(&r->code_ids, strtoll(at, &end, 10));
        if (end == at)
            break;
        if (code != REPLAY_NONE)
            codes[code] = true;
    }
    return codes;
}

uint32_t replay_find_lookup(const struct replay *r, int64_t lookup_id)
{
    const struct replay_lookup *found = list_find(&r->lookups, id, lookup_id);

    return found ? (uint32_t)(found - r->lookups.at) : REPLAY_NONE;
}

size_t replay_find_event_at_time(const struct replay *r, int64_t at_ns)
{
    return sorted_count(r->events.count, i, r->events.at[i].at_ns < at_ns);
}

/* Return a subject with the row id ID, in which everything else is unknown. */
static struct replay_subject make_subject(int64_t id)
{
    return (struct replay_subject){
        .id = id,
        .code = REPLAY_NONE,
        .thread = REPLAY_NONE,
        .process = REPLAY_NONE,
        .entry = REPLAY_NONE,
    };
}

static struct replay_subject subject_of_lookup(const struct replay *r, uint32_t index)
{
    const struct replay_lookup *l = &r->lookups.at[index];
    const struct replay_cache *cache = &r->caches.at[l->cache];

    return (struct replay_subject){
        .id = l->id,
        .at_ns = l->start_ns,
        .code = cache->code,
        .thread = l->thread,
        .process = cache->process,
        .entry = l->entry,
    };
}

static struct replay_subject subject_of_death(const struct replay *r, uint32_t index)
{
    const struct replay_entry *e = &r->entries.at[index];
    struct replay_subject s = make_subject(e->id);

    s.at_ns = e->died_ns;
    s.code = e->code;
    s.process = e->process;
    s.entry = index;
    return s;
}

static struct replay_subject subject_of_compile(const struct replay *r, uint32_t index)
{
    const struct replay_compile *c = &r->compiles.at[index];
    struct replay_subject s = make_subject(c->id);

    s.at_ns = c->start_ns;
    s.code = c->code;
    s.thread = c->thread;
    s.entry = c->entry;
    if (c->thread != REPLAY_NONE)
        s.process = r->threads.at[c->thread].process;
    return s;
}

/* Return the subject of a graph break. Time, thread and code object are those of its compile. */
static struct replay_subject subject_of_break(const struct replay *r, uint32_t index)
{
    const struct replay_break *b = &r->breaks.at[index];
    struct replay_subject s = make_subject(b->id);

    if (b->compile != REPLAY_NONE)
        s = subject_of_compile(r, b->compile);
    s.id = b->id;
    s.entry = REPLAY_NONE;
    return s;
}

struct replay_subject replay_subject_of_event(const struct replay *r, enum replay_kind kind,
                                              uint32_t index)
{
    switch (kind) {
    case REPLAY_LOOKUP:
        return subject_of_lookup(r, index);
    case REPLAY_DEATH:
        return subject_of_death(r, index);
    case REPLAY_BREAK:
        return subject_of_break(r, index);
    default:
        return subject_of_compile(r, index);
    }
}

size_t replay_find_event(const struct replay *r, enum replay_kind kind, uint32_t index)
{
    struct replay_event wanted = {
        .at_ns = replay_subject_of_event(r, kind, index).at_ns,
        .index = index,
        .kind = kind,
    };

    return sorted_count(r->events.count, i, replay_compare_moments(&r->events.at[i], &wanted) < 0);
}

uint32_t replay_position_of_entry(const struct replay *r, const struct replay_cache *cache,
                                  uint32_t entry)
{
    const struct replay_entry *entries = r->entries.at;
    uint32_t count = cache->entry_count;
    size_t place = sorted_count(
        count, i, replay_compare_births(&cache->entries[i], &entry, (void *)entries) < 0);

    if (place == count || cache->entries[place] != entry)
        return count;
    return (uint32_t)place;
}

/* ---- the state of a cache ------------------------------------------------ */

/* Return the next entry that was born in LIVE's cache before NOW, or NULL. */
static const struct replay_entry *next_entry_born(const struct replay_live *live, int64_t now)
{
    const struct replay_cache *cache = live->cache;
    const struct replay_entry *e;

    if (live->born == cache->entry_count)
        return NULL;
    e = &live->r->entries.at[cache->entries[live->born]];
    return e->born_ns < now ? e : NULL;
}

static const struct replay_entry *next_entry_died(const struct replay_live *live, int64_t now)
{
    const struct replay_cache *cache = live->cache;
    const struct replay_entry *e;

    if (live->died == cache->entry_count)
        return NULL;
    e = &live->r->entries.at[cache->deaths[live->died]];
    return e->died_ns < now ? e : NULL;
}

void replay_live_advance_to(struct replay_live *live, int64_t now)
{
    const struct replay_cache *cache = live->cache;

    for (;;) {
        const struct replay_entry *birth = next_entry_born(live, now);
        const struct replay_entry *death = next_entry_died(live, now);
        bool dies_first = birth && death && death->died_ns < birth->born_ns;
        if (birth && !dies_first) {
            struct cached made = {.id = cache->entries[live->born], .region = birth->region};
            live->born++;
            cache_order_add(&live->order, made, birth->pinned);
        } else if (death) {
            size_t place = cache_order_find(&live->order, cache->deaths[live->died]);
            live->died++;
            if (place < live->order.count && !death->shared)
                cache_order_remove(&live->order, place);
        } else {
            return;
        }
    }
}

void replay_live_move_hit(struct replay_live *live, uint32_t entry)
{
    size_t place = cache_order_find(&live->order, entry);

    if (place < live->order.count)
        cache_order_move_hit_entry(&live->order, place);
}

/* Apply the first RANK lookups of cache INDEX to LIVE. Before them, apply the lookups of the caches
 * from which this cache was forked. SLOTS has an item for each entry, in which the hits are
 * counted. */
static void apply_lookups(struct replay_live *live, uint32_t index, size_t rank,
                          struct replay_slot *slots, int generation)
{
    const struct replay *r = live->r;
    const struct replay_cache *cache = &r->caches.at[index];

    if (cache->parent != REPLAY_NONE && generation < FORKS_MAX) {
        const struct replay_cache *parent = &r->caches.at[cache->parent];
        int64_t fork_ns = r->processes.at[cache->process].start_ns;
        size_t before =
            sorted_count(parent->count, i, r->lookups.at[parent->lookups[i]].start_ns < fork_ns);
        apply_lookups(live, cache->parent, before, slots, generation + 1);
    }
    for (size_t i = 0; i < rank; i++) {
        const struct replay_lookup *l = &r->lookups.at[cache->lookups[i]];
        uint32_t place;
        if (l->outcome != OUTCOME_HIT || l->entry == REPLAY_NONE)
            continue;
        place = replay_position_of_entry(r, live->cache, l->entry);
        if (place == live->cache->entry_count)
            continue;
        replay_live_advance_to(live, l->start_ns);
        replay_live_move_hit(live, l->entry);
        slots[place].hits++;
        slots[place].last_hit_ns = l->start_ns;
    }
}

/* Return a new array with a slot for each entry of CACHE as it stood at END_NS. The caller frees
 * it. */
static struct replay_slot *make_cache_slots(const struct replay *r,
                                            const struct replay_cache *cache, int64_t end_ns)
{
    struct replay_slot *slots = malloc((cache->entry_count + 1) * sizeof *slots);

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        uint32_t entry = cache->entries[i];
        slots[i] = (struct replay_slot){
            .entry = entry,
            .dead = r->entries.at[entry].died_ns < end_ns,
            .last_hit_ns = -1,
        };
    }
    return slots;
}

/* Store in STATE cache INDEX as it stood before its lookup number RANK. Births and deaths before
 * END_NS have happened. */
static void make_cache_state(const struct replay *r, uint32_t index, size_t rank, int64_t end_ns,
                             struct replay_state *state)
{
    const struct replay_cache *cache = &r->caches.at[index];
    bool insertion = cache->process != REPLAY_NONE && r->processes.at[cache->process].insertion;
    struct replay_live live = {
        .r = r,
        .cache = cache,
        .order.policy = insertion ? ORDER_FIFO : ORDER_MRU,
    };
    struct replay_slot *slots = make_cache_slots(r, cache, end_ns);

    apply_lookups(&live, index, rank, slots, 0);
    replay_live_advance_to(&live, end_ns);
    state->count = 0;
    list_each(cached, &live.order) {
        bool dead = r->entries.at[cached->id].died_ns < end_ns;
        if (!dead)
            *list_add(state) = slots[replay_position_of_entry(r, cache, cached->id)];
    }
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        uint32_t entry = cache->deaths[i];
        const struct replay_entry *e = &r->entries.at[entry];
        if (e->died_ns < end_ns && e->born_ns < end_ns)
            *list_add(state) = slots[replay_position_of_entry(r, cache, entry)];
    }
    free(slots);
    cache_order_free(&live.order);
}

void replay_get_state_at_lookup(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct replay_lookup *l = &r->lookups.at[lookup];
    const struct replay_cache *c = &r->caches.at[l->cache];
    size_t rank =
        sorted_count(c->count, i, replay_compare_times(&c->lookups[i], &lookup, r->lookups.at) < 0);

    make_cache_state(r, l->cache, rank, l->start_ns, state);
}

void replay_get_state_at_time(const struct replay *r, uint32_t cache, int64_t at_ns,
                              struct replay_state *state)
{
    const struct replay_cache *c = &r->caches.at[cache];
    size_t rank = sorted_count(c->count, i, r->lookups.at[c->lookups[i]].start_ns <= at_ns);

    make_cache_state(r, cache, rank, at_ns + 1, state);
}
