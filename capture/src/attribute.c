/* capture/src/attribute.c -- read attributes of arrays, objects, modules and classes; import
 * modules. See capture.h. */
#include "capture.h"

static enum ended push_read_attribute(struct watched *w, int slots, bool method, PyObject *value,
                                      struct shadow *shadow)
{
    stack_drop(w, slots);
    return push_callable(w, method, value, shadow);
}

/* How capture gets the value of an attribute of an array, or of the result of a graph node. */
enum array_origin {
    ARRAY_UNKNOWN,
    ARRAY_METHOD, /* a method */
    /* a fact about the shape or type, e.g. `x.ndim`: capture keeps its value as a constant */
    ARRAY_FACT,
    ARRAY_ARRAY, /* another array, e.g. `x.T`: the read becomes a node of the graph */
};

static enum array_origin classify_array_attribute(PyObject *descriptor, const char *name,
                                                  bool method)
{
    if (!descriptor)
        return ARRAY_UNKNOWN;
    if (PyFunction_Check(descriptor) || Py_IS_TYPE(descriptor, &PyMethodDescr_Type))
        return ARRAY_METHOD;
    if (is_in_set(name, "fact_attribute"))
        return ARRAY_FACT;
    return method ? ARRAY_UNKNOWN : ARRAY_ARRAY;
}

/* Read an attribute that depends on an array's shape or type but not on its data, e.g. `x.ndim`.
 * The value is a constant; only `x.shape` may contain sizes that are inputs of the graph. */
static enum ended read_array_metadata(struct capture *c, struct watched *w, int slots,
                                      PyObject *owner, struct shadow *of, PyObject *name,
                                      bool method)
{
    const char *text = PyUnicode_AsUTF8(name);
    struct shadow *shadow = NULL;
    PyObject *value;

    if (!has_fixed_shape(c, owner, of) || !ensure_type_known(c, owner, of))
        return break_graph(c, "data", "%.100s of a result, which may depend on its data", text);
    value = PyObject_GetAttr(owner, name);
    if (!value)
        return ENDED_RAISED;
    if (!strcmp(text, "shape"))
        shadow = find_varying_shape(c, owner, of);
    if (shadow)
        return push_read_attribute(w, slots, method, value, shadow);
    if (!is_in_set(text, "sizeless"))
        c->shapes_read = true;
    return push_read_attribute(w, slots, method, value, shadow_new_const(c, value));
}

/* Handle an attribute of an array that capture does not support: raise AttributeError if CPython
 * would raise it; otherwise break the graph. */
static enum ended break_at_array_attribute(struct capture *c, PyObject *owner, PyObject *name,
                                           bool is_absent)
{
    if (is_absent && !value_may_run_code(owner)) {
        OWNED PyObject *value = PyObject_GetAttr(owner, name);

        if (!value)
            return ENDED_RAISED;
    }
    return break_graph(c, "attribute",
                       "attribute %.100s of a %.100s, which its class does not have, or is called",
                       PyUnicode_AsUTF8(name), Py_TYPE(owner)->tp_name);
}

/* Read an attribute of an array, or of the result of a graph node. */
static enum ended read_array_attribute(struct capture *c, struct watched *w, int slots,
                                       PyObject *owner, struct shadow *of, PyObject *name,
                                       bool method)
{
    OWNED PyObject *descriptor = Py_XNewRef(_PyType_Lookup(Py_TYPE(owner), name));
    const char *text = PyUnicode_AsUTF8(name);
    struct operands operands = {{owner, name}, {of, shadow_new_const(c, name)}};
    const struct call call = describe_operator_call("getattr", slots, 2, &operands);
    PyObject *value;

    if (!of)
        return break_graph(c, "value", "an attribute of a %.200s that is not known",
                           Py_TYPE(owner)->tp_name);
    switch (classify_array_attribute(descriptor, text, method)) {
    case ARRAY_METHOD:
        value = PyObject_GetAttr(owner, name);
        if (!value)
            return ENDED_RAISED;
        return push_read_attribute(w, slots, method, value,
                                   make_method_shadow(c, of, name, NULL, NULL, NULL));
    case ARRAY_FACT:
        return read_array_metadata(c, w, slots, owner, of, name, method);
    case ARRAY_ARRAY:
        return run_graph_operator(c, w, "getattr", &call, is_in_set(text, "same_shape"));
    case ARRAY_UNKNOWN:
        break;
    }
    return break_at_array_attribute(c, owner, name, !descriptor);
}

