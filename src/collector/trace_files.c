/* collector/trace_files.c -- the two files that become a trace. See collector/trace_files.h.
 *
 * Runs in: the collector, and the commands that begin or recover a recording. */
#include "collector/trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/frame_pages.h"
#include "lib/list.h"
#include "lib/say.h"
#include "recorder_sqlite.h"
#include "schema.h"
#include "vocabulary.h"

/* The database PATH, which is there, to be read or to WRITE it. Where it cannot be opened, nothing can be done with it, and
 * sqlite3_errmsg says why. */
static sqlite3 *file_open(const char *path, bool write)
{
    sqlite3 *db = NULL;

    sqlite3_open_v2(path, &db, write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, NULL);
    return db;
}

static bool run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* A number that SQL, of which ?1 is TEXT, finds in DB. False: nothing. */
static bool ask(sqlite3 *db, const char *sql, const char *text, uint32_t *value)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
        found = sqlite3_step(statement) == SQLITE_ROW;
        if (found)
            *value = (uint32_t)sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return found;
}

/* How many pages DB has, and the one of `frame`'s root. */
static bool pages_find(sqlite3 *db, uint32_t *pages, uint32_t *root)
{
    return ask(db, "PRAGMA page_count", NULL, pages) &&
           ask(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'frame'", NULL, root);
}

/* A log of SQLite's beside PATH does not belong to what is there from now on. */
static void side_files_remove(const char *path)
{
    for (int i = 0; i < 2; i++) {
        char *side = sqlite3_mprintf("%s%s", path, i ? "-shm" : "-wal");
        if (side)
            unlink(side);
        sqlite3_free(side);
    }
}

/* ---- making ---- */

static int file_new(const char *path, bool force)
{
    struct stat status;
    int fd;

    if (force && lstat(path, &status) == 0) { /* of a link, itself, wherever it leads */
        if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
            say_error("%s: not a regular file, so it is not written over", path);
            return -1;
        }
        if (unlink(path)) {
            say_error("%s: cannot be replaced: %s", path, strerror(errno));
            return -1;
        }
    }
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        say_error("%s: %s%s", path, errno == EEXIST ? "the file is there already" : strerror(errno),
                  errno == EEXIST ? "; use --force to replace it, or -o for another name"
                                  : "; use -o to record to another place");
    return fd;
}

/* Make the empty file PATH an empty trace. False: it was said why not. */
static bool trace_make(const char *path, uint32_t *first, uint32_t *root)
{
    sqlite3 *db = file_open(path, true);
    bool made = run(db, "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN") &&
                run(db, schema_trace_sql) && run(db, schema_views_sql) && run(db, "COMMIT") && pages_find(db, first, root);

    if (!made)
        say_error("%s: cannot make the trace: %s", path, sqlite3_errmsg(db));
    ++*first;
    sqlite3_close(db);
    return made;
}

int recorder_create(const char *path, const char *frames, bool force, uint32_t *first, uint32_t *root)
{
    int fd = file_new(path, force), frames_fd = -1;
    bool made = false;
    ssize_t copied;
    off_t at = 0;

    if (fd < 0)
        return -1;
    side_files_remove(path); /* a killed recording may have left these */
    if (trace_make(path, first, root) && (frames_fd = file_new(frames, true)) >= 0) {
        while ((copied = sendfile(frames_fd, fd, &at, 1 << 20)) > 0)
            ;
        made = copied == 0;
        if (!made)
            say_error("%s: cannot be written: %s", frames, strerror(errno));
    }
    if (!made) {
        unlink(path);
        if (frames_fd >= 0)
            unlink(frames);
    }
    close(fd);
    if (frames_fd >= 0)
        close(frames_fd);
    return made ? 0 : -1;
}

/* ---- joining ---- */

