/* tui/value.c -- values of rows: as text, and in order. See tui/sheet.h.
 *
 * Runs in: the viewer. */
#include "tui/sheet.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "lib/say.h"
#include "lib/table.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "tui/screen.h"
#include "vocabulary.h"

enum { TEXT_MOST = 400 /* bytes of a cell */, BARS_MOST = 60 };

enum cell_format format_named(const char *word, size_t bytes)
{
#define X(NAME, word) word,
    static const char *const words[FORMATS] = {FORMAT_ROWS(X)};
#undef X
    int i = 0;

    while (i < FORMATS && (strlen(words[i]) != bytes || memcmp(words[i], word, bytes) != 0))
        i++;
    return (enum cell_format)i;
}

struct value value_read(struct arena *arena, struct query *query, int column)
{
    struct value value = {.type = (unsigned char)query_type(query, column)};
    size_t bytes;

    if (value.type == QUERY_INTEGER) {
        value.integer = query_integer(query, column);
    } else if (value.type == QUERY_REAL) {
        value.real = query_real(query, column);
    } else if (value.type == QUERY_TEXT) {
        const char *text = query_text(query, column, NULL);
        value.text = arena_text(arena, text, prose_cut(text, TEXT_MOST));
    } else if (value.type == QUERY_BLOB) {
        query_whole(query, column, &bytes);
        value.type = QUERY_TEXT;
        value.text = arena_print(arena, "(%zu bytes)", bytes);
    }
    return value;
}

/* "3:10,4:7" -> bars: how many there were in each of WIDTH stretches of the whole. */
static void spark_print(char *made, const char *text, int width)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    long long counts[BARS_MOST] = {0}, most = 0;

    for (const char *p = text; *p; p += *p == ',') {
        char *end;
        long long bucket = strtoll(p, &end, 10), count = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
        if (end == p)
            break;
        if (bucket >= 0 && bucket < width && count > 0)
            counts[bucket] += count < LLONG_MAX / 4 ? count : LLONG_MAX / 4;
        p = end + strcspn(end, ",");
    }
    for (int i = 0; i < width; i++)
        most = counts[i] > most ? counts[i] : most;
    for (int i = 0; i < width && most; i++)
        made = stpcpy(made, !counts[i] ? "·" : bars[(int)((double)counts[i] / (double)most * 7.999)]);
}

/* A share of 1 as a bar. */
static void bar_print(char *made, double share, int width)
{
    int full = (int)(share * width + 0.5);

    if (full == 0 && share > 0)
        full = 1;
    for (int i = 0; i < width; i++)
        made = stpcpy(made, i < full ? "█" : " ");
}

/* What is shown of TEXT. */
static void text_print(char *made, const char *text, enum cell_format format)
{
    char what[TORCH_PART];

    if (format == AS_REASON)
        text = strcpy(what, torch_reason_split(text).what);
    else if (format == AS_PATH)
        text = prose_path(text);
    else if (format == AS_PHASE)
        text = torch_phase_words(text);
    for (int i = 0; format == AS_WORDS && i < OUTCOMES; i++)
        if (!strcmp(outcome_facts[i].word, text)) {
            text = outcome_facts[i].words;
            break;
        }
    if (text)
        snprintf(made, CELL_TEXT, "%.*s", (int)prose_cut(text, CELL_TEXT - 8), text);
}

const char *value_print(char *made, const struct value *value, enum cell_format format, int width)
{
    double number = value->type == QUERY_REAL ? value->real : (double)value->integer;
    int64_t whole = value->type == QUERY_REAL ? (int64_t)(fabs(number) < 9e18 ? number : 0) : value->integer;

    width = width < BARS_MOST ? width : BARS_MOST;
    made[0] = 0;
    if (value->type == QUERY_NULL)
        return strcpy(made, format <= AS_SPARK ? "" : "-");
    if (value->type == QUERY_TEXT && format == AS_SPARK) {
        spark_print(made, value->text, width);
    } else if (value->type == QUERY_TEXT) {
        text_print(made, value->text, format);
    } else if (format == AS_COUNT || format == AS_ALARM_COUNT) {
        table_count(made, whole);
    } else if (format == AS_DURATION) {
        table_duration(made, whole);
    } else if (format == AS_TIME) {
        snprintf(made, CELL_TEXT, "%.6f", number / 1e9);
    } else if (format == AS_SECONDS) {
        snprintf(made, CELL_TEXT, "%.3f s", number / 1e9);
    } else if (format == AS_BAR) {
        bar_print(made, number, width);
    } else if (value->type == QUERY_REAL) {
        snprintf(made, CELL_TEXT, "%.6g", number);
    } else {
        snprintf(made, CELL_TEXT, "%" PRId64, whole);
    }
    return made;
}

/* NULL, numbers, texts. */
static int rank(const struct value *value)
{
    return value->type == QUERY_NULL ? 0 : value->type == QUERY_TEXT ? 2 : 1;
}

int value_compare(const struct value *a, const struct value *b)
{
    double x = a->type == QUERY_REAL ? a->real : (double)a->integer, y = b->type == QUERY_REAL ? b->real : (double)b->integer;

    if (rank(a) != rank(b) || a->type == QUERY_NULL)
        return rank(a) - rank(b);
    if (a->type == QUERY_TEXT)
        return strcmp(a->text, b->text);
    if (a->type == QUERY_INTEGER && b->type == QUERY_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    return (x > y) - (x < y);
}

FILE *print_begin(struct print *print)
{
    return print->out = open_memstream(&print->text, &print->bytes);
}

const char *print_end(struct print *print, struct arena *arena)
{
    const char *kept;

    fclose(print->out);
    kept = arena_text(arena, print->text, print->bytes);
    free(print->text);
    return kept;
}

const char *text_safe(struct arena *arena, const char *text, size_t width)
{
    struct print print;

    prose_text(print_begin(&print), text, width);
    return print_end(&print, arena);
}

const char *text_fit(struct arena *arena, const char *text, int columns)
{
    int used;
    bool cut = text[text_room(text, columns, &used)];
    size_t bytes = text_room(text, columns - cut, &used);

    return arena_print(arena, "%.*s%s%*s", (int)bytes, text, cut ? "…" : "", columns - used - cut, "");
}

void text_quote(FILE *out, const char *text, size_t bytes, char quote)
{
    putc(quote, out);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == quote)
            putc(quote, out);
        putc(text[i], out);
    }
    putc(quote, out);
}

int word_style(const char *word)
{
    static const struct { const char *word; int style; } words[] = {
#define X(number, NAME, word, asked, missed, python, style, ...) {word, STYLE_##style},
        OUTCOME_ROWS(X)
#undef X
#define X(number, NAME, word, style) {word, STYLE_##style},
        CHECK_ROWS(X)
#undef X
        {"skipped", STYLE_DIM}, /* compile.outcome */
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].word, word))
            return words[i].style;
    return STYLE_NORMAL;
}

char word_mark(const char *word)
{
    return STYLE_LETTERS[word_style(word)];
}
