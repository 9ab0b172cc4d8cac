/* replay.c -- finding a place among the decisions of a trace, and a cache as it stood there. See replay.h.
 *
 * Runs in: the viewer. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "trace/remedy.h"
#include "trace/replay/load.h"

enum {
    MARK_EVERY = 256, /* lookups of a cache between two checkpoints, at least */
    FORKS_MAX = 64,   /* generations of processes that hand a cache on */
};

/* ---- row id -> index ------------------------------------------------------- */

static size_t slot_of(const struct replay_map *map, int64_t key)
{
    size_t at = replay_hash((uint64_t)key) & (map->room - 1);

    while (map->values[at] != REPLAY_NONE && map->keys[at] != key)
        at = (at + 1) & (map->room - 1);
    return at;
}

uint32_t replay_map_get(const struct replay_map *map, int64_t key)
{
    if (!map->gaps)
        return (uint64_t)key - (uint64_t)map->first < map->count ? (uint32_t)((uint64_t)key - (uint64_t)map->first)
                                                                 : REPLAY_NONE;
    return map->values[slot_of(map, key)];
}

static bool map_room(struct replay_map *map)
{
    struct replay_map more = {.room = map->room ? map->room * 2 : 64, .first = map->first, .gaps = map->gaps};

    if (map->count * 2 < map->room)
        return true;
    more.keys = malloc(more.room * sizeof *more.keys);
    more.values = malloc(more.room * sizeof *more.values);
    if (!more.keys || !more.values) {
        free(more.keys);
        free(more.values);
        return false;
    }
    memset(more.values, 0xff, more.room * sizeof *more.values);
    for (size_t i = 0; i < map->room; i++)
        if (map->values[i] != REPLAY_NONE) {
            size_t at = slot_of(&more, map->keys[i]);
            more.keys[at] = map->keys[i];
            more.values[at] = map->values[i];
        }
    more.count = map->count;
    free(map->keys);
    free(map->values);
    *map = more;
    return true;
}

/* The first of two with one key stays. */
bool replay_map_put(struct replay_map *map, int64_t key, uint32_t value)
{
    size_t at;

    if (!map_room(map))
        return false;
    at = slot_of(map, key);
    if (map->values[at] == REPLAY_NONE) {
        if (!map->count)
            map->first = key;
        map->gaps = map->gaps || value != map->count || (uint64_t)key - (uint64_t)map->first != value;
        map->keys[at] = key;
        map->values[at] = value;
        map->count++;
    }
    return true;
}

void replay_map_free(struct replay_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (struct replay_map){0};
}

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

uint32_t replay_lookup_at(const struct replay *r, int64_t lookup_id)
{
    size_t low = 0, high = r->lookup_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->lookups[middle].id < lookup_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->lookup_count && r->lookups[low].id == lookup_id ? (uint32_t)low : REPLAY_NONE;
}

