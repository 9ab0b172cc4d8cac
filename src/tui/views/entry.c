/* tui/views/entry.c -- the views `entries`, all cache entries, and `entry`, one: its guards as a tree of what they look at, its
 * graphs, and the bytecode before and after.
 *
 * Runs in: the viewer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "tui/list.h"
#include "tui/text.h"

/* ---- entries --------------------------------------------------------------- */

#define ENTRY(hits, tried, last) \
    "SELECT e.cache_entry_id, c.qualname AS function, e.label AS label, " hits " AS hits, " tried " AS tried, e.guard_count AS guards," \
    " e.born_ns AS born, " last " AS \"last used\", e.died_ns AS died, e.death_cause AS \"death cause\", e.backend AS backend, e.region_id AS region," \
    " c.filename || ':' || c.first_line AS \"where\", e.compile_id AS compile_id, e.code_id AS code_id FROM cache_entry e" \
    " LEFT JOIN code c ON c.code_id = e.code_id"

static const char entries_quick[] = ENTRY("NULL", "NULL", "NULL") " ORDER BY e.born_ns, 1";
static const char entries_sql[] =
    "WITH tries AS MATERIALIZED (SELECT cache_entry_id, COUNT(*) AS tried FROM guard_check GROUP BY 1),"
    " uses AS MATERIALIZED (SELECT cache_entry_id, SUM(outcome = 1) AS hits, " LAST_USE " AS last FROM lookup WHERE outcome IN (1, 2) GROUP BY 1) "
    ENTRY("COALESCE(u.hits, 0)", "COALESCE(t.tried, 0)", "u.last")
    " LEFT JOIN tries t ON t.cache_entry_id = e.cache_entry_id LEFT JOIN uses u ON u.cache_entry_id = e.cache_entry_id ORDER BY e.born_ns, 1";

