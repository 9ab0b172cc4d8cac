/* trace/whatif/whatif.c -- the recorded calls decided again under other settings. See trace/whatif/whatif.h.
 *
 * Runs in: the viewer.
 *
 * All lookups are gone through by time. For each cache a list of predicted entries is kept, by the rules of
 * docs/shim.md, changed by the knobs:
 *
 *     a call                 tries the entries that it sees, in order; the first that fits runs (and moves, ORDER_MRU)
 *     none fits              limit reached: it runs as Python; else compiled, a new entry
 *     an entry's death       as recorded, of the entry that the same calls had; a reset takes all
 *     a fork                 hands the list on
 *
 * It is done twice, the first time without a change: calls that do not come out as recorded then are not understood,
 * and count as undecided.
 *
 * Of a torch program, what a call does not run compiled any more calls as Python: torch does not compile the callees of
 * a call at its limit, and functions made for the rest after a graph break are not called. What becomes compiled takes
 * its callees in. Such calls are found by time: they lie in their caller's frame. */
#include "trace/whatif/whatif.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "lib/progress.h"
#include "trace/remedy.h"
#include "lib/say.h"
#include "trace/whatif/like.h"

enum { DEFAULT_LIMIT = 8, NESTED = 64, UNKNOWN_GROUP = -2, LIMIT_VARIES = -1, LIMIT_UNKNOWN = -2, TICK = 1 << 12 };

struct made { /* a predicted entry */
    uint32_t class_;
    int64_t group; /* calls of others do not see it; -1: all do */
    bool unsure;   /* it is there only if a guess was right */
};

struct group_limit {
    int64_t group;
    bool unsure;
};

struct sim {           /* a predicted cache */
    struct made *list; /* owned, as tried */
    uint32_t count, room;
    uint32_t dead;               /* torch counts them */
    int64_t ever;                /* made since the last reset */
    struct group_limit *limited; /* owned: groups that torch does not compile for any more */
    uint32_t limited_count;
    uint32_t dying, born; /* how many of the recorded deaths and births are done */
    uint32_t *deaths;     /* owned: the cache's entries by death */
    bool begun, unsure_made;
};

/* On a thread, a call that does not run as it was recorded, and until when it lasts. */
struct nested {
    int64_t until_ns;
    bool compiled;
    uint32_t code;
};
struct thread {
    struct nested stack[NESTED];
    int depth;
};

struct whatif {
    struct db *db;                    /* borrowed */
    struct replay *r;                 /* borrowed */
    struct likeness *like;            /* owned */
    const struct whatif_knobs *knobs; /* borrowed, while it runs */
    uint8_t *base;                    /* owned: outcomes without a change, as in a result */
    int64_t *limits;                  /* owned, by code: the limit in force, as far as the trace shows; 0 not known */
    bool *accumulated;                /* owned, by code: that limit is one of all entries ever */
    int64_t *compile_ns;              /* owned, by class: how long its compile took, -1 not known */
    int64_t *mean_compile_ns;         /* owned, by code */
    int64_t *check_ns;                /* owned, by entry and then by code: of a check that fails, of one that passes */
    struct whatif_tally *recorded;    /* owned, by code, once it is known */
    bool regions;                     /* some entries are of a region */
    bool *resumes;                    /* owned, by code: made for the rest after a graph break */
    struct rest {
        uint32_t code, resume;
    } *rests; /* owned: functions made for the rest after a graph break, by code */
    size_t rest_count;
    uint32_t *by_fork; /* owned: caches with a parent, by their process's start */
    size_t forks;
    bool *several; /* owned, by code: calls of several regions or backends */
    /* while it runs */
    struct sim *sims;                  /* by cache */
    struct thread *threads;            /* by thread */
    struct whatif_function *functions; /* by code */
    bool failed, groups_guessed, limit_guessed, frames_missing;
};

/* ---- opening --------------------------------------------------------------- */

static int by_fork_time(const void *a, const void *b, void *context)
{
    const struct replay *r = context;
    int64_t x = r->processes.at[r->caches.at[*(const uint32_t *)a].process].start_ns,
            y = r->processes.at[r->caches.at[*(const uint32_t *)b].process].start_ns;

    return (x > y) - (x < y);
}

/* Entries that count towards the limit for lookup LOOKUP, as recorded. -1: no memory. */
static int64_t counted_recorded(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct replay_lookup *l = &r->lookups.at[lookup];
    const struct replay_cache *cache = &r->caches.at[l->cache];
    bool torch = cache->process != REPLAY_NONE && r->processes.at[cache->process].torch;
    int64_t region = l->entry != REPLAY_NONE ? r->entries.at[l->entry].region : -1, count = 0;

    for (uint32_t i = 0; i < l->check_count && region < 0; i++)
        if (r->checks.at[l->checks + i].entry != REPLAY_CHECK_NONE)
            region = r->entries.at[r->checks.at[l->checks + i].entry].region;
    if (!replay_state_at(r, lookup, state))
        return -1;
    for (size_t i = 0; i < state->count; i++) {
        const struct replay_entry *e = &r->entries.at[state->at[i].entry];
        if (l->outcome == OUTCOME_COMPILED && state->at[i].entry == l->entry)
            continue; /* observed lookups are timed apart from what they make */
        count += (!torch || e->region == region) && (!state->at[i].dead || (torch && !e->reset));
    }
    return count;
}

