/* collector/lookup_pages.c -- writes the rows of `lookup` and `guard_check`, and their indexes. See
 * collector/lookup_pages.h.
 *
 * Cells are added to a page from its end, and the page's row count is set last. So all counted rows
 * are whole whenever the collector is killed. In a b-tree index, the key between two leaves is in
 * neither leaf, but only in the interior page above them. */
#include "collector/lookup_pages.h"

#include <stdatomic.h>

#include "tables.h"

enum {
    /* Most rows of a page. It is less than the number of ids of a page of `frame`, so that the
     * first id of a page tells which kind of page it is. */
    ROWS_MAX = FRAME_PAGE_ROWS - 2,
    /* bytes of an index cell besides its two numbers: pointer, lengths and types */
    KEY_BYTES = 6,
    /* least number of keys that fit into a page, even if their numbers are large */
    KEYS_MIN = FRAME_PAGE_ROOM / (KEY_BYTES + 16),
    CELL_MAX = 160,
};

static const unsigned columns[LOOKUP_TABLES] = {LOOKUP_COLUMNS, CHECK_COLUMNS};

static void begin_empty_page(uint8_t *page)
{
    memset(page, 0, FRAME_PAGE_BYTES);
    page[0] = PAGE_TABLE;
    put_two_bytes(page + 5, FRAME_PAGE_BYTES);
}

/* ---- make the leaves of the two indexes ---- */

/* Make a leaf of an index from COUNT keys and append it to LEAVES. LAST is the key between this
 * leaf and the next one. */
static void make_index_leaf(struct lookup_pages *l, page_leaves *leaves,
                            const struct page_leaf *keys, size_t count, struct page_leaf last)
{
    uint8_t page[FRAME_PAGE_BYTES + PAGE_SLACK] = {PAGE_INDEX};
    uint8_t cell[40];
    uint32_t at = frame_pages_reserve_page(l->pages);
    unsigned content = FRAME_PAGE_BYTES;
    struct page_leaf *leaf;

    for (size_t i = 0; i < count; i++) {
        size_t bytes = (size_t)(put_index_record(cell, keys[i].key, keys[i].id) - cell);
        content -= (unsigned)bytes;
        memcpy(page + content, cell, bytes);
        put_two_bytes(page + 8 + 2 * i, content);
    }
    put_two_bytes(page + 3, (unsigned)count);
    put_two_bytes(page + 5, content);
    leaf = frame_pages_store_made_page(l->pages, at, page, 0) ? list_add(leaves) : NULL;
    l->pages->indexed &= !!leaf;
    if (leaf)
        *leaf = (struct page_leaf){at, last.key, last.id};
}

/* Return how many of RUN's keys to put into a leaf: two fewer than would fit. */
static size_t number_of_keys_in_leaf(const struct index_run *run)
{
    unsigned number_bytes = number_count_bytes(run->key_bits) + number_count_bytes(run->id_bits);

    return FRAME_PAGE_ROOM / (KEY_BYTES + number_bytes) - 2;
}

/* Add a key to RUN, larger than all keys before it. If the keys from index FIRST on fill a leaf,
 * make the leaf. At least two keys are left over, which make_last_leaf_of_run() needs. */
static void add_key_to_run(struct lookup_pages *l, struct index_run *run, size_t first,
                           uint64_t key, uint64_t id)
{
    struct page_leaf *added = run ? list_add(&run->keys) : NULL;
    struct page_leaf *from;
    size_t fit, left;

    if (!added) {
        l->pages->indexed = false;
        return;
    }
    *added = (struct page_leaf){.key = key, .id = id};
    run->key_bits |= key;
    run->id_bits |= id;
    if (run->keys.count < first + KEYS_MIN)
        return;
    fit = number_of_keys_in_leaf(run);
    from = run->keys.at + first;
    if (run->keys.count < first + fit + 3)
        return;
    make_index_leaf(l, &run->leaves, from, fit, from[fit]);
    run->keys.count -= fit + 1;
    left = run->keys.count - first;
    memmove(from, from + fit + 1, left * sizeof *from);
}

