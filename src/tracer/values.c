/* tracer/values.c -- what of the program's values may be told to the trace. See tracer/values.h.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/values.h"

#include <string.h>

#include "tracer/guards/tree.h"

PyObject *values_hidden(PyTypeObject *type)
{
    PyObject *name, *text;

    if (values_kept() != SESSION_VALUES_TYPES)
        return PyUnicode_FromString("value not recorded (--values off)");
    name = type ? guard_type_text(type) : PyUnicode_FromString("object");
    text = name ? PyUnicode_FromFormat("%U: value not recorded (--values types)", name) : NULL;
    Py_XDECREF(name);
    return text;
}

PyObject *values_aspect(PyObject *text)
{
    const char *words = PyUnicode_AsUTF8(text);
    size_t length = words ? strspn(words, "abcdefghijklmnopqrstuvwxyz_") : 0;
    PyObject *hidden = values_hidden(NULL), *aspect = NULL;

    PyErr_Clear();
    if (length && words[length] == '[')
        length += strcspn(words + length, "]") + 1;
    if (hidden && length && words[length] == ' ') {
        aspect = PyUnicode_FromStringAndSize(words, (Py_ssize_t)length + (strncmp(words + length, " = ", 3) ? 1 : 3));
        PyUnicode_AppendAndDel(&aspect, hidden);
        hidden = NULL;
    }
    return aspect ? aspect : hidden;
}

/* ---- sources ---- */

/* One step of PATH, borrowed; false, and no exception: it is none. */
static bool step_at(PyObject *path, Py_ssize_t at, int *letter, PyObject **key, PyObject **text)
{
    bool read = PyTuple_Check(path) && at >= 0 && at < PyTuple_GET_SIZE(path) &&
                PyArg_ParseTuple(PyTuple_GET_ITEM(path, at), "COU", letter, key, text);

    PyErr_Clear();
    return read;
}

/* Do the steps of PATH up to AT end in a tensor's sizes or strides, or in one of them? */
static bool is_shape(PyObject *path, Py_ssize_t at)
{
    static const char *const shapes[] = {"size", "shape", "stride", "strides", "ndim", "dim"};
    PyObject *key, *text;
    int letter;

    if (step_at(path, at, &letter, &key, &text) && letter == '[')
        at--;
    if (step_at(path, at, &letter, &key, &text) && letter == '(')
        at--;
    if (at < 1 || !step_at(path, at, &letter, &key, &text) || letter != '.' || !PyUnicode_Check(key))
        return false;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!PyUnicode_CompareWithASCIIString(key, shapes[i]))
            return true;
    return false;
}

static PyObject *source_of_path(PyObject *path)
{
    PyObject *source = NULL, *key, *text;
    int letter, root = 0;

    for (Py_ssize_t i = 0; step_at(path, i, &letter, &key, &text); i++) {
        bool name = PyUnicode_CheckExact(key) && PyUnicode_IsIdentifier(key) == 1;
        if (i == 0) {
            source = Py_NewRef(text);
            root = letter;
        } else if (letter == '(') {
            Py_SETREF(source, PyUnicode_FromFormat("%U()", source));
        } else if (letter == '.') {
            Py_SETREF(source, name ? PyUnicode_FromFormat("%U.%U", source, key) : PyUnicode_FromFormat("%U.<name>", source));
        } else if (i == 1 && name && strchr("LGB", root)) {
            Py_SETREF(source, PyUnicode_FromFormat("%U['%U']", source, key));
        } else if (PyLong_CheckExact(key) && is_shape(path, i - 1) && _PyLong_NumBits(key) <= 6) {
            Py_SETREF(source, PyUnicode_FromFormat("%U[%S]", source, key));
        } else {
            PyObject *type = guard_type_text(Py_TYPE(key));
            Py_SETREF(source, type ? PyUnicode_FromFormat("%U[<%U>]", source, type) : NULL);
            Py_XDECREF(type);
        }
        if (!source)
            break;
    }
    return source;
}

PyObject *values_source(PyObject *paths)
{
    PyObject *all = PyUnicode_FromString(""), *one;

    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(paths); i++) {
        one = source_of_path(PyTuple_GET_ITEM(paths, i));
        Py_SETREF(all, one ? PyUnicode_FromFormat("%U%s%U", all, i ? ", " : "", one) : NULL);
        Py_XDECREF(one);
    }
    return all;
}

bool values_is_shape(PyObject *path)
{
    return PyTuple_Check(path) && is_shape(path, PyTuple_GET_SIZE(path) - 1);
}

/* ---- names ---- */

PyObject *values_name(PyObject *object)
{
    return PyFunction_Check(object) ? Py_NewRef(((PyCodeObject *)PyFunction_GET_CODE(object))->co_qualname)
                                    : guard_type_text(Py_TYPE(object));
}

void values_thread_name(char *name)
{
    static const char *const made_up[] = {"Thread-", "Dummy-", "ThreadPoolExecutor-", "asyncio_"};

    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        size_t length = strlen(made_up[i]);
        if (!strncmp(name, made_up[i], length)) {
            name[length + strspn(name + length, "0123456789_")] = 0; /* "Thread-1 (work)": the target may have been renamed */
            return;
        }
    }
    name[0] = 0;
}
