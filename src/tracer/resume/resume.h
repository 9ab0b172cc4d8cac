/* tracer/resume/resume.h -- for dyntrace.resume: splits functions, and connects the two parts when
 * they run.
 *
 * Runs in: the traced process, under the GIL. Works in PLACE_HOME only (tracer/place.c). */
#ifndef DYNTRACE_RESUME_RESUME_H
#define DYNTRACE_RESUME_RESUME_H

#include "tracer/tracer.h"

/* Stands for a missing value when leave() hands variables and stack slots over. */
extern PyTypeObject resume_unbound;
#define UNBOUND ((PyObject *)&resume_unbound)

/* The built-in functions that connect the two parts of a split function. Each part has one as a
 * constant and calls it without arguments. The first part stores its stack in variables, named
 * TEMPORARY and the number of the slot, and calls leave(), whose `self` is the resume function's
 * code. leave() hands the frame's variables over, and returns what the resume function returns. The
 * second part puts the stack back and calls enter(), whose `self` is the link. */
extern PyMethodDef leave_method, enter_method;
#define TEMPORARY "___stack"

/* The items of a resume function's link, a tuple that describes how the function was split. */
enum link {
    LINK_ORIGIN, /* a weak reference to the code that was split */
    LINK_FIRST,  /* index of the step of that code at which the resume function continues */
    /* how many arguments of the resume function stand for variables; the others stand for stack
     * slots */
    LINK_LOCALS,
    LINK_DEPTH,  /* depth of the stack where the function was split */
    LINK_FILLED, /* a bytes object: for each stack slot 1 if it must have a value */
    /* A tuple with an item for each argument that stands for a stack slot. In newer CPythons a
     * `for` over a list or tuple has no iterator, but an index on the stack (SLOT_INDEX). The item
     * tells where this index is on the first part's stack, counted from the bottom; -1 if there is
     * none. */
    LINK_PLACES,
    /* A list with a weak reference to the resume function's code. It tells the code from a copy,
     * which has the same link. */
    LINK_ITSELF,
};
/* Return the link of CODE, a resume function or its prefix: borrowed. Returns NULL if CODE is
 * neither. */
PyObject *link_of(PyCodeObject *code);
/* Return the code that was split into the two parts with LINK: a new reference; NULL if it is
 * gone. */
PyCodeObject *link_origin(PyObject *link);

/* A frame of FUNCTION, a resume function, is running: prepare FUNCTION so that the frame can begin
 * again, and call enter() again. CLOSURE may be NULL. Returns -1 without memory. */
int link_prepare_to_enter_again(PyFunctionObject *function, PyObject *closure);

extern PyMethodDef resume_methods[];
int resume_types_ready(PyObject *module);
/* Fill in the members of tracer/hooks.h that resume/ provides. */
void resume_register(void);

#endif
