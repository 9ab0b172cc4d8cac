/* collector/decode.h -- words of one ring become rows of `frame`.
 *
 * The decoder keeps its place in shared memory (struct decode_place), so that the next collector
 * can carry on after a kill at any instruction:
 *
 *     place->at[which]   the state before the words being decoded now
 *     place->fill        the page being filled; rows below at.rows and cells below at.cells are
 *                        committed. A row whose cell lies beyond at.cells is an open row
 *
 * Decoding only appends rows and cells, at positions that at[which] implies, and sets the ends of
 * frames by id. To decode the same words twice gives the same rows, so a commit is one store:
 * `which`. Rows of other tables get their ids from decode_at.next, which is committed with that
 * store. The stack of open frames is private memory: the next collector rebuilds it from the parent
 * ids in the rows. */
#ifndef DYNTRACE_DECODE_H
#define DYNTRACE_DECODE_H

#include "collector/counts.h"
#include "collector/frame_pages.h"
#include "facts.h"

enum { DECODE_DEPTH_MAX = 16 << 20, DECODE_SEARCH_MAX = 4096, DECODE_CHECKS_MAX = 512 };
enum id_of_words { NEXT_LOOKUP, NEXT_CHECK, NEXT_LOSS, IDS_OF_WORDS };
#define DECODE_NO_PAGE UINT32_MAX
/* an ordinal that is not known, because an earlier collector decoded the frame's ENTER */
#define DECODE_ANY_ORDINAL UINT32_MAX

struct decode_at {
    uint64_t tail;  /* number of words of the ring that have been decoded */
    uint64_t clock; /* clock of the last event */
    /* id of the innermost open frame, or 0 if none is open */
    uint64_t current;
    /* number of the thread's ENTERs so far, which is the next frame's ordinal */
    uint32_t entered;
    /* row id of the thread or greenlet that runs; 0 before the first CONTROL_THREAD */
    uint32_t thread_id;
    /* page: number of the page being filled, or DECODE_NO_PAGE; rows: how many rows it has */
    uint32_t page, rows;
    /* bytes of the page that its rows need, with room for the ends of open rows */
    uint32_t used;
    /* bytes of the cells made so far; a row gets its cell when its frame ends */
    uint32_t cells;
    /* of the current lookup: the number of its checks; and 1 + the process's own id of its compile
     * and of its signature, or 0 if it has none */
    uint32_t check_count, compile, signature;
    /* counted: how many open frames have no row; changes: how many changes the journal has */
    uint32_t counted, changes;
    uint8_t phase;  /* enum compile_phase that the last CONTROL_PHASE has set */
    bool keep;      /* after a CONTROL_KEEP: the next frame gets a row, whatever the phase */
    uint32_t begun; /* number of rows that this thread has begun, modulo 2^32 */
    /* how many words of each kind of fault were found; reported at the end */
    uint64_t unmatched, overtaken, backwards;
    /* the next row ids of other tables. Rows with these ids or larger ones come from words that are
     * not decoded yet */
    uint64_t next[IDS_OF_WORDS];
};

struct decode_check {
    /* entry: the process's own id of the cache entry; failed: ordinal of the leaf that failed, plus
     * 1; 0 if none failed */
    uint32_t entry, guards_run, failed;
    uint32_t ticks; /* duration of the check; RING_TICKS_UNKNOWN if it was not measured */
    uint8_t result; /* enum check_result */
};

struct decode_place {
    char file[64];  /* name of the ring's process file; "": this place is free */
    uint32_t ring;  /* number of the ring in its process file */
    uint32_t which; /* at[which & 1] is what was committed last */
    struct decode_at at[2];
    struct frame_fill fill;
    /* checks of the current lookup; those below at.check_count are committed */
    struct decode_check checks[DECODE_CHECKS_MAX];
};

/* Totals of one code object, over all threads, that are not in its row yet. library_ns: own time of
 * library code that it called, if it is one of the program's functions. */
struct decode_total {
    uint64_t calls, total_ns, self_ns, raised, max_ns, skipped, library_ns;
    bool changed;
    uint8_t owner; /* enum code_owner; is not reset */
};

/* With `run --thin`: the number of calls of a function, on all threads together, and how long its
 * slow calls take. */
struct decode_thin {
    uint64_t calls;
    uint64_t slow; /* estimated time that one call in 1,024 exceeds, in ns << THIN_SHIFT */
};
enum {
    THIN_CALLS = 1000000, /* number of first calls of a function that are all stored */
    THIN_SHARE = 1000,    /* of the calls after these first ones, one in this number is stored */
    THIN_SHIFT = 20,
};

/* Row ids by a process's own ids, for example of code objects; 0 if there is no row yet. */
typedef LIST(uint32_t) decode_ids;

