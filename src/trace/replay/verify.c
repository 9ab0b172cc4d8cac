/* trace/replay/verify.c -- checks recorded lookups against the cache's rules.
 *
 * See replay.h.
 *
 * A lookup tries the living entries that it sees, in order, until one fits
 * (trace/replay/cache_order.h, docs/shim.md). For each cache, the lookups are visited in time
 * order, and `live` has the entries that live when a lookup begins, in their order after all
 * earlier births, deaths and hits. The lookup should have tried the entries of `live`, in this
 * order, up to the entry that ended the lookup. The rows of guard_check tell which entries it
 * tried. The row of the lookup tells its outcome and entry. All three must agree.
 *
 * After a lookup that tried entries in a wrong order, `live` is put into the order of the trace, so
 * that one wrong row gives one finding.
 *
 * A lookup takes time. An entry that was born or died during a lookup may have been tried or not.
 * Guards may let other threads run, so lookups of one cache may overlap. The time at which an entry
 * moved to the front is then known only as a range, from `low` to `high`. A wrong order is a
 * finding only if one entry certainly moved after the other; otherwise the lookup counts as unsure.
 * A wrong order after a fork may count as unsure for the same reason. After a loss of events, every
 * lookup that breaks a rule counts as unsure. */
#include "replay.h"

enum {
    CHECKS_MAX = 512, /* the recorder keeps at most this many checks of a lookup */
    /* in search of the thread's next lookup, at most this many lookups of other
     * threads are skipped */
    THREADS_MAX = 4096,
    /* lookups that overlap a lookup are searched among this many of its neighbours */
    NEAR_LOOKUPS = 4096,
    /* how long the recorder itself may take at most during a lookup; the recorded duration does not
     * contain this time */
    SLACK_NS = 50 * 1000000,
};

/* Faults of a lookup that several functions report. */
static const char no_entry[] = "it names an entry that the trace does not have",
                  other_code[] = "it tried or ran an entry of other code, or of another process",
                  no_pass[] = "it ran an entry whose guards did not pass",
                  other_order[] = "it tried the entries in another order than they were in";

/* The lookups of one cache are verified one after the other. This struct is carried from each
 * lookup to the next. */
struct walk {
    const struct replay *r;
    const struct replay_cache *cache;
    struct replay_live live;
    int64_t longest; /* how long the longest lookup of this cache took so far */
    struct moved {   /* owned: for each cache entry, when it moved to the front */
        /* earliest and latest time at which the entry may have been hit last; both are the entry's
         * birth if it was never hit */
        int64_t low, high;
        uint32_t tried; /* index + 1 of the last lookup that tried the entry */
        /* index + 1 of the last verified lookup during which other lookups may have
         * moved the entry */
        uint32_t wild;
    } * moved;
    /* The members below are about the lookup that is being verified. */
    uint32_t index;
    const struct replay_lookup *l;
    const struct replay_check *checks; /* borrowed: the guard checks of this lookup */
    /* number of the check that ended this lookup; check_count if no check did */
    uint32_t stop;
    int64_t end; /* a time at which this lookup had certainly ended */
    int64_t region;
};

static const struct replay_entry *entry_with_index(const struct walk *w, uint32_t entry)
{
    return &w->r->entries.at[entry];
}

/* Was ENTRY born, or did it die, about when the lookup ran? Then the lookup may have tried the
 * entry, but need not have. */
static bool may_lookup_skip_entry(const struct walk *w, uint32_t entry)
{
    const struct replay_entry *e = entry_with_index(w, entry);
    int64_t start = w->l->start_ns;
    bool may_have_died = e->died_ns >= start || e->shared;

    if (e->born_ns >= start && e->born_ns <= w->end)
        return true;
    return may_have_died && e->died_ns <= w->end;
}

/* The trace says that the lookup tried or ran ENTRY. Return why this is impossible, or NULL if
 * it is possible. */
