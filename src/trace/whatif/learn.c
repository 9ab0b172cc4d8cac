/* trace/whatif/learn.c -- sorts recorded calls into classes. See trace/whatif/like.h. */
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/whatif/like.h"

/* the most pairs of classes whose bits are stored; those of other pairs are computed each time */
enum { PAIRS_MAX = 1 << 19 };

int64_t *pair_result_at(struct whatif *w, uint32_t made, uint32_t other)
{
    int64_t key = (int64_t)((uint64_t)made << 32 | other);
    int64_t *bits = map_get(&w->pairs, key);
    bool full = w->learnt && w->pairs.count >= PAIRS_MAX;

    if (bits)
        return bits;
    if (!full)
        return map_put(&w->pairs, key);
    w->scratch = 0;
    return &w->scratch;
}

const char *text_keep_copy(struct whatif *w, const char *text)
{
    return arena_text(&w->texts, text, strlen(text));
}

/* ---- reading rows of the statements in schemas/whatif.sql ---------------- */

/* Add a row of two columns to MAP: a key and its value. */
static bool add_pair(void *map, const int64_t *v, unsigned nulls)
{
    *map_put(map, v[0]) = v[1];
    return true;
}

static bool read_rest_of_call_row(void *context, const int64_t *v, unsigned nulls)
{
    struct whatif *w = context;
    const struct map *codes = &w->r->code_ids;
    struct rest rest = {
        .code = replay_index_of_id(codes, v[0]),
        .resume = replay_index_of_id(codes, v[1]),
    };
    bool known = rest.code != REPLAY_NONE && rest.resume != REPLAY_NONE;

    if (known) {
        *list_add(&w->rests) = rest;
        w->codes[rest.code].breaks = true;
    }
    return true;
}

/* Read a row with an entry and a guard: the call that made the entry failed this guard. There is a
 * row for each guard that failed, not only for the recorded cause. */
static bool read_failed_row(void *context, const int64_t *v, unsigned nulls)
{
    struct whatif *w = context;
    uint32_t entry = replay_index_of_id(&w->r->entry_ids, v[0]);

    map_put(&w->failing, v[1]);
    map_put(&w->failed_by, make_failed_key(entry, v[1]));
    return true;
}

/* ---- dividing calls into classes ----------------------------------------- */

/* Did this check evaluate guards? Then the entry belongs to the backend of the call. */
static bool did_check_run_guards(const struct replay_check *c)
{
    return c->entry != REPLAY_CHECK_NONE && c->result != CHECK_BACKEND_MISMATCH;
}

/* Return a hash of the code object, signature and backend of a class. */
static int64_t hash_class(const struct like_class *c)
{
    uint64_t key = (uint64_t)c->code * 0x9e3779b97f4a7c15u;

    key ^= (uint64_t)c->signature * 0xc2b2ae3d27d4eb4fu;
    key ^= c->backend * 0x9e3779b9u;
    return (int64_t)key;
}

/* Return the class of LOOKUP, which ran no entry. If no class has its code object, signature and
 * backend, a class is added. KNOWN maps hash_class() to the number of the class + 1. */
static uint32_t find_or_add_miss_class(struct whatif *w, struct map *known, uint32_t lookup)
{
    const struct replay_lookup *k = lookup_at(w, lookup);
    const struct replay_check *check = w->r->checks.at + k->checks;
    const struct replay_check *end = check + k->check_count;
    struct like_class made = {
        .signature = k->signature,
        .code = cache_at(w, k->cache)->code,
        .backend = REPLAY_NONE,
        .founder = lookup,
    };
    int64_t *number;

    for (; check < end; check++)
        if (did_check_run_guards(check))
            made.backend = class_at(w, check->entry)->backend;
    number = map_put(known, hash_class(&made));
    if (!*number) {
        *list_add(&w->classes) = made;
        *number = (int64_t)w->classes.count;
    }
    return (uint32_t)*number - 1;
}

/* LOOKUP hit no entry. Note that it failed all entries that were alive then. This is for observe
 * mode, in which the trace does not tell which entries a lookup tried. */
static void learn_observed_miss(struct whatif *w, uint32_t lookup)
{
    const struct replay_lookup *k = lookup_at(w, lookup);
    const struct replay_cache *cache = cache_at(w, k->cache);
    uint32_t class_ = w->class_of[lookup];

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        uint32_t entry = cache->entries[i];
        const struct replay_entry *e = entry_at(w, entry);
        bool common = e->region < 0 && entry != class_;
        if (e->born_ns >= k->start_ns)
            break;
        if (common && e->died_ns > k->end_ns)
            *pair_result_at(w, entry, class_) |= FIRST_FAIL;
    }
}

