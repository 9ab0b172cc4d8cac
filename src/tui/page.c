/* tui/page.c -- makes text views from templates in schemas/tui/, and adds source lines to them. See
 * tui/text.h. Runs in: the viewer, in a thread. */
#include "tui/text.h"

#include <inttypes.h>

#include "schema.h"
#include "trace/db.h"
#include "trace/source.h"

const char *page_list_codes(struct doc *doc, struct db *db, int64_t code_id)
{
    const char *codes = "(NULL)";

    db_rows(row, db, schema_statement("tui/codes"), code_id)
    {
        codes = doc_print(doc, "%s", query_whole_value(row, 0, NULL));
    }
    return codes;
}

static bool is_first_word_of_line(const struct template_line *line, const char *word)
{
    return !strcmp(line->word, word);
}

/* Fill in TEXT, a line of a template, for ROW, and add it to DOC with its target. If PART, it
 * becomes a heading, otherwise wrapped text. ARENA keeps strings that are needed only meanwhile. */
static void add_template_line(struct doc *doc, struct arena *arena, const struct row *row,
                              const char *text, bool part)
{
    const char *made = row_print(arena, row, text, TEMPLATE_MARKED);
    struct target target;

    if (!made)
        return;
    target = target_from_template(&doc->arena, row, text);
    made = doc_print(doc, "%s", made);
    if (part)
        doc_add_part(doc, made);
    else
        doc_add_wrapped_line(doc, made, target);
    doc_set_target(doc, target);
}

/* Return the whole text of the first field in TEXT, because the value in ROW may have been cut.
 * Returns NULL if the field is not a text. */
static const char *read_whole_field(struct query *query, const struct row *row, const char *text)
{
    const struct value *value = row_value_of_field(row, text);

    if (!value || value->type != QUERY_TEXT)
        return NULL;
    return query_whole_value(query, (int)(value - row->values), NULL);
}

static void add_page_part(struct doc *doc, struct db *db, struct query *row, const char *name)
{
    for (const struct page_part *part = doc->tui->parts; part->name; part++)
        if (!strcmp(part->name, name))
            part->put(doc, db, row);
}

/* Let the key o on the last line of DOC open the source of the code object of ROW. */
static void set_source_place_of_line(struct doc *doc, const struct row *row)
{
    struct doc_line *last = &doc->lines.at[doc->lines.count - 1];
    const struct value *file = row_value_of_field(row, "{filename}");
    bool has_file = file && file->type == QUERY_TEXT;

    if (has_file && row_integer_of_field(row, "{first_line}", &last->source_line))
        last->file = doc_print(doc, "%s", file->text);
}

/* May row NUMBER (from 0) of BLOCK be left out if the screen is full? Yes for rows after the first
 * N, if the template has a line `fill N`. */
static bool may_row_be_left_out(const struct template_block *block, int number)
{
    const char *least = block_text_after_word(block, "fill");

    return least && number > strtol(least, NULL, 10);
}

/* Add the heading that TEXT, a line of a template, makes of ROW. If the row before had the same
 * heading, add nothing. */
static void add_heading_once(struct doc *doc, struct arena *arena, const struct row *row,
                             const char *text, int number)
{
    const char *made = row_print(arena, row, text, TEMPLATE_MARKED);
    bool same = number && doc->heading && made && !strcmp(made, doc->heading);

    if (!made || same)
        return;
    doc->heading = doc_print(doc, "%s", made);
    add_template_line(doc, arena, row, text, true);
}

/* Add the line that TEXT, a line of a template, makes of ROW. If FILLING, and if the wrapped line
 * does not fit on the screen, add nothing and return false. */
static bool add_row_if_it_fits(struct doc *doc, struct arena *arena, const struct row *row,
                               const char *text, bool filling)
{
    size_t before = doc->lines.count;

    add_template_line(doc, arena, row, text, false);
    if (filling && (int)doc->lines.count > doc->rows - 1) {
        doc->lines.count = before;
        return false;
    }
    if (doc->lines.count > before)
        set_source_place_of_line(doc, row);
    return true;
}

/* Add the whole text of the field in REST. If WRAP, it is one paragraph of at most MOST bytes,
 * behind the words of REST. If not, its lines are separate lines, at most MOST. */
static void add_whole_field(struct doc *doc, struct query *query, const struct row *row,
                            const char *rest, size_t most, bool wrap)
{
    const char *text = read_whole_field(query, row, rest);
    int words = (int)strcspn(rest, "{");
    const char *line;

    if (!text)
        return;
    if (!wrap) {
        doc_add_wrapped_text(doc, text, 2, most);
        return;
    }
    line = doc_print(doc, "%.*s%s", words, rest, doc_safe(doc, text, most));
    doc_add_wrapped_line(doc, line, target_from_template(&doc->arena, row, rest));
}

static void add_title(struct doc *doc, struct arena *arena, const struct row *row, const char *text)
{
    const char *made = row_print(arena, row, text, TEMPLATE_PLAIN);
    size_t room = sizeof doc->title;

    snprintf(doc->title, room, "%s", made ? text_make_printable(arena, made, room - 4) : "");
}

