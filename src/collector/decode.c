/* collector/decode.c -- words of one ring become rows of `frame`. See collector/decode.h.
 *
 * Runs in: the collector. Words are not trusted: for any bytes, the decoder must leave a valid
 * table, use bounded memory, and write a loss row that tells of the damage. */
#include "collector/decode.h"

#include <sys/param.h>

#include "ring.h"
#include "vocabulary.h"

_Static_assert((int)RING_INHERITED == FRAME_INHERITED, "the tags of an ENTER are frame kinds");
/* a larger value is no clock reading, because a fast counter needs 12 years for it; and it could
 * overflow */
enum { CLOCK_BITS_MAX = 60 };

/* When a run of words needs no check of each time, because none can be 0 or too large: see
 * is_time_of_run() */
enum {
    RUN_TICKS_MIN = 1 << 12, /* so many ticks are at least 1 ns */
    RUN_TICKS_BITS = 59,     /* the run begins before this bit of the ticks is set */
    RUN_WORDS_MAX = 1 << 18, /* each of its words adds less than 2^(RING_CLOCK_BITS - 1) ticks */
};

static inline uint64_t clock_to_ns(const struct decode_session *session, uint64_t clock)
{
    unsigned __int128 ticks = clock - session->start_clock;
    unsigned __int128 ns = ticks * session->ns_per_tick_32 >> 32;

    if (clock <= session->start_clock)
        return 1;
    if (ns >> 63)
        return INT64_MAX;
    /* never 0, because end_ns 0 means that the frame has not ended */
    return MAX((uint64_t)ns, 1);
}

/* Like clock_to_ns, in fewer instructions, if is_time_of_run(). */
static inline uint64_t ns_of_run(const struct decode_session *session, uint64_t clock)
{
    const unsigned __int128 ticks = clock - session->start_clock;

    return (uint64_t)(ticks * session->ns_per_tick_32 >> 32);
}

/* May ns_of_run() be used for CLOCK and for the clocks of the RUN_WORDS_MAX words that follow? Then
 * they are below 2^60 ticks, and a tick is at least 2^-12 ns and less than 2^3 ns. */
static inline bool is_time_of_run(const struct decode_session *session, uint64_t clock)
{
    /* a clock before the start gives more ticks than are allowed */
    const uint64_t ticks = clock - session->start_clock;
    const bool is_usual_tick = session->ns_per_tick_32 >> 20 && session->ns_per_tick_32 >> 35 == 0;

    return ticks >= RUN_TICKS_MIN && ticks >> RUN_TICKS_BITS == 0 && is_usual_tick;
}

uint64_t decode_clock_to_ns(const struct decode_session *session, uint64_t clock)
{
    return clock_to_ns(session, clock);
}

/* ---- commit what was decoded, so that a kill cannot lose it ---- */

/* Write the open counted frames to open[WHICH], as far as they have changed since open[WHICH] was
 * last written. */
static void write_counted_frames(struct decoder *d, uint32_t which)
{
    const uint32_t from = MIN(d->changed_from, d->changed_before);
    uint32_t at = d->stack.count;

    for (uint32_t i = d->now.counted; i > from; i--) {
        const struct decode_frame *frame;
        struct count_open *left;
        do {
            at--;
            frame = &d->stack.at[at];
        } while (!frame->counted);
        left = &d->counts->open[which][i - 1];
        left->parent_id = frame->frame_id;
        left->start_ns = frame->start_ns;
        left->child_ns = frame->child_ns;
        left->code_id = frame->code_id;
        left->ordinal = frame->ordinal;
        left->cell = frame->cell;
        left->begun = frame->begun;
        left->phase = frame->counted;
        left->inside = frame->inside;
        left->outcome = frame->outcome;
        left->is_call = frame->is_call;
    }
    d->changed_before = d->changed_from;
    d->changed_from = d->now.counted;
}

static void commit_decoded_state(struct decoder *d)
{
    uint32_t next = d->place->which ^ 1;

    if (d->counts)
        write_counted_frames(d, next);

    if (d->session->next) {
        traced_commit_rows(d->owner);
        memcpy(d->now.next, d->session->next, sizeof d->now.next);
    }
    d->place->at[next] = d->now;
    /* A barrier for the compiler. The CPU needs none: when a process is killed, all stores before
     * some instruction are done, and none after it. */
    atomic_signal_fence(memory_order_release);
    *(volatile uint32_t *)&d->place->which = next;
    atomic_signal_fence(memory_order_release);
}

static void close_filled_page(struct decoder *d)
{
    if (d->now.page != DECODE_NO_PAGE && d->now.rows) {
        frame_pages_store_filled_page(d->session->pages, d->now.page, &d->place->fill, d->now.rows,
                                      d->now.cells);
        d->last_page = d->now.page;
    }
    d->now.page = DECODE_NO_PAGE;
    d->now.rows = d->now.used = d->now.cells = 0;
}

/* Add the changes in the journal of counted frames to their cells. */
static void add_journal_to_cells(struct decoder *d)
{
    if (!d->counts || !d->now.changes)
        return;
    commit_decoded_state(d); /* commit the journal before its changes are added */
    counts_add_journal(d->session->counts, d->counts, d->now.changes);
    d->now.changes = 0;
    commit_decoded_state(d);
    counts_reset_journal(d->counts);
}

/* If a killed collector was adding its journal to cells, finish that. */
static void finish_journal_of_killed_collector(struct decoder *d)
{
    bool is_begun = d->counts->applied || d->counts->undoing;

    if (!d->now.changes)
        counts_reset_journal(d->counts);
    else if (is_begun)
        add_journal_to_cells(d);
}

void decode_store_open_page(struct decoder *d)
{
    if (d->now.page == DECODE_NO_PAGE)
        return;
    close_filled_page(d);
    commit_decoded_state(d);
}

void decode_store_old_page(struct decoder *d)
{
    if (d->now.page != DECODE_NO_PAGE && frame_pages_is_page_old(d->session->pages, d->now.page))
        decode_store_open_page(d);
}

/* Return the row of frame ID if it is on the page that is being filled; NULL if its page has been
 * stored already. */
static struct frame_row *find_row_on_open_page(struct decoder *d, uint64_t id)
{
    uint64_t slot = id - 1 - (uint64_t)d->now.page * FRAME_PAGE_ROWS;

    return d->now.page != DECODE_NO_PAGE && slot < d->now.rows ? &d->place->fill.rows[slot] : NULL;
}

/* ---- push and pop open frames, and add up totals ---- */

/* Return the innermost open frame, or NULL if none is open. */
static inline struct decode_frame *innermost_frame(struct decoder *d)
{
    return d->stack.count ? &d->stack.at[d->stack.count - 1] : NULL;
}

static inline uint64_t innermost_frame_id(struct decoder *d)
{
    struct decode_frame *frame = innermost_frame(d);

    return frame ? frame->frame_id : 0;
}

/* Return the total of code object CODE_ID. Without memory, return a dummy, which all code objects
 * then share. */
static inline struct decode_total *find_total_of_code(struct decoder *d, uint32_t code_id)
{
    static struct decode_total nowhere;
    struct decode_total *total = list_reach(&d->session->totals, code_id);

    return total ? total : &nowhere;
}

void decode_set_owner(struct decode_session *session, uint32_t code_id, enum code_owner owner)
{
    struct decode_total *total = list_reach(&session->totals, code_id);

    if (total)
        total->owner = (uint8_t)owner;
}

static inline uint32_t *count_of_open_frames(struct decoder *d, uint32_t code_id)
{
    static uint32_t nowhere;
    uint32_t *active = list_reach(&d->active, code_id);

    return active ? active : &nowhere;
}

static inline struct decode_frame *push_frame(struct decoder *d, uint32_t code_id)
{
    struct decode_frame *frame = d->stack.count < DECODE_DEPTH_MAX ? list_add(&d->stack) : NULL;

    if (frame) {
        frame->code_id = code_id;
        ++*count_of_open_frames(d, code_id);
    }
    return frame;
}

inline struct decode_frame *decode_push_frame(struct decoder *d, uint32_t code_id, bool call)
{
    struct decode_frame *frame = push_frame(d, code_id);
    struct decode_total *total = find_total_of_code(d, code_id);

    total->changed = true;
    total->calls += frame && call;
    if (frame)
        frame->is_call = call;
    return frame;
}

/* Add a frame that has ended to TOTAL, its code object's total. ACTIVE is how many other frames of
 * the code object are open on the thread: in a recursion only the outermost frame counts for
 * total_ns. Returns the frame's own time. */
