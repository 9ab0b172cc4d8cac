/* collector/snapshot.c -- makes a complete trace while the recording goes on. See trace_files.h.
 *
 * Runs in: the command line (`dyntrace snapshot`).
 *
 *     command                                   collector
 *     sets snapshot_asked (struct state_header)
 *                                               writes all that it has to the two files; sets
 *                                               snapshot_ready, and waits at most 40 ms
 *     begins to read trace.db in a transaction,
 *     and notes where the pages of frames are;
 *     begins again if snapshot_over is set;
 *     with --keep, copies pages for at most
 *     40 ms; sets snapshot_taken
 *                                               sets snapshot_over, and goes on
 *     copies the other pages, which the collector may change (an open frame ends) or drop; makes
 *     the tree over them, as for a trace that is finished; copies the tables of the transaction
 *
 * A page that the collector drops while we copy it is left out. The frames of that page that were
 * open or ended later are in `long_frame` by then, and are copied from there at the end. If a frame
 * ended after the moment of the snapshot, its end is removed. */
#include <errno.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/param.h>

#include "collector/state.h"
#include "collector/trace_files.h"
#include "schema.h"

#define WAIT_NS \
    UINT64_C(40000000) /* how long the collector waits; a ring holds 50 ms at full speed */

enum {
    READY_TRIES = 20000, /* of a millisecond */
    SLOTS_AT_ONCE = 256,
};

struct copying {
    const struct session *session;
    struct state_file *state; /* the collector's state file, in shared memory */
    /* owned: a copy of the collector's window from the moment of the snapshot */
    struct frame_window *then;
    uint64_t next[IDS_OF_WORDS];
    uint64_t until_ns; /* time of the latest event in the snapshot */
    uint64_t began_ns; /* CLOCK_MONOTONIC when the copying began */
    uint64_t from_ns;  /* all frames that ended after this time were copied */
    uint32_t low;      /* number of the page from which on all pages were copied */
    bool is_window;
    sqlite3 *db;
    int from, to;
    int64_t frames;
    const char *error;
};

static bool run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool failed(struct copying *c, const char *error)
{
    c->error = error;
    return false;
}

static void nothing(void *context)
{
    (void)context;
}

static void no_row(void *context, uint64_t id, const struct frame_row *row)
{
    (void)context, (void)id, (void)row;
}

/* Ask the collector to write what it has. Returns false if it does not answer. */
static bool collector_ask(struct copying *c)
{
    struct state_header *header = &c->state->header;
    const uint32_t asked = atomic_fetch_add(&header->snapshot_asked, 1) + 1;

    for (int i = 0; i < READY_TRIES; i++) {
        if ((int32_t)(atomic_load(&header->snapshot_ready) - asked) >= 0)
            return true;
        if (i % 64 == 63 && session_live(c->session->directory) == LIVE_NO)
            return failed(c, "its recorder has ended");
        usleep(1000);
    }
    return failed(c, "its recorder does not answer; it may be stopped");
}

/* Begin to read the live file, and note where the pages of frames are. The collector waits for
 * this. */
static bool moment_take(struct copying *c, const char *path)
{
    struct state_header *header = &c->state->header;
    char *attach = sqlite3_mprintf("ATTACH %Q AS trace; PRAGMA trace.synchronous=OFF; "
                                   "BEGIN; SELECT COUNT(*) FROM main.meta",
                                   path);
    bool begun = attach && run(c->db, attach);

    memcpy(c->then, &c->state->window, offsetof(struct frame_window, holds));
    memcpy(c->next, header->next, sizeof c->next);
    c->until_ns = header->snapshot_ns;
    c->began_ns = clock_monotonic_ns();
    sqlite3_free(attach);
    if (!begun)
        return failed(c, recorder_why(c->db));
    if (header->snapshot_held)
        return failed(c, "a reader holds a transaction on the trace open; end it first");
    if (c->then->finished)
        return failed(c, "it is just being finished");
    return true;
}

/* Copy the first pages of the file of frames: the schema, with empty tables. */
static bool schema_copy(struct copying *c, uint32_t pages)
{
    uint8_t page[FRAME_PAGE_BYTES];

    for (uint32_t i = 0; i < pages; i++) {
        off_t at = (off_t)i * FRAME_PAGE_BYTES;
        if (pread(c->from, page, sizeof page, at) != sizeof page)
            return failed(c, "its frames cannot be read");
        if (pwrite(c->to, page, sizeof page, at) != sizeof page)
            return failed(c, strerror(errno ? errno : ENOSPC));
    }
    return true;
}

/* Copy the pages of frames, as they lie in the file. With --keep the collector waits during the
 * first WAIT_NS and drops nothing, which is long enough for a small file. */
static bool slots_copy(struct copying *c)
{
    struct state_header *header = &c->state->header;
    struct page_copy copy = {.from = c->from,
                             .to = c->to,
                             .then = c->then,
                             .now = &c->state->window,
                             .window = c->is_window};
    const uint32_t slots = page_copy_slots(&copy);
    bool done = true;

    copy.found = calloc(c->then->next_page - c->then->low + 1, 1);
    for (uint32_t at = 0; done && copy.found && at < slots; at += SLOTS_AT_ONCE) {
        bool is_over = clock_monotonic_ns() - c->began_ns > WAIT_NS;
        if (is_over || !c->is_window)
            atomic_store(&header->snapshot_taken, atomic_load(&header->snapshot_ready));
        done = page_copy_some(&copy, at, MIN(slots - at, (uint32_t)SLOTS_AT_ONCE));
    }
    done = done && copy.found;
    c->low = done ? page_copy_low(&copy) : 0;
    c->from_ns = c->then->from_ns;
    if (c->low > c->then->low)
        c->from_ns = MIN(*(volatile uint64_t *)&c->state->window.from_ns, c->until_ns);
    atomic_store(&header->snapshot_taken, atomic_load(&header->snapshot_ready));
    free(copy.found);
    return done;
}

