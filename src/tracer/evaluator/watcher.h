/* tracer/evaluator/watcher.h -- the interface between the shim and capture/.
 *
 * Runs in: the traced process, under the GIL.
 *
 * capture/ is a separate extension, `_dyntrace_capture`, which dyntrace.compile and `run --capture`
 * load. It is a watcher: it runs the first call of a function itself, in the frame that CPython
 * made, and afterwards has compiled code for later calls. Neither extension is linked to the other.
 * The capsule `_dyntrace._shim` holds a struct shim_services; its attach() takes the watcher's
 * struct watcher. */
#ifndef DYNTRACE_TRACER_WATCHER_H
#define DYNTRACE_TRACER_WATCHER_H

#include "tracer/references.h"

/* A call that a watcher is watching. The watcher defines this struct. */
struct capture;

/* How the frame of a watched call continues when the watcher has finished. */
struct watched_rest {
    /* true: continue the frame where it is; false: run the code of `plan` from its start */
    bool on;
    int throws;
    struct tracer_exception pending;
    /* owned, or NULL. plan: the steps that the new entry's code runs; values: a tuple of the result
     * of the plan's first run and the frame's cells */
    PyObject *values, *plan;
    /* original: the frame that was watched; frame: the frame that runs in its place, NULL until it
     * starts */
    compat_frame *original, *frame;
};

/* A watcher's answer about a call that missed: code, or the reason why there is none. */
struct watched_answer {
    PyObject *guarded; /* owned: a GuardedCode, or NULL if there is no code */
    PyObject *reason;  /* owned: a str, the reason why there is no code; or NULL */
    bool for_code;     /* `reason` is a reason not to watch later calls either */
};

struct watcher {
    /* The type of callbacks that have a watcher: a tuple. Item number `backend` of a callback is
     * the backend of its entries, by which lookups tell them from others. */
    PyTypeObject *type;
    Py_ssize_t backend;
    /* Does the watcher refuse to watch the call of FRAME, which has missed? Then it writes the
     * reason into ANSWER. */
    bool (*refuses)(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                    struct watched_answer *answer);
    /* Run the call of FRAME, and watch it. Returns 0 with ANSWER and REST filled in; or -1 with an
     * exception, and the caller then clears FRAME. */
    int (*watch)(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest);
    /* Has the watched call CAPTURE announced FRAME, which is about to begin? Then step() runs the
     * frame. */
    bool (*awaits)(struct capture *capture, compat_frame *frame);
    PyObject *(*step)(struct capture *capture, PyThreadState *ts, compat_frame *frame);
    /* Let CPython continue FRAME, which the watcher has run up to here. */
    PyObject *(*go_on)(PyThreadState *ts, compat_frame *frame, int throws);
};

/* A thread's callback while it is removed by shim_services.mask. */
struct masked_callback {
    PyObject *callback; /* owned, or NULL */
    const struct front *front;
};

struct shim_services {
    /* size of this struct, by which attach() recognises a watcher of another build and refuses
     * it */
    size_t size;
    int deepest_path; /* the most steps that the path of a guard may have */
    void (*attach)(const struct watcher *watcher);
    /* Give CALLBACK to each thread at its first frame, for `run --capture`. Returns -1 with an
     * exception. */
    int (*callback_for_all)(PyObject *callback);

    /* Evaluate FRAME as CPython would without us. */
    PyObject *(*evaluate)(PyThreadState *ts, compat_frame *frame, int throws);
    /* Make CAPTURE the call that this thread watches. Returns the call that it watched before. */
    struct capture *(*set_watching)(PyThreadState *ts, struct capture *capture);
    /* mask: remove the thread's callback. unmask: set it again, unless another has been set
     * meanwhile. */
    struct masked_callback (*mask)(PyThreadState *ts);
    void (*unmask)(PyThreadState *ts, struct masked_callback masked);
    /* Is FRAME the first run of PLAN, the plan of the call that this thread watches? Then return
     * `values` of watched_rest, a new reference; otherwise NULL. */
    PyObject *(*take_values)(PyThreadState *ts, PyObject *plan, compat_frame *frame);
    /* Call work(DATA), which runs Python code of ours. That code is not recorded, traced or
     * counted, and no garbage is collected meanwhile. */
    PyObject *(*quietly)(PyObject *(*work)(void *data), void *data);
    /* Is CODE the program's own code? If not, it belongs to the standard library or an installed
     * package. */
    bool (*is_users)(PyCodeObject *code);

    /* The members from here on are for resume functions (tracer/resume/resume.h). */
    PyObject *unbound;
    PyObject *(*link_of)(PyCodeObject *code);
    int (*link_prepare_to_enter_again)(PyFunctionObject *function, PyObject *closure);
};

/* Name of the capsule `_dyntrace._shim`, which holds a struct shim_services. */
#define SHIM_SERVICES "_dyntrace._shim"

#endif
