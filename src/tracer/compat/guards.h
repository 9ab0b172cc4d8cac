/* tracer/compat/guards.h -- where instances keep their attributes, by CPython version.
 *
 * Since 3.11 instances keep attribute values in an array, in the order of the class's shared keys
 * (PEP 412), until an instance's __dict__ is requested. PyObject_GetAttr searches for the name at
 * each call; a guard, which reads the same attribute at every call, keeps the name's index in the
 * array. */
#ifndef DYNTRACE_TRACER_GUARD_COMPAT_H
#define DYNTRACE_TRACER_GUARD_COMPAT_H

#include "tracer/compat/cpython.h"

#define Py_BUILD_CORE 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* 3.11 defines this name in its public header and, in another way, in internal ones */
#undef _PyObject_LookupSpecial
#undef _PyGC_FINALIZED
#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>
#if PY_VERSION_HEX >= \
    0x030f0000 /* a module's name whose import waits until it is first read (PEP 810) */
    #include <internal/pycore_lazyimportobject.h>
    #define compat_is_lazy(value) PyLazyImport_CheckExact(value)
#else
    #define compat_is_lazy(value) false
#endif
#pragma GCC diagnostic pop
#undef Py_BUILD_CORE

/* Return the array of attribute values of OBJECT. NULL if it has a dict instead, or no attributes
 * of its own. */
static inline PyObject **compat_get_inline_values(PyObject *object)
{
    PyDictValues *values = NULL;
#if PY_VERSION_HEX >= 0x030d0000 /* since 3.13 the values lie in the object itself */
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_INLINE_VALUES &&
        !(values = _PyObject_InlineValues(object))->valid)
        values = NULL;
#else
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
    /* in 3.12 one tagged pointer leads to the values or to the dict */
    #if PY_VERSION_HEX >= 0x030c0000
        PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
        values = _PyDictOrValues_IsValues(either) ? _PyDictOrValues_GetValues(either) : NULL;
    #else
        values = *_PyObject_ValuesPointer(object);
    #endif
    }
#endif
    return values ? values->values : NULL;
}

/* Return the __dict__ of OBJECT, borrowed; NULL if it was not made yet. */
static inline PyObject *compat_get_existing_dict(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
#if PY_VERSION_HEX >= 0x030d0000
        return (PyObject *)_PyObject_GetManagedDict(object);
#elif PY_VERSION_HEX >= 0x030c0000
        PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
        return _PyDictOrValues_IsValues(either) ? NULL : _PyDictOrValues_GetDict(either);
#else
        return *_PyObject_ManagedDictPointer(object);
#endif
    }
    return type->tp_dictoffset > 0 ? *(PyObject **)((char *)object + type->tp_dictoffset) : NULL;
}

/* Return how many inline values instances of TYPE may have. */
static inline Py_ssize_t compat_count_inline_values(PyTypeObject *type)
{
    PyDictKeysObject *keys =
        type->tp_flags & Py_TPFLAGS_HEAPTYPE ? ((PyHeapTypeObject *)type)->ht_cached_keys : NULL;

    return keys && DK_IS_UNICODE(keys) ? keys->dk_nentries : 0;
}

/* Return the index of NAME, an interned string, among the inline values of instances of TYPE, or
 * -1. The keys of a class keep their order as long as the class lives. */
static inline Py_ssize_t compat_find_inline_index(PyTypeObject *type, PyObject *name)
{
    for (Py_ssize_t i = compat_count_inline_values(type) - 1; i >= 0; i--)
        if (DK_UNICODE_ENTRIES(((PyHeapTypeObject *)type)->ht_cached_keys)[i].me_key == name)
            return i;
    return -1;
}

#endif
