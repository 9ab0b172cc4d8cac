/* tui/views/overview.c -- what C makes of the page `overview`: what was recorded, how whole it is, and how calls were decided.
 *
 * Runs in: the viewer, in a thread. */
#include <stdlib.h>
#include <string.h>

#include "lib/times.h"
#include "trace/counts.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "tui/text.h"
#include "tui/sheet.h"

enum { BAR = 16 };

/* The most frequent outcome. */
static int most_of(const int64_t calls[OUTCOMES])
{
    int most = 0;

    for (int o = 1; o < OUTCOMES; o++)
        most = calls[o] > calls[most] ? o : most;
    return most;
}

/* How calls of watched code were decided. The shares are those of `report` and `check`. */
static void calls_put(struct doc *doc, struct db *db)
{
    struct counts counts = {0};
    struct progress progress = {0};
    int64_t all[OUTCOMES] = {0}, asked[OUTCOMES] = {0}, ns[OUTCOMES] = {0}, total = 0;
    struct call_sums sums;
    double whole;

    if (!counts_read(&counts, db, &progress))
        goto out;
    for (size_t i = 0; i < counts.all.count; i++)
        for (int o = 0; o < OUTCOMES; o++) {
            const struct count *count = &counts.all.at[i];
            all[o] += count->calls[o];
            ns[o] = times_sum(ns[o], count->times_ns[o]);
            asked[o] += count->turned_away ? 0 : count->calls[o];
            total += count->calls[o];
        }
    if (!total) {
        doc_part(doc, "Calls of watched code");
        doc_line(doc, "  none: nothing that compiles frames ran");
        goto out;
    }
    sums = calls_sum(asked);
    whole = sums.asked ? (double)sums.asked / 100 : 1;
    doc_part(doc, "Calls of watched code: %s" MARK "n  " MARK "%c%.1f %% hit" MARK "n, %.1f %% compiled, " MARK "%c%.1f %% ran eagerly",
             doc_count(doc, total), sums.hits * 10 >= sums.asked * 9 ? 'g' : 'w', (double)sums.hits / whole,
             (double)asked[OUTCOME_COMPILED] / whole, sums.python * 10 > sums.asked ? 'r' : 'n', (double)sums.python / whole);
    doc_leads(doc, VIEW_LEDGER, 0, NULL, NULL);
    for (int o = most_of(all); all[o]; o = most_of(all)) {
        char bar[CELL_TEXT];
        struct value share = {QUERY_REAL, {.real = (double)all[o] / (double)total}};
        doc_line(doc, "  %-15s" MARK "%c%s" MARK "n %8s  %s in lookups", outcome_word(o), word_mark(outcome_word(o)),
                 value_print(bar, &share, AS_BAR, BAR), doc_count(doc, all[o]), doc_time(doc, ns[o]));
        doc_leads(doc, VIEW_LEDGER, 0, doc_print(doc, "outcome = '%s'", outcome_word(o)), outcome_word(o));
        all[o] = 0;
    }
out:
    counts_free(&counts);
}

static void overview_part(struct doc *doc, struct db *db, struct query *row, const char *name)
{
    const char *which = doubts_frames(db), *values = doubts_values(db);

    (void)row;
    if (!strcmp(name, "calls")) {
        calls_put(doc, db);
        return;
    }
    if (which)
        doc_line(doc, MARK "d%s", which);
    if (values)
        doc_line(doc, MARK "d%s", values);
}

const struct view_ops view_overview = {.name = "overview", .summary = "the answer on one screen", .part = overview_part, PAGE_OPS};
