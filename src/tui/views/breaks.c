/* tui/views/breaks.c -- the views `breaks`, graph breaks by reason, and `break`, one of them with its source.
 *
 * Runs in: the viewer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "trace/remedy.h"
#include "trace/torch_words.h"
#include "tui/list.h"
#include "tui/source.h"
#include "tui/text.h"

static const char breaks_sql[] =
    "SELECT MIN(b.graph_break_id) AS graph_break_id, substr(b.reason, 1, instr(b.reason || char(10), char(10)) - 1) AS reason,"
    " COUNT(*) AS times, c.qualname AS function, b.line AS line, MIN(r.qualname) AS \"the rest runs as\", SUM(m.end_ns - m.start_ns) AS compiling,"
    " MIN(m.start_ns) AS first, c.filename || ':' || COALESCE(b.line, c.first_line) AS \"where\", MIN(b.code_id) AS code_id,"
    " MIN(b.resume_code_id) AS resume_code_id, MIN(b.compile_id) AS compile_id "
    "FROM graph_break b LEFT JOIN compile m ON m.compile_id = b.compile_id LEFT JOIN code c ON c.code_id = b.code_id"
    " LEFT JOIN code r ON r.code_id = b.resume_code_id "
    "GROUP BY c.filename, c.qualname, c.first_line, b.line, 2 ORDER BY times DESC, compiling DESC, 1";

static const struct list_column breaks_columns[] = {
    {"graph_break_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"reason", AS_TEXT, 36, VIEW_NONE, NULL, NULL},
    {"times", AS_ALARM_COUNT, 0, VIEW_NONE, NULL, NULL},
    {"function", AS_TEXT, 16, VIEW_FUNCTION, NULL, "code_id"},
    {"line", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"the rest runs as", AS_TEXT, 10, VIEW_FUNCTION, NULL, "resume_code_id"},
    {"compiling", AS_DURATION, 0, VIEW_COMPILE, NULL, "compile_id"},
    {"first", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"where", AS_PATH, 10, VIEW_FUNCTION, NULL, "code_id"},
    {"code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"resume_code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"compile_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
};

static const struct list_spec breaks_spec = {
    .sql = breaks_sql, .columns = breaks_columns, .column_count = LENGTH(breaks_columns), .row = VIEW_BREAK,
    .empty = "no graph break was recorded", .title_column = 1,
};

static bool breaks_open(struct view *view)
{
    return list_open((struct list *)view, &breaks_spec);
}

static bool breaks_place(struct view *view, char **file, int64_t *line)
{
    return list_place((struct list *)view, "where", file, line);
}

static void breaks_subject(struct view *view, struct target *subject)
{
    const struct value *compile = list_value((struct list *)view, "compile_id"), *first = list_value((struct list *)view, "first");

    *subject = target_make(VIEW_COMPILE, compile ? compile->integer : 0, NULL, NULL);
    subject->at_ns = first ? first->integer : 0;
}

const struct view_ops view_breaks = {
    .name = "breaks", .summary = "graph breaks, by reason and place", .open = breaks_open, .place = breaks_place, .subject = breaks_subject, LIST_OPS,
};

/* ---- one graph break ------------------------------------------------------- */

static void remedy_put(struct doc *doc, const char *reason, const char *function, int64_t line, int torch)
{
    struct remedy_facts facts = {.text = reason, .function = function, .line = line, .torch = torch, .count = 1};
    char *remedy = remedy_for_break(&facts, NULL);

    if (remedy) {
        doc_part(doc, "What would have helped");
        doc_wrap(doc, "", 2, remedy, 800);
    }
    free(remedy);
}

static void break_build(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT c.qualname, c.filename, c.first_line, b.line, b.offset, b.reason, b.user_stack, r.qualname, b.resume_code_id, b.compile_id, m.label,"
        " m.start_ns, b.code_id, p.torch_version,"
        " (SELECT n.calls FROM code_total n WHERE n.code_id = b.resume_code_id) "
        "FROM graph_break b LEFT JOIN compile m ON m.compile_id = b.compile_id LEFT JOIN code c ON c.code_id = b.code_id"
        " LEFT JOIN code r ON r.code_id = b.resume_code_id LEFT JOIN process p ON p.process_id = c.process_id WHERE b.graph_break_id = ?1");
    char *file = NULL, *reason = NULL, *function = NULL;
    int64_t line = 0;
    int torch = 0;

    query_bind_integer(query, 1, doc->target.id);
    if (query_step(query)) {
        struct torch_reason split;
        char *what;
        file = prose_column(query, 1);
        reason = prose_column(query, 5);
        function = prose_column(query, 0);
        line = query_type(query, 3) == QUERY_NULL ? query_integer(query, 2) : query_integer(query, 3);
        torch = torch_version(query_text(query, 13, NULL));
        split = torch_reason_split(reason ? reason : "");
        what = split.what.text ? strndup(split.what.text, split.what.bytes) : NULL;
        snprintf(doc->title, sizeof doc->title, "%.60s:%" PRId64, doc_safe(doc, function, 60), line);
        doc_line(doc, MARK "r%s", doc_safe(doc, what, 400));
        free(what);
        doc_line(doc, "in         %s  " MARK "d%s:%" PRId64, doc_safe(doc, function, 200), doc_safe(doc, file, 300), line);
        doc_leads(doc, VIEW_FUNCTION, query_integer(query, 12), NULL, NULL);
        doc_line(doc, "while      compiling %s at %.6f s", query_type(query, 10) == QUERY_NULL ? "it" : doc_column(doc, query, 10, 40), (double)query_integer(query, 11) / 1e9);
        doc_leads(doc, VIEW_COMPILE, query_integer(query, 9), NULL, NULL);
        if (query_type(query, 8) != QUERY_NULL) {
            doc_line(doc, "then       the rest runs as %s, called %s times", doc_column(doc, query, 7, 200),
                     query_type(query, 14) == QUERY_NULL ? "?" : doc_count(doc, query_integer(query, 14)));
            doc_leads(doc, VIEW_FUNCTION, query_integer(query, 8), NULL, NULL);
        }
        doc->subject = target_make(VIEW_COMPILE, query_integer(query, 9), NULL, NULL);
        doc->subject.at_ns = query_integer(query, 11);
        remedy_put(doc, reason, function, line, torch);
        if (reason && strchr(reason, '\n')) {
            doc_part(doc, "Reason, as the compiler gave it");
            doc_text(doc, reason, 2, 80);
        }
        if (query_type(query, 6) != QUERY_NULL) {
            doc_part(doc, "Stack, innermost last");
            doc_text(doc, query_text(query, 6, NULL), 2, 80);
        }
        if (file) {
            struct source source = source_read(file);
            doc->file = strdup(file);
            doc->file_line = line;
            doc_part(doc, "Source");
            source_put(doc, db, &source, line > 6 ? line - 6 : 1, line + 6, line, NULL, 0);
            source_free(&source);
        }
    } else if (!query_failed(query)) {
        doc_line(doc, "the trace has no such graph break");
    }
    query_close(query);
    free(file);
    free(reason);
    free(function);
}

static const struct text_spec break_spec = {.build = break_build, .wide = true};

static bool break_open(struct view *view)
{
    return text_open((struct text *)view, &break_spec);
}

const struct view_ops view_break = {.name = "break", .summary = "one graph break, with its stack and source", .open = break_open, TEXT_OPS};
