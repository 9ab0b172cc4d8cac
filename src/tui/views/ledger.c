/* tui/views/ledger.c -- the views `ledger`, every call of watched code and how it was decided, and `call`, one of them.
 *
 * Runs in: the viewer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "tui/list.h"
#include "tui/text.h"
#include "vocabulary.h"

/* ---- ledger ---------------------------------------------------------------- */

static const char ledger_sql[] =
    "SELECT l.lookup_id, l.start_ns AS at,"
    " (SELECT name FROM enum WHERE kind = 'outcome' AND value = l.outcome) AS outcome, c.qualname AS function, e.label AS entry,"
    " l.entries_checked AS checked, l.duration_ns AS lookup, f.end_ns - f.start_ns AS call, l.thread_id AS thread, s.text AS inputs,"
    " c.filename || ':' || c.first_line AS \"where\", l.code_id AS code_id, l.cache_entry_id AS cache_entry_id, t.process_id AS process_id,"
    " l.frame_id AS frame_id "
    "FROM lookup l LEFT JOIN frame f ON f.frame_id = l.frame_id LEFT JOIN thread t ON t.thread_id = l.thread_id"
    " LEFT JOIN code c ON c.code_id = l.code_id LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id"
    " LEFT JOIN signature s ON s.signature_id = l.signature_id";

