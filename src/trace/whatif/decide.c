/* trace/whatif/decide.c -- simulates the recorded calls under other settings. See
 * trace/whatif/whatif.h.
 *
 * All lookups are visited in time order. For each recorded cache there is a simulated cache
 * (trace/replay/cache_order.h), which may develop in another way under other settings (the knobs):
 *
 *   - A call tries the entries that it sees, in order, and runs the first that fits.
 *   - A call that misses runs as Python if a limit is reached. If not, it is compiled, which makes
 *     a new entry.
 *   - An entry dies when it died in the recording. A reset removes all entries.
 *   - A fork copies the cache.
 *
 * The simulation runs twice, first with unchanged settings. If this first run predicts another
 * outcome for a call than the recorded one, the simulation does not understand the call, and counts
 * it as undecided.
 *
 * In a torch program, a call that does not run as recorded changes its callees, too. Torch compiles
 * no callee of a call whose function is at its limit, even if the call itself hits an entry. A call
 * that runs as Python does not call its resume functions. A call that becomes compiled inlines its
 * callees. The callees of a call are the calls whose lookups lie within the time of its frame. */
#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/whatif/like.h"
#include "trace/whatif/whatif.h"

enum {
    RESTS = 8,
    DEFAULT_LIMIT = 8,
    NESTED = 64,
    GHOSTS = 64,
    UNKNOWN_GROUP = -2,
    LIMIT_UNKNOWN = -2,
    TICK = 1 << 12
};

struct group_limit {
    int64_t group;
    bool unsure;
};

struct sim { /* a cache, as it is in the simulation */
    /* in this cache, the member `id` of an entry is a class, and `region` is a
     * group (find_group) */
    struct cache_order cache;
    uint32_t dead; /* number of entries that died; torch counts them towards its limit */
    int64_t ever;  /* number of entries made since the last reset of the cache */
    /* number of compiles that raised since the last reset of the cache; torch counts them
     * towards its limit */
    int64_t failed;
    /* groups of calls that have reached their limit, so that torch compiles
     * nothing more for them */
    LIST(struct group_limit) limited;
    uint32_t dying; /* how many of the recorded deaths have been simulated so far */
    uint32_t born;  /* how many of the recorded births have been simulated so far */
    /* number of entries in `cache` that are expected, but may not exist (`unsure`) */
    int64_t less;
    /* number of entries in `cache` that are not expected, but may exist (`ghost`) */
    int64_t more;
    bool begun;
    struct bounds bounds;
    int64_t deaths;
    int64_t resets;
};

/* How a call runs in the simulation: as Python; compiled; or compiled, while its function is at its
 * limit, so that torch compiles no callee. */
enum around { AROUND_PYTHON, AROUND_COMPILED, AROUND_LIMITED };

/* The open calls of one thread that do not run as recorded, and when each of them ends. */
struct thread {
    struct nested {
        int64_t until_ns;
        enum around runs;
        /* the call may run as recorded; that it does not is a guess */
        bool unsure;
        uint32_t code;
    } stack[NESTED];
    int depth;
    /* end of the last call that runs another entry than in the recording, or may run one */
    int64_t other_until_ns;
};

static uint8_t mark_unsure_if(bool unsure)
{
    return unsure ? WHATIF_UNDECIDED : 0;
}

/* Do the settings change a limit on the number of entries? */
static bool is_limit_set(const struct whatif *w)
{
    return w->knobs->recompile_limit || w->knobs->accumulated_limit;
}

/* Do the settings divide a cache into groups, each with its own entries and limit? */
static bool is_cache_divided_into_groups(const struct whatif *w)
{
    return w->knobs->isolate || w->knobs->backends_apart;
}

/* ---- the simulated cache: births, deaths, resets, forks ------------------ */

/* Return the group to which entries or calls of CODE with this REGION and BACKEND belong. Entries
 * of group -1 can be hit by all calls. */
static int64_t find_group(const struct whatif *w, uint32_t code, int64_t region, uint32_t backend)
{
    const struct whatif_knobs *knobs = w->knobs;
    bool divided = knobs->isolate && region < 0 && w->codes[code].several;
    bool by_backend = knobs->backends_apart && !knobs->isolate;

    if (!divided && !by_backend)
        return region;
    if (backend == REPLAY_NONE)
        return UNKNOWN_GROUP;
    if (divided)
        return (int64_t)1 << 40 | (int64_t)backend;
    return ((region + 1) & 0xffff) << 20 | (int64_t)backend;
}

/* Was the entry E alive when the entry DIED died? */
static bool was_alive_at_death(const struct replay_entry *e, const struct replay_entry *died)
{
    return e->born_ns < died->died_ns && e->died_ns >= died->died_ns;
}

/* When ENTRY died in the recording, did the recorded cache have other entries than the
 * simulated cache has? */
static bool has_simulated_cache_other_entries(const struct whatif *w, const struct sim *s,
                                              uint32_t entry)
{
    const struct replay_entry *died = entry_at(w, entry);
    size_t same = 0;
    size_t recorded = 0;

    for (uint32_t i = 0; is_recorded(w, i); i++) {
        const struct replay_entry *e = entry_at(w, i);
        if (e->code != died->code || !was_alive_at_death(e, died))
            continue;
        recorded++;
        if (cache_order_find(&s->cache, i) < s->cache.count)
            same++;
    }
    return same != recorded || same != s->cache.count;
}

/* The program invalidated the recorded entry at PLACE. The simulated cache has other entries than
 * the recorded cache had, so the program may have invalidated any of them: mark them as unsure. The
 * entry at PLACE becomes a ghost, because it is not expected to exist any more. */
static void sim_mark_unsure_after_invalidation(struct whatif *w, struct sim *s, size_t place)
{
    for (size_t i = 0; i < s->cache.count; i++) {
        struct cached *entry = &s->cache.at[i];
        if (i == place)
            entry->ghost = true;
        entry->unsure = !entry->ghost;
    }
    s->bounds.compiled.count = 0;
    s->bounds.moved = true;
    assume(w, ASSUMED_DEATHS);
}

/* torch reset the cache: remove all entries from the simulated cache. */
static void sim_reset(struct sim *s)
{
    s->resets++;
    bounds_reset(&s->bounds);
    s->cache.count = 0;
    s->cache.pinned = 0;
    s->limited.count = 0;
    s->dead = 0;
    s->ever = 0;
    s->failed = 0;
    s->less = 0;
    s->more = 0;
}

/* An object died that guards of recorded entries name. Guards of entries that were not recorded may
 * name it, too, so mark these entries of the simulated cache as unsure. */
static void sim_mark_unrecorded_unsure(const struct whatif *w, struct sim *s)
{
    list_each(entry, &s->cache) {
        if (is_recorded(w, entry->id))
            continue;
        if (!entry->unsure)
            s->less++;
        entry->unsure = true;
    }
}

/* Simulate the recorded death of ENTRY, which is at PLACE in the simulated cache. If the settings
 * drop the guard that named the dead object, the entry may live on. */
static void sim_remove_dead_entry(struct whatif *w, struct sim *s, size_t place, uint32_t entry)
{
    enum like dies = like_does_entry_die(w, entry);

    if (dies == LIKE_GUESS_YES) {
        s->cache.at[place].unsure = true;
        s->less++;
    }
    if (dies == LIKE_YES) {
        cache_order_remove(&s->cache, place);
        s->dead++;
    }
}

