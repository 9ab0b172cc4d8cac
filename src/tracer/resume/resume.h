/* tracer/resume/resume.h -- dyntrace.resume: a function split in two at an instruction.
 *
 * Runs in: the traced process, under the GIL. The shim's place only (tracer/module.c). */
#ifndef DYNTRACE_RESUME_RESUME_H
#define DYNTRACE_RESUME_RESUME_H

#include "tracer/tracer.h"

/* Is CODE a resume function's? Then *ORIGIN becomes the code that it was made from: a new reference, or NULL, it is gone. */
bool resume_is(PyCodeObject *code, PyCodeObject **origin);
extern PyMethodDef resume_methods[];
int resume_types_ready(PyObject *module);

#endif
