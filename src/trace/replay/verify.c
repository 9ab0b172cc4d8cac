/* trace/replay/verify.c -- every recorded lookup decided again.
 *
 * Runs in: the viewer. See replay.h.
 *
 * A lookup tries the living entries that it sees, in order, until one fits (trace/replay/cache_order.h, docs/shim.md).
 * So for each cache, from its beginning:
 *
 *     births and deaths up to the lookup        move entries in and out of `live`
 *     what it should have tried                 live, in order, up to what ended it
 *     what the trace says it tried              guard_check
 *     what came of it                           outcome and entry
 *
 * After a lookup that does not follow, `live` is put into the order that the trace shows, so that one wrong row is one
 * finding.
 *
 * Things happen at a moment and a lookup takes a while: an entry that was born or
 * died while it went on may have been tried or not. Guards may let other threads
 * run, so lookups of one cache may overlap. An entry moved at some moment between
 * `low` and `high`; an order that does not follow is wrong where one entry moved
 * for certain after the other, and else unsure. So it is with the order that a
 * fork has handed on, and after a loss. */
#include "replay.h"
#include "trace/db.h"
#include "trace/replay/cache_order.h"

enum {
    CHECKS_MAX = 512,        /* that the recorder keeps of a lookup: it has no place for more */
    THREADS_MAX = 4096,      /* lookups of other threads that are looked through for this one's next */
    NEAR_LOOKUPS = 4096,     /* the same for lookups that overlap one */
    SLACK_NS = 50 * 1000000, /* time that the recorder itself took within a lookup is not in its duration */
};

const char *replay_fault_words(enum replay_fault fault)
{
    static const char *const words[FAULT_KINDS] = {
#define X(name, words) words,
        REPLAY_FAULTS(X)
#undef X
    };

    return fault < FAULT_KINDS ? words[fault] : "?";
}

/* One cache while its lookups are gone through. */
struct walk {
    const struct replay *r;
    const struct replay_cache *cache;
    struct cache_order live;
    uint32_t born, died; /* how many births and deaths are done */
    int64_t longest;     /* lookup of this cache so far */
    /* By entry, owned: */
    int64_t *low, *high; /* it was moved to the front last between these */
    uint32_t *tried;     /* the last lookup that tried it, + 1 */
    uint32_t *wild;      /* the last lookup during which others moved it, + 1 */
    /* The lookup that is decided. */
    uint32_t index;
    const struct replay_lookup *l;
    const struct replay_check *checks; /* its own */
    uint32_t stop;                     /* which of them ended it; their number: none did */
    int64_t end;                       /* when it had ended for certain */
    int64_t region;
};

static void to_front(struct walk *w, uint32_t entry)
{
    size_t place = cache_order_find(&w->live, entry);

    if (place < w->live.count)
        cache_order_hit(&w->live, place);
}

/* All births and deaths before NOW. An entry that several processes have may have died in another one: it stays. */
static void advance(struct walk *w, int64_t now)
{
    const struct replay_cache *cache = w->cache;
    const struct replay_entry *entries = w->r->entries.at;

    for (;;) {
        const struct replay_entry *birth = w->born < cache->entry_count ? &entries[cache->entries[w->born]] : NULL;
        const struct replay_entry *death = w->died < cache->entry_count ? &entries[cache->deaths[w->died]] : NULL;
        bool born = birth && birth->born_ns < now, died = death && death->died_ns < now;
        if (!born && !died)
            return;
        if (born && (!died || birth->born_ns <= death->died_ns)) {
            uint32_t entry = cache->entries[w->born++];
            cache_order_born(&w->live, (struct cached){.id = entry, .region = birth->region}, birth->pinned);
            w->low[entry] = w->high[entry] = birth->born_ns;
        } else {
            size_t place = cache_order_find(&w->live, cache->deaths[w->died++]);
            if (place < w->live.count && !death->shared)
                cache_order_died(&w->live, place);
        }
    }
}

/* May the lookup have tried ENTRY or not, for all that the trace shows? */
static bool optional(const struct walk *w, uint32_t entry)
{
    const struct replay_entry *e = &w->r->entries.at[entry];
    int64_t start = w->l->start_ns, end = w->end;

    return (e->born_ns >= start && e->born_ns <= end) || (e->died_ns >= start && e->died_ns <= end) ||
           (e->shared && e->died_ns <= end);
}

