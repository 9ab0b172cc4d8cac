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
 * upper(). */
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
/* lower() is not called by torch's evaluator, which was installed while nothing was recorded, or
 * above another evaluator */
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
    .compile_ends = torch_compile_ends,
};

/* ---- find the cache entry of compiled code ---- */

/* Return the entry whose compiled code CODE is, borrowed; or NULL. */
static struct cache_entry *entry_of(PyCodeObject *code)
{
    struct code_state *state = code_state_of(code, false);

    return state ? state->compiled : NULL;
}

/* Make an entry from GUARDED, which the callback has returned. Store it where find_entry() finds
 * it: in the state of its compiled code. It holds no objects of the program, and dies with the
 * compiled code, which torch holds. */
static struct cache_entry *entry_new(struct code_state *state, PyObject *guarded, PyObject *backend,
                                     int64_t region)
{
    OWNED PyObject *code = tracer_attribute(guarded, "code"), *birth = NULL;
    OWNED PyObject *guard = code ? tracer_attribute(guarded, "guard_manager") : NULL;
    struct cache_entry *entry =
        guard && PyCode_Check(code) ? cache_entry_new(&observed, region) : NULL;
    struct code_state *compiled;

    PyErr_Clear();
    if (!entry)
        return NULL;
    entry->born_for = PyWeakref_NewRef(backend, NULL);
    PyErr_Clear();
    entry->compile_id = tracer_attribute(guarded, "compile_id");
    PyErr_Clear();
    birth = decision_birth(entry, state->mark, guard, backend);
    /* from here on no code of the program runs until the entry is stored */
    compiled = code_state_of((PyCodeObject *)code, true);
    if (compiled && !compiled->compiled) {
        decision_entry_born(birth, entry, state);
        compiled->compiled = (struct cache_entry *)Py_NewRef((PyObject *)entry);
        state->compiles++;
    } else {
        Py_CLEAR(entry);
    }
    PyErr_Clear();
    return entry;
}

/* Return the evaluator that is in the slot while torch's evaluator is not. */
static inline _PyFrameEvalFunction ours_or_below(void)
{
    return P.hook ? P.hook : P.evaluate;
}

/* Run FRAME with the evaluator below torch's: our hook, or the one that was in the slot before
 * us. */
static inline __attribute__((always_inline)) PyObject *run_below(PyThreadState *ts,
                                                                 compat_frame *frame, int throwflag)
{
    if (P.hook)
        return P.hook(ts, frame, throwflag);
    if (unlikely(!P.recording))
        return P.evaluate(ts, frame, throwflag);
    return tracer_thread ? record_evaluate(tracer_thread, ts, frame, throwflag)
                         : P.evaluate(ts, frame, throwflag);
}

/* Return the decision about P's frame. The first call begins the decision. */
static struct decision *decision_of(struct pending *p)
{
    if (!p->deciding)
        decision_begin(&p->decision, p->entered, &observed, p->frame, -1);
    p->deciding = true;
    return &p->decision;
}

/* ---- record a call of torch's callback, which compiles ---- */

/* Is ARGUMENT torch's view of the pending frame of P? It may be a view of another frame. */
static bool is_view(const struct pending *p, PyObject *argument)
{
    const bool view = argument && (PyObject *)Py_TYPE(argument) == S.frame_type;
    OWNED PyObject *code = view ? tracer_attribute(argument, "f_code") : NULL;

    PyErr_Clear();
    return code && code == (PyObject *)compat_code(p->frame);
}

/* Is FRAME a call of torch's callback? Then one of its first two arguments is torch's view of the
 * pending frame of P. */
