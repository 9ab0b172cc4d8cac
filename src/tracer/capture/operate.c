/* tracer/capture/operate.c -- operations: on arrays, which become nodes, and on known values. See capture.h.
 *
 * Whether an operation is understood is found out before it runs: until then the frame is as CPython left it, and ENDED_BEFORE
 * breaks there. What has run and gave no array breaks behind it (ENDED_BEHIND), what raised is raised (ENDED_RAISED). */
#include "tracer/capture/capture.h"
#include "tracer/resume/program.h"

#include <stdarg.h>

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
    w->shadow[w->variables + w->depth] = value ? shadow : &shadow_of_null;
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

enum ended stack_result(struct capture *c, struct watched *w, int count, PyObject *result, struct shadow *shadow)
{
    if (!result)
        return ENDED_RAISED;
    stack_drop(w, count);
    stack_push(w, result, shadow);
    return ENDED_NOT;
}

enum ended known_result(struct capture *c, struct watched *w, int count, PyObject *result)
{
    struct shadow *shadow = result && PyList_CheckExact(result) ? shadow_new(c, SHADOW_LIST, 0) : result ? shadow_const(c, result) : NULL;
    bool is = !result || value_is_simple(result) || PyType_Check(result) || PySlice_Check(result);

    for (Py_ssize_t i = 0; result && shadow && PyList_CheckExact(result) && i < PyList_GET_SIZE(result); i++) {
        is = value_is_simple(PyList_GET_ITEM(result, i)) && (!i || is);
        shadow_add(c, shadow, NULL, shadow_const(c, PyList_GET_ITEM(result, i)));
    }
    if (!is && !(PyList_CheckExact(result) && !PyList_GET_SIZE(result))) {
        break_at(c, "value", "a %.200s was made of known values", Py_TYPE(result)->tp_name);
        stack_result(c, w, count, result, NULL);
        return ENDED_BEHIND;
    }
    return stack_result(c, w, count, result, shadow);
}

/* ---- nodes ---- */

static bool is_container(const struct shadow *shadow)
{
    return shadow->kind >= SHADOW_TUPLE && shadow->kind <= SHADOW_SLICE;
}

bool has_graph(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; shadow && is_container(shadow) && i < shadow->count; i++)
        if (!may_go_on(c) || has_graph(c, shadow->items[i] ? shadow->items[i]->value : NULL, shadow->items[i]))
            return true;
    return is_graph(value, shadow) || (value && shadow && shadow->kind == SHADOW_SOURCE && value_has_array(value, 3));
}

bool is_graph(PyObject *value, const struct shadow *shadow)
{
    return (shadow && shadow->kind == SHADOW_NODE && !shadow->varies) || (value && value_is_array(value));
}

bool is_fixed(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; shadow && is_container(shadow) && i < shadow->count; i++)
        if (!may_go_on(c) || !is_fixed(c, shadow->items[i] ? shadow->items[i]->value : NULL, shadow->items[i]))
            return false;
    return !is_graph(value, shadow) || (shadow && (shadow->kind == SHADOW_SOURCE || (shadow->kind == SHADOW_NODE && shadow->fixed)));
}

bool has_number(const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; shadow && is_container(shadow) && i < shadow->count; i++)
        if (has_number(shadow->items[i]))
            return true;
    return shadow && shadow->varies == 1;
}

PyObject *operator_named(const char *name)
{
    static PyObject *module;

    if (!module && !(module = PyImport_ImportModule("operator")))
        PyErr_Clear();
    return !module ? NULL : PyDict_GetItemString(strcmp(name, "getattr") ? PyModule_GetDict(module) : PyEval_GetBuiltins(), name);
}

