/* capture/src/object.c -- objects of the program's classes: special methods, new instances,
 * properties, super(). See capture.h.
 *
 * To step through a special method such as __add__, capture runs the operation, here operator.add.
 * CPython then calls the method, and capture steps through the method's frame (inline.c). If the
 * operation also starts another frame, or does not return the method's result, the graph breaks. */
#include "capture.h"

/* Return TYPE's method NAME if it is written in Python: borrowed; otherwise NULL. */
static PyObject *find_python_method(PyTypeObject *type, const char *name)
{
    PyObject *found = _PyType_Lookup(type, intern_word(name));

    return found && PyFunction_Check(found) && !is_array_function(found) ? found : NULL;
}

/* Does TYPE's metaclass use the methods of `type` to call the class and to read and set its
 * attributes? */
static bool is_plain_class(PyTypeObject *type)
{
    const PyTypeObject *meta = Py_TYPE(type);

    if (meta == &PyType_Type)
        return true;
    if ((PyObject *)meta != get_polyfill("ABCMeta") || meta->tp_call != PyType_Type.tp_call)
        return false;
    return meta->tp_getattro == PyType_Type.tp_getattro &&
           meta->tp_setattro == PyType_Type.tp_setattro;
}

struct shadow *find_class_source(struct capture *c, PyObject *value, struct shadow *of)
{
    PyTypeObject *type = Py_TYPE(value);
    PyObject *word = intern_word("__class__");

    if (is_kind(of, SHADOW_OBJECT))
        return of->object.of_class;
    if (!is_source(of) || !is_plain_class(type))
        return NULL;
    if (_PyType_Lookup(type, word) != _PyType_Lookup(&PyBaseObject_Type, word))
        return NULL;
    if (!ensure_type_known(c, value, of))
        return NULL;
    return source_read_attribute(c, of, "__class__", (PyObject *)type);
}

enum ended step_through_method(struct capture *c, struct watched *w, const struct call *call,
                               PyObject *function, struct shadow *of, const char *name)
{
    struct shadow *source = NULL;

    if (function && of)
        source = source_read_attribute(c, of, name, function);
    if (!source || !can_step_through(c, function, source))
        return ENDED_BEFORE;
    return step_through_function(c, w, call, (PyFunctionObject *)function, source);
}

enum ended step_special_method(struct capture *c, struct watched *w, const char *name,
                               const struct call *call)
{
    PyTypeObject *type = Py_TYPE(call->args[0]);
    const bool is_programs_class = type->tp_flags & Py_TPFLAGS_HEAPTYPE;
    PyObject *function = is_programs_class ? find_python_method(type, name) : NULL;
    struct call made = *call;

    c->kind = NULL;
    if (!function)
        return ENDED_BEFORE;
    /* if the call has no `self` of its own, its callable is the operation, e.g. operator.add, which
     * calls the method */
    made.operates = !call->bound;
    return step_through_method(c, w, &made, function,
                               find_class_source(c, call->args[0], call->shadows[0]), name);
}

/* Does the class of the first argument inherit from `object` the __ne__ that negates __eq__? Sets
 * *OF to the source of this class. Adds guards. */
static bool is_ne_inherited_from_object(struct capture *c, const struct call *call,
                                        struct shadow **of)
{
    PyObject *word = intern_word("__ne__");
    PyObject *object_ne = _PyType_Lookup(&PyBaseObject_Type, word);

    *of = find_class_source(c, call->args[0], call->shadows[0]);
    return *of && object_ne && _PyType_Lookup(Py_TYPE(call->args[0]), word) == object_ne;
}

enum ended step_operator_method(struct capture *c, struct watched *w, const char *name,
                                const struct call *call)
{
    /* drop the underscore of the operator name: and_ stands for the method __and__ */
    const int length = (int)strcspn(name, "_");
    struct shadow *of;
    char text[24];

    snprintf(text, sizeof text, "__%s%.*s__", call->reflected ? "r" : "", length, name);
    if (!strcmp(text, "__ne__") && is_ne_inherited_from_object(c, call, &of)) {
        PyObject *object_ne = _PyType_Lookup(&PyBaseObject_Type, intern_word("__ne__"));

        of = source_read_attribute(c, of, text, object_ne);
        if (!of || guard_add(c, of, "ID_MATCH", object_ne))
            return ENDED_BEFORE;
        return step_special_method(c, w, "__eq__", call);
    }
    return step_special_method(c, w, text, call);
}