/* If a fork copied the entry of this check, and the lookup ran in the process that made the entry:
 * note when this process last tried the entry. */
static void note_last_try_of_entry(struct whatif *w, const struct replay_lookup *k,
                                   const struct replay_check *c)
{
    const struct replay_entry *e = entry_at(w, c->entry);
    struct like_class *class_ = class_at(w, c->entry);
    uint32_t process = cache_at(w, k->cache)->process;

    if (!e->shared || e->process != process)
        return;
    if (class_->seen_ns < k->start_ns)
        class_->seen_ns = k->start_ns;
}

/* Note that a lookup of the class CLASS_ passed over ENTRY because ENTRY belongs to
 * another backend. */
static void note_backend_mismatch(struct whatif *w, const struct replay_lookup *k, uint32_t entry,
                                  uint32_t class_)
{
    uint32_t code = cache_at(w, k->cache)->code;

    if (class_at(w, entry)->backend == class_at(w, class_)->backend)
        w->codes[code].namesakes = true;
    *pair_result_at(w, entry, class_) |= SEEN_MISMATCH;
}

/* Note the guards that failed, and the mismatches of backends, in the checks of LOOKUP, whose class
 * is known. FIRST: the lookup made the entry of its class, or ran no entry. */
static void note_results_of_checks(struct whatif *w, uint32_t lookup, bool first)
{
    const struct replay_lookup *k = lookup_at(w, lookup);
    const struct replay_check *check = w->r->checks.at + k->checks;
    const struct replay_check *end = check + k->check_count;
    uint32_t class_ = w->class_of[lookup];

    for (; check < end; check++) {
        if (check->failed)
            map_put(&w->failing, check->failed);
        if (check->failed && first)
            map_put(&w->failed_by, make_failed_key(class_, check->failed));
        if (check->entry == REPLAY_CHECK_NONE)
            continue;
        note_last_try_of_entry(w, k, check);
        if (check->result == CHECK_BACKEND_MISMATCH)
            note_backend_mismatch(w, k, check->entry, class_);
    }
}

/* For each entry, store the lookup that made it. */
static void find_lookups_that_made_entries(struct whatif *w)
{
    for (uint32_t i = 0; i < w->r->lookups.count; i++) {
        const struct replay_lookup *k = lookup_at(w, i);
        struct like_class *made;
        if (k->outcome != OUTCOME_COMPILED)
            continue;
        if (k->entry == REPLAY_NONE)
            continue;
        made = class_at(w, k->entry);
        if (made->founder != REPLAY_NONE)
            continue;
        made->founder = i;
        made->signature = k->signature;
    }
}

/* Did the lookup run an entry that is in the trace? */
static bool did_lookup_run_entry(const struct replay_lookup *k)
{
    bool runs = k->outcome == OUTCOME_HIT || k->outcome == OUTCOME_COMPILED;

    return runs && k->entry != REPLAY_NONE;
}

static void note_results_of_all_lookups(struct whatif *w)
{
    struct map known = {0};

    find_lookups_that_made_entries(w);
    for (uint32_t i = 0; i < w->r->lookups.count; i++) {
        const struct replay_lookup *k = lookup_at(w, i);
        bool ran = did_lookup_run_entry(k);
        bool first = !ran || k->outcome == OUTCOME_COMPILED;
        w->class_of[i] = ran ? k->entry : find_or_add_miss_class(w, &known, i);
        if (k->observed && first)
            learn_observed_miss(w, i);
        note_results_of_checks(w, i, first);
    }
    map_free(&known);
    w->learnt = true;
}

/* ---- limits, times and forks in the recording ---------------------------- */

int64_t like_region_of_lookup(const struct replay *r, const struct replay_lookup *k, uint32_t ran)
{
    const struct replay_check *check = r->checks.at + k->checks;
    const struct replay_check *end = check + k->check_count;
    int64_t region = -1;

    if (ran < r->entries.count)
        region = r->entries.at[ran].region;
    for (; check < end && region < 0; check++)
        if (check->entry != REPLAY_CHECK_NONE)
            region = r->entries.at[check->entry].region;
    return region;
}

/* Return how many entries counted towards the limit that the lookup met in the recording. torch
 * counts dead entries, too. */
