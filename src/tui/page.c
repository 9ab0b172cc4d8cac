/* tui/page.c -- a text view that is made by its file in schemas/tui/, and lines of source in one.
 * See tui/text.h.
 *
 * Runs in: the viewer, in a thread. */
#include "tui/text.h"

#include <inttypes.h>

#include "schema.h"
#include "trace/db.h"
#include "trace/source.h"

const char *page_codes(struct doc *doc, struct db *db, int64_t code_id)
{
    const char *codes = "(NULL)";

    db_rows(row, db, schema_statement("tui/codes"), code_id)
    {
        codes = doc_print(doc, "%s", query_whole(row, 0, NULL));
    }
    return codes;
}

static bool is(const struct template_line *line, const char *word)
{
    return !strcmp(line->word, word);
}

/* A line or a heading, with where it leads; what is printed on the way is in ARENA. */
static void line_put(struct doc *doc, struct arena *arena, const struct row *row, const char *text,
                     bool part)
{
    const char *made = row_print(arena, row, text, TEMPLATE_MARKED);
    struct target target = made ? row_target(&doc->arena, row, text) : (struct target){0};

    if (!made)
        return;
    if (part)
        doc_part(doc, "%s", made);
    else
        doc_wrap(doc, doc_print(doc, "%s", made), target);
    doc_target(doc, target);
}

/* The text of the first field of TEXT, whole, or NULL. */
static const char *field_whole(struct query *query, const struct row *row, const char *text)
{
    const struct value *value = row_field(row, text);

    if (!value || value->type != QUERY_TEXT)
        return NULL;
    return query_whole(query, (int)(value - row->values), NULL);
}

static void part_put(struct doc *doc, struct db *db, struct query *row, const char *name)
{
    for (const struct page_part *part = doc->tui->parts; part->name; part++)
        if (!strcmp(part->name, name))
            part->put(doc, db, row);
}

/* The last line is of ROW: `o` opens the place of its code. */
static void place_put(struct doc *doc, const struct row *row)
{
    struct doc_line *last = &doc->lines.at[doc->lines.count - 1];
    const struct value *file = row_field(row, "{filename}");
    bool has_file = file && file->type == QUERY_TEXT;

    if (has_file && row_integer(row, "{first_line}", &last->source_line))
        last->file = doc_print(doc, "%s", file->text);
}

/* Is row NUMBER of BLOCK, counted from 0, shown only where there is room? */
static bool fills(const struct template_block *block, int number)
{
    const char *least = block_word(block, "fill");

    return least && number > strtol(least, NULL, 10);
}

/* A heading, where it is another one than that of the row before. */
static void heading_put(struct doc *doc, struct arena *arena, const struct row *row,
                        const char *text, int number)
{
    const char *made = row_print(arena, row, text, TEMPLATE_MARKED);
    bool same = number && doc->heading && made && !strcmp(made, doc->heading);

    if (!made || same)
        return;
    doc->heading = doc_print(doc, "%s", made);
    line_put(doc, arena, row, text, true);
}

/* A line of a row. False: it wraps, and there is room for its first line only. FILLING: the row is
 * shown only where there is room. */
static bool filled_put(struct doc *doc, struct arena *arena, const struct row *row,
                       const char *text, bool filling)
{
    size_t before = doc->lines.count;

    line_put(doc, arena, row, text, false);
    if (filling && (int)doc->lines.count > doc->rows - 1) {
        doc->lines.count = before;
        return false;
    }
    if (doc->lines.count > before)
        place_put(doc, row);
    return true;
}

/* The whole of a field, at most MOST bytes: as lines of its own, or as one behind the words before
 * the field in REST. */
