/* trace/why/gather.c -- reads the facts about a function's calls. See trace/why/why.h.
 *
 * schemas/why.sql has a statement for each kind of fact, and `why --sql` prints these statements.
 * The tables `lookup`, `guard_check` and `frame` are long. C reads their rows and sums them up. For
 * these facts `why --sql` prints a statement with GROUP BY, which gives the same sums. */
#include <inttypes.h>

#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/torch_words.h"
#include "trace/why/why.h"

enum {
    /* If a trace has more frames than this, frames are not read, and the outcomes of calls without
     * a lookup stay unknown. */
    FRAMES_READ = 12000000,
    /* Guards count as slow if they take at least this percentage of the function's time and at
     * least this many nanoseconds a call, and if there were at least this many calls. */
    SLOW_SHARE = 10,
    SLOW_NS = 1000,
    SLOW_CALLS = 10,
    GUARDS_READ = 10000, /* most failing guards that are kept */
};

/* ---- running the statements ---------------------------------------------- */

/* Return SQL as `why --sql` prints it: with the code ids of the function in place of
 * the parameter. */
static const char *make_printable_sql(struct why *why, const char *sql)
{
    static const char ids[] = "SELECT value FROM json_each(?1)";
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    for (const char *at; (at = strstr(sql, ids)); sql = at + strlen(ids))
        fprintf(out, "%.*s%s", (int)(at - sql), sql, why->code.ids);
    fputs(sql, out);
    fclose(out);
    return why_keep_text(why, made);
}

/* Run the statement ROWS. For `why --sql`, note the statement NAME, such as "why/lookups", which
 * selects the sums over these rows. */
static struct query *run_rows_statement(struct why *why, const char *name, const char *rows)
{
    const char *sql = schema_statement(name);
    const char *title = sql + strlen("-- ");
    const char *end = strchr(sql, '\n');
    struct query *query = db_query(why->db, schema_statement(rows));

    *list_add(&why->asked) = (struct ask){arena_text(&why->arena, title, (size_t)(end - title)),
                                          make_printable_sql(why, end + 1)};
    find_bind_ids(query, 1, &why->code);
    return query;
}

static struct query *run_statement(struct why *why, const char *name)
{
    return run_rows_statement(why, name, name);
}

/* Read the only row of the statement NAME into WHY. Returns false if there is none. */
static bool read_single_row(struct why *why, const char *name)
{
    struct query *query = run_statement(why, name);
    bool found = query_step(query);

    if (found)
        why_read_row(why, query, single_fields, why);
    query_close(query);
    return found;
}

