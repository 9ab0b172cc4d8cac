/* tui/views/overview.c -- the view `overview`: the answer on the first screen.
 *
 * Runs in: the viewer.
 *
 * What the small tables tell is there at once; what needs every lookup read
 * comes a moment later. The cursor begins on the dearest cause: Enter, and one
 * is at the recompile. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "trace/prose.h"
#include "tui/text.h"
#include "vocabulary.h"

enum { TOP = 4, BAR = 16 };

static void facts_put(struct doc *doc, struct db *db)
{
    const char *which = doubts_frames(db), *values = doubts_values(db);
    char *state = db_meta(db, "state"), *command = db_meta(db, "command");
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = db_meta_integer(db, "open_frame_count", 0);
    int64_t span = db_meta_integer(db, "span_ns", -1), processes = db_integer(db, 0, "SELECT COUNT(*) FROM process");
    int64_t threads = db_integer(db, 0, "SELECT COUNT(*) FROM thread");
    struct query *query = db_query(db, "SELECT CASE WHEN json_valid(?1) THEN (SELECT group_concat(value, ' ') FROM"
                                       " json_each(CASE WHEN json_valid(?1) THEN ?1 ELSE '[]' END)) ELSE ?1 END");

    query_bind_text(query, 1, command ? command : "");
    if (command && query_step(query))
        doc_line(doc, MARK "b%s", doc_column(doc, query, 0, 300));
    query_close(query);
    doc_line(doc, "%s%s" MARK "n%s%s, %s frames%s%s, %s process%s, %s thread%s", state && !strcmp(state, "complete") ? "" : MARK "w",
             doc_safe(doc, state ? state : "state unknown", 40), span >= 0 ? ", " : "", span >= 0 ? doc_time(doc, span) : "",
             frames < 0 ? "?" : doc_count(doc, frames), open > 0 ? ", still open " : "", open > 0 ? doc_count(doc, open) : "",
             doc_count(doc, processes), processes == 1 ? "" : "es", doc_count(doc, threads), threads == 1 ? "" : "s");
    doc_leads(doc, VIEW_PROCESSES, 0, NULL, NULL);
    if (which)
        doc_line(doc, MARK "d%s", which);
    if (values)
        doc_line(doc, MARK "d%s", values);
    free(state);
    free(command);
}

static void torch_put(struct doc *doc, struct db *db)
{
    struct query *query;

    if (!find_column(db, "process", "torch_mode"))
        return;
    query = db_query(db, "SELECT torch_version, torch_mode, torch_note, COUNT(*) FROM process WHERE torch_version IS NOT NULL"
                         " GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 3");
    while (query_step(query)) {
        doc_line(doc, "torch %s, %s%s%s", doc_column(doc, query, 0, 40),
                 query_type(query, 1) == QUERY_NULL ? "not watched" : !strcmp(query_text(query, 1, NULL), "shim") ? "shim: every guard check was seen"
                 : doc_column(doc, query, 1, 20),
                 query_type(query, 2) == QUERY_NULL ? "" : ": ", query_type(query, 2) == QUERY_NULL ? "" : doc_column(doc, query, 2, 200));
        doc_leads(doc, VIEW_PROCESSES, 0, NULL, NULL);
    }
    query_close(query);
}

static void losses_put(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db, "SELECT cause, COUNT(*), SUM(events), cause LIKE 'stall:%' AS stall FROM loss GROUP BY cause ORDER BY stall, 3 DESC, 1 LIMIT 5");
    int stalls = 0;

    while (query_step(query)) {
        if (query_integer(query, 3)) {
            stalls++;
            continue;
        }
        doc_line(doc, MARK "rLOSS" MARK "r  %s events: %s" MARK "n  figures below may be too low",
                 query_type(query, 2) == QUERY_NULL ? "unknown" : doc_count(doc, query_integer(query, 2)), doc_column(doc, query, 0, 200));
        doc_leads(doc, VIEW_LOSSES, 0, NULL, NULL);
    }
    query_close(query);
    if (stalls) {
        doc_line(doc, MARK "dthe program waited for the recorder; nothing is missing for that");
        doc_leads(doc, VIEW_LOSSES, 0, NULL, NULL);
    }
}

/* How calls of watched code were decided. */
static void calls_put(struct doc *doc, struct db *db)
{
    struct query *query;
    int64_t all = 0, eager = 0, hit = 0, compiled = 0;
    size_t head = doc_part(doc, "Calls of watched code");
    struct { int outcome; int64_t calls, ns; } rows[16];
    int count = 0;

    if (doc->quick) {
        doc_line(doc, "  ...");
        return;
    }
    query = db_query(db, "SELECT outcome, COUNT(*), SUM(duration_ns) FROM lookup GROUP BY outcome ORDER BY 2 DESC, 1");
    while (query_step(query) && count < 16) {
        rows[count].outcome = (int)query_integer(query, 0);
        rows[count].calls = query_integer(query, 1);
        rows[count].ns = query_integer(query, 2);
        all += rows[count].calls;
        if (rows[count].outcome == 1)
            hit += rows[count].calls;
        else if (rows[count].outcome == 2)
            compiled += rows[count].calls;
        else
            eager += rows[count].calls;
        count++;
    }
    query_close(query);
    if (!all) {
        doc_line(doc, "  none: nothing that compiles frames ran");
        return;
    }
    free(doc->lines[head].text);
    if (asprintf(&doc->lines[head].text, MARK "hCalls of watched code: %s" MARK "n  %s%.1f %% hit" MARK "n, %.1f %% compiled, %s%.1f %% ran eagerly",
                 doc_count(doc, all), hit * 10 >= all * 9 ? MARK "g" : MARK "w", 100.0 * (double)hit / (double)all, 100.0 * (double)compiled / (double)all,
                 eager * 10 > all ? MARK "r" : "", 100.0 * (double)eager / (double)all) < 0)
        doc->failed = true, doc->lines[head].text = strdup("");
    doc_leads(doc, VIEW_NONE, 0, NULL, NULL);
    doc->lines[head].target = target_make(VIEW_LEDGER, 0, NULL, NULL);
    for (int i = 0; i < count; i++) {
        const char *name = outcome_word(rows[i].outcome);
        char where[64];
        bool bad = rows[i].outcome == 5 || rows[i].outcome >= 8;
        doc_line(doc, "  %-15s%s%s" MARK "n %8s  %s in lookups", name, rows[i].outcome == 1 ? MARK "g" : bad ? MARK "r" : MARK "a",
                 doc_bar(doc, rows[i].calls, all, BAR), doc_count(doc, rows[i].calls), doc_time(doc, rows[i].ns));
        snprintf(where, sizeof where, "outcome = '%s'", name);
        doc_leads(doc, VIEW_LEDGER, 0, where, name);
    }
}

