/* tracer/quiet.c -- while code of ours runs in the program's process, it is unseen.
 *
 * Runs in: the traced process, under the GIL. Guards, captures and torch's bridge run Python code
 * of ours so. */
#include "tracer/tracer.h"

void torch_quiet_begin(struct torch_quiet *q)
{
    struct tracer *t = tracer_here();

    if (t)
        tracer_follow(t, PyThreadState_Get(), NULL);
    q->pending = tracer_exception_aside();
    q->collects = PyGC_Disable(); /* finalisers are the program's */
    PyThreadState_EnterTracing(PyThreadState_Get());
    if (t) {
        t->quiet++;
        t->limit = 0; /* so that every event goes through tracer_room(), which says no */
    }
}

void torch_quiet_end(struct torch_quiet *q)
{
    struct tracer *t = tracer_here();

    if (t) {
        tracer_follow(t, PyThreadState_Get(), NULL);
        t->quiet--;
    }
    PyThreadState_LeaveTracing(PyThreadState_Get());
    if (q->collects)
        PyGC_Enable();
    tracer_exception_back(&q->pending);
}
