/* capture/src/invoke.c -- calls: of array functions and methods, which become nodes, and of
 * functions that are stepped. See capture.h.
 *
 * A function that is stepped is called as CPython would call it, and its frame comes back to the
 * evaluator (capture_step). If it cannot be stepped to its end, CPython goes on in it, what the
 * graph got of it is taken back, and the call is a break. */
#include "capture.h"

enum { MOST_ARGUMENTS = 256 };

static PyObject *graph_break(PyObject *module, PyObject *ignored)
{
    Py_RETURN_NONE;
}

PyMethodDef graph_break_methods[] = {
    {"graph_break", graph_break, METH_NOARGS,
     "graph_break($module, /)\n--\n\n"
     "End the graph that is being captured here. Elsewhere it does nothing."},
    {NULL, NULL, 0, NULL},
};

/* Number of W's free variable that is variable CELL as well, as in a resume function; or -1. */
static int find_free(const struct watched *w, int cell)
{
    PyObject *names = w->code->co_localsplusnames;

    if (!(_PyLocals_GetKind(w->code->co_localspluskinds, cell) & CO_FAST_CELL))
        return -1;
    for (int i = w->variables - w->code->co_nfreevars; i < w->variables; i++)
        if (PyTuple_GET_ITEM(names, i) == PyTuple_GET_ITEM(names, cell))
            return i;
    return -1;
}

/* A resume function puts its own things in place: those are what it begins with. */
static enum ended enter(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *result;

    for (int i = 0; i < w->variables; i++) {
        const int free = find_free(w, i);
        if (free >= 0)
            w->shadow[i] = w->shadow[free];
    }
    result = run_call(call);
    watched_put(w);
    for (int i = 0; i < w->variables; i++)
        if (!compat_local(w->frame, i))
            w->shadow[i] = NULL;
    for (int i = 0; i < w->depth - call->slots; i++)
        if (!compat_local(w->frame, w->variables + i))
            w->shadow[w->variables + i] = &shadow_of_null;
    c->begun |= result && !w->outer;
    if (c->begun && !w->outer)
        memcpy(c->initial, w->shadow, sizeof *c->initial * (size_t)w->variables);
    return stack_result(c, w, call->slots, result, result ? shadow_const(c, result) : NULL);
}

/* The shadow of CALLABLE, a method with its object, of which OF is the source: what it is follows
 * from its name or function, and its object. NULL: it is not known. */
static struct shadow *bound_shadow(struct capture *c, PyObject *callable, struct shadow *of)
{
    const bool is_builtin = PyCFunction_CheckExact(callable);
    PyObject *self = is_builtin ? PyCFunction_GET_SELF(callable) : NULL, *function;
    struct shadow *of_self, *of_function;
    OWNED PyObject *name = NULL;

    if (!is_builtin && !Py_IS_TYPE(callable, &PyMethod_Type))
        return NULL;
    if (!is_builtin)
        self = PyMethod_GET_SELF(callable);
    else if (!value_is_array(self)) /* a list's length would be guarded, and it may grow */
        return NULL;
    if (guard_on(c, of, "TYPE_MATCH", (PyObject *)Py_TYPE(callable)) ||
        !(of_self = source_attribute(c, of, "__self__", self)))
        return NULL;
    if (is_builtin) {
        name = PyUnicode_InternFromString(((PyCFunctionObject *)callable)->m_ml->ml_name);
        of_function = name ? source_attribute(c, of, "__name__", name) : NULL;
        return of_function && value_known(c, name, of_function)
                   ? method_of(c, of_self, name, NULL, NULL, NULL)
                   : NULL;
    }
    function = PyMethod_GET_FUNCTION(callable);
    of_function = source_attribute(c, of, "__func__", function);
    return of_function && PyFunction_Check(function)
               ? method_of(c, of_self, ((PyFunctionObject *)function)->func_name, function,
                           of_function, of_self)
               : NULL;
}