/* Why: the causes of most recompiles. */
static void again_put(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT MIN(r.rowid), c.qualname, COALESCE(r.source, r.kind), COUNT(DISTINCT r.compile_id), replace(group_concat(DISTINCT r.actual), ',', ', '),"
        " MIN(r.expected), r.text, MIN(r.compile_id), c.filename, c.first_line "
        "FROM recompile_cause r LEFT JOIN compile m ON m.compile_id = r.compile_id LEFT JOIN code c ON c.code_id = m.code_id"
        " WHERE COALESCE(r.ordinal, 0) = 0"
        " GROUP BY c.filename, c.qualname, c.first_line, 3 ORDER BY 4 DESC, MIN(r.rowid) LIMIT 8");

    while (query_step(query)) {
        int64_t times = query_integer(query, 3);
        if (!doc->start)
            doc->start = doc->count;
        if (query_type(query, 4) != QUERY_NULL && query_type(query, 5) != QUERY_NULL)
            doc_line(doc, "  " MARK "r%4s" MARK "n x " MARK "b%s" MARK "n: %s was " MARK "r%s" MARK "n, not %s", doc_count(doc, times), doc_column(doc, query, 1, 60),
                     doc_column(doc, query, 2, 80), doc_column(doc, query, 4, 80), doc_column(doc, query, 5, 60));
        else
            doc_line(doc, "  " MARK "r%4s" MARK "n x " MARK "b%s" MARK "n: %s", doc_count(doc, times), doc_column(doc, query, 1, 60), doc_column(doc, query, 6, 160));
        if (times == 1) {
            doc_leads(doc, VIEW_COMPILE, query_integer(query, 7), NULL, NULL);
        } else {
            char where[1200];
            int64_t id = query_integer(query, 0);
            snprintf(where, sizeof where, "source IS (SELECT r.source FROM recompile_cause r"
                     " WHERE r.rowid = %" PRId64 ") AND code_id IN (SELECT same.code_id FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id"
                     " JOIN code one ON one.code_id = m.code_id JOIN code same ON same.filename IS one.filename AND same.qualname IS one.qualname"
                     " AND same.first_line IS one.first_line WHERE r.rowid = %" PRId64 ")", id, id);
            doc_leads(doc, VIEW_CAUSES, id, where, query_text(query, 1, NULL));
        }
    }
    query_close(query);
}