static bool has_screen_room(const struct doc *doc)
{
    return (int)doc->lines.count + 1 < doc->rows;
}

/* A row of a query that is being added to a page, and what is needed for that. */
struct page_find_row_cell {
    struct doc *doc;
    struct db *db;
    struct arena *arena; /* keeps strings of this row only */
    struct query *query;
    const struct row *row;
    int number;   /* the number of this row of the query, from 0 */
    bool filling; /* leave this row out if the screen is full */
};

/* What a line of a template does with a row. The first word of the line tells which kind it is. */
enum line_kind {
    LINE_OTHER,
    LINE_HEADING, /* `#`: adds a heading, unless the row before had the same one */
    LINE_TEXT,    /* `|`: adds a line of text to the page */
    LINE_WHOLE,   /* `text`: adds the lines of a field to the page */
    LINE_WRAP,    /* `wrap`: adds a field to the page as one paragraph */
    LINE_CALL,    /* `call`: calls a C function for the row */
    LINE_TITLE,   /* `title`: sets the title of the view */
    LINE_SUBJECT, /* `subject`: sets what the page is about */
    LINE_START,   /* `start`: the cursor is at the next line when the page is opened */
    LINE_MORE,    /* `more N`: stands in place of all rows after the first N */
    LINE_FILL,    /* `fill N`: rows after the first N are left out if the screen is full */
};

static enum line_kind find_line_kind(const struct template_line *line)
{
    static const struct {
        const char *word;
        enum line_kind kind;
    } kinds[] = {
        {"#", LINE_HEADING},       {"|", LINE_TEXT},      {"text", LINE_WHOLE},
        {"wrap", LINE_WRAP},       {"call", LINE_CALL},   {"title", LINE_TITLE},
        {"subject", LINE_SUBJECT}, {"start", LINE_START}, {"more", LINE_MORE},
        {"fill", LINE_FILL},
    };

    for (size_t i = 0; i < array_count(kinds); i++)
        if (is_first_word_of_line(line, kinds[i].word))
            return kinds[i].kind;
    return LINE_OTHER;
}

/* Read the number at the beginning of TEXT into *NUMBER. If TEXT begins with no number, *NUMBER is
 * 0. Returns the text behind the number. */
static const char *read_number_prefix(char *text, long *number)
{
    char *rest;

    *number = strtol(text, &rest, 10);
    return rest + (*rest == ' ');
}

/* Do with the row what LINE of a template says. Returns false if no other row of the block
 * is to be added. */
static bool add_line_for_row(const struct page_find_row_cell *r, const struct template_line *line,
                             enum line_kind kind)
{
    struct doc *doc = r->doc;
    long most;
    const char *rest = read_number_prefix(line->rest, &most);

    switch (kind) {
    case LINE_HEADING:
        add_heading_once(doc, r->arena, r->row, line->rest, r->number);
        break;
    case LINE_TEXT:
        return add_row_if_it_fits(doc, r->arena, r->row, line->rest, r->filling);
    case LINE_WHOLE:
    case LINE_WRAP:
        add_whole_field(doc, r->query, r->row, rest, (size_t)most, kind == LINE_WRAP);
        break;
    case LINE_CALL:
        add_page_part(doc, r->db, r->query, line->rest);
        break;
    case LINE_TITLE:
        add_title(doc, r->arena, r->row, line->rest);
        break;
    case LINE_SUBJECT:
        doc->subject = target_from_template(&doc->arena, r->row, line->rest);
        break;
    case LINE_START:
        if (!doc->start)
            doc->start = doc->lines.count;
        break;
    case LINE_OTHER:
    case LINE_MORE:
    case LINE_FILL:
        break;
    }
    return true;
}

/* Add the row to the page, as the lines of BLOCK say. Returns false if no other row of the block
 * is to be added. */
static bool add_row_by_block(const struct page_find_row_cell *r, const struct template_block *block)
{
    for (size_t i = 0; i < block->lines.count; i++) {
        const struct template_line *line = &block->lines.at[i];
        enum line_kind kind = find_line_kind(line);
        bool is_full = r->filling && !has_screen_room(r->doc);
        long last;
        const char *more = read_number_prefix(line->rest, &last);
        if (kind == LINE_MORE && r->number == last) {
            add_template_line(r->doc, r->arena, r->row, more, false);
            return false;
        }
        if (kind == LINE_FILL)
            r->doc->fills = true;
        if (i == 0 && is_full)
            return false;
        if (!add_line_for_row(r, line, kind))
            return false;
    }
    return true;
}

/* Add the lines of BLOCK that begin with WORD, in place of its rows. WORD is "none" if there are no
 * rows, or "slow" if a first look leaves the rows out because the query is slow. */
static void add_lines_in_place_of_rows(struct doc *doc, const struct template_block *block,
                                       const char *word)
{
    static const struct row none = {0};

    list_each(line, &block->lines) {
        const char *text = line->rest;
        bool part = !strncmp(text, "# ", 2);
        if (part)
            text += strlen("# ");
        if (*line->rest && is_first_word_of_line(line, word))
            add_template_line(doc, &doc->arena, &none, text, part);
    }
}

