/* capture/src/inline.c -- step through calls of Python functions. See capture.h.
 *
 * Capture calls the Python function through CPython's C API. When the function's frame begins, the
 * shim passes the frame to capture_step(). If capture cannot step to the end of the function,
 * CPython continues the frame. Capture then removes the function's nodes and effects from the
 * graph, and breaks the graph at the call. */
#include "capture.h"

enum { MOST_INLINES = 24 };

/* Return the shadow of FUNCTION's __defaults__ or, with KEYWORD, of its __kwdefaults__. ALL is the
 * value of this attribute. Returns NULL if the shadow is unknown. */
static struct shadow *find_defaults_shadow(struct capture *c, struct shadow *of, PyObject *all,
                                           bool keyword)
{
    if (!of)
        return NULL;
    if (of->kind == SHADOW_FUNCTION)
        return keyword ? of->function.keyword_defaults : of->function.defaults;
    return source_read_attribute(c, of, keyword ? "__kwdefaults__" : "__defaults__", all);
}

/* Return the shadow of the default of positional parameter NUMBER; NULL if there is none. */
static struct shadow *find_positional_default(struct capture *c, PyFunctionObject *function,
                                              struct shadow *of, int number)
{
    const PyCodeObject *code = (PyCodeObject *)function->func_code;
    PyObject *all = function->func_defaults;
    /* count from the end of __defaults__, because the tuple may be longer in a later call */
    OWNED PyObject *key = PyLong_FromLong(number - code->co_argcount);
    struct shadow *from;
    Py_ssize_t i;

    if (!all || !key)
        return NULL;
    i = number - (code->co_argcount - PyTuple_GET_SIZE(all));
    if (i < 0)
        return NULL;
    from = find_defaults_shadow(c, of, all, false);
    return from ? get_item_shadow(c, all, from, key, PyTuple_GET_ITEM(all, i)) : NULL;
}

/* Return the shadow of the default of keyword-only parameter NAME; NULL if there is none. */
static struct shadow *find_keyword_default(struct capture *c, PyFunctionObject *function,
                                           struct shadow *of, PyObject *name)
{
    PyObject *all = function->func_kwdefaults;
    PyObject *value = all ? PyDict_GetItemWithError(all, name) : NULL;
    struct shadow *from = value ? find_defaults_shadow(c, of, all, true) : NULL;

    return from ? get_item_shadow(c, all, from, name, value) : NULL;
}

/* Return the shadow of the value that parameter NUMBER of FUNCTION has in a call without an
 * argument for it. */
static struct shadow *find_default_shadow(struct capture *c, PyFunctionObject *function,
                                          struct shadow *of, int number)
{
    const PyCodeObject *code = (PyCodeObject *)function->func_code;
    PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, number);
    struct shadow *made;

    if (number < code->co_argcount)
        made = find_positional_default(c, function, of, number);
    else
        made = find_keyword_default(c, function, of, name);
    PyErr_Clear();
    return made;
}

/* Count the parameters, without *args and **kwargs. */
static int count_parameters(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount;
}

/* Return the index of CODE's parameter NAME, or count_parameters() if CODE has no such
 * parameter. */
static int find_parameter(const PyCodeObject *code, PyObject *name)
{
    const int parameters = count_parameters(code);
    int at = code->co_posonlyargcount;

    while (at < parameters &&
           PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, at), name))
        at++;
    return at;
}

/* Bind the arguments of CALL to the parameters of FUNCTION: store a shadow for each parameter in
 * SHADOWS. */
static void bind_arguments(struct capture *c, const struct call *call, PyFunctionObject *function,
                           struct shadow *of, struct shadow **shadows)
{
    const PyCodeObject *code = (const PyCodeObject *)function->func_code;
    const int parameters = count_parameters(code);
    const int positional = call->count - count_names(call);
    struct shadow *more = NULL, *keywords = NULL; /* the shadows of *args and **kwargs */
    int next = parameters;

    if (code->co_flags & CO_VARARGS) {
        more = shadow_new(c, SHADOW_TUPLE, 0);
        shadows[next++] = more;
    }
    if (code->co_flags & CO_VARKEYWORDS) {
        keywords = shadow_new(c, SHADOW_DICT, 0);
        shadows[next++] = keywords;
    }
    for (int i = Py_MIN(positional, code->co_argcount); i < parameters; i++)
        shadows[i] = find_default_shadow(c, function, of, i);
    for (int i = 0; i < positional; i++) {
        if (i < code->co_argcount)
            shadows[i] = call->shadows[i];
        else if (more)
            shadow_add(c, more, NULL, call->shadows[i]);
    }
    for (int i = positional; i < call->count; i++) {
        PyObject *name = PyTuple_GET_ITEM(call->names, i - positional);
        const int at = find_parameter(code, name);

        if (at < parameters)
            shadows[at] = call->shadows[i];
        else if (keywords)
            shadow_add(c, keywords, name, call->shadows[i]);
    }
}

