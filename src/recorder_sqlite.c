/* recorder_sqlite.c -- the trace's tables through SQLite. See recorder_sqlite.h.
 *
 * Runs in: the collector, never in the traced program.
 *
 * Only `frame` is written elsewhere (collector/frame_pages.c): its rows come a thousand
 * times more often than all others together. */
#include "recorder_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring.h"
#include "lib/say.h"
#include "schema.h"
#include "collector/totals.h"
#include "vocabulary.h"

enum statement {
    PROCESS, THREAD, CODE, TOTAL, LOSS, META,
    ENTRY, ENTRY_DIED, GUARD, GUARD_ORDER, COMPILE, COMPILE_BEGUN, COMPILE_FRAME, COMPILE_ENTRY, ENTRY_COMPILE, CAUSE, SIGNATURE, LOOKUP, CHECK, LATE_ENTRY,
    NOTE, GRAPH, GRAPH_NODE, BREAK, LISTING, PHASE, ORIGIN, MARK,
    STATEMENTS
};

static const char *const statement_sql[STATEMENTS] = {
    [PROCESS] = "INSERT INTO process(process_id, pid, parent_process_id, rank, argv, executable,"
                " python_version, mode, start_ns, end_ns, exit_code, exit_signal, local_rank, torch_version, torch_mode, torch_note)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT(process_id) DO UPDATE SET parent_process_id = excluded.parent_process_id,"
                " rank = excluded.rank, local_rank = excluded.local_rank,"
                /* a recovery must not forget what was known of it, nor how it ended */
                " argv = COALESCE(excluded.argv, argv), executable = COALESCE(excluded.executable, executable),"
                " python_version = COALESCE(excluded.python_version, python_version), mode = COALESCE(excluded.mode, mode),"
                " torch_version = COALESCE(excluded.torch_version, torch_version),"
                " torch_mode = COALESCE(excluded.torch_mode, torch_mode), torch_note = COALESCE(excluded.torch_note, torch_note),"
                " end_ns = COALESCE(end_ns, excluded.end_ns), exit_code = COALESCE(excluded.exit_code, exit_code),"
                " exit_signal = COALESCE(excluded.exit_signal, exit_signal)",
    [THREAD] = "INSERT OR REPLACE INTO thread(thread_id, process_id, os_tid, name) VALUES (?, ?, ?, ?)",
    /* What it was made from may have been said before. */
    [CODE] = "INSERT INTO code(code_id, process_id, filename, qualname, first_line, kind, fingerprint)"
             " VALUES (?, ?, ?, ?, ?, ?, ?)"
             " ON CONFLICT(code_id) DO UPDATE SET process_id = excluded.process_id, filename = excluded.filename,"
             " qualname = excluded.qualname, first_line = excluded.first_line, kind = COALESCE(kind, excluded.kind),"
             " fingerprint = excluded.fingerprint",
    [TOTAL] = "INSERT OR REPLACE INTO code_total(code_id, calls, total_ns, self_ns, raised) VALUES (?, ?, ?, ?, ?)",
    [LOSS] = "INSERT OR REPLACE INTO loss(process_id, thread_id, at_ns, events, cause, rowid) VALUES (?, ?, ?, ?, ?, ?)",
    [META] = "INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)",
    [ENTRY] = "INSERT INTO cache_entry(cache_entry_id, code_id, label, backend, guard_count, born_ns, region_id) VALUES (?, ?, ?, ?, ?, ?, ?)"
              " ON CONFLICT(cache_entry_id) DO NOTHING",
    /* The first of its deaths: what a fork has handed on dies in each process. */
    [ENTRY_DIED] = "UPDATE cache_entry SET died_ns = ?2, death_cause = ?3 WHERE cache_entry_id = ?1 AND (died_ns IS NULL OR died_ns > ?2)",
    [GUARD] = "INSERT OR REPLACE INTO guard(guard_id, cache_entry_id, ordinal, kind, source, expression, user_stack)"
              " VALUES (?, ?, ?, ?, ?, ?, NULLIF(?, ''))",
    [GUARD_ORDER] = "INSERT OR REPLACE INTO guard_order(cache_entry_id, from_ns, ordinals, rowid) VALUES (?, ?, ?, ?)",
    /* A compilation is told in parts, which come in any order. */
    [COMPILE] = "INSERT INTO compile(compile_id, code_id, label, outcome, reason, start_ns, end_ns) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT(compile_id) DO UPDATE SET code_id = excluded.code_id, label = COALESCE(NULLIF(label, ''), excluded.label),"
                " outcome = COALESCE(outcome, excluded.outcome), reason = COALESCE(NULLIF(reason, ''), excluded.reason),"
                " start_ns = excluded.start_ns, end_ns = excluded.end_ns",
    [COMPILE_BEGUN] = "INSERT INTO compile(compile_id, code_id, start_ns) VALUES (?, ?, ?) ON CONFLICT(compile_id) DO NOTHING",
    [COMPILE_FRAME] = "INSERT INTO compile(compile_id, frame_id, thread_id) VALUES (?, ?, ?)"
                      " ON CONFLICT(compile_id) DO UPDATE SET frame_id = excluded.frame_id, thread_id = excluded.thread_id",
    [COMPILE_ENTRY] = "INSERT INTO compile(compile_id, cache_entry_id) VALUES (?, ?)"
                      " ON CONFLICT(compile_id) DO UPDATE SET cache_entry_id = excluded.cache_entry_id",
    [ENTRY_COMPILE] = "UPDATE cache_entry SET compile_id = ?1 WHERE cache_entry_id = ?2",
    [CAUSE] = "INSERT OR REPLACE INTO recompile_cause(rowid, compile_id, cache_entry_id, ordinal, guard_id, kind, source, aspect,"
              " dimension, expected, actual, text, how) VALUES (?11, ?1, ?2, ?3, ?4, COALESCE(NULLIF(?5, ''), (SELECT kind FROM guard WHERE guard_id = ?4)),"
              " COALESCE(NULLIF(?10, ''), (SELECT source FROM guard WHERE guard_id = ?4)), NULLIF(?12, ''), ?13, NULLIF(?6, ''), NULLIF(?7, ''),"
              " CASE WHEN ?8 <> '' THEN ?8 ELSE (SELECT expression FROM guard WHERE guard_id = ?4) || ' did not hold' END, ?9)",
    [SIGNATURE] = "INSERT OR REPLACE INTO signature(signature_id, text) VALUES (?, ?)",
    [LOOKUP] = "INSERT OR REPLACE INTO lookup(lookup_id, frame_id, thread_id, code_id, start_ns, duration_ns, outcome,"
               " cache_entry_id, entries_checked, signature_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [CHECK] = "INSERT OR REPLACE INTO guard_check(guard_check_id, lookup_id, position, cache_entry_id, result, failed_guard_id,"
              " guards_run, duration_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [NOTE] = "INSERT INTO compile(compile_id, label, outcome, reason, sticky)"
             " VALUES (?1, NULLIF(?2, ''), NULLIF(?3, ''), NULLIF(?4, ''), ?5)"
             " ON CONFLICT(compile_id) DO UPDATE SET label = COALESCE(excluded.label, label),"
             " outcome = COALESCE(excluded.outcome, outcome), reason = COALESCE(excluded.reason, reason),"
             " sticky = COALESCE(excluded.sticky, sticky)",
    [GRAPH] = "INSERT OR REPLACE INTO graph(graph_id, compile_id, name, node_count) VALUES (?, ?, ?, ?)",
    [GRAPH_NODE] = "INSERT OR REPLACE INTO graph_node(graph_id, ordinal, opcode, name, target, args, kwargs)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?)",
    [BREAK] = "INSERT OR REPLACE INTO graph_break(graph_break_id, compile_id, code_id, line, offset, reason, user_stack, resume_code_id)"
              " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [LISTING] = "INSERT OR REPLACE INTO listing(compile_id, kind, text, rowid) VALUES (?, ?, ?, ?)",
    [PHASE] = "INSERT OR REPLACE INTO compile_phase(compile_id, name, start_ns, end_ns, label, rowid)"
              " VALUES (?, ?, ?, ?, NULLIF(?, ''), ?)",
    [ORIGIN] = "INSERT INTO code(code_id, origin_code_id, kind) VALUES (?, ?, ?)"
               " ON CONFLICT(code_id) DO UPDATE SET origin_code_id = excluded.origin_code_id, kind = excluded.kind",
    [MARK] = "INSERT OR REPLACE INTO code_mark(code_id, at_ns, action, recursive_action, region_id, reason, rowid)"
             " VALUES (?, ?, ?, ?, ?, NULLIF(?, ''), ?)",
    [LATE_ENTRY] = "INSERT OR REPLACE INTO late_entry(frame_id, cache_entry_id) VALUES (?, ?)",
};

struct recorder {
    sqlite3 *db;
    sqlite3_stmt *statement[STATEMENTS];
    bool begun, failed;
    struct row_log *log;    /* borrowed; NULL: none */
    int log_fd;             /* borrowed */
    char error[256];
};

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

/* ---- writing ---- */

struct recorder *recorder_open(const char *path, const char **error)
{
    static char why[256];
    struct recorder *r = calloc(1, sizeof *r);

    if (!r || sqlite3_open_v2(path, &r->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(r->db, 50) != SQLITE_OK ||
        sqlite3_exec(r->db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL; PRAGMA cache_size=-4096;"
                            /* Lookups may come a million a second; their indexes are in the other file. */
                            "DROP INDEX IF EXISTS lookup_code; DROP INDEX IF EXISTS guard_check_lookup;"
                            "CREATE TABLE IF NOT EXISTS late_entry(frame_id INTEGER PRIMARY KEY, cache_entry_id INTEGER)", NULL, NULL, NULL) != SQLITE_OK)
        goto err;
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v3(r->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &r->statement[i], NULL) != SQLITE_OK)
            goto err;
    return r;
err:
    snprintf(why, sizeof why, "%s", r && r->db ? sqlite3_errmsg(r->db) : "out of memory");
    *error = why;
    recorder_close(r);
    return NULL;
}

void recorder_close(struct recorder *r)
{
    if (!r)
        return;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(r->statement[i]);
    sqlite3_close(r->db);
    free(r);
}

static void remember_error(struct recorder *r)
{
    r->failed = true;
    snprintf(r->error, sizeof r->error, "%s", sqlite3_errmsg(r->db));
}

const char *recorder_error(const struct recorder *r)
{
    return r->error[0] ? r->error : NULL;
}

volatile sig_atomic_t recorder_in_sqlite;

/* SQL without rows. */
static bool execute(struct recorder *r, const char *sql)
{
    bool done;

    recorder_in_sqlite = 1;
    done = sqlite3_exec(r->db, sql, NULL, NULL, NULL) == SQLITE_OK;
    recorder_in_sqlite = 0;
    return done;
}

/* A statement ready to be bound, inside a transaction. */
static sqlite3_stmt *begin(struct recorder *r, enum statement which)
{
    if (!r->begun) {
        if (execute(r, "BEGIN"))
            r->begun = true;
        else
            remember_error(r);
    }
    return r->statement[which];
}

static void run(struct recorder *r, sqlite3_stmt *statement)
{
    recorder_in_sqlite = 1;
    if (sqlite3_step(statement) != SQLITE_DONE)
        remember_error(r);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    recorder_in_sqlite = 0;
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    if (text)
        sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

static void bind_id(sqlite3_stmt *statement, int at, uint64_t id)
{
    if (id)
        sqlite3_bind_int64(statement, at, (sqlite3_int64)id);
}

/* ---- the log ---- */

enum row_kind { ROW_PROCESS = 1, ROW_LOSS, ROW_LOOKUP, ROW_CHECK, ROW_COMPILE_FRAME, ROW_LATE_ENTRY };

struct row_compile_frame {
    uint64_t frame_id;
    uint32_t compile_id, thread_id;
};

struct row_loss {            /* then its cause */
    struct recorder_loss loss;
    uint64_t cause_bytes;
};

struct row_late_entry {
    uint64_t frame_id;
    uint32_t entry_id;
};

void recorder_log(struct recorder *r, struct row_log *log, int fd)
{
    r->log = log;
    r->log_fd = fd;
}

static inline void keep(struct recorder *r, enum row_kind kind, const void *row, size_t bytes)
{
    if (r->log)
        row_log_append(r->log, r->log_fd, kind, row, bytes, NULL, 0);
}

/* A row of the log, which may have been scribbled over. */
static void say_again(struct recorder *r, const struct row_head *head)
{
    const char *row = (const char *)(head + 1);
    size_t bytes = head->bytes - sizeof *head;
    struct recorder_process process;
    struct row_compile_frame frame;
    struct row_late_entry entry;
    struct row_loss loss;
    char cause[ROW_CAUSE_MAX + 1];

    switch (head->kind) {
    case ROW_PROCESS:
        if (bytes < sizeof process)
            break;
        memcpy(&process, row, sizeof process);
        process.argv = process.executable = process.python_version = process.mode = NULL;
        process.torch_version = process.torch_mode = process.torch_note = NULL;
        recorder_process(r, &process);
        break;
    case ROW_LOSS:
        if (bytes < sizeof loss)
            break;
        memcpy(&loss, row, sizeof loss);
        if (loss.cause_bytes > bytes - sizeof loss || loss.cause_bytes > ROW_CAUSE_MAX)
            break;
        snprintf(cause, sizeof cause, "%.*s", (int)loss.cause_bytes, row + sizeof loss);
        recorder_loss(r, &loss.loss, cause);
        break;
    case ROW_LOOKUP:
        if (bytes >= sizeof(struct recorder_lookup))
            recorder_lookup(r, (const struct recorder_lookup *)row);
        break;
    case ROW_CHECK:
        if (bytes >= sizeof(struct recorder_check))
            recorder_check(r, (const struct recorder_check *)row);
        break;
    case ROW_COMPILE_FRAME:
        if (bytes < sizeof frame)
            break;
        memcpy(&frame, row, sizeof frame);
        recorder_compile_frame(r, frame.compile_id, frame.frame_id, frame.thread_id);
        break;
    case ROW_LATE_ENTRY:
        if (bytes < sizeof entry)
            break;
        memcpy(&entry, row, sizeof entry);
        recorder_late_entry(r, entry.frame_id, entry.entry_id);
        break;
    default:
        break;
    }
}

bool recorder_replay(struct recorder *r, uint64_t end)
{
    struct row_log *log = r->log;
    const char *at = log->data, *stop = log->data;
    bool done;

    if (log->start <= log->end && log->end - log->start <= ROW_LOG_BYTES)
        stop += (end < log->start ? log->start : end > log->end ? log->end : end) - log->start;
    else
        log->end = log->start;
    r->log = NULL; /* they are in it */
    while ((size_t)(stop - at) >= sizeof(struct row_head)) {
        const struct row_head *head = (const struct row_head *)at;
        if (head->bytes < sizeof *head || head->bytes % 8 || head->bytes > (size_t)(stop - at))
            break;
        say_again(r, head);
        at += head->bytes;
    }
    log->end = log->sure = log->start + (uint64_t)(stop - log->data);
    r->log = log;
    done = recorder_commit(r);
    return done;
}

bool recorder_log_full(const struct recorder *r)
{
    return r->log && r->log->end - r->log->start > ROW_LOG_ENOUGH;
}

/* ---- processes, code ---- */

void recorder_process(struct recorder *r, const struct recorder_process *p)
{
    sqlite3_stmt *s = begin(r, PROCESS);

    if (p->ended)
        keep(r, ROW_PROCESS, p, sizeof *p);
    sqlite3_bind_int64(s, 1, p->process_id);
    sqlite3_bind_int64(s, 2, p->pid);
    bind_id(s, 3, p->parent_process_id);
    if (p->rank >= 0)
        sqlite3_bind_int64(s, 4, p->rank);
    bind_text(s, 5, p->argv);
    bind_text(s, 6, p->executable);
    bind_text(s, 7, p->python_version);
    bind_text(s, 8, p->mode);
    sqlite3_bind_int64(s, 9, (sqlite3_int64)p->start_ns);
    if (p->ended)
        sqlite3_bind_int64(s, 10, (sqlite3_int64)p->end_ns);
    if (p->has_status && !p->exit_signal)
        sqlite3_bind_int(s, 11, p->exit_code);
    if (p->has_status && p->exit_signal)
        sqlite3_bind_int(s, 12, p->exit_signal);
    if (p->local_rank >= 0)
        sqlite3_bind_int64(s, 13, p->local_rank);
    bind_text(s, 14, p->torch_version);
    bind_text(s, 15, p->torch_mode);
    bind_text(s, 16, p->torch_note);
    run(r, s);
}

void recorder_thread(struct recorder *r, uint32_t thread_id, uint32_t process_id, uint32_t os_tid,
                     const char *name, uint32_t name_bytes)
{
    sqlite3_stmt *s = begin(r, THREAD);

    sqlite3_bind_int64(s, 1, thread_id);
    sqlite3_bind_int64(s, 2, process_id);
    bind_id(s, 3, os_tid);
    if (name_bytes)
        sqlite3_bind_text(s, 4, name, (int)name_bytes, SQLITE_STATIC);
    run(r, s);
}

/* The words of schemas/trace.sql for what a code object is. */
static const char *code_kind(const struct recorder_code *code)
{
    enum { NEW_LOCALS = 2, GENERATOR = 0x20, COROUTINE = 0x80, ASYNC_GENERATOR = 0x200 }; /* co_flags */
    const char *name = code->name, *end = name + code->name_bytes, *dot;

    /* The last part of the qualified name: "<locals>.f.<lambda>" -> "<lambda>". */
    for (dot = end; dot > name && dot[-1] != '.'; dot--)
        ;
    size_t length = (size_t)(end - dot);
#define IS(text) (length == sizeof text - 1 && !memcmp(dot, text, sizeof text - 1))
    if (code->flags & COROUTINE)
        return "coroutine";
    if (code->flags & ASYNC_GENERATOR)
        return "async_generator";
    if (code->flags & GENERATOR)
        return "generator";
    if (IS("<listcomp>") || IS("<setcomp>") || IS("<dictcomp>"))
        return "comprehension";
    if (IS("<lambda>"))
        return "lambda";
    if (IS("<module>"))
        return "module";
    return code->flags & NEW_LOCALS ? "function" : "class";
#undef IS
}

void recorder_code(struct recorder *r, const struct recorder_code *code)
{
    sqlite3_stmt *s = begin(r, CODE);

    sqlite3_bind_int64(s, 1, code->code_id);
    sqlite3_bind_int64(s, 2, code->process_id);
    sqlite3_bind_text(s, 3, code->file, (int)code->file_bytes, SQLITE_STATIC);
    sqlite3_bind_text(s, 4, code->name, (int)code->name_bytes, SQLITE_STATIC);
    sqlite3_bind_int(s, 5, code->first_line);
    sqlite3_bind_text(s, 6, code_kind(code), -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 7, (sqlite3_int64)code->fingerprint);
    run(r, s);
}

void recorder_total(struct recorder *r, uint32_t code_id, uint64_t calls, uint64_t total_ns,
                    uint64_t self_ns, uint64_t raised)
{
    sqlite3_stmt *s = begin(r, TOTAL);

    sqlite3_bind_int64(s, 1, code_id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)calls);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)total_ns);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)self_ns);
    sqlite3_bind_int64(s, 5, (sqlite3_int64)raised);
    run(r, s);
}

