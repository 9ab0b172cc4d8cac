/* trace/db_schema.c -- is the schema of a stranger's trace one that only holds rows? See trace/db_schema.h.
 *
 * Runs in: the viewer.
 *
 * What SQLite has made of the file is asked, by pragmas: the columns of sqlite_schema may say anything. */
#include "trace/db_schema.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "lib/say.h"
#include "schema.h"

/* The first column of the first row of SQL, whose ?1 is TEXT; the caller frees it. NULL: none, or an error in *STATUS. */
static char *ask(sqlite3 *handle, int *status, const char *sql, const char *text)
{
    sqlite3_stmt *statement = NULL;
    char *found = NULL;

    *status = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
    sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    if (*status == SQLITE_OK && (*status = sqlite3_step(statement)) == SQLITE_ROW)
        found = say_print("%s", (const char *)sqlite3_column_text(statement, 0));
    if (*status == SQLITE_ROW || *status == SQLITE_DONE)
        *status = SQLITE_OK;
    sqlite3_finalize(statement);
    return found;
}

/* What SQL finds in an empty trace. */
static char *ask_ours(const char *sql)
{
    sqlite3 *ours = NULL;
    char *found;
    int status;

    sqlite3_open(":memory:", &ours);
    sqlite3_exec(ours, schema_trace_sql, NULL, NULL, NULL);
    sqlite3_exec(ours, schema_views_sql, NULL, NULL, NULL);
    found = ask(ours, &status, sql, NULL);
    sqlite3_close(ours);
    return found;
}

char *db_schema_made(void)
{
    return ask_ours("SELECT json_group_array(json_object('type', type, 'name', name, 'sql', sql)) FROM sqlite_schema");
}

char *db_schema_trust(sqlite3 *handle, int *status)
{
    static const struct {
        const char *sql, *what;
    } foreign[] = {
        {"SELECT '1000 of them' FROM main.sqlite_schema LIMIT 1 OFFSET 1000", "more tables, views and indexes than"},
        {"SELECT name FROM main.sqlite_schema WHERE type = 'trigger' OR sql LIKE 'CREATE TRIGGER%'", "the trigger"},
        {"SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('virtual', 'shadow')",
         "the virtual table"},
        {"SELECT l.name FROM pragma_table_list l, pragma_table_xinfo(l.name, 'main') x WHERE l.schema = 'main'"
         " AND l.type <> 'view' AND x.hidden > 0", "generated columns in the table"},
        {"SELECT i.name FROM pragma_table_list l, pragma_index_list(l.name, 'main') i,"
         " pragma_index_xinfo(i.name, 'main') x WHERE l.schema = 'main' AND l.type <> 'view'"
         " AND (x.cid = -2 OR i.partial OR x.coll <> 'BINARY')",
         "an index on expressions, on some rows only or in an order of its own,"},
        /* With an argument it is SQLite's own: where the file has a table of that name, this is an error. */
        {"SELECT l.name FROM json_each(?1) o, pragma_table_list(o.value ->> 'name') l"
         " WHERE o.value ->> 'type' = 'table' AND l.schema = 'main' AND l.type <> 'table'",
         "something else in the place of the table"},
    };
    static const char missing[] =
        "SELECT o.value ->> 'name' FROM json_each(?1) o WHERE o.value ->> 'type' = 'table'"
        " AND NOT EXISTS (SELECT 1 FROM pragma_table_list(o.value ->> 'name') WHERE schema = 'main')";
    char *made = db_schema_made(), *found = NULL, *why = NULL, *views;

    *status = SQLITE_OK;
    for (size_t i = 0; !found && *status == SQLITE_OK && i < sizeof foreign / sizeof *foreign; i++)
        if ((found = ask(handle, status, foreign[i].sql, made)))
            why = say_print("is not read, for it has %s %.100s: a recording's schema only holds rows, and "
                            "others may do endless work", foreign[i].what, found);
    if (!found && *status == SQLITE_OK && (found = ask(handle, status, missing, made)))
        why = say_print("is not read, for it has no table %s, as every trace has", found);
    if (!found && *status == SQLITE_OK) {
        views = ask(handle, status, "SELECT group_concat('CREATE TEMP ' || substr(value ->> 'sql', 8), ';')"
                                    " FROM json_each(?1) WHERE value ->> 'type' = 'view'", made);
        if (views)
            *status = sqlite3_exec(handle, views, NULL, NULL, NULL);
        free(views);
    }
    free(made);
    free(found);
    return why;
}
