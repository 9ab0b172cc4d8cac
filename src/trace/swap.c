/* trace/swap.c -- lets one connection read trace after trace. See trace/swap.h. */
#include "trace/swap.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct swap {
    sqlite3_file base;
    /* owned: the trace's file, opened by SQLite's own VFS; closed between two traces */
    sqlite3_file *file;
    /* owned: the path of the file; NULL for the first file, because SQLite owns its path */
    sqlite3_filename name;
    bool locks; /* the file can be locked; see struct path_facts */
};

static sqlite3_vfs *own; /* SQLite's default VFS, which reads and writes files */

static sqlite3_file *file_of_default_vfs(sqlite3_file *file)
{
    return ((struct swap *)file)->file;
}

static bool is_file_open(sqlite3_file *file)
{
    return file_of_default_vfs(file)->pMethods;
}

static void close_inner_file(struct swap *swap)
{
    if (swap->file->pMethods)
        swap->file->pMethods->xClose(swap->file);
    swap->file->pMethods = NULL;
    sqlite3_free_filename(swap->name);
    swap->name = NULL;
}

/* ---- methods of an open file: SQLite's own, but nothing can be written ---- */

static int swap_close(sqlite3_file *file)
{
    close_inner_file((struct swap *)file);
    free(file_of_default_vfs(file));
    return SQLITE_OK;
}

static int swap_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 at)
{
    return is_file_open(file) ? file_of_default_vfs(file)->pMethods->xRead(
                                    file_of_default_vfs(file), to, bytes, at)
                              : SQLITE_IOERR;
}

static int swap_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    return SQLITE_READONLY;
}

static int swap_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return SQLITE_READONLY;
}

static int swap_sync(sqlite3_file *file, int flags)
{
    return SQLITE_OK;
}

static int swap_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return is_file_open(file)
               ? file_of_default_vfs(file)->pMethods->xFileSize(file_of_default_vfs(file), size)
               : SQLITE_IOERR;
}

static int swap_lock(sqlite3_file *file, int lock)
{
    if (!((struct swap *)file)->locks)
        return SQLITE_OK;
    return is_file_open(file)
               ? file_of_default_vfs(file)->pMethods->xLock(file_of_default_vfs(file), lock)
               : SQLITE_IOERR;
}

static int swap_unlock(sqlite3_file *file, int lock)
{
    return is_file_open(file) && ((struct swap *)file)->locks
               ? file_of_default_vfs(file)->pMethods->xUnlock(file_of_default_vfs(file), lock)
               : SQLITE_OK;
}

static int swap_check_reserved_lock(sqlite3_file *file, int *reserved)
{
    return is_file_open(file) ? file_of_default_vfs(file)->pMethods->xCheckReservedLock(
                                    file_of_default_vfs(file), reserved)
                              : SQLITE_IOERR;
}

static int swap_file_control(sqlite3_file *file, int what, void *argument)
{
    return is_file_open(file) ? file_of_default_vfs(file)->pMethods->xFileControl(
                                    file_of_default_vfs(file), what, argument)
                              : SQLITE_NOTFOUND;
}

static int swap_sector_size(sqlite3_file *file)
{
    return is_file_open(file)
               ? file_of_default_vfs(file)->pMethods->xSectorSize(file_of_default_vfs(file))
               : 4096;
}

static int swap_device_characteristics(sqlite3_file *file)
{
    return is_file_open(file) ? file_of_default_vfs(file)->pMethods->xDeviceCharacteristics(
                                    file_of_default_vfs(file))
                              : 0;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = swap_close,
    .xRead = swap_read,
    .xWrite = swap_write,
    .xTruncate = swap_truncate,
    .xSync = swap_sync,
    .xFileSize = swap_file_size,
    .xLock = swap_lock,
    .xUnlock = swap_unlock,
    .xCheckReservedLock = swap_check_reserved_lock,
    .xFileControl = swap_file_control,
    .xSectorSize = swap_sector_size,
    .xDeviceCharacteristics = swap_device_characteristics,
};

/* ---- methods of the VFS -------------------------------------------------- */

/* Open NAME. FILE has room for a struct swap or for a file of SQLite's own VFS, whichever is
 * larger. */
static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                    int *made)
{
    struct swap *swap = (struct swap *)file;
    int status;

    /* NAME is not the database but a temporary file or a journal, so SQLite's own VFS opens it */
    if (!(flags & SQLITE_OPEN_MAIN_DB) || !name)
        return own->xOpen(own, name, file, flags, made);
    *swap = (struct swap){.file = calloc(1, (size_t)own->szOsFile),
                          .locks = !sqlite3_uri_boolean(name, "nolock", 0)};
    if (!swap->file)
        return SQLITE_NOMEM;
    status = own->xOpen(own, name, swap->file, flags, made);
    if (status == SQLITE_OK)
        file->pMethods = &methods;
    else
        free(swap->file);
    return status;
}

/* Answer that the file NAME does not exist, so that SQLite looks for no journal. The trace had no
 * journal when it was opened. By now the name may belong to another file. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *found)
{
    *found = 0;
    return SQLITE_OK;
}

static sqlite3_vfs swap_kind;
static pthread_once_t swap_once = PTHREAD_ONCE_INIT;

static void register_vfs(void)
{
    own = sqlite3_vfs_find(NULL);
    /* take all other methods from SQLite's own VFS; they use only the member pAppData of the struct
     * they get, so they work with a copy */
    swap_kind = *own;
    swap_kind.zName = "dyntrace";
    swap_kind.pNext = NULL;
    swap_kind.szOsFile =
        own->szOsFile > (int)sizeof(struct swap) ? own->szOsFile : (int)sizeof(struct swap);
    swap_kind.xOpen = vfs_open;
    swap_kind.xAccess = vfs_access;
    sqlite3_vfs_register(&swap_kind, 0);
}

const char *swap_vfs_name(void)
{
    pthread_once(&swap_once, register_vfs);
    return swap_kind.zName;
}

/* ---- closing the file of a connection and opening another ---------------- */

static struct swap *swap_of_connection(sqlite3 *handle)
{
    sqlite3_file *file = NULL;

    sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return file && file->pMethods == &methods ? (struct swap *)file : NULL;
}

void swap_close_file(sqlite3 *handle)
{
    struct swap *swap = swap_of_connection(handle);

    sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESET_CACHE, NULL);
    if (swap)
        close_inner_file(swap);
}

bool swap_open_other_file(sqlite3 *handle, const char *path, bool locks)
{
    struct swap *swap = swap_of_connection(handle);

    if (!swap || !(swap->name = sqlite3_create_filename(path, "", "", 0, NULL)))
        return false;
    swap->locks = locks;
    return own->xOpen(own, swap->name, swap->file, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB,
                      NULL) == SQLITE_OK;
}
