/* tui/keys.c -- the keys: what they are bound to, their names, and scripts of them. See tui/keys.h.
 * */
#include "tui/keys.h"

#include <string.h>

#include "lib/json.h"

#define KEYS_(...)  \
    {               \
        __VA_ARGS__ \
    }
#define BINDING_(request, name, keys, view, group, help, foot) \
    {name, KEYS_ keys, VIEW_##view, group, help, foot},
const struct binding bindings[REQUESTS] = {{0}, KEYS(BINDING_)};

#define NAME_(code, name, curses) {name, code},
static const struct {
    const char *name;
    int code;
} names[] = {KEY_CODES(NAME_){"Space", ' '}};
enum { NAMES = sizeof names / sizeof *names };

const char *key_label(int code, char *made)
{
    for (int i = 0; i < NAMES; i++)
        if (names[i].code == code)
            return names[i].name;
    snprintf(made, 16, code < 0x20 ? "C-%c" : "%c",
             code < 0x20   ? code + 'a' - 1
             : code < 0x80 ? code
                           : '?');
    return made;
}

/* A word that is a name, with what may follow it after a colon. */
static bool named_key(const char *word, size_t length, struct key *key)
{
    size_t bare = strcspn(word, " :");
    bool control = length == 3 && !strncmp(word, "C-", 2);

    if (control && word[2] >= 'a' && word[2] <= 'z') {
        key->code = K_CONTROL(word[2]);
        return true;
    }
    for (int i = 0; i < NAMES; i++) {
        if (strlen(names[i].name) != bare || memcmp(names[i].name, word, bare))
            continue;
        key->code = names[i].code;
        if (sscanf(word + bare, ":%d%*[,x]%d", &key->x, &key->y) != 2) {
            key->x = 0;
            key->y = 0;
        }
        return true;
    }
    return false;
}

bool script_key(const char **at, struct key *key)
{
    const char *word = *at + strspn(*at, " ");
    size_t length = strcspn(word, " ");
    bool begins = word > *at;
    unsigned long rune;

    *key = (struct key){KEY_NONE, 0, 0};
    if (!length)
        return false;
    if (!begins || !named_key(word, length, key)) {
        length = json_rune((const unsigned char *)word, strlen(word), &rune);
        key->code = length ? (int)rune : (unsigned char)*word;
        length = length ? length : 1;
    }
    *at = word + length;
    return true;
}
