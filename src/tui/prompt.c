/* tui/prompt.c -- a line that is typed at the bottom of the screen. See tui/prompt.h.
 *
 * Runs in: the viewer. */
#include "tui/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAST_BYTES = 1 << 20 };

static void runes_set(struct prompt *prompt, const char *text)
{
    mbstate_t state = {0};
    const char *at = text;
    size_t length = mbsrtowcs(prompt->runes, &at, PROMPT_RUNES, &state);

    if (length == (size_t)-1) /* not of this locale: byte by byte */
        for (length = 0; text[length] && length < PROMPT_RUNES; length++)
            prompt->runes[length] = (unsigned char)text[length] < 0x80 ? (wchar_t)text[length] : L'?';
    prompt->runes[length] = 0;
    prompt->length = prompt->at = length;
}

/* The first COUNT runes from FROM on as text. The caller frees it. */
static char *runes_text(const struct prompt *prompt, size_t from, size_t count)
{
    char *text = malloc(count * 6 + 1), *p = text;
    mbstate_t state = {0};

    for (size_t i = 0; text && i < count; i++) {
        size_t length = wcrtomb(p, prompt->runes[from + i], &state);
        if (length == (size_t)-1) {
            *p = '?';
            length = 1;
            state = (mbstate_t){0};
        }
        p += length;
    }
    if (text)
        *p = 0;
    return text;
}

void tui_prompt_begin(struct prompt *prompt, const char *label, const char *text, enum prompt_history history)
{
    tui_prompt_free(prompt);
    prompt->active = true;
    snprintf(prompt->label, sizeof prompt->label, "%s", label);
    runes_set(prompt, text);
    prompt->history = history;
    prompt->back = prompt->again = 0;
    prompt->scroll = 0;
}

void tui_prompt_free(struct prompt *prompt)
{
    free(prompt->begun);
    free(prompt->text);
    prompt->begun = prompt->text = NULL;
    prompt->active = false;
}

/* ---- history --------------------------------------------------------------- */

static void past_add(struct prompt_past *past, enum prompt_history kind, const char *line)
{
    int *count = &past->count[kind];
    char *copy = strdup(line);

    if (!copy)
        return;
    for (int i = 0; i < *count; i++) /* each line once, at its latest place */
        if (!strcmp(past->lines[kind][i], line)) {
            free(past->lines[kind][i]);
            memmove(&past->lines[kind][i], &past->lines[kind][i + 1], (size_t)(--*count - i) * sizeof(char *));
            break;
        }
    if (*count == HISTORY_MOST) {
        free(past->lines[kind][0]);
        memmove(&past->lines[kind][0], &past->lines[kind][1], (size_t)--*count * sizeof(char *));
    }
    past->lines[kind][(*count)++] = copy;
}

/* The file has a line for each: its kind as a digit, a space, the text. */
void past_read(struct prompt_past *past, char *path)
{
    char *line = NULL;
    size_t room = 0, all = 0;
    ssize_t length;
    FILE *file = NULL;
    int fd;

    past->path = path;
    if (!path || (fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) < 0)
        return;
    if (!(file = fdopen(fd, "r"))) {
        close(fd);
        return;
    }
    while ((length = getline(&line, &room, file)) > 0 && (all += (size_t)length) < PAST_BYTES) {
        if (line[length - 1] == '\n')
            line[--length] = 0;
        if (length > 2 && line[0] >= '0' && line[0] < '0' + HISTORIES && line[1] == ' ')
            past_add(past, (enum prompt_history)(line[0] - '0'), line + 2);
    }
    free(line);
    fclose(file);
}

void past_free(struct prompt_past *past)
{
    FILE *file = NULL;
    int fd = past->path ? open(past->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600) : -1;

    if (fd >= 0 && !(file = fdopen(fd, "w")))
        close(fd);
    for (int kind = 0; kind < HISTORIES; kind++)
        for (int i = 0; i < past->count[kind]; i++) {
            if (file && !strchr(past->lines[kind][i], '\n'))
                fprintf(file, "%d %s\n", kind, past->lines[kind][i]);
            free(past->lines[kind][i]);
        }
    if (file)
        fclose(file); /* a history that cannot be kept is no reason to complain */
    free(past->path);
    *past = (struct prompt_past){0};
}

static void past_move(struct prompt *prompt, struct prompt_past *past, int by)
{
    int back = prompt->back + by, count = past->count[prompt->history];

    if (back < 0 || back > count)
        return;
    prompt->back = back;
    runes_set(prompt, back ? past->lines[prompt->history][count - back] : "");
}

/* ---- editing --------------------------------------------------------------- */

static void erase(struct prompt *prompt, size_t from, size_t to)
{
    wmemmove(prompt->runes + from, prompt->runes + to, prompt->length - to + 1);
    prompt->length -= to - from;
    prompt->at = from;
}

static void insert(struct prompt *prompt, wchar_t rune)
{
    if (prompt->length >= PROMPT_RUNES)
        return;
    wmemmove(prompt->runes + prompt->at + 1, prompt->runes + prompt->at, prompt->length - prompt->at + 1);
    prompt->runes[prompt->at++] = rune;
    prompt->length++;
}

