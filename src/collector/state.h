/* collector/state.h -- what a collector must not forget when it is killed.
 *
 * The collector may be killed at any instruction, and another carries on (collector/launch.c). All
 * that the next one needs is in the session's directory:
 *
 *     a process's file     rings and facts. The words below a ring's tail are forgotten, all others
 *                          are still there. Facts are never forgotten: each is read again, and has
 *                          the row id in it that it was given
 *     state                this file: mapped memory, shared with nobody who lives. See below
 *     trace.db             rows that SQLite has committed
 *     trace.db-frames      pages that were written (collector/frame_pages.c, section 4)
 *
 * `state` is struct state_file, then the decoders' places (struct decode_place, one for each ring).
 * Three kinds of data are in it, and each has its own way to stay right:
 *
 *     ids to give next     header.next_*. They only grow, and an id is taken before it is used. A
 *                          kill in between wastes one
 *     ids of words' rows   header.next: taken as rows are made, so they run ahead. A decoder's
 *                          commit copies them into its place (decode_at.next). After a kill each id
 *                          that no commit has covered is taken back, and its row is cut off
 *                          (collector_state_recall), since its words are decoded again. header.sure
 *                          is where losses begin that come from no words: SQLite has all below
 *     places, pages        written at positions that the last commit implies; what is beyond it is
 *                          written again (collector/decode.h)
 *
 * So the collector's own memory is a cache: stacks of open frames follow from the rows' parents,
 * totals from the rows, the ids of code objects and threads from the facts. Nothing is in it alone,
 * but the totals of frames that --min-duration leaves out since SQLite's last commit. */
#ifndef DYNTRACE_COLLECTOR_STATE_H
#define DYNTRACE_COLLECTOR_STATE_H

#include "collector/decode.h"
#include "collector/lookup_pages.h"
#include "collector/session.h"

enum { STATE_BLOCK = 16 /* places are mapped so many at a time */ };
#define STATE_MAGIC "DYNSTAT"

struct state_header {
    char magic[8];
    uint32_t format, places;                       /* places given so far */
    uint32_t next_process, next_thread, next_code; /* row ids: the next to give */
    uint32_t next_entry, next_guard, next_compile, next_signature, next_graph, next_note;
    uint32_t command; /* pid of the command, 0: not begun */
    /* ids, and those that no decoder will give again whatever it committed */
    uint64_t next[IDS_OF_WORDS], sure[IDS_OF_WORDS];
    uint64_t last_ns;                         /* the latest event taken */
    int64_t cpu_ns;                           /* processor time of all collectors of it so far */
    uint64_t command_started, parent_started; /* /proc/PID/stat's start times */
    /* pid of the `run` or `collect` that replaces a dead collector */
    uint32_t parent;
    int32_t session_id; /* its session: who has left it is a daemon */
    /* what an interpreter without our extension said of itself */
    char unsupported[512];
    /* bits by number: settings of --set that a process has used, and that one could not use */
    uint64_t settings_used, settings_refused;
    char setting_refusals[1024]; /* of the latter: lines "NUMBER WHY" */
};

struct state_file {
    struct state_header header;
    struct frame_window window; /* pages not yet in the trace */
    struct lookup_window lookups;
};

struct collector_state {
    struct state_file *file;            /* shared */
    LIST(struct decode_place *) blocks; /* shared */
    int fd;                             /* owned */
};

/* Make the file, or with RESUME take what is there. 0, or -1 with errno: EINVAL where what is there
 * makes no sense. */
int collector_state_open(struct collector_state *s, const struct session *session, bool resume);
/* The header of what is there, zeros where it makes no sense. Read, for to touch what somebody just
 * cuts short in memory is SIGBUS. */
struct state_header collector_state_look(const struct session *session);
/* Memory for all of a new one, which takes a millisecond or two. False with errno: what was there
 * before has it. */
bool collector_state_reserve(const struct collector_state *s);
/* The place of ring RING of process file FILE: the old one, or a new one. NULL: no room. */
struct decode_place *collector_state_place(struct collector_state *s, const char *file,
                                           uint32_t ring);
/* The ids to go on with after a kill: what was not committed is said again. */
void collector_state_recall(struct collector_state *s);
/* Does ADDRESS lie in the file? */
bool collector_state_holds(const struct collector_state *s, const void *address);
void collector_state_close(struct collector_state *s);

#endif
