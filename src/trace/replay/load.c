/* trace/replay/load.c -- reads a trace's lookups, compiles and entries into memory. See replay.h.
 *
 * Anybody may have made the file, so nothing in it is trusted: row ids without a row become
 * REPLAY_NONE, times may be in any order, and a process counts as a parent only if its row was read
 * before the child's. */
#include "lib/bounds.h"
#include "lib/say.h"
#include "replay.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/scan.h"

enum {
    /* how many generations of parent processes are followed */
    FORKS_MAX = 64,
    TICK_ROWS = 1 << 14,
};

/* ---- reading rows: a function for each statement of schemas/replay.sql ---- */

/* Add an item to LIST. MAP maps the row id ID to the index of the item from now on. Returns a
 * pointer to the item. */
#define ADD(list, map, id)                          \
    ({                                              \
        *map_put(map, id) = (int64_t)(list)->count; \
        if ((list)->count >= REPLAY_CHECK_NONE)     \
            bounds_end_without_memory();            \
        list_add(list);                             \
    })

static bool is_null(unsigned nulls, int column)
{
    return nulls & 1u << column;
}

/* Return NS, limited so that the sum of two times cannot overflow, even if the
 * trace is malicious. */
static int64_t clamp_time(int64_t ns)
{
    int64_t most = REPLAY_NEVER / 4;

    if (ns < 0)
        return 0;
    return ns > most ? most : ns;
}

/* Return the time in column AT, or REPLAY_NEVER if the column is NULL. */
static int64_t time_of_column(const int64_t *v, unsigned nulls, int at)
{
    return is_null(nulls, at) ? REPLAY_NEVER : clamp_time(v[at]);
}

static bool read_process_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    bool has_parent = !is_null(nulls, 2);
    struct replay_process p = {
        .id = v[0],
        .start_ns = clamp_time(v[1]),
        .parent = has_parent ? replay_index_of_id(&r->process_ids, v[2]) : REPLAY_NONE,
        .torch = v[3],
        .lost_ns = time_of_column(v, nulls, 4),
        .first_fork_ns = REPLAY_NEVER,
    };

    if (p.parent != REPLAY_NONE) {
        struct replay_process *parent = &r->processes.at[p.parent];
        if (p.start_ns < parent->first_fork_ns)
            parent->first_fork_ns = p.start_ns;
        if (p.start_ns > parent->last_fork_ns)
            parent->last_fork_ns = p.start_ns;
    }
    *ADD(&r->processes, &r->process_ids, v[0]) = p;
    return true;
}

static bool read_thread_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    struct replay_thread *thread = ADD(&r->threads, &r->thread_ids, v[0]);

    thread->id = v[0];
    thread->process = replay_index_of_id(&r->process_ids, v[1]);
    return true;
}

/* Return the index of the code object with the row id CODE_ID. If there is none, it is added. */
static uint32_t find_or_add_code(struct replay *r, int64_t code_id)
{
    uint32_t at = replay_index_of_id(&r->code_ids, code_id);
    struct replay_code *code;

    if (at != REPLAY_NONE)
        return at;
    code = ADD(&r->codes, &r->code_ids, code_id);
    code->id = code_id;
    code->marked_ns = REPLAY_NEVER;
    return (uint32_t)(r->codes.count - 1);
}

static bool read_entry_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    struct replay_entry *e = ADD(&r->entries, &r->entry_ids, v[0]);

    *e = (struct replay_entry){
        .id = v[0],
        .code = find_or_add_code(r, v[1]),
        .born_ns = clamp_time(v[2]),
        .died_ns = time_of_column(v, nulls, 3),
        .region = v[4],
        .compile_id = v[5],
        .process = REPLAY_NONE,
        .pinned = v[6],
        .reset = v[7],
        .guards = v[8],
    };
    return true;
}

/* Note that PROCESS made ENTRY, if it is not known already which process did. ENTRY may
 * be REPLAY_NONE. */
