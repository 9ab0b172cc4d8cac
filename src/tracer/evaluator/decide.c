/* tracer/evaluator/decide.c -- which code runs for a call: the shim's rules, for any callback.
 *
 * Runs in: the traced process, on every Python call while some thread has a callback
 * (set_eval_frame).
 *
 *     callback None             the frame as it is
 *     code marked skip          the frame as it is; the mark also says how its callees are treated
 *     entries, in order         the first of this backend whose guard passes runs
 *     miss, callback False,
 *       or limit reached        the frame as it is
 *     miss, callable            callback(frame, first entry, frame_state):
 *       None                      mark the code skip; the frame as it is
 *       GuardedCode               a new entry in front, which runs
 *       ConvertFrameReturn        the same; it also says how callees are treated
 *
 * Differences for torch's callbacks, which apply their own limits, are in their struct front.
 *
 * While guards and callback run, the thread's callback is None. After an exception from either it
 * stays None, and the exception is the call's result. Frames that have started, or are evaluated
 * with throwflag, run as they are. So do frames of trace functions, audit hooks and the like,
 * except for torch versions that decide them (shim_is_deciding). */
#include "tracer/arguments.h"
#include "tracer/evaluator/cache.h"
#include "tracer/hooks.h"
#include "tracer/record.h"

struct shim_settings shim_settings = {.recompile_limit = 8, .accumulated_limit = 256};
struct watcher shim_watcher;

PyObject *shim_backend_of(PyObject *callback)
{
    static PyObject *names[2];
    PyObject *at;

    if (callback_is_watcher(callback))
        return Py_NewRef(PyTuple_GET_ITEM(callback, shim_watcher.backend));
    at = Py_NewRef(callback);
    if (!names[0]) {
        names[0] = PyUnicode_InternFromString("_torchdynamo_orig_backend");
        names[1] = PyUnicode_InternFromString("_torchdynamo_orig_callable");
    }
    for (int depth = 0; depth < 64; depth++) {
        PyObject *inner = NULL;
        if (PyFunction_Check(at) && !((PyFunctionObject *)at)->func_dict)
            /* stop early, because every lookup gets here: a function without attributes wraps no
             * backend */
            break;
        for (int i = 0; i < 2 && !inner; i++)
            if (!names[i] || compat_optional_attribute(at, names[i], &inner) < 0)
                PyErr_Clear();
        if (!inner)
            break;
        Py_SETREF(at, inner);
    }
    return at;
}

bool shim_may_use_backend(PyObject *entry, PyObject *wanted)
{
    int same;

    /* WANTED is False for run-only, which accepts any backend */
    if (entry == wanted || wanted == Py_False)
        return true;
    same = PyObject_RichCompareBool(entry, wanted, Py_EQ);
    if (same < 0)
        PyErr_Clear();
    return same > 0;
}

/* Check the guards of ENTRY, whose PARTS are pinned. A guard tree reads the frame, so it needs no
 * dict of locals. *SEEN becomes the value that made a leaf of the tree fail, as in
 * guard_tree_check(). */
static struct guard_outcome check_guards_of_entry(const struct cache_entry *entry,
                                                  const struct cache_parts *parts,
                                                  struct decision *d, PyObject **seen)
{
    /* 0 if torch checks only some of the guards, because it does not report how many */
    const bool skips = front_skips_guards(entry->front);
    const uint32_t run_frame_or_code = skips ? 0 : entry->guards;
    OWNED PyObject *check = NULL, *result = NULL;

    if (entry->tree)
        return guard_tree_check(parts->guard, &(struct guard_values){.frame = d->frame}, seen);
    check = Py_XNewRef(skips ? parts->difference : parts->check);
    if (!check) /* torch does not know yet which guards tell the entries apart: no match */
        return (struct guard_outcome){GUARD_FAIL, 0, UINT32_MAX, 0};
    if (decision_locals(d))
        result = PyObject_CallOneArg(check, d->locals);
    if (result && PyBool_Check(result))
        return (struct guard_outcome){result == Py_True ? GUARD_PASS : GUARD_FAIL,
                                      run_frame_or_code, result == Py_True ? UINT32_MAX : 0, 0};
    if (result) {
        OWNED PyObject *type = Py_NewRef((PyObject *)Py_TYPE(result));
        PyErr_Format(PyExc_TypeError, "the guard of entry %S of %U() returned %s, not bool",
                     entry->compile_id, compat_get_code(d->frame)->co_qualname,
                     ((PyTypeObject *)type)->tp_name);
    }
    if (entry->guards != 1) /* torch does not report which guard failed */
        return (struct guard_outcome){GUARD_ERROR, 0, UINT32_MAX, 0};
    return (struct guard_outcome){GUARD_ERROR, 1, 0, 0};
}

/* Call HOOK(guard, code, f_locals, index, last) for ENTRY and its PARTS. A pending exception stays
 * pending. */
static void call_guard_hook(PyObject *hook, const struct cache_entry *entry,
                            const struct cache_parts *parts, struct decision *d, Py_ssize_t index,
                            bool last)
{
    PyObject *code = entry->front->fail_hook ? (PyObject *)compat_get_code(d->frame) : parts->code;
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    /* hold a reference, because the hook may set another hook */
    OWNED PyObject *held = Py_NewRef(hook), *result = NULL;

    if (decision_locals(d))
        result = PyObject_CallFunction(held, "OOOnO", parts->guard, code, d->locals, index,
                                       last ? Py_True : Py_False);
    if (!result)
        PyErr_WriteUnraisable(held);
}

