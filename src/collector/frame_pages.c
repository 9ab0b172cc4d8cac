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
 * All numbers are big endian. `pointer` and `content` are offsets in the page. The pointers stand
 * in the order of the ids. A cell is
 *
 *     payload length, rowid (both varints), record
 *
 * and a record is its header's length, one serial type for each column, then the columns' bytes:
 *
 *     column   frame_id thread parent code kind outcome start end cache_entry exit
 *     type     NULL     int    int    int  int  int     int   int int or NULL int
 *
 * Serial types 1 2 3 4 5 6 are integers of 1 2 3 4 6 8 bytes. Types 8 and 9 are the constants 0 and
 * 1, which take no bytes. Type 0 is NULL; frame_id is NULL because it is the rowid.
 *
 * A row may be stored before its frame has ended. Its outcome, end and exit then have the widest
 * type (1, 6 and 1), so that their values can be written into the cell later without moving a byte.
 * patch() changes a row only if it finds these three types.
 *
 * 2. WHERE A PAGE LIES
 *
 * Pages are numbered from 0 in the order in which they are taken. Page n is file page first + n, or
 * first + n + 1 beyond SQLite's lock page. So the number of a page, and the id of a frame, tell
 * where it lies in the file, and pages can be written in any order.
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
 * The window exists to write pieces of 1 MB. write_window() only moves `written` upwards. The page
 * of a slow thread may be stored after `written` has passed it: then it is written to the file by
 * itself.
 *
 * 3. WHO READS WHICH PAGE WHEN
 *
 *     program's threads    none: they write words into rings
 *     the collector        all pages
 *     a reader of a live   none: it opens trace.db, which SQLite writes. Lookups and checks are
 *       recording          copied there row by row (lookup_pages_show); frames are not
 *     SQLite               none, until frame_pages_finish() has returned
 *     a later collector    all pages in the window and in the file
 *     a reader of the      all pages, once trace.db-frames has replaced trace.db
 *       finished trace
 *
 * While frames are recorded, the file ends at page first - 1 for SQLite, since page 1 holds the
 * number of pages. One write of page 1's first 100 bytes hands our pages over to SQLite. These are
 * the steps; that write is the fourth:
 *
 *     leaves        write_window() writes what is still in the window
 *     interior      levels_make(): pages behind the last leaf; then the root, which is the page
 *     and roots       that SQLite made for the empty table. If a tree has one leaf, its root is a
 *                     copy of that leaf
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
 *     a decoder fills rows              rows below decode_at.rows count; the words of later rows
 *                                       are decoded again and give the same rows (decode.h)
 *     store() copies into the window    `holds` is 0: no page there. The words were not committed
 *                                       yet, and the page is stored again
 *     write_window() writes             `written` has not moved: the same pages are written again
 *     a page is written past the        the page is whole, missing, or cut off in the middle; its
 *       window                          words were not committed, so it is written again
 *     patch() changes a row             some of the three values are set. The same words are
 *                                       decoded again and set the same values
 *     frame_pages_drop() writes         the old page in the window, or the new page in the file,
 *                                       which counts once `holds` is 0
 *     trees_make() writes               leaves are as before, since no leaf is changed here: all
 *                                       levels are made again, over the same pages
 *     after the header was written      as before, or `finished` is 1 and no page is changed
 *
 * If the machine crashes, shared memory is lost, and writes that the kernel has not finished. Then
 * recorder_window() takes as many leaves as the file has. frame_pages_open() trusts those whose
 * first cell has the expected id and form; the others become holes.
 *
 * If the disk is full, disk_full() gives up the last pages: they may be half written, and the rest
 * of the trace needs room. `limit` is then the first page that is not stored; rows beyond are
 * counted in `lost`. */
#include "collector/frame_pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    COLUMNS = FRAME_COLUMNS,
    COLUMN_THREAD = 1,
    COLUMN_PARENT = 2,
    COLUMN_CODE = 3,
    COLUMN_KIND = 4,
    COLUMN_OUTCOME = 5,
    COLUMN_START = 6,
    COLUMN_END = 7,
    COLUMN_ENTRY = 8,
    COLUMN_EXIT = 9,
    INTERIOR_CHILDREN = 250, /* 4084 bytes / (4 child + 9 key + 2 pointer), rounded down */
    INDEX_CHILDREN = 150,    /* 4084 bytes / (4 child + 20 record + 2 pointer), rounded down */
    WRITE_PAGES = 256,       /* 1 MB at a time */
    DISK_FULL_PAGES = 256,   /* freed when the disk is full, for the rest of the database */
};

