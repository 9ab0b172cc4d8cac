/* trace/replay/load.c -- the decisions of a trace read and put in order. See replay.h.
 *
 * Runs in: the viewer.
 *
 * Everything here comes from a file that anybody may have made: ids that lead nowhere become REPLAY_NONE, times may
 * be in any order, and parents must be older than their children. */
#include "replay.h"
#include "trace/db.h"
#include "trace/replay/checks.h"
#include "trace/torch_words.h"
#include "lib/progress.h"
#include "lib/say.h"

enum {
    FORKS_MAX = 64, /* generations of processes that hand a cache on */
    TICK_ROWS = 1 << 14,
};

/* ---- loading --------------------------------------------------------------- */

/* A new item of LIST whose row id is ID, entered in MAP by its index; NULL: no memory, or more than an index counts. */
#define ADD(list, map, id)                                                             \
    ({                                                                                 \
        int64_t *index_ = (list)->count < REPLAY_CHECK_NONE ? map_put(map, id) : NULL; \
        if (index_)                                                                    \
            *index_ = (int64_t)(list)->count;                                          \
        index_ ? list_add(list) : NULL;                                                \
    })

static bool load_processes(struct replay *r)
{
    struct query *query =
        db_query(r->db, "SELECT process_id, start_ns, parent_process_id, torch_version IS NOT NULL, torch_version FROM process"
                        " ORDER BY process_id");
    bool ok = true;

    while (ok && query_step(query)) {
        uint32_t parent = replay_index(&r->process_ids, replay_integer(query, 2, -1));
        struct replay_process *p = ADD(&r->processes, &r->process_ids, query_integer(query, 0));
        if ((ok = p))
            *p = (struct replay_process){.id = query_integer(query, 0),
                                         .start_ns = replay_time(query, 1, 0),
                                         .lost_ns = REPLAY_NEVER,
                                         .first_fork_ns = REPLAY_NEVER,
                                         .parent = parent,
                                         .torch = query_integer(query, 3),
                                         .floats_later = torch_floats_later(torch_version(query_text(query, 4, NULL)))};
    }
    if (!query_close(query) || !ok)
        return false;
    query = db_query(r->db, "SELECT process_id, MIN(COALESCE(at_ns, 0)) FROM loss WHERE cause NOT LIKE 'stall:%'"
                            " AND (events IS NULL OR events > 0) GROUP BY process_id");
    while (query_step(query)) {
        uint32_t at = replay_index(&r->process_ids, query_integer(query, 0));
        if (at != REPLAY_NONE)
            r->processes.at[at].lost_ns = replay_time(query, 1, 0);
    }
    return query_close(query);
}

static bool load_threads(struct replay *r)
{
    struct query *query = db_query(r->db, "SELECT thread_id, process_id FROM thread ORDER BY thread_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_thread *t = ADD(&r->threads, &r->thread_ids, query_integer(query, 0));
        if ((ok = t))
            *t = (struct replay_thread){query_integer(query, 0),
                                        replay_index(&r->process_ids, replay_integer(query, 1, -1))};
    }
    return query_close(query) && ok;
}

/* The index of the code object with row id CODE_ID, made if it is new. */
static uint32_t code_index(struct replay *r, int64_t code_id)
{
    uint32_t at = replay_index(&r->code_ids, code_id);
    struct replay_code *code = at == REPLAY_NONE ? ADD(&r->codes, &r->code_ids, code_id) : NULL;

    if (!code)
        return at;
    *code = (struct replay_code){code_id, REPLAY_NEVER};
    return (uint32_t)(r->codes.count - 1);
}

