/* collector/decode.h -- words of one ring become rows of `frame`.
 *
 * The decoder keeps its place in shared memory (struct decode_place), so that the next collector
 * can carry on after a kill at any instruction:
 *
 *     place->at[which]   the state before the words being decoded now
 *     place->rows        the page being filled; rows below at.rows are certain
 *
 * Decoding only appends rows at positions that at[which] implies and sets ends by frame id. Doing
 * it twice gives the same rows, so a commit is one store: `which`. Rows of other tables get ids
 * that are committed with it. The stack of open frames is private, a copy of what the rows' parent
 * ids say. */
#ifndef DYNTRACE_DECODE_H
#define DYNTRACE_DECODE_H

#include "collector/counts.h"
#include "collector/frame_pages.h"
#include "facts.h"

enum { DECODE_DEPTH_MAX = 16 << 20, DECODE_SEARCH_MAX = 4096, DECODE_CHECKS_MAX = 512 };
enum id_of_words { NEXT_LOOKUP, NEXT_CHECK, NEXT_LOSS, IDS_OF_WORDS };
#define DECODE_NO_PAGE UINT32_MAX
/* the ordinal of a frame whose ENTER an earlier collector took */
#define DECODE_ANY_ORDINAL UINT32_MAX

struct decode_at {
    uint64_t tail;  /* number of words of the ring that have been taken */
    uint64_t clock; /* clock of the last event */
    /* id of the innermost open frame, or 0 if none is open */
    uint64_t current;
    /* number of this thread's ENTERs, which is the next frame's ordinal */
    uint32_t entered;
    uint32_t thread_id;                       /* 0 before the first CONTROL_THREAD */
    uint32_t page, rows;                      /* the page being filled, or DECODE_NO_PAGE */
    uint32_t used;                            /* number of bytes of that page that its rows need */
    uint32_t check_count, compile, signature; /* facts about the lookup that has not ended yet */
    /* counted: number of open frames that have no row; changes: number of changes in the journal */
    uint32_t counted, changes;
    uint8_t phase;  /* enum compile_phase of the running stack, not counting imports */
    bool keep;      /* the next frame gets a row in any phase */
    uint32_t begun; /* number of rows that this thread has begun, modulo 2^32 */
    uint64_t unmatched, overtaken, backwards; /* numbers of faulty words, reported at the end */
    /* the next row ids: rows with these or larger ids come from words that have not been taken
     * yet */
    uint64_t next[IDS_OF_WORDS];
};

struct decode_check {
    /* entry: the process's entry id; failed: ordinal + 1 of the leaf that failed, or 0 */
    uint32_t entry, guards_run, failed;
    uint32_t ticks; /* RING_TICKS_UNKNOWN if not measured */
    uint8_t result; /* enum check_result */
};

struct decode_place {
    char file[64];  /* the ring's process file; "" = unused */
    uint32_t ring;  /* number of the ring in that file */
    uint32_t which; /* at[which & 1] is the committed state */
    struct decode_at at[2];
    struct frame_row rows[FRAME_PAGE_ROWS];
    /* checks below at.check_count have been committed */
    struct decode_check checks[DECODE_CHECKS_MAX];
};

/* Totals of one code object, over all threads. */
struct decode_total {
    uint64_t calls, total_ns, self_ns, raised, max_ns, skipped;
    bool changed;
};

/* With `run --thin`: the number of calls of a function, on all threads together, and how long its
 * slow calls take. */
struct decode_thin {
    uint64_t calls;
    uint64_t slow; /* an estimate of the time that one call in 1,024 exceeds: ns << THIN_SHIFT */
};
enum {
    THIN_CALLS = 1000000, /* as many calls of a function are stored in any case */
    THIN_SHARE = 1000,    /* and then one in so many */
    THIN_SHIFT = 20,
};

/* Row ids, indexed by the ids that a process itself uses; 0 if there is no row yet. */
typedef LIST(uint32_t) decode_ids;

