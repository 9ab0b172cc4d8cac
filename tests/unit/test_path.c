/* To look at a trace's file before it is opened takes no lock away from who has it open in this process: POSIX's locks go with the first
 * descriptor that is closed. */
#include "trace/path.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

static void check(int ok, const char *what)
{
    if (!ok) {
        printf("FAIL %s\n", what);
        failures++;
    }
}

/* Could this process get a write lock on all of PATH? 2: not known. */
static int could_lock(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open(path, O_RDWR);

    return file >= 0 && fcntl(file, F_GETLK, &lock) == 0 ? lock.l_type == F_UNLCK : 2;
}

/* Could another process get one? That is THIS_PROGRAM, run with PATH: valgrind would count SQLite's memory, which a mere fork has
 * inherited, as leaked by the child, and change the child's status. */
static int is_free(const char *this_program, const char *path)
{
    int status = -1;
    pid_t child = fork();

    if (!child) {
        execl(this_program, this_program, path, NULL);
        _exit(2);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int main(int count, char **words)
{
    char folder[] = "/tmp/dyntrace-path-XXXXXX", path[64], log[80];
    struct path_facts facts;
    sqlite3 *db = NULL;

    if (count > 1)
        return could_lock(words[1]);
    check(mkdtemp(folder) != NULL, "a folder");
    snprintf(path, sizeof path, "%s/t.db", folder);
    path_configure_sqlite();
    check(sqlite3_open(path, &db) == SQLITE_OK && sqlite3_exec(db, "CREATE TABLE t (a)", NULL, NULL, NULL) == SQLITE_OK, "a file");
    facts = path_read_facts(path);
    check(facts.plain && facts.locks && !facts.idle, "a file without a log");
    sqlite3_exec(db, "PRAGMA journal_mode = WAL; INSERT INTO t VALUES (1)", NULL, NULL, NULL);
    check(is_free(words[0], path) == 0, "a reader of a live trace has a lock");
    facts = path_read_facts(path);
    check(!facts.plain && facts.locks && !facts.idle, "a file with a log");
    check(is_free(words[0], path) == 0, "and has it when the file was looked at");
    sqlite3_close(db);
    check(is_free(words[0], path) == 1, "and releases it");
    facts = path_read_facts(path);
    check(!facts.plain && facts.idle, "a log in the header and none beside it");
    snprintf(log, sizeof log, "%s/none.db", folder);
    facts = path_read_facts(log);
    check(!facts.plain && !facts.idle && facts.locks, "no file");
    unlink(path);
    rmdir(folder);
    return failures != 0;
}
