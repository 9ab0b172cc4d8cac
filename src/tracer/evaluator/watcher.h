/* tracer/evaluator/watcher.h -- the interface between the shim and capture/.
 *
 * Runs in: the traced process, under the GIL.
 *
 * capture/ is an extension of its own, `_dyntrace_capture`, which dyntrace.compile and `run
 * --capture` load. It is a watcher: it runs the first call of a function itself, in the frame that
 * CPython made, and afterwards has compiled code for later calls. Neither extension is linked to
 * the other. The capsule `_dyntrace._shim` holds a struct shim_services; its attach() takes the
 * watcher's struct watcher. */
#ifndef DYNTRACE_TRACER_WATCHER_H
#define DYNTRACE_TRACER_WATCHER_H

#include "tracer/references.h"

/* A call that is being watched. The watcher defines the struct; NULL if no call is watched. */
struct capture;

/* How a watched call's frame continues. */
struct watched_rest {
    bool on; /* continue the frame where it stands; if false, run `plan`'s code from its start */
    int throws;
    struct tracer_exception pending;
    /* owned, or NULL: `plan` is the plan of the new entry; `values` is a tuple of the result of its
     * first run and the frame's cells */
    PyObject *values, *plan;
    /* original: the watched frame, which `frame` replaces; frame: NULL until it starts */
    compat_frame *original, *frame;
};

/* The watcher's answer for a call that missed. */
struct watched_answer {
    PyObject *guarded; /* owned: a GuardedCode, or NULL if there is no code */
    PyObject *reason;  /* owned: a str, the reason why there is no code; or NULL */
    bool for_code;     /* the reason holds for later calls, too */
};

struct watcher {
    /* The type of the watcher's callbacks: a tuple. Its item number `backend` is the backend of
     * entries, which is part of their match. */
    PyTypeObject *type;
    Py_ssize_t backend;
    /* Does the watcher refuse to watch a miss of FRAME? If so, ANSWER has the reason. */
    bool (*refuses)(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                    struct watched_answer *answer);
    /* Run the call. Returns 0 and sets ANSWER and REST; or returns -1 with an exception, and then
     * the caller clears FRAME. */
    int (*watch)(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest);
    /* Does CAPTURE wait for FRAME, which is about to begin? If so, step() runs the frame. */
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
    /* size of this struct; a watcher of another build, with another size, does not attach */
    size_t size;
    int deepest_path; /* the most steps that a guard's path may have */
    void (*attach)(const struct watcher *watcher);
    /* Set CALLBACK in each thread at its first frame, for `run --capture`. Returns -1 with an
     * exception. */
    int (*callback_for_all)(PyObject *callback);

    /* Evaluate FRAME as CPython does. */
    PyObject *(*evaluate)(PyThreadState *ts, compat_frame *frame, int throws);
    /* Make CAPTURE the call that this thread watches; returns the former one. */
    struct capture *(*set_watching)(PyThreadState *ts, struct capture *capture);
    /* mask: remove the thread's callback. unmask: restore it, unless another has been set. */
    struct masked_callback (*mask)(PyThreadState *ts);
    void (*unmask)(PyThreadState *ts, struct masked_callback masked);
    /* If FRAME is the first run of PLAN, the plan of this thread's watched call: return the
     * `values` of watched_rest, a new reference. Otherwise return NULL. */
    PyObject *(*take_values)(PyThreadState *ts, PyObject *plan, compat_frame *frame);
    /* Call work(DATA), which runs our own Python code: not recorded, traced or counted, without
     * garbage collection. */
    PyObject *(*quietly)(PyObject *(*work)(void *data), void *data);
    /* Does CODE belong to the program, not to the standard library or an installed package? */
    bool (*is_users)(PyCodeObject *code);

    /* The next members are for resume functions: tracer/resume/resume.h. */
    PyObject *unbound;
    PyObject *(*link_of)(PyCodeObject *code);
    int (*link_enter_again)(PyFunctionObject *function, PyObject *closure);
};

/* Name of the capsule `_dyntrace._shim`, which holds a struct shim_services. */
#define SHIM_SERVICES "_dyntrace._shim"

#endif
