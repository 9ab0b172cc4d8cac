/* trace/why/why.c -- gathers what is known about one function's calls. See trace/why/why.h.
 *
 * Runs in: the viewer.
 *
 * One statement of schemas/why.sql for each kind of fact; they are also what --sql prints. `lookup`, `guard_check`
 * and `frame` are long: their rows are summed up here, and --sql prints the GROUP BY for it. */
#include "trace/why/why.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/say.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/prose.h"

enum {
    FRAMES_READ = 12000000, /* more frames are not read to tell how calls without a lookup were decided */
    GUARDS_READ = 10000,    /* failing guards; the SQL bounds the rest */
};

void *why_added(struct why *why, void *item)
{
    if (!item && !why->failed)
        say_error("out of memory");
    why->failed = why->failed || !item;
    return item;
}

/* SQL with the ids themselves, as --sql prints it. The caller frees it. */
static char *printed_sql(const struct why *why, const char *sql)
{
    static const char ids[] = "SELECT value FROM json_each(?1)";
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    for (const char *at; out && (at = strstr(sql, ids)); sql = at + strlen(ids))
        fprintf(out, "%.*s%s", (int)(at - sql), sql, why->code.ids);
    if (out)
        fputs(sql, out), fclose(out);
    return made;
}

/* Ask ROWS, and show ASKED for it. */
static struct query *ask_rows(struct why *why, const char *asked, const char *rows)
{
    const char *sql = schema_statement(asked), *title = sql + strlen("-- "), *end = strchr(sql, '\n');
    struct ask *ask = ADD(why, asked);
    char *text = printed_sql(why, end + 1);
    struct query *query = db_query(why->db, schema_statement(rows));

    if (ask)
        *ask = (struct ask){why_added(why, arena_text(&why->arena, title, (size_t)(end - title))), why_keep(why, text)};
    find_bind(query, 1, &why->code);
    return query;
}

struct query *why_ask(struct why *why, const char *name)
{
    return ask_rows(why, name, name);
}

void why_asked(struct why *why, struct query *query)
{
    if (!query_close(query))
        why->failed = true;
}

/* ---- gathering ------------------------------------------------------------- */

static void gather_totals(struct why *why)
{
    struct query *query = why_ask(why, "why/totals");

    why->all_calls = why->total_ns = UNKNOWN;
    if (query_step(query))
        why_row(why, query, why_fields, why);
    why_asked(why, query);
    why->missing = db_integer(why->db, 0, "SELECT EXISTS (SELECT 1 FROM loss WHERE events IS NULL OR events > 0)");
}

/* Has a cause of this compile already a deciding guard for this entry? */
static bool entry_decided(struct why *why, const struct compile *compile, int64_t entry_id)
{
    for (size_t i = compile->first_cause; i < compile->first_cause + compile->causes; i++)
        if (why->causes.at[i].entry_id == entry_id && why->causes.at[i].decided)
            return true;
    return false;
}

static void gather_causes(struct why *why)
{
    struct compile *compile = NULL;

    READ(why, causes, "why/causes", cause_fields);
    for (size_t i = 0; i < why->causes.count; i++) {
        struct cause *c = &why->causes.at[i];
        if (!compile || compile->compile_id != c->compile_id) {
            compile = list_find(&why->compiles, compile_id, c->compile_id);
            if (compile)
                compile->first_cause = i;
        }
        if (!compile)
            continue;
        c->decided = c->decided && !entry_decided(why, compile, c->entry_id);
        compile->causes++;
    }
}

int64_t why_calls(const struct why *why, enum outcome outcome)
{
    int64_t calls = 0;

    for (size_t i = 0; i < why->calls.count; i++)
        if (why->calls.at[i].outcome == (int64_t)outcome)
            calls += why->calls.at[i].calls;
    return calls;
}

static void class_add(struct call_class *class, int64_t calls, int64_t first_ns, int64_t last_ns, int64_t lookup_ns)
{
    if (!class->calls || first_ns < class->first_ns)
        class->first_ns = first_ns;
    if (!class->calls || last_ns > class->last_ns)
        class->last_ns = last_ns;
    class->calls += calls;
    class->lookup_ns = times_sum(class->lookup_ns, lookup_ns);
}

