/* tracer/evaluator/decide.c -- what to run for a call: the shim's rules, for callbacks of one's own and for torch's.
 *
 * Runs in: the traced process, on every Python call while some thread has a
 * callback (set_eval_frame).
 *
 *     callback None             the frame as it is
 *     code marked skip          the frame as it is; its callees as the mark says
 *     entries, in order         the first of this backend whose guard passes runs
 *     miss, callback False,
 *       or limit reached        the frame as it is
 *     miss, callable            callback(frame, first entry, frame_state):
 *       None                      mark the code skip; the frame as it is
 *       GuardedCode               a new entry in front, which runs
 *       ConvertFrameReturn        the same with a say in how callees are treated
 *
 * What differs for torch's callbacks, which keep their limits themselves, is in their struct front.
 *
 * While guards and callback run, the thread's callback is None. After an
 * exception from either it stays None, and the exception is the call's result.
 * Frames that are thrown into or have started are evaluated as they are. */
#include "tracer/evaluator/cache.h"
#include "tracer/record.h"

#include <string.h>

enum { ENTRIES_ON_STACK = 16 };

struct shim_settings shim_settings = {.recompile_limit = 8, .accumulated_limit = 256};

PyObject *shim_backend_of(PyObject *callback)
{
    static PyObject *names[2];
    PyObject *at = Py_NewRef(callback);

    if (!names[0]) {
        names[0] = PyUnicode_InternFromString("_torchdynamo_orig_backend");
        names[1] = PyUnicode_InternFromString("_torchdynamo_orig_callable");
    }
    for (int depth = 0; depth < 64; depth++) {
        PyObject *inner = NULL;
        for (int i = 0; i < 2 && !inner; i++)
            if (!names[i] || compat_optional_attribute(at, names[i], &inner) < 0)
                PyErr_Clear();
        if (!inner)
            break;
        Py_SETREF(at, inner);
    }
    return at;
}

bool shim_same_backend(PyObject *entry, PyObject *wanted)
{
    int same;

    if (entry == wanted || wanted == Py_False) /* run-only takes any */
        return true;
    same = PyObject_RichCompareBool(entry, wanted, Py_EQ);
    if (same < 0)
        PyErr_Clear();
    return same > 0;
}

/* Do the guards hold of ENTRY, whose PARTS are pinned? A tree is checked on the frame itself. */
static struct guard_outcome check_entry(const struct cache_entry *entry, const struct cache_parts *parts,
                                        struct decision *d)
{
    struct guard_outcome outcome = {GUARD_ERROR, 1, 0};
    PyObject *check, *result = NULL;

    if (entry->tree)
        return guard_tree_check(parts->guard, &(struct guard_values){.frame = d->frame});
    check = entry->front->modes->skip_guards_unsafe ? parts->difference : parts->check;
    if (!check) /* no guards that tell entries apart yet */
        return (struct guard_outcome){GUARD_FAIL, 0, UINT32_MAX};
    Py_INCREF(check);
    if (decision_locals(d))
        result = PyObject_CallOneArg(check, d->locals);
    Py_DECREF(check);
    if (result && !PyBool_Check(result)) {
        PyObject *type = Py_NewRef((PyObject *)Py_TYPE(result));
        PyErr_Format(PyExc_TypeError, "the guard of entry %S of %U() returned %s, not bool", entry->compile_id,
                     compat_code(d->frame)->co_qualname, ((PyTypeObject *)type)->tp_name);
        Py_DECREF(type);
    } else if (result) {
        outcome = (struct guard_outcome){result == Py_True ? GUARD_PASS : GUARD_FAIL, entry->guards,
                                         result == Py_True ? UINT32_MAX : 0};
    }
    Py_XDECREF(result);
    return outcome;
}

/* HOOK(guard, code, f_locals, index, last) for ENTRY and its PARTS, with the pending exception kept. */
static void tell_hook(PyObject *hook, const struct cache_entry *entry, const struct cache_parts *parts,
                      struct decision *d, Py_ssize_t index, bool last)
{
    PyObject *code = entry->front->fail_hook ? (PyObject *)compat_code(d->frame) : parts->code;
    PyObject *type, *value, *traceback, *result = NULL;

    if (!hook)
        return;
    Py_INCREF(hook); /* it may put another in its place */
    PyErr_Fetch(&type, &value, &traceback);
    if (decision_locals(d))
        result = PyObject_CallFunction(hook, "OOOnO", parts->guard, code, d->locals, index, last ? Py_True : Py_False);
    if (!result)
        PyErr_WriteUnraisable(hook);
    Py_XDECREF(result);
    PyErr_Restore(type, value, traceback);
    Py_DECREF(hook);
}

