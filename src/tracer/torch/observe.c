/* tracer/torch/observe.c -- torch's own evaluator stays in the slot; hooks above and below it
 * record its decisions.
 *
 * Runs in: the traced process, on every Python call while torch's evaluator is in the interpreter's
 * slot.
 *
 *     slot -> upper -> torch's evaluator -> lower -> recorder's hook, CPython
 *
 * Torch's evaluator calls the evaluator that it found in the slot. So we put `lower` there just
 * before torch installs its evaluator, and `upper` just after. During each call of torch's
 * set_eval_frame() the slot holds the evaluator that torch left there.
 *
 * A frame that torch decides is `pending` from upper on. The next frame that arrives at lower shows
 * torch's decision:
 *
 *     the frame itself             it runs as it is
 *     compiled code we know        a hit, or the code just compiled
 *     code called with torch's     the callback: a compile
 *       frame view
 *     other frames                 guards written in Python
 *     nothing, and an exception    a guard or the callback raised
 *
 * We cannot see which entries failed before a hit, nor which guard failed: the trace has NULL
 * there. */
#include "tracer/arguments.h"
#include "tracer/hooks.h"
#include "tracer/record.h"
#include "tracer/torch/torch.h"

#define P tracer_process
#define S torch_settings

/* A frame that torch's evaluator is deciding, or whose code it runs. Lies on the C stack of
 * hook_above_torch(). */
struct pending {
    struct pending *outer;
    compat_frame *frame;
    struct open_frame *open;   /* the frame in the list of recorded frames */
    struct code_state *state;  /* held: state of the frame's code object; NULL before a compile */
    struct cache_entry *entry; /* owned: the entry that the frame's compile has made, or NULL */
    uint64_t entered;          /* start of the frame by the session's clock */
    /* kind of the callback that is set: ACTION_DEFAULT for a callable, ACTION_RUN_ONLY for False */
    enum frame_action callback;
    /* done: torch runs the frame, or compiled code for it; asked: torch has called the callback;
     * asking: the callback is running */
    bool done, asked, asking;
    /* torch runs the frame as it is, and leaves a callback set that the frame sets */
    bool untouched;
    /* An option leaves the frame out of the trace. `open` is then the frame that called it, and a
     * decision about it is only counted. */
    bool left;
    bool deciding; /* `decision` is filled in, which a plain hit does not need */
    struct decision decision;
};

static _PyFrameEvalFunction torch_evaluate; /* torch's evaluator, if it is in the slot */
/* hook_below_torch() is not called by torch's evaluator, which was installed while nothing was
 * recorded, or above another evaluator */
static bool alone;
/* torch's set_eval_frame, if it is a plain C function: calling it directly saves time, because each
 * hit calls it several times */
static PyCFunction torch_set_direct;
static PyObject *torch_set_self; /* borrowed: `self` for torch_set_direct */

static const struct front observed = {
    .observed = true,
    .ids_public = true,
    .wraps_backends = true,
    .unexplained = "which guard did not hold was not seen",
    .leaves = torch_leaves,
    .explain = torch_explain,
    .compile_begins = torch_compile_begins,
    .compile_ends = torch_note_compile_end,
};

/* ---- find the cache entry of compiled code ---- */

/* Return the entry whose compiled code is CODE, borrowed; or NULL. */
static struct cache_entry *find_entry_of_compiled_code(PyCodeObject *code)
{
    struct code_state *state = code_state_get(code, false);

    return state ? state->compiled : NULL;
}

/* Make an entry from GUARDED, which the callback has returned. Store it where
 * find_entry_of_compiled_code() finds it: in the state of its compiled code. It holds no objects of
 * the program, and dies with the compiled code, which torch holds. */
static struct cache_entry *make_observed_entry(struct code_state *state, PyObject *guarded,
                                               PyObject *backend, int64_t region)
{
    OWNED PyObject *code = tracer_get_attribute(guarded, "code"), *birth = NULL;
    OWNED PyObject *guard = code ? tracer_get_attribute(guarded, "guard_manager") : NULL;
    struct cache_entry *entry =
        guard && PyCode_Check(code) ? cache_entry_new(&observed, region) : NULL;
    struct code_state *compiled;

    PyErr_Clear();
    if (!entry)
        return NULL;
    entry->born_for = PyWeakref_NewRef(backend, NULL);
    PyErr_Clear();
    entry->compile_id = tracer_get_attribute(guarded, "compile_id");
    PyErr_Clear();
    birth = decision_birth(entry, state->mark, guard, backend);
    /* from here on no code of the program runs until the entry is stored */
    compiled = code_state_get((PyCodeObject *)code, true);
    if (compiled && !compiled->compiled) {
        decision_write_entry_birth(birth, entry, state);
        compiled->compiled = (struct cache_entry *)Py_NewRef((PyObject *)entry);
        state->compiles++;
    } else {
        Py_CLEAR(entry);
    }
    PyErr_Clear();
    return entry;
}

