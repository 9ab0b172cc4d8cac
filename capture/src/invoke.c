/* capture/src/invoke.c -- calls: of array functions and methods, which become nodes, and of
 * functions that are stepped. See capture.h.
 *
 * A function that is stepped is called as CPython would call it, and its frame comes back to the
 * evaluator (capture_step). If it cannot be stepped to its end, CPython goes on in it, what the
 * graph got of it is taken back, and the call is a break. */
#include "capture.h"

enum { MOST_INLINES = 24, MOST_ARGUMENTS = 256 };

static bool is_of(const char *name, const char *package)
{
    size_t length = strlen(package);

    return !strncmp(name, package, length) && (name[length] == '.' || !name[length]);
}

bool is_array_package(const char *name)
{
    return name && (is_of(name, "numpy") || is_of(name, "torch"));
}

bool is_array_function(PyObject *callable)
{
    PyObject *module = NULL,
             *self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : NULL;
    const PyTypeObject *type =
        PyType_Check(callable) ? (PyTypeObject *)callable : Py_TYPE(callable);
    const char *name;

    if (PyFunction_Check(callable))
        module = ((PyFunctionObject *)callable)->func_module;
    else if (PyCFunction_Check(callable))
        module = ((PyCFunctionObject *)callable)->m_module;
    else if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
        return is_array_package(PyDescr_TYPE(callable)->tp_name);
    else if (PyType_Check(callable) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return is_array_package(type->tp_name);
    else
        module = _PyType_Lookup(Py_TYPE(callable), word_of("__module__"));
    if (self && !PyModule_Check(self) &&
        is_array_package(PyType_Check(self) ? ((PyTypeObject *)self)->tp_name
                                            : Py_TYPE(self)->tp_name))
        return true;
    name = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
    PyErr_Clear();
    /* a layer */
    return name && (PyFunction_Check(callable) || PyCFunction_Check(callable)
                        ? is_array_package(name)
                        : is_of(name, "torch.nn.modules"));
}

/* What CALLABLE is called, for a reason: in TEXT. */
static const char *name_of(PyObject *callable, char *text, size_t room)
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

/* ---- operations ---- */

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

PyObject *run_call(const struct call *call)
{
    PyObject *turned[] = {call->reflected ? call->args[1] : NULL, call->args[0]};
    const Py_ssize_t positional =
        call->count - (call->names ? PyTuple_GET_SIZE(call->names) : 0) - call->bound;

    return PyObject_Vectorcall(call->callable, call->reflected ? turned : call->args + call->bound,
                               (size_t)positional, call->names);
}

struct call with_self(const struct call *call, PyObject *self, struct shadow *of_self)
{
    struct call made = *call;

    made.args--;
    made.shadows--;
    made.count++;
    made.args[0] = self;
    made.shadows[0] = of_self;
    made.bound = true;
    return made;
}

static enum ended unknown_argument(struct capture *c, const struct call *call)
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
    return module && PyUnicode_CheckExact(module) && is_of(PyUnicode_AsUTF8(module), "numpy");
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

static enum ended array_method(struct capture *c, struct watched *w, const struct call *call,
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

static enum ended array_function(struct capture *c, struct watched *w, const struct call *call)
{
    OWNED PyObject *name = PyObject_GetAttr(call->callable, word_of("__name__"));
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;

    PyErr_Clear();
    return array_call(c, w, call, text ? text : "");
}

/* ---- functions that are stepped ---- */

/* What FUNCTION has for argument NUMBER if it is not given. */
static struct shadow *defaulted(struct capture *c, PyFunctionObject *function, struct shadow *of,
                                int number)
{
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    const bool keyword = number >= code->co_argcount;
    PyObject *all = keyword ? function->func_kwdefaults : function->func_defaults,
             *name = PyTuple_GET_ITEM(code->co_localsplusnames, number);
    const Py_ssize_t i = all && !keyword ? number - (code->co_argcount - PyTuple_GET_SIZE(all)) : 0;
    /* from the end: there may be more at a hit */
    OWNED PyObject *key = keyword ? Py_NewRef(name) : PyLong_FromLong(number - code->co_argcount);
    PyObject *value = !all || i < 0 ? NULL
                      : keyword     ? PyDict_GetItemWithError(all, name)
                                    : PyTuple_GET_ITEM(all, i);
    struct shadow *from =
        !value || !of ? NULL
        : of->kind != SHADOW_FUNCTION
            ? source_attribute(c, of, keyword ? "__kwdefaults__" : "__defaults__", all)
        : keyword ? of->function.keyword_defaults
                  : of->function.defaults;

    PyErr_Clear();
    return from && key ? value_part(c, all, from, key, value) : NULL;
}

/* The SHADOWS of FUNCTION's first variables as CALL gives them. */
static void bind(struct capture *c, const struct call *call, PyFunctionObject *function,
                 struct shadow *of, struct shadow **shadows)
{
    const PyCodeObject *code = (const PyCodeObject *)function->func_code;
    const int arguments = code->co_argcount + code->co_kwonlyargcount,
              named = call->names ? (int)PyTuple_GET_SIZE(call->names) : 0;
    const int positional = call->count - named, several = !!(code->co_flags & CO_VARARGS);
    struct shadow *more = several ? shadows[arguments] = shadow_new(c, SHADOW_TUPLE, 0) : NULL;
    struct shadow *keywords = code->co_flags & CO_VARKEYWORDS
                                  ? shadows[arguments + several] = shadow_new(c, SHADOW_DICT, 0)
                                  : NULL;

    for (int i = Py_MIN(positional, code->co_argcount); i < arguments; i++)
        shadows[i] = defaulted(c, function, of, i);
    for (int i = 0; i < call->count; i++) {
        PyObject *name = i < positional ? NULL : PyTuple_GET_ITEM(call->names, i - positional);
        int at = name ? code->co_posonlyargcount : i;
        while (name && at < arguments &&
               PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, at), name))
            at++;
        if (at < (name ? arguments : code->co_argcount))
            shadows[at] = call->shadows[i];
        else if (name ? keywords : more)
            shadow_add(c, name ? keywords : more, name, call->shadows[i]);
    }
}

