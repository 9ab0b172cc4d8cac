/* tui/screen.c -- a grid of cells, and the terminal that shows it. See tui/screen.h.
 *
 * No other file uses ncurses.
 *
 * ncurses finds out which cells have changed, and writes them to the terminal. A signal handler
 * must not call ncurses. So if a signal kills the program, the handler restores the terminal by
 * itself: `rescue` has the text and modes that were saved at the start. */
#include "tui/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <resolv.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
/* curses.h and term.h define these words as macros. */
#undef lines
#undef columns

#include "clock.h"
#include "lib/bounds.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/say.h"

enum {
    ESCAPE_MS = 25, /* most time between two bytes of one key */
    /* How ncurses reports a click of the left button. If it reads press and release at once, it
     * reports CLICKED, otherwise PRESSED. */
    PRESSES = BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON1_TRIPLE_CLICKED,
};

/* ---- writing text into the cells of the grid ----------------------------- */

/* Return the ASCII character that replaces RUNE on a terminal without UTF-8. */
static wchar_t ascii_for_character(unsigned long rune)
{
    static const wchar_t runes[] = L"…─│├└┬▸▾●○◆→←↑↓×µ·▁▂▃▄▅▆▇█▒░⏎";
    static const char ascii[] = "~-||`+>v*o*><^vxu..:-=+*#@#:<";
    const wchar_t *at = wcschr(runes, (wchar_t)rune);

    return rune && at ? (wchar_t)ascii[at - runes] : L'?';
}

/* Does the character RUNE move its neighbours, or do terminals disagree about its width? These
 * are controls, marks and overrides of the writing direction, line separators, joiners and
 * variation selectors. */
static bool is_character_unsafe(unsigned long rune)
{
    return rune < 0xa0 || rune == 0xad || rune == 0x061c || (rune >= 0x200b && rune <= 0x200f) ||
           (rune >= 0x2028 && rune <= 0x202e) || (rune >= 0x2060 && rune <= 0x206f) ||
           (rune >= 0xfe00 && rune <= 0xfe0f) || rune == 0xfeff ||
           (rune >= 0xfff9 && rune <= 0xfffb) || rune >= 0xe0000;
}

enum { GLYPH = 12 };

/* Write how the control character RUNE is spelled into MADE: "\\n" or "\\x1b". Returns how many
 * columns this takes. */
static int spell_control_character(wchar_t made[GLYPH], unsigned long rune)
{
    /* pairs: a control character, and the letter that stands for it */
    static const char letters[] = "\nn\tt\rr";
    const char *named = strchr(letters, (int)rune);

    if (rune && named)
        return swprintf(made, GLYPH, L"\\%c", named[1]);
    return swprintf(made, GLYPH, L"\\x%02x", (unsigned)rune);
}

/* Read the next character of *TEXT into MADE, and move *TEXT behind it. A character that cannot be
 * shown becomes an escape. Returns how many columns it takes; 0 means that the character combines
 * with the one before. */
static int read_printable_character(const struct screen *screen, const char **text,
                                    wchar_t made[GLYPH])
{
    const unsigned char *p = (const unsigned char *)*text;
    unsigned long rune = *p;
    size_t bytes;
    int columns = 1;

    /* a printable ASCII character, which needs no further checks */
    if (rune >= 0x20 && rune < 0x7f) {
        ++*text;
        made[0] = (wchar_t)rune;
        made[1] = 0;
        return 1;
    }
    bytes = json_decode_character(p, strnlen(*text, 4), &rune);
    *text += bytes ? bytes : 1;
    if (!bytes)
        return swprintf(made, GLYPH, L"\\x%02x", *p);
    if (rune < 0x20 || rune == 0x7f)
        return spell_control_character(made, rune);
    made[0] = screen->ascii ? ascii_for_character(rune) : (wchar_t)rune;
    made[1] = 0;
    if (!screen->ascii)
        columns = wcwidth(made[0]);
    if (is_character_unsafe(rune) || columns < 0)
        return swprintf(made, GLYPH, L"\\u%04x", (unsigned)rune & 0x1fffff);
    return columns;
}

