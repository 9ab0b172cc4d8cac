/* collector/lookup_pages.c -- writes the rows of `lookup` and `guard_check`, and their indexes. See
 * collector/lookup_pages.h.
 *
 * A page is filled from its end, so that the rows that it counts are whole whenever the collector
 * is killed. In an index what stands between two leaves is in none of them: it is in the interior
 * page above. */
#include "collector/lookup_pages.h"

#include <stdatomic.h>

#include "tables.h"

enum {
    /* of a page: ids never catch up with frames', by which the pages are told apart */
    ROWS_MAX = FRAME_PAGE_ROWS - 2,
    /* of a cell of an index, without its numbers: pointer, lengths and types */
    KEY_BYTES = 6,
    KEYS_MIN = FRAME_PAGE_ROOM / (KEY_BYTES + 16), /* fit in a page, however large the numbers */
    CELL_MAX = 160,
};

static const unsigned columns[LOOKUP_TABLES] = {LOOKUP_COLUMNS, CHECK_COLUMNS};

static void page_begin(uint8_t *page)
{
    memset(page, 0, FRAME_PAGE_BYTES);
    page[0] = PAGE_TABLE;
    put16(page + 5, FRAME_PAGE_BYTES);
}

/* ---- indexes ---- */

/* COUNT keys become a leaf of LEAVES; LAST stands between it and the next. */
static void leaf_make(struct lookup_pages *l, page_leaves *leaves, const struct page_leaf *keys,
                      size_t count, struct page_leaf last)
{
    uint8_t page[FRAME_PAGE_BYTES + PAGE_SLACK] = {PAGE_INDEX};
    uint8_t cell[40];
    uint32_t at = frame_pages_take(l->pages);
    unsigned content = FRAME_PAGE_BYTES;
    struct page_leaf *leaf;

    for (size_t i = 0; i < count; i++) {
        size_t bytes = (size_t)(put_key(cell, keys[i].key, keys[i].id) - cell);
        content -= (unsigned)bytes;
        memcpy(page + content, cell, bytes);
        put16(page + 8 + 2 * i, content);
    }
    put16(page + 3, (unsigned)count);
    put16(page + 5, content);
    leaf = frame_pages_store(l->pages, at, page, 0) ? list_add(leaves) : NULL;
    l->pages->indexed &= !!leaf;
    if (leaf)
        *leaf = (struct page_leaf){at, last.key, last.id};
}

/* A key of RUN, larger than those before; leaves are made of those from FIRST on, as they fill. Two
 * more than that always fit in one, and at least two are always left. */
static void key_add(struct lookup_pages *l, struct index_run *run, size_t first, uint64_t key,
                    uint64_t id)
{
    struct page_leaf *added = run ? list_add(&run->keys) : NULL;
    struct page_leaf *from;
    size_t fit;

    l->pages->indexed &= !!added;
    if (!added)
        return;
    *added = (struct page_leaf){.key = key, .id = id};
    run->key_bits |= key;
    run->id_bits |= id;
    if (run->keys.count < first + KEYS_MIN)
        return;
    fit = FRAME_PAGE_ROOM /
              (KEY_BYTES + frame_bytes_of(run->key_bits) + frame_bytes_of(run->id_bits)) -
          2;
    from = run->keys.at + first;
    if (run->keys.count < first + fit + 3)
        return;
    leaf_make(l, &run->leaves, from, fit, from[fit]);
    run->keys.count -= fit + 1;
    memmove(from, from + fit + 1, (run->keys.count - first) * sizeof *from);
}

/* Put the leaves of COUNT runs one behind the other, and what is left between them into more. */
static void runs_join(struct lookup_pages *l, enum page_tree_of tree, const struct index_run *runs,
                      size_t count)
{
    struct index_run all = {0};

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < runs[i].keys.count; k++) {
            if (k == 2 && runs[i].leaves.count) {
                struct page_leaf last = all.keys.at[all.keys.count - 1];
                struct page_leaf *more;
                leaf_make(l, &all.leaves, all.keys.at, all.keys.count - 1, last);
                all.keys.count = 0;
                more = list_add_many(&all.leaves, runs[i].leaves.count);
                if (more)
                    memcpy(more, runs[i].leaves.at, runs[i].leaves.count * sizeof *more);
                l->pages->indexed &= !!more;
            }
            key_add(l, &all, 0, runs[i].keys.at[k].key, runs[i].keys.at[k].id);
        }
    if (all.keys.count)
        leaf_make(l, &all.leaves, all.keys.at, all.keys.count, all.keys.at[all.keys.count - 1]);
    list_free(&all.keys);
    l->pages->leaves[tree] = all.leaves;
}

