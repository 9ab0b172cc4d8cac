/* trace/whatif/decide.c -- the recorded calls decided again under other settings. See
 * trace/whatif/whatif.h.
 *
 * All lookups are gone through by time. For each cache a predicted one is kept
 * (trace/replay/cache_order.h), changed by the knobs:
 *
 *     a call                 tries the entries that it sees, in order; the first that fits runs
 *     none fits              limit reached: it runs as Python; else compiled, a new entry
 *     an entry's death       as recorded, of the entry that the same calls had; a reset takes all
 *     a fork                 hands the cache on
 *
 * It is done twice, the first time without a change: calls that do not come out as recorded then
 * are not understood, and count as undecided.
 *
 * In a torch program, if a call falls back to Python, so do its callees: torch does not compile the
 * callees of a call at its limit, not even where one of its entries still runs, and its resume
 * functions are not called. What becomes compiled takes its callees in. Such calls are found by
 * time: they lie in their caller's frame. */
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

struct sim {                  /* a predicted cache */
    struct cache_order cache; /* ids: classes; regions: groups, see group_of */
    uint32_t dead;            /* torch counts them */
    /* made since the last reset; compiles that raised, which torch counts */
    int64_t ever, failed;
    LIST(struct group_limit) limited; /* groups that torch does not compile for any more */
    uint32_t dying, born;             /* how many of the recorded deaths and births are done */
    int64_t less, more;               /* of them may not have been made, or so many besides */
    bool begun;
    struct bounds bounds;
    int64_t deaths, resets;
};

/* How a call now runs: as Python, compiled, or compiled as recorded, with its function at its
 * limit: then torch compiles nothing that it calls. */
enum around { AROUND_PYTHON, AROUND_COMPILED, AROUND_LIMITED };

/* On a thread, calls that do not run as they were recorded, and until when they last. */
struct thread {
    struct nested {
        int64_t until_ns;
        enum around runs;
        bool unsure; /* it may run as it was recorded, or not */
        uint32_t code;
    } stack[NESTED];
    int depth;
};

/* ---- a predicted cache --------------------------------------------------- */

/* Which group of calls an entry or call of this backend and region belongs to: -1, all see it. */
static int64_t group_of(const struct whatif *w, uint32_t code, int64_t region, uint32_t backend)
{
    if (w->knobs->isolate && region < 0 && w->codes[code].several)
        return backend == REPLAY_NONE ? UNKNOWN_GROUP : (int64_t)1 << 40 | (int64_t)backend;
    if (w->knobs->backends_apart && !w->knobs->isolate)
        return backend == REPLAY_NONE ? UNKNOWN_GROUP
                                      : ((region + 1) & 0xffff) << 20 | (int64_t)backend;
    return region;
}

/* Does the predicted cache S differ from the recorded one at the time when ENTRY died there? */
static bool is_other_cache(const struct whatif *w, const struct sim *s, uint32_t entry)
{
    const struct replay_entry *entries = w->r->entries.at, *died = &entries[entry];
    size_t same = 0, recorded = 0;

    for (size_t i = 0; i < w->r->entries.count; i++) {
        bool lived = entries[i].code == died->code && entries[i].born_ns < died->died_ns &&
                     entries[i].died_ns >= died->died_ns;
        recorded += lived;
        same += lived && cache_order_find(&s->cache, (uint32_t)i) < s->cache.count;
    }
    return same != recorded || same != s->cache.count;
}

/* The program invalidated the entry at PLACE, as recorded. In S it may have meant any other. */
static void sim_doubt(struct whatif *w, struct sim *s, size_t place)
{
    for (size_t i = 0; i < s->cache.count; i++) {
        s->cache.at[i].ghost = s->cache.at[i].ghost || i == place;
        s->cache.at[i].unsure = !s->cache.at[i].ghost;
    }
    s->bounds.compiled.count = 0;
    s->bounds.moved = true;
    w->assumed[ASSUMED_DEATHS] = true;
}

/* ENTRY died. */
static void sim_death(struct whatif *w, struct sim *s, uint32_t entry)
{
    size_t place = cache_order_find(&s->cache, entry), count = w->r->entries.count;
    /* that it named: of entries that were not recorded, too? */
    bool object = map_get(&w->killers, w->r->entries.at[entry].id) ||
                  map_get(&w->freed, w->r->entries.at[entry].id);

    for (size_t i = 0; object && i < s->cache.count; i++) {
        s->less += s->cache.at[i].id >= count && !s->cache.at[i].unsure;
        s->cache.at[i].unsure = s->cache.at[i].unsure || s->cache.at[i].id >= count;
    }
    s->deaths++;
    bounds_death(&s->bounds, entry);
    if (w->r->entries.at[entry].reset) {
        s->resets++;
        bounds_reset(&s->bounds);
        s->cache.count = s->cache.pinned = s->limited.count = s->dead = 0;
        s->ever = s->failed = s->less = s->more = 0;
    } else if (!object && w->base && is_other_cache(w, s, entry)) {
        sim_doubt(w, s, place);
    } else if (place < s->cache.count) {
        enum like dies = like_dies(w, entry);
        s->cache.at[place].unsure = s->cache.at[place].unsure || dies == LIKE_GUESS_YES;
        s->less += dies == LIKE_GUESS_YES;
        if (dies == LIKE_YES) {
            cache_order_died(&s->cache, place);
            s->dead++;
        }
    }
}

