/* tui/views/recompiles.c -- the views `recompiles`, grouped by cause; `causes`, each of them; `compiles`; and `compile`, one.
 *
 * Runs in: the viewer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/cause.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/remedy.h"
#include "trace/torch_words.h"
#include "tui/list.h"
#include "tui/text.h"

/* ---- recompiles, by cause -------------------------------------------------- */

/* One row of each compile and guard: several older entries may have failed by the same. */
#define DECIDED \
    "decided AS MATERIALIZED (SELECT r.rowid AS id, r.compile_id, r.kind, r.source," \
    " r.expected, r.actual, r.text, m.code_id, m.start_ns, m.end_ns - m.start_ns AS ns," \
    " c.filename, c.qualname, c.first_line," \
    " row_number() OVER (PARTITION BY r.compile_id, r.kind, r.source ORDER BY r.rowid) AS nth " \
    "FROM recompile_cause r LEFT JOIN compile m ON m.compile_id = r.compile_id LEFT JOIN code c ON c.code_id = m.code_id" \
    " WHERE COALESCE(r.ordinal, 0) = 0)"

static const char recompiles_sql[] =
    "WITH " DECIDED ","
    " seen AS MATERIALIZED (SELECT filename, qualname, first_line, kind, source, actual, MIN(id) AS id FROM decided WHERE actual IS NOT NULL"
    "  GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 7),"
    " grouped AS MATERIALIZED (SELECT MIN(id) AS id, filename, qualname, first_line, kind, source, COUNT(*) AS recompiles, SUM(ns) AS ns,"
    "  MIN(start_ns) AS first, MAX(start_ns) AS last, MIN(code_id) AS code_id FROM decided WHERE nth = 1"
    "  GROUP BY filename, qualname, first_line, kind, source) "
    "SELECT d.id AS id, d.qualname AS function, d.recompiles AS recompiles, d.source AS source, x.expected AS expected,"
    " (SELECT group_concat(substr(v.actual, 1, 60), ', ') FROM (SELECT actual FROM seen v WHERE v.filename IS d.filename"
    "   AND v.qualname IS d.qualname AND v.first_line IS d.first_line AND v.kind IS d.kind AND v.source IS d.source LIMIT 12) v) AS \"then\","
    " d.kind AS kind, d.ns AS compiling, d.first AS first, d.last AS last, d.filename || ':' || d.first_line AS \"where\", x.text AS text,"
    " d.code_id AS code_id "
    "FROM grouped d JOIN decided x ON x.id = d.id ORDER BY d.recompiles DESC, d.ns DESC, d.id";

/* The causes that are in the same row of that as cause %lld. */
#define SAME_CAUSE \
    "kind IS (SELECT r.kind FROM recompile_cause r WHERE r.rowid = %lld)" \
    " AND source IS (SELECT r.source FROM recompile_cause r WHERE r.rowid = %lld)" \
    " AND code_id IN (SELECT same.code_id FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id" \
    " JOIN code one ON one.code_id = m.code_id JOIN code same ON same.filename IS one.filename AND same.qualname IS one.qualname" \
    " AND same.first_line IS one.first_line WHERE r.rowid = %lld)"