static bool is_callback(const struct tracer *t, const struct pending *p, compat_frame *frame)
{
    const PyCodeObject *code = compat_code(frame);
    PyObject *rest;

    if (t->open != p->open)
        return false;
    for (int i = 0; i < 2 && i < code->co_argcount; i++)
        if (is_view(p, compat_local(frame, i)))
            return true;
    if (code->co_argcount > 1 || !(code->co_flags & CO_VARARGS))
        return false;
    /* torch 2.6 calls fail_callback(*args): look at the first of `args` */
    rest = compat_local(frame, code->co_argcount + code->co_kwonlyargcount);
    return rest && PyTuple_Check(rest) && PyTuple_GET_SIZE(rest) &&
           is_view(p, PyTuple_GET_ITEM(rest, 0));
}

/* Return the callable that torch calls to compile, borrowed. FRAME is its call: the callable is
 * FRAME's self or, under a stance, the function. */
static PyObject *callback_of(compat_frame *frame)
{
    PyObject *self = compat_code(frame)->co_argcount ? compat_local(frame, 0) : NULL;

    return self && (PyObject *)Py_TYPE(self) != S.frame_type ? self
                                                             : (PyObject *)compat_function(frame);
}

/* Return the region whose entries torch looks up now. This may run any code. */
static int64_t region_now(void)
{
    OWNED PyObject *value = S.region_now ? PyObject_CallNoArgs(S.region_now) : NULL;
    long long region = value ? PyLong_AsLongLong(value) : -1;

    PyErr_Clear();
    return region;
}

/* Return how torch treats calls of CODE now. Asks torch for its current region only if a region has
 * actions of its own; that may run any code. */
static struct code_actions actions_of(PyCodeObject *code)
{
    struct code_state *state = code_state_of(code, false);
    int64_t region;

    if (!state)
        return (struct code_actions){0};
    if (likely(!state->region_count))
        return state->actions;
    region = region_now();
    state = code_state_of(code, false);
    return state ? code_state_actions(state, region) : (struct code_actions){0};
}

/* Was torch's entry ITEM made for BACKEND? True if that is not known. */
static bool is_for(const struct cache_entry *entry, PyObject *item, PyObject *backend)
{
    OWNED PyObject *own = tracer_attribute(item, "backend");

    PyErr_Clear();
    /* torch 2.6 does not tell the backend, but its entry keeps it alive */
    if (!own && entry->born_for)
        own = PyObject_CallNoArgs(entry->born_for);
    PyErr_Clear();
    return !own || shim_same_backend(own, backend);
}

/* Record the entries that did not match, and why, by checking them once more. Returns false as
 * decision_missed() does. */
static bool record_missed(struct pending *p, PyObject *backend)
{
    struct decision *d = &p->decision;
    struct torch_quiet quiet;
    PyObject *list;
    bool sound;

    torch_quiet_begin(&quiet);
    d->region = region_now();
    list = PyObject_CallOneArg(S.entries, (PyObject *)compat_code(p->frame));
    d->older = list && PyList_Check(list) && PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; d->older && i < PyList_GET_SIZE(list); i++) {
        OWNED PyObject *item = Py_NewRef(PyList_GET_ITEM(list, i)),
                       *code = tracer_attribute(item, "code");
        struct cache_entry *entry =
            code && PyCode_Check(code) ? entry_of((PyCodeObject *)code) : NULL;
        struct decision_check *check = NULL;
        /* torch's lookup finds only entries of its own region and of the common one */
        if (entry && (entry->region < 0 || entry->region == d->region))
            check = decision_add(d, entry);
        if (check)
            check->result =
                is_for(check->entry, item, backend) ? CHECK_FAIL : CHECK_BACKEND_MISMATCH;
        PyErr_Clear();
    }
    Py_XDECREF(list);
    decision_locals(d);
    PyErr_Clear();
    torch_quiet_end(&quiet);
    sound = !d->locals || decision_missed(d, true);
    Py_CLEAR(d->locals); /* a dict of locals would keep values alive that the frame drops */
    return sound;
}

/* Run FRAME, a call of torch's callback that compiles for the pending frame of P. That frame is
 * left out of the trace, so nothing is recorded. */
