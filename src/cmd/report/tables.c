/* cmd/report/tables.c -- prints the tables of `dyntrace report`, for a terminal and for a browser.
 * See cmd/report/report.h.
 *
 * schemas/report.sql has the statement, the heading and the columns of each table. The first lines
 * of that file explain how they are written. */
#include <inttypes.h>

#include "cmd/report/report.h"
#include "lib/json.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/cause_read.h"
#include "trace/db.h"
#include "trace/page_text.h"
#include "trace/prose.h"

enum {
    COLUMNS = 16,
    HEADING_BYTES = 200,
    PATH_BYTES = 1000, /* bytes of a path that are shown in a cell's tooltip */
    WHAT_BYTES = 300,
    OPENED_BYTES = 4000,
};

struct column {
    const char *cell; /* borrowed from the template file: the template of a cell */
    size_t bytes;     /* length of the text `cell` in bytes */
    char heading[HEADING_BYTES], what[HEADING_BYTES];
    int at; /* index of the query's column that the first field of the cell's template names */
    bool is_code;
};

/* A table: a statement, its columns, and its current row. */
struct sheet {
    const struct report *report;
    struct query *query;
    struct column columns[COLUMNS];
    int count;
    struct arena arena; /* keeps the texts of the row that is being printed */
    struct row row;
};

static int find_column(struct query *query, const char *name, size_t bytes)
{
    int at = query_columns(query);

    while (at-- > 0) {
        const char *one = query_name(query, at);
        if (strlen(one) == bytes && !memcmp(one, name, bytes))
            break;
    }
    return at;
}

static bool is_null(const struct sheet *sheet, const struct column *column)
{
    return query_type(sheet->query, column->at) == QUERY_NULL;
}

static bool is_number(const struct sheet *sheet, const struct column *column)
{
    enum query_type type = query_type(sheet->query, column->at);

    return type == QUERY_INTEGER || type == QUERY_REAL;
}

static bool is_column_named(const struct sheet *sheet, const struct column *column,
                            const char *name)
{
    return !strcmp(query_name(sheet->query, column->at), name);
}

/* Parse a line that describes a column of a table, such as "{!c}{field:format} heading (what it
 * is)". */
static struct column parse_column_line(const struct sheet *sheet, const char *rest)
{
    static const char code[] = "{!c}";
    struct column column = {.is_code = !strncmp(rest, code, strlen(code))};
    const char *heading, *what, *name;

    column.cell = rest + (column.is_code ? strlen(code) : 0);
    heading = strstr(column.cell, "  ");
    what = NULL;
    column.bytes = strlen(column.cell);
    if (heading) {
        column.bytes = (size_t)(heading - column.cell);
        heading += 2;
        what = strchr(heading, '(');
    }
    name = column.cell + 1;
    column.at = find_column(sheet->query, name, strcspn(name, ":}"));
    if (what)
        snprintf(column.what, HEADING_BYTES, "%.*s", (int)strcspn(what + 1, ")"), what + 1);
    if (heading)
        snprintf(column.heading, HEADING_BYTES, "%.*s", (int)strcspn(heading, "("), heading);
    if (what && what > heading)
        column.heading[what - heading - 1] = 0;
    return column;
}

/* Remove each column of SHEET that is optional and NULL in every row. OPTIONAL tells for each
 * column whether it is optional. The statement runs once to check all of them. */
static void remove_empty_columns(struct sheet *sheet, bool *optional)
{
    bool any = true;
    int kept = 0;

    while (any && memchr(optional, true, (size_t)sheet->count)) {
        any = query_step(sheet->query);
        for (int i = 0; any && i < sheet->count; i++)
            optional[i] = optional[i] && is_null(sheet, &sheet->columns[i]);
    }
    query_reset(sheet->query);
    for (int i = 0; i < sheet->count; i++)
        if (!optional[i])
            sheet->columns[kept++] = sheet->columns[i];
    sheet->count = kept;
}

/* Read the columns of a table from BLOCK. WORD is "cell" for a terminal, "page" for a browser. A
 * column that is marked with "?" is used only if some row has a value in it. */
