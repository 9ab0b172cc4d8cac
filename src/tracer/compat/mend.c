/* tracer/compat/mend.c -- what a PEP 523 hook, or a CPython with one, would make different for the
 * program or for us. */
#include "tracer/tracer.h"

#include <search.h>

/* ---- calls of __init__ that CPython 3.13 hides from the hook ----
 *
 * A specialised call C() runs C.__init__ without asking the hook. The specialiser refuses a type
 * whose tp_alloc is not the generic one, so a type whose __init__ is recorded gets an equivalent of
 * its own: those that are there when recording begins, and one made later when its __init__ first
 * runs. What CPython does then makes a tuple of the arguments and a call of it, which takes twice
 * as long as a specialised call: `construct` does the same without. */
#if COMPAT_INIT_BYPASSES_HOOK

static PyObject *word_init, *no_arguments; /* "__init__" and (): immortal */
/* tp_init of each type whose __init__ is a Python function */
static initproc init_by_name;

static PyObject *allocate(PyTypeObject *type, Py_ssize_t items)
{
    return PyType_GenericAlloc(type, items);
}

/* type.__call__(). From the lookup, which is pinned, to the call nothing of the program runs: 3.13
 * collects garbage between instructions only. */
HOT static PyObject *construct(PyObject *callable, PyObject *const *args, size_t given,
                               PyObject *names)
{
    PyTypeObject *type = (PyTypeObject *)callable;
    OWNED PyObject *init = Py_XNewRef(_PyType_Lookup(type, word_init));
    /* writable: PY_VECTORCALL_ARGUMENTS_OFFSET */
    PyObject *self, **all = (PyObject **)args - 1, *before, *result;

    if (!(given & PY_VECTORCALL_ARGUMENTS_OFFSET) || !init || !PyFunction_Check(init) ||
        type->tp_init != init_by_name || type->tp_new != PyBaseObject_Type.tp_new ||
        type->tp_flags & Py_TPFLAGS_IS_ABSTRACT)
        return _PyObject_MakeTpCall(PyThreadState_Get(), callable, args, PyVectorcall_NARGS(given),
                                    names);
    self = type->tp_new(type, no_arguments, NULL);
    if (!self)
        return NULL;
    before = *all;
    *all = self;
    result = PyObject_Vectorcall(init, all, (size_t)PyVectorcall_NARGS(given) + 1, names);
    *all = before;
    if (result && result != Py_None)
        PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'",
                     Py_TYPE(result)->tp_name);
    if (result != Py_None)
        Py_CLEAR(self);
    Py_XDECREF(result);
    return self;
}

/* Calls of TYPE reach the hook. */
static void fix_type(PyTypeObject *type)
{
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_alloc != PyType_GenericAlloc)
        return;
    type->tp_alloc = allocate;
    if (!type->tp_vectorcall)
        type->tp_vectorcall = construct;
    PyType_Modified(type);
}

static void unfix_type(PyTypeObject *type)
{
    if (type->tp_alloc != allocate)
        return;
    type->tp_alloc = PyType_GenericAlloc;
    if (type->tp_vectorcall == construct)
        type->tp_vectorcall = NULL;
    PyType_Modified(type);
}

static void unfix_subclasses(PyObject *type, int depth)
{
    PyObject *metatype = (PyObject *)&PyType_Type;
    OWNED PyObject *list = NULL;
    Py_ssize_t count = 0;

    if (depth < 100)
        list = tracer_call(metatype, "__subclasses__", type, NULL, NULL);
    if (list)
        count = PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyList_GET_ITEM(list, i);
        unfix_type((PyTypeObject *)one);
        unfix_subclasses(one, depth + 1);
    }
    PyErr_Clear();
}

void tracer_unfix_types(void)
{
    unfix_subclasses((PyObject *)&PyBaseObject_Type, 0);
    tracer_process.unfixed++;
}

void tracer_fix_init(PyObject *self)
{
    if (self && init_by_name)
        fix_type(Py_TYPE(self));
}

/* For types whose calls were specialised before the hook was there. */
static void fix_subclasses(PyObject *type, int depth, bool filtered)
{
    PyObject *list = depth < 100
                         ? tracer_call((PyObject *)&PyType_Type, "__subclasses__", type, NULL, NULL)
                         : NULL;

    if (!list) {
        PyErr_Clear();
        return;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyTypeObject *one = (PyTypeObject *)PyList_GET_ITEM(list, i);
        PyObject *init = _PyType_Lookup(one, word_init); /* borrowed */
        if (init && PyFunction_Check(init) &&
            (filtered || tracer_is_wanted((PyCodeObject *)PyFunction_GET_CODE(init))))
            fix_type(one);
        fix_subclasses((PyObject *)one, depth + 1, filtered);
    }
    Py_DECREF(list);
}

