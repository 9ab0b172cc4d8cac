/* tracer/torch/bridge.c -- the bridge to torch, python/dyntrace: what the shim asks of it, and what
 * it notes as facts.
 *
 * Runs in: the traced process, under the GIL.
 *
 * The bridge is code of ours in the program's process: it runs unseen and raises nothing. What it
 * cannot say is left out, or, where a reader would miss it, a loss row. */
#include "tracer/torch/torch.h"

#define P tracer_process
#define S torch_settings

enum { TOTAL_MAX = 16 << 20 }; /* bytes of all texts in a process: they lie in its memory */

void torch_quiet_begin(struct torch_quiet *q)
{
    struct tracer *t = tracer_here();

    if (t)
        tracer_follow(t, PyThreadState_Get(), NULL);
    q->pending = tracer_exception_aside();
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

    if (t) {
        tracer_follow(t, PyThreadState_Get(), NULL);
        t->quiet--;
    }
    PyThreadState_LeaveTracing(PyThreadState_Get());
    if (q->collects)
        PyGC_Enable();
    tracer_exception_back(&q->pending);
}

/* The bridge failed with the pending exception in doing WHAT: a loss row. */
static void failed(const char *what)
{
    KEPT struct tracer_exception error = tracer_exception_aside();
    OWNED PyObject *text =
        error.value && values_kept() == SESSION_VALUES_ALL ? PyObject_Str(error.value) : NULL;
    OWNED PyObject *words = PyUnicode_FromFormat(
        "torch bridge: %s: %s: %.300V", what,
        error.type ? ((PyTypeObject *)error.type)->tp_name : "error", text, "");

    PyErr_Clear();
    tracer_loss(words && PyUnicode_AsUTF8(words) ? PyUnicode_AsUTF8(words) : "torch bridge");
}

/* PART(A, B, C) of the bridge, or its method NAME, with the fewer arguments that come before a
 * NULL; the pending exception is kept. NULL: there is no such part, or it failed in saying WHAT,
 * and that is noted. */
static PyObject *ask(const char *what, PyObject *part, const char *name, PyObject *a, PyObject *b,
                     PyObject *c)
{
    OWNED PyObject *held = Py_XNewRef(part);
    struct torch_quiet quiet;
    PyObject *result;

    if (!held)
        return NULL;
    torch_quiet_begin(&quiet);
    result =
        name ? tracer_call(held, name, a, b, c) : PyObject_CallFunctionObjArgs(held, a, b, c, NULL);
    if (!result)
        failed(what);
    torch_quiet_end(&quiet);
    return result;
}

void torch_attach(bool late)
{
    OWNED PyObject *module = NULL, *done = NULL;
    struct torch_quiet quiet;

    if (!P.session)
        return;
    torch_quiet_begin(&quiet);
    module = PyImport_ImportModule("dyntrace._torch");
    if (module)
        done = PyObject_CallMethod(module, "attach", "IO", P.session->torch,
                                   late ? Py_True : Py_False);
    if (!done)
        failed("not attached");
    torch_quiet_end(&quiet);
    P.torch_seen = true;
    tracer_rehook();
}

PyObject *torch_describe(PyObject *value)
{
    if (!S.tensor || !PyType_Check(S.tensor) ||
        !PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)S.tensor))
        return NULL;
    return ask("a tensor in words", S.describe, NULL, value, NULL, NULL);
}

PyObject *torch_compile_begins(uint32_t compile, PyObject *code)
{
    OWNED PyObject *number = PyLong_FromUnsignedLong(compile);

    return number ? ask("a compile's beginning", S.begin, NULL, number, code, NULL) : NULL;
}

void torch_compile_ends(PyObject *token, PyObject *result)
{
    KEPT struct tracer_exception pending = tracer_exception_aside();
    OWNED PyObject *held = token, *done = NULL;

    PyErr_NormalizeException(&pending.type, &pending.value, &pending.traceback);
    done = ask("a compile's end", S.end, NULL, held, result ? result : Py_None,
               pending.value ? pending.value : Py_None);
}

PyObject *torch_leaves(PyObject *guard, PyObject **view)
{
    OWNED PyObject *rows = NULL;

    *view = ask("an entry's guards", S.guards, NULL, guard, NULL, NULL);
    if (*view)
        rows = tracer_attribute(*view, "rows"); /* a list of four texts each */
    return rows ? PyList_AsTuple(rows) : NULL;
}

struct guard_outcome torch_failed(struct cache_entry *entry, const struct cache_parts *parts,
                                  compat_frame *frame, PyObject *locals)
{
    const bool recorded = entry->id != ENTRY_UNRECORDED;
    /* torch has a tree of their own for the guards that tell entries apart. */
    const bool all = !entry->front->skip_guards_unsafe;
    const bool known = all && recorded && parts->view && locals;
    struct guard_outcome outcome = {GUARD_FAIL, 0, UINT32_MAX, 0};
    OWNED PyObject *found =
        known ? ask("the guard that failed", parts->view, "failing", locals, frame->f_globals, NULL)
              : NULL;
    PyObject *order;
    long guard, run;

    if (found && PyArg_ParseTuple(found, "llO", &guard, &run, &order)) {
        if (guard >= 0 && guard < (long)entry->guards)
            outcome.failed = (uint32_t)guard;
        outcome.guards_run = run > 0 ? (uint32_t)run : 0;
        decision_entry_ordinals(entry, order);
    }
    PyErr_Clear();
    return outcome;
}