/* The reasons of most breaks. */
static void breaks_put(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT MIN(b.graph_break_id), substr(b.reason, 1, instr(b.reason || char(10), char(10)) - 1), COUNT(*), c.qualname, b.line "
        "FROM graph_break b LEFT JOIN code c ON c.code_id = b.code_id GROUP BY c.filename, c.qualname, c.first_line, b.line, 2 ORDER BY 3 DESC, 1 LIMIT 4");

    while (query_step(query)) {
        if (!doc->start)
            doc->start = doc->count;
        doc_line(doc, "  " MARK "w%4s" MARK "n x " MARK "b%s:%" PRId64 MARK "n %s", doc_count(doc, query_integer(query, 2)), doc_column(doc, query, 3, 60),
                 query_integer(query, 4), doc_column(doc, query, 1, 160));
        doc_leads(doc, VIEW_BREAK, query_integer(query, 0), NULL, NULL);
    }
    query_close(query);
}

static void compiles_put(struct doc *doc, struct db *db)
{
    int64_t compiles = db_integer(db, 0, "SELECT COUNT(*) FROM compile"), breaks = db_integer(db, 0, "SELECT COUNT(*) FROM graph_break");
    int64_t made = db_integer(db, 0, "SELECT COUNT(*) FROM compile WHERE cache_entry_id IS NOT NULL");
    int64_t again = db_integer(db, 0, "SELECT COUNT(*) - COUNT(DISTINCT code_id) FROM compile WHERE cache_entry_id IS NOT NULL");
    int64_t ns = db_integer(db, 0, "SELECT SUM(end_ns - start_ns) FROM compile"), limits = db_integer(db, 0, "SELECT COUNT(*) FROM compile WHERE outcome = 'limit'");
    int64_t errors = db_integer(db, 0, "SELECT COUNT(*) FROM compile WHERE outcome = 'error'");

    doc_part(doc, "Compiles: %s" MARK "n  %s gave code, %s did not; together %s", doc_count(doc, compiles), doc_count(doc, made),
             doc_count(doc, compiles - made), doc_time(doc, ns));
    doc_leads(doc, VIEW_COMPILES, 0, NULL, NULL);
    if (limits || errors) {
        doc_line(doc, "  " MARK "r%s reached a limit, %s raised", doc_count(doc, limits), doc_count(doc, errors));
        doc_leads(doc, VIEW_COMPILES, 0, "outcome IN ('limit', 'error')", "limit or error");
    }
    doc_part(doc, "%s%s recompile%s", again ? MARK "r" : MARK "g", doc_count(doc, again), again == 1 ? "" : "s");
    doc_leads(doc, VIEW_RECOMPILES, 0, NULL, NULL);
    again_put(doc, db);
    doc_part(doc, "%s%s graph break%s", breaks ? MARK "w" : MARK "g", doc_count(doc, breaks), breaks == 1 ? "" : "s");
    doc_leads(doc, VIEW_BREAKS, 0, NULL, NULL);
    breaks_put(doc, db);
}

