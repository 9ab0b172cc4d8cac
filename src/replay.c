/* replay.c -- finding a place among the decisions of a trace, and a cache as it stood there. See replay.h.
 *
 * Runs in: the viewer. */
#include "replay.h"

#include "trace/replay/cache_order.h"

enum {
    MARK_EVERY = 256, /* lookups of a cache between two checkpoints, at least */
    FORKS_MAX = 64,   /* generations of processes that hand a cache on */
};

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

    for (const char *at = ids; codes && at && *at; at = end + strspn(end, ", ")) {
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
    uint32_t compile = kind == REPLAY_COMPILE ? index : REPLAY_NONE;

    if (kind == REPLAY_LOOKUP) {
        const struct replay_lookup *l = &r->lookups.at[index];
        const struct replay_cache *cache = &r->caches.at[l->cache];
        return (struct replay_subject){l->id, l->start_ns, cache->code, l->thread, cache->process, l->entry};
    }
    if (kind == REPLAY_DEATH) {
        const struct replay_entry *e = &r->entries.at[index];
        return (struct replay_subject){e->id, e->died_ns, e->code, REPLAY_NONE, e->process, index};
    }
    if (kind == REPLAY_BREAK)
        compile = r->breaks.at[index].compile;
    if (compile != REPLAY_NONE) {
        const struct replay_compile *c = &r->compiles.at[compile];
        s = (struct replay_subject){c->id, c->start_ns, c->code, c->thread, REPLAY_NONE, c->entry};
        if (c->thread != REPLAY_NONE)
            s.process = r->threads.at[c->thread].process;
    }
    if (kind == REPLAY_BREAK)
        s.id = r->breaks.at[index].id, s.entry = REPLAY_NONE;
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

/* A checkpoint of a cache: for each entry its hits so far, and the rank of the last of them + 1. They are made
 * when a state of that cache is first wanted, as many lookups apart as keep them smaller than the lookups are. */
static uint32_t mark_every(const struct replay_cache *cache)
{
    return MARK_EVERY > cache->entry_count ? MARK_EVERY : cache->entry_count;
}

/* The place of the entry that lookup number RANK of CACHE hit; entry_count: it hit none. */
static uint32_t place_hit(const struct replay *r, const struct replay_cache *cache, uint32_t rank)
{
    const struct replay_lookup *l = &r->lookups.at[cache->lookups[rank]];

    return l->outcome == OUTCOME_HIT && l->entry != REPLAY_NONE ? replay_place(r, cache, l->entry) : cache->entry_count;
}

static bool marks_make(const struct replay *r, uint32_t index)
{
    const struct replay_cache *cache = &r->caches.at[index];
    uint32_t every = mark_every(cache), width = cache->entry_count * 2;
    uint32_t *now, *marks;
    size_t count = cache->count / every + 1;

    if (r->marks[index])
        return true;
    marks = malloc((count * width + 1) * sizeof *marks);
    now = calloc(width + 1, sizeof *now);
    for (uint32_t i = 0; marks && now && i <= cache->count; i++) {
        uint32_t place = i < cache->count ? place_hit(r, cache, i) : cache->entry_count;
        if (i % every == 0)
            memcpy(marks + (size_t)(i / every) * width, now, width * sizeof *now);
        if (place < cache->entry_count) {
            now[place * 2]++;
            now[place * 2 + 1] = i + 1;
        }
    }
    if (!now) {
        free(marks);
        marks = NULL;
    }
    free(now);
    r->marks[index] = marks;
    return marks;
}

/* Cache INDEX before its lookup number RANK: into SLOTS, one for each of the first COUNT entries by birth. */
static bool state_fill(const struct replay *r, uint32_t index, uint32_t rank, struct replay_slot *slots, uint32_t count,
                       int depth)
{
    const struct replay_cache *cache = &r->caches.at[index];
    uint32_t every = mark_every(cache);
    const uint32_t *mark;

    if (cache->parent != REPLAY_NONE && depth < FORKS_MAX) { /* as it was at the fork */
        const struct replay_cache *parent = &r->caches.at[cache->parent];
        int64_t fork_ns = r->processes.at[cache->process].start_ns;
        struct replay_slot *theirs = calloc(parent->entry_count + 1, sizeof *theirs);
        size_t before = sorted_count(parent->count, i, r->lookups.at[parent->lookups[i]].start_ns < fork_ns);
        if (!theirs || !state_fill(r, cache->parent, (uint32_t)before, theirs, parent->entry_count, depth + 1)) {
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
    mark = r->marks[index] + (size_t)(rank / every) * cache->entry_count * 2;
    for (uint32_t i = 0; i < count; i++) {
        slots[i].hits += mark[i * 2];
        if (mark[i * 2 + 1])
            slots[i].last_hit_ns = r->lookups.at[cache->lookups[mark[i * 2 + 1] - 1]].start_ns;
    }
    for (uint32_t i = rank / every * every; i < rank; i++) {
        uint32_t place = place_hit(r, cache, i);
        if (place < count) {
            slots[place].hits++;
            slots[place].last_hit_ns = r->lookups.at[cache->lookups[i]].start_ns;
        }
    }
    return true;
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
static bool state_order(const struct replay *r, const struct replay_cache *cache, struct replay_state *state)
{
    bool insertion = cache->process != REPLAY_NONE && r->processes.at[cache->process].insertion, ok = true;
    struct cache_order order = {.policy = insertion ? ORDER_FIFO : ORDER_MRU};
    struct replay_slot *sorted = malloc((state->count + 1) * sizeof *sorted);
    size_t at = 0;

    if (!sorted)
        return false;
    if (!insertion)
        qsort_r(state->at, state->count, sizeof *state->at, by_touch, r->entries.at);
    for (size_t i = 0; i < state->count && ok; i++)
        if (!state->at[i].dead)
            ok = cache_order_born(&order, (struct cached){.id = (uint32_t)i}, r->entries.at[state->at[i].entry].pinned);
    for (; ok && at < order.count; at++)
        sorted[at] = state->at[order.at[at].id];
    for (size_t i = 0; ok && i < state->count; i++)
        if (state->at[i].dead)
            sorted[at++] = state->at[i];
    if (ok)
        memcpy(state->at, sorted, at * sizeof *sorted);
    free(sorted);
    cache_order_free(&order);
    return ok;
}

static bool state_make(const struct replay *r, uint32_t index, uint32_t rank, int64_t at_ns, bool included,
                       struct replay_state *state)
{
    const struct replay_cache *cache = &r->caches.at[index];
    int64_t end_ns = at_ns + included; /* births and deaths before that have happened */

    state->count = 0;
    for (uint32_t i = 0; i < cache->entry_count && r->entries.at[cache->entries[i]].born_ns < end_ns; i++) {
        struct replay_slot *slot = list_add(state);
        if (!slot)
            return false;
        *slot = (struct replay_slot){
            .entry = cache->entries[i], .dead = r->entries.at[cache->entries[i]].died_ns < end_ns, .last_hit_ns = -1};
    }
    return !state->count ||
           (state_fill(r, index, rank, state->at, (uint32_t)state->count, 0) && state_order(r, cache, state));
}

bool replay_state_at(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct replay_lookup *l = &r->lookups.at[lookup];

    return state_make(r, l->cache, r->ranks[lookup], l->start_ns, false, state);
}

bool replay_state_when(const struct replay *r, uint32_t cache, int64_t at_ns, struct replay_state *state)
{
    const struct replay_cache *c = &r->caches.at[cache];
    size_t rank = sorted_count(c->count, i, r->lookups.at[c->lookups[i]].start_ns <= at_ns);

    return state_make(r, cache, (uint32_t)rank, at_ns, true, state);
}
