/* capture/src/operate.c -- operators. See capture.h.
 *
 * Capture decides whether it can handle an operation before the operation runs. If it cannot, the
 * frame is unchanged and the graph breaks before the instruction (ENDED_BEFORE). If the operation
 * has run and its result is unknown, the graph breaks after the instruction (ENDED_BEHIND). */
#include "capture.h"

enum { BINARY_OPERATORS = 13 };

/* Names of the functions of `operator`, indexed by the argument of BINARY_OP (NB_ADD, ...): first
 * the plain operators, then the in-place operators. */
static const char *const binary_names[2 * BINARY_OPERATORS] = {
    "add",    "and_", "floordiv", "lshift", "matmul",  "mul",  "mod",       "or_",     "pow",
    "rshift", "sub",  "truediv",  "xor",    "iadd",    "iand", "ifloordiv", "ilshift", "imatmul",
    "imul",   "imod", "ior",      "ipow",   "irshift", "isub", "itruediv",  "ixor"};

/* Describe a call of operator.NAME with the top COUNT values of the stack. Stores these values in
 * OPERANDS. */
static struct call describe_top_call(const struct watched *w, const char *name, int count,
                                     struct operands *operands)
{
    for (int i = 0; i < count; i++) {
        operands->values[i] = stack_value(w, count - 1 - i);
        operands->of[i] = stack_shadow(w, count - 1 - i);
    }
    return describe_operator_call(name, count, count, operands);
}

/* For `b + a`, does CPython try A's reflected method, e.g. A.__radd__, before B's method? It does
 * if A's class is a subclass of B's class and has a reflected method of its own. */
static bool is_reflected_method_tried_first(PyObject *a, PyObject *b, const char *name)
{
    const int length = (int)strcspn(name, "_");
    OWNED PyObject *word = NULL;
    PyObject *own;
    char text[24];

    if (Py_TYPE(a) == Py_TYPE(b) || !PyType_IsSubtype(Py_TYPE(a), Py_TYPE(b)))
        return false;
    snprintf(text, sizeof text, "__r%.*s__", length, name);
    word = PyUnicode_InternFromString(text);
    own = word ? _PyType_Lookup(Py_TYPE(a), word) : NULL;
    return own && own != _PyType_Lookup(Py_TYPE(b), word);
}

/* Replace the result of a truth test, on top of the stack, by True or False; with NEGATED by its
 * opposite. ENDED tells how the test has ended. */
static enum ended finish_truth_test(struct capture *c, struct watched *w, enum ended ended,
                                    bool negated)
{
    PyObject *is;

    if (!is_instruction_done(ended))
        return ended;
    if (!ended && !ensure_value_known(c, stack_value(w, 0), stack_shadow(w, 0))) {
        break_graph(c, "value", "whether an object is true that is not known");
        ended = ENDED_BEHIND;
    }
    is = (stack_value(w, 0) == Py_True) != negated ? Py_True : Py_False;
    stack_replace(c, w, 1, Py_NewRef(is), ended ? NULL : shadow_new_const(c, is));
    return ended;
}

/* Does operator.NAME give an integer in every later call, whatever values the inputs among its
 * integer operands have? A shift does not, because it may raise; nor does a power whose exponent is
 * an input or is negative. */
static bool does_operator_give_integer(struct capture *c, const char *name, const struct call *call)
{
    int large;

    if (!are_varying_numbers(c, call) || strstr(name, "shift"))
        return false;
    if (!strstr(name, "pow"))
        return true;
    if (is_varying(c, call->shadows[1]))
        return false;
    if (PyLong_AsLongAndOverflow(call->args[1], &large) < 0)
        return false;
    return ensure_value_known(c, call->args[1], call->shadows[1]);
}

