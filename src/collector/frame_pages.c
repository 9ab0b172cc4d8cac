/* collector/frame_pages.c -- writes the b-tree of `frame`. The interface:
 * collector/frame_pages.h.
 *
 * This file writes pages of a SQLite database without SQLite. This comment explains why that is
 * safe: what a page looks like, where it lies, who reads it when, and what is left after a kill.
 *
 * 1. A LEAF PAGE
 *
 *     0        1   3       5         7   8
 *     | 13 | 0 0 | cells | content | 0 | pointer | pointer | ... |   free   | cell | cell | ... |
 *                                                                           ^ content
 *
 * All numbers are big endian. `pointer` and `content` are offsets in the page. The pointers are in
 * the order of the ids. The cells are in the order in which their frames ended. A cell is
 *
 *     payload length, rowid (both varints), record
 *
 * and a record is its header's length, one serial type for each column, then the columns' bytes:
 *
 *     column   start took parent_distance code thread | exit kind outcome cache_entry
 *     type     int   int  int or NULL     int  int    | int  int  int     int
 *
 * Serial types 1 2 3 4 5 6 are integers of 1 2 3 4 6 8 bytes. Types 8 and 9 are the constants 0 and
 * 1, which take no bytes. Type 0 is NULL. A record may end early: columns that are missing have
 * their defaults. So the last four columns are stored only up to the last one that is not 0.
 * frame_id is the rowid: the table declares it as the last column, and no record contains it.
 *
 * A row may be stored before its frame has ended. It then has all columns except, perhaps,
 * cache_entry; its took_ns is -1, and took, exit and outcome have the widest type (6, 1 and 1), so
 * that their values can be written into the cell later without moving a byte. change_stored_row()
 * changes a row only if it finds these three types.
 *
 * 2. WHERE A PAGE LIES
 *
 * Pages are numbered from 0 in the order in which they are taken. Page n is file page first + n, or
 * first + n + 1 beyond SQLite's lock page. So a page's number tells where the page is in the file,
 * and a frame's id tells the number of its page. Pages can be written in any order.
 *
 *     trace.db-frames, while frames are recorded:
 *
 *     | 1 .. first-1          | 0 | 1 | 2 |   | 4 | 5 | ...      each page is filled by the decoder
 *     | written by SQLite:    |   |   |   |   |   |   |          of one thread; page 3 is being
 *     | schema, empty tables  |   |   |   | 3 |   |   |          filled: a hole in the file
 *
 * A page is in one of three places:
 *
 *     with a decoder   rows in struct decode_place, not yet a page; its element of `cells` is 0
 *     in the window    a whole page in shared memory: number >= written, and `holds` names it
 *     in the file      number < written, or its decoder stored it after `written` had passed it
 *
 * The window exists so that pages are written in pieces of 1 MB. write_pages_in_window() only moves
 * `written` upwards. If a slow thread's page is stored after `written` has passed it, the page is
 * written to the file by itself.
 *
 * 3. WHO READS WHICH PAGE WHEN
 *
 *     program's threads    none: they write words into rings
 *     the collector        all pages
 *     a reader of a live   none: it opens trace.db, which SQLite writes. Lookups and checks are
 *       recording          copied there row by row (lookup_pages_visit_new_rows); frames are not
 *     SQLite               none, until frame_pages_finish_file() has returned
 *     a later collector    all pages in the window and in the file
 *     a reader of the      all pages, once trace.db-frames has replaced trace.db
 *       finished trace
 *
 * While frames are recorded, the file ends at page first - 1 for SQLite, since page 1 holds the
 * number of pages. One write of page 1's first 100 bytes hands our pages over to SQLite. These are
 * the steps; that write is the fourth:
 *
 *     leaves        write_pages_in_window() writes what is still in the window
 *     interior      make_interior_levels(): pages behind the last leaf; then the root, which is
 *     and roots       the page that SQLite made for the empty table. If a tree has one leaf, its
 *                     root is a copy of that leaf
 *     free pages    holes, and leaves that were copied: SQLite's free list, at the end of the file
 *     header        page count, free list, change counter
 *     finished = 1  in shared memory: from here on no page may be changed
 *
 * 4. WHAT A KILL LEAVES
 *
 * A collector may be killed between any two instructions. The kernel keeps the window (shared
 * memory) and all finished writes. The next collector uses both and carries on:
 *
 *     killed while                      what the next collector finds and does
 *     a decoder fills rows              rows below decode_at.rows and cells below decode_at.cells
 *                                       count; the words of later ones are decoded again and give
 *                                       the same rows and cells (decode.h)
 *     store_page() copies into the      `holds` is 0: no page there. The words were not committed
 *       window                          yet, and the page is stored again
 *     write_pages_in_window() writes    `written` has not moved: the same pages are written again
 *     a page is written by itself       the page is whole, missing, or cut off in the middle; its
 *                                       words were not committed, so it is written again
 *     change_stored_row() changes       some of the three values are set. The same words are
 *                                       decoded again and set the same values
 *     frame_pages_remove_row() writes   the old page in the window, or the new page in the file,
 *                                       which counts once `holds` is 0
 *     make_all_trees() writes           leaves are as before, since no leaf is changed here: all
 *                                       levels are made again, over the same pages
 *     after the header was written      as before, or `finished` is 1 and no page is changed
 *
 * If the machine crashes, shared memory is lost, and so are writes that the kernel has not
 * finished. Then recorder_open_window() takes as many leaves as the file has. frame_pages_open()
 * trusts those whose first cell has the expected id and form; the others become holes.
 *
 * If the disk is full, handle_disk_full() gives up the last pages: they may be half written, and
 * the rest of the database needs room. `limit` is then the first page that is not stored. Rows of
 * later pages are counted in `lost`. */
#include "collector/frame_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* a page has room for 4084 bytes / (4 page number + 9 key + 2 pointer), rounded down */
    INTERIOR_CHILDREN = 250,
    /* a page has room for 4084 bytes / (4 page number + 20 record + 2 pointer), rounded down */
    INDEX_CHILDREN = 150,
    WRITE_PAGES = 256, /* pages that are written together: 1 MB */
    /* number of pages that are given up when the disk is full, to make room for the rest of the
     * database */
    DISK_FULL_PAGES = 256,
    KEEP_BATCH = 256, /* the most pages that are dropped together because of their age */
    /* number of pages of disk space that are reserved, and freed when the disk is full */
    KEEP_BALLAST = 128,
    KEEP_SHARE = 64, /* at least 1/64 of the pages are dropped at a time */
    /* A page that is not full is stored if more than KEEP_BEHIND pages, and more than one in
     * KEEP_OLD of the stored pages, were taken after it. */
    KEEP_BEHIND = 16,
    KEEP_OLD = 8,
    KEEP_NEXT = 16, /* pages after the dropped ones that tell how far the decoder has come */
    /* Each EARLY_PAGES dropped pages allow one more row of `early_rows`, up to EARLY_ROWS_MOST. So
     * these rows take little of the room that the dropped pages leave. */
    EARLY_PAGES = 16,
    EARLY_ROWS_MOST = 1024,
    /* the lists of pages are compacted when this number of their pages was dropped */
    KEEP_COMPACT = 4096,
};

