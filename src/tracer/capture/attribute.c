/* tracer/capture/attribute.c -- attributes of arrays, objects, modules, classes, as they are read, and imports. See capture.h. */
#include "tracer/capture/capture.h"

static bool is_one_of(PyObject *name, const char *const *names)
{
    for (; *names; names++)
        if (!PyUnicode_CompareWithASCIIString(name, *names))
            return true;
    return false;
}

enum ended push_attribute(struct watched *w, bool method, PyObject *value, struct shadow *shadow)
{
    stack_drop(w, 1);
    if (method && !COMPAT_CALLABLE_FIRST)
        stack_push(w, NULL, NULL);
    stack_push(w, value, shadow);
    if (method && COMPAT_CALLABLE_FIRST)
        stack_push(w, NULL, NULL);
    return ENDED_NOT;
}

struct shadow *method_of(struct capture *c, struct shadow *owner, PyObject *name, PyObject *function, struct shadow *source, struct shadow *self)
{
    struct shadow *made = shadow_new(c, SHADOW_METHOD, 2);

    if (made) {
        made->parent = owner;
        made->key = capture_keep(c, name);
        made->value = function ? capture_keep(c, function) : NULL;
        made->items[0] = source;
        made->items[1] = self;
    }
    return made;
}

/* Of an array, or of what an operation gave. */
static enum ended array_attribute(struct capture *c, struct watched *w, PyObject *name, bool method)
{
    static const char *const facts[] = {"shape", "size", "ndim", "dtype", "device", "itemsize", "nbytes", "strides", "requires_grad",
                                        "is_cuda", "layout", "is_sparse", "is_quantized", "is_meta", NULL};
    PyObject *owner = stack_value(w, 0), *descriptor = _PyType_Lookup(Py_TYPE(owner), name), *value;
    struct shadow *of = stack_shadow(w, 0), *shadow;
    struct operands operands;
    struct call call;

    if (!of)
        return break_at(c, "value", "an attribute of a %.200s that is not known", Py_TYPE(owner)->tp_name);
    if (!descriptor) {
        value = value_is_foreign(owner) ? NULL : PyObject_GetAttr(owner, name);
        if (!value && PyErr_Occurred())
            return ENDED_RAISED;
        Py_XDECREF(value);
        return break_at(c, "attribute", "a %.100s has no attribute %.100s in its class", Py_TYPE(owner)->tp_name, PyUnicode_AsUTF8(name));
    }
    if (PyFunction_Check(descriptor) || Py_IS_TYPE(descriptor, &PyMethodDescr_Type)) {
        value = PyObject_GetAttr(owner, name);
        if (!value)
            return ENDED_RAISED;
        shadow = method_of(c, of, name, NULL, NULL, NULL);
        return push_attribute(w, method, value, shadow);
    }
    if (is_one_of(name, facts)) {
        if (!is_fixed(c, owner, of) || !value_type_known(c, owner, of))
            return break_at(c, "data", "%.100s of a result, which may depend on its data", PyUnicode_AsUTF8(name));
        value = PyObject_GetAttr(owner, name);
        if (!value)
            return ENDED_RAISED;
        if (!PyUnicode_CompareWithASCIIString(name, "shape") && (shadow = varying_shape(c, owner, of)))
            return push_attribute(w, method, value, shadow);
        c->shapes_read |= !is_one_of(name, (const char *const[]){"dtype", "device", "ndim", "requires_grad", "is_cuda", NULL});
        shadow = shadow_const(c, value);
        return push_attribute(w, method, value, shadow);
    }
    if (method)
        return break_at(c, "attribute", "a call of the attribute %.100s of an array", PyUnicode_AsUTF8(name));
    operands = (struct operands){{owner, name}, {of, shadow_const(c, name)}};
    call = operator_call("getattr", 1, 2, &operands);
    return operate_graph(c, w, "getattr", &call, is_one_of(name, (const char *const[]){"T", "mT", "real", "imag", "data", "H", "mH", NULL}));
}

