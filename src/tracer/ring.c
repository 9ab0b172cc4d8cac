/* tracer/ring.c -- threads and their rings: attaching, waiting for room, gaps. See ring.h.
 *
 * Runs in: the traced process; everything here is a slow path.
 *
 * A ring belongs to one thread at a time. When the thread ends, the ring goes to a free list. The
 * next thread that takes the ring writes a CONTROL_THREAD word and continues behind the old words.
 * A thread that finds its ring full waits, and releases the GIL if that takes long.
 *
 * When the collector takes nothing for --max-stall, or the filesystem is full, the thread continues
 * in a *gap*: it writes nothing and counts frames. The gap ends with the first event for which
 * there is room. A CONTROL_GAP then gives the number of lost frames and tells which of the earlier
 * open frames are still open. CONTROL_ENTER words name the open frames that began in the gap. A
 * forked child also writes CONTROL_ENTER words for its open frames, which it knows because struct
 * open_frame lies on the C stack, and the child has a copy of that stack. Each greenlet has its own
 * frames and its own FACT_THREAD; words belong to one greenlet until the next CONTROL_SWITCH.
 *
 * Without a GIL: each ring has one writer, its thread. A session ends while the world is stopped,
 * so no writer is between two words then. Reading a thread's name may wait, so P.session is checked
 * again afterwards. */
#include "tracer/file.h"
#include "tracer/hooks.h"
#include "tracer/record.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    WAIT_MS = 20, /* how often a waiting thread checks whether the session is over */
    /* how long a waiting thread holds the GIL, as CPython's switch interval */
    HOLD_MS = 5,
    STALL_MS = 10,          /* a longer wait for the collector gets a loss row */
    RESERVE_STEP = 2 << 20, /* the most bytes of a ring that get memory in one step */
    /* How many bytes of a forked child's ring get memory at first. A child often ends after some
     * hundred events, and clearing pages that it never writes would take most of its time. */
    RESERVE_FORKED = 32 << 10,
};

#define P tracer_process
#define MS UINT64_C(1000000)

/* A thread has waited for --max-stall in vain. Other threads do not wait until the collector has
 * taken something. */
static _Atomic bool stalled;
/* number of threads that wait for the collector, with or without the GIL */
static _Atomic unsigned sleepers;
static _Atomic bool closing; /* all threads that wait for the collector must stop waiting */

/* The following variables are guarded by tracer_lock(). */
static uint64_t ring_bytes_used;
static struct ring *free_rings[RING_MAX]; /* rings whose threads have ended, for new threads */
static unsigned free_ring_count;
static struct tracer *all_tracers;

/* calls free_tracer_of_ended_thread() at the end of a thread; made under tracer_lock() */
static pthread_key_t thread_key;
static bool thread_key_made;

/* ---- make rings and read the names of threads ---- */

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* If the address space is limited (ulimit -v), return a 64th of it: the most bytes that a ring may
 * take, because the program needs most of it. */
static uint64_t most_ring_bytes_of_address_space(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_AS, &limit) ? UINT64_MAX : limit.rlim_cur / 64;
}

/* Make a ring. Each further ring of a process is smaller, so that even hundreds of threads stay
 * near the session's budget; beyond the budget a ring has 64 KB. Returns NULL if there is no room;
 * the process file then counts one more thread without a ring. */
static struct ring *make_ring(void)
{
    uint64_t left =
        P.session->budget_bytes > ring_bytes_used ? P.session->budget_bytes - ring_bytes_used : 0;
    uint64_t bytes = P.session->ring_bytes;
    uint64_t share = most_ring_bytes_of_address_space();
    uint64_t first = RESERVE_STEP; /* how many bytes of the ring get memory at once */
    uint64_t offset;
    uint32_t n = atomic_load_explicit(&P.file->rings, memory_order_relaxed);
    struct ring *ring = NULL;