int add_node(struct capture *c, PyObject *node)
{
    PyObject *place = NULL, *code = NULL;
    int status;

    for (const struct watched *w = c->innermost; w && (place || !code); w = w->outer) {
        OWNED PyObject *inner = place, *rest = NULL, *outer = NULL;
        if (compat_hides(w->code)) {
            inner = NULL;
            continue;
        }
        rest = !inner || PyTuple_Check(inner) ? Py_XNewRef(inner) : PyTuple_Pack(1, inner);
        outer = rest ? Py_BuildValue("(iO)", (int)w->unit, code) : NULL;
        place = inner ? outer ? PySequence_Concat(outer, rest) : NULL : PyLong_FromLong(w->unit);
        code = (PyObject *)w->code;
    }
    status = place && !PyList_Append(c->places, place) && !PyList_Append(c->nodes, node) ? 0 : -1;
    Py_XDECREF(place);
    return status;
}

/* Does something handle what W's instruction raises, other than by cleaning up behind a comprehension? */
static bool is_handled(const struct watched *w)
{
    PyObject *table = w->code->co_exceptiontable;
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(table), *end = at + PyBytes_GET_SIZE(table);

    while (at < end) {
        uint32_t row[4];
        for (int i = 0; i < 4; i++)
            if (!program_number(&at, end, &row[i]))
                return false;
        if ((uint32_t)w->unit >= row[0] && (uint32_t)w->unit < row[0] + row[1] && row[2] < (uint32_t)w->units)
            return w->bytes[2 * row[2]] == PUSH_EXC_INFO;
    }
    return false;
}

bool code_handles(PyCodeObject *code)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(code->co_exceptiontable), *end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
    OWNED PyObject *bytes = at < end ? PyCode_GetCode(code) : NULL;

    while (at < end) {
        uint32_t row[4];
        for (int i = 0; i < 4; i++)
            if (!program_number(&at, end, &row[i]))
                return true;
        if (!bytes || 2 * (Py_ssize_t)row[2] >= PyBytes_GET_SIZE(bytes) || (unsigned char)PyBytes_AS_STRING(bytes)[2 * row[2]] == PUSH_EXC_INFO)
            return PyErr_Clear(), true;
    }
    return false;
}

/* The graph runs where its code begins: no handler sees what it raises. */
enum ended may_operate(struct capture *c)
{
    for (const struct watched *w = c->innermost; w; w = w->outer)
        if (PyBytes_GET_SIZE(w->code->co_exceptiontable) && is_handled(w)) {
            c->handled = true;
            return break_at(c, "instruction", "an operation inside try or with, where its exception would be handled");
        }
    return ENDED_NOT;
}

static bool is_result(PyObject *value)
{
    Py_ssize_t count = PyTuple_Check(value) || PyList_CheckExact(value) ? PySequence_Fast_GET_SIZE(value) : 0;

    for (Py_ssize_t i = 0; i < count; i++)
        if (!value_is_array(PySequence_Fast_GET_ITEM(value, i)))
            return false;
    return count || value_is_array(value);
}

/* In what is_result(): may an operation on it run code of the program's? */
static bool has_foreign(PyObject *result)
{
    for (Py_ssize_t i = value_is_array(result) ? 0 : PySequence_Fast_GET_SIZE(result); i-- > 0;)
        if (value_is_foreign(PySequence_Fast_GET_ITEM(result, i)))
            return true;
    return value_is_array(result) && value_is_foreign(result);
}

enum ended node_result(struct capture *c, struct watched *w, int count, struct operation *operation, PyObject *result)
{
    OWNED PyObject *args = operation->args, *keywords = operation->keywords, *node = NULL;
    struct shadow *shadow = NULL;

    if (!result)
        return ENDED_RAISED;
    if (is_result(result)) {
        c->foreign |= has_foreign(result);
        node = node_new(operation->op, NULL, operation->target, Py_NewRef(args), Py_XNewRef(keywords));
        if (node && !add_node(c, node) && capture_keep(c, node))
            shadow = shadow_node(c, node, operation->fixed, operation->counted);
        if (!shadow)
            c->failed = true;
        else
            shadow->parent = operation->same;
        PyErr_Clear();
        if (shadow)
            return stack_result(c, w, count, result, shadow);
    }
    if (operation->counted && PyType_Check(operation->target) && value_is_description(result))
        return stack_result(c, w, count, result, shadow_const(c, result));
    break_at(c, "data", "%.100s gives a %.100s", operation->op[5] == 'm' ? PyUnicode_AsUTF8(operation->target) : "a call",
             Py_TYPE(result)->tp_name);
    stack_result(c, w, count, result, NULL);
    return ENDED_BEHIND;
}