/* What all decoders of a session share. */
struct decode_session {
    struct frame_pages *pages;        /* borrowed */
    LIST(struct decode_total) totals; /* owned: totals by code_id; the decoder adds items */
    uint64_t start_clock, ns_per_tick_32;
    uint64_t min_duration_ns;
    bool thin;
    /* owned: numbers of calls for --thin, by code_id; the decoder adds items */
    LIST(struct decode_thin) thins;
    /* how long a thread has no event before traced_write_quiet_stretch() is called, in ns and in
     * ticks */
    uint64_t stretch_ns, stretch_ticks;
    uint64_t last_ns;     /* time of the latest event */
    uint64_t open_frames; /* how many frames of the closed decoders never ended */
    /* borrowed, or NULL: the next row ids of other tables, copied to decode_at.next */
    const uint64_t *next;
    struct counts *counts; /* borrowed: sums of counted frames; NULL: every frame has a row */
    /* owned, by code_id, for --snapshot-on: a call that takes more ns triggers a snapshot; 0: no
     * limit */
    LIST(uint64_t) limits;
    bool limits_on;
    bool tripped;          /* a condition of --snapshot-on was met */
    char why_tripped[256]; /* the condition that was met, as a text */
};

struct decode_frame {
    uint64_t frame_id, start_ns, child_ns;
    uint64_t library_ns;  /* own time of the library code that the frame has called so far */
    uint64_t duration_ns; /* duration of the frame; set when it has ended */
    uint32_t code_id, ordinal;
    uint8_t outcome;
    /* Phases of torch's work (enum compile_phase). counted: the phase in which the frame was
     * counted; PHASE_NONE if it has a row. inside: the phase in which its callees are, if no
     * CONTROL_PHASE has set one */
    uint8_t counted, inside;
    bool looked_up, raised, is_call;
    /* Of a frame that is counted: the number of its cell, and decode_at.begun when it began. Its
     * frame_id is the id of the innermost frame around it that has a row. */
    uint32_t cell, begun;
};

/* The open frames of a greenlet while another one runs. */
struct decode_stack {
    LIST(struct decode_frame) frames; /* owned */
    /* this collector has seen the greenlet run, so its frames are known */
    bool known;
    uint8_t phase; /* decode_at.phase when the greenlet stopped running */
};

struct traced;

/* Invariants between two calls of decode_words(), whatever the words were:
 *
 *     now == place->at[place->which], and the ring's words below now.tail have been decoded
 *     no other decoder uses now.page. Its rows [0, now.rows) are in place->fill, and take now.used
 *       bytes of the page, at most FRAME_PAGE_ROOM
 *     stack, from the outermost to the innermost frame: ids rise, each is the parent of the next,
 *       and the last is now.current; if the stack is empty, now.current is 0
 *     active[code] is how often `code` is in `stack`; the frames of greenlets that do not run, in
 *       `parked`, do not count
 *     now.clock never falls, and no frame ends before it starts
 *     now.counted frames of `stack` are counted and have no row: their frame_id is the parent's.
 *       counts->open[which] has these frames as they were at the commit
 */
struct decoder {
    struct decode_session *session; /* borrowed */
    struct traced *owner;           /* borrowed: the process that owns the ring */
    /* borrowed: row ids of the owner's code objects; more come as facts are read */
    const decode_ids *codes;
    /* borrowed: the decoder's place, in shared memory that outlives a kill */
    struct decode_place *place;
    struct decode_at now;            /* what a commit copies into `place` */
    LIST(struct decode_frame) stack; /* owned: the open frames */
    /* owned, by thread_id: the open frames of greenlets that do not run */
    LIST(struct decode_stack) parked;
    LIST(uint32_t) active; /* owned, by code_id: number of open calls on this thread */
    /* borrowed, in shared memory: the ring's journal; NULL: no frame of this ring was counted */
    struct count_ring *counts;
    /* Indexes into the open counted frames, outermost first. changed_from: the first frame that
     * may have changed since the last commit; changed_before: the first between the last two
     * commits. */
    uint32_t changed_from, changed_before;
    /* page that was stored last; with --min-duration its last row may be removed */
    uint32_t last_page;
    uint64_t dropped; /* id of a stored row that the next commit removes, or 0 */
    bool commit_due;
    bool broken; /* the ring's words make no sense, so nothing more is decoded */
};

/* Begin to decode a ring of process OWNER. PLACE is the place that a killed collector used for the
 * ring, or zeroed except for `file` and `ring`. CODES has the row ids of OWNER's code objects that
 * are known so far. */
void decode_open(struct decoder *d, struct decode_session *session, struct traced *owner,
                 const decode_ids *codes, struct decode_place *place);

/* Set the owner of code object CODE_ID, before its first frame is decoded. */
void decode_set_owner(struct decode_session *session, uint32_t code_id, enum code_owner owner);

/* Decode the records in WORDS (COUNT words) and commit. Returns how many words were taken, which is
 * COUNT unless the last record is incomplete. */