const uint8_t frame_type_of_bits[65] = {
    8,
    9,
    [2 ... 7] = 1,
    [8 ... 15] = 2,
    [16 ... 23] = 3,
    [24 ... 31] = 4,
    [32 ... 47] = 5,
    [48 ... 64] = 6,
};
const uint8_t frame_bytes_of_bits[65] = {
    0,
    0,
    [2 ... 7] = 1,
    [8 ... 15] = 2,
    [16 ... 23] = 3,
    [24 ... 31] = 4,
    [32 ... 47] = 6,
    [48 ... 64] = 8,
};

/* ---- cells ---- */

/* The bytes of a page's ids as varints, except the last byte: the 128 ids differ only in 7 bits. */
struct id_prefix {
    uint8_t byte[8];
    unsigned bytes;
};

static struct id_prefix id_prefix(uint64_t id)
{
    struct id_prefix prefix = {{0}, varint_bytes(id) - 1};

    put_varint(prefix.byte, id);
    return prefix;
}

/* Write BYTE at BODY as one byte, even if it is 0 (which usually takes none). Returns the end. */
static inline uint8_t *put_byte(uint8_t *body, uint8_t byte, uint8_t *type)
{
    *type = 1;
    *body = byte;
    return body + 1;
}

/* Write ROW's cell at P and return its end. The columns are not a loop, because most of the
 * collector's time is spent here. */
static inline uint8_t *cell_make(uint8_t *p, const struct id_prefix *prefix, uint32_t slot,
                                 const struct frame_row *row)
{
    uint8_t *cell = p;
    uint8_t *type, *body;

    /* the first byte, the length, is written last */
    memcpy(p + 1, prefix->byte, sizeof prefix->byte);
    p += 1 + prefix->bytes;
    *p++ = (slot + 1) & 0x7f;
    *p++ = 1 + COLUMNS;
    type = p;
    body = p + COLUMNS;
    memset(type, 0, COLUMNS);
    body = put_number(body, row->thread_id, &type[COLUMN_THREAD]);
    body = put_number(body, row->parent_id, &type[COLUMN_PARENT]);
    if (!row->parent_id)
        type[COLUMN_PARENT] = 0;
    body = put_number(body, row->code_id, &type[COLUMN_CODE]);
    body = put_number(body, row->kind, &type[COLUMN_KIND]);
    if (row->ended)
        body = put_number(body, row->outcome, &type[COLUMN_OUTCOME]);
    else /* reserve a byte for the outcome, which comes later */
        body = put_byte(body, row->outcome, &type[COLUMN_OUTCOME]);
    body = put_number(body, row->start_ns, &type[COLUMN_START]);
    if (row->ended) {
        body = put_number(body, row->end_ns, &type[COLUMN_END]);
    } else {
        type[COLUMN_END] = 6;
        body = put_big_endian(body, 0, 8);
    }
    if (row->cache_entry_id)
        body = put_number(body, row->cache_entry_id, &type[COLUMN_ENTRY]);
    if (row->ended)
        body = put_number(body, row->exit, &type[COLUMN_EXIT]);
    else
        body = put_byte(body, 0, &type[COLUMN_EXIT]);
    cell[0] = (uint8_t)(body - type + 1);
    return body;
}

/* Positions within a stored cell. */
struct cell {
    uint8_t *start, *type, *column[COLUMNS + 1]; /* column[COLUMNS] is the cell's end */
};

uint8_t *page_row(uint8_t *page, unsigned slot, uint64_t *id)
{
    uint8_t *p = page + get16(page + 8 + 2 * (slot % FRAME_PAGE_ROWS));
    uint8_t *end = page + FRAME_PAGE_BYTES;

    if (page[0] != PAGE_TABLE || slot >= get16(page + 3) || slot >= FRAME_PAGE_ROWS || p < page + 8)
        return NULL;
    for (*id = 0, p++; p < end && *p & 0x80; p++)
        *id = (*id | (*p & 0x7f)) << 7;
    if (end - p < 2)
        return NULL;
    *id |= *p++;
    return p;
}

