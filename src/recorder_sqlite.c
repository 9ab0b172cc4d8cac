/* recorder_sqlite.c -- the trace's tables through SQLite. See recorder_sqlite.h.
 *
 * Runs in: the collector, never in the traced program.
 *
 * Frames, lookups and guard checks are a thousand times more frequent than all other rows together.
 * They are written elsewhere (collector/frame_pages.c, lookup_pages.c). Some lookups and checks are
 * also written here, for readers during the recording. */
#include "recorder_sqlite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema.h"
#include "vocabulary.h"

enum how { WHOLE, PART, STATEMENT, ONCE = 4 };

static const struct {
    enum row_table table;
    int how;                         /* enum how */
    const char *columns, *statement; /* `statement`: the name of the statement in schemas/ */
} put_facts[PUTS] = {
#define X(NAME, table, how, columns) {TABLE_##table, how, columns, "recorder/" #NAME},
    RECORDER_PUTS(X)
#undef X
};

/* A kind of row, prepared: its statement, and the place of each column in the row's struct. */
struct put {
    sqlite3_stmt *statement;
    unsigned count;
    struct put_column {
        uint16_t offset; /* offset of the member in the row's struct */
        bool text, id;
        bool empty_null; /* "?": an empty text becomes NULL */
    } column[ROW_COLUMNS];
};

struct recorder {
    sqlite3 *db;
    struct put put[PUTS];
    sqlite3_stmt *meta;
    bool begun, failed;
    bool once; /* an unrepeatable row (recorder_sqlite.h) was written and is not committed yet */
    /* With a bounded log: the most pages of the log; a connection that moves the log's pages into
     * the file while a transaction is open; and whether a reader keeps the log from being used
     * again. */
    int log_most;
    sqlite3 *mover;
    bool log_blocked;
    char error[256];
};

volatile sig_atomic_t recorder_in_sqlite;

/* ---- opening ---- */

/* Find the column NAME, which is BYTES long, in TABLE. Returns false if the table has no such
 * column. */
static bool find_column(enum row_table table, const char *name, size_t bytes,
                        struct put_column *found)
{
    size_t offset = 0;

    for (const struct row_column *c = row_tables[table].columns; c->name; c++) {
        if (strlen(c->name) == bytes && !memcmp(c->name, name, bytes)) {
            *found = (struct put_column){
                .offset = (uint16_t)offset, .text = c->holds == ROW_STRING, .id = c->id != ID_NONE};
            return true;
        }
        offset += c->holds == ROW_STRING ? sizeof(struct fact_text) : sizeof(int64_t);
    }
    return false;
}

/* Make the INSERT statement for WHICH, "INSERT INTO t(a, b) VALUES (?, ?)", with the clause for a
 * row that exists already, and fill in PUT's columns. The caller frees the text. Returns NULL
 * without memory. */
static char *make_insert_statement(enum recorder_put which, struct put *put)
{
    const char *table = row_tables[put_facts[which].table].name;
    const char *key = put_facts[which].columns;
    sqlite3_str *names = sqlite3_str_new(NULL);
    sqlite3_str *updates = sqlite3_str_new(NULL);
    char *made, *update;

    put->count = 0;
    for (const char *at = key; *at; at += strspn(at, " ")) {
        int length = (int)strcspn(at, " ?=");
        struct put_column *c = &put->column[put->count++];
        const char *name = at;
        const char *comma = put->count > 2 ? ", " : "";
        if (!find_column(put_facts[which].table, name, (size_t)length, c))
            abort(); /* a bug in RECORDER_PUTS: tables.h has no such column */
        at += strcspn(at, " ");
        c->empty_null = memchr(name, '?', (size_t)(at - name));
        sqlite3_str_appendf(names, put->count > 1 ? ", %.*s" : "%.*s", length, name);
        if (put->count == 1)
            continue;                               /* the key */
        if (memchr(name, '=', (size_t)(at - name))) /* an existing value stays */
            sqlite3_str_appendf(updates, "%s%.*s = COALESCE(%.*s, excluded.%.*s)", comma, length,
                                name, length, name, length, name);
        else
            sqlite3_str_appendf(updates, "%s%.*s = COALESCE(excluded.%.*s, %.*s)", comma, length,
                                name, length, name, length, name);
    }
    update = (put_facts[which].how & ~ONCE) == PART
                 ? sqlite3_mprintf("ON CONFLICT(%.*s) DO UPDATE SET %s", (int)strcspn(key, " "),
                                   key, sqlite3_str_value(updates))
                 : NULL;
    made = sqlite3_mprintf("INSERT %s INTO %s(%s) VALUES (?%.*s) %s", update ? "" : "OR REPLACE",
                           table, sqlite3_str_value(names), (int)(put->count - 1) * 2,
                           ",?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?", update ? update : "");
    sqlite3_free(update);
    sqlite3_free(sqlite3_str_finish(names));
    sqlite3_free(sqlite3_str_finish(updates));
    return made;
}

