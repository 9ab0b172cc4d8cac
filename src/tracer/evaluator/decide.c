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

/* The frame's variables, made when they are first needed. Borrowed. */
static PyObject *locals_of(compat_frame *frame, PyObject **locals)
{
    if (!*locals)
        *locals = guard_frame_locals(frame);
    return *locals;
}

/* Do the guards hold of ENTRY, whose PARTS are pinned? A tree is checked on the frame itself. */
static struct guard_outcome check_entry(const struct cache_entry *entry, const struct cache_parts *parts,
                                        compat_frame *frame, PyObject **locals)
{
    struct guard_outcome outcome = {GUARD_ERROR, 1, 0};
    PyObject *check, *result = NULL;

    if (entry->tree)
        return guard_tree_check(parts->guard, &(struct guard_values){.frame = frame});
    check = entry->front->modes->skip_guards_unsafe ? parts->difference : parts->check;
    if (!check) /* no guards that tell entries apart yet */
        return (struct guard_outcome){GUARD_FAIL, 0, UINT32_MAX};
    Py_INCREF(check);
    if (locals_of(frame, locals))
        result = PyObject_CallOneArg(check, *locals);
    Py_DECREF(check);
    if (result && !PyBool_Check(result)) {
        PyObject *type = Py_NewRef((PyObject *)Py_TYPE(result));
        PyErr_Format(PyExc_TypeError, "the guard of entry %S of %U() returned %s, not bool", entry->compile_id,
                     compat_code(frame)->co_qualname, ((PyTypeObject *)type)->tp_name);
        Py_DECREF(type);
    } else if (result) {
        outcome = (struct guard_outcome){result == Py_True ? GUARD_PASS : GUARD_FAIL, entry->guards,
                                         result == Py_True ? UINT32_MAX : 0};
    }
    Py_XDECREF(result);
    return outcome;
}

/* HOOK(guard, code, f_locals, index, last), with the pending exception kept. */
static void tell_hook(PyObject *hook, PyObject *guard, PyObject *code, compat_frame *frame, PyObject **locals,
                      Py_ssize_t index, bool last)
{
    PyObject *type, *value, *traceback, *result;

    if (!hook)
        return;
    Py_INCREF(hook); /* it may put another in its place */
    PyErr_Fetch(&type, &value, &traceback);
    result = locals_of(frame, locals)
                 ? PyObject_CallFunction(hook, "OOOnO", guard, code, *locals, index, last ? Py_True : Py_False)
                 : NULL;
    if (!result)
        PyErr_WriteUnraisable(hook);
    Py_XDECREF(result);
    PyErr_Restore(type, value, traceback);
    Py_DECREF(hook);
}

/* One entry, which the caller holds: does it fit? 1: yes, and *FOUND is a new reference to it. 0: no. -1: its
 * guard raised, or gave something that is not a bool. */
static int try_entry(struct cache_entry *entry, compat_frame *frame, PyObject **locals, struct decision *d,
                     Py_ssize_t index, bool last, struct cache_entry **found)
{
    struct cache_parts *parts = cache_entry_pin(entry);
    uint64_t began = d->on ? tracer_now(tracer_process.monotonic) : 0, ticks;
    struct guard_outcome outcome;
    int result = 0;

    if (!parts) /* by what was looked at before it */
        return 0;
    outcome = check_entry(entry, parts, frame, locals);
    ticks = d->on ? tracer_now(tracer_process.monotonic) - began : 0;
    if (entry->front->failed && d->on && outcome.result == GUARD_FAIL) {
        began = tracer_now(tracer_process.monotonic);
        outcome = entry->front->failed(entry, parts, frame, *locals);
        d->ours += tracer_now(tracer_process.monotonic) - began;
    }
    decision_add(d, entry, outcome.result == GUARD_PASS ? CHECK_PASS : outcome.result ? CHECK_ERROR : CHECK_FAIL,
                 outcome.guards_run, outcome.failed, ticks);
    if (d->on && entry->tree && guard_tree_moves(parts->guard) != entry->moves)
        decision_entry_order(entry, parts->guard, tracer_now(tracer_process.monotonic));
    if (outcome.result == GUARD_PASS && entry->valid) {
        cache_entry_touch(entry);
        *found = (struct cache_entry *)Py_NewRef((PyObject *)entry);
        result = 1;
        goto done;
    }
    if (outcome.result == GUARD_ERROR || entry->front->fail_hook)
        tell_hook(outcome.result == GUARD_ERROR ? shim_settings.guard_error_hook : shim_settings.guard_fail_hook,
                  parts->guard, entry->front->fail_hook ? (PyObject *)compat_code(frame) : parts->code, frame, locals,
                  index, last);
    result = outcome.result == GUARD_ERROR ? -1 : 0;
done:
    cache_parts_unpin(parts);
    return result;
}