/* What the recorded cache went through up to NOW that does not depend on calls: deaths, resets,
 * entries that were loaded. */
static void sim_advance(struct whatif *w, uint32_t index, int64_t now)
{
    struct sim *s = &w->sims[index];
    const struct replay_cache *cache = &w->r->caches.at[index];
    const struct replay_entry *entries = w->r->entries.at;

    while (s->born < cache->entry_count && entries[cache->entries[s->born]].born_ns <= now) {
        uint32_t entry = cache->entries[s->born++];
        const struct replay_entry *e = &entries[entry];
        if ((e->pinned || e->compile_id < 0) && e->process == cache->process) {
            int64_t group = group_of(w, e->code, e->region, w->classes.at[entry].backend);
            cache_order_born(&s->cache, (struct cached){.id = entry, .region = group}, e->pinned);
        }
    }
    while (s->dying < cache->entry_count && entries[cache->deaths[s->dying]].died_ns < now) {
        uint32_t entry = cache->deaths[s->dying++];
        if (!entries[entry].shared || (entries[entry].process == cache->process &&
                                       w->classes.at[entry].seen_ns < entries[entry].died_ns))
            sim_death(w, s, entry); /* else it was another process's */
    }
}

static void forks_until(struct whatif *w, size_t *next, int64_t now)
{
    for (; *next < w->forks.count; ++*next) {
        const struct replay_cache *cache = &w->r->caches.at[w->forks.at[*next]];
        struct sim *s = &w->sims[w->forks.at[*next]], *parent = &w->sims[cache->parent];
        int64_t fork_ns = w->r->processes.at[cache->process].start_ns;
        if (fork_ns > now)
            return;
        if (s->begun)
            continue;
        s->begun = true;
        sim_advance(w, cache->parent, fork_ns);
        cache_order_fork(&s->cache, &parent->cache);
        s->less = parent->less;
        s->more = parent->more;
        s->dead = parent->dead;
        s->ever = parent->ever;
        s->bounds.open = parent->bounds.open;
        s->bounds.lost = parent->bounds.lost;
        s->bounds.moved = parent->bounds.moved;
        while (s->born < cache->entry_count &&
               w->r->entries.at[cache->entries[s->born]].born_ns <= fork_ns)
            s->born++;
        while (s->dying < cache->entry_count &&
               w->r->entries.at[cache->deaths[s->dying]].died_ns <= fork_ns)
            s->dying++;
    }
}

/* ---- one call ------------------------------------------------------------ */

struct call {
    uint32_t lookup, class_, code, backend;
    const struct replay_lookup *l;
    const struct replay_cache *cache;
    /* the call that it lies in and that does not run as it was recorded; or NULL */
    const struct nested *around;
    int64_t region, group;
    bool torch, run_only; /* run_only: compiling is not allowed */
};

static struct call call_of(const struct whatif *w, uint32_t lookup)
{
    const struct replay_lookup *l = &w->r->lookups.at[lookup];
    struct call c = {.lookup = lookup, .l = l, .class_ = w->class_of[lookup], .region = -1};

    c.cache = &w->r->caches.at[l->cache];
    c.code = c.cache->code;
    c.torch = replay_torch(w->r, l->cache);
    c.run_only = l->outcome == OUTCOME_RUN_ONLY;
    if (w->regions)
        c.region = like_region(w->r, l, c.class_);
    c.backend = c.run_only ? REPLAY_NONE : w->classes.at[c.class_].backend;
    c.group = group_of(w, c.code, c.region, c.backend);
    return c;
}

/* Entries that a fork handed on died in some process: where C's lookup tried all, in its own those
 * that it did not try. */
static void deaths_seen(struct whatif *w, struct sim *s, const struct call *c)
{
    const struct replay_check *checks = w->r->checks.at + c->l->checks;

    if (c->l->observed || c->l->check_count < c->l->checked ||
        !outcome_facts[outcome_of(c->l->outcome)].missed)
        return;
    for (size_t i = s->cache.count; i-- > 0;) {
        uint32_t id = s->cache.at[i].id, k = 0;
        const struct replay_entry *e = id < w->r->entries.count ? &w->r->entries.at[id] : NULL;
        if (!e || !e->shared || e->region >= 0 || e->died_ns >= c->l->start_ns)
            continue;
        while (k < c->l->check_count && checks[k].entry != id)
            k++;
        if (k == c->l->check_count)
            sim_death(w, s, id);
        if (i > s->cache.count)
            i = s->cache.count;
    }
}

/* An entry of class CLASS_ was checked. */
static void check_cost(const struct whatif *w, uint32_t class_, bool passed, struct whatif_tally *t)
{
    t->checks++;
    t->check_ns += like_cost(w, class_, passed ? TIMED_PASS : TIMED_FAIL);
}

/* Did C pass over an entry for its backend? */
static bool saw_other_backend(const struct whatif *w, const struct call *c)
{
    const struct replay_check *checks = w->r->checks.at + c->l->checks;

    for (uint32_t i = 0; i < c->l->check_count; i++)
        if (checks[i].result == CHECK_BACKEND_MISMATCH)
            return true;
    return false;
}

