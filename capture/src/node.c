/* capture/src/node.c -- nodes of the graph: operations on arrays, and on numbers that vary. See
 * capture.h. */
#include "capture.h"

enum {
    LONGEST = 60,     /* operands in the expression of a number, which a guard evaluates */
    MOST_TENSORS = 64 /* in a list, that are looked at */
};

bool is_graph(PyObject *value, const struct shadow *shadow)
{
    if (is_kind(shadow, SHADOW_NODE) && !shadow->node.is_number)
        return true;
    return value && value_is_array(value);
}

bool has_graph(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++) {
        const struct shadow *item = shadow->items[i];

        if (!may_go_on(c) || has_graph(c, item ? item->value : NULL, item))
            return true;
    }
    if (is_graph(value, shadow))
        return true;
    return value && is_source(shadow) && value_has_array(value, 3);
}

bool is_fixed(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++) {
        const struct shadow *item = shadow->items[i];

        if (!may_go_on(c) || !is_fixed(c, item ? item->value : NULL, item))
            return false;
    }
    if (!is_graph(value, shadow) || is_source(shadow))
        return true;
    return is_kind(shadow, SHADOW_NODE) && shadow->node.fixed;
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

        if (compat_hides(w->code))
            continue;
        if (!unit || PyList_Append(place, (PyObject *)w->code) || PyList_Append(place, unit))
            return NULL;
    }
    return place ? PyList_AsTuple(place) : NULL;
}

/* (Code, unit, the part of its globals or True: the function's own, the name of its module) of a
 * frame: a new reference, or NULL. */
static PyObject *place_of_frame(struct capture *c, struct watched *w)
{
    PyObject *globals = w->frame->f_globals;
    PyObject *part = Py_True, *name = NULL;

    if (w->globals != c->globals)
        part = plan_part(c, w->globals);
    if (PyDict_CheckExact(globals))
        name = PyDict_GetItemWithError(globals, word_of("__name__"));
    return Py_BuildValue("(OiOO)", w->code, w->unit, part, name ? name : Py_None);
}

/* A tuple of these, from the innermost frame outwards. */
static PyObject *place_of_node(struct capture *c)
{
    OWNED PyObject *place = PyList_New(0);

    for (struct watched *w = c->innermost; place && w; w = w->outer) {
        OWNED PyObject *one = NULL;

        if (compat_hides(w->code))
            continue;
        one = place_of_frame(c, w);
        if (!one || PyList_Append(place, one))
            return NULL;
    }
    return place ? PyList_AsTuple(place) : NULL;
}

int add_node(struct capture *c, PyObject *node)
{
    OWNED PyObject *place = place_of_node(c);

    if (!place || PyList_Append(c->places, place))
        return -1;
    return PyList_Append(c->nodes, node);
}

/* A row of a code object's exception table. */
struct handler {
    uint32_t unit, units; /* that it is for */
    uint32_t target, depth;
};

bool code_handles(PyCodeObject *code, const uint8_t *bytes, int32_t unit)
{
    PyObject *table = code->co_exceptiontable;
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(table);
    const unsigned char *end = at + PyBytes_GET_SIZE(table);

    while (at < end) {
        struct handler row;
        bool is_for_unit;

        if (!compat_read_number(&at, end, &row.unit) || !compat_read_number(&at, end, &row.units))
            return true;
        if (!compat_read_number(&at, end, &row.target) || !compat_read_number(&at, end, &row.depth))
            return true;
        is_for_unit = (uint32_t)unit >= row.unit && (uint32_t)unit < row.unit + row.units;
        if (unit >= 0 && !is_for_unit)
            continue;
        if ((Py_ssize_t)row.target >= Py_SIZE(code) || bytes[2 * row.target] == PUSH_EXC_INFO)
            return true;
    }
    return false;
}

/* Would the function, or one that called it, handle an exception of the instruction? */
static bool is_handled(const struct capture *c)
{
    for (const struct watched *w = c->innermost; w; w = w->outer)
        if (code_handles(w->code, w->bytes, w->unit))
            return true;
    return false;
}

/* The graph runs where its code begins: no handler sees its exceptions. But a graph that only gives
 * results can be left, and the function's own code run from its beginning. PURE: the operation
 * gives a result, and neither does nor warns of anything. */
