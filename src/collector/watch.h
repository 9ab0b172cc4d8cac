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

/* Find new processes by their files, and Pythons that cannot join the session. */
void watch_find_new(struct watch *w);
/* Find the processes that share the file of T, because they were forked from it. */
void watch_find_nested(struct watch *w, struct traced *t);
/* Find the processes of a recording whose collector was killed. The oldest come first, so that a
 * parent is known before its children. */
void watch_add_processes_of_killed_recording(struct watch *w);

/* At the end of the recording, record a loss for process files that could not be opened. */
void watch_record_unopened(struct watch *w);

/* Call traced_read_rings for process T. If its file is cut short, record a loss. */
void watch_drain_process(struct traced *t);
/* Take the last words and facts of process T, and close its decoders. */
void watch_finish_process(struct traced *t);
/* Take the last words of process T, close its decoders, and write when it ended: at END_NS, or at
 * its last event if that is later. */
void watch_record_end(struct traced *t, uint64_t end_ns);

/* After a commit, mark the files of finished processes (traced_mark_finished). Free the processes
 * that nobody needs any more: their memory, shared memory and files. */
void watch_free_ended_processes(struct watch *w);

/* Write the exit status of process T. The kernel tells it to a process that holds a pidfd (Linux
 * 6.15), but only after T's parent has reaped T, which may be a while later. */
void watch_record_exit_status(struct traced *t);
/* Try again to get the exit status of processes that their parents had not reaped. Returns true if
 * some are still missing. */
bool watch_retry_exit_statuses(struct collector *c);

#endif