static __attribute__((noinline)) PyObject *compile_left_out(struct pending *p, PyThreadState *ts,
                                                            compat_frame *frame)
{
    const int64_t region = region_now();
    struct answer answer = {0};
    PyObject *result = run_below(ts, frame, 0);

    if (result && answer_read(result, &answer)) /* torch will report an invalid answer itself */
        PyErr_Clear();
    if (answer.guarded)
        p->state->compiles++;
    if (answer.for_code && !answer.guarded) {
        answer.actions.limited = answer_outcome(&answer, &observed) == OUTCOME_LIMIT;
        if (code_state_act(p->state, region, answer.actions))
            PyErr_Clear();
    }
    Py_XDECREF(answer.guarded);
    Py_XDECREF(answer.reason);
    return result;
}

/* Run FRAME, a call of torch's callback that compiles for the pending frame of P, and record the
 * compile. */
static __attribute__((noinline)) PyObject *compile(struct pending *p, PyThreadState *ts,
                                                   compat_frame *frame)
{
    struct decision *d = decision_of(p);
    OWNED PyObject *backend = NULL;
    struct answer answer = {0};
    struct torch_quiet quiet;
    PyObject *result;

    torch_quiet_begin(&quiet); /* reading these attributes may run the program's code */
    backend = shim_backend_of(callback_of(frame));
    torch_quiet_end(&quiet);
    if (!record_missed(p, backend)) {
        d->outcome = OUTCOME_CALLBACK_ERROR;
        compat_dispose(ts, frame);
        return NULL;
    }
    decision_ask(d, p->state);
    result = run_below(ts, frame, 0);
    decision_asked(d, result);
    d->outcome = OUTCOME_CALLBACK_ERROR;
    if (result) {
        if (answer_read(result, &answer)) /* torch will report an invalid answer itself */
            PyErr_Clear();
        if (answer.guarded)
            p->entry = entry_new(p->state, answer.guarded, backend, d->region);
        d->outcome = answer_outcome(&answer, &observed);
    }
    decision_answer(d, p->state, p->entry, d->outcome);
    /* torch applies the actions only if the answer has no code */
    if (answer.for_code && !answer.guarded) {
        answer.actions.limited = d->outcome == OUTCOME_LIMIT;
        if (code_state_act(p->state, d->region, answer.actions))
            PyErr_Clear();
        decision_write_actions(p->state, d->region, answer.reason);
    }
    Py_XDECREF(answer.guarded);
    Py_XDECREF(answer.reason);
    return result;
}

/* ---- the hooks above and below torch's evaluator ---- */

/* Return the outcome of a frame that runs as it is: why torch did not replace it, if that is
 * known. */
static enum outcome plain_outcome(const struct pending *p, struct code_actions actions)
{
    const struct code_state *state = code_state_of(compat_code(p->frame), false);

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
static __attribute__((noinline)) void write_skip(compat_frame *frame)
{
    const int64_t region = region_now();
    struct code_state *state;

    record_mark(frame);
    state = code_state_of(compat_code(frame), false);
    if (state)
        decision_write_actions(state, state->region_count ? region : -1, NULL);
}

/* Write the outcome for the pending frame of P. The frame RAN is about to run for it: the pending
 * frame itself; or a frame of ENTRY's compiled code; or, if ENTRY is NULL, one of code that torch
 * has compiled before we observed it. */
static __attribute__((noinline)) void write_outcome(struct tracer *t, struct pending *p,
                                                    const compat_frame *ran,
                                                    struct cache_entry *entry)
{
    const struct code_actions actions = actions_of(compat_code(p->frame));
    enum outcome outcome = plain_outcome(p, actions);
    const bool is_decision =
        ran != p->frame || p->asked || outcome == OUTCOME_LIMIT || outcome == OUTCOME_RUN_ONLY;

