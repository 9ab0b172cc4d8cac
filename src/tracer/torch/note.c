/* tracer/torch/note.c -- what the bridge to torch notes of a compile, as facts; and functions of its round torch's.
 *
 * Runs in: the traced process, under the GIL.
 *
 * python/dyntrace/_torch_notes.py puts numbers and texts together. Nothing here raises: a note that cannot be made is
 * left out, or, where a reader would miss it, a loss row. */
#include "tracer/torch/torch.h"
#include "tracer/values.h"

#include <string.h>

#define P tracer_process

enum { TOTAL_MAX = 16 << 20 }; /* bytes of all texts in a process: they lie in its memory */

/* note(name, numbers, texts): the fact NAME of facts.h, its members in their order, texts as bytes. */
static PyObject *note(PyObject *module, PyObject *args)
{
    static const char *const names[FACT_KINDS] = {
#define X(number, NAME, ...) [number] = #NAME,
        FACTS(X)
#undef X
    };
    static size_t total;
    PyObject *numbers, *texts;
    union fact_any fact;
    struct fact_text *text;
    const char *name;
    size_t bytes = 0;
    int kind = 0;

    if (PyArg_ParseTuple(args, "sO!O!", &name, &PyTuple_Type, &numbers, &PyTuple_Type, &texts))
        for (kind = FACT_KINDS - 1; kind && strcmp(names[kind], name) != 0;)
            kind--;
    if (!kind || PyTuple_GET_SIZE(numbers) != fact_shapes[kind].numbers ||
        PyTuple_GET_SIZE(texts) != fact_shapes[kind].texts)
        goto wrong;
    for (int i = 0; i < fact_shapes[kind].numbers; i++)
        fact.numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i));
    text = (struct fact_text *)(fact.numbers + fact_shapes[kind].numbers);
    for (int i = 0; i < fact_shapes[kind].texts; i++) {
        if (!PyBytes_Check(PyTuple_GET_ITEM(texts, i)))
            goto wrong;
        text[i] = (struct fact_text){PyBytes_AS_STRING(PyTuple_GET_ITEM(texts, i)),
                                     (uint64_t)PyBytes_GET_SIZE(PyTuple_GET_ITEM(texts, i))};
        bytes += text[i].bytes;
    }
    if (PyErr_Occurred())
        goto wrong;
    total += bytes;
    if (total <= TOTAL_MAX)
        tracer_put_fact((enum fact_kind)kind, &fact);
    else if (total - bytes <= TOTAL_MAX) /* once */
        tracer_loss("texts of compiles (listings, graphs, breaks) left out: more than 16 MB in this process");
    Py_RETURN_NONE;
wrong:
    torch_bridge_failed("a note");
    Py_RETURN_NONE;
}

static PyObject *note_loss(PyObject *module, PyObject *words)
{
    const char *text = PyUnicode_Check(words) ? PyUnicode_AsUTF8(words) : NULL;

    PyErr_Clear();
    tracer_loss(text ? text : "");
    Py_RETURN_NONE;
}

/* The trace's id of CODE; -1: it is not recorded, or none. */
static PyObject *code_id(PyObject *module, PyObject *code)
{
    const uintptr_t mark = PyCode_Check(code) && P.session ? tracer_mark_code((PyCodeObject *)code) : CODE_SKIP;

    return PyLong_FromLongLong(mark & CODE_SKIP ? -1 : (long long)(mark >> CODE_SHIFT));
}

static PyObject *kept(PyObject *module, PyObject *none)
{
    static const char *const words[] = {"all", "types", "off"};
    enum session_values values = values_kept();

    return PyUnicode_FromString(words[values > SESSION_VALUES_OFF ? SESSION_VALUES_OFF : values]);
}

/* OURS(*ARGS, **KWARGS), which the program's trace functions do not see. NULL: it failed, and that is noted. */
static PyObject *call_quietly(PyObject *ours, PyObject *args, PyObject *kwargs)
{
    struct torch_quiet quiet;
    PyObject *result;

    torch_quiet_begin(&quiet);
    result = PyObject_Call(ours, args, kwargs);
    if (!result)
        torch_bridge_failed("a function of torch's");
    torch_quiet_end(&quiet);
    return result;
}

/* THREE is (before, theirs, after). A function of C, so that in the stack there is nothing of ours. */
static PyObject *call_around(PyObject *three, PyObject *args, PyObject *kwargs)
{
    PyObject *before = PyTuple_GET_ITEM(three, 0), *token, *result, *more, *done;

    Py_INCREF(three); /* theirs may be what holds the function */
    token = before == Py_None ? NULL : call_quietly(before, args, kwargs);
    result = PyObject_Call(PyTuple_GET_ITEM(three, 1), args, kwargs);
    if (result && (more = PyTuple_New(PyTuple_GET_SIZE(args) + 1))) {
        PyTuple_SET_ITEM(more, 0, Py_NewRef(token ? token : Py_None));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
            PyTuple_SET_ITEM(more, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
        done = call_quietly(PyTuple_GET_ITEM(three, 2), more, kwargs);
        Py_XDECREF(done);
        Py_DECREF(more);
    }
    if (result)
        PyErr_Clear();
    Py_XDECREF(token);
    Py_DECREF(three);
    return result;
}

static PyMethodDef around_method = {"around", (PyCFunction)(void (*)(void))call_around, METH_VARARGS | METH_KEYWORDS,
                                    NULL};

static PyObject *around(PyObject *module, PyObject *args)
{
    PyObject *function, *method;

    if (!PyTuple_Check(args) || PyTuple_GET_SIZE(args) != 3) {
        PyErr_SetString(PyExc_TypeError, "_around(before, theirs, after)");
        return NULL;
    }
    function = PyCFunction_New(&around_method, args);
    method = function ? PyInstanceMethod_New(function) : NULL; /* found in a class it is given the instance */
    Py_XDECREF(function);
    return method;
}

PyMethodDef note_methods[] = {
    {"_note", note, METH_VARARGS,
     "_note(name, numbers, texts)\n\nA fact of src/facts.h, its members in their order, texts as bytes."},
    {"_note_loss", note_loss, METH_O, "_note_loss(text)\n\nSomething could not be recorded."},
    {"_code_id", code_id, METH_O, "_code_id(code) -> the trace's id of it + 1; 0: it is not recorded"},
    {"_values", kept, METH_NOARGS,
     "_values() -> 'all', 'types' or 'off'\n\nWhat of the program's values may be noted."},
    {"_around", around, METH_VARARGS,
     "_around(before, theirs, after) -> function, also for a class\n\n"
     "Calls token = before(...), result = theirs(...) and, if it did not raise, after(token, ...). Nobody sees ours."},
    {NULL, NULL, 0, NULL},
};
