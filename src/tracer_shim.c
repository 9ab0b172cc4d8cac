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

struct tracer_process tracer_process = {
    .extra = -1, .evaluate = _PyEval_EvalFrameDefault, .left_out = tracer_left_uncounted};
__thread struct tracer *tracer_thread __attribute__((tls_model("initial-exec")));

/* The frame as whoever was there before us runs it. In a sub-interpreter that is CPython: what the
 * main one had is its own. */
static inline __attribute__((always_inline)) PyObject *
evaluate(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag, const bool sub)
{
    return record_evaluate_by(sub ? _PyEval_EvalFrameDefault : tracer_process.evaluate, t, ts,
                              frame, throwflag);
}

/* A foreign hook above ours goes on calling the one that it found, whatever is wanted by now. When
 * nothing is, ours leaves as soon as it is in the slot itself, and until then it does nothing. */
static __attribute__((noinline)) PyObject *detour(PyThreadState *ts, compat_frame *frame,
                                                  int throwflag)
{
    if (shim_settings.active_threads)
        return decide_frame(ts, frame, throwflag);
    if (compat_evaluator(ts->interp) == tracer_process.hook)
        tracer_rehook();
    return tracer_process.evaluate(ts, frame, throwflag);
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

    if (!sub && unlikely(tracer_process.detour))
        return detour(ts, frame, throwflag);
    if (sub && unlikely(!tracer_process.recording))
        return t ? evaluate(t, ts, frame, throwflag, sub)
                 : _PyEval_EvalFrameDefault(ts, frame, throwflag);
    if (unlikely(!t) && unlikely(!(t = tracer_attach(frame))))
        return (sub ? _PyEval_EvalFrameDefault : tracer_process.evaluate)(ts, frame, throwflag);
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
    return record_frame(ts, frame, throwflag, tracer_process.clock, tracer_process.max_depth != 0,
                        true);
}

/* With --set: the hook that there would be without, NULL if none, behind a look at the call. */
static _PyFrameEvalFunction set_over;

static PyObject *apply_settings(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    const bool starts = !throwflag && !compat_is_resumed(frame) && !compat_has_started(frame);
    struct settings_call call = {0};
    PyObject *result;

    if (starts)
        call = settings_before(frame, false);
    if (set_over)
        result = set_over(ts, frame, throwflag);
    else if (tracer_thread)
        result = record_evaluate(tracer_thread, ts, frame, throwflag);
    else
        result = tracer_process.evaluate(ts, frame, throwflag);
    if (starts)
        settings_after(&call, result);
    return result;
}

static _PyFrameEvalFunction hook_without_settings(void)
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
    return recorders[tracer_process.clock][tracer_process.max_depth != 0];
}

static _PyFrameEvalFunction wanted_hook(void)
{
    if (!settings.plan || !tracer_process.recording)
        return hook_without_settings();
    set_over = hook_without_settings();
    return apply_settings;
}

void tracer_hook_sub(bool on)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    _PyFrameEvalFunction before = on ? _PyEval_EvalFrameDefault : record_in_sub;

    if (compat_evaluator(interpreter) == before)
        compat_set_evaluator(interpreter, on ? record_in_sub : _PyEval_EvalFrameDefault);
}

bool tracer_is_ours(_PyFrameEvalFunction evaluate)
{
    return evaluate == tracer_process.hook || observe_is_around(evaluate) || observe_is(evaluate);
}

/* One slot for the interpreter, so one hook for recording and shim. Torch's evaluator, observed,
 * asks which it is for each frame. Anybody else's that was put above ours calls the one that it
 * found: that stays where it is, can neither be taken out nor exchanged, and does what is needed
 * (detour). Nor is another of ours put on top, as both would be called for a frame. */
void tracer_rehook(void)
{
    PyInterpreterState *interpreter = tracer_process.interpreter;
    const _PyFrameEvalFunction wanted = wanted_hook();
    _PyFrameEvalFunction current;

    tracer_process.detour = shim_settings.active_threads || !tracer_process.recording;
    if (wanted == tracer_process.hook || PyInterpreterState_Get() != interpreter)
        return;
    current = compat_evaluator(interpreter);
    if (observe_is_around(current)) {
        tracer_process.hook = wanted;
        return;
    }
    if (current == _PyEval_EvalFrameDefault) /* whoever threw ours out, it is nowhere now */
        tracer_process.hook = NULL;
    if (!tracer_process.hook)
        tracer_process.evaluate = current;
    else if (current != tracer_process.hook)
        return;
    if (wanted != tracer_process.hook)
        compat_set_evaluator(interpreter, wanted ? wanted : tracer_process.evaluate);
    tracer_process.hook = wanted;
}

void tracer_record(bool on)
{
    tracer_process.recording = on;
    tracer_process.every_frame = on && !tracer_process.decided_only &&
                                 tracer_process.clock == SESSION_TSC && !tracer_process.max_depth;
    tracer_rehook();
    observe_follow();
}
