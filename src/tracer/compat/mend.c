/* tracer/compat/mend.c -- repairs for side effects of a PEP 523 hook. */
#include "tracer/tracer.h"

#include <search.h>

/* ---- make sys.settrace() report the same events as without a hook ----
 *
 * Since 3.12 an `await` or `yield from` runs a coroutine or generator inline. Under a hook CPython
 * calls the generator instead, and its return arrives as a StopIteration, which the awaiting frame
 * reports to sys.settrace as an exception. So when a generator's last frame ends while a trace
 * function is set, our own trace function is put before the program's. Ours drops this one event
 * and passes on all others.
 *
 *     hook:     generator finished under frame F                   -> remember F
 *     CPython:  trace function(F, EXCEPTION, StopIteration), at F's SEND
 *     ours:     the remembered F, at a SEND, nothing ran in between -> dropped */
#if COMPAT_SEND_RAISES_UNDER_HOOK

/* The program's trace function, for a thread whose struct tracer is gone. Without a GIL no lock is
 * needed, because all threads write the same function (CPython's own). */
static Py_tracefunc real;

/* Is FRAME stopped at an await or yield from? PyCode_GetCode gives the instruction as it was
 * compiled, where the code itself may have a specialised or instrumented one. */
static bool is_stopped_at_await(PyFrameObject *frame)
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

static int filter_trace_event(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    struct tracer *t = tracer_thread;
    PyThreadState *ts = PyThreadState_Get();
    Py_tracefunc theirs = world_get(real);

    if (t && t->trace)
        theirs = t->trace;
    if (what == PyTrace_EXCEPTION && t && t->finished_under &&
        t->finished_under == frame->f_frame && t->finished_at == t->entered &&
        PyTuple_Check(argument) && PyTuple_GET_ITEM(argument, 0) == PyExc_StopIteration &&
        is_stopped_at_await(frame)) {
        t->finished_under = NULL;
        return 0;
    }
    /* remove our trace function, because the recording is over */
    if (!tracer_process.recording && ts->c_tracefunc == filter_trace_event)
        ts->c_tracefunc = theirs;
    return theirs(object, frame, what, argument);
}

void tracer_trace_generator_return(struct tracer *t, PyThreadState *ts)
{
    if (ts->c_tracefunc != filter_trace_event) {
        t->trace = ts->c_tracefunc;
        world_set(real, ts->c_tracefunc);
        ts->c_tracefunc = filter_trace_event;
    }
    t->finished_under = compat_current_frame(ts);
    t->finished_at = t->entered;
}

#endif

/* ---- keep the marks of code objects that all interpreters share ----
 *
 * The extra slots of such a code object are the main interpreter's memory, which no other
 * interpreter may allocate or free. So other interpreters look up the mark of such a code object
 * here, by the object's address. A process has some hundred shared code objects. Guarded by
 * tracer_lock(). */
#if COMPAT_SHARES_CODE

struct shared_mark {
    PyCodeObject *code;
    uintptr_t mark;
};
static void *shared_marks; /* the root of a tree of tsearch(), by address of the code object */

static int compare_code_addresses(const void *a, const void *b)
{
    const struct shared_mark *x = a;
    const struct shared_mark *y = b;

    return (x->code > y->code) - (x->code < y->code);
}

uintptr_t tracer_shared_mark_setdefault(PyCodeObject *code, uintptr_t mark)
{
    struct shared_mark *made = mark ? malloc(sizeof *made) : NULL;
    struct shared_mark **found;

    tracer_lock();
    found = tfind(&(struct shared_mark){code, 0}, &shared_marks, compare_code_addresses);
    if (found) {
        mark = (*found)->mark;
    } else if (made) {
        *made = (struct shared_mark){code, mark};
        if (tsearch(made, &shared_marks, compare_code_addresses))
            made = NULL;
    }
    tracer_unlock();
    free(made);
    return mark;
}

#endif
