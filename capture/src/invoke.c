/* capture/src/invoke.c -- dispatch a call to the code that handles it. See capture.h. */
#include "capture.h"

enum { MOST_ARGUMENTS = 256 };

static PyObject *request_graph_break(PyObject *module, PyObject *ignored)
{
    Py_RETURN_NONE;
}

PyMethodDef graph_break_methods[] = {
    {"graph_break", request_graph_break, METH_NOARGS,
     "graph_break($module, /)\n--\n\n"
     "End the graph that is being captured here. Elsewhere it does nothing."},
    {NULL, NULL, 0, NULL},
};

/* Return the index of W's free variable that has the same name as the cell variable CELL; -1 if
 * there is none. In a resume function both may exist. */
static int find_free_variable(const struct watched *w, int cell)
{
    PyObject *names = w->code->co_localsplusnames;

    if (!(_PyLocals_GetKind(w->code->co_localspluskinds, cell) & CO_FAST_CELL))
        return -1;
    for (int i = w->variables - w->code->co_nfreevars; i < w->variables; i++)
        if (PyTuple_GET_ITEM(names, i) == PyTuple_GET_ITEM(names, cell))
            return i;
    return -1;
}

/* Is this the first call in a resume function, which restores the variables and the stack? */
static bool is_resume_entry(const struct watched *w, PyObject *callable)
{
    if (!w->resumed || !PyCFunction_CheckExact(callable))
        return false;
    return PyCFunction_GET_SELF(callable) == shim->link_of(w->code);
}

/* Execute the first call of a resume function, which restores its variables and stack. Their
 * shadows after this call become the initial state of the function (c->initial). */
static enum ended run_resume_entry(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *result;

    for (int i = 0; i < w->variables; i++) {
        const int free = find_free_variable(w, i);

        if (free >= 0)
            w->shadow[i] = w->shadow[free];
    }
    result = run_call(call);
    watched_save_variables(w);
    for (int i = 0; i < w->variables; i++)
        if (!compat_get_local(w->frame, i))
            w->shadow[i] = NULL;
    for (int i = 0; i < w->depth - call->slots; i++)
        if (!compat_get_local(w->frame, w->variables + i))
            w->shadow[w->variables + i] = &shadow_of_null;
    if (result && !w->outer)
        c->begun = true;
    if (c->begun && !w->outer)
        memcpy(c->initial, w->shadow, sizeof *c->initial * (size_t)w->variables);
    if (!result)
        return ENDED_RAISED;
    return stack_replace(c, w, call->slots, result, shadow_new_const(c, result));
}

/* ---- bound methods that existed before the watched call ---- */

/* Make the shadow of a bound method of an array that is written in C. Guards the method's name. */
static struct shadow *make_bound_c_shadow(struct capture *c, PyObject *callable, struct shadow *of,
                                          struct shadow *of_self)
{
    const char *text = ((PyCFunctionObject *)callable)->m_ml->ml_name;
    OWNED PyObject *name = PyUnicode_InternFromString(text);
    struct shadow *source = name ? source_read_attribute(c, of, "__name__", name) : NULL;

    if (!source || !ensure_value_known(c, name, source))
        return NULL;
    return make_method_shadow(c, of_self, name, NULL, NULL, NULL);
}

/* Make the shadow of a bound method written in Python. The method's function becomes a source, a
 * value that was read. */
static struct shadow *make_bound_python_shadow(struct capture *c, PyObject *callable,
                                               struct shadow *of, struct shadow *of_self)
{
    PyObject *function = PyMethod_GET_FUNCTION(callable);
    struct shadow *source = source_read_attribute(c, of, "__func__", function);
    PyObject *name;

    if (!source || !PyFunction_Check(function))
        return NULL;
    name = ((PyFunctionObject *)function)->func_name;
    return make_method_shadow(c, of_self, name, function, source, of_self);
}

/* Make the shadow of CALLABLE, a bound method that was read at source OF. Returns NULL if the
 * method is unknown. Each read makes a new bound method, so the guards compare its object and its
 * function (or name) instead. */
static struct shadow *make_bound_shadow(struct capture *c, PyObject *callable, struct shadow *of)
{
    const bool is_c = PyCFunction_CheckExact(callable);
    struct shadow *of_self;
    PyObject *self;

    if (!is_c && !Py_IS_TYPE(callable, &PyMethod_Type))
        return NULL;
    self = is_c ? PyCFunction_GET_SELF(callable) : PyMethod_GET_SELF(callable);
    /* follow only methods of arrays: the guard for a list would fix its length, but later calls may
     * pass a longer list */
    if (is_c && !value_is_array(self))
        return NULL;
    if (guard_add(c, of, "TYPE_MATCH", (PyObject *)Py_TYPE(callable)))
        return NULL;
    of_self = source_read_attribute(c, of, "__self__", self);
    if (!of_self)
        return NULL;
    if (is_c)
        return make_bound_c_shadow(c, callable, of, of_self);
    return make_bound_python_shadow(c, callable, of, of_self);
}

/* ---- dispatching a call ---- */

