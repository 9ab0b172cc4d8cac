/* trace/replay/verify.c -- every recorded lookup decided again.
 *
 * Runs in: the viewer. See replay.h.
 *
 * The rules (DESIGN 7, docs/shim.md): a lookup tries the living entries that it
 * sees, in order, until one fits; those of another backend are passed over. A new
 * entry goes in front, and a hit moves its entry there. A region sees its own
 * entries first and then the common ones. So for each cache, from its beginning:
 *
 *     births and deaths up to the lookup        move entries in and out of `live`
 *     what it should have tried                 live, in order, up to what ended it
 *     what the trace says it tried              guard_check
 *     what came of it                           outcome and entry
 *
 * After a lookup that does not follow, `live` is put into the order that the trace
 * shows, so that one wrong row is told once.
 *
 * Things happen at a moment and a lookup takes a while: an entry that was born or
 * died while it went on may have been tried or not. Guards may let other threads
 * run, so lookups of one cache may overlap. An entry moved at some moment between
 * `low` and `high`; an order that does not follow is wrong where one entry moved
 * for certain after the other, and else unsure. So it is with the order that a
 * fork has handed on, and after a loss. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "lib/progress.h"
#include "trace/remedy.h"

enum {
    CHECKS_MAX = 512,        /* that the recorder keeps of a lookup: it has no place for more */
    THREADS_MAX = 4096,      /* lookups of other threads that are looked through for this one's next */
    NEAR_LOOKUPS = 4096,     /* the same for lookups that overlap one */
    SLACK_NS = 50 * 1000000, /* time that the recorder itself took within a lookup is not in its duration */
};

const char *replay_fault_words(enum replay_fault fault)
{
    static const char *const words[FAULT_KINDS] = {
        [FAULT_NONE] = "it follows",
        [FAULT_OUTCOME] = "its outcome is not one of the vocabulary",
        [FAULT_NO_ENTRY] = "it names an entry that the trace has not",
        [FAULT_OTHER_CODE] = "it tried or ran an entry of other code, or of another process",
        [FAULT_UNBORN] = "it tried or ran an entry that was not born yet",
        [FAULT_DEAD] = "it tried or ran an entry that had died",
        [FAULT_TWICE] = "it tried an entry twice",
        [FAULT_REGION] = "it tried entries of two regions",
        [FAULT_ORDER] = "it tried the entries in another order than they were in",
        [FAULT_UNTRIED] = "it gave up with an entry left to try",
        [FAULT_PASSED] = "an entry's guards passed, and it did not run that entry",
        [FAULT_NO_PASS] = "it ran an entry whose guards did not pass",
        [FAULT_OTHER_PASSED] = "it ran another entry than the one whose guards passed",
        [FAULT_AFTER_END] = "it tried entries after the one that ended it",
        [FAULT_NO_ERROR] = "it ended in a guard's error, and no guard raised",
        [FAULT_ERROR] = "a guard raised, and it went on",
        [FAULT_COUNT] = "it has other guard checks than entries_checked says",
        [FAULT_GUARD] = "the guard that failed is not one of the entry's",
        [FAULT_POSITION] = "its guard checks are not numbered 0, 1, 2 and so on",
        [FAULT_RESULT] = "a guard check's result is not one of the vocabulary",
        [FAULT_NOT_NEW] = "the entry that it made was not born while it compiled",
    };

    return fault < FAULT_KINDS ? words[fault] : "?";
}

/* One cache while its lookups are gone through. */
struct walk {
    const struct replay *r;
    const struct replay_cache *cache;
    bool insertion;
    uint32_t *live; /* owned: entries in the order that they are tried, dead ones left out */
    uint32_t count;
    uint32_t *dying;     /* owned: the cache's entries by death */
    uint32_t born, died; /* how many of both are done */
    int64_t *low, *high; /* owned, by entry: it was moved to the front last between these */
    int64_t longest;     /* lookup of this cache so far */
    uint32_t *tried,
        *wild; /* owned, by entry: the last lookup that tried it, + 1; the last during which others moved it, + 1 */
};

