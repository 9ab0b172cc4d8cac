/* capture/src/attribute.c -- attributes of arrays, objects, modules, classes, as they are read,
 * and imports. See capture.h. */
#include "capture.h"

enum ended push_callable(struct watched *w, bool null, PyObject *value, struct shadow *shadow)
{
    if (null && !COMPAT_CALLABLE_FIRST)
        stack_push(w, NULL, NULL);
    stack_push(w, value, shadow);
    if (null && COMPAT_CALLABLE_FIRST)
        stack_push(w, NULL, NULL);
    return ENDED_NOT;
}

static enum ended push_attribute(struct watched *w, int slots, bool method, PyObject *value,
                                 struct shadow *shadow)
{
    stack_drop(w, slots);
    return push_callable(w, method, value, shadow);
}

struct shadow *method_of(struct capture *c, struct shadow *owner, PyObject *name,
                         PyObject *function, struct shadow *source, struct shadow *self)
{
    struct shadow *made = shadow_new(c, SHADOW_METHOD, 2);

    if (made) {
        made->parent = owner;
        made->key = capture_keep(c, name);
        made->value = function ? capture_keep(c, function) : NULL;
        made->items[0] = source;
        made->items[1] = self;
    }
    if (!function && owner->kind == SHADOW_SOURCE && value_is_array(owner->value))
        /* the plan reads it, which must do as little at each hit */
        value_type_known(c, owner->value, owner);
    else if (!function && owner->kind == SHADOW_SOURCE && !owner->guarded)
        guard_on(c, owner, "TYPE_MATCH", (PyObject *)Py_TYPE(owner->value));
    return made;
}

/* Of an array, or of what an operation gave. */
static enum ended array_attribute(struct capture *c, struct watched *w, int slots, PyObject *owner,
                                  struct shadow *of, PyObject *name, bool method)
{
    OWNED PyObject *descriptor = Py_XNewRef(_PyType_Lookup(Py_TYPE(owner), name));
    PyObject *value = NULL;
    const char *text = PyUnicode_AsUTF8(name);
    const bool function =
        descriptor && (PyFunction_Check(descriptor) || Py_IS_TYPE(descriptor, &PyMethodDescr_Type));
    const bool fact = descriptor && !function && is_in(text, "fact_attribute");
    struct operands operands = {{owner, name}, {of, shadow_const(c, name)}};
    const struct call call = operator_call("getattr", slots, 2, &operands);
    struct shadow *shadow;

    if (!of)
        return break_at(c, "value", "an attribute of a %.200s that is not known",
                        Py_TYPE(owner)->tp_name);
    if (fact && (!is_fixed(c, owner, of) || !value_type_known(c, owner, of)))
        return break_at(c, "data", "%.100s of a result, which may depend on its data", text);
    if ((function || fact || (!descriptor && !value_is_foreign(owner))) &&
        !(value = PyObject_GetAttr(owner, name)))
        return ENDED_RAISED;
    if (function)
        return push_attribute(w, slots, method, value, method_of(c, of, name, NULL, NULL, NULL));
    if (fact) {
        shadow = strcmp(text, "shape") ? NULL : varying_shape(c, owner, of);
        c->shapes_read |= !shadow && !is_in(text, "sizeless");
        return push_attribute(w, slots, method, value, shadow ? shadow : shadow_const(c, value));
    }
    Py_XDECREF(value);
    if (!descriptor || method)
        return break_at(c, "attribute",
                        "attribute %.100s of a %.100s, which its class does not have, or is called",
                        text, Py_TYPE(owner)->tp_name);
    return operate_graph(c, w, "getattr", &call, is_in(text, "same_shape"));
}

enum found find_attribute(PyObject *owner, PyObject *name, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(owner);
    /* a key of the object's dict may compare by code that takes it away */
    OWNED PyObject *descriptor = Py_XNewRef(_PyType_Lookup(type, name));
    const bool own = !descriptor || Py_IS_TYPE(descriptor, &PyMemberDescr_Type),
               function = descriptor && PyFunction_Check(descriptor);

    *value = NULL;
    if (type->tp_getattro != PyObject_GenericGetAttr &&
        type->tp_getattro != PyModule_Type.tp_getattro &&
        _PyType_Lookup(type, word_of("__getattribute__")) !=
            _PyType_Lookup(&PyBaseObject_Type, word_of("__getattribute__")))
        return FOUND_NOT;
    if (!own &&
        (Py_TYPE(descriptor)->tp_descr_set || (Py_TYPE(descriptor)->tp_descr_get && !function &&
                                               !Py_IS_TYPE(descriptor, &PyStaticMethod_Type))))
        return FOUND_NOT;
    *value = PyObject_GenericGetAttr(owner, name);
    PyErr_Clear();
    if (function && *value && PyMethod_Check(*value) && PyMethod_GET_SELF(*value) == owner &&
        PyMethod_GET_FUNCTION(*value) == descriptor)
        return FOUND_METHOD;
    return !*value ? FOUND_NOT
           : *value == descriptor || (descriptor && Py_IS_TYPE(descriptor, &PyStaticMethod_Type))
               ? FOUND_CLASS
               : FOUND_OWN;
}

