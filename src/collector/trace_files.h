/* collector/trace_files.h -- the two files that become a trace.
 *
 * Runs in: the collector, and the commands that begin or recover a recording.
 *
 *     recorder_create(path, frames)     an empty trace, and a copy of it for the frames
 *     ...                               the recorder writes to PATH, collector/frame_pages.c to
 *                                       FRAMES
 *     recorder_join(r, path, frames)    one plain file, under PATH */
#ifndef DYNTRACE_TRACE_FILES_H
#define DYNTRACE_TRACE_FILES_H

#include "collector/frame_pages.h"
#include "recorder_sqlite.h"

/* Make the live database PATH (owner-only) with every table, and FRAMES beside it for the pages of
 * `frame`. With FORCE an existing PATH is replaced. Prints what is wrong; 0 or -1. */
int recorder_create(const char *path, const char *frames, bool force);
/* Take away what is at PATH, for a trace that will be there. False: it is no file, or cannot be
 * taken away, which has been reported. */
bool recorder_clear(const char *path);
/* Fill in WINDOW: `first` and `root`, where the pages that we write lie in FRAMES, and how many
 * pages FRAMES has already. FRESH: FRAMES is as recorder_create() made it. False: FRAMES is not a
 * file of ours. */
bool recorder_window(const char *frames, bool fresh, struct frame_window *window);

enum join_how {
    /* what a killed collector had only in its memory is made from the frames: rows for the code and
     * threads that it had no time to name, and totals, unless --min-duration keeps some of them to
     * itself */
    JOIN_RECOVERED = 1,
    /* lookups whose pages were lost are taken from LIVE, as far as readers had been shown them
     * there */
    JOIN_SALVAGED = 2,
    JOIN_INDEXED = 4, /* the indexes of lookups and guard checks are in FRAMES */
    /* totals are made from the frames: some that were written went with a transaction that a full
     * disk ended */
    JOIN_TOTALS = 8,
};

/* Processor time of this process so far, of all its threads. */
int64_t recorder_cpu_ns(void);

struct recorder_end {
    int64_t cpu_ns;    /* processor time: of the collectors before this one; then of all together */
    const char *error; /* static */
    bool full;         /* there was no room */
};

/* Copy the tables of R, whose file is LIVE and which is closed then, into FRAMES, where those
 * that are made of pages are finished, and publish that. HOW is of enum join_how. False:
 * END->error; LIVE stays as it is when that fails. */
bool recorder_join(struct recorder *r, const char *live, const char *frames, unsigned how,
                   struct recorder_end *end);
/* Rename FRAMES to LIVE, and take away what belongs to the old LIVE. False: *ERROR. */
bool recorder_publish(const char *live, const char *frames, const char **error);
/* Move the whole trace PATH to the place that it names, if it names one, and remove the directory
 * that it was in. Nothing is ever replaced there, and until all of it is there it has another name.
 * False: *ERROR; PATH stays. */
bool recorder_move(const char *path, const char **error);
/* Are LIVE and FRAMES the two files of the recording in directory SESSION? Whoever has their names
 * from a session asks before it writes to them. */
bool recorder_is_of(const char *live, const char *frames, const char *session);
/* Is PATH a whole trace? (A kill may come between any two steps of the above.) Then how many
 * FRAMES, of how many PROCESSES. */
bool recorder_finished(const char *path, uint64_t *frames, uint32_t *processes);
/* The session that records PATH on this machine, to be freed; NULL: none does. */
char *recorder_session(const char *path);

#endif