static const char *fault_of_entry(const struct walk *w, uint32_t entry)
{
    const struct replay_entry *e;

    if (entry == REPLAY_NONE || entry == REPLAY_CHECK_NONE)
        return no_entry;
    e = entry_with_index(w, entry);
    if (e->code != w->cache->code)
        return other_code;
    if (e->born_ns > w->end)
        return "it tried or ran an entry that was not born yet";
    if (e->died_ns < w->l->start_ns && !e->shared)
        return "it tried or ran an entry that had died";
    if (replay_position_of_entry(w->r, w->cache, entry) == w->cache->entry_count)
        return other_code;
    return NULL;
}

/* Did the check with number I end the lookup? A check that passed ends it, unless the entry died
 * meanwhile and another check follows. */
static bool does_check_end_lookup(const struct walk *w, uint32_t i)
{
    const struct replay_check *k = &w->checks[i];

    if (k->result == CHECK_ERROR)
        return true;
    if (k->result != CHECK_PASS)
        return false;
    if (i + 1 == w->l->check_count || k->entry == REPLAY_CHECK_NONE)
        return true;
    return !may_lookup_skip_entry(w, k->entry);
}

/* Return the number of the check that ended the lookup, or the number of checks if none did. */
static uint32_t find_last_check(const struct walk *w)
{
    uint32_t i = 0;

    while (i < w->l->check_count && !does_check_end_lookup(w, i))
        i++;
    return i;
}

/* Return what is wrong with the check with number I, or NULL. If something is, the finding
 * gets the entry. */
static const char *fault_of_check(struct walk *w, uint32_t i, struct replay_finding *f)
{
    const struct replay_check *k = &w->checks[i];
    const char *fault = fault_of_entry(w, k->entry);
    struct moved *moved;
    int64_t region;

    f->entry = k->entry == REPLAY_CHECK_NONE ? REPLAY_NONE : k->entry;
    if (fault)
        return fault;
    if (k->result == CHECK_RESULTS)
        return "a guard check's result is not one of the vocabulary";
    if (k->bad_guard)
        return "the guard that failed is not one of the entry's";
    moved = &w->moved[k->entry];
    if (moved->tried == w->index + 1)
        return "it tried an entry twice";
    moved->tried = w->index + 1;
    region = entry_with_index(w, k->entry)->region;
    if (region < 0)
        return NULL;
    if (w->region >= 0 && region != w->region)
        return "it tried entries of two regions";
    w->region = region;
    return NULL;
}

/* Return what is wrong with the checks of the lookup, or NULL. Their order is not looked at. */
static const char *fault_of_checks(struct walk *w, struct replay_finding *f)
{
    const struct replay_lookup *l = w->l;
    uint32_t counted = 0;

    for (uint32_t i = 0; i < l->check_count; i++)
        if (w->checks[i].misplaced)
            return "its guard checks are not numbered 0, 1, 2 and so on";
    for (uint32_t i = 0; i < l->check_count; i++) {
        const char *fault = fault_of_check(w, i, f);
        if (fault)
            return fault;
        if (w->checks[i].result != CHECK_BACKEND_MISMATCH)
            counted++;
    }
    f->entry = REPLAY_NONE;
    if (!l->observed && counted != l->checked)
        return "it has other guard checks than entries_checked says";
    return NULL;
}

/* Return what is wrong with the entry that the lookup names as hit or compiled, or NULL. */
static const char *fault_of_named_entry(struct walk *w)
{
    const struct replay_lookup *l = w->l;
    const struct replay_entry *e;
    const char *fault;

    if (l->entry == REPLAY_NONE)
        return l->named ? no_entry : NULL;
    e = entry_with_index(w, l->entry);
    if (l->outcome != OUTCOME_HIT && l->outcome != OUTCOME_COMPILED)
        return no_pass;
    fault = fault_of_entry(w, l->entry);
    if (fault || l->outcome == OUTCOME_HIT)
        return fault;
    if (e->born_ns < l->start_ns)
        return "the entry that it made was not born while it compiled";
    if (w->region < 0)
        w->region = e->region;
    return NULL;
}

/* END is the check that ended the lookup. Return what is wrong with what came after it: more
 * checks, or the outcome. Returns NULL if nothing is wrong. */
