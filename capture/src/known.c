/* capture/src/known.c -- calls of builtins, and of methods of built-in types. See capture.h.
 *
 * Tables in dyntrace._polyfills tell how capture handles a builtin. `builtins` lists the builtins
 * that this file handles. `instead` lists builtins in place of which capture steps through a Python
 * function (a polyfill). `pure` lists builtins that capture calls if their arguments are known. */
#include "capture.h"

enum { MOST_ITERATORS = 16, MOST_MADE_ARGUMENTS = 7 };

/* ---- len() ---- */

/* Execute len() of an array, or of the result of a graph node. The length is an input of the graph
 * or a constant. */
static enum ended execute_len_of_result(struct capture *c, struct watched *w,
                                        const struct call *call)
{
    PyObject *value = call->args[0];
    struct shadow *of = call->shadows[0];
    struct shadow *shape;
    PyObject *size;

    if (!has_fixed_shape(c, value, of) || !ensure_type_known(c, value, of))
        return break_graph(c, "data", "the length of a result, which may depend on its data");
    shape = find_varying_shape(c, value, of);
    if (!shape) {
        c->shapes_read = true;
        return stack_replace_known(c, w, call->slots, run_call(call));
    }
    size = Py_NewRef(PyTuple_GET_ITEM(shape->value, 0));
    return stack_replace(c, w, call->slots, size, get_item_shadow_at(c, shape->value, shape, 0));
}

/* Guard the length of a dict that existed before the watched call. The expected length excludes the
 * keys that effects have added. */
static bool guard_dict_length(struct capture *c, PyObject *dict, struct shadow *of)
{
    Py_ssize_t added = 0;

    if (c->foreign)
        return false;
    if (of->source.changed ? !ensure_not_aliased(c, of) : !ensure_type_known(c, dict, of))
        return false;
    for (const struct shadow *one = of->source.child; one; one = one->source.next)
        if (one->kind == SHADOW_CHANGED && one->source.is_new)
            added++;
    guard_length(c, of, "DICT_LENGTH", PyDict_GET_SIZE(dict) - added);
    return true;
}

static bool is_length_known(struct capture *c, PyObject *value, struct shadow *of)
{
    if (is_varying_shape(of)) /* a guard on the array already fixes the number of its dimensions */
        return true;
    if (PyDict_CheckExact(value) && is_source(of))
        return guard_dict_length(c, value, of);
    if (PyDict_CheckExact(value) || is_sequence(value))
        return ensure_type_known(c, value, of);
    if ((value_is_simple(value) || PyTuple_Check(value)) && ensure_value_known(c, value, of))
        return true;
    return ensure_set_known(c, value, of);
}

static enum ended execute_len(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *value = call->args[0];
    struct shadow *of = call->shadows[0];
    enum ended ended = step_operator_method(c, w, "len", call);

    if (is_instruction_handled(c, ended))
        return ended;
    if (is_graph_value(value, of))
        return execute_len_of_result(c, w, call);
    if (!is_length_known(c, value, of))
        return ENDED_BEFORE;
    return stack_replace_known(c, w, call->slots, run_call(call));
}

/* ---- isinstance(), issubclass(), type() ---- */

/* Do TYPE's instances inherit __class__ from `object`, and does TYPE read attributes by a
 * __getattribute__ in C? */
static bool has_plain_class_attribute(PyTypeObject *type)
{
    PyObject *word = intern_word("__class__");
    PyObject *getter = _PyType_Lookup(type, intern_word("__getattribute__"));

    if (_PyType_Lookup(type, word) != _PyType_Lookup(&PyBaseObject_Type, word))
        return false;
    return Py_IS_TYPE(getter, &PyWrapperDescr_Type);
}

/* Is SUB a subclass of ANY, a class or a tuple of classes? Returns 1 or 0; -1 if code of the
 * program may decide the answer. IS_CLASS: the call is issubclass(), otherwise isinstance(). */
