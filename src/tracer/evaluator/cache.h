/* tracer/evaluator/cache.h -- what the shim keeps for each code object.
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
 * What may run the program's code:
 *
 *     guards, callbacks, hooks; __eq__, __hash__, __bool__, __index__, __str__, __repr__, buffers;
 *       attributes of an answer, a backend, a value; audit hooks
 *     Py_DECREF and Py_CLEAR of anything, PyErr_Clear, an exception that takes another's place:
 *       finalisers and callbacks of weak references
 *     whatever the garbage collector tracks being made (dict, list, tuple, function, bound method,
 *       exception, frame object): the collector runs there and then or, by CPython's version,
 *       wherever signals are looked at
 *     PyErr_CheckSignals, which PyObject_Repr and PyObject_Str begin with: signal handlers
 *     a lookup in a dict whose keys need not all be exact strings
 *     letting the GIL go, as a wait for room in the ring may (record_enter, record_exit): other
 *     threads
 *
 * It may reset this state or all, invalidate or add entries, replace callbacks and hooks, drop the
 * last reference to whatever is not held, and give the code object other code's place. What does
 * not run any: strings, bytes, ints and objects that the collector does not track being made,
 * memory, tracer_fact().
 *
 * What follows from the rule:
 *
 *     1. Read an answer to its end first, into values that are owned. Then change the cache in one
 *        stretch that runs nothing of the list above. The stretch begins with finding the state
 *        and making room (cache_entry_add).
 *     2. Unlink first, drop last. What goes out of the cache is unlinked, all of it, while it is
 *        still owned; the references are dropped when everything is as it will stay.
 *     3. Hold what is used. A state has a reference from the slot and one from each decision that
 *        is under way, so reset_code() or the death of the code object leaves the decision
 *        something to finish with. The state's `code` is NULL from then on, and what comes after
 *        belongs to the state that the code has then (state_now() in tracer/evaluator/decide.c).
 *     4. Pin what runs, see below.
 *
 * Entries and their parts. An entry can become invalid while its guard is being checked, or while
 * its code runs: the guard's own code may reset the cache. So what is checked and run lies in a
 * struct of its own, which outlives the entry:
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
 *     an invalid entry keeps what the program may still ask of it: compile_id, label,
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

/* What is done with calls of a code object, and with the calls that those make. */
struct code_actions {
    enum frame_action own, callees;
    bool limited;   /* ACTION_RUN_ONLY since a limit was reached */
    bool written;   /* the trace has them */
    int64_t region; /* torch: they hold there */
};

/* Who sets a thread's callback, and whose guards an entry has: a compiler of the program's own
 * (cache.c), torch on this evaluator (tracer/torch/torch.c), or torch on its own, observed
 * (tracer/torch/observe.c). Everything that differs between them is here. A function that is NULL
 * has nothing to do. */
struct front {
    bool insertion_order; /* entries stay where they were put */
    /* a stance: check only what tells entries apart; a miss is an error */
    bool skip_guards_unsafe;
    bool observed; /* another evaluator decides: which guard failed is not seen */
    /* the limits are ours; else the callback has some, and says so by ACTION_RUN_ONLY */
    bool limits;
    bool regions; /* a thread is in one, and sees its entries */
    /* compile ids hold no values of the program's, and the bridge notes them */
    bool ids_public;
    /* a backend is the front end's wrapper, which says what the program gave */
    bool wraps_backends;
    /* guard_fail_hook is called; and hooks get the function's code, not the compiled */
    bool fail_hook;
    int not_started;         /* f_lasti of the frame that a callback sees */
    const char *unexplained; /* why a guard of unknown parts failed */

