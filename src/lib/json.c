/* lib/json.c -- writes JSON, and decodes UTF-8. See lib/json.h.
 *
 * Runs in: the collector and the viewer. */
#include "lib/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t json_decode_character(const unsigned char *text, size_t bytes, unsigned long *rune)
{
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = text[0];
    size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

    if (!length || length > bytes)
        return 0;
    unsigned long found = length == 1 ? c : c & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        found = found << 6 | (text[i] & 0x3f);
    }
    if (found < least[length] || found > 0x10ffff || (found >= 0xd800 && found <= 0xdfff))
        return 0;
    /* changed only for valid text, because some callers test *RUNE and not the length */
    *rune = found;
    return length;
}

/* Would a terminal that gets RUNE move its cursor or change the direction of its text? */
static bool is_control_character(unsigned long rune)
{
    const bool turns = rune == 0x061c || rune == 0x200e || rune == 0x200f ||
                       (rune >= 0x2028 && rune <= 0x202e) || (rune >= 0x2066 && rune <= 0x2069);

    return turns || rune < 0x20 || (rune >= 0x7f && rune < 0xa0);
}

void json_escape(FILE *out, const char *text, size_t bytes, enum json_escape form)
{
    while (bytes) {
        unsigned long rune = 0;
        size_t length = 0;
        while (length < bytes && text[length] >= 0x20 && text[length] < 0x7f &&
               !(form == ESCAPE_STRING && (text[length] == '"' || text[length] == '\\')))
            length++;
        fwrite_unlocked(text, 1, length, out);
        text += length;
        bytes -= length;
        if (!bytes)
            return;
        length = json_decode_character((const unsigned char *)text, bytes, &rune);
        if (form != ESCAPE_JSON && (rune == '\n' || rune == '\t')) {
            fputs(rune == '\n' ? "\\n" : "\\t", out);
        } else if (rune == '"' || rune == '\\') {
            fprintf(out, "\\%c", (int)rune);
        } else if (length && !is_control_character(rune)) {
            fwrite_unlocked(text, 1, length, out);
        } else if (form == ESCAPE_BYTES || !length) {
            fprintf(out, form == ESCAPE_BYTES ? "\\x%02x" : "\\udc%02x", (unsigned char)*text);
            length = 1;
        } else {
            fprintf(out, "\\u%04lx", rune);
        }
        text += length;
        bytes -= length;
    }
}

static void write_quoted(FILE *out, const char *text, size_t bytes)
{
    putc_unlocked('"', out);
    json_escape(out, text, bytes, ESCAPE_STRING);
    putc_unlocked('"', out);
}

void json_key(struct json *json, const char *key)
{
    struct json_level *level = &json->levels[json->depth];
    bool list = level->close == ']';
    bool comma = json->depth && level->any;
    bool line = json->broken || (level->lines && (level->any || list));

    if (comma)
        putc_unlocked(',', json->out);
    if (line)
        putc_unlocked('\n', json->out);
    if (!json->compact && (line ? list : comma))
        putc_unlocked(' ', json->out);
    json->broken = false;
    level->any = true;
    if (key) {
        write_quoted(json->out, key, strlen(key));
        fputs_unlocked(json->compact ? ":" : ": ", json->out);
    }
}

static void begin_level(struct json *json, const char *key, char open, char close)
{
    json_key(json, key);
    putc_unlocked(open, json->out);
    json->depth += json->depth < JSON_DEPTH;
    json->levels[json->depth] = (struct json_level){.close = close};
}

void json_object(struct json *json, const char *key)
{
    begin_level(json, key, '{', '}');
}

void json_list(struct json *json, const char *key)
{
    begin_level(json, key, '[', ']');
}

void json_end(struct json *json)
{
    struct json_level *level = &json->levels[json->depth--];

    if (json->broken || (level->lines && level->any && level->close == ']'))
        putc('\n', json->out);
    json->broken = false;
    putc_unlocked(level->close, json->out);
}

void json_begin_lines(struct json *json)
{
    json->levels[json->depth].lines = true;
}

void json_end_line(struct json *json)
{
    json->broken = true;
}

void json_null(struct json *json, const char *key)
{
    json_key(json, key);
    fputs("null", json->out);
}

void json_bytes(struct json *json, const char *key, const char *text, size_t bytes)
{
    json_key(json, key);
    write_quoted(json->out, text, bytes);
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
    char digits[JSON_DIGITS];
    size_t length = json_format_decimal(digits, value);

    json_key(json, key);
    fwrite_unlocked(digits, 1, length, json->out);
}

void json_integer_or_null(struct json *json, const char *key, bool known, int64_t value)
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

size_t json_format_decimal(char *made, int64_t value)
{
    char reversed[JSON_DIGITS];
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t length = 0;
    size_t at = 0;

    do
        reversed[length++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        made[at++] = '-';
    while (length)
        made[at++] = reversed[--length];
    made[at] = 0;
    return at;
}

const char *json_format_digits(char *made, double value)
{
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(made, JSON_DIGITS, "%.*g", precision, value);
        if (strtod(made, NULL) == value)
            break;
    }
    return made;
}

void json_real(struct json *json, const char *key, double value, int precision)
{
    char digits[JSON_DIGITS];

    if (!isfinite(value)) { /* JSON cannot express infinity and nan */
        json_null(json, key);
        return;
    }
    json_key(json, key);
    if (precision)
        fprintf(json->out, "%.*g", precision, value);
    else
        fputs(json_format_digits(digits, value), json->out);
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
    json_escape(json->out, text, bytes, ESCAPE_JSON);
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