/* What the trace shows of limits: a call that met one, with how many entries; and none that compiled with as many. */
static bool learn_limits(struct whatif *w)
{
    const struct replay *r = w->r;
    struct replay_state state = {0};
    int64_t *least = calloc(r->codes.count + 1, sizeof *least); /* by code: the limit must be this at least */
    struct query *query;
    bool ok = least != NULL;

    for (size_t i = 0; i < r->lookups.count && ok; i++) {
        const struct replay_lookup *l = &r->lookups.at[r->order[i]];
        uint32_t code = r->caches.at[l->cache].code;
        int64_t count;
        if (l->outcome != OUTCOME_COMPILED && (l->outcome != OUTCOME_LIMIT || w->limits[code]))
            continue;
        count = counted_recorded(r, r->order[i], &state);
        ok = count >= 0;
        if (l->outcome == OUTCOME_LIMIT)
            w->limits[code] = count ? count : LIMIT_VARIES;
        else if (count >= least[code])
            least[code] = count + 1;
    }
    for (size_t i = 0; ok && i < r->codes.count; i++)
        if (w->limits[i] && w->limits[i] < least[i])
            w->limits[i] = LIMIT_VARIES;
    free(least);
    list_free(&state);
    query = db_query(w->db, "SELECT DISTINCT code_id FROM compile WHERE outcome = 'limit' AND substr(reason, 1, 400) LIKE '%accumulated%'");
    while (query_step(query)) {
        uint32_t code = replay_index(&r->code_ids, query_integer(query, 0));
        if (code != REPLAY_NONE)
            w->accumulated[code] = w->limits[code] > 0;
    }
    return query_close(query) && ok;
}

static bool learn_times(struct whatif *w)
{
    const struct replay *r = w->r;
    int64_t *sums =
        calloc((r->codes.count + 1) * 6, sizeof *sums); /* by code: compile, failing, passing checks: time, number */
    struct query *query;

    if (!sums)
        return false;
    for (size_t i = 0; i < r->compiles.count; i++) {
        const struct replay_compile *c = &r->compiles.at[i];
        int64_t ns = c->end_ns > c->start_ns ? c->end_ns - c->start_ns : 0;
        if (c->entry == REPLAY_NONE)
            continue;
        w->compile_ns[c->entry] = ns;
        sums[c->code * 6] += ns;
        sums[c->code * 6 + 1]++;
    }
    for (size_t i = 0; i < r->entries.count; i++)
        for (int p = 0; p < 2; p++) {
            sums[r->entries.at[i].code * 6 + 2 + p * 2] += r->times[i].ns[p];
            sums[r->entries.at[i].code * 6 + 3 + p * 2] += r->times[i].count[p];
        }
    for (size_t i = 0; i < r->codes.count; i++) {
        int64_t *ns = w->check_ns + (r->entries.count + i) * 2, *sum = sums + i * 6;
        w->mean_compile_ns[i] = sum[1] ? sum[0] / sum[1] : 0;
        ns[0] = sum[3] ? sum[2] / sum[3] : sum[5] ? sum[4] / sum[5] : 0;
        ns[1] = sum[5] ? sum[4] / sum[5] : ns[0];
    }
    for (size_t i = 0; i < r->entries.count; i++)
        for (int p = 0; p < 2; p++)
            w->check_ns[i * 2 + p] = r->times[i].count[p] ? r->times[i].ns[p] / r->times[i].count[p]
                                                          : w->check_ns[(r->entries.count + r->entries.at[i].code) * 2 + p];
    free(sums);
    query = db_query(
        w->db, "SELECT c.code_id FROM code c WHERE c.kind = 'resume' OR c.qualname GLOB '*torch_dynamo_resume_in_*'");
    while (query_step(query)) {
        uint32_t code = replay_index(&r->code_ids, query_integer(query, 0));
        if (code != REPLAY_NONE)
            w->resumes[code] = true;
    }
    if (!query_close(query))
        return false;
    query = db_query(
        w->db,
        "SELECT DISTINCT m.code_id, b.resume_code_id FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id"
        " WHERE b.resume_code_id IS NOT NULL ORDER BY m.code_id");
    while (query_step(query)) {
        struct rest one = {replay_index(&r->code_ids, query_integer(query, 0)),
                           replay_index(&r->code_ids, query_integer(query, 1))},
                    *more;
        if (one.code == REPLAY_NONE || one.resume == REPLAY_NONE)
            continue;
        if (!(more = realloc(w->rests, (w->rest_count + 1) * sizeof *more))) {
            query_close(query);
            return false;
        }
        w->rests = more;
        more[w->rest_count++] = one;
    }
    return query_close(query);
}

/* Compiled code of CODE breaks off, and a function for the rest is called. */
static bool has_rest(const struct whatif *w, uint32_t code)
{
    for (size_t i = 0; i < w->rest_count; i++)
        if (w->rests[i].code == code)
            return true;
    return false;
}

/* Such calls of which the trace has nothing. */
static void rests_called(struct whatif *w, uint32_t code)
{
    for (size_t i = 0; i < w->rest_count; i++)
        if (w->rests[i].code == code)
            w->functions[w->rests[i].resume].unrecorded++;
}

