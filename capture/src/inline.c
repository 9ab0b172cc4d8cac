/* capture/src/inline.c -- calls of Python functions that are stepped. See capture.h.
 *
 * The function is called as CPython would call it, and its frame comes back to the
 * evaluator (capture_step). If it cannot be stepped to its end, CPython goes on in it, what the
 * graph got of it is taken back, and the call is a break. */
#include "capture.h"

enum { MOST_INLINES = 24 };

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

enum ended step_polyfill(struct capture *c, struct watched *w, const char *name,
                         const struct call *call)
{
    const int from = !strcmp(name, "_unpack")                               ? 0
                     : !strcmp(name, "_extend") || !strcmp(name, "_reduce") ? 1
                                                                            : -1;
    PyObject *function = polyfill(name);
    struct call instead = *call;

    for (int i = 0; i < call->count; i++)
        /* CPython has words of its own for that */
        if ((i == from && !Py_TYPE(call->args[i])->tp_iter && !PySequence_Check(call->args[i])) ||
            (PyIter_Check(call->args[i]) &&
             !(call->shadows[i] && (call->shadows[i]->kind == SHADOW_ITERATOR ||
                                    call->shadows[i]->kind == SHADOW_GENERATOR))))
            return break_at(c, "container", "a loop over a %.200s",
                            Py_TYPE(call->args[i])->tp_name);
    if (!function || !polyfill("order") || !(instead.of = shadow_new(c, SHADOW_FUNCTION, 0)))
        return ENDED_BEFORE;
    instead.callable = function;
    instead.of->function.defaults = shadow_const(c, PyFunction_GET_DEFAULTS(function));
    instead.of->function.keyword_defaults = shadow_const(c, PyFunction_GET_KW_DEFAULTS(function));
    return inlined(c, w, &instead, (PyFunctionObject *)function, instead.of);
}
