/* tracer/torch/torch.c -- torch's front end on this shim: the functions that only
 * torch._C._dynamo.eval_frame has.
 *
 * Runs in: the traced process, under the GIL.
 *
 * torch/_dynamo calls these functions under the names that torch's own module has for them
 * (python/dyntrace/_torch.py sets the attributes). They behave like the functions of torch 2.6 to
 * 2.15; tests/with_torch and `make conformance` compare them with torch's own. Torch versions call
 * different functions; nothing here depends on the version. */
#include "tracer/torch/torch.h"

#include <dlfcn.h>

struct torch_settings torch_settings = {.rules.fullgraph_frames = -1};
/* the name of the profiler range of a lookup: "TorchDynamo Cache Lookup" */
static PyObject *lookup_name;
/* torch's at::hasCallbacks(), which tells whether a profiler records ranges */
static bool (*profiled)(void);
/* the module `random`, imported early, because torch.package may replace imports */
static PyObject *random_module;

#define S torch_settings

/* ---- bind cache entries to torch's guard managers ----
 *
 * A torch guard manager has a tree, `root`, whose check() is the check of an entry. The manager
 * gets its entry and the entry's state (attributes `cache_entry` and `extra_state`; we set both to
 * the entry). Through them the manager invalidates the entry when a guarded object dies.
 * python/dyntrace/_torch_guards.py reads the guards from the manager. */

/* Return the bound method check() of the tree that GUARD has as its attribute NAME: a new
 * reference. Returns NULL if there is no such tree, or with an exception. */
static PyObject *get_check_of_tree(PyObject *guard, const char *name)
{
    OWNED PyObject *root = tracer_get_attribute(guard, name);

    return root && root != Py_None ? tracer_get_attribute(root, "check") : NULL;
}

static PyObject *get_check_of_guard(PyObject *guard)
{
    return get_check_of_tree(guard, "root");
}

static void update_difference_between_entries(struct cache_parts *parts)
{
    PyObject *check = get_check_of_tree(parts->guard, "diff_guard_root");

    if (!PyErr_Occurred())
        Py_XSETREF(parts->difference, check);
}

/* Set GUARD's attributes `cache_entry` and `extra_state` to ENTRY, which may be None. Returns -1
 * with an exception. */
static int set_guard_entry(PyObject *guard, PyObject *entry)
{
    int status = PyObject_SetAttrString(guard, "cache_entry", entry);

    return status ? status : PyObject_SetAttrString(guard, "extra_state", entry);
}

static int bind_entry(struct cache_entry *entry, struct cache_parts *parts)
{
    if (set_guard_entry(parts->guard, (PyObject *)entry))
        return -1;
    update_difference_between_entries(parts);
    PyErr_Clear();
    /* the entry may have become invalid by code that ran here, so unbind it again */
    if (!entry->valid)
        set_guard_entry(parts->guard, Py_None);
    PyErr_Clear();
    return 0;
}

static void unbind_entry(struct cache_entry *entry, PyObject *guard)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    PyObject *words = PyUnicode_FromString("Invalidated");

    set_guard_entry(guard, Py_None);
    if (words)
        Py_XSETREF(entry->annotation, words);
}

/* ---- steps of decide_call_and_run() that differ for torch ---- */

/* Call OBJECT.NAME with those of the arguments A, B, C that come before the first NULL. An
 * exception of the call is dropped; a pending one stays pending. */
static void call_ignoring_errors(PyObject *object, const char *name, PyObject *a, PyObject *b,
                                 PyObject *c)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *done = tracer_call_method(object, name, a, b, c);
}

/* Call the function NAME of MODULE, with the argument A unless that is NULL. */
static PyObject *call_function_of_module(const char *module, const char *name, PyObject *a)
{
    OWNED PyObject *imported = PyImport_ImportModule(module);

    return imported ? tracer_call_method(imported, name, a, NULL, NULL) : NULL;
}

/* Enter the context manager CONTEXT, which is stolen, and return it for leave_context(). Returns
 * NULL with an exception; also if CONTEXT is NULL, because making it has raised. */
