/* tui/prompt.c -- lets the user type a line at the bottom of the screen. See tui/prompt.h. */
#include "tui/prompt.h"

#include <histedit.h>

#include "lib/say.h"

enum { PAST_LINES = 1000 };

/* Replace the bytes from FROM to TO of the line by TEXT, and put the cursor behind TEXT. If there
 * is no room for it, nothing changes. */
static void replace_bytes(struct prompt *prompt, size_t from, size_t to, const char *text)
{
    size_t length = strlen(text);
    size_t after = strlen(prompt->text + to) + 1;

    if (from + length + after > sizeof prompt->text)
        return;
    memmove(prompt->text + from + length, prompt->text + to, after);
    memcpy(prompt->text + from, text, length);
    prompt->at = from + length;
}

void tui_prompt_begin(struct prompt *prompt, const char *label, const char *text)
{
    prompt->active = true;
    prompt->back = 0;
    prompt->again = 0;
    snprintf(prompt->label, sizeof prompt->label, "%s", label);
    replace_bytes(prompt, 0, strlen(prompt->text), text);
}

void tui_prompt_read_history(struct prompt *prompt, char *path)
{
    HistEvent event;

    prompt->path = path;
    prompt->past = history_init();
    history(prompt->past, &event, H_SETSIZE, PAST_LINES);
    if (path)
        history(prompt->past, &event, H_LOAD, path);
}

void tui_prompt_add_to_history(struct prompt *prompt)
{
    HistEvent event;

    /* if the history cannot be written, this is not reported: the user can do without it */
    if (prompt->path)
        history(prompt->past, &event, H_SAVE, prompt->path);
    if (prompt->past)
        history_end(prompt->past);
    free(prompt->path);
}

/* Add the line that was typed to the history, and remove an older copy of it. */
static void add_to_history(struct prompt *prompt)
{
    char *line = say_print("%s%s", prompt->label, prompt->text);
    HistEvent event;
    int found = history(prompt->past, &event, H_FIRST);

    while (found >= 0 && strcmp(event.str, line))
        found = history(prompt->past, &event, H_NEXT);
    if (found >= 0 && history(prompt->past, &event, H_DEL, event.num) >= 0)
        free((char *)event.str); /* free the copy of the deleted line that libedit has returned */
    history(prompt->past, &event, H_ENTER, line);
    free(line);
}

/* Show an earlier line of the history, typed at a prompt with the same label. BY is how many lines
 * to go back, or forward if BY is negative. */
static void show_line_of_history(struct prompt *prompt, int by)
{
    size_t back = prompt->back + (size_t)by;
    size_t left = back;
    size_t label = strlen(prompt->label);
    const char *line = "";
    HistEvent event;

    if (!prompt->back && by < 0)
        return;
    for (int way = H_FIRST; left && history(prompt->past, &event, way) >= 0; way = H_NEXT)
        if (!strncmp(event.str, prompt->label, label)) {
            left--;
            line = event.str + label;
        }
    if (left) /* there is no such line, because the history is not that long */
        return;
    prompt->back = back;
    replace_bytes(prompt, 0, strlen(prompt->text), line);
}

/* Return where the next character begins, seen from the one at AT. BY 1: the next one to the right;
 * BY -1: to the left. */
static size_t find_next_character(const struct prompt *prompt, size_t at, int by)
{
    if (by < 0 ? !at : !prompt->text[at])
        return at;
    do
        at += (size_t)by;
    while (at && ((unsigned char)prompt->text[at] & 0xc0) == 0x80);
    return at;
}

/* Insert the character RUNE at the cursor, as UTF-8 whatever the locale is. */
static void insert_character(struct prompt *prompt, int rune)
{
    int more = 0; /* number of bytes that follow the first byte of the character */
    char made[5] = {0};

    if (rune >= 0x80)
        more = 1 + (rune >= 0x800) + (rune >= 0x10000);
    made[0] = (char)(rune >> 6 * more);
    if (more)
        made[0] |= (char)(0xff00 >> (more + 1));
    for (int i = 1; i <= more; i++) {
        int bits = rune >> 6 * (more - i) & 0x3f;
        made[i] = (char)(0x80 | bits);
    }
    replace_bytes(prompt, prompt->at, prompt->at, made);
}