static void gather_lookups(struct why *why)
{
    struct query *query = ask_rows(why, "why/lookups", "why/lookups-rows");
    struct call_class sums[OUTCOMES] = {0}, *class;
    int64_t calls[OUTCOMES] = {0};
    struct entry *entry = NULL;

    while (query_step(query)) {
        enum outcome outcome = outcome_of(query_integer(query, 0));
        int64_t entry_id = query_integer(query, 1), start = query_integer(query, 2), spent = query_integer(query, 3);
        calls[outcome]++;
        if (!entry || entry->cache_entry_id != entry_id)
            entry = list_find(&why->entries, cache_entry_id, entry_id);
        if (outcome == OUTCOME_HIT && entry) {
            if (!entry->hit++ || start < entry->first_hit_ns)
                entry->first_hit_ns = start;
            if (start > entry->last_hit_ns) /* UNKNOWN is less than all */
                entry->last_hit_ns = start;
            entry->lookup_ns = times_sum(entry->lookup_ns, spent);
            continue;
        }
        class_add(&sums[outcome], 1, start, start, spent);
        if (outcome == OUTCOME_COMPILED && entry) { /* its inputs are the compile's */
            struct compile *compile = list_find(&why->compiles, compile_id, entry->compile_id);
            if (compile)
                compile->signature_id = query_integer(query, 4);
        }
    }
    why_asked(why, query);
    query = why_ask(why, "why/skipped");
    calls[OUTCOME_SKIP] = query_step(query) ? query_integer(query, 0) : 0;
    why_asked(why, query);
    why->shared = calls_sum(calls);
    for (int i = 0; i < OUTCOMES; i++)
        if (sums[i].calls && (class = ADD(why, calls))) {
            *class = sums[i];
            class->outcome = i;
        }
    for (size_t i = 0; i < why->entries.count; i++) {
        entry = &why->entries.at[i];
        if (entry->hit && (class = ADD(why, calls)))
            *class = (struct call_class){OUTCOME_HIT, entry->cache_entry_id, entry->hit, entry->first_hit_ns,
                                         entry->last_hit_ns, entry->lookup_ns, entry->label};
    }
}

/* What the inputs of the compiled calls were like. */
static void gather_signatures(struct why *why)
{
    struct query *query = db_query(why->db, "SELECT substr(text, 1, 400) FROM signature WHERE signature_id = ?1");

    for (size_t i = 0; i < why->compiles.count; i++) {
        if (!why->compiles.at[i].signature_id)
            continue;
        query_bind_integer(query, 1, why->compiles.at[i].signature_id);
        if (query_step(query))
            why->compiles.at[i].inputs = why_text(why, query, 0);
        query_reset(query);
    }
    why_asked(why, query);
}

/* Calls without a lookup: their frames say how they were decided. */
static void gather_frames(struct why *why)
{
    struct call_class sums[OUTCOMES] = {0}, *class;
    struct query *query;
    int64_t decided = 0;

    for (size_t i = 0; i < why->calls.count; i++)
        decided += why->calls.at[i].calls;
    if (decided && why->all_calls < decided)
        why->all_calls = decided;
    why->undecided = why->all_calls > decided ? why->all_calls - decided : 0;
    if (!why->undecided || db_meta_integer(why->db, "frame_count", -1) > FRAMES_READ)
        return;
    query = ask_rows(why, "why/frames", "why/frames-rows");
    while (query_step(query))
        class_add(&sums[outcome_of(query_integer(query, 0))], 1, query_integer(query, 1), query_integer(query, 1), 0);
    why_asked(why, query);
    for (int i = 0; i < OUTCOMES; i++) {
        int64_t calls = sums[i].calls - why_calls(why, (enum outcome)i); /* the others had a lookup as well */
        if (calls > why->undecided)
            calls = why->undecided;
        if (calls <= 0)
            continue;
        class = NULL;
        for (size_t j = 0; j < why->calls.count && !class; j++)
            if (why->calls.at[j].outcome == i && !why->calls.at[j].cache_entry_id)
                class = &why->calls.at[j];
        if (!class && (class = ADD(why, calls)))
            class->outcome = i;
        if (!class)
            return;
        why->undecided -= calls;
        class_add(class, calls, sums[i].first_ns, sums[i].last_ns, 0);
    }
}

/* How often a guard ended a check. */
struct tally {
    int64_t guard_id, entry_id, times;
    enum check_result result;
};

static enum check_result check_result_of(const char *word)
{
    int result = 0;

    while (result < CHECK_RESULTS && strcmp(check_words[result], word))
        result++;
    return result < CHECK_RESULTS ? (enum check_result)result : CHECK_FAIL;
}

/* Errors first, then what failed most. */
static int tally_more(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;

    if ((x->result == CHECK_ERROR) != (y->result == CHECK_ERROR))
        return x->result == CHECK_ERROR ? -1 : 1;
    if (x->times != y->times)
        return x->times < y->times ? 1 : -1;
    if (x->entry_id != y->entry_id)
        return x->entry_id < y->entry_id ? -1 : 1;
    return (x->guard_id > y->guard_id) - (x->guard_id < y->guard_id);
}

