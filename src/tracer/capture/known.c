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

PyObject *capture_builtins;

PyObject *builtin_named(const char *name)
{
    return PyDict_GetItemString(capture_builtins, name);
}

/* Is CALLABLE a function of MODULE's, in C? */
static bool is_of(PyObject *callable, const char *module)
{
    PyObject *of = PyCFunction_CheckExact(callable) ? ((PyCFunctionObject *)callable)->m_module : NULL;

    return of && PyUnicode_CheckExact(of) && !PyUnicode_CompareWithASCIIString(of, module);
}

/* Are all arguments known, and no code of the program's runs by them? DEEP: so may lists of such be. */
static bool are_simple(struct capture *c, const struct call *call, bool deep)
{
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];
        struct shadow *of = call->shadows[i];
        bool is = value_is_plain(value) && value_known(c, value, of);
        if (!is && deep && is_sequence(value) && value_type_known(c, value, of)) {
            is = true;
            for (Py_ssize_t j = 0; is && j < PySequence_Fast_GET_SIZE(value); j++)
                is = value_is_simple(PySequence_Fast_GET_ITEM(value, j)) && value_known(c, PySequence_Fast_GET_ITEM(value, j), value_item(c, value, of, j));
        }
        if (!is)
            return false;
    }
    return true;
}

static enum ended length(struct capture *c, struct watched *w, const struct call *call, const char *name)
{
    PyObject *value = call->args[0];
    struct shadow *of = call->shadows[0];
    struct call special = *call;
    enum ended ended;

    special.operates = true;
    if ((ended = operate_special(c, w, name, &special)) != ENDED_BEFORE || c->kind)
        return ended;
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
    return known_result(c, w, call->slots, run_call(call));
}

/* isinstance(), issubclass() */
static enum ended instance(struct capture *c, struct watched *w, const struct call *call, const char *name)
{
    OWNED PyObject *word = PyUnicode_InternFromString("__class__");
    PyObject *type = call->args[1];
    const bool of_class = name[2] == 's';
    PyTypeObject *sub = of_class ? (PyTypeObject *)call->args[0] : Py_TYPE(call->args[0]);
    int is = 0;

    if (!value_known(c, type, call->shadows[1]) || (of_class ? !Py_IS_TYPE(sub, &PyType_Type) || !value_known(c, call->args[0], call->shadows[0])
                                                             : !value_type_known(c, call->args[0], call->shadows[0])))
        return ENDED_BEFORE;
    for (Py_ssize_t i = 0; i < (PyTuple_CheckExact(type) ? PyTuple_GET_SIZE(type) : 1) && !is; i++) {
        PyObject *one = PyTuple_CheckExact(type) ? PyTuple_GET_ITEM(type, i) : type;
        if (!PyType_Check(one))
            return ENDED_BEFORE;
        is = PyType_IsSubtype(sub, (PyTypeObject *)one);
        if ((of_class || sub != (PyTypeObject *)one) && /* the program's say */
            (!Py_IS_TYPE(one, &PyType_Type) || !word || (!is && _PyType_Lookup(sub, word) != _PyType_Lookup(&PyBaseObject_Type, word))))
            return ENDED_BEFORE;
    }
    return known_result(c, w, call->slots, PyBool_FromLong(is));
}

static enum ended type_of(struct capture *c, struct watched *w, const struct call *call, const char *name)
{
    return value_type_known(c, call->args[0], call->shadows[0]) ? known_result(c, w, call->slots, run_call(call)) : ENDED_BEFORE;
}

/* tuple(), list() */
static enum ended convert(struct capture *c, struct watched *w, const struct call *call, const char *name)
{
    enum ended ended = move(c, w, name, call);

    if (ended != ENDED_BEFORE || c->kind || is_graph(call->args[0], call->shadows[0]))
        return ended;
    return step_polyfill(c, w, name[0] == 'l' ? "_list" : "_tuple", call);
}

