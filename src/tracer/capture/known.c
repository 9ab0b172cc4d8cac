/* tracer/capture/known.c -- what is known of functions: of numpy's and torch's by name, of builtins by what they are. See capture.h. */
#include "tracer/capture/capture.h"

static bool is_in(const char *name, const char *words)
{
    size_t length = strlen(name);

    for (const char *at = words; (at = strstr(at, name)); at++)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return length != 0;
    return false;
}

bool keeps_shape(const char *name, int count, bool first, bool rest)
{
    static const char elementwise[] =
        "abs absolute fabs add sub subtract mul multiply div divide true_divide floor_divide remainder mod fmod pow power float_power exp "
        "exp2 expm1 log log2 log10 log1p sqrt rsqrt square sin cos tan asin acos atan arcsin arccos arctan sinh cosh tanh asinh acosh "
        "atanh sigmoid relu relu6 gelu silu elu selu celu leaky_relu softplus softsign mish hardtanh hardswish floor ceil round trunc "
        "rint sign sgn neg negative positive reciprocal clamp clip minimum maximum fmin fmax eq ne lt le gt ge not_equal less greater "
        "less_equal greater_equal logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not invert "
        "isnan isinf isfinite signbit matmul mm bmm mv dot inner outer addmm linear zeros_like ones_like empty_like full_like rand_like "
        "randn_like round clone detach contiguous float double half bfloat16 int long atan2 arctan2 hypot lerp erf erfc masked_fill nan_to_num "
        "conj lshift rshift and_ or_ xor";
    static const char shaped[] =
        "sum mean std var prod any all argmax argmin amax amin max min cumsum cumprod sort argsort norm logsumexp softmax log_softmax "
        "reshape view expand broadcast_to narrow select roll flip transpose permute "
        "t swapaxes moveaxis squeeze unsqueeze expand_dims flatten ravel copy astype to type tril triu trace diagonal repeat tile "
        "expand_as view_as type_as dropout requires_grad_ asarray array tensor as_tensor from_numpy chunk split unbind median "
        "layer_norm conv1d conv2d conv3d max_pool2d avg_pool2d";
    static const char made[] = "zeros ones empty full rand randn arange linspace eye"; /* the first argument is the shape */

    if (!strcmp(name, "where"))
        return count == 3;
    return is_in(name, elementwise) || (!rest && is_in(name, shaped)) || (!first && !rest && is_in(name, made)) || (!strcmp(name, "stack") || !strcmp(name, "cat") || !strcmp(name, "concatenate"));
}

bool is_fact(const char *name)
{
    return is_in(name, "size dim ndim numel nelement stride ndimension shape is_floating_point is_complex is_tensor is_contiguous "
                       "element_size result_type promote_types can_cast iscomplexobj isrealobj issubdtype");
}

/* ---- builtins ---- */

static bool is_builtin(PyObject *callable, const char *name)
{
    static PyObject *builtins;

    if (!builtins && !(builtins = PyImport_ImportModule("builtins"))) {
        PyErr_Clear();
        return false;
    }
    return PyDict_GetItemString(PyModule_GetDict(builtins), name) == callable;
}

static bool is_any(PyObject *callable, const char *const *names)
{
    for (; *names; names++)
        if (is_builtin(callable, *names))
            return true;
    return false;
}

static bool are_simple(struct capture *c, const struct call *call)
{
    for (int i = 0; i < call->count; i++)
        if (!value_is_plain(call->args[i]) || !value_known(c, call->args[i], call->shadows[i]))
            return false;
    return true;
}

static enum ended length(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *value = call->args[0];
    struct shadow *of = call->shadows[0];
    Py_ssize_t size;

    if (is_graph(value, of)) {
        if (!is_fixed(c, value, of) || !value_type_known(c, value, of))
            return break_at(c, "data", "the length of a result, which may depend on its data");
        c->shapes_read = true;
    } else if (PyDict_CheckExact(value) && of && of->kind == SHADOW_SOURCE && !c->foreign && value_type_known(c, value, of)) {
        OWNED PyObject *number = PyLong_FromSsize_t(PyDict_GET_SIZE(value));
        if (number)
            guard_on(c, of, "DICT_LENGTH", number);
    } else if (!is_sequence(value) && !PyDict_CheckExact(value) ? !((value_is_simple(value) || PyTuple_Check(value)) && value_known(c, value, of))
                                                                : !value_type_known(c, value, of)) {
        return ENDED_BEFORE;
    }
    size = PyObject_Size(value);
    return known_result(c, w, call->slots, size < 0 ? NULL : PyLong_FromSsize_t(size));
}