    /* small for a forked process, which is often one of many and ends soon */
    if (P.file->parent_file[0]) {
        bytes /= 4;
        first = RESERVE_FORKED;
    }
    while (n && bytes > RING_SMALLEST && bytes > left / 4)
        bytes /= 2;
    while (bytes > RING_SMALLEST && bytes > share)
        bytes /= 2;
    errno = EAGAIN;
    while (n < RING_MAX &&
           !(ring = file_allocate_extent(RING_HEADER + bytes,
                                         RING_HEADER + smaller_of(first, bytes), &offset)) &&
           bytes > RING_SMALLEST)
        bytes /= 2;
    if (ring) {
        ring_bytes_used += bytes;
        ring->words = bytes / sizeof(uint64_t);
        ring->reserved = smaller_of(first, bytes) / sizeof(uint64_t);
        ring->offset = offset;
        P.file->ring_off[n] = offset;
        atomic_store_explicit(&P.file->rings, n + 1, memory_order_release);
    } else {
        atomic_fetch_add(&P.file->lost_threads, 1);
        atomic_store(&P.file->lost_error, (uint32_t)errno);
    }
    return ring;
}

/* Return a ring for the running thread: a new one, or one of an ended thread of which the collector
 * has taken all but half. Returns NULL if there is no room. */
static struct ring *get_ring_for_thread(void)
{
    for (unsigned i = free_ring_count; i-- > 0;) {
        struct ring *ring = free_rings[i];
        if (atomic_load_explicit(&ring->head, memory_order_relaxed) -
                atomic_load_explicit(&ring->tail, memory_order_acquire) <=
            ring->words / 2) {
            free_rings[i] = free_rings[--free_ring_count];
            return ring;
        }
    }
    return make_ring();
}

/* If `threading` has generated NAME, keep only the generated part, "Thread-1". If the program has
 * chosen it, make it "". */
static void reduce_to_generated_name(char *name)
{
    static const char *const made_up[] = {"Thread-", "Dummy-", "ThreadPoolExecutor-", "asyncio_"};

    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        size_t length = strlen(made_up[i]);
        if (!strncmp(name, made_up[i], length)) {
            /* without the name of the program's function: "Thread-1 (work)" -> "Thread-1" */
            name[length + strspn(name + length, "0123456789_")] = 0;
            return;
        }
    }
    name[0] = 0;
}

/* Return the outermost Python frame among FRAME and its callers; NULL if FRAME is NULL. */
static compat_frame *find_outermost(compat_frame *frame)
{
    compat_frame *outer;

    while ((outer = frame ? compat_find_python_frame(frame->previous) : NULL))
        frame = outer;
    return frame;
}

/* Does TYPE, a subclass of Thread, have an attribute `_name`? It could be a property, which must
 * not be called. */
static bool has_name_attribute(PyTypeObject *type)
{
    OWNED PyObject *name = PyUnicode_InternFromString("_name");
    OWNED PyObject *found = name ? compat_type_lookup(type, name) : NULL;

    return found || !name;
}

/* Copy the name of thread T, as Python knows it, to NAME; "" if it is not known. FRAME is the
 * thread's first frame. In a thread of `threading` that is Thread._bootstrap, whose self has the
 * name as a plain attribute. No __getattr__ and no property is called, so no code of the program
 * runs. */
static void read_thread_name(const struct tracer *t, compat_frame *frame, char *name, size_t room)
{
    PyObject *self = frame ? compat_get_local(frame, 0) : NULL;
    PyObject *value, *keep;
    size_t bytes;

    name[0] = 0;
    if ((uint64_t)getpid() == t->os_tid) {
        snprintf(name, room, "MainThread");
        return;
    }
    if (!self || Py_TYPE(self)->tp_getattro != PyObject_GenericGetAttr ||
        PyUnicode_CompareWithASCIIString(compat_get_code(frame)->co_qualname, "Thread._bootstrap"))
        return;
    value = has_name_attribute(Py_TYPE(self)) ? NULL : tracer_get_attribute(self, "_name");
    if (value && PyUnicode_Check(value)) {
        const char *text = values_convert_to_utf8(value, room - 1, &bytes, &keep);
        memcpy(name, text, bytes);
        name[bytes] = 0;
        if (values_get_session_option() != SESSION_VALUES_ALL)
            reduce_to_generated_name(name);
        Py_XDECREF(keep);
    }
    Py_XDECREF(value);
    PyErr_Clear();
}

/* ---- wait until the ring has room ---- */

/* Has the collector stopped reading this process's rings, because the session is over, or because
 * it has found the file corrupt? */
static bool has_collector_stopped_reading(void)
{
    return atomic_load(&P.session->closed) || (P.file && atomic_load(&P.file->abandoned));
}

