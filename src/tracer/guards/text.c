/* tracer/guards/text.c -- values in words, for what a guard expected and what it got.
 *
 * Runs in: the traced process, under the GIL, when guards are made and after
 * one has failed.
 *
 * The values are the program's: a list of a million, a string of a gigabyte, a
 * tensor that would be computed in order to be printed, a __repr__ that raises.
 * So containers are cut before they are printed, arrays are summed up, and only
 * what is left is asked for its repr, whose failure becomes part of the text. */
#include "tracer/guards/tree.h"

enum { ITEMS = 6, DEPTH = 3 };

/* TEXT (stolen) without what is beyond GUARD_TEXT characters and without what a file cannot hold. */
static PyObject *cut(PyObject *text)
{
    PyObject *start, *result;

    if (!text || PyUnicode_GET_LENGTH(text) <= GUARD_TEXT)
        return text;
    start = PyUnicode_Substring(text, 0, GUARD_TEXT - 3);
    result = start ? PyUnicode_FromFormat("%U...", start) : NULL;
    Py_XDECREF(start);
    Py_DECREF(text);
    return result;
}

PyObject *guard_type_text(PyTypeObject *type)
{
    PyObject *module = NULL, *name, *text;

    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return PyUnicode_FromString(type->tp_name);
    Py_INCREF(type);
    if (type->tp_dict)
        module = PyDict_GetItemString(type->tp_dict, "__module__"); /* borrowed: nothing runs while it is used */
    name = ((PyHeapTypeObject *)type)->ht_qualname;
    if (!module || !PyUnicode_Check(module) || PyUnicode_CompareWithASCIIString(module, "builtins") == 0)
        text = Py_NewRef(name);
    else
        text = PyUnicode_FromFormat("%U.%U", module, name);
    Py_DECREF(type);
    return cut(text);
}

/* The name that functions, classes, modules and code objects carry; a new reference, or NULL. */
static PyObject *own_name(PyObject *object)
{
    PyObject *name = NULL;

    if (PyFunction_Check(object))
        name = ((PyFunctionObject *)object)->func_qualname;
    else if (PyCode_Check(object))
        name = ((PyCodeObject *)object)->co_qualname;
    else if (PyModule_Check(object) && PyModule_GetDict(object))
        name = PyDict_GetItemString(PyModule_GetDict(object), "__name__");
    return name && PyUnicode_Check(name) ? Py_NewRef(name) : NULL;
}

PyObject *guard_object_text(PyObject *object)
{
    PyObject *name, *type, *text = NULL;

    if (object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object))
        return guard_repr(object);
    if (PyType_Check(object)) {
        type = guard_type_text((PyTypeObject *)object);
        text = type ? PyUnicode_FromFormat("class %U at %p", type, object) : NULL;
        Py_XDECREF(type);
        return text;
    }
    if (PyCFunction_Check(object))
        return PyUnicode_FromFormat("builtin %s at %p", ((PyCFunctionObject *)object)->m_ml->ml_name, object);
    name = own_name(object);
    type = guard_type_text(Py_TYPE(object));
    if (type)
        text = name ? PyUnicode_FromFormat("%U %.100U at %p", type, name, object)
                    : PyUnicode_FromFormat("%U object at %p", type, object);
    Py_XDECREF(name);
    Py_XDECREF(type);
    return text;
}

PyObject *guard_exception_text(bool whole)
{
    PyObject *type, *value, *traceback, *name, *words = NULL, *text;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    name = type && PyType_Check(type) ? guard_type_text((PyTypeObject *)type) : PyUnicode_FromString("an exception");
    if (value && whole)
        words = PyObject_Str(value);
    if (!words) {
        PyErr_Clear();
        words = PyUnicode_FromString("");
    }
    text = name && words ? cut(PyUnicode_GET_LENGTH(words) ? PyUnicode_FromFormat("%U: %.100U", name, words)
                                                           : Py_NewRef(name))
                         : NULL;
    Py_XDECREF(name);
    Py_XDECREF(words);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return text;
}

static PyObject *text_of(PyObject *value, int depth);