/* One entry, which the caller holds: does it fit? 1 or 0; -1: its guard raised, or gave something that is not a bool. */
static int try_entry(struct cache_entry *entry, struct decision *d, Py_ssize_t index, bool last)
{
    struct cache_parts *parts = cache_entry_pin(entry);
    uint64_t began = d->on ? tracer_now(tracer_process.monotonic) : 0, ticks;
    struct guard_outcome outcome;
    bool fits;

    if (!parts) /* by what was looked at before it */
        return 0;
    outcome = check_entry(entry, parts, d);
    ticks = d->on ? tracer_now(tracer_process.monotonic) - began : 0;
    if (entry->front->failed && d->on && outcome.result == GUARD_FAIL) {
        began = tracer_now(tracer_process.monotonic);
        outcome = entry->front->failed(entry, parts, d->frame, d->locals);
        d->ours += tracer_now(tracer_process.monotonic) - began;
    }
    decision_add(d, entry, outcome.result == GUARD_PASS ? CHECK_PASS : outcome.result ? CHECK_ERROR : CHECK_FAIL,
                 outcome.guards_run, outcome.failed, ticks);
    if (d->on && entry->tree && guard_tree_moves(parts->guard) != entry->moves)
        decision_entry_order(entry, parts->guard, tracer_now(tracer_process.monotonic));
    fits = outcome.result == GUARD_PASS && entry->valid;
    if (fits)
        cache_entry_touch(entry);
    else if (outcome.result == GUARD_ERROR)
        tell_hook(shim_settings.guard_error_hook, entry, parts, d, index, last);
    else if (entry->front->fail_hook)
        tell_hook(shim_settings.guard_fail_hook, entry, parts, d, index, last);
    cache_parts_unpin(parts);
    return fits ? 1 : outcome.result == GUARD_ERROR ? -1 : 0;
}

/* The first entry that fits: a new reference in *FOUND, or NULL. -1: a guard
 * raised, or gave something that is not a bool. */
static int look_up(struct code_state *state, PyObject *backend, struct decision *d, struct cache_entry **found)
{
    const int64_t region = d->region;
    struct cache_entry *small[ENTRIES_ON_STACK], **entries = small, *entry;
    const Py_ssize_t loaded = state->precompiled.count, count = loaded + state->entries.count;
    Py_ssize_t copied = 0;
    int status = 0;

    /* Guards may change the lists: each entry is asked once, in the order of now. */
    if (count > ENTRIES_ON_STACK && !(entries = PyMem_Malloc((size_t)count * sizeof *entries))) {
        PyErr_NoMemory();
        return -1;
    }
    for (entry = state->precompiled.first; entry; entry = entry->next)
        entries[copied++] = (struct cache_entry *)Py_NewRef((PyObject *)entry);
    for (entry = state->entries.first; entry; entry = entry->next)
        entries[copied++] = (struct cache_entry *)Py_NewRef((PyObject *)entry);
    for (Py_ssize_t i = 0; i < loaded && !status; i++) {
        entry = entries[i];
        if (entry->region < 0 || entry->region == region)
            status = try_entry(entry, d, i, false);
    }
    /* A region's own entries come before the common ones. */
    for (int common = region < 0; common < 2 && !status; common++)
        for (Py_ssize_t i = loaded; i < count && !status; i++) {
            entry = entries[i];
            if (!entry->valid || entry->region != (common ? -1 : region))
                continue;
            if (shim_same_backend(entry->backend, backend))
                status = try_entry(entry, d, i - loaded, i + 1 == count);
            else
                decision_add(d, entry, CHECK_BACKEND_MISMATCH, 0, UINT32_MAX, 0);
        }
    *found = status > 0 ? (struct cache_entry *)Py_NewRef((PyObject *)entry) : NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(entries[i]);
    if (entries != small)
        PyMem_Free(entries);
    return status < 0 ? -1 : 0;
}

/* ---- the callback ---- */

int answer_strategy(PyObject *strategy, struct code_actions *actions)
{
    static const char *const names[2] = {"cur_action", "recursive_action"};
    enum frame_action *const action[2] = {&actions->own, &actions->callees};

    for (int i = 0; i < 2; i++) {
        PyObject *value = tracer_attribute(strategy, names[i]);
        long number = value ? PyLong_AsLong(value) : -1;

        Py_XDECREF(value);
        if (number < ACTION_DEFAULT || number > ACTION_RUN_ONLY) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "%s: %ld is not a FrameAction", names[i], number);
            return -1;
        }
        *action[i] = (enum frame_action)number;
    }
    return 0;
}

