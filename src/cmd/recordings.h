/* cmd/recordings.h -- the recordings that run on this machine, of this user.
 *
 * A recording is known by its session's directory alone: nothing is registered anywhere. */
#ifndef DYNTRACE_RECORDINGS_H
#define DYNTRACE_RECORDINGS_H

#include "collector/session.h"
#include "lib/list.h"

struct recording {
    struct session session; /* owned */
    uint32_t pid;           /* of the command; 0: not known yet */
    LIST(uint32_t) pids;    /* owned: of its processes */
    char *program;          /* owned: the command line, as a person types it */
    uint64_t since_unix_ns;
    uint64_t bytes; /* of its files */
};
typedef LIST(struct recording) recording_list;

/* List the running recordings, the oldest first. The caller frees LIST. */
void recordings_find(recording_list *list);
void recordings_free(recording_list *list);

#endif
