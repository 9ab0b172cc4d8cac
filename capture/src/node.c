/* capture/src/node.c -- nodes of the graph: operations on arrays, and on integers that are inputs.
 * See capture.h. */
#include "capture.h"

enum {
    /* the most operands in the expression of a number, which a guard evaluates at each call */
    LONGEST = 60,
    MOST_TENSORS = 64 /* the most items of a list in which capture searches for a tensor */
};

bool is_graph_value(PyObject *value, const struct shadow *shadow)
{
    if (is_kind(shadow, SHADOW_NODE) && !shadow->node.is_number)
        return true;
    return value && value_is_array(value);
}

bool has_graph_value(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++) {
        const struct shadow *item = shadow->items[i];

        if (!count_visited_item(c) || has_graph_value(c, item ? item->value : NULL, item))
            return true;
    }
    if (is_graph_value(value, shadow))
        return true;
    return value && is_source(shadow) && value_has_array(value, 3);
}

bool has_fixed_shape(struct capture *c, PyObject *value, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++) {
        const struct shadow *item = shadow->items[i];

        if (!count_visited_item(c) || !has_fixed_shape(c, item ? item->value : NULL, item))
            return false;
    }
    if (!is_graph_value(value, shadow) || is_source(shadow))
        return true;
    return is_kind(shadow, SHADOW_NODE) && shadow->node.fixed;
}

bool has_varying_number(const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; is_container(shadow) && i < shadow->count; i++)
        if (has_varying_number(shadow->items[i]))
            return true;
    if (is_kind(shadow, SHADOW_NODE))
        return shadow->node.is_number;
    return is_source(shadow) && shadow->source.varies == VARIES_INPUT;
}

PyObject *make_call_stack(const struct capture *c)
{
    OWNED PyObject *place = PyList_New(0);

    for (const struct watched *w = c->innermost; place && w; w = w->outer) {
        OWNED PyObject *unit = PyLong_FromLong(w->unit);

        if (compat_are_frames_hidden(w->code))
            continue;
        if (!unit || PyList_Append(place, (PyObject *)w->code) || PyList_Append(place, unit))
            return NULL;
    }
    return place ? PyList_AsTuple(place) : NULL;
}

/* Describe frame W as a tuple (code, unit, globals, module name). `globals` is True if the frame
 * has the globals of the captured function, otherwise a part (see plan.c) that reads the globals.
 * Returns a new reference, or NULL. */
static PyObject *describe_frame(struct capture *c, struct watched *w)
{
    PyObject *globals = w->frame->f_globals;
    PyObject *part = Py_True, *name = NULL;

    if (w->globals != c->globals)
        part = get_plan_part(c, w->globals);
    if (PyDict_CheckExact(globals))
        name = PyDict_GetItemWithError(globals, intern_word("__name__"));
    return Py_BuildValue("(OiOO)", w->code, w->unit, part, name ? name : Py_None);
}

/* Return the call stack of a new graph node: a tuple with the result of describe_frame() for each
 * frame, innermost frame first. */
static PyObject *make_node_call_stack(struct capture *c)
{
    OWNED PyObject *place = PyList_New(0);

    for (struct watched *w = c->innermost; place && w; w = w->outer) {
        OWNED PyObject *one = NULL;

        if (compat_are_frames_hidden(w->code))
            continue;
        one = describe_frame(c, w);
        if (!one || PyList_Append(place, one))
            return NULL;
    }
    return place ? PyList_AsTuple(place) : NULL;
}

int add_node(struct capture *c, PyObject *node)
{
    OWNED PyObject *place = make_node_call_stack(c);

    if (!place || PyList_Append(c->places, place))
        return -1;
    return PyList_Append(c->nodes, node);
}

/* An entry of a code object's exception table. */
struct handler {
    /* the instructions that this entry of the exception table covers: the first code unit, and the
     * number of code units */
    uint32_t unit, units;
    uint32_t target, depth;
};