/* Kinds of callables, in the order in which classify_callee() tests for them. */
enum callee {
    CALLEE_NULL,
    /* the first call in a resume function, which restores the function's variables and stack */
    CALLEE_ENTRY,
    CALLEE_ARRAY_METHOD,   /* a method of an array, or of the result of a graph node */
    CALLEE_METHOD,         /* a Python method through which capture can step */
    CALLEE_MADE,           /* a function that the watched call made */
    CALLEE_ARRAY_FUNCTION, /* a function or class of numpy or torch */
    CALLEE_FUNCTION,       /* any other function through which capture can step */
    CALLEE_CLASS,          /* a class */
    CALLEE_OBJECT,         /* any other object: it has __call__, or is a builtin */
    CALLEE_UNKNOWN,
};

/* Return the object to which the method CALLABLE is bound, borrowed; NULL if CALLABLE is no
 * method. */
static PyObject *get_method_self(PyObject *callable)
{
    if (PyCFunction_Check(callable))
        return PyCFunction_GET_SELF(callable);
    return PyMethod_Check(callable) ? PyMethod_GET_SELF(callable) : NULL;
}

/* Is CALLABLE a C method of an array, or of the result of a graph node? */
static bool is_array_method(PyObject *self, const struct shadow *of)
{
    const struct shadow *owner = of->method.owner;

    if (of->value || !self)
        return false;
    return (is_source(owner) || is_kind(owner, SHADOW_NODE)) && is_graph_value(self, owner);
}

static enum callee classify_bound_method(struct capture *c, const struct call *call)
{
    PyObject *self = get_method_self(call->callable);
    const struct shadow *of = call->of;

    if (is_array_method(self, of))
        return CALLEE_ARRAY_METHOD;
    if (self && of->value && PyMethod_Check(call->callable) &&
        can_step_through(c, of->value, of->method.source))
        return CALLEE_METHOD;
    return CALLEE_OBJECT;
}

static enum callee classify_callee(struct capture *c, const struct watched *w,
                                   const struct call *call)
{
    PyObject *callable = call->callable;
    struct shadow *of = call->of;
    enum callee callee;

    if (!callable)
        return CALLEE_NULL;
    if (is_resume_entry(w, callable))
        return CALLEE_ENTRY;
    if (!of)
        return CALLEE_UNKNOWN;
    callee = PyType_Check(callable) ? CALLEE_CLASS : CALLEE_OBJECT;
    switch (of->kind) {
    case SHADOW_METHOD:
        return classify_bound_method(c, call);
    case SHADOW_FUNCTION:
        return can_step_through(c, callable, of) ? CALLEE_MADE : callee;
    case SHADOW_CONST:
        return is_array_function(callable) ? CALLEE_ARRAY_FUNCTION : callee;
    case SHADOW_SOURCE:
        if (is_array_function(callable))
            return CALLEE_ARRAY_FUNCTION;
        return can_step_through(c, callable, of) ? CALLEE_FUNCTION : callee;
    default:
        return callee;
    }
}

/* Call a class, an object with __call__, or a builtin. */
static enum ended call_callable_object(struct capture *c, struct watched *w,
                                       const struct call *call)
{
    const struct call whole = prepend_self(call, call->callable, call->of);
    enum ended ended;

    c->kind = NULL;
    if (PyType_Check(call->callable))
        ended = call_class(c, w, call);
    else
        ended = step_special_method(c, w, "__call__", &whole);
    if (is_instruction_handled(c, ended))
        return ended;
    return call_known(c, w, call);
}

static enum ended break_at_call(struct capture *c, PyObject *callable)
{
    char text[120];
    const char *name = write_callable_name(callable, text, sizeof text);
    const bool asked = PyCFunction_CheckExact(callable) &&
                       ((PyCFunctionObject *)callable)->m_ml == graph_break_methods;

    PyErr_Clear();
    return break_graph(c, asked ? "asked" : "call", "a call of %.100s()", name);
}

/* Return the shadow of CALL's callable. Makes a SHADOW_METHOD if the callable is a bound method
 * that existed before the watched call. */
static struct shadow *find_callable_shadow(struct capture *c, const struct watched *w,
                                           const struct call *call)
{
    struct shadow *method = NULL;

    if (call->callable && is_source(call->of) && value_is_bound_method(call->callable) &&
        !is_resume_entry(w, call->callable))
        method = make_bound_shadow(c, call->callable, call->of);
    return method ? method : call->of;
}

static enum ended dispatch_call(struct capture *c, struct watched *w, struct call call)
{
    PyObject *callable = call.callable;
    enum ended ended = ENDED_BEFORE;
    struct call whole;