static void read_columns_of_block(struct sheet *sheet, const struct template_block *block,
                                  const char *word)
{
    size_t bytes = strlen(word);
    bool optional[COLUMNS] = {false};

    for (size_t i = 0; i < block->lines.count && sheet->count < COLUMNS; i++) {
        const struct template_line *line = &block->lines.at[i];
        bool is_optional = !strncmp(line->word, word, bytes) && !strcmp(line->word + bytes, "?");
        if (!is_optional && strcmp(line->word, word) != 0)
            continue;
        optional[sheet->count] = is_optional;
        sheet->columns[sheet->count] = parse_column_line(sheet, line->rest);
        sheet->count++;
    }
    remove_empty_columns(sheet, optional);
}

/* ---- printing cells ------------------------------------------------------ */

/* Return the value of COLUMN in the current row as people read it, or NULL if the value is NULL. */
static const char *format_cell(struct sheet *sheet, const struct column *column)
{
    enum template_way way = sheet->report->page ? TEMPLATE_HTML : TEMPLATE_CELL;

    if (is_null(sheet, column) && is_column_named(sheet, column, "_ended"))
        return sheet->report->live == LIVE_NO ? "end not seen" : "still running";
    if (is_null(sheet, column))
        return NULL;
    return template_print(&sheet->arena, &sheet->row, way, column->cell, column->bytes);
}

/* Print the cell `_what`, which tells the cause of a recompile. The cell unfolds: it shows the
 * guard, its source lines, and the setting of `replay --what-if` that avoids the recompile. */
static void print_unfolding_cell(struct sheet *sheet, const struct column *column)
{
    FILE *out = sheet->report->out;
    /* _guard_id is the third column from the end of a cause's columns */
    int guard = find_column(sheet->query, "_guard_id", strlen("_guard_id"));
    struct cause cause = cause_read(sheet->query, guard - CAUSE_READ + 3);
    char *setting = cause_make_setting(&cause);

    fputs("<details><summary>", out);
    html_text(out, query_text(sheet->query, column->at, NULL), WHAT_BYTES);
    fputs("</summary><pre>", out);
    html_text(out, query_text(sheet->query, column->at + 1, NULL), OPENED_BYTES);
    fputs("\n\n", out);
    html_text(out, query_text(sheet->query, column->at + 2, NULL), OPENED_BYTES);
    if (setting) {
        fputs("\n\nwithout it: dyntrace replay --what-if ", out);
        html_text(out, setting, 400);
    }
    fputs("</pre></details>", out);
    free(setting);
}

static void print_cell_as_html(struct sheet *sheet, const struct column *column)
{
    FILE *out = sheet->report->out;
    struct query *query = sheet->query;
    const char *words = format_cell(sheet, column);

    if (!words) {
        fputs("<td class=\"soft\">-</td>", out);
        return;
    }
    if (is_number(sheet, column)) {
        fprintf(out, "<td class=\"n\" data-v=\"%.17g\">", query_real(query, column->at));
    } else if (is_column_named(sheet, column, "filename")) {
        fputs("<td class=\"code place\" title=\"", out);
        html_text(out, query_text(query, column->at, NULL), PATH_BYTES);
        fputs("\">", out);
    } else {
        bool is_kind = is_column_named(sheet, column, "kind");
        fprintf(out, "<td class=\"w%s%s\">", column->is_code ? " code" : "",
                is_kind ? " place" : "");
    }
    if (is_column_named(sheet, column, "_what") && find_column(query, "_guard_id", 9) >= 0)
        print_unfolding_cell(sheet, column);
    else
        fputs(words, out);
    fputs("</td>", out);
}

/* ---- printing tables ----------------------------------------------------- */

static void bind_sums(const void *context, struct query *query)
{
    const struct report *report = context;

    query_bind_integer(query, 1, report->sums.asked);
    query_bind_integer(query, 2, report->sums.hits);
    query_bind_integer(query, 3, report->sums.python);
    query_bind_integer(query, 4, report->turned_away);
}

/* Print a sentence with sums below the heading of the table NAME, which is `outcomes` or
 * `compiles`. */