/* The first entry that fits: a new reference in *FOUND, or NULL. -1: a guard
 * raised, or gave something that is not a bool. */
static int look_up(struct code_state *state, int64_t region, compat_frame *frame, PyObject **locals, PyObject *backend,
                   struct decision *d, struct cache_entry **found)
{
    struct cache_entry *small[ENTRIES_ON_STACK], **entries = small;
    const Py_ssize_t loaded = state->precompiled.count, count = loaded + state->entries.count;
    int status = 0;

    *found = NULL;
    /* Guards may change the lists: each entry is asked once, in the order of now. */
    if (count > ENTRIES_ON_STACK && !(entries = PyMem_Malloc((size_t)count * sizeof *entries))) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < loaded; i++)
        entries[i] = (struct cache_entry *)Py_NewRef((PyObject *)state->precompiled.at[i]);
    for (Py_ssize_t i = loaded; i < count; i++)
        entries[i] = (struct cache_entry *)Py_NewRef((PyObject *)state->entries.at[i - loaded]);
    for (Py_ssize_t i = 0; i < loaded && !status; i++)
        if (entries[i]->region < 0 || entries[i]->region == region)
            status = try_entry(entries[i], frame, locals, d, i, false, found);
    /* A region's own entries come before the common ones. */
    for (int common = region < 0; common < 2 && !status; common++)
        for (Py_ssize_t i = loaded; i < count && !status; i++) {
            struct cache_entry *entry = entries[i];
            if (!entry->valid || entry->region != (common ? -1 : region))
                continue;
            if (shim_same_backend(entry->backend, backend))
                status = try_entry(entry, frame, locals, d, i - loaded, i + 1 == count, found);
            else
                decision_add(d, entry, CHECK_BACKEND_MISMATCH, 0, UINT32_MAX, 0);
        }
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(entries[i]);
    if (entries != small)
        PyMem_Free(entries);
    return status < 0 ? -1 : 0;
}

/* ---- the callback ---- */

