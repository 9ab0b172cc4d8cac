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

/* The actions for calls of a code object, and for the calls that those calls make in turn. */
struct code_actions {
    enum frame_action own, callees;
    bool limited;   /* ACTION_RUN_ONLY was set because a limit was reached */
    bool written;   /* the actions have been written to the trace */
    int64_t region; /* torch: the region in which the actions hold */
};

/* What differs between the compilers that use the shim. A front end sets a thread's callback, and
 * an entry's guards are those of its front end. There are three: a compiler of the program's own
 * (cache.c), torch on this evaluator (tracer/torch/torch.c), and torch on its own evaluator,
 * observed (tracer/torch/observe.c). A NULL function is not called. */
struct front {
    /* entries stay in order of insertion: a hit does not move its entry to the front */
    bool insertion_order;
    bool observed; /* torch's own evaluator decides, so we do not see which guard failed */
    /* the shim applies the limits; if false, the callback does, and answers ACTION_RUN_ONLY */
    bool limits;
    bool regions; /* each thread is in a region, and its lookups see only that region's entries */
    /* compile ids contain no values of the program; the bridge records them */
    bool ids_public;
    /* a backend is a wrapper, made by the front end, of the program's backend */
    bool wraps_backends;
    /* guard_fail_hook is called; and hooks get the original code, not the compiled code */
    bool fail_hook;
    int not_started;         /* f_lasti that a callback sees in its frame, which has not started */
    const char *unexplained; /* text for a failed guard whose parts are unknown */

    /* Return what torch has set for calls on this thread. */
    struct call_rules *(*rules)(void);
    /* Return the callable that checks GUARD, a new reference. Returns NULL if GUARD has none, or
     * with an exception. */
    PyObject *(*check_of)(PyObject *guard);
    /* bind: register ENTRY, a new entry whose PARTS are pinned, with its guard; -1 with an
     * exception. unbind: ENTRY has released GUARD. */
    int (*bind)(struct cache_entry *entry, struct cache_parts *parts);
    void (*unbind)(struct cache_entry *entry, PyObject *guard);
    /* Update PARTS' check of the guards that tell entries apart, because the set of these guards
     * has changed. May leave an exception. */
    void (*update_difference)(struct cache_parts *parts);

    /* Return the leaves of GUARD for the trace: a new tuple of (kind, source, expression, user's
     * code), or NULL. Stores in *VIEW a new reference to an object for explain(). */
    PyObject *(*leaves)(PyObject *guard, PyObject **view);
    /* Return the guard that failed in the check of ENTRY that has just ended. PARTS are ENTRY's
     * parts. */
    struct guard_outcome (*failed)(struct cache_entry *entry, const struct cache_parts *parts,
                                   compat_frame *frame, PyObject *locals);
    /* Return why the guards of VIEW do not hold now: a new list of (ordinal, kind, source,
     * expected, actual, aspect, dimension, text), or NULL. */
    PyObject *(*explain)(PyObject *view, compat_frame *frame, PyObject *locals);

    /* Called before and after a compile. compile_begins returns a token (owned, or NULL), which
     * compile_ends releases. RESULT is borrowed, or NULL with an exception. A pending exception
     * stays pending. */
    PyObject *(*compile_begins)(uint32_t compile, PyObject *code);
    void (*compile_ends)(PyObject *token, PyObject *result);

    /* Replacements for steps of decide(); NULL stands for the shim's own step. A pending exception
     * stays pending. */
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
    PyObject *check; /* owned: the callable that checks: `guard`, or its bound method check() */
    PyObject *code;  /* owned */
    /* owned: torch's check of only those guards that tell its entries apart; or NULL */
    PyObject *difference;
    PyObject *view; /* owned: the bridge's view of torch's guards, or NULL */
};

