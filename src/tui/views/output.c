/* tui/views/output.c -- keeps what the program under `run --live` prints, and shows it in the view
 * `output`. Runs in: the viewer, under `dyntrace run --live`. */
#include <errno.h>
#include <unistd.h>

#include "tui/view.h"

enum { OUTPUT_MOST = 8 << 20, READ_MOST = 1 << 20, LINE_MOST = 4000 };

static size_t count_lines(const char *text, size_t bytes)
{
    const char *end = text + bytes;
    size_t lines = 0;

    while ((text = memchr(text, '\n', (size_t)(end - text)))) {
        text++;
        lines++;
    }
    return lines;
}

static bool does_text_contain(const char *text, size_t bytes, const char *wanted)
{
    return memmem(text, bytes, wanted, strlen(wanted));
}

/* Does TEXT switch the terminal to its alternate screen, as an editor does? */
static bool does_text_take_screen(const char *text, size_t bytes)
{
    return does_text_contain(text, bytes, "\033[?1049h") ||
           does_text_contain(text, bytes, "\033[?47h");
}

/* Drop the older half of the output, up to the end of a line. */
static void drop_older_half(struct output *output)
{
    char *text = output->text.at;
    size_t count = output->text.count;
    size_t cut = count / 2;
    const char *line = memchr(text + cut, '\n', count - cut);

    if (line)
        cut = (size_t)(line + 1 - text);
    output->lines -= count_lines(text, cut);
    memmove(text, text + cut, count - cut + 1);
    output->text.count -= cut;
    output->cut = true;
}

static void output_add(struct output *output, const char *bytes, size_t count)
{
    if (does_text_take_screen(bytes, count))
        output->screen = true;
    memcpy(list_add_many(&output->text, count + 1), bytes, count);
    output->text.count--; /* subtract the NUL at the end, which list_add_many() has counted */
    output->lines += count_lines(bytes, count);
    if (output->text.count > OUTPUT_MOST)
        drop_older_half(output);
}

bool output_read_from_program(struct output *output, int fd)
{
    char bytes[16384];
    size_t all = 0;

    while (all < READ_MOST) {
        ssize_t got = TEMP_FAILURE_RETRY(read(fd, bytes, sizeof bytes));
        if (got < 0 && errno == EAGAIN)
            return true;
        if (got <= 0)
            return false;
        output_add(output, bytes, (size_t)got);
        all += (size_t)got;
    }
    return true;
}

/* Return where the line begins that ends with the newline just before END. */
static size_t find_begin_of_line(const struct output *output, size_t end)
{
    const char *text = output->text.at;
    const char *newline = end ? memrchr(text, '\n', end - 1) : NULL;

    return newline ? (size_t)(newline + 1 - text) : 0;
}

char *output_get_last_line(const struct output *output)
{
    const char *line;

    if (!output->text.count)
        return NULL;
    line = output->text.at + find_begin_of_line(output, output->text.count);
    return strndup(line, strcspn(line, "\n"));
}

void output_print(const struct output *output)
{
    fputs(output->cut ? "(earlier output was left out)\n" : "", stdout);
    if (output->text.count)
        fwrite(output->text.at, 1, output->text.count, stdout);
    fflush(stdout);
}

/* Count the lines. view->at is the last line on the screen. As long as this is the newest line, the
 * view follows new output. */
static void output_update(struct view *view)
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

/* Draw the line that begins at FROM, wrapped, so that its last row is row Y of the screen. Returns
 * the row above its first one. */
static int draw_line_upwards(const struct view *view, struct screen *screen, size_t from, int y)
{
    const char *text = view->tui->output->text.at + from;
    size_t length = strcspn(text, "\r\n");
    char *line = strndup(text, length < LINE_MOST ? length : LINE_MOST);
    int wide = view->columns;
    int row = (screen_width(screen, line, LINE_MOST) - 2) / (wide - 1);

    for (; row >= 0 && y >= view->y; row--) {
        screen_put_text(screen, y, 0, wide, row * (wide - 1), STYLE_NORMAL, line, false);
        y--;
    }
    free(line);
    return y;
}

static void output_draw(struct view *view, struct screen *screen)
{
    const struct output *output = view->tui->output;
    size_t end = output ? output->text.count : 0;
    size_t first = view->at + 1;
    int y = view->y + view->rows - 1;

    if (!end) {
        bool waits = output && output->open;
        const char *words = waits ? "the program has printed nothing yet" : "nothing was printed";
        view_draw_words(view, screen, STYLE_DIM, words);
    }
    if (first < (size_t)view->rows)
        first = (size_t)view->rows;
    for (size_t at = view->count; at > first; at--)
        end = find_begin_of_line(output, end);
    while (y >= view->y && end) {
        end = find_begin_of_line(output, end);
        y = draw_line_upwards(view, screen, end, y);
    }
}

/* Is the program still running, and does it read lines that are typed here? */
static bool does_program_read_input(const struct output *output)
{
    if (!output || !output->open)
        return false;
    return output->input_fd >= 0;
}

static bool output_handle_request(struct view *view, enum request request, const struct key *key)
{
    const struct output *output = view->tui->output;

    if (request != REQUEST_INPUT)
        return view_move(view, request);
    if (does_program_read_input(output))
        tui_ask_for_line(view->tui, "to the program (^D: end of input): ", "");
    else
        tui_say(view->tui, "the program does not read from here");
    return true;
}

static void output_send_line(struct view *view, const char *text)
{
    int fd = view->tui->output->input_fd;
    char line[4200];

    if (!strcmp(text, "^D"))
        strcpy(line, "\004");
    else
        snprintf(line, sizeof line, "%.4000s\n", text);
    if (write(fd, line, strlen(line)) < 0)
        tui_alarm(view->tui, "not typed: %s", strerror(errno));
}

const struct view_ops view_output = {
    .summary = "what the program printed, under run --live",
    .size = sizeof(struct view),
    .keys = "i types a line to the program  G follows  I interrupts it  K ends it",
    .input = output_send_line,
    .update = output_update,
    .draw = output_draw,
    .request = output_handle_request,
};
