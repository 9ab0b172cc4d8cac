/* collector/trace_files.h -- makes the two files of a recording, and joins them to a trace.
 *
 * Runs in: the collector, and the commands that begin or recover a recording.
 *
 *     recorder_create(path, frames)     make an empty trace, and a copy of it for the frames
 *     ...                               the recorder writes to PATH, collector/frame_pages.c to
 *                                       FRAMES
 *     recorder_join(r, path, frames)    make one plain file of both, at PATH */
#ifndef DYNTRACE_TRACE_FILES_H
#define DYNTRACE_TRACE_FILES_H

#include "collector/frame_pages.h"
#include "collector/session.h"
#include "recorder_sqlite.h"

/* Create the live database PATH (readable by its owner only) with every table, and FRAMES beside it
 * for the pages of `frame`. With FORCE an existing PATH is replaced. Returns 0, or -1 after
 * printing the error. */
int recorder_create(const char *path, const char *frames, bool force);
/* Delete the file at PATH to make room for a trace. Returns false if it is not a regular file or
 * cannot be deleted, which has been reported. */
bool recorder_clear(const char *path);
/* Fill in WINDOW from FRAMES: `first` and `root`, which are positions of pages in FRAMES, and how
 * many pages FRAMES has. FRESH: FRAMES is as recorder_create() made it. Returns false if FRAMES is
 * not a file of ours. */
bool recorder_window(const char *frames, bool fresh, struct frame_window *window);

enum join_how {
    /* Make from the frames what a killed collector had only in its memory: totals, and rows for
     * code objects and threads that were not named yet. With --min-duration the totals that
     * SQLite has are kept, since short frames are missing. */
    JOIN_RECOVERED = 1,
    /* Copy lookups from LIVE if their pages were lost: those that were shown to readers there. */
    JOIN_SALVAGED = 2,
    JOIN_INDEXED = 4, /* the indexes of lookups and guard checks are in FRAMES */
    /* Make totals from the frames, because a full disk rolled back some that were written. */
    JOIN_TOTALS = 8,
    /* With --keep: lookups, checks and frames that outlasted their page are in LIVE. */
    JOIN_KEPT = 16,
};

/* Return the processor time that all threads of this process have used so far. */
int64_t recorder_cpu_ns(void);

struct recorder_end {
    /* processor time of earlier collectors; recorder_join adds that of this one */
    int64_t cpu_ns;
    const char *error; /* a static text */
    bool full;         /* the disk was full */
};

/* Close R, whose file is LIVE, after copying its tables into FRAMES. The tables made of pages must
 * be finished there. Then publish FRAMES as the trace. HOW: bits of enum join_how. Returns false
 * with END->error; LIVE is unchanged then. */
bool recorder_join(struct recorder *r, const char *live, const char *frames, unsigned how,
                   struct recorder_end *end);
/* Copy the tables of DB's main file into the attached trace, whose pages are finished, and then run
 * THEN. HOW: as of recorder_join. Returns false on error. */
bool recorder_tables(struct sqlite3 *db, const char *then, unsigned how);
/* Make the whole trace PATH of a recording that goes on, in SESSION, and change nothing there. PATH
 * is an empty file. Returns false with END->error. */
bool recorder_snapshot(const struct session *session, const char *path, struct recorder_end *end);
/* Rename FRAMES to LIVE, and delete SQLite's log files of the old LIVE. Returns false with
 * *ERROR. */
bool recorder_publish(const char *live, const char *frames, const char **error);
/* Move the finished trace PATH to the destination in its `meta`, if it has one, and remove the
 * directory that it was in. Never replaces a file there. While the file is being copied, it has
 * another name. Returns false with *ERROR; PATH then stays. */
bool recorder_move(const char *path, const char **error);
/* Are LIVE and FRAMES the two files of the recording in directory SESSION? Ask before writing to
 * files whose names come from a session file. */
bool recorder_is_of(const char *live, const char *frames, const char *session);
/* Is PATH a finished trace? If so, set the number of its FRAMES and PROCESSES. A kill may come
 * between any two steps of joining. */
bool recorder_finished(const char *path, uint64_t *frames, uint32_t *processes);
/* Set the bounds of --keep with which PATH is being recorded, and since when everything is kept
 * there. What PATH does not say stays as it is. */
void recorder_keep(const char *path, uint64_t *keep_ns, uint64_t *keep_bytes, uint64_t *from_ns);
/* Return the directory of the session that records PATH on this machine, to be freed; NULL if there
 * is none. */
char *recorder_session(const char *path);

#endif
