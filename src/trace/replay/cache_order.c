/* trace/replay/cache_order.c -- the order in which a lookup tries a cache's entries. See
 * trace/replay/cache_order.h. */
#include "trace/replay/cache_order.h"

#include "lib/list.h"

static void move_entry(struct cache_order *o, size_t from, size_t to)
{
    struct cached moved = o->at[from];

    if (from > to)
        memmove(o->at + to + 1, o->at + to, (from - to) * sizeof *o->at);
    else
        memmove(o->at + from, o->at + from + 1, (to - from) * sizeof *o->at);
    o->at[to] = moved;
}

void cache_order_add(struct cache_order *o, struct cached entry, bool pinned)
{
    *list_add(o) = entry;
    if (pinned)
        move_entry(o, o->count - 1, o->pinned++);
    else if (o->policy != ORDER_FIFO)
        move_entry(o, o->count - 1, o->pinned);
}

void cache_order_move_hit_entry(struct cache_order *o, size_t place)
{
    if (o->policy == ORDER_MRU && place > o->pinned)
        move_entry(o, place, o->pinned);
}

void cache_order_remove(struct cache_order *o, size_t place)
{
    move_entry(o, place, --o->count);
    o->pinned -= place < o->pinned;
}

size_t cache_order_find(const struct cache_order *o, uint32_t id)
{
    size_t place = 0;

    while (place < o->count && o->at[place].id != id)
        place++;
    return place;
}

void cache_order_copy_from_parent(struct cache_order *o, const struct cache_order *parent)
{
    o->pinned = parent->pinned;
    o->policy = parent->policy;
    for (size_t i = 0; i < parent->count; i++)
        *list_add(o) = parent->at[i];
}

void cache_order_free(struct cache_order *o)
{
    list_free(o);
    o->pinned = 0;
}

/* Does the current pass of the walk visit entries of REGION? Pass 0 visits precompiled
 * entries, pass 1 the other entries of the lookup's own region, pass 2 the other entries of
 * the common region. */
static bool visits_region(const struct cache_walk *w, int64_t region)
{
    switch (w->pass) {
    case 0:
        return region == w->own || region == w->common;
    case 1:
        return region == w->own;
    default:
        return region == w->common;
    }
}

const struct cached *cache_walk_next(struct cache_walk *w)
{
    const struct cache_order *o = w->order;

    for (; w->pass < 3; w->pass++) {
        size_t end = w->pass ? o->count : o->pinned;
        if (w->pass == 1 && w->own == w->common)
            continue;
        if (w->pass && w->at < o->pinned)
            w->at = o->pinned;
        for (; w->at < end; w->at++) {
            const struct cached *entry = &o->at[w->at];
            if (visits_region(w, entry->region)) {
                w->at++;
                return entry;
            }
        }
        w->at = 0;
    }
    return NULL;
}
