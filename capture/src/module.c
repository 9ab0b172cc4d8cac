/* capture/src/module.c -- the extension module `_dyntrace_capture`.
 *
 * The module is loaded for dyntrace.compile (dyntrace._capture_native) and by `run --capture`
 * (src/tracer/module.c). At first its only function is _attach(), which takes the capsule of the
 * shim and adds the other functions: capture needs the shim, which exists only in the main
 * interpreter. */
#include "capture.h"

PyTypeObject *capture_type;

/* ---- the type of callbacks ---- */

static PyTypeObject *make_callback_type(void)
{
    static PyStructSequence_Field fields[] = {
        [CAPTURE_FINISH] = {"finish", "A function that takes the record of each capture."},
        [CAPTURE_BACKEND] = {"backend", "The backend. A cache entry belongs to one backend."},
        [CAPTURE_DYNAMIC] = {"dynamic", "The argument `dynamic` of dyntrace.compile."},
        [CAPTURE_FULLGRAPH] = {"fullgraph", "The argument `fullgraph` of dyntrace.compile."},
        [CAPTURE_EVERY] =
            {"every",
             "True: capture only the user's own functions (run --capture). None: capture all "
             "functions, even without arrays (capture/tests/watched.py)."},
        {NULL, NULL}};
    static PyStructSequence_Desc is = {
        "dyntrace.Capture", "A callback under which calls are captured.", fields, CAPTURE_PARTS};

    return PyStructSequence_NewType(&is);
}

/* ---- functions of the extension ---- */

static PyObject *register_array(PyObject *module, PyObject *type)
{
    return register_array_type(type) ? NULL : Py_NewRef(Py_None);
}

static PyObject *get_sys_modules(PyObject *module, PyObject *ignored)
{
    /* at interpreter exit sys.modules may be gone */
    return compat_is_finalizing() ? PyDict_New() : Py_NewRef(PyImport_GetModuleDict());
}

/* Call finish() of dyntrace.capture for `run --capture`. Imports the module when the first capture
 * ends. */
static PyObject *import_and_call_finish(PyObject *module, PyObject *record)
{
    OWNED PyObject *capture = PyImport_ImportModule("dyntrace.capture");

    if (!capture)
        return NULL;
    return PyObject_CallMethod(capture, "finish", "sOOO", "eager", Py_None, Py_False, record);
}

static PyObject *begin_capture_of_all_functions(PyObject *module, PyObject *ignored)
{
    OWNED PyObject *finish = PyObject_GetAttrString(module, "_finish_late");
    OWNED PyObject *callback = NULL;

    if (finish)
        callback = PyObject_CallMethod(module, "Capture", "((OsOOO))", finish, "eager", Py_None,
                                       Py_False, Py_True);
    if (!callback || shim->callback_for_all(callback))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef capture_methods[] = {
    {"_modules", get_sys_modules, METH_NOARGS, "_modules($module, /)\n--\n\nReturn sys.modules."},
    {"_register_array", register_array, METH_O,
     "_register_array($module, type, /)\n--\n\nOperations on instances of TYPE go into graphs."},
    {"_finish_late", import_and_call_finish, METH_O,
     "_finish_late($module, record, /)\n--\n\nCall dyntrace.capture.finish() for `dyntrace "
     "run --capture`."},
    {"_begin_for_all", begin_capture_of_all_functions, METH_NOARGS,
     "_begin_for_all($module, /)\n--\n\nCapture the user's functions on every thread, for "
     "`dyntrace run --capture`."},
    {NULL, NULL, 0, NULL},
};

/* ---- the module ---- */

/* Make the objects that all copies of this module in the process share. Returns -1 with an
 * exception. */
static int make_shared_objects(PyObject *module)
{
    if (PyType_Ready(&plan_type))
        return -1;
    capture_builtins = copy_cpython_builtins();
    capture_type = make_callback_type();
    capture_modules = PyObject_GetAttrString(module, "_modules");
    return capture_builtins && capture_type && capture_modules ? 0 : -1;
}

/* Add types and functions to MODULE. Returns -1 with an exception. */
static int add_module_members(PyObject *module)
{
    if (PyModule_AddFunctions(module, capture_methods))
        return -1;
    if (PyModule_AddFunctions(module, graph_break_methods))
        return -1;
    if (!capture_modules && make_shared_objects(module))
        return -1;
    if (PyModule_AddType(module, capture_type))
        return -1;
    return PyModule_AddObject(module, "_globals", plan_new("globals"));
}

static PyObject *attach_to_shim(PyObject *module, PyObject *capsule)
{
    struct watcher watcher = {
        .backend = CAPTURE_BACKEND,
        .refuses = capture_refuses,
        .watch = capture_call,
        .awaits = capture_expects_frame,
        .step = capture_step,
        .go_on = capture_go_on,
    };
    const struct shim_services *services = PyCapsule_GetPointer(capsule, SHIM_SERVICES);

    if (!services)
        return NULL;
    if (services->size != sizeof *services)
        return PyErr_Format(PyExc_ImportError, "_dyntrace and _dyntrace_capture are of different "
                                               "builds of dyntrace: reinstall it");
    if (add_module_members(module))
        return NULL;
    shim = services;
    watcher.type = capture_type;
    shim->attach(&watcher);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"_attach", attach_to_shim, METH_O,
     "_attach($module, capsule, /)\n--\n\nAttach capture to the shim in CAPSULE."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_dyntrace_capture",
    .m_doc = "dyntrace.compile: see the dyntrace package.",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__dyntrace_capture(void);
PyMODINIT_FUNC PyInit__dyntrace_capture(void)
{
    return PyModuleDef_Init(&definition);
}
