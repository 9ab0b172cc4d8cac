/* tracer/torch/torch.h -- torch's two front ends, for torch on our evaluator (torch.c) and for
 * torch on its own evaluator, observed (observe.c); and their shared bridge (bridge.c).
 *
 * Runs in: the traced process, under the GIL.
 *
 * torch's Python code sets callbacks through functions of torch's C module, which
 * python/dyntrace/_torch.py replaces. Each front end has a struct front (tracer/evaluator/cache.h),
 * by which decide_frame() treats it differently. */
#ifndef DYNTRACE_TRACER_TORCH_H
#define DYNTRACE_TRACER_TORCH_H

#include "tracer/evaluator/cache.h"

extern struct torch_settings {
    /* for torch before 2.15, where all threads have the same rules */
    struct call_rules rules;
    /* owned: True for torch from 2.15 on, where each thread has its own rules; or NULL */
    PyObject *rules_by_thread;
    /* owned: an int, the C recursion limit for the callback; with NULL or -1 it does not change
     * (COMPAT_COUNTS_C_RECURSION) */
    PyObject *c_recursion_limit;
    /* owned: hook(hit) -> bool, by which torch may reject a hit; or NULL */
    PyObject *guard_complete_hook;
    /* owned: debugger(code), to be called before compiled code runs; or NULL */
    PyObject *debugger;
    /* owned: a set of the compiled code objects that have a breakpoint; or NULL */
    PyObject *breakpoints;
    /* owned: torch's _EvalFrameOverride, or NULL. 1: compiled code forbids compiles below it, as
     * under fullgraph; 2: such a compile is an error */
    PyObject *override;
    /* owned: the class of ranges of torch's profiler, or NULL */
    PyObject *range;
    /* owned, or NULL: functions of the bridge, and torch.Tensor */
    PyObject *guards, *begin, *end, *describe, *tensor;
    /* owned: functions and types of torch, for observe mode; NULL if this torch has no such
     * function */
    PyObject *set, *strategy, *skip, *reset, *entries, *region_now, *frame_type;
} torch_settings;

/* Functions of struct front that both front ends use. */
PyObject *torch_compile_begins(uint32_t compile, PyObject *code);
void torch_note_compile_end(PyObject *token, PyObject *result);
PyObject *torch_leaves(PyObject *guard, PyObject **view);
struct guard_outcome torch_find_failed_guard(struct cache_entry *entry,
                                             const struct cache_parts *parts, compat_frame *frame,
                                             PyObject *locals);
PyObject *torch_explain(PyObject *view, compat_frame *frame, PyObject *locals);

/* Write a loss row: the bridge could not do WHAT, because of the pending exception. */
void torch_note_failure(const char *what);

/* Return a new dict of the functions METHODS, by name, bound to MODULE. */
PyObject *torch_functions(PyObject *module, PyMethodDef *methods);
/* Call torch's set_eval_frame, and put our hooks around its evaluator (tracer/torch/observe.c). */
PyObject *observe_set_callback(PyObject *callback);

/* For `dyntrace run --set` (tracer/torch/bridge.c). Without --set `plan` is NULL. */
extern struct settings {
    PyObject *plan; /* owned: plan(code) -> None, (when, act) or (when, act, watch) */
} settings;
/* What settings_finish_call() must do at the end of a call. */
struct settings_call {
    PyObject *after;        /* owned: a callable to be called at the end of the call, or NULL */
    bool wants_value;       /* unless the frame has raised, `after` gets its return value */
    compat_frame *measured; /* what `measured` of bridge.c was before this call */
};
/* Apply the settings to FRAME, which is about to run. LOOKED_AT: torch's evaluator is going to
 * decide it. The result is for settings_finish_call. */
struct settings_call settings_apply_before_call(compat_frame *frame, bool looked_at);
/* A call has ended with RESULT, or with an exception if RESULT is NULL: call what the settings want
 * to be called. */
void settings_finish_call(struct settings_call *call, PyObject *result);

/* Load the bridge, because the module torch._dynamo is about to run; LATE: it ran before the
 * session began. */
void torch_load_bridge(bool late);

extern PyMethodDef bridge_methods[], observe_methods[];
int torch_types_ready(PyObject *module);
/* Fill in the members of tracer/hooks.h that torch/ provides. torch_register() calls the other
 * three. */
void torch_register(void);
void bridge_register(void);
void observe_register(void);
void ranges_register(void);

#endif