/* Return the shadow of RESULT, which CALL returned after capture stepped through the called
 * function. Returns NULL if the shadow is unknown, or if the operation also ran code other than
 * this function. */
static struct shadow *find_result_shadow(struct capture *c, const struct watched *w,
                                         const struct call *call, PyObject *result)
{
    if (!call->operates && !call->made)
        return c->returned_shadow;
    if (w->unexpected_frame || !c->returned_shadow || c->stepped == Py_NotImplemented)
        return NULL;
    if (call->made)
        return call->made;
    if (c->stepped == result)
        return c->returned_shadow;
    if (value_is_simple(result) && ensure_value_known(c, NULL, c->returned_shadow))
        return shadow_new_const(c, result);
    return NULL;
}

/* Can a generator of CODE be released without running code? It can if CODE has no `try` and no
 * `with`. */
static bool can_generator_die_silently(PyCodeObject *code)
{
    OWNED PyObject *bytes = PyCode_GetCode(code);

    if (!bytes)
        return false;
    return !code_handles_exception(code, (const uint8_t *)PyBytes_AS_STRING(bytes), -1);
}

/* Run CALL, which makes a generator of CODE, and make the generator's shadow. OF is the shadow of
 * the generator function; SHADOWS are the shadows of the first COUNT variables. */
static enum ended call_generator_function(struct capture *c, struct watched *w,
                                          const struct call *call, PyCodeObject *code,
                                          struct shadow *of, struct shadow *const *shadows,
                                          int count)
{
    const Py_ssize_t room = code->co_nlocalsplus + code->co_stacksize + 1;
    struct shadow *made = shadow_new(c, SHADOW_GENERATOR, room);
    PyObject *result;

    if (!made || c->mortal->count || !can_generator_die_silently(code) || call->operates ||
        call->made)
        return break_graph(
            c, "call",
            "a generator that handles exceptions, or may keep what runs code when it dies");
    memcpy(made->items, shadows, sizeof *shadows * (size_t)count);
    made->count = code->co_nlocalsplus;
    made->generator.function = of;
    result = run_call(call);
    if (!result)
        return ENDED_RAISED;
    made->value = capture_keep(c, result);
    if (!PyGen_CheckExact(result) || shadow_add(c, c->generators, NULL, made))
        c->failed = true;
    return stack_replace(c, w, call->slots, result, made);
}

static int count_callers(const struct watched *w)
{
    int depth = 0;

    for (; w; w = w->outer)
        depth++;
    return depth;
}

/* Tell capture_expects_frame() that CALL is about to begin a frame of CODE, through which capture
 * will step. */
static void announce_inner_frame(struct capture *c, struct watched *w, const struct call *call,
                                 PyCodeObject *code, struct shadow *of, struct shadow **shadows,
                                 int count)
{
    c->awaited = shadows;
    c->awaited_count = count;
    c->awaited_code = code;
    c->awaited_function = of;
    c->awaited_call = call->operates ? call : NULL;
    w->unexpected_frame = false;
    c->entered = false;
    c->inner_broke = false;
    c->returned_shadow = NULL;
}

/* Push RESULT, which the called function returned after capture stepped to its end. Returns false
 * if the graph breaks after the call. */
static bool push_stepped_result(struct capture *c, struct watched *w, const struct call *call,
                                const PyFunctionObject *function, PyObject *result)
{
    struct shadow *shadow = find_result_shadow(c, w, call, result);

    if (shadow || (!call->operates && !call->made)) {
        stack_replace(c, w, call->slots, result, shadow);
        return true;
    }
    break_graph(c, "call", "a call of %.100s() that does more than that",
                PyUnicode_AsUTF8(function->func_name));
    c->inner_broke = true;
    return false;
}

/* Has the __next__ through which capture stepped raised StopIteration, without any other effect? */
static bool is_iteration_end(const struct capture *c, const struct watched *w)
{
    if (!c->ends || !c->entered || w->unexpected_frame)
        return false;
    return PyErr_ExceptionMatches(PyExc_StopIteration);
}

