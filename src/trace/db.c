/* trace/db.c -- a trace opened for reading: a thin layer over SQLite. See trace/db.h. */
#include "trace/db.h"

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/bounds.h"
#include "lib/list.h"
#include "lib/near.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/functions.h"
#include "trace/path.h"
#include "trace/swap.h"
#include "trace/trust.h"

enum {
    /* how long to wait for a lock, which a running recorder takes many times a second */
    BUSY_MS = 5000,
    /* steps of SQLite between two calls of stop_query_if_needed(), which take a few milliseconds */
    PROGRESS_STEPS = 200000,
    EACH_COLUMNS = 16,
    IDLE_MOST = 64, /* how many prepared statements are kept for the next trace; merging uses 25 */
    /* the most bytes of a text or blob; a recording's longest texts are listings of a few MB */
    VALUE_MOST = 16 << 20,
    TEXT_SHOWN = 64 << 10, /* query_text() cuts a text that is longer than this many bytes */
};

/* an error message about a damaged trace has been printed since the last db_allow_retry */
static atomic_bool damage_said;

struct db {
    sqlite3 *handle; /* owned */
    atomic_bool interrupted;
    char *path; /* owned: the path of the trace's file */
    char *name; /* owned: the name for messages; NULL: messages use the path */
    void (*progress)(void *context);
    void *progress_context;
    struct functions *functions; /* owned: our SQL functions, which this connection can call */
    bool error, views;
    /* owned: the schema of a trace that db_open_single_trace() has opened and checked, otherwise
     * NULL. The connection can switch to another trace that has an equal schema. */
    char *schema;
    LIST(sqlite3_stmt *) idle; /* owned: prepared statements of earlier traces, for reuse */
};

struct query {
    struct db *db;           /* borrowed */
    sqlite3_stmt *statement; /* owned */
    bool failed;
    struct arena cuts; /* owned: long texts of the current row, shortened */
};

/* ---- opening and closing traces ------------------------------------------ */

/* The authorizer: allow only reading. A read-only connection alone would still allow ATTACH and
 * VACUUM INTO, which create files. */
