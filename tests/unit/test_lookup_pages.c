/* test_lookup_pages.c -- the pages of lookups and guard checks that we write are what SQLite reads, and their indexes say what it
 * would have put there (PRAGMA integrity_check compares both with the rows).
 *
 * Ids begin where a test says, so that their numbers take more and fewer bytes. pwrite fails once a disk is full. */
#include <errno.h>
#include <sys/syscall.h>

#include "collector/lookup_pages.h"
#include "frames_db.h"

static uint64_t disk_bytes; /* what fits on it, 0 = any number */

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    if (disk_bytes && (uint64_t)at + bytes > disk_bytes) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, bytes, at);
}

struct trace {
    struct frames_db db;
    struct lookup_window *window; /* owned */
    struct lookup_pages pages;
    uint64_t next[2], lookups, checks; /* written */
};

static void trace_open(struct trace *t, uint64_t first)
{
    *t = (struct trace){.window = calloc(1, sizeof *t->window)};
    frames_db_open(&t->db);
    frame_pages_reserve_page(&t->db.pages); /* a frame's comes first, always */
    t->next[PAGES_LOOKUP] = t->next[PAGES_CHECK] = first;
    lookup_pages_open(&t->pages, &t->db.pages, t->window, t->next, false);
}

static void lookup(struct trace *t, uint64_t code_id, unsigned checks)
{
    static const char *const words[] = {"pass", "fail", "error", "backend_mismatch"};

    for (unsigned i = 0; i < checks; i++, t->checks++)
        lookup_pages_add(&t->pages, PAGES_CHECK, (int64_t[]){(int64_t)t->pages.next[PAGES_LOOKUP], i, 1 + (int64_t)random_below(300), 0,
                         i % 3 ? 7 : ROW_NONE, 3, random_below(9) ? (int64_t)random_below(UINT64_C(1) << random_below(33)) : ROW_NONE}, words[i % 4]);
    lookup_pages_add(&t->pages, PAGES_LOOKUP, (int64_t[]){1, 1, (int64_t)code_id, (int64_t)(t->pages.next[0] * 1000), 5, 1, ROW_NONE,
                     checks, ROW_NONE}, NULL);
    t->lookups++;
}

/* Another collector, which believes what is below GIVEN. */
static void resume(struct trace *t, const uint64_t given[2])
{
    lookup_pages_close(&t->pages);
    frame_pages_close(&t->db.pages);
    if (frame_pages_open(&t->db.pages, dup(t->db.file), t->db.window, true))
        perror("frame_pages_open");
    memcpy(t->next, given, sizeof t->next);
    lookup_pages_open(&t->pages, &t->db.pages, t->window, t->next, true);
}

