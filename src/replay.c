/* replay.c -- the recorded decisions of a trace in order, and the caches as they stood at each.
 *
 * Runs in: the viewer. See replay.h.
 *
 * Everything here comes from a file that anybody may have made: ids that lead nowhere become REPLAY_NONE, times may
 * be in any order, and parents must be older than their children. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "db.h"
#include "find_code.h"
#include "progress.h"
#include "remedy.h"
#include "say.h"

enum {
    MARK_EVERY = 256,    /* lookups of a cache between two checkpoints, at least */
    FORKS_MAX = 64,      /* generations of processes that hand a cache on */
    TICK_ROWS = 1 << 14,
};

/* ---- row id -> index ------------------------------------------------------- */

static size_t slot_of(const struct replay_map *map, int64_t key)
{
    size_t at = replay_hash((uint64_t)key) & (map->room - 1);

    while (map->values[at] != REPLAY_NONE && map->keys[at] != key)
        at = (at + 1) & (map->room - 1);
    return at;
}

uint32_t replay_map_get(const struct replay_map *map, int64_t key)
{
    if (!map->gaps)
        return (uint64_t)key - (uint64_t)map->first < map->count ? (uint32_t)((uint64_t)key - (uint64_t)map->first) : REPLAY_NONE;
    return map->values[slot_of(map, key)];
}

static bool map_room(struct replay_map *map)
{
    struct replay_map more = {.room = map->room ? map->room * 2 : 64, .first = map->first, .gaps = map->gaps};

    if (map->count * 2 < map->room)
        return true;
    more.keys = malloc(more.room * sizeof *more.keys);
    more.values = malloc(more.room * sizeof *more.values);
    if (!more.keys || !more.values) {
        free(more.keys);
        free(more.values);
        return false;
    }
    memset(more.values, 0xff, more.room * sizeof *more.values);
    for (size_t i = 0; i < map->room; i++)
        if (map->values[i] != REPLAY_NONE) {
            size_t at = slot_of(&more, map->keys[i]);
            more.keys[at] = map->keys[i];
            more.values[at] = map->values[i];
        }
    more.count = map->count;
    free(map->keys);
    free(map->values);
    *map = more;
    return true;
}

/* The first of two with one key stays. */
static bool map_put(struct replay_map *map, int64_t key, uint32_t value)
{
    size_t at;

    if (!map_room(map))
        return false;
    at = slot_of(map, key);
    if (map->values[at] == REPLAY_NONE) {
        if (!map->count)
            map->first = key;
        map->gaps = map->gaps || value != map->count || (uint64_t)key - (uint64_t)map->first != value;
        map->keys[at] = key;
        map->values[at] = value;
        map->count++;
    }
    return true;
}

static void map_free(struct replay_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (struct replay_map){0};
}

/* ---- loading --------------------------------------------------------------- */

/* A new item, zeroed, at the end of ARRAY, an array of COUNT items of SIZE; room doubles. NULL: no memory. */
static void *grow(void *array, size_t *count, size_t size)
{
    void **items = array, *more;

    if (!(*count & (*count - 1))) { /* 0, 1, 2, 4, 8: full */
        size_t room = *count ? *count * 2 : 1;
        if (room >= REPLAY_CHECK_NONE || !(more = realloc(*items, room * size))) {
            say_error("out of memory");
            return NULL;
        }
        *items = more;
    }
    more = (char *)*items + *count * size;
    memset(more, 0, size);
    ++*count;
    return more;
}
#define GROW(r, array, count) ((__typeof__((r)->array))grow(&(r)->array, &(r)->count, sizeof *(r)->array))

static int64_t integer_or(struct query *query, int column, int64_t otherwise)
{
    int64_t value = query_integer(query, column);

    return value || query_type(query, column) != QUERY_NULL ? value : otherwise; /* seldom 0: most need one call */
}

/* Times of a hostile trace must not overflow when they are added and compared. */
static int64_t time_of(struct query *query, int column, int64_t otherwise)
{
    int64_t ns = integer_or(query, column, otherwise);

    return ns < 0 ? 0 : ns > REPLAY_NEVER / 4 && ns != otherwise ? REPLAY_NEVER / 4 : ns;
}