/* Make a leaf of all remaining keys of RUN. MORE: further leaves follow, so the last key does not
 * go into the leaf but separates it from the next one. */
static void make_last_leaf_of_run(struct lookup_pages *l, struct index_run *run, bool more)
{
    size_t count = run->keys.count;
    struct page_leaf last = run->keys.at[count - 1];

    make_index_leaf(l, &run->leaves, run->keys.at, more ? count - 1 : count, last);
    run->keys.count = 0;
}

static void append_leaves(struct lookup_pages *l, struct index_run *all,
                          const struct index_run *run)
{
    size_t count = run->leaves.count;
    struct page_leaf *more = list_add_many(&all->leaves, count);

    if (more)
        memcpy(more, run->leaves.at, count * sizeof *more);
    else
        l->pages->indexed = false;
}

/* Append the leaves of RUN to those of ALL. RUN has two keys that come before its leaves, and some
 * that come after them; all these keys go into leaves of ALL. */
static void append_run(struct lookup_pages *l, struct index_run *all, const struct index_run *run)
{
    for (size_t k = 0; k < run->keys.count; k++) {
        const struct page_leaf *key = &run->keys.at[k];
        if (k == 2 && run->leaves.count) {
            make_last_leaf_of_run(l, all, true);
            append_leaves(l, all, run);
        }
        add_key_to_run(l, all, 0, key->key, key->id);
    }
}

/* Make the leaves of TREE from those of COUNT runs. */
static void join_runs_into_leaves(struct lookup_pages *l, enum page_tree_of tree,
                                  const struct index_run *runs, size_t count)
{
    struct index_run all = {0};

    for (size_t i = 0; i < count; i++)
        append_run(l, &all, &runs[i]);
    if (all.keys.count)
        make_last_leaf_of_run(l, &all, false);
    list_free(&all.keys);
    l->pages->leaves[tree] = all.leaves;
}

/* ---- write and read rows of `lookup` and `guard_check` ---- */

/* Store the unfinished page of TABLE and begin a new one. */
static void store_unfinished_page(struct lookup_pages *l, enum lookup_table table)
{
    uint8_t *page = l->window->page[table];
    uint32_t at = frame_pages_reserve_page(l->pages);
    unsigned rows = get_two_bytes(page + 3);
    struct page_leaf *leaf = NULL;

    if (frame_pages_store_made_page(l->pages, at, page, rows))
        leaf = list_add(&l->pages->leaves[TREE_LOOKUP + table]);
    if (leaf)
        *leaf = (struct page_leaf){at, l->next[table] - 1, rows};
    /* keep the order of these stores, because a kill may come between them */
    atomic_signal_fence(memory_order_release);
    begin_empty_page(page);
}

/* Make the cell of row ID. Returns its size in bytes. */
static unsigned make_cell(uint8_t cell[CELL_MAX], enum lookup_table table, uint64_t id,
                          const int64_t *values, const char *word)
{
    uint8_t *record = put_varint(cell + 1, id);
    uint8_t *types = record + 1;
    uint8_t *body = types + columns[table];

    record[0] = (uint8_t)(columns[table] + 1);
    types[0] = 0; /* the id is stored as the rowid, so its column is NULL */
    for (unsigned i = 1; i < columns[table]; i++) {
        int64_t value = values[i - 1];
        if (word && i == CHECK_WORD) {
            size_t length = strlen(word);
            types[i] = (uint8_t)(13 + 2 * length);
            memcpy(body, word, length);
            body += length;
        } else if (value == ROW_NONE) {
            types[i] = 0;
        } else {
            body = put_number(body, (uint64_t)value, &types[i]);
        }
    }
    cell[0] = (uint8_t)(body - record);
    return (unsigned)(body - cell);
}

/* Has PAGE room for one more cell of BYTES? */
static bool page_has_room(const uint8_t *page, unsigned bytes)
{
    unsigned rows = get_two_bytes(page + 3);
    unsigned content = get_two_bytes(page + 5);
    unsigned slots_end = 8 + 2 * (rows + 1);

    return rows != ROWS_MAX && content >= slots_end + bytes;
}

