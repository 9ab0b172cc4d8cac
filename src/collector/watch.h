/* collector/watch.h -- the processes of a recording: how they come, are read, and go.
 *
 * Runs in: the collector. Touching what is no longer in a mapped file is SIGBUS: a process's file
 * that is cut short ends its recording, not the collector. */
#ifndef DYNTRACE_WATCH_H
#define DYNTRACE_WATCH_H

#include "collector/traced.h"

struct watch_file {
    uint64_t born; /* its header's born_clock */
    enum session_place place;
    char name[SESSION_NAME];
};

struct watch {
    struct collector *c; /* borrowed */
    int files, spilled;  /* inotify, and its watch of the session's second directory */
    int absent;          /* a socket, -1 = none */
    uint32_t absent_told;
    LIST(struct watch_file) pending; /* owned: whose header is not whole yet */
};

/* Look at the directories of C's session from now on, and hear of those who cannot see it. False:
 * errno. */
bool watch_open(struct watch *w, struct collector *c);

/* Processes that are new: their files, and Pythons that could not join. */
void watch_new(struct watch *w);
/* Those forked into the file of T. */
void watch_nested(struct watch *w, struct traced *t);
/* Those whose files a killed collector left, oldest first, so that a fork's parent is there before
 * it. */
void watch_left(struct watch *w);

/* The recording ends: what processes wrote into files that could not be opened is lost. */
void watch_unopened(struct watch *w);

/* Take what T has written, as traced_drain. */
void watch_drain(struct traced *t);
/* T writes no more: take the rest, and close its decoders. */
void watch_finish(struct traced *t);
/* The same, and it has ended at END_NS, or later if its last event was. */
void watch_ended(struct traced *t, uint64_t end_ns);

/* What was taken is in the trace. */
void watch_committed(struct collector *c);

/* How T ended: the kernel gives its status to anybody who watched (Linux 6.15), once its parent has
 * reaped it, which may be a while later. */
void watch_status(struct traced *t);
/* Ask again for those whose parents were slow. True: some are still missing. */
bool watch_statuses(struct collector *c);

#endif