static const char *fault_after_last_check(const struct walk *w, const struct replay_check *end)
{
    const struct replay_lookup *l = w->l;

    if (w->stop + 1 < l->check_count)
        return "it tried entries after the one that ended it";
    if (end->result == CHECK_ERROR)
        return l->outcome == OUTCOME_GUARD_ERROR ? NULL : "a guard raised, and it went on";
    if (l->outcome == OUTCOME_GUARD_ERROR && !l->observed)
        return "it ended in a guard's error, and no guard raised";
    /* the guards of END's entry passed, but the lookup is not a hit */
    if (l->outcome != OUTCOME_HIT) {
        bool maybe = may_lookup_skip_entry(w, end->entry);
        return maybe ? NULL : "an entry's guards passed, and it did not run that entry";
    }
    if (l->named && l->entry != end->entry)
        return "it ran another entry than the one whose guards passed";
    return NULL;
}

/* Return what is wrong with the rows of the lookup, or NULL. The order of its checks is
 * not looked at. */
static const char *fault_of_rows(struct walk *w, struct replay_finding *f)
{
    const struct replay_lookup *l = w->l;
    const char *fault;

    if (l->outcome == REPLAY_OUTCOME_UNKNOWN)
        return "its outcome is not one of the vocabulary";
    fault = fault_of_checks(w, f);
    if (fault)
        return fault;
    f->entry = l->entry;
    fault = fault_of_named_entry(w);
    if (fault)
        return fault;
    w->stop = find_last_check(w);
    if (w->stop < l->check_count) {
        const struct replay_check *end = &w->checks[w->stop];
        f->entry = end->entry;
        return fault_after_last_check(w, end);
    }
    if (l->outcome == OUTCOME_GUARD_ERROR && !l->observed)
        return "it ended in a guard's error, and no guard raised";
    return l->outcome == OUTCOME_HIT && l->named ? no_pass : NULL;
}

/* Return the number of the first check, from number K on, of an entry that the lookup must have
 * tried (may_lookup_skip_entry). */
static uint32_t find_certain_check(const struct walk *w, uint32_t k)
{
    for (; k < w->l->check_count; k++)
        if (!may_lookup_skip_entry(w, w->checks[k].entry))
            break;
    return k;
}

/* Return the number of the first check, from number K on, of ENTRY or of another entry that the
 * lookup must have tried. Checks of other entries are skipped, because they may stand anywhere
 * (may_lookup_skip_entry). */
static uint32_t find_check_of_entry(const struct walk *w, uint32_t k, uint32_t entry)
{
    for (; k < w->l->check_count; k++) {
        uint32_t tried = w->checks[k].entry;
        if (tried == entry || !may_lookup_skip_entry(w, tried))
            break;
    }
    return k;
}

/* Did the lookup try the entries in the order of WALK? If so, *AT gets the number of the first
 * check whose entry is not in WALK. If not, the finding gets the two entries. */
static bool is_in_order(const struct walk *w, struct cache_walk *walk, uint32_t *at,
                        struct replay_finding *f)
{
    uint32_t count = w->l->check_count;
    const struct cached *wanted;
    uint32_t k = 0;

    while (k < count && (wanted = cache_walk_next(walk))) {
        uint32_t tried;
        k = find_check_of_entry(w, k, wanted->id);
        if (k == count)
            break;
        tried = w->checks[k].entry;
        if (tried == wanted->id) {
            k++;
        } else if (!may_lookup_skip_entry(w, wanted->id)) {
            f->entry = tried;
            f->wanted = wanted->id;
            return false;
        }
    }
    *at = find_certain_check(w, k);
    return true;
}

/* Return a fault if the lookup should have tried more entries: those that are left in WALK. A
 * lookup that ended by a hit or an error need not have. Returns NULL if there is no fault. */
static const char *fault_of_untried_entries(const struct walk *w, struct cache_walk *walk,
                                            struct replay_finding *f)
{
    const struct replay_lookup *l = w->l;
    bool hit_before = l->outcome == OUTCOME_HIT && !l->named;
    bool cut = l->check_count == CHECKS_MAX;
    const struct cached *left;