/* Why ENTRY, which the lookup tried or ran, is not among what it could see; FAULT_NONE: it can be. */
static enum replay_fault fault_of_entry(const struct walk *w, uint32_t entry)
{
    const struct replay_entry *e;

    if (entry == REPLAY_NONE || entry == REPLAY_CHECK_NONE)
        return FAULT_NO_ENTRY;
    e = &w->r->entries.at[entry];
    if (e->code != w->cache->code)
        return FAULT_OTHER_CODE;
    if (e->born_ns > w->end)
        return FAULT_UNBORN;
    if (e->died_ns < w->l->start_ns && !e->shared)
        return FAULT_DEAD;
    return replay_place(w->r, w->cache, entry) < w->cache->entry_count ? FAULT_NONE : FAULT_OTHER_CODE;
}

/* What ended the lookup's checks, if one did: its place, else the number of checks. */
static uint32_t end_of_checks(const struct walk *w)
{
    for (uint32_t i = 0; i < w->l->check_count; i++) {
        const struct replay_check *k = &w->checks[i];
        /* Guards that passed while their own entry died are no hit. */
        if (k->result == CHECK_ERROR ||
            (k->result == CHECK_PASS &&
             (i + 1 == w->l->check_count || k->entry == REPLAY_CHECK_NONE || !optional(w, k->entry))))
            return i;
    }
    return w->l->check_count;
}

/* Check I of the lookup, by itself. */
static enum replay_fault fault_of_check(struct walk *w, uint32_t i, struct replay_finding *f)
{
    const struct replay_check *k = &w->checks[i];
    enum replay_fault fault = fault_of_entry(w, k->entry);
    int64_t region;

    f->entry = k->entry == REPLAY_CHECK_NONE ? REPLAY_NONE : k->entry;
    if (fault)
        return fault;
    if (k->result == CHECK_RESULTS)
        return FAULT_RESULT;
    if (k->bad_guard)
        return FAULT_GUARD;
    if (w->tried[k->entry] == w->index + 1)
        return FAULT_TWICE;
    w->tried[k->entry] = w->index + 1;
    region = w->r->entries.at[k->entry].region;
    if (region >= 0 && w->region >= 0 && region != w->region)
        return FAULT_REGION;
    if (region >= 0)
        w->region = region;
    return FAULT_NONE;
}

/* The lookup's own rows, order aside. */
static enum replay_fault fault_of_rows(struct walk *w, struct replay_finding *f)
{
    const struct replay_lookup *l = w->l;
    enum replay_fault fault;
    uint32_t counted = 0;

    if (l->outcome == REPLAY_OUTCOME_UNKNOWN)
        return FAULT_OUTCOME;
    for (uint32_t i = 0; i < l->check_count; i++)
        if (w->checks[i].misplaced)
            return FAULT_POSITION;
    for (uint32_t i = 0; i < l->check_count; i++) {
        if ((fault = fault_of_check(w, i, f)))
            return fault;
        counted += w->checks[i].result != CHECK_BACKEND_MISMATCH;
    }
    f->entry = l->entry;
    if (!l->observed && counted != l->checked)
        return FAULT_COUNT;
    if (l->named && l->entry == REPLAY_NONE)
        return FAULT_NO_ENTRY;
    if (l->entry != REPLAY_NONE) {
        const struct replay_entry *e = &w->r->entries.at[l->entry];
        if (l->outcome != OUTCOME_HIT && l->outcome != OUTCOME_COMPILED)
            return FAULT_NO_PASS;
        if ((fault = fault_of_entry(w, l->entry)))
            return fault;
        if (l->outcome == OUTCOME_COMPILED && e->born_ns < l->start_ns)
            return FAULT_NOT_NEW;
        if (l->outcome == OUTCOME_COMPILED && w->region < 0)
            w->region = e->region;
    }
    w->stop = end_of_checks(w);
    f->entry = w->stop < l->check_count ? w->checks[w->stop].entry : l->entry;
    if (w->stop + 1 < l->check_count)
        return FAULT_AFTER_END;
    if (w->stop < l->check_count && w->checks[w->stop].result == CHECK_ERROR)
        return l->outcome == OUTCOME_GUARD_ERROR ? FAULT_NONE : FAULT_ERROR;
    if (l->outcome == OUTCOME_GUARD_ERROR && !l->observed)
        return FAULT_NO_ERROR;
    if (w->stop < l->check_count && l->outcome != OUTCOME_HIT) /* passed */
        return optional(w, w->checks[w->stop].entry) ? FAULT_NONE : FAULT_PASSED;
    if (w->stop < l->check_count)
        return l->entry == w->checks[w->stop].entry || !l->named ? FAULT_NONE : FAULT_OTHER_PASSED;
    return l->outcome == OUTCOME_HIT && l->named ? FAULT_NO_PASS : FAULT_NONE;
}