/* Get memory for the next part of the ring: as much again as it has, but at most RESERVE_STEP.
 * Returns false if the filesystem is full. */
static bool reserve_next_part_of_ring(struct ring *ring)
{
    uint64_t has = ring->reserved * sizeof(uint64_t);
    uint64_t bytes = smaller_of(has, RESERVE_STEP);

    if (file_reserve_memory((char *)ring + RING_HEADER + has, bytes))
        return false;
    ring->reserved += bytes / sizeof(uint64_t);
    return true;
}

/* Read the tail of thread T's ring again. Returns true if the ring has room for a control word and
 * an event. If false with T->limit 0, the filesystem is full. */
static bool refresh_ring_room(struct tracer *t)
{
    /* Barrier D of ring.h: it matches barrier C in the collector. */
    uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);

    t->limit = tail + t->mask + 1 - RING_MARGIN;
    /* the ring is being written for the first time, so its memory may end before it */
    if (t->ring->reserved <= t->mask) {
        if (t->head + RING_MARGIN >= t->ring->reserved && !reserve_next_part_of_ring(t->ring))
            t->limit = 0;
        else if (t->limit > t->ring->reserved - RING_MARGIN)
            t->limit = t->ring->reserved - RING_MARGIN;
    }
    return t->head < t->limit;
}

static bool has_tail_passed(const struct ring *ring, uint64_t full)
{
    return (int64_t)(atomic_load_explicit(&ring->tail, memory_order_acquire) - full) > 0;
}

/* Sleep until the collector has taken words of the full ring, at most for --max-stall. Returns
 * false if it has taken nothing. During the first HOLD_MS the GIL stays held, because releasing it
 * can reorder the program's threads; then it is released if MAY_LET_GO. From then on the ring is
 * not touched, because even the session may be another one. */
static bool wait_for_collector(struct tracer *t, bool may_let_go, uint64_t *waited)
{
    const uint64_t began = clock_monotonic_ns();
    const uint64_t most = atomic_load(&stalled) ? 0 : P.session->max_stall_ns;
    struct ring *ring = t->ring;
    /* the ring has room as soon as its tail has passed this count */
    const uint64_t full = t->head - t->mask - 1 + RING_MARGIN;
    PyThreadState *let_go = NULL;
    uint64_t now = began;
    bool moved;

    atomic_fetch_add(&sleepers, 1);
    while (!(moved = has_tail_passed(ring, full)) && now - began < most &&
           !has_collector_stopped_reading() && !atomic_load(&closing)) {
        uint64_t left = most - (now - began);
        uint64_t step = may_let_go && !let_go ? HOLD_MS * MS : WAIT_MS * MS;
        struct timespec timeout = {0, (long)(left < step ? left : step)};
        if (may_let_go && !let_go && now - began >= HOLD_MS * MS)
            let_go = PyEval_SaveThread();
        atomic_store(&ring->waiting, 1);
        if (!has_tail_passed(ring, full))
            syscall(SYS_futex, &ring->waiting, FUTEX_WAIT, 1, &timeout, NULL, 0);
        now = clock_monotonic_ns();
    }
    ring->waits++;
    ring->wait_ns += now - began;
    *waited += now - began;
    atomic_store(&stalled, !moved);
    atomic_fetch_sub(&sleepers, 1);
    if (let_go)
        PyEval_RestoreThread(let_go);
    return moved;
}

/* Wait until there is room, with the GIL held, and without beginning a gap. Returns false if there
 * is no room. */
static bool wait_for_room_with_gil(struct tracer *t, uint64_t *now)
{
    uint64_t waited = 0;
    bool room = refresh_ring_room(t);

    if (!room && t->limit && wait_for_collector(t, false, &waited)) {
        *now = tracer_read_session_clock();
        room = refresh_ring_room(t);
    }
    return room;
}

/* ---- gaps: stop writing when there is no room, and continue when there is ---- */

/* Begin a gap: stop writing. ERROR is the reason, an errno, or 0 if the collector takes nothing. */
static void begin_gap(struct tracer *t, uint64_t now, int error)
{
    t->limit = 0;
    if (!t->ring->lost_since) {
        t->ring->lost_since = now;
        t->ring->lost_error = (uint64_t)error;
    }
}