enum ended may_operate(struct capture *c, bool pure)
{
    const bool handled = is_handled(c);

    c->handled = handled && (!pure || c->impure || c->foreign);
    if (c->handled)
        return break_at(c, "instruction",
                        "an operation inside try or with, where its exception would be handled");
    if (c->attempted && !pure)
        return break_at(
            c, "instruction",
            "an operation that changes something or may warn, behind one whose exception would "
            "be handled");
    if (handled)
        c->attempted = true;
    if (!pure)
        c->impure = true;
    return ENDED_NOT;
}

/* Is VALUE an array, or several? Notes if operations on it may run code of the program. */
static bool is_result(struct capture *c, PyObject *value)
{
    const bool several = PyTuple_Check(value) || PyList_CheckExact(value);
    const Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(value) : 1;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = several ? PySequence_Fast_GET_ITEM(value, i) : value;

        if (!value_is_array(one))
            return false;
        if (value_is_foreign(one))
            c->foreign = true;
    }
    return count > 0;
}

/* Add the node of OPERATION, whose arguments are stolen. Returns its shadow; NULL: no memory. */
static struct shadow *add_operation(struct capture *c, struct operation *operation)
{
    OWNED PyObject *node = node_new(word_of(operation->op), NULL, operation->target,
                                    operation->args, operation->keywords);
    struct shadow *shadow = NULL;

    if (node && !add_node(c, node) && capture_keep(c, node))
        shadow = shadow_node(c, node, operation->fixed, operation->counted);
    PyErr_Clear();
    if (shadow)
        shadow->node.same = operation->same;
    else
        c->failed = true;
    return shadow;
}

/* A dtype or the like, which a class gave that was called with shapes that are known? */
static bool is_known_description(const struct operation *operation, PyObject *result)
{
    return operation->counted && PyType_Check(operation->target) && value_is_description(result);
}

