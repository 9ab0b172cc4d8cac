/* tracer/values.c -- the program's values in words, as far as they may be recorded. See tracer/values.h.
 *
 * Runs in: the traced process, under the GIL, when guards are made and after one has failed. The values are the
 * program's: a list of a million, a tensor that would be computed in order to be printed, a __repr__ that raises. So
 * containers are cut before they are printed, arrays are summed up, and only the rest is given to repr(), whose failure
 * is in the text. */
#include "tracer/values.h"

#include <stdarg.h>
#include <string.h>

enum { ITEMS = 6, DEPTH = 3 };

const char *values_utf8(PyObject *text, size_t most, size_t *bytes, PyObject **keep)
{
    Py_ssize_t length = 0;
    const char *utf8 = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;

    *keep = NULL;
    if (!utf8) {
        PyErr_Clear();
        *keep = PyUnicode_Check(text) ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
        if (!*keep || PyBytes_AsStringAndSize(*keep, (char **)&utf8, &length)) {
            PyErr_Clear();
            *bytes = 1;
            return "?";
        }
    }
    if ((size_t)length > most)
        for (length = (Py_ssize_t)most; (utf8[length] & 0xc0) == 0x80;)
            length--;
    *bytes = (size_t)length;
    return utf8;
}

PyObject *values_format(const char *format, ...)
{
    PyObject *parts[4], *text = NULL;
    int count = 0, missing = 0;
    va_list all, each;

    va_start(all, format);
    va_copy(each, all);
    for (const char *at = format; (at = strchr(at, '%'));) {
        at += 1 + strspn(at + 1, ".0123456789");
        if (*at == 'U')
            missing += !(parts[count++] = va_arg(each, PyObject *));
        else if (*at == 's' || *at == 'p')
            (void)va_arg(each, const void *);
        else if (*at == 'z')
            (void)va_arg(each, Py_ssize_t);
        else
            (void)va_arg(each, int);
    }
    if (!missing)
        text = PyUnicode_FromFormatV(format, all);
    while (count)
        Py_XDECREF(parts[--count]);
    va_end(each);
    va_end(all);
    return text;
}

/* TEXT (stolen) without what is beyond VALUES_TEXT characters. */
static PyObject *cut(PyObject *text)
{
    if (text && PyUnicode_GET_LENGTH(text) > VALUES_TEXT)
        Py_SETREF(text, values_format("%U...", PyUnicode_Substring(text, 0, VALUES_TEXT - 3)));
    return text;
}

PyObject *values_type(PyTypeObject *type)
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

PyObject *values_object(PyObject *object)
{
    PyObject *name, *type;

    if (object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object))
        return values_repr(object);
    if (PyType_Check(object))
        return values_format("class %U at %p", values_type((PyTypeObject *)object), object);
    if (PyCFunction_Check(object))
        return PyUnicode_FromFormat("builtin %s at %p", ((PyCFunctionObject *)object)->m_ml->ml_name, object);
    name = own_name(object);
    type = values_type(Py_TYPE(object));
    return name ? values_format("%U %.100U at %p", type, name, object) : values_format("%U object at %p", type, object);
}

PyObject *values_exception(bool whole)
{
    PyObject *type, *value, *traceback, *name, *words = NULL;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    name = type && PyType_Check(type) ? values_type((PyTypeObject *)type) : PyUnicode_FromString("an exception");
    if (value && whole && !(words = PyObject_Str(value)))
        PyErr_Clear();
    if (words && PyUnicode_GET_LENGTH(words))
        name = values_format("%U: %.100U", name, Py_NewRef(words));
    Py_XDECREF(words);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return cut(name);
}

static PyObject *text_of(PyObject *value, int depth);