void recorder_loss(struct recorder *r, const struct recorder_loss *loss, const char *cause)
{
    sqlite3_stmt *s = begin(r, LOSS);

    if (r->log) {
        struct row_loss row = {*loss, strnlen(cause, ROW_CAUSE_MAX)};
        row_log_append(r->log, r->log_fd, ROW_LOSS, &row, sizeof row, cause, row.cause_bytes);
    }
    bind_id(s, 1, loss->process_id);
    bind_id(s, 2, loss->thread_id);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)loss->at_ns);
    if (loss->events != RECORDER_MANY)
        sqlite3_bind_int64(s, 4, (sqlite3_int64)loss->events);
    sqlite3_bind_text(s, 5, cause, -1, SQLITE_STATIC);
    bind_id(s, 6, loss->loss_id);
    run(r, s);
}

/* ---- the shim's tables ---- */

static void bind_recorder_text(sqlite3_stmt *statement, int at, struct recorder_text text)
{
    if (text.text)
        sqlite3_bind_text(statement, at, text.text, text.bytes, SQLITE_STATIC);
}

void recorder_entry(struct recorder *r, uint32_t entry_id, uint32_t code_id, struct recorder_text label,
                    struct recorder_text backend, int64_t region, uint32_t guards, uint64_t born_ns)
{
    sqlite3_stmt *s = begin(r, ENTRY);