/* Simulate the recorded death of ENTRY in the simulated cache. */
static void sim_apply_death(struct whatif *w, struct sim *s, uint32_t entry)
{
    const struct replay_entry *died = entry_at(w, entry);
    size_t place = cache_order_find(&s->cache, entry);
    bool object = map_get(&w->killers, died->id) || map_get(&w->freed, died->id);
    bool may_be_other = !object && w->base;

    if (object)
        sim_mark_unrecorded_unsure(w, s);
    s->deaths++;
    bounds_add_death(&s->bounds, entry);
    if (died->reset)
        sim_reset(s);
    else if (may_be_other && has_simulated_cache_other_entries(w, s, entry))
        sim_mark_unsure_after_invalidation(w, s, place);
    else if (place < s->cache.count)
        sim_remove_dead_entry(w, s, place, entry);
}

/* If ENTRY was loaded from a file, simulate its recorded birth. Other births are simulated by the
 * calls that make the entries. */
static void sim_load_entry(struct whatif *w, struct sim *s, const struct replay_cache *cache,
                           uint32_t entry)
{
    const struct replay_entry *e = entry_at(w, entry);
    bool loaded = e->pinned || e->compile_id < 0;
    struct cached cached = {.id = entry};

    if (!loaded || e->process != cache->process)
        return;
    cached.region = find_group(w, e->code, e->region, class_at(w, entry)->backend);
    cache_order_add(&s->cache, cached, e->pinned);
}

/* Did ENTRY die in the process of CACHE? If a fork copied the entry, it may have died in
 * another process. */
static bool has_died_in_process(const struct whatif *w, const struct replay_cache *cache,
                                uint32_t entry)
{
    const struct replay_entry *e = entry_at(w, entry);

    if (!e->shared)
        return true;
    return e->process == cache->process && class_at(w, entry)->seen_ns < e->died_ns;
}

/* Bring the simulated cache with the index INDEX up to the time NOW. This simulates only what does
 * not depend on calls: recorded deaths, resets, and the loading of entries. */
static void sim_advance(struct whatif *w, uint32_t index, int64_t now)
{
    struct sim *s = &w->sims[index];
    const struct replay_cache *cache = cache_at(w, index);

    for (; s->born < cache->entry_count; s->born++) {
        uint32_t entry = cache->entries[s->born];
        if (entry_at(w, entry)->born_ns > now)
            break;
        sim_load_entry(w, s, cache, entry);
    }
    for (; s->dying < cache->entry_count; s->dying++) {
        uint32_t entry = cache->deaths[s->dying];
        if (entry_at(w, entry)->died_ns >= now)
            break;
        if (has_died_in_process(w, cache, entry))
            sim_apply_death(w, s, entry);
    }
}

/* Was ENTRY born after the time NS in the recording? */
static bool is_born_after(const struct whatif *w, uint32_t entry, int64_t ns)
{
    return entry_at(w, entry)->born_ns > ns;
}

static bool does_entry_die_after(const struct whatif *w, uint32_t entry, int64_t ns)
{
    return entry_at(w, entry)->died_ns > ns;
}

/* A fork at FORK_NS copied a cache: make the simulated cache a copy of PARENT, the parent
 * process's cache. */
static void sim_fork(const struct whatif *w, struct sim *s, const struct sim *parent,
                     const struct replay_cache *cache, int64_t fork_ns)
{
    uint32_t count = cache->entry_count;

    cache_order_copy_from_parent(&s->cache, &parent->cache);
    s->less = parent->less;
    s->more = parent->more;
    s->dead = parent->dead;
    s->ever = parent->ever;
    s->bounds.open = parent->bounds.open;
    s->bounds.lost = parent->bounds.lost;
    s->bounds.moved = parent->bounds.moved;
    while (s->born < count && !is_born_after(w, cache->entries[s->born], fork_ns))
        s->born++;
    while (s->dying < count && !does_entry_die_after(w, cache->deaths[s->dying], fork_ns))
        s->dying++;
}

static void sim_fork_all_until(struct whatif *w, size_t *next, int64_t now)
{
    for (; *next < w->forks.count; ++*next) {
        uint32_t index = w->forks.at[*next];
        const struct replay_cache *cache = cache_at(w, index);
        int64_t fork_ns = w->r->processes.at[cache->process].start_ns;
        struct sim *s = &w->sims[index];
        if (fork_ns > now)
            return;
        if (s->begun)
            continue;
        s->begun = true;
        sim_advance(w, cache->parent, fork_ns);
        sim_fork(w, s, &w->sims[cache->parent], cache, fork_ns);
    }
}

/* ---- one call: the entries that it tries, and the limits that it meets ---- */

struct call {
    uint32_t lookup;
    uint32_t class_;
    uint32_t code;
    uint32_t backend;
    const struct replay_lookup *l;
    const struct replay_cache *cache;
    /* the innermost call around this one that does not run as recorded in the simulation; NULL
     * if there is none */
    const struct nested *around;
    int64_t region;
    int64_t group;
    bool torch;
    bool run_only; /* the call may hit an entry, but may not be compiled */
};

static struct call make_call(const struct whatif *w, uint32_t lookup)
{
    const struct replay_lookup *l = lookup_at(w, lookup);
    struct call c = {.lookup = lookup, .l = l, .class_ = w->class_of[lookup], .region = -1};

    c.cache = cache_at(w, l->cache);
    c.code = c.cache->code;
    c.torch = replay_uses_torch(w->r, l->cache);
    c.run_only = l->outcome == OUTCOME_RUN_ONLY;
    if (w->regions)
        c.region = like_region_of_lookup(w->r, l, c.class_);
    c.backend = c.run_only ? REPLAY_NONE : class_at(w, c.class_)->backend;
    c.group = find_group(w, c.code, c.region, c.backend);
    return c;
}

/* Return the check with number I of the call's recorded lookup. */
static const struct replay_check *check_at(const struct whatif *w, const struct call *c, uint32_t i)
{
    return &w->r->checks.at[c->l->checks + i];
}

/* Did the call's recorded lookup check the guards of ENTRY? */
static bool has_lookup_tried_entry(const struct whatif *w, const struct call *c, uint32_t entry)
{
    for (uint32_t i = 0; i < c->l->check_count; i++)
        if (check_at(w, c, i)->entry == entry)
            return true;
    return false;
}

/* Did a fork copy ENTRY, and did ENTRY die before the call, in whichever process? */
static bool was_copied_by_fork(const struct whatif *w, const struct call *c, uint32_t entry)
{
    const struct replay_entry *e = entry_at(w, entry);

    return e->shared && e->region < 0 && e->died_ns < c->l->start_ns;
}

/* Remove copies of entries that died in the process of this call from the simulated cache. The
 * trace does not tell in which of the forked processes an entry died. But a recorded miss tried all
 * living entries of its cache, so an entry that it did not try was dead. */
static void remove_dead_copies(struct whatif *w, struct sim *s, const struct call *c)
{
    bool all = !c->l->observed && c->l->check_count >= c->l->checked;

    if (!all || !outcome_facts[outcome_from_number(c->l->outcome)].missed)
        return;
    for (size_t i = s->cache.count; i-- > 0;) {
        uint32_t id = s->cache.at[i].id;
        bool inherited = is_recorded(w, id) && was_copied_by_fork(w, c, id);
        if (inherited && !has_lookup_tried_entry(w, c, id))
            sim_apply_death(w, s, id);
        /* the cache is shorter now, because a reset has removed all entries */
        if (i > s->cache.count)
            i = s->cache.count;
    }
}

/* Count a check of the entry of CLASS_ and its time. PASSED: the check passed. */
static void add_check_cost(const struct whatif *w, uint32_t class_, bool passed,
                           struct whatif_tally *t)
{
    t->checks++;
    t->check_ns += like_mean_time(w, class_, passed ? TIMED_PASS : TIMED_FAIL);
}

