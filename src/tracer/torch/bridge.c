/* tracer/torch/bridge.c -- the bridge to torch, python/dyntrace: the shim's calls to it, the facts
 * it records, and torch's settings.
 *
 * Runs in: the traced process, under the GIL.
 *
 * The bridge is our Python code in the program's process. Its frames are not recorded, and it
 * raises nothing. If a call fails, its fact is left out, and where a reader would miss the fact,
 * there is a loss row. */
#include "tracer/hooks.h"
#include "tracer/record.h"
#include "tracer/torch/torch.h"

#define P tracer_process
#define S torch_settings

/* the most bytes of all texts that a process records, because they take memory of the program */
enum { TOTAL_MAX = 16 << 20 };

void torch_note_failure(const char *what)
{
    KEPT struct tracer_exception error = tracer_put_exception_aside();
    OWNED PyObject *text = error.value && values_get_session_option() == SESSION_VALUES_ALL
                               ? PyObject_Str(error.value)
                               : NULL;
    OWNED PyObject *words = PyUnicode_FromFormat(
        "torch bridge: %s: %s: %.300V", what,
        error.type ? ((PyTypeObject *)error.type)->tp_name : "error", text, "");

    PyErr_Clear();
    tracer_write_loss(words && PyUnicode_AsUTF8(words) ? PyUnicode_AsUTF8(words) : "torch bridge");
}

/* Call PART of the bridge or, with NAME, a method of PART, with those of the arguments A, B, C that
 * come before the first NULL. A pending exception stays pending. Returns NULL if there is no such
 * part, or if the call failed; a loss row then says that WHAT is missing. */
static PyObject *call_python_of_bridge(const char *what, PyObject *part, const char *name,
                                       PyObject *a, PyObject *b, PyObject *c)
{
    OWNED PyObject *held = Py_XNewRef(part);
    struct torch_quiet quiet;
    PyObject *result;

    if (!held)
        return NULL;
    torch_quiet_begin(&quiet);
    result = name ? tracer_call_method(held, name, a, b, c)
                  : PyObject_CallFunctionObjArgs(held, a, b, c, NULL);
    if (!result)
        torch_note_failure(what);
    torch_quiet_end(&quiet);
    return result;
}

/* Import the module PART of our package. Under `dyntrace run` the package is called
 * _dyntrace_package, because the program may have another package called dyntrace. */
static PyObject *import_module_of_package(const char *part)
{
    OWNED PyObject *extension = PyImport_ImportModule("_dyntrace");
    bool injected = extension && PyObject_HasAttrString(extension, "_private_package");
    char name[64];

    snprintf(name, sizeof name, "%s.%s", injected ? "_dyntrace_package" : "dyntrace", part);
    return extension ? PyImport_ImportModule(name) : NULL;
}

void torch_load_bridge(bool late)
{
    OWNED PyObject *module = NULL, *done = NULL;
    struct torch_quiet quiet;

    if (!P.session)
        return;
    torch_quiet_begin(&quiet);
    module = import_module_of_package("_torch");
    if (module)
        done = PyObject_CallMethod(module, "attach", "IO", P.session->torch,
                                   late ? Py_True : Py_False);
    if (!done)
        torch_note_failure("not attached");
    torch_quiet_end(&quiet);
    P.torch_seen = true;
    tracer_install_needed_hook();
}

static PyObject *describe_value(PyObject *value)
{
    if (!S.tensor || !PyType_Check(S.tensor) ||
        !PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)S.tensor))
        return NULL;
    return call_python_of_bridge("a tensor in words", S.describe, NULL, value, NULL, NULL);
}

PyObject *torch_compile_begins(uint32_t compile, PyObject *code)
{
    OWNED PyObject *number = PyLong_FromUnsignedLong(compile);

    return number
               ? call_python_of_bridge("a compile's beginning", S.begin, NULL, number, code, NULL)
               : NULL;
}

void torch_note_compile_end(PyObject *token, PyObject *result)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *held = token, *done = NULL;

    PyErr_NormalizeException(&pending.type, &pending.value, &pending.traceback);
    done = call_python_of_bridge("a compile's end", S.end, NULL, held, result ? result : Py_None,
                                 pending.value ? pending.value : Py_None);
}