/* enumerate(), zip(), map(), filter(): the iterators of their arguments are made here, so that they are known. */
static enum ended go_through(struct capture *c, struct watched *w, const struct call *call, const char *name)
{
    const int first = name[0] == 'm' || name[0] == 'f', last = name[0] == 'e' ? 1 : call->count;
    struct shadow *shadow = iterator_shadow(c, name[0], first ? call->args[0] : NULL, first ? call->shadows[0] : NULL), *of;
    struct call made = *call;
    PyObject *args[16 + 1], *iterator;
    int large = 0;

    if (last > 16 || !shadow || (first && !call->shadows[0]))
        return ENDED_BEFORE;
    if (last < call->count && (!PyLong_CheckExact(call->args[1]) || !value_known(c, call->args[1], call->shadows[1]) || /* where it begins to count */
                               labs(PyLong_AsLongAndOverflow(call->args[1], &large)) >= INT_MAX || large))
        return ENDED_BEFORE;
    made.args = args;
    for (int i = 0; i < call->count; i++)
        args[i] = call->args[i];
    for (int i = first; i < last; i++) {
        if (iterator_of(c, call->args[i], call->shadows[i], &iterator, &of))
            return ENDED_BEFORE;
        shadow_add(c, shadow, args[i] = iterator, of); /* which keeps it */
        Py_DECREF(iterator);
    }
    return c->failed ? ENDED_BEFORE : stack_result(c, w, call->slots, run_call(&made), shadow);
}

/* iter(), reversed() */
static enum ended iterate_call(struct capture *c, struct watched *w, const struct call *call, const char *name)
{
    PyObject *value = call->args[0], *iterator;
    struct shadow *of = call->shadows[0], *shadow;
    enum ended ended;

    if (name[0] == 'i') {
        ended = iterator_of(c, value, of, &iterator, &shadow);
        return ended ? ended : stack_result(c, w, call->slots, iterator, shadow);
    }
    if (!is_sequence(value) || is_graph(value, of) || !value_type_known(c, value, of) || !(shadow = iterator_shadow(c, 'r', value, of)) || !shadow_change(c, of))
        return ENDED_BEFORE;
    of->fixed |= PyList_CheckExact(value); /* its items are those that the shadow has now */
    return stack_result(c, w, call->slots, run_call(call), shadow);
}

static enum ended next_call(struct capture *c, struct watched *w, const struct call *call, const char *name)
{
    OWNED PyObject *otherwise = call->count == 2 ? Py_NewRef(call->args[1]) : NULL, *stop = NULL;
    struct shadow *of_otherwise = otherwise ? call->shadows[1] : NULL;
    enum ended ended = iterator_next(c, w, call->args[0], call->shadows[0], call->slots);

    if (ended == ENDED_BEFORE || ended == ENDED_RAISED || stack_value(w, 0) != polyfill("end"))
        return ended;
    if (otherwise) {
        stack_result(c, w, 1, Py_NewRef(otherwise), ended ? NULL : of_otherwise);
        return ended;
    }
    stop = c->stopped && c->stopped != Py_None ? PyObject_CallOneArg(PyExc_StopIteration, c->stopped) : NULL;
    if (!PyErr_Occurred())
        PyErr_SetObject(PyExc_StopIteration, stop);
    return ENDED_RAISED;
}

/* getattr() and hasattr() with a name that is known, as the instruction would read it. */
static enum ended by_name(struct capture *c, struct watched *w, const struct call *call, const char *function)
{
    const bool asks = function[0] == 'h';
    PyObject *owner = call->args[0], *name = call->args[1], *value;
    struct shadow *shadow;
    enum ended ended;