/* torch.nn.Module keeps parameters, buffers and modules in dicts of their own, which its
 * __getattr__ looks through. */
static struct shadow *module_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                       PyObject *name, PyObject **value)
{
    static const char *const dicts[] = {"_parameters", "_buffers", "_modules"};
    OWNED PyObject *function = Py_XNewRef(_PyType_Lookup(Py_TYPE(owner), word_of("__getattr__")));
    PyObject *module =
        function && PyFunction_Check(function) ? ((PyFunctionObject *)function)->func_module : NULL;

    if (!module || !PyUnicode_Check(module) ||
        PyUnicode_CompareWithASCIIString(module, "torch.nn.modules.module"))
        return NULL;
    for (int i = 0; i < 3; i++) {
        OWNED PyObject *dict = NULL;
        if (find_attribute(owner, word_of(dicts[i]), &dict) != FOUND_OWN ||
            !PyDict_CheckExact(dict))
            continue;
        if ((*value = Py_XNewRef(PyDict_GetItemWithError(dict, name)))) {
            struct shadow *in = source_read(c, of, '.', word_of(dicts[i]), dict);
            return in ? source_read(c, in, '[', name, *value) : NULL;
        }
    }
    return NULL;
}

/* BOUND, attribute NAME of the class of OF. */
static struct shadow *class_method(struct capture *c, struct shadow *of, PyObject *name,
                                   PyObject *bound)
{
    PyObject *function = PyMethod_GET_FUNCTION(bound);
    struct shadow *source = source_read(c, of, '.', name, NULL);

    source = source ? source_attribute(c, source, "__func__", function) : NULL;
    return source && value_known(c, function, source) ? method_of(c, of, name, function, source, of)
                                                      : NULL;
}

bool lacks_attribute(struct capture *c, PyObject *owner, struct shadow *of, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(owner);
    PyObject *value = NULL;

    if (!of || type->tp_getattro != PyObject_GenericGetAttr || _PyType_Lookup(type, name) ||
        value_is_array(owner) || c->failed)
        return false;
    if (of->kind == SHADOW_OBJECT)
        return !object_has(of, name) && class_source(c, owner, of) &&
               !guard_on(c, of->parent, "NO_HASATTR", name);
    if (of->kind != SHADOW_SOURCE || !of->key || !value_type_known(c, owner, of) ||
        source_changed(of, '.', name) || find_attribute(owner, name, &value))
        return Py_XDECREF(value), false;
    return !guard_on(c, of, "NO_HASATTR", name);
}

/* The following give the shadow of what OWNER, of OF, has as NAME, and that in *VALUE, a new
 * reference. NULL: it is not known, or C says why. */

static struct shadow *class_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                      PyObject *name, PyObject **value)
{
    PyTypeObject *type = (PyTypeObject *)owner;
    OWNED PyObject *found = Py_XNewRef(_PyType_Lookup(type, name));
    const bool in_c = found && (Py_IS_TYPE(found, &PyMethodDescr_Type) ||
                                Py_IS_TYPE(found, &PyClassMethodDescr_Type));
    bool is_class_method;

    if (in_c && value_known(c, owner, of) &&
        (is_array_package(PyDescr_TYPE(found)->tp_name) ||
         !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) &&
        !_PyType_Lookup(Py_TYPE(owner), name)) /* it cannot be changed */
        return (*value = PyObject_GetAttr(owner, name)) ? shadow_const(c, *value) : NULL;
    if (of->kind != SHADOW_SOURCE || !Py_IS_TYPE(owner, &PyType_Type))
        return NULL;
    if (!PyUnicode_CompareWithASCIIString(name, "__mro__"))
        return source_read(c, of, '.', name, *value = Py_NewRef(type->tp_mro));
    if (class_changed(c, of, name))
        return break_at(c, "attribute",
                        "attribute %.100s of a class, which has been set by another name",
                        PyUnicode_AsUTF8(name)),
               NULL;
    is_class_method = found && Py_IS_TYPE(found, &PyClassMethod_Type);
    if (!found ||
        !(is_class_method || !Py_TYPE(found)->tp_descr_get || PyFunction_Check(found) ||
          Py_IS_TYPE(found, &PyStaticMethod_Type) || Py_IS_TYPE(found, &PyMethodDescr_Type)) ||
        !(*value = PyObject_GetAttr(owner, name)))
        return NULL;
    return !is_class_method         ? source_read(c, of, '.', name, *value)
           : PyMethod_Check(*value) ? class_method(c, of, name, *value)
                                    : NULL;
}