static enum ended unknown_operand(struct capture *c, const struct watched *w, int count, const char *what)
{
    for (int i = 0; i < count; i++)
        if (!stack_shadow(w, i))
            return break_at(c, "value", "%s of a %.200s that is not known", what, Py_TYPE(stack_value(w, i))->tp_name);
    return break_at(c, "value", "%s of a %.200s", what, Py_TYPE(stack_value(w, count - 1))->tp_name);
}

enum ended operation_on(struct capture *c, const char *name, int count, PyObject *const *values, struct shadow *const *shadows,
                        struct operation *made)
{
    enum ended ended = may_operate(c);
    int i = 0;

    if (ended)
        return ended;
    *made = (struct operation){.op = "call_function", .target = operator_named(name), .args = PyTuple_New(count), .fixed = true};
    for (; made->args && i < count; i++) {
        PyObject *one = value_argument(c, values[i], shadows[i]);
        if (!one)
            break;
        PyTuple_SET_ITEM(made->args, i, one);
        made->fixed &= is_fixed(c, values[i], shadows[i]) && !(has_number(shadows[i]) && strstr(name, "item"));
    }
    made->counted = made->fixed;
    PyErr_Clear();
    if (i < count || !made->target || c->failed || (c->foreign && c->effects->count))
        ended = break_at(c, "value", "%s of a %.200s%s", name, Py_TYPE(values[i % count])->tp_name, shadows[i % count] ? "" : " that is not known");
    if (ended)
        Py_CLEAR(made->args);
    return ended;
}

/* operator.NAME of COUNT values from the top of the stack. ENDED_NOT: it may run. */
static enum ended prepare(struct capture *c, const struct watched *w, int count, const char *name, struct operation *made)
{
    PyObject *const values[] = {stack_value(w, count - 1), stack_value(w, 0)};
    struct shadow *const shadows[] = {stack_shadow(w, count - 1), stack_shadow(w, 0)};

    return operation_on(c, name, count, values, shadows, made);
}

/* ---- operators ---- */

static const struct {
    const char *name;
    PyObject *(*run)(PyObject *, PyObject *);
} binary[] = { /* NB_ADD ... */
    {"add", PyNumber_Add}, {"and_", PyNumber_And}, {"floordiv", PyNumber_FloorDivide}, {"lshift", PyNumber_Lshift},
    {"matmul", PyNumber_MatrixMultiply}, {"mul", PyNumber_Multiply}, {"mod", PyNumber_Remainder}, {"or_", PyNumber_Or},
    {"pow", NULL}, {"rshift", PyNumber_Rshift}, {"sub", PyNumber_Subtract}, {"truediv", PyNumber_TrueDivide}, {"xor", PyNumber_Xor},
    {"iadd", PyNumber_InPlaceAdd}, {"iand", PyNumber_InPlaceAnd}, {"ifloordiv", PyNumber_InPlaceFloorDivide},
    {"ilshift", PyNumber_InPlaceLshift}, {"imatmul", PyNumber_InPlaceMatrixMultiply}, {"imul", PyNumber_InPlaceMultiply},
    {"imod", PyNumber_InPlaceRemainder}, {"ior", PyNumber_InPlaceOr}, {"ipow", NULL}, {"irshift", PyNumber_InPlaceRshift},
    {"isub", PyNumber_InPlaceSubtract}, {"itruediv", PyNumber_InPlaceTrueDivide}, {"ixor", PyNumber_InPlaceXor},
};

static PyObject *run_binary(uint32_t which, PyObject *a, PyObject *b)
{
    if (binary[which].run)
        return binary[which].run(a, b);
    return which < 13 ? PyNumber_Power(a, b, Py_None) : PyNumber_InPlacePower(a, b, Py_None);
}

/* The two on top, tuples or lists of one type, put together. */
static enum ended join(struct capture *c, struct watched *w)
{
    PyObject *part[2] = {stack_value(w, 1), stack_value(w, 0)}, *made;
    struct shadow *of[2] = {stack_shadow(w, 1), stack_shadow(w, 0)}, *shadow;