/* "[a, b, ...]": ITEMS of a list or tuple, or keys and values of a dict. */
static PyObject *container_text(PyObject *container, int depth)
{
    bool dict = PyDict_CheckExact(container), list = PyList_CheckExact(container);
    const char *opening = dict ? "{" : list ? "[" : "(", *closing = dict ? "}" : list ? "]" : ")";
    PyObject *text, *key = NULL, *item;
    Py_ssize_t at = 0, size = dict ? PyDict_GET_SIZE(container) : Py_SIZE(container);

    if (depth == DEPTH && size)
        return PyUnicode_FromFormat("%s...%s", opening, closing);
    text = PyUnicode_FromString(opening);
    /* A __repr__ may change the container: sizes are read anew. */
    for (Py_ssize_t i = 0; text && i < ITEMS; i++) {
        if (dict ? !PyDict_Next(container, &at, &key, &item) : i >= Py_SIZE(container))
            break;
        item = Py_NewRef(dict ? item : PySequence_Fast_GET_ITEM(container, i));
        Py_XINCREF(key);
        if (i)
            text = values_format("%U, ", text);
        if (text && key)
            text = values_format("%U%U: ", text, text_of(key, depth + 1));
        if (text)
            text = values_format("%U%U", text, text_of(item, depth + 1));
        Py_XDECREF(key);
        Py_DECREF(item);
    }
    return values_format("%U%s%s", text, size > ITEMS ? ", ..." : size == 1 && !dict && !list ? "," : "", closing);
}

/* An array or tensor without its elements. NULL without an exception: it has no shape. */
static PyObject *array_text(PyObject *value)
{
    PyObject *type = values_type(Py_TYPE(value)), *shape = type ? tracer_attribute(value, "shape") : NULL, *text = NULL;

    if (shape && PyTuple_Check(shape)) {
        PyObject *plain = PyTuple_GetSlice(shape, 0, PyTuple_GET_SIZE(shape)); /* torch.Size is a subclass */
        text = plain ? container_text(plain, 0) : NULL;
        Py_XDECREF(plain);
    }
    Py_XDECREF(shape);
    return values_format("%U of shape %U", type, text);
}

static PyObject *text_of(PyObject *value, int depth)
{
    PyTypeObject *type = Py_TYPE(value); /* up to where something may give the value another */
    PyObject *text, *part, *name;
    bool is_array;

    if (PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) > VALUES_TEXT) {
        part = PyUnicode_Substring(value, 0, VALUES_TEXT);
        text = part ? PyObject_Repr(part) : NULL;
        Py_XDECREF(part);
        return text;
    }
    if ((PyBytes_CheckExact(value) || PyByteArray_CheckExact(value)) && Py_SIZE(value) > VALUES_TEXT)
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
        return values_object(value);
    part = Py_NewRef((PyObject *)Py_TYPE(value));
    is_array = PyObject_CheckBuffer(value) || tracer_has(part, "requires_grad");
    Py_DECREF(part);
    if (is_array) {
        text = array_text(value);
        if (text || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)))
            return text;
        PyErr_Clear();
    }
    text = PyObject_Repr(value);
    if (text || !PyErr_ExceptionMatches(PyExc_Exception))
        return cut(text);
    part = values_exception(true);
    return values_format("%U object whose repr raised %U", values_type(Py_TYPE(value)), part);
}

PyObject *values_repr(PyObject *value)
{
    return cut(text_of(value, 0));
}

/* ---- what may be recorded ---- */

PyObject *values_hidden(PyTypeObject *type)
{
    if (values_kept() != SESSION_VALUES_TYPES)
        return PyUnicode_FromString("value not recorded (--values off)");
    return values_format("%U: value not recorded (--values types)",
                         type ? values_type(type) : PyUnicode_FromString("object"));
}

PyObject *values_hidden_aspect(const char *aspect, int dimension)
{
    PyObject *hidden = values_hidden(NULL);

    if (!aspect)
        return hidden;
    return dimension < 0 ? values_format("%s %U", aspect, hidden)
                         : values_format("%s[%d] = %U", aspect, dimension, hidden);
}

/* ---- names ---- */

PyObject *values_name(PyObject *object)
{
    return PyFunction_Check(object) ? Py_NewRef(((PyCodeObject *)PyFunction_GET_CODE(object))->co_qualname)
                                    : values_type(Py_TYPE(object));
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
