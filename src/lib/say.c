/* lib/say.c -- messages for people, and text made safe to print.
 *
 * Runs in: the command line (every command). See lib/say.h. */
#include "lib/say.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/json.h"

/* Length of the well-formed, printable UTF-8 sequence at TEXT, or 0. Overlong
 * forms, surrogates, C1 controls (U+0080..9F) and the bidirectional overrides
 * are not printable: the last can make a line read backwards. */
static size_t printable(const unsigned char *text, size_t bytes)
{
    unsigned long rune;
    size_t length = json_rune(text, bytes, &rune);

    return !length || rune < 0x20 || (rune >= 0x7f && rune < 0xa0) || (rune >= 0x202a && rune <= 0x202e) ||
                   (rune >= 0x2066 && rune <= 0x2069)
               ? 0
               : length;
}

void say_escaped(FILE *out, const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + bytes;

    while (p < end) {
        size_t length = printable(p, (size_t)(end - p));
        if (length) {
            fwrite(p, 1, length, out);
            p += length;
        } else if (*p == '\n') {
            fputs("\\n", out), p++;
        } else if (*p == '\t') {
            fputs("\\t", out), p++;
        } else {
            fprintf(out, "\\x%02x", *p++);
        }
    }
}

char *say_escape(const char *text, size_t bytes)
{
    char *made = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&made, &length);

    if (!out)
        return NULL;
    say_escaped(out, text, bytes);
    if (fclose(out) != 0) {
        free(made);
        return NULL;
    }
    return made;
}

enum { LINE_MOST = 4000 }; /* bytes of a message; a name in it may be of any length */

static _Thread_local void (*diverted)(void *context, const char *line);
static _Thread_local void *diverted_context;

void say_divert(void (*to)(void *context, const char *line), void *context)
{
    diverted = to;
    diverted_context = context;
}

bool say_diverted(void)
{
    return diverted != NULL;
}

void say_error(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    int length;

    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    /* One write, so that lines of several processes do not mix. */
    char *safe = say_escape(text, (size_t)length < LINE_MOST ? (size_t)length : LINE_MOST);
    if (safe && diverted)
        diverted(diverted_context, safe);
    else if (safe)
        fprintf(stderr, "dyntrace: %s\n", safe);
    free(safe);
    free(text);
}

char *say_print(const char *format, ...)
{
    va_list arguments, again;
    char *text;
    int length;

    va_start(arguments, format);
    va_copy(again, arguments);
    length = vsnprintf(NULL, 0, format, arguments);
    if (length >= 0 && (text = malloc((size_t)length + 1))) /* ours, not libc's own as in asprintf */
        vsnprintf(text, (size_t)length + 1, format, again);
    else
        text = NULL;
    va_end(again);
    va_end(arguments);
    return text;
}

bool say_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR");

    return isatty(fileno(out)) && !(no && *no);
}