const struct number_form number_form_of_bits[65] = {
    {8, 0, 0},
    {9, 0, 0},
    [2 ... 7] = {1, 1, 56},
    [8 ... 15] = {2, 2, 48},
    [16 ... 23] = {3, 3, 40},
    [24 ... 31] = {4, 4, 32},
    [32 ... 47] = {5, 6, 16},
    [48 ... 64] = {6, 8, 0},
};

/* ---- read cells: rows as SQLite stores them ---- */

/* Where the parts of a stored cell begin. */
struct cell {
    uint8_t *start, *type, *end;
    unsigned columns; /* number of columns in the record */
    uint8_t *column[FRAME_COLUMNS];
};

uint8_t *page_find_row_cell(uint8_t *page, unsigned slot, uint64_t *id)
{
    uint8_t *p = page + get_two_bytes(page + 8 + 2 * (slot % FRAME_PAGE_ROWS));
    uint8_t *end = page + FRAME_PAGE_BYTES;

    if (page[0] != PAGE_TABLE || slot >= get_two_bytes(page + 3) || slot >= FRAME_PAGE_ROWS ||
        p < page + 8)
        return NULL;
    for (*id = 0, p++; p < end && *p & 0x80; p++)
        *id = (*id | (*p & 0x7f)) << 7;
    if (end - p < 2)
        return NULL;
    *id |= *p++;
    return p;
}

/* Find the parts of the cell in SLOT of PAGE. Returns false if the cell exceeds the page or was not
 * written by us. */
static bool parse_cell(uint8_t *page, unsigned slot, struct cell *cell)
{
    uint8_t *p;
    uint8_t *end = page + FRAME_PAGE_BYTES;
    uint64_t id;
    bool is_ours;

    cell->start = page + get_two_bytes(page + 8 + 2 * (slot % FRAME_PAGE_ROWS));
    p = page_find_row_cell(page, slot, &id);
    if (!p)
        return false;
    cell->columns = *p++ - 1u;
    is_ours = cell->columns >= FRAME_COLUMNS_LEAST && cell->columns <= FRAME_COLUMNS;
    if (!is_ours || end - p < cell->columns)
        return false;
    cell->type = p;
    p += cell->columns;
    for (unsigned i = 0; i < cell->columns; i++) {
        cell->column[i] = p;
        if (cell->type[i] > 9 || end - p < frame_bytes_of_type[cell->type[i]])
            return false;
        p += frame_bytes_of_type[cell->type[i]];
    }
    cell->end = p;
    return true;
}

/* Return the value of a column; 0 if the record ends before the column. */
static uint64_t read_cell_column(const struct cell *cell, unsigned column)
{
    unsigned type = column < cell->columns ? cell->type[column] : 8;

    return type >= 8 ? type - 8 : get_big_endian(cell->column[column], frame_bytes_of_type[type]);
}

/* Read the row in SLOT of the page DATA. Returns false if there is no such row. */
static bool read_row_in_slot(uint8_t *data, unsigned slot, struct frame_row *row)
{
    struct cell cell;
    uint64_t took, distance, id;

    if (!parse_cell(data, slot, &cell))
        return false;
    page_find_row_cell(data, slot, &id);
    *row = (struct frame_row){.start_ns = read_cell_column(&cell, COLUMN_START),
                              .code_id = (uint32_t)read_cell_column(&cell, COLUMN_CODE),
                              .thread_id = (uint32_t)read_cell_column(&cell, COLUMN_THREAD),
                              .cache_entry_id = (uint32_t)read_cell_column(&cell, COLUMN_ENTRY),
                              .exit = (uint8_t)read_cell_column(&cell, COLUMN_EXIT),
                              .kind = (uint8_t)read_cell_column(&cell, COLUMN_KIND),
                              .outcome = (uint8_t)read_cell_column(&cell, COLUMN_OUTCOME) & 0x7f};
    took = read_cell_column(&cell, COLUMN_TOOK);
    row->ended = (int64_t)took >= 0;
    if (row->ended)
        row->end_ns = row->start_ns + took;
    distance = read_cell_column(&cell, COLUMN_PARENT);
    if (distance && distance < id)
        row->parent_id = id - distance;
    return true;
}

/* ---- find pages in the window and in the file, read them and write them ---- */

/* With --keep: return where page PAGE is in the file, and the times of its rows. */
static inline struct page_place *file_place_of_page(const struct frame_pages *w, uint64_t page)
{
    return &w->keep.places.at[page - w->base];
}

/* Return the address of the number of rows in page PAGE. */
static inline uint8_t *address_of_row_count(const struct frame_pages *w, uint64_t page)
{
    return &w->cells.at[page - w->base];
}

/* Return 1 + the number of the last page in `cells`. */
static inline uint32_t end_of_known_pages(const struct frame_pages *w)
{
    return w->base + (uint32_t)w->cells.count;
}

/* Return the slot of PAGE: which file page behind file page `first` it is. */
static inline uint64_t slot_of_page(const struct frame_pages *w, uint64_t page)
{
    return w->keep.on ? file_place_of_page(w, page)->slot : page;
}

/* Return the number of the file page in SLOT. */
static uint64_t file_page_in_slot(const struct frame_pages *w, uint64_t slot)
{
    uint64_t number = w->window->first + slot;

    return number >= FRAME_LOCK_PAGE ? number + 1 : number;
}

static uint64_t file_page_of_page(const struct frame_pages *w, uint64_t page)
{
    return file_page_in_slot(w, slot_of_page(w, page));
}

static int write_all_bytes(struct frame_pages *w, const void *data, size_t bytes, uint64_t at)
{
    const char *p = data;

    while (bytes) {
        ssize_t wrote = pwrite(w->fd, p, bytes, (off_t)at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            if (!w->error)
                w->error = wrote < 0 ? errno : EIO;
            return -1;
        }
        p += wrote;
        bytes -= (size_t)wrote;
        at += (size_t)wrote;
    }
    return 0;
}

static int write_page(struct frame_pages *w, uint32_t page, const uint8_t *data)
{
    return write_all_bytes(w, data, FRAME_PAGE_BYTES,
                           (file_page_of_page(w, page) - 1) * FRAME_PAGE_BYTES);
}

/* Read the file page with the number NUMBER. */
static int read_file_page(struct frame_pages *w, uint64_t number, uint8_t *data)
{
    ssize_t got;

    do
        got = pread(w->fd, data, FRAME_PAGE_BYTES, (off_t)(number - 1) * FRAME_PAGE_BYTES);
    while (got < 0 && errno == EINTR);
    return got == FRAME_PAGE_BYTES ? 0 : -1;
}

static int read_page(struct frame_pages *w, uint32_t page, uint8_t *data)
{
    return read_file_page(w, file_page_of_page(w, page), data);
}

static uint8_t *page_in_window(struct frame_pages *w, uint32_t page)
{
    uint32_t slot = page % FRAME_WINDOW_PAGES;

    if (page < w->window->written || w->window->holds[slot] != page + 1)
        return NULL;
    return w->window->page[slot];
}

/* The disk is full: drop those leaves whose pages are not stored, from page `limit` on, and count
 * their rows as lost. In these leaves `id` is the number of rows. */