/* ---- new instances ---- */

/* Do the functions of `object` create the instances of this class, set their attributes and release
 * them? */
static bool has_class_ordinary_slots(const PyTypeObject *type)
{
    const bool is_programs_class = type->tp_flags & Py_TPFLAGS_HEAPTYPE;

    if (!is_programs_class || type->tp_flags & Py_TPFLAGS_IS_ABSTRACT)
        return false;
    if (type->tp_new != PyBaseObject_Type.tp_new)
        return false;
    if (type->tp_setattro != PyObject_GenericSetAttr)
        return false;
    if (type->tp_getattro != PyObject_GenericGetAttr)
        return false;
    return !type->tp_finalize && !type->tp_del;
}

/* Add guards that TYPE inherits the methods in `inherited` from `object`, and has no method in
 * `absent`. OF is the source of TYPE. */
static bool guard_ordinary_class(struct capture *c, PyTypeObject *type, struct shadow *of)
{
    static const char *const inherited[] = {"__new__", "__setattr__", "__getattribute__",
                                            "__delattr__"};
    static const char *const absent[] = {"__getattr__", "__del__"};

    for (size_t i = 0; i < Py_ARRAY_LENGTH(inherited); i++) {
        PyObject *value = _PyType_Lookup(&PyBaseObject_Type, intern_word(inherited[i]));
        struct shadow *source = source_read_attribute(c, of, inherited[i], value);

        if (!source || guard_add(c, source, "ID_MATCH", value))
            return false;
        source->source.guarded = GUARDED_VALUE;
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(absent); i++) {
        PyObject *word = intern_word(absent[i]);

        if (_PyType_Lookup(type, word) || guard_add(c, of, "NO_HASATTR", word))
            return false;
    }
    return true;
}

bool is_ordinary(struct capture *c, PyTypeObject *type, struct shadow *of)
{
    if (!is_plain_class(type) || !has_class_ordinary_slots(type))
        return false;
    if (!ensure_value_known(c, (PyObject *)type, of))
        return false;
    if (!of->source.is_ordinary)
        of->source.is_ordinary = guard_ordinary_class(c, type, of);
    return of->source.is_ordinary;
}

/* Does CALL call a class without arguments, and does this class inherit __init__ from `object`?
 * Adds guards. */
static bool is_init_inherited_from_object(struct capture *c, const struct call *call,
                                          PyObject *init)
{
    struct shadow *of;

    if (init != _PyType_Lookup(&PyBaseObject_Type, intern_word("__init__")) || call->count)
        return false;
    of = source_read_attribute(c, call->of, "__init__", init);
    return of && !guard_add(c, of, "ID_MATCH", init);
}

enum ended call_class(struct capture *c, struct watched *w, const struct call *call)
{
    PyTypeObject *type = (PyTypeObject *)call->callable;
    struct shadow *made = shadow_new(c, SHADOW_OBJECT, 0);
    struct call making = prepend_self(call, NULL, made);
    PyObject *init, *function;

    c->kind = NULL;
    if (!made)
        return ENDED_BEFORE;
    init = _PyType_Lookup(type, intern_word("__init__"));
    if (!init || !is_ordinary(c, type, call->of))
        return ENDED_BEFORE;
    making.made = made;
    made->object.of_class = call->of;
    function = find_python_method(type, "__init__");
    if (!function && is_init_inherited_from_object(c, call, init))
        return stack_replace(c, w, call->slots, run_call(call), made);
    return step_through_method(c, w, &making, function, call->of, "__init__");
}

/* ---- properties, truth values ---- */

