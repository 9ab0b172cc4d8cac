/* collector/trace_files.c -- makes the two files of a recording, and joins them to a trace. See
 * collector/trace_files.h.
 *
 * Runs in: the collector, and the commands that begin or recover a recording. */
#include "collector/trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/decode.h"
#include "lib/out_file.h"
#include "schema.h"
#include "tables.h"

/* Open the existing database PATH; WRITE: also to write to it. If that fails, statements on the
 * result fail, too, and sqlite3_errmsg tells why. */
static sqlite3 *open_database(const char *path, bool write)
{
    sqlite3 *db = NULL;

    sqlite3_open_v2(path, &db, write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, NULL);
    return db;
}

static bool execute_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Run the statement NAME on the database PATH, with TEXT as the value of ?1. Returns the first
 * column of its first row, which the caller frees; NULL if there is none. */
static char *query_text_of_database(const char *path, bool write, const char *name,
                                    const char *text)
{
    sqlite3 *db = open_database(path, write);
    sqlite3_stmt *statement = NULL;
    char *found = NULL;

    sqlite3_prepare_v2(db, schema_statement(name), -1, &statement, NULL);
    sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
        found = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return found;
}

/* Delete SQLite's log files of the database at PATH, which another file will replace. */
static void remove_log_files(const char *path)
{
    for (int i = 0; i < 2; i++) {
        char *side = sqlite3_mprintf("%s%s", path, i ? "-shm" : "-wal");
        if (side)
            unlink(side);
        sqlite3_free(side);
    }
}

/* ---- create the two files of a recording ---- */

/* Write BYTES of PART to FD. Returns false with errno. */
static bool write_all(int fd, const char *part, size_t bytes)
{
    ssize_t put;

    for (size_t at = 0; at < bytes; at += (size_t)put)
        if ((put = write(fd, part + at, bytes - at)) < 0)
            return false;
    return true;
}

bool recorder_delete_old_file(const char *path)
{
    struct stat status;
    bool ok = true;

    /* A link is removed, and the file that it points to stays. A link to something else than a file
     * is refused. */
    if (lstat(path, &status) == 0) {
        ok = stat(path, &status) != 0 || S_ISREG(status.st_mode);
        if (!ok)
            say_error("%s: not a regular file, so it is not written over", path);
        else if (!(ok = unlink(path) == 0))
            say_error("%s: cannot be replaced: %s", path, strerror(errno));
    }
    return ok;
}

/* Create the file PATH, an empty trace. It gets its name only when it is complete, because programs
 * look for the trace from its first moment on. HAS_LOG: the database is in WAL mode from the
 * beginning, because the recorder could not switch while a program reads. Returns false on failure,
 * which has been reported. */
static bool make_empty_trace(const char *path, bool force, bool has_log)
{
    char *unnamed;
    int fd;
    bool made;

    if (force && !recorder_delete_old_file(path))
        return false;
    if (access(path, F_OK))
        remove_log_files(path); /* log files may be left of a recording that was killed */
    unnamed = say_print("%s.XXXXXX", path);
    fd = mkostemp(unnamed, O_CLOEXEC);
    made = fd >= 0 && write_all(fd, (const char *)schema_empty, schema_empty_bytes);
    if (made && has_log)
        made = pwrite(fd, "\2\2", 2, 18) == 2;
    made = made && out_rename(unnamed, path) == 0;
    if (!made) {
        say_error("%s: %s; use %s", path,
                  errno == EEXIST ? "the file is there already" : strerror(errno),
                  errno == EEXIST ? "--force to replace it, or -o for another name"
                                  : "-o to record to another place");
        unlink(unnamed);
    }
    if (fd >= 0)
        close(fd);
    free(unnamed);
    return made;
}

int recorder_create(const char *path, const char *frames, bool force)
{
    /* turn off SQLite's memory statistics: nobody reads them, and they take a fifth of the time to
     * make a schema */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (!make_empty_trace(path, force, true))
        return -1;
    if (make_empty_trace(frames, true, false))
        return 0;
    unlink(path);
    return -1;
}