static void drop_leaves_of_unstored_pages(struct frame_pages *w, page_leaves *leaves)
{
    for (; leaves->count; leaves->count--) {
        const struct page_leaf *last = &leaves->at[leaves->count - 1];
        if (last->page < w->limit)
            break;
        w->lost += last->id;
    }
}

/* ---- with --keep: drop old pages and reuse their places in the file ---- */

static void keep_rows_of_page(struct frame_pages *w, uint32_t page, uint64_t from_ns);

/* Remove dropped pages from the lists of pages, once they take more than half of the lists. */
static void remove_dropped_pages_from_lists(struct frame_pages *w)
{
    struct page_window *keep = &w->keep;
    uint32_t gone = w->window->low - w->base;

    if (gone < KEEP_COMPACT || gone < w->cells.count / 2)
        return;
    w->cells.count -= gone;
    keep->places.count -= gone;
    memmove(w->cells.at, w->cells.at + gone, w->cells.count);
    memmove(keep->places.at, keep->places.at + gone, keep->places.count * sizeof *keep->places.at);
    w->base += gone;
}

/* Return 1 + the number of the last page that is in the file and can be dropped. There may be no
 * memory for the places of pages from `limit` on. */
static uint32_t end_of_written_pages(const struct frame_pages *w)
{
    return MAX(w->window->low, MIN(w->window->written, w->limit));
}

/* Return a time up to which every thread has been decoded. In each of the KEEP_NEXT pages from PAGE
 * on, some frame began last; the earliest of these times is returned. UINT64_MAX if none of these
 * pages is stored. */
static uint64_t get_decoded_time(const struct frame_pages *w, uint32_t page)
{
    const uint32_t end = MIN(page + KEEP_NEXT, MIN(w->window->next_page, w->limit));
    uint64_t earliest = UINT64_MAX;

    for (; page < end; page++) {
        uint64_t last_ns = file_place_of_page(w, page)->last_start_ns;
        if (*address_of_row_count(w, page) && last_ns) /* 0 in pages of other tables */
            earliest = MIN(earliest, last_ns);
    }
    return earliest;
}

/* Return the new from_ns for when the pages from window->low up to END are dropped. This is the
 * time at which the last of their frames began. Pages of a thread that was decoded ahead of the
 * others are left out of this while they have few rows, which `early_rows` then pays for. */
static uint64_t choose_from_ns(struct frame_pages *w, uint32_t end)
{
    const uint64_t decoded_ns = get_decoded_time(w, end);
    const uint32_t allowed = w->keep.early_rows + (end - w->window->low) / EARLY_PAGES;
    uint64_t last_but_early_ns = w->window->from_ns;
    uint64_t last_ns = w->window->from_ns;
    uint32_t early_rows = 0;

    w->keep.early_rows = MIN(allowed, (uint32_t)EARLY_ROWS_MOST);
    for (uint32_t page = w->window->low; page < end; page++) {
        const uint64_t page_ns = file_place_of_page(w, page)->last_start_ns;
        const uint32_t rows = *address_of_row_count(w, page);
        if (!rows)
            continue;
        last_ns = MAX(last_ns, page_ns);
        if (page_ns > decoded_ns)
            early_rows += rows;
        else
            last_but_early_ns = MAX(last_but_early_ns, page_ns);
    }
    if (early_rows > w->keep.early_rows)
        return last_ns;
    w->keep.early_rows -= early_rows;
    return last_but_early_ns;
}

/* Drop the COUNT oldest pages, which are in the file. Before that, pass those of their rows to
 * keep.row() whose frames are open, or ended recently. */
static void drop_oldest_pages(struct frame_pages *w, uint32_t count)
{
    struct frame_window *window = w->window;
    /* begin() stores pages, which may call this function again if the disk is full */
    const bool is_first = !w->keep.is_dropping;
    uint64_t from_ns;
    uint32_t low;

    w->keep.is_dropping = true;
    if (is_first)
        w->keep.begin(w->keep.context);
    w->keep.is_dropping = !is_first;
    low = window->low;
    count = MIN(count, end_of_written_pages(w) - low);
    from_ns = choose_from_ns(w, low + count);

    for (uint32_t page = low; page < low + count; page++) {
        const struct page_place *place = file_place_of_page(w, page);
        bool outlasts = place->open || place->last_end_ns > from_ns;
        if (*address_of_row_count(w, page) && outlasts)
            keep_rows_of_page(w, page, from_ns);
    }
    w->keep.rows_end(w->keep.context);
    window->from_ns = from_ns;
    /* keep the order of these stores, because a kill may come between them */
    atomic_signal_fence(memory_order_release);
    window->low = low + count;
    for (uint32_t page = low + count; page-- > low;) {
        /* from the newest page to the oldest, so that the next pages get neighbouring slots */
        uint32_t *slot = list_add(&w->keep.free);
        if (slot)
            *slot = file_place_of_page(w, page)->slot;
        *address_of_row_count(w, page) = 0;
    }
    remove_dropped_pages_from_lists(w);
}

/* Is page PAGE so old that it may be dropped? */
static bool is_page_too_old(const struct frame_pages *w, uint32_t page)
{
    const struct page_place *place = file_place_of_page(w, page);

    if (!*address_of_row_count(w, page) || place->last_start_ns >= w->keep.before_ns)
        return false;
    return place->last_start_ns;
}

/* Return how many of the oldest pages to drop now. Only pages that are in the file can be
 * dropped. */
static uint32_t number_of_pages_to_drop(struct frame_pages *w)
{
    const struct frame_window *window = w->window;
    uint64_t stored = window->next_page - window->low;
    uint32_t written = end_of_written_pages(w) - window->low;
    uint32_t most = written < KEEP_BATCH ? written : KEEP_BATCH;
    uint32_t old = 0;
    uint64_t count = 0;

    while (old < most && is_page_too_old(w, window->low + old))
        old++;
    if (stored > w->keep.most)
        count = stored - w->keep.most;
    if (count && count < w->keep.most / KEEP_SHARE)
        /* drop more at once, because each call of drop_oldest_pages() costs a commit */
        count = w->keep.most / KEEP_SHARE;
    if (count < old)
        count = old;
    if (count > written)
        count = written;
    return (uint32_t)count;
}

/* Drop one in KEEP_SHARE of the pages, or fewer if fewer are in the file. */
static void drop_share_of_pages(struct frame_pages *w)
{
    uint32_t most = end_of_written_pages(w) - w->window->low;
    uint32_t count = 1 + (w->window->next_page - w->window->low) / KEEP_SHARE;

    if (most)
        drop_oldest_pages(w, count < most ? count : most);
}

void frame_pages_drop_old_pages(struct frame_pages *w)
{
    uint32_t count;

    while (w->keep.on && (count = number_of_pages_to_drop(w)) > 0)
        drop_oldest_pages(w, count);
}

bool frame_pages_is_page_old(const struct frame_pages *w, uint32_t page)
{
    const struct page_window *keep = &w->keep;
    uint64_t behind = w->window->next_page - page;
    uint64_t stored = w->window->next_page - w->window->low;

    if (!keep->on)
        return false;
    return behind > KEEP_BEHIND && behind > stored / KEEP_OLD;
}