static const struct list_column recompiles_columns[] = {
    {"id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"function", AS_TEXT, 16, VIEW_NONE, NULL, NULL},
    {"recompiles", AS_ALARM_COUNT, 0, VIEW_NONE, NULL, NULL},
    {"source", AS_TEXT, 16, VIEW_NONE, NULL, NULL},
    {"expected", AS_TEXT, 13, VIEW_NONE, NULL, NULL},
    {"then", AS_TEXT, 14, VIEW_NONE, NULL, NULL},
    {"kind", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"compiling", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"first", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"last", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"where", AS_PATH, 10, VIEW_FUNCTION, NULL, "code_id"},
    {"text", AS_TEXT, 10, VIEW_NONE, NULL, NULL},
    {"code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
};

static const struct list_spec recompiles_spec = {
    .sql = recompiles_sql, .columns = recompiles_columns, .column_count = LENGTH(recompiles_columns), .row = VIEW_CAUSES,
    .row_where = SAME_CAUSE, .empty = "nothing was compiled again", .title_column = 1,
};

static bool recompiles_open(struct view *view)
{
    return list_open((struct list *)view, &recompiles_spec);
}

static bool where_place(struct view *view, char **file, int64_t *line)
{
    return list_place((struct list *)view, "where", file, line);
}

static void recompiles_subject(struct view *view, struct target *subject)
{
    const struct value *code = list_value((struct list *)view, "code_id");

    *subject = target_make(VIEW_FUNCTION, code ? code->integer : 0, NULL, NULL);
}

const struct view_ops view_recompiles = {
    .name = "recompiles", .summary = "recompiles, by function and cause, with what the values were", .open = recompiles_open,
    .place = where_place, .subject = recompiles_subject, LIST_OPS,
};

/* ---- causes ---------------------------------------------------------------- */

static const char causes_sql[] =
    "SELECT r.rowid AS id, m.start_ns AS at, c.qualname AS function, m.label AS compile, COALESCE(e.label, '#' || r.cache_entry_id) AS \"older entry\","
    " r.source, r.expected AS expected, r.actual AS actual, r.kind,"
    " m.end_ns - m.start_ns AS compiling, r.ordinal AS ordinal, r.how AS how, r.text, r.compile_id AS compile_id,"
    " r.cache_entry_id AS cache_entry_id, m.code_id AS code_id, c.filename || ':' || c.first_line AS \"where\" "
    "FROM recompile_cause r LEFT JOIN compile m ON m.compile_id = r.compile_id LEFT JOIN code c ON c.code_id = m.code_id"
    " LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id "
    "ORDER BY m.start_ns, r.cache_entry_id, r.ordinal";

static const struct list_column causes_columns[] = {
    {"id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"at", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"function", AS_TEXT, 10, VIEW_FUNCTION, NULL, "code_id"},
    {"compile", AS_TEXT, 6, VIEW_NONE, NULL, NULL},
    {"older entry", AS_TEXT, 6, VIEW_ENTRY, NULL, "cache_entry_id"},
    {"source", AS_TEXT, 16, VIEW_NONE, NULL, NULL},
    {"expected", AS_TEXT, 13, VIEW_NONE, NULL, NULL},
    {"actual", AS_TEXT, 13, VIEW_NONE, NULL, NULL},
    {"kind", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"compiling", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"ordinal", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"how", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"text", AS_TEXT, 10, VIEW_NONE, NULL, NULL},
    {"compile_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"cache_entry_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"where", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
};

static const struct list_spec causes_spec = {
    .sql = causes_sql, .columns = causes_columns, .column_count = LENGTH(causes_columns), .row = VIEW_COMPILE, .row_id = "compile_id",
    .empty = "nothing was compiled again", .title_column = 2,
};

static bool causes_open(struct view *view)
{
    return list_open((struct list *)view, &causes_spec);
}

static void compile_row_subject(struct view *view, struct target *subject)
{
    const struct value *compile = list_value((struct list *)view, "compile_id"), *at = list_value((struct list *)view, "at");

    *subject = target_make(VIEW_COMPILE, compile ? compile->integer : 0, NULL, NULL);
    subject->at_ns = at ? at->integer : 0;
}

const struct view_ops view_causes = {
    .name = "causes", .summary = "each guard that made a recompile necessary", .open = causes_open, .place = where_place,
    .subject = compile_row_subject, LIST_OPS,
};

/* ---- compiles -------------------------------------------------------------- */

static const char compiles_sql[] =
    "SELECT m.compile_id, m.start_ns AS at, m.outcome AS outcome, c.qualname AS function, m.label AS label, m.end_ns - m.start_ns AS compiling,"
    " (SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id) AS breaks,"
    " (SELECT COUNT(*) FROM recompile_cause r WHERE r.compile_id = m.compile_id) AS causes,"
    " substr(m.reason, 1, instr(m.reason || char(10), char(10)) - 1) AS reason, c.filename || ':' || c.first_line AS \"where\","
    " m.code_id AS code_id, m.cache_entry_id AS cache_entry_id "
    "FROM compile m LEFT JOIN code c ON c.code_id = m.code_id";

static const struct list_column compiles_columns[] = {
    {"compile_id", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"at", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"outcome", AS_OUTCOME, 8, VIEW_NONE, NULL, NULL},
    {"function", AS_TEXT, 10, VIEW_FUNCTION, NULL, "code_id"},
    {"label", AS_TEXT, 4, VIEW_ENTRY, NULL, "cache_entry_id"},
    {"compiling", AS_DURATION, 0, VIEW_NONE, NULL, NULL},
    {"breaks", AS_ALARM_COUNT, 0, VIEW_BREAKS, "compile_id = %lld", NULL},
    {"causes", AS_ALARM_COUNT, 0, VIEW_CAUSES, "compile_id = %lld", NULL},
    {"reason", AS_TEXT, 24, VIEW_NONE, NULL, NULL},
    {"where", AS_PATH, 10, VIEW_FUNCTION, NULL, "code_id"},
    {"code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"cache_entry_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
};

static const struct list_spec compiles_spec = {
    .sql = compiles_sql, .key = "compile_id", .columns = compiles_columns, .column_count = LENGTH(compiles_columns), .sort = "compile_id",
    .row = VIEW_COMPILE, .empty = "nothing was compiled", .title_column = 3,
};

static bool compiles_open(struct view *view)
{
    return list_open((struct list *)view, &compiles_spec);
}

static void compiles_subject(struct view *view, struct target *subject)
{
    compile_row_subject(view, subject);
}

const struct view_ops view_compiles = {
    .name = "compiles", .summary = "every run of the compiler", .open = compiles_open, .place = where_place, .subject = compiles_subject, LIST_OPS,
};

/* ---- one compile ----------------------------------------------------------- */

/* What would have helped against a cause: the words that `dyntrace why` has. */
static void remedy_put(struct doc *doc, struct db *db, int64_t code_id, const struct cause *cause)
{
    struct query *query = db_query(db, "SELECT c.qualname, c.kind, p.torch_version FROM code c LEFT JOIN process p ON p.process_id = c.process_id"
                                       " WHERE c.code_id = ?1");
    char *values = NULL, *function = NULL, *code = NULL, *remedy;
    struct remedy_facts facts = {.kind = cause->kind, .source = cause->source, .expected = cause->expected, .actual = cause->actual,
                                 .text = cause->text, .aspect = cause->aspect, .dimension = cause->dimension, .count = 1};

    query_bind_integer(query, 1, code_id);
    if (query_step(query)) {
        facts.function = function = prose_column(query, 0);
        facts.code = code = prose_column(query, 1);
        facts.torch = torch_version(query_text(query, 2, NULL));
    }
    query_close(query);
    if (cause->expected && cause->actual && asprintf(&values, "%.100s, %.100s", cause_wanted(cause), cause_seen(cause)) < 0)
        values = NULL;
    facts.values = values;
    if ((remedy = remedy_for_cause(&facts, NULL))) {
        doc_line(doc, "    " MARK "gWhat would have helped" MARK "n, and what it would have made of the run: Enter");
        doc_leads(doc, VIEW_WHATIF, doc->target.id, NULL, NULL);
        doc->lines[doc->count - 1].target.about = VIEW_COMPILE;
        doc_wrap(doc, "", 4, remedy, 800);
    }
    free(remedy);
    free(values);
    free(function);
    free(code);
}

static void causes_put(struct doc *doc, struct db *db, int64_t code_id)
{
    struct query *query = db_query(db,
        "SELECT COALESCE(e.label, '#' || r.cache_entry_id), r.how, COALESCE(r.ordinal, 0), " CAUSE_COLUMNS
        " FROM recompile_cause r LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id"
        " WHERE r.compile_id = ?1 ORDER BY r.cache_entry_id, r.ordinal, r.rowid LIMIT 200");
    bool any = false;

    query_bind_integer(query, 1, doc->target.id);
    while (query_step(query)) {
        struct cause c = cause_read(query, 3);
        const char *about = c.source ? c.source : c.kind;
        bool also = query_integer(query, 2);
        if (!any) {
            doc_part(doc, "Why no older entry fitted");
            doc->start = doc->count;
        }
        if (also)
            doc_line(doc, "    " MARK "dand " MARK "n%s" MARK "d would have failed too: wanted %s, was %s", doc_safe(doc, about, 120),
                     doc_safe(doc, c.expected, 80), doc_safe(doc, c.actual, 80));
        else if (c.expected && c.actual)
            doc_line(doc, "  " MARK "b%s" MARK "n was " MARK "r%s" MARK "n; entry %s wanted " MARK "b%s" MARK "n", doc_safe(doc, about, 160),
                     doc_safe(doc, c.actual, 160), doc_column(doc, query, 0, 40), doc_safe(doc, c.expected, 160));
        else
            doc_line(doc, "  entry %s did not fit: " MARK "b%s" MARK "n", doc_column(doc, query, 0, 40), doc_safe(doc, c.text ? c.text : c.source, 300));
        doc_leads(doc, VIEW_ENTRY, c.entry_id, NULL, NULL);
        if (!also) {
            doc_line(doc, "    " MARK "d%s, %s: %s", doc_safe(doc, c.kind, 60), doc_column(doc, query, 1, 30), doc_safe(doc, c.text, 400));
            doc_leads(doc, VIEW_ENTRY, c.entry_id, NULL, NULL);
            if (!any)
                remedy_put(doc, db, code_id, &c);
        }
        any = true;
        cause_free(&c);
    }
    query_close(query);
}

static void phases_put(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db, "SELECT name, start_ns, end_ns - start_ns FROM compile_phase WHERE compile_id = ?1 ORDER BY start_ns, end_ns DESC LIMIT 60");
    bool any = false;

    query_bind_integer(query, 1, doc->target.id);
    while (query_step(query)) {
        const char *words = torch_phase_words(query_text(query, 0, NULL));
        if (!any)
            doc_part(doc, "Where its time went");
        any = true;
        doc_line(doc, "  %10s  %s%s%s", query_type(query, 2) == QUERY_NULL ? "?" : doc_time(doc, query_integer(query, 2)), doc_column(doc, query, 0, 60),
                 words ? "  " MARK "d" : "", words ? words : "");
    }
    query_close(query);
}

static void made_put(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT b.graph_break_id, b.line, substr(b.reason, 1, 400), r.qualname FROM graph_break b LEFT JOIN code r ON r.code_id = b.resume_code_id"
        " WHERE b.compile_id = ?1 ORDER BY b.graph_break_id LIMIT 100");
    bool any = false;

    query_bind_integer(query, 1, doc->target.id);
    while (query_step(query)) {
        struct torch_reason reason = torch_reason_split(query_text(query, 2, NULL));
        char *what = reason.what.text ? strndup(reason.what.text, reason.what.bytes) : NULL;
        if (!any)
            doc_part(doc, "Graph breaks");
        any = true;
        doc_line(doc, "  line %" PRId64 "  %s", query_integer(query, 1), doc_safe(doc, what, 160));
        doc_leads(doc, VIEW_BREAK, query_integer(query, 0), NULL, NULL);
        free(what);
    }
    query_close(query);
    query = db_query(db, "SELECT name, node_count FROM graph WHERE compile_id = ?1 ORDER BY graph_id LIMIT 100");
    query_bind_integer(query, 1, doc->target.id);
    any = false;
    while (query_step(query)) {
        if (!any)
            doc_part(doc, "Graphs");
        any = true;
        doc_line(doc, "  %s  %" PRId64 " nodes", doc_column(doc, query, 0, 80), query_integer(query, 1));
    }
    query_close(query);
}

static void compile_build(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT c.qualname, c.filename, c.first_line, m.label, m.outcome, m.start_ns, m.end_ns - m.start_ns, m.reason, m.sticky, m.cache_entry_id,"
        " m.code_id, (SELECT lookup_id FROM lookup l WHERE l.code_id = m.code_id AND l.frame_id = m.frame_id LIMIT 1),"
        " (SELECT s.text FROM lookup l JOIN signature s ON s.signature_id = l.signature_id WHERE l.code_id = m.code_id AND l.frame_id = m.frame_id LIMIT 1) "
        "FROM compile m LEFT JOIN code c ON c.code_id = m.code_id WHERE m.compile_id = ?1");
    int64_t code_id = 0;

    query_bind_integer(query, 1, doc->target.id);
    if (query_step(query)) {
        code_id = query_integer(query, 10);
        snprintf(doc->title, sizeof doc->title, "%.90s %.20s", doc_column(doc, query, 0, 70), query_type(query, 3) == QUERY_NULL ? "" : doc_column(doc, query, 3, 20));
        doc_line(doc, MARK "b%s" MARK "n  " MARK "d%s:%" PRId64, doc_column(doc, query, 0, 200), doc_column(doc, query, 1, 300), query_integer(query, 2));
        doc_leads(doc, VIEW_FUNCTION, code_id, NULL, NULL);
        doc->file = query_type(query, 1) == QUERY_NULL ? NULL : strdup(query_text(query, 1, NULL));
        doc->file_line = query_integer(query, 2);
        doc_line(doc, "compile    %s at %.6f s, took %s", query_type(query, 3) == QUERY_NULL ? "(no label)" : doc_column(doc, query, 3, 40),
                 (double)query_integer(query, 5) / 1e9, query_type(query, 6) == QUERY_NULL ? "no end" : doc_time(doc, query_integer(query, 6)));
        if (query_type(query, 11) != QUERY_NULL)
            doc_leads(doc, VIEW_CALL, query_integer(query, 11), NULL, NULL);
        doc_line(doc, "outcome    %s%s%s", !strcmp(query_text(query, 4, NULL), "compiled") ? MARK "g" : MARK "w", doc_column(doc, query, 4, 40),
                 query_type(query, 8) == QUERY_NULL ? "" : query_integer(query, 8) ? MARK "n, and it is never asked again" : MARK "n; it is asked again");
        if (query_type(query, 9) != QUERY_NULL) {
            doc_line(doc, "made       a cache entry: Enter shows its guards, graphs and bytecode");
            doc_leads(doc, VIEW_ENTRY, query_integer(query, 9), NULL, NULL);
        }
        if (query_type(query, 7) != QUERY_NULL) {
            const char *text = query_text(query, 7, NULL);
            if (strchr(text, '\n')) {
                doc_part(doc, "Reason");
                doc_text(doc, text, 2, 60);
            } else {
                doc_wrap(doc, "reason     ", 0, text, 600);
            }
        }
        if (query_type(query, 12) != QUERY_NULL) {
            doc_wrap(doc, "inputs     ", 0, query_text(query, 12, NULL), 600);
            doc_leads(doc, VIEW_CALL, query_integer(query, 11), NULL, NULL);
        }
        doc->subject = target_make(VIEW_COMPILE, doc->target.id, NULL, NULL);
        doc->subject.at_ns = query_integer(query, 5);
    } else if (!query_failed(query)) {
        doc_line(doc, "the trace has no such compile");
    }
    query_close(query);
    causes_put(doc, db, code_id);
    made_put(doc, db);
    phases_put(doc, db);
}

static const struct text_spec compile_spec = {.build = compile_build, .wide = true};

static bool compile_open(struct view *view)
{
    return text_open((struct text *)view, &compile_spec);
}

const struct view_ops view_compile = {.name = "compile", .summary = "one run of the compiler, and why it was needed", .open = compile_open, TEXT_OPS};
