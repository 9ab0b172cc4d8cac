/* trace/source.c -- source files of the traced program. See trace/source.h.
 *
 * Runs in: the viewer. */
#include "trace/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SOURCE_MOST = 8 << 20, LINES_MOST = 400000 };

struct source source_read(const char *path)
{
    struct source source = {0};
    struct stat st;
    size_t used = 0, room = 0;
    ssize_t got = 0;
    int fd = -1;

    if (path[0] == '<') { /* "<string>", "<frozen os>" */
        snprintf(source.why, sizeof source.why, "this code was not read from a file");
        goto out;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        snprintf(source.why, sizeof source.why, "the source file cannot be read here: %s", strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(source.why, sizeof source.why, "what has the source file's name is not a regular file");
        goto out;
    }
    if (st.st_size > SOURCE_MOST) {
        snprintf(source.why, sizeof source.why, "the source file is too large to be shown");
        goto out;
    }
    source.changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    room = (size_t)st.st_size + 1;
    source.text = malloc(room + 1);
    source.lines = malloc((LINES_MOST < room ? LINES_MOST : room) * sizeof *source.lines);
    while (used < room && (got = read(fd, source.text + used, room - used)) > 0)
        used += (size_t)got;
    source.text[used] = 0;
    for (size_t at = 0; at < used && source.count < LINES_MOST;) {
        char *line = source.text + at, *end = memchr(line, '\n', used - at);
        source.lines[source.count++] = line;
        if (!end)
            break;
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = 0;
        at = (size_t)(end - source.text) + 1;
    }
out:
    if (fd >= 0)
        close(fd);
    return source;
}

void source_free(struct source *source)
{
    free(source->text);
    free(source->lines);
}