/* Find a place in the file for PAGE, which a thread will take now. Returns false without memory. */
static bool take_slot_for_page(struct frame_pages *w, uint32_t page)
{
    struct page_window *keep = &w->keep;
    struct page_place *place;

    frame_pages_drop_old_pages(w);
    if (!keep->free.count && keep->slots >= keep->slots_most)
        drop_share_of_pages(w); /* make room, because the file cannot grow */
    place = list_reach(&keep->places, page - w->base);
    if (!place)
        return false;
    *place = (struct page_place){0};
    if (keep->free.count)
        place->slot = keep->free.at[--keep->free.count];
    else
        place->slot = keep->slots++;
    return true;
}

/* Reserve disk space, which is given back when the disk is full. It is for rows of dropped pages
 * that move to another table. */
static void reserve_disk_space(struct frame_pages *w)
{
    off_t at = (off_t)(file_page_in_slot(w, 0) - 1) * FRAME_PAGE_BYTES;

    if (!fallocate(w->fd, FALLOC_FL_KEEP_SIZE, at, KEEP_BALLAST * FRAME_PAGE_BYTES)) {
        w->keep.slots = KEEP_BALLAST;
        w->keep.has_ballast = true;
    }
}

static void release_reserved_disk_space(struct frame_pages *w)
{
    off_t at = (off_t)(file_page_in_slot(w, 0) - 1) * FRAME_PAGE_BYTES;

    if (w->keep.has_ballast)
        fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
                  KEEP_BALLAST * FRAME_PAGE_BYTES);
    w->keep.has_ballast = false;
}

/* Drop COUNT pages, or all if there are fewer. Give the disk space of half of them back. */
static void free_disk_space_of_old_pages(struct frame_pages *w, uint32_t count)
{
    struct page_window *keep = &w->keep;
    const size_t had = keep->free.count;
    const uint32_t most = w->window->written - w->window->low;

    release_reserved_disk_space(w);
    drop_oldest_pages(w, count < most ? count : most);
    for (size_t given = (keep->free.count - had) / 2; given; given--) {
        uint32_t slot = keep->free.at[had + given - 1];
        keep->free.at[had + given - 1] = keep->free.at[--keep->free.count];
        fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(file_page_in_slot(w, slot) - 1) * FRAME_PAGE_BYTES, FRAME_PAGE_BYTES);
    }
}

void frame_pages_drop_oldest(struct frame_pages *w, uint64_t pages)
{
    free_disk_space_of_old_pages(w, (uint32_t)pages);
}

/* The disk is full, so PAGE cannot be written. From now on the file does not grow: drop old pages,
 * and give their places to the pages that have none in the file yet. Returns false if there are no
 * old pages. */
static bool stop_growing_file(struct frame_pages *w, uint32_t page)
{
    struct page_window *keep = &w->keep;
    struct frame_window *window = w->window;
    struct stat status;
    uint32_t have;

    if (!keep->on || page < window->low)
        return false;
    if (fstat(w->fd, &status))
        return false;
    have = (uint32_t)(status.st_size / FRAME_PAGE_BYTES) + 1 - window->first;
    if (keep->slots > have)
        keep->slots = have;
    keep->slots_most = keep->slots;
    free_disk_space_of_old_pages(w, 2 + (window->next_page - window->low) / KEEP_SHARE);
    for (uint32_t n = page; n < window->next_page; n++) {
        struct page_place *place = file_place_of_page(w, n);
        bool is_missing = n == page || place->slot >= have;
        if (!is_missing)
            continue;
        if (!keep->free.count)
            free_disk_space_of_old_pages(w, KEEP_BATCH);
        if (!keep->free.count)
            return false;
        place->slot = keep->free.at[--keep->free.count];
    }
    keep->shrunk = w->error;
    w->error = 0;
    return true;
}

/* Handle a full disk. Without --keep: store no more frames, and cut off the last pages. They may be
 * half written, and the rest of the database needs room. With --keep: drop the oldest pages, and go
 * on. */
static void handle_disk_full(struct frame_pages *w)
{
    if (w->keep.on && w->window->written > w->window->low) {
        free_disk_space_of_old_pages(w, KEEP_BATCH +
                                            (w->window->next_page - w->window->low) / KEEP_SHARE);
        w->keep.shrunk = w->error;
        w->error = 0;
        return;
    }
    uint32_t keep = w->window->written < w->limit ? w->window->written : w->limit;
    uint32_t given_back = DISK_FULL_PAGES + keep / 100;

    w->limit = keep > given_back ? keep - given_back : 0;
    w->indexed = false;
    if (!w->keep.on &&
        ftruncate(w->fd, (off_t)(file_page_of_page(w, w->limit) - 1) * FRAME_PAGE_BYTES)) {
        /* the file keeps its disk space, but the pages still do not count as stored */
    }
    for (uint32_t page = w->limit > w->base ? w->limit : w->base; page < end_of_known_pages(w);
         page++) {
        w->lost +=
            *address_of_row_count(w, page) == FRAME_PAGE_OTHER ? 0 : *address_of_row_count(w, page);
        *address_of_row_count(w, page) = 0;
    }
    for (int tree = TREE_LOOKUP; tree <= TREE_CHECK; tree++)
        drop_leaves_of_unstored_pages(w, &w->leaves[tree]);
}

/* With --keep: count the rows of COUNT pages from PAGE on as lost. The pages could not be
 * written. */
static void count_rows_of_lost_pages(struct frame_pages *w, uint32_t page, uint32_t count)
{
    for (uint32_t n = page; w->keep.on && n < page + count; n++) {
        w->lost += *address_of_row_count(w, n);
        *address_of_row_count(w, n) = 0;
    }
}

/* Write those of the pages from `written` to END that are in the window. Slow threads are still
 * filling the others, which will each be written by itself. */
static void write_pages_in_window(struct frame_pages *w, uint32_t end)
{
    struct frame_window *window = w->window;

    while (window->written < end) {
        uint32_t from = window->written;
        uint32_t slot = from % FRAME_WINDOW_PAGES;
        uint32_t count = 0;
        while (from + count < end && slot + count < FRAME_WINDOW_PAGES && count < WRITE_PAGES &&
               window->holds[slot + count] == from + count + 1 &&
               (count == 0 ||
                file_page_of_page(w, from + count) == file_page_of_page(w, from) + count))
            count++;
        if (count && from < w->limit &&
            write_all_bytes(w, window->page[slot], (size_t)count * FRAME_PAGE_BYTES,
                            (file_page_of_page(w, from) - 1) * FRAME_PAGE_BYTES)) {
            if (stop_growing_file(w, from))
                continue;
            count_rows_of_lost_pages(w, from, count);
            handle_disk_full(w);
        }
        window->written = from + (count ? count : 1);
    }
}

/* ---- open, take, store and read pages ---- */

