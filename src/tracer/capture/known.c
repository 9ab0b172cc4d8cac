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

/* Is CALLABLE a function of MODULE's, in C? */
static bool is_of(PyObject *callable, const char *module)
{
    PyObject *of = PyCFunction_CheckExact(callable) ? ((PyCFunctionObject *)callable)->m_module : NULL;

    return of && PyUnicode_CheckExact(of) && !PyUnicode_CompareWithASCIIString(of, module);
}

static bool is_any(PyObject *callable, const char *const *names)
{
    for (; *names; names++)
        if (is_builtin(callable, *names))
            return true;
    return false;
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
    const bool of_class = is_builtin(call->callable, "issubclass");
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

/* tuple() or list(). */
static enum ended convert(struct capture *c, struct watched *w, const struct call *call, bool list)
{
    struct shadow *shadow, *tuple;
    PyObject *items, *made;
    enum ended ended;

    if (is_graph(call->args[0], call->shadows[0]))
        return ENDED_BEFORE;
    ended = collect(c, w, call->args[0], call->shadows[0], PY_SSIZE_T_MAX, &items, &shadow);
    if (ended == ENDED_BEFORE || ended == ENDED_RAISED)
        return ended;
    made = list ? Py_NewRef(items) : PyList_AsTuple(items);
    Py_DECREF(items);
    tuple = made && !list ? shadow_new(c, SHADOW_TUPLE, 0) : NULL;
    if (tuple) {
        tuple->items = shadow->items;
        tuple->count = tuple->room = shadow->count;
    }
    ended = made ? ended : ENDED_RAISED;
    stack_result(c, w, call->slots, made, ended ? NULL : list ? shadow : tuple);
    return ended;
}

/* enumerate(), zip(), map(), filter(): of the arguments FIRST to LAST, whose iterators are made here, so that they are known. */
static enum ended go_through(struct capture *c, struct watched *w, const struct call *call, int first, int last, char how)
{
    struct shadow *shadow = iterator_shadow(c, how, first ? call->args[0] : NULL, first ? call->shadows[0] : NULL), *of;
    struct call made = *call;
    PyObject *args[16 + 1], *iterator;

    if (last - first < 1 || last > 16 || !shadow || (first && !call->shadows[0]))
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
static enum ended iterate_call(struct capture *c, struct watched *w, const struct call *call, bool backwards)
{
    PyObject *value = call->args[0], *iterator;
    struct shadow *of = call->shadows[0], *shadow;
    enum ended ended;

    if (!backwards) {
        ended = iterator_of(c, value, of, &iterator, &shadow);
        return ended ? ended : stack_result(c, w, call->slots, iterator, shadow);
    }
    if (!is_sequence(value) || is_graph(value, of) || !value_type_known(c, value, of) || !(shadow = iterator_shadow(c, 'r', value, of)) || !shadow_change(c, of))
        return ENDED_BEFORE;
    of->fixed |= PyList_CheckExact(value); /* its items are those that the shadow has now */
    return stack_result(c, w, call->slots, run_call(call), shadow);
}

static enum ended next_call(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *item, *stop;
    struct shadow *shadow;
    enum ended ended = iterator_next(c, w, call->args[0], call->shadows[0], &item, &shadow);

    if (ended == ENDED_BEFORE || ended == ENDED_RAISED)
        return ended;
    if (!item && call->count == 2) {
        item = Py_NewRef(call->args[1]);
        shadow = call->shadows[1];
    }
    if (!item) {
        stop = c->stopped && c->stopped != Py_None ? PyObject_CallOneArg(PyExc_StopIteration, c->stopped) : NULL;
        if (stop)
            PyErr_SetObject(PyExc_StopIteration, stop);
        else if (!PyErr_Occurred())
            PyErr_SetNone(PyExc_StopIteration);
        Py_XDECREF(stop);
        return ENDED_RAISED;
    }
    stack_result(c, w, call->slots, item, ended ? NULL : shadow);
    return ended;
}

/* ---- what is done in Python instead (python/dyntrace/_polyfills.py) ---- */

PyObject *polyfill(const char *name)
{
    static PyObject *module;
    PyObject *function;

    if (!module && !(module = PyImport_ImportModule("dyntrace._polyfills")))
        return PyErr_Clear(), NULL;
    function = PyDict_GetItemString(PyModule_GetDict(module), name);
    if (function && !compat_hides((PyCodeObject *)PyFunction_GET_CODE(function)))
        compat_hide_code((PyCodeObject *)PyFunction_GET_CODE(function));
    return function;
}

/* A builtin that goes through an iterator, or calls functions. */
static enum ended step_instead(struct capture *c, struct watched *w, const struct call *call)
{
    static const struct { const char *name; int least, most; const char *keywords; } known[] = {
        {"sum", 1, 2, "start"}, {"any", 1, 1, ""}, {"all", 1, 1, ""}, {"min", 1, 1, "key"}, {"max", 1, 1, "key"}, {"sorted", 1, 1, "key reverse"},
        {"reduce", 2, 3, ""}};
    const int named = call->names ? (int)PyTuple_GET_SIZE(call->names) : 0;
    PyObject *start = call->count == 2 ? call->args[1] : NULL, *function;
    struct call instead = *call;
    char name[16];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, "reduce") ? !is_builtin(call->callable, known[i].name)
                                            : !is_of(call->callable, "_functools") || strcmp(((PyCFunctionObject *)call->callable)->m_ml->ml_name, "reduce"))
            continue;
        for (int j = 0; j < named; j++)
            if (!is_in(PyUnicode_AsUTF8(PyTuple_GET_ITEM(call->names, j)), known[i].keywords))
                return ENDED_BEFORE;
        snprintf(name, sizeof name, "_%s", known[i].name);
        function = polyfill(name);
        if (call->count - named < known[i].least || call->count - named > known[i].most || !function || !polyfill("order") ||
            (!i && start && !PyLong_CheckExact(start) && !PyFloat_CheckExact(start) && !value_is_array(start)))
            return ENDED_BEFORE;
        instead.callable = function;
        instead.of = shadow_new(c, SHADOW_FUNCTION, 0);
        if (!instead.of || !(instead.of->parent = shadow_const(c, PyFunction_GET_DEFAULTS(function) ? PyFunction_GET_DEFAULTS(function) : Py_None)))
            return ENDED_BEFORE;
        return inlined(c, w, &instead, (PyFunctionObject *)function, instead.of, NULL);
    }
    return ENDED_BEFORE;
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

