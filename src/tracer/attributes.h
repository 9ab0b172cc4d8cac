/* tracer/attributes.h -- values of the program as JSON, for spans and arguments.
 *
 * Runs in: the traced process, under the GIL. No code of the program runs: values of exact builtin
 * types are written, of others the type. Subject to --values and --redact. */
#ifndef DYNTRACE_TRACER_ATTRIBUTES_H
#define DYNTRACE_TRACER_ATTRIBUTES_H

#include "secret.h"
#include "tracer/tracer.h"

enum { ATTRIBUTES_BYTES = 1000 /* most bytes of a text */ };

/* JSON that is being written. What has no room is left out whole. */
struct attributes {
    char text[ATTRIBUTES_BYTES];
    size_t used;
    bool full;
};

/* Write an object with the VALUES of KEYS, a tuple of str or NULL, to TO. Containers are written
 * DEPTH deep; deeper ones are types. Writes nothing with --values off, and nothing without KEYS. */
void attributes_put(struct attributes *to, PyObject *keys, PyObject *const *values, int depth);

/* Write VALUE alone. LEVEL says how secret VALUE's name is. */
void attributes_put_value(struct attributes *to, PyObject *value, enum secret level, int depth);

#endif