/* Return the evaluator that is in the slot when torch's evaluator is not. */
static inline _PyFrameEvalFunction evaluator_below_torch(void)
{
    return P.hook ? P.hook : P.evaluate;
}

/* Run FRAME with the evaluator below torch's: our hook, or the one that was in the slot before
 * us. */
static inline __attribute__((always_inline)) PyObject *
run_with_evaluator_below_torch(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    if (P.hook)
        return P.hook(ts, frame, throwflag);
    if (unlikely(!P.recording))
        return P.evaluate(ts, frame, throwflag);
    return tracer_thread ? record_evaluate(tracer_thread, ts, frame, throwflag)
                         : P.evaluate(ts, frame, throwflag);
}

/* Return the decision about the frame of P, which begins with the first call. */
static struct decision *get_decision_of_pending(struct pending *p)
{
    if (!p->deciding)
        decision_begin_lookup(&p->decision, p->entered, &observed, p->frame, -1);
    p->deciding = true;
    return &p->decision;
}

/* ---- record a call of torch's callback, which compiles ---- */

/* Is ARGUMENT torch's view of the pending frame of P? It may be a view of another frame. */
static bool is_view_of_pending_frame(const struct pending *p, PyObject *argument)
{
    const bool view = argument && (PyObject *)Py_TYPE(argument) == S.frame_type;
    OWNED PyObject *code = view ? tracer_get_attribute(argument, "f_code") : NULL;

    PyErr_Clear();
    return code && code == (PyObject *)compat_get_code(p->frame);
}

/* Is FRAME a call of torch's callback? Then one of its first two arguments is torch's view of the
 * pending frame of P. */
static bool is_call_of_torch_callback(const struct tracer *t, const struct pending *p,
                                      compat_frame *frame)
{
    const PyCodeObject *code = compat_get_code(frame);
    PyObject *rest;

    if (t->open != p->open)
        return false;
    for (int i = 0; i < 2 && i < code->co_argcount; i++)
        if (is_view_of_pending_frame(p, compat_get_local(frame, i)))
            return true;
    if (code->co_argcount > 1 || !(code->co_flags & CO_VARARGS))
        return false;
    /* torch 2.6 calls fail_callback(*args): look at the first of `args` */
    rest = compat_get_local(frame, code->co_argcount + code->co_kwonlyargcount);
    return rest && PyTuple_Check(rest) && PyTuple_GET_SIZE(rest) &&
           is_view_of_pending_frame(p, PyTuple_GET_ITEM(rest, 0));
}

/* Return the callback of which FRAME is a call, borrowed: the frame's self, or, under a stance, its
 * function. */
static PyObject *find_callback(compat_frame *frame)
{
    PyObject *self = compat_get_code(frame)->co_argcount ? compat_get_local(frame, 0) : NULL;

    return self && (PyObject *)Py_TYPE(self) != S.frame_type
               ? self
               : (PyObject *)compat_get_function(frame);
}

/* Return torch's region whose entries it looks up now. This may run any code. */
static int64_t get_current_region(void)
{
    OWNED PyObject *value = S.region_now ? PyObject_CallNoArgs(S.region_now) : NULL;
    long long region = value ? PyLong_AsLongLong(value) : -1;

    PyErr_Clear();
    return region;
}

/* Return how torch treats calls of CODE now. Only if some region has actions of its own, torch's
 * region is read, which may run any code. */
static struct code_actions get_actions_of_code(PyCodeObject *code)
{
    struct code_state *state = code_state_get(code, false);
    int64_t region;

    if (!state)
        return (struct code_actions){0};
    if (likely(!state->region_count))
        return state->actions;
    region = get_current_region();
    state = code_state_get(code, false);
    return state ? code_state_get_actions(state, region) : (struct code_actions){0};
}

/* Was ENTRY, which torch knows as ITEM, made for BACKEND? True if this is not known. */
static bool is_entry_of_backend(const struct cache_entry *entry, PyObject *item, PyObject *backend)
{
    OWNED PyObject *own = tracer_get_attribute(item, "backend");

    PyErr_Clear();
    /* torch 2.6 does not tell the backend, but its entry keeps it alive */
    if (!own && entry->born_for)
        own = PyObject_CallNoArgs(entry->born_for);
    PyErr_Clear();
    return !own || shim_may_use_backend(own, backend);
}

/* Record the entries that did not match, and why, by checking them once more. Returns false as
 * decision_record_miss() does. */
