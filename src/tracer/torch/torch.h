/* tracer/torch/torch.h -- torch's two front ends: on our evaluator (torch.c), and on torch's own
 * evaluator, observed (observe.c); and what both share (bridge.c).
 *
 * Runs in: the traced process, under the GIL.
 *
 * torch's Python code sets callbacks through functions of torch's C module, which
 * python/dyntrace/_torch.py replaces. Each front end has a struct front, which says what
 * decide_frame() does differently for it (tracer/evaluator/cache.h). */
#ifndef DYNTRACE_TRACER_TORCH_H
#define DYNTRACE_TRACER_TORCH_H

#include "tracer/evaluator/cache.h"

extern struct torch_settings {
    /* before torch 2.15: what holds on every thread */
    struct call_rules rules;
    /* owned: True from torch 2.15 on, where each thread has rules of its own; or NULL */
    PyObject *rules_by_thread;
    /* owned: an int, the C recursion limit while the callback runs; NULL or -1: unchanged
     * (COMPAT_COUNTS_C_RECURSION) */
    PyObject *c_recursion_limit;
    PyObject *guard_complete_hook; /* owned: hook(hit) -> bool; or NULL */
    /* owned: debugger(code), called before compiled code runs; or NULL */
    PyObject *debugger;
    PyObject *breakpoints; /* owned: a set of compiled code objects; or NULL */
    /* owned: torch's _EvalFrameOverride. 1: as if torch counted frames; 2: fullgraph_fails, too. Or
     * NULL */
    PyObject *override;
    /* owned: the class of torch's profiler ranges, or NULL */
    PyObject *range;
    /* owned: the bridge's functions and torch.Tensor, or NULL */
    PyObject *guards, *begin, *end, *describe, *tensor;
    /* owned: torch's own functions and types, for observe mode; NULL if this torch does not have
     * one */
    PyObject *set, *strategy, *skip, *reset, *entries, *region_now, *frame_type;
} torch_settings;

/* Functions of struct front that both front ends use. */
PyObject *torch_compile_begins(uint32_t compile, PyObject *code);
void torch_compile_ends(PyObject *token, PyObject *result);
PyObject *torch_leaves(PyObject *guard, PyObject **view);
struct guard_outcome torch_failed(struct cache_entry *entry, const struct cache_parts *parts,
                                  compat_frame *frame, PyObject *locals);
PyObject *torch_explain(PyObject *view, compat_frame *frame, PyObject *locals);

/* Record a loss: the bridge failed in WHAT, with the pending exception. */
void torch_note_failure(const char *what);

/* Return a new dict of METHODS by name, bound to MODULE. */
PyObject *torch_functions(PyObject *module, PyMethodDef *methods);
/* tracer/torch/observe.c: call torch's set_eval_frame, with our hooks around it. */
PyObject *observe_set_callback(PyObject *callback);

/* tracer/torch/bridge.c, for `dyntrace run --set`. Without --set `plan` is NULL. */
extern struct settings {
    PyObject *plan; /* owned: plan(code) -> None, (when, act) or (when, act, watch) */
} settings;
/* A call while there are settings. */
struct settings_call {
    PyObject *after;        /* owned: callable for the end of the call, or NULL */
    bool wants_value;       /* `after` gets the frame's return value, if the frame did not raise */
    compat_frame *measured; /* the value of `measured` in bridge.c before this call */
};
/* Apply the settings to FRAME, which is about to run. LOOKED_AT says that torch will look at it.
 * Pass the result to settings_after. */
struct settings_call settings_before(compat_frame *frame, bool looked_at);
/* End a call. RESULT is the return value, or NULL with an exception set. */
void settings_after(struct settings_call *call, PyObject *result);

/* Load the bridge. The module code of torch._dynamo is about to run or, with LATE, has run before
 * the session began. */
void torch_attach(bool late);

extern PyMethodDef bridge_methods[], observe_methods[];
int torch_types_ready(PyObject *module);
/* Fill in torch's members of tracer/hooks.h. torch_register() calls the other three. */
void torch_register(void);
void bridge_register(void);
void observe_register(void);
void ranges_register(void);

#endif