enum found find_attribute(PyObject *owner, PyObject *name, PyObject **value)
{
    static PyObject *own_getattribute;
    PyTypeObject *type = Py_TYPE(owner);
    PyObject *descriptor = Py_XNewRef(_PyType_Lookup(type, name)), **values;
    OWNED PyObject *dict = NULL;
    enum found found = FOUND_NOT;

    if (!own_getattribute)
        own_getattribute = PyUnicode_InternFromString("__getattribute__");
    *value = NULL;
    if (type->tp_getattro != PyObject_GenericGetAttr && type->tp_getattro != PyModule_Type.tp_getattro &&
        _PyType_Lookup(type, own_getattribute) != _PyType_Lookup(&PyBaseObject_Type, own_getattribute))
        goto done;
    if (descriptor && Py_TYPE(descriptor)->tp_descr_set) {
        if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type) && (*value = PyObject_GenericGetAttr(owner, name)))
            found = FOUND_OWN;
        PyErr_Clear();
        goto done;
    }
    values = compat_inline_values(owner);
    if (values && PyUnicode_CHECK_INTERNED(name)) { /* its dict is not made: the program would see it */
        const Py_ssize_t at = compat_inline_index(type, name);
        *value = at >= 0 ? Py_XNewRef(values[at]) : NULL;
    } else {
        dict = values || (type->tp_dictoffset < 0 && !(type->tp_flags & Py_TPFLAGS_MANAGED_DICT))
                   ? PyObject_GenericGetDict(owner, NULL) : Py_XNewRef(compat_made_dict(owner));
        *value = dict && PyDict_CheckExact(dict) ? Py_XNewRef(PyDict_GetItemWithError(dict, name)) : NULL;
    }
    if (*value)
        found = FOUND_OWN;
    PyErr_Clear();
    if (found || !descriptor)
        goto done;
    if (PyFunction_Check(descriptor)) {
        *value = Py_NewRef(descriptor);
        found = FOUND_METHOD;
    } else if (!Py_TYPE(descriptor)->tp_descr_get || Py_IS_TYPE(descriptor, &PyStaticMethod_Type)) {
        *value = PyObject_GenericGetAttr(owner, name);
        found = *value ? FOUND_CLASS : FOUND_NOT;
        PyErr_Clear();
    }
done:
    Py_XDECREF(descriptor);
    return found;
}

/* torch.nn.Module keeps parameters, buffers and modules in dicts of their own, which its __getattr__ looks through. */
static struct shadow *module_attribute(struct capture *c, PyObject *owner, struct shadow *of, PyObject *name, PyObject **value)
{
    static const char *const dicts[] = {"_parameters", "_buffers", "_modules"};
    static PyObject *hook;
    PyObject *function = hook || (hook = PyUnicode_InternFromString("__getattr__")) ? _PyType_Lookup(Py_TYPE(owner), hook) : NULL;
    PyObject *module = function && PyFunction_Check(function) ? ((PyFunctionObject *)function)->func_module : NULL;

    if (!module || !PyUnicode_Check(module) || PyUnicode_CompareWithASCIIString(module, "torch.nn.modules.module"))
        return NULL;
    for (int i = 0; i < 3; i++) {
        OWNED PyObject *word = PyUnicode_InternFromString(dicts[i]), *dict = NULL;
        if (!word || find_attribute(owner, word, &dict) != FOUND_OWN || !PyDict_CheckExact(dict))
            continue;
        if ((*value = Py_XNewRef(PyDict_GetItemWithError(dict, name)))) {
            struct shadow *in = source_read(c, of, '.', word, dict);
            return in ? source_read(c, in, '[', name, *value) : NULL;
        }
    }
    return NULL;
}

/* BOUND, attribute NAME of the class of OF. */
static struct shadow *class_method(struct capture *c, struct shadow *of, PyObject *name, PyObject *bound)
{
    PyObject *function = PyMethod_GET_FUNCTION(bound);
    struct shadow *source = source_read(c, of, '.', name, NULL);