static int64_t count_entries_at_limit(const struct replay *r, const struct replay_lookup *k)
{
    const struct replay_cache *cache = &r->caches.at[k->cache];
    bool torch = replay_uses_torch(r, k->cache);
    int64_t region = like_region_of_lookup(r, k, k->entry);
    int64_t count = 0;

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        uint32_t entry = cache->entries[i];
        const struct replay_entry *e = &r->entries.at[entry];
        bool lives = e->died_ns >= k->start_ns;
        bool counts = torch ? lives || !e->reset : lives;
        /* in observe mode an entry may seem to be born before the lookup that made it began */
        bool own = k->outcome == OUTCOME_COMPILED && entry == k->entry;
        if (e->born_ns >= k->start_ns)
            break;
        if (own || !counts)
            continue;
        if (!torch || e->region == region)
            count++;
    }
    return count;
}

/* Return how many entries counted towards the limit on all entries ever made, when a lookup ran in
 * the evaluator of a compiler that is not torch. */
static int64_t count_entries_ever_made(const struct replay *r, const struct replay_lookup *k)
{
    const struct replay_cache *cache = &r->caches.at[k->cache];
    int64_t made = 0;

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        uint32_t entry = cache->entries[i];
        const struct replay_entry *e = &r->entries.at[entry];
        bool died = e->died_ns < k->start_ns;
        if (e->born_ns >= k->start_ns)
            break;
        if (!died || !e->reset) /* entries that died are counted, unless a reset removed them */
            made++;
    }
    return made;
}

/* Learn the limit on all entries ever made from a lookup of a compiler that is not torch. The
 * lookup was compiled or met a limit. COUNT is the number of living entries that it found. An
 * earlier call was still compiled with LEAST - 1 living entries. So if the lookup met a limit with
 * fewer entries than LEAST, it was the limit on all entries ever made. Otherwise it may have been
 * either limit, until a call is compiled with at least as many entries ever made. */
static void learn_limit_of_all_entries(struct whatif *w, const struct replay_lookup *k,
                                       int64_t count, int64_t least)
{
    struct like_code *code = &w->codes[cache_at(w, k->cache)->code];
    int64_t made = count_entries_ever_made(w->r, k);

    if (k->outcome == OUTCOME_LIMIT && !code->limit) {
        code->maybe_ever = made;
        if (count < least) {
            code->accumulated = true;
            code->limit = made;
        }
    } else if (k->outcome == OUTCOME_COMPILED) {
        if (made >= code->maybe_ever)
            code->maybe_ever = 0;
        if (code->accumulated && made >= code->limit)
            code->limit = LIMIT_VARIES;
    }
}

/* Learn from a lookup that met a limit, or that no limit stopped. Raises *LEAST, the lowest
 * possible limit on living entries. */
static void learn_limit_from_lookup(struct whatif *w, const struct replay_lookup *k, int64_t *least)
{
    struct like_code *code = &w->codes[cache_at(w, k->cache)->code];
    int64_t count = count_entries_at_limit(w->r, k);

    if (!replay_uses_torch(w->r, k->cache))
        learn_limit_of_all_entries(w, k, count, *least);
    if (k->outcome == OUTCOME_LIMIT && !code->limit)
        code->limit = count ? count : LIMIT_VARIES;
    else if (count >= *least)
        *least = count + 1;
}

/* Learn the limit of each code object from calls that met it. If other calls were compiled although
 * there were at least as many entries, the limit varied. */
static void learn_all_limits(struct whatif *w)
{
    const struct replay *r = w->r;

    for (size_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = lookup_at(w, r->order[i]);
        struct like_code *code = &w->codes[r->caches.at[k->cache].code];
        bool asked = k->outcome == OUTCOME_COMPILED || k->outcome == OUTCOME_DECLINED;
        bool limited = k->outcome == OUTCOME_LIMIT && !code->limit;
        if (asked || limited)
            learn_limit_from_lookup(w, k, &code->least);
    }
    for (size_t i = 0; i < r->codes.count; i++) {
        struct like_code *code = &w->codes[i];
        if (code->limit && code->limit < code->least)
            code->limit = LIMIT_VARIES;
        if (code->limit <= 0)
            code->accumulated = false;
    }
}

static void add_time_of_operation(struct like_times *times, enum timed kind, int64_t ns,
                                  int64_t count)
{
    times->ns[kind] += ns;
    times->count[kind] += count;
}

/* Add the time NS of COUNT operations of the kind KIND to ENTRY and to its code object. */
static void add_time_of_entry(struct whatif *w, uint32_t entry, enum timed kind, int64_t ns,
                              int64_t count)
{
    add_time_of_operation(&class_at(w, entry)->times, kind, ns, count);
    add_time_of_operation(&w->codes[class_code(w, entry)].times, kind, ns, count);
}

