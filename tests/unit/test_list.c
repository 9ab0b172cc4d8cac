/* test_list.c -- src/lib/list.h: lists, the search in what is sorted, maps, arenas. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/list.h"

static int failures;

#define CHECK(what)                                                    \
    do {                                                               \
        if (!(what)) {                                                 \
            fprintf(stderr, "line %d: not true: %s\n", __LINE__, #what); \
            failures++;                                                \
        }                                                              \
    } while (0)

struct item {
    int64_t id;
    char name[12];
};

static void lists(void)
{
    LIST(struct item) list = {0};
    LIST(int64_t) numbers = {0};

    CHECK(!list_find(&list, id, 0));
    for (int i = 0; i < 1000; i++) {
        struct item *item = list_add(&list);
        CHECK(item == &list.at[i] && item->id == 0 && item->name[11] == 0);
        memset(item, 0xff, sizeof *item);
        item->id = i / 2 * 3;
    }
    CHECK(list.count == 1000 && list.room >= 1000);
    CHECK(list_find(&list, id, 0) == list.at && list_find(&list, id, 300) == &list.at[200]); /* the first of two */
    CHECK(!list_find(&list, id, 301) && !list_find(&list, id, -1) && !list_find(&list, id, INT64_MAX));
    CHECK(sorted_count(list.count, i, list.at[i].id < 4) == 4 && sorted_count(list.count, i, list.at[i].id < 10000) == 1000);
    list_free(&list);
    CHECK(!list.at && !list.count && !list.room && list_add(&list));
    list_free(&list);

    CHECK(*list_reach(&numbers, 40) == 0 && numbers.count == 41 && list_reach(&numbers, 3) == &numbers.at[3]);
    CHECK(list_add_many(&numbers, 100) == &numbers.at[41] && numbers.count == 141);
    CHECK(!list_add_many(&numbers, SIZE_MAX / 2) && numbers.count == 141); /* there is no such memory */
    list_free(&numbers);
}

static void maps(void)
{
    struct map map = {0};

    CHECK(!map_get(&map, 0));
    for (int64_t i = -2000; i < 2000; i++)
        *map_put(&map, i * 4096) = i;
    for (int64_t i = -2000; i < 2000; i++)
        CHECK(map_get(&map, i * 4096) && *map_get(&map, i * 4096) == i && *map_put(&map, i * 4096) == i);
    CHECK(map.count == 4000 && !map_get(&map, 1) && !map_get(&map, INT64_MIN));
    map_free(&map);
    CHECK(!map.room && !map_get(&map, 0));
}

static void arenas(void)
{
    struct arena arena = {0};
    const char *texts[300];
    char wanted[32];

    for (int i = 0; i < 300; i++)
        texts[i] = arena_print(&arena, "%d of %s", i, "three hundred");
    for (int i = 0; i < 300; i++) {
        snprintf(wanted, sizeof wanted, "%d of three hundred", i);
        CHECK(!strcmp(texts[i], wanted));
    }
    CHECK(!strcmp(arena_text(&arena, "abcdef", 3), "abc") && !strcmp(arena_text(&arena, "", 0), ""));
    arena_free(&arena);
    CHECK(!arena.things.count && arena_text(&arena, "again", 5));
    arena_free(&arena);
}

int main(void)
{
    lists();
    maps();
    arenas();
    return failures != 0;
}
