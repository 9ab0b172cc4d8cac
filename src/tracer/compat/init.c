/* tracer/compat/init.c -- calls of __init__ that CPython 3.13 hides from the hook.
 *
 * A specialised call C() of a class runs C.__init__ without calling the hook. The specialiser
 * refuses a class whose tp_alloc is not the generic one. So each class whose calls could be
 * specialised gets our equivalent tp_alloc before it can be called, which prevents specialised
 * calls:
 *
 *     a class that exists already    tracer_route_all_inits_to_hook() visits the subclasses of
 *                                    object
 *     a class that is made later     PyType_Ready() adds it to the dict of subclasses of each base,
 *                                    before __set_name__ and __init_subclass__ see the class; our
 *                                    dict watcher is called then. Each class gets that dict
 *                                    before its first subclass, so that there is one to watch
 *
 * If a class's __init__ is not recorded (--frames user), the first call of that __init__ that the
 * hook sees allows specialised calls of the class again. A type watcher prevents them again when
 * the class or a base changes.
 *
 * A call that is not specialised is slow in CPython: it packs the arguments into a tuple. So these
 * classes are called through our construct(), which makes no tuple and takes about as long as a
 * specialised call plus the hook would. */
#include "tracer/tracer.h"

#if COMPAT_INIT_BYPASSES_HOOK

enum { VISITED_MOST = 1 << 20 }; /* classes */

static PyObject *word_init, *no_arguments; /* the str "__init__" and an empty tuple; never freed */
/* CPython's tp_init of classes with a Python __init__ */
static initproc init_by_name;
/* the program uses set_eval_frame(): specialised calls are not allowed again from now on */
static bool for_shim;

static PyObject *allocate_instance(PyTypeObject *type, Py_ssize_t items)
{
    return PyType_GenericAlloc(type, items);
}

/* Construct an instance of a class with a Python __init__, as type.__call__() does. `init`
 * cannot change between its lookup and its call, because no code of the program runs there: 3.13
 * collects garbage only between instructions. */
HOT static PyObject *construct(PyObject *callable, PyObject *const *args, size_t given,
                               PyObject *names)
{
    PyTypeObject *type = (PyTypeObject *)callable;
    OWNED PyObject *init = Py_XNewRef(_PyType_Lookup(type, word_init));
    const bool is_usual = init && PyFunction_Check(init) && type->tp_init == init_by_name &&
                          type->tp_new == PyBaseObject_Type.tp_new &&
                          !(type->tp_flags & Py_TPFLAGS_IS_ABSTRACT);
    PyObject **all;
    PyObject *self;
    PyObject *before;
    PyObject *result;

    if (!is_usual || !(given & PY_VECTORCALL_ARGUMENTS_OFFSET))
        return _PyObject_MakeTpCall(PyThreadState_Get(), callable, args, PyVectorcall_NARGS(given),
                                    names);
    self = type->tp_new(type, no_arguments, NULL);
    if (!self)
        return NULL;
    /* the caller lets us overwrite args[-1] (PY_VECTORCALL_ARGUMENTS_OFFSET) */
    all = (PyObject **)args - 1;
    before = *all;
    *all = self;
    result = PyObject_Vectorcall(init, all, (size_t)PyVectorcall_NARGS(given) + 1, names);
    *all = before;
    if (result && result != Py_None)
        PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'",
                     Py_TYPE(result)->tp_name);
    if (result != Py_None)
        Py_CLEAR(self);
    Py_XDECREF(result);
    return self;
}

/* ---- prevent and allow specialised calls of one class ---- */

/* Return the Python function that is TYPE's __init__, borrowed; or NULL. */
static PyObject *find_python_init(PyTypeObject *type)
{
    PyObject *init = _PyType_Lookup(type, word_init);

    return init && PyFunction_Check(init) ? init : NULL;
}

static void prevent_specialised_calls(PyTypeObject *type)
{
    bool specialised;

    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return;
    if (!type->tp_vectorcall && find_python_init(type))
        type->tp_vectorcall = construct;
    if (type->tp_alloc != PyType_GenericAlloc)
        return;
    type->tp_alloc = allocate_instance;
    specialised = ((PyHeapTypeObject *)type)->_spec_cache.init != NULL;
    /* give the class a new version, which makes specialised calls of it fail their check */
    if (specialised)
        PyType_Modified(type);
}

/* Undo prevent_specialised_calls(), so that calls of TYPE can be specialised again. */
static void allow_specialised_calls(PyTypeObject *type)
{
    if (type->tp_alloc == allocate_instance)
        type->tp_alloc = PyType_GenericAlloc;
    if (type->tp_vectorcall == construct)
        type->tp_vectorcall = NULL;
}

/* ---- watch for changed and for new classes ---- */

/* Prevent specialised calls of TYPE, a class that has changed. Replacing tp_alloc is enough here:
 * CPython has already given the class a new version, so old specialised calls of it fail their
 * check. */