/* dyntrace.types.CacheEntry: compiled code and its guards. */
struct cache_entry {
    /* borrowed; NULL once the entry has left its code's list */
    PyObject_HEAD struct code_state *state;
    TAILQ_ENTRY(cache_entry) order;
    const struct front *front;
    struct cache_parts *parts; /* pinned; NULL once the entry is invalid and has dropped its pin */
    bool valid;                /* the entry may match; once false, it stays false */
    /* the guard is a GuardTree, which is checked without a Python call */
    bool tree;
    bool dead;         /* the entry's death has been written to the trace */
    PyObject *instead; /* owned: what an invalid entry shows as its guard; or NULL */
    /* owned: the code with every argument positional; NULL if `code` is like that already, or if
     * this was not needed yet */
    PyObject *flat;
    /* owned: a function of `flat`, kept if it has no closure; or NULL */
    PyObject *function;
    unsigned running;  /* how many calls of `function` are running */
    PyObject *backend; /* owned; NULL for an entry of torch's own evaluator */
    /* owned: a weak reference to the backend, for an entry of torch's own evaluator; else NULL */
    PyObject *born_for;
    /* owned: "2/0" is the first compile (0) of the third compiled code object (2) */
    PyObject *compile_id;
    char label[64];           /* text of compile_id in the trace */
    PyObject *annotation;     /* owned */
    PyObject *invalid_reason; /* owned; NULL while the entry is valid */
    unsigned long hits;
    uint32_t id;      /* entry id in the trace, or ENTRY_UNRECORDED */
    uint32_t guards;  /* number of leaves of the guard tree; 1 for any other callable */
    uint64_t ordered; /* time of the last change of the guards' order, by the session's clock */
    bool order_lost;  /* the guards' order changed, and the trace does not have the new order */
    /* number of changes of the guards' order that have been written to the trace */
    uint32_t moves;
    /* torch: the region whose lookups can hit the entry; -1: the common region */
    int64_t region;
    uint8_t
        *secret; /* owned: enum secret of what each guard reads; NULL: no guard reads a secret */
};
#define ENTRY_UNRECORDED UINT32_MAX

/* Entries in the order in which lookups try them. The list owns them. */
TAILQ_HEAD(entry_list, cache_entry);

struct code_state {
    /* the mark of tracer/tracer.h; first, for tracer_mark_in(); 0 if the code was not seen yet */
    uintptr_t mark;
    unsigned references;
    PyCodeObject *code;   /* borrowed; NULL once the code object is gone or the state was reset */
    unsigned long serial; /* a number that is higher in later states */
    /* precompiled: entries that torch loaded, which are tried before the others */
    struct entry_list entries, precompiled;
    PyObject *frame_state; /* owned: a dict for the callback's own use */
    PyObject *splits;      /* owned dict: the code's splits, of tracer/resume/; or NULL */
    struct code_actions actions;
    struct code_actions *regions; /* owned: actions of torch's regions that differ from `actions` */
    unsigned region_count;
    /* observe mode, owned: the entry whose compiled code this code object is; or NULL */
    struct cache_entry *compiled;
    bool is_init; /* the code is an __init__: see tracer_fix_init() */
    /* the first number of the code's compile ids, plus 1; 0 if the code was not compiled yet */
    unsigned long number;
    unsigned long compiles;     /* how many entries were ever made */
    LIST_ENTRY(code_state) all; /* list of all states, for reset() */
};

extern PyTypeObject cache_entry_type, shim_frame_type;

struct code_state *code_state_make(PyCodeObject *code);
/* Return the state of CODE, borrowed. If there is none and MAKE, make one, which may run any code.
 * Returns NULL if there is none, or with MemoryError. */
static inline struct code_state *code_state_of(PyCodeObject *code, bool make)
{
    uintptr_t slot = compat_extra(code, tracer_process.extra);

    return tracer_is_state(slot) ? (struct code_state *)slot : make ? code_state_make(code) : NULL;
}
/* Drop a reference. To hold a state, increment its `references`. */
void code_state_release(struct code_state *state);
/* Drop CODE's state. Its entries become invalid. */
void code_state_reset(PyCodeObject *code);
void code_state_reset_all(void);
/* Mark all actions as not written, because the session has ended: the next session's trace needs
 * them, too. */
void code_states_session_ended(void);
/* torch: drop the precompiled entries of STATE's code. */
void code_state_drop_precompiled(struct code_state *state);
/* Called by CPython when a code object with SLOT dies (PyUnstable_Eval_RequestCodeExtraIndex). */
void code_state_free(void *slot);

/* Make an entry from GUARDED, a GuardedCode, and put it in front of ORIGINAL's list. Returns a new
 * reference, or NULL with an exception that names the fault. */
