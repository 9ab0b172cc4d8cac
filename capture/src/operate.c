/* capture/src/operate.c -- operations: on arrays, which become nodes, and on known values. See
 * capture.h.
 *
 * Whether an operation is understood is found out before it runs: until then the frame is as
 * CPython left it, and ENDED_BEFORE breaks there. What has run and gave no array breaks behind it
 * (ENDED_BEHIND), what raised is raised (ENDED_RAISED). */
#include "capture.h"

/* operator.NAME of the COUNT values on top, which OPERANDS gets. */
static struct call top_call(const struct watched *w, const char *name, int count,
                            struct operands *operands)
{
    for (int i = 0; i < count; i++) {
        operands->values[i] = stack_value(w, count - 1 - i);
        operands->of[i] = stack_shadow(w, count - 1 - i);
    }
    return operator_call(name, count, count, operands);
}

/* Has the class of A, which is below that of B, a method of its own for B NAME A? */
static bool overloads(PyObject *a, PyObject *b, const char *name)
{
    char text[24];
    OWNED PyObject *word = NULL;
    PyObject *own, *other;

    snprintf(text, sizeof text, "__r%.*s__", (int)strcspn(name, "_"), name);
    word = PyUnicode_InternFromString(text);
    own = word ? _PyType_Lookup(Py_TYPE(a), word) : NULL;
    other = word ? _PyType_Lookup(Py_TYPE(b), word) : NULL;
    return Py_TYPE(a) != Py_TYPE(b) && PyType_IsSubtype(Py_TYPE(a), Py_TYPE(b)) && own &&
           own != other;
}

/* What is on top, True or False, gives way to that, or to the other if it is NEGATED, and is known
 * if that is what ENDED says. */
static enum ended known_bool(struct capture *c, struct watched *w, enum ended ended, bool negated)
{
    PyObject *is;

    if (ended != ENDED_NOT && ended != ENDED_BEHIND)
        return ended;
    if (!ended && !value_known(c, stack_value(w, 0), stack_shadow(w, 0))) {
        break_at(c, "value", "whether an object is true that is not known");
        ended = ENDED_BEHIND;
    }
    is = Py_NewRef((stack_value(w, 0) == Py_True) != negated ? Py_True : Py_False);
    stack_result(c, w, 1, is, ended ? NULL : shadow_const(c, is));
    return ended;
}

/* Does CALL of operator.NAME give a number, whatever those are that vary? */
static bool gives_number(struct capture *c, const char *name, const struct call *call)
{
    int large;

    return are_numbers(c, call) && !strstr(name, "shift") &&
           (!strstr(name, "pow") || (!is_varying(c, call->shadows[1]) &&
                                     PyLong_AsLongAndOverflow(call->args[1], &large) >= 0 &&
                                     value_known(c, call->args[1], call->shadows[1])));
}

/* CALL of operator.NAME: a node if an operand is of the graph, or a number that varies; done if
 * they are known or it only moves items; else their classes say. */
static enum ended operate_call(struct capture *c, struct watched *w, const char *name,
                               const struct call *call)
{
    const bool two = call->count == 2, in_place = two && name[0] == 'i';
    PyObject *first = call->args[0];
    struct operands operands = {{two ? call->args[1] : NULL, first},
                                {two ? call->shadows[1] : NULL, call->shadows[0]}};
    struct call turned = *call;
    enum ended ended;

    if (!call->callable)
        return no_memory_at(c);
    if (PyBool_Check(first) && !strcmp(name, "invert"))
        return break_at(c, "value", "~ of a bool, which CPython warns of");
    if (is_graph(first, call->shadows[0]) || (two && is_graph(call->args[1], call->shadows[1])) ||
        gives_number(c, name, call))
        return operate_graph(c, w, name, call, true);
    if (are_known(c, call, false))
        return known_result(c, w, call->slots, run_call(call));
    if ((ended = set_call(c, w, call)) != ENDED_BEFORE)
        return ended;
    if ((ended = move(c, w, name, call)) != ENDED_BEFORE || c->kind)
        return ended;
    if (!strcmp(name, "iadd") && PyList_CheckExact(first))
        return step_polyfill(c, w, "_iadd", call);
    if (!strcmp(name, "contains") && is_sequence(first))
        return step_polyfill(c, w, "_contains", call);
    if ((!strcmp(name, "eq") || !strcmp(name, "ne")) && is_sequence(first) &&
        Py_TYPE(first) == Py_TYPE(call->args[1]))
        return known_bool(c, w, step_polyfill(c, w, "_eq", call), name[0] == 'n');
    turned.args = operands.values;
    turned.shadows = operands.of;
    turned.reflected = true;
    /* its class is below the other's */
    if (two && !in_place && overloads(call->args[1], first, name))
        ended = operate_special(c, w, name, &turned);
    for (int way = 0; way < (two ? 3 : 1) && ended == ENDED_BEFORE && !c->kind; way++)
        if (way != 1 || in_place)
            ended = operate_special(c, w, name + (way && in_place), way == 2 ? &turned : call);
    return ended != ENDED_BEFORE || c->kind ? ended : unknown_operand(c, call, name);
}

