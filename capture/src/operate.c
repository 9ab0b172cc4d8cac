/* capture/src/operate.c -- operations: on arrays, which become nodes, and on known values. See
 * capture.h.
 *
 * Whether an operation is understood is found out before it runs: until then the frame is as
 * CPython left it, and ENDED_BEFORE breaks there. What has run and gave no array breaks behind it
 * (ENDED_BEHIND), what raised is raised (ENDED_RAISED). */
#include "capture.h"

#include <stdarg.h>

enum { LONGEST = 60 /* operands of what calculates a number that is in a guard */ };

enum ended break_at(struct capture *c, const char *kind, const char *format, ...)
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

/* ---- the stack ---- */

PyObject *stack_value(const struct watched *w, int from_top)
{
    return compat_local(w->frame, w->variables + w->depth - 1 - from_top);
}

struct shadow *stack_shadow(const struct watched *w, int from_top)
{
    return w->shadow[w->variables + w->depth - 1 - from_top];
}

struct shadow shadow_of_null = {.kind = SHADOW_CONST};

void stack_push(struct watched *w, PyObject *value, struct shadow *shadow)
{
    if (!value)
        shadow = &shadow_of_null;
    else if (shadow && !shadow_fits(shadow, value))
        shadow = NULL;
    w->shadow[w->variables + w->depth] = shadow;
    compat_give_local(w->frame, w->variables + w->depth++, value);
}

void stack_drop(struct watched *w, int count)
{
    while (count--) {
        PyObject *value = compat_take_local(w->frame, w->variables + --w->depth);
        w->shadow[w->variables + w->depth] = NULL;
        Py_XDECREF(value);
    }
}

enum ended stack_result(struct capture *c, struct watched *w, int count, PyObject *result,
                        struct shadow *shadow)
{
    if (!result)
        return ENDED_RAISED;
    stack_drop(w, count);
    stack_push(w, result, shadow);
    return ENDED_NOT;
}

enum ended known_result(struct capture *c, struct watched *w, int count, PyObject *result)
{
    const bool list = result && PyList_CheckExact(result);
    struct shadow *shadow = list     ? shadow_new(c, SHADOW_LIST, 0)
                            : result ? shadow_const(c, result)
                                     : NULL;
    bool is =
        !result || list || value_is_simple(result) || PyType_Check(result) || PySlice_Check(result);

    for (Py_ssize_t i = 0; list && shadow && i < PyList_GET_SIZE(result); i++) {
        is &= value_is_simple(PyList_GET_ITEM(result, i));
        shadow_add(c, shadow, NULL, shadow_const(c, PyList_GET_ITEM(result, i)));
    }
    if (is)
        return stack_result(c, w, count, result, shadow);
    break_at(c, "value", "a %.200s was made of known values", Py_TYPE(result)->tp_name);
    stack_result(c, w, count, result, NULL);
    return ENDED_BEHIND;
}

/* ---- nodes ---- */

bool has_graph(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++)
        if (!may_go_on(c) ||
            has_graph(c, shadow->items[i] ? shadow->items[i]->value : NULL, shadow->items[i]))
            return true;
    return is_graph(value, shadow) ||
           (value && shadow && shadow->kind == SHADOW_SOURCE && value_has_array(value, 3));
}

bool is_graph(PyObject *value, const struct shadow *shadow)
{
    return (shadow && shadow->kind == SHADOW_NODE && !shadow->node.is_number) ||
           (value && value_is_array(value));
}

bool is_fixed(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++)
        if (!may_go_on(c) ||
            !is_fixed(c, shadow->items[i] ? shadow->items[i]->value : NULL, shadow->items[i]))
            return false;
    return !is_graph(value, shadow) ||
           (shadow &&
            (shadow->kind == SHADOW_SOURCE || (shadow->kind == SHADOW_NODE && shadow->node.fixed)));
}

bool is_set(PyObject *value, const struct shadow *of)
{
    return of && PyAnySet_CheckExact(value) &&
           (of->kind == SHADOW_CALL || of->kind == SHADOW_CONST);
}

bool set_known(struct capture *c, PyObject *value, struct shadow *of)
{
    OWNED PyObject *items =
        PyAnySet_CheckExact(value) && of && of->kind == SHADOW_SOURCE && !c->foreign
            ? PySequence_Tuple(value)
            : NULL;

    if (items && value_is_simple(items) && !of->source.listed)
        of->source.listed = !guard_on(c, of, "EQUALS_MATCH", value);
    PyErr_Clear();
    return is_set(value, of) || (items && of->source.listed && !c->failed);
}

bool has_number(const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++)
        if (has_number(shadow->items[i]))
            return true;
    if (is_kind(shadow, SHADOW_NODE))
        return shadow->node.is_number;
    return is_source(shadow) && shadow->source.varies == VARIES_INPUT;
}

