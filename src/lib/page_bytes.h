/* lib/page_bytes.h -- numbers in SQLite's file pages: big endian, and varints. */
#ifndef DYNTRACE_PAGE_BYTES_H
#define DYNTRACE_PAGE_BYTES_H

#include <stdint.h>
#include <string.h>

enum {
    /* free bytes needed behind the last cell, because put_big_endian and get_signed_big_endian
     * access 8 bytes even for shorter numbers */
    PAGE_SLACK = 8,
    PAGE_TABLE = 13,
    /* PAGE_TABLE and PAGE_INDEX are the first byte of a leaf page. The first byte of an interior
     * page is 8 less. */
    PAGE_INDEX = 10,
};

/* The columns of `frame` that are stored, in the order of schemas/trace.sql. The key is the rowid:
 * it is declared as the last column and not stored. */
enum {
    COLUMN_START,
    COLUMN_TOOK,
    COLUMN_PARENT,
    COLUMN_CODE,
    COLUMN_THREAD,
    FRAME_COLUMNS_LEAST, /* the columns from here on may be missing in a stored row */
    COLUMN_EXIT = FRAME_COLUMNS_LEAST,
    COLUMN_KIND,
    COLUMN_OUTCOME,
    COLUMN_ENTRY,
    FRAME_COLUMNS,
};

/* How SQLite stores a number with N significant bits: the serial type, and the size in bytes. A
 * signed byte has room for 7 bits. The numbers 0 and 1 have special serial types. */
extern const struct number_form {
    /* aligned, so that an item has 4 bytes and one instruction computes its address */
    _Alignas(4) uint8_t type;
    uint8_t bytes;
    /* how many bits to shift the number left, which brings its first byte to the top */
    uint8_t shift;
} number_form_of_bits[65];
/* The size in bytes of a stored value, by its serial type (0 to 9). */
static const uint8_t frame_bytes_of_type[10] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

static inline unsigned number_count_bits(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* Like number_count_bits for a VALUE below 2^63, in fewer instructions. */
static inline unsigned number_count_bits_of_positive(uint64_t value)
{
    return (unsigned)__builtin_clzll(2 * value + 1) ^ 63;
}

static inline unsigned number_count_bytes(uint64_t value)
{
    return number_form_of_bits[number_count_bits(value)].bytes;
}

/* Like number_count_bytes for a VALUE below 2^63, in fewer instructions. */
static inline unsigned positive_bytes_of(uint64_t value)
{
    return number_form_of_bits[number_count_bits_of_positive(value)].bytes;
}

/* Store the low BYTES of VALUE at P. Always writes 8 bytes, so P must have room for 8. */
static inline uint8_t *put_big_endian(uint8_t *p, uint64_t value, unsigned bytes)
{
    uint64_t stored = __builtin_bswap64(value << (64 - 8 * bytes) % 64);

    memcpy(p, &stored, sizeof stored);
    return p + bytes;
}

/* Store the low BYTES of VALUE at P. Writes no other bytes, so it can be used in full pages. */
static inline void patch_big_endian(uint8_t *p, uint64_t value, unsigned bytes)
{
    while (bytes--)
        *p++ = (uint8_t)(value >> 8 * bytes);
}

static inline uint64_t get_big_endian(const uint8_t *p, unsigned bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | *p++;
    return value;
}

/* Read a signed number of 1 to 8 bytes. Always reads 8 bytes. */
static inline int64_t get_signed_big_endian(const uint8_t *p, unsigned bytes)
{
    uint64_t stored;

    memcpy(&stored, p, sizeof stored);
    return (int64_t)__builtin_bswap64(stored) >> (64 - 8 * bytes);
}

static inline unsigned varint_bytes(uint64_t value)
{
    /* A byte of a varint holds seven bits. The formula divides the number of bits by 7 and rounds
     * up, without a division instruction. It holds below 2^56. No id is larger, so a varint never
     * takes 9 bytes. */
    return (9 * ((unsigned)__builtin_clzll(value | 1) ^ 63) + 73) >> 6;
}

/* Store VALUE, which is below 2^56, as a varint. Always writes 8 bytes, so P must have room for 8.
 * Three steps move each group of seven bits to a byte of its own: the first moves halves of VALUE,
 * the second quarters, the third eighths. */
static inline uint8_t *put_varint(uint8_t *p, uint64_t value)
{
    uint64_t spread = value;

    if (value >> 28)
        spread = (spread & 0xfffffff) | (spread & UINT64_C(0xfffffff) << 28) << 4;
    spread = (spread & 0x3fff00003fff) | (spread & UINT64_C(0x3fff00003fff) << 14) << 2;
    spread = (spread & 0x7f007f007f007f) | (spread & UINT64_C(0x7f007f007f007f) << 7) << 1;
    return put_big_endian(p, spread | UINT64_C(0x8080808080808000), varint_bytes(value));
}

static inline void put_two_bytes(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline unsigned get_two_bytes(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* Store VALUE, which has BITS significant bits, at P, and its serial type at TYPE. Always writes 8
 * bytes. Returns the end of the stored value. */
static inline uint8_t *put_number_bits(uint8_t *p, uint64_t value, unsigned bits, uint8_t *type)
{
    const struct number_form *form = &number_form_of_bits[bits];
    const uint64_t stored = __builtin_bswap64(value << (form->shift & 63));

    *type = form->type;
    memcpy(p, &stored, sizeof stored);
    return p + form->bytes;
}

static inline uint8_t *put_number(uint8_t *p, uint64_t value, uint8_t *type)
{
    return put_number_bits(p, value, number_count_bits(value), type);
}

/* Like put_number for a VALUE below 2^63, in fewer instructions. */
static inline uint8_t *put_positive_number(uint8_t *p, uint64_t value, uint8_t *type)
{
    return put_number_bits(p, value, number_count_bits_of_positive(value), type);
}

/* Write a record of an index: KEY, and the rowid ID of the table's row. Returns its end. */
static inline uint8_t *put_index_record(uint8_t *cell, uint64_t key, uint64_t id)
{
    uint8_t *p = put_number(cell + 4, key, &cell[2]);

    cell[1] = 3;
    p = put_number(p, id, &cell[3]);
    cell[0] = (uint8_t)(p - cell - 1);
    return p;
}

#endif