/* ---- attributes of objects and classes ----
 *
 * Capture reads an attribute itself only if the read runs no code of the program, and if guards can
 * ensure that a later call reads the same value. Any other read breaks the graph: the resume
 * function then reads the attribute as CPython does. */

/* Where a read of an attribute finds the value. */
enum attribute_origin {
    /* unknown: reading the attribute may run code of the program, e.g. of a property */
    ORIGIN_UNKNOWN,
    /* the class lacks the attribute, or its descriptor may run code of the program */
    ORIGIN_ABSENT,
    ORIGIN_INSTANCE,     /* in the object's __dict__ or in a slot */
    ORIGIN_CLASS,        /* a plain value or a static method of the class */
    ORIGIN_METHOD,       /* a Python function of the class, bound to the object */
    ORIGIN_C_METHOD,     /* a method of a built-in type; the type alone decides its value */
    ORIGIN_CLASS_METHOD, /* a classmethod of the class */
    ORIGIN_SUPER,        /* the owner is a super() object */
    ORIGIN_OWN_CLASS,    /* the attribute is owner.__class__ */
    ORIGIN_MRO,          /* the attribute is __mro__, and the owner is a class */
    ORIGIN_ENUM_MEMBER,  /* an enumeration: a member, or `.value` and `.name` of a member */
    /* func, args or keywords of a functools.partial that the watched call made */
    ORIGIN_PARTIAL,
    /* a torch.nn.Module; the attribute may be in one of the dicts that its __getattr__ searches */
    ORIGIN_TORCH_MODULE,
};

struct attribute_read {
    PyObject *owner, *name; /* borrowed */
    struct shadow *of;      /* the shadow of `owner` */
    /* owned by the caller, or NULL: the attribute of this name in the owner's class or, if the
     * owner is a class, in the owner itself */
    PyObject *descriptor;
    /* owned by the caller: the attribute's value; NULL until the attribute has been read */
    PyObject *value;
};

/* Does TYPE look attributes up as `object` or a module does? A class with its own __getattribute__
 * may run any code. */
static bool uses_standard_lookup(PyTypeObject *type)
{
    PyObject *name = intern_word("__getattribute__");

    if (type->tp_getattro == PyObject_GenericGetAttr)
        return true;
    if (type->tp_getattro == PyModule_Type.tp_getattro)
        return true;
    return _PyType_Lookup(type, name) == _PyType_Lookup(&PyBaseObject_Type, name);
}

/* Does capture know what this descriptor's __get__ does? True for slots, functions and static
 * methods. */
static bool is_descriptor_predictable(PyObject *descriptor)
{
    PyTypeObject *type = Py_TYPE(descriptor);

    if (type == &PyMemberDescr_Type)
        return true;
    if (type->tp_descr_set)
        return false;
    if (!type->tp_descr_get || PyFunction_Check(descriptor))
        return true;
    return type == &PyStaticMethod_Type;
}

/* Is VALUE a method that binds the function FUNCTION to the object OWNER? */
static bool is_method_bound_to(PyObject *value, PyObject *function, PyObject *owner)
{
    if (!PyFunction_Check(function) || !PyMethod_Check(value))
        return false;
    return PyMethod_GET_SELF(value) == owner && PyMethod_GET_FUNCTION(value) == function;
}

enum found find_attribute(PyObject *owner, PyObject *name, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(owner);
    /* hold a reference to the value: comparing a key of the object's dict may run code that deletes
     * the attribute */
    OWNED PyObject *descriptor = Py_XNewRef(_PyType_Lookup(type, name));

    *value = NULL;
    if (!uses_standard_lookup(type))
        return FOUND_NOT;
    if (descriptor && !is_descriptor_predictable(descriptor))
        return FOUND_NOT;
    *value = PyObject_GenericGetAttr(owner, name);
    PyErr_Clear();
    if (!*value)
        return FOUND_NOT;
    if (!descriptor)
        return FOUND_OWN;
    if (is_method_bound_to(*value, descriptor, owner))
        return FOUND_METHOD;
    if (*value == descriptor || Py_IS_TYPE(descriptor, &PyStaticMethod_Type))
        return FOUND_CLASS;
    return FOUND_OWN;
}