static int prevent_specialised_calls_again(PyTypeObject *type)
{
    if (type->tp_alloc == PyType_GenericAlloc)
        type->tp_alloc = allocate_instance;
    return 0;
}

static int cover_new_subclass(PyDict_WatchEvent event, PyObject *dict, PyObject *key,
                              PyObject *value);

/* Return the id of our dict watcher in the running interpreter; -1 if it has none. */
static int find_dict_watcher(void)
{
    PyInterpreterState *here = PyInterpreterState_Get();
    int id = DICT_MAX_WATCHERS - 1;

    while (id >= 0 && here->dict_state.watchers[id] != cover_new_subclass)
        id--;
    return id;
}

static int find_type_watcher(void)
{
    PyInterpreterState *here = PyInterpreterState_Get();
    int id = TYPE_MAX_WATCHERS - 1;

    while (id >= 0 && here->type_watchers[id] != prevent_specialised_calls_again)
        id--;
    return id;
}

/* Register our dict watcher under the last free id, because a program may expect to get the first
 * ids (CPython's own tests do). There are only eight ids for type watchers, so a type watcher is
 * registered only when it is needed. */
static void register_dict_watcher(void)
{
    PyInterpreterState *here = PyInterpreterState_Get();

    for (int id = DICT_MAX_WATCHERS - 1; id > 1 && find_dict_watcher() < 0; id--)
        if (!here->dict_state.watchers[id])
            here->dict_state.watchers[id] = cover_new_subclass;
}

static void register_type_watcher(void)
{
    PyInterpreterState *here = PyInterpreterState_Get();

    for (int id = TYPE_MAX_WATCHERS - 1; id >= 0 && find_type_watcher() < 0; id--)
        if (!here->type_watchers[id])
            here->type_watchers[id] = prevent_specialised_calls_again;
}

static void release_watchers(void)
{
    PyInterpreterState *here = PyInterpreterState_Get();
    int dict = find_dict_watcher();
    int type = find_type_watcher();

    if (dict >= 0)
        here->dict_state.watchers[dict] = NULL;
    if (type >= 0)
        here->type_watchers[type] = NULL;
}

/* Return a pointer to the dict of TYPE's subclasses, which for a builtin type is in the interpreter
 * state; NULL if it is not found. */
static PyObject **find_subclasses(PyTypeObject *type)
{
    PyInterpreterState *here = PyInterpreterState_Get();
    size_t index = (size_t)type->tp_subclasses - 1;
    managed_static_type_state *state;

    if (!(type->tp_flags & _Py_TPFLAGS_STATIC_BUILTIN))
        return (PyObject **)&type->tp_subclasses;
    if (index >= _Py_MAX_MANAGED_STATIC_BUILTIN_TYPES)
        return NULL;
    state = &here->types.builtins.initialized[index];
    return state->type == type ? &state->tp_subclasses : NULL;
}

/* Return a weak reference to an object that is dead. CPython skips it in a dict of subclasses. We
 * keep it in the dict of object's subclasses. Borrowed; NULL with an exception on failure. */
static PyObject *get_dead_weak_reference(PyObject *zero)
{
    PyObject **objects = find_subclasses(&PyBaseObject_Type);
    PyObject *kept = objects && *objects ? PyDict_GetItemWithError(*objects, zero) : NULL;
    OWNED PyObject *mortal = NULL, *made = NULL;

    if (kept || !objects || !*objects || !(mortal = PySet_New(NULL)))
        return kept;
    made = PyWeakref_NewRef(mortal, NULL);
    return made && !PyDict_SetItem(*objects, zero, made) ? made : NULL;
}

/* Make CPython call cover_new_subclass() for each new subclass of TYPE. CPython drops a dict of
 * subclasses when its last entry goes, so we add an entry that stays. */
static void watch_subclasses(PyTypeObject *type)
{
    PyObject **dict = find_subclasses(type);
    PyObject *dead;
    OWNED PyObject *zero = PyLong_FromLong(0); /* the key of our entry: no type has the address 0 */
    int id = find_dict_watcher();
    int known;

    if (!dict || id < 0 || !zero)
        return;
    dead = get_dead_weak_reference(zero);
    if (dead && !*dict)
        *dict = PyDict_New();
    known = dead && *dict ? PyDict_Contains(*dict, zero) : -1;
    if (known == 0)
        known = PyDict_SetItem(*dict, zero, dead) ? -1 : 1;
    if (known > 0)
        PyDict_Watch(id, *dict);
    PyErr_Clear();
}

/* Could CPython specialise calls of TYPE, or of a subclass? It does so only for plain objects with
 * inline attribute values. */
static bool can_calls_be_specialised(PyTypeObject *type)
{
    return type->tp_basicsize == sizeof(PyObject) && !type->tp_itemsize;
}

/* Close TYPE, and watch for new subclasses. Returns false if neither TYPE nor a subclass can ever
 * need this. */
static bool cover_type_and_subclasses(PyTypeObject *type)
{
    if (!can_calls_be_specialised(type))
        return false;
    watch_subclasses(type);
    prevent_specialised_calls(type);
    return true;
}

