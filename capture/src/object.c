/* capture/src/object.c -- objects of the program's classes: made here, their special methods,
 * super(). See capture.h.
 *
 * A special method is stepped as CPython calls it: the operation runs, and the frame that it begins
 * is awaited (invoke.c). What is begun besides, or given back by more than that, breaks. */
#include "capture.h"

/* What TYPE has as NAME, if that is a Python function: borrowed. */
static PyObject *function_of(PyTypeObject *type, const char *name)
{
    PyObject *found = _PyType_Lookup(type, word_of(name));

    return found && PyFunction_Check(found) && !is_array_function(found) ? found : NULL;
}

/* Does TYPE's metaclass leave to type what calls and attributes do? */
static bool is_plain_class(PyTypeObject *type)
{
    const PyTypeObject *meta = Py_TYPE(type);

    return meta == &PyType_Type ||
           ((PyObject *)meta == polyfill("ABCMeta") && meta->tp_call == PyType_Type.tp_call &&
            meta->tp_getattro == PyType_Type.tp_getattro &&
            meta->tp_setattro == PyType_Type.tp_setattro);
}

struct shadow *class_source(struct capture *c, PyObject *value, struct shadow *of)
{
    PyTypeObject *type = Py_TYPE(value);
    PyObject *word = word_of("__class__");

    if (of && of->kind == SHADOW_OBJECT)
        return of->object.of_class;
    if (!of || of->kind != SHADOW_SOURCE || !is_plain_class(type) ||
        _PyType_Lookup(type, word) != _PyType_Lookup(&PyBaseObject_Type, word) ||
        !value_type_known(c, value, of))
        return NULL;
    return source_attribute(c, of, "__class__", (PyObject *)type);
}

/* CALL is one of FUNCTION, or NULL, which the class that OF is the source of has as NAME.
 * ENDED_BEFORE: it cannot be stepped. */
enum ended step_method(struct capture *c, struct watched *w, const struct call *call,
                       PyObject *function, struct shadow *of, const char *name)
{
    of = function && of ? source_attribute(c, of, name, function) : NULL;
    return of && can_step(c, function, of) ? inlined(c, w, call, (PyFunctionObject *)function, of)
                                           : ENDED_BEFORE;
}

enum ended special(struct capture *c, struct watched *w, const char *name, const struct call *call)
{
    PyTypeObject *type = Py_TYPE(call->args[0]);
    PyObject *function = type->tp_flags & Py_TPFLAGS_HEAPTYPE ? function_of(type, name) : NULL;
    struct call made = *call;

    c->kind = NULL;
    made.operates = !call->bound; /* what is stepped is not called as it is */
    return function ? step_method(c, w, &made, function,
                                  class_source(c, call->args[0], call->shadows[0]), name)
                    : ENDED_BEFORE;
}

/* ---- made here ---- */

bool is_ordinary(struct capture *c, PyTypeObject *type, struct shadow *of)
{
    static const char *const as_object[] = {"__new__", "__setattr__", "__getattribute__",
                                            "__delattr__"},
                             *const none[] = {"__getattr__", "__del__"};

    if (!is_plain_class(type) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
        type->tp_flags & Py_TPFLAGS_IS_ABSTRACT || type->tp_new != PyBaseObject_Type.tp_new ||
        type->tp_setattro != PyObject_GenericSetAttr ||
        type->tp_getattro != PyObject_GenericGetAttr || type->tp_finalize || type->tp_del ||
        !value_known(c, (PyObject *)type, of))
        return false;
    for (int i = 0; i < 4 && !of->source.is_ordinary; i++) {
        PyObject *value = _PyType_Lookup(&PyBaseObject_Type, word_of(as_object[i]));
        struct shadow *source = source_attribute(c, of, as_object[i], value);
        if (!source || guard_on(c, source, "ID_MATCH", value))
            return false;
        source->source.guarded = GUARDED_VALUE;
    }
    for (int i = 0; i < 2 && !of->source.is_ordinary; i++)
        if (_PyType_Lookup(type, word_of(none[i])) ||
            guard_on(c, of, "NO_HASATTR", word_of(none[i])))
            return false;
    of->source.is_ordinary = true;
    return true;
}