static inline uint64_t add_ended_frame_to_total(struct decode_total *total, uint64_t duration_ns,
                                                uint64_t child_ns, bool raised, uint32_t active)
{
    const uint64_t self_ns = duration_ns > child_ns ? duration_ns - child_ns : 0;

    total->changed = true;
    total->self_ns += self_ns;
    total->raised += raised;
    if (duration_ns > total->max_ns)
        total->max_ns = duration_ns;
    if (!active)
        total->total_ns += duration_ns;
    return self_ns;
}

/* Add the time of a frame that has ended, and of library code below it, to the function of the
 * program that it belongs to: TOTAL is the frame's code object's. CALLER may be NULL. */
static inline void add_library_time(struct decode_total *total, uint64_t self_ns,
                                    uint64_t library_ns, struct decode_frame *caller)
{
    if (total->owner == OWNER_ITSELF)
        total->library_ns += library_ns;
    else if (total->owner == OWNER_CALLER && caller)
        caller->library_ns += self_ns + library_ns;
}

inline void decode_pop_frame(struct decoder *d)
{
    struct decode_frame *frame = &d->stack.at[--d->stack.count];
    struct decode_frame *caller = innermost_frame(d);
    struct decode_total *total = find_total_of_code(d, frame->code_id);
    uint32_t *active = count_of_open_frames(d, frame->code_id);
    uint64_t self_ns;

    *active -= *active > 0;
    self_ns = add_ended_frame_to_total(total, frame->duration_ns, frame->child_ns, frame->raised,
                                       *active);
    add_library_time(total, self_ns, frame->library_ns, caller);
    total->skipped += frame->is_call && frame->outcome == OUTCOME_SKIP;
    if (caller)
        caller->child_ns += frame->duration_ns;
}

/* Reverse the order of the open frames, which were collected from the innermost to the
 * outermost. */
static void reverse_open_frames(struct decoder *d)
{
    for (uint32_t i = 0; i < d->stack.count / 2; i++) {
        struct decode_frame *low = &d->stack.at[i];
        struct decode_frame *high = &d->stack.at[d->stack.count - 1 - i];
        struct decode_frame swap = *low;
        *low = *high;
        *high = swap;
    }
}

/* Read the row of frame ID, from the page that is being filled or from a stored page. Returns false
 * if there is no such row. */
static bool read_frame_row(struct decoder *d, uint64_t id, struct frame_row *row)
{
    struct frame_row *here = find_row_on_open_page(d, id);

    if (here) {
        *row = *here;
        return true;
    }
    if (frame_pages_is_dropped(d->session->pages, id))
        return traced_write_long_frame(d->owner, id, row);
    return frame_pages_read_row(d->session->pages, id, row);
}

/* Return the phase of torch's work in which callees of a frame of CODE_ID are, if no CONTROL_PHASE
 * has set one. CALLER has called the frame. */
static uint8_t phase_of_calls_from(struct decoder *d, const struct decode_frame *caller,
                                   uint32_t code_id)
{
    if (caller && caller->inside)
        return caller->inside;
    return d->session->counts && counts_is_torch_module_body(d->session->counts, code_id)
               ? PHASE_IMPORT
               : PHASE_NONE;
}

/* After a restart: push the open counted frames from index FROM on, as long as their parent is
 * frame PARENT_ID. Returns the index of the first that was not pushed. */
static uint32_t push_counted_frames_again(struct decoder *d, uint32_t from, uint64_t parent_id)
{
    const struct count_open *open = d->counts->open[d->place->which & 1];

    for (; from < d->now.counted && open[from].parent_id == parent_id; from++) {
        const struct count_open *left = &open[from];
        struct decode_frame *frame = push_frame(d, left->code_id);
        if (!frame)
            break;
        frame->frame_id = parent_id;
        frame->start_ns = left->start_ns;
        frame->child_ns = left->child_ns;
        frame->ordinal = left->ordinal;
        frame->cell = left->cell;
        frame->begun = left->begun;
        frame->counted = left->phase;
        frame->inside = left->inside;
        frame->outcome = left->outcome;
        frame->is_call = left->is_call;
    }
    return from;
}

/* After a restart: put the open counted frames between the open frames that have rows. Fill in the
 * members that follow from the frames around them. */
static void insert_counted_frames(struct decoder *d)
{
    struct decode_stack rows = {0};
    uint32_t done = 0;

    memcpy(&rows.frames, &d->stack, sizeof rows.frames);
    memset(&d->stack, 0, sizeof d->stack);
    if (d->counts)
        done = push_counted_frames_again(d, 0, 0);
    list_each(row, &rows.frames) {
        struct decode_frame *caller = d->stack.count ? &d->stack.at[d->stack.count - 1] : NULL;
        uint8_t inside = phase_of_calls_from(d, caller, row->code_id);
        struct decode_frame *frame = list_add(&d->stack);
        if (!frame)
            break;
        *frame = *row;
        frame->inside = inside;
        if (d->counts)
            done = push_counted_frames_again(d, done, frame->frame_id);
    }
    list_free(&rows.frames);
    d->now.counted = done;
    d->changed_from = d->changed_before = 0;
}

/* After a restart: push the open frames that have rows. The innermost is frame ID; the others are
 * its parents. */
static void push_frames_with_rows_again(struct decoder *d, uint64_t id)
{
    uint64_t previous = UINT64_MAX;

    while (id && id < previous && d->stack.count < DECODE_DEPTH_MAX) {
        struct frame_row row;
        struct decode_frame *frame = NULL;
        if (read_frame_row(d, id, &row))
            frame = push_frame(d, row.code_id);
        if (!frame)
            break;
        frame->frame_id = id;
        frame->start_ns = row.start_ns;
        frame->ordinal = DECODE_ANY_ORDINAL;
        frame->outcome = row.outcome;
        frame->is_call = row.kind == FRAME_CALL;
        frame->looked_up = row.outcome != 0;
        previous = id;
        id = row.parent_id;
    }
    reverse_open_frames(d);
    insert_counted_frames(d);
}

/* ---- decode one word or record ---- */

static void mark_ring_broken(struct decoder *d, const char *why)
{
    d->broken = true;
    traced_write_loss(d->owner, d->now.thread_id, decode_clock_to_ns(d->session, d->now.clock), 0,
                      why);
}

/* Report a stretch, in which the thread began and ended no frame: the next event comes AHEAD ticks
 * after the last one. */
static void report_quiet_stretch(struct decoder *d, uint64_t ahead)
{
    const struct decode_frame *frame = innermost_frame(d);

    if (frame)
        traced_write_quiet_stretch(d->owner, d->now.thread_id, frame,
                                   decode_clock_to_ns(d->session, d->now.clock),
                                   decode_clock_to_ns(d->session, d->now.clock + ahead));
}

/* Return the full clock whose low 40 bits are LOW. If that would be before the last event, return
 * the clock of the last event. */
static inline uint64_t complete_clock_from_low_bits(struct decoder *d, uint64_t low)
{
    uint64_t ahead = (low - d->now.clock) & RING_CLOCK_MASK;

    if (ahead >> (RING_CLOCK_BITS - 1)) {
        d->now.backwards++;
        return d->now.clock;
    }
    if (ahead >= d->session->stretch_ticks)
        report_quiet_stretch(d, ahead);
    d->now.clock += ahead;
    return d->now.clock;
}

/* Return the id that the next row will have. */
static inline uint64_t next_frame_id(const struct decoder *d)
{
    if (d->now.page == DECODE_NO_PAGE)
        return frame_id(d->session->pages->window->next_page, 0);
    return frame_id(d->now.page, d->now.rows);
}

/* Has the page that is being filled room for an open row of BYTES, and for the pointer to the
 * row? */
static inline bool page_has_room(const struct decode_at *now, unsigned bytes)
{
    return now->rows < FRAME_PAGE_ROWS && now->used + bytes + 2 <= FRAME_PAGE_ROOM;
}

/* Return the phase of torch's work in which a call by the innermost frame is. */
static inline uint8_t phase_of_next_call(struct decoder *d)
{
    const struct decode_frame *caller = innermost_frame(d);

    if (d->now.phase)
        return d->now.phase;
    return caller ? caller->inside : PHASE_NONE;
}

/* Count the frame of CODE_ID that begins in PHASE, instead of writing a row. Returns false if the
 * frame must have a row. */