/* Read all rows of the query FROM into LIST, and close the query. */
#define READ_ROWS(why, list, from)                                            \
    do {                                                                      \
        struct query *query_ = from;                                          \
        while (query_step(query_))                                            \
            why_read_row(why, query_, list##_fields, list_add(&(why)->list)); \
        query_close(query_);                                                  \
    } while (0)
#define READ(why, list, name) READ_ROWS(why, list, run_statement(why, name))

const char *why_keep_text(struct why *why, char *owned)
{
    const char *kept = owned ? arena_text(&why->arena, owned, strlen(owned)) : NULL;

    free(owned);
    return kept;
}

struct entry *why_find_entry(const struct why *why, int64_t cache_entry_id)
{
    return cache_entry_id ? list_find(&why->entries, cache_entry_id, cache_entry_id) : NULL;
}

/* ---- reading compiles and their causes ----------------------------------- */

static void gather_recompile_causes(struct why *why)
{
    struct compile *compile = NULL;

    READ(why, causes, "why/causes");
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

/* ---- recompiles that follow from another recompile ----------------------------------
 *
 * When the size of an input changes, a function is compiled again. Its resume functions, and the
 * functions behind a graph break that are compiled on their own, are compiled again too: their
 * recompiles follow from the function's recompile.
 *
 * The parents of a call's frame are its callers. `follows_from` names the outermost caller that
 * was recompiled for the same source, or for the same change of a value. Without stored frames the
 * callers are not known. For a resume function `follows_from` then names the last compile of the
 * function that it belongs to, unless this function was called again in between. */

/* Does COMPILE have a cause with the same guard source as OTHER, or with the same expected and
 * actual values? */
static bool is_same_change(const struct why *why, const struct compile *compile,
                           const struct cause *other)
{
    const struct cause *mine = &why->causes.at[compile->first_cause];
    const struct cause *end = mine + compile->causes;

    for (; mine < end; mine++) {
        const char *wanted = cause_expected_value(mine);
        const char *seen = cause_actual_unshortened(mine);
        bool same_kind =
            prose_null_if_empty(mine->source) && prose_are_texts_equal(mine->kind, other->kind);
        if (same_kind && prose_are_texts_equal(mine->source, other->source))
            return true;
        if (!wanted || !seen)
            continue;
        if (prose_are_texts_equal(wanted, cause_expected_value(other)) &&
            prose_are_texts_equal(seen, cause_actual_unshortened(other)))
            return true;
    }
    return false;
}

/* For each recompile with a change that the statement NAME selects, set `follows_from` to the first
 * row with the same change. */
static void set_follows_from(struct why *why, const char *name)
{
    struct query *query = run_statement(why, name);

    while (query_step(query)) {
        struct compile *compile = list_find(&why->compiles, compile_id, query_integer(query, 0));
        struct cause cause = {0};
        if (!compile || compile->follows_from.compile_id)
            continue;
        why_read_row(why, query, causes_fields, &cause);
        if (!is_same_change(why, compile, &cause))
            continue;
        why_read_row(why, query, parent_fields, &compile->follows_from);
        compile->follows_from.source = why_cause_name(why, &cause);
        compile->follows_from.expected = cause_expected_value(&cause);
        compile->follows_from.actual = cause_actual_unshortened(&cause);
    }
    query_close(query);
}

static void gather_parents(struct why *why)
{
    if (!why->causes.count)
        return;
    set_follows_from(why, "why/by-frames");
    /* A trace that is still being recorded has no frames yet, and lacks the index lookup_code. */
    if (db_meta_integer(why->db, "frame_count", 0) <= 0 &&
        db_integer(why->db, 0,
                   "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'lookup_code')"))
        set_follows_from(why, "why/by-origin");
}

/* ---- counting calls ------------------------------------------------------ */

int64_t why_count_calls(const struct why *why, enum outcome outcome)
{
    int64_t calls = 0;

    for (size_t i = 0; i < why->calls.count; i++)
        if (why->calls.at[i].outcome == (int64_t)outcome)
            calls += why->calls.at[i].calls;
    return calls;
}

/* Return the item of why->calls that counts calls with OUTCOME, or hits of ENTRY. why->calls has an
 * item for each outcome, and behind them one for the hits of each entry. why_gather_facts() removes
 * items that stay empty. */
static struct call_class *find_call_class(struct why *why, enum outcome outcome,
                                          const struct entry *entry)
{
    if (outcome == OUTCOME_HIT && entry)
        return &why->calls.at[OUTCOMES + (entry - why->entries.at)];
    return &why->calls.at[outcome];
}

static void add_to_call_class(struct call_class *class, int64_t calls, int64_t first_ns,
                              int64_t last_ns, int64_t lookup_ns)
{
    if (!class->calls || first_ns < class->first_ns)
        class->first_ns = first_ns;
    if (!class->calls || last_ns > class->last_ns)
        class->last_ns = last_ns;
    class->calls += calls;
    class->lookup_ns = times_add(class->lookup_ns, lookup_ns);
}

/* Count the lookups that `run --keep` dropped from the trace, in why->calls and in CALLS. */
static void gather_dropped_lookups(struct why *why, int64_t calls[OUTCOMES])
{
    struct query *query = run_statement(why, "why/dropped");

    while (query_step(query)) {
        enum outcome outcome = outcome_from_number(query_integer(query, 0));
        struct entry *entry = why_find_entry(why, query_integer(query, 1));
        int64_t lookups = query_integer(query, 2);
        calls[outcome] = times_add(calls[outcome], lookups);
        add_to_call_class(find_call_class(why, outcome, entry), lookups, query_integer(query, 3),
                          query_integer(query, 4), query_integer(query, 5));
    }
    query_close(query);
}

static void gather_lookups(struct why *why)
{
    struct query *query = run_rows_statement(why, "why/lookups", "why/lookups-rows");
    int64_t calls[OUTCOMES] = {0};
    struct entry *entry = NULL;

    for (int o = 0; o < OUTCOMES; o++)
        list_add(&why->calls)->outcome = o;
    for (size_t i = 0; i < why->entries.count; i++)
        *list_add(&why->calls) =
            (struct call_class){.outcome = OUTCOME_HIT,
                                .cache_entry_id = why->entries.at[i].cache_entry_id,
                                .entry = why->entries.at[i].label};
    while (query_step(query)) {
        enum outcome outcome = outcome_from_number(query_integer(query, 0));
        int64_t entry_id = query_integer(query, 1);
        int64_t start = query_integer(query, 2);
        calls[outcome]++;
        if (!entry || entry->cache_entry_id != entry_id)
            entry = why_find_entry(why, entry_id);
        add_to_call_class(find_call_class(why, outcome, entry), 1, start, start,
                          query_integer(query, 3));
    }
    query_close(query);
    gather_dropped_lookups(why, calls);
    read_single_row(why, "why/skipped");
    calls[OUTCOME_SKIP] = why->skipped;
    why->shared = calls_sum_outcomes(calls);
    for (entry = why->entries.at; entry < why->entries.at + why->entries.count; entry++) {
        entry->hit = find_call_class(why, OUTCOME_HIT, entry)->calls;
        entry->last_hit_ns = find_call_class(why, OUTCOME_HIT, entry)->last_ns;
    }
    query = run_statement(why, "why/signatures");
    while (query_step(query)) {
        struct compile *compile = list_find(&why->compiles, compile_id, query_integer(query, 0));
        if (compile)
            why_read_row(why, query, compiles_fields, compile);
    }
    query_close(query);
}

/* Count the calls without a lookup, whose outcome is stored in their frame. */
static void gather_frames(struct why *why)
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
    query = run_rows_statement(why, "why/frames", "why/frames-rows");
    while (query_step(query))
        add_to_call_class(&sums[outcome_from_number(query_integer(query, 0))], 1,
                          query_integer(query, 1), query_integer(query, 1), 0);
    query_close(query);
    for (int i = 0; i < OUTCOMES; i++) {
        /* subtract the calls with a lookup, which have been counted already */
        int64_t calls = sums[i].calls - why_count_calls(why, (enum outcome)i);
        if (calls > why->undecided)
            calls = why->undecided;
        if (calls <= 0)
            continue;
        why->undecided -= calls;
        add_to_call_class(find_call_class(why, i, NULL), calls, sums[i].first_ns, sums[i].last_ns,
                          0);
    }
}

/* Read the inputs of calls that ran as Python because no entry fitted and no new one
 * could be made. */
static void gather_inputs(struct why *why)
{
    if (!why_count_calls(why, OUTCOME_LIMIT) && !why_count_calls(why, OUTCOME_RUN_ONLY))
        return;
    READ(why, inputs, "why/inputs");
    read_single_row(why, "why/different");
    /* some inputs were not recorded, so the number of different inputs is not known */
    if (why->unknown_inputs || doubts_describe_stored_values(why->db))
        why->different_inputs = 0;
}

static int compare_classes(const void *a, const void *b)
{
    const struct call_class *x = a;
    const struct call_class *y = b;

    int order = list_compare_numbers(y->calls, x->calls);

    if (!order)
        order = list_compare_numbers(x->outcome, y->outcome);
    return order ? order : list_compare_numbers(x->cache_entry_id, y->cache_entry_id);
}

/* ---- counting failing guards --------------------------------------------- */

static enum check_result parse_check_result(const char *word)
{
    int result = 0;

    while (result < CHECK_RESULTS && strcmp(check_words[result], word))
        result++;
    return result < CHECK_RESULTS ? (enum check_result)result : CHECK_FAIL;
}

/* Compare two failing guards for sorting: guards that raised come first, then those that
 * failed more often. */
static int compare_failed_guards(const void *a, const void *b)
{
    const struct failed_guard *x = a;
    const struct failed_guard *y = b;
    const char *error = check_words[CHECK_ERROR];

    int order = list_compare_numbers(!strcmp(y->result, error), !strcmp(x->result, error));

    if (!order)
        order = list_compare_numbers(y->times, x->times);
    if (!order)
        order = list_compare_numbers(x->entry_id, y->entry_id);
    return order ? order : list_compare_numbers(x->guard_id, y->guard_id);
}

/* Count the results of guard checks, by entry and by failing guard. */
static void gather_checks(struct why *why)
{
    /* maps a hash of guard, entry and result to 1 + an index of why->guards */
    struct map places = {0};
    struct entry *entry = NULL;
    struct query *query;

    if (!why->entries.count)
        return;
    query = run_rows_statement(why, "why/checks", "why/checks-rows");
    while (query_step(query)) {
        enum check_result result = parse_check_result(query_text(query, 1, NULL));
        int64_t entry_id = query_integer(query, 0);
        int64_t guard_id = query_integer(query, 2);
        int64_t spent = query_integer(query, 3);
        int64_t *place;
        bool ran = result != CHECK_BACKEND_MISMATCH;
        if (!entry || entry->cache_entry_id != entry_id)
            entry = why_find_entry(why, entry_id);
        why->check_ns = times_add(why->check_ns, spent);
        why->checks += ran;
        why->timed_checks += ran && query_type(query, 3) != QUERY_NULL;
        if (entry) {
            entry->check_ns = times_add(entry->check_ns, spent);
            *(ran ? &entry->tried : &entry->backend_mismatches) += 1;
            entry->few_guards += result == CHECK_PASS && entry->guards && query_integer(query, 4);
        }
        if (result == CHECK_PASS)
            continue;
        /* A guard belongs to one entry. So the entry is needed in the key only if
         * no guard failed. */
        place =
            map_put(&places, (int64_t)((uint64_t)(guard_id ? guard_id : ~entry_id) * CHECK_RESULTS +
                                       result));
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
    list_sort(&why->guards, compare_failed_guards);
    if (why->guards.count > GUARDS_READ)
        why->guards.count = GUARDS_READ;
    query = db_query(why->db, schema_statement("why/guard"));
    for (size_t i = 0; i < why->guards.count; i++) {
        query_bind_integer(query, 1, why->guards.at[i].guard_id);
        if (query_step(query))
            why_read_row(why, query, guards_fields, &why->guards.at[i]);
        query_reset(query);
    }
    query_close(query);
}

/* ---- the time of guards --------------------------------------------------------------
 *
 * A check has one time for all guards of an entry. The time of a kind of guard is therefore an
 * estimate: each guard of an entry gets the same part of the entry's time.
 *
 * The first calls of compiled code are slower than later ones. The share of guards in a call is
 * therefore measured on the last hits, if frames are stored. Otherwise it is measured on all
 * calls, without the time of compiles.
 *
 * torch's own evaluator does not time guards. The time of lookups that hit is used instead,
 * because such a lookup does nothing but check guards. */

double why_share_of_guards(const struct why *why)
{
    if (why->share_of_ns <= 0 || why->guard_calls <= 0)
        return -1;
    return 100.0 * (double)why->share_ns / (double)why->share_of_ns;
}

/* Estimate the time of each kind of guard. */
static void estimate_times_of_guard_kinds(struct why *why)
{
    struct query *query = run_rows_statement(why, "why/kinds", "why/kinds-rows");
    char *spent = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&spent, &room);

    for (size_t i = 0; i < why->entries.count; i++)
        fprintf(out, "%s[%" PRId64 ",%" PRId64 "]", i ? "," : "[",
                why->entries.at[i].cache_entry_id, why->entries.at[i].check_ns);
    fputs(why->entries.count ? "]" : "[]", out);
    fclose(out);
    query_bind_text(query, 2, spent);
    free(spent);
    READ_ROWS(why, costs, query);
}

/* Does a call with OUTCOME begin with a lookup? */
static bool has_lookup(int64_t outcome)
{
    switch (outcome) {
    case OUTCOME_PLAIN:
    case OUTCOME_SKIP:
    case OUTCOME_DISABLED:
        return false;
    default:
        return true;
    }
}

/* Return how long all compiles took that have ended. */
static int64_t sum_compile_ns(const struct why *why)
{
    int64_t sum = 0;

    list_each(compile, &why->compiles) {
        if (compile->end_ns != UNKNOWN)
            sum = times_add(sum, times_span_or_zero(compile->start_ns, compile->end_ns));
    }
    return sum;
}

/* Do guards take so large a share of the calls' time, and so long, that a page should say so? */
static bool are_guards_slow(const struct why *why)
{
    if (why->guard_calls < SLOW_CALLS)
        return false;
    if (why->guard_ns / why->guard_calls < SLOW_NS)
        return false;
    return why_share_of_guards(why) >= SLOW_SHARE;
}

static void gather_guard_cost(struct why *why)
{
    int64_t hits = why_count_calls(why, OUTCOME_HIT);
    int64_t hits_ns = 0;
    int64_t looked_up = 0;

    list_each(class, &why->calls) {
        if (class->outcome == OUTCOME_HIT)
            hits_ns = times_add(hits_ns, class->lookup_ns);
        if (has_lookup(class->outcome))
            looked_up += class->calls;
    }
    why->guard_ns = why->timed_checks ? why->check_ns : hits_ns;
    why->guard_calls = why->timed_checks ? looked_up : hits;
    why->share_of_hits =
        hits && db_meta_integer(why->db, "frame_count", 0) > 0 && read_single_row(why, "why/share");
    if (!why->share_of_hits) {
        why->share_ns = why->guard_ns;
        why->share_of_ns = times_span_or_zero(sum_compile_ns(why), why->total_ns);
    }
    why->guards_slow = are_guards_slow(why);
    if (why->guards_slow)
        estimate_times_of_guard_kinds(why);
}

/* ---- torch, and calls without a compiler ---------------------------------------------
 *
 * A resume function runs the rest of a function after a graph break, and has its own calls,
 * compiles and guards. Each graph break of each compile makes a new code object, so the figures of
 * a resume function are sums over the code objects with the same name, file and line. Compilers
 * other than torch have graph breaks, too. */

static void gather_processes(struct why *why)
{
    struct query *query = run_statement(why, "why/processes");

    if (query_step(query)) {
        why_read_row(why, query, torch_fields, &why->torch);
        why_read_row(why, query, torches_fields, &why->torch);
        why->torch.number = torch_parse_version(why->torch.version);
    }
    query_close(query);
}

/* Read how long calls of the function took, if no compiler handled it. */
static void gather_profile(struct why *why)
{
    bool is_compiled = why->compiles.count || why->entries.count;

    why->is_plain = !why->shared.asked && !is_compiled && !why->disabled_by;
    if (!why->is_plain)
        return;
    profile_read(why->db, &why->code, &why->profile, &why->progress);
}

/* ---- reading all facts --------------------------------------------------- */

static bool has_no_lookup(const struct why *why)
{
    return why->all_calls > 0 &&
           why_count_calls(why, OUTCOME_PLAIN) + why->undecided == why->all_calls;
}

void why_gather_facts(struct why *why)
{
    read_single_row(why, "why/totals");
    why->missing = db_integer(
        why->db, 0, "SELECT EXISTS (SELECT 1 FROM loss WHERE events IS NULL OR events > 0)");
    READ(why, entries, "why/entries");
    READ(why, compiles, "why/compiles");
    for (size_t i = 0; i < why->compiles.count; i++) {
        why->made += compile_has_code(&why->compiles.at[i]);
        why->recompiles += why->compiles.at[i].recompile;
    }
    read_single_row(why, "why/reasons");
    gather_recompile_causes(why);
    gather_lookups(why);
    gather_frames(why);
    gather_checks(why);
    gather_inputs(why);
    gather_processes(why);
    if (why->compiles.count) {
        READ(why, ranks, "why/ranks");
        if (db_integer(why->db, 0, "SELECT EXISTS (SELECT 1 FROM graph_break)"))
            READ(why, breaks, "why/breaks");
        READ(why, phases, "why/phases");
        read_single_row(why, "why/caches");
    }
    READ(why, marks, "why/marks");
    gather_parents(why);
    /* a caller that has reached its limit keeps torch from compiling its callees */
    if (why_count_calls(why, OUTCOME_RUN_ONLY))
        READ(why, forbidders, "why/forbidders");
    /* The program may have disabled this function. The graph break of another function
     * may show where. */
    if (why->torch.number && has_no_lookup(why))
        read_single_row(why, "why/disabled");
    if (strstr(why->code.qualname, "<locals>"))
        read_single_row(why, "why/self");
    gather_guard_cost(why);
    gather_profile(why);
    list_sort(&why->calls, compare_classes);
    while (why->calls.count && !why->calls.at[why->calls.count - 1].calls)
        why->calls.count--;
}

void why_free(struct why *why)
{
#define LIST_FREE(member, type, fields, key) list_free(&why->member);
    WHY_LISTS(LIST_FREE)
    profile_free(&why->profile);
    arena_free(&why->arena);
    found_code_free(&why->code);
    db_close(why->db);
}
