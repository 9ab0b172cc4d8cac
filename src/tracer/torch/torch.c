/* tracer/torch/torch.c -- torch's front end on this shim: what only torch._C._dynamo.eval_frame has.
 *
 * Runs in: the traced process, under the GIL.
 *
 * torch/_dynamo calls these functions under the names that torch's own module
 * has for them (python/dyntrace/_torch.py sets the attributes). What they mean
 * was read off torch 2.6 to 2.14, and is compared with torch's by tests/with_torch
 * and `make conformance`. Versions differ by what they call: nothing here depends
 * on which torch it is. */
#include "tracer/torch/torch.h"
#include "tracer/values.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct torch_settings torch_settings = {.fullgraph_frames = -1, .c_recursion_limit = -1};
static PyObject *lookup_name; /* "TorchDynamo Cache Lookup" */

#define S torch_settings

/* ---- code of ours in the program's process ---- */

void torch_quiet_begin(struct torch_quiet *q)
{
    struct tracer *t = tracer_here();

    PyErr_Fetch(&q->type, &q->value, &q->traceback);
    q->collects = PyGC_Disable(); /* finalisers are the program's */
    PyThreadState_EnterTracing(PyThreadState_Get());
    if (t) {
        t->quiet++;
        t->limit = 0; /* so that every event goes through tracer_room(), which says no */
    }
}

void torch_quiet_end(struct torch_quiet *q)
{
    struct tracer *t = tracer_here();

    if (t)
        t->quiet--;
    PyThreadState_LeaveTracing(PyThreadState_Get());
    if (q->collects)
        PyGC_Enable();
    PyErr_Restore(q->type, q->value, q->traceback);
}

void torch_bridge_failed(const char *what)
{
    PyObject *type, *value, *traceback, *text;
    char words[512];

    PyErr_Fetch(&type, &value, &traceback);
    text = value && values_kept() == SESSION_VALUES_ALL ? PyObject_Str(value) : NULL;
    PyErr_Clear();
    snprintf(words, sizeof words, "torch bridge: %s: %s: %.300s", what,
             type ? ((PyTypeObject *)type)->tp_name : "error",
             text && PyUnicode_Check(text) && PyUnicode_AsUTF8(text) ? PyUnicode_AsUTF8(text) : "");
    PyErr_Clear();
    tracer_loss(words);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

void torch_attach(bool late)
{
    struct torch_quiet quiet;
    PyObject *module, *result = NULL;

    if (!tracer_process.session)
        return;
    torch_quiet_begin(&quiet);
    module = PyImport_ImportModule("dyntrace._torch");
    if (module)
        result = PyObject_CallMethod(module, "attach", "IO", tracer_process.session->torch, late ? Py_True : Py_False);
    if (!result)
        torch_bridge_failed("not attached");
    Py_XDECREF(module);
    Py_XDECREF(result);
    torch_quiet_end(&quiet);
    tracer_process.torch_seen = true;
    tracer_rehook();
}

/* A tensor in words, as the bridge has them. NULL: it is none, or, perhaps with an exception, could not be had. */
static PyObject *describe(PyObject *value)
{
    PyObject *function, *text;
    struct torch_quiet quiet;

    if (!S.describe || !S.tensor || !PyType_Check(S.tensor) ||
        !PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)S.tensor))
        return NULL;
    torch_quiet_begin(&quiet);
    function = Py_NewRef(S.describe);
    text = PyObject_CallOneArg(function, value);
    Py_DECREF(function);
    PyErr_Clear();
    torch_quiet_end(&quiet);
    return text;
}

/* ---- ranges in torch's profiler ---- */

static bool (*profiled)(void); /* at::hasCallbacks(): does anybody want ranges? */
static PyObject *range_type;   /* torch's, made by name */

