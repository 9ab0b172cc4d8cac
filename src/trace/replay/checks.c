/* trace/replay/checks.c -- what each lookup tried, read from the trace.
 *
 * Runs in: the viewer. See trace/replay/checks.h.
 *
 * That is half of what there is to read. So it is done by a thread with a connection of its own, while the caller reads
 * the lookups; what is found is joined to them at the end:
 *
 *     caller   entries | begin | lookups, compiles ...       | end
 *     thread                   | guards, guard_check ........|
 *
 * While a trace is written two connections would not see one state of it: then the caller's is used, at the end. */
#include "trace/replay/checks.h"

#include <pthread.h>

#include "replay.h"
#include "trace/db.h"
#include "lib/say.h"

struct check_reader {
    const struct replay *r; /* borrowed: its entries alone are looked at while the thread runs */
    struct db *db;          /* the thread's, owned; or R's */
    bool threaded, times, ok, sorted;
    pthread_t thread;
    struct map owners; /* of guards: index of the entry */
    LIST(struct replay_check) checks;
    LIST(int64_t) lookups;    /* by check: row id of its lookup */
    LIST(uint16_t) positions; /* by check, without TIMES: its position, POSITION_BAD for what is none */
    LIST(int64_t) failed;     /* by check, with TIMES: the guard that failed */
    struct replay_times *times_of;
};
enum { POSITION_BAD = UINT16_MAX };

int64_t replay_integer(struct query *query, int column, int64_t otherwise)
{
    int64_t value = query_integer(query, column);

    return value || query_type(query, column) != QUERY_NULL ? value : otherwise; /* seldom 0: most need one call */
}

int64_t replay_time(struct query *query, int column, int64_t otherwise)
{
    int64_t ns = replay_integer(query, column, otherwise);

    return ns < 0 ? 0 : ns > REPLAY_NEVER / 4 && ns != otherwise ? REPLAY_NEVER / 4 : ns;
}

/* The owner of each guard, by guard id. */
static bool read_guards(struct check_reader *c)
{
    struct query *query = db_query(c->db, "SELECT guard_id, cache_entry_id FROM guard");
    bool ok = true;

    while (ok && query_step(query)) {
        uint32_t entry = replay_index(&c->r->entry_ids, replay_integer(query, 1, -1));
        int64_t *owner = entry == REPLAY_NONE ? NULL : map_put(&c->owners, query_integer(query, 0));
        if (owner)
            *owner = entry;
        ok = owner || entry == REPLAY_NONE;
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

/* One row of guard_check. False: no memory. */
static bool read_check(struct check_reader *c, struct query *query)
{
    struct replay_check *k = list_add(&c->checks);
    int64_t *lookup = list_add(&c->lookups), guard = replay_integer(query, 3, -1);
    uint32_t entry = replay_index(&c->r->entry_ids, replay_integer(query, 1, -1));

    if (!k || !lookup)
        return false;
    *lookup = replay_integer(query, 0, INT64_MIN);
    k->entry = entry == REPLAY_NONE ? REPLAY_CHECK_NONE : entry;
    k->result = result_of(query_text(query, 2, NULL));
    k->bad_guard = guard != -1 && (replay_index(&c->owners, guard) != entry || k->result == CHECK_PASS);
    if (c->times) {
        int64_t *failed = list_add(&c->failed);
        if (!failed)
            return false;
        *failed = guard;
        if (entry != REPLAY_NONE && k->result <= CHECK_PASS && query_type(query, 4) != QUERY_NULL) {
            struct replay_times *t = &c->times_of[entry];
            int64_t ns = replay_time(query, 4, 0);
            t->ns[k->result] += ns < INT32_MAX ? ns : INT32_MAX; /* so that no trace makes the sum overflow */
            t->count[k->result]++;
        }
    } else {
        uint16_t *position = list_add(&c->positions);
        int64_t at = replay_integer(query, 4, -1);
        if (!position)
            return false;
        *position = at < 0 || at >= POSITION_BAD ? POSITION_BAD : (uint16_t)at;
        if (entry != REPLAY_NONE && c->r->entries.at[entry].guards >= 0)
            k->bad_guard = k->bad_guard || query_integer(query, 5) > c->r->entries.at[entry].guards;
    }
    return true;
}

/* The recorder writes checks in the order of their lookups, so that needs no sort. SORTED becomes false where
 * somebody has changed that. A column that is not used costs as much as one that is. */
static bool read_checks(struct check_reader *c, bool sort)
{
    char sql[256];
    struct query *query;
    int64_t before = INT64_MIN;
    bool ok = true;

    snprintf(sql, sizeof sql,
             "SELECT lookup_id, cache_entry_id, result, failed_guard_id, %s FROM guard_check ORDER BY %s",
             c->times ? "duration_ns" : "position, guards_run",
             sort ? "lookup_id, position, guard_check_id" : "guard_check_id");
    query = db_query(c->db, sql);
    c->sorted = true;
    while (ok && c->sorted && query_step(query)) {
        if (!(ok = read_check(c, query)))
            break;
        c->sorted = sort || c->lookups.at[c->lookups.count - 1] >= before;
        before = c->lookups.at[c->lookups.count - 1];
    }
    return query_close(query) && ok;
}

static void forget(struct check_reader *c)
{
    list_free(&c->checks);
    list_free(&c->lookups);
    list_free(&c->positions);
    list_free(&c->failed);
    free(c->times_of);
    c->times_of = NULL;
}

static void *read_all(void *reader)
{
    struct check_reader *c = reader;

    c->ok = read_guards(c);
    for (int sort = 0; sort < 2 && c->ok && (!sort || !c->sorted); sort++) {
        forget(c);
        c->ok = (c->times_of = calloc(c->r->entries.count + 1, sizeof *c->times_of)) && read_checks(c, sort);
    }
    if (!c->ok && !db_damaged(c->db))
        say_error("out of memory");
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
        db_integer(c->db, 0, "PRAGMA cache_size = -2048");
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
static void join(struct check_reader *c, struct replay *r)
{
    size_t at = 0, kept = 0;

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
        if (l->check_count == UINT16_MAX || (!c->times && c->positions.at[i] != l->check_count))
            l->misplaced = true;
        l->check_count += l->check_count < UINT16_MAX;
        c->checks.at[kept] = c->checks.at[i];
        if (c->times)
            c->failed.at[kept] = c->failed.at[i];
        kept++;
    }
    memcpy(&r->checks, &c->checks, sizeof r->checks);
    r->checks.count = kept;
    r->failed = c->failed.at;
    r->times = c->times_of;
    memset(&c->checks, 0, sizeof c->checks);
    memset(&c->failed, 0, sizeof c->failed);
    c->times_of = NULL;
}

bool check_reader_end(struct check_reader *c, struct replay *r)
{
    bool ok;

    if (c->threaded)
        pthread_join(c->thread, NULL);
    else
        read_all(c);
    ok = c->ok;
    if (ok)
        join(c, r);
    if (c->threaded)
        db_close(c->db);
    forget(c);
    map_free(&c->owners);
    free(c);
    return ok;
}
