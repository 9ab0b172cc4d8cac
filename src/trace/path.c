/* trace/path.c -- how SQLite reaches the file of a trace. See trace/path.h.
 *
 * Runs in: the viewer. */
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

/* True when the file is in WAL mode and has no log beside it: no recorder is using it. Then SQLite must not make one,
 * which in a directory that we cannot write to would fail and elsewhere would litter. */
static bool wal_idle(const char *absolute)
{
    unsigned char header[20] = {0};
    char *log = say_print("%s-wal", absolute);
    FILE *file = fopen(absolute, "rb");
    bool idle = file && fread(header, sizeof header, 1, file) == 1 && header[18] == 2 && header[19] == 2 &&
                access(log, F_OK) != 0 && errno == ENOENT;

    if (file)
        fclose(file);
    free(log);
    return idle;
}

bool path_locks(const char *absolute)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    int file = open(absolute, O_RDONLY | O_CLOEXEC);
    bool none = file >= 0 && fcntl(file, F_GETLK, &lock) != 0 && (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP);

    if (file >= 0)
        close(file);
    return !none;
}

char *path_uri(const char *absolute, bool write)
{
    char *uri = malloc(strlen(absolute) * 3 + 80), *p = stpcpy(uri, "file:");

    for (const unsigned char *s = (const unsigned char *)absolute; *s; s++)
        p += sprintf(p, strchr("%?#", *s) ? "%%%02X" : "%c", *s);
    p = stpcpy(p, write ? "?mode=rw" : wal_idle(absolute) ? "?mode=ro&immutable=1" : "?mode=ro");
    strcpy(p, path_locks(absolute) ? "" : "&nolock=1");
    return uri;
}

/* SQLite follows no link to a file, and what /proc says of one without a name leads nowhere by its words. Other names have no links
 * in them when SQLite sees them. */
static bool is_proc(const char *path)
{
    return !strncmp(path, "/proc/", 6);
}

static int proc_open(const char *path, int flags, int mode)
{
    return open(path, is_proc(path) ? flags & ~O_NOFOLLOW : flags, mode);
}

static int proc_lstat(const char *path, struct stat *st)
{
    return is_proc(path) ? stat(path, st) : lstat(path, st);
}

static pthread_once_t proc_once = PTHREAD_ONCE_INIT;

static void proc_reach(void)
{
    sqlite3_vfs *vfs;

    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* nobody asks, and to count is a fifth of what opening a trace takes */
    vfs = sqlite3_vfs_find(NULL);
    vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)proc_open);
    vfs->xSetSystemCall(vfs, "lstat", (sqlite3_syscall_ptr)proc_lstat);
}

void path_reach(void)
{
    pthread_once(&proc_once, proc_reach);
}
