/* tui/views/function.c -- the view `function`: one function, its calls, entries, recompiles, breaks, and its source with marks.
 *
 * Runs in: the viewer. It is opened by one of its code objects; all that are the same function belong to it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/find_code.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "tui/source.h"
#include "tui/text.h"

enum { WAVE = 40, GUTTERS = 400, SHOWN = 12 };

struct function {
    struct doc *doc;
    struct db *db;
    char *ids;        /* owned: a select of its code ids */
    char *filename, *qualname; /* owned */
    int64_t first_line, last_line, span_ns;
    struct gutter gutter[GUTTERS];
    size_t gutters;
};

/* A query in which every "$codes" stands for the function's code objects. */
static struct query *ask(struct function *f, const char *sql)
{
    char *made = NULL;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);
    struct query *query = NULL;

    if (!out)
        return NULL;
    for (const char *p = sql; *p;) {
        if (!strncmp(p, "$codes", 6)) {
            fputs(f->ids, out);
            p += 6;
        } else {
            putc(*p++, out);
        }
    }
    fclose(out);
    query = db_query(f->db, made);
    free(made);
    return query;
}

/* "code_id IN (...)": for the rows of a list. */
static const char *scope(struct function *f, const char *more)
{
    return doc_print(f->doc, "code_id IN %s%s", f->ids, more);
}

static bool head_put(struct function *f)
{
    struct doc *doc = f->doc;
    struct query *query = db_query(f->db, "SELECT qualname, filename, first_line, kind, origin_code_id FROM code WHERE code_id = ?1");
    bool found = false;

    query_bind_integer(query, 1, doc->target.id);
    if (query_step(query)) {
        char *origin = NULL;
        int64_t line = 0;
        found = true;
        f->qualname = prose_column(query, 0);
        f->filename = prose_column(query, 1);
        f->first_line = query_integer(query, 2);
        snprintf(doc->title, sizeof doc->title, "%.140s", doc_column(doc, query, 0, 140));
        doc_line(doc, MARK "b%s" MARK "n  " MARK "d%s:%" PRId64 MARK "n  %s", doc_column(doc, query, 0, 200), doc_column(doc, query, 1, 300), f->first_line,
                 doc_column(doc, query, 3, 30));
        if (f->qualname && torch_resume(f->qualname, &origin, &line))
            doc_line(doc, "the rest of %s after line %" PRId64 ", where its graph broke", doc_safe(doc, origin, 160), line);
        if (query_type(query, 4) != QUERY_NULL) {
            if (!origin)
                doc_line(doc, "made from another function: Enter shows it");
            doc_leads(doc, VIEW_FUNCTION, query_integer(query, 4), NULL, NULL);
        }
        free(origin);
        if (f->filename) {
            doc->file = strdup(f->filename);
            doc->file_line = f->first_line;
        }
    } else if (!query_failed(query)) {
        doc_line(doc, "the trace has no such code object");
    }
    query_close(query);
    if (!found)
        return false;
    doc->subject = target_make(VIEW_FUNCTION, doc->target.id, NULL, NULL);
    query = ask(f, "SELECT SUM(calls), SUM(total_ns), SUM(self_ns), SUM(raised), (SELECT COUNT(*) FROM code WHERE code_id IN $codes),"
                   " (SELECT COUNT(DISTINCT process_id) FROM code WHERE code_id IN $codes),"
                   " (SELECT COUNT(DISTINCT fingerprint) FROM code WHERE code_id IN $codes) FROM code_total WHERE code_id IN $codes");
    if (query_step(query)) {
        if (query_type(query, 0) != QUERY_NULL) {
            doc_line(doc, "%s calls, %s in it, %s of that its own%s%s%s", doc_count(doc, query_integer(query, 0)), doc_time(doc, query_integer(query, 1)),
                     doc_time(doc, query_integer(query, 2)), query_integer(query, 3) ? "; " MARK "w" : "", query_integer(query, 3) ? doc_count(doc, query_integer(query, 3)) : "",
                     query_integer(query, 3) ? MARK "n ended by an exception" : "");
            doc_leads(doc, VIEW_SQL, 0, doc_print(doc, FRAMES_OF("%s"), f->ids), f->qualname);
        }
        if (query_integer(query, 4) > 1)
            doc_line(doc, MARK "d%" PRId64 " code objects in %" PRId64 " processes, %" PRId64 " different by fingerprint", query_integer(query, 4), query_integer(query, 5),
                     query_integer(query, 6));
    }
    query_close(query);
    return true;
}