/* CPython calls this when a type was added to DICT, a dict of subclasses. KEY is the address of the
 * type, which may not be ready yet. */
static int cover_new_subclass(PyDict_WatchEvent event, PyObject *dict, PyObject *key,
                              PyObject *value)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    const bool added = event == PyDict_EVENT_ADDED || event == PyDict_EVENT_MODIFIED;
    PyTypeObject *type = added && key && PyLong_CheckExact(key) ? PyLong_AsVoidPtr(key) : NULL;

    if (type)
        cover_type_and_subclasses(type);
    PyErr_Clear();
    return 0;
}

/* ---- visit all classes of an interpreter ---- */

/* Append to TYPES those SUBCLASSES whose addresses are not in the set SEEN, and add them to SEEN.
 * Returns -1 with an exception. */
static int add_unseen_subclasses(PyObject *types, PyObject *seen, PyObject *subclasses)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(subclasses); i++) {
        PyObject *type = PyList_GET_ITEM(subclasses, i);
        OWNED PyObject *address = PyLong_FromVoidPtr(type);
        int known = address ? PySet_Contains(seen, address) : -1;
        if (known < 0)
            return -1;
        if (known)
            continue;
        if (PySet_Add(seen, address))
            return -1;
        if (PyList_Append(types, type))
            return -1;
    }
    return 0;
}

/* Call ACT for `object`, and for the direct subclasses of each class for which ACT returned
 * true. */
static void visit_types(bool (*act)(PyTypeObject *type))
{
    OWNED PyObject *types = PyList_New(0), *seen = PySet_New(NULL);
    bool going = types && seen && !PyList_Append(types, (PyObject *)&PyBaseObject_Type);

    for (Py_ssize_t i = 0; going && i < PyList_GET_SIZE(types) && i < VISITED_MOST; i++) {
        /* borrowed: the list only grows, so it keeps the type alive */
        PyObject *type = PyList_GET_ITEM(types, i);
        PyObject *below;
        if (!act((PyTypeObject *)type))
            continue;
        below = tracer_call_method((PyObject *)&PyType_Type, "__subclasses__", type, NULL, NULL);
        going = below && !add_unseen_subclasses(types, seen, below);
        Py_XDECREF(below);
    }
    PyErr_Clear();
}

static bool allow_specialised_calls_again(PyTypeObject *type)
{
    allow_specialised_calls(type);
    return true;
}

/* Find init_by_name, in importlib's ModuleSpec, a class with a Python __init__. */
static void find_slot_of_python_init(void)
{
    /* borrowed */
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_frozen_importlib");
    OWNED PyObject *type = module ? tracer_get_attribute(module, "ModuleSpec") : NULL;

    word_init = PyUnicode_InternFromString("__init__");
    no_arguments = PyTuple_New(0);
    if (type && PyType_Check(type) && word_init)
        init_by_name = ((PyTypeObject *)type)->tp_init;
    PyErr_Clear();
}

void tracer_route_all_inits_to_hook(bool shim)
{
    if (!init_by_name)
        find_slot_of_python_init();
    if (!init_by_name || (find_dict_watcher() >= 0 && (for_shim || !shim)))
        return;
    for_shim |= shim;
    register_dict_watcher();
    if (find_dict_watcher() < 0)
        tracer_write_loss("__init__: there is no dict watcher left: calls of classes that are made "
                          "from here on may be missing");
    visit_types(cover_type_and_subclasses);
}

void tracer_undo_routing_of_inits(void)
{
    if (for_shim || find_dict_watcher() < 0)
        return;
    release_watchers();
    visit_types(allow_specialised_calls_again);
}

/* Is CODE left out of the recording? Fast when CODE has a mark. */
static bool is_code_left_out(PyCodeObject *code)
{
    uintptr_t mark = tracer_mark_in_slot(compat_get_extra(code, tracer_process.extra));

    return mark & CODE_SEEN ? mark & CODE_SKIP : !tracer_is_code_recorded(code);
}

/* Open TYPE again if its __init__ is not recorded. The hook has just seen a call of this __init__,
 * which TYPE may have inherited. */
static void allow_specialised_calls_if_left_out(PyTypeObject *type)
{
    PyObject *init = find_python_init(type);
    int id;

    if (for_shim || tracer_process.active_threads)
        return;
    if (!init || !is_code_left_out((PyCodeObject *)PyFunction_GET_CODE(init)))
        return;
    register_type_watcher();
    id = find_type_watcher();
    if (id < 0)
        return;
    if (PyType_Watch(id, (PyObject *)type))
        PyErr_Clear();
    /* only if TYPE has a version tag, because CPython reports no change of a type without one */
    else if (type->tp_version_tag)
        allow_specialised_calls(type);
}

void tracer_route_init_to_hook(PyObject *self, bool wanted)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();

    if (!init_by_name || !self)
        return;
    if (wanted)
        prevent_specialised_calls(Py_TYPE(self));
    else
        allow_specialised_calls_if_left_out(Py_TYPE(self));
}

#endif
