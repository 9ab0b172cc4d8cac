/* yardstick.c -- what dyntrace is measured against, as the module `_yardstick`.
 *
 * Runs in: the process being measured. bench/bench.py builds it, once for each
 * interpreter, with the flags that extensions are usually built with.
 *
 *     _yardstick.use("pass")      from here on every frame goes through this
 *     program()
 *     _yardstick.use("none")      as if nothing had been there
 *     _yardstick.counted()        what the last counting yardstick has counted
 *
 * A yardstick is the least that its mechanism can do: a PEP 523 hook that only
 * calls the interpreter's own evaluator, one that writes the time down as well,
 * and a C profile function that returns at once. Nothing here needs CPython's internal headers. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../src/clock.h"

/* On 3.12 and 3.13 the evaluator takes 2 units of C recursion for each call from
 * C, which every call is under a hook; without giving them back a hooked program
 * ends in RecursionError at a fraction of its depth (gh-113655). */
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
#define DEPTH_COMPENSATE(ts, units) ((ts)->c_recursion_remaining += (units))
#else
#define DEPTH_COMPENSATE(ts, units) ((void)(ts))
#endif

enum { STAMPS = 1 << 16 };

static unsigned long long counted;
static uint64_t stamps[STAMPS];
static size_t stamped;

static PyObject *hook_pass(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwing)
{
    PyObject *result;

    DEPTH_COMPENSATE(ts, 2);
    result = _PyEval_EvalFrameDefault(ts, frame, throwing);
    DEPTH_COMPENSATE(ts, -2);
    return result;
}

static PyObject *hook_count(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwing)
{
    counted++;
    return hook_pass(ts, frame, throwing);
}

/* The least that exact times of every frame cost: a word with the counter when it begins and when it ends. */
static PyObject *hook_stamp(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwing)
{
    PyObject *result;

    stamps[stamped++ % STAMPS] = clock_counter();
    result = hook_pass(ts, frame, throwing);
    stamps[stamped++ % STAMPS] = clock_counter();
    return result;
}

static int profile_empty(PyObject *self, PyFrameObject *frame, int what, PyObject *argument)
{
    (void)self, (void)frame, (void)what, (void)argument;
    return 0;
}

/* Function entries and generator resumes are both PyTrace_CALL. */
static int profile_count(PyObject *self, PyFrameObject *frame, int what, PyObject *argument)
{
    (void)self, (void)frame, (void)argument;
    counted += what == PyTrace_CALL;
    return 0;
}

static const struct yardstick {
    const char *name;
    _PyFrameEvalFunction hook; /* NULL: the interpreter's own */
    Py_tracefunc profile;      /* NULL: none */
} yardsticks[] = {
    {"none", NULL, NULL},
    {"pass", hook_pass, NULL},
    {"count", hook_count, NULL},
    {"stamp", hook_stamp, NULL},
    {"profile", NULL, profile_empty},
    {"profile_count", NULL, profile_count},
};

/* Takes effect for frames that start from here on, on this thread. */
static PyObject *use(PyObject *module, PyObject *argument)
{
    const char *name = PyUnicode_AsUTF8(argument);

    (void)module;
    if (!name)
        return NULL;
    for (size_t i = 0; i < sizeof yardsticks / sizeof *yardsticks; i++) {
        const struct yardstick *y = &yardsticks[i];

        if (strcmp(name, y->name))
            continue;
        counted = y->hook == hook_count || y->profile == profile_count ? 0 : counted;
        _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), y->hook ? y->hook : _PyEval_EvalFrameDefault);
        PyEval_SetProfile(y->profile, NULL);
        Py_RETURN_NONE;
    }
    return PyErr_Format(PyExc_ValueError, "no yardstick named %R", argument);
}

static PyObject *get_counted(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(counted);
}

/* What a read of the counter takes, as dyntrace reads it (src/clock.h). */
static PyObject *get_counter_ns(PyObject *module, PyObject *unused)
{
    enum { READS = 100000 };
    double best = 1e9;

    (void)module, (void)unused;
    for (int turn = 0; turn < 30; turn++) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        for (int i = 0; i < READS; i++)
            (void)clock_counter();
        clock_gettime(CLOCK_MONOTONIC, &ended);
        double ns = (double)(ended.tv_sec - began.tv_sec) * 1e9 + (double)(ended.tv_nsec - began.tv_nsec);
        best = ns / READS < best ? ns / READS : best;
    }
    return PyFloat_FromDouble(best);
}

static PyMethodDef methods[] = {
    {"counter_ns", get_counter_ns, METH_NOARGS, "nanoseconds that a read of the processor's counter takes"},
    {"use", use, METH_O, "use(name): none, pass, count, profile or profile_count"},
    {"counted", get_counted, METH_NOARGS, "frames seen by the last counting yardstick"},
    {0},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_yardstick", "What dyntrace is measured against.", -1,
                                    methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__yardstick(void)
{
    return PyModule_Create(&module);
}