    sqlite3_bind_int64(s, 1, entry_id);
    bind_id(s, 2, code_id);
    bind_recorder_text(s, 3, label);
    bind_recorder_text(s, 4, backend);
    sqlite3_bind_int64(s, 5, guards);
    sqlite3_bind_int64(s, 6, (sqlite3_int64)born_ns);
    if (region >= 0)
        sqlite3_bind_int64(s, 7, region);
    run(r, s);
}

void recorder_entry_died(struct recorder *r, uint32_t entry_id, uint64_t died_ns, struct recorder_text cause)
{
    sqlite3_stmt *s = begin(r, ENTRY_DIED);

    sqlite3_bind_int64(s, 1, entry_id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)died_ns);
    bind_recorder_text(s, 3, cause);
    run(r, s);
}

void recorder_guard(struct recorder *r, uint32_t guard_id, uint32_t entry_id, uint32_t ordinal, struct recorder_text kind,
                    struct recorder_text source, struct recorder_text expression, struct recorder_text stack)
{
    sqlite3_stmt *s = begin(r, GUARD);

    sqlite3_bind_int64(s, 1, guard_id);
    sqlite3_bind_int64(s, 2, entry_id);
    sqlite3_bind_int64(s, 3, ordinal);
    bind_recorder_text(s, 4, kind);
    bind_recorder_text(s, 5, source);
    bind_recorder_text(s, 6, expression);
    bind_recorder_text(s, 7, stack);
    run(r, s);
}

