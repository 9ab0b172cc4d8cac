/* lib/json.h -- the writer of JSON, and the UTF-8 that text in it is made of.
 *
 * Runs in: the collector and the viewer.
 *
 *     struct json j = {.out = stdout};
 *     json_object(&j, NULL), json_lines(&j);         {"file": "a.db",
 *     json_string(&j, "file", path);                 "rows": {"frames": 12},
 *     json_object(&j, "rows");                       "names": ["f", null]}
 *     json_integer(&j, "frames", 12);
 *     json_end(&j);
 *     json_list(&j, "names");
 *     json_string(&j, NULL, "f"), json_string(&j, NULL, NULL);
 *     json_end(&j), json_end(&j);
 *
 * Commas, blanks and escapes are the writer's. KEY is NULL in a list and at the top.
 *
 * Text comes from traced programs. A byte that is not UTF-8 becomes \udcXX, which Python reads as
 * that byte (surrogateescape); controls are escaped: safe on a terminal. */
#ifndef DYNTRACE_JSON_H
#define DYNTRACE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 8 }; /* nested objects and lists */

/* Zeroed but for OUT. */
struct json {
    FILE *out;    /* borrowed */
    bool compact; /* no blanks */
    bool broken;  /* the next member begins a line: json_line */
    int depth;
    struct json_level {
        char close; /* '}' or ']' */
        bool lines, any;
    } levels[JSON_DEPTH + 1];
};

void json_object(struct json *json, const char *key);
void json_list(struct json *json, const char *key);
void json_end(struct json *json); /* of the innermost open object or array */

/* Print each member of the innermost open object or array on its own line. */
void json_lines(struct json *json);

/* Start the next member or end on a new line. */
void json_line(struct json *json);

/* NULL is null. */
void json_string(struct json *json, const char *key, const char *text);
void json_bytes(struct json *json, const char *key, const char *text, size_t bytes);
void json_integer(struct json *json, const char *key, int64_t value);
/* null unless KNOWN */
void json_maybe(struct json *json, const char *key, bool known, int64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/* PRECISION digits; 0: the fewest that read back as the same number. Numbers that are not finite
 * become null. */
void json_real(struct json *json, const char *key, double value, int precision);
void json_hex(struct json *json, const char *key, const void *bytes, size_t count); /* a blob */
/* Write TEXT, which is JSON, unchanged except for control characters. */
void json_raw(struct json *json, const char *key, const char *text, size_t bytes);

/* Begin a member; the caller writes its value. */
void json_key(struct json *json, const char *key);

/* ---- below the writer ---------------------------------------------------- */

/* Format VALUE into MADE, which has JSON_DIGITS bytes. json_digits: the fewest digits that read
 * back as VALUE; returns MADE. json_decimal: much faster than printf; returns the length. */
enum { JSON_DIGITS = 40 };
const char *json_digits(char *made, double value);
size_t json_decimal(char *made, int64_t value);

/* Write TEXT with control characters, bidirectional overrides and invalid UTF-8 escaped: as JSON
 * does if JSON (quotes are then escaped, too), else byte by byte as \xNN. */
enum json_escape { ESCAPE_STRING, ESCAPE_JSON, ESCAPE_BYTES };
void json_escape(FILE *out, const char *text, size_t bytes, enum json_escape form);

/* Length of the well-formed UTF-8 sequence at TEXT and its code point, or 0. */
size_t json_rune(const unsigned char *text, size_t bytes, unsigned long *rune);

/* An array of the NUL-separated strings, in a malloc'ed string that the caller frees. NULL: out of
 * memory. */
char *json_array(const char *strings, size_t bytes);

#endif
