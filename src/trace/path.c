/* trace/path.c -- makes the URI by which SQLite opens the file of a trace. See trace/path.h. Runs
 * in: the viewer. */
#include "trace/path.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/say.h"

static bool does_file_with_suffix_exist(const char *absolute, const char *suffix)
{
    char *name = say_print("%s%s", absolute, suffix);
    bool has = access(name, F_OK) == 0 || errno != ENOENT;

    free(name);
    return has;
}

/* Read the facts with SQLite's file functions. If we closed a descriptor of our own, the kernel
 * would drop all POSIX locks that this process has on the file, SQLite's included. */
struct path_facts path_read_facts(const char *absolute)
{
    struct path_facts facts = {.locks = true};
    unsigned char header[20] = {0};
    sqlite3_filename name;
    sqlite3_file *file;
    sqlite3_vfs *vfs;
    int reserved;

    path_configure_sqlite();
    vfs = sqlite3_vfs_find(NULL);
    name = sqlite3_create_filename(absolute, "", "", 0, NULL);
    file = calloc(1, (size_t)vfs->szOsFile);
    if (name && vfs->xOpen(vfs, name, file, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB, NULL) ==
                    SQLITE_OK) {
        if (file->pMethods->xRead(file, header, sizeof header, 0) == SQLITE_OK) {
            facts.idle = header[18] == 2 && header[19] == 2 &&
                         !does_file_with_suffix_exist(absolute, "-wal");
            facts.plain = header[18] == 1 && header[19] == 1 &&
                          !does_file_with_suffix_exist(absolute, "-wal") &&
                          !does_file_with_suffix_exist(absolute, "-journal");
        }
        facts.locks = file->pMethods->xCheckReservedLock(file, &reserved) == SQLITE_OK;
        file->pMethods->xClose(file);
    }
    free(file);
    sqlite3_free_filename(name);
    return facts;
}

char *path_make_uri(const char *absolute, struct path_facts facts, bool write)
{
    char *uri = malloc(strlen(absolute) * 3 + 80);
    char *p = stpcpy(uri, "file:");

    for (const unsigned char *s = (const unsigned char *)absolute; *s; s++)
        p += sprintf(p, strchr("%?#", *s) ? "%%%02X" : "%c", *s);
    p = stpcpy(p, write ? "?mode=rw" : facts.idle ? "?mode=ro&immutable=1" : "?mode=ro");
    strcpy(p, facts.locks ? "" : "&nolock=1");
    return uri;
}

/* Is PATH in /proc? A file without a name is reached only through a link there. SQLite refuses to
 * follow links, and all other paths have been resolved before SQLite gets them. */
static bool is_in_proc(const char *path)
{
    return !strncmp(path, "/proc/", 6);
}

static int open_below_proc(const char *path, int flags, int mode)
{
    return open(path, is_in_proc(path) ? flags & ~O_NOFOLLOW : flags, mode);
}

static int lstat_below_proc(const char *path, struct stat *st)
{
    return is_in_proc(path) ? stat(path, st) : lstat(path, st);
}

static pthread_once_t proc_once = PTHREAD_ONCE_INIT;

static void configure_sqlite(void)
{
    sqlite3_vfs *vfs;

    /* Turn off SQLite's counting of memory, which takes a fifth of the time to open a trace. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    vfs = sqlite3_vfs_find(NULL);
    vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_below_proc);
    vfs->xSetSystemCall(vfs, "lstat", (sqlite3_syscall_ptr)lstat_below_proc);
}

void path_configure_sqlite(void)
{
    pthread_once(&proc_once, configure_sqlite);
}