static __attribute__((noinline)) bool begin_frame_without_row(struct decoder *d, uint8_t phase,
                                                              unsigned kind, uint32_t code_id,
                                                              uint64_t ns)
{
    struct counts *counts = d->session->counts;
    const struct decode_frame *caller = innermost_frame(d);
    const uint64_t parent_id = innermost_frame_id(d);
    const uint8_t inside = caller ? caller->inside : PHASE_NONE;
    struct decode_frame *frame;
    uint32_t cell;
    /* if the caller has a row: number of the cell in which its inner_ns is counted */
    uint32_t callers = 0;

    if (!counts_is_library_code(counts, code_id) || kind == RING_INHERITED)
        return false;
    if (!d->counts)
        d->counts = traced_find_journal(d->owner, d, true);
    if (!d->counts || d->now.counted == COUNT_DEPTH)
        return false;
    /* make the cell now, because there may be no room for it when the frame ends */
    cell = counts_find_or_make_cell(counts, code_id, phase, OUTCOME_PLAIN);
    if (caller && !caller->counted)
        callers = counts_find_or_make_cell(counts, caller->code_id, phase, OUTCOME_PLAIN);
    if (cell == COUNT_NONE || callers == COUNT_NONE)
        return false;
    frame = decode_push_frame(d, code_id, kind == RING_CALL);
    if (!frame)
        return false;
    frame->frame_id = parent_id;
    frame->start_ns = ns;
    frame->ordinal = d->now.entered;
    frame->counted = phase;
    frame->inside = inside;
    frame->cell = cell;
    frame->begun = d->now.begun;
    d->now.entered++;
    d->now.counted++;
    return true;
}

/* Make room for the row of a frame that begins. Takes a new page if the page being filled has no
 * room. Returns the row's id, and sets *BYTES to its size. */
static inline __attribute__((always_inline)) uint64_t
reserve_row(struct decoder *d, unsigned kind, uint32_t code_id, uint64_t ns, unsigned *bytes)
{
    struct decode_at *now = &d->now;
    uint64_t id = next_frame_id(d);

    *bytes = frame_bytes_of_open_cell(id, now->current, now->thread_id, code_id, kind, ns);
    if (now->page != DECODE_NO_PAGE && !page_has_room(now, *bytes)) {
        close_filled_page(d);
        commit_decoded_state(d);
    }
    if (now->page != DECODE_NO_PAGE)
        return id;
    now->page = frame_pages_reserve_page(d->session->pages);
    /* Commit the new page's number. Without this, a collector that takes over would use another
     * page for the same rows. */
    commit_decoded_state(d);
    id = frame_id(now->page, 0);
    *bytes = frame_bytes_of_open_cell(id, now->current, now->thread_id, code_id, kind, ns);
    return id;
}

/* Set the row in SLOT of FILL to that of a frame which begins at NS. The row's cell takes BYTES as
 * long as the frame is open. */
static inline __attribute__((always_inline)) void row_set(struct frame_fill *fill, uint32_t slot,
                                                          uint64_t parent_id, uint32_t thread_id,
                                                          uint32_t code_id, unsigned kind,
                                                          uint64_t ns, unsigned bytes)
{
    /* Set the members one by one, which is faster than copying a struct made just before: the CPU
     * would have to wait until the struct's stores are done. */
    struct frame_row *row = &fill->rows[slot];

    fill->cell[slot] = 0;
    row->parent_id = parent_id;
    row->start_ns = ns;
    row->end_ns = 0;
    row->code_id = code_id;
    row->thread_id = thread_id;
    row->cache_entry_id = 0;
    row->kind = (uint8_t)kind;
    row->outcome = row->exit = 0;
    row->ended = false;
    row->open_bytes = (uint8_t)bytes;
}

/* Append the row of a frame of CODE_ID that begins to the page being filled. The row's cell takes
 * BYTES as long as the frame is open. */
static void append_open_row(struct decoder *d, uint32_t code_id, unsigned bytes, unsigned kind,
                            uint64_t ns)
{
    struct decode_at *now = &d->now;

    row_set(&d->place->fill, now->rows, now->current, now->thread_id, code_id, kind, ns, bytes);
    now->rows++;
    now->begun++;
    now->used += bytes + 2;
}

static void begin_frame(struct decoder *d, unsigned kind, uint32_t local_code, uint64_t clock)
{
    struct decode_at *now = &d->now;
    uint64_t ns = clock_to_ns(d->session, clock);
    uint32_t code_id = local_code < d->codes->count ? d->codes->at[local_code] : 0;
    uint64_t id;
    struct decode_frame *frame;
    unsigned bytes;
    uint8_t phase, inside;

    if (!code_id)
        code_id = traced_row_id_of_code(d->owner, local_code);
    phase = now->keep ? PHASE_NONE : phase_of_next_call(d);
    if (phase && begin_frame_without_row(d, phase, kind, code_id, ns))
        return;
    inside = phase_of_calls_from(d, innermost_frame(d), code_id);
    id = reserve_row(d, kind, code_id, ns, &bytes);
    /* Clear `keep` only after reserve_row(), which may commit: after a kill this record would be
     * decoded again, and needs `keep`. */
    now->keep = false;
    frame = decode_push_frame(d, code_id, kind == RING_CALL);
    if (!frame) {
        mark_ring_broken(
            d,
            "ring: its frames nest deeper than 16 million; the rest of this thread was not taken");
        return;
    }
    append_open_row(d, code_id, bytes, kind, ns);
    frame->frame_id = now->current = id;
    frame->start_ns = ns;
    frame->ordinal = now->entered;
    frame->inside = inside;
    now->entered++;
}

/* Append an empty change to the journal and return it. */
static struct count_change *append_journal_change(struct decoder *d)
{
    struct count_change *change;

    if (d->now.changes == COUNT_CHANGES)
        add_journal_to_cells(d);
    change = &d->counts->journal[d->now.changes++];
    *change = (struct count_change){.cell = COUNT_NONE, .caller = COUNT_NONE};
    return change;
}

/* Give a row to the innermost frame, which was only counted (--frames folded), because a compiler
 * has decided about its call. Usually the tracer announces such a frame by a CONTROL_KEEP, but not
 * inside an import, where it does not know which frames are counted. If a callee of the frame has
 * got a row already, do nothing: the id of a caller must be smaller than that of its callee. */
static __attribute__((noinline)) void write_row_for_counted_frame(struct decoder *d)
{
    struct decode_frame *frame = innermost_frame(d);
    const struct decode_frame *caller = d->stack.count > 1 ? frame - 1 : NULL;
    const unsigned kind = frame->is_call ? RING_CALL : RING_RESUME;
    struct count_change *change;
    unsigned bytes;
    uint64_t id;

    if (frame->begun != d->now.begun)
        return;
    id = reserve_row(d, kind, frame->code_id, frame->start_ns, &bytes);
    if (frame->child_ns) { /* too late: callees of the frame have ended and were counted */
        change = append_journal_change(d);
        change->caller = counts_find_or_make_cell(d->session->counts, frame->code_id,
                                                  frame->counted, OUTCOME_PLAIN);
        change->inner_ns = (int64_t)frame->child_ns;
    }
    d->now.counted--;
    d->changed_from = MIN(d->changed_from, d->now.counted);
    frame->counted = PHASE_NONE;
    /* as of any frame with a row: a collector that takes over sets it so */
    frame->inside = phase_of_calls_from(d, caller, frame->code_id);
    append_open_row(d, frame->code_id, bytes, kind, frame->start_ns);
    frame->frame_id = d->now.current = id;
}

/* The innermost open frame has a row, lasted DURATION_NS, and was called by a counted frame. Its
 * time lies inside the time of the counted frame, which readers subtract as inner_ns from the frame
 * around both; and they subtract this frame's row, too. So take DURATION_NS out of inner_ns. */
static __attribute__((noinline)) void subtract_from_counted_caller(struct decoder *d,
                                                                   uint64_t duration_ns)
{
    uint32_t at = d->stack.count - 1;
    const struct decode_frame *counted = NULL;
    struct count_change *change;

    while (at && d->stack.at[at - 1].counted)
        counted = &d->stack.at[--at];
    if (!counted || !at)
        return;
    change = append_journal_change(d);
    change->caller = counts_find_or_make_cell(d->session->counts, d->stack.at[at - 1].code_id,
                                              counted->counted, OUTCOME_PLAIN);
    change->inner_ns = -(int64_t)duration_ns;
}

