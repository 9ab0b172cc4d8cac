/* tracer/torch/torch.h -- torch's front ends: on this evaluator (torch.c), and on its own, observed
 * (observe.c); bridge.c.
 *
 * Runs in: the traced process, under the GIL.
 *
 * torch's Python code sets callbacks through functions of its own, which python/dyntrace/_torch.py
 * puts in place. What decide_frame() does otherwise for them is in their struct front
 * (tracer/evaluator/cache.h). */
#ifndef DYNTRACE_TRACER_TORCH_H
#define DYNTRACE_TRACER_TORCH_H

#include "tracer/evaluator/cache.h"

extern struct torch_settings {
    /* compiled frames run since torch began to count; -1: it does not */
    long fullgraph_frames;
    /* a compile below a fullgraph frame is an error instead of being skipped */
    bool fullgraph_fails;
    /* owned int, set while the callback runs; NULL, -1: unchanged (COMPAT_COUNTS_C_RECURSION) */
    PyObject *c_recursion_limit;
    PyObject *guard_complete_hook; /* owned, or NULL: hook(hit) -> bool */
    PyObject *debugger;            /* owned, or NULL: debugger(code) before compiled code runs */
    PyObject *breakpoints;         /* owned set of compiled code, or NULL */
    /* owned _EvalFrameOverride: 1, as if torch counted; 2, fullgraph_fails, too. Or NULL */
    PyObject *override;
    PyObject *range;                                    /* owned: torch's profiler range, or NULL */
    PyObject *guards, *begin, *end, *describe, *tensor; /* the bridge's: owned, or NULL */
    /* torch's own, when it is observed: owned, or NULL where this torch has it not */
    PyObject *set, *strategy, *skip, *reset, *entries, *region_now, *frame_type;
} torch_settings;

/* Common functions of both front ends; struct front has each one's own. */
PyObject *torch_compile_begins(uint32_t compile, PyObject *code);
void torch_compile_ends(PyObject *token, PyObject *result);
PyObject *torch_leaves(PyObject *guard, PyObject **view);
struct guard_outcome torch_failed(struct cache_entry *entry, const struct cache_parts *parts,
                                  compat_frame *frame, PyObject *locals);
PyObject *torch_explain(PyObject *view, compat_frame *frame, PyObject *locals);

/* Record a loss: the bridge failed in WHAT, with the pending exception. */
void torch_note_failure(const char *what);

/* METHODS, bound to MODULE, by name: a new dict. */
PyObject *torch_functions(PyObject *module, PyMethodDef *methods);
/* tracer/torch/observe.c: torch's set_eval_frame, with our hooks around it. */
PyObject *observe_set_callback(PyObject *callback);

/* tracer/torch/bridge.c, for `dyntrace run --set`. Without --set `plan` is NULL. */
extern struct settings {
    PyObject *plan; /* owned: plan(code) -> None, (when, act) or (when, act, watch) */
} settings;
/* A call under settings. */
struct settings_call {
    PyObject *after;        /* owned: callable for the end of the call, or NULL */
    bool wants_value;       /* `after` gets the frame's value, if it returned one */
    compat_frame *measured; /* the former settings_measured */
};
/* FRAME is about to run; LOOKED_AT: torch will look at it. Pass the result to settings_after. */
struct settings_call settings_before(compat_frame *frame, bool looked_at);
/* RESULT is the value, or NULL with an exception set. */
void settings_after(struct settings_call *call, PyObject *result);

/* The module code of torch._dynamo is about to run, or, LATE, has run before the session began:
 * watch it. */
void torch_attach(bool late);

extern PyMethodDef bridge_methods[], observe_methods[];
int torch_types_ready(PyObject *module);
/* Fill in torch's members of tracer/hooks.h. The first function calls the other two. */
void torch_register(void);
void bridge_register(void);
void observe_register(void);

#endif
