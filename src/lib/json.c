/* lib/json.c -- the writer of JSON, and the UTF-8 that text in it is made of. See lib/json.h.
 *
 * Runs in: the collector and the viewer. */
#include "lib/json.h"

#include <inttypes.h>
#include <math.h>
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

/* TEXT, escaped; QUOTES and what else a string needs only in a STRING. */
static void escape(FILE *out, const char *text, size_t bytes, bool string)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + bytes, *plain;

    while (p < end) {
        unsigned long rune = 0;
        size_t length;
        for (plain = p; p < end && *p >= 0x20 && *p < 0x7f && !(string && (*p == '"' || *p == '\\')); p++)
            ;
        if (p > plain)
            fwrite(plain, 1, (size_t)(p - plain), out);
        if (p == end)
            return;
        length = json_rune(p, (size_t)(end - p), &rune);
        if (!length)
            fprintf(out, "\\udc%02x", *p);
        else if (rune == '"' || rune == '\\')
            fprintf(out, "\\%c", (int)rune);
        else if (string && (rune == '\n' || rune == '\t'))
            fputs(rune == '\n' ? "\\n" : "\\t", out);
        /* What would move a terminal's cursor or turn its text. */
        else if (rune < 0x20 || (rune >= 0x7f && rune < 0xa0) || (rune >= 0x2028 && rune <= 0x202e) ||
                 (rune >= 0x2066 && rune <= 0x2069))
            fprintf(out, "\\u%04lx", rune);
        else
            fwrite(p, 1, length, out);
        p += length ? length : 1;
    }
}

static void quote(FILE *out, const char *text, size_t bytes)
{
    putc('"', out);
    escape(out, text, bytes, true);
    putc('"', out);
}

/* ---- structure ------------------------------------------------------------- */

void json_key(struct json *json, const char *key)
{
    struct json_level *level = &json->levels[json->depth];
    bool list = level->close == ']';

    if (json->depth && level->any)
        putc(',', json->out);
    if (json->broken || (level->lines && (level->any || list)))
        fputs(json->compact || !list ? "\n" : "\n ", json->out);
    else if (json->depth && level->any && !json->compact)
        putc(' ', json->out);
    json->broken = false;
    level->any = true;
    if (key) {
        quote(json->out, key, strlen(key));
        fputs(json->compact ? ":" : ": ", json->out);
    }
}

static void begin(struct json *json, const char *key, char open, char close)
{
    json_key(json, key);
    putc(open, json->out);
    json->depth += json->depth < JSON_DEPTH;
    json->levels[json->depth] = (struct json_level){.close = close};
}

void json_object(struct json *json, const char *key)
{
    begin(json, key, '{', '}');
}

void json_list(struct json *json, const char *key)
{
    begin(json, key, '[', ']');
}

void json_end(struct json *json)
{
    struct json_level *level = &json->levels[json->depth--];

    if (json->broken || (level->lines && level->any && level->close == ']'))
        putc('\n', json->out);
    json->broken = false;
    putc(level->close, json->out);
}

void json_lines(struct json *json)
{
    json->levels[json->depth].lines = true;
}

void json_line(struct json *json)
{
    json->broken = true;
}

/* ---- values ---------------------------------------------------------------- */

void json_null(struct json *json, const char *key)
{
    json_key(json, key);
    fputs("null", json->out);
}

void json_bytes(struct json *json, const char *key, const char *text, size_t bytes)
{
    json_key(json, key);
    quote(json->out, text, bytes);
}

void json_string(struct json *json, const char *key, const char *text)
{
    if (text)
        json_bytes(json, key, text, strlen(text));
    else
        json_null(json, key);
}

void json_integer(struct json *json, const char *key, int64_t value)
{
    json_key(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void json_maybe(struct json *json, const char *key, bool known, int64_t value)
{
    if (known)
        json_integer(json, key, value);
    else
        json_null(json, key);
}

void json_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    fputs(value ? "true" : "false", json->out);
}

const char *json_digits(char *made, double value)
{
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(made, 40, "%.*g", precision, value);
        if (strtod(made, NULL) == value)
            break;
    }
    return made;
}

void json_real(struct json *json, const char *key, double value, int precision)
{
    char digits[40];

    if (!isfinite(value)) { /* JSON has no word for it */
        json_null(json, key);
        return;
    }
    json_key(json, key);
    if (precision)
        fprintf(json->out, "%.*g", precision, value);
    else
        fputs(json_digits(digits, value), json->out);
}

void json_hex(struct json *json, const char *key, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;

    json_key(json, key);
    putc('"', json->out);
    for (size_t i = 0; i < count; i++)
        fprintf(json->out, "%02x", p[i]);
    putc('"', json->out);
}

void json_raw(struct json *json, const char *key, const char *text, size_t bytes)
{
    json_key(json, key);
    escape(json->out, text, bytes, false);
}

char *json_array(const char *strings, size_t bytes)
{
    char *made = NULL;
    size_t room = 0;
    struct json json = {.out = open_memstream(&made, &room)};

    if (!json.out)
        return NULL;
    json_list(&json, NULL);
    for (size_t at = 0, length; at < bytes; at += length + 1) {
        length = strnlen(strings + at, bytes - at);
        json_bytes(&json, NULL, strings + at, length);
    }
    json_end(&json);
    if (fclose(json.out)) {
        free(made);
        return NULL;
    }
    return made;
}