    /* Guards. What is called to check GUARD: a new reference; NULL: nothing, or an exception is
     * set. */
    PyObject *(*check_of)(PyObject *guard);
    /* ENTRY is new, its PARTS are pinned: its guard learns of it; -1 with an exception. ENTRY has
     * released GUARD. */
    int (*bind)(struct cache_entry *entry, struct cache_parts *parts);
    void (*unbind)(struct cache_entry *entry, PyObject *guard);
    /* The guards of PARTS that tell entries apart are others now. May leave an exception. */
    void (*update_difference)(struct cache_parts *parts);

    /* For the trace. The leaves of GUARD, a new tuple of (kind, source, expression, user's code),
     * or NULL; and what else will be known of it, a new reference in *VIEW. */
    PyObject *(*leaves)(PyObject *guard, PyObject **view);
    /* PARTS, ENTRY's, have just been checked and did not hold: which guard? */
    struct guard_outcome (*failed)(struct cache_entry *entry, const struct cache_parts *parts,
                                   compat_frame *frame, PyObject *locals);
    /* Why the guards of VIEW do not hold now: a new list of (ordinal, kind, source, expected,
     * actual, aspect, dimension, text), or NULL. */
    PyObject *(*explain)(PyObject *view, compat_frame *frame, PyObject *locals);

    /* Before and after a compile: a token (owned, or NULL), and what becomes of it, which takes the
     * reference. RESULT is borrowed, or NULL with an exception, which is kept, here and below. */
    PyObject *(*compile_begins)(uint32_t compile, PyObject *code);
    void (*compile_ends)(PyObject *token, PyObject *result);

    /* Steps of decide() with what belongs around them; NULL: nothing does. */
    int (*look_up)(struct code_state *state, PyObject *backend, struct decision *d,
                   struct cache_entry **found);
    PyObject *(*ask)(PyThreadState *ts, PyObject *callback, PyObject *const arguments[3]);
    PyObject *(*run)(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                     PyObject *under, struct cache_entry *entry, PyObject *code);
};
extern const struct front front_own;

/* What an entry checks and runs: whole for as long as it is pinned, which a valid entry does
 * itself. */
struct cache_parts {
    unsigned pins;
    PyObject *guard; /* owned: check(f_locals) -> bool */
    PyObject *check; /* owned: what is called, `guard` or its bound check method */
    PyObject *code;  /* owned */
    /* owned: torch's check of only what tells its entries apart, or NULL */
    PyObject *difference;
    PyObject *view; /* owned: what the bridge knows of torch's guards, or NULL */
};

