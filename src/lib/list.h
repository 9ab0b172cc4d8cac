/* lib/list.h -- growing lists, binary search, a map, and an arena.
 *
 * Runs in: the program. In the collector a failed allocation returns NULL and leaves the list
 * unchanged; in the reading commands allocations do not fail (lib/bounds.h). All of these types are
 * empty when zero, and can be used again after they are freed.
 *
 *     LIST(struct code) codes = {0};
 *     struct code *code = list_add(&codes);          zeroed, at the end; NULL: no memory
 *     for (size_t i = 0; i < codes.count; i++)       ... codes.at[i]
 *     struct code *code = list_find(&codes, id, 7);  by its member `id`, by which the list is
 *                                                    sorted; NULL: none
 *     list_free(&codes);
 *
 * An item's address is valid until the next list_add(). This header includes stdio.h, stdlib.h,
 * string.h and stdint.h. */
#ifndef DYNTRACE_LIST_H
#define DYNTRACE_LIST_H

#include <stdlib.h>
#include <string.h>

#include "lib/say.h"

/* ---- lists --------------------------------------------------------------- */

/* The type of a list. Each use is a new type, so a list that is passed to functions needs a name
 * (typedef, or a struct around it). */
#define LIST(type)            \
    struct {                  \
        type *at; /* owned */ \
        size_t count, room;   \
    }

/* A new item, zeroed, at the end; NULL: no memory. */
#define list_add(list)                                                                 \
    ((__typeof__((list)->at))list_more_(&(list)->at, &(list)->count, &(list)->room, 1, \
                                        sizeof *(list)->at))

/* MORE of them; the first. */
#define list_add_many(list, more)                                                         \
    ((__typeof__((list)->at))list_more_(&(list)->at, &(list)->count, &(list)->room, more, \
                                        sizeof *(list)->at))

/* Item INDEX; appends zeroed items until it exists. NULL: no memory. */
#define list_reach(list, index)                                                   \
    ({                                                                            \
        size_t index_ = (index);                                                  \
        index_ < (list)->count || list_add_many(list, index_ + 1 - (list)->count) \
            ? &(list)->at[index_]                                                 \
            : NULL;                                                               \
    })

#define list_free(list) (free((list)->at), (list)->at = NULL, (list)->count = (list)->room = 0)

static inline void *list_more_(void *array, size_t *count, size_t *room, size_t more, size_t size)
{
    char *at;

    memcpy(&at, array, sizeof at); /* ARRAY is the address of a pointer of any type */
    if (*room - *count < more) {
        size_t wanted = *room < 8 ? 8 : *room * 2;
        if (more > SIZE_MAX / 2 / size - *count)
            return NULL;
        if (wanted < *count + more)
            wanted = *count + more;
        if (!(at = realloc(at, wanted * size)))
            return NULL;
        memcpy(array, &at, sizeof at);
        *room = wanted;
    }
    at += *count * size;
    *count += more;
    return more ? memset(at, 0, more * size) : at;
}

/* ---- what is sorted ------------------------------------------------------ */

/* The number of items, of COUNT, before the first for which TEST fails. TEST is an expression of
 * the index, named I: size_t at = sorted_count(cache->count, i,
 *     r->lookups[cache->lookups[i]].start_ns < from_ns); */
#define sorted_count(count, i, test)              \
    ({                                            \
        size_t low_ = 0, high_ = (count);         \
        while (low_ < high_) {                    \
            size_t i = low_ + (high_ - low_) / 2; \
            if (test)                             \
                low_ = i + 1;                     \
            else                                  \
                high_ = i;                        \
        }                                         \
        low_;                                     \
    })

/* The first item of LIST, sorted by MEMBER, whose MEMBER is KEY; NULL: none. */
#define list_find(list, member, key)                                                              \
    ({                                                                                            \
        __typeof__((list)->at[0].member) key_ = (key);                                            \
        size_t found_ = sorted_count((list)->count, index_, (list)->at[index_].member < key_);    \
        found_ < (list)->count && (list)->at[found_].member == key_ ? &(list)->at[found_] : NULL; \
    })

/* Does LIST, sorted numbers, contain KEY? */
#define list_has(list, key)                                                             \
    ({                                                                                  \
        __typeof__((list)->at[0]) key_ = (key);                                         \
        size_t found_ = sorted_count((list)->count, index_, (list)->at[index_] < key_); \
        found_ < (list)->count && (list)->at[found_] == key_;                           \
    })

/* Sort LIST, which may be empty, by ORDER, a qsort() function. list_order compares two integers. */
#define list_sort(list, order) \
    ((list)->count ? qsort((list)->at, (list)->count, sizeof *(list)->at, order) : (void)0)

static inline int list_order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* ---- maps ---------------------------------------------------------------- */

/* From integers to integers: ids, counts, or places in a list. */
struct map_slot {
    int64_t key, value;
    bool taken;
};

struct map {
    struct map_slot *slots; /* owned: open addressing, at most half full */
    size_t count, room;     /* room: 0, or a power of two */
};

/* The slot that has KEY, or a free one for it. */
static inline struct map_slot *map_slot_(const struct map *map, int64_t key)
{
    size_t at = (size_t)((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->room - 1);

    while (map->slots[at].taken && map->slots[at].key != key)
        at = (at + 1) & (map->room - 1);
    return &map->slots[at];
}

/* The value of KEY; NULL: none. The address is valid until the next put. */
static inline int64_t *map_get(const struct map *map, int64_t key)
{
    struct map_slot *slot = map->room ? map_slot_(map, key) : NULL;

    return slot && slot->taken ? &slot->value : NULL;
}

/* The value of KEY, inserted as 0 if new; NULL: no memory. */
static inline int64_t *map_put(struct map *map, int64_t key)
{
    struct map_slot *slot;

    if (map->count * 2 >= map->room) {
        struct map wider = {.count = map->count, .room = map->room ? map->room * 2 : 64};
        if (!(wider.slots = calloc(wider.room, sizeof *wider.slots)))
            return NULL;
        for (size_t i = 0; i < map->room; i++)
            if (map->slots[i].taken)
                *map_slot_(&wider, map->slots[i].key) = map->slots[i];
        free(map->slots);
        *map = wider;
    }
    slot = map_slot_(map, key);
    if (!slot->taken) {
        *slot = (struct map_slot){.key = key, .taken = true};
        map->count++;
    }
    return &slot->value;
}

static inline void map_free(struct map *map)
{
    free(map->slots);
    *map = (struct map){0};
}

/* ---- arenas: of commands that read --------------------------------------- */

/* An arena: memory for many small things, freed together. */
struct arena {
    LIST(void *) things; /* each owned */
};

/* Give THING to the arena. Returns THING. */
static inline void *arena_keep(struct arena *arena, void *thing)
{
    *list_add(&arena->things) = thing;
    return thing;
}

/* BYTES, zeroed. */
static inline void *arena_take(struct arena *arena, size_t bytes)
{
    return arena_keep(arena, calloc(1, bytes));
}

/* A copy of the first BYTES of TEXT, with a NUL. */
static inline char *arena_text(struct arena *arena, const char *text, size_t bytes)
{
    return memcpy(arena_take(arena, bytes + 1), text, bytes);
}

/* A text formatted as by printf. */
#define arena_print(arena, ...) ((char *)arena_keep(arena, say_print(__VA_ARGS__)))

static inline void arena_free(struct arena *arena)
{
    for (size_t i = 0; i < arena->things.count; i++)
        free(arena->things.at[i]);
    list_free(&arena->things);
}

#endif