    if (!value_type_known(c, part[0], of[0]) || !value_type_known(c, part[1], of[1]) ||
        !(shadow = shadow_new(c, PyTuple_CheckExact(part[0]) ? SHADOW_TUPLE : SHADOW_LIST, 0)))
        return unknown_operand(c, w, 2, "+");
    for (int i = 0; i < 2; i++)
        if (shadow_add_items(c, shadow, part[i], of[i]))
            return unknown_operand(c, w, 2, "+");
    made = PySequence_Concat(part[0], part[1]);
    return stack_result(c, w, 2, made, shadow);
}

static PyObject *run_special(const struct call *call)
{
    PyObject *a = call->args[0], *b = call->count > 1 ? call->args[1] : NULL;
    int is;

    switch (call->which & ~0xff) {
    case RUN_BINARY:
        return run_binary((uint32_t)call->which & 0xff, a, b);
    case RUN_REFLECTED:
        return run_binary((uint32_t)call->which & 0xff, b, a);
    case RUN_UNARY:
        return call->which == (RUN_UNARY | '-') ? PyNumber_Negative(a) : call->which == (RUN_UNARY | '~') ? PyNumber_Invert(a) : PyNumber_Positive(a);
    case RUN_COMPARE:
        return PyObject_RichCompare(a, b, call->which & 0xff);
    case RUN_GET:
        return PyObject_GetItem(a, b);
    case RUN_SET:
        return PyObject_SetItem(a, b, call->args[2]) ? NULL : Py_NewRef(Py_None);
    case RUN_ITERATE:
        return PyObject_GetIter(a);
    case RUN_LENGTH:
        is = (int)PyObject_Size(a);
        return is < 0 ? NULL : PyLong_FromLong(is);
    case RUN_CONTAINS:
        is = PySequence_Contains(a, b);
        break;
    default:
        is = PyObject_IsTrue(a);
    }
    return is < 0 ? NULL : PyBool_FromLong(is != (call->which & 0xff));
}

enum ended operate_special(struct capture *c, struct watched *w, const char *name, int which, int slots, int count, PyObject **values, struct shadow **shadows)
{
    const struct call call = {.args = values, .shadows = shadows, .count = count, .slots = slots, .run = run_special, .which = which};

    c->kind = NULL;
    return special(c, w, name, &call);
}

/* The operator of a class of the program's. ENDED_BEFORE without c->kind: there is none that can be stepped. */
static enum ended operate_own(struct capture *c, struct watched *w, uint32_t which)
{
    const bool in_place = which >= 13;
    const char *name = binary[which].name + in_place;
    const int length = (int)strcspn(name, "_");
    PyObject *a = stack_value(w, 1), *b = stack_value(w, 0);
    struct shadow *of_a = stack_shadow(w, 1), *of_b = stack_shadow(w, 0);
    enum ended ended = ENDED_BEFORE;
    char text[24];

    c->kind = NULL;
    for (int i = !in_place; i < 3 && ended == ENDED_BEFORE && !c->kind; i++) {
        snprintf(text, sizeof text, "__%s%.*s__", i == 0 ? "i" : i == 1 ? "" : "r", length, name);
        ended = i < 2 ? operate_special(c, w, text, RUN_BINARY | (int)which, 2, 2, (PyObject *[]){a, b}, (struct shadow *[]){of_a, of_b})
                      : operate_special(c, w, text, RUN_REFLECTED | (int)which, 2, 2, (PyObject *[]){b, a}, (struct shadow *[]){of_b, of_a});
    }
    return ended;
}

/* OPERATION on COUNT numbers of the stack, one of which varies, gave RESULT (taken). */
static enum ended number_result(struct capture *c, struct watched *w, int count, struct operation *operation, PyObject *result)
{
    OWNED PyObject *args = operation->args, *node = result ? node_new(operation->op, NULL, operation->target, Py_NewRef(args), NULL) : NULL;
    struct shadow *shadow = NULL, **items = capture_room(c, sizeof *items * (size_t)count);

