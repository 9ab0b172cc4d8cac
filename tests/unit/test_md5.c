/* The digests of RFC 1321, and of texts of each length around a block's. */
#include "lib/md5.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    static const struct {
        const char *text, *hex;
    } known[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    char text[200], hex[MD5_HEX], all[200 * (MD5_HEX - 1)];
    int failures = 0;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        md5_hex(known[i].text, strlen(known[i].text), hex);
        if (strcmp(hex, known[i].hex) != 0) {
            printf("FAIL md5(%s) is %s\n", known[i].text, hex);
            failures++;
        }
    }
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < sizeof text; i++) {
        md5_hex(text, i, hex);
        memcpy(all + i * (MD5_HEX - 1), hex, MD5_HEX - 1);
    }
    md5_hex(all, sizeof all, hex);
    if (strcmp(hex, "0f0e2ac786e6a42eac7e7de3a518cd0c") != 0) {
        printf("FAIL the digests of 0 to 199 bytes have the digest %s\n", hex);
        failures++;
    }
    return failures != 0;
}