static int check_subclass(PyTypeObject *sub, PyObject *any, bool is_class)
{
    const bool several = PyTuple_CheckExact(any);
    const Py_ssize_t count = several ? PyTuple_GET_SIZE(any) : 1;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = several ? PyTuple_GET_ITEM(any, i) : any;
        bool is, is_itself;

        if (!PyType_Check(one))
            return -1;
        is = PyType_IsSubtype(sub, (PyTypeObject *)one);
        /* isinstance() calls no method if the class is the object's own type */
        is_itself = !is_class && sub == (PyTypeObject *)one;
        if (!is_itself && !Py_IS_TYPE(one, &PyType_Type))
            return -1;
        if (!is && !has_plain_class_attribute(sub))
            return -1;
        if (is)
            return 1;
    }
    return 0;
}

static enum ended execute_isinstance(struct capture *c, struct watched *w, const struct call *call,
                                     bool is_class)
{
    PyObject *value = call->args[0];
    PyTypeObject *sub = is_class ? (PyTypeObject *)value : Py_TYPE(value);
    int is;

    if (!ensure_value_known(c, call->args[1], call->shadows[1]))
        return ENDED_BEFORE;
    if (is_class && !Py_IS_TYPE(value, &PyType_Type))
        return ENDED_BEFORE;
    if (is_class ? !ensure_value_known(c, value, call->shadows[0])
                 : !ensure_type_known(c, value, call->shadows[0]))
        return ENDED_BEFORE;
    is = check_subclass(sub, call->args[1], is_class);
    if (is < 0)
        return ENDED_BEFORE;
    return stack_replace_known(c, w, call->slots, PyBool_FromLong(is));
}

static enum ended execute_type(struct capture *c, struct watched *w, const struct call *call)
{
    struct shadow *of = find_class_source(c, call->args[0], call->shadows[0]);

    if (of)
        return stack_replace(c, w, call->slots, run_call(call), of);
    if (!ensure_type_known(c, call->args[0], call->shadows[0]))
        return ENDED_BEFORE;
    return stack_replace_known(c, w, call->slots, run_call(call));
}

/* ---- iterators ---- */

/* Is the start value of enumerate() known, and not too large? */
static bool is_start_value_known(struct capture *c, PyObject *start, struct shadow *of)
{
    int large = 0;
    long number;

    if (!PyLong_CheckExact(start) || !ensure_value_known(c, start, of))
        return false;
    number = PyLong_AsLongAndOverflow(start, &large);
    return !large && labs(number) < INT_MAX;
}

/* Replace arguments FIRST to LAST - 1 of CALL by iterators over these arguments. Capture then knows
 * the shadows of the iterators. Puts the iterators into ARGS, and into SHADOW, which keeps them
 * alive. */
static bool make_iterators(struct capture *c, const struct call *call, int first, int last,
                           struct shadow *shadow, PyObject **args)
{
    for (int i = first; i < last; i++) {
        OWNED PyObject *iterator = NULL;
        struct shadow *of;

        if (make_iterator(c, call->args[i], call->shadows[i], &iterator, &of))
            return false;
        args[i] = iterator;
        shadow_add(c, shadow, iterator, of);
    }
    return !c->failed;
}

/* Make an object of the class enumerate, zip, map or filter. */
static enum ended make_iterating_object(struct capture *c, struct watched *w,
                                        const struct call *call, enum iteration how)
{
    const bool has_function = how == ITERATES_MAP || how == ITERATES_FILTER;
    const int first = has_function ? 1 : 0;
    const int last = how == ITERATES_ENUMERATE ? 1 : call->count;
    PyObject *function = has_function ? call->args[0] : NULL;
    struct shadow *of_function = has_function ? call->shadows[0] : NULL;
    PyObject *args[MOST_ITERATORS + 1];
    struct call made = *call;
    struct shadow *shadow;

    if (last > MOST_ITERATORS || (has_function && !of_function))
        return ENDED_BEFORE;
    shadow = make_iterator_shadow(c, how, function, of_function);
    if (!shadow)
        return ENDED_BEFORE;
    if (last < call->count && !is_start_value_known(c, call->args[1], call->shadows[1]))
        return ENDED_BEFORE;
    memcpy(args, call->args, sizeof *args * (size_t)call->count);
    if (!make_iterators(c, call, first, last, shadow, args))
        return ENDED_BEFORE;
    made.args = args;
    return stack_replace(c, w, call->slots, run_call(&made), shadow);
}

