/* collector/watch.h -- finds the processes of a recording, reads them, and notices their end.
 *
 * Runs in: the collector. If a program cuts its process file short, reading the mapped file raises
 * SIGBUS. Then the recording of that process ends, but the collector goes on. */
#ifndef DYNTRACE_WATCH_H
#define DYNTRACE_WATCH_H

#include "collector/traced.h"

struct watch_file {
    uint64_t born; /* time of birth in the file's header (born_clock) */
    enum session_place place;
    char name[SESSION_NAME];
};

struct watch {
    struct collector *c; /* borrowed */
    /* files: inotify descriptor; spilled: its watch of the session's second directory */
    int files, spilled;
    /* socket on which Pythons report that they cannot join the session; -1 if there is none */
    int absent;
    uint32_t absent_told;
    LIST(struct watch_file) pending; /* owned: process files whose header is not complete yet */
};

/* Start to watch the directories of C's session, and to listen for Pythons that cannot open them.
 * Returns false with errno. */
bool watch_open(struct watch *w, struct collector *c);

/* Find new processes by their files, and Pythons that could not join. */
void watch_new(struct watch *w);
/* Find the processes that were forked into the file of T. */
void watch_nested(struct watch *w, struct traced *t);
/* Find the processes whose files a killed collector left. The oldest come first, so that the parent
 * of a fork is known before its child. */
void watch_left(struct watch *w);

/* At the end of the recording, record a loss for the process files that could not be opened. */
void watch_unopened(struct watch *w);

/* Call traced_drain for process T. If its file is cut short, record a loss. */
void watch_drain(struct traced *t);
/* Take the last words and facts of process T, and close its decoders. */
void watch_finish(struct traced *t);
/* Call watch_finish for T and write when it ended: at END_NS, or at its last event if that is
 * later. */
void watch_ended(struct traced *t, uint64_t end_ns);

/* Mark finished process files after a commit (traced_committed). */
void watch_committed(struct collector *c);

/* Write how T ended. The kernel tells the exit status to any process that holds a pidfd (Linux
 * 6.15), once T's parent has reaped T, which may be a while later. */
void watch_status(struct traced *t);
/* Try again for processes whose parents had not reaped them. Returns true if some are still
 * missing. */
bool watch_statuses(struct collector *c);

#endif
