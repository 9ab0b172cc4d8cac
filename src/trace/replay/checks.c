/* trace/replay/checks.c -- what each lookup tried, read from the trace.
 *
 * Runs in: the viewer. See trace/replay/load.h.
 *
 * That is half of what there is to read. So it is done by a thread with a connection of its own, while the caller reads
 * the lookups; what is found is joined to them at the end:
 *
 *     caller   entries | begin | lookups, compiles ...       | end
 *     thread                   | guards, guard_check ........|
 *
 * While a trace is written two connections would not see one state of it: then the caller's is used, at the end. */
#include "trace/replay/load.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "lib/say.h"

struct check_reader {
    const struct replay *r; /* borrowed: its entries alone are looked at while the thread runs */
    struct db *db;          /* the thread's, owned; or R's */
    bool threaded, times, ok, sorted;
    pthread_t thread;
    struct replay_map owners; /* of guards: index of the entry */
    struct replay_check *checks;
    int64_t *lookups;    /* by check: row id of its lookup */
    uint16_t *positions; /* the same: its position, POSITION_BAD for what is none; NULL with TIMES */
    int64_t *failed;
    struct replay_times *times_of;
    size_t count, lookup_count, position_count, failed_count;
};
enum { POSITION_BAD = UINT16_MAX };

/* The owner of each guard, by guard id. */
static bool read_guards(struct check_reader *c)
{
    struct query *query = db_query(c->db, "SELECT guard_id, cache_entry_id FROM guard");
    bool ok = true;

    while (ok && query_step(query)) {
        uint32_t entry = replay_map_get(&c->r->entry_ids, replay_integer(query, 1, -1));
        if (entry != REPLAY_NONE)
            ok = replay_map_put(&c->owners, query_integer(query, 0), entry);
    }
    return query_close(query) && ok;
}

static enum check_result result_of(const char *text)
{
    int i = 0;

    while (i < CHECK_RESULTS && strcmp(text, check_words[i]))
        i++;
    return (enum check_result)i;
}

/* The recorder writes checks in the order of their lookups, so that needs no sort. SORTED becomes false where
 * somebody has changed that. A column that is not wanted costs as much as one that is. */
static bool read_checks(struct check_reader *c, bool sort)
{
    struct query *query =
        db_query(c->db, c->times ? sort ? "SELECT lookup_id, 0, cache_entry_id, result, failed_guard_id, 0, duration_ns"
                                          " FROM guard_check ORDER BY lookup_id, position, guard_check_id"
                                        : "SELECT lookup_id, 0, cache_entry_id, result, failed_guard_id, 0, duration_ns"
                                          " FROM guard_check ORDER BY guard_check_id"
                        : sort   ? "SELECT lookup_id, position, cache_entry_id, result, failed_guard_id, guards_run"
                                   " FROM guard_check ORDER BY lookup_id, position, guard_check_id"
                                 : "SELECT lookup_id, position, cache_entry_id, result, failed_guard_id, guards_run"
                                   " FROM guard_check ORDER BY guard_check_id");
    int64_t before = INT64_MIN;
    bool ok = true;

    c->sorted = true;
    while (query_step(query)) {
        int64_t id = replay_integer(query, 0, INT64_MIN), guard;
        struct replay_check *k;
        uint32_t entry;
        if (id < before && !sort) {
            c->sorted = false;
            break;
        }
        before = id;
        if (!(k = GROW(c, checks, count)) || !GROW(c, lookups, lookup_count) ||
            (c->times ? !GROW(c, failed, failed_count) : !GROW(c, positions, position_count))) {
            ok = false;
            break;
        }
        c->lookups[c->count - 1] = id;
        entry = replay_map_get(&c->r->entry_ids, replay_integer(query, 2, -1));
        k->entry = entry == REPLAY_NONE ? REPLAY_CHECK_NONE : entry;
        k->result = result_of(query_text(query, 3, NULL));
        if (!(guard = query_integer(query, 4)) && query_type(query, 4) == QUERY_NULL)
            guard = -1;
        else
            k->bad_guard = replay_map_get(&c->owners, guard) != entry || k->result == CHECK_PASS;
        if (c->times) {
            c->failed[c->count - 1] = guard;
            if (entry != REPLAY_NONE && k->result <= CHECK_PASS && query_type(query, 6) != QUERY_NULL) {
                struct replay_times *t = &c->times_of[entry];
                int64_t ns = replay_time(query, 6, 0);
                t->ns[k->result == CHECK_PASS] +=
                    ns < INT32_MAX ? ns : INT32_MAX; /* so that no trace makes the sum overflow */
                t->count[k->result == CHECK_PASS]++;
            }
        } else {
            int64_t position = replay_integer(query, 1, -1);
            c->positions[c->count - 1] = position < 0 || position >= POSITION_BAD ? POSITION_BAD : (uint16_t)position;
            if (entry != REPLAY_NONE && c->r->entries[entry].guards >= 0 &&
                query_integer(query, 5) > c->r->entries[entry].guards)
                k->bad_guard = true;
        }
    }
    return query_close(query) && ok;
}