/* How its calls were decided, and when. */
static void calls_put(struct function *f)
{
    struct doc *doc = f->doc;
    struct query *query = ask(f,
        "SELECT (SELECT name FROM enum WHERE kind = 'outcome' AND value = w.outcome) AS name, w.outcome, SUM(w.n), MIN(w.first), MAX(w.last),"
        " group_concat(w.bucket || ':' || w.n), SUM(w.ns) FROM ("
        "  SELECT outcome, MIN(39, MAX(0, CAST(start_ns * 39.999 / ?1 AS INTEGER))) AS bucket, COUNT(*) AS n, MIN(start_ns) AS first, MAX(start_ns) AS last,"
        "   SUM(duration_ns) AS ns FROM lookup WHERE code_id IN $codes GROUP BY outcome, 2) w GROUP BY w.outcome ORDER BY 3 DESC, 2");
    bool any = false;

    query_bind_integer(query, 1, f->span_ns > 0 ? f->span_ns : 1);
    while (query_step(query)) {
        int64_t wave[WAVE] = {0};
        int outcome = (int)query_integer(query, 1);
        char *name = prose_column(query, 0), *more = NULL;
        for (const char *p = query_text(query, 5, NULL); *p; p += *p == ',') {
            char *end;
            long bucket = strtol(p, &end, 10);
            long long n = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
            if (bucket >= 0 && bucket < WAVE)
                wave[bucket] += n;
            p = end;
            if (*p && *p != ',')
                break;
        }
        if (!any) {
            doc_part(doc, "Its calls, and when");
            doc->start = doc->count;
        }
        any = true;
        doc_line(doc, "  %-15s%9s  %s%s" MARK "n  %.3f .. %.3f s", doc_safe(doc, name, 30), doc_count(doc, query_integer(query, 2)),
                 outcome == 1 ? MARK "g" : outcome == 2 ? MARK "a" : outcome == 5 || outcome >= 8 ? MARK "r" : MARK "w", doc_spark(doc, wave, WAVE),
                 (double)query_integer(query, 3) / 1e9, (double)query_integer(query, 4) / 1e9);
        if (name && asprintf(&more, " AND outcome = '%s'", name) >= 0 && !strpbrk(name, "'\\"))
            doc_leads(doc, VIEW_LEDGER, 0, scope(f, more), name);
        free(more);
        free(name);
    }
    query_close(query);
}

static void marks_put(struct function *f)
{
    struct doc *doc = f->doc;
    struct query *query = ask(f, "SELECT at_ns, action, reason FROM code_mark WHERE code_id IN $codes ORDER BY at_ns LIMIT 5");

    while (query_step(query)) {
        doc_line(doc, MARK "wsince %.3f s: %s" MARK "n  %s", (double)query_integer(query, 0) / 1e9, doc_column(doc, query, 1, 30),
                 query_type(query, 2) == QUERY_NULL ? "asked for" : doc_column(doc, query, 2, 200));
        doc_leads(doc, VIEW_COMPILES, 0, scope(f, ""), f->qualname);
    }
    query_close(query);
}

static void entries_put(struct function *f)
{
    struct doc *doc = f->doc;
    struct query *query = ask(f,
        "WITH uses AS MATERIALIZED (SELECT cache_entry_id, SUM(outcome = 1) AS hits, " LAST_USE " AS last FROM lookup WHERE code_id IN $codes"
        "  AND outcome IN (1, 2) GROUP BY cache_entry_id) "
        "SELECT e.cache_entry_id, e.label, e.backend, e.guard_count, e.born_ns, e.died_ns, e.death_cause, u.hits, u.last "
        "FROM cache_entry e LEFT JOIN uses u ON u.cache_entry_id = e.cache_entry_id WHERE e.code_id IN $codes ORDER BY e.born_ns LIMIT 41");
    int count = 0;

    while (query_step(query)) {
        int64_t hits = query_integer(query, 7);
        if (!count++)
            doc_part(doc, "Cache entries");
        if (count == 41) {
            doc_line(doc, "  " MARK "dmore ...");
            doc_leads(doc, VIEW_ENTRIES, 0, scope(f, ""), f->qualname);
            break;
        }
        doc_line(doc, "  " MARK "b%s" MARK "n %s%9s hits" MARK "n  %3" PRId64 " guards  born %.3f s%s%s%s", doc_fit(doc, doc_column(doc, query, 1, 30), 8),
                 hits ? "" : MARK "w", doc_count(doc, hits), query_integer(query, 3), (double)query_integer(query, 4) / 1e9,
                 query_type(query, 8) == QUERY_NULL ? "" : doc_print(doc, ", last used %.3f s", (double)query_integer(query, 8) / 1e9),
                 query_type(query, 5) == QUERY_NULL ? "" : doc_print(doc, MARK "r, died %.3f s: ", (double)query_integer(query, 5) / 1e9),
                 query_type(query, 5) == QUERY_NULL ? "" : doc_column(doc, query, 6, 120));
        doc_leads(doc, VIEW_ENTRY, query_integer(query, 0), NULL, NULL);
    }
    query_close(query);
}

