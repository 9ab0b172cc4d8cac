/* test_function_ids.c -- code objects that come while the connection is open, in order and late. */
#include <sqlite3.h>
#include <stdio.h>

#include "trace/function_ids.h"

static int failures;

static void finds(struct function_ids *ids, sqlite3 *db, int64_t code_id, int64_t function_id)
{
    int64_t found = -1;
    int status = function_ids_find(ids, db, code_id, &found);

    if (status == SQLITE_OK && found == function_id)
        return;
    printf("FAIL: %jd is of function %jd, status %d\n", (intmax_t)code_id, (intmax_t)found, status);
    failures++;
}

int main(void)
{
    struct function_ids ids = {0};
    sqlite3 *db;

    sqlite3_open(":memory:", &db);
    sqlite3_exec(db,
                 "CREATE TABLE code(code_id INTEGER PRIMARY KEY, filename, qualname, first_line);"
                 "INSERT INTO code VALUES (3, 'a', 'f', 1), (5, 'a', 'g', 1), (6, 'a', 'f', 1)",
                 NULL, NULL, NULL);
    finds(&ids, db, 3, 3);
    finds(&ids, db, 6, 3);
    finds(&ids, db, 7, 0);
    sqlite3_exec(db, "INSERT INTO code VALUES (7, 'a', 'g', 1), (8, 'b', 'g', 1)", NULL, NULL, NULL);
    finds(&ids, db, 7, 5);
    finds(&ids, db, 8, 8);
    sqlite3_exec(db, "INSERT INTO code VALUES (2, 'a', 'g', 1)", NULL, NULL, NULL); /* behind those that were read */
    finds(&ids, db, 2, 2);
    finds(&ids, db, 7, 2);
    function_ids_free(&ids);
    sqlite3_exec(db, "DROP TABLE code", NULL, NULL, NULL);
    if (function_ids_find(&ids, db, 1, &(int64_t){0}) == SQLITE_OK) {
        printf("FAIL: there is no table, and no error\n");
        failures++;
    }
    function_ids_free(&ids);
    sqlite3_close(db);
    return failures != 0;
}