/* Were the entries that it tried those that it should have, in order? */
static enum replay_fault fault_of_order(struct walk *w, struct replay_finding *f)
{
    const struct replay_lookup *l = w->l;
    const struct replay_check *checks = w->checks;
    struct cache_walk walk = cache_walk(&w->live, w->region, -1);
    const struct cached *wanted;
    uint32_t k = 0;

    while (k < l->check_count && (wanted = cache_walk_next(&walk))) {
        while (k < l->check_count && checks[k].entry != wanted->id && optional(w, checks[k].entry))
            k++; /* it came or went meanwhile: its place is anywhere */
        if (k == l->check_count)
            break;
        if (checks[k].entry == wanted->id) {
            k++;
        } else if (!optional(w, wanted->id)) {
            f->entry = checks[k].entry;
            f->wanted = wanted->id;
            return FAULT_ORDER;
        }
    }
    while (k < l->check_count && optional(w, checks[k].entry))
        k++;
    if (k < l->check_count) { /* no place for it: of another region */
        f->entry = checks[k].entry;
        return FAULT_ORDER;
    }
    if (w->stop < l->check_count || (l->outcome == OUTCOME_HIT && !l->named) || l->check_count == CHECKS_MAX)
        return FAULT_NONE;
    while ((wanted = cache_walk_next(&walk)))
        if (w->tried[wanted->id] != w->index + 1 && !optional(w, wanted->id)) {
            f->entry = f->wanted = wanted->id;
            return FAULT_UNTRIED;
        }
    return FAULT_NONE;
}

/* When lookup INDEX had ended for certain. What the recorder did in between is not in its duration, and the next lookup
 * of that thread is after it. */
static int64_t window_end(const struct replay *r, uint32_t index)
{
    const struct replay_lookup *l = &r->lookups.at[index];
    int64_t end = l->end_ns + 1, latest = l->end_ns + SLACK_NS;

    if (l->outcome == OUTCOME_COMPILED) { /* older recorders took that time out of these as well */
        uint32_t compile =
            l->entry == REPLAY_NONE ? REPLAY_NONE : replay_index(&r->compile_ids, r->entries.at[l->entry].compile_id);
        return compile != REPLAY_NONE && r->compiles.at[compile].end_ns > end ? r->compiles.at[compile].end_ns : end;
    }
    if (l->check_count <= (l->outcome == OUTCOME_HIT))
        return end;
    for (size_t i = index + 1; i < r->lookups.count && i - index < THREADS_MAX; i++)
        if (r->lookups.at[i].thread == l->thread && r->lookups.at[i].start_ns >= l->end_ns) {
            int64_t next = r->lookups.at[i].start_ns - 1;
            return next > latest ? latest : next >= end ? next : end;
        }
    return latest;
}

/* Entries that lookups moved while lookup number RANK of the cache, the one that is decided, went on are marked in
 * `wild`: they may have been in their old place or in front. */
static void mark_wild(struct walk *w, uint32_t rank)
{
    const uint32_t *lookups = w->cache->lookups;

    for (uint32_t i = rank; i-- > 0 && rank - i < NEAR_LOOKUPS;) {
        const struct replay_lookup *o = &w->r->lookups.at[lookups[i]];
        if (o->start_ns < w->l->start_ns - w->longest)
            break;
        if (o->entry != REPLAY_NONE && window_end(w->r, lookups[i]) >= w->l->start_ns)
            w->wild[o->entry] = w->index + 1;
    }
    for (uint32_t i = rank + 1; i < w->cache->count && i - rank < NEAR_LOOKUPS; i++) {
        const struct replay_lookup *o = &w->r->lookups.at[lookups[i]];
        if (o->start_ns > w->end)
            break;
        if (o->entry != REPLAY_NONE)
            w->wild[o->entry] = w->index + 1;
    }
}

