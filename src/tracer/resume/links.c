/* tracer/resume/links.c -- see links.h.
 *
 * Values are moved: the first part's frame keeps none, and the tuple in which they go lets go of them when the second
 * part has them (enter). So each dies when it would have died in the function as it was. While the second part runs,
 * the first one's frame is passed over by tracebacks, sys._getframe() and the like, and does not count against the recursion limit. */
#include "tracer/resume/links.h"

/* ---- no value ---- */

static PyObject *unbound_repr(PyObject *self)
{
    return PyUnicode_FromString("dyntrace.resume.UNBOUND");
}

PyTypeObject unbound_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dyntrace.resume.Unbound",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What a resume function gets for a variable without a value.",
    .tp_repr = unbound_repr,
};
PyObject resume_unbound = {_PyObject_EXTRA_INIT .ob_refcnt = 1, .ob_type = &unbound_type};

/* ---- from the first part ---- */

/* The variable of CODE, number FIRST or later, with NAME whose kind is, or is not, that of a cell; -1: there is none. */
static int find(PyCodeObject *code, int first, PyObject *name, bool cell)
{
    for (int i = first; i < code->co_nlocalsplus; i++)
        if (!(_PyLocals_GetKind(code->co_localspluskinds, i) & (CO_FAST_CELL | CO_FAST_FREE)) == !cell &&
            PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, i), name) == 0)
            return i;
    return -1;
}

static PyObject *lacks(PyObject *name)
{
    return PyErr_Format(PyExc_RuntimeError, "a resume function is called by code that has no variable '%U'", name);
}

/* The cells of RESUME's free variables, which FRAME has under the same names: a new tuple. */
static PyObject *take_cells(compat_frame *frame, PyCodeObject *resume)
{
    int first = resume->co_nlocalsplus - resume->co_nfreevars;
    PyObject *cells = PyTuple_New(resume->co_nfreevars);

    for (int i = 0; i < resume->co_nfreevars && cells; i++) {
        PyObject *name = PyTuple_GET_ITEM(resume->co_localsplusnames, first + i), *cell;
        int at = find(compat_code(frame), 0, name, true);
        if (at < 0)
            cell = lacks(name);
        else if ((cell = compat_local(frame, at)) && PyCell_Check(cell))
            cell = compat_take_local(frame, at);
        else /* an inlined comprehension has taken the variable */
            cell = PyCell_New(NULL);
        if (cell)
            PyTuple_SET_ITEM(cells, i, cell);
        else
            Py_CLEAR(cells);
    }
    return cells;
}

/* FRAME's variable for argument I of RESUME, which has CELLS. One that is in a cell is what an inlined comprehension has in
 * that place, or, of a method's first argument, what is in the cell. */
static PyObject *take(compat_frame *frame, PyCodeObject *resume, int i, PyObject *cells)
{
    PyObject *name = PyTuple_GET_ITEM(resume->co_localsplusnames, i), *value;
    bool cell = _PyLocals_GetKind(resume->co_localspluskinds, i) & CO_FAST_CELL;
    int first = resume->co_nlocalsplus - resume->co_nfreevars, at = find(compat_code(frame), 0, name, cell);

    if (at < 0)
        return lacks(name);
    value = compat_take_local(frame, at);
    if (!value && cell)
        value = Py_XNewRef(PyCell_GET(PyTuple_GET_ITEM(cells, find(resume, first, name, true) - first)));
    return value ? value : Py_NewRef(&resume_unbound);
}

/* VALUE, which was in the stack's slot NAME (owned here), or an iterator at the place where the slot above says that it is. */
static PyObject *iterated(compat_frame *frame, PyObject *name, PyObject *value)
{
    const char *text = PyUnicode_AsUTF8(name);
    OWNED PyObject *above = text ? PyUnicode_FromFormat("___stack%ld", strtol(text + strlen("___stack"), NULL, 10) + 1) : NULL;
    OWNED PyObject *iterator = NULL, *set = NULL;
    int at = above ? find(compat_code(frame), 0, above, false) : -1;
    Py_ssize_t index = at < 0 ? -1 : compat_take_index(frame, at);

    if (index < 0)
        return value;
    iterator = PyObject_GetIter(value);
    Py_DECREF(value);
    set = iterator ? PyObject_CallMethod(iterator, "__setstate__", "n", index) : NULL;
    return set ? Py_NewRef(iterator) : NULL;
}