    if (node && items && !add_node(c, node) && capture_keep(c, node))
        shadow = shadow_node(c, node, true, true);
    if (shadow) {
        for (int i = 0; i < count; i++)
            items[i] = stack_shadow(w, i);
        shadow->items = items;
        shadow->count = shadow->room = count;
        shadow->varies = 1;
        shadow->value = capture_keep(c, result);
        c->number_nodes++;
    }
    return stack_result(c, w, count, result, shadow);
}

/* Are the COUNT values on top integers, one of which varies, and the result of an operation on them a number whose type they say? */
static bool are_numbers(struct capture *c, const struct watched *w, int count)
{
    bool varies = false;

    for (int i = 0; i < count; i++) {
        if (!PyLong_CheckExact(stack_value(w, i)))
            return false;
        varies |= is_varying(c, stack_shadow(w, i));
    }
    return varies;
}

static enum ended operate_binary(struct capture *c, struct watched *w, uint32_t which)
{
    PyObject *a = stack_value(w, 1), *b = stack_value(w, 0);
    struct shadow *of_a = stack_shadow(w, 1), *of_b = stack_shadow(w, 0);
    struct operation operation;
    enum ended ended;
    int large;

    if (which >= sizeof binary / sizeof *binary)
        return break_at(c, "instruction", "an operator that is not known");
    if (is_graph(a, of_a) || is_graph(b, of_b)) {
        PyObject *result;
        if ((ended = prepare(c, w, 2, binary[which].name, &operation)))
            return ended;
        result = run_binary(which, a, b);
        operation.same = which >= 13 && result == a ? of_a : NULL;
        return node_result(c, w, 2, &operation, result);
    }
    if (are_numbers(c, w, 2) && (strstr("add sub mul mod floordiv truediv", binary[which % 13].name) ||
                                 (which % 13 == 8 && !is_varying(c, of_b) && PyLong_AsLongAndOverflow(b, &large) >= 0 && value_known(c, b, of_b)))) {
        ended = prepare(c, w, 2, binary[which % 13].name, &operation);
        return ended ? ended : number_result(c, w, 2, &operation, run_binary(which, a, b));
    }
    if (value_is_simple(a) && value_is_simple(b) && value_known(c, a, of_a) && value_known(c, b, of_b))
        return known_result(c, w, 2, run_binary(which, a, b));
    if (which == 0 && of_a && of_b && Py_TYPE(a) == Py_TYPE(b) && is_sequence(a))
        return join(c, w);
    if (which == 5 && PyList_CheckExact(a) && PyLong_CheckExact(b)) /* NB_MULTIPLY */
        return by_numbers_of(c, w, a, of_a, "__mul__", 1, (PyObject *[]){a, b}, (struct shadow *[]){of_a, of_b}, 2);
    if ((ended = operate_own(c, w, which)) != ENDED_BEFORE || c->kind)
        return ended;
    return unknown_operand(c, w, 2, binary[which].name);
}

static enum ended operate_unary(struct capture *c, struct watched *w, uint32_t sign)
{
    PyObject *(*const run)(PyObject *) = sign == '-' ? PyNumber_Negative : sign == '~' ? PyNumber_Invert : PyNumber_Positive;
    const char *name = sign == '-' ? "neg" : sign == '~' ? "invert" : "pos";
    PyObject *value = stack_value(w, 0);
    struct operation operation;
    enum ended ended;
    char text[24];

    if (is_graph(value, stack_shadow(w, 0))) {
        ended = prepare(c, w, 1, name, &operation);
        return ended ? ended : node_result(c, w, 1, &operation, run(value));
    }
    if (are_numbers(c, w, 1)) {
        ended = prepare(c, w, 1, name, &operation);
        return ended ? ended : number_result(c, w, 1, &operation, run(value));
    }
    if (value_is_simple(value) && value_known(c, value, stack_shadow(w, 0)))
        return known_result(c, w, 1, run(value));
    snprintf(text, sizeof text, "__%s__", name);
    if ((ended = operate_special(c, w, text, RUN_UNARY | (int)sign, 1, 1, &value, (struct shadow *[]){stack_shadow(w, 0)})) != ENDED_BEFORE || c->kind)
        return ended;
    return unknown_operand(c, w, 1, name);
}