/* Find out which pages a killed collector has stored, and how many rows they have. */
static void find_stored_pages(struct frame_pages *w)
{
    uint8_t page[FRAME_PAGE_BYTES];

    for (uint32_t n = w->base; n < end_of_known_pages(w); n++) {
        uint8_t *held = page_in_window(w, n);
        struct cell cell;
        uint64_t id;
        if (!held && read_page(w, n, page))
            continue;
        if (!held)
            held = page;
        /* A page that was never stored is a hole of zeros, or cut short. A page of another table
         * begins with a smaller id than a page of frames in the same place. */
        if (page_find_row_cell(held, 0, &id) && id != frame_id(n, 0))
            *address_of_row_count(w, n) = w->keep.on ? 0 : FRAME_PAGE_OTHER;
        else if (get_two_bytes(held + 3) <= FRAME_PAGE_ROWS && parse_cell(held, 0, &cell))
            *address_of_row_count(w, n) = (uint8_t)get_two_bytes(held + 3);
    }
}

/* Return which page of frames the page DATA is, or UINT32_MAX if it is none. */
static uint32_t number_of_stored_page(uint8_t *data)
{
    struct cell cell;
    uint64_t id;

    if (!page_find_row_cell(data, 0, &id) || !parse_cell(data, 0, &cell))
        return UINT32_MAX;
    return (id - 1) % FRAME_PAGE_ROWS ? UINT32_MAX : (uint32_t)((id - 1) / FRAME_PAGE_ROWS);
}

/* The shared memory is lost: set `low` and `next_page` from the pages in the file. */
static void find_window_bounds_in_file(struct frame_pages *w, uint32_t slots)
{
    uint8_t data[FRAME_PAGE_BYTES];
    uint32_t next = 0;

    for (uint32_t slot = 0; slot < slots; slot++) {
        uint32_t page = UINT32_MAX;
        if (!read_file_page(w, file_page_in_slot(w, slot), data))
            page = number_of_stored_page(data);
        if (page != UINT32_MAX && page >= next)
            next = page + 1;
    }
    w->window->next_page = w->window->written = next;
    w->window->low = next > slots ? next - slots : 0;
}

/* Find out by the ids of the rows which page a killed collector has stored in each slot of the
 * file. The remaining pages get the free slots. Returns false without memory. */
static bool find_page_slots(struct frame_pages *w)
{
    struct page_window *keep = &w->keep;
    const uint32_t low = w->window->low;
    const uint32_t stored = w->window->next_page - low;
    uint8_t data[FRAME_PAGE_BYTES];
    bool *found = calloc(stored + 1, 1);
    struct stat status;

    if (!found || fstat(w->fd, &status))
        return false;
    keep->slots = (uint32_t)(status.st_size / FRAME_PAGE_BYTES) + 1 - w->window->first;
    for (uint32_t slot = 0; slot < keep->slots; slot++) {
        uint32_t page = UINT32_MAX;
        uint32_t *free_slot;
        if (!read_file_page(w, file_page_in_slot(w, slot), data))
            page = number_of_stored_page(data);
        if (page - low < stored && !found[page - low]) {
            file_place_of_page(w, page)->slot = slot;
            found[page - low] = true;
        } else if ((free_slot = list_add(&keep->free))) {
            *free_slot = slot;
        }
    }
    for (uint32_t n = 0; n < stored; n++)
        if (!found[n])
            file_place_of_page(w, low + n)->slot =
                keep->free.count ? keep->free.at[--keep->free.count] : keep->slots++;
    free(found);
    return true;
}

/* For all stored pages, set the times in page_place from the pages' rows. */
static void set_times_of_all_pages(struct frame_pages *w)
{
    for (uint32_t page = w->window->low; page < w->window->next_page; page++) {
        struct page_place *place = file_place_of_page(w, page);
        uint8_t copy[FRAME_PAGE_BYTES];
        uint8_t *data = frame_pages_get_page(w, page, copy);
        for (unsigned slot = 0; data && slot < *address_of_row_count(w, page); slot++) {
            struct frame_row row;
            if (!read_row_in_slot(data, slot, &row))
                continue;
            place->last_start_ns = row.start_ns;
            place->open += !row.ended;
            if (row.end_ns > place->last_end_ns)
                place->last_end_ns = row.end_ns;
        }
    }
}

int frame_pages_open_window(struct frame_pages *w, int fd, struct frame_window *window, bool resume,
                            const struct page_window *keep)
{
    const bool is_kept = keep && keep->on;
    bool is_whole = resume && !window->finished && window->next_page;

    *w = (struct frame_pages){
        .fd = fd, .window = window, .limit = window->finished ? 0 : UINT32_MAX};
    if (is_kept) {
        w->keep = *keep;
        w->keep.slots_most = UINT32_MAX;
        w->keep.early_rows = EARLY_ROWS_MOST / 2;
        if (!resume)
            reserve_disk_space(w);
    }
    if (resume && w->keep.is_alone)
        find_window_bounds_in_file(w, window->next_page);
    w->base = window->low;
    if (!is_whole)
        return 0;
    if (window->next_page > w->base && !list_reach(&w->cells, window->next_page - 1 - w->base))
        return -1;
    if (is_kept && !list_add_many(&w->keep.places, w->cells.count))
        return -1;
    if (is_kept && !find_page_slots(w))
        return -1;
    find_stored_pages(w);
    if (is_kept)
        set_times_of_all_pages(w);
    return 0;
}

int frame_pages_open(struct frame_pages *w, int fd, struct frame_window *window, bool resume)
{
    return frame_pages_open_window(w, fd, window, resume, NULL);
}

void frame_pages_close(struct frame_pages *w)
{
    if (w->fd >= 0)
        close(w->fd);
    list_free(&w->cells);
    list_free(&w->keep.free);
    list_free(&w->keep.places);
    for (int tree = 0; tree < PAGE_TREES; tree++)
        list_free(&w->leaves[tree]);
    *w = (struct frame_pages){.fd = -1};
}

uint32_t frame_pages_reserve_page(struct frame_pages *w)
{
    uint32_t page = w->window->next_page;

    if (page >= w->window->written + FRAME_WINDOW_PAGES)
        write_pages_in_window(w, w->window->written + WRITE_PAGES);
    /* this hardly ever fails, because the lists take only a few bytes for each page */
    bool has_room = !w->keep.on || take_slot_for_page(w, page);
    has_room = list_reach(&w->cells, page - w->base) && has_room;
    if (!has_room && page < w->limit) {
        w->limit = page;
        w->error = ENOMEM;
    }
    w->window->next_page = page + 1;
    return page;
}

/* Make page PAGE from the first COUNT rows of FILL. The cells made so far take AT bytes. Rows of
 * open frames get cells with room for their ends. Returns false if the cells do not fit, which
 * happens only if a killed collector left damaged memory. */
static bool make_frame_page(uint8_t made[FRAME_PAGE_BYTES], uint32_t page, struct frame_fill *fill,
                            uint32_t count, uint32_t at)
{
    const unsigned room = FRAME_PAGE_ROOM - 2 * count;
    struct frame_repeats repeats = FRAME_REPEATS_NONE;
    unsigned content;

    for (uint32_t i = 0; i < count; i++)
        if (!fill->cell[i] && at <= room)
            at += frame_write_filled_cell(fill, page, i, at, false, &repeats);
    if (at > room)
        return false;
    content = FRAME_PAGE_BYTES - at;
    memset(made, 0, content);
    made[0] = PAGE_TABLE;
    put_two_bytes(made + 3, count);
    put_two_bytes(made + 5, content);
    for (uint32_t i = 0; i < count; i++)
        put_two_bytes(made + 8 + 2 * i, content + fill->cell[i] - 1);
    memcpy(made + content, fill->cell_bytes, at);
    return true;
}

