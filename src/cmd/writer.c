/* cmd/writer.c -- a trace being made from other traces. See cmd/writer.h.
 *
 * Runs in: the viewer. */
#include "cmd/writer.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "lib/say.h"
#include "schema.h"

struct writer_given writer_given;

const struct option writer_options[] = {
    {"output", 'o', "FILE", option_text, &writer_given.out, .help = "the trace to make", .needed = true},
    {"force", .read = option_flag, .to = &writer_given.force, .help = "replace FILE"},
    OPTION_END,
};

struct writer {
    sqlite3 *handle; /* owned */
    char *path;      /* owned */
};

struct insert {
    struct writer *writer;   /* borrowed */
    sqlite3_stmt *statement; /* owned */
};

static bool ok_or_say(struct writer *writer, int status)
{
    if (status == SQLITE_OK || status == SQLITE_DONE || status == SQLITE_ROW)
        return true;
    say_error("%s: cannot be written: %s", writer->path, sqlite3_errmsg(writer->handle));
    return false;
}

bool writer_run(struct writer *writer, const char *sql)
{
    return ok_or_say(writer, sqlite3_exec(writer->handle, sql, NULL, NULL, NULL));
}

struct writer *writer_open(const char *path)
{
    struct writer *writer = calloc(1, sizeof *writer);

    if (!writer || !(writer->path = strdup(path))) {
        say_error("%s: out of memory", path);
        free(writer);
        return NULL;
    }
    if (!ok_or_say(writer, sqlite3_open_v2(path, &writer->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL)) ||
        !writer_run(writer, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
                            "PRAGMA temp_store = FILE; PRAGMA cache_size = -65536") ||
        !writer_run(writer, "BEGIN") || !writer_run(writer, schema_trace_sql) || !writer_run(writer, schema_views_sql) ||
        /* Quicker made at the end, as the recorder does. */
        !writer_run(writer, "DROP INDEX lookup_code; DROP INDEX guard_check_lookup")) {
        writer_close(writer);
        return NULL;
    }
    return writer;
}

bool writer_finish(struct writer *writer)
{
    return writer_run(writer, "CREATE INDEX lookup_code ON lookup(code_id);"
                              "CREATE INDEX guard_check_lookup ON guard_check(lookup_id); COMMIT");
}

void writer_close(struct writer *writer)
{
    if (!writer)
        return;
    sqlite3_close(writer->handle);
    free(writer->path);
    free(writer);
}

struct insert *writer_insert(struct writer *writer, const char *sql)
{
    struct insert *insert = calloc(1, sizeof *insert);

    if (!insert) {
        say_error("%s: out of memory", writer->path);
        return NULL;
    }
    insert->writer = writer;
    if (!ok_or_say(writer, sqlite3_prepare_v2(writer->handle, sql, -1, &insert->statement, NULL))) {
        free(insert);
        return NULL;
    }
    return insert;
}

void insert_integer(struct insert *insert, int parameter, int64_t value)
{
    sqlite3_bind_int64(insert->statement, parameter, value);
}

void insert_text(struct insert *insert, int parameter, const char *text)
{
    if (text)
        sqlite3_bind_text(insert->statement, parameter, text, -1, SQLITE_TRANSIENT);
}

void insert_copy(struct insert *insert, int parameter, struct query *query, int column)
{
    const char *text;
    size_t bytes;

    switch (query_type(query, column)) {
    case QUERY_NULL:
        break;
    case QUERY_INTEGER:
        sqlite3_bind_int64(insert->statement, parameter, query_integer(query, column));
        break;
    case QUERY_REAL:
        sqlite3_bind_double(insert->statement, parameter, query_real(query, column));
        break;
    case QUERY_TEXT:
        text = query_whole(query, column, &bytes);
        sqlite3_bind_text(insert->statement, parameter, text, (int)bytes, SQLITE_STATIC);
        break;
    case QUERY_BLOB:
        text = query_whole(query, column, &bytes);
        sqlite3_bind_blob(insert->statement, parameter, text, (int)bytes, SQLITE_STATIC);
        break;
    }
}

bool insert_run(struct insert *insert)
{
    bool ok = ok_or_say(insert->writer, sqlite3_step(insert->statement));

    sqlite3_reset(insert->statement);
    sqlite3_clear_bindings(insert->statement);
    return ok;
}

bool insert_find(struct insert *insert, int64_t *found)
{
    bool any = sqlite3_step(insert->statement) == SQLITE_ROW;

    if (any)
        *found = sqlite3_column_int64(insert->statement, 0);
    sqlite3_reset(insert->statement);
    sqlite3_clear_bindings(insert->statement);
    return any;
}

bool insert_next(struct insert *insert)
{
    int status = sqlite3_step(insert->statement);

    if (status == SQLITE_ROW)
        return true;
    ok_or_say(insert->writer, status);
    sqlite3_reset(insert->statement);
    sqlite3_clear_bindings(insert->statement);
    return false;
}

int64_t insert_get_integer(struct insert *insert, int column)
{
    return sqlite3_column_int64(insert->statement, column);
}

const char *insert_get_text(struct insert *insert, int column)
{
    return (const char *)sqlite3_column_text(insert->statement, column);
}

void insert_close(struct insert *insert)
{
    if (!insert)
        return;
    sqlite3_finalize(insert->statement);
    free(insert);
}
