/* tracer_shim.c -- the PEP 523 evaluator that CPython calls for every frame.
 *
 * Runs in: the traced process, on every Python call: what is here is hot.
 *
 *     mark = the code object's extra slot      which id, recorded or not
 *     ENTER word                               code id, clock
 *     evaluate                                 whoever was there before us
 *     EXIT word                                how it ended, clock
 *
 * There is no shadow stack in shared memory: an open frame is an ENTER without an EXIT, and the
 * collector rebuilds ids and parents. A list of open frames runs through the C stack; fork needs it
 * (tracer/ring.c).
 *
 * The hook is one function per combination of options, so that the common one does nothing it need
 * not. */
#include "tracer/record.h"
#include "tracer/torch/torch.h"

struct tracer_process tracer_process = {.extra = -1, .evaluate = _PyEval_EvalFrameDefault};
__thread struct tracer *tracer_thread __attribute__((tls_model("initial-exec")));

/* The frame as whoever was there before us runs it. In a sub-interpreter that is CPython: what the
 * main one had is its own. */
static inline __attribute__((always_inline)) PyObject *
evaluate(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag, const bool sub)
{
    return record_evaluate_by(sub ? _PyEval_EvalFrameDefault : tracer_process.evaluate, t, ts,
                              frame, throwflag);
}

static inline __attribute__((always_inline)) PyObject *
record_frame(PyThreadState *ts, compat_frame *frame, int throwflag, const enum session_clock clock,
             const bool limit_depth, const bool sub)
{
    struct tracer *t = tracer_thread;
    struct open_frame open;
    PyObject *result;
    uintptr_t mark;
    bool resumed;

    /* A foreign hook above ours goes on calling the one that it found. */
    if (!sub && unlikely(shim_settings.active_threads))
        return decide_frame(ts, frame, throwflag);
    if (unlikely(!t) && unlikely(!(t = tracer_attach(frame))))
        return (sub ? _PyEval_EvalFrameDefault : tracer_process.evaluate)(ts, frame, throwflag);
    if (sub && unlikely(!tracer_process.recording))
        return evaluate(t, ts, frame, throwflag, sub);
    /* Static code (COMPAT_SHARES_CODE) has data that only the main interpreter's GIL guards. */
    mark = sub && compat_is_shared(compat_code(frame)) ? tracer_mark_code(compat_code(frame))
                                                       : record_mark(frame);
    resumed = compat_is_resumed(frame);
    if (!record_call(t, &open, ts, frame, mark, throwflag, resumed, clock, limit_depth))
        return evaluate(t, ts, frame, throwflag, sub);
    result = evaluate(t, ts, frame, throwflag, sub);
    record_exit(t, &open, ts, frame, result, resumed, clock);
    return result;
}

#define RECORDER(name, clock, limit_depth)                                       \
    static PyObject *name(PyThreadState *ts, compat_frame *frame, int throwflag) \
    {                                                                            \
        return record_frame(ts, frame, throwflag, clock, limit_depth, false);    \
    }
RECORDER(record_by_counter, SESSION_TSC, false)
RECORDER(record_by_counter_to_depth, SESSION_TSC, true)
RECORDER(record_by_monotonic, SESSION_MONOTONIC, false)
RECORDER(record_by_monotonic_to_depth, SESSION_MONOTONIC, true)
RECORDER(record_coarsely, SESSION_COARSE, false)
RECORDER(record_coarsely_to_depth, SESSION_COARSE, true)

static PyObject *record_in_sub(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    const bool limit_depth = tracer_process.recording && tracer_process.session->max_depth;

    return record_frame(ts, frame, throwflag, tracer_process.clock, limit_depth, true);
}

static _PyFrameEvalFunction wanted_hook(void)
{
    static const _PyFrameEvalFunction recorders[][2] = {
        {record_by_counter, record_by_counter_to_depth},
        {record_by_monotonic, record_by_monotonic_to_depth},
        {record_coarsely, record_coarsely_to_depth}};

    if (shim_settings.active_threads)
        return decide_frame;
    if (!tracer_process.recording)
        return NULL;
    if (tracer_process.decided_only)
        return tracer_process.torch_seen ? NULL : decide_frame; /* which sees its import */
    return recorders[tracer_process.clock][tracer_process.session->max_depth != 0];
}

void tracer_hook_sub(bool on)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    _PyFrameEvalFunction before = on ? _PyEval_EvalFrameDefault : record_in_sub;

    if (compat_evaluator(interpreter) == before)
        compat_set_evaluator(interpreter, on ? record_in_sub : _PyEval_EvalFrameDefault);
}

/* One slot for the interpreter, so one hook for recording and shim. When somebody
 * else has put a hook above ours, that one calls ours: it stays where it is, and
 * ours cannot be taken out or exchanged; whichever it is does what is needed. */
void tracer_rehook(void)
{
    PyInterpreterState *interpreter = tracer_process.interpreter;
    _PyFrameEvalFunction current, wanted = wanted_hook();

    if (wanted == tracer_process.hook || PyInterpreterState_Get() != interpreter)
        return;
    current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (!tracer_process.hook && observe_is(current))
        return;
    if (!tracer_process.hook)
        tracer_process.evaluate = current;
    else if (current != tracer_process.hook)
        return;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, wanted ? wanted : tracer_process.evaluate);
    tracer_process.hook = wanted;
}

void tracer_record(bool on)
{
    tracer_process.recording = on;
    tracer_process.every_frame = on && !tracer_process.decided_only &&
                                 tracer_process.clock == SESSION_TSC &&
                                 !tracer_process.session->max_depth;
    tracer_rehook();
}