/* Is OWNER a torch.nn.Module whose class does not replace torch.nn.Module.__getattr__? */
static bool is_torch_module(PyObject *owner)
{
    PyObject *function = _PyType_Lookup(Py_TYPE(owner), intern_word("__getattr__"));
    PyObject *module;

    if (!function || !PyFunction_Check(function))
        return false;
    module = ((PyFunctionObject *)function)->func_module;
    if (!module || !PyUnicode_Check(module))
        return false;
    return !PyUnicode_CompareWithASCIIString(module, "torch.nn.modules.module");
}

/* Read an attribute of a torch.nn.Module from the dicts that torch.nn.Module.__getattr__ searches:
 * the parameters, buffers and submodules. Returns the attribute's shadow, or NULL. */
static struct shadow *read_torch_module(struct capture *c, PyObject *owner, struct shadow *of,
                                        PyObject *name, PyObject **value)
{
    static const char *const dicts[] = {"_parameters", "_buffers", "_modules"};

    if (!is_torch_module(owner))
        return NULL;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(dicts); i++) {
        PyObject *word = intern_word(dicts[i]);
        OWNED PyObject *dict = NULL;
        struct shadow *of_dict;

        if (find_attribute(owner, word, &dict) != FOUND_OWN || !PyDict_CheckExact(dict))
            continue;
        *value = Py_XNewRef(PyDict_GetItemWithError(dict, name));
        if (!*value)
            continue;
        of_dict = source_read(c, of, '.', word, dict);
        return of_dict ? source_read(c, of_dict, '[', name, *value) : NULL;
    }
    return NULL;
}

/* Make the shadow of BOUND, a class method that was read as attribute NAME of the class OF. Returns
 * NULL if no guard can be added. */
static struct shadow *make_class_method_shadow(struct capture *c, struct shadow *of, PyObject *name,
                                               PyObject *bound)
{
    PyObject *function = PyMethod_GET_FUNCTION(bound);
    struct shadow *source = source_read(c, of, '.', name, NULL);

    if (source)
        source = source_read_attribute(c, source, "__func__", function);
    if (!source || !ensure_value_known(c, function, source))
        return NULL;
    return make_method_shadow(c, of, name, function, source, of);
}

/* Implement lacks_attribute() for an object that existed before the watched call began. */
static bool lacks_read_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                 PyObject *name)
{
    OWNED PyObject *value = NULL;

    if (!of->source.key || !ensure_type_known(c, owner, of))
        return false;
    if (source_find_changed(of, '.', name) || find_attribute(owner, name, &value) != FOUND_NOT)
        return false;
    return !guard_add(c, of, "NO_HASATTR", name);
}

bool lacks_attribute(struct capture *c, PyObject *owner, struct shadow *of, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(owner);

    if (!of || c->failed || value_is_array(owner))
        return false;
    if (type->tp_getattro != PyObject_GenericGetAttr || _PyType_Lookup(type, name))
        return false;
    if (is_source(of))
        return lacks_read_attribute(c, owner, of, name);
    if (of->kind != SHADOW_OBJECT || object_find(of, name) || !find_class_source(c, owner, of))
        return false;
    return !guard_add(c, of->object.of_class, "NO_HASATTR", name);
}

/* Each function below reads an attribute: it returns the attribute's shadow and sets READ->value.
 * It returns NULL if capture cannot follow the attribute. It may then also set c->kind, the kind of
 * the graph break. */

static struct shadow *break_at_attribute(struct capture *c, const struct attribute_read *read,
                                         const char *format)
{
    break_graph(c, "attribute", format, PyUnicode_AsUTF8(read->name));
    return NULL;
}

