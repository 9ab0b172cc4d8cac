/* lib/md5.c -- the MD5 digest of a text. See lib/md5.h. */
#include "lib/md5.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, STEPS = 64, LENGTH_BYTES = 8 };

/* By how many bits the steps of each round turn. */
static const uint8_t turns[4][4] = {
    {7, 12, 17, 22},
    {5, 9, 14, 20},
    {4, 11, 16, 23},
    {6, 10, 15, 21},
};

/* Of step N the first 32 bits of |sin(N + 1)|. */
static const uint32_t sines[STEPS] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static uint32_t turn_left(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

/* The little-endian number at BYTES. */
static uint32_t word_at(const unsigned char *bytes)
{
    return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void block_add(uint32_t state[4], const unsigned char *block)
{
    uint32_t a = state[0];
    uint32_t b = state[1];
    uint32_t c = state[2];
    uint32_t d = state[3];

    for (int step = 0; step < STEPS; step++) {
        int round = step / 16;
        int word = step;
        uint32_t mixed = (b & c) | (~b & d);
        uint32_t next;
        if (round == 1) {
            word = step * 5 + 1;
            mixed = (b & d) | (c & ~d);
        } else if (round == 2) {
            word = step * 3 + 5;
            mixed = b ^ c ^ d;
        } else if (round == 3) {
            word = step * 7;
            mixed = c ^ (b | ~d);
        }
        next = a + mixed + sines[step] + word_at(block + word % 16 * 4);
        a = d;
        d = c;
        c = b;
        b += turn_left(next, turns[round][step % 4]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void md5_hex(const void *data, size_t length, char hex[MD5_HEX])
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    unsigned char end[2 * BLOCK] = {0};
    const unsigned char *at = data;
    size_t left = length % BLOCK;
    size_t end_length = left < BLOCK - LENGTH_BYTES ? BLOCK : 2 * BLOCK;
    uint64_t bits = (uint64_t)length * 8;

    for (size_t i = 0; i < length / BLOCK; i++)
        block_add(state, at + i * BLOCK);
    memcpy(end, at + length - left, left);
    end[left] = 0x80;
    for (int i = 0; i < LENGTH_BYTES; i++)
        end[end_length - LENGTH_BYTES + (size_t)i] = (unsigned char)(bits >> 8 * i);
    for (size_t i = 0; i < end_length; i += BLOCK)
        block_add(state, end + i);
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", state[i / 4] >> 8 * (i % 4) & 0xff);
}
