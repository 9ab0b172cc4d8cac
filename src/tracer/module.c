/* tracer/module.c -- the extension module `_dyntrace`.
 *
 * Importing the module only makes the shim's functions available (tracer/evaluator/api.c).
 * `_start`, called by sitecustomize.py, joins the session of `dyntrace run`; pause() and resume()
 * remove the hook and restore it, for programs that measure themselves.
 *
 * The shim's objects belong to the home interpreter (tracer/place.c); in other interpreters the
 * shim's functions raise. In a free-threaded build they raise everywhere, and none of the parts
 * above the base (hooks.h) are registered: only frames, spans and arguments are recorded.
 *
 * Without a GIL: a thread is inside tracer_gate while it joins or leaves a session, pauses or
 * resumes. */
#include "tracer/attach.h"
#include "tracer/evaluator/cache.h"
#include "tracer/hooks.h"
#include "tracer/resume/resume.h"
#include "tracer/span.h"
#include "tracer/torch/torch.h"
#include "versions.h"

#include <dlfcn.h>

#define P tracer_process

/* ---- record another interpreter of the process ---- */

void tracer_join_interpreter(void)
{
    static const char *const words =
        COMPAT_FREE_THREADED
            ? "interpreter: in a free-threaded CPython only the main interpreter is "
              "recorded: nothing of another one was recorded"
            : "code data: an interpreter of this process has given the code-extra index that "
              "dyntrace needs to another extension: it was not recorded";
    enum tracer_place place = tracer_place();

    if (!P.session || P.session->frames == SESSION_NONE)
        return;
    /* Not if the session may end while the process goes on (attach, record()): sub-interpreters may
     * run in parallel to the thread that ends it. */
    if (place == PLACE_SUB && (P.inherits || !P.inject_directory))
        return;
    if (place == PLACE_NONE) {
        tracer_write_loss(words);
    } else if (!P.decided_only || place != PLACE_SUB) {
        if (COMPAT_INIT_BYPASSES_HOOK)
            tracer_route_all_inits_to_hook(false);
        if (place == PLACE_SUB) {
            tracer_hook_subinterpreter(true);
        } else {
            tracer_install_needed_hook();
            slot_begin_watching();
        }
    }
}

/* ---- functions of the module for a session's beginning and end ---- */

/* Load the extension that SPEC describes. Returns a new reference, or NULL with an exception. Calls
 * C functions, because calls of importlib's Python functions would be recorded as the program's. */
static PyObject *load_extension(PyObject *spec)
{
    OWNED PyObject *imp = PyImport_ImportModule("_imp");
    OWNED PyObject *extension = NULL;
    OWNED PyObject *executed = NULL;

    if (imp)
        extension = tracer_call_method(imp, "create_dynamic", spec, NULL, NULL);
    if (extension)
        executed = tracer_call_method(imp, "exec_dynamic", extension, NULL, NULL);
    if (!executed)
        return NULL;
    return Py_NewRef(extension);
}

/* For `dyntrace run --capture`: begin to capture the user's functions. SPEC is the module spec of
 * `_dyntrace_capture`. Returns -1 with an exception on failure. */
static int begin_capture(PyObject *module, PyObject *spec)
{
    OWNED PyObject *capture = load_extension(spec);
    OWNED PyObject *shim = tracer_get_attribute(module, "_shim");
    OWNED PyObject *attached = NULL;
    OWNED PyObject *begun = NULL;

    if (capture && shim)
        attached = tracer_call_method(capture, "_attach", shim, NULL, NULL);
    if (attached)
        begun = tracer_call_method(capture, "_begin_for_all", NULL, NULL, NULL);
    if (!begun)
        return -1;
    return PyDict_SetItemString(PyImport_GetModuleDict(), "_dyntrace_capture", capture);
}

/* End the recording of this process. Afterwards hooks and callbacks of ours that the program can
 * still call do nothing; docs/internals.md lists them. */