/* Did the call's recorded lookup pass over an entry that belongs to another backend? */
static bool saw_other_backend(const struct whatif *w, const struct call *c)
{
    for (uint32_t i = 0; i < c->l->check_count; i++) {
        const struct replay_check *check = check_at(w, c, i);
        if (check->result == CHECK_BACKEND_MISMATCH)
            return true;
    }
    return false;
}

/* Does the entry of CLASS_ belong to another backend than the call? Two backends may have the same
 * name; then a recorded mismatch shows that they differ. */
static bool is_other_backend(struct whatif *w, uint32_t class_, const struct call *c)
{
    uint32_t backend = class_at(w, class_)->backend;

    if (c->backend == REPLAY_NONE)
        return false;
    if (backend != REPLAY_NONE && backend != c->backend)
        return true;
    return *pair_result_at(w, class_, c->class_) & SEEN_MISMATCH;
}

/* Did the call perhaps run while torch's callback was False? The lookup of such a call may hit
 * entries of all backends. The trace does not tell the callback. But if a lookup passed over an
 * entry of another backend, the callback was not False. */
static bool may_be_run_only(const struct whatif *w, const struct call *c)
{
    return c->l->outcome == OUTCOME_HIT && !saw_other_backend(w, c);
}

/* Is the backend of the call unknown, except that it is not the backend of the entries that the
 * call passed over? */
static bool is_backend_unknown(const struct whatif *w, const struct call *c)
{
    return c->backend == REPLAY_NONE && !c->run_only && saw_other_backend(w, c);
}

/* Does the call certainly hit the first entry of the simulated cache? This is quick to find out,
 * and true for most calls. */
static bool hits_first_entry(const struct whatif *w, const struct sim *s, const struct call *c)
{
    const struct cached *front = s->cache.at;

    if (!s->cache.count || front->id != c->class_)
        return false;
    if (!is_recorded(w, c->class_))
        return false;
    return !front->unsure && !front->ghost && front->region == c->group;
}

/* Return a walk over those entries of the simulated cache that the call's lookup sees. */
static struct cache_walk walk_entries_seen(const struct whatif *w, const struct sim *s,
                                           const struct call *c)
{
    bool divided = w->knobs->isolate && w->codes[c->code].several;
    bool apart = c->group < 0 || w->knobs->backends_apart || divided;

    return cache_walk(&s->cache, c->group, apart ? c->group : -1);
}

/* Does the call hit the entry TRIED? GUESS: it is not certain that the call sees the entry, so the
 * answer is at most LIKE_GUESS_YES. */
static enum like call_fits_entry(struct whatif *w, const struct cached *tried, const struct call *c,
                                 bool guess)
{
    enum like like = like_does_entry_fit(w, tried->id, c->lookup);

    return guess && like == LIKE_YES ? LIKE_GUESS_YES : like;
}

/* Return the position of ENTRY in the simulated cache. Returns the number of entries if
 * ENTRY is NULL. */
static size_t find_position_of_entry(const struct sim *s, const struct cached *entry)
{
    return entry ? (size_t)(entry - s->cache.at) : s->cache.count;
}

/* Return the position of the entry that the call hits in the simulated cache. Returns the number of
 * entries if the call misses. Sets *UNSURE if this is a guess. The checks are counted. */
static size_t find_entry_that_call_hits(struct whatif *w, struct sim *s, const struct call *c,
                                        bool *unsure, struct whatif_tally *t)
{
    struct cache_walk walk = walk_entries_seen(w, s, c);
    const struct cached *tried;
    const struct cached *hit = NULL;
    bool others = false; /* some entries were passed over, because they belong to another backend */
    bool any_backend = is_backend_unknown(w, c);

    *unsure = false;
    if (hits_first_entry(w, s, c)) {
        add_check_cost(w, c->class_, true, t);
        return 0;
    }
    while ((tried = cache_walk_next(&walk))) {
        bool there = !tried->ghost;
        bool guess = there && (tried->unsure || any_backend);
        enum like like;
        bool fits;
        if (is_other_backend(w, tried->id, c)) {
            others = true;
            continue;
        }
        like = call_fits_entry(w, tried, c, guess);
        fits = like >= LIKE_GUESS_YES;
        if (there && !hit) {
            add_check_cost(w, tried->id, fits, t);
            if (fits)
                hit = tried;
        }
        /* the call hits this entry or one before it, so it is certainly a hit */
        if (there && like == LIKE_YES) {
            if (*unsure)
                w->functions[c->code].either++;
            *unsure = false;
            break;
        }
        *unsure = *unsure || like != LIKE_NO;
    }
    others = others && !hit;
    if (others && may_be_run_only(w, c)) {
        *unsure = true;
        assume(w, ASSUMED_RUN_ONLY);
    }
    return find_position_of_entry(s, hit);
}

/* The number of entries that count towards a limit. */
struct counted {
    int64_t count;
    int64_t less; /* how many of the counted entries may not exist */
    int64_t more; /* how many entries that are not counted may exist */
};

static struct counted count_entries_at_limit(const struct whatif *w, const struct sim *s,
                                             const struct call *c)
{
    bool all = !c->torch && !is_cache_divided_into_groups(w);
    struct counted n = {.count = c->torch ? s->dead : 0};

    list_each(entry, &s->cache) {
        if (!all && entry->region != c->group)
            continue;
        n.count += !entry->ghost;
        n.less += entry->unsure;
        n.more += entry->ghost;
    }
    return n;
}

/* Return the limit that the call's group has reached, or NULL. If there is one, torch compiles
 * nothing more for the group. */
static const struct group_limit *find_reached_limit(const struct sim *s, const struct call *c)
{
    if (!c->torch)
        return NULL;
    list_each(limit, &s->limited)
        if (limit->group == c->group)
            return limit;
    return NULL;
}

/* Return the limit on living entries that holds for the call: a number, LIMIT_VARIES or
 * LIMIT_UNKNOWN. */
static int64_t find_limit(const struct whatif *w, const struct call *c)
{
    const struct like_code *code = &w->codes[c->code];

    if (w->knobs->recompile_limit)
        return w->knobs->recompile_limit;
    return code->limit && !code->accumulated ? code->limit : LIMIT_UNKNOWN;
}

/* Return the limit on all entries ever made that holds for the call, or 0 if there is none. */
static int64_t find_ever_limit(const struct whatif *w, const struct call *c)
{
    const struct like_code *code = &w->codes[c->code];

    if (w->knobs->accumulated_limit)
        return w->knobs->accumulated_limit;
    return code->accumulated ? code->limit : 0;
}

/* Return how many entries count towards the limit on all entries ever made. */
static int64_t count_ever_made(const struct sim *s, const struct call *c)
{
    return c->torch ? (int64_t)s->cache.count + s->dead + s->failed : s->ever;
}

/* Is it uncertain whether as many entries as LIMIT exist, because some of the counted entries may
 * not exist, or because others may? */
static bool is_limit_unsure(const struct counted *n, int64_t limit)
{
    if (n->count >= limit)
        return n->count - n->less < limit;
    return n->count + n->more >= limit;
}

/* Do the settings change only the limit on all entries ever made, and may it be this limit that
 * recorded calls of CODE met? */
static bool is_only_ever_limit_set(const struct whatif *w, const struct like_code *code)
{
    if (!code->maybe_ever)
        return false;
    return w->knobs->accumulated_limit && !w->knobs->recompile_limit;
}

/* Does the call, which missed, meet a limit? LIMIT is the limit on living entries. Sets *UNSURE if
 * the answer is a guess. */
