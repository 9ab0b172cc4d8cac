/* tracer/resume/resume.h -- for dyntrace.resume: what a split function needs when it runs, and what
 * splits it.
 *
 * Runs in: the traced process, under the GIL. The shim's place only (tracer/place.c). */
#ifndef DYNTRACE_RESUME_RESUME_H
#define DYNTRACE_RESUME_RESUME_H

#include "tracer/tracer.h"

/* What a variable or a slot of the stack without a value is handed over as. */
extern PyTypeObject resume_unbound;
#define UNBOUND ((PyObject *)&resume_unbound)

/* Both parts call a constant without arguments. The first one, when its stack is in variables,
 * TEMPORARY and the number of the slot: leave, of the resume function's code, which hands the
 * frame's variables over and returns what the resume function returns. The second one, when the
 * stack is back in its place: enter, of its link. */
extern PyMethodDef leave_method, enter_method;
#define TEMPORARY "___stack"

/* What a resume function knows: a tuple. */
enum link {
    LINK_ORIGIN, /* weak reference to the code that was split */
    LINK_FIRST,  /* the step of the original at which it goes on */
    LINK_LOCALS, /* arguments that are variables; the others are slots of the stack */
    LINK_DEPTH,  /* of the stack */
    LINK_FILLED, /* bytes: 1 for each slot of the stack that must have a value */
    /* a list of a weak reference to the resume function's code, when that is made: a copy is none
     * */
    LINK_ITSELF,
};
/* That of a resume function or its prefix: borrowed; NULL: CODE is none. */
PyObject *link_of(PyCodeObject *code);
/* The code that the resume function with LINK was made from: a new reference, or NULL, it is gone.
 * */
PyCodeObject *link_origin(PyObject *link);

/* FUNCTION's frame, which is entered, begins once more, with CLOSURE (or NULL). -1: no memory. */
int link_enter_again(PyFunctionObject *function, PyObject *closure);

extern PyMethodDef resume_methods[];
int resume_types_ready(PyObject *module);
/* Fill in what the base calls: tracer/hooks.h. */
void resume_register(void);

#endif
