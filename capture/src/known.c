/* capture/src/known.c -- what is known of functions: of numpy's and torch's by name, of builtins
 * by what they are. See capture.h. */
#include "capture.h"

/* Is CALLABLE a function of MODULE's, in C? */
static bool is_of(PyObject *callable, const char *module)
{
    PyObject *of =
        PyCFunction_CheckExact(callable) ? ((PyCFunctionObject *)callable)->m_module : NULL;

    return of && PyUnicode_CheckExact(of) && !PyUnicode_CompareWithASCIIString(of, module);
}

static enum ended length(struct capture *c, struct watched *w, const struct call *call,
                         const char *name)
{
    PyObject *value = call->args[0];
    struct shadow *of = call->shadows[0], *shape;
    enum ended ended = operate_special(c, w, name, call);

    if (ended != ENDED_BEFORE || c->kind)
        return ended;
    if (is_graph(value, of)) {
        if (!is_fixed(c, value, of) || !value_type_known(c, value, of))
            return break_at(c, "data", "the length of a result, which may depend on its data");
        if ((shape = varying_shape(c, value, of)))
            return stack_result(c, w, call->slots, Py_NewRef(PyTuple_GET_ITEM(shape->value, 0)),
                                value_item(c, shape->value, shape, 0));
        c->shapes_read = true;
    } else if (of && of->kind == SHADOW_SOURCE && of->source.varies == VARIES_SHAPE) {
        /* its dimensions are guarded */
    } else if (PyDict_CheckExact(value) && of && of->kind == SHADOW_SOURCE && !c->foreign &&
               (of->source.changed ? is_apart(c, of) : value_type_known(c, value, of))) {
        Py_ssize_t more = 0; /* keys that it did not have before */
        for (const struct shadow *one = of->source.child; one; one = one->source.next)
            more += one->kind == SHADOW_CHANGED && one->source.is_new;
        guard_length(c, of, "DICT_LENGTH", PyDict_GET_SIZE(value) - more);
    } else if (!is_sequence(value) && !PyDict_CheckExact(value)
                   ? !((value_is_simple(value) || PyTuple_Check(value)) &&
                       value_known(c, value, of)) &&
                         !set_known(c, value, of)
                   : !value_type_known(c, value, of)) {
        return ENDED_BEFORE;
    }
    return known_result(c, w, call->slots, run_call(call));
}

/* isinstance(), issubclass() */
static enum ended instance(struct capture *c, struct watched *w, const struct call *call,
                           const char *name)
{
    PyObject *type = call->args[1], *word = word_of("__class__");
    const bool of_class = name[2] == 's';
    PyTypeObject *sub = of_class ? (PyTypeObject *)call->args[0] : Py_TYPE(call->args[0]);
    int is = 0;

    if (!value_known(c, type, call->shadows[1]) ||
        (of_class
             ? !Py_IS_TYPE(sub, &PyType_Type) || !value_known(c, call->args[0], call->shadows[0])
             : !value_type_known(c, call->args[0], call->shadows[0])))
        return ENDED_BEFORE;
    for (Py_ssize_t i = 0; i < (PyTuple_CheckExact(type) ? PyTuple_GET_SIZE(type) : 1) && !is;
         i++) {
        PyObject *one = PyTuple_CheckExact(type) ? PyTuple_GET_ITEM(type, i) : type;
        if (!PyType_Check(one))
            return ENDED_BEFORE;
        is = PyType_IsSubtype(sub, (PyTypeObject *)one);
        if ((of_class || sub != (PyTypeObject *)one) && /* the program's say */
            (!Py_IS_TYPE(one, &PyType_Type) ||
             (!is && (_PyType_Lookup(sub, word) != _PyType_Lookup(&PyBaseObject_Type, word) ||
                      !Py_IS_TYPE(_PyType_Lookup(sub, word_of("__getattribute__")),
                                  &PyWrapperDescr_Type)))))
            return ENDED_BEFORE;
    }
    return known_result(c, w, call->slots, PyBool_FromLong(is));
}

static enum ended type_of(struct capture *c, struct watched *w, const struct call *call,
                          const char *name)
{
    struct shadow *of = class_source(c, call->args[0], call->shadows[0]);

    if (of)
        return stack_result(c, w, call->slots, run_call(call), of);
    return value_type_known(c, call->args[0], call->shadows[0])
               ? known_result(c, w, call->slots, run_call(call))
               : ENDED_BEFORE;
}

