/* lib/out_file.h -- an output file that is complete or absent.
 *
 * Runs in: the viewer.
 *
 *     struct out_file out;
 *     if (!out_open(&out, path, force)) return 2;
 *     ... fprintf(out.file, ...), or let SQLite write to out.temporary ...
 *     if (ok) ok = out_commit(&out);
 *     out_close(&out);              removes what was not committed
 *
 * It is written under a temporary name in the same directory and renamed at the end. A signal that
 * ends the program removes the unfinished file. Only one at a time. */
#ifndef DYNTRACE_OUT_FILE_H
#define DYNTRACE_OUT_FILE_H

#include <stdio.h>

#include "lib/list.h"
#include "lib/option.h"

struct out_file {
    FILE *file;      /* owned; stdout for "-" */
    char *path;      /* owned: the final path; NULL for stdout */
    char *temporary; /* owned: the temporary path; NULL once renamed */
    bool force;
};

/* PATH NULL or "-" is standard output. False: the error has been reported. An existing file is
 * replaced only
 * with FORCE, and never when it is not a regular file. */
bool out_open(struct out_file *out, const char *path, bool force);

/* Create an empty file without a name, which vanishes with this process. Returns a path to it that
 * works in this process and its children. NULL: the error has been reported. */
const char *out_scratch(struct arena *arena);

/* Flush standard output. False on error, which has been reported. */
bool out_flush(void);

/* Rename the file to its final path. False on error, which has been reported. */
bool out_commit(struct out_file *out);

void out_close(struct out_file *out);

/* Does PATH name a file (not standard output)? */
bool out_is_named(const char *path);

/* Is PATH an existing file and the same as OTHER? An output must not be an input. */
bool out_is(const char *path, const char *other);

/* Path of the file NAME in this user's folder of histories, which is created for the user alone;
 * NULL: no such folder. The caller frees it. */
char *state_file(const char *name);

/* Operands and options of a command that makes a trace. */
extern struct out_given {
    const char *path; /* -o */
    bool force;
} out_given;
extern const struct option out_options[];

#endif
