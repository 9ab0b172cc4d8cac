/* trace/trust.c -- decides whether a file may be read as a trace. See trace/trust.h.
 *
 * Runs in: the viewer. */
#include "trace/trust.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/say.h"
#include "schema.h"
#include "trace/function_ids.h"

/* Run SQL, with TEXT bound to ?1 and SECOND to ?2, and return the first column of its first row.
 * The caller frees the result. Returns NULL if there is no row, or on an error, which *STATUS gets.
 * If *STATUS has an error already, nothing is run. */
static char *select_text(sqlite3 *handle, int *status, const char *sql, const char *text,
                         const char *second)
{
    sqlite3_stmt *statement = NULL;
    char *found = NULL;

    if (*status == SQLITE_OK)
        *status = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
    sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, second, -1, SQLITE_STATIC);
    if (*status == SQLITE_OK && (*status = sqlite3_step(statement)) == SQLITE_ROW)
        found = strdup((const char *)sqlite3_column_text(statement, 0) ?: "");
    if (*status == SQLITE_ROW || *status == SQLITE_DONE)
        *status = SQLITE_OK;
    sqlite3_finalize(statement);
    return found;
}

static int64_t select_number(sqlite3 *handle, int *status, const char *sql, int64_t otherwise)
{
    char *found = select_text(handle, status, sql, NULL, NULL);

    if (found)
        otherwise = strtoll(found, NULL, 10);
    free(found);
    return otherwise;
}

static const char schema_words[] =
    "SELECT group_concat(words, char(10)) FROM (SELECT COALESCE(type || ' ' || name || ' ' || "
    "tbl_name, '?') || ' ' || COALESCE(sql, '') AS words FROM main.sqlite_schema ORDER BY 1)";
/* This SELECT returns the schema's statements, and where each table is in the file. */
static const char schema_placed[] = "SELECT group_concat(words, char(10)) FROM (SELECT quote(type) "
                                    "|| quote(name) || quote(tbl_name) || quote(rootpage) || "
                                    "quote(sql) AS words FROM main.sqlite_schema ORDER BY rowid)";
/* Tables that older traces may lack, as a list for SQL. When such a trace is read, these tables are
 * there, but empty. */
#define YOUNGER                                                                  \
    "('trial', 'trial_function', 'thread_cpu', 'stretch', 'span', 'call_args', " \
    "'frame_count', 'lookup_count', 'merged', 'uncaught')"

/* The schema that schemas/ defines. It is computed only once, because this takes longer than
 * everything else when a trace is opened. */
static struct {
    char *words; /* owned, like the texts below: the result of schema_words */
    char *json;  /* the result of trust_make_expected_schema(): the schema as JSON */
    char *views; /* a script that creates our views in `temp` */
} made;
static pthread_once_t made_once = PTHREAD_ONCE_INIT;

static void compute_schema(void)
{
    sqlite3 *ours = NULL;
    int status = SQLITE_OK;

    sqlite3_open(":memory:", &ours);
    sqlite3_exec(ours, schema_trace_sql, NULL, NULL, NULL);
    sqlite3_exec(ours, schema_views_sql, NULL, NULL, NULL);
    made.words = select_text(ours, &status, schema_words, NULL, NULL);
    made.json =
        select_text(ours, &status,
                    "SELECT json_group_array(json_object('type', type, 'name', name, 'sql', sql)) "
                    "FROM sqlite_schema",
                    NULL, NULL);
    made.views = select_text(ours, &status,
                             "SELECT group_concat('CREATE TEMP ' || replace(substr(sql, 8), "
                             "'" FUNCTION_ID_VIEW "', '" FUNCTION_ID_OURS "'), ';') FROM "
                             "sqlite_schema WHERE type = 'view'",
                             NULL, NULL);
    sqlite3_close(ours);
}

const char *trust_make_expected_schema(void)
{
    pthread_once(&made_once, compute_schema);
    return made.json ? made.json : "[]";
}

