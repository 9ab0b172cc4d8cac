/* tracer/torch/guards.c -- entries whose guards are torch's, and what the trace says of those.
 *
 * Runs in: the traced process, under the GIL.
 *
 * A guard manager of torch's has a tree, `root`, whose check() is the check of an entry, and is given its entry and
 * that one's state (`cache_entry`, `extra_state`), through which it invalidates the entry when an object that it names
 * dies. What its guards ask, python/dyntrace/_torch_guards.py reads off it. */
#include "tracer/torch/torch.h"

/* The bound check of guard manager GUARD's tree NAME. New reference; NULL: it has none, or, with an exception, it could
 * not be had. */
static PyObject *check_in(PyObject *guard, const char *name)
{
    PyObject *root = tracer_attribute(guard, name), *check = NULL;

    if (root && root != Py_None)
        check = tracer_attribute(root, "check");
    Py_XDECREF(root);
    return check;
}

PyObject *torch_check_of(PyObject *guard)
{
    return check_in(guard, "root");
}

void torch_update_difference(struct cache_parts *parts)
{
    PyObject *check = check_in(parts->guard, "diff_guard_root");

    if (!PyErr_Occurred())
        Py_XSETREF(parts->difference, check);
}

static PyObject *view_of(struct code_state *state)
{
    if (!state->view && (state->view = PyObject_New(struct state_view, &torch_state_type)))
        state->view->state = state;
    return (PyObject *)state->view;
}

static void view_free(PyObject *self)
{
    PyObject_Free(self);
}

static PyObject *view_invalidate(PyObject *self, PyObject *args)
{
    struct state_view *view = (struct state_view *)self;
    PyObject *entry, *instead, *more = NULL, *reason;
    const char *words = NULL;

    if (!PyArg_ParseTuple(args, "O!O|O:invalidate", &cache_entry_type, &entry, &instead, &more))
        return NULL;
    reason = tracer_attribute(instead, "invalidation_reason");
    if (reason && PyUnicode_Check(reason))
        words = PyUnicode_AsUTF8(reason);
    PyErr_Clear();
    if (view->state && ((struct cache_entry *)entry)->state == view->state) {
        Py_INCREF(entry);
        cache_entry_invalidate((struct cache_entry *)entry, words ? words : "invalidated by torch", instead);
        Py_DECREF(entry);
    }
    Py_XDECREF(reason);
    Py_RETURN_NONE;
}

static PyMethodDef view_methods[] = {
    {"invalidate", view_invalidate, METH_VARARGS,
     "invalidate(entry, deleted_guard_manager)\n\nThe entry never matches again."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject torch_state_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dyntrace._ExtraState",
    .tp_basicsize = sizeof(struct state_view),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The cache of one code object.",
    .tp_dealloc = view_free,
    .tp_methods = view_methods,
};

/* GUARD's idea of its entry and of that one's state. -1 with an exception. */
static int tell_guard(PyObject *guard, PyObject *entry, PyObject *view)
{
    return PyObject_SetAttrString(guard, "cache_entry", entry) || PyObject_SetAttrString(guard, "extra_state", view)
               ? -1
               : 0;
}

static void forget_entry(PyObject *guard)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (tell_guard(guard, Py_None, Py_None))
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

int torch_entry_bind(struct cache_entry *entry, struct cache_parts *parts)
{
    PyObject *view = entry->state ? Py_XNewRef(view_of(entry->state)) : NULL;
    int status = view ? tell_guard(parts->guard, (PyObject *)entry, view) : -1;

    Py_XDECREF(view);
    if (status) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return -1;
    }
    torch_update_difference(parts);
    PyErr_Clear();
    if (!entry->valid) /* what ran has invalidated it: it was to forget the entry, and has learned of it since */
        forget_entry(parts->guard);
    return 0;
}

void torch_entry_unbind(struct cache_entry *entry, PyObject *guard)
{
    PyObject *words = PyUnicode_FromString("Invalidated");

    forget_entry(guard);
    if (words)
        Py_XSETREF(entry->annotation, words);
}

/* ---- what the trace says of them ---- */

PyObject *torch_leaves(PyObject *guard, PyObject **view)
{
    PyObject *guards = Py_XNewRef(torch_settings.guards), *rows = NULL;
    struct torch_quiet quiet;

    if (!guards)
        return NULL;
    torch_quiet_begin(&quiet);
    *view = PyObject_CallOneArg(guards, guard);
    if (*view)
        rows = tracer_attribute(*view, "rows");
    if (rows)
        Py_SETREF(rows, PyList_AsTuple(rows));
    for (Py_ssize_t i = 0; rows && i < PyTuple_GET_SIZE(rows); i++)
        if (!PyTuple_Check(PyTuple_GET_ITEM(rows, i)) || PyTuple_GET_SIZE(PyTuple_GET_ITEM(rows, i)) < 4) {
            Py_CLEAR(rows);
            break;
        }
    if (!rows)
        torch_bridge_failed("an entry's guards");
    torch_quiet_end(&quiet);
    Py_DECREF(guards);
    return rows;
}

struct guard_outcome torch_failed(const struct cache_entry *entry, const struct cache_parts *parts, compat_frame *frame,
                                  PyObject *locals)
{
    struct guard_outcome outcome = {GUARD_FAIL, 0, UINT32_MAX};
    struct torch_quiet quiet;
    PyObject *found, *order, *words;
    long failed, run;

    if (!parts->view || !locals || entry->id == ENTRY_UNRECORDED)
        return outcome;
    torch_quiet_begin(&quiet);
    found = tracer_call(parts->view, "failing", locals, frame->f_globals, NULL);
    if (found && PyArg_ParseTuple(found, "llO", &failed, &run, &order)) {
        if (failed >= 0 && failed < (long)entry->guards)
            outcome.failed = (uint32_t)failed;
        outcome.guards_run = run > 0 ? (uint32_t)run : 0;
        words = PyList_Check(order) ? PyObject_Repr(order) : NULL;
        if (words)
            decision_entry_order_words(entry, words);
        Py_XDECREF(words);
    } else {
        torch_bridge_failed("the guard that failed");
    }
    Py_XDECREF(found);
    torch_quiet_end(&quiet);
    return outcome;
}

PyObject *torch_explain(PyObject *view, compat_frame *frame, PyObject *locals)
{
    struct torch_quiet quiet;
    PyObject *found;

    torch_quiet_begin(&quiet);
    found = tracer_call(view, "explain", locals, frame->f_globals, NULL);
    if (!found || !PyList_Check(found)) {
        torch_bridge_failed("why an entry does not fit");
        Py_CLEAR(found);
    }
    torch_quiet_end(&quiet);
    return found;
}