    if (w->stop < l->check_count)
        return NULL;
    if (hit_before || cut)
        return NULL;
    while ((left = cache_walk_next(walk))) {
        bool tried = w->moved[left->id].tried == w->index + 1;
        if (tried || may_lookup_skip_entry(w, left->id))
            continue;
        f->entry = left->id;
        f->wanted = left->id;
        return "it gave up with an entry left to try";
    }
    return NULL;
}

/* Return what is wrong with the order in which the lookup tried the entries, or NULL. */
static const char *fault_of_order(struct walk *w, struct replay_finding *f)
{
    struct cache_walk walk = cache_walk(&w->live.order, w->region, -1);
    uint32_t k;

    if (!is_in_order(w, &walk, &k, f))
        return other_order;
    /* this check tried an entry of another region, because WALK does not have the entry */
    if (k < w->l->check_count) {
        f->entry = w->checks[k].entry;
        return other_order;
    }
    return fault_of_untried_entries(w, &walk, f);
}

/* Return when the compile ended that made the entry of the lookup, or 0 if that is not known. */
static int64_t find_compile_end(const struct replay *r, const struct replay_lookup *l)
{
    int64_t compile_id;
    uint32_t compile;

    if (l->entry == REPLAY_NONE)
        return 0;
    compile_id = r->entries.at[l->entry].compile_id;
    compile = replay_index_of_id(&r->compile_ids, compile_id);
    return compile == REPLAY_NONE ? 0 : r->compiles.at[compile].end_ns;
}

/* Return the next lookup on the thread of lookup INDEX, or NULL if none of the THREADS_MAX lookups
 * after it is one. */
static const struct replay_lookup *find_next_of_thread(const struct replay *r, uint32_t index)
{
    const struct replay_lookup *l = &r->lookups.at[index];
    size_t end = r->lookups.count;

    if (end - index > THREADS_MAX)
        end = index + THREADS_MAX;
    for (size_t i = index + 1; i < end; i++) {
        const struct replay_lookup *after = &r->lookups.at[i];
        if (after->thread == l->thread && after->start_ns >= l->end_ns)
            return after;
    }
    return NULL;
}

/* Return a time at which lookup INDEX had certainly ended. The recorded duration does not contain
 * the time that the recorder itself took, so the lookup may have ended later. But it ended before
 * the next lookup of the same thread. */
static int64_t find_lookup_end(const struct replay *r, uint32_t index)
{
    const struct replay_lookup *l = &r->lookups.at[index];
    const struct replay_lookup *after;
    /* how many checks cost the recorder no time of its own: only the last check of a hit */
    uint16_t unhindered = l->outcome == OUTCOME_HIT;
    int64_t end = l->end_ns + 1;
    int64_t latest = l->end_ns + SLACK_NS;
    int64_t next;

    /* If the lookup compiled, its recorded duration may be too short, because older recorders
     * subtracted their own time during the compile. Take the end of the compile if it is later. */
    if (l->outcome == OUTCOME_COMPILED) {
        int64_t compiled = find_compile_end(r, l);
        return compiled > end ? compiled : end;
    }
    if (l->check_count <= unhindered)
        return end;
    after = find_next_of_thread(r, index);
    if (!after)
        return latest;
    next = after->start_ns - 1;
    if (next > latest)
        return latest;
    return next >= end ? next : end;
}

/* Another lookup of the cache overlaps the lookup that is being verified. Mark the entry that it
 * hit or made as `wild`, because it is not known when the entry moved to the front. */
static void mark_entry_position_unknown(struct walk *w, const struct replay_lookup *l)
{
    if (l->entry != REPLAY_NONE)
        w->moved[l->entry].wild = w->index + 1;
}

/* Mark the entries that other lookups of the cache may have moved while the lookup ran that is
 * being verified. This lookup is number RANK of the cache. */
