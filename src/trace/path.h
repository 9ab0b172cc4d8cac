/* trace/path.h -- makes the URI by which SQLite opens the file of a trace, for trace/db.c.
 *
 * A trace may lie on a read-only filesystem, and its file may have no name (lib/out_file.h). */
#ifndef DYNTRACE_PATH_H
#define DYNTRACE_PATH_H

#include <stdbool.h>

struct path_facts {
    /* The file can be locked. If not, it is on a network filesystem without a lock server. It is
     * then used without locks: only finished traces, which nobody changes, are kept there. */
    bool locks;
    /* The file's header asks for a write-ahead log, but there is none, so no recorder uses the
     * file. SQLite must not create a log: in a read-only directory that would fail, in another
     * directory the log would stay. */
    bool idle;
    bool plain; /* the database has no write-ahead log and no journal */
};
struct path_facts path_read_facts(const char *absolute);

/* Return the URI by which SQLite opens the file ABSOLUTE: "file:/abs/path?mode=ro", or "?mode=rw"
 * if WRITE, and the parameters that FACTS require. Characters that mean something in a URI are
 * written as %NN. The caller frees the URI. */
char *path_make_uri(const char *absolute, struct path_facts facts, bool write);

/* Configure SQLite to open the paths that db_make_absolute_path returns, and not to count memory,
 * which RLIMIT_DATA limits (lib/bounds.h). */
void path_configure_sqlite(void);

#endif