/* Read the attribute as CPython does, into READ->value. Returns false if that raised. */
static bool read_value_like_cpython(struct attribute_read *read)
{
    read->value = PyObject_GetAttr(read->owner, read->name);
    return read->value != NULL;
}

/* Read a method of a built-in type. The program cannot change a built-in type, so the method needs
 * no guard of its own. */
static struct shadow *read_c_method(struct capture *c, struct attribute_read *read)
{
    if (!read_value_like_cpython(read))
        return NULL;
    return make_method_shadow(c, read->of, read->name, NULL, NULL, NULL);
}

/* Read a class method. OF_CLASS is the source of the class that has the method. */
static struct shadow *read_class_method(struct capture *c, struct attribute_read *read,
                                        struct shadow *of_class)
{
    if (!of_class || !read_value_like_cpython(read) || !PyMethod_Check(read->value))
        return NULL;
    return make_class_method_shadow(c, of_class, read->name, read->value);
}

/* ---- attributes of a class ---- */

/* Is the attribute a method in C of an immutable class, or of a class of numpy or torch? */
static bool is_unchangeable_method(struct capture *c, const struct attribute_read *read)
{
    PyTypeObject *type = (PyTypeObject *)read->owner;
    PyObject *found = read->descriptor;
    bool is_fixed_class;

    if (!found)
        return false;
    if (!Py_IS_TYPE(found, &PyMethodDescr_Type) && !Py_IS_TYPE(found, &PyClassMethodDescr_Type))
        return false;
    if (!ensure_value_known(c, read->owner, read->of))
        return false;
    is_fixed_class = !(type->tp_flags & Py_TPFLAGS_HEAPTYPE);
    if (!is_fixed_class && !is_array_package(PyDescr_TYPE(found)->tp_name))
        return false;
    return !_PyType_Lookup(Py_TYPE(read->owner), read->name);
}

static enum attribute_origin classify_attribute_of_class(struct capture *c,
                                                         const struct attribute_read *read)
{
    PyObject *found = read->descriptor;

    if (is_unchangeable_method(c, read))
        return ORIGIN_C_METHOD;
    if (read->of->kind != SHADOW_SOURCE || !Py_IS_TYPE(read->owner, &PyType_Type))
        return ORIGIN_UNKNOWN;
    if (!PyUnicode_CompareWithASCIIString(read->name, "__mro__"))
        return ORIGIN_MRO;
    if (!found)
        return ORIGIN_ABSENT;
    if (Py_IS_TYPE(found, &PyClassMethod_Type))
        return ORIGIN_CLASS_METHOD;
    if (!Py_TYPE(found)->tp_descr_get || PyFunction_Check(found))
        return ORIGIN_CLASS;
    if (Py_IS_TYPE(found, &PyStaticMethod_Type) || Py_IS_TYPE(found, &PyMethodDescr_Type))
        return ORIGIN_CLASS;
    return ORIGIN_ABSENT;
}

static struct shadow *read_class_attribute(struct capture *c, struct attribute_read *read)
{
    const enum attribute_origin origin = classify_attribute_of_class(c, read);
    const bool from_class =
        origin == ORIGIN_CLASS || origin == ORIGIN_CLASS_METHOD || origin == ORIGIN_ABSENT;

    if (from_class && was_class_attribute_set(c, read->of, read->name))
        return break_at_attribute(
            c, read, "attribute %.100s of a class, which has been set by another name");
    switch (origin) {
    case ORIGIN_C_METHOD:
        return read_value_like_cpython(read) ? shadow_new_const(c, read->value) : NULL;
    case ORIGIN_MRO:
        read->value = Py_NewRef(((PyTypeObject *)read->owner)->tp_mro);
        return source_read(c, read->of, '.', read->name, read->value);
    case ORIGIN_CLASS_METHOD:
        return read_class_method(c, read, read->of);
    case ORIGIN_CLASS:
        if (!read_value_like_cpython(read))
            return NULL;
        return source_read(c, read->of, '.', read->name, read->value);
    default:
        return NULL;
    }
}

/* ---- attributes of an object ---- */