static void print_sums_sentence(const struct report *report, const char *name)
{
    struct page_text page = {
        .out = report->out,
        .db = report->db,
        .way = TEMPLATE_LINES,
        .context = report,
        .bind = bind_sums,
    };

    if (!strcmp(name, "outcomes"))
        page_text_print_rows(&page, "report/call_sums", report->sums.asked);
    else if (!strcmp(name, "compiles"))
        page_text_print_rows(&page, "report/compile_sums", 0);
}

/* Step to the next row and read it. Returns false if there is none. */
static bool read_next_row(struct sheet *sheet, struct value *values)
{
    bool any = query_step(sheet->query);

    arena_free(&sheet->arena);
    for (int i = 0; any && i < sheet->row.count; i++)
        values[i] = value_read(&sheet->arena, sheet->query, i, SIZE_MAX - 1);
    return any;
}

static bool is_alarming_row(const struct sheet *sheet)
{
    int at = find_column(sheet->query, "_alarm", strlen("_alarm"));

    return at >= 0 && query_integer(sheet->query, at);
}

/* Print the rows of SHEET for a terminal. If ANY, SHEET is at its first row, otherwise it has no
 * rows. Returns the number of rows. */
static int64_t print_rows_as_text(struct sheet *sheet, struct value *values, bool any)
{
    const char *names[COLUMNS];
    enum table_format format = table_format(sheet->report->out, false);
    struct table *table;
    int64_t rows = 0;

    for (int i = 0; i < sheet->count; i++)
        names[i] = sheet->columns[i].heading;
    table = table_open(sheet->report->out, format, sheet->count, names);
    while (any) {
        if (is_alarming_row(sheet))
            table_mark_row_red(table);
        for (int i = 0; i < sheet->count; i++) {
            const char *words = format_cell(sheet, &sheet->columns[i]);
            if (words && is_number(sheet, &sheet->columns[i]))
                table_put_figure(table, words);
            else
                table_put_string(table, words);
        }
        rows++;
        any = rows != sheet->report->limit && read_next_row(sheet, values);
    }
    table_close(table);
    return rows;
}

/* Print the rows of SHEET, which is at the first row, for a browser. Returns the number of rows. */
static int64_t print_rows_as_html(struct sheet *sheet, struct value *values, const char *id)
{
    FILE *out = sheet->report->out;
    int64_t rows = 0;
    bool any = true;

    fprintf(out, "<div class=\"scroll\"><table class=\"sort\" id=\"t-%s\"><thead><tr>", id);
    for (int i = 0; i < sheet->count; i++) {
        const struct column *column = &sheet->columns[i];
        const char *class = is_number(sheet, column) ? " class=\"n\"" : "";
        fprintf(out, "<th%s title=\"%s\">%s</th>", class, column->what, column->heading);
    }
    fputs("</tr></thead><tbody>\n", out);
    while (any) {
        fputs(is_alarming_row(sheet) ? "<tr class=\"alarm\">" : "<tr>", out);
        for (int i = 0; i < sheet->count; i++)
            print_cell_as_html(sheet, &sheet->columns[i]);
        fputs("</tr>\n", out);
        rows++;
        any = rows != sheet->report->limit && read_next_row(sheet, values);
    }
    fputs("</tbody></table></div>\n", out);
    return rows;
}

static void print_table_heading(const struct report *report, const char *name, const char *title)
{
    if (report->page)
        fprintf(report->out, "<h2>%s</h2>\n<p class=\"soft\">", title);
    else
        prose_print_title(report->out, title);
    /* no escaping is needed here, because the sentence has only our own words and numbers */
    print_sums_sentence(report, name);
    if (report->page)
        fputs("</p>\n", report->out);
}

void report_print_table(struct report *report, const char *name, bool bare)
{
    char *path = say_print("report/%s", name);

    report_print_table_of_trace(report, report->db, path, bare);
    free(path);
}

/* Bind the parameters of the statement `outcomes`: the sums of the report. */
static void bind_report_sums(const struct report *report, struct query *query)
{
    char *calls = NULL;
    size_t bytes;
    struct json json = {.out = open_memstream(&calls, &bytes)};

    report_write_outcomes(report, &json, NULL);
    fclose(json.out);
    query_bind_text(query, 1, calls);
    query_bind_integer(query, 2, report->sums.asked);
    free(calls);
}

