/* trace/db.c -- a trace opened for reading: a thin layer over SQLite.
 *
 * Runs in: the viewer. See trace/db.h. */
#include "trace/db.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/bounds.h"
#include "trace/db_schema.h"
#include "lib/say.h"
#include "schema.h"

enum {
    BUSY_MS = 5000,           /* a live recorder commits many times a second */
    PROGRESS_STEPS = 200000,  /* virtual machine steps between two calls: some ms */
    EACH_COLUMNS = 16,
    VALUE_MOST = 16 << 20,    /* bytes of a text or blob; the longest of a recorder's are some MB of listing */
    TEXT_SHOWN = 64 << 10,    /* of them what query_text gives */
};

static atomic_bool damage_said; /* since somebody asked last, of whatever connection */

struct db {
    sqlite3 *handle; /* owned */
    char *path;      /* owned */
    void (*progress)(void *context);
    void *progress_context;
    bool damaged, error;
};

struct query {
    struct db *db;           /* borrowed */
    sqlite3_stmt *statement; /* owned */
    bool failed;
    struct cut *cuts;        /* owned: of this row */
};

/* A long text, cut. */
struct cut {
    struct cut *next;
    size_t bytes;
    char text[];
};

/* What SQL may do: anything that only reads. A read-only connection alone would
 * still let ATTACH and VACUUM INTO make files. */
static int authorize(void *unused, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
    (void)unused, (void)second, (void)database, (void)trigger;
    switch (action) {
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        return SQLITE_DENY;
    case SQLITE_PRAGMA:
        if (first && (!sqlite3_stricmp(first, "temp_store_directory") ||
                      !sqlite3_stricmp(first, "data_store_directory") ||
                      !sqlite3_stricmp(first, "query_only") || !sqlite3_stricmp(first, "trusted_schema") ||
                      !sqlite3_stricmp(first, "mmap_size")))
            return SQLITE_DENY;
        return SQLITE_OK;
    default:
        return SQLITE_OK;
    }
}

/* What a hostile file may make SQLite do. The sizes are far above what a trace
 * needs and far below what would exhaust the machine. */
static void harden(sqlite3 *handle)
{
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, VALUE_MOST);
    sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
    sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, 500);
    sqlite3_limit(handle, SQLITE_LIMIT_COMPOUND_SELECT, 100);
    sqlite3_limit(handle, SQLITE_LIMIT_VDBE_OP, 100000);
    sqlite3_limit(handle, SQLITE_LIMIT_EXPR_DEPTH, 200);
    sqlite3_limit(handle, SQLITE_LIMIT_FUNCTION_ARG, 100);
    sqlite3_limit(handle, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
    sqlite3_limit(handle, SQLITE_LIMIT_TRIGGER_DEPTH, 10);
    sqlite3_limit(handle, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_busy_timeout(handle, BUSY_MS);
}

/* "file:/abs/path?mode=ro" with every byte that a URI could take amiss as %NN.
 * The caller frees it. NULL when out of memory. */
static char *uri_make(const char *absolute, bool immutable)
{
    char *uri = malloc(strlen(absolute) * 3 + 64), *p = uri;

    if (!uri)
        return NULL;
    p += sprintf(p, "file:");
    for (const unsigned char *s = (const unsigned char *)absolute; *s; s++) {
        if ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') ||
            strchr("/._-~", *s))
            *p++ = (char)*s;
        else
            p += sprintf(p, "%%%02X", *s);
    }
    strcpy(p, immutable ? "?mode=ro&immutable=1" : "?mode=ro");
    return uri;
}

/* True when the file is in WAL mode and has no log beside it: no recorder is
 * using it. Then SQLite must not make one, which in a directory that we cannot
 * write to would fail and elsewhere would litter. */
static bool wal_idle(const char *absolute)
{
    unsigned char header[20];
    char *log = NULL;
    bool idle = false;
    FILE *file = fopen(absolute, "rb");

    if (!file)
        return false;
    if (fread(header, sizeof header, 1, file) == 1 && header[18] == 2 && header[19] == 2 &&
        asprintf(&log, "%s-wal", absolute) >= 0) {
        idle = access(log, F_OK) != 0 && errno == ENOENT;
        free(log);
    }
    fclose(file);
    return idle;
}

