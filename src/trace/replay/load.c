/* trace/replay/load.c -- the decisions of a trace read and put in order. See replay.h.
 *
 * Everything here comes from a file that anybody may have made: ids that lead nowhere become
 * REPLAY_NONE, times may be in any order, and parents must be older than their children. */
#include "lib/bounds.h"
#include "lib/say.h"
#include "replay.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/scan.h"

enum {
    FORKS_MAX = 64, /* generations of processes that hand a cache on */
    TICK_ROWS = 1 << 14,
};

/* ---- rows: each function takes one of schemas/replay.sql ----------------- */

/* A new item of LIST whose row id is ID, entered in MAP by its index. */
#define ADD(list, map, id)                          \
    ({                                              \
        *map_put(map, id) = (int64_t)(list)->count; \
        if ((list)->count >= REPLAY_CHECK_NONE)     \
            bounds_memory_over();                   \
        list_add(list);                             \
    })

/* Times of a hostile trace must not overflow when they are added and compared. */
static int64_t time_of(int64_t ns)
{
    if (ns < 0)
        return 0;
    return ns > REPLAY_NEVER / 4 ? REPLAY_NEVER / 4 : ns;
}

/* Column AT, a time, or never where it is NULL. */
static int64_t time_if(const int64_t *v, unsigned nulls, int at)
{
    return nulls >> at & 1 ? REPLAY_NEVER : time_of(v[at]);
}

static bool process_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    struct replay_process p = {.id = v[0],
                               .start_ns = time_of(v[1]),
                               .parent = nulls & 1 << 2 ? REPLAY_NONE
                                                        : replay_index(&r->process_ids, v[2]),
                               .torch = v[3],
                               .lost_ns = time_if(v, nulls, 4),
                               .first_fork_ns = REPLAY_NEVER};
    struct replay_process *parent = p.parent == REPLAY_NONE ? NULL : &r->processes.at[p.parent];

    if (parent && p.start_ns < parent->first_fork_ns)
        parent->first_fork_ns = p.start_ns;
    if (parent && p.start_ns > parent->last_fork_ns)
        parent->last_fork_ns = p.start_ns;
    *ADD(&r->processes, &r->process_ids, v[0]) = p;
    return true;
}

static bool thread_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;

    *ADD(&r->threads, &r->thread_ids, v[0]) =
        (struct replay_thread){v[0], replay_index(&r->process_ids, v[1])};
    return true;
}

/* The index of the code object with row id CODE_ID, made if it is new. */
static uint32_t code_index(struct replay *r, int64_t code_id)
{
    uint32_t at = replay_index(&r->code_ids, code_id);

    if (at != REPLAY_NONE)
        return at;
    *ADD(&r->codes, &r->code_ids, code_id) = (struct replay_code){code_id, REPLAY_NEVER};
    return (uint32_t)(r->codes.count - 1);
}

static bool entry_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;

    *ADD(&r->entries, &r->entry_ids, v[0]) = (struct replay_entry){.id = v[0],
                                                                   .code = code_index(r, v[1]),
                                                                   .born_ns = time_of(v[2]),
                                                                   .died_ns = time_if(v, nulls, 3),
                                                                   .region = v[4],
                                                                   .compile_id = v[5],
                                                                   .process = REPLAY_NONE,
                                                                   .pinned = v[6],
                                                                   .reset = v[7],
                                                                   .guards = v[8]};
    return true;
}

/* ENTRY, which may be REPLAY_NONE, was made in PROCESS, unless another one is known. */
static void made_in(struct replay *r, uint32_t entry, uint32_t process)
{
    if (entry != REPLAY_NONE && r->entries.at[entry].process == REPLAY_NONE)
        r->entries.at[entry].process = process;
}

static uint32_t process_of(const struct replay *r, uint32_t thread)
{
    return thread == REPLAY_NONE ? REPLAY_NONE : r->threads.at[thread].process;
}

static bool compile_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    struct replay_compile *c = ADD(&r->compiles, &r->compile_ids, v[0]);

    *c = (struct replay_compile){.id = v[0],
                                 .start_ns = time_of(v[1]),
                                 .code = code_index(r, v[2]),
                                 .thread = replay_index(&r->thread_ids, v[3]),
                                 .entry = replay_index(&r->entry_ids, v[4]),
                                 .end_ns = time_of(v[5]),
                                 .recompile = v[6]};
    made_in(r, c->entry, process_of(r, c->thread));
    return true;
}