static bool load_processes(struct replay *r)
{
    struct query *query = db_query(r->db, find_column(r->db, "process", "torch_version")
                                       ? "SELECT process_id, start_ns, parent_process_id, torch_version IS NOT NULL FROM process"
                                         " ORDER BY process_id"
                                       : "SELECT process_id, start_ns, parent_process_id, 0 FROM process ORDER BY process_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_process *p = GROW(r, processes, process_count);
        if (!p)
            ok = false;
        else
            *p = (struct replay_process){.id = query_integer(query, 0), .start_ns = time_of(query, 1, 0), .lost_ns = REPLAY_NEVER,
                                         .parent = replay_map_get(&r->process_ids, integer_or(query, 2, -1)),
                                         .torch = query_integer(query, 3)};
        ok = ok && map_put(&r->process_ids, p->id, (uint32_t)(r->process_count - 1));
    }
    if (!query_close(query) || !ok)
        return false;
    query = db_query(r->db, "SELECT process_id, MIN(COALESCE(at_ns, 0)) FROM loss WHERE cause NOT LIKE 'stall:%'"
                            " AND (events IS NULL OR events > 0) GROUP BY process_id");
    while (query_step(query)) {
        uint32_t at = replay_map_get(&r->process_ids, query_integer(query, 0));
        if (at != REPLAY_NONE)
            r->processes[at].lost_ns = time_of(query, 1, 0);
    }
    return query_close(query);
}

static bool load_threads(struct replay *r)
{
    struct query *query = db_query(r->db, "SELECT thread_id, process_id FROM thread ORDER BY thread_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_thread *t = GROW(r, threads, thread_count);
        if (t)
            *t = (struct replay_thread){query_integer(query, 0), replay_map_get(&r->process_ids, query_integer(query, 1))};
        ok = t && map_put(&r->thread_ids, t->id, (uint32_t)(r->thread_count - 1));
    }
    return query_close(query) && ok;
}

/* The index of the code object with row id CODE_ID, made if it is new. */
static uint32_t code_index(struct replay *r, int64_t code_id)
{
    uint32_t at = replay_map_get(&r->code_ids, code_id);
    struct replay_code *code;

    if (at != REPLAY_NONE)
        return at;
    code = GROW(r, codes, code_count);
    if (!code)
        return REPLAY_NONE;
    *code = (struct replay_code){code_id, REPLAY_NEVER};
    at = (uint32_t)(r->code_count - 1);
    return map_put(&r->code_ids, code_id, at) ? at : REPLAY_NONE;
}

static bool load_entries(struct replay *r)
{
    bool region = find_column(r->db, "cache_entry", "region_id");
    struct query *query = db_query(r->db, region
        ? "SELECT cache_entry_id, code_id, born_ns, died_ns, region_id, compile_id, label = 'precompiled' AND compile_id IS NULL,"
          " death_cause LIKE 'reset%' OR death_cause LIKE 'dropped%', guard_count FROM cache_entry ORDER BY cache_entry_id"
        : "SELECT cache_entry_id, code_id, born_ns, died_ns, NULL, compile_id, label = 'precompiled' AND compile_id IS NULL,"
          " death_cause LIKE 'reset%' OR death_cause LIKE 'dropped%', guard_count FROM cache_entry ORDER BY cache_entry_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_entry *e = GROW(r, entries, entry_count);
        if (!e)
            ok = false;
        else
            *e = (struct replay_entry){.id = query_integer(query, 0), .code = code_index(r, integer_or(query, 1, -1)),
                                       .born_ns = time_of(query, 2, 0), .died_ns = time_of(query, 3, REPLAY_NEVER),
                                       .region = integer_or(query, 4, -1), .compile_id = integer_or(query, 5, -1),
                                       .process = REPLAY_NONE, .pinned = query_integer(query, 6), .reset = query_integer(query, 7),
                                       .guards = integer_or(query, 8, -1)};
        ok = ok && e->code != REPLAY_NONE && map_put(&r->entry_ids, e->id, (uint32_t)(r->entry_count - 1));
    }
    return query_close(query) && ok;
}

static bool load_compiles(struct replay *r)
{
    struct query *query = db_query(r->db, "SELECT compile_id, start_ns, code_id, thread_id, cache_entry_id, end_ns FROM compile ORDER BY compile_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_compile *c = GROW(r, compiles, compile_count);
        if (!c)
            ok = false;
        else
            *c = (struct replay_compile){.id = query_integer(query, 0), .start_ns = time_of(query, 1, 0),
                                         .code = code_index(r, integer_or(query, 2, -1)),
                                         .thread = replay_map_get(&r->thread_ids, integer_or(query, 3, -1)),
                                         .entry = replay_map_get(&r->entry_ids, integer_or(query, 4, -1)),
                                         .end_ns = time_of(query, 5, 0)};
        ok = ok && c->code != REPLAY_NONE && map_put(&r->compile_ids, c->id, (uint32_t)(r->compile_count - 1));
        if (ok && c->entry != REPLAY_NONE && c->thread != REPLAY_NONE && r->entries[c->entry].process == REPLAY_NONE)
            r->entries[c->entry].process = r->threads[c->thread].process;
    }
    if (!query_close(query) || !ok)
        return false;
    query = db_query(r->db, "SELECT graph_break_id, compile_id FROM graph_break ORDER BY graph_break_id");
    while (ok && query_step(query)) {
        struct replay_break *b = GROW(r, breaks, break_count);
        if (b)
            *b = (struct replay_break){query_integer(query, 0), replay_map_get(&r->compile_ids, integer_or(query, 1, -1))};
        ok = b != NULL;
    }
    return query_close(query) && ok;
}

