/* cmd/diff/reasons.c -- `dyntrace diff`: why functions were compiled again and where graphs broke, in one trace and
 * the other.
 *
 * Runs in: the viewer. See cmd/diff/diff.h.
 *
 * Recompiles are counted by function and source, breaks by function and reason, and both counts put beside each
 * other. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/diff/diff.h"
#include "trace/db.h"

struct reason {
    struct function f;
    const char *file; /* where B has it */
    const char *what;
    int64_t count;
};
typedef LIST(struct reason) reasons; /* by name, B's file and what */

static int reason_order(const void *a, const void *b)
{
    const struct reason *x = a, *y = b;
    int order = strcmp(x->f.name, y->f.name);

    if (!order)
        order = strcmp(x->file, y->file);
    return order ? order : strcmp(x->what, y->what);
}

/* What STATEMENT finds in SIDE. False: it was said why not. */
static bool reasons_read(struct diff *diff, struct side *side, const char *statement, reasons *reasons)
{
    struct query *query = diff_ask(diff, side, statement);

    while (query_step(query)) {
        struct reason *r = list_add(reasons);
        if (r)
            *r = (struct reason){.f = {.name = diff_text(side, query, 0),
                                       .file = diff_text(side, query, 1),
                                       .line = query_integer(query, 2)},
                                 .what = diff_text(side, query, 3),
                                 .count = query_integer(query, 4)};
        if (!r || !r->f.name || !r->f.file || !r->what) {
            query_close(query);
            return diff_no_memory();
        }
        r->file = side == &diff->a ? diff_file(diff, r->f.name, r->f.file) : r->f.file;
    }
    if (reasons->count)
        qsort(reasons->at, reasons->count, sizeof *reasons->at, reason_order);
    return query_close(query);
}

/* Rows that are new, gone, or more or fewer. */
static bool reasons_compare(struct diff *diff, enum kind kind, const char *statement)
{
    reasons a = {0}, b = {0};
    bool ok = reasons_read(diff, &diff->a, statement, &a) && reasons_read(diff, &diff->b, statement, &b);

    for (size_t i = 0, j = 0; ok && (i < a.count || j < b.count);) {
        int order = i == a.count ? 1 : j == b.count ? -1 : reason_order(&a.at[i], &b.at[j]);
        const struct reason *x = order <= 0 ? &a.at[i++] : NULL, *y = order >= 0 ? &b.at[j++] : NULL, *at = y ? y : x;
        char in_a[32], in_b[32];
        snprintf(in_a, sizeof in_a, "%" PRId64, x ? x->count : 0);
        snprintf(in_b, sizeof in_b, "%" PRId64, y ? y->count : 0);
        if (order || (kind == REASON && x->count != y->count))
            diff_row(diff, kind, &at->f, at->what, x ? in_a : NULL, y ? in_b : NULL);
    }
    list_free(&a);
    list_free(&b);
    return ok;
}

bool diff_reasons(struct diff *diff)
{
    return reasons_compare(diff, REASON, "diff/reasons") && reasons_compare(diff, BREAK, "diff/break-reasons");
}