static bool run(struct whatif *w, const struct whatif_knobs *knobs, struct whatif_result *result);

struct whatif *whatif_open(struct db *db, struct replay *r)
{
    struct whatif *w = calloc(1, sizeof *w);
    struct whatif_knobs none = {0};
    struct whatif_result base = {0};
    bool ok = false;

    if (!w || !r->times || !(w->like = likeness_open(db, r)))
        goto out;
    w->db = db;
    w->r = r;
    w->limits = calloc(r->codes.count + 1, sizeof *w->limits);
    w->accumulated = calloc(r->codes.count + 1, sizeof *w->accumulated);
    w->compile_ns = malloc((r->entries.count + 1) * sizeof *w->compile_ns);
    w->mean_compile_ns = calloc(r->codes.count + 1, sizeof *w->mean_compile_ns);
    w->check_ns = calloc((r->entries.count + r->codes.count + 1) * 2, sizeof *w->check_ns);
    w->resumes = calloc(r->codes.count + 1, sizeof *w->resumes);
    w->several = calloc(r->codes.count + 1, sizeof *w->several);
    w->by_fork = malloc((r->caches.count + 1) * sizeof *w->by_fork);
    if (!w->limits || !w->accumulated || !w->compile_ns || !w->mean_compile_ns || !w->check_ns || !w->resumes || !w->several ||
        !w->by_fork) {
        say_error("out of memory");
        goto out;
    }
    memset(w->compile_ns, 0xff, (r->entries.count + 1) * sizeof *w->compile_ns);
    for (size_t i = 0; i < r->caches.count; i++)
        if (r->caches.at[i].parent != REPLAY_NONE && r->caches.at[i].process != REPLAY_NONE)
            w->by_fork[w->forks++] = (uint32_t)i;
    qsort_r(w->by_fork, w->forks, sizeof *w->by_fork, by_fork_time, r);
    for (size_t i = 0; i < r->entries.count; i++)
        w->regions = w->regions || r->entries.at[i].region >= 0;
    for (size_t i = 1; i < r->entries.count; i++)
        for (size_t k = 0; k < i && !w->several[r->entries.at[i].code]; k++) {
            if (i - k > 256) /* far apart: enough was seen */
                k = i - 256;
            if (r->entries.at[k].code == r->entries.at[i].code)
                w->several[r->entries.at[i].code] =
                    r->entries.at[i].region != r->entries.at[k].region ||
                    likeness_backend(w->like, (uint32_t)i) != likeness_backend(w->like, (uint32_t)k);
        }
    ok = learn_limits(w) && learn_times(w) && run(w, &none, &base) &&
         (w->recorded = calloc(r->codes.count + 1, sizeof *w->recorded));
    for (size_t i = 0; ok && i < base.function_count; i++)
        w->recorded[base.functions[i].code] = base.functions[i].recorded;
    w->base = base.outcomes;
    base.outcomes = NULL;
    whatif_result_free(&base);
out:
    if (!ok) {
        whatif_free(w);
        return NULL;
    }
    return w;
}

void whatif_free(struct whatif *w)
{
    if (!w)
        return;
    likeness_free(w->like);
    free(w->base);
    free(w->limits);
    free(w->accumulated);
    free(w->compile_ns);
    free(w->mean_compile_ns);
    free(w->check_ns);
    free(w->recorded);
    free(w->resumes);
    free(w->rests);
    free(w->several);
    free(w->by_fork);
    free(w);
}

/* ---- a predicted cache ----------------------------------------------------- */

static bool torch_cache(const struct whatif *w, const struct replay_cache *cache)
{
    return cache->process != REPLAY_NONE && w->r->processes.at[cache->process].torch;
}

static bool sim_insert(struct whatif *w, struct sim *s, struct made made)
{
    if (s->count == s->room) {
        uint32_t room = s->room ? s->room * 2 : 4;
        struct made *more = realloc(s->list, room * sizeof *more);
        if (!more) {
            w->failed = true;
            return false;
        }
        s->list = more;
        s->room = room;
    }
    if (w->knobs->order == ORDER_FIFO) {
        s->list[s->count] = made;
    } else {
        memmove(s->list + 1, s->list, s->count * sizeof *s->list);
        s->list[0] = made;
    }
    s->count++;
    s->unsure_made = s->unsure_made || made.unsure;
    return true;
}

static int by_end(const void *a, const void *b, void *entries)
{
    int64_t x = ((const struct replay_entry *)entries)[*(const uint32_t *)a].died_ns,
            y = ((const struct replay_entry *)entries)[*(const uint32_t *)b].died_ns;

    return (x > y) - (x < y);
}

static bool sim_begin(struct whatif *w, uint32_t index)
{
    struct sim *s = &w->sims[index];
    const struct replay_cache *cache = &w->r->caches.at[index];

    s->begun = true;
    s->deaths = malloc((cache->entry_count + 1) * sizeof *s->deaths);
    if (!s->deaths)
        return false;
    memcpy(s->deaths, cache->entries, cache->entry_count * sizeof *s->deaths);
    qsort_r(s->deaths, cache->entry_count, sizeof *s->deaths, by_end, w->r->entries.at);
    return true;
}

