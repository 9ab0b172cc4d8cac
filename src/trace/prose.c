/* trace/prose.c -- prints texts of a trace for people. See trace/prose.h. */
#include "trace/prose.h"

#include <stdlib.h>

#include "lib/say.h"

/* a line with more bytes is cut, unless all lines are printed whole */
enum { LINE_BYTES = 400 };

void prose_print_title(FILE *out, const char *title)
{
    bool colour = say_may_use_colour(out);

    fprintf(out, "\n%s%s%s\n", colour ? "\033[1m" : "", title, colour ? "\033[0m" : "");
}

void prose_print_text(FILE *out, const char *text, size_t width)
{
    size_t bytes = text ? prose_length_without_cut_character(text, width) : 0;

    if (!text) {
        putc('?', out);
        return;
    }
    say_escaped(out, text, bytes);
    if (text[bytes])
        fputs("…", out);
}

char *prose_describe_end(const char *ended)
{
    int number;
    const char *name = sscanf(ended, "signal %d", &number) == 1 ? sigabbrev_np(number) : NULL;

    return name ? say_print("%s (SIG%s)", ended, name) : strdup(ended);
}

/* Return TEXT as prose_print_text() prints it, or "-" if TEXT is empty. The caller frees the
 * result. */
static char *format_text(const char *text, size_t width)
{
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    prose_print_text(out, text && *text ? text : "-", width);
    fclose(out);
    return made;
}

/* Return how many columns TEXT, which is printable, takes on the screen: one for each character. */
static size_t count_columns(const char *text)
{
    size_t columns = 0;

    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

size_t prose_count_columns(const char *text, size_t width)
{
    char *made = format_text(text, width);
    size_t columns = count_columns(made);

    free(made);
    return columns;
}

void prose_print_cell(FILE *out, const char *text, size_t width, size_t columns)
{
    char *made = format_text(text, width);
    size_t used = count_columns(made);

    fprintf(out, "%s%*s", made, used < columns ? (int)(columns - used) : 0, "");
    free(made);
}

void prose_print_shell_word(FILE *out, const char *text)
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

void prose_print_lines(FILE *out, const char *text, int indent, long lines)
{
    long line = 0;

    for (; *text; line++) {
        size_t length = strcspn(text, "\n");
        bool cut = lines >= 0 && length > LINE_BYTES;
        if (lines < 0 || line < lines) {
            fprintf(out, "%*s", length ? indent : 0, "");
            say_escaped(out, text,
                        cut ? prose_length_without_cut_character(text, LINE_BYTES) : length);
            fputs(cut ? "…\n" : "\n", out);
        }
        text += length + (text[length] == '\n');
    }
    if (lines >= 0 && line > lines)
        fprintf(out, "%*s(%ld more lines; --full shows all)\n", indent, "", line - lines);
}