static int64_t ask(struct trace *t, const char *sql)
{
    sqlite3_stmt *s = NULL;
    sqlite3 *db = NULL;
    int64_t found = -1;

    if (sqlite3_open(t->db.path, &db) == SQLITE_OK && sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        found = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return found;
}

/* Finish, and compare; of a recovered one SQLite makes the indexes. */
static void trace_close(struct trace *t, const char *what)
{
    bool indexed;

    lookup_pages_finish(&t->pages);
    indexed = t->db.pages.indexed;
    frames_db_finish(&t->db);
    CHECK(t->db.finished >= 0, "%s: finished", what);
    if (!indexed || !t->db.pages.indexed) {
        ask(t, "REINDEX lookup_code");
        ask(t, "REINDEX guard_check_lookup");
        frames_db_read(&t->db, false);
    }
    CHECK(!strcmp(t->db.integrity, "ok"), "%s: %s", what, t->db.integrity);
    CHECK(ask(t, "SELECT COUNT(*) FROM lookup NOT INDEXED") == (int64_t)t->lookups, "%s: lookups", what);
    CHECK(ask(t, "SELECT COUNT(*) FROM guard_check NOT INDEXED") == (int64_t)t->checks, "%s: checks", what);
    CHECK(ask(t, "SELECT COUNT(*) FROM lookup WHERE start_ns <> lookup_id * 1000 OR cache_entry_id NOTNULL OR entries_checked <>"
                 " (SELECT COUNT(*) FROM guard_check k WHERE k.lookup_id = lookup.lookup_id)") == 0, "%s: rows", what);
    CHECK(ask(t, "SELECT COUNT(*) FROM guard_check WHERE result <> CASE position % 4 WHEN 0 THEN 'pass' WHEN 1 THEN 'fail'"
                 " WHEN 2 THEN 'error' ELSE 'backend_mismatch' END OR (position % 3 = 0) <> (failed_guard_id ISNULL)") == 0, "%s: texts", what);
    lookup_pages_close(&t->pages);
    frames_db_close(&t->db);
    free(t->window);
}

static void count_rows(void *context, enum lookup_table table, int64_t *values, const char *word)
{
    int64_t *counts = context;

    CHECK(values[0] == counts[table] + 1, "row %lld is shown after %lld", (long long)values[0], (long long)counts[table]);
    CHECK(table == PAGES_LOOKUP || (word && values[CHECK_WORD] >= 4), "a check has its word");
    counts[table] = values[0];
}

static void read_row(void *context, enum lookup_table table, int64_t *values, const char *word)
{
    static volatile uint64_t all;

    (void)context;
    for (int i = 0; i < CHECK_COLUMNS; i++)
        all += (uint64_t)values[i];
    for (int64_t i = 0; table == PAGES_CHECK && i < values[CHECK_WORD]; i++)
        all += (uint64_t)word[i];
}

/* Every number of lookups up to more than a page, of one code object and of few, and many of many. */
static void test_numbers(void)
{
    static const unsigned codes[] = {1, 2, 3, 7, 100, 5000};
    const unsigned most = under_valgrind() ? 400 : 6000;
    char what[100];
    struct trace t;

    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (unsigned count = 0; count < most; count += count < 3 || (count > 280 && count < 310 && c < 4) ? 1 : count / 3 + 7) {
            uint64_t first = (uint64_t[]){1, 1, 120, 32000, UINT64_C(1) << 31, UINT64_C(1) << 40}[random_below(4)];
            snprintf(what, sizeof what, "%u lookups of %u from %llu", count, codes[c], (unsigned long long)first);
            trace_open(&t, first);
            for (unsigned i = 0; i < count; i++) {
                uint64_t code = codes[c] < 7 || random_below(2) ? 1 + random_below(codes[c]) : codes[c];
                lookup(&t, random_below(2) ? code : code * 70000 % 90001 + 1, (unsigned)random_below(3));
            }
            trace_close(&t, what);
        }
}

/* A page of the window and of the file, whole ones and parts: what is above the ids that were given is gone. */
static void test_resume(void)
{
    char what[100];
    struct trace t;

    for (int n = under_valgrind() ? 70 : 0; n < 80; n++) {
        unsigned count = (unsigned)random_below(n < 78 || under_valgrind() ? 700 : 50000), after = (unsigned)random_below(300), kept = count ? (unsigned)random_below(count + 1) : 0;
        uint64_t given[2] = {1, 1};
        snprintf(what, sizeof what, "%u of %u lookups kept, %u more", kept, count, after);
        trace_open(&t, 1);
        for (unsigned i = 0; i < count; i++) {
            if (i == kept)
                memcpy(given, t.pages.next, sizeof given);
            lookup(&t, 1 + random_below(50), (unsigned)random_below(4));
        }
        if (kept == count)
            memcpy(given, t.pages.next, sizeof given);
        resume(&t, given);
        CHECK(!memcmp(given, t.pages.next, sizeof given), "%s: ids", what);
        t.lookups = given[0] - 1;
        t.checks = given[1] - 1;
        for (unsigned i = 0; i < after; i++)
            lookup(&t, 1 + random_below(50), (unsigned)random_below(4));
        if (random_below(2)) {
            int64_t shown[2] = {0};
            for (int table = 0; table < LOOKUP_TABLES; table++)
                while (t.pages.shown[table] < t.pages.next[table])
                    lookup_pages_visit_new_rows(&t.pages, table, count_rows, shown);
            CHECK((uint64_t)shown[0] == t.lookups && (uint64_t)shown[1] == t.checks, "%s: shown", what);
        }
        trace_close(&t, what);
    }
}

/* What was in shared memory is any bytes. */
static void test_damaged(void)
{
    uint64_t given[2] = {UINT64_MAX, UINT64_MAX};
    struct trace t;

    for (int n = under_valgrind() ? 280 : 0; n < 300; n++) {
        trace_open(&t, 1);
        for (int i = 0; i < 60; i++)
            lookup(&t, 1, 1);
        for (int i = 0; i < 20; i++)
            t.window->page[random_below(2)][random_below(random_below(2) ? 200 : 4096)] = (uint8_t)random_below(256);
        resume(&t, given);
        for (int table = 0; table < LOOKUP_TABLES; table++)
            lookup_pages_visit_new_rows(&t.pages, table, read_row, NULL);
        lookup(&t, 1, 1);
        lookup_pages_finish(&t.pages);
        frames_db_finish(&t.db);
        lookup_pages_close(&t.pages);
        frames_db_close(&t.db);
        free(t.window);
    }
}

static void test_full_disk(void)
{
    struct trace t;

    for (uint64_t megabytes = under_valgrind() ? 9 : 5; megabytes < 10; megabytes += 4) {
        trace_open(&t, 1);
        disk_bytes = megabytes << 20;
        for (int i = 0; i < 200000; i++)
            lookup(&t, 1 + random_below(90), 1);
        lookup_pages_finish(&t.pages);
        frames_db_finish(&t.db);
        disk_bytes = 0;
        CHECK(t.db.finished >= 0 && !t.db.pages.indexed && t.db.pages.error == ENOSPC, "no index on a full disk");
        ask(&t, "REINDEX lookup_code");
        ask(&t, "REINDEX guard_check_lookup");
        frames_db_read(&t.db, false);
        CHECK(!strcmp(t.db.integrity, "ok"), "full disk: %s", t.db.integrity);
        CHECK(ask(&t, "SELECT (SELECT COUNT(*) FROM lookup) + (SELECT COUNT(*) FROM guard_check)") + (int64_t)t.db.pages.lost == 400000,
              "every row is there or counted as lost: %llu", (unsigned long long)t.db.pages.lost);
        lookup_pages_close(&t.pages);
        frames_db_close(&t.db);
        free(t.window);
    }
}

int main(void)
{
    test_numbers();
    test_resume();
    test_damaged();
    test_full_disk();
    return failures != 0;
}
