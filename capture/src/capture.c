/* capture/src/capture.c -- one watched call, from its start to the compiled code. See capture.h.
 *
 * finish() in dyntrace._assemble makes the compiled code, the graph and the guards, and calls the
 * backend. */
#include "capture.h"

#include "clock.h"

enum {
    /* the most variables of a captured function: capture's time grows with the square of their
     * number */
    MOST_VARIABLES = 10000
};

/* ---- whether a call is watched ---- */

static bool is_array_package_name(PyObject *name)
{
    bool is;

    if (!name || !PyUnicode_Check(name))
        return false;
    is = is_array_package(PyUnicode_AsUTF8(name));
    PyErr_Clear();
    return is;
}

/* Is an attribute of OBJECT an array? If CPython has not yet created the __dict__ of OBJECT, this
 * does not create it either, since the program could notice. */
static bool object_has_array(PyObject *object)
{
    PyObject **values = compat_get_inline_values(object);
    PyObject *dict;

    if (!values) {
        dict = compat_get_existing_dict(object);
        return dict && PyDict_CheckExact(dict) && value_has_array(dict, 2);
    }
    for (Py_ssize_t i = compat_count_inline_values(Py_TYPE(object)); i--;)
        if (values[i] && value_has_array(values[i], 1))
            return true;
    return false;
}

static bool variables_have_array(compat_frame *frame)
{
    for (int i = 0; i < compat_get_code(frame)->co_nlocalsplus; i++) {
        PyObject *value = compat_get_local(frame, i);

        if (value && (value_has_array(value, 3) || object_has_array(value)))
            return true;
    }
    return false;
}

static bool closure_has_array(PyObject *closure)
{
    for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); i++) {
        PyObject *value = compat_cell_content(PyTuple_GET_ITEM(closure, i));

        if (value && value_has_array(value, 2))
            return true;
    }
    return false;
}

/* Is the global VALUE an array, a function of numpy or torch, or the module numpy or torch? */
static bool is_array_global(PyObject *value)
{
    if (PyModule_CheckExact(value))
        return is_array_package_name(PyDict_GetItemString(PyModule_GetDict(value), "__name__"));
    return value_is_array(value) || is_array_function(value);
}

/* Does CODE use a global that is_array_global() accepts? */
static bool does_code_use_array_globals(const PyCodeObject *code, PyObject *globals)
{
    if (!PyDict_CheckExact(globals))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_names, i);
        PyObject *value = PyDict_GetItemWithError(globals, name);

        if (value && is_array_global(value))
            return true;
    }
    PyErr_Clear();
    return false;
}

/* Does FRAME's function get arrays, or use functions that make arrays? An attribute of an argument
 * counts like an argument. */
static bool does_function_use_arrays(compat_frame *frame)
{
    if (variables_have_array(frame))
        return true;
    if (closure_has_array(compat_get_function(frame)->func_closure))
        return true;
    return does_code_use_array_globals(compat_get_code(frame), frame->f_globals);
}

/* ---- a capture from start to end ---- */

static void close_capture(struct capture *c)
{
    for (int i = 0; i < CAPTURE_LISTS; i++)
        Py_XDECREF(c->lists[i]);
    Py_XDECREF(c->stack);
    Py_XDECREF(c->closure);
    if (c->arena)
        _PyArena_Free(c->arena);
}

static bool open_capture(struct capture *c, PyThreadState *ts, PyObject *callback,
                         compat_frame *frame)
{
    struct shadow **const roots[] = {&c->locals, &c->globals, &c->builtins, &c->modules};
    struct shadow **const tuples[] = {&c->taken, &c->mortal, &c->effects, &c->generators};
    const size_t variables = (size_t)compat_get_code(frame)->co_nlocalsplus;

    *c = (struct capture){.ts = ts, .callback = callback, .arena = _PyArena_New()};
    for (int i = 0; i < CAPTURE_LISTS; i++) {
        c->lists[i] = PyList_New(0);
        if (!c->lists[i])
            c->failed = true;
    }
    if (!c->arena)
        return false;
    for (int i = 0; i < 4; i++) {
        *tuples[i] = shadow_new(c, SHADOW_TUPLE, 0);
        *roots[i] = shadow_new(c, SHADOW_SOURCE, 0);
        if (*roots[i])
            (*roots[i])->source.step = "LGBS"[i];
    }
    if (c->failed)
        return false;
    c->globals->value = capture_keep(c, frame->f_globals);
    c->initial = capture_allocate(c, sizeof *c->initial * (variables + 1));
    c->first = capture_allocate(c, sizeof *c->first * (variables + 1));
    return c->initial && c->first && !c->failed;
}