static void mark_entries_moved_by_others(struct walk *w, uint32_t rank)
{
    const uint32_t *lookups = w->cache->lookups;
    int64_t start_ns = w->l->start_ns;
    uint32_t first = rank >= NEAR_LOOKUPS ? rank - NEAR_LOOKUPS + 1 : 0;
    uint32_t end = w->cache->count;

    if (end - rank > NEAR_LOOKUPS)
        end = rank + NEAR_LOOKUPS;
    for (uint32_t i = rank; i > first; i--) {
        uint32_t index = lookups[i - 1];
        const struct replay_lookup *before = &w->r->lookups.at[index];
        if (before->start_ns < start_ns - w->longest)
            break;
        if (find_lookup_end(w->r, index) >= start_ns)
            mark_entry_position_unknown(w, before);
    }
    for (uint32_t i = rank + 1; i < end; i++) {
        const struct replay_lookup *after = &w->r->lookups.at[lookups[i]];
        if (after->start_ns > w->end)
            break;
        mark_entry_position_unknown(w, after);
    }
}

/* May ENTRY be at any position in the cache's list, or even be missing from it? */
static bool may_entry_be_anywhere(const struct walk *w, uint32_t entry)
{
    bool moved = w->moved[entry].wild == w->index + 1;

    return moved || may_lookup_skip_entry(w, entry);
}

/* Did the lookup try ENTRY in one of its first COUNT checks? */
static bool was_entry_tried(const struct walk *w, uint32_t entry, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (w->checks[i].entry == entry)
            return true;
    return false;
}

/* Does it follow from the times at which two entries moved to the front which of them stands first?
 * It does for two different entries of one region, if both are precompiled or both are not. */
static bool is_order_of_entries_known(const struct walk *w, uint32_t x, uint32_t y)
{
    const struct replay_entry *a = entry_with_index(w, x);
    const struct replay_entry *b = entry_with_index(w, y);

    if (x == y || a->pinned != b->pinned)
        return false;
    return a->region == b->region;
}

/* Judged by the times at which the entries X and Y moved to the front: may X have
 * stood before Y? */
static bool may_entry_precede(const struct walk *w, uint32_t x, uint32_t y)
{
    const struct moved *of_x = &w->moved[x];
    const struct moved *of_y = &w->moved[y];

    if (w->live.order.policy == ORDER_FIFO)
        return of_y->low > of_x->low;
    return of_y->low <= of_x->high;
}

/* Did a check after number I try an entry that belongs to a region, and is not common? */
static bool is_region_tried_later(const struct walk *w, uint32_t i)
{
    for (uint32_t k = i + 1; k < w->l->check_count; k++)
        if (entry_with_index(w, w->checks[k].entry)->region >= 0)
            return true;
    return false;
}

/* The check with number I tried an entry. May this entry have stood before all entries that the
 * lookup tried later, or not at all? */
static bool is_check_possible(const struct walk *w, uint32_t i)
{
    uint32_t x = w->checks[i].entry;
    const struct replay_entry *e = entry_with_index(w, x);
    bool first = e->pinned || e->region >= 0;

    list_each(cached, &w->live.order) {
        uint32_t y = cached->id;
        if (!is_order_of_entries_known(w, x, y) || was_entry_tried(w, y, i))
            continue;
        if (may_entry_be_anywhere(w, y))
            continue;
        if (!may_entry_precede(w, x, y))
            return false;
    }
    /* a common entry stands behind the entries that belong to a region */
    return first || !is_region_tried_later(w, i);
}

/* May the lookup with number RANK have tried the entries in the recorded order? When an entry moved
 * to the front is known only as a range of times. */
static bool is_order_possible(struct walk *w, uint32_t rank)
{
    mark_entries_moved_by_others(w, rank);
    for (uint32_t i = 0; i < w->l->check_count; i++) {
        if (may_entry_be_anywhere(w, w->checks[i].entry))
            continue;
        if (!is_check_possible(w, i))
            return false;
    }
    return true;
}

/* Put the entries that the lookup tried at the front of the cache, in the recorded order, so that
 * one wrong row does not make later lookups look wrong. */
static void restore_recorded_order(struct walk *w)
{
    for (uint32_t i = w->l->check_count; i > 0; i--) {
        uint32_t entry = w->checks[i - 1].entry;
        if (entry == REPLAY_CHECK_NONE)
            continue;
        if (entry_with_index(w, entry)->code == w->cache->code)
            replay_live_move_hit(&w->live, entry);
    }
}

