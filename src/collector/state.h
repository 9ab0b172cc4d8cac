/* collector/state.h -- what the next collector needs after this one was killed.
 *
 * The collector may be killed at any instruction, and another one carries on (collector/launch.c).
 * All that the next one needs is in the session's directory:
 *
 *     a process's file     rings and facts. Words below a ring's tail may be overwritten; all
 *                          others are still there. Facts are never deleted: the next collector
 *                          reads them again, and finds the row id that each fact was given
 *     state                this file: memory that no other living process maps. See below
 *     trace.db             rows that SQLite has committed
 *     trace.db-frames      pages that were written (collector/frame_pages.c, section 4)
 *
 * `state` is struct state_file, then one struct decode_place for each ring. It holds three kinds of
 * data, and each kind stays correct in its own way:
 *
 *     next row ids         header.next_*. They only grow, and an id is taken before it is used. A
 *                          kill in between wastes one id
 *     next ids of words    header.next: ids of rows that come from words. They are taken as rows
 *                          are made, before a commit. A decoder's commit copies them into its place
 *                          (decode_at.next). After a kill, collector_state_restore_ids takes back
 *                          the ids after the last commit. Their rows are cut off, since the
 *                          words will be decoded again. header.sure is for losses that come from no
 *                          words: SQLite has committed the rows with smaller ids
 *     places, pages        written at positions that the last commit implies. What lies beyond is
 *                          written again (collector/decode.h)
 *
 * So the collector's own memory is a cache: stacks of open frames follow from the parents in the
 * rows, totals from the rows, ids of code objects and threads from the facts. Only one thing is
 * lost with that memory: totals since SQLite's last commit of frames that --min-duration leaves
 * out. */
#ifndef DYNTRACE_COLLECTOR_STATE_H
#define DYNTRACE_COLLECTOR_STATE_H

#include "collector/decode.h"
#include "collector/lookup_pages.h"
#include "collector/session.h"

enum { STATE_BLOCK = 16 /* number of places that are mapped together */ };
#define STATE_MAGIC "DYNSTAT"

struct state_header {
    char magic[8];
    /* places: number of places that have been used so far */
    uint32_t format, places;
    uint32_t next_process, next_thread, next_code; /* the next row id of each table */
    uint32_t next_entry, next_guard, next_compile, next_signature, next_graph, next_note;
    uint32_t command; /* pid of the command; 0 if it has not started */
    /* next: the next ids of rows that come from words. sure: no id below this is ever given again,
     * even if no decoder has committed it. */
    uint64_t next[IDS_OF_WORDS], sure[IDS_OF_WORDS];
    uint64_t last_ns; /* time of the latest event that was taken from a ring */
    /* `dyntrace snapshot` adds 1 to `asked`. The collector then writes all events so far to the two
     * files, and sets `ready` to the same number. It changes nothing until `taken` has this number,
     * too, or a time limit is over. Before its next change it sets `over` to this number: a reader
     * that then finds `over` equal to `ready` has read too late, and asks again. */
    _Atomic uint32_t snapshot_asked, snapshot_ready, snapshot_taken, snapshot_over;
    /* the snapshot failed, because a reader kept the collector from committing */
    uint32_t snapshot_held;
    uint64_t snapshot_ns; /* time of the latest event when `ready` was set */
    /* processor time of all collectors of this recording so far */
    int64_t cpu_ns;
    /* start times, from /proc/PID/stat, of the command and of process `parent` */
    uint64_t command_started, parent_started;
    /* pid of the `run` or `collect` that replaces a dead collector */
    uint32_t parent;
    /* the command's POSIX session (getsid); a process that has left it is a daemon */
    int32_t session_id;
    /* an interpreter that could not be recorded for want of an extension; or "" */
    char unsupported[512];
    /* a bit for each setting of --set: a process has used it; a process could not use it */
    uint64_t settings_used, settings_refused;
    char setting_refusals[1024]; /* why settings could not be used: lines "NUMBER WHY" */
};

struct state_file {
    struct state_header header;
    struct frame_window window; /* the newest pages of frames, which are not in the file yet */
    struct lookup_window lookups;
};

struct collector_state {
    struct state_file *file;            /* shared */
    LIST(struct decode_place *) blocks; /* shared */
    LIST(uint32_t) unused;              /* owned: numbers of the places that are free */
    bool resumed;
    int fd; /* owned */
};

/* Make the state file, or, with RESUME, open the file that a killed collector left. Returns 0, or
 * -1 with errno, which is EINVAL if the content makes no sense. */
int collector_state_open(struct collector_state *s, const struct session *session, bool resume);
/* Map the state file of a collector that may be alive, to ask it for a snapshot. Returns NULL if
 * the content makes no sense. The caller unmaps it. */
struct state_file *collector_state_map(const struct session *session);
/* Return the header of the state file; zeros if the content makes no sense. The file is read, not
 * mapped, because another process could cut a mapped file short (SIGBUS). */
struct state_header collector_state_read_header(const struct session *session);
/* Allocate the memory of a whole new state file, which takes a millisecond or two. Returns false
 * with errno. A resumed file already has its memory. */
bool collector_state_reserve(const struct collector_state *s);
/* Return the place of ring RING of process file FILE: the one that a killed collector used for it,
 * or a free one. Returns NULL without room. */
struct decode_place *collector_state_find_place(struct collector_state *s, const char *file,
                                                uint32_t ring);
/* Make the places of process file FILE free for other rings. All rows from these rings must have
 * been committed. */
void collector_state_free_places(struct collector_state *s, const char *file);
/* After a kill, set header.next back to the last committed ids. Rows with later ids are made
 * again. */
void collector_state_restore_ids(struct collector_state *s);
/* Does ADDRESS lie in the mapped state file? */
bool collector_state_contains_address(const struct collector_state *s, const void *address);
void collector_state_close(struct collector_state *s);

#endif
