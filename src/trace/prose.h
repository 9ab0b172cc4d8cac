/* trace/prose.h -- texts of a trace, for people.
 *
 * Text in a trace comes from traced programs and can be long and hostile: here
 * it is escaped and cut, so that one fact stays on one line. */
#ifndef DYNTRACE_PROSE_H
#define DYNTRACE_PROSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* An empty line, then TITLE in bold where there are colours. */
void prose_title(FILE *out, const char *title);

/* TEXT escaped, cut to about WIDTH bytes with a "…" at the end. NULL is "?". */
void prose_text(FILE *out, const char *text, size_t width);

/* NULL for an empty text as for none. */
static inline const char *prose_filled(const char *text)
{
    return text && *text ? text : NULL;
}

/* TEXT, or OTHERWISE where there is none. */
static inline const char *prose_or(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

/* The same as prose_text, then spaces up to COLUMNS columns: cells of a table. NULL and empty are
 * "-". */
void prose_cell(FILE *out, const char *text, size_t width, size_t columns);

/* TEXT as one word of a shell, in quotes where it needs them. */
void prose_shell_word(FILE *out, const char *text);

/* How many columns prose_cell() needs for TEXT. */
size_t prose_columns(const char *text, size_t width);

/* The longest beginning of TEXT within WIDTH bytes that does not end inside a rune. */
static inline size_t prose_cut(const char *text, size_t width)
{
    size_t bytes = strnlen(text, width + 1);

    if (bytes <= width)
        return bytes;
    while (width > 0 && ((unsigned char)text[width] & 0xc0) == 0x80)
        width--;
    return width;
}

/* TEXT line by line, each with INDENT spaces before it; at most LINES,
 * long ones cut, then how many were left out. -1: all of it. */
void prose_lines(FILE *out, const char *text, int indent, long lines);

/* The last two parts of a path: enough to know a file by. Borrowed from PATH. */
static inline const char *prose_path(const char *path)
{
    const char *end = path + strlen(path);

    for (int slashes = 0; end > path; end--)
        if (end[-1] == '/' && ++slashes == 2)
            break;
    return end;
}

/* How a process ended, as the view process_tree has it, with a signal's name: "signal 9 (SIGKILL)".
 * The caller frees it. */
char *prose_ended(const char *ended);

/* TEXT equals OTHER; NULL equals NULL. */
static inline bool prose_same(const char *text, const char *other)
{
    return text && other ? !strcmp(text, other) : text == other;
}

#endif