    if (p->left && is_decision) {
        tracer_left_out(LEFT_DECISIONS);
    } else if (p->left) {
        p->untouched = outcome == OUTCOME_SKIP && actions.callees == ACTION_DEFAULT;
    } else if (ran != p->frame) {
        outcome = entry && entry == p->entry ? OUTCOME_COMPILED : OUTCOME_HIT;
        decision_write(decision_of(p), t, outcome, entry);
    } else if (is_decision) {
        decision_write(decision_of(p), t, outcome, NULL);
    } else if (outcome == OUTCOME_SKIP) {
        decision_outcome(t, outcome);
        p->untouched = actions.callees == ACTION_DEFAULT;
    }
}

/* Run FRAME, which is the pending frame of P, or runs compiled code in its place. */
static HOT __attribute__((noinline)) PyObject *run_for(struct tracer *t, struct pending *p,
                                                       PyThreadState *ts, compat_frame *frame,
                                                       struct cache_entry *entry)
{
    enum frame_action callees;

    Py_XINCREF(entry);
    callees = actions_of(compat_code(p->frame)).callees;
    p->done = true;
    /* for its callees the callback is set again, which torch does without calling a function that
     * we wrap */
    t->observed = unlikely(callees != ACTION_DEFAULT) ? callees : p->callback;
    if (likely(entry && !p->deciding && !p->left))
        decision_hit(t, p->entered, entry);
    else
        write_outcome(t, p, frame, entry);
    Py_XDECREF(entry);
    return record_evaluate(t, ts, frame, 0);
}

/* Handle FRAME, the first frame that torch's evaluator passes to `lower` while P's frame is
 * pending. */
static HOT __attribute__((noinline)) PyObject *first_below(struct tracer *t, struct pending *p,
                                                           PyThreadState *ts, compat_frame *frame)
{
    PyCodeObject *code, *original;
    struct cache_entry *entry;
    PyObject *result;

    if (frame == p->frame)
        return run_for(t, p, ts, frame, NULL);
    code = compat_code(frame);
    original = compat_code(p->frame);
    entry = entry_of(code);
    /* torch's compiled code keeps the name and the place of the original */
    if (t->open == p->open &&
        (entry ||
         (code != original && code->co_firstlineno == original->co_firstlineno &&
          code->co_filename == original->co_filename && code->co_name == original->co_name)))
        return run_for(t, p, ts, frame, entry);
    if (p->asked || !is_callback(t, p, frame))
        return run_below(ts, frame, 0);
    /* As long as this call runs, the frames below it are the callback's or ours, even if they look
     * like compiled code. */
    if (!p->state) {
        p->state = code_state_of(original, true);
        if (!p->state) { /* no memory */
            PyErr_Clear();
            return run_below(ts, frame, 0);
        }
        p->state->references++;
    }
    p->asked = p->asking = true;
    result = p->left ? compile_left_out(p, ts, frame) : compile(p, ts, frame);
    p->asking = false;
    return result;
}

/* Will torch's evaluator decide this call? Not while another frame is pending: its guards and the
 * callback run without a callback. */
static inline bool is_watched(const struct tracer *t, const PyThreadState *ts, compat_frame *frame,
                              int throwflag)
{
    return t->observed != ACTION_SKIP &&
           (!t->pending || t->pending->done || t->pending == t->observed_at) && P.recording &&
           !throwflag && !compat_is_resumed(frame) && !compat_has_started(frame) &&
           shim_decides(t, ts, NULL);
}

/* Does torch run calls of this code as they are, in every region, and leave the callback as it is?
 * Then no struct pending is needed. Half of the calls in torch's own code that belong to a hit are
 * of this kind. */
static inline bool is_passed(const struct tracer *t, const struct code_state *state)
{
    return state && state->actions.own == ACTION_SKIP && state->actions.callees == ACTION_DEFAULT &&
           state->actions.written && !state->region_count && t->observed == ACTION_DEFAULT;
}

/* Run a frame that torch leaves to the interpreter as it is (is_passed). Its MARK has bits of
 * CODE_NOTED, so also record the profiler range that the frame begins, or its arguments. */
static __attribute__((noinline)) PyObject *run_noted(struct tracer *t, PyThreadState *ts,
                                                     compat_frame *frame, uintptr_t mark)
{
    const uintptr_t plain = mark & ~(uintptr_t)CODE_NOTED;
    const enum session_clock clock = P.clock;
    struct range_call range = {RANGE_NONE, NULL};
    enum secret level = SECRET_NO;
    struct open_frame open;
    PyObject *result;
    bool entered, values;

    if (mark & CODE_RANGE)
        range = tracer_hooks.range_before(frame);
    entered = record_call(t, &open, ts, frame, plain, 0, false, clock, P.max_depth != 0);
    values = entered && mark & CODE_ARGS;
    if (entered)
        decision_outcome(t, OUTCOME_SKIP);
    if (values)
        level = values_begin(t, frame, false);
    result = record_evaluate(t, ts, frame, 0);
    if (values)
        values_end(t, frame, false, result, level);
    if (entered)
        record_exit(t, &open, ts, frame, result, false, clock);
    if (range.act)
        tracer_hooks.range_after(&range, result);
    return result;
}

/* Run a frame of code that torch passes on as it is (is_passed). */
static HOT __attribute__((noinline)) PyObject *run_passed(struct tracer *t, PyThreadState *ts,
                                                          compat_frame *frame)
{
    const enum session_clock clock = P.clock;
    const uintptr_t mark = record_mark_now(frame);
    struct open_frame open;
    PyObject *result;

    if (!record_call(t, &open, ts, frame, mark, 0, false, clock, P.max_depth != 0))
        return unlikely(mark & CODE_NOTED) ? run_noted(t, ts, frame, mark)
                                           : record_evaluate(t, ts, frame, 0);
    decision_outcome(t, OUTCOME_SKIP);
    result = record_evaluate(t, ts, frame, 0);
    record_exit(t, &open, ts, frame, result, false, clock);
    return result;
}

static HOT PyObject *lower(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    struct tracer *t = tracer_thread;
    struct pending *p;

    if (t)
        tracer_follow(t, ts, frame);
    p = t ? t->pending : NULL;
    if (p && !p->done && !p->asking && !throwflag)
        return first_below(t, p, ts, frame);
    if (t && !P.decided_only && is_watched(t, ts, frame, throwflag) &&
        is_passed(t, code_state_of(compat_code(frame), false)))
        return run_passed(t, ts, frame);
    return run_below(ts, frame, throwflag);
}

/* Run a frame that torch runs as it is. ACTION is how torch treats the frame's callees. */
static __attribute__((noinline)) PyObject *
run_undecided(struct tracer *t, PyThreadState *ts, compat_frame *frame, enum frame_action action)
{
    const enum frame_action was = t->observed;
    PyObject *result;

    t->observed = action;
    result = torch_evaluate(ts, frame, 0);
    t->observed = was;
    return result;
}

/* Finish the pending frame of P, which returned RESULT, unless it was a plain hit. */
static __attribute__((noinline)) void finish_pending(struct tracer *t, struct pending *p,
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
        tracer_left_out(LEFT_DECISIONS);
    else if (!p->done) /* the frame never ran */
        decision_write(decision_of(p), t,
                       p->asked ? OUTCOME_CALLBACK_ERROR
                                : decision_raised(decision_of(p), p->open->code & ~OPEN_BITS),
                       NULL);
    if (p->deciding)
        decision_end(&p->decision);
    Py_XDECREF(p->entry);
    if (p->state)
        code_state_release(p->state);
}

/* Does an option leave out the call that thread T makes now, of code with MARK? */
static inline bool is_left_out(const struct tracer *t, uintptr_t mark)
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
static HOT __attribute__((noinline)) PyObject *run_decided(struct tracer *t, PyThreadState *ts,
                                                           compat_frame *frame)
{
    const enum session_clock clock = P.clock;
    uintptr_t mark = record_mark_now(frame);
    struct open_frame open;
    struct range_call range = {RANGE_NONE, NULL};
    enum secret level = SECRET_NO;
    bool noted;
    struct pending p;
    PyObject *result;

    if (unlikely(mark & CODE_SKIP))
        mark = tracer_mark_decided(compat_code(frame));
    p.left = is_left_out(t, mark);
    if (unlikely(t->folding))
        decision_keep(t);
    p.open = p.left ? t->open : &open;
    if (unlikely(mark & CODE_RANGE))
        range = tracer_hooks.range_before(frame);
    p.entered = record_call(t, &open, ts, frame, mark & ~(uintptr_t)CODE_NOTED, 0, false, clock,
                            P.max_depth != 0);
    if (!p.entered && !p.left) {
        result = torch_evaluate(ts, frame, 0);
        goto done;
    }
    noted = p.entered && mark & CODE_ARGS;
    if (unlikely(noted))
        level = values_begin(t, frame, false);
    p.outer = t->pending;
    p.frame = frame;
    p.decision.outcome = OUTCOME_PLAIN;
    p.state = NULL;
    p.entry = NULL;
    p.callback = t->observed;
    p.done = p.asked = p.asking = p.untouched = p.deciding = false;
    t->pending = &p;
    result = torch_evaluate(ts, frame, 0);
    tracer_follow(t, ts, NULL);
    t->pending = p.outer;
    if (likely(p.done && !p.deciding && !p.untouched))
        t->observed = p.callback;
    else
        finish_pending(t, &p, result);
    if (t->observed_at == &p)
        t->observed_at = NULL;
    if (unlikely(noted))
        values_end(t, frame, false, result, level);
    if (likely(!p.left))
        record_exit(t, &open, ts, frame, result, false, clock);
done:
    if (unlikely(range.act))
        tracer_hooks.range_after(&range, result);
    return result;
}

/* Run FRAME, a call that torch looks at. A setting of `run --set` may have changed its arguments.
 */
static HOT __attribute__((noinline)) PyObject *looked_at_as_is(struct tracer *t, PyThreadState *ts,
                                                               compat_frame *frame)
{
    struct code_actions actions;
    bool is_partly;

    actions = actions_of(compat_code(frame));
    is_partly = P.decided_only || record_mark(frame) & CODE_SKIP;
    if (actions.own == ACTION_SKIP && !actions.written)
        write_skip(frame);
    if (is_partly && (code_state_of(compat_code(frame), false) ? actions.own == ACTION_SKIP
                                                               : t->observed == ACTION_RUN_ONLY))
        return actions.callees != ACTION_DEFAULT ? run_undecided(t, ts, frame, actions.callees)
                                                 : torch_evaluate(ts, frame, 0);
    return run_decided(t, ts, frame);
}

static __attribute__((noinline)) PyObject *
looked_at_under_settings(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    struct settings_call call = settings_before(frame, true);
    PyObject *result;

    if (!call.wants_value)
        Py_CLEAR(call.after);
    result = looked_at_as_is(t, ts, frame);
    settings_after(&call, result);
    return result;
}

/* Run FRAME, a call that torch looks at. */
static HOT PyObject *run_looked_at(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    return unlikely(settings.plan != NULL) ? looked_at_under_settings(t, ts, frame)
                                           : looked_at_as_is(t, ts, frame);
}

static HOT PyObject *upper(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    struct tracer *t = tracer_thread;

    if (likely(t))
        tracer_follow(t, ts, frame);
    if (unlikely(!t) || !is_watched(t, ts, frame, throwflag))
        return torch_evaluate(ts, frame, throwflag);
    return is_passed(t, code_state_of(compat_code(frame), false)) ? torch_evaluate(ts, frame, 0)
                                                                  : run_looked_at(t, ts, frame);
}

static bool observe_is(_PyFrameEvalFunction evaluate)
{
    return evaluate == upper || evaluate == lower || (torch_evaluate && evaluate == torch_evaluate);
}

static bool observe_is_around(_PyFrameEvalFunction evaluate)
{
    return evaluate == upper || evaluate == lower ||
           (torch_evaluate && evaluate == torch_evaluate && !alone);
}

static void observe_follow(void)
{
    _PyFrameEvalFunction current;

    if (!torch_evaluate || PyInterpreterState_Get() != P.interpreter)
        return;
    current = compat_evaluator(P.interpreter);
    /* take lower() out of the slot, where a torch function that we do not wrap has put it */
    if (current == lower)
        compat_set_evaluator(P.interpreter, ours_or_below());
    else if (current == upper && !P.recording)
        compat_set_evaluator(P.interpreter, torch_evaluate);
    else if (current == torch_evaluate && !alone && P.recording)
        compat_set_evaluator(P.interpreter, upper);
}

/* ---- functions that replace those of torch's C module ---- */

/* Called in place of torch_set_direct if torch's set_eval_frame is no plain C function. */
static PyObject *torch_set_called(PyObject *function, PyObject *callback)
{
    return PyObject_CallOneArg(function, callback);
}

/* Prepare the slot before the callback changes to a callable or False, so that torch's evaluator is
 * installed above ours or, if we have none, above any other. Returns false if nothing was prepared:
 * another evaluator, BEFORE, is in the slot, or torch's is there already. */
static bool prepare_place(_PyFrameEvalFunction before)
{
    static bool said;
    const bool on_ours = P.hook ? before == P.hook : !observe_is(before);

    if (on_ours) {
        if (!P.hook)
            P.evaluate = before;
        compat_set_evaluator(P.interpreter, lower);
    } else if (!observe_is(before) && !said) {
        said = true;
        tracer_loss("another frame evaluator took the place above ours: what torch compiles is not "
                    "seen from here on");
    }
    return on_ours;
}

/* Change the callback while the slot holds BEFORE, in a case that change() does not handle. While
 * nothing is recorded, we put no hooks around torch's evaluator. */
static __attribute__((noinline)) PyObject *change_rarely(PyObject *callback,
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
        on_ours = prepare_place(before);
    old = torch_set_direct(torch_set_self, callback);
    after = compat_evaluator(P.interpreter);
    if (leaves) {
        P.evaluate = after;
        compat_set_evaluator(P.interpreter, P.hook ? P.hook : after);
    } else if (after == lower) {
        compat_set_evaluator(P.interpreter, ours_or_below());
    } else if (callback != Py_None && after != before) {
        torch_evaluate = after;
        alone = !on_ours;
    }
    observe_follow();
    return old;
}

/* Change the callback, and put the hooks in or out. Handles the usual cases, which occur twice for
 * each of torch's own functions that a compiled call runs through. */
static HOT __attribute__((noinline)) PyObject *change(PyObject *callback)
{
    PyInterpreterState *interpreter = P.interpreter;
    const _PyFrameEvalFunction before = compat_evaluator(interpreter);
    _PyFrameEvalFunction after;
    PyObject *old;

    if (before == upper)
        compat_set_evaluator(interpreter, torch_evaluate);
    else if (likely(before == ours_or_below() && callback != Py_None && P.recording))
        compat_set_evaluator(interpreter, lower);
    else
        return change_rarely(callback, before);
    old = torch_set_direct(torch_set_self, callback);
    after = compat_evaluator(interpreter);
    if (after == lower) {
        compat_set_evaluator(interpreter, ours_or_below());
    } else {
        torch_evaluate = after;
        alone = false;
        /* torch's evaluator was in the slot before us, below our hook */
        if (unlikely(after == P.evaluate))
            P.evaluate = _PyEval_EvalFrameDefault;
        if (likely(P.recording))
            compat_set_evaluator(interpreter, upper);
    }
    return old;
}

/* We took torch's callback for None, but it had been set before the recording began. Find out
 * whether torch's evaluator has left the slot, from above or below our hook. */
static __attribute__((noinline)) void follow_late(void)
{
    const _PyFrameEvalFunction after = compat_evaluator(P.interpreter);

    if (P.hook && after != P.hook && !observe_is(after) && P.recording) {
        P.evaluate = after;
        compat_set_evaluator(P.interpreter, P.hook);
    }
    observe_follow();
}

static HOT PyObject *set_eval_frame(PyObject *module, PyObject *callback)
{
    struct tracer *t = P.recording ? tracer_here() : tracer_thread;
    PyObject *old;

    /* no change, as in half of all calls: the callback is None already */
    if (callback == Py_None && t && t->observed == ACTION_SKIP) {
        old = torch_set_direct(torch_set_self, callback);
        if (unlikely(old && old != Py_None))
            follow_late();
        return old;
    }
    old = change(callback);
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

/* Note that calls of CODE are treated by ACTIONS from now on, if RESULT, the return value of
 * torch's function, is not NULL. Returns RESULT. */
static PyObject *then_act(PyObject *result, PyObject *code, struct code_actions actions)
{
    struct code_state *state =
        result && PyCode_Check(code) ? code_state_of((PyCodeObject *)code, true) : NULL;

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
        then_act(result, code,
                 answer_strategy(strategy, &actions) ? (struct code_actions){0} : actions);
    PyErr_Clear();
    return result;
}

static PyObject *skip_code(PyObject *module, PyObject *code)
{
    return then_act(PyObject_CallOneArg(S.skip, code), code,
                    (struct code_actions){.own = ACTION_SKIP});
}

static PyObject *reset_code(PyObject *module, PyObject *code)
{
    return then_act(PyObject_CallOneArg(S.reset, code), code, (struct code_actions){0});
}

static PyMethodDef observers[] = {
    {"set_eval_frame", set_eval_frame, METH_O, NULL},
    {"set_code_exec_strategy", set_code_exec_strategy, METH_VARARGS, NULL},
    {"skip_code", skip_code, METH_O, NULL},
    {"reset_code", reset_code, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* _observe(): return wrappers for the torch functions that the bridge has passed to us, by name. */
static PyObject *observe(PyObject *module, PyObject *none)
{
    torch_set_direct = torch_set_called;
    torch_set_self = S.set;
    if (S.set && PyCFunction_CheckExact(S.set) && PyCFunction_GET_FLAGS(S.set) == METH_O) {
        torch_set_direct = PyCFunction_GET_FUNCTION(S.set);
        torch_set_self = PyCFunction_GET_SELF(S.set);
    }
    return torch_functions(module, observers);
}

static PyObject *entry_died(PyObject *self, PyObject *args)
{
    struct cache_entry *entry;
    PyObject *code;
    const char *reason;

    if (PyArg_ParseTuple(args, "Os:_observe_death", &code, &reason) && PyCode_Check(code) &&
        (entry = entry_of((PyCodeObject *)code)))
        decision_entry_died(entry, reason);
    PyErr_Clear();
    Py_RETURN_NONE;
}

PyMethodDef observe_methods[] = {
    {"_observe", observe, METH_NOARGS,
     "_observe($module, /)\n--\n\nA dict of functions for torch._C._dynamo.eval_frame: hooks of "
     "ours see what "
     "torch's evaluator does."},
    {"_observe_death", entry_died, METH_VARARGS,
     "_observe_death($module, compiled_code, reason, /)\n--\n\nIts entry was invalidated."},
    {NULL, NULL, 0, NULL},
};

void observe_register(void)
{
    tracer_hooks.is_observed = observe_is;
    tracer_hooks.is_around = observe_is_around;
    tracer_hooks.record_changed = observe_follow;
}
