/* tui/screen.h -- the screen: a grid of cells, and the terminal that shows it.
 *
 * To draw: screen_clear(), then screen_put() for all texts, then screen_show_on_terminal(). Views
 * draw only into the grid, so they draw the same without a terminal. screen_write_to_file() prints
 * the grid. screen_put() escapes text cell by cell, so no text of a traced program can control the
 * terminal. */
#ifndef DYNTRACE_TUI_SCREEN_H
#define DYNTRACE_TUI_SCREEN_H

#include <stdio.h>
#include <wchar.h>

#include "lib/style.h"
#include "tui/keys.h"

enum { SCREEN_ROWS_LEAST = 12, SCREEN_COLUMNS_LEAST = 40, SCREEN_MOST = 1000, CELL_RUNES = 4 };

struct cell {
    /* a base character and its combining characters, with a 0 at the end */
    wchar_t runes[CELL_RUNES];
    /* width in columns: 1 or 2; 0 in the right half of a wide character */
    unsigned char width;
    unsigned char style;
};

struct screen {
    int rows, columns;
    struct cell *cells; /* owned: the cells of the grid, row by row */
    /* the part of the screen that is drawn into: where it begins, and its width */
    int left, wide;
    bool terminal, ascii;
    int cursor_y, cursor_x; /* where the cursor is drawn; -1 hides it */
    int keys_fd;            /* a file descriptor that is readable when a key was typed */
};

/* Return NULL if standard output can be a screen, otherwise the reason why not: it
 * is no terminal. */
const char *screen_get_error(void);

/* Take over the terminal, or make a screen in memory. If screen_open_terminal() fails, it
 * returns NULL and sets *WHY to the reason, a borrowed string. Only one terminal screen can be
 * open at a time. */
struct screen *screen_open_terminal(bool ascii, const char **why);
struct screen *screen_open_memory(int rows, int columns, bool ascii);
void screen_close(struct screen *screen);

/* Resize the grid. A screen in memory gets ROWS and COLUMNS, a terminal screen gets the size that
 * the terminal has now. */
void screen_resize(struct screen *screen, int rows, int columns);

void screen_clear(struct screen *screen);

/* From now on draw only into the WIDE columns from column LEFT on. Until the next call, column 0
 * means column LEFT. */
void screen_set_window(struct screen *screen, int left, int wide);

/* Draw TEXT in row Y from column X on, in at most WIDTH columns. If it is longer, it ends
 * with "…". The first SKIP columns of the text are left out. The text has the style STYLE; if
 * MARKED, style marks in the text change that. Returns the number of columns used. */
int screen_put_text(struct screen *screen, int y, int x, int width, int skip, int style,
                    const char *text, bool marked);
#define screen_put(screen, y, x, width, style, text) \
    screen_put_text(screen, y, x, width, 0, style, text, false)

/* Draw WIDTH blanks with the style STYLE. */
void screen_fill(struct screen *screen, int y, int x, int width, int style);

/* Return how many columns screen_put() needs for TEXT, at most LIMIT. */
int screen_width(const struct screen *screen, const char *text, int limit);

void screen_show_on_terminal(struct screen *screen);
void screen_write_to_file(const struct screen *screen, FILE *out);

/* Return the next typed key, or KEY_NONE if none was typed. Does not wait. */
struct key screen_read_key(struct screen *screen);

/* Lend the terminal to `/bin/sh` until it ends. COMMAND has its arguments, of which the first is
 * its name. Returns false if the shell or the command could not be run. */
bool screen_run_command(const char *const *command);

/* Stop this process as Ctrl-Z does in a shell, and redraw when it is continued. */
void screen_stop_process(struct screen *screen);

/* Put TEXT into the clipboard of the terminal, if the terminal supports that (OSC 52). */
void screen_copy_to_clipboard(struct screen *screen, const char *text);

#endif