static bool meets_limit(struct whatif *w, const struct sim *s, const struct call *c, int64_t limit,
                        bool *unsure)
{
    struct counted n = count_entries_at_limit(w, s, c);
    int64_t made = count_ever_made(s, c);
    int64_t ever = find_ever_limit(w, c);
    bool over;

    /* no recorded call met a limit, so the limit is at least as high as the number of
     * recorded entries */
    if (limit == LIMIT_UNKNOWN) {
        int64_t seen = c->cache->entry_count;
        limit = seen > DEFAULT_LIMIT ? seen : DEFAULT_LIMIT;
        if (n.count + n.more >= limit) {
            *unsure = true;
            assume(w, ASSUMED_LIMIT);
        }
    }
    over = n.count >= limit;
    if (is_limit_unsure(&n, limit))
        *unsure = true;
    if (over && is_only_ever_limit_set(w, &w->codes[c->code]))
        *unsure = true;
    if (ever && made + s->more >= ever) {
        if (!over && made - s->less < ever)
            *unsure = true;
        over = over || made >= ever;
    }
    return over;
}

/* Return the outcome of a call that missed: OUTCOME_COMPILED or OUTCOME_LIMIT. */
static enum outcome predict_compiled_or_limit(struct whatif *w, struct sim *s, const struct call *c,
                                              bool *unsure)
{
    const struct group_limit *reached = find_reached_limit(s, c);
    int64_t limit = find_limit(w, c);

    if (reached) {
        *unsure = *unsure || reached->unsure;
        return OUTCOME_LIMIT;
    }
    /* predict what was recorded; for a recorded hit this is a guess, because it is not known
     * whether a miss would have met the limit */
    if (limit == LIMIT_VARIES) {
        bool was_hit = c->l->outcome == OUTCOME_HIT;
        bool was_limited = c->l->outcome == OUTCOME_LIMIT;
        *unsure = *unsure || was_hit;
        return was_limited ? OUTCOME_LIMIT : OUTCOME_COMPILED;
    }
    if (!meets_limit(w, s, c, limit, unsure))
        return OUTCOME_COMPILED;
    if (c->torch)
        *list_add(&s->limited) = (struct group_limit){c->group, *unsure};
    return OUTCOME_LIMIT;
}

/* ---- callees of calls that do not run as recorded ------------------------ */

/* Return the index in w->rests of the first resume function of CODE, or where it would be. */
static size_t find_rests(const struct whatif *w, uint32_t code)
{
    return sorted_count(w->rests.count, i, w->rests.at[i].code < code);
}

/* In the simulation CODE runs compiled, and this code calls its resume functions. Count these calls
 * as unrecorded, because the trace does not have them. */
static void count_resume_calls(struct whatif *w, uint32_t code)
{
    for (size_t at = find_rests(w, code); at < w->rests.count; at++) {
        const struct rest *rest = &w->rests.at[at];
        if (rest->code != code)
            return;
        w->functions[rest->resume].unrecorded++;
    }
}

/* Read which code objects were inlined when CODE was compiled from the trace. INDEX is the
 * index of CODE. */
static void find_inlined_code_objects(struct whatif *w, struct like_code *code, uint32_t index)
{
    int64_t id = w->r->codes.at[index].id;

    code->callees = true;
    db_rows(row, w->db, schema_statement("whatif/inlined"), id)
    {
        uint32_t *inlined = list_add(&code->inlined);
        *inlined = replay_index_of_id(&w->r->code_ids, query_integer(row, 0));
    }
    arena_keep(&w->texts, code->inlined.at);
}

/* In the simulation the call runs as Python, and calls the functions that were inlined into its
 * compiled code. If such a function has entries, its call is looked up. Count these lookups as
 * unrecorded, because the trace does not have them. */
static void count_inlined_calls(struct whatif *w, const struct call *c)
{
    struct like_code *code = &w->codes[c->code];

    if (!code->callees)
        find_inlined_code_objects(w, code, c->code);
    for (size_t i = 0; i < code->inlined.count; i++) {
        uint32_t inlined = code->inlined.at[i];
        int64_t key = replay_cache_key(inlined, c->cache->process);
        uint32_t cache = replay_index_of_id(&w->r->cache_ids, key);
        if (cache != REPLAY_NONE && w->sims[cache].cache.count)
            w->functions[inlined].unrecorded++;
    }
}

/* Is CODE a resume function of OF? It may also be a resume function of a resume function of OF, at
 * most DEPTH levels down. */
static bool is_resume_function_of(const struct whatif *w, uint32_t of, uint32_t code, int depth)
{
    if (!depth)
        return false;
    for (size_t at = find_rests(w, of); at < w->rests.count; at++) {
        const struct rest *rest = &w->rests.at[at];
        if (rest->code != of)
            return false;
        if (rest->resume == code || is_resume_function_of(w, rest->resume, code, depth - 1))
            return true;
    }
    return false;
}

/* Return when the frame of the lookup LOOKUP_ID ended. Returns REPLAY_NEVER if it did not end, and
 * -1 if the trace does not have the frame. */
static int64_t read_frame_end(struct whatif *w, int64_t lookup_id)
{
    int64_t end = -1;

    db_rows(row, w->db, schema_statement("whatif/frame-end"), lookup_id)
    {
        bool ended = query_type(row, 0) != QUERY_NULL;
        end = ended ? query_integer(row, 0) : REPLAY_NEVER;
    }
    if (end == -1)
        assume(w, ASSUMED_FRAMES);
    return end;
}

/* Is CALLEE in the list `nested` of CODE? */
static bool is_nested(const struct like_code *code, uint32_t callee)
{
    for (size_t i = 0; i < code->nested.count; i++)
        if (code->nested.at[i] == callee)
            return true;
    return false;
}

/* Add the code objects that were looked up while one call of OF ran to the list `nested` of CODE,
 * except OF itself. PLACE is the position of that call in order of time. */
static void add_nested(struct whatif *w, struct like_code *code, uint32_t of, size_t place)
{
    const struct replay *r = w->r;
    const struct replay_lookup *outer = lookup_at(w, r->order[place]);
    int64_t end = read_frame_end(w, outer->id);

    for (size_t at = place + 1; at < r->lookups.count; at++) {
        const struct replay_lookup *inner = lookup_at(w, r->order[at]);
        uint32_t callee = r->caches.at[inner->cache].code;
        if (inner->start_ns >= end)
            break;
        if (inner->thread != outer->thread || callee == of)
            continue;
        if (!is_nested(code, callee))
            *list_add(&code->nested) = callee;
    }
}

/* Fill the list `nested` of CODE with the code objects that the compiled code of OF calls. They
 * were looked up during calls that compiled OF. */
static void fill_nested_callees(struct whatif *w, struct like_code *code, uint32_t of)
{
    const struct replay *r = w->r;

    code->nested_read = true;
    for (size_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = lookup_at(w, r->order[i]);
        if (k->outcome == OUTCOME_COMPILED && r->caches.at[k->cache].code == of)
            add_nested(w, code, of, i);
    }
    arena_keep(&w->texts, code->nested.at);
}

/* In the recording the call ran as Python, and torch does not look up the callees of such a call.
 * In the simulation it is compiled, and may call what the compiled code called in other recorded
 * calls. Count these calls as unrecorded, because the trace does not have their lookups. */
static void count_callee_calls(struct whatif *w, const struct call *c)
{
    struct like_code *code = &w->codes[c->code];

    if (!code->nested_read)
        fill_nested_callees(w, code, c->code);
    for (size_t i = 0; i < code->nested.count; i++) {
        uint32_t nested = code->nested.at[i];
        if (!is_resume_function_of(w, c->code, nested, RESTS))
            w->functions[nested].unrecorded++;
    }
}

/* Return the open calls of the call's thread, or NULL if the thread is not known. */
static struct thread *get_thread(const struct whatif *w, const struct call *c)
{
    uint32_t thread = c->l->thread;