static int by_death(const void *a, const void *b, void *entries)
{
    int64_t x = ((const struct replay_entry *)entries)[*(const uint32_t *)a].died_ns;
    int64_t y = ((const struct replay_entry *)entries)[*(const uint32_t *)b].died_ns;

    return (x > y) - (x < y);
}

static void to_front(struct walk *w, uint32_t entry)
{
    uint32_t at = 0;

    while (at < w->count && w->live[at] != entry)
        at++;
    if (at == w->count)
        return;
    memmove(w->live + 1, w->live, at * sizeof *w->live);
    w->live[0] = entry;
}

static void leave(struct walk *w, uint32_t entry)
{
    uint32_t at = 0;

    while (at < w->count && w->live[at] != entry)
        at++;
    if (at < w->count) {
        memmove(w->live + at, w->live + at + 1, (w->count - at - 1) * sizeof *w->live);
        w->count--;
    }
}

/* All births and deaths before NOW. An entry that several processes have may have died in another one: it stays. */
static void advance(struct walk *w, int64_t now)
{
    const struct replay_entry *entries = w->r->entries;

    for (;;) {
        const struct replay_entry *birth =
            w->born < w->cache->entry_count ? &entries[w->cache->entries[w->born]] : NULL;
        const struct replay_entry *death = w->died < w->cache->entry_count ? &entries[w->dying[w->died]] : NULL;
        bool born = birth && birth->born_ns < now, died = death && death->died_ns < now;
        if (!born && !died)
            return;
        if (born && (!died || birth->born_ns <= death->died_ns)) {
            if (w->insertion || birth->pinned) {
                w->live[w->count++] = w->cache->entries[w->born];
            } else {
                memmove(w->live + 1, w->live, w->count * sizeof *w->live);
                w->live[0] = w->cache->entries[w->born];
                w->count++;
            }
            w->low[w->cache->entries[w->born]] = w->high[w->cache->entries[w->born]] = birth->born_ns;
            w->born++;
        } else {
            if (!death->shared)
                leave(w, w->dying[w->died]);
            w->died++;
        }
    }
}

/* May a lookup from START to END have tried E or not, for all the trace tells? */
static bool optional(const struct replay_entry *e, int64_t start, int64_t end)
{
    return (e->born_ns >= start && e->born_ns <= end) || (e->died_ns >= start && e->died_ns <= end) ||
           (e->shared && e->died_ns <= end);
}

/* Why ENTRY, which lookup L tried or ran, is not among what it could see; FAULT_NONE: it can be. */
static enum replay_fault fault_of_entry(const struct walk *w, uint32_t entry, const struct replay_lookup *l,
                                        int64_t end)
{
    const struct replay *r = w->r;
    const struct replay_entry *e;

    if (entry == REPLAY_NONE || entry == REPLAY_CHECK_NONE)
        return FAULT_NO_ENTRY;
    e = &r->entries[entry];
    if (e->code != w->cache->code)
        return FAULT_OTHER_CODE;
    if (e->born_ns > end)
        return FAULT_UNBORN;
    if (e->died_ns < l->start_ns && !e->shared)
        return FAULT_DEAD;
    return replay_place(r, w->cache, entry) < w->cache->entry_count ? FAULT_NONE : FAULT_OTHER_CODE;
}

/* The first live entry from AT on, in the order for REGION: PASS 0 are the loaded ones, 1 the region's own, 2 the
 * common ones. UINT32_MAX at the end. */
static uint32_t next_live(const struct walk *w, int64_t region, int *pass, uint32_t *at)
{
    for (; *pass < 3; ++*pass, *at = 0)
        for (; *at < w->count; ++*at) {
            const struct replay_entry *e = &w->r->entries[w->live[*at]];
            bool seen = *pass == 0
                            ? e->pinned && (e->region < 0 || e->region == region)
                            : !e->pinned && e->region == (*pass == 1 ? region : -1) && (*pass == 2 || region >= 0);
            if (seen)
                return w->live[(*at)++];
        }
    return REPLAY_NONE;
}