/* How capture executes an operator, in the order in which classify_operation() tests. */
enum operation_kind {
    /* through a special method of an operand's class, or as an operation that only moves items */
    OPERATION_OF_CLASSES,
    /* as a node of the graph: an operand is an array, or an integer that is an input */
    OPERATION_NODE,
    OPERATION_KNOWN, /* as a call of the operator now, because all operands are known */
};

static bool is_operand_in_graph(const struct call *call, int i)
{
    return i < call->count && is_graph_value(call->args[i], call->shadows[i]);
}

static enum operation_kind classify_operation(struct capture *c, const char *name,
                                              const struct call *call)
{
    if (is_operand_in_graph(call, 0) || is_operand_in_graph(call, 1) ||
        does_operator_give_integer(c, name, call))
        return OPERATION_NODE;
    return ensure_arguments_known(c, call, false) ? OPERATION_KNOWN : OPERATION_OF_CLASSES;
}

static bool is_equality(const char *name)
{
    return !strcmp(name, "eq") || !strcmp(name, "ne");
}

/* Execute an operator of lists or tuples by stepping through a polyfill. */
static enum ended execute_operator_by_polyfill(struct capture *c, struct watched *w,
                                               const char *name, const struct call *call)
{
    PyObject *first = call->args[0];

    if (!strcmp(name, "iadd") && PyList_CheckExact(first))
        return step_through_polyfill(c, w, "_iadd", call);
    if (!is_sequence(first))
        return ENDED_BEFORE;
    if (!strcmp(name, "contains"))
        return step_through_polyfill(c, w, "_contains", call);
    if (is_equality(name) && Py_TYPE(first) == Py_TYPE(call->args[1]))
        return finish_truth_test(c, w, step_through_polyfill(c, w, "_eq", call), name[0] == 'n');
    return ENDED_BEFORE;
}

/* Step through a special method of an operand's class. Tries the methods in the order in which
 * CPython tries them. */
static enum ended execute_operator_by_method(struct capture *c, struct watched *w, const char *name,
                                             const struct call *call)
{
    const bool two = call->count == 2, in_place = two && name[0] == 'i';
    /* the name of the plain operator: "add" for the in-place operator "iadd" */
    const char *plain = name + in_place;
    struct operands operands;
    struct call swapped = *call;
    enum ended ended = ENDED_BEFORE;

    if (!two)
        return step_operator_method(c, w, name, call);
    operands =
        (struct operands){{call->args[1], call->args[0]}, {call->shadows[1], call->shadows[0]}};
    swapped.args = operands.values;
    swapped.shadows = operands.of;
    swapped.reflected = true;
    if (!in_place && is_reflected_method_tried_first(call->args[1], call->args[0], name))
        ended = step_operator_method(c, w, name, &swapped);
    if (!is_instruction_handled(c, ended))
        ended = step_operator_method(c, w, name, call);
    if (in_place && !is_instruction_handled(c, ended))
        ended = step_operator_method(c, w, plain, call);
    if (!is_instruction_handled(c, ended))
        ended = step_operator_method(c, w, plain, &swapped);
    return ended;
}

static enum ended execute_operation(struct capture *c, struct watched *w, const char *name,
                                    const struct call *call)
{
    enum ended ended;

    if (!call->callable)
        return break_at_no_memory(c);
    if (PyBool_Check(call->args[0]) && !strcmp(name, "invert"))
        return break_graph(c, "value", "~ of a bool, which CPython warns of");
    switch (classify_operation(c, name, call)) {
    case OPERATION_NODE:
        return run_graph_operator(c, w, name, call, true);
    case OPERATION_KNOWN:
        return stack_replace_known(c, w, call->slots, run_call(call));
    case OPERATION_OF_CLASSES:
        break;
    }
    ended = call_set_operation(c, w, call);
    if (ended != ENDED_BEFORE)
        return ended;
    ended = execute_move(c, w, name, call);
    if (is_instruction_handled(c, ended))
        return ended;
    ended = execute_operator_by_polyfill(c, w, name, call);
    if (is_instruction_handled(c, ended))
        return ended;
    ended = execute_operator_by_method(c, w, name, call);
    return is_instruction_handled(c, ended) ? ended : break_at_unknown_operand(c, call, name);
}

