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

/* How a watched call's frame continues. */
struct watched_rest {
    bool on; /* continue the frame where it is; else run `plan`'s code from its start */
    int throws;
    struct tracer_exception pending;
    /* owned: the plan's result at its first run, and the frame's cells; or NULL */
    PyObject *values, *plan;
    compat_frame *original, *frame; /* the frame that it replaces, and its own; NULL: not started */
};

/* The watcher's answer for a call that missed. */
struct watched_answer {
    PyObject *guarded; /* owned: a GuardedCode; or NULL: no code */
    PyObject *reason;  /* owned: a str, why there is no code; or NULL */
    bool for_code;     /* the reason holds for later calls as well */
};

struct watcher {
    /* A callback of this type is the watcher's: a tuple whose item `backend` is part of an entry's
     * match. */
    PyTypeObject *type;
    Py_ssize_t backend;
    /* Should a miss of FRAME not be watched? Then ANSWER has the reason. */
    bool (*refuses)(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                    struct watched_answer *answer);
    /* Run the call. 0: ANSWER and REST are set; -1: an exception, and the caller clears FRAME. */
    int (*watch)(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest);
    /* Does CAPTURE wait for FRAME, which is about to begin? Then step() runs it. */
    bool (*awaits)(struct capture *capture, compat_frame *frame);
    PyObject *(*step)(struct capture *capture, PyThreadState *ts, compat_frame *frame);
    /* Let CPython continue FRAME, which the watcher has handed over. */
    PyObject *(*go_on)(PyThreadState *ts, compat_frame *frame, int throws);
};

/* A thread's callback while it is removed; see shim_services.mask. */
struct masked_callback {
    PyObject *callback; /* owned, or NULL */
    const struct front *front;
};

struct shim_services {
    size_t size;      /* size of this struct: a watcher of another build does not attach */
    int deepest_path; /* the most steps in a path of a guard */
    void (*attach)(const struct watcher *watcher);
    /* Set CALLBACK in each thread at its first frame: `run --capture`. -1 with an exception. */
    int (*callback_for_all)(PyObject *callback);

    /* Evaluate FRAME as CPython does. */
    PyObject *(*evaluate)(PyThreadState *ts, compat_frame *frame, int throws);
    /* Make CAPTURE the call that this thread watches; returns the former one. */
    struct capture *(*set_watching)(PyThreadState *ts, struct capture *capture);
    /* Remove the thread's callback; restore it unless another has been set. */
    struct masked_callback (*mask)(PyThreadState *ts);
    void (*unmask)(PyThreadState *ts, struct masked_callback masked);
    /* The values of a watched_rest for FRAME, which runs PLAN for the first time: a new reference;
     * NULL: none. */
    PyObject *(*take_values)(PyThreadState *ts, PyObject *plan, compat_frame *frame);
    /* Call work(DATA), which runs our own Python code: not recorded, traced or counted, without
     * garbage collection. */
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
