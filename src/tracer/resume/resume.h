/* tracer/resume/resume.h -- dyntrace.resume: a function split in two at an instruction.
 *
 * Runs in: the traced process, under the GIL. The shim's place only (tracer/module.c). */
#ifndef DYNTRACE_RESUME_RESUME_H
#define DYNTRACE_RESUME_RESUME_H

#include "tracer/tracer.h"

/* Is CODE a resume function's? Then *ORIGIN becomes the code that it was made from: a new reference, or NULL, it is gone. */
bool resume_is(PyCodeObject *code, PyCodeObject **origin);
/* dyntrace.resume.split(): a new reference, or NULL with an exception. And what calls its second part: borrowed. */
PyObject *resume_split(PyCodeObject *code, Py_ssize_t offset);
PyObject *resume_leave(PyObject *split);
extern PyMethodDef resume_methods[];
int resume_types_ready(PyObject *module);

#endif
