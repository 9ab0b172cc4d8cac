/* tracer/exec.c -- children of a traced process are traced too.
 *
 * Runs in: the traced process.
 *
 * The program does not see our variables (inject.h) in os.environ, so it may hand
 * a child an environment without them, or overwrite the one that C sees. The few
 * built-in functions that start a program are therefore changed in place: the
 * function object stays the same object, with the same name and text; only where
 * it leads is ours. It adds our variables to the child's environment and goes on to
 * the original. The child's sitecustomize takes them out again.
 *
 * The caller's own environment object is never changed: a copy is passed. */
#include "tracer/tracer.h"

#include <stdlib.h>
#include <string.h>

#include "inject.h"

#define P tracer_process

/* A built-in that starts a program. */
struct followed {
    struct tracer_led led;
    int environment;     /* position of its environment argument, -1: inherits C's */
    int program, words;  /* of the program's name and its arguments, -1: one text for a shell */
};

static struct followed followed[6];
static PyObject *follow(struct followed *f, PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

#define ENTRY(number)                                                                                        \
    static PyObject *entry_##number(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)      \
    {                                                                                                        \
        return follow(&followed[number], self, args, n, names);                                              \
    }
ENTRY(0) ENTRY(1) ENTRY(2) ENTRY(3) ENTRY(4) ENTRY(5)
#undef ENTRY

static struct followed followed[6] = {
    {{"_posixsubprocess", "fork_exec", entry_0, {0}}, 5, 1, 0},
    {{"posix", "execve", entry_1, {0}}, 2, 0, 1},
    {{"posix", "posix_spawn", entry_2, {0}}, 2, 0, 1},
    {{"posix", "posix_spawnp", entry_3, {0}}, 2, 0, 1},
    {{"posix", "execv", entry_4, {0}}, -1, 0, 1},
    {{"posix", "system", entry_5, {0}}, -1, -1, 0},
};

/* The value of NAME in an entry "NAME=value" of a list, or NULL. Borrowed. */
static const char *value_in(PyObject *entry, const char *name)
{
    size_t length = strlen(name);
    const char *text = PyBytes_Check(entry) ? PyBytes_AS_STRING(entry) : "";

    return !strncmp(text, name, length) && text[length] == '=' ? text + length + 1 : NULL;
}

/* Put "NAME=VALUE" into LIST in place of the first that names it. */
static int list_set(PyObject *list, const char *name, const char *value)
{
    PyObject *entry = PyBytes_FromFormat("%s=%s", name, value);
    Py_ssize_t at = 0;
    int result;

    if (!entry)
        return -1;
    while (at < PyList_GET_SIZE(list) && !value_in(PyList_GET_ITEM(list, at), name))
        at++;
    if (at < PyList_GET_SIZE(list))
        return PyList_SetItem(list, at, entry);
    result = PyList_Append(list, entry);
    Py_DECREF(entry);
    return result;
}

/* A copy of a list of b"NAME=value", mended. New reference, or NULL with no
 * exception set: pass the caller's own. */
static PyObject *mend_list(PyObject *list)
{
    PyObject *copy = PySequence_List(list);
    const char *old = NULL;
    char *paths = NULL;

    for (Py_ssize_t i = 0; copy && i < PyList_GET_SIZE(copy) && !old; i++)
        old = value_in(PyList_GET_ITEM(copy, i), INJECT_PATHS);
    paths = copy ? inject_paths(P.inject_directory, old) : NULL;
    if (!paths || list_set(copy, INJECT_PATHS, paths) || list_set(copy, INJECT_SESSION, P.session_directory)) {
        PyErr_Clear();
        Py_CLEAR(copy);
    }
    free(paths);
    return copy;
}

static int mapping_set(PyObject *mapping, const char *name, const char *value)
{
    PyObject *key = PyBytes_FromString(name), *bytes = PyBytes_FromString(value);
    int result = key && bytes ? PyDict_SetItem(mapping, key, bytes) : -1;

    Py_XDECREF(key);
    Py_XDECREF(bytes);
    return result;
}

/* The same for a mapping of names to values, str or bytes. It is read as the
 * original would read it, by keys() and values(), once each: those may be the
 * program's code. The original then reads our copy. Of a name that is there as
 * str and as bytes the first counts, as it does for getenv(). */
static PyObject *mend_mapping(PyObject *mapping)
{
    PyObject *copy = PyDict_New(), *path_key = PyBytes_FromString(INJECT_PATHS), *old = NULL;
    PyObject *keys = PyMapping_Keys(mapping), *values = keys ? PyMapping_Values(mapping) : NULL;
    char *paths = NULL;
    bool mended = copy && path_key && values && PyList_GET_SIZE(keys) == PyList_GET_SIZE(values);

    for (Py_ssize_t i = 0; mended && i < PyList_GET_SIZE(keys); i++) {
        PyObject *key = NULL;
        mended = PyUnicode_FSConverter(PyList_GET_ITEM(keys, i), &key) &&
                 PyDict_SetDefault(copy, key, PyList_GET_ITEM(values, i));
        Py_XDECREF(key);
    }
    if (mended && PyDict_Contains(copy, path_key))
        mended = PyUnicode_FSConverter(PyDict_GetItemWithError(copy, path_key), &old);
    if (mended) {
        paths = inject_paths(P.inject_directory, old ? PyBytes_AS_STRING(old) : NULL);
        mended = paths && mapping_set(copy, INJECT_PATHS, paths) == 0 &&
                 mapping_set(copy, INJECT_SESSION, P.session_directory) == 0;
    }
    PyErr_Clear();
    if (!mended)
        Py_CLEAR(copy);
    Py_XDECREF(path_key);
    Py_XDECREF(keys);
    Py_XDECREF(values);
    Py_XDECREF(old);
    free(paths);
    return copy;
}

static PyObject *follow(struct followed *f, PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Py_ssize_t given = count + (names ? PyTuple_GET_SIZE(names) : 0), at = -1;
    PyObject *mended = NULL, **changed = NULL, *result;

    if (!atomic_load_explicit(&P.session->closed, memory_order_relaxed)) {
        if (f->environment >= 0 && f->environment < count) {
            at = f->environment;
        } else if (f->environment >= 0) {
            for (Py_ssize_t i = count; i < given; i++)
                if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i - count), "env"))
                    at = i;
        }
        if (f->program >= 0 && count > f->program && count > f->words)
            tracer_child(args[f->program], args[f->words]);
        else if (f->program < 0 && given)
            tracer_child_script(args[0]);
        if (at < 0 || args[at] == Py_None)
            inject_environment(P.inject_directory, P.session_directory);
        else if (PyList_CheckExact(args[at]) || PyTuple_CheckExact(args[at]))
            mended = mend_list(args[at]);
        else if (PyMapping_Check(args[at]) && tracer_has(args[at], "keys"))
            mended = mend_mapping(args[at]);
    }
    if (mended && (changed = PyMem_Calloc((size_t)given + 1, sizeof *changed))) {
        memcpy(changed, args, (size_t)given * sizeof *changed);
        changed[at] = mended;
    }
    result = tracer_led_original(&f->led, self, changed ? changed : args, count, names);
    Py_XDECREF(mended);
    PyMem_Free(changed);
    return result;
}

