/* trace/later_use.c -- finds what the lines below an assignment do with the assigned name. See
 * trace/later_use.h. Lines are examined as text; a name in a string or a comment counts as well. */
#include "trace/later_use.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "trace/lines.h"
#include "trace/prose.h"
#include "trace/remedy.h"

enum { LINES_SEARCHED = 60, LINE_BYTES = 100 };

/* Lines that make a text of a value. */
static const char *const printing[] = {"print(*",    "*f\"*{*",  "*f'*{*",
                                       "*.format(*", "*.info(*", "*.debug(*"};

/* Is C a byte of a name, which may be an attribute's, "self.n"? */
static bool is_name_byte(char c)
{
    bool joins = c == '_' || c == '.';

    return joins || isalnum((unsigned char)c);
}

/* Copy the name that LINE assigns to NAME, "n" of "n = int(x)" or "self.n" of "self.n: int = 2".
 * Returns false if LINE assigns no single name. */
static bool find_assigned(const char *line, char name[LINE_BYTES])
{
    size_t bytes = 0;
    const char *rest;

    while (is_name_byte(line[bytes]))
        bytes++;
    if (!bytes || bytes >= LINE_BYTES)
        return false;
    rest = line + bytes + strspn(line + bytes, " ");
    if (*rest == ':')
        rest = strchr(rest, '=') ?: "";
    if (rest[0] != '=' || rest[1] == '=')
        return false;
    snprintf(name, LINE_BYTES, "%.*s", (int)bytes, line);
    return true;
}

static bool makes_text(const char *line)
{
    for (size_t i = 0; i < array_count(printing); i++)
        if (!fnmatch(printing[i], line, 0))
            return true;
    return false;
}

/* Return what LINE does with NAME. */
static enum later_use use_in(const char *line, const char *name)
{
    enum remedy_use use = remedy_find_use(line, name);

    switch (use) {
    case USE_ANY:
        return LATER_UNKNOWN;
    case USE_TESTED:
        /* torch follows an assert on such a number, and "n is None" does not need its value */
        if (strstr(line, " is ") || !strncmp(line, "assert ", 7))
            return LATER_UNKNOWN;
        return LATER_TESTED;
    case USE_SLICED:
        return strncmp(line, "for ", 4) ? LATER_UNKNOWN : LATER_LOOPED;
    default:
        return makes_text(line) ? LATER_PRINTED : LATER_UNKNOWN;
    }
}

/* Return LINE without the colon of a compound statement, cut to LINE_BYTES bytes. */
static char *copy_statement(const char *line)
{
    size_t bytes = prose_length_without_cut_character(line, LINE_BYTES);

    while (bytes && strchr(" \t\r:", line[bytes - 1]))
        bytes--;
    return strndup(line, bytes);
}

static bool begins_function(const char *line)
{
    static const char *const words[] = {"def ", "class ", "async def "};

    for (size_t i = 0; i < array_count(words); i++)
        if (!strncmp(line, words[i], strlen(words[i])))
            return true;
    return false;
}

enum later_use find_later_use(struct lines *lines, const char *file, int64_t line, char **text)
{
    const char *why;
    const struct source *source = lines_read_file(lines, file, &why);
    char name[LINE_BYTES], other[LINE_BYTES];
    const char *first;
    int64_t last;
    int outer;

    if (line < 1)
        return LATER_UNKNOWN;
    if (!source || line > (int64_t)source->count)
        return LATER_UNKNOWN;
    last = line + LINES_SEARCHED;
    if (last > (int64_t)source->count)
        last = (int64_t)source->count;
    first = source->lines[line - 1];
    outer = source_indentation(first);
    if (outer < 1 || !find_assigned(first + strspn(first, " \t"), name))
        return LATER_UNKNOWN;
    for (int64_t i = line; i < last; i++) {
        const char *here = source->lines[i];
        int indentation = source_indentation(here);
        enum later_use use;
        if (indentation < 0)
            continue;
        here += strspn(here, " \t");
        if (!indentation)
            break;
        if (indentation < outer && begins_function(here))
            break;
        use = use_in(here, name);
        if (use) {
            *text = copy_statement(here);
            return use;
        }
        if (find_assigned(here, other) && !strcmp(other, name))
            break;
    }
    return LATER_UNKNOWN;
}