static int find_profiled(struct dl_phdr_info *info, size_t size, void *ignored)
{
    void *library;

    if (!info->dlpi_name || !strstr(info->dlpi_name, "libtorch_cpu."))
        return 0;
    library = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
    if (library) {
        *(void **)&profiled = dlsym(library, "_ZN2at12hasCallbacksEv");
        dlclose(library); /* it stays: torch has it */
    }
    return 1;
}

static PyObject *range_begin(PyObject *name)
{
    PyObject *type, *range, *entered = NULL;

    if (!profiled || !profiled() || !name || !range_type)
        return NULL;
    type = Py_NewRef(range_type);
    Py_INCREF(name);
    range = PyObject_CallOneArg(type, name);
    Py_DECREF(name);
    Py_DECREF(type);
    if (range && !(entered = tracer_call(range, "__enter__", NULL, NULL, NULL)))
        Py_CLEAR(range);
    Py_XDECREF(entered);
    PyErr_Clear();
    return range;
}

/* OBJECT.NAME(A, B, C), with the pending exception kept; one of the call's own is dropped. */
static void call_aside(PyObject *object, const char *name, PyObject *a, PyObject *b, PyObject *c)
{
    PyObject *type, *value, *traceback, *done;

    PyErr_Fetch(&type, &value, &traceback);
    done = tracer_call(object, name, a, b, c);
    Py_XDECREF(done);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static void range_end(PyObject *range)
{
    call_aside(range, "__exit__", Py_None, Py_None, Py_None);
    Py_DECREF(range);
}

/* ---- steps of decide() ---- */

static PyObject *lookup_begins(void)
{
    return range_begin(lookup_name);
}

/* Was it a hit for all who take part? */
static int agreed(const struct code_state *state, bool *hit)
{
    PyObject *hook, *result;
    int truth;

    if (!S.guard_complete_hook || !state->entries.count)
        return 0;
    hook = Py_NewRef(S.guard_complete_hook);
    result = PyObject_CallOneArg(hook, *hit ? Py_True : Py_False);
    Py_DECREF(hook);
    truth = result ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    if (truth < 0)
        return -1;
    *hit = *hit && truth;
    return 0;
}

PyObject *torch_compile_begins(uint32_t compile, PyObject *code)
{
    PyObject *begin = Py_XNewRef(S.begin), *token;
    struct torch_quiet quiet;

    if (!begin)
        return NULL;
    torch_quiet_begin(&quiet);
    token = PyObject_CallFunction(begin, "kO", (unsigned long)compile, code);
    if (!token)
        torch_bridge_failed("a compile's beginning");
    torch_quiet_end(&quiet);
    Py_DECREF(begin);
    return token;
}

void torch_compile_ends(PyObject *token, PyObject *result)
{
    PyObject *end = Py_XNewRef(S.end), *type, *value, *traceback, *done;
    struct torch_quiet quiet;

    if (end) {
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        torch_quiet_begin(&quiet);
        done = PyObject_CallFunctionObjArgs(end, token, result ? result : Py_None, value ? value : Py_None, NULL);
        if (!done)
            torch_bridge_failed("a compile's end");
        Py_XDECREF(done);
        torch_quiet_end(&quiet);
        Py_DECREF(end);
        PyErr_Restore(type, value, traceback);
    }
    Py_DECREF(token);
}

static PyObject *random_module; /* torch.package changes imports later */

static int ask_begins(struct front_asking *a, PyThreadState *ts)
{
    *a = (struct front_asking){.c_remaining = compat_c_remaining(ts)};
    if (S.c_recursion_limit >= 0 && COMPAT_COUNTS_C_RECURSION) {
        if (S.c_recursion_limit < a->c_remaining &&
            PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                             "new c_recursion limit (%ld) is lower than thread's current c_recursion_remaining (%d).",
                             S.c_recursion_limit, a->c_remaining))
            return -1;
        compat_set_c_remaining(ts, (int)S.c_recursion_limit);
    }
    if (!random_module && !(random_module = PyImport_ImportModule("random")))
        return -1;
    a->random = tracer_call(random_module, "getstate", NULL, NULL, NULL);
    return a->random ? 0 : -1;
}

