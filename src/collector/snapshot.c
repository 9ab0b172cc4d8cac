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

/* how long the collector waits for a snapshot; a program at full speed fills a ring in 50 ms */
#define WAIT_NS UINT64_C(40000000)

enum {
    READY_TRIES = 20000, /* how often we look whether the collector is ready, once a millisecond */
    MOMENT_TRIES = 20,   /* how often to ask the collector to wait, at most */
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

static bool execute_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool set_snapshot_error(struct copying *c, const char *error)
{
    c->error = error;
    return false;
}

static void do_nothing(void *context)
{
    (void)context;
}

static void ignore_frame_row(void *context, uint64_t id, const struct frame_row *row)
{
    (void)context, (void)id, (void)row;
}

/* Ask the collector to write all events so far to the two files, and wait for it. Returns false if
 * it does not answer. */
static bool ask_collector_to_write(struct copying *c)
{
    struct state_header *header = &c->state->header;
    const uint32_t asked = atomic_fetch_add(&header->snapshot_asked, 1) + 1;

    for (int i = 0; i < READY_TRIES; i++) {
        if ((int32_t)(atomic_load(&header->snapshot_ready) - asked) >= 0)
            return true;
        if (i % 64 == 63 && session_has_running_collector(c->session->directory) == LIVE_NO)
            return set_snapshot_error(c, "its recorder has ended");
        usleep(1000);
    }
    return set_snapshot_error(c, "its recorder does not answer; it may be stopped");
}

/* Attach the new file at PATH as `trace`. Also read from trace.db once: SQLite has opened it then,
 * and begin_snapshot_transaction() is quick. */
static bool attach_snapshot_file(struct copying *c, const char *path)
{
    char *attach = sqlite3_mprintf("ATTACH %Q AS trace; PRAGMA trace.synchronous=OFF; "
                                   "SELECT COUNT(*) FROM main.meta",
                                   path);
    bool attached = attach && execute_sql(c->db, attach);

    sqlite3_free(attach);
    return attached || set_snapshot_error(c, recorder_error_message(c->db));
}

/* Begin a transaction on trace.db, and note where the pages of frames are, while the collector
 * waits. Sets *LATE if the collector waited no longer: the notes are then useless. */
static bool begin_snapshot_transaction(struct copying *c, bool *late)
{
    struct state_header *header = &c->state->header;
    const uint32_t ready = atomic_load(&header->snapshot_ready);
    bool begun = execute_sql(c->db, "BEGIN; SELECT COUNT(*) FROM main.meta");

    memcpy(c->then, &c->state->window, offsetof(struct frame_window, holds));
    memcpy(c->next, header->next, sizeof c->next);
    c->until_ns = header->snapshot_ns;
    c->began_ns = clock_monotonic_ns();
    if (!begun)
        return set_snapshot_error(c, recorder_error_message(c->db));
    if (header->snapshot_held)
        return set_snapshot_error(c,
                                  "a reader holds a transaction on the trace open; end it first");
    if (c->then->finished)
        return set_snapshot_error(c, "it is just being finished");
    atomic_thread_fence(memory_order_seq_cst);
    /* a later snapshot may have made it wait once more */
    *late = (int32_t)(atomic_load(&header->snapshot_over) - ready) >= 0;
    return true;
}

/* Ask the collector to wait, and call begin_snapshot_transaction() meanwhile. Try again if the
 * collector waited no longer. */
static bool begin_snapshot_while_collector_waits(struct copying *c)
{
    for (int i = 0; i < MOMENT_TRIES; i++) {
        bool late = false;
        if (!ask_collector_to_write(c) || !begin_snapshot_transaction(c, &late))
            return false;
        if (!late)
            return true;
        if (!execute_sql(c->db, "ROLLBACK"))
            return set_snapshot_error(c, recorder_error_message(c->db));
    }
    return set_snapshot_error(c, "this machine is too busy to read it in time; try again");
}

/* Copy the first PAGES pages of the file of frames, which are the schema with empty tables. */
static bool copy_schema(struct copying *c, uint32_t pages)
{
    uint8_t page[FRAME_PAGE_BYTES];

    for (uint32_t i = 0; i < pages; i++) {
        off_t at = (off_t)i * FRAME_PAGE_BYTES;
        if (pread(c->from, page, sizeof page, at) != sizeof page)
            return set_snapshot_error(c, "its frames cannot be read");
        if (pwrite(c->to, page, sizeof page, at) != sizeof page)
            return set_snapshot_error(c, strerror(errno ? errno : ENOSPC));
    }
    return true;
}

/* Copy the pages of frames, as they lie in the file. With --keep the collector waits during the
 * first WAIT_NS and drops nothing, which is long enough for a small file. */
static bool copy_stored_pages(struct copying *c)
{
    struct state_header *header = &c->state->header;
    struct page_copy copy = {.from = c->from,
                             .to = c->to,
                             .then = c->then,
                             .now = &c->state->window,
                             .window = c->is_window};
    const uint32_t slots = page_copy_count_slots(&copy);
    bool done = true;

    copy.found = calloc(c->then->next_page - c->then->low + 1, 1);
    for (uint32_t at = 0; done && copy.found && at < slots; at += SLOTS_AT_ONCE) {
        bool is_over = clock_monotonic_ns() - c->began_ns > WAIT_NS;
        if (is_over || !c->is_window)
            atomic_store(&header->snapshot_taken, atomic_load(&header->snapshot_ready));
        done = page_copy_slot_range(&copy, at, MIN(slots - at, (uint32_t)SLOTS_AT_ONCE));
    }
    done = done && copy.found;
    c->low = done ? page_copy_first_kept_page(&copy) : 0;
    c->from_ns = c->then->from_ns;
    if (c->low > c->then->low)
        c->from_ns = MIN(*(volatile uint64_t *)&c->state->window.from_ns, c->until_ns);
    atomic_store(&header->snapshot_taken, atomic_load(&header->snapshot_ready));
    free(copy.found);
    return done;
}

/* Copy the pages of frames, and make the b-trees over them. */
static bool copy_frame_pages(struct copying *c)
{
    const struct page_window keep = {.on = c->is_window,
                                     .most = UINT64_MAX,
                                     .begin = do_nothing,
                                     .row = ignore_frame_row,
                                     .rows_end = do_nothing};
    static struct lookup_window unfinished;
    struct frame_pages pages;
    struct lookup_pages lookups;

    if (!copy_stored_pages(c))
        return set_snapshot_error(c, strerror(errno));
    c->then->written = c->then->next_page;
    if (frame_pages_open_window(&pages, c->to, c->then, true, &keep))
        return set_snapshot_error(c, strerror(errno));
    lookup_pages_open(&lookups, &pages, &unfinished, c->next, !c->is_window);
    if (c->is_window)
        pages.indexed = true;
    c->frames = frame_pages_finish_file(&pages);
    if (pages.error)
        set_snapshot_error(c, strerror(pages.error));
    lookup_pages_close(&lookups);
    frame_pages_close(&pages);
    c->to = -1;
    return c->frames >= 0 && !c->error;
}

/* Since the moment of the snapshot the collector has dropped the pages from then->low up to c->low.
 * Copy those of their frames that it moved to `long_frame` of trace.db. */
static bool copy_long_frames(struct copying *c)
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
            for (int i = 0; i < sqlite3_column_count(rows); i++)
                sqlite3_bind_value(put, i + 1, sqlite3_column_value(rows, i));
            sqlite3_step(put);
            sqlite3_reset(put);
        }
    }
    sqlite3_finalize(rows);
    sqlite3_finalize(put);
    sqlite3_close(now);
    return step == SQLITE_DONE || set_snapshot_error(c, "its frames cannot be read");
}