/* Store MADE, which has COUNT rows, as page PAGE: in the window, or in the file if `written` has
 * passed the page. CELLS is the value to store for the page in w->cells. */
static void store_page(struct frame_pages *w, uint32_t page, const uint8_t *made, uint32_t count,
                       uint8_t cells)
{
    uint32_t slot = page % FRAME_WINDOW_PAGES;
    bool is_stored = true;

    *address_of_row_count(w, page) = cells;
    if (page >= w->window->written) {
        w->window->holds[slot] = 0; /* until the page is copied, the slot has none */
        /* keep the order of these stores, because a kill may come between them */
        atomic_signal_fence(memory_order_release);
        memcpy(w->window->page[slot], made, FRAME_PAGE_BYTES);
        atomic_signal_fence(memory_order_release);
        w->window->holds[slot] = page + 1;
    } else {
        is_stored = !write_page(w, page, made);
        if (!is_stored && stop_growing_file(w, page))
            is_stored = !write_page(w, page, made);
    }
    if (!is_stored) {
        *address_of_row_count(w, page) = 0; /* the file has a hole here, or half a page */
        w->lost += count;
        handle_disk_full(w);
    }
}

/* Pass ROW of a dropped page to keep.row() if its frame is open, or ended after FROM_NS. */
static void keep_row_if_needed(struct frame_pages *w, uint64_t id, const struct frame_row *row,
                               uint64_t from_ns)
{
    if (!row->ended || row->end_ns > from_ns)
        w->keep.row(w->keep.context, id, row);
}

/* Pass those rows of page PAGE to keep.row() whose frames are open, or ended after FROM_NS. */
static void keep_rows_of_page(struct frame_pages *w, uint32_t page, uint64_t from_ns)
{
    uint8_t copy[FRAME_PAGE_BYTES];
    uint8_t *data = frame_pages_get_page(w, page, copy);

    for (unsigned slot = 0; data && slot < *address_of_row_count(w, page); slot++) {
        struct frame_row row;
        if (read_row_in_slot(data, slot, &row))
            keep_row_if_needed(w, frame_id(page, slot), &row, from_ns);
    }
}

/* Set the times in page_place of page PAGE from its COUNT rows. */
static void set_times_of_page(struct frame_pages *w, uint32_t page, const struct frame_row *rows,
                              uint32_t count)
{
    struct page_place *place = file_place_of_page(w, page);

    place->open = 0;
    place->last_end_ns = 0;
    place->last_start_ns = rows[count - 1].start_ns;
    for (uint32_t i = 0; i < count; i++) {
        place->open += !rows[i].ended;
        if (rows[i].end_ns > place->last_end_ns)
            place->last_end_ns = rows[i].end_ns;
    }
}

/* Page PAGE was dropped while it was being filled. Pass those of its COUNT rows to keep.row() that
 * must be kept. */
static void keep_rows_of_dropped_page(struct frame_pages *w, uint32_t page,
                                      const struct frame_row *rows, uint32_t count)
{
    uint64_t from_ns = w->window->from_ns;

    if (rows[count - 1].start_ns > from_ns)
        from_ns = rows[count - 1].start_ns;
    for (uint32_t i = 0; i < count; i++)
        keep_row_if_needed(w, frame_id(page, i), &rows[i], from_ns);
    w->keep.rows_end(w->keep.context);
    w->window->from_ns = from_ns;
}

void frame_pages_store_filled_page(struct frame_pages *w, uint32_t page, struct frame_fill *fill,
                                   uint32_t count, uint32_t at)
{
    uint8_t made[FRAME_PAGE_BYTES];

    if (page < w->window->low) {
        keep_rows_of_dropped_page(w, page, fill->rows, count);
        return;
    }
    if (page >= w->limit) {
        w->lost += count;
        return;
    }
    if (!make_frame_page(made, page, fill, count, at)) {
        w->lost += count;
        return;
    }
    if (w->keep.on)
        set_times_of_page(w, page, fill->rows, count);
    store_page(w, page, made, count, (uint8_t)count);
}

bool frame_pages_store_made_page(struct frame_pages *w, uint32_t page, const uint8_t *made,
                                 uint32_t count)
{
    if (page < w->limit)
        store_page(w, page, made, count, FRAME_PAGE_OTHER);
    else
        w->lost += count;
    return page < w->limit;
}

uint8_t *frame_pages_get_page(struct frame_pages *w, uint64_t page, uint8_t copy[FRAME_PAGE_BYTES])
{
    uint8_t *data;

    if (page < w->window->low)
        return NULL;
    if (page >= w->window->next_page || page >= w->limit)
        return NULL;
    data = page_in_window(w, (uint32_t)page);
    return data ? data : read_page(w, (uint32_t)page, copy) ? NULL : copy;
}

void frame_pages_rewrite_page(struct frame_pages *w, uint32_t page, const uint8_t *data)
{
    if (data != page_in_window(w, page))
        write_page(w, page, data);
}

/* Return the stored page that holds frame ID; NULL if there is none. */
static uint8_t *find_page_of_frame(struct frame_pages *w, uint64_t id,
                                   uint8_t copy[FRAME_PAGE_BYTES])
{
    return id ? frame_pages_get_page(w, (id - 1) / FRAME_PAGE_ROWS, copy) : NULL;
}

bool frame_pages_read_row(struct frame_pages *w, uint64_t id, struct frame_row *row)
{
    uint8_t copy[FRAME_PAGE_BYTES];
    uint8_t *data = find_page_of_frame(w, id, copy);

    return data && read_row_in_slot(data, (unsigned)((id - 1) % FRAME_PAGE_ROWS), row);
}

uint64_t frame_pages_find_last_row(struct frame_pages *w, uint32_t thread_id, uint32_t except)
{
    uint8_t copy[FRAME_PAGE_BYTES], *data;
    struct cell cell;

    for (uint32_t page = w->window->next_page; page-- > w->window->low;) {
        data = page == except || page >= end_of_known_pages(w) || !*address_of_row_count(w, page)
                   ? NULL
                   : find_page_of_frame(w, frame_id(page, 0), copy);
        for (unsigned slot = data ? get_two_bytes(data + 3) : 0; slot--;)
            if (parse_cell(data, slot, &cell) &&
                read_cell_column(&cell, COLUMN_THREAD) == thread_id)
                return frame_id(page, slot);
    }
    return 0;
}

/* Note that a row of page PAGE has ended. After a kill the same end is noted again, so `open` may
 * become too small. Even so drop_oldest_pages() will look at the page, because of last_end_ns. */
static void note_row_end_on_page(struct frame_pages *w, uint32_t page, uint64_t end_ns)
{
    struct page_place *place;

    if (!w->keep.on)
        return;
    place = file_place_of_page(w, page);
    place->open -= place->open > 0;
    if (end_ns > place->last_end_ns)
        place->last_end_ns = end_ns;
}

