/* tracer/evaluator/api.c -- the shim's functions and types, as Python sees them.
 *
 * Runs in: the traced process, under the GIL.
 *
 * Names, argument order and meaning follow torch._C._dynamo.eval_frame, so that
 * code written for it runs after changing its imports. */
#include "tracer/evaluator/cache.h"
#include "tracer/hooks.h"

#include <structmember.h>

/* ---- the view of a frame that a callback gets ---- */

/* What a callback gets for a frame that has not started. The program may keep it after the callback
 * returned; it then has no locals. */
enum { VIEW_CODE, VIEW_GLOBALS, VIEW_BUILTINS, VIEW_LOCALS, VIEW_CLOSURE, VIEW_MODULE, VIEW_PARTS };
struct shim_frame {
    PyObject_HEAD PyObject *part[VIEW_PARTS]; /* owned */
    int line, last;                           /* what f_lineno and f_lasti of the view return */
};

PyObject *shim_frame_open(const struct decision *d)
{
    compat_frame *frame = d->frame;
    struct shim_frame *view = PyObject_New(struct shim_frame, &shim_frame_type);
    PyObject *closure = compat_get_function(frame)->func_closure;
    PyObject *name;

    if (!view)
        return NULL;
    view->part[VIEW_CODE] = Py_NewRef((PyObject *)compat_get_code(frame));
    view->part[VIEW_GLOBALS] = Py_NewRef(frame->f_globals);
    view->part[VIEW_BUILTINS] = Py_NewRef(frame->f_builtins);
    view->part[VIEW_LOCALS] = Py_NewRef(d->locals);
    view->part[VIEW_CLOSURE] = closure ? Py_NewRef(closure) : PyTuple_New(0);
    /* borrowed */
    name =
        PyDict_Check(frame->f_globals) ? PyDict_GetItemString(frame->f_globals, "__name__") : NULL;
    view->part[VIEW_MODULE] = Py_NewRef(name ? name : Py_None);
    view->line = compat_get_code(frame)->co_firstlineno;
    view->last = d->front->not_started;
    return (PyObject *)view;
}

/* End VIEW when the callback has returned: drop its locals and the shim's reference. A view that
 * the program keeps has no locals from now on. */
void shim_close_frame_view(PyObject *view)
{
    Py_SETREF(((struct shim_frame *)view)->part[VIEW_LOCALS], Py_NewRef(Py_None));
    Py_DECREF(view);
}

static void free_frame_view(PyObject *object)
{
    for (int i = 0; i < VIEW_PARTS; i++)
        Py_XDECREF(((struct shim_frame *)object)->part[i]);
    PyObject_Free(object);
}

#define FRAME_MEMBER(type, name) type, offsetof(struct shim_frame, name), READONLY
static PyMemberDef frame_members[] = {
    {"f_code", FRAME_MEMBER(T_OBJECT_EX, part[VIEW_CODE]), "The code object about to run."},
    {"f_globals", FRAME_MEMBER(T_OBJECT_EX, part[VIEW_GLOBALS]), "Its globals."},
    {"f_builtins", FRAME_MEMBER(T_OBJECT_EX, part[VIEW_BUILTINS]), "Its builtins."},
    {"f_locals", FRAME_MEMBER(T_OBJECT_EX, part[VIEW_LOCALS]),
     "Arguments and free variables by name; None once the callback has returned."},
    {"closure", FRAME_MEMBER(T_OBJECT_EX, part[VIEW_CLOSURE]), "The function's cells, a tuple."},
    {"f_lineno", FRAME_MEMBER(T_INT, line), "The first line of the code."},
    {"f_lasti", FRAME_MEMBER(T_INT, last),
     "Before the first instruction: torch's callers check that it has not started."},
    {"f_back", T_NONE, 0, READONLY, "None."},
    {"__module__", FRAME_MEMBER(T_OBJECT_EX, part[VIEW_MODULE]),
     "The name of the module whose globals it has, for inspect.getmodule()."},
    {NULL, 0, 0, 0, NULL},
};
#undef FRAME_MEMBER

PyTypeObject shim_frame_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyntrace.types.DynamoFrameType",
    .tp_basicsize = sizeof(struct shim_frame),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A call that is about to run, as a callback sees it.",
    .tp_dealloc = free_frame_view,
    .tp_members = frame_members,
};

/* ---- functions of the shim, and each thread's callback ---- */

static PyCodeObject *get_code_or_raise(PyObject *object)
{
    if (PyCode_Check(object))
        return (PyCodeObject *)object;
    PyErr_Format(PyExc_TypeError, "expected a code object, got %s (a function has one as __code__)",
                 Py_TYPE(object)->tp_name);
    return NULL;
}

