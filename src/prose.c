/* prose.c -- facts of a trace in sentences. See prose.h.
 *
 * Runs in: the viewer. */
#include "prose.h"

#include <stdlib.h>
#include <string.h>

#include "db.h"
#include "say.h"

enum { LINE_BYTES = 400 }; /* of a line of a text of which not all lines are shown */

void prose_title(FILE *out, const char *title)
{
    bool colour = say_colour(out);

    fprintf(out, "\n%s%s%s\n", colour ? "\033[1m" : "", title, colour ? "\033[0m" : "");
}

size_t prose_cut(const char *text, size_t width)
{
    size_t bytes = strnlen(text, width + 1);

    if (bytes <= width)
        return bytes;
    while (width > 0 && ((unsigned char)text[width] & 0xc0) == 0x80)
        width--;
    return width;
}

void prose_text(FILE *out, const char *text, size_t width)
{
    size_t bytes = text ? strnlen(text, width + 1) : 0;

    if (!text) {
        putc('?', out);
    } else if (bytes <= width) {
        say_escaped(out, text, bytes);
    } else {
        say_escaped(out, text, prose_cut(text, width));
        fputs("…", out);
    }
}

void prose_lines(FILE *out, const char *text, int indent, long lines)
{
    long left = 0;

    for (long line = 0; *text; line++) {
        size_t length = strcspn(text, "\n");
        if (lines >= 0 && line >= lines) {
            left++;
        } else if (!length) {
            putc('\n', out);
        } else {
            fprintf(out, "%*s", indent, "");
            if (lines >= 0 && length > LINE_BYTES) {
                say_escaped(out, text, prose_cut(text, LINE_BYTES));
                fputs("…", out);
            } else {
                say_escaped(out, text, length);
            }
            putc('\n', out);
        }
        text += length + (text[length] == '\n');
    }
    if (left)
        fprintf(out, "%*s(%ld more lines; --full shows all)\n", indent, "", left);
}

const char *prose_path(const char *path)
{
    const char *end = path + strlen(path);

    for (int slashes = 0; end > path; end--)
        if (end[-1] == '/' && ++slashes == 2)
            break;
    return end;
}

char *prose_column(struct query *query, int column)
{
    return query_type(query, column) == QUERY_NULL ? NULL : strdup(query_text(query, column, NULL));
}

bool prose_same(const char *text, const char *other)
{
    return text && other ? !strcmp(text, other) : text == other;
}
