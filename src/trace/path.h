/* trace/path.h -- how SQLite reaches the file of a trace: for trace/db.c.
 *
 * A trace may lie on a read-only filesystem, and its file may have no name (lib/out_file.h). */
#ifndef DYNTRACE_PATH_H
#define DYNTRACE_PATH_H

#include <stdbool.h>

struct path_facts {
    /* the file can be locked: false on a network filesystem without a lock server. Files there are
     * read and written without locks, because only finished traces, which nobody changes, are kept
     * there */
    bool locks;
    /* the header asks for a log, but there is none: no recorder uses the file. SQLite must not
     * create a log: that fails in a read-only directory, and litters elsewhere */
    bool idle;
    bool plain; /* it has neither log nor journal */
};
struct path_facts path_look(const char *absolute);

/* "file:/abs/path?mode=ro", with %NN where a byte would mean something in a URI; to WRITE it,
 * "?mode=rw"; and the parameters for FACTS. The caller frees it. */
char *path_uri(const char *absolute, struct path_facts facts, bool write);

/* Configure SQLite to open db_absolute's paths and not to count memory, which RLIMIT_DATA limits
 * (lib/bounds.h). */
void path_reach(void);

#endif