static enum ended instance(struct capture *c, struct watched *w, const struct call *call)
{
    OWNED PyObject *word = PyUnicode_InternFromString("__class__");
    PyObject *type = call->args[1];
    int is = 0;

    if (!value_known(c, type, call->shadows[1]) || !value_type_known(c, call->args[0], call->shadows[0]))
        return ENDED_BEFORE;
    for (Py_ssize_t i = 0; i < (PyTuple_CheckExact(type) ? PyTuple_GET_SIZE(type) : 1) && !is; i++) {
        PyObject *one = PyTuple_CheckExact(type) ? PyTuple_GET_ITEM(type, i) : type;
        if (!PyType_Check(one))
            return ENDED_BEFORE;
        is = PyType_IsSubtype(Py_TYPE(call->args[0]), (PyTypeObject *)one);
        if (!is && (!Py_IS_TYPE(one, &PyType_Type) || !word || /* the program's say */
                    _PyType_Lookup(Py_TYPE(call->args[0]), word) != _PyType_Lookup(&PyBaseObject_Type, word)))
            return ENDED_BEFORE;
    }
    return known_result(c, w, call->slots, PyBool_FromLong(is));
}

/* tuple() or list() of one that is known. */
static enum ended convert(struct capture *c, struct watched *w, const struct call *call, bool list)
{
    struct shadow *shadow = shadow_new(c, list ? SHADOW_LIST : SHADOW_TUPLE, 0);
    PyObject *value = call->args[0];

    if (!shadow || !is_sequence(value) || !value_type_known(c, value, call->shadows[0]) || is_graph(value, call->shadows[0]))
        return ENDED_BEFORE;
    if (shadow_add_items(c, shadow, value, call->shadows[0]))
        return ENDED_BEFORE;
    return stack_result(c, w, call->slots, list ? PySequence_List(value) : PySequence_Tuple(value), shadow);
}

/* An iterator, ITERATES (taken), whose items are as those of ITEMS (taken), a tuple, with SHADOW. */
static enum ended iterator(struct capture *c, struct watched *w, const struct call *call, PyObject *iterates, PyObject *items, struct shadow *shadow)
{
    struct shadow *made = items && shadow ? shadow_new(c, SHADOW_ITERATOR, 0) : NULL;

    if (made) {
        made->parent = shadow;
        made->value = capture_keep(c, items);
    }
    Py_XDECREF(items);
    return stack_result(c, w, call->slots, iterates, made);
}

/* enumerate(), zip(), reversed() of the first GIVEN arguments, tuples and lists. */
static enum ended go_through(struct capture *c, struct watched *w, const struct call *call, int given, char how)
{
    struct shadow *shadow = shadow_new(c, SHADOW_TUPLE, 0);
    Py_ssize_t count = PY_SSIZE_T_MAX, first = given < call->count ? PyLong_AsSsize_t(call->args[given]) : 0;
    PyObject *items, *iterates;

    for (int i = 0; i < given; i++) {
        if (!is_sequence(call->args[i]) || is_graph(call->args[i], call->shadows[i]) || !value_type_known(c, call->args[i], call->shadows[i]))
            return ENDED_BEFORE;
        if (PySequence_Fast_GET_SIZE(call->args[i]) < count)
            count = PySequence_Fast_GET_SIZE(call->args[i]);
        call->shadows[i]->fixed |= PyList_CheckExact(call->args[i]); /* its items are those that the shadow has now */
    }
    for (Py_ssize_t n = 0; shadow && n < count; n++) {
        struct shadow *one = how == 'r' ? NULL : shadow_new(c, SHADOW_TUPLE, 0);
        if (how == 'e') {
            OWNED PyObject *number = PyLong_FromSsize_t(first + n);
            if (!number || !one || shadow_add(c, one, NULL, shadow_const(c, number)))
                return ENDED_BEFORE;
        }
        for (int i = 0; i < given; i++) {
            struct shadow *item = value_item(c, call->args[i], call->shadows[i], how == 'r' ? count - 1 - n : n);
            if (!item || (one && shadow_add(c, one, NULL, item)))
                return ENDED_BEFORE;
            if (!one)
                one = item;
        }
        if (!one || shadow_add(c, shadow, NULL, one))
            return ENDED_BEFORE;
    }
    if (!shadow || !(items = PyTuple_New(count)))
        return ENDED_BEFORE;
    for (Py_ssize_t n = 0; n < count; n++)
        PyTuple_SET_ITEM(items, n, Py_NewRef(Py_None)); /* only how many there are is looked at */
    iterates = run_call(call);
    return iterator(c, w, call, iterates, items, shadow);
}

