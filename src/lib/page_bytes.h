/* lib/page_bytes.h -- numbers in SQLite's file pages: big endian, and varints. */
#ifndef DYNTRACE_PAGE_BYTES_H
#define DYNTRACE_PAGE_BYTES_H

#include <stdint.h>
#include <string.h>

enum {
    /* free bytes needed behind the last cell, because put_big_endian and get_signed access 8 bytes
     * even for shorter numbers */
    PAGE_SLACK = 8,
    PAGE_TABLE = 13,
    /* PAGE_TABLE and PAGE_INDEX are the first byte of a leaf page. The first byte of an interior
     * page is 8 less. */
    PAGE_INDEX = 10,
};

/* For a number with N significant bits: the serial type with which SQLite stores the number, and
 * its size in bytes. 7 bits fit in a signed byte; 0 and 1 have serial types of their own. */
extern const uint8_t frame_type_of_bits[65], frame_bytes_of_bits[65];
/* The size in bytes of a value, by its serial type (0 to 9). */
static const uint8_t frame_bytes_of_type[10] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

static inline unsigned frame_bits(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

static inline unsigned frame_bytes_of(uint64_t value)
{
    return frame_bytes_of_bits[frame_bits(value)];
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
static inline int64_t get_signed(const uint8_t *p, unsigned bytes)
{
    uint64_t stored;

    memcpy(&stored, p, sizeof stored);
    return (int64_t)__builtin_bswap64(stored) >> (64 - 8 * bytes);
}

static inline unsigned varint_bytes(uint64_t value)
{
    /* A byte of a varint holds seven bits. Ids stay below 2^56, so the 9-byte form never occurs. */
    return (unsigned)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

/* Store VALUE, which is below 2^56, as a varint. Always writes 8 bytes, so P must have room for 8.
 * Three steps move each group of seven bits to a byte of its own: the first moves halves of VALUE,
 * the second quarters, the third eighths. */
static inline uint8_t *put_varint(uint8_t *p, uint64_t value)
{
    unsigned bytes = varint_bytes(value);

    for (unsigned i = bytes; i--;)
        *p++ = (uint8_t)((value >> (7 * i) & 0x7f) | (i ? 0x80 : 0));
    return p;
}

static inline void put16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline unsigned get16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static inline uint8_t *put_number(uint8_t *p, uint64_t value, uint8_t *type)
{
    unsigned bits = frame_bits(value);

    *type = frame_type_of_bits[bits];
    return put_big_endian(p, value, frame_bytes_of_bits[bits]);
}

/* Write a record of an index: KEY, and the rowid ID of the table's row. Returns its end. */
static inline uint8_t *put_key(uint8_t *cell, uint64_t key, uint64_t id)
{
    uint8_t *p = put_number(cell + 4, key, &cell[2]);

    cell[1] = 3;
    p = put_number(p, id, &cell[3]);
    cell[0] = (uint8_t)(p - cell - 1);
    return p;
}

#endif