/* Words for an SQLite error on PATH, where ours are clearer. Borrowed. */
static const char *error_words(sqlite3 *handle, int status)
{
    if ((status & 0xff) == SQLITE_NOMEM)
        bounds_memory_over();
    switch (status & 0xff) {
    case SQLITE_NOTADB:
        return "not an SQLite database, so not a trace";
    case SQLITE_CORRUPT:
        return "the file is damaged; `dyntrace fsck` tells more";
    case SQLITE_BUSY:
        return "another program keeps it locked";
    case SQLITE_INTERRUPT:
        return "interrupted";
    case SQLITE_TOOBIG:
        return "holds a value or makes a row of more than 16 MB, which no recording does";
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
        return sqlite3_errstr(status);
    default:
        return handle ? sqlite3_errmsg(handle) : sqlite3_errstr(status);
    }
}

/* A number that SQL finds, in *VALUE. SQLite's status. */
static int number(sqlite3 *handle, const char *sql, sqlite3_int64 *value)
{
    sqlite3_stmt *statement = NULL;
    int status = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);

    if (status == SQLITE_OK && (status = sqlite3_step(statement)) == SQLITE_ROW) {
        *value = sqlite3_column_int64(statement, 0);
        status = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return status;
}

/* What makes a database a trace that we can read; says why not unless QUIET. The version stands in the file's header,
 * too, which can be read before the schema is trusted. */
static bool is_trace(sqlite3 *handle, const char *path, bool quiet)
{
    static const char tables[] = "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
                                 " AND name IN ('meta', 'process', 'thread', 'code', 'frame', 'loss')";
    sqlite3_int64 found = 0, version = SCHEMA_VERSION;
    int status = number(handle, tables, &found);

    if (status == SQLITE_OK && found == 6)
        status = number(handle, "PRAGMA main.user_version", &version);
    if (status == SQLITE_OK && found == 6 && version == SCHEMA_VERSION) {
        if (!db_schema_trust(handle, path, quiet, &status) && status == SQLITE_OK)
            return false;
        if (status == SQLITE_OK)
            status = number(handle, "SELECT value FROM meta WHERE key = 'schema_version'", &version);
    }
    if (status == SQLITE_OK && found == 6 && version == SCHEMA_VERSION)
        return true;
    if (quiet)
        return false;
    if (status != SQLITE_OK)
        say_error("%s: %s", path, error_words(handle, status));
    else if (found != 6)
        say_error("%s: a database, but not a dyntrace trace", path);
    else
        say_error("%s: made by %s dyntrace (schema %lld, this one reads %d): %s", path,
                  version > SCHEMA_VERSION ? "a newer" : "an older",
                  (long long)version, SCHEMA_VERSION, version > SCHEMA_VERSION ? "please upgrade dyntrace" : "record it again");
    return false;
}

/* SQLite calls this every few milliseconds of a query. */
static int progress(void *context)
{
    struct db *db = context;

    if (db->progress)
        db->progress(db->progress_context);
    return bounds_time_over();
}

/* Open PATH and see that it is a trace. NULL otherwise, and unless QUIET said why. */
static struct db *open_path(const char *path, bool quiet)
{
    struct db *db = NULL, *opened = NULL;
    char *absolute = NULL, *uri = NULL;
    struct stat st;
    int status;