    return thread == REPLAY_NONE ? NULL : &w->threads[thread];
}

/* Return the innermost call around this call that does not run as recorded. Returns NULL if
 * there is none. */
static const struct nested *find_changed_call_around(const struct whatif *w, const struct call *c)
{
    struct thread *t = get_thread(w, c);

    if (!t || !c->torch)
        return NULL;
    for (; t->depth; t->depth--) {
        const struct nested *innermost = &t->stack[t->depth - 1];
        if (innermost->until_ns > c->l->start_ns)
            return innermost;
    }
    return NULL;
}

/* Note that the call, which begins now, does not run as recorded. */
static void enter_changed_call(struct whatif *w, const struct call *c, enum around runs,
                               bool unsure)
{
    struct thread *t = get_thread(w, c);

    if (!t || t->depth >= NESTED)
        return;
    t->stack[t->depth] = (struct nested){
        .until_ns = read_frame_end(w, c->l->id),
        .runs = runs,
        .unsure = unsure,
        .code = c->code,
    };
    t->depth++;
}

/* In the recording the call was compiled and ran the new code. In the simulation it runs other
 * code, or may. Note when the call ends. */
static void store_other_entry_end(struct whatif *w, const struct call *c)
{
    int64_t end_ns = read_frame_end(w, c->l->id);
    struct thread *t = get_thread(w, c);

    if (t && t->other_until_ns < end_ns)
        t->other_until_ns = end_ns;
}

/* Is this a call of a function that the compiler excludes, made by code that is other code in
 * the simulation, or may be? Compiled code calls torch functions that the program does not
 * name, such as one that makes a tensor of a float. Code that was compiled without this float
 * does not call it. */
static bool is_helper_of_other_entry(const struct whatif *w, const struct call *c)
{
    bool is_excluded = c->torch && w->codes[c->code].excluded;
    const struct thread *t = get_thread(w, c);

    if (!w->base || !is_excluded)
        return false;
    return t && c->l->start_ns < t->other_until_ns;
}

static bool runs_compiled(unsigned outcome)
{
    return outcome == OUTCOME_HIT || outcome == OUTCOME_COMPILED;
}

/* ---- predicting the outcome of a call ------------------------------------ */

/* Add the entry that the call makes to the simulated cache. GHOST: the entry is not expected, but
 * may exist. UNSURE: the entry is expected, but may not exist. */
static void sim_insert(struct sim *s, const struct call *c, bool unsure, bool ghost)
{
    struct cached entry = {
        .id = c->class_,
        .unsure = unsure,
        .ghost = ghost,
        .trusted = s->bounds.open || s->bounds.lost,
        .region = c->group,
    };

    cache_order_add(&s->cache, entry, false);
    if (!ghost)
        s->ever++;
    if (unsure)
        s->less++;
    if (ghost)
        s->more++;
}

/* Does the simulated cache have the recorded entry that all calls of this class and group hit? */
static bool has_own_entry(const struct whatif *w, const struct sim *s, const struct call *c)
{
    if (!is_recorded(w, c->class_))
        return false;
    list_each(entry, &s->cache)
        if (entry->id == c->class_ && entry->region == c->group)
            return true;
    return false;
}

/* If the call is compiled after all, it makes an entry: add it to the simulated
 * cache as a ghost. */
static void add_possible_entry(const struct whatif *w, struct sim *s, const struct call *c)
{
    if (c->run_only || has_own_entry(w, s, c))
        return;
    if (s->more < GHOSTS)
        sim_insert(s, c, false, true);
    else
        s->bounds.lost = true;
}

/* Does ENTRY certainly exist, with the recorded guards? */
static bool is_entry_certain(const struct whatif *w, const struct cached *entry)
{
    bool may_be_missing = entry->unsure || entry->ghost || entry->trusted;

    return is_recorded(w, entry->id) && !may_be_missing;
}

/* Return the outcome of a call whose caller runs compiled in the simulation: the call is inlined,
 * and so not looked up. */
static uint8_t predict_inlined(struct whatif *w, const struct call *c)
{
    bool breaks = w->codes[c->around->code].breaks;

    if (breaks)
        count_resume_calls(w, c->code);
    return WHATIF_GONE | mark_unsure_if(breaks);
}

/* Return the outcome of a call of a resume function. In the simulation the function before the
 * graph break runs as Python, so the call does not happen. If that is a guess, the call may happen,
 * and may be compiled. */
static uint8_t predict_omitted(struct whatif *w, struct sim *s, const struct call *c)
{
    struct whatif_tally none = {0};
    bool guess = c->around->unsure;
    bool unsure;

    if (guess) {
        size_t hit = find_entry_that_call_hits(w, s, c, &unsure, &none);
        if (unsure || hit == s->cache.count)
            add_possible_entry(w, s, c);
    }
    return WHATIF_GONE | mark_unsure_if(guess);
}

/* Simulate that the call hits the entry at PLACE. Returns the outcome. Sets *SETTLED if the
 * hit is certain. */
static uint8_t predict_hit(struct whatif *w, struct sim *s, const struct call *c, size_t place,
                           bool unsure, bool *settled)
{
    const struct cached *entry = &s->cache.at[place];
    struct whatif_function *f = &w->functions[c->code];

    f->trusting += !is_recorded(w, entry->id);
    /* In the recording the function was declined, so its later calls were not looked up. After a
     * hit they are looked up; the trace does not have these lookups. */
    f->unrecorded += c->l->outcome == OUTCOME_DECLINED;
    *settled = !unsure && is_entry_certain(w, entry);
    cache_order_move_hit_entry(&s->cache, place);
    if (unsure)
        add_possible_entry(w, s, c);
    return OUTCOME_HIT | mark_unsure_if(unsure);
}

/* Return the outcome of a call that misses in the simulation, and that the compiler declined in
 * the recording. */
static enum outcome predict_decline(struct whatif *w, struct sim *s, const struct call *c,
                                    bool *unsure)
{
    struct whatif_function *f = &w->functions[c->code];
    enum outcome outcome = predict_compiled_or_limit(w, s, c, unsure);

    if (outcome != OUTCOME_COMPILED) {
        /* the compiler is not called, so it does not decline the function, and later
         * calls are looked up */
        f->unrecorded++;
        return outcome;
    }
    /* The compiler declines again. But later calls, and calls with another backend, may
     * still be compiled. */
    *unsure = *unsure || like_has_dynamic_input(w, c->class_);
    f->unrecorded += *unsure || is_cache_divided_into_groups(w);
    return OUTCOME_DECLINED;
}

/* Compile a call that misses, unless a limit forbids this. Returns the outcome. */
static enum outcome predict_compile(struct whatif *w, struct sim *s, const struct call *c,
                                    bool *unsure)
{
    struct whatif_function *f = &w->functions[c->code];
    enum outcome outcome = predict_compiled_or_limit(w, s, c, unsure);

    if (outcome == OUTCOME_COMPILED) {
        sim_insert(s, c, *unsure, false);
        f->trusting += !is_recorded(w, c->class_);
        f->predicted.compile_ns += like_mean_time(w, c->class_, TIMED_COMPILE);
    }
    return outcome;
}