void tracer_fix_all_types(bool filtered)
{
    if (!init_by_name) { /* importlib's ModuleSpec is such a type */
        /* borrowed */
        PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_frozen_importlib");
        OWNED PyObject *type = module ? tracer_attribute(module, "ModuleSpec") : NULL;
        word_init = PyUnicode_InternFromString("__init__");
        no_arguments = PyTuple_New(0);
        if (type && PyType_Check(type) && word_init)
            init_by_name = ((PyTypeObject *)type)->tp_init;
        PyErr_Clear();
    }
    if (init_by_name)
        fix_subclasses((PyObject *)&PyBaseObject_Type, 0, filtered);
}

#endif

/* ---- a program that traces itself sees the events it would have seen ----
 *
 * Since 3.12 an `await` or `yield from` runs a coroutine or generator inline, unless there is a
 * hook: then it is called, and its return arrives as a StopIteration, which the awaiting frame
 * reports to sys.settrace as an exception. So when a generator's last frame ends while a trace
 * function is set, ours is put before it: it drops that one event and passes on all others.
 *
 *     hook:    generator finished under frame F           -> remember F
 *     CPython: trace function(F, EXCEPTION, StopIteration), at F's SEND
 *     ours:    the remembered F, at a SEND, nothing ran in between -> dropped */
#if COMPAT_SEND_RAISES_UNDER_HOOK

/* What the program has set, where its thread has no struct tracer any more. */
static Py_tracefunc real;

/* Is FRAME stopped at the instruction that awaits? The code itself may show a
 * specialised or instrumented one there; PyCode_GetCode undoes both. */
static bool at_send(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    int offset = PyFrame_GetLasti(frame);
    PyObject *bytecode = PyCode_GetCode(code);
    bool is = bytecode && offset >= 0 && offset < PyBytes_GET_SIZE(bytecode) &&
              (unsigned char)PyBytes_AS_STRING(bytecode)[offset] == SEND;

    if (!bytecode)
        PyErr_Clear();
    Py_XDECREF(bytecode);
    Py_DECREF(code);
    return is;
}

static int filter(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    struct tracer *t = tracer_thread;
    PyThreadState *ts = PyThreadState_Get();
    Py_tracefunc theirs = real;

    if (t && t->trace)
        theirs = t->trace;
    if (what == PyTrace_EXCEPTION && t && t->finished_under &&
        t->finished_under == frame->f_frame && t->finished_at == t->entered &&
        PyTuple_Check(argument) && PyTuple_GET_ITEM(argument, 0) == PyExc_StopIteration &&
        at_send(frame)) {
        t->finished_under = NULL;
        return 0;
    }
    if (!tracer_process.recording && ts->c_tracefunc == filter) /* it is over */
        ts->c_tracefunc = theirs;
    return theirs(object, frame, what, argument);
}

void tracer_generator_finished(struct tracer *t, PyThreadState *ts)
{
    if (ts->c_tracefunc != filter) {
        t->trace = real = ts->c_tracefunc;
        ts->c_tracefunc = filter;
    }
    t->finished_under = compat_current_frame(ts);
    t->finished_at = t->entered;
}

#endif

/* ---- code objects that all interpreters share ----
 *
 * There is memory of the main interpreter's in such a code object, which no other may make or free,
 * so the others find its mark here, by its address. They are some hundreds. Under tracer_lock(). */
#if COMPAT_SHARES_CODE

struct shared_mark {
    PyCodeObject *code;
    uintptr_t mark;
};
static void *shared_marks; /* of tsearch() */

static int by_code(const void *a, const void *b)
{
    const struct shared_mark *x = a, *y = b;

    return (x->code > y->code) - (x->code < y->code);
}

uintptr_t tracer_shared_mark(PyCodeObject *code, uintptr_t mark)
{
    struct shared_mark *made = mark ? malloc(sizeof *made) : NULL, **found;

    tracer_lock();
    found = tfind(&(struct shared_mark){code, 0}, &shared_marks, by_code);
    if (found) {
        mark = (*found)->mark;
    } else if (made) {
        *made = (struct shared_mark){code, mark};
        if (tsearch(made, &shared_marks, by_code))
            made = NULL;
    }
    tracer_unlock();
    free(made);
    return mark;
}

#endif
