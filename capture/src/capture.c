/* capture/src/capture.c -- dyntrace.compile: a call that missed is watched, and what becomes of
 * that. See capture.h.
 *
 * The record of a run goes to finish() (dyntrace._assemble, dyntrace.capture): code, graph,
 * backend, guards. */
#include "capture.h"

#include "clock.h"

enum { MOST_VARIABLES = 10000 /* each is looked for among the others */ };

/* ---- is it worth while? ---- */

static bool is_package(PyObject *name)
{
    bool is = name && PyUnicode_Check(name) && is_array_package(PyUnicode_AsUTF8(name));

    PyErr_Clear();
    return is;
}

/* Has OBJECT an array among its attributes? Its dict is not made: the program would see it. */
static bool object_has_array(PyObject *object)
{
    PyObject **values = compat_inline_values(object),
             *dict = values ? NULL : compat_made_dict(object);

    for (Py_ssize_t i = values ? compat_inline_count(Py_TYPE(object)) : 0; i--;)
        if (values[i] && value_has_array(values[i], 1))
            return true;
    return dict && PyDict_CheckExact(dict) && value_has_array(dict, 2);
}

/* Does FRAME's function get arrays, or name what makes them? An object may have some among its
 * attributes. */
static bool has_arrays(compat_frame *frame)
{
    PyCodeObject *code = compat_code(frame);
    PyObject *closure = compat_function(frame)->func_closure;

    for (int i = 0; i < code->co_nlocalsplus; i++) {
        PyObject *value = compat_local(frame, i);
        if (value && (value_has_array(value, 3) || object_has_array(value)))
            return true;
    }
    for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); i++) {
        PyObject *value = compat_cell_content(PyTuple_GET_ITEM(closure, i));
        if (value && value_has_array(value, 2))
            return true;
    }
    if (!PyDict_CheckExact(frame->f_globals))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); i++) {
        PyObject *value =
            PyDict_GetItemWithError(frame->f_globals, PyTuple_GET_ITEM(code->co_names, i));
        if (value && (PyModule_CheckExact(value)
                          ? is_package(PyDict_GetItemString(PyModule_GetDict(value), "__name__"))
                          : value_is_array(value) || is_array_function(value)))
            return true;
    }
    PyErr_Clear();
    return false;
}

/* ---- a capture ---- */

static void capture_close(struct capture *c)
{
    for (int i = 0; i < CAPTURE_LISTS; i++)
        Py_XDECREF(c->lists[i]);
    Py_XDECREF(c->stack);
    Py_XDECREF(c->closure);
    if (c->arena)
        _PyArena_Free(c->arena);
}

static bool capture_open(struct capture *c, PyThreadState *ts, PyObject *callback,
                         compat_frame *frame)
{
    struct shadow **const roots[] = {&c->locals, &c->globals, &c->builtins, &c->modules};
    struct shadow **const tuples[] = {&c->taken, &c->mortal, &c->effects, &c->generators};

    *c = (struct capture){.ts = ts, .callback = callback, .arena = _PyArena_New()};
    for (int i = 0; i < CAPTURE_LISTS; i++)
        c->failed |= !(c->lists[i] = PyList_New(0));
    if (!c->arena)
        return false;
    for (int i = 0; i < 4; i++) {
        *tuples[i] = shadow_new(c, SHADOW_TUPLE, 0);
        if ((*roots[i] = shadow_new(c, SHADOW_SOURCE, 0)))
            (*roots[i])->source.step = "LGBS"[i];
    }
    if (c->failed)
        return false;
    c->globals->value = capture_keep(c, frame->f_globals);
    c->initial =
        capture_room(c, sizeof *c->initial * (size_t)(compat_code(frame)->co_nlocalsplus + 1));
    c->first = capture_room(c, sizeof *c->first * (size_t)(compat_code(frame)->co_nlocalsplus + 1));
    return c->initial && c->first && !c->failed;
}