int answer_read(PyObject *result, struct answer *answer)
{
    PyObject *strategy, *truth;
    int status;

    *answer = (struct answer){0};
    if (result == Py_None || result == shim_settings.skip_recursively || result == shim_settings.limit_reached) {
        answer->actions.own = result == shim_settings.limit_reached ? ACTION_RUN_ONLY : ACTION_SKIP;
        answer->actions.callees = result == Py_None ? ACTION_DEFAULT : answer->actions.own;
        answer->for_code = true;
        return 0;
    }
    strategy = shim_optional(result, "frame_exec_strategy");
    if (!strategy) {
        answer->guarded = PyErr_Occurred() ? NULL : Py_NewRef(result); /* the older protocol: the GuardedCode itself */
        return answer->guarded ? 0 : -1;
    }
    status = answer_strategy(strategy, &answer->actions);
    Py_DECREF(strategy);
    if (status)
        return -1;
    truth = tracer_attribute(result, "apply_to_code");
    status = truth ? PyObject_IsTrue(truth) : -1;
    Py_XDECREF(truth);
    if (status < 0 || !(answer->guarded = tracer_attribute(result, "guarded_code")))
        return -1;
    if (answer->guarded == Py_None) {
        Py_CLEAR(answer->guarded);
        answer->reason = tracer_attribute(result, "skip_reason");
        if (!answer->reason)
            PyErr_Clear();
    }
    answer->for_code = status;
    return 0;
}

enum outcome answer_outcome(const struct answer *answer, const struct front *front)
{
    if (answer->guarded)
        return OUTCOME_COMPILED;
    return !front->limits && answer->actions.own == ACTION_RUN_ONLY ? OUTCOME_LIMIT : OUTCOME_DECLINED;
}

/* Ask CALLBACK to compile. -1: it raised, or answered nonsense. */
static int ask(PyThreadState *ts, PyObject *callback, struct code_state *state, struct decision *d,
               struct answer *answer)
{
    PyObject *view = shim_frame_open(d), *result = NULL, *first;
    const struct front *front = d->front;
    struct front_asking asking;
    int status = -1;

    if (!view)
        return -1;
    first = (PyObject *)cache_entry_first(state, d->region);
    first = Py_NewRef(first ? first : Py_None);
    decision_ask(d, state);
    if (!front->ask_begins || front->ask_begins(&asking, ts) == 0)
        result = PyObject_CallFunctionObjArgs(callback, view, first, state->frame_state, NULL);
    if (front->ask_ends)
        front->ask_ends(&asking, ts);
    decision_asked(d, result);
    Py_DECREF(first);
    shim_frame_close(view);
    if (result)
        status = answer_read(result, answer);
    Py_XDECREF(result);
    return status;
}

/* ---- the decision ---- */

/* The thread's callback, to VALUE (borrowed here; NULL = None). A thread stays
 * active while guards run without one, but not when it is left without. */
static void set_callback(struct tracer *t, PyObject *value)
{
    PyObject *old = t->callback;

    t->callback = Py_XNewRef(value);
    if (unlikely(value && !t->active))
        shim_set_active(t, true);
    Py_XDECREF(old);
}

/* What callees get when the action for them is ACTION. Borrowed. */
static PyObject *callback_under(PyObject *callback, enum frame_action action)
{
    return action == ACTION_SKIP ? NULL : action == ACTION_RUN_ONLY ? Py_False : callback;
}

/* Run the frame as it is, or CODE in its place, if that is not NULL: of ENTRY; the caller holds both. Callees run under
 * UNDER; then CALLBACK is put back, unless the frame itself has set another. */
static inline __attribute__((always_inline)) PyObject *
run(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback, PyObject *under,
    struct cache_entry *entry, PyObject *code)
{
    const struct front *front = t->front;
    const bool around = code && front->run_begins;
    struct front_run run;
    PyObject *result;

    if (around && front->run_begins(&run, entry, code, &under)) {
        front->run_ends(&run);
        compat_dispose(ts, frame);
        return NULL;
    }
    if (code)
        entry->hits++;
    if (t->callback != under)
        set_callback(t, under);
    result = !code || code == (PyObject *)compat_code(frame) ? record_evaluate(t, ts, frame, 0)
                                                             : replace_frame(t, ts, frame, entry, code);
    if (under != callback && t->callback == under)
        set_callback(t, callback);
    if (around)
        front->run_ends(&run);
    return result;
}

