/* trace/csv.c -- rows of a query as CSV. See trace/csv.h.
 *
 * Runs in: the viewer. */
#include "trace/csv.h"

#include <inttypes.h>
#include <string.h>

#include "trace/db.h"

/* TEXT in quotes where it needs them. */
static void csv_text(FILE *out, const char *text, size_t bytes, bool safe)
{
    bool plain = bytes && !memchr(text, '"', bytes) && !memchr(text, ',', bytes) && !memchr(text, '\n', bytes) && !memchr(text, '\r', bytes);

    if (!plain)
        putc('"', out);
    if (safe && bytes && memchr("=+-@\t\r", *text, 6))
        putc('\'', out);
    if (plain)
        fwrite(text, 1, bytes, out);
    for (size_t i = 0; !plain && i < bytes; i++) {
        if (text[i] == '"')
            putc('"', out);
        putc(text[i], out);
    }
    if (!plain)
        putc('"', out);
}

static void hex_put(FILE *out, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%02x", (unsigned char)bytes[i]);
}

void csv_head(FILE *out, struct query *query, bool safe)
{
    int columns = query_columns(query);

    for (int i = 0; i < columns; i++) {
        const char *name = query_name(query, i);
        if (i)
            putc(',', out);
        csv_text(out, name, strlen(name), safe);
    }
    if (columns)
        fputs("\r\n", out);
}

void csv_row(FILE *out, struct query *query, bool safe)
{
    int columns = query_columns(query);

    for (int i = 0; i < columns; i++) {
        enum query_type type = query_type(query, i);
        size_t bytes;
        const char *text;
        if (i)
            putc(',', out);
        if (type == QUERY_NULL)
            continue;
        if (type == QUERY_INTEGER) {
            fprintf(out, "%" PRId64, query_integer(query, i));
            continue;
        }
        text = query_whole(query, i, &bytes);
        if (type == QUERY_BLOB)
            hex_put(out, text, bytes);
        else
            csv_text(out, text, bytes, safe && type == QUERY_TEXT);
    }
    fputs("\r\n", out);
}