static void note_process_of_entry(struct replay *r, uint32_t entry, uint32_t process)
{
    struct replay_entry *e;

    if (entry == REPLAY_NONE)
        return;
    e = &r->entries.at[entry];
    if (e->process == REPLAY_NONE)
        e->process = process;
}

static uint32_t process_of_thread(const struct replay *r, uint32_t thread)
{
    return thread == REPLAY_NONE ? REPLAY_NONE : r->threads.at[thread].process;
}

static bool read_compile_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    struct replay_compile *c = ADD(&r->compiles, &r->compile_ids, v[0]);

    *c = (struct replay_compile){
        .id = v[0],
        .start_ns = clamp_time(v[1]),
        .code = find_or_add_code(r, v[2]),
        .thread = replay_index_of_id(&r->thread_ids, v[3]),
        .entry = replay_index_of_id(&r->entry_ids, v[4]),
        .end_ns = clamp_time(v[5]),
        .recompile = v[6],
    };
    note_process_of_entry(r, c->entry, process_of_thread(r, c->thread));
    return true;
}

static bool read_break_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    struct replay_break *b = list_add(&r->breaks);

    b->id = v[0];
    b->compile = replay_index_of_id(&r->compile_ids, v[1]);
    return true;
}

/* Return the index of the cache of CODE in PROCESS. If there is none, it is added. */
static uint32_t find_or_add_cache(struct replay *r, uint32_t code, uint32_t process)
{
    int64_t key = replay_cache_key(code, process);
    uint32_t at = replay_index_of_id(&r->cache_ids, key);
    struct replay_cache *cache;

    if (at != REPLAY_NONE)
        return at;
    cache = ADD(&r->caches, &r->cache_ids, key);
    cache->code = code;
    cache->process = process;
    cache->parent = REPLAY_NONE;
    return (uint32_t)(r->caches.count - 1);
}

struct lookups {
    struct replay *r;
    struct progress progress;
    int64_t rows;
};

/* Return the value of the column entries_checked, limited to what the member `checked` can hold. */
static uint16_t clamp_entries_checked(int64_t entries_checked)
{
    bool fits = entries_checked >= 0 && entries_checked <= UINT16_MAX;

    return fits ? (uint16_t)entries_checked : UINT16_MAX;
}

static bool read_lookup_row(void *context, const int64_t *values, unsigned nulls)
{
    const struct row_lookup *row = (const void *)values;
    struct lookups *reading = context;
    struct replay *r = reading->r;
    uint32_t thread = replay_index_of_id(&r->thread_ids, (int64_t)row->thread_id);
    uint32_t process = process_of_thread(r, thread);
    uint32_t code = find_or_add_code(r, (int64_t)row->code_id);
    bool has_outcome = !row_null(nulls, lookup, outcome);
    bool in_vocabulary = row->outcome >= 0 && row->outcome < OUTCOMES;
    bool named = !row_null(nulls, lookup, cache_entry_id);
    struct replay_lookup *l = list_add(&r->lookups);

    if (r->lookups.count >= REPLAY_NONE)
        bounds_end_without_memory();
    l->id = (int64_t)row->lookup_id;
    l->start_ns = clamp_time(row->start_ns);
    l->end_ns = l->start_ns + clamp_time(row->duration_ns);
    l->signature = (int64_t)row->signature_id;
    l->cache = find_or_add_cache(r, code, process);
    l->thread = thread;
    l->named = named;
    l->entry =
        named ? replay_index_of_id(&r->entry_ids, (int64_t)row->cache_entry_id) : REPLAY_NONE;
    l->observed = row_null(nulls, lookup, entries_checked);
    l->checked = clamp_entries_checked(row->entries_checked);
    l->outcome = REPLAY_OUTCOME_UNKNOWN;
    if (has_outcome && in_vocabulary)
        l->outcome = (uint8_t)row->outcome;
    if (l->outcome == OUTCOME_COMPILED)
        note_process_of_entry(r, l->entry, process);
    if (!(r->lookups.count & (TICK_ROWS - 1)))
        progress_tick(&reading->progress, (int64_t)r->lookups.count, reading->rows);
    return true;
}

