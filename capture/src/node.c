/* capture/src/node.c -- nodes of the graph: operations on arrays and on numbers that vary. See
 * capture.h. */
#include "capture.h"

enum { LONGEST = 60 /* operands of what calculates a number that is in a guard */ };

bool is_graph(PyObject *value, const struct shadow *shadow)
{
    return (shadow && shadow->kind == SHADOW_NODE && !shadow->node.is_number) ||
           (value && value_is_array(value));
}

bool has_graph(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++)
        if (!may_go_on(c) ||
            has_graph(c, shadow->items[i] ? shadow->items[i]->value : NULL, shadow->items[i]))
            return true;
    return is_graph(value, shadow) ||
           (value && shadow && shadow->kind == SHADOW_SOURCE && value_has_array(value, 3));
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

bool has_number(const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++)
        if (has_number(shadow->items[i]))
            return true;
    if (is_kind(shadow, SHADOW_NODE))
        return shadow->node.is_number;
    return is_source(shadow) && shadow->source.varies == VARIES_INPUT;
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

/* ---- numbers and operators ---- */

/* Are its arguments integers, one of which varies? */
bool are_numbers(struct capture *c, const struct call *call)
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
PyObject *expression_of(struct capture *c, const struct call *call)
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

/* Is VALUE, known, something that an array function would run code of the program's by? */
static bool is_programs(PyObject *value)
{
    return (PyFunction_Check(value) || PyMethod_Check(value) ||
            (PyType_Check(value) && ((PyTypeObject *)value)->tp_flags & Py_TPFLAGS_HEAPTYPE)) &&
           !is_array_function(value);
}

bool node_arguments(struct capture *c, const struct call *call, bool sized, struct operation *made,
                    bool *first, bool *rest)
{
    const int named = call->names ? (int)PyTuple_GET_SIZE(call->names) : 0,
              positional = call->count - named;
    int i = 0;

    *first = *rest = false;
    *made = (struct operation){.op = call->bound ? "call_method" : "call_function",
                               .target = call->bound ? call->of->method.name : call->callable,
                               .args = PyTuple_New(positional),
                               .keywords = named ? PyDict_New() : NULL,
                               .fixed = true};
    for (; made->args && (!named || made->keywords) && i < call->count; i++) {
        OWNED PyObject *one = value_argument(c, call->args[i], call->shadows[i]);
        if (!one ||
            (i >= positional &&
             PyDict_SetItem(made->keywords, PyTuple_GET_ITEM(call->names, i - positional), one)))
            break;
        if (i < positional)
            PyTuple_SET_ITEM(made->args, i, Py_NewRef(one));
        made->fixed &= is_fixed(c, call->args[i], call->shadows[i]) &&
                       !(sized && has_number(call->shadows[i]));
        c->foreign |= is_programs(call->args[i]);
        *(i || i >= positional ? rest : first) |= has_graph(c, call->args[i], call->shadows[i]);
    }
    made->counted = made->fixed;
    PyErr_Clear();
    if (i == call->count && !c->failed && !(c->foreign && c->effects->count))
        return true;
    Py_CLEAR(made->args);
    Py_CLEAR(made->keywords);
    return false;
}

/* ---- array functions and methods ---- */

bool keeps_shape(const char *name, int count, bool first, bool rest)
{
    if (!strcmp(name, "where"))
        return count == 3;
    return is_in(name, "elementwise") || (!rest && is_in(name, "shaped")) ||
           (!first && !rest && is_in(name, "made_of_shape"));
}

/* Is VALUE a tensor, or has it one, whose dtype's name begins with NAME? */
static bool has_dtype(PyObject *value, const char *name, int depth)
{
    OWNED PyObject *dtype = NULL, *text = NULL;
    bool is;

    if (depth && is_sequence(value))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value) && i < 64; i++)
            if (has_dtype(PySequence_Fast_GET_ITEM(value, i), name, depth - 1))
                return true;
    if (!value_is_theirs(value))
        return false;
    dtype = PyObject_GetAttr(value, word_of("dtype"));
    text = dtype ? PyObject_Repr(dtype) : NULL;
    is = text && !strncmp(PyUnicode_AsUTF8(text), name, strlen(name));
    PyErr_Clear();
    return is;
}

/* Is attribute NAME of VALUE, a tensor, one that torch warns of unless it has two dimensions? */
static bool is_turned(PyObject *value, PyObject *name)
{
    OWNED PyObject *dimensions = NULL;
    bool is = !PyUnicode_CompareWithASCIIString(name, "T") ||
              !PyUnicode_CompareWithASCIIString(name, "H");

    if (!is || !has_dtype(value, "torch.", 0))
        return false;
    dimensions = PyObject_GetAttr(value, word_of("ndim"));
    is = !dimensions || PyLong_AsLong(dimensions) != 2;
    PyErr_Clear();
    return is;
}

bool torch_warns(const struct call *call, const char *name)
{
    const bool masks = is_in(name, "masks"), casts = is_in(name, "casts");
    const bool is_padded = !strncmp(name, "conv", 4);

    if (is_in(name, "warns"))
        return true;
    if (strstr(name, "softmax"))
        return call->count < 2;
    if (!strcmp(name, "getattr"))
        return is_turned(call->args[0], call->args[1]);
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];

        if ((masks && has_dtype(value, "torch.uint8", 2)) ||
            (casts && has_dtype(value, "torch.complex", 0)) ||
            (is_padded && PyUnicode_Check(value)))
            return true;
    }
    return false;
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