static bool break_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;

    *list_add(&r->breaks) = (struct replay_break){v[0], replay_index(&r->compile_ids, v[1])};
    return true;
}

/* The cache of CODE in PROCESS, made if it is new. */
static uint32_t cache_index(struct replay *r, uint32_t code, uint32_t process)
{
    int64_t key = replay_cache_key(code, process);
    uint32_t at = replay_index(&r->cache_ids, key);

    if (at != REPLAY_NONE)
        return at;
    *ADD(&r->caches, &r->cache_ids, key) =
        (struct replay_cache){.code = code, .process = process, .parent = REPLAY_NONE};
    return (uint32_t)(r->caches.count - 1);
}

struct lookups {
    struct replay *r;
    struct progress progress;
    int64_t rows;
};

/* A column of a lookup that is larger than its field. */
static uint16_t checked_of(int64_t entries_checked)
{
    bool fits = entries_checked >= 0 && entries_checked <= UINT16_MAX;

    return fits ? (uint16_t)entries_checked : UINT16_MAX;
}

static bool lookup_row(void *context, const int64_t *values, unsigned nulls)
{
    const struct row_lookup *row = (const void *)values;
    struct lookups *reading = context;
    struct replay *r = reading->r;
    uint32_t thread = replay_index(&r->thread_ids, (int64_t)row->thread_id);
    uint32_t process = process_of(r, thread);
    uint32_t code = code_index(r, (int64_t)row->code_id);
    bool has_outcome = !row_null(nulls, lookup, outcome);
    bool in_vocabulary = row->outcome >= 0 && row->outcome < OUTCOMES;
    bool named = !row_null(nulls, lookup, cache_entry_id);
    struct replay_lookup *l = list_add(&r->lookups);

    if (r->lookups.count >= REPLAY_NONE)
        bounds_memory_over();
    l->id = (int64_t)row->lookup_id;
    l->start_ns = time_of(row->start_ns);
    l->end_ns = l->start_ns + time_of(row->duration_ns);
    l->signature = (int64_t)row->signature_id;
    l->cache = cache_index(r, code, process);
    l->thread = thread;
    l->named = named;
    l->entry = named ? replay_index(&r->entry_ids, (int64_t)row->cache_entry_id) : REPLAY_NONE;
    l->observed = row_null(nulls, lookup, entries_checked);
    l->checked = checked_of(row->entries_checked);
    l->outcome = REPLAY_OUTCOME_UNKNOWN;
    if (has_outcome && in_vocabulary)
        l->outcome = (uint8_t)row->outcome;
    if (l->outcome == OUTCOME_COMPILED)
        made_in(r, l->entry, process);
    if (!(r->lookups.count & (TICK_ROWS - 1)))
        progress_tick(&reading->progress, (int64_t)r->lookups.count, reading->rows);
    return true;
}

static void lookups_read(struct replay *r)
{
    struct lookups reading = {r, progress_begin("reading lookups"),
                              db_integer(r->db, 0, "SELECT MAX(lookup_id) FROM lookup")};

    scan_rows(r->db, TABLE_lookup, lookup_row, &reading);
    progress_end(&reading.progress);
}

static bool mark_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    uint32_t code = replay_index(&r->code_ids, v[0]);

    if (code != REPLAY_NONE && time_of(v[1]) < r->codes.at[code].marked_ns)
        r->codes.at[code].marked_ns = time_of(v[1]);
    return true;
}

/* ---- what each lookup tried ---------------------------------------------- */

struct check_reader {
    const struct replay *r; /* borrowed */
    bool unsorted;
    struct map owners; /* of guards: index of the entry */
    LIST(struct replay_check) checks;
    LIST(int64_t) lookups; /* by check: row id of its lookup */
    struct replay_times *times;
    int64_t position; /* of the next check of the lookup */
};

static bool guard_row(void *context, const int64_t *v, unsigned nulls)
{
    struct check_reader *c = context;
    uint32_t entry = replay_index(&c->r->entry_ids, v[1]);

    if (entry != REPLAY_NONE)
        *map_put(&c->owners, v[0]) = entry;
    return true;
}

/* The columns of a check. */
enum { C_LOOKUP, C_ENTRY, C_RESULT, C_FAILED, C_POSITION, C_GUARDS, C_NS };