static bool load_entries(struct replay *r)
{
    struct query *query = db_query(r->db, "SELECT cache_entry_id, code_id, born_ns, died_ns, region_id, compile_id,"
                                          " label = 'precompiled' AND compile_id IS NULL,"
                                          " death_cause LIKE 'reset%' OR death_cause LIKE 'dropped%', guard_count"
                                          " FROM cache_entry ORDER BY cache_entry_id");
    bool ok = true;

    while (ok && query_step(query)) {
        uint32_t code = code_index(r, replay_integer(query, 1, -1));
        struct replay_entry *e = ADD(&r->entries, &r->entry_ids, query_integer(query, 0));
        if ((ok = e && code != REPLAY_NONE))
            *e = (struct replay_entry){.id = query_integer(query, 0),
                                       .code = code,
                                       .born_ns = replay_time(query, 2, 0),
                                       .died_ns = replay_time(query, 3, REPLAY_NEVER),
                                       .region = replay_integer(query, 4, -1),
                                       .compile_id = replay_integer(query, 5, -1),
                                       .process = REPLAY_NONE,
                                       .pinned = query_integer(query, 6),
                                       .reset = query_integer(query, 7),
                                       .guards = replay_integer(query, 8, -1)};
    }
    return query_close(query) && ok;
}

static bool load_compiles(struct replay *r)
{
    struct query *query = db_query(r->db, "SELECT compile_id, start_ns, code_id, thread_id, cache_entry_id, end_ns,"
                                          " is_recompile FROM compiles ORDER BY compile_id");
    bool ok = true;

    while (ok && query_step(query)) {
        uint32_t code = code_index(r, replay_integer(query, 2, -1));
        struct replay_compile *c = ADD(&r->compiles, &r->compile_ids, query_integer(query, 0));
        if (!(ok = c && code != REPLAY_NONE))
            break;
        *c = (struct replay_compile){.id = query_integer(query, 0),
                                     .start_ns = replay_time(query, 1, 0),
                                     .code = code,
                                     .thread = replay_index(&r->thread_ids, replay_integer(query, 3, -1)),
                                     .entry = replay_index(&r->entry_ids, replay_integer(query, 4, -1)),
                                     .end_ns = replay_time(query, 5, 0),
                                     .recompile = query_integer(query, 6)};
        if (c->entry != REPLAY_NONE && c->thread != REPLAY_NONE && r->entries.at[c->entry].process == REPLAY_NONE)
            r->entries.at[c->entry].process = r->threads.at[c->thread].process;
    }
    if (!query_close(query) || !ok)
        return false;
    query = db_query(r->db, "SELECT graph_break_id, compile_id FROM graph_break ORDER BY graph_break_id");
    while (ok && query_step(query)) {
        struct replay_break *b = list_add(&r->breaks);
        if ((ok = b))
            *b = (struct replay_break){query_integer(query, 0),
                                       replay_index(&r->compile_ids, replay_integer(query, 1, -1))};
    }
    return query_close(query) && ok;
}

/* The cache of CODE in PROCESS, made if it is new. */
static uint32_t cache_index(struct replay *r, uint32_t code, uint32_t process)
{
    int64_t key = replay_cache_key(code, process);
    uint32_t at = replay_index(&r->cache_ids, key);
    struct replay_cache *cache = at == REPLAY_NONE ? ADD(&r->caches, &r->cache_ids, key) : NULL;

    if (!cache)
        return at;
    *cache = (struct replay_cache){.code = code, .process = process, .parent = REPLAY_NONE};
    return (uint32_t)(r->caches.count - 1);
}

/* The row of QUERY becomes a lookup. False: no memory. */
static bool load_lookup(struct replay *r, struct query *query)
{
    uint32_t code = code_index(r, replay_integer(query, 2, -1)),
             thread = replay_index(&r->thread_ids, replay_integer(query, 1, -1));
    int64_t outcome = replay_integer(query, 5, -1), entry = query_integer(query, 6), checked = query_integer(query, 7);
    struct replay_lookup *l = r->lookups.count < REPLAY_CHECK_NONE ? list_add(&r->lookups) : NULL;

    if (!l || code == REPLAY_NONE)
        return false;
    l->id = query_integer(query, 0);
    l->thread = thread;
    l->start_ns = replay_time(query, 3, 0);
    l->end_ns = l->start_ns + replay_time(query, 4, 0);
    l->outcome = outcome < 0 || outcome >= OUTCOMES ? REPLAY_OUTCOME_UNKNOWN : (uint8_t)outcome;
    l->named = entry || query_type(query, 6) != QUERY_NULL; /* 0 may be NULL: the type is asked only then */
    l->entry = l->named ? replay_index(&r->entry_ids, entry) : REPLAY_NONE;
    l->observed = !checked && query_type(query, 7) == QUERY_NULL;
    l->checked = checked < 0 || checked > UINT16_MAX ? UINT16_MAX : (uint16_t)checked;
    l->cache = cache_index(r, code, thread == REPLAY_NONE ? REPLAY_NONE : r->threads.at[thread].process);
    if (l->cache == REPLAY_NONE)
        return false;
    if (l->outcome == OUTCOME_COMPILED && l->entry != REPLAY_NONE && r->entries.at[l->entry].process == REPLAY_NONE)
        r->entries.at[l->entry].process = r->caches.at[l->cache].process;
    return true;
}