static PyObject *leave(PyObject *object, PyObject *const *ignored, size_t count, PyObject *names)
{
    struct leave *self = (struct leave *)object;
    PyThreadState *ts = PyThreadState_Get();
    compat_frame *frame = compat_current_frame(ts);
    OWNED PyObject *cells = NULL, *handed = NULL, *made = NULL, *keys = NULL;
    PyFunctionObject *function;
    const int named = self->resume->co_kwonlyargcount, arguments = self->resume->co_argcount + named; /* all, or none */
    PyObject *result;

    if (PyVectorcall_NARGS(count) || (names && PyTuple_GET_SIZE(names)) || !frame)
        return PyErr_Format(PyExc_TypeError, "the call of a resume function takes no arguments");
    if (!(cells = take_cells(frame, self->resume)) || !(handed = PyTuple_New(arguments + 1)))
        return NULL;
    for (int i = arguments - 1; i >= 0; i--) { /* the stack first: it may borrow from variables */
        PyObject *value = take(frame, self->resume, i, cells);
        if (value && i >= self->taken)
            value = iterated(frame, PyTuple_GET_ITEM(self->resume->co_localsplusnames, i), value);
        if (!value)
            return NULL;
        PyTuple_SET_ITEM(handed, i, value);
    }
    PyTuple_SET_ITEM(handed, arguments, Py_NewRef(object));
    made = PyFunction_New((PyObject *)self->resume, frame->f_globals);
    keys = named ? PyTuple_GetSlice(self->resume->co_localsplusnames, 0, named) : NULL;
    if (!made || (named && !keys))
        return NULL;
    function = (PyFunctionObject *)made;
    Py_SETREF(function->func_builtins, Py_NewRef(frame->f_builtins));
    if (PyTuple_GET_SIZE(cells))
        Py_XSETREF(function->func_closure, Py_NewRef(cells));
    Py_CLEAR(cells);
    Py_XSETREF(function->func_doc, handed); /* nobody sees the function; enter() looks there */
    handed = NULL;
    compat_hide(frame);
    compat_recursion_remaining(ts)++;
    result = PyObject_Vectorcall(made, &PyTuple_GET_ITEM(function->func_doc, 0), (size_t)(arguments - named), keys);
    compat_recursion_remaining(ts)--;
    return result;
}

/* ---- to the second part ---- */

/* The function made by leave() that FRAME is a call of lets go of what it was for. */
static void let_go(compat_frame *frame)
{
    PyFunctionObject *function = compat_function(frame);
    PyObject *handed = PyFunction_Check(function) ? function->func_doc : NULL;

    if (handed && PyTuple_CheckExact(handed) && PyTuple_GET_SIZE(handed) &&
        Py_TYPE(PyTuple_GET_ITEM(handed, PyTuple_GET_SIZE(handed) - 1)) == &leave_type) {
        Py_CLEAR(function->func_closure); /* the frame has the cells */
        Py_CLEAR(function->func_doc);
    }
}

static bool is_constant(PyObject *object, PyCodeObject *code)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); i++)
        if (PyTuple_GET_ITEM(code->co_consts, i) == object)
            return true;
    return false;
}

static PyObject *enter(PyObject *object, PyObject *const *ignored, size_t count, PyObject *names)
{
    struct enter *self = (struct enter *)object;
    compat_frame *frame = compat_current_frame(PyThreadState_Get());
    PyCodeObject *code = frame ? compat_code(frame) : NULL;
    int first;

    if (!code || !is_constant(object, code))
        return PyErr_Format(PyExc_RuntimeError, "only a resume function may call this");
    first = code->co_nlocalsplus - code->co_nfreevars;
    let_go(frame);
    for (int i = first; i < code->co_nlocalsplus; i++) { /* what were cells are cells */
        int at = find(code, 0, PyTuple_GET_ITEM(code->co_localsplusnames, i), true);
        if (at == i || (at >= self->locals && at < self->taken))
            continue;
        Py_XDECREF(compat_take_local(frame, at));
        compat_give_local(frame, at, Py_XNewRef(compat_local(frame, i)));
    }
    for (int i = 0; i < self->arguments; i++)
        if (i >= self->taken || compat_local(frame, i) == &resume_unbound)
            Py_XDECREF(compat_take_local(frame, i));
    Py_RETURN_NONE;
}

/* ---- the types ---- */

static void leave_free(PyObject *object)
{
    Py_XDECREF(((struct leave *)object)->resume);
    PyObject_Free(object);
}

static void enter_free(PyObject *object)
{
    struct enter *self = (struct enter *)object;

    Py_XDECREF(self->origin);
    free(self->unit);
    PyObject_Free(object);
}

struct leave *leave_make(PyCodeObject *resume, int taken)
{
    struct leave *made = PyObject_New(struct leave, &leave_type);

    if (made) {
        made->call = leave;
        made->taken = taken;
        made->resume = (PyCodeObject *)Py_NewRef((PyObject *)resume);
    }
    return made;
}

struct enter *enter_make(PyObject *origin, int locals, int taken, int arguments)
{
    struct enter *made = PyObject_New(struct enter, &enter_type);

    if (made) {
        *made = (struct enter){.ob_base = made->ob_base, .call = enter, .locals = locals, .taken = taken, .arguments = arguments};
        made->origin = PyWeakref_NewRef(origin, NULL);
        if (!made->origin)
            Py_CLEAR(made);
    }
    return made;
}

PyTypeObject leave_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dyntrace.resume.Leave",
    .tp_basicsize = sizeof(struct leave),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Called without arguments: hands the caller's variables over to its resume function, and calls that.",
    .tp_dealloc = leave_free,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(struct leave, call),
};

PyTypeObject enter_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dyntrace.resume.Enter",
    .tp_basicsize = sizeof(struct enter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Called by a resume function that has put the stack in place: unbinds what has no value.",
    .tp_dealloc = enter_free,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(struct enter, call),
};
