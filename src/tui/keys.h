/* tui/keys.h -- the keys: their names, what each asks for, its name as a command, and its words in
 * the help.
 *
 * KEYS is the only list of what they do. The requests, the help, `:` and its completion, the line
 * at the bottom and what the tests type are made from it; docs/tui.md is held against it. */
#ifndef DYNTRACE_TUI_KEYS_H
#define DYNTRACE_TUI_KEYS_H

#include <stdbool.h>

#include "tui/views.h"

/* Keys that are no characters: ours, the name in a script, ncurses' (known where curses.h is; 0: it
 * has none). */
/* clang-format off */
#define KEY_CODES(X)                                                                               \
    X(K_UP, "Up", KEY_UP)                                                                          \
    X(K_DOWN, "Down", KEY_DOWN)                                                                    \
    X(K_LEFT, "Left", KEY_LEFT)                                                                    \
    X(K_RIGHT, "Right", KEY_RIGHT)                                                                 \
    X(K_PAGE_UP, "PgUp", KEY_PPAGE)                                                                \
    X(K_PAGE_DOWN, "PgDn", KEY_NPAGE)                                                              \
    X(K_HOME, "Home", KEY_HOME)                                                                    \
    X(K_END, "End", KEY_END)                                                                       \
    X(K_ENTER, "Enter", KEY_ENTER)                                                                 \
    X(K_ESCAPE, "Esc", 0)                                                                          \
    X(K_BACKSPACE, "Backspace", KEY_BACKSPACE)                                                     \
    X(K_DELETE, "Delete", KEY_DC)                                                                  \
    X(K_TAB, "Tab", 0)                                                                             \
    X(K_BACKTAB, "S-Tab", KEY_BTAB)                                                                \
    X(K_F1, "F1", KEY_F(1))                                                                        \
    X(K_RESIZE, "Resize", KEY_RESIZE)                                                              \
    X(K_CLICK, "Click", 0)                                                                         \
    X(K_WHEEL_UP, "WheelUp", 0)                                                                    \
    X(K_WHEEL_DOWN, "WheelDown", 0)
/* clang-format on */

#define KEY_CODE_(code, name, curses) code,
/* clang-format off */
enum key_code {
    KEY_NONE,
    KEY_FIRST = 0x200000, /* beyond all characters */
    KEY_CODES(KEY_CODE_)
    K_CLOSED, /* no more keys: the terminal is gone */
};
/* clang-format on */
#undef KEY_CODE_
#define K_CONTROL(letter) ((letter)&0x1f)

struct key {
    int code; /* a character or an enum key_code */
    int y, x; /* of the mouse; K_RESIZE: rows and columns in memory */
};

/* X(request, name, keys, view that it opens, group of the help that begins here, words, words at
 * the bottom of the screen) */
