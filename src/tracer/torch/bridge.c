/* tracer/torch/bridge.c -- the bridge to torch, python/dyntrace: what the shim asks of it, and what it notes as facts.
 *
 * Runs in: the traced process, under the GIL.
 *
 * The bridge is code of ours in the program's process: it runs unseen and raises nothing. What it cannot say is left out,
 * or, where a reader would miss it, a loss row. */
#include "tracer/torch/torch.h"

#include <string.h>

#define P tracer_process
#define S torch_settings

enum { TOTAL_MAX = 16 << 20 }; /* bytes of all texts in a process: they lie in its memory */

void torch_quiet_begin(struct torch_quiet *q)
{
    struct tracer *t = tracer_here();

    PyErr_Fetch(&q->type, &q->value, &q->traceback);
    q->collects = PyGC_Disable(); /* finalisers are the program's */
    PyThreadState_EnterTracing(PyThreadState_Get());
    if (t) {
        t->quiet++;
        t->limit = 0; /* so that every event goes through tracer_room(), which says no */
    }
}

void torch_quiet_end(struct torch_quiet *q)
{
    struct tracer *t = tracer_here();

    if (t)
        t->quiet--;
    PyThreadState_LeaveTracing(PyThreadState_Get());
    if (q->collects)
        PyGC_Enable();
    PyErr_Restore(q->type, q->value, q->traceback);
}

/* The bridge failed with the pending exception, in doing WHAT: a loss row. */
static void failed(const char *what)
{
    PyObject *type, *value, *traceback, *text;
    char words[512];

    PyErr_Fetch(&type, &value, &traceback);
    text = value && values_kept() == SESSION_VALUES_ALL ? PyObject_Str(value) : NULL;
    PyErr_Clear();
    snprintf(words, sizeof words, "torch bridge: %s: %s: %.300s", what,
             type ? ((PyTypeObject *)type)->tp_name : "error",
             text && PyUnicode_Check(text) && PyUnicode_AsUTF8(text) ? PyUnicode_AsUTF8(text) : "");
    PyErr_Clear();
    tracer_loss(words);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* ---- what the shim asks ---- */

/* PART(A, B, C) of the bridge, or its method NAME, with the fewer arguments that come before a NULL; the pending
 * exception is kept. NULL: there is no such part, or it failed in saying WHAT, and that is noted. */
static PyObject *ask(const char *what, PyObject *part, const char *name, PyObject *a, PyObject *b, PyObject *c)
{
    struct torch_quiet quiet;
    PyObject *result;

    if (!part)
        return NULL;
    Py_INCREF(part);
    torch_quiet_begin(&quiet);
    result = name ? tracer_call(part, name, a, b, c) : PyObject_CallFunctionObjArgs(part, a, b, c, NULL);
    if (!result)
        failed(what);
    torch_quiet_end(&quiet);
    Py_DECREF(part);
    return result;
}

void torch_attach(bool late)
{
    struct torch_quiet quiet;
    PyObject *module, *result = NULL;

    if (!P.session)
        return;
    torch_quiet_begin(&quiet);
    module = PyImport_ImportModule("dyntrace._torch");
    if (module)
        result = PyObject_CallMethod(module, "attach", "IO", P.session->torch, late ? Py_True : Py_False);
    if (!result)
        failed("not attached");
    Py_XDECREF(module);
    Py_XDECREF(result);
    torch_quiet_end(&quiet);
    P.torch_seen = true;
    tracer_rehook();
}

PyObject *torch_describe(PyObject *value)
{
    if (!S.tensor || !PyType_Check(S.tensor) || !PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)S.tensor))
        return NULL;
    return ask("a tensor in words", S.describe, NULL, value, NULL, NULL);
}

PyObject *torch_compile_begins(uint32_t compile, PyObject *code)
{
    PyObject *number = PyLong_FromUnsignedLong(compile);
    PyObject *token = number ? ask("a compile's beginning", S.begin, NULL, number, code, NULL) : NULL;

    Py_XDECREF(number);
    return token;
}

void torch_compile_ends(PyObject *token, PyObject *result)
{
    PyObject *type, *value, *traceback, *done;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    done = ask("a compile's end", S.end, NULL, token, result ? result : Py_None, value ? value : Py_None);
    Py_XDECREF(done);
    Py_DECREF(token);
    PyErr_Restore(type, value, traceback);
}

PyObject *torch_leaves(PyObject *guard, PyObject **view)
{
    PyObject *rows = NULL;
    Py_ssize_t whole = 0;

    *view = ask("an entry's guards", S.guards, NULL, guard, NULL, NULL);
    if (*view)
        rows = tracer_attribute(*view, "rows");
    if (rows)
        Py_SETREF(rows, PyList_AsTuple(rows));
    while (rows && whole < PyTuple_GET_SIZE(rows) && PyTuple_Check(PyTuple_GET_ITEM(rows, whole)) &&
           PyTuple_GET_SIZE(PyTuple_GET_ITEM(rows, whole)) >= 4)
        whole++;
    if (*view && (!rows || whole < PyTuple_GET_SIZE(rows))) {
        failed("an entry's guards");
        Py_CLEAR(rows);
    }
    return rows;
}

struct guard_outcome torch_failed(const struct cache_entry *entry, const struct cache_parts *parts, compat_frame *frame,
                                  PyObject *locals)
{
    const bool known = parts->view && locals && entry->id != ENTRY_UNRECORDED;
    struct guard_outcome outcome = {GUARD_FAIL, 0, UINT32_MAX};
    PyObject *found, *order;
    long guard, run;

    found = known ? ask("the guard that failed", parts->view, "failing", locals, frame->f_globals, NULL) : NULL;
    if (found && PyArg_ParseTuple(found, "llO", &guard, &run, &order)) {
        if (guard >= 0 && guard < (long)entry->guards)
            outcome.failed = (uint32_t)guard;
        outcome.guards_run = run > 0 ? (uint32_t)run : 0;
        decision_entry_order_words(entry, order);
    }
    PyErr_Clear();
    Py_XDECREF(found);
    return outcome;
}

PyObject *torch_explain(PyObject *view, compat_frame *frame, PyObject *locals)
{
    return ask("why an entry does not fit", view, "explain", locals, frame->f_globals, NULL);
}

/* ---- what it notes ---- */

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
    failed("a note");
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
        failed("a function of torch's");
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

PyMethodDef bridge_methods[] = {
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