static bool load_lookups(struct replay *r, bool times)
{
    int64_t rows = db_integer(r->db, 0, "SELECT COUNT(*) FROM lookup");
    struct query *query =
        db_query(r->db, times ? "SELECT lookup_id, thread_id, code_id, start_ns, duration_ns, outcome, cache_entry_id,"
                                " entries_checked, signature_id FROM lookup ORDER BY lookup_id"
                              : "SELECT lookup_id, thread_id, code_id, start_ns, duration_ns, outcome, cache_entry_id,"
                                " entries_checked FROM lookup ORDER BY lookup_id");
    struct progress progress = progress_begin("reading lookups");
    LIST(int64_t) signatures = {0};
    bool ok = true;

    while (ok && query_step(query)) {
        int64_t *signature = times ? list_add(&signatures) : NULL;
        ok = (signature || !times) && load_lookup(r, query);
        if (signature)
            *signature = replay_integer(query, 8, -1);
        if (!(r->lookups.count & (TICK_ROWS - 1)))
            progress_tick(&progress, (int64_t)r->lookups.count, rows);
    }
    r->signatures = signatures.at;
    progress_end(&progress);
    return query_close(query) && ok;
}

static bool load_marks(struct replay *r)
{
    struct query *query = db_query(
        r->db, "SELECT code_id, MIN(at_ns) FROM code_mark WHERE action IN ('skip', 'run_only') GROUP BY code_id");

    while (query_step(query)) {
        uint32_t at = replay_index(&r->code_ids, query_integer(query, 0));
        if (at != REPLAY_NONE)
            r->codes.at[at].marked_ns = replay_time(query, 1, 0);
    }
    return query_close(query);
}

/* ---- order ----------------------------------------------------------------- */

static int by_time(const void *a, const void *b, void *context)
{
    const struct replay_lookup *lookups = context, *x = &lookups[*(const uint32_t *)a],
                               *y = &lookups[*(const uint32_t *)b];

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x > y) - (x < y);
}

static int by_death(const void *a, const void *b, void *context)
{
    const struct replay_entry *entries = context;
    int64_t x = entries[*(const uint32_t *)a].died_ns, y = entries[*(const uint32_t *)b].died_ns;

    return (x > y) - (x < y);
}

static bool sort_lookups(struct replay *r)
{
    bool sorted = true;

    r->order = malloc((r->lookups.count + 1) * sizeof *r->order);
    if (!r->order)
        return false;
    for (size_t i = 0; i < r->lookups.count; i++) {
        r->order[i] = (uint32_t)i;
        sorted = sorted && (!i || r->lookups.at[i - 1].start_ns <= r->lookups.at[i].start_ns);
    }
    if (!sorted)
        qsort_r(r->order, r->lookups.count, sizeof *r->order, by_time, r->lookups.at);
    return true;
}

/* Does PROCESS have what was born in MAKER at BORN_NS, itself or through a fork? */
static bool inherits(const struct replay *r, uint32_t process, uint32_t maker, int64_t born_ns)
{
    for (int generation = 0; process != REPLAY_NONE && generation < FORKS_MAX; generation++) {
        if (process == maker)
            return true;
        if (born_ns >= r->processes.at[process].start_ns)
            return false;
        process = r->processes.at[process].parent;
    }
    return process == maker; /* an unknown one */
}

