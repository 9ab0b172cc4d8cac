/* tracer/arguments.h -- `run --args`: arguments and return values of calls, in the ring.
 *
 * Runs in: the traced process, under the GIL. No code of the program runs (tracer/attributes.h). */
#ifndef DYNTRACE_TRACER_ARGUMENTS_H
#define DYNTRACE_TRACER_ARGUMENTS_H

#include "tracer/attributes.h"

/* Record the arguments of FRAME, whose ENTER has just been written and which has not started. If
 * FRAME is RESUMED, its variables are no longer its arguments, and nothing is recorded. Returns how
 * secret its return value is, by the function's name: LEVEL of values_end(). */
enum secret values_begin(struct tracer *t, compat_frame *frame, bool resumed);

/* Record RESULT, which FRAME, the innermost open frame, returned; NULL: it raised. A value that it
 * yielded is not recorded. Where compat_has_yielded() demands that no Python code runs meanwhile,
 * none does: CPython's garbage collector waits for the next instruction there. */
void values_end(struct tracer *t, compat_frame *frame, bool resumed, PyObject *result,
                enum secret level);

#endif