/* Make the shadow of variable I of W. VALUE is the variable's value when the watched call
 * begins. */
static struct shadow *make_variable_shadow(struct capture *c, const struct watched *w, int i,
                                           PyObject *value)
{
    PyObject *name = PyTuple_GET_ITEM(w->code->co_localsplusnames, i);

    if (value == shim->unbound)
        return shadow_new_const(c, value);
    return source_read(c, c->locals, 'l', name, value);
}

/* Count the variables in c->mortal whose value is VALUE. */
static Py_ssize_t count_mortal_variables(const struct capture *c, const PyObject *value)
{
    Py_ssize_t count = 0;

    for (Py_ssize_t i = 0; i < c->mortal->count; i++)
        if (c->mortal->items[i]->value == value)
            count++;
    return count;
}

/* Make the shadows of all variables that have a value when the watched call begins: the arguments.
 * Returns false if a shadow cannot be made. */
static bool make_initial_shadows(struct capture *c, struct watched *w)
{
    w->globals = c->globals;
    w->resumed = shim->link_of(w->code) != NULL;
    for (int i = 0; i < w->variables; i++) {
        PyObject *value = compat_get_local(w->frame, i);

        if (value) {
            w->shadow[i] = make_variable_shadow(c, w, i, value);
            if (!w->shadow[i])
                return false;
        }
        c->first[i] = w->shadow[i];
        c->initial[i] = w->shadow[i];
        if (value && !value_can_die_quietly(value) && shadow_add(c, c->mortal, NULL, w->shadow[i]))
            return false;
    }
    for (Py_ssize_t i = 0; i < c->mortal->count; i++) {
        struct shadow *one = c->mortal->items[i];

        one->source.references = count_mortal_variables(c, one->value);
    }
    c->closure = Py_XNewRef(compat_get_function(w->frame)->func_closure);
    return true;
}

/* Restore W's frame to its state before the call was watched. */
static void restore_frame(struct capture *c, struct watched *w)
{
    stack_drop(w, w->depth);
    for (int i = 0; i < w->variables; i++) {
        PyObject *old = compat_take_local(w->frame, i);
        PyObject *value = c->first[i] ? Py_NewRef(c->first[i]->value) : NULL;

        compat_store_local(w->frame, i, value);
        Py_XDECREF(old);
    }
    if (w->resumed && c->begun &&
        shim->link_prepare_to_enter_again(compat_get_function(w->frame), c->closure) < 0)
        c->failed = true;
    compat_prepare_to_continue(w->frame, 0, w->variables);
}

/* Decode REASON. It was cut at a fixed length, perhaps in the middle of a character. */
static PyObject *decode_reason(const char *reason)
{
    return PyUnicode_DecodeUTF8(reason, (Py_ssize_t)strlen(reason), "replace");
}

/* Needs ONE a guard that it exists? ONE is an attribute, or an item of a dict, that was read from
 * OF and has no guard yet. If it did not exist, a later call would raise or take another path. */
static bool does_need_presence_guard(const struct shadow *one, const struct shadow *of)
{
    if (one->kind != SHADOW_SOURCE || one->source.guarded || !one->value)
        return false;
    if (one->source.step == '.')
        return true;
    return one->source.step == '[' && of->value && PyDict_CheckExact(of->value);
}

static void guard_presence_of_unused(struct capture *c, struct shadow *of)
{
    for (struct shadow *one = of->source.child; one; one = one->source.next) {
        const char *kind = one->source.step == '.' ? "HASATTR" : "DICT_CONTAINS";

        if (one->source.child)
            guard_presence_of_unused(c, one);
        else if (does_need_presence_guard(one, of))
            guard_add(c, of, kind, one->source.key);
    }
}