static void ask_ends(struct front_asking *a, PyThreadState *ts)
{
    if (a->random)
        call_aside(random_module, "setstate", a->random, NULL, NULL);
    compat_set_c_remaining(ts, a->c_remaining);
    Py_CLEAR(a->random);
}

/* What callees of fullgraph code run under: they may not be compiled. New reference. */
static PyObject *under_fullgraph(PyObject *under)
{
    PyObject *module, *result = NULL;

    if (!S.fullgraph_fails)
        return Py_NewRef(Py_None);
    module = PyImport_ImportModule("torch._dynamo.convert_frame");
    if (module)
        result = tracer_call(module, "get_fail_callback", under, NULL, NULL);
    Py_XDECREF(module);
    return result;
}

/* A debugging session for code with a breakpoint. New reference, or NULL with an exception. */
static PyObject *debug_begin(void)
{
    PyObject *module = PyImport_ImportModule("torch._dynamo.bytecode_debugger"), *context = NULL, *entered = NULL;

    if (module)
        context = tracer_call(module, "_DebugContext", NULL, NULL, NULL);
    if (context && !PyObject_SetAttrString(context, "_stop_at_new_code", Py_False))
        entered = tracer_call(context, "__enter__", NULL, NULL, NULL);
    if (!entered)
        Py_CLEAR(context);
    Py_XDECREF(entered);
    Py_XDECREF(module);
    return context;
}

static int run_begins(struct front_run *run, const struct cache_entry *entry, PyObject *code, PyObject **under)
{
    PyObject *done;
    int has;

    *run = (struct front_run){0};
    if (S.fullgraph_frames >= 0) {
        S.fullgraph_frames++;
        if (*under && *under != Py_False) {
            run->under = under_fullgraph(*under);
            if (!run->under)
                return -1;
            *under = run->under == Py_None ? NULL : run->under;
        }
    }
    if (S.breakpoints && !S.debugger) {
        has = PySet_Contains(S.breakpoints, code);
        if (has < 0 || (has && !(run->debugging = debug_begin())))
            return -1;
    }
    if (S.debugger) {
        PyObject *debugger = Py_NewRef(S.debugger);
        done = PyObject_CallOneArg(debugger, code);
        Py_DECREF(debugger);
        if (!done)
            return -1;
        Py_DECREF(done);
    }
    run->range = range_begin(entry->annotation);
    return 0;
}

static void run_ends(struct front_run *run)
{
    if (run->range)
        range_end(run->range);
    if (run->debugging)
        call_aside(run->debugging, "__exit__", Py_None, Py_None, Py_None);
    Py_XDECREF(run->debugging);
    Py_XDECREF(run->under);
}

static struct front_modes modes;

static const struct front torch_front = {
    .modes = &modes,
    .regions = true,
    .ids_public = true,
    .wraps_backends = true,
    .not_started = COMPAT_NOT_STARTED,
    .unexplained = "it did not hold when it was checked",
    .check_of = torch_check_of,
    .bind = torch_entry_bind,
    .unbind = torch_entry_unbind,
    .update_difference = torch_update_difference,
    .leaves = torch_leaves,
    .failed = torch_failed,
    .explain = torch_explain,
    .compile_begins = torch_compile_begins,
    .compile_ends = torch_compile_ends,
    .lookup_begins = lookup_begins,
    .lookup_ends = range_end,
    .agreed = agreed,
    .ask_begins = ask_begins,
    .ask_ends = ask_ends,
    .run_begins = run_begins,
    .run_ends = run_ends,
};

/* ---- functions ---- */

static PyObject *truth(PyObject *value, bool *flag)
{
    bool old = *flag;

    if (value != Py_True && value != Py_False) {
        PyErr_SetString(PyExc_TypeError, "expected True/False");
        return NULL;
    }
    *flag = value == Py_True;
    return PyBool_FromLong(old);
}

