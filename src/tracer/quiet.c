/* tracer/quiet.c -- runs our own Python code unnoticed by the program and by the trace.
 *
 * Runs in: the traced process, under the GIL. Guards, captures and torch's bridge use it. */
#include "tracer/tracer.h"

void torch_quiet_begin(struct torch_quiet *q)
{
    struct tracer *t = tracer_of_this_thread();

    if (t)
        tracer_update_running_stack(t, PyThreadState_Get(), NULL);
    q->pending = tracer_put_exception_aside();
    q->collects = PyGC_Disable(); /* a collection of garbage would run finalisers of the program */
    PyThreadState_EnterTracing(PyThreadState_Get());
    if (t) {
        t->quiet++;
        t->limit = 0; /* 0 makes every event call tracer_make_room_at_frame(), which refuses it */
    }
}

void torch_quiet_end(struct torch_quiet *q)
{
    struct tracer *t = tracer_of_this_thread();

    if (t) {
        tracer_update_running_stack(t, PyThreadState_Get(), NULL);
        t->quiet--;
    }
    PyThreadState_LeaveTracing(PyThreadState_Get());
    if (q->collects)
        PyGC_Enable();
    tracer_restore_exception(&q->pending);
}
