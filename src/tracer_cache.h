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
    PyObject *backend;          /* owned */
    PyObject *compile_id;       /* owned: "2/0": third code object compiled, first time */
    PyObject *annotation;       /* owned */
    PyObject *invalid_reason;   /* owned, or NULL while valid */
    unsigned long hits;
    uint32_t id;                /* in the trace; ENTRY_UNRECORDED: it is not there */
    uint32_t guards;            /* leaves of the tree; 1 for any other callable */
    uint32_t moves;             /* changes of its guards' order that are told */
    bool tree;                  /* `guard` is a GuardTree: checked without a call */
    bool dead;                  /* its death is told */
};
#define ENTRY_UNRECORDED UINT32_MAX

struct code_state {
    uintptr_t mark;             /* as in tracer.h; 0: the recorder has not seen the code */
    unsigned references;
    PyCodeObject *code;         /* borrowed; NULL once the code object is gone or was reset */
    struct cache_entry **entries; /* owned references */
    Py_ssize_t count, room;
    PyObject *frame_state;      /* owned dict: the callback's own notes */
    enum frame_action action, recursive_action;
    bool is_init;               /* an __init__: see tracer_fix_init() */
    unsigned long number;       /* first part of its compile ids; 0 = not compiled yet */
    unsigned long compiles;     /* entries ever made */
    struct code_state *previous, *next; /* all states, for reset() */
};

extern PyTypeObject cache_entry_type, shim_frame_type;

/* The state of CODE; MAKE it if there is none. Borrowed. NULL: none, or no memory. */
struct code_state *code_state_of(PyCodeObject *code, bool make);
struct code_state *code_state_hold(struct code_state *state);
void code_state_release(struct code_state *state);
/* Forget what is known of CODE; its entries die. */
void code_state_reset(PyCodeObject *code);
void code_state_reset_all(void);
/* For PyUnstable_Eval_RequestCodeExtraIndex: the code object is going away. */
void code_state_free(void *slot);

/* A new entry in front of STATE's list, from a GuardedCode. Borrowed. NULL: an
 * exception is set, which says what is wrong with it. */
struct cache_entry *cache_entry_add(struct code_state *state, PyObject *guarded, PyObject *backend,
                                    PyCodeObject *original);
/* The guarded object died, or somebody asked: the entry never matches again. */
void cache_entry_invalidate(struct cache_entry *entry, const char *reason);
/* A hit: to the front of the list. */
void cache_entry_touch(struct cache_entry *entry);
/* Entries that can still match. */
Py_ssize_t code_state_valid(const struct code_state *state);

/* tracer_decision.c: what is recorded of a lookup. Filled while it goes on; does
 * nothing while ON is false. */
struct decision {
    bool on;
    uint64_t began;             /* clock */
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
void decision_begin(struct decision *d, bool on);
void decision_add(struct decision *d, struct cache_entry *entry, enum ring_result result, uint32_t run, uint32_t failed,
                  uint64_t ticks);
/* A miss: note the values that missed, and why each entry did, before anybody changes them. */
void decision_missed(struct decision *d, compat_frame *frame, PyObject *locals);
/* The callback is asked, and has answered with ENTRY, or nothing (OUTCOME says why). */
void decision_ask(struct decision *d);
void decision_answer(struct decision *d, struct code_state *state, struct cache_entry *entry, enum outcome outcome);
/* The frame runs now: write the lookup. */
void decision_write(struct decision *d, struct tracer *t, enum outcome outcome, const struct cache_entry *entry);
void decision_outcome(struct tracer *t, enum outcome outcome);
void decision_end(struct decision *d);
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
/* The frame's variables by name: a new dict, for guards and callbacks. */
PyObject *shim_frame_locals(compat_frame *frame);
/* A view of FRAME for a callback; shim_frame_close ends it. New references. */
PyObject *shim_frame_open(compat_frame *frame, PyObject *locals);
void shim_frame_close(PyObject *view);

/* tracer_api.c */
/* Count thread T among those with a callback, or no longer: the hook goes in with the first, out with the last. */
void shim_set_active(struct tracer *t, bool active);
extern PyMethodDef shim_methods[];
int shim_types_ready(PyObject *module);

#endif
