/* lib/json.h -- text as JSON, and the UTF-8 that it is made of.
 *
 * Runs in: the collector and the viewer. */
#ifndef DYNTRACE_JSON_H
#define DYNTRACE_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Length of the well-formed UTF-8 sequence at TEXT and its code point, or 0. */
size_t json_rune(const unsigned char *text, size_t bytes, unsigned long *rune);

/* TEXT in quotes. A byte that is not UTF-8 becomes \udcXX, which Python reads as
 * that byte (surrogateescape). Controls are escaped: safe on a terminal. */
void json_string(FILE *out, const char *text, size_t bytes);

/* JSON is JSON already: the same escapes, no quotes. */
void json_text(FILE *out, const char *json, size_t bytes);

/* NUL-separated strings as an array of strings, in a malloc'ed string that the
 * caller frees. NULL: out of memory. */
char *json_array(const char *strings, size_t bytes);

#endif