bool code_handles_exception(PyCodeObject *code, const uint8_t *bytes, int32_t unit)
{
    PyObject *table = code->co_exceptiontable;
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(table);
    const unsigned char *end = at + PyBytes_GET_SIZE(table);

    while (at < end) {
        struct handler row;
        bool is_for_unit;

        if (!compat_read_exception_number(&at, end, &row.unit) ||
            !compat_read_exception_number(&at, end, &row.units))
            return true;
        if (!compat_read_exception_number(&at, end, &row.target) ||
            !compat_read_exception_number(&at, end, &row.depth))
            return true;
        is_for_unit = (uint32_t)unit >= row.unit && (uint32_t)unit < row.unit + row.units;
        if (unit >= 0 && !is_for_unit)
            continue;
        if ((Py_ssize_t)row.target >= Py_SIZE(code) || bytes[2 * row.target] == PUSH_EXC_INFO)
            return true;
    }
    return false;
}

/* Would the function, or one of its callers up to the captured function, handle an exception of the
 * current instruction? */
static bool would_exception_be_handled(const struct capture *c)
{
    for (const struct watched *w = c->innermost; w; w = w->outer)
        if (code_handles_exception(w->code, w->bytes, w->unit))
            return true;
    return false;
}

/* May an operation become part of the graph? The graph runs outside of each `try` of the function,
 * so its exceptions would not reach a handler there. But if a graph only computes results, it can
 * be abandoned when it raises: the function's own code then runs from its beginning. PURE: the
 * operation only computes a result; it changes nothing and causes no warning. */
enum ended may_add_operation(struct capture *c, bool pure)
{
    const bool handled = would_exception_be_handled(c);

    c->handled = handled && (!pure || c->impure || c->foreign);
    if (c->handled)
        return break_graph(c, "instruction",
                           "an operation inside try or with, where its exception would be handled");
    if (c->attempted && !pure)
        return break_graph(
            c, "instruction",
            "an operation that changes something or may warn, behind one whose exception would "
            "be handled");
    if (handled)
        c->attempted = true;
    if (!pure)
        c->impure = true;
    return ENDED_NOT;
}

/* Is VALUE an array, or a non-empty tuple or list of arrays? Sets c->foreign if operations on one
 * of the arrays may run code of the program. */
static bool are_arrays(struct capture *c, PyObject *value)
{
    const bool several = PyTuple_Check(value) || PyList_CheckExact(value);
    const Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(value) : 1;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = several ? PySequence_Fast_GET_ITEM(value, i) : value;

        if (!value_is_array(one))
            return false;
        if (value_may_run_code(one))
            c->foreign = true;
    }
    return count > 0;
}

/* Add a graph node for OPERATION. Steals the arguments of OPERATION. Returns the node's shadow;
 * NULL if there is no memory. */
static struct shadow *add_operation_node(struct capture *c, struct operation *operation)
{
    OWNED PyObject *node = node_new(intern_word(operation->op), NULL, operation->target,
                                    operation->args, operation->keywords);
    struct shadow *shadow = NULL;

    if (node && !add_node(c, node) && capture_keep(c, node))
        shadow = shadow_new_node(c, node, operation->fixed, operation->counted);
    PyErr_Clear();
    if (shadow)
        shadow->node.same = operation->same;
    else
        c->failed = true;
    return shadow;
}

/* Is RESULT, e.g. a dtype or device, an object that its class made from known arguments, as in
 * np.dtype(float)? */
static bool is_known_description(const struct operation *operation, PyObject *result)
{
    return operation->counted && PyType_Check(operation->target) && value_is_description(result);
}

enum ended stack_replace_node(struct capture *c, struct watched *w, int count,
                              struct operation *operation, PyObject *result)
{
    const char *name = "a call";

    if (result && are_arrays(c, result))
        return stack_replace(c, w, count, result, add_operation_node(c, operation));
    Py_CLEAR(operation->args);
    Py_CLEAR(operation->keywords);
    if (!result)
        return ENDED_RAISED;
    if (is_known_description(operation, result))
        return stack_replace(c, w, count, result, shadow_new_const(c, result));
    if (!strcmp(operation->op, "call_method"))
        name = PyUnicode_AsUTF8(operation->target);
    break_graph(c, "data", "%.100s gives a %.100s", name, Py_TYPE(result)->tp_name);
    stack_replace(c, w, count, result, NULL);
    return ENDED_BEHIND;
}

