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
#include <sys/stat.h>
#include <unistd.h>

#include "collector/totals.h"
#include "lib/say.h"
#include "schema.h"

/* ---- making ---- */

static int file_new(const char *path, bool force)
{
    struct stat status;

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
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        say_error("%s: %s%s", path, errno == EEXIST ? "the file is there already" : strerror(errno),
                  errno == EEXIST ? "; use --force to replace it, or -o for another name"
                                  : "; use -o to record to another place");
    return fd;
}

/* Copy all of FROM to TO, both opened. */
static int copy_file(int from, int to)
{
    char buffer[65536];
    off_t at = 0;
    ssize_t got;

    while ((got = pread(from, buffer, sizeof buffer, at)) > 0) {
        if (pwrite(to, buffer, (size_t)got, at) != got)
            return -1;
        at += got;
    }
    return got < 0 ? -1 : 0;
}

static int query_number(sqlite3 *db, const char *sql, uint32_t *value)
{
    sqlite3_stmt *statement = NULL;
    int result = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        *value = (uint32_t)sqlite3_column_int64(statement, 0);
        result = 0;
    }
    sqlite3_finalize(statement);
    return result;
}

int recorder_create(const char *path, const char *frames, bool force, uint32_t *first, uint32_t *root)
{
    sqlite3 *db = NULL;
    int fd = -1, frames_fd = -1, result = -1;
    char *error = NULL, *side;

    fd = file_new(path, force);
    if (fd < 0)
        return -1;
    for (int i = 0; i < 2; i++) /* a killed recording may have left these */
        if ((side = sqlite3_mprintf("%s%s", path, i ? "-shm" : "-wal"))) {
            unlink(side);
            sqlite3_free(side);
        }
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;",
                     NULL, NULL, &error) != SQLITE_OK ||
        sqlite3_exec(db, schema_trace_sql, NULL, NULL, &error) != SQLITE_OK ||
        sqlite3_exec(db, schema_views_sql, NULL, NULL, &error) != SQLITE_OK ||
        sqlite3_exec(db, "COMMIT", NULL, NULL, &error) != SQLITE_OK ||
        query_number(db, "PRAGMA page_count", first) ||
        query_number(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'frame'", root)) {
        say_error("%s: cannot make the trace: %s", path, error ? error : sqlite3_errmsg(db));
        goto done;
    }
    ++*first;
    sqlite3_close(db);
    db = NULL;
    frames_fd = file_new(frames, true);
    if (frames_fd < 0)
        goto done;
    if (copy_file(fd, frames_fd)) {
        say_error("%s: cannot be written: %s", frames, strerror(errno));
        goto done;
    }
    result = 0;
done:
    sqlite3_free(error);
    sqlite3_close(db);
    if (result) {
        unlink(path);
        if (frames_fd >= 0)
            unlink(frames);
    }
    close(fd);
    if (frames_fd >= 0)
        close(frames_fd);
    return result;
}

/* ---- joining ---- */

/* Copy every table but `frame` from the attached live file. */
static int copy_tables(sqlite3 *db, char **error)
{
    sqlite3_stmt *tables = NULL;
    int status = sqlite3_prepare_v2(db, "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
                                        " AND name <> 'frame'", -1, &tables, NULL) == SQLITE_OK ? 0 : -1;

    while (!status && sqlite3_step(tables) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(tables, 0);
        char *sql = sqlite3_mprintf("DELETE FROM main.%w; INSERT INTO main.%w SELECT * FROM live.%w", name, name, name);
        status = sql && sqlite3_exec(db, sql, NULL, NULL, error) == SQLITE_OK ? 0 : -1;
        sqlite3_free(sql);
    }
    sqlite3_finalize(tables); /* after which db has forgotten the error */
    return status;
}