/* Append the cell to PAGE. The row count is set last, so that a kill leaves a valid page. */
static void append_cell_to_page(uint8_t *page, const uint8_t *cell, unsigned bytes)
{
    unsigned rows = get_two_bytes(page + 3);
    unsigned content = get_two_bytes(page + 5) - bytes;

    memcpy(page + content, cell, bytes);
    put_two_bytes(page + 8 + 2 * rows, content);
    put_two_bytes(page + 5, content);
    atomic_signal_fence(memory_order_release);
    page[4] = (uint8_t)(rows + 1);
}

/* Add row ID of TABLE to its index: lookups by code, checks by lookup. */
static void add_row_to_index(struct lookup_pages *l, enum lookup_table table, uint64_t id,
                             const int64_t *values)
{
    struct index_run *run = &l->checks;
    uint64_t key = (uint64_t)values[0]; /* for a check, the first value is the id of its lookup */

    if (!l->pages->indexed)
        return;
    if (table == PAGES_LOOKUP) {
        key = (uint64_t)values[2]; /* code_id */
        run = list_reach(&l->codes, (size_t)key);
    }
    add_key_to_run(l, run, 2, key, id);
}

void lookup_pages_add(struct lookup_pages *l, enum lookup_table table, const int64_t *values,
                      const char *word)
{
    uint8_t *page = l->window->page[table];
    uint8_t cell[CELL_MAX];
    unsigned bytes = make_cell(cell, table, l->next[table], values, word);

    if (!page_has_room(page, bytes))
        store_unfinished_page(l, table);
    append_cell_to_page(page, cell, bytes);
    add_row_to_index(l, table, l->next[table], values);
    l->next[table]++;
}

/* Read the number with serial TYPE and BYTES bytes at BODY. */
static int64_t read_number(const uint8_t *body, unsigned type, unsigned bytes)
{
    if (!type)
        return ROW_NONE;
    return type > 7 ? type - 8 : (int64_t)get_big_endian(body, bytes);
}

/* Read row SLOT of PAGE, a page of TABLE: its numbers into VALUES, its text into WORD. Returns
 * false if there is no such row, or if it makes no sense. */
static bool read_row_in_slot(uint8_t *page, unsigned slot, enum lookup_table table,
                             int64_t values[LOOKUP_COLUMNS], const char **word)
{
    uint64_t id;
    uint8_t *record = page_find_row_cell(page, slot, &id);
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
        values[i] = text ? (int64_t)bytes : read_number(body, type, bytes);
        if (text)
            *word = (const char *)body;
        body += bytes;
    }
    return true;
}

void lookup_pages_visit_new_rows(struct lookup_pages *l, enum lookup_table table,
                                 void (*row)(void *context, enum lookup_table table,
                                             int64_t *values, const char *word),
                                 void *context)
{
    const page_leaves *leaves = &l->pages->leaves[TREE_LOOKUP + table];
    uint64_t from = l->shown[table];
    size_t at = sorted_count(leaves->count, i, leaves->at[i].key < from);
    bool is_last = at == leaves->count;
    uint8_t copy[FRAME_PAGE_BYTES];
    uint8_t *page = l->window->page[table];
    int64_t values[LOOKUP_COLUMNS];
    const char *word;

    if (!is_last)
        page = frame_pages_get_page(l->pages, leaves->at[at].page, copy);
    for (unsigned slot = 0; page && read_row_in_slot(page, slot, table, values, &word); slot++)
        if ((uint64_t)values[0] >= from)
            row(context, table, values, word);
    l->shown[table] = is_last ? l->next[table] : leaves->at[at].key + 1;
}

/* ---- open, continue after a kill, and close ---- */

/* Remove rows from the end of PAGE: from the first row that makes no sense, or whose id is not
 * above *LAST and below END. Returns how many rows are left, and sets *LAST to the last one's
 * id. */
