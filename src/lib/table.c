/* lib/table.c -- rows printed for people and for programs. See lib/table.h.
 *
 * To align a column we must know its widest cell, but a result may be endless. So the first
 * KEPT_ROWS rows are kept, and the widths are computed from them. Later rows are printed at once,
 * and a number that is wider than its column is printed whole. */
#include "lib/table.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "lib/json.h"
#include "lib/list.h"

enum {
    KEPT_ROWS = 500,
    KEPT_BYTES = 4 << 20,  /* rows are kept until there are this many bytes or KEPT_ROWS rows */
    CELL_WIDTH = 12,       /* least width of a text cell on a terminal */
    SCREEN_WIDTH = 80,     /* width of a terminal that does not report its width */
    LATE_WIDTH = 8,        /* least width of a text cell after the widths are fixed */
    CELL_BYTES = 16 << 10, /* the most bytes of a cell in an aligned table */
};

/* FIGURE: a text that is aligned right, like a number */
enum kind { TEXT, FIGURE, NUMBER, JSON, NONE };

struct column {
    char *name; /* owned */
    /* width of the column's widest cell among the kept rows, in screen columns */
    int width;
    /* any: the column had a cell that was not NULL. right: the column is aligned right, because its
     * first such cell was */
    bool right, any;
};

/* A cell of a table with aligned columns. */
struct cell {
    char *text; /* owned, safe to print */
    int width;  /* width of the text in screen columns */
    enum kind kind;
    bool alarm; /* set on a row's first cell: print the row in red */
};

struct table {
    FILE *out; /* borrowed */
    enum table_format format;
    int count;
    struct column *columns; /* owned */
    int filled;             /* number of cells that the current row has so far */
    uint64_t rows;
    bool headless, alarm;
    bool terminal;    /* `out` is a terminal, so control characters are escaped in CSV, too */
    struct json json; /* writes the rows of TABLE_JSON, TABLE_LINES and TABLE_ARRAYS */

    /* The members below are used only by TABLE_ALIGNED. */
    LIST(struct cell) cells; /* cells of the kept rows and of the current row */
    size_t bytes;            /* bytes of the texts in `cells` */
    /* streaming: the kept rows have been printed, so each row is printed at once */
    bool colour, streaming;
};

bool table_wide;

enum table_format table_format(FILE *out, bool json)
{
    return json ? TABLE_JSON : isatty(fileno(out)) ? TABLE_ALIGNED : TABLE_TSV;
}

/* Print the column names of a TABLE_ARRAYS as its first line, even if the result has no rows. */
static void print_column_names_as_array(struct table *table)
{
    json_list(&table->json, NULL);
    for (int i = 0; i < table->count; i++)
        json_string(&table->json, NULL, table->columns[i].name);
    json_end(&table->json);
    putc('\n', table->out);
}

struct table *table_open(FILE *out, enum table_format format, int columns, const char *const *names)
{
    struct table *table = calloc(1, sizeof *table);

    *table = (struct table){.out = out, .format = format, .count = columns};
    table->terminal = isatty(fileno(out));
    table->json = (struct json){.out = out, .compact = format >= TABLE_LINES};
    table->colour = format == TABLE_ALIGNED && say_may_use_colour(out);
    table->columns = calloc((size_t)columns + 1, sizeof *table->columns);
    for (int i = 0; i < columns; i++)
        table->columns[i].name = strdup(names[i]);
    if (format == TABLE_JSON) {
        json_list(&table->json, NULL);
        json_begin_lines(&table->json);
    }
    if (format == TABLE_ARRAYS)
        print_column_names_as_array(table);
    return table;
}

void table_omit_headings(struct table *table)
{
    table->headless = true;
}

void table_mark_row_red(struct table *table)
{
    table->alarm = true;
}

/* ---- print aligned tables for people ----------------------------------------- */