/* Nothing is certain of the place of ENTRY. */
static bool anywhere(const struct walk *w, uint32_t entry)
{
    return w->wild[entry] == w->index + 1 || optional(w, entry);
}

/* Can the order in which lookup number RANK tried its entries be, with what is known of when they moved? */
static bool order_possible(struct walk *w, uint32_t rank)
{
    const struct replay_entry *entries = w->r->entries.at;
    uint32_t count = w->l->check_count;
    bool possible = true;

    mark_wild(w, rank);
    for (uint32_t i = 0; i < count && possible; i++) {
        uint32_t x = w->checks[i].entry;
        if (anywhere(w, x))
            continue;
        for (uint32_t k = 0; k < w->live.count && possible; k++) { /* those that were tried later, or not at all */
            uint32_t y = w->live.at[k].id, at = 0;
            while (at < i && w->checks[at].entry != y)
                at++;
            if (at < i || y == x || entries[y].pinned != entries[x].pinned || entries[y].region != entries[x].region ||
                anywhere(w, y))
                continue;
            possible = w->live.policy == ORDER_FIFO ? w->low[y] > w->low[x] : w->low[y] <= w->high[x];
        }
        /* A region's own come before the common ones. */
        for (uint32_t k = i + 1; k < count && possible; k++)
            possible = entries[x].pinned || entries[x].region >= 0 || entries[w->checks[k].entry].region < 0;
    }
    return possible;
}

/* Believe the trace: what the lookup tried goes before the others, in that order. */
static void resync(struct walk *w)
{
    for (uint32_t i = w->l->check_count; i-- > 0;) {
        uint32_t entry = w->checks[i].entry;
        if (entry != REPLAY_CHECK_NONE && w->r->entries.at[entry].code == w->cache->code)
            to_front(w, entry);
    }
}

/* The order in which a forked process found its cache. */
static void begin_forked(struct walk *w)
{
    struct replay_state state = {0};
    int64_t fork_ns;

    if (w->cache->parent == REPLAY_NONE)
        return;
    fork_ns = w->r->processes.at[w->cache->process].start_ns;
    replay_state_when(w->r, w->cache->parent, fork_ns, &state);
    advance(w, fork_ns);
    for (size_t i = state.count; i-- > 0;)
        if (w->live.policy == ORDER_MRU && !state.at[i].dead) {
            to_front(w, state.at[i].entry);
            w->high[state.at[i].entry] = fork_ns;
        }
    list_free(&state);
}

static void explain_miss(const struct walk *w, struct replay_verdict *v)
{
    if (w->l->outcome != OUTCOME_LIMIT && w->l->outcome != OUTCOME_RUN_ONLY)
        return;
    v->misses++;
    if (w->l->end_ns >= w->r->codes.at[w->cache->code].marked_ns)
        v->by_mark++;
    else if (w->l->outcome == OUTCOME_LIMIT && w->live.count)
        v->by_limit++;
    else
        v->by_false++;
}

/* Lookup number RANK of the cache. */
static void verify_lookup(struct walk *w, uint32_t rank, int64_t lost_ns, struct replay_verdict *v)
{
    const struct replay *r = w->r;
    const struct replay_lookup *l = w->l = &r->lookups.at[w->cache->lookups[rank]];
    struct replay_finding found = {w->cache->lookups[rank], l->entry, REPLAY_NONE, FAULT_NONE};

    w->index = found.lookup;
    w->checks = r->checks.at + l->checks;
    w->stop = l->check_count;
    w->end = window_end(r, w->index);
    w->region = -1;
    advance(w, l->start_ns);
    explain_miss(w, v);
    found.fault = fault_of_rows(w, &found);
    if (!found.fault && !l->observed)
        found.fault = fault_of_order(w, &found);
    if (!found.fault)
        (l->observed ? v->observed++ : l->outcome == OUTCOME_HIT && !l->named ? v->before++ : v->whole++);
    else if (l->start_ns >= lost_ns || (found.fault == FAULT_ORDER && order_possible(w, rank)))
        v->unsure++;
    else
        *list_add(&v->findings) = found;
    if (found.fault == FAULT_ORDER)
        resync(w);
    if (l->outcome == OUTCOME_HIT && l->entry != REPLAY_NONE && w->live.policy == ORDER_MRU &&
        !r->entries.at[l->entry].pinned) {
        to_front(w, l->entry);
        w->low[l->entry] = l->start_ns;
        if (w->end > w->high[l->entry])
            w->high[l->entry] = w->end;
    }
    if (w->end - l->start_ns > w->longest)
        w->longest = w->end - l->start_ns;
}