static bool record_missed_entries(struct pending *p, PyObject *backend)
{
    struct decision *d = &p->decision;
    struct torch_quiet quiet;
    PyObject *list;
    bool sound;

    torch_quiet_begin(&quiet);
    d->region = get_current_region();
    list = PyObject_CallOneArg(S.entries, (PyObject *)compat_get_code(p->frame));
    d->older = list && PyList_Check(list) && PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; d->older && i < PyList_GET_SIZE(list); i++) {
        OWNED PyObject *item = Py_NewRef(PyList_GET_ITEM(list, i)),
                       *code = tracer_get_attribute(item, "code");
        struct cache_entry *entry =
            code && PyCode_Check(code) ? find_entry_of_compiled_code((PyCodeObject *)code) : NULL;
        struct decision_check *check = NULL;
        /* torch's lookup finds only entries of its own region and of the common one */
        if (entry && (entry->region < 0 || entry->region == d->region))
            check = decision_add_entry_to_try(d, entry);
        if (check)
            check->result = is_entry_of_backend(check->entry, item, backend)
                                ? CHECK_FAIL
                                : CHECK_BACKEND_MISMATCH;
        PyErr_Clear();
    }
    Py_XDECREF(list);
    decision_locals(d);
    PyErr_Clear();
    torch_quiet_end(&quiet);
    sound = !d->locals || decision_record_miss(d, true);
    Py_CLEAR(d->locals); /* a dict of locals would keep values alive that the frame drops */
    return sound;
}

/* Run FRAME, a call of torch's callback that compiles for the pending frame of P. That frame is
 * left out of the trace, so nothing is recorded. */
static __attribute__((noinline)) PyObject *
run_unrecorded_compile(struct pending *p, PyThreadState *ts, compat_frame *frame)
{
    const int64_t region = get_current_region();
    struct answer answer = {0};
    PyObject *result = run_with_evaluator_below_torch(ts, frame, 0);

    if (result && answer_read(result, &answer)) /* torch will report an invalid answer itself */
        PyErr_Clear();
    if (answer.guarded)
        p->state->compiles++;
    if (answer.for_code && !answer.guarded) {
        answer.actions.limited = answer_get_outcome(&answer, &observed) == OUTCOME_LIMIT;
        if (code_state_set_actions(p->state, region, answer.actions))
            PyErr_Clear();
    }
    Py_XDECREF(answer.guarded);
    Py_XDECREF(answer.reason);
    return result;
}

/* Run FRAME, a call of torch's callback that compiles for the pending frame of P, and record the
 * compile. */
static __attribute__((noinline)) PyObject *
run_and_record_compile(struct pending *p, PyThreadState *ts, compat_frame *frame)
{
    struct decision *d = get_decision_of_pending(p);
    OWNED PyObject *backend = NULL;
    struct answer answer = {0};
    struct torch_quiet quiet;
    PyObject *result;

    /* quiet, because reading the attributes may run code of the program */
    torch_quiet_begin(&quiet);
    backend = shim_backend_of(find_callback(frame));
    torch_quiet_end(&quiet);
    if (!record_missed_entries(p, backend)) {
        d->outcome = OUTCOME_CALLBACK_ERROR;
        compat_clear_frame(ts, frame);
        return NULL;
    }
    decision_begin_compile(d, p->state);
    result = run_with_evaluator_below_torch(ts, frame, 0);
    decision_end_compile(d, result);
    d->outcome = OUTCOME_CALLBACK_ERROR;
    if (result) {
        if (answer_read(result, &answer)) /* torch will report an invalid answer itself */
            PyErr_Clear();
        if (answer.guarded)
            p->entry = make_observed_entry(p->state, answer.guarded, backend, d->region);
        d->outcome = answer_get_outcome(&answer, &observed);
    }
    decision_record_outcome(d, p->state, p->entry, d->outcome);
    /* torch applies the actions only if the answer has no code */
    if (answer.for_code && !answer.guarded) {
        answer.actions.limited = d->outcome == OUTCOME_LIMIT;
        if (code_state_set_actions(p->state, d->region, answer.actions))
            PyErr_Clear();
        decision_write_actions(p->state, d->region, answer.reason);
    }
    Py_XDECREF(answer.guarded);
    Py_XDECREF(answer.reason);
    return result;
}

/* ---- the hooks above and below torch's evaluator ---- */

/* Return the outcome for the pending frame of P, which runs as it is: why torch runs no compiled
 * code for it, as far as this is known. */
static enum outcome outcome_without_compiled_code(const struct pending *p,
                                                  struct code_actions actions)
{
    const struct code_state *state = code_state_get(compat_get_code(p->frame), false);

    if (p->asked)
        return p->decision.outcome;
    if (p->callback == ACTION_RUN_ONLY && state && state->compiles)
        return OUTCOME_RUN_ONLY;
    if (actions.own == ACTION_SKIP)
        return OUTCOME_SKIP;
    if (actions.own == ACTION_RUN_ONLY)
        return actions.limited ? OUTCOME_LIMIT : OUTCOME_RUN_ONLY;
    return OUTCOME_PLAIN;
}

/* Write that torch skips the code of FRAME: the program had asked for this when the code had no id
 * in the trace yet. */