static unsigned cut_invalid_rows_from_page(uint8_t *page, enum lookup_table table, uint64_t end,
                                           uint64_t *last)
{
    int64_t values[LOOKUP_COLUMNS];
    unsigned rows = 0;
    const char *word;

    while (read_row_in_slot(page, rows, table, values, &word)) {
        uint64_t id = (uint64_t)values[0];
        if (id <= *last || id >= end)
            break;
        *last = id;
        rows++;
    }
    put_two_bytes(page + 3, rows);
    put_two_bytes(page + 5, rows ? get_two_bytes(page + 8 + 2 * (rows - 1)) : FRAME_PAGE_BYTES);
    return rows;
}

/* Add PAGE, which a killed collector stored as page number N, to the leaves of its table. LAST has
 * the id of each table's last row so far. */
static void take_over_stored_page(struct lookup_pages *l, uint32_t n, uint8_t *page,
                                  uint64_t last[])
{
    uint64_t id;
    uint8_t *record = page_find_row_cell(page, 0, &id);
    enum lookup_table table = PAGES_LOOKUP;
    struct page_leaf *leaf;
    unsigned had, rows;

    if (!record)
        return;
    if (*record == CHECK_COLUMNS + 1)
        table = PAGES_CHECK;
    had = get_two_bytes(page + 3);
    rows = cut_invalid_rows_from_page(page, table, l->next[table], &last[table]);
    leaf = rows ? list_add(&l->pages->leaves[TREE_LOOKUP + table]) : NULL;
    if (leaf)
        *leaf = (struct page_leaf){n, last[table], rows};
    if (rows != had)
        frame_pages_rewrite_page(l->pages, n, page);
}

/* Continue with the rows that a killed collector has written, without those it did not commit. */
static void continue_pages_of_killed_collector(struct lookup_pages *l)
{
    uint64_t last[LOOKUP_TABLES] = {0};

    for (uint32_t n = 0; n < l->pages->cells.count; n++) {
        uint8_t copy[FRAME_PAGE_BYTES];
        uint8_t *page = NULL;
        if (l->pages->cells.at[n] == FRAME_PAGE_OTHER)
            page = frame_pages_get_page(l->pages, n, copy);
        if (page)
            take_over_stored_page(l, n, page, last);
    }
    for (enum lookup_table table = 0; table < LOOKUP_TABLES; table++) {
        if (!cut_invalid_rows_from_page(l->window->page[table], table, l->next[table],
                                        &last[table]))
            /* begin an empty page: no row was committed that is not stored in another page */
            begin_empty_page(l->window->page[table]);
        l->next[table] = last[table] + 1;
    }
}

void lookup_pages_open(struct lookup_pages *l, struct frame_pages *pages,
                       struct lookup_window *window, uint64_t *next, bool resume)
{
    *l = (struct lookup_pages){
        .pages = pages,
        .window = window,
        .next = next,
        .shown = {1, 1},
    };
    pages->indexed = !resume;
    if (resume) {
        continue_pages_of_killed_collector(l);
        return;
    }
    for (int table = 0; table < LOOKUP_TABLES; table++)
        begin_empty_page(window->page[table]);
}

static void free_run(struct index_run *run)
{
    list_free(&run->keys);
    list_free(&run->leaves);
}

void lookup_pages_close(struct lookup_pages *l)
{
    list_each(run, &l->codes)
        free_run(run);
    list_free(&l->codes);
    free_run(&l->checks);
}

void lookup_pages_store_unfinished_pages(struct lookup_pages *l)
{
    for (int table = 0; table < LOOKUP_TABLES; table++)
        if (get_two_bytes(l->window->page[table] + 3))
            store_unfinished_page(l, table);
}

void lookup_pages_finish(struct lookup_pages *l)
{
    lookup_pages_store_unfinished_pages(l);
    if (l->pages->indexed) {
        join_runs_into_leaves(l, TREE_LOOKUP_CODE, l->codes.at, l->codes.count);
        join_runs_into_leaves(l, TREE_CHECK_LOOKUP, &l->checks, 1);
    }
}