/* The cache of CODE in PROCESS, made if it is new. */
static uint32_t cache_index(struct replay *r, uint32_t code, uint32_t process)
{
    int64_t key = (int64_t)code << 32 | (int64_t)process;
    uint32_t at = replay_map_get(&r->cache_ids, key);
    struct replay_cache *cache;

    if (at != REPLAY_NONE)
        return at;
    cache = GROW(r, caches, cache_count);
    if (!cache)
        return REPLAY_NONE;
    *cache = (struct replay_cache){.code = code, .process = process, .parent = REPLAY_NONE};
    at = (uint32_t)(r->cache_count - 1);
    return map_put(&r->cache_ids, key, at) ? at : REPLAY_NONE;
}

static bool load_lookups(struct replay *r, bool times)
{
    int64_t rows = db_integer(r->db, 0, "SELECT COUNT(*) FROM lookup");
    struct query *query = db_query(r->db, times ? "SELECT lookup_id, thread_id, code_id, start_ns, duration_ns, outcome, cache_entry_id,"
                                                  " entries_checked, signature_id FROM lookup ORDER BY lookup_id"
                                                : "SELECT lookup_id, thread_id, code_id, start_ns, duration_ns, outcome, cache_entry_id,"
                                                  " entries_checked, NULL FROM lookup ORDER BY lookup_id");
    struct progress progress = progress_begin("reading lookups");
    size_t signatures = 0;
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_lookup *l = GROW(r, lookups, lookup_count);
        int64_t thread, checked;
        uint32_t code;
        if (!l || (times && !grow(&r->signatures, &signatures, sizeof *r->signatures))) {
            ok = false;
            break;
        }
        if (times)
            r->signatures[signatures - 1] = integer_or(query, 8, -1);
        thread = integer_or(query, 1, -1);
        code = code_index(r, integer_or(query, 2, -1));
        l->id = query_integer(query, 0);
        l->thread = replay_map_get(&r->thread_ids, thread);
        l->start_ns = time_of(query, 3, 0);
        l->end_ns = l->start_ns + time_of(query, 4, 0);
        thread = integer_or(query, 5, -1);
        l->outcome = thread < 0 || thread >= CALL_KINDS ? REPLAY_OUTCOME_UNKNOWN : (uint8_t)thread;
        checked = query_integer(query, 6); /* 0 may be NULL: the type is asked only then */
        l->named = checked || query_type(query, 6) != QUERY_NULL;
        l->entry = l->named ? replay_map_get(&r->entry_ids, checked) : REPLAY_NONE;
        checked = query_integer(query, 7);
        l->observed = !checked && query_type(query, 7) == QUERY_NULL;
        l->checked = checked < 0 || checked > UINT16_MAX ? UINT16_MAX : (uint16_t)checked;
        l->cache = code == REPLAY_NONE ? REPLAY_NONE
                   : cache_index(r, code, l->thread == REPLAY_NONE ? REPLAY_NONE : r->threads[l->thread].process);
        ok = l->cache != REPLAY_NONE;
        if (ok && l->outcome == CALL_COMPILED && l->entry != REPLAY_NONE && r->entries[l->entry].process == REPLAY_NONE)
            r->entries[l->entry].process = r->caches[l->cache].process;
        if (!(r->lookup_count & (TICK_ROWS - 1)))
            progress_tick(&progress, (int64_t)r->lookup_count, rows);
    }
    progress_end(&progress);
    return query_close(query) && ok;
}

/* Older traces have no marks. */
static bool load_marks(struct replay *r)
{
    struct query *query;

    if (!find_column(r->db, "code_mark", "action"))
        return true;
    query = db_query(r->db, "SELECT code_id, MIN(at_ns) FROM code_mark WHERE action IN ('skip', 'run_only') GROUP BY code_id");
    while (query_step(query)) {
        uint32_t at = replay_map_get(&r->code_ids, query_integer(query, 0));
        if (at != REPLAY_NONE)
            r->codes[at].marked_ns = time_of(query, 1, 0);
    }
    return query_close(query);
}

