/* trace/page_text.c -- prints pages of commands by templates. See trace/page_text.h. */
#include "trace/page_text.h"

#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"

static bool has_word(const struct template_line *line, const char *word)
{
    return !strcmp(line->word, word);
}

/* Does BLOCK print only part of a line, and not the line's end? */
static bool is_part_of_line(const struct template_block *block)
{
    return block_text_after_word(block, "+") && !block_text_after_word(block, "|");
}

/* Print TEXT, a line of a template, with the values of ROW in its fields. If IS_END,
 * also end the line. */
static void print_template_line(struct page_text *page, struct arena *arena, const struct row *row,
                                const char *text, bool is_end)
{
    const char *made = row_print(arena, row, text, page->way);

    if (made)
        fputs(made, page->out);
    if (made)
        page->is_begun = true;
    if (is_end && page->is_begun) {
        putc('\n', page->out);
        page->is_begun = false;
    }
}

/* Print the value of the field in TEXT line by line, but at most MOST lines. ROW may have only the
 * beginning of the value. So if QUERY is not NULL, the whole value is read from QUERY. */
static void print_field_by_lines(struct page_text *page, struct query *query, const struct row *row,
                                 const char *text, long most)
{
    const struct value *value = row_value_of_field(row, text);
    int indent = (int)strcspn(text, "{");
    const char *whole;

    if (!value || value->type != QUERY_TEXT)
        return;
    whole = query ? query_whole_value(query, (int)(value - row->values), NULL) : value->text;
    prose_print_lines(page->out, whole, indent, page->way == TEMPLATE_WHOLE ? -1 : most);
}

/* Print the rows of another statement. TEXT has the statement's name and, in braces, the column of
 * ROW with the id for it: "show/guards {compile_id}". */
static void print_nested_statement(struct page_text *page, struct arena *arena,
                                   const struct row *row, const char *text)
{
    const char *name = arena_print(arena, "%.*s", (int)strcspn(text, " "), text);
    int64_t id;

    if (row_integer_of_field(row, text, &id))
        page_text_print_rows(page, name, id);
}

static void print_lines_of_row(struct page_text *page, struct arena *arena,
                               const struct template_block *block, struct query *query,
                               const struct row *row, int64_t number)
{
    list_each(line, &block->lines) {
        char *rest = line->rest;
        if (has_word(line, "#") && !number) {
            print_template_line(page, arena, row, rest, !is_part_of_line(block));
        } else if (has_word(line, "|")) {
            print_template_line(page, arena, row, rest, true);
        } else if (has_word(line, "+")) {
            print_template_line(page, arena, row, rest, false);
        } else if (has_word(line, "rows")) {
            print_nested_statement(page, arena, row, rest);
        } else if (has_word(line, "call")) {
            page->call(page, rest, query);
        } else if (has_word(line, "text")) {
            long most = strtol(rest, &rest, 10);
            print_field_by_lines(page, query, row, rest + (*rest == ' '), most);
        }
    }
}

/* Print the lines of BLOCK that replace rows. WORD tells which lines: "none" if there are
 * no rows; "more" if row NUMBER and all rows after it are left out. Returns false if BLOCK
 * has no such line. */
static bool print_in_place_of_rows(struct page_text *page, struct arena *arena,
                                   const struct template_block *block, const struct row *row,
                                   const char *word, int64_t number)
{
    bool is_counted = !strcmp(word, "more");
    bool any = false;

    list_each(line, &block->lines) {
        char *rest = line->rest;
        if (!has_word(line, word))
            continue;
        if (is_counted) {
            long at = strtol(rest, &rest, 10);
            if (at != number)
                continue;
            rest += *rest == ' ';
        }
        print_template_line(page, arena, row, rest, !is_part_of_line(block));
        any = true;
    }
    return any;
}

/* Print row NUMBER of BLOCK. Returns false if this row is left out, and so are all later rows. */
static bool print_limited_row(struct page_text *page, struct arena *arena,
                              const struct template_block *block, struct query *query,
                              const struct row *row, int64_t number)
{
    const char *fill = block_text_after_word(block, "fill");
    bool is_limited = page->way != TEMPLATE_WHOLE && !page->all;

    if (is_limited) {
        if (fill && number >= strtol(fill, NULL, 10))
            return false;
        if (print_in_place_of_rows(page, arena, block, row, "more", number))
            return false;
    }
    print_lines_of_row(page, arena, block, query, row, number);
    return true;
}

bool page_text_print_row(struct page_text *page, const char *name, int64_t number)
{
    struct template template = {0};
    struct arena arena = {0};
    const struct row_facts facts = page->facts;
    const struct row row = facts_make_row(&facts);
    bool more;

    page->facts.count = 0;
    template_open(&template, schema_statement(name));
    more = print_limited_row(page, &arena, &template.blocks.at[0], NULL, &row, number);
    arena_free(&arena);
    template_close(&template);
    return more;
}

int64_t page_text_print_rows(struct page_text *page, const char *name, int64_t id)
{
    struct template template = {0};
    const struct template_block *block;
    struct query *query;
    struct arena arena = {0}; /* keeps the texts of the current row */
    int64_t number = 0;
    size_t most = page->way == TEMPLATE_WHOLE ? SIZE_MAX - 1 : VALUE_LONG;
    int columns;

    template_open(&template, schema_statement(name));
    block = &template.blocks.at[0];
    query = db_query(page->db, block->sql);
    query_bind_integer(query, 1, id);
    if (page->bind)
        page->bind(page->context, query);
    columns = query_columns(query);
    struct value values[columns + 1];
    const char *names[columns + 1];
    struct row row = {values, names, columns};
    for (bool more = true; more && query_step(query); number += more) {
        arena_free(&arena);
        for (int i = 0; i < columns; i++) {
            values[i] = value_read(&arena, query, i, most);
            names[i] = query_name(query, i);
        }
        more = print_limited_row(page, &arena, block, query, &row, number);
    }
    if (!number && !query_failed(query))
        print_in_place_of_rows(page, &arena, block, &(struct row){0}, "none", 0);
    query_close(query);
    arena_free(&arena);
    template_close(&template);
    return number;
}

enum template_way page_text_choose_way(FILE *out, bool whole)
{
    if (whole)
        return TEMPLATE_WHOLE;
    return say_may_use_colour(out) ? TEMPLATE_COLOUR : TEMPLATE_LINES;
}
