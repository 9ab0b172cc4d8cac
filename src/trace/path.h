/* trace/path.h -- how SQLite reaches the file of a trace: for trace/db.c.
 *
 * A trace may be read where nothing can be written, and its file may have no name (lib/out_file.h).
 * */
#ifndef DYNTRACE_PATH_H
#define DYNTRACE_PATH_H

#include <stdbool.h>

struct path_facts {
    /* it can be locked: not on a network file system without a lock server. Then it is read, and
     * one that we make is written, without, for whole traces are there, which nobody changes */
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