/* End the innermost open frame, which is counted and has no row. It lasted DURATION_NS. */
static __attribute__((noinline)) void end_frame_without_row(struct decoder *d, uint64_t duration_ns,
                                                            bool raised)
{
    struct counts *counts = d->session->counts;
    struct decode_frame *frame = innermost_frame(d);
    const struct decode_frame *caller = d->stack.count > 1 ? frame - 1 : NULL;
    struct count_change *change;
    uint32_t cell = frame->cell;

    /* `cell` was chosen when the frame began and its outcome was not known */
    if (frame->outcome != OUTCOME_PLAIN)
        cell = counts_find_or_make_cell(counts, frame->code_id, frame->counted, frame->outcome);
    change = append_journal_change(d);
    change->start_ns = frame->start_ns;
    change->duration_ns = duration_ns;
    change->self_ns = duration_ns > frame->child_ns ? duration_ns - frame->child_ns : 0;
    change->cell = cell == COUNT_NONE ? frame->cell : cell;
    change->is_call = frame->is_call;
    change->raised = raised;
    change->outermost = *count_of_open_frames(d, frame->code_id) == 1;
    if (caller && !caller->counted) {
        change->caller =
            counts_find_or_make_cell(counts, caller->code_id, frame->counted, OUTCOME_PLAIN);
        change->inner_ns = (int64_t)duration_ns;
    }
    frame->duration_ns = duration_ns;
    frame->raised = raised;
    decode_pop_frame(d);
    d->now.counted--;
    /* write the caller again at the next commit, because its time in callees has changed */
    d->changed_from = MIN(d->changed_from, d->now.counted ? d->now.counted - 1 : 0);
}

/* With --thin: can the row of a frame of CODE_ID that took DURATION_NS be left out? Rows are stored
 * for the first million calls of a function, for its slow calls, and for one in a thousand other
 * calls. `slow` estimates from which time on a call is slow. Each slow call raises it by 1/64, each
 * other call lowers it by 1/65536. So about one call in 1,024 is slow. */
static __attribute__((noinline)) bool can_leave_row_out(struct decoder *d, uint32_t code_id,
                                                        uint64_t duration_ns)
{
    struct decode_thin *thin = list_reach(&d->session->thins, code_id);
    const uint64_t most = UINT64_MAX >> (THIN_SHIFT + 1);
    bool is_slow;

    if (!thin)
        return false;
    thin->calls++;
    is_slow = MIN(duration_ns, most) > thin->slow >> THIN_SHIFT;
    if (is_slow)
        thin->slow += (thin->slow >> 6) + (UINT64_C(1) << THIN_SHIFT);
    else
        thin->slow -= thin->slow >> 16;
    return !is_slow && thin->calls > THIN_CALLS && thin->calls % THIN_SHARE;
}

/* Make the cell of a row that has optional columns. REPEATS is set for the row. Not inlined, so
 * that the loop for ordinary rows stays small. */
static __attribute__((noinline)) uint8_t *make_special_cell(uint8_t *cell, uint64_t id,
                                                            const struct frame_row *row,
                                                            const struct frame_repeats *repeats)
{
    return frame_write_cell(cell, id, row, false, repeats);
}

/* End the row in SLOT of FILL, whose id is ID, at time NS: make its cell at offset AT. Returns the
 * cell's size. */
static inline __attribute__((always_inline)) unsigned
row_finish(struct frame_fill *fill, uint32_t slot, uint64_t id, uint32_t at, uint64_t ns,
           unsigned exit, struct frame_repeats *repeats)
{
    struct frame_row *row = &fill->rows[slot];
    const unsigned special = row->kind | row->outcome | exit | row->cache_entry_id;
    uint8_t *cell = fill->cell_bytes + at;
    const uint8_t *end;

    row->end_ns = ns;
    row->exit = (uint8_t)exit;
    row->ended = true;
    fill->cell[slot] = (uint16_t)(at + 1);
    frame_repeats_set(repeats, id, row->code_id, row->thread_id);
    if (special)
        end = make_special_cell(cell, id, row, repeats);
    else
        end = frame_write_cell(cell, id, row, true, repeats);
    return (unsigned)(end - cell);
}

/* End the frame whose row is in SLOT of the page being filled, at time NS. */
static void end_row_on_open_page(struct decoder *d, uint32_t slot, uint64_t ns, unsigned exit)
{
    struct decode_at *now = &d->now;
    struct frame_fill *fill = &d->place->fill;
    struct frame_repeats repeats = FRAME_REPEATS_NONE;
    const uint64_t id = frame_id(now->page, slot);
    const unsigned bytes = row_finish(fill, slot, id, now->cells, ns, exit, &repeats);

    now->cells += bytes;
    now->used -= fill->rows[slot].open_bytes - bytes;
}

/* End frame ID at time NS. Its page was stored or dropped already. */
static void end_stored_row(struct decoder *d, uint64_t id, uint64_t ns, unsigned outcome,
                           unsigned exit)
{
    if (frame_pages_is_dropped(d->session->pages, id))
        traced_write_long_frame_end(d->owner, id, ns, outcome, exit);
    else
        frame_pages_set_frame_end(d->session->pages, id, ns, outcome, exit);
}

/* End the innermost open frame, which has a row. */
static inline __attribute__((always_inline)) void end_frame_with_row(struct decoder *d, uint64_t ns,
                                                                     unsigned exit)
{
    struct decode_at *now = &d->now;
    struct decode_frame *frame = innermost_frame(d);
    uint64_t id = frame->frame_id;
    struct frame_row *row = find_row_on_open_page(d, id);
    bool is_short = ns - frame->start_ns < d->session->min_duration_ns;
    bool is_spare = is_short;
    if (__builtin_expect(d->session->thin, false))
        is_spare = can_leave_row_out(d, frame->code_id, ns - frame->start_ns) || is_short;
    /* the row stays if rows of `lookup`, `span` or `call_args` refer to it */
    bool left_out = is_spare && !frame->looked_up;
    bool is_last = row && row == &d->place->fill.rows[now->rows - 1];
    bool is_on_last_page = (id - 1) / FRAME_PAGE_ROWS == d->last_page;
    unsigned outcome = frame->outcome;

    if (now->counted)
        subtract_from_counted_caller(d, ns - frame->start_ns);
    frame->duration_ns = ns - frame->start_ns;
    frame->raised = exit == EXIT_RAISE;
    decode_pop_frame(d);
    now->current = innermost_frame_id(d);
    /* write the caller again at the next commit, because its time in callees has changed */
    if (now->counted)
        d->changed_from = MIN(d->changed_from, now->counted - 1);

    if (left_out && is_last) {
        /* Commit before the row's place is used for another row, because the last commit may refer
         * to it. */
        d->commit_due = true;
        now->rows--;
        now->used -= row->open_bytes + 2u;
    } else if (row) {
        end_row_on_open_page(d, (uint32_t)(row - d->place->fill.rows), ns, exit);
    } else {
        end_stored_row(d, id, ns, outcome, exit);
        if (left_out && !now->rows && is_on_last_page) {
            /* The row is removed after the next commit, when no committed stack contains its frame
             * any more. Set its end now: if we are killed before the removal, the row stays in the
             * trace. */
            d->dropped = id;
            d->commit_due = true;
        }
    }
}
/* Check the conditions of --snapshot-on for the innermost open frame, which ends at NS. */
static __attribute__((noinline)) void check_snapshot_conditions(struct decoder *d, uint64_t ns,
                                                                unsigned exit)
{
    const struct decode_frame *frame = innermost_frame(d);
    const struct decode_session *session = d->session;
    const uint32_t id = frame->code_id;
    const uint64_t limit = id < session->limits.count ? session->limits.at[id] : 0;

    if (limit && ns - frame->start_ns > limit)
        traced_trigger_slow_call(d->owner, id, ns - frame->start_ns);
    if (d->stack.count == 1)
        traced_note_end_of_outermost_frame(d->owner, exit == EXIT_RAISE);
}

/* End the innermost open frame at time NS. */
static void end_innermost_frame(struct decoder *d, uint64_t ns, unsigned exit)
{
    const struct decode_frame *frame = innermost_frame(d);

    if (__builtin_expect(d->session->limits_on, false))
        check_snapshot_conditions(d, ns, exit);

    if (frame->counted)
        end_frame_without_row(d, ns - frame->start_ns, exit == EXIT_RAISE);
    else
        end_frame_with_row(d, ns, exit);
    if (!d->stack.count)
        /* no frame is open, so no phase runs, even if the word that ends it is missing */
        d->now.phase = PHASE_NONE;
}

/* Can FRAME be the frame with the ordinal ORDINAL in the ring? */
static inline bool can_have_ordinal(const struct decode_frame *frame, uint32_t ordinal)
{
    if (frame->ordinal == DECODE_ANY_ORDINAL)
        return true;
    return (frame->ordinal & RING_ID_MASK) == ordinal;
}