    if (stack_value(w, 0) != name || stack_value(w, 1) != owner || !PyUnicode_CheckExact(name) || !value_known(c, name, call->shadows[1]) ||
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

/* ---- what is done in Python instead (python/dyntrace/_polyfills.py) ---- */

PyObject *polyfill(const char *name)
{
    static PyObject *module;
    PyObject *found;

    if (!module && !(module = PyImport_ImportModule("dyntrace._polyfills")))
        return PyErr_Clear(), NULL;
    found = PyDict_GetItemString(PyModule_GetDict(module), name);
    if (found && PyFunction_Check(found) && !compat_hides((PyCodeObject *)PyFunction_GET_CODE(found)))
        compat_hide_code((PyCodeObject *)PyFunction_GET_CODE(found));
    return found;
}

enum ended step_polyfill(struct capture *c, struct watched *w, const char *name, const struct call *call)
{
    PyObject *function = polyfill(name), *defaults;
    struct call instead = *call;

    for (int i = 0; i < call->count; i++)
        if (PyIter_Check(call->args[i]) && !(call->shadows[i] && (call->shadows[i]->kind == SHADOW_ITERATOR || call->shadows[i]->kind == SHADOW_GENERATOR)))
            return break_at(c, "container", "a loop over a %.200s", Py_TYPE(call->args[i])->tp_name);
    if (!function || !polyfill("order") || !(instead.of = shadow_new(c, SHADOW_FUNCTION, 0)))
        return ENDED_BEFORE;
    defaults = PyFunction_GET_DEFAULTS(function);
    instead.callable = function;
    instead.of->parent = shadow_const(c, defaults ? defaults : Py_None);
    return inlined(c, w, &instead, (PyFunctionObject *)function, instead.of, NULL);
}

/* What is known of a builtin function or type: what does a call of it with LEAST to MOST arguments, or the function in Python that is stepped
 * instead, for it goes through an iterator or calls functions, may get these keywords. */
struct builtin {
    const char *name;
    int least, most;
    enum ended (*call)(struct capture *c, struct watched *w, const struct call *call, const char *name);
    const char *keywords;
};

static const struct builtin *builtin_of(const char *name)
{
    static const struct builtin known[] = {
        {"len", 1, 1, length, NULL}, {"super", 0, 0, super_made, NULL}, {"isinstance", 2, 2, instance, NULL}, {"issubclass", 2, 2, instance, NULL},
        {"type", 1, 1, type_of, NULL}, {"tuple", 1, 1, convert, NULL}, {"list", 1, 1, convert, NULL}, {"zip", 1, 16, go_through, NULL},
        {"enumerate", 1, 2, go_through, NULL}, {"map", 2, 16, go_through, NULL}, {"filter", 2, 2, go_through, NULL}, {"iter", 1, 1, iterate_call, NULL},
        {"reversed", 1, 1, iterate_call, NULL}, {"next", 1, 2, next_call, NULL}, {"getattr", 2, 2, by_name, NULL}, {"hasattr", 2, 2, by_name, NULL},
        {"sum", 1, 2, NULL, "start"}, {"min", 1, 1, NULL, "key"}, {"max", 1, 1, NULL, "key"}, {"any", 1, 1, NULL, ""}, {"all", 1, 1, NULL, ""},
        {"sorted", 1, 1, NULL, "key reverse"}, {"reduce", 2, 3, NULL, ""}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return &known[i];
    return NULL;
}

/* BUILTIN's function in Python. */
static enum ended step_instead(struct capture *c, struct watched *w, const struct call *call, const struct builtin *builtin)
{
    const int named = call->names ? (int)PyTuple_GET_SIZE(call->names) : 0;
    PyObject *start = call->count == 2 ? call->args[1] : NULL;
    char name[16];

    for (int j = 0; j < named; j++)
        if (!is_in(PyUnicode_AsUTF8(PyTuple_GET_ITEM(call->names, j)), builtin->keywords))
            return ENDED_BEFORE;
    snprintf(name, sizeof name, "_%s", builtin->name);
    if (call->count - named < builtin->least || call->count - named > builtin->most ||
        (!strcmp(name, "_sum") && start && !PyLong_CheckExact(start) && !PyFloat_CheckExact(start) && !value_is_array(start)))
        return ENDED_BEFORE;
    return step_polyfill(c, w, name, call);
}

static enum ended call_builtin(struct capture *c, struct watched *w, const struct call *call)
{
    static const char pure[] = "range int float bool str abs min max sum round divmod pow ord chr repr complex slice all any bin hex oct sorted";
    const char *name = PyType_Check(call->callable) ? ((PyTypeObject *)call->callable)->tp_name
                       : PyCFunction_Check(call->callable) ? ((PyCFunctionObject *)call->callable)->m_ml->ml_name : "";
    const bool is = builtin_named(name) == call->callable, numbers = is_of(call->callable, "math") || is_of(call->callable, "_operator");
    const struct builtin *builtin = is || is_of(call->callable, "_functools") ? builtin_of(name) : NULL;
    struct operation operation;
    enum ended ended;

    if (builtin && builtin->call && !call->names && call->count >= builtin->least && call->count <= builtin->most &&
        ((ended = builtin->call(c, w, call, name)) != ENDED_BEFORE || c->kind))
        return ended;
    if ((((is && is_in(name, pure)) || call->callable == polyfill("order")) && are_simple(c, call, true)) || (numbers && are_simple(c, call, false)))
        return known_result(c, w, call->slots, run_call(call));
    if (!call->names && call->count && (is ? is_in(name, "abs pow round divmod sum") : is_of(call->callable, "_operator") && keeps_shape(name, 2, true, true)) &&
        (has_graph(c, call->args[0], call->shadows[0]) || (call->count > 1 && has_graph(c, call->args[1], call->shadows[1])))) {
        operation = (struct operation){.op = "call_function", .target = call->callable};
        return array_call(c, w, call, NULL, NULL, name, &operation);
    }
    return builtin && builtin->keywords ? step_instead(c, w, call, builtin) : ENDED_BEFORE;
}

/* A method of a list or dict. */
static enum ended call_method(struct capture *c, struct watched *w, const struct call *call, PyObject *self)
{
    PyObject *values[8];
    struct shadow *shadows[8];
    struct call whole = *call;
    enum ended ended;
    const char *name = PyUnicode_AsUTF8(call->of->key);

    if (call->count > 7 || !name || !(whole.callable = _PyType_Lookup(Py_TYPE(self), call->of->key)))
        return ENDED_BEFORE;
    values[0] = self;
    shadows[0] = call->of->parent;
    for (int i = 0; i < call->count; i++) {
        values[1 + i] = call->args[i];
        shadows[1 + i] = call->shadows[i];
    }
    whole.args = values;
    whole.shadows = shadows;
    whole.count++;
    ended = move(c, w, name, &whole);
    return ended == ENDED_BEFORE && !c->kind && !strcmp(name, "extend") && whole.count == 2 ? step_polyfill(c, w, "_extend", &whole) : ended;
}

enum ended call_known(struct capture *c, struct watched *w, const struct call *call)
{
    struct shadow *of = call->of;
    PyObject *self = of && of->kind == SHADOW_METHOD && PyCFunction_Check(call->callable) ? PyCFunction_GET_SELF(call->callable) : NULL;

    if (of && of->kind == SHADOW_METHOD && !call->count && !PyMethod_Check(call->callable) && of->parent->kind == SHADOW_SUPER)
        return known_result(c, w, call->slots, run_call(call)); /* object.__init__() */
    if (self && (PyList_CheckExact(self) || PyDict_CheckExact(self)))
        return call_method(c, w, call, self);
    if (self && value_is_simple(self) && value_known(c, self, of->parent) && are_simple(c, call, true))
        return known_result(c, w, call->slots, run_call(call));
    if (of && (of->kind == SHADOW_SOURCE || of->kind == SHADOW_CONST) && (PyCFunction_Check(call->callable) || PyType_Check(call->callable) || call->callable == polyfill("order")) &&
        !is_array_function(call->callable) && value_known(c, call->callable, of))
        return call_builtin(c, w, call);
    return ENDED_BEFORE;
}
