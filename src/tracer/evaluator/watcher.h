/* tracer/evaluator/watcher.h -- the one door between the shim and capture/.
 *
 * Runs in: the traced process, under the GIL.
 *
 * capture/ is an extension of its own, `_dyntrace_capture`, that is loaded where dyntrace.compile
 * or `run --capture` needs it. It is a watcher: it runs the first call of a function itself, in the
 * frame that CPython made, and has code ready for the calls after it. Neither extension is linked
 * to the other. The capsule `_dyntrace._shim` holds a struct shim_services; its attach() takes the
 * watcher's struct watcher. */
#ifndef DYNTRACE_TRACER_WATCHER_H
#define DYNTRACE_TRACER_WATCHER_H

#include "tracer/references.h"

/* A call that is being watched: the watcher's own; NULL: none. */
struct capture;

/* How the frame of a watched call goes on. */
struct watched_rest {
    bool on; /* go on in the frame, from where it is; else run `plan`'s code from its start */
    int throws;
    struct tracer_exception pending;
    /* owned: what the plan returns when its code runs the first time, and the frame's cells; or
     * NULL */
    PyObject *values, *plan;
    compat_frame *original, *frame; /* in whose place it runs, and where; NULL: it has not begun */
};

/* What the watcher answers for a call that missed. */
struct watched_answer {
    PyObject *guarded; /* owned: a GuardedCode; or NULL: no code */
    PyObject *reason;  /* owned: a str, why there is none; or NULL */
    bool for_code;     /* there is none for later calls either */
};

struct watcher {
    /* A callback of this type is the watcher's: a tuple whose item `backend` is part of an entry's
     * match. */
    PyTypeObject *type;
    Py_ssize_t backend;
    /* Is a miss of FRAME not to be watched? Then ANSWER says why. */
    bool (*refuses)(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                    struct watched_answer *answer);
    /* Run the call. 0: ANSWER and REST say what becomes of it; -1: an exception, and FRAME is to be
     * disposed of. */
    int (*watch)(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest);
    /* FRAME is about to begin. Does CAPTURE wait for it? Then step() runs it. */
    bool (*awaits)(struct capture *capture, compat_frame *frame);
    PyObject *(*step)(struct capture *capture, PyThreadState *ts, compat_frame *frame);
    /* CPython goes on with FRAME, which the watcher has handed over. */
    PyObject *(*go_on)(PyThreadState *ts, compat_frame *frame, int throws);
};

/* A thread's callback while it is taken away; see shim_services.mask. */
struct masked_callback {
    PyObject *callback; /* owned, or NULL */
    const struct front *front;
};

struct shim_services {
    size_t size;      /* of this struct: another build's watcher does not attach */
    int deepest_path; /* the most steps in a path of a guard */
    void (*attach)(const struct watcher *watcher);
    /* CALLBACK is that of each thread from its first frame on: `run --capture`. -1 with an
     * exception. */
    int (*callback_for_all)(PyObject *callback);

    /* Evaluate FRAME as CPython does. */
    PyObject *(*evaluate)(PyThreadState *ts, compat_frame *frame, int throws);
    /* The thread watches CAPTURE from here on; returns what it watched before. */
    struct capture *(*set_watching)(PyThreadState *ts, struct capture *capture);
    /* Take the thread's callback away, and put it back unless there is another. */
    struct masked_callback (*mask)(PyThreadState *ts);
    void (*unmask)(PyThreadState *ts, struct masked_callback masked);
    /* The values of a watched_rest that FRAME waits for, which runs PLAN the first time: a new
     * reference; NULL: there are none. */
    PyObject *(*take_values)(PyThreadState *ts, PyObject *plan, compat_frame *frame);
    /* work(DATA), of our own Python code: it is not recorded, traced or counted, and no garbage is
     * collected meanwhile. */
    PyObject *(*quietly)(PyObject *(*work)(void *data), void *data);
    /* Is CODE of neither the standard library nor an installed package? */
    bool (*is_users)(PyCodeObject *code);

    /* Resume functions: tracer/resume/resume.h. */
    PyObject *unbound;
    PyObject *(*link_of)(PyCodeObject *code);
    int (*link_enter_again)(PyFunctionObject *function, PyObject *closure);
};

/* What `_dyntrace._shim` holds, and its name. */
#define SHIM_SERVICES "_dyntrace._shim"

#endif