/* Does a variable of W, whose function returns, hold a new value whose death the program may
 * observe? When a function returns, CPython releases the variables in order. So the compiled code
 * must store such a value in its variable. */
static bool has_dying_variable(struct capture *c, const struct watched *w)
{
    for (int i = 0; i < w->variables; i++) {
        PyObject *value = compat_get_local(w->frame, i);

        if (value && PyCell_Check(value))
            value = PyCell_GET(value);
        if (value && w->shadow[i] != c->initial[i] && !value_can_die_quietly(value))
            return true;
    }
    return false;
}

/* The arguments of dyntrace._assemble.finish(), borrowed. */
struct finishing {
    PyThreadState *ts;
    PyObject *finish, *every, *record; /* may be NULL */
};

static PyObject *call_finish_in_python(void *data)
{
    const struct finishing *given = data;
    static PyObject *module;
    PyObject *function = NULL;
    PyObject *result;

    compat_uncount(given->ts, OWN_CALLS);
    if (given->record)
        function = find_module_attribute(&module, "dyntrace._assemble", "finish");
    if (function)
        result = PyObject_CallFunctionObjArgs(function, given->finish, given->every, given->record,
                                              NULL);
    else
        result = decode_reason("code for it could not be made");
    compat_uncount(given->ts, -OWN_CALLS);
    return result;
}

/* Describe the graph break as a tuple (kind, reason, offset, call stack). Returns None if the
 * function returns and the graph does not break. */
static PyObject *describe_break(const struct capture *c, const struct watched *w, bool returns)
{
    if (returns)
        return Py_NewRef(Py_None);
    return Py_BuildValue("(sNiO)", c->kind, decode_reason(c->reason), 2 * w->group,
                         c->stack ? c->stack : Py_None);
}

/* Describe the variables and the stack that the compiled code must produce (see
 * describe_plan_state()). Returns None if W's function returns and the program cannot observe the
 * death of its variables. */
static PyObject *describe_state(struct capture *c, const struct watched *w, bool returns)
{
    struct shadow *const *stack = w->shadow + w->variables + w->code->co_stacksize;

    if (returns && !has_dying_variable(c, w))
        return Py_NewRef(Py_None);
    return describe_plan_state(c, w, stack, w->before);
}

/* Make the record for finish() in dyntrace._assemble: a new dict, or NULL. The docstrings of
 * finish() in dyntrace.capture, of Plan and of _Assembly list its items. */
static PyObject *make_record_for_finish(struct capture *c, struct watched *w, enum ended ended,
                                        PyObject *plan, uint64_t began, PyObject *frame_state)
{
    const bool returns = ended == ENDED_RETURN;
    /* call describe_state() before get_plan_part(), as describe_plan_state() demands */
    OWNED PyObject *state = describe_state(c, w, returns);
    OWNED PyObject *broke = describe_break(c, w, returns);
    PyObject *returned = Py_False;

    if (!broke || !state)
        return NULL;
    if (c->returned_shadow)
        returned = get_plan_part(c, c->returned_shadow);
    /* clang-format off */
    return Py_BuildValue(
        "{s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:K,s:O,s:O,s:N,s:N,s:O,s:O,s:i,s:i,s:i,s:i,s:i,s:i,s:i}",
        "code", w->code,
        "placeholders", c->placeholders,
        "nodes", c->nodes,
        "inputs", c->inputs,
        "guards", c->guards,
        "places", c->places,
        "break", broke,
        "plan", plan,
        "began", began,
        "frame_state", frame_state,
        "dynamic", PyTuple_GET_ITEM(c->callback, CAPTURE_DYNAMIC),
        "taken", make_plan_parts(c, c->taken->count, c->taken->items),
        "effects", make_plan_parts(c, c->effects->count, c->effects->items),
        "returned", returned,
        "state", state,
        "shapes_read", c->shapes_read,
        "group", w->group,
        "unit", w->unit,
        "begun", c->begun,
        "handled", c->handled,
        "again", c->attempted,
        "make_bool", c->make_bool && ended == ENDED_BEFORE);
    /* clang-format on */
}