static enum ended compare(struct capture *c, struct watched *w, struct compat_action action)
{
    static const char *const names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
    PyObject *a = stack_value(w, 1), *b = stack_value(w, 0), *result;
    struct operation operation;
    enum ended ended;
    char text[24];

    if (is_graph(a, stack_shadow(w, 1)) || is_graph(b, stack_shadow(w, 0))) {
        if ((ended = prepare(c, w, 2, names[action.arg], &operation)))
            return ended;
        ended = node_result(c, w, 2, &operation, PyObject_RichCompare(a, b, (int)action.arg));
        if (ended == ENDED_NOT && action.flag) { /* the next instruction jumps by it */
            c->make_bool = true;
            w->unit = w->group = w->next;
            w->before = w->depth;
            memcpy(w->shadow + w->variables + w->code->co_stacksize, w->shadow + w->variables, sizeof *w->shadow * (size_t)w->depth);
            return break_at(c, "data", "whether a %.100s is true decides what runs", Py_TYPE(stack_value(w, 0))->tp_name);
        }
        if (ended == ENDED_BEHIND && action.flag) { /* a plain value */
            int truth = PyObject_IsTrue(stack_value(w, 0));
            if (truth < 0)
                return ENDED_RAISED;
            stack_drop(w, 1);
            stack_push(w, PyBool_FromLong(truth), NULL);
        }
        return ended;
    }
    if (!action.flag && are_numbers(c, w, 2)) {
        ended = prepare(c, w, 2, names[action.arg], &operation);
        return ended ? ended : number_result(c, w, 2, &operation, PyObject_RichCompare(a, b, (int)action.arg));
    }
    if (value_is_plain(a) && value_is_plain(b) && value_known(c, a, stack_shadow(w, 1)) && value_known(c, b, stack_shadow(w, 0))) {
        result = PyObject_RichCompare(a, b, (int)action.arg);
        return known_result(c, w, 2, result);
    }
    snprintf(text, sizeof text, "__%s__", names[action.arg]);
    if (!action.flag && ((ended = operate_special(c, w, text, RUN_COMPARE | (int)action.arg, 2, 2, (PyObject *[]){a, b},
                                                  (struct shadow *[]){stack_shadow(w, 1), stack_shadow(w, 0)})) != ENDED_BEFORE || c->kind))
        return ended;
    return unknown_operand(c, w, 2, names[action.arg]);
}

/* Behind operations that give back one of their arguments: that. */
static struct shadow *object_of(struct shadow *shadow)
{
    while (shadow && shadow->kind == SHADOW_NODE && shadow->parent)
        shadow = shadow->parent;
    return shadow;
}

/* Are the two on top one object? */
static enum ended is_same(struct capture *c, struct watched *w, bool negated)
{
    PyObject *a = stack_value(w, 1), *b = stack_value(w, 0);
    struct shadow *of_a = object_of(stack_shadow(w, 1)), *of_b = object_of(stack_shadow(w, 0));
    bool single = a == Py_None || b == Py_None || PyBool_Check(a) || PyBool_Check(b);
    bool sure = of_a && (of_a == of_b || (of_b && (of_a->kind == SHADOW_OBJECT || of_b->kind == SHADOW_OBJECT)));

    if (!sure && value_type_known(c, a, of_a) && value_type_known(c, b, of_b))
        sure = Py_TYPE(a) != Py_TYPE(b) || (single && value_known(c, a, of_a) && value_known(c, b, of_b)) ||
               (!value_is_simple(a) && !is_graph(a, of_a) && value_known(c, a, of_a) && value_known(c, b, of_b));
    if (!sure)
        return unknown_operand(c, w, 2, "identity");
    return known_result(c, w, 2, PyBool_FromLong((a == b) != negated));
}

static enum ended contains(struct capture *c, struct watched *w, bool negated)
{
    PyObject *item = stack_value(w, 1), *container = stack_value(w, 0);
    struct shadow *of = stack_shadow(w, 0);
    enum ended ended;
    int found;