    source = source ? source_attribute(c, source, "__func__", function) : NULL;
    return source && value_known(c, function, source) ? method_of(c, of, name, function, source, of) : NULL;
}

bool lacks_attribute(struct capture *c, PyObject *owner, struct shadow *of, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(owner);
    PyObject *value = NULL;

    if (!of || type->tp_getattro != PyObject_GenericGetAttr || _PyType_Lookup(type, name) || value_is_array(owner) || c->failed)
        return false;
    if (of->kind == SHADOW_OBJECT)
        return !object_has(of, name) && class_source(c, owner, of) && !guard_on(c, of->parent, "NO_HASATTR", name);
    if (of->kind != SHADOW_SOURCE || !of->key || !value_type_known(c, owner, of) || source_changed(of, '.', name) || find_attribute(owner, name, &value))
        return Py_XDECREF(value), false;
    return !guard_on(c, of, "NO_HASATTR", name);
}

static enum ended object_attribute(struct capture *c, struct watched *w, PyObject *name, bool method)
{
    PyObject *owner = stack_value(w, 0), *value = NULL, *function;
    struct shadow *of = stack_shadow(w, 0), *shadow = NULL, *source;
    PyObject *descriptor = _PyType_Lookup(Py_TYPE(owner), name);
    enum found found = of && (of->kind == SHADOW_OBJECT || of->kind == SHADOW_SOURCE) && value_type_known(c, owner, of) ? find_attribute(owner, name, &value) : FOUND_NOT;

    if ((found == FOUND_CLASS || found == FOUND_METHOD || (of && of->kind == SHADOW_SUPER)) && class_changed(c, NULL, name)) {
        Py_XDECREF(value);
        return break_at(c, "attribute", "attribute %.100s of an object, which has been set in a class", PyUnicode_AsUTF8(name));
    }
    if (of && of->kind == SHADOW_SUPER) {
        shadow = super_method(c, of->value, of->node, of, name);
        value = shadow ? PyObject_GetAttr(owner, name) : NULL;
    } else if (descriptor && Py_IS_TYPE(descriptor, &PyClassMethod_Type) && !found && (source = class_source(c, owner, of))) {
        value = PyObject_GetAttr(owner, name);
        shadow = value && PyMethod_Check(value) ? class_method(c, source, name, value) : NULL;
    } else if (found == FOUND_METHOD) {
        function = value;
        source = of->kind == SHADOW_OBJECT ? source_read(c, of->parent, '.', name, function) : source_read(c, of, '.', name, NULL);
        if (source && of->kind != SHADOW_OBJECT)
            source = source_attribute(c, source, "__func__", function);
        shadow = source && value_known(c, function, source) ? method_of(c, of, name, function, source, of) : NULL;
        value = shadow ? PyMethod_New(function, owner) : NULL;
        Py_DECREF(function);
    } else if (found && of->kind == SHADOW_OBJECT) {
        shadow = found == FOUND_OWN ? object_has(of, name) : source_read(c, of->parent, '.', name, value);
    } else if (found) {
        shadow = source_read(c, of, '.', name, value);
    } else if (descriptor && Py_IS_TYPE(descriptor, &PyProperty_Type) && !method) {
        return call_property(c, w, name, descriptor, false);
    } else if (of && of->kind == SHADOW_SOURCE && !c->failed) {
        shadow = module_attribute(c, owner, of, name, &value);
    }
    if (shadow && value)
        return push_attribute(w, method, value, shadow);
    Py_XDECREF(value);
    PyErr_Clear();
    if (lacks_attribute(c, owner, of, name) && !(value = PyObject_GetAttr(owner, name)))
        return ENDED_RAISED;
    return break_at(c, "attribute", "attribute %.100s of a %.100s, which may run code of the program's", PyUnicode_AsUTF8(name),
                    Py_TYPE(owner)->tp_name);
}