/* Is an entry of class CLASS_ of another backend than C's? Two backends may have one name: then a
 * recorded mismatch tells them apart. */
static bool is_other_backend(struct whatif *w, uint32_t class_, const struct call *c)
{
    uint32_t backend = w->classes.at[class_].backend;

    if (c->backend == REPLAY_NONE)
        return false;
    if (backend != REPLAY_NONE && backend != c->backend)
        return true;
    return *pair_at(w, class_, c->class_) & SEEN_MISMATCH;
}

/* May C be a call under the callback False, for which the entries of all backends count? A trace
 * does not hold the callback; an entry that C passed over for its backend shows one. */
static bool may_be_run_only(const struct whatif *w, const struct call *c)
{
    return c->l->outcome == OUTCOME_HIT && !saw_other_backend(w, c);
}

/* Is C's backend not known, but that it is none of the entries that C passed over? */
static bool is_backend_unknown(const struct whatif *w, const struct call *c)
{
    return c->backend == REPLAY_NONE && !c->run_only && saw_other_backend(w, c);
}

/* The entry that C hits: its place, or the number of entries. *UNSURE: that is a guess. */
static size_t find_entry(struct whatif *w, struct sim *s, const struct call *c, bool *unsure,
                         struct whatif_tally *t)
{
    bool apart = c->group < 0 || w->knobs->backends_apart ||
                 (w->knobs->isolate && w->codes[c->code].several);
    struct cache_walk walk = cache_walk(&s->cache, c->group, apart ? c->group : -1);
    const struct cached *front = s->cache.at, *tried, *hit = NULL;
    bool others = false; /* entries of other backends were passed over */
    bool any_backend = is_backend_unknown(w, c);

    *unsure = false;
    if (s->cache.count && front->id == c->class_ && c->class_ < w->r->entries.count &&
        !front->unsure && !front->ghost && front->region == c->group) {
        /* by far the most: the entry in front is the one that ran */
        check_cost(w, front->id, true, t);
        return 0;
    }
    while ((tried = cache_walk_next(&walk))) {
        enum like like;
        if (is_other_backend(w, tried->id, c)) {
            others = true;
            continue;
        }
        like = like_fits(w, tried->id, c->lookup);
        if (tried->ghost) {
            *unsure = *unsure || like != LIKE_NO;
            continue;
        }
        if ((tried->unsure || any_backend) && like == LIKE_YES)
            like = LIKE_GUESS_YES;
        if (!hit)
            check_cost(w, tried->id, like >= LIKE_GUESS_YES, t);
        if (!hit && like >= LIKE_GUESS_YES)
            hit = tried;
        if (like == LIKE_YES) { /* whatever the others are, it hits */
            w->functions[c->code].either += *unsure;
            *unsure = false;
            break;
        }
        *unsure = *unsure || like != LIKE_NO;
    }
    if (!hit && others && may_be_run_only(w, c)) {
        *unsure = true;
        w->assumed[ASSUMED_RUN_ONLY] = true;
    }
    return hit ? (size_t)(hit - s->cache.at) : s->cache.count;
}

/* How many entries count towards the limit for C; *LESS of them may not be there, and there may be
 * *MORE. */
static int64_t counted(const struct whatif *w, const struct sim *s, const struct call *c,
                       int64_t *less, int64_t *more)
{
    bool all = !c->torch && !w->knobs->isolate && !w->knobs->backends_apart;
    int64_t count = c->torch ? s->dead : 0;

    *less = *more = 0;
    for (size_t i = 0; i < s->cache.count; i++)
        if (all || s->cache.at[i].region == c->group) {
            count += !s->cache.at[i].ghost;
            *less += s->cache.at[i].unsure;
            *more += s->cache.at[i].ghost;
        }
    return count;
}

/* The limit that C's group has reached, or NULL: torch compiles nothing for it any more. */
static const struct group_limit *limited(const struct sim *s, const struct call *c)
{
    for (size_t i = 0; c->torch && i < s->limited.count; i++)
        if (s->limited.at[i].group == c->group)
            return &s->limited.at[i];
    return NULL;
}

/* What becomes of a miss: OUTCOME_COMPILED, OUTCOME_LIMIT. */
static enum outcome miss(struct whatif *w, struct sim *s, const struct call *c, bool *unsure)
{
    const struct like_code *f = &w->codes[c->code];
    const struct group_limit *reached = limited(s, c);
    int64_t less, more, count = counted(w, s, c, &less, &more), made;
    int64_t limit = w->knobs->recompile_limit     ? w->knobs->recompile_limit
                    : f->limit && !f->accumulated ? f->limit
                                                  : LIMIT_UNKNOWN;
    int64_t ever = w->knobs->accumulated_limit ? w->knobs->accumulated_limit
                   : f->accumulated            ? f->limit
                                               : 0;
    bool over;

