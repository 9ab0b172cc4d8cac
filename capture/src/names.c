/* capture/src/names.c -- objects by name: of modules, builtins, polyfills and array packages. See
 * capture.h. */
#include "capture.h"

const struct shim_services *shim;

PyObject *word_of(const char *name)
{
    static PyObject *words; /* a set: they live on */
    OWNED PyObject *word = PyUnicode_InternFromString(name);
    const bool kept = word && (words || (words = PySet_New(NULL))) && !PySet_Add(words, word);

    PyErr_Clear();
    return kept ? word : Py_None; /* which nothing is called */
}

PyObject *module_has(PyObject **module, const char *which, const char *name)
{
    /* the builtins of the program's frame may not know how to import it */
    if (!*module && !(*module = PyImport_GetModule(word_of(which))))
        *module = PyImport_ImportModule(which);
    PyErr_Clear();
    return *module ? PyDict_GetItemString(PyModule_GetDict(*module), name) : NULL;
}

/* ---- builtins ---- */

PyObject *capture_builtins;

/* Is VALUE what CPython has as NAME in builtins, and no other function that was put there? */
static bool is_cpythons(PyObject *name, PyObject *value)
{
    if (PyCFunction_Check(value))
        return PyUnicode_CompareWithASCIIString(name,
                                                ((PyCFunctionObject *)value)->m_ml->ml_name) == 0;
    if (!PyType_Check(value))
        return false;
    if (PyType_FastSubclass((PyTypeObject *)value, Py_TPFLAGS_BASE_EXC_SUBCLASS))
        return true;
    return !PyType_HasFeature((PyTypeObject *)value, Py_TPFLAGS_HEAPTYPE);
}

PyObject *builtins_as_cpython_made_them(void)
{
    PyObject *builtins = PyEval_GetBuiltins();
    PyObject *found = PyDict_New();
    PyObject *name, *value;
    Py_ssize_t at = 0;

    while (found && PyDict_Next(builtins, &at, &name, &value))
        if (PyUnicode_Check(name) && is_cpythons(name, value) && PyDict_SetItem(found, name, value))
            Py_CLEAR(found);
    return found;
}

PyObject *builtin_named(const char *name)
{
    return PyDict_GetItemString(capture_builtins, name);
}

PyObject *operator_named(const char *name)
{
    static PyObject *module;
    PyObject *found = module_has(&module, "operator", name);

    return found ? found : builtin_named(name);
}

/* ---- what dyntrace._polyfills has ---- */

PyObject *polyfill(const char *name)
{
    static PyObject *module;
    PyObject *found = module_has(&module, "dyntrace._polyfills", name);

    if (found && PyFunction_Check(found) &&
        !compat_hides((PyCodeObject *)PyFunction_GET_CODE(found)))
        compat_hide_code((PyCodeObject *)PyFunction_GET_CODE(found));
    return found;
}

bool is_in(const char *name, const char *set)
{
    OWNED PyObject *word = PyUnicode_FromString(name);
    const bool is = word && polyfill(set) && PySet_Contains(polyfill(set), word) == 1;

    PyErr_Clear();
    return is;
}

/* ---- numpy and torch ---- */

bool is_in_package(const char *name, const char *package)
{
    size_t length = strlen(package);

    return !strncmp(name, package, length) && (name[length] == '.' || !name[length]);
}

bool is_array_package(const char *name)
{
    return name && (is_in_package(name, "numpy") || is_in_package(name, "torch"));
}

bool is_array_function(PyObject *callable)
{
    PyObject *module = NULL,
             *self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : NULL;
    const PyTypeObject *type =
        PyType_Check(callable) ? (PyTypeObject *)callable : Py_TYPE(callable);
    const char *name;

    if (PyFunction_Check(callable))
        module = ((PyFunctionObject *)callable)->func_module;
    else if (PyCFunction_Check(callable))
        module = ((PyCFunctionObject *)callable)->m_module;
    else if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
        return is_array_package(PyDescr_TYPE(callable)->tp_name);
    else if (PyType_Check(callable) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return is_array_package(type->tp_name);
    else
        module = _PyType_Lookup(Py_TYPE(callable), word_of("__module__"));
    if (self && !PyModule_Check(self) &&
        is_array_package(PyType_Check(self) ? ((PyTypeObject *)self)->tp_name
                                            : Py_TYPE(self)->tp_name))
        return true;
    name = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
    PyErr_Clear();
    /* a layer */
    return name && (PyFunction_Check(callable) || PyCFunction_Check(callable)
                        ? is_array_package(name)
                        : is_in_package(name, "torch.nn.modules"));
}
