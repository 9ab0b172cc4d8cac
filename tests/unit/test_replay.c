/* test_replay.c -- caches as src/replay.c finds them at each lookup, compared with a list that is kept by the rules. */
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/db.h"
#include "replay.h"
#include "schema.h"

enum { CALLS = 3000, CODES = 3, ENTRIES_MAX = 64 };

static int failures;

#define EXPECT(condition)                                                                    \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            if (++failures > 10)                                                             \
                exit(1);                                                                     \
        }                                                                                    \
    } while (0)

/* What each lookup found: entry ids in order, living ones first, and their hits. */
static struct model {
    int64_t order[ENTRIES_MAX];
    int hits[ENTRIES_MAX];
    int count, dead;
} seen[CALLS + 1], now[CODES];

static void run(sqlite3 *db, const char *format, ...)
{
    va_list arguments;
    char *sql, *error = NULL;

    va_start(arguments, format);
    sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, error);
        exit(1);
    }
    sqlite3_free(sql);
}

static void move(struct model *m, int from, int to)
{
    int64_t id = m->order[from];
    int hits = m->hits[from];

    for (int i = from; i != to; i += from < to ? 1 : -1) {
        int next = from < to ? i + 1 : i - 1;
        m->order[i] = m->order[next];
        m->hits[i] = m->hits[next];
    }
    m->order[to] = id;
    m->hits[to] = hits;
}

/* Random lookups; every one of them tries all it must. Times are 1000 apart. */
static void make_trace(const char *path)
{
    sqlite3 *db;
    int64_t check = 0, entry = 0;

    sqlite3_open(path, &db);
    run(db, "%s", schema_trace_sql);
    run(db, "BEGIN; INSERT INTO process(process_id, start_ns) VALUES (1, 0); INSERT INTO thread VALUES (1, 1, 1, 'a'), (2, 1, 2, 'b')");
    for (int i = 1; i <= CODES; i++)
        run(db, "INSERT INTO code(code_id, process_id, qualname) VALUES (%d, 1, 'f%d')", i, i);
    for (int i = 1; i <= CALLS; i++) {
        int code = rand() % CODES, alive, chosen, time = i * 1000;
        struct model *m = &now[code];
        if (m->count - m->dead > 1 && m->count < ENTRIES_MAX && rand() % 60 == 0) { /* one dies: last of all */
            int at = rand() % (m->count - m->dead);
            run(db, "UPDATE cache_entry SET died_ns = %d WHERE cache_entry_id = %lld", time - 500, m->order[at]);
            move(m, at, m->count - 1);
            m->dead++;
        }
        seen[i] = *m;
        alive = m->count - m->dead;
        chosen = alive && (m->count == ENTRIES_MAX || rand() % 20) ? rand() % alive : alive; /* ALIVE: none fits */
        for (int k = 0; k < alive && k <= chosen; k++)
            run(db, "INSERT INTO guard_check VALUES (%lld, %d, %d, %lld, '%s', NULL, 1, 10)", ++check, i, k, m->order[k],
                k == chosen ? "pass" : "fail");
        if (chosen == alive && m->count < ENTRIES_MAX) {
            run(db, "INSERT INTO cache_entry(cache_entry_id, code_id, guard_count, born_ns) VALUES (%lld, %d, 1, %d)", ++entry, code + 1,
                time + 100);
            run(db, "INSERT INTO lookup VALUES (%d, %d, %d, %d, %d, 200, %d, %lld, %d, NULL)", i, i, 1 + i % 2, code + 1, time,
                OUTCOME_COMPILED, entry, alive);
            m->order[m->count] = entry;
            m->hits[m->count++] = 0;
            move(m, m->count - 1, 0);
        } else if (chosen == alive) {
            run(db, "INSERT INTO lookup VALUES (%d, %d, %d, %d, %d, 200, %d, NULL, %d, NULL)", i, i, 1 + i % 2, code + 1, time, OUTCOME_LIMIT, alive);
        } else {
            run(db, "INSERT INTO lookup VALUES (%d, %d, %d, %d, %d, 200, %d, %lld, %d, NULL)", i, i, 1 + i % 2, code + 1, time, OUTCOME_HIT,
                m->order[chosen], chosen + 1);
            m->hits[chosen]++;
            move(m, chosen, 0);
        }
    }
    run(db, "COMMIT");
    sqlite3_close(db);
}

static void same_state(const struct replay *r, uint32_t lookup, struct replay_state *state)
{
    const struct model *m = &seen[r->lookups.at[lookup].id];

    replay_get_state_at_lookup(r, lookup, state);
    EXPECT((int)state->count == m->count);
    for (int i = 0; i < m->count && i < (int)state->count; i++) {
        EXPECT(r->entries.at[state->at[i].entry].id == m->order[i]);
        EXPECT((int)state->at[i].hits == m->hits[i]);
        EXPECT(state->at[i].dead == (i >= m->count - m->dead));
    }
}

static void test_states(const char *path)
{
    struct db *db = db_open(path);
    struct replay *r = db ? replay_open(db, true) : NULL;
    struct replay_state state = {0};
    struct replay_verdict verdict;

    if (!r) {
        failures++;
        return;
    }
    EXPECT(r->lookups.count == CALLS);
    for (uint32_t i = 0; i < CALLS; i++) /* forwards */
        same_state(r, i, &state);
    for (uint32_t i = CALLS; i-- > 0;) /* backwards */
        same_state(r, i, &state);
    for (int i = 0; i < CALLS; i++) /* anywhere */
        same_state(r, (uint32_t)(rand() % CALLS), &state);
    for (size_t i = 0; i < r->events.count; i++) {
        EXPECT(replay_find_event(r, r->events.at[i].kind, r->events.at[i].index) == i);
        EXPECT(replay_find_event_at_time(r, r->events.at[i].at_ns) <= i);
        EXPECT(!i || r->events.at[i - 1].at_ns <= r->events.at[i].at_ns);
    }
    EXPECT(replay_find_lookup(r, 1) == 0 && replay_find_lookup(r, CALLS) == CALLS - 1);
    EXPECT(replay_find_lookup(r, 0) == REPLAY_NONE && replay_find_lookup(r, CALLS + 1) == REPLAY_NONE);
    EXPECT(replay_find_event_at_time(r, 0) == 0 && replay_find_event_at_time(r, INT64_MAX) == r->events.count);
    replay_verify_lookups(r, &verdict);
    EXPECT(verdict.findings.count == 0 && verdict.whole == CALLS && verdict.orphans == 0);
    list_free(&verdict.findings);
    list_free(&state);
    replay_free(r);
    db_close(db);
}

int main(void)
{
    char path[] = "/tmp/test_replay-XXXXXX";
    int file = mkstemp(path);

    srand(1);
    close(file);
    make_trace(path);
    test_states(path);
    unlink(path);
    return failures != 0;
}
