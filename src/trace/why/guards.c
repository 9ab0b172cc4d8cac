/* trace/why/guards.c -- which guards ended checks, and what guards take of a function's calls. See trace/why/why.h.
 *
 * Runs in: the viewer.
 *
 * A check's time is that of all guards of an entry together. So what a kind of guard takes is an estimate: an entry's
 * time, shared out among its guards alike. The first calls of compiled code are not like others, so the share of a
 * call that guards take is measured on the last ones that hit, where frames are stored; else on all, compiles left
 * aside. Where guards were not timed, as in torch's own evaluator, lookups that ended in a hit stand for them: they
 * are nothing else. */
#include <stdlib.h>
#include <string.h>

#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/why/why.h"

enum {
    SLOW_SHARE = 10,    /* percent of the time in the function, */
    SLOW_NS = 1000,     /* time a call, */
    SLOW_CALLS = 10,    /* and calls, from which on guards are called slow */
    KINDS = 100,
    GUARDS_READ = 10000, /* failing guards; the SQL bounds the rest */
};

/* ---- which failed --------------------------------------------------------------- */

static enum check_result check_result_of(const char *word)
{
    int result = 0;

    while (result < CHECK_RESULTS && strcmp(check_words[result], word))
        result++;
    return result < CHECK_RESULTS ? (enum check_result)result : CHECK_FAIL;
}

/* Errors first, then what failed most. */
static int failed_more(const void *a, const void *b)
{
    const struct failed_guard *x = a, *y = b;
    const char *error = check_words[CHECK_ERROR];

    return list_order(!strcmp(y->result, error), !strcmp(x->result, error)) ?: list_order(y->times, x->times)
               ?: list_order(x->entry_id, y->entry_id) ?: list_order(x->guard_id, y->guard_id);
}

/* What those guards are that ended checks. */
static void failed_read(struct why *why)
{
    struct query *query = db_query(why->db, schema_statement("why/guard"));

    for (size_t i = 0; i < why->guards.count; i++) {
        query_bind_integer(query, 1, why->guards.at[i].guard_id);
        if (query_step(query))
            why_row(why, query, guard_fields, &why->guards.at[i]);
        query_reset(query);
    }
    query_close(query);
}

void why_gather_checks(struct why *why)
{
    struct map places = {0}; /* of a guard, entry and result: one more than the place of the failed guard */
    struct entry *entry = NULL;
    struct query *query;

    if (!why->entries.count)
        return;
    query = why_ask_rows(why, "why/checks", "why/checks-rows");
    while (query_step(query)) {
        enum check_result result = check_result_of(query_text(query, 1, NULL));
        int64_t entry_id = query_integer(query, 0), guard_id = query_integer(query, 2), spent = query_integer(query, 3), *place;
        bool ran = result != CHECK_BACKEND_MISMATCH;
        if (!entry || entry->cache_entry_id != entry_id)
            entry = list_find(&why->entries, cache_entry_id, entry_id);
        why->check_ns = times_sum(why->check_ns, spent);
        why->checks += ran;
        why->timed_checks += ran && query_type(query, 3) != QUERY_NULL;
        if (entry) {
            entry->check_ns = times_sum(entry->check_ns, spent);
            *(ran ? &entry->tried : &entry->backend_mismatches) += 1;
        }
        if (result == CHECK_PASS)
            continue;
        /* A guard is one entry's, so that is part of the key only where no guard failed. */
        place = map_put(&places, (int64_t)((uint64_t)(guard_id ? guard_id : ~entry_id) * CHECK_RESULTS + result));
        if (!*place) {
            *list_add(&why->guards) = (struct failed_guard){.result = check_words[result],
                                                            .entry = entry ? entry->label : NULL,
                                                            .entry_id = entry_id,
                                                            .guard_id = guard_id};
            *place = (int64_t)why->guards.count;
        }
        why->guards.at[*place - 1].times++;
    }
    query_close(query);
    map_free(&places);
    list_sort(&why->guards, failed_more);
    if (why->guards.count > GUARDS_READ)
        why->guards.count = GUARDS_READ;
    failed_read(why);
}