PyObject *torch_leaves(PyObject *guard, PyObject **view)
{
    OWNED PyObject *rows = NULL;

    *view = call_python_of_bridge("an entry's guards", S.guards, NULL, guard, NULL, NULL);
    if (*view)
        rows =
            tracer_get_attribute(*view, "rows"); /* a list of leaves, each a tuple of four texts */
    return rows ? PyList_AsTuple(rows) : NULL;
}

struct guard_outcome torch_find_failed_guard(struct cache_entry *entry,
                                             const struct cache_parts *parts, compat_frame *frame,
                                             PyObject *locals)
{
    const bool recorded = entry->id != ENTRY_UNRECORDED;
    /* false if torch checks only what tells entries apart, by a tree that `view` does not
     * describe */
    const bool all = !front_skips_guards(entry->front);
    const bool known = all && recorded && parts->view && locals;
    struct guard_outcome outcome = {GUARD_FAIL, 0, UINT32_MAX, 0};
    OWNED PyObject *found = known ? call_python_of_bridge("the guard that failed", parts->view,
                                                          "failing", locals, frame->f_globals, NULL)
                                  : NULL;
    PyObject *order;
    long guard, run;

    if (found && PyArg_ParseTuple(found, "llO", &guard, &run, &order)) {
        if (guard >= 0 && guard < (long)entry->guards)
            outcome.failed = (uint32_t)guard;
        outcome.guards_run = run > 0 ? (uint32_t)run : 0;
        decision_write_guard_ordinals(entry, order);
    }
    PyErr_Clear();
    return outcome;
}

PyObject *torch_explain(PyObject *view, compat_frame *frame, PyObject *locals)
{
    return call_python_of_bridge("why an entry does not fit", view, "causes", locals,
                                 frame->f_globals, NULL);
}

/* _note(name, numbers, texts): write the fact NAME of facts.h. Its members come in their order,
 * texts as bytes. */
static PyObject *write_fact_from_python(PyObject *module, PyObject *args)
{
    static const char *const names[FACT_KINDS] = {
#define X(number, NAME, ...) [number] = #NAME,
        FACTS(X)
#undef X
    };
    static size_t total;
    PyObject *numbers, *texts;
    union fact_any fact;
    struct fact_text *text;
    const char *name;
    size_t bytes = 0;
    int kind = FACT_KINDS - 1;

    if (!PyArg_ParseTuple(args, "sO!O!", &name, &PyTuple_Type, &numbers, &PyTuple_Type, &texts))
        return NULL;
    while (kind && strcmp(names[kind], name) != 0)
        kind--;
    if (!kind || PyTuple_GET_SIZE(numbers) != fact_shapes[kind].numbers ||
        PyTuple_GET_SIZE(texts) != fact_shapes[kind].texts)
        return PyErr_Format(PyExc_ValueError, "%s: no such fact", name);
    for (int i = 0; i < fact_shapes[kind].numbers; i++)
        fact.numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i));
    text = (struct fact_text *)(fact.numbers + fact_shapes[kind].numbers);
    for (int i = 0; i < fact_shapes[kind].texts; i++) {
        char *at = NULL;
        Py_ssize_t size = 0;
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(texts, i), &at, &size))
            return NULL;
        text[i] = (struct fact_text){at, size};
        bytes += (size_t)size;
    }
    if (PyErr_Occurred())
        return NULL;
    total += bytes;
    if (total <= TOTAL_MAX)
        tracer_put_fact((enum fact_kind)kind, &fact);
    else if (total - bytes <= TOTAL_MAX) /* report the loss once, when the total passes the limit */
        tracer_write_loss(
            "texts of compiles (listings, graphs, breaks) left out: more than 16 MB in "
            "this process");
    Py_RETURN_NONE;
}

