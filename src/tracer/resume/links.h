/* tracer/resume/links.h -- what runs between the two parts of a split function.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_LINKS_H
#define DYNTRACE_RESUME_LINKS_H

#include "tracer/tracer.h"

/* A constant of the first part, called where that ends: it hands the frame's variables over to the second part, and returns
 * what that returns. The stack is in variables by then, "___stack0" and so on. */
struct leave {
    PyObject_HEAD
    vectorcallfunc call;
    PyCodeObject *resume; /* owned */
    int taken;            /* its arguments from here on are slots of the stack */
};

/* A constant of the second part, its last: called when the values of the stack are back in their place. */
struct enter {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *origin;   /* owned: weak reference to the code that was split */
    PyCodeObject *made; /* borrowed, compared only: the second part */
    /* Arguments of it that are variables; and those in the place of a cell, which an inlined comprehension has taken; all, slots
     * of the stack too. */
    int locals, taken, arguments;
    long number;        /* its own, in its name */
    int32_t units;
    int32_t *unit;      /* owned: by unit of the second part, that of the origin; -1: none begins there */
};

extern PyTypeObject leave_type, enter_type, unbound_type;
/* What a variable or a slot of the stack without a value is handed over as. */
extern PyObject resume_unbound;

struct leave *leave_make(PyCodeObject *resume, int taken);
/* With no units yet. */
struct enter *enter_make(PyObject *origin, int locals, int taken, int arguments);

#endif