static enum ended execute_binary_operator(struct capture *c, struct watched *w, uint32_t which)
{
    struct operands operands;
    struct call call = describe_top_call(w, binary_names[which], 2, &operands);

    /* use the plain operator, because integers have no in-place operators: `n += 1` is add(n, 1) */
    if (are_varying_numbers(c, &call))
        call.callable = get_operator(binary_names[which % BINARY_OPERATORS]);
    return execute_operation(c, w, binary_names[which], &call);
}

/* Does the next instruction branch on the result of this one, or convert it to a bool? */
static bool is_truth_used_next(const struct watched *w)
{
    const int next = w->next < w->units ? w->bytes[2 * w->next] : CACHE;

    if (next == UNARY_NOT || next == TO_BOOL || next == EXTENDED_ARG)
        return true;
    return compat_ops[next].jumps;
}

/* Add a guard that CALL, a comparison of integers, gives RESULT in later calls, too. Some of the
 * integers are inputs of the graph. Returns false if no such guard is possible. */
static bool guard_comparison(struct capture *c, const struct call *call, PyObject *result)
{
    OWNED PyObject *expression = make_expression(c, call);
    OWNED PyObject *guard = expression ? PyTuple_Pack(2, expression, result) : NULL;

    return guard && !c->foreign && !guard_add(c, c->locals, "COMPARISON", guard);
}

static enum ended execute_comparison(struct capture *c, struct watched *w,
                                     struct compat_action action)
{
    static const char *const names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
    const char *name = names[action.arg];
    struct operands operands;
    const struct call call = describe_top_call(w, name, 2, &operands);
    enum ended ended;

    if (is_truth_used_next(w) && are_varying_numbers(c, &call)) {
        OWNED PyObject *result = run_call(&call);

        if (result && guard_comparison(c, &call, result))
            return stack_replace_known(c, w, call.slots, Py_NewRef(result));
    }
    ended = execute_operation(c, w, name, &call);
    c->make_bool = action.flag && is_instruction_done(ended) && !PyBool_Check(stack_value(w, 0));
    return ended;
}

/* If SHADOW is the result of an in-place operation, return the shadow of the operand that the
 * operation has changed and returned. Otherwise return SHADOW. */
static struct shadow *skip_in_place_results(struct shadow *shadow)
{
    while (shadow && shadow->kind == SHADOW_NODE && shadow->node.same)
        shadow = shadow->node.same;
    return shadow;
}

/* Is NUMBER a small integer, for which CPython always uses the same object? */
static bool is_cached_integer(PyObject *number)
{
    int large;
    const long value = PyLong_AsLongAndOverflow(number, &large);

    return !large && value >= -5 && value <= 256;
}

/* Are A and B certainly the same object if they are equal? They are if they are None, bools or
 * small integers. */
static bool are_cached_singletons(PyObject *a, PyObject *b)
{
    if (a == Py_None || b == Py_None || PyBool_Check(a) || PyBool_Check(b))
        return true;
    if (!PyLong_CheckExact(a) || !PyLong_CheckExact(b))
        return false;
    return is_cached_integer(a) && is_cached_integer(b);
}

/* Do the shadows of A and B tell without a guard whether A and B are the same object? */
static bool is_identity_known_from_shadows(PyObject *b, const struct shadow *of_a,
                                           const struct shadow *of_b)
{
    if (b == get_polyfill("end"))
        return true;
    if (!of_a)
        return false;
    if (of_a == of_b)
        return true;
    return of_b && (of_a->kind == SHADOW_OBJECT || of_b->kind == SHADOW_OBJECT);
}

/* Can guards on the values of A and B ensure that `A is B` gives the same result in later calls?
 * Adds these guards. */