/* Return the outcome of a call that misses. */
static enum outcome predict_miss(struct whatif *w, struct sim *s, const struct call *c,
                                 bool *unsure)
{
    unsigned recorded = c->l->outcome;
    bool allowed = !c->run_only || (c->around && find_reached_limit(s, c));

    /* in the recording the compiler raised; it is predicted to raise again */
    if (recorded == OUTCOME_CALLBACK_ERROR) {
        *unsure = *unsure || is_limit_set(w) || w->weaker;
        s->failed++;
        return OUTCOME_CALLBACK_ERROR;
    }
    if (!allowed) {
        /* In the recording the call could perhaps not be compiled because its caller was at its
         * limit. The settings change this limit. */
        bool by_limit = c->torch && recorded == OUTCOME_RUN_ONLY;
        if (by_limit && is_limit_set(w))
            *unsure = true;
        return OUTCOME_RUN_ONLY;
    }
    if (recorded == OUTCOME_DECLINED)
        return predict_decline(w, s, c, unsure);
    return predict_compile(w, s, c, unsure);
}

/* Predict the outcome of the call, and change the simulated cache accordingly. Returns the
 * outcome as in whatif_result.outcomes. Sets *SETTLED if the cache certainly has an entry that
 * the call hits. */
static uint8_t predict_outcome(struct whatif *w, struct call c, bool *settled)
{
    struct sim *s = &w->sims[c.l->cache];
    const struct nested *around = c.around;
    bool guess = around && around->unsure;
    bool unsure = false;
    enum outcome outcome;
    size_t hit;

    if (around) {
        if (around->runs == AROUND_COMPILED && !guess)
            return predict_inlined(w, &c);
        if (around->runs == AROUND_PYTHON && is_resume_function_of(w, around->code, c.code, RESTS))
            return predict_omitted(w, s, &c);
        if (around->runs == AROUND_LIMITED || !guess)
            c.run_only = true;
    }
    if (!s->cache.count) {
        bool declined = c.l->outcome == OUTCOME_DECLINED;
        /* inside a call whose function is at its limit, torch looks up only functions
         * that have entries */
        if (around && !guess)
            return WHATIF_GONE;
        if (declined && w->codes[c.code].excluded)
            return OUTCOME_DECLINED;
    }
    hit = find_entry_that_call_hits(w, s, &c, &unsure, &w->functions[c.code].predicted);
    if (hit < s->cache.count)
        return predict_hit(w, s, &c, hit, unsure, settled);
    outcome = predict_miss(w, s, &c, &unsure);
    if (unsure && outcome == OUTCOME_LIMIT)
        add_possible_entry(w, s, &c);
    return (uint8_t)outcome | mark_unsure_if(unsure);
}

/* ---- counting calls and checks of the simulation ------------------------- */

static void count_outcome(struct whatif_tally *t, enum outcome outcome)
{
    t->calls++;
    t->hits += outcome == OUTCOME_HIT;
    t->misses += outcome_facts[outcome].missed;
    t->compiles += outcome == OUTCOME_COMPILED;
    t->eager += outcome_facts[outcome].python;
}

static void count_recorded_outcome(struct whatif *w, const struct call *c, struct whatif_tally *t)
{
    bool compiled = c->l->outcome == OUTCOME_COMPILED;
    uint32_t made = compiled ? c->l->entry : REPLAY_NONE;

    count_outcome(t, outcome_from_number(c->l->outcome));
    for (uint32_t i = 0; i < c->l->check_count; i++) {
        const struct replay_check *k = check_at(w, c, i);
        if (k->entry == REPLAY_CHECK_NONE || k->result == CHECK_BACKEND_MISMATCH)
            continue;
        add_check_cost(w, k->entry, k->result == CHECK_PASS, t);
    }
    if (made != REPLAY_NONE && class_at(w, made)->times.count[TIMED_COMPILE])
        t->compile_ns += like_mean_time(w, made, TIMED_COMPILE);
}

/* Return the greatest number of entries that the simulated cache may have when the call misses: all
 * that exist or may exist, except the entry of the call's own class, which the call would hit. */
static int64_t count_most_entries(const struct whatif *w, const struct sim *s, const struct call *c)
{
    int64_t count = c->torch ? s->dead : 0;

    list_each(entry, &s->cache) {
        bool of_class = entry->id == c->class_ && entry->region == c->group;
        bool own = of_class && is_recorded(w, entry->id);
        if (!own)
            count++;
    }
    return count;
}

/* May the call meet a limit? If the limit is not known, it may if it finds more entries than any
 * recorded call that was compiled. */
static bool may_be_limited(const struct whatif *w, const struct sim *s, const struct call *c)
{
    const struct like_code *f = &w->codes[c->code];
    int64_t limit = f->limit > 0 && !f->accumulated ? f->limit : f->least;
    int64_t ever = f->accumulated ? f->limit : f->maybe_ever;

    if (w->knobs->accumulated_limit)
        ever = w->knobs->accumulated_limit;
    if (ever && count_ever_made(s, c) + s->more >= ever)
        return true;
    if (w->knobs->recompile_limit)
        limit = w->knobs->recompile_limit;
    else if (f->limit == LIMIT_VARIES)
        return true;
    if (c->group == UNKNOWN_GROUP || find_reached_limit(s, c))
        return true;
    return count_most_entries(w, s, c) >= limit;
}

/* Was the call compiled in the recording, and are the cache and the limits in the simulation the
 * same as then? If so, no limit stops the call, because none did in the recording. */
static bool is_compiled_as_recorded(const struct whatif *w, const struct sim *s,
                                    const struct call *c)
{
    if (is_limit_set(w) || is_cache_divided_into_groups(w))
        return false;
    if (c->around || s->bounds.moved)
        return false;
    return c->l->outcome == OUTCOME_COMPILED;
}

/* Return which outcomes of the call are possible, judged by the recording and by the simulated
 * cache before the call. */
static struct decided find_possible_outcomes(const struct whatif *w, const struct sim *s,
                                             const struct call *c)
{
    unsigned recorded = outcome_from_number(c->l->outcome);
    bool runs_python = c->run_only || outcome_facts[recorded].python;

    return (struct decided){
        .class_ = c->class_,
        .called = !c->around,
        .hittable = s->cache.count,
        .limited = !is_compiled_as_recorded(w, s, c) && may_be_limited(w, s, c),
        .runnable = runs_python || c->around,
        .raising = recorded == OUTCOME_CALLBACK_ERROR,
        .compilable = !c->run_only,
        .recorded = is_recorded(w, c->class_),
        .alike = !is_cache_divided_into_groups(w),
    };
}

/* Were events of the call's process lost before the call? */
static bool is_after_loss(const struct whatif *w, const struct call *c)
{
    uint32_t process = c->cache->process;

    return process != REPLAY_NONE && c->l->start_ns >= w->r->processes.at[process].lost_ns;
}

/* Does the call end as recorded under all settings? It does if it did not search for an entry, or
 * if it ran an entry that is not in the trace. */
static bool keeps_recorded_outcome(const struct call *c)
{
    unsigned recorded = outcome_from_number(c->l->outcome);

    if (recorded == OUTCOME_HIT)
        return c->l->entry == REPLAY_NONE;
    return !outcome_facts[recorded].missed || recorded == OUTCOME_GUARD_ERROR;
}

/* Count a call with its recorded outcome, because no setting changes it. Returns the outcome. */
static uint8_t count_with_recorded_outcome(struct whatif *w, const struct call *c)
{
    struct bounds *bounds = &w->sims[c->l->cache].bounds;
    unsigned recorded = outcome_from_number(c->l->outcome);
    struct decided decided = {.outcome = recorded};

    count_recorded_outcome(w, c, &w->functions[c->code].predicted);
    bounds_add_call(bounds, &decided);
    /* such a hit is of an entry that the trace does not have, so it is not known any more
     * what the cache has */
    bounds->lost = bounds->lost || recorded == OUTCOME_HIT;
    return (uint8_t)recorded;
}

/* Do the settings divide the cache into groups, by torch.compile() call or by backend, although the
 * trace does not tell the group of this call? */
