/* cmd/recordings.h -- this user's running recordings on this machine.
 *
 * Recordings are found by their session directories (session_visit_all); there is no other
 * registry. */
#ifndef DYNTRACE_RECORDINGS_H
#define DYNTRACE_RECORDINGS_H

#include "collector/session.h"
#include "lib/list.h"

struct recording {
    struct session session; /* owned */
    uint32_t pid;           /* pid of the recorded command, or 0 if it is not known yet */
    LIST(uint32_t) pids;    /* owned: pids of the recorded processes */
    char *program;          /* owned: the command line, with blanks between its words */
    uint64_t since_unix_ns;
    uint64_t bytes; /* number of bytes that the trace files take on disk */
};
typedef LIST(struct recording) recording_list;

/* Add the running recordings to LIST, the oldest first. The caller frees LIST. */
void recordings_find(recording_list *list);
void recordings_free(recording_list *list);

#endif
