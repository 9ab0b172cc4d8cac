/* tui/prompt.c -- a line that is typed at the bottom of the screen. See tui/prompt.h.
 *
 * Runs in: the viewer. */
#include "tui/prompt.h"

#include <fcntl.h>
#include <unistd.h>

enum { PAST_BYTES = 1 << 20 };

void tui_prompt_begin(struct prompt *prompt, const char *label, const char *text, enum prompt_history history)
{
    tui_prompt_free(prompt);
    *prompt = (struct prompt){.active = true, .history = history};
    snprintf(prompt->label, sizeof prompt->label, "%s", label);
    prompt->at = (size_t)snprintf(prompt->text, sizeof prompt->text, "%.*s", PROMPT_BYTES - 8, text);
}

void tui_prompt_free(struct prompt *prompt)
{
    free(prompt->begun);
    prompt->begun = NULL;
    prompt->active = false;
}

/* ---- history --------------------------------------------------------------- */

static void past_add(struct prompt_past *past, enum prompt_history kind, const char *line)
{
    __typeof__(past->lines[0]) *lines = &past->lines[kind];
    char *copy = strdup(line), **last;

    for (size_t i = 0; i < lines->count; i++) /* each line once, at its latest place */
        if (lines->count == HISTORY_MOST || !strcmp(lines->at[i], line)) {
            free(lines->at[i]);
            memmove(&lines->at[i], &lines->at[i + 1], (--lines->count - i) * sizeof(char *));
            break;
        }
    if (copy && (last = list_add(lines)))
        *last = copy;
    else
        free(copy);
}

/* The file has a line for each: its kind as a digit, a space, the text. */
void past_read(struct prompt_past *past, char *path)
{
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t room = 0, all = 0;
    ssize_t length;

    past->path = path;
    while (file && (length = getline(&line, &room, file)) > 0 && (all += (size_t)length) < PAST_BYTES) {
        if (line[length - 1] == '\n')
            line[--length] = 0;
        if (length > 2 && line[0] >= '0' && line[0] < '0' + HISTORIES && line[1] == ' ')
            past_add(past, (enum prompt_history)(line[0] - '0'), line + 2);
    }
    free(line);
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
}

