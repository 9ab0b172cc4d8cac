/* trace/lines.c -- reads single lines of the traced program's source. See trace/lines.h. */
#include "trace/lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_python_file(const char *path)
{
    const char *dot = strrchr(path, '.');

    return *path == '/' && dot && (!strcmp(dot, ".py") || !strcmp(dot, ".pyw"));
}

static const struct source *read_source_once(struct lines *lines, const char *path)
{
    for (int i = 0; i < LINES_FILES; i++)
        if (lines->files[i].path && !strcmp(lines->files[i].path, path))
            return &lines->files[i].source;
    unsigned place = lines->next++ % LINES_FILES;
    free(lines->files[place].path);
    source_free(&lines->files[place].source);
    lines->files[place].path = strdup(path);
    lines->files[place].source = source_read(path);
    return &lines->files[place].source;
}

const struct source *lines_read_file(struct lines *lines, const char *path, const char **why)
{
    const struct source *source;

    *why = "this was recorded on another machine";
    if (!lines->until_ns)
        return NULL;
    *why = "this is not a file of Python source";
    if (!is_python_file(path))
        return NULL;
    source = read_source_once(lines, path);
    *why = source->why;
    if (!source->text)
        return NULL;
    *why = "the file was changed after the recording began";
    return source->touched_ns > lines->until_ns ? NULL : source;
}

const char *lines_get_line(struct lines *lines, const char *path, int64_t line)
{
    const char *why;
    const struct source *source = lines_read_file(lines, path, &why);
    bool is_there = source && line >= 1 && line <= (int64_t)source->count;
    const char *text;

    if (!is_there)
        return NULL;
    text = source->lines[line - 1];
    text += strspn(text, " \t\f");
    return *text ? text : NULL;
}

void lines_free(struct lines *lines)
{
    for (int i = 0; i < LINES_FILES; i++) {
        free(lines->files[i].path);
        source_free(&lines->files[i].source);
    }
    *lines = (struct lines){0};
}