    if (reached) {
        *unsure = *unsure || reached->unsure;
        return OUTCOME_LIMIT;
    }
    if (limit == LIMIT_VARIES) { /* as it was recorded, if it was */
        *unsure = *unsure || c->l->outcome == OUTCOME_HIT;
        return c->l->outcome == OUTCOME_LIMIT ? OUTCOME_LIMIT : OUTCOME_COMPILED;
    }
    if (limit == LIMIT_UNKNOWN) { /* never met: at least as many as there were */
        limit =
            DEFAULT_LIMIT > c->cache->entry_count ? DEFAULT_LIMIT : (int64_t)c->cache->entry_count;
        if (count + more >= limit) {
            *unsure = true;
            w->assumed[ASSUMED_LIMIT] = true;
        }
    }
    over = count >= limit;
    /* the limit that was met may have been the other one, which is another now */
    if (over && f->maybe_ever && w->knobs->accumulated_limit && !w->knobs->recompile_limit)
        *unsure = true;
    *unsure = *unsure || (over && count - less < limit) || (!over && count + more >= limit);
    made = c->torch ? (int64_t)s->cache.count + s->dead + s->failed : s->ever;
    if (ever && made + s->more >= ever) {
        *unsure = *unsure || (!over && (made < ever || made - s->less < ever));
        over = over || made >= ever;
    }
    if (over && c->torch)
        *list_add(&s->limited) = (struct group_limit){c->group, *unsure};
    return over ? OUTCOME_LIMIT : OUTCOME_COMPILED;
}

/* ---- calls within calls -------------------------------------------------- */

/* Compiled code of CODE breaks off: the trace has nothing of such calls of its resume functions. */
static void rests_called(struct whatif *w, uint32_t code)
{
    size_t at = sorted_count(w->rests.count, i, w->rests.at[i].code < code);

    for (; at < w->rests.count && w->rests.at[at].code == code; at++)
        w->functions[w->rests.at[at].resume].unrecorded++;
}

/* The same of what C's compiled code takes in, now that it runs as Python: such calls are looked up
 * where there is an entry. */
static void inlined_called(struct whatif *w, const struct call *c)
{
    struct like_code *code = &w->codes[c->code];

    if (!code->callees) {
        code->callees = true;
        db_rows(row, w->db, schema_statement("whatif/inlined"), w->r->codes.at[c->code].id) *
            list_add(&code->inlined) = replay_index(&w->r->code_ids, query_integer(row, 0));
        arena_keep(&w->texts, code->inlined.at);
    }
    for (size_t i = 0; i < code->inlined.count; i++) {
        uint32_t cache = replay_index(&w->r->cache_ids,
                                      replay_cache_key(code->inlined.at[i], c->cache->process));
        if (cache != REPLAY_NONE && w->sims[cache].cache.count)
            w->functions[code->inlined.at[i]].unrecorded++;
    }
}

/* Is CODE the rest of OF, or, DEPTH times at most, of such a rest? */
static bool is_rest(const struct whatif *w, uint32_t of, uint32_t code, int depth)
{
    for (size_t at = sorted_count(w->rests.count, i, w->rests.at[i].code < of);
         depth && at < w->rests.count && w->rests.at[at].code == of; at++)
        if (w->rests.at[at].resume == code || is_rest(w, w->rests.at[at].resume, code, depth - 1))
            return true;
    return false;
}

static int64_t frame_end(struct whatif *w, int64_t lookup_id)
{
    int64_t end = -1;

    db_rows(row, w->db, schema_statement("whatif/frame-end"), lookup_id) end =
        query_type(row, 0) == QUERY_NULL ? REPLAY_NEVER : query_integer(row, 0);
    w->assumed[ASSUMED_FRAMES] = w->assumed[ASSUMED_FRAMES] || end == -1;
    return end;
}

/* Code objects that were looked up while a call that compiled C's code ran: what its code calls. */
static void nested_read(struct whatif *w, struct like_code *code, uint32_t of)
{
    const struct replay *r = w->r;

    code->nested_read = true;
    for (size_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = &r->lookups.at[r->order[i]];
        int64_t end;
        if (k->outcome != OUTCOME_COMPILED || r->caches.at[k->cache].code != of)
            continue;
        end = frame_end(w, k->id);
        for (size_t at = i + 1; at < r->lookups.count; at++) {
            const struct replay_lookup *inner = &r->lookups.at[r->order[at]];
            uint32_t callee = r->caches.at[inner->cache].code;
            bool known = callee == of;
            if (inner->start_ns >= end)
                break;
            for (size_t n = 0; n < code->nested.count; n++)
                known = known || code->nested.at[n] == callee;
            if (!known && inner->thread == k->thread)
                *list_add(&code->nested) = callee;
        }
    }
    arena_keep(&w->texts, code->nested.at);
}

/* C was not compiled, and torch looks nothing up that such a call calls. Compiled, it may call what
 * its compiled code called elsewhere. */
static void nested_called(struct whatif *w, const struct call *c)
{
    struct like_code *code = &w->codes[c->code];

    if (!code->nested_read)
        nested_read(w, code, c->code);
    for (size_t i = 0; i < code->nested.count; i++)
        if (!is_rest(w, c->code, code->nested.at[i], RESTS))
            w->functions[code->nested.at[i]].unrecorded++;
}

/* The innermost call around AT_NS on THREAD that runs in another way than recorded, or NULL. */
static const struct nested *nested_in(struct whatif *w, uint32_t thread, int64_t at_ns)
{
    struct thread *t = thread == REPLAY_NONE ? NULL : &w->threads[thread];

    while (t && t->depth && t->stack[t->depth - 1].until_ns <= at_ns)
        t->depth--;
    return t && t->depth ? &t->stack[t->depth - 1] : NULL;
}