/* Which entries did forks hand on? A process that got one may end it without a lookup of its code. */
static void find_shared(struct replay *r)
{
    for (size_t i = 0; i < r->processes.count; i++)
        if (r->processes.at[i].parent != REPLAY_NONE) {
            struct replay_process *parent = &r->processes.at[r->processes.at[i].parent];
            int64_t fork_ns = r->processes.at[i].start_ns;
            if (fork_ns < parent->first_fork_ns)
                parent->first_fork_ns = fork_ns;
            if (fork_ns > parent->last_fork_ns)
                parent->last_fork_ns = fork_ns;
        }
    for (size_t i = 0; i < r->entries.count; i++) {
        struct replay_entry *e = &r->entries.at[i];
        const struct replay_process *maker = e->process == REPLAY_NONE ? NULL : &r->processes.at[e->process];
        e->shared = !maker || (e->born_ns < maker->last_fork_ns && e->died_ns >= maker->first_fork_ns);
    }
}

/* Give each cache its lookups. */
static bool fill_lookups(struct replay *r)
{
    size_t at = 0;

    r->cache_lookups = malloc((r->lookups.count + 1) * sizeof *r->cache_lookups);
    r->ranks = malloc((r->lookups.count + 1) * sizeof *r->ranks);
    if (!r->cache_lookups || !r->ranks)
        return false;
    for (size_t i = 0; i < r->lookups.count; i++)
        r->caches.at[r->lookups.at[i].cache].count++;
    for (size_t i = 0; i < r->caches.count; i++) {
        r->caches.at[i].lookups = r->cache_lookups + at;
        at += r->caches.at[i].count;
        r->caches.at[i].count = 0;
    }
    for (size_t i = 0; i < r->lookups.count; i++) {
        struct replay_cache *cache = &r->caches.at[r->lookups.at[r->order[i]].cache];
        r->ranks[r->order[i]] = cache->count;
        cache->lookups[cache->count++] = r->order[i];
    }
    return true;
}

/* Give each cache its entries, and its parent. NEXT[code + 1]: where the next code's entries begin in BY_CODE. */
static bool fill_entries(struct replay *r, uint32_t *by_code, uint32_t *next)
{
    LIST(uint32_t) all = {0};
    size_t at = 0;
    bool ok = false;

    for (size_t i = 0; i < r->entries.count; i++)
        next[r->entries.at[i].code + 2]++;
    for (size_t i = 2; i < r->codes.count + 2; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < r->entries.count; i++)
        by_code[next[r->entries.at[i].code + 1]++] = (uint32_t)i;
    for (size_t i = 0; i < r->caches.count; i++) {
        struct replay_cache *cache = &r->caches.at[i];
        uint32_t process = cache->process;
        for (uint32_t k = next[cache->code]; k < next[cache->code + 1]; k++) {
            const struct replay_entry *e = &r->entries.at[by_code[k]];
            uint32_t *added;
            if (!inherits(r, process, e->process, e->born_ns))
                continue;
            if (!(added = list_add(&all)))
                goto out;
            *added = by_code[k];
            cache->entry_count++;
        }
        for (int generation = 0; process != REPLAY_NONE && generation < FORKS_MAX && cache->parent == REPLAY_NONE;
             generation++)
            if ((process = r->processes.at[process].parent) != REPLAY_NONE)
                cache->parent = replay_index(&r->cache_ids, replay_cache_key(cache->code, process));
    }
    r->cache_deaths = malloc((all.count + 1) * sizeof *r->cache_deaths);
    if (!r->cache_deaths)
        goto out;
    if (all.count)
        memcpy(r->cache_deaths, all.at, all.count * sizeof *all.at);
    for (size_t i = 0; i < r->caches.count; at += r->caches.at[i++].entry_count) {
        struct replay_cache *cache = &r->caches.at[i];
        cache->entries = all.at + at;
        cache->deaths = r->cache_deaths + at;
        if (cache->entry_count) {
            qsort_r(cache->entries, cache->entry_count, sizeof *cache->entries, replay_by_birth, r->entries.at);
            qsort_r(cache->deaths, cache->entry_count, sizeof *cache->deaths, by_death, r->entries.at);
        }
    }
    ok = true;
out:
    r->cache_entries = all.at;
    return ok;
}

