/* cmd/diff/reasons.c -- `dyntrace diff`: why functions were compiled again and where graphs broke, in one trace and the other.
 *
 * Runs in: the viewer. See cmd/diff/diff.h.
 *
 * Recompiles are counted by function and source, breaks by function and reason, and both counts put beside each other.
 * What was seen (sizes, values) is not part of a reason. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "cmd/diff/diff.h"
#include "trace/prose.h"
#include "lib/say.h"

/* Rows are function, the last part of its file, its line, what, how often. */
static const char reasons_sql[] =
    "SELECT c.qualname, replace(c.filename, rtrim(c.filename, replace(c.filename, '/', '')), '') AS file, MIN(c.first_line),"
    "       COALESCE(r.kind, '?') || ' ' || COALESCE(r.source, substr(r.text, 1, 200), '?') AS what, COUNT(*) "
    "FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id JOIN code c ON c.code_id = m.code_id "
    "WHERE r.ordinal = 0 AND (?1 IS NULL OR c.qualname GLOB ?1 OR c.qualname GLOB '*.' || ?1) AND " OF_RANK " "
    "GROUP BY 1, 2, 4";
static const char breaks_sql[] =
    "SELECT c.qualname, replace(c.filename, rtrim(c.filename, replace(c.filename, '/', '')), '') AS file, MIN(c.first_line),"
    "       COALESCE(substr(b.reason, 1, instr(substr(b.reason, 1, 200) || char(10), char(10)) - 1), '?') AS what, COUNT(*) "
    "FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id JOIN code c ON c.code_id = m.code_id "
    "WHERE (?1 IS NULL OR c.qualname GLOB ?1 OR c.qualname GLOB '*.' || ?1) AND " OF_RANK " "
    "GROUP BY 1, 2, 4";

struct reason {
    struct function f; /* owns its name and file */
    const char *file;  /* borrowed: where B has it */
    char *what;        /* owned */
    int64_t count;
};

struct reasons {
    struct reason *at; /* owned, by name, B's file and what */
    size_t count;
};

static int reason_order(const void *a, const void *b)
{
    const struct reason *x = a, *y = b;
    int order = strcmp(x->f.name, y->f.name);

    if (!order)
        order = strcmp(x->file, y->file);
    return order ? order : strcmp(x->what, y->what);
}

static char *text_of(struct query *query, int column)
{
    return strdup(query_type(query, column) == QUERY_NULL ? "?" : query_text(query, column, NULL));
}

/* What SQL finds in SIDE. False: it was said why not. */
static bool reasons_read(struct diff *diff, struct side *side, const char *sql, struct reasons *reasons)
{
    struct query *query = db_query(side->db, sql);
    size_t room = 0;

    diff_bind(diff, side, query, 1);
    while (query_step(query)) {
        struct reason *r;
        if (reasons->count == room) {
            struct reason *more = realloc(reasons->at, (room = room ? room * 2 : 64) * sizeof *more);
            if (!more)
                goto memory;
            reasons->at = more;
        }
        r = &reasons->at[reasons->count++];
        *r = (struct reason){.f = {.name = text_of(query, 0), .file = text_of(query, 1), .line = query_integer(query, 2)},
                             .what = text_of(query, 3), .count = query_integer(query, 4)};
        if (!r->f.name || !r->f.file || !r->what)
            goto memory;
        r->file = side == &diff->a ? diff_file(diff, r->f.name, r->f.file) : r->f.file;
    }
    if (reasons->count)
        qsort(reasons->at, reasons->count, sizeof *reasons->at, reason_order);
    return query_close(query);
memory:
    say_error("%s: out of memory", db_path(side->db));
    query_close(query);
    return false;
}

static void reasons_free(struct reasons *reasons)
{
    for (size_t i = 0; i < reasons->count; i++) {
        function_free(&reasons->at[i].f);
        free(reasons->at[i].what);
    }
    free(reasons->at);
}

/* Rows of SQL that are new, gone, or more or fewer. */
static bool reasons_compare(struct diff *diff, enum kind kind, const char *sql)
{
    struct reasons a = {0}, b = {0};
    bool ok = reasons_read(diff, &diff->a, sql, &a) && reasons_read(diff, &diff->b, sql, &b);

    for (size_t i = 0, j = 0; ok && (i < a.count || j < b.count);) {
        int order = i == a.count ? 1 : j == b.count ? -1 : reason_order(&a.at[i], &b.at[j]);
        const struct reason *x = order <= 0 ? &a.at[i++] : NULL, *y = order >= 0 ? &b.at[j++] : NULL, *at = y ? y : x;
        char in_a[32], in_b[32];
        snprintf(in_a, sizeof in_a, "%" PRId64, x ? x->count : 0);
        snprintf(in_b, sizeof in_b, "%" PRId64, y ? y->count : 0);
        if (order || (kind == REASON && x->count != y->count))
            diff_row(diff, kind, &at->f, at->what, x ? in_a : NULL, y ? in_b : NULL);
    }
    reasons_free(&a);
    reasons_free(&b);
    return ok;
}

bool diff_reasons(struct diff *diff)
{
    return reasons_compare(diff, REASON, reasons_sql) && reasons_compare(diff, BREAK, breaks_sql);
}
