/* tracer/evaluator/cache.h -- the shim's cache for each code object.
 *
 * Runs in: the traced process, under the GIL.
 *
 * The code object's extra slot holds either the recorder's bare mark (an odd
 * number, tracer/tracer.h) or a pointer to this state, which then holds the mark:
 *
 *     slot -> code_state { mark, action, frame_state,
 *                          entries: [0] most recent hit, ... , invalid ones last }
 *
 * THE RULE of every file that includes this one:
 *
 *     After code of the program may have run, nothing read before is believed.
 *
 * These may run the program's code:
 *
 *     guards, callbacks, hooks; __eq__, __hash__, __bool__, __index__, __str__, __repr__, buffers;
 *       attributes of an answer, a backend, a value; audit hooks
 *     Py_DECREF and Py_CLEAR of anything, PyErr_Clear, replacing a pending exception: finalisers
 *       and callbacks of weak references
 *     creating an object that the garbage collector tracks (dict, list, tuple, function, bound
 *       method, exception, frame object): the collector runs at once or, depending on CPython's
 *       version, where signals are handled
 *     PyErr_CheckSignals, which PyObject_Repr and PyObject_Str begin with: signal handlers
 *     a lookup in a dict whose keys need not all be exact strings
 *     releasing the GIL, as a wait for room in the ring may (record_enter, record_exit): other
 *       threads
 *
 * Such code may reset this state or all states, invalidate or add entries, replace callbacks and
 * hooks, and drop the last reference to anything that we do not hold. Safe are: creating strings,
 * bytes, ints and other untracked objects; allocating memory; tracer_fact().
 *
 * What follows from the rule:
 *
 *     1. Read an answer to its end first, into values that are owned. Then change the cache in one
 *        stretch that runs nothing of the list above. The stretch begins with finding the state
 *        and making room (cache_entry_add).
 *     2. Unlink first, drop last. Everything that leaves the cache is unlinked while it is still
 *        owned; its references are dropped once the cache is consistent again.
 *     3. Hold what is used. A state has a reference from the slot and one from each decision under
 *        way, so a decision can finish after reset_code() or the death of the code object. The old
 *        state's `code` is then NULL, and later changes belong to the code's new state (state_now()
 *        in tracer/evaluator/decide.c).
 *     4. Pin the parts that run; see below.
 *
 * Entries and their parts. An entry can become invalid while its guard is being checked, or while
 * its code runs: the guard's own code may reset the cache. So the guard and code lie in a struct of
 * their own, which can outlive the entry:
 *
 *     list --> entry --(pin)--> parts { guard, check, code, difference, view }
 *                                 ^
 *     a lookup, or a call --(pin)-+
 *
 *     valid entry, not in use       1 pin: the entry's
 *     its guard is checked          2: cache_entry_pin() gave one to the lookup
 *     ... and invalidates it        1: the entry dropped its pin and is the list's last. The
 *                                   lookup goes on with whole parts, and then sees that `valid` is
 *                                   false: the entry is no hit
 *     the lookup unpins             0: the parts are freed, which may run finalisers; nothing of
 *                                   the cache is held at that moment
 *
 * Invariants of an entry, wherever code of the program may run:
 *
 *     a valid one has its parts; `valid` never becomes true again
 *     it is in a list of `state`, or state is NULL
 *     valid entries stand before invalid ones in a list
 *     an invalid entry keeps the attributes that the program may still read: compile_id, label,
 *       invalid_reason, instead
 */
#ifndef DYNTRACE_TRACER_CACHE_H
#define DYNTRACE_TRACER_CACHE_H

#include "tracer/evaluator/watcher.h"
#include "tracer/guards/guard.h"
#include "vocabulary.h"

#include <sys/queue.h>

enum frame_action { ACTION_DEFAULT, ACTION_SKIP, ACTION_RUN_ONLY };

struct code_state;
struct cache_entry;
struct cache_parts;
struct decision;