/* Is OWNER a value of a built-in type, so that all its methods are CPython's own? */
static bool is_builtin_value(PyObject *owner, const struct shadow *of)
{
    if (value_is_simple(owner) || is_sequence(owner) || PyDict_CheckExact(owner))
        return true;
    if (PyTuple_Check(owner) || is_known_set(owner, of))
        return true;
    return of->kind == SHADOW_GENERATOR;
}

/* Does READ read a member of an enumeration (`Color.RED`), or `.value` or `.name` of a member?
 * These reads run only code of the standard library. */
static bool is_enum_member(const struct attribute_read *read)
{
    PyObject *descriptor = read->descriptor;

    if (!descriptor)
        return (PyObject *)Py_TYPE(read->owner) == get_polyfill("EnumType");
    return descriptor == get_polyfill("enum_value") || descriptor == get_polyfill("enum_name");
}

static bool is_partial_made_by_call(const struct shadow *of)
{
    return of->kind == SHADOW_CALL && of->items[0]->value == get_polyfill("made_partial");
}

static bool is_class_of_object(const PyObject *descriptor)
{
    return descriptor && descriptor == _PyType_Lookup(&PyBaseObject_Type, intern_word("__class__"));
}

/* Classify an attribute of an object whose class uses the standard lookup. Sets READ->value to the
 * value of the attribute. */
static enum attribute_origin classify_found_attribute(struct capture *c,
                                                      struct attribute_read *read)
{
    const struct shadow *of = read->of;

    if (of->kind != SHADOW_OBJECT && of->kind != SHADOW_SOURCE)
        return ORIGIN_UNKNOWN;
    if (!ensure_type_known(c, read->owner, read->of))
        return ORIGIN_UNKNOWN;
    switch (find_attribute(read->owner, read->name, &read->value)) {
    case FOUND_OWN:
        return ORIGIN_INSTANCE;
    case FOUND_CLASS:
        return ORIGIN_CLASS;
    case FOUND_METHOD:
        return ORIGIN_METHOD;
    case FOUND_NOT:
        break;
    }
    return ORIGIN_UNKNOWN;
}

static enum attribute_origin classify_attribute_of_object(struct capture *c,
                                                          struct attribute_read *read)
{
    PyObject *descriptor = read->descriptor;
    const struct shadow *of = read->of;
    enum attribute_origin origin;
    bool is_readable_source;

    if (descriptor && Py_IS_TYPE(descriptor, &PyMethodDescr_Type) &&
        is_builtin_value(read->owner, of))
        return ORIGIN_C_METHOD;
    if (of->kind == SHADOW_SUPER)
        return ORIGIN_SUPER;
    origin = classify_found_attribute(c, read);
    if (origin != ORIGIN_UNKNOWN)
        return origin;
    if (descriptor && Py_IS_TYPE(descriptor, &PyClassMethod_Type))
        return ORIGIN_CLASS_METHOD;
    if (is_class_of_object(descriptor))
        return ORIGIN_OWN_CLASS;
    if (is_partial_made_by_call(of))
        return ORIGIN_PARTIAL;
    is_readable_source = of->kind == SHADOW_SOURCE && !c->failed;
    if (is_readable_source && is_enum_member(read))
        return ORIGIN_ENUM_MEMBER;
    if (is_readable_source && !descriptor)
        return ORIGIN_TORCH_MODULE;
    return ORIGIN_UNKNOWN;
}

static struct shadow *read_attribute_of_super(struct capture *c, struct attribute_read *read)
{
    struct shadow *source =
        find_super_method(c, read->of->value, read->of->super.self, read->of, read->name);

    return source && read_value_like_cpython(read) ? source : NULL;
}

/* Read a method. Guard the class if the watched call made the object; otherwise guard the __func__
 * of the bound method. */
static struct shadow *read_method(struct capture *c, struct attribute_read *read)
{
    PyObject *function = read->descriptor;
    struct shadow *of = read->of;
    struct shadow *source;

    if (of->kind == SHADOW_OBJECT) {
        source = source_read(c, of->object.of_class, '.', read->name, function);
    } else {
        source = source_read(c, of, '.', read->name, NULL);
        if (source)
            source = source_read_attribute(c, source, "__func__", function);
    }
    if (!source || !ensure_value_known(c, function, source))
        return NULL;
    return make_method_shadow(c, of, read->name, function, source, of);
}