static struct cell *cell_at(const struct screen *screen, int y, int x)
{
    return &screen->cells[(size_t)y * (size_t)screen->columns + (size_t)(screen->left + x)];
}

static void set_cell(struct cell *cell, wchar_t rune, int width, int style)
{
    *cell = (struct cell){{rune}, (unsigned char)width, (unsigned char)style};
}

/* Write the character RUNE, which is WIDTH columns wide, into its cells. A wide character that is
 * half overwritten becomes a blank. */
static void put_character(struct screen *screen, int y, int x, wchar_t rune, int width, int style)
{
    struct cell *cell = cell_at(screen, y, x);
    bool cuts_left = cell->width == 0 && x > 0;
    bool cuts_right = cell[width - 1].width == 2 && x + width < screen->wide;

    if (cuts_left)
        set_cell(&cell[-1], L' ', 1, cell[-1].style);
    if (cuts_right)
        set_cell(&cell[width], L' ', 1, cell[width].style);
    set_cell(cell, rune, width, style);
    if (width == 2)
        set_cell(&cell[1], 0, 0, style);
}

/* Add the combining character RUNE to the cell before column X, unless that cell has
 * no room for it. */
static void add_combining_character(struct screen *screen, int y, int x, wchar_t rune)
{
    struct cell *cell = cell_at(screen, y, x - 1);
    size_t count;

    cell -= cell->width == 0;
    count = wcsnlen(cell->runes, CELL_RUNES);
    if (count + 1 < CELL_RUNES)
        cell->runes[count] = rune;
}

static bool is_inside_screen(const struct screen *screen, int y, int x)
{
    bool row_fits = y >= 0 && y < screen->rows;
    bool column_fits = x >= 0 && x < screen->wide;

    return row_fits && column_fits;
}

/* Return the style that the letter LETTER of a style mark stands for. Returns BASE if it
 * stands for none. */
static int style_of_mark_letter(char letter, int base)
{
    const char *found = strchr(STYLE_LETTERS, letter);

    if (!found)
        return base;
    return (int)(found - STYLE_LETTERS) | (base & STYLE_SELECTED);
}

int screen_put_text(struct screen *screen, int y, int x, int width, int skip, int style,
                    const char *text, bool marked)
{
    int used = 0;
    int base = style;
    wchar_t made[GLYPH];

    if (!is_inside_screen(screen, y, x))
        return 0;
    if (width > screen->wide - x)
        width = screen->wide - x;
    while (*text && width > 0) {
        bool changes_style = marked && *text == MARK[0] && text[1];
        if (changes_style) {
            style = style_of_mark_letter(text[1], base);
            text += 2;
            continue;
        }
        int columns = read_printable_character(screen, &text, made);
        if (columns == 0 && used > 0) {
            add_combining_character(screen, y, x + used, made[0]);
        } else if (skip > 0) {
            skip -= columns;
        } else if (used + columns > width) {
            /* the text does not fit into its columns, so end it with "…" */
            int at = used < width ? used : width - 1;
            screen_fill(screen, y, x + at, width - at, style);
            put_character(screen, y, x + at, screen->ascii ? L'~' : L'…', 1, style);
            return width;
        } else if (columns > 0) {
            int wide = made[1] ? 1 : columns;
            for (const wchar_t *rune = made; *rune; rune++) {
                put_character(screen, y, x + used, *rune, wide, style);
                used += wide;
            }
        }
    }
    return used;
}

int screen_width(const struct screen *screen, const char *text, int limit)
{
    wchar_t made[GLYPH];
    int used = 0;

    while (*text && used < limit)
        used += read_printable_character(screen, &text, made);
    return used < limit ? used : limit;
}

void screen_fill(struct screen *screen, int y, int x, int width, int style)
{
    for (int end = x + width; x < end; x++)
        if (is_inside_screen(screen, y, x))
            put_character(screen, y, x, L' ', 1, style);
}

void screen_set_window(struct screen *screen, int left, int wide)
{
    screen->left = left;
    screen->wide = wide;
}

void screen_clear(struct screen *screen)
{
    screen_set_window(screen, 0, screen->columns);
    for (int y = 0; y < screen->rows; y++)
        for (int x = 0; x < screen->columns; x++)
            *cell_at(screen, y, x) = (struct cell){{L' '}, 1, STYLE_NORMAL};
    screen->cursor_y = -1;
    screen->cursor_x = -1;
}