size_t text_bytes_that_fit(const char *text, int most, int *width)
{
    size_t bytes = strlen(text);
    size_t at = 0;

    *width = 0;
    while (at < bytes) {
        unsigned long rune = 0;
        size_t length = json_decode_character((const unsigned char *)text + at, bytes - at, &rune);
        int columns = rune < 0x80 ? 1 : wcwidth((wchar_t)rune);
        if (text[at] == '\x01' && text[at + 1]) {
            length = 2;
            columns = 0;
        }
        if (columns < 0)
            columns = 1;
        if (*width + columns > most)
            break;
        *width += columns;
        at += length ? length : 1;
    }
    return at;
}

static void shorten_cell(struct cell *cell, int most)
{
    char *whole = cell->text;

    if (cell->width <= most)
        return;
    cell->text = say_print("%.*s…", (int)text_bytes_that_fit(whole, most - 1, &cell->width), whole);
    cell->width++;
    free(whole);
}

/* Shorten a cell to MOST screen columns from its beginning, because a path ends with the file's
 * name and the line. */
static void shorten_cell_at_front(struct cell *cell, int most)
{
    char *whole = cell->text;
    int over = cell->width - most + 1;
    int gone;
    size_t bytes = text_bytes_that_fit(whole, over, &gone);

    if (cell->width <= most)
        return;
    if (gone < over) /* the cut would split a character of two columns: cut it off completely */
        bytes = text_bytes_that_fit(whole, over + 1, &gone);
    cell->text = say_print("…%s", whole + bytes);
    cell->width += 1 - gone;
    free(whole);
}

/* Shorten CELL of COLUMN to MOST screen columns. */
static void shorten_cell_of_column(const struct column *column, struct cell *cell, int most)
{
    if (!strcmp(column->name, "where"))
        shorten_cell_at_front(cell, most);
    else
        shorten_cell(cell, most);
}

/* May long texts be cut? No, if the table has only one column, or with --wide. */
static bool may_texts_be_cut(const struct table *table)
{
    return table->count > 1 && !table_wide;
}

static struct cell make_cell(enum kind kind, const char *text, size_t bytes)
{
    struct cell cell = {.kind = kind,
                        .text = say_escape(text, bytes < CELL_BYTES ? bytes : CELL_BYTES)};

    text_bytes_that_fit(cell.text, INT_MAX, &cell.width);
    if (bytes > CELL_BYTES)
        shorten_cell(&cell, cell.width - 1);
    return cell;
}

/* Print one row in STYLE, a terminal's colour code such as "31" for red; NULL: without a colour. */
static void print_aligned_row(struct table *table, struct cell *cells, const char *style)
{
    FILE *out = table->out;

    if (style && table->colour)
        fprintf(out, "\033[%sm", style);
    for (int i = 0; i < table->count; i++) {
        const struct cell *cell = &cells[i];
        const struct column *column = &table->columns[i];
        int room = column->width > cell->width ? column->width - cell->width : 0;
        bool right = cell->kind == NUMBER || cell->kind == FIGURE;
        bool dim = cell->kind == NONE && table->colour;
        fprintf(out, "%s%*s%s%s%s", i ? "  " : "", right ? room : 0, "", dim ? "\033[2m" : "",
                cell->text, dim ? "\033[22m" : "");
        if (!right && i + 1 < table->count)
            fprintf(out, "%*s", room, "");
        free(cell->text);
    }
    fputs(style && table->colour ? "\033[0m\n" : "\n", out);
}

/* Return the index of the widest column that may be narrowed, or -1 if there is none. Columns of
 * numbers may not, because a number keeps all its digits. */
static int find_widest_text_column(const struct table *table)
{
    int widest = -1;
    int width = CELL_WIDTH;

    for (int i = 0; i < table->count; i++) {
        const struct column *column = &table->columns[i];
        if (!column->right && column->width > width) {
            widest = i;
            width = column->width;
        }
    }
    return widest;
}