/* The caches of PROCESS, by the rules of POLICY. */
static struct replay_verdict verify_process(struct walk *w, uint32_t process, enum order_policy policy)
{
    int64_t lost_ns = process == REPLAY_NONE ? REPLAY_NEVER : w->r->processes.at[process].lost_ns;
    struct replay_verdict verdict = {0};

    memset(w->tried, 0, (w->r->entries.count + 1) * sizeof *w->tried);
    for (size_t i = 0; i < w->r->caches.count; i++) {
        w->cache = &w->r->caches.at[i];
        if (w->cache->process != process || !w->cache->count)
            continue;
        w->live.count = w->live.pinned = 0;
        w->live.policy = policy;
        w->born = w->died = 0;
        w->longest = 0;
        begin_forked(w);
        for (uint32_t rank = 0; rank < w->cache->count; rank++)
            verify_lookup(w, rank, lost_ns, &verdict);
    }
    return verdict;
}

static int by_lookup(const void *a, const void *b, void *context)
{
    const struct replay_lookup *lookups = context;
    const struct replay_finding *x = a, *y = b;
    int64_t s = lookups[x->lookup].start_ns, t = lookups[y->lookup].start_ns;

    if (s != t)
        return s < t ? -1 : 1;
    return (x->lookup > y->lookup) - (x->lookup < y->lookup);
}

static void verdict_add(struct replay_verdict *all, const struct replay_verdict *more)
{
    all->whole += more->whole;
    all->observed += more->observed;
    all->before += more->before;
    all->unsure += more->unsure;
    all->misses += more->misses;
    all->by_mark += more->by_mark;
    all->by_limit += more->by_limit;
    all->by_false += more->by_false;
    for (size_t i = 0; i < more->findings.count; i++)
        *list_add(&all->findings) = more->findings.at[i];
}

void replay_verify(struct replay *r, struct replay_verdict *v)
{
    size_t count = r->entries.count + 1;
    struct walk w = {.r = r,
                     .low = calloc(count, sizeof *w.low),
                     .high = calloc(count, sizeof *w.high),
                     .tried = calloc(count, sizeof *w.tried),
                     .wild = calloc(count, sizeof *w.wild)};

    *v = (struct replay_verdict){.lookups = (int64_t)r->lookups.count, .orphans = r->orphans};
    for (size_t p = 0; p <= r->processes.count; p++) { /* the last one is the unknown one */
        uint32_t process = p < r->processes.count ? (uint32_t)p : REPLAY_NONE;
        struct replay_verdict one = verify_process(&w, process, ORDER_MRU), other = {0};
        /* torch can be set to leave entries where they were put, and the trace does not say so. */
        if (one.findings.count && process != REPLAY_NONE && r->processes.at[process].torch) {
            r->processes.at[process].insertion = true;
            other = verify_process(&w, process, ORDER_FIFO);
            r->processes.at[process].insertion = !other.findings.count;
            v->insertion += !other.findings.count;
        }
        verdict_add(v, process != REPLAY_NONE && r->processes.at[process].insertion ? &other : &one);
        list_free(&one.findings);
        list_free(&other.findings);
    }
    if (v->findings.count)
        qsort_r(v->findings.at, v->findings.count, sizeof *v->findings.at, by_lookup, r->lookups.at);
    cache_order_free(&w.live);
    free(w.low);
    free(w.high);
    free(w.tried);
    free(w.wild);
}