static bool is_word(wchar_t rune)
{
    return rune != L' ' && !wcschr(L"()=<>,;'\"+*/|", rune);
}

/* Put the next completion of the word before the cursor in its place. */
static void complete(struct prompt *prompt)
{
    char *found;
    mbstate_t state = {0};
    size_t end = prompt->at;

    if (!prompt->complete)
        return;
    if (!prompt->again) {
        size_t from = prompt->at;
        while (from > 0 && is_word(prompt->runes[from - 1]))
            from--;
        prompt->word = from;
        free(prompt->begun);
        prompt->begun = runes_text(prompt, from, prompt->at - from);
    }
    if (!prompt->begun)
        return;
    found = prompt->complete(prompt->context, prompt->begun, prompt->word == 0, prompt->again);
    if (!found && prompt->again) { /* around */
        prompt->again = 0;
        found = prompt->complete(prompt->context, prompt->begun, prompt->word == 0, 0);
    }
    if (!found)
        return;
    erase(prompt, prompt->word, end);
    for (const char *p = found; *p;) {
        wchar_t rune;
        size_t length = mbrtowc(&rune, p, strlen(p), &state);
        if (length == 0 || length > strlen(p))
            break;
        insert(prompt, rune);
        p += length;
    }
    free(found);
    prompt->again++;
}

enum prompt_state tui_prompt_key(struct prompt *prompt, struct prompt_past *past, const struct key *key)
{
    if (key->code != K_TAB)
        prompt->again = 0;
    switch (key->code) {
    case K_ENTER:
        free(prompt->text);
        prompt->text = runes_text(prompt, 0, prompt->length);
        prompt->active = false;
        if (prompt->text && *prompt->text)
            past_add(past, prompt->history, prompt->text);
        return prompt->text ? PROMPT_DONE : PROMPT_LEFT;
    case K_ESCAPE:
    case K_CONTROL('c'):
    case K_CONTROL('g'):
        prompt->active = false;
        return PROMPT_LEFT;
    case K_BACKSPACE:
        if (!prompt->length) {
            prompt->active = false;
            return PROMPT_LEFT;
        }
        if (prompt->at)
            erase(prompt, prompt->at - 1, prompt->at);
        break;
    case K_DELETE:
    case K_CONTROL('d'):
        if (prompt->at < prompt->length)
            erase(prompt, prompt->at, prompt->at + 1);
        break;
    case K_LEFT:
    case K_CONTROL('b'):
        prompt->at -= prompt->at > 0;
        break;
    case K_RIGHT:
    case K_CONTROL('f'):
        prompt->at += prompt->at < prompt->length;
        break;
    case K_HOME:
    case K_CONTROL('a'):
        prompt->at = 0;
        break;
    case K_END:
    case K_CONTROL('e'):
        prompt->at = prompt->length;
        break;
    case K_CONTROL('u'):
        erase(prompt, 0, prompt->at);
        break;
    case K_CONTROL('k'):
        erase(prompt, prompt->at, prompt->length);
        break;
    case K_CONTROL('w'): {
        size_t from = prompt->at;
        while (from > 0 && prompt->runes[from - 1] == L' ')
            from--;
        while (from > 0 && prompt->runes[from - 1] != L' ')
            from--;
        erase(prompt, from, prompt->at);
        break;
    }
    case K_UP:
    case K_CONTROL('p'):
        past_move(prompt, past, 1);
        break;
    case K_DOWN:
    case K_CONTROL('n'):
        past_move(prompt, past, -1);
        break;
    case K_TAB:
        complete(prompt);
        break;
    default:
        if (key->code >= 0x20 && key->code != 0x7f && key->code < KEY_FIRST)
            insert(prompt, (wchar_t)key->code);
        break;
    }
    return PROMPT_GOES_ON;
}

void tui_prompt_draw(struct prompt *prompt, struct screen *screen)
{
    int y = screen->rows - 1, x = screen_put(screen, y, 0, screen->columns / 2, STYLE_BOLD, prompt->label);
    int room = screen->columns - x - 1, before = 0;
    char *text;

    /* Scroll so that the cursor is seen. */
    if (prompt->scroll > prompt->at)
        prompt->scroll = prompt->at;
    for (;;) {
        text = runes_text(prompt, prompt->scroll, prompt->at - prompt->scroll);
        before = text ? screen_width(screen, text, SCREEN_MOST) : 0;
        free(text);
        if (before < room || prompt->scroll >= prompt->at)
            break;
        prompt->scroll += (size_t)(room > 16 ? 8 : 1);
        if (prompt->scroll > prompt->at)
            prompt->scroll = prompt->at;
    }
    text = runes_text(prompt, prompt->scroll, prompt->length - prompt->scroll);
    if (text)
        screen_put(screen, y, x, room + 1, STYLE_NORMAL, text);
    free(text);
    screen->cursor_y = y;
    screen->cursor_x = x + before < screen->columns ? x + before : screen->columns - 1;
}