/* ---- numbers and operators ---- */

/* Are all arguments integers, and is at least one of them an input of the graph or calculated from
 * such an input? */
bool are_varying_numbers(struct capture *c, const struct call *call)
{
    bool varies = false;

    for (int i = 0; i < call->count; i++) {
        if (!PyLong_CheckExact(call->args[i]))
            return false;
        varies |= is_varying(c, call->shadows[i]);
    }
    return varies;
}

/* Return the description of an integer that is an operand in an expression (see make_expression()):
 * a new reference; NULL if the integer is unknown. */
static PyObject *describe_integer_operand(struct capture *c, struct shadow *of)
{
    if (!of)
        return NULL;
    if (of->kind == SHADOW_NODE)
        return Py_XNewRef(of->node.expression);
    if (is_varying(c, of))
        return Py_BuildValue("(O)", source_make_path(c, of));
    return ensure_value_known(c, of->value, of) ? Py_NewRef(of->value) : NULL;
}

PyObject *make_expression(struct capture *c, const struct call *call)
{
    PyObject *made = PyTuple_New(1 + call->count);

    if (made)
        PyTuple_SET_ITEM(made, 0, Py_NewRef(call->callable));
    for (int i = 0; made && i < call->count; i++) {
        PyObject *one = describe_integer_operand(c, call->shadows[i]);

        PyTuple_SET_ITEM(made, 1 + i, one);
        if (!one)
            Py_CLEAR(made);
    }
    PyErr_Clear();
    return made;
}

/* Is VALUE a function or class of the program? An array function that has VALUE as an argument may
 * call it. */
static bool is_callable_of_program(PyObject *value)
{
    bool is_class = false;

    if (PyType_Check(value))
        is_class = ((PyTypeObject *)value)->tp_flags & Py_TPFLAGS_HEAPTYPE;
    if (!is_class && !PyFunction_Check(value) && !PyMethod_Check(value))
        return false;
    return !is_array_function(value);
}

/* Convert argument I of CALL and add it to the arguments of MADE. Returns false if the argument is
 * unknown, or if there is no memory. */
static bool add_node_argument(struct capture *c, const struct call *call, int i, bool sized,
                              struct operation *made)
{
    PyObject *value = call->args[i];
    struct shadow *of = call->shadows[i];
    OWNED PyObject *one = make_node_argument(c, value, of);
    const int keyword = i - (call->count - count_names(call));

    if (!one)
        return false;
    if (keyword < 0)
        PyTuple_SET_ITEM(made->args, i, Py_NewRef(one));
    else if (PyDict_SetItem(made->keywords, PyTuple_GET_ITEM(call->names, keyword), one))
        return false;
    if (!has_fixed_shape(c, value, of) || (sized && has_varying_number(of)))
        made->fixed = false;
    if (is_callable_of_program(value))
        c->foreign = true;
    if (has_graph_value(c, value, of))
        *(i || keyword >= 0 ? &made->rest : &made->first) = true;
    return true;
}

/* Set *MADE to the operation of CALL, with its arguments. SIZED: integers among the arguments
 * decide the shape of the result. Returns false if an argument is unknown. */
static bool make_operation(struct capture *c, const struct call *call, bool sized,
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
        while (i < call->count && add_node_argument(c, call, i, sized, made))
            i++;
    made->counted = made->fixed;
    PyErr_Clear();
    /* refuse an operation that runs code of the program if there are effects: the compiled code
     * makes the effects after the graph, so this code would not see them */
    if (i == call->count && made->args && !c->failed && !(c->foreign && c->effects->count))
        return true;
    Py_CLEAR(made->args);
    Py_CLEAR(made->keywords);
    return false;
}

/* ---- array functions and methods ---- */

bool keeps_shape(const char *name, int count, bool first, bool rest)
{
    if (is_in_set(name, "of_three"))
        return count == 3;
    if (is_in_set(name, "elementwise"))
        return true;
    if (rest)
        return false;
    if (is_in_set(name, "shaped"))
        return true;
    return !first && is_in_set(name, "made_of_shape");
}

