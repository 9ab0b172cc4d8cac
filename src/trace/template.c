/* trace/template.c -- prints text whose fields a row fills in. See trace/template.h. */
#include "trace/template.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "lib/table.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "vocabulary.h"

enum {
    BARS_MOST = 60,
    /* the most bytes that a field prints, unless the template has a number for it */
    FIELD_BYTES = 200,
    HTML_BYTES = 400,
    CELL_BYTES = 65536,
};

/* ---- formatting values --------------------------------------------------- */

enum cell_format format_from_name(const char *word, size_t bytes)
{
#define X(NAME, word) word,
    static const char *const words[FORMATS] = {FORMAT_ROWS(X)};
#undef X
    int i = 0;

    for (; i < FORMATS; i++)
        if (strlen(words[i]) == bytes && !memcmp(words[i], word, bytes))
            break;
    return (enum cell_format)i;
}

struct value value_read(struct arena *arena, struct query *query, int column, size_t most)
{
    struct value value = {.type = (unsigned char)query_type(query, column)};
    const char *text;
    size_t bytes;

    switch (value.type) {
    case QUERY_INTEGER:
        value.integer = query_integer(query, column);
        break;
    case QUERY_REAL:
        value.real = query_real(query, column);
        break;
    case QUERY_TEXT:
        text = most > VALUE_LONG ? query_whole_value(query, column, NULL)
                                 : query_text(query, column, NULL);
        if (!strcmp(query_name(query, column), "function"))
            text = name_to_show(text);
        value.text = arena_text(arena, text, prose_length_without_cut_character(text, most));
        break;
    case QUERY_BLOB:
        query_whole_value(query, column, &bytes);
        value.type = QUERY_TEXT;
        value.text = arena_print(arena, "(%zu bytes)", bytes);
        break;
    default:
        break;
    }
    return value;
}

const char *spark_choose_glyph(double share, const char *none)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

    return share > 0 ? bars[(int)(share * 7.999)] : none;
}

void spark_make_line(char *made, const double *heights, int width)
{
    double most = 0;

    *made = 0;
    for (int i = 0; i < width; i++)
        most = heights[i] > most ? heights[i] : most;
    for (int i = 0; i < width; i++)
        made = stpcpy(made, spark_choose_glyph(most > 0 ? heights[i] / most : 0, "·"));
}

/* Write a line of WIDTH small bars to MADE. The bars show how many events each stretch of time has.
 * TEXT lists them: "3:10,4:7" means 10 events in stretch 3, and 7 in stretch 4. */
static void format_spark_line(char *made, const char *text, int width)
{
    double counts[BARS_MOST] = {0};
    double count;
    long long bucket;

    for (const char *p = text; sscanf(p, "%lld:%lf", &bucket, &count) == 2;) {
        bool is_bar = bucket >= 0 && bucket < width;
        if (is_bar && count > 0)
            counts[bucket] += count;
        p += strcspn(p, ",");
        p += *p == ',';
    }
    spark_make_line(made, counts, *text ? width : 0);
}

const char *bar_print(char *made, double share, int width)
{
    char *end = made;

    for (int i = 0; i < width; i++) /* a share above 0 is shown as at least one block */
        end = stpcpy(end, share * width + 0.5 >= i + 1 || (!i && share > 0) ? "█" : " ");
    return made;
}

/* Return the phrase that explains the outcome WORD. If WORD is not an outcome, it is
 * returned unchanged. */
static const char *explain_outcome(const char *word)
{
    for (int i = 0; i < OUTCOMES; i++)
        if (!strcmp(outcome_facts[i].word, word))
            return outcome_facts[i].words;
    return word;
}

/* Write TEXT to MADE in the form that FORMAT names. */
static void format_text(char *made, const char *text, enum cell_format format)
{
    char what[TORCH_PART];
    char *ended = NULL;
    size_t bytes;

    switch (format) {
    case AS_ENDED:
        ended = prose_describe_end(text);
        text = ended;
        break;
    case AS_REASON:
        text = strcpy(what, torch_reason_split(text).what);
        break;
    case AS_PATH:
        text = prose_shorten_path(text);
        break;
    case AS_PHASE:
        text = torch_describe_phase(text);
        break;
    case AS_WORDS:
        text = explain_outcome(text);
        break;
    default:
        break;
    }
    if (text) {
        bytes = prose_length_without_cut_character(text, CELL_TEXT - 8);
        snprintf(made, CELL_TEXT, "%.*s", (int)bytes, text);
    }
    free(ended);
}