static bool is_group_unknown(const struct whatif *w, const struct call *c)
{
    const struct like_code *code = &w->codes[c->code];
    bool ends = c->l->outcome == OUTCOME_HIT || c->l->outcome == OUTCOME_LIMIT;
    bool region_unknown = w->knobs->isolate && c->torch && !code->several;
    bool backend_unknown = is_cache_divided_into_groups(w) && code->namesakes;

    if (!ends || c->region >= 0)
        return false;
    if (c->cache->count <= 1)
        return false;
    return region_unknown || backend_unknown;
}

/* The call does not run as recorded, or may not. Count the calls that it makes or omits because of
 * that. UNSURE: it is not certain whether the call runs as Python or compiled. */
static void count_changed_callees(struct whatif *w, const struct call *c, unsigned predicted,
                                  bool unsure)
{
    unsigned recorded = outcome_from_number(c->l->outcome);
    bool was_compiled = runs_compiled(recorded);
    bool becomes_compiled = unsure || runs_compiled(predicted);
    bool becomes_python = unsure || !runs_compiled(predicted);

    if (!was_compiled && becomes_compiled)
        count_resume_calls(w, c->code);
    if (recorded == OUTCOME_LIMIT && becomes_compiled)
        count_callee_calls(w, c);
    if (was_compiled && becomes_python)
        count_inlined_calls(w, c);
}

/* The call has the outcome PREDICTED. If it does not run as recorded, note this for the calls
 * inside it, and count the calls that it makes or omits. */
static void follow_changed_call(struct whatif *w, const struct call *c, unsigned predicted,
                                bool unsure)
{
    bool compiled = runs_compiled(predicted);
    bool same = compiled == runs_compiled(outcome_from_number(c->l->outcome));
    bool breaks = predicted == OUTCOME_HIT && same && w->codes[c->code].breaks;
    bool as_recorded = same && !unsure;
    const struct group_limit *at_limit = NULL;

    if (breaks)
        at_limit = find_reached_limit(&w->sims[c->l->cache], c);
    if (as_recorded && !at_limit)
        return;
    if (!unsure || !c->around) {
        enum around runs = compiled ? AROUND_COMPILED : AROUND_PYTHON;
        bool limit_unsure = at_limit && at_limit->unsure;
        if (at_limit)
            runs = AROUND_LIMITED;
        enter_changed_call(w, c, runs, unsure || limit_unsure);
    }
    if (!as_recorded)
        count_changed_callees(w, c, predicted, unsure);
}

/* Count a call that is not looked up any more in the simulation. */
static void count_omitted_call(struct whatif *w, const struct call *c)
{
    bool was_compiled = runs_compiled(outcome_from_number(c->l->outcome));

    w->functions[c->code].gone++;
    if (was_compiled && c->around->runs != AROUND_COMPILED)
        count_inlined_calls(w, c);
}

/* Did the simulation under unchanged settings already predict another outcome for the call than
 * the recorded one? */
static bool is_base_prediction_wrong(const struct whatif *w, const struct call *c)
{
    unsigned unchanged;

    if (!w->base)
        return false;
    unchanged = w->base[c->lookup] & WHATIF_OUTCOME;
    return unchanged != outcome_from_number(c->l->outcome);
}

/* Predict the outcome of the call, and update the bounds of its cache. Returns the outcome as in
 * whatif_result.outcomes. *DECIDED gets the outcomes that are possible. */
static uint8_t predict_call(struct whatif *w, struct call *c, struct decided *decided)
{
    struct sim *s = &w->sims[c->l->cache];
    struct whatif_function *f = &w->functions[c->code];
    unsigned recorded = outcome_from_number(c->l->outcome);
    int64_t trusting = f->trusting;
    unsigned predicted;
    bool moved;
    uint8_t found;

    remove_dead_copies(w, s, c);
    c->around = find_changed_call_around(w, c);
    *decided = find_possible_outcomes(w, s, c);
    found = predict_outcome(w, *c, &decided->settled);
    found |= mark_unsure_if(c->around && c->around->unsure);
    predicted = found & WHATIF_OUTCOME;
    if (is_base_prediction_wrong(w, c)) {
        found |= WHATIF_UNDECIDED;
        s->bounds.lost = true;
    }
    if (w->base && is_group_unknown(w, c)) {
        found |= WHATIF_UNDECIDED;
        /* it is not certain that the call hits, because the entry may belong to another group */
        decided->settled = false;
        assume(w, ASSUMED_GROUPS);
    }
    if (is_helper_of_other_entry(w, c)) {
        found |= WHATIF_UNDECIDED;
        decided->called = false;
        decided->compilable = false;
    }
    if (is_after_loss(w, c))
        s->bounds.lost = true;
    decided->outcome = predicted;
    decided->undecided = found & WHATIF_UNDECIDED;
    decided->trusting = f->trusting > trusting;
    /* it is not certain that the call is compiled, because the limit is not known */
    if (predicted == OUTCOME_COMPILED && decided->limited)
        decided->trusting = true;
    if (predicted == WHATIF_GONE)
        decided->called = false;
    bounds_add_call(&s->bounds, decided);
    moved = predicted != recorded || !decided->certain;
    if (moved)
        s->bounds.moved = true;
    if (moved && recorded == OUTCOME_COMPILED)
        store_other_entry_end(w, c);
    return found;
}

/* Simulate the call that made the lookup LOOKUP, and count it. Returns the outcome as in
 * whatif_result.outcomes. */
static uint8_t simulate_call(struct whatif *w, uint32_t lookup)
{
    struct call c = make_call(w, lookup);
    struct whatif_function *f = &w->functions[c.code];
    unsigned recorded = outcome_from_number(c.l->outcome);
    struct decided decided;
    unsigned predicted;
    uint8_t found;
    bool unsure, was_compiled;
    bool new_calls; /* the call may make calls that are not in the trace */

    w->sims[c.l->cache].begun = true;
    sim_advance(w, c.l->cache, c.l->start_ns);
    if (!w->base)
        count_recorded_outcome(w, &c, &f->recorded);
    if (keeps_recorded_outcome(&c))
        return count_with_recorded_outcome(w, &c);
    found = predict_call(w, &c, &decided);
    predicted = found & WHATIF_OUTCOME;
    if (w->base && !decided.certain) {
        found |= WHATIF_UNDECIDED;
        f->undecided++;
    }
    if (predicted == WHATIF_GONE) {
        count_omitted_call(w, &c);
        return found;
    }
    count_outcome(&f->predicted, (enum outcome)predicted);
    if (predicted != recorded)
        f->changed++;
    was_compiled = runs_compiled(recorded);
    unsure = !decided.certain && (decided.eager || !was_compiled);
    new_calls = decided.fresh || (unsure && was_compiled);
    if (c.torch && new_calls)
        w->strangers = true;
    if (c.torch && w->base)
        follow_changed_call(w, &c, predicted, unsure);
    return found;
}

/* ---- simulating all calls under one set of settings ---------------------- */

static int64_t count_differing_calls(const struct whatif_function *f)
{
    return f->changed + f->gone + f->undecided + f->unrecorded;
}

static int compare_changes(const void *a, const void *b)
{
    const struct whatif_function *x = a;
    const struct whatif_function *y = b;
    int order = list_compare_numbers(count_differing_calls(y), count_differing_calls(x));

    if (!order)
        order = list_compare_numbers(y->recorded.calls, x->recorded.calls);
    return order ? order : list_compare_numbers(x->code, y->code);
}

/* Return the smaller of two limits; -1 means that there is no limit. */
static int64_t choose_smaller_limit(int64_t a, int64_t b)
{
    if (a < 0)
        return b;
    if (b < 0)
        return a;
    return a < b ? a : b;
}

