/* trace/replay/cache_order.h -- which entries of a cache a lookup sees, and in what order.
 *
 * The evaluator's own rule is look_up() in tracer/evaluator/decide.c; this is the only other place
 * that knows it. The state of a cache (replay.c), --verify and what-if all keep their caches here.
 *
 *     struct cache_order cache = {.policy = ORDER_MRU};
 *     cache_order_born(&cache, &(struct cached){.id = entry, .region = -1});
 *     struct cache_walk walk = cache_walk(&cache, region);
 *     while ((tried = cache_walk_next(&walk)))       until one fits
 *         ...
 *     cache_order_hit(&cache, place_of_tried);
 *     cache_order_free(&cache);
 *
 * The list holds the living entries alone:
 *
 *     [precompiled, oldest first] [the others: a new one goes in front, and so does each that is
 *     hit]
 *
 * A lookup tries the precompiled entries that it sees, then those of its own region, then the
 * common ones. An entry of another backend keeps its place: the lookup passes over it. A forked
 * process begins with a copy of the list. */
#ifndef DYNTRACE_CACHE_ORDER_H
#define DYNTRACE_CACHE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum order_policy {
    ORDER_MRU,  /* the evaluator's: new entries and hit ones go in front */
    ORDER_FIFO, /* oldest first, hits move nothing: torch can be set to this */
};

struct cached {
    uint32_t id;    /* whatever the owner numbers entries by */
    bool unsure;    /* the owner's: it is there only if a guess was right, */
    bool ghost;     /* or only if one was wrong, */
    bool trusted;   /* or only if compiles of which the trace has nothing went well */
    int64_t region; /* -1: the common one */
};

struct cache_order {
    struct cached *at; /* owned */
    size_t count, room;
    size_t pinned; /* so many of them, the first, are precompiled */
    enum order_policy policy;
};

/* A new entry; PINNED: a precompiled one. */
void cache_order_born(struct cache_order *order, struct cached entry, bool pinned);
/* The entry at PLACE was hit, has died. */
void cache_order_hit(struct cache_order *order, size_t place);
void cache_order_died(struct cache_order *order, size_t place);
/* Where the entry with ID is; count: nowhere. */
size_t cache_order_find(const struct cache_order *order, uint32_t id);
/* ORDER, empty, becomes as PARENT is. */
void cache_order_fork(struct cache_order *order, const struct cache_order *parent);
void cache_order_free(struct cache_order *order);

/* The entries that a lookup in OWN sees, in order; COMMON: the region whose entries all see (-1),
 * or OWN again. */
struct cache_walk {
    const struct cache_order *order; /* borrowed; unchanged while the walk goes on */
    int64_t own, common;
    int pass;
    size_t at;
};

static inline struct cache_walk cache_walk(const struct cache_order *order, int64_t own,
                                           int64_t common)
{
    return (struct cache_walk){.order = order, .own = own, .common = common};
}

/* Borrowed; NULL at the end. */
const struct cached *cache_walk_next(struct cache_walk *walk);

#endif
