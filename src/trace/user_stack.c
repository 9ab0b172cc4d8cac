/* trace/user_stack.c -- finds the line of the program that needs a guard. See trace/user_stack.h.
 * Stacks come from traced programs. A line of a stack that names no file is ignored. */
#include "trace/user_stack.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/say.h"
#include "trace/lines.h"
#include "trace/prose.h"

enum {
    PLACES_MOST = 32, /* of a longer stack, only this many innermost lines are kept */
    PLACES_SHOWN = 8, /* a printed path shows at most this many lines of the program */
    CODE_BYTES = 100,
    NAME_BYTES = 80,
};

struct place {
    char *file; /* owned */
    char *code; /* owned: the text of the line if the stack has it, otherwise NULL */
    int64_t line;
    char function[NAME_BYTES];
};

struct places {
    struct place at[PLACES_MOST];
    int count;
};

static void free_place(struct place *place)
{
    free(place->file);
    free(place->code);
}

static void add_place(struct places *places, const struct place *place)
{
    if (places->count == PLACES_MOST) {
        free_place(&places->at[0]);
        memmove(places->at, places->at + 1, sizeof *places->at * (PLACES_MOST - 1));
        places->count--;
    }
    places->at[places->count++] = *place;
}

/* Python prints the code of a line below the file and the line number. Keep LINE, which is not of
 * the latter form, as the code of the line before it. */
static void add_code_to_last_place(struct places *places, const char *line)
{
    struct place *last = places->count ? &places->at[places->count - 1] : NULL;

    line += strspn(line, " \t");
    if (last && !last->code && *line && line[strspn(line, "^~ ")])
        last->code = strdup(line);
}

static void read_places(struct places *places, const char *stack)
{
    places->count = 0;
    while (stack && *stack) {
        struct place place = {0};
        size_t bytes = strcspn(stack, "\n");
        char *line = strndup(stack, bytes);
        int read = sscanf(line, " File \"%m[^\"]\", line %" SCNd64 ", in %79[^\n]", &place.file,
                          &place.line, place.function);
        if (read == 3) {
            add_place(places, &place);
        } else {
            free(place.file);
            add_code_to_last_place(places, line);
        }
        free(line);
        stack += bytes + (stack[bytes] == '\n');
    }
}

static void free_places(struct places *places)
{
    for (int i = 0; i < places->count; i++)
        free_place(&places->at[i]);
}

/* Return what follows the first "#" of SAID that is not in a string literal: " if n in d: #
 * a/b.py:8 in f" in torch's sentence "L['n'] == 6 # if n in d: # a/b.py:8 in f". Returns NULL if
 * there is no such "#". */
static const char *find_comment(const char *said)
{
    char quote = 0;

    for (const char *at = said; *at; at++) {
        bool escapes = *at == '\\' && at[1];
        if (quote && escapes)
            at++;
        else if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '\'' || *at == '"')
            quote = *at;
        else if (*at == '#')
            return at + 1;
    }
    return NULL;
}

/* Return the last comment between CODE and END that has both a line of code and the place of this
 * line ("a/b.py:8"). torch joins the sentences of several guards by "; ", and each of them has a
 * comment. Returns CODE if there is no such comment. */
static const char *find_last_comment(const char *code, const char *end)
{
    const char *found = code;

    for (const char *part = code; (part = strstr(part, "; ")) && part < end;) {
        const char *comment, *place;
        part += strlen("; ");
        comment = find_comment(part);
        place = comment ? strstr(comment, "# ") : NULL;
        if (place && place < end)
            found = comment;
    }
    return found;
}

/* Return the line of code at PLACE, if torch's sentence SAID quotes it. Returns NULL if SAID quotes
 * no line, or a line of another place. The caller frees it. */