/* Copy every table but `frame` from the attached live file; then STATE. */
static bool tables_join(sqlite3 *db, const char *live, const char *state)
{
    char *attach = sqlite3_mprintf("ATTACH %Q AS live; BEGIN", live);
    /* Only at the end: a trace that says it is whole is taken at its word (recorder_finished). */
    char *end = sqlite3_mprintf("UPDATE main.meta SET value = %Q WHERE key = 'state'; DELETE FROM main.meta WHERE key = 'session';"
                                "COMMIT; DETACH live", state);
    bool done = attach && end && run(db, "PRAGMA synchronous=OFF") && run(db, attach); /* with a journal: all or nothing */

    for (int i = -1; done && i < ROW_TABLES; i++) {
        const char *name = i < 0 ? "meta" : row_tables[i].name;
        char *copy = i == TABLE_frame ? sqlite3_mprintf(
                         "UPDATE main.frame SET cache_entry_id ="
                         " (SELECT l.cache_entry_id FROM live.late_entry l WHERE l.frame_id = main.frame.frame_id)"
                         " WHERE frame_id IN (SELECT frame_id FROM live.late_entry)")
                     : sqlite3_mprintf("DELETE FROM main.%s; INSERT INTO main.%s SELECT * FROM live.%s", name, name, name);
        done = copy && run(db, copy);
        sqlite3_free(copy);
    }
    done = done && run(db, end);
    sqlite3_free(attach);
    sqlite3_free(end);
    return done;
}

int recorder_join(const char *live, const char *frames, const char *state, const char **error)
{
    static char why[512];
    sqlite3 *db = file_open(frames, true);
    bool joined = tables_join(db, live, state);

    snprintf(why, sizeof why, "%s", sqlite3_errmsg(db));
    *error = why;
    sqlite3_close(db);
    return joined ? recorder_publish(live, frames, error) : -1;
}

