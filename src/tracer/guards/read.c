/* tracer/guards/read.c -- reads one step of a guard's source. See tracer/guards/tree.h.
 *
 * Runs in: the traced process, under the GIL. Guards on nested objects mostly read attributes, so
 * the place of an instance's attribute is cached. All other attributes are read by
 * PyObject_GetAttr. */
#include "tracer/compat/guards.h"
#include "tracer/guards/tree.h"

#include <structmember.h>

/* ---- read an attribute ---- */

/* Can attributes of an instance of TYPE be read from its dict or array? Yes, unless the class
 * defines __getattribute__. (A __getattr__ is called only for attributes that are missing.) */
static bool can_attributes_be_read_directly(PyTypeObject *type)
{
    static PyObject *name;

    if (type->tp_getattro == PyObject_GenericGetAttr ||
        type->tp_getattro == PyModule_Type.tp_getattro)
        return true;
    if (!name && !(name = PyUnicode_InternFromString("__getattribute__"))) {
        PyErr_Clear();
        return false;
    }
    return _PyType_Lookup(type, name) == _PyType_Lookup(&PyBaseObject_Type, name);
}

static void fill_attribute_cache(struct attribute_cache *cache, PyObject *object, PyObject *name)
{
    /* hold the type, because a lookup may replace the object's __class__ */
    PyTypeObject *type = (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(object));
    PyObject *descriptor;

    cache->type = type;
    cache->where = WHERE_UNKNOWN;
    cache->version = 0;
    if (!can_attributes_be_read_directly(type))
        goto done;
    descriptor = _PyType_Lookup(type, name); /* borrowed; this call also gives the type a version */
    cache->version = type->tp_version_tag;
    if (!descriptor) {
        cache->index = compat_find_inline_index(type, name);
        if (cache->index >= 0 && compat_get_inline_values(object))
            cache->where = WHERE_INLINE;
        else if (compat_get_existing_dict(object))
            cache->where = WHERE_DICT;
    } else if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
        PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
        if (member->type == T_OBJECT_EX &&
            PyType_IsSubtype(type, ((PyDescrObject *)descriptor)->d_type)) {
            cache->where = WHERE_SLOT;
            cache->index = member->offset;
        }
    }
done:
    Py_DECREF(type);
}

/* Return the attribute NAME of OBJECT from its cached place: a new reference, or NULL if it is not
 * there. */
static inline PyObject *read_cached_attribute(const struct attribute_cache *cache, PyObject *object,
                                              PyObject *name)
{
    PyObject **values, *dict, *value;

    switch (cache->where) {
    case WHERE_INLINE:
        values = compat_get_inline_values(object);
        if (values)
            return Py_XNewRef(values[cache->index]);
        /* fall through */
    case WHERE_DICT:
        dict = compat_get_existing_dict(object);
        if (!dict)
            return NULL;
        Py_INCREF(dict); /* hold the dict, because other code may replace it during the read */
        value = _PyDict_GetItem_KnownHash(dict, name, ((PyASCIIObject *)name)->hash);
        value = value && compat_is_lazy(value) ? NULL : Py_XNewRef(value);
        Py_DECREF(dict);
        return value;
    case WHERE_SLOT:
        return Py_XNewRef(*(PyObject **)((char *)object + cache->index));
    default:
        return NULL;
    }
}

/* Read the attribute NAME, an interned string, of OBJECT. Returns as guard_read_step() does. */
/* Not inlined into guard_read_step(), which mostly reads locals and so saves fewer registers. */
static __attribute__((noinline)) int read_attribute(struct attribute_cache *cache, PyObject *object,
                                                    PyObject *name, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(object);

    if (cache->type == type && cache->version && cache->version == type->tp_version_tag) {
        *value = read_cached_attribute(cache, object, name);
        if (*value)
            return 1;
        if (PyErr_Occurred())
            return -1;
        if (cache->where == WHERE_UNKNOWN)
            return compat_optional_attribute(object, name, value);
    }
    fill_attribute_cache(cache, object, name);
    return compat_optional_attribute(object, name, value);
}

/* ---- read a local variable ---- */

static bool is_local_called(PyCodeObject *code, int i, PyObject *name)
{
    return PyTuple_GET_ITEM(code->co_localsplusnames, i) == name && !compat_is_hidden(code, i);
}

/* Return the value of local number I, borrowed, or NULL. CELL: of a free variable return the cell.
 * Before the frame has started, free variables are only in the function's closure. */
static inline PyObject *get_local_value(compat_frame *frame, const PyCodeObject *code, int i,
                                        bool cell)
{
    const int free_at = code->co_nlocalsplus - code->co_nfreevars;
    PyObject *closure;

    if (i < free_at)
        return cell ? NULL : compat_get_local(frame, i);
    /* The closure may be NULL or too short: a resume function releases it at its start, and
     * extensions may set it. */
    closure = compat_get_function(frame)->func_closure;
    if (!closure || i - free_at >= PyTuple_GET_SIZE(closure))
        return NULL;
    closure = PyTuple_GET_ITEM(closure, i - free_at);
    return cell ? closure : compat_cell_content(closure);
}

