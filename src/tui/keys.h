/* tui/keys.h -- the keys: their names, requests, command names and help texts.
 *
 * KEYS is the only list of the keys. The requests, the help, the names that `:` takes and
 * completes, the line at the bottom of the screen and the key scripts of the tests are made from
 * KEYS. A test compares docs/tui.md with KEYS. */
#ifndef DYNTRACE_TUI_KEYS_H
#define DYNTRACE_TUI_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/views.h"

/* Keys that are not characters: X(our code, the name in a script, ncurses' code). ncurses' codes
 * are defined in curses.h, so only files that include it may use the third argument. 0 means that
 * ncurses has no code for the key. */
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
    KEY_FIRST = 0x200000, /* this and all codes below are larger than any Unicode character */
    KEY_CODES(KEY_CODE_)
    K_CLOSED, /* no more keys will come, because the terminal is gone */
};
/* clang-format on */
#undef KEY_CODE_
#define K_CONTROL(letter) ((letter)&0x1f)

struct key {
    int code; /* the key: a character, or an enum key_code */
    int y, x; /* where the mouse was clicked; for K_RESIZE of a screen in memory: the new size */
};

/* The keys: X(request, command name, keys, text in the help, other members of struct binding). */
/* clang-format off */
#define KEYS(X)                                                                                    \
    X(UP, "up", ('k', K_UP), "a line up", .group = "Moving")                                       \
    X(DOWN, "down", ('j', K_DOWN), "a line down")                                                  \
    X(LEFT, "left", ('h', K_LEFT), "a column to the left; scroll a text, pan the timeline")        \
    X(RIGHT, "right", ('l', K_RIGHT), "a column to the right")                                     \
    X(PAGE_UP, "page-up", (K_PAGE_UP, K_CONTROL('b')), "a page up")                                \
    X(PAGE_DOWN, "page-down", (K_PAGE_DOWN, K_CONTROL('f')), "a page down")                        \
    X(HALF_UP, "half-up", (K_CONTROL('u')), "half a page up")                                      \
    X(HALF_DOWN, "half-down", (K_CONTROL('d')), "half a page down")                                \
    X(HOME, "first", ('g', K_HOME), "to the first line")                                           \
    X(END, "last", ('G', K_END), "to the last line")                                               \
    X(NEXT_PART, "next-part", (K_TAB), "to the next part of a text")                               \
    X(PREVIOUS_PART, "previous-part", (K_BACKTAB), "to the previous part")                         \
    X(OPEN, "open", (K_ENTER), "open what the line, or the chosen number in it, is made of")       \
    X(BACK, "back", (K_ESCAPE, 'q', K_BACKSPACE),                                                  \
      "back to the previous view; q in the first view quits", .foot = "Esc back")                  \
    X(SPLIT, "split", ('v'),                                                                       \
      "split the screen: show beside or below what Enter would open; again: end the split")        \
    X(MOMENT, "moment", ('@'), "go to a moment: 0.3, 15.2s, +100ms; also :0.3, :+100ms")           \
    X(QUIT, "quit", ('Q'), "quit", .foot = "Q quits")                                              \
    X(SEARCH, "search", ('/'), "search for a text", .group = "Finding")                            \
    X(SEARCH_NEXT, "search-next", ('n'), "the next match")                                         \
    X(SEARCH_PREVIOUS, "search-previous", ('N'), "the previous match")                             \
    X(PREVIOUS, "previous", ('p'),                                                                 \
      "call: the next slower one of its function, n: faster; function: its slowest call")          \
    X(CALLER, "caller", ('u'), "the caller of this call")                                          \
    X(FILTER, "filter", ('f'),                                                                     \
      "show rows that have all these words or fulfil a condition such as calls > 10")              \
    X(SORT, "sort", ('s'), "sort by the chosen column; again: reverse the order")                  \
    X(SORT_TURN, "sort-turn", ('S'), "reverse the order")                                          \
    X(VIEW_1, "view-1", ('1'), "overview", .view = VIEW_OVERVIEW, .group = "Views",                \
      .foot = "1-9 views")                                                                         \
    X(VIEW_2, "view-2", ('2'), "functions", .view = VIEW_FUNCTIONS)                                \
    X(VIEW_3, "view-3", ('3'), "recompiles, by cause", .view = VIEW_RECOMPILES)                    \
    X(VIEW_4, "view-4", ('4'), "graph breaks, by reason", .view = VIEW_BREAKS)                     \
    X(VIEW_5, "view-5", ('5'), "ledger: every call of watched code", .view = VIEW_LEDGER)          \
    X(VIEW_6, "view-6", ('6'), "guards: what they cost", .view = VIEW_GUARDS)                      \
    X(VIEW_7, "view-7", ('7'), "timeline", .view = VIEW_TIMELINE)                                  \
    X(VIEW_8, "view-8", ('8'), "call tree and flame graph", .view = VIEW_FLAME)                    \
    X(VIEW_9, "view-9", ('9'), "replay", .view = VIEW_REPLAY)                                      \
    X(VIEW_0, "view-0", ('0'), "processes", .view = VIEW_PROCESSES)                                \
    X(SQL, "query", ('!'), "SQL: type a query, see the result as a table", .view = VIEW_SQL)       \
    X(HELP, "keys", ('?', K_F1), "this help", .view = VIEW_HELP, .foot = "? keys")                 \
    X(COMMAND, "command", (':'),                                                                   \
      "type a name of this table or of a view, or a line number", .foot = ": command")             \
    X(EDIT, "edit", ('o'), "open $EDITOR at the line", .group = "Actions")                         \
    X(COPY, "copy-sql", ('y'), "copy the SQL of the view to the clipboard")                        \
    X(EXPORT, "export", ('e'), "write the view to a file: rows as CSV, texts unchanged")           \
    X(INPUT, "input", ('i'), "answer the view's prompt, such as a query or a place")               \
    X(REPLAY, "replay-here", ('r'), "replay from this line's moment", .view = VIEW_REPLAY)         \
    X(TIMELINE, "timeline-here", ('t'), "timeline around this line's moment",                      \
      .view = VIEW_TIMELINE)                                                                       \
    X(WHATIF, "what-if", ('w'), "what-if: predict under a change", .view = VIEW_WHATIF)            \
    X(ZOOM_IN, "zoom-in", ('+', '='), "zoom in: timeline, flame graph")                            \
    X(ZOOM_OUT, "zoom-out", ('-'), "zoom out")                                                     \
    X(ZOOM_ALL, "zoom-all", ('*'), "show everything")                                              \
    X(TOGGLE, "toggle", (' '), "fold or unfold; in other views a page down")                       \
    X(MERGE, "merge-threads", ('M'), "call tree: join all threads, or separate them")              \
    X(STEP, "step", (']'), "replay: step forward")                                                 \
    X(STEP_BACK, "step-back", ('['), "replay: step back")                                          \
    X(CANCEL, "cancel", (K_CONTROL('c'), K_CONTROL('g')), "cancel the running query",              \
      .group = "The program")                                                                      \
    X(REFRESH, "refresh", ('R'), "run the queries again")                                          \
    X(FOLLOW, "follow", ('F'), "live: follow the trace, or stop following")                        \
    X(OUTPUT, "program-output", ('O'), "run --live: the program's output", .view = VIEW_OUTPUT)    \
    X(INTERRUPT, "interrupt", ('I'),                                                               \
      "run --live: interrupt the program, as Ctrl-C would; asks first")                            \
    X(KILL, "kill", ('K'), "run --live: end the program; again: kill it; asks first")              \
    X(REDRAW, "redraw", (K_CONTROL('l')), "redraw the screen")                                     \
    X(STOP, "stop", (K_CONTROL('z')), "suspend; fg in the shell returns")                          \
    X(CLICK, "click", (K_CLICK),                                                                   \
      "choose a line; open it if it is chosen, or by a double click; on a heading: sort",          \
      .group = "Mouse")                                                                            \
    X(WHEEL_UP, "wheel-up", (K_WHEEL_UP), "three lines up")                                        \
    X(WHEEL_DOWN, "wheel-down", (K_WHEEL_DOWN), "three lines down")