/* Find the parts of the cell in slot SLOT. Returns false if it exceeds the page or was not written
 * by us. */
static bool cell_find(uint8_t *page, unsigned slot, struct cell *cell)
{
    uint8_t *p;
    uint8_t *end = page + FRAME_PAGE_BYTES;
    uint64_t id;

    cell->start = page + get16(page + 8 + 2 * (slot % FRAME_PAGE_ROWS));
    p = page_row(page, slot, &id);
    if (!p || end - p < 1 + COLUMNS || *p++ != 1 + COLUMNS)
        return false;
    cell->type = p;
    p += COLUMNS;
    for (int i = 0; i < COLUMNS; i++) {
        cell->column[i] = p;
        if (cell->type[i] > 9 || end - p < frame_bytes_of_type[cell->type[i]])
            return false;
        p += frame_bytes_of_type[cell->type[i]];
    }
    cell->column[COLUMNS] = p;
    return true;
}

static uint64_t cell_integer(const struct cell *cell, int column)
{
    unsigned type = cell->type[column];

    return type >= 8 ? type - 8 : get_big_endian(cell->column[column], frame_bytes_of_type[type]);
}

/* ---- reading and writing pages ---- */

static uint64_t file_page(const struct frame_pages *w, uint64_t page)
{
    uint64_t number = w->window->first + page;

    return number >= FRAME_LOCK_PAGE ? number + 1 : number;
}

static int write_whole(struct frame_pages *w, const void *data, size_t bytes, uint64_t at)
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
    return write_whole(w, data, FRAME_PAGE_BYTES, (file_page(w, page) - 1) * FRAME_PAGE_BYTES);
}

static int read_page(struct frame_pages *w, uint32_t page, uint8_t *data)
{
    ssize_t got;

    do
        got = pread(w->fd, data, FRAME_PAGE_BYTES,
                    (off_t)(file_page(w, page) - 1) * FRAME_PAGE_BYTES);
    while (got < 0 && errno == EINTR);
    return got == FRAME_PAGE_BYTES ? 0 : -1;
}

static uint8_t *in_window(struct frame_pages *w, uint32_t page)
{
    uint32_t slot = page % FRAME_WINDOW_PAGES;

    if (page < w->window->written || w->window->holds[slot] != page + 1)
        return NULL;
    return w->window->page[slot];
}

/* Drop the leaves of pages beyond the limit, and count their rows as lost. */
static void cut_leaves(struct frame_pages *w, page_leaves *leaves)
{
    for (; leaves->count; leaves->count--) {
        const struct page_leaf *last = &leaves->at[leaves->count - 1];
        if (last->page < w->limit)
            break;
        w->lost += last->id;
    }
}

/* Handle a full disk: store no more frames, and cut off the last pages, which may be half written,
 * so that the rest of the database has room. */
static void disk_full(struct frame_pages *w)
{
    uint32_t keep = w->window->written < w->limit ? w->window->written : w->limit;
    uint32_t given_back = DISK_FULL_PAGES + keep / 100;

    w->limit = keep > given_back ? keep - given_back : 0;
    w->indexed = false;
    if (ftruncate(w->fd, (off_t)(file_page(w, w->limit) - 1) * FRAME_PAGE_BYTES)) {
        /* no room was gained; the pages are given up all the same */
    }
    for (uint32_t page = w->limit; page < w->cells.count; page++) {
        w->lost += w->cells.at[page] == FRAME_PAGE_OTHER ? 0 : w->cells.at[page];
        w->cells.at[page] = 0;
    }
    for (int tree = TREE_LOOKUP; tree <= TREE_CHECK; tree++)
        cut_leaves(w, &w->leaves[tree]);
}

/* Write the pages [written, end) of the window that are there. The others are still being filled by
 * slow threads and will be written by themselves. */
static void write_window(struct frame_pages *w, uint32_t end)
{
    struct frame_window *window = w->window;

    while (window->written < end) {
        uint32_t from = window->written;
        uint32_t slot = from % FRAME_WINDOW_PAGES;
        uint32_t count = 0;
        while (from + count < end && slot + count < FRAME_WINDOW_PAGES && count < WRITE_PAGES &&
               window->holds[slot + count] == from + count + 1 &&
               (count == 0 || file_page(w, from + count) == file_page(w, from) + count))
            count++;
        if (count && from < w->limit &&
            write_whole(w, window->page[slot], (size_t)count * FRAME_PAGE_BYTES,
                        (file_page(w, from) - 1) * FRAME_PAGE_BYTES))
            disk_full(w);
        window->written = from + (count ? count : 1);
    }
}