static enum ended operate_binary(struct capture *c, struct watched *w, uint32_t which)
{
    static const char *const names[] = {
        /* NB_ADD ..., then the same in place */
        "add",  "and_",      "floordiv", "lshift",   "matmul",  "mul",  "mod",
        "or_",  "pow",       "rshift",   "sub",      "truediv", "xor",  "iadd",
        "iand", "ifloordiv", "ilshift",  "imatmul",  "imul",    "imod", "ior",
        "ipow", "irshift",   "isub",     "itruediv", "ixor"};
    struct operands operands;
    struct call call = top_call(w, names[which], 2, &operands);

    if (are_numbers(c, &call))
        call.callable = operator_named(names[which % 13]);
    return operate_call(c, w, names[which], &call);
}

static enum ended compare(struct capture *c, struct watched *w, struct compat_action action)
{
    static const char *const names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
    struct operands operands;
    const struct call call = top_call(w, names[action.arg], 2, &operands);
    const int next = w->next < w->units ? w->bytes[2 * w->next] : CACHE;
    enum ended ended;

    /* it decides what runs */
    if ((compat_ops[next].jumps || next == UNARY_NOT || next == TO_BOOL || next == EXTENDED_ARG) &&
        are_numbers(c, &call)) {
        OWNED PyObject *result = run_call(&call), *expression = expression_of(c, &call),
                       *guard = expression ? PyTuple_Pack(2, expression, result) : NULL;
        if (guard && !c->foreign && !guard_on(c, c->locals, "COMPARISON", guard))
            return known_result(c, w, call.slots, Py_NewRef(result));
    }
    ended = operate_call(c, w, names[action.arg], &call);
    c->make_bool = action.flag && (ended == ENDED_NOT || ended == ENDED_BEHIND) &&
                   !PyBool_Check(stack_value(w, 0));
    return ended;
}

/* Behind operations that give back one of their arguments: that. */
static struct shadow *object_of(struct shadow *shadow)
{
    while (shadow && shadow->kind == SHADOW_NODE && shadow->node.same)
        shadow = shadow->node.same;
    return shadow;
}

/* Is there one object for NUMBER? */
static bool is_small(PyObject *number)
{
    int large;
    const long value = PyLong_AsLongAndOverflow(number, &large);

    return !large && value >= -5 && value <= 256;
}

/* Are the two on top one object? */
static enum ended is_same(struct capture *c, struct watched *w, bool negated)
{
    PyObject *a = stack_value(w, 1), *b = stack_value(w, 0);
    struct shadow *of_a = object_of(stack_shadow(w, 1)), *of_b = object_of(stack_shadow(w, 0));
    bool single = a == Py_None || b == Py_None || PyBool_Check(a) || PyBool_Check(b) ||
                  (PyLong_CheckExact(a) && PyLong_CheckExact(b) && is_small(a) && is_small(b));
    bool sure = b == polyfill("end") ||
                (of_a && (of_a == of_b ||
                          (of_b && (of_a->kind == SHADOW_OBJECT || of_b->kind == SHADOW_OBJECT))));
    PyObject *path;

    if (!sure && value_type_known(c, a, of_a) && value_type_known(c, b, of_b))
        sure =
            Py_TYPE(a) != Py_TYPE(b) || ((single || (!value_is_simple(a) && !is_graph(a, of_a))) &&
                                         value_known(c, a, of_a) && value_known(c, b, of_b));
    if (!sure && of_a && of_b && of_a->kind == SHADOW_SOURCE && of_b->kind == SHADOW_SOURCE &&
        of_b->source.key && !c->foreign && (path = source_path(c, of_b)))
        sure = !guard_on(c, of_a, a == b ? "ALIASING" : "NO_ALIASING", path);
    PyErr_Clear();
    if (!sure)
        return break_at(c, "value", "identity of a %.200s%s", Py_TYPE(a)->tp_name,
                        of_a && of_b ? "" : " that is not known");
    return known_result(c, w, 2, PyBool_FromLong((a == b) != negated));
}