static __attribute__((noinline)) void write_skipped_code(compat_frame *frame)
{
    const int64_t region = get_current_region();
    struct code_state *state;

    record_get_mark(frame);
    state = code_state_get(compat_get_code(frame), false);
    if (state)
        decision_write_actions(state, state->region_count ? region : -1, NULL);
}

/* Write the outcome for the pending frame of P. The frame RAN is about to run for it: the pending
 * frame itself; or a frame of ENTRY's compiled code; or, if ENTRY is NULL, one of code that torch
 * has compiled before we observed it. */
static __attribute__((noinline)) void write_outcome_of_pending(struct tracer *t, struct pending *p,
                                                               const compat_frame *ran,
                                                               struct cache_entry *entry)
{
    const struct code_actions actions = get_actions_of_code(compat_get_code(p->frame));
    enum outcome outcome = outcome_without_compiled_code(p, actions);
    const bool is_decision =
        ran != p->frame || p->asked || outcome == OUTCOME_LIMIT || outcome == OUTCOME_RUN_ONLY;

    if (p->left && is_decision) {
        tracer_count_left_out(LEFT_DECISIONS);
    } else if (p->left) {
        p->untouched = outcome == OUTCOME_SKIP && actions.callees == ACTION_DEFAULT;
    } else if (ran != p->frame) {
        outcome = entry && entry == p->entry ? OUTCOME_COMPILED : OUTCOME_HIT;
        decision_write(get_decision_of_pending(p), t, outcome, entry);
    } else if (is_decision) {
        decision_write(get_decision_of_pending(p), t, outcome, NULL);
    } else if (outcome == OUTCOME_SKIP) {
        decision_outcome(t, outcome);
        p->untouched = actions.callees == ACTION_DEFAULT;
    }
}

/* Run FRAME, which is the pending frame of P, or runs compiled code in its place. */
static HOT __attribute__((noinline)) PyObject *
run_for_pending_frame(struct tracer *t, struct pending *p, PyThreadState *ts, compat_frame *frame,
                      struct cache_entry *entry)
{
    enum frame_action callees;

    Py_XINCREF(entry);
    callees = get_actions_of_code(compat_get_code(p->frame)).callees;
    p->done = true;
    /* for its callees the callback is set again, which torch does without calling a function that
     * we wrap */
    t->observed = unlikely(callees != ACTION_DEFAULT) ? callees : p->callback;
    if (likely(entry && !p->deciding && !p->left))
        decision_hit(t, p->entered, entry);
    else
        write_outcome_of_pending(t, p, frame, entry);
    Py_XDECREF(entry);
    return record_evaluate(t, ts, frame, 0);
}

/* Handle FRAME, the first frame that torch's evaluator passes to hook_below_torch() after
 * hook_above_torch() has got the pending frame of P. */
static HOT __attribute__((noinline)) PyObject *
handle_first_below(struct tracer *t, struct pending *p, PyThreadState *ts, compat_frame *frame)
{
    PyCodeObject *code, *original;
    struct cache_entry *entry;
    PyObject *result;

    if (frame == p->frame)
        return run_for_pending_frame(t, p, ts, frame, NULL);
    code = compat_get_code(frame);
    original = compat_get_code(p->frame);
    entry = find_entry_of_compiled_code(code);
    /* compiled code that we do not know is recognised by the name and line of the original */
    if (t->open == p->open &&
        (entry ||
         (code != original && code->co_firstlineno == original->co_firstlineno &&
          code->co_filename == original->co_filename && code->co_name == original->co_name)))
        return run_for_pending_frame(t, p, ts, frame, entry);
    if (p->asked || !is_call_of_torch_callback(t, p, frame))
        return run_with_evaluator_below_torch(ts, frame, 0);
    /* As long as this call runs, the frames below it are the callback's or ours, even if they look
     * like compiled code. */
    if (!p->state) {
        p->state = code_state_get(original, true);
        if (!p->state) { /* no memory */
            PyErr_Clear();
            return run_with_evaluator_below_torch(ts, frame, 0);
        }
        p->state->references++;
    }
    p->asked = p->asking = true;
    result = p->left ? run_unrecorded_compile(p, ts, frame) : run_and_record_compile(p, ts, frame);
    p->asking = false;
    return result;
}

/* Will torch's evaluator decide this call? Not while another frame is pending: its guards and the
 * callback run without a callback. */
static inline bool will_torch_decide_call(const struct tracer *t, const PyThreadState *ts,
                                          compat_frame *frame, int throwflag)
{
    return t->observed != ACTION_SKIP &&
           (!t->pending || t->pending->done || t->pending == t->observed_at) && P.recording &&
           !throwflag && !compat_is_resumed(frame) && !compat_has_started(frame) &&
           shim_is_deciding(t, ts, NULL);
}

/* Does torch run calls of this code as they are, in every region, and leave the callback as it is?
 * Then no struct pending is needed. Half of the calls in torch's own code that belong to a hit are
 * of this kind. */