static void whole_put(struct doc *doc, struct query *query, const struct row *row, const char *rest,
                      size_t most, bool wrap)
{
    const char *text = field_whole(query, row, rest);
    const char *safe;
    int words = (int)strcspn(rest, "{");

    if (!text)
        return;
    if (!wrap) {
        doc_text(doc, text, 2, most);
        return;
    }
    safe = doc_safe(doc, text, most);
    doc_wrap(doc, doc_print(doc, "%.*s%s", words, rest, safe), row_target(&doc->arena, row, rest));
}

static void title_put(struct doc *doc, struct arena *arena, const struct row *row, const char *text)
{
    const char *made = row_print(arena, row, text, TEMPLATE_PLAIN);
    size_t room = sizeof doc->title;

    snprintf(doc->title, room, "%s", made ? text_safe(arena, made, room - 4) : "");
}

static bool has_room(const struct doc *doc)
{
    return (int)doc->lines.count + 1 < doc->rows;
}

/* Put row NUMBER of a block. False: the block ends with it. */
static bool row_put(struct doc *doc, struct db *db, struct arena *arena,
                    const struct template_block *block, struct query *query, const struct row *row,
                    int number)
{
    const bool filling = fills(block, number);

    for (size_t i = 0; i < block->lines.count; i++) {
        const struct template_line *line = &block->lines.at[i];
        char *rest = line->rest;
        long most = strtol(rest, &rest, 10);
        rest += *rest == ' ';
        if (is(line, "more") && number == most) {
            line_put(doc, arena, row, rest, false);
            return false;
        }
        if (is(line, "fill"))
            doc->fills = true;
        if (!i && filling && !has_room(doc))
            return false;
        if (is(line, "#"))
            heading_put(doc, arena, row, line->rest, number);
        else if (is(line, "|") && !filled_put(doc, arena, row, line->rest, filling))
            return false;
        else if (is(line, "text") || is(line, "wrap"))
            whole_put(doc, query, row, rest, (size_t)most, is(line, "wrap"));
        else if (is(line, "call"))
            part_put(doc, db, query, line->rest);
        else if (is(line, "title"))
            title_put(doc, arena, row, line->rest);
        else if (is(line, "subject"))
            doc->subject = row_target(&doc->arena, row, line->rest);
        else if (is(line, "start") && !doc->start)
            doc->start = doc->lines.count;
    }
    return true;
}

/* The lines that stand there in place of rows: WORD is "none", or "slow" for the first look. */
static void instead_put(struct doc *doc, const struct template_block *block, const char *word)
{
    static const struct row none = {0};

    for (size_t i = 0; i < block->lines.count; i++) {
        const char *text = block->lines.at[i].rest;
        bool part = text[0] == '#' && text[1] == ' ';
        if (*text && is(&block->lines.at[i], word))
            line_put(doc, &doc->arena, &none, part ? text + 2 : text, part);
    }
}

static void block_put(struct doc *doc, struct db *db, const struct template_block *block)
{
    bool asks = *block->sql;
    struct query *query = asks ? db_asked(db, block->sql, doc->target.id) : NULL;
    int number = 0;
    int columns = query_columns(query);
    struct value values[columns + 1];
    const char *names[columns + 1];
    struct arena arena = {0}; /* of a row */
    bool more = true;

    if (!asks)
        row_put(doc, db, &arena, block, NULL, &(struct row){0}, 0);
    for (; more && query_step(query); number++) {
        struct row row = {values, names, columns};
        arena_free(&arena);
        for (int i = 0; i < columns; i++) {
            values[i] = value_read(&arena, query, i, VALUE_TEXT);
            names[i] = query_name(query, i);
        }
        more = row_put(doc, db, &arena, block, query, &row, number);
    }
    if (asks && !number && !query_failed(query))
        instead_put(doc, block, "none");
    arena_free(&arena);
    query_close(query);
}

