/* tracer/resume/links.h -- what runs between the two parts of a split function.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_LINKS_H
#define DYNTRACE_RESUME_LINKS_H

#include "tracer/tracer.h"

/* What a variable or a slot of the stack without a value is handed over as. */
extern PyTypeObject resume_unbound;
#define UNBOUND ((PyObject *)&resume_unbound)

/* What the constant of a resume function knows: a tuple. */
enum link {
    LINK_ORIGIN,    /* weak reference to the code that was split */
    LINK_CODE,      /* weak reference to the resume function's, when that is made */
    LINK_FIRST,     /* the step of the original at which it goes on */
    LINK_LOCALS,    /* arguments that are variables; the others are slots of the stack */
    LINK_DEPTH,     /* of the stack */
};
static inline Py_ssize_t link_number(PyObject *link, enum link number)
{
    return PyLong_AsSsize_t(PyTuple_GET_ITEM(link, number));
}

/* Those of a resume function or its prefix: borrowed; NULL: CODE is none. */
PyObject *link_of(PyCodeObject *code);
/* The constants that are called: at the end of the first part, where the stack is in variables, "___stack0" and so on, to hand the
 * frame's variables over to RESUME, and return what that returns; and in the second one, when the stack is back in its place.
 * New references. */
PyObject *leave_make(PyCodeObject *resume);
PyObject *enter_make(PyObject *origin, int32_t first, int32_t locals, int32_t depth);

#endif
