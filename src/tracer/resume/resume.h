/* tracer/resume/resume.h -- for dyntrace.resume: splits functions, and connects the two parts when
 * they run.
 *
 * Runs in: the traced process, under the GIL. Works in PLACE_HOME only (tracer/place.c). */
#ifndef DYNTRACE_RESUME_RESUME_H
#define DYNTRACE_RESUME_RESUME_H

#include "tracer/tracer.h"

/* The value that leave() hands over for a variable or stack slot without a value. */
extern PyTypeObject resume_unbound;
#define UNBOUND ((PyObject *)&resume_unbound)

/* Each part calls a constant without arguments. The first part stores its stack in variables, named
 * TEMPORARY and the number of the slot, and calls leave(), whose `self` is the resume function's
 * code. leave() hands the frame's variables over and returns the resume function's result. The
 * second part puts the stack back in place and calls enter(), whose `self` is the link. */
extern PyMethodDef leave_method, enter_method;
#define TEMPORARY "___stack"

/* The items of a resume function's link: a tuple with facts about how the function was split. */
enum link {
    LINK_ORIGIN, /* weak reference to the code that was split */
    LINK_FIRST,  /* the step of the original code at which the resume function continues */
    /* number of arguments that stand for variables; the other arguments stand for stack slots */
    LINK_LOCALS,
    LINK_DEPTH,  /* depth of the stack */
    LINK_FILLED, /* bytes: 1 for each stack slot that must have a value */
    /* a tuple: for each argument that is a stack slot, the place of its iteration index
     * (SLOT_INDEX) on the first part's stack, counted from the bottom, or -1 */
    LINK_PLACES,
    /* a list with a weak reference to the resume function's code; a copy of this code has the same
     * link, but is another object */
    LINK_ITSELF,
};
/* Return the link of a resume function or of its prefix, borrowed. Returns NULL if CODE is
 * neither. */
PyObject *link_of(PyCodeObject *code);
/* Return the code that was split into the resume function with LINK and its prefix: a new
 * reference, or NULL if it is gone. */
PyCodeObject *link_origin(PyObject *link);

/* A frame of FUNCTION is running. Prepare FUNCTION so that this frame can begin again and call
 * enter() again. CLOSURE may be NULL. Returns -1 without memory. */
int link_enter_again(PyFunctionObject *function, PyObject *closure);

extern PyMethodDef resume_methods[];
int resume_types_ready(PyObject *module);
/* Fill in the resume members of tracer/hooks.h. */
void resume_register(void);

#endif