static void decode_exit_word(struct decoder *d, unsigned exit, uint32_t ordinal, uint64_t clock)
{
    uint64_t ns = clock_to_ns(d->session, clock);
    uint32_t at = d->stack.count;
    uint32_t lowest = at > DECODE_SEARCH_MAX ? at - DECODE_SEARCH_MAX : 0;

    /* Nearly always the innermost frame ends. If another frame ends, those inside it have no EXIT,
     * because the C stack was unwound. */
    while (at > lowest && !can_have_ordinal(&d->stack.at[at - 1], ordinal))
        at--;
    if (at == lowest) {
        d->now.unmatched++;
        return;
    }
    d->now.overtaken += d->stack.count - at;
    while (d->stack.count > at)
        end_innermost_frame(d, ns, EXIT_ABANDONED);
    end_innermost_frame(d, ns, exit);
}

/* Store how the call of the innermost open frame was decided: OUTCOME and ENTRY_ID. A second call
 * with the same values changes nothing. */
static void set_call_outcome(struct decoder *d, unsigned outcome, uint32_t entry_id)
{
    struct decode_at *now = &d->now;
    struct decode_frame *frame = innermost_frame(d);
    struct frame_row *row;

    if (!frame)
        return;
    frame->outcome = (uint8_t)outcome;
    if (frame->counted && outcome != OUTCOME_DISABLED)
        write_row_for_counted_frame(d);
    if (frame->counted) {
        d->changed_from = MIN(d->changed_from, now->counted - 1);
        return;
    }
    row = find_row_on_open_page(d, frame->frame_id);
    if (row) {
        unsigned bytes = entry_id ? frame_bytes_of_entry_column(entry_id) : 0;
        row->outcome = (uint8_t)outcome;
        if (!entry_id)
            return;
        if (now->used + bytes <= FRAME_PAGE_ROOM) {
            row->cache_entry_id = entry_id;
            row->open_bytes = (uint8_t)(row->open_bytes + bytes);
            now->used += bytes;
            return;
        }
    } else { /* the row is stored already: set its outcome now, because the frame may never end */
        frame_pages_set_outcome(d->session->pages, frame->frame_id, outcome);
    }
    if (entry_id)
        traced_write_late_cache_entry(d->owner, frame->frame_id, entry_id);
}

/* Decode the end of a lookup. Its checks were decoded before. */
static void decode_lookup_end(struct decoder *d, uint64_t payload, uint64_t clock, uint64_t ticks)
{
    unsigned outcome = payload & 0xff & ~(unsigned)DECISION_OBSERVED;
    uint32_t local = (uint32_t)(payload >> 8);
    uint32_t entry_id = local ? traced_row_id_of_entry(d->owner, local - 1) : 0;
    uint64_t start_ns = decode_clock_to_ns(d->session, clock);
    uint64_t end_ns = decode_clock_to_ns(d->session, clock + ticks);
    bool observed = (payload & DECISION_OBSERVED) != 0;
    struct decode_frame *frame = innermost_frame(d);

    if (frame && frame->counted)
        write_row_for_counted_frame(d);
    if (frame && outcome < OUTCOMES) {
        frame->looked_up = true;
        traced_write_lookup(d->owner, d, start_ns, end_ns - start_ns, outcome, observed, entry_id);
        d->session->last_ns = MAX(d->session->last_ns, end_ns);
    }
    /* The next lookup will overwrite these checks. If the last commit refers to them, commit
     * first. */
    d->commit_due |= d->place->at[d->place->which & 1].check_count != 0;
    d->now.check_count = d->now.compile = d->now.signature = 0;
    if (outcome < OUTCOMES)
        set_call_outcome(d, outcome, entry_id);
}

static void decode_check_word(struct decoder *d, uint64_t payload, uint64_t word)
{
    struct decode_check check = {
        .entry = (uint32_t)(payload >> 8),
        .result = (uint8_t)payload,
        .guards_run = (uint32_t)(word >> 44),
        .failed = (uint32_t)(word >> 24 & 0xfffff),
        .ticks = (uint32_t)(word & 0xffffff),
    };

    if (d->now.check_count == DECODE_CHECKS_MAX)
        return;
    d->place->checks[d->now.check_count] = check;
    d->now.check_count++;
}

/* Make the open frames of THREAD_ID the current stack. Returns true if this collector has seen that
 * stack run, so that its frames are known. */
static bool switch_to_stack_of_thread(struct decoder *d, uint32_t thread_id)
{
    struct decode_stack *to, *from;
    bool known = false;

    for (size_t i = 0; i < d->stack.count; i++)
        --*count_of_open_frames(d, d->stack.at[i].code_id);
    to = list_reach(&d->parked, MAX(thread_id, d->now.thread_id));
    if (to) {
        to = &d->parked.at[thread_id];
        from = &d->parked.at[d->now.thread_id];
        known = to->known;
        from->known = true;
        from->phase = d->now.phase;
        memcpy(&from->frames, &d->stack, sizeof from->frames);
        memcpy(&d->stack, &to->frames, sizeof to->frames);
        memset(&to->frames, 0, sizeof to->frames);
        d->now.phase = to->phase;
    } else {
        d->stack.count = 0; /* without memory the frames stay open in the trace */
        d->now.phase = PHASE_NONE;
    }
    d->now.counted = 0;
    d->changed_from = 0;
    list_each(frame, &d->stack)
        d->now.counted += frame->counted != PHASE_NONE;
    for (size_t i = 0; i < d->stack.count; i++)
        ++*count_of_open_frames(d, d->stack.at[i].code_id);
    d->now.thread_id = thread_id;
    d->now.current = innermost_frame_id(d);
    return known;
}

/* Return the id of the last row of THREAD_ID, which writes to this ring; 0 if it has no row. */
static uint64_t find_last_row_of_thread(struct decoder *d, uint32_t thread_id)
{
    for (uint32_t i = d->now.rows; i--;)
        if (d->place->fill.rows[i].thread_id == thread_id)
            return frame_id(d->now.page, i);
    return frame_pages_find_last_row(d->session->pages, thread_id, d->now.page);
}

/* Decode a CONTROL_SWITCH: from here on another greenlet of the thread runs. LEFT of its frames are
 * still open. Its other frames ended while events were lost (CONTROL_GAP). */
static void switch_greenlet(struct decoder *d, uint32_t local, uint64_t left)
{
    uint32_t thread_id = traced_row_id_of_thread(d->owner, local);

    if (thread_id == d->now.thread_id || switch_to_stack_of_thread(d, thread_id)) {
        while (d->stack.count > left)
            end_innermost_frame(d, decode_clock_to_ns(d->session, d->now.clock), EXIT_ABANDONED);
    } else if (left) {
        /* This collector has not read a frame of this greenlet yet, but an earlier collector has.
         * The greenlet's last row is an open frame, or a frame that an open frame called. */
        push_frames_with_rows_again(d, find_last_row_of_thread(d, thread_id));
        while (d->stack.count > left) {
            --*count_of_open_frames(d, innermost_frame(d)->code_id);
            d->stack.count--;
        }
        d->now.current = innermost_frame_id(d);
    }
}

/* Close all frames that are still open, of all greenlets of the thread, because they will never
 * end. Their rows stay open, and their time until now is added to the totals. */
static void close_open_frames(struct decoder *d)
{
    for (uint32_t id = 0; id <= d->parked.count; id++) {
        d->session->open_frames += d->stack.count - d->now.counted;
        while (d->stack.count) {
            struct decode_frame *frame = innermost_frame(d);
            uint64_t until_ns = MAX(d->session->last_ns, frame->start_ns);
            if (frame->counted) {
                end_frame_without_row(d, until_ns - frame->start_ns, false);
                continue;
            }
            traced_write_frame_left_open(d->owner, frame->frame_id);
            if (d->now.counted)
                subtract_from_counted_caller(d, until_ns - frame->start_ns);
            frame->duration_ns = until_ns - frame->start_ns;
            decode_pop_frame(d);
            /* a commit may come while frames of other greenlets are still to be closed, so keep
             * this current */
            d->now.current = innermost_frame_id(d);
        }
        if (id < d->parked.count && d->parked.at[id].frames.count)
            switch_to_stack_of_thread(d, id);
    }
    for (size_t i = 0; i < d->parked.count; i++)
        list_free(&d->parked.at[i].frames);
    list_free(&d->parked);
    d->now.current = 0;
}

/* Decode a CONTROL_THREAD: the first thread of the ring begins to write, or a new thread takes the
 * ring over. */