/* The owner of each guard, by guard id. */
static bool load_guards(struct replay *r, struct replay_map *owners)
{
    struct query *query = db_query(r->db, "SELECT guard_id, cache_entry_id FROM guard");
    bool ok = true;

    while (ok && query_step(query)) {
        uint32_t entry = replay_map_get(&r->entry_ids, integer_or(query, 1, -1));
        if (entry != REPLAY_NONE)
            ok = map_put(owners, query_integer(query, 0), entry);
    }
    return query_close(query) && ok;
}

static enum replay_result result_of(const char *text)
{
    static const char *const names[] = {[CHECK_PASS] = "pass", [CHECK_FAIL] = "fail", [CHECK_ERROR] = "error",
                                        [CHECK_MISMATCH] = "backend_mismatch"};

    for (int i = 0; i < CHECK_UNKNOWN; i++)
        if (!strcmp(text, names[i]))
            return (enum replay_result)i;
    return CHECK_UNKNOWN;
}

/* Checks beside their lookups: both tables are read from end to end. The recorder writes checks in the order of
 * their lookups, so that needs no sort; where somebody has changed that, 1 is returned and it is read sorted. */
static int load_checks(struct replay *r, const struct replay_map *owners, bool sorted, bool times)
{
    /* A column that is not wanted costs as much as one that is. */
    struct query *query = db_query(r->db, times ? sorted ? "SELECT lookup_id, 0, cache_entry_id, result, failed_guard_id, 0, duration_ns"
                                                           " FROM guard_check ORDER BY lookup_id, position, guard_check_id"
                                                         : "SELECT lookup_id, 0, cache_entry_id, result, failed_guard_id, 0, duration_ns"
                                                           " FROM guard_check ORDER BY guard_check_id"
                                          : sorted ? "SELECT lookup_id, position, cache_entry_id, result, failed_guard_id, guards_run, 0"
                                                     " FROM guard_check ORDER BY lookup_id, position, guard_check_id"
                                                   : "SELECT lookup_id, position, cache_entry_id, result, failed_guard_id, guards_run, 0"
                                                     " FROM guard_check ORDER BY guard_check_id");
    struct progress progress = progress_begin("reading guard checks");
    size_t at = 0, failed = 0;
    int64_t before = INT64_MIN;
    int status = 0;

    r->check_count = 0;
    r->orphans = 0;
    if (times) {
        free(r->failed);
        free(r->times);
        r->failed = NULL;
        if (!(r->times = calloc(r->entry_count + 1, sizeof *r->times)))
            status = -1;
    }
    while (!status && query_step(query)) {
        int64_t id = integer_or(query, 0, INT64_MIN), position = integer_or(query, 1, -1), guard;
        struct replay_check *c;
        struct replay_lookup *l;
        uint32_t entry;
        if (id < before && !sorted) {
            status = 1;
            break;
        }
        before = id;
        while (at < r->lookup_count && r->lookups[at].id < id)
            at++;
        if (at == r->lookup_count || r->lookups[at].id != id) {
            r->orphans++;
            continue;
        }
        l = &r->lookups[at];
        if (!(c = GROW(r, checks, check_count)) || (times && !grow(&r->failed, &failed, sizeof *r->failed))) {
            status = -1;
            break;
        }
        if (!l->check_count)
            l->checks = (uint32_t)(r->check_count - 1);
        if (l->check_count == UINT16_MAX || position != l->check_count)
            l->misplaced = true;
        l->check_count += l->check_count < UINT16_MAX;
        entry = replay_map_get(&r->entry_ids, integer_or(query, 2, -1));
        c->entry = entry == REPLAY_NONE ? REPLAY_CHECK_NONE : entry;
        c->result = result_of(query_text(query, 3, NULL));
        if ((guard = query_integer(query, 4)) || query_type(query, 4) != QUERY_NULL)
            c->bad_guard = replay_map_get(owners, guard) != entry || c->result == CHECK_PASS;
        else
            guard = -1;
        if (entry != REPLAY_NONE && r->entries[entry].guards >= 0 && query_integer(query, 5) > r->entries[entry].guards)
            c->bad_guard = true;
        if (times)
            r->failed[failed - 1] = guard;
        if (times && entry != REPLAY_NONE && c->result <= CHECK_FAIL && query_type(query, 6) != QUERY_NULL) {
            struct replay_times *t = &r->times[entry];
            int64_t ns = time_of(query, 6, 0);
            t->ns[c->result == CHECK_PASS] += ns < INT32_MAX ? ns : INT32_MAX; /* so that no trace makes the sum overflow */
            t->count[c->result == CHECK_PASS]++;
        }
        if (!(r->check_count & (TICK_ROWS - 1)))
            progress_tick(&progress, (int64_t)at, (int64_t)r->lookup_count);
    }
    progress_end(&progress);
    return query_close(query) ? status : -1;
}