/* The arguments, and what a resume function has when it has been entered. */
static bool begin(struct capture *c, struct watched *w)
{
    w->globals = c->globals;
    w->resumed = shim->link_of(w->code) != NULL;
    for (int i = 0; i < w->variables; i++) {
        PyObject *value = compat_local(w->frame, i);
        if (value &&
            !(w->shadow[i] =
                  value == shim->unbound
                      ? shadow_const(c, value)
                      : source_read(c, c->locals, 'l',
                                    PyTuple_GET_ITEM(w->code->co_localsplusnames, i), value)))
            return false;
        c->initial[i] = c->first[i] = w->shadow[i];
        if (value && !value_dies_quietly(value) && shadow_add(c, c->mortal, NULL, w->shadow[i]))
            return false;
    }
    for (Py_ssize_t i = 0; i < c->mortal->count; i++)
        c->mortal->items[i]->source.references = 0;
    for (Py_ssize_t i = 0; i < c->mortal->count; i++)
        for (Py_ssize_t j = 0; j < c->mortal->count; j++)
            c->mortal->items[i]->source.references +=
                c->mortal->items[i]->value == c->mortal->items[j]->value;
    c->closure = Py_XNewRef(compat_function(w->frame)->func_closure);
    return true;
}

/* The frame of W as it was before it was watched. */
static void restore(struct capture *c, struct watched *w)
{
    stack_drop(w, w->depth);
    for (int i = 0; i < w->variables; i++) {
        PyObject *old = compat_take_local(w->frame, i);
        compat_give_local(w->frame, i, c->first[i] ? Py_NewRef(c->first[i]->value) : NULL);
        Py_XDECREF(old);
    }
    if (w->resumed && c->begun)
        c->failed |= shim->link_enter_again(compat_function(w->frame), c->closure) < 0;
    compat_go_on(w->frame, 0, w->variables);
}

/* A reason, in which a long name may end in the middle of a letter. */
static PyObject *reason_text(const char *reason)
{
    return PyUnicode_DecodeUTF8(reason, (Py_ssize_t)strlen(reason), "replace");
}

/* What was read behind OF, and is not guarded for what it was, must be there again: the program
 * would raise, or do something else. */
static void guard_unused(struct capture *c, struct shadow *of)
{
    for (struct shadow *one = of->source.child; one; one = one->source.next)
        if (one->source.child)
            guard_unused(c, one);
        else if (one->kind == SHADOW_SOURCE && !one->source.guarded && one->value &&
                 (one->source.step == '.' ||
                  (one->source.step == '[' && of->value && PyDict_CheckExact(of->value))))
            guard_on(c, of, one->source.step == '.' ? "HASATTR" : "DICT_CONTAINS", one->source.key);
}

/* Does one of the variables of W, which returns, have what is not quiet when it dies, and did not
 * have it when W began? They die in their order, and behind all else: the code stores them. */
static bool dies_with(struct capture *c, const struct watched *w)
{
    for (int i = 0; i < w->variables; i++) {
        PyObject *value = compat_local(w->frame, i);

        if (value && PyCell_Check(value))
            value = PyCell_GET(value);
        if (value && w->shadow[i] != c->initial[i] && !value_dies_quietly(value))
            return true;
    }
    return false;
}

/* The arguments of dyntrace._assemble.finish(), borrowed. */
struct finishing {
    PyThreadState *ts;
    PyObject *finish, *every, *record; /* record: or NULL */
};

static PyObject *call_finish(void *data)
{
    const struct finishing *given = data;
    static PyObject *module;
    PyObject *function = NULL;
    PyObject *result;

    compat_uncount(given->ts, OWN_CALLS);
    if (given->record)
        function = module_has(&module, "dyntrace._assemble", "finish");
    if (function)
        result = PyObject_CallFunctionObjArgs(function, given->finish, given->every, given->record,
                                              NULL);
    else
        result = reason_text("code for it could not be made");
    compat_uncount(given->ts, -OWN_CALLS);
    return result;
}