static void forget(struct check_reader *c)
{
    free(c->checks);
    free(c->lookups);
    free(c->positions);
    free(c->failed);
    free(c->times_of);
    c->checks = NULL;
    c->lookups = NULL;
    c->positions = NULL;
    c->failed = NULL;
    c->times_of = NULL;
    c->count = c->lookup_count = c->position_count = c->failed_count = 0;
}

static void *read_all(void *reader)
{
    struct check_reader *c = reader;

    c->ok = read_guards(c);
    for (int sort = 0; sort < 2 && c->ok && (!sort || !c->sorted); sort++) {
        forget(c);
        c->ok = (c->times_of = calloc(c->r->entry_count + 1, sizeof *c->times_of)) && read_checks(c, sort);
    }
    return NULL;
}

struct check_reader *check_reader_begin(const struct replay *r, bool times)
{
    struct check_reader *c = calloc(1, sizeof *c);
    char *state;

    if (!c) {
        say_error("out of memory");
        return NULL;
    }
    *c = (struct check_reader){.r = r, .db = r->db, .times = times};
    state = db_meta(r->db, "state");
    if (state && strcmp(state, "recording") && db_path(r->db) && (c->db = db_open(db_path(r->db)))) {
        struct query *small = db_query(c->db, "PRAGMA cache_size = -2048");
        query_step(small);
        query_close(small);
        c->threaded = pthread_create(&c->thread, NULL, read_all, c) == 0;
        if (!c->threaded)
            db_close(c->db);
    }
    if (!c->threaded)
        c->db = r->db;
    free(state);
    return c;
}

/* Checks and lookups are both in the order of lookup ids. */
static bool join(struct check_reader *c, struct replay *r)
{
    size_t at = 0, kept = 0;

    r->orphans = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct replay_lookup *l;
        while (at < r->lookup_count && r->lookups[at].id < c->lookups[i])
            at++;
        if (at == r->lookup_count || r->lookups[at].id != c->lookups[i]) {
            r->orphans++;
            continue;
        }
        l = &r->lookups[at];
        if (!l->check_count)
            l->checks = (uint32_t)kept;
        if (l->check_count == UINT16_MAX || (c->positions && c->positions[i] != l->check_count))
            l->misplaced = true;
        l->check_count += l->check_count < UINT16_MAX;
        c->checks[kept] = c->checks[i];
        if (c->failed)
            c->failed[kept] = c->failed[i];
        kept++;
    }
    r->checks = c->checks;
    r->check_count = kept;
    c->checks = NULL;
    if (c->times) {
        r->failed = c->failed;
        r->times = c->times_of;
        c->failed = NULL;
        c->times_of = NULL;
    }
    return true;
}

bool check_reader_end(struct check_reader *c, struct replay *r)
{
    bool ok;

    if (c->threaded)
        pthread_join(c->thread, NULL);
    else
        read_all(c);
    ok = c->ok && join(c, r);
    if (c->threaded)
        db_close(c->db);
    forget(c);
    replay_map_free(&c->owners);
    free(c);
    return ok;
}