static void read_all_lookups(struct replay *r)
{
    struct lookups reading = {
        .r = r,
        .progress = progress_begin("reading lookups"),
        .rows = db_integer(r->db, 0, "SELECT MAX(lookup_id) FROM lookup"),
    };

    scan_rows(r->db, TABLE_lookup, read_lookup_row, &reading);
    progress_end(&reading.progress);
}

static bool read_mark_row(void *context, const int64_t *v, unsigned nulls)
{
    struct replay *r = context;
    uint32_t index = replay_index_of_id(&r->code_ids, v[0]);
    int64_t marked_ns = clamp_time(v[1]);
    struct replay_code *code;

    if (index == REPLAY_NONE)
        return true;
    code = &r->codes.at[index];
    if (marked_ns < code->marked_ns)
        code->marked_ns = marked_ns;
    return true;
}

/* ---- reading the checks of each lookup ----------------------------------- */

struct check_reader {
    const struct replay *r; /* borrowed */
    bool unsorted;
    struct map owners; /* maps the row id of a guard to the index of its entry */
    LIST(struct replay_check) checks;
    LIST(int64_t) lookups; /* for each item of `checks`, the row id of the check's lookup */
    struct replay_times *times;
    int64_t position; /* the position in the lookup that the next check should have */
};

static bool read_guard_row(void *context, const int64_t *v, unsigned nulls)
{
    struct check_reader *c = context;
    uint32_t entry = replay_index_of_id(&c->r->entry_ids, v[1]);

    if (entry != REPLAY_NONE)
        *map_put(&c->owners, v[0]) = entry;
    return true;
}

/* The columns that the statement replay/checks selects. */
enum { C_LOOKUP, C_ENTRY, C_RESULT, C_FAILED, C_POSITION, C_GUARDS, C_NS };

/* The row VALUES names a guard that failed. Is this wrong, because the check passed, or because the
 * guard is not one of ENTRY? */
static bool is_failed_guard_wrong(const struct check_reader *c, const int64_t *values,
                                  uint32_t entry)
{
    return values[C_RESULT] == CHECK_PASS ||
           replay_index_of_id(&c->owners, values[C_FAILED]) != entry;
}

/* Add NS, the time of a check that had RESULT, to TIMES. */
static void add_check_time(struct replay_times *times, int64_t result, int64_t ns)
{
    /* limit the time, so that sums do not overflow */
    times->ns[result] += ns < INT32_MAX ? ns : INT32_MAX;
    times->count[result]++;
}

/* Return the row id of the previous check's lookup, or NULL if there was no check before. */
static const int64_t *find_lookup_before(const struct check_reader *c)
{
    size_t count = c->lookups.count;

    return count ? &c->lookups.at[count - 1] : NULL;
}

static bool read_check_row(void *context, const int64_t *v, unsigned nulls)
{
    struct check_reader *c = context;
    uint32_t entry = replay_index_of_id(&c->r->entry_ids, v[C_ENTRY]);
    bool known = entry != REPLAY_NONE;
    bool failed = !is_null(nulls, C_FAILED);
    bool passed = v[C_RESULT] == CHECK_PASS;
    const int64_t *before = find_lookup_before(c);
    int64_t guards = known ? c->r->entries.at[entry].guards : -1;
    bool none_ran = !v[C_GUARDS] && !is_null(nulls, C_GUARDS);
    bool is_timed = known && !is_null(nulls, C_NS);
    struct replay_check check = {
        .entry = known ? entry : REPLAY_CHECK_NONE,
        .result = (unsigned)v[C_RESULT] & 7,
        .failed = v[C_FAILED],
    };

    if (before && *before > v[C_LOOKUP]) {
        c->unsorted = true;
        return false;
    }
    if (!before || *before != v[C_LOOKUP])
        c->position = 0;
    check.bad_guard = failed && is_failed_guard_wrong(c, v, entry);
    if (guards >= 0 && v[C_GUARDS] > guards)
        check.bad_guard = true;
    check.misplaced = v[C_POSITION] != c->position || is_null(nulls, C_POSITION);
    c->position++;
    if (passed && none_ran) {
        if (guards > 0)
            check.failed = REPLAY_IN_PART;
    }
    *list_add(&c->checks) = check;
    *list_add(&c->lookups) = v[C_LOOKUP];
    if (is_timed && v[C_RESULT] <= CHECK_PASS)
        add_check_time(&c->times[entry], v[C_RESULT], clamp_time(v[C_NS]));
    return true;
}