/* Return the limit on living entries for calls of the function F, or -1 if it is not known. */
static int64_t find_known_limit(const struct whatif_knobs *knobs, const struct like_code *f)
{
    if (knobs->recompile_limit)
        return knobs->recompile_limit;
    /* perhaps it was the limit on all entries ever made that stopped the recorded calls */
    if (f->maybe_ever && knobs->accumulated_limit)
        return -1;
    if (f->accumulated || f->limit <= 0)
        return -1;
    return f->limit;
}

/* Return the limit on all entries ever made for calls of the function F, or -1 if
 * it is not known. */
static int64_t find_known_ever_limit(const struct whatif_knobs *knobs, const struct like_code *f)
{
    if (knobs->accumulated_limit)
        return knobs->accumulated_limit;
    if (!f->accumulated || f->limit <= 0)
        return -1;
    return f->limit;
}

/* Return how many compiles the limits allow in the simulated cache with the index INDEX. Returns -1
 * if that is not known, for example because entries died and made room for others. */
static int64_t compute_most_compiles(const struct whatif *w, uint32_t index)
{
    const struct sim *s = &w->sims[index];
    const struct replay_cache *cache = cache_at(w, index);
    const struct like_code *code = &w->codes[cache->code];
    int64_t ever = find_known_ever_limit(w->knobs, code);

    if (is_cache_divided_into_groups(w) || w->regions)
        return -1;
    if (s->resets || cache->parent != REPLAY_NONE)
        return -1;
    /* without torch, dead entries do not count towards the limit on living entries */
    if (s->deaths && !replay_uses_torch(w->r, index))
        return ever;
    return choose_smaller_limit(find_known_limit(w->knobs, code), ever);
}

/* Note the assumptions that follow from the trace and from the result as a whole. */
static void assume_from_result(struct whatif *w, const struct whatif_result *result)
{
    const struct replay *r = w->r;
    bool *assumed = w->assumed;
    bool torch = false;

    list_each(process, &r->processes) {
        torch = torch || process->torch;
        if (process->lost_ns != REPLAY_NEVER)
            assume(w, ASSUMED_LOSSES);
    }
    for (uint32_t i = 0; i < r->lookups.count && !assumed[ASSUMED_OBSERVED]; i++)
        assumed[ASSUMED_OBSERVED] = lookup_at(w, i)->observed;
    assumed[ASSUMED_TIMES] = result->total.changed || result->total.gone;
    assumed[ASSUMED_SMALL] = torch && w->knobs->dynamic.count && !w->knobs->dynamic_all;
    assumed[ASSUMED_UNRECORDED] = result->total.unrecorded;
    assumed[ASSUMED_VALUES] = w->blind;
}

static void collect_notes(struct whatif *w, struct whatif_result *result)
{
    static const char *const words[ASSUMED_KINDS] = {
#define X(name, words) words,
        ASSUMPTIONS(X)
#undef X
    };
    const bool *assumed = w->assumed;

    assume_from_result(w, result);
    result->uncertain =
        assumed[ASSUMED_LOSSES] || assumed[ASSUMED_VALUES] || assumed[ASSUMED_DEATHS];
    for (int i = 0; i < ASSUMED_KINDS; i++)
        if (assumed[i])
            *list_add(&result->notes) = words[i];
}

/* Simulate all calls in time order, unless the user interrupts this. */
static void simulate_all_calls(struct whatif *w, uint8_t *outcomes)
{
    const struct replay *r = w->r;
    struct progress progress = progress_begin("deciding calls");
    size_t fork = 0;

    for (size_t i = 0; i < r->lookups.count; i++) {
        uint32_t lookup = r->order[i];
        sim_fork_all_until(w, &fork, lookup_at(w, lookup)->start_ns);
        outcomes[lookup] = simulate_call(w, lookup);
        if (i & (TICK - 1))
            continue;
        progress_tick(&progress, (int64_t)i, (int64_t)r->lookups.count);
        if (db_was_interrupted(w->db))
            break;
    }
    progress_end(&progress);
}

/* Add the counts of MORE to those of SUM. */
static void add_function_counts(struct whatif_function *sum, const struct whatif_function *more)
{
    size_t numbers = offsetof(struct whatif_function, code) / sizeof(int64_t);

    ranges_add(sum, more);
    for (size_t i = 0; i < numbers; i++)
        ((int64_t *)sum)[i] += ((const int64_t *)more)[i];
}

/* Store in RESULT the functions whose calls are looked up in a cache, and the sums of their
 * counts. */
static void collect_functions(struct whatif *w, struct whatif_result *result)
{
    const struct replay *r = w->r;

    for (uint32_t i = 0; i < r->caches.count; i++) {
        struct whatif_function *f = &w->functions[r->caches.at[i].code];
        bounds_finish(&w->sims[i].bounds, compute_most_compiles(w, i), f);
    }
    for (uint32_t i = 0; i < r->codes.count; i++) {
        struct whatif_function *f = &w->functions[i];
        if (w->base)
            f->recorded = w->recorded[i].recorded;
        if (!f->recorded.calls && !f->unrecorded)
            continue;
        f->code = i;
        if (f->unrecorded)
            ranges_drop_upper_bounds(f);
        add_function_counts(&result->total, f);
        *list_add(&result->functions) = *f;
    }
    list_sort(&result->functions, compare_changes);
    if (w->strangers)
        ranges_drop_upper_bounds(&result->total);
}

void whatif_run(struct whatif *w, const struct whatif_knobs *knobs, struct whatif_result *result)
{
    const struct replay *r = w->r;

    *result = (struct whatif_result){.total.code = REPLAY_NONE};
    result->outcomes = calloc(r->lookups.count + 1, 1);
    w->knobs = knobs;
    like_begin_simulation(w);
    w->sims = calloc(r->caches.count + 1, sizeof *w->sims);
    w->threads = calloc(r->threads.count + 1, sizeof *w->threads);
    w->functions = calloc(r->codes.count + 1, sizeof *w->functions);
    simulate_all_calls(w, result->outcomes);
    collect_functions(w, result);
    collect_notes(w, result);
    for (size_t i = 0; i < r->caches.count; i++) {
        struct sim *s = &w->sims[i];
        cache_order_free(&s->cache);
        list_free(&s->limited);
    }
    free(w->sims);
    free(w->threads);
    if (w->base)
        free(w->functions);
    else
        w->recorded = w->functions;
}

void whatif_result_free(struct whatif_result *result)
{
    list_free(&result->functions);
    list_free(&result->notes);
    free(result->outcomes);
    result->outcomes = NULL;
}

/* ---- preparing what-ifs of a trace, and freeing them --------------------- */

struct whatif *whatif_open(struct db *db, const struct replay *r)
{
    struct whatif *w = calloc(1, sizeof *w);
    struct whatif_knobs none = {0};
    struct whatif_result base;

    w->db = db;
    w->r = r;
    whatif_learn_from_trace(w);
    whatif_run(w, &none, &base);
    w->base = base.outcomes;
    base.outcomes = NULL;
    whatif_result_free(&base);
    return w;
}

void whatif_free(struct whatif *w)
{
    if (!w)
        return;
    arena_free(&w->texts);
    list_free(&w->classes);
    list_free(&w->rests);
    list_free(&w->forks);
    list_free(&w->drops);
    map_free(&w->pairs);
    map_free(&w->signatures);
    map_free(&w->failing);
    map_free(&w->failed_by);
    map_free(&w->varying);
    map_free(&w->killers);
    map_free(&w->symbols);
    map_free(&w->freed);
    free(w->class_of);
    free(w->codes);
    free(w->base);
    free(w->recorded);
    free(w);
}