struct attempt attempt_begin(const struct capture *c)
{
    return (struct attempt){PyList_GET_SIZE(c->nodes), c->number_nodes, c->effects->count, c->undo};
}

void attempt_undo(struct capture *c, const struct attempt *attempt)
{
    struct tracer_exception pending = tracer_exception_aside();

    if (PyList_SetSlice(c->nodes, attempt->nodes, PyList_GET_SIZE(c->nodes), NULL) ||
        PyList_SetSlice(c->places, attempt->nodes, PyList_GET_SIZE(c->places), NULL))
        c->failed = true;
    shadows_back(c, attempt->undo);
    c->effects->count = attempt->effects;
    c->number_nodes = attempt->number_nodes;
    tracer_exception_back(&pending);
}

/* CALL, in which a function was stepped, gave RESULT: the shadow of that. NULL: it is not known, or
 * more has run than that function. */
static struct shadow *shadow_of_result(struct capture *c, const struct watched *w,
                                       const struct call *call, PyObject *result)
{
    if (!call->operates && !call->made)
        return c->returned_shadow;
    if (w->unseen || !c->returned_shadow || c->stepped == Py_NotImplemented)
        return NULL;
    if (call->made || c->stepped == result)
        return call->made ? call->made : c->returned_shadow;
    return value_is_simple(result) && value_known(c, NULL, c->returned_shadow)
               ? shadow_const(c, result)
               : NULL;
}

/* A call of OF makes a generator of CODE, whose first COUNT variables have SHADOWS. Not one that
 * has something to do when it dies. */
static enum ended generator_made(struct capture *c, struct watched *w, const struct call *call,
                                 PyCodeObject *code, struct shadow *of,
                                 struct shadow *const *shadows, int count)
{
    struct shadow *made =
        shadow_new(c, SHADOW_GENERATOR, code->co_nlocalsplus + code->co_stacksize + 1);
    OWNED PyObject *bytes = PyCode_GetCode(code);
    PyObject *result;

    if (!made || !bytes || c->mortal->count ||
        code_handles(code, (const uint8_t *)PyBytes_AS_STRING(bytes), -1) || call->operates ||
        call->made)
        return break_at(
            c, "call",
            "a generator that handles exceptions, or may keep what runs code when it dies");
    memcpy(made->items, shadows, sizeof *shadows * (size_t)count);
    made->count = code->co_nlocalsplus;
    made->generator.function = of;
    result = run_call(call);
    made->value = result ? capture_keep(c, result) : NULL;
    if (result && (!PyGen_CheckExact(result) || shadow_add(c, c->generators, NULL, made)))
        c->failed = true;
    return stack_result(c, w, call->slots, result, made);
}

