/* test_template.c -- fields and what they escape; the files of schemas/tui/: each statement fits the schema, each field is a column of it, each lead a view. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "trace/functions.h"
#include "trace/db.h"
#include "tui/lead.h"

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
    struct template template = {0};

    /* The page `function` has one for all of its statements. */
    view_template_open(&template, name + strlen("tui/"), !strcmp(name, "tui/function") ? "(1)" : NULL);
    check(template.blocks.count, name, "", "is empty");
    for (size_t i = 0; i < template.blocks.count; i++) {
        struct template_block *block = &template.blocks.at[i];
        sqlite3_stmt *statement = NULL;
        if (*block->sql)
            check(sqlite3_prepare_v2(db, block->sql, -1, &statement, NULL) == SQLITE_OK && statement, name, block->sql, sqlite3_errmsg(db));
        for (size_t k = 0; k < block->lines.count; k++)
            line_check(statement, name, block->lines.at[k].rest);
        sqlite3_finalize(statement);
    }
    template_close(&template);
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
    struct target target = target_from_template(&arena, &row, "x => ledger {n} WHERE a = {name} AND b = {n} | of {name}");

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *made = row_print(&arena, &row, cases[i].text, TEMPLATE_MARKED);
        check(made && cases[i].made ? !strcmp(made, cases[i].made) : made == cases[i].made, "", cases[i].text, made ? made : "nothing");
    }
    check(target.kind == VIEW_LEDGER && target.id == 1500 && !strcmp(target.where, "a = 'it''s' AND b = 1500"), "", "a lead", target.where);
    check(!strcmp(target.title, "of it's"), "", "its title", target.title);
    check(target_from_template(&arena, &row, "x => function {none}").kind == VIEW_NONE, "", "a lead", "to nothing");
    check(!target_from_template(&arena, &row, "x").kind, "", "no lead", "leads somewhere");
    arena_free(&arena);
}

/* Values that would like to be more than text, as each output has them. */
static void ways_check(void)
{
    static const char *const names[] = {"bad", "long", "empty", "n", "style", "two", "mark"};
    static char text[301], cell[400];
    struct value values[] = {{.type = QUERY_TEXT, .text = "\033[2J{n}[x]\n\001r"}, {.type = QUERY_TEXT, .text = text},
                             {.type = QUERY_TEXT, .text = ""}, {.type = QUERY_INTEGER, .integer = 1}, {.type = QUERY_TEXT, .text = "limit"},
                             {.type = QUERY_TEXT, .text = "it's"}, {.type = QUERY_TEXT, .text = "<a>&\"'<"}};
    struct row row = {values, names, 7};
    static const struct { enum template_way way; const char *text, *made; } cases[] = {
        {TEMPLATE_LINES, "{bad}", "\\x1b[2J{n}[x]\\n\\x01r"}, {TEMPLATE_MARKED, "{bad}", "\\x1b[2J{n}[x]\\n\\x01r"},
        {TEMPLATE_COLOUR, "{!b}{bad}{!n}", "\033[1m\\x1b[2J{n}[x]\\n\\x01r\033[0m"}, {TEMPLATE_LINES, "{!b}x{!style}y{!n}", "xy"},
        {TEMPLATE_COLOUR, "{!style}y", "\033[1;31my"}, {TEMPLATE_SQL, "a = {bad}", "a = '\033[2J{n}[x]\n\001r'"},
        {TEMPLATE_LINES, "{long:10}", "aaaaaaaaaa…"}, {TEMPLATE_WHOLE, "{long:10}", text}, {TEMPLATE_LINES, "a[ b {empty}]c[ {none|d}]", "ac d"},
        {TEMPLATE_LINES, "{n:integer~entry}, {n:count~pass}, {none:integer~entry|no entries}", "1 entry, 1 pass, no entries"},
        {TEMPLATE_LINES, "[{none}x] {[}{n}{]}[ {[}{n}{]}]", " [1] [1]"}, {TEMPLATE_LINES, "{n:percent>5} {n:rough} {n:share}", "  1.0 1 1"},
        {TEMPLATE_LINES, "{two:20<8}|{two:3<8}|{bad:shell}|{two:shell}", "it's    |it'…    |'\\x1b[2J{n}[x]\\n\\x01r'|\"it's\""},
        {TEMPLATE_LINES, "[{?style=limit}a][{-style=limit}b][{?none}c][{-none}d][{+n}e][{?n=1}f][{?n=2}g][{+none}h][{-n}i][{+style}j]", "adef"},
        {TEMPLATE_HTML, "<b>{bad}</b>{mark:6}{mark:shell}{!b}", "<b>\\x1b[2J{n}[x]\n\\x01r</b>&lt;a&gt;&amp;&quot;&#39;…&#39;&lt;a&gt;&amp;&quot;&#39;\\&#39;&#39;&lt;&#39;"},
        {TEMPLATE_CELL, "{bad:4}|{long}|{mark}", cell}, {TEMPLATE_LINES, "{n|a:b~c}, {none|a:b~c}", "1, a:b~c"}, {TEMPLATE_LINES, "{n", "{n"}, {TEMPLATE_LINES, "[{n}", "[1"},
    };
    struct arena arena = {0};

    memset(text, 'a', sizeof text - 1);
    snprintf(cell, sizeof cell, "\033[2J…|%s|<a>&\"'<", text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *made = row_print(&arena, &row, cases[i].text, cases[i].way);
        check(made && !strcmp(made, cases[i].made), "", cases[i].text, made ? made : "nothing");
    }
    arena_free(&arena);
}

int main(void)
{
    sqlite3 *db;

    sqlite3_open(":memory:", &db);
    struct functions *functions = functions_register(db);
    check(sqlite3_exec(db, schema_trace_sql, NULL, NULL, NULL) == SQLITE_OK, "trace", "", sqlite3_errmsg(db));
    check(sqlite3_exec(db, schema_views_sql, NULL, NULL, NULL) == SQLITE_OK, "views", "", sqlite3_errmsg(db));
    for (const struct schema_query *s = schema_statements; s->name; s++)
        if (!strncmp(s->name, "tui/", 4))
            file_check(db, s->name);
    fields_check();
    ways_check();
    sqlite3_close(db);
    functions_free(functions);
    return failures != 0;
}
