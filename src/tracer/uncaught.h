/* tracer/uncaught.h -- records the exception with which the program's main module ended.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_TRACER_UNCAUGHT_H
#define DYNTRACE_TRACER_UNCAUGHT_H

#include "tracer/tracer.h"

/* Is CODE the body of a module? When a frame of it raises, values_after_frame() calls
 * uncaught_record_exception(). */
static inline bool uncaught_is_watched(const PyCodeObject *code)
{
    return !(code->co_flags & CO_OPTIMIZED) &&
           !PyUnicode_CompareWithASCIIString(code->co_name, "<module>");
}

/* The body of a module has ended with the exception RAISED. If it is the program's main module,
 * write a fact with the type of the exception and the program's innermost line. */
void uncaught_record_exception(const struct tracer_exception *raised);

#endif