/* Return how many columns the screen has. */
static int screen_width(FILE *out)
{
    struct winsize size;
    bool known = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;

    return known ? size.ws_col : SCREEN_WIDTH;
}

/* Narrow the widest text columns until a row fits the screen. A column is never narrower than
 * CELL_WIDTH. */
static void fit_widths_to_screen(struct table *table)
{
    int over = -screen_width(table->out);
    int widest = find_widest_text_column(table);

    for (int i = 0; i < table->count; i++)
        over += table->columns[i].width + (i ? 2 : 0);
    while (over > 0 && widest >= 0) {
        table->columns[widest].width--;
        over--;
        widest = find_widest_text_column(table);
    }
}

/* Print HEADS, the line of column names, and free it. */
static void print_headings(struct table *table, struct cell *heads)
{
    for (int i = 0; i < table->count && may_texts_be_cut(table); i++)
        shorten_cell(&heads[i], table->columns[i].width);
    print_aligned_row(table, heads, "1");
}

/* Fix the widths, then print the heading and the kept rows. */
static void print_kept_rows(struct table *table)
{
    struct cell *heads = calloc((size_t)table->count + 1, sizeof *heads);

    table->streaming = true;
    for (int i = 0; i < table->count && !table->headless; i++) {
        struct column *column = &table->columns[i];
        heads[i] = make_cell(column->right ? FIGURE : TEXT, column->name, strlen(column->name));
        if (heads[i].width > column->width)
            column->width = heads[i].width;
    }
    if (may_texts_be_cut(table))
        fit_widths_to_screen(table);
    if (!table->headless)
        print_headings(table, heads);
    for (size_t i = 0; i < table->cells.count && may_texts_be_cut(table); i++) {
        const struct column *column = &table->columns[i % (size_t)table->count];
        shorten_cell_of_column(column, &table->cells.at[i], column->width);
    }
    for (size_t row = 0; row < table->cells.count; row += (size_t)table->count)
        print_aligned_row(table, &table->cells.at[row], table->cells.at[row].alarm ? "31" : NULL);
    table->cells.count = 0;
    free(heads);
}

/* Keep a cell of an aligned table. If it ends its row and the widths are known, print the row. */
static void keep_aligned_cell(struct table *table, enum kind kind, const char *text, size_t bytes)
{
    struct column *column = &table->columns[table->filled];
    struct cell *cell = list_add(&table->cells);
    bool is_number = kind == NUMBER || kind == FIGURE;

    *cell = make_cell(kind, text, bytes);
    cell->alarm = table->alarm;
    table->bytes += strlen(cell->text);
    if (table->streaming) {
        if (may_texts_be_cut(table) && !is_number)
            shorten_cell_of_column(column, cell,
                                   column->width > LATE_WIDTH ? column->width : LATE_WIDTH);
    } else {
        if (cell->width > column->width)
            column->width = cell->width;
        if (!column->any && kind != NONE) {
            column->any = true;
            column->right = is_number;
        }
    }
    if (table->filled + 1 < table->count)
        return;
    table->alarm = false;
    if (table->streaming) {
        print_aligned_row(table, table->cells.at, table->cells.at->alarm ? "31" : NULL);
        table->cells.count = 0;
    } else if (table->cells.count == (size_t)table->count * KEPT_ROWS ||
               table->bytes > KEPT_BYTES) {
        print_kept_rows(table);
    }
}

/* ---- print tables for programs: TSV and CSV ------------------------------------ */

/* Write a cell in the form of RFC 4180, in quotes if necessary. An empty text is always in quotes,
 * because an empty cell without quotes is NULL. */