/* Does the trace have the order in which this check has tried ENTRY's guards? Readers of the trace
 * use the order that was last written before the lookup began.
 *
 * The order may have changed since then, if a guard, another thread or the program itself has
 * checked the same guards. MOVED is how often this check itself changed the order, which does not
 * matter. */
static bool is_order_known(const struct cache_entry *entry, const struct cache_parts *parts,
                           const struct decision *d, uint32_t moved)
{
    if (entry->order_lost)
        return false;
    if (entry->ordered > d->began)
        return false;
    if (!entry->tree)
        return true;
    return guard_tree_count_moves(parts->guard) - moved == entry->moves;
}

/* Do the guards of CHECK's entry hold? Returns 1 or 0; -1 if a guard raised, or returned something
 * else than a bool. */
static int check_entry_and_record(struct decision_check *check, struct decision *d,
                                  Py_ssize_t index, bool last)
{
    struct cache_entry *entry = check->entry;
    struct cache_parts *parts = cache_entry_pin(entry);
    uint64_t began = d->on ? tracer_read_session_clock() : 0;
    struct guard_outcome outcome;
    PyObject *hook;
    bool ordered;
    bool fits;

    if (!parts) /* a guard of an earlier entry has made this entry invalid */
        return 0;
    outcome = check_guards_of_entry(entry, parts, d, d->on ? &check->seen : NULL);
    if (d->on)
        check->ticks = tracer_read_session_clock() - began;
    ordered = is_order_known(entry, parts, d, outcome.moved);
    if (entry->front->failed && d->on && outcome.result == GUARD_FAIL) {
        began = tracer_read_session_clock();
        outcome = entry->front->failed(entry, parts, d->frame, d->locals);
        d->ours += tracer_read_session_clock() - began;
    }
    check->result = outcome.result == GUARD_PASS ? CHECK_PASS
                    : outcome.result             ? CHECK_ERROR
                                                 : CHECK_FAIL;
    check->run = outcome.guards_run;
    if (outcome.result != GUARD_PASS && !ordered)
        check->run = 0;
    check->failed = outcome.failed;
    if (d->on && entry->tree && guard_tree_count_moves(parts->guard) != entry->moves)
        decision_write_guard_order(entry, parts->guard, tracer_read_session_clock());
    fits = outcome.result == GUARD_PASS && entry->valid;
    if (outcome.result == GUARD_ERROR)
        hook = shim_settings.guard_error_hook;
    else
        hook = entry->front->fail_hook ? shim_settings.guard_fail_hook : NULL;
    if (fits)
        cache_entry_move_hit_to_front(entry);
    else if (hook)
        call_guard_hook(hook, entry, parts, d, index, last);
    cache_parts_unpin(parts);
    return fits ? 1 : outcome.result == GUARD_ERROR ? -1 : 0;
}

/* Add the valid entries of LIST that belong to region A or B to the entries to try. Returns -1
 * without memory. */
static int add_entries_of_regions(struct decision *d, const struct entry_list *list, int64_t a,
                                  int64_t b)
{
    struct cache_entry *entry;

    TAILQ_FOREACH(entry, list, order)
    if (entry->valid && (entry->region == a || entry->region == b) &&
        !decision_add_entry_to_try(d, entry))
        return -1;
    return 0;
}

/* Look up an entry. The order of entries is fixed before the first guard runs, because guards may
 * change the lists. Each entry is tried once. */
int shim_look_up(struct code_state *state, PyObject *backend, struct decision *d,
                 struct cache_entry **found)
{
    const int64_t region = d->region;
    uint32_t loaded;
    int status = add_entries_of_regions(d, &state->precompiled, region, -1);

    loaded = d->count;
    if (!status && region >= 0) /* before common entries, try those of the region */
        status = add_entries_of_regions(d, &state->entries, region, region);
    if (!status)
        status = add_entries_of_regions(d, &state->entries, -1, -1);
    for (uint32_t i = 0; i < d->count && !status; i++) {
        struct decision_check *check = &d->check[i];
        if (i < loaded)
            status = check_entry_and_record(check, d, i, false);
        else if (check->entry->valid && shim_may_use_backend(check->entry->backend, backend))
            status = check_entry_and_record(check, d, i - loaded, i + 1 == d->count);
        else if (check->entry->valid)
            check->result = CHECK_BACKEND_MISMATCH;
        if (status > 0)
            *found = (struct cache_entry *)Py_NewRef((PyObject *)check->entry);
    }
    return status < 0 ? -1 : 0;
}

/* ---- call the callback and read its answer ---- */