char *trust_read_schema(sqlite3 *handle, int *status)
{
    return select_text(handle, status, schema_placed, NULL, NULL);
}

/* Does the file of HANDLE have, word for word, the schema that schemas/ defines? */
static bool is_schema_of_this_version(sqlite3 *handle, int *status)
{
    char *words = select_text(handle, status, schema_words, NULL, NULL);
    bool same;

    pthread_once(&made_once, compute_schema);
    same = words && made.words && !strcmp(words, made.words);
    free(words);
    return same;
}

/* Create in `temp`, empty, the tables that newer versions of dyntrace have added and the file
 * lacks. THEIRS lists the tables of the file. */
static void create_younger_tables(sqlite3 *handle, const char *theirs, int *status)
{
    static const char lacking[] =
        "SELECT group_concat('CREATE TEMP ' || substr(value ->> 'sql', 8), ';') FROM json_each(?1) "
        "WHERE value ->> 'name' IN " YOUNGER " AND value ->> 'name' NOT IN (SELECT lower(value ->> "
        "'name') FROM json_each(?2))";
    char *script = select_text(handle, status, lacking, trust_make_expected_schema(), theirs);

    if (script && *script)
        *status = sqlite3_exec(handle, script, NULL, NULL, NULL);
    free(script);
}

int trust_make_trials(sqlite3 *handle)
{
    static const char lacking[] =
        "SELECT group_concat('CREATE ' || (value ->> 'type') || ' IF NOT EXISTS main.' || "
        "substr(value ->> 'sql', length('CREATE ' || (value ->> 'type')) + 2), ';') FROM "
        "json_each(?1) WHERE value ->> 'name' IN "
        "('trial', 'trial_function', 'trials', 'trial_functions')";
    int status = sqlite3_exec(handle,
                              "DROP TABLE IF EXISTS temp.trial; DROP TABLE IF EXISTS "
                              "temp.trial_function",
                              NULL, NULL, NULL);
    char *script = select_text(handle, &status, lacking, trust_make_expected_schema(), NULL);

    if (script)
        status = sqlite3_exec(handle, script, NULL, NULL, NULL);
    free(script);
    return status;
}

/* Check the schema of HANDLE's file. Returns NULL if it may be read, or the reason why not, which
 * the caller frees. On an error returns NULL and sets *STATUS to SQLite's error.
 *
 * A file's schema is a program: a view or a generated column runs whenever it is read. A file is
 * refused if it has generated columns in a table that does not have our own definition (SQLite
 * allows no second table of the same name), virtual tables, triggers, indexes on expressions, or
 * views in place of tables, or if it lacks a table that every trace has. The check uses the schema
 * as SQLite has parsed it, through pragmas, because the columns of sqlite_schema may hold any text.
 * Views are always our own: they are created in `temp`, where SQLite looks first, so a file's views
 * of the same names are never used.
 *
 * A schema that is ours word for word skips these checks, which take longer than the rest of
 * opening. If VIEWS, and the file may be read, create our views. */
