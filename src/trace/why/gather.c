/* trace/why/gather.c -- gathers what is known about one function's calls. See trace/why/why.h.
 *
 * Runs in: the viewer.
 *
 * One statement of schemas/why.sql for each kind of fact; they are also what --sql prints. `lookup`, `guard_check`
 * and `frame` are long: their rows are summed up here, and --sql prints the GROUP BY for it. */
#include <stdlib.h>
#include <string.h>

#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/prose.h"
#include "trace/why/why.h"

enum { FRAMES_READ = 12000000 }; /* more frames are not read to tell how calls without a lookup were decided */

/* ---- asking ------------------------------------------------------------------ */

/* SQL with the ids themselves, as --sql prints it. */
static const char *printed_sql(struct why *why, const char *sql)
{
    static const char ids[] = "SELECT value FROM json_each(?1)";
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    for (const char *at; (at = strstr(sql, ids)); sql = at + strlen(ids))
        fprintf(out, "%.*s%s", (int)(at - sql), sql, why->code.ids);
    fputs(sql, out);
    fclose(out);
    return why_keep(why, made);
}

struct query *why_ask_rows(struct why *why, const char *name, const char *rows)
{
    const char *sql = schema_statement(name), *title = sql + strlen("-- "), *end = strchr(sql, '\n');
    struct query *query = db_query(why->db, schema_statement(rows));

    *list_add(&why->asked) =
        (struct ask){arena_text(&why->arena, title, (size_t)(end - title)), printed_sql(why, end + 1)};
    find_bind(query, 1, &why->code);
    return query;
}

struct query *why_ask(struct why *why, const char *name)
{
    return why_ask_rows(why, name, name);
}

const char *why_text(struct why *why, struct query *query, int column)
{
    const char *text;
    size_t bytes;

    if (query_type(query, column) == QUERY_NULL)
        return NULL;
    text = query_text(query, column, &bytes);
    return arena_text(&why->arena, text, strnlen(text, bytes));
}

const char *why_keep(struct why *why, char *owned)
{
    const char *kept = owned ? arena_text(&why->arena, owned, strlen(owned)) : NULL;

    free(owned);
    return kept;
}

/* ---- compiles ------------------------------------------------------------------ */

static void gather_totals(struct why *why)
{
    struct query *query = why_ask(why, "why/totals");

    why->all_calls = why->total_ns = UNKNOWN;
    if (query_step(query) && query_type(query, 0) != QUERY_NULL)
        why->all_calls = query_integer(query, 0);
    if (!query_failed(query) && query_type(query, 1) != QUERY_NULL)
        why->total_ns = query_integer(query, 1);
    query_close(query);
    why->missing = db_integer(why->db, 0, "SELECT EXISTS (SELECT 1 FROM loss WHERE events IS NULL OR events > 0)");
}

static void gather_causes(struct why *why)
{
    struct compile *compile = NULL;

    READ(why, causes, "why/causes", cause_fields);
    for (size_t i = 0; i < why->causes.count; i++) {
        const struct cause *c = &why->causes.at[i];
        if (!compile || compile->compile_id != c->compile_id) {
            compile = list_find(&why->compiles, compile_id, c->compile_id);
            if (compile)
                compile->first_cause = i;
        }
        if (compile)
            compile->causes++;
    }
}

/* ---- what they follow from ------------------------------------------------------
 *
 * When the size of an input changes, a function is compiled again, and so is what it calls on the other side of a
 * graph break: the resume function, and functions that are compiled on their own. These follow from the first. The
 * calls around a compile are found by its frame's parents; of those, the outermost compile that was needed for the
 * same source or the same change of a value is named. Without stored frames only the function that a resume function
 * belongs to is known: its last compile, if it was not called again since. */

/* One of COMPILE's causes is the same source, or the same change of a value. */
static bool is_same_change(const struct why *why, const struct compile *compile, const struct cause *other)
{
    for (size_t i = compile->first_cause; i < compile->first_cause + compile->causes && i < why->causes.count; i++) {
        const struct cause *mine = &why->causes.at[i];
        const char *wanted = cause_wanted(mine), *seen = cause_seen(mine);
        if (prose_filled(mine->source) && prose_same(mine->source, other->source) &&
            prose_same(mine->kind, other->kind))
            return true;
        if (wanted && seen && prose_same(wanted, cause_wanted(other)) && prose_same(seen, cause_seen(other)))
            return true;
    }
    return false;
}

/* The first that the statement NAME finds for each recompile. */
static void follow(struct why *why, const char *name)
{
    struct query *query = why_ask(why, name);

    while (query_step(query)) {
        struct compile *compile = list_find(&why->compiles, compile_id, query_integer(query, 0));
        struct cause cause = {0};
        struct parent parent = {0};
        if (!compile || compile->follows_from.compile_id)
            continue;
        why_row(why, query, cause_fields, &cause);
        if (!is_same_change(why, compile, &cause))
            continue;
        why_row(why, query, parent_fields, &parent);
        parent.source = cause_name(why, &cause);
        parent.expected = cause_wanted(&cause);
        parent.actual = cause_seen(&cause);
        compile->follows_from = parent;
    }
    query_close(query);
}