/* ---- the functions of frame_pages.h ---- */

int frame_pages_open(struct frame_pages *w, int fd, struct frame_window *window, bool resume)
{
    uint8_t page[FRAME_PAGE_BYTES];

    *w = (struct frame_pages){
        .fd = fd, .window = window, .limit = window->finished ? 0 : UINT32_MAX};
    if (resume && !window->finished && window->next_page &&
        !list_reach(&w->cells, window->next_page - 1))
        return -1;
    for (uint32_t n = 0; n < w->cells.count; n++) {
        uint8_t *held = in_window(w, n);
        struct cell cell;
        uint64_t id;
        if (!held && read_page(w, n, page))
            continue;
        if (!held)
            held = page;
        /* A page that was never stored is a hole of zeros, or cut short. A first id other than a
         * frame's tells a page of another table: its ids are smaller. */
        if (page_row(held, 0, &id) && id != frame_id(n, 0))
            w->cells.at[n] = FRAME_PAGE_OTHER;
        else if (get16(held + 3) <= FRAME_PAGE_ROWS && cell_find(held, 0, &cell))
            w->cells.at[n] = (uint8_t)get16(held + 3);
    }
    return 0;
}

void frame_pages_close(struct frame_pages *w)
{
    if (w->fd >= 0)
        close(w->fd);
    list_free(&w->cells);
    for (int tree = 0; tree < PAGE_TREES; tree++)
        list_free(&w->leaves[tree]);
    *w = (struct frame_pages){.fd = -1};
}

uint32_t frame_pages_take(struct frame_pages *w)
{
    uint32_t page = w->window->next_page;

    /* needs 1 byte for each page, so it does not fail in practice */
    if (!list_reach(&w->cells, page) && page < w->limit) {
        w->limit = page;
        w->error = ENOMEM;
    }
    if (page >= w->window->written + FRAME_WINDOW_PAGES)
        write_window(w, w->window->written + WRITE_PAGES);
    w->window->next_page = page + 1;
    return page;
}

/* Make page PAGE from COUNT rows. Rows of open frames get room for their end. Returns false if the
 * rows do not fit. */
static bool page_make(uint8_t made[FRAME_PAGE_BYTES + PAGE_SLACK], uint32_t page,
                      const struct frame_row *rows, uint32_t count)
{
    struct id_prefix prefix = id_prefix(frame_id(page, 0));
    unsigned bytes = 0;
    uint8_t *p;

    for (uint32_t i = 0; i < count; i++)
        bytes += rows[i].bytes + rows[i].entry_bytes;
    if (bytes + 2 * count > FRAME_PAGE_ROOM)
        return false;
    memset(made, 0, FRAME_PAGE_BYTES - bytes);
    made[0] = PAGE_TABLE;
    put16(made + 3, count);
    put16(made + 5, FRAME_PAGE_BYTES - bytes);
    p = made + FRAME_PAGE_BYTES - bytes;
    for (uint32_t i = 0; i < count; i++) {
        put16(made + 8 + 2 * i, (unsigned)(p - made));
        if (i == FRAME_PAGE_ROWS - 1)
            prefix = id_prefix(frame_id(page, i));
        p = cell_make(p, &prefix, i, &rows[i]);
    }
    return true;
}

/* Store MADE as PAGE: in the window, or in the file if the window has passed the page. */
static void store(struct frame_pages *w, uint32_t page, const uint8_t *made, uint32_t count,
                  uint8_t cells)
{
    uint32_t slot = page % FRAME_WINDOW_PAGES;

    w->cells.at[page] = cells;
    if (page >= w->window->written) {
        w->window->holds[slot] = 0;                /* the slot has no valid page from here ... */
        atomic_signal_fence(memory_order_release); /* a kill may come between two stores */
        memcpy(w->window->page[slot], made, FRAME_PAGE_BYTES);
        atomic_signal_fence(memory_order_release);
        w->window->holds[slot] = page + 1; /* ... to here */
    } else if (write_page(w, page, made)) {
        w->cells.at[page] = 0; /* the file has a hole or half a page */
        w->lost += count;
        disk_full(w);
    }
}

