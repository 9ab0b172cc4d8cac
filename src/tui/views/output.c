/* tui/views/output.c -- what the program printed while its recording is on the screen: a buffer,
 * and the view `output`.
 *
 * Runs in: the viewer, under `dyntrace run --live`. */
#include <errno.h>
#include <unistd.h>

#include "tui/view.h"

enum { OUTPUT_MOST = 8 << 20, READ_MOST = 1 << 20, LINE_MOST = 4000 };

static size_t lines_count(const char *text, size_t bytes)
{
    size_t lines = 0;

    for (const char *at = text; (at = memchr(at, '\n', bytes - (size_t)(at - text))); at++)
        lines++;
    return lines;
}

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
        output->screen = output->screen || memmem(bytes, (size_t)got, "\033[?1049h", 8) ||
                         memmem(bytes, (size_t)got, "\033[?47h", 6);
        memcpy(list_add_many(&output->text, (size_t)got + 1), bytes, (size_t)got);
        output->lines += lines_count(bytes, (size_t)got);
        output->text.count--;                   /* a NUL at the end, which is not counted */
        if (output->text.count > OUTPUT_MOST) { /* the older half goes */
            size_t cut = output->text.count / 2;
            const char *line = memchr(output->text.at + cut, '\n', output->text.count - cut);
            cut = line ? (size_t)(line - output->text.at) + 1 : cut;
            output->lines -= lines_count(output->text.at, cut);
            memmove(output->text.at, output->text.at + cut, output->text.count - cut + 1);
            output->text.count -= cut;
            output->cut = true;
        }
    }
    return true;
}

/* The beginning of the line that ends at END, the place after its newline. */
static size_t line_before(const struct output *output, size_t end)
{
    const char *newline = end ? memrchr(output->text.at, '\n', end - 1) : NULL;

    return newline ? (size_t)(newline - output->text.at) + 1 : 0;
}

char *output_last(const struct output *output)
{
    const char *line;

    if (!output->text.count)
        return NULL;
    line = output->text.at + line_before(output, output->text.count);
    return strndup(line, strcspn(line, "\n"));
}

void output_print(const struct output *output)
{
    fputs(output->cut ? "(earlier output was left out)\n" : "", stdout);
    if (output->text.count)
        fwrite(output->text.at, 1, output->text.count, stdout);
    fflush(stdout);
}

/* The view: line `at` is the last that is shown; on the last there is it follows. */
static void output_settle(struct view *view)
{
    const struct output *output = view->tui->output;
    bool follows = view->at + 1 >= view->count;

    view->count = 0;
    if (output && output->text.count) {
        char last = output->text.at[output->text.count - 1];
        view->count = output->lines + (last != '\n');
    }
    view_choose(view, follows ? view->count : view->at);
    strcpy(view->note, follows ? "following" : "scrolled up; G follows");
}

/* The line from FROM on, with its last row at Y; a long one goes on below. Returns the row above
 * it. */
static int line_draw(const struct view *view, struct screen *screen, size_t from, int y)
{
    const char *text = view->tui->output->text.at + from;
    size_t length = strcspn(text, "\r\n");
    char *line = strndup(text, length < LINE_MOST ? length : LINE_MOST);
    int wide = view->columns;
    int row = (screen_width(screen, line, LINE_MOST) - 2) / (wide - 1);

    for (; row >= 0 && y >= view->y; row--) {
        screen_text(screen, y, 0, wide, row * (wide - 1), STYLE_NORMAL, line, false);
        y--;
    }
    free(line);
    return y;
}

static void output_draw(struct view *view, struct screen *screen)
{
    const struct output *output = view->tui->output;
    size_t end = output ? output->text.count : 0;
    int y = view->y + view->rows - 1;

    if (!end) {
        bool waits = output && output->open;
        view_words(view, screen, STYLE_DIM,
                   waits ? "the program has printed nothing yet" : "nothing was printed");
    }
    for (size_t at = view->count; at > view->at + 1 && at > (size_t)view->rows; at--)
        end = line_before(output, end);
    while (y >= view->y && end) {
        end = line_before(output, end);
        y = line_draw(view, screen, end, y);
    }
}

static bool output_request(struct view *view, enum request request, const struct key *key)
{
    const struct output *output = view->tui->output;

    if (request != REQUEST_INPUT)
        return view_move(view, request);
    if (output && output->open && output->input_fd >= 0)
        tui_ask(view->tui, "to the program (^D: end of input): ", "");
    else
        tui_say(view->tui, "the program does not read from here");
    return true;
}

static void output_input(struct view *view, const char *text)
{
    char line[4200];
    bool end = !strcmp(text, "^D");
    int length = snprintf(line, sizeof line, "%.4000s\n", text);

    if (write(view->tui->output->input_fd, end ? "\004" : line, end ? 1 : (size_t)length) < 0)
        tui_alarm(view->tui, "not typed: %s", strerror(errno));
}

const struct view_ops view_output = {
    .summary = "what the program printed, under run --live",
    .size = sizeof(struct view),
    .keys = "i types a line to the program  G follows  I interrupts it  K ends it",
    .input = output_input,
    .settle = output_settle,
    .draw = output_draw,
    .request = output_request,
};