/* The state that CODE has now. STATE, which the caller holds, is the one that it had: it was reset if it has no code,
 * and then what the caller holds becomes the other. NULL: no memory. */
static struct code_state *state_now(struct code_state *state, PyCodeObject *code)
{
    while (unlikely(state && !state->code)) {
        struct code_state *now = code_state_of(code, true);
        if (now)
            now->references++;
        code_state_release(state);
        state = now;
    }
    return state;
}

/* Has STATE's code as many entries that can still match, or ever made, as it may have? */
static bool is_at_limit(const struct code_state *state)
{
    unsigned long valid = 0;

    for (const struct cache_entry *entry = state->entries.first; entry; entry = entry->next)
        valid += entry->valid;
    return valid >= shim_settings.recompile_limit || state->compiles >= shim_settings.accumulated_limit;
}

/* What happens when no entry fits and the callback may not be called; OUTCOME_COMPILED: it may. */
static enum outcome refused(const struct code_state *state, const struct code_actions *actions, PyObject *callback,
                            const struct front *front)
{
    if (actions->own == ACTION_SKIP) /* set by a guard */
        return OUTCOME_SKIP;
    if (callback == Py_False || actions->own == ACTION_RUN_ONLY)
        return actions->limited ? OUTCOME_LIMIT : OUTCOME_RUN_ONLY;
    return front->limits && is_at_limit(state) ? OUTCOME_LIMIT : OUTCOME_COMPILED;
}

static PyObject *decide(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback, uint64_t entered)
{
    const struct front *front = t->front;
    const int64_t region = front->regions ? t->region : -1;
    PyCodeObject *code = compat_code(frame);
    struct code_state *state = code_state_of(code, callback != Py_False);
    PyObject *under = callback, *result = NULL, *backend = NULL, *range = NULL, *compiled = NULL;
    struct cache_entry *entry = NULL;
    struct code_actions actions;
    struct answer answer = {0};
    enum outcome outcome = OUTCOME_PLAIN;
    struct decision decision;
    int failed;

    if (!state)
        return record_evaluate(t, ts, frame, 0);
    state->references++;
    if (COMPAT_INIT_BYPASSES_HOOK && unlikely(state->is_init))
        tracer_fix_init(compat_local(frame, 0));
    actions = code_state_actions(state, region);
    under = callback_under(callback, actions.callees);
    if (actions.own == ACTION_SKIP) {
        if (entered)
            decision_outcome(t, OUTCOME_SKIP);
        if (!actions.written)
            decision_actions(state, region, NULL);
        result = run(t, ts, frame, callback, under, NULL, NULL);
        code_state_release(state);
        return result;
    }
    decision_begin(&decision, entered, front, frame, region);
    set_callback(t, NULL);
    backend = callback == Py_False ? Py_NewRef(Py_False) : shim_backend_of(callback);
    if (front->lookup_begins)
        range = front->lookup_begins();
    failed = look_up(state, backend, &decision, &entry);
    if (range)
        front->lookup_ends(range);
    if (!failed && front->agreed) {
        bool hit = entry != NULL;
        failed = front->agreed(state, &hit);
        if (!hit)
            Py_CLEAR(entry);
    }
    if (failed) {
        outcome = OUTCOME_GUARD_ERROR;
        goto err;
    }
    if (entry) {
        outcome = OUTCOME_HIT;
        goto run;
    }
    if (!decision_locals(&decision))
        goto err;
    decision_missed(&decision, refused(state, &actions, callback, front) == OUTCOME_COMPILED);
    if (front->modes->skip_guards_unsafe) { /* in torch's words: programs look for them */
        PyErr_SetString(PyExc_RuntimeError, "Recompilation triggered with skip_guard_eval_unsafe stance. "
                        "This usually means that you have not warmed up your model "
                        "with enough inputs such that you can guarantee no more recompilations.");
        outcome = OUTCOME_CALLBACK_ERROR;
        goto err;
    }
    if (callback != Py_False && !(state = state_now(state, code)))
        goto no_memory;
    actions = code_state_actions(state, region);
    under = callback_under(callback, actions.callees);
    outcome = refused(state, &actions, callback, front);
    if (outcome != OUTCOME_COMPILED)
        goto run;
    if (ask(ts, callback, state, &decision, &answer)) {
        outcome = OUTCOME_CALLBACK_ERROR;
        decision_answer(&decision, state, NULL, outcome);
        goto err;
    }
    if (actions.callees == ACTION_DEFAULT)
        under = callback_under(callback, answer.actions.callees);
    entry = answer.guarded ? cache_entry_add(code, answer.guarded, backend, front) : NULL;
    if (!(state = state_now(state, code)))
        goto no_memory;
    outcome = answer.guarded && !entry ? OUTCOME_CALLBACK_ERROR : answer_outcome(&answer, front);
    decision_answer(&decision, state, entry, outcome);
    if (outcome == OUTCOME_CALLBACK_ERROR) /* a wrong answer changes nothing */
        goto err;
    if (answer.for_code) {
        answer.actions.limited = outcome == OUTCOME_LIMIT;
        if (!(state = state_now(state, code)) || !code_state_act(state, region, answer.actions))
            goto no_memory;
        decision_actions(state, region, answer.reason);
    }
run:
    t->front = front; /* a callback of the other kind may have been set and ours put back */
    decision_write(&decision, t, outcome, entry);
    decision_end(&decision); /* with its locals: what the frame drops must die when it does */
    if (entry && entry->valid) /* nothing has just invalidated it */
        compiled = Py_NewRef(entry->parts->code);
    result = run(t, ts, frame, callback, under, entry, compiled);
    goto done;
no_memory:
    PyErr_NoMemory();
err:
    decision_write(&decision, t, outcome, NULL);
    decision_end(&decision);
    if (!t->callback)
        shim_set_active(t, false);
    compat_dispose(ts, frame);
done:
    Py_XDECREF(compiled);
    Py_XDECREF(entry);
    Py_XDECREF(backend);
    Py_XDECREF(answer.guarded);
    Py_XDECREF(answer.reason);
    if (state)
        code_state_release(state);
    return result;
}