PyObject *operator_named(const char *name)
{
    static PyObject *module;
    PyObject *found = module_has(&module, "operator", name);

    return found ? found : builtin_named(name);
}

PyObject *place_now(const struct capture *c)
{
    OWNED PyObject *place = PyList_New(0);

    for (const struct watched *w = c->innermost; place && w; w = w->outer) {
        OWNED PyObject *unit = PyLong_FromLong(w->unit);
        if (!compat_hides(w->code) &&
            (!unit || PyList_Append(place, (PyObject *)w->code) || PyList_Append(place, unit)))
            return NULL;
    }
    return place ? PyList_AsTuple(place) : NULL;
}

/* Likewise, and behind each the part that has its globals, and the name of its module. */
static PyObject *place_of_node(struct capture *c)
{
    OWNED PyObject *place = PyList_New(0);

    for (struct watched *w = c->innermost; place && w; w = w->outer) {
        PyObject *globals = w->frame->f_globals;
        PyObject *name = PyDict_CheckExact(globals)
                             ? PyDict_GetItemWithError(globals, word_of("__name__"))
                             : NULL;
        OWNED PyObject *one = NULL;

        if (compat_hides(w->code))
            continue;
        one = Py_BuildValue("(OiOO)", w->code, w->unit,
                            w->globals == c->globals ? Py_True : plan_part(c, w->globals),
                            name ? name : Py_None);
        if (!one || PyList_Append(place, one))
            return NULL;
    }
    return place ? PyList_AsTuple(place) : NULL;
}

int add_node(struct capture *c, PyObject *node)
{
    OWNED PyObject *place = place_of_node(c);

    return place && !PyList_Append(c->places, place) && !PyList_Append(c->nodes, node) ? 0 : -1;
}

bool code_handles(PyCodeObject *code, const uint8_t *bytes, int32_t unit)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(code->co_exceptiontable),
                        *end = at + PyBytes_GET_SIZE(code->co_exceptiontable);

    while (at < end) {
        uint32_t row[4]; /* its first unit, how many, that of what handles it, the stack then */
        for (int i = 0; i < 4; i++)
            if (!compat_read_number(&at, end, &row[i]))
                return true;
        if ((unit < 0 || ((uint32_t)unit >= row[0] && (uint32_t)unit < row[0] + row[1])) &&
            ((Py_ssize_t)row[2] >= Py_SIZE(code) || bytes[2 * row[2]] == PUSH_EXC_INFO))
            return true;
    }
    return false;
}

/* The graph runs where its code begins: no handler sees what it raises. But a graph that has done
 * nothing but give results can be left, and the function's own code run from its beginning. PURE:
 * the operation gives a result, and does and warns of nothing. */
enum ended may_operate(struct capture *c, bool pure)
{
    bool handled = false;

    for (const struct watched *w = c->innermost; w && !handled; w = w->outer)
        handled = code_handles(w->code, w->bytes, w->unit);
    c->handled = handled && (!pure || c->impure || c->foreign);
    if (c->handled)
        return break_at(c, "instruction",
                        "an operation inside try or with, where its exception would be handled");
    if (c->attempted && !pure)
        return break_at(
            c, "instruction",
            "an operation that changes something or may warn, behind one whose exception would "
            "be handled");
    c->attempted |= handled;
    c->impure |= !pure;
    return ENDED_NOT;
}

/* Is VALUE an array, or several? If an operation on it may run code of the program's, that is
 * noted. */
static bool is_result(struct capture *c, PyObject *value)
{
    const bool several = PyTuple_Check(value) || PyList_CheckExact(value);
    const Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(value) : 1;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = several ? PySequence_Fast_GET_ITEM(value, i) : value;
        if (!value_is_array(one))
            return false;
        c->foreign |= value_is_foreign(one);
    }
    return count > 0;
}

/* The node of OPERATION, whose arguments go: its shadow, or NULL: no memory. */
static struct shadow *add_operation(struct capture *c, struct operation *operation)
{
    OWNED PyObject *node = node_new(word_of(operation->op), NULL, operation->target,
                                    operation->args, operation->keywords);
    struct shadow *shadow = node && !add_node(c, node) && capture_keep(c, node)
                                ? shadow_node(c, node, operation->fixed, operation->counted)
                                : NULL;

    PyErr_Clear();
    if (!shadow)
        c->failed = true;
    else
        shadow->node.same = operation->same;
    return shadow;
}

