/* tui/keys.c -- the table of key bindings, the names of keys, and key scripts. See tui/keys.h. */
#include "tui/keys.h"

#include <string.h>

#include "lib/json.h"
#include "lib/list.h"

#define KEYS_(...)  \
    {               \
        __VA_ARGS__ \
    }
#define BINDING_(request, name_, keys_, help_, ...) \
    [REQUEST_##request] = {.name = name_, .keys = KEYS_ keys_, .help = help_, ##__VA_ARGS__},
const struct binding bindings[REQUESTS] = {KEYS(BINDING_)};

#define NAME_(code, name, curses) {name, code},
static const struct {
    const char *name;
    int code;
} names[] = {KEY_CODES(NAME_){"Space", ' '}};
enum { NAMES = array_count(names) };

const char *key_make_label(int code, char *made)
{
    for (int i = 0; i < NAMES; i++)
        if (names[i].code == code)
            return names[i].name;
    if (code < 0x20)
        snprintf(made, 16, "C-%c", code + 'a' - 1);
    else
        snprintf(made, 16, "%c", code < 0x80 ? code : '?');
    return made;
}

/* Is WORD the name of a control key, "C-a" to "C-z"? */
static bool is_name_of_control_key(const char *word, size_t length)
{
    if (length != 3 || strncmp(word, "C-", 2))
        return false;
    return word[2] >= 'a' && word[2] <= 'z';
}

/* Read the name of a key, such as "Enter", and the numbers behind it in "Click:10,5" and
 * "Resize:80x24". Returns false if WORD is not the name of a key. */
static bool read_named_key(const char *word, size_t length, struct key *key)
{
    size_t bare = strcspn(word, " :");

    if (is_name_of_control_key(word, length)) {
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

int key_from_name(const char *word, size_t length)
{
    struct key key = {0};

    if (length == 1)
        return (unsigned char)*word;
    return read_named_key(word, length, &key) ? key.code : KEY_NONE;
}

bool script_read_key(const char **at, struct key *key)
{
    const char *word = *at + strspn(*at, " ");
    size_t length = strcspn(word, " ");
    bool begins = word > *at;
    unsigned long rune;

    *key = (struct key){KEY_NONE, 0, 0};
    if (!length)
        return false;
    if (!begins || !read_named_key(word, length, key)) {
        length = json_decode_character((const unsigned char *)word, strlen(word), &rune);
        key->code = length ? (int)rune : (unsigned char)*word;
        length = length ? length : 1;
    }
    *at = word + length;
    return true;
}