static const struct list_column entries_columns[] = {
    {"cache_entry_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"function", AS_TEXT, 12, VIEW_NONE, NULL, NULL},
    {"label", AS_TEXT, 4, VIEW_NONE, NULL, NULL},
    {"hits", AS_COUNT, 0, VIEW_LEDGER, "cache_entry_id = %lld AND outcome = 'hit'", NULL},
    {"tried", AS_COUNT, 0, VIEW_CHECKS, "cache_entry_id = %lld", NULL},
    {"guards", AS_COUNT, 0, VIEW_NONE, NULL, NULL},
    {"born", AS_TIME, 0, VIEW_COMPILE, NULL, "compile_id"},
    {"last used", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"died", AS_TIME, 0, VIEW_NONE, NULL, NULL},
    {"death cause", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"backend", AS_TEXT, 8, VIEW_NONE, NULL, NULL},
    {"region", AS_INTEGER, 0, VIEW_NONE, NULL, NULL},
    {"where", AS_PATH, 10, VIEW_FUNCTION, NULL, "code_id"},
    {"compile_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
    {"code_id", AS_HIDDEN, 0, VIEW_NONE, NULL, NULL},
};

static const struct list_spec entries_spec = {
    .sql = entries_sql, .quick = entries_quick, .columns = entries_columns, .column_count = LENGTH(entries_columns), .row = VIEW_ENTRY,
    .empty = "no cache entry was recorded", .slow = true, .title_column = 2,
};

static bool entries_open(struct view *view)
{
    return list_open((struct list *)view, &entries_spec);
}

const struct view_ops view_entries = {.name = "entries", .summary = "all cache entries: born, tried, hit, died", .open = entries_open, LIST_OPS};

/* ---- one entry: guards ----------------------------------------------------- */

struct guard {
    int64_t id, ordinal, ran, failed;
    char *kind, *source, *expression, *stack; /* owned */
};

struct guards {
    struct guard *at; /* owned */
    size_t count;
};

enum { GUARDS_MOST = 20000, ORDERS_MOST = 64, NODES_MOST = 2000 };

static void guards_read(struct guards *guards, struct doc *doc, struct db *db)
{
    struct query *query = db_query(db, "SELECT guard_id, ordinal, kind, source, substr(expression, 1, 600), substr(user_stack, 1, 600) FROM guard"
                                       " WHERE cache_entry_id = ?1 ORDER BY ordinal LIMIT 20000");
    size_t room = 0;

    query_bind_integer(query, 1, doc->target.id);
    while (query_step(query)) {
        if (guards->count == room) {
            struct guard *more = realloc(guards->at, (room = room ? room * 2 : 64) * sizeof *more);
            if (!more) {
                doc->failed = true;
                break;
            }
            guards->at = more;
        }
        guards->at[guards->count++] = (struct guard){query_integer(query, 0), query_integer(query, 1), 0, 0, prose_column(query, 2), prose_column(query, 3),
                                                     prose_column(query, 4), prose_column(query, 5)};
    }
    query_close(query);
}

static void guards_free(struct guards *guards)
{
    for (size_t i = 0; i < guards->count; i++) {
        free(guards->at[i].kind);
        free(guards->at[i].source);
        free(guards->at[i].expression);
        free(guards->at[i].stack);
    }
    free(guards->at);
}

/* Add TIMES checks that ran the first RAN guards of an order. ORDER is NULL: by ordinal; else ordinals. */
static void ran_add(struct guards *guards, const int64_t *order, size_t ordered, int64_t ran, int64_t times)
{
    for (size_t i = 0; i < guards->count; i++) {
        int64_t place = guards->at[i].ordinal;
        for (size_t k = 0; order && k < ordered; k++)
            if (order[k] == guards->at[i].ordinal) {
                place = (int64_t)k;
                break;
            }
        if (place < ran)
            guards->at[i].ran += times;
    }
}

/* How often each guard ran and failed. */
static void guards_count(struct guards *guards, struct doc *doc, struct db *db)
{
    struct query *query = db_query(db, "SELECT rowid, from_ns, ordinals FROM guard_order WHERE cache_entry_id = ?1 ORDER BY from_ns, rowid LIMIT 64"), *in;
    struct { int64_t *ordinals; size_t count; int64_t from_ns; } orders[ORDERS_MOST] = {{0}};
    size_t order_count = 0;

    query_bind_integer(query, 1, doc->target.id);
    in = db_query(db, "SELECT value FROM json_each(CASE WHEN json_valid(?1) THEN ?1 ELSE '[]' END) LIMIT 20000");
    while (query_step(query) && order_count < ORDERS_MOST) {
        orders[order_count].from_ns = query_integer(query, 1);
        orders[order_count].ordinals = calloc(GUARDS_MOST, sizeof(int64_t));
        query_reset(in);
        query_bind_text(in, 1, query_whole(query, 2, NULL));
        while (orders[order_count].ordinals && query_step(in) && orders[order_count].count < GUARDS_MOST)
            orders[order_count].ordinals[orders[order_count].count++] = query_integer(in, 0);
        order_count++;
    }
    query_close(in);
    query_close(query);
    query = db_query(db, order_count ? "SELECT k.guards_run, k.failed_guard_id, k.result, COUNT(*), (SELECT MAX(o.from_ns) FROM guard_order o WHERE"
                                       " o.cache_entry_id = ?1 AND o.from_ns <= l.start_ns) FROM guard_check k JOIN lookup l ON l.lookup_id = k.lookup_id"
                                       " WHERE k.cache_entry_id = ?1 GROUP BY 1, 2, 3, 5"
                                     : "SELECT guards_run, failed_guard_id, result, COUNT(*), NULL FROM guard_check WHERE cache_entry_id = ?1 GROUP BY 1, 2, 3");
    query_bind_integer(query, 1, doc->target.id);
    while (query_step(query)) {
        int64_t times = query_integer(query, 3), failed = query_type(query, 1) == QUERY_NULL ? -1 : query_integer(query, 1);
        const int64_t *order = NULL;
        size_t ordered = 0;
        if (query_type(query, 4) != QUERY_NULL)
            for (size_t i = 0; i < order_count; i++)
                if (orders[i].from_ns == query_integer(query, 4))
                    order = orders[i].ordinals, ordered = orders[i].count;
        ran_add(guards, order, ordered, query_integer(query, 0), times);
        for (size_t i = 0; i < guards->count; i++)
            if (guards->at[i].id == failed && strcmp(query_text(query, 2, NULL), "pass"))
                guards->at[i].failed += times;
    }
    query_close(query);
    for (size_t i = 0; i < order_count; i++)
        free(orders[i].ordinals);
}

static int by_source(const void *a, const void *b)
{
    const struct guard *x = a, *y = b;
    int less = strcmp(x->source ? x->source : "", y->source ? y->source : "");

    return less ? less : (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

/* Whether INNER is reached through OUTER: L['self'].fc and L['self']. */
static bool within(const char *inner, const char *outer)
{
    size_t length = strlen(outer);

    return length && !strncmp(inner, outer, length) && (inner[length] == '.' || inner[length] == '[');
}

static void guards_put(struct doc *doc, struct db *db, struct guards *guards)
{
    const char *path[64];
    size_t depth = 0;

    if (!doc->quick)
        guards_count(guards, doc, db);
    doc_part(doc, "Guards: %zu, as a tree of what they look at", guards->count);
    if (!guards->count)
        return;
    doc_line(doc, "  " MARK "d%5s %9s %8s  looks at", "#", "ran", "failed");
    qsort(guards->at, guards->count, sizeof *guards->at, by_source);
    for (size_t i = 0; i < guards->count; i++) {
        struct guard *g = &guards->at[i];
        const char *source = g->source ? g->source : "", *shown = source;
        bool again = i > 0 && !strcmp(source, guards->at[i - 1].source ? guards->at[i - 1].source : "");
        while (depth && !within(source, path[depth - 1]) && strcmp(source, path[depth - 1]) != 0)
            depth--;
        if (depth && strcmp(source, path[depth - 1]) != 0)
            shown = source + strlen(path[depth - 1]);
        if ((!depth || strcmp(source, path[depth - 1]) != 0) && depth < 64)
            path[depth++] = source;
        doc_line(doc, "  %5" PRId64 " %9s %s%8s" MARK "n  %*s%s%s%s " MARK "b%s" MARK "n  " MARK "d%s", g->ordinal, doc->quick ? "..." : doc_count(doc, g->ran),
                 g->failed ? MARK "r" : MARK "d", doc->quick ? "..." : doc_count(doc, g->failed), (int)(depth > 1 ? (depth - 1) * 2 : 0), "",
                 depth > 1 ? "└ " : "", again ? "" : MARK "a", again ? MARK "d(the same)" MARK "n" : *shown ? doc_safe(doc, shown, 120) : "(no source)",
                 doc_safe(doc, g->kind, 40), doc_safe(doc, g->expression ? g->expression : "", 300));
        if (g->failed)
            doc_leads(doc, VIEW_CHECKS, 0, doc_print(doc, "failed_guard_id = %" PRId64, g->id), g->kind);
        else
            doc_leads(doc, VIEW_CHECKS, 0, doc_print(doc, "cache_entry_id = %" PRId64, doc->target.id), "its checks");
        if (g->stack && *g->stack) {
            const char *last = g->stack;
            for (const char *p = g->stack; (p = strchr(p, '\n')) && p[1];)
                last = ++p;
            doc_line(doc, "  %*s" MARK "dfor %s", 27 + (int)depth * 2, "", doc_safe(doc, last + strspn(last, " "), strcspn(last, "\n")));
        }
    }
}

/* ---- one entry: graphs and bytecode ---------------------------------------- */

static void graphs_put(struct doc *doc, struct db *db, int64_t compile_id)
{
    struct query *query = db_query(db,
        "SELECT g.name, g.node_count, n.opcode, n.name, n.target, substr(n.args, 1, 300), substr(n.kwargs, 1, 200), g.graph_id "
        "FROM graph g JOIN graph_node n ON n.graph_id = g.graph_id WHERE g.compile_id = ?1 ORDER BY g.graph_id, n.ordinal LIMIT 2001");
    int64_t last = -1;
    int count = 0;

    query_bind_integer(query, 1, compile_id);
    while (query_step(query)) {
        const char *kwargs = query_text(query, 6, NULL);
        if (query_integer(query, 7) != last)
            doc_part(doc, "Graph %s: %" PRId64 " nodes", doc_column(doc, query, 0, 80), query_integer(query, 1));
        last = query_integer(query, 7);
        if (++count > NODES_MOST) {
            doc_line(doc, "  " MARK "d(more: dyntrace show prints all)");
            break;
        }
        doc_line(doc, "  " MARK "d%s" MARK "n %s " MARK "a%s" MARK "n %s%s%s", doc_fit(doc, doc_column(doc, query, 2, 30), 14), doc_fit(doc, doc_column(doc, query, 3, 40), 16),
                 doc_fit(doc, doc_column(doc, query, 4, 60), 28), doc_column(doc, query, 5, 200), *kwargs && strcmp(kwargs, "{}") ? " " : "",
                 *kwargs && strcmp(kwargs, "{}") ? doc_safe(doc, kwargs, 160) : "");
    }
    query_close(query);
}

static char *listing(struct db *db, int64_t compile_id, const char *kind)
{
    struct query *query = db_query(db, "SELECT substr(text, 1, 400000) FROM listing WHERE compile_id = ?1 AND kind = ?2 LIMIT 1");
    char *text = NULL;

    query_bind_integer(query, 1, compile_id);
    query_bind_text(query, 2, kind);
    if (query_step(query))
        text = strdup(query_whole(query, 0, NULL));
    query_close(query);
    return text;
}

static size_t line_take(struct doc *doc, const char **text, const char **line)
{
    size_t length = strcspn(*text, "\n");
    char *copy = strndup(*text, length);

    for (char *p = copy; p && *p; p++)
        if (*p == '\t')
            *p = ' ';
    *line = doc_safe(doc, copy ? copy : "", 400);
    free(copy);
    *text += length + ((*text)[length] == '\n');
    return length;
}

/* Side by side where there is room for both, else one after the other. */
static void bytecode_put(struct doc *doc, struct db *db, int64_t compile_id)
{
    char *original = listing(db, compile_id, "original_bytecode"), *modified = listing(db, compile_id, "modified_bytecode");
    int half = (doc->columns - 6) / 2;

    if (original && modified && half >= 44) {
        const char *left = original, *right = modified;
        doc_part(doc, "%s%s", doc_fit(doc, "Original bytecode", half + 3), "Modified bytecode");
        for (int count = 0; (*left || *right) && count < 4000; count++) {
            const char *a = "", *b = "";
            if (*left)
                line_take(doc, &left, &a);
            if (*right)
                line_take(doc, &right, &b);
            doc_line(doc, "  %s " MARK "d│" MARK "n %s", doc_fit(doc, a, half), b);
        }
    } else {
        if (original) {
            doc_part(doc, "Original bytecode");
            doc_text(doc, original, 2, 4000);
        }
        if (modified) {
            doc_part(doc, "Modified bytecode");
            doc_text(doc, modified, 2, 4000);
        }
    }
    free(original);
    free(modified);
}

static void entry_build(struct doc *doc, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT c.qualname, c.filename, c.first_line, e.label, e.backend, e.region_id, e.guard_count, e.born_ns, e.died_ns, e.death_cause,"
        " e.compile_id, e.code_id FROM cache_entry e LEFT JOIN code c ON c.code_id = e.code_id WHERE e.cache_entry_id = ?1");
    struct guards guards = {0};
    int64_t compile_id = -1;

    query_bind_integer(query, 1, doc->target.id);
    if (query_step(query)) {
        compile_id = query_type(query, 10) == QUERY_NULL ? -1 : query_integer(query, 10);
        snprintf(doc->title, sizeof doc->title, "%.30s of %.100s", doc_column(doc, query, 3, 30), doc_column(doc, query, 0, 100));
        doc_line(doc, "entry " MARK "b%s" MARK "n of " MARK "b%s" MARK "n  " MARK "d%s:%" PRId64, doc_column(doc, query, 3, 40), doc_column(doc, query, 0, 160),
                 doc_column(doc, query, 1, 300), query_integer(query, 2));
        doc_leads(doc, VIEW_FUNCTION, query_integer(query, 11), NULL, NULL);
        doc->file = query_type(query, 1) == QUERY_NULL ? NULL : strdup(query_text(query, 1, NULL));
        doc->file_line = query_integer(query, 2);
        doc_line(doc, "backend %s%s, born %.6f s", query_type(query, 4) == QUERY_NULL ? "not known" : doc_column(doc, query, 4, 80),
                 query_type(query, 5) == QUERY_NULL ? "" : doc_print(doc, ", seen by region %" PRId64 " only", query_integer(query, 5)), (double)query_integer(query, 7) / 1e9);
        if (compile_id >= 0)
            doc_leads(doc, VIEW_COMPILE, compile_id, NULL, NULL);
        if (query_type(query, 8) != QUERY_NULL)
            doc_line(doc, MARK "rdied at %.6f s: %s", (double)query_integer(query, 8) / 1e9, query_type(query, 9) == QUERY_NULL ? "cause not known" : doc_column(doc, query, 9, 300));
        doc->subject = target_make(VIEW_ENTRY, doc->target.id, NULL, NULL);
        doc->subject.at_ns = query_integer(query, 7);
    } else if (!query_failed(query)) {
        doc_line(doc, "the trace has no such entry");
    }
    query_close(query);
    if (!doc->quick) {
        query = db_query(db, "SELECT SUM(outcome = 1), " LAST_USE " FROM lookup WHERE code_id = (SELECT code_id FROM cache_entry WHERE cache_entry_id = ?1)"
                             " AND cache_entry_id = ?1");
        query_bind_integer(query, 1, doc->target.id);
        if (query_step(query)) {
            doc_line(doc, "%s%s hits%s", query_integer(query, 0) ? MARK "g" : MARK "w", doc_count(doc, query_integer(query, 0)),
                     query_type(query, 1) == QUERY_NULL ? ", never used" : doc_print(doc, MARK "n, last used %.6f s", (double)query_integer(query, 1) / 1e9));
            doc_leads(doc, VIEW_LEDGER, 0, doc_print(doc, "cache_entry_id = %" PRId64, doc->target.id), "its hits");
        }
        query_close(query);
    } else {
        doc_line(doc, "...");
    }
    guards_read(&guards, doc, db);
    guards_put(doc, db, &guards);
    guards_free(&guards);
    if (compile_id >= 0) {
        graphs_put(doc, db, compile_id);
        bytecode_put(doc, db, compile_id);
    }
}

static const struct text_spec entry_spec = {.build = entry_build, .staged = true, .wide = true};

static bool entry_open(struct view *view)
{
    return text_open((struct text *)view, &entry_spec);
}

const struct view_ops view_entry = {
    .name = "entry", .summary = "one cache entry: guards as a tree, graphs, bytecode", .open = entry_open, TEXT_OPS,
};
