/* tracer/attach.h -- `dyntrace attach` inside the process: joining and leaving at a signal. */
#ifndef DYNTRACE_TRACER_ATTACH_H
#define DYNTRACE_TRACER_ATTACH_H

#include "tracer/tracer.h"

/* What attach.c calls in module.c. */
struct attach_calls {
    /* Join the session in directory SESSION, or return the reason why not: see _start. LIBRARY is
     * the standard library; INJECT may be NULL. */
    const char *(*join)(const char *session, const char *library, const char *inject);
    /* End the recording of this process. */
    void (*leave)(void);
};
void attach_register(const struct attach_calls *calls);

/* Functions of the module for `dyntrace attach` and `run --standby`. */
extern PyMethodDef attach_methods[];
/* Listen to SIGURG if the session that was joined is one of `dyntrace attach`. MODULE is
 * _dyntrace. */
void attach_listen(PyObject *module);

#endif