void frame_pages_put(struct frame_pages *w, uint32_t page, const struct frame_row *rows,
                     uint32_t count)
{
    uint8_t made[FRAME_PAGE_BYTES + PAGE_SLACK];

    if (page < w->limit && page_make(made, page, rows, count))
        store(w, page, made, count, (uint8_t)count);
    else
        w->lost += count;
}

bool frame_pages_store(struct frame_pages *w, uint32_t page, const uint8_t *made, uint32_t count)
{
    if (page < w->limit)
        store(w, page, made, count, FRAME_PAGE_OTHER);
    else
        w->lost += count;
    return page < w->limit;
}

uint8_t *frame_pages_at(struct frame_pages *w, uint64_t page, uint8_t copy[FRAME_PAGE_BYTES])
{
    uint8_t *data;

    if (page >= w->window->next_page || page >= w->limit)
        return NULL;
    data = in_window(w, (uint32_t)page);
    return data ? data : read_page(w, (uint32_t)page, copy) ? NULL : copy;
}

void frame_pages_rewrite(struct frame_pages *w, uint32_t page, const uint8_t *data)
{
    if (data != in_window(w, page))
        write_page(w, page, data);
}

/* Return the stored page that holds frame ID; NULL if there is none. */
static uint8_t *page_of(struct frame_pages *w, uint64_t id, uint8_t copy[FRAME_PAGE_BYTES])
{
    return id ? frame_pages_at(w, (id - 1) / FRAME_PAGE_ROWS, copy) : NULL;
}

bool frame_pages_read(struct frame_pages *w, uint64_t id, struct frame_row *row)
{
    uint8_t copy[FRAME_PAGE_BYTES];
    uint8_t *data = page_of(w, id, copy);
    struct cell cell;

    if (!data || !cell_find(data, (unsigned)((id - 1) % FRAME_PAGE_ROWS), &cell))
        return false;
    *row = (struct frame_row){.parent_id = cell_integer(&cell, COLUMN_PARENT),
                              .start_ns = cell_integer(&cell, COLUMN_START),
                              .code_id = (uint32_t)cell_integer(&cell, COLUMN_CODE),
                              .thread_id = (uint32_t)cell_integer(&cell, COLUMN_THREAD),
                              .kind = (uint8_t)cell_integer(&cell, COLUMN_KIND),
                              .outcome = (uint8_t)cell_integer(&cell, COLUMN_OUTCOME) & 0x7f};
    return true;
}

uint64_t frame_pages_last(struct frame_pages *w, uint32_t thread_id, uint32_t except)
{
    uint8_t copy[FRAME_PAGE_BYTES], *data;
    struct cell cell;

    for (uint32_t page = w->window->next_page; page--;) {
        data = page == except || page >= w->cells.count || !w->cells.at[page]
                   ? NULL
                   : page_of(w, frame_id(page, 0), copy);
        for (unsigned slot = data ? get16(data + 3) : 0; slot--;)
            if (cell_find(data, slot, &cell) && cell_integer(&cell, COLUMN_THREAD) == thread_id)
                return frame_id(page, slot);
    }
    return 0;
}

/* Set the outcome of the stored row ID; if ENDS, set its end and exit, too. */
static void patch(struct frame_pages *w, uint64_t id, unsigned outcome, bool ends, uint64_t end_ns,
                  unsigned exit)
{
    uint8_t copy[FRAME_PAGE_BYTES];
    uint8_t *data = page_of(w, id, copy);
    struct cell cell;

    if (!data || !cell_find(data, (unsigned)((id - 1) % FRAME_PAGE_ROWS), &cell) ||
        cell.type[COLUMN_END] != 6 || cell.type[COLUMN_EXIT] != 1 || cell.type[COLUMN_OUTCOME] != 1)
        return;
    patch_big_endian(cell.column[COLUMN_OUTCOME], outcome, 1);
    if (ends) {
        patch_big_endian(cell.column[COLUMN_END], end_ns, 8);
        patch_big_endian(cell.column[COLUMN_EXIT], exit, 1);
    }
    if (data == copy)
        write_page(w, (uint32_t)((id - 1) / FRAME_PAGE_ROWS), copy);
}