/* How calls of a code object are treated, and the calls that these make. */
struct code_actions {
    enum frame_action own, callees;
    bool limited;   /* ACTION_RUN_ONLY since a limit was reached */
    bool written;   /* the trace has them */
    int64_t region; /* torch: the region they hold in */
};

/* Who sets a thread's callback, and whose guards an entry has: a compiler of the program's own
 * (cache.c), torch on this evaluator (tracer/torch/torch.c), or torch on its own, observed
 * (tracer/torch/observe.c). Everything that differs between them is here. A NULL function is not
 * called. */
struct front {
    bool insertion_order; /* entries keep their order of insertion */
    /* a stance: check only guards that tell entries apart; a miss is an error */
    bool skip_guards_unsafe;
    bool observed; /* another evaluator decides, so the failed guard is not seen */
    /* the shim applies the limits; else the callback does, and answers ACTION_RUN_ONLY */
    bool limits;
    bool regions; /* each thread is in a region, and sees only that region's entries */
    /* compile ids contain no values of the program; the bridge records them */
    bool ids_public;
    /* a backend is the front end's wrapper of the program's backend */
    bool wraps_backends;
    /* guard_fail_hook is called; hooks get the original code, not the compiled code */
    bool fail_hook;
    int not_started;         /* f_lasti of the frame that a callback sees */
    const char *unexplained; /* reason for a failed guard whose parts are unknown */

    /* Guards. The callable that checks GUARD: a new reference; NULL: none, or an exception is set.
     */
    PyObject *(*check_of)(PyObject *guard);
    /* bind: tell the guard of the new ENTRY, whose PARTS are pinned, about ENTRY; -1 with an
     * exception. unbind: ENTRY has released GUARD. */
    int (*bind)(struct cache_entry *entry, struct cache_parts *parts);
    void (*unbind)(struct cache_entry *entry, PyObject *guard);
    /* The set of PARTS' guards that tell entries apart has changed. May leave an exception. */
    void (*update_difference)(struct cache_parts *parts);

    /* For the trace. The leaves of GUARD: a new tuple of (kind, source, expression, user's code),
     * or NULL. *VIEW: a new reference to an object for explain(). */
    PyObject *(*leaves)(PyObject *guard, PyObject **view);
    /* PARTS, ENTRY's, have just been checked and did not hold: which guard? */
    struct guard_outcome (*failed)(struct cache_entry *entry, const struct cache_parts *parts,
                                   compat_frame *frame, PyObject *locals);
    /* Why the guards of VIEW do not hold now: a new list of (ordinal, kind, source, expected,
     * actual, aspect, dimension, text), or NULL. */
    PyObject *(*explain)(PyObject *view, compat_frame *frame, PyObject *locals);

    /* Before and after a compile: compile_begins returns a token (owned, or NULL), compile_ends
     * takes it. RESULT is borrowed, or NULL with an exception, which is kept, here and below. */
    PyObject *(*compile_begins)(uint32_t compile, PyObject *code);
    void (*compile_ends)(PyObject *token, PyObject *result);

    /* Replacements for steps of decide(); NULL: the shim's own step. */
    int (*look_up)(struct code_state *state, PyObject *backend, struct decision *d,
                   struct cache_entry **found);
    PyObject *(*ask)(PyThreadState *ts, PyObject *callback, PyObject *const arguments[3]);
    PyObject *(*run)(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                     PyObject *under, struct cache_entry *entry, PyObject *code);
};
extern const struct front front_own;

/* The guard and code of an entry. They stay complete while pinned; a valid entry holds one pin. */
struct cache_parts {
    unsigned pins;
    PyObject *guard; /* owned: check(f_locals) -> bool */
    PyObject *check; /* owned: the callable: `guard` or its bound check method */
    PyObject *code;  /* owned */
    /* owned: torch's check of only the guards that tell its entries apart, or NULL */
    PyObject *difference;
    PyObject *view; /* owned: the bridge's view of torch's guards, or NULL */
};

