/* cmd/diff/lookups.c -- `dyntrace diff --lookups`: the first lookup of each thread that was decided differently.
 *
 * Runs in: the viewer. See cmd/diff/diff.h.
 *
 * The lookups of both traces are read in one order, thread by thread of one name, each thread's by id. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/diff/diff.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"

enum { KNOWN = 4096 };

/* Are the thing X of A and the thing Y of B the same by their words? What was found is remembered. */
struct sameness {
    struct query *a, *b; /* owned: the words of an id */
    struct {
        int64_t a, b;
        bool known, same;
    } found[KNOWN];
};

static bool text_same(struct query *a, struct query *b, int column)
{
    return query_type(a, column) == query_type(b, column) &&
           !strcmp(query_text(a, column, NULL), query_text(b, column, NULL));
}

static bool same(struct sameness *sameness, int64_t x, int64_t y)
{
    size_t place = ((uint64_t)x * 31 + (uint64_t)y) % KNOWN;
    bool more_x, more_y;

    if (!sameness->found[place].known || sameness->found[place].a != x || sameness->found[place].b != y) {
        query_reset(sameness->a);
        query_reset(sameness->b);
        query_bind_integer(sameness->a, 1, x);
        query_bind_integer(sameness->b, 1, y);
        more_x = query_step(sameness->a);
        more_y = query_step(sameness->b);
        sameness->found[place].a = x;
        sameness->found[place].b = y;
        sameness->found[place].known = true;
        sameness->found[place].same =
            more_x == more_y &&
            (!more_x || (text_same(sameness->a, sameness->b, 0) &&
                         (text_same(sameness->a, sameness->b, 1) || /* or it moved to another file */
                          (query_type(sameness->a, 2) != QUERY_NULL && text_same(sameness->a, sameness->b, 2)))));
    }
    return sameness->found[place].same;
}

/* "hit 0/1 (lookup 7 at 1.2 ms; x: int[4])"; the caller frees it. */
static char *lookup_words(struct query *q, bool more)
{
    char *made = NULL, human[TABLE_HUMAN];
    int64_t outcome;

    if (!more)
        return strdup("no more lookups");
    outcome = query_integer(q, 3);
    if (asprintf(&made, "%.300s %s%s%.100s (lookup %" PRId64 " at %s%s%.300s)", query_text(q, 0, NULL),
                 outcome_word(outcome), *query_text(q, 4, NULL) ? " " : "",
                 query_text(q, 4, NULL), query_integer(q, 5), table_duration(human, query_integer(q, 6)),
                 *query_text(q, 7, NULL) ? "; " : "", query_text(q, 7, NULL)) < 0)
        return NULL;
    return made;
}

/* WHO's lookups differ: those with the ids X and Y, 0 where there are no more. */
static void diverge_put(struct diff *diff, const char *who, int64_t alike, int64_t x, int64_t y)
{
    struct query *a = db_query(diff->a.db, schema_statement("diff/lookup")),
                 *b = db_query(diff->b.db, schema_statement("diff/lookup"));
    struct function f = {.name = "?", .file = "?"};
    char *in_a, *in_b, *what = NULL;
    bool more_a, more_b;

    query_bind_integer(a, 1, x);
    query_bind_integer(b, 1, y);
    more_a = x && query_step(a);
    more_b = y && query_step(b);
    in_a = lookup_words(a, more_a);
    in_b = lookup_words(b, more_b);
    if (more_a || more_b) {
        struct query *at = more_b ? b : a;
        f = (struct function){
            .name = query_text(at, 0, NULL), .file = query_text(at, 1, NULL), .line = query_integer(at, 2)};
    }
    if (asprintf(&what, "%.100s: after %" PRId64 " alike", who, alike) < 0)
        what = NULL;
    if (what)
        diff_row(diff, LOOKUP, &f, what, in_a, in_b);
    free(in_a);
    free(in_b);
    free(what);
    query_close(a);
    query_close(b);
}

/* Lookups of a side, one after the other, thread by thread. */
struct stream {
    struct query *rows, *threads; /* owned; THREADS at the one that is compared */
    int64_t at;                   /* its place among them, from 1 */
    bool more, thread;            /* there is a row, a thread */
};

static void stream_open(struct stream *stream, struct diff *diff, struct side *side)
{
    stream->rows = diff_ask(diff, side, "diff/threads-lookups");
    stream->threads = diff_ask(diff, side, "diff/threads");
    stream->more = query_step(stream->rows);
    stream->thread = query_step(stream->threads);
    stream->at = 1;
}

/* Is the current row one of the current thread? */
static bool stream_here(const struct stream *stream)
{
    return stream->more && query_integer(stream->rows, 0) == stream->at;
}

static void stream_next_thread(struct stream *stream)
{
    while (stream_here(stream))
        stream->more = query_step(stream->rows);
    stream->thread = query_step(stream->threads);
    stream->at++;
}

static bool stream_close(struct stream *stream)
{
    return query_close(stream->rows) & query_close(stream->threads);
}

/* The first lookup of the threads that both are at that differs in function, outcome or entry. */
static void threads_compare(struct diff *diff, struct stream *a, struct stream *b, struct sameness *codes,
                            struct sameness *entries)
{
    int64_t alike = 0;

    for (;; alike++) {
        bool here_a = stream_here(a), here_b = stream_here(b);
        if (!here_a && !here_b)
            return;
        if (here_a != here_b || query_integer(a->rows, 3) != query_integer(b->rows, 3) ||
            !same(codes, query_integer(a->rows, 2), query_integer(b->rows, 2)) ||
            !same(entries, query_integer(a->rows, 4), query_integer(b->rows, 4))) {
            diverge_put(diff, query_text(b->threads, 1, NULL), alike, here_a ? query_integer(a->rows, 1) : 0,
                        here_b ? query_integer(b->rows, 1) : 0);
            return;
        }
        if (!(alike % DIFF_TICK))
            progress_tick(&diff->progress, 0, 0);
        a->more = query_step(a->rows);
        b->more = query_step(b->rows);
    }
}

bool diff_lookups(struct diff *diff)
{
    struct stream a, b;
    struct sameness *both = calloc(2, sizeof *both);
    bool ok = both != NULL;

    if (!ok)
        return diff_no_memory();
    for (int i = 0; i < 2; i++) {
        const char *sql = i ? schema_statement("diff/entry") : schema_statement("diff/code");
        both[i].a = db_query(diff->a.db, sql);
        both[i].b = db_query(diff->b.db, sql);
        ok = ok && both[i].a && both[i].b;
    }
    stream_open(&a, diff, &diff->a);
    stream_open(&b, diff, &diff->b);
    while (ok && (a.thread || b.thread)) {
        int order = !a.thread   ? 1
                    : !b.thread ? -1
                                : strcmp(query_text(a.threads, 1, NULL), query_text(b.threads, 1, NULL));
        if (order)
            diff_row(diff, LOOKUP, NULL, query_text(order < 0 ? a.threads : b.threads, 1, NULL),
                     order < 0 ? "a thread with lookups" : NULL, order > 0 ? "a thread with lookups" : NULL);
        else
            threads_compare(diff, &a, &b, &both[0], &both[1]);
        if (order <= 0)
            stream_next_thread(&a);
        if (order >= 0)
            stream_next_thread(&b);
    }
    for (int i = 0; i < 2; i++)
        ok = (query_close(both[i].a) & query_close(both[i].b)) && ok;
    free(both);
    return (stream_close(&a) & stream_close(&b)) && ok;
}
