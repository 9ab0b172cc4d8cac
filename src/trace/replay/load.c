/* trace/replay/load.c -- the decisions of a trace read and put in order. See replay.h.
 *
 * Runs in: the viewer.
 *
 * Everything here comes from a file that anybody may have made: ids that lead nowhere become REPLAY_NONE, times may
 * be in any order, and parents must be older than their children. */
#include "trace/replay/load.h"

#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/find_code.h"
#include "lib/progress.h"
#include "trace/remedy.h"
#include "lib/say.h"

enum {
    FORKS_MAX = 64, /* generations of processes that hand a cache on */
    TICK_ROWS = 1 << 14,
    CACHE_KIB = 8192, /* of the file: tables are read from end to end */
};

/* A new item, zeroed, at the end of ARRAY, an array of COUNT items of SIZE; room doubles. NULL: no memory. */
void *replay_grow(void *array, size_t *count, size_t size)
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

int64_t replay_integer(struct query *query, int column, int64_t otherwise)
{
    int64_t value = query_integer(query, column);

    return value || query_type(query, column) != QUERY_NULL ? value : otherwise; /* seldom 0: most need one call */
}

/* Times of a hostile trace must not overflow when they are added and compared. */
int64_t replay_time(struct query *query, int column, int64_t otherwise)
{
    int64_t ns = replay_integer(query, column, otherwise);

    return ns < 0 ? 0 : ns > REPLAY_NEVER / 4 && ns != otherwise ? REPLAY_NEVER / 4 : ns;
}

/* ---- loading --------------------------------------------------------------- */

