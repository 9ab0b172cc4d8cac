/* capture/src/names.c -- find objects by name: builtins, polyfills, functions of numpy and torch.
 * See capture.h. */
#include "capture.h"

const struct shim_services *shim;

PyObject *intern_word(const char *name)
{
    static PyObject *words; /* owned: a set that keeps the interned strings alive */
    OWNED PyObject *word = PyUnicode_InternFromString(name);
    bool is_kept = false;

    if (!words)
        words = PySet_New(NULL);
    if (words && word)
        is_kept = !PySet_Add(words, word);
    PyErr_Clear();
    /* if memory ran out, return None, which is the name of no object */
    return is_kept ? word : Py_None;
}

PyObject *find_module_attribute(PyObject **module, const char *which, const char *name)
{
    if (!*module)
        *module = PyImport_GetModule(intern_word(which));
    /* import only a module that is not loaded yet: an import needs __import__, which the builtins
     * of the program's frame may lack */
    if (!*module)
        *module = PyImport_ImportModule(which);
    PyErr_Clear();
    return *module ? PyDict_GetItemString(PyModule_GetDict(*module), name) : NULL;
}

/* ---- builtins ---- */

PyObject *capture_builtins;

/* Is VALUE CPython's own builtin NAME, and not a replacement that the program has set? */
static bool is_cpython_builtin(PyObject *name, PyObject *value)
{
    if (PyCFunction_Check(value)) {
        const char *own_name = ((PyCFunctionObject *)value)->m_ml->ml_name;

        return !PyUnicode_CompareWithASCIIString(name, own_name);
    }
    if (!PyType_Check(value))
        return false;
    if (PyType_FastSubclass((PyTypeObject *)value, Py_TPFLAGS_BASE_EXC_SUBCLASS))
        return true;
    return !PyType_HasFeature((PyTypeObject *)value, Py_TPFLAGS_HEAPTYPE);
}

PyObject *copy_cpython_builtins(void)
{
    PyObject *builtins = PyEval_GetBuiltins();
    PyObject *found = PyDict_New();
    PyObject *name, *value;
    Py_ssize_t at = 0;

    while (found && PyDict_Next(builtins, &at, &name, &value))
        if (PyUnicode_Check(name) && is_cpython_builtin(name, value) &&
            PyDict_SetItem(found, name, value))
            Py_CLEAR(found);
    return found;
}

PyObject *get_builtin(const char *name)
{
    return PyDict_GetItemString(capture_builtins, name);
}

PyObject *get_operator(const char *name)
{
    static PyObject *module;
    PyObject *found = find_module_attribute(&module, "operator", name);

    return found ? found : get_builtin(name);
}

/* ---- functions and tables of dyntrace._polyfills ---- */

PyObject *get_polyfill(const char *name)
{
    static PyObject *module;
    PyObject *found = find_module_attribute(&module, "dyntrace._polyfills", name);
    PyCodeObject *code;

    if (!found || !PyFunction_Check(found))
        return found;
    code = (PyCodeObject *)PyFunction_GET_CODE(found);
    if (!compat_are_frames_hidden(code))
        compat_hide_frames_of_code(code);
    return found;
}

PyObject *get_table_entry(const char *table, const char *name)
{
    PyObject *entries = get_polyfill(table);

    return entries ? PyDict_GetItemString(entries, name) : NULL;
}

bool is_in_set(const char *name, const char *set)
{
    OWNED PyObject *word = PyUnicode_FromString(name);
    PyObject *names = get_polyfill(set);
    const bool is = word && names && PySet_Contains(names, word) == 1;

    PyErr_Clear();
    return is;
}

/* ---- numpy and torch ---- */

bool is_in_package(const char *name, const char *package)
{
    const size_t length = strlen(package);

    if (strncmp(name, package, length))
        return false;
    return name[length] == '.' || !name[length];
}

bool is_array_package(const char *name)
{
    if (!name)
        return false;
    return is_in_package(name, "numpy") || is_in_package(name, "torch");
}

/* Return the __module__ of a C function: borrowed; NULL if it is not a string. */
static const char *get_c_function_module(PyObject *callable)
{
    PyObject *module = ((PyCFunctionObject *)callable)->m_module;
    const char *name = NULL;

    if (module && PyUnicode_CheckExact(module))
        name = PyUnicode_AsUTF8(module);
    PyErr_Clear();
    return name;
}

bool is_c_function_of(PyObject *callable, const char *module)
{
    const char *name = PyCFunction_CheckExact(callable) ? get_c_function_module(callable) : NULL;

    return name && !strcmp(name, module);
}

/* Is this a C function of numpy or torch, or a method of one of their types? */
static bool is_c_function_of_array_package(PyObject *callable)
{
    PyObject *self = PyCFunction_GET_SELF(callable);
    const PyTypeObject *type;

    if (self && !PyModule_Check(self)) {
        type = PyType_Check(self) ? (PyTypeObject *)self : Py_TYPE(self);
        if (is_array_package(type->tp_name))
            return true;
    }
    return is_array_package(get_c_function_module(callable));
}

/* Return the string OBJECT, the name of a module; "" if OBJECT is not a string. */
static const char *get_module_name(PyObject *object)
{
    const char *name = NULL;

    if (object && PyUnicode_CheckExact(object))
        name = PyUnicode_AsUTF8(object);
    PyErr_Clear();
    return name ? name : "";
}

bool is_array_function(PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable);

    if (PyFunction_Check(callable))
        return is_array_package(get_module_name(((PyFunctionObject *)callable)->func_module));
    if (PyCFunction_Check(callable))
        return is_c_function_of_array_package(callable);
    if (type == &PyMethodDescr_Type)
        return is_array_package(PyDescr_TYPE(callable)->tp_name);
    if (PyType_Check(callable))
        return is_array_package(((PyTypeObject *)callable)->tp_name);
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return is_array_package(type->tp_name);
    /* an instance of one of torch's own layer classes, e.g. torch.nn.Linear */
    return is_in_package(get_module_name(_PyType_Lookup(type, intern_word("__module__"))),
                         "torch.nn.modules");
}