struct cache_entry *cache_entry_add(PyCodeObject *original, PyObject *guarded, PyObject *backend,
                                    const struct front *front);
/* torch: add an entry to ORIGINAL's precompiled entries: torch has loaded it, and it was compiled
 * elsewhere. Returns -1 with an exception. */
int cache_entry_load(PyCodeObject *original, PyObject *guard, PyObject *code, int64_t region,
                     const struct front *front);
/* Make an entry in no list, with empty parts. Returns a new reference, or NULL with MemoryError. */
struct cache_entry *cache_entry_new(const struct front *front, int64_t region);
/* Make ENTRY invalid, because a guarded object died, or because the program asked for it. INSTEAD,
 * if not NULL, is what the entry shows as its guard from then on. Runs Python code only after the
 * entry is marked invalid. The caller holds the entry. */
void cache_entry_invalidate(struct cache_entry *entry, const char *reason, PyObject *instead);
void cache_parts_free(struct cache_parts *parts);
/* Pin and return ENTRY's parts. Returns NULL if the entry is invalid. */
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
/* Return the attribute NAME of OBJECT, a new reference. Returns NULL if it is missing or None, or
 * with an exception, which may be from before the call. */
PyObject *shim_optional(PyObject *object, const char *name);
/* Move ENTRY to the front of its list, because it was hit. */
void cache_entry_touch(struct cache_entry *entry);
/* Return this thread's region for FRONT, or -1 for the common region. */
static inline int64_t front_region(const struct front *front)
{
    return front->regions && tracer_thread ? tracer_thread->region : -1;
}
/* Does this thread check only the guards that tell FRONT's entries apart? */
static inline bool front_skips_guards(const struct front *front)
{
    return front->rules && front->rules()->skip_guards_unsafe;
}
/* Get or set the actions that hold in REGION (-1: the common region). Setting returns -1 with
 * MemoryError. */
struct code_actions code_state_actions(struct code_state *state, int64_t region);
int code_state_act(struct code_state *state, int64_t region, struct code_actions actions);
/* Return the entry of FRONT that a lookup in REGION tries first: borrowed, or NULL. */
struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region,
                                      const struct front *front);

/* tracer/evaluator/decision.c: records a lookup, if `on` */
#define CHECK_TICKS_UNKNOWN UINT64_MAX
struct decision_check {
    struct cache_entry *entry; /* owned */
    uint64_t ticks;
    /* run: number of leaves that were checked. failed: ordinal of the failed leaf, or UINT32_MAX */
    uint32_t run, failed;
    /* the result of the check; CHECK_RESULTS if the entry was not tried */
    enum check_result result;
    /* owned: the value that the failed leaf checked (guard_tree_check()); or NULL */
    PyObject *seen;
    PyObject *why; /* owned: explain()'s result; or NULL */
};
struct decision {
    bool on;
    /* entries existed before the recording, and the trace has none of them */
    bool older;
    const struct front *front; /* front end of the callback */
    compat_frame *frame;       /* the called frame */
    PyObject *locals;          /* owned: the call's variables, if they were needed; or NULL */
    int64_t region;            /* the region of the lookup */
    enum outcome outcome;      /* the outcome of the call; valid once the callback has answered */
    /* began: clock at the lookup's start; ours: ticks since then that dyntrace spent finding
     * causes */
    uint64_t began, ours;
    uint32_t compile;   /* compile id + 1; 0 if there is none */
    uint32_t signature; /* signature id + 1; 0 if there is none */
    uint64_t compile_began;
    /* borrowed: this compile's node in the thread's list, while the callback runs; or NULL */
    struct asking *asking;
    /* owned: the token of front.compile_begins(), while the callback runs; or NULL */
    PyObject *token;
    uint32_t count, room;
    struct decision_check *check; /* the entries in the order tried; owned if it is not `small` */
    struct decision_check small[8];
};
/* Begin the decision of the call of FRAME. BEGAN is the call's start by the session's clock, or 0
 * if the decision is not recorded. */
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
/* Return the frame's variables, which are made when they are first needed. Borrowed; NULL with an
 * exception. */
PyObject *decision_locals(struct decision *d);
/* Add ENTRY as the next entry to try. Returns NULL without memory. */
struct decision_check *decision_add(struct decision *d, struct cache_entry *entry);
/* Record the values of a call that missed, before code of the program changes them. If ASKS, the
 * callback will be called: also record why each entry missed. Returns false if a signal handler has
 * raised meanwhile; the call must then raise that exception. */