static int limit_size(int size)
{
    if (size < 1)
        return 1;
    return size > SCREEN_MOST ? SCREEN_MOST : size;
}

static void resize_grid(struct screen *screen, int rows, int columns)
{
    size_t cells;

    screen->rows = limit_size(rows);
    screen->columns = limit_size(columns);
    cells = (size_t)screen->rows * (size_t)screen->columns;
    free(screen->cells);
    screen->cells = calloc(cells, sizeof *screen->cells);
    screen_clear(screen);
}

void screen_write_to_file(const struct screen *screen, FILE *out)
{
    for (int y = 0; y < screen->rows; y++) {
        int end = screen->columns;
        while (end > 0 && !wcscmp(cell_at(screen, y, end - 1)->runes, L" "))
            end--;
        for (int x = 0; x < end; x++)
            fprintf(out, "%ls", cell_at(screen, y, x)->runes);
        putc('\n', out);
    }
}

/* ---- restoring the terminal after a crash, and signals ------------------- */

/* The modes and the text with which the terminal is restored. They are saved while
 * ncurses starts. */
static struct {
    struct termios modes;
    char text[512];
    size_t bytes;
    volatile sig_atomic_t armed;
} rescue;

/* Return the terminal's control sequence for the terminfo capability NAME, or "" if it has none. */
static const char *terminal_capability(const char *name)
{
    const char *text = tigetstr(name);

    return text && text != (const char *)-1 ? text : "";
}

/* Restore the terminal. Safe in signal handlers: calls only write(2) and tcsetattr(3). */
static void restore_terminal(void)
{
    if (!rescue.armed)
        return;
    rescue.armed = 0;
    /* nothing can be done if write() fails, because the terminal is gone */
    if (write(STDOUT_FILENO, rescue.text, rescue.bytes) >= 0)
        tcsetattr(STDOUT_FILENO, TCSANOW, &rescue.modes);
}

static void restore_terminal_and_die(int number)
{
    restore_terminal();
    /* this kills the process, because SA_RESETHAND has restored the default action */
    raise(number);
}

static volatile sig_atomic_t size_changed, stop_asked;
static bool stoppable; /* SIGTSTP was not ignored when the program started */

/* Handle SIGWINCH. Also handle SIGCONT, because the size may have changed while the
 * process was stopped. */
static void note_resize(int unused)
{
    size_changed = 1;
}

static void stop_and_redraw(int unused)
{
    stop_asked = 1;
}

/* Let HANDLER handle SIGTSTP, in place of ncurses' own handler, which would discard keys that are
 * typed before the screen is drawn again. */
static void set_stop_handler(void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler};

    if (stoppable)
        sigaction(SIGTSTP, &action, NULL);
}

static void install_signal_handlers(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE,  SIGABRT,
                                 SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGXCPU};
    struct sigaction action = {.sa_handler = restore_terminal_and_die,
                               .sa_flags = SA_RESETHAND | SA_NODEFER | SA_ONSTACK};
    struct sigaction resize = {.sa_handler = note_resize};
    struct sigaction stop;

    stoppable = sigaction(SIGTSTP, NULL, &stop) == 0 && stop.sa_handler != SIG_IGN;
    for (size_t i = 0; i < array_count(deadly); i++) {
        struct sigaction old;
        /* a signal that was ignored before, as SIGHUP under nohup, stays ignored */
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(deadly[i], &action, NULL);
    }
    bounds_call_at_end(restore_terminal);
    sigaction(SIGWINCH, &resize, NULL);
    sigaction(SIGCONT, &resize, NULL);
}

/* ---- styles on the terminal ---------------------------------------------- */

static attr_t attributes[STYLES];
static short pairs[STYLES];

/* Begin to use colours. Returns false if the terminal has too few, or if the user wants none. */
static bool begin_colours(void)
{
    if (!say_may_use_colour(stdout) || !has_colors())
        return false;
    return start_color() == OK && use_default_colors() == OK && COLORS >= 8;
}

