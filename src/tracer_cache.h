/* tracer_cache.h -- what the shim keeps for each code object.
 *
 * Runs in: the traced process, under the GIL.
 *
 * The code object's extra slot holds either the recorder's bare mark (an odd
 * number, tracer.h) or a pointer to this state, which then holds the mark:
 *
 *     slot -> code_state { mark, action, frame_state,
 *                          entries: [0] most recent hit, ... , invalid ones last }
 *
 * A state is referenced by the slot and by every decision that is under way, so
 * that reset_code() or the death of the code object from within a guard or a
 * callback leaves them something to finish with. */
#ifndef DYNTRACE_TRACER_CACHE_H
#define DYNTRACE_TRACER_CACHE_H

#include "tracer.h"
#include "tracer_guard.h"

enum frame_action { ACTION_DEFAULT, ACTION_SKIP, ACTION_RUN_ONLY };

/* How a call was decided: `outcome` of schemas/trace.sql. */
enum outcome {
    OUTCOME_PLAIN, OUTCOME_HIT, OUTCOME_COMPILED, OUTCOME_RUN_ONLY, OUTCOME_SKIP, OUTCOME_LIMIT,
    OUTCOME_DECLINED, OUTCOME_DISABLED, OUTCOME_GUARD_ERROR, OUTCOME_CALLBACK_ERROR,
};

struct code_state;

/* dyntrace.types.CacheEntry: compiled code and the guards under which it fits. */
struct cache_entry {
    PyObject_HEAD
    struct code_state *state;   /* borrowed; NULL once dropped from its code's list */
    PyObject *guard;            /* owned: check(f_locals) -> bool; None once invalid */
    PyObject *check;            /* owned: what is called, `guard` or its bound check method; NULL once invalid */
    PyObject *code;             /* owned; None once invalid */
    PyObject *flat;             /* owned: `code` with every argument positional; NULL: not made yet */
    PyObject *function;         /* owned: function of `flat`, kept when it has no closure; or NULL */
    unsigned running;           /* calls of `function` under way */
    PyObject *backend;          /* owned; NULL for one of torch's own evaluator */
    PyObject *born_for;         /* owned: weak reference to such a one's backend, or NULL */
    PyObject *compile_id;       /* owned: "2/0": third code object compiled, first time */
    PyObject *annotation;       /* owned */
    PyObject *invalid_reason;   /* owned, or NULL while valid */
    unsigned long hits;
    uint32_t id;                /* in the trace; ENTRY_UNRECORDED: it is not there */
    uint32_t guards;            /* leaves of the tree; 1 for any other callable */
    uint32_t moves;             /* changes of its guards' order that are told */
    int64_t region;             /* torch: entries of different regions do not see each other; -1: the common one */
    PyObject *difference;       /* owned: torch's check of only what tells its entries apart, or NULL */
    PyObject *view;             /* owned: what the bridge knows of torch's guards, or NULL */
    bool tree;                  /* `guard` is a GuardTree: checked without a call */
    bool torch;                 /* `guard` is torch's, which knows its entry and its state */
    bool dead;                  /* its death is told */
};
#define ENTRY_UNRECORDED UINT32_MAX

/* What is done with calls of a code object, and with the calls that those make. */
struct code_actions {
    enum frame_action own, callees;
    bool limited;               /* ACTION_RUN_ONLY since a limit was reached */
    bool told;                  /* the trace has them */
};
struct region_actions {
    int64_t region;
    struct code_actions actions;
};