enum ended node_result(struct capture *c, struct watched *w, int count, struct operation *operation,
                       PyObject *result)
{
    struct shadow *shadow = NULL;
    enum ended ended = ENDED_NOT;

    if (result && is_result(c, result))
        return stack_result(c, w, count, result, add_operation(c, operation));
    Py_CLEAR(operation->args);
    Py_CLEAR(operation->keywords);
    if (!result)
        return ENDED_RAISED;
    if (operation->counted && PyType_Check(operation->target) && value_is_description(result)) {
        shadow = shadow_const(c, result);
    } else {
        break_at(c, "data", "%.100s gives a %.100s",
                 operation->op[5] == 'm' ? PyUnicode_AsUTF8(operation->target) : "a call",
                 Py_TYPE(result)->tp_name);
        ended = ENDED_BEHIND;
    }
    stack_result(c, w, count, result, shadow);
    return ended;
}

enum ended unknown_operand(struct capture *c, const struct call *call, const char *what)
{
    for (int i = call->count; i-- > 0;)
        if (!call->shadows[i])
            return break_at(c, "value", "%s of a %.200s that is not known", what,
                            Py_TYPE(call->args[i])->tp_name);
    return break_at(c, "value", "%s of a %.200s", what, Py_TYPE(call->args[0])->tp_name);
}

/* Are its arguments integers, one of which varies? */
static bool are_numbers(struct capture *c, const struct call *call)
{
    bool varies = false;

    for (int i = 0; i < call->count; i++) {
        if (!PyLong_CheckExact(call->args[i]))
            return false;
        varies |= is_varying(c, call->shadows[i]);
    }
    return varies;
}

/* How the number that CALL gives comes about, for guards: (operator, operands...); an operand is
 * the path of an input in a tuple, another such tuple, or a number. A new reference. NULL: that is
 * too long. */
static PyObject *expression_of(struct capture *c, const struct call *call)
{
    PyObject *made = PyTuple_New(1 + call->count);

    if (made)
        PyTuple_SET_ITEM(made, 0, Py_NewRef(call->callable));
    for (int i = 0; made && i < call->count; i++) {
        struct shadow *of = call->shadows[i];
        PyObject *one = !of                             ? NULL
                        : of->kind == SHADOW_NODE       ? Py_XNewRef(of->node.expression)
                        : is_varying(c, of)             ? Py_BuildValue("(O)", source_path(c, of))
                        : value_known(c, of->value, of) ? Py_NewRef(of->value)
                                                        : NULL;
        PyTuple_SET_ITEM(made, 1 + i, one);
        if (!one)
            Py_CLEAR(made);
    }
    PyErr_Clear();
    return made;
}

enum ended operate_graph(struct capture *c, struct watched *w, const char *name,
                         const struct call *call, bool keeps)
{
    const bool numbers = are_numbers(c, call), in_place = name[0] == 'i' && strcmp(name, "invert");
    const bool reads =
        !strcmp(name, "getitem") || !strcmp(name, "getattr"); /* numpy warns of nothing */
    bool pure = numbers || (!in_place && strcmp(name, "setitem")), first, rest;
    struct operation operation;
    struct shadow *shadow;
    enum ended ended;
    PyObject *result;

    for (int i = 0; i < call->count; i++)
        if (value_is_array(call->args[i]))
            pure &= reads ? value_is_theirs(call->args[i]) : value_is_quiet(call->args[i]);
    pure &= !torch_warns(call, name);
    if ((ended = may_operate(c, pure)))
        return ended;
    if (!node_arguments(c, call, strstr(name, "item"), &operation, &first, &rest))
        return unknown_operand(c, call, name);
    operation.fixed &= keeps;
    result = run_call(call);
    if (in_place && !numbers && result == call->args[0])
        operation.same = call->shadows[0];
    /* setitem() has no result */
    if (!result || !(numbers || (result == Py_None && call->count > 2)))
        return node_result(c, w, call->slots, &operation, result);
    shadow = add_operation(c, &operation);
    if (numbers && shadow) {
        OWNED PyObject *expression = NULL;
        for (int i = 0; i < call->count; i++) {
            shadow_add(c, shadow, NULL, call->shadows[i]);
            shadow->node.steps +=
                call->shadows[i]->kind == SHADOW_NODE ? call->shadows[i]->node.steps : 1;
        }
        expression = shadow->node.steps < LONGEST ? expression_of(c, call) : NULL;
        shadow->node.expression = capture_keep(c, expression);
        shadow->node.is_number = true;
        shadow->value = capture_keep(c, result);
        c->number_nodes++;
    }
    return stack_result(c, w, call->slots, result, shadow);
}

/* ---- operators ---- */

struct call operator_call(const char *name, int slots, int count, struct operands *operands)
{
    return (struct call){.callable = operator_named(name),
                         .args = operands->values,
                         .shadows = operands->of,
                         .count = count,
                         .slots = slots};
}

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
        ended = iterate_call(c, w, &call, "iter");
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
