/* tracer/record.h -- writes the two words of a recorded frame, ENTER and EXIT.
 *
 * Runs in: the traced process, on every Python call; these functions are inline, because they are
 * hot. tracer_shim.c records frames with them, and tracer/evaluator/decide.c records the frames
 * that it decides. */
#ifndef DYNTRACE_TRACER_RECORD_H
#define DYNTRACE_TRACER_RECORD_H

#include "tracer/tracer.h"

/* Run the frame as CPython would, and with the recursion depth that it would have without a hook
 * (tracer/compat/cpython.h, tracer/stack.c). */
static inline __attribute__((always_inline)) PyObject *
record_evaluate_with(_PyFrameEvalFunction evaluate, struct tracer *t, PyThreadState *ts,
                     compat_frame *frame, int throwflag)
{
    compat_frame *shim = compat_step_over_shim(ts);
    PyObject *result;

    compat_enter_c(ts);
    if (unlikely((char *)__builtin_frame_address(0) < t->stack_low)) {
        char *low = t->stack_low;
        result = tracer_evaluate_on_new_stack(t, ts, frame, throwflag, evaluate);
        tracer_update_running_stack(t, ts, NULL);
        tracer_return_to_thread_stack(t, low);
    } else {
        result = evaluate(ts, frame, throwflag);
    }
    compat_leave_c(ts);
    compat_step_back_to_shim(ts, shim);
    return result;
}
static inline __attribute__((always_inline)) PyObject *
record_evaluate(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag)
{
    return record_evaluate_with(tracer_process.evaluate, t, ts, frame, throwflag);
}

/* Return the mark of the frame's code, which gets one if it has none. */
static inline __attribute__((always_inline)) uintptr_t record_get_mark(compat_frame *frame)
{
    uintptr_t mark =
        tracer_mark_in_slot(compat_get_extra(compat_get_code(frame), tracer_process.extra));

    if (unlikely((mark & (CODE_SEEN | CODE_SKIP | CODE_INIT)) != CODE_SEEN)) {
        if (!(mark & CODE_SEEN))
            mark = tracer_mark_code(compat_get_code(frame));
        if (COMPAT_INIT_BYPASSES_HOOK && mark & CODE_INIT) {
            PyObject *self = compat_get_local(frame, 0);
            const bool wanted = !(mark & CODE_SKIP);
            if (self && unlikely(wanted == (Py_TYPE(self)->tp_alloc == PyType_GenericAlloc)))
                tracer_route_init_to_hook(self, wanted);
        }
    }
    return mark;
}

/* Return the mark of the frame's code, with CODE_ARGS as this session wants it: an earlier session
 * may have set it otherwise. */
static inline uintptr_t record_get_current_mark(compat_frame *frame)
{
    const uintptr_t mark = record_get_mark(frame);

    return unlikely(tracer_process.rechecks) ? tracer_update_mark(compat_get_code(frame), mark)
                                             : mark;
}

/* Write the ENTER of a frame. There must be room for it. */
static inline __attribute__((always_inline)) void
record_write_enter(struct tracer *t, struct open_frame *open, uint32_t code, enum ring_tag tag,
                   uint64_t now, const bool limit_depth)
{
    open->outer = t->open;
    open->code = code;
    open->ordinal = t->entered++;
    open->depth = limit_depth && open->outer ? open->outer->depth + 1 : 0;
    t->open = open;
    if (unlikely(code > RING_ID_MASK)) {
        t->words[t->head & t->mask] =
            RING_CONTROL_WORD(CONTROL_ENTER, 2, (uint64_t)tag << 37 | code);
        t->head++; /* not published yet: tracer_put_word() does that for this word and the next */
        tracer_put_word(t, now);
    } else {
        tracer_put_word(t, RING_WORD(tag, code, now));
    }
}

/* Would a call that thread T makes now be too deep to be recorded (--max-depth)? */
static inline bool record_is_too_deep(const struct tracer *t)
{
    return t->open && t->open->depth + 1 >= tracer_process.max_depth;
}

/* Write the ENTER of a frame. Returns its time by the session's clock, or 0 if the frame is not
 * recorded. */
static inline __attribute__((always_inline)) uint64_t
record_begin_frame(struct tracer *t, struct open_frame *open, uint32_t code, enum ring_tag tag,
                   const enum session_clock clock, const bool limit_depth)
{
    uint64_t now = tracer_read_clock(clock);

    if (limit_depth && record_is_too_deep(t)) {
        if (!t->quiet)
            tracer_count_left_out(LEFT_FRAMES);
        return 0;
    }
    if (unlikely(t->head >= t->limit || now > t->until))
        return tracer_make_room_and_enter(t, open, code, tag, now);
    record_write_enter(t, open, code, tag, now, limit_depth);
    return now;
}

/* Write the ENTER of a frame whose code has MARK. Returns its time, or 0 if the frame is not
 * recorded. Code with a bit of CODE_NOTED is not recorded here: the caller clears these bits in
 * MARK, or calls record_frame_with_notes(). */
static inline __attribute__((always_inline)) uint64_t
record_begin_call(struct tracer *t, struct open_frame *open, PyThreadState *ts, compat_frame *frame,
                  uintptr_t mark, int throwflag, bool resumed, const enum session_clock clock,
                  const bool limit_depth)
{
    tracer_update_running_stack(t, ts, frame);
    if (unlikely(mark & (CODE_SKIP | CODE_NOTED))) {
        const bool is_left = mark & (CODE_LEFT | CODE_EXCLUDED) && !(mark & CODE_NOTED);
        if (is_left && !t->quiet)
            tracer_count_left_out(LEFT_FRAMES);
        return 0;
    }
    return record_begin_frame(t, open, (uint32_t)(mark >> CODE_SHIFT),
                              throwflag ? RING_THROW
                              : resumed ? RING_RESUME
                                        : RING_CALL,
                              clock, limit_depth);
}

/* Write the EXIT of a frame that has returned RESULT; NULL if it has raised. */
static inline __attribute__((always_inline)) void
record_end_frame(struct tracer *t, struct open_frame *open, PyThreadState *ts, compat_frame *frame,
                 PyObject *result, bool resumed, const enum session_clock clock)
{
    enum ring_tag tag = !result ? RING_RAISE : RING_RETURN;
    uint64_t now;

    if (result && resumed) {
        if (compat_has_yielded(frame))
            tag = RING_YIELD;
        else if (COMPAT_SEND_RAISES_UNDER_HOOK && unlikely(ts->c_tracefunc))
            tracer_trace_generator_return(t, ts);
    }
    tracer_update_running_stack(t, ts, NULL);
    now = tracer_read_clock(clock);
    /* keep the frame open until there is room: a fork during the wait gives open frames new
     * ordinals */
    if (likely(t->head < t->limit && now <= t->until) || (now = tracer_make_room_at_frame(t, now)))
        tracer_put_word(t, RING_WORD(tag, open->ordinal & RING_ID_MASK, now));
    t->open = open->outer;
    if (unlikely(open->code & OPEN_BASE))
        t->limit = 0; /* makes the next event check whether inherited frames have returned */
}

#endif