/* Read a value from the object itself, or from its class. */
static struct shadow *read_own_or_class_value(struct capture *c, struct attribute_read *read)
{
    struct shadow *of = read->of;
    struct shadow *own;

    if (of->kind != SHADOW_OBJECT)
        return source_read(c, of, '.', read->name, read->value);
    own = object_find(of, read->name);
    return own ? own : source_read(c, of->object.of_class, '.', read->name, read->value);
}

static struct shadow *read_own_class(struct capture *c, struct attribute_read *read)
{
    struct shadow *source = find_class_source(c, read->owner, read->of);

    if (source)
        read->value = Py_NewRef((PyObject *)Py_TYPE(read->owner));
    return source;
}

static struct shadow *read_enum_member(struct capture *c, struct attribute_read *read)
{
    const bool is_class = !read->descriptor;

    if (is_class && !ensure_value_known(c, read->owner, read->of))
        return NULL;
    if (!read_value_like_cpython(read))
        return NULL;
    if (is_class && (PyObject *)Py_TYPE(read->value) != read->owner)
        return NULL;
    return source_read(c, read->of, '.', read->name, read->value);
}

/* Read func, args or keywords of a functools.partial. The shadows of these three values are items
 * 1, 2 and 3 of the partial's shadow. */
static struct shadow *read_functools_partial(struct attribute_read *read)
{
    static const char *const names[] = {"func", "args", "keywords"};

    for (int i = 0; i < 3; i++)
        if (!PyUnicode_CompareWithASCIIString(read->name, names[i]))
            return read_value_like_cpython(read) ? read->of->items[1 + i] : NULL;
    return NULL;
}

static struct shadow *read_object_attribute(struct capture *c, struct attribute_read *read)
{
    const enum attribute_origin origin = classify_attribute_of_object(c, read);
    const bool from_class =
        origin == ORIGIN_CLASS || origin == ORIGIN_METHOD || origin == ORIGIN_SUPER;

    /* a guard on the class is of no use if the watched call itself has set the attribute in the
     * class */
    if (from_class && was_class_attribute_set(c, NULL, read->name))
        return break_at_attribute(c, read,
                                  "attribute %.100s of an object, which has been set in a class");
    switch (origin) {
    case ORIGIN_C_METHOD:
        return read_c_method(c, read);
    case ORIGIN_SUPER:
        return read_attribute_of_super(c, read);
    case ORIGIN_METHOD:
        return read_method(c, read);
    case ORIGIN_INSTANCE:
    case ORIGIN_CLASS:
        return read_own_or_class_value(c, read);
    case ORIGIN_CLASS_METHOD:
        return read_class_method(c, read, find_class_source(c, read->owner, read->of));
    case ORIGIN_OWN_CLASS:
        return read_own_class(c, read);
    case ORIGIN_PARTIAL:
        return read_functools_partial(read);
    case ORIGIN_ENUM_MEMBER:
        return read_enum_member(c, read);
    case ORIGIN_TORCH_MODULE:
        return read_torch_module(c, read->owner, read->of, read->name, &read->value);
    case ORIGIN_MRO:
    case ORIGIN_ABSENT:
    case ORIGIN_UNKNOWN:
        break;
    }
    return NULL;
}

/* Read an attribute of a simple value, e.g. `(1).real`. Its value is a constant. */
static struct shadow *read_simple_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                            PyObject *name, PyObject **value)
{
    PyObject *found;

    if (!ensure_value_known(c, owner, of))
        return NULL;
    found = PyObject_GetAttr(owner, name);
    PyErr_Clear();
    if (!found || !value_is_simple(found)) {
        Py_XDECREF(found);
        return NULL;
    }
    *value = found;
    return shadow_new_const(c, found);
}

/* Read __name__ of a class or function. */
static struct shadow *read_name_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                          PyObject *name, PyObject **value)
{
    const bool is_class = Py_IS_TYPE(owner, &PyType_Type);
    bool is_fixed_class = false;
    PyObject *found;

