/* lib/md5.c -- the MD5 digest of a text. See lib/md5.h. */
#include "lib/md5.h"

#include <math.h>
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

/* What the steps add: of step N the first 32 bits of |sin(N + 1)|, as the RFC has it. */
static uint32_t constants[STEPS];

static void constants_find(void)
{
    if (constants[0])
        return;
    for (int step = STEPS; step--;)
        constants[step] = (uint32_t)(fabs(sin(step + 1)) * 4294967296.0);
}

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
        next = a + mixed + constants[step] + word_at(block + word % 16 * 4);
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

    constants_find();
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
