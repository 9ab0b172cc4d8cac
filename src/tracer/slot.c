/* tracer/slot.c -- is our hook still called? Another PEP 523 user may replace it.
 *
 * Runs in: the traced process, never for a call.
 *
 * An evaluator put into the interpreter's slot after ours should call the evaluator that it found
 * there. An evaluator that does not call ours ends the recording of frames, and our hook cannot
 * notice. So we compare the slot with our hook at points that the program passes anyway:
 *
 *     an extension module has been imported     it may be the other user
 *     a thread or a program is started, fork(), os._exit()
 *     the garbage collector visits everything
 *     the recording ends, or the interpreter
 *
 *     OURS --somebody else's--> SUSPECT --does not call ours--> LOST --ours again--> OURS
 *                                  |________calls ours__________________________________^
 *
 * Where CPython counts the changes of the slot (COMPAT_COUNTS_SLOT_CHANGES) we compare the count,
 * too. Our changes are known, and one change has put the present evaluator there. If there were
 * more changes, another evaluator came and went between two looks.
 *
 * If a frame reaches our hook while the suspect is in the slot, the suspect calls our hook. To
 * notice such a frame, all events take the slow path (slot_watched) until a frame arrives. If none
 * has arrived by the next look, or if this look is the last, we evaluate a frame of our own, the
 * probe, and check whether the probe reaches our hook.
 *
 * Without a GIL: one thread at a time looks (tracer_gate). Another thread that wants to look
 * meanwhile does not, because its look would show the same. */
#include "tracer/file.h"
#include "tracer/hooks.h"

#include <dlfcn.h>

#define P tracer_process

enum { ROWS_MAX = 100 /* the most changes of the slot that get loss rows in a process */ };

static struct {
    enum { OURS, SUSPECT, LOST } state;
    /* the foreign evaluator in the slot, if the state is SUSPECT or LOST */
    _PyFrameEvalFunction suspect;
    /* the foreign evaluator of which we last learned that it calls our hook; or NULL */
    _PyFrameEvalFunction chains;
    uint64_t sure;  /* clock when we last knew that our hook was called */
    uint64_t since; /* clock when `suspect` was first seen in the slot */
    bool on;        /* set by slot_begin_watching(), until the interpreter or the recording ends */
    unsigned rows;
    _PyFrameEvalFunction seen; /* the evaluator that was in the slot when `changes` was read */
    unsigned changes;          /* CPython's count of changes of the slot; we know who made these */
    /* clock when we noticed that an evaluator had come and gone; 0 if none has */
    uint64_t visited;
    bool crowded; /* torch is loaded, and may change the slot at any time */
    /* borrowed: code of the frame with which we test the evaluator, while it runs */
    PyCodeObject *probe;
    bool arrived; /* the test frame has reached our hook */
} watch;          /* guarded by tracer_gate; but `probe` and `arrived` are atomic */

static bool is_watch_over(void)
{
    return !watch.on || !P.recording || !P.session || atomic_load(&P.session->closed);
}

/* Is this thread one of the main interpreter, and does it hold the GIL? */
static bool is_thread_of_main_interpreter(void)
{
    PyThreadState *ts = PyGILState_GetThisThreadState();

    return ts && ts == compat_attached_thread() && ts->interp == P.interpreter;
}

/* Convert CLOCK to seconds since the recording's start. Returns 0 if the collector has not
 * published the length of a tick yet. */
static double clock_to_seconds(uint64_t clock)
{
    const uint64_t ticks = clock - P.session->start_clock;

    return (double)((unsigned __int128)ticks * P.session->ns_per_tick_32 >> 32) / 1e9;
}

/* Is EVALUATE, an evaluator found in the main interpreter's slot, our hook, or one that is known to
 * call it? */
static bool is_our_hook(_PyFrameEvalFunction evaluate)
{
    if (evaluate == P.hook)
        return true;
    return tracer_hooks.is_observed && tracer_hooks.is_observed(evaluate);
}

/* ---- write loss rows about the slot ---- */

/* Describe EVALUATE in WORDS, for a loss row, with the file of the library that has it. */
static void describe_evaluator(_PyFrameEvalFunction evaluate, char *words, size_t room)
{
    Dl_info info;

    if (evaluate == _PyEval_EvalFrameDefault)
        snprintf(words, room, "CPython's own frame evaluator, which the program put there,");
    else if (dladdr((void *)evaluate, &info) && info.dli_fname)
        snprintf(words, room, "another frame evaluator (%.400s)", info.dli_fname);
    else
        snprintf(words, room, "another frame evaluator");
}

