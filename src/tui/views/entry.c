/* tui/views/entry.c -- what C makes of the page `entry`: its guards as a tree of what they look at, and its bytecode before and
 * after.
 *
 * Runs in: the viewer, in a thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "tui/text.h"

/* ---- guards -------------------------------------------------------------- */

struct guard {
    int64_t id, ordinal, ran, failed;
    char *kind, *source, *expression, *stack; /* owned */
};

typedef LIST(struct guard) guards;

static void guards_read(guards *all, struct doc *doc, struct db *db)
{
    struct query *query = page_query(doc, db, "entry-guards");

    while (query_step(query)) {
        struct guard *guard = list_add(all);
        *guard = (struct guard){query_integer(query, 0), query_integer(query, 1), 0, 0, prose_column(query, 2), prose_column(query, 3),
                                prose_column(query, 4), prose_column(query, 5)};
    }
    query_close(query);
}

static void guards_free(guards *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->at[i].kind);
        free(all->at[i].source);
        free(all->at[i].expression);
        free(all->at[i].stack);
    }
    list_free(all);
}

/* The place of each guard in ORDINALS, an order as JSON: [3, 0, 1]; those that it leaves out keep their own. */
static void places_read(guards *all, int64_t *places, const char *ordinals)
{
    int64_t place = 0;

    for (size_t i = 0; i < all->count; i++)
        places[i] = all->at[i].ordinal;
    for (char *end; *(ordinals += strcspn(ordinals, "0123456789")); ordinals = end, place++) {
        int64_t ordinal = strtoll(ordinals, &end, 10);
        struct guard *guard = list_find(all, ordinal, ordinal);
        if (guard)
            places[guard - all->at] = place;
    }
}

/* How often each guard ran and failed. They are still sorted by ordinal. */
static void guards_count(guards *all, struct doc *doc, struct db *db)
{
    struct query *query = page_query(doc, db, "entry-ran");
    int64_t *places = calloc(all->count + 1, sizeof *places);

    while (places && query_step(query)) {
        int64_t ran = query_integer(query, 0), failed = query_integer(query, 1), times = query_integer(query, 3);
        places_read(all, places, query_whole(query, 4, NULL));
        for (size_t i = 0; i < all->count; i++) {
            all->at[i].ran += places[i] < ran ? times : 0;
            if (query_type(query, 1) != QUERY_NULL && all->at[i].id == failed && strcmp(query_text(query, 2, NULL), "pass"))
                all->at[i].failed += times;
        }
    }
    query_close(query);
    free(places);
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

static void guards_put(struct doc *doc, struct db *db, guards *guards)
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

/* ---- bytecode ------------------------------------------------------------- */

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
static void bytecode_put(struct doc *doc, struct query *row)
{
    static const char *const titles[] = {"Original bytecode", "Modified bytecode"};
    char *texts[2] = {NULL, NULL};
    int half = (doc->columns - 6) / 2;

    for (int i = 0; i < 2; i++)
        texts[i] = query_type(row, i) == QUERY_NULL ? NULL : strdup(query_whole(row, i, NULL));
    if (texts[0] && texts[1] && half >= 44) {
        const char *left = texts[0], *right = texts[1];
        doc_part(doc, "%s%s", doc_fit(doc, titles[0], half + 3), titles[1]);
        for (int count = 0; (*left || *right) && count < 4000; count++) {
            const char *a = "", *b = "";
            if (*left)
                line_take(doc, &left, &a);
            if (*right)
                line_take(doc, &right, &b);
            doc_line(doc, "  %s " MARK "d│" MARK "n %s", doc_fit(doc, a, half), b);
        }
    } else {
        for (int i = 0; i < 2; i++)
            if (texts[i]) {
                doc_part(doc, "%s", titles[i]);
                doc_text(doc, texts[i], 2, 4000);
            }
    }
    free(texts[0]);
    free(texts[1]);
}

static void entry_part(struct doc *doc, struct db *db, struct query *row, const char *name)
{
    guards guards = {0};

    if (!strcmp(name, "bytecode")) {
        bytecode_put(doc, row);
        return;
    }
    guards_read(&guards, doc, db);
    guards_put(doc, db, &guards);
    guards_free(&guards);
}

const struct view_ops view_entry = {
    .name = "entry", .summary = "one cache entry: guards as a tree, graphs, bytecode", .part = entry_part, .all = VIEW_ENTRIES, PAGE_OPS,
};