    if (stat(path, &st) != 0) {
        if (!quiet)
            say_error("%s: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode)) { /* a FIFO would wait forever */
        if (!quiet)
            say_error("%s: %s", path, S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file");
        goto out;
    }
    if (access(path, R_OK) != 0 || !(absolute = realpath(path, NULL))) {
        if (!quiet)
            say_error("%s: %s", path, strerror(errno));
        goto out;
    }
    db = calloc(1, sizeof *db);
    uri = uri_make(absolute, wal_idle(absolute));
    if (!db || !uri || !(db->path = strdup(path))) {
        say_error("%s: out of memory", path);
        goto out;
    }
    bounds_trace(absolute);
    status = sqlite3_open_v2(uri, &db->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    if (status == SQLITE_OK) {
        harden(db->handle);
        sqlite3_progress_handler(db->handle, PROGRESS_STEPS, progress, db);
        status = sqlite3_exec(db->handle,
                              "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -65536",
                              NULL, NULL, NULL);
    }
    if (status != SQLITE_OK) {
        if (!quiet)
            say_error("%s: %s", path, error_words(db->handle, status));
        goto out;
    }
    if (is_trace(db->handle, path, quiet)) {
        sqlite3_exec(db->handle, "PRAGMA query_only = ON", NULL, NULL, NULL);
        sqlite3_set_authorizer(db->handle, authorize, NULL);
        opened = db;
        db = NULL;
    }
out:
    db_close(db);
    free(absolute);
    free(uri);
    return opened;
}

struct candidate {
    char *path; /* borrowed from the glob */
    struct timespec changed;
};

static int candidate_newer(const void *a, const void *b)
{
    const struct timespec *x = &((const struct candidate *)a)->changed;
    const struct timespec *y = &((const struct candidate *)b)->changed;

    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? 1 : -1;
    return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* The newest *.db here that is a trace; others are passed over in silence. */
static struct db *open_newest(void)
{
    glob_t found = {0};
    struct candidate *candidates = NULL;
    struct db *db = NULL;
    size_t count = 0;

    if (glob("./*.db", 0, NULL, &found) == 0 &&
        (candidates = calloc(found.gl_pathc, sizeof *candidates))) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            char log[PATH_MAX + 8];
            struct stat st;
            if (stat(found.gl_pathv[i], &st) != 0 || !S_ISREG(st.st_mode))
                continue;
            candidates[count].path = found.gl_pathv[i];
            candidates[count].changed = st.st_mtim;
            /* A live trace changes in its log first. */
            snprintf(log, sizeof log, "%s-wal", found.gl_pathv[i]);
            if (stat(log, &st) == 0) {
                struct candidate logged = {found.gl_pathv[i], st.st_mtim};
                if (candidate_newer(&logged, &candidates[count]) < 0)
                    candidates[count] = logged;
            }
            count++;
        }
        qsort(candidates, count, sizeof *candidates, candidate_newer);
        for (size_t i = 0; i < count && !db; i++)
            db = open_path(candidates[i].path + 2, true);
    }
    if (!db)
        say_error("no trace: this directory has no *.db that is one; name a file, or record one by `dyntrace run`");
    free(candidates);
    globfree(&found);
    return db;
}

struct db *db_open(const char *path)
{
    return path ? open_path(path, false) : open_newest();
}

void db_close(struct db *db)
{
    if (!db)
        return;
    sqlite3_close(db->handle);
    free(db->path);
    free(db);
}

const char *db_path(const struct db *db)
{
    return db->path;
}

void db_interrupt(struct db *db)
{
    sqlite3_interrupt(db->handle);
}

void db_on_progress(struct db *db, void (*call)(void *context), void *context)
{
    db->progress = call;
    db->progress_context = context;
}

/* Say what SQLite has against a query. */
static void query_error(struct db *db)
{
    int status = sqlite3_errcode(db->handle);
    const char *words = sqlite3_errmsg(db->handle);

    db->error = true;
    if (status == SQLITE_CORRUPT || status == SQLITE_NOTADB || status == SQLITE_TOOBIG) {
        db->damaged = true;
        if (!say_diverted() && atomic_exchange(&damage_said, true)) /* an answer is made of many queries */
            return;
    }
    if (status == SQLITE_READONLY)
        words = "the trace is open for reading only";
    else if (status == SQLITE_AUTH)
        words = "only reading is allowed here";
    else if (status == SQLITE_INTERRUPT && bounds_time_over())
        words = bounds_time_words();
    else
        words = error_words(db->handle, status);
    say_error("%s: %s", db->path, words);
}

static bool query_make(struct db *db, const char *sql, struct query **made, const char **rest)
{
    struct query *query = calloc(1, sizeof *query);

    *made = NULL;
    query->db = db;
    if (sqlite3_prepare_v2(db->handle, sql, -1, &query->statement, rest) != SQLITE_OK) {
        query_error(db);
        free(query);
        return false;
    }
    if (!query->statement) {
        free(query);
        return true;
    }
    *made = query;
    return true;
}

bool db_query_next(struct db *db, const char *sql, struct query **made, const char **rest)
{
    damage_said = false;
    return query_make(db, sql, made, rest);
}

struct query *db_query(struct db *db, const char *sql)
{
    struct query *query;

    query_make(db, sql, &query, NULL);
    return query;
}

bool db_damaged(const struct db *db)
{
    return db->damaged;
}

bool db_failed(const struct db *db)
{
    return db->error;
}

void db_retry(struct db *db)
{
    db->error = false;
}

bool db_complete(const char *sql)
{
    return sqlite3_complete(sql);
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

/* A new row: what was cut of the last is gone. */
static void cuts_free(struct query *query)
{
    while (query->cuts) {
        struct cut *cut = query->cuts;
        query->cuts = cut->next;
        free(cut);
    }
}

bool query_step(struct query *query)
{
    int status;

    if (!query || query->failed)
        return false;
    if (query->cuts)
        cuts_free(query);
    status = sqlite3_step(query->statement);
    if (status == SQLITE_ROW)
        return true;
    if (status != SQLITE_DONE) {
        query_error(query->db);
        query->failed = true;
    }
    return false;
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

bool query_close(struct query *query)
{
    bool ok;

    if (!query)
        return false;
    ok = !query->failed;
    cuts_free(query);
    sqlite3_finalize(query->statement);
    free(query);
    return ok;
}

bool db_run(struct db *db, const char *sql)
{
    struct query *query = db_query(db, sql);

    query_step(query);
    return query_close(query);
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
    switch (sqlite3_column_type(query->statement, column)) {
    case SQLITE_INTEGER:
        return QUERY_INTEGER;
    case SQLITE_FLOAT:
        return QUERY_REAL;
    case SQLITE_TEXT:
        return QUERY_TEXT;
    case SQLITE_BLOB:
        return QUERY_BLOB;
    default:
        return QUERY_NULL;
    }
}

int64_t query_integer(struct query *query, int column)
{
    return sqlite3_column_int64(query->statement, column);
}

double query_real(struct query *query, int column)
{
    return sqlite3_column_double(query->statement, column);
}

const char *query_whole(struct query *query, int column, size_t *bytes)
{
    /* The pointer before the length: asking for text may convert the value. */
    const void *text = sqlite3_column_type(query->statement, column) == SQLITE_BLOB
                           ? sqlite3_column_blob(query->statement, column)
                           : sqlite3_column_text(query->statement, column);

    if (bytes)
        *bytes = text ? (size_t)sqlite3_column_bytes(query->statement, column) : 0;
    return text ? text : "";
}

const char *query_text(struct query *query, int column, size_t *bytes)
{
    size_t all, kept = TEXT_SHOWN;
    const char *text = query_whole(query, column, &all);
    struct cut *cut;

    if (all > TEXT_SHOWN && (cut = malloc(sizeof *cut + TEXT_SHOWN + 64))) {
        while (kept > TEXT_SHOWN - 4 && (text[kept] & 0xc0) == 0x80) /* not inside of a character */
            kept--;
        memcpy(cut->text, text, kept);
        cut->bytes = kept + (size_t)sprintf(cut->text + kept, "… (cut: %zu bytes)", all);
        cut->next = query->cuts;
        query->cuts = cut;
        text = cut->text;
        all = cut->bytes;
    }
    if (bytes)
        *bytes = all;
    return text;
}

int64_t db_integer(struct db *db, int64_t otherwise, const char *sql)
{
    struct query *query = db_query(db, sql);

    if (query_step(query) && query_type(query, 0) != QUERY_NULL)
        otherwise = query_integer(query, 0);
    query_close(query);
    return otherwise;
}

/* ---- many rows ------------------------------------------------------------- */

struct each {
    bool (*row)(void *context, const int64_t *values, unsigned nulls);
    void *context; /* borrowed */
    bool stopped;
};

static void each_step(sqlite3_context *context, int count, sqlite3_value **columns)
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

static void each_end(sqlite3_context *context)
{
    sqlite3_result_null(context);
}

bool db_each(struct db *db, const char *sql, bool (*row)(void *context, const int64_t *values, unsigned nulls),
             void *context)
{
    struct each each = {row, context, false};
    struct query *query = NULL;
    bool ok;

    if (sqlite3_create_function_v2(db->handle, "each", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, &each, NULL, each_step,
                                   each_end,
                                   NULL) != SQLITE_OK) {
        query_error(db);
        return false;
    }
    query = db_query(db, sql);
    ok = query && (sqlite3_step(query->statement) == SQLITE_ROW || each.stopped);
    if (query && !ok)
        query_error(db);
    query_close(query);
    sqlite3_create_function_v2(db->handle, "each", -1, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL);
    return ok;
}

char *db_meta(struct db *db, const char *key)
{
    struct query *query = db_query(db, "SELECT value FROM meta WHERE key = ?1 AND value IS NOT NULL");
    char *value = NULL;

    query_bind_text(query, 1, key);
    if (query_step(query))
        value = strdup(query_whole(query, 0, NULL));
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
