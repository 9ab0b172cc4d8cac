/* tui/sheet.c -- a view's file in schemas/tui/. See tui/sheet.h.
 *
 * Runs in: the viewer. */
#include "tui/sheet.h"

#include <inttypes.h>

#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"

enum { FIELD_BYTES = 200 };

#define SAME_FUNCTION \
    "(SELECT s.code_id FROM functions s JOIN functions o ON o.code_id = {code_id} AND s.function_id = o.function_id AND s.kind IS o.kind)"

/* TEXT with CODES for every "$codes". */
static char *codes_put(const char *text, const char *codes)
{
    char *made;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    for (const char *at; (at = strstr(text, "$codes")); text = at + 6)
        fprintf(out, "%.*s%s", (int)(at - text), text, codes);
    fputs(text, out);
    fclose(out);
    return made;
}

void sheet_open(struct sheet *sheet, const char *name, const char *codes)
{
    char path[64];
    struct sheet_block *block = NULL;

    snprintf(path, sizeof path, "tui/%s", name);
    *sheet = (struct sheet){.text = codes_put(schema_statement(path), codes ? codes : SAME_FUNCTION)};
    for (char *at = sheet->text, *end; *at; at = end) {
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
    free(sheet->text);
}

const char *block_word(const struct sheet_block *block, const char *word)
{
    for (size_t i = 0; i < block->lines.count; i++)
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

/* {!r}, {!name} */
static void style_put(FILE *out, const struct row *row, const char *name, size_t bytes)
{
    const struct value *value = row_value(row, name, bytes);
    const char *text = value && value->type == QUERY_TEXT ? value->text : NULL;

    fputs(MARK, out);
    putc(!value && bytes == 1 ? *name : !text ? 'n' : *text && !text[1] ? *text : word_mark(text), out);
}

/* TEXT escaped, cut or filled to COLUMNS. */
static void fit_put(FILE *out, const char *text, int columns)
{
    char *safe;
    size_t bytes;
    FILE *inner = open_memstream(&safe, &bytes);

    prose_text(inner, text, FIELD_BYTES);
    fclose(inner);
    text_fit(out, safe, columns);
    free(safe);
}

/* How a field is to be shown: "count>9", "<8", "40". */
struct look {
    enum cell_format format;
    long width;       /* the number; of texts the most bytes */
    int right, fill;  /* columns: set right in, filled up to; 0: not */
};

static struct look look_read(const char *spec)
{
    struct look look = {AS_TEXT, 0, 0, 0};
    size_t word = strspn(spec, "abcdefghijklmnopqrstuvwxyz");
    char *at = (char *)(uintptr_t)spec + word;

    if (word)
        look.format = format_named(spec, word);
    look.width = strtol(at, &at, 10);
    if (*at == '>')
        look.right = (int)strtol(at + 1, &at, 10);
    if (*at == '<')
        look.fill = (int)strtol(at + 1, &at, 10);
    return look;
}

/* The field of BYTES at AT, without its braces. False: it is NULL and has no other words. */
static bool field_put(FILE *out, const struct row *row, const char *at, size_t bytes, bool marked)
{
    const char *colon = memchr(at, ':', bytes), *bar = memchr(at, '|', bytes);
    size_t name = colon ? (size_t)(colon - at) : bar ? (size_t)(bar - at) : bytes;
    const struct value *value = row_value(row, *at == '?' ? at + 1 : at, *at == '?' ? bytes - 1 : name);
    bool known = value && value->type != QUERY_NULL;
    struct look look = look_read(colon ? colon + 1 : "");
    char made[CELL_TEXT] = "?", right[CELL_TEXT];

    if (*at == '!' && marked)
        style_put(out, row, at + 1, bytes - 1);
    if (*at == '!' || *at == '?')
        return *at == '!' || known;
    if (known)
        value_print(made, value, look.format, (int)look.width);
    else if (bar)
        snprintf(made, sizeof made, "%.*s", (int)(at + bytes - bar - 1), bar + 1);
    snprintf(right, sizeof right, "%*s", look.right, made);
    if (!marked)
        fputs(right, out);
    else if (look.fill)
        fit_put(out, right, look.fill);
    else
        prose_text(out, right, look.width && look.format < AS_SPARK ? (size_t)look.width : FIELD_BYTES);
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

static char *part_print(const struct row *row, const char *text, const char *end, bool marked, bool *all);

/* TEXT up to END; false: a field of it was NULL. */
static bool fields_put(FILE *out, const struct row *row, const char *text, const char *end, bool marked)
{
    bool all = true, whole;

    for (; text < end; text++) {
        const char *close = *text == '{'   ? memchr(text, '}', (size_t)(end - text))
                            : *text == '[' ? bracket_end(text, end)
                                           : NULL;
        if (!close) {
            putc(*text, out);
            continue;
        }
        if (*text == '{') {
            all = field_put(out, row, text + 1, (size_t)(close - text - 1), marked) && all;
        } else {
            char *part = part_print(row, text + 1, close, marked, &whole);
            fputs(whole ? part : "", out);
            free(part);
        }
        text = close;
    }
    return all;
}

/* The same as a text that the caller frees. */
static char *part_print(const struct row *row, const char *text, const char *end, bool marked, bool *all)
{
    char *made;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    *all = fields_put(out, row, text, end, marked);
    fclose(out);
    return made;
}

/* Where TEXT's own words end, and "=>" begins. */
static const char *words_end(const char *text)
{
    const char *end = strstr(text, "=> ");

    if (!end)
        return text + strlen(text);
    while (end > text && end[-1] == ' ')
        end--;
    return end;
}

char *row_print(const struct row *row, const char *text, bool marked)
{
    bool all;
    char *made = part_print(row, text, words_end(text), marked, &all);

    if (*made || *text != '[')
        return made;
    free(made);
    return NULL;
}

/* A condition: texts in it are quoted. */
static char *condition_print(const struct row *row, const char *text, const char *end)
{
    char *made;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    for (; text < end; text++) {
        const char *close = *text == '{' ? memchr(text, '}', (size_t)(end - text)) : NULL;
        const struct value *value = close ? row_value(row, text + 1, (size_t)(close - text - 1)) : NULL;
        if (!close)
            putc(*text, out);
        else if (value && value->type == QUERY_INTEGER)
            fprintf(out, "%" PRId64, value->integer);
        else if (value && value->type == QUERY_TEXT)
            text_quote(out, value->text, strlen(value->text), '\'');
        else
            fputs("NULL", out);
        text = close ? close : text;
    }
    fclose(out);
    return made;
}

struct target row_target(const struct row *row, const char *text)
{
    const char *lead = strstr(text, "=> "), *end, *where, *title, *at;
    struct target target = {0};
    size_t name;

    if (!lead)
        return target;
    lead += 3;
    name = strcspn(lead, " ");
    target.kind = view_named(lead, name);
    title = strstr(lead, " | ");
    where = strstr(lead, " WHERE ");
    end = title ? title : lead + strlen(lead);
    at = strstr(lead, " AT {");
    if (at)
        row_integer(row, at, &target.at_ns);
    if (lead[name] == ' ' && lead[name + 1] == '{' && !row_integer(row, lead + name, &target.id))
        target.kind = VIEW_NONE;
    if (target.kind && where)
        target.where = condition_print(row, where + 7, end);
    if (target.kind && title)
        target.title = row_print(row, title + 3, false);
    return target;
}
