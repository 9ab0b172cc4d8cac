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
    /* it has a log in its header and none beside it: no recorder uses it. SQLite must not make one,
     * which in a directory that we cannot write to would fail and elsewhere would litter */
    bool idle;
    bool plain; /* it has neither log nor journal */
};
struct path_facts path_look(const char *absolute);

/* "file:/abs/path?mode=ro", with %NN where a byte would mean something in a URI; to WRITE it,
 * "?mode=rw"; and what FACTS ask for. The caller frees it. */
char *path_uri(const char *absolute, struct path_facts facts, bool write);

/* SQLite can open what db_absolute says, and counts no memory: RLIMIT_DATA holds it (lib/bounds.h).
 * */
void path_reach(void);

#endif
