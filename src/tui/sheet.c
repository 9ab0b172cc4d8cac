/* tui/sheet.c -- a view's file in schemas/tui/, and its rows as text. See tui/sheet.h. */
#include "tui/sheet.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "vocabulary.h"

enum { TEXT_MOST = 400 /* bytes of a cell */, BARS_MOST = 60, FIELD_BYTES = 200 };

/* ---- values -------------------------------------------------------------- */

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
        text = *text || strcmp(query_name(query, column), "function") ? text : name_shown(text);
        value.text = arena_text(arena, text, prose_cut(text, TEXT_MOST));
    } else if (value.type == QUERY_BLOB) {
        query_whole(query, column, &bytes);
        value.type = QUERY_TEXT;
        value.text = arena_print(arena, "(%zu bytes)", bytes);
    }
    return value;
}

const char *spark_glyph(double share, const char *none)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

    return share > 0 ? bars[(int)(share * 7.999)] : none;
}

void spark_line(char *made, const double *heights, int width)
{
    double most = 0;

    *made = 0;
    for (int i = 0; i < width; i++)
        most = heights[i] > most ? heights[i] : most;
    for (int i = 0; i < width; i++)
        made = stpcpy(made, spark_glyph(most > 0 ? heights[i] / most : 0, "·"));
}

/* "3:10,4:7" -> bars: how many there were in each of WIDTH stretches of the whole. */
static void spark_print(char *made, const char *text, int width)
{
    double counts[BARS_MOST] = {0}, count;
    long long bucket;

    for (const char *p = text; sscanf(p, "%lld:%lf", &bucket, &count) == 2;) {
        if (bucket >= 0 && bucket < width && count > 0)
            counts[bucket] += count;
        p += strcspn(p, ",");
        p += *p == ',';
    }
    spark_line(made, counts, *text ? width : 0);
}

const char *bar_print(char *made, double share, int width)
{
    char *end = made;

    for (int i = 0; i < width; i++) /* what is more than nothing has one */
        end = stpcpy(end, share * width + 0.5 >= i + 1 || (!i && share > 0) ? "█" : " ");
    return made;
}

/* What is shown of TEXT. */
static void text_print(char *made, const char *text, enum cell_format format)
{
    char what[TORCH_PART], *ended = format == AS_ENDED ? prose_ended(text) : NULL;

    if (ended)
        text = ended;
    else if (format == AS_REASON)
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
    free(ended);
}