static PyObject *enter_context(PyObject *context)
{
    OWNED PyObject *entered =
        context ? tracer_call_method(context, "__enter__", NULL, NULL, NULL) : NULL;

    if (!entered)
        Py_CLEAR(context);
    return context;
}

/* Leave the context manager CONTEXT and release it. Does nothing if it is NULL. */
static void leave_context(PyObject *context)
{
    if (context)
        call_ignoring_errors(context, "__exit__", Py_None, Py_None, Py_None);
    Py_XDECREF(context);
}

/* Begin a range called NAME in torch's profiler, if a profiler records ranges. Returns a reference
 * for leave_context(), or NULL. */
static PyObject *begin_profiler_range(PyObject *name)
{
    OWNED PyObject *type = NULL, *held = NULL;
    PyObject *range;

    if (!profiled || !profiled() || !name || !S.range)
        return NULL;
    type = Py_NewRef(S.range);
    held = Py_NewRef(name);
    range = enter_context(PyObject_CallOneArg(type, held));
    PyErr_Clear();
    return range;
}

/* Look up an entry as the shim does. If there is a guard_complete_hook, a hit counts only if this
 * hook agrees, by which torch makes all ranks decide alike. */
static int look_up_entry(struct code_state *state, PyObject *backend, struct decision *d,
                         struct cache_entry **found)
{
    PyObject *range = begin_profiler_range(lookup_name);
    OWNED PyObject *hook = NULL, *result = NULL;
    int status = shim_look_up(state, backend, d, found);
    int truth;

    leave_context(range);
    if (status || !S.guard_complete_hook || TAILQ_EMPTY(&state->entries))
        return status;
    hook = Py_NewRef(S.guard_complete_hook);
    result = PyObject_CallOneArg(hook, *found ? Py_True : Py_False);
    truth = result ? PyObject_IsTrue(result) : -1;
    if (truth <= 0)
        Py_CLEAR(*found);
    return truth < 0 ? -1 : 0;
}

/* Call the callback to compile. Afterwards the module `random` has the same state as before, and
 * the C recursion limit is the same. */
static PyObject *call_to_compile(PyThreadState *ts, PyObject *callback,
                                 PyObject *const arguments[3])
{
    const long limit =
        COMPAT_COUNTS_C_RECURSION && S.c_recursion_limit ? PyLong_AsLong(S.c_recursion_limit) : -1;
    const int remaining = compat_c_remaining(ts);
    OWNED PyObject *random = NULL;
    PyObject *result;

    if (limit >= 0 && limit < remaining &&
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "new c_recursion limit (%ld) is lower than thread's current "
                         "c_recursion_remaining (%d).",
                         limit, remaining))
        return NULL;
    if ((!random_module && !(random_module = PyImport_ImportModule("random"))) ||
        !(random = tracer_call_method(random_module, "getstate", NULL, NULL, NULL)))
        return NULL;
    if (limit >= 0)
        compat_set_c_remaining(ts, (int)limit);
    result = PyObject_Vectorcall(callback, arguments, 3, NULL);
    call_ignoring_errors(random_module, "setstate", random, NULL, NULL);
    compat_set_c_remaining(ts, remaining);
    return result;
}

/* Start torch's debugger, because compiled code has a breakpoint. Returns a new reference, or NULL
 * with an exception. */
static PyObject *start_torch_debugger(void)
{
    PyObject *context =
        call_function_of_module("torch._dynamo.bytecode_debugger", "_DebugContext", NULL);

    if (context && PyObject_SetAttrString(context, "_stop_at_new_code", Py_False))
        Py_CLEAR(context);
    return enter_context(context);
}

static struct call_rules *get_rules_of_torch(void)
{
    struct tracer *t = S.rules_by_thread ? tracer_of_this_thread() : NULL;

    return t ? &t->rules : &S.rules;
}

/* Do what torch does before compiled CODE runs: count the frame, forbid compiles below it, start
 * debuggers. May change *UNDER, the callback for callees; *INSTEAD then owns the new one. Returns
 * -1 with an exception. */
