/* tracer/span.h -- spans: named stretches of time.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_TRACER_SPAN_H
#define DYNTRACE_TRACER_SPAN_H

#include "tracer/tracer.h"

/* Begin a span called NAME, a str, on this thread. Its attributes KEYS (a tuple of str, or NULL)
 * have the VALUES. Returns a new reference for span_end_open(), or NULL if the span is not
 * recorded. Sets no exception, and runs no code of the program. */
PyObject *span_begin(enum span_kind kind, PyObject *name, PyObject *keys, PyObject *const *values);
/* End the span OPEN, which span_begin() has returned, and drop the reference. A pending exception
 * stays pending. */
void span_end_open(PyObject *open);

/* Add the type `span` to MODULE. Returns 0, or -1 with an exception. */
int span_types_ready(PyObject *module);

#endif
