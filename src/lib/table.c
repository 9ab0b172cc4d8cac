/* lib/table.c -- rows printed for people and for programs.
 *
 * Runs in: the viewer. See lib/table.h.
 *
 * To align columns one must know the widest cell, and a result may have no end.
 * So the first rows are kept until there are enough of them to tell, then
 * everything is printed as it comes; a later cell that is wider sticks out. */
#include "lib/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "lib/json.h"
#include "lib/say.h"

enum {
    KEPT_ROWS = 500,
    KEPT_BYTES = 4 << 20,  /* whichever comes first */
    CELL_WIDTH = 60,       /* of a text cell on a terminal, when there is no room for more */
    LATE_WIDTH = 8,        /* of a text cell that comes after the widths were settled, at least */
    CELL_BYTES = 16 << 10, /* of any cell on a terminal */
};

struct cell {
    char *text;  /* owned, safe to print */
    int width;   /* columns on the screen */
    bool right;  /* a number */
    bool absent; /* NULL */
};

struct table {
    FILE *out; /* borrowed */
    enum table_format format;
    int columns;
    char **names; /* owned */
    struct json json; /* TABLE_JSON, TABLE_LINES */
    bool headless, colour, failed;

    /* the row being filled */
    int filled;
    bool alarm;

    /* TABLE_ALIGNED: kept rows, one after the other */
    struct cell *cells; /* owned */
    bool *alarms;       /* owned, one per kept row */
    size_t rows, bytes;
    int *widths; /* owned; set when the kept rows are printed */
    bool streaming;

    uint64_t printed; /* rows */
};

enum table_format table_format(FILE *out, bool json)
{
    return json ? TABLE_JSON : isatty(fileno(out)) ? TABLE_ALIGNED : TABLE_TSV;
}

/* Columns that TEXT takes on the screen. */
static int text_width(const char *text)
{
    const char *end = text + strlen(text);
    int width = 0;

    while (text < end) {
        unsigned long rune = 0;
        size_t length = json_rune((const unsigned char *)text, (size_t)(end - text), &rune);
        int columns = rune < 0x80 ? 1 : wcwidth((wchar_t)rune);
        width += columns < 0 ? 1 : columns;
        text += length ? length : 1;
    }
    return width;
}

/* Cut TEXT, which is wider, to LIMIT columns, the last of them a "…". Returns its new width. */
static int text_cut(char *text, int limit)
{
    int width = 0;
    char *p = text;

    while (*p) {
        char one[5] = {0};
        unsigned long rune;
        size_t length = json_rune((unsigned char *)p, strlen(p), &rune);
        memcpy(one, p, length ? length : 1);
        int columns = text_width(one);
        if (width + columns > limit - 1)
            break;
        width += columns;
        p += length ? length : 1;
    }
    /* put_aligned has left room for the ellipsis. */
    strcpy(p, "…");
    return width + 1;
}

struct table *table_open(FILE *out, enum table_format format, int columns, const char *const *names)
{
    struct table *table = calloc(1, sizeof *table);

    if (!table)
        goto err;
    table->out = out;
    table->format = format;
    table->columns = columns;
    table->colour = format == TABLE_ALIGNED && say_colour(out);
    table->names = calloc((size_t)columns + 1, sizeof *table->names);
    table->widths = calloc((size_t)columns + 1, sizeof *table->widths);
    if (!table->names || !table->widths)
        goto err;
    for (int i = 0; i < columns; i++)
        if (!(table->names[i] = format == TABLE_ALIGNED ? say_escape(names[i], strlen(names[i])) : strdup(names[i])))
            goto err;
    table->json = (struct json){.out = out, .compact = format == TABLE_LINES};
    if (format == TABLE_JSON) {
        json_list(&table->json, NULL);
        json_lines(&table->json);
    }
    if (format == TABLE_ALIGNED) {
        table->cells = calloc((size_t)(columns + 1) * KEPT_ROWS, sizeof *table->cells);
        table->alarms = calloc(KEPT_ROWS, sizeof *table->alarms);
        if (!table->cells || !table->alarms)
            goto err;
    }
    return table;
err:
    say_error("out of memory");
    if (table) {
        table->failed = true;
        table_close(table);
    }
    return NULL;
}

void table_headless(struct table *table)
{
    table->headless = true;
}

