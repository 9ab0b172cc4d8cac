/* tracer/arguments.h -- `run --args`: arguments and return values of calls, in the ring.
 *
 * Runs in: the traced process, under the GIL. No code of the program runs (tracer/attributes.h). */
#ifndef DYNTRACE_TRACER_ARGUMENTS_H
#define DYNTRACE_TRACER_ARGUMENTS_H

#include "tracer/attributes.h"

/* Returned by values_before_frame() and passed to values_after_frame(): a call whose result may be
 * recorded. */
struct values_begun {
    enum secret level; /* how secret the return value is, by the function's name */
    /* tracer_process.sessions when the call began; a later session has other rules */
    uint32_t session;
};

/* Record the arguments of FRAME, which has not started, but whose ENTER was just written. Records
 * nothing if FRAME is RESUMED, because its variables are no longer its arguments. Returns the BEGUN
 * for values_after_frame(). For a module's body nothing is recorded here; values_after_frame() then
 * records only an exception that ends the program (tracer/uncaught.h). */
struct values_begun values_before_frame(struct tracer *t, compat_frame *frame, bool resumed);

/* Record RESULT, which FRAME, the innermost open frame, has returned; NULL if FRAME has raised.
 * Records nothing if FRAME has yielded, or began in another session. Runs no Python code in CPython
 * versions where compat_has_yielded() must come before any: there garbage is collected only between
 * instructions. */
void values_after_frame(struct tracer *t, compat_frame *frame, bool resumed, PyObject *result,
                        struct values_begun begun);

#endif