/* clang-format off */
#define KEYS(X)                                                                                    \
    X(UP, "up", ('k', K_UP), NONE, "Moving", "a line up", 0)                                       \
    X(DOWN, "down", ('j', K_DOWN), NONE, 0, "a line down", 0)                                      \
    X(LEFT, "left", ('h', K_LEFT), NONE, 0, "a column to the left; scroll text, pan the timeline", \
      0)                                                                                           \
    X(RIGHT, "right", ('l', K_RIGHT), NONE, 0, "to the right", 0)                                  \
    X(PAGE_UP, "page-up", (K_PAGE_UP, K_CONTROL('b')), NONE, 0, "a page up", 0)                    \
    X(PAGE_DOWN, "page-down", (K_PAGE_DOWN, K_CONTROL('f')), NONE, 0, "a page down", 0)            \
    X(HALF_UP, "half-up", (K_CONTROL('u')), NONE, 0, "half a page up", 0)                          \
    X(HALF_DOWN, "half-down", (K_CONTROL('d')), NONE, 0, "half a page down", 0)                    \
    X(HOME, "first", ('g', K_HOME), NONE, 0, "to the first line", 0)                               \
    X(END, "last", ('G', K_END), NONE, 0, "to the last line", 0)                                   \
    X(NEXT_PART, "next-part", (K_TAB), NONE, 0, "to the next part of a text", 0)                   \
    X(PREVIOUS_PART, "previous-part", (K_BACKTAB), NONE, 0, "to the part before", 0)               \
    X(OPEN, "open", (K_ENTER), NONE, 0,                                                            \
      "go deeper: what this line, or this number of it, is made of", 0)                            \
    X(BACK, "back", (K_ESCAPE, 'q', K_BACKSPACE), NONE, 0,                                         \
      "back to the view before; q in the first one ends", "Esc back")                              \
    X(SPLIT, "split", ('v'), NONE, 0,                                                              \
      "show what Enter opens below, or beside, and follow the cursor; again: no more", 0)          \
    X(MOMENT, "moment", ('@'), NONE, 0, "go to a moment: 0.3, 15.2s, +100ms; also :0.3, :+100ms",  \
      0)                                                                                           \
    X(QUIT, "quit", ('Q'), NONE, 0, "end", "q ends")                                               \
    X(SEARCH, "search", ('/'), NONE, "Finding", "search for a text", 0)                            \
    X(SEARCH_NEXT, "search-next", ('n'), NONE, 0, "the next place", 0)                             \
    X(SEARCH_PREVIOUS, "search-previous", ('N'), NONE, 0, "the place before", 0)                   \
    X(PREVIOUS, "previous", ('p'), NONE, 0,                                                        \
      "a call: a slower one of the same function; n: a faster one; a function: its slowest", 0)    \
    X(CALLER, "caller", ('u'), NONE, 0, "the call that made this one", 0)                          \
    X(FILTER, "filter", ('f'), NONE, 0,                                                            \
      "only rows with all these words, or an SQL condition such as calls > 10", 0)                 \
    X(SORT, "sort", ('s'), NONE, 0, "sort by the chosen column; again turns it around", 0)         \
    X(SORT_TURN, "sort-turn", ('S'), NONE, 0, "turn the order around", 0)                          \
    X(VIEW_1, "view-1", ('1'), OVERVIEW, "Views", "overview", "1-9 views")                         \
    X(VIEW_2, "view-2", ('2'), FUNCTIONS, 0, "functions", 0)                                       \
    X(VIEW_3, "view-3", ('3'), RECOMPILES, 0, "recompiles, by cause", 0)                           \
    X(VIEW_4, "view-4", ('4'), BREAKS, 0, "graph breaks, by reason", 0)                            \
    X(VIEW_5, "view-5", ('5'), LEDGER, 0, "ledger: every call of watched code", 0)                 \
    X(VIEW_6, "view-6", ('6'), GUARDS, 0, "guards: what they cost", 0)                             \
    X(VIEW_7, "view-7", ('7'), TIMELINE, 0, "timeline", 0)                                         \
    X(VIEW_8, "view-8", ('8'), FLAME, 0, "call tree and flame graph", 0)                           \
    X(VIEW_9, "view-9", ('9'), REPLAY, 0, "replay", 0)                                             \
    X(VIEW_0, "view-0", ('0'), PROCESSES, 0, "processes", 0)                                       \
    X(SQL, "query", ('!'), SQL, 0, "SQL: a prompt, and the result as a table", 0)                  \
    X(HELP, "keys", ('?', K_F1), HELP, 0, "this help", "? keys")                                   \
    X(COMMAND, "command", (':'), NONE, 0,                                                          \
      "a command: any name of this table or of a view, or a line's number", ": command")           \
    X(EDIT, "edit", ('o'), NONE, "With what is shown", "open $EDITOR at the line", 0)              \
    X(COPY, "copy-sql", ('y'), NONE, 0, "copy the SQL of what is shown to the clipboard", 0)       \
    X(EXPORT, "export", ('e'), NONE, 0,                                                            \
      "write what is shown to a file: rows as CSV, texts as they are", 0)                          \
    X(INPUT, "input", ('i'), NONE, 0, "type into the view: a query", 0)                            \
    X(REPLAY, "replay-here", ('r'), REPLAY, 0, "replay from this line's moment", 0)                \
    X(TIMELINE, "timeline-here", ('t'), TIMELINE, 0, "timeline around this line's moment", 0)      \
    X(WHATIF, "what-if", ('w'), WHATIF, 0, "what a change would have made of this", 0)             \
    X(ZOOM_IN, "zoom-in", ('+', '='), NONE, 0, "zoom in: timeline, flame graph", 0)                \
    X(ZOOM_OUT, "zoom-out", ('-'), NONE, 0, "zoom out", 0)                                         \
    X(ZOOM_ALL, "zoom-all", ('*'), NONE, 0, "all of it", 0)                                        \
    X(TOGGLE, "toggle", (' '), NONE, 0, "fold or unfold; in other views a page down", 0)           \
    X(MERGE, "merge-threads", ('M'), NONE, 0, "call tree: all threads as one, or apart again", 0)  \
    X(STEP, "step", (']'), NONE, 0, "replay: a step on", 0)                                        \
    X(STEP_BACK, "step-back", ('['), NONE, 0, "replay: a step back", 0)                            \
    X(RUN, "run", ('}'), NONE, 0, "replay: on to the next breakpoint", 0)                          \
    X(RUN_BACK, "run-back", ('{'), NONE, 0, "replay: back to the one before", 0)                   \
    X(BREAKPOINT, "breakpoint", ('b'), NONE, 0, "replay: stop where this happens, or no more", 0)  \
    X(CANCEL, "cancel", (K_CONTROL('c'), K_CONTROL('g')), NONE, "The program",                     \
      "cancel what is being asked", 0)                                                             \
    X(REFRESH, "refresh", ('R'), NONE, 0, "ask again", 0)                                          \
    X(FOLLOW, "follow", ('F'), NONE, 0, "live: follow the trace, or hold still", 0)                \
    X(OUTPUT, "program-output", ('O'), OUTPUT, 0, "run --live: what the program printed", 0)       \
    X(INTERRUPT, "interrupt", ('I'), NONE, 0,                                                      \
      "run --live: interrupt the program, as Ctrl-C would; asks first", 0)                         \
    X(KILL, "kill", ('K'), NONE, 0, "run --live: end the program, again: kill it; asks first", 0)  \
    X(REDRAW, "redraw", (K_CONTROL('l')), NONE, 0, "draw the screen anew", 0)                      \
    X(STOP, "stop", (K_CONTROL('z')), NONE, 0, "to the shell; fg comes back", 0)                   \
    X(CLICK, "click", (K_CLICK), NONE, "Mouse",                                                    \
      "choose; on what is chosen, or twice: open; on a heading: sort", 0)                          \
    X(WHEEL_UP, "wheel-up", (K_WHEEL_UP), NONE, 0, "three lines up", 0)                            \
    X(WHEEL_DOWN, "wheel-down", (K_WHEEL_DOWN), NONE, 0, "three lines down", 0)
/* clang-format on */

#define REQUEST_(request, name, keys, view, group, words, foot) REQUEST_##request,
enum request { REQUEST_NONE, KEYS(REQUEST_) REQUESTS };
#undef REQUEST_

struct binding {
    const char *name;    /* as a command: ":page-down" */
    int keys[4];         /* 0 ends them */
    enum view_kind view; /* that it opens */
    const char *group;   /* title of the help's part, where one begins */
    const char *help;
    const char *foot; /* at the bottom of the screen, or NULL */
};

/* By enum request; REQUEST_NONE has no name. */
extern const struct binding bindings[REQUESTS];

/* The next key of a script, 'j j Enter /forward Enter', at *AT, which moves on. False at the end. A
 * script is words with spaces between them, and one before the first. A word is a key's name
 * (KEY_CODES, Space, C-l), the mouse (Click:X,Y), a new size (Resize:WxH), or characters, each of
 * which is a key. */
bool script_key(const char **at, struct key *key);

/* What a key is called: "Enter", "C-z", "j". MADE has room for 16 bytes. */
const char *key_label(int code, char *made);

#endif