size_t replay_seek(const struct replay *r, int64_t at_ns)
{
    size_t low = 0, high = r->event_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->events[middle].at_ns < at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t replay_event_of(const struct replay *r, enum replay_kind kind, uint32_t index)
{
    int64_t at_ns = kind == REPLAY_LOOKUP                     ? r->lookups[index].start_ns
                    : kind == REPLAY_COMPILE                  ? r->compiles[index].start_ns
                    : kind == REPLAY_DEATH                    ? r->entries[index].died_ns
                    : r->breaks[index].compile == REPLAY_NONE ? 0
                                                              : r->compiles[r->breaks[index].compile].start_ns;
    struct replay_event wanted = {at_ns, index, kind};
    size_t low = 0, high = r->event_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (replay_by_moment(&r->events[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- the state of a cache -------------------------------------------------- */

uint32_t replay_place(const struct replay *r, const struct replay_cache *cache, uint32_t entry)
{
    uint32_t low = 0, high = cache->entry_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (replay_by_birth(&cache->entries[middle], &entry, r->entries) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < cache->entry_count && cache->entries[low] == entry ? low : cache->entry_count;
}

/* A checkpoint of a cache: for each entry its hits so far, and the rank of the last of them + 1. They are made
 * when a state of that cache is first wanted, as many lookups apart as keep them smaller than the lookups are. */
static uint32_t mark_every(const struct replay_cache *cache)
{
    return MARK_EVERY > cache->entry_count ? MARK_EVERY : cache->entry_count;
}

static bool marks_make(const struct replay *r, uint32_t index)
{
    const struct replay_cache *cache = &r->caches[index];
    uint32_t every = mark_every(cache), width = cache->entry_count * 2;
    uint32_t *now, *marks;
    size_t count = cache->count / every + 1;

    if (r->marks[index])
        return true;
    marks = malloc((count * width + 1) * sizeof *marks);
    now = calloc(width + 1, sizeof *now);
    if (!marks || !now) {
        free(marks);
        free(now);
        return false;
    }
    for (uint32_t i = 0; i <= cache->count; i++) {
        const struct replay_lookup *l = i < cache->count ? &r->lookups[cache->lookups[i]] : NULL;
        if (i % every == 0)
            memcpy(marks + (size_t)(i / every) * width, now, width * sizeof *now);
        if (l && l->outcome == OUTCOME_HIT && l->entry != REPLAY_NONE) {
            uint32_t place = replay_place(r, cache, l->entry);
            if (place < cache->entry_count) {
                now[place * 2]++;
                now[place * 2 + 1] = i + 1;
            }
        }
    }
    free(now);
    r->marks[index] = marks;
    return true;
}

static int by_turn(const void *a, const void *b)
{
    const struct replay_slot *x = a, *y = b;

    if (x->dead != y->dead)
        return x->dead ? 1 : -1;
    if (x->touched != y->touched)
        return x->touched > y->touched ? -1 : 1;
    return (x->entry < y->entry) - (x->entry > y->entry);
}

static bool state_add(struct replay_state *state, uint32_t entry)
{
    if (state->count == state->room) {
        size_t room = state->room ? state->room * 2 : 16;
        struct replay_slot *more = realloc(state->slots, room * sizeof *more);
        if (!more)
            return false;
        state->slots = more;
        state->room = room;
    }
    state->slots[state->count++] = (struct replay_slot){.entry = entry, .last_hit_ns = -1};
    return true;
}

/* Cache INDEX before its lookup number RANK, at AT_NS: into SLOTS, one for each of the first COUNT entries by birth. */
static bool state_fill(const struct replay *r, uint32_t index, uint32_t rank, struct replay_slot *slots, uint32_t count,
                       int depth)
{
    const struct replay_cache *cache = &r->caches[index];
    uint32_t every = mark_every(cache), width = cache->entry_count * 2, from = rank / every * every;
    const uint32_t *mark;

    if (cache->parent != REPLAY_NONE && depth < FORKS_MAX) { /* as it was at the fork */
        const struct replay_cache *parent = &r->caches[cache->parent];
        int64_t fork_ns = r->processes[cache->process].start_ns;
        struct replay_slot *theirs = calloc(parent->entry_count + 1, sizeof *theirs);
        uint32_t low = 0, high = parent->count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (r->lookups[parent->lookups[middle]].start_ns < fork_ns)
                low = middle + 1;
            else
                high = middle;
        }
        if (!theirs || !state_fill(r, cache->parent, low, theirs, parent->entry_count, depth + 1)) {
            free(theirs);
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t place = replay_place(r, parent, cache->entries[i]);
            if (place < parent->entry_count && theirs[place].hits) {
                slots[i].hits = theirs[place].hits;
                slots[i].last_hit_ns = theirs[place].last_hit_ns;
            }
        }
        free(theirs);
    }
    if (!marks_make(r, index))
        return false;
    mark = r->marks[index] + (size_t)(rank / every) * width;
    for (uint32_t i = 0; i < count; i++) {
        slots[i].hits += mark[i * 2];
        if (mark[i * 2 + 1])
            slots[i].last_hit_ns = r->lookups[cache->lookups[mark[i * 2 + 1] - 1]].start_ns;
    }
    for (uint32_t i = from; i < rank; i++) {
        const struct replay_lookup *l = &r->lookups[cache->lookups[i]];
        uint32_t place;
        if (l->outcome != OUTCOME_HIT || l->entry == REPLAY_NONE)
            continue;
        place = replay_place(r, cache, l->entry);
        if (place < count) {
            slots[place].hits++;
            slots[place].last_hit_ns = l->start_ns;
        }
    }
    return true;
}

static bool state_make(const struct replay *r, uint32_t index, uint32_t rank, int64_t at_ns, bool included,
                       struct replay_state *state)
{
    const struct replay_cache *cache = &r->caches[index];
    bool insertion = cache->process != REPLAY_NONE && r->processes[cache->process].insertion;

    state->count = 0;
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        int64_t born = r->entries[cache->entries[i]].born_ns;
        if (born > at_ns || (born == at_ns && !included))
            break;
        if (!state_add(state, cache->entries[i]))
            return false;
    }
    if (!state_fill(r, index, rank, state->slots, (uint32_t)state->count, 0))
        return false;
    for (size_t i = 0; i < state->count; i++) {
        struct replay_slot *slot = &state->slots[i];
        const struct replay_entry *e = &r->entries[slot->entry];
        slot->dead = e->died_ns < at_ns || (e->died_ns == at_ns && included);
        slot->touched = slot->dead                       ? -e->died_ns /* the last one to die is the last */
                        : e->pinned                      ? REPLAY_NEVER - e->born_ns /* in front, the oldest first */
                        : insertion                      ? -e->born_ns
                        : slot->last_hit_ns > e->born_ns ? slot->last_hit_ns
                                                         : e->born_ns;
    }
    if (state->count)
        qsort(state->slots, state->count, sizeof *state->slots, by_turn);
    return true;
}

bool replay_state_at(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct replay_lookup *l = &r->lookups[lookup];

    return state_make(r, l->cache, r->ranks[lookup], l->start_ns, false, state);
}

bool replay_state_when(const struct replay *r, uint32_t cache, int64_t at_ns, struct replay_state *state)
{
    const struct replay_cache *c = &r->caches[cache];
    uint32_t low = 0, high = c->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->lookups[c->lookups[middle]].start_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return state_make(r, cache, low, at_ns, true, state);
}

void replay_state_free(struct replay_state *state)
{
    free(state->slots);
    *state = (struct replay_state){0};
}