int answer_read_strategy(PyObject *strategy, struct code_actions *actions)
{
    static const char *const names[2] = {"cur_action", "recursive_action"};
    enum frame_action *const action[2] = {&actions->own, &actions->callees};

    for (int i = 0; i < 2; i++) {
        OWNED PyObject *value = tracer_get_attribute(strategy, names[i]);
        long number = value ? PyLong_AsLong(value) : -1;

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
    OWNED PyObject *strategy = NULL, *truth = NULL;
    int for_code;

    *answer = (struct answer){0};
    if (result == Py_None || result == shim_settings.skip_recursively ||
        result == shim_settings.limit_reached) {
        answer->actions.own = result == shim_settings.limit_reached ? ACTION_RUN_ONLY : ACTION_SKIP;
        answer->actions.callees = result == Py_None ? ACTION_DEFAULT : answer->actions.own;
        answer->for_code = true;
        return 0;
    }
    strategy = shim_optional(result, "frame_exec_strategy");
    if (!strategy) {
        /* in the older protocol the callback returns a GuardedCode instead of an answer with a
         * strategy */
        answer->guarded = PyErr_Occurred() ? NULL : Py_NewRef(result);
        return answer->guarded ? 0 : -1;
    }
    if (answer_read_strategy(strategy, &answer->actions) ||
        !(truth = tracer_get_attribute(result, "apply_to_code")))
        return -1;
    for_code = PyObject_IsTrue(truth);
    if (for_code < 0 || !(answer->guarded = tracer_get_attribute(result, "guarded_code")))
        return -1;
    if (answer->guarded == Py_None) {
        Py_CLEAR(answer->guarded);
        answer->reason = tracer_get_attribute(result, "skip_reason");
        if (!answer->reason)
            PyErr_Clear();
    }
    answer->for_code = for_code;
    return 0;
}

enum outcome answer_get_outcome(const struct answer *answer, const struct front *front)
{
    if (answer->guarded)
        return OUTCOME_COMPILED;
    return !front->limits && answer->actions.own == ACTION_RUN_ONLY ? OUTCOME_LIMIT
                                                                    : OUTCOME_DECLINED;
}

/* Call CALLBACK to compile. Returns -1 if it raised, or if its answer is invalid. */
static int call_callback(PyThreadState *ts, PyObject *callback, struct code_state *state,
                         struct decision *d, struct answer *answer)
{
    PyObject *view = shim_frame_open(d);
    PyObject *arguments[3] = {view, NULL, state->frame_state};
    OWNED PyObject *first = NULL, *result = NULL;

    if (!view)
        return -1;
    first = (PyObject *)cache_entry_first(state, d->region, d->front);
    first = arguments[1] = Py_NewRef(first ? first : Py_None);
    decision_begin_compile(d, state);
    result = d->front->ask ? d->front->ask(ts, callback, arguments)
                           : PyObject_Vectorcall(callback, arguments, 3, NULL);
    decision_end_compile(d, result);
    shim_close_frame_view(view);
    return result ? answer_read(result, answer) : -1;
}

/* Let the watcher of CALLBACK (capture) run the call. Returns -1 if the call raised. */
static int call_watcher(PyThreadState *ts, PyObject *callback, struct code_state *state,
                        struct decision *d, struct answer *answer, struct watched_rest *rest)
{
    compat_frame *frame = d->frame;
    OWNED PyObject *frame_state = Py_NewRef(state->frame_state);
    struct watched_answer given = {0};
    int status = 0;

    if (!shim_watcher.refuses(ts, callback, frame, &given)) {
        decision_begin_compile(d, state);
        /* drop the dict of locals, which would keep the frame's values alive */
        Py_CLEAR(d->locals);
        status = shim_watcher.watch(ts, callback, frame, frame_state, &given, rest);
        decision_end_compile(d, status ? NULL : Py_None);
    }
    *answer = (struct answer){
        .guarded = given.guarded, .reason = given.reason, .for_code = given.for_code};
    if (!given.guarded && given.for_code)
        answer->actions.own = ACTION_SKIP;
    return status;
}

/* ---- run compiled code in place of a frame that has not started ----
 *
 * CPython has no function to evaluate a code with another frame's arguments. But in a frame that
 * has not started, the arguments are its first locals, in the order: positional, keyword-only,
 * *args, **kwargs. So the compiled code is made "flat" once: a copy in which every argument is
 * positional. A function is made of the flat code, with the globals and closure of the original. A
 * vectorcall of this function with the locals as arguments is an ordinary CPython call:
 *
 *     frame of f(a, *b, c):   localsplus = [a, c, b, ...]
 *     flat code:              co_argcount 3, no flags for * and **
 *     vectorcall(flat_f, localsplus, 3)
 *
 * When the new frame is about to start, the flat code and its function have done their work: the
 * new frame gets the callback's code and the original function, and the old frame releases the
 * arguments. The old frame was never linked into the thread's stack, so depth, tracebacks and
 * sys._getframe() are as if the original had run. Then the old frame is cleared. Class bodies,
 * modules and exec() have a namespace in the frame instead of arguments; PyEval_EvalCodeEx runs the
 * code for them. */

enum { SMALL_ARGUMENTS = 15, GENERATORS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR };

/* Return the flat form of CODE, the code of ENTRY: every argument is positional. It is made once. A
 * new reference, or NULL with an exception. */
static PyObject *get_code_with_positional_arguments(struct cache_entry *entry, PyCodeObject *code)
{
    OWNED PyObject *replace = NULL, *none = NULL, *names = NULL;
    PyObject *flat = NULL;

    if (entry->flat ||
        (!code->co_kwonlyargcount && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS))))
        return Py_NewRef(entry->flat ? entry->flat : (PyObject *)code);
    replace = tracer_get_attribute((PyObject *)code, "replace");
    none = PyTuple_New(0);
    names = Py_BuildValue("{s:i,s:i,s:i}", "co_argcount", compat_count_arguments(code),
                          "co_kwonlyargcount", 0, "co_flags",
                          code->co_flags & ~(CO_VARARGS | CO_VARKEYWORDS));
    if (replace && none && names)
        flat = PyObject_Call(replace, none, names);
    if (flat && !entry->flat && entry->valid)
        entry->flat = Py_NewRef(flat);
    return flat;
}

