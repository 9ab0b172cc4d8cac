/* trace/whatif/pairs.h -- what is known of pairs, in bits: a hash table.
 *
 * Runs in: the viewer. Between trace/whatif/like.c and trace/whatif/pairs.c. All zeros is an empty table. */
#ifndef DYNTRACE_WHATIF_PAIRS_H
#define DYNTRACE_WHATIF_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pairs {
    uint64_t *keys;   /* owned; UINT64_MAX: free */
    uint32_t *values; /* owned */
    size_t room, count;
    uint32_t scratch; /* a pair's bits when there is no room to remember them */
    bool full;        /* from a million pairs on nothing more is remembered: it can be found out again */
    bool failed;      /* no memory */
};

static inline uint64_t pairs_key(uint32_t one, uint32_t other)
{
    return (uint64_t)one << 32 | other;
}

/* The bits of KEY, which is not UINT64_MAX, 0 at first; good until the next call. NULL: no memory. */
uint32_t *pairs_at(struct pairs *pairs, uint64_t key);
void pairs_add(struct pairs *pairs, uint32_t one, uint32_t other, uint32_t bits);
void pairs_free(struct pairs *pairs);

#endif