static bool fill_caches(struct replay *r)
{
    uint32_t *by_code = malloc((r->entries.count + 1) * sizeof *by_code),
             *next = calloc(r->codes.count + 2, sizeof *next);
    bool ok = by_code && next;

    /* Caches that no lookup asked, for the deaths in them. */
    for (uint32_t i = 0; ok && i < r->entries.count; i++)
        ok = cache_index(r, r->entries.at[i].code, r->entries.at[i].process) != REPLAY_NONE;
    ok = ok && sort_lookups(r) && fill_lookups(r) && fill_entries(r, by_code, next);
    free(by_code);
    free(next);
    return ok;
}

/* Lookups are sorted already: the few others are, and then both are merged. */
static bool make_events(struct replay *r)
{
    size_t others = 0, at = 0, other = 0, room = r->compiles.count + r->breaks.count + r->entries.count;
    struct replay_event *few = malloc((room + 1) * sizeof *few), *events = NULL;
    const size_t counts[REPLAY_KINDS] = {0, r->compiles.count, r->breaks.count, r->entries.count};
    int64_t span = db_meta_integer(r->db, "span_ns", 0);

    if (!few || (room + r->lookups.count && !(events = list_add_many(&r->events, room + r->lookups.count)))) {
        free(few);
        return false;
    }
    for (uint32_t kind = REPLAY_COMPILE; kind < REPLAY_KINDS; kind++)
        for (uint32_t i = 0; i < counts[kind]; i++) {
            int64_t at_ns = replay_about(r, kind, i).at_ns;
            if (at_ns != REPLAY_NEVER)
                few[others++] = (struct replay_event){at_ns, i, kind};
        }
    qsort(few, others, sizeof *few, replay_by_moment);
    r->events.count = 0;
    while (at < r->lookups.count || other < others) {
        struct replay_event next = {0};
        if (at < r->lookups.count)
            next = (struct replay_event){r->lookups.at[r->order[at]].start_ns, r->order[at], REPLAY_LOOKUP};
        if (at == r->lookups.count || (other < others && replay_by_moment(&few[other], &next) < 0))
            events[r->events.count++] = few[other++];
        else
            events[r->events.count++] = next, at++;
    }
    free(few);
    if (r->events.count)
        r->last_ns = events[r->events.count - 1].at_ns;
    if (span > r->last_ns && span < REPLAY_NEVER / 4)
        r->last_ns = span;
    return true;
}

struct replay *replay_open(struct db *db, int flags)
{
    struct replay *r = calloc(1, sizeof *r);
    struct check_reader *reader = NULL;
    bool ok;

    if (!r)
        return NULL;
    r->db = db;
    db_integer(db, 0, "PRAGMA cache_size = -8192"); /* tables are read from end to end: no use to keep more pages */
    ok = load_processes(r) && load_threads(r) && load_entries(r);
    if (ok && flags & REPLAY_CHECKS)
        ok = (reader = check_reader_begin(r, flags & REPLAY_TIMES)) != NULL;
    ok = ok && load_compiles(r) && load_lookups(r, flags & REPLAY_TIMES) && load_marks(r);
    if (reader)
        r->whole = check_reader_end(reader, r);
    ok = ok && (r->whole || !(flags & REPLAY_CHECKS));
    if (ok)
        find_shared(r);
    ok = ok && fill_caches(r) && make_events(r) && (r->marks = calloc(r->caches.count + 1, sizeof *r->marks));
    if (!ok) {
        if (!db_damaged(db) && (!reader || r->whole))
            say_error("%s: out of memory", db_path(db));
        replay_free(r);
        return NULL;
    }
    return r;
}

void replay_free(struct replay *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->marks && i < r->caches.count; i++)
        free(r->marks[i]);
    free(r->marks);
    free(r->order);
    free(r->ranks);
    free(r->cache_lookups);
    free(r->cache_entries);
    free(r->cache_deaths);
    free(r->signatures);
    free(r->failed);
    free(r->times);
    list_free(&r->lookups);
    list_free(&r->checks);
    list_free(&r->entries);
    list_free(&r->codes);
    list_free(&r->threads);
    list_free(&r->processes);
    list_free(&r->caches);
    list_free(&r->compiles);
    list_free(&r->breaks);
    list_free(&r->events);
    map_free(&r->entry_ids);
    map_free(&r->code_ids);
    map_free(&r->thread_ids);
    map_free(&r->process_ids);
    map_free(&r->cache_ids);
    map_free(&r->compile_ids);
    free(r);
}