enum ended node_result(struct capture *c, struct watched *w, int count, struct operation *operation,
                       PyObject *result)
{
    const char *name = "a call";

    if (result && is_result(c, result))
        return stack_result(c, w, count, result, add_operation(c, operation));
    Py_CLEAR(operation->args);
    Py_CLEAR(operation->keywords);
    if (!result)
        return ENDED_RAISED;
    if (is_known_description(operation, result))
        return stack_result(c, w, count, result, shadow_const(c, result));
    if (!strcmp(operation->op, "call_method"))
        name = PyUnicode_AsUTF8(operation->target);
    break_at(c, "data", "%.100s gives a %.100s", name, Py_TYPE(result)->tp_name);
    stack_result(c, w, count, result, NULL);
    return ENDED_BEHIND;
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

/* What stands for a number in an expression: a new reference. NULL: unknown. */
static PyObject *expression_part(struct capture *c, struct shadow *of)
{
    if (!of)
        return NULL;
    if (of->kind == SHADOW_NODE)
        return Py_XNewRef(of->node.expression);
    if (is_varying(c, of))
        return Py_BuildValue("(O)", source_path(c, of));
    return value_known(c, of->value, of) ? Py_NewRef(of->value) : NULL;
}

PyObject *expression_of(struct capture *c, const struct call *call)
{
    PyObject *made = PyTuple_New(1 + call->count);

    if (made)
        PyTuple_SET_ITEM(made, 0, Py_NewRef(call->callable));
    for (int i = 0; made && i < call->count; i++) {
        PyObject *one = expression_part(c, call->shadows[i]);

        PyTuple_SET_ITEM(made, 1 + i, one);
        if (!one)
            Py_CLEAR(made);
    }
    PyErr_Clear();
    return made;
}

/* Is VALUE, known, a function or class of the program, which an array function may call? */
static bool is_programs(PyObject *value)
{
    bool is_class = false;

    if (PyType_Check(value))
        is_class = ((PyTypeObject *)value)->tp_flags & Py_TPFLAGS_HEAPTYPE;
    if (!is_class && !PyFunction_Check(value) && !PyMethod_Check(value))
        return false;
    return !is_array_function(value);
}

/* Argument I of CALL becomes one of MADE. False: it is not known, or no memory. */
static bool node_argument(struct capture *c, const struct call *call, int i, bool sized,
                          struct operation *made)
{
    PyObject *value = call->args[i];
    struct shadow *of = call->shadows[i];
    OWNED PyObject *one = value_argument(c, value, of);
    const int keyword = i - (call->count - count_names(call));

    if (!one)
        return false;
    if (keyword < 0)
        PyTuple_SET_ITEM(made->args, i, Py_NewRef(one));
    else if (PyDict_SetItem(made->keywords, PyTuple_GET_ITEM(call->names, keyword), one))
        return false;
    if (!is_fixed(c, value, of) || (sized && has_number(of)))
        made->fixed = false;
    if (is_programs(value))
        c->foreign = true;
    if (has_graph(c, value, of))
        *(i || keyword >= 0 ? &made->rest : &made->first) = true;
    return true;
}

/* The operation of CALL and its arguments. SIZED: numbers say what shape it gives. False: one is
 * not known. */
static bool node_arguments(struct capture *c, const struct call *call, bool sized,
                           struct operation *made)
{
    const int named = count_names(call);
    int i = 0;

    *made = (struct operation){.op = call->bound ? "call_method" : "call_function",
                               .target = call->bound ? call->of->method.name : call->callable,
                               .args = PyTuple_New(call->count - named),
                               .keywords = named ? PyDict_New() : NULL,
                               .fixed = true};
    if (made->args && (!named || made->keywords))
        while (i < call->count && node_argument(c, call, i, sized, made))
            i++;
    made->counted = made->fixed;
    PyErr_Clear();
    /* effects must not be seen by the program's code */
    if (i == call->count && made->args && !c->failed && !(c->foreign && c->effects->count))
        return true;
    Py_CLEAR(made->args);
    Py_CLEAR(made->keywords);
    return false;
}

/* ---- array functions and methods ---- */

bool keeps_shape(const char *name, int count, bool first, bool rest)
{
    if (is_in(name, "of_three"))
        return count == 3;
    if (is_in(name, "elementwise"))
        return true;
    if (rest)
        return false;
    if (is_in(name, "shaped"))
        return true;
    return !first && is_in(name, "made_of_shape");
}

/* Is VALUE a tensor, or has it one, whose dtype's name begins with NAME? */
static bool has_dtype(PyObject *value, const char *name, int depth)
{
    OWNED PyObject *dtype = NULL, *text = NULL;
    bool is;

    if (depth && is_sequence(value))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value) && i < MOST_TENSORS; i++)
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
    const char *text = PyUnicode_AsUTF8(name);
    OWNED PyObject *dimensions = NULL;
    bool is;

    if (!text || !is_in(text, "turned") || !has_dtype(value, "torch.", 0)) {
        PyErr_Clear();
        return false;
    }
    dimensions = PyObject_GetAttr(value, word_of("ndim"));
    is = !dimensions || PyLong_AsLong(dimensions) != 2;
    PyErr_Clear();
    return is;
}

/* May CALL of NAME, on tensors of torch's own, warn though it gives a result? By its arguments. */
static bool torch_warns(const struct call *call, const char *name)
{
    const bool masks = is_in(name, "masks"), casts = is_in(name, "casts");
    const bool is_padded = is_in(name, "padded");

    if (is_in(name, "warns"))
        return true;
    if (is_in(name, "of_dimension"))
        return call->count < 2;
    if (!strcmp(name, "getattr"))
        return is_turned(call->args[0], call->args[1]);
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];

        if (masks && has_dtype(value, "torch.uint8", 2))
            return true;
        if (casts && has_dtype(value, "torch.complex", 0))
            return true;
        if (is_padded && PyUnicode_Check(value))
            return true;
    }
    return false;
}

/* What an operator does to its first operand. */
enum operator_effect {
    OPERATOR_PURE,     /* nothing */
    OPERATOR_READS,    /* nothing; it reads an item or attribute, of which numpy warns of nothing */
    OPERATOR_IN_PLACE, /* may change it and return it, as iadd does */
    OPERATOR_SETS,     /* sets an item, and returns None */
};

static enum operator_effect classify_operator(const char *name)
{
    if (!strcmp(name, "setitem"))
        return OPERATOR_SETS;
    if (!strcmp(name, "getitem") || !strcmp(name, "getattr"))
        return OPERATOR_READS;
    return name[0] == 'i' && strcmp(name, "invert") ? OPERATOR_IN_PLACE : OPERATOR_PURE;
}

