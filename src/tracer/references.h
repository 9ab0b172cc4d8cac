/* tracer/references.h -- references and exceptions that are released at the end of a variable's
 * scope.
 *
 * Runs in: the traced process. */
#ifndef DYNTRACE_TRACER_REFERENCES_H
#define DYNTRACE_TRACER_REFERENCES_H

#include "tracer/compat/cpython.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* For a local variable that owns a reference, or is NULL: the reference is dropped at the end of
 * the variable's scope. */
#define OWNED __attribute__((cleanup(tracer_clear_reference)))
static inline void tracer_clear_reference(PyObject **object)
{
    Py_XDECREF(*object);
}
/* For a local variable that has taken the pending exception: at the end of its scope the exception
 * is restored, and replaces any that was raised since. */
#define KEPT __attribute__((cleanup(tracer_restore_exception)))
struct tracer_exception {
    PyObject *type, *value, *traceback;
};
static inline struct tracer_exception tracer_put_exception_aside(void)
{
    struct tracer_exception pending;

    PyErr_Fetch(&pending.type, &pending.value, &pending.traceback);
    return pending;
}
static inline void tracer_restore_exception(struct tracer_exception *pending)
{
    PyErr_Restore(pending->type, pending->value, pending->traceback);
}
static inline void tracer_drop_exception(struct tracer_exception *pending)
{
    Py_CLEAR(pending->type);
    Py_CLEAR(pending->value);
    Py_CLEAR(pending->traceback);
}

#endif