static int allow_only_reading(void *unused, int action, const char *first, const char *second,
                              const char *database, const char *trigger)
{
    static const char *const denied[] = {
        "temp_store_directory", "data_store_directory", "query_only", "trusted_schema", "mmap_size",
    };

    for (size_t i = 0; action == SQLITE_PRAGMA && first && i < array_count(denied); i++)
        if (!strcasecmp(first, denied[i]))
            return SQLITE_DENY;
    return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

/* The authorizer while trials are added: allow writing, but only to the two tables of trials. */
static int allow_writing_of_trials(void *unused, int action, const char *first, const char *second,
                                   const char *database, const char *trigger)
{
    bool changes = action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE;
    bool makes = action == SQLITE_CREATE_TABLE || action == SQLITE_CREATE_VIEW ||
                 action == SQLITE_DROP_TABLE || action == SQLITE_ALTER_TABLE;
    bool is_of_trials = changes && (!strcmp(first, "trial") || !strcmp(first, "trial_function"));

    if (makes || (changes && !is_of_trials))
        return SQLITE_DENY;
    return allow_only_reading(unused, action, first, second, database, trigger);
}

/* Set SQLite's limits for a file that may come from a stranger. They are far above what a trace
 * needs, and far below what the machine has. */
static void harden_connection(sqlite3 *handle)
{
    static const int off[] = {
        SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        SQLITE_DBCONFIG_ENABLE_TRIGGER,
        SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
        SQLITE_DBCONFIG_DQS_DML,
        SQLITE_DBCONFIG_DQS_DDL,
    };
    static const int limits[][2] = {
        {SQLITE_LIMIT_LENGTH, VALUE_MOST}, {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
        {SQLITE_LIMIT_COLUMN, 500},        {SQLITE_LIMIT_COMPOUND_SELECT, 100},
        {SQLITE_LIMIT_VDBE_OP, 100000},    {SQLITE_LIMIT_EXPR_DEPTH, 200},
        {SQLITE_LIMIT_FUNCTION_ARG, 100},  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 10},  {SQLITE_LIMIT_WORKER_THREADS, 0},
    };

    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    for (size_t i = 0; i < array_count(off); i++)
        sqlite3_db_config(handle, off[i], 0, NULL);
    for (size_t i = 0; i < array_count(limits); i++)
        sqlite3_limit(handle, limits[i][0], limits[i][1]);
    sqlite3_busy_timeout(handle, BUSY_MS);
}

static const char *damage_words = "the file is damaged; `dyntrace fsck` tells more";

void db_describe_damage(const char *words)
{
    damage_words = words;
}

/* Return the message for an SQLite error: SQLite's own, or a clearer one. Borrowed. */
static const char *error_message(sqlite3 *handle, int status)
{
    const char *over = bounds_get_time_message();

    switch (status & 0xff) {
    case SQLITE_NOTADB:
        return "not an SQLite database, so not a trace";
    case SQLITE_CORRUPT:
        return damage_words;
    case SQLITE_BUSY:
        return "another program keeps it locked";
    case SQLITE_INTERRUPT:
        return over ? over : "interrupted";
    case SQLITE_TOOBIG:
        return "holds a value or makes a row of more than 16 MB, which no recording does";
    case SQLITE_READONLY:
        return "the trace is open for reading only";
    case SQLITE_AUTH:
        return "only reading is allowed here";
    case SQLITE_NOMEM:
        bounds_end_without_memory();
        return sqlite3_errstr(status);
    default:
        return sqlite3_errmsg(handle);
    }
}

/* SQLite calls this function every few milliseconds of a query. A result other than 0 stops the
 * query. */
static int stop_query_if_needed(void *context)
{
    struct db *db = context;

    if (db->progress)
        db->progress(db->progress_context);
    return bounds_get_time_message() != NULL;
}

static struct db *db_new(const char *path)
{
    struct db *db = calloc(1, sizeof *db);

    db->path = strdup(path);
    return db;
}

char *db_make_absolute_path(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !st.st_nlink ? strdup(path) : realpath(path, NULL);
}

/* Open URI with our limits and SQL functions. VFS names the file system layer, or is NULL for
 * SQLite's own. Returns SQLite's status. */
static int open_connection(struct db *db, const char *uri, int flags, const char *vfs)
{
    int status;

    path_configure_sqlite();
    status = sqlite3_open_v2(uri, &db->handle, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, vfs);
    harden_connection(db->handle);
    sqlite3_progress_handler(db->handle, PROGRESS_STEPS, stop_query_if_needed, db);
    if (status == SQLITE_OK)
        db->functions = functions_register(db->handle);
    return status;
}

/* How a trace is opened. Several of these values can be combined. */
enum how {
    VIEWS = 1,  /* add the views of schemas/views.sql, which most SQL needs */
    EACH = 2,   /* the trace is one of many that are read one after the other */
    QUIET = 4,  /* print no message for a file that is not a trace */
    TRIALS = 8, /* open for writing, so that trials can be added */
};

/* Owned: connections that db_open_single_trace() can use again, each that of the last trace which
 * was opened with EACH and then closed. [0] has no views, [1] has views. */
static _Atomic(struct db *) kept[2];

static void close_handle(struct db *db)
{
    for (size_t i = 0; i < db->idle.count; i++)
        sqlite3_finalize(db->idle.at[i]);
    list_free(&db->idle);
    free(db->schema);
    db->schema = NULL;
    sqlite3_close(db->handle);
    functions_free(db->functions);
    db->functions = NULL;
    db->handle = NULL;
}

/* Make DB's open connection read the file ABSOLUTE from now on. If the file has another schema,
 * close the connection and return false. */
static bool switch_to_other_file(struct db *db, const char *absolute)
{
    int status = SQLITE_OK;
    struct path_facts facts = path_read_facts(absolute);
    char *schema = facts.plain && swap_open_other_file(db->handle, absolute, facts.locks) &&
                           sqlite3_exec(db->handle, "BEGIN", NULL, NULL, NULL) == SQLITE_OK
                       ? trust_read_schema(db->handle, &status)
                       : NULL;
    bool same = schema && !strcmp(schema, db->schema);

    functions_drop_cached_trace(db->functions);
    free(schema);
    if (!same)
        close_handle(db);
    return same;
}

/* Connect DB to the file ABSOLUTE. Returns SQLite's status. */
static int connect_to_file(struct db *db, const char *absolute, enum how how)
{
    struct path_facts facts = path_read_facts(absolute);
    bool each = how & EACH && facts.plain;
    char *uri = path_make_uri(absolute, facts, how & TRIALS);
    int access = how & TRIALS ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    int status = open_connection(db, uri, access, each ? swap_vfs_name() : NULL);

    if (status == SQLITE_OK)
        status = sqlite3_exec(db->handle, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", NULL,
                              NULL, NULL);
    /* The page cache is small, because the system caches the file too, and because each sorter of
     * SQLite takes as much memory as the page cache. Without views, tables are read in order, which
     * needs even less. */
    if (status == SQLITE_OK)
        status = sqlite3_exec(
            db->handle, how & VIEWS ? "PRAGMA cache_size = -16384" : "PRAGMA cache_size = -4096",
            NULL, NULL, NULL);
    /* with EACH, keep one lock as long as the file is open, which costs less than a lock
     * for each query */
    if (status == SQLITE_OK && how & EACH)
        status = sqlite3_exec(db->handle, "BEGIN", NULL, NULL, NULL);
    if (each)
        db->schema = trust_read_schema(db->handle, &status);
    free(uri);
    return status;
}

/* Open DB's file for reading. Returns NULL, or the reason why the file cannot be read, which the
 * caller frees. */
static char *open_file(struct db *db, enum how how)
{
    int status = SQLITE_OK;
    char *absolute, *why;
    struct stat st;
    bool new;

    if (stat(db->path, &st) != 0)
        return say_print("%s", strerror(errno));
    if (!S_ISREG(st.st_mode)) /* do not open a FIFO, because that would wait forever */
        return say_print("%s", S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file");
    if (!st.st_size) /* SQLite would delete a write-ahead log beside an empty file */
        return say_print("is empty: it has no bytes, so it is not a dyntrace trace");
    if (access(db->path, R_OK) != 0 || !(absolute = db_make_absolute_path(db->path)))
        return say_print("%s", strerror(errno));
    bounds_set_for_trace(absolute);
    if ((new = !db->handle || !switch_to_other_file(db, absolute)))
        status = connect_to_file(db, absolute, how);
    free(absolute);
    why = status == SQLITE_OK ? trust_check_schema(db->handle, new, how & VIEWS, &status) : NULL;
    if (status != SQLITE_OK)
        why = say_print("%s", error_message(db->handle, status));
    if (!why && how & TRIALS) {
        status = trust_make_trials(db->handle);
        if (status != SQLITE_OK)
            why = say_print("%s", error_message(db->handle, status));
        sqlite3_set_authorizer(db->handle, allow_writing_of_trials, NULL);
    } else if (!why && new) {
        sqlite3_exec(db->handle, "PRAGMA query_only = ON", NULL, NULL, NULL);
        sqlite3_set_authorizer(db->handle, allow_only_reading, NULL);
    }
    return why;
}

/* Open the trace at PATH. If PATH is not a readable trace, returns NULL and, unless HOW has QUIET,
 * reports an error. */
static struct db *open_trace_at_path(const char *path, enum how how)
{
    struct db *db = how & EACH ? atomic_exchange(&kept[!!(how & VIEWS)], NULL) : NULL;
    char *why;

    if (db)
        db->path = strdup(path);
    else
        db = db_new(path);
    why = open_file(db, how);
    db->views = how & VIEWS;
    if (!why)
        return db;
    if (!(how & QUIET))
        say_error("%s: %s", path, why);
    free(why);
    db->error = true;
    db_close(db);
    return NULL;
}

/* Return when the trace at PATH was last changed. During a recording perhaps only the write-ahead
 * log changes, so the log's time counts, too. */
static int64_t last_change_ns(const char *path)
{
    char *log = say_print("%s-wal", path);
    int64_t changed = 0;

    for (int i = 0; i < 2; i++) {
        struct stat st = {0};
        int64_t at = stat(i ? log : path, &st)
                         ? 0
                         : st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
        changed = at > changed ? at : changed;
    }
    free(log);
    return changed;
}

/* Open the newest trace among the *.db files of the current directory. Files that are not traces
 * are skipped silently. */
static struct db *find_newest(void)
{
    struct db *db = NULL;
    glob_t found = {0};

    glob("./*.db", 0, NULL, &found);
    for (size_t left = found.gl_pathc; left && !db; left--) {
        char **newest = found.gl_pathv;
        char **last = &found.gl_pathv[left - 1];
        char *path;
        for (char **other = newest + 1; other <= last; other++)
            if (last_change_ns(*other) > last_change_ns(*newest))
                newest = other;
        path = *newest;
        *newest = *last;
        *last = path;
        db = open_trace_at_path(path + 2, VIEWS | QUIET);
    }
    globfree(&found);
    return db;
}

static struct db *open_newest(void)
{
    struct db *db = find_newest();

    if (!db)
        say_error("no trace: this directory has no *.db that is one; name a file, or record one by "
                  "`dyntrace run`");
    return db;
}

bool db_is_trace_in_directory(void)
{
    struct db *db = find_newest();
    bool is_here = db;

    db_close(db);
    return is_here;
}

struct db *db_open(const char *path)
{
    bounds_allow_memory_failure(true);
    return path ? open_trace_at_path(path, VIEWS) : open_newest();
}

struct db *db_open_single_trace(const char *path, bool views)
{
    bounds_allow_memory_failure(true);
    return open_trace_at_path(path, EACH | (views ? VIEWS : 0));
}

struct db *db_open_for_trials(const char *path)
{
    bounds_allow_memory_failure(true);
    return open_trace_at_path(path, TRIALS);
}

struct db *db_open_with_name(const char *path, const char *name)
{
    struct db *db = db_open(path);

    if (db)
        db->name = strdup(name);
    return db;
}

struct db *db_open_scratch(const char *what, const char *script)
{
    struct db *db = db_new(what);

    /* The database is in memory up to the size of its cache, then in a file without a name. */
    open_connection(db, "", SQLITE_OPEN_READWRITE, NULL);
    db_run(db, script);
    return db;
}

void db_close(struct db *db)
{
    struct db *none = NULL;
    bool keep;

    if (!db)
        return;
    free(db->path);
    free(db->name);
    db->path = db->name = NULL;
    keep = db->schema && !db->error && !atomic_load(&db->interrupted);
    if (keep) {
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
        swap_close_file(db->handle);
        db_set_progress_callback(db, NULL, NULL);
    }
    if (!keep || !atomic_compare_exchange_strong(&kept[db->views], &none, db)) {
        close_handle(db);
        free(db);
    }
}

const char *db_get_path(const struct db *db)
{
    return db->name ? db->name : db->path;
}

const char *db_get_file_path(const struct db *db)
{
    return db->path;
}

void db_interrupt(struct db *db)
{
    atomic_store(&db->interrupted, true);
    sqlite3_interrupt(db->handle);
}

void db_set_progress_callback(struct db *db, void (*call)(void *context), void *context)
{
    db->progress = call;
    db->progress_context = context;
}

bool db_was_interrupted(struct db *db)
{
    return stop_query_if_needed(db) || atomic_load(&db->interrupted);
}

struct sqlite3 *db_sqlite(struct db *db)
{
    return db->handle;
}

struct lines *db_get_source_lines(struct db *db)
{
    return functions_get_lines(db->functions);
}

/* ---- running queries ----------------------------------------------------- */

/* Give NEAR the names that the user may have meant in SQL. STATEMENT of schemas/sql.sql
 * selects these names. */
static void offer_names(struct db *db, struct near *near, const char *statement, const char *sql)
{
    sqlite3_stmt *names;

    if (sqlite3_prepare_v2(db->handle, schema_statement(statement), -1, &names, NULL) != SQLITE_OK)
        return;
    sqlite3_bind_text(names, 1, sql, -1, SQLITE_STATIC);
    while (sqlite3_step(names) == SQLITE_ROW)
        near_offer_name(near, (const char *)sqlite3_column_text(names, 0));
    sqlite3_finalize(names);
}

/* Report that SQL cannot be prepared: print SQLite's MESSAGE, and the known names that are most
 * like the unknown name in the message. */
static void report_unprepared(struct db *db, const char *message, const char *sql)
{
    static const struct {
        const char *begins, *names;
    } unknown[] = {
        {"no such table: ", "sql/tables-of"},
        {"no such column: ", "sql/columns-of"},
    };
    char *said = strdup(message);
    struct near near = near_begin("");

    for (size_t i = 0; i < array_count(unknown); i++) {
        size_t length = strlen(unknown[i].begins);
        if (!strncmp(said, unknown[i].begins, length)) {
            const char *name = said + length;
            /* the name of a column may follow the alias of a table, as in "p.name" */
            const char *dot = strrchr(name, '.');
            near = near_begin(dot ? dot + 1 : name);
            offer_names(db, &near, unknown[i].names, sql);
        }
    }
    say_error("%s: %s%s", db_get_path(db), said, near_make_question(&near, ""));
    free(said);
}

/* Report SQLite's error for a query. SQL is the query's text if preparing it failed, otherwise
 * NULL. */
static void report_query_error(struct db *db, const char *sql)
{
    int status = sqlite3_errcode(db->handle);
    bool damage = status == SQLITE_CORRUPT || status == SQLITE_NOTADB || status == SQLITE_TOOBIG;

    db->error = true;
    /* a damaged file fails many queries of one command: report it once */
    if (damage && !say_is_redirected() && atomic_exchange(&damage_said, true))
        return;
    if (status == SQLITE_ERROR && sql)
        report_unprepared(db, error_message(db->handle, status), sql);
    else
        say_error("%s: %s", db_get_path(db), error_message(db->handle, status));
}

/* Take the prepared statement of SQL that was kept from an earlier trace. Returns NULL if none was
 * kept. */
static sqlite3_stmt *take_idle_statement(struct db *db, const char *sql)
{
    for (size_t i = 0; i < db->idle.count; i++) {
        sqlite3_stmt *statement = db->idle.at[i];
        if (!strcmp(sqlite3_sql(statement), sql)) {
            db->idle.at[i] = db->idle.at[--db->idle.count];
            return statement;
        }
    }
    return NULL;
}

struct query *db_query_next(struct db *db, const char *sql, const char **rest)
{
    sqlite3_stmt *statement = take_idle_statement(db, sql);
    struct query *query = NULL;

    if (statement && rest)
        *rest = sql + strlen(sql);
    else if (!statement && sqlite3_prepare_v2(db->handle, sql, -1, &statement, rest) != SQLITE_OK)
        report_query_error(db, sql);
    if (statement) {
        query = calloc(1, sizeof *query);
        query->db = db;
        query->statement = statement;
    }
    return query;
}

struct query *db_query(struct db *db, const char *sql)
{
    return db_query_next(db, sql, NULL);
}

bool db_is_sql_complete(const char *sql)
{
    sqlite3 *empty = NULL;
    sqlite3_stmt *statement = NULL;
    bool parses = true;

    if (sqlite3_open(":memory:", &empty) == SQLITE_OK)
        parses = sqlite3_prepare_v2(empty, sql, -1, &statement, NULL) != SQLITE_ERROR;
    sqlite3_finalize(statement);
    sqlite3_close(empty);
    return parses;
}

bool db_has_failed(const struct db *db)
{
    return db->error;
}

void db_allow_retry(struct db *db)
{
    db->error = false;
    atomic_store(&db->interrupted, false);
    damage_said = false;
}

bool db_complete(const char *sql)
{
    return sqlite3_complete(sql);
}

int query_parameters(struct query *query)
{
    return query ? sqlite3_bind_parameter_count(query->statement) : 0;
}

void query_bind_integer(struct query *query, int parameter, int64_t value)
{
    if (query)
        sqlite3_bind_int64(query->statement, parameter, value);
}

void query_bind_text(struct query *query, int parameter, const char *text)
{
    if (query)
        sqlite3_bind_text(query->statement, parameter, text, -1, SQLITE_TRANSIENT);
}

void query_bind_column(struct query *query, int parameter, struct query *from, int column)
{
    if (query)
        sqlite3_bind_value(query->statement, parameter,
                           sqlite3_column_value(from->statement, column));
}

void query_bind_row(struct query *query, int parameter, struct query *from, int columns)
{
    for (int i = 0; i < columns; i++)
        query_bind_column(query, parameter + i, from, i);
}

struct query *db_query_with_values_(struct db *db, const char *sql, const int64_t *values,
                                    size_t count)
{
    struct query *query = db_query(db, sql);

    for (size_t i = 1; i < count; i++)
        query_bind_integer(query, (int)i, values[i]);
    return query;
}

bool query_step(struct query *query)
{
    int status;

    if (!query || query->failed)
        return false;
    arena_free(&query->cuts);
    status = sqlite3_step(query->statement);
    query->failed = status != SQLITE_ROW && status != SQLITE_DONE;
    if (query->failed)
        report_query_error(query->db, NULL);
    return status == SQLITE_ROW;
}

bool query_failed(const struct query *query)
{
    return !query || query->failed;
}

void query_reset(struct query *query)
{
    if (query)
        sqlite3_reset(query->statement);
}

void query_execute(struct query *query)
{
    query_step(query);
    query_reset(query);
}

void query_close(struct query *query)
{
    bool is_kept;

    if (!query)
        return;
    arena_free(&query->cuts);
    is_kept = query->db->schema && !query->failed;
    if (!is_kept || query->db->idle.count >= IDLE_MOST) {
        sqlite3_finalize(query->statement);
    } else {
        sqlite3_reset(query->statement);
        sqlite3_clear_bindings(query->statement);
        *list_add(&query->db->idle) = query->statement;
    }
    free(query);
}

bool db_run(struct db *db, const char *sql)
{
    while (*sql && !db->error) {
        struct query *query = db_query_next(db, sql, &sql);
        while (query_step(query))
            ;
        query_close(query);
    }
    return !db->error;
}

/* Replace the view NAME in `temp` by a table of its rows, with an index on code_id or, if the view
 * has no code_id, on cache_entry_id. */
static void replace_view_by_table(struct db *db, const char *name)
{
    struct query *view = db_query(
        db,
        "SELECT 'DROP VIEW temp.' || name || '; CREATE TEMP TABLE ' || substr(sql, 13) || "
        "'; CREATE INDEX temp.' || name || '_code ON ' || name || (SELECT '(' || MAX(c.name) || "
        "')' FROM pragma_table_info(?1) c WHERE c.name IN ('code_id', 'cache_entry_id')) FROM "
        "temp.sqlite_schema WHERE type = 'view' AND name = ?1");
    char *sql = NULL;

    query_bind_text(view, 1, name);
    if (query_step(view))
        sql = strdup(query_whole_value(view, 0, NULL));
    query_close(view);
    if (sql)
        db_run(db, sql);
    free(sql);
}

void db_store_view_as_table(struct db *db, const char *name)
{
    enum { FEW = 2000 };
    int64_t codes = db_integer(db, 0, "SELECT MAX(code_id) FROM code");
    int64_t lookups = db_integer(db, 0, "SELECT MAX(lookup_id) FROM lookup");
    bool is_large = codes > FEW || lookups / 10 > FEW;
    bool is_whole = db_integer(db, 0, "SELECT value <> 'recording' FROM meta WHERE key = 'state'");

    if (!is_large || !is_whole)
        return;
    /* no authorizer is needed while only our own statement runs; it is set again below */
    sqlite3_set_authorizer(db->handle, NULL, NULL);
    db_run(db, "PRAGMA query_only = OFF");
    replace_view_by_table(db, name);
    db_run(db, "PRAGMA query_only = ON");
    sqlite3_set_authorizer(db->handle, allow_only_reading, NULL);
}

int query_columns(struct query *query)
{
    return query ? sqlite3_column_count(query->statement) : 0;
}

const char *query_name(struct query *query, int column)
{
    const char *name = sqlite3_column_name(query->statement, column);

    return name ? name : "";
}

enum query_type query_type(struct query *query, int column)
{
    int type = sqlite3_column_type(query->statement, column);

    return type == SQLITE_NULL ? QUERY_NULL : (enum query_type)type;
}

int64_t query_integer(struct query *query, int column)
{
    return sqlite3_column_int64(query->statement, column);
}

double query_real(struct query *query, int column)
{
    return sqlite3_column_double(query->statement, column);
}

const char *query_whole_value(struct query *query, int column, size_t *bytes)
{
    /* Read the pointer before the length: SQLite may convert the value to text, which changes its
     * length. */
    const void *text = sqlite3_column_type(query->statement, column) == SQLITE_BLOB
                           ? sqlite3_column_blob(query->statement, column)
                           : sqlite3_column_text(query->statement, column);

    if (bytes)
        *bytes = text ? (size_t)sqlite3_column_bytes(query->statement, column) : 0;
    return text ? text : "";
}

const char *query_text(struct query *query, int column, size_t *bytes)
{
    size_t all;
    const char *text = query_whole_value(query, column, &all);
    int kept = TEXT_SHOWN;

    if (all > TEXT_SHOWN) {
        /* move the cut before a UTF-8 character if it would be inside it */
        while (kept > TEXT_SHOWN - 4 && (text[kept] & 0xc0) == 0x80)
            kept--;
        text = arena_print(&query->cuts, "%.*s… (cut: %zu bytes)", kept, text, all);
        all = strlen(text);
    }
    if (bytes)
        *bytes = all;
    return text;
}

char *query_copy(struct query *query, int column)
{
    return query_type(query, column) == QUERY_NULL ? NULL : strdup(query_text(query, column, NULL));
}

void db_run_in_temporary(struct db *db, const char *script)
{
    /* forget the schema, so that no other trace reuses this connection, which has
     * temporary tables now */
    free(db->schema);
    db->schema = NULL;
    sqlite3_set_authorizer(db->handle, NULL, NULL);
    sqlite3_exec(db->handle, "PRAGMA query_only = OFF", NULL, NULL, NULL);
    sqlite3_set_authorizer(db->handle, allow_only_reading, NULL);
    db_run(db, script);
}

int64_t db_integer(struct db *db, int64_t otherwise, const char *sql)
{
    struct query *query = db_query(db, sql);

    if (query_step(query) && query_type(query, 0) != QUERY_NULL)
        otherwise = query_integer(query, 0);
    query_close(query);
    return otherwise;
}

/* ---- reading many rows fast: db_visit() ----------------------------------- */

struct each {
    bool (*row)(void *context, const int64_t *values, unsigned nulls);
    void *context; /* borrowed */
    bool stopped;
};

static void call_for_row(sqlite3_context *context, int count, sqlite3_value **columns)
{
    struct each *each = sqlite3_user_data(context);
    int64_t values[EACH_COLUMNS];
    unsigned nulls = 0;

    if (each->stopped || count > EACH_COLUMNS)
        return;
    for (int i = 0; i < count; i++) {
        values[i] = sqlite3_value_int64(columns[i]);
        if (!values[i] && sqlite3_value_type(columns[i]) == SQLITE_NULL)
            nulls |= 1u << i;
    }
    each->stopped = !each->row(each->context, values, nulls);
    if (each->stopped)
        sqlite3_result_error(context, "stopped", -1);
}

static void end_row_calls(sqlite3_context *context)
{
    sqlite3_result_null(context);
}

void db_visit(struct db *db, const char *sql,
              bool (*row)(void *context, const int64_t *values, unsigned nulls), void *context)
{
    /* SQLite owns `each` and frees it when it removes the function. This may be after db_visit
     * has returned, because SQLite removes no function while another statement is running. */
    struct each *each = malloc(sizeof *each);
    struct query *query;

    *each = (struct each){row, context, false};
    if (sqlite3_create_function_v2(db->handle, "each", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, each,
                                   NULL, call_for_row, end_row_calls, free) != SQLITE_OK) {
        report_query_error(db, NULL);
        return;
    }
    query = db_query(db, sql);
    if (query && sqlite3_step(query->statement) != SQLITE_ROW && !each->stopped)
        report_query_error(db, NULL);
    query_close(query);
    each->stopped = true;
    sqlite3_create_function_v2(db->handle, "each", -1, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL);
}

char *db_meta(struct db *db, const char *key)
{
    struct query *query =
        db_query(db, "SELECT value FROM meta WHERE key = ?1 AND value IS NOT NULL");
    char *value = NULL;

    query_bind_text(query, 1, key);
    if (query_step(query))
        value = strdup(query_whole_value(query, 0, NULL));
    query_close(query);
    return value;
}

int64_t db_meta_integer(struct db *db, const char *key, int64_t otherwise)
{
    char *value = db_meta(db, key);

    if (value)
        otherwise = strtoll(value, NULL, 10);
    free(value);
    return otherwise;
}

/* ---- creating a new trace ------------------------------------------------ */

struct db *db_create_trace(const char *path)
{
    struct db *db = db_new(path);
    char *absolute = db_make_absolute_path(path);
    char *uri = path_make_uri(absolute ? absolute : path,
                              path_read_facts(absolute ? absolute : path), true);

    if (open_connection(db, uri, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        report_query_error(db, NULL);
    /* turn off defensive mode, in which SQLite would keep the journal on */
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    db_run(
        db,
        "PRAGMA main.journal_mode = OFF; PRAGMA main.synchronous = OFF; PRAGMA main.locking_mode = "
        "EXCLUSIVE;PRAGMA temp_store = FILE; PRAGMA cache_size = -32768; BEGIN");
    db_run(db, schema_trace_sql);
    db_run(db, schema_views_sql);
    /* db_finish_trace creates these indexes, because building an index is faster after all rows
     * have been inserted */
    db_run(db, "DROP INDEX lookup_code; DROP INDEX guard_check_lookup; COMMIT");
    free(absolute);
    free(uri);
    if (!db->error)
        return db;
    db_close(db);
    return NULL;
}

bool db_finish_trace(struct db *db)
{
    return db_run(db, "CREATE INDEX lookup_code ON lookup(code_id); CREATE INDEX "
                      "guard_check_lookup ON guard_check(lookup_id)");
}