/* Shared by all decoders of a session. */
struct decode_session {
    struct frame_pages *pages;        /* borrowed */
    LIST(struct decode_total) totals; /* by code_id; owned, grown here */
    uint64_t start_clock, ns_per_tick_32;
    uint64_t min_duration_ns;
    bool thin;
    LIST(struct decode_thin) thins; /* by code_id; owned, grown here */
    /* traced_stretch() is called when a thread has no event for this long; the same time in two
     * units */
    uint64_t stretch_ns, stretch_ticks;
    uint64_t last_ns;     /* time of the latest event */
    uint64_t open_frames; /* number of frames that never ended, in decoders that are closed */
    /* borrowed: the next ids of rows that come from words; or NULL */
    const uint64_t *next;
    struct counts *counts; /* borrowed; NULL: every frame has a row */
    /* For --snapshot-on: owned, by code_id: how long a call may take, in ns; 0: any time. */
    LIST(uint64_t) limits;
    bool limits_on;
    bool tripped; /* a snapshot is to be taken, and why */
    char why_tripped[256];
};

struct decode_frame {
    uint64_t frame_id, start_ns, child_ns;
    uint64_t duration_ns; /* set when the frame has ended */
    uint32_t code_id, ordinal;
    uint8_t outcome;
    /* enum compile_phase. counted: the phase in which the frame was counted; PHASE_NONE if it has a
     * row. inside: the phase of its callees if the stack itself is in no phase */
    uint8_t counted, inside;
    bool looked_up, raised, is_call;
    /* For a counted frame: its cell, and decode_at.begun when it began; frame_id is then the id of
     * the innermost frame around it that has a row. */
    uint32_t cell, begun;
};

/* The open frames of a greenlet that does not run. */
struct decode_stack {
    LIST(struct decode_frame) frames; /* owned */
    bool known;                       /* the greenlet has run since this collector began */
    uint8_t phase;                    /* decode_at.phase */
};

struct traced;

/* What holds between two calls of decode_words(), whatever the words were:
 *
 *     now == place->at[place->which], and the ring's words below now.tail are done with
 *     page is the thread's own: no other decoder has it. Its rows [0, rows) are in place->rows, and
 *       `used` bytes of it are needed for them, at most FRAME_PAGE_ROOM
 *     stack, from the outermost to the innermost frame: ids rise, each is the parent of the next,
 *       and the last is now.current (or the stack is empty, and that is 0)
 *     active[code] is how often `code` is in `stack`; the frames of greenlets that do not run, in
 *       `parked`, do not count
 *     now.clock never falls, and no frame ends before it starts
 *     now.counted frames of `stack` are counted and have no row: their frame_id is the parent's.
 *       counts->open[which] has them as they were at the commit
 */
struct decoder {
    struct decode_session *session;  /* borrowed */
    struct traced *owner;            /* borrowed: the process that owns the ring */
    const decode_ids *codes;         /* borrowed; grows as facts arrive */
    struct decode_place *place;      /* borrowed, shared */
    struct decode_at now;            /* the working copy */
    LIST(struct decode_frame) stack; /* owned: the open frames */
    /* owned, by thread_id: open frames of greenlets while they do not run */
    LIST(struct decode_stack) parked;
    LIST(uint32_t) active;     /* owned, by code_id: number of open calls on this thread */
    struct count_ring *counts; /* borrowed, shared; NULL: this ring has counted nothing */
    /* Index of the first open counted frame, outermost first, that may have changed since the last
     * commit, and since the commit before that. */
    uint32_t changed_from, changed_before;
    uint32_t last_page; /* the page that was stored last; --min-duration may remove its last row */
    uint64_t dropped;   /* id of a stored row that the next commit removes, or 0 */
    bool commit_due;
    bool broken; /* the ring's words are invalid: no more words are taken */
};

/* Begin to decode a ring of OWNER. PLACE is zeroed, except for its file and ring, or is a killed
 * collector's place. CODES has the row ids of OWNER's code objects, as far as they are known. */
void decode_open(struct decoder *d, struct decode_session *session, struct traced *owner,
                 const decode_ids *codes, struct decode_place *place);

/* Decode the records in WORDS (COUNT words) and commit. Returns how many words were taken, which is
 * COUNT unless the last record is incomplete. */
size_t decode_words(struct decoder *d, const uint64_t *words, size_t count);