static bool guard_values_for_identity(struct capture *c, PyObject *a, PyObject *b,
                                      struct shadow *of_a, struct shadow *of_b)
{
    if (!ensure_type_known(c, a, of_a) || !ensure_type_known(c, b, of_b))
        return false;
    if (Py_TYPE(a) != Py_TYPE(b))
        return true;
    if (!are_cached_singletons(a, b) && (value_is_simple(a) || is_graph_value(a, of_a)))
        return false;
    return ensure_value_known(c, a, of_a) && ensure_value_known(c, b, of_b);
}

/* Add a guard that A and B are the same object, or, if they are not, that they are different
 * objects. A and B were read from two sources. Returns false if no such guard is possible. */
static bool guard_identity(struct capture *c, PyObject *a, PyObject *b, struct shadow *of_a,
                           struct shadow *of_b)
{
    PyObject *path;

    if (!is_source(of_a) || !is_source(of_b) || !of_b->source.key || c->foreign)
        return false;
    path = source_make_path(c, of_b);
    return path && !guard_add(c, of_a, a == b ? "ALIASING" : "NO_ALIASING", path);
}

/* Execute `a is b` or, if NEGATED, `a is not b`, for the top two values. */
static enum ended compare_identity(struct capture *c, struct watched *w, bool negated)
{
    PyObject *a = stack_value(w, 1), *b = stack_value(w, 0);
    struct shadow *of_a = skip_in_place_results(stack_shadow(w, 1)),
                  *of_b = skip_in_place_results(stack_shadow(w, 0));
    bool is_sure = is_identity_known_from_shadows(b, of_a, of_b);

    if (!is_sure)
        is_sure = guard_values_for_identity(c, a, b, of_a, of_b);
    if (!is_sure)
        is_sure = guard_identity(c, a, b, of_a, of_b);
    PyErr_Clear();
    if (!is_sure)
        return break_graph(c, "value", "identity of a %.200s%s", Py_TYPE(a)->tp_name,
                           of_a && of_b ? "" : " that is not known");
    return stack_replace_known(c, w, 2, PyBool_FromLong((a == b) != negated));
}

/* Is it known whether the dict DICT has the key ITEM, which is known? Adds guards. */
static bool is_presence_of_key_known(struct capture *c, PyObject *dict, struct shadow *of,
                                     PyObject *item)
{
    const char *kind;

    if (is_kind(of, SHADOW_DICT))
        return true;
    if (!is_source(of) || c->foreign || !ensure_not_aliased(c, of))
        return false;
    if (!of->source.changed && !ensure_type_known(c, dict, of))
        return false;
    if (!source_find_changed(of, '[', item)) {
        kind = PyDict_Contains(dict, item) == 1 ? "DICT_CONTAINS" : "DICT_NOT_CONTAINS";
        guard_add(c, of, kind, item);
    }
    return true;
}

static enum ended execute_contains(struct capture *c, struct watched *w)
{
    PyObject *container = stack_value(w, 0), *item = stack_value(w, 1);
    struct shadow *of = stack_shadow(w, 0), *of_item = stack_shadow(w, 1);
    struct operands operands = {{container, item}, {of, of_item}};
    const struct call call = describe_operator_call("contains", 2, 2, &operands);
    const bool is_dict = of && PyDict_CheckExact(container);
    bool is_known = false;

    if ((is_dict || PyAnySet_CheckExact(container)) && value_is_simple(item) &&
        ensure_value_known(c, item, of_item)) {
        if (is_dict)
            is_known = is_presence_of_key_known(c, container, of, item);
        else
            is_known = ensure_set_known(c, container, of);
    }
    if (is_known)
        return stack_replace_known(c, w, 2, run_call(&call));
    return execute_operation(c, w, "contains", &call);
}

