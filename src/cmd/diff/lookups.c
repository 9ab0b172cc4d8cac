/* cmd/diff/lookups.c -- `dyntrace diff --lookups`: the first lookup of each thread that was decided differently.
 *
 * Runs in: the viewer. See cmd/diff/diff.h.
 *
 * The lookups of both traces are read in one order, thread by thread of one name, each thread's by id. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "cmd/diff/diff.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "lib/table.h"

/* Threads that did lookups. Those of A and B that are alike have the same name and the same place among those of that
 * name: workers of one pool come in an order. Rank is no part of it: ranks are what is compared. */
#define THREADS \
    "SELECT t.thread_id, COALESCE(t.name, '?') || ' #' || ROW_NUMBER() OVER (PARTITION BY t.name ORDER BY t.thread_id) AS who," \
    "       p.pid, p.rank FROM thread t LEFT JOIN process p ON p.process_id = t.process_id" \
    " WHERE t.thread_id IN (SELECT DISTINCT thread_id FROM lookup) AND (?1 IS NULL OR p.rank = ?1) ORDER BY who"
/* All lookups of those threads, in that order, as numbers: text would make sorting them dear. */
#define LOOKUPS \
    "WITH named AS MATERIALIZED (SELECT thread_id, ROW_NUMBER() OVER (ORDER BY who) AS n FROM (" THREADS ")) " \
    "SELECT n.n, l.lookup_id, l.code_id, l.outcome, l.cache_entry_id FROM lookup l JOIN named n ON n.thread_id = l.thread_id " \
    "WHERE ?2 IS NULL OR l.code_id IN (SELECT code_id FROM code WHERE qualname GLOB ?2 OR qualname GLOB '*.' || ?2) " \
    "ORDER BY n.n, l.lookup_id"
#define LOOKUP_WORDS \
    "SELECT c.qualname, replace(c.filename, rtrim(c.filename, replace(c.filename, '/', '')), ''), c.first_line, l.outcome, e.label," \
    "       l.lookup_id, l.start_ns, s.text FROM lookup l LEFT JOIN code c ON c.code_id = l.code_id" \
    " LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id LEFT JOIN signature s ON s.signature_id = l.signature_id" \
    " WHERE l.lookup_id = ?1"
#define CODE_WORDS \
    "SELECT qualname, replace(filename, rtrim(filename, replace(filename, '/', '')), ''), NULLIF(fingerprint, 0) FROM code" \
    " WHERE code_id = ?1"
#define ENTRY_WORDS "SELECT label, NULL, NULL FROM cache_entry WHERE cache_entry_id = ?1"

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
    struct query *a = db_query(diff->a.db, LOOKUP_WORDS), *b = db_query(diff->b.db, LOOKUP_WORDS), *at;
    struct function f = {0};
    char *in_a, *in_b, *what = NULL;
    bool more_a, more_b;

    query_bind_integer(a, 1, x);
    query_bind_integer(b, 1, y);
    more_a = x && query_step(a);
    more_b = y && query_step(b);
    at = more_b ? b : a;
    in_a = lookup_words(a, more_a);
    in_b = lookup_words(b, more_b);
    if (more_a || more_b)
        f = (struct function){.name = prose_column(at, 0), .file = prose_column(at, 1), .line = query_integer(at, 2)};
    f.name = f.name ? f.name : strdup("?");
    f.file = f.file ? f.file : strdup("?");
    if (asprintf(&what, "%.100s: after %" PRId64 " alike", who, alike) < 0)
        what = NULL;
    if (what && f.name && f.file)
        diff_row(diff, LOOKUP, &f, what, in_a, in_b);
    function_free(&f);
    free(in_a);
    free(in_b);
    free(what);
    query_close(a);
    query_close(b);
}

/* Lookups of a side, one after the other, thread by thread. */
struct stream {
    struct query *rows, *threads; /* owned; THREADS at the one that is compared */
    int64_t at;                   /* the how manieth thread that is */
    bool more, thread;            /* there is a row, a thread */
};

static void stream_open(struct stream *stream, struct diff *diff, struct side *side)
{
    stream->rows = db_query(side->db, LOOKUPS);
    stream->threads = db_query(side->db, THREADS);
    if (side->rank >= 0 && stream->rows && stream->threads) {
        query_bind_integer(stream->rows, 1, side->rank);
        query_bind_integer(stream->threads, 1, side->rank);
    }
    if (diff->glob && stream->rows)
        query_bind_text(stream->rows, 2, diff->glob);
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
static void threads_compare(struct diff *diff, struct stream *a, struct stream *b, struct sameness *codes, struct sameness *entries)
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

    if (!ok) {
        say_error("diff: out of memory");
        return false;
    }
    both[0].a = db_query(diff->a.db, CODE_WORDS);
    both[0].b = db_query(diff->b.db, CODE_WORDS);
    both[1].a = db_query(diff->a.db, ENTRY_WORDS);
    both[1].b = db_query(diff->b.db, ENTRY_WORDS);
    ok = both[0].a && both[0].b && both[1].a && both[1].b;
    stream_open(&a, diff, &diff->a);
    stream_open(&b, diff, &diff->b);
    while (ok && (a.thread || b.thread)) {
        int order = !a.thread ? 1 : !b.thread ? -1 : strcmp(query_text(a.threads, 1, NULL), query_text(b.threads, 1, NULL));
        if (order)
            diff_row(diff, LOOKUP, NULL, query_text(order < 0 ? a.threads : b.threads, 1, NULL), order < 0 ? "a thread with lookups" : NULL,
                    order > 0 ? "a thread with lookups" : NULL);
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