static inline bool does_torch_pass_calls_on(const struct tracer *t, const struct code_state *state)
{
    return state && state->actions.own == ACTION_SKIP && state->actions.callees == ACTION_DEFAULT &&
           state->actions.written && !state->region_count && t->observed == ACTION_DEFAULT;
}

/* Run a frame that torch leaves to the interpreter as it is (does_torch_pass_calls_on). Its MARK
 * has bits of CODE_NOTED, so also record the profiler range that the frame begins, or its
 * arguments. */
static __attribute__((noinline)) PyObject *run_passed_frame_with_notes(struct tracer *t,
                                                                       PyThreadState *ts,
                                                                       compat_frame *frame,
                                                                       uintptr_t mark)
{
    const uintptr_t plain = mark & ~(uintptr_t)CODE_NOTED;
    const enum session_clock clock = P.clock;
    struct range_call range = {RANGE_NONE, NULL};
    struct values_begun begun = {SECRET_NO, 0};
    struct open_frame open;
    PyObject *result;
    bool entered, values;

    if (mark & CODE_RANGE)
        range = tracer_hooks.range_before(frame);
    entered = record_begin_call(t, &open, ts, frame, plain, 0, false, clock, P.max_depth != 0);
    values = entered && mark & CODE_ARGS;
    if (entered)
        decision_outcome(t, OUTCOME_SKIP);
    if (values)
        begun = values_before_frame(t, frame, false);
    result = record_evaluate(t, ts, frame, 0);
    if (values)
        values_after_frame(t, frame, false, result, begun);
    if (entered)
        record_end_frame(t, &open, ts, frame, result, false, clock);
    if (range.act)
        tracer_hooks.range_after(&range, result);
    return result;
}

/* Run a frame of code that torch passes on as it is (does_torch_pass_calls_on). */
static HOT __attribute__((noinline)) PyObject *run_passed_frame(struct tracer *t, PyThreadState *ts,
                                                                compat_frame *frame)
{
    const enum session_clock clock = P.clock;
    const uintptr_t mark = record_get_current_mark(frame);
    struct open_frame open;
    PyObject *result;

    if (!record_begin_call(t, &open, ts, frame, mark, 0, false, clock, P.max_depth != 0))
        return unlikely(mark & CODE_NOTED) ? run_passed_frame_with_notes(t, ts, frame, mark)
                                           : record_evaluate(t, ts, frame, 0);
    decision_outcome(t, OUTCOME_SKIP);
    result = record_evaluate(t, ts, frame, 0);
    record_end_frame(t, &open, ts, frame, result, false, clock);
    return result;
}

static HOT PyObject *hook_below_torch(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    struct tracer *t = tracer_thread;
    struct pending *p;

    if (t)
        tracer_update_running_stack(t, ts, frame);
    p = t ? t->pending : NULL;
    if (p && !p->done && !p->asking && !throwflag)
        return handle_first_below(t, p, ts, frame);
    if (t && !P.decided_only && will_torch_decide_call(t, ts, frame, throwflag) &&
        does_torch_pass_calls_on(t, code_state_get(compat_get_code(frame), false)))
        return run_passed_frame(t, ts, frame);
    return run_with_evaluator_below_torch(ts, frame, throwflag);
}

/* Run a frame that torch runs as it is. ACTION is how torch treats the frame's callees. */
static __attribute__((noinline)) PyObject *run_frame_left_as_it_is(struct tracer *t,
                                                                   PyThreadState *ts,
                                                                   compat_frame *frame,
                                                                   enum frame_action action)
{
    const enum frame_action was = t->observed;
    PyObject *result;

    t->observed = action;
    result = torch_evaluate(ts, frame, 0);
    t->observed = was;
    return result;
}

/* Finish the pending frame of P, which returned RESULT, unless it was a plain hit. */
static __attribute__((noinline)) void finish_pending_frame(struct tracer *t, struct pending *p,
                                                           PyObject *result)
{
    /* If its callback raised, torch leaves None as the callback. In all other cases we assume that
     * the callback is still set. If this is wrong, the trace shows calls that torch does not
     * decide; if we assumed None wrongly, calls would be missing. */
    if (p->asked && !p->done && !result)
        t->observed = ACTION_SKIP;
    else if (!p->untouched)
        t->observed = p->callback;
    if (!p->done && p->left)
        tracer_count_left_out(LEFT_DECISIONS);
    else if (!p->done) /* torch has run neither the frame nor compiled code for it */
        decision_write(get_decision_of_pending(p), t,
                       p->asked ? OUTCOME_CALLBACK_ERROR
                                : decision_record_raise(get_decision_of_pending(p),
                                                        p->open->code & ~OPEN_BITS),
                       NULL);
    if (p->deciding)
        decision_end_lookup(&p->decision);
    Py_XDECREF(p->entry);
    if (p->state)
        code_state_release(p->state);
}