void frame_pages_decided(struct frame_pages *w, uint64_t id, unsigned outcome)
{
    patch(w, id, outcome, false, 0, 0);
}

void frame_pages_end(struct frame_pages *w, uint64_t id, uint64_t end_ns, unsigned outcome,
                     unsigned exit)
{
    patch(w, id, outcome, true, end_ns, exit);
}

/* The cell is the last of its page: turn it and all behind it into free space. The changed page is
 * written to the file at once, because a kill could leave half of the change in the window. */
void frame_pages_drop(struct frame_pages *w, uint64_t id)
{
    uint8_t made[FRAME_PAGE_BYTES];
    uint8_t *data = page_of(w, id, made);
    uint32_t page = (uint32_t)((id - 1) / FRAME_PAGE_ROWS);
    uint32_t slot = (uint32_t)((id - 1) % FRAME_PAGE_ROWS);
    struct cell cell;
    unsigned start;

    if (!data || !w->cells.at[page] || slot + 1 != get16(data + 3) || !cell_find(data, slot, &cell))
        return;
    start = (unsigned)(cell.start - data);
    memmove(made, data, FRAME_PAGE_BYTES);
    put16(made + 1, start); /* offset of the first free block ... */
    put16(made + 3, slot);
    put16(made + start, 0); /* ... which is also the last, and its size */
    put16(made + start + 2, FRAME_PAGE_BYTES - start);
    if (write_page(w, page, made))
        return; /* no room on the disk: the row stays */
    if (data != made) {
        atomic_signal_fence(memory_order_release);
        w->window->holds[page % FRAME_WINDOW_PAGES] = 0;
    }
    w->cells.at[page]--;
}

/* ---- make the b-trees at the end ---- */

/* Make an interior page of TREE over COUNT children. */
static void interior_make(uint8_t *page, enum page_tree_of tree, const struct page_leaf *children,
                          size_t count)
{
    unsigned content = FRAME_PAGE_BYTES;

    memset(page, 0, FRAME_PAGE_BYTES);
    page[0] = (tree >= TREE_LOOKUP_CODE ? PAGE_INDEX : PAGE_TABLE) - 8;
    for (size_t i = 0; i + 1 < count; i++) { /* the last child is the page's right-most pointer */
        uint8_t cell[40];
        uint8_t *p = put_big_endian(cell, children[i].page, 4);
        p = tree >= TREE_LOOKUP_CODE ? put_key(p, children[i].key, children[i].id)
                                     : put_varint(p, children[i].key);
        content -= (unsigned)(p - cell);
        memcpy(page + content, cell, (size_t)(p - cell));
        put16(page + 12 + 2 * i, content);
    }
    put16(page + 3, (unsigned)count - 1);
    put16(page + 5, content);
    patch_big_endian(page + 8, children[count - 1].page, 4);
}

/* Put unused pages into SQLite's free list, made of pages from *NEXT on. The content of unused
 * pages does not change: after a kill all is made again, and if a tree has only one leaf, that leaf
 * (copied to the root) is among them. Returns false on error. */
static bool free_pages(struct frame_pages *w, uint8_t *header, const uint32_t *empty, size_t count,
                       uint64_t *next)
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
        if (write_whole(w, trunk, sizeof trunk, (*next - 1) * FRAME_PAGE_BYTES))
            return false;
        last = *next;
        *next += 1 + (*next + 1 == FRAME_LOCK_PAGE);
    }
    patch_big_endian(header + 32, last, 4);
    patch_big_endian(header + 36, count + trunks, 4);
    return true;
}

/* Make the levels of TREE over COUNT children, up to the root, in pages from *NEXT on. Returns
 * false on error. */
