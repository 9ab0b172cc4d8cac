/* trace/whatif/pairs.c -- a hash table of pairs. See trace/whatif/pairs.h.
 *
 * Runs in: the viewer. */
#include "trace/whatif/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "replay.h"

enum { PAIRS_MAX = 1 << 20 };

static uint64_t hash(uint64_t key)
{
    key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u; /* both halves are small numbers */
    return key >> 32 ^ key;
}

/* Where KEY is, or would be. */
static size_t place_of(const struct pairs *p, uint64_t key)
{
    size_t at = hash(key * 3) & (p->room - 1);

    while (p->keys[at] != UINT64_MAX && p->keys[at] != key)
        at = (at + 1) & (p->room - 1);
    return at;
}

static bool grow(struct pairs *p)
{
    struct pairs more = *p;

    more.room = p->room ? p->room * 2 : 1024;
    more.keys = malloc(more.room * sizeof *more.keys);
    more.values = calloc(more.room, sizeof *more.values);
    if (!more.keys || !more.values) {
        free(more.keys);
        free(more.values);
        p->failed = true;
        return false;
    }
    memset(more.keys, 0xff, more.room * sizeof *more.keys);
    for (size_t i = 0; i < p->room; i++)
        if (p->keys[i] != UINT64_MAX) {
            size_t at = place_of(&more, p->keys[i]);
            more.keys[at] = p->keys[i];
            more.values[at] = p->values[i];
        }
    free(p->keys);
    free(p->values);
    *p = more;
    return true;
}

uint32_t *pairs_at(struct pairs *p, uint64_t key)
{
    size_t at;

    if (p->count >= PAIRS_MAX && p->full) {
        at = place_of(p, key);
        p->scratch = 0;
        return p->keys[at] == key ? &p->values[at] : &p->scratch;
    }
    if (p->count * 2 >= p->room && !grow(p))
        return NULL;
    at = place_of(p, key);
    if (p->keys[at] == UINT64_MAX) {
        p->keys[at] = key;
        p->values[at] = 0;
        p->count++;
    }
    return &p->values[at];
}

void pairs_add(struct pairs *p, uint32_t one, uint32_t other, uint32_t bits)
{
    uint32_t *value = pairs_at(p, pairs_key(one, other));

    if (value)
        *value |= bits;
}

void pairs_free(struct pairs *p)
{
    free(p->keys);
    free(p->values);
    *p = (struct pairs){0};
}