static char *find_reason_to_refuse_schema(sqlite3 *handle, bool views, int *status)
{
    static const struct {
        const char *sql, *what;
    } foreign[] = {
        {"SELECT '1000 of them' FROM main.sqlite_schema LIMIT 1 OFFSET 1000",
         "more tables, views and indexes than"},
        {"SELECT name FROM main.sqlite_schema WHERE type = 'trigger' OR sql LIKE 'CREATE TRIGGER%'",
         "the trigger"},
        {"SELECT value ->> 'name' FROM json_each(?2) WHERE value ->> 'type' IN ('virtual', "
         "'shadow')",
         "the virtual table"},
        {"SELECT l.value ->> 'name' FROM json_each(?2) l, pragma_table_xinfo(l.value ->> 'name', "
         "'main') x WHERE l.value ->> 'type' <> 'view' AND x.hidden > 0 AND NOT EXISTS (SELECT 1 "
         "FROM json_each(?1) o JOIN main.sqlite_schema s ON s.sql = o.value ->> 'sql' WHERE "
         "o.value "
         "->> 'type' = 'table' AND o.value ->> 'name' = lower(l.value ->> 'name'))",
         "generated columns in the table"},
        {"SELECT i.name FROM json_each(?2) l, pragma_index_list(l.value ->> 'name', 'main') i,"
         " pragma_index_xinfo(i.name, 'main') x WHERE l.value ->> 'type' <> 'view'"
         " AND (x.cid = -2 OR i.partial OR x.coll <> 'BINARY')",
         "an index on expressions, on some rows only or in an order of its own,"},
        {"SELECT l.value ->> 'name' FROM json_each(?1) o JOIN json_each(?2) l ON lower(l.value ->> "
         "'name') = o.value ->> 'name' WHERE o.value ->> 'type' = 'table' AND l.value ->> 'type' "
         "<> 'table'",
         "something else in the place of the table"},
        {"SELECT o.value ->> 'name' FROM json_each(?1) o WHERE o.value ->> 'type' = 'table' AND "
         "o.value ->> 'name' NOT IN (SELECT lower(value ->> 'name') FROM json_each(?2)) AND "
         "o.value ->> 'name' NOT IN " YOUNGER,
         NULL},
    };
    /* The list is made only once, because SQLite parses every view for it. pragma_table_list is
     * called with an argument: if the file has a table of this name, the call is an error, so it is
     * certainly SQLite's own function. */
    static const char listed[] = "SELECT json_group_array(json_object('name', name, 'type', type))"
                                 " FROM pragma_table_list(NULL) WHERE schema = 'main'";
    bool ours = is_schema_of_this_version(handle, status);
    char *theirs = ours ? NULL : select_text(handle, status, listed, NULL, NULL);
    char *found = NULL;
    char *why = NULL;

    for (size_t i = 0; !ours && !found && i < array_count(foreign); i++) {
        found = select_text(handle, status, foreign[i].sql, trust_make_expected_schema(), theirs);
        if (found && foreign[i].what)
            why = say_print("is not read, for it has %s %.100s: a recording's schema only holds "
                            "rows, and others may do endless work",
                            foreign[i].what, found);
        else if (found)
            why = say_print("is not read, for it has no table %s, as every trace has", found);
    }
    if (!found && theirs)
        create_younger_tables(handle, theirs, status);
    if (!found && views && *status == SQLITE_OK)
        *status = sqlite3_exec(handle, made.views, NULL, NULL, NULL);
    free(theirs);
    free(found);
    return why;
}

/* The version is taken from the file's header, which can be read before the schema is trusted. */
char *trust_check_schema(sqlite3 *handle, bool new, bool views, int *status)
{
    static const char tables[] =
        "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name IN "
        "('meta', 'process', 'thread', 'code', 'frame', 'loss')";
    int64_t found = new ? select_number(handle, status, tables, 0) : 6;
    int64_t version = select_number(handle, status, "PRAGMA main.user_version", SCHEMA_VERSION);
    char *why = NULL;
    bool newer;

    if (*status == SQLITE_OK && found != 6)
        return say_print("a database, but not a dyntrace trace");
    if (version == SCHEMA_VERSION &&
        !(why = new ? find_reason_to_refuse_schema(handle, views, status) : NULL))
        version = select_number(
            handle, status, "SELECT value FROM meta WHERE key = 'schema_version'", SCHEMA_VERSION);
    if (*status != SQLITE_OK || version == SCHEMA_VERSION)
        return why;
    newer = version > SCHEMA_VERSION;
    return say_print("made by %s dyntrace (schema %lld, this one reads %d): %s",
                     newer ? "a newer" : "an older", (long long)version, SCHEMA_VERSION,
                     newer ? "please upgrade dyntrace" : "record it again");
}
