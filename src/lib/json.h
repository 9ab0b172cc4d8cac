/* lib/json.h -- writes JSON, and decodes UTF-8.
 *
 * Runs in: the collector and the viewer.
 *
 *     struct json j = {.out = stdout};
 *     json_object(&j, NULL), json_begin_lines(&j);         {"file": "a.db",
 *     json_string(&j, "file", path);                 "rows": {"frames": 12},
 *     json_object(&j, "rows");                       "names": ["f", null]}
 *     json_integer(&j, "frames", 12);
 *     json_end(&j);
 *     json_list(&j, "names");
 *     json_string(&j, NULL, "f"), json_string(&j, NULL, NULL);
 *     json_end(&j), json_end(&j);
 *
 * The writer adds commas, blanks and escapes. KEY is NULL for an item of a list and for the
 * outermost value.
 *
 * Text comes from traced programs. A byte that is not UTF-8 is written as \udcXX, which Python
 * reads as the same byte (surrogateescape). Control characters are escaped, so the output is safe
 * on a terminal. */
#ifndef DYNTRACE_JSON_H
#define DYNTRACE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 8 }; /* greatest depth of nested objects and lists */

/* Writes one JSON text. The caller sets OUT, and all other members to zero. */
struct json {
    FILE *out;    /* borrowed */
    bool compact; /* write no blanks between tokens */
    bool broken;  /* json_end_line was called, so the next member begins on a new line */
    int depth;
    struct json_level {
        char close; /* '}' or ']' */
        bool lines, any;
    } levels[JSON_DEPTH + 1];
};

void json_object(struct json *json, const char *key);
void json_list(struct json *json, const char *key);
void json_end(struct json *json); /* End the innermost open object or list. */

/* Print each member of the innermost open object or list on its own line. */
void json_begin_lines(struct json *json);

/* Begin a new line before the next member or the closing bracket. */
void json_end_line(struct json *json);

/* Write TEXT as a string, or null if TEXT is NULL. */
void json_string(struct json *json, const char *key, const char *text);
void json_bytes(struct json *json, const char *key, const char *text, size_t bytes);
void json_integer(struct json *json, const char *key, int64_t value);
/* Write VALUE if it is KNOWN, otherwise null. */
void json_integer_or_null(struct json *json, const char *key, bool known, int64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/* Write VALUE with PRECISION digits, or with the fewest digits that read back as the same number if
 * PRECISION is 0. Infinity and nan are written as null. */
void json_real(struct json *json, const char *key, double value, int precision);
/* Write COUNT bytes as a string of hexadecimal digits. */
void json_hex(struct json *json, const char *key, const void *bytes, size_t count);
/* Write TEXT, which is JSON, unchanged except for control characters. */
void json_raw(struct json *json, const char *key, const char *text, size_t bytes);

/* Write KEY, so that the caller can write a value of its own to OUT. */
void json_key(struct json *json, const char *key);

/* ---- parts of the writer that other code uses, too ---------------------------- */

/* Format VALUE into MADE, which has JSON_DIGITS bytes. json_format_digits writes the fewest digits
 * that read back as VALUE, and returns MADE. json_format_decimal writes a whole number, much faster
 * than printf, and returns the length. */
enum { JSON_DIGITS = 40 };
const char *json_format_digits(char *made, double value);
size_t json_format_decimal(char *made, int64_t value);

/* Write TEXT with control characters, bidirectional overrides and invalid UTF-8 escaped.
 *
 * ESCAPE_STRING: escape for a JSON string, quotes too. ESCAPE_JSON: escape for a JSON string, but
 * not quotes. ESCAPE_BYTES: write each of these bytes as \xNN. */
enum json_escape { ESCAPE_STRING, ESCAPE_JSON, ESCAPE_BYTES };
void json_escape(FILE *out, const char *text, size_t bytes, enum json_escape form);

/* Decode the UTF-8 character at TEXT into *RUNE and return its length. Returns 0 if TEXT is not
 * valid UTF-8. */
size_t json_decode_character(const unsigned char *text, size_t bytes, unsigned long *rune);

/* Return the NUL-separated STRINGS (BYTES long) as a JSON array, which the caller frees. Returns
 * NULL if memory has run out. */
char *json_array(const char *strings, size_t bytes);

#endif