/* Does it only give a result, without a warning? */
static bool is_pure_operator(const struct call *call, const char *name, enum operator_effect effect,
                             bool numbers)
{
    bool pure = numbers || effect == OPERATOR_PURE || effect == OPERATOR_READS;

    for (int i = 0; pure && i < call->count; i++) {
        PyObject *value = call->args[i];

        if (!value_is_array(value))
            continue;
        pure = effect == OPERATOR_READS ? value_is_theirs(value) : value_is_quiet(value);
    }
    return pure && !torch_warns(call, name);
}

/* SHADOW is of a node that gives the number RESULT, calculated of CALL's numbers. */
static void note_number(struct capture *c, struct shadow *shadow, const struct call *call,
                        PyObject *result)
{
    OWNED PyObject *expression = NULL;

    for (int i = 0; i < call->count; i++) {
        const struct shadow *of = call->shadows[i];

        shadow_add(c, shadow, NULL, call->shadows[i]);
        shadow->node.steps += of->kind == SHADOW_NODE ? of->node.steps : 1;
    }
    if (shadow->node.steps < LONGEST)
        expression = expression_of(c, call);
    shadow->node.expression = capture_keep(c, expression);
    shadow->node.is_number = true;
    shadow->value = capture_keep(c, result);
    c->number_nodes++;
}

enum ended operate_graph(struct capture *c, struct watched *w, const char *name,
                         const struct call *call, bool keeps)
{
    const bool numbers = are_numbers(c, call);
    const enum operator_effect effect = classify_operator(name);
    struct operation operation;
    struct shadow *shadow;
    enum ended ended;
    PyObject *result;

    ended = may_operate(c, is_pure_operator(call, name, effect, numbers));
    if (ended)
        return ended;
    if (!node_arguments(c, call, strstr(name, "item"), &operation))
        return unknown_operand(c, call, name);
    if (!keeps)
        operation.fixed = false;
    result = run_call(call);
    if (effect == OPERATOR_IN_PLACE && !numbers && result == call->args[0])
        operation.same = call->shadows[0];
    if (!result || (!numbers && !(result == Py_None && call->count > 2)))
        return node_result(c, w, call->slots, &operation, result);
    shadow = add_operation(c, &operation);
    if (numbers && shadow)
        note_number(c, shadow, call, result);
    return stack_result(c, w, call->slots, result, shadow);
}

/* The name of CALLABLE, which lives as long as that; or NULL. */
static const char *own_name(PyObject *callable)
{
    if (PyMethod_Check(callable))
        return own_name(PyMethod_GET_FUNCTION(callable));
    if (PyFunction_Check(callable))
        return PyUnicode_AsUTF8(((PyFunctionObject *)callable)->func_qualname);
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml->ml_name;
    return PyType_Check(callable) ? ((PyTypeObject *)callable)->tp_name : NULL;
}