static enum iteration iteration_named(const char *name)
{
    if (!strcmp(name, "map"))
        return ITERATES_MAP;
    if (!strcmp(name, "filter"))
        return ITERATES_FILTER;
    return strcmp(name, "enumerate") ? ITERATES_ZIP : ITERATES_ENUMERATE;
}

/* enumerate(), zip(), map(), filter(): the iterators of their arguments are made here, so that they
 * are known. */
static enum ended go_through(struct capture *c, struct watched *w, const struct call *call,
                             const char *name)
{
    const int first = name[0] == 'm' || name[0] == 'f', last = name[0] == 'e' ? 1 : call->count;
    struct shadow *shadow = iterator_shadow(c, iteration_named(name), first ? call->args[0] : NULL,
                                            first ? call->shadows[0] : NULL),
                  *of;
    struct call made = *call;
    PyObject *args[16 + 1], *iterator;
    int large = 0;

    if (last > 16 || !shadow || (first && !call->shadows[0]))
        return ENDED_BEFORE;
    /* where it begins to count */
    if (last < call->count &&
        (!PyLong_CheckExact(call->args[1]) || !value_known(c, call->args[1], call->shadows[1]) ||
         labs(PyLong_AsLongAndOverflow(call->args[1], &large)) >= INT_MAX || large))
        return ENDED_BEFORE;
    made.args = args;
    for (int i = 0; i < call->count; i++)
        args[i] = call->args[i];
    for (int i = first; i < last; i++) {
        if (iterator_of(c, call->args[i], call->shadows[i], &iterator, &of))
            return ENDED_BEFORE;
        shadow_add(c, shadow, args[i] = iterator, of); /* which keeps it */
        Py_DECREF(iterator);
    }
    return c->failed ? ENDED_BEFORE : stack_result(c, w, call->slots, run_call(&made), shadow);
}

static enum ended next_call(struct capture *c, struct watched *w, const struct call *call,
                            const char *name)
{
    OWNED PyObject *otherwise = call->count == 2 ? Py_NewRef(call->args[1]) : NULL;
    struct shadow *of_otherwise = otherwise ? call->shadows[1] : NULL;
    const struct attempt attempt = attempt_begin(c);
    enum ended ended = iterator_next(c, w, call->args[0], call->shadows[0], call->slots);

    if (ended == ENDED_BEFORE || ended == ENDED_RAISED || stack_value(w, 0) != polyfill("end"))
        return ended;
    if (otherwise) {
        stack_result(c, w, 1, Py_NewRef(otherwise), ended ? NULL : of_otherwise);
        return ended;
    }
    attempt_undo(c, &attempt); /* a hit does it again */
    return PyErr_SetObject(PyExc_StopIteration, c->raised), ENDED_RAISED;
}

