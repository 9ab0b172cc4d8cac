/* lib/md5.c -- RFC 1321. See lib/md5.h.
 *
 * Runs in: the viewer. */
#include "lib/md5.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void md5_block(uint32_t state[4], const unsigned char block[64], const uint32_t sines[64])
{
    static const unsigned char turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], words[16];

    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[i * 4] | (uint32_t)block[i * 4 + 1] << 8 | (uint32_t)block[i * 4 + 2] << 16 |
                   (uint32_t)block[i * 4 + 3] << 24;
    for (int i = 0; i < 64; i++) {
        uint32_t f = i < 16 ? (b & c) | (~b & d) : i < 32 ? (d & b) | (~d & c) : i < 48 ? b ^ c ^ d : c ^ (b | ~d);
        int word = i < 16 ? i : i < 32 ? (5 * i + 1) % 16 : i < 48 ? (3 * i + 5) % 16 : 7 * i % 16, turn = turns[i / 16][i % 4];
        f += a + sines[i] + words[word];
        a = d;
        d = c;
        c = b;
        b += f << turn | f >> (32 - turn);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void md5_hex(const void *data, size_t bytes, char made[33])
{
    static uint32_t sines[64];
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    const unsigned char *p = data;
    unsigned char last[128] = {0};
    size_t left = bytes, padded;

    for (int i = 0; !sines[63] && i < 64; i++)
        sines[i] = (uint32_t)(fabs(sin(i + 1)) * 4294967296.0);
    for (; left >= 64; left -= 64, p += 64)
        md5_block(state, p, sines);
    memcpy(last, p, left);
    last[left] = 0x80;
    padded = left < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++)
        last[padded - 8 + (size_t)i] = (unsigned char)((uint64_t)bytes * 8 >> (8 * i));
    for (size_t i = 0; i < padded; i += 64)
        md5_block(state, last + i, sines);
    for (int i = 0; i < 16; i++)
        sprintf(made + 2 * i, "%02x", (unsigned)(state[i / 4] >> (8 * (i % 4)) & 255));
}
