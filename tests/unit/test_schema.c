/* The files of schemas/: every statement is SQL that fits the schema, and the numbers in them are those of vocabulary.h. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder_sqlite.h"
#include "schema.h"
#include "trace/functions.h"
#include "tables.h"
#include "vocabulary.h"

static int failures;

static void check(int ok, const char *what, const char *why)
{
    if (!ok) {
        printf("FAIL %s: %s\n", what, why);
        failures++;
    }
}

/* A row of `enum`. */
static void enum_row(sqlite3 *db, const char *kind, int number, const char *word)
{
    sqlite3_stmt *s = NULL;

    sqlite3_prepare_v2(db, "SELECT name FROM enum WHERE kind = ? AND value = ?", -1, &s, NULL);
    sqlite3_bind_text(s, 1, kind, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, number);
    check(sqlite3_step(s) == SQLITE_ROW && !strcmp((const char *)sqlite3_column_text(s, 0), word), kind, word);
    sqlite3_finalize(s);
}

/* A row of the view `outcomes`. */
static void outcome_row(sqlite3 *db, int number, const char *word, bool asked, bool missed, bool python)
{
    sqlite3_stmt *s = NULL;

    sqlite3_prepare_v2(db, "SELECT 1 FROM outcomes WHERE outcome = ? AND name = ? AND asked = ? AND missed = ? AND ran_as_python = ?", -1, &s, NULL);
    sqlite3_bind_int(s, 1, number);
    sqlite3_bind_text(s, 2, word, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, asked);
    sqlite3_bind_int(s, 4, missed);
    sqlite3_bind_int(s, 5, python);
    check(sqlite3_step(s) == SQLITE_ROW, "outcomes", word);
    sqlite3_finalize(s);
}

static int number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int found = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        found = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return found;
}

/* Stands for the function of db_visit. */
static void each(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)context, (void)count, (void)values;
}

static void prepares(sqlite3 *db, const char *name, const char *sql)
{
    sqlite3_stmt *s = NULL;
    bool ok = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && s;

    check(ok, name, sqlite3_errmsg(db));
    sqlite3_finalize(s);
}

/* The columns of `frame` that C reads, two of which SQLite computes. Frames are written by collector/frame_pages.c. */
static void frame_columns(sqlite3 *db, const struct row_table_facts *table)
{
    for (const struct row_column *c = table->columns; c->name; c++) {
        char *sql = sqlite3_mprintf("SELECT pk FROM pragma_table_xinfo('frame') WHERE name = %Q AND type = 'INTEGER'", c->name);
        sqlite3_stmt *s = NULL;
        bool has;

        sqlite3_prepare_v2(db, sql, -1, &s, NULL);
        has = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == (c->holds == ROW_KEY);
        check(has, c->name, "schemas/trace.sql has no such column of frame");
        sqlite3_finalize(s);
        sqlite3_free(sql);
    }
}

/* The columns of a table, as tables.h lists them and as trace.sql has them. */
static void table_columns(sqlite3 *db, const struct row_table_facts *table)
{
    const struct row_column *c = table->columns;
    char *sql = sqlite3_mprintf("SELECT name, pk, type FROM pragma_table_info(%Q)", table->name);
    sqlite3_stmt *s = NULL;
    bool same = true;
    bool composite = false;
    char why[200];

    sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    sqlite3_free(sql);
    while (sqlite3_step(s) == SQLITE_ROW)
        composite = composite || sqlite3_column_int(s, 1) == 2;
    sqlite3_reset(s);
    for (; same && sqlite3_step(s) == SQLITE_ROW; c += same) {
        same = c->name && !strcmp(c->name, (const char *)sqlite3_column_text(s, 0)) &&
               (c->holds == ROW_KEY) == (sqlite3_column_int(s, 1) == 1 && !composite) &&
               (c->holds == ROW_STRING) == !strcmp((const char *)sqlite3_column_text(s, 2), "TEXT");
        snprintf(why, sizeof why, "schemas/trace.sql has %s %s where src/tables.h has %s", sqlite3_column_text(s, 0),
                 sqlite3_column_text(s, 2), c->name ? c->name : "nothing");
        check(same, table->name, why);
    }
    sqlite3_finalize(s);
    snprintf(why, sizeof why, "src/tables.h has %s, schemas/trace.sql has not", c->name ? c->name : "it");
    check(!same || !c->name || (c->id == ID_ROW && !c[1].name), table->name, why);
}

