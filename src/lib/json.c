/* lib/json.c -- text as JSON, and the UTF-8 that it is made of. See lib/json.h.
 *
 * Runs in: the collector and the viewer. */
#include "lib/json.h"

#include <stdlib.h>
#include <string.h>

size_t json_rune(const unsigned char *text, size_t bytes, unsigned long *rune)
{
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = text[0];
    size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

    if (!length || length > bytes)
        return 0;
    *rune = length == 1 ? c : c & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *rune = *rune << 6 | (text[i] & 0x3f);
    }
    if (*rune < least[length] || *rune > 0x10ffff || (*rune >= 0xd800 && *rune <= 0xdfff))
        return 0;
    return length;
}

/* One rune, escaped where it would move a terminal's cursor or turn its text. */
static void put_rune(FILE *out, unsigned long rune, const unsigned char *bytes, size_t length)
{
    if (!length)
        fprintf(out, "\\udc%02x", bytes[0]);
    else if (rune < 0x20 || (rune >= 0x7f && rune < 0xa0) || (rune >= 0x2028 && rune <= 0x202e) ||
             (rune >= 0x2066 && rune <= 0x2069))
        fprintf(out, "\\u%04lx", rune);
    else
        fwrite(bytes, 1, length, out);
}

void json_text(FILE *out, const char *json, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)json, *end = p + bytes;

    while (p < end) {
        unsigned long rune = 0;
        size_t length = json_rune(p, (size_t)(end - p), &rune);
        put_rune(out, rune, p, length);
        p += length ? length : 1;
    }
}

void json_string(FILE *out, const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + bytes;

    putc('"', out);
    while (p < end) {
        unsigned long rune = 0;
        size_t length = json_rune(p, (size_t)(end - p), &rune);
        if (length && (rune == '"' || rune == '\\'))
            fprintf(out, "\\%c", (int)rune);
        else if (length && rune == '\n')
            fputs("\\n", out);
        else if (length && rune == '\t')
            fputs("\\t", out);
        else
            put_rune(out, rune, p, length);
        p += length ? length : 1;
    }
    putc('"', out);
}

char *json_array(const char *strings, size_t bytes)
{
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    if (!out)
        return NULL;
    putc('[', out);
    for (size_t at = 0; at < bytes; ) {
        size_t length = strnlen(strings + at, bytes - at);
        if (at)
            fputs(", ", out);
        json_string(out, strings + at, length);
        at += length + 1;
    }
    putc(']', out);
    if (fclose(out)) {
        free(made);
        return NULL;
    }
    return made;
}