/* Give each lookup its checks. Both lists are sorted by the row id of the lookup. Checks whose
 * lookup is not in the trace are dropped. */
static void assign_checks_to_lookups(struct check_reader *c, struct replay *r)
{
    struct replay_lookup *l = r->lookups.at;
    const struct replay_lookup *end = l + r->lookups.count;
    size_t kept = 0;

    for (size_t i = 0; i < c->checks.count; i++) {
        int64_t id = c->lookups.at[i];
        while (l < end && l->id < id)
            l++;
        if (l == end || l->id != id) {
            r->orphans++;
            continue;
        }
        if (!l->check_count)
            l->checks = (uint32_t)kept;
        if (l->check_count < UINT16_MAX)
            l->check_count++;
        else
            c->checks.at[kept - 1].misplaced = true;
        c->checks.at[kept] = c->checks.at[i];
        kept++;
    }
    c->checks.count = kept;
}

/* Read all guard checks. The lookups must have been read before. */
static void read_all_checks(struct replay *r)
{
    struct check_reader reader = {.r = r};
    struct check_reader *c = &reader;
    size_t times = (r->entries.count + 1) * sizeof *c->times;

    c->times = calloc(1, times);
    db_visit(r->db, schema_statement("replay/guards"), read_guard_row, c);
    db_visit(r->db, schema_statement("replay/checks"), read_check_row, c);
    if (c->unsorted) {
        c->checks.count = 0;
        c->lookups.count = 0;
        memset(c->times, 0, times);
        db_visit(r->db, schema_statement("replay/checks-sorted"), read_check_row, c);
    }
    assign_checks_to_lookups(c, r);
    memcpy(&r->checks, &c->checks, sizeof r->checks);
    r->times = c->times;
    list_free(&c->lookups);
    map_free(&c->owners);
}

/* ---- finding out which process has which entry, and sorting -------------- */

static int compare_deaths(const void *a, const void *b, void *context)
{
    const struct replay_entry *entries = context;
    const uint32_t *x = a;
    const uint32_t *y = b;
    int order = list_compare_numbers(entries[*x].died_ns, entries[*y].died_ns);

    return order ? order : replay_compare_births(a, b, context);
}

static void sort_lookups(struct replay *r)
{
    const struct replay_lookup *lookups = r->lookups.at;
    size_t count = r->lookups.count;
    bool sorted = true;

    r->order = malloc((count + 1) * sizeof *r->order);
    for (size_t i = 0; i < count; i++) {
        r->order[i] = (uint32_t)i;
        if (i && lookups[i - 1].start_ns > lookups[i].start_ns)
            sorted = false;
    }
    if (!sorted)
        qsort_r(r->order, count, sizeof *r->order, replay_compare_times, r->lookups.at);
}

/* Does PROCESS have an entry that the process MAKER made at BORN_NS? It does if PROCESS is MAKER.
 * It also does if MAKER forked PROCESS, or an ancestor of PROCESS, after BORN_NS. */
static bool does_process_have_entry(const struct replay *r, uint32_t process, uint32_t maker,
                                    int64_t born_ns)
{
    for (int generation = 0; generation < FORKS_MAX; generation++) {
        const struct replay_process *p;
        if (process == REPLAY_NONE)
            break;
        if (process == maker)
            return true;
        p = &r->processes.at[process];
        if (born_ns >= p->start_ns)
            return false;
        process = p->parent;
    }
    return process == maker; /* equal also if both processes are unknown */
}