/* Read the local variable NAME; CELL: the cell of the free variable NAME. *HINT is the index where
 * NAME was found last. If it is not there now, search for a variable of this name with a value,
 * from the last index to the first: in a resume function a cell is also a free variable, which has
 * its value from the beginning. */
static int read_local(compat_frame *frame, PyObject *name, Py_ssize_t *hint, bool cell,
                      PyObject **value)
{
    PyCodeObject *code = compat_get_code(frame);
    int count = code->co_nlocalsplus;
    int i = (int)*hint;

    /* the frame is that of a class body or a module */
    if (unlikely(!(code->co_flags & CO_OPTIMIZED))) {
        if (!frame->f_locals)
            return 0;
        if (PyDict_CheckExact(frame->f_locals))
            *value = Py_XNewRef(PyDict_GetItemWithError(frame->f_locals, name));
        else
            *value = PyObject_GetItem(frame->f_locals, name);
        if (*value)
            return 1;
        if (PyErr_ExceptionMatches(PyExc_KeyError))
            PyErr_Clear();
        return PyErr_Occurred() ? -1 : 0;
    }
    if (likely(i >= 0 && i < count && is_local_called(code, i, name)))
        *value = Py_XNewRef(get_local_value(frame, code, i, cell));
    for (i = count - 1; i >= 0 && !*value; i--)
        if (is_local_called(code, i, name) &&
            (*value = Py_XNewRef(get_local_value(frame, code, i, cell))))
            *hint = i;
    return *value != NULL;
}

PyObject *guard_frame_locals(compat_frame *frame)
{
    PyCodeObject *code = compat_get_code(frame);
    PyObject *locals = PyDict_New();
    int status = locals ? 0 : -1;

    /* the frame is that of a class body or a module */
    if (!status && !(code->co_flags & CO_OPTIMIZED)) {
        /* only from a dict: the keys() of another mapping would run code of the program */
        if (frame->f_locals && PyDict_CheckExact(frame->f_locals))
            status = PyDict_Update(locals, frame->f_locals);
    } else {
        for (int i = 0; !status && i < code->co_nlocalsplus; i++) {
            PyObject *value =
                compat_is_hidden(code, i) ? NULL : get_local_value(frame, code, i, false);
            if (value)
                status =
                    PyDict_SetItem(locals, PyTuple_GET_ITEM(code->co_localsplusnames, i), value);
        }
    }
    if (status)
        Py_CLEAR(locals);
    return locals;
}

/* ---- read an item ---- */

static int read_dict_item(PyObject *dict, PyObject *key, PyObject **value)
{
    *value = Py_XNewRef(PyDict_GetItemWithError(dict, key));
    return *value ? 1 : PyErr_Occurred() ? -1 : 0;
}

static int read_item(struct guard_step *step, PyObject *parent, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(parent);

    /* PyDict_GetItemWithError(), because it adds no item to a defaultdict */
    if (PyDict_Check(parent) &&
        type->tp_as_mapping->mp_subscript == PyDict_Type.tp_as_mapping->mp_subscript)
        return read_dict_item(parent, step->key, value);
    if (type == &PyTuple_Type || type == &PyList_Type) {
        Py_ssize_t size = Py_SIZE(parent);
        Py_ssize_t i = step->index;
        if (PyLong_CheckExact(step->key)) {
            if (i < -size || i >= size)
                return 0;
            *value = Py_NewRef(PySequence_Fast_GET_ITEM(parent, i < 0 ? i + size : i));
            return 1;
        }
        if (!PyIndex_Check(step->key) && !PySlice_Check(step->key))
            return 0;
    }
    if (!(type->tp_as_mapping && type->tp_as_mapping->mp_subscript) &&
        !(type->tp_as_sequence && type->tp_as_sequence->sq_item))
        return 0;
    *value = PyObject_GetItem(parent, step->key);
    if (*value)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_KeyError) && !PyErr_ExceptionMatches(PyExc_IndexError))
        return -1;
    PyErr_Clear();
    return 0;
}

/* ---- call a function or a method ---- */

static int call_and_store_result(PyObject *callable, PyObject **value)
{
    if (!PyCallable_Check(callable))
        return 0;
    *value = PyObject_CallNoArgs(callable);
    return *value ? 1 : -1;
}

static int call_method_of_step(struct guard_step *step, PyObject *parent, PyObject **value)
{
    OWNED PyObject *method = NULL;
    struct tracer_exception raised;
    int found;

    *value = PyObject_CallMethodNoArgs(parent, step->key);
    if (*value)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    /* there is an exception: did the method raise it, or is there no such method? */
    raised = tracer_put_exception_aside();
    found = compat_optional_attribute(parent, step->key, &method);
    if (found > 0 && !PyCallable_Check(method))
        found = 0;
    if (found > 0) {
        tracer_restore_exception(&raised);
        return -1;
    }
    tracer_drop_exception(&raised);
    return found;
}

