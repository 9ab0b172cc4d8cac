/* trace/source.c -- reads source files of the traced program. See trace/source.h. */
#include "trace/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/list.h"

enum { SOURCE_MOST = 8 << 20, LINES_MOST = 400000 };

static int64_t convert_timespec_to_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void read_lines(struct source *source, int fd, const struct stat *st)
{
    size_t room = (size_t)st->st_size + 1;
    size_t length;
    char *rest = source->text = malloc(room);
    char *line;
    ssize_t got = read(fd, rest, room - 1);

    rest[got > 0 ? got : 0] = 0;
    source->changed_ns = convert_timespec_to_ns(st->st_mtim);
    source->touched_ns = convert_timespec_to_ns(st->st_ctim);
    if (source->changed_ns > source->touched_ns)
        source->touched_ns = source->changed_ns;
    source->lines = malloc((LINES_MOST < room ? LINES_MOST : room) * sizeof *source->lines);
    while (rest && *rest && source->count < LINES_MOST) {
        source->lines[source->count++] = line = strsep(&rest, "\n");
        length = strlen(line);
        if (length && line[length - 1] == '\r')
            line[length - 1] = 0;
    }
}

struct source source_read(const char *path)
{
    struct source source = {0};
    struct stat st;
    bool file = path[0] != '<'; /* names such as "<string>" and "<frozen os>" are not files */
    /* do not open a device, because opening it may have an effect */
    bool is_other = file && stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    int fd = file && !is_other ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;

    if (!file)
        snprintf(source.why, sizeof source.why, "this code was not read from a file");
    else if (!is_other && (fd < 0 || fstat(fd, &st) != 0))
        snprintf(source.why, sizeof source.why, "the source file cannot be read here: %s",
                 strerror(errno));
    else if (!S_ISREG(st.st_mode))
        snprintf(source.why, sizeof source.why,
                 "what has the source file's name is not a regular file");
    else if (st.st_size > SOURCE_MOST)
        snprintf(source.why, sizeof source.why, "the source file is too large to be shown");
    else
        read_lines(&source, fd, &st);
    if (fd >= 0)
        close(fd);
    return source;
}

void source_free(struct source *source)
{
    free(source->text);
    free(source->lines);
}

int source_indentation(const char *line)
{
    int columns = 0;

    for (; *line == ' ' || *line == '\t'; line++) {
        columns++;
        if (*line == '\t')
            columns = (columns + 7) / 8 * 8;
    }
    return *line ? columns : -1;
}

/* TEXT is a line without indentation. Does it belong to the head of a definition: is it a
 * decorator, "def", or the ")" after the parameters? */
static bool is_line_of_definition_head(const char *text)
{
    static const char *const words[] = {")", "@", "def ", "async ", "class "};

    for (size_t i = 0; i < array_count(words); i++)
        if (!strncmp(text, words[i], strlen(words[i])))
            return true;
    return false;
}

int64_t source_find_function_end(const struct source *source, int64_t first)
{
    int64_t last = first;
    int outer;
    bool body = false;

    if (first < 1 || first > (int64_t)source->count)
        return first;
    outer = source_indentation(source->lines[first - 1]);
    for (int64_t line = first + 1; line <= (int64_t)source->count; line++) {
        const char *text = source->lines[line - 1];
        int here = source_indentation(text);
        bool at_margin, goes_on;
        if (here < 0)
            continue;
        text += strspn(text, " \t");
        /* a comment at the margin does not end the body of a function */
        at_margin = here <= outer && *text != '#';
        goes_on = !body && is_line_of_definition_head(text);
        if (at_margin && !goes_on)
            break;
        body = body || here > outer;
        last = line;
    }
    return last;
}