static PyObject *set_skip_guard_eval_unsafe(PyObject *module, PyObject *value)
{
    return truth(value, &modes.skip_guards_unsafe);
}

static PyObject *set_fullgraph_error(PyObject *module, PyObject *value)
{
    return truth(value, &S.fullgraph_fails);
}

static PyObject *set_fullgraph_count(PyObject *module, PyObject *value)
{
    long number = PyLong_AsLong(value), old = S.fullgraph_frames;

    if (number == -1 && PyErr_Occurred())
        return NULL;
    if (number < 0 || old < 0) /* who counts already goes on */
        S.fullgraph_frames = number;
    return PyLong_FromLong(old);
}

static PyObject *set_lru_cache(PyObject *module, PyObject *value)
{
    int is = PyObject_IsTrue(value);

    if (is < 0)
        return NULL;
    modes.insertion_order = !is;
    Py_RETURN_NONE;
}

static PyObject *set_region(PyObject *module, PyObject *value)
{
    struct tracer *t = tracer_here();
    long long region = PyLong_AsLongLong(value), old;

    if (region == -1 && PyErr_Occurred())
        return NULL;
    if (!t)
        return PyErr_NoMemory();
    old = t->region;
    t->region = region;
    return PyLong_FromLongLong(old);
}

static PyObject *get_region(PyObject *module, PyObject *ignored)
{
    return PyLong_FromLongLong(front_region(&torch_front));
}

/* Put VALUE (None: nothing) in *SLOT; returns what was there. */
static PyObject *exchange(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;

    *slot = value == Py_None ? NULL : Py_NewRef(value);
    return old ? old : Py_NewRef(Py_None);
}

static PyObject *set_guard_complete_hook(PyObject *module, PyObject *hook)
{
    return exchange(&S.guard_complete_hook, hook);
}

static PyObject *set_debugger(PyObject *module, PyObject *callback)
{
    PyObject *old = exchange(&S.debugger, callback);

    Py_DECREF(old);
    Py_RETURN_NONE;
}

static PyObject *get_debugger(PyObject *module, PyObject *ignored)
{
    return Py_NewRef(S.debugger ? S.debugger : Py_None);
}

