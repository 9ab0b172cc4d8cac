/* A frame evaluator of somebody else's: what test_foreign.py and test_ending.py load. It counts calls and passes on to the one that
 * it found; or it takes the place and passes on to CPython. */
#include "tracer/compat/cpython.h"

static _PyFrameEvalFunction found;
static long calls;

static PyObject *count(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwflag)
{
    calls++;
    return found(ts, frame, throwflag);
}

static PyObject *replace(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwflag)
{
    calls++;
    return _PyEval_EvalFrameDefault(ts, frame, throwflag);
}

static PyObject *put(_PyFrameEvalFunction evaluate)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();

    found = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    Py_RETURN_NONE;
}

static PyObject *install(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return put(count);
}

static PyObject *take(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return put(replace);
}

static PyObject *clear(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return put(_PyEval_EvalFrameDefault);
}

static PyObject *restore(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), found);
    Py_RETURN_NONE;
}

static PyObject *counted(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return PyLong_FromLong(calls);
}

static PyMethodDef methods[] = {
    {"install", install, METH_NOARGS, NULL},
    {"take", take, METH_NOARGS, NULL},
    {"clear", clear, METH_NOARGS, NULL},
    {"restore", restore, METH_NOARGS, NULL},
    {"counted", counted, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "foreign", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_foreign(void)
{
    return PyModule_Create(&definition);
}