/* What ended a lookup of L's checks, if one did: its place, else the number of checks. */
static uint32_t end_of_checks(const struct walk *w, const struct replay_lookup *l, const struct replay_check *checks,
                              int64_t end)
{
    for (uint32_t i = 0; i < l->check_count; i++) {
        if (checks[i].result == CHECK_ERROR)
            return i;
        /* Guards that passed while their own entry died are no hit. */
        if (checks[i].result == CHECK_PASS && (i + 1 == l->check_count || checks[i].entry == REPLAY_CHECK_NONE ||
                                               !optional(&w->r->entries[checks[i].entry], l->start_ns, end)))
            return i;
    }
    return l->check_count;
}

/* The lookup's own rows, order aside. */
static enum replay_fault fault_of_rows(struct walk *w, uint32_t index, int64_t end, int64_t *region,
                                       struct replay_finding *f)
{
    const struct replay_lookup *l = &w->r->lookups[index];
    const struct replay_check *checks = w->r->checks + l->checks;
    uint32_t counted = 0, stop;

    *region = -1;
    if (l->outcome == REPLAY_OUTCOME_UNKNOWN)
        return FAULT_OUTCOME;
    if (l->misplaced)
        return FAULT_POSITION;
    for (uint32_t i = 0; i < l->check_count; i++) {
        const struct replay_entry *e;
        enum replay_fault fault = fault_of_entry(w, checks[i].entry, l, end);
        f->entry = checks[i].entry == REPLAY_CHECK_NONE ? REPLAY_NONE : checks[i].entry;
        if (fault)
            return fault;
        if (checks[i].result == CHECK_UNKNOWN)
            return FAULT_RESULT;
        if (checks[i].bad_guard)
            return FAULT_GUARD;
        if (w->tried[checks[i].entry] == index + 1)
            return FAULT_TWICE;
        w->tried[checks[i].entry] = index + 1;
        counted += checks[i].result != CHECK_BACKEND_MISMATCH;
        e = &w->r->entries[checks[i].entry];
        if (e->region >= 0 && *region >= 0 && e->region != *region)
            return FAULT_REGION;
        if (e->region >= 0)
            *region = e->region;
    }
    f->entry = l->entry;
    if (!l->observed && counted != l->checked)
        return FAULT_COUNT;
    if (l->named && l->entry == REPLAY_NONE)
        return FAULT_NO_ENTRY;
    if (l->entry != REPLAY_NONE && l->outcome != OUTCOME_HIT && l->outcome != OUTCOME_COMPILED)
        return FAULT_NO_PASS;
    if (l->entry != REPLAY_NONE) {
        enum replay_fault fault = fault_of_entry(w, l->entry, l, end);
        if (fault)
            return fault;
        if (l->outcome == OUTCOME_COMPILED && w->r->entries[l->entry].born_ns < l->start_ns)
            return FAULT_NOT_NEW;
        if (l->outcome == OUTCOME_COMPILED && *region < 0)
            *region = w->r->entries[l->entry].region;
    }
    stop = end_of_checks(w, l, checks, end);
    f->entry = stop < l->check_count ? checks[stop].entry : l->entry;
    if (stop + 1 < l->check_count)
        return FAULT_AFTER_END;
    if (stop < l->check_count && checks[stop].result == CHECK_ERROR)
        return l->outcome == OUTCOME_GUARD_ERROR ? FAULT_NONE : FAULT_ERROR;
    if (l->outcome == OUTCOME_GUARD_ERROR && !l->observed)
        return FAULT_NO_ERROR;
    if (stop < l->check_count) { /* passed */
        if (l->outcome != OUTCOME_HIT)
            return optional(&w->r->entries[checks[stop].entry], l->start_ns, end) ? FAULT_NONE : FAULT_PASSED;
        return l->entry == checks[stop].entry || !l->named ? FAULT_NONE : FAULT_OTHER_PASSED;
    }
    if (l->outcome == OUTCOME_HIT && l->named) {
        f->entry = l->entry;
        return FAULT_NO_PASS;
    }
    return FAULT_NONE;
}

/* Were the entries that it tried those that it should have, in order? */
static enum replay_fault fault_of_order(struct walk *w, uint32_t index, int64_t end, int64_t region,
                                        struct replay_finding *f)
{
    const struct replay_lookup *l = &w->r->lookups[index];
    const struct replay_check *checks = w->r->checks + l->checks;
    uint32_t at = 0, k = 0, entry, stop = end_of_checks(w, l, checks, end);
    int pass = 0;