/* Execute next(iterator) or next(iterator, default). */
static enum ended execute_next(struct capture *c, struct watched *w, const struct call *call)
{
    const bool has_default = call->count == 2;
    OWNED PyObject *otherwise = has_default ? Py_NewRef(call->args[1]) : NULL;
    struct shadow *of_otherwise = has_default ? call->shadows[1] : NULL;
    const struct attempt attempt = attempt_begin(c);
    enum ended ended = iterator_push_next(c, w, call->args[0], call->shadows[0], call->slots);

    if (!is_instruction_done(ended) || stack_value(w, 0) != get_polyfill("end"))
        return ended;
    if (has_default) {
        if (ended == ENDED_BEHIND)
            of_otherwise = NULL;
        stack_replace(c, w, 1, Py_NewRef(otherwise), of_otherwise);
        return ended;
    }
    /* undo the changes of this call of next(), because the compiled code will execute the call
     * again */
    attempt_undo(c, &attempt);
    PyErr_SetObject(PyExc_StopIteration, c->raised);
    return ENDED_RAISED;
}

/* Execute generator.send(value). */
static enum ended execute_send(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *generator = PyCFunction_GET_SELF(call->callable);
    struct shadow *of = call->of->method.owner;
    const struct call next = {.args = &generator, .shadows = &of, .count = 1, .slots = call->slots};
    enum ended ended;

    c->sent = call;
    ended = execute_next(c, w, &next);
    c->sent = NULL;
    return ended;
}

/* ---- getattr() ---- */

/* Execute getattr() with a known name, like the instruction LOAD_ATTR. */
static enum ended execute_getattr(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *owner = call->args[0];
    PyObject *otherwise = call->count == 3 ? call->args[2] : NULL;
    OWNED PyObject *name = Py_NewRef(call->args[1]);
    enum ended ended;

    if (!PyUnicode_CheckExact(name) || !ensure_value_known(c, name, call->shadows[1]))
        return ENDED_BEFORE;
    if (otherwise && lacks_attribute(c, owner, call->shadows[0], name))
        return stack_replace(c, w, call->slots, Py_NewRef(otherwise), call->shadows[2]);
    ended = read_attribute(c, w, call->slots, owner, call->shadows[0], name, false);
    if (ended != ENDED_RAISED || !otherwise)
        return ended;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return ended;
    PyErr_Clear();
    stack_replace(c, w, call->slots, Py_NewRef(otherwise), NULL);
    return ENDED_BEHIND;
}

/* ---- new objects of built-in classes ----
 *
 * Capture can call these classes: exceptions, set and frozenset with known items,
 * functools.partial, operator.itemgetter and operator.methodcaller. A new object is visible only to
 * the function that made it, so a plan can make the object again. */

enum made {
    MADE_NOT, /* capture cannot make the object again */
    /* a functools.partial: its polyfill makes the object by calling made_partial() */
    MADE_PARTIAL,
    /* the function made_partial(), which the polyfill of functools.partial calls */
    MADE_BY_POLYFILL,
    MADE_SET,       /* a set or frozenset of known items */
    MADE_GETTER,    /* operator.itemgetter() or operator.methodcaller() */
    MADE_EXCEPTION, /* an exception of a built-in class */
};