/* Write a loss row. EVENTS is -1 if it is not known how many events are lost. */
static void write_loss_row(uint64_t clock, int64_t events, const char *cause)
{
    if (watch.rows++ < ROWS_MAX)
        tracer_fact(LOSS, .clock = (int64_t)clock, .events = events,
                    .cause = fact_make_text(cause));
}

static void report_lost_hook(void)
{
    char who[500], cause[800];

    watch.state = LOST;
    describe_evaluator(watch.suspect, who, sizeof who);
    snprintf(cause, sizeof cause,
             "hook: %s has been in the place of ours since some time between %.6f and %.6f s and "
             "does not call it: frames after that are not recorded",
             who, clock_to_seconds(watch.sure), clock_to_seconds(watch.since));
    write_loss_row(watch.since, -1, cause);
}

/* Write a loss row: the slot has our hook again, or an evaluator that is known to call it. */
static void report_hook_back(uint64_t now)
{
    char who[500], cause[800];

    if (watch.state == LOST) {
        write_loss_row(now, 0,
                       "hook: ours is in its place again: frames are recorded from here on");
    } else {
        describe_evaluator(watch.suspect, who, sizeof who);
        snprintf(cause, sizeof cause,
                 "hook: %s was in the place of ours, from some time between %.6f and %.6f s until "
                 "%.6f s, and no frame reached ours: those that ran then are not recorded",
                 who, clock_to_seconds(watch.sure), clock_to_seconds(watch.since),
                 clock_to_seconds(now));
        write_loss_row(watch.since, -1, cause);
    }
}

/* Write a loss row: between two looks at the slot another evaluator came and went, and nobody knows
 * whether it called our hook. */
static void report_foreign_visit(void)
{
    char cause[400];

    snprintf(cause, sizeof cause,
             "hook: another frame evaluator took the place of ours and gave it back, some time "
             "between %.6f and %.6f s: if it did not call ours, frames of that time are missing",
             clock_to_seconds(watch.sure), clock_to_seconds(watch.visited));
    write_loss_row(watch.visited, -1, cause);
    watch.visited = 0;
}

void slot_accept_changes(void)
{
    watch.seen = compat_get_evaluator(P.interpreter);
    watch.changes = compat_count_slot_changes(P.interpreter);
}

static void clear_suspected_loss(void)
{
    watch.state = OURS;
    watch.sure = tracer_read_session_clock();
    slot_accept_changes();
    world_set(P.slot_watched, false);
}

/* ---- find out whether a foreign evaluator calls our hook ---- */

bool slot_is_probe(const PyCodeObject *code)
{
    const bool is = code == world_get(watch.probe);

    if (is)
        world_set(watch.arrived, true);
    return is;
}

/* Evaluate a frame of our own, which trace functions do not see. Returns true if it has reached our
 * hook. */
static bool is_hook_reached_by_test_call(void)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *globals = PyDict_New(), *result = NULL;
    OWNED PyObject *code = (PyObject *)PyCode_NewEmpty("<dyntrace>", "<probe>", 1);

    if (globals && code) {
        world_set(watch.arrived, false);
        world_set(watch.probe, (PyCodeObject *)code);
        PyThreadState_EnterTracing(PyThreadState_Get());
        /* the code is empty, so this raises AssertionError, which is dropped */
        result = PyEval_EvalCode(code, globals, globals);
        PyThreadState_LeaveTracing(PyThreadState_Get());
        world_set(watch.probe, NULL);
    }
    PyErr_Clear();
    return world_get(watch.arrived) || !globals || !code;
}

/* Is EVALUATE torch's evaluator, without our hooks around it? It needs no test: we know that it
 * calls the evaluator that it found in the slot, and it would compile the test frame. */
static bool is_torch_evaluator(_PyFrameEvalFunction evaluate)
{
    Dl_info info;

    return dladdr((void *)evaluate, &info) && info.dli_fname &&
           strstr(info.dli_fname, "/libtorch_python.so");
}

static bool does_evaluator_call_our_hook(_PyFrameEvalFunction evaluate)
{
    return evaluate != _PyEval_EvalFrameDefault &&
           (is_torch_evaluator(evaluate) || is_hook_reached_by_test_call());
}

/* ---- find out from CPython's count whether an evaluator came and went ---- */

/* Is torch loaded? Then a change of the slot that we did not make is no loss: torch's own evaluator
 * changes the slot at each compiled call, and calls the evaluator that it found
 * (is_torch_evaluator). */
static bool is_torch_loaded(void)
{
    void *torch = watch.crowded ? NULL : dlopen("libtorch_python.so", RTLD_LAZY | RTLD_NOLOAD);

    if (torch) {
        watch.crowded = true;
        dlclose(torch);
    }
    return watch.crowded;
}