static const struct list_column ledger_columns[] = {
    {"lookup_id", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"at", AS_TIME, 0, VIEW_REPLAY, NULL, NULL},
    {"outcome", AS_OUTCOME, 8, VIEW_NONE, NULL, NULL},
    {"function", AS_TEXT, 20, VIEW_FUNCTION, NULL, "code_id"},
    {"entry", AS_TEXT, 4, VIEW_ENTRY, NULL, "cache_entry_id"},
    {"checked", AS_COUNT, 0, VIEW_CHECKS, "lookup_id = %lld", NULL},
    {"lookup", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"call", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"thread", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"inputs", AS_TEXT, 12, VIEW_NONE, NULL, NULL},
    {"where", AS_PATH, 12, VIEW_FUNCTION, NULL, "code_id"},
    {"code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"cache_entry_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"process_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"frame_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
};

static const struct list_spec ledger_spec = {
    .sql = ledger_sql, .key = "lookup_id", .columns = ledger_columns, .column_count = LENGTH(ledger_columns), .sort = "lookup_id",
    .row = VIEW_CALL, .empty = "no call was looked up: nothing that compiles frames ran", .title_column = 3,
};

static bool ledger_open(struct view *view)
{
    return list_open((struct list *)view, &ledger_spec);
}

static void ledger_subject(struct view *view, struct target *subject)
{
    struct list *list = (struct list *)view;
    const struct value *at = list_value(list, "at");

    *subject = target_make(VIEW_CALL, list_id(list), NULL, NULL);
    subject->at_ns = at ? at->integer : 0;
}

static bool ledger_place(struct view *view, char **file, int64_t *line)
{
    return list_place((struct list *)view, "where", file, line);
}

const struct view_ops view_ledger = {
    .name = "ledger", .summary = "every call of watched code and how it was decided", .open = ledger_open, .subject = ledger_subject,
    .place = ledger_place, LIST_OPS,
};

/* ---- one call -------------------------------------------------------------- */

static void checks_put(struct doc *doc, struct db *db, int64_t lookup_id)
{
    struct query *query = db_query(db,
        "SELECT k.position, e.label, k.result, k.guards_run, e.guard_count, k.duration_ns, g.kind, g.source, g.expression, k.cache_entry_id "
        "FROM guard_check k LEFT JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id LEFT JOIN guard g ON g.guard_id = k.failed_guard_id "
        "WHERE k.lookup_id = ?1 ORDER BY k.position LIMIT 1000");
    bool any = false;

    query_bind_integer(query, 1, lookup_id);
    while (query_step(query)) {
        bool passed = !strcmp(query_text(query, 2, NULL), "pass");
        if (!any)
            doc_part(doc, "Entries tried, in this order");
        any = true;
        doc_line(doc, "  %s %s%s" MARK "n  %" PRId64 " of %" PRId64 " guards ran, %s", doc_fit(doc, doc_column(doc, query, 1, 30), 8),
                 passed ? MARK "g" : MARK "w", doc_fit(doc, doc_column(doc, query, 2, 20), 8), query_integer(query, 3), query_integer(query, 4),
                 query_type(query, 5) == QUERY_NULL ? "time not known" : doc_time(doc, query_integer(query, 5)));
        doc_leads(doc, VIEW_ENTRY, query_integer(query, 9), NULL, NULL);
        if (query_type(query, 6) != QUERY_NULL) {
            doc_line(doc, "           " MARK "b%s" MARK "n %s", doc_column(doc, query, 6, 60), doc_column(doc, query, 7, 200));
            doc_leads(doc, VIEW_ENTRY, query_integer(query, 9), NULL, NULL);
            doc_line(doc, "           %s", doc_column(doc, query, 8, 400));
        }
    }
    query_close(query);
}

static void stack_put(struct doc *doc, struct db *db, int64_t frame_id)
{
    struct query *query = db_query(db,
        "WITH RECURSIVE up(frame_id, parent_id, code_id, depth) AS ("
        " SELECT frame_id, parent_id, code_id, 0 FROM frame WHERE frame_id = ?1"
        " UNION ALL SELECT f.frame_id, f.parent_id, f.code_id, depth + 1 FROM up CROSS JOIN frame f ON f.frame_id = up.parent_id"
        "  WHERE depth < 200 AND f.frame_id < up.frame_id) "
        "SELECT c.qualname, c.filename, c.first_line, c.code_id FROM up LEFT JOIN code c ON c.code_id = up.code_id ORDER BY depth");
    bool any = false;

    query_bind_integer(query, 1, frame_id);
    while (query_step(query)) {
        if (!any)
            doc_part(doc, "Called by, innermost first");
        any = true;
        doc_line(doc, "  %s  " MARK "d%s:%" PRId64, doc_column(doc, query, 0, 100), doc_column(doc, query, 1, 200), query_integer(query, 2));
        doc_leads(doc, VIEW_FUNCTION, query_integer(query, 3), NULL, NULL);
    }
    query_close(query);
}

static void call_build(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT l.outcome, c.qualname, c.filename, c.first_line, l.start_ns,"
        " l.duration_ns, e.label, l.cache_entry_id, s.text, l.frame_id, l.code_id, l.thread_id, t.name, p.pid, f.end_ns - f.start_ns,"
        " (SELECT compile_id FROM compile WHERE frame_id = l.frame_id AND code_id IS l.code_id LIMIT 1) "
        "FROM lookup l LEFT JOIN code c ON c.code_id = l.code_id LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id"
        " LEFT JOIN signature s ON s.signature_id = l.signature_id LEFT JOIN thread t ON t.thread_id = l.thread_id"
        " LEFT JOIN process p ON p.process_id = t.process_id LEFT JOIN frame f ON f.frame_id = l.frame_id WHERE l.lookup_id = ?1");
    int64_t frame_id = 0;

    query_bind_integer(query, 1, doc->target.id);
    if (query_step(query)) {
        frame_id = query_integer(query, 9);
        snprintf(doc->title, sizeof doc->title, "%.100s #%" PRId64, doc_column(doc, query, 1, 80), doc->target.id);
        doc_line(doc, MARK "b%s" MARK "n  %s", outcome_word(query_integer(query, 0)), outcome_facts[outcome_of(query_integer(query, 0))].words);
        doc_line(doc, "function   %s  " MARK "d%s:%" PRId64, doc_column(doc, query, 1, 200), doc_column(doc, query, 2, 300), query_integer(query, 3));
        doc_leads(doc, VIEW_FUNCTION, query_integer(query, 10), NULL, NULL);
        doc->file = query_type(query, 2) == QUERY_NULL ? NULL : strdup(query_text(query, 2, NULL));
        doc->file_line = query_integer(query, 3);
        doc_line(doc, "at         %.6f s, thread %" PRId64 " %s of process %" PRId64, (double)query_integer(query, 4) / 1e9,
                 query_integer(query, 11), query_type(query, 12) == QUERY_NULL ? "" : doc_column(doc, query, 12, 60), query_integer(query, 13));
        doc_leads(doc, VIEW_REPLAY, doc->target.id, NULL, NULL);
        doc_line(doc, "lookup     %s", query_type(query, 5) == QUERY_NULL ? "time not known" : doc_time(doc, query_integer(query, 5)));
        if (query_type(query, 14) != QUERY_NULL)
            doc_line(doc, "the call   %s", doc_time(doc, query_integer(query, 14)));
        if (query_type(query, 7) != QUERY_NULL) {
            doc_line(doc, "ran        compiled code of %s", doc_column(doc, query, 6, 60));
            doc_leads(doc, VIEW_ENTRY, query_integer(query, 7), NULL, NULL);
        }
        if (query_type(query, 15) != QUERY_NULL) {
            doc_line(doc, "compiled   Enter shows that compile");
            doc_leads(doc, VIEW_COMPILE, query_integer(query, 15), NULL, NULL);
        }
        if (query_type(query, 8) != QUERY_NULL) {
            doc_part(doc, "Inputs");
            doc_text(doc, query_text(query, 8, NULL), 2, 60);
        }
        doc->subject = target_make(VIEW_CALL, doc->target.id, NULL, NULL);
        doc->subject.at_ns = query_integer(query, 4);
    } else if (!query_failed(query)) {
        doc_line(doc, "the trace has no such call");
    }
    query_close(query);
    checks_put(doc, db, doc->target.id);
    stack_put(doc, db, frame_id);
}

static const struct text_spec call_spec = {.build = call_build};

static bool call_open(struct view *view)
{
    return text_open((struct text *)view, &call_spec);
}

const struct view_ops view_call = {.name = "call", .summary = "one call: what was tried, and who called", .open = call_open, TEXT_OPS};