const char *value_print(char *made, const struct value *value, enum cell_format format, int width)
{
    double number = value->type == QUERY_REAL ? value->real : (double)value->integer;
    int64_t whole =
        value->type == QUERY_REAL ? (int64_t)(fabs(number) < 9e18 ? number : 0) : value->integer;

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

int value_compare(const struct value *a, const struct value *b)
{
    static const int rank[] = {
        [QUERY_NULL] = 0, [QUERY_INTEGER] = 1, [QUERY_REAL] = 1, [QUERY_TEXT] = 2};
    double x = a->type == QUERY_REAL ? a->real : (double)a->integer,
           y = b->type == QUERY_REAL ? b->real : (double)b->integer;

    if (rank[a->type] != rank[b->type] || a->type == QUERY_NULL)
        return rank[a->type] - rank[b->type];
    if (a->type == QUERY_TEXT)
        return strcmp(a->text, b->text);
    if (a->type == QUERY_INTEGER && b->type == QUERY_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    return (x > y) - (x < y);
}

const char *text_safe(struct arena *arena, const char *text, size_t width)
{
    char *made;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    prose_text(out, text, width);
    fclose(out);
    return arena_keep(arena, made);
}

const char *text_fit(struct arena *arena, const char *text, int columns)
{
    int used;
    bool cut = text[text_room(text, columns, &used)];
    size_t bytes = text_room(text, columns - cut, &used);

    return arena_print(arena, "%.*s%s%*s", (int)bytes, text, cut ? "…" : "", columns - used - cut,
                       "");
}

const char *text_counted(struct arena *arena, int64_t count, const char *noun, size_t bytes)
{
    char last = noun[bytes - 1], made[TABLE_HUMAN];
    bool one = count == 1;

    return arena_print(arena, "%s %.*s%s", table_count(made, count),
                       (int)bytes - (!one && last == 'y'), noun,
                       one           ? ""
                       : last == 'y' ? "ies"
                       : last == 's' ? "es"
                                     : "s");
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
    static const struct {
        const char *word;
        int style;
    } words[] = {
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

/* ---- a file -------------------------------------------------------------- */

#define SAME_FUNCTION                                                                   \
    "(SELECT s.code_id FROM functions s JOIN functions o ON o.code_id = {code_id} AND " \
    "s.function_id = o.function_id AND s.kind IS o.kind)"

void sheet_open(struct sheet *sheet, const char *name, const char *codes)
{
    struct sheet_block *block = NULL;
    const char *text = schema_statement(arena_print(&sheet->arena, "tui/%s", name));

    for (char *at = text_with(&sheet->arena, text, "$codes", codes ? codes : SAME_FUNCTION), *end;
         *at; at = end) {
        size_t length = strcspn(at, "\n"), word = strcspn(at, " \n");
        end = at + length + (at[length] == '\n');
        if (!length || !strncmp(at, "-- ", 3))
            continue;
        if (!block) {
            block = list_add(&sheet->blocks);
            block->sql = "";
        }
        if (!strncmp(at, "--", 2)) {
            *list_add(&block->lines) = (struct sheet_line){at + 2, at + word + (at[word] == ' ')};
            at[word] = at[length] = 0;
            continue;
        }
        block->sql = at; /* up to the line that ends with ';', or all that is left */
        if (!(end = strstr(at, ";\n")))
            break;
        *end = 0;
        end += 2;
        block = NULL;
    }
}

void sheet_close(struct sheet *sheet)
{
    for (size_t i = 0; i < sheet->blocks.count; i++)
        list_free(&sheet->blocks.at[i].lines);
    list_free(&sheet->blocks);
    arena_free(&sheet->arena);
}

const char *block_word(const struct sheet_block *block, const char *word)
{
    for (size_t i = 0; block && i < block->lines.count; i++)
        if (!strcmp(block->lines.at[i].word, word))
            return block->lines.at[i].rest;
    return NULL;
}

/* The value of the column NAME, which has so many BYTES, or NULL. */
static const struct value *row_value(const struct row *row, const char *name, size_t bytes)
{
    for (int i = 0; i < row->count; i++)
        if (!strncmp(row->names[i], name, bytes) && !row->names[i][bytes])
            return &row->values[i];
    return NULL;
}

const struct value *row_field(const struct row *row, const char *text)
{
    const char *brace = strchr(text, '{');

    return brace ? row_value(row, brace + 1, strcspn(brace + 1, "}")) : NULL;
}

bool row_integer(const struct row *row, const char *text, int64_t *integer)
{
    const struct value *value = row_field(row, text);

    if (!value || value->type != QUERY_INTEGER)
        return false;
    *integer = value->integer;
    return true;
}

/* ---- fields of a row ----------------------------------------------------- */

/* How fields are printed: as they are; for a doc, with styles marked and values escaped; in SQL,
 * with texts quoted. */
enum way { PLAIN, MARKED, SQL };

/* A row, and where it is printed. */
struct printer {
    FILE *out;
    struct arena *arena; /* for what is printed on the way */
    const struct row *row;
    enum way way;
};

/* {!r}, {!name} */
static void style_put(const struct printer *p, const char *name, size_t bytes)
{
    const struct value *value = row_value(p->row, name, bytes);
    const char *text = value && value->type == QUERY_TEXT ? value->text : NULL;

    fputs(MARK, p->out);
    putc(!value && bytes == 1 ? *name
         : !text              ? 'n'
         : *text && !text[1]  ? *text
                              : word_mark(text),
         p->out);
}

static void sql_put(FILE *out, const struct value *value)
{
    if (value && value->type == QUERY_INTEGER)
        fprintf(out, "%" PRId64, value->integer);
    else if (value && value->type == QUERY_TEXT)
        text_quote(out, value->text, strlen(value->text), '\'');
    else
        fputs("NULL", out);
}

/* The field of BYTES at AT, "name:count>9~noun|other words". False: it is NULL and has no other
 * words. */
static bool field_put(const struct printer *p, const char *at, size_t bytes)
{
    const char *colon = memchr(at, ':', bytes), *bar = memchr(at, '|', bytes),
               *noun = memchr(at, '~', bytes), *look = colon ? colon + 1 : "";
    size_t name = colon ? (size_t)(colon - at) : bar ? (size_t)(bar - at) : bytes;
    size_t word = strcspn(look, "0123456789<>~|}");
    const struct value *value =
        row_value(p->row, *at == '?' ? at + 1 : at, *at == '?' ? bytes - 1 : name);
    enum cell_format format = word ? format_named(look, word) : AS_TEXT;
    bool known = value && value->type != QUERY_NULL;
    /* the number; of texts the most bytes. Columns: set right in, filled up to */
    int width = 0, right = 0, fill = 0;
    char made[CELL_TEXT] = "?";
    const char *text;

    if (p->way == SQL) {
        sql_put(p->out, value);
        return true;
    }
    if (*at == '!' && p->way == MARKED)
        style_put(p, at + 1, bytes - 1);
    if (*at == '!' || *at == '?')
        return *at == '!' || known;
    look += word;
    sscanf(look, "%d", &width);
    sscanf(look + strspn(look, "0123456789"), ">%d", &right);
    sscanf(look + strspn(look, "0123456789>"), "<%d", &fill);
    if (known)
        value_print(made, value, format, width);
    else if (bar)
        snprintf(made, sizeof made, "%.*s", (int)(at + bytes - bar - 1), bar + 1);
    if (known && noun)
        snprintf(made, sizeof made, "%s",
                 text_counted(p->arena, value->integer, noun + 1, strcspn(noun + 1, "|}")));
    text = arena_print(p->arena, "%*s", right, made);
    if (p->way == MARKED)
        text = text_safe(p->arena, text,
                         width && !fill && format < AS_SPARK ? (size_t)width : FIELD_BYTES);
    fputs(fill && p->way == MARKED ? text_fit(p->arena, text, fill) : text, p->out);
    return known || bar;
}

/* Of the bracket at TEXT. */
static const char *bracket_end(const char *text, const char *end)
{
    for (int depth = 0; text < end; text++) {
        depth += (*text == '[') - (*text == ']');
        if (!depth)
            return text;
    }
    return NULL;
}

/* TEXT up to END with its fields; *ALL becomes false where one of them is NULL. */
static const char *fields_print(struct arena *arena, const struct row *row, enum way way,
                                const char *text, const char *end, bool *all)
{
    char *made;
    size_t bytes;
    struct printer printer = {open_memstream(&made, &bytes), arena, row, way};

    for (; text < end; text++) {
        bool bracket = *text == '[' && way != SQL, whole = true;
        const char *close = *text == '{' ? memchr(text, '}', (size_t)(end - text))
                            : bracket    ? bracket_end(text, end)
                                         : NULL;
        if (!close) {
            putc(*text, printer.out);
            continue;
        }
        if (bracket) {
            const char *inner = fields_print(arena, row, way, text + 1, close, &whole);
            fputs(whole ? inner : "", printer.out);
        } else {
            *all = field_put(&printer, text + 1, (size_t)(close - text - 1)) && *all;
        }
        text = close;
    }
    fclose(printer.out);
    return arena_keep(arena, made);
}

const char *row_print(struct arena *arena, const struct row *row, const char *text, bool marked)
{
    const char *end = strstr(text, "=> "), *made;
    bool all = true;

    for (end = end ? end : text + strlen(text); end > text && end[-1] == ' ' && *end;)
        end--; /* spaces before "=>" */
    made = fields_print(arena, row, marked ? MARKED : PLAIN, text, end, &all);
    return *made || *text != '[' ? made : NULL;
}

struct target id_target(const char *name, int64_t id)
{
    static const struct {
        const char *name;
        enum view_kind kind;
        int sign;
    } ids[] = {
        {"compile_id", VIEW_COMPILE, 1},      {"lookup_id", VIEW_CALL, -1},
        {"frame_id", VIEW_CALL, 1},           {"graph_break_id", VIEW_BREAK, 1},
        {"code_id", VIEW_FUNCTION, 1},        {"origin_code_id", VIEW_FUNCTION, 1},
        {"resume_code_id", VIEW_FUNCTION, 1}, {"cache_entry_id", VIEW_ENTRY, 1},
        {"process_id", VIEW_PROCESS, 1},
    };

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (id > 0 && !strcmp(ids[i].name, name))
            return (struct target){.kind = ids[i].kind, .id = ids[i].sign * id};
    return (struct target){0};
}

struct target row_target(struct arena *arena, const struct row *row, const char *text)
{
    const char *lead = strstr(text, "=> "), *where, *title, *at;
    struct target target = {0};
    size_t name;
    bool all = true;

    if (!lead)
        return target;
    lead += 3;
    name = strcspn(lead, " ");
    title = strstr(lead, " | ");
    where = strstr(lead, " WHERE ");
    at = strstr(lead, " AT {");
    target.kind = view_named(lead, name);
    if (at)
        row_integer(row, at, &target.at_ns);
    if (lead[name] == ' ' && lead[name + 1] == '{' && !row_integer(row, lead + name, &target.id))
        target.kind = VIEW_NONE;
    if (target.kind && where)
        target.where =
            fields_print(arena, row, SQL, where + 7, title ? title : lead + strlen(lead), &all);
    if (target.kind && title)
        target.title = row_print(arena, row, title + 3, false);
    return target;
}
