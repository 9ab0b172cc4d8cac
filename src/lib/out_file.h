/* lib/out_file.h -- an output file that is complete or absent.
 *
 * Runs in: the viewer.
 *
 *     struct out_file out;
 *     if (!out_open(&out, path, force)) return 2;
 *     ... fprintf(out.file, ...), or let SQLite write to out.temporary ...
 *     if (ok) ok = out_commit(&out);
 *     out_close(&out);              removes the file if it was not committed
 *
 * The file is written under a temporary name in the same directory and renamed at the end. If a
 * signal ends the program, the unfinished file is removed. Only one file can be open at a time. */
#ifndef DYNTRACE_OUT_FILE_H
#define DYNTRACE_OUT_FILE_H

#include <stdio.h>

#include "lib/list.h"
#include "lib/option.h"

struct out_file {
    FILE *file;      /* owned; stdout for "-" */
    char *path;      /* owned: the final path; NULL for stdout */
    char *temporary; /* owned: the temporary path; NULL after the file was renamed */
    bool force;
};

/* Open PATH for writing, or standard output if PATH is NULL or "-". An existing regular file is
 * replaced if FORCE; other existing files are never replaced. Returns false after reporting an
 * error. */
bool out_open(struct out_file *out, const char *path, bool force);

/* Create an empty file without a name, which is deleted when this process ends. Returns a path by
 * which this process and its children can open it, or NULL after reporting an error. */
const char *out_make_scratch_file(struct arena *arena);

/* Flush standard output. Returns false after reporting an error. */
bool out_flush(void);

/* Rename the file to its final path. Returns false after reporting an error. */
bool out_commit(struct out_file *out);

void out_close(struct out_file *out);

/* Rename file FROM to TO in the same filesystem. Returns 0, or -1 with errno, which is EEXIST if TO
 * exists. */
int out_rename(const char *from, const char *to);

/* Does PATH name a file, rather than standard output? */
bool out_is_named(const char *path);

/* Are PATH and OTHER the same existing file? An output file must not be an input file. */
bool out_is_same_file(const char *path, const char *other);

/* Return the path of file NAME in the folder where this user's histories of typed lines lie. The
 * folder and the file are created if necessary, readable by this user only. Returns NULL if there
 * is no such folder. The caller frees the path. */
char *state_file_path(const char *name);

/* Options of a command that makes a trace. */
extern struct out_given {
    const char *path; /* the value of -o */
    bool force;
} out_given;
extern const struct option out_options[];

#endif