/* What CALLABLE is called, for a reason: in TEXT. */
const char *name_of(PyObject *callable, char *text, size_t room)
{
    PyObject *name =
        PyFunction_Check(callable) ? ((PyFunctionObject *)callable)->func_qualname : NULL;
    const char *words =
        name                          ? PyUnicode_AsUTF8(name)
        : PyCFunction_Check(callable) ? ((PyCFunctionObject *)callable)->m_ml->ml_name
        : PyType_Check(callable)      ? ((PyTypeObject *)callable)->tp_name
        : PyMethod_Check(callable)    ? name_of(PyMethod_GET_FUNCTION(callable), text, room)
                                      : NULL;

    PyErr_Clear();
    if (!words)
        snprintf(text, room, "a %.80s", Py_TYPE(callable)->tp_name);
    else if (words != text)
        snprintf(text, room, "%.100s", words);
    return text;
}

enum ended unknown_argument(struct capture *c, const struct call *call)
{
    char text[120];

    return unknown_operand(c, call, name_of(call->callable, text, sizeof text));
}

/* Is CALLABLE a function of numpy? It may warn even if its argument is a number: np.log(-1.0). */
static bool is_numpys(PyObject *callable)
{
    OWNED PyObject *module = NULL;

    if (!strcmp(Py_TYPE(callable)->tp_name, "numpy.ufunc"))
        return true;
    module = PyObject_GetAttr(callable, word_of("__module__"));
    PyErr_Clear();
    return module && PyUnicode_CheckExact(module) &&
           is_in_package(PyUnicode_AsUTF8(module), "numpy");
}

/* Does a call of NAME, or of that method, give a result and do nothing else, whatever its arguments
 * are? A warning is something else. */
static bool is_pure(const struct call *call, const char *name)
{
    const char *last = *name ? name + strlen(name) - 1 : name;
    const bool in_place = *last == '_' && strcmp(name, "and_") && strcmp(name, "or_");
    const bool is_random = strstr(name, "rand") || !strcmp(name, "dropout");

    if (!keeps_shape(name, 3, false, false) || in_place || is_random || is_numpys(call->callable))
        return false;
    if (torch_warns(call, name))
        return false;
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];
        if (value == Py_True || (value_has_array(value, 2) && !value_is_quiet(value)))
            return false;
    }
    for (Py_ssize_t i = 0; call->names && i < PyTuple_GET_SIZE(call->names); i++) {
        const char *keyword = PyUnicode_AsUTF8(PyTuple_GET_ITEM(call->names, i));
        if (!keyword || !is_in(keyword, "harmless")) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

enum ended array_call(struct capture *c, struct watched *w, const struct call *call,
                      const char *name)
{
    struct operation operation;
    bool first, rest;
    PyObject *result;
    enum ended ended = is_in(name, "fact") ? ENDED_NOT : may_operate(c, is_pure(call, name));

    if (ended)
        return ended;
    if (!node_arguments(c, call, true, &operation, &first, &rest))
        return unknown_argument(c, call);
    if (is_in(name, "fact")) {
        Py_XDECREF(operation.args);
        Py_XDECREF(operation.keywords);
        if (!operation.fixed)
            return break_at(c, "data", "a fact about a result, which may depend on its data");
        c->shapes_read = true;
        result = run_call(call);
        return stack_result(c, w, call->slots, result, result ? shadow_const(c, result) : NULL);
    }
    operation.fixed &= keeps_shape(name, call->count, first, rest);
    result = run_call(call);
    if (call->bound && result == call->args[0] && name[strlen(name) - 1] == '_')
        operation.same = call->shadows[0];
    for (int i = 0; call->names && i < PyTuple_GET_SIZE(call->names); i++)
        if (call->args[call->count - 1 - i] == result &&
            !PyUnicode_CompareWithASCIIString(
                PyTuple_GET_ITEM(call->names, PyTuple_GET_SIZE(call->names) - 1 - i), "out"))
            operation.same = call->shadows[call->count - 1 - i];
    return node_result(c, w, call->slots, &operation, result);
}

enum ended array_method(struct capture *c, struct watched *w, const struct call *call,
                        PyObject *self)
{
    const struct call whole = with_self(call, self, call->of->method.owner);
    const char *name = PyUnicode_AsUTF8(call->of->method.name);
    struct shadow *shape;

    if (is_in(name, "data"))
        return break_at(c, "data", "%.100s() of an array gives what depends on its data", name);
    if (!strcmp(name, "size") && !call->names && call->count < 2 &&
        value_type_known(c, self, call->of->method.owner) &&
        (shape = varying_shape(c, self, call->of->method.owner))) {
        const Py_ssize_t count = PyTuple_GET_SIZE(shape->value);
        Py_ssize_t i = call->count && PyLong_CheckExact(call->args[0]) &&
                               value_known(c, call->args[0], call->shadows[0])
                           ? PyLong_AsSsize_t(call->args[0])
                           : count;
        i += i < 0 ? count : 0;
        if (!call->count || (i >= 0 && i < count))
            return stack_result(c, w, call->slots, run_call(call),
                                call->count ? value_item(c, shape->value, shape, i) : shape);
    }
    return array_call(c, w, &whole, name);
}

enum ended array_function(struct capture *c, struct watched *w, const struct call *call)
{
    OWNED PyObject *name = PyObject_GetAttr(call->callable, word_of("__name__"));
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;

    PyErr_Clear();
    return array_call(c, w, call, text ? text : "");
}
