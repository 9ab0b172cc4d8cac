/* tracer/arguments.h -- `run --args`: arguments and return values of calls, in the ring.
 *
 * Runs in: the traced process, under the GIL. No code of the program runs (tracer/attributes.h). */
#ifndef DYNTRACE_TRACER_ARGUMENTS_H
#define DYNTRACE_TRACER_ARGUMENTS_H

#include "tracer/attributes.h"

/* Record the arguments of FRAME, whose ENTER has just been written and which has not started.
 * Returns how secret its return value is, by the function's name. */
enum secret arguments_write(struct tracer *t, compat_frame *frame);
/* Record RESULT, which the innermost open frame returns; NULL: it raised. */
void result_write(struct tracer *t, PyObject *result, enum secret level);

#endif
