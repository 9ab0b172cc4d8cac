/* tui/output.c -- what the program printed while its recording is on the screen: a buffer, and the view `output`.
 *
 * Runs in: the viewer, under `dyntrace run --live`. */
#include "tui/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui.h"

enum { OUTPUT_MOST = 8 << 20, READ_MOST = 1 << 20 };

bool output_read(struct output *output, int fd)
{
    char bytes[16384];
    ssize_t got;

    for (size_t all = 0; all < READ_MOST; all += (size_t)got) {
        got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) {
            got = 0;
            continue;
        }
        if (got < 0 && errno == EAGAIN)
            return true;
        if (got <= 0)
            return false;
        if (output->bytes + (size_t)got + 1 > output->room) {
            size_t room = output->room ? output->room * 2 : 65536;
            char *more = realloc(output->text, room);
            if (!more)
                return true;
            output->text = more;
            output->room = room;
        }
        memcpy(output->text + output->bytes, bytes, (size_t)got);
        output->bytes += (size_t)got;
        output->text[output->bytes] = 0;
        if (output->bytes > OUTPUT_MOST) { /* the older half goes */
            size_t cut = output->bytes / 2;
            const char *line = memchr(output->text + cut, '\n', output->bytes - cut);
            cut = line ? (size_t)(line - output->text) + 1 : cut;
            memmove(output->text, output->text + cut, output->bytes - cut + 1);
            output->bytes -= cut;
            output->cut = true;
        }
    }
    return true;
}

/* The beginning of the line that ends at END, the place after its newline. */
static size_t line_before(const struct output *output, size_t end)
{
    if (end && output->text[end - 1] == '\n')
        end--;
    while (end && output->text[end - 1] != '\n')
        end--;
    return end;
}

char *output_last(const struct output *output)
{
    size_t from = output->bytes ? line_before(output, output->bytes) : 0;

    return output->bytes ? strndup(output->text + from, strcspn(output->text + from, "\n")) : NULL;
}

void output_print(const struct output *output, int fd)
{
    static const char words[] = "(earlier output was left out)\n";
    size_t at = 0;
    ssize_t put;

    if (output->cut && write(fd, words, sizeof words - 1) < 0)
        return;
    while (at < output->bytes && (put = write(fd, output->text + at, output->bytes - at)) > 0)
        at += (size_t)put;
}

/* ---- the view -------------------------------------------------------------- */

struct output_view {
    struct view view;
    long back; /* lines scrolled up from the end: 0 follows */
};

static bool output_open(struct view *view)
{
    (void)view;
    return true;
}

static void output_close(struct view *view)
{
    (void)view;
}

static void output_settle(struct view *view)
{
    struct output_view *o = (struct output_view *)view;

    snprintf(view->note, sizeof view->note, "%s", o->back ? "scrolled up; G follows" : "following");
}

static void output_draw(struct view *view, struct screen *screen)
{
    struct output_view *o = (struct output_view *)view;
    const struct output *output = tui_output(view->tui);
    size_t end = output ? output->bytes : 0;

    if (!end) {
        screen_put(screen, view->y + 1, 2, view->columns - 4, STYLE_DIM, output && output->open ? "the program has printed nothing yet" : "nothing was printed");
        return;
    }
    for (long i = 0; i < o->back && end; i++)
        end = line_before(output, end);
    if (!end) {
        o->back = 0;
        end = output->bytes;
    }
    for (int y = view->y + view->rows - 1; y >= view->y && end; y--) {
        size_t from = line_before(output, end);
        size_t length = strcspn(output->text + from, "\r\n");
        char *line = strndup(output->text + from, length < 4000 ? length : 4000);
        if (line)
            screen_put(screen, y, 0, view->columns, STYLE_NORMAL, line);
        free(line);
        end = from;
    }
}

static bool output_request(struct view *view, enum request request, const struct key *key)
{
    struct output_view *o = (struct output_view *)view;
    long page = view->rows > 2 ? view->rows - 1 : 1, by;

    (void)key;
    switch (request) {
    case REQUEST_UP: by = 1; break;
    case REQUEST_DOWN: by = -1; break;
    case REQUEST_WHEEL_UP: by = 3; break;
    case REQUEST_WHEEL_DOWN: by = -3; break;
    case REQUEST_PAGE_UP: by = page; break;
    case REQUEST_PAGE_DOWN: by = -page; break;
    case REQUEST_END: by = -o->back; break;
    default: return false;
    }
    o->back = o->back + by < 0 ? 0 : o->back + by;
    return true;
}

const struct view_ops view_output = {
    .name = "output", .summary = "what the program printed, under run --live", .size = sizeof(struct output_view), .open = output_open,
    .close = output_close, .settle = output_settle, .draw = output_draw, .request = output_request,
};