enum ended inlined(struct capture *c, struct watched *w, const struct call *call,
                   PyFunctionObject *function, struct shadow *of)
{
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    const int flags = code->co_flags, all = code->co_argcount + code->co_kwonlyargcount +
                                            !!(flags & CO_VARARGS) + !!(flags & CO_VARKEYWORDS);
    struct shadow **shadows = capture_room(c, sizeof *shadows * (size_t)(all + 1));
    const struct attempt attempt = attempt_begin(c);
    const bool may_end = c->may_end;
    OWNED PyObject *kept = NULL;
    struct shadow *shadow;
    PyObject *result;
    int depth = 0;

    c->may_end = false;
    for (const struct watched *at = w; at; at = at->outer)
        depth++;
    if (depth > MOST_INLINES)
        return break_at(c, "limit", "calls more than %d deep", MOST_INLINES);
    if (!shadows)
        return no_memory_at(c);
    bind(c, call, function, of, shadows);
    if (flags & CO_GENERATOR)
        return generator_made(c, w, call, code, of, shadows, all);
    c->awaited = shadows;
    c->awaited_count = all;
    c->awaited_code = code;
    c->awaited_function = of;
    c->awaited_call = call->operates ? call : NULL;
    w->unseen = false;
    c->entered = c->inner_broke = false;
    c->returned_shadow = NULL;
    /* the program may give the function other code, and CODE's place to that */
    kept = Py_NewRef((PyObject *)code);
    Py_INCREF(function);
    result = run_call(call);
    Py_DECREF(function);
    c->awaited_code = NULL;
    if (c->entered && !c->inner_broke && result) {
        shadow = shadow_of_result(c, w, call, result);
        if (shadow || !(call->operates || call->made))
            return stack_result(c, w, call->slots, result, shadow);
        break_at(c, "call", "a call of %.100s() that does more than that",
                 PyUnicode_AsUTF8(function->func_name));
        c->inner_broke = true;
    }
    if (may_end && !result && c->ends && c->entered && !w->unseen &&
        PyErr_ExceptionMatches(PyExc_StopIteration))
        return ENDED_RAISED; /* known, and so is what has been done before */
    attempt_undo(c, &attempt);
    if (!c->inner_broke)
        break_at(c, "call", "a call that did not begin as it was expected to");
    /* a builtin that is done in Python raises as an instruction does */
    c->inner_broke = result || !compat_hides(code);
    if (!result)
        return ENDED_RAISED;
    stack_result(c, w, call->slots, result, NULL);
    return ENDED_BEHIND;
}

/* Can a call of FUNCTION be stepped? Its source, OF, is guarded then. */
bool can_step(struct capture *c, PyObject *function, struct shadow *of)
{
    const int needed = CO_OPTIMIZED | CO_NEWLOCALS, refused = CO_COROUTINE | CO_ASYNC_GENERATOR;
    PyCodeObject *code;
    struct shadow *source;

    if (!PyFunction_Check(function) || !of)
        return false;
    code = (PyCodeObject *)((PyFunctionObject *)function)->func_code;
    if ((code->co_flags & (needed | refused)) != needed)
        return false;
    if (of->kind == SHADOW_FUNCTION) /* its code can be set */
        return !of->function.code || of->function.code == (PyObject *)code;
    if (of->kind != SHADOW_SOURCE ||
        !(is_nested(function) ? value_type_known(c, function, of) : value_known(c, function, of)) ||
        !(source = source_attribute(c, of, "__code__", (PyObject *)code)))
        return false;
    if (!source->source.guarded)
        guard_on(c, of, "CLOSURE_MATCH", function);
    /* the code says what it does, with these */
    for (int i = 0; i < 2 && of->source.guarded == GUARDED_TYPE && !source->source.guarded; i++) {
        PyObject *value = i ? ((PyFunctionObject *)function)->func_builtins
                            : ((PyFunctionObject *)function)->func_globals;
        struct shadow *part = source_attribute(c, of, i ? "__builtins__" : "__globals__", value);
        if (!part || guard_on(c, part, "ID_MATCH", value))
            return false;
    }
    source->source.guarded = GUARDED_VALUE;
    return !c->failed;
}

/* ---- the call ---- */

/* Number of W's free variable that is variable CELL as well, as in a resume function; or -1. */
static int find_free(const struct watched *w, int cell)
{
    PyObject *names = w->code->co_localsplusnames;

    if (!(_PyLocals_GetKind(w->code->co_localspluskinds, cell) & CO_FAST_CELL))
        return -1;
    for (int i = w->variables - w->code->co_nfreevars; i < w->variables; i++)
        if (PyTuple_GET_ITEM(names, i) == PyTuple_GET_ITEM(names, cell))
            return i;
    return -1;
}

