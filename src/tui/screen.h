/* tui/screen.h -- what is on the screen: a grid of cells, and the terminal that shows it.
 *
 * screen_clear(), then screen_put() for all that is seen, then screen_show(). Views draw into the
 * grid alone, so a screen without a terminal is the same screen, and screen_dump() prints it. Text
 * is escaped here, cell by cell: what a traced program wrote cannot reach the terminal as anything
 * but glyphs. */
#ifndef DYNTRACE_TUI_SCREEN_H
#define DYNTRACE_TUI_SCREEN_H

#include <stdio.h>
#include <wchar.h>

#include "lib/style.h"
#include "tui/keys.h"

enum { SCREEN_ROWS_LEAST = 12, SCREEN_COLUMNS_LEAST = 40, SCREEN_MOST = 1000, CELL_RUNES = 4 };

struct cell {
    wchar_t runes[CELL_RUNES]; /* a base and what combines with it; 0 ends them */
    unsigned char width;       /* 0: the right half of a wide one */
    unsigned char style;
};

struct screen {
    int rows, columns;
    struct cell *cells; /* owned: rows * columns */
    int left, wide;     /* the window that is drawn into: columns count from its left */
    bool terminal, ascii;
    int cursor_y, cursor_x; /* -1: hidden */
    int keys_fd;            /* readable when something was typed */
};

/* Why standard output can be no screen; NULL: it can. */
const char *screen_fault(void);

/* NULL: *WHY says why not, in a few words (borrowed). One at a time. */
struct screen *screen_open_terminal(bool ascii, const char **why);
struct screen *screen_open_memory(int rows, int columns, bool ascii);
void screen_close(struct screen *screen);

/* A memory screen gets a new size; a terminal's is read again. */
void screen_resize(struct screen *screen, int rows, int columns);

void screen_clear(struct screen *screen);

/* From here on draw into WIDE columns, which begin at LEFT and are 0 then. */
void screen_window(struct screen *screen, int left, int wide);

/* TEXT from column X on, at most WIDTH columns, the last one a "…" if it is cut. Returns the
 * columns used. SKIP columns are left out at the left. MARKED: it has style marks, which begin from
 * STYLE. */
int screen_text(struct screen *screen, int y, int x, int width, int skip, int style,
                const char *text, bool marked);
#define screen_put(screen, y, x, width, style, text) \
    screen_text(screen, y, x, width, 0, style, text, false)

/* Spaces of that style. */
void screen_fill(struct screen *screen, int y, int x, int width, int style);

/* Columns that screen_put() needs for TEXT, at most LIMIT. */
int screen_width(const struct screen *screen, const char *text, int limit);

void screen_show(struct screen *screen);
void screen_dump(const struct screen *screen, FILE *out);

/* What was typed, or KEY_NONE at once. */
struct key screen_key(struct screen *screen);

/* Leave the terminal to /bin/sh with these arguments, the first its name, until that ends. False:
 * it could not run them. */
bool screen_shell(const char *const *command);

/* Stop this process as Ctrl-Z does, and come back after. */
void screen_stop(struct screen *screen);

/* Put TEXT into the terminal's clipboard, where it has one (OSC 52). */
void screen_copy(struct screen *screen, const char *text);

#endif