static void switch_ring_to_thread(struct decoder *d, uint32_t local, uint64_t clock)
{
    uint64_t ns = decode_clock_to_ns(d->session, d->now.clock);

    /* usually nothing is open: only a thread that was cancelled has open frames at its end */
    while (d->stack.count)
        end_innermost_frame(d, ns, EXIT_ABANDONED);
    close_open_frames(d);
    close_filled_page(d);
    d->now.clock = clock;
    d->now.entered = 0;
    d->now.current = 0;
    d->now.phase = PHASE_NONE;
    d->now.thread_id = traced_row_id_of_thread(d->owner, local);
    d->commit_due = true;
}

/* Decode a CONTROL_GAP: LOST frames were not recorded since clock SINCE. LEFT of the frames that
 * were open then are still open, and the innermost of these has the ordinal ORDINAL. The others
 * get SINCE as their end, because nobody knows when they ended. BEFORE is the clock of the last
 * event. */
static void decode_gap(struct decoder *d, uint64_t left, uint32_t ordinal, uint64_t since,
                       uint64_t before, uint64_t lost)
{
    uint64_t ns = decode_clock_to_ns(d->session, since > before ? since : before);
    uint64_t end_ns = decode_clock_to_ns(d->session, d->now.clock);
    uint32_t at = left ? d->stack.count : 0;
    char cause[160];

    while (left != RING_ALL && at && d->stack.at[at - 1].ordinal != ordinal)
        at--;
    /* no frame has this ordinal, because an earlier collector decoded its ENTER: go by the number
     * of open frames */
    if (!at && left)
        at = left < d->stack.count ? (uint32_t)left : d->stack.count;
    while (d->stack.count > at)
        end_innermost_frame(d, ns, EXIT_ABANDONED);
    d->now.check_count = d->now.compile = d->now.signature = 0;
    d->now.phase = PHASE_NONE; /* the phase may have ended in the gap */
    snprintf(cause, sizeof cause,
             "collector: it took nothing, so the program went on after --max-stall; frames of the "
             "next %.3f s were not recorded",
             (double)(end_ns > ns ? end_ns - ns : 0) / 1e9);
    traced_write_loss(d->owner, d->now.thread_id, ns, lost, cause);
    d->commit_due = true;
}

/* Return how many words the two texts of a CONTROL_SPAN take. */
static uint32_t words_of_span_texts(uint64_t sizes)
{
    return (uint32_t)(((sizes >> 16 & 0xffff) + (sizes & 0xffff) + 7) / 8);
}

/* Decode a CONTROL_SPAN: a span begins. */
static void decode_span_begin(struct decoder *d, const uint64_t *words)
{
    const char *texts = (const char *)(words + 3);
    struct decode_frame *frame = innermost_frame(d);
    int64_t name = (int64_t)(words[2] >> 16 & 0xffff);
    int64_t attributes = (int64_t)(words[2] & 0xffff);
    struct decode_span made = {
        .local = (uint32_t)words[0],
        .parent = (uint32_t)(words[2] >> 32),
        .kind = (unsigned)(words[0] >> 32 & 0xff),
        .start_ns = decode_clock_to_ns(d->session, d->now.clock),
        .name = {texts, name},
        .attributes = {texts + name, attributes},
    };

    if (frame)
        /* the frame's row must stay, because a row of `span` refers to it */
        frame->looked_up = true;
    if (made.kind < SPAN_KINDS)
        traced_write_span(d->owner, d, &made);
}

/* Decode a CONTROL_ARGS: arguments or the result of the innermost frame. */
static void decode_argument_text(struct decoder *d, const uint64_t *words)
{
    const struct fact_text text = {(const char *)(words + 2), (int64_t)(words[1] & 0xffff)};
    struct decode_frame *frame = innermost_frame(d);

    if (frame && frame->counted)
        write_row_for_counted_frame(
            d); /* the frame needs a row, because a row of `call_args` refers to it */
    if (!frame || frame->counted)
        return;
    frame->looked_up = true;
    traced_write_call_arguments(d->owner, frame->frame_id, RING_WORD_LOW(words[0]) == CALL_RESULT,
                                text);
}

/* Is the length of the CONTROL record at WORDS, of which COUNT words are available, that of its
 * kind? LENGTH is the length of such a record without its texts, or 0 if there is no such kind.
 * Only a CONTROL_SPAN or a CONTROL_ARGS has texts. */
static bool has_valid_record_length(const uint64_t *words, size_t count, uint32_t length)
{
    uint32_t said = RING_WORD_COUNT(words[0]);
    uint32_t texts = 0;

    unsigned what = RING_WORD_WHAT(words[0]);
    bool has_texts = what == CONTROL_SPAN || what == CONTROL_ARGS;

    if (!has_texts || said < length)
        return length && said == length;
    if (count >= length && what == CONTROL_SPAN)
        texts = words_of_span_texts(words[2]);
    else if (count >= length)
        texts = (uint32_t)(((words[1] & 0xffff) + 7) / 8);
    else
        /* believe the length for now, because the word with the texts' sizes is not available
         * yet */
        texts = said - length;
    return said == length + texts && texts <= (RING_SPAN_BYTES + 7) / 8;
}

/* Decode the CONTROL record at WORDS, where COUNT words are available. Returns how many words it
 * took, or 0 if the record is incomplete. */
static size_t decode_control_record(struct decoder *d, const uint64_t *words, size_t count)
{
    uint64_t word = words[0];
    uint32_t length = RING_WORD_COUNT(word);
    static const uint8_t lengths[] = {
        [CONTROL_EPOCH] = 2,    [CONTROL_THREAD] = 2,  [CONTROL_ENTER] = 2, [CONTROL_STALL] = 3,
        [CONTROL_GAP] = 4,      [CONTROL_SWITCH] = 3,  [CONTROL_CHECK] = 2, [CONTROL_COMPILED] = 2,
        [CONTROL_DECISION] = 3, [CONTROL_OUTCOME] = 1, [CONTROL_SPAN] = 3,  [CONTROL_SPAN_END] = 2,
        [CONTROL_ARGS] = 2,     [CONTROL_PHASE] = 1,   [CONTROL_KEEP] = 1,
    };
    unsigned what = RING_WORD_WHAT(word);
    bool is_span = what == CONTROL_SPAN || what == CONTROL_SPAN_END;
    bool is_known =
        has_valid_record_length(words, count, what < sizeof lengths ? lengths[what] : 0);
    uint64_t before = d->now.clock;
    char cause[96];
    /* is this an event, whose time is the full clock in the record's second word? */
    bool event = what <= CONTROL_SWITCH || is_span;
    /* does this record end a stretch? A wait for the collector does not */
    bool ends_stretch =
        is_span || what == CONTROL_EPOCH || what == CONTROL_ENTER || what == CONTROL_SWITCH;

    if (is_known && length > count)
        return 0;
    if (!is_known || ((event || what == CONTROL_DECISION) && words[1] >> CLOCK_BITS_MAX) ||
        ((what == CONTROL_DECISION || what == CONTROL_GAP) && words[2] >> CLOCK_BITS_MAX) ||
        (what == CONTROL_ENTER && RING_WORD_LOW(word) >> 37 > RING_INHERITED)) {
        mark_ring_broken(
            d, "ring: it holds a word that dyntrace never writes; the rest of this thread was "
               "not taken");
        return 1;
    }
    if (ends_stretch && words[1] >= before + d->session->stretch_ticks)
        report_quiet_stretch(d, words[1] - before);
    if (event && what != CONTROL_THREAD) {
        d->now.backwards += words[1] < before;
        d->now.clock = words[1] < before ? before : words[1];
    }
    switch (what) {
    case CONTROL_THREAD:
        switch_ring_to_thread(d, (uint32_t)RING_WORD_LOW(word), words[1]);
        break;
    case CONTROL_ENTER:
        begin_frame(d, (unsigned)(RING_WORD_LOW(word) >> 37), (uint32_t)RING_WORD_LOW(word),
                    d->now.clock);
        break;
    case CONTROL_STALL:
        snprintf(cause, sizeof cause, LOSS_WAIT "%.1f ms for the collector",
                 (double)words[2] / 1e6);
        traced_write_loss(d->owner, d->now.thread_id, decode_clock_to_ns(d->session, d->now.clock),
                          0, cause);
        break;
    case CONTROL_GAP:
        decode_gap(d, RING_WORD_LOW(word), (uint32_t)words[3],
                   words[2] < d->now.clock ? words[2] : d->now.clock, before, words[3] >> 32);
        break;
    case CONTROL_SWITCH:
        switch_greenlet(d, (uint32_t)RING_WORD_LOW(word), words[2]);
        break;
    case CONTROL_CHECK:
        decode_check_word(d, RING_WORD_LOW(word), words[1]);
        break;
    case CONTROL_COMPILED:
        d->now.compile = (uint32_t)RING_WORD_LOW(word);
        d->now.signature = (uint32_t)words[1];
        break;
    case CONTROL_DECISION:
        decode_lookup_end(d, RING_WORD_LOW(word), words[1], words[2]);
        break;
    case CONTROL_SPAN:
        decode_span_begin(d, words);
        break;
    case CONTROL_SPAN_END:
        traced_write_span_end(d->owner, (uint32_t)RING_WORD_LOW(word),
                              decode_clock_to_ns(d->session, d->now.clock));
        break;
    case CONTROL_ARGS:
        decode_argument_text(d, words);
        break;
    case CONTROL_OUTCOME:
        if (RING_WORD_LOW(word) < OUTCOMES)
            set_call_outcome(d, (unsigned)RING_WORD_LOW(word), 0);
        break;
    case CONTROL_PHASE:
        if (d->session->counts && RING_WORD_LOW(word) < PHASES)
            d->now.phase = (uint8_t)RING_WORD_LOW(word);
        break;
    case CONTROL_KEEP:
        d->now.keep = true;
        break;
    }
    return length;
}