enum ended construct(struct capture *c, struct watched *w, const struct call *call)
{
    PyTypeObject *type = (PyTypeObject *)call->callable;
    PyObject *function,
        *init = PyType_Check(call->callable) ? _PyType_Lookup(type, word_of("__init__")) : NULL;
    struct shadow *of, *made = shadow_new(c, SHADOW_OBJECT, 0);
    struct call making = with_self(call, NULL, made);

    c->kind = NULL;
    if (!init || !is_ordinary(c, type, call->of) || !made)
        return ENDED_BEFORE;
    making.made = made;
    made->object.of_class = call->of;
    function = function_of(type, "__init__");
    if (!function && init == _PyType_Lookup(&PyBaseObject_Type, word_of("__init__")) &&
        !call->count && (of = source_attribute(c, call->of, "__init__", init)) &&
        !guard_on(c, of, "ID_MATCH", init))
        return stack_result(c, w, call->slots, run_call(call), made);
    return step_method(c, w, &making, function, call->of, "__init__");
}

/* ---- properties, class methods ---- */

enum ended call_property(struct capture *c, struct watched *w, PyObject *name, PyObject *property,
                         const struct call *call)
{
    const char *which = call->count > 1 ? "fset" : "fget";
    OWNED PyObject *function = PyObject_GetAttrString(property, which), *kept = Py_NewRef(property);
    struct shadow *of = function && PyFunction_Check(function)
                            ? class_source(c, call->args[0], call->shadows[0])
                            : NULL;
    struct call made = *call;
    enum ended ended;

    PyErr_Clear();
    c->kind = NULL;
    made.callable = function;
    ended = step_method(c, w, &made, function, of ? source_read(c, of, '.', name, property) : NULL,
                        which);
    return ended == ENDED_BEFORE && !c->kind
               ? break_at(c, "attribute", "a property that cannot be followed")
               : ended;
}

enum ended bool_of_object(struct capture *c, struct watched *w)
{
    struct operands operands = {{stack_value(w, 0)}, {stack_shadow(w, 0)}};
    const struct call call = operator_call("truth", 1, 1, &operands);
    struct shadow *of = operands.of[0];
    PyTypeObject *type = Py_TYPE(operands.values[0]);
    enum ended ended;

    c->kind = NULL;
    if (!of || (of->kind != SHADOW_OBJECT && of->kind != SHADOW_SOURCE) ||
        !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || is_graph(operands.values[0], of))
        return ENDED_BEFORE;
    ended = operate_special(c, w, "bool", &call);
    if (ended == ENDED_BEFORE && !c->kind)
        ended = operate_special(c, w, "len", &call);
    if (ended != ENDED_BEFORE || c->kind || type->tp_as_number->nb_bool ||
        type->tp_as_sequence->sq_length || type->tp_as_mapping->mp_length ||
        !(of = class_source(c, operands.values[0], of)) ||
        guard_on(c, of, "NO_HASATTR", word_of("__bool__")) ||
        guard_on(c, of, "NO_HASATTR", word_of("__len__")))
        return ended;
    return known_result(c, w, 1, Py_NewRef(Py_True));
}

/* ---- super() ---- */

/* TYPE and SELF are super()'s. */
struct shadow *super_shadow(struct capture *c, struct shadow *of_type, struct shadow *of_self,
                            PyObject *type, PyObject *self)
{
    struct shadow *made = type && self && of_type && of_self && value_known(c, type, of_type)
                              ? shadow_new(c, SHADOW_SUPER, 2)
                              : NULL;

    if (!made)
        return NULL;
    made->value = capture_keep(c, type);
    made->super.self = capture_keep(c, self);
    made->items[0] = of_type;
    made->items[1] = of_self;
    made->count = 2;
    return made;
}

