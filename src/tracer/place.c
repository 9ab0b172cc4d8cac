/* tracer/place.c -- how the running interpreter takes part in the recording.
 *
 * A process has one recording, however many interpreters it has; docs/internals.md lists what each
 * interpreter has for itself. The home is the main interpreter as it was first initialised;
 * sub-interpreters are recorded, too, if the index of their code data is the same. */
#include "tracer/hooks.h"

#define P tracer_process

/* Indices of code data that were requested before ours come first in each code object's data, so
 * that CPython calls their free functions for whatever we mark (tracer/compat/cpython.h): not with
 * NULL, which it promises. */
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

static Py_ssize_t request_extra(PyInterpreterState *interpreter)
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

/* Request the same index as in the other interpreters. False: it is taken here. */
static bool request_same_extra(void)
{
    Py_ssize_t index;

    do
        index = compat_request_extra(NULL); /* a mark needs no free function */
    while (index >= 0 && index < P.extra);
    return index == P.extra;
}

static enum tracer_place place_new(PyInterpreterState *interpreter)
{
    if (P.interpreter) {
        P.interpreters = true;
        if (!request_same_extra())
            return PLACE_NONE;
        if (interpreter != PyInterpreterState_Main())
            return PLACE_SUB;
        /* Its references to us went with the former main interpreter. */
        P.hook = NULL;
        P.evaluate = _PyEval_EvalFrameDefault;
        P.torch_seen = true; /* torch is not touched */
        P.active_threads = 0;
        tracer_forget_callbacks();
        if (tracer_hooks.home_gone)
            tracer_hooks.home_gone();
        return PLACE_AGAIN;
    }
    if (interpreter != PyInterpreterState_Main())
        return PLACE_NONE; /* the main interpreter has not met us: record nothing */
    P.interpreter = interpreter;
    P.extra = request_extra(interpreter);
    return P.extra < 0 ? PLACE_NONE : PLACE_HOME;
}

/* A new interpreter may reuse an old one's address, so each stores its place itself. */
enum tracer_place tracer_place(void)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    PyObject *dict = PyInterpreterState_GetDict(interpreter), *known; /* borrowed */
    enum tracer_place place = PLACE_NONE;

    known = dict ? PyDict_GetItemString(dict, "dyntrace") : NULL;
    if (known)
        return (enum tracer_place)PyLong_AsLong(known);
    if (dict)
        place = place_new(interpreter);
    known = PyLong_FromLong(place);
    if (!dict || !known || PyDict_SetItemString(dict, "dyntrace", known))
        PyErr_Clear();
    Py_XDECREF(known);
    return place;
}
