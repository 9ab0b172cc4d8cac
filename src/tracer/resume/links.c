/* tracer/resume/links.c -- the two functions that connect the parts of a split function:
 * leave_to_resume_function() and enter_resume_function().
 *
 * The first part calls leave_to_resume_function(), which hands its variables over and calls the
 * second part, the resume function. The resume function begins with a call of
 * enter_resume_function(). leave_to_resume_function() moves the values: the first part's frame
 * keeps none of them, and enter_resume_function() releases the tuple in which they were handed
 * over. So each value dies when it would have died in the original function. While the second part
 * runs, the first part's frame is hidden from tracebacks, sys._getframe() and the like, and does
 * not count against the recursion limit. */
#include "tracer/compat/bytecode.h"
#include "tracer/resume/resume.h"

PyTypeObject resume_unbound = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyntrace.resume.UNBOUND",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What a resume function gets for a variable without a value.",
};

static Py_ssize_t read_number_of_link(PyObject *link, enum link number)
{
    return PyLong_AsSsize_t(PyTuple_GET_ITEM(link, number));
}

/* ---- leave_to_resume_function(): hand the variables of the first part over ---- */

/* Return the number of the variable NAME of CODE, or -1. CELL: search only cells and free
 * variables; otherwise only plain locals. */
static int find_variable(PyCodeObject *code, PyObject *name, bool cell)
{
    for (int i = 0; i < code->co_nlocalsplus; i++)
        if (!(_PyLocals_GetKind(code->co_localspluskinds, i) & (CO_FAST_CELL | CO_FAST_FREE)) ==
                !cell &&
            PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, i), name) == 0)
            return i;
    return -1;
}

static bool is_free_variable(PyCodeObject *code, int variable)
{
    return _PyLocals_GetKind(code->co_localspluskinds, variable) & CO_FAST_FREE;
}

static bool is_cell_variable(PyCodeObject *code, int variable)
{
    return _PyLocals_GetKind(code->co_localspluskinds, variable) & CO_FAST_CELL;
}

/* Take the value for variable number I of the resume function RESUME from FRAME; for a free
 * variable, its cell. Returns a new reference, which is UNBOUND if there is no value; or NULL with
 * an exception. */
static PyObject *read_variable_of_frame(compat_frame *frame, PyCodeObject *resume, int i)
{
    PyObject *name = PyTuple_GET_ITEM(resume->co_localsplusnames, i);
    PyObject *value;
    int kind = _PyLocals_GetKind(resume->co_localspluskinds, i);
    int at = find_variable(compat_get_code(frame), name, kind & (CO_FAST_CELL | CO_FAST_FREE));

    if (at < 0)
        return PyErr_Format(PyExc_RuntimeError,
                            "a resume function is called by code that has no variable '%U'", name);
    value = compat_get_local(frame, at);
    if (!(kind & CO_FAST_FREE) && value && is_cell_variable(compat_get_code(frame), at))
        /* no value here, because its cell is handed over as a free variable */
        return Py_NewRef(UNBOUND);
    if (kind & CO_FAST_FREE && !(value && PyCell_Check(value)))
        return PyCell_New(NULL);
    /* FRAME keeps the cell, too, because CPython reads f_locals through it as long as FRAME
     * lives */
    if (value && is_free_variable(compat_get_code(frame), at))
        return Py_NewRef(value);
    value = compat_take_local(frame, at);
    /* Give FRAME an empty cell: a debugger may make it jump back, and it then needs one. */
    if (kind & CO_FAST_FREE) {
        PyObject *empty = PyCell_New(NULL);
        if (!empty)
            PyErr_Clear();
        compat_store_local(frame, at, empty);
    }
    return value ? value : Py_NewRef(UNBOUND);
}

/* Take the values for COUNT variables of RESUME, from number FIRST on, into a new tuple. MARKED: an
 * UNBOUND follows. Variables that stand for stack slots are taken first, because stack slots may
 * borrow from other variables. */
static PyObject *read_variables_of_frame(compat_frame *frame, PyCodeObject *resume, int first,
                                         int count, bool marked)
{
    PyObject *taken = PyTuple_New(count + marked);

    for (int i = count - 1; i >= 0 && taken; i--) {
        PyObject *value = read_variable_of_frame(frame, resume, first + i);
        if (value)
            PyTuple_SET_ITEM(taken, i, value);
        else
            Py_CLEAR(taken);
    }
    if (taken && marked)
        PyTuple_SET_ITEM(taken, count, Py_NewRef(UNBOUND));
    return taken;
}

/* Return an iterator over VALUE that has arrived at INDEX: a new reference. */
static PyObject *make_iterator_at_index(PyObject *value, Py_ssize_t index)
{
    OWNED PyObject *iterator = PyObject_GetIter(value);
    OWNED PyObject *set =
        iterator ? PyObject_CallMethod(iterator, "__setstate__", "n", index) : NULL;

    return set ? Py_NewRef(iterator) : NULL;
}