static int prepare_compiled_run(PyObject *code, PyObject **under, PyObject **instead,
                                PyObject **debugging)
{
    OWNED PyObject *debugger = NULL, *done = NULL;
    const long override = S.override ? PyLong_AsLong(S.override) : 0;
    struct call_rules *rules = get_rules_of_torch();
    int stops;

    /* `override` is no int, because the program has set it to something else */
    if (PyErr_Occurred())
        return -1;
    rules->fullgraph_frames += rules->fullgraph_frames >= 0;
    /* under fullgraph torch compiles no function that this frame calls */
    if ((rules->fullgraph_frames >= 0 || override) && *under && *under != Py_False) {
        *instead = rules->fullgraph_fails || override == 2
                       ? call_function_of_module("torch._dynamo.convert_frame", "get_fail_callback",
                                                 *under)
                       : Py_NewRef(Py_None);
        if (!*instead)
            return -1;
        *under = *instead == Py_None ? NULL : *instead;
    }
    stops = S.breakpoints && !S.debugger ? PySet_Contains(S.breakpoints, code) : 0;
    if (stops < 0 || (stops && !(*debugging = start_torch_debugger())))
        return -1;
    if (!S.debugger)
        return 0;
    debugger = Py_NewRef(S.debugger);
    done = PyObject_CallOneArg(debugger, code);
    return done ? 0 : -1;
}

static PyObject *run_compiled_code(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                   PyObject *callback, PyObject *under, struct cache_entry *entry,
                                   PyObject *code)
{
    OWNED PyObject *instead = NULL;
    PyObject *debugging = NULL;
    PyObject *range = NULL;
    PyObject *result = NULL;

    if (prepare_compiled_run(code, &under, &instead, &debugging)) {
        compat_clear_frame(ts, frame);
    } else {
        range = begin_profiler_range(entry->annotation);
        result = shim_run(t, ts, frame, callback, under, entry, code);
    }
    leave_context(range);
    leave_context(debugging);
    return result;
}

static struct front torch_front = {
    .regions = true,
    .ids_public = true,
    .wraps_backends = true,
    .not_started = COMPAT_NOT_STARTED,
    .unexplained = "it did not hold when it was checked",
    .rules = get_rules_of_torch,
    .check_of = get_check_of_guard,
    .bind = bind_entry,
    .unbind = unbind_entry,
    .update_difference = update_difference_between_entries,
    .leaves = torch_leaves,
    .failed = torch_find_failed_guard,
    .explain = torch_explain,
    .compile_begins = torch_compile_begins,
    .compile_ends = torch_note_compile_end,
    .look_up = look_up_entry,
    .ask = call_to_compile,
    .run = run_compiled_code,
};

/* ---- functions that torch's Python code calls ---- */

static PyObject *set_flag_from_python(PyObject *value, bool *flag)
{
    bool old = *flag;

    if (value != Py_True && value != Py_False)
        return PyErr_Format(PyExc_TypeError, "expected True/False");
    *flag = value == Py_True;
    return PyBool_FromLong(old);
}

static PyObject *set_skip_guard_eval_unsafe(PyObject *module, PyObject *value)
{
    return set_flag_from_python(value, &get_rules_of_torch()->skip_guards_unsafe);
}

static PyObject *set_fullgraph_error(PyObject *module, PyObject *value)
{
    return set_flag_from_python(value, &get_rules_of_torch()->fullgraph_fails);
}

static PyObject *set_fullgraph_count(PyObject *module, PyObject *value)
{
    long number = PyLong_AsLong(value);
    struct call_rules *rules = get_rules_of_torch();
    long old = rules->fullgraph_frames;

    if (number == -1 && PyErr_Occurred())
        return NULL;
    /* a negative number stops counting, any other starts it unless it runs already */
    if (number < 0 || old < 0)
        rules->fullgraph_frames = number;
    return PyLong_FromLong(old);
}

static PyObject *set_lru_cache(PyObject *module, PyObject *value)
{
    const bool was = !torch_front.insertion_order;
    const int is = PyObject_IsTrue(value);

    if (is < 0)
        return NULL;
    torch_front.insertion_order = !is;
    return S.rules_by_thread ? PyBool_FromLong(was) : Py_NewRef(Py_None);
}