static void sim_reset(struct sim *s)
{
    s->count = s->dead = s->limited_count = 0;
    s->ever = 0;
    s->unsure_made = false;
}

/* Which group of calls an entry or call of this backend and region belongs to. */
static int64_t group_of(const struct whatif *w, uint32_t code, int64_t region, uint32_t backend)
{
    if (w->knobs->isolate && region < 0 && w->several[code])
        return backend == REPLAY_NONE ? UNKNOWN_GROUP : (int64_t)1 << 40 | (int64_t)backend;
    if (w->knobs->backends_apart && !w->knobs->isolate)
        return backend == REPLAY_NONE ? UNKNOWN_GROUP : ((region + 1) & 0xffff) << 20 | (int64_t)backend;
    return region;
}

static int64_t class_group(const struct whatif *w, uint32_t class_)
{
    int64_t region = class_ < w->r->entries.count ? w->r->entries.at[class_].region : -1;
    uint32_t code = class_ < w->r->entries.count ? w->r->entries.at[class_].code : 0;

    return group_of(w, code, region, likeness_backend(w->like, class_));
}

/* What the recorded cache went through up to NOW that does not depend on calls: deaths, resets, entries that were
 * loaded. */
static void sim_advance(struct whatif *w, uint32_t index, int64_t now)
{
    struct sim *s = &w->sims[index];
    const struct replay *r = w->r;
    const struct replay_cache *cache = &r->caches.at[index];

    while (s->born < cache->entry_count && r->entries.at[cache->entries[s->born]].born_ns <= now) {
        uint32_t entry = cache->entries[s->born++];
        if ((r->entries.at[entry].pinned || r->entries.at[entry].compile_id < 0) &&
            r->entries.at[entry].process == cache->process)
            sim_insert(w, s, (struct made){.class_ = entry, .group = class_group(w, entry)});
    }
    while (s->dying < cache->entry_count && r->entries.at[s->deaths[s->dying]].died_ns < now) {
        const struct replay_entry *e = &r->entries.at[s->deaths[s->dying]];
        uint32_t entry = s->deaths[s->dying++];
        if (e->shared && e->process != cache->process)
            continue;
        if (e->reset) {
            sim_reset(s);
            continue;
        }
        for (uint32_t i = 0; i < s->count; i++)
            if (s->list[i].class_ == entry) {
                memmove(s->list + i, s->list + i + 1, (s->count - i - 1) * sizeof *s->list);
                s->count--;
                s->dead++;
                break;
            }
    }
}

static void forks_until(struct whatif *w, size_t *next, int64_t now)
{
    while (*next < w->forks) {
        uint32_t index = w->by_fork[*next];
        struct sim *s = &w->sims[index], *parent = &w->sims[w->r->caches.at[index].parent];
        int64_t fork_ns = w->r->processes.at[w->r->caches.at[index].process].start_ns;
        if (fork_ns > now)
            return;
        ++*next;
        if (s->begun || !sim_begin(w, index))
            continue;
        sim_advance(w, w->r->caches.at[index].parent, fork_ns);
        for (uint32_t i = parent->count; i-- > 0;) {
            struct made made = parent->list[i];
            if (w->knobs->order == ORDER_FIFO)
                made = parent->list[parent->count - 1 - i];
            sim_insert(w, s, made);
        }
        s->dead = parent->dead;
        s->ever = parent->ever;
        for (uint32_t i = 0;
             i < w->r->caches.at[index].entry_count && w->r->entries.at[w->r->caches.at[index].entries[i]].born_ns <= fork_ns;
             i++)
            s->born = i + 1;
    }
}

/* ---- one call -------------------------------------------------------------- */

struct call {
    uint32_t lookup, class_;
    const struct replay_lookup *l;
    const struct replay_cache *cache;
    uint32_t code;
    int64_t region, group;
    uint32_t backend;
    bool torch, run_only; /* run_only: nobody is asked */
};

static bool group_limited(const struct sim *s, int64_t group, bool *unsure)
{
    for (uint32_t i = 0; i < s->limited_count; i++)
        if (s->limited[i].group == group) {
            *unsure = s->limited[i].unsure;
            return true;
        }
    return false;
}

static void group_limit(struct whatif *w, struct sim *s, int64_t group, bool unsure)
{
    struct group_limit *more = realloc(s->limited, (s->limited_count + 1) * sizeof *more);

    if (!more) {
        w->failed = true;
        return;
    }
    s->limited = more;
    more[s->limited_count++] = (struct group_limit){group, unsure};
}

/* May the call see the entry? A region sees its own entries, then those of all. */
static bool sees(const struct whatif *w, const struct call *c, const struct made *m, int pass)
{
    if (c->group < 0 || w->knobs->backends_apart || (w->knobs->isolate && w->several[c->code]))
        return pass == 1 && m->group == c->group;
    return pass == 0 ? m->group == c->group : m->group == -1;
}

static bool backend_fits(const struct whatif *w, const struct call *c, const struct made *m)
{
    uint32_t backend = likeness_backend(w->like, m->class_);

    return c->backend == REPLAY_NONE || backend == REPLAY_NONE || backend == c->backend;
}