struct code_state *shim_get_state(PyObject *object, bool make)
{
    PyCodeObject *code = get_code_or_raise(object);

    return code ? code_state_get(code, make) : NULL;
}

/* Note whether thread T has a callback. The hook stays in the interpreter's slot as long as any
 * thread has one; the GIL guards their count. */
void shim_note_thread_active(struct tracer *t, bool active)
{
    /* the thread also counts if one of its other greenlets has a callback */
    active |= t->apart > 0;
    if (t->active == active)
        return;
    t->active = active;
    if (t->shim)
        PyCapsule_SetContext(t->shim, active ? t : NULL);
    tracer_process.active_threads += active ? 1 : -1;
    tracer_install_needed_hook();
}

/* Drop the callback of a thread that ends. Called when the capsule in the thread state is freed;
 * the capsule has a context as long as the thread has a callback. Runs under the GIL: in the thread
 * itself or, after fork() and at exit, in the thread that remains, when the struct tracer may be
 * gone. */
static void drop_thread_callback(PyObject *capsule)
{
    struct tracer *t = tracer_thread;

    if (t && t->shim == capsule) {
        t->shim = NULL;
        t->apart = 0; /* no other greenlet of the thread will run again */
        shim_note_thread_active(t, false);
        Py_CLEAR(t->callback);
        Py_CLEAR(t->given);
        Py_CLEAR(t->aside);
    } else if (PyCapsule_GetContext(capsule)) {
        tracer_process.active_threads--;
        tracer_install_needed_hook();
    }
}

static int note_end_of_thread(struct tracer *t)
{
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    OWNED PyObject *capsule =
        dict && !t->shim ? PyCapsule_New(&shim_settings, NULL, drop_thread_callback) : NULL;

    /* t->shim is checked again, because making the dict may have run a finaliser that set it */
    if (capsule && !t->shim && !PyDict_SetItemString(dict, "dyntrace", capsule))
        t->shim = capsule;
    if (!t->shim && !PyErr_Occurred())
        PyErr_NoMemory();
    return t->shim ? 0 : -1;
}

PyObject *shim_set_on_stack(PyObject *callback, const struct front *front)
{
    struct tracer *t = tracer_of_this_thread();
    OWNED PyObject *aside = NULL;
    PyObject *old;

    if (!t)
        return PyErr_NoMemory();
    tracer_update_running_stack(t, PyThreadState_Get(), NULL);
    if (callback != Py_None && callback != Py_False && !callback_is_watcher(callback) &&
        !PyCallable_Check(callback))
        return PyErr_Format(PyExc_TypeError,
                            "expected a callable, None (off) or False (run only), got %s",
                            Py_TYPE(callback)->tp_name);
    if (!t->shim && note_end_of_thread(t))
        return NULL;
    old = t->callback;
    /* A former callback that is set again gets its own front end back, even if it was another front
     * end that had replaced it for a while. */
    aside = t->aside;
    t->aside = NULL;
    if (callback_is_watcher(callback))
        front = &front_own;
    else if (callback == aside)
        front = t->aside_front;
    else if (old && old != Py_False && t->front != front)
        t->aside = Py_NewRef(old);
    t->aside_front = t->front;
    t->callback = callback == Py_None ? NULL : Py_NewRef(callback);
    t->front = front;
    if (COMPAT_INIT_BYPASSES_HOOK && t->callback && !t->active) {
        /* Make CPython call the hook for each __init__, which a specialised call would not do. Not
         * for torch, whose own evaluator does not see these calls either. */
        if (front == &front_own)
            tracer_route_all_inits_to_hook(true);
    }
    shim_note_thread_active(t, t->callback != NULL);
    return old ? old : Py_NewRef(Py_None);
}

PyObject *shim_set_eval_frame(PyObject *callback, const struct front *front)
{
    PyObject *old = shim_set_on_stack(callback, front);
    struct tracer *t = tracer_thread;

    if (old && !t->masked) {
        OWNED PyObject *given = t->given;
        t->given = Py_XNewRef(t->callback);
        t->given_front = t->front;
    }
    return old;
}

int tracer_set_callback_for_all_threads(PyObject *callback)
{
    OWNED PyObject *before = shim_set_eval_frame(callback, &front_own);

    if (before)
        Py_XSETREF(shim_settings.for_all, Py_NewRef(callback));
    return before ? 0 : -1;
}

static void set_callback_of_new_thread(void)
{
    OWNED PyObject *callback = Py_XNewRef(shim_settings.for_all), *before = NULL;

    if (!callback || PyInterpreterState_Get() != tracer_process.interpreter)
        return;
    before = shim_set_eval_frame(callback, &front_own);
    if (!before) {
        PyErr_Clear();
        tracer_write_loss("capture: not on one thread, which had no memory left");
    }
}