static PyObject *record_loss_from_python(PyObject *module, PyObject *words)
{
    const char *text = PyUnicode_AsUTF8(words);

    tracer_write_loss(text ? text : "");
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* Return the id that CODE has in the trace; -1 if it is not recorded, or no code object. */
static PyObject *get_trace_id_of_code(PyObject *module, PyObject *code)
{
    const uintptr_t mark =
        PyCode_Check(code) && P.session ? tracer_mark_code_with_id((PyCodeObject *)code) : 0;

    return PyLong_FromLongLong(tracer_has_id(mark) ? (long long)(mark >> CODE_SHIFT) : -1);
}

static PyObject *set_compile_phase(PyObject *module, PyObject *number)
{
    const long value = PyLong_AsLong(number);

    if (value < PHASE_NONE || value >= PHASES)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no such phase");
    decision_write_phase((enum compile_phase)value);
    Py_RETURN_NONE;
}

static PyObject *is_compiling_for_python(PyObject *module, PyObject *none)
{
    return decision_compiling();
}

static PyObject *get_values_option(PyObject *module, PyObject *none)
{
    const enum session_values kept = values_get_session_option();

    return PyUnicode_FromString(kept == SESSION_VALUES_ALL     ? "all"
                                : kept == SESSION_VALUES_TYPES ? "types"
                                                               : "off");
}

/* Call OURS(*ARGS, **KWARGS), a function of the bridge, unseen by the program's trace functions.
 * Returns NULL if it failed; a loss row says so. */
static PyObject *call_unseen(PyObject *ours, PyObject *args, PyObject *kwargs)
{
    struct torch_quiet quiet;
    PyObject *result;

    torch_quiet_begin(&quiet);
    result = PyObject_Call(ours, args, kwargs);
    if (!result)
        torch_note_failure("a function of torch's");
    torch_quiet_end(&quiet);
    return result;
}

/* Call the three functions of THREE in their order: (before, theirs, after). `theirs` is a function
 * of torch, the others are the bridge's. In C, so that the Python stack has no frame of ours. */
static PyObject *call_with_before_and_after(PyObject *three, PyObject *args, PyObject *kwargs)
{
    /* hold the tuple, because the call may drop the last reference to it */
    OWNED PyObject *held = Py_NewRef(three), *token = NULL, *all = NULL, *done = NULL;
    PyObject *before = PyTuple_GET_ITEM(held, 0);
    PyObject *result;

    if (!P.recording)
        return PyObject_Call(PyTuple_GET_ITEM(held, 1), args, kwargs);
    token = before == Py_None ? Py_NewRef(Py_None) : call_unseen(before, args, kwargs);
    result = PyObject_Call(PyTuple_GET_ITEM(held, 1), args, kwargs);
    if (result && P.recording) {
        OWNED PyObject *first = PyTuple_Pack(1, token ? token : Py_None);
        all = first ? PySequence_Concat(first, args) : NULL;
        done = all ? call_unseen(PyTuple_GET_ITEM(held, 2), all, kwargs) : NULL;
        PyErr_Clear();
    }
    return result;
}

static PyMethodDef around_method = {"around",
                                    (PyCFunction)(void (*)(void))call_with_before_and_after,
                                    METH_VARARGS | METH_KEYWORDS, NULL};

static PyObject *make_wrapper_with_before_and_after(PyObject *module, PyObject *args)
{
    OWNED PyObject *function = NULL;

    if (PyTuple_GET_SIZE(args) != 3)
        return PyErr_Format(PyExc_TypeError, "_around(before, theirs, after)");
    function = PyCFunction_New(&around_method, args);
    /* an instance method, so that as an attribute of a class it gets the instance */
    return function ? PyInstanceMethod_New(function) : NULL;
}

/* ---- settings: `dyntrace run --set` ----
 *
 * A setting changes the arguments of calls before torch sees them. Settings work only with --set,
 * and in the main interpreter. python/dyntrace/_settings.py has them. Its plan(code) is called once
 * for each code object. It returns None, or a tuple that says for which calls to act, and has the
 * function that acts. The result is kept in an extra slot of the code object that we use for
 * nothing else:
 *
 *     0            not asked yet
 *     UNWANTED     None
 *     otherwise    the tuple (when, act) or (when, act, watch), owned
 *
 * act(locals, globals, function) returns a dict of changed arguments, or None, or a callable that
 * is called when the frame has ended. Settings change the arguments of torch.compile in the same
 * way as those of the user's functions.
 *
 * watch() is called once before each call, whether torch decides the call or not. It is not called
 * again when torch's evaluator passes the same frame to our hook. If watch returns a callable, this
 * callable is called with the frame's return value, or without arguments if the frame raised. */

struct settings settings;
/* owned: limits(code) -> (most entries at a time, most entries ever made); or NULL */
static PyObject *settings_of_limits;

enum { UNWANTED = 1 };
enum when {
    WHEN_LOOKED_AT, /* only calls that torch's evaluator decides, or the shim for torch */
    WHEN_ALWAYS     /* every call */
};

static Py_ssize_t slot = -1; /* code-extra index under which code objects have their plans */

static void free_plan_of_code(void *value)
{
    if (value && (uintptr_t)value != UNWANTED)
        Py_DECREF((PyObject *)value);
}

/* What was removed from a thread while Python code of ours runs: its callbacks. */
struct aside {
    struct tracer *t; /* the thread; NULL if it has no struct tracer */
    /* owned. own: the shim's callback; torchs: in observe mode, the callback of torch's own
     * evaluator */
    PyObject *own, *torchs;
    const struct front *front; /* the front end of callback `own` */
    struct torch_quiet quiet;
};

static struct aside put_exception_aside(void)
{
    struct aside a = {.t = tracer_of_this_thread()};

    torch_quiet_begin(&a.quiet);
    if (!a.t)
        return a;
    a.own = a.t->callback;
    a.front = a.t->front;
    a.t->callback = NULL;
    if (S.set && a.t->observed != ACTION_SKIP)
        a.torchs = observe_set_callback(Py_None);
    PyErr_Clear();
    return a;
}

static void restore_exception(struct aside *a)
{
    if (a->torchs)
        Py_XDECREF(observe_set_callback(a->torchs));
    Py_XDECREF(a->torchs);
    if (a->t) {
        PyObject *left = a->t->callback;
        a->t->callback = a->own;
        a->t->front = a->front;
        Py_XDECREF(left);
    }
    PyErr_Clear();
    torch_quiet_end(&a->quiet);
}

/* Call FUNCTION with those of the arguments A, B, C that come before the first NULL. Returns NULL
 * if it failed; a loss row says so. */
static PyObject *call_with_exception_aside(PyObject *function, PyObject *a, PyObject *b,
                                           PyObject *c)
{
    struct aside aside;
    PyObject *result;

    if (compat_is_finalizing()) /* do not call it at exit, when the function's module may be gone */
        return NULL;
    aside = put_exception_aside();
    result = PyObject_CallFunctionObjArgs(function, a, b, c, NULL);
    if (!result)
        torch_note_failure("a setting (--set)");
    restore_exception(&aside);
    return result;
}

/* Call plan(CODE), and keep the result in CODE's slot. Returns what is in the slot. */
static uintptr_t make_settings_plan(PyCodeObject *code)
{
    OWNED PyObject *plan = NULL, *held = Py_NewRef(settings.plan);
    uintptr_t kept;
    bool sound;

    plan = call_with_exception_aside(held, (PyObject *)code, NULL, NULL);
    /* look again, because the call may have run code that has made the plan */
    kept = compat_get_extra(code, slot);
    if (kept)
        return kept;
    sound = plan && PyTuple_Check(plan) && PyTuple_GET_SIZE(plan) >= 2;
    kept = sound ? (uintptr_t)Py_NewRef(plan) : UNWANTED;
    if (compat_set_extra(code, slot, (void *)kept)) {
        PyErr_Clear();
        free_plan_of_code((void *)kept);
        kept = UNWANTED;
    }
    return kept;
}

/* Would the shim look up calls of thread T for torch's callback now? */
static bool would_shim_look_up_call(const struct tracer *t)
{
    return t->callback && t->front && t->front->leaves == torch_leaves &&
           shim_is_deciding(t, PyThreadState_Get(), t->front);
}

/* Change those arguments of FRAME that the dict CHANGED has. */
static void set_arguments_of_frame(compat_frame *frame, PyObject *changed)
{
    const PyCodeObject *code = compat_get_code(frame);

    for (int i = 0; i < compat_count_arguments(code); i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        PyObject *value = PyDict_GetItemWithError(changed, name);
        PyObject *old;
        if (!value)
            continue;
        old = compat_take_local(frame, i);
        compat_store_local(frame, i, Py_NewRef(value));
        Py_XDECREF(old);
    }
    PyErr_Clear();
}

/* the innermost of this thread's frames for which watch() was called */
static __thread compat_frame *measured __attribute__((tls_model("initial-exec")));

/* Call watch() for FRAME, if PLAN has such a third item. */
static void call_watch_of_plan(struct settings_call *call, PyObject *plan, compat_frame *frame)
{
    OWNED PyObject *after = NULL;
    PyObject *watch = PyTuple_GET_SIZE(plan) > 2 ? PyTuple_GET_ITEM(plan, 2) : NULL;

    if (!watch || measured == frame)
        return;
    after = call_with_exception_aside(watch, NULL, NULL, NULL);
    measured = frame;
    call->wants_value = after && PyCallable_Check(after);
    if (call->wants_value)
        call->after = Py_NewRef(after);
}

struct settings_call settings_apply_before_call(compat_frame *frame, bool looked_at)
{
    struct settings_call call = {.measured = measured};
    const struct tracer *t = tracer_thread;
    PyCodeObject *code = compat_get_code(frame);
    uintptr_t kept;
    OWNED PyObject *plan = NULL, *act = NULL, *locals = NULL, *changed = NULL;
    long when;

    if (!settings.plan) /* the settings have ended, but our hook is still in the slot */
        return call;
    if (t && (t->quiet ||
              /* not for Python code of ours, nor for compiled code in place of a frame */
              t->replacement))
        return call;
    kept = compat_get_extra(code, slot);
    if (!kept)
        kept = make_settings_plan(code);
    if (kept == UNWANTED)
        return call;
    plan = Py_NewRef((PyObject *)kept);
    call_watch_of_plan(&call, plan, frame);
    when = PyLong_AsLong(PyTuple_GET_ITEM(plan, 0));
    act = Py_NewRef(PyTuple_GET_ITEM(plan, 1));
    looked_at |= t && would_shim_look_up_call(t);
    if (when == WHEN_LOOKED_AT && !looked_at)
        return call;
    locals = guard_frame_locals(frame);
    if (locals)
        changed = call_with_exception_aside(act, locals, frame->f_globals,
                                            (PyObject *)compat_get_function(frame));
    if (changed && PyDict_Check(changed))
        set_arguments_of_frame(frame, changed);
    PyErr_Clear();
    if (!call.after && changed && PyCallable_Check(changed))
        call.after = Py_NewRef(changed);
    return call;
}

void settings_finish_call(struct settings_call *call, PyObject *result)
{
    measured = call->measured;
    if (call->after)
        Py_XDECREF(
            call_with_exception_aside(call->after, call->wants_value ? result : NULL, NULL, NULL));
    Py_CLEAR(call->after);
}

static void settings_get_limits(PyCodeObject *code, unsigned long *recompile,
                                unsigned long *accumulated)
{
    OWNED PyObject *limits = NULL, *held = Py_NewRef(settings_of_limits);
    long value[2];

    if (!code) /* the code object has lost its state meanwhile */
        return;
    limits = call_with_exception_aside(held, (PyObject *)code, NULL, NULL);
    if (limits && limits != Py_None && PyArg_ParseTuple(limits, "ll", &value[0], &value[1])) {
        *recompile = value[0] >= 0 ? (unsigned long)value[0] : *recompile;
        *accumulated = value[1] >= 0 ? (unsigned long)value[1] : *accumulated;
    }
    PyErr_Clear();
}

/* the hook below run_with_settings(), which would be in the slot without settings; or NULL */
static _PyFrameEvalFunction set_over;

/* The hook while there are settings. It changes the call before the hook below gets it. */
static PyObject *run_with_settings(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    const bool starts = !throwflag && !compat_is_resumed(frame) && !compat_has_started(frame);
    struct settings_call call = {0};
    PyObject *result;

    if (starts)
        call = settings_apply_before_call(frame, false);
    if (set_over)
        result = set_over(ts, frame, throwflag);
    else if (tracer_thread)
        result = record_evaluate(tracer_thread, ts, frame, throwflag);
    else
        result = P.evaluate(ts, frame, throwflag);
    if (starts)
        settings_finish_call(&call, result);
    return result;
}

static _PyFrameEvalFunction choose_settings_hook(_PyFrameEvalFunction hook)
{
    if (!settings.plan)
        return hook;
    set_over = hook;
    return run_with_settings;
}

/* Return the settings of `run --set` in this session: a new list of strings. */
static PyObject *list_settings(void)
{
    PyObject *list = PyList_New(0);
    const char *text = P.session ? P.session->text : "";

    for (uint32_t i = 0; P.session && i < P.session->globs + 2; i++)
        text += strlen(text) + 1;
    for (uint32_t i = 0; list && P.session && i < P.session->settings; i++) {
        OWNED PyObject *one = PyUnicode_DecodeFSDefault(text);
        if (!one || PyList_Append(list, one))
            Py_CLEAR(list);
        text += strlen(text) + 1;
    }
    return list;
}

/* sitecustomize.py calls this as soon as the package can be imported. */
static PyObject *begin_settings(PyObject *module, PyObject *none)
{
    OWNED PyObject *own = NULL, *list = NULL, *done = NULL;
    struct torch_quiet quiet;

    if (!P.session || !P.session->settings || tracer_place() != PLACE_HOME)
        Py_RETURN_NONE;
    torch_quiet_begin(&quiet);
    own = import_module_of_package("_settings");
    list = list_settings();
    if (own && list)
        done = PyObject_CallMethod(own, "begin", "O", list);
    if (!done)
        torch_note_failure("settings (--set)");
    PyErr_Clear();
    torch_quiet_end(&quiet);
    Py_RETURN_NONE;
}

static PyObject *set_plan_functions(PyObject *module, PyObject *args)
{
    PyObject *plan, *limits;

    if (!PyArg_ParseTuple(args, "OO:_set_plans", &plan, &limits))
        return NULL;
    if (slot < 0)
        slot = compat_request_extra(free_plan_of_code);
    if (slot < 0)
        return PyErr_Format(PyExc_RuntimeError, "code objects have no slot left");
    Py_XSETREF(settings.plan, plan == Py_None ? NULL : Py_NewRef(plan));
    Py_XSETREF(settings_of_limits, limits == Py_None ? NULL : Py_NewRef(limits));
    tracer_hooks.limits = settings_of_limits ? settings_get_limits : NULL;
    tracer_install_needed_hook();
    Py_RETURN_NONE;
}

PyMethodDef bridge_methods[] = {
    {"_note", write_fact_from_python, METH_VARARGS,
     "_note($module, name, numbers, texts, /)\n--\n\nWrite the fact NAME of src/facts.h. Its "
     "members come in their order, "
     "texts as bytes."},
    {"_note_loss", record_loss_from_python, METH_O,
     "_note_loss($module, text, /)\n--\n\nWrite a loss row: something could not be recorded."},
    {"_code_id", get_trace_id_of_code, METH_O,
     "_code_id($module, code, /)\n--\n\nReturn CODE's id in the trace, or -1 if it has none."},
    {"_phase", set_compile_phase, METH_O,
     "_phase($module, number, /)\n--\n\nWrite that this thread is in phase NUMBER of torch's work "
     "(enum compile_phase) from here on."},
    {"_compiling", is_compiling_for_python, METH_NOARGS,
     "_compiling($module, /)\n--\n\nReturn (compile id, code) of the compile that this thread "
     "runs. None if it runs "
     "none, or none that is recorded."},
    {"_values", get_values_option, METH_NOARGS,
     "_values($module, /)\n--\n\nReturn the mode of --values: 'all', 'types' or 'off'. It says "
     "which values may be recorded."},
    {"_around", make_wrapper_with_before_and_after, METH_VARARGS,
     "_around($module, before, theirs, after, /)\n--\n\n"
     "Return a function, also for a class. It calls token = before(...), result = theirs(...) and, "
     "if theirs did not raise, after(token, ...). "
     "The program does not see before and after."},
    {"_begin_settings", begin_settings, METH_NOARGS,
     "_begin_settings($module, /)\n--\n\nApply the settings of `dyntrace run --set`, if any."},
    {"_set_plans", set_plan_functions, METH_VARARGS,
     "_set_plans($module, plan, limits, /)\n--\n\nplan(code) -> None or (when, act[, watch]), "
     "limits(code) -> (per "
     "code "
     "object, over its life) or None; either may be None."},
    {NULL, NULL, 0, NULL},
};

void bridge_register(void)
{
    tracer_hooks.torch_begins = torch_load_bridge;
    tracer_hooks.hook_over = choose_settings_hook;
    tracer_hooks.describe = describe_value;
}
