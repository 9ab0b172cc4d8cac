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
#define DECODE_ANY_ORDINAL UINT32_MAX /* of a frame whose ENTER an earlier collector took */

struct decode_at {
    uint64_t tail;                            /* words of the ring taken */
    uint64_t clock;                           /* the last event's */
    uint64_t current;                         /* innermost open frame, 0 = none */
    uint32_t entered;                         /* ENTERs of this thread: the next frame's ordinal */
    uint32_t thread_id;                       /* 0 = before the first CONTROL_THREAD */
    uint32_t page, rows;                      /* the page being filled, or DECODE_NO_PAGE */
    uint32_t used;                            /* bytes of that page its rows need */
    uint32_t check_count, compile, signature; /* of the lookup whose end has not come yet */
    /* of the frames that are counted: how many are open, and changes in the journal */
    uint32_t counted, changes;
    uint8_t phase;  /* enum compile_phase of the stack that runs; by itself, without imports */
    bool keep;      /* the next frame gets a row in any phase */
    uint32_t begun; /* rows that this thread has begun, modulo 2^32 */
    uint64_t unmatched, overtaken, backwards; /* reported at the end */
    /* ids: rows that have these or larger ones come from words not yet taken */
    uint64_t next[IDS_OF_WORDS];
};

struct decode_check {
    /* the process's entry id; ordinal + 1 of the leaf that failed, 0 = none */
    uint32_t entry, guards_run, failed;
    uint32_t ticks; /* RING_TICKS_UNKNOWN: not measured */
    uint8_t result; /* enum check_result */
};

struct decode_place {
    char file[64];  /* the ring's process file; "" = unused */
    uint32_t ring;  /* which of its rings */
    uint32_t which; /* at[which] is in force */
    struct decode_at at[2];
    struct frame_row rows[FRAME_PAGE_ROWS];
    struct decode_check checks[DECODE_CHECKS_MAX]; /* those below at.check_count are certain */
};

/* Totals of one code object, over all threads. */
struct decode_total {
    uint64_t calls, total_ns, self_ns, raised, max_ns, skipped;
    bool changed;
};

/* With `run --thin`: what is known of a function's calls, over all threads. */
struct decode_thin {
    uint64_t calls;
    uint64_t slow; /* an estimate of the time that one call in 1,024 exceeds: ns << THIN_SHIFT */
};
enum {
    THIN_CALLS = 1000000, /* as many calls of a function are stored in any case */
    THIN_SHARE = 1000,    /* and then one in so many */
    THIN_SHIFT = 20,
};

/* Row ids by the ids that a process uses itself; 0 = not yet. */
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
    uint64_t last_ns;     /* the latest event seen */
    uint64_t open_frames; /* that never ended, of the decoders closed so far */
    /* borrowed: the next ids of what words say; NULL: nobody counts */
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
    uint64_t duration_ns; /* once it has ended */
    uint32_t code_id, ordinal;
    uint8_t outcome;
    /* enum compile_phase: in which the frame was counted, PHASE_NONE if it has a row; and what is
     * in force for its callees if their stack is in none */
    uint8_t counted, inside;
    bool looked_up, raised, is_call;
    /* If counted: its cell, and decode_at.begun when it began. Then frame_id is that of the
     * innermost frame around it with a row. */
    uint32_t cell, begun;
};

/* The open frames of a greenlet that does not run. */
struct decode_stack {
    LIST(struct decode_frame) frames; /* owned */
    bool known;                       /* it has run since this collector began */
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
    struct traced *owner;            /* borrowed: whose ring it is */
    const decode_ids *codes;         /* borrowed; grows as facts arrive */
    struct decode_place *place;      /* borrowed, shared */
    struct decode_at now;            /* the working copy */
    LIST(struct decode_frame) stack; /* owned: the open frames */
    /* owned, by thread_id: those of greenlets, while another runs */
    LIST(struct decode_stack) parked;
    LIST(uint32_t) active;     /* owned, by code_id: open activations on this thread */
    struct count_ring *counts; /* borrowed, shared; NULL: this ring has counted nothing */
    /* Counted frames from these on, outermost first, may differ from what the last commit wrote,
     * and from what the one before wrote. */
    uint32_t changed_from, changed_before;
    uint32_t last_page; /* the page stored last, for --min-duration */
    uint64_t dropped;   /* a stored row to take away after the next commit, or 0 */
    bool commit_due;
    bool broken; /* the words make no sense: nothing more is taken */
};