/* ---- what they take -------------------------------------------------------------- */

double why_guard_share(const struct why *why)
{
    return why->share_of_ns > 0 && why->guard_calls > 0 ? 100.0 * (double)why->share_ns / (double)why->share_of_ns : -1;
}

static struct guard_cost *cost_of(struct why *why, const char *kind)
{
    struct guard_cost *cost;

    for (size_t i = 0; i < why->costs.count; i++)
        if (!strcmp(why->costs.at[i].kind, kind))
            return &why->costs.at[i];
    if (why->costs.count == KINDS)
        return NULL;
    cost = list_add(&why->costs);
    cost->kind = arena_text(&why->arena, kind, strlen(kind));
    return cost;
}

static int cost_more(const void *a, const void *b)
{
    const struct guard_cost *x = a, *y = b;

    return list_order(y->estimated_ns, x->estimated_ns) ?: list_order(y->guards, x->guards) ?: strcmp(x->kind, y->kind);
}

/* Which kinds of guards the time is of. */
static void gather_kinds(struct why *why)
{
    struct query *query = why_ask(why, "why/kinds");

    while (query_step(query)) {
        const struct entry *entry = list_find(&why->entries, cache_entry_id, query_integer(query, 0));
        struct guard_cost *cost = cost_of(why, query_text(query, 1, NULL));
        int64_t count = query_integer(query, 2);
        if (!cost || !entry || count < 0)
            continue;
        cost->guards += count;
        if (entry->guards >= count && entry->check_ns > 0)
            cost->estimated_ns =
                times_sum(cost->estimated_ns, (int64_t)((double)(entry->check_ns / entry->guards) * (double)count));
    }
    query_close(query);
    list_sort(&why->costs, cost_more);
}

/* What part of a call that hit is its lookup: of the last ones, whose frames are found by their key. */
static void gather_share(struct why *why)
{
    struct query *query;

    if (!why_calls(why, OUTCOME_HIT) || db_meta_integer(why->db, "frame_count", 0) <= 0)
        return;
    query = why_ask(why, "why/share");
    if (query_step(query)) {
        why->share_of_hits = true;
        why->share_ns = query_integer(query, 0);
        why->share_of_ns = query_integer(query, 1);
    }
    query_close(query);
}

void why_gather_cost(struct why *why)
{
    int64_t compile_ns = 0, looked_up = 0, hits_ns = 0;

    for (size_t i = 0; i < why->calls.count; i++) {
        const struct call_class *class = &why->calls.at[i];
        if (class->outcome == OUTCOME_HIT)
            hits_ns = times_sum(hits_ns, class->lookup_ns);
        if (class->outcome != OUTCOME_PLAIN && class->outcome != OUTCOME_SKIP && class->outcome != OUTCOME_DISABLED)
            looked_up += class->calls;
    }
    for (size_t i = 0; i < why->compiles.count; i++)
        if (why->compiles.at[i].end_ns != UNKNOWN)
            compile_ns = times_sum(compile_ns, times_span(why->compiles.at[i].start_ns, why->compiles.at[i].end_ns));
    why->guard_ns = why->timed_checks ? why->check_ns : hits_ns;
    why->guard_calls = why->timed_checks ? looked_up : why_calls(why, OUTCOME_HIT);
    gather_share(why);
    if (!why->share_of_hits) {
        why->share_ns = why->guard_ns;
        why->share_of_ns = times_span(compile_ns, why->total_ns);
    }
    why->guards_slow = why->guard_calls >= SLOW_CALLS && why->guard_ns / why->guard_calls >= SLOW_NS &&
                       why_guard_share(why) >= SLOW_SHARE;
    if (why->guards_slow)
        gather_kinds(why);
}