static void write_csv_cell(const struct table *table, const char *text, size_t bytes)
{
    bool quoted = !bytes || memchr(text, '"', bytes) || memchr(text, ',', bytes) ||
                  memchr(text, '\n', bytes) || memchr(text, '\r', bytes);

    if (quoted)
        putc_unlocked('"', table->out);
    if (table->format == TABLE_SAFE_CSV && bytes && memchr("=+-@\t\r", *text, 6))
        putc_unlocked('\'', table->out);
    /* print the text in pieces that end with a quote, and write this quote twice */
    for (size_t run; bytes; text += run, bytes -= run) {
        const char *quote = memchr(text, '"', bytes);
        run = quote ? (size_t)(quote - text) + 1 : bytes;
        fwrite_unlocked(text, 1, run, table->out);
        if (quote)
            putc_unlocked('"', table->out);
    }
    if (quoted)
        putc_unlocked('"', table->out);
}

/* Like write_csv_cell, but escape control characters if the output is a terminal. In files and
 * pipes, which programs read, a cell has the text byte for byte. */
static void write_escaped_csv_cell(const struct table *table, const char *text, size_t bytes)
{
    char *safe = say_escape(text, bytes);

    write_csv_cell(table, safe, strlen(safe));
    free(safe);
}

/* Write one cell in TABLE_TSV or a CSV format, and the separator after it. */
static void write_plain_cell(struct table *table, enum kind kind, const char *text, size_t bytes,
                             bool last)
{
    bool tsv = table->format == TABLE_TSV;

    if (tsv && kind != NONE)
        say_escaped(table->out, text, bytes);
    else if (kind == NUMBER)
        fwrite(text, 1, bytes, table->out);
    else if (kind != NONE && table->terminal)
        write_escaped_csv_cell(table, text, bytes);
    else if (kind != NONE)
        write_csv_cell(table, text, bytes);
    fputs(!last ? tsv ? "\t" : "," : tsv ? "\n" : "\r\n", table->out);
}

static void print_plain_headings(struct table *table)
{
    for (int i = 0; i < table->count && !table->headless; i++)
        write_plain_cell(table, TEXT, table->columns[i].name, strlen(table->columns[i].name),
                         i + 1 == table->count);
}

static void write_json_cell(struct table *table, enum kind kind, const char *text, size_t bytes,
                            bool last)
{
    bool arrays = table->format == TABLE_ARRAYS;
    const char *name = arrays ? NULL : table->columns[table->filled].name;

    if (!table->filled && arrays)
        json_list(&table->json, NULL);
    else if (!table->filled)
        json_object(&table->json, NULL);
    if (kind == NONE)
        json_null(&table->json, name);
    else if (kind == NUMBER || kind == JSON)
        json_raw(&table->json, name, text, bytes);
    else
        json_bytes(&table->json, name, text, bytes);
    if (last)
        json_end(&table->json);
    if (last && table->format >= TABLE_LINES)
        putc('\n', table->out);
}

/* ---- write a cell, in any format ------------------------------------------------ */

static void write_cell(struct table *table, enum kind kind, const char *text, size_t bytes)
{
    bool last = table->filled + 1 == table->count;

    if (table->format == TABLE_ALIGNED) {
        keep_aligned_cell(table, kind, text, bytes);
    } else if (table->format >= TABLE_JSON) {
        write_json_cell(table, kind, text, bytes, last);
    } else {
        if (!table->rows && !table->filled)
            print_plain_headings(table);
        write_plain_cell(table, kind, text, bytes, last);
    }
    table->filled = last ? 0 : table->filled + 1;
    table->rows += last;
}

void table_put_text(struct table *table, const char *text, size_t bytes)
{
    write_cell(table, TEXT, text, bytes);
}

void table_put_string(struct table *table, const char *text)
{
    if (text)
        write_cell(table, TEXT, text, strlen(text));
    else
        table_put_null(table);
}

void table_put_figure(struct table *table, const char *text)
{
    write_cell(table, FIGURE, text, strlen(text));
}

void table_put_integer(struct table *table, int64_t value)
{
    char digits[JSON_DIGITS];
    size_t length = json_format_decimal(digits, value);

    write_cell(table, NUMBER, digits, length);
}