static void recompiles_put(struct function *f)
{
    struct doc *doc = f->doc;
    struct query *query = ask(f,
        "SELECT m.compile_id, m.label, m.start_ns, m.end_ns - m.start_ns, COALESCE(r.source, r.kind), r.expected, r.actual,"
        " r.text, e.label, m.outcome FROM compile m JOIN recompile_cause r ON r.compile_id = m.compile_id AND COALESCE(r.ordinal, 0) = 0"
        " LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id "
        "WHERE m.code_id IN $codes ORDER BY m.start_ns, r.rowid LIMIT 61");
    int64_t last = -1;
    int count = 0;

    while (query_step(query)) {
        if (!count++)
            doc_part(doc, "Recompiles");
        if (count == 61) {
            doc_line(doc, "  " MARK "dmore ...");
            doc_leads(doc, VIEW_CAUSES, 0, scope(f, ""), f->qualname);
            break;
        }
        const char *before = query_integer(query, 0) == last ? "          " : doc_print(doc, "%s %6s", doc_fit(doc, doc_column(doc, query, 1, 20), 7),
                                                                                     doc_time(doc, query_integer(query, 3)));
        last = query_integer(query, 0);
        if (query_type(query, 5) != QUERY_NULL && query_type(query, 6) != QUERY_NULL)
            doc_line(doc, "  %s  " MARK "b%s" MARK "n was " MARK "r%s" MARK "n, %s wanted %s", doc_fit(doc, before, 17), doc_column(doc, query, 4, 80),
                     doc_column(doc, query, 6, 100), doc_column(doc, query, 8, 20), doc_column(doc, query, 5, 100));
        else
            doc_line(doc, "  %s  %s", doc_fit(doc, before, 17), doc_column(doc, query, 7, 200));
        doc_leads(doc, VIEW_COMPILE, last, NULL, NULL);
    }
    query_close(query);
    query = ask(f, "SELECT compile_id, outcome, start_ns, reason FROM compile WHERE code_id IN $codes AND cache_entry_id IS NULL ORDER BY start_ns LIMIT 5");
    for (count = 0; query_step(query);) {
        char *reason = prose_column(query, 3);
        if (!count++)
            doc_part(doc, "Compiles that gave no code");
        doc_line(doc, "  " MARK "w%s" MARK "n at %.3f s: %s", doc_column(doc, query, 1, 20), (double)query_integer(query, 2) / 1e9,
                 doc_safe(doc, reason ? reason : "no reason told", strcspn(reason ? reason : "no reason told", "\n")));
        doc_leads(doc, VIEW_COMPILE, query_integer(query, 0), NULL, NULL);
        free(reason);
    }
    query_close(query);
}

static void gutter_add(struct function *f, int64_t line, const char *mark, const char *note, enum view_kind kind, int64_t id)
{
    if (f->gutters < GUTTERS)
        f->gutter[f->gutters++] = (struct gutter){line, mark, note, id, kind};
}

static void breaks_put(struct function *f)
{
    struct doc *doc = f->doc;
    struct query *query = ask(f,
        "SELECT MIN(b.graph_break_id), b.line, substr(b.reason, 1, 300), COUNT(*), MIN(b.resume_code_id), MIN(r.qualname) FROM graph_break b"
        " LEFT JOIN code r ON r.code_id = b.resume_code_id WHERE b.code_id IN $codes GROUP BY b.line, substr(b.reason, 1, instr(b.reason || char(10), char(10))) ORDER BY b.line LIMIT 60");
    bool any = false;

    while (query_step(query)) {
        const char *text = query_text(query, 2, NULL);
        char *what = strndup(text, strcspn(text, "\n"));
        if (!any)
            doc_part(doc, "Graph breaks");
        any = true;
        doc_line(doc, "  line " MARK "b%" PRId64 MARK "n  %s x  %s", query_integer(query, 1), doc_count(doc, query_integer(query, 3)), doc_safe(doc, what, 200));
        doc_leads(doc, VIEW_BREAK, query_integer(query, 0), NULL, NULL);
        gutter_add(f, query_integer(query, 1), MARK "rbreak" MARK "n", doc_print(doc, MARK "r<- %s", doc_safe(doc, what, 70)), VIEW_BREAK, query_integer(query, 0));
        free(what);
        if (query_type(query, 4) != QUERY_NULL) {
            doc_line(doc, "           the rest runs as %s", doc_column(doc, query, 5, 160));
            doc_leads(doc, VIEW_FUNCTION, query_integer(query, 4), NULL, NULL);
        }
    }
    query_close(query);
}