/* "[a, b, ...]": ITEMS of a list or tuple, or keys and values of a dict. */
static PyObject *container_text(PyObject *container, int depth)
{
    bool dict = PyDict_CheckExact(container), list = PyList_CheckExact(container);
    const char *opening = dict ? "{" : list ? "[" : "(", *closing = dict ? "}" : list ? "]" : ")";
    PyObject *text, *key, *item, *word;
    Py_ssize_t at = 0, size = dict ? PyDict_GET_SIZE(container) : Py_SIZE(container);

    if (depth == DEPTH && size)
        return PyUnicode_FromFormat("%s...%s", opening, closing);
    text = PyUnicode_FromString(opening);
    /* A __repr__ may change the container: sizes are read anew. */
    for (Py_ssize_t i = 0; text && i < ITEMS; i++) {
        key = NULL;
        if (dict ? !PyDict_Next(container, &at, &key, &item) : i >= Py_SIZE(container))
            break;
        item = Py_NewRef(dict ? item : PySequence_Fast_GET_ITEM(container, i));
        if (key) {
            Py_INCREF(key);
            word = text_of(key, depth + 1);
            Py_DECREF(key);
            Py_SETREF(text, word ? PyUnicode_FromFormat("%U%s%U: ", text, i ? ", " : "", word) : NULL);
            Py_XDECREF(word);
        }
        word = text ? text_of(item, depth + 1) : NULL;
        Py_DECREF(item);
        if (!text)
            return NULL;
        Py_SETREF(text, word ? PyUnicode_FromFormat("%U%s%U", text, i && !key ? ", " : "", word) : NULL);
        Py_XDECREF(word);
    }
    if (text)
        Py_SETREF(text, PyUnicode_FromFormat("%U%s%s", text, size > ITEMS ? ", ..." : size == 1 && !dict && !list ? "," : "",
                                             closing));
    return text;
}

/* An array or tensor without its elements. */
static PyObject *array_text(PyObject *value)
{
    PyObject *type = guard_type_text(Py_TYPE(value)), *shape = NULL, *shape_text = NULL, *text = NULL;

    shape = type ? tracer_attribute(value, "shape") : NULL;
    if (shape && PyTuple_Check(shape)) {
        PyObject *plain = PyTuple_GetSlice(shape, 0, PyTuple_GET_SIZE(shape)); /* torch.Size is a subclass */
        shape_text = plain ? container_text(plain, 0) : NULL;
        Py_XDECREF(plain);
    }
    if (shape_text)
        text = PyUnicode_FromFormat("%U of shape %U", type, shape_text);
    Py_XDECREF(type);
    Py_XDECREF(shape);
    Py_XDECREF(shape_text);
    return text;
}

static PyObject *text_of(PyObject *value, int depth)
{
    PyTypeObject *type = Py_TYPE(value); /* up to where something may give the value another */
    PyObject *text, *part, *name;
    bool is_array;

    if (PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) > GUARD_TEXT) {
        part = PyUnicode_Substring(value, 0, GUARD_TEXT);
        text = part ? PyObject_Repr(part) : NULL;
        Py_XDECREF(part);
        return text;
    }
    if ((PyBytes_CheckExact(value) || PyByteArray_CheckExact(value)) && Py_SIZE(value) > GUARD_TEXT)
        return PyUnicode_FromFormat("%s of length %zd", type->tp_name, Py_SIZE(value));
    if (PyLong_CheckExact(value) && (size_t)_PyLong_NumBits(value) > 512) /* its decimal digits take long, or are refused */
        return PyUnicode_FromFormat("an int of %zu bits", (size_t)_PyLong_NumBits(value));
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value))
        return container_text(value, depth);
    if ((PyAnySet_CheckExact(value)) && PySet_GET_SIZE(value) > ITEMS)
        return PyUnicode_FromFormat("%s of length %zd", type->tp_name, PySet_GET_SIZE(value));
    name = own_name(value);
    Py_XDECREF(name);
    if (name || Py_TYPE(value)->tp_repr == PyBaseObject_Type.tp_repr || PyType_Check(value) || PyCFunction_Check(value))
        return guard_object_text(value);
    part = Py_NewRef((PyObject *)Py_TYPE(value));
    is_array = PyObject_CheckBuffer(value) || tracer_has(part, "requires_grad");
    Py_DECREF(part);
    if (is_array) {
        text = array_text(value);
        if (text || !PyErr_ExceptionMatches(PyExc_Exception))
            return text;
        PyErr_Clear();
    }
    text = PyObject_Repr(value);
    if (text || !PyErr_ExceptionMatches(PyExc_Exception))
        return cut(text);
    part = guard_exception_text(true);
    name = guard_type_text(Py_TYPE(value));
    text = part && name ? PyUnicode_FromFormat("%U object whose repr raised %U", name, part) : NULL;
    Py_XDECREF(part);
    Py_XDECREF(name);
    return text;
}

PyObject *guard_repr(PyObject *value)
{
    return cut(text_of(value, 0));
}