static PyObject *set_thread_region(PyObject *module, PyObject *value)
{
    struct tracer *t = tracer_of_this_thread();
    long long region = PyLong_AsLongLong(value), old;

    if (region == -1 && PyErr_Occurred())
        return NULL;
    if (!t)
        return PyErr_NoMemory();
    old = t->region;
    t->region = region;
    return PyLong_FromLongLong(old);
}

static PyObject *get_thread_region(PyObject *module, PyObject *ignored)
{
    return PyLong_FromLongLong(front_get_region(&torch_front));
}

static PyObject *list_entries_for_region(PyObject *module, PyObject *args)
{
    long long region = SHIM_ALL_REGIONS;
    PyObject *code;

    return PyArg_ParseTuple(args, "O|L:_get_cache_entries_for_region", &code, &region)
               ? shim_list(code, false, region, &torch_front)
               : NULL;
}

static PyObject *list_entries(PyObject *module, PyObject *code)
{
    return shim_list(code, false, SHIM_ALL_REGIONS, &torch_front);
}

static PyObject *list_precompiled(PyObject *module, PyObject *code)
{
    return shim_list(code, true, SHIM_ALL_REGIONS, &torch_front);
}

static PyObject *count_entries(PyObject *module, PyObject *code)
{
    OWNED PyObject *all = shim_list(code, false, SHIM_ALL_REGIONS, &torch_front);

    return all ? PyLong_FromSsize_t(PyList_GET_SIZE(all)) : NULL;
}

/* Add a precompiled entry to the cache. Newer torch versions also pass a region and an owner: only
 * lookups in this region find the entry, or all lookups if it is the common region. */
static PyObject *load_precompiled(PyObject *module, PyObject *args)
{
    PyObject *object, *guard, *code;
    PyObject *owner = NULL;
    long long region = -1;

    if (!PyArg_ParseTuple(args, "OOO|LO:_load_precompile_entry", &object, &guard, &code, &region,
                          &owner))
        return NULL;
    if (!shim_get_state(object, true) ||
        cache_entry_add_precompiled((PyCodeObject *)object, guard, code, region, &torch_front))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *reset_precompiled(PyObject *module, PyObject *object)
{
    struct code_state *state = shim_get_state(object, false);

    if (PyErr_Occurred())
        return NULL;
    if (state)
        code_state_drop_precompiled(state);
    Py_RETURN_NONE;
}

/* Set this thread's callback, like torch's function of that name. */
static PyObject *set_torch_eval_frame(PyObject *module, PyObject *callback)
{
    struct tracer *t = tracer_of_this_thread();

    if (!t)
        return PyErr_NoMemory();
    if ((t->callback ? t->callback : Py_None) == callback)
        return Py_NewRef(callback); /* returns here most often: None replaces None */
    return shim_set_eval_frame(callback, &torch_front);
}

PyDoc_STRVAR(bridge_doc,
             "_torch_bridge($module, name, /, *value)\n--\n\nSet NAME to VALUE; return the old.\n\n"
             "Objects that the shim calls or compares with: guards, begin, end, describe, "
             "tensor (see _torch.py); skip_recursively,\n"
             "limit_reached (torch 2.6's answers); range (torch's profiler range); "
             "while_tracing (decide frames that run\n"
             "with tracing set); hooks, limits and torch 2.11's override, set by "
             "functions of torch._C._dynamo.eval_frame; and, for\n"
             "observe mode, functions and types of that module, by their names.");

static PyObject *set_bridge_functions(PyObject *module, PyObject *args)
{
    static const struct {
        const char *name;
        PyObject **slot;
    } slots[] = {
        {"guards", &S.guards},
        {"begin", &S.begin},
        {"end", &S.end},
        {"describe", &S.describe},
        {"tensor", &S.tensor},
        {"skip_recursively", &shim_settings.skip_recursively},
        {"limit_reached", &shim_settings.limit_reached},
        {"while_tracing", &shim_settings.while_tracing},
        {"guard_error_hook", &shim_settings.guard_error_hook},
        {"guard_complete_hook", &S.guard_complete_hook},
        {"debugger", &S.debugger},
        {"breakpoints", &S.breakpoints},
        {"c_recursion_limit", &S.c_recursion_limit},
        {"override", &S.override},
        {"range", &S.range},
        {"rules_by_thread", &S.rules_by_thread},
        {"set_eval_frame", &S.set},
        {"set_code_exec_strategy", &S.strategy},
        {"skip_code", &S.skip},
        {"reset_code", &S.reset},
        {"_debug_get_cache_entry_list", &S.entries},
        {"_PyInterpreterFrame", &S.frame_type},
        {"get_eval_frame_isolate_recompiles_id", &S.region_now},
    };
    PyObject *value = NULL;
    const char *name;
    void *library;

    if (!PyArg_ParseTuple(args, "s|O:_torch_bridge", &name, &value))
        return NULL;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        if (strcmp(name, slots[i].name))
            continue;
        if (!value)
            return Py_NewRef(*slots[i].slot ? *slots[i].slot : Py_None);
        if (slots[i].slot == &S.range &&
            (library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY))) {
            *(void **)&profiled = dlsym(library, "_ZN2at12hasCallbacksEv");
            dlclose(library); /* the library stays loaded, because torch itself uses it */
        }
        return shim_exchange(slots[i].slot, value);
    }
    return PyErr_Format(PyExc_ValueError, "%s: no such part", name);
}