/* Does an option leave out the call that thread T makes now, of code with MARK? */
static inline bool is_call_left_out(const struct tracer *t, uintptr_t mark)
{
    if (unlikely(t->quiet))
        return false;
    if (mark & CODE_SKIP)
        return mark & CODE_EXCLUDED;
    if (!P.max_depth)
        return false;
    return record_is_too_deep(t);
}

/* Run FRAME, a call that torch's evaluator decides, as a pending frame. */
static HOT __attribute__((noinline)) PyObject *
run_as_pending_frame(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    const enum session_clock clock = P.clock;
    uintptr_t mark = record_get_current_mark(frame);
    struct open_frame open;
    struct range_call range = {RANGE_NONE, NULL};
    struct values_begun begun = {SECRET_NO, 0};
    bool noted;
    struct pending p;
    PyObject *result;

    if (unlikely(mark & CODE_SKIP))
        mark = tracer_mark_decided_code(compat_get_code(frame));
    p.left = is_call_left_out(t, mark);
    if (unlikely(t->folding))
        decision_request_frame_row(t);
    p.open = p.left ? t->open : &open;
    if (unlikely(mark & CODE_RANGE))
        range = tracer_hooks.range_before(frame);
    p.entered = record_begin_call(t, &open, ts, frame, mark & ~(uintptr_t)CODE_NOTED, 0, false,
                                  clock, P.max_depth != 0);
    if (!p.entered && !p.left) {
        result = torch_evaluate(ts, frame, 0);
        goto done;
    }
    noted = p.entered && mark & CODE_ARGS;
    if (unlikely(noted))
        begun = values_before_frame(t, frame, false);
    p.outer = t->pending;
    p.frame = frame;
    p.decision.outcome = OUTCOME_PLAIN;
    p.state = NULL;
    p.entry = NULL;
    p.callback = t->observed;
    p.done = p.asked = p.asking = p.untouched = p.deciding = false;
    t->pending = &p;
    result = torch_evaluate(ts, frame, 0);
    tracer_update_running_stack(t, ts, NULL);
    t->pending = p.outer;
    if (likely(p.done && !p.deciding && !p.untouched))
        t->observed = p.callback;
    else
        finish_pending_frame(t, &p, result);
    if (t->observed_at == &p)
        t->observed_at = NULL;
    if (unlikely(noted))
        values_after_frame(t, frame, false, result, begun);
    if (likely(!p.left))
        record_end_frame(t, &open, ts, frame, result, false, clock);
done:
    if (unlikely(range.act))
        tracer_hooks.range_after(&range, result);
    return result;
}

/* Run FRAME, a call that torch's evaluator decides, after settings of `run --set` have had their
 * turn. */
static HOT __attribute__((noinline)) PyObject *
run_without_settings(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    struct code_actions actions;
    bool is_partly;

    actions = get_actions_of_code(compat_get_code(frame));
    is_partly = P.decided_only || record_get_mark(frame) & CODE_SKIP;
    if (actions.own == ACTION_SKIP && !actions.written)
        write_skipped_code(frame);
    if (is_partly &&
        (code_state_get(compat_get_code(frame), false) ? actions.own == ACTION_SKIP
                                                       : t->observed == ACTION_RUN_ONLY))
        return actions.callees != ACTION_DEFAULT
                   ? run_frame_left_as_it_is(t, ts, frame, actions.callees)
                   : torch_evaluate(ts, frame, 0);
    return run_as_pending_frame(t, ts, frame);
}

static __attribute__((noinline)) PyObject *run_under_settings(struct tracer *t, PyThreadState *ts,
                                                              compat_frame *frame)
{
    struct settings_call call = settings_apply_before_call(frame, true);
    PyObject *result;

    if (!call.wants_value)
        Py_CLEAR(call.after);
    result = run_without_settings(t, ts, frame);
    settings_finish_call(&call, result);
    return result;
}

/* Run FRAME, a call that torch's evaluator decides. Settings of `run --set` may change its
 * arguments. */
static HOT PyObject *run_with_or_without_settings(struct tracer *t, PyThreadState *ts,
                                                  compat_frame *frame)
{
    return unlikely(settings.plan != NULL) ? run_under_settings(t, ts, frame)
                                           : run_without_settings(t, ts, frame);
}

static HOT PyObject *hook_above_torch(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    struct tracer *t = tracer_thread;

    if (likely(t))
        tracer_update_running_stack(t, ts, frame);
    if (unlikely(!t) || !will_torch_decide_call(t, ts, frame, throwflag))
        return torch_evaluate(ts, frame, throwflag);
    return does_torch_pass_calls_on(t, code_state_get(compat_get_code(frame), false))
               ? torch_evaluate(ts, frame, 0)
               : run_with_or_without_settings(t, ts, frame);
}

static bool is_observed_evaluator(_PyFrameEvalFunction evaluate)
{
    return evaluate == hook_above_torch || evaluate == hook_below_torch ||
           (torch_evaluate && evaluate == torch_evaluate);
}

