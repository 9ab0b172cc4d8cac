/* tracer/place.c -- how the running interpreter takes part in the recording.
 *
 * A process has one recording, however many interpreters it has; docs/internals.md lists what each
 * interpreter has for itself. The home is the main interpreter as it was first initialised;
 * sub-interpreters are recorded, too, if we get the same code-extra index there
 * (PyUnstable_Eval_RequestCodeExtraIndex; our messages call it "code data").
 *
 * Without a GIL only the main interpreter has a place. It gets the place when it imports the
 * module, which CPython does in one thread. */
#include "tracer/hooks.h"

#define P tracer_process

/* The free functions of those code-extra indices that were requested before ours. When we set our
 * slot in a code object, the slots of these indices get NULL, and CPython would call their free
 * functions with this NULL (tracer/compat/cpython.h), although its documentation says that it does
 * not. So wrappers call them only for other values. */
static freefunc earlier[8];
#define FREE_EARLIER(n)                       \
    static void free_earlier_##n(void *value) \
    {                                         \
        if (value)                            \
            earlier[n](value);                \
    }
/* clang-format off */
FREE_EARLIER(0) FREE_EARLIER(1) FREE_EARLIER(2) FREE_EARLIER(3)
FREE_EARLIER(4) FREE_EARLIER(5) FREE_EARLIER(6) FREE_EARLIER(7)
/* clang-format on */

static Py_ssize_t request_code_extra_index(PyInterpreterState *interpreter)
{
    static const freefunc not_null[] = {free_earlier_0, free_earlier_1, free_earlier_2,
                                        free_earlier_3, free_earlier_4, free_earlier_5,
                                        free_earlier_6, free_earlier_7};
    Py_ssize_t ours = compat_request_extra(tracer_hooks.code_freed);

    for (int i = 0; i < ours && i < 8; i++) {
        earlier[i] = interpreter->co_extra_freefuncs[i];
        if (earlier[i])
            interpreter->co_extra_freefuncs[i] = not_null[i];
    }
    return ours;
}

/* Request code-extra indices in this interpreter until we get the index that we have in the others.
 * Returns false if another extension has it here. */
static bool request_same_code_extra_index(void)
{
    Py_ssize_t index;

    do
        index = compat_request_extra(NULL); /* NULL, because a mark needs no free function */
    while (index >= 0 && index < P.extra);
    return index == P.extra;
}

static enum tracer_place find_place_of_new_interpreter(PyInterpreterState *interpreter)
{
    if (P.interpreter) {
        P.interpreters = true;
        if (COMPAT_FREE_THREADED && interpreter != P.interpreter)
            return PLACE_NONE; /* because world_stop() stops only the threads of one interpreter */
        if (!request_same_code_extra_index())
            return PLACE_NONE;
        if (interpreter != PyInterpreterState_Main())
            return PLACE_SUB;
        /* The main interpreter was made anew; the references that the former one had to our objects
         * are gone. */
        P.hook = NULL;
        P.evaluate = _PyEval_EvalFrameDefault;
        P.torch_seen = true; /* torch cannot use the shim here, so do not wait for its import */
        P.active_threads = 0;
        tracer_forget_callbacks();
        if (tracer_hooks.home_gone)
            tracer_hooks.home_gone();
        return PLACE_AGAIN;
    }
    if (interpreter != PyInterpreterState_Main()) {
        P.interpreters = true;
        return PLACE_NONE; /* record nothing, because the main interpreter has not loaded us */
    }
    P.interpreter = interpreter;
    P.interpreters |= COMPAT_FREE_THREADED;
    P.extra = request_code_extra_index(interpreter);
    return P.extra < 0 ? PLACE_NONE : PLACE_HOME;
}

/* The place is kept in the interpreter's own dict, because a new interpreter may get the address of
 * one that is gone. */
enum tracer_place tracer_place(void)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    PyObject *dict = PyInterpreterState_GetDict(interpreter), *known; /* borrowed */
    enum tracer_place place = PLACE_NONE;

    known = dict ? PyDict_GetItemString(dict, "dyntrace") : NULL;
    if (known)
        return (enum tracer_place)PyLong_AsLong(known);
    if (dict)
        place = find_place_of_new_interpreter(interpreter);
    known = PyLong_FromLong(place);
    if (!dict || !known || PyDict_SetItemString(dict, "dyntrace", known))
        PyErr_Clear();
    Py_XDECREF(known);
    return place;
}