static int64_t convert_to_integer(double number)
{
    return fabs(number) < 9e18 ? (int64_t)number : 0;
}

/* Print PERCENT with FORMAT, which has a precision. 0 and 100 are printed only if they are exact:
 * other numbers get as many digits as they need to look different. */
static void print_percent(char *made, const char *format, int digits, double percent)
{
    double shown;

    do {
        snprintf(made, CELL_TEXT, format, digits++, percent);
        shown = strtod(made, NULL);
    } while (digits < 9 && (shown == 0 || shown == 100) && shown != percent);
}

static void format_number(char *made, const struct value *value, enum cell_format format, int width)
{
    bool is_real = value->type == QUERY_REAL;
    double number = is_real ? value->real : (double)value->integer;
    int64_t whole = is_real ? convert_to_integer(number) : value->integer;

    switch (format) {
    case AS_COUNT:
    case AS_ALARM_COUNT:
        table_count(made, whole);
        break;
    case AS_DURATION:
        table_duration(made, whole);
        break;
    case AS_TIME:
        snprintf(made, CELL_TEXT, "%.6f", number / 1e9);
        break;
    case AS_SECONDS:
        snprintf(made, CELL_TEXT, "%.3f s", number / 1e9);
        break;
    case AS_SHARE:
        print_percent(made, "%.*g", 3, number);
        break;
    case AS_ROUGH:
        if (number < 100)
            print_percent(made, "%.*g", number < 99.5 ? 2 : 3, number);
        else
            snprintf(made, CELL_TEXT, "%.0f", number);
        break;
    case AS_PERCENT:
        print_percent(made, "%.*f", 1, number);
        break;
    case AS_BAR:
        bar_print(made, number, width);
        break;
    default:
        if (is_real)
            snprintf(made, CELL_TEXT, "%.6g", number);
        else
            snprintf(made, CELL_TEXT, "%" PRId64, whole);
    }
}

const char *value_print(char *made, const struct value *value, enum cell_format format, int width)
{
    bool is_text = format <= AS_SPARK;

    if (width > BARS_MOST)
        width = BARS_MOST;
    made[0] = 0;
    if (value->type == QUERY_NULL)
        return strcpy(made, is_text ? "" : "-");
    if (value->type != QUERY_TEXT)
        format_number(made, value, format, width);
    else if (format == AS_SPARK)
        format_spark_line(made, value->text, width);
    else
        format_text(made, value->text, format);
    return made;
}

static double convert_to_real(const struct value *value)
{
    return value->type == QUERY_REAL ? value->real : (double)value->integer;
}