/* Write an ENTER for each open frame whose ENTER is not in the ring, outermost first. Returns false
 * if there was no room for some of them. */
static bool write_unwritten_open_frames(struct tracer *t, uint64_t *now)
{
    struct open_frame **stack, *open;
    size_t count = 0;
    size_t at;
    bool room = true;

    for (open = t->open; open && open->code & OPEN_LOST; open = open->outer)
        count++;
    stack = count ? malloc(count * sizeof *stack) : NULL;
    if (!stack)
        /* no memory to write these frames: the frames inside them get a caller further out */
        return true;
    for (at = count, open = t->open; at; open = open->outer)
        stack[--at] = open;
    for (size_t n = 0; n < count && room; n++) {
        room = wait_for_room_with_gil(t, now);
        if (room) {
            stack[n]->ordinal = t->entered++;
            stack[n]->code &= ~OPEN_LOST;
            tracer_put_control_record(
                t, CONTROL_ENTER, (uint64_t)RING_INHERITED << 37 | (stack[n]->code & ~OPEN_BITS), 1,
                now);
        }
    }
    free(stack);
    return room;
}

/* Return how many open frames of thread T have their ENTER in the ring. *ORDINAL becomes the
 * ordinal of the innermost of these frames. */
static uint64_t count_written_frames(const struct tracer *t, uint32_t *ordinal)
{
    struct open_frame *open = t->open;
    uint64_t count = 0;

    while (open && open->code & OPEN_LOST)
        open = open->outer;
    *ordinal = open ? open->ordinal : 0;
    for (; open; open = open->outer)
        count++;
    return count;
}

/* Mark all open frames of thread T's running stack as not in the ring. */
static void mark_open_frames_unwritten(struct tracer *t)
{
    for (struct open_frame *open = t->open; open; open = open->outer)
        open->code |= OPEN_LOST;
}

/* Write a CONTROL_SWITCH to the running stack of thread T, and then those open frames of this stack
 * that are not in the ring. Returns false if there was no room for some of them. */
static bool write_stack_switch(struct tracer *t, uint64_t *now)
{
    struct tracer_stack *here = t->here;
    uint32_t innermost;
    uint64_t left;

    if (here->rings != t->rings) { /* the ring has no words about this stack of frames yet */
        char name[32];
        if (P.inherits)
            tracer_insert_running_frames(t, PyThreadState_GET());
        mark_open_frames_unwritten(t);
        tracer_lock();
        snprintf(name, sizeof name, "greenlet %u", P.threads);
        here->thread = P.threads;
        tracer_fact(THREAD, .thread = P.threads++, .os_tid = t->os_tid,
                    .name = fact_make_text(name));
        tracer_unlock();
        here->rings = t->rings;
    }
    left = count_written_frames(t, &innermost);
    tracer_put_control_record(t, CONTROL_SWITCH, here->thread, 2, (uint64_t[]){*now, left});
    t->until = *now + RING_EPOCH_TICKS;
    t->written = here;
    return write_unwritten_open_frames(t, now);
}

/* Write a CONTROL_GAP with the number of lost frames. LEFT frames from before the gap are still
 * open, and INNERMOST is the ordinal of the innermost of these. STILL_OPEN frames that began in the
 * gap are open; they do not count as lost. */
static void write_gap(struct tracer *t, uint64_t now, uint64_t left, uint32_t innermost,
                      uint64_t still_open)
{
    struct ring *ring = t->ring;
    uint64_t lost = ring->lost > still_open ? ring->lost - still_open : 0;
    const uint64_t words[] = {now, ring->lost_since,
                              (lost > UINT32_MAX ? UINT32_MAX : lost) << 32 | innermost};

    ring->lost = ring->lost_since = 0;
    tracer_put_control_record(t, CONTROL_GAP, left, 3, words);
    t->until = now + RING_EPOCH_TICKS;
}

/* Begin another gap, because there was no room for some open frames. These count as lost. */
static void begin_gap_again(struct tracer *t, uint64_t now)
{
    begin_gap(t, now, 0);
    for (struct open_frame *open = t->open; open && open->code & OPEN_LOST; open = open->outer)
        t->ring->lost++;
}

/* End the gap, because there is room again: write the CONTROL_GAP and the open frames. Returns
 * false if there was no room for some open frames, so that another gap has begun. */
