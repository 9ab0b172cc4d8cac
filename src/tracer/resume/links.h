/* tracer/resume/links.h -- what runs between the two parts of a split function.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_LINKS_H
#define DYNTRACE_RESUME_LINKS_H

#include "tracer/tracer.h"

/* What a variable or a slot of the stack without a value is handed over as. */
extern PyTypeObject resume_unbound;
#define UNBOUND ((PyObject *)&resume_unbound)

/* What both parts call, constants without arguments. leave, of the resume function's code: at the end of the first part, where the stack
 * is in variables, "___stack0" and so on; hands the frame's variables over, and returns what the resume function returns. enter, of its
 * link: in the second part, when the stack is back in its place. */
extern PyMethodDef leave_method, enter_method;

/* What a resume function knows: a tuple. */
enum link {
    LINK_ORIGIN, /* weak reference to the code that was split */
    LINK_CODE,   /* weak reference to the resume function's, when that is made */
    LINK_FIRST,  /* the step of the original at which it goes on */
    LINK_LOCALS, /* arguments that are variables; the others are slots of the stack */
    LINK_DEPTH,  /* of the stack */
};
static inline Py_ssize_t link_number(PyObject *link, enum link number)
{
    return PyLong_AsSsize_t(PyTuple_GET_ITEM(link, number));
}
/* That of a resume function or its prefix: borrowed; NULL: CODE is none. */
PyObject *link_of(PyCodeObject *code);

#endif
