/* tui/views/compile.c -- what C makes of the pages `compile` and `break`: what would have helped, and the source.
 *
 * Runs in: the viewer, in a thread. */
#include <stdlib.h>
#include <string.h>

#include "trace/cause.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/remedy.h"
#include "trace/source.h"
#include "trace/torch_words.h"
#include "tui/text.h"

/* Against the first cause of a compile: the words that `dyntrace why` has. Columns: its number, whether it decided, the cause,
 * the function, its kind, torch's version. */
static void compile_part(struct doc *doc, struct db *db, struct query *row, const char *name)
{
    enum { CAUSE = 2, FUNCTION = CAUSE + CAUSE_READ };
    struct cause cause;
    char *values = NULL, *function, *code, *remedy;

    (void)db;
    (void)name;
    if (query_integer(row, 0) != 1 || query_type(row, 1) == QUERY_NULL)
        return;
    cause = cause_read(row, CAUSE);
    function = prose_column(row, FUNCTION);
    code = prose_column(row, FUNCTION + 1);
    if (cause.expected && cause.actual && asprintf(&values, "%.100s, %.100s", cause_wanted(&cause), cause_seen(&cause)) < 0)
        values = NULL;
    struct remedy_facts facts = {.kind = cause.kind, .source = cause.source, .expected = cause.expected, .actual = cause.actual,
                                 .text = cause.text, .aspect = cause.aspect, .dimension = cause.dimension, .values = values,
                                 .function = function, .code = code, .count = 1,
                                 .torch = torch_version(query_text(row, FUNCTION + 2, NULL))};
    if ((remedy = remedy_for(ON_CAUSE, &facts, NULL))) {
        struct target target = target_make(VIEW_WHATIF, doc->target.id, NULL, NULL);
        target.about = VIEW_COMPILE;
        doc_line(doc, "    " MARK "gWhat would have helped" MARK "n, and what it would have made of the run: Enter");
        doc_target(doc, target);
        doc_wrap(doc, "", 4, remedy, 800);
    }
    free(remedy);
    free(values);
    free(function);
    free(code);
    cause_free(&cause);
}

const struct view_ops view_compile = {
    .name = "compile", .summary = "one run of the compiler, and why it was needed", .part = compile_part, .all = VIEW_COMPILES,
    PAGE_OPS,
};

/* Columns: reason, function, line, torch's version; of `source` file and line. */
static void break_part(struct doc *doc, struct db *db, struct query *row, const char *name)
{
    if (!strcmp(name, "source")) {
        int64_t line = query_integer(row, 1);
        struct source source = source_read(query_text(row, 0, NULL));
        source_put(doc, db, &source, line > 6 ? line - 6 : 1, line + 6, line, NULL, 0);
        source_free(&source);
    } else {
        char *reason = prose_column(row, 0), *function = prose_column(row, 1), *remedy;
        struct remedy_facts facts = {.text = reason, .function = function, .line = query_integer(row, 2),
                                     .torch = torch_version(query_text(row, 3, NULL)), .count = 1};
        if ((remedy = remedy_for(ON_BREAK, &facts, NULL))) {
            doc_part(doc, "What would have helped");
            doc_wrap(doc, "", 2, remedy, 800);
        }
        free(remedy);
        free(reason);
        free(function);
    }
}

const struct view_ops view_break = {
    .name = "break", .summary = "one graph break, with its stack and source", .part = break_part, .all = VIEW_BREAKS, PAGE_OPS,
};
