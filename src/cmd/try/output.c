/* cmd/try/output.c -- compares the outputs of two runs. See cmd/try/try.h.
 *
 * Two runs of a program seldom write the same bytes, so the texts are normalised first:
 *    - addresses are removed, and the times and process ids at the beginning of log lines;
 *    - lines that the program did not write are left out: dyntrace's own, and torch's log messages
 *      ("recompile_limit reached"), which are about the compiles that a setting is meant to change;
 *    - a line that is drawn again and again after '\r', such as a progress bar, counts as it was
 *      drawn last. */
#include <ctype.h>
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "cmd/try/try.h"
#include "trace/prose.h"

enum { OUTPUT_MOST = 64 << 20 /* the most bytes of an output that are compared */ };

static const char ours[] = "dyntrace: ";

struct text {
    char *at; /* owned: the text, with a NUL at its end */
    size_t count, room;
};

static struct text read_output_file(const char *path)
{
    struct text text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char part[1 << 16];

    while (fd >= 0 && text.count < OUTPUT_MOST) {
        ssize_t got = read(fd, part, sizeof part);
        if (got <= 0 || (size_t)got > sizeof part)
            break;
        memcpy(list_add_many(&text, (size_t)got), part, (size_t)got);
    }
    if (fd >= 0)
        close(fd);
    /* replace each NUL by another byte, because a NUL would end the text */
    for (size_t i = 0; i < text.count; i++)
        if (!text.at[i])
            text.at[i] = '\1';
    list_add(&text);
    return text;
}

/* ---- removing what differs from run to run ------------------------------- */

/* Return the length of the part before the file name in a line of torch's log: "W1128
 * 17:11:52.123000 4711". Returns 0 if LINE is not a line of such a log. */
static size_t length_of_log_head(const char *line)
{
    static const char form[] = "0000 00:00:00.000000 ";
    size_t length = 1;

    if (!strchr("DIWEFV", *line) || !*line)
        return 0;
    for (const char *at = form; *at; at++, length++) {
        bool fits = *at == '0' ? isdigit((unsigned char)line[length]) : line[length] == *at;
        if (!fits)
            return 0;
    }
    return length + strspn(line + length, "0123456789");
}

/* Did torch log LINE, as in "W1128 ... 4711 torch/_dynamo/convert_frame.py:1994] ..."? */
static bool is_torch_log(const char *line)
{
    static const char torch[] = " torch/";
    size_t head = length_of_log_head(line);

    return head && !strncmp(line + head, torch, strlen(torch));
}

/* Append LINE (LENGTH bytes) to TEXT, without the parts that differ from run to run. */
static void append_normalised_line(struct text *text, const char *line, size_t length)
{
    const char *end = line + length;
    size_t head;

    for (const char *at = end; at > line; at--)
        if (at[-1] == '\r' && at < end) {
            line = at;
            break;
        }
    head = length_of_log_head(line);
    if (head <= (size_t)(end - line))
        line += head;
    while (line < end) {
        *list_add(text) = *line++;
        bool address = line[-1] == 'x' && text->count > 1 && text->at[text->count - 2] == '0';
        while (address && line < end && isxdigit((unsigned char)*line))
            line++;
    }
    *list_add(text) = '\n';
}

static int compare_line_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Return the lines of TEXT in sorted order, because the lines of several ranks come in any order.
 * Frees TEXT. */
static struct text sort_lines(struct text text)
{
    LIST(char *) lines = {0};
    struct text made = {0};
    char *rest = text.at;
    char *line;

    while ((line = strsep(&rest, "\n")))
        *list_add(&lines) = line;
    list_sort(&lines, compare_line_bytes);
    for (size_t i = 0; i < lines.count; i++) {
        size_t length = strlen(lines.at[i]);
        memcpy(list_add_many(&made, length), lines.at[i], length);
        *list_add(&made) = '\n';
    }
    list_add(&made);
    list_free(&lines);
    list_free(&text);
    return made;
}

static struct text read_normalised(const char *path, bool sorted)
{
    struct text all = read_output_file(path);
    struct text plain = {0};

    for (const char *line = all.at; *line;) {
        size_t length = strcspn(line, "\n");
        bool program = strncmp(line, ours, strlen(ours)) != 0 && !is_torch_log(line);
        if (program)
            append_normalised_line(&plain, line, length);
        line += length;
        line += *line == '\n';
    }
    list_add(&plain);
    list_free(&all);
    return sorted ? sort_lines(plain) : plain;
}

/* ---- comparing the outputs of two runs ----------------------------------- */

/* Return the word at *AT, with its LENGTH, and move *AT behind it. A line end is a word, too.
 * Returns NULL at the end of the text. */
static const char *take_next_word(const char **at, size_t *length)
{
    const char *word = *at + strspn(*at, " \t");

    *length = *word == '\n' ? 1 : strcspn(word, " \t\n");
    *at = word + *length;
    return *length ? word : NULL;
}

/* Does TEXT have the same words as BASELINE? Where AGAIN, the output of a second unchanged run,
 * differs from BASELINE, TEXT may differ, too. */