/* clang-format on */

#define REQUEST_(request, ...) REQUEST_##request,
enum request { REQUEST_NONE, KEYS(REQUEST_) REQUESTS };
#undef REQUEST_

struct binding {
    const char *name;    /* the command's name: "page-down" for `:page-down` */
    int keys[4];         /* the keys that make this request; 0 ends the list */
    enum view_kind view; /* the view that the key opens, or VIEW_NONE */
    const char *group;   /* the heading in the help above this key, or NULL */
    const char *help;
    const char *foot; /* the text about this key at the bottom of the screen, or NULL */
};

/* The key bindings, indexed by enum request. The entry for REQUEST_NONE has no name. */
extern const struct binding bindings[REQUESTS];

/* Read the next key of the script at *AT into KEY, and move *AT behind the key. Returns false at
 * the end of the script.
 *
 * A script is words, such as " j j Enter /forward Enter", with a space before each. A word is a
 * key's name (KEY_CODES, Space, C-l), a click (Click:X,Y), a new screen size (Resize:WxH), or
 * characters, each of which is a key. */
bool script_read_key(const char **at, struct key *key);

/* Return the key whose name in the help is WORD, which has LENGTH bytes: "Esc", "s", "C-c". Returns
 * KEY_NONE if WORD is longer than a character and not the name of a key. */
int key_from_name(const char *word, size_t length);

/* Return the name of the key CODE: "Enter", "C-z", "j". The name is written into MADE, which has
 * room for 16 bytes, unless it is a constant. */
const char *key_make_label(int code, char *made);

#endif