bool decision_missed(struct decision *d, bool asks);
/* decision_ask: called before the callback compiles STATE's code. decision_asked: called after it
 * has returned RESULT (borrowed; NULL with an exception, which is kept). decision_answer: called
 * when the result became ENTRY; ENTRY is NULL if there is no code, and OUTCOME says why. */
void decision_ask(struct decision *d, const struct code_state *state);
void decision_asked(struct decision *d, PyObject *result);
/* Write that this thread's stack of frames is in PHASE of torch's work from here on, if frames
 * there are only counted (SESSION_FOLDED). */
void decision_phase(enum compile_phase phase);
/* Write that T's next ENTER is a call that is decided, so that its frame has a row. */
void decision_keep(struct tracer *t);
/* Return (compile id, code) of this thread's innermost open compile, or None if none is
 * recorded. */
PyObject *decision_compiling(void);
void decision_answer(struct decision *d, struct code_state *state, struct cache_entry *entry,
                     enum outcome outcome);
/* Record a lookup by torch's own evaluator that raised before its compile: a guard raised, or
 * torch's stance forbids a miss, which is recorded as a failed compile. Returns the outcome. */
enum outcome decision_raised(struct decision *d, uint32_t code);
/* Write the lookup. The frame runs afterwards. If torch's own evaluator decided, it is unknown
 * which entries were tried and missed. */
void decision_write(struct decision *d, struct tracer *t, enum outcome outcome,
                    struct cache_entry *entry);
void decision_outcome(struct tracer *t, enum outcome outcome);
/* Write that torch's own evaluator, called at BEGAN, has hit ENTRY: decision_add() and
 * decision_write() without a struct decision. */
void decision_hit(struct tracer *t, uint64_t began, const struct cache_entry *entry);
void decision_end(struct decision *d);
/* Write that calls of STATE's code are not compiled any more, for REASON (a str, or NULL), unless
 * the trace has this already. */
void decision_write_actions(struct code_state *state, int64_t region, PyObject *reason);
/* Collect the facts of ENTRY whose reading may run the program's code. Called while ENTRY is not
 * yet visible to other code. Returns a new reference, or NULL. MARK is the mark of its code; the
 * facts are read from GUARD and BACKEND. */
PyObject *decision_birth(struct cache_entry *entry, uintptr_t mark, PyObject *guard,
                         PyObject *backend);
/* Write the facts of ENTRY, which is in STATE's list now. BIRTH is decision_birth()'s result. Like
 * the next functions, this one runs no Python code. */
void decision_entry_born(PyObject *birth, struct cache_entry *entry,
                         const struct code_state *state);
/* Write that the guards of ENTRY are tried in a new order: the order of TREE, or ORDINALS (a JSON
 * array in a str). */
void decision_entry_order(struct cache_entry *entry, PyObject *tree, uint64_t clock);
void decision_entry_ordinals(struct cache_entry *entry, PyObject *ordinals);
void decision_entry_died(struct cache_entry *entry, const char *cause);

/* tracer/evaluator/decide.c: the attached watcher of missed calls; all zero if none is attached
 * (tracer/services.c) */
extern struct watcher shim_watcher;
static inline bool callback_watches(PyObject *callback)
{
    return Py_IS_TYPE(callback, shim_watcher.type);
}
/* tracer/services.c: add `_shim` to the module; -1 with an exception */
int services_ready(PyObject *module);

/* The next variables and functions are in tracer/evaluator/decide.c. */
extern struct shim_settings {
    unsigned long recompile_limit, accumulated_limit;
    PyObject *guard_error_hook, *guard_fail_hook; /* owned, or NULL */
    /* owned: two answers of torch 2.6's callback that are objects without a strategy; or NULL */
    PyObject *skip_recursively, *limit_reached;
    /* owned: the callback that every thread gets at its first frame; or NULL */
    PyObject *for_all;
    /* owned: if not NULL, torch also decides frames that run while CPython's tracing is set */
    PyObject *while_tracing;
} shim_settings;
/* Does the shim decide calls of FRONT now? It does not while ts->tracing is set: CPython sets it
 * while trace and profile functions, monitoring callbacks and audit hooks run, and we set it while
 * our own code runs. */
