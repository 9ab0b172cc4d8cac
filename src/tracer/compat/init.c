/* tracer/compat/init.c -- calls of __init__ that CPython 3.13 hides from the hook are seen.
 *
 * Runs in: the traced process, before the first frame is recorded and once for each type.
 *
 * A specialised call C() runs C.__init__ without asking the PEP 523 hook. The specialiser refuses a type whose tp_alloc
 * is not the generic one, so a type gets an equivalent of its own: all that are there when recording begins, and one
 * made later when its __init__ first runs. */
#include "tracer/tracer.h"

#if COMPAT_INIT_BYPASSES_HOOK

static PyObject *allocate(PyTypeObject *type, Py_ssize_t items)
{
    return PyType_GenericAlloc(type, items);
}

static void fix_type(PyTypeObject *type)
{
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_alloc == PyType_GenericAlloc) {
        type->tp_alloc = allocate;
        PyType_Modified(type);
    }
}

void tracer_fix_init(PyObject *self)
{
    if (self)
        fix_type(Py_TYPE(self));
}

/* For types whose calls were specialised before the hook was there. */
static void fix_subclasses(PyObject *type, int depth)
{
    PyObject *list = depth < 100 ? tracer_call((PyObject *)&PyType_Type, "__subclasses__", type, NULL, NULL) : NULL;

    if (!list) {
        PyErr_Clear();
        return;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        fix_type((PyTypeObject *)PyList_GET_ITEM(list, i));
        fix_subclasses(PyList_GET_ITEM(list, i), depth + 1);
    }
    Py_DECREF(list);
}

void tracer_fix_all_types(void)
{
    fix_subclasses((PyObject *)&PyBaseObject_Type, 0);
}

#endif