enum ended read_attribute(struct capture *c, struct watched *w, PyObject *name, bool method)
{
    PyObject *owner = stack_value(w, 0), *value;
    struct shadow *of = stack_shadow(w, 0), *shadow;

    if (!PyUnicode_AsUTF8(name)) {
        PyErr_Clear();
        return break_at(c, "attribute", "an attribute whose name is no UTF-8");
    }
    if (is_graph(owner, of))
        return array_attribute(c, w, name, method);
    if (of && !method && (value_is_simple(owner) || (!PyUnicode_CompareWithASCIIString(name, "__name__") && (Py_IS_TYPE(owner, &PyType_Type) || PyFunction_Check(owner))))) {
        /* of what nobody can change, or what its guard says */
        const bool named = !value_is_simple(owner), built_in = named && PyType_Check(owner) && !(((PyTypeObject *)owner)->tp_flags & Py_TPFLAGS_HEAPTYPE);
        value = named || value_known(c, owner, of) ? PyObject_GetAttr(owner, name) : NULL;
        PyErr_Clear();
        shadow = !value || !value_is_simple(value) ? NULL : of->kind == SHADOW_SOURCE && named ? source_read(c, of, '.', name, value)
                 : !named || built_in || of->kind == SHADOW_FUNCTION ? shadow_const(c, value) : NULL;
        if (shadow)
            return push_attribute(w, method, value, shadow);
        Py_XDECREF(value);
    }
    if (of && PyType_Check(owner) && value_known(c, owner, of)) { /* what is in C there cannot be changed */
        PyObject *descriptor = _PyType_Lookup((PyTypeObject *)owner, name);
        if (descriptor && (Py_IS_TYPE(descriptor, &PyMethodDescr_Type) || Py_IS_TYPE(descriptor, &PyClassMethodDescr_Type)) &&
            (is_array_package(PyDescr_TYPE(descriptor)->tp_name) || !(((PyTypeObject *)owner)->tp_flags & Py_TPFLAGS_HEAPTYPE)) &&
            !_PyType_Lookup(Py_TYPE(owner), name) && (value = PyObject_GetAttr(owner, name)))
            return push_attribute(w, method, value, shadow_const(c, value));
        PyErr_Clear();
    }
    if (of && PyModule_CheckExact(owner)) {
        value = PyDict_GetItemWithError(PyModule_GetDict(owner), name);
        PyErr_Clear();
        shadow = value && of->kind == SHADOW_SOURCE ? source_read(c, of, '.', name, value) : NULL;
        if (!shadow)
            return break_at(c, "attribute", "attribute %.100s of a module, which it has not", PyUnicode_AsUTF8(name));
        return push_attribute(w, method, Py_NewRef(value), shadow);
    }
    if (of && PyType_Check(owner) && Py_IS_TYPE(owner, &PyType_Type) && of->kind == SHADOW_SOURCE) {
        if (!PyUnicode_CompareWithASCIIString(name, "__mro__") && (shadow = source_read(c, of, '.', name, ((PyTypeObject *)owner)->tp_mro)))
            return push_attribute(w, method, Py_NewRef(((PyTypeObject *)owner)->tp_mro), shadow);
        if (class_changed(c, of, name))
            return break_at(c, "attribute", "attribute %.100s of a class, which has been set by another name", PyUnicode_AsUTF8(name));
        value = _PyType_Lookup((PyTypeObject *)owner, name);
        if (value && (!Py_TYPE(value)->tp_descr_get || PyFunction_Check(value) || Py_IS_TYPE(value, &PyStaticMethod_Type) ||
                      Py_IS_TYPE(value, &PyMethodDescr_Type)) && (value = PyObject_GetAttr(owner, name))) {
            shadow = source_read(c, of, '.', name, value);
            if (shadow)
                return push_attribute(w, method, value, shadow);
            Py_DECREF(value);
        }
        value = _PyType_Lookup((PyTypeObject *)owner, name);
        value = value && Py_IS_TYPE(value, &PyClassMethod_Type) ? PyObject_GetAttr(owner, name) : NULL;
        if (value && PyMethod_Check(value) && (shadow = class_method(c, of, name, value)))
            return push_attribute(w, method, value, shadow);
        Py_XDECREF(value);
        PyErr_Clear();
        return break_at(c, "attribute", "attribute %.100s of a class", PyUnicode_AsUTF8(name));
    }
    if (of && (value_is_simple(owner) || PyList_CheckExact(owner) || PyDict_CheckExact(owner) || PyTuple_Check(owner) || is_set(owner, of) || of->kind == SHADOW_GENERATOR)) {
        PyObject *descriptor = _PyType_Lookup(Py_TYPE(owner), name);
        if (descriptor && Py_IS_TYPE(descriptor, &PyMethodDescr_Type) && (value = PyObject_GetAttr(owner, name)))
            return push_attribute(w, method, value, method_of(c, of, name, NULL, NULL, NULL));
        PyErr_Clear();
    }
    return object_attribute(c, w, name, method);
}

