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

/* The database in the file NAME, with the statements SQL and VIEWS, as the array ARRAY. */
static int image(const char *name, const char *array, const char *sql, const char *views)
{
    sqlite3_stmt *root;
    FILE *in;
    int byte;

    if (sqlite3_open(name, &db) || run("PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF") ||
        run("BEGIN") || run(sql) || run(views) || run("COMMIT") ||
        sqlite3_prepare_v2(db, schema_statement("recover/pages"), -1, &root, NULL) || sqlite3_step(root) != SQLITE_ROW)
        return fail();
    printf("\nconst char %s_pages[] = \"%s\";\nconst unsigned char %s[] = {", array, sqlite3_column_text(root, 0), array);
    sqlite3_finalize(root);
    if (sqlite3_close(db) || !(in = fopen(name, "rb")))
        return fail();
    for (long at = 0; (byte = getc(in)) != EOF; at++)
        printf("%s%d,", at % 64 ? "" : "\n", byte);
    printf("};\nconst unsigned long %s_bytes = sizeof %s;\n", array, array);
    return fclose(in) || remove(name);
}

int main(int argc, char **argv)
{
    printf("/* Made by schemas/empty.c. */\n#include \"schema.h\"\n");
    return argc != 2 || image(argv[1], "schema_empty", schema_trace_sql, schema_views_sql) ||
           image(argv[1], "schema_bare", schema_trace_sql, "");
}