/* Is PATH a regular file of this user's, and no link to one? */
static bool is_own_file(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

bool recorder_is_of(const char *live, const char *frames, const char *session)
{
    const char *const paths[] = {live, frames};
    bool named = false;
    uint32_t rows;

    /* Until the two change places the trace names its session, after that what was the trace. */
    for (int i = 0; i < 2 && !named && is_own_file(live) && is_own_file(frames); i++) {
        sqlite3 *db = file_open(paths[i], false);
        named = ask(db, "SELECT 1 FROM meta WHERE key = 'session' AND value = ?1", session, &rows);
        sqlite3_close(db);
    }
    return named;
}

bool recorder_finished(const char *path)
{
    sqlite3 *db = file_open(path, true);
    uint32_t rows;
    bool joined = ask(db, "SELECT 1 FROM meta WHERE key = 'state' AND value <> 'recording'", NULL, &rows);

    sqlite3_close(db);
    return joined;
}

char *recorder_session(const char *path)
{
    char host[256] = "", *session = NULL;
    sqlite3 *db = file_open(path, true);
    sqlite3_stmt *s = NULL;

    gethostname(host, sizeof host - 1);
    if (sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'session' AND (SELECT value FROM meta WHERE key = 'host') = ?1"
                               " AND (SELECT value FROM meta WHERE key = 'state') = 'recording'", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_bind_text(s, 1, host, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        session = strdup((const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    sqlite3_close(db);
    return session;
}

int recorder_publish(const char *live, const char *frames, const char **error)
{
    /* A reader may still have the live file open. */
    side_files_remove(live);
    /* A rename that replaces a file makes ext4 start writing all of the new one,
     * which takes a second for a few GB; an exchange does not. */
    if (renameat2(AT_FDCWD, frames, AT_FDCWD, live, RENAME_EXCHANGE) == 0) {
        unlink(frames);
        return 0;
    }
    if (rename(frames, live) == 0)
        return 0;
    *error = strerror(errno);
    return -1;
}

/* ---- totals, from the frames ---- */

/* collector/decode.c keeps the totals as frames begin and end, in memory that dies with it. They follow from the rows, too:
 * a thread's frames stand in the order in which they began, so its stack at each is known from their parents.
 *
 *     for each frame, by id:
 *         its thread's frames above its parent have ended: close them
 *         push it
 *     close what is left
 *
 * A function that calls itself, through whatever else, is timed once: only its outermost activation on a thread counts
 * for total_ns. */

struct total {
    int64_t calls, total_ns, self_ns, raised;
    bool seen;
};

struct frame {
    int64_t frame_id, duration_ns, child_ns;
    uint32_t code_id;
    bool ended;
};

typedef LIST(struct frame) stack;

struct totals {
    LIST(struct total) codes;  /* by code_id */
    LIST(stack) threads;       /* by thread_id */
    struct map active;         /* thread << 32 | code: its activations that are open */
};

/* The innermost frame of THREAD is done with. */
static void frame_leave(struct totals *t, uint32_t thread_id)
{
    stack *thread = &t->threads.at[thread_id];
    struct frame *frame = &thread->at[--thread->count];
    struct total *total = &t->codes.at[frame->code_id];
    int64_t *active = map_get(&t->active, (int64_t)thread_id << 32 | frame->code_id);

    --*active;
    if (!frame->ended) /* still open when the program died: it has no time */
        return;
    total->self_ns += frame->duration_ns > frame->child_ns ? frame->duration_ns - frame->child_ns : 0;
    if (!*active)
        total->total_ns += frame->duration_ns;
    if (thread->count)
        thread->at[thread->count - 1].child_ns += frame->duration_ns;
}

/* A row of the SELECT in totals_mend. False: no memory. */
static bool frame_enter(struct totals *t, sqlite3_stmt *row)
{
    enum { FRAME, THREAD, PARENT, CODE, KIND, DURATION, EXIT };
    uint32_t thread_id = (uint32_t)sqlite3_column_int64(row, THREAD), code_id = (uint32_t)sqlite3_column_int64(row, CODE);
    bool ended = sqlite3_column_type(row, DURATION) == SQLITE_INTEGER;
    stack *thread = list_reach(&t->threads, thread_id);
    struct total *total = list_reach(&t->codes, code_id);
    int64_t *active = map_put(&t->active, (int64_t)thread_id << 32 | code_id);
    struct frame *frame;

    if (!thread || !total || !active)
        return false;
    while (thread->count && thread->at[thread->count - 1].frame_id != sqlite3_column_int64(row, PARENT))
        frame_leave(t, thread_id);
    if (!(frame = list_add(thread)))
        return false;
    ++*active;
    *frame = (struct frame){.frame_id = sqlite3_column_int64(row, FRAME), .duration_ns = sqlite3_column_int64(row, DURATION),
                            .code_id = code_id, .ended = ended};
    total->seen = true;
    total->calls += sqlite3_column_int64(row, KIND) == FRAME_CALL;
    total->raised += ended && sqlite3_column_int64(row, EXIT) == EXIT_RAISE;
    return true;
}

/* Fill the empty table code_total of DB, whose `frame` is whole. */
static bool totals_mend(sqlite3 *db)
{
    struct totals t = {0};
    sqlite3_stmt *rows = NULL, *insert = NULL;
    bool done = sqlite3_prepare_v2(db, "SELECT frame_id, thread_id, parent_id, code_id, kind, MAX(end_ns - start_ns, 0), exit FROM frame"
                                       " ORDER BY frame_id", -1, &rows, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(db, "INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (?, ?, ?, ?, ?)",
                                   -1, &insert, NULL) == SQLITE_OK;
    int step = SQLITE_DONE;

    while (done && (step = sqlite3_step(rows)) == SQLITE_ROW)
        done = frame_enter(&t, rows);
    done = done && step == SQLITE_DONE;
    for (uint32_t id = 0; id < t.threads.count; id++) {
        while (t.threads.at[id].count)
            frame_leave(&t, id);
        list_free(&t.threads.at[id]);
    }
    for (size_t id = 0; done && id < t.codes.count; id++) {
        const struct total *total = &t.codes.at[id];
        if (!total->seen)
            continue;
        sqlite3_bind_int64(insert, 1, (sqlite3_int64)id);
        sqlite3_bind_int64(insert, 2, total->calls);
        sqlite3_bind_int64(insert, 3, total->total_ns);
        sqlite3_bind_int64(insert, 4, total->self_ns);
        sqlite3_bind_int64(insert, 5, total->raised);
        done = sqlite3_step(insert) == SQLITE_DONE;
        sqlite3_reset(insert);
    }
    sqlite3_finalize(rows);
    sqlite3_finalize(insert);
    list_free(&t.threads);
    list_free(&t.codes);
    map_free(&t.active);
    return done;
}

/* ---- after a kill ---- */

int recorder_mend(const char *path, uint64_t *frames, uint32_t *processes)
{
    static const char begin[] =
        "BEGIN;"
        /* It may have been killed before it wrote anything but frames. */
        "INSERT INTO process(process_id) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM process) AND EXISTS (SELECT 1 FROM frame);"
        "INSERT OR IGNORE INTO thread(thread_id, process_id)"
        " SELECT DISTINCT thread_id, (SELECT MIN(process_id) FROM process) FROM frame;"
        "INSERT OR IGNORE INTO code(code_id, process_id, filename, qualname, first_line, kind)"
        " SELECT DISTINCT f.code_id, t.process_id, '', '(unknown code)', 0, 'function'"
        " FROM frame f JOIN thread t USING(thread_id);"
        "INSERT OR REPLACE INTO meta(key, value) VALUES ('open_frame_count', (SELECT count(*) FROM frame WHERE end_ns IS NULL))";
    sqlite3 *db = file_open(path, true);
    uint32_t count = 0, least = 0;
    bool mended = run(db, begin) && ask(db, "SELECT max(0, value) FROM meta WHERE key = 'min_duration_ns'", NULL, &least) &&
                  (least || (run(db, "DELETE FROM code_total") && totals_mend(db))) && run(db, "COMMIT");

    if (ask(db, "SELECT value FROM meta WHERE key = 'frame_count'", NULL, &count))
        *frames = count;
    ask(db, "SELECT count(executable) FROM process", NULL, processes);
    sqlite3_close(db);
    return mended ? 0 : -1;
}

/* Frames of the finished trace PATH whose parent is not in it have none, and processes that only threads name have a row. */
static bool orphans_mend(const char *path)
{
    sqlite3 *db = file_open(path, true);
    bool done = run(db, "UPDATE frame SET parent_id = NULL WHERE parent_id IS NOT NULL"
                        " AND NOT EXISTS (SELECT 1 FROM frame p WHERE p.frame_id = frame.parent_id);"
                        "INSERT INTO process(process_id) SELECT DISTINCT process_id FROM thread"
                        " WHERE process_id NOT IN (SELECT process_id FROM process)");

    sqlite3_close(db);
    return done;
}

/* ---- a trace whose recording cannot be carried on ---- */

/* The window of the file FD as it was left, or what can be known without it. False: FRAMES, of BYTES, is none of ours. */
static bool window_read(struct frame_window *window, int fd, const char *frames, off_t bytes)
{
    sqlite3 *db = file_open(frames, false);
    uint32_t pages, root, last;
    bool ours = pages_find(db, &pages, &root) && bytes >= (off_t)pages * FRAME_PAGE_BYTES;

    sqlite3_close(db);
    if (!ours)
        return false;
    last = (uint32_t)(bytes / FRAME_PAGE_BYTES) - pages; /* one more than there are, beyond SQLite's lock page */
    if (fd < 0 || pread(fd, window, sizeof *window, 0) != sizeof *window || window->first != pages + 1 ||
        window->root != root || window->written > window->next_page) {
        memset(window, 0, sizeof *window);
        window->first = pages + 1;
        window->root = root;
        window->next_page = window->written = last;
    }
    return true;
}

/* The rest, once there is a window; FD becomes ours. */
static bool salvage_finish(const char *trace, const char *frames, int fd, struct frame_window *window, const char **error)
{
    struct frame_pages pages;
    struct recorder *r = NULL;
    int64_t rows = -1;

    if (frame_pages_open(&pages, fd, window, true) == 0) {
        frame_pages_leave_all_open(&pages);
        rows = frame_pages_finish(&pages);
    }
    if (rows < 0)
        *error = pages.error ? strerror(pages.error) : "no memory";
    frame_pages_close(&pages);
    if (rows < 0 || !(r = recorder_open(trace, error)))
        return false;
    recorder_put(r, LOSS, .rowid = UINT32_MAX /* no other's */, .events = ROW_NONE, .cause = fact_string(LOSS_KILLED ", and the state that it left was damaged or is gone; "
                 "frames that were not yet written, and what the programs had not handed over, are missing"));
    recorder_meta_integer(r, "frame_count", rows);
    if (!recorder_commit(r))
        *error = recorder_error(r);
    recorder_close(r);
    return !*error && recorder_join(trace, frames, "recovered", error) == 0 && orphans_mend(trace);
}

int recorder_salvage(const char *trace, const char *frames, int window, uint64_t *frame_count, uint32_t *processes, char *error,
                     size_t room)
{
    struct frame_window *read = aligned_alloc(_Alignof(struct frame_window), sizeof *read);
    int fd = open(frames, O_RDWR | O_CLOEXEC | O_NOFOLLOW), result = -1;
    const char *why = NULL;
    struct stat status;

    if (read && fd >= 0 && fstat(fd, &status) == 0 && window_read(read, window, frames, status.st_size)) {
        if (salvage_finish(trace, frames, fd, read, &why))
            result = recorder_mend(trace, frame_count, processes);
        fd = -1;
    }
    if (result)
        snprintf(error, room, "%s: cannot be recovered: %s", trace, why ? why : "its frames are not there, or damaged");
    if (fd >= 0)
        close(fd);
    free(read);
    return result;
}
