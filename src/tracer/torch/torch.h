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
    /* compiling below a fullgraph frame is an error rather than not done */
    bool fullgraph_fails;
    /* owned int, while the callback runs; NULL, -1: as it is (COMPAT_COUNTS_C_RECURSION) */
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

/* What both front ends have in common; struct front says what each does. */
/* a tensor in words: a new str, or NULL, perhaps with an exception */
PyObject *torch_describe(PyObject *value);
PyObject *torch_compile_begins(uint32_t compile, PyObject *code);
void torch_compile_ends(PyObject *token, PyObject *result);
PyObject *torch_leaves(PyObject *guard, PyObject **view);
struct guard_outcome torch_failed(struct cache_entry *entry, const struct cache_parts *parts,
                                  compat_frame *frame, PyObject *locals);
PyObject *torch_explain(PyObject *view, compat_frame *frame, PyObject *locals);

/* While these enclose it, code of ours runs unseen: not recorded, not traced, without garbage
 * collection. */
struct torch_quiet {
    struct tracer_exception pending;
    bool collects;
};
void torch_quiet_begin(struct torch_quiet *q);
void torch_quiet_end(struct torch_quiet *q);

/* METHODS, bound to MODULE, by name: a new dict. */
PyObject *torch_functions(PyObject *module, PyMethodDef *methods);
/* tracer/torch/observe.c: is EVALUATE torch's evaluator, or one of the hooks around it? */
bool observe_is(_PyFrameEvalFunction evaluate);
/* ... and goes on to the hook of ours below, which asks for tracer_process.hook? */
bool observe_is_around(_PyFrameEvalFunction evaluate);
/* Recording began, or ended: if torch's evaluator is in the slot, put the hook around it or take
 * it away. */
void observe_follow(void);

extern PyMethodDef bridge_methods[], observe_methods[];
int torch_types_ready(PyObject *module);

#endif