/* See finish() in dyntrace._assemble, and in dyntrace.capture what the record is: (GuardedCode,
 * values for the first run), or why it is skipped. */
static PyObject *finish(struct capture *c, struct watched *w, enum ended ended, PyObject *plan,
                        uint64_t began, PyObject *frame_state)
{
    PyObject *const finish = PyTuple_GET_ITEM(c->callback, CAPTURE_FINISH), *const every =
                                                                                PyTuple_GET_ITEM(
                                                                                    c->callback,
                                                                                    CAPTURE_EVERY);
    const bool returns = ended == ENDED_RETURN;
    /* as the instruction began */
    struct shadow *const *stack = w->shadow + w->variables + w->code->co_stacksize;
    OWNED PyObject *state =
        returns && !dies_with(c, w) ? Py_NewRef(Py_None) : plan_state(c, w, stack, w->before);
    OWNED PyObject *broke = returns ? Py_NewRef(Py_None)
                                    : Py_BuildValue("(sNiO)", c->kind, reason_text(c->reason),
                                                    2 * w->group, c->stack ? c->stack : Py_None);
    OWNED PyObject *record =
        !broke || !state
            ? NULL
            : Py_BuildValue("{s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:K,s:O,s:O,s:N,s:N,s:O,s:O,s:i,s:i,"
                            "s:i,s:i,s:i,s:i,s:i}",
                            "code", w->code, "placeholders", c->placeholders, "nodes", c->nodes,
                            "inputs", c->inputs, "guards", c->guards, "places", c->places, "break",
                            broke, "plan", plan, "began", began, "frame_state", frame_state,
                            "dynamic", PyTuple_GET_ITEM(c->callback, CAPTURE_DYNAMIC), "taken",
                            plan_parts(c, c->taken->count, c->taken->items), "effects",
                            plan_parts(c, c->effects->count, c->effects->items), "returned",
                            c->returned_shadow ? plan_part(c, c->returned_shadow) : Py_False,
                            "state", state, "shapes_read", c->shapes_read, "group", w->group,
                            "unit", w->unit, "begun", c->begun, "handled", c->handled, "again",
                            c->attempted, "make_bool", c->make_bool && ended == ENDED_BEFORE);
    struct finishing finishing = {c->ts, finish, every, record};

    PyErr_Clear();
    return shim->quietly(call_finish, &finishing);
}

static void skip(struct watched_answer *answer, const char *why, bool for_code)
{
    *answer = (struct watched_answer){.reason = reason_text(why), .for_code = for_code};
    PyErr_Clear();
}

/* W has been watched. -1: an exception, of finish() or a signal's handler; then and in every case
 * the frame is in order. */
static int conclude(struct capture *c, struct watched *w, enum ended ended, uint64_t began,
                    PyObject *frame_state, struct watched_answer *answer, struct watched_rest *rest)
{
    struct tracer_exception raised =
        ended == ENDED_RAISED ? tracer_exception_aside() : (struct tracer_exception){0};
    const bool idle = ended == ENDED_RETURN && PyList_GET_SIZE(c->nodes) == c->number_nodes &&
                      PyTuple_GET_ITEM(c->callback, CAPTURE_EVERY) != Py_None;
    OWNED PyObject *made = NULL, *plan = NULL;

    PyErr_Clear();
    *answer = (struct watched_answer){0};
    /* What its caller sees raised leaves nothing: the next call that comes there is watched as
     * well. But by a call: that is a break. */
    c->failed |= ((ended == ENDED_RAISED && !c->inner_broke) || w->op == RAISE_VARARGS ||
                  w->op == RERAISE) &&
                 ended != ENDED_RETURN && !code_handles(w->code, w->bytes, w->unit);
    guard_unused(c, c->locals);
    guard_unused(c, c->globals);
    if (c->failed)
        skip(answer, c->kind && !strcmp(c->kind, "raised") ? c->reason : "", false);
    else if (idle)
        skip(answer, "it has no operation on arrays", true);
    else if (!(plan = plan_new("graph")) ||
             !(made = finish(c, w, ended, plan, began, frame_state))) {
        tracer_exception_drop(&raised);
        restore(c, w);
        return -1;
    } else if (PyTuple_Check(made))
        answer->guarded = Py_NewRef(PyTuple_GET_ITEM(made, 0));
    else
        skip(answer, PyUnicode_AsUTF8(made), true);
    PyErr_Clear();
    if (answer->guarded && ended == ENDED_BEFORE) {
        rest->plan = Py_NewRef(plan);
        rest->values = Py_NewRef(PyTuple_GET_ITEM(made, 1));
        rest->original = w->frame;
        restore(c, w);
        return 0;
    }
    rest->on = true;
    if (ended == ENDED_RAISED)
        tracer_exception_back(&raised);
    rest->throws = hand_over(c, w, ended, &rest->pending);
    return 0;
}