    call.of = find_callable_shadow(c, w, &call);
    switch (classify_callee(c, w, &call)) {
    case CALLEE_NULL:
        return break_graph(c, "call", "a call of nothing");
    case CALLEE_ENTRY:
        return run_resume_entry(c, w, &call);
    case CALLEE_ARRAY_METHOD:
        return call_array_method(c, w, &call, get_method_self(callable));
    case CALLEE_METHOD:
        whole = prepend_self(&call, get_method_self(callable), call.of->method.bound);
        return step_through_function(c, w, &whole, (PyFunctionObject *)call.of->value,
                                     call.of->method.source);
    case CALLEE_MADE:
    case CALLEE_FUNCTION:
        return step_through_function(c, w, &call, (PyFunctionObject *)callable, call.of);
    case CALLEE_ARRAY_FUNCTION:
        if (!ensure_value_known(c, callable, call.of))
            return break_at_unknown_argument(c, &call);
        return call_array_function(c, w, &call);
    case CALLEE_CLASS:
    case CALLEE_OBJECT:
        ended = call_callable_object(c, w, &call);
        break;
    case CALLEE_UNKNOWN:
        c->kind = NULL;
        break;
    }
    return is_instruction_handled(c, ended) ? ended : break_at_call(c, callable);
}

enum ended execute_call(struct capture *c, struct watched *w, int count, PyObject *names,
                        bool on_top)
{
    PyObject *values[MOST_ARGUMENTS + 2];
    struct shadow *shadows[MOST_ARGUMENTS + 2];
    struct call call = {.args = values + 2,
                        .shadows = shadows + 2,
                        .names = names,
                        .slots = count + 2 + on_top,
                        .count = count};
    const int base = call.slots - 1;
    PyObject *first, *second;

    if (count > MOST_ARGUMENTS - 1)
        return break_graph(c, "call", "a call with %d arguments", count);
    for (int i = 0; i < count; i++) {
        call.args[i] = stack_value(w, base - 2 - i);
        call.shadows[i] = stack_shadow(w, base - 2 - i);
    }
    first = stack_value(w, base);
    second = stack_value(w, base - 1);
    if (!COMPAT_CALLABLE_FIRST && !first) {
        call.callable = second;
        call.of = stack_shadow(w, base - 1);
        return dispatch_call(c, w, call);
    }
    call.callable = first;
    call.of = stack_shadow(w, base);
    if (second) { /* `first` is an unbound method, and `second` is the argument for its `self` */
        call = prepend_self(&call, second, stack_shadow(w, base - 1));
        call.bound = false;
    }
    return dispatch_call(c, w, call);
}

/* Are the items of TUPLE and DICT known in the call f(*TUPLE, **DICT)? DICT may be NULL. */
static bool are_starred_arguments_known(struct capture *c, PyObject *tuple, struct shadow *of,
                                        PyObject *dict, struct shadow *of_dict)
{
    if (!PyTuple_CheckExact(tuple) || !ensure_type_known(c, tuple, of))
        return false;
    if (!dict)
        return true;
    if (!is_kind(of_dict, SHADOW_DICT) || !PyDict_CheckExact(dict))
        return false;
    return PyDict_GET_SIZE(dict) == of_dict->count;
}

static enum ended break_at_starred_call(struct capture *c)
{
    PyErr_Clear();
    return break_graph(c, "call", "a call with *arguments that are not known");
}

enum ended execute_starred_call(struct capture *c, struct watched *w, bool keywords)
{
    const int at_tuple = keywords ? 1 : 0, base = at_tuple + 2;
    const int at_callable = COMPAT_CALLABLE_FIRST ? base : base - 1;
    const int at_null = COMPAT_CALLABLE_FIRST ? base - 1 : base;
    PyObject *tuple = stack_value(w, at_tuple), *dict = keywords ? stack_value(w, 0) : NULL;
    struct shadow *of = stack_shadow(w, at_tuple);
    struct shadow *of_dict = keywords ? stack_shadow(w, 0) : NULL;
    PyObject *values[MOST_ARGUMENTS + 1];
    struct shadow *shadows[MOST_ARGUMENTS + 1];
    OWNED PyObject *names = NULL, *items = NULL, *held = NULL;
    struct call call = {.callable = stack_value(w, at_callable),
                        .of = stack_shadow(w, at_callable),
                        .slots = base + 1,
                        .args = values + 1,
                        .shadows = shadows + 1};
    Py_ssize_t positional, named;

    if (stack_value(w, at_null) || !are_starred_arguments_known(c, tuple, of, dict, of_dict))
        return break_at_starred_call(c);
    positional = PyTuple_GET_SIZE(tuple);
    named = dict ? of_dict->count : 0;
    if (positional + named > MOST_ARGUMENTS)
        return break_at_starred_call(c);
    names = named ? PySequence_Tuple(dict) : NULL;
    items = named ? PyDict_Values(dict) : PyList_New(0);
    if (!items || (named && !names))
        return break_at_no_memory(c);
    held = PySequence_List(tuple);
    if (!held || PyList_SetSlice(held, positional, positional, items))
        return break_at_no_memory(c);
    for (Py_ssize_t i = 0; i < positional; i++)
        call.shadows[i] = get_item_shadow_at(c, tuple, of, i);
    for (Py_ssize_t i = 0; i < named; i++) {
        if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(names, i)))
            return break_graph(c, "call", "a call with **keywords that are not known");
        call.shadows[positional + i] = of_dict->items[i];
    }
    call.count = (int)(positional + named);
    call.names = names;
    for (int i = 0; i < call.count; i++)
        call.args[i] = PyList_GET_ITEM(held, i);
    return dispatch_call(c, w, call);
}