/* ---- decode a run of ordinary words faster ---- */

/* May decode_in_fast_loop() be used now? Not without a page, not with options that select frames,
 * and not in a phase of torch's work. If the innermost frame's callees are in no phase, those of
 * the frames around it are in none either. */
static bool can_decode_in_fast_loop(struct decoder *d)
{
    const struct decode_session *session = d->session;
    const struct decode_at *now = &d->now;
    bool is_ready = now->thread_id && now->page != DECODE_NO_PAGE && !d->broken;
    bool is_selective = session->thin || session->limits_on || session->min_duration_ns;
    bool is_in_phase = phase_of_next_call(d) || now->keep || now->counted;

    return is_ready && !is_selective && !is_in_phase && is_time_of_run(session, now->clock);
}

/* What decode_in_fast_loop() keeps in local variables. The compiler would load a member of `now`
 * again after each byte that is stored in a cell, because such a byte may belong to any object. */
struct run {
    /* these do not change in a run */
    struct decoder *d;
    struct frame_fill *fill;
    struct decode_total *totals; /* by code_id */
    uint32_t *active;            /* by code_id */
    size_t known;                /* number of items of `totals` and `active` */
    uint64_t far;                /* the clock moves less than this from one word to the next */
    uint64_t first_id;           /* id of the first row of the page being filled */
    uint32_t thread_id;
    struct decode_frame *bottom; /* the outermost frame of the stack */
    /* these are members of decode_at, and the stack's end */
    uint64_t clock, current;
    uint32_t entered, rows, used, cells;
    struct decode_frame *top;      /* the next free element of the stack */
    struct frame_repeats *repeats; /* borrowed */
};

static inline __attribute__((always_inline)) struct run run_open(struct decoder *d,
                                                                 struct frame_repeats *repeats)
{
    const struct decode_session *session = d->session;
    const struct decode_at *now = &d->now;

    return (struct run){
        .d = d,
        .fill = &d->place->fill,
        .totals = session->totals.at,
        .active = d->active.at,
        .known = MIN(session->totals.count, d->active.count),
        .far = MIN(session->stretch_ticks, (RING_CLOCK_MASK >> 1) + 1),
        .first_id = frame_id(now->page, 0),
        .thread_id = now->thread_id,
        .bottom = d->stack.at,
        .clock = now->clock,
        .current = now->current,
        .entered = now->entered,
        .rows = now->rows,
        .used = now->used,
        .cells = now->cells,
        .top = d->stack.at + d->stack.count,
        .repeats = repeats,
    };
}

/* Store what a run has changed, which took WORDS words. */
static inline __attribute__((always_inline)) void run_close(const struct run *run, uint64_t words)
{
    struct decode_at *now = &run->d->now;

    now->begun += run->rows - now->rows;
    now->clock = run->clock;
    now->current = run->current;
    now->entered = run->entered;
    now->rows = run->rows;
    now->used = run->used;
    now->cells = run->cells;
    now->tail += words;
    run->d->stack.count = (size_t)(run->top - run->bottom);
}

/* End the row in SLOT at time NS. Returns the size of its cell. */
static inline __attribute__((always_inline)) unsigned run_end_row(struct run *run, uint32_t slot,
                                                                  uint64_t ns, unsigned exit)
{
    const uint64_t id = run->first_id + slot;
    const unsigned bytes = row_finish(run->fill, slot, id, run->cells, ns, exit, run->repeats);

    run->cells += bytes;
    return bytes;
}

/* Decode a frame that calls nothing: it begins at START_NS and ends at END_NS. */
static inline __attribute__((always_inline)) void run_add_leaf(struct run *run, enum ring_tag tag,
                                                               uint32_t code_id, uint64_t start_ns,
                                                               uint64_t end_ns, unsigned exit)
{
    struct decode_total *total = &run->totals[code_id];
    struct decode_frame *caller = run->top > run->bottom ? &run->top[-1] : NULL;
    uint64_t duration_ns;
    uint64_t self_ns;

    row_set(run->fill, run->rows, run->current, run->thread_id, code_id, tag, start_ns, 0);
    run->used += 2 + run_end_row(run, run->rows, end_ns, exit);
    run->rows++;
    run->entered++;
    total->calls += tag == RING_CALL;
    duration_ns = end_ns - start_ns;
    self_ns =
        add_ended_frame_to_total(total, duration_ns, 0, exit == EXIT_RAISE, run->active[code_id]);
    add_library_time(total, self_ns, 0, caller);
    if (caller)
        caller->child_ns += duration_ns;
}

/* Begin a frame and push it. */
static inline __attribute__((always_inline)) void
run_begin_frame(struct run *run, enum ring_tag tag, uint32_t code_id, uint64_t ns)
{
    const uint64_t id = run->first_id + run->rows;
    struct decode_total *total = &run->totals[code_id];
    unsigned bytes;

    frame_repeats_set(run->repeats, id, code_id, run->thread_id);
    bytes = frame_open_bytes(run->repeats, id, run->current, tag, ns);
    row_set(run->fill, run->rows, run->current, run->thread_id, code_id, tag, ns, bytes);
    run->used += bytes + 2;
    run->rows++;
    total->changed = true;
    total->calls += tag == RING_CALL;
    run->active[code_id]++;
    *run->top++ = (struct decode_frame){.frame_id = id,
                                        .start_ns = ns,
                                        .code_id = code_id,
                                        .ordinal = run->entered,
                                        .is_call = tag == RING_CALL};
    run->entered++;
    run->current = id;
}

/* Pop the innermost frame, which ends at END_NS. */
static inline __attribute__((always_inline)) void run_end_frame(struct run *run, uint64_t end_ns,
                                                                unsigned exit)
{
    const struct decode_frame *frame = --run->top;
    const uint64_t slot = frame->frame_id - run->first_id;
    const uint64_t duration_ns = end_ns - frame->start_ns;
    struct decode_total *total = &run->totals[frame->code_id];
    uint32_t *active = &run->active[frame->code_id];
    struct decode_frame *caller = run->top > run->bottom ? &run->top[-1] : NULL;
    uint64_t self_ns;

    *active -= *active > 0;
    self_ns =
        add_ended_frame_to_total(total, duration_ns, frame->child_ns, exit == EXIT_RAISE, *active);
    add_library_time(total, self_ns, frame->library_ns, caller);
    if (frame->outcome == OUTCOME_SKIP)
        total->skipped += frame->is_call;
    run->current = 0;
    if (caller) {
        run->current = caller->frame_id;
        caller->child_ns += duration_ns;
    }
    if (slot < run->rows) {
        const unsigned open_bytes = run->fill->rows[slot].open_bytes;
        run->used -= open_bytes - run_end_row(run, (uint32_t)slot, end_ns, exit);
    } else {
        end_stored_row(run->d, frame->frame_id, end_ns, frame->outcome, exit);
    }
}

/* Does WORD end the frame with the ordinal ORDINAL? */
static inline bool is_exit_of_frame(uint64_t word, uint32_t ordinal)
{
    return (word >> 61) - RING_RETURN < 3 && RING_WORD_ID(word) == (ordinal & RING_ID_MASK);
}