/* _call_under(function, callback, *args): call function(*args) with CALLBACK set. */
static PyObject *call_with_callback(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                    PyObject *names)
{
    /* first, because this call finds out which greenlet runs */
    OWNED PyObject *before = shim_get_eval_frame_callback(NULL, NULL), *old = NULL;
    const struct front *const front = tracer_thread ? tracer_thread->front : &front_own;
    PyObject *result;

    if (count < 2 || !PyCallable_Check(args[0]) ||
        (args[1] != Py_None && !callback_is_watcher(args[1])))
        return PyErr_Format(PyExc_TypeError, "expected a callable and a Capture or None");
    if (args[1] != before && !(old = shim_set_on_stack(args[1], &front_own)))
        return NULL;
    result = PyObject_Vectorcall(args[0], args + 2, (size_t)count - 2, names);
    if (old) {
        KEPT struct tracer_exception pending = tracer_put_exception_aside();
        OWNED PyObject *now = shim_set_on_stack(before, front);
        PyErr_Clear();
    }
    return result;
}

static PyObject *set_eval_frame(PyObject *module, PyObject *callback)
{
    return shim_set_eval_frame(callback, &front_own);
}

PyObject *shim_get_eval_frame_callback(PyObject *module, PyObject *ignored)
{
    struct tracer *t = tracer_thread;

    if (t)
        tracer_update_running_stack(t, PyThreadState_Get(), NULL);
    return Py_NewRef(t && t->callback ? t->callback : Py_None);
}

PyObject *shim_reset_code(PyObject *module, PyObject *object)
{
    PyCodeObject *code = get_code_or_raise(object);

    if (code)
        code_state_reset(code);
    return code ? Py_NewRef(Py_None) : NULL;
}

static PyObject *reset_all_codes(PyObject *module, PyObject *ignored)
{
    code_state_reset_all();
    Py_RETURN_NONE;
}

static PyObject *skip_code(PyObject *module, PyObject *object)
{
    struct code_state *state = shim_get_state(object, true);

    if (state)
        state->actions =
            (struct code_actions){.own = ACTION_SKIP, .callees = state->actions.callees};
    return state ? Py_NewRef(Py_None) : NULL;
}

PyObject *shim_set_code_exec_strategy(PyObject *module, PyObject *args)
{
    PyObject *code, *strategy;
    struct code_actions actions = {0};
    struct code_state *state;

    if (!PyArg_ParseTuple(args, "OO:set_code_exec_strategy", &code, &strategy) ||
        answer_read_strategy(strategy, &actions))
        return NULL;
    state = shim_get_state(code, true);
    if (state)
        state->actions = actions;
    return state ? Py_NewRef(Py_None) : NULL;
}

static PyObject *raise_unsupported(PyObject *module, PyObject *args)
{
    PyObject *first, *second;

    return PyArg_ParseTuple(args, "OO:unsupported", &first, &second) ? Py_NewRef(second) : NULL;
}

PyObject *shim_exchange(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;

    *slot = value == Py_None ? NULL : Py_NewRef(value);
    return old ? old : Py_NewRef(Py_None);
}

static PyObject *set_python_hook(PyObject **slot, PyObject *hook)
{
    if (hook == Py_None || PyCallable_Check(hook))
        return shim_exchange(slot, hook);
    return PyErr_Format(PyExc_TypeError, "expected a callable or None, got %s",
                        Py_TYPE(hook)->tp_name);
}

static PyObject *set_guard_error_hook(PyObject *module, PyObject *hook)
{
    return set_python_hook(&shim_settings.guard_error_hook, hook);
}

static PyObject *set_guard_fail_hook(PyObject *module, PyObject *hook)
{
    return set_python_hook(&shim_settings.guard_fail_hook, hook);
}