int recorder_system_error(struct sqlite3 *db)
{
    int code = sqlite3_errcode(db) & 0xff;

    return code == SQLITE_CANTOPEN || code == SQLITE_IOERR ? sqlite3_system_errno(db) : 0;
}

const char *recorder_error_message(struct sqlite3 *db)
{
    static char why[512];
    int number = recorder_system_error(db);

    snprintf(why, sizeof why, "%s%s%s%s", sqlite3_errmsg(db), number ? " (" : "",
             number ? strerror(number) : "", number ? ")" : "");
    return why;
}

static void remember_error(struct recorder *r)
{
    r->failed = true;
    snprintf(r->error, sizeof r->error, "%s", recorder_error_message(r->db));
}

/* Return the prepared statement for WHICH. Each statement is prepared when its first row comes,
 * because a short recording has few kinds. Returns NULL after an error, which recorder_error()
 * returns. */
static const struct put *prepare_insert(struct recorder *r, enum recorder_put which)
{
    struct put *put = &r->put[which];
    char *made;
    const char *sql;

    if (put->statement)
        return put;
    made = make_insert_statement(which, put);
    sql = (put_facts[which].how & ~ONCE) == STATEMENT ? schema_statement(put_facts[which].statement)
                                                      : made;
    recorder_in_sqlite = 1;
    if (!sql || sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &put->statement,
                                   NULL) != SQLITE_OK)
        remember_error(r);
    sqlite3_free(made);
    recorder_in_sqlite = 0;
    return put->statement ? put : NULL;
}

struct recorder *recorder_open(const char *path, const char **error)
{
    struct recorder *r = calloc(1, sizeof *r);