/* Did PROCESS fork while the entry was alive? Then the child has a copy of the entry. */
static bool has_forked_while_entry_lived(const struct replay_process *process,
                                         const struct replay_entry *e)
{
    if (e->born_ns >= process->last_fork_ns)
        return false;
    return e->died_ns >= process->first_fork_ns;
}

/* Set the flag `shared` of each entry that a fork copied. The recorded death of such an entry may
 * be that of a copy in another process. */
static void mark_entries_shared_by_fork(struct replay *r)
{
    list_each(e, &r->entries) {
        if (e->process == REPLAY_NONE)
            e->shared = true;
        else
            e->shared = has_forked_while_entry_lived(&r->processes.at[e->process], e);
    }
}

/* Return the cache that lookup number LOOKUP searched. */
static struct replay_cache *cache_of_lookup(const struct replay *r, size_t lookup)
{
    uint32_t cache = r->lookups.at[lookup].cache;

    return &r->caches.at[cache];
}

/* Fill in the lookups of each cache, in order of time. */
static void fill_lookups_of_caches(struct replay *r)
{
    size_t at = 0;

    r->cache_lookups = malloc((r->lookups.count + 1) * sizeof *r->cache_lookups);
    for (size_t i = 0; i < r->lookups.count; i++)
        cache_of_lookup(r, i)->count++;
    list_each(cache, &r->caches) {
        cache->lookups = r->cache_lookups + at;
        at += cache->count;
        cache->count = 0;
    }
    for (size_t i = 0; i < r->lookups.count; i++) {
        uint32_t lookup = r->order[i];
        struct replay_cache *cache = cache_of_lookup(r, lookup);
        cache->lookups[cache->count] = lookup;
        cache->count++;
    }
}

/* Return the cache of the same code object in a parent process, or in the nearest ancestor that has
 * one. Returns REPLAY_NONE if there is none. */
static uint32_t find_parent_cache(const struct replay *r, const struct replay_cache *cache)
{
    uint32_t process = cache->process;

    for (int generation = 0; generation < FORKS_MAX; generation++) {
        int64_t key;
        uint32_t found;
        if (process == REPLAY_NONE)
            break;
        process = r->processes.at[process].parent;
        if (process == REPLAY_NONE)
            break;
        key = replay_cache_key(cache->code, process);
        found = replay_index_of_id(&r->cache_ids, key);
        if (found != REPLAY_NONE)
            return found;
    }
    return REPLAY_NONE;
}

typedef LIST(uint32_t) index_list;

/* Add to ALL each entry that CACHE held at some time. BY_CODE lists all entries, sorted by code
 * object and birth. */
static void add_entries_of_cache(struct replay *r, struct replay_cache *cache,
                                 const uint32_t *by_code, index_list *all)
{
    const size_t count = r->entries.count;
    size_t next = sorted_count(count, k, r->entries.at[by_code[k]].code < cache->code);

    for (; next < count; next++) {
        uint32_t entry = by_code[next];
        const struct replay_entry *e = &r->entries.at[entry];
        if (e->code != cache->code)
            break;
        if (!does_process_have_entry(r, cache->process, e->process, e->born_ns))
            continue;
        *list_add(all) = entry;
        cache->entry_count++;
    }
}