/* Was the frame still open when this cell was made? Then three columns have the widest types. */
static bool is_cell_of_open_frame(const struct cell *cell)
{
    if (cell->columns < COLUMN_ENTRY || cell->type[COLUMN_TOOK] != 6)
        return false;
    return cell->type[COLUMN_EXIT] == 1 && cell->type[COLUMN_OUTCOME] == 1;
}

/* Set the outcome of the stored row of frame ID. With ENDS, also set its end and exit. took_ns
 * is written in one store, because readers take -1 for an open frame, and must not see half a
 * number. */
static void change_stored_row(struct frame_pages *w, uint64_t id, unsigned outcome, bool ends,
                              uint64_t end_ns, unsigned exit)
{
    uint8_t copy[FRAME_PAGE_BYTES];
    uint8_t *data = find_page_of_frame(w, id, copy);
    struct cell cell;

    if (!data || !parse_cell(data, (unsigned)((id - 1) % FRAME_PAGE_ROWS), &cell) ||
        !is_cell_of_open_frame(&cell))
        return;
    *cell.column[COLUMN_OUTCOME] = (uint8_t)outcome;
    if (ends) {
        put_big_endian(cell.column[COLUMN_TOOK], end_ns - read_cell_column(&cell, COLUMN_START), 8);
        *cell.column[COLUMN_EXIT] = (uint8_t)exit;
        note_row_end_on_page(w, (uint32_t)((id - 1) / FRAME_PAGE_ROWS), end_ns);
    }
    if (data == copy)
        write_page(w, (uint32_t)((id - 1) / FRAME_PAGE_ROWS), copy);
}

void frame_pages_set_outcome(struct frame_pages *w, uint64_t id, unsigned outcome)
{
    change_stored_row(w, id, outcome, false, 0, 0);
}

void frame_pages_set_frame_end(struct frame_pages *w, uint64_t id, uint64_t end_ns,
                               unsigned outcome, unsigned exit)
{
    change_stored_row(w, id, outcome, true, end_ns, exit);
}

/* Remove the row of frame ID from a copy of its page. The cells before its cell in the page move
 * up, so that no gap is left. The changed page is written to the file at once, because a kill could
 * leave half of a change in the window. */
void frame_pages_remove_row(struct frame_pages *w, uint64_t id)
{
    uint8_t made[FRAME_PAGE_BYTES];
    uint8_t *data = find_page_of_frame(w, id, made);
    uint32_t page = (uint32_t)((id - 1) / FRAME_PAGE_ROWS);
    uint32_t slot = (uint32_t)((id - 1) % FRAME_PAGE_ROWS);
    struct cell cell;
    unsigned content, start, bytes;

    if (!data || !*address_of_row_count(w, page) || slot + 1 != get_two_bytes(data + 3) ||
        !parse_cell(data, slot, &cell))
        return;
    content = get_two_bytes(data + 5);
    start = (unsigned)(cell.start - data);
    bytes = (unsigned)(cell.end - cell.start);
    if (content > start)
        return; /* this page was not written by us */
    memmove(made, data, FRAME_PAGE_BYTES);
    memmove(made + content + bytes, made + content, start - content);
    memset(made + content, 0, bytes);
    for (uint32_t i = 0; i < slot; i++) {
        unsigned other = get_two_bytes(made + 8 + 2 * i);
        if (other < start)
            put_two_bytes(made + 8 + 2 * i, other + bytes);
    }
    put_two_bytes(made + 8 + 2 * slot, 0);
    put_two_bytes(made + 3, slot);
    put_two_bytes(made + 5, content + bytes);
    if (write_page(w, page, made))
        return; /* the row stays, because the page could not be written */
    if (data != made) {
        atomic_signal_fence(memory_order_release);
        w->window->holds[page % FRAME_WINDOW_PAGES] = 0;
    }
    --*address_of_row_count(w, page);
}

/* ---- make the b-trees over the leaf pages, at the end ---- */

/* Make an interior page of TREE, whose children are the COUNT pages in CHILDREN. */
static void make_interior_page(uint8_t *page, enum page_tree_of tree,
                               const struct page_leaf *children, size_t count)
{
    unsigned content = FRAME_PAGE_BYTES;

    memset(page, 0, FRAME_PAGE_BYTES);
    page[0] = (tree >= TREE_LOOKUP_CODE ? PAGE_INDEX : PAGE_TABLE) - 8;
    /* SQLite keeps the last child in the page's header, as its right-most pointer */
    for (size_t i = 0; i + 1 < count; i++) {
        uint8_t cell[40];
        uint8_t *p = put_big_endian(cell, children[i].page, 4);
        p = tree >= TREE_LOOKUP_CODE ? put_index_record(p, children[i].key, children[i].id)
                                     : put_varint(p, children[i].key);
        content -= (unsigned)(p - cell);
        memcpy(page + content, cell, (size_t)(p - cell));
        put_two_bytes(page + 12 + 2 * i, content);
    }
    put_two_bytes(page + 3, (unsigned)count - 1);
    put_two_bytes(page + 5, content);
    patch_big_endian(page + 8, children[count - 1].page, 4);
}

/* Put the COUNT unused pages in EMPTY into SQLite's free list. The list's own pages are made from
 * *NEXT on. The unused pages are not changed: after a kill the trees are made again, which may need
 * a leaf that was copied to a root and is now unused. Returns false on error. */
static bool make_free_list(struct frame_pages *w, uint8_t *header, const uint32_t *empty,
                           size_t count, uint64_t *next)
{
    uint64_t last = 0;
    uint64_t trunks = 0;

    for (size_t at = 0, leaves; at < count; at += leaves, trunks++) {
        uint8_t trunk[FRAME_PAGE_BYTES] = {0};
        leaves = count - at < 1000 ? count - at : 1000;
        patch_big_endian(trunk, last, 4);
        patch_big_endian(trunk + 4, leaves, 4);
        for (size_t i = 0; i < leaves; i++)
            patch_big_endian(trunk + 8 + 4 * i, empty[at + i], 4);
        if (write_all_bytes(w, trunk, sizeof trunk, (*next - 1) * FRAME_PAGE_BYTES))
            return false;
        last = *next;
        *next += 1 + (*next + 1 == FRAME_LOCK_PAGE);
    }
    patch_big_endian(header + 32, last, 4);
    patch_big_endian(header + 36, count + trunks, 4);
    return true;
}

/* Make the interior pages of TREE over COUNT children, level by level up to the root, from page
 * *NEXT on. Returns false on error. */
static bool make_interior_levels(struct frame_pages *w, enum page_tree_of tree,
                                 struct page_leaf *children, size_t count, uint64_t *next)
{
    const size_t most = tree >= TREE_LOOKUP_CODE ? INDEX_CHILDREN : INTERIOR_CHILDREN;
    struct frame_window *window = w->window;

    while (count > 1) {
        size_t pages = (count + most - 1) / most;
        size_t made = 0;
        for (size_t i = 0; i < pages; i++) {
            /* spread the children evenly, so that no page has only one child */
            size_t from = count * i / pages;
            size_t to = count * (i + 1) / pages;
            uint64_t number = pages == 1 ? window->root[tree] : *next;
            /* use the window's memory, because all of its pages were written */
            make_interior_page(window->page[made++], tree, children + from, to - from);
            children[i] = (struct page_leaf){number, children[to - 1].key, children[to - 1].id};
            *next += pages > 1;
            if (made == FRAME_WINDOW_PAGES || i + 1 == pages || *next == FRAME_LOCK_PAGE) {
                if (write_all_bytes(w, window->page, made * FRAME_PAGE_BYTES,
                                    (number - made) * FRAME_PAGE_BYTES))
                    return false;
                made = 0;
                *next += *next == FRAME_LOCK_PAGE;
            }
        }
        count = pages;
    }
    return true;
}