/* dyntrace.types.CacheEntry: compiled code and the guards under which it fits. */
struct cache_entry {
    PyObject_HEAD struct code_state *state; /* borrowed; NULL once dropped from its code's list */
    TAILQ_ENTRY(cache_entry) order;
    const struct front *front;
    struct cache_parts *parts; /* pinned; NULL once invalid and released */
    bool valid;                /* may match; once false, false for good */
    bool tree;                 /* its guard is a GuardTree: checked without a call */
    bool dead;                 /* the trace has its death */
    PyObject *instead;         /* owned: what an invalid one shows as its guard, or NULL */
    /* owned: the code with every argument positional; NULL: it is, or not made yet */
    PyObject *flat;
    /* owned: function of `flat`, kept when it has no closure; or NULL */
    PyObject *function;
    unsigned running;         /* calls of `function` under way */
    PyObject *backend;        /* owned; NULL for one of torch's own evaluator */
    PyObject *born_for;       /* owned: weak reference to such a one's backend, or NULL */
    PyObject *compile_id;     /* owned: "2/0": third code object compiled, first time */
    char label[64];           /* the same as the trace has it */
    PyObject *annotation;     /* owned */
    PyObject *invalid_reason; /* owned, or NULL while valid */
    unsigned long hits;
    uint32_t id;      /* in the trace; ENTRY_UNRECORDED: it is not there */
    uint32_t guards;  /* leaves of the tree; 1 for any other callable */
    uint64_t ordered; /* when they last changed, by the session's clock */
    bool order_lost;  /* and the trace does not have that */
    uint32_t moves;   /* changes of its guards' order that the trace has */
    /* torch: entries of different regions do not see each other; -1: the common one */
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
    unsigned long serial; /* each state has a higher one than those before it */
    /* precompiled: torch's that were loaded, tried before the others */
    struct entry_list entries, precompiled;
    PyObject *frame_state; /* owned dict: the callback's own notes */
    PyObject *splits;      /* owned dict: what tracer/resume/ has made of the code; or NULL */
    struct code_actions actions;
    struct code_actions *regions; /* owned: of torch's regions that have their own */
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
/* Who holds one adds to its references. */
void code_state_release(struct code_state *state);
/* Forget what is known of CODE; its entries die. */
void code_state_reset(PyCodeObject *code);
void code_state_reset_all(void);
/* The session has ended: the trace of the next one has nothing of what is done with calls. */
void code_states_leave_trace(void);
/* torch: what was loaded for STATE's code goes. */
void code_state_drop_precompiled(struct code_state *state);
/* For PyUnstable_Eval_RequestCodeExtraIndex: the code object is going away. */
void code_state_free(void *slot);

/* A new entry in front of ORIGINAL's list, from a GuardedCode. New reference; NULL: an exception is
 * set, which says what is wrong with it. */
struct cache_entry *cache_entry_add(PyCodeObject *original, PyObject *guarded, PyObject *backend,
                                    const struct front *front);
/* torch: an entry that was compiled elsewhere joins ORIGINAL's precompiled ones. -1 with an
 * exception. */
int cache_entry_load(PyCodeObject *original, PyObject *guard, PyObject *code, int64_t region,
                     const struct front *front);
/* An entry that is in no list, with parts of which nothing is set. New reference; NULL: no memory.
 * */
struct cache_entry *cache_entry_new(const struct front *front, int64_t region);
/* The entry never matches again: a guarded object died, or the program said so. INSTEAD is what it
 * then shows as its guard. Only what follows once it is invalid runs anything; the caller holds the
 * entry. */
void cache_entry_invalidate(struct cache_entry *entry, const char *reason, PyObject *instead);
void cache_parts_free(struct cache_parts *parts);
/* What ENTRY checks and runs, until it is unpinned; NULL: the entry is invalid. */
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
/* The attribute NAME of OBJECT. New reference; NULL: none, or None, or an exception is set, perhaps
 * was before. */
PyObject *shim_optional(PyObject *object, const char *name);
/* A hit: to the front of the list. */
void cache_entry_touch(struct cache_entry *entry);
/* This thread's region, for what FRONT decides. -1: the common one. */
static inline int64_t front_region(const struct front *front)
{
    return front->regions && tracer_thread ? tracer_thread->region : -1;
}
/* The actions that hold in REGION (-1: in the common one), and setting them. -1 with MemoryError.
 * */
struct code_actions code_state_actions(struct code_state *state, int64_t region);
int code_state_act(struct code_state *state, int64_t region, struct code_actions actions);
/* The entry of FRONT tried first in REGION. Borrowed, or NULL. */
struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region,
                                      const struct front *front);