void slot_set_evaluator(_PyFrameEvalFunction evaluator)
{
    const unsigned before = compat_count_slot_changes(P.interpreter);

    if (watch.seen == compat_get_evaluator(P.interpreter))
        watch.seen = evaluator;
    compat_set_evaluator(P.interpreter, evaluator);
    watch.changes += compat_count_slot_changes(P.interpreter) - before;
}

/* Has CPython counted changes of the slot that we did not make? One is explained if the evaluator
 * in the slot, CURRENT, is not the one at the last look. More mean that another evaluator came and
 * went. */
static void count_unexplained_changes(_PyFrameEvalFunction current)
{
    const unsigned expected = watch.changes + (current != watch.seen);
    const bool more = compat_count_slot_changes(P.interpreter) > expected;

    if (more && watch.state == OURS && !watch.visited && !is_torch_loaded())
        watch.visited = tracer_read_session_clock();
    slot_accept_changes();
}

/* ---- look at the slot ---- */

void slot_begin_watching(void)
{
    watch.on = true;
    watch.state = OURS;
    watch.chains = NULL;
    watch.rows = 0;
    watch.visited = 0;
    slot_accept_changes();
    watch.sure = tracer_read_session_clock();
    world_set(P.slot_watched, false);
}

/* Return the evaluator in the slot; NULL if our hook need not be in it now. */
static _PyFrameEvalFunction read_evaluator_slot(void)
{
    return is_watch_over() || !P.hook ? NULL : compat_get_evaluator(P.interpreter);
}

static void compare_slot_with_hook(void)
{
    const _PyFrameEvalFunction current = read_evaluator_slot();

    if (!current)
        return;
    count_unexplained_changes(current);
    if (watch.state != OURS)
        return;
    if (is_our_hook(current) || current == watch.chains) {
        /* wait until report_foreign_visit() has written its row, because it needs the times that
         * this changes */
        if (!watch.visited)
            watch.sure = tracer_read_session_clock();
        return;
    }
    watch.state = SUSPECT;
    watch.suspect = current;
    watch.since = tracer_read_session_clock();
    world_set(P.slot_watched, true);
    rings_request_slow_path();
}

void slot_compare_with_hook(void)
{
    if (!is_thread_of_main_interpreter() || !world_try_to_enter_gate(&tracer_gate))
        return;
    compare_slot_with_hook();
    world_leave_gate(&tracer_gate);
}

static void check_slot_and_report(bool last)
{
    const bool suspected = watch.state == SUSPECT;
    _PyFrameEvalFunction current;

    compare_slot_with_hook();
    current = read_evaluator_slot();
    if (current && watch.visited) {
        report_foreign_visit();
        if (watch.state == OURS)
            watch.sure = tracer_read_session_clock();
    }
    if (!current || watch.state == OURS)
        return;
    if (is_our_hook(current)) {
        report_hook_back(tracer_read_session_clock());
        clear_suspected_loss();
    } else if (watch.state == SUSPECT &&
               (suspected || last || current == _PyEval_EvalFrameDefault)) {
        if (!does_evaluator_call_our_hook(current)) {
            report_lost_hook();
        } else if (read_evaluator_slot() == current) {
            watch.chains = current;
            clear_suspected_loss();
        }
    }
}

void slot_check_hook(bool last)
{
    if (!is_thread_of_main_interpreter() || !world_try_to_enter_gate(&tracer_gate))
        return;
    check_slot_and_report(last);
    world_leave_gate(&tracer_gate);
}

void slot_check_last_time(void)
{
    if (is_thread_of_main_interpreter() && world_try_to_enter_gate(&tracer_gate)) {
        check_slot_and_report(true);
        watch.on = false;
        world_set(P.slot_watched, false);
        world_leave_gate(&tracer_gate);
    }
}

static void check_slot_at_arrival(void)
{
    const _PyFrameEvalFunction current = read_evaluator_slot();

    if (!current || watch.state == OURS)
        return;
    if (is_our_hook(current))
        report_hook_back(tracer_read_session_clock());
    else if (watch.state == LOST)
        /* it stays LOST, although some frames arrive: it does not call our hook for every frame */
        return;
    else
        watch.chains = current;
    clear_suspected_loss();
}

void slot_note_arrival(void)
{
    if (!is_thread_of_main_interpreter() || !world_try_to_enter_gate(&tracer_gate))
        return;
    check_slot_at_arrival();
    world_leave_gate(&tracer_gate);
}

void slot_report_after_fork(void)
{
    if (watch.state == LOST)
        report_lost_hook();
}