static bool observe_is_hook_around_torch(_PyFrameEvalFunction evaluate)
{
    return evaluate == hook_above_torch || evaluate == hook_below_torch ||
           (torch_evaluate && evaluate == torch_evaluate && !alone);
}

static void observe_update_hooks(void)
{
    _PyFrameEvalFunction current;

    if (!torch_evaluate || PyInterpreterState_Get() != P.interpreter)
        return;
    current = compat_get_evaluator(P.interpreter);
    /* take hook_below_torch() out of the slot, where a torch function that we do not wrap has put
     * it */
    if (current == hook_below_torch)
        compat_set_evaluator(P.interpreter, evaluator_below_torch());
    else if (current == hook_above_torch && !P.recording)
        compat_set_evaluator(P.interpreter, torch_evaluate);
    else if (current == torch_evaluate && !alone && P.recording)
        compat_set_evaluator(P.interpreter, hook_above_torch);
}

/* ---- functions that replace those of torch's C module ---- */

/* Stands for torch_set_direct if torch's set_eval_frame is no plain C function. */
static PyObject *call_torch_set_eval_frame(PyObject *function, PyObject *callback)
{
    return PyObject_CallOneArg(function, callback);
}

/* Before the callback changes to a callable or False, put hook_below_torch() into the slot, so that
 * torch installs its evaluator above it. Without a hook of ours, this may be above any other
 * evaluator. Returns false if nothing was done, because BEFORE, the evaluator in the slot, is
 * another one above our hook, or torch's. */
static bool put_hook_below_torch(_PyFrameEvalFunction before)
{
    static bool said;
    const bool on_ours = P.hook ? before == P.hook : !is_observed_evaluator(before);

    if (on_ours) {
        if (!P.hook)
            P.evaluate = before;
        compat_set_evaluator(P.interpreter, hook_below_torch);
    } else if (!is_observed_evaluator(before) && !said) {
        said = true;
        tracer_write_loss(
            "another frame evaluator took the place above ours: what torch compiles is not "
            "seen from here on");
    }
    return on_ours;
}

/* Change the callback in the cases that change_callback() does not handle. BEFORE is the evaluator
 * in the slot. While nothing is recorded, torch's evaluator gets no hooks around it. */
static __attribute__((noinline)) PyObject *change_callback_rarely(PyObject *callback,
                                                                  _PyFrameEvalFunction before)
{
    /* torch's evaluator leaves, which may be below our hook because it was there before us */
    const bool leaves = callback == Py_None && P.hook && before == P.hook;
    bool on_ours = false;
    _PyFrameEvalFunction after;
    PyObject *old;

    if (leaves)
        compat_set_evaluator(P.interpreter, P.evaluate);
    else if (callback != Py_None && P.recording)
        on_ours = put_hook_below_torch(before);
    old = torch_set_direct(torch_set_self, callback);
    after = compat_get_evaluator(P.interpreter);
    if (leaves) {
        P.evaluate = after;
        compat_set_evaluator(P.interpreter, P.hook ? P.hook : after);
    } else if (after == hook_below_torch) {
        compat_set_evaluator(P.interpreter, evaluator_below_torch());
    } else if (callback != Py_None && after != before) {
        torch_evaluate = after;
        alone = !on_ours;
    }
    observe_update_hooks();
    return old;
}

/* Change torch's callback, and put hook_above_torch() and hook_below_torch() around torch's
 * evaluator or remove them. Handles the usual cases, which occur twice for each function of torch's
 * own that a compiled call runs through. */
static HOT __attribute__((noinline)) PyObject *change_callback(PyObject *callback)
{
    PyInterpreterState *interpreter = P.interpreter;
    const _PyFrameEvalFunction before = compat_get_evaluator(interpreter);
    _PyFrameEvalFunction after;
    PyObject *old;

    if (before == hook_above_torch)
        compat_set_evaluator(interpreter, torch_evaluate);
    else if (likely(before == evaluator_below_torch() && callback != Py_None && P.recording))
        compat_set_evaluator(interpreter, hook_below_torch);
    else
        return change_callback_rarely(callback, before);
    old = torch_set_direct(torch_set_self, callback);
    after = compat_get_evaluator(interpreter);
    if (after == hook_below_torch) {
        compat_set_evaluator(interpreter, evaluator_below_torch());
    } else {
        torch_evaluate = after;
        alone = false;
        /* torch's evaluator was in the slot before us, below our hook */
        if (unlikely(after == P.evaluate))
            P.evaluate = _PyEval_EvalFrameDefault;
        if (likely(P.recording))
            compat_set_evaluator(interpreter, hook_above_torch);
    }
    return old;
}

/* The callback was not None as we had assumed, because it was set before the recording began. If
 * torch's evaluator has now left the slot, from above or below our hook, update our hooks. BEFORE
 * was in the slot: an evaluator that is there now and was not above torch's may call our hook, so
 * the hook must not call it. */