/* Of what the recorder writes a row of: it writes each column of TABLE, but for the host, which merge knows. */
static void columns_written(enum row_table table)
{
    static const struct {
        enum row_table table;
        const char *columns;
    } puts[] = {
#define X(NAME, table, how, columns) {TABLE_##table, columns},
        RECORDER_PUTS(X)
#undef X
    };
    const char *name = row_tables[table].name;
    bool any = false;
    char why[200];

    for (const struct row_column *c = row_tables[table].columns; c->name; c++) {
        bool written = !strcmp(name, "process") && !strcmp(c->name, "host");
        for (size_t i = 0; i < sizeof puts / sizeof *puts; i++)
            for (const char *at = puts[i].columns; puts[i].table == table && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
                any = true;
                written = written || (strcspn(at, " ?=") == strlen(c->name) && !strncmp(at, c->name, strlen(c->name)));
            }
        snprintf(why, sizeof why, "no row of src/recorder_sqlite.h has %s", c->name);
        check(written || !any || !strcmp(name, "frame"), name, why);
    }
}

int main(void)
{
    char text[100];
    sqlite3 *db, *both, *ranks;

    sqlite3_open(":memory:", &db);
    struct functions *functions = functions_register(db);
    sqlite3_create_function(db, "each", -1, SQLITE_UTF8, NULL, each, NULL, NULL);
    check(sqlite3_exec(db, schema_trace_sql, NULL, NULL, NULL) == SQLITE_OK, "trace.sql", sqlite3_errmsg(db));
    check(sqlite3_exec(db, schema_views_sql, NULL, NULL, NULL) == SQLITE_OK, "views.sql", sqlite3_errmsg(db));
    snprintf(text, sizeof text, "SELECT value = %d FROM meta WHERE key = 'schema_version'", SCHEMA_VERSION);
    check(number(db, text) == 1 && number(db, "PRAGMA user_version") == SCHEMA_VERSION, "trace.sql", "its version");

#define X(number, NAME, word, ...) enum_row(db, "outcome", number, word);
    OUTCOME_ROWS(X)
#undef X
#define X(number, NAME, word) enum_row(db, "frame.kind", number, word);
    FRAME_KIND_ROWS(X)
#undef X
#define X(number, NAME, word) enum_row(db, "frame.exit", number, word);
    FRAME_EXIT_ROWS(X)
#undef X
#define X(number, NAME, word) enum_row(db, "phase", number, word);
    PHASE_ROWS(X)
#undef X
    check(number(db, "SELECT COUNT(*) FROM enum") == OUTCOMES + FRAME_KINDS + FRAME_EXITS + PHASES - 1, "enum", "no rows besides");

#define X(number, NAME, word, asked, missed, python, ...) outcome_row(db, number, word, asked, missed, python);
    OUTCOME_ROWS(X)
#undef X
    check(number(db, "SELECT COUNT(*) FROM outcomes") == OUTCOMES, "outcomes", "no rows besides");

    for (int i = 0; i < ROW_TABLES; i++) {
        if (i == TABLE_frame)
            frame_columns(db, &row_tables[i]);
        else
            table_columns(db, &row_tables[i]);
        columns_written((enum row_table)i);
    }
    check(number(db, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table'") == ROW_TABLES + 3, "tables.h", "all but meta, enum and merged");

    for (int i = 0; i < schema_query_count; i++)
        prepares(db, schema_queries[i].name, schema_queries[i].text);
    check(sqlite3_exec(db, schema_statement("recorder/begin"), NULL, NULL, NULL) == SQLITE_OK, "recorder/begin", sqlite3_errmsg(db));
    check(sqlite3_exec(db, schema_statement("recorder/keep_begin"), NULL, NULL, NULL) == SQLITE_OK, "recorder/keep_begin", sqlite3_errmsg(db));
    check(sqlite3_exec(db, "ATTACH ':memory:' AS trace", NULL, NULL, NULL) == SQLITE_OK &&
              sqlite3_deserialize(db, "trace", memcpy(sqlite3_malloc64(schema_empty_bytes), schema_empty, schema_empty_bytes),
                                  (sqlite3_int64)schema_empty_bytes, (sqlite3_int64)schema_empty_bytes,
                                  SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) == SQLITE_OK &&
              sqlite3_exec(db, schema_statement("recover/views"), NULL, NULL, NULL) == SQLITE_OK &&
              sqlite3_exec(db, schema_statement("recover/totals"), NULL, NULL, NULL) == SQLITE_OK,
          "the other file, of recover.sql", sqlite3_errmsg(db));
    /* `check` asks the trace and tables of its own beside it; `diff`, `ranks` and trace/given.c a trace, or their own tables of several. */
    check(sqlite3_exec(db, schema_statement("fsck-frames/tables"), NULL, NULL, NULL) == SQLITE_OK, "fsck-frames/tables", sqlite3_errmsg(db));
    check(sqlite3_exec(db, schema_statement("check/tables"), NULL, NULL, NULL) == SQLITE_OK, "check/tables", sqlite3_errmsg(db));
    for (int i = 0; i < 2; i++) /* a part of the trace */
        check(sqlite3_exec(db, schema_statement((const char *[]){"range/asked", "range/part"}[i]), NULL, NULL, NULL) == SQLITE_OK, "range",
              sqlite3_errmsg(db));
    sqlite3_open(":memory:", &both);
    struct functions *of_both = functions_register(both);
    check(sqlite3_exec(both, schema_statement("diff/tables"), NULL, NULL, NULL) == SQLITE_OK, "diff/tables", sqlite3_errmsg(both));
    sqlite3_open(":memory:", &ranks);
    struct functions *of_ranks = functions_register(ranks);
    check(sqlite3_exec(ranks, schema_statement("ranks/tables"), NULL, NULL, NULL) == SQLITE_OK, "ranks/tables", sqlite3_errmsg(ranks));
    check(sqlite3_exec(ranks, schema_statement("given/tables"), NULL, NULL, NULL) == SQLITE_OK, "given/tables", sqlite3_errmsg(ranks));
    for (const struct schema_query *s = schema_statements; s->name; s++)
        if (!strncmp(s->name, "diff/", 5) || !strncmp(s->name, "ranks/", 6) || !strncmp(s->name, "given/", 6)) {
            sqlite3_stmt *statement = NULL;
            bool fits = strstr(s->name, "/tables") || sqlite3_prepare_v2(db, s->text, -1, &statement, NULL) == SQLITE_OK;
            sqlite3_finalize(statement);
            if (!fits)
                prepares(*s->name == 'd' ? both : ranks, s->name, s->text);
        } else if (strcmp(s->name, "check/tables") && strcmp(s->name, "fsck-frames/tables") && strcmp(s->name, "range/asked") && strcmp(s->name, "range/part") && strncmp(s->name, "tui/", 4) && strncmp(s->name, "import/", 7) && strncmp(s->name, "merge/", 6) && strncmp(s->name, "engines/", 8) && strncmp(s->name, "pages/", 6)) /* not SQL alone, and of temporary tables */ {
            bool causes = !strcmp(s->name, "why/histories"), argument = !strncmp(s->name, "sql/.", 5);
            char *sql = sqlite3_mprintf("%s%s%s%s", causes ? "WITH causes AS (" : argument ? "WITH argument(word) AS (SELECT 'frame') " : "",
                                        causes ? schema_statement("why/causes") : "", causes ? ")" : "", s->text);
            prepares(db, s->name, sql);
            sqlite3_free(sql);
        }
    sqlite3_close(both);
    sqlite3_close(ranks);
    sqlite3_close(db);
    functions_free(of_both);
    functions_free(of_ranks);
    functions_free(functions);
    return failures != 0;
}
