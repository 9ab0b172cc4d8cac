/* tracer/torch/torch.h -- what torch's front end needs of the shim beyond tracer/evaluator/decide.c's rules.
 *
 * Runs in: the traced process, under the GIL.
 *
 * torch's Python code sets callbacks through functions of its own (tracer/torch/torch.c),
 * which make a thread's `torch` true; the same decide_frame() then also keeps to
 * what is written here. python/dyntrace/_torch.py puts them in place. */
#ifndef DYNTRACE_TRACER_TORCH_H
#define DYNTRACE_TRACER_TORCH_H

#include "tracer/evaluator/cache.h"

extern struct torch_settings {
    bool skip_guards_unsafe;         /* a stance: check only what tells entries apart; a miss is an error */
    bool insertion_order;            /* entries stay where they were put */
    long fullgraph_frames;           /* compiled frames run since somebody began to count; -1: nobody does */
    bool fullgraph_fails;            /* compiling below a fullgraph frame is an error rather than not done */
    long c_recursion_limit;          /* while the callback runs; -1: as it is (COMPAT_COUNTS_C_RECURSION) */
    PyObject *guard_complete_hook;   /* owned, or NULL: hook(hit) -> bool */
    PyObject *debugger;              /* owned, or NULL: debugger(code) before compiled code runs */
    PyObject *breakpoints;           /* owned set of compiled code, or NULL */
    PyObject *skip_recursively, *limit_reached; /* owned: answers of torch 2.6's callback, or NULL */
    /* the bridge, python/dyntrace/: owned, or NULL */
    PyObject *guards, *begin, *end, *describe, *tensor;
} torch_settings;

/* This thread's region: entries of another are not seen. -1: the common one. */
int64_t torch_region(void);
/* The bound check of guard manager GUARD's tree NAME ("root", "diff_guard_root"). New
 * reference; NULL: it has none, or, with an exception, it could not be had. */
PyObject *torch_check_of(PyObject *guard, const char *name);
/* ENTRY, whose PARTS are pinned, is new: its guard manager learns of it. -1 with an exception. */
int torch_entry_bind(struct cache_entry *entry, struct cache_parts *parts);
/* ENTRY has let go of GUARD, which forgets it. */
void torch_entry_unbind(struct cache_entry *entry, PyObject *guard);
/* The state behind EXTRA (code_state.extra) goes away. */
void torch_state_gone(PyObject *extra);

/* A range in torch's profiler. NULL: nobody profiles. torch_range_end takes the reference. */
PyObject *torch_range_begin(PyObject *name);
void torch_range_end(PyObject *range);
extern PyObject *torch_lookup_name; /* "TorchDynamo Cache Lookup" */

/* Was it a hit for all who take part? *HIT becomes false if not. -1 with an exception. */
int torch_guards_complete(const struct code_state *state, bool *hit);

/* What the bridge does before and after a compile: a token of its own, or NULL, and what becomes of it, which takes the
 * reference. RESULT is borrowed, or NULL with an exception, which is kept. */
PyObject *torch_compile_begins(uint32_t compile, PyObject *code);
void torch_compile_ends(PyObject *token, PyObject *result);

/* The callback runs between these. */
struct torch_asking {
    PyObject *random;                /* owned: the state of the module random */
    PyObject *token;                 /* owned: the bridge's */
    int c_remaining;
};
int torch_ask_begin(struct torch_asking *a, PyThreadState *ts, uint32_t compile, PyObject *code);
/* RESULT is borrowed, or NULL with an exception, which is kept. */
void torch_ask_end(struct torch_asking *a, PyThreadState *ts, PyObject *result);

/* CODE, that of ENTRY, runs between these, its callees under *UNDER, which may change. The caller holds them. */
struct torch_run {
    PyObject *under;                 /* owned: what *UNDER was set to, or NULL */
    PyObject *debugging;             /* owned context, or NULL */
    PyObject *range;
};
int torch_run_begin(struct torch_run *run, const struct cache_entry *entry, PyObject *code, PyObject **under);
void torch_run_end(struct torch_run *run);

/* While these enclose it, code of ours runs unseen: not recorded, not traced, without garbage collection. */
struct torch_quiet {
    PyObject *type, *value, *traceback;
    bool collects;
};
void torch_quiet_begin(struct torch_quiet *q);
void torch_quiet_end(struct torch_quiet *q);
/* The bridge failed with the pending exception, in doing WHAT: a loss row. */
void torch_bridge_failed(const char *what);

/* tracer/torch/observe.c: is EVALUATE torch's evaluator, or one of the hooks around it? */
bool observe_is(_PyFrameEvalFunction evaluate);

extern PyMethodDef torch_methods[], note_methods[], observe_methods[];
int torch_types_ready(PyObject *module);

#endif
