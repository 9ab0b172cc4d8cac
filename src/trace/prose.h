/* trace/prose.h -- prints texts of a trace for people.
 *
 * Text in a trace comes from traced programs, and may be long or malicious. It is printed with
 * escapes and cut, so that it stays on one line. */
#ifndef DYNTRACE_PROSE_H
#define DYNTRACE_PROSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Print an empty line, then TITLE, in bold if OUT has colours. */
void prose_print_title(FILE *out, const char *title);

/* Print TEXT escaped and cut to about WIDTH bytes, with "…" at the cut. NULL is printed as "?". */
void prose_print_text(FILE *out, const char *text, size_t width);

/* Return TEXT, or NULL if TEXT is empty. */
static inline const char *prose_null_if_empty(const char *text)
{
    return text && *text ? text : NULL;
}

/* Return TEXT, or OTHERWISE if TEXT is empty or NULL. */
static inline const char *prose_text_or_other(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

/* Print TEXT like prose_print_text, followed by spaces up to COLUMNS columns, as a cell of a table.
 * An empty text and NULL are printed as "-". */
void prose_print_cell(FILE *out, const char *text, size_t width, size_t columns);

/* Print TEXT as one word of a shell command, quoted if necessary. */
void prose_print_shell_word(FILE *out, const char *text);

/* Return how many columns prose_print_cell() needs for TEXT. */
size_t prose_count_columns(const char *text, size_t width);

/* Return the length of the longest beginning of TEXT that has at most WIDTH bytes and does not end
 * inside a UTF-8 character. */
static inline size_t prose_length_without_cut_character(const char *text, size_t width)
{
    size_t bytes = strnlen(text, width + 1);

    if (bytes <= width)
        return bytes;
    while (width > 0 && ((unsigned char)text[width] & 0xc0) == 0x80)
        width--;
    return width;
}

/* Print at most LINES lines of TEXT, indented by INDENT spaces. Long lines are cut. If lines are
 * left out, print at the end how many. If LINES is -1, print all lines whole. */
void prose_print_lines(FILE *out, const char *text, int indent, long lines);

/* Return the last two parts of a path, by which people recognize a file. Borrowed from PATH. */
static inline const char *prose_shorten_path(const char *path)
{
    const char *end = path + strlen(path);

    for (int slashes = 0; end > path; end--)
        if (end[-1] == '/' && ++slashes == 2)
            break;
    return end;
}

/* Return how a process ended, with the signal's name: "signal 9 (SIGKILL)". ENDED is a value of the
 * column process_tree.ended. The caller frees the result. */
char *prose_describe_end(const char *ended);

/* Are the two texts equal? NULL equals only NULL. */
static inline bool prose_are_texts_equal(const char *text, const char *other)
{
    return text && other ? !strcmp(text, other) : text == other;
}

#endif