static void check_cost(const struct whatif *w, const struct call *c, const struct made *m, bool passed,
                       struct whatif_tally *t)
{
    size_t at = m->class_ < w->r->entries.count ? m->class_ : w->r->entries.count + c->code;

    t->checks++;
    t->check_ns += w->check_ns[at * 2 + passed];
}

/* The entry that C hits: its place, or -1. *UNSURE: that is a guess. */
static int64_t find_entry(struct whatif *w, struct sim *s, const struct call *c, bool *unsure, struct whatif_tally *t)
{
    int64_t hit = -1;
    bool maybe = false;

    *unsure = false;
    if (s->count && s->list[0].class_ == c->class_ && c->class_ < w->r->entries.count && !s->list[0].unsure &&
        s->list[0].group == c->group) {
        check_cost(w, c, &s->list[0], true, t); /* by far the most: the entry in front is the one that ran */
        return 0;
    }
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < s->count; i++) {
            struct made *m = &s->list[i];
            enum like like;
            if (!sees(w, c, m, pass) || !backend_fits(w, c, m))
                continue;
            like = likeness_fits(w->like, m->class_, c->lookup);
            if (m->unsure && like == LIKE_YES)
                like = LIKE_GUESS_YES;
            if (hit < 0)
                check_cost(w, c, m, like >= LIKE_GUESS_YES, t);
            if (like == LIKE_YES) { /* whatever the others are, it hits */
                *unsure = false;
                return hit >= 0 ? hit : (int64_t)i;
            }
            if (like == LIKE_GUESS_YES && hit < 0)
                hit = i;
            maybe = maybe || like != LIKE_NO;
        }
    *unsure = maybe;
    return hit;
}

/* How many entries count towards the limit for C; *UNSURE of them may not be there. */
static int64_t counted(const struct whatif *w, const struct sim *s, const struct call *c, int64_t *unsure)
{
    int64_t count = c->torch ? s->dead : 0;

    *unsure = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (c->torch || w->knobs->isolate || w->knobs->backends_apart) {
            if (s->list[i].group != c->group)
                continue;
        }
        count++;
        *unsure += s->list[i].unsure;
    }
    return count;
}

/* LIMIT_VARIES: another one at times, or not one of entries. */
static int64_t limit_of(struct whatif *w, const struct call *c)
{
    if (w->knobs->recompile_limit)
        return w->knobs->recompile_limit;
    return w->limits[c->code] && !w->accumulated[c->code] ? w->limits[c->code] : LIMIT_UNKNOWN;
}

/* What becomes of a miss: OUTCOME_COMPILED, OUTCOME_LIMIT. */
static enum outcome miss(struct whatif *w, struct sim *s, const struct call *c, bool *unsure)
{
    int64_t maybe, count = counted(w, s, c, &maybe), limit = limit_of(w, c);
    int64_t ever = w->knobs->accumulated_limit ? w->knobs->accumulated_limit : w->accumulated[c->code] ? w->limits[c->code] : 0;
    bool guess = false, over;

    if (c->torch && group_limited(s, c->group, &guess)) {
        *unsure = *unsure || guess;
        return OUTCOME_LIMIT;
    }
    if (limit == LIMIT_VARIES) { /* as it was recorded, if it was */
        *unsure = *unsure || c->l->outcome == OUTCOME_HIT;
        return c->l->outcome == OUTCOME_LIMIT ? OUTCOME_LIMIT : OUTCOME_COMPILED;
    }
    if (limit == LIMIT_UNKNOWN) { /* never met: at least as many as there were */
        limit = DEFAULT_LIMIT > c->cache->entry_count ? DEFAULT_LIMIT : (int64_t)c->cache->entry_count;
        if (count >= limit) {
            *unsure = true;
            w->limit_guessed = true;
        }
    }
    over = count >= limit;
    *unsure = *unsure || (over && count - maybe < limit);
    if (ever && (c->torch ? (int64_t)s->count + s->dead : s->ever) >= ever) {
        *unsure = *unsure || s->unsure_made;
        over = true;
    }
    if (over && c->torch)
        group_limit(w, s, c->group, *unsure);
    return over ? OUTCOME_LIMIT : OUTCOME_COMPILED;
}

/* ---- calls within calls ---------------------------------------------------- */

static int64_t frame_end(struct whatif *w, int64_t lookup_id)
{
    struct query *query =
        db_query(w->db, "SELECT f.end_ns FROM lookup l JOIN frame f ON f.frame_id = l.frame_id WHERE l.lookup_id = ?1");
    int64_t end = -1;

    query_bind_integer(query, 1, lookup_id);
    if (query_step(query))
        end = query_type(query, 0) == QUERY_NULL ? REPLAY_NEVER : query_integer(query, 0);
    else
        w->frames_missing = true;
    if (!query_close(query))
        w->failed = true;
    return end;
}

/* The innermost call around AT_NS on THREAD that runs in another way than recorded, or NULL. */
static const struct nested *nested_in(struct whatif *w, uint32_t thread, int64_t at_ns)
{
    struct thread *t = thread == REPLAY_NONE ? NULL : &w->threads[thread];

    while (t && t->depth && t->stack[t->depth - 1].until_ns <= at_ns)
        t->depth--;
    return t && t->depth ? &t->stack[t->depth - 1] : NULL;
}