void recorder_guard_order(struct recorder *r, uint32_t note_id, uint32_t entry_id, uint64_t from_ns, struct recorder_text ordinals)
{
    sqlite3_stmt *s = begin(r, GUARD_ORDER);

    sqlite3_bind_int64(s, 1, entry_id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)from_ns);
    bind_recorder_text(s, 3, ordinals);
    sqlite3_bind_int64(s, 4, note_id);
    run(r, s);
}

void recorder_compile(struct recorder *r, uint32_t compile_id, uint32_t code_id, struct recorder_text label,
                      struct recorder_text outcome, struct recorder_text reason, uint64_t start_ns, uint64_t end_ns)
{
    sqlite3_stmt *s = begin(r, COMPILE);

    sqlite3_bind_int64(s, 1, compile_id);
    bind_id(s, 2, code_id);
    bind_recorder_text(s, 3, label);
    bind_recorder_text(s, 4, outcome);
    bind_recorder_text(s, 5, reason);
    sqlite3_bind_int64(s, 6, (sqlite3_int64)start_ns);
    sqlite3_bind_int64(s, 7, (sqlite3_int64)end_ns);
    run(r, s);
}

void recorder_compile_begun(struct recorder *r, uint32_t compile_id, uint32_t code_id, uint64_t start_ns)
{
    sqlite3_stmt *s = begin(r, COMPILE_BEGUN);

    sqlite3_bind_int64(s, 1, compile_id);
    bind_id(s, 2, code_id);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)start_ns);
    run(r, s);
}