static bool is_null(unsigned nulls, int column)
{
    return nulls & 1u << column;
}

/* Is the guard that failed in row V none of ENTRY's, or did none fail? */
static bool is_failed_wrong(const struct check_reader *c, const int64_t *v, uint32_t entry)
{
    return v[C_RESULT] == CHECK_PASS || replay_index(&c->owners, v[C_FAILED]) != entry;
}

/* Add the time of a check of ENTRY. */
static void check_time(struct replay_times *times, int64_t result, int64_t ns)
{
    times->ns[result] += ns < INT32_MAX ? ns : INT32_MAX; /* so that no sum overflows */
    times->count[result]++;
}

static bool check_row(void *context, const int64_t *v, unsigned nulls)
{
    struct check_reader *c = context;
    uint32_t entry = replay_index(&c->r->entry_ids, v[C_ENTRY]);
    bool known = entry != REPLAY_NONE;
    bool failed = !is_null(nulls, C_FAILED);
    int64_t *before = c->lookups.count ? &c->lookups.at[c->lookups.count - 1] : NULL;
    int64_t guards = known ? c->r->entries.at[entry].guards : -1;
    bool none_ran = guards > 0 && !v[C_GUARDS] && !is_null(nulls, C_GUARDS);
    bool is_timed = known && !is_null(nulls, C_NS);
    struct replay_check check = {.entry = known ? entry : REPLAY_CHECK_NONE,
                                 .result = (unsigned)v[C_RESULT] & 7,
                                 .failed = v[C_FAILED]};

    if (before && *before > v[C_LOOKUP]) {
        c->unsorted = true;
        return false;
    }
    if (!before || *before != v[C_LOOKUP])
        c->position = 0;
    check.bad_guard = failed && is_failed_wrong(c, v, entry);
    if (guards >= 0 && v[C_GUARDS] > guards)
        check.bad_guard = true;
    check.misplaced = v[C_POSITION] != c->position || is_null(nulls, C_POSITION);
    c->position++;
    if (v[C_RESULT] == CHECK_PASS && none_ran)
        check.failed = REPLAY_IN_PART;
    *list_add(&c->checks) = check;
    *list_add(&c->lookups) = v[C_LOOKUP];
    if (is_timed && v[C_RESULT] <= CHECK_PASS)
        check_time(&c->times[entry], v[C_RESULT], time_of(v[C_NS]));
    return true;
}

/* Checks and lookups are both in the order of lookup ids. */
static void checks_join(struct check_reader *c, struct replay *r)
{
    size_t at = 0;
    size_t kept = 0;

    for (size_t i = 0; i < c->checks.count; i++) {
        struct replay_lookup *l;
        while (at < r->lookups.count && r->lookups.at[at].id < c->lookups.at[i])
            at++;
        if (at == r->lookups.count || r->lookups.at[at].id != c->lookups.at[i]) {
            r->orphans++;
            continue;
        }
        l = &r->lookups.at[at];
        if (!l->check_count)
            l->checks = (uint32_t)kept;
        if (l->check_count < UINT16_MAX)
            l->check_count++;
        else
            c->checks.at[kept - 1].misplaced = true;
        c->checks.at[kept++] = c->checks.at[i];
    }
    c->checks.count = kept;
}

/* All of it into R, whose lookups are known. */
static void checks_read(struct replay *r)
{
    struct check_reader reader = {.r = r};
    struct check_reader *c = &reader;
    size_t times = (r->entries.count + 1) * sizeof *c->times;

    c->times = calloc(1, times);
    db_each(r->db, schema_statement("replay/guards"), guard_row, c);
    db_each(r->db, schema_statement("replay/checks"), check_row, c);
    if (c->unsorted) {
        c->checks.count = c->lookups.count = 0;
        memset(c->times, 0, times);
        db_each(r->db, schema_statement("replay/checks-sorted"), check_row, c);
    }
    checks_join(c, r);
    memcpy(&r->checks, &c->checks, sizeof r->checks);
    r->times = c->times;
    list_free(&c->lookups);
    map_free(&c->owners);
}

/* ---- order --------------------------------------------------------------- */

static int by_death(const void *a, const void *b, void *context)
{
    const struct replay_entry *entries = context;

    return list_order(entries[*(const uint32_t *)a].died_ns, entries[*(const uint32_t *)b].died_ns)
               ?: replay_by_birth(a, b, context);
}

