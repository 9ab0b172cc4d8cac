/* tracer_shim.c -- the PEP 523 evaluator that CPython calls for every frame.
 *
 * Runs in: the traced process, on every Python call, so everything here is hot.
 *
 *     mark = the code object's extra slot      the id, and whether to record
 *     ENTER word                               code id, clock
 *     evaluate the evaluator below us
 *     EXIT word                                how it ended, clock
 *
 * There is no shadow stack in shared memory: an open frame is an ENTER without an EXIT, and the
 * collector rebuilds ids and parents. A list of open frames runs through the C stack; fork needs it
 * (tracer/ring.c).
 *
 * There is one hook function for each combination of options, so that the common one does no extra
 * work.
 *
 * Without a GIL: a call touches its own thread's state. Of the process's state it reads only
 * members that change while the world is stopped (tracer/world.h). The world does not stop within
 * the evaluator's C code before the frame runs, nor within its C code afterwards. */
#include "tracer/arguments.h"
#include "tracer/hooks.h"
#include "tracer/record.h"

/* Run the frame with the evaluator that was in the slot before our hook. In a sub-interpreter (SUB)
 * that is CPython's: the other one belongs to the main interpreter. */
static inline __attribute__((always_inline)) PyObject *
evaluate_with_previous_hook(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag,
                            const bool sub)
{
    return record_evaluate_with(sub ? _PyEval_EvalFrameDefault : tracer_process.evaluate, t, ts,
                                frame, throwflag);
}

/* Run FRAME if the hook must do something else than record. If a thread has a callback, the shim
 * decides. If not, we no longer need our hook, but a foreign evaluator above it still calls it:
 * record nothing, and leave the slot as soon as our hook itself is in it. */
static __attribute__((noinline)) PyObject *
run_frame_without_recorder(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    if (tracer_process.active_threads)
        return tracer_hooks.decide(ts, frame, throwflag);
    if (compat_get_evaluator(ts->interp) == tracer_process.hook &&
        world_try_to_enter_gate(&tracer_gate)) {
        tracer_install_needed_hook();
        world_leave_gate(&tracer_gate);
    }
    return tracer_process.evaluate(ts, frame, throwflag);
}

/* Record a frame, and what its code's bits of CODE_NOTED ask for. MARK is the code's mark without
 * these bits. VALUES: also record the frame's arguments and its return value. */
static PyObject *record_frame_with_values(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                          int throwflag, uintptr_t mark, const bool sub,
                                          bool values)
{
    const enum session_clock clock = tracer_process.clock;
    const bool resumed = compat_is_resumed(frame);
    struct values_begun begun = {SECRET_NO, 0};
    struct open_frame open;
    PyObject *result;

    if (!record_begin_call(t, &open, ts, frame, mark, throwflag, resumed, clock,
                           tracer_process.max_depth != 0))
        return evaluate_with_previous_hook(t, ts, frame, throwflag, sub);
    if (values)
        begun = values_before_frame(t, frame, resumed);
    result = evaluate_with_previous_hook(t, ts, frame, throwflag, sub);
    if (values)
        values_after_frame(t, frame, resumed, result, begun);
    record_end_frame(t, &open, ts, frame, result, resumed, clock);
    return result;
}

/* Record a frame of code whose MARK has bits of CODE_NOTED (ranges, arguments). */
static __attribute__((noinline)) PyObject *
record_frame_with_notes(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag,
                        uintptr_t mark, const bool sub)
{
    const uintptr_t plain = mark & ~(uintptr_t)CODE_NOTED;
    struct range_call range = {RANGE_NONE, NULL};
    PyObject *result;

    if (mark & CODE_RANGE && !sub)
        range = tracer_hooks.range_before(frame);
    result = record_frame_with_values(t, ts, frame, throwflag, plain, sub, mark & CODE_ARGS);
    if (range.act)
        tracer_hooks.range_after(&range, result);
    return result;
}