/* Is PAGE a stored page of frames? */
static bool is_page_with_frames(const struct frame_pages *w, uint32_t page)
{
    return *address_of_row_count(w, page) && *address_of_row_count(w, page) <= FRAME_PAGE_ROWS;
}

/* Write the leaves of TREE to CHILDREN, and mark their slots in USED. Returns the number of
 * leaves. */
static size_t collect_leaves(struct frame_pages *w, enum page_tree_of tree, uint32_t stored,
                             struct page_leaf *children, bool *used)
{
    size_t count = 0;

    if (tree == TREE_FRAME) {
        for (uint32_t n = w->window->low; n < stored; n++)
            if (is_page_with_frames(w, n))
                children[count++] = (struct page_leaf){n, (uint64_t)(n + 1) * FRAME_PAGE_ROWS, 0};
    } else if (tree < TREE_LOOKUP_CODE || w->indexed) {
        for (; count < w->leaves[tree].count; count++)
            children[count] = w->leaves[tree].at[count];
    }
    for (size_t i = 0; i < count; i++) {
        /* A single leaf is not used: it is copied to the root, because an interior page needs at
         * least two children. */
        used[slot_of_page(w, children[i].page)] = count > 1;
        children[i].page = file_page_of_page(w, children[i].page);
    }
    return count;
}

/* Make TREE over COUNT children, which are leaves. Returns false on error. */
static bool make_tree(struct frame_pages *w, enum page_tree_of tree, struct page_leaf *children,
                      size_t count, uint64_t *next)
{
    uint8_t page[FRAME_PAGE_BYTES] = {
        tree >= TREE_LOOKUP_CODE ? PAGE_INDEX : PAGE_TABLE, [5] = FRAME_PAGE_BYTES >> 8};

    if (count > 1)
        return make_interior_levels(w, tree, children, count, next);
    return (!count || pread(w->fd, page, sizeof page,
                            (off_t)(children[0].page - 1) * FRAME_PAGE_BYTES) == sizeof page) &&
           !write_all_bytes(w, page, sizeof page,
                            (uint64_t)(w->window->root[tree] - 1) * FRAME_PAGE_BYTES);
}

/* Make the trees over the stored pages. Returns the number of frames, or -1. */
static int64_t make_all_trees(struct frame_pages *w)
{
    uint32_t stored = w->window->next_page < w->limit ? w->window->next_page : w->limit;
    const uint32_t slots = w->keep.on ? w->keep.slots : stored;
    uint32_t *empty;
    uint64_t next = file_page_in_slot(w, slots);
    uint8_t header[100];
    size_t empty_count = 0;
    struct page_leaf *children;
    int64_t rows = 0;
    bool done, *used;

    children = malloc((slots + 1) * sizeof *children);
    empty = malloc((slots + 1) * sizeof *empty);
    used = calloc(slots + 1, 1);
    done = children && empty && used && pread(w->fd, header, sizeof header, 0) == sizeof header;
    for (int tree = 0; done && tree < PAGE_TREES; tree++)
        done = make_tree(w, tree, children, collect_leaves(w, tree, stored, children, used), &next);
    w->leaves_of_frames = 0;
    for (uint32_t n = w->window->low; done && n < stored; n++)
        if (is_page_with_frames(w, n)) {
            rows += *address_of_row_count(w, n);
            w->leaves_of_frames++;
        }
    for (uint32_t slot = 0; done && slot < slots; slot++)
        if (!used[slot])
            empty[empty_count++] = (uint32_t)file_page_in_slot(w, slot);
    done = done && make_free_list(w, header, empty, empty_count, &next);
    if (done) {
        patch_big_endian(header + 28, next - 1, 4);
        /* increase the file's change counter */
        patch_big_endian(header + 24, get_big_endian(header + 24, 4) + 1, 4);
        /* store the new change counter, too, as the one for which the page count is valid */
        patch_big_endian(header + 92, get_big_endian(header + 24, 4), 4);
        done = !ftruncate(w->fd, (off_t)(next - 1) * FRAME_PAGE_BYTES) &&
               !write_all_bytes(w, header, sizeof header, 0);
    }
    if (!done && !w->error)
        w->error = errno ? errno : EIO;
    free(children);
    free(empty);
    free(used);
    return done ? rows : -1;
}

void frame_pages_write_window(struct frame_pages *w)
{
    write_pages_in_window(w, w->window->next_page);
}

uint32_t page_copy_count_slots(const struct page_copy *copy)
{
    struct stat status;

    if (!copy->window)
        return copy->then->next_page;
    if (fstat(copy->from, &status))
        return 0;
    return (uint32_t)(status.st_size / FRAME_PAGE_BYTES) + 1 - copy->then->first;
}

static uint32_t current_oldest_page(const struct page_copy *copy)
{
    atomic_thread_fence(memory_order_acquire);
    return *(const volatile uint32_t *)&copy->now->low;
}

uint32_t page_copy_first_kept_page(const struct page_copy *copy)
{
    const uint32_t low = current_oldest_page(copy);
    uint32_t page = low < copy->then->next_page ? low : copy->then->next_page;

    while (page > copy->then->low && copy->found[page - 1 - copy->then->low])
        page--;
    return page;
}

bool page_copy_slot_range(struct page_copy *copy, uint32_t first, uint32_t count)
{
    struct frame_pages source = {.fd = copy->from, .window = (struct frame_window *)copy->then};
    struct frame_pages made = {.fd = copy->to, .window = (struct frame_window *)copy->then};
    uint8_t data[FRAME_PAGE_BYTES];

    for (uint32_t slot = first; slot < first + count; slot++) {
        const uint64_t number = file_page_in_slot(&source, slot);
        uint32_t page = slot;
        if (read_file_page(&source, number, data))
            continue; /* this page was never stored */
        if (copy->window)
            page = number_of_stored_page(data);
        if (page < copy->then->low || page >= copy->then->next_page)
            continue;
        if (page < current_oldest_page(copy))
            continue; /* the collector may have put another page here while we read this one */
        copy->found[page - copy->then->low] = true;
        if (write_all_bytes(&made, data, sizeof data, (number - 1) * FRAME_PAGE_BYTES)) {
            errno = made.error;
            return false;
        }
    }
    return true;
}

int64_t frame_pages_finish_file(struct frame_pages *w)
{
    int64_t rows;

    if (w->window->finished)
        /* an earlier collector made the trees; SQL counts the rows (schemas/recover.sql) */
        return 0;
    write_pages_in_window(w, w->window->next_page);
    /* The disk may be full only now, without room for the interior pages. */
    while ((rows = make_all_trees(w)) < 0 && (w->error == ENOSPC || w->error == EDQUOT) && w->limit)
        handle_disk_full(w);
    w->window->finished = rows >= 0;
    return rows;
}