static void end_recording(void)
{
    world_enter_gate(&tracer_gate);
    tracer_close_session();
    if (!COMPAT_FREE_THREADED)
        code_states_mark_actions_unwritten();
    if (COMPAT_INIT_BYPASSES_HOOK)
        tracer_undo_routing_of_inits();
    world_leave_gate(&tracer_gate);
}

/* In a free-threaded build: write a loss row for each thing that the session asks for and that
 * cannot be done. */
static void record_unsupported_options(void)
{
    if (P.session->capture)
        tracer_write_loss("capture: it needs a CPython with the GIL: nothing was captured");
    if (P.session->settings)
        tracer_write_loss("settings: compilers need a CPython with the GIL: --set had no effect");
}

static const char *join_in_this_interpreter(const char *session, const char *library,
                                            const char *inject)
{
    const char *why;

    if (P.session && tracer_place() == PLACE_HOME && atomic_load(&P.session->closed)) {
        if (P.interpreters && P.inject_directory && !P.inherits)
            /* sub-interpreters have our hook, and may run in parallel to this thread */
            return "interpreters";
        /* that session has ended; this process goes on, and may join another session */
        end_recording();
    }
    if (P.session) {
        tracer_join_interpreter();
        return NULL;
    }
    if (tracer_place() != PLACE_HOME)
        return "elsewhere";
    if (strlen(library) < sizeof P.standard_library)
        strcpy(P.standard_library, library);
    why = tracer_open_session(session);
    PyErr_Clear();
    if (why)
        return why;
    if (inject)
        tracer_record_child_programs(inject);
    if (P.session->frames != SESSION_NONE) {
        if (COMPAT_INIT_BYPASSES_HOOK)
            tracer_route_all_inits_to_hook(false);
        tracer_set_recording(true);
        slot_begin_watching();
        slot_check_hook(true);
        if (COMPAT_HAS_TRAMPOLINES)
            tracer_wrap_perf_functions();
        /* torch.compile's front end was imported before dyntrace.record() was called */
        if (!COMPAT_FREE_THREADED &&
            PyDict_GetItemString(PyImport_GetModuleDict(), "torch._dynamo"))
            torch_load_bridge(true);
    }
    if (COMPAT_FREE_THREADED)
        record_unsupported_options();
    return NULL;
}

/* Join the session. Returns NULL, or the reason why the process cannot join, as _start does. */
static const char *join_session(const char *session, const char *library, const char *inject)
{
    const char *why;

    world_enter_gate(&tracer_gate);
    why = join_in_this_interpreter(session, library, inject);
    world_leave_gate(&tracer_gate);
    return why;
}

static PyObject *start_recording(PyObject *module, PyObject *args)
{
    PyObject *session = NULL;
    PyObject *library = NULL;
    PyObject *inject = NULL;
    PyObject *capture = Py_None;
    const char *why;
    bool captures;

    if (!PyArg_ParseTuple(args, "O&O&|O&O:_start", PyUnicode_FSConverter, &session,
                          PyUnicode_FSConverter, &library, PyUnicode_FSConverter, &inject,
                          &capture))
        return NULL;
    why = join_session(PyBytes_AS_STRING(session), PyBytes_AS_STRING(library),
                       inject ? PyBytes_AS_STRING(inject) : NULL);
    if (!why)
        attach_listen(module);
    captures = !why && inject && P.session->capture && tracer_place() == PLACE_HOME;
    captures &= !COMPAT_FREE_THREADED;
    if (captures && begin_capture(module, capture)) {
        PyErr_Clear();
        tracer_write_loss("capture: its extension could not be loaded");
    }
    Py_DECREF(session);
    Py_DECREF(library);
    Py_XDECREF(inject);
    return why ? PyUnicode_FromString(why) : Py_NewRef(Py_None);
}

static PyObject *stop_recording(PyObject *module, PyObject *ignored)
{
    end_recording();
    Py_RETURN_NONE;
}

static const char *path_of_active_trace(void)
{
    const char *spill = P.session->text;

    return spill + strlen(spill) + 1;
}