/* getattr() with a name that is known, as the instruction would read it. */
static enum ended by_name(struct capture *c, struct watched *w, const struct call *call,
                          const char *name_of_it)
{
    PyObject *owner = call->args[0], *other = call->count == 3 ? call->args[2] : NULL;
    OWNED PyObject *name = Py_NewRef(call->args[1]);
    enum ended ended;

    if (!PyUnicode_CheckExact(name) || !value_known(c, name, call->shadows[1]))
        return ENDED_BEFORE;
    if (other && lacks_attribute(c, owner, call->shadows[0], name))
        return stack_result(c, w, call->slots, Py_NewRef(other), call->shadows[2]);
    ended = read_attribute(c, w, call->slots, owner, call->shadows[0], name, false);
    if (ended != ENDED_RAISED || !other || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return ended;
    PyErr_Clear();
    return stack_result(c, w, call->slots, Py_NewRef(other), NULL), ENDED_BEHIND;
}

/* ---- objects of builtin classes, made here ---- */

static const char *const callables[] = {"partial", "itemgetter", "methodcaller"};

/* An exception, a set of what is known, functools.partial(), operator's getters: nobody but who has
 * it sees it. */
static enum ended make_object(struct capture *c, struct watched *w, const struct call *call)
{
    PyTypeObject *type = (PyTypeObject *)call->callable;
    const bool set = type == &PySet_Type || type == &PyFrozenSet_Type,
               getter = call->callable == polyfill(callables[1]) ||
                        call->callable == polyfill(callables[2]);
    const bool exception = PyType_Check(call->callable) &&
                           PyType_IsSubtype(type, (PyTypeObject *)PyExc_BaseException) &&
                           !(type->tp_flags & Py_TPFLAGS_HEAPTYPE);
    struct shadow *made;

    if (call->callable == polyfill(callables[0]) && call->count && call->shadows[0] &&
        (call->shadows[0]->kind == SHADOW_CALL || !Py_IS_TYPE(call->args[0], type)))
        return step_polyfill(c, w, "_make_partial", call);
    if (call->names || call->count > 7 ||
        !(set ? call->count < 2 &&
                    (are_known(c, call, true) || is_set(call->args[0], call->shadows[0]))
          : getter ? call->count == 1 && are_known(c, call, false)
                   : exception || call->callable == polyfill("made_partial")))
        return ENDED_BEFORE;
    made = made_by(c, shadow_const(c, call->callable), call->count, call->shadows);
    return made ? stack_result(c, w, call->slots, run_call(call), made) : ENDED_BEFORE;
}

/* A call of what make_object() made. */
static enum ended call_made(struct capture *c, struct watched *w, const struct call *call)
{
    static const char *const parts[] = {"func", "args", "keywords"}, *const names[] = {
                                                                         "_partial", "_itemgetter",
                                                                         "_methodcaller"};
    PyObject *args[16];
    struct shadow *shadows[16];
    struct call made = *call;
    int which = 0;

    while (which < 3 && (PyObject *)Py_TYPE(call->callable) != polyfill(callables[which]))
        which++;
    made.count += (int)call->of->count - 1;
    if (which == 3 || made.count > 16)
        return ENDED_BEFORE;
    for (int i = 0; i < made.count; i++) {
        const int at = i - (made.count - call->count);
        shadows[i] = at >= 0 ? call->shadows[at] : call->of->items[1 + i];
        args[i] = at >= 0 ? call->args[at]
                  : which ? shadows[i]->value
                          : PyObject_GetAttrString(call->callable, parts[i]);
        if (at < 0 && !which)
            Py_XDECREF(args[i]); /* the callable has it */
    }
    made.args = args;
    made.shadows = shadows;
    return step_polyfill(c, w, names[which], &made);
}

/* What does a call of a builtin function or type with LEAST to MOST arguments. */
struct builtin {
    const char *name;
    int least, most;
    enum ended (*call)(struct capture *c, struct watched *w, const struct call *call,
                       const char *name);
};

static const struct builtin *builtin_of(const char *name)
{
    static const struct builtin known[] = {{"len", 1, 1, length},
                                           {"super", 0, 2, super_made},
                                           {"isinstance", 2, 2, instance},
                                           {"issubclass", 2, 2, instance},
                                           {"type", 1, 1, type_of},
                                           {"zip", 1, 16, go_through},
                                           {"enumerate", 1, 2, go_through},
                                           {"map", 2, 16, go_through},
                                           {"filter", 2, 2, go_through},
                                           {"iter", 1, 1, iterate_call},
                                           {"reversed", 1, 1, iterate_call},
                                           {"next", 1, 2, next_call},
                                           {"getattr", 2, 3, by_name}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return &known[i];
    return NULL;
}

/* A call of BUILTIN that only moves items, or goes through an iterator or calls functions: a
 * function in Python is stepped. */
static enum ended step_instead(struct capture *c, struct watched *w, const struct call *call,
                               const char *builtin)
{
    const int named = call->names ? (int)PyTuple_GET_SIZE(call->names) : 0;
    PyObject *first = call->count ? call->args[0] : NULL,
             *start = call->count == 2 ? call->args[1] : NULL, *keywords;
    PyObject *how = PyDict_GetItemString(polyfill("instead"), builtin);
    const struct shadow *of = call->count ? call->shadows[0] : NULL;
    enum ended ended = first ? move(c, w, builtin, call) : ENDED_BEFORE;
    char name[16];
    int least, most;

    if (ended != ENDED_BEFORE || c->kind)
        return ended;
    if (!how || !PyArg_ParseTuple(how, "iiO", &least, &most, &keywords) ||
        call->count - named < least || call->count - named > most ||
        (!strcmp(builtin, "iadd") && !PyList_CheckExact(first)) ||
        ((!strcmp(builtin, "list") || !strcmp(builtin, "tuple")) && is_graph(first, of)) ||
        /* pairs */
        (!strcmp(builtin, "dict") && first &&
         !(of && of->kind == SHADOW_ITERATOR &&
           ((of->iterator.how == ITERATES_ZIP && of->count == 2) ||
            of->iterator.how == ITERATES_ENUMERATE))) ||
        (!strcmp(builtin, "sum") && start && !PyLong_CheckExact(start) &&
         !PyFloat_CheckExact(start) && !value_is_array(start)))
        return ENDED_BEFORE;
    for (int i = 0; i < named; i++)
        if (PySequence_Contains(keywords, PyTuple_GET_ITEM(call->names, i)) != 1)
            return ENDED_BEFORE;
    snprintf(name, sizeof name, "_%s", builtin);
    return step_polyfill(c, w, name, call);
}

static enum ended call_builtin(struct capture *c, struct watched *w, const struct call *call)
{
    const char *name = PyType_Check(call->callable) ? ((PyTypeObject *)call->callable)->tp_name
                       : PyCFunction_Check(call->callable)
                           ? ((PyCFunctionObject *)call->callable)->m_ml->ml_name
                           : "";
    const bool is = builtin_named(name) == call->callable,
               numbers = is_of(call->callable, "math") ||
                         (is_of(call->callable, "_operator") && strncmp(name, "is_", 3));
    const bool steps =
        is || is_of(call->callable, "_functools") || is_of(call->callable, "_operator");
    const struct builtin *builtin = steps ? builtin_of(name) : NULL;
    enum ended ended;

    if (builtin && !call->names && call->count >= builtin->least && call->count <= builtin->most &&
        ((ended = builtin->call(c, w, call, name)) != ENDED_BEFORE || c->kind))
        return ended;
    if ((((is && is_in(name, "pure")) || call->callable == polyfill("order")) &&
         are_known(c, call, true)) ||
        ((numbers || call->callable == polyfill("fspath")) && are_known(c, call, false)))
        return known_result(c, w, call->slots, run_call(call));
    if (PyType_Check(call->callable) &&
        PySequence_Contains(polyfill("moving"), call->callable) == 1)
        return mirror_iterator(c, w, call);
    c->kind = NULL;
    if (!builtin && ((ended = make_object(c, w, call)) != ENDED_BEFORE || c->kind))
        return ended;
    if (!call->names && call->count &&
        (is ? is_in(name, "on_arrays")
            : is_of(call->callable, "_operator") && keeps_shape(name, 2, true, true)) &&
        (has_graph(c, call->args[0], call->shadows[0]) ||
         (call->count > 1 && has_graph(c, call->args[1], call->shadows[1]))))
        return array_call(c, w, call, name);
    return steps ? step_instead(c, w, call, name) : ENDED_BEFORE;
}

enum ended call_known(struct capture *c, struct watched *w, const struct call *call)
{
    struct shadow *of = call->of;
    PyObject *self = of && of->kind == SHADOW_METHOD && PyCFunction_Check(call->callable)
                         ? PyCFunction_GET_SELF(call->callable)
                         : NULL;
    struct call whole;

    if (of && of->kind == SHADOW_METHOD && !call->count && !PyMethod_Check(call->callable) &&
        of->method.owner->kind == SHADOW_SUPER)
        return known_result(c, w, call->slots, run_call(call)); /* object.__init__() */
    if (of && of->kind == SHADOW_CALL)
        return call_made(c, w, call);
    if (self && of->method.owner->kind == SHADOW_GENERATOR &&
        !PyUnicode_CompareWithASCIIString(of->method.name, "send") && call->count == 1 &&
        !call->names) {
        c->sent = call;
        const enum ended ended = next_call(
            c, w,
            &(struct call){
                .args = &self, .shadows = &of->method.owner, .count = 1, .slots = call->slots},
            "next");
        c->sent = NULL;
        return ended;
    }
    if (self &&
        (PyList_CheckExact(self) || PyDict_CheckExact(self) || is_set(self, of->method.owner))) {
        whole = with_self(call, self, of->method.owner);
        whole.bound = false;
        whole.callable = _PyType_Lookup(Py_TYPE(self), of->method.name);
        return whole.callable ? call_method(c, w, &whole, PyUnicode_AsUTF8(of->method.name))
                              : ENDED_BEFORE;
    }
    if (self && value_is_simple(self) && value_known(c, self, of->method.owner) &&
        are_known(c, call, true))
        return known_result(c, w, call->slots, run_call(call));
    if (of && (of->kind == SHADOW_SOURCE || of->kind == SHADOW_CONST) &&
        (PyCFunction_Check(call->callable) || PyType_Check(call->callable) ||
         call->callable == polyfill("order") || call->callable == polyfill("made_partial")) &&
        !is_array_function(call->callable) && value_known(c, call->callable, of))
        return call_builtin(c, w, call);
    return ENDED_BEFORE;
}