static enum ended dispatch(struct capture *c, struct watched *w, const struct call *call)
{
    struct call bound;
    PyObject *callable = call->callable;
    struct shadow *of = call->of;
    struct shadow *method = callable && of && of->kind == SHADOW_SOURCE &&
                                    value_is_bound(callable) &&
                                    !(w->resumed && PyCFunction_CheckExact(callable) &&
                                      PyCFunction_GET_SELF(callable) == shim->link_of(w->code))
                                ? bound_shadow(c, callable, of)
                                : NULL;
    PyObject *self = callable && (method || (of && of->kind == SHADOW_METHOD))
                         ? PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable)
                           : PyMethod_Check(callable)  ? PyMethod_GET_SELF(callable)
                                                       : NULL
                         : NULL;
    char text[120];
    struct call whole;
    enum ended ended;

    if (!callable)
        return break_at(c, "call", "a call of nothing");
    if (method) {
        bound = *call;
        call = &bound;
        of = bound.of = method;
    }
    if (w->resumed && PyCFunction_CheckExact(callable) &&
        PyCFunction_GET_SELF(callable) == shim->link_of(w->code))
        return enter(c, w, call);
    if (self && !of->value &&
        (of->method.owner->kind == SHADOW_NODE || of->method.owner->kind == SHADOW_SOURCE) &&
        is_graph(self, of->method.owner))
        return array_method(c, w, call, self);
    if (self && of->value && PyMethod_Check(callable) &&
        can_step(c, of->value, of->method.source)) {
        whole = with_self(call, self, of->method.bound);
        return inlined(c, w, &whole, (PyFunctionObject *)of->value, of->method.source);
    }
    if (of && of->kind == SHADOW_FUNCTION && can_step(c, callable, of))
        return inlined(c, w, call, (PyFunctionObject *)callable, of);
    if (of && (of->kind == SHADOW_SOURCE || of->kind == SHADOW_CONST) &&
        is_array_function(callable)) {
        if (!value_known(c, callable, of))
            return unknown_argument(c, call);
        return array_function(c, w, call);
    }
    if (of && of->kind == SHADOW_SOURCE && can_step(c, callable, of))
        return inlined(c, w, call, (PyFunctionObject *)callable, of);
    c->kind = NULL;
    whole = with_self(call, callable, of);
    if (of &&
        ((ended = PyType_Check(callable) ? construct(c, w, call)
                                         : special(c, w, "__call__", &whole)) != ENDED_BEFORE ||
         c->kind))
        return ended;
    if ((ended = call_known(c, w, call)) != ENDED_BEFORE || c->kind)
        return ended;
    PyErr_Clear();
    return break_at(c,
                    PyCFunction_CheckExact(callable) &&
                            ((PyCFunctionObject *)callable)->m_ml == graph_break_methods
                        ? "asked"
                        : "call",
                    "a call of %.100s()", name_of(callable, text, sizeof text));
}

enum ended invoke(struct capture *c, struct watched *w, int count, PyObject *names, bool on_top)
{
    PyObject *values[MOST_ARGUMENTS + 2];
    struct shadow *shadows[MOST_ARGUMENTS + 2];
    struct call call = {.args = values + 2,
                        .shadows = shadows + 2,
                        .names = names,
                        .slots = count + 2 + on_top,
                        .count = count};
    const int base = call.slots - 1;
    PyObject *pair[2];

    if (count > MOST_ARGUMENTS - 1)
        return break_at(c, "call", "a call with %d arguments", count);
    for (int i = 0; i < count; i++) {
        call.args[i] = stack_value(w, base - 2 - i);
        call.shadows[i] = stack_shadow(w, base - 2 - i);
    }
    pair[0] = stack_value(w, base);
    pair[1] = stack_value(w, base - 1);
    if (COMPAT_CALLABLE_FIRST || pair[0]) {
        call.callable = pair[0];
        call.of = stack_shadow(w, base);
        if (pair[1]) { /* self: of an unbound method */
            call = with_self(&call, pair[1], stack_shadow(w, base - 1));
            call.bound = false;
        }
    } else {
        call.callable = pair[1];
        call.of = stack_shadow(w, base - 1);
    }
    return dispatch(c, w, &call);
}

enum ended invoke_variable(struct capture *c, struct watched *w, bool keywords)
{
    PyObject *tuple = stack_value(w, keywords ? 1 : 0), *dict = keywords ? stack_value(w, 0) : NULL;
    struct shadow *of = stack_shadow(w, keywords ? 1 : 0),
                  *of_dict = keywords ? stack_shadow(w, 0) : NULL;
    const int base = keywords ? 3 : 2, at = COMPAT_CALLABLE_FIRST ? base : base - 1;
    PyObject *values[MOST_ARGUMENTS + 1];
    struct shadow *shadows[MOST_ARGUMENTS + 1];
    const Py_ssize_t count = PyTuple_CheckExact(tuple) ? PyTuple_GET_SIZE(tuple) : -1,
                     named = dict && PyDict_CheckExact(dict) && of_dict ? of_dict->count : 0;
    OWNED PyObject *names = named ? PySequence_Tuple(dict) : NULL,
                   *held = named ? PyDict_Values(dict) : PyList_New(0);
    struct call call = {.callable = stack_value(w, at),
                        .of = stack_shadow(w, at),
                        .slots = base + 1,
                        .args = values + 1,
                        .shadows = shadows + 1,
                        .names = names,
                        .count = (int)(count + named)};

    if (count < 0 || count + named > MOST_ARGUMENTS || !value_type_known(c, tuple, of) ||
        stack_value(w, COMPAT_CALLABLE_FIRST ? base - 1 : base) ||
        (dict && (!of_dict || of_dict->kind != SHADOW_DICT || !PyDict_CheckExact(dict) ||
                  PyDict_GET_SIZE(dict) != named)))
        return PyErr_Clear(), break_at(c, "call", "a call with *arguments that are not known");
    if (!held || (named && !names) || PyList_SetSlice(held, 0, 0, tuple))
        return no_memory_at(c);
    for (Py_ssize_t i = 0; i < count + named; i++) {
        if (i >= count && !PyUnicode_CheckExact(PyTuple_GET_ITEM(names, i - count)))
            return break_at(c, "call", "a call with **keywords that are not known");
        call.args[i] = PyList_GET_ITEM(held, i);
        call.shadows[i] = i < count ? value_item(c, tuple, of, i) : of_dict->items[i - count];
    }
    return dispatch(c, w, &call);
}