static void nested_enter(struct whatif *w, const struct call *c, enum around runs, bool unsure)
{
    struct thread *t = c->l->thread == REPLAY_NONE ? NULL : &w->threads[c->l->thread];

    if (t && t->depth < NESTED)
        t->stack[t->depth++] = (struct nested){frame_end(w, c->l->id), runs, unsure, c->code};
}

static bool runs_compiled(unsigned outcome)
{
    return outcome == OUTCOME_HIT || outcome == OUTCOME_COMPILED;
}

/* An entry for C is made, or, a ghost, may have been. */
static void sim_insert(struct sim *s, const struct call *c, bool unsure, bool ghost)
{
    cache_order_born(&s->cache,
                     (struct cached){.id = c->class_,
                                     .unsure = unsure,
                                     .ghost = ghost,
                                     .trusted = s->bounds.open || s->bounds.lost,
                                     .region = c->group},
                     false);
    s->ever += !ghost;
    s->less += unsure;
    s->more += ghost;
}

/* UNSURE whether C is compiled: if it is, there is an entry for it. */
static void maybe_made(const struct whatif *w, struct sim *s, const struct call *c, bool unsure)
{
    if (!unsure || c->run_only)
        return;
    /* a recorded entry takes all calls of its class: there is no second one */
    for (size_t i = 0; c->class_ < w->r->entries.count && i < s->cache.count; i++)
        if (s->cache.at[i].id == c->class_ && s->cache.at[i].region == c->group)
            return;
    if (s->more < GHOSTS)
        sim_insert(s, c, false, true);
    else
        s->bounds.lost = true;
}

/* Is ENTRY there for certain, as it was recorded? */
static bool is_certain(const struct whatif *w, const struct cached *entry)
{
    return entry->id < w->r->entries.count && !entry->unsure && !entry->ghost && !entry->trusted;
}

/* Everything of one lookup. Returns its predicted outcome, as in a result; *SETTLED: an entry that
 * takes the call is there for certain. */
static uint8_t decide(struct whatif *w, struct call c, bool *settled)
{
    struct sim *s = &w->sims[c.l->cache];
    struct whatif_function *f = &w->functions[c.code];
    bool guess = c.around && c.around->unsure, declined = c.l->outcome == OUTCOME_DECLINED;
    bool known = c.class_ < w->r->entries.count, unsure = false;
    enum outcome outcome;
    size_t hit;

    /* What compiled code takes in is not called. */
    if (c.around && c.around->runs == AROUND_COMPILED && !guess) {
        unsure = w->codes[c.around->code].breaks;
        if (unsure)
            rests_called(w, c.code);
        return WHATIF_GONE | (unsure ? WHATIF_UNDECIDED : 0);
    }
    if (c.around && c.around->runs == AROUND_PYTHON && is_rest(w, c.around->code, c.code, RESTS)) {
        /* Nor is the rest of what runs as Python now; if that is a guess, it may be called and
         * compiled. */
        if (guess &&
            (find_entry(w, s, &c, &unsure, &(struct whatif_tally){0}) == s->cache.count || unsure))
            maybe_made(w, s, &c, true);
        return WHATIF_GONE | (guess ? WHATIF_UNDECIDED : 0);
    }
    c.run_only = c.run_only || (c.around && (!guess || c.around->runs == AROUND_LIMITED));
    if (c.around && !guess && !s->cache.count)
        /* nothing was compiled for it: under torch's limit it is not looked up */
        return WHATIF_GONE;
    if (declined && w->codes[c.code].excluded && !s->cache.count)
        return OUTCOME_DECLINED;
    hit = find_entry(w, s, &c, &unsure, &f->predicted);
    if (hit < s->cache.count) {
        f->trusting += s->cache.at[hit].id >= w->r->entries.count;
        f->unrecorded += declined; /* and so are later ones, of which there was no lookup */
        *settled = !unsure && is_certain(w, &s->cache.at[hit]);
        cache_order_hit(&s->cache, hit);
        maybe_made(w, s, &c, unsure);
        return OUTCOME_HIT | (unsure ? WHATIF_UNDECIDED : 0);
    }
    if (c.l->outcome == OUTCOME_CALLBACK_ERROR) {
        outcome = OUTCOME_CALLBACK_ERROR; /* the compiler says the same again */
        unsure = unsure || w->knobs->recompile_limit || w->knobs->accumulated_limit || w->weaker;
        s->failed++;
    } else if (c.run_only && !(c.around && limited(s, &c))) {
        outcome = OUTCOME_RUN_ONLY;
        /* perhaps for the limit of what called it */
        unsure = unsure || (c.torch && c.l->outcome == OUTCOME_RUN_ONLY &&
                            (w->knobs->recompile_limit || w->knobs->accumulated_limit));
    } else if ((outcome = miss(w, s, &c, &unsure)) == OUTCOME_COMPILED && declined) {
        /* the same again; but later ones, and those of other backends, may be looked up */
        outcome = OUTCOME_DECLINED;
        /* of which there may be something to compile */
        unsure = unsure || like_symbols(w, c.class_);
        f->unrecorded += unsure || w->knobs->backends_apart || w->knobs->isolate;
    } else if (declined) {
        /* later calls would have been looked up: the compiler was not asked, so it did not decline
         * */
        f->unrecorded++;
    } else if (outcome == OUTCOME_COMPILED) {
        sim_insert(s, &c, unsure, false);
        f->trusting += !known;
        f->predicted.compile_ns += like_cost(w, c.class_, TIMED_COMPILE);
    }
    if (outcome == OUTCOME_LIMIT)
        maybe_made(w, s, &c, unsure);
    return (uint8_t)outcome | (unsure ? WHATIF_UNDECIDED : 0);
}