static void failed_guard_add(struct why *why, struct query *query, const struct tally *tally)
{
    const struct entry *entry = list_find(&why->entries, cache_entry_id, tally->entry_id);
    struct failed_guard *guard = ADD(why, guards);

    if (!guard)
        return;
    *guard = (struct failed_guard){
        .times = tally->times, .result = check_words[tally->result], .entry = entry ? entry->label : NULL};
    query_bind_integer(query, 1, tally->guard_id);
    if (query_step(query))
        why_row(why, query, guard_fields, guard);
    query_reset(query);
}

static void gather_checks(struct why *why)
{
    LIST(struct tally) tallies = {0};
    struct map places = {0}; /* of a guard, entry and result: one more than its place in TALLIES */
    struct entry *entry = NULL;
    struct query *query;

    if (!why->entries.count)
        return;
    query = ask_rows(why, "why/checks", "why/checks-rows");
    while (!why->failed && query_step(query)) {
        struct tally key = {query_integer(query, 2), query_integer(query, 0), 0,
                            check_result_of(query_text(query, 1, NULL))};
        int64_t spent = query_integer(query, 3), *place;
        bool ran = key.result != CHECK_BACKEND_MISMATCH;
        if (!entry || entry->cache_entry_id != key.entry_id)
            entry = list_find(&why->entries, cache_entry_id, key.entry_id);
        why->check_ns = times_sum(why->check_ns, spent);
        why->checks += ran;
        why->timed_checks += ran && query_type(query, 3) != QUERY_NULL;
        if (entry) {
            entry->check_ns = times_sum(entry->check_ns, spent);
            *(ran ? &entry->tried : &entry->backend_mismatches) += 1;
        }
        if (key.result == CHECK_PASS)
            continue;
        /* A guard is one entry's, so that is part of the key only where no guard failed. */
        place = map_put(
            &places, (int64_t)((uint64_t)(key.guard_id ? key.guard_id : ~key.entry_id) * CHECK_RESULTS + key.result));
        if (place && !*place) {
            struct tally *tally = why_added(why, list_add(&tallies));
            if (tally)
                *tally = key;
            *place = (int64_t)tallies.count;
        }
        if (why_added(why, place) && *place)
            tallies.at[*place - 1].times++;
    }
    why_asked(why, query);
    if (tallies.count)
        qsort(tallies.at, tallies.count, sizeof *tallies.at, tally_more);
    query = db_query(why->db,
                     "SELECT kind, source, substr(expression, 1, 400) AS expression FROM guard WHERE guard_id = ?1");
    for (size_t i = 0; i < tallies.count && i < GUARDS_READ && !why->failed; i++)
        failed_guard_add(why, query, &tallies.at[i]);
    why_asked(why, query);
    map_free(&places);
    list_free(&tallies);
}

/* What the calls were like that no entry fitted and that ran as Python. */
static void gather_inputs(struct why *why)
{
    struct query *query;

    if (!why_calls(why, OUTCOME_LIMIT) && !why_calls(why, OUTCOME_RUN_ONLY))
        return;
    READ(why, inputs, "why/inputs", input_fields);
    query = why_ask(why, "why/different");
    if (query_step(query) && !query_integer(query, 1) &&
        !doubts_values(why->db)) /* else there may be more than were recorded */
        why->different_inputs = query_integer(query, 0);
    why_asked(why, query);
}

/* ---- all of it ------------------------------------------------------------- */

static int class_order(const void *a, const void *b)
{
    const struct call_class *x = a, *y = b;

    if (x->calls != y->calls)
        return x->calls < y->calls ? 1 : -1;
    if (x->outcome != y->outcome)
        return x->outcome < y->outcome ? -1 : 1;
    return (x->cache_entry_id > y->cache_entry_id) - (x->cache_entry_id < y->cache_entry_id);
}

void why_gather(struct why *why)
{
    gather_totals(why);
    READ(why, entries, "why/entries", entry_fields);
    for (size_t i = 0; i < why->entries.count; i++)
        why->entries.at[i].last_hit_ns = UNKNOWN;
    READ(why, compiles, "why/compiles", compile_fields);
    gather_causes(why);
    gather_lookups(why);
    gather_signatures(why);
    gather_frames(why);
    gather_checks(why);
    gather_inputs(why);
    why_gather_torch(why);
    why_gather_parents(why);
    why_gather_cost(why);
    if (why->failed)
        return;
    if (why->calls.count)
        qsort(why->calls.at, why->calls.count, sizeof *why->calls.at, class_order);
    why_follow(why);
}

void why_free(struct why *why)
{
    list_free(&why->asked), list_free(&why->calls), list_free(&why->entries), list_free(&why->compiles);
    list_free(&why->causes), list_free(&why->histories), list_free(&why->guards), list_free(&why->breaks);
    list_free(&why->inputs), list_free(&why->phases), list_free(&why->marks), list_free(&why->ranks);
    list_free(&why->remedies), list_free(&why->forbidders), list_free(&why->costs);
    arena_free(&why->arena);
    found_code_free(&why->code);
    db_close(why->db);
}