/* Convert VALUE as !s, !r or !a in an f-string does: a new reference. */
static PyObject *convert_for_format(PyObject *value, uint32_t how)
{
    enum { CONVERT_NOT, CONVERT_STR, CONVERT_REPR, CONVERT_ASCII };

    switch (how) {
    case CONVERT_NOT:
        return Py_NewRef(value);
    case CONVERT_STR:
        return PyObject_Str(value);
    case CONVERT_REPR:
        return PyObject_Repr(value);
    default:
        return PyObject_ASCII(value);
    }
}

static enum ended execute_format(struct capture *c, struct watched *w, struct compat_action action)
{
    const bool has_format = action.flag;
    struct operands operands;
    const struct call call = describe_top_call(w, "format", has_format ? 2 : 1, &operands);
    OWNED PyObject *text = NULL;
    PyObject *result;

    if (!ensure_arguments_known(c, &call, false))
        return break_at_unknown_operand(c, &call, "the text");
    text = convert_for_format(operands.values[0], action.arg);
    if (!text)
        return ENDED_RAISED;
    result = PyObject_Format(text, has_format ? operands.values[1] : NULL);
    return stack_replace_known(c, w, call.slots, result);
}

static bool is_truth_known(struct capture *c, PyObject *value, struct shadow *of)
{
    if (is_sequence(value))
        return ensure_type_known(c, value, of);
    if (PyDict_CheckExact(value))
        return is_kind(of, SHADOW_DICT);
    if (PyAnySet_CheckExact(value))
        return ensure_set_known(c, value, of);
    return value_is_plain(value) && ensure_value_known(c, value, of);
}

enum ended convert_to_bool(struct capture *c, struct watched *w)
{
    PyObject *value = stack_value(w, 0);
    struct shadow *of = stack_shadow(w, 0);
    const char *type = Py_TYPE(value)->tp_name;
    enum ended ended = convert_object_to_bool(c, w);
    int is;

    if (is_instruction_handled(c, ended))
        return finish_truth_test(c, w, ended, false);
    if (is_graph_value(value, of))
        return break_graph(c, "data", "whether a %.100s is true decides what runs", type);
    if (!is_truth_known(c, value, of))
        return break_graph(c, "value", "whether a %.100s is true", type);
    is = PyObject_IsTrue(value);
    return stack_replace_known(c, w, 1, is < 0 ? NULL : PyBool_FromLong(is));
}

static enum ended execute_unary_operator(struct capture *c, struct watched *w, const char *name)
{
    struct operands operands;
    const struct call call = describe_top_call(w, name, 1, &operands);

    return execute_operation(c, w, name, &call);
}

static enum ended execute_get_iter(struct capture *c, struct watched *w)
{
    struct operands operands;
    const struct call call = describe_top_call(w, "iter", 1, &operands);
    enum ended ended = execute_iter_call(c, w, &call);

    if (COMPAT_ABOVE_ITERATOR && is_instruction_done(ended))
        stack_push(w, NULL, NULL);
    return ended;
}

enum ended execute_operator(struct capture *c, struct watched *w, struct compat_action action)
{
    switch (action.op) {
    case BINARY_OP:
        return execute_binary_operator(c, w, action.arg);
    case UNARY_NEGATIVE:
        return execute_unary_operator(c, w, "neg");
    case UNARY_POSITIVE:
        return execute_unary_operator(c, w, "pos");
    case UNARY_INVERT:
        return execute_unary_operator(c, w, "invert");
    case GET_ITER:
        return execute_get_iter(c, w);
    case TO_BOOL:
        return convert_to_bool(c, w);
    case UNARY_NOT:
        return finish_truth_test(c, w, convert_to_bool(c, w), true);
    case COMPARE_OP:
        return execute_comparison(c, w, action);
    case IS_OP:
        return compare_identity(c, w, action.arg);
    case CONTAINS_OP:
        return finish_truth_test(c, w, execute_contains(c, w), action.arg);
    case FORMAT_VALUE:
        return execute_format(c, w, action);
    default:
        return execute_build(c, w, action);
    }
}