    while (k < l->check_count && (entry = next_live(w, region, &pass, &at)) != REPLAY_NONE) {
        while (k < l->check_count && checks[k].entry != entry &&
               optional(&w->r->entries[checks[k].entry], l->start_ns, end))
            k++; /* it came or went meanwhile: its place is anywhere */
        if (k == l->check_count)
            break;
        if (checks[k].entry == entry) {
            k++;
        } else if (!optional(&w->r->entries[entry], l->start_ns, end)) {
            f->entry = checks[k].entry;
            f->wanted = entry;
            return FAULT_ORDER;
        }
    }
    while (k < l->check_count && optional(&w->r->entries[checks[k].entry], l->start_ns, end))
        k++;
    if (k < l->check_count) { /* no place for it: of another region */
        f->entry = checks[k].entry;
        return FAULT_ORDER;
    }
    if (stop < l->check_count || (l->outcome == OUTCOME_HIT && !l->named) || l->check_count == CHECKS_MAX)
        return FAULT_NONE;
    while ((entry = next_live(w, region, &pass, &at)) != REPLAY_NONE) {
        bool tried = w->tried[entry] == index + 1;
        if (!tried && !optional(&w->r->entries[entry], l->start_ns, end)) {
            f->entry = f->wanted = entry;
            return FAULT_UNTRIED;
        }
    }
    return FAULT_NONE;
}

/* When lookup INDEX had ended for certain. What the recorder did in between is not in its duration, and the next lookup
 * of that thread is after it. */
static int64_t window_end(const struct replay *r, uint32_t index)
{
    const struct replay_lookup *l = &r->lookups[index];
    int64_t end = l->end_ns + 1, latest = l->end_ns + SLACK_NS;

    if (l->outcome == OUTCOME_COMPILED) { /* older recorders took that time out of these as well */
        uint32_t compile =
            l->entry == REPLAY_NONE ? REPLAY_NONE : replay_map_get(&r->compile_ids, r->entries[l->entry].compile_id);
        return compile != REPLAY_NONE && r->compiles[compile].end_ns > end ? r->compiles[compile].end_ns : end;
    }
    if (l->check_count <= (l->outcome == OUTCOME_HIT))
        return end;
    for (size_t i = index + 1; i < r->lookup_count && i - index < THREADS_MAX; i++)
        if (r->lookups[i].thread == l->thread && r->lookups[i].start_ns >= l->end_ns)
            return r->lookups[i].start_ns - 1 > latest ? latest
                   : r->lookups[i].start_ns > end      ? r->lookups[i].start_ns - 1
                                                       : end;
    return latest;
}

/* Entries that lookups moved while lookup number RANK of the cache went on are marked in WILD: they may have been in
 * their old place or in front. */
static void mark_wild(const struct walk *w, uint32_t rank, int64_t end, uint32_t *wild)
{
    const struct replay *r = w->r;
    const struct replay_lookup *l = &r->lookups[w->cache->lookups[rank]];

    for (uint32_t i = rank; i-- > 0 && rank - i < NEAR_LOOKUPS;) {
        const struct replay_lookup *o = &r->lookups[w->cache->lookups[i]];
        if (o->start_ns < l->start_ns - w->longest)
            break;
        if (o->entry != REPLAY_NONE && window_end(r, w->cache->lookups[i]) >= l->start_ns)
            wild[o->entry] = w->cache->lookups[rank] + 1;
    }
    for (uint32_t i = rank + 1; i < w->cache->count && i - rank < NEAR_LOOKUPS; i++) {
        const struct replay_lookup *o = &r->lookups[w->cache->lookups[i]];
        if (o->start_ns > end)
            break;
        if (o->entry != REPLAY_NONE)
            wild[o->entry] = w->cache->lookups[rank] + 1;
    }
}