void recorder_compile_frame(struct recorder *r, uint32_t compile_id, uint64_t frame_id, uint32_t thread_id)
{
    sqlite3_stmt *s = begin(r, COMPILE_FRAME);

    keep(r, ROW_COMPILE_FRAME, &(struct row_compile_frame){frame_id, compile_id, thread_id}, sizeof(struct row_compile_frame));
    sqlite3_bind_int64(s, 1, compile_id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)frame_id);
    sqlite3_bind_int64(s, 3, thread_id);
    run(r, s);
}

void recorder_compile_entry(struct recorder *r, uint32_t compile_id, uint32_t entry_id)
{
    sqlite3_stmt *s = begin(r, COMPILE_ENTRY);

    sqlite3_bind_int64(s, 1, compile_id);
    sqlite3_bind_int64(s, 2, entry_id);
    run(r, s);
    s = begin(r, ENTRY_COMPILE);
    sqlite3_bind_int64(s, 1, compile_id);
    sqlite3_bind_int64(s, 2, entry_id);
    run(r, s);
}

void recorder_cause(struct recorder *r, const struct recorder_cause *cause)
{
    sqlite3_stmt *s = begin(r, CAUSE);

    sqlite3_bind_int64(s, 1, cause->compile_id);
    bind_id(s, 2, cause->entry_id);
    sqlite3_bind_int64(s, 3, cause->ordinal);
    bind_id(s, 4, cause->guard_id);
    bind_recorder_text(s, 5, cause->kind);
    bind_recorder_text(s, 6, cause->expected);
    bind_recorder_text(s, 7, cause->actual);
    bind_recorder_text(s, 8, cause->words);
    bind_text(s, 9, cause->again ? "re-checked" : "observed");
    bind_recorder_text(s, 10, cause->source);
    sqlite3_bind_int64(s, 11, cause->note_id);
    bind_recorder_text(s, 12, cause->aspect);
    if (cause->dimension >= 0)
        sqlite3_bind_int(s, 13, cause->dimension);
    run(r, s);
}