/* Fill in the entries and the parent of each cache. */
static void fill_entries_of_caches(struct replay *r)
{
    const size_t count = r->entries.count;
    uint32_t *by_code = malloc((count + 1) * sizeof *by_code);
    index_list all = {0};
    size_t at = 0;

    for (size_t i = 0; i < count; i++)
        by_code[i] = (uint32_t)i;
    qsort_r(by_code, count, sizeof *by_code, replay_compare_births, r->entries.at);
    list_each(cache, &r->caches) {
        add_entries_of_cache(r, cache, by_code, &all);
        cache->parent = find_parent_cache(r, cache);
    }
    free(by_code);
    r->cache_entries = all.at;
    r->cache_deaths = malloc((all.count + 1) * sizeof *r->cache_deaths);
    if (!all.count)
        return;
    memcpy(r->cache_deaths, all.at, all.count * sizeof *all.at);
    list_each(cache, &r->caches) {
        cache->entries = r->cache_entries + at;
        cache->deaths = r->cache_deaths + at;
        qsort_r(cache->deaths, cache->entry_count, sizeof *cache->deaths, compare_deaths,
                r->entries.at);
        at += cache->entry_count;
    }
}

typedef LIST(struct replay_event) event_list;

/* Add an event to the list FEW for each of COUNT items of KIND. */
static void add_events(const struct replay *r, enum replay_kind kind, size_t count, event_list *few)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t at_ns = replay_subject_of_event(r, kind, i).at_ns;
        if (at_ns != REPLAY_NEVER)
            *list_add(few) = (struct replay_event){at_ns, i, kind};
    }
}

/* Fill r->events with all events, in order of time: with the lookups, and with FEW, which has all
 * other events. Both are sorted. */
static void merge_events(struct replay *r, const event_list *few)
{
    const struct replay_event *other = few->at;
    const struct replay_event *end = other + few->count;
    size_t lookups = 0;

    list_each(event, &r->events) {
        bool is_other = lookups == r->lookups.count;
        if (!is_other) {
            uint32_t lookup = r->order[lookups];
            event->at_ns = r->lookups.at[lookup].start_ns;
            event->index = lookup;
            event->kind = REPLAY_LOOKUP;
            is_other = other < end && replay_compare_moments(other, event) < 0;
        }
        if (is_other) {
            *event = *other;
            other++;
        } else {
            lookups++;
        }
    }
}

/* Make the list of all events. Lookups are sorted already, so only the other events, which are few,
 * are sorted and then merged with them. */
static void make_events(struct replay *r)
{
    event_list few = {0};
    int64_t span = db_meta_integer(r->db, "span_ns", 0);
    size_t count;

    add_events(r, REPLAY_COMPILE, r->compiles.count, &few);
    add_events(r, REPLAY_BREAK, r->breaks.count, &few);
    add_events(r, REPLAY_DEATH, r->entries.count, &few);
    list_sort(&few, replay_compare_moments);
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

/* ---- loading and freeing a whole trace ----------------------------------- */

struct replay *replay_open(struct db *db, bool checks)
{
    struct replay *r = calloc(1, sizeof *r);

    r->db = db;
    /* use a small page cache, because each table is read only once, from end to end */
    db_integer(db, 0, "PRAGMA cache_size = -8192");
    db_visit(db, schema_statement("replay/processes"), read_process_row, r);
    db_visit(db, schema_statement("replay/threads"), read_thread_row, r);
    db_visit(db, schema_statement("replay/entries"), read_entry_row, r);
    db_visit(db, schema_statement("replay/compiles"), read_compile_row, r);
    db_visit(db, schema_statement("replay/breaks"), read_break_row, r);
    read_all_lookups(r);
    db_visit(db, schema_statement("replay/marks"), read_mark_row, r);
    if (checks)
        read_all_checks(r);
    if (db_has_failed(db)) {
        replay_free(r);
        return NULL;
    }
    mark_entries_shared_by_fork(r);
    /* add the caches in which no lookup searched, too: when their entries died is an event */
    for (uint32_t i = 0; i < r->entries.count; i++)
        find_or_add_cache(r, r->entries.at[i].code, r->entries.at[i].process);
    sort_lookups(r);
    fill_lookups_of_caches(r);
    fill_entries_of_caches(r);
    make_events(r);
    return r;
}

void replay_free(struct replay *r)
{
    if (!r)
        return;
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
    free(r->order);
    free(r->cache_lookups);
    free(r->cache_entries);
    free(r->cache_deaths);
    free(r->times);
    free(r);
}