static PyObject *register_breakpoint(PyObject *module, PyObject *code)
{
    if ((!S.breakpoints && !(S.breakpoints = PySet_New(NULL))) || PySet_Add(S.breakpoints, code))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_c_recursion_limit(PyObject *module, PyObject *value)
{
    long limit = PyLong_AsLong(value);

    if (limit == -1 && PyErr_Occurred())
        return NULL;
    if (limit < 1 && limit != -1) {
        PyErr_SetString(PyExc_ValueError, "recursion limit must be >= 1, or -1 to reset");
        return NULL;
    }
    S.c_recursion_limit = limit;
    Py_RETURN_NONE;
}

static PyObject *get_c_recursion_limit(PyObject *module, PyObject *ignored)
{
    return PyLong_FromLong(S.c_recursion_limit);
}

/* The lowest region above ABOVE that an entry of STATE is in, or INT64_MAX. */
static int64_t next_region(const struct code_state *state, int64_t above)
{
    int64_t next = INT64_MAX;

    for (Py_ssize_t i = 0; i < state->entries.count; i++)
        if (state->entries.at[i]->region > above && state->entries.at[i]->region < next)
            next = state->entries.at[i]->region;
    return next;
}

/* A new list goes before a look at what is to be in it: the garbage collector may run. */
static PyObject *entry_list(PyObject *module, PyObject *object)
{
    PyObject *list = PyList_New(0);
    struct code_state *state = list ? shim_state_of(object, false) : NULL;

    for (int64_t region = INT64_MIN; list && state && (region = next_region(state, region)) < INT64_MAX;)
        list = shim_list(list, &state->entries, region);
    return shim_list(list, NULL, 0);
}

static PyObject *entries_of_region(PyObject *module, PyObject *args)
{
    PyObject *code, *list;
    struct code_state *state;
    long long region;

    if (!PyArg_ParseTuple(args, "OL:_get_cache_entries_for_region", &code, &region))
        return NULL;
    list = PyList_New(0);
    state = list ? shim_state_of(code, false) : NULL;
    return shim_list(list, state ? &state->entries : NULL, region);
}

static PyObject *entry_count(PyObject *module, PyObject *object)
{
    struct code_state *state = shim_state_of(object, false);

    return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(state ? state->entries.count : 0);
}

/* Later versions say for which region and owner: an entry for another region than
 * the common one is seen there only. */
static PyObject *load_precompiled(PyObject *module, PyObject *args)
{
    PyObject *object, *guard, *code, *owner = NULL;
    long long region = -1;

    if (!PyArg_ParseTuple(args, "OOO|LO:_load_precompile_entry", &object, &guard, &code, &region, &owner))
        return NULL;
    if (!shim_state_of(object, true) || cache_entry_load((PyCodeObject *)object, guard, code, region, &torch_front))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *reset_precompiled(PyObject *module, PyObject *object)
{
    struct code_state *state = shim_state_of(object, false);

    if (PyErr_Occurred())
        return NULL;
    if (state)
        code_state_drop_precompiled(state);
    Py_RETURN_NONE;
}

static PyObject *list_precompiled(PyObject *module, PyObject *object)
{
    PyObject *list = PyList_New(0);
    struct code_state *state = list ? shim_state_of(object, false) : NULL;

    return shim_list(list, state ? &state->precompiled : NULL, SHIM_ALL_REGIONS);
}

/* torch's _PyInterpreterFrame, _CacheEntry etc. are checked with isinstance(). */
static PyObject *set_torch_eval_frame(PyObject *module, PyObject *callback)
{
    struct tracer *t = tracer_here();

    if (!t)
        return PyErr_NoMemory();
    if ((t->callback ? t->callback : Py_None) == callback)
        return Py_NewRef(callback); /* often: None when it was None */
    if (callback != Py_None && callback != Py_False && !PyCallable_Check(callback)) {
        PyErr_SetString(PyExc_TypeError, "expected a callable");
        return NULL;
    }
    return shim_set_eval_frame(callback, &torch_front);
}

static PyObject *set_guard_error_hook(PyObject *module, PyObject *hook)
{
    PyObject *old = exchange(&shim_settings.guard_error_hook, hook);

    Py_DECREF(old);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(bridge_doc, "_torch_bridge(name, value)\n\n"
             "Give the shim what it calls or compares with: guards, begin, end, describe, tensor (see _torch.py);\n"
             "skip_recursively, limit_reached (torch 2.6's answers); range (torch's profiler range).");

static PyObject *set_bridge(PyObject *module, PyObject *args)
{
    static const struct {
        const char *name;
        PyObject **slot;
    } slots[] = {
        {"guards", &S.guards}, {"begin", &S.begin}, {"end", &S.end}, {"describe", &S.describe}, {"tensor", &S.tensor},
        {"skip_recursively", &shim_settings.skip_recursively}, {"limit_reached", &shim_settings.limit_reached},
        {"range", &range_type},
    };
    const char *name;
    PyObject *value, *old;

    if (!PyArg_ParseTuple(args, "sO:_torch_bridge", &name, &value))
        return NULL;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (!strcmp(name, slots[i].name)) {
            old = exchange(slots[i].slot, value);
            Py_DECREF(old);
            if (range_type)
                dl_iterate_phdr(find_profiled, NULL);
            else
                profiled = NULL;
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_ValueError, "%s: no such part", name);
}

/* While code of ours is quiet, the shim decides nothing: the canary must be decided. */
static PyObject *traced(PyObject *module, PyObject *function)
{
    PyThreadState *ts = PyThreadState_Get();
    PyObject *result;

    PyThreadState_LeaveTracing(ts);
    result = PyObject_CallNoArgs(function);
    PyThreadState_EnterTracing(ts);
    return result;
}

static PyMethodDef attributes[] = {
    {"set_eval_frame", set_torch_eval_frame, METH_O, NULL},
    {"get_eval_frame_callback", shim_get_eval_frame_callback, METH_NOARGS, NULL},
    {"set_code_exec_strategy", shim_set_code_exec_strategy, METH_VARARGS, NULL},
    {"reset_code", shim_reset_code, METH_O, NULL},
    {"set_guard_error_hook", set_guard_error_hook, METH_O, NULL},
    {"set_guard_complete_hook", set_guard_complete_hook, METH_O, NULL},
    {"set_skip_guard_eval_unsafe", set_skip_guard_eval_unsafe, METH_O, NULL},
    {"set_fullgraph_compiled_frame_count", set_fullgraph_count, METH_O, NULL},
    {"set_fullgraph_error_on_nested_compile", set_fullgraph_error, METH_O, NULL},
    {"set_eval_frame_isolate_recompiles_id", set_region, METH_O, NULL},
    {"get_eval_frame_isolate_recompiles_id", get_region, METH_NOARGS, NULL},
    {"_set_lru_cache", set_lru_cache, METH_O, NULL},
    {"_debug_get_cache_entry_list", entry_list, METH_O, NULL},
    {"_get_cache_entries_for_region", entries_of_region, METH_VARARGS, NULL},
    {"_get_total_cache_entry_count", entry_count, METH_O, NULL},
    {"_load_precompile_entry", load_precompiled, METH_VARARGS, NULL},
    {"_reset_precompile_entries", reset_precompiled, METH_O, NULL},
    {"_debug_get_precompile_entries", list_precompiled, METH_O, NULL},
    {"set_bytecode_debugger_callback", set_debugger, METH_O, NULL},
    {"get_bytecode_debugger_callback", get_debugger, METH_NOARGS, NULL},
    {"register_breakpoint_code", register_breakpoint, METH_O, NULL},
    {"set_c_recursion_limit", set_c_recursion_limit, METH_O, NULL},
    {"get_c_recursion_limit", get_c_recursion_limit, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* The functions under torch's names, as a dict. */
static PyObject *torch_attributes(PyObject *module, PyObject *ignored)
{
    PyObject *dict = PyDict_New();

    for (PyMethodDef *m = attributes; dict && m->ml_name; m++) {
        PyObject *function = PyCFunction_NewEx(m, module, NULL);
        if (!function || PyDict_SetItemString(dict, m->ml_name, function))
            Py_CLEAR(dict);
        Py_XDECREF(function);
    }
    for (int i = 0; dict && i < 3; i++) {
        static const char *const names[] = {"_CacheEntry", "_PrecompileEntry", "_ExtraState"};
        if (PyDict_SetItemString(dict, names[i], (PyObject *)(i < 2 ? &cache_entry_type : &torch_state_type)))
            Py_CLEAR(dict);
    }
    if (dict && PyDict_SetItemString(dict, "_PyInterpreterFrame", (PyObject *)&shim_frame_type))
        Py_CLEAR(dict);
    return dict;
}

static PyMethodDef torch_methods[] = {
    {"_torch_attributes", torch_attributes, METH_NOARGS,
     "_torch_attributes() -> dict\n\nFunctions and types under the names of torch._C._dynamo.eval_frame."},
    {"_traced", traced, METH_O, "_traced(function) -> its result\n\nFor the canary: the shim decides its calls."},
    {"_torch_bridge", set_bridge, METH_VARARGS, bridge_doc},
    {NULL, NULL, 0, NULL},
};

int torch_types_ready(PyObject *module)
{
    lookup_name = PyUnicode_InternFromString("TorchDynamo Cache Lookup");
    shim_settings.describe = describe;
    if (!lookup_name || PyType_Ready(&torch_state_type))
        return -1;
    return PyModule_AddFunctions(module, torch_methods) || PyModule_AddFunctions(module, note_methods) ||
                   PyModule_AddFunctions(module, observe_methods) ? -1 : 0;
}