static bool load_processes(struct replay *r)
{
    struct query *query =
        db_query(r->db, find_column(r->db, "process", "torch_version")
                            ? "SELECT process_id, start_ns, parent_process_id, torch_version IS NOT NULL,"
                              " torch_version GLOB '2.[0-9].*' OR torch_version GLOB '2.1[0-2].*' FROM process"
                              " ORDER BY process_id"
                            : "SELECT process_id, start_ns, parent_process_id, 0, 0 FROM process ORDER BY process_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_process *p = GROW(r, processes, process_count);
        if (!p)
            ok = false;
        else
            *p = (struct replay_process){.id = query_integer(query, 0),
                                         .start_ns = replay_time(query, 1, 0),
                                         .lost_ns = REPLAY_NEVER,
                                         .parent = replay_map_get(&r->process_ids, replay_integer(query, 2, -1)),
                                         .torch = query_integer(query, 3),
                                         .floats_later = query_integer(query, 4)};
        ok = ok && replay_map_put(&r->process_ids, p->id, (uint32_t)(r->process_count - 1));
    }
    if (!query_close(query) || !ok)
        return false;
    query = db_query(r->db, "SELECT process_id, MIN(COALESCE(at_ns, 0)) FROM loss WHERE cause NOT LIKE 'stall:%'"
                            " AND (events IS NULL OR events > 0) GROUP BY process_id");
    while (query_step(query)) {
        uint32_t at = replay_map_get(&r->process_ids, query_integer(query, 0));
        if (at != REPLAY_NONE)
            r->processes[at].lost_ns = replay_time(query, 1, 0);
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
            *t = (struct replay_thread){query_integer(query, 0),
                                        replay_map_get(&r->process_ids, query_integer(query, 1))};
        ok = t && replay_map_put(&r->thread_ids, t->id, (uint32_t)(r->thread_count - 1));
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
    return replay_map_put(&r->code_ids, code_id, at) ? at : REPLAY_NONE;
}

static bool load_entries(struct replay *r)
{
    bool region = find_column(r->db, "cache_entry", "region_id");
    struct query *query = db_query(r->db, region ? "SELECT cache_entry_id, code_id, born_ns, died_ns, region_id, "
                                                   "compile_id, label = 'precompiled' AND compile_id IS NULL,"
                                                   " death_cause LIKE 'reset%' OR death_cause LIKE 'dropped%', "
                                                   "guard_count FROM cache_entry ORDER BY cache_entry_id"
                                                 : "SELECT cache_entry_id, code_id, born_ns, died_ns, NULL, "
                                                   "compile_id, label = 'precompiled' AND compile_id IS NULL,"
                                                   " death_cause LIKE 'reset%' OR death_cause LIKE 'dropped%', "
                                                   "guard_count FROM cache_entry ORDER BY cache_entry_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_entry *e = GROW(r, entries, entry_count);
        if (!e)
            ok = false;
        else
            *e = (struct replay_entry){.id = query_integer(query, 0),
                                       .code = code_index(r, replay_integer(query, 1, -1)),
                                       .born_ns = replay_time(query, 2, 0),
                                       .died_ns = replay_time(query, 3, REPLAY_NEVER),
                                       .region = replay_integer(query, 4, -1),
                                       .compile_id = replay_integer(query, 5, -1),
                                       .process = REPLAY_NONE,
                                       .pinned = query_integer(query, 6),
                                       .reset = query_integer(query, 7),
                                       .guards = replay_integer(query, 8, -1)};
        ok = ok && e->code != REPLAY_NONE && replay_map_put(&r->entry_ids, e->id, (uint32_t)(r->entry_count - 1));
    }
    return query_close(query) && ok;
}

static bool load_compiles(struct replay *r)
{
    struct query *query = db_query(
        r->db,
        "SELECT compile_id, start_ns, code_id, thread_id, cache_entry_id, end_ns FROM compile ORDER BY compile_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct replay_compile *c = GROW(r, compiles, compile_count);
        if (!c)
            ok = false;
        else
            *c = (struct replay_compile){.id = query_integer(query, 0),
                                         .start_ns = replay_time(query, 1, 0),
                                         .code = code_index(r, replay_integer(query, 2, -1)),
                                         .thread = replay_map_get(&r->thread_ids, replay_integer(query, 3, -1)),
                                         .entry = replay_map_get(&r->entry_ids, replay_integer(query, 4, -1)),
                                         .end_ns = replay_time(query, 5, 0)};
        ok = ok && c->code != REPLAY_NONE && replay_map_put(&r->compile_ids, c->id, (uint32_t)(r->compile_count - 1));
        if (ok && c->entry != REPLAY_NONE && c->thread != REPLAY_NONE && r->entries[c->entry].process == REPLAY_NONE)
            r->entries[c->entry].process = r->threads[c->thread].process;
    }
    if (!query_close(query) || !ok)
        return false;
    query = db_query(r->db, "SELECT graph_break_id, compile_id FROM graph_break ORDER BY graph_break_id");
    while (ok && query_step(query)) {
        struct replay_break *b = GROW(r, breaks, break_count);
        if (b)
            *b = (struct replay_break){query_integer(query, 0),
                                       replay_map_get(&r->compile_ids, replay_integer(query, 1, -1))};
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
    return replay_map_put(&r->cache_ids, key, at) ? at : REPLAY_NONE;
}

static bool load_lookups(struct replay *r, bool times)
{
    int64_t rows = db_integer(r->db, 0, "SELECT COUNT(*) FROM lookup");
    struct query *query =
        db_query(r->db, times ? "SELECT lookup_id, thread_id, code_id, start_ns, duration_ns, outcome, cache_entry_id,"
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
        if (!l || (times && !replay_grow(&r->signatures, &signatures, sizeof *r->signatures))) {
            ok = false;
            break;
        }
        if (times)
            r->signatures[signatures - 1] = replay_integer(query, 8, -1);
        thread = replay_integer(query, 1, -1);
        code = code_index(r, replay_integer(query, 2, -1));
        l->id = query_integer(query, 0);
        l->thread = replay_map_get(&r->thread_ids, thread);
        l->start_ns = replay_time(query, 3, 0);
        l->end_ns = l->start_ns + replay_time(query, 4, 0);
        thread = replay_integer(query, 5, -1);
        l->outcome = thread < 0 || thread >= OUTCOMES ? REPLAY_OUTCOME_UNKNOWN : (uint8_t)thread;
        checked = query_integer(query, 6); /* 0 may be NULL: the type is asked only then */
        l->named = checked || query_type(query, 6) != QUERY_NULL;
        l->entry = l->named ? replay_map_get(&r->entry_ids, checked) : REPLAY_NONE;
        checked = query_integer(query, 7);
        l->observed = !checked && query_type(query, 7) == QUERY_NULL;
        l->checked = checked < 0 || checked > UINT16_MAX ? UINT16_MAX : (uint16_t)checked;
        l->cache = code == REPLAY_NONE
                       ? REPLAY_NONE
                       : cache_index(r, code, l->thread == REPLAY_NONE ? REPLAY_NONE : r->threads[l->thread].process);
        ok = l->cache != REPLAY_NONE;
        if (ok && l->outcome == OUTCOME_COMPILED && l->entry != REPLAY_NONE && r->entries[l->entry].process == REPLAY_NONE)
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
    query = db_query(r->db,
                     "SELECT code_id, MIN(at_ns) FROM code_mark WHERE action IN ('skip', 'run_only') GROUP BY code_id");
    while (query_step(query)) {
        uint32_t at = replay_map_get(&r->code_ids, query_integer(query, 0));
        if (at != REPLAY_NONE)
            r->codes[at].marked_ns = replay_time(query, 1, 0);
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

/* Which entries did forks hand on? A process that got one may end it without a lookup of its code. */
static void find_shared(struct replay *r)
{
    for (size_t i = 0; i < r->process_count; i++) {
        r->processes[i].first_fork_ns = REPLAY_NEVER;
        r->processes[i].last_fork_ns = 0;
    }
    for (size_t i = 0; i < r->process_count; i++)
        if (r->processes[i].parent != REPLAY_NONE) {
            struct replay_process *parent = &r->processes[r->processes[i].parent];
            int64_t fork_ns = r->processes[i].start_ns;
            if (fork_ns < parent->first_fork_ns)
                parent->first_fork_ns = fork_ns;
            if (fork_ns > parent->last_fork_ns)
                parent->last_fork_ns = fork_ns;
        }
    for (size_t i = 0; i < r->entry_count; i++) {
        struct replay_entry *e = &r->entries[i];
        e->shared = e->process == REPLAY_NONE || (e->born_ns < r->processes[e->process].last_fork_ns &&
                                                  e->died_ns >= r->processes[e->process].first_fork_ns);
    }
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
                if (filling)
                    cache->entries[cache->entry_count++] = by_code[k];
                at++;
            }
            if (filling)
                qsort_r(cache->entries, cache->entry_count, sizeof *cache->entries, replay_by_birth, r->entries);
        }
        if (!filling && !(r->cache_entries = malloc(((room = at) + 1) * sizeof *r->cache_entries)))
            goto out;
    }
    for (size_t i = 0; i < r->cache_count; i++) {
        uint32_t process = r->caches[i].process;
        for (int generation = 0; process != REPLAY_NONE && generation < FORKS_MAX && r->caches[i].parent == REPLAY_NONE;
             generation++) {
            process = r->processes[process].parent;
            if (process != REPLAY_NONE)
                r->caches[i].parent =
                    replay_map_get(&r->cache_ids, (int64_t)r->caches[i].code << 32 | (int64_t)process);
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
        few[others++] =
            (struct replay_event){r->breaks[i].compile == REPLAY_NONE ? 0 : r->compiles[r->breaks[i].compile].start_ns,
                                  (uint32_t)i, REPLAY_BREAK};
    for (size_t i = 0; i < r->entry_count; i++)
        if (r->entries[i].died_ns != REPLAY_NEVER)
            few[others++] = (struct replay_event){r->entries[i].died_ns, (uint32_t)i, REPLAY_DEATH};
    qsort(few, others, sizeof *few, replay_by_moment);
    while (at < r->lookup_count || other < others) {
        struct replay_event next = {0};
        if (at < r->lookup_count)
            next = (struct replay_event){r->lookups[r->order[at]].start_ns, r->order[at], REPLAY_LOOKUP};
        if (at == r->lookup_count || (other < others && replay_by_moment(&few[other], &next) < 0))
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
        key = (int64_t)c->code << 32 |
              (c->thread == REPLAY_NONE ? (int64_t)REPLAY_NONE : (int64_t)r->threads[c->thread].process);
        c->recompile = replay_map_get(&made, key) != REPLAY_NONE;
        if (c->entry != REPLAY_NONE)
            ok = replay_map_put(&made, key, 1);
    }
    replay_map_free(&made);
    return ok;
}

/* SQLite would keep the pages that it has read. */
static void cache_limit(struct db *db)
{
    char sql[48];
    struct query *query;

    snprintf(sql, sizeof sql, "PRAGMA cache_size = -%d", CACHE_KIB);
    query = db_query(db, sql);
    query_step(query);
    query_close(query);
}

struct replay *replay_open(struct db *db, int flags)
{
    struct replay *r = calloc(1, sizeof *r);
    struct check_reader *reader = NULL;
    bool ok;

    if (!r)
        return NULL;
    r->db = db;
    cache_limit(db);
    ok = load_processes(r) && load_threads(r) && load_entries(r);
    if (ok && flags & REPLAY_CHECKS)
        ok = (reader = check_reader_begin(r, flags & REPLAY_TIMES)) != NULL;
    ok = ok && load_compiles(r) && load_lookups(r, flags & REPLAY_TIMES) && load_marks(r);
    if (reader)
        r->whole = check_reader_end(reader, r);
    ok = ok && (r->whole || !(flags & REPLAY_CHECKS));
    if (ok)
        find_shared(r);
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
    replay_map_free(&r->entry_ids);
    replay_map_free(&r->code_ids);
    replay_map_free(&r->thread_ids);
    replay_map_free(&r->process_ids);
    replay_map_free(&r->cache_ids);
    replay_map_free(&r->compile_ids);
    free(r);
}