static PyMethodDef attributes[] = {
    {"set_eval_frame", set_torch_eval_frame, METH_O, NULL},
    {"get_eval_frame_callback", shim_get_eval_frame_callback, METH_NOARGS, NULL},
    {"set_code_exec_strategy", shim_set_code_exec_strategy, METH_VARARGS, NULL},
    {"reset_code", shim_reset_code, METH_O, NULL},
    {"set_skip_guard_eval_unsafe", set_skip_guard_eval_unsafe, METH_O, NULL},
    {"set_fullgraph_compiled_frame_count", set_fullgraph_count, METH_O, NULL},
    {"set_fullgraph_error_on_nested_compile", set_fullgraph_error, METH_O, NULL},
    {"set_eval_frame_isolate_recompiles_id", set_thread_region, METH_O, NULL},
    {"get_eval_frame_isolate_recompiles_id", get_thread_region, METH_NOARGS, NULL},
    {"_set_lru_cache", set_lru_cache, METH_O, NULL},
    {"_debug_get_cache_entry_list", list_entries, METH_O, NULL},
    {"_debug_get_precompile_entries", list_precompiled, METH_O, NULL},
    {"_get_cache_entries_for_region", list_entries_for_region, METH_VARARGS, NULL},
    {"_get_total_cache_entry_count", count_entries, METH_O, NULL},
    {"_load_precompile_entry", load_precompiled, METH_VARARGS, NULL},
    {"_reset_precompile_entries", reset_precompiled, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

PyObject *torch_functions(PyObject *module, PyMethodDef *methods)
{
    PyObject *dict = PyDict_New();

    for (PyMethodDef *m = methods; dict && m->ml_name; m++) {
        OWNED PyObject *function = PyCFunction_NewEx(m, module, NULL);
        if (!function || PyDict_SetItemString(dict, m->ml_name, function))
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *make_torch_attributes(PyObject *module, PyObject *ignored)
{
    return torch_functions(module, attributes);
}

static PyMethodDef torch_methods[] = {
    {"_torch_attributes", make_torch_attributes, METH_NOARGS,
     "_torch_attributes($module, /)\n--\n\nReturn a dict of functions under the names of "
     "torch._C._dynamo.eval_frame; "
     "_torch.py has the others."},
    {"_torch_bridge", set_bridge_functions, METH_VARARGS, bridge_doc},
    {NULL, NULL, 0, NULL},
};

int torch_types_ready(PyObject *module)
{
    lookup_name = PyUnicode_InternFromString("TorchDynamo Cache Lookup");
    if (!lookup_name || PyModule_AddFunctions(module, torch_methods))
        return -1;
    return PyModule_AddFunctions(module, bridge_methods) ||
                   PyModule_AddFunctions(module, observe_methods)
               ? -1
               : 0;
}

void torch_register(void)
{
    bridge_register();
    observe_register();
    ranges_register();
}
