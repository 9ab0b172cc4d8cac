/* tui/script.h -- keys written down: 'j j Enter /forward Enter'.
 *
 * Runs in: the viewer.
 *
 * Words with spaces between them. A word is a key's name (KEY_CODES in
 * tui/screen.h, Space, C-l), the mouse (Click:X,Y Double:X,Y), a new size
 * (Resize:WxH), or characters, each of which is a key. */
#ifndef DYNTRACE_TUI_SCRIPT_H
#define DYNTRACE_TUI_SCRIPT_H

#include <stdbool.h>

#include "tui/screen.h"

/* The next key of *AT, which moves on. False at the end. */
bool script_key(const char **at, struct key *key);

/* What a key is called: "Enter", "C-z", "j". MADE has room for 16 bytes. */
const char *key_name(int code, char *made);

#endif