enum ended super_made(struct capture *c, struct watched *w, const struct call *call,
                      const char *name)
{
    struct shadow *of_self = w->code->co_argcount ? w->shadow[0] : NULL, *made;
    PyObject *self = w->code->co_argcount ? compat_local(w->frame, 0) : NULL, *cell;
    int i = w->variables - w->code->co_nfreevars;

    if (call->count) {
        made =
            call->count == 2 && PyType_Check(call->args[0])
                ? super_shadow(c, call->shadows[0], call->shadows[1], call->args[0], call->args[1])
                : NULL;
        return made ? stack_result(c, w, call->slots, run_call(call), made) : ENDED_BEFORE;
    }
    while (i < w->variables && PyUnicode_CompareWithASCIIString(
                                   PyTuple_GET_ITEM(w->code->co_localsplusnames, i), "__class__"))
        i++;
    cell = i < w->variables ? compat_local(w->frame, i) : NULL;
    if (self && PyCell_Check(self)) {
        self = compat_cell_content(self);
        of_self = of_self && of_self->kind == SHADOW_CELL ? of_self->items[0] : NULL;
    }
    made = cell && w->shadow[i] && w->shadow[i]->kind == SHADOW_CELL
               ? super_shadow(c, w->shadow[i]->items[0], of_self, compat_cell_content(cell), self)
               : NULL;
    return made ? stack_result(c, w, call->slots, run_call(call), made) : ENDED_BEFORE;
}

/* The shadow of NAME of super(TYPE, SELF), with shadow OF: what the class behind TYPE has, which
 * comes to the same if that has the rest of SELF's classes for its own. NULL: it is none that is
 * known. */
struct shadow *super_method(struct capture *c, PyObject *type, PyObject *self, struct shadow *of,
                            PyObject *name)
{
    OWNED PyObject *mro = Py_NewRef(Py_TYPE(self)->tp_mro);
    PyObject *next, *found;
    struct shadow *source = class_source(c, self, of->items[1]);
    Py_ssize_t at = 0, count = PyTuple_GET_SIZE(mro);
    OWNED PyObject *number = NULL;

    while (at < count && PyTuple_GET_ITEM(mro, at) != type)
        at++;
    next = ++at < count ? PyTuple_GET_ITEM(mro, at) : NULL;
    if (!source || !next)
        return NULL;
    found = ((PyTypeObject *)next)->tp_flags & Py_TPFLAGS_HEAPTYPE
                ? PyDict_GetItemWithError(((PyTypeObject *)next)->tp_dict, name)
                : NULL;
    if (!found && PyTuple_GET_SIZE(((PyTypeObject *)next)->tp_mro) != count - at)
        return NULL;
    for (Py_ssize_t i = at; i < count && !found; i++)
        if (PyTuple_GET_ITEM(mro, i) != PyTuple_GET_ITEM(((PyTypeObject *)next)->tp_mro, i - at))
            return NULL;
    found = _PyType_Lookup((PyTypeObject *)next, name);
    number = PyLong_FromSsize_t(at);
    if (!found || !number || !(source = source_attribute(c, source, "__mro__", mro)) ||
        !(source = source_read(c, source, '[', number, next)) ||
        !(source = source_read(c, source, '.', name, found)))
        return NULL;
    if (PyFunction_Check(found))
        return value_known(c, found, source) ? method_of(c, of, name, found, source, of->items[1])
                                             : NULL;
    if (found != _PyType_Lookup(&PyBaseObject_Type, word_of("__init__")) ||
        guard_on(c, source, "ID_MATCH", found))
        return NULL;
    return method_of(c, of, name, NULL, NULL, NULL);
}

enum ended operate_special(struct capture *c, struct watched *w, const char *name,
                           const struct call *call)
{
    PyObject *object_ne = _PyType_Lookup(&PyBaseObject_Type, word_of("__ne__"));
    struct shadow *of;
    char text[24];

    snprintf(text, sizeof text, "__%s%.*s__", call->reflected ? "r" : "", (int)strcspn(name, "_"),
             name);
    if (!strcmp(text, "__ne__") && (of = class_source(c, call->args[0], call->shadows[0])) &&
        object_ne &&
        /* what __eq__ says, negated */
        _PyType_Lookup(Py_TYPE(call->args[0]), word_of("__ne__")) == object_ne)
        return (of = source_attribute(c, of, text, object_ne)) &&
                       !guard_on(c, of, "ID_MATCH", object_ne)
                   ? special(c, w, "__eq__", call)
                   : ENDED_BEFORE;
    return special(c, w, text, call);
}
