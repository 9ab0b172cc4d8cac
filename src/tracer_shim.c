/* tracer_shim.c -- the PEP 523 evaluator that CPython calls for every frame.
 *
 * Runs in: the traced process, on every Python call: what is here is hot.
 *
 *     mark = the code object's extra slot      which id, recorded or not
 *     ENTER word                               code id, clock
 *     evaluate                                 whoever was there before us
 *     EXIT word                                how it ended, clock
 *
 * There is no shadow stack in shared memory: an open frame is an ENTER without
 * an EXIT, and the collector rebuilds ids and parents. A list of open frames
 * runs through the C stack; fork needs it (tracer_ring.c).
 *
 * The hook is one function per combination of options, so that the common one
 * does nothing it need not. */
#include "tracer.h"

struct tracer_process tracer_process = {.extra = -1};
__thread struct tracer *tracer_thread __attribute__((tls_model("initial-exec")));

/* Run the frame as CPython would have run it: the depth that it may recurse to
 * is what it would be without a hook (cpython_compat.h, tracer_stack.c). */
static inline __attribute__((always_inline)) PyObject *
evaluate(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag)
{
    PyObject *result;

    compat_enter_c(ts);
    if (unlikely((char *)__builtin_frame_address(0) < t->stack_low))
        result = tracer_evaluate_on_new_stack(t, ts, frame, throwflag);
    else
        result = tracer_process.evaluate(ts, frame, throwflag);
    compat_leave_c(ts);
    return result;
}

static inline __attribute__((always_inline)) PyObject *
record_frame(PyThreadState *ts, compat_frame *frame, int throwflag, const bool monotonic,
             const bool limit_depth)
{
    struct tracer *t = tracer_thread;
    uintptr_t mark = compat_extra(compat_code(frame), tracer_process.extra);
    enum ring_tag tag;
    uint64_t now;
    PyObject *result;
    bool resumed;

    if (unlikely(!t) && unlikely(!(t = tracer_attach(frame))))
        return tracer_process.evaluate(ts, frame, throwflag);
    if (unlikely((mark & (CODE_SEEN | CODE_SKIP | CODE_INIT)) != CODE_SEEN)) {
        if (!mark)
            mark = tracer_mark_code(compat_code(frame));
        if (mark & CODE_INIT)
            tracer_fix_init(compat_first_local(frame));
        if (mark & CODE_SKIP)
            return evaluate(t, ts, frame, throwflag);
    }
    if (limit_depth && t->open && t->open->depth + 1 >= tracer_process.session->max_depth)
        return evaluate(t, ts, frame, throwflag);

    resumed = compat_is_resumed(frame);
    tag = throwflag ? RING_THROW : resumed ? RING_RESUME : RING_CALL;
    now = tracer_now(monotonic);
    if (unlikely(t->head >= t->limit || now - t->epoch > RING_EPOCH_TICKS) && !tracer_room(t, &now))
        return evaluate(t, ts, frame, throwflag);

    struct open_frame open = {.outer = t->open, .code = (uint32_t)(mark >> CODE_SHIFT), .ordinal = t->entered++};
    if (limit_depth)
        open.depth = open.outer ? open.outer->depth + 1 : 0;
    t->open = &open;
    if (unlikely(open.code > RING_ID_MASK)) {
        t->words[t->head & t->mask] = RING_CONTROL_WORD(CONTROL_ENTER, 2, (uint64_t)tag << 37 | open.code);
        t->head++; /* published together with the next word */
        tracer_put(t, now);
    } else {
        tracer_put(t, RING_WORD(tag, open.code, now));
    }

    result = evaluate(t, ts, frame, throwflag);

    tag = !result ? RING_RAISE : RING_RETURN;
    if (result && resumed) {
        if (compat_has_yielded(frame))
            tag = RING_YIELD;
        else if (COMPAT_SEND_RAISES_UNDER_HOOK && unlikely(ts->c_tracefunc))
            tracer_generator_finished(t, ts);
    }
    now = tracer_now(monotonic);
    /* Still open while room is made: after a fork that numbers it anew. */
    if (likely(t->head < t->limit && now - t->epoch <= RING_EPOCH_TICKS) || tracer_room(t, &now))
        tracer_put(t, RING_WORD(tag, open.ordinal & RING_ID_MASK, now));
    t->open = open.outer;
    return result;
}

static PyObject *record_by_counter(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    return record_frame(ts, frame, throwflag, false, false);
}
static PyObject *record_by_counter_to_depth(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    return record_frame(ts, frame, throwflag, false, true);
}
static PyObject *record_by_monotonic(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    return record_frame(ts, frame, throwflag, true, false);
}
static PyObject *record_by_monotonic_to_depth(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    return record_frame(ts, frame, throwflag, true, true);
}

_PyFrameEvalFunction tracer_choose_hook(void)
{
    bool to_depth = tracer_process.session->max_depth != 0;

    if (tracer_process.monotonic)
        return to_depth ? record_by_monotonic_to_depth : record_by_monotonic;
    return to_depth ? record_by_counter_to_depth : record_by_counter;
}

/* Take or give back the interpreter's one PEP 523 slot. Giving back is skipped
 * when somebody else has put a hook above ours since: it calls ours. */
void tracer_hook(bool on)
{
    PyInterpreterState *interpreter = tracer_process.interpreter;
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter);

    if (on && !tracer_process.hooked) {
        if (current != tracer_process.hook) {
            tracer_process.evaluate = current;
            _PyInterpreterState_SetEvalFrameFunc(interpreter, tracer_process.hook);
        }
        tracer_process.hooked = true;
    } else if (!on && tracer_process.hooked && current == tracer_process.hook) {
        _PyInterpreterState_SetEvalFrameFunc(interpreter, tracer_process.evaluate);
        tracer_process.hooked = false;
    }
}