/* An empty dict, which a function that an entry keeps has as its globals between calls. Real
 * globals lead back to the entry's code object, and the garbage collector does not visit code
 * objects, so neither would ever be freed. */
static PyObject *no_globals;

static void copy_function_names(PyFunctionObject *function, PyFunctionObject *original)
{
    if (function->func_name != original->func_name)
        Py_SETREF(function->func_name, Py_NewRef(original->func_name));
    if (function->func_qualname != original->func_qualname)
        Py_SETREF(function->func_qualname, Py_NewRef(original->func_qualname));
}

/* Return a function with the flat code of ENTRY, and with the globals and closure of FRAME's
 * function. CODE is the entry's code. A new reference; release it with release_function_of_entry.
 * The entry keeps the function for the next call, unless it has a closure, or is a generator
 * function, to which a suspended frame still refers. */
static PyObject *get_function_with_positional_arguments(struct cache_entry *entry, PyObject *code,
                                                        compat_frame *frame)
{
    PyFunctionObject *original = compat_get_function(frame);
    PyFunctionObject *made = (PyFunctionObject *)entry->function;
    PyObject *flat;

    if (made && !original->func_closure) {
        /* hold it: setting its name may drop the old name, and so run code of the program */
        Py_INCREF(made);
        if (!entry->running) {
            compat_set_globals_and_builtins(made, frame->f_globals, frame->f_builtins);
            copy_function_names(made, original);
        }
        if ((PyObject *)made == entry->function && made->func_globals == frame->f_globals &&
            made->func_builtins == frame->f_builtins &&
            made->func_qualname == original->func_qualname &&
            made->func_name == original->func_name) {
            entry->running++;
            return (PyObject *)made;
        }
        Py_DECREF(made);
    }
    if (!no_globals && !(no_globals = PyDict_New()))
        return NULL;
    flat = get_code_with_positional_arguments(entry, (PyCodeObject *)code);
    made = flat ? (PyFunctionObject *)PyFunction_New(flat, frame->f_globals) : NULL;
    Py_XDECREF(flat);
    if (!made)
        return NULL;
    compat_set_globals_and_builtins(made, frame->f_globals, frame->f_builtins);
    copy_function_names(made, original);
    if (original->func_closure) {
        Py_XSETREF(made->func_closure, Py_NewRef(original->func_closure));
    } else if (!entry->function && entry->valid &&
               !(((PyCodeObject *)code)->co_flags & GENERATORS)) {
        entry->function = Py_NewRef((PyObject *)made);
        entry->running = 1;
    }
    return (PyObject *)made;
}

static void release_function_of_entry(struct cache_entry *entry, PyObject *function)
{
    if (entry->function == function && !--entry->running) {
        if (Py_REFCNT(function) == 2)
            compat_set_globals_and_builtins((PyFunctionObject *)function, no_globals, no_globals);
        else /* a frame object still refers to the function, so do not use it again */
            Py_CLEAR(entry->function);
    }
    Py_DECREF(function);
}