    if ((ended = operate_special(c, w, "__contains__", RUN_CONTAINS | negated, 2, 2, (PyObject *[]){container, item},
                                 (struct shadow *[]){of, stack_shadow(w, 1)})) != ENDED_BEFORE || c->kind)
        return ended;
    if (!value_is_simple(item) || !value_known(c, item, stack_shadow(w, 1)) || !of)
        return unknown_operand(c, w, 2, "in");
    if (of->kind == SHADOW_SOURCE && PyDict_CheckExact(container) && !c->foreign && value_type_known(c, container, of)) {
        found = PyDict_Contains(container, item);
        if (found >= 0)
            guard_on(c, of, found ? "DICT_CONTAINS" : "DICT_NOT_CONTAINS", item);
    } else if (of->kind == SHADOW_DICT && PyDict_CheckExact(container)) {
        found = PyDict_Contains(container, item);
    } else if (value_is_simple(container) || PyAnySet_CheckExact(container)) {
        if (!value_known(c, container, of))
            return unknown_operand(c, w, 2, "in");
        found = PySequence_Contains(container, item);
    } else {
        return unknown_operand(c, w, 2, "in");
    }
    return found < 0 ? ENDED_RAISED : known_result(c, w, 2, PyBool_FromLong((found == 1) != negated));
}

static enum ended format(struct capture *c, struct watched *w, struct compat_action action)
{
    PyObject *value = stack_value(w, action.flag ? 1 : 0), *spec = action.flag ? stack_value(w, 0) : NULL;
    OWNED PyObject *converted = NULL;

    if (!value_is_plain(value) || !value_known(c, value, stack_shadow(w, action.flag ? 1 : 0)) ||
        (spec && !value_known(c, spec, stack_shadow(w, 0))))
        return unknown_operand(c, w, 1, "the text");
    if (action.arg)
        converted = action.arg == 1 ? PyObject_Str(value) : action.arg == 2 ? PyObject_Repr(value) : PyObject_ASCII(value);
    if (action.arg && !converted)
        return ENDED_RAISED;
    return known_result(c, w, action.flag ? 2 : 1, PyObject_Format(action.arg ? converted : value, spec));
}

int truth_of(struct capture *c, PyObject *value, struct shadow *shadow)
{
    if (is_graph(value, shadow))
        break_at(c, "data", "whether a %.100s is true decides what runs", Py_TYPE(value)->tp_name);
    else if (is_sequence(value) ? value_type_known(c, value, shadow)
             : PyDict_CheckExact(value) ? shadow && shadow->kind == SHADOW_DICT
                                        : value_is_plain(value) && value_known(c, value, shadow))
        return PyObject_IsTrue(value);
    else
        break_at(c, "value", "whether a %.100s is true", Py_TYPE(value)->tp_name);
    return -2;
}

enum ended operate(struct capture *c, struct watched *w, struct compat_action action)
{
    enum ended ended;
    int is;

    switch (action.does) {
    case DOES_BINARY:
        return operate_binary(c, w, action.arg);
    case DOES_UNARY:
        return operate_unary(c, w, action.arg);
    case DOES_NOT:
    case DOES_BOOL:
        ended = bool_of_object(c, w);
        if (ended == ENDED_BEHIND && action.does == DOES_NOT) {
            is = stack_value(w, 0) == Py_True;
            stack_drop(w, 1);
            stack_push(w, PyBool_FromLong(!is), NULL);
        }
        if ((ended != ENDED_NOT && ended != ENDED_BEFORE) || c->kind)
            return ended;
        is = truth_of(c, stack_value(w, 0), stack_shadow(w, 0));
        return is == -2 ? ENDED_BEFORE : is < 0 ? ENDED_RAISED : known_result(c, w, 1, PyBool_FromLong(is != (action.does == DOES_NOT)));
    case DOES_COMPARE:
        return compare(c, w, action);
    case DOES_IS:
        return is_same(c, w, action.arg);
    case DOES_CONTAINS:
        return contains(c, w, action.arg);
    default:
        return format(c, w, action);
    }
}