static void count(struct whatif_tally *t, enum outcome outcome)
{
    t->calls++;
    t->hits += outcome == OUTCOME_HIT;
    t->misses += outcome_facts[outcome].missed;
    t->compiles += outcome == OUTCOME_COMPILED;
    t->eager += outcome_facts[outcome].python;
}

static void count_recorded(struct whatif *w, const struct call *c, struct whatif_tally *t)
{
    count(t, outcome_of(c->l->outcome));
    for (uint32_t i = c->l->checks; i < c->l->checks + c->l->check_count; i++) {
        const struct replay_check *k = &w->r->checks.at[i];
        if (k->entry != REPLAY_CHECK_NONE && k->result != CHECK_BACKEND_MISMATCH)
            check_cost(w, k->entry, k->result == CHECK_PASS, t);
    }
    if (c->l->outcome == OUTCOME_COMPILED && c->l->entry != REPLAY_NONE &&
        w->classes.at[c->l->entry].times.count[TIMED_COMPILE])
        t->compile_ns += like_cost(w, c->l->entry, TIMED_COMPILE);
}

/* How many entries S may hold when C fits none: all that are there, or may be, but for the one of
 * its own class. */
static int64_t most_entries(const struct whatif *w, const struct sim *s, const struct call *c)
{
    int64_t count = c->torch ? s->dead : 0;

    for (size_t i = 0; i < s->cache.count; i++) {
        const struct cached *entry = &s->cache.at[i];
        bool own = entry->id == c->class_ && entry->id < w->r->entries.count;
        count += !own || entry->region != c->group;
    }
    return count;
}

/* May C meet a limit? If the limit is not known: C would find more entries than any recorded call
 * that was compiled. */
static bool may_be_limited(const struct whatif *w, const struct sim *s, const struct call *c)
{
    const struct like_code *f = &w->codes[c->code];
    int64_t made = c->torch ? (int64_t)s->cache.count + s->dead + s->failed : s->ever;
    int64_t limit = f->limit > 0 && !f->accumulated ? f->limit : f->least;
    int64_t ever = f->accumulated ? f->limit : f->maybe_ever;
    if (w->knobs->accumulated_limit)
        ever = w->knobs->accumulated_limit;
    if (ever && made + s->more >= ever)
        return true;
    if (w->knobs->recompile_limit)
        limit = w->knobs->recompile_limit;
    else if (f->limit == LIMIT_VARIES)
        return true;
    return c->group == UNKNOWN_GROUP || limited(s, c) || most_entries(w, s, c) >= limit;
}

/* C was compiled when it was recorded, and finds the same cache and limits now. Then no limit stops
 * the compile, whatever the limit is. */
static bool is_as_recorded(const struct whatif *w, const struct sim *s, const struct call *c)
{
    const struct whatif_knobs *knobs = w->knobs;
    bool limits = knobs->recompile_limit || knobs->accumulated_limit;
    bool groups = knobs->isolate || knobs->backends_apart;
    bool same = !limits && !groups && !c->around && !s->bounds.moved;

    return same && c->l->outcome == OUTCOME_COMPILED;
}

/* How C may end, as far as the cache and the recording tell before C is decided. */
static struct decided decided_before(const struct whatif *w, const struct sim *s,
                                     const struct call *c)
{
    unsigned recorded = outcome_of(c->l->outcome);

    return (struct decided){.class_ = c->class_,
                            .called = !c->around,
                            .hittable = s->cache.count,
                            .limited = !is_as_recorded(w, s, c) && may_be_limited(w, s, c),
                            .runnable = c->run_only || c->around || outcome_facts[recorded].python,
                            .raising = recorded == OUTCOME_CALLBACK_ERROR,
                            .compilable = !c->run_only,
                            .recorded = c->class_ < w->r->entries.count,
                            .alike = !w->knobs->isolate && !w->knobs->backends_apart};
}

/* Were events of C's process lost before it? */
static bool is_after_loss(const struct whatif *w, const struct call *c)
{
    uint32_t process = c->cache->process;

    return process != REPLAY_NONE && c->l->start_ns >= w->r->processes.at[process].lost_ns;
}