static void nested_enter(struct whatif *w, const struct call *c, bool compiled)
{
    struct thread *t = c->l->thread == REPLAY_NONE ? NULL : &w->threads[c->l->thread];

    if (t && t->depth < NESTED)
        t->stack[t->depth++] = (struct nested){frame_end(w, c->l->id), compiled, c->code};
}

static bool runs_compiled(unsigned outcome)
{
    return outcome == OUTCOME_HIT || outcome == OUTCOME_COMPILED;
}

/* Everything of one lookup. Returns its predicted outcome, as in a result. */
static uint8_t decide(struct whatif *w, const struct call *call)
{
    struct call c = *call;
    struct sim *s = &w->sims[c.l->cache];
    struct whatif_function *f = &w->functions[c.code];
    const struct nested *around = c.torch ? nested_in(w, c.l->thread, c.l->start_ns) : NULL;
    enum outcome outcome;
    bool unsure = false;
    int64_t hit;

    if (around && (around->compiled || w->resumes[c.code])) {
        /* What compiled code takes in is not called; nor is the rest of what runs as Python now. */
        unsure = around->compiled && has_rest(w, around->code);
        return WHATIF_GONE | (unsure ? WHATIF_UNDECIDED : 0);
    }
    c.run_only = c.run_only || around;
    if (around && !s->count)
        return WHATIF_GONE; /* nothing was compiled for it: under torch's limit nobody asks */
    hit = find_entry(w, s, &c, &unsure, &f->predicted);
    if (hit >= 0) {
        struct made m = s->list[hit];
        if (w->knobs->order == ORDER_MRU && !(m.class_ < w->r->entries.count && w->r->entries.at[m.class_].pinned)) {
            memmove(s->list + 1, s->list, (size_t)hit * sizeof *s->list);
            s->list[0] = m;
        }
        outcome = OUTCOME_HIT;
        f->trusting += m.class_ >= w->r->entries.count;
    } else if (c.l->outcome == OUTCOME_CALLBACK_ERROR) {
        outcome = OUTCOME_CALLBACK_ERROR; /* the compiler says the same again */
        unsure = unsure || w->knobs->recompile_limit;
    } else if (c.run_only) {
        outcome = OUTCOME_RUN_ONLY;
    } else {
        outcome = miss(w, s, &c, &unsure);
        if (c.l->outcome == OUTCOME_DECLINED) {
            if (outcome == OUTCOME_COMPILED)
                outcome = OUTCOME_DECLINED; /* the same again */
            else
                f->unrecorded++; /* later calls would have been looked up: nobody was asked, so nobody said no */
        } else if (outcome == OUTCOME_COMPILED) {
            int64_t ns = c.class_ < w->r->entries.count ? w->compile_ns[c.class_] : -1;
            sim_insert(w, s, (struct made){c.class_, c.group, unsure});
            s->ever++;
            f->trusting += c.class_ >= w->r->entries.count;
            f->predicted.compile_ns += ns >= 0 ? ns : w->mean_compile_ns[c.code];
        }
    }
    return (uint8_t)outcome | (unsure ? WHATIF_UNDECIDED : 0);
}

static void count(struct whatif_tally *t, unsigned outcome)
{
    t->calls++;
    t->hits += outcome == OUTCOME_HIT;
    t->misses += outcome_facts[outcome].missed;
    t->compiles += outcome == OUTCOME_COMPILED;
    t->eager += outcome_facts[outcome].python;
}

static void count_recorded(struct whatif *w, const struct call *c, struct whatif_tally *t)
{
    count(t, c->l->outcome);
    for (uint32_t i = 0; i < c->l->check_count; i++) {
        const struct replay_check *k = &w->r->checks.at[c->l->checks + i];
        if (k->entry == REPLAY_CHECK_NONE || k->result == CHECK_BACKEND_MISMATCH)
            continue;
        check_cost(w, c, &(struct made){.class_ = k->entry}, k->result == CHECK_PASS, t);
    }
    if (c->l->outcome == OUTCOME_COMPILED && c->l->entry != REPLAY_NONE && w->compile_ns[c->l->entry] >= 0)
        t->compile_ns += w->compile_ns[c->l->entry];
}

static struct call call_of(const struct whatif *w, uint32_t lookup)
{
    const struct replay *r = w->r;
    struct call c = {
        .lookup = lookup, .l = &r->lookups.at[lookup], .class_ = likeness_class(w->like, lookup), .region = -1};

    c.cache = &r->caches.at[c.l->cache];
    c.code = c.cache->code;
    c.torch = torch_cache(w, c.cache);
    c.run_only = c.l->outcome == OUTCOME_RUN_ONLY;
    if (c.class_ < r->entries.count)
        c.region = r->entries.at[c.class_].region;
    for (uint32_t i = 0; w->regions && i < c.l->check_count && c.region < 0; i++)
        if (r->checks.at[c.l->checks + i].entry != REPLAY_CHECK_NONE)
            c.region = r->entries.at[r->checks.at[c.l->checks + i].entry].region;
    c.backend = c.run_only ? REPLAY_NONE : likeness_backend(w->like, c.class_);
    c.group = group_of(w, c.code, c.region, c.backend);
    return c;
}

