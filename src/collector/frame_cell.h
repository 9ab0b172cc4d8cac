/* collector/frame_cell.h -- a row of `frame` as SQLite stores it.
 *
 * Runs in: the collector. Section 1 of collector/frame_pages.c describes the format. The functions
 * are in a header so that the compiler inlines them into the decoder's loop, where much of the
 * collector's time is spent. */
#ifndef DYNTRACE_FRAME_CELL_H
#define DYNTRACE_FRAME_CELL_H

#include <stdbool.h>

#include "lib/page_bytes.h"

enum {
    FRAME_PAGE_BYTES = 4096,
    /* number of ids that belong to a page, which rarely has room for as many rows */
    FRAME_PAGE_ROWS = 192,
    FRAME_PAGE_ROOM = FRAME_PAGE_BYTES - 8,
    /* the row of an open frame has all columns but the last, cache_entry_id */
    FRAME_OPEN_COLUMNS = 8,
    FRAME_CELL_MOST = 64, /* the most bytes of a cell, which is a row as SQLite stores it */
    /* bytes of an open frame's cell that are reserved for outcome, took_ns and exit */
    FRAME_OPEN_BYTES = 10,
};

struct frame_row {
    uint64_t parent_id; /* frame_id of the caller; 0 if there is none */
    uint64_t start_ns, end_ns;
    uint32_t code_id, thread_id;
    /* id of the cache entry that ran in the frame; 0 if there is none */
    uint32_t cache_entry_id;
    uint8_t kind, outcome, exit; /* each is a number of the table `enum` in schemas/trace.sql */
    bool ended;
    uint8_t open_bytes; /* size of the row's cell as long as the frame is open */
};

/* A page of `frame` that is being filled. A row's cell (its bytes as SQLite stores them) is made
 * when the frame ends, because only then its size is known. So cells stand in the order in which
 * frames end. When the page is full, frame_pages_store_filled_page() makes the cells of the frames
 * that are still open. */
struct frame_fill {
    struct frame_row rows[FRAME_PAGE_ROWS];
    /* for each row: 1 + the offset of its cell in cell_bytes; 0 as long as its frame is open */
    uint16_t cell[FRAME_PAGE_ROWS];
    uint8_t cell_bytes[FRAME_PAGE_BYTES + FRAME_CELL_MOST + PAGE_SLACK];
};

static inline uint64_t frame_id(uint32_t page, uint32_t slot)
{
    return (uint64_t)page * FRAME_PAGE_ROWS + slot + 1;
}

/* Parts of a cell that the next cells often repeat: all bytes but the last of the id's varint, and
 * the columns code and thread. They are made when they change. Start with FRAME_REPEATS_NONE. */
struct frame_repeats {
    uint64_t id_high;  /* the id without the 7 bits that are in the varint's last byte */
    uint64_t id_bytes; /* the varint as it is stored; its last byte is replaced */
    unsigned id_size;
    uint32_t code_id, thread_id;
    uint8_t types[2];  /* the serial types of code and thread */
    uint8_t bytes[16]; /* code and thread as they are stored */
    unsigned size;     /* number of bytes used in `bytes` */
};
/* no id has this id_high, so the first cell's varint is made */
#define FRAME_REPEATS_NONE                       \
    {                                            \
        .id_high = UINT64_MAX, .types = { 8, 8 } \
    }

/* Make those parts of REPEATS that differ in the cell of row ID, of CODE_ID and THREAD_ID. */
static inline __attribute__((always_inline)) void
frame_repeats_set(struct frame_repeats *repeats, uint64_t id, uint32_t code_id, uint32_t thread_id)
{
    if (id >> 7 != repeats->id_high) {
        repeats->id_high = id >> 7;
        repeats->id_size = (unsigned)(put_varint((uint8_t *)&repeats->id_bytes, id) -
                                      (uint8_t *)&repeats->id_bytes);
    }
    if (code_id != repeats->code_id || thread_id != repeats->thread_id) {
        uint8_t *end = put_positive_number(repeats->bytes, code_id, &repeats->types[0]);
        end = put_positive_number(end, thread_id, &repeats->types[1]);
        repeats->size = (unsigned)(end - repeats->bytes);
        repeats->code_id = code_id;
        repeats->thread_id = thread_id;
    }
}

/* Return how many bytes the cell of an open frame takes if it has no cache_entry_id. REPEATS is set
 * for the row. The cell has FRAME_OPEN_BYTES of room for outcome, took_ns and exit, which are
 * written when the frame ends. */
static inline unsigned frame_open_bytes(const struct frame_repeats *repeats, uint64_t id,
                                        uint64_t parent_id, unsigned kind, uint64_t start_ns)
{
    return 1 + repeats->id_size + 1 + FRAME_OPEN_COLUMNS + positive_bytes_of(start_ns) +
           (parent_id ? positive_bytes_of(id - parent_id) : 0) + repeats->size + (kind > 1) +
           FRAME_OPEN_BYTES;
}

static inline unsigned frame_bytes_of_open_cell(uint64_t id, uint64_t parent_id, uint32_t thread_id,
                                                uint32_t code_id, unsigned kind, uint64_t start_ns)
{
    struct frame_repeats repeats = FRAME_REPEATS_NONE;

    frame_repeats_set(&repeats, id, code_id, thread_id);
    return frame_open_bytes(&repeats, id, parent_id, kind, start_ns);
}