struct code_state {
    uintptr_t mark;             /* first: tracer_mark_in(). As in tracer.h; 0: the recorder has not seen the code */
    unsigned references;
    PyCodeObject *code;         /* borrowed; NULL once the code object is gone or was reset */
    struct cache_entry **entries; /* owned references */
    Py_ssize_t count, room;
    PyObject *frame_state;      /* owned dict: the callback's own notes */
    struct code_actions actions;
    PyObject *precompiled;      /* owned list: torch's entries that were loaded, tried before the others; or NULL */
    PyObject *extra;            /* owned: this state as torch's Python code sees it, or NULL */
    struct region_actions *regions; /* owned: torch's regions that have actions of their own */
    unsigned region_count;
    struct cache_entry *compiled; /* owned: the entry that this code was compiled for, while torch is observed; or NULL */
    bool is_init;               /* an __init__: see tracer_fix_init() */
    unsigned long number;       /* first part of its compile ids; 0 = not compiled yet */
    unsigned long compiles;     /* entries ever made */
    struct code_state *previous, *next; /* all states, for reset() */
};

extern PyTypeObject cache_entry_type, shim_frame_type;

struct code_state *code_state_make(PyCodeObject *code);
/* The state of CODE; MAKE it if there is none. Borrowed. NULL: none, or no memory. */
static inline struct code_state *code_state_of(PyCodeObject *code, bool make)
{
    uintptr_t slot = compat_extra(code, tracer_process.extra);

    return tracer_is_state(slot) ? (struct code_state *)slot : make ? code_state_make(code) : NULL;
}
struct code_state *code_state_hold(struct code_state *state);
void code_state_release(struct code_state *state);
/* Forget what is known of CODE; its entries die. */
void code_state_reset(PyCodeObject *code);
void code_state_reset_all(void);
/* For PyUnstable_Eval_RequestCodeExtraIndex: the code object is going away. */
void code_state_free(void *slot);

/* A new entry in front of STATE's list, from a GuardedCode. Borrowed. NULL: an
 * exception is set, which says what is wrong with it. TORCH: its guard is torch's. */
struct cache_entry *cache_entry_add(struct code_state *state, PyObject *guarded, PyObject *backend,
                                    PyCodeObject *original, bool torch);
/* torch: an entry that was compiled elsewhere, for its owner's list. New reference; NULL with an exception. */
struct cache_entry *cache_entry_loaded(struct code_state *state, PyObject *guard, PyObject *code, int64_t region);
/* The guarded object died, or somebody asked: the entry never matches again.
 * INSTEAD is what it then shows as its guard. */
void cache_entry_invalidate(struct cache_entry *entry, const char *reason, PyObject *instead);
/* A hit: to the front of the list. */
void cache_entry_touch(struct cache_entry *entry);
/* Entries that can still match. */
Py_ssize_t code_state_valid(const struct code_state *state);
/* The actions that hold in REGION (-1: in the common one), and setting them. False: no memory. */
struct code_actions code_state_actions(const struct code_state *state, int64_t region);
bool code_state_act(struct code_state *state, int64_t region, struct code_actions actions);
/* The entry tried first in REGION, or after ENTRY. Borrowed, or NULL. */
struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region);
struct cache_entry *cache_entry_after(const struct cache_entry *entry);

/* tracer_decision.c: what is recorded of a lookup. Filled while it goes on; does
 * nothing while ON is false. */
#define CHECK_TICKS_UNKNOWN UINT64_MAX
struct decision {
    bool on;
    bool torch;                 /* the callback is torch's */
    bool observed;              /* torch's own evaluator decides: what failed is asked again afterwards */
    bool older;                 /* there are entries, if none that we know */
    enum outcome outcome;       /* once the callback has answered */
    uint64_t began, ours;       /* clock; ticks since that were ours, spent on finding out why */
    uint32_t count, room;
    struct decision_check {
        uint32_t entry, run, failed; /* entry id, leaves looked at, ordinal or UINT32_MAX */
        uint64_t ticks;
        enum ring_result result;
        struct cache_entry *object; /* owned: for the causes */
    } *check;                   /* owned unless it is `small` */
    struct decision_check small[4];
    uint32_t compile;           /* compile id + 1, 0 = none */
    uint32_t signature;         /* signature id + 1, 0 = none */
    uint64_t compile_began;
    PyObject *causes;           /* owned list of what explain() said, by check; or NULL */
};
/* BEGAN: when the call did, by the session's clock; 0: it is not recorded. */
void decision_begin(struct decision *d, uint64_t began, bool torch);
void decision_add(struct decision *d, struct cache_entry *entry, enum ring_result result, uint32_t run, uint32_t failed,
                  uint64_t ticks);