static void sort_lookups(struct replay *r)
{
    bool sorted = true;

    r->order = malloc((r->lookups.count + 1) * sizeof *r->order);
    for (size_t i = 0; i < r->lookups.count; i++) {
        r->order[i] = (uint32_t)i;
        sorted = sorted && (!i || r->lookups.at[i - 1].start_ns <= r->lookups.at[i].start_ns);
    }
    if (!sorted)
        qsort_r(r->order, r->lookups.count, sizeof *r->order, replay_by_time, r->lookups.at);
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

/* Which entries did forks hand on? A process that got one may end it without a lookup of its code.
 * */
static void find_shared(struct replay *r)
{
    for (size_t i = 0; i < r->entries.count; i++) {
        struct replay_entry *e = &r->entries.at[i];
        const struct replay_process *maker =
            e->process == REPLAY_NONE ? NULL : &r->processes.at[e->process];
        e->shared =
            !maker || (e->born_ns < maker->last_fork_ns && e->died_ns >= maker->first_fork_ns);
    }
}

/* The cache that LOOKUP asked. */
static struct replay_cache *cache_of(const struct replay *r, size_t lookup)
{
    return &r->caches.at[r->lookups.at[lookup].cache];
}

/* Give each cache its lookups. */
static void fill_lookups(struct replay *r)
{
    size_t at = 0;

    r->cache_lookups = malloc((r->lookups.count + 1) * sizeof *r->cache_lookups);
    for (size_t i = 0; i < r->lookups.count; i++)
        cache_of(r, i)->count++;
    for (size_t i = 0; i < r->caches.count; i++) {
        struct replay_cache *cache = &r->caches.at[i];
        cache->lookups = r->cache_lookups + at;
        at += cache->count;
        cache->count = 0;
    }
    for (size_t i = 0; i < r->lookups.count; i++) {
        uint32_t lookup = r->order[i];
        struct replay_cache *cache = cache_of(r, lookup);
        cache->lookups[cache->count] = lookup;
        cache->count++;
    }
}

/* The cache of the same code in the nearest process that forked towards CACHE's and has one. */
static uint32_t parent_cache(const struct replay *r, const struct replay_cache *cache)
{
    uint32_t process = cache->process;

    for (int generation = 0; process != REPLAY_NONE && generation < FORKS_MAX; generation++) {
        uint32_t parent = r->processes.at[process].parent;
        uint32_t found = REPLAY_NONE;
        if (parent != REPLAY_NONE)
            found = replay_index(&r->cache_ids, replay_cache_key(cache->code, parent));
        if (found != REPLAY_NONE)
            return found;
        process = parent;
    }
    return REPLAY_NONE;
}

typedef LIST(uint32_t) index_list;

/* Add the entries that CACHE has at times to ALL. BY_CODE: all entries, by code and birth. */
static void add_entries(struct replay *r, struct replay_cache *cache, const uint32_t *by_code,
                        index_list *all)
{
    const size_t count = r->entries.count;
    size_t next = sorted_count(count, k, r->entries.at[by_code[k]].code < cache->code);

    for (; next < count; next++) {
        const struct replay_entry *e = &r->entries.at[by_code[next]];
        if (e->code != cache->code)
            break;
        if (inherits(r, cache->process, e->process, e->born_ns)) {
            *list_add(all) = by_code[next];
            cache->entry_count++;
        }
    }
}

/* Give each cache its entries, and its parent. */
static void fill_entries(struct replay *r)
{
    const size_t count = r->entries.count;
    uint32_t *by_code = malloc((count + 1) * sizeof *by_code);
    index_list all = {0};
    size_t at = 0;

    for (size_t i = 0; i < count; i++)
        by_code[i] = (uint32_t)i;
    qsort_r(by_code, count, sizeof *by_code, replay_by_birth, r->entries.at);
    for (size_t i = 0; i < r->caches.count; i++) {
        struct replay_cache *cache = &r->caches.at[i];
        add_entries(r, cache, by_code, &all);
        cache->parent = parent_cache(r, cache);
    }
    free(by_code);
    r->cache_entries = all.at;
    r->cache_deaths = malloc((all.count + 1) * sizeof *r->cache_deaths);
    if (!all.count)
        return;
    memcpy(r->cache_deaths, all.at, all.count * sizeof *all.at);
    for (size_t i = 0; i < r->caches.count; i++) {
        struct replay_cache *cache = &r->caches.at[i];
        cache->entries = r->cache_entries + at;
        cache->deaths = r->cache_deaths + at;
        qsort_r(cache->deaths, cache->entry_count, sizeof *cache->deaths, by_death, r->entries.at);
        at += cache->entry_count;
    }
}

typedef LIST(struct replay_event) event_list;

/* Add the events of KIND, COUNT rows, to FEW. */
static void add_events(const struct replay *r, enum replay_kind kind, size_t count, event_list *few)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t at_ns = replay_about(r, kind, i).at_ns;
        if (at_ns != REPLAY_NEVER)
            *list_add(few) = (struct replay_event){at_ns, i, kind};
    }
}

