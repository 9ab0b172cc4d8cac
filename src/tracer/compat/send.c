/* tracer/compat/send.c -- a program that traces itself sees the events it would have seen.
 *
 * Runs in: the traced process.
 *
 * Since 3.12 an `await` or `yield from` runs a coroutine or generator inline, unless there is a PEP 523 hook: then it
 * is called, and its return arrives as a StopIteration, which the awaiting frame reports to sys.settrace as an
 * exception. So when a generator's last frame ends while a trace function is set, ours is put before it: it drops that
 * one event and passes on all others.
 *
 *     hook:   generator finished under frame F           -> remember F
 *     CPython: trace function(F, EXCEPTION, StopIteration), at F's SEND
 *     ours:   the remembered F, at a SEND, nothing ran in between -> dropped */
#include "tracer/tracer.h"

#if COMPAT_SEND_RAISES_UNDER_HOOK

static Py_tracefunc real; /* what the program set; the same for all threads in practice */

/* Is FRAME stopped at the instruction that awaits? The code itself may show a
 * specialised or instrumented one there; PyCode_GetCode undoes both. */
static bool at_send(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    int offset = PyFrame_GetLasti(frame);
    PyObject *bytecode = PyCode_GetCode(code);
    bool is = bytecode && offset >= 0 && offset < PyBytes_GET_SIZE(bytecode) &&
              (unsigned char)PyBytes_AS_STRING(bytecode)[offset] == SEND;

    if (!bytecode)
        PyErr_Clear();
    Py_XDECREF(bytecode);
    Py_DECREF(code);
    return is;
}

static int filter(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    struct tracer *t = tracer_thread;

    if (what == PyTrace_EXCEPTION && t && t->finished_under && t->finished_under == frame->f_frame &&
        t->finished_at == t->entered && PyTuple_Check(argument) &&
        PyTuple_GET_ITEM(argument, 0) == PyExc_StopIteration && at_send(frame)) {
        t->finished_under = NULL;
        return 0;
    }
    return real(object, frame, what, argument);
}

void tracer_generator_finished(struct tracer *t, PyThreadState *ts)
{
    if (ts->c_tracefunc != filter) {
        real = ts->c_tracefunc;
        ts->c_tracefunc = filter;
    }
    t->finished_under = compat_current_frame(ts);
    t->finished_at = t->entered;
}

#endif