/* tracer/evaluator/decision.c: a lookup, and what is recorded of it while ON. */
#define CHECK_TICKS_UNKNOWN UINT64_MAX
struct decision_check {
    struct cache_entry *entry; /* owned */
    uint64_t ticks;
    uint32_t run, failed;     /* leaves looked at, ordinal or UINT32_MAX */
    enum check_result result; /* CHECK_RESULTS: not tried */
    /* owned: what the leaf that failed was asked of, see guard_tree_check(); or NULL */
    PyObject *seen;
    PyObject *why; /* owned: what explain() said; or NULL */
};
struct decision {
    bool on;
    bool older;                /* there are entries, if none that we know */
    const struct front *front; /* whose the callback is */
    compat_frame *frame;       /* the call */
    PyObject *locals;          /* owned: its variables, when they were needed; or NULL */
    int64_t region;            /* in which entries are looked for */
    enum outcome outcome;      /* once the callback has answered */
    uint64_t began, ours;      /* clock; ticks since that were ours, spent on finding out why */
    uint32_t compile;          /* compile id + 1, 0 = none */
    uint32_t signature;        /* signature id + 1, 0 = none */
    uint64_t compile_began;
    /* borrowed: the thread's node of it, while the callback runs; or NULL */
    struct asking *asking;
    PyObject *token; /* owned: the bridge's, while the callback runs; or NULL */
    uint32_t count, room;
    struct decision_check *check; /* in the order tried; owned unless it is `small` */
    struct decision_check small[8];
};
/* BEGAN: when the call of FRAME did, by the session's clock; 0: it is not recorded. */
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
/* ENTRY is next in the order tried. NULL: no memory. */
struct decision_check *decision_add(struct decision *d, struct cache_entry *entry);
/* A miss: note the values that missed and, if the callback will be asked, why each entry did,
 * before anybody changes them. False: a signal's handler has raised meanwhile, and so must the
 * call. */
bool decision_missed(struct decision *d, bool asks);
/* The callback is asked to compile STATE's code; it has returned RESULT (borrowed; NULL with an
 * exception, which is kept); and that made ENTRY, or nothing: OUTCOME says why. */
void decision_ask(struct decision *d, const struct code_state *state);
void decision_asked(struct decision *d, PyObject *result);
/* What this thread is asked to compile: (compile id, code). None: nothing, or nothing that is
 * recorded. */
PyObject *decision_compiling(void);
void decision_answer(struct decision *d, struct code_state *state, struct cache_entry *entry,
                     enum outcome outcome);
/* An observed lookup raised before it asked: a guard did, or torch's stance forbids a miss, which
 * is a compile that failed. */
enum outcome decision_raised(struct decision *d, uint32_t code);
/* The frame runs now: write the lookup. Of an observed evaluator's, which entries were tried in
 * vain is not known. */
void decision_write(struct decision *d, struct tracer *t, enum outcome outcome,
                    struct cache_entry *entry);
void decision_outcome(struct tracer *t, enum outcome outcome);
/* Torch's own evaluator, asked at BEGAN, has found ENTRY: decision_add() and decision_write()
 * without a decision. */
void decision_hit(struct tracer *t, uint64_t began, const struct cache_entry *entry);
void decision_end(struct decision *d);
/* Write, once, that calls of STATE's code are not compiled any more, for REASON (str, or NULL). */
void decision_actions(struct code_state *state, int64_t region, PyObject *reason);
/* What the trace will say of ENTRY, which is private to the caller so far, as far as the program's
 * code may run while it is found out: a new reference, or NULL. MARK is its code's; GUARD and
 * BACKEND, what it was made from. */
PyObject *decision_birth(struct cache_entry *entry, uintptr_t mark, PyObject *guard,
                         PyObject *backend);
/* ENTRY is in STATE's list now: write it, with its BIRTH. Runs nothing, nor do the next. */
void decision_entry_born(PyObject *birth, struct cache_entry *entry,
                         const struct code_state *state);
/* The guards of ENTRY, those of TREE or ORDINALS (a JSON array in a str), are tried in another
 * order from now on. */
void decision_entry_order(struct cache_entry *entry, PyObject *tree, uint64_t clock);
void decision_entry_ordinals(struct cache_entry *entry, PyObject *ordinals);
void decision_entry_died(struct cache_entry *entry, const char *cause);

/* tracer/evaluator/decide.c: who watches calls that missed. All zero: none has attached
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
    /* owned: torch decides frames that CPython runs with tracing set; or NULL */
    PyObject *while_tracing;
} shim_settings;
/* Are calls decided now that are FRONT's? CPython sets tracing while trace functions, profile
 * functions, monitoring's callbacks and audit hooks run, and we do while our own code runs. */