static char *copy_quoted_code(const char *said, const struct place *place)
{
    const char *code = said ? find_comment(said) : NULL;
    const char *at, *path;
    char *needle = say_print(":%" PRId64 " in %s", place->line, place->function);
    size_t bytes;
    size_t file_bytes = strlen(place->file);
    bool is_file;

    at = code ? strstr(code, needle) : NULL;
    free(needle);
    if (!at)
        return NULL;
    code = find_last_comment(code, at);
    for (path = at; path > code && strncmp(path - 1, "# ", 2) != 0; path--)
        continue;
    if (path == code) /* the comment has no code before the file and line */
        return NULL;
    path++;
    bytes = (size_t)(at - path);
    is_file =
        bytes && bytes <= file_bytes && !memcmp(place->file + file_bytes - bytes, path, bytes);
    code += strspn(code, " ");
    for (path -= 2; path > code && path[-1] == ' '; path--)
        continue;
    return is_file && path > code ? strndup(code, (size_t)(path - code)) : NULL;
}

/* Return the line of code at PLACE, without the colon of a compound statement. Returns NULL if the
 * code is not known. The caller frees the result. */
static char *find_code_line(const struct place *place, const char *said, struct lines *lines)
{
    char *code = place->code ? strdup(place->code) : copy_quoted_code(said, place);
    const char *text = code ? NULL : lines_get_line(lines, place->file, place->line);
    size_t bytes;

    if (text)
        code = strdup(text);
    if (!code)
        return NULL;
    bytes = strlen(code);
    while (bytes && strchr(" \t\r:", code[bytes - 1]))
        bytes--;
    code[bytes] = 0;
    if (bytes > CODE_BYTES)
        strcpy(code + prose_length_without_cut_character(code, CODE_BYTES - 3), "...");
    if (*code)
        return code;
    free(code);
    return NULL;
}

/* Is NAME the last part of FUNCTION, as "forward" is of "Net.forward" and
 * "Net.<locals>.forward"? */
static bool is_last_part(const char *name, const char *function)
{
    const char *dot = function ? strrchr(function, '.') : NULL;

    return function && (prose_are_texts_equal(name, function) || (dot && !strcmp(name, dot + 1)));
}

char *user_stack_innermost_line(const char *stack, const char *said, const char *function,
                                struct lines *lines)
{
    struct places places;
    const struct place *last;
    char *code;
    char *words = NULL;

    read_places(&places, stack);
    if (places.count) {
        last = &places.at[places.count - 1];
        code = find_code_line(last, said, lines);
        words = say_print("%s%s%.200s:%" PRId64 "%s%s", code ? code : "", code ? ", " : "",
                          prose_shorten_path(last->file), last->line,
                          is_last_part(last->function, function) ? "" : " in ",
                          is_last_part(last->function, function) ? "" : last->function);
        free(code);
    }
    free_places(&places);
    return words;
}

char *user_stack_innermost_code(const char *stack, const char *said, struct lines *lines)
{
    struct places places;
    char *code = NULL;

    read_places(&places, stack);
    if (places.count)
        code = find_code_line(&places.at[places.count - 1], said, lines);
    free_places(&places);
    return code;
}

char *user_stack_innermost_file(const char *stack, int64_t *line)
{
    struct places places;
    char *file = NULL;

    read_places(&places, stack);
    if (places.count) {
        const struct place *last = &places.at[places.count - 1];
        file = strdup(last->file);
        *line = last->line;
    }
    free_places(&places);
    return file;
}

char *user_stack_describe_path(const char *stack)
{
    struct places places;
    char *words = NULL;
    size_t room = 0;
    FILE *out;

    read_places(&places, stack);
    if (places.count > 1) {
        out = open_memstream(&words, &room);
        for (int i = 0; i < places.count; i++) {
            const struct place *place = &places.at[i];
            int left = places.count - PLACES_SHOWN;
            if (left > 1 && i == PLACES_SHOWN / 2) {
                fprintf(out, " -> (%d more)", left);
                i += left - 1;
                continue;
            }
            fprintf(out, "%s%s (%.200s:%" PRId64 ")", i ? " -> " : "", place->function,
                    prose_shorten_path(place->file), place->line);
        }
        fclose(out);
    }
    free_places(&places);
    return words;
}