/* Can the order in which lookup number RANK tried its entries be, with what is known of when they moved? */
static bool order_possible(struct walk *w, uint32_t rank, int64_t end)
{
    const struct replay *r = w->r;
    const struct replay_lookup *l = &r->lookups[w->cache->lookups[rank]];
    const struct replay_check *checks = r->checks + l->checks;
    uint32_t *wild = w->wild, sign = w->cache->lookups[rank] + 1;
    bool possible = true;

    mark_wild(w, rank, end, wild);
    for (uint32_t i = 0; i < l->check_count && possible; i++) {
        uint32_t x = checks[i].entry;
        if (wild[x] == sign || optional(&r->entries[x], l->start_ns, end))
            continue;
        for (uint32_t k = 0; k < w->count && possible; k++) { /* those that were tried later, or not at all */
            uint32_t y = w->live[k], at = 0;
            while (at < i && checks[at].entry != y)
                at++;
            if (at < i || y == x || wild[y] == sign || r->entries[y].pinned != r->entries[x].pinned ||
                r->entries[y].region != r->entries[x].region || optional(&r->entries[y], l->start_ns, end))
                continue;
            possible = w->insertion ? w->low[y] > w->low[x] : w->low[y] <= w->high[x];
        }
        /* A region's own come before the common ones. */
        for (uint32_t k = i + 1; k < l->check_count && possible; k++)
            possible = r->entries[x].pinned || r->entries[x].region >= 0 || r->entries[checks[k].entry].region < 0;
    }
    return possible;
}

/* Believe the trace: what lookup INDEX tried goes before the others, in that order. */
static void resync(struct walk *w, uint32_t index)
{
    const struct replay_lookup *l = &w->r->lookups[index];

    for (uint32_t i = l->check_count; i-- > 0;) {
        uint32_t entry = w->r->checks[l->checks + i].entry;
        if (entry != REPLAY_CHECK_NONE && w->r->entries[entry].code == w->cache->code)
            to_front(w, entry);
    }
}

static bool finding_add(struct replay_verdict *v, const struct replay_finding *finding)
{
    if (v->count == v->room) {
        size_t room = v->room ? v->room * 2 : 16;
        struct replay_finding *more = realloc(v->findings, room * sizeof *more);
        if (!more)
            return false;
        v->findings = more;
        v->room = room;
    }
    v->findings[v->count++] = *finding;
    return true;
}

/* The order in which a forked process found its cache. */
static void begin_forked(struct walk *w)
{
    struct replay_state state = {0};
    int64_t fork_ns;

    if (w->cache->parent == REPLAY_NONE)
        return;
    fork_ns = w->r->processes[w->cache->process].start_ns;
    if (!replay_state_when(w->r, w->cache->parent, fork_ns, &state))
        return;
    advance(w, fork_ns);
    for (size_t i = state.count; i-- > 0;)
        if (!w->insertion && !state.slots[i].dead) {
            to_front(w, state.slots[i].entry);
            w->high[state.slots[i].entry] = fork_ns;
        }
    replay_state_free(&state);
}

static void explain_miss(const struct walk *w, const struct replay_lookup *l, struct replay_verdict *v)
{
    if (l->outcome != OUTCOME_LIMIT && l->outcome != OUTCOME_RUN_ONLY)
        return;
    v->misses++;
    if (l->end_ns >= w->r->codes[w->cache->code].marked_ns)
        v->by_mark++;
    else if (l->outcome == OUTCOME_LIMIT && w->count)
        v->by_limit++;
    else
        v->by_false++;
}

