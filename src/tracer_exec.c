/* tracer_exec.c -- children of a traced process are traced too.
 *
 * Runs in: the traced process.
 *
 * The program does not see our PYTHONPATH in os.environ, so it may hand a child
 * an environment without it, or overwrite the one that C sees. The few built-in
 * functions that start a program are therefore changed in place: the function
 * object stays the same object, with the same name and text; only where it
 * leads is ours. It adds our directory to the child's PYTHONPATH and goes on to
 * the original. The child's sitecustomize takes it out again.
 *
 * The caller's own environment object is never changed: a copy is passed. */
#include "tracer.h"

#include <stdlib.h>
#include <string.h>

#define P tracer_process

typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* A built-in whose calls pass through `entry`. */
struct followed {
    const char *module, *name;
    int environment;     /* position of its environment argument, -1: inherits C's */
    fast_function entry;
    PyMethodDef real;    /* what its module's table said before */
    PyObject *direct;    /* a function object that leads to `real`; owned, for ever */
};

static PyObject *follow(struct followed *f, PyObject *const *args, Py_ssize_t count, PyObject *names);

#define ENTRY(number)                                                                                        \
    static PyObject *entry_##number(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
ENTRY(0) ENTRY(1) ENTRY(2) ENTRY(3) ENTRY(4) ENTRY(5)
#undef ENTRY

static struct followed followed[] = {
    {"_posixsubprocess", "fork_exec", 5, entry_0, {0}, NULL},
    {"posix", "execve", 2, entry_1, {0}, NULL},
    {"posix", "posix_spawn", 2, entry_2, {0}, NULL},
    {"posix", "posix_spawnp", 2, entry_3, {0}, NULL},
    {"posix", "execv", -1, entry_4, {0}, NULL},
    {"posix", "system", -1, entry_5, {0}, NULL},
};

#define ENTRY(number)                                                                                        \
    static PyObject *entry_##number(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)      \
    {                                                                                                        \
        (void)self;                                                                                          \
        return follow(&followed[number], args, n, names);                                                    \
    }
ENTRY(0) ENTRY(1) ENTRY(2) ENTRY(3) ENTRY(4) ENTRY(5)
#undef ENTRY

/* True when PATHS (colon separated) begins with our directory. */
static bool leads_to_us(const char *paths)
{
    size_t length = strlen(P.inject_directory);

    return !strncmp(paths, P.inject_directory, length) &&
           (!paths[length] || paths[length] == ':' || !strcmp(paths + length, RING_EMPTY_SUFFIX));
}

/* "PYTHONPATH=ours[:PATHS]", to be freed by the caller. PATHS may be NULL (unset).
 * An empty one is not an entry of its own to Python, hence the second directory. */
static char *with_us(const char *paths)
{
    const char *join = !paths ? "" : *paths ? ":" : RING_EMPTY_SUFFIX;
    char *entry = NULL;

    if (asprintf(&entry, "PYTHONPATH=%s%s%s", P.inject_directory, join, paths ? paths : "") < 0)
        return NULL;
    return entry;
}

/* The C environment, which children that name none inherit. */
static void mend_environ(void)
{
    const char *paths = getenv("PYTHONPATH");
    char *entry;

    if (paths && leads_to_us(paths))
        return;
    entry = with_us(paths);
    if (entry)
        setenv("PYTHONPATH", strchr(entry, '=') + 1, 1);
    free(entry);
}

/* A copy of a list of b"NAME=value", mended. New reference, or NULL with no
 * exception set: pass the caller's own. */
static PyObject *mend_list(PyObject *list)
{
    PyObject *copy = PySequence_List(list), *entry = NULL;
    Py_ssize_t at = -1;
    char *text = NULL;

    if (!copy)
        goto err;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(copy) && at < 0; i++) {
        PyObject *item = PyList_GET_ITEM(copy, i);
        if (PyBytes_Check(item) && !strncmp(PyBytes_AS_STRING(item), "PYTHONPATH=", 11))
            at = i;
    }
    if (at >= 0 && leads_to_us(PyBytes_AS_STRING(PyList_GET_ITEM(copy, at)) + 11))
        return copy;
    text = with_us(at < 0 ? NULL : PyBytes_AS_STRING(PyList_GET_ITEM(copy, at)) + 11);
    entry = text ? PyBytes_FromString(text) : NULL;
    if (!entry || (at < 0 ? PyList_Append(copy, entry) : PyList_SetItem(copy, at, Py_NewRef(entry))))
        goto err;
    Py_DECREF(entry);
    free(text);
    return copy;