/* Does it what an operator does, to each element and to nothing else? */
static bool is_elementwise(PyObject *callable)
{
    return is_of(callable, "_operator") && keeps_shape(((PyCFunctionObject *)callable)->m_ml->ml_name, 2, true, true);
}

static enum ended builtin(struct capture *c, struct watched *w, const struct call *call)
{
    static const char *const pure[] = {"range", "int", "float", "bool", "str", "abs", "min", "max", "sum", "round", "divmod", "pow",
                                       "ord", "chr", "repr", "complex", "slice", "all", "any", "bin", "hex", "oct", "sorted", NULL};
    static const char *const operations[] = {"abs", "pow", "round", "divmod", "sum", NULL};
    struct operation operation;
    enum ended ended;

    if (!call->names && call->count == 1 && is_builtin(call->callable, "len"))
        return (ended = operate_special(c, w, "__len__", RUN_LENGTH, call->slots, 1, call->args, call->shadows)) != ENDED_BEFORE || c->kind
                   ? ended : length(c, w, call);
    if (!call->count && call->callable == (PyObject *)&PySuper_Type)
        return super_made(c, w, call);
    if (!call->names && call->count == 2 && (is_builtin(call->callable, "isinstance") || is_builtin(call->callable, "issubclass")))
        return instance(c, w, call);
    if (!call->names && call->count == 1 && is_builtin(call->callable, "type") && value_type_known(c, call->args[0], call->shadows[0]))
        return known_result(c, w, call->slots, Py_NewRef(Py_TYPE(call->args[0])));
    if (!call->names && call->count == 1 && (is_builtin(call->callable, "tuple") || is_builtin(call->callable, "list")))
        return convert(c, w, call, is_builtin(call->callable, "list"));
    if (!call->names && call->count >= 1 && is_builtin(call->callable, "zip"))
        return go_through(c, w, call, 0, call->count, 'z');
    if (!call->names && call->count >= 1 && is_builtin(call->callable, "enumerate") && is_start(c, call))
        return go_through(c, w, call, 0, 1, 'e');
    if (!call->names && call->count >= 2 && is_builtin(call->callable, "map"))
        return go_through(c, w, call, 1, call->count, 'm');
    if (!call->names && call->count == 2 && is_builtin(call->callable, "filter"))
        return go_through(c, w, call, 1, 2, 'f');
    if (!call->names && call->count == 1 && (is_builtin(call->callable, "iter") || is_builtin(call->callable, "reversed")))
        return iterate_call(c, w, call, !is_builtin(call->callable, "iter"));
    if (!call->names && call->count && call->count < 3 && is_builtin(call->callable, "next"))
        return next_call(c, w, call);
    if (!call->names && call->count >= 2 && (is_builtin(call->callable, "getattr") || is_builtin(call->callable, "hasattr")))
        return by_name(c, w, call);
    if (((is_any(call->callable, pure) || call->callable == polyfill("order")) && are_simple(c, call, true)) ||
        ((is_of(call->callable, "math") || is_of(call->callable, "_operator")) && are_simple(c, call, false)))
        return known_result(c, w, call->slots, run_call(call));
    if (call->names || !call->count || !(is_any(call->callable, operations) || is_elementwise(call->callable)) ||
        !(has_graph(c, call->args[0], call->shadows[0]) || (call->count > 1 && has_graph(c, call->args[1], call->shadows[1]))))
        return step_instead(c, w, call);
    operation = (struct operation){.op = "call_function", .target = call->callable};
    return array_call(c, w, call, NULL, NULL, ((PyCFunctionObject *)call->callable)->m_ml->ml_name, &operation);
}