void table_put_real(struct table *table, double value)
{
    char digits[JSON_DIGITS];
    bool json = table->format >= TABLE_JSON;

    /* JSON has no infinity. TABLE_ARRAYS writes a number that is too large for a double, which
     * readers take for infinity */
    if (!isfinite(value) && table->format == TABLE_ARRAYS)
        table_put_json(table, value > 0 ? "9e999" : "-9e999");
    else if (!isfinite(value) && json)
        table_put_null(table);
    else
        write_cell(table, NUMBER, digits, strlen(json_format_digits(digits, value)));
}

void table_put_blob(struct table *table, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    bool arrays = table->format == TABLE_ARRAYS;
    char *text = malloc(count * 2 + sizeof "{'hex':''}");
    char *end = text + sprintf(text, arrays ? "{\"hex\":\"" : "");

    for (size_t i = 0; i < count; i++)
        end += sprintf(end, "%02x", p[i]);
    end += sprintf(end, arrays ? "\"}" : "");
    write_cell(table, arrays ? JSON : TEXT, text, (size_t)(end - text));
    free(text);
}

void table_put_null(struct table *table)
{
    write_cell(table, NONE, "NULL", 4);
}

void table_put_json(struct table *table, const char *json)
{
    write_cell(table, JSON, json, strlen(json));
}

bool table_close(struct table *table)
{
    bool ok;

    if (!table)
        return false;
    if (table->format == TABLE_ALIGNED && !table->streaming) {
        print_kept_rows(table);
    } else if (table->format == TABLE_JSON) {
        json_end(&table->json);
        putc('\n', table->out);
    } else if (table->format < TABLE_LINES && !table->rows) {
        print_plain_headings(table);
    }
    ok = !ferror(table->out);
    for (int i = 0; i < table->count; i++)
        free(table->columns[i].name);
    list_free(&table->cells);
    free(table->columns);
    free(table);
    return ok;
}

/* ---- print numbers with units for people ------------------------------------------ */

/* Print N with three digits and the unit that fits best. N counts thousandths of the first unit of
 * UNITS, and each unit is 1000 times the unit before it. Final zeros are left out if the number is
 * exact: "4.2 ms" is exact, "4.20 ms" was rounded. */
static const char *format_with_unit(char *made, int64_t n, const char *const *units)
{
    int64_t one = 1000;
    double size = fabs((double)n);
    int digits;

    for (; size >= 999.5 * (double)one && units[1]; units++)
        one *= 1000;
    digits = size < 9.995 * (double)one ? 2 : size < 99.95 * (double)one ? 1 : 0;
    while (digits && n % (digits == 2 ? one / 10 : one) == 0)
        digits--;
    snprintf(made, TABLE_HUMAN, "%.*f %s", digits, (double)n / (double)one, *units);
    return made;
}

const char *table_duration(char *made, int64_t nanoseconds)
{
    double size = fabs((double)nanoseconds);

    if (size < 99.95e9 && size >= 1e3)
        return format_with_unit(made, nanoseconds, (const char *[]){"us", "ms", "s", NULL});
    if (size < 1e3)
        snprintf(made, TABLE_HUMAN, "%" PRId64 " ns", nanoseconds);
    else if (size < 3600e9)
        snprintf(made, TABLE_HUMAN, "%" PRId64 " min %02d s", nanoseconds / 60000000000,
                 (int)(size / 1e9) % 60);
    else
        snprintf(made, TABLE_HUMAN, "%" PRId64 " h %02d min", nanoseconds / 3600000000000,
                 (int)(size / 60e9) % 60);
    return made;
}

const char *table_count(char *made, int64_t count)
{
    if (count > -100000 && count < 100000) {
        snprintf(made, TABLE_HUMAN, "%" PRId64, count);
        return made;
    }
    return format_with_unit(made, count, (const char *[]){"k", "M", "G", NULL});
}
