/* trace/replay/cache_order.h -- the order in which a lookup tries a cache's entries.
 *
 * The evaluator's own rule is look_up() in tracer/evaluator/decide.c; this file is the only other
 * place that knows the rule. The state of a cache (replay.c), --verify and what-if use this file.
 *
 *     struct cache_order cache = {.policy = ORDER_MRU};
 *     cache_order_add(&cache, (struct cached){.id = entry, .region = -1}, false);
 *     struct cache_walk walk = cache_walk(&cache, region, -1);
 *     while ((tried = cache_walk_next(&walk)))       until an entry fits
 *         ...
 *     cache_order_move_hit_entry(&cache, place_of_tried);
 *     cache_order_free(&cache);
 *
 * The list holds only the living entries, in two parts:
 *
 *     [precompiled entries, oldest first] [other entries: a birth or a hit moves an entry here to
 *                                          the front of this part]
 *
 * A lookup tries the precompiled entries of its own and of the common region, then the other
 * entries of its own region, then the other entries of the common region. It passes over entries of
 * other backends, which keep their places. A forked process begins with a copy of the list. */
#ifndef DYNTRACE_CACHE_ORDER_H
#define DYNTRACE_CACHE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum order_policy {
    ORDER_MRU,  /* the evaluator's order: a birth or a hit moves an entry to the front */
    ORDER_FIFO, /* oldest first, and hits move nothing: a setting of torch */
};

struct cached {
    uint32_t id; /* the number by which the caller knows the entry */
    /* for a what-if: it is not certain that the entry exists, because the simulation guessed */
    bool unsure;
    /* for a what-if: the simulation expects that the entry does not exist, but it does if a
     * guess was wrong */
    bool ghost;
    /* for a what-if: the entry exists only if compiles that the trace does not
     * have produced code */
    bool trusted;
    int64_t region; /* region of the entry; -1 is the common region */
};

struct cache_order {
    struct cached *at; /* owned */
    size_t count, room;
    size_t pinned; /* number of precompiled entries, which are at the front */
    enum order_policy policy;
};

/* Add the new ENTRY to ORDER. PINNED: the entry is precompiled. */
void cache_order_add(struct cache_order *order, struct cached entry, bool pinned);
/* The entry at the position PLACE was hit: move it to the front. cache_order_remove():
 * the entry died. */
void cache_order_move_hit_entry(struct cache_order *order, size_t place);
void cache_order_remove(struct cache_order *order, size_t place);
/* Return the position of the entry with this ID, or order->count if there is none. */
size_t cache_order_find(const struct cache_order *order, uint32_t id);
/* Make ORDER, which is empty, a copy of PARENT. */
void cache_order_copy_from_parent(struct cache_order *order, const struct cache_order *parent);
void cache_order_free(struct cache_order *order);

/* The state of a loop over the entries that a lookup sees, in the order in which it tries them.
 * `own` is the lookup's region. `common` is the region whose entries all lookups see (-1), or
 * equals `own` if no entry is common. */
struct cache_walk {
    const struct cache_order *order; /* borrowed; it must not change during the walk */
    int64_t own, common;
    int pass;
    size_t at;
};

static inline struct cache_walk cache_walk(const struct cache_order *order, int64_t own,
                                           int64_t common)
{
    return (struct cache_walk){.order = order, .own = own, .common = common};
}

/* Return the next entry of the walk, which is borrowed, or NULL at the end. */
const struct cached *cache_walk_next(struct cache_walk *walk);

#endif