/* PLACE is either zeroed (apart from file and ring) or a killed collector's. CODES: the rows of
 * OWNER's code objects that are known. */
void decode_open(struct decoder *d, struct decode_session *session, struct traced *owner,
                 const decode_ids *codes, struct decode_place *place);

/* Decode records from WORDS (COUNT of them) and commit; returns how many words
 * were taken: all of them, unless the last record is cut off. */
size_t decode_words(struct decoder *d, const uint64_t *words, size_t count);

/* Store the page that is being filled. */
void decode_store(struct decoder *d);
/* Store the page that is being filled if it is old: with --keep pages are dropped by their age. */
void decode_store_old(struct decoder *d);

/* The thread writes no more: frames that are open stay open for ever. Frees what the decoder owns.
 * */
void decode_close(struct decoder *d);

/* CLOCK, of the session's, in nanoseconds since its start; at least 1. */
uint64_t decode_ns(const struct decode_session *session, uint64_t clock);

/* A frame of CODE_ID begins: it counts, and is the innermost. The caller fills in the rest. NULL:
 * no memory, or too deep. */
struct decode_frame *decode_push(struct decoder *d, uint32_t code_id, bool call);
/* The innermost frame, whose duration_ns and raised are known, is over: into the totals with it. */
void decode_pop(struct decoder *d);

/* ---- what a decoder asks of its owner: collector/facts.c, and whoever tests it ---- */

/* Row ids of a process's code object and thread. Never 0: one that is not known gets a row that
 * says so. */
uint32_t traced_code_row(struct traced *t, uint32_t local);
uint32_t traced_thread_row(struct traced *t, uint32_t local);
/* The row id of a cache entry; 0: not known. */
uint32_t traced_entry_row(struct traced *t, uint32_t local);
/* A lookup has ended, in D's innermost frame; its checks, compile and signature are in D->now.
 * OBSERVED: which entries were tried is not known. */
void traced_lookup(struct traced *t, const struct decoder *d, uint64_t start_ns,
                   uint64_t duration_ns, unsigned outcome, bool observed, uint32_t cache_entry_id);
/* A span of process T, which calls it LOCAL, begins in D's innermost frame. PARENT is the span
 * around it + 1, or 0. The texts are borrowed. */
struct decode_span {
    uint32_t local, parent;
    unsigned kind; /* enum span_kind */
    uint64_t start_ns;
    struct fact_text name, attributes;
};
void traced_span(struct traced *t, const struct decoder *d, const struct decode_span *span);
/* The arguments of frame FRAME_ID as JSON, or, if RETURNED, its return value. */
void traced_call_args(struct traced *t, uint64_t frame_id, bool returned, struct fact_text text);
void traced_span_end(struct traced *t, uint32_t local, uint64_t end_ns);
/* What was said of words is in the trace from here on: the words are about to be forgotten. */
void traced_settle(struct traced *t);
/* A frame whose row could not take its entry any more. */
void traced_late_entry(struct traced *t, uint64_t frame_id, uint32_t cache_entry_id);
/* The part of D's ring in the file of counts. It is made with MAKE; NULL: there is none. */
struct count_ring *traced_counts(struct traced *t, const struct decoder *d, bool make);
/* Frame FRAME_ID outlasted its page (run --keep): set *ROW to what is known since its start, or set
 * its end. */
bool traced_long_frame(struct traced *t, uint64_t frame_id, struct frame_row *row);
void traced_long_frame_end(struct traced *t, uint64_t frame_id, uint64_t end_ns, unsigned outcome,
                           unsigned exit);
/* With --snapshot-on: a call of CODE_ID took DURATION_NS, longer than it may. */
void traced_slow(struct traced *t, uint32_t code_id, uint64_t duration_ns);
/* With --snapshot-on: the outermost frame ended; RAISED: with an exception. */
void traced_outermost(struct traced *t, bool raised);
/* A frame that will never end. */
void traced_left_open(struct traced *t, uint64_t frame_id);
/* From START_NS to END_NS the thread with row THREAD_ID began and ended no frame. FRAME was its
 * innermost frame. */
void traced_stretch(struct traced *t, uint32_t thread_id, const struct decode_frame *frame,
                    uint64_t start_ns, uint64_t end_ns);
/* Something was not recorded as it was. THREAD_ID may be 0. */
void traced_loss(struct traced *t, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                 const char *cause);

#endif