/* ---- read any step ---- */

int guard_read_step(struct guard_step *step, PyObject *parent, const struct guard_values *values,
                    PyObject **value)
{
    compat_frame *frame = values->frame;
    PyObject *globals;

    *value = NULL;
    switch (step->kind) {
    case STEP_UNREAD:
        return 1;
    case STEP_CELL:
        return frame ? read_local(frame, step->key, &step->index, true, value) : 0;
    case STEP_LOCAL:
        return likely(frame != NULL) ? read_local(frame, step->key, &step->index, false, value)
                                     : read_dict_item(values->locals, step->key, value);
    case STEP_ATTRIBUTE:
        return read_attribute(&step->cache, parent, step->key, value);
    case STEP_ITEM:
        return read_item(step, parent, value);
    case STEP_METHOD:
        return call_method_of_step(step, parent, value);
    case STEP_CALL:
        return call_and_store_result(parent, value);
    case STEP_STATE:
        return call_and_store_result(step->key, value);
    case STEP_LOCALS:
        *value = values->locals ? Py_NewRef(values->locals) : guard_frame_locals(frame);
        return *value ? 1 : -1;
    case STEP_GLOBALS:
        globals = frame ? frame->f_globals : values->globals;
        if (!globals) {
            PyErr_SetString(PyExc_RuntimeError, "a guard reads G, and no frame is being checked: "
                                                "give GuardTree(..., globals=...)");
            return -1;
        }
        *value = Py_NewRef(globals);
        return 1;
    case STEP_BUILTINS:
        *value = Py_XNewRef(frame ? frame->f_builtins : PyEval_GetBuiltins());
        return *value ? 1 : -1;
    }
    return 0;
}

/* ---- tell whether a step can be read without running code of the program ---- */

/* FOUND is a class attribute, or NULL. Can it be read through an instance without running code of
 * the program? No if it is a property, or has a __get__ written in Python. */
static bool can_class_attribute_be_read_quietly(PyObject *found)
{
    PyTypeObject *type = found ? Py_TYPE(found) : NULL;

    return !type || !type->tp_descr_get ||
           (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type != &PyProperty_Type);
}

static PyObject *find_attribute_in_type(PyTypeObject *type, const char *name)
{
    OWNED PyObject *key = PyUnicode_InternFromString(name);

    return key ? _PyType_Lookup(type, key) : NULL; /* borrowed */
}

static bool can_attribute_be_read_quietly(PyObject *object, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(object);
    OWNED PyObject *there = NULL;

    if (!can_class_attribute_be_read_quietly(_PyType_Lookup(type, name)))
        return false;
    if (PyType_Check(object))
        return type->tp_getattro == PyType_Type.tp_getattro &&
               can_class_attribute_be_read_quietly(_PyType_Lookup((PyTypeObject *)object, name));
    if (!can_attributes_be_read_directly(type))
        return false;
    if (!PyModule_Check(object) && !find_attribute_in_type(type, "__getattr__"))
        return true;
    /* getattr() would call __getattr__, which is code of the program */
    there = PyObject_GenericGetAttr(object, name);
    PyErr_Clear();
    return there && !compat_is_lazy(there);
}

/* Is the method NAME of TYPE written in C? True also if TYPE has no such method. */
static bool is_method_written_in_c(PyTypeObject *type, const char *name)
{
    PyObject *found = find_attribute_in_type(type, name);

    return !found || (!(Py_TYPE(found)->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
                      !PyFunction_Check(found) && !Py_IS_TYPE(found, &PyProperty_Type));
}

bool guard_step_is_quiet(const struct guard_step *step, PyObject *parent)
{
    PyObject *method;

    switch (step->kind) {
    case STEP_ATTRIBUTE:
        return can_attribute_be_read_quietly(parent, step->key);
    case STEP_ITEM:
        return is_method_written_in_c(Py_TYPE(parent), "__getitem__");
    case STEP_METHOD:
        method = _PyType_Lookup(Py_TYPE(parent), step->key);
        return method && Py_IS_TYPE(method, &PyMethodDescr_Type) &&
               can_attributes_be_read_directly(Py_TYPE(parent));
    case STEP_CALL:
        return PyCFunction_Check(parent) || PyWeakref_CheckRefExact(parent);
    default:
        return true;
    }
}

PyObject *guard_is_quiet(PyObject *ignored, PyObject *args)
{
    PyObject *object, *name;

    return PyArg_ParseTuple(args, "OU:_is_quiet", &object, &name)
               ? PyBool_FromLong(can_attribute_be_read_quietly(object, name))
               : NULL;
}