/* Return the beginning of the word that ends at AT. Words end at the characters in ENDS. */
static size_t find_word_begin(const struct prompt *prompt, size_t at, const char *ends)
{
    while (at > 0 && !strchr(ends, prompt->text[at - 1]))
        at--;
    return at;
}

/* Replace the word before the cursor by its next completion. */
static void complete_word(struct prompt *prompt)
{
    char *found;

    if (!prompt->again) {
        prompt->word = find_word_begin(prompt, prompt->at, " ()=<>,;'\"+*/|");
        snprintf(prompt->begun, sizeof prompt->begun, "%.*s", (int)(prompt->at - prompt->word),
                 prompt->text + prompt->word);
    }
    found = prompt->complete(prompt->context, prompt->begun, prompt->word == 0, prompt->again++);
    /* there are no more completions: begin again with the first, or keep the word
     * if there is none */
    if (!found) {
        prompt->again = 1;
        found = prompt->complete(prompt->context, prompt->begun, prompt->word == 0, 0);
    }
    replace_bytes(prompt, prompt->word, prompt->at, found ? found : prompt->begun);
    free(found);
}

bool tui_prompt_handle_key(struct prompt *prompt, const struct key *key)
{
    size_t at = prompt->at;
    size_t end = strlen(prompt->text);
    size_t last = at;

    while (last > 0 && prompt->text[last - 1] == ' ')
        last--; /* Ctrl-W also deletes the blanks behind a word */
    if (key->code != K_TAB)
        prompt->again = 0;
    switch (key->code) {
    case K_ENTER:
        prompt->active = false;
        if (end)
            add_to_history(prompt);
        return true;
    case K_BACKSPACE:
        prompt->active = end > 0;
        replace_bytes(prompt, find_next_character(prompt, at, -1), at, "");
        break;
    case K_ESCAPE:
    case K_CONTROL('c'):
    case K_CONTROL('g'):
        prompt->active = false;
        break;
    case K_DELETE:
    case K_CONTROL('d'):
        replace_bytes(prompt, at, find_next_character(prompt, at, 1), "");
        break;
    case K_LEFT:
    case K_CONTROL('b'):
        prompt->at = find_next_character(prompt, at, -1);
        break;
    case K_RIGHT:
    case K_CONTROL('f'):
        prompt->at = find_next_character(prompt, at, 1);
        break;
    case K_HOME:
    case K_CONTROL('a'):
        prompt->at = 0;
        break;
    case K_END:
    case K_CONTROL('e'):
        prompt->at = end;
        break;
    case K_CONTROL('u'):
        replace_bytes(prompt, 0, at, "");
        break;
    case K_CONTROL('k'):
        replace_bytes(prompt, at, end, "");
        break;
    case K_CONTROL('w'):
        replace_bytes(prompt, find_word_begin(prompt, last, " "), at, "");
        break;
    case K_UP:
    case K_CONTROL('p'):
        show_line_of_history(prompt, 1);
        break;
    case K_DOWN:
    case K_CONTROL('n'):
        show_line_of_history(prompt, -1);
        break;
    case K_TAB:
        complete_word(prompt);
        break;
    default:
        if (key->code >= 0x20 && key->code != 0x7f && key->code < KEY_FIRST)
            insert_character(prompt, key->code);
        break;
    }
    return false;
}

/* Draw the line. If it is long, it is scrolled so that the cursor is visible. */
void tui_prompt_draw(struct prompt *prompt, struct screen *screen)
{
    int y = screen->rows - 1;
    int x = screen_put(screen, y, 0, screen->columns / 2, STYLE_BOLD, prompt->label);
    char *before = strndup(prompt->text, prompt->at);
    int room = screen->columns - x - 1;
    int at = screen_width(screen, before, PROMPT_BYTES);
    int skip = at > room ? at - room : 0;

    screen_put_text(screen, y, x, room + 1, skip, STYLE_NORMAL, prompt->text, false);
    screen->cursor_y = y;
    screen->cursor_x = x + at - skip;
    free(before);
}