/* Does the name of the dtype of the array VALUE begin with NAME? If VALUE is a list or tuple,
 * nested at most DEPTH levels deep, this asks whether it holds such an array. */
static bool has_dtype_with_prefix(PyObject *value, const char *name, int depth)
{
    OWNED PyObject *dtype = NULL, *text = NULL;
    bool is;

    if (depth && is_sequence(value))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value) && i < MOST_TENSORS; i++)
            if (has_dtype_with_prefix(PySequence_Fast_GET_ITEM(value, i), name, depth - 1))
                return true;
    if (!value_is_library_array(value))
        return false;
    dtype = PyObject_GetAttr(value, intern_word("dtype"));
    text = dtype ? PyObject_Repr(dtype) : NULL;
    is = text && !strncmp(PyUnicode_AsUTF8(text), name, strlen(name));
    PyErr_Clear();
    return is;
}

/* Does torch warn when attribute NAME of the tensor VALUE is read, e.g. `T`, because VALUE does not
 * have two dimensions? */
static bool does_torch_warn_of_attribute(PyObject *value, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    OWNED PyObject *dimensions = NULL;
    bool is;

    if (!text || !is_in_set(text, "turned") || !has_dtype_with_prefix(value, "torch.", 0)) {
        PyErr_Clear();
        return false;
    }
    dimensions = PyObject_GetAttr(value, intern_word("ndim"));
    is = !dimensions || PyLong_AsLong(dimensions) != 2;
    PyErr_Clear();
    return is;
}

/* May torch warn in CALL, a call of the function NAME with these arguments? */
static bool may_torch_warn(const struct call *call, const char *name)
{
    const bool masks = is_in_set(name, "masks"), casts = is_in_set(name, "casts");
    const bool is_padded = is_in_set(name, "padded");

    if (is_in_set(name, "warns"))
        return true;
    if (is_in_set(name, "of_dimension"))
        return call->count < 2;
    if (!strcmp(name, "getattr"))
        return does_torch_warn_of_attribute(call->args[0], call->args[1]);
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];

        if (masks && has_dtype_with_prefix(value, "torch.uint8", 2))
            return true;
        if (casts && has_dtype_with_prefix(value, "torch.complex", 0))
            return true;
        if (is_padded && PyUnicode_Check(value))
            return true;
    }
    return false;
}

/* What an operator does to its first operand. */
enum operator_effect {
    OPERATOR_PURE, /* leaves the operand unchanged */
    /* reads an item or attribute of the operand, for which numpy never warns */
    OPERATOR_READS,
    OPERATOR_IN_PLACE, /* may change the operand and return it, as `a += b` does */
    OPERATOR_SETS,     /* sets an item of the operand, and returns None */
};

static enum operator_effect classify_operator(const char *name)
{
    if (!strcmp(name, "setitem"))
        return OPERATOR_SETS;
    if (!strcmp(name, "getitem") || !strcmp(name, "getattr"))
        return OPERATOR_READS;
    return name[0] == 'i' && strcmp(name, "invert") ? OPERATOR_IN_PLACE : OPERATOR_PURE;
}

/* Does the operator only compute its result? False if it changes an operand or may cause a
 * warning. */
static bool is_pure_operator(const struct call *call, const char *name, enum operator_effect effect,
                             bool numbers)
{
    bool pure = numbers || effect == OPERATOR_PURE || effect == OPERATOR_READS;

    for (int i = 0; pure && i < call->count; i++) {
        PyObject *value = call->args[i];

        if (!value_is_array(value))
            continue;
        pure = effect == OPERATOR_READS ? value_is_library_array(value)
                                        : value_is_silent_when_used(value);
    }
    return pure && !may_torch_warn(call, name);
}

/* Store in SHADOW that its node computes the integer RESULT from the arguments of CALL, which are
 * integers, too. */