/* ---- built-ins that lead to us ---- */

/* A function object for the original is made for the module of the interpreter that calls. */
PyObject *tracer_led_original(const struct tracer_led *f, PyObject *self, PyObject *const *args, Py_ssize_t count,
                              PyObject *names)
{
    PyObject *module = PyUnicode_FromString(f->module), *result = NULL;
    PyObject *function = module ? PyCFunction_NewEx((PyMethodDef *)&f->real, self, module) : NULL;

    if (function)
        result = PyObject_Vectorcall(function, args, (size_t)count, names);
    Py_XDECREF(module);
    Py_XDECREF(function);
    return result;
}

/* The module's method table is changed, not
 * only the function object, so that the module may be imported afresh later: it
 * is left in sys.modules only if it was there. Anything but the plain built-in
 * that we know is left alone. */
void tracer_lead(struct tracer_led *f)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    bool there = PyDict_GetItemString(modules, f->module) != NULL;
    PyObject *module = PyImport_ImportModule(f->module), *ours = NULL;
    PyObject *function = module ? tracer_attribute(module, f->name) : NULL;
    PyCFunctionObject *target = (PyCFunctionObject *)function;
    PyMethodDef *table;

    if (!function || !PyCFunction_CheckExact(function))
        goto done;
    table = target->m_ml;
    if (table->ml_meth == (PyCFunction)(void (*)(void))f->entry)
        goto done;
    f->real = *table;
    table->ml_meth = (PyCFunction)(void (*)(void))f->entry;
    table->ml_flags = METH_FASTCALL | METH_KEYWORDS;
    ours = PyCFunction_NewEx(table, target->m_self, target->m_module);
    if (ours)
        target->vectorcall = ((PyCFunctionObject *)ours)->vectorcall;
    else
        *table = f->real;
done:
    if (module && !there)
        PyDict_DelItemString(modules, f->module);
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(function);
    Py_XDECREF(ours);
}

void tracer_follow_children(const char *inject)
{
    P.inject_directory = strdup(inject);
    if (!P.inject_directory)
        return;
    for (size_t i = 0; i < sizeof followed / sizeof *followed; i++)
        tracer_lead(&followed[i].led);
}