/* ---- order ----------------------------------------------------------------- */

static int by_time(const void *a, const void *b, void *context)
{
    const struct replay_lookup *lookups = context, *x = &lookups[*(const uint32_t *)a], *y = &lookups[*(const uint32_t *)b];

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x > y) - (x < y);
}

static bool sort_lookups(struct replay *r)
{
    bool sorted = true;

    r->order = malloc((r->lookup_count + 1) * sizeof *r->order);
    if (!r->order)
        return false;
    for (size_t i = 0; i < r->lookup_count; i++) {
        r->order[i] = (uint32_t)i;
        sorted = sorted && (!i || r->lookups[i - 1].start_ns <= r->lookups[i].start_ns);
    }
    if (!sorted)
        qsort_r(r->order, r->lookup_count, sizeof *r->order, by_time, r->lookups);
    return true;
}

static int by_birth(const void *a, const void *b, void *context)
{
    const struct replay_entry *entries = context, *x = &entries[*(const uint32_t *)a], *y = &entries[*(const uint32_t *)b];

    if (x->born_ns != y->born_ns)
        return x->born_ns < y->born_ns ? -1 : 1;
    return (x > y) - (x < y);
}

/* Does PROCESS have what was born in MAKER at BORN_NS, itself or through a fork? */
static bool inherits(const struct replay *r, uint32_t process, uint32_t maker, int64_t born_ns)
{
    for (int generation = 0; process != REPLAY_NONE && generation < FORKS_MAX; generation++) {
        if (process == maker)
            return true;
        if (born_ns >= r->processes[process].start_ns)
            return false;
        process = r->processes[process].parent;
    }
    return process == maker; /* an unknown one */
}

/* Give each cache its lookups and its entries. */
static bool fill_caches(struct replay *r)
{
    uint32_t *by_code, *next; /* entries by code; where each code's begin */
    size_t room = 0;
    bool ok = false;

    r->cache_lookups = malloc((r->lookup_count + 1) * sizeof *r->cache_lookups);
    r->ranks = malloc((r->lookup_count + 1) * sizeof *r->ranks);
    by_code = malloc((r->entry_count + 1) * sizeof *by_code);
    next = calloc(r->code_count + 2, sizeof *next);
    if (!r->cache_lookups || !r->ranks || !by_code || !next)
        goto out;
    for (size_t i = 0; i < r->lookup_count; i++)
        r->caches[r->lookups[i].cache].count++;
    for (size_t i = 0, at = 0; i < r->cache_count; i++) {
        r->caches[i].lookups = r->cache_lookups + at;
        at += r->caches[i].count;
        r->caches[i].count = 0;
    }
    for (size_t i = 0; i < r->lookup_count; i++) {
        struct replay_cache *cache = &r->caches[r->lookups[r->order[i]].cache];
        r->ranks[r->order[i]] = cache->count;
        cache->lookups[cache->count++] = r->order[i];
    }
    for (size_t i = 0; i < r->entry_count; i++)
        next[r->entries[i].code + 2]++;
    for (size_t i = 2; i < r->code_count + 2; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < r->entry_count; i++)
        by_code[next[r->entries[i].code + 1]++] = (uint32_t)i;
    for (int filling = 0; filling < 2; filling++) {
        size_t at = 0;
        for (size_t i = 0; i < r->cache_count; i++) {
            struct replay_cache *cache = &r->caches[i];
            if (filling)
                cache->entries = r->cache_entries + at;
            for (uint32_t k = next[cache->code]; k < next[cache->code + 1]; k++) {
                struct replay_entry *e = &r->entries[by_code[k]];
                if (!inherits(r, cache->process, e->process, e->born_ns))
                    continue;
                if (filling) {
                    cache->entries[cache->entry_count++] = by_code[k];
                    e->shared = e->shared || cache->process != e->process;
                }
                at++;
            }
            if (filling)
                qsort_r(cache->entries, cache->entry_count, sizeof *cache->entries, by_birth, r->entries);
        }
        if (!filling && !(r->cache_entries = malloc(((room = at) + 1) * sizeof *r->cache_entries)))
            goto out;
    }
    for (size_t i = 0; i < r->cache_count; i++) {
        uint32_t process = r->caches[i].process;
        for (int generation = 0; process != REPLAY_NONE && generation < FORKS_MAX && r->caches[i].parent == REPLAY_NONE; generation++) {
            process = r->processes[process].parent;
            if (process != REPLAY_NONE)
                r->caches[i].parent = replay_map_get(&r->cache_ids, (int64_t)r->caches[i].code << 32 | (int64_t)process);
        }
    }
    ok = true;
out:
    free(by_code);
    free(next);
    return ok;
}

