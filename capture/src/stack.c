/* capture/src/stack.c -- the stack of a watched frame, graph breaks, descriptions of calls. See
 * capture.h. */
#include "capture.h"

#include <stdarg.h>

enum ended break_graph(struct capture *c, const char *kind, const char *format, ...)
{
    va_list arguments;

    if (c->failed) {
        kind = "value";
        format = "a value that was read has changed meanwhile, or there is no memory";
    }
    c->kind = kind;
    va_start(arguments, format);
    vsnprintf(c->reason, sizeof c->reason, format, arguments);
    va_end(arguments);
    return ENDED_BEFORE;
}

enum ended break_at_no_memory(struct capture *c)
{
    c->failed = true;
    PyErr_Clear();
    return break_graph(c, "value", "no memory");
}

enum ended break_at_mutation(struct capture *c, PyObject *container)
{
    return break_graph(c, "mutation", "a %.200s is changed that was not made here",
                       Py_TYPE(container)->tp_name);
}

enum ended break_at_unknown_operand(struct capture *c, const struct call *call, const char *what)
{
    for (int i = call->count; i-- > 0;) {
        const char *type = Py_TYPE(call->args[i])->tp_name;

        if (!call->shadows[i])
            return break_graph(c, "value", "%s of a %.200s that is not known", what, type);
    }
    return break_graph(c, "value", "%s of a %.200s", what, Py_TYPE(call->args[0])->tp_name);
}

/* ---- the stack ---- */

/* Return the index of a stack value among the slots of the frame, where the stack comes after the
 * variables. */
static int get_stack_slot(const struct watched *w, int from_top)
{
    return w->variables + w->depth - 1 - from_top;
}

PyObject *stack_value(const struct watched *w, int from_top)
{
    return compat_get_local(w->frame, get_stack_slot(w, from_top));
}

struct shadow *stack_shadow(const struct watched *w, int from_top)
{
    return w->shadow[get_stack_slot(w, from_top)];
}

struct shadow shadow_of_null = {.kind = SHADOW_CONST};

void stack_push(struct watched *w, PyObject *value, struct shadow *shadow)
{
    if (!value)
        shadow = &shadow_of_null;
    else if (shadow && !shadow_matches_value(shadow, value))
        shadow = NULL;
    w->depth++;
    w->shadow[get_stack_slot(w, 0)] = shadow;
    compat_store_local(w->frame, get_stack_slot(w, 0), value);
}

void stack_drop(struct watched *w, int count)
{
    while (count--) {
        const int slot = get_stack_slot(w, 0);
        PyObject *value = compat_take_local(w->frame, slot);

        w->depth--;
        w->shadow[slot] = NULL;
        Py_XDECREF(value);
    }
}

enum ended stack_replace(struct capture *c, struct watched *w, int count, PyObject *result,
                         struct shadow *shadow)
{
    if (!result)
        return ENDED_RAISED;
    stack_drop(w, count);
    stack_push(w, result, shadow);
    return ENDED_NOT;
}

/* Make the shadow of LIST, whose items are known. Sets *SIMPLE if all items are simple values. */
static struct shadow *make_known_list_shadow(struct capture *c, PyObject *list, bool *simple)
{
    struct shadow *made = shadow_new(c, SHADOW_LIST, 0);

    *simple = true;
    for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(list); i++) {
        PyObject *item = PyList_GET_ITEM(list, i);

        if (!value_is_simple(item))
            *simple = false;
        shadow_add(c, made, NULL, shadow_new_const(c, item));
    }
    return made;
}

enum ended stack_replace_known(struct capture *c, struct watched *w, int count, PyObject *result)
{
    struct shadow *shadow;
    bool simple;

    if (!result)
        return ENDED_RAISED;
    if (PyList_CheckExact(result)) {
        shadow = make_known_list_shadow(c, result, &simple);
    } else {
        shadow = shadow_new_const(c, result);
        simple = value_is_simple(result) || PyType_Check(result) || PySlice_Check(result);
    }
    if (simple)
        return stack_replace(c, w, count, result, shadow);
    break_graph(c, "value", "a %.200s was made of known values", Py_TYPE(result)->tp_name);
    stack_replace(c, w, count, result, NULL);
    return ENDED_BEHIND;
}

enum ended push_callable(struct watched *w, bool null, PyObject *value, struct shadow *shadow)
{
    if (null && !COMPAT_CALLABLE_FIRST)
        stack_push(w, NULL, NULL);
    stack_push(w, value, shadow);
    if (null && COMPAT_CALLABLE_FIRST)
        stack_push(w, NULL, NULL);
    return ENDED_NOT;
}

void watched_save_variables(struct watched *w)
{
    for (int i = 0; i < w->variables; i++)
        w->stored[i] = compat_get_local(w->frame, i);
}

/* ---- descriptions of calls ---- */

struct call describe_operator_call(const char *name, int slots, int count,
                                   struct operands *operands)
{
    return (struct call){.callable = get_operator(name),
                         .args = operands->values,
                         .shadows = operands->of,
                         .count = count,
                         .slots = slots};
}

PyObject *run_call(const struct call *call)
{
    PyObject *const *args = call->args + call->bound;
    const int count = call->count - count_names(call) - call->bound;
    PyObject *swapped[2];

    if (call->reflected) {
        swapped[0] = call->args[1];
        swapped[1] = call->args[0];
        args = swapped;
    }
    return PyObject_Vectorcall(call->callable, args, (size_t)count, call->names);
}

struct call prepend_self(const struct call *call, PyObject *self, struct shadow *of_self)
{
    struct call made = *call;

    made.args--;
    made.shadows--;
    made.count++;
    made.args[0] = self;
    made.shadows[0] = of_self;
    made.bound = true;
    return made;
}

struct attempt attempt_begin(const struct capture *c)
{
    return (struct attempt){PyList_GET_SIZE(c->nodes), c->number_nodes, c->effects->count, c->undo};
}

void attempt_undo(struct capture *c, const struct attempt *attempt)
{
    struct tracer_exception pending = tracer_put_exception_aside();

    if (PyList_SetSlice(c->nodes, attempt->nodes, PyList_GET_SIZE(c->nodes), NULL) ||
        PyList_SetSlice(c->places, attempt->nodes, PyList_GET_SIZE(c->places), NULL))
        c->failed = true;
    shadows_undo(c, attempt->undo);
    c->effects->count = attempt->effects;
    c->number_nodes = attempt->number_nodes;
    tracer_restore_exception(&pending);
}
