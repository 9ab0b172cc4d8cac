/* cmd/import/log.c -- records of a file that TORCH_TRACE wrote. See cmd/import/import.h.
 *
 * Runs in: the viewer.
 *
 * A record's text ends where the next line does not begin with a tab. Files come
 * from anybody, are cut short when a program is killed, and two processes may
 * have written into one: so nothing is taken that is not whole. */
#include "cmd/import/import.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bounds.h"
#include "lib/say.h"

enum { MOST = 15 << 20 }; /* bytes of a line, and of a record's text: readers take a row of 16 MB */

struct buffer {
    char *data; /* owned, ends in a NUL that SIZE does not count */
    size_t size, room;
    bool cut;   /* it was longer than MOST */
};

struct log {
    FILE *file;                 /* owned */
    char *path;                 /* owned */
    struct buffer line, head, text;
    bool have_line, failed;     /* have_line: LINE is the one after the last record */
    bool ended;                 /* the last line read had an end: the file is not cut there */
    int64_t broken, place;
};

static bool buffer_add(struct log *log, struct buffer *buffer, const char *data, size_t bytes)
{
    if (buffer->size + bytes > MOST) {
        buffer->cut = true;
        return true;
    }
    if (buffer->size + bytes + 1 > buffer->room) {
        size_t room = (buffer->size + bytes + 1) * 2;
        char *more = realloc(buffer->data, room);
        if (!more) {
            say_error("%s: out of memory", log->path);
            log->failed = true;
            return false;
        }
        buffer->data = more;
        buffer->room = room;
    }
    memcpy(buffer->data + buffer->size, data, bytes);
    buffer->size += bytes;
    buffer->data[buffer->size] = 0;
    return true;
}

static void buffer_clear(struct buffer *buffer)
{
    buffer->size = 0;
    buffer->cut = false;
}

struct log *log_open(const char *path)
{
    struct log *log = calloc(1, sizeof *log);

    if (!log || !(log->path = strdup(path))) {
        say_error("%s: out of memory", path);
        free(log);
        return NULL;
    }
    log->file = fopen(path, "re");
    if (!log->file) {
        say_error("%s: %s", path, strerror(errno));
        log_close(log);
        return NULL;
    }
    bounds_trace(path);
    bounds_no_time(); /* what it takes grows with the square of the compiles */
    return log;
}

/* The next line without its end into LOG->line. What has a NUL in it is no text. */
static bool line_next(struct log *log)
{
    char piece[4096];
    size_t filled = 0;
    int c = 0;

    buffer_clear(&log->line);
    while ((c = getc_unlocked(log->file)) != EOF) {
        log->place++;
        if (c == '\n')
            break;
        if (filled == sizeof piece) {
            if (!buffer_add(log, &log->line, piece, filled))
                return false;
            filled = 0;
        }
        log->line.cut = log->line.cut || !c;
        piece[filled++] = (char)c;
    }
    if (ferror(log->file)) {
        say_error("%s: %s", log->path, strerror(errno));
        log->failed = true;
        return false;
    }
    log->ended = c == '\n';
    return buffer_add(log, &log->line, piece, filled) && (c != EOF || filled || log->line.size);
}

/* Digits at *AT, as many as WIDTH (0: at least one), then the character END. */
static bool number(const char **at, int width, char end, int64_t *made)
{
    int digits = 0;

    for (*made = 0; isdigit((unsigned char)**at) && digits < 18; ++*at, digits++)
        *made = *made * 10 + (**at - '0');
    if (!digits || (width && digits != width) || **at != end)
        return false;
    ++*at;
    return true;
}

/* "V1121 15:44:00.566000 28697 torch/_dynamo/utils.py:2350] {...}"; before it there may be "[rank0]:". */
static bool head_read(const char *line, struct record *record)
{
    int64_t hour, minute, second, micro;
    const char *at = line, *end;

    if (*at == '[' && (end = strstr(at, "]:")))
        at = end + 2;
    if (!isupper((unsigned char)*at++) || !isdigit((unsigned char)at[0]) || !isdigit((unsigned char)at[1]))
        return false;
    record->month = (at[0] - '0') * 10 + at[1] - '0';
    at += 2;
    if (!number(&at, 2, ' ', &record->day) || !number(&at, 2, ':', &hour) || !number(&at, 2, ':', &minute) ||
        !number(&at, 2, '.', &second) || !number(&at, 6, ' ', &micro) || !number(&at, 0, ' ', &record->pid))
        return false;
    if (record->month < 1 || record->month > 12 || record->day < 1 || record->day > 31 || hour > 23 || minute > 59 || second > 60)
        return false;
    record->ns = (((hour * 60 + minute) * 60 + second) * 1000000 + micro) * 1000;
    record->json = strstr(at, "] {");
    if (!record->json)
        return false;
    record->json += 2;
    return true;
}

/* Does JSON say that a text follows? (With a digest of it, which is not checked: a text that is cut short is seen by its end.) */
static bool has_text(const char *json)
{
    static const char key[] = "\"has_payload\": \"";
    const char *at = NULL;

    for (const char *next = json; (next = strstr(next, key)); next++) /* torch puts it last */
        at = next;
    return at && strspn(at + sizeof key - 1, "0123456789abcdef") == 32;
}

bool log_next(struct log *log, struct record *record)
{
    while (log->have_line || line_next(log)) {
        bool text = false, whole;
        struct buffer spare = log->head;
        log->have_line = false;
        log->head = log->line; /* the line that was read becomes the head */
        log->line = spare;
        buffer_clear(&log->text);
        whole = log->head.size && !log->head.cut && head_read(log->head.data, record);
        while (line_next(log)) {
            if (!log->line.size || log->line.data[0] != '\t') {
                log->have_line = true;
                break;
            }
            if ((text && !buffer_add(log, &log->text, "\n", 1)) ||
                !buffer_add(log, &log->text, log->line.data + 1, log->line.size - 1))
                return false;
            log->text.cut = log->text.cut || log->line.cut || !log->ended;
            text = true;
            if (!whole)
                log->broken++;
        }
        if (log->failed)
            return false;
        whole = whole && has_text(record->json) == text && !log->text.cut;
        if (!whole) {
            log->broken += log->head.size > 0;
            continue;
        }
        record->text = text ? (log->text.data ? log->text.data : "") : NULL;
        return true;
    }
    return false;
}

int64_t log_broken(const struct log *log)
{
    return log->broken;
}

int64_t log_place(const struct log *log)
{
    return log->place;
}

bool log_failed(const struct log *log)
{
    return log->failed;
}

void log_close(struct log *log)
{
    if (!log)
        return;
    if (log->file)
        fclose(log->file);
    free(log->path);
    free(log->line.data);
    free(log->head.data);
    free(log->text.data);
    free(log);
}