/* ---- modules that are imported ---- */

/* The module NAME, or that before its first dot, that has been imported before, and has all that FROM names; its source in *OF. Borrowed, or
 * NULL: it is not known what would be imported. */
static PyObject *imported(struct capture *c, PyObject *name, PyObject *from, struct shadow **of)
{
    PyObject *modules = PyImport_GetModuleDict(), *module = PyDict_GetItemWithError(modules, name), *top;
    const Py_ssize_t dot = from == Py_None ? PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1) : -1;

    if (!module || !PyModule_CheckExact(module) || (from != Py_None && !PyTuple_CheckExact(from)) ||
        !(*of = source_read(c, c->modules, '[', name, module)) || !value_known(c, module, *of))
        return NULL;
    for (Py_ssize_t i = 0; from != Py_None && i < PyTuple_GET_SIZE(from); i++)
        if (!PyDict_GetItemWithError(PyModule_GetDict(module), PyTuple_GET_ITEM(from, i)))
            return NULL;
    if (dot < 0)
        return module;
    top = capture_keep(c, PyUnicode_Substring(name, 0, dot));
    Py_XDECREF(top);
    return top ? imported(c, top, from, of) : NULL;
}

enum ended import_module(struct capture *c, struct watched *w, PyObject *name)
{
    PyObject *from = stack_value(w, 0), *importer = PyDict_CheckExact(w->frame->f_builtins) ? PyDict_GetItemString(w->frame->f_builtins, "__import__") : NULL;
    struct shadow *of = NULL, *of_importer;
    PyObject *module = NULL;

    if (importer && PyCFunction_CheckExact(importer) && w->frame->f_builtins == PyEval_GetBuiltins() && PyLong_AsLong(stack_value(w, 1)) == 0 &&
        word_of("__import__") && (of_importer = source_read(c, c->builtins, '[', word_of("__import__"), importer)) &&
        value_known(c, importer, of_importer))
        module = imported(c, name, from, &of);
    PyErr_Clear();
    if (!module)
        return break_at(c, "instruction", "the import of %.100s, which has not been imported before", PyUnicode_AsUTF8(name));
    module = PyObject_CallFunctionObjArgs(importer, name, w->frame->f_globals, Py_None, from, stack_value(w, 1), NULL);
    c->failed |= module && module != of->value;
    return stack_result(c, w, 2, module, of);
}

enum ended import_from(struct capture *c, struct watched *w, PyObject *name)
{
    PyObject *module = stack_value(w, 0), *value = PyModule_CheckExact(module) ? PyDict_GetItemWithError(PyModule_GetDict(module), name) : NULL;
    struct shadow *of = stack_shadow(w, 0), *shadow = value && of && of->kind == SHADOW_SOURCE ? source_read(c, of, '.', name, value) : NULL;

    PyErr_Clear();
    if (!shadow)
        return break_at(c, "instruction", "the import of a %.100s that is not known", PyUnicode_AsUTF8(name));
    stack_push(w, Py_NewRef(value), shadow);
    return ENDED_NOT;
}