/* Choose the attributes and colours of all styles. The colours are readable on light and on dark
 * backgrounds. */
static void choose_styles(void)
{
    static const struct {
        attr_t mono, extra;
        short few, many;
    } table[STYLES] = {
        [STYLE_NORMAL] = {A_NORMAL, A_NORMAL, -1, -1},
        [STYLE_DIM] = {A_DIM, A_NORMAL, -1, 244},
        [STYLE_BOLD] = {A_BOLD, A_BOLD, -1, -1},
        [STYLE_HEAD] = {A_BOLD | A_UNDERLINE, A_BOLD, COLOR_CYAN, 31},
        [STYLE_BAR] = {A_REVERSE, A_REVERSE, -1, -1},
        [STYLE_ALARM] = {A_BOLD | A_UNDERLINE, A_BOLD, COLOR_RED, 160},
        [STYLE_WARN] = {A_BOLD, A_NORMAL, COLOR_YELLOW, 136},
        [STYLE_GOOD] = {A_NORMAL, A_NORMAL, COLOR_GREEN, 34},
        [STYLE_ACCENT] = {A_BOLD, A_NORMAL, COLOR_BLUE, 33},
        [STYLE_MATCH] = {A_REVERSE | A_BOLD, A_REVERSE, COLOR_YELLOW, 136},
    };
    bool coloured = begin_colours();

    for (int i = 0; i < STYLES; i++) {
        short pair = (short)(i + 1);
        short colour = COLORS >= 256 ? table[i].many : table[i].few;
        attributes[i] = table[i].mono;
        pairs[i] = 0;
        if (!coloured)
            continue;
        attributes[i] = table[i].extra;
        if (colour >= 0 && init_pair(pair, colour, -1) == OK)
            pairs[i] = pair;
        else if (i == STYLE_DIM)
            attributes[i] = A_DIM;
    }
}

/* ---- opening, closing and resizing a screen ------------------------------ */

static SCREEN *terminal; /* owned: the terminal, as ncurses knows it */
static FILE *keys_file;  /* the file from which keys are read; owned if it is not stdin */

struct screen *screen_open_memory(int rows, int columns, bool ascii)
{
    struct screen *screen = calloc(1, sizeof *screen);

    resize_grid(screen, rows, columns);
    screen->ascii = ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    return screen;
}