/* Calls that no knob touches, because no cache is asked. */
static bool untouched(const struct replay_lookup *l)
{
    return (l->outcome == OUTCOME_HIT && l->entry == REPLAY_NONE) ||
           (l->outcome != OUTCOME_HIT && l->outcome != OUTCOME_COMPILED && l->outcome != OUTCOME_LIMIT &&
            l->outcome != OUTCOME_RUN_ONLY && l->outcome != OUTCOME_DECLINED && l->outcome != OUTCOME_CALLBACK_ERROR);
}

static void one(struct whatif *w, uint32_t lookup, uint8_t *outcomes)
{
    struct call c = call_of(w, lookup);
    struct whatif_function *f = &w->functions[c.code];
    unsigned recorded = c.l->outcome < OUTCOMES ? c.l->outcome : OUTCOME_PLAIN, predicted;
    uint8_t found;

    if (!w->sims[c.l->cache].begun && !sim_begin(w, c.l->cache)) {
        w->failed = true;
        return;
    }
    sim_advance(w, c.l->cache, c.l->start_ns);
    if (!w->recorded)
        count_recorded(w, &c, &f->recorded);
    if (untouched(c.l)) {
        count_recorded(w, &c, &f->predicted);
        outcomes[lookup] = (uint8_t)recorded;
        return;
    }
    found = decide(w, &c);
    predicted = found & WHATIF_OUTCOME;
    /* Without a change it must come out as it was recorded; where it does not, this call is not understood. */
    if (w->base && (w->base[lookup] & WHATIF_OUTCOME) != recorded)
        found |= WHATIF_UNDECIDED;
    if (w->base && (recorded == OUTCOME_HIT || recorded == OUTCOME_LIMIT) && c.cache->count > 1 && c.region < 0 &&
        ((w->knobs->isolate && c.torch && !w->several[c.code]) ||
         ((w->knobs->isolate || w->knobs->backends_apart) && likeness_namesakes(w->like, c.code)))) {
        found |= WHATIF_UNDECIDED; /* of which torch.compile(), of which backend was it? */
        w->groups_guessed = true;
    }
    outcomes[lookup] = found;
    if (w->base && found & WHATIF_UNDECIDED)
        f->undecided++;
    if (predicted == WHATIF_GONE) {
        f->gone++;
        return;
    }
    count(&f->predicted, predicted);
    f->changed += predicted != recorded;
    if (c.torch && w->base && runs_compiled(predicted) != runs_compiled(recorded)) {
        nested_enter(w, &c, runs_compiled(predicted));
        if (runs_compiled(predicted))
            rests_called(w, c.code);
    }
}

/* ---- a run ----------------------------------------------------------------- */

static void tally_add(struct whatif_tally *sum, const struct whatif_tally *t)
{
    sum->calls += t->calls;
    sum->hits += t->hits;
    sum->misses += t->misses;
    sum->compiles += t->compiles;
    sum->eager += t->eager;
    sum->checks += t->checks;
    sum->check_ns += t->check_ns;
    sum->compile_ns += t->compile_ns;
}

