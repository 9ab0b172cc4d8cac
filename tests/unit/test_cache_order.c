/* test_cache_order.c -- random caches with regions and precompiled entries, against entries that know when they were touched.
 * tests/test_replay.py and tests/with_torch/test_torch_replay.py hold it against what the evaluator really tried. */
#include <stdio.h>
#include <stdlib.h>

#include "trace/replay/cache_order.h"

enum { ENTRIES = 400, STEPS = 20000 };

static int failures;

static struct entry { /* by id */
    int64_t region, touched, born;
    bool pinned, alive;
} entries[ENTRIES];

/* What comes before what, for a lookup in OWN: the precompiled, its own, the common ones; in each the policy's order. */
static int before(const struct entry *a, const struct entry *b, int64_t own, enum order_policy policy)
{
    int rank_a = a->pinned ? 0 : a->region == own && own >= 0 ? 1 : 2, rank_b = b->pinned ? 0 : b->region == own && own >= 0 ? 1 : 2;

    if (rank_a != rank_b)
        return rank_a < rank_b;
    if (rank_a == 0 || policy == ORDER_FIFO)
        return a->born < b->born;
    return policy == ORDER_MRU ? a->touched > b->touched : a->born > b->born;
}

/* The walk gives each entry that is seen once, each before those that come after it. */
static void compare(const struct cache_order *order, int64_t own)
{
    struct cache_walk walk = cache_walk(order, own, -1);
    const struct cached *last = NULL, *tried;
    int count = 0, seen = 0;

    while ((tried = cache_walk_next(&walk))) {
        const struct entry *e = &entries[tried->id];
        if (!e->alive || (e->region != own && e->region != -1) || (last && !before(&entries[last->id], e, own, order->policy)))
            failures++;
        last = tried;
        count++;
    }
    for (int i = 0; i < ENTRIES; i++)
        seen += entries[i].alive && (entries[i].region == -1 || entries[i].region == own);
    failures += count != seen;
}

static void play(enum order_policy policy)
{
    struct cache_order order = {.policy = policy}, forked = {0};
    uint32_t next = 0;

    for (int i = 0; i < ENTRIES; i++)
        entries[i].alive = false;
    for (int64_t now = 1; now <= STEPS && !failures; now++) {
        int what = rand() % 100;
        size_t place = order.count ? (size_t)rand() % order.count : 0;
        if (what < 3 && next < ENTRIES) {
            entries[next] = (struct entry){rand() % 3 - 1, now, now, rand() % 5 == 0, true};
            cache_order_add(&order, (struct cached){.id = next, .region = entries[next].region}, entries[next].pinned);
            next++;
        } else if (what < 5 && order.count > 3) {
            entries[order.at[place].id].alive = false;
            cache_order_remove(&order, place);
        } else if (order.count) {
            entries[order.at[place].id].touched = now;
            cache_order_move_hit_entry(&order, cache_order_find(&order, order.at[place].id));
        }
        if (now % 7 == 0)
            compare(&order, rand() % 3 - 1);
    }
    failures += cache_order_find(&order, ENTRIES) != order.count;
    cache_order_copy_from_parent(&forked, &order);
    compare(&forked, 1);
    cache_order_free(&order);
    cache_order_free(&forked);
}

int main(void)
{
    srand(1);
    play(ORDER_MRU);
    play(ORDER_FIFO);
    if (failures)
        fprintf(stderr, "test_cache_order: an order that is not the rules'\n");
    return failures != 0;
}