/* Copy the pages of frames, and make the b-trees over them. */
static bool pages_copy(struct copying *c)
{
    const struct page_window keep = {.on = c->is_window,
                                     .most = UINT64_MAX,
                                     .begin = nothing,
                                     .row = no_row,
                                     .rows_end = nothing};
    static struct lookup_window unfinished;
    struct frame_pages pages;
    struct lookup_pages lookups;

    if (!slots_copy(c))
        return failed(c, strerror(errno));
    c->then->written = c->then->next_page;
    if (frame_pages_open_window(&pages, c->to, c->then, true, &keep))
        return failed(c, strerror(errno));
    lookup_pages_open(&lookups, &pages, &unfinished, c->next, !c->is_window);
    if (c->is_window)
        pages.indexed = true;
    c->frames = frame_pages_finish(&pages);
    if (pages.error)
        failed(c, strerror(pages.error));
    lookup_pages_close(&lookups);
    frame_pages_close(&pages);
    c->to = -1;
    return c->frames >= 0 && !c->error;
}

/* Copy to the trace the frames that outlasted pages which were dropped since the moment. */
static bool rows_add(struct copying *c)
{
    sqlite3 *now = NULL;
    sqlite3_stmt *rows = NULL;
    sqlite3_stmt *put = NULL;
    int step = SQLITE_ERROR;

    sqlite3_open_v2(c->session->trace, &now, SQLITE_OPEN_READONLY, NULL);
    sqlite3_prepare_v2(now, schema_statement("recover/long"), -1, &rows, NULL);
    sqlite3_prepare_v2(c->db, schema_statement("recover/long_put"), -1, &put, NULL);
    if (rows && put) {
        sqlite3_bind_int64(rows, 1, (sqlite3_int64)frame_id(c->then->low, 0));
        sqlite3_bind_int64(rows, 2, (sqlite3_int64)frame_id(c->low, 0));
        while ((step = sqlite3_step(rows)) == SQLITE_ROW) {
            for (int i = 0; i < FRAME_COLUMNS; i++)
                sqlite3_bind_value(put, i + 1, sqlite3_column_value(rows, i));
            sqlite3_step(put);
            sqlite3_reset(put);
        }
    }
    sqlite3_finalize(rows);
    sqlite3_finalize(put);
    sqlite3_close(now);
    return step == SQLITE_DONE || failed(c, "its frames cannot be read");
}

/* Copy the tables as they were at the moment of the snapshot. Write the rows of `meta` that tell
 * that the trace is a snapshot. */
static bool tables_finish(struct copying *c)
{
    char *meta = sqlite3_mprintf(
        "INSERT OR REPLACE INTO trace.meta(key, value) VALUES ('frame_count', %lld), "
        "('span_ns', %lld), ('snapshot_ns', %lld)",
        (long long)c->frames, (long long)c->until_ns, (long long)c->until_ns);
    char *late = sqlite3_mprintf("UPDATE trace.meta SET value = MAX(value, %lld) WHERE key = "
                                 "'kept_from_ns'; UPDATE trace.meta SET value = %lld WHERE key = "
                                 "'kept_frame_id'; %s",
                                 (long long)c->from_ns, (long long)frame_id(c->low, 0), meta);
    bool done = (c->low <= c->then->low || rows_add(c)) && run(c->db, "DELETE FROM trace.meta") &&
                recorder_tables(c->db, late, c->is_window ? JOIN_KEPT | JOIN_INDEXED : 0) &&
                run(c->db, schema_statement("recover/snapshot")) &&
                run(c->db, "COMMIT; DETACH trace");

    sqlite3_free(meta);
    sqlite3_free(late);
    return done || failed(c, recorder_why(c->db));
}

bool recorder_snapshot(const struct session *session, const char *path, struct recorder_end *end)
{
    struct copying c = {.session = session, .from = -1, .to = -1};
    const struct session_file *file = session->file;
    bool done = false;

    c.is_window = file->keep_ns || file->keep_bytes;
    c.state = collector_state_map(session);
    c.then = calloc(1, sizeof *c.then);
    c.from = open(session->frames, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    c.to = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (!c.state || !c.then)
        failed(&c, "its recorder has ended, or has only just begun");
    else if (c.from < 0 || c.to < 0)
        failed(&c, strerror(errno));
    else if (sqlite3_open_v2(session->trace, &c.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        failed(&c, recorder_why(c.db));
    else
        done = schema_copy(&c, c.state->window.first - 1) && collector_ask(&c) &&
               moment_take(&c, path) && pages_copy(&c) && tables_finish(&c);
    end->error = c.error;
    /* When SQLite closes the database, it must not write its log into the file: the recording goes
     * on. */
    if (c.db)
        sqlite3_db_config(c.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(c.db);
    if (c.state)
        munmap(c.state, sizeof *c.state);
    if (c.from >= 0)
        close(c.from);
    if (c.to >= 0)
        close(c.to);
    free(c.then);
    return done;
}