static PyObject *get_active_trace(PyObject *module, PyObject *ignored)
{
    if (!P.session || atomic_load(&P.session->closed))
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(path_of_active_trace());
}

/* Return (path of the trace, ns since the recording's start, head and tail of this thread's ring),
 * or None. */
static PyObject *get_recording(PyObject *module, PyObject *ignored)
{
    const struct session_file *file = P.session;
    const struct tracer *t = tracer_thread;
    uint64_t ticks = file ? tracer_read_session_clock() - file->start_clock : 0;

    if (!file || !file->ns_per_tick_32)
        Py_RETURN_NONE;
    return Py_BuildValue(
        "(NKKK)", PyUnicode_DecodeFSDefault(path_of_active_trace()),
        (unsigned long long)((unsigned __int128)ticks * file->ns_per_tick_32 >> 32),
        (unsigned long long)(t && t->ring ? t->head : 0),
        (unsigned long long)(t && t->ring ? atomic_load(&t->ring->tail) : 0));
}

static PyObject *pause_recording(PyObject *module, PyObject *ignored)
{
    const enum tracer_place place = tracer_place();

    world_enter_gate(&tracer_gate);
    if (place == PLACE_SUB)
        tracer_hook_subinterpreter(false);
    else if (P.session && place != PLACE_NONE)
        tracer_set_recording(false);
    world_leave_gate(&tracer_gate);
    Py_RETURN_NONE;
}

static PyObject *resume_recording(PyObject *module, PyObject *ignored)
{
    const enum tracer_place place = tracer_place();

    world_enter_gate(&tracer_gate);
    if (place == PLACE_SUB) {
        tracer_join_interpreter();
    } else if (P.session && P.session->frames != SESSION_NONE && place != PLACE_NONE) {
        if (COMPAT_INIT_BYPASSES_HOOK)
            /* close the classes of interpreters that were made while recording was paused */
            tracer_route_all_inits_to_hook(false);
        tracer_set_recording(true);
        slot_accept_changes();
        slot_check_hook(true);
    }
    world_leave_gate(&tracer_gate);
    Py_RETURN_NONE;
}

static PyObject *find_owner_of_evaluator_slot(PyObject *module, PyObject *ignored)
{
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
    Dl_info info;

    if (current == _PyEval_EvalFrameDefault)
        return PyUnicode_FromString("-");
    if (dladdr((void *)current, &info) && info.dli_fname)
        return PyUnicode_DecodeFSDefault(info.dli_fname);
    return PyUnicode_FromString("unknown");
}

static PyObject *evaluate_unchanged(PyThreadState *ts, compat_frame *frame, int throwflag)
{
    PyObject *result;

    compat_enter_c(ts);
    result = _PyEval_EvalFrameDefault(ts, frame, throwflag);
    compat_leave_c(ts);
    return result;
}

static PyObject *measure_hook_cost(PyObject *module, PyObject *function)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    _PyFrameEvalFunction before = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    unsigned long long ns[2];

    for (int hooked = 0; hooked < 2; hooked++) {
        uint64_t began;
        PyObject *result;
        _PyInterpreterState_SetEvalFrameFunc(interpreter, hooked ? evaluate_unchanged
                                                                 : _PyEval_EvalFrameDefault);
        began = clock_monotonic_ns();
        result = PyObject_CallNoArgs(function);
        ns[hooked] = clock_monotonic_ns() - began;
        _PyInterpreterState_SetEvalFrameFunc(interpreter, before);
        if (!result)
            return NULL;
        Py_DECREF(result);
    }
    return Py_BuildValue("(KK)", ns[0], ns[1]);
}

/* The module itself is a finder: sitecustomize.py puts it into sys.meta_path, so that programs that
 * `dyntrace run` started can import the package. The program imports it as dyntrace, unless it has
 * another package of that name; the tracer imports it as _dyntrace_package. Its
 * find_spec_of_package() is called at each import, and the program must not notice the call. It is
 * written in C, so the call makes no frame. It is not a built-in function but an object of a
 * special type, because profile functions are called for built-in functions, and not for other
 * callables. */
