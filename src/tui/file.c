/* tui/file.c -- the file that a trace is in, while one looks at it. See tui/file.h.
 *
 * Runs in: the viewer. */
#include "tui/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/say.h"
#include "trace/db.h"

bool file_open(struct trace_file *file, const struct db *db)
{
    struct stat st;

    file->path = realpath(db_path(db), NULL);
    if (!file->path || stat(file->path, &st) != 0) {
        say_error("%s: %s", db_path(db), strerror(errno));
        return false;
    }
    file->device = st.st_dev;
    file->inode = st.st_ino;
    return true;
}

void file_close(struct trace_file *file)
{
    db_close(file->fresh);
    free(file->path);
}

const char *file_look(struct trace_file *file)
{
    struct stat st;

    if (file->gone || file->replaced)
        return NULL;
    file->gone = stat(file->path, &st) != 0;
    file->replaced = !file->gone && (st.st_dev != file->device || st.st_ino != file->inode);
    return file->gone       ? "the trace was deleted; what it had can still be read here"
           : file->replaced ? "the trace was replaced by another file; R looks into that"
                            : NULL;
}

struct db *file_reopen(struct trace_file *file)
{
    struct stat st;
    struct db *fresh = db_open(file->path);

    if (!fresh || stat(file->path, &st) != 0) {
        db_close(fresh);
        return NULL;
    }
    db_close(file->fresh);
    file->fresh = fresh;
    file->device = st.st_dev;
    file->inode = st.st_ino;
    file->gone = file->replaced = false;
    return fresh;
}

bool file_changed(struct trace_file *file, struct db *db)
{
    int64_t version = db_integer(db, 0, "PRAGMA data_version");
    bool changed = version != file->version || db != file->seen;

    file->version = version;
    file->seen = db;
    return changed;
}