/* Is there compiled code for CODE, which does not run because the compiler is off? */
static bool has_entries(PyCodeObject *code)
{
    struct code_state *state = code_state_of(code, false);

    return state && state->entries.count;
}

/* Will a call of CODE be looked up, with the callback that the thread has? */
static bool is_decided(const struct tracer *t, PyCodeObject *code)
{
    const struct code_state *state = code_state_of(code, false);

    return state ? code_state_actions(state, front_region(t->front)).own != ACTION_SKIP : t->callback != Py_False;
}

/* While the compiler compiles, the thread has no callback: most of the frames that come here. */
static inline __attribute__((always_inline)) PyObject *
record_unasked(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag)
{
    const bool resumed = compat_is_resumed(frame);
    const uintptr_t mark = record_mark(frame);
    struct open_frame open;
    PyObject *result;

    if (!record_call(t, &open, mark, throwflag, resumed, false, false))
        return record_evaluate(t, ts, frame, throwflag);
    if (unlikely(has_entries(compat_code(frame))))
        decision_outcome(t, OUTCOME_DISABLED);
    result = record_evaluate(t, ts, frame, throwflag);
    record_exit(t, &open, ts, frame, result, resumed, false);
    return result;
}

PyObject *decide_frame(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    struct tracer *t = tracer_thread;
    PyObject *callback, *result;
    struct open_frame open;
    bool resumed, asks, monotonic = tracer_process.monotonic;
    uint64_t entered = 0;
    uintptr_t mark = 0;

    if (unlikely(!t) && unlikely(!(t = tracer_attach(frame))))
        return tracer_process.evaluate(ts, frame, throwflag);
    if (t->replacement == compat_code(frame)) { /* the code that runs in place of a frame, which is recorded */
        replace_begin(t, frame);
        return record_evaluate(t, ts, frame, throwflag);
    }
    if (!t->callback && tracer_process.every_frame)
        return record_unasked(t, ts, frame, throwflag);
    resumed = compat_is_resumed(frame);
    asks = t->callback && !throwflag && !resumed && ts->tracing <= 0 && !compat_has_started(frame);
    if (tracer_process.recording) {
        mark = record_mark(frame);
        if (!tracer_process.decided_only || (asks && is_decided(t, compat_code(frame))))
            entered =
                record_call(t, &open, mark, throwflag, resumed, monotonic, tracer_process.session->max_depth != 0);
    }
    callback = t->callback;
    if (!asks || !callback) {
        if (entered && !callback && has_entries(compat_code(frame)))
            decision_outcome(t, OUTCOME_DISABLED);
        result = record_evaluate(t, ts, frame, throwflag);
    } else {
        Py_INCREF(callback);
        result = decide(t, ts, frame, callback, entered);
        Py_DECREF(callback);
    }
    if (entered)
        record_exit(t, &open, ts, frame, result, resumed, monotonic);
    return result;
}