static void store_number_in_shadow(struct capture *c, struct shadow *shadow,
                                   const struct call *call, PyObject *result)
{
    OWNED PyObject *expression = NULL;

    for (int i = 0; i < call->count; i++) {
        const struct shadow *of = call->shadows[i];

        shadow_add(c, shadow, NULL, call->shadows[i]);
        shadow->node.steps += of->kind == SHADOW_NODE ? of->node.steps : 1;
    }
    if (shadow->node.steps < LONGEST)
        expression = make_expression(c, call);
    shadow->node.expression = capture_keep(c, expression);
    shadow->node.is_number = true;
    shadow->value = capture_keep(c, result);
    c->number_nodes++;
}

enum ended run_graph_operator(struct capture *c, struct watched *w, const char *name,
                              const struct call *call, bool keeps)
{
    const bool numbers = are_varying_numbers(c, call);
    const enum operator_effect effect = classify_operator(name);
    struct operation operation;
    struct shadow *shadow;
    enum ended ended;
    PyObject *result;

    ended = may_add_operation(c, is_pure_operator(call, name, effect, numbers));
    if (ended)
        return ended;
    if (!make_operation(c, call, strstr(name, "item"), &operation))
        return break_at_unknown_operand(c, call, name);
    if (!keeps)
        operation.fixed = false;
    result = run_call(call);
    if (effect == OPERATOR_IN_PLACE && !numbers && result == call->args[0])
        operation.same = call->shadows[0];
    if (!result || (!numbers && !(result == Py_None && call->count > 2)))
        return stack_replace_node(c, w, call->slots, &operation, result);
    shadow = add_operation_node(c, &operation);
    if (numbers && shadow)
        store_number_in_shadow(c, shadow, call, result);
    return stack_replace(c, w, call->slots, result, shadow);
}

/* Return the name of CALLABLE, or NULL. The string lives as long as CALLABLE. */
static const char *borrow_callable_name(PyObject *callable)
{
    if (PyMethod_Check(callable))
        return borrow_callable_name(PyMethod_GET_FUNCTION(callable));
    if (PyFunction_Check(callable))
        return PyUnicode_AsUTF8(((PyFunctionObject *)callable)->func_qualname);
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml->ml_name;
    return PyType_Check(callable) ? ((PyTypeObject *)callable)->tp_name : NULL;
}

const char *write_callable_name(PyObject *callable, char *text, size_t room)
{
    const char *name = borrow_callable_name(callable);

    PyErr_Clear();
    if (name)
        snprintf(text, room, "%.100s", name);
    else
        snprintf(text, room, "a %.80s", Py_TYPE(callable)->tp_name);
    return text;
}

enum ended break_at_unknown_argument(struct capture *c, const struct call *call)
{
    char text[120];

    return break_at_unknown_operand(c, call,
                                    write_callable_name(call->callable, text, sizeof text));
}

/* Is CALLABLE a function of numpy? Such a function may warn even if its arguments are numbers, as
 * np.log(-1.0) does. */
static bool is_numpy_function(PyObject *callable)
{
    OWNED PyObject *module = NULL;

    if (!strcmp(Py_TYPE(callable)->tp_name, "numpy.ufunc"))
        return true;
    module = PyObject_GetAttr(callable, intern_word("__module__"));
    PyErr_Clear();
    return module && PyUnicode_CheckExact(module) &&
           is_in_package(PyUnicode_AsUTF8(module), "numpy");
}

/* Does each keyword argument of CALL influence only the result? This is so for dim, dtype and some
 * others. */
static bool do_keywords_affect_only_result(const struct call *call)
{
    for (int i = 0; i < count_names(call); i++) {
        const char *keyword = PyUnicode_AsUTF8(PyTuple_GET_ITEM(call->names, i));

        if (!keyword || !is_in_set(keyword, "harmless")) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* Does CALL, a call of the function or method NAME, only compute a result? False if it changes
 * anything or may cause a warning. */
static bool is_pure_call(const struct call *call, const char *name)
{
    if (!keeps_shape(name, 3, false, false) || is_in_set(name, "impure") ||
        is_numpy_function(call->callable))
        return false;
    if (may_torch_warn(call, name))
        return false;
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];

        if (value == Py_True)
            return false;
        if (value_has_array(value, 2) && !value_is_silent_when_used(value))
            return false;
    }
    return do_keywords_affect_only_result(call);
}