static void learn_times_of_operations(struct whatif *w)
{
    const struct replay *r = w->r;

    list_each(c, &r->compiles) {
        int64_t ns = 0;
        if (c->entry == REPLAY_NONE)
            continue;
        if (c->end_ns > c->start_ns)
            ns = c->end_ns - c->start_ns;
        add_time_of_entry(w, c->entry, TIMED_COMPILE, ns, 1);
    }
    for (uint32_t i = 0; i < r->entries.count; i++) {
        const struct replay_times *checks = &r->times[i];
        add_time_of_entry(w, i, TIMED_FAIL, checks->ns[0], checks->count[0]);
        add_time_of_entry(w, i, TIMED_PASS, checks->ns[1], checks->count[1]);
    }
}

int64_t like_mean_time(const struct whatif *w, uint32_t class_, enum timed kind)
{
    const struct like_times *from = &class_at(w, class_)->times;
    int64_t count;

    if (!from->count[kind])
        from = &w->codes[class_code(w, class_)].times;
    /* if no failed check was timed, take the time of checks that passed, and the other way round */
    if (!from->count[kind] && kind != TIMED_COMPILE)
        kind = !kind;
    count = from->count[kind];
    return count ? from->ns[kind] / count : 0;
}

static int compare_rest_rows(const void *a, const void *b)
{
    const struct rest *x = a;
    const struct rest *y = b;

    return list_compare_numbers(x->code, y->code);
}

/* Return when the process that has this cache started: when it was forked. */
static int64_t time_of_fork(const struct replay *r, uint32_t cache)
{
    uint32_t process = r->caches.at[cache].process;

    return r->processes.at[process].start_ns;
}

static int compare_forks(const void *a, const void *b, void *replay)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return list_compare_numbers(time_of_fork(replay, *x), time_of_fork(replay, *y));
}

/* Fill w->forks with the caches that a fork copied, in order of time. */
static void list_forked_caches(struct whatif *w)
{
    const struct replay *r = w->r;

    for (uint32_t i = 0; i < r->caches.count; i++) {
        bool forked = cache_at(w, i)->parent != REPLAY_NONE;
        if (forked)
            *list_add(&w->forks) = i;
    }
    if (w->forks.count)
        qsort_r(w->forks.at, w->forks.count, sizeof *w->forks.at, compare_forks, (void *)r);
}

/* Fill MAP with the keys and values that STATEMENT selects. */
#define read_map(w, statement, map) db_visit((w)->db, schema_statement(statement), add_pair, map)

/* Make a class of calls for each recorded entry. */
static void make_classes_of_entries(struct whatif *w)
{
    struct map backends = {0};

    read_map(w, "whatif/backends", &backends);
    for (uint32_t i = 0; is_recorded(w, i); i++) {
        const struct replay_entry *e = entry_at(w, i);
        struct like_class *class_ = list_add(&w->classes);
        class_->code = e->code;
        class_->backend = replay_index_of_id(&backends, e->id);
        class_->founder = REPLAY_NONE;
        w->regions = w->regions || e->region >= 0;
    }
    map_free(&backends);
}

static void learn_facts_of_codes(struct whatif *w)
{
    const struct replay *r = w->r;
    struct map several = {0};
    struct map accumulated = {0};
    struct map excluded = {0};

    read_map(w, "whatif/several", &several);
    read_map(w, "whatif/accumulated", &accumulated);
    read_map(w, "whatif/excluded", &excluded);
    w->codes = calloc(r->codes.count + 1, sizeof *w->codes);
    for (size_t i = 0; i < r->codes.count; i++) {
        int64_t id = r->codes.at[i].id;
        struct like_code *code = &w->codes[i];
        code->several = map_get(&several, id);
        code->accumulated = map_get(&accumulated, id);
        code->excluded = map_get(&excluded, id);
    }
    map_free(&several);
    map_free(&accumulated);
    map_free(&excluded);
}

void whatif_learn_from_trace(struct whatif *w)
{
    read_map(w, "whatif/killers", &w->killers);
    read_map(w, "whatif/freed", &w->freed);
    w->blind = doubts_describe_stored_values(w->db) != NULL;
    w->class_of = malloc((w->r->lookups.count + 1) * sizeof *w->class_of);
    make_classes_of_entries(w);
    learn_facts_of_codes(w);
    w->floats_later = db_integer(w->db, 0, schema_statement("whatif/floats-later"));
    db_visit(w->db, schema_statement("whatif/rests"), read_rest_of_call_row, w);
    list_sort(&w->rests, compare_rest_rows);
    learn_times_of_operations(w);
    db_visit(w->db, schema_statement("whatif/failed"), read_failed_row, w);
    note_results_of_all_lookups(w);
    learn_all_limits(w);
    list_forked_caches(w);
}