static inline bool shim_decides(const struct tracer *t, const PyThreadState *ts,
                                const struct front *front)
{
    return likely(ts->tracing <= 0) ||
           (shim_settings.while_tracing && !t->quiet && front != &front_own);
}
PyObject *decide_frame(PyThreadState *ts, compat_frame *frame, int throwflag);
/* The evaluator's own steps of decide(). The first entry that fits: a new reference in *FOUND, or
 * NULL. -1: a guard raised, or gave something that is not a bool. */
int shim_look_up(struct code_state *state, PyObject *backend, struct decision *d,
                 struct cache_entry **found);
PyObject *shim_run(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                   PyObject *under, struct cache_entry *entry, PyObject *code);
/* The backend that CALLBACK stands for: callbacks wrap one another. New reference.
 * The attributes may be the program's code. */
PyObject *shim_backend_of(PyObject *callback);
/* Does an entry for backend ENTRY do where WANTED is (Py_False: run-only)? Runs their __eq__. */
bool shim_same_backend(PyObject *entry, PyObject *wanted);
/* A view of D's frame for a callback; shim_frame_close ends it. New references. */
PyObject *shim_frame_open(const struct decision *d);
void shim_frame_close(PyObject *view);

/* What a callback wants done. */
struct answer {
    PyObject *guarded; /* owned, or NULL: no code */
    PyObject *reason;  /* owned: why not, or NULL */
    struct code_actions actions;
    bool for_code; /* they are for later calls as well */
};
/* RESULT is what it returned. -1 with an exception. Either way the caller releases what ANSWER
 * has. */
int answer_read(PyObject *result, struct answer *answer);
/* What that makes of the call, if the code is as it must be. */
enum outcome answer_outcome(const struct answer *answer, const struct front *front);
/* What a FrameExecStrategy says. -1 with an exception. */
int answer_strategy(PyObject *strategy, struct code_actions *actions);

/* tracer/evaluator/api.c */
/* This thread's callback is CALLBACK (a callable, False or None), FRONT's, from now on. The old
 * one, or NULL with an exception. */
PyObject *shim_set_eval_frame(PyObject *callback, const struct front *front);
/* Likewise, of the stack that runs only, until it is put back: other greenlets keep theirs. */
PyObject *shim_set_on_stack(PyObject *callback, const struct front *front);
/* The functions that torch's front end has under the same names. */
PyObject *shim_get_eval_frame_callback(PyObject *module, PyObject *ignored);
PyObject *shim_set_code_exec_strategy(PyObject *module, PyObject *args);
PyObject *shim_reset_code(PyObject *module, PyObject *object);
/* The state of OBJECT, a code object; MAKE it if there is none. NULL: there is none, or, with an
 * exception, no memory or no code object. */
struct code_state *shim_state_of(PyObject *object, bool make);
/* Those of OBJECT's entries, or of its PRECOMPILED ones, that are in REGION and of FRONT (NULL: of
 * all): a new list, lower regions first. */
PyObject *shim_list(PyObject *object, bool precompiled, int64_t region, const struct front *front);
#define SHIM_ALL_REGIONS INT64_MIN
/* Put VALUE (None: nothing) in *SLOT; returns what was there. */
PyObject *shim_exchange(PyObject **slot, PyObject *value);
/* Count thread T among those with a callback, or no longer: the hook goes in with the first, out
 * with the last. */
void shim_set_active(struct tracer *t, bool active);
extern PyMethodDef shim_methods[];
int shim_types_ready(PyObject *module);
/* `dyntrace run --capture`: CALLBACK (a new reference to it is kept) is that of each thread from
 * its first frame on. */
int tracer_callback_for_all(PyObject *callback);
/* Fill in what the base calls: tracer/hooks.h. */
void evaluator_register(void);

#endif