static inline bool shim_decides(const struct tracer *t, const PyThreadState *ts,
                                const struct front *front)
{
    return likely(ts->tracing <= 0) ||
           (shim_settings.while_tracing && !t->quiet && front != &front_own);
}
PyObject *decide_frame(PyThreadState *ts, compat_frame *frame, int throwflag);
/* The shim's own steps of decide(). shim_look_up stores in *FOUND a new reference to the first
 * entry that matches, or NULL. Returns -1 if a guard raised or did not return a bool. */
int shim_look_up(struct code_state *state, PyObject *backend, struct decision *d,
                 struct cache_entry **found);
PyObject *shim_run(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                   PyObject *under, struct cache_entry *entry, PyObject *code);
/* Return the backend inside CALLBACK: callbacks wrap one another. A new reference. Reading the
 * attributes may run the program's code. */
PyObject *shim_backend_of(PyObject *callback);
/* Is an entry with backend ENTRY usable for backend WANTED? Runs their __eq__. WANTED is Py_False
 * for run-only. */
bool shim_same_backend(PyObject *entry, PyObject *wanted);
/* Make a view of D's frame for a callback. shim_frame_close ends it. New references. */
PyObject *shim_frame_open(const struct decision *d);
void shim_frame_close(PyObject *view);

/* The answer of a callback. */
struct answer {
    PyObject *guarded; /* owned; NULL if there is no code */
    PyObject *reason;  /* owned: the reason why there is no code, or NULL */
    struct code_actions actions;
    bool for_code; /* the actions hold for later calls, too */
};
/* Read the callback's RESULT into ANSWER. Returns -1 with an exception. The caller releases
 * ANSWER's members, also after an exception. */
int answer_read(PyObject *result, struct answer *answer);
/* Return the call's outcome, given that the answer's code is valid. */
enum outcome answer_outcome(const struct answer *answer, const struct front *front);
/* Store STRATEGY's two actions, for the call itself and for its callees, in ACTIONS. STRATEGY is a
 * FrameExecStrategy. Returns -1 with an exception. */
int answer_strategy(PyObject *strategy, struct code_actions *actions);

/* The next functions are in tracer/evaluator/api.c. */
/* Set this thread's callback to CALLBACK (a callable, False or None), which belongs to FRONT.
 * Returns the old callback, or NULL with an exception. */
PyObject *shim_set_eval_frame(PyObject *callback, const struct front *front);
/* Set the callback for the running stack only, until it is restored: other greenlets keep
 * theirs. */
PyObject *shim_set_on_stack(PyObject *callback, const struct front *front);
/* Functions of the shim that torch's front end has under the same names. */
PyObject *shim_get_eval_frame_callback(PyObject *module, PyObject *ignored);
PyObject *shim_set_code_exec_strategy(PyObject *module, PyObject *args);
PyObject *shim_reset_code(PyObject *module, PyObject *object);
/* Return the state of OBJECT, a code object. If there is none and MAKE, make one. Returns NULL if
 * there is none; or with an exception, without memory or if OBJECT is no code object. */
struct code_state *shim_state_of(PyObject *object, bool make);
/* Return a new list of OBJECT's entries, or of its PRECOMPILED ones: those in REGION and of FRONT,
 * or of all front ends if FRONT is NULL. Lower regions come first. */
PyObject *shim_list(PyObject *object, bool precompiled, int64_t region, const struct front *front);
#define SHIM_ALL_REGIONS INT64_MIN
/* Set *SLOT to VALUE, or to NULL if VALUE is None. Returns the old value. */
PyObject *shim_exchange(PyObject **slot, PyObject *value);
/* Set whether thread T counts as a thread with a callback. The hook is installed for the first such
 * thread and removed after the last. */
void shim_set_active(struct tracer *t, bool active);
extern PyMethodDef shim_methods[];
int shim_types_ready(PyObject *module);
/* `dyntrace run --capture`: set CALLBACK in each thread at its first frame. Keeps a new
 * reference. */
int tracer_callback_for_all(PyObject *callback);
/* Fill in the evaluator's members of tracer/hooks.h. */
void evaluator_register(void);

#endif