/* Newer CPythons iterate over a list or tuple without an iterator, and keep the index on the stack.
 * HANDED has the arguments for the resume function with LINK: replace each list or tuple in it over
 * which FRAME is iterating by an iterator. Returns -1 with an exception. */
static int replace_list_by_iterator(compat_frame *frame, PyObject *link, PyObject *handed)
{
    PyObject *places = PyTuple_GET_ITEM(link, LINK_PLACES);
    const Py_ssize_t locals = read_number_of_link(link, LINK_LOCALS);
    const Py_ssize_t count = Py_MIN(PyTuple_GET_SIZE(places), PyTuple_GET_SIZE(handed) - locals);

    for (Py_ssize_t i = 0; i < count; i++) {
        const Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
        const Py_ssize_t index = place < 0 ? -1 : compat_loop_index(frame, place);
        PyObject *value = PyTuple_GET_ITEM(handed, locals + i);
        if (index < 0 || value == UNBOUND)
            continue;
        PyObject *iterator = make_iterator_at_index(value, index);
        if (!iterator)
            return -1;
        PyTuple_SET_ITEM(handed, locals + i, iterator);
        Py_DECREF(value);
    }
    return 0;
}

/* Return the constant of CODE that is the built-in FUNCTION bound to SELF; if SELF is NULL, to any
 * object. Borrowed; NULL if there is none. */
static PyObject *find_constant(PyCodeObject *code, PyCFunction function, PyObject *self)
{
    for (Py_ssize_t i = PyTuple_GET_SIZE(code->co_consts) - 1; i >= 0; i--) {
        PyObject *constant = PyTuple_GET_ITEM(code->co_consts, i);
        if (!PyCFunction_CheckExact(constant) || PyCFunction_GET_FUNCTION(constant) != function)
            continue;
        if (!self || PyCFunction_GET_SELF(constant) == self)
            return constant;
    }
    return NULL;
}

/* What a direct call of a resume function runs: it raises an error. Only leave_to_resume_function()
 * may call the function, because its closure is gone, and only leave_to_resume_function() knows the
 * values of its stack slots. (A program can find the function with gc.get_objects().) */
static PyObject *raise_on_direct_call(PyObject *function, PyObject *const *args, size_t count,
                                      PyObject *names)
{
    return PyErr_Format(PyExc_RuntimeError, "only the first part of its function may call %U()",
                        ((PyFunctionObject *)function)->func_name);
}

static PyObject *leave_to_resume_function(PyObject *object, PyObject *ignored)
{
    /* make_leave_function() has checked that SELF is a code object */
    PyCodeObject *resume = (PyCodeObject *)object;
    PyThreadState *ts = PyThreadState_Get();
    compat_frame *frame = compat_current_frame(ts);
    PyObject *const link = link_of(resume);
    /* the arguments are either all keyword-only, or none is */
    const int named = resume->co_kwonlyargcount;
    const int arguments = resume->co_argcount + named;
    const int cell_count = resume->co_nfreevars;
    OWNED PyObject *cells = NULL, *handed = NULL, *made = NULL, *keys = NULL;
    PyFunctionObject *function;
    vectorcallfunc call;
    PyObject *result;

    if (!frame || !link || !find_constant(compat_get_code(frame), leave_to_resume_function, object))
        return PyErr_Format(PyExc_RuntimeError, "only the first part of a function may call this");
    if (!(cells = read_variables_of_frame(frame, resume, resume->co_nlocalsplus - cell_count,
                                          cell_count, false)) ||
        !(handed = read_variables_of_frame(frame, resume, 0, arguments, true)) ||
        replace_list_by_iterator(frame, link, handed) ||
        !(made = PyFunction_New(object, frame->f_globals)) ||
        (named && !(keys = PyTuple_GetSlice(resume->co_localsplusnames, 0, named))))
        return NULL;
    function = (PyFunctionObject *)made;
    Py_SETREF(function->func_builtins, Py_NewRef(frame->f_builtins));
    if (cell_count)
        Py_XSETREF(function->func_closure, Py_NewRef(cells));
    Py_CLEAR(cells);
    /* enter_resume_function() releases this tuple; nobody else reads __doc__ of this function */
    Py_XSETREF(function->func_doc, handed);
    handed = NULL;
    call = function->vectorcall;
    function->vectorcall = raise_on_direct_call;
    compat_hide_frame(frame);
    compat_uncount(ts, 1);
    result =
        call(made, &PyTuple_GET_ITEM(function->func_doc, 0), (size_t)(arguments - named), keys);
    compat_uncount(ts, -1);
    return result;
}

/* ---- enter_resume_function(): put the values in place in the second part ---- */