    if (!is_class && !PyFunction_Check(owner))
        return NULL;
    if (is_class)
        is_fixed_class = !(((PyTypeObject *)owner)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    found = PyObject_GetAttr(owner, name);
    PyErr_Clear();
    if (!found || !value_is_simple(found)) {
        Py_XDECREF(found);
        return NULL;
    }
    *value = found;
    if (is_source(of))
        return source_read(c, of, '.', name, found);
    if (is_fixed_class || of->kind == SHADOW_FUNCTION)
        return shadow_new_const(c, found);
    return NULL;
}

static struct shadow *read_constant_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                              PyObject *name, PyObject **value)
{
    if (value_is_simple(owner))
        return read_simple_attribute(c, owner, of, name, value);
    if (PyUnicode_CompareWithASCIIString(name, "__name__"))
        return NULL;
    return read_name_attribute(c, owner, of, name, value);
}

/* Read attribute NAME of OWNER, an object or a class. DESCRIPTOR is the attribute NAME of OWNER's
 * class, or NULL. Sets *VALUE to the attribute, a new reference, or to NULL. */
static struct shadow *read_object_or_class(struct capture *c, PyObject *owner, struct shadow *of,
                                           PyObject *name, PyObject *descriptor, PyObject **value)
{
    struct attribute_read read = {.owner = owner, .name = name, .of = of};
    OWNED PyObject *in_class = NULL;
    struct shadow *shadow = NULL;

    if (PyType_Check(owner)) {
        in_class = Py_XNewRef(_PyType_Lookup((PyTypeObject *)owner, name));
        read.descriptor = in_class;
        shadow = read_class_attribute(c, &read);
    }
    /* if a class has its own metaclass, as an enumeration has, also search the metaclass */
    if (!read.value && !Py_IS_TYPE(owner, &PyType_Type)) {
        read.descriptor = descriptor;
        shadow = read_object_attribute(c, &read);
    }
    *value = read.value;
    return shadow;
}

/* Read a global of a module. */
static struct shadow *read_module_global(struct capture *c, PyObject *module, struct shadow *of,
                                         PyObject *name, PyObject **value)
{
    *value = Py_XNewRef(PyDict_GetItemWithError(PyModule_GetDict(module), name));
    if (!*value || !is_source(of))
        return NULL;
    return source_read(c, of, '.', name, *value);
}

/* Read an attribute of anything but an array. Returns its shadow, or NULL. Sets *VALUE to the
 * attribute, a new reference, or to NULL. */
static struct shadow *read_other_attribute(struct capture *c, PyObject *owner, struct shadow *of,
                                           PyObject *name, PyObject *descriptor, bool method,
                                           PyObject **value)
{
    struct shadow *shadow = NULL;

    if (!of)
        return NULL;
    if (!method)
        shadow = read_constant_attribute(c, owner, of, name, value);
    if (*value)
        return shadow;
    if (PyModule_CheckExact(owner))
        return read_module_global(c, owner, of, name, value);
    return read_object_or_class(c, owner, of, name, descriptor, value);
}

enum ended read_attribute(struct capture *c, struct watched *w, int slots, PyObject *owner,
                          struct shadow *of, PyObject *name, bool method)
{
    const struct call call = {.args = &owner, .shadows = &of, .count = 1, .slots = slots};
    OWNED PyObject *descriptor = Py_XNewRef(_PyType_Lookup(Py_TYPE(owner), name));
    OWNED PyObject *value = NULL;
    struct shadow *shadow;

    c->kind = NULL;
    if (!PyUnicode_AsUTF8(name)) {
        PyErr_Clear();
        return break_graph(c, "attribute", "an attribute whose name is no UTF-8");
    }
    if (is_graph_value(owner, of))
        return read_array_attribute(c, w, slots, owner, of, name, method);
    shadow = read_other_attribute(c, owner, of, name, descriptor, method, &value);
    PyErr_Clear();
    if (shadow && value)
        return push_read_attribute(w, slots, method, Py_NewRef(value), shadow);
    if (c->kind)
        return ENDED_BEFORE;
    if (!value && !method && descriptor && Py_IS_TYPE(descriptor, &PyProperty_Type))
        return call_property(c, w, name, descriptor, &call);
    if (lacks_attribute(c, owner, of, name)) {
        OWNED PyObject *found = PyObject_GetAttr(owner, name);

        if (!found)
            return ENDED_RAISED;
    }
    return break_graph(c, "attribute",
                       "attribute %.100s of a %.100s, which may run code of the program's",
                       PyUnicode_AsUTF8(name), Py_TYPE(owner)->tp_name);
}

