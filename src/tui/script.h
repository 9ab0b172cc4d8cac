/* tui/script.h -- keys written down: 'j j Enter /forward Enter'.
 *
 * Runs in: the viewer.
 *
 * Words with spaces between them. A word is a key's name (Enter, Esc, Tab, S-Tab,
 * Space, Up, Down, Left, Right, PgUp, PgDn, Home, End, Backspace, Delete, F1,
 * C-l), a mouse (Click:X,Y Double:X,Y WheelUp WheelDown), a new size
 * (Resize:WxH), or characters, each of which is a key. */
#ifndef DYNTRACE_TUI_SCRIPT_H
#define DYNTRACE_TUI_SCRIPT_H

#include <stdbool.h>

#include "tui/screen.h"

/* The next key of *AT, which moves on. False at the end. */
bool script_key(const char **at, struct key *key);

#endif