/* ---- rows ---- */

/* The page of TABLE that is being filled is full. */
static void page_put(struct lookup_pages *l, enum lookup_table table)
{
    uint8_t *page = l->window->page[table];
    uint32_t at = frame_pages_take(l->pages);
    unsigned rows = get16(page + 3);
    struct page_leaf *leaf = frame_pages_store(l->pages, at, page, rows)
                                 ? list_add(&l->pages->leaves[TREE_LOOKUP + table])
                                 : NULL;

    if (leaf)
        *leaf = (struct page_leaf){at, l->next[table] - 1, rows};
    atomic_signal_fence(memory_order_release); /* a kill stops between two stores */
    page_begin(page);
}

void lookup_pages_add(struct lookup_pages *l, enum lookup_table table, const int64_t *values,
                      const char *word)
{
    uint8_t *page = l->window->page[table];
    uint8_t cell[CELL_MAX], *record, *body;
    unsigned rows, content, bytes;

    record = put_varint(cell + 1, l->next[table]);
    record[0] = (uint8_t)(columns[table] + 1);
    record[1] = 0; /* NULL: the id is the row's own */
    body = record + 1 + columns[table];
    for (unsigned i = 1; i < columns[table]; i++)
        if (word && i == CHECK_WORD) {
            size_t length = strlen(word);
            record[1 + i] = (uint8_t)(13 + 2 * length);
            memcpy(body, word, length);
            body += length;
        } else if (values[i - 1] == ROW_NONE) {
            record[1 + i] = 0;
        } else {
            body = put_number(body, (uint64_t)values[i - 1], &record[1 + i]);
        }
    cell[0] = (uint8_t)(body - record);
    bytes = (unsigned)(body - cell);
    if (get16(page + 3) == ROWS_MAX || get16(page + 5) < 8 + 2 * (get16(page + 3) + 1) + bytes)
        page_put(l, table);
    rows = get16(page + 3);
    content = get16(page + 5) - bytes;
    memcpy(page + content, cell, bytes);
    put16(page + 8 + 2 * rows, content);
    put16(page + 5, content);
    atomic_signal_fence(memory_order_release);
    page[4] = (uint8_t)(rows + 1);
    if (l->pages->indexed && table == PAGES_LOOKUP)
        key_add(l, list_reach(&l->codes, (size_t)values[2]), 2, (uint64_t)values[2],
                l->next[table]);
    else if (l->pages->indexed)
        key_add(l, &l->checks, 2, (uint64_t)values[0], l->next[table]);
    l->next[table]++;
}

/* The number that a record has for TYPE at BODY, in BYTES. */
static int64_t number_read(const uint8_t *body, unsigned type, unsigned bytes)
{
    if (!type)
        return ROW_NONE;
    return type > 7 ? type - 8 : (int64_t)get_big_endian(body, bytes);
}

/* Row SLOT of a page of TABLE; its text is WORD. False: there is none, or it makes no sense. */
static bool row_read(uint8_t *page, unsigned slot, enum lookup_table table,
                     int64_t values[LOOKUP_COLUMNS], const char **word)
{
    uint64_t id;
    uint8_t *record = page_row(page, slot, &id);
    uint8_t *end = page + FRAME_PAGE_BYTES;
    uint8_t *body;

    if (!record || record[0] != columns[table] + 1)
        return false;
    body = record + 1 + columns[table];
    if (body > end)
        return false;
    values[0] = (int64_t)id;
    for (unsigned i = 1; i < columns[table]; i++) {
        unsigned type = record[1 + i];
        unsigned bytes = type > 12 ? (type - 13) / 2 : frame_bytes_of_type[type % 10];
        bool text = table == PAGES_CHECK && i == CHECK_WORD;
        if (bytes > end - body || text != (type > 12))
            return false;
        values[i] = text ? (int64_t)bytes : number_read(body, type, bytes);
        if (text)
            *word = (const char *)body;
        body += bytes;
    }
    return true;
}

