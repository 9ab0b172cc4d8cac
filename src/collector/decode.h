/* collector/decode.h -- turns the words of one ring into rows of `frame`.
 *
 * The decoder keeps its state in shared memory (struct decode_place), so that the next collector
 * can carry on if this one is killed at any instruction:
 *
 *     place->at[which]   the state before the words that are being decoded now
 *     place->rows        the page being filled; rows below at[which].rows are final
 *
 * Decoding only appends rows, at positions that follow from at[which], and sets ends by frame id.
 * Decoding words twice gives the same rows. So a commit is one store: `which`. Rows of other tables
 * get ids from counters that are committed as part of the state. The stack of open frames is
 * private memory: it can be rebuilt from the parent ids of the rows. */
#ifndef DYNTRACE_DECODE_H
#define DYNTRACE_DECODE_H

#include "collector/frame_pages.h"

enum { DECODE_DEPTH_MAX = 16 << 20, DECODE_SEARCH_MAX = 4096, DECODE_CHECKS_MAX = 512 };
enum id_of_words { NEXT_LOOKUP, NEXT_CHECK, NEXT_LOSS, IDS_OF_WORDS };
#define DECODE_NO_PAGE UINT32_MAX
/* matches a frame whose ENTER was read by an earlier collector */
#define DECODE_ANY_ORDINAL UINT32_MAX

struct decode_at {
    uint64_t tail;  /* number of words taken from the ring so far */
    uint64_t clock; /* clock of the last event */
    /* frame_id of the innermost open frame; 0 if no frame is open */
    uint64_t current;
    /* number of ENTERs of this thread so far, which is the ordinal of its next frame */
    uint32_t entered;
    /* row id of the thread; 0 before the first CONTROL_THREAD */
    uint32_t thread_id;
    /* the page being filled, or DECODE_NO_PAGE; and how many rows it has */
    uint32_t page, rows;
    uint32_t used; /* bytes of the page that its rows need */
    /* of the lookup in progress: number of checks so far, and the process's ids + 1 of the compile
     * and signature */
    uint32_t check_count, compile, signature;
    /* events that make no sense, counted until decode_close() records them as losses */
    uint64_t unmatched, overtaken, backwards;
    /* Next row ids. A row with one of these ids or a larger id comes from words that were not taken
     * yet. */
    uint64_t next[IDS_OF_WORDS];
};

struct decode_check {
    /* The process's id of the entry; number of guards that ran; ordinal + 1 of the guard that
     * failed, or 0 if none failed. */
    uint32_t entry, guards_run, failed;
    uint32_t ticks; /* duration; RING_TICKS_UNKNOWN if it was not measured */
    uint8_t result; /* enum check_result */
};

struct decode_place {
    char file[64];  /* name of the ring's process file; "" if this place is unused */
    uint32_t ring;  /* number of the ring in the process file */
    uint32_t which; /* index of the valid element of `at` */
    struct decode_at at[2];
    struct frame_row rows[FRAME_PAGE_ROWS];
    /* the checks below at[which].check_count are valid */
    struct decode_check checks[DECODE_CHECKS_MAX];
};

/* Totals of one code object, over all threads. */
struct decode_total {
    uint64_t calls, total_ns, self_ns, raised, max_ns;
    bool changed;
};

/* Row ids, indexed by the ids that a process uses itself. 0 if there is no row yet. */
typedef LIST(uint32_t) decode_ids;

/* Shared by all decoders of a session. */
struct decode_session {
    struct frame_pages *pages;        /* borrowed */
    LIST(struct decode_total) totals; /* owned; indexed by code_id, grown by decoders */
    uint64_t start_clock, ns_per_tick_32;
    uint64_t min_duration_ns;
    uint64_t last_ns;     /* time of the latest event of any ring */
    uint64_t open_frames; /* number of frames that never ended, counted when a decoder is closed */
    /* Borrowed: the next ids of lookups, checks and losses. NULL if no such rows are written. */
    const uint64_t *next;
};

struct decode_frame {
    uint64_t frame_id, start_ns, child_ns;
    uint64_t duration_ns; /* set when the frame ends */
    uint32_t code_id, ordinal;
    uint8_t outcome;
    bool looked_up; /* a lookup or a span refers to the frame, so its row must be kept */
    bool raised;
};

/* The open frames of a greenlet that is not running. */
struct decode_stack {
    LIST(struct decode_frame) frames; /* owned */
    bool known;                       /* true if the greenlet has run since this collector began */
};

