/* tracer/collect.h -- starts `dyntrace collect`, which writes the trace of dyntrace.record(). */
#ifndef DYNTRACE_TRACER_COLLECT_H
#define DYNTRACE_TRACER_COLLECT_H

#include "tracer/tracer.h"

/* Functions of module _dyntrace; attach_methods (tracer/attach.c) has their descriptions. */
PyObject *collect_can_record(PyObject *module, PyObject *ignored);
PyObject *collect_start(PyObject *module, PyObject *args);
PyObject *collect_hang_up(PyObject *module, PyObject *fd);

#endif