static void add_block(struct doc *doc, struct db *db, const struct template_block *block)
{
    bool asks = *block->sql;
    struct query *query = asks ? db_query_with(db, block->sql, doc->target.id) : NULL;
    int columns = query_columns(query);
    struct value values[columns + 1];
    const char *names[columns + 1];
    struct arena arena = {0}; /* keeps strings of one row */
    struct row row = {0};
    struct page_find_row_cell r = {
        .doc = doc, .db = db, .arena = &arena, .query = query, .row = &row};
    bool more = true;

    if (!asks) {
        r.filling = may_row_be_left_out(block, 0);
        add_row_by_block(&r, block);
    }
    for (; more && query_step(query); r.number++) {
        row = (struct row){values, names, columns};
        arena_free(&arena);
        for (int i = 0; i < columns; i++) {
            values[i] = value_read(&arena, query, i, VALUE_TEXT);
            names[i] = query_name(query, i);
        }
        r.filling = may_row_be_left_out(block, r.number);
        more = add_row_by_block(&r, block);
    }
    if (asks && !r.number) {
        if (!query_failed(query))
            add_lines_in_place_of_rows(doc, block, "none");
    }
    arena_free(&arena);
    query_close(query);
}

void page_build_doc(struct doc *doc, struct db *db)
{
    struct template template = {0};
    const char *codes = NULL;

    if (doc->ops->all == VIEW_FUNCTIONS)
        codes = page_list_codes(doc, db, doc->target.id);
    view_template_open(&template, view_name(doc->target.kind), codes);
    list_each(block, &template.blocks) {
        doc->dense = doc->dense || block_text_after_word(block, "dense");
        if (doc->quick && block_text_after_word(block, "slow")) {
            add_lines_in_place_of_rows(doc, block, "slow");
            doc->more = true;
        } else {
            add_block(doc, db, block);
        }
    }
    template_close(&template);
}

/* Return TEXT as the screen can show it: tabs become blanks, and a long line is cut. The result is
 * borrowed from DOC. */
static const char *make_line_printable(struct doc *doc, const char *text)
{
    int indent = source_indentation(text);
    char *rest = doc_print(doc, "%.1000s", text + strspn(text, " \t"));

    for (char *tab = rest; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    if (indent < 0)
        indent = 0;
    if (indent > 400)
        indent = 400;
    return doc_print(doc, "%*s%s", indent, "", doc_safe(doc, rest, 1000));
}

/* Several gutters may belong to LINE. Combine them: take the first mark and the first note. */
static struct gutter combine_gutters_of_line(const struct gutter *gutter, size_t gutters,
                                             int64_t line)
{
    struct gutter found = {0};

    for (size_t i = 0; i < gutters; i++) {
        if (gutter[i].line != line)
            continue;
        if (!found.line)
            found = gutter[i];
        if (!found.note)
            found.note = gutter[i].note;
    }
    return found;
}

/* Was SOURCE read, and has it the line FROM? If not, adds the reason to DOC and returns false. If
 * the file is newer than the recording, adds a warning. */
static bool check_source_has_line(struct doc *doc, struct db *db, const struct source *source,
                                  int64_t from)
{
    int64_t started = db_meta_integer(db, "started_unix_ns", 0);

    if (!source->text) {
        doc_line(doc, "  " MARK "w%s", doc_safe(doc, source->why, 200));
        return false;
    }
    if (from < 1 || from > (int64_t)source->count) {
        doc_line(
            doc,
            "  " MARK
            "wthe source file has changed since: it has %zu lines, and this was at line %" PRId64,
            source->count, from);
        return false;
    }
    if (started > 0 && source->changed_ns > started)
        doc_line(doc, "  " MARK
                      "wthe source file was changed after this was recorded: lines may have moved");
    return true;
}

void source_add_lines(struct doc *doc, struct db *db, const struct source *source, int64_t from,
                      int64_t to, int64_t at, const struct gutter *gutter, size_t gutters)
{
    if (!check_source_has_line(doc, db, source, from))
        return;
    if (to > (int64_t)source->count)
        to = (int64_t)source->count;
    for (int64_t line = from; line <= to; line++) {
        struct gutter mark = combine_gutters_of_line(gutter, gutters, line);
        const char *bold = line == at ? MARK "b" : "";
        const char *left = line == at ? MARK "r-->" MARK "n" : "";
        const char *text = make_line_printable(doc, source->lines[line - 1]);
        const char *gap = mark.note ? "   " : "";
        const char *note = mark.note ? mark.note : "";
        struct doc_line *put;
        if (mark.line)
            left = mark.mark;
        left = doc_fit(doc, left, 6);
        put = doc_line(doc, "%s " MARK "d%5" PRId64 MARK "n %s%s%s%s", left, line, bold, text, gap,
                       note);
        put->source_line = line;
        if (mark.kind)
            doc_leads(doc, (enum view_kind)mark.kind, mark.id, NULL, NULL);
    }
}