/* If only SHOWN rows of a table with more rows were printed, print "The first 20 of 35". */
static void print_rows_left_out(const struct sheet *sheet, int64_t shown)
{
    const struct report *report = sheet->report;
    const char *words = report->page ? "<p class=\"soft\">The first %" PRId64 " of %" PRId64
                                       "; --limit 0 shows all.</p>\n"
                                     : "(%" PRId64 " of %" PRId64 "; --limit 0 shows all)\n";
    int64_t all = shown;

    if (shown != report->limit)
        return;
    while (query_step(sheet->query))
        all++;
    if (all > shown)
        fprintf(report->out, words, shown, all);
}

void report_print_link(struct report *report, const char *id, const char *words)
{
    struct link *link = list_add(&report->links);

    snprintf(link->id, sizeof link->id, "%s", id);
    snprintf(link->words, sizeof link->words, "%s", words);
}

/* Print styles for the table ID in narrow windows: each cell becomes a line, which begins with the
 * heading of its column. */
static void print_css_of_headings(const struct sheet *sheet, const char *id)
{
    FILE *out = sheet->report->out;

    fprintf(out, "<style nonce=\"%s\">@media (max-width: 800px) {", sheet->report->nonce);
    for (int i = 0; i < sheet->count; i++)
        fprintf(out, "#t-%s td:nth-child(%d)::before{content:\"%s\"}", id, i + 1,
                sheet->columns[i].heading);
    fputs("}</style>\n", out);
}

/* Print the table of SHEET, which is at the first row, for a browser, with a heading and a search
 * field. */
static void print_table_as_html(struct report *report, struct sheet *sheet, struct value *values,
                                const struct template_block *block, const char *name, bool bare)
{
    FILE *out = report->out;
    const char *id = prose_text_or_other(block_text_after_word(block, "id"), name);
    const char *link = block_text_after_word(block, "link");

    if (link)
        report_print_link(report, id, link);
    if (!bare)
        fprintf(out, "<section id=\"%s\">\n", id);
    print_table_heading(report, name, block_text_after_word(block, "title"));
    print_css_of_headings(sheet, id);
    if (!bare)
        fprintf(out,
                "<div class=\"tools\"><input type=\"search\" data-for=\"t-%s\" "
                "placeholder=\"filter rows\" aria-label=\"filter rows\"></div>\n",
                id);
    print_rows_left_out(sheet, print_rows_as_html(sheet, values, id));
    if (!bare)
        fputs("</section>\n", out);
}

void report_print_table_of_trace(struct report *report, struct db *db, const char *path, bool bare)
{
    const char *name = strchr(path, '/') + 1;
    struct template template = {0};
    const struct template_block *block;
    struct sheet sheet = {.report = report};
    bool any, is_kept;
    int columns;

    template_open(&template, schema_statement(path));
    block = &template.blocks.at[0];
    sheet.query = db_query(db, block->sql);
    if (!strcmp(name, "outcomes"))
        bind_report_sums(report, sheet.query);
    else if (!strcmp(name, "longest"))
        query_bind_text(sheet.query, 1, report->longest);
    columns = query_columns(sheet.query);
    struct value values[columns + 1];
    const char *names[columns + 1];
    for (int i = 0; i < columns; i++)
        names[i] = query_name(sheet.query, i);
    sheet.row = (struct row){values, names, columns};
    read_columns_of_block(&sheet, block, report->page ? "page" : "cell");
    any = read_next_row(&sheet, values);
    is_kept = !report->page && block_text_after_word(block, "always");
    if (report->page && any) {
        print_table_as_html(report, &sheet, values, block, name, bare);
    } else if (any || is_kept) {
        print_table_heading(report, name, block_text_after_word(block, "title"));
        print_rows_left_out(&sheet, print_rows_as_text(&sheet, values, any));
    }
    query_close(sheet.query);
    arena_free(&sheet.arena);
    template_close(&template);
}