/* ---- methods of builtin types ---- */

/* The list, tuple or dict VALUE with numbers in place of its items, whose shadows ALL gets; or NULL: one is not known. A new reference. */
static PyObject *numbered(struct capture *c, struct shadow *all, PyObject *value, struct shadow *of)
{
    const bool dict = PyDict_CheckExact(value);
    struct shadow *seen = dict ? dict_shadow(c, value, of) : of, *item;
    PyObject *made = !seen || is_graph(value, of) ? NULL : dict ? PyDict_New() : is_sequence(value) && value_type_known(c, value, of) ? PyList_New(0) : NULL;

    for (Py_ssize_t i = 0; made && i < (dict ? seen->count : PySequence_Fast_GET_SIZE(value)); i++) {
        OWNED PyObject *number = PyLong_FromSsize_t(all->count);
        item = dict ? seen->items[i] : value_item(c, value, of, i);
        if (!item || !number || shadow_add(c, all, NULL, item) || (dict ? PyDict_SetItem(made, seen->keys[i], number) : PyList_Append(made, number)))
            Py_CLEAR(made);
    }
    return made;
}

/* OF has the items, and the keys, of NUMBERS. */
static void take_numbers(struct capture *c, struct shadow *of, const struct shadow *all, PyObject *numbers)
{
    PyObject *key = NULL, *number;
    Py_ssize_t at = 0;

    of->count = 0;
    while (PyDict_Check(numbers) ? PyDict_Next(numbers, &at, &key, &number) : at < PyList_GET_SIZE(numbers)) {
        if (!PyDict_Check(numbers))
            number = PyList_GET_ITEM(numbers, at++);
        shadow_add(c, of, key, number == Py_None ? shadow_const(c, number) : all->items[PyLong_AsSsize_t(number)]);
    }
}

enum ended by_numbers(struct capture *c, struct watched *w, const struct call *call, PyObject *self, struct shadow *of, const char *method)
{
    /* what the arguments are: k: a known value; e: an item; s: items. First: '=': SELF is only read; '+': nothing that was in it goes */
    static const char *const known[][3] = {
        {"append", "+e", "l"}, {"extend", "+s", "l"}, {"insert", "+ke", "l"}, {"pop", "+k", "l"}, {"reverse", "+", "l"}, {"clear", "-", "l"}, {"copy", "=", ""},
        {"get", "=ke", "d"}, {"pop", "-ke", "d"}, {"setdefault", "-ke", "d"}, {"update", "-s", "d"}, {"clear", "-", "d"}, {"__delitem__", "-k", ""},
        {"__setitem__", "-ks", "l"}, {"__mul__", "=k", "l"}, {NULL, NULL, NULL}};
    const int named = call->names ? (int)PyTuple_GET_SIZE(call->names) : 0;
    const char kind = PyList_CheckExact(self) ? 'l' : 'd', *takes;
    struct shadow *all = shadow_new(c, SHADOW_TUPLE, 0), *shadow = NULL;
    PyObject *args[9] = {NULL}, *value;
    OWNED PyObject *word = PyUnicode_InternFromString(method), *given = NULL;
    int row = 0, i = 0;

