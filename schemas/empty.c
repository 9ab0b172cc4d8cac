/* empty.c -- writes an empty trace as C, for the build: SQLite takes 5 ms to make one, at the start of each recording.
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

int main(int argc, char **argv)
{
    sqlite3_stmt *root;
    FILE *in;
    int byte;

    if (argc != 2 || sqlite3_open(argv[1], &db) || run("PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF") ||
        run("BEGIN") || run(schema_trace_sql) || run(schema_views_sql) || run("COMMIT") ||
        sqlite3_prepare_v2(db, schema_statement("recover/pages"), -1, &root, NULL) || sqlite3_step(root) != SQLITE_ROW)
        return fail();
    printf("/* Made by schemas/empty.c. */\n#include \"schema.h\"\n\nconst char schema_empty_pages[] = \"%s\";\n"
           "const unsigned char schema_empty[] = {", sqlite3_column_text(root, 0));
    sqlite3_finalize(root);
    if (sqlite3_close(db) || !(in = fopen(argv[1], "rb")))
        return fail();
    for (long at = 0; (byte = getc(in)) != EOF; at++)
        printf("%s%d,", at % 64 ? "" : "\n", byte);
    printf("};\nconst unsigned long schema_empty_bytes = sizeof schema_empty;\n");
    return fclose(in);
}