/* Code objects that begin within its lines: resume points, nested functions and comprehensions with their time. */
static void lines_mark(struct function *f)
{
    struct doc *doc = f->doc;
    struct query *query = db_query(f->db,
        "SELECT c.code_id, c.first_line, c.kind, c.qualname, SUM(n.self_ns), SUM(n.calls),"
        " (SELECT SUM(m.self_ns) FROM code_total m JOIN code s ON s.code_id = m.code_id AND s.filename = ?1 AND s.first_line BETWEEN ?2 AND ?3) "
        "FROM code c LEFT JOIN code_total n ON n.code_id = c.code_id "
        "WHERE c.filename = ?1 AND c.first_line BETWEEN ?2 AND ?3 GROUP BY c.first_line, c.qualname, c.kind ORDER BY c.first_line LIMIT 200");

    query_bind_text(query, 1, f->filename);
    query_bind_integer(query, 2, f->first_line);
    query_bind_integer(query, 3, f->last_line);
    while (query_step(query)) {
        char *name = prose_column(query, 3), *function = NULL, *kind = prose_column(query, 2);
        int64_t line = query_integer(query, 1), after = 0, self = query_integer(query, 4), all = query_integer(query, 6);
        if (name && torch_resume(name, &function, &after))
            gutter_add(f, after >= f->first_line && after <= f->last_line ? after : line, MARK "aresum" MARK "n",
                       doc_print(doc, MARK "aresumed: %s calls", doc_count(doc, query_integer(query, 5))), VIEW_FUNCTION, query_integer(query, 0));
        else if (kind && !strcmp(kind, "resume"))
            gutter_add(f, line, MARK "aresum" MARK "n", MARK "athe rest after a graph break", VIEW_FUNCTION, query_integer(query, 0));
        else if (self > 0 && (double)self * 20 >= (double)all)
            gutter_add(f, line, doc_print(doc, "%s%3.0f %%" MARK "n", (double)self * 2 >= (double)all ? MARK "r" : MARK "w", 100.0 * (double)self / (double)all),
                       doc_print(doc, MARK "d%s own time, %s calls", doc_time(doc, self), doc_count(doc, query_integer(query, 5))), VIEW_FUNCTION,
                       line == f->first_line ? 0 : query_integer(query, 0));
        free(name);
        free(kind);
        free(function);
    }
    query_close(query);
    for (size_t i = 0; i < f->gutters; i++)
        if (!f->gutter[i].id)
            f->gutter[i].kind = VIEW_NONE;
}

static void source_show(struct function *f)
{
    struct source source;

    if (!f->filename)
        return;
    source = source_read(f->filename);
    f->last_line = source.text ? source_end(&source, f->first_line) : f->first_line;
    if (f->last_line > f->first_line + 1000)
        f->last_line = f->first_line + 1000;
    lines_mark(f);
    doc_part(f->doc, "Source");
    source_put(f->doc, f->db, &source, f->first_line, f->last_line, 0, f->gutter, f->gutters);
    source_free(&source);
}

static void function_build(struct doc *doc, struct db *db)
{
    struct function f = {.doc = doc, .db = db, .span_ns = db_meta_integer(db, "span_ns", 0)};

    if (f.span_ns <= 0) /* live: as far as it has come */
        f.span_ns = db_integer(db, 1, "SELECT start_ns FROM lookup ORDER BY lookup_id DESC LIMIT 1") + 1;
    if (asprintf(&f.ids, SAME_FUNCTION, (long long)doc->target.id) < 0) {
        doc->failed = true;
        return;
    }
    if (head_put(&f)) {
        if (find_tables(db)) {
            marks_put(&f);
            calls_put(&f);
            recompiles_put(&f);
            entries_put(&f);
            breaks_put(&f);
        }
        source_show(&f);
    }
    free(f.ids);
    free(f.filename);
    free(f.qualname);
}

static const struct text_spec function_spec = {.build = function_build};

static bool function_open(struct view *view)
{
    return text_open((struct text *)view, &function_spec);
}

const struct view_ops view_function = {
    .name = "function", .summary = "one function: calls, entries, recompiles, breaks, source", .open = function_open, TEXT_OPS,
};