/* Return the shadow of the argument that the call returned: `self` of an in-place method such as
 * add_(), or the keyword argument `out`. Returns NULL if RESULT is a new object. */
static struct shadow *find_returned_argument(const struct call *call, const char *name,
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

/* Run OPERATION, which only reads shapes and types, as x.dim() does. The result is a constant, so
 * no graph node is made. Releases the arguments of OPERATION. */
static enum ended call_metadata_function(struct capture *c, struct watched *w,
                                         const struct call *call, struct operation *operation)
{
    PyObject *result;

    Py_CLEAR(operation->args);
    Py_CLEAR(operation->keywords);
    if (!operation->fixed)
        return break_graph(c, "data", "a fact about a result, which may depend on its data");
    c->shapes_read = true;
    result = run_call(call);
    if (!result)
        return ENDED_RAISED;
    return stack_replace(c, w, call->slots, result, shadow_new_const(c, result));
}

enum ended run_array_call(struct capture *c, struct watched *w, const struct call *call,
                          const char *name)
{
    const bool is_fact = is_in_set(name, "fact");
    struct operation operation;
    PyObject *result;
    enum ended ended = ENDED_NOT;

    if (!is_fact)
        ended = may_add_operation(c, is_pure_call(call, name));
    if (ended)
        return ended;
    if (!make_operation(c, call, true, &operation))
        return break_at_unknown_argument(c, call);
    if (is_fact)
        return call_metadata_function(c, w, call, &operation);
    if (!keeps_shape(name, call->count, operation.first, operation.rest))
        operation.fixed = false;
    result = run_call(call);
    if (result)
        operation.same = find_returned_argument(call, name, result);
    return stack_replace_node(c, w, call->slots, &operation, result);
}

/* Execute size() of an array whose shape is the source SHAPE. size() returns the whole shape, or
 * with an argument a single size. Returns ENDED_BEFORE if the argument is unknown. */
static enum ended execute_size(struct capture *c, struct watched *w, const struct call *call,
                               struct shadow *shape)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(shape->value);
    struct shadow *item;
    Py_ssize_t i;

    if (!call->count)
        return stack_replace(c, w, call->slots, run_call(call), shape);
    if (!PyLong_CheckExact(call->args[0]) ||
        !ensure_value_known(c, call->args[0], call->shadows[0]))
        return ENDED_BEFORE;
    i = PyLong_AsSsize_t(call->args[0]);
    if (i < 0)
        i += count;
    if (i < 0 || i >= count)
        return ENDED_BEFORE;
    item = get_item_shadow_at(c, shape->value, shape, i);
    return stack_replace(c, w, call->slots, run_call(call), item);
}

/* If CALL is a call of size() of an array, and the graph has one of the array's sizes as an input,
 * return the source of the array's shape; otherwise return NULL. */
static struct shadow *find_sized_shape(struct capture *c, const struct call *call, PyObject *self,
                                       const char *name)
{
    struct shadow *of = call->of->method.owner;

    if (strcmp(name, "size") || call->names || call->count > 1)
        return NULL;
    return ensure_type_known(c, self, of) ? find_varying_shape(c, self, of) : NULL;
}

enum ended call_array_method(struct capture *c, struct watched *w, const struct call *call,
                             PyObject *self)
{
    const struct call whole = prepend_self(call, self, call->of->method.owner);
    const char *name = PyUnicode_AsUTF8(call->of->method.name);
    enum ended ended = ENDED_BEFORE;
    struct shadow *shape;

    if (is_in_set(name, "data"))
        return break_graph(c, "data", "%.100s() of an array gives what depends on its data", name);
    shape = find_sized_shape(c, call, self, name);
    if (shape)
        ended = execute_size(c, w, call, shape);
    return ended != ENDED_BEFORE ? ended : run_array_call(c, w, &whole, name);
}

enum ended call_array_function(struct capture *c, struct watched *w, const struct call *call)
{
    OWNED PyObject *name = PyObject_GetAttr(call->callable, intern_word("__name__"));
    const char *text = NULL;

    if (name && PyUnicode_Check(name))
        text = PyUnicode_AsUTF8(name);
    PyErr_Clear();
    return run_array_call(c, w, call, text ? text : "");
}