/* dyntrace.types.CacheEntry: compiled code and its guards. */
struct cache_entry {
    PyObject_HEAD struct code_state *state; /* borrowed; NULL once dropped from its code's list */
    TAILQ_ENTRY(cache_entry) order;
    const struct front *front;
    struct cache_parts *parts; /* pinned; NULL once invalid and released */
    bool valid;                /* may match; once false, false for good */
    bool tree;                 /* its guard is a GuardTree: checked without a call */
    bool dead;                 /* the trace has its death */
    PyObject *instead;         /* owned: an invalid entry shows it as its guard; or NULL */
    /* owned: the code with every argument positional; NULL: the code is so itself, or not made yet
     */
    PyObject *flat;
    /* owned: function of `flat`, kept when it has no closure; or NULL */
    PyObject *function;
    unsigned running;         /* running calls of `function` */
    PyObject *backend;        /* owned; NULL for one of torch's own evaluator */
    PyObject *born_for;       /* owned: weak reference to the backend of such an entry, or NULL */
    PyObject *compile_id;     /* owned: "2/0": third code object compiled, first time */
    char label[64];           /* compile_id as the trace has it */
    PyObject *annotation;     /* owned */
    PyObject *invalid_reason; /* owned, or NULL while valid */
    unsigned long hits;
    uint32_t id;      /* in the trace; ENTRY_UNRECORDED: it is not there */
    uint32_t guards;  /* leaves of the tree; 1 for any other callable */
    uint64_t ordered; /* when the guards' order last changed, by the session's clock */
    bool order_lost;  /* the guards' order changed, and the trace does not have the new order */
    uint32_t moves;   /* changes of its guards' order that the trace has */
    /* torch: the region whose lookups can hit it; -1: the common region */
    int64_t region;
};
#define ENTRY_UNRECORDED UINT32_MAX

/* Entries in the order tried, which the list owns. */
TAILQ_HEAD(entry_list, cache_entry);

struct code_state {
    /* first: tracer_mark_in(). As in tracer/tracer.h; 0: the code was not seen yet */
    uintptr_t mark;
    unsigned references;
    PyCodeObject *code;   /* borrowed; NULL once the code object is gone or was reset */
    unsigned long serial; /* higher than that of every earlier state */
    /* precompiled: loaded by torch, tried before the others */
    struct entry_list entries, precompiled;
    PyObject *frame_state; /* owned dict: for the callback's own use */
    PyObject *splits;      /* owned dict: tracer/resume/'s splits of the code; or NULL */
    struct code_actions actions;
    struct code_actions *regions; /* owned: actions of torch's regions that differ */
    unsigned region_count;
    /* owned: the entry that this code was compiled for (torch observed), or NULL */
    struct cache_entry *compiled;
    bool is_init;               /* an __init__: see tracer_fix_init() */
    unsigned long number;       /* first part of its compile ids; 0 = not compiled yet */
    unsigned long compiles;     /* entries ever made */
    LIST_ENTRY(code_state) all; /* for reset() */
};

extern PyTypeObject cache_entry_type, shim_frame_type;

struct code_state *code_state_make(PyCodeObject *code);
/* The state of CODE; MAKE it if there is none, which may run anything. Borrowed. NULL: none, or
 * MemoryError. */
static inline struct code_state *code_state_of(PyCodeObject *code, bool make)
{
    uintptr_t slot = compat_extra(code, tracer_process.extra);

    return tracer_is_state(slot) ? (struct code_state *)slot : make ? code_state_make(code) : NULL;
}
/* To hold one, increment its references. */
void code_state_release(struct code_state *state);
/* Drop CODE's state; its entries die. */
void code_state_reset(PyCodeObject *code);
void code_state_reset_all(void);
/* The session has ended: actions must be written again in the next session's trace. */
void code_states_session_ended(void);
/* torch: drop the precompiled entries of STATE's code. */
void code_state_drop_precompiled(struct code_state *state);
/* For PyUnstable_Eval_RequestCodeExtraIndex: the code object is going away. */
void code_state_free(void *slot);

/* A new entry in front of ORIGINAL's list, from a GuardedCode. New reference; NULL with an
 * exception that names the fault. */