/* ---- what torch's bridge notes ---- */

void recorder_note(struct recorder *r, uint32_t compile_id, struct recorder_text label, struct recorder_text outcome,
                   struct recorder_text reason, int sticky)
{
    sqlite3_stmt *s = begin(r, NOTE);

    sqlite3_bind_int64(s, 1, compile_id);
    bind_recorder_text(s, 2, label);
    bind_recorder_text(s, 3, outcome);
    bind_recorder_text(s, 4, reason);
    if (sticky < 2)
        sqlite3_bind_int(s, 5, sticky);
    run(r, s);
}

void recorder_graph(struct recorder *r, uint32_t graph_id, uint32_t compile_id, struct recorder_text name, uint32_t nodes)
{
    sqlite3_stmt *s = begin(r, GRAPH);

    sqlite3_bind_int64(s, 1, graph_id);
    sqlite3_bind_int64(s, 2, compile_id);
    bind_recorder_text(s, 3, name);
    sqlite3_bind_int64(s, 4, nodes);
    run(r, s);
}

void recorder_graph_node(struct recorder *r, uint32_t graph_id, uint32_t ordinal, const struct recorder_text fields[5])
{
    sqlite3_stmt *s = begin(r, GRAPH_NODE);

    sqlite3_bind_int64(s, 1, graph_id);
    sqlite3_bind_int64(s, 2, ordinal);
    for (int i = 0; i < 5; i++)
        bind_recorder_text(s, 3 + i, fields[i]);
    run(r, s);
}