void table_alarm(struct table *table)
{
    table->alarm = true;
}

static void print_spaces(FILE *out, int count)
{
    if (count > 0)
        fprintf(out, "%*s", count, "");
}

static void print_cell(struct table *table, int column, const struct cell *cell)
{
    int room = table->widths[column] - cell->width;

    if (column)
        fputs("  ", table->out);
    if (cell->right)
        print_spaces(table->out, room);
    if (cell->absent && table->colour)
        fputs("\033[2m", table->out);
    fputs(cell->text ? cell->text : "?", table->out);
    if (cell->absent && table->colour)
        fputs("\033[22m", table->out);
    if (!cell->right && column + 1 < table->columns)
        print_spaces(table->out, room);
}

static void print_row(struct table *table, struct cell *cells, bool alarm)
{
    if (alarm && table->colour)
        fputs("\033[31m", table->out);
    for (int i = 0; i < table->columns; i++) {
        print_cell(table, i, &cells[i]);
        free(cells[i].text);
        cells[i].text = NULL;
    }
    if (alarm && table->colour)
        fputs("\033[0m", table->out);
    putc('\n', table->out);
}

/* Cut the widest text columns until a row fits the screen, none below
 * CELL_WIDTH. One column alone is not cut. */
static void fit_widths(struct table *table)
{
    struct winsize size;
    int screen = 80, total = 0;

    if (table->columns < 2)
        return;
    if (ioctl(fileno(table->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        screen = size.ws_col;
    for (int i = 0; i < table->columns; i++)
        total += table->widths[i] + (i ? 2 : 0);
    while (total > screen) {
        int widest = 0;
        for (int i = 1; i < table->columns; i++)
            if (table->widths[i] > table->widths[widest])
                widest = i;
        if (table->widths[widest] <= CELL_WIDTH)
            break;
        int less = table->widths[widest] - CELL_WIDTH;
        if (less > total - screen)
            less = total - screen;
        table->widths[widest] -= less;
        total -= less;
    }
}

/* Work out the widths, then print the heading and the kept rows. */
static void print_kept(struct table *table)
{
    table->streaming = true;
    for (int i = 0; i < table->columns; i++) {
        table->widths[i] = table->headless ? 0 : text_width(table->names[i]);
        for (size_t row = 0; row < table->rows; row++)
            if (table->cells[row * (size_t)table->columns + (size_t)i].width > table->widths[i])
                table->widths[i] = table->cells[row * (size_t)table->columns + (size_t)i].width;
    }
    fit_widths(table);
    if (!table->headless) {
        if (table->colour)
            fputs("\033[1m", table->out);
        for (int i = 0; i < table->columns; i++) {
            /* A heading stands where the first cell that is no NULL stands. */
            struct cell head = {table->names[i], text_width(table->names[i]), false, false};
            for (size_t row = 0; row < table->rows; row++) {
                struct cell *cell = &table->cells[row * (size_t)table->columns + (size_t)i];
                if (!cell->absent) {
                    head.right = cell->right;
                    break;
                }
            }
            print_cell(table, i, &head);
        }
        if (table->colour)
            fputs("\033[0m", table->out);
        putc('\n', table->out);
    }
    for (size_t row = 0; row < table->rows; row++) {
        struct cell *cells = &table->cells[row * (size_t)table->columns];
        for (int i = 0; i < table->columns; i++)
            if (table->columns > 1 && cells[i].text && cells[i].width > table->widths[i])
                cells[i].width = text_cut(cells[i].text, table->widths[i]);
        print_row(table, cells, table->alarms[row]);
    }
    table->rows = 0;
}

/* TABLE_ALIGNED: keep a cell. TEXT is owned from here on. */
static void put_aligned(struct table *table, char *text, bool right, bool absent)
{
    struct cell *cell = &table->cells[table->rows * (size_t)table->columns + (size_t)table->filled];
    char *roomy = text ? realloc(text, strlen(text) + 4) : NULL; /* text_cut may add a "…" */

    if (!roomy) {
        table->failed = true;
        free(text);
        text = NULL;
    } else {
        text = roomy;
    }
    *cell = (struct cell){text, text ? text_width(text) : 1, right, absent};
    if (text && table->streaming && table->columns > 1 && !right) {
        int room = table->widths[table->filled] > LATE_WIDTH ? table->widths[table->filled] : LATE_WIDTH;
        if (cell->width > room)
            cell->width = text_cut(text, room);
    }
    table->bytes += text ? strlen(text) : 0;
}

/* TABLE_ALIGNED: a row is whole. Keep it, or print it when the widths are known. */
static void end_aligned(struct table *table)
{
    if (table->streaming) {
        print_row(table, table->cells, table->alarm);
    } else {
        table->alarms[table->rows++] = table->alarm;
        if (table->rows == KEPT_ROWS || table->bytes > KEPT_BYTES)
            print_kept(table);
    }
    table->alarm = false;
}

/* ---- for programs ---------------------------------------------------------- */

/* A cell of RFC 4180: in quotes where it needs them; an empty text always, as nothing is NULL. */
static void put_csv(const struct table *table, const char *text, size_t bytes)
{
    bool plain = bytes && !memchr(text, '"', bytes) && !memchr(text, ',', bytes) && !memchr(text, '\n', bytes) &&
                 !memchr(text, '\r', bytes);

    if (!plain)
        putc('"', table->out);
    if (table->format == TABLE_SAFE_CSV && bytes && memchr("=+-@\t\r", *text, 6))
        putc('\'', table->out);
    if (plain)
        fwrite(text, 1, bytes, table->out);
    for (size_t i = 0; !plain && i < bytes; i++) {
        if (text[i] == '"')
            putc('"', table->out);
        putc(text[i], table->out);
    }
    if (!plain)
        putc('"', table->out);
}

/* The line of names. */
static void head_print(struct table *table)
{
    bool csv = table->format != TABLE_TSV;

    for (int i = 0; i < table->columns && !table->headless; i++) {
        if (i)
            putc(csv ? ',' : '\t', table->out);
        if (csv)
            put_csv(table, table->names[i], strlen(table->names[i]));
        else
            say_escaped(table->out, table->names[i], strlen(table->names[i]));
    }
    if (table->columns && !table->headless)
        fputs(csv ? "\r\n" : "\n", table->out);
}

/* ---- cells ----------------------------------------------------------------- */

enum kind { TEXT, FIGURE, NUMBER, JSON, NONE }; /* FIGURE: a text that is set as numbers are */

static void put_json(struct table *table, enum kind kind, const char *text, size_t bytes)
{
    const char *name = table->names[table->filled];

    if (!table->filled)
        json_object(&table->json, NULL);
    if (kind == NONE)
        json_null(&table->json, name);
    else if (kind == NUMBER || kind == JSON)
        json_raw(&table->json, name, text, bytes);
    else
        json_bytes(&table->json, name, text, bytes);
}

static void put(struct table *table, enum kind kind, const char *text, size_t bytes)
{
    bool cut = bytes > CELL_BYTES, first = !table->printed && !table->filled, last = table->filled + 1 == table->columns;
    char *safe;

    switch (table->format) {
    case TABLE_ALIGNED:
        safe = say_escape(text, cut ? CELL_BYTES : bytes);
        if (safe && cut) {
            char *longer = realloc(safe, strlen(safe) + 4);
            safe = longer ? strcat(longer, "…") : safe;
        }
        put_aligned(table, safe, kind == NUMBER || kind == FIGURE, kind == NONE);
        break;
    case TABLE_JSON:
    case TABLE_LINES:
        put_json(table, kind, text, bytes);
        if (last)
            json_end(&table->json);
        if (last && table->format == TABLE_LINES)
            putc('\n', table->out);
        break;
    case TABLE_TSV:
        if (first)
            head_print(table);
        if (kind != NONE)
            say_escaped(table->out, text, bytes);
        putc(last ? '\n' : '\t', table->out);
        break;
    case TABLE_CSV:
    case TABLE_SAFE_CSV:
        if (first)
            head_print(table);
        if (kind == NUMBER)
            fwrite(text, 1, bytes, table->out);
        else if (kind != NONE)
            put_csv(table, text, bytes);
        fputs(last ? "\r\n" : ",", table->out);
        break;
    }
    table->filled++;
    if (!last)
        return;
    table->filled = 0;
    table->printed++;
    if (table->format == TABLE_ALIGNED)
        end_aligned(table);
}

void table_text(struct table *table, const char *text, size_t bytes)
{
    put(table, TEXT, text, bytes);
}

void table_string(struct table *table, const char *text)
{
    if (text)
        put(table, TEXT, text, strlen(text));
    else
        table_null(table);
}

void table_figure(struct table *table, const char *text)
{
    put(table, FIGURE, text, strlen(text));
}

void table_integer(struct table *table, int64_t value)
{
    char digits[JSON_DIGITS];
    size_t length = json_decimal(digits, value);

    put(table, NUMBER, digits, length);
}

void table_maybe(struct table *table, bool known, int64_t value)
{
    if (known)
        table_integer(table, value);
    else
        table_null(table);
}

void table_real(struct table *table, double value)
{
    char digits[JSON_DIGITS];

    if ((table->format == TABLE_JSON || table->format == TABLE_LINES) && !isfinite(value)) /* JSON has no word for it */
        table_null(table);
    else
        put(table, NUMBER, digits, strlen(json_digits(digits, value)));
}

void table_blob(struct table *table, const void *bytes, size_t count)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *p = bytes;
    size_t shown = table->format == TABLE_ALIGNED && count > CELL_BYTES ? CELL_BYTES : count;
    char *text = malloc(shown * 2 + 1);

    if (!text) {
        table->failed = true;
        table_null(table);
        return;
    }
    for (size_t i = 0; i < shown; i++) {
        text[i * 2] = hex[p[i] >> 4];
        text[i * 2 + 1] = hex[p[i] & 15];
    }
    text[shown * 2] = 0;
    put(table, TEXT, text, shown * 2);
    free(text);
}

void table_null(struct table *table)
{
    put(table, NONE, "NULL", 4);
}

void table_bool(struct table *table, bool value)
{
    table_json(table, value ? "true" : "false");
}

void table_json(struct table *table, const char *json)
{
    put(table, JSON, json, strlen(json));
}

bool table_close(struct table *table)
{
    bool ok;

    if (!table)
        return false;
    if (!table->failed || table->rows) {
        if (table->format == TABLE_ALIGNED && !table->streaming)
            print_kept(table);
        else if (table->format >= TABLE_TSV && table->format <= TABLE_SAFE_CSV && !table->printed)
            head_print(table);
        if (table->format == TABLE_JSON) {
            json_end(&table->json);
            putc('\n', table->out);
        }
    }
    ok = !table->failed && !ferror(table->out);
    if (table->cells)
        for (size_t i = 0; i < (size_t)(table->columns + 1) * KEPT_ROWS; i++)
            free(table->cells[i].text);
    for (int i = 0; table->names && i < table->columns; i++)
        free(table->names[i]);
    free(table->names);
    free(table->widths);
    free(table->cells);
    free(table->alarms);
    free(table);
    return ok;
}

const char *table_duration(char *made, int64_t nanoseconds)
{
    double n = (double)nanoseconds, size = n < 0 ? -n : n;

    if (size < 1e3)
        snprintf(made, TABLE_HUMAN, "%" PRId64 " ns", nanoseconds);
    else if (size < 999.5e3)
        snprintf(made, TABLE_HUMAN, "%.3g us", n / 1e3);
    else if (size < 999.5e6)
        snprintf(made, TABLE_HUMAN, "%.3g ms", n / 1e6);
    else if (size < 99.95e9)
        snprintf(made, TABLE_HUMAN, "%.3g s", n / 1e9);
    else if (size < 3600e9)
        snprintf(made, TABLE_HUMAN, "%" PRId64 " min %02d s", nanoseconds / 60000000000, (int)(size / 1e9) % 60);
    else
        snprintf(made, TABLE_HUMAN, "%" PRId64 " h %02d min", nanoseconds / 3600000000000, (int)(size / 60e9) % 60);
    return made;
}

const char *table_count(char *made, int64_t count)
{
    double n = (double)count, size = n < 0 ? -n : n;

    if (size < 1e5)
        snprintf(made, TABLE_HUMAN, "%" PRId64, count);
    else if (size < 999.5e3)
        snprintf(made, TABLE_HUMAN, "%.3g k", n / 1e3);
    else if (size < 999.5e6)
        snprintf(made, TABLE_HUMAN, "%.3g M", n / 1e6);
    else
        snprintf(made, TABLE_HUMAN, "%.3g G", n / 1e9);
    return made;
}