void page_build(struct doc *doc, struct db *db)
{
    struct template template = {0};
    const char *codes = NULL;

    if (doc->ops->all == VIEW_FUNCTIONS)
        codes = page_codes(doc, db, doc->target.id);
    view_template_open(&template, view_name(doc->target.kind), codes);
    for (size_t i = 0; i < template.blocks.count; i++) {
        const struct template_block *block = &template.blocks.at[i];
        doc->dense = doc->dense || block_word(block, "dense");
        if (doc->quick && block_word(block, "slow")) {
            instead_put(doc, block, "slow");
            doc->more = true;
        } else {
            block_put(doc, db, block);
        }
    }
    template_close(&template);
}

static int indentation(const char *line)
{
    int columns = 0;

    for (; *line == ' ' || *line == '\t'; line++)
        columns = *line == '\t' ? (columns / 8 + 1) * 8 : columns + 1;
    return *line ? columns : -1; /* an empty line has none */
}

/* TEXT, at the margin, belongs to what is defined by it or before it. */
static bool head_goes_on(const char *text)
{
    static const char *const words[] = {")", "@", "def ", "async ", "class "};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(text, words[i], strlen(words[i])))
            return true;
    return false;
}

int64_t source_end(const struct source *source, int64_t first)
{
    int64_t last = first;
    int outer;
    bool body = false;

    if (first < 1 || first > (int64_t)source->count)
        return first;
    outer = indentation(source->lines[first - 1]);
    for (int64_t line = first + 1; line <= (int64_t)source->count; line++) {
        int here = indentation(source->lines[line - 1]);
        const char *text = source->lines[line - 1];
        bool at_margin;
        if (here < 0)
            continue;
        text += strspn(text, " \t");
        at_margin = here <= outer && *text != '#'; /* a comment there does not end it */
        if (at_margin && (body || !head_goes_on(text)))
            break;
        body = body || here > outer;
        last = line;
    }
    return last;
}

/* TEXT with tabs as spaces and not too long. Borrowed from DOC. */
static const char *line_shown(struct doc *doc, const char *text)
{
    int indent = indentation(text);
    char *rest = doc_print(doc, "%.1000s", text + strspn(text, " \t"));

    for (char *tab = rest; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    return doc_print(doc, "%*s%s",
                     indent < 0     ? 0
                     : indent < 400 ? indent
                                    : 400,
                     "", doc_safe(doc, rest, 1000));
}

void source_put(struct doc *doc, struct db *db, const struct source *source, int64_t from,
                int64_t to, int64_t at, const struct gutter *gutter, size_t gutters)
{
    int64_t started = db_meta_integer(db, "started_unix_ns", 0);

    if (!source->text) {
        doc_line(doc, "  " MARK "w%s", doc_safe(doc, source->why, 200));
        return;
    }
    if (from < 1 || from > (int64_t)source->count) {
        doc_line(
            doc,
            "  " MARK
            "wthe source file has changed since: it has %zu lines, and this was at line %" PRId64,
            source->count, from);
        return;
    }
    if (started > 0 && source->changed_ns > started)
        doc_line(doc, "  " MARK
                      "wthe source file was changed after this was recorded: lines may have moved");
    for (int64_t line = from; line <= to && line <= (int64_t)source->count; line++) {
        const struct gutter *mark = NULL;
        const char *note = NULL;
        const char *left = line == at ? MARK "r-->" MARK "n" : "";
        const char *bold = line == at ? MARK "b" : "";
        const char *text = line_shown(doc, source->lines[line - 1]);
        struct doc_line *put;
        for (size_t i = 0; i < gutters; i++) {
            if (gutter[i].line != line)
                continue;
            if (!mark)
                mark = &gutter[i];
            if (!note)
                note = gutter[i].note;
        }
        left = doc_fit(doc, mark ? mark->mark : left, 6);
        put = doc_line(doc, "%s " MARK "d%5" PRId64 MARK "n %s%s%s%s", left, line, bold, text,
                       note ? "   " : "", note ? note : "");
        put->source_line = line;
        if (mark && mark->kind)
            doc_leads(doc, (enum view_kind)mark->kind, mark->id, NULL, NULL);
    }
}
