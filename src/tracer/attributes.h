/* tracer/attributes.h -- values of the program as JSON, for spans and arguments.
 *
 * Runs in: the traced process, under the GIL. No code of the program runs: the values of exact
 * builtin types are written; of any other value only the type is written. --values and --redact
 * leave values out. */
#ifndef DYNTRACE_TRACER_ATTRIBUTES_H
#define DYNTRACE_TRACER_ATTRIBUTES_H

#include "secret.h"
#include "tracer/tracer.h"

enum { ATTRIBUTES_BYTES = 1000 /* the most bytes of the JSON text of a span or a call */ };

/* JSON that is being written. An item that does not fit is left out as a whole. */
struct attributes {
    char text[ATTRIBUTES_BYTES];
    size_t used;
    bool full;
};

/* Write to TO a JSON object with the names KEYS (a tuple of str, or NULL) and their VALUES.
 * Containers nested deeper than DEPTH are written as their types. Writes nothing with --values off,
 * or without KEYS. */
void attributes_write(struct attributes *to, PyObject *keys, PyObject *const *values, int depth);

/* Write VALUE to TO, without a name. LEVEL says how secret the value's name is. */
void attributes_write_value(struct attributes *to, PyObject *value, enum secret level, int depth);

#endif