/* ---- imports ---- */

/* Does MODULE have all names in the tuple FROM, as `from module import a, b` needs? */
static bool has_module_all_names(PyObject *module, PyObject *from)
{
    PyObject *dict = PyModule_GetDict(module);

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); i++)
        if (!PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(from, i)))
            return false;
    return true;
}

/* Return the module that `import NAME` or `from NAME import ...` gives, if the program has imported
 * it before: borrowed. FROM is None for a plain import, which gives the top-level package. Sets *OF
 * to the source of the module. Returns NULL if the import may run code. */
static PyObject *find_imported_module(struct capture *c, PyObject *name, PyObject *from,
                                      struct shadow **of)
{
    PyObject *module = PyDict_GetItemWithError(PyImport_GetModuleDict(), name);
    OWNED PyObject *top = NULL;
    Py_ssize_t dot;

    if (!module || !PyModule_CheckExact(module))
        return NULL;
    if (from != Py_None && !PyTuple_CheckExact(from))
        return NULL;
    *of = source_read(c, c->modules, '[', name, module);
    if (!*of || !ensure_value_known(c, module, *of))
        return NULL;
    if (from != Py_None)
        return has_module_all_names(module, from) ? module : NULL;
    dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
    if (dot < 0)
        return module;
    top = PyUnicode_Substring(name, 0, dot);
    return capture_keep(c, top) ? find_imported_module(c, top, from, of) : NULL;
}

/* Return CPython's own __import__, with a guard; NULL if the program has replaced it. Borrowed. */
static PyObject *find_import_function(struct capture *c, const struct watched *w)
{
    PyObject *builtins = w->frame->f_builtins;
    PyObject *importer;
    struct shadow *of;

    if (!PyDict_CheckExact(builtins) || builtins != PyEval_GetBuiltins())
        return NULL;
    importer = PyDict_GetItemString(builtins, "__import__");
    if (!importer || !PyCFunction_CheckExact(importer))
        return NULL;
    of = source_read(c, c->builtins, '[', intern_word("__import__"), importer);
    return of && ensure_value_known(c, importer, of) ? importer : NULL;
}

enum ended import_module(struct capture *c, struct watched *w, PyObject *name)
{
    PyObject *from = stack_value(w, 0);
    PyObject *level = stack_value(w, 1);
    PyObject *importer = NULL, *module = NULL;
    struct shadow *of = NULL;

    if (PyLong_AsLong(level) == 0)
        importer = find_import_function(c, w);
    if (importer)
        module = find_imported_module(c, name, from, &of);
    PyErr_Clear();
    if (!module)
        return break_graph(c, "instruction",
                           "the import of %.100s, which has not been imported before",
                           PyUnicode_AsUTF8(name));
    module = PyObject_CallFunctionObjArgs(importer, name, w->frame->f_globals, Py_None, from, level,
                                          NULL);
    if (module && module != of->value)
        c->failed = true;
    return stack_replace(c, w, 2, module, of);
}

enum ended read_super_attribute(struct capture *c, struct watched *w, PyObject *name, bool method)
{
    PyObject *function = stack_value(w, 2), *type = stack_value(w, 1), *self = stack_value(w, 0);
    struct shadow *of = make_super_shadow(c, stack_shadow(w, 1), stack_shadow(w, 0), type, self);
    OWNED PyObject *made = NULL;

    if (!of || function != (PyObject *)&PySuper_Type ||
        !ensure_value_known(c, function, stack_shadow(w, 2)))
        return break_graph(c, "attribute", "attribute %.100s of super(), which is not known",
                           PyUnicode_AsUTF8(name));
    made = PyObject_CallFunctionObjArgs(function, type, self, NULL);
    if (!made)
        return ENDED_RAISED;
    return read_attribute(c, w, 3, made, of, name, method);
}