/* Ask CALLBACK to compile. -1: it raised, or answered nonsense. */
static int ask(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *locals, struct code_state *state,
               const struct front *front, int64_t region, struct decision *d, struct answer *answer)
{
    PyObject *view = shim_frame_open(frame, locals, front), *result = NULL, *first;
    struct front_asking asking;
    int status = -1;

    if (!view)
        return -1;
    first = (PyObject *)cache_entry_first(state, region);
    first = Py_NewRef(first ? first : Py_None);
    decision_ask(d, state, (PyObject *)compat_code(frame));
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

/* Evaluate the frame as it is, with callees under CALLBACK; then put back what
 * was there, unless the frame itself has set another. */
static PyObject *run_original(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                              PyObject *under)
{
    PyObject *result;

    if (t->callback != under)
        set_callback(t, under);
    result = record_evaluate(t, ts, frame, 0);
    if (under != callback && t->callback == under)
        set_callback(t, callback);
    return result;
}

/* Run CODE, that of ENTRY; the caller holds both. */
static PyObject *run_entry(struct tracer *t, PyThreadState *ts, compat_frame *frame, struct cache_entry *entry,
                           PyObject *code, PyObject *callback, PyObject *under)
{
    const struct front *front = t->front;
    struct front_run run;
    PyObject *result;

    if (front->run_begins && front->run_begins(&run, entry, code, &under)) {
        front->run_ends(&run);
        compat_dispose(ts, frame);
        return NULL;
    }
    entry->hits++;
    if (t->callback != under)
        set_callback(t, under);
    result = code == (PyObject *)compat_code(frame) ? record_evaluate(t, ts, frame, 0)
                                                    : replace_frame(t, ts, frame, entry, code);
    if (under != callback && t->callback == under)
        set_callback(t, callback);
    if (front->run_ends)
        front->run_ends(&run);
    return result;
}

/* The state that CODE has now. STATE, which the caller holds, is the one that it had: it was reset if it has no code,
 * and then what the caller holds becomes the other. NULL: no memory. */
static struct code_state *state_now(struct code_state *state, PyCodeObject *code)
{
    struct code_state *now;

    while (unlikely(!state->code)) {
        now = code_state_of(code, true);
        if (now)
            code_state_hold(now);
        code_state_release(state);
        if (!now)
            return NULL;
        state = now;
    }
    return state;
}

/* What happens when no entry fits and the callback may not be called; OUTCOME_COMPILED: it may. */
static enum outcome refused(const struct code_state *state, const struct code_actions *actions, PyObject *callback,
                            const struct front *front)
{
    if (actions->own == ACTION_SKIP) /* set by a guard */
        return OUTCOME_SKIP;
    if (callback == Py_False || actions->own == ACTION_RUN_ONLY)
        return actions->limited ? OUTCOME_LIMIT : OUTCOME_RUN_ONLY;
    if (front->limits && ((unsigned long)code_state_valid(state) >= shim_settings.recompile_limit ||
                          state->compiles >= shim_settings.accumulated_limit))
        return OUTCOME_LIMIT;
    return OUTCOME_COMPILED;
}

static PyObject *decide(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback, uint64_t entered)
{
    const struct front *front = t->front;
    const int64_t region = front->regions ? t->region : -1;
    PyCodeObject *code = compat_code(frame);
    struct code_state *state = code_state_of(code, callback != Py_False);
    PyObject *locals = NULL, *under = callback, *result = NULL, *backend = NULL, *range = NULL, *compiled = NULL;
    struct cache_entry *entry = NULL;
    struct code_actions actions;
    struct answer answer = {0};
    enum outcome outcome = OUTCOME_PLAIN;
    struct decision decision;
    int failed;

    if (!state)
        return record_evaluate(t, ts, frame, 0);
    code_state_hold(state);
    if (COMPAT_INIT_BYPASSES_HOOK && unlikely(state->is_init))
        tracer_fix_init(compat_local(frame, 0));
    actions = code_state_actions(state, region);
    under = callback_under(callback, actions.callees);
    if (actions.own == ACTION_SKIP) {
        if (entered)
            decision_outcome(t, OUTCOME_SKIP);
        if (!actions.written)
            decision_actions(state, region, NULL);
        result = run_original(t, ts, frame, callback, under);
        code_state_release(state);
        return result;
    }
    decision_begin(&decision, entered, front);
    set_callback(t, NULL);
    backend = callback == Py_False ? Py_NewRef(Py_False) : shim_backend_of(callback);
    if (front->lookup_begins)
        range = front->lookup_begins();
    failed = look_up(state, region, frame, &locals, backend, &decision, &entry);
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
    if (!locals_of(frame, &locals))
        goto err;
    decision_missed(&decision, frame, locals);
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
    if (ask(ts, callback, frame, locals, state, front, region, &decision, &answer)) {
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
    decision_end(&decision);
    Py_CLEAR(locals); /* what the frame drops must die when it does */
    if (entry && entry->valid) /* nothing has just invalidated it */
        compiled = Py_NewRef(entry->parts->code);
    result = compiled ? run_entry(t, ts, frame, entry, compiled, callback, under)
                      : run_original(t, ts, frame, callback, under);
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
    Py_XDECREF(locals);
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