/* Does an EXIT of the frame with the ordinal ORDINAL end the innermost frame? */
static inline bool run_can_end(const struct run *run, uint32_t ordinal)
{
    return run->top > run->bottom && can_have_ordinal(&run->top[-1], ordinal) &&
           run->top[-1].code_id < run->known;
}

/* Has the stack room for a frame, and the page for its row? */
static inline bool run_has_room(const struct run *run, const struct decode_frame *stack_end)
{
    return run->top < stack_end && run->rows < FRAME_PAGE_ROWS &&
           run->used + FRAME_CELL_MOST + 2 <= FRAME_PAGE_ROOM;
}

/* Decode words from P on, up to the first that is not one of these:
 *
 *     an ENTER of a code object that has a row, if the page has room for the new row
 *     an EXIT of the innermost frame
 *
 * Does the same as begin_frame() and decode_exit_word() would, but faster: no lookup can fail, and
 * a frame whose ENTER and EXIT are neighbours is not pushed, because it calls nothing. Commits
 * nothing. Returns the first word that was not decoded. */
static const uint64_t *decode_in_fast_loop(struct decoder *d, const uint64_t *p,
                                           const uint64_t *stop)
{
    const struct decode_session *session = d->session;
    const struct counts *counts = session->counts;
    const uint32_t *codes = d->codes->at;
    const size_t codes_count = d->codes->count;
    const struct decode_frame *stack_end = d->stack.at + d->stack.room;
    const uint64_t *begin = p;
    struct frame_repeats repeats = FRAME_REPEATS_NONE;
    struct run run = run_open(d, &repeats);

    stop = MIN(stop, p + MIN(stop - p, RUN_WORDS_MAX));
    for (; p < stop; p++) {
        const uint64_t word = *p;
        const uint64_t ahead = (word - run.clock) & RING_CLOCK_MASK;
        const enum ring_tag tag = RING_WORD_TAG(word);
        const uint32_t local = RING_WORD_ID(word);
        const uint64_t ns = ns_of_run(session, run.clock + ahead);
        uint64_t next_ahead;
        uint32_t code_id;
        bool is_known;

        if (ahead >= run.far || tag == RING_CONTROL)
            break;
        if (tag >= RING_RETURN) {
            if (!run_can_end(&run, local))
                break;
            run.clock += ahead;
            run_end_frame(&run, ns, (unsigned)tag - RING_RETURN);
            continue;
        }
        code_id = local < codes_count ? codes[local] : 0;
        is_known = code_id && code_id < run.known;
        if (!is_known || !run_has_room(&run, stack_end))
            break;
        if (counts && counts_is_torch_module_body(counts, code_id))
            break;
        run.clock += ahead;
        next_ahead = p + 1 < stop ? (p[1] - run.clock) & RING_CLOCK_MASK : run.far;
        if (next_ahead < run.far && is_exit_of_frame(p[1], run.entered)) {
            p++;
            run.clock += next_ahead;
            run_add_leaf(&run, tag, code_id, ns, ns_of_run(session, run.clock),
                         (unsigned)RING_WORD_TAG(*p) - RING_RETURN);
        } else {
            run_begin_frame(&run, tag, code_id, ns);
        }
    }
    run_close(&run, (uint64_t)(p - begin));
    return p;
}

/* ---- open, use and close a decoder ---- */

/* After a restart: open those rows again whose cells were made after the last commit. Their ends
 * will be decoded again. */
static void reopen_uncommitted_rows(struct decoder *d)
{
    struct frame_fill *fill = &d->place->fill;

    d->now.rows = MIN(d->now.rows, FRAME_PAGE_ROWS);
    d->now.cells = MIN(d->now.cells, FRAME_PAGE_ROOM);
    /* keeps cells within the page, even if the memory was damaged */
    d->now.used = MAX(d->now.used, d->now.cells);
    for (uint32_t i = 0; i < d->now.rows; i++) {
        if (fill->cell[i] && fill->cell[i] <= d->now.cells)
            continue;
        fill->cell[i] = 0;
        fill->rows[i].end_ns = 0;
        fill->rows[i].exit = 0;
        fill->rows[i].ended = false;
    }
}

void decode_open(struct decoder *d, struct decode_session *session, struct traced *owner,
                 const decode_ids *codes, struct decode_place *place)
{
    *d = (struct decoder){.session = session,
                          .owner = owner,
                          .codes = codes,
                          .place = place,
                          .last_page = DECODE_NO_PAGE};
    d->now = place->at[place->which & 1];
    if (d->now.check_count > DECODE_CHECKS_MAX)
        d->now.check_count = 0;
    if (!d->now.thread_id && !d->now.tail) {
        d->now.page = DECODE_NO_PAGE;
        return;
    }
    reopen_uncommitted_rows(d);
    session->last_ns = MAX(session->last_ns, decode_clock_to_ns(session, d->now.clock));
    d->counts = session->counts ? traced_find_journal(owner, d, false) : NULL;
    if (!d->counts)
        d->now.counted = d->now.changes = 0;
    d->now.counted = MIN(d->now.counted, COUNT_DEPTH);
    d->now.changes = MIN(d->now.changes, COUNT_CHANGES);
    push_frames_with_rows_again(d, d->now.current);
    if (d->counts)
        finish_journal_of_killed_collector(d);
}

size_t decode_words(struct decoder *d, const uint64_t *words, size_t count)
{
    const uint64_t *p = words;
    const uint64_t *stop = words + count;

    while (p < stop) {
        uint64_t word;
        enum ring_tag tag;
        size_t taken = 1;

        if (can_decode_in_fast_loop(d))
            p = decode_in_fast_loop(d, p, stop);
        if (p == stop)
            break;
        word = *p;
        tag = RING_WORD_TAG(word);

        if (d->broken)
            /* take the words unread: the ring is broken, but the program must not wait for room */
            taken = (size_t)(stop - p);
        else if (tag == RING_CONTROL)
            taken = decode_control_record(d, p, (size_t)(stop - p));
        else if (!d->now.thread_id)
            mark_ring_broken(d, "ring: it begins without a thread; its events were not read");
        else if (tag <= RING_INHERITED)
            begin_frame(d, tag, RING_WORD_ID(word),
                        complete_clock_from_low_bits(d, RING_WORD_LOW(word)));
        else
            decode_exit_word(d, (unsigned)tag - RING_RETURN, RING_WORD_ID(word),
                             complete_clock_from_low_bits(d, RING_WORD_LOW(word)));
        if (!taken)
            break;
        p += taken;
        /* after all else: if a kill comes before this line, the record is decoded again */
        d->now.tail += taken;
        if (d->now.changes > COUNT_CHANGES / 2)
            add_journal_to_cells(d);
        if (d->commit_due) {
            commit_decoded_state(d);
            d->commit_due = false;
            if (d->dropped)
                frame_pages_remove_row(d->session->pages, d->dropped);
            d->dropped = 0;
        }
    }
    commit_decoded_state(d);
    d->session->last_ns = MAX(d->session->last_ns, decode_clock_to_ns(d->session, d->now.clock));
    return (size_t)(p - words);
}

static void report_lost_events(struct decoder *d, uint64_t *events, const char *cause)
{
    if (*events)
        traced_write_loss(d->owner, d->now.thread_id, decode_clock_to_ns(d->session, d->now.clock),
                          *events, cause);
    *events = 0; /* the change is committed, so that the loss is reported once */
}

/* Report the last stretch, with the innermost open frame. It ends with the last event of the
 * recording, because no event of this thread follows. */
static void report_last_quiet_stretch(struct decoder *d)
{
    const struct decode_frame *frame = innermost_frame(d);
    uint64_t from_ns = decode_clock_to_ns(d->session, d->now.clock);
    uint64_t to_ns = d->session->last_ns;

    if (frame && to_ns >= from_ns + d->session->stretch_ns)
        traced_write_quiet_stretch(d->owner, d->now.thread_id, frame, from_ns, to_ns);
}

void decode_close(struct decoder *d)
{
    close_filled_page(d);
    report_last_quiet_stretch(d);
    close_open_frames(d);
    report_lost_events(d, &d->now.unmatched,
                       "order: exits of frames that were not open were left out");
    report_lost_events(d, &d->now.overtaken,
                       "order: frames ended after the frame around them; they end with it");
    report_lost_events(d, &d->now.backwards,
                       "clock: it went backwards on this thread; the time before was kept");
    add_journal_to_cells(d);
    commit_decoded_state(d);
    list_free(&d->stack);
    list_free(&d->active);
}