/* FRAME runs a function that leave_to_resume_function() made: release the function's closure, and
 * the values that leave_to_resume_function() has stored in it. Returns false if
 * leave_to_resume_function() did not make the function, or if enter_resume_function() was called
 * before, for example because a debugger jumped to the first line. */
static bool release_handed_over_values(compat_frame *frame)
{
    PyFunctionObject *function = compat_get_function(frame);
    PyObject *handed = PyFunction_Check(function) ? function->func_doc : NULL;
    bool is_marked = handed && PyTuple_CheckExact(handed) && PyTuple_GET_SIZE(handed) > 0;

    is_marked = is_marked && PyTuple_GET_ITEM(handed, PyTuple_GET_SIZE(handed) - 1) == UNBOUND;
    /* checked, too, because the program may have set __doc__ */
    is_marked = is_marked && function->vectorcall == raise_on_direct_call;
    if (is_marked) {
        Py_CLEAR(function->func_closure); /* no longer needed, because the frame holds the cells */
        Py_CLEAR(function->func_doc);
    }
    return is_marked;
}

int link_prepare_to_enter_again(PyFunctionObject *function, PyObject *closure)
{
    OWNED PyObject *marked = PyTuple_Pack(1, UNBOUND);

    if (!marked)
        return -1;
    Py_XSETREF(function->func_closure, Py_XNewRef(closure));
    Py_XSETREF(function->func_doc, Py_NewRef(marked));
    return 0;
}

/* Variable number FREE is a free variable in which a cell was handed over. Move the cell to the
 * variable of the same name, for which MAKE_CELL has just made another cell. That one is dropped;
 * it can have content only by a write through f_locals. */
static void move_cell_to_variable(compat_frame *frame, PyCodeObject *code, int free)
{
    const int at = find_variable(code, PyTuple_GET_ITEM(code->co_localsplusnames, free), true);

    /* it is a free variable of the original function, too, so there is no other variable */
    if (at == free)
        return;
    compat_drop_local(frame, at);
    compat_store_local(frame, at, Py_XNewRef(compat_get_local(frame, free)));
    /* In older CPythons the cell stays in both variables, and f_locals may write it twice with the
     * same value. Newer ones must find each name only once. */
    if (COMPAT_FREE_MAY_BE_NULL)
        compat_drop_local(frame, free);
}

static PyObject *enter_resume_function(PyObject *link, PyObject *ignored)
{
    compat_frame *frame = compat_current_frame(PyThreadState_Get());
    PyCodeObject *code = frame ? compat_get_code(frame) : NULL;
    const Py_ssize_t locals = read_number_of_link(link, LINK_LOCALS);
    const Py_ssize_t depth = read_number_of_link(link, LINK_DEPTH);
    const char *filled = PyBytes_AS_STRING(PyTuple_GET_ITEM(link, LINK_FILLED));
    bool lacks = false;

    if (!code || link_of(code) != link || !release_handed_over_values(frame))
        return PyErr_Format(PyExc_RuntimeError, "only a resume function may call this, once");
    for (int i = code->co_nlocalsplus - code->co_nfreevars; i < code->co_nlocalsplus; i++)
        move_cell_to_variable(frame, code, i);
    for (int i = 0; i < code->co_nlocalsplus + depth;
         i++) { /* first the function's variables, then its stack slots */
        const bool is_argument = i >= locals && i < code->co_argcount + code->co_kwonlyargcount;
        if (!is_argument && compat_get_local(frame, i) != UNBOUND)
            continue;
        /* A stack slot has no value: the first part left its value in a variable, which the program
         * has deleted through f_locals. CPython would use the NULL without checking. */
        if (i >= code->co_nlocalsplus && filled[i - code->co_nlocalsplus])
            lacks = true;
        else
            compat_drop_local(frame, i);
    }
    if (lacks)
        return PyErr_Format(PyExc_RuntimeError, "a value on the stack of %U() is gone",
                            code->co_name);
    Py_RETURN_NONE;
}

PyObject *link_of(PyCodeObject *code)
{
    PyObject *constant = find_constant(code, enter_resume_function, NULL);

    return constant ? PyCFunction_GET_SELF(constant) : NULL;
}

PyCodeObject *link_origin(PyObject *link)
{
    PyObject *known = ((PyWeakReference *)PyTuple_GET_ITEM(link, LINK_ORIGIN))->wr_object;

    return known == Py_None || !Py_REFCNT(known) ? NULL : (PyCodeObject *)Py_NewRef(known);
}

PyMethodDef leave_method = {
    "leave", leave_to_resume_function, METH_NOARGS,
    "leave()\n\nHands the caller's variables over to its resume function, and calls that."};
PyMethodDef enter_method = {"enter", enter_resume_function, METH_NOARGS,
                            "enter()\n\nCalled by a resume function that has put the stack in "
                            "place: unbinds what has no value."};