static void gather_parents(struct why *why)
{
    if (!why->causes.count)
        return;
    follow(why, "why/by-frames");
    /* While a trace is recorded it has neither frames nor that index. */
    if (db_meta_integer(why->db, "frame_count", 0) <= 0 &&
        db_integer(why->db, 0, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'lookup_code')"))
        follow(why, "why/by-origin");
}

/* ---- calls --------------------------------------------------------------------- */

int64_t why_calls(const struct why *why, enum outcome outcome)
{
    int64_t calls = 0;

    for (size_t i = 0; i < why->calls.count; i++)
        if (why->calls.at[i].outcome == (int64_t)outcome)
            calls += why->calls.at[i].calls;
    return calls;
}

/* The calls with OUTCOME; of hits, those of ENTRY. PLACES has for each class one more than its place. */
static struct call_class *class_of(struct why *why, struct map *places, enum outcome outcome, const struct entry *entry)
{
    int64_t entry_id = outcome == OUTCOME_HIT && entry ? entry->cache_entry_id : 0;
    int64_t *place = map_put(places, (int64_t)((uint64_t)entry_id * OUTCOMES + outcome));

    if (!*place) {
        *list_add(&why->calls) = (struct call_class){
            .outcome = outcome, .cache_entry_id = entry_id, .entry = entry_id ? entry->label : NULL};
        *place = (int64_t)why->calls.count;
    }
    return &why->calls.at[*place - 1];
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

static void gather_lookups(struct why *why, struct map *places)
{
    struct query *query = why_ask_rows(why, "why/lookups", "why/lookups-rows");
    int64_t calls[OUTCOMES] = {0};
    struct entry *entry = NULL;

    while (query_step(query)) {
        enum outcome outcome = outcome_of(query_integer(query, 0));
        int64_t entry_id = query_integer(query, 1), start = query_integer(query, 2);
        struct compile *compile;
        calls[outcome]++;
        if (!entry || entry->cache_entry_id != entry_id)
            entry = list_find(&why->entries, cache_entry_id, entry_id);
        class_add(class_of(why, places, outcome, entry), 1, start, start, query_integer(query, 3));
        if (outcome == OUTCOME_COMPILED && entry && /* its inputs are the compile's */
            (compile = list_find(&why->compiles, compile_id, entry->compile_id)))
            compile->signature_id = query_integer(query, 4);
    }
    query_close(query);
    query = why_ask(why, "why/skipped");
    calls[OUTCOME_SKIP] = query_step(query) ? query_integer(query, 0) : 0;
    query_close(query);
    why->shared = calls_sum(calls);
    for (size_t i = 0; i < why->calls.count; i++) {
        const struct call_class *class = &why->calls.at[i];
        if (class->cache_entry_id && (entry = list_find(&why->entries, cache_entry_id, class->cache_entry_id))) {
            entry->hit = class->calls;
            entry->last_hit_ns = class->last_ns;
        }
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
    query_close(query);
}

/* Calls without a lookup: their frames say how they were decided. */
static void gather_frames(struct why *why, struct map *places)
{
    struct call_class sums[OUTCOMES] = {0};
    struct query *query;
    int64_t decided = 0;

    for (size_t i = 0; i < why->calls.count; i++)
        decided += why->calls.at[i].calls;
    if (decided && why->all_calls < decided)
        why->all_calls = decided;
    why->undecided = why->all_calls > decided ? why->all_calls - decided : 0;
    if (!why->undecided || db_meta_integer(why->db, "frame_count", -1) > FRAMES_READ)
        return;
    query = why_ask_rows(why, "why/frames", "why/frames-rows");
    while (query_step(query))
        class_add(&sums[outcome_of(query_integer(query, 0))], 1, query_integer(query, 1), query_integer(query, 1), 0);
    query_close(query);
    for (int i = 0; i < OUTCOMES; i++) {
        int64_t calls = sums[i].calls - why_calls(why, (enum outcome)i); /* the others had a lookup as well */
        if (calls > why->undecided)
            calls = why->undecided;
        if (calls <= 0)
            continue;
        why->undecided -= calls;
        class_add(class_of(why, places, i, NULL), calls, sums[i].first_ns, sums[i].last_ns, 0);
    }
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
    query_close(query);
}

/* No call was looked up: does a graph break say that somebody disabled the function? */
static void gather_disabled(struct why *why)
{
    struct query *query;

    if (!why->torch.number || why->all_calls <= 0 || why_calls(why, OUTCOME_PLAIN) + why->undecided != why->all_calls)
        return;
    query = why_ask(why, "why/disabled");
    if (query_step(query)) {
        why->disabled_by = why_text(why, query, 0);
        why->disabled_line = query_integer(query, 1);
        why->disabled_words = why_text(why, query, 2);
    }
    query_close(query);
}

/* ---- all of it ------------------------------------------------------------- */

static int class_order(const void *a, const void *b)
{
    const struct call_class *x = a, *y = b;

    return list_order(y->calls, x->calls) ?: list_order(x->outcome, y->outcome) ?: list_order(x->cache_entry_id, y->cache_entry_id);
}

void why_gather(struct why *why)
{
    struct map places = {0};

    gather_totals(why);
    READ(why, entries, "why/entries", entry_fields);
    for (size_t i = 0; i < why->entries.count; i++)
        why->entries.at[i].last_hit_ns = UNKNOWN;
    READ(why, compiles, "why/compiles", compile_fields);
    gather_causes(why);
    gather_lookups(why, &places);
    gather_signatures(why);
    gather_frames(why, &places);
    why_gather_checks(why);
    gather_inputs(why);
    why_gather_torch(why);
    gather_parents(why);
    if (why_calls(why, OUTCOME_RUN_ONLY)) /* a caller that has reached its limit lets nothing new be compiled for its callees */
        READ(why, forbidders, "why/forbidders", forbidder_fields);
    gather_disabled(why);
    why_gather_cost(why);
    list_sort(&why->calls, class_order);
    map_free(&places);
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