/* Store the page that is being filled. */
void decode_store(struct decoder *d);
/* Store the page that is being filled if it is old: with --keep pages are dropped by their age. */
void decode_store_old(struct decoder *d);

/* Close the decoder of a thread that writes nothing more. Frames that are open stay open in the
 * trace. Frees what the decoder owns. */
void decode_close(struct decoder *d);

/* Convert CLOCK, a reading of the session's clock, to nanoseconds since the session's start; at
 * least 1. */
uint64_t decode_ns(const struct decode_session *session, uint64_t clock);

/* Push a frame of CODE_ID, which has just begun. Returns it, and the caller fills in the other
 * members. Returns NULL without memory, or if the stack is too deep. */
struct decode_frame *decode_push(struct decoder *d, uint32_t code_id, bool call);
/* Pop the innermost frame, whose duration_ns and raised are set, and add it to the totals. */
void decode_pop(struct decoder *d);

/* ---- what a decoder asks of its owner: collector/facts.c, and whoever tests it ---- */

/* Return the row id of a process's code object or thread. Never 0: a code object or thread that is
 * not known gets a row which says so. */
uint32_t traced_code_row(struct traced *t, uint32_t local);
uint32_t traced_thread_row(struct traced *t, uint32_t local);
/* Return the row id of a cache entry, or 0 if it is not known. */
uint32_t traced_entry_row(struct traced *t, uint32_t local);
/* Write the lookup that has ended in D's innermost frame. Its checks, compile and signature are in
 * D->now. OBSERVED: it is not known which entries were tried. */
void traced_lookup(struct traced *t, const struct decoder *d, uint64_t start_ns,
                   uint64_t duration_ns, unsigned outcome, bool observed, uint32_t cache_entry_id);
/* Write a span of process T that begins in D's innermost frame. LOCAL is the process's own id of
 * the span, PARENT the id of the span around it + 1, or 0. The texts are borrowed. */
struct decode_span {
    uint32_t local, parent;
    unsigned kind; /* enum span_kind */
    uint64_t start_ns;
    struct fact_text name, attributes;
};
void traced_span(struct traced *t, const struct decoder *d, const struct decode_span *span);
/* Write the arguments of frame FRAME_ID, which are JSON, or, if RETURNED, its return value. */
void traced_call_args(struct traced *t, uint64_t frame_id, bool returned, struct fact_text text);
void traced_span_end(struct traced *t, uint32_t local, uint64_t end_ns);
/* Commit all rows that were made from words, because the words are about to be given up. */
void traced_settle(struct traced *t);
/* Write the cache entry of a frame whose row has no more room for it. */
void traced_late_entry(struct traced *t, uint64_t frame_id, uint32_t cache_entry_id);
/* Return the part of D's ring in the file of counts, which is made if MAKE. Returns NULL if there
 * is none. */
struct count_ring *traced_counts(struct traced *t, const struct decoder *d, bool make);
/* With `run --keep`: frame FRAME_ID is still open, and its page was dropped. The first function
 * reads the row that was kept for the frame into *ROW; the second sets the row's end. */
bool traced_long_frame(struct traced *t, uint64_t frame_id, struct frame_row *row);
void traced_long_frame_end(struct traced *t, uint64_t frame_id, uint64_t end_ns, unsigned outcome,
                           unsigned exit);
/* With --snapshot-on: a call of CODE_ID took DURATION_NS, longer than it may. */
void traced_slow(struct traced *t, uint32_t code_id, uint64_t duration_ns);
/* With --snapshot-on: the outermost frame ended; RAISED: with an exception. */
void traced_outermost(struct traced *t, bool raised);
/* Note a frame that will never end. */
void traced_left_open(struct traced *t, uint64_t frame_id);
/* Write a stretch: from START_NS to END_NS the thread with row THREAD_ID began and ended no frame.
 * FRAME was its innermost frame. */
void traced_stretch(struct traced *t, uint32_t thread_id, const struct decode_frame *frame,
                    uint64_t start_ns, uint64_t end_ns);
/* Write a row of table `loss`: EVENTS were not recorded, because of CAUSE. THREAD_ID is 0 if the
 * loss is that of no single thread. */
void traced_loss(struct traced *t, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                 const char *cause);

#endif