/* A miss: note the values that missed, and why each entry did, before anybody changes them. */
void decision_missed(struct decision *d, compat_frame *frame, PyObject *locals);
/* The callback is asked, and has answered with ENTRY, or nothing (OUTCOME says why). */
void decision_ask(struct decision *d, const struct code_state *state);
void decision_answer(struct decision *d, struct code_state *state, struct cache_entry *entry, enum outcome outcome);
/* The frame runs now: write the lookup. */
void decision_write(struct decision *d, struct tracer *t, enum outcome outcome, const struct cache_entry *entry);
void decision_outcome(struct tracer *t, enum outcome outcome);
/* The same for what was seen of torch's own evaluator: which entries were tried is not known. */
void decision_observed(struct decision *d, struct tracer *t, enum outcome outcome, const struct cache_entry *entry);
/* Torch's own evaluator, asked at BEGAN, has found ENTRY: decision_add() and decision_observed() without a decision. */
void decision_hit(struct tracer *t, uint64_t began, const struct cache_entry *entry);
void decision_end(struct decision *d);
/* A check of torch's guards has just failed: which one. */
struct guard_outcome decision_torch_failed(struct cache_entry *entry, compat_frame *frame, PyObject *locals);
/* What is done with calls of STATE's code has changed, for REASON (str, or NULL). */
void decision_actions(struct code_state *state, int64_t region, struct code_actions actions, PyObject *reason);
void decision_entry_born(struct cache_entry *entry, struct code_state *state);
/* ENTRY's guards are tried in another order from now on. */
void decision_entry_order(struct cache_entry *entry, uint64_t clock);
void decision_entry_died(struct cache_entry *entry, const char *cause);

/* tracer_replace.c: run ENTRY's code in place of FRAME, which has not started,
 * and dispose of FRAME. */
PyObject *replace_frame(struct tracer *t, PyThreadState *ts, compat_frame *frame, struct cache_entry *entry);
/* FRAME is the one that runs in its place: about to start. */
void replace_begin(struct tracer *t, compat_frame *frame);

/* tracer_decide.c */
extern struct shim_settings {
    unsigned long recompile_limit, accumulated_limit;
    unsigned long active_threads;    /* with a callback that is not None */
    PyObject *guard_error_hook, *guard_fail_hook; /* owned, or NULL */
} shim_settings;
PyObject *decide_frame(PyThreadState *ts, compat_frame *frame, int throwflag);
/* The backend that CALLBACK stands for: callbacks wrap one another. New reference.
 * The attributes may be the program's code. */
PyObject *shim_backend_of(PyObject *callback);
/* Does an entry for backend ENTRY do where WANTED is (Py_False: run-only)? Runs their __eq__. */
bool shim_same_backend(PyObject *entry, PyObject *wanted);
/* The frame's variables by name: a new dict, for guards and callbacks. */
PyObject *shim_frame_locals(compat_frame *frame);
/* A view of FRAME for a callback; shim_frame_close ends it. New references. */
PyObject *shim_frame_open(compat_frame *frame, PyObject *locals, bool torch);
void shim_frame_close(PyObject *view);

/* tracer_api.c */
/* This thread's callback is CALLBACK (a callable, False or None) from now on, and is it torch's? The old one, or NULL
 * with an exception. */
PyObject *shim_set_eval_frame(PyObject *callback, bool torch);
/* The functions that torch's front end has under the same names. */
PyObject *shim_get_eval_frame_callback(PyObject *module, PyObject *ignored);
PyObject *shim_set_code_exec_strategy(PyObject *module, PyObject *args);
/* Count thread T among those with a callback, or no longer: the hook goes in with the first, out with the last. */
void shim_set_active(struct tracer *t, bool active);
extern PyMethodDef shim_methods[];
int shim_types_ready(PyObject *module);

#endif