static __attribute__((noinline)) void update_hooks_after_change(_PyFrameEvalFunction before)
{
    const _PyFrameEvalFunction after = compat_get_evaluator(P.interpreter);
    const bool was_below = P.hook && before == P.hook && after != P.hook;

    if (was_below && !is_observed_evaluator(after) && P.recording) {
        P.evaluate = after;
        compat_set_evaluator(P.interpreter, P.hook);
    }
    observe_update_hooks();
}

static HOT PyObject *set_eval_frame(PyObject *module, PyObject *callback)
{
    struct tracer *t = P.recording ? tracer_of_this_thread() : tracer_thread;
    PyObject *old;

    /* no change, as in half of all calls: the callback is None already */
    if (callback == Py_None && t && t->observed == ACTION_SKIP) {
        const _PyFrameEvalFunction before = compat_get_evaluator(P.interpreter);
        old = torch_set_direct(torch_set_self, callback);
        if (unlikely(old && old != Py_None))
            update_hooks_after_change(before);
        return old;
    }
    old = change_callback(callback);
    if (t && old) {
        t->observed = callback == Py_None    ? ACTION_SKIP
                      : callback == Py_False ? ACTION_RUN_ONLY
                                             : ACTION_DEFAULT;
        t->observed_at = t->pending;
    }
    return old;
}

PyObject *observe_set_callback(PyObject *callback)
{
    return set_eval_frame(NULL, callback);
}

/* If torch's function has returned RESULT, not NULL, note that torch treats calls of CODE by
 * ACTIONS from now on. Returns RESULT. */
static PyObject *note_torch_actions(PyObject *result, PyObject *code, struct code_actions actions)
{
    struct code_state *state =
        result && PyCode_Check(code) ? code_state_get((PyCodeObject *)code, true) : NULL;

    if (state)
        state->actions = actions;
    else if (result) /* no memory */
        PyErr_Clear();
    return result;
}

static PyObject *set_code_exec_strategy(PyObject *module, PyObject *args)
{
    PyObject *result = PyObject_CallObject(S.strategy, args);
    PyObject *code, *strategy;
    struct code_actions actions = {0};

    if (!result)
        return NULL;
    if (PyArg_ParseTuple(args, "OO", &code, &strategy))
        note_torch_actions(result, code,
                           answer_read_strategy(strategy, &actions) ? (struct code_actions){0}
                                                                    : actions);
    PyErr_Clear();
    return result;
}

static PyObject *skip_code(PyObject *module, PyObject *code)
{
    return note_torch_actions(PyObject_CallOneArg(S.skip, code), code,
                              (struct code_actions){.own = ACTION_SKIP});
}

static PyObject *reset_code(PyObject *module, PyObject *code)
{
    return note_torch_actions(PyObject_CallOneArg(S.reset, code), code, (struct code_actions){0});
}

static PyMethodDef observers[] = {
    {"set_eval_frame", set_eval_frame, METH_O, NULL},
    {"set_code_exec_strategy", set_code_exec_strategy, METH_VARARGS, NULL},
    {"skip_code", skip_code, METH_O, NULL},
    {"reset_code", reset_code, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* _observe(): return our wrappers for those functions of torch that the bridge has passed to us, by
 * name. */
static PyObject *make_torch_wrappers(PyObject *module, PyObject *none)
{
    torch_set_direct = call_torch_set_eval_frame;
    torch_set_self = S.set;
    if (S.set && PyCFunction_CheckExact(S.set) && PyCFunction_GET_FLAGS(S.set) == METH_O) {
        torch_set_direct = PyCFunction_GET_FUNCTION(S.set);
        torch_set_self = PyCFunction_GET_SELF(S.set);
    }
    return torch_functions(module, observers);
}

static PyObject *record_entry_death(PyObject *self, PyObject *args)
{
    struct cache_entry *entry;
    PyObject *code;
    const char *reason;

    if (PyArg_ParseTuple(args, "Os:_observe_death", &code, &reason) && PyCode_Check(code) &&
        (entry = find_entry_of_compiled_code((PyCodeObject *)code)))
        decision_write_entry_death(entry, reason);
    PyErr_Clear();
    Py_RETURN_NONE;
}

PyMethodDef observe_methods[] = {
    {"_observe", make_torch_wrappers, METH_NOARGS,
     "_observe($module, /)\n--\n\nReturn a dict of functions for torch._C._dynamo.eval_frame, "
     "so that our "
     "hooks see torch's decisions."},
    {"_observe_death", record_entry_death, METH_VARARGS,
     "_observe_death($module, compiled_code, reason, /)\n--\n\nWrite that its entry died."},
    {NULL, NULL, 0, NULL},
};

void observe_register(void)
{
    tracer_hooks.is_observed = is_observed_evaluator;
    tracer_hooks.is_around = observe_is_hook_around_torch;
    tracer_hooks.record_changed = observe_update_hooks;
}