enum ended step_through_function(struct capture *c, struct watched *w, const struct call *call,
                                 PyFunctionObject *function, struct shadow *of)
{
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    const int stars = !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
    const int count = count_parameters(code) + stars;
    struct shadow **shadows = capture_allocate(c, sizeof *shadows * (size_t)(count + 1));
    const struct attempt attempt = attempt_begin(c);
    const bool may_end = c->may_end;
    OWNED PyObject *kept_code = NULL, *kept_function = NULL;
    PyObject *result;

    c->may_end = false;
    if (count_callers(w) > MOST_INLINES)
        return break_graph(c, "limit", "calls more than %d deep", MOST_INLINES);
    if (!shadows)
        return break_at_no_memory(c);
    bind_arguments(c, call, function, of, shadows);
    if (code->co_flags & CO_GENERATOR)
        return call_generator_function(c, w, call, code, of, shadows, count);
    announce_inner_frame(c, w, call, code, of, shadows, count);
    /* hold references: during the call the program may set the function's __code__, which frees
     * CODE */
    kept_code = Py_NewRef((PyObject *)code);
    kept_function = Py_NewRef((PyObject *)function);
    result = run_call(call);
    c->awaited_code = NULL;
    if (c->entered && !c->inner_broke && result &&
        push_stepped_result(c, w, call, function, result))
        return ENDED_NOT;
    if (may_end && !result && is_iteration_end(c, w))
        /* keep the graph nodes and effects of the __next__, because capture knows that the iterator
         * ended */
        return ENDED_RAISED;
    attempt_undo(c, &attempt);
    if (!c->inner_broke)
        break_graph(c, "call", "a call that did not begin as it was expected to");
    /* treat an exception of a polyfill as raised by the instruction itself: see
     * does_raise_to_caller() */
    c->inner_broke = result || !compat_are_frames_hidden(code);
    if (!result)
        return ENDED_RAISED;
    stack_replace(c, w, call->slots, result, NULL);
    return ENDED_BEHIND;
}

/* Add guards on the globals and builtins of FUNCTION, because can_step_through() guards only the
 * code. */
static bool guard_globals_of_function(struct capture *c, PyFunctionObject *function,
                                      struct shadow *of)
{
    const struct {
        const char *name;
        PyObject *value;
    } parts[] = {{"__globals__", function->func_globals},
                 {"__builtins__", function->func_builtins}};

    for (size_t i = 0; i < Py_ARRAY_LENGTH(parts); i++) {
        struct shadow *part = source_read_attribute(c, of, parts[i].name, parts[i].value);

        if (!part || guard_add(c, part, "ID_MATCH", parts[i].value))
            return false;
    }
    return true;
}

static bool can_step_through_code(const PyCodeObject *code)
{
    const int needed = CO_OPTIMIZED | CO_NEWLOCALS;
    const int refused = CO_COROUTINE | CO_ASYNC_GENERATOR;

    return (code->co_flags & (needed | refused)) == needed;
}

bool can_step_through(struct capture *c, PyObject *function, struct shadow *of)
{
    PyCodeObject *code;
    struct shadow *source;
    bool is_known;

    if (!of || !PyFunction_Check(function))
        return false;
    code = (PyCodeObject *)((PyFunctionObject *)function)->func_code;
    if (!can_step_through_code(code))
        return false;
    if (of->kind == SHADOW_FUNCTION) /* the program may have set the function's __code__ */
        return !of->function.code || of->function.code == (PyObject *)code;
    if (of->kind != SHADOW_SOURCE)
        return false;
    if (is_nested(function))
        is_known = ensure_type_known(c, function, of);
    else
        is_known = ensure_value_known(c, function, of);
    source = is_known ? source_read_attribute(c, of, "__code__", (PyObject *)code) : NULL;
    if (!source)
        return false;
    if (source->source.guarded == GUARDED_VALUE)
        return !c->failed;
    guard_add(c, of, "CLOSURE_MATCH", function);
    if (of->source.guarded == GUARDED_TYPE &&
        !guard_globals_of_function(c, (PyFunctionObject *)function, of))
        return false;
    source->source.guarded = GUARDED_VALUE;
    return !c->failed;
}

/* May VALUE be an argument of a polyfill? If VALUE is an iterator, capture must know its position.
 * ITERATED: the polyfill iterates over VALUE, so VALUE must be iterable; otherwise the error
 * message of the polyfill would differ from that of CPython. */
static bool can_pass_to_polyfill(PyObject *value, const struct shadow *of, bool iterated)
{
    if (iterated && !Py_TYPE(value)->tp_iter && !PySequence_Check(value))
        return false;
    if (!PyIter_Check(value))
        return true;
    return is_kind(of, SHADOW_ITERATOR) || is_kind(of, SHADOW_GENERATOR);
}

enum ended step_through_polyfill(struct capture *c, struct watched *w, const char *name,
                                 const struct call *call)
{
    PyObject *function = get_polyfill(name);
    PyObject *iterated = get_table_entry("iterated", name);
    const int from = iterated ? (int)PyLong_AsLong(iterated) : -1;
    struct shadow *of;
    struct call instead = *call;

    for (int i = 0; i < call->count; i++)
        if (!can_pass_to_polyfill(call->args[i], call->shadows[i], i == from))
            return break_graph(c, "container", "a loop over a %.200s",
                               Py_TYPE(call->args[i])->tp_name);
    of = shadow_new(c, SHADOW_FUNCTION, 0);
    if (!function || !of || !get_polyfill("order"))
        return ENDED_BEFORE;
    of->function.defaults = shadow_new_const(c, PyFunction_GET_DEFAULTS(function));
    of->function.keyword_defaults = shadow_new_const(c, PyFunction_GET_KW_DEFAULTS(function));
    instead.callable = function;
    instead.of = of;
    return step_through_function(c, w, &instead, (PyFunctionObject *)function, of);
}