bool recorder_open_window(const char *frames, bool fresh, struct frame_window *window)
{
    char *pages = fresh ? NULL : query_text_of_database(frames, false, "recover/pages", NULL);
    const char *found = fresh ? schema_empty_pages : pages;
    uint32_t *root = window->root;
    struct stat status;
    bool sound = found && sscanf(found, "%u %u %u %u %u %u", &window->first, &root[TREE_FRAME],
                                 &root[TREE_LOOKUP], &root[TREE_CHECK], &root[TREE_LOOKUP_CODE],
                                 &root[TREE_CHECK_LOOKUP]) == 1 + PAGE_TREES;

    free(pages);
    if (!sound || stat(frames, &status) || status.st_size / FRAME_PAGE_BYTES < window->first)
        return false;
    window->finished = !fresh && status.st_size == (off_t)window->first * FRAME_PAGE_BYTES;
    /* The division counts one page too many if the file goes beyond SQLite's lock page. */
    window->next_page = window->written =
        (uint32_t)(status.st_size / FRAME_PAGE_BYTES) - window->first++;
    return true;
}

/* ---- make the totals again that a killed collector had only in its memory ---- */

/* Read from DB to which function the time of each code object belongs. */
static void read_owners(sqlite3 *db, struct decode_session *session)
{
    enum { CODE, OWNER };
    sqlite3_stmt *rows = NULL;

    sqlite3_prepare_v2(db, schema_statement("recover/owners"), -1, &rows, NULL);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        uint32_t code_id = (uint32_t)sqlite3_column_int64(rows, CODE);
        enum code_owner owner = (enum code_owner)sqlite3_column_int(rows, OWNER);
        decode_set_owner(session, code_id, owner);
    }
    sqlite3_finalize(rows);
}

/* Fill in table code_total of DB from the rows of `frame`, which must be complete. Usually
 * collector/decode.c counts totals while frames begin and end. Here they follow from the rows of
 * each thread, which are in the order in which its frames began: when a frame begins, all open
 * frames above its parent have ended. A frame whose parent was lost becomes the bottom of a
 * stack. */