static void one(struct whatif *w, uint32_t lookup, uint8_t *outcomes)
{
    struct call c = call_of(w, lookup);
    struct whatif_function *f = &w->functions[c.code];
    unsigned recorded = outcome_of(c.l->outcome), predicted;
    const struct group_limit *at_limit;
    struct bounds *bounds = &w->sims[c.l->cache].bounds;
    int64_t trusting = f->trusting;
    struct decided decided;
    uint8_t found;
    bool unsure, same;

    w->sims[c.l->cache].begun = true;
    sim_advance(w, c.l->cache, c.l->start_ns);
    if (!w->base)
        count_recorded(w, &c, &f->recorded);
    if (recorded == OUTCOME_HIT
            ? c.l->entry == REPLAY_NONE
            : !outcome_facts[recorded].missed || recorded == OUTCOME_GUARD_ERROR) {
        /* no knob touches it: no cache is asked */
        count_recorded(w, &c, &f->predicted);
        outcomes[lookup] = (uint8_t)recorded;
        decided = (struct decided){.outcome = recorded};
        bounds_call(bounds, &decided);
        /* it ran an entry that the trace does not have */
        bounds->lost = bounds->lost || recorded == OUTCOME_HIT;
        return;
    }
    deaths_seen(w, &w->sims[c.l->cache], &c);
    c.around = c.torch ? nested_in(w, c.l->thread, c.l->start_ns) : NULL;
    decided = decided_before(w, &w->sims[c.l->cache], &c);
    found = decide(w, c, &decided.settled) | (c.around && c.around->unsure ? WHATIF_UNDECIDED : 0);
    predicted = found & WHATIF_OUTCOME;
    /* Without a change it must come out as it was recorded; where it does not, this call is not
     * understood. */
    if (w->base && (w->base[lookup] & WHATIF_OUTCOME) != recorded) {
        found |= WHATIF_UNDECIDED;
        bounds->lost = true;
    }
    /* Of which torch.compile(), of which backend was the call? The knobs depend on that, and the
     * trace does not tell. */
    if (w->base && (recorded == OUTCOME_HIT || recorded == OUTCOME_LIMIT) && c.cache->count > 1 &&
        c.region < 0 &&
        ((w->knobs->isolate && c.torch && !w->codes[c.code].several) ||
         ((w->knobs->isolate || w->knobs->backends_apart) && w->codes[c.code].namesakes))) {
        found |= WHATIF_UNDECIDED;
        decided.settled = false; /* its entry may be one that it does not see */
        w->assumed[ASSUMED_GROUPS] = true;
    }
    bounds->lost = bounds->lost || is_after_loss(w, &c);
    decided.outcome = predicted;
    decided.undecided = found & WHATIF_UNDECIDED;
    decided.trusting = f->trusting > trusting;
    /* a compile that no limit stops, as far as is known */
    if (predicted == OUTCOME_COMPILED && decided.limited)
        decided.trusting = true;
    decided.called = decided.called && predicted != WHATIF_GONE;
    bounds_call(bounds, &decided);
    if (w->base && !decided.certain) {
        found |= WHATIF_UNDECIDED;
        f->undecided++;
    }
    bounds->moved = bounds->moved || predicted != recorded || !decided.certain;
    outcomes[lookup] = found;
    if (predicted == WHATIF_GONE) {
        f->gone++;
        if (runs_compiled(recorded) && c.around->runs != AROUND_COMPILED)
            inlined_called(w, &c);
        return;
    }
    count(&f->predicted, (enum outcome)predicted);
    f->changed += predicted != recorded;
    /* as Python or as compiled code */
    unsure = !decided.certain && (decided.eager || !runs_compiled(recorded));
    if (c.torch && (decided.fresh || (unsure && runs_compiled(recorded))))
        w->strangers = true;
    same = runs_compiled(predicted) == runs_compiled(recorded);
    at_limit = predicted == OUTCOME_HIT && same && w->codes[c.code].breaks
                   ? limited(&w->sims[c.l->cache], &c)
                   : NULL;
    if (!c.torch || !w->base || (same && !unsure && !at_limit))
        return;
    if (!unsure || !c.around)
        nested_enter(w, &c,
                     at_limit                   ? AROUND_LIMITED
                     : runs_compiled(predicted) ? AROUND_COMPILED
                                                : AROUND_PYTHON,
                     unsure || (at_limit && at_limit->unsure));
    if (same && !unsure)
        return;
    if (!runs_compiled(recorded) && (unsure || runs_compiled(predicted)))
        rests_called(w, c.code);
    if (recorded == OUTCOME_LIMIT && (unsure || runs_compiled(predicted)))
        nested_called(w, &c);
    if (runs_compiled(recorded) && (unsure || !runs_compiled(predicted)))
        inlined_called(w, &c);
}

/* ---- a run --------------------------------------------------------------- */

static int64_t difference(const struct whatif_function *f)
{
    return f->changed + f->gone + f->undecided + f->unrecorded;
}

static int by_change(const void *a, const void *b)
{
    const struct whatif_function *x = a, *y = b;

    int order = list_order(difference(y), difference(x));

    if (!order)
        order = list_order(y->recorded.calls, x->recorded.calls);
    return order ? order : list_order(x->code, y->code);
}

/* How many compiles the limits allow in the cache at INDEX; -1: it is not known, or entries made
 * room for others. */