void recorder_break(struct recorder *r, uint32_t break_id, uint32_t compile_id, uint32_t code_id, int64_t line, int64_t offset,
                    struct recorder_text reason, struct recorder_text stack, uint32_t resume_code_id)
{
    sqlite3_stmt *s = begin(r, BREAK);

    sqlite3_bind_int64(s, 1, break_id);
    sqlite3_bind_int64(s, 2, compile_id);
    bind_id(s, 3, code_id);
    sqlite3_bind_int64(s, 4, line);
    if (offset >= 0)
        sqlite3_bind_int64(s, 5, offset);
    bind_recorder_text(s, 6, reason);
    bind_recorder_text(s, 7, stack);
    bind_id(s, 8, resume_code_id);
    run(r, s);
}

void recorder_listing(struct recorder *r, uint32_t note_id, uint32_t compile_id, struct recorder_text kind, struct recorder_text text)
{
    sqlite3_stmt *s = begin(r, LISTING);

    sqlite3_bind_int64(s, 1, compile_id);
    bind_recorder_text(s, 2, kind);
    bind_recorder_text(s, 3, text);
    sqlite3_bind_int64(s, 4, note_id);
    run(r, s);
}

void recorder_phase(struct recorder *r, uint32_t note_id, uint32_t compile_id, struct recorder_text name, uint64_t start_ns, uint64_t end_ns,
                    struct recorder_text label)
{
    sqlite3_stmt *s = begin(r, PHASE);

    bind_id(s, 1, compile_id);
    bind_recorder_text(s, 2, name);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)start_ns);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)end_ns);
    bind_recorder_text(s, 5, label);
    sqlite3_bind_int64(s, 6, note_id);
    run(r, s);
}

void recorder_origin(struct recorder *r, uint32_t code_id, uint32_t origin_code_id, struct recorder_text kind)
{
    sqlite3_stmt *s = begin(r, ORIGIN);

    sqlite3_bind_int64(s, 1, code_id);
    bind_id(s, 2, origin_code_id);
    bind_recorder_text(s, 3, kind);
    run(r, s);
}

void recorder_mark(struct recorder *r, uint32_t note_id, uint32_t code_id, uint64_t at_ns, const char *action, const char *callees, int64_t region,
                   struct recorder_text reason)
{
    sqlite3_stmt *s = begin(r, MARK);

    sqlite3_bind_int64(s, 1, code_id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)at_ns);
    bind_text(s, 3, action);
    bind_text(s, 4, callees);
    if (region >= 0)
        sqlite3_bind_int64(s, 5, region);
    bind_recorder_text(s, 6, reason);
    sqlite3_bind_int64(s, 7, note_id);
    run(r, s);
}

void recorder_signature(struct recorder *r, uint32_t signature_id, struct recorder_text text)
{
    sqlite3_stmt *s = begin(r, SIGNATURE);

    sqlite3_bind_int64(s, 1, signature_id);
    bind_recorder_text(s, 2, text);
    run(r, s);
}

void recorder_lookup(struct recorder *r, const struct recorder_lookup *lookup)
{
    sqlite3_stmt *s = begin(r, LOOKUP);

    keep(r, ROW_LOOKUP, lookup, sizeof *lookup);
    sqlite3_bind_int64(s, 1, (sqlite3_int64)lookup->lookup_id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)lookup->frame_id);
    sqlite3_bind_int64(s, 3, lookup->thread_id);
    sqlite3_bind_int64(s, 4, lookup->code_id);
    sqlite3_bind_int64(s, 5, (sqlite3_int64)lookup->start_ns);
    sqlite3_bind_int64(s, 6, (sqlite3_int64)lookup->duration_ns);
    sqlite3_bind_int64(s, 7, lookup->outcome);
    bind_id(s, 8, lookup->entry_id);
    if (lookup->checked != RECORDER_UNKNOWN)
        sqlite3_bind_int64(s, 9, lookup->checked);
    bind_id(s, 10, lookup->signature_id);
    run(r, s);
}