static PyObject *find_spec_of_package(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"fullname", "path", "target", NULL};
    PyObject *name, *path, *target;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|OO:find_spec", names, &name, &path,
                                     &target))
        return NULL;
    if (PyUnicode_CompareWithASCIIString(name, "dyntrace") == 0)
        return PyObject_GetAttrString(PyType_GetModule(Py_TYPE(self)), "_package");
    if (PyUnicode_CompareWithASCIIString(name, "_dyntrace_package") == 0)
        return PyObject_GetAttrString(PyType_GetModule(Py_TYPE(self)), "_private_package");
    Py_RETURN_NONE;
}

static PyType_Slot find_spec_slots[] = {
    {Py_tp_call, (void *)find_spec_of_package},
    {Py_tp_doc, "Find the package dyntrace, by this name or by our own for it."},
    {0, NULL},
};
static PyType_Spec find_spec_type = {
    .name = "_dyntrace.find_spec",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = find_spec_slots,
};

static int add_find_spec(PyObject *module)
{
    OWNED PyObject *type = PyType_FromModuleAndSpec(module, &find_spec_type, NULL);
    OWNED PyObject *made = type ? PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;

    return made ? PyModule_AddObjectRef(module, "find_spec", made) : -1;
}

static PyMethodDef methods[] = {
    {"_start", start_recording, METH_VARARGS,
     "_start($module, session, standard_library, inject=None, capture=None, /)\n--\n\n"
     "Join the recording session in directory SESSION and install the frame hook. STANDARD_LIBRARY "
     "is the directory\n"
     "whose files `--frames user` leaves out. With INJECT, the directory of sitecustomize.py, "
     "programs that this one starts join, too.\n"
     "CAPTURE is the spec of `_dyntrace_capture`, which is loaded if the session captures.\n"
     "Returns None, or why nothing is recorded in this process: 'gone' (this user has no such "
     "session), 'over',\n"
     "'another' (of another version), 'denied' (probably of another user), 'room' (for its "
     "file), 'memory',\n"
     "'elsewhere' (only the main interpreter may join)."},
    {"_stop", stop_recording, METH_NOARGS,
     "_stop($module, /)\n--\n\nLeave the session. Another may be joined later."},
    {"_active", get_active_trace, METH_NOARGS,
     "_active($module, /)\n--\n\n"
     "Return the path of the trace that records this process, or None."},
    {"_recording", get_recording, METH_NOARGS,
     "_recording($module, /)\n--\n\nReturn (path, now, written, taken): the trace of this "
     "process; the time in it, in ns; and how many\n"
     "words this thread has written and the collector has taken for its next commit. "
     "None: not recorded yet."},
    {"pause", pause_recording, METH_NOARGS,
     "pause($module, /)\n--\n\nStop recording frames in this process until resume(); in a "
     "sub-interpreter: its "
     "own."},
    {"resume", resume_recording, METH_NOARGS,
     "resume($module, /)\n--\n\nRecord frames in this process again, if a session is open."},
    {"_owner", find_owner_of_evaluator_slot, METH_NOARGS,
     "_owner($module, /)\n--\n\nReturn the owner of the PEP 523 slot: \"-\" for CPython itself, "
     "else the file of "
     "the hook's code."},
    {"_cost", measure_hook_cost, METH_O,
     "_cost($module, function, /)\n--\n\nReturn (plain, hooked): how many ns function() takes "
     "without a hook, and "
     "with a hook that only calls CPython."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition;

/* For the shim, which needs a GIL and works only in PLACE_HOME: elsewhere each of its functions
 * raises an error that says so. */
static PyObject *raise_shim_unavailable(PyObject *module, PyObject *name)
{
    static const char *const types[] = {"CacheEntry", "DynamoFrameType", "GuardTree", "UNBOUND",
                                        "_shim"};
    bool shim = false;

    for (const PyMethodDef *method = shim_methods; method->ml_name && PyUnicode_Check(name);
         method++)
        shim |= !PyUnicode_CompareWithASCIIString(name, method->ml_name);
    for (const PyMethodDef *method = resume_methods; method->ml_name && PyUnicode_Check(name);
         method++)
        shim |= !PyUnicode_CompareWithASCIIString(name, method->ml_name);
    for (size_t i = 0; i < sizeof types / sizeof *types && PyUnicode_Check(name); i++)
        shim |= !PyUnicode_CompareWithASCIIString(name, types[i]);
    if (shim && COMPAT_FREE_THREADED)
        return PyErr_Format(PyExc_RuntimeError,
                            "dyntrace's compilers need a CPython with the GIL: of this "
                            "free-threaded one frames are recorded, nothing more");
    if (shim)
        return PyErr_Format(
            PyExc_RuntimeError,
            "dyntrace's %U is there in the main interpreter only, and not when that is initialised "
            "again: frames of this one are recorded, nothing more",
            name);
    return PyErr_Format(PyExc_AttributeError, "module '_dyntrace' has no attribute %R", name);
}

/* For interpreters and builds without a compiler: stands for _compiling() and _begin_settings() of
 * tracer/torch/bridge.c. */
static PyObject *return_none(PyObject *module, PyObject *ignored)
{
    Py_RETURN_NONE;
}

static PyMethodDef elsewhere[] = {
    {"__getattr__", raise_shim_unavailable, METH_O, NULL},
    {"_compiling", return_none, METH_NOARGS, NULL},
    {"_begin_settings", return_none, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Called when the interpreter ends and clears its modules. */
static void end_at_interpreter_end(PyObject *capsule)
{
    slot_check_last_time();
}

static int register_interpreter_end(PyObject *module)
{
    OWNED PyObject *end = PyCapsule_New(&definition, NULL, end_at_interpreter_end);

    return end ? PyModule_AddObjectRef(module, "_end", end) : -1;
}

static int add_module_contents(PyObject *module)
{
    enum tracer_place place = tracer_place();

    if (PyModule_AddStringConstant(module, "__version__", DYNTRACE_VERSION) ||
        add_find_spec(module))
        return -1;
    if (P.extra < 0 && P.interpreter) {
        PyErr_SetString(PyExc_ImportError,
                        "_dyntrace: CPython has no slot left for data of code objects");
        return -1;
    }
    if (place <= PLACE_AGAIN && register_interpreter_end(module))
        return -1;
    if (span_types_ready(module) || PyModule_AddFunctions(module, attach_methods))
        return -1;
    if (place != PLACE_HOME || COMPAT_FREE_THREADED)
        return PyModule_AddFunctions(module, elsewhere);
    return shim_types_ready(module) || torch_types_ready(module) || resume_types_ready(module) ||
                   services_ready(module)
               ? -1
               : 0;
}

/* Called when the garbage collector visits the module. */
static int traverse_module(PyObject *module, visitproc visit, void *arg)
{
    slot_compare_with_hook();
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)add_module_contents},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if COMPAT_FREE_THREADED
    /* a free-threaded CPython need not turn its GIL on: tracer/world.h */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_dyntrace",
    .m_doc = "dyntrace's frame evaluator: see the dyntrace package.",
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse_module,
};

/* Fill in tracer_hooks: first the members that the base provides, then those of the folders above
 * it. */
static void register_hooks(void)
{
    static const struct attach_calls of_attach = {join_session, end_recording};

    attach_register(&of_attach);
    tracer_hooks.record_over = tracer_handle_recording_end;
    tracer_hooks.mark_code = tracer_mark_code;
    tracer_hooks.slot_note_arrival = slot_note_arrival;
    tracer_hooks.forked = session_handle_fork_in_child;
    if (COMPAT_FREE_THREADED)
        return;
    evaluator_register();
    resume_register();
    torch_register();
}

PyMODINIT_FUNC PyInit__dyntrace(void);
PyMODINIT_FUNC PyInit__dyntrace(void)
{
    register_hooks();
    return PyModuleDef_Init(&definition);
}
