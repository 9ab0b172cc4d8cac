/* trace/given.c -- reads the metadata of several traces. See trace/given.h. */
#include "trace/given.h"

#include <inttypes.h>

#include "lib/list.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"

struct reader {
    struct db *given; /* owned by the caller: the database with the metadata */
    /* owned statements. `key`, `process` and `trace` insert rows: of metadata, of a process, of a
     * trace. `twice` finds a process that another trace has as well */
    struct query *key, *process, *twice, *trace;
};

bool given_check_complete(struct db *db)
{
    bool ended = !db_integer(db, 0, "SELECT value = 'recording' FROM meta WHERE key = 'state'");

    if (!ended)
        say_error("%s: is still being recorded, or was interrupted (then `dyntrace fsck FILE "
                  "--recover` completes it)",
                  db_get_path(db));
    return ended;
}

/* Return when the recording of DB began, in the time of the common clock of the traces, if they
 * have one. Reports an error and returns 0 if the trace does not tell. */
static int64_t read_start_ns(struct db *db)
{
    int64_t began = db_meta_integer(db, "started_unix_ns", 0);
    int64_t offset = db_meta_integer(db, "clock_offset_ns", 0);

    if (began > 0 && !__builtin_add_overflow(began, offset, &began) && began > 0)
        return began;
    if (!db_has_failed(db))
        say_error(
            "%s: does not say when it began, so its times cannot be put beside those of others",
            db_get_path(db));
    return 0;
}

/* Read the processes of DB, which is trace NUMBER and began at BEGAN. Reports an error and returns
 * false if another trace has one of these processes. */
static bool read_processes(struct reader *reader, struct db *db, int64_t number, int64_t began)
{
    bool apart;

    db_rows(row, db, schema_statement("given/processes"), began)
    {
        query_bind_integer(reader->process, 1, number);
        query_bind_row(reader->process, 2, row, 4);
        query_execute(reader->process);
    }
    query_bind_integer(reader->twice, 1, number);
    if (!(apart = !query_step(reader->twice)))
        say_error("%s: has the process %" PRId64
                  " of the same machine and moment that %s has: its frames would count twice",
                  db_get_path(db), query_integer(reader->twice, 0),
                  query_text(reader->twice, 1, NULL));
    query_reset(reader->twice);
    return apart;
}

/* Read the metadata of the trace at PATH, which is trace NUMBER. Reports an error and returns false
 * if the trace must be left out. */
static bool read_trace_metadata(struct reader *reader, const char *path, int64_t number)
{
    struct db *db = db_open_single_trace(path, false);
    int64_t began = db && given_check_complete(db) ? read_start_ns(db) : 0;
    bool fits = began;

    if (fits) {
        db_rows(row, db, schema_statement("given/meta"))
        {
            query_bind_integer(reader->key, 1, number);
            query_bind_row(reader->key, 2, row, 2);
            query_execute(reader->key);
        }
        fits = read_processes(reader, db, number, began) && !db_has_failed(db);
    }
    if (fits) {
        query_bind_integer(reader->trace, 1, number);
        query_bind_text(reader->trace, 2, path);
        query_bind_integer(reader->trace, 3, began);
        query_execute(reader->trace);
    }
    db_close(db);
    return fits;
}

struct db *given_read_metadata(char **paths, size_t *count)
{
    struct db *given = db_open_scratch("traces", schema_statement("given/tables"));
    struct progress progress = progress_begin("reading");
    struct reader reader = {.given = given};
    size_t kept = 0;

    db_run(given, "PRAGMA cache_size = -4096; BEGIN");
    reader.key = db_query(given, schema_statement("given/key"));
    reader.process = db_query(given, schema_statement("given/process"));
    reader.twice = db_query(given, schema_statement("given/twice"));
    reader.trace = db_query(given, schema_statement("given/trace"));
    for (size_t i = 0; i < *count && !db_has_failed(given); i++) {
        progress_tick(&progress, (int64_t)i, (int64_t)*count);
        if (!read_trace_metadata(&reader, paths[i], (int64_t)i)) {
            free(paths[i]);
            paths[i] = NULL;
        }
    }
    query_close(reader.key);
    query_close(reader.process);
    query_close(reader.twice);
    query_close(reader.trace);
    db_rows(row, given, schema_statement("given/others"))
    {
        char **path = &paths[query_integer(row, 0)];
        say_error("%s: left out: %s", *path, query_text(row, 1, NULL));
        free(*path);
        *path = NULL;
    }
    for (size_t i = 0; i < *count; i++) {
        if (paths[i])
            paths[kept++] = paths[i];
        else
            db_rows(row, given, "DELETE FROM trace WHERE trace_id = ?1", (int64_t)i)
            {
            }
    }
    *count = kept;
    progress_end(&progress);
    if (!db_has_failed(given))
        return given;
    db_close(given);
    return NULL;
}