struct cache_entry *cache_entry_add(PyCodeObject *original, PyObject *guarded, PyObject *backend,
                                    const struct front *front);
/* torch: an entry that was compiled elsewhere joins ORIGINAL's precompiled ones. -1 with an
 * exception. */
int cache_entry_load(PyCodeObject *original, PyObject *guard, PyObject *code, int64_t region,
                     const struct front *front);
/* An entry in no list, with empty parts. New reference; NULL: no memory. */
struct cache_entry *cache_entry_new(const struct front *front, int64_t region);
/* The entry never matches again: a guarded object died, or the program said so. INSTEAD is shown as
 * its guard from then on. Runs Python code only after the entry is marked invalid; the caller holds
 * the entry. */
void cache_entry_invalidate(struct cache_entry *entry, const char *reason, PyObject *instead);
void cache_parts_free(struct cache_parts *parts);
/* Pin and return ENTRY's parts; NULL: the entry is invalid. */
static inline struct cache_parts *cache_entry_pin(const struct cache_entry *entry)
{
    if (unlikely(!entry->valid))
        return NULL;
    entry->parts->pins++;
    return entry->parts;
}
static inline void cache_parts_unpin(struct cache_parts *parts)
{
    if (unlikely(!--parts->pins))
        cache_parts_free(parts);
}
/* The attribute NAME of OBJECT. New reference; NULL: missing, None, or an exception is set (maybe
 * from before). */
PyObject *shim_optional(PyObject *object, const char *name);
/* A hit: move ENTRY to the front of its list. */
void cache_entry_touch(struct cache_entry *entry);
/* This thread's region for FRONT. -1: the common one. */
static inline int64_t front_region(const struct front *front)
{
    return front->regions && tracer_thread ? tracer_thread->region : -1;
}
/* Get or set the actions that hold in REGION (-1: the common one). -1 with MemoryError. */
struct code_actions code_state_actions(struct code_state *state, int64_t region);
int code_state_act(struct code_state *state, int64_t region, struct code_actions actions);
/* The entry of FRONT tried first in REGION. Borrowed, or NULL. */
struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region,
                                      const struct front *front);

/* tracer/evaluator/decision.c: a lookup, recorded if ON. */
#define CHECK_TICKS_UNKNOWN UINT64_MAX
struct decision_check {
    struct cache_entry *entry; /* owned */
    uint64_t ticks;
    uint32_t run, failed;     /* leaves checked; ordinal or UINT32_MAX */
    enum check_result result; /* CHECK_RESULTS: not tried */
    /* owned: the value that the failed leaf checked, see guard_tree_check(); or NULL */
    PyObject *seen;
    PyObject *why; /* owned: explain()'s result; or NULL */
};
struct decision {
    bool on;
    bool older;                /* entries existed before recording; none is known to us */
    const struct front *front; /* the callback's front end */
    compat_frame *frame;       /* the call */
    PyObject *locals;          /* owned: its variables, when they were needed; or NULL */
    int64_t region;            /* the region of the lookup */
    enum outcome outcome;      /* once the callback has answered */
    uint64_t began, ours;      /* clock; ticks of it that dyntrace spent finding causes */
    uint32_t compile;          /* compile id + 1, 0 = none */
    uint32_t signature;        /* signature id + 1, 0 = none */
    uint64_t compile_began;
    /* borrowed: the thread's list node while the callback runs; or NULL */
    struct asking *asking;
    PyObject *token; /* owned: the bridge's, while the callback runs; or NULL */
    uint32_t count, room;
    struct decision_check *check; /* in the order tried; owned unless it is `small` */
    struct decision_check small[8];
};
/* BEGAN: start of the call of FRAME, by the session's clock; 0: not recorded. */
static inline void decision_begin(struct decision *d, uint64_t began, const struct front *front,
                                  compat_frame *frame, int64_t region)
{
    memset(d, 0, offsetof(struct decision, small));
    d->on = began != 0;
    d->front = front;
    d->frame = frame;
    d->region = region;
    d->began = began;
    d->room = sizeof d->small / sizeof *d->small;
    d->check = d->small;
}
/* The frame's variables, made when they are first needed. Borrowed; NULL with an exception. */
PyObject *decision_locals(struct decision *d);
/* Add ENTRY as the next one tried. NULL: no memory. */
struct decision_check *decision_add(struct decision *d, struct cache_entry *entry);
/* A miss: record the values and, if the callback will be called, why each entry missed, before
 * anything changes them. False: a signal handler has raised meanwhile, and the call must raise that
 * exception. */