static struct shadow *object_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                       PyObject *name, PyObject **value)
{
    OWNED PyObject *descriptor = Py_XNewRef(_PyType_Lookup(Py_TYPE(owner), name));
    const bool made = of->kind == SHADOW_OBJECT;
    struct shadow *source;
    enum found found;

    if (descriptor && Py_IS_TYPE(descriptor, &PyMethodDescr_Type) &&
        (value_is_simple(owner) || is_sequence(owner) || PyDict_CheckExact(owner) ||
         PyTuple_Check(owner) || is_set(owner, of) || of->kind == SHADOW_GENERATOR))
        return (*value = PyObject_GetAttr(owner, name)) ? method_of(c, of, name, NULL, NULL, NULL)
                                                        : NULL;
    found = (made || of->kind == SHADOW_SOURCE) && value_type_known(c, owner, of)
                ? find_attribute(owner, name, value)
                : FOUND_NOT;
    if ((found == FOUND_CLASS || found == FOUND_METHOD || of->kind == SHADOW_SUPER) &&
        class_changed(c, NULL, name))
        return break_at(c, "attribute",
                        "attribute %.100s of an object, which has been set in a class",
                        PyUnicode_AsUTF8(name)),
               NULL;
    if (of->kind == SHADOW_SUPER) {
        source = super_method(c, of->value, of->node, of, name);
        return source && (*value = PyObject_GetAttr(owner, name)) ? source : NULL;
    }
    if (descriptor && Py_IS_TYPE(descriptor, &PyClassMethod_Type) && !found &&
        (source = class_source(c, owner, of)))
        return (*value = PyObject_GetAttr(owner, name)) && PyMethod_Check(*value)
                   ? class_method(c, source, name, *value)
                   : NULL;
    if (found == FOUND_METHOD) {
        source = made ? source_read(c, of->parent, '.', name, descriptor)
                      : source_read(c, of, '.', name, NULL);
        if (source && !made)
            source = source_attribute(c, source, "__func__", descriptor);
        return source && value_known(c, descriptor, source)
                   ? method_of(c, of, name, descriptor, source, of)
                   : NULL;
    }
    if (found)
        return !made                  ? source_read(c, of, '.', name, *value)
               : object_has(of, name) ? object_has(of, name)
                                      : source_read(c, of->parent, '.', name, *value);
    if (descriptor && descriptor == _PyType_Lookup(&PyBaseObject_Type, word_of("__class__")) &&
        (source = class_source(c, owner, of)))
        return *value = Py_NewRef((PyObject *)Py_TYPE(owner)), source;
    if (of->kind == SHADOW_SOURCE && !c->failed &&
        (descriptor
             ? descriptor == polyfill("enum_value") || descriptor == polyfill("enum_name")
             /* an enumeration's runs no code of the program's */
             : (PyObject *)Py_TYPE(owner) == polyfill("EnumType") && value_known(c, owner, of)))
        return (*value = PyObject_GetAttr(owner, name)) &&
                       (descriptor || (PyObject *)Py_TYPE(*value) == owner)
                   ? source_read(c, of, '.', name, *value)
                   : NULL;
    for (int i = 0;
         of->kind == SHADOW_CALL && of->items[0]->value == polyfill("made_partial") && i < 3; i++)
        if (!PyUnicode_CompareWithASCIIString(name,
                                              (const char *const[]){"func", "args", "keywords"}[i]))
            return (*value = PyObject_GetAttr(owner, name)) ? of->items[1 + i] : NULL;
    return of->kind == SHADOW_SOURCE && !c->failed && !descriptor
               ? module_attribute(c, owner, of, name, value)
               : NULL;
}

/* Of what nobody can change, or what its guard says. */
static struct shadow *constant_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                         PyObject *name, PyObject **value)
{
    OWNED PyObject *found = NULL;
    const bool simple = value_is_simple(owner),
               built_in = PyType_Check(owner) &&
                          !(((PyTypeObject *)owner)->tp_flags & Py_TPFLAGS_HEAPTYPE);