/* What the cache of an entry is that no lookup asked, so that its death has one. */
static bool make_caches(struct replay *r)
{
    for (size_t i = 0; i < r->entry_count; i++)
        if (cache_index(r, r->entries[i].code, r->entries[i].process) == REPLAY_NONE)
            return false;
    return true;
}

static int by_moment(const void *a, const void *b)
{
    const struct replay_event *x = a, *y = b;

    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Lookups are sorted already: the few others are, and then both are merged. */
static bool make_events(struct replay *r)
{
    size_t others = 0, at = 0, other = 0, room = r->compile_count + r->break_count + r->entry_count;
    struct replay_event *few = malloc((room + 1) * sizeof *few);
    int64_t span = 0;
    bool ok = false;

    r->events = malloc((room + r->lookup_count + 1) * sizeof *r->events);
    if (!few || !r->events)
        goto out;
    for (size_t i = 0; i < r->compile_count; i++)
        few[others++] = (struct replay_event){r->compiles[i].start_ns, (uint32_t)i, REPLAY_COMPILE};
    for (size_t i = 0; i < r->break_count; i++)
        few[others++] = (struct replay_event){r->breaks[i].compile == REPLAY_NONE ? 0 : r->compiles[r->breaks[i].compile].start_ns,
                                              (uint32_t)i, REPLAY_BREAK};
    for (size_t i = 0; i < r->entry_count; i++)
        if (r->entries[i].died_ns != REPLAY_NEVER)
            few[others++] = (struct replay_event){r->entries[i].died_ns, (uint32_t)i, REPLAY_DEATH};
    qsort(few, others, sizeof *few, by_moment);
    while (at < r->lookup_count || other < others) {
        struct replay_event next = {0};
        if (at < r->lookup_count)
            next = (struct replay_event){r->lookups[r->order[at]].start_ns, r->order[at], REPLAY_LOOKUP};
        if (at == r->lookup_count || (other < others && by_moment(&few[other], &next) < 0))
            r->events[r->event_count++] = few[other++];
        else
            r->events[r->event_count++] = next, at++;
    }
    span = db_meta_integer(r->db, "span_ns", 0);
    if (r->event_count) {
        r->first_ns = r->events[0].at_ns;
        r->last_ns = r->events[r->event_count - 1].at_ns;
    }
    if (span > r->last_ns && span < REPLAY_NEVER / 4)
        r->last_ns = span;
    ok = true;
out:
    free(few);
    return ok;
}

/* A compile of a code object for which the same process had made code before. */
static bool find_recompiles(struct replay *r)
{
    struct replay_map made = {0};
    bool ok = true;

    for (size_t i = 0; i < r->event_count && ok; i++) {
        struct replay_compile *c;
        int64_t key;
        if (r->events[i].kind != REPLAY_COMPILE)
            continue;
        c = &r->compiles[r->events[i].index];
        key = (int64_t)c->code << 32 | (c->thread == REPLAY_NONE ? (int64_t)REPLAY_NONE : (int64_t)r->threads[c->thread].process);
        c->recompile = replay_map_get(&made, key) != REPLAY_NONE;
        if (c->entry != REPLAY_NONE)
            ok = map_put(&made, key, 1);
    }
    map_free(&made);
    return ok;
}

struct replay *replay_open(struct db *db, int flags)
{
    struct replay *r = calloc(1, sizeof *r);
    struct replay_map owners = {0};
    int checks = 0;
    bool ok;

    if (!r)
        return NULL;
    r->db = db;
    ok = load_processes(r) && load_threads(r) && load_entries(r) && load_compiles(r) && load_lookups(r, flags & REPLAY_TIMES) && load_marks(r);
    if (ok && flags & REPLAY_CHECKS) {
        ok = load_guards(r, &owners);
        if (ok && (checks = load_checks(r, &owners, false, flags & REPLAY_TIMES)) > 0) {
            for (size_t i = 0; i < r->lookup_count; i++)
                r->lookups[i].check_count = 0, r->lookups[i].misplaced = false;
            free(r->checks);
            r->checks = NULL;
            checks = load_checks(r, &owners, true, flags & REPLAY_TIMES);
        }
        ok = ok && !checks;
        r->whole = ok;
    }
    map_free(&owners);
    ok = ok && make_caches(r) && sort_lookups(r) && fill_caches(r) && make_events(r) && find_recompiles(r);
    if (ok && !(r->marks = calloc(r->cache_count + 1, sizeof *r->marks)))
        ok = false;
    if (!ok) {
        replay_free(r);
        return NULL;
    }
    return r;
}

void replay_free(struct replay *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->marks && i < r->cache_count; i++)
        free(r->marks[i]);
    free(r->marks);
    free(r->lookups);
    free(r->checks);
    free(r->order);
    free(r->ranks);
    free(r->entries);
    free(r->codes);
    free(r->threads);
    free(r->processes);
    free(r->caches);
    free(r->compiles);
    free(r->breaks);
    free(r->events);
    free(r->cache_lookups);
    free(r->cache_entries);
    free(r->signatures);
    free(r->failed);
    free(r->times);
    map_free(&r->entry_ids);
    map_free(&r->code_ids);
    map_free(&r->thread_ids);
    map_free(&r->process_ids);
    map_free(&r->cache_ids);
    map_free(&r->compile_ids);
    free(r);
}