static bool end_gap(struct tracer *t, uint64_t *now)
{
    uint64_t left;
    uint64_t still_open = 0;
    struct open_frame *open;
    uint32_t innermost;
    bool same = t->written == t->here;

    for (open = t->open; open && open->code & OPEN_LOST; open = open->outer)
        still_open++;
    left = count_written_frames(t, &innermost);
    write_gap(t, *now, same ? left : RING_ALL, same ? innermost : 0, still_open);
    if (!(same ? write_unwritten_open_frames(t, now) : write_stack_switch(t, now)))
        begin_gap_again(t, *now);
    return !t->ring->lost_since;
}

static void begin_gap_or_stop(struct tracer *t, uint64_t now, int error)
{
    t->gone = true;
    begin_gap(t, now, error);
    if (atomic_load(&P.session->closed))
        tracer_hooks.record_over();
}

/* ---- attach rings to threads ---- */

/* Give thread T a ring, and write which thread uses it from now on and, after a fork, which frames
 * are open. TS is the thread's state, FRAME its first frame or NULL. Returns false if there is no
 * ring. */
static bool give_ring_to_thread(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    struct ring *ring;
    uint64_t now;
    char name[256];
    uint32_t id;

    if (P.inherits && !frame)
        frame = find_outermost(compat_find_python_frame(compat_current_frame(ts)));
    read_thread_name(t, frame, name, sizeof name);
    if (!P.session)
        return false;
    now = tracer_read_session_clock();
    tracer_lock();
    ring = P.file ? get_ring_for_thread() : NULL;
    id = P.threads;
    if (ring)
        tracer_fact(THREAD, .thread = P.threads++, .os_tid = t->os_tid,
                    .name = fact_make_text(name));
    tracer_unlock();
    if (!ring) {
        t->gone = true;
        return false;
    }
    t->ring = ring;
    t->words = (uint64_t *)((char *)ring + RING_HEADER);
    t->mask = ring->words - 1;
    t->head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    t->entered = 0;
    /* half of the ring is free, so if there is no room, its memory is missing: the filesystem is
     * full */
    if (!refresh_ring_room(t)) {
        begin_gap_or_stop(t, now, ENOSPC);
        return false;
    }
    if (ring->lost_since)
        write_gap(t, now, 0, 0, 0); /* end the gap in which the ring's former thread ended */
    tracer_put_control_record(t, CONTROL_THREAD, id, 1, &now);
    t->until = now + RING_EPOCH_TICKS;
    t->rings++;
    *t->here = (struct tracer_stack){.bottom = t->here->bottom, .thread = id, .rings = t->rings};
    t->written = t->here;
    if (P.inherits)
        tracer_insert_running_frames(t, ts);
    mark_open_frames_unwritten(t);
    if (!write_unwritten_open_frames(t, &now))
        begin_gap(t, now, 0);
    if (tracer_is_inherited(t->open))
        t->limit = 0;
    return true;
}

void rings_request_slow_path(void)
{
    if (COMPAT_FREE_THREADED)
        return;
    tracer_lock();
    for (struct tracer *t = all_tracers; t; t = t->next_tracer)
        t->limit = 0;
    tracer_unlock();
}

void tracer_forget_callbacks(void)
{
    tracer_lock();
    for (struct tracer *t = all_tracers; t; t = t->next_tracer) {
        t->own = (struct stack_state){0};
        tracer_forget_stack_references(t);
        t->given = t->aside = NULL;
        t->shim = NULL;
        t->active = false;
    }
    tracer_unlock();
}

static void free_tracer_of_ended_thread(void *value)
{
    struct tracer *t = value;
    struct tracer **link = &all_tracers;

    tracer_thread = NULL;
    tracer_lock();
    if (t->ring)
        free_rings[free_ring_count++] = t->ring;
    while (*link && *link != t)
        link = &(*link)->next_tracer;
    if (*link)
        *link = t->next_tracer;
    tracer_unlock();
    tracer_free_spare_stack(t);
    tracer_stacks_release(t);
    tracer_inherited_release(t);
    free(t);
}

/* Make the tracer of the thread with the state TS and the kernel's number OS_TID. Returns NULL
 * without memory. */
static struct tracer *make_tracer(PyThreadState *ts, uint64_t os_tid)
{
    struct tracer *t = aligned_alloc(64, (sizeof *t + 63) & ~(size_t)63);

