/* tui/screen.h -- what is on the screen: a grid of cells, and the terminal that shows it.
 *
 * Runs in: the viewer.
 *
 *     struct screen *s = screen_open_terminal(&why);     or screen_open_memory(rows, columns)
 *     for (;;) {
 *         screen_clear(s);
 *         screen_put(s, 0, 0, s->columns, STYLE_TITLE, "hello");
 *         screen_show(s);
 *         struct key key = screen_key(s);                KEY_NONE when nothing was typed
 *     }
 *     screen_close(s);
 *
 * Views draw into the grid alone, so a screen without a terminal is the same
 * screen, and screen_dump() prints it. Text is escaped here, cell by cell: what
 * a traced program wrote cannot reach the terminal as anything but glyphs. */
#ifndef DYNTRACE_TUI_SCREEN_H
#define DYNTRACE_TUI_SCREEN_H

#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

enum style {
    STYLE_NORMAL, STYLE_DIM, STYLE_BOLD, STYLE_HEAD, STYLE_BAR, STYLE_ALARM, STYLE_WARN, STYLE_GOOD, STYLE_ACCENT,
    STYLE_MATCH, STYLES,
    STYLE_SELECTED = 0x40, /* added to one of these */
};

/* In marked text, a style begins with this byte and one of the letters: n(ormal) d(im) b(old) h(ead) r(ed: alarm)
 * w(arning) g(ood) a(ccent) m(atch). What comes from a trace is escaped before it is put into marked text. */
#define MARK "\x01"

enum { SCREEN_ROWS_LEAST = 12, SCREEN_COLUMNS_LEAST = 40, SCREEN_MOST = 1000, CELL_RUNES = 4 };

struct cell {
    wchar_t runes[CELL_RUNES]; /* a base and what combines with it; 0 ends them */
    unsigned char width;       /* 0: the right half of a wide one */
    unsigned char style;
};

struct screen {
    int rows, columns;
    struct cell *cells;    /* owned: rows * columns */
    bool terminal, ascii, colour;
    int cursor_y, cursor_x; /* -1: hidden */
    int keys_fd;            /* readable when something was typed */
};

/* Keys that are no characters: ours, the name in a script, ncurses' (known where curses.h is; 0: it has none). */
#define KEY_CODES(X)                           \
    X(K_UP, "Up", KEY_UP)                      \
    X(K_DOWN, "Down", KEY_DOWN)                \
    X(K_LEFT, "Left", KEY_LEFT)                \
    X(K_RIGHT, "Right", KEY_RIGHT)             \
    X(K_PAGE_UP, "PgUp", KEY_PPAGE)            \
    X(K_PAGE_DOWN, "PgDn", KEY_NPAGE)          \
    X(K_HOME, "Home", KEY_HOME)                \
    X(K_END, "End", KEY_END)                   \
    X(K_ENTER, "Enter", KEY_ENTER)             \
    X(K_ESCAPE, "Esc", 0)                      \
    X(K_BACKSPACE, "Backspace", KEY_BACKSPACE) \
    X(K_DELETE, "Delete", KEY_DC)              \
    X(K_TAB, "Tab", 0)                         \
    X(K_BACKTAB, "S-Tab", KEY_BTAB)            \
    X(K_F1, "F1", KEY_F(1))                    \
    X(K_RESIZE, "Resize", KEY_RESIZE)          \
    X(K_CLICK, "Click", 0)                     \
    X(K_DOUBLE, "Double", 0)                   \
    X(K_WHEEL_UP, "WheelUp", 0)                \
    X(K_WHEEL_DOWN, "WheelDown", 0)

#define KEY_CODE_(code, name, curses) code,
enum key_code {
    KEY_NONE,
    KEY_FIRST = 0x200000, /* beyond all characters */
    KEY_CODES(KEY_CODE_)
    K_CLOSED, /* no more keys: the terminal is gone */
};
#undef KEY_CODE_
#define K_CONTROL(letter) ((letter) & 0x1f)

struct key {
    int code; /* a character or an enum key_code */
    int y, x; /* of the mouse; K_RESIZE: rows and columns in memory */
};

/* NULL: *WHY says why not, in a few words (borrowed). */
struct screen *screen_open_terminal(bool ascii, const char **why);
struct screen *screen_open_memory(int rows, int columns, bool ascii);
void screen_close(struct screen *screen);

/* A memory screen gets a new size; a terminal's is read again. */
void screen_resize(struct screen *screen, int rows, int columns);

void screen_clear(struct screen *screen);

/* TEXT from column X on, at most WIDTH columns, the last one a "…" if it is cut. Returns the columns used.
 * The other reads style marks, which begin from STYLE. SKIP columns are left out at the left. */
int screen_put(struct screen *screen, int y, int x, int width, int style, const char *text);
int screen_put_marked(struct screen *screen, int y, int x, int width, int skip, int style, const char *text);

/* Spaces of that style. */
void screen_fill(struct screen *screen, int y, int x, int width, int style);

/* Columns that screen_put() needs for TEXT, at most LIMIT. */
int screen_width(const struct screen *screen, const char *text, int limit);

void screen_show(struct screen *screen);
void screen_dump(const struct screen *screen, FILE *out);

/* What was typed, or KEY_NONE at once. */
struct key screen_key(struct screen *screen);

/* Leave the terminal to /bin/sh with these arguments, the first its name, until that ends. False: it could not run them. */
bool screen_shell(const char *const *command);

/* Stop this process as Ctrl-Z does, and come back after. */
void screen_stop(struct screen *screen);

/* Put TEXT into the terminal's clipboard, where it has one (OSC 52). */
void screen_copy(struct screen *screen, const char *text);

#endif
