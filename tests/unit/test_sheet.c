/* test_sheet.c -- the files of schemas/tui/: each statement fits the schema, each field is a column of it, each lead a view. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "trace/functions.h"
#include "trace/db.h"
#include "tui/sheet.h"

static int failures;

static void check(bool good, const char *file, const char *what, const char *why)
{
    if (!good)
        fprintf(stderr, "schemas/%s.sql: %s: %s\n", file, what, why);
    failures += !good;
}

static bool has_column(sqlite3_stmt *statement, const char *name, size_t bytes)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++)
        if (strlen(sqlite3_column_name(statement, i)) == bytes && !memcmp(sqlite3_column_name(statement, i), name, bytes))
            return true;
    return false;
}

static void line_check(sqlite3_stmt *statement, const char *file, const char *line)
{
    const char *lead = strstr(line, "=> ");

    for (const char *at = line; (at = strchr(at, '{')); at++) {
        const char *name = at + 1 + (at[1] == '!' || at[1] == '?');
        size_t bytes = strcspn(name, ":|}");
        check((at[1] == '!' && bytes == 1 && strchr("ndbhrwgam", *name)) || has_column(statement, name, bytes), file, at, "no such column");
    }
    if (lead)
        check(view_named(lead + 3, strcspn(lead + 3, " ")) != VIEW_NONE, file, lead, "no such view");
}

static void file_check(sqlite3 *db, const char *name)
{
    struct sheet sheet = {0};

    /* The page `function` has one for all of its statements. */
    sheet_open(&sheet, name + strlen("tui/"), !strcmp(name, "tui/function") ? "(1)" : NULL);
    check(sheet.blocks.count, name, "", "is empty");
    for (size_t i = 0; i < sheet.blocks.count; i++) {
        struct sheet_block *block = &sheet.blocks.at[i];
        sqlite3_stmt *statement = NULL;
        if (*block->sql)
            check(sqlite3_prepare_v2(db, block->sql, -1, &statement, NULL) == SQLITE_OK && statement, name, block->sql, sqlite3_errmsg(db));
        for (size_t k = 0; k < block->lines.count; k++)
            line_check(statement, name, block->lines.at[k].rest);
        sqlite3_finalize(statement);
    }
    sheet_close(&sheet);
}

/* Fields, brackets, leads. */
static void fields_check(void)
{
    static char text[] = "it's";
    static const char *const names[] = {"n", "name", "none", "style"};
    struct value values[] = {{.type = QUERY_INTEGER, .integer = 1500}, {.type = QUERY_TEXT, .text = text}, {.type = QUERY_NULL},
                             {.type = QUERY_TEXT, .text = "r"}};
    struct row row = {values, names, 4};
    static const struct { const char *text, *made; } cases[] = {
        {"{n} {name} {none}", "1500 it's ?"}, {"{n:count>8}|{name:<6}|{name:<3}", "    1500|it's  |it…"},
        {"a[ b {none}] c[ {name}][{?n} d]", "a c it's d"}, {"[{none}]", NULL}, {"{none|not known}{none|}", "not known"},
        {"{!r}x{!style}y{!b}", MARK "rx" MARK "ry" MARK "b"}, {"[{n}[, {none}]] => ledger", "1500"},
    };
    struct arena arena = {0};
    struct target target = row_target(&arena, &row, "x => ledger {n} WHERE a = {name} AND b = {n} | of {name}");

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *made = row_print(&arena, &row, cases[i].text, true);
        check(made && cases[i].made ? !strcmp(made, cases[i].made) : made == cases[i].made, "", cases[i].text, made ? made : "nothing");
    }
    check(target.kind == VIEW_LEDGER && target.id == 1500 && !strcmp(target.where, "a = 'it''s' AND b = 1500"), "", "a lead", target.where);
    check(!strcmp(target.title, "of it's"), "", "its title", target.title);
    check(row_target(&arena, &row, "x => function {none}").kind == VIEW_NONE, "", "a lead", "to nothing");
    check(!row_target(&arena, &row, "x").kind, "", "no lead", "leads somewhere");
    arena_free(&arena);
}

int main(void)
{
    sqlite3 *db;

    sqlite3_open(":memory:", &db);
    functions_add(db);
    check(sqlite3_exec(db, schema_trace_sql, NULL, NULL, NULL) == SQLITE_OK, "trace", "", sqlite3_errmsg(db));
    check(sqlite3_exec(db, schema_views_sql, NULL, NULL, NULL) == SQLITE_OK, "views", "", sqlite3_errmsg(db));
    for (const struct schema_query *s = schema_statements; s->name; s++)
        if (!strncmp(s->name, "tui/", 4))
            file_check(db, s->name);
    fields_check();
    sqlite3_close(db);
    return failures != 0;
}
