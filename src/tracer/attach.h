/* tracer/attach.h -- `dyntrace attach` inside the process: joining and leaving at a signal. */
#ifndef DYNTRACE_TRACER_ATTACH_H
#define DYNTRACE_TRACER_ATTACH_H

#include "tracer/tracer.h"

/* The functions of module.c that attach.c calls. */
struct attach_calls {
    /* Join the session in directory SESSION. Returns NULL, or the reason why the process cannot
     * join. LIBRARY is the directory of the standard library. INJECT is the directory from which
     * child processes load the recorder, or NULL. */
    const char *(*join)(const char *session, const char *library, const char *inject);
    /* End the recording of this process. */
    void (*leave)(void);
};
void attach_register(const struct attach_calls *calls);

/* Functions of module _dyntrace for `dyntrace attach` and `run --standby`. */
extern PyMethodDef attach_methods[];
/* If the session that was joined is one of `dyntrace attach`, set the handler of SIGURG. MODULE is
 * _dyntrace. */
void attach_listen(PyObject *module);

#endif