enum ended call_property(struct capture *c, struct watched *w, PyObject *name, PyObject *property,
                         const struct call *call)
{
    const char *which = call->count > 1 ? "fset" : "fget";
    OWNED PyObject *kept = Py_NewRef(property);
    OWNED PyObject *function = PyObject_GetAttrString(property, which);
    struct shadow *of = NULL;
    struct call made = *call;
    enum ended ended;

    PyErr_Clear();
    if (function && PyFunction_Check(function))
        of = find_class_source(c, call->args[0], call->shadows[0]);
    if (of)
        of = source_read(c, of, '.', name, property);
    c->kind = NULL;
    made.callable = function;
    ended = step_through_method(c, w, &made, function, of, which);
    if (is_instruction_handled(c, ended))
        return ended;
    return break_graph(c, "attribute", "a property that cannot be followed");
}

/* Is VALUE always true, because its class has neither __bool__ nor __len__? Adds guards. */
static bool is_always_true(struct capture *c, PyObject *value, struct shadow *of)
{
    const PyTypeObject *type = Py_TYPE(value);
    struct shadow *of_class;

    if (type->tp_as_number->nb_bool || type->tp_as_sequence->sq_length)
        return false;
    if (type->tp_as_mapping->mp_length)
        return false;
    of_class = find_class_source(c, value, of);
    if (!of_class || guard_add(c, of_class, "NO_HASATTR", intern_word("__bool__")))
        return false;
    return !guard_add(c, of_class, "NO_HASATTR", intern_word("__len__"));
}

enum ended convert_object_to_bool(struct capture *c, struct watched *w)
{
    PyObject *value = stack_value(w, 0);
    struct shadow *of = stack_shadow(w, 0);
    struct operands operands = {{value}, {of}};
    const struct call call = describe_operator_call("truth", 1, 1, &operands);
    const bool is_programs_class = Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE;
    enum ended ended;

    c->kind = NULL;
    if (!is_kind(of, SHADOW_OBJECT) && !is_source(of))
        return ENDED_BEFORE;
    if (!is_programs_class || is_graph_value(value, of))
        return ENDED_BEFORE;
    ended = step_operator_method(c, w, "bool", &call);
    if (!is_instruction_handled(c, ended))
        ended = step_operator_method(c, w, "len", &call);
    if (is_instruction_handled(c, ended) || !is_always_true(c, value, of))
        return ended;
    return stack_replace_known(c, w, 1, Py_NewRef(Py_True));
}

/* ---- super() ---- */

struct shadow *make_super_shadow(struct capture *c, struct shadow *of_type, struct shadow *of_self,
                                 PyObject *type, PyObject *self)
{
    struct shadow *made;

    if (!type || !self || !of_self || !ensure_value_known(c, type, of_type))
        return NULL;
    made = shadow_new(c, SHADOW_SUPER, 2);
    if (!made)
        return NULL;
    made->value = capture_keep(c, type);
    made->super.self = capture_keep(c, self);
    made->items[0] = of_type;
    made->items[1] = of_self;
    made->count = 2;
    return made;
}

/* Return the index of W's free variable __class__; -1 if there is none. */
static int find_class_cell(const struct watched *w)
{
    for (int i = w->variables - w->code->co_nfreevars; i < w->variables; i++) {
        PyObject *name = PyTuple_GET_ITEM(w->code->co_localsplusnames, i);

        if (!PyUnicode_CompareWithASCIIString(name, "__class__"))
            return i;
    }
    return -1;
}

/* Return the shadow of super() without arguments in frame W. The class of super() is in the free
 * variable __class__; `self` is the first argument, perhaps in a cell. Returns NULL if the class or
 * `self` is unknown. */
static struct shadow *make_super_shadow_of_frame(struct capture *c, const struct watched *w)
{
    const bool has_self = w->code->co_argcount > 0;
    PyObject *self = has_self ? compat_get_local(w->frame, 0) : NULL;
    struct shadow *of_self = has_self ? w->shadow[0] : NULL;
    const int number = find_class_cell(w);
    PyObject *cell = number >= 0 ? compat_get_local(w->frame, number) : NULL;
    const struct shadow *of_cell = number >= 0 ? w->shadow[number] : NULL;