/* Is what enumerate() begins to count with known, and no large number? */
static bool is_start(struct capture *c, const struct call *call)
{
    int large = 0;

    return call->count == 1 || (call->count == 2 && PyLong_CheckExact(call->args[1]) && value_known(c, call->args[1], call->shadows[1]) &&
                                labs(PyLong_AsLongAndOverflow(call->args[1], &large)) < INT_MAX && !large);
}

/* getattr() and hasattr() with a name that is known, as the instruction would read it. */
static enum ended by_name(struct capture *c, struct watched *w, const struct call *call)
{
    const bool asks = is_builtin(call->callable, "hasattr");
    PyObject *owner = call->args[0], *name = call->args[1], *value;
    struct shadow *shadow;
    enum ended ended;

    if (call->count != 2 || stack_value(w, 0) != name || stack_value(w, 1) != owner || !PyUnicode_CheckExact(name) || !value_known(c, name, call->shadows[1]) ||
        (asks && is_graph(owner, call->shadows[0]) && !_PyType_Lookup(Py_TYPE(owner), name)))
        return ENDED_BEFORE;
    Py_INCREF(name);
    stack_drop(w, 1);
    ended = read_attribute(c, w, name, false);
    if (ended == ENDED_BEFORE || ended == ENDED_RAISED) {
        stack_push(w, name, call->shadows[1]);
        return ended;
    }
    Py_DECREF(name);
    value = Py_NewRef(asks ? Py_True : stack_value(w, 0));
    shadow = asks ? shadow_const(c, Py_True) : stack_shadow(w, 0);
    if (asks && !value_type_known(c, stack_value(w, 0), stack_shadow(w, 0)))
        c->failed = true;
    stack_drop(w, call->slots - 1);
    stack_push(w, value, shadow);
    return ended;
}

/* Is CALLABLE a function of MODULE's, in C? */
static bool is_of(PyObject *callable, const char *module)
{
    PyObject *of = PyCFunction_CheckExact(callable) ? ((PyCFunctionObject *)callable)->m_module : NULL;

    return of && PyUnicode_CheckExact(of) && !PyUnicode_CompareWithASCIIString(of, module);
}

/* Does it what an operator does, to each element and to nothing else? */
static bool is_elementwise(PyObject *callable)
{
    return is_of(callable, "_operator") && keeps_shape(((PyCFunctionObject *)callable)->m_ml->ml_name, 2, true, true);
}

static enum ended builtin(struct capture *c, struct watched *w, const struct call *call)
{
    static const char *const pure[] = {"range", "int", "float", "bool", "str", "abs", "min", "max", "sum", "round", "divmod", "pow",
                                       "ord", "chr", "repr", "complex", "slice", "all", "any", "bin", "hex", "oct", NULL};
    static const char *const operations[] = {"abs", "pow", "round", "divmod", "sum", NULL};
    struct operation operation;
    enum ended ended;

    if (!call->names && call->count == 1 && is_builtin(call->callable, "len"))
        return (ended = operate_special(c, w, "__len__", RUN_LENGTH, call->slots, 1, call->args, call->shadows)) != ENDED_BEFORE || c->kind
                   ? ended : length(c, w, call);
    if (!call->count && call->callable == (PyObject *)&PySuper_Type)
        return super_made(c, w, call);
    if (!call->names && call->count == 2 && is_builtin(call->callable, "isinstance"))
        return instance(c, w, call);
    if (!call->names && call->count == 1 && is_builtin(call->callable, "type") && value_type_known(c, call->args[0], call->shadows[0]))
        return known_result(c, w, call->slots, Py_NewRef(Py_TYPE(call->args[0])));
    if (!call->names && call->count == 1 && (is_builtin(call->callable, "tuple") || is_builtin(call->callable, "list")))
        return convert(c, w, call, is_builtin(call->callable, "list"));
    if (!call->names && call->count >= 1 && is_builtin(call->callable, "zip"))
        return go_through(c, w, call, call->count, 'z');
    if (!call->names && call->count >= 1 && is_builtin(call->callable, "enumerate") && is_start(c, call))
        return go_through(c, w, call, 1, 'e');
    if (!call->names && call->count == 1 && is_builtin(call->callable, "reversed"))
        return go_through(c, w, call, 1, 'r');
    if (!call->names && call->count >= 2 && (is_builtin(call->callable, "getattr") || is_builtin(call->callable, "hasattr")))
        return by_name(c, w, call);
    if ((is_any(call->callable, pure) || is_of(call->callable, "math") || is_of(call->callable, "_operator")) && are_simple(c, call))
        return known_result(c, w, call->slots, run_call(call));
    if (call->names || !call->count || !(is_any(call->callable, operations) || is_elementwise(call->callable)) ||
        !(has_graph(c, call->args[0], call->shadows[0]) || (call->count > 1 && has_graph(c, call->args[1], call->shadows[1]))))
        return ENDED_BEFORE;
    operation = (struct operation){.op = "call_function", .target = call->callable};
    return array_call(c, w, call, NULL, NULL, ((PyCFunctionObject *)call->callable)->m_ml->ml_name, &operation);
}