/* If the cache belongs to a forked process, put its entries into the order that the parent's
 * entries had at the fork. */
static void inherit_parent_order(struct walk *w)
{
    struct replay_state state = {0};
    int64_t fork_ns;

    bool moves = w->live.order.policy == ORDER_MRU;

    if (w->cache->parent == REPLAY_NONE)
        return;
    fork_ns = w->r->processes.at[w->cache->process].start_ns;
    replay_get_state_at_time(w->r, w->cache->parent, fork_ns, &state);
    replay_live_advance_to(&w->live, fork_ns);
    for (size_t i = state.count; moves && i > 0; i--) {
        uint32_t entry = state.at[i - 1].entry;
        if (state.at[i - 1].dead)
            continue;
        replay_live_move_hit(&w->live, entry);
        w->moved[entry].high = fork_ns;
    }
    list_free(&state);
}

static void count_miss_by_reason(const struct walk *w, struct replay_verdict *v)
{
    const struct replay_code *code = &w->r->codes.at[w->cache->code];
    bool limited = w->l->outcome == OUTCOME_LIMIT;

    if (!limited && w->l->outcome != OUTCOME_RUN_ONLY)
        return;
    v->misses++;
    if (w->l->end_ns >= code->marked_ns)
        v->by_mark++;
    else if (limited && w->live.order.count)
        v->by_limit++;
    else
        v->by_false++;
}

/* Count a lookup without a fault. It counts as `observed` if torch used its own
 * evaluator, as `before` if it hit an entry that is not in the trace, otherwise as
 * `whole`: verified by all rules. */
static void count_lookup_without_fault(const struct replay_lookup *l, struct replay_verdict *v)
{
    if (l->observed)
        v->observed++;
    else if (l->outcome == OUTCOME_HIT && !l->named)
        v->before++;
    else
        v->whole++;
}

/* Move the entry that the lookup hit to the front of the cache's list. */
static void move_hit_entry_to_front(struct walk *w)
{
    const struct replay_lookup *l = w->l;
    struct moved *moved = &w->moved[l->entry];

    if (w->end > moved->high)
        moved->high = w->end;
    /* an entry that was born during the lookup was made by another thread, so it is
     * in front already */
    if (entry_with_index(w, l->entry)->born_ns < l->start_ns) {
        replay_live_move_hit(&w->live, l->entry);
        moved->low = l->start_ns;
    }
}

/* Does the lookup move the entry that it hit to the front? */
static bool does_hit_move_entry(const struct walk *w)
{
    const struct replay_lookup *l = w->l;

    if (l->outcome != OUTCOME_HIT || l->entry == REPLAY_NONE)
        return false;
    if (w->live.order.policy != ORDER_MRU)
        return false;
    return !entry_with_index(w, l->entry)->pinned;
}

/* Can lost events, or lookups that overlap, explain the fault WHY of the lookup
 * with number RANK? */
static bool is_fault_explained(struct walk *w, uint32_t rank, int64_t lost_ns, const char *why)
{
    if (w->l->start_ns >= lost_ns)
        return true;
    return why == other_order && is_order_possible(w, rank);
}

/* Verify the lookup with number RANK of the cache. */
static void verify_lookup(struct walk *w, uint32_t rank, int64_t lost_ns, struct replay_verdict *v)
{
    const struct replay *r = w->r;
    uint32_t index = w->cache->lookups[rank];
    const struct replay_lookup *l = &r->lookups.at[index];
    struct replay_finding found = {
        .lookup = l,
        .entry = REPLAY_NONE,
        .wanted = REPLAY_NONE,
    };
    int64_t took;

    w->index = index;
    w->l = l;
    w->checks = r->checks.at + l->checks;
    w->stop = l->check_count;
    w->end = find_lookup_end(r, w->index);
    w->region = -1;
    replay_live_advance_to(&w->live, l->start_ns);
    count_miss_by_reason(w, v);
    found.why = fault_of_rows(w, &found);
    if (!found.why && !l->observed)
        found.why = fault_of_order(w, &found);
    if (!found.why)
        count_lookup_without_fault(l, v);
    else if (is_fault_explained(w, rank, lost_ns, found.why))
        v->unsure++;
    else
        *list_add(&v->findings) = found;
    if (found.why == other_order)
        restore_recorded_order(w);
    if (does_hit_move_entry(w))
        move_hit_entry_to_front(w);
    took = w->end - l->start_ns;
    if (took > w->longest)
        w->longest = took;
}