static int64_t most_compiles(const struct whatif *w, uint32_t index)
{
    const struct sim *s = &w->sims[index];
    const struct replay_cache *cache = &w->r->caches.at[index];
    const struct like_code *code = &w->codes[cache->code];
    bool torch = replay_torch(w->r, index);
    bool other = code->maybe_ever && w->knobs->accumulated_limit; /* the limit that was met */
    int64_t limit = code->limit > 0 && !code->accumulated ? code->limit : -1;
    int64_t ever = code->limit > 0 && code->accumulated ? code->limit : -1;

    if (w->knobs->recompile_limit)
        limit = w->knobs->recompile_limit;
    if (w->knobs->accumulated_limit)
        ever = w->knobs->accumulated_limit;
    if (w->knobs->isolate || w->knobs->backends_apart || w->regions)
        return -1;
    if (s->resets || cache->parent != REPLAY_NONE)
        return -1;
    if (s->deaths && !torch) /* the dead do not count */
        limit = -1;
    if (other && !w->knobs->recompile_limit)
        limit = -1;
    return ever < 0 || (limit >= 0 && limit < ever) ? limit : ever;
}

static void notes_make(struct whatif *w, struct whatif_result *result)
{
    static const char *const words[ASSUMED_KINDS] = {
#define X(name, words) words,
        ASSUMPTIONS(X)
#undef X
    };
    const struct replay *r = w->r;
    bool *assumed = w->assumed, torch = false;

    for (size_t i = 0; i < r->processes.count; i++) {
        torch = torch || r->processes.at[i].torch;
        assumed[ASSUMED_LOSSES] =
            assumed[ASSUMED_LOSSES] || r->processes.at[i].lost_ns != REPLAY_NEVER;
    }
    for (size_t i = 0; i < r->lookups.count && !assumed[ASSUMED_OBSERVED]; i++)
        assumed[ASSUMED_OBSERVED] = r->lookups.at[i].observed;
    assumed[ASSUMED_TIMES] = result->total.changed || result->total.gone;
    assumed[ASSUMED_SMALL] = torch && w->knobs->dynamic.count && !w->knobs->dynamic_all;
    assumed[ASSUMED_UNRECORDED] = result->total.unrecorded;
    assumed[ASSUMED_VALUES] = w->blind;
    result->uncertain =
        assumed[ASSUMED_LOSSES] || assumed[ASSUMED_VALUES] || assumed[ASSUMED_DEATHS];
    for (int i = 0; i < ASSUMED_KINDS; i++)
        if (assumed[i])
            *list_add(&result->notes) = words[i];
}

void whatif_run(struct whatif *w, const struct whatif_knobs *knobs, struct whatif_result *result)
{
    const struct replay *r = w->r;
    struct progress progress = progress_begin("deciding calls");
    size_t fork = 0;

    *result = (struct whatif_result){.total.code = REPLAY_NONE,
                                     .outcomes = calloc(r->lookups.count + 1, 1)};
    w->knobs = knobs;
    like_begin(w);
    w->sims = calloc(r->caches.count + 1, sizeof *w->sims);
    for (size_t i = 0; i < r->caches.count; i++)
        w->threads = calloc(r->threads.count + 1, sizeof *w->threads);
    w->functions = calloc(r->codes.count + 1, sizeof *w->functions);
    for (size_t i = 0; i < r->lookups.count; i++) {
        forks_until(w, &fork, r->lookups.at[r->order[i]].start_ns);
        one(w, r->order[i], result->outcomes);
        if (i & (TICK - 1))
            continue;
        progress_tick(&progress, (int64_t)i, (int64_t)r->lookups.count);
        if (db_interrupted(w->db))
            break;
    }
    progress_end(&progress);
    for (uint32_t i = 0; i < r->caches.count; i++)
        bounds_end(&w->sims[i].bounds, most_compiles(w, i), &w->functions[r->caches.at[i].code]);
    for (uint32_t i = 0; i < r->codes.count; i++) {
        struct whatif_function *f = &w->functions[i];
        if (w->base)
            f->recorded = w->recorded[i].recorded;
        if (!f->recorded.calls && !f->unrecorded)
            continue;
        f->code = i;
        if (f->unrecorded)
            ranges_open(f);
        ranges_add(&result->total, f);
        /* all numbers come before it */
        for (size_t k = 0; k < offsetof(struct whatif_function, code) / sizeof(int64_t); k++)
            ((int64_t *)&result->total)[k] += ((const int64_t *)f)[k];
        *list_add(&result->functions) = *f;
    }
    if (result->functions.count)
        qsort(result->functions.at, result->functions.count, sizeof *result->functions.at,
              by_change);
    if (w->strangers)
        ranges_open(&result->total);
    notes_make(w, result);
    for (size_t i = 0; i < r->caches.count; i++) {
        cache_order_free(&w->sims[i].cache);
        list_free(&w->sims[i].limited);
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

/* ---- opening ------------------------------------------------------------- */

struct whatif *whatif_open(struct db *db, const struct replay *r)
{
    struct whatif *w = calloc(1, sizeof *w);
    struct whatif_knobs none = {0};
    struct whatif_result base;

    *w = (struct whatif){.db = db, .r = r};
    whatif_learn(w);
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
    void *const owned[] = {w->class_of,
                           w->classes.at,
                           w->codes,
                           w->rests.at,
                           w->forks.at,
                           w->drops.at,
                           w->base,
                           w->recorded,
                           w->pairs.slots,
                           w->signatures.slots,
                           w->failing.slots,
                           w->failed_by.slots,
                           w->varying.slots,
                           w->killers.slots,
                           w->symbols.slots,
                           w->freed.slots,
                           w};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}