/* All lookups of CACHE. W's TRIED is shared by all caches. */
static bool verify_cache(struct walk *w, struct replay_verdict *v)
{
    const struct replay *r = w->r;
    const struct replay_cache *cache = w->cache;
    int64_t lost_ns = cache->process == REPLAY_NONE ? REPLAY_NEVER : r->processes[cache->process].lost_ns;
    bool ok = true;

    w->live = malloc((cache->entry_count + 1) * sizeof *w->live);
    w->dying = malloc((cache->entry_count + 1) * sizeof *w->dying);
    w->count = w->born = w->died = 0;
    if (!w->live || !w->dying) {
        ok = false;
        goto out;
    }
    memcpy(w->dying, cache->entries, cache->entry_count * sizeof *w->dying);
    qsort_r(w->dying, cache->entry_count, sizeof *w->dying, by_death, r->entries);
    begin_forked(w);
    w->longest = 0;
    for (uint32_t i = 0; i < cache->count && ok; i++) {
        uint32_t index = cache->lookups[i];
        const struct replay_lookup *l = &r->lookups[index];
        struct replay_finding found = {index, l->entry, REPLAY_NONE, FAULT_NONE};
        int64_t end = window_end(r, index), region;

        advance(w, l->start_ns);
        explain_miss(w, l, v);
        found.fault = fault_of_rows(w, index, end, &region, &found);
        if (!found.fault && !l->observed)
            found.fault = fault_of_order(w, index, end, region, &found);
        if (found.fault) {
            if (l->start_ns >= lost_ns || (found.fault == FAULT_ORDER && order_possible(w, i, end)))
                v->unsure++;
            else
                ok = finding_add(v, &found);
            if (found.fault == FAULT_ORDER)
                resync(w, index);
        } else if (l->observed) {
            v->observed++;
        } else if (l->outcome == OUTCOME_HIT && !l->named) {
            v->before++;
        } else {
            v->whole++;
        }
        if (l->outcome == OUTCOME_HIT && l->entry != REPLAY_NONE && !w->insertion && !r->entries[l->entry].pinned) {
            to_front(w, l->entry);
            w->low[l->entry] = l->start_ns;
            if (end > w->high[l->entry])
                w->high[l->entry] = end;
        }
        if (end - l->start_ns > w->longest)
            w->longest = end - l->start_ns;
    }
out:
    free(w->live);
    free(w->dying);
    w->live = w->dying = NULL;
    return ok;
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

/* The caches of PROCESS, by the rules of the order that INSERTION says. */
static bool verify_process(struct walk *w, struct replay_verdict *v, uint32_t process, bool insertion)
{
    for (size_t i = 0; i < w->r->cache_count; i++) {
        if (w->r->caches[i].process != process || !w->r->caches[i].count)
            continue;
        w->cache = &w->r->caches[i];
        w->insertion = insertion;
        if (!verify_cache(w, v))
            return false;
    }
    return true;
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
}

bool replay_verify(struct replay *r, struct replay_verdict *v)
{
    struct walk w = {.r = r};
    bool ok = true;

    *v = (struct replay_verdict){.lookups = (int64_t)r->lookup_count, .orphans = r->orphans};
    w.tried = calloc(r->entry_count + 1, sizeof *w.tried);
    w.wild = calloc(r->entry_count + 1, sizeof *w.wild);
    w.low = calloc(r->entry_count + 1, sizeof *w.low);
    w.high = calloc(r->entry_count + 1, sizeof *w.high);
    ok = w.tried && w.wild && w.low && w.high;
    for (size_t p = 0; p <= r->process_count && ok; p++) { /* the last one is the unknown one */
        uint32_t process = p < r->process_count ? (uint32_t)p : REPLAY_NONE;
        struct replay_verdict one = {0}, other = {0};
        ok = verify_process(&w, &one, process, false);
        /* torch can be told to leave entries where they were put, and the trace does not say so. */
        if (ok && one.count && process != REPLAY_NONE && r->processes[process].torch) {
            memset(w.tried, 0, (r->entry_count + 1) * sizeof *w.tried);
            r->processes[process].insertion = true;
            ok = verify_process(&w, &other, process, true);
            if (ok && !other.count) {
                replay_verdict_free(&one);
                one = other;
                other = (struct replay_verdict){0};
                v->insertion++;
            } else {
                r->processes[process].insertion = false;
            }
        }
        verdict_add(v, &one);
        for (size_t i = 0; i < one.count && ok; i++)
            ok = finding_add(v, &one.findings[i]);
        free(one.findings);
        free(other.findings);
        memset(w.tried, 0, (r->entry_count + 1) * sizeof *w.tried);
    }
    if (ok && v->count)
        qsort_r(v->findings, v->count, sizeof *v->findings, by_lookup, r->lookups);
    free(w.tried);
    free(w.wild);
    free(w.low);
    free(w.high);
    if (!ok)
        replay_verdict_free(v);
    return ok;
}

void replay_verdict_free(struct replay_verdict *v)
{
    free(v->findings);
    *v = (struct replay_verdict){0};
}