err:
    PyErr_Clear();
    Py_XDECREF(copy);
    Py_XDECREF(entry);
    free(text);
    return NULL;
}

/* The same for a mapping of names to values, str or bytes. It is read as the
 * original would read it, by keys() and values(), once each: those may be the
 * program's code. The original then reads our copy. */
static PyObject *mend_mapping(PyObject *mapping)
{
    PyObject *copy = PyDict_New(), *paths = NULL, *name = NULL, *value = NULL, *fresh = NULL;
    PyObject *keys = PyMapping_Keys(mapping), *values = keys ? PyMapping_Values(mapping) : NULL;
    char *text = NULL;
    const char *old = NULL;

    if (!copy || !keys || !values || PyList_GET_SIZE(keys) != PyList_GET_SIZE(values))
        goto err;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); i++)
        if (PyDict_SetItem(copy, PyList_GET_ITEM(keys, i), PyList_GET_ITEM(values, i)))
            goto err;
    name = PyUnicode_FromString("PYTHONPATH");
    paths = name ? PyDict_GetItem(copy, name) : NULL; /* borrowed */
    if (!paths) {
        PyObject *bytes = PyBytes_FromString("PYTHONPATH");
        paths = bytes ? PyDict_GetItem(copy, bytes) : NULL;
        if (paths) {
            Py_SETREF(name, bytes);
        } else {
            Py_XDECREF(bytes);
        }
    }
    if (paths) {
        if (!PyUnicode_FSConverter(paths, &value))
            goto err;
        old = PyBytes_AS_STRING(value);
        if (leads_to_us(old))
            goto done;
    }
    text = with_us(old);
    fresh = text ? PyUnicode_DecodeFSDefault(strchr(text, '=') + 1) : NULL;
    if (!fresh || PyDict_SetItem(copy, name, fresh))
        goto err;
done:
    Py_XDECREF(keys);
    Py_XDECREF(values);
    Py_XDECREF(name);
    Py_XDECREF(value);
    Py_XDECREF(fresh);
    free(text);
    return copy;
err:
    PyErr_Clear();
    Py_CLEAR(copy);
    goto done;
}

static PyObject *follow(struct followed *f, PyObject *const *args, Py_ssize_t count, PyObject *names)
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
        if (at < 0 || args[at] == Py_None)
            mend_environ();
        else if (PyList_CheckExact(args[at]) || PyTuple_CheckExact(args[at]))
            mended = mend_list(args[at]);
        else if (PyMapping_Check(args[at]) && tracer_has(args[at], "keys"))
            mended = mend_mapping(args[at]);
    }
    if (mended && (changed = PyMem_Calloc((size_t)given + 1, sizeof *changed))) {
        memcpy(changed, args, (size_t)given * sizeof *changed);
        changed[at] = mended;
    }
    result = PyObject_Vectorcall(f->direct, changed ? changed : args, (size_t)count, names);
    Py_XDECREF(mended);
    PyMem_Free(changed);
    return result;
}

/* Lead one built-in through `follow`. The module's method table is changed, not
 * only the function object, so that the module may be imported afresh later: it
 * is left in sys.modules only if it was there. Anything but the plain built-in
 * that we know is left alone. */
static void follow_one(struct followed *f)
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
    f->real = *table;
    f->direct = PyCFunction_NewEx(&f->real, target->m_self, target->m_module);
    if (!f->direct)
        goto done;
    table->ml_meth = (PyCFunction)(void (*)(void))f->entry;
    table->ml_flags = METH_FASTCALL | METH_KEYWORDS;
    ours = PyCFunction_NewEx(table, target->m_self, target->m_module);
    if (ours) {
        target->vectorcall = ((PyCFunctionObject *)ours)->vectorcall;
    } else {
        *table = f->real;
        Py_CLEAR(f->direct);
    }
done:
    if (module && !there)
        PyDict_DelItemString(modules, f->module);
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(function);
    Py_XDECREF(ours);
}

void tracer_follow_children(void)
{
    for (size_t i = 0; i < sizeof followed / sizeof *followed; i++)
        follow_one(&followed[i]);
}