size_t decode_words(struct decoder *d, const uint64_t *words, size_t count);

/* Store the page that is being filled, even if it is not full. */
void decode_store_open_page(struct decoder *d);
/* Store the page that is being filled if it is old. With --keep a page is dropped by its age, and
 * this one would be dropped before it is full. */
void decode_store_old_page(struct decoder *d);

/* Close the decoder of a ring that gets no more words. Open frames stay open in the trace. Frees
 * what the decoder owns. */
void decode_close(struct decoder *d);

/* Convert CLOCK, a reading of the session's clock, to nanoseconds since the session's start; at
 * least 1. */
uint64_t decode_clock_to_ns(const struct decode_session *session, uint64_t clock);

/* Push a frame of CODE_ID that has just begun, and return it. The caller fills in the other
 * members. Returns NULL without memory, or if the stack is too deep. */
struct decode_frame *decode_push_frame(struct decoder *d, uint32_t code_id, bool call);
/* Pop the innermost frame and add it to the totals. Its duration_ns and raised are set. */
void decode_pop_frame(struct decoder *d);

/* ---- write rows of other tables: defined by collector/facts.c, or by a test ---- */

/* Return the row id of the code object or thread whose id in the process is LOCAL. Never 0: if its
 * fact is missing, it gets a row with unknown columns. */
uint32_t traced_row_id_of_code(struct traced *t, uint32_t local);
uint32_t traced_row_id_of_thread(struct traced *t, uint32_t local);
/* Return the row id of the cache entry whose id in the process is LOCAL, or 0 if the entry is not
 * known. */
uint32_t traced_row_id_of_entry(struct traced *t, uint32_t local);
/* Write the lookup that has ended in the decoder's innermost frame. Its checks, compile and
 * signature are in `now`. OBSERVED: the entries that it tried are not known. */
void traced_write_lookup(struct traced *t, const struct decoder *d, uint64_t start_ns,
                         uint64_t duration_ns, unsigned outcome, bool observed,
                         uint32_t cache_entry_id);
/* A span that begins in the decoder's innermost frame. local: the span's id in its process; parent:
 * 1 + the id of the span around it, or 0. The texts are borrowed. */
struct decode_span {
    uint32_t local, parent;
    unsigned kind; /* enum span_kind */
    uint64_t start_ns;
    struct fact_text name, attributes;
};
void traced_write_span(struct traced *t, const struct decoder *d, const struct decode_span *span);
/* Write TEXT, which is JSON: the arguments of frame FRAME_ID, or, if RETURNED, its return value. */
void traced_write_call_arguments(struct traced *t, uint64_t frame_id, bool returned,
                                 struct fact_text text);
void traced_write_span_end(struct traced *t, uint32_t local, uint64_t end_ns);
/* Commit the rows of other tables that were made from words. The decoder calls this just before it
 * commits its words as decoded: after that, the rows could not be made again. */
void traced_commit_rows(struct traced *t);
/* Write the cache entry of a frame whose stored row has no room for it. */
void traced_write_late_cache_entry(struct traced *t, uint64_t frame_id, uint32_t cache_entry_id);
/* Return the journal of the decoder's ring (collector/counts.h). MAKE: make it if there is none.
 * Returns NULL if there is none. */
struct count_ring *traced_find_journal(struct traced *t, const struct decoder *d, bool make);
/* With `run --keep`: the page of frame FRAME_ID was dropped while the frame was open, and its row
 * was kept elsewhere. The first function reads this row; the second sets its end. */
bool traced_write_long_frame(struct traced *t, uint64_t frame_id, struct frame_row *row);
void traced_write_long_frame_end(struct traced *t, uint64_t frame_id, uint64_t end_ns,
                                 unsigned outcome, unsigned exit);
/* With --snapshot-on: trigger a snapshot, because a call of CODE_ID took DURATION_NS, longer than
 * the limit for it. */
void traced_trigger_slow_call(struct traced *t, uint32_t code_id, uint64_t duration_ns);
/* With --snapshot-on: note that an outermost frame ended. RAISED: it raised an exception. */
void traced_note_end_of_outermost_frame(struct traced *t, bool raised);
/* Record that frame FRAME_ID will never end. */
void traced_write_frame_left_open(struct traced *t, uint64_t frame_id);
/* Write a stretch: from START_NS to END_NS the thread with row id THREAD_ID began and ended no
 * frame. FRAME was its innermost frame. */
void traced_write_quiet_stretch(struct traced *t, uint32_t thread_id,
                                const struct decode_frame *frame, uint64_t start_ns,
                                uint64_t end_ns);
/* Write a row of table `loss`: EVENTS were not recorded, because of CAUSE. THREAD_ID is 0 if the
 * loss is not of a single thread. */
void traced_write_loss(struct traced *t, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                       const char *cause);

#endif
