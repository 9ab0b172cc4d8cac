/* test_md5.c -- the examples of RFC 1321, and the lengths at which a block ends. */
#include "lib/md5.h"

#include <assert.h>
#include <string.h>

static void is(const char *text, const char *digest)
{
    char made[33];

    md5_hex(text, strlen(text), made);
    assert(!strcmp(made, digest));
}

int main(void)
{
    char many[129];

    is("", "d41d8cd98f00b204e9800998ecf8427e");
    is("a", "0cc175b9c0f1b6a831c399e269772661");
    is("message digest", "f96b697d7cb7938d525a2f31aaf161d0");
    is("12345678901234567890123456789012345678901234567890123456789012345678901234567890", "57edf4a22be3c955ac49da2e2107b67a");
    memset(many, 'x', sizeof many);
    many[55] = 0;
    is(many, "04364420e25c512fd958a70738aa8f72");
    many[55] = 'x';
    many[56] = 0;
    is(many, "668a72d5ba17f08e62dabcafad6db14b");
    many[56] = 'x';
    many[64] = 0;
    is(many, "c1bb4f81d892b2d57947682aeb252456");
    return 0;
}