/* Copy the tables as they were at the moment of the snapshot. Write the rows of `meta` that tell
 * that the trace is a snapshot. */
static bool copy_tables(struct copying *c)
{
    char *meta = sqlite3_mprintf(
        "INSERT OR REPLACE INTO trace.meta(key, value) VALUES ('frame_count', %lld), "
        "('span_ns', %lld), ('snapshot_ns', %lld)",
        (long long)c->frames, (long long)c->until_ns, (long long)c->until_ns);
    char *late = sqlite3_mprintf("UPDATE trace.meta SET value = MAX(value, %lld) WHERE key = "
                                 "'kept_from_ns'; UPDATE trace.meta SET value = %lld WHERE key = "
                                 "'kept_frame_id'; %s",
                                 (long long)c->from_ns, (long long)frame_id(c->low, 0), meta);
    bool done = (c->low <= c->then->low || copy_long_frames(c)) &&
                execute_sql(c->db, "DELETE FROM trace.meta") &&
                recorder_copy_tables(c->db, late, c->is_window ? JOIN_KEPT | JOIN_INDEXED : 0) &&
                execute_sql(c->db, schema_statement("recover/snapshot")) &&
                execute_sql(c->db, "COMMIT; DETACH trace");

    sqlite3_free(meta);
    sqlite3_free(late);
    return done || set_snapshot_error(c, recorder_error_message(c->db));
}

bool recorder_snapshot(const struct session *session, const char *path, struct recorder_end *end)
{
    struct copying c = {.session = session, .from = -1, .to = -1};
    const struct session_file *file = session->file;
    bool done = false;
    void *then;

    c.is_window = file->keep_ns || file->keep_bytes;
    c.state = collector_state_map(session);
    /* mmap, not calloc(), because the struct must begin at a page of memory */
    then = mmap(NULL, sizeof *c.then, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    c.then = then == MAP_FAILED ? NULL : then;
    c.from = open(session->frames, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    c.to = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (!c.state || !c.then)
        set_snapshot_error(&c, "its recorder has ended, or has only just begun");
    else if (c.from < 0 || c.to < 0)
        set_snapshot_error(&c, strerror(errno));
    else if (sqlite3_open_v2(session->trace, &c.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        set_snapshot_error(&c, recorder_error_message(c.db));
    else
        done = copy_schema(&c, c.state->window.first - 1) && attach_snapshot_file(&c, path) &&
               begin_snapshot_while_collector_waits(&c) && copy_frame_pages(&c) && copy_tables(&c);
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
    if (c.then)
        munmap(c.then, sizeof *c.then);
    return done;
}