int value_compare(const struct value *a, const struct value *b)
{
    static const int rank[] = {
        [QUERY_NULL] = 0, [QUERY_INTEGER] = 1, [QUERY_REAL] = 1, [QUERY_TEXT] = 2};
    double x = convert_to_real(a);
    double y = convert_to_real(b);

    if (rank[a->type] != rank[b->type] || a->type == QUERY_NULL)
        return rank[a->type] - rank[b->type];
    if (a->type == QUERY_TEXT)
        return strcmp(a->text, b->text);
    if (a->type == QUERY_INTEGER && b->type == QUERY_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    return (x > y) - (x < y);
}

const char *text_make_printable(struct arena *arena, const char *text, size_t width)
{
    char *made;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    prose_print_text(out, text, width);
    fclose(out);
    return arena_keep(arena, made);
}

static const char *html_entity(char letter)
{
    switch (letter) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* Print LINE, a line of a text, with escapes for HTML. */
static void print_html_line(FILE *out, const char *line)
{
    char *safe = say_escape(line, strlen(line));

    for (const char *at = safe; *at; at++) {
        const char *entity = html_entity(*at);
        if (entity)
            fputs(entity, out);
        else
            putc(*at, out);
    }
    free(safe);
}

void html_text(FILE *out, const char *text, size_t width)
{
    size_t bytes = prose_length_without_cut_character(text, width);
    char *copy = strndup(text, bytes);
    char *rest = copy;

    while (rest) {
        print_html_line(out, strsep(&rest, "\n"));
        fputs(rest ? "\n" : "", out);
    }
    fputs(text[bytes] ? "…" : "", out);
    free(copy);
}

const char *text_shorten_to_columns(struct arena *arena, const char *text, int columns)
{
    int used;
    bool cut = text[text_bytes_that_fit(text, columns, &used)];
    size_t bytes = text_bytes_that_fit(text, columns - cut, &used);

    return arena_print(arena, "%.*s%s%*s", (int)bytes, text, cut ? "…" : "", columns - used - cut,
                       "");
}

const char *text_count_with_noun(struct arena *arena, int64_t count, bool briefly, const char *noun,
                                 size_t bytes)
{
    char last = noun[bytes - 1];
    char made[TABLE_HUMAN];
    bool one = count == 1;
    bool takes_ies = last == 'y' && !one;
    const char *ending = last == 's' ? "es" : "s";

    if (briefly)
        table_count(made, count);
    else
        snprintf(made, sizeof made, "%" PRId64, count);
    if (one)
        ending = "";
    else if (takes_ies)
        ending = "ies";
    return arena_print(arena, "%s %.*s%s", made, (int)bytes - takes_ies, noun, ending);
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

int word_choose_style(const char *word)
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
        /* a word of the column compile.outcome; the outcome of a call is never this word */
        {"skipped", STYLE_DIM},
    };

    for (size_t i = 0; i < array_count(words); i++)
        if (!strcmp(words[i].word, word))
            return words[i].style;
    return STYLE_NORMAL;
}

char word_choose_mark(const char *word)
{
    return STYLE_LETTERS[word_choose_style(word)];
}

/* ---- reading a template file --------------------------------------------- */

void template_open(struct template *template, const char *text)
{
    struct template_block *block = NULL;

    for (char *at = arena_print(&template->arena, "%s", text), *end; *at; at = end) {
        size_t length = strcspn(at, "\n");
        size_t word = strcspn(at, " \n");
        end = at + length + (at[length] == '\n');
        if (!length || !strncmp(at, "-- ", 3))
            continue;
        if (!block) {
            block = list_add(&template->blocks);
            block->sql = "";
        }
        if (!strncmp(at, "--", 2)) {
            char *rest = at + word + (at[word] == ' ');
            *list_add(&block->lines) = (struct template_line){at + 2, rest};
            at[word] = 0;
            at[length] = 0;
            continue;
        }
        block->sql = at; /* the statement ends at a ";" at the end of a line, or with the file */
        end = strstr(at, ";\n");
        if (!end)
            break;
        *end = 0;
        end += 2;
        block = NULL;
    }
}

void template_close(struct template *template)
{
    for (size_t i = 0; i < template->blocks.count; i++)
        list_free(&template->blocks.at[i].lines);
    list_free(&template->blocks);
    arena_free(&template->arena);
}

const char *block_text_after_word(const struct template_block *block, const char *word)
{
    for (size_t i = 0; block && i < block->lines.count; i++)
        if (!strcmp(block->lines.at[i].word, word))
            return block->lines.at[i].rest;
    return NULL;
}

/* Return the value of the column NAME, which has BYTES bytes. Returns NULL if the row has
 * no such column. */
static const struct value *find_value_of_column(const struct row *row, const char *name,
                                                size_t bytes)
{
    for (int i = 0; i < row->count; i++)
        if (!strncmp(row->names[i], name, bytes) && !row->names[i][bytes])
            return &row->values[i];
    return NULL;
}

const struct value *row_value_of_field(const struct row *row, const char *text)
{
    const char *brace = strchr(text, '{');

    return brace ? find_value_of_column(row, brace + 1, strcspn(brace + 1, "}")) : NULL;
}

bool row_integer_of_field(const struct row *row, const char *text, int64_t *integer)
{
    const struct value *value = row_value_of_field(row, text);

    if (!value || value->type != QUERY_INTEGER)
        return false;
    *integer = value->integer;
    return true;
}

/* ---- rows that C fills in ------------------------------------------------ */

static struct value *add_fact_value(struct row_facts *facts, const char *name, enum query_type type)
{
    struct value *value = &facts->values[facts->count];

    if (facts->count == FACTS_MOST)
        abort();
    facts->names[facts->count] = name;
    facts->count++;
    *value = (struct value){.type = (unsigned char)type};
    return value;
}

void fact_text(struct row_facts *facts, const char *name, const char *text)
{
    add_fact_value(facts, name, text ? QUERY_TEXT : QUERY_NULL)->text = text;
}

void fact_integer(struct row_facts *facts, const char *name, int64_t integer)
{
    bool is_known = integer != FACT_UNKNOWN;

    add_fact_value(facts, name, is_known ? QUERY_INTEGER : QUERY_NULL)->integer = integer;
}

void fact_real(struct row_facts *facts, const char *name, double real)
{
    add_fact_value(facts, name, QUERY_REAL)->real = real;
}

void fact_bool(struct row_facts *facts, const char *name, bool is)
{
    fact_integer(facts, name, is ? 1 : FACT_UNKNOWN);
}

struct row facts_make_row(const struct row_facts *facts)
{
    return (struct row){facts->values, facts->names, facts->count};
}

/* ---- printing the fields of a row ---------------------------------------- */

/* A row that is being printed by a template, and how. */
struct printer {
    FILE *out;
    struct arena *arena; /* owns texts that are needed only while the row is printed */
    const struct row *row;
    enum template_way way;
};

/* Return the escape sequence with which a terminal shows the style LETTER. */
static const char *terminal_sequence_of_style(char letter)
{
    switch (letter) {
    case 'd':
        return "\033[2m";
    case 'b':
    case 'h':
        return "\033[1m";
    case 'r':
        return "\033[1;31m";
    case 'w':
        return "\033[33m";
    case 'g':
        return "\033[32m";
    case 'a':
        return "\033[1;34m";
    default:
        return "\033[0m";
    }
}

/* Print the style of a field such as {!r} or {!name}. */
static void print_style(const struct printer *p, const char *name, size_t bytes)
{
    const struct value *value = find_value_of_column(p->row, name, bytes);
    const char *text = value && value->type == QUERY_TEXT ? value->text : NULL;
    char letter = 'n';

    if (!value && bytes == 1)
        letter = *name;
    else if (text && *text && !text[1])
        letter = *text;
    else if (text)
        letter = word_choose_mark(text);
    if (p->way == TEMPLATE_MARKED)
        fprintf(p->out, MARK "%c", letter);
    else if (p->way == TEMPLATE_COLOUR)
        fputs(terminal_sequence_of_style(letter), p->out);
}

static void print_as_sql(FILE *out, const struct value *value)
{
    if (value && value->type == QUERY_INTEGER)
        fprintf(out, "%" PRId64, value->integer);
    else if (value && value->type == QUERY_TEXT)
        text_quote(out, value->text, strlen(value->text), '\'');
    else
        fputs("NULL", out);
}

/* A field of a template. "name:count>9~noun|other words" prints the column `name` in the format
 * `count`, right-aligned in 9 columns, with a noun after the number. If the value is NULL, it
 * prints "other words". */
struct field {
    /* the value of the field's column; NULL if the row has no such column */
    const struct value *value;
    enum cell_format format;
    int width; /* the number behind the format: for a text the most bytes that are printed */
    int right; /* number of columns in which the value is right-aligned; 0 if not */
    int fill;  /* if not 0, blanks are added up to this column */
    const char *noun, *other;
    size_t noun_bytes, other_bytes;
};

static struct field parse_field(const struct row *row, const char *at, size_t bytes)
{
    const char *end = at + bytes;
    const char *colon = memchr(at, ':', bytes);
    const char *bar = memchr(at, '|', bytes);
    const char *noun = memchr(at, '~', bytes);
    size_t name = bytes;
    struct field field = {.format = AS_TEXT};

    if (bar && colon > bar)
        colon = NULL;
    if (bar) {
        field.other = bar + 1;
        field.other_bytes = (size_t)(end - bar) - 1;
        name = (size_t)(bar - at);
    }
    if (noun && (!bar || noun < bar)) {
        field.noun = noun + 1;
        field.noun_bytes = (size_t)((bar ? bar : end) - noun) - 1;
    }
    if (colon) {
        const char *look = colon + 1;
        size_t word = strcspn(look, "0123456789<>~|}");
        name = (size_t)(colon - at);
        if (word)
            field.format = format_from_name(look, word);
        look += word;
        sscanf(look, "%d", &field.width);
        sscanf(look + strspn(look, "0123456789"), ">%d", &field.right);
        sscanf(look + strspn(look, "0123456789>"), "<%d", &field.fill);
    }
    field.value = find_value_of_column(row, at, name);
    return field;
}

/* Return the value of FIELD as text. If the value is NULL, return the words that the template has
 * for NULL, or "?" if it has none. */
static const char *format_field(const struct printer *p, const struct field *field)
{
    const struct value *value = field->value;
    bool known = value && value->type != QUERY_NULL;

    if (!known && field->other)
        return arena_print(p->arena, "%.*s", (int)field->other_bytes, field->other);
    if (!known)
        return "?";
    if (value->type == QUERY_TEXT && field->format == AS_TEXT)
        return value->text;
    if (field->noun)
        return text_count_with_noun(p->arena, value->integer, field->format != AS_INTEGER,
                                    field->noun, field->noun_bytes);
    return value_print(arena_take(p->arena, CELL_TEXT), value, field->format, field->width);
}

/* Return how many bytes of its value FIELD may print. */
static size_t field_byte_limit(const struct printer *p, const struct field *field)
{
    bool is_text = field->value && field->value->type == QUERY_TEXT;
    bool is_cut = is_text && field->width && field->format != AS_SPARK;

    if (p->way == TEMPLATE_WHOLE)
        return SIZE_MAX - 1;
    if (is_cut)
        return (size_t)field->width;
    switch (p->way) {
    case TEMPLATE_HTML:
        return HTML_BYTES;
    case TEMPLATE_CELL:
        return CELL_BYTES;
    default:
        return FIELD_BYTES;
    }
}

/* Return the first MOST bytes of TEXT, escaped for where they are printed. */
static const char *escape_text(const struct printer *p, const char *text, size_t most)
{
    char *made;
    size_t bytes;
    FILE *out;

    if (p->way == TEMPLATE_CELL) {
        bytes = prose_length_without_cut_character(text, most);
        return arena_print(p->arena, "%.*s%s", (int)bytes, text, text[bytes] ? "…" : "");
    }
    if (p->way != TEMPLATE_HTML)
        return text_make_printable(p->arena, text, most);
    out = open_memstream(&made, &bytes);
    html_text(out, text, most);
    fclose(out);
    return arena_keep(p->arena, made);
}

/* Return the value of FIELD as one word of a shell, safe to print. */
static const char *make_shell_word(const struct printer *p, const struct field *field)
{
    bool is_text = field->value && field->value->type == QUERY_TEXT;
    char *made;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    prose_print_shell_word(out, is_text ? field->value->text : "");
    fclose(out);
    return arena_keep(p->arena, made);
}

/* TEXT is the escaped value of FIELD. Return it cut or filled with blanks to the number of columns
 * that FIELD asks for. */
static const char *pad_field(const struct printer *p, const struct field *field, const char *text)
{
    int used;

    if (!field->fill)
        return text;
    if (!field->width)
        return text_shorten_to_columns(p->arena, text, field->fill);
    text_bytes_that_fit(text, INT_MAX, &used);
    return arena_print(p->arena, "%s%*s", text, used < field->fill ? field->fill - used : 0, "");
}

/* Does a condition of a template hold? The text at AT, which has BYTES bytes, is "?name", "-name",
 * "+name", "?name=text" or "-name=text". */
static bool does_condition_hold(const struct printer *p, const char *at, size_t bytes)
{
    const char *equals = memchr(at, '=', bytes);
    const char *end = at + bytes;
    size_t name = (size_t)((equals ? equals : end) - at) - 1;
    const struct value *value = find_value_of_column(p->row, at + 1, name);
    bool is_known = value && value->type != QUERY_NULL;
    char made[CELL_TEXT];

    if (*at == '+')
        return is_known && value->type == QUERY_INTEGER && value->integer > 0;
    if (is_known && equals) {
        const char *text =
            value->type == QUERY_TEXT ? value->text : value_print(made, value, AS_INTEGER, 0);
        size_t length = (size_t)(end - equals) - 1;
        is_known = strlen(text) == length && !memcmp(text, equals + 1, length);
    }
    return is_known == (*at == '?');
}

/* Must the text of FIELD still be escaped and cut? A word of a shell has been escaped already. */
static bool needs_escaping(const struct printer *p, const struct field *field)
{
    bool is_raw = p->way == TEMPLATE_PLAIN || p->way == TEMPLATE_SENTENCE;
    bool is_word = field->format == AS_SHELL && p->way != TEMPLATE_HTML;

    return !is_raw && !is_word;
}

/* Print the field whose text is at AT and has BYTES bytes. Returns false if its value is NULL or
 * empty and it has no words for NULL. If the text is a condition, prints nothing and returns
 * whether it holds. */
static bool print_field(const struct printer *p, const char *at, size_t bytes)
{
    bool is_asked = bytes > 0 && strchr("?+-", *at);
    bool is_bracket = bytes == 1 && (*at == '[' || *at == ']');
    const struct field field = parse_field(p->row, at, bytes);
    bool known = field.value && field.value->type != QUERY_NULL;
    const char *text;

    if (is_bracket) {
        putc(*at, p->out);
        return true;
    }
    if (is_asked)
        return does_condition_hold(p, at, bytes);
    if (p->way == TEMPLATE_SQL) {
        print_as_sql(p->out, field.value);
        return true;
    }
    if (*at == '!') {
        print_style(p, at + 1, bytes - 1);
        return true;
    }
    text = format_field(p, &field);
    known = known && *text;
    text = arena_print(p->arena, "%*s", field.right, text);
    if (known && field.format == AS_SHELL)
        text = make_shell_word(p, &field);
    if (needs_escaping(p, &field))
        text = pad_field(p, &field, escape_text(p, text, field_byte_limit(p, &field)));
    fputs(text, p->out);
    return known || field.other;
}

/* Return the end of the pair of brackets that begins at TEXT, or NULL if it is not closed. The
 * fields {[} and {]}, which print a bracket, do not count. */
static const char *find_bracket_end(const char *text, const char *end)
{
    for (int depth = 0; text < end; text++) {
        bool is_field = text[0] == '{' && end - text > 2 && text[2] == '}';
        if (is_field)
            text += 2;
        else
            depth += (*text == '[') - (*text == ']');
        if (!depth)
            return text;
    }
    return NULL;
}

/* Return the text from TEXT to END with its fields filled in. *ALL becomes false if a field has no
 * value or if a condition does not hold. */
static const char *fill_fields(struct arena *arena, const struct row *row, enum template_way way,
                               const char *text, const char *end, bool *all)
{
    const bool has_brackets = way != TEMPLATE_SQL && way != TEMPLATE_SENTENCE;
    char *made;
    size_t bytes;
    struct printer printer = {
        .out = open_memstream(&made, &bytes),
        .arena = arena,
        .row = row,
        .way = way,
    };

    for (; text < end; text++) {
        bool bracket = *text == '[' && has_brackets;
        bool whole = true;
        const char *close = NULL;
        if (*text == '{')
            close = memchr(text, '}', (size_t)(end - text));
        else if (bracket)
            close = find_bracket_end(text, end);
        if (!close) {
            putc(*text, printer.out);
            continue;
        }
        if (bracket) {
            const char *inner = fill_fields(arena, row, way, text + 1, close, &whole);
            fputs(whole ? inner : "", printer.out);
        } else {
            *all = print_field(&printer, text + 1, (size_t)(close - text - 1)) && *all;
        }
        text = close;
    }
    fclose(printer.out);
    return arena_keep(arena, made);
}

const char *template_print(struct arena *arena, const struct row *row, enum template_way way,
                           const char *text, size_t bytes)
{
    bool all = true;
    const char *made = fill_fields(arena, row, way, text, text + bytes, &all);

    return *made || *text != '[' ? made : NULL;
}

const char *row_print(struct arena *arena, const struct row *row, const char *text,
                      enum template_way way)
{
    const char *lead = strstr(text, "=> ");
    size_t bytes = lead ? (size_t)(lead - text) : strlen(text);

    if (lead) {
        while (bytes > 0 && text[bytes - 1] == ' ')
            bytes--;
    }
    return template_print(arena, row, way, text, bytes);
}