/* ---- methods of builtin types ---- */

static enum ended list_method(struct capture *c, struct watched *w, const struct call *call, PyObject *list)
{
    struct shadow *of = call->of->parent;
    PyObject *name = call->of->key;

    if (!may_change(c, of, SHADOW_LIST) || PyList_GET_SIZE(list) != of->count || call->count != 1 ||
        call->names || call->args[0] == list)
        return break_at(c, "mutation", "a method of a list that was not made here, or one that is not known");
    if (!PyUnicode_CompareWithASCIIString(name, "append")) {
        if (!change(c, of, call->of, NULL, NULL, 1, call->shadows))
            return break_at(c, "mutation", "a list is changed that was not made here");
        if (shadow_add(c, of, NULL, call->shadows[0]))
            return ENDED_BEFORE;
    } else if (!PyUnicode_CompareWithASCIIString(name, "extend") && is_sequence(call->args[0]) &&
               value_type_known(c, call->args[0], call->shadows[0])) {
        if (!change(c, of, call->of, NULL, NULL, 1, call->shadows))
            return break_at(c, "mutation", "a list is changed that was not made here");
        if (shadow_add_items(c, of, call->args[0], call->shadows[0]))
            return ENDED_BEFORE;
    } else {
        return break_at(c, "call", "list.%.100s()", PyUnicode_AsUTF8(name));
    }
    return stack_result(c, w, call->slots, run_call(call), shadow_const(c, Py_None));
}

/* items(), keys(), values() and get() of a dict that was built here. */
static enum ended dict_method(struct capture *c, struct watched *w, const struct call *call, PyObject *dict)
{
    struct shadow *of = call->of->parent, *shadow;
    const char *name = PyUnicode_AsUTF8(call->of->key);
    const bool keys = !strcmp(name, "keys"), items = !strcmp(name, "items");
    OWNED PyObject *view = NULL;
    PyObject *all;

    if (of->kind != SHADOW_DICT || PyDict_GET_SIZE(dict) != of->count || call->count || call->names ||
        (!keys && !items && strcmp(name, "values")) || !(shadow = shadow_new(c, SHADOW_TUPLE, 0)))
        return break_at(c, "call", "dict.%.100s()", name);
    for (Py_ssize_t i = 0; i < of->count; i++) {
        struct shadow *key = shadow_const(c, of->keys[i]), *one = keys ? key : of->items[i];
        if (items && (!(one = shadow_new(c, SHADOW_TUPLE, 2)) || shadow_add(c, one, NULL, key) || shadow_add(c, one, NULL, of->items[i])))
            return ENDED_BEFORE;
        if (shadow_add(c, shadow, NULL, one))
            return ENDED_BEFORE;
    }
    of->fixed = true;
    view = run_call(call);
    all = view ? PySequence_Tuple(view) : NULL;
    if (!all)
        return ENDED_RAISED;
    return iterator(c, w, call, Py_NewRef(view), all, shadow); /* iterate() knows it */
}

enum ended call_known(struct capture *c, struct watched *w, const struct call *call)
{
    struct shadow *of = call->of;
    PyObject *self = of && of->kind == SHADOW_METHOD && PyCFunction_Check(call->callable) ? PyCFunction_GET_SELF(call->callable) : NULL;

    if (of && of->kind == SHADOW_METHOD && !call->count && !PyMethod_Check(call->callable) && of->parent->kind == SHADOW_SUPER)
        return known_result(c, w, call->slots, run_call(call)); /* object.__init__() */
    if (self && PyList_CheckExact(self))
        return list_method(c, w, call, self);
    if (self && PyDict_CheckExact(self))
        return dict_method(c, w, call, self);
    if (self && value_is_simple(self) && value_known(c, self, of->parent) && are_simple(c, call))
        return known_result(c, w, call->slots, run_call(call));
    if (of && of->kind == SHADOW_SOURCE && (PyCFunction_Check(call->callable) || PyType_Check(call->callable)) &&
        !is_array_function(call->callable) && value_known(c, call->callable, of))
        return builtin(c, w, call);
    return ENDED_BEFORE;
}