    while (known[row][0] && (strcmp(known[row][0], method) || (known[row][2][0] && known[row][2][0] != kind)))
        row++;
    takes = known[row][1];
    if (!takes || !all || !word || call->count > 7 || call->count - named > (int)strlen(takes + 1) || (named && takes[1] != 's'))
        return break_at(c, "call", "%.100s.%.100s()", Py_TYPE(self)->tp_name, method);
    if (takes[0] != '=' && (!may_change(c, of, kind == 'l' ? SHADOW_LIST : SHADOW_DICT) || (of->origin && (takes[0] == '-' || named || !call->of))))
        return break_at(c, "mutation", "a %.100s is changed that was not made here", Py_TYPE(self)->tp_name);
    args[0] = numbered(c, all, self, of);
    for (; args[0] && i < call->count; i++) {
        const char what = i < call->count - named ? takes[1 + i] : 'e';
        PyObject *argument = call->args[i];
        if (what == 'k')
            args[1 + i] = (value_is_plain(argument) || PySlice_Check(argument)) && value_known(c, argument, call->shadows[i]) ? Py_NewRef(argument) : NULL;
        else if (what == 's')
            args[1 + i] = numbered(c, all, argument, call->shadows[i]);
        else if (call->shadows[i] && argument != self && (args[1 + i] = PyLong_FromSsize_t(all->count)))
            shadow_add(c, all, NULL, call->shadows[i]);
        if (!args[1 + i])
            break;
    }
    given = args[0] && i == call->count ? PyObject_VectorcallMethod(word, args, (size_t)(1 + call->count - named), call->names) : NULL;
    if (given && takes[0] != '=' && !change(c, of, call->of, NULL, NULL, call->count, call->shadows))
        Py_CLEAR(given);
    value = NULL;
    if (given || (args[0] && i == call->count && PyErr_Occurred())) { /* which raises as well */
        PyErr_Clear();
        value = run_call(call);
    } else {
        i = -1;
    }
    if (given && value && (PyLong_Check(given) || given == Py_None)) {
        shadow = given == Py_None ? shadow_const(c, given) : all->items[PyLong_AsSsize_t(given)];
    } else if (given && value && (shadow = shadow_new(c, PyList_Check(given) ? SHADOW_LIST : SHADOW_DICT, 0))) {
        take_numbers(c, shadow, all, given);
    }
    if (given && value && takes[0] != '=')
        take_numbers(c, of, all, args[0]);
    for (int k = 0; k < 9; k++)
        Py_XDECREF(args[k]);
    if (i < 0)
        return PyErr_Clear(), break_at(c, "call", "%.100s.%.100s() of what is not known", Py_TYPE(self)->tp_name, method);
    return stack_result(c, w, call->slots, value, shadow);
}

/* items(), keys() and values() of a dict. */
static enum ended dict_method(struct capture *c, struct watched *w, const struct call *call, PyObject *dict)
{
    struct shadow *of = call->of->parent, *seen, *shadow;
    const char *name = PyUnicode_AsUTF8(call->of->key);
    const bool keys = !strcmp(name, "keys"), items = !strcmp(name, "items");
    OWNED PyObject *view = NULL;
    PyObject *all;

    if (!keys && !items && strcmp(name, "values"))
        return by_numbers(c, w, call, dict, of, name);
    if (!(seen = dict_shadow(c, dict, of)) || call->count || !(shadow = shadow_new(c, SHADOW_TUPLE, 0)) || !shadow_change(c, of))
        return break_at(c, "call", "dict.%.100s()", name);
    for (Py_ssize_t i = 0; i < seen->count; i++) {
        struct shadow *key = shadow_const(c, seen->keys[i]), *one = keys ? key : seen->items[i];
        if (items && (!(one = shadow_new(c, SHADOW_TUPLE, 2)) || shadow_add(c, one, NULL, key) || shadow_add(c, one, NULL, seen->items[i])))
            return ENDED_BEFORE;
        if (shadow_add(c, shadow, NULL, one))
            return ENDED_BEFORE;
    }
    of->fixed = true;
    view = run_call(call);
    all = view ? PySequence_Tuple(view) : NULL;
    if (!all)
        return ENDED_RAISED;
    shadow = iterator_shadow(c, 0, all, shadow);
    Py_DECREF(all);
    return stack_result(c, w, call->slots, Py_NewRef(view), shadow); /* iterate() knows it */
}

enum ended call_known(struct capture *c, struct watched *w, const struct call *call)
{
    struct shadow *of = call->of;
    PyObject *self = of && of->kind == SHADOW_METHOD && PyCFunction_Check(call->callable) ? PyCFunction_GET_SELF(call->callable) : NULL;

    if (of && of->kind == SHADOW_METHOD && !call->count && !PyMethod_Check(call->callable) && of->parent->kind == SHADOW_SUPER)
        return known_result(c, w, call->slots, run_call(call)); /* object.__init__() */
    if (self && PyList_CheckExact(self) && PyUnicode_AsUTF8(of->key))
        return by_numbers(c, w, call, self, of->parent, PyUnicode_AsUTF8(of->key));
    if (self && PyDict_CheckExact(self))
        return dict_method(c, w, call, self);
    if (self && value_is_simple(self) && value_known(c, self, of->parent) && are_simple(c, call, true))
        return known_result(c, w, call->slots, run_call(call));
    if (of && (of->kind == SHADOW_SOURCE || of->kind == SHADOW_CONST) && (PyCFunction_Check(call->callable) || PyType_Check(call->callable) || call->callable == polyfill("order")) &&
        !is_array_function(call->callable) && value_known(c, call->callable, of))
        return builtin(c, w, call);
    return ENDED_BEFORE;
}