static int by_change(const void *a, const void *b)
{
    const struct whatif_function *x = a, *y = b;
    int64_t m = x->changed + x->gone + x->undecided + x->unrecorded,
            n = y->changed + y->gone + y->undecided + y->unrecorded;

    if (m != n)
        return m > n ? -1 : 1;
    if (x->recorded.calls != y->recorded.calls)
        return x->recorded.calls > y->recorded.calls ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

static bool note(struct whatif_result *result, const char *text)
{
    char **more = realloc(result->notes, (result->note_count + 1) * sizeof *more);

    if (!more)
        return false;
    result->notes = more;
    more[result->note_count] = strdup(text);
    return more[result->note_count++] != NULL;
}

static bool notes_make(struct whatif *w, const struct whatif_knobs *k, struct whatif_result *result)
{
    static const struct {
        int what;
        const char *text;
    } texts[] = {
        {ASSUMED_ALIKE,
         "Calls that ran one entry are alike: what some of them did with another entry, the others would do."},
        {ASSUMED_SIGNATURE, "Calls whose inputs have one signature (types, shapes, small values) are alike, as far as "
                            "guards look at inputs."},
        {ASSUMED_DYNAMIC, "Code with a dynamic size has no other condition on it: a program that tests the size itself "
                          "compiles more often."},
        {ASSUMED_AUTOMATIC, "torch makes a size or number dynamic once it changes (automatic_dynamic_shapes); with "
                            "dynamic=False it does not."},
        {ASSUMED_HIDDEN, "A guard looked at something that signatures do not show (an attribute, a global): which "
                         "calls are alike is a guess."},
        {ASSUMED_DROPPED,
         "Without the guard the code is right for all the calls that it told apart. That is for you to know."},
        {ASSUMED_LAMBDA,
         "Some guards are functions of the program: which calls an entry that was not recorded would take is a guess."},
    };
    bool ok = true, losses = false, open = false, torch = false;
    int assumed = likeness_assumed(w->like);

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (assumed & texts[i].what)
            ok = ok && note(result, texts[i].text);
    for (size_t i = 0; i < w->r->processes.count; i++)
        losses = losses || w->r->processes.at[i].lost_ns != REPLAY_NEVER;
    for (size_t i = 0; i < w->r->lookups.count && !open; i++)
        open = w->r->lookups.at[i].observed;
    if (result->total.changed || result->total.gone)
        ok = ok && note(result, "A compile takes as long as recorded, or as others of its function; a guard check as "
                                "long as others of its entry."
                                " How long calls run is not predicted.");
    if (w->limit_guessed)
        ok =
            ok &&
            note(result,
                 "The limit of entries is not recorded, and no call met it: 8, the default, or as many as there were.");
    if (w->groups_guessed)
        ok =
            ok && note(result,
                       "A trace does not tell of which torch.compile() a call was, or of which of two backends with one"
                       " name: calls of one backend's name are taken for one.");
    for (size_t i = 0; i < w->r->processes.count; i++)
        torch = torch || w->r->processes.at[i].torch;
    if (torch && k->dynamic_count && !k->dynamic_all)
        ok =
            ok && note(result, "torch compiles sizes 0 and 1 apart, and mark_dynamic() on such a size may be refused.");
    if (result->total.unrecorded)
        ok = ok && note(result, "Some calls would be looked up of which the trace has nothing: functions for the rest "
                                "after a graph break, or calls of what"
                                " the compiler was not asked for.");
    if (result->total.trusting)
        ok = ok &&
             note(result,
                  "Compiles that were not recorded succeed: a compiler may also say no, and then not be asked again.");
    if (w->frames_missing)
        ok = ok &&
             note(result, "Frames are missing from the trace: which calls lie within others is not known for all.");
    if (open)
        ok = ok && note(result, "torch ran on its own evaluator (--torch observe): which entries a call tried was not "
                                "seen, so fewer checks are"
                                " recorded than there were.");
    if (doubts_values(w->db))
        ok = ok && note(result, "Values were not recorded (--values): where a guard compares one, which calls are alike is a guess.");
    if (losses)
        ok = ok && note(result, "Events were lost while recording: what comes after is uncertain.");
    return ok;
}

static void sims_free(struct whatif *w)
{
    for (size_t i = 0; w->sims && i < w->r->caches.count; i++) {
        free(w->sims[i].list);
        free(w->sims[i].limited);
        free(w->sims[i].deaths);
    }
    free(w->sims);
    free(w->threads);
    free(w->functions);
    w->sims = NULL;
    w->threads = NULL;
    w->functions = NULL;
}

static bool run(struct whatif *w, const struct whatif_knobs *knobs, struct whatif_result *result)
{
    const struct replay *r = w->r;
    struct progress progress = progress_begin("deciding calls");
    size_t fork = 0;
    bool ok = false;

    *result = (struct whatif_result){0};
    w->knobs = knobs;
    w->failed = w->groups_guessed = w->limit_guessed = w->frames_missing = false;
    likeness_begin(w->like, knobs);
    w->sims = calloc(r->caches.count + 1, sizeof *w->sims);
    w->threads = calloc(r->threads.count + 1, sizeof *w->threads);
    w->functions = calloc(r->codes.count + 1, sizeof *w->functions);
    result->outcomes = calloc(r->lookups.count + 1, 1);
    if (!w->sims || !w->threads || !w->functions || !result->outcomes)
        goto out;
    for (size_t i = 0; i < r->lookups.count && !w->failed; i++) {
        if (w->forks)
            forks_until(w, &fork, r->lookups.at[r->order[i]].start_ns);
        one(w, r->order[i], result->outcomes);
        if (!(i & (TICK - 1)))
            progress_tick(&progress, (int64_t)i, (int64_t)r->lookups.count);
    }
    progress_end(&progress);
    result->total.code = REPLAY_NONE;
    for (size_t i = 0; i < r->codes.count; i++) {
        struct whatif_function *f = &w->functions[i];
        if (w->recorded)
            f->recorded = w->recorded[i];
        if (!f->recorded.calls && !f->unrecorded)
            continue;
        f->code = (uint32_t)i;
        tally_add(&result->total.recorded, &f->recorded);
        tally_add(&result->total.predicted, &f->predicted);
        result->total.changed += f->changed;
        result->total.gone += f->gone;
        result->total.undecided += f->undecided;
        result->total.unrecorded += f->unrecorded;
        result->total.trusting += f->trusting;
        w->functions[result->function_count++] = *f;
    }
    if (result->function_count)
        qsort(w->functions, result->function_count, sizeof *w->functions, by_change);
    result->functions = w->functions;
    w->functions = NULL;
    ok = !w->failed && notes_make(w, knobs, result);
out:
    sims_free(w);
    if (!ok) {
        if (!db_damaged(w->db))
            say_error("what-if: out of memory, or the trace cannot be read");
        whatif_result_free(result);
    }
    return ok;
}

bool whatif_run(struct whatif *w, const struct whatif_knobs *knobs, struct whatif_result *result)
{
    return run(w, knobs, result);
}

void whatif_result_free(struct whatif_result *result)
{
    for (size_t i = 0; i < result->note_count; i++)
        free(result->notes[i]);
    free(result->notes);
    free(result->functions);
    free(result->outcomes);
    *result = (struct whatif_result){0};
}