static enum ended contains(struct capture *c, struct watched *w)
{
    struct operands operands = {{stack_value(w, 0), stack_value(w, 1)},
                                {stack_shadow(w, 0), stack_shadow(w, 1)}};
    const struct call call = operator_call("contains", 2, 2, &operands);
    PyObject *container = operands.values[0], *item = operands.values[1];
    struct shadow *of = operands.of[0];
    bool known = false;

    if (of && PyDict_CheckExact(container) && value_is_simple(item) &&
        value_known(c, item, operands.of[1])) {
        known = of->kind == SHADOW_DICT ||
                (of->kind == SHADOW_SOURCE && !c->foreign && is_apart(c, of) &&
                 (of->source.changed || value_type_known(c, container, of)));
        if (known && of->kind == SHADOW_SOURCE && !source_changed(of, '[', item))
            guard_on(c, of,
                     PyDict_Contains(container, item) == 1 ? "DICT_CONTAINS" : "DICT_NOT_CONTAINS",
                     item);
    } else if (PyAnySet_CheckExact(container)) {
        known = value_is_simple(item) && value_known(c, item, operands.of[1]) &&
                set_known(c, container, of);
    }
    return known ? known_result(c, w, 2, run_call(&call)) : operate_call(c, w, "contains", &call);
}

static enum ended format(struct capture *c, struct watched *w, struct compat_action action)
{
    struct operands operands;
    const struct call call = top_call(w, "format", 1 + action.flag, &operands);
    PyObject *value = operands.values[0];
    OWNED PyObject *text = NULL;

    if (!are_known(c, &call, false))
        return unknown_operand(c, &call, "the text");
    text = !action.arg       ? Py_NewRef(value)
           : action.arg == 1 ? PyObject_Str(value)
           : action.arg == 2 ? PyObject_Repr(value)
                             : PyObject_ASCII(value);
    return text ? known_result(c, w, call.slots,
                               PyObject_Format(text, action.flag ? operands.values[1] : NULL))
                : ENDED_RAISED;
}

enum ended to_bool(struct capture *c, struct watched *w)
{
    PyObject *value = stack_value(w, 0);
    struct shadow *of = stack_shadow(w, 0);
    enum ended ended = bool_of_object(c, w);
    int is;

    if (ended != ENDED_BEFORE || c->kind)
        return known_bool(c, w, ended, false);
    if (is_graph(value, of))
        return break_at(c, "data", "whether a %.100s is true decides what runs",
                        Py_TYPE(value)->tp_name);
    if (!(is_sequence(value)           ? value_type_known(c, value, of)
          : PyDict_CheckExact(value)   ? of && of->kind == SHADOW_DICT
          : PyAnySet_CheckExact(value) ? set_known(c, value, of)
                                       : value_is_plain(value) && value_known(c, value, of)))
        return break_at(c, "value", "whether a %.100s is true", Py_TYPE(value)->tp_name);
    is = PyObject_IsTrue(value);
    return known_result(c, w, 1, is < 0 ? NULL : PyBool_FromLong(is));
}

enum ended operate(struct capture *c, struct watched *w, struct compat_action action)
{
    struct operands operands;
    const char *name;
    struct call call;
    enum ended ended;

    switch (action.op) {
    case BINARY_OP:
        return operate_binary(c, w, action.arg);
    case UNARY_NEGATIVE:
    case UNARY_POSITIVE:
    case UNARY_INVERT:
        name = action.op == UNARY_NEGATIVE ? "neg" : action.op == UNARY_INVERT ? "invert" : "pos";
        call = top_call(w, name, 1, &operands);
        return operate_call(c, w, name, &call);
    case GET_ITER:
        call = top_call(w, "iter", 1, &operands);
        ended = call_iter(c, w, &call);
        if (COMPAT_ABOVE_ITERATOR && (ended == ENDED_NOT || ended == ENDED_BEHIND))
            stack_push(w, NULL, NULL);
        return ended;
    case TO_BOOL:
        return to_bool(c, w);
    case UNARY_NOT:
        return known_bool(c, w, to_bool(c, w), true);
    case COMPARE_OP:
        return compare(c, w, action);
    case IS_OP:
        return is_same(c, w, action.arg);
    case CONTAINS_OP:
        return known_bool(c, w, contains(c, w), action.arg);
    case FORMAT_VALUE:
        return format(c, w, action);
    default:
        return build(c, w, action);
    }
}