/* Return how many bytes longer a cell becomes when it gets a cache_entry_id. */
static inline unsigned frame_bytes_of_entry_column(uint32_t cache_entry_id)
{
    return 1 + number_count_bytes(cache_entry_id);
}

/* Write BYTE at BODY as a whole byte, even if it is 0 or 1, which write_small_column() would store
 * in the type alone. Returns the end. */
static inline uint8_t *write_byte_column(uint8_t *body, uint8_t byte, uint8_t *type)
{
    *type = 1;
    *body = byte;
    return body + 1;
}

/* Write VALUE, which is below 128, at BODY: 0 and 1 take no byte, others one. Returns the end. */
static inline uint8_t *write_small_column(uint8_t *body, uint8_t value, uint8_t *type)
{
    *type = value < 2 ? 8 + value : 1;
    *body = value;
    return body + (value > 1);
}

/* Return how many columns the record of ROW has. */
static inline unsigned number_of_columns(const struct frame_row *row)
{
    if (row->cache_entry_id)
        return FRAME_COLUMNS;
    if (row->outcome || !row->ended)
        return COLUMN_ENTRY;
    if (row->kind)
        return COLUMN_OUTCOME;
    return row->exit ? COLUMN_KIND : FRAME_COLUMNS_LEAST;
}

/* Write the optional columns of ROW, whose record has COLUMNS columns. Returns the end. */
static __attribute__((noinline)) uint8_t *
write_optional_columns(uint8_t *body, uint8_t *type, unsigned columns, const struct frame_row *row)
{
    /* reserve a byte each for exit and outcome, which are not known before the frame ends */
    if (!row->ended) {
        body = write_byte_column(body, 0, &type[COLUMN_EXIT]);
        body = write_small_column(body, row->kind, &type[COLUMN_KIND]);
        body = write_byte_column(body, row->outcome, &type[COLUMN_OUTCOME]);
    } else {
        body = write_small_column(body, row->exit, &type[COLUMN_EXIT]);
        if (columns > COLUMN_KIND)
            body = write_small_column(body, row->kind, &type[COLUMN_KIND]);
        if (columns > COLUMN_OUTCOME)
            body = write_small_column(body, row->outcome, &type[COLUMN_OUTCOME]);
    }
    if (columns > COLUMN_ENTRY)
        body = put_number(body, row->cache_entry_id, &type[COLUMN_ENTRY]);
    return body;
}

/* Write the cell of ROW, whose id is ID, at P, and return its end. REPEATS is set for the row.
 * IS_PLAIN: the row has no optional columns. Each column is written by a statement of its own,
 * because a loop over the columns would be slower. */
static inline __attribute__((always_inline)) uint8_t *
frame_write_cell(uint8_t *p, uint64_t id, const struct frame_row *row, bool is_plain,
                 const struct frame_repeats *repeats)
{
    const unsigned columns = is_plain ? (unsigned)FRAME_COLUMNS_LEAST : number_of_columns(row);
    uint8_t *cell = p;
    uint8_t *type, *body;

    p++; /* the first byte is the cell's length, which is written last */
    memcpy(p, &repeats->id_bytes, sizeof repeats->id_bytes);
    p += repeats->id_size;
    p[-1] = (uint8_t)(id & 0x7f);
    *p++ = (uint8_t)(1 + columns);
    type = p;
    body = p + columns;
    body = put_positive_number(body, row->start_ns, &type[COLUMN_START]);
    if (is_plain || row->ended) {
        body = put_positive_number(body, row->end_ns - row->start_ns, &type[COLUMN_TOOK]);
    } else {
        type[COLUMN_TOOK] = 6;
        body = put_big_endian(body, UINT64_MAX, 8);
    }
    type[COLUMN_PARENT] = 0;
    if (row->parent_id)
        body = put_positive_number(body, id - row->parent_id, &type[COLUMN_PARENT]);
    memcpy(&type[COLUMN_CODE], repeats->types, sizeof repeats->types);
    memcpy(body, repeats->bytes, sizeof repeats->bytes);
    body += repeats->size;
    if (columns > FRAME_COLUMNS_LEAST)
        body = write_optional_columns(body, type, columns, row);
    cell[0] = (uint8_t)(body - type + 1);
    return body;
}

/* Write the cell of row SLOT of PAGE to cell_bytes, from offset AT on, with the values that the row
 * has now. Returns the cell's size, which is at most the row's open_bytes. */
static inline __attribute__((always_inline)) unsigned
frame_write_filled_cell(struct frame_fill *fill, uint32_t page, uint32_t slot, uint32_t at,
                        bool is_plain, struct frame_repeats *repeats)
{
    const struct frame_row *row = &fill->rows[slot];
    const uint64_t id = frame_id(page, slot);
    uint8_t *cell = fill->cell_bytes + at;

    fill->cell[slot] = (uint16_t)(at + 1);
    frame_repeats_set(repeats, id, row->code_id, row->thread_id);
    return (unsigned)(frame_write_cell(cell, id, row, is_plain, repeats) - cell);
}

#endif