/* Prepare the verification of CACHE, before its first lookup. */
static void begin_verifying_cache(struct walk *w, const struct replay_cache *cache,
                                  enum order_policy policy)
{
    w->cache = cache;
    w->live = (struct replay_live){
        .r = w->r,
        .cache = cache,
        .order.policy = policy,
    };
    w->longest = 0;
    for (uint32_t k = 0; k < cache->entry_count; k++) {
        uint32_t entry = cache->entries[k];
        int64_t born_ns = entry_with_index(w, entry)->born_ns;
        w->moved[entry] = (struct moved){.low = born_ns, .high = born_ns};
    }
    inherit_parent_order(w);
}

/* Verify the lookups of all caches of PROCESS. POLICY is the order that its caches have. */
static void verify_process(struct walk *w, uint32_t process, enum order_policy policy,
                           struct replay_verdict *v)
{
    const struct replay *r = w->r;
    int64_t lost_ns = REPLAY_NEVER;

    if (process != REPLAY_NONE)
        lost_ns = r->processes.at[process].lost_ns;
    list_each(cache, &r->caches) {
        if (cache->process != process || !cache->count)
            continue;
        begin_verifying_cache(w, cache, policy);
        for (uint32_t rank = 0; rank < cache->count; rank++)
            verify_lookup(w, rank, lost_ns, v);
        cache_order_free(&w->live.order);
    }
}

static int compare_findings(const void *a, const void *b)
{
    const struct replay_finding *x = a;
    const struct replay_finding *y = b;
    int order = list_compare_numbers(x->lookup->start_ns, y->lookup->start_ns);

    if (order)
        return order;
    return (x->lookup > y->lookup) - (x->lookup < y->lookup);
}

/* Undo what was added to a verdict since BEFORE, a copy of the verdict, was made: this removes the
 * newer findings. */
static void restore_verdict(struct replay_verdict *v, const struct replay_verdict *before)
{
    struct replay_verdict again = *before;

    again.findings = v->findings;
    again.findings.count = before->findings.count;
    *v = again;
}

/* Verify the process with number P by the evaluator's rules. If this gives findings and the program
 * uses torch, try ORDER_FIFO: torch has a setting by which entries stay in the order of their
 * birth, and the trace does not tell whether it was set. */
static void verify_by_either_policy(struct walk *w, struct replay_process *process, uint32_t p,
                                    struct replay_verdict *v)
{
    struct replay_verdict before = *v;

    verify_process(w, p, ORDER_MRU, v);
    if (v->findings.count == before.findings.count || !process->torch)
        return;
    process->insertion = true;
    restore_verdict(v, &before);
    verify_process(w, p, ORDER_FIFO, v);
    process->insertion = v->findings.count == before.findings.count;
    if (process->insertion) {
        v->insertion++;
        return;
    }
    restore_verdict(v, &before);
    verify_process(w, p, ORDER_MRU, v);
}

void replay_verify_lookups(struct replay *r, struct replay_verdict *v)
{
    struct walk w = {.r = r};

    w.moved = calloc(r->entries.count + 1, sizeof *w.moved);
    *v = (struct replay_verdict){.lookups = (int64_t)r->lookups.count, .orphans = r->orphans};
    for (uint32_t p = 0; p < r->processes.count; p++)
        verify_by_either_policy(&w, &r->processes.at[p], p, v);
    verify_process(&w, REPLAY_NONE, ORDER_MRU, v);
    list_sort(&v->findings, compare_findings);
    free(w.moved);
}