/* Fill the events with the lookups by time, and FEW others, which are sorted. */
static void merge_events(struct replay *r, const event_list *few)
{
    size_t lookups = 0;
    size_t others = 0;

    for (size_t i = 0; i < r->events.count; i++) {
        const struct replay_event *other = NULL;
        struct replay_event *event = &r->events.at[i];
        if (others < few->count)
            other = &few->at[others];
        if (lookups < r->lookups.count) {
            uint32_t lookup = r->order[lookups];
            *event = (struct replay_event){r->lookups.at[lookup].start_ns, lookup, REPLAY_LOOKUP};
        }
        if (lookups == r->lookups.count || (other && replay_by_moment(other, event) < 0)) {
            *event = *other;
            others++;
        } else {
            lookups++;
        }
    }
}

/* Lookups are sorted already: the few others are, and then both are merged. */
static void make_events(struct replay *r)
{
    event_list few = {0};
    int64_t span = db_meta_integer(r->db, "span_ns", 0);
    size_t count;

    add_events(r, REPLAY_COMPILE, r->compiles.count, &few);
    add_events(r, REPLAY_BREAK, r->breaks.count, &few);
    add_events(r, REPLAY_DEATH, r->entries.count, &few);
    list_sort(&few, replay_by_moment);
    count = few.count + r->lookups.count;
    if (count)
        list_add_many(&r->events, count);
    merge_events(r, &few);
    list_free(&few);
    if (count)
        r->last_ns = r->events.at[count - 1].at_ns;
    if (span > r->last_ns && span < REPLAY_NEVER / 4)
        r->last_ns = span;
}

/* ---- all of it ----------------------------------------------------------- */

struct replay *replay_open(struct db *db, bool checks)
{
    struct replay *r = calloc(1, sizeof *r);

    r->db = db;
    /* tables are read from end to end: no use to keep more pages */
    db_integer(db, 0, "PRAGMA cache_size = -8192");
    db_each(db, schema_statement("replay/processes"), process_row, r);
    db_each(db, schema_statement("replay/threads"), thread_row, r);
    db_each(db, schema_statement("replay/entries"), entry_row, r);
    db_each(db, schema_statement("replay/compiles"), compile_row, r);
    db_each(db, schema_statement("replay/breaks"), break_row, r);
    lookups_read(r);
    db_each(db, schema_statement("replay/marks"), mark_row, r);
    if (checks)
        checks_read(r);
    if (db_failed(db)) {
        replay_free(r);
        return NULL;
    }
    find_shared(r);
    /* caches that no lookup asked, for the deaths in them */
    for (uint32_t i = 0; i < r->entries.count; i++)
        cache_index(r, r->entries.at[i].code, r->entries.at[i].process);
    sort_lookups(r);
    fill_lookups(r);
    fill_entries(r);
    make_events(r);
    return r;
}

void replay_free(struct replay *r)
{
    if (!r)
        return;
    void *const owned[] = {r->order,
                           r->cache_lookups,
                           r->cache_entries,
                           r->cache_deaths,
                           r->times,
                           r->lookups.at,
                           r->checks.at,
                           r->entries.at,
                           r->codes.at,
                           r->threads.at,
                           r->processes.at,
                           r->caches.at,
                           r->compiles.at,
                           r->breaks.at,
                           r->events.at,
                           r->entry_ids.slots,
                           r->code_ids.slots,
                           r->thread_ids.slots,
                           r->process_ids.slots,
                           r->cache_ids.slots,
                           r->compile_ids.slots,
                           r};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}