static bool levels_make(struct frame_pages *w, enum page_tree_of tree, struct page_leaf *children,
                        size_t count, uint64_t *next)
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
            /* the window's pages are all written, so its memory is free for new pages */
            interior_make(window->page[made++], tree, children + from, to - from);
            children[i] = (struct page_leaf){number, children[to - 1].key, children[to - 1].id};
            *next += pages > 1;
            if (made == FRAME_WINDOW_PAGES || i + 1 == pages || *next == FRAME_LOCK_PAGE) {
                if (write_whole(w, window->page, made * FRAME_PAGE_BYTES,
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

/* Collect the leaves of TREE in CHILDREN, and mark their pages in USED. Returns the number of
 * leaves. */
static size_t tree_leaves(struct frame_pages *w, enum page_tree_of tree, uint32_t stored,
                          struct page_leaf *children, bool *used)
{
    size_t count = 0;

    if (tree == TREE_FRAME) {
        for (uint32_t n = 0; n < stored; n++)
            if (w->cells.at[n] && w->cells.at[n] <= FRAME_PAGE_ROWS)
                children[count++] = (struct page_leaf){n, (uint64_t)(n + 1) * FRAME_PAGE_ROWS, 0};
    } else if (tree < TREE_LOOKUP_CODE || w->indexed) {
        for (; count < w->leaves[tree].count; count++)
            children[count] = w->leaves[tree].at[count];
    }
    for (size_t i = 0; i < count; i++) {
        /* a tree of one leaf gets a copy of it as its root, since interior pages have at least two
         * children */
        used[children[i].page] = count > 1;
        children[i].page = file_page(w, children[i].page);
    }
    return count;
}

/* Make TREE over COUNT children. Returns false on error. */
static bool tree_make(struct frame_pages *w, enum page_tree_of tree, struct page_leaf *children,
                      size_t count, uint64_t *next)
{
    uint8_t page[FRAME_PAGE_BYTES] = {
        tree >= TREE_LOOKUP_CODE ? PAGE_INDEX : PAGE_TABLE, [5] = FRAME_PAGE_BYTES >> 8};

    if (count > 1)
        return levels_make(w, tree, children, count, next);
    return (!count || pread(w->fd, page, sizeof page,
                            (off_t)(children[0].page - 1) * FRAME_PAGE_BYTES) == sizeof page) &&
           !write_whole(w, page, sizeof page,
                        (uint64_t)(w->window->root[tree] - 1) * FRAME_PAGE_BYTES);
}

/* Make the trees over the stored pages. Returns the number of frames, or -1. */
static int64_t trees_make(struct frame_pages *w)
{
    uint32_t stored = w->window->next_page < w->limit ? w->window->next_page : w->limit;
    uint32_t *empty;
    uint64_t next = file_page(w, stored);
    uint8_t header[100];
    size_t empty_count = 0;
    struct page_leaf *children;
    int64_t rows = 0;
    bool done, *used;

    children = malloc((stored + 1) * sizeof *children);
    empty = malloc((stored + 1) * sizeof *empty);
    used = calloc(stored + 1, 1);
    done = children && empty && used && pread(w->fd, header, sizeof header, 0) == sizeof header;
    for (int tree = 0; done && tree < PAGE_TREES; tree++)
        done = tree_make(w, tree, children, tree_leaves(w, tree, stored, children, used), &next);
    w->leaves_of_frames = 0;
    for (uint32_t n = 0; done && n < stored; n++) {
        if (w->cells.at[n] && w->cells.at[n] <= FRAME_PAGE_ROWS) {
            rows += w->cells.at[n];
            w->leaves_of_frames++;
        }
        if (!used[n])
            empty[empty_count++] = (uint32_t)file_page(w, n);
    }
    done = done && free_pages(w, header, empty, empty_count, &next);
    if (done) {
        patch_big_endian(header + 28, next - 1, 4);
        /* change counter */
        patch_big_endian(header + 24, get_big_endian(header + 24, 4) + 1, 4);
        /* change counter for which the page count is valid */
        patch_big_endian(header + 92, get_big_endian(header + 24, 4), 4);
        done = !ftruncate(w->fd, (off_t)(next - 1) * FRAME_PAGE_BYTES) &&
               !write_whole(w, header, sizeof header, 0);
    }
    if (!done && !w->error)
        w->error = errno ? errno : EIO;
    free(children);
    free(empty);
    free(used);
    return done ? rows : -1;
}

int64_t frame_pages_finish(struct frame_pages *w)
{
    int64_t rows;

    if (w->window->finished)
        return 0; /* the rows are counted by SQL (schemas/recover.sql) */
    write_window(w, w->window->next_page);
    /* The disk may have had room for the leaves but not for the interior pages. */
    while ((rows = trees_make(w)) < 0 && (w->error == ENOSPC || w->error == EDQUOT) && w->limit)
        disk_full(w);
    w->window->finished = rows >= 0;
    return rows;
}