static inline __attribute__((always_inline)) PyObject *
record_frame(PyThreadState *ts, compat_frame *frame, int throwflag, const enum session_clock clock,
             const bool limit_depth, const bool sub)
{
    struct tracer *t = tracer_thread;
    struct open_frame open;
    PyObject *result;
    uintptr_t mark;
    bool rechecks, resumed;

    if (!sub && unlikely(tracer_process.detour))
        return run_frame_without_recorder(ts, frame, throwflag);
    if (sub && unlikely(!tracer_process.recording))
        return t ? evaluate_with_previous_hook(t, ts, frame, throwflag, sub)
                 : _PyEval_EvalFrameDefault(ts, frame, throwflag);
    if (unlikely(!t) && unlikely(!(t = tracer_attach(frame))))
        return (sub ? _PyEval_EvalFrameDefault : tracer_process.evaluate)(ts, frame, throwflag);
    /* static code of CPython (COMPAT_SHARES_CODE) has its mark under the main interpreter's GIL */
    mark = sub && compat_is_shared(compat_get_code(frame))
               ? tracer_mark_code(compat_get_code(frame))
               : record_get_mark(frame);
    rechecks = limit_depth && !sub;
    if (rechecks && unlikely(tracer_process.rechecks))
        mark = tracer_update_mark(compat_get_code(frame), mark);
    resumed = compat_is_resumed(frame);
    if (!record_begin_call(t, &open, ts, frame, mark, throwflag, resumed, clock, limit_depth)) {
        if (unlikely(mark & CODE_NOTED))
            return record_frame_with_notes(t, ts, frame, throwflag, mark, sub);
        return evaluate_with_previous_hook(t, ts, frame, throwflag, sub);
    }
    result = evaluate_with_previous_hook(t, ts, frame, throwflag, sub);
    record_end_frame(t, &open, ts, frame, result, resumed, clock);
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

static PyObject *record_frame_in_subinterpreter(PyThreadState *ts, compat_frame *frame,
                                                int throwflag)
{
    return record_frame(ts, frame, throwflag, tracer_process.clock, tracer_process.max_depth != 0,
                        true);
}

static _PyFrameEvalFunction choose_hook_without_torch(void)
{
    static const _PyFrameEvalFunction recorders[][2] = {
        {record_by_counter, record_by_counter_to_depth},
        {record_by_monotonic, record_by_monotonic_to_depth},
        {record_coarsely, record_coarsely_to_depth}};

    if (tracer_process.active_threads)
        return tracer_hooks.decide;
    if (!tracer_process.recording)
        return NULL;
    if (tracer_process.decided_only)
        /* until torch is imported we need the shim's hook, which notices the import */
        return tracer_process.torch_seen ? NULL : tracer_hooks.decide;
    return recorders[tracer_process.clock][tracer_process.max_depth != 0];
}

static _PyFrameEvalFunction choose_hook(void)
{
    const _PyFrameEvalFunction hook = choose_hook_without_torch();

    if (!tracer_process.recording || !tracer_hooks.hook_over)
        return hook;
    return tracer_hooks.hook_over(hook);
}

void tracer_hook_subinterpreter(bool on)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    _PyFrameEvalFunction before = on ? _PyEval_EvalFrameDefault : record_frame_in_subinterpreter;

    if (compat_get_evaluator(interpreter) == before)
        compat_set_evaluator(interpreter,
                             on ? record_frame_in_subinterpreter : _PyEval_EvalFrameDefault);
}

/* Put the hook that is needed now into the interpreter's slot. An interpreter has one slot, so
 * recording and shim share one hook. In observe mode torch's evaluator sits above our hook `lower`
 * (tracer/torch/observe.c), which reads tracer_process.hook at each frame. Any other evaluator
 * above ours keeps calling the hook that it found. We can then neither remove nor replace our hook,
 * so it handles every case itself (detour). A second hook on top would not help, because both would
 * be called for a frame. */
static void install_hook(void)
{
    PyInterpreterState *interpreter = tracer_process.interpreter;
    const _PyFrameEvalFunction wanted = choose_hook();
    _PyFrameEvalFunction current;

    tracer_process.detour = tracer_process.active_threads || !tracer_process.recording;
    if (wanted == tracer_process.hook || PyInterpreterState_Get() != interpreter)
        return;
    current = compat_get_evaluator(interpreter);
    if (tracer_hooks.is_around && tracer_hooks.is_around(current)) {
        tracer_process.hook = wanted;
        return;
    }
    /* the program has put CPython's own evaluator into the slot, in place of our hook */
    if (current == _PyEval_EvalFrameDefault)
        tracer_process.hook = NULL;
    if (!tracer_process.hook)
        tracer_process.evaluate = current;
    else if (current != tracer_process.hook)
        return;
    if (wanted != tracer_process.hook)
        slot_set_evaluator(wanted ? wanted : tracer_process.evaluate);
    tracer_process.hook = wanted;
}

void tracer_install_needed_hook(void)
{
    world_stop(tracer_process.interpreter);
    install_hook();
    world_start(tracer_process.interpreter);
}

static void set_recording_state(bool on)
{
    tracer_process.recording = on;
    tracer_process.every_frame = on && !tracer_process.decided_only &&
                                 tracer_process.clock == SESSION_TSC && !tracer_process.max_depth;
    install_hook();
    if (tracer_hooks.record_changed)
        tracer_hooks.record_changed();
}

void tracer_set_recording(bool on)
{
    world_stop(tracer_process.interpreter);
    set_recording_state(on);
    world_start(tracer_process.interpreter);
}

void tracer_handle_recording_end(void)
{
    const struct session_file *session;

    if (!world_try_to_enter_gate(&tracer_gate))
        return; /* do nothing: another thread is doing this, or joins or leaves a session */
    world_stop(tracer_process.interpreter);
    /* read it again, because another session may have begun while we waited */
    session = tracer_process.session;
    if (session && atomic_load(&session->closed))
        set_recording_state(false);
    world_start(tracer_process.interpreter);
    world_leave_gate(&tracer_gate);
}