static PyObject *call_with_arguments_of_frame(struct tracer *t, compat_frame *frame, PyObject *code,
                                              PyObject *function)
{
    int count = compat_count_arguments(compat_get_code(frame));
    PyObject *small[SMALL_ARGUMENTS + 1];
    PyObject **arguments = small;
    PyObject *result;

    if (count > SMALL_ARGUMENTS &&
        !(arguments = PyMem_Malloc(sizeof *arguments * (size_t)(count + 1))))
        return PyErr_NoMemory();
    for (int i = 0; i < count; i++)
        arguments[i + 1] = compat_get_local(frame, i);
    /* Announce the frame of this call, which is the thread's next frame: it runs the callback's
     * code, and is not decided again. */
    t->replacement = (PyCodeObject *)((PyFunctionObject *)function)->func_code;
    t->replacement_for = (PyCodeObject *)code;
    t->replaced = frame;
    result = PyObject_Vectorcall(function, arguments + 1,
                                 (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (arguments != small)
        PyMem_Free(arguments);
    return result;
}

/* FRAME is about to start in place of t->replaced. Give it the callback's code and the original
 * function. Release the arguments of the replaced frame, so that they die when FRAME drops them. */
static void begin_replacing_frame(struct tracer *t, compat_frame *frame)
{
    int count = t->replaced ? compat_count_arguments(compat_get_code(t->replaced)) : 0;

    t->replacement = NULL;
    if (unlikely(t->replay != NULL) && t->replay->original == t->replaced)
        t->replay->frame = frame;
    if (t->replacement_for != compat_get_code(frame))
        compat_set_code(frame, t->replacement_for);
    for (int i = 0; i < count; i++)
        compat_drop_local(t->replaced, i);
    if (t->replaced)
        compat_fill_free_variables(t->replaced);
    /* Show the program the original function. A generator keeps the flat function, because its
     * frame has the layout of the flat code. */
    if (t->replaced && !(compat_get_code(frame)->co_flags & GENERATORS))
        compat_set_function(frame, compat_get_function(t->replaced));
}

/* Run CODE, the code of ENTRY, in place of FRAME, which has not started. Then clear FRAME. The
 * caller holds ENTRY and CODE. */
static PyObject *replace_frame(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                               struct cache_entry *entry, PyObject *code)
{
    /* not NULL if an outer call of this function is inside its PyEval_EvalCodeEx() */
    PyCodeObject *const awaited = t->replacement;
    PyCodeObject *awaited_for = NULL;
    compat_frame *replaced = NULL;
    PyObject *function = NULL;
    PyObject *result = NULL;

    if (unlikely(awaited)) {
        awaited_for = t->replacement_for;
        replaced = t->replaced;
    }
    if (!(compat_get_code(frame)->co_flags & CO_NEWLOCALS)) {
        t->replacement = t->replacement_for = (PyCodeObject *)code;
        t->replaced = NULL;
        /* Garbage may be collected before the new frame starts. The finalisers' frames have other
         * code, so they are not taken for the new frame. */
        result = PyEval_EvalCodeEx(
            code, frame->f_globals, frame->f_locals ? frame->f_locals : frame->f_globals, NULL, 0,
            NULL, 0, NULL, 0, NULL, compat_get_function(frame)->func_closure);
    } else if ((function = get_function_with_positional_arguments(entry, code, frame))) {
        result = call_with_arguments_of_frame(t, frame, code, function);
    }
    tracer_update_running_stack(t, ts, NULL);
    t->replacement = awaited;
    if (unlikely(awaited)) {
        t->replacement_for = awaited_for;
        t->replaced = replaced;
    }
    if (function)
        release_function_of_entry(entry, function);
    compat_clear_frame(ts, frame);
    return result;
}

/* ---- decide about a call, by its entries and by the callback ---- */

/* Set the thread's callback to VALUE, of the front end FRONT (borrowed; NULL means None). The
 * thread stays active while guards run, although it has no callback then. */
static void set_thread_callback(struct tracer *t, PyObject *value, const struct front *front)
{
    PyObject *old = t->callback;

    t->callback = Py_XNewRef(value);
    t->front = front;
    if (unlikely(value && !t->active))
        shim_note_thread_active(t, true);
    Py_XDECREF(old);
}

/* Return the callback for the callees of code whose action for callees is ACTION. Borrowed. */
static PyObject *choose_callback_for_callees(PyObject *callback, enum frame_action action)
{
    return action == ACTION_SKIP ? NULL : action == ACTION_RUN_ONLY ? Py_False : callback;
}

/* Run the frame: as it is if CODE is NULL, otherwise CODE in its place, the code of ENTRY. The
 * caller holds CODE and ENTRY. Meanwhile the thread's callback is UNDER. Afterwards it is CALLBACK
 * again, unless the frame itself has set another. */
static inline __attribute__((always_inline)) PyObject *
run_frame_or_code(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                  PyObject *under, struct cache_entry *entry, PyObject *code)
{
    const struct front *const front = t->front;
    PyObject *result;

    if (code)
        entry->hits++;
    if (t->callback != under)
        set_thread_callback(t, under, front);
    result = !code || code == (PyObject *)compat_get_code(frame)
                 ? record_evaluate(t, ts, frame, 0)
                 : replace_frame(t, ts, frame, entry, code);
    if (under != callback) {
        tracer_update_running_stack(t, ts, NULL);
        if (t->callback == under)
            set_thread_callback(t, callback, front);
    }
    return result;
}

PyObject *shim_run(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                   PyObject *under, struct cache_entry *entry, PyObject *code)
{
    return run_frame_or_code(t, ts, frame, callback, under, entry, code);
}

/* Return the state that CODE has now. The caller has a reference to STATE, which may have been
 * reset (STATE->code is NULL); the reference then moves to the new state. Returns NULL with
 * MemoryError. */
static struct code_state *get_state_of_code(struct code_state *state, PyCodeObject *code)
{
    while (unlikely(state && !state->code)) {
        struct code_state *now = code_state_get(code, true);
        if (now)
            now->references++;
        code_state_release(state);
        state = now;
    }
    return state;
}

/* Has a code object reached a limit? There are two: for its valid entries of FRONT, and for all
 * entries that it ever had. */
static bool is_at_cache_limit(const struct code_state *state, const struct front *front)
{
    const struct cache_entry *entry;
    unsigned long valid = 0;
    unsigned long limit = shim_settings.recompile_limit;
    unsigned long accumulated = shim_settings.accumulated_limit;

    TAILQ_FOREACH(entry, &state->entries, order)
    valid += entry->valid && entry->front == front;
    if (unlikely(tracer_hooks.limits != NULL))
        tracer_hooks.limits(state->code, &limit, &accumulated);
    return valid >= limit || state->compiles >= accumulated;
}

/* Return OUTCOME_COMPILED if the callback may be called after a miss. If not, return the outcome of
 * the call. */
static enum outcome outcome_after_miss(const struct code_state *state,
                                       const struct code_actions *actions, PyObject *callback,
                                       const struct front *front)
{
    if (actions->own == ACTION_SKIP) /* a guard that ran in this lookup has marked the code */
        return OUTCOME_SKIP;
    if (callback == Py_False || actions->own == ACTION_RUN_ONLY)
        return actions->limited ? OUTCOME_LIMIT : OUTCOME_RUN_ONLY;
    return front->limits && is_at_cache_limit(state, front) ? OUTCOME_LIMIT : OUTCOME_COMPILED;
}

/* Finish FRAME, whose beginning the watcher has run. If an entry was made and REST says so, run the
 * entry's code from its start; otherwise continue FRAME where it is. */
static PyObject *finish_watched_call(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                     PyObject *callback, PyObject *under, struct cache_entry *entry,
                                     PyObject *code, struct watched_rest *rest)
{
    struct watched_rest *const around = t->replay;
    const struct front *const front = t->front;
    PyObject *result;

    if (!rest->on && code) {
        t->replay = rest;
        result = run_frame_or_code(t, ts, frame, callback, under, entry, code);
    } else {
        if (entry) /* the watched call counts as the entry's first run */
            entry->hits++;
        if (t->callback != under)
            set_thread_callback(t, under, front);
        tracer_restore_exception(&rest->pending);
        rest->pending = (struct tracer_exception){0};
        result = shim_watcher.go_on(ts, frame, rest->throws);
        tracer_update_running_stack(t, ts, NULL);
        if (under != callback && t->callback == under)
            set_thread_callback(t, callback, front);
    }
    tracer_update_running_stack(t, ts, NULL);
    t->replay = around;
    return result;
}

static PyObject *decide_call_and_run(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                     PyObject *callback, uint64_t entered)
{
    const struct front *front = t->front;
    const int64_t region = front->regions ? t->region : -1;
    PyCodeObject *code = compat_get_code(frame);
    struct code_state *state = code_state_get(code, callback != Py_False);
    OWNED PyObject *backend = NULL, *compiled = NULL;
    PyObject *under = callback;
    PyObject *result = NULL;
    struct cache_entry *entry = NULL;
    const bool masked = t->masked;
    struct code_actions actions;
    struct answer answer = {0};
    struct watched_rest rest = {0};
    enum outcome outcome = OUTCOME_PLAIN;
    struct decision decision;

    if (!state) {
        if (callback != Py_False) /* no memory */
            PyErr_Clear();
        return record_evaluate(t, ts, frame, 0);
    }
    state->references++;
    if (COMPAT_INIT_BYPASSES_HOOK && unlikely(state->is_init))
        tracer_route_init_to_hook(compat_get_local(frame, 0), true);
    actions = code_state_get_actions(state, region);
    under = choose_callback_for_callees(callback, actions.callees);
    if (actions.own == ACTION_SKIP) {
        if (entered)
            decision_outcome(t, OUTCOME_SKIP);
        if (!actions.written)
            decision_write_actions(state, region, NULL);
        result = run_frame_or_code(t, ts, frame, callback, under, NULL, NULL);
        code_state_release(state);
        return result;
    }
    decision_begin_lookup(&decision, entered, front, frame, region);
    t->masked = true;
    set_thread_callback(t, NULL, front);
    backend = callback == Py_False ? Py_NewRef(Py_False) : shim_backend_of(callback);
    if ((front->look_up ? front->look_up : shim_look_up)(state, backend, &decision, &entry)) {
        outcome = OUTCOME_GUARD_ERROR;
        goto err;
    }
    if (entry) {
        outcome = OUTCOME_HIT;
        goto run_frame_or_code;
    }
    if (!decision_locals(&decision))
        goto err;
    if (!decision_record_miss(&decision, outcome_after_miss(state, &actions, callback, front) ==
                                             OUTCOME_COMPILED)) {
        tracer_update_running_stack(t, ts, NULL);
        set_thread_callback(t, callback,
                            front); /* set the callback again, because it was not called */
        outcome = OUTCOME_CALLBACK_ERROR;
        goto err;
    }
    if (callback != Py_False && !(state = get_state_of_code(state, code)))
        goto err;
    /* With this stance of torch a miss is an error: fail with torch's own message, which programs
     * search for. */
    if (front_skips_guards(front)) {
        decision_begin_compile(&decision, state);
        PyErr_SetString(PyExc_RuntimeError,
                        "Recompilation triggered with skip_guard_eval_unsafe stance. This usually "
                        "means that you have not warmed up your model with enough inputs such that "
                        "you can guarantee no more recompilations.");
        decision_end_compile(&decision, NULL);
        outcome = OUTCOME_CALLBACK_ERROR;
        decision_record_outcome(&decision, state, NULL, outcome);
        goto err;
    }
    actions = code_state_get_actions(state, region);
    under = choose_callback_for_callees(callback, actions.callees);
    outcome = outcome_after_miss(state, &actions, callback, front);
    if (outcome != OUTCOME_COMPILED) {
        /* a guard may have set the actions of this code */
        decision_write_actions(state, region, NULL);
        goto run_frame_or_code;
    }
    if (callback_is_watcher(callback) ? call_watcher(ts, callback, state, &decision, &answer, &rest)
                                      : call_callback(ts, callback, state, &decision, &answer)) {
        outcome = OUTCOME_CALLBACK_ERROR;
        decision_record_outcome(&decision, state, NULL, outcome);
        goto err;
    }
    if (actions.callees == ACTION_DEFAULT)
        under = choose_callback_for_callees(callback, answer.actions.callees);
    entry = answer.guarded ? cache_entry_add(code, answer.guarded, backend, front) : NULL;
    if (!(state = get_state_of_code(state, code)))
        goto err;
    outcome =
        answer.guarded && !entry ? OUTCOME_CALLBACK_ERROR : answer_get_outcome(&answer, front);
    decision_record_outcome(&decision, state, entry, outcome);
    if (outcome == OUTCOME_CALLBACK_ERROR) /* the answer was invalid, so nothing changes */
        goto err;
    if (answer.for_code) {
        answer.actions.limited = outcome == OUTCOME_LIMIT;
        if (!(state = get_state_of_code(state, code)) ||
            code_state_set_actions(state, region, answer.actions))
            goto err;
        decision_write_actions(state, region, answer.reason);
    }
run_frame_or_code:
    tracer_update_running_stack(t, ts, NULL);
    t->masked = masked;
    /* set it again, because the callback may have set another front end's callback for a while */
    t->front = front;
    decision_write(&decision, t, outcome, entry);
    /* before the frame runs, because the dict of locals would keep its values alive */
    decision_end_lookup(&decision);
    if (entry && entry->valid) /* run the entry only if it is still valid after the lookup */
        compiled = Py_NewRef(entry->parts->code);
    if (unlikely(rest.on || rest.plan))
        result = finish_watched_call(t, ts, frame, callback, under, entry, compiled, &rest);
    else
        result = compiled && front->run
                     ? front->run(t, ts, frame, callback, under, entry, compiled)
                     : run_frame_or_code(t, ts, frame, callback, under, entry, compiled);
    goto done;
err:
    tracer_update_running_stack(t, ts, NULL);
    t->masked = masked;
    decision_write(&decision, t, outcome, NULL);
    decision_end_lookup(&decision);
    if (!t->callback) {
        /* not the last reference to the callback, because the caller has one */
        if (t->given == callback)
            Py_CLEAR(t->given);
        shim_note_thread_active(t, false);
    }
    compat_clear_frame(ts, frame);
done:
    Py_XDECREF(entry);
    Py_XDECREF(answer.guarded);
    Py_XDECREF(answer.reason);
    Py_XDECREF(rest.values);
    Py_XDECREF(rest.plan);
    tracer_drop_exception(&rest.pending);
    if (state)
        code_state_release(state);
    return result;
}

/* Has CODE entries, whose code does not run while the compiler is off? */
static bool has_idle_entries(PyCodeObject *code)
{
    struct code_state *state = code_state_get(code, false);

    return state && !TAILQ_EMPTY(&state->entries);
}

/* Would a call of CODE be looked up, with the callback that the thread has now? */
static bool would_call_be_looked_up(const struct tracer *t, PyCodeObject *code)
{
    struct code_state *state = code_state_get(code, false);

    return state ? code_state_get_actions(state, front_get_region(t->front)).own != ACTION_SKIP
                 : t->callback != Py_False;
}

/* Is a call here too deep for --max-depth? */
static bool is_too_deep(const struct tracer *t)
{
    return tracer_process.max_depth && record_is_too_deep(t);
}

static __attribute__((noinline)) PyObject *
record_frame_with_notes(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag);

/* Record a frame that is not looked up, because the thread has no callback. Most such frames are
 * those of a compiler, which runs without a callback. */
static inline __attribute__((always_inline)) PyObject *
record_frame_without_lookup(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag)
{
    const bool resumed = compat_is_resumed(frame);
    const uintptr_t mark = record_get_mark(frame);
    struct open_frame open;
    PyObject *result;

    if (!record_begin_call(t, &open, ts, frame, mark, throwflag, resumed, SESSION_TSC, false)) {
        if (unlikely(mark & CODE_NOTED))
            return record_frame_with_notes(t, ts, frame, throwflag);
        return record_evaluate(t, ts, frame, throwflag);
    }
    if (unlikely(has_idle_entries(compat_get_code(frame))))
        decision_outcome(t, OUTCOME_DISABLED);
    result = record_evaluate(t, ts, frame, throwflag);
    record_end_frame(t, &open, ts, frame, result, resumed, SESSION_TSC);
    return result;
}

/* Record a frame that is not looked up, whose code has a bit of CODE_NOTED (ranges, arguments).
 * VALUES: also record its arguments and its return value. */
static PyObject *record_frame_with_values(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                          int throwflag, uintptr_t mark, bool values)
{
    const bool resumed = compat_is_resumed(frame);
    struct values_begun begun = {SECRET_NO, 0};
    struct open_frame open;
    PyObject *result;

    if (!record_begin_call(t, &open, ts, frame, mark, throwflag, resumed, SESSION_TSC, false))
        return record_evaluate(t, ts, frame, throwflag);
    if (has_idle_entries(compat_get_code(frame)))
        decision_outcome(t, OUTCOME_DISABLED);
    if (values)
        begun = values_before_frame(t, frame, resumed);
    result = record_evaluate(t, ts, frame, throwflag);
    if (values)
        values_after_frame(t, frame, resumed, result, begun);
    record_end_frame(t, &open, ts, frame, result, resumed, SESSION_TSC);
    return result;
}

/* Like record_frame_without_lookup(), for code with a bit of CODE_NOTED (ranges, arguments). */
static __attribute__((noinline)) PyObject *
record_frame_with_notes(struct tracer *t, PyThreadState *ts, compat_frame *frame, int throwflag)
{
    const uintptr_t mark = record_get_mark(frame);
    const uintptr_t plain = mark & ~(uintptr_t)CODE_NOTED;
    struct range_call range = {RANGE_NONE, NULL};
    PyObject *result;

    if (mark & CODE_RANGE)
        range = tracer_hooks.range_before(frame);
    result = record_frame_with_values(t, ts, frame, throwflag, plain, mark & CODE_ARGS);
    if (range.act)
        tracer_hooks.range_after(&range, result);
    return result;
}

/* A call of CODE, whose mark is MARK, is not recorded. Is a decision missing in the trace because
 * of this? Yes, if an option leaves the call out, and it would have been looked up. */
static __attribute__((noinline)) bool is_decision_left_out(const struct tracer *t,
                                                           PyCodeObject *code, uintptr_t mark)
{
    const bool is_left = mark & CODE_SKIP ? mark & CODE_EXCLUDED : is_too_deep(t);

    return is_left && would_call_be_looked_up(t, code);
}

PyObject *decide_frame(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    struct tracer *t = tracer_thread;
    PyObject *callback, *result;
    struct open_frame open;
    const enum session_clock clock = tracer_process.clock;
    bool resumed, asks;
    bool partly;  /* only those frames of this code are recorded that are decided */
    bool decides; /* this frame is decided */
    struct range_call range = {RANGE_NONE, NULL};
    bool noted = false; /* this frame's arguments and return value are recorded */
    struct values_begun begun = {SECRET_NO, 0};
    uint64_t entered = 0;
    uintptr_t mark = 0;

    if (unlikely(!t)) {
        if (!tracer_process.recording && !tracer_process.active_threads)
            /* the session is over, but run_frame_without_recorder() may still call us */
            return tracer_process.evaluate(ts, frame, throwflag);
        t = tracer_attach(frame);
        if (!t)
            return tracer_process.evaluate(ts, frame, throwflag);
    }
    tracer_update_running_stack(t, ts, frame);
    /* this frame runs compiled code in place of another frame, which is recorded already */
    if (t->replacement == compat_get_code(frame)) {
        begin_replacing_frame(t, frame);
        return record_evaluate(t, ts, frame, throwflag);
    }
    if (unlikely(t->capturing != NULL) && !throwflag && shim_watcher.awaits(t->capturing, frame))
        return shim_watcher.step(t->capturing, ts, frame);
    if (!t->callback && tracer_process.every_frame)
        return record_frame_without_lookup(t, ts, frame, throwflag);
    resumed = compat_is_resumed(frame);
    asks = t->callback && !throwflag && !resumed && shim_is_deciding(t, ts, t->front) &&
           !compat_has_started(frame);
    if (tracer_process.recording) {
        /* module bodies always get a mark, because that is how torch's import is noticed */
        if (!tracer_process.decided_only || asks ||
            !(compat_get_code(frame)->co_flags & CO_OPTIMIZED))
            mark = record_get_current_mark(frame);
        partly = tracer_process.decided_only || mark & CODE_SKIP;
        decides = asks && partly && would_call_be_looked_up(t, compat_get_code(frame));
        if (unlikely(mark & CODE_RANGE))
            range = tracer_hooks.range_before(frame);
        if (decides && mark & CODE_SKIP)
            mark = tracer_mark_decided_code(compat_get_code(frame));
        if (unlikely(t->folding) && asks)
            decision_request_frame_row(t);
        if (decides || !tracer_process.decided_only)
            entered = record_begin_call(t, &open, ts, frame, mark & ~(uintptr_t)CODE_NOTED,
                                        throwflag, resumed, clock, tracer_process.max_depth != 0);
        noted = entered && mark & CODE_ARGS;
        if (unlikely(noted))
            begun = values_before_frame(t, frame, resumed);
        if (unlikely(!entered && asks) && is_decision_left_out(t, compat_get_code(frame), mark))
            tracer_count_left_out(LEFT_DECISIONS);
    }
    callback = t->callback;
    if (!asks || !callback) {
        if (entered && !callback && has_idle_entries(compat_get_code(frame)))
            decision_outcome(t, OUTCOME_DISABLED);
        result = record_evaluate(t, ts, frame, throwflag);
    } else {
        Py_INCREF(callback);
        result = decide_call_and_run(t, ts, frame, callback, entered);
        Py_DECREF(callback);
    }
    if (unlikely(noted))
        values_after_frame(t, frame, resumed, result, begun);
    if (entered)
        record_end_frame(t, &open, ts, frame, result, resumed, clock);
    if (unlikely(range.act))
        tracer_hooks.range_after(&range, result);
    return result;
}
