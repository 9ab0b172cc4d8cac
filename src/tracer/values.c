/* tracer/values.c -- makes text of the program's values, for facts.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/tracer.h"

size_t values_cut_utf8(const char *utf8, size_t bytes, size_t most)
{
    if (bytes <= most)
        return bytes;
    while (most && (utf8[most] & 0xc0) == 0x80)
        most--;
    return most;
}

const char *values_convert_to_utf8(PyObject *text, size_t most, size_t *bytes, PyObject **keep)
{
    Py_ssize_t length = 0;
    const char *utf8 = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;

    *keep = NULL;
    if (!utf8) {
        PyErr_Clear();
        *keep = PyUnicode_Check(text) ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace")
                                      : NULL;
        if (!*keep || PyBytes_AsStringAndSize(*keep, (char **)&utf8, &length)) {
            PyErr_Clear();
            *bytes = 1;
            return "?";
        }
    }
    *bytes = values_cut_utf8(utf8, (size_t)length, most);
    return utf8;
}

PyObject *values_name(PyObject *object)
{
    PyObject *text;

    if (PyFunction_Check(object))
        return Py_NewRef(((PyCodeObject *)PyFunction_GET_CODE(object))->co_qualname);
    /* not the repr of a metaclass of the program: type.__repr__ gives "<class 'a.b'>" */
    text = PyType_Type.tp_repr((PyObject *)Py_TYPE(object));
    if (text)
        Py_SETREF(text, PyUnicode_Substring(text, 8, PyUnicode_GET_LENGTH(text) - 2));
    return text;
}

/* Would the buffer of VALUE come from a method of the program (__buffer__)? */
static bool has_buffer_method_of_program(PyObject *value)
{
    OWNED PyObject *name =
        COMPAT_HAS_BUFFER_METHOD ? PyUnicode_InternFromString("__buffer__") : NULL;
    OWNED PyObject *method = name ? compat_type_lookup(Py_TYPE(value), name) : NULL;

    return method && !Py_IS_TYPE(method, &PyWrapperDescr_Type);
}

void values_describe_shape(PyObject *value, char *text, size_t room)
{
    Py_buffer view;
    size_t used = 0;

    text[0] = 0;
    if (!PyObject_CheckBuffer(value) || PyBytes_Check(value) || has_buffer_method_of_program(value))
        return;
    if (PyObject_GetBuffer(value, &view, PyBUF_FULL_RO)) {
        PyErr_Clear();
        return;
    }
    if (view.format)
        used = values_cut_utf8(view.format, strlen(view.format), room - sizeof " [");
    used = (size_t)snprintf(text, room, "%s%.*s[", view.format ? " " : "", (int)used,
                            view.format ? view.format : "");
    for (int i = 0; view.shape && i < view.ndim && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, i ? ", %zd" : "%zd", view.shape[i]);
    if (used < room)
        snprintf(text + used, room - used, "]");
    PyBuffer_Release(&view);
}