    if (!t)
        return NULL;
    memset(t, 0, sizeof *t);
    t->here = tracer_make_stack(t, NULL);
    if (!t->here) {
        free(t);
        return NULL;
    }
    t->region = -1;
    t->rules.fullgraph_frames = -1;
    t->observed = TRACER_NO_CALLBACK;
    t->os_tid = os_tid;
    t->thread_state = ts->id;
    tracer_lock();
    t->next_tracer = all_tracers;
    all_tracers = t;
    tracer_unlock();
    return t;
}

/* Return the tracer of the thread with the state TS and the kernel's number OS_TID; NULL if it has
 * none. An awaited tracer must have the id of TS, too, because the kernel may have given the number
 * of an ended thread to this one. */
static struct tracer *find_tracer(const PyThreadState *ts, uint64_t os_tid)
{
    struct tracer *t;

    tracer_lock();
    for (t = all_tracers; t; t = t->next_tracer)
        if (t->os_tid == os_tid) {
            if (!t->awaited || t->thread_state == ts->id)
                break;
        }
    tracer_unlock();
    return t;
}

void rings_give_to_running_threads(void)
{
    PyThreadState *own = PyThreadState_GET();
    PyThreadState *ts = PyInterpreterState_ThreadHead(own->interp);

    for (; ts && P.session; ts = PyThreadState_Next(ts)) {
        const uint64_t os_tid = ts->native_thread_id;
        struct tracer *t = find_tracer(ts, os_tid);
        /* with greenlets, wait for the thread's next event, which finds out which of its stacks
         * runs */
        bool waits = t && t->greenlets;
        if (waits || !compat_find_python_frame(compat_current_frame(ts)))
            continue;
        if (!t && (t = make_tracer(ts, os_tid)))
            t->awaited = true;
        if (!t || t->ring)
            continue;
        if (!t->gone)
            give_ring_to_thread(t, ts, NULL);
    }
}

/* Release the tracers that were made for threads which then had no event. */
static void release_awaited_tracers(void)
{
    struct tracer **link = &all_tracers;

    while (*link) {
        struct tracer *t = *link;
        if (!t->awaited) {
            link = &t->next_tracer;
            continue;
        }
        *link = t->next_tracer;
        tracer_stacks_release(t);
        tracer_inherited_release(t);
        free(t);
    }
}

struct tracer *tracer_attach(compat_frame *frame)
{
    int saved_errno = errno;
    /* put the exception aside with which generator.throw() starts a frame */
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    PyThreadState *ts = PyThreadState_GET();
    const uint64_t os_tid = (uint64_t)syscall(SYS_gettid);
    struct tracer *t = P.inherits ? find_tracer(ts, os_tid) : NULL;
    if (t)
        t->awaited = false;
    else
        t = make_tracer(ts, os_tid);
    if (t) {
        t->stack_low = tracer_find_stack_limit(false);
        t->here->stack_low = t->stack_low;
        tracer_thread = t;
        tracer_lock();
        thread_key_made =
            thread_key_made || !pthread_key_create(&thread_key, free_tracer_of_ended_thread);
        tracer_unlock();
        if (thread_key_made)
            pthread_setspecific(thread_key, t);
        if (P.session && !t->ring)
            give_ring_to_thread(t, ts, frame);
        if (frame && tracer_hooks.thread_begins)
            tracer_hooks.thread_begins();
    }
    errno = saved_errno;
    return t;
}

/* Make room for an event. AT_FRAME: the event is a frame's beginning or end, and only there a gap
 * may end, and the GIL be released. Returns false if the event must not be written. */