void lookup_pages_show(struct lookup_pages *l, enum lookup_table table,
                       void (*row)(void *context, enum lookup_table table, int64_t *values,
                                   const char *word),
                       void *context)
{
    const page_leaves *leaves = &l->pages->leaves[TREE_LOOKUP + table];
    size_t at = sorted_count(leaves->count, i, leaves->at[i].key < l->shown[table]);
    uint8_t copy[FRAME_PAGE_BYTES], *page;
    int64_t values[LOOKUP_COLUMNS];
    const char *word;

    page = at == leaves->count ? l->window->page[table]
                               : frame_pages_at(l->pages, leaves->at[at].page, copy);
    for (unsigned slot = 0; page && row_read(page, slot, table, values, &word); slot++)
        if ((uint64_t)values[0] >= l->shown[table])
            row(context, table, values, word);
    l->shown[table] = at == leaves->count ? l->next[table] : leaves->at[at].key + 1;
}

/* ---- life ---- */

/* Cut off the rows of PAGE that do not lie between *LAST and END, or make no sense. How many are
 * left; *LAST: the id of the last. */
static unsigned cut(uint8_t *page, enum lookup_table table, uint64_t end, uint64_t *last)
{
    int64_t values[LOOKUP_COLUMNS];
    unsigned rows = 0;
    const char *word;

    while (row_read(page, rows, table, values, &word)) {
        uint64_t id = (uint64_t)values[0];
        if (id <= *last || id >= end)
            break;
        *last = id;
        rows++;
    }
    put16(page + 3, rows);
    put16(page + 5, rows ? get16(page + 8 + 2 * (rows - 1)) : FRAME_PAGE_BYTES);
    return rows;
}

/* PAGE N, which a killed collector wrote. *LAST: by table, the id of the last row so far. */
static void page_take_over(struct lookup_pages *l, uint32_t n, uint8_t *page, uint64_t last[])
{
    uint64_t id;
    uint8_t *record = page_row(page, 0, &id);
    enum lookup_table table = PAGES_LOOKUP;
    struct page_leaf *leaf;
    unsigned had, rows;

    if (!record)
        return;
    if (*record == CHECK_COLUMNS + 1)
        table = PAGES_CHECK;
    had = get16(page + 3);
    rows = cut(page, table, l->next[table], &last[table]);
    leaf = rows ? list_add(&l->pages->leaves[TREE_LOOKUP + table]) : NULL;
    if (leaf)
        *leaf = (struct page_leaf){n, last[table], rows};
    if (rows != had)
        frame_pages_rewrite(l->pages, n, page);
}

/* Go on with the pages that a killed collector wrote. */
static void take_over(struct lookup_pages *l)
{
    uint64_t last[LOOKUP_TABLES] = {0};

    for (uint32_t n = 0; n < l->pages->cells.count; n++) {
        uint8_t copy[FRAME_PAGE_BYTES];
        uint8_t *page = NULL;
        if (l->pages->cells.at[n] == FRAME_PAGE_OTHER)
            page = frame_pages_at(l->pages, n, copy);
        if (page)
            page_take_over(l, n, page, last);
    }
    for (enum lookup_table table = 0; table < LOOKUP_TABLES; table++) {
        if (!cut(l->window->page[table], table, l->next[table], &last[table]))
            page_begin(l->window->page[table]); /* or it has been put already */
        l->next[table] = last[table] + 1;
    }
}

void lookup_pages_open(struct lookup_pages *l, struct frame_pages *pages,
                       struct lookup_window *window, uint64_t *next, bool resume)
{
    *l = (struct lookup_pages){.pages = pages, .window = window, .next = next, .shown = {1, 1}};
    pages->indexed = !resume;
    if (resume)
        take_over(l);
    else
        for (int table = 0; table < LOOKUP_TABLES; table++)
            page_begin(window->page[table]);
}

static void run_free(struct index_run *run)
{
    list_free(&run->keys);
    list_free(&run->leaves);
}

void lookup_pages_close(struct lookup_pages *l)
{
    for (size_t i = 0; i < l->codes.count; i++)
        run_free(&l->codes.at[i]);
    list_free(&l->codes);
    run_free(&l->checks);
}

void lookup_pages_finish(struct lookup_pages *l)
{
    for (int table = 0; table < LOOKUP_TABLES; table++)
        if (get16(l->window->page[table] + 3))
            page_put(l, table);
    if (l->pages->indexed) {
        runs_join(l, TREE_LOOKUP_CODE, l->codes.at, l->codes.count);
        runs_join(l, TREE_CHECK_LOOKUP, &l->checks, 1);
    }
}
