/* tracer/values.h -- the program's values in words, as far as they may be recorded (--values).
 *
 * Runs in: the traced process, under the GIL.
 *
 * A value that must not be in the trace never gets into shared memory: the text for it is not made. The text that
 * stands for it says so, so that no reader can take it for a value:
 *
 *     all     L['x'] == 'abc'
 *     types   L['x'] == str: value not recorded (--values types)
 *     off     L['x'] == value not recorded (--values off)
 *
 * Names of the program's text are no values: of variables, attributes, functions, classes, files. Keys and indices in a
 * guard's source are: L['d']['abc'] becomes L['d'][<str>]. python/dyntrace/_torch_private.py is the same for
 * torch's. */
#ifndef DYNTRACE_TRACER_VALUES_H
#define DYNTRACE_TRACER_VALUES_H

#include "tracer/tracer.h"

/* TEXT as UTF-8, cut between two characters where it is longer than MOST bytes. Lone surrogates, which UTF-8 cannot
 * hold, become \udcXX. Borrowed from TEXT or from *KEEP, which the caller releases. */
const char *values_utf8(PyObject *text, size_t most, size_t *bytes, PyObject **keep);

/* PyUnicode_FromFormat(), which releases the new string of each %U. NULL, with its exception, where one is NULL. */
PyObject *values_format(const char *format, ...);

/* New strings. values_repr calls the program's __repr__ and gives NULL only for no memory, and when that raised what is
 * no Exception; the others run no code of the program. */
enum { VALUES_TEXT = 120 };
PyObject *values_repr(PyObject *value);
PyObject *values_type(PyTypeObject *type);
PyObject *values_object(PyObject *object);
/* The pending exception in words, its type alone unless WHOLE; it is gone afterwards. */
PyObject *values_exception(bool whole);

static inline enum session_values values_kept(void)
{
    return tracer_process.session ? (enum session_values)tracer_process.session->values : SESSION_VALUES_ALL;
}

/* The text for a value of TYPE (NULL: not known) that may not be recorded: a new string. */
PyObject *values_hidden(PyTypeObject *type);
/* The same with what of the value differed: "size[0] = value not recorded". */
PyObject *values_hidden_aspect(const char *aspect, int dimension);

/* The name of a function as its def has it, else the type of OBJECT: a new string. */
PyObject *values_name(PyObject *object);
/* NAME, of a thread, is made empty unless threading made it up itself. */
void values_thread_name(char *name);

#endif