/* Call finish() in dyntrace._assemble. Returns a tuple (GuardedCode, values for the first run); or
 * a str, the reason why the call gets no compiled code; or NULL with an exception. */
static PyObject *compile_by_finish(struct capture *c, struct watched *w, enum ended ended,
                                   PyObject *plan, uint64_t began, PyObject *frame_state)
{
    OWNED PyObject *record = make_record_for_finish(c, w, ended, plan, began, frame_state);
    struct finishing finishing = {c->ts, PyTuple_GET_ITEM(c->callback, CAPTURE_FINISH),
                                  PyTuple_GET_ITEM(c->callback, CAPTURE_EVERY), record};

    PyErr_Clear();
    return shim->quietly(call_finish_in_python, &finishing);
}

static void set_answer_without_code(struct watched_answer *answer, const char *why, bool for_code)
{
    *answer = (struct watched_answer){.reason = decode_reason(why), .for_code = for_code};
    PyErr_Clear();
}

/* Does an instruction of W itself raise an exception that reaches W's caller? Then capture discards
 * the graph and watches the next call again. If instead a function that W calls raises, the graph
 * breaks. */
static bool does_raise_to_caller(const struct capture *c, const struct watched *w, enum ended ended)
{
    const bool is_raise = w->op == RAISE_VARARGS || w->op == RERAISE;

    if (ended == ENDED_RETURN)
        return false;
    if (!is_raise && (ended != ENDED_RAISED || c->inner_broke))
        return false;
    return !code_handles_exception(w->code, w->bytes, w->unit);
}

/* Does the function need no compiled code, because it has no operation on arrays? If CAPTURE_EVERY
 * is None, every function gets compiled code. */
static bool does_function_need_no_code(const struct capture *c, enum ended ended)
{
    if (ended != ENDED_RETURN || PyList_GET_SIZE(c->nodes) != c->number_nodes)
        return false;
    return PyTuple_GET_ITEM(c->callback, CAPTURE_EVERY) != Py_None;
}

/* Prepare *REST so that the compiled code runs from its start, in place of W's frame. */
static void prepare_compiled_run(struct capture *c, struct watched *w, PyObject *plan,
                                 PyObject *made, struct watched_rest *rest)
{
    rest->plan = Py_NewRef(plan);
    rest->values = Py_NewRef(PyTuple_GET_ITEM(made, 1));
    rest->original = w->frame;
    restore_frame(c, w);
}

/* Compile the watched call of W, and prepare W's frame to continue. Returns -1 with an exception of
 * finish() or of a signal handler; W's frame is then restored. */
static int compile_watched_call(struct capture *c, struct watched *w, enum ended ended,
                                uint64_t began, PyObject *frame_state,
                                struct watched_answer *answer, struct watched_rest *rest)
{
    struct tracer_exception raised = {0};
    OWNED PyObject *made = NULL, *plan = NULL;

    if (ended == ENDED_RAISED)
        raised = tracer_put_exception_aside();
    PyErr_Clear();
    *answer = (struct watched_answer){0};
    if (does_raise_to_caller(c, w, ended))
        c->failed = true;
    guard_presence_of_unused(c, c->locals);
    guard_presence_of_unused(c, c->globals);
    if (c->failed) {
        set_answer_without_code(answer, c->kind && !strcmp(c->kind, "raised") ? c->reason : "",
                                false);
    } else if (does_function_need_no_code(c, ended)) {
        set_answer_without_code(answer, "it has no operation on arrays", true);
    } else {
        plan = plan_new("graph");
        made = plan ? compile_by_finish(c, w, ended, plan, began, frame_state) : NULL;
        if (!made) {
            tracer_drop_exception(&raised);
            restore_frame(c, w);
            return -1;
        }
        if (PyTuple_Check(made))
            answer->guarded = Py_NewRef(PyTuple_GET_ITEM(made, 0));
        else
            set_answer_without_code(answer, PyUnicode_AsUTF8(made), true);
    }
    PyErr_Clear();
    if (answer->guarded && ended == ENDED_BEFORE) {
        prepare_compiled_run(c, w, plan, made, rest);
        return 0;
    }
    rest->on = true;
    if (ended == ENDED_RAISED)
        tracer_restore_exception(&raised);
    rest->throws = hand_frame_to_cpython(c, w, ended, &rest->pending);
    return 0;
}