/* Start ncurses on the terminal. Returns NULL, or why the terminal cannot be used. */
static const char *start_terminal(void)
{
    int error = 0;

    if (setupterm(NULL, STDOUT_FILENO, &error) != OK)
        return error == 0 ? "the terminal named by TERM is not known here (or TERM is not set); "
                            "try TERM=xterm"
                          : "there is no terminal database here; is ncurses-base installed?";
    if (!*terminal_capability("cup"))
        return "the terminal named by TERM cannot move its cursor; try TERM=xterm";
    if (tcgetattr(STDOUT_FILENO, &rescue.modes) != 0)
        return strerror(errno);
    /* free it, because it was needed only for the checks above; newterm() makes its own */
    del_curterm(cur_term);
    /* do this before newterm(): ncurses leaves signals alone that have a handler */
    install_signal_handlers();
    if (!(terminal = newterm(NULL, stdout, keys_file)))
        return "ncurses cannot start on this terminal";
    set_stop_handler(stop_and_redraw);
    snprintf(rescue.text, sizeof rescue.text, "%s%s%s%s%s", terminal_capability("sgr0"),
             terminal_capability("rmkx"), terminal_capability("cnorm"),
             terminal_capability("rmcup"),
             *terminal_capability("kmous") ? "\033[?1006;1002;1000l" : "");
    rescue.bytes = strlen(rescue.text);
    rescue.armed = 1;
    raw();
    noecho();
    nonl();
    set_escdelay(ESCAPE_MS);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    leaveok(stdscr, FALSE);
    mouseinterval(0);
    mousemask(PRESSES | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    choose_styles();
    return NULL;
}

static void close_key_input(void)
{
    if (keys_file && keys_file != stdin)
        fclose(keys_file);
    keys_file = NULL;
}

const char *screen_get_error(void)
{
    return isatty(STDOUT_FILENO) ? NULL
                                 : "standard output is not a terminal; `dyntrace report` prints, "
                                   "--dump shows a screen as text";
}

struct screen *screen_open_terminal(bool ascii, const char **why)
{
    struct screen *screen;

    if ((*why = screen_get_error()))
        return NULL;
    if (!(keys_file = isatty(STDIN_FILENO) ? stdin : fopen("/dev/tty", "re")))
        *why = "standard input is not a terminal and there is no other to read keys from";
    else
        *why = start_terminal();
    if (*why) {
        close_key_input();
        return NULL;
    }
    screen = screen_open_memory(LINES, COLS, ascii);
    screen->terminal = true;
    screen->keys_fd = fileno(keys_file);
    return screen;
}

void screen_close(struct screen *screen)
{
    if (screen->terminal) {
        /* This terminal has no second screen that is left at the end, so the last frame stays.
         * Clear its last line for the shell's prompt. */
        if (!*terminal_capability("rmcup")) {
            move(screen->rows - 1, 0);
            clrtoeol();
            refresh();
        }
        endwin();
        rescue.armed = 0;
        delscreen(terminal);
        close_key_input();
    }
    free(screen->cells);
    free(screen);
}

void screen_resize(struct screen *screen, int rows, int columns)
{
    struct winsize size;

    if (screen->terminal) {
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
            return;
        if (!size.ws_row || !size.ws_col)
            return;
        rows = size.ws_row;
        columns = size.ws_col;
        resize_term(rows, columns); /* not resizeterm(), which would add a key to the input */
        clearok(curscr, TRUE);
    }
    resize_grid(screen, rows, columns);
}

/* ---- showing the grid on the terminal ------------------------------------ */

void screen_show_on_terminal(struct screen *screen)
{
    if (!screen->terminal)
        return;
    for (int y = 0; y < screen->rows; y++) {
        for (int x = 0; x < screen->columns; x++) {
            const struct cell *cell = cell_at(screen, y, x);
            int style = cell->style & (STYLE_SELECTED - 1);
            attr_t how = attributes[style];
            cchar_t shown;
            if (cell->style & STYLE_SELECTED)
                how |= A_REVERSE;
            if (cell->width && setcchar(&shown, cell->runes, how, pairs[style], NULL) == OK)
                mvadd_wch(y, x, &shown);
        }
    }
    if (screen->cursor_y >= 0) {
        curs_set(1);
        move(screen->cursor_y, screen->cursor_x);
    } else {
        curs_set(0);
        move(screen->rows - 1, 0);
    }
    refresh();
}

/* ---- lending the terminal to other programs, and stopping ---------------- */

/* Leave the terminal to another program: restore its modes. SIGTSTP then stops us and that
 * program as usual. */
static void lend_terminal(void)
{
    def_prog_mode();
    endwin();
    rescue.armed = 0;
    set_stop_handler(SIG_DFL);
}

static void take_terminal_back(void)
{
    set_stop_handler(stop_and_redraw);
    rescue.armed = 1;
    /* draw now: otherwise, if the next key is Q, endwin() does not restore the terminal again */
    refresh();
    size_changed = 1; /* the size of the terminal may have changed meanwhile */
}

bool screen_run_command(const char *const *command)
{
    int status = 0;
    pid_t child;

    lend_terminal();
    child = fork();
    if (child == 0) {
        bounds_reset_in_child();
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        execv("/bin/sh", (char **)(uintptr_t)command);
        _exit(127);
    }
    if (child > 0)
        TEMP_FAILURE_RETRY(waitpid(child, &status, 0));
    take_terminal_back();
    if (child <= 0)
        return false;
    return !WIFEXITED(status) || WEXITSTATUS(status) != 127;
}

/* Stop PROCESS, an argument for kill(2). When this process is continued, take the terminal back. */
static void stop_process(pid_t process)
{
    lend_terminal();
    kill(process, SIGTSTP);
    take_terminal_back();
}

void screen_stop_process(struct screen *screen)
{
    if (screen->terminal)
        stop_process(0); /* 0 means all processes of our job, which Ctrl-Z in a terminal stops */
}

/* ---- reading keys -------------------------------------------------------- */

static struct key read_mouse_key(void)
{
    struct key key = {.code = KEY_NONE};
    MEVENT event;

    if (getmouse(&event) != OK)
        return key;
    key.y = event.y;
    key.x = event.x;
    /* ncurses reports two clicks at once: put one back, so that it is read next */
    if (event.bstate & (BUTTON1_DOUBLE_CLICKED | BUTTON1_TRIPLE_CLICKED)) {
        event.bstate = BUTTON1_PRESSED;
        ungetmouse(&event);
    }
    if (event.bstate & PRESSES)
        key.code = K_CLICK;
    else if (event.bstate & BUTTON4_PRESSED)
        key.code = K_WHEEL_UP;
    else if (event.bstate & BUTTON5_PRESSED)
        key.code = K_WHEEL_DOWN;
    return key;
}

/* ESC was read: read the rest of an escape sequence. A sequence that ncurses does not know
 * (Ctrl-Left on another terminal) is discarded. Returns false if there is none, because the
 * user typed Esc. */
static bool skip_escape_sequence(void)
{
    wint_t wide;
    int got = get_wch(&wide); /* this does not wait, because ncurses has waited ESCAPE_MS already */
    bool csi = got == OK && wide == '[';
    bool single = got == OK && wide == 'O';
    bool typed = got == OK && !csi && !single;

    if (typed)
        unget_wch((wchar_t)wide);
    if (typed || got == ERR)
        return false;
    timeout(ESCAPE_MS);
    while (got == OK) {
        bool last;
        got = get_wch(&wide);
        last = wide >= 0x40 && wide <= 0x7e;
        if (got != OK || !csi || last)
            break;
    }
    nodelay(stdscr, TRUE);
    return true;
}

/* Return the key for WIDE, a character that was typed. */
static int key_of_character(wint_t wide)
{
    switch (wide) {
    case '\r':
    case '\n':
        return K_ENTER;
    case 27:
        return K_ESCAPE;
    case '\t':
        return K_TAB;
    case 127:
    case 8:
        return K_BACKSPACE;
    default:
        return (int)wide;
    }
}

/* Return our key for CODE, a key of ncurses. Returns KEY_NONE if we do not use it. */
static int key_of_curses_code(wint_t code)
{
#define CURSES_(code, name, curses) {curses, code},
    static const struct {
        int curses, ours;
    } table[] = {KEY_CODES(CURSES_)};
#undef CURSES_
    int key = KEY_NONE;

    for (size_t i = 0; i < array_count(table); i++)
        if ((wint_t)table[i].curses == code)
            key = table[i].ours;
    return key;
}

/* Is the terminal gone from which keys are read? */
static bool is_terminal_gone(const struct screen *screen)
{
    struct pollfd poll_keys = {.fd = screen->keys_fd, .events = POLLIN};

    if (poll(&poll_keys, 1, 0) <= 0)
        return false;
    return poll_keys.revents & (POLLHUP | POLLERR | POLLNVAL);
}

struct key screen_read_key(struct screen *screen)
{
    struct key key = {.code = KEY_NONE};
    wint_t wide;
    int got;

    if (stop_asked) {
        stop_asked = 0;
        stop_process(getpid());
    }
    if (size_changed) {
        size_changed = 0;
        return (struct key){.code = K_RESIZE};
    }
    do
        got = get_wch(&wide);
    while (got == OK && wide == 27 && skip_escape_sequence());
    if (got == KEY_CODE_YES && wide == KEY_MOUSE)
        return read_mouse_key();
    if (got == KEY_CODE_YES)
        key.code = key_of_curses_code(wide);
    else if (got == OK)
        key.code = key_of_character(wide);
    else if (is_terminal_gone(screen))
        key.code = K_CLOSED;
    return key;
}

void screen_copy_to_clipboard(struct screen *screen, const char *text)
{
    size_t bytes = strlen(text);
    size_t room = (bytes + 2) / 3 * 4 + 1;
    char *made = malloc(room);

    if (screen->terminal && b64_ntop((const unsigned char *)text, bytes, made, room) >= 0)
        printf("\033]52;c;%s\a", made);
    fflush(stdout);
    free(made);
}