bool decision_missed(struct decision *d, bool asks);
/* ask: the callback is about to compile STATE's code. asked: it has returned RESULT (borrowed; NULL
 * with an exception, which is kept). answer: the result became ENTRY, or NULL: OUTCOME says why. */
void decision_ask(struct decision *d, const struct code_state *state);
void decision_asked(struct decision *d, PyObject *result);
/* This thread's innermost open compile: (compile id, code). None: no recorded one. */
PyObject *decision_compiling(void);
void decision_answer(struct decision *d, struct code_state *state, struct cache_entry *entry,
                     enum outcome outcome);
/* An observed lookup raised before its compile: a guard raised, or torch's stance forbids a miss
 * (recorded as a failed compile). */
enum outcome decision_raised(struct decision *d, uint32_t code);
/* The frame runs now: write the lookup. For an observed evaluator the entries tried in vain are
 * unknown. */
void decision_write(struct decision *d, struct tracer *t, enum outcome outcome,
                    struct cache_entry *entry);
void decision_outcome(struct tracer *t, enum outcome outcome);
/* Torch's own evaluator, called at BEGAN, has hit ENTRY: decision_add() and decision_write()
 * without a struct decision. */
void decision_hit(struct tracer *t, uint64_t began, const struct cache_entry *entry);
void decision_end(struct decision *d);
/* Write, once, that calls of STATE's code are not compiled any more, for REASON (str, or NULL). */
void decision_write_actions(struct code_state *state, int64_t region, PyObject *reason);
/* Collect the parts of ENTRY's facts for which the program's code may run, while only the caller
 * knows ENTRY: a new reference, or NULL. MARK is its code's; GUARD and BACKEND are its sources. */
PyObject *decision_birth(struct cache_entry *entry, uintptr_t mark, PyObject *guard,
                         PyObject *backend);
/* ENTRY is in STATE's list now: write its facts, with its BIRTH. Like the next functions it runs no
 * Python code. */
void decision_entry_born(PyObject *birth, struct cache_entry *entry,
                         const struct code_state *state);
/* The guards of ENTRY are tried in another order from now on: TREE's order, or ORDINALS (a JSON
 * array in a str). */
void decision_entry_order(struct cache_entry *entry, PyObject *tree, uint64_t clock);
void decision_entry_ordinals(struct cache_entry *entry, PyObject *ordinals);
void decision_entry_died(struct cache_entry *entry, const char *cause);

/* tracer/evaluator/decide.c: the attached watcher of missed calls; all zero: none
 * (tracer/services.c). */
extern struct watcher shim_watcher;
static inline bool callback_watches(PyObject *callback)
{
    return Py_IS_TYPE(callback, shim_watcher.type);
}
/* tracer/services.c: the module gets `_shim`. -1 with an exception. */
int services_ready(PyObject *module);

/* tracer/evaluator/decide.c */
extern struct shim_settings {
    unsigned long recompile_limit, accumulated_limit;
    PyObject *guard_error_hook, *guard_fail_hook; /* owned, or NULL */
    /* owned: answers of torch 2.6's callback, no strategies; or NULL */
    PyObject *skip_recursively, *limit_reached;
    /* owned: the callback that every thread begins with; or NULL */
    PyObject *for_all;
    /* owned: not NULL: torch also decides frames that CPython runs with tracing set */
    PyObject *while_tracing;
} shim_settings;
/* Are FRONT's calls decided now? Not while tracing is set: by CPython while trace and profile
 * functions, monitoring callbacks and audit hooks run, and by us while our own code runs. */