    if (simple ? !value_known(c, owner, of)
               : PyUnicode_CompareWithASCIIString(name, "__name__") ||
                     !(Py_IS_TYPE(owner, &PyType_Type) || PyFunction_Check(owner)))
        return NULL;
    found = PyObject_GetAttr(owner, name);
    PyErr_Clear();
    if (!found || !value_is_simple(found))
        return NULL;
    *value = Py_NewRef(found);
    return !simple && of->kind == SHADOW_SOURCE ? source_read(c, of, '.', name, *value)
           : simple || built_in || of->kind == SHADOW_FUNCTION ? shadow_const(c, *value)
                                                               : NULL;
}

enum ended read_attribute(struct capture *c, struct watched *w, int slots, PyObject *owner,
                          struct shadow *of, PyObject *name, bool method)
{
    OWNED PyObject *descriptor = Py_XNewRef(_PyType_Lookup(Py_TYPE(owner), name));
    PyObject *value = NULL;
    struct shadow *shadow = NULL;

    c->kind = NULL;
    if (!PyUnicode_AsUTF8(name)) {
        PyErr_Clear();
        return break_at(c, "attribute", "an attribute whose name is no UTF-8");
    }
    if (is_graph(owner, of))
        return array_attribute(c, w, slots, owner, of, name, method);
    if (of && !method)
        shadow = constant_attribute(c, owner, of, name, &value);
    if (of && !value && PyModule_CheckExact(owner)) {
        value = Py_XNewRef(PyDict_GetItemWithError(PyModule_GetDict(owner), name));
        shadow = value && of->kind == SHADOW_SOURCE ? source_read(c, of, '.', name, value) : NULL;
    } else if (of && !value) {
        shadow = PyType_Check(owner) ? class_attribute(c, owner, of, name, &value) : NULL;
        /* torch's classes have a metaclass, enumerations another */
        if (!value && !Py_IS_TYPE(owner, &PyType_Type))
            shadow = object_attribute(c, owner, of, name, &value);
    }
    PyErr_Clear();
    if (shadow && value)
        return push_attribute(w, slots, method, value, shadow);
    Py_XDECREF(value);
    if (c->kind)
        return ENDED_BEFORE;
    if (!value && descriptor && Py_IS_TYPE(descriptor, &PyProperty_Type) && !method)
        return call_property(
            c, w, name, descriptor,
            &(struct call){.args = &owner, .shadows = &of, .count = 1, .slots = slots});
    if (lacks_attribute(c, owner, of, name) && !(value = PyObject_GetAttr(owner, name)))
        return ENDED_RAISED;
    return break_at(c, "attribute",
                    "attribute %.100s of a %.100s, which may run code of the program's",
                    PyUnicode_AsUTF8(name), Py_TYPE(owner)->tp_name);
}

/* ---- modules that are imported ---- */

/* The module NAME, or that before its first dot, that has been imported before, and has all that
 * FROM names; its source in *OF. Borrowed, or NULL: it is not known what would be imported. */
static PyObject *imported(struct capture *c, PyObject *name, PyObject *from, struct shadow **of)
{
    PyObject *modules = PyImport_GetModuleDict(), *module = PyDict_GetItemWithError(modules, name),
             *top;
    const Py_ssize_t dot =
        from == Py_None ? PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1) : -1;

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
    PyObject *from = stack_value(w, 0),
             *importer = PyDict_CheckExact(w->frame->f_builtins)
                             ? PyDict_GetItemString(w->frame->f_builtins, "__import__")
                             : NULL;
    struct shadow *of = NULL, *of_importer;
    PyObject *module = NULL;

    if (importer && PyCFunction_CheckExact(importer) &&
        w->frame->f_builtins == PyEval_GetBuiltins() && PyLong_AsLong(stack_value(w, 1)) == 0 &&
        (of_importer = source_read(c, c->builtins, '[', word_of("__import__"), importer)) &&
        value_known(c, importer, of_importer))
        module = imported(c, name, from, &of);
    PyErr_Clear();
    if (!module)
        return break_at(c, "instruction",
                        "the import of %.100s, which has not been imported before",
                        PyUnicode_AsUTF8(name));
    module = PyObject_CallFunctionObjArgs(importer, name, w->frame->f_globals, Py_None, from,
                                          stack_value(w, 1), NULL);
    c->failed |= module && module != of->value;
    return stack_result(c, w, 2, module, of);
}