/* ---- finding a place ------------------------------------------------------- */

uint32_t replay_lookup_at(const struct replay *r, int64_t lookup_id)
{
    size_t low = 0, high = r->lookup_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->lookups[middle].id < lookup_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->lookup_count && r->lookups[low].id == lookup_id ? (uint32_t)low : REPLAY_NONE;
}

size_t replay_seek(const struct replay *r, int64_t at_ns)
{
    size_t low = 0, high = r->event_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->events[middle].at_ns < at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t replay_event_of(const struct replay *r, enum replay_kind kind, uint32_t index)
{
    int64_t at_ns = kind == REPLAY_LOOKUP    ? r->lookups[index].start_ns
                    : kind == REPLAY_COMPILE ? r->compiles[index].start_ns
                    : kind == REPLAY_DEATH   ? r->entries[index].died_ns
                    : r->breaks[index].compile == REPLAY_NONE ? 0 : r->compiles[r->breaks[index].compile].start_ns;
    struct replay_event wanted = {at_ns, index, kind};
    size_t low = 0, high = r->event_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_moment(&r->events[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- the state of a cache -------------------------------------------------- */

uint32_t replay_place(const struct replay *r, const struct replay_cache *cache, uint32_t entry)
{
    uint32_t low = 0, high = cache->entry_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (by_birth(&cache->entries[middle], &entry, r->entries) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < cache->entry_count && cache->entries[low] == entry ? low : cache->entry_count;
}

/* A checkpoint of a cache: for each entry its hits so far, and the rank of the last of them + 1. They are made
 * when a state of that cache is first wanted, as many lookups apart as keep them smaller than the lookups are. */
static uint32_t mark_every(const struct replay_cache *cache)
{
    return MARK_EVERY > cache->entry_count ? MARK_EVERY : cache->entry_count;
}

static bool marks_make(const struct replay *r, uint32_t index)
{
    const struct replay_cache *cache = &r->caches[index];
    uint32_t every = mark_every(cache), width = cache->entry_count * 2;
    uint32_t *now, *marks;
    size_t count = cache->count / every + 1;

    if (r->marks[index])
        return true;
    marks = malloc((count * width + 1) * sizeof *marks);
    now = calloc(width + 1, sizeof *now);
    if (!marks || !now) {
        free(marks);
        free(now);
        return false;
    }
    for (uint32_t i = 0; i <= cache->count; i++) {
        const struct replay_lookup *l = i < cache->count ? &r->lookups[cache->lookups[i]] : NULL;
        if (i % every == 0)
            memcpy(marks + (size_t)(i / every) * width, now, width * sizeof *now);
        if (l && l->outcome == CALL_HIT && l->entry != REPLAY_NONE) {
            uint32_t place = replay_place(r, cache, l->entry);
            if (place < cache->entry_count) {
                now[place * 2]++;
                now[place * 2 + 1] = i + 1;
            }
        }
    }
    free(now);
    r->marks[index] = marks;
    return true;
}

static int by_turn(const void *a, const void *b)
{
    const struct replay_slot *x = a, *y = b;

    if (x->dead != y->dead)
        return x->dead ? 1 : -1;
    if (x->touched != y->touched)
        return x->touched > y->touched ? -1 : 1;
    return (x->entry < y->entry) - (x->entry > y->entry);
}

static bool state_add(struct replay_state *state, uint32_t entry)
{
    if (state->count == state->room) {
        size_t room = state->room ? state->room * 2 : 16;
        struct replay_slot *more = realloc(state->slots, room * sizeof *more);
        if (!more)
            return false;
        state->slots = more;
        state->room = room;
    }
    state->slots[state->count++] = (struct replay_slot){.entry = entry, .last_hit_ns = -1};
    return true;
}

/* Cache INDEX before its lookup number RANK, at AT_NS: into SLOTS, one for each of the first COUNT entries by birth. */
static bool state_fill(const struct replay *r, uint32_t index, uint32_t rank, struct replay_slot *slots, uint32_t count, int depth)
{
    const struct replay_cache *cache = &r->caches[index];
    uint32_t every = mark_every(cache), width = cache->entry_count * 2, from = rank / every * every;
    const uint32_t *mark;

    if (cache->parent != REPLAY_NONE && depth < FORKS_MAX) { /* as it was at the fork */
        const struct replay_cache *parent = &r->caches[cache->parent];
        int64_t fork_ns = r->processes[cache->process].start_ns;
        struct replay_slot *theirs = calloc(parent->entry_count + 1, sizeof *theirs);
        uint32_t low = 0, high = parent->count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (r->lookups[parent->lookups[middle]].start_ns < fork_ns)
                low = middle + 1;
            else
                high = middle;
        }
        if (!theirs || !state_fill(r, cache->parent, low, theirs, parent->entry_count, depth + 1)) {
            free(theirs);
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t place = replay_place(r, parent, cache->entries[i]);
            if (place < parent->entry_count && theirs[place].hits) {
                slots[i].hits = theirs[place].hits;
                slots[i].last_hit_ns = theirs[place].last_hit_ns;
            }
        }
        free(theirs);
    }
    if (!marks_make(r, index))
        return false;
    mark = r->marks[index] + (size_t)(rank / every) * width;
    for (uint32_t i = 0; i < count; i++) {
        slots[i].hits += mark[i * 2];
        if (mark[i * 2 + 1])
            slots[i].last_hit_ns = r->lookups[cache->lookups[mark[i * 2 + 1] - 1]].start_ns;
    }
    for (uint32_t i = from; i < rank; i++) {
        const struct replay_lookup *l = &r->lookups[cache->lookups[i]];
        uint32_t place;
        if (l->outcome != CALL_HIT || l->entry == REPLAY_NONE)
            continue;
        place = replay_place(r, cache, l->entry);
        if (place < count) {
            slots[place].hits++;
            slots[place].last_hit_ns = l->start_ns;
        }
    }
    return true;
}

static bool state_make(const struct replay *r, uint32_t index, uint32_t rank, int64_t at_ns, bool included, struct replay_state *state)
{
    const struct replay_cache *cache = &r->caches[index];
    bool insertion = cache->process != REPLAY_NONE && r->processes[cache->process].insertion;

    state->count = 0;
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        int64_t born = r->entries[cache->entries[i]].born_ns;
        if (born > at_ns || (born == at_ns && !included))
            break;
        if (!state_add(state, cache->entries[i]))
            return false;
    }
    if (!state_fill(r, index, rank, state->slots, (uint32_t)state->count, 0))
        return false;
    for (size_t i = 0; i < state->count; i++) {
        struct replay_slot *slot = &state->slots[i];
        const struct replay_entry *e = &r->entries[slot->entry];
        slot->dead = e->died_ns < at_ns || (e->died_ns == at_ns && included);
        slot->touched = slot->dead ? -e->died_ns /* the last one to die is the last */
                        : e->pinned ? REPLAY_NEVER - e->born_ns /* in front, the oldest first */
                        : insertion ? -e->born_ns
                        : slot->last_hit_ns > e->born_ns ? slot->last_hit_ns : e->born_ns;
    }
    if (state->count)
        qsort(state->slots, state->count, sizeof *state->slots, by_turn);
    return true;
}

bool replay_state_at(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct replay_lookup *l = &r->lookups[lookup];

    return state_make(r, l->cache, r->ranks[lookup], l->start_ns, false, state);
}

bool replay_state_when(const struct replay *r, uint32_t cache, int64_t at_ns, struct replay_state *state)
{
    const struct replay_cache *c = &r->caches[cache];
    uint32_t low = 0, high = c->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->lookups[c->lookups[middle]].start_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return state_make(r, cache, low, at_ns, true, state);
}

void replay_state_free(struct replay_state *state)
{
    free(state->slots);
    *state = (struct replay_state){0};
}
