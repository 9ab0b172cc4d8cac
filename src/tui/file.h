/* tui/file.h -- the file that a trace is in, while one looks at it: it may be deleted, replaced or written to.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_TUI_FILE_H
#define DYNTRACE_TUI_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct db;

struct trace_file {
    char *path;          /* owned: absolute */
    dev_t device;
    ino_t inode;
    bool gone, replaced; /* there is none of that name any more, or another */
    struct db *fresh;    /* owned: of the file that took its place, or NULL */
    int64_t version;     /* of what DB SEEN had */
    const struct db *seen; /* borrowed */
};

/* The file of DB. False: it was said why not. */
bool file_open(struct trace_file *file, const struct db *db);
void file_close(struct trace_file *file);

/* Words, once, when it was deleted or replaced; else NULL. */
const char *file_look(struct trace_file *file);

/* The file that has its name now becomes it. NULL: it cannot be read, and all is as it was. */
struct db *file_reopen(struct trace_file *file);

/* DB, of this file, has other rows than when this was asked last. */
bool file_changed(struct trace_file *file, struct db *db);

#endif