static bool has_same_words(const char *text, const char *baseline, const char *again)
{
    size_t lengths[3];
    const char *words[3];

    do {
        words[0] = take_next_word(&text, &lengths[0]);
        words[1] = take_next_word(&baseline, &lengths[1]);
        words[2] = take_next_word(&again, &lengths[2]);
        if (!words[0] || !words[1] || !words[2])
            break;
        bool stable = lengths[1] == lengths[2] && !memcmp(words[1], words[2], lengths[1]);
        bool same = lengths[0] == lengths[1] && !memcmp(words[0], words[1], lengths[0]);
        bool breaks = *words[0] == '\n' || *words[1] == '\n' || *words[2] == '\n';
        if (!same && (stable || breaks))
            return false;
    } while (true);
    return !words[0] && !words[1] && !words[2];
}

bool output_is_same(const char *path, const char *baseline, const char *again, bool sorted)
{
    struct text text = read_normalised(path, sorted);
    struct text before = read_normalised(baseline, sorted);
    struct text other = {0};
    bool same = !strcmp(text.at, before.at);

    if (!same && again) {
        other = read_normalised(again, sorted);
        same = has_same_words(text.at, before.at, other.at);
    }
    list_free(&text);
    list_free(&before);
    list_free(&other);
    return same;
}

enum { DIFFERENCE_MOST = 60 /* the most bytes of a quoted line */ };

/* Return the line that begins at LINE without its line end, shortened and in quotes. */
static const char *quote_line(struct arena *arena, const char *line)
{
    size_t length = strcspn(line, "\n");
    char *text = arena_text(arena, line, length);
    size_t cut = prose_length_without_cut_character(text, DIFFERENCE_MOST);

    if (!*line)
        return "nothing";
    return arena_print(arena, "'%.*s%s'", (int)cut, text, text[cut] ? "…" : "");
}

static bool is_same_line(const char *a, const char *b)
{
    size_t length = strcspn(a, "\n");

    return length == strcspn(b, "\n") && !strncmp(a, b, length);
}

/* Return the line after LINE, or the end of the text. */
static const char *line_after(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

const char *output_describe_difference(struct arena *arena, const char *path, const char *baseline,
                                       const char *again, bool sorted)
{
    struct text text = read_normalised(path, sorted);
    struct text before = read_normalised(baseline, sorted);
    struct text other = again ? read_normalised(again, sorted) : (struct text){0};
    const char *now = text.at;
    const char *was = before.at;
    const char *twice = again ? other.at : NULL;
    const char *words = NULL;

    while (*now || *was) {
        bool stable = !twice || is_same_line(was, twice);
        if (stable && !is_same_line(now, was)) {
            words = arena_print(arena, "%s, unchanged %s", quote_line(arena, now),
                                quote_line(arena, was));
            break;
        }
        now = line_after(now);
        was = line_after(was);
        twice = twice ? line_after(twice) : NULL;
    }
    list_free(&text);
    list_free(&before);
    list_free(&other);
    return words;
}

/* ---- finding a single line in an output ---------------------------------- */

enum { LINE_MOST = 400 };

const char *output_last_line(struct arena *arena, const char *path)
{
    struct text plain = read_normalised(path, false);
    const char *last = NULL;
    char *rest = plain.at;
    char *line;

    while ((line = strsep(&rest, "\n")))
        if (line[strspn(line, " \t")])
            last = line;
    if (last)
        last = arena_text(arena, last, strnlen(last, LINE_MOST));
    list_free(&plain);
    return last;
}

const char *output_find_own_message(struct arena *arena, const char *path)
{
    static const char set[] = "run: --set ";
    struct text all = read_output_file(path);
    const char *found = NULL;

    for (const char *line = all.at; *line;) {
        size_t length = strcspn(line, "\n");
        bool is_ours = !strncmp(line, ours, strlen(ours));
        const char *words = line + strlen(ours);
        if (is_ours && !strncmp(words, set, strlen(set)))
            words += strlen(set);
        if (is_ours && (!found || words != line + strlen(ours))) {
            size_t bytes = (size_t)(line + length - words);
            found = arena_text(arena, words, bytes < LINE_MOST ? bytes : LINE_MOST);
            if (words != line + strlen(ours))
                break;
        }
        line += length;
        line += *line == '\n';
    }
    list_free(&all);
    return found;
}

/* ---- comparing the values that a function returned ----------------------- */

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

/* Read what python/dyntrace/_trial.py wrote about the calls of one process: for each call a
 * verdict. Returns the number of calls, and sets the flag of each verdict that occurs. */
static size_t read_verdicts_of_process(const char *path, bool *different, bool *unknown,
                                       bool *close)
{
    struct text text = read_output_file(path);
    size_t lines = count_lines(text.at);

    *different = *different || strstr(text.at, "different");
    *unknown = *unknown || strstr(text.at, "unknown");
    *close = *close || strstr(text.at, "close");
    list_free(&text);
    return lines;
}

const char *values_worst_verdict(const char *baseline, const char *path)
{
    char *pattern = say_print("%s/*.index", baseline);
    bool different = false;
    bool unknown = false;
    bool near = false;
    glob_t found;

    if (glob(pattern, 0, NULL, &found))
        found.gl_pathc = 0;
    free(pattern);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        char *verdict =
            say_print("%s/%.*s.verdict", path, (int)(strlen(name) - strlen(".index")), name);
        struct text index = read_output_file(found.gl_pathv[i]);
        size_t calls = count_lines(index.at);
        if (read_verdicts_of_process(verdict, &different, &unknown, &near) != calls)
            different = true;
        list_free(&index);
        free(verdict);
    }
    if (!found.gl_pathc || (unknown && !different))
        return NULL;
    globfree(&found);
    return different ? "different" : near ? "close" : "equal";
}