void past_free(struct prompt_past *past)
{
    int fd = past->path ? open(past->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL; /* a history that cannot be kept is no reason to complain */

    for (int kind = 0; kind < HISTORIES; kind++) {
        for (size_t i = 0; i < past->lines[kind].count; i++) {
            if (file && !strchr(past->lines[kind].at[i], '\n'))
                fprintf(file, "%d %s\n", kind, past->lines[kind].at[i]);
            free(past->lines[kind].at[i]);
        }
        list_free(&past->lines[kind]);
    }
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    free(past->path);
    past->path = NULL;
}

static void past_move(struct prompt *prompt, struct prompt_past *past, int by)
{
    size_t back = prompt->back + (size_t)by, count = past->lines[prompt->history].count;

    if (back > count) /* or less than none */
        return;
    prompt->back = back;
    prompt->at = (size_t)snprintf(prompt->text, sizeof prompt->text, "%.*s", PROMPT_BYTES - 8,
                                  back ? past->lines[prompt->history].at[count - back] : "");
}

/* ---- editing --------------------------------------------------------------- */

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Where the rune before AT begins, and where the one at AT ends. */
static size_t rune_before(const struct prompt *prompt, size_t at)
{
    while (at > 0 && continues(prompt->text[--at]))
        continue;
    return at;
}

static size_t rune_after(const struct prompt *prompt, size_t at)
{
    if (prompt->text[at])
        while (continues(prompt->text[++at]))
            continue;
    return at;
}

static void erase(struct prompt *prompt, size_t from, size_t to)
{
    memmove(prompt->text + from, prompt->text + to, strlen(prompt->text + to) + 1);
    prompt->at = from;
}

static void insert(struct prompt *prompt, const char *text)
{
    size_t length = strlen(text), after = strlen(prompt->text + prompt->at) + 1;

    if (prompt->at + length + after > sizeof prompt->text)
        return;
    memmove(prompt->text + prompt->at + length, prompt->text + prompt->at, after);
    memcpy(prompt->text + prompt->at, text, length);
    prompt->at += length;
}

static void insert_rune(struct prompt *prompt, unsigned long rune)
{
    char made[5] = {0}, *p = made;

    if (rune < 0x80) {
        *p = (char)rune;
    } else {
        int more = rune < 0x800 ? 1 : rune < 0x10000 ? 2 : 3;
        *p++ = (char)(0xff00 >> (more + 1) | rune >> (6 * more));
        while (more-- > 0)
            *p++ = (char)(0x80 | (rune >> (6 * more) & 0x3f));
    }
    insert(prompt, made);
}

/* Put the next completion of the word before the cursor in its place. */
static void complete(struct prompt *prompt)
{
    char *found;

    if (!prompt->again) {
        for (prompt->word = prompt->at; prompt->word > 0 && !strchr(" ()=<>,;'\"+*/|", prompt->text[prompt->word - 1]);)
            prompt->word--;
        free(prompt->begun);
        prompt->begun = strndup(prompt->text + prompt->word, prompt->at - prompt->word);
    }
    found = prompt->begun ? prompt->complete(prompt->context, prompt->begun, prompt->word == 0, prompt->again) : NULL;
    if (!found && prompt->again) { /* around */
        prompt->again = 0;
        found = prompt->complete(prompt->context, prompt->begun, prompt->word == 0, 0);
    }
    if (!found)
        return;
    erase(prompt, prompt->word, prompt->at);
    insert(prompt, found);
    free(found);
    prompt->again++;
}

/* The begin of the word before the cursor, where words are what has spaces around it. */
static size_t word_before(const struct prompt *prompt)
{
    size_t from = prompt->at;

    while (from > 0 && prompt->text[from - 1] == ' ')
        from--;
    while (from > 0 && prompt->text[from - 1] != ' ')
        from--;
    return from;
}

enum prompt_state tui_prompt_key(struct prompt *prompt, struct prompt_past *past, const struct key *key)
{
    size_t at = prompt->at, end = strlen(prompt->text);

    if (key->code != K_TAB)
        prompt->again = 0;
    switch (key->code) {
    case K_ENTER:
        prompt->active = false;
        if (end)
            past_add(past, prompt->history, prompt->text);
        return PROMPT_DONE;
    case K_ESCAPE: case K_CONTROL('c'): case K_CONTROL('g'):
        prompt->active = false;
        return PROMPT_LEFT;
    case K_BACKSPACE:
        prompt->active = end > 0;
        erase(prompt, rune_before(prompt, at), at);
        return end ? PROMPT_GOES_ON : PROMPT_LEFT;
    case K_DELETE: case K_CONTROL('d'): erase(prompt, at, rune_after(prompt, at)); break;
    case K_LEFT: case K_CONTROL('b'): prompt->at = rune_before(prompt, at); break;
    case K_RIGHT: case K_CONTROL('f'): prompt->at = rune_after(prompt, at); break;
    case K_HOME: case K_CONTROL('a'): prompt->at = 0; break;
    case K_END: case K_CONTROL('e'): prompt->at = end; break;
    case K_CONTROL('u'): erase(prompt, 0, at); break;
    case K_CONTROL('k'): erase(prompt, at, end); break;
    case K_CONTROL('w'): erase(prompt, word_before(prompt), at); break;
    case K_UP: case K_CONTROL('p'): past_move(prompt, past, 1); break;
    case K_DOWN: case K_CONTROL('n'): past_move(prompt, past, -1); break;
    case K_TAB: complete(prompt); break;
    default:
        if (key->code >= 0x20 && key->code != 0x7f && key->code < KEY_FIRST)
            insert_rune(prompt, (unsigned long)key->code);
        break;
    }
    return PROMPT_GOES_ON;
}

void tui_prompt_draw(struct prompt *prompt, struct screen *screen)
{
    int y = screen->rows - 1, x = screen_put(screen, y, 0, screen->columns / 2, STYLE_BOLD, prompt->label);
    int room = screen->columns - x - 1, before;
    char *shown;

    /* Scroll so that the cursor is seen. */
    if (prompt->scroll > prompt->at)
        prompt->scroll = prompt->at;
    for (;;) {
        shown = strndup(prompt->text + prompt->scroll, prompt->at - prompt->scroll);
        before = shown ? screen_width(screen, shown, SCREEN_MOST) : 0;
        free(shown);
        if (before < room || prompt->scroll >= prompt->at)
            break;
        for (int i = 0; i < (room > 16 ? 8 : 1) && prompt->scroll < prompt->at; i++)
            prompt->scroll = rune_after(prompt, prompt->scroll);
    }
    screen_put(screen, y, x, room + 1, STYLE_NORMAL, prompt->text + prompt->scroll);
    screen->cursor_y = y;
    screen->cursor_x = x + before < screen->columns ? x + before : screen->columns - 1;
}
