/* tracer/perf.c -- perf's trampolines work, and are seen to work, with our hook above them.
 *
 * Runs in: the traced process.
 *
 * With -X perf, or sys.activate_stack_trampoline(), CPython puts an evaluator of its own into the slot that also our
 * hook is in. Ours calls the one that was there before (record_evaluate), so the trampolines run; but the functions of
 * sys, and CPython after a fork, look at the slot itself. While they do, it holds what it would hold without us:
 *
 *     sys.*_stack_trampoline()    hook out, the original, what it left is what we call from now on, hook in
 *     fork                        hook out in the child, before CPython starts the trampolines there again;
 *                                 hook in by a function registered with os.register_at_fork */
#include "tracer/tracer.h"

#define P tracer_process

static bool watched; /* fork is */
static bool aside;   /* the hook is out, in a child that was just forked */

static bool take_out(void)
{
    if (!P.hook || compat_evaluator(P.interpreter) != P.hook)
        return false; /* another hook lies above ours: the slot shows that one */
    compat_set_evaluator(P.interpreter, P.evaluate);
    return true;
}

static void put_in(void)
{
    P.evaluate = compat_evaluator(P.interpreter);
    compat_set_evaluator(P.interpreter, P.hook);
}

void tracer_perf_forked(void)
{
    aside = watched && P.evaluate != _PyEval_EvalFrameDefault && PyGILState_GetThisThreadState() && take_out();
}

static PyObject *after_fork(PyObject *self, PyObject *ignored)
{
    if (aside)
        put_in();
    aside = false;
    Py_RETURN_NONE;
}

static PyMethodDef after_fork_method = {"after_fork", after_fork, METH_NOARGS, NULL};

static void watch_fork(void)
{
    PyObject *posix, *function, *names, *given, *done = NULL;

    if (watched || P.evaluate == _PyEval_EvalFrameDefault)
        return;
    posix = PyImport_ImportModule("posix");
    function = posix ? tracer_attribute(posix, "register_at_fork") : NULL;
    given = PyCFunction_NewEx(&after_fork_method, NULL, NULL);
    names = Py_BuildValue("(s)", "after_in_child");
    if (function && given && names)
        done = PyObject_Vectorcall(function, &given, 0, names);
    watched = done != NULL;
    PyErr_Clear();
    Py_XDECREF(posix);
    Py_XDECREF(function);
    Py_XDECREF(given);
    Py_XDECREF(names);
    Py_XDECREF(done);
}

static PyObject *without_us(struct tracer_led *f, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    bool out = PyInterpreterState_Get() == P.interpreter && take_out();
    PyObject *result = tracer_led_original(f, self, args, n, names);

    if (out) {
        PyObject *type, *value, *traceback;
        put_in();
        PyErr_Fetch(&type, &value, &traceback);
        watch_fork();
        PyErr_Restore(type, value, traceback);
    }
    return result;
}

static struct tracer_led led[3];

#define ENTRY(number)                                                                                                 \
    static PyObject *entry_##number(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)               \
    {                                                                                                                 \
        return without_us(&led[number], self, args, n, names);                                                        \
    }
ENTRY(0) ENTRY(1) ENTRY(2)
#undef ENTRY

static struct tracer_led led[3] = {
    {"sys", "is_stack_trampoline_active", entry_0, {0}},
    {"sys", "activate_stack_trampoline", entry_1, {0}},
    {"sys", "deactivate_stack_trampoline", entry_2, {0}},
};

void tracer_perf_start(void)
{
    for (size_t i = 0; i < sizeof led / sizeof *led; i++)
        tracer_lead(&led[i]);
    watch_fork();
}