void recorder_check(struct recorder *r, const struct recorder_check *check)
{
    sqlite3_stmt *s = begin(r, CHECK);

    keep(r, ROW_CHECK, check, sizeof *check);
    sqlite3_bind_int64(s, 1, (sqlite3_int64)check->check_id);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)check->lookup_id);
    sqlite3_bind_int64(s, 3, check->position);
    bind_id(s, 4, check->entry_id);
    if (check->result < CHECK_RESULTS)
        bind_text(s, 5, check_words[check->result]);
    bind_id(s, 6, check->failed_guard_id);
    if (check->guards_run >= 0)
        sqlite3_bind_int64(s, 7, check->guards_run);
    if (check->duration_ns >= 0)
        sqlite3_bind_int64(s, 8, check->duration_ns);
    run(r, s);
}

void recorder_late_entry(struct recorder *r, uint64_t frame_id, uint32_t entry_id)
{
    sqlite3_stmt *s = begin(r, LATE_ENTRY);

    keep(r, ROW_LATE_ENTRY, &(struct row_late_entry){frame_id, entry_id}, sizeof(struct row_late_entry));
    sqlite3_bind_int64(s, 1, (sqlite3_int64)frame_id);
    sqlite3_bind_int64(s, 2, entry_id);
    run(r, s);
}

void recorder_meta(struct recorder *r, const char *key, const char *text)
{
    sqlite3_stmt *s = begin(r, META);

    bind_text(s, 1, key);
    bind_text(s, 2, text);
    run(r, s);
}

void recorder_meta_integer(struct recorder *r, const char *key, int64_t value)
{
    sqlite3_stmt *s = begin(r, META);

    bind_text(s, 1, key);
    sqlite3_bind_int64(s, 2, value);
    run(r, s);
}

void recorder_totals_read(struct recorder *r, void (*take)(void *context, uint32_t code_id, const uint64_t totals[4]),
                          void *context)
{
    sqlite3_stmt *s = NULL;
    uint64_t totals[4];

    if (sqlite3_prepare_v2(r->db, "SELECT code_id, calls, total_ns, self_ns, raised FROM code_total", -1, &s, NULL) == SQLITE_OK)
        while (sqlite3_step(s) == SQLITE_ROW) {
            for (int i = 0; i < 4; i++)
                totals[i] = (uint64_t)sqlite3_column_int64(s, 1 + i);
            take(context, (uint32_t)sqlite3_column_int64(s, 0), totals);
        }
    sqlite3_finalize(s);
}

uint64_t recorder_missing(struct recorder *r, char *worst, size_t room)
{
    sqlite3_stmt *s = NULL;
    uint64_t rows = 0;

    if (sqlite3_prepare_v2(r->db, "SELECT count(*) OVER (), cause || IIF(events > 0, ' (' || events || ')', '') FROM loss"
                                  " WHERE cause NOT LIKE '" LOSS_STALL "%' AND cause NOT LIKE '" LOSS_INTERPRETER "%'"
                                  " AND cause NOT LIKE '" LOSS_KILLED "%' ORDER BY events DESC, rowid LIMIT 1",
                           -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
        rows = (uint64_t)sqlite3_column_int64(s, 0);
        snprintf(worst, room, "%s", (const char *)sqlite3_column_text(s, 1));
    }
    sqlite3_finalize(s);
    return rows;
}

bool recorder_commit(struct recorder *r)
{
    bool failed;

    if (r->begun) {
        if (execute(r, "COMMIT")) {
            r->begun = false;
            if (r->log)
                r->log->start = r->log->end;
        } else {
            remember_error(r);
            if (sqlite3_get_autocommit(r->db)) /* SQLite has rolled back by itself */
                r->begun = false;
        }
    }
    failed = r->failed;
    r->failed = false;
    return !failed;
}

int recorder_mend(const char *path, uint64_t *frames, uint32_t *processes)
{
    static const char begin[] =
        "BEGIN;"
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

/* ---- the end ---- */

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
