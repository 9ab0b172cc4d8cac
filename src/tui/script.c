/* tui/script.c -- keys written down, and their names. See tui/script.h.
 *
 * Runs in: the viewer. */
#include "tui/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"

#define NAME_(code, name, curses) {name, code},
static const struct { const char *name; int code; } names[] = {KEY_CODES(NAME_) {"Space", ' '}};
#undef NAME_
enum { NAMES = sizeof names / sizeof *names };

const char *key_name(int code, char *made)
{
    for (int i = 0; i < NAMES; i++)
        if (names[i].code == code)
            return names[i].name;
    if (code > 0 && code < 0x20)
        snprintf(made, 16, "C-%c", code + 'a' - 1);
    else if (code < 0x80)
        snprintf(made, 16, "%c", code);
    else
        snprintf(made, 16, "?");
    return made;
}

/* A word that is a name, with what may follow it after a colon. */
static bool named_key(const char *word, size_t length, struct key *key)
{
    size_t bare = length;
    const char *colon = memchr(word, ':', length);
    int first = 0, second = 0;

    if (length == 3 && word[0] == 'C' && word[1] == '-' && word[2] >= 'a' && word[2] <= 'z') {
        key->code = K_CONTROL(word[2]);
        return true;
    }
    if (colon && colon > word)
        bare = (size_t)(colon - word);
    for (int i = 0; i < NAMES; i++) {
        if (strlen(names[i].name) != bare || memcmp(names[i].name, word, bare) != 0)
            continue;
        key->code = names[i].code;
        if (colon && (sscanf(colon, ":%d,%d", &first, &second) == 2 || sscanf(colon, ":%dx%d", &first, &second) == 2)) {
            key->x = first;
            key->y = second;
        }
        return true;
    }
    return false;
}

bool script_key(const char **at, struct key *key)
{
    const char *text = *at;
    bool begins = true; /* a word */
    unsigned long rune;
    size_t length;

    *key = (struct key){KEY_NONE, 0, 0};
    if (*text == ' ')
        text += strspn(text, " ");
    else
        begins = false;
    /* The caller's first call stands at the beginning of a word, too. */
    length = strcspn(text, " ");
    if (!length)
        return false;
    if (begins && named_key(text, length, key)) {
        *at = text + length;
        return true;
    }
    length = json_rune((const unsigned char *)text, strlen(text), &rune);
    key->code = length ? (int)rune : (unsigned char)*text;
    *at = text + (length ? length : 1);
    return true;
}
