/* trace/prose.c -- facts of a trace in sentences. See trace/prose.h. */
#include "trace/prose.h"

#include <stdarg.h>
#include <stdlib.h>

#include "lib/say.h"
#include "lib/table.h"

enum { LINE_BYTES = 400 }; /* of a line of a text of which not all lines are shown */

void prose_title(FILE *out, const char *title)
{
    bool colour = say_colour(out);

    fprintf(out, "\n%s%s%s\n", colour ? "\033[1m" : "", title, colour ? "\033[0m" : "");
}

void prose_text(FILE *out, const char *text, size_t width)
{
    size_t bytes = text ? prose_cut(text, width) : 0;

    if (!text) {
        putc('?', out);
        return;
    }
    say_escaped(out, text, bytes);
    if (text[bytes])
        fputs("…", out);
}

char *prose_ended(const char *ended)
{
    int number;
    const char *name = sscanf(ended, "signal %d", &number) == 1 ? sigabbrev_np(number) : NULL;

    return name ? say_print("%s (SIG%s)", ended, name) : strdup(ended);
}

/* TEXT as it is printed; the caller frees it. */
static char *printed(const char *text, size_t width)
{
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    prose_text(out, text && *text ? text : "-", width);
    fclose(out);
    return made;
}

/* Columns of a text that is safe to print: one for each rune. */
static size_t columns_of(const char *text)
{
    size_t columns = 0;

    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

size_t prose_columns(const char *text, size_t width)
{
    char *made = printed(text, width);
    size_t columns = columns_of(made);

    free(made);
    return columns;
}

/* TEXT within WIDTH columns, flush left when that is negative. */
static void put_wide(FILE *out, const char *text, int width)
{
    int rest = abs(width) - (int)columns_of(text);

    if (rest > 0 && width > 0)
        fprintf(out, "%*s", rest, "");
    fputs(text, out);
    if (rest > 0 && width < 0)
        fprintf(out, "%*s", rest, "");
}

void prose_print(FILE *out, const char *format, ...)
{
    va_list values;
    int64_t last = 0;
    /* while OUT is a part in braces, which is kept unless a value in it is MISSING */
    FILE *whole = out;
    char *part = NULL;
    size_t room = 0;
    bool missing = false;

    va_start(values, format);
    while (*format) {
        size_t plain = strcspn(format, "%({}"), length;
        const char *flags = format + plain;
        char human[TABLE_HUMAN], *end = NULL;
        bool left = flags[0] && flags[1] == '-';
        int width, cut = -1;
        fwrite(format, 1, plain, out);
        if (!*flags)
            break;
        if (*flags == '{') {
            out = open_memstream(&part, &room);
            missing = false;
            format = flags + 1;
            continue;
        }
        if (*flags == '}') {
            fclose(out);
            out = whole;
            fputs(missing ? "" : part, out);
            free(part);
            format = flags + 1;
            continue;
        }
        if (*flags == '(') {
            bool plural = !strncmp(flags, "(s)", 3) || !strncmp(flags, "(es)", 4);
            length = plural ? strcspn(flags, ")") + 1 : 1;
            if (!plural)
                putc('(', out);
            else if (last != 1)
                fwrite(flags + 1, 1, length - 2, out);
            format = flags + length;
            continue;
        }
        length = 1 + strspn(flags + 1, "-+'");
        width = (int)strtol(flags + length, &end, 10) * (left ? -1 : 1);
        if (end[0] == '.' && end[1] == '*')
            cut = va_arg(values, int), end += 2;
        else if (end[0] == '.')
            cut = (int)strtol(end + 1, &end, 10);
        if (*end == '%') {
            putc('%', out);
        } else if (*end == 's') {
            const char *text = va_arg(values, const char *);
            missing = missing || !prose_filled(text);
            if (!width) {
                prose_text(out, text, cut < 0 ? SIZE_MAX - 1 : (size_t)cut);
            } else {
                char *made = printed(text, cut < 0 ? SIZE_MAX - 1 : (size_t)cut);
                put_wide(out, made, width);
                free(made);
            }
        } else if (*end == 'j') {
            int64_t value = last = va_arg(values, int64_t);
            missing = missing || value == PROSE_UNKNOWN;
            if (value == PROSE_UNKNOWN)
                strcpy(human, "?");
            else if (memchr(flags, '\'', length))
                table_count(human, value);
            else if (memchr(flags, '+', length))
                table_duration(human, value);
            else
                snprintf(human, sizeof human, "%jd", (intmax_t)value);
            put_wide(out, human, width);
            end++;
        } else { /* a share of something */
            char text[64];
            double value = va_arg(values, double);
            snprintf(text, sizeof text, *end == 'g' ? "%.*g" : "%.*f", cut < 0 ? 6 : cut, value);
            put_wide(out, text, width);
        }
        format = end + 1;
    }
    va_end(values);
}

void prose_cell(FILE *out, const char *text, size_t width, size_t columns)
{
    char *made = printed(text, width);

    put_wide(out, made, -(int)columns);
    free(made);
}

void prose_shell_word(FILE *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./,:@%";

    if (*text && !text[strspn(text, plain)]) {
        fputs(text, out);
        return;
    }
    if (strchr(text, '\'') && !strpbrk(text, "\"\\$`!")) {
        putc('"', out);
        say_escaped(out, text, strlen(text));
        putc('"', out);
        return;
    }
    putc('\'', out);
    while (*text) {
        size_t bytes = strcspn(text, "'");
        say_escaped(out, text, bytes);
        text += bytes;
        if (*text == '\'') {
            fputs("'\\''", out);
            text++;
        }
    }
    putc('\'', out);
}

void prose_lines(FILE *out, const char *text, int indent, long lines)
{
    long line = 0;

    for (; *text; line++) {
        size_t length = strcspn(text, "\n");
        bool cut = lines >= 0 && length > LINE_BYTES;
        if (lines < 0 || line < lines) {
            fprintf(out, "%*s", length ? indent : 0, "");
            say_escaped(out, text, cut ? prose_cut(text, LINE_BYTES) : length);
            fputs(cut ? "…\n" : "\n", out);
        }
        text += length + (text[length] == '\n');
    }
    if (lines >= 0 && line > lines)
        fprintf(out, "%*s(%ld more lines; --full shows all)\n", indent, "", line - lines);
}