const char *name_of(PyObject *callable, char *text, size_t room)
{
    const char *name = own_name(callable);

    PyErr_Clear();
    if (name)
        snprintf(text, room, "%.100s", name);
    else
        snprintf(text, room, "a %.80s", Py_TYPE(callable)->tp_name);
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

/* Are CALL's keywords, by their names, without another effect than on the result? */
static bool are_names_harmless(const struct call *call)
{
    for (int i = 0; i < count_names(call); i++) {
        const char *keyword = PyUnicode_AsUTF8(PyTuple_GET_ITEM(call->names, i));

        if (!keyword || !is_in(keyword, "harmless")) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* Does a call of NAME, or of that method, give a result and do nothing else, whatever its arguments
 * are? A warning is something else. */
static bool is_pure(const struct call *call, const char *name)
{
    if (!keeps_shape(name, 3, false, false) || is_in(name, "impure") || is_numpys(call->callable))
        return false;
    if (torch_warns(call, name))
        return false;
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];

        if (value == Py_True)
            return false;
        if (value_has_array(value, 2) && !value_is_quiet(value))
            return false;
    }
    return are_names_harmless(call);
}

/* The argument that CALL of NAME gives back as RESULT: self of a method in place, or the keyword
 * out. NULL: none. */
static struct shadow *argument_given_back(const struct call *call, const char *name,
                                          PyObject *result)
{
    const int positional = call->count - count_names(call);

    for (int i = positional; i < call->count; i++) {
        PyObject *keyword = PyTuple_GET_ITEM(call->names, i - positional);

        if (call->args[i] == result && !PyUnicode_CompareWithASCIIString(keyword, "out"))
            return call->shadows[i];
    }
    if (call->bound && result == call->args[0] && name[strlen(name) - 1] == '_')
        return call->shadows[0];
    return NULL;
}

/* A function that only looks at shapes and types: its result is a constant. */
static enum ended fact_call(struct capture *c, struct watched *w, const struct call *call,
                            struct operation *operation)
{
    PyObject *result;

    Py_CLEAR(operation->args);
    Py_CLEAR(operation->keywords);
    if (!operation->fixed)
        return break_at(c, "data", "a fact about a result, which may depend on its data");
    c->shapes_read = true;
    result = run_call(call);
    if (!result)
        return ENDED_RAISED;
    return stack_result(c, w, call->slots, result, shadow_const(c, result));
}

enum ended array_call(struct capture *c, struct watched *w, const struct call *call,
                      const char *name)
{
    const bool is_fact = is_in(name, "fact");
    struct operation operation;
    PyObject *result;
    enum ended ended = ENDED_NOT;

    if (!is_fact)
        ended = may_operate(c, is_pure(call, name));
    if (ended)
        return ended;
    if (!node_arguments(c, call, true, &operation))
        return unknown_argument(c, call);
    if (is_fact)
        return fact_call(c, w, call, &operation);
    if (!keeps_shape(name, call->count, operation.first, operation.rest))
        operation.fixed = false;
    result = run_call(call);
    if (result)
        operation.same = argument_given_back(call, name, result);
    return node_result(c, w, call->slots, &operation, result);
}

/* SHAPE, or with an argument its item, as size() of its array gives it. ENDED_BEFORE: it is not
 * known which. */
static enum ended size_call(struct capture *c, struct watched *w, const struct call *call,
                            struct shadow *shape)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(shape->value);
    struct shadow *item;
    Py_ssize_t i;

    if (!call->count)
        return stack_result(c, w, call->slots, run_call(call), shape);
    if (!PyLong_CheckExact(call->args[0]) || !value_known(c, call->args[0], call->shadows[0]))
        return ENDED_BEFORE;
    i = PyLong_AsSsize_t(call->args[0]);
    if (i < 0)
        i += count;
    if (i < 0 || i >= count)
        return ENDED_BEFORE;
    item = value_item(c, shape->value, shape, i);
    return stack_result(c, w, call->slots, run_call(call), item);
}

/* Is it size() of an array, one of whose sizes is an input of the graph? Returns its shape. */
static struct shadow *sized_shape(struct capture *c, const struct call *call, PyObject *self,
                                  const char *name)
{
    struct shadow *of = call->of->method.owner;

    if (strcmp(name, "size") || call->names || call->count > 1)
        return NULL;
    return value_type_known(c, self, of) ? varying_shape(c, self, of) : NULL;
}

enum ended array_method(struct capture *c, struct watched *w, const struct call *call,
                        PyObject *self)
{
    const struct call whole = with_self(call, self, call->of->method.owner);
    const char *name = PyUnicode_AsUTF8(call->of->method.name);
    enum ended ended = ENDED_BEFORE;
    struct shadow *shape;

    if (is_in(name, "data"))
        return break_at(c, "data", "%.100s() of an array gives what depends on its data", name);
    shape = sized_shape(c, call, self, name);
    if (shape)
        ended = size_call(c, w, call, shape);
    return ended != ENDED_BEFORE ? ended : array_call(c, w, &whole, name);
}

enum ended array_function(struct capture *c, struct watched *w, const struct call *call)
{
    OWNED PyObject *name = PyObject_GetAttr(call->callable, word_of("__name__"));
    const char *text = NULL;

    if (name && PyUnicode_Check(name))
        text = PyUnicode_AsUTF8(name);
    PyErr_Clear();
    return array_call(c, w, call, text ? text : "");
}