/* Return the reason why calls of FRAME's code are never watched, or NULL if they may be watched. */
static const char *find_reason_never_to_watch(compat_frame *frame, PyObject *callback)
{
    PyCodeObject *code = compat_get_code(frame);

    if (compat_are_frames_hidden(code))
        return "it is ours";
    if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
        return "it is a generator or coroutine";
    if (~code->co_flags & (CO_OPTIMIZED | CO_NEWLOCALS))
        return "its variables lie in a mapping: it is a module, a class body or the like";
    if (PyTuple_GET_ITEM(callback, CAPTURE_EVERY) == Py_True && !shim->is_users(code))
        return "";
    if (PyDict_CheckExact(frame->f_globals) &&
        is_array_package_name(PyDict_GetItemString(frame->f_globals, "__name__")))
        return "it is numpy's or torch's own";
    return code->co_nlocalsplus > MOST_VARIABLES ? "it has too many variables" : NULL;
}

/* Return the reason why this call is not watched, or NULL if it is watched. Sets *FOR_CODE if the
 * reason holds for all calls of the code object. */
static const char *find_reason_not_to_watch(PyThreadState *ts, compat_frame *frame,
                                            PyObject *callback, bool *for_code)
{
    const char *why;

    *for_code = false;
    if (compat_is_finalizing()) /* sys.modules may be gone while the interpreter exits */
        return "";
    register_array_types();
    why = find_reason_never_to_watch(frame, callback);
    *for_code = why != NULL;
    if (why)
        return why;
    if (compat_is_thread_traced(ts))
        return "";
    if (PyTuple_GET_ITEM(callback, CAPTURE_EVERY) != Py_None && !does_function_use_arrays(frame))
        return "";
    return NULL;
}

bool capture_refuses(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                     struct watched_answer *answer)
{
    bool for_code;
    const char *why = find_reason_not_to_watch(ts, frame, callback, &for_code);

    /* import dyntrace._polyfills before the function runs: the builtins of the function's frame may
     * lack __import__ */
    if (!why && get_polyfill("end"))
        return false;
    set_answer_without_code(answer, why ? why : "", for_code);
    return true;
}

/* Set c->numbers and c->sizes to the integers and sizes that earlier captures of this code had.
 * Leaves both NULL if integers may not be inputs of the graph. */
static void load_numbers_of_earlier_captures(struct capture *c, PyObject *frame_state)
{
    OWNED PyObject *numbers = NULL;

    if (PyTuple_GET_ITEM(c->callback, CAPTURE_DYNAMIC) == Py_False || !numbers_may_vary())
        return;
    if (PyDict_CheckExact(frame_state))
        numbers = PyObject_CallMethod(frame_state, "setdefault", "s{}", "numbers");
    if (numbers && PyDict_CheckExact(numbers)) {
        c->numbers = capture_keep(c, numbers);
        c->sizes = PyDict_GetItemString(frame_state, "sizes");
    }
    PyErr_Clear();
}

int capture_call(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest)
{
    const uint64_t began = clock_monotonic_ns();
    struct capture *around;
    struct capture c;
    struct watched w;
    enum ended ended;
    int status;

    if (!open_capture(&c, ts, callback, frame) || watched_begin_frame(&c, &w, frame)) {
        set_answer_without_code(answer, "", false);
        close_capture(&c);
        PyErr_Clear();
        return 0;
    }
    load_numbers_of_earlier_captures(&c, frame_state);
    around = shim->set_watching(ts, &c);
    if (!make_initial_shadows(&c, &w))
        c.failed = true;
    ended = watch_frame(&c, &w);
    shim->set_watching(ts, around);
    status = compile_watched_call(&c, &w, ended, began, frame_state, answer, rest);
    watched_end_frame(&c, &w);
    close_capture(&c);
    return status;
}
