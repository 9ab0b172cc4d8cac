/* empty.c -- writes an empty trace as C, for the build: SQLite takes 5 ms to make one, at the start of each recording.
 * It is made without views, which SQLite would parse whenever it opens the file; their rows come later, as text.
 * Run from the top of the tree with the name of a file that is not there; the C goes to standard output. */
#include <sqlite3.h>
#include <stdio.h>

#include "schema.h"

static sqlite3 *db;

static int fail(void)
{
    fprintf(stderr, "schemas/: %s\n", sqlite3_errmsg(db));
    return 1;
}

static int run(const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* What the query SQL finds, a text; it lives until the next one. NULL: nothing. */
static const unsigned char *ask(const char *sql)
{
    static sqlite3_stmt *statement;

    sqlite3_finalize(statement);
    statement = NULL;
    return !sql || sqlite3_prepare_v2(db, sql, -1, &statement, NULL) || sqlite3_step(statement) != SQLITE_ROW
               ? NULL : sqlite3_column_text(statement, 0);
}

static void byte_print(long at, int byte)
{
    printf("%s%d,", at % 64 ? "" : "\n", byte);
}

int main(int argc, char **argv)
{
    const unsigned char *text;
    FILE *in;
    int byte;

    if (argc != 2 || sqlite3_open(argv[1], &db) || run("PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF") ||
        run("BEGIN") || run(schema_trace_sql) || run("COMMIT") || !(text = ask(schema_statement("recover/pages"))))
        return fail();
    printf("/* Made by schemas/empty.c. */\n#include \"schema.h\"\n\nconst char schema_empty_pages[] = \"%s\";\n", text);
    ask(NULL);
    printf("const unsigned char schema_empty[] = {");
    if (!(in = fopen(argv[1], "rb")))
        return fail();
    for (long at = 0; (byte = getc(in)) != EOF; at++)
        byte_print(at, byte);
    printf("};\nconst unsigned long schema_empty_bytes = sizeof schema_empty;\n\nconst char schema_view_rows[] = {");
    if (run(schema_views_sql) ||
        !(text = ask("SELECT 'PRAGMA writable_schema=ON; INSERT INTO sqlite_schema SELECT * FROM (VALUES ' ||"
                     " group_concat(format('(%Q,%Q,%Q,0,%Q)', type, name, tbl_name, sql)) ||"
                     " ') WHERE column2 NOT IN (SELECT name FROM sqlite_schema); PRAGMA writable_schema=OFF'"
                     " FROM sqlite_schema WHERE type = 'view'")))
        return fail();
    for (long at = 0; at == 0 || text[at - 1]; at++)
        byte_print(at, text[at]);
    printf("};\n");
    return fclose(in) || remove(argv[1]);
}
