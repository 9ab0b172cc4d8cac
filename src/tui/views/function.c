/* tui/views/function.c -- what C makes of the page `function`: where its code came from, and its source with marks.
 *
 * Runs in: the viewer, in a thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/source.h"
#include "trace/torch_words.h"
#include "tui/text.h"

enum { GUTTERS = 400, LINES_MOST = 1000 };

/* Columns: name, the code object that it was made from. */
static void origin_put(struct doc *doc, struct query *row)
{
    char *origin = NULL;
    int64_t line = 0;

    if (torch_resume(query_text(row, 0, NULL), &origin, &line))
        doc_line(doc, "the rest of %s after line %" PRId64 ", where its graph broke", doc_safe(doc, origin, 160), line);
    else if (query_type(row, 1) != QUERY_NULL)
        doc_line(doc, "made from another function: Enter shows it");
    if (query_type(row, 1) != QUERY_NULL)
        doc_leads(doc, VIEW_FUNCTION, query_integer(row, 1), NULL, NULL);
    free(origin);
}

/* What stands at the left of a line, by a row of schemas/tui/function-lines.sql. */
static struct gutter gutter_of(struct doc *doc, struct query *row, int64_t first, int64_t last)
{
    const char *name = query_text(row, 4, NULL);
    int64_t id = query_integer(row, 1), line = query_integer(row, 2), after = 0;
    int64_t self = query_integer(row, 5), all = query_integer(row, 7);
    struct gutter gutter = {.line = line, .id = id, .kind = line == first ? VIEW_NONE : VIEW_FUNCTION};
    char *function = NULL;

    if (!query_integer(row, 0)) {
        gutter = (struct gutter){line, MARK "rbreak" MARK "n", doc_print(doc, MARK "r<- %s", doc_safe(doc, name, 70)), id, VIEW_BREAK};
    } else if (torch_resume(name, &function, &after)) {
        gutter = (struct gutter){after >= first && after <= last ? after : line, MARK "aresum" MARK "n",
                                 doc_print(doc, MARK "aresumed: %s calls", doc_count(doc, query_integer(row, 6))), id, VIEW_FUNCTION};
    } else if (!strcmp(query_text(row, 3, NULL), "resume")) {
        gutter = (struct gutter){line, MARK "aresum" MARK "n", MARK "athe rest after a graph break", id, VIEW_FUNCTION};
    } else if (self > 0 && (double)self * 20 >= (double)all) {
        gutter.mark = doc_print(doc, MARK "%c%3.0f %%" MARK "n", (double)self * 2 >= (double)all ? 'r' : 'w',
                                100.0 * (double)self / (double)all);
        gutter.note = doc_print(doc, MARK "d%s own time, %s calls", doc_time(doc, self), doc_count(doc, query_integer(row, 6)));
    }
    free(function);
    return gutter;
}

/* Columns: file, first line. */
static void source_show(struct doc *doc, struct db *db, struct query *row)
{
    struct source source = source_read(query_text(row, 0, NULL));
    int64_t first = query_integer(row, 1), last = source.text ? source_end(&source, first) : first;
    struct query *query = page_query(doc, db, "function-lines");
    struct gutter gutter[GUTTERS];
    size_t count = 0;

    if (last > first + LINES_MOST)
        last = first + LINES_MOST;
    query_bind_integer(query, 2, first);
    query_bind_integer(query, 3, last);
    while (count < GUTTERS && query_step(query)) {
        gutter[count] = gutter_of(doc, query, first, last);
        count += gutter[count].mark != NULL;
    }
    query_close(query);
    source_put(doc, db, &source, first, last, 0, gutter, count);
    source_free(&source);
}

static void function_part(struct doc *doc, struct db *db, struct query *row, const char *name)
{
    if (!strcmp(name, "origin"))
        origin_put(doc, row);
    else
        source_show(doc, db, row);
}

const struct view_ops view_function = {
    .name = "function", .summary = "one function: calls, entries, recompiles, breaks, source", .part = function_part,
    .all = VIEW_FUNCTIONS, PAGE_OPS,
};