/* Since when what was not compiled any more. */
static void eager_put(struct doc *doc, struct db *db)
{
    struct query *query;
    bool any = false;

    if (doc->quick)
        return;
    query = db_query(db,
        "WITH eager AS MATERIALIZED (SELECT code_id, outcome, COUNT(*) AS calls, MIN(start_ns) AS first FROM lookup"
        "  WHERE outcome IN (3, 5, 6, 8, 9) GROUP BY 1, 2) "
        "SELECT MIN(e.code_id), c.qualname, (SELECT name FROM enum WHERE kind = 'outcome' AND value = e.outcome), SUM(e.calls), MIN(e.first) "
        "FROM eager e LEFT JOIN code c ON c.code_id = e.code_id GROUP BY c.filename, c.qualname, c.first_line, e.outcome ORDER BY"
        " e.outcome = 6, 4 DESC, 1 LIMIT 4");
    while (query_step(query)) {
        if (!any)
            doc_part(doc, "Ran as Python though a compiler was set");
        any = true;
        doc_line(doc, "  %6s x " MARK "b%s" MARK "n  %s since %.3f s", doc_count(doc, query_integer(query, 3)), doc_column(doc, query, 1, 80),
                 doc_column(doc, query, 2, 30), (double)query_integer(query, 4) / 1e9);
        doc_leads(doc, VIEW_FUNCTION, query_integer(query, 0), NULL, NULL);
    }
    query_close(query);
}

static void guards_put(struct doc *doc, struct db *db)
{
    struct query *query;

    doc_part(doc, "Guards");
    if (doc->quick) {
        doc_line(doc, "  ...");
        return;
    }
    query = db_query(db, "SELECT COUNT(*), SUM(duration_ns), SUM(result = 'fail') FROM guard_check");
    if (query_step(query) && query_integer(query, 0)) {
        int64_t n = query_integer(query, 0);
        doc_line(doc, "  %s checks of entries took %s, %s each; %s failed", doc_count(doc, n), doc_time(doc, query_integer(query, 1)),
                 doc_time(doc, query_integer(query, 1) / n), doc_count(doc, query_integer(query, 2)));
    } else {
        doc_line(doc, "  no check was seen");
    }
    doc_leads(doc, VIEW_GUARDS, 0, NULL, NULL);
    query_close(query);
}

static void hot_put(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT MIN(n.code_id), c.qualname, SUM(n.self_ns), SUM(n.calls), c.filename, c.first_line FROM code_total n LEFT JOIN code c ON c.code_id = n.code_id "
        "GROUP BY c.filename, c.qualname, c.first_line, c.kind ORDER BY 3 DESC, 1 LIMIT 4");

    doc_part(doc, "Most own time");
    while (query_step(query)) {
        char *path = prose_column(query, 4);
        doc_line(doc, "  %9s  " MARK "b%s" MARK "n  %s calls  " MARK "d%s:%" PRId64, doc_time(doc, query_integer(query, 2)), doc_column(doc, query, 1, 80),
                 doc_count(doc, query_integer(query, 3)), doc_safe(doc, prose_path(path ? path : "?"), 120), query_integer(query, 5));
        doc_leads(doc, VIEW_FUNCTION, query_integer(query, 0), NULL, NULL);
        free(path);
    }
    query_close(query);
    doc_line(doc, "  " MARK "dall functions");
    doc_leads(doc, VIEW_FUNCTIONS, 0, NULL, NULL);
}

static void overview_build(struct doc *doc, struct db *db)
{
    doc->dense = true;
    facts_put(doc, db);
    torch_put(doc, db);
    losses_put(doc, db);
    if (find_tables(db)) {
        calls_put(doc, db);
        compiles_put(doc, db);
        eager_put(doc, db);
        guards_put(doc, db);
    } else {
        doc_line(doc, MARK "wthis trace has no tables about decisions: frames only");
    }
    hot_put(doc, db);
}

static const struct text_spec overview_spec = {.build = overview_build, .staged = true};

static bool overview_open(struct view *view)
{
    return text_open((struct text *)view, &overview_spec);
}

const struct view_ops view_overview = {.name = "overview", .summary = "the answer on one screen", .open = overview_open, TEXT_OPS};
