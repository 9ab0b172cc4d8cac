/* collector/trace_files.h -- makes the two files of a recording, and joins them to a trace.
 *
 * Runs in: the collector, and the commands that begin or recover a recording.
 *
 *     recorder_create(path, frames)     make an empty trace, and a copy of it for the frames
 *     ...                               the recorder writes to PATH, collector/frame_pages.c to
 *                                       FRAMES
 *     recorder_join_files(r, path, frames)    make one plain file of both, at PATH */
#ifndef DYNTRACE_TRACE_FILES_H
#define DYNTRACE_TRACE_FILES_H

#include "collector/frame_pages.h"
#include "collector/session.h"
#include "recorder_sqlite.h"

/* Create the live database PATH (readable by its owner only) with every table, and the file FRAMES
 * for the pages of `frame`. With FORCE an existing PATH is replaced. Returns 0, or -1 after
 * printing the error. */
int recorder_create(const char *path, const char *frames, bool force);
/* Delete the file at PATH to make room for a trace. Returns false, after reporting an error, if it
 * cannot be deleted or is not a regular file. */
bool recorder_delete_old_file(const char *path);
/* Fill in WINDOW for the file FRAMES: `first` and `root`, where pages are, and how many pages there
 * are. FRESH: the file is as recorder_create() has made it. Returns false if it is not a file of
 * ours. */
bool recorder_open_window(const char *frames, bool fresh, struct frame_window *window);

enum join_how {
    /* Make again what a killed collector had only in its memory: totals, and rows for code objects
     * and threads whose facts were not read. With --min-duration the totals that SQLite has are
     * kept, because short frames have no rows. */
    JOIN_RECOVERED = 1,
    /* The pages of lookups are lost: copy the lookups that LIVE has for readers of the running
     * recording. */
    JOIN_SALVAGED = 2,
    JOIN_INDEXED = 4, /* FRAMES already has the indexes of lookups and guard checks */
    /* Make the totals again from the frames. SQLite reported an error, such as a full disk, and may
     * have undone a transaction with some of the totals. */
    JOIN_TOTALS = 8,
    /* With --keep: copy from LIVE the lookups, the checks, and the frames of `long_frame`. */
    JOIN_KEPT = 16,
};

/* Return the processor time that all threads of this process have used so far. */
int64_t recorder_cpu_ns(void);

struct recorder_end {
    /* processor time of earlier collectors; recorder_join_files adds its own */
    int64_t cpu_ns;
    const char *error; /* a static text */
    bool full;         /* the disk was full */
};

/* Copy the tables of LIVE, whose recorder is R, into FRAMES, in which the pages of frames are
 * finished. Close R. Then make FRAMES the trace, under the name LIVE. HOW: bits of enum join_how.
 * Returns false with END->error; LIVE is then unchanged. */
bool recorder_join_files(struct recorder *r, const char *live, const char *frames, unsigned how,
                         struct recorder_end *end);
/* Copy the tables of DB's main file into the attached trace, whose pages are finished. Then run the
 * SQL text THEN. HOW: bits of enum join_how. Returns false on error. */
bool recorder_copy_tables(struct sqlite3 *db, const char *then, unsigned how);
/* Write a complete trace of the running recording of SESSION to PATH, an empty file. The recording
 * goes on, and its files are not changed. Returns false with END->error. */
bool recorder_snapshot(const struct session *session, const char *path, struct recorder_end *end);
/* Rename FRAMES to LIVE, and delete SQLite's log files of the old LIVE. Returns false with
 * *ERROR. */
bool recorder_rename_joined_file(const char *live, const char *frames, const char **error);
/* If the finished trace PATH has a destination in its `meta`, move the trace there, and remove the
 * directory in which it was. An existing file is never replaced. The trace gets its name only when
 * it is completely copied. Returns false with *ERROR; PATH then stays. */
bool recorder_move(const char *path, const char **error);
/* Are LIVE and FRAMES the two files of the recording whose session is in directory SESSION? Call
 * this before writing to files whose names come from a session's file. */
bool recorder_are_files_of_session(const char *live, const char *frames, const char *session);
/* Is PATH a finished trace? If so, set *FRAMES and *PROCESSES to how many it has. A recorder may
 * have been killed between any two steps of joining the files. */
bool recorder_is_trace_finished(const char *path, uint64_t *frames, uint32_t *processes);
/* Read from the trace PATH, which is being recorded, the bounds of --keep and the time since which
 * all events are kept. Changes nothing if the trace does not have them. */
void recorder_read_keep_bounds(const char *path, uint64_t *keep_ns, uint64_t *keep_bytes,
                               uint64_t *from_ns);
/* Return the directory of the session that records PATH on this machine; the caller frees it. NULL
 * if there is none. */
char *recorder_read_session_path(const char *path);

#endif