PyObject *torch_explain(PyObject *view, compat_frame *frame, PyObject *locals)
{
    return ask("why an entry does not fit", view, "causes", locals, frame->f_globals, NULL);
}

/* note(name, numbers, texts): the fact NAME of facts.h, its members in their order, texts as bytes.
 * */
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
    int kind = FACT_KINDS - 1;

    if (!PyArg_ParseTuple(args, "sO!O!", &name, &PyTuple_Type, &numbers, &PyTuple_Type, &texts))
        return NULL;
    while (kind && strcmp(names[kind], name) != 0)
        kind--;
    if (!kind || PyTuple_GET_SIZE(numbers) != fact_shapes[kind].numbers ||
        PyTuple_GET_SIZE(texts) != fact_shapes[kind].texts)
        return PyErr_Format(PyExc_ValueError, "%s: no such fact", name);
    for (int i = 0; i < fact_shapes[kind].numbers; i++)
        fact.numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i));
    text = (struct fact_text *)(fact.numbers + fact_shapes[kind].numbers);
    for (int i = 0; i < fact_shapes[kind].texts; i++) {
        char *at = NULL;
        Py_ssize_t size = 0;
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(texts, i), &at, &size))
            return NULL;
        text[i] = (struct fact_text){at, size};
        bytes += (size_t)size;
    }
    if (PyErr_Occurred())
        return NULL;
    total += bytes;
    if (total <= TOTAL_MAX)
        tracer_put_fact((enum fact_kind)kind, &fact);
    else if (total - bytes <= TOTAL_MAX) /* once */
        tracer_loss("texts of compiles (listings, graphs, breaks) left out: more than 16 MB in "
                    "this process");
    Py_RETURN_NONE;
}

static PyObject *note_loss(PyObject *module, PyObject *words)
{
    const char *text = PyUnicode_AsUTF8(words);

    tracer_loss(text ? text : "");
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* The trace's id of CODE; -1: it is not recorded, or none. */
static PyObject *code_id(PyObject *module, PyObject *code)
{
    const uintptr_t mark =
        PyCode_Check(code) && P.session ? tracer_name_code((PyCodeObject *)code) : 0;

    return PyLong_FromLongLong(tracer_has_id(mark) ? (long long)(mark >> CODE_SHIFT) : -1);
}

static PyObject *compiling(PyObject *module, PyObject *none)
{
    return decision_compiling();
}

static PyObject *kept(PyObject *module, PyObject *none)
{
    const enum session_values kept = values_kept();

    return PyUnicode_FromString(kept == SESSION_VALUES_ALL     ? "all"
                                : kept == SESSION_VALUES_TYPES ? "types"
                                                               : "off");
}

/* OURS(*ARGS, **KWARGS), which the program's trace functions do not see. NULL: it failed, and that
 * is noted. */
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

/* THREE is (before, theirs, after). A function of C, so that in the stack there is nothing of ours.
 * */
static PyObject *call_around(PyObject *three, PyObject *args, PyObject *kwargs)
{
    /* theirs may drop the function */
    OWNED PyObject *held = Py_NewRef(three), *token = NULL, *all = NULL, *done = NULL;
    PyObject *before = PyTuple_GET_ITEM(held, 0), *result;

    if (!P.recording)
        return PyObject_Call(PyTuple_GET_ITEM(held, 1), args, kwargs);
    token = before == Py_None ? Py_NewRef(Py_None) : call_quietly(before, args, kwargs);
    result = PyObject_Call(PyTuple_GET_ITEM(held, 1), args, kwargs);
    if (result && P.recording) {
        OWNED PyObject *first = PyTuple_Pack(1, token ? token : Py_None);
        all = first ? PySequence_Concat(first, args) : NULL;
        done = all ? call_quietly(PyTuple_GET_ITEM(held, 2), all, kwargs) : NULL;
        PyErr_Clear();
    }
    return result;
}

static PyMethodDef around_method = {"around", (PyCFunction)(void (*)(void))call_around,
                                    METH_VARARGS | METH_KEYWORDS, NULL};

static PyObject *around(PyObject *module, PyObject *args)
{
    OWNED PyObject *function = NULL;

    if (PyTuple_GET_SIZE(args) != 3)
        return PyErr_Format(PyExc_TypeError, "_around(before, theirs, after)");
    function = PyCFunction_New(&around_method, args);
    /* found in a class it is given the instance */
    return function ? PyInstanceMethod_New(function) : NULL;
}

PyMethodDef bridge_methods[] = {
    {"_note", note, METH_VARARGS,
     "_note(name, numbers, texts)\n\nA fact of src/facts.h, its members in their order, texts as "
     "bytes."},
    {"_note_loss", note_loss, METH_O, "_note_loss(text)\n\nSomething could not be recorded."},
    {"_code_id", code_id, METH_O,
     "_code_id(code) -> the trace's id of it + 1; 0: it is not recorded"},
    {"_compiling", compiling, METH_NOARGS,
     "_compiling() -> (compile, code)\n\nWhat this thread's callback compiles. None: nothing, or "
     "nothing that is recorded."},
    {"_values", kept, METH_NOARGS,
     "_values() -> 'all', 'types' or 'off'\n\nWhat of the program's values may be noted."},
    {"_around", around, METH_VARARGS,
     "_around(before, theirs, after) -> function, also for a class\n\n"
     "Calls token = before(...), result = theirs(...) and, if it did not raise, after(token, ...). "
     "Nobody sees ours."},
    {NULL, NULL, 0, NULL},
};