/* A resume function puts its own things in place: those are what it begins with. */
static enum ended enter(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *result;

    for (int i = 0; i < w->variables; i++) {
        const int free = find_free(w, i);
        if (free >= 0)
            w->shadow[i] = w->shadow[free];
    }
    result = run_call(call);
    watched_put(w);
    for (int i = 0; i < w->variables; i++)
        if (!compat_local(w->frame, i))
            w->shadow[i] = NULL;
    for (int i = 0; i < w->depth - call->slots; i++)
        if (!compat_local(w->frame, w->variables + i))
            w->shadow[w->variables + i] = &shadow_of_null;
    c->begun |= result && !w->outer;
    if (c->begun && !w->outer)
        memcpy(c->initial, w->shadow, sizeof *c->initial * (size_t)w->variables);
    return stack_result(c, w, call->slots, result, result ? shadow_const(c, result) : NULL);
}

/* The shadow of CALLABLE, a method with its object, of which OF is the source: what it is follows
 * from its name or function, and its object. NULL: it is not known. */
static struct shadow *bound_shadow(struct capture *c, PyObject *callable, struct shadow *of)
{
    const bool is_builtin = PyCFunction_CheckExact(callable);
    PyObject *self = is_builtin ? PyCFunction_GET_SELF(callable) : NULL, *function;
    struct shadow *of_self, *of_function;
    OWNED PyObject *name = NULL;

    if (!is_builtin && !Py_IS_TYPE(callable, &PyMethod_Type))
        return NULL;
    if (!is_builtin)
        self = PyMethod_GET_SELF(callable);
    else if (!value_is_array(self)) /* a list's length would be guarded, and it may grow */
        return NULL;
    if (guard_on(c, of, "TYPE_MATCH", (PyObject *)Py_TYPE(callable)) ||
        !(of_self = source_attribute(c, of, "__self__", self)))
        return NULL;
    if (is_builtin) {
        name = PyUnicode_InternFromString(((PyCFunctionObject *)callable)->m_ml->ml_name);
        of_function = name ? source_attribute(c, of, "__name__", name) : NULL;
        return of_function && value_known(c, name, of_function)
                   ? method_of(c, of_self, name, NULL, NULL, NULL)
                   : NULL;
    }
    function = PyMethod_GET_FUNCTION(callable);
    of_function = source_attribute(c, of, "__func__", function);
    return of_function && PyFunction_Check(function)
               ? method_of(c, of_self, ((PyFunctionObject *)function)->func_name, function,
                           of_function, of_self)
               : NULL;
}

static enum ended dispatch(struct capture *c, struct watched *w, const struct call *call)
{
    struct call bound;
    PyObject *callable = call->callable;
    struct shadow *of = call->of;
    struct shadow *method = callable && of && of->kind == SHADOW_SOURCE &&
                                    value_is_bound(callable) &&
                                    !(w->resumed && PyCFunction_CheckExact(callable) &&
                                      PyCFunction_GET_SELF(callable) == shim->link_of(w->code))
                                ? bound_shadow(c, callable, of)
                                : NULL;
    PyObject *self = callable && (method || (of && of->kind == SHADOW_METHOD))
                         ? PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable)
                           : PyMethod_Check(callable)  ? PyMethod_GET_SELF(callable)
                                                       : NULL
                         : NULL;
    char text[120];
    struct call whole;
    enum ended ended;

    if (!callable)
        return break_at(c, "call", "a call of nothing");
    if (method) {
        bound = *call;
        call = &bound;
        of = bound.of = method;
    }
    if (w->resumed && PyCFunction_CheckExact(callable) &&
        PyCFunction_GET_SELF(callable) == shim->link_of(w->code))
        return enter(c, w, call);
    if (self && !of->value &&
        (of->method.owner->kind == SHADOW_NODE || of->method.owner->kind == SHADOW_SOURCE) &&
        is_graph(self, of->method.owner))
        return array_method(c, w, call, self);
    if (self && of->value && PyMethod_Check(callable) &&
        can_step(c, of->value, of->method.source)) {
        whole = with_self(call, self, of->method.bound);
        return inlined(c, w, &whole, (PyFunctionObject *)of->value, of->method.source);
    }
    if (of && of->kind == SHADOW_FUNCTION && can_step(c, callable, of))
        return inlined(c, w, call, (PyFunctionObject *)callable, of);
    if (of && (of->kind == SHADOW_SOURCE || of->kind == SHADOW_CONST) &&
        is_array_function(callable)) {
        if (!value_known(c, callable, of))
            return unknown_argument(c, call);
        return array_function(c, w, call);
    }
    if (of && of->kind == SHADOW_SOURCE && can_step(c, callable, of))
        return inlined(c, w, call, (PyFunctionObject *)callable, of);
    c->kind = NULL;
    whole = with_self(call, callable, of);
    if (of &&
        ((ended = PyType_Check(callable) ? construct(c, w, call)
                                         : special(c, w, "__call__", &whole)) != ENDED_BEFORE ||
         c->kind))
        return ended;
    if ((ended = call_known(c, w, call)) != ENDED_BEFORE || c->kind)
        return ended;
    PyErr_Clear();
    return break_at(c,
                    PyCFunction_CheckExact(callable) &&
                            ((PyCFunctionObject *)callable)->m_ml == capture_methods
                        ? "asked"
                        : "call",
                    "a call of %.100s()", name_of(callable, text, sizeof text));
}

