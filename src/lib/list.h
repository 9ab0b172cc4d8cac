/* lib/list.h -- growing lists, binary search, a map, and an arena.
 *
 * Runs in: the program. In the collector a failed allocation returns NULL and leaves the list
 * unchanged; in the reading commands allocations do not fail (lib/bounds.h). Zeroed memory is an
 * empty list, map or arena, and each of them can be used again after it was freed.
 *
 *     LIST(struct code) codes = {0};
 *     struct code *code = list_add(&codes);          zeroed, at the end; NULL if memory has run out
 *     list_each(code, &codes)                        each item; none may be added meanwhile
 *     struct code *code = list_find(&codes, id, 7);  the item whose member `id` is 7, or NULL; the
 *                                                    list is sorted by this member
 *     list_free(&codes);
 *
 * An item's address is valid until the next list_add(). This header includes stdio.h, stdlib.h,
 * string.h and stdint.h. */
#ifndef DYNTRACE_LIST_H
#define DYNTRACE_LIST_H

#include <stdlib.h>
#include <string.h>

#include "lib/say.h"

/* ---- growing lists -------------------------------------------------------- */

/* Define the type of a list. Each use is a new type, so a list that is passed to functions needs a
 * name (typedef, or a struct around it). */
#define LIST(type)            \
    struct {                  \
        type *at; /* owned */ \
        size_t count, room;   \
    }

/* Append a zeroed item and return it. Returns NULL if memory has run out. */
#define list_add(list)                                                                 \
    ((__typeof__((list)->at))list_more_(&(list)->at, &(list)->count, &(list)->room, 1, \
                                        sizeof *(list)->at))

/* Append MORE zeroed items and return the first. Returns NULL if memory has run out. */
#define list_add_many(list, more)                                                         \
    ((__typeof__((list)->at))list_more_(&(list)->at, &(list)->count, &(list)->room, more, \
                                        sizeof *(list)->at))

/* Return the item at INDEX. If the list is shorter, zeroed items are appended first. Returns NULL
 * if memory has run out. */
#define list_reach(list, index)                                                   \
    ({                                                                            \
        size_t index_ = (index);                                                  \
        index_ < (list)->count || list_add_many(list, index_ + 1 - (list)->count) \
            ? &(list)->at[index_]                                                 \
            : NULL;                                                               \
    })

/* `for` over the items of LIST, first to last: ITEM is the address of each. */
#define list_each(item, list) \
    for (__typeof__(*(list)->at) *item = (list)->at; item < (list)->at + (list)->count; item++)

/* Return the number of elements of ARRAY, which must not be a pointer. */
#define array_count(array) (sizeof(array) / sizeof *(array))

#define list_free(list) (free((list)->at), (list)->at = NULL, (list)->count = (list)->room = 0)

static inline void *list_more_(void *array, size_t *count, size_t *room, size_t more, size_t size)
{
    char *at;

    /* memcpy, because ARRAY is the address of a pointer of any type */
    memcpy(&at, array, sizeof at);
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

/* ---- search and sort lists -------------------------------------------------- */

/* Return how many of the first COUNT items fulfil TEST, by binary search: the items that fulfil
 * TEST come first. TEST is an expression with the item's index, whose name is I:
 *
 *   size_t at = sorted_count(cache->count, i, r->lookups[cache->lookups[i]].start_ns < from_ns); */
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

/* Return the first item of LIST whose MEMBER is KEY, or NULL. LIST is sorted by MEMBER. */
#define list_find(list, member, key)                                                              \
    ({                                                                                            \
        __typeof__((list)->at[0].member) key_ = (key);                                            \
        size_t found_ = sorted_count((list)->count, index_, (list)->at[index_].member < key_);    \
        found_ < (list)->count && (list)->at[found_].member == key_ ? &(list)->at[found_] : NULL; \
    })

/* Does LIST, a sorted list of numbers, contain KEY? */
#define list_has(list, key)                                                             \
    ({                                                                                  \
        __typeof__((list)->at[0]) key_ = (key);                                         \
        size_t found_ = sorted_count((list)->count, index_, (list)->at[index_] < key_); \
        found_ < (list)->count && (list)->at[found_] == key_;                           \
    })

/* Sort LIST, which may be empty. ORDER is a comparison function as for qsort().
 * list_compare_numbers compares two integers. */
#define list_sort(list, order) \
    ((list)->count ? qsort((list)->at, (list)->count, sizeof *(list)->at, order) : (void)0)

static inline int list_compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* ---- maps from integers to integers ----------------------------------------- */

/* A key of a map and its value. Values are ids, counts or positions in a list. */
struct map_slot {
    int64_t key, value;
    bool taken;
};

struct map {
    struct map_slot *slots; /* owned: a hash table with open addressing, at most half full */
    size_t count, room;     /* room: number of slots, 0 or a power of two */
};

/* Return the slot that has KEY, or else the free slot where KEY belongs. */
static inline struct map_slot *map_slot_(const struct map *map, int64_t key)
{
    size_t at = (size_t)((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->room - 1);

    while (map->slots[at].taken && map->slots[at].key != key)
        at = (at + 1) & (map->room - 1);
    return &map->slots[at];
}

/* Return the address of the value of KEY, or NULL if the map does not have KEY. The address is
 * valid until the next map_put. */
static inline int64_t *map_get(const struct map *map, int64_t key)
{
    struct map_slot *slot = map->room ? map_slot_(map, key) : NULL;

    return slot && slot->taken ? &slot->value : NULL;
}

/* Return the address of the value of KEY. A new KEY is added with the value 0. Returns NULL if
 * memory has run out. */
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

/* ---- arenas: memory that is freed together ------------------------------------- */

/* An arena: memory for many small things, freed together. */
struct arena {
    LIST(void *) things; /* each owned */
};

/* Pass the ownership of THING to the arena. Returns THING. */
static inline void *arena_keep(struct arena *arena, void *thing)
{
    *list_add(&arena->things) = thing;
    return thing;
}

/* Return BYTES of zeroed memory. */
static inline void *arena_take(struct arena *arena, size_t bytes)
{
    return arena_keep(arena, calloc(1, bytes));
}

/* Return a copy of the first BYTES of TEXT, followed by a NUL. */
static inline char *arena_text(struct arena *arena, const char *text, size_t bytes)
{
    return memcpy(arena_take(arena, bytes + 1), text, bytes);
}

/* Return a new text, formatted as printf would print it. */
#define arena_print(arena, ...) ((char *)arena_keep(arena, say_print(__VA_ARGS__)))

static inline void arena_free(struct arena *arena)
{
    for (size_t i = 0; i < arena->things.count; i++)
        free(arena->things.at[i]);
    list_free(&arena->things);
}

#endif