static bool rebuild_code_totals(sqlite3 *db)
{
    enum { FRAME, THREAD, PARENT, CODE, CALL, DURATION, RAISED, OUTCOME };
    struct decode_session session = {0};
    LIST(struct decoder) threads = {0};
    sqlite3_stmt *rows = NULL;
    sqlite3_stmt *orphan = NULL;
    sqlite3_stmt *insert = NULL;
    int step = SQLITE_ERROR;

    read_owners(db, &session);
    sqlite3_prepare_v2(db, schema_statement("recover/frames"), -1, &rows, NULL);
    sqlite3_prepare_v2(db, schema_statement("recover/orphan"), -1, &orphan, NULL);
    sqlite3_prepare_v2(db, schema_statement("recover/total"), -1, &insert, NULL);
    while ((step = sqlite3_step(rows)) == SQLITE_ROW) {
        uint64_t parent = (uint64_t)sqlite3_column_int64(rows, PARENT);
        struct decoder *thread = list_reach(&threads, (uint32_t)sqlite3_column_int64(rows, THREAD));
        struct decode_frame *frame;
        if (!thread)
            break;
        thread->session = &session;
        while (thread->stack.count && thread->stack.at[thread->stack.count - 1].frame_id != parent)
            decode_pop_frame(thread);
        if (parent && !thread->stack.count) {
            sqlite3_bind_int64(orphan, 1, sqlite3_column_int64(rows, FRAME));
            sqlite3_step(orphan);
            sqlite3_reset(orphan);
        }
        if (!(frame = decode_push_frame(thread, (uint32_t)sqlite3_column_int64(rows, CODE),
                                        sqlite3_column_int(rows, CALL))))
            break;
        frame->frame_id = (uint64_t)sqlite3_column_int64(rows, FRAME);
        /* 0 if the frame is still open */
        frame->duration_ns = (uint64_t)sqlite3_column_int64(rows, DURATION);
        frame->raised = sqlite3_column_int(rows, RAISED);
        frame->outcome = (uint8_t)sqlite3_column_int(rows, OUTCOME);
    }
    for (size_t i = 0; i < threads.count; i++) {
        while (threads.at[i].stack.count)
            decode_pop_frame(&threads.at[i]);
        list_free(&threads.at[i].stack);
        list_free(&threads.at[i].active);
    }
    for (size_t id = 1; step == SQLITE_DONE && id < session.totals.count; id++) {
        const struct decode_total *total = &session.totals.at[id];
        if (!total->changed)
            continue;
        sqlite3_bind_int64(insert, 1, (sqlite3_int64)id);
        sqlite3_bind_int64(insert, 2, (sqlite3_int64)total->calls);
        sqlite3_bind_int64(insert, 3, (sqlite3_int64)total->total_ns);
        sqlite3_bind_int64(insert, 4, (sqlite3_int64)total->self_ns);
        sqlite3_bind_int64(insert, 5, (sqlite3_int64)total->raised);
        sqlite3_bind_int64(insert, 6, (sqlite3_int64)total->max_ns);
        sqlite3_bind_int64(insert, 7, (sqlite3_int64)total->skipped);
        sqlite3_bind_int64(insert, 8, (sqlite3_int64)total->library_ns);
        step = sqlite3_step(insert);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(rows);
    sqlite3_finalize(orphan);
    sqlite3_finalize(insert);
    list_free(&threads);
    list_free(&session.totals);
    return step == SQLITE_DONE;
}

/* ---- join the two files to one trace ---- */

/* Copy the tables into the attached trace, except those that were written as pages. The tables of
 * `dyntrace try` are not copied either: a recording has no trials, and an older dyntrace has no
 * such tables. */
static bool copy_tables(sqlite3 *db)
{
    bool done = true;

    for (int i = -1; done && i < ROW_TABLES; i++) {
        const char *name = i < 0 ? "meta" : row_tables[i].name;
        char *copy =
            sqlite3_mprintf("INSERT OR REPLACE INTO trace.%s SELECT * FROM main.%s", name, name);
        done = i == TABLE_frame || i == TABLE_lookup || i == TABLE_guard_check ||
               i == TABLE_trial || i == TABLE_trial_function || (copy && execute_sql(db, copy));
        sqlite3_free(copy);
    }
    return done;
}

/* Was the last error of DB caused by a full disk? */
static bool was_disk_full(sqlite3 *db)
{
    int number = recorder_system_error(db);

    return sqlite3_errcode(db) == SQLITE_FULL || number == ENOSPC || number == EDQUOT;
}

int64_t recorder_cpu_ns(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

/* Write the last rows of `meta`. Call this last: once `meta` says that a trace is complete, no
 * command checks it again (recorder_is_trace_finished). If the state file was lost, the processor
 * time of earlier collectors is not known, and none is written. */
static bool write_last_meta_rows(sqlite3 *db, unsigned how, int64_t cpu_ns)
{
    char *sql = sqlite3_mprintf(
        "DELETE FROM trace.meta WHERE key IN ('session', 'recorder_cpu_ns');"
        "INSERT INTO trace.meta SELECT 'recorder_cpu_ns', %lld WHERE %d;"
        "UPDATE trace.meta SET value = %Q WHERE key = 'state'; COMMIT;"
        "DETACH trace",
        (long long)cpu_ns, !(how & JOIN_SALVAGED), how & JOIN_RECOVERED ? "recovered" : "complete");
    bool done = sql && execute_sql(db, sql);

    sqlite3_free(sql);
    return done;
}

bool recorder_copy_tables(sqlite3 *db, const char *then, unsigned how)
{
    bool recovered = how & JOIN_RECOVERED;

    return copy_tables(db) && execute_sql(db, then) &&
           execute_sql(db, schema_statement("recover/views")) &&
           (!(how & JOIN_KEPT) || execute_sql(db, schema_statement("recover/kept"))) &&
           execute_sql(db, schema_statement("recover/late")) &&
           (!(how & JOIN_SALVAGED) || execute_sql(db, schema_statement("recover/salvage"))) &&
           (!recovered || execute_sql(db, schema_statement("recover/mend"))) &&
           (!(how & (JOIN_RECOVERED | JOIN_TOTALS)) ||
            (execute_sql(db, schema_statement("recover/totals")) && rebuild_code_totals(db) &&
             execute_sql(db, schema_statement("recover/counted")))) &&
           (how & JOIN_INDEXED || execute_sql(db, schema_statement("recover/index"))) &&
           execute_sql(db, schema_statement("recover/end"));
}

bool recorder_join_files(struct recorder *r, const char *live, const char *frames, unsigned how,
                         struct recorder_end *end)
{
    /* the recorder's connection has LIVE open, and has read its schema, which takes time */
    sqlite3 *db = recorder_database(r);
    char *attach =
        sqlite3_mprintf("ATTACH %Q AS trace; PRAGMA trace.synchronous=OFF; BEGIN", frames);
    /* in one transaction, so that all tables are copied or none */
    bool joined = attach && execute_sql(db, attach) && recorder_copy_tables(db, "", how);

    end->cpu_ns += recorder_cpu_ns();
    joined = joined && write_last_meta_rows(db, how, end->cpu_ns);
    end->error = recorder_error_message(db);
    end->full = !joined && was_disk_full(db);
    sqlite3_free(attach);
    recorder_close(r);
    if (joined && !recorder_rename_joined_file(live, frames, &end->error)) {
        end->full = errno == ENOSPC || errno == EDQUOT;
        joined = false;
    }
    return joined;
}

/* If database PATH has a log, let SQLite write it into the file. There is a log if the recorder was
 * killed, or another program had the database open when the recorder closed it. */
static void write_log_back(const char *path)
{
    char *log = sqlite3_mprintf("%s-wal", path);

    if (log && access(log, F_OK) == 0)
        free(query_text_of_database(path, true, "recover/log", NULL));
    sqlite3_free(log);
}

bool recorder_rename_joined_file(const char *live, const char *frames, const char **error)
{
    /* A program may open LIVE at any moment before the exchange, and must find all rows without the
     * log. So write the log into the file before the log is deleted. */
    write_log_back(live);
    remove_log_files(live);
    /* Exchange the two files. If a rename replaced the old file instead, ext4 would at once start
     * to write the new one to disk, which takes a second for a few GB. */
    if (renameat2(AT_FDCWD, frames, AT_FDCWD, live, RENAME_EXCHANGE) == 0) {
        unlink(frames);
    } else if (rename(frames, live)) {
        *error = strerror(errno);
        return false;
    }
    return true;
}

/* Copy FROM to the new file TO and wait until TO is on the disk. Returns false with errno. */
static bool copy_file_to_disk(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int failed;
    ssize_t got = -1;

    while (in >= 0 && out >= 0 && (got = copy_file_range(in, NULL, out, NULL, 1 << 30, 0)) > 0)
        ;
    /* between some filesystems copy_file_range does not work: read and write */
    if (in >= 0 && out >= 0 && got < 0) {
        static char part[1 << 16];
        lseek(in, 0, SEEK_SET);
        lseek(out, 0, SEEK_SET);
        while ((got = read(in, part, sizeof part)) > 0 && write_all(out, part, (size_t)got))
            ;
    }
    failed = in < 0 || out < 0 || got != 0 || fsync(out) || (close(out) ? (out = -1) : 0);
    got = failed ? errno : 0;
    if (in >= 0)
        close(in);
    if (out >= 0 && failed)
        close(out);
    errno = (int)got;
    return !failed;
}

bool recorder_move(const char *path, const char **error)
{
    char *to = query_text_of_database(path, true, "recover/destination", NULL);
    char *hidden = NULL;
    char *folder = strdup(path);
    const char *name = to ? strrchr(to, '/') : NULL;
    const char *own = strrchr(path, '/');
    bool moved = true;

    /* Only if the file keeps its name: so no other file of the user can be replaced by mistake. */
    if (folder && own && name && !strcmp(name, own) && strcmp(to, path)) {
        hidden = sqlite3_mprintf("%.*s/.%s.%d", (int)(name - to), to, name + 1, (int)getpid());
        moved = out_rename(path, to) == 0 || (errno != EEXIST && copy_file_to_disk(path, hidden) &&
                                              out_rename(hidden, to) == 0 && (unlink(path), true));
        if (!moved)
            *error = strerror(errno);
        unlink(hidden);
        folder[own - path] = 0;
        if (moved)
            rmdir(folder);
    }
    sqlite3_free(hidden);
    free(folder);
    free(to);
    return moved;
}

/* Is PATH a regular file of this user? A link is not. */
static bool is_regular_file_of_user(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

bool recorder_are_files_of_session(const char *live, const char *frames, const char *session)
{
    const char *const paths[] = {live, frames};
    bool named = false;

    /* the name of the session is in LIVE before the two files are exchanged, and in FRAMES
     * afterwards */
    for (int i = 0;
         i < 2 && !named && is_regular_file_of_user(live) && is_regular_file_of_user(frames); i++) {
        char *row = query_text_of_database(paths[i], false, "recover/named", session);
        named = row;
        free(row);
    }
    return named;
}

bool recorder_is_trace_finished(const char *path, uint64_t *frames, uint32_t *processes)
{
    char *counts = query_text_of_database(path, true, "recover/finished", NULL);
    bool finished = counts && sscanf(counts, "%lu %u", frames, processes) == 2;

    free(counts);
    return finished;
}

void recorder_read_keep_bounds(const char *path, uint64_t *keep_ns, uint64_t *keep_bytes,
                               uint64_t *from_ns)
{
    char *bounds = query_text_of_database(path, false, "recover/bounds", NULL);

    if (bounds)
        sscanf(bounds, "%lu %lu %lu", keep_ns, keep_bytes, from_ns);
    free(bounds);
}

char *recorder_read_session_path(const char *path)
{
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    return query_text_of_database(path, true, "recover/session", host);
}