enum ended invoke(struct capture *c, struct watched *w, int count, PyObject *names, bool on_top)
{
    PyObject *values[MOST_ARGUMENTS + 2];
    struct shadow *shadows[MOST_ARGUMENTS + 2];
    struct call call = {.args = values + 2,
                        .shadows = shadows + 2,
                        .names = names,
                        .slots = count + 2 + on_top,
                        .count = count};
    const int base = call.slots - 1;
    PyObject *pair[2];

    if (count > MOST_ARGUMENTS - 1)
        return break_at(c, "call", "a call with %d arguments", count);
    for (int i = 0; i < count; i++) {
        call.args[i] = stack_value(w, base - 2 - i);
        call.shadows[i] = stack_shadow(w, base - 2 - i);
    }
    pair[0] = stack_value(w, base);
    pair[1] = stack_value(w, base - 1);
    if (COMPAT_CALLABLE_FIRST || pair[0]) {
        call.callable = pair[0];
        call.of = stack_shadow(w, base);
        if (pair[1]) { /* self: of an unbound method */
            call = with_self(&call, pair[1], stack_shadow(w, base - 1));
            call.bound = false;
        }
    } else {
        call.callable = pair[1];
        call.of = stack_shadow(w, base - 1);
    }
    return dispatch(c, w, &call);
}

enum ended invoke_variable(struct capture *c, struct watched *w, bool keywords)
{
    PyObject *tuple = stack_value(w, keywords ? 1 : 0), *dict = keywords ? stack_value(w, 0) : NULL;
    struct shadow *of = stack_shadow(w, keywords ? 1 : 0),
                  *of_dict = keywords ? stack_shadow(w, 0) : NULL;
    const int base = keywords ? 3 : 2, at = COMPAT_CALLABLE_FIRST ? base : base - 1;
    PyObject *values[MOST_ARGUMENTS + 1];
    struct shadow *shadows[MOST_ARGUMENTS + 1];
    const Py_ssize_t count = PyTuple_CheckExact(tuple) ? PyTuple_GET_SIZE(tuple) : -1,
                     named = dict && PyDict_CheckExact(dict) && of_dict ? of_dict->count : 0;
    OWNED PyObject *names = named ? PySequence_Tuple(dict) : NULL,
                   *held = named ? PyDict_Values(dict) : PyList_New(0);
    struct call call = {.callable = stack_value(w, at),
                        .of = stack_shadow(w, at),
                        .slots = base + 1,
                        .args = values + 1,
                        .shadows = shadows + 1,
                        .names = names,
                        .count = (int)(count + named)};

    if (count < 0 || count + named > MOST_ARGUMENTS || !value_type_known(c, tuple, of) ||
        stack_value(w, COMPAT_CALLABLE_FIRST ? base - 1 : base) ||
        (dict && (!of_dict || of_dict->kind != SHADOW_DICT || !PyDict_CheckExact(dict) ||
                  PyDict_GET_SIZE(dict) != named)))
        return PyErr_Clear(), break_at(c, "call", "a call with *arguments that are not known");
    if (!held || (named && !names) || PyList_SetSlice(held, 0, 0, tuple))
        return no_memory_at(c);
    for (Py_ssize_t i = 0; i < count + named; i++) {
        if (i >= count && !PyUnicode_CheckExact(PyTuple_GET_ITEM(names, i - count)))
            return break_at(c, "call", "a call with **keywords that are not known");
        call.args[i] = PyList_GET_ITEM(held, i);
        call.shadows[i] = i < count ? value_item(c, tuple, of, i) : of_dict->items[i - count];
    }
    return dispatch(c, w, &call);
}