    if (!r ||
        sqlite3_open_v2(path, &r->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(r->db, 50) != SQLITE_OK ||
        sqlite3_exec(r->db, schema_statement("recorder/begin"), NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(r->db, "INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", -1,
                           &r->meta, NULL) != SQLITE_OK)
        goto err;
    return r;
err:
    *error = r && r->db ? recorder_error_message(r->db) : "out of memory";
    recorder_close(r);
    return NULL;
}

struct sqlite3 *recorder_database(struct recorder *r)
{
    return r->db;
}

void recorder_close(struct recorder *r)
{
    if (!r)
        return;
    for (int i = 0; i < PUTS; i++)
        sqlite3_finalize(r->put[i].statement);
    sqlite3_finalize(r->meta);
    sqlite3_close(r->mover);
    sqlite3_close(r->db);
    free(r);
}

/* ---- a bounded log ---- */

/* Move pages from the log into the file through DB, and note whether a reader holds the log. */
static void checkpoint_log(struct recorder *r, sqlite3 *db)
{
    int pages;
    int moved;
    int status = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
    bool is_known = status == SQLITE_OK && pages >= 0;

    if (is_known)
        r->log_blocked = moved < pages && pages / 2 > r->log_most;
}

static int note_log_size(void *of, sqlite3 *db, const char *name, int pages)
{
    struct recorder *r = of;

    if (pages >= r->log_most)
        checkpoint_log(r, db);
    return SQLITE_OK;
}

/* Open the connection that asks how much of the log was moved. It reads once, because a connection
 * opens the log when it first reads, and its checkpoints do nothing before that. */
static bool open_checkpoint_connection(struct recorder *r)
{
    const char *path = sqlite3_db_filename(r->db, NULL);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;

    return sqlite3_open_v2(path, &r->mover, flags, NULL) == SQLITE_OK &&
           sqlite3_exec(r->mover, "SELECT COUNT(*) FROM meta", NULL, NULL, NULL) == SQLITE_OK;
}

void recorder_bound_log(struct recorder *r, int pages)
{
    r->log_most = pages;
    r->log_blocked = false;
    if (!r->mover && open_checkpoint_connection(r))
        sqlite3_wal_hook(r->db, note_log_size, r);
}

bool recorder_is_log_held(const struct recorder *r)
{
    return r->log_blocked;
}

/* ---- writing ---- */

const char *recorder_error(const struct recorder *r)
{
    return r->error[0] ? r->error : NULL;
}

/* Run SQL that returns no rows. Returns false on error. */
static bool execute_sql(struct recorder *r, const char *sql)
{
    bool done;

    recorder_in_sqlite = 1;
    done = sqlite3_exec(r->db, sql, NULL, NULL, NULL) == SQLITE_OK;
    recorder_in_sqlite = 0;
    return done;
}

void recorder_add_views(struct recorder *r)
{
    if (!execute_sql(r, schema_view_rows))
        remember_error(r);
}

/* Begin a transaction, unless one is open. */
static void begin_transaction(struct recorder *r)
{
    r->begun = r->begun || execute_sql(r, "BEGIN");
    if (!r->begun)
        remember_error(r);
}

static void run_statement(struct recorder *r, sqlite3_stmt *statement)
{
    recorder_in_sqlite = 1;
    if (sqlite3_step(statement) != SQLITE_DONE)
        remember_error(r);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    recorder_in_sqlite = 0;
}

void recorder_write_values(struct recorder *r, enum recorder_put which, const int64_t *values,
                           const char *const *texts)
{
    const struct put *put = prepare_insert(r, which);

    if (!put)
        return;
    begin_transaction(r);
    for (unsigned i = 0; i < put->count; i++)
        if (values[i] != ROW_NONE && (values[i] || !put->column[i].id)) {
            if (put->column[i].text)
                sqlite3_bind_text(put->statement, (int)i + 1, *texts++, (int)values[i],
                                  SQLITE_STATIC);
            else
                sqlite3_bind_int64(put->statement, (int)i + 1, values[i]);
        }
    run_statement(r, put->statement);
}

void recorder_mark_unrepeatable(struct recorder *r)
{
    r->once = true;
}

void recorder_write(struct recorder *r, enum recorder_put which, const void *row)
{
    const struct put *put = prepare_insert(r, which);
    const char *texts[ROW_COLUMNS];
    int64_t values[ROW_COLUMNS];
    unsigned count = 0;

    for (unsigned i = 0; put && i < put->count; i++) {
        const char *member = (const char *)row + put->column[i].offset;
        if (put->column[i].text) {
            const struct fact_text *text = (const struct fact_text *)member;
            values[i] =
                text->text && (text->bytes || !put->column[i].empty_null) ? text->bytes : ROW_NONE;
            if (values[i] != ROW_NONE)
                texts[count++] = text->text;
        } else {
            memcpy(&values[i], member, sizeof *values);
        }
    }
    if (!put || !values[0])
        return;
    recorder_write_values(r, which, values, texts);
    r->once |= put_facts[which].how & ONCE;
}

void recorder_set_meta(struct recorder *r, const char *key, const char *text, int64_t value)
{
    begin_transaction(r);
    sqlite3_bind_text(r->meta, 1, key, -1, SQLITE_STATIC);
    if (text)
        sqlite3_bind_text(r->meta, 2, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_int64(r->meta, 2, value);
    run_statement(r, r->meta);
}

void recorder_run(struct recorder *r, const char *statement)
{
    begin_transaction(r);
    if (!execute_sql(r, schema_statement(statement)))
        remember_error(r);
}

bool recorder_commit(struct recorder *r)
{
    bool failed;

    if (r->log_blocked) {
        recorder_in_sqlite = 1;
        checkpoint_log(r, r->mover);
        recorder_in_sqlite = 0;
    }
    if (r->log_blocked)
        return false; /* the rows stay in the open transaction */
    if (r->begun) {
        if (execute_sql(r, "COMMIT")) {
            r->begun = false;
        } else {
            remember_error(r);
            if (sqlite3_get_autocommit(r->db)) /* SQLite has rolled the transaction back */
                r->begun = false;
        }
    }
    failed = r->failed;
    r->failed = false;
    return !failed;
}

void recorder_commit_if_unrepeatable(struct recorder *r)
{
    if (r->once && !recorder_commit(r))
        r->failed = true; /* the row stays in the open transaction */
    r->once = false;
}

/* ---- reading ---- */

bool recorder_query_row(struct recorder *r, const char *sql, int64_t id, int64_t *found,
                        int columns)
{
    sqlite3_stmt *s = NULL;
    bool is_found = false;

    recorder_in_sqlite = 1;
    if (sqlite3_prepare_v2(r->db, sql, -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, id);
        is_found = sqlite3_step(s) == SQLITE_ROW;
    }
    for (int i = 0; is_found && i < columns; i++)
        found[i] = sqlite3_column_int64(s, i);
    sqlite3_finalize(s);
    recorder_in_sqlite = 0;
    return is_found;
}

int64_t recorder_query_number(struct recorder *r, const char *sql)
{
    int64_t number = 0;

    recorder_query_row(r, sql, 0, &number, 1);
    return number;
}

uint64_t recorder_count_losses(struct recorder *r, char *worst, size_t room)
{
    sqlite3_stmt *s = NULL;
    uint64_t rows = 0;

    if (sqlite3_prepare_v2(
            r->db,
            "SELECT count(*) OVER (), cause || IIF(events > 0, ' (' || events || ')', '') FROM "
            "loss WHERE cause NOT LIKE '" LOSS_STALL "%' AND cause NOT LIKE '" LOSS_INTERPRETER
            "%' AND cause NOT LIKE '" LOSS_KILLED "%' ORDER BY events DESC, rowid LIMIT 1",
            -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW) {
        rows = (uint64_t)sqlite3_column_int64(s, 0);
        snprintf(worst, room, "%s", (const char *)sqlite3_column_text(s, 1));
    }
    sqlite3_finalize(s);
    return rows;
}