int recorder_join(const char *live, const char *frames, const char *state, const char **error)
{
    static char why[512];
    sqlite3 *db = NULL;
    char *sql = NULL, *copying = NULL;

    if (sqlite3_open_v2(frames, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA synchronous=OFF;", NULL, NULL, NULL) != SQLITE_OK) /* a journal: all or nothing */
        goto done;
    sql = sqlite3_mprintf("ATTACH %Q AS live", live);
    if (!sql || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        goto done;
    if (copy_tables(db, &copying))
        goto done;
    if (sqlite3_exec(db, "UPDATE main.frame SET cache_entry_id ="
                         " (SELECT l.cache_entry_id FROM live.late_entry l WHERE l.frame_id = main.frame.frame_id)"
                         " WHERE frame_id IN (SELECT frame_id FROM live.late_entry)", NULL, NULL, NULL) != SQLITE_OK)
        goto done;
    /* Only now: a trace that says it is whole is taken at its word (recorder_finished). */
    sqlite3_free(sql);
    sql = sqlite3_mprintf("UPDATE main.meta SET value = %Q WHERE key = 'state'; DELETE FROM main.meta WHERE key = 'session'", state);
    if (!sql || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        goto done;
    if (sqlite3_exec(db, "COMMIT; DETACH live", NULL, NULL, NULL) != SQLITE_OK)
        goto done;
    sqlite3_close(db);
    sqlite3_free(sql);
    return recorder_publish(live, frames, error);
done:
    snprintf(why, sizeof why, "%s", copying ? copying : sqlite3_errmsg(db));
    *error = why;
    sqlite3_free(copying);
    sqlite3_free(sql);
    sqlite3_close(db);
    return -1;
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

    /* Until the two change places the trace names its session, after that what was the trace. */
    for (int i = 0; i < 2 && !named && is_own_file(live) && is_own_file(frames); i++) {
        sqlite3 *db = NULL;
        sqlite3_stmt *statement = NULL;
        named = sqlite3_open_v2(paths[i], &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(db, "SELECT 1 FROM meta WHERE key = 'session' AND value = ?", -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_bind_text(statement, 1, session, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW;
        sqlite3_finalize(statement);
        sqlite3_close(db);
    }
    return named;
}

bool recorder_finished(const char *path)
{
    sqlite3 *db = NULL;
    uint32_t rows = 0;
    bool joined = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
                  query_number(db, "SELECT count(*) FROM meta WHERE key = 'state' AND value <> 'recording'", &rows) == 0 && rows;

    sqlite3_close(db);
    return joined;
}

char *recorder_session(const char *path)
{
    char host[256] = "", *session = NULL;
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;

    gethostname(host, sizeof host - 1);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'session' AND (SELECT value FROM meta WHERE key = 'host') = ?1"
                               " AND (SELECT value FROM meta WHERE key = 'state') = 'recording'", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_bind_text(s, 1, host, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        session = strdup((const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    sqlite3_close(db);
    return session;
}

int recorder_pages(const char *frames, uint32_t *pages, uint32_t *root)
{
    sqlite3 *db = NULL;
    int result = sqlite3_open_v2(frames, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                         query_number(db, "PRAGMA page_count", pages) == 0 &&
                         query_number(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'frame'", root) == 0
                     ? 0 : -1;

    sqlite3_close(db);
    return result;
}

int recorder_publish(const char *live, const char *frames, const char **error)
{
    char *side;

    /* A reader may still have the live file open. Its log must not be found
     * beside the new file, to which it does not belong. */
    for (int i = 0; i < 2; i++)
        if ((side = sqlite3_mprintf("%s%s", live, i ? "-shm" : "-wal"))) {
            unlink(side);
            sqlite3_free(side);
        }
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
    sqlite3 *db = NULL;
    uint32_t count = 0, least = 0;
    int result = -1;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_exec(db, begin, NULL, NULL, NULL) == SQLITE_OK &&
        query_number(db, "SELECT max(0, value) FROM meta WHERE key = 'min_duration_ns'", &least) == 0 &&
        (least || (sqlite3_exec(db, "DELETE FROM code_total", NULL, NULL, NULL) == SQLITE_OK && totals_from_frames(db) == 0)) &&
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        result = 0;
    if (query_number(db, "SELECT value FROM meta WHERE key = 'frame_count'", &count) == 0)
        *frames = count;
    query_number(db, "SELECT count(executable) FROM process", processes);
    sqlite3_close(db);
    return result;
}

int recorder_orphans(const char *path)
{
    static const char sql[] = "UPDATE frame SET parent_id = NULL WHERE parent_id IS NOT NULL"
                              " AND NOT EXISTS (SELECT 1 FROM frame p WHERE p.frame_id = frame.parent_id);"
                              "INSERT INTO process(process_id) SELECT DISTINCT process_id FROM thread"
                              " WHERE process_id NOT IN (SELECT process_id FROM process)";
    sqlite3 *db = NULL;
    int result = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
                         sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;

    sqlite3_close(db);
    return result;
}