struct traced;

/* Invariants between two calls of decode_words(), whatever the words were:
 *
 *     now == place->at[place->which], and the ring's words below now.tail are no longer needed
 *     page is taken by this decoder only. Its rows [0, rows) are in place->rows, and need `used`
 *       bytes of it, at most FRAME_PAGE_ROOM
 *     stack, from the outermost to the innermost frame: ids rise, each frame is the parent of the
 *       next, and the last is now.current (0 if the stack is empty)
 *     active[code] is how often `code` is in `stack`; frames in `parked` do not count
 *     now.clock never falls, and no frame ends before it starts */
struct decoder {
    struct decode_session *session; /* borrowed */
    struct traced *owner;           /* borrowed: the process that writes the ring */
    /* borrowed: row ids of code objects; grows as facts are read */
    const decode_ids *codes;
    struct decode_place *place;      /* borrowed; in shared memory */
    struct decode_at now;            /* working copy of place->at[], stored there by a commit */
    LIST(struct decode_frame) stack; /* owned: the open frames, innermost last */
    /* Owned, indexed by thread_id: the open frames of greenlets that are not running. */
    LIST(struct decode_stack) parked;
    LIST(uint32_t) active; /* owned, indexed by code_id: how often the code is in `stack` */
    uint32_t last_page;    /* the page stored last: --min-duration may drop its last row */
    uint64_t dropped;      /* frame_id of a stored row to drop after the next commit, or 0 */
    bool commit_due;
    bool broken; /* the words make no sense: skip all that follow */
};

/* Start decoding into PLACE. PLACE is zeroed apart from file and ring, or was left by a killed
 * collector. CODES: row ids of OWNER's code objects. */
void decode_open(struct decoder *d, struct decode_session *session, struct traced *owner,
                 const decode_ids *codes, struct decode_place *place);

/* Decode COUNT words at WORDS and commit. Returns the number of words taken, which is less than
 * COUNT if the last record is cut off. */
size_t decode_words(struct decoder *d, const uint64_t *words, size_t count);

/* Close D when its thread writes no more. Frames that are still open get no end. Frees what D
 * owns. */
void decode_close(struct decoder *d);

/* Convert CLOCK, a reading of the session's clock, to nanoseconds since the session started.
 * Returns at least 1. */
uint64_t decode_ns(const struct decode_session *session, uint64_t clock);

/* Push a frame of CODE_ID onto the stack, and count it as a call if CALL. The caller fills in the
 * other fields. Returns NULL without memory, or if the stack is too deep. */
struct decode_frame *decode_push(struct decoder *d, uint32_t code_id, bool call);
/* Pop the innermost frame and add it to the totals. Its duration_ns and raised must be set. */
void decode_pop(struct decoder *d);

/* ---- called by the decoder; defined in collector/facts.c, and by tests ---- */

/* Return the row id of a process's code object or thread. Never 0: without a fact about it, make a
 * row that says so. */
uint32_t traced_code_row(struct traced *t, uint32_t local);
uint32_t traced_thread_row(struct traced *t, uint32_t local);
/* Return the row id of a cache entry, or 0 if it is not known. */
uint32_t traced_entry_row(struct traced *t, uint32_t local);
/* Record a lookup that ended in D's innermost frame. Its checks, compile and signature are in
 * D->now. OBSERVED: torch did the lookup, and which entries it tried is not known. */
void traced_lookup(struct traced *t, const struct decoder *d, uint64_t start_ns,
                   uint64_t duration_ns, unsigned outcome, bool observed, uint32_t cache_entry_id);
/* A span that begins. The ids are the process's own; the texts point into the ring. */
struct decode_span {
    uint64_t id, parent; /* 0 if there is none */
    uint64_t start_ns, frame_id;
    uint32_t thread_id;
    struct fact_text name, attributes;
};
void traced_span(struct traced *t, const struct decode_span *span);
void traced_span_end(struct traced *t, uint64_t id, uint64_t end_ns);
/* Commit the rows that were made from words and cannot be made again, before the words are
 * released. */
void traced_settle(struct traced *t);
/* Record the cache entry of a frame whose stored row has no room for it. */
void traced_late_entry(struct traced *t, uint64_t frame_id, uint32_t cache_entry_id);
/* Record that a frame will never end. */
void traced_left_open(struct traced *t, uint64_t frame_id);
/* Record a loss of EVENTS. THREAD_ID may be 0. */
void traced_loss(struct traced *t, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                 const char *cause);

#endif