static bool make_room_for_event(struct tracer *t, uint64_t *now, bool at_frame)
{
    int saved_errno = errno;
    uint64_t waited = 0;
    bool room = false;

    fork_handle_if_child();
    if (unlikely(tracer_is_inherited(t->open)) && !t->quiet) {
        if (tracer_remove_returned(t))
            /* makes this event write a CONTROL_SWITCH, which tells how many frames are open */
            t->written = NULL;
    }
    while (!t->quiet && !room && P.session && !t->gone) {
        /* no ring yet: this is the thread's first event after a fork, or its first in this
         * session */
        if (!t->ring) {
            give_ring_to_thread(t, PyThreadState_GET(), NULL);
            *now = tracer_read_session_clock();
        } else if (has_collector_stopped_reading()) {
            begin_gap_or_stop(t, *now, 0);
        } else if (t->ring->lost_since) {
            if (at_frame && refresh_ring_room(t)) {
                atomic_store(&stalled, false);
                room = end_gap(t, now);
            } else {
                t->limit = 0;
            }
            break;
        } else if (refresh_ring_room(t)) {
            room = true;
        } else if (!t->limit) {
            begin_gap_or_stop(t, *now, ENOSPC);
        } else {
            bool moved = wait_for_collector(t, at_frame, &waited);
            *now = tracer_read_session_clock();
            /* checks the session and the ring again, which may have changed while the GIL was
             * released */
            if (!moved && P.session && t->ring && !has_collector_stopped_reading())
                begin_gap(t, *now, 0);
        }
    }
    if (room && t->written != t->here && !(room = write_stack_switch(t, now)))
        begin_gap_again(t, *now);
    if (room && waited > STALL_MS * MS)
        tracer_put_control_record(t, CONTROL_STALL, 0, 2, (uint64_t[]){*now, waited});
    if (room && *now > t->until) {
        tracer_put_control_record(t, CONTROL_EPOCH, 0, 1, now);
        t->until = *now + RING_EPOCH_TICKS;
    }
    if (unlikely(fork_is_under_way() || world_get(P.slot_watched) || tracer_is_inherited(t->open)))
        t->limit = 0;
    errno = saved_errno;
    return room;
}

uint64_t tracer_make_room_at_frame(struct tracer *t, uint64_t now)
{
    return make_room_for_event(t, &now, true) ? now : 0;
}

bool tracer_make_room_within_frame(struct tracer *t)
{
    uint64_t now = tracer_read_session_clock();

    return make_room_for_event(t, &now, false);
}

uint64_t tracer_make_room_and_enter(struct tracer *t, struct open_frame *open, uint32_t code,
                                    enum ring_tag tag, uint64_t now)
{
    uint64_t entered = tracer_make_room_at_frame(t, now);

    if (unlikely(world_get(P.slot_watched)))
        tracer_hooks.slot_note_arrival();
    if (entered) {
        record_write_enter(t, open, code, tag, entered, true);
        if (tracer_is_inherited(open->outer))
            open->code |= OPEN_BASE;
        goto done;
    }
    if (t->quiet || !P.session)
        goto done;
    if (atomic_load_explicit(&P.session->closed, memory_order_relaxed)) {
        if (P.recording)
            tracer_hooks.record_over();
        goto done;
    }
    if (t->ring)
        t->ring->lost++;
    else if (P.file)
        atomic_fetch_add(&P.file->lost_frames, 1);
    else if (P.root)
        atomic_fetch_add(&P.root->orphan_frames, 1);
    if (t->ring && !t->gone) {
        open->outer = t->open;
        open->code = code | OPEN_LOST | (tracer_is_inherited(t->open) ? OPEN_BASE : 0);
        open->depth = open->outer ? open->outer->depth + 1 : 0;
        t->open = open;
        entered = tracer_read_session_clock();
    }
done:
    return entered;
}

/* ---- take the rings away when the session ends or the process forks ---- */

/* Take the ring away from every thread. */
static void take_rings_from_all_threads(void)
{
    for (struct tracer *t = all_tracers; t; t = t->next_tracer) {
        t->ring = NULL;
        t->words = NULL;
        t->head = t->limit = 0;
        t->gone = false;
    }
    free_ring_count = 0;
    ring_bytes_used = 0;
    P.threads = 0;
}

void rings_drop_after_fork(struct tracer *thread)
{
    atomic_store(&sleepers, 0);
    all_tracers = thread;
    if (thread) {
        thread->next_tracer = NULL;
        thread->os_tid = (uint64_t)syscall(SYS_gettid);
    }
    take_rings_from_all_threads();
}

void rings_leave_session(void)
{
    atomic_store(&closing, true);
    while (atomic_load(&sleepers)) /* waiting threads need no GIL to see `closing` */
        usleep(1000);
    atomic_store(&closing, false);
    atomic_store(&stalled, false);
    tracer_lock();
    take_rings_from_all_threads();
    release_awaited_tracers();
    tracer_unlock();
}