    if (self && PyCell_Check(self)) {
        self = compat_cell_content(self);
        of_self = is_kind(of_self, SHADOW_CELL) ? of_self->items[0] : NULL;
    }
    if (!cell || !is_kind(of_cell, SHADOW_CELL))
        return NULL;
    return make_super_shadow(c, of_cell->items[0], of_self, compat_cell_content(cell), self);
}

enum ended call_super(struct capture *c, struct watched *w, const struct call *call)
{
    struct shadow *made = NULL;

    if (!call->count)
        made = make_super_shadow_of_frame(c, w);
    else if (call->count == 2 && PyType_Check(call->args[0]))
        made =
            make_super_shadow(c, call->shadows[0], call->shadows[1], call->args[0], call->args[1]);
    return made ? stack_replace(c, w, call->slots, run_call(call), made) : ENDED_BEFORE;
}

/* super() searches for the attribute NAME in MRO, from index AT on. Does a plain lookup of NAME in
 * NEXT, the class at this index, find the same attribute? It does if NEXT itself has the attribute,
 * or if NEXT's own MRO equals the part of MRO from AT on. */
static bool does_lookup_find_same_as_super(PyTypeObject *next, PyObject *name, PyObject *mro,
                                           Py_ssize_t at)
{
    const bool is_programs_class = next->tp_flags & Py_TPFLAGS_HEAPTYPE;
    const Py_ssize_t rest = PyTuple_GET_SIZE(mro) - at;

    if (is_programs_class && PyDict_GetItemWithError(next->tp_dict, name))
        return true;
    if (PyTuple_GET_SIZE(next->tp_mro) != rest)
        return false;
    for (Py_ssize_t i = 0; i < rest; i++)
        if (PyTuple_GET_ITEM(mro, at + i) != PyTuple_GET_ITEM(next->tp_mro, i))
            return false;
    return true;
}

/* Return the source of FOUND, which is attribute NAME of the class at index AT of MRO; or NULL.
 * OF_CLASS is the source of the class that has the MRO. */
static struct shadow *find_mro_source(struct capture *c, PyObject *mro, Py_ssize_t at,
                                      PyObject *name, PyObject *found, struct shadow *of_class)
{
    OWNED PyObject *number = PyLong_FromSsize_t(at);
    struct shadow *source = number ? source_read_attribute(c, of_class, "__mro__", mro) : NULL;

    if (source)
        source = source_read(c, source, '[', number, PyTuple_GET_ITEM(mro, at));
    return source ? source_read(c, source, '.', name, found) : NULL;
}

struct shadow *find_super_method(struct capture *c, PyObject *type, PyObject *self,
                                 struct shadow *of, PyObject *name)
{
    OWNED PyObject *mro = Py_NewRef(Py_TYPE(self)->tp_mro);
    struct shadow *source = find_class_source(c, self, of->items[1]);
    const Py_ssize_t count = PyTuple_GET_SIZE(mro);
    Py_ssize_t at = 0;
    PyTypeObject *next;
    PyObject *found;

    while (at < count && PyTuple_GET_ITEM(mro, at) != type)
        at++;
    at++;
    if (!source || at >= count)
        return NULL;
    next = (PyTypeObject *)PyTuple_GET_ITEM(mro, at);
    if (!does_lookup_find_same_as_super(next, name, mro, at))
        return NULL;
    found = _PyType_Lookup(next, name);
    if (!found)
        return NULL;
    source = find_mro_source(c, mro, at, name, found, source);
    if (!source)
        return NULL;
    if (PyFunction_Check(found)) {
        if (!ensure_value_known(c, found, source))
            return NULL;
        return make_method_shadow(c, of, name, found, source, of->items[1]);
    }
    if (found != _PyType_Lookup(&PyBaseObject_Type, intern_word("__init__")))
        return NULL;
    if (guard_add(c, source, "ID_MATCH", found))
        return NULL;
    return make_method_shadow(c, of, name, NULL, NULL, NULL);
}