static bool is_builtin_exception(PyObject *callable)
{
    PyTypeObject *type = (PyTypeObject *)callable;

    if (!PyType_Check(callable) || (type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return false;
    return PyType_IsSubtype(type, (PyTypeObject *)PyExc_BaseException);
}

static enum made classify_made_object(const struct call *call)
{
    PyObject *callable = call->callable;

    if (callable == get_polyfill("partial"))
        return MADE_PARTIAL;
    if (callable == get_polyfill("made_partial"))
        return MADE_BY_POLYFILL;
    if (callable == (PyObject *)&PySet_Type || callable == (PyObject *)&PyFrozenSet_Type)
        return MADE_SET;
    if (callable == get_polyfill("itemgetter") || callable == get_polyfill("methodcaller"))
        return MADE_GETTER;
    return is_builtin_exception(callable) ? MADE_EXCEPTION : MADE_NOT;
}

/* Make a functools.partial. If the function that it calls is a functools.partial, too, the watched
 * call must have made that one: the program may change a partial that existed before. */
static enum ended execute_partial(struct capture *c, struct watched *w, const struct call *call)
{
    if (!call->count || !call->shadows[0])
        return ENDED_BEFORE;
    if (call->shadows[0]->kind != SHADOW_CALL &&
        (PyObject *)Py_TYPE(call->args[0]) == call->callable)
        return ENDED_BEFORE;
    return step_through_polyfill(c, w, "_make_partial", call);
}

static bool can_plan_make_object_again(struct capture *c, const struct call *call, enum made made)
{
    if (call->names || call->count > MOST_MADE_ARGUMENTS)
        return false;
    switch (made) {
    case MADE_SET:
        if (call->count > 1)
            return false;
        return ensure_arguments_known(c, call, true) ||
               is_known_set(call->args[0], call->shadows[0]);
    case MADE_GETTER:
        return call->count == 1 && ensure_arguments_known(c, call, false);
    case MADE_EXCEPTION:
    case MADE_BY_POLYFILL:
        return true;
    case MADE_PARTIAL:
    case MADE_NOT:
        break;
    }
    return false;
}

static enum ended execute_class_call(struct capture *c, struct watched *w, const struct call *call)
{
    const enum made made = classify_made_object(call);
    struct shadow *shadow;

    if (made == MADE_PARTIAL)
        return execute_partial(c, w, call);
    if (!can_plan_make_object_again(c, call, made))
        return ENDED_BEFORE;
    shadow =
        add_creation_effect(c, shadow_new_const(c, call->callable), call->count, call->shadows);
    return shadow ? stack_replace(c, w, call->slots, run_call(call), shadow) : ENDED_BEFORE;
}

/* Call an object that execute_class_call() made, by stepping through the polyfill of its class. The
 * polyfill gets the arguments with which the object was made, then the arguments of CALL. */
static enum ended call_made_object(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *type = (PyObject *)Py_TYPE(call->callable);
    PyObject *name = PyDict_GetItemWithError(get_polyfill("called"), type);
    const bool is_partial = type == get_polyfill("partial");
    const int before = (int)call->of->count - 1;
    PyObject *args[MOST_ITERATORS];
    struct shadow *shadows[MOST_ITERATORS];
    struct call made = *call;

    PyErr_Clear();
    made.count += before;
    if (!name || made.count > MOST_ITERATORS)
        return ENDED_BEFORE;
    for (int i = 0; i < before; i++) {
        shadows[i] = call->of->items[1 + i];
        args[i] = shadows[i]->value;
        if (is_partial) { /* only borrow the argument, because the partial keeps it alive */
            PyObject *part = PyTuple_GET_ITEM(get_polyfill("partial_parts"), i);

            args[i] = PyObject_GetAttr(call->callable, part);
            Py_XDECREF(args[i]);
        }
    }
    for (int i = 0; i < call->count; i++) {
        shadows[before + i] = call->shadows[i];
        args[before + i] = call->args[i];
    }
    made.args = args;
    made.shadows = shadows;
    return step_through_polyfill(c, w, PyUnicode_AsUTF8(name), &made);
}

/* ---- polyfills ---- */

/* Do the first arguments of CALL fulfil NEEDS? This is the condition at the end of an entry of the
 * table `instead`. */
static bool do_arguments_fulfil_condition(const struct call *call, const char *needs)
{
    PyObject *first = call->count ? call->args[0] : NULL;
    PyObject *second = call->count == 2 ? call->args[1] : NULL;
    const struct shadow *of = call->count ? call->shadows[0] : NULL;

    if (!strcmp(needs, "list"))
        return PyList_CheckExact(first);
    if (!strcmp(needs, "no array"))
        return !is_graph_value(first, of);
    if (!strcmp(needs, "number second") && second)
        return PyLong_CheckExact(second) || PyFloat_CheckExact(second) || value_is_array(second);
    if (!strcmp(needs, "pairs") && first) {
        if (!is_kind(of, SHADOW_ITERATOR))
            return false;
        if (of->iterator.how == ITERATES_ZIP)
            return of->count == 2;
        return of->iterator.how == ITERATES_ENUMERATE;
    }
    return true;
}

/* Does the polyfill of ENTRY, an entry of the table `instead`, accept the arguments of CALL? */
static bool does_polyfill_accept_arguments(const struct call *call, PyObject *entry)
{
    const int named = count_names(call);
    const int positional = call->count - named;
    int least, most;
    PyObject *keywords;
    const char *needs;

    if (!entry || !PyArg_ParseTuple(entry, "iiOs", &least, &most, &keywords, &needs))
        return false;
    if (positional < least || positional > most)
        return false;
    for (int i = 0; i < named; i++)
        if (PySequence_Contains(keywords, PyTuple_GET_ITEM(call->names, i)) != 1)
            return false;
    return do_arguments_fulfil_condition(call, needs);
}

/* Handle a builtin that only moves items, or a builtin that has a polyfill because it iterates or
 * calls functions. Leaves the outcome of other builtins undecided (see is_instruction_handled). */
static enum ended step_polyfill_of_builtin(struct capture *c, struct watched *w,
                                           const struct call *call, const char *builtin)
{
    enum ended ended = call->count ? execute_move(c, w, builtin, call) : ENDED_BEFORE;
    char name[16];

    if (is_instruction_handled(c, ended))
        return ended;
    if (!does_polyfill_accept_arguments(call, get_table_entry("instead", builtin)))
        return ENDED_BEFORE;
    snprintf(name, sizeof name, "_%s", builtin);
    return step_through_polyfill(c, w, name, call);
}

/* ---- builtins ---- */

/* Builtins that have a function of their own in this file. The table `builtins` of
 * dyntrace._polyfills has the number of arguments of each. */
enum builtin {
    BUILTIN_OTHER,
    BUILTIN_LEN,
    BUILTIN_SUPER,
    BUILTIN_ISINSTANCE,
    BUILTIN_ISSUBCLASS,
    BUILTIN_TYPE,
    BUILTIN_ZIP,
    BUILTIN_ENUMERATE,
    BUILTIN_MAP,
    BUILTIN_FILTER,
    BUILTIN_ITER,
    BUILTIN_REVERSED,
    BUILTIN_NEXT,
    BUILTIN_GETATTR,
};

static const char *const builtin_names[] = {
    [BUILTIN_OTHER] = "",
    [BUILTIN_LEN] = "len",
    [BUILTIN_SUPER] = "super",
    [BUILTIN_ISINSTANCE] = "isinstance",
    [BUILTIN_ISSUBCLASS] = "issubclass",
    [BUILTIN_TYPE] = "type",
    [BUILTIN_ZIP] = "zip",
    [BUILTIN_ENUMERATE] = "enumerate",
    [BUILTIN_MAP] = "map",
    [BUILTIN_FILTER] = "filter",
    [BUILTIN_ITER] = "iter",
    [BUILTIN_REVERSED] = "reversed",
    [BUILTIN_NEXT] = "next",
    [BUILTIN_GETATTR] = "getattr",
};

/* The function that a call calls: a builtin, or a C function of another module that capture handles
 * like a builtin. */
struct callee {
    const char *name;
    bool is_builtin;  /* CPython's own function of module `builtins` */
    bool is_operator; /* a C function of the module `operator` */
    /* a function of `math` or `operator` whose result depends only on the values of numbers */
    bool takes_numbers;
    bool steps;      /* capture may step through a polyfill instead of calling the function */
    bool is_handled; /* the function has an entry in the table `builtins` of dyntrace._polyfills */
    /* the builtin; BUILTIN_OTHER if this file does not handle a call with this number of
     * arguments */
    enum builtin which;
};

static const char *get_callee_name(PyObject *callable)
{
    if (PyType_Check(callable))
        return ((PyTypeObject *)callable)->tp_name;
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml->ml_name;
    return "";
}

static enum builtin find_builtin(const char *name)
{
    for (size_t i = 1; i < Py_ARRAY_LENGTH(builtin_names); i++)
        if (!strcmp(builtin_names[i], name))
            return (enum builtin)i;
    return BUILTIN_OTHER;
}

static struct callee find_name_of_callee(const struct call *call)
{
    PyObject *callable = call->callable;
    struct callee callee = {.name = get_callee_name(callable)};
    int least, most;
    PyObject *entry;

    callee.is_builtin = get_builtin(callee.name) == callable;
    callee.is_operator = is_c_function_of(callable, "_operator");
    callee.takes_numbers = is_c_function_of(callable, "math") ||
                           (callee.is_operator && !is_in_set(callee.name, "identity"));
    callee.steps =
        callee.is_builtin || callee.is_operator || is_c_function_of(callable, "_functools");
    entry = callee.steps ? get_table_entry("builtins", callee.name) : NULL;
    if (!entry || !PyArg_ParseTuple(entry, "ii", &least, &most))
        return callee;
    callee.is_handled = true;
    if (!call->names && call->count >= least && call->count <= most)
        callee.which = find_builtin(callee.name);
    return callee;
}

static enum ended dispatch_builtin(struct capture *c, struct watched *w, const struct call *call,
                                   enum builtin which)
{
    switch (which) {
    case BUILTIN_LEN:
        return execute_len(c, w, call);
    case BUILTIN_SUPER:
        return call_super(c, w, call);
    case BUILTIN_ISINSTANCE:
        return execute_isinstance(c, w, call, false);
    case BUILTIN_ISSUBCLASS:
        return execute_isinstance(c, w, call, true);
    case BUILTIN_TYPE:
        return execute_type(c, w, call);
    case BUILTIN_ZIP:
        return make_iterating_object(c, w, call, ITERATES_ZIP);
    case BUILTIN_ENUMERATE:
        return make_iterating_object(c, w, call, ITERATES_ENUMERATE);
    case BUILTIN_MAP:
        return make_iterating_object(c, w, call, ITERATES_MAP);
    case BUILTIN_FILTER:
        return make_iterating_object(c, w, call, ITERATES_FILTER);
    case BUILTIN_ITER:
        return execute_iter_call(c, w, call);
    case BUILTIN_REVERSED:
        return execute_reversed_call(c, w, call);
    case BUILTIN_NEXT:
        return execute_next(c, w, call);
    case BUILTIN_GETATTR:
        return execute_getattr(c, w, call);
    case BUILTIN_OTHER:
        break;
    }
    return ENDED_BEFORE;
}

/* Can capture call the function itself? It can if the arguments are known and the function runs no
 * code of the program. */
static bool can_call_with_known(struct capture *c, const struct call *call,
                                const struct callee *callee)
{
    const bool is_pure = callee->is_builtin && is_in_set(callee->name, "pure");

    if ((is_pure || call->callable == get_polyfill("order")) &&
        ensure_arguments_known(c, call, true))
        return true;
    if (!callee->takes_numbers && call->callable != get_polyfill("fspath"))
        return false;
    return ensure_arguments_known(c, call, false);
}

/* Is the function an operation on arrays, and one of its first two arguments an array? */
static bool does_operate_on_arrays(struct capture *c, const struct call *call,
                                   const struct callee *callee)
{
    bool is_operation;

    if (call->names || !call->count)
        return false;
    if (callee->is_builtin)
        is_operation = is_in_set(callee->name, "on_arrays");
    else
        is_operation = callee->is_operator && keeps_shape(callee->name, 2, true, true);
    if (!is_operation)
        return false;
    if (has_graph_value(c, call->args[0], call->shadows[0]))
        return true;
    return call->count > 1 && has_graph_value(c, call->args[1], call->shadows[1]);
}

static bool is_moving_class(PyObject *callable)
{
    return PyType_Check(callable) && PySequence_Contains(get_polyfill("moving"), callable) == 1;
}

static enum ended call_builtin(struct capture *c, struct watched *w, const struct call *call)
{
    const struct callee callee = find_name_of_callee(call);
    enum ended ended = dispatch_builtin(c, w, call, callee.which);

    if (is_instruction_handled(c, ended))
        return ended;
    if (can_call_with_known(c, call, &callee))
        return stack_replace_known(c, w, call->slots, run_call(call));
    if (is_moving_class(call->callable))
        return call_itertools_class(c, w, call);
    c->kind = NULL;
    if (!callee.is_handled)
        ended = execute_class_call(c, w, call);
    if (is_instruction_handled(c, ended))
        return ended;
    if (does_operate_on_arrays(c, call, &callee))
        return run_array_call(c, w, call, callee.name);
    return callee.steps ? step_polyfill_of_builtin(c, w, call, callee.name) : ENDED_BEFORE;
}

/* ---- dispatching a call ---- */

enum known {
    KNOWN_NOT,
    KNOWN_OBJECT_INIT,      /* super().__init__() that calls the __init__ of `object` */
    KNOWN_MADE,             /* a call of an object that execute_class_call() has made */
    KNOWN_SEND,             /* a call of generator.send() */
    KNOWN_CONTAINER_METHOD, /* a method of a list, dict or set */
    KNOWN_SIMPLE_METHOD,    /* a method of a string, a number or another simple value */
    KNOWN_BUILTIN,          /* a call of a C function or a class */
};

static enum known classify_method(const struct call *call)
{
    const struct shadow *owner = call->of->method.owner;
    const bool is_c_method = PyCFunction_Check(call->callable);
    PyObject *self = is_c_method ? PyCFunction_GET_SELF(call->callable) : NULL;

    if (owner->kind == SHADOW_SUPER && !call->count && !PyMethod_Check(call->callable))
        return KNOWN_OBJECT_INIT;
    if (!self)
        return KNOWN_NOT;
    if (owner->kind == SHADOW_GENERATOR && call->count == 1 && !call->names &&
        !PyUnicode_CompareWithASCIIString(call->of->method.name, "send"))
        return KNOWN_SEND;
    if (PyList_CheckExact(self) || PyDict_CheckExact(self) || is_known_set(self, owner))
        return KNOWN_CONTAINER_METHOD;
    return value_is_simple(self) ? KNOWN_SIMPLE_METHOD : KNOWN_NOT;
}

static bool is_builtin_or_c_function(PyObject *callable)
{
    if (is_array_function(callable))
        return false;
    if (PyCFunction_Check(callable) || PyType_Check(callable))
        return true;
    return callable == get_polyfill("order") || callable == get_polyfill("made_partial");
}

static enum known classify_known_callable(const struct call *call)
{
    if (!call->of)
        return KNOWN_NOT;
    switch (call->of->kind) {
    case SHADOW_METHOD:
        return classify_method(call);
    case SHADOW_CALL:
        return KNOWN_MADE;
    case SHADOW_SOURCE:
    case SHADOW_CONST:
        return is_builtin_or_c_function(call->callable) ? KNOWN_BUILTIN : KNOWN_NOT;
    default:
        return KNOWN_NOT;
    }
}

static enum ended call_container_method(struct capture *c, struct watched *w,
                                        const struct call *call)
{
    PyObject *self = PyCFunction_GET_SELF(call->callable);
    PyObject *name = call->of->method.name;
    struct call whole = prepend_self(call, self, call->of->method.owner);

    whole.bound = false;
    whole.callable = _PyType_Lookup(Py_TYPE(self), name);
    if (!whole.callable)
        return ENDED_BEFORE;
    return call_method(c, w, &whole, PyUnicode_AsUTF8(name));
}

enum ended call_known(struct capture *c, struct watched *w, const struct call *call)
{
    switch (classify_known_callable(call)) {
    case KNOWN_OBJECT_INIT:
        return stack_replace_known(c, w, call->slots, run_call(call));
    case KNOWN_MADE:
        return call_made_object(c, w, call);
    case KNOWN_SEND:
        return execute_send(c, w, call);
    case KNOWN_CONTAINER_METHOD:
        return call_container_method(c, w, call);
    case KNOWN_SIMPLE_METHOD:
        if (!ensure_value_known(c, NULL, call->of->method.owner) ||
            !ensure_arguments_known(c, call, true))
            return ENDED_BEFORE;
        return stack_replace_known(c, w, call->slots, run_call(call));
    case KNOWN_BUILTIN:
        if (!ensure_value_known(c, call->callable, call->of))
            return ENDED_BEFORE;
        return call_builtin(c, w, call);
    case KNOWN_NOT:
        break;
    }
    return ENDED_BEFORE;
}
