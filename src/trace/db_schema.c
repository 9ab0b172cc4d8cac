/* trace/db_schema.c -- is the schema of a stranger's trace one that only holds rows? See trace/db_schema.h.
 *
 * Runs in: the viewer.
 *
 * What SQLite has made of the file is asked, by pragmas: the columns of sqlite_schema may say anything. */
#include "trace/db_schema.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>

#include "lib/say.h"
#include "schema.h"

/* ---- what we make ----------------------------------------------------------- */

/* Behind the statement at SQL, at its ';'. */
static const char *statement_end(const char *sql)
{
    while (*sql && *sql != ';') {
        if (sql[0] == '-' && sql[1] == '-')
            sql += strcspn(sql, "\n");
        else if (*sql == '\'')
            sql += 1 + strcspn(sql + 1, "'");
        if (*sql)
            sql++;
    }
    return sql;
}

bool schema_object_next(struct schema_walk *walk, struct schema_object *object)
{
    static const char *const types[] = {"table", "view", "index"}, *const begins[] = {"CREATE TABLE ", "CREATE VIEW ",
                                                                                      "CREATE INDEX "};
    const char *const texts[] = {schema_trace_sql, schema_views_sql};

    for (; walk->text < 2; walk->text++, walk->at = NULL) {
        const char *sql = walk->at ? walk->at : texts[walk->text];
        while (*sql) {
            sql += strspn(sql, "; \n");
            if (sql[0] == '-' && sql[1] == '-') {
                sql += strcspn(sql, "\n");
                continue;
            }
            walk->at = statement_end(sql);
            for (int i = 0; i < 3; i++)
                if (!strncmp(sql, begins[i], strlen(begins[i]))) {
                    const char *name = sql + strlen(begins[i]);
                    *object = (struct schema_object){types[i], name, sql, strcspn(name, " ("), (size_t)(walk->at - sql)};
                    return true;
                }
            sql = walk->at;
        }
    }
    return false;
}

/* The next byte that counts, 0 at END. */
static char significant(const char **at, const char *end)
{
    while (*at < end && (isspace((unsigned char)**at) || ((*at)[0] == '-' && *at + 1 < end && (*at)[1] == '-'))) {
        if (**at == '-')
            while (*at < end && **at != '\n')
                ++*at;
        else
            ++*at;
    }
    return *at < end ? *(*at)++ : 0;
}

bool schema_object_same(const struct schema_object *object, const char *sql, size_t bytes)
{
    const char *a = object->sql, *b = sql, *end_a = a + object->sql_bytes, *end_b = b + bytes;
    char x, y;

    do {
        x = significant(&a, end_a);
        y = significant(&b, end_b);
    } while (x && x == y);
    return x == y;
}

/* ---- what is there ----------------------------------------------------------- */

struct look {
    sqlite3 *handle;  /* borrowed */
    const char *path; /* borrowed */
    bool quiet;
};

/* The file is not to be read, for it has WHAT, which is called NAME. */
static bool refuse(const struct look *look, const char *what, const char *name)
{
    if (!look->quiet)
        say_error("%s: is not read, for it has %s %.100s: a recording's schema only holds rows, and others may do endless work", look->path,
                  what, name);
    return false;
}

/* The first column of the first row of FORMAT, which is SQLite's own kind; as text to be freed by sqlite3_free. NULL:
 * none, or an error in *STATUS. */
static char *ask(const struct look *look, int *status, const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    char *sql, *found = NULL;
    va_list arguments;

    va_start(arguments, format);
    sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    *status = sql ? sqlite3_prepare_v2(look->handle, sql, -1, &statement, NULL) : SQLITE_NOMEM;
    if (*status == SQLITE_OK && (*status = sqlite3_step(statement)) == SQLITE_ROW &&
        !(found = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0))))
        *status = SQLITE_NOMEM;
    if (*status == SQLITE_ROW || *status == SQLITE_DONE)
        *status = SQLITE_OK;
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return found;
}

/* Every table of ours is there, and is one. */
static bool tables_are_tables(const struct look *look, int *status)
{
    struct schema_walk walk = {0};
    struct schema_object ours;
    bool ok = true;

    while (ok && schema_object_next(&walk, &ours)) {
        char *found;
        if (*ours.type != 't')
            continue;
        found = ask(look, status, "SELECT iif(type = 'table', '', name) FROM pragma_table_list('%.*s') WHERE schema = 'main'",
                    (int)ours.name_bytes, ours.name);
        ok = *status == SQLITE_OK && found && (!*found ||
                                               refuse(look, "something else in the place of the table", found));
        if (*status == SQLITE_OK && !found && !look->quiet)
            say_error("%s: is not read, for it has no table %.*s, as every trace has", look->path, (int)ours.name_bytes,
                      ours.name);
        sqlite3_free(found);
    }
    return ok;
}

/* Make our views in `temp`, where they come before those of the file, which may say anything. */
static bool views_make(const struct look *look, int *status)
{
    struct schema_walk walk = {0};
    struct schema_object ours;

    while (*status == SQLITE_OK && schema_object_next(&walk, &ours)) {
        int skipped = (int)strlen("CREATE ");
        char *make = *ours.type == 'v' ? sqlite3_mprintf("CREATE TEMP %.*s", (int)ours.sql_bytes - skipped,
                                                         ours.sql + skipped) : NULL;
        if (*ours.type == 'v')
            *status = make ? sqlite3_exec(look->handle, make, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(make);
    }
    return *status == SQLITE_OK;
}

bool db_schema_trust(sqlite3 *handle, const char *path, bool quiet, int *status)
{
    static const struct {
        const char *sql, *what;
    } foreign[] = {
        {"SELECT '1000 of them' FROM main.sqlite_schema LIMIT 1 OFFSET 1000", "more tables, views and indexes than"},
        {"SELECT name FROM main.sqlite_schema WHERE type = 'trigger' OR sql LIKE 'CREATE TRIGGER%'", "the trigger"},
        {"SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('virtual', 'shadow')",
         "the virtual table"},
        {"SELECT l.name FROM pragma_table_list l, pragma_table_xinfo(l.name, 'main') x WHERE l.schema = 'main' AND l.type <> 'view'"
         " AND x.hidden > 0", "generated columns in the table"},
        {"SELECT i.name FROM pragma_table_list l, pragma_index_list(l.name, 'main') i, pragma_index_xinfo(i.name, 'main') x"
         " WHERE l.schema = 'main' AND l.type <> 'view' AND (x.cid = -2 OR i.partial OR x.coll <> 'BINARY')",
         "an index on expressions, on some rows only or in an order of its own,"},
    };
    struct look look = {handle, path, quiet};
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof foreign / sizeof *foreign; i++) {
        char *found = ask(&look, status, "%s", foreign[i].sql);
        ok = *status == SQLITE_OK && (!found || refuse(&look, foreign[i].what, found));
        sqlite3_free(found);
    }
    return ok && tables_are_tables(&look, status) && views_make(&look, status);
}