static inline bool shim_decides(const struct tracer *t, const PyThreadState *ts,
                                const struct front *front)
{
    return likely(ts->tracing <= 0) ||
           (shim_settings.while_tracing && !t->quiet && front != &front_own);
}
PyObject *decide_frame(PyThreadState *ts, compat_frame *frame, int throwflag);
/* The evaluator's own steps of decide(). *FOUND: a new reference to the first entry that fits, or
 * NULL. -1: a guard raised, or did not return a bool. */
int shim_look_up(struct code_state *state, PyObject *backend, struct decision *d,
                 struct cache_entry **found);
PyObject *shim_run(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                   PyObject *under, struct cache_entry *entry, PyObject *code);
/* The backend inside CALLBACK: callbacks wrap one another. New reference. Reading the attributes
 * may run the program's code. */
PyObject *shim_backend_of(PyObject *callback);
/* Is an entry with backend ENTRY usable for backend WANTED (Py_False: run-only)? Runs their __eq__.
 */
bool shim_same_backend(PyObject *entry, PyObject *wanted);
/* A view of D's frame for a callback; shim_frame_close ends it. New references. */
PyObject *shim_frame_open(const struct decision *d);
void shim_frame_close(PyObject *view);

/* A callback's answer. */
struct answer {
    PyObject *guarded; /* owned, or NULL: no code */
    PyObject *reason;  /* owned: why not, or NULL */
    struct code_actions actions;
    bool for_code; /* actions hold for later calls as well */
};
/* Read the callback's RESULT into ANSWER. -1 with an exception. In both cases the caller releases
 * ANSWER's members. */
int answer_read(PyObject *result, struct answer *answer);
/* The call's outcome, if the answer's code is valid. */
enum outcome answer_outcome(const struct answer *answer, const struct front *front);
/* Store STRATEGY's two actions, for the call itself and for its callees, in ACTIONS. STRATEGY is a
 * FrameExecStrategy. -1 with an exception. */
int answer_strategy(PyObject *strategy, struct code_actions *actions);

/* tracer/evaluator/api.c */
/* Set this thread's callback to CALLBACK (a callable, False or None), which belongs to FRONT.
 * Returns the old callback, or NULL with an exception. */
PyObject *shim_set_eval_frame(PyObject *callback, const struct front *front);
/* The same for the running stack only, until restored: other greenlets keep theirs. */
PyObject *shim_set_on_stack(PyObject *callback, const struct front *front);
/* These functions have the same names in torch's front end. */
PyObject *shim_get_eval_frame_callback(PyObject *module, PyObject *ignored);
PyObject *shim_set_code_exec_strategy(PyObject *module, PyObject *args);
PyObject *shim_reset_code(PyObject *module, PyObject *object);
/* The state of OBJECT, a code object; MAKE it if there is none. NULL: there is none, or, with an
 * exception, no memory or no code object. */
struct code_state *shim_state_of(PyObject *object, bool make);
/* OBJECT's entries, or its PRECOMPILED ones, in REGION and of FRONT (NULL: of all): a new list,
 * lower regions first. */
PyObject *shim_list(PyObject *object, bool precompiled, int64_t region, const struct front *front);
#define SHIM_ALL_REGIONS INT64_MIN
/* Set *SLOT to VALUE (None: NULL); returns the old value. */
PyObject *shim_exchange(PyObject **slot, PyObject *value);
/* Count thread T as having a callback, or not. The hook is installed for the first such thread and
 * removed after the last. */
void shim_set_active(struct tracer *t, bool active);
extern PyMethodDef shim_methods[];
int shim_types_ready(PyObject *module);
/* `dyntrace run --capture`: set CALLBACK (keeps a new reference) in each thread at its first frame.
 */
int tracer_callback_for_all(PyObject *callback);
/* Fill in the evaluator's members of tracer/hooks.h. */
void evaluator_register(void);

#endif