/* Why a call in FRAME is not watched; NULL: it is. FOR_CODE: nor is any other of that code. */
static const char *why_not(PyThreadState *ts, compat_frame *frame, PyObject *callback,
                           bool *for_code)
{
    const int flags = compat_code(frame)->co_flags;

    *for_code = false;
    if (compat_is_finalizing()) /* sys.modules may be gone */
        return "";
    values_begin();
    *for_code = true;
    if (compat_hides(compat_code(frame)))
        return "it is ours";
    if (flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
        return "it is a generator or coroutine";
    if (~flags & (CO_OPTIMIZED | CO_NEWLOCALS))
        return "its variables lie in a mapping: it is a module, a class body or the like";
    if (PyTuple_GET_ITEM(callback, CAPTURE_EVERY) == Py_True && !shim->is_users(compat_code(frame)))
        return "";
    if (PyDict_CheckExact(frame->f_globals) &&
        is_package(PyDict_GetItemString(frame->f_globals, "__name__")))
        return "it is numpy's or torch's own";
    if (compat_code(frame)->co_nlocalsplus > MOST_VARIABLES)
        return "it has too many variables";
    *for_code = false;
    return compat_is_traced(ts) ||
                   (PyTuple_GET_ITEM(callback, CAPTURE_EVERY) != Py_None && !has_arrays(frame))
               ? ""
               : NULL;
}

bool capture_refuses(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                     struct watched_answer *answer)
{
    bool for_code;
    const char *why = why_not(ts, frame, callback, &for_code);

    if (!why && polyfill("end")) /* imported here: the function may have no builtins for that */
        return false;
    skip(answer, why ? why : "", for_code);
    return true;
}

int capture_call(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest)
{
    OWNED PyObject *numbers = NULL;
    const uint64_t began = clock_monotonic_ns();
    struct capture *around;
    struct capture c;
    struct watched w;
    enum ended ended;
    int status;

    if (!capture_open(&c, ts, callback, frame) || watched_open(&c, &w, frame)) {
        skip(answer, "", false);
        capture_close(&c);
        PyErr_Clear();
        return 0;
    }
    numbers = PyDict_CheckExact(frame_state)
                  ? PyObject_CallMethod(frame_state, "setdefault", "s{}", "numbers")
                  : NULL;
    c.numbers = numbers && PyDict_CheckExact(numbers) &&
                        PyTuple_GET_ITEM(callback, CAPTURE_DYNAMIC) != Py_False &&
                        numbers_may_vary()
                    ? numbers
                    : NULL;
    c.sizes = c.numbers ? PyDict_GetItemString(frame_state, "sizes") : NULL;
    PyErr_Clear();
    around = shim->set_watching(ts, &c);
    if (!begin(&c, &w))
        c.failed = true;
    ended = watch(&c, &w);
    shim->set_watching(ts, around);
    status = conclude(&c, &w, ended, began, frame_state, answer, rest);
    watched_close(&c, &w);
    capture_close(&c);
    return status;
}