PyObject *shim_list(PyObject *object, bool precompiled, int64_t region, const struct front *front)
{
    /* before reading the cache, because making a list may run the garbage collector */
    PyObject *list = PyList_New(0);
    struct code_state *state = list ? shim_get_state(object, false) : NULL;
    struct cache_entry *entry =
        !state ? NULL : TAILQ_FIRST(precompiled ? &state->precompiled : &state->entries);

    for (; entry && !PyErr_Occurred(); entry = TAILQ_NEXT(entry, order)) {
        Py_ssize_t at = PyList_GET_SIZE(list);
        while (at && ((struct cache_entry *)PyList_GET_ITEM(list, at - 1))->region > entry->region)
            at--;
        if ((region == SHIM_ALL_REGIONS || entry->region == region) &&
            (!front || entry->front == front))
            PyList_Insert(list, at, (PyObject *)entry);
    }
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

static PyObject *list_cache_entries(PyObject *module, PyObject *object)
{
    return shim_list(object, false, SHIM_ALL_REGIONS, NULL);
}

static PyObject *set_limits(PyObject *module, PyObject *args)
{
    long limit[2];

    if (!PyArg_ParseTuple(args, "ll:_set_limits", &limit[0], &limit[1]))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (limit[i] < 0)
            return PyErr_Format(PyExc_ValueError,
                                "a limit is a number of entries, 0 or more, not %ld", limit[i]);
    shim_settings.recompile_limit = (unsigned long)limit[0];
    shim_settings.accumulated_limit = (unsigned long)limit[1];
    Py_RETURN_NONE;
}

static PyObject *get_limits(PyObject *module, PyObject *ignored)
{
    return Py_BuildValue("(kk)", shim_settings.recompile_limit, shim_settings.accumulated_limit);
}

PyMethodDef shim_methods[] = {
    {"set_eval_frame", set_eval_frame, METH_O,
     "set_eval_frame($module, callback, /)\n--\n\n"
     "Set this thread's callback and return the one before.\n\n"
     "Parameters\n----------\n"
     "callback\n"
     "    None: off. False: run cached code, compile nothing. Else a function\n"
     "    callback(frame, cache_entry, frame_state), called for each frame that\n"
     "    no cache entry fits; types.DynamoCallbackFn is its type."},
    {"get_eval_frame_callback", shim_get_eval_frame_callback, METH_NOARGS,
     "get_eval_frame_callback($module, /)\n--\n\n"
     "Return this thread's callback: None, False or a callable."},
    {"_call_under", (PyCFunction)(void (*)(void))call_with_callback, METH_FASTCALL | METH_KEYWORDS,
     "_call_under($module, fn, callback, /, *args, **keywords)\n--\n\nCall FN under a watcher's "
     "callback; with None, under none."},
    {"reset_code", shim_reset_code, METH_O,
     "reset_code($module, code, /)\n--\n\n"
     "Forget the cache entries and marks of a code object."},
    {"reset", reset_all_codes, METH_NOARGS,
     "reset($module, /)\n--\n\n"
     "Forget the cache entries and marks of every code object."},
    {"skip_code", skip_code, METH_O,
     "skip_code($module, code, /)\n--\n\n"
     "Never call the callback for this code object again."},
    {"set_code_exec_strategy", shim_set_code_exec_strategy, METH_VARARGS,
     "set_code_exec_strategy($module, code, strategy, /)\n--\n\n"
     "Set what happens to calls of a code object, and to the calls that they make.\n\n"
     "Parameters\n----------\n"
     "code\n    A code object.\n"
     "strategy\n    A types.FrameExecStrategy."},
    {"unsupported", raise_unsupported, METH_VARARGS,
     "unsupported($module, a, b, /)\n--\n\n"
     "Return b: a call that compilers cannot see through."},
    {"set_guard_error_hook", set_guard_error_hook, METH_O,
     "set_guard_error_hook($module, hook, /)\n--\n\n"
     "Set what is called when a guard raises; return the hook before.\n\n"
     "Parameters\n----------\n"
     "hook\n    hook(guard, code, f_locals, index, last), or None."},
    {"set_guard_fail_hook", set_guard_fail_hook, METH_O,
     "set_guard_fail_hook($module, hook, /)\n--\n\n"
     "Set what is called when a guard does not pass; return the hook before.\n\n"
     "Parameters\n----------\n"
     "hook\n    hook(guard, code, f_locals, index, last), or None."},
    {"_debug_get_cache_entry_list", list_cache_entries, METH_O,
     "_debug_get_cache_entry_list($module, code, /)\n--\n\n"
     "Return the cache entries of a code object, in the order in which they are tried."},
    {"_set_limits", set_limits, METH_VARARGS,
     "_set_limits($module, per_code, over_its_life, /)\n--\n\n"
     "Set how many entries a code object may have, and may have had."},
    {"_get_limits", get_limits, METH_NOARGS,
     "_get_limits($module, /)\n--\n\nReturn the two limits of _set_limits()."},
    {NULL, NULL, 0, NULL},
};

int shim_types_ready(PyObject *module)
{
    return PyModule_AddType(module, &cache_entry_type) ||
                   PyModule_AddType(module, &shim_frame_type) || guard_types_ready(module) ||
                   PyModule_AddFunctions(module, shim_methods)
               ? -1
               : 0;
}

static void forget_main_interpreter(void)
{
    shim_settings.for_all = NULL;
}

void evaluator_register(void)
{
    tracer_hooks.decide = decide_frame;
    tracer_hooks.thread_begins = set_callback_of_new_thread;
    tracer_hooks.home_gone = forget_main_interpreter;
    tracer_hooks.code_freed = code_state_free;
}
