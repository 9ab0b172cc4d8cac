/* tracer/evaluator/cache.h -- the shim's cache for each code object.
 *
 * Runs in: the traced process, under the GIL.
 *
 * The code object's extra slot holds either the recorder's bare mark (an odd number,
 * tracer/tracer.h) or a pointer to this state, which then holds the mark:
 *
 *     slot -> code_state { mark, action, frame_state,
 *                          entries: [0] most recent hit, ... , invalid ones last }
 *
 * THE RULE of every file that includes this one:
 *
 *     After code of the program may have run, values read before are stale: read them again.
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
 *     releasing the GIL, as a wait for room in the ring may (record_begin_frame,
 *       record_end_frame): other threads
 *
 * Such code may reset this state or all states, invalidate or add entries, replace callbacks and
 * hooks, and drop the last reference to anything that we do not hold. Safe are: creating strings,
 * bytes, ints and other untracked objects; allocating memory; tracer_fact().
 *
 * Consequences of the rule:
 *
 *     1. Read an answer to its end first, into values that are owned. Then change the cache in one
 *        stretch that runs nothing of the list above. The stretch begins with finding the state
 *        and making room (cache_entry_add).
 *     2. Unlink first, drop last. Everything that leaves the cache is unlinked while it is still
 *        owned; its references are dropped once the cache is consistent again.
 *     3. Hold what is used. A state has a reference from the slot and one from each decision under
 *        way, so a decision can finish after reset_code() or the death of the code object. The old
 *        state's `code` is then NULL, and later changes belong to the code's new state
 *        (get_state_of_code() in tracer/evaluator/decide.c).
 *     4. Pin the parts that run; see below.
 *
 * Entries and their parts. An entry can become invalid while its guard is being checked, or while
 * its code runs: the guard's own code may reset the cache. So the guard and code lie in a separate
 * struct, which can outlive the entry:
 *
 *     list --> entry --(pin)--> parts { guard, check, code, difference, view }
 *                                 ^
 *     a lookup, or a call --(pin)-+
 *
 *     valid entry, not in use       1 pin: the entry's
 *     its guard is checked          2: cache_entry_pin() gave a pin to the lookup
 *     ... and invalidates it        1: the entry dropped its pin and is the list's last. The
 *                                   lookup goes on with whole parts, and then sees that `valid` is
 *                                   false: the entry is no hit
 *     the lookup unpins             0: the parts are freed, which may run finalisers; nothing of
 *                                   the cache is held at that moment
 *
 * Invariants of an entry, wherever code of the program may run:
 *
 *     a valid entry has its parts; `valid` never becomes true again
 *     it is in a list of `state`, or state is NULL
 *     valid entries stand before invalid ones in a list
 *     an invalid entry keeps the attributes that the program may still read: compile_id, label,
 *       invalid_reason, instead */
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

/* How calls of a code object are treated, and the calls that they make in turn. */
struct code_actions {
    enum frame_action own, callees;
    bool limited;   /* `own` is ACTION_RUN_ONLY because a limit was reached */
    bool written;   /* the actions have been written to the trace */
    int64_t region; /* torch's region in which the actions hold */
};

/* The differences between the compilers that use the shim. A front end sets a thread's callback,
 * and an entry has the kind of guards that its front end uses. There are three front ends: for a
 * compiler that the program brings (cache.c); for torch on this evaluator (tracer/torch/torch.c);
 * and for torch on its own evaluator, which we observe (tracer/torch/observe.c). A NULL function is
 * not called. */
struct front {
    /* a hit does not move its entry to the front: entries stay in order of insertion */
    bool insertion_order;
    bool observed; /* torch's own evaluator decides, so we do not see which guard failed */
    /* the shim applies the limits; if false, the callback does so, and answers ACTION_RUN_ONLY */
    bool limits;
    bool regions; /* each thread is in a region, and its lookups find only entries of that region */
    /* compile ids have no values of the program in them, and the bridge records them */
    bool ids_public;
    /* the front end wraps the program's backend in a backend of its own */
    bool wraps_backends;
    /* call guard_fail_hook when a guard fails; and pass hooks the original code, not the compiled
     * code */
    bool fail_hook;
    /* value of f_lasti in the frame that a callback gets, which has not started */
    int not_started;
    const char *unexplained; /* text for a failed guard if the failing leaf is not known */

    /* Return the rules that torch has set for calls on this thread. */
    struct call_rules *(*rules)(void);
    /* Return a callable that checks GUARD, a new reference. Returns NULL if GUARD has none; NULL
     * with an exception on failure. */
    PyObject *(*check_of)(PyObject *guard);
    /* bind: register ENTRY with its guard. The entry is new, and its PARTS are pinned. Returns -1
     * with an exception. unbind: undo this, because ENTRY has released GUARD. */
    int (*bind)(struct cache_entry *entry, struct cache_parts *parts);
    void (*unbind)(struct cache_entry *entry, PyObject *guard);
    /* Make `difference` of PARTS anew, because other guards tell the entries apart now. May leave
     * an exception. */
    void (*update_difference)(struct cache_parts *parts);

    /* Return the leaves of GUARD for the trace: a new tuple of (kind, source, expression, user's
     * code), or NULL. Stores in *VIEW a new reference to an object for explain(). */
    PyObject *(*leaves)(PyObject *guard, PyObject **view);
    /* Return which guard failed in the check of ENTRY that has just ended. PARTS are the entry's
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

    /* Steps of decide_call_and_run() that a front end replaces; NULL: the shim's own step is used.
     * A pending exception stays pending. */
    int (*look_up)(struct code_state *state, PyObject *backend, struct decision *d,
                   struct cache_entry **found);
    PyObject *(*ask)(PyThreadState *ts, PyObject *callback, PyObject *const arguments[3]);
    PyObject *(*run)(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                     PyObject *under, struct cache_entry *entry, PyObject *code);
};
extern const struct front front_own;

/* What an entry checks and runs. It stays complete as long as it is pinned; a valid entry holds one
 * pin. */
struct cache_parts {
    unsigned pins;
    PyObject *guard; /* owned: check(f_locals) -> bool */
    PyObject *check; /* owned: the callable that checks: `guard`, or its bound method check() */
    PyObject *code;  /* owned */
    /* owned: torch's check of only the guards that tell the entries apart; or NULL */
    PyObject *difference;
    /* owned: an object with torch's guards for explain(), made by the bridge; or NULL */
    PyObject *view;
};

/* dyntrace.types.CacheEntry: compiled code and its guards. */
struct cache_entry {
    /* borrowed; NULL when the entry is no longer in its code's list */
    PyObject_HEAD struct code_state *state;
    TAILQ_ENTRY(cache_entry) order;
    const struct front *front;
    /* pinned by the entry; NULL when the entry is invalid and has dropped its pin */
    struct cache_parts *parts;
    bool valid; /* can the entry be hit? Once false, it stays false */
    /* the guard is a GuardTree, which is checked without a Python call */
    bool tree;
    bool dead; /* the entry's death has been written to the trace */
    /* owned: what the program sees as the entry's guard once the entry is invalid; or NULL */
    PyObject *instead;
    /* owned: a copy of `code` in which every argument is positional; NULL if `code` itself is like
     * that, or if no copy was needed yet */
    PyObject *flat;
    /* owned: a function made of `flat`, kept for the next call if it has no closure; or NULL */
    PyObject *function;
    unsigned running;  /* how many calls of `function` are running */
    PyObject *backend; /* owned: the backend; NULL if torch's own evaluator has the entry */
    /* owned: if torch's own evaluator has the entry, a weak reference to the backend; else NULL */
    PyObject *born_for;
    /* owned: "2/0" means the first compile (0) of the third compiled code object (2) */
    PyObject *compile_id;
    char label[64];           /* compile_id as the trace has it */
    PyObject *annotation;     /* owned */
    PyObject *invalid_reason; /* owned: why the entry is invalid; NULL as long as it is valid */
    unsigned long hits;
    uint32_t id;      /* entry id in the trace, or ENTRY_UNRECORDED */
    uint32_t guards;  /* number of leaves of the guard tree; 1 if the guard is another callable */
    uint64_t ordered; /* when the order of the guards last changed, by the session's clock */
    /* the order of the guards has changed, but could not be written to the trace */
    bool order_lost;
    /* guard_tree_count_moves() when the order of the guards was last written to the trace */
    uint32_t moves;
    /* torch: the region whose lookups can hit the entry; -1: lookups of all regions can */
    int64_t region;
    uint8_t
        /* owned array: how secret the value is that each guard reads (enum secret); NULL if no
         * guard reads a secret value */
        *secret;
    bool secrets_unknown; /* there was no memory to find out: all values count as secret */
};
#define ENTRY_UNRECORDED UINT32_MAX

/* Entries in the order in which lookups try them. The list owns them. */
TAILQ_HEAD(entry_list, cache_entry);

struct code_state {
    /* the code object's mark (tracer/tracer.h), or 0 if it has none yet; must be the first member,
     * for tracer_mark_in_slot() */
    uintptr_t mark;
    unsigned references;
    PyCodeObject *code;   /* borrowed; NULL once the code object is gone or the state was reset */
    unsigned long serial; /* number of the state: later states have higher numbers */
    /* precompiled: entries that torch has loaded from a file; they are tried before the others */
    struct entry_list entries, precompiled;
    PyObject *frame_state; /* owned: a dict that callbacks get and may use as they like */
    /* owned: a dict of the ways in which the code was split (tracer/resume/); or NULL */
    PyObject *splits;
    struct code_actions actions;
    /* owned: actions in regions of torch that differ from `actions` */
    struct code_actions *regions;
    unsigned region_count;
    /* owned, in observe mode: the entry for which this code object was compiled; or NULL */
    struct cache_entry *compiled;
    bool is_init; /* is the code an __init__? See tracer_route_init_to_hook() */
    /* 1 + the first number of the code's compile ids; 0 if the code was not compiled yet */
    unsigned long number;
    unsigned long compiles; /* how many entries were made for the code in all */
    /* node in the list of all states, which code_state_reset_all() walks */
    LIST_ENTRY(code_state) all;
};

extern PyTypeObject cache_entry_type, shim_frame_type;

struct code_state *code_state_make(PyCodeObject *code);
/* Return the state of CODE, borrowed. MAKE: make it if there is none, which may run any code.
 * Returns NULL if there is none, or with MemoryError. */
static inline struct code_state *code_state_get(PyCodeObject *code, bool make)
{
    uintptr_t slot = compat_get_extra(code, tracer_process.extra);

    return tracer_is_slot_code_state(slot) ? (struct code_state *)slot
           : make                          ? code_state_make(code)
                                           : NULL;
}
/* Release a reference to STATE. Taking one means to increment `references`. */
void code_state_release(struct code_state *state);
/* Take the state of CODE away from it, and make its entries invalid. */
void code_state_reset(PyCodeObject *code);
void code_state_reset_all(void);
/* The session has ended: mark all actions as not written, so that the next session's trace gets
 * them. */
void code_states_mark_actions_unwritten(void);
/* torch: drop those entries of STATE that torch has loaded from a file. */
void code_state_drop_precompiled(struct code_state *state);
/* CPython calls this for the content SLOT of our extra slot when a code object dies
 * (PyUnstable_Eval_RequestCodeExtraIndex). */
void code_state_free(void *slot);

/* Make an entry from GUARDED, a GuardedCode, and put it in front of the list of code object
 * ORIGINAL. Returns a new reference, or NULL with an exception that names the fault. */
struct cache_entry *cache_entry_add(PyCodeObject *original, PyObject *guarded, PyObject *backend,
                                    const struct front *front);
/* torch: add an entry to the precompiled entries of code object ORIGINAL. It was compiled
 * elsewhere, and torch has loaded it. Returns -1 with an exception. */
int cache_entry_add_precompiled(PyCodeObject *original, PyObject *guard, PyObject *code,
                                int64_t region, const struct front *front);
/* Make an entry that is in no list and has empty parts. Returns a new reference, or NULL with
 * MemoryError. */
struct cache_entry *cache_entry_new(const struct front *front, int64_t region);
/* Make ENTRY invalid, because a guarded object died or the program asked for it. From then on the
 * program sees INSTEAD, unless it is NULL, as the entry's guard. No Python code runs before the
 * entry is marked invalid. The caller must hold a reference to the entry. */
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
/* Return the attribute NAME of OBJECT, a new reference. Returns NULL if it is missing or None; or
 * with an exception, which may have been pending before the call. */
PyObject *shim_optional(PyObject *object, const char *name);
/* ENTRY was hit: move it to the front of its list. */
void cache_entry_move_hit_to_front(struct cache_entry *entry);
/* Return this thread's region for FRONT, or -1 for the common region. */
static inline int64_t front_get_region(const struct front *front)
{
    return front->regions && tracer_thread ? tracer_thread->region : -1;
}
/* Does this thread check only the guards that tell FRONT's entries apart (torch's
 * skip_guard_eval_unsafe)? */
static inline bool front_skips_guards(const struct front *front)
{
    return front->rules && front->rules()->skip_guards_unsafe;
}
/* Get or set the actions for REGION; -1 is the common region. Setting returns -1 with
 * MemoryError. */
struct code_actions code_state_get_actions(struct code_state *state, int64_t region);
int code_state_set_actions(struct code_state *state, int64_t region, struct code_actions actions);
/* Return the first entry that a lookup of FRONT in REGION tries: borrowed, or NULL. */
struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region,
                                      const struct front *front);

/* ---- record a lookup, if `on` (tracer/evaluator/decision.c) ---- */
#define CHECK_TICKS_UNKNOWN UINT64_MAX
struct decision_check {
    struct cache_entry *entry; /* owned */
    uint64_t ticks;
    /* run: how many leaves were checked. failed: ordinal of the leaf that failed, or UINT32_MAX */
    uint32_t run, failed;
    /* the result of the check; CHECK_RESULTS if the entry was not tried */
    enum check_result result;
    /* owned: the value that the failed leaf read (guard_tree_check()); or NULL */
    PyObject *seen;
    PyObject *why; /* owned: what explain() returned for this check; or NULL */
};
struct decision {
    bool on;
    /* the cache has entries from before the recording, which the trace does not have */
    bool older;
    const struct front *front; /* the front end of the thread's callback */
    compat_frame *frame;       /* the frame whose call is decided */
    /* owned: a dict of the call's variables, once it is needed; or NULL */
    PyObject *locals;
    int64_t region;       /* torch's region in which the lookup searches */
    enum outcome outcome; /* the outcome of the call; set when the callback has answered */
    /* began: clock at the lookup's start. ours: ticks that dyntrace has spent since then on finding
     * causes, which do not count for the lookup */
    uint64_t began, ours;
    uint32_t compile;   /* 1 + the compile id; 0 if there is no compile */
    uint32_t signature; /* 1 + the signature id; 0 if there is no signature */
    uint64_t compile_began;
    /* borrowed: this compile in the thread's list of compiles, while the callback runs; or NULL */
    struct asking *asking;
    /* owned: what compile_begins() returned, while the callback runs; or NULL */
    PyObject *token;
    uint32_t count, room;
    /* the entries in the order in which they are tried; owned unless it is `small` */
    struct decision_check *check;
    struct decision_check small[8];
};
/* Begin the decision of the call of FRAME. BEGAN is the call's start by the session's clock, or 0
 * if the decision is not recorded. */
static inline void decision_begin_lookup(struct decision *d, uint64_t began,
                                         const struct front *front, compat_frame *frame,
                                         int64_t region)
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
/* Return a dict of the frame's variables, made when it is first needed. Borrowed; NULL with an
 * exception. */
PyObject *decision_locals(struct decision *d);
/* Append ENTRY to the entries that the lookup will try. Returns NULL without memory. */
struct decision_check *decision_add_entry_to_try(struct decision *d, struct cache_entry *entry);
/* The lookup missed: record the call's values, before code of the program can change them. ASKS:
 * the callback will be called, so also record why each entry did not match. Returns false if a
 * signal handler has raised meanwhile; the call must then raise that exception. */
bool decision_record_miss(struct decision *d, bool asks);
/* decision_begin_compile: called before the callback compiles STATE's code. decision_end_compile:
 * called after it has returned RESULT (borrowed; NULL with an exception, which is kept).
 * decision_record_outcome: called when the result became ENTRY; ENTRY is NULL if there is no code,
 * and OUTCOME says why. */
void decision_begin_compile(struct decision *d, const struct code_state *state);
void decision_end_compile(struct decision *d, PyObject *result);
/* Write that frames of this thread's stack are in PHASE of torch's work from here on. Does nothing
 * unless such frames are only counted (SESSION_FOLDED). */
void decision_write_phase(enum compile_phase phase);
/* Write that the next ENTER of thread T is a call that a compiler decides, so that its frame gets a
 * row. */
void decision_request_frame_row(struct tracer *t);
/* Return (compile id, code) of the innermost compile that runs in this thread and is recorded, or
 * None. */
PyObject *decision_compiling(void);
void decision_record_outcome(struct decision *d, struct code_state *state,
                             struct cache_entry *entry, enum outcome outcome);
/* Record a lookup by torch's own evaluator that raised before its compile. Either a guard raised,
 * or torch's stance forbids a miss, which is recorded as a failed compile. Returns the outcome. */
enum outcome decision_record_raise(struct decision *d, uint32_t code);
/* Write the lookup, before the frame runs. If torch's own evaluator decided, the entries that were
 * tried and missed are not known. */
void decision_write(struct decision *d, struct tracer *t, enum outcome outcome,
                    struct cache_entry *entry);
void decision_outcome(struct tracer *t, enum outcome outcome);
/* Write that torch's own evaluator, called at BEGAN, has hit ENTRY. Does the same as
 * decision_add_entry_to_try() and decision_write(), without a struct decision. */
void decision_hit(struct tracer *t, uint64_t began, const struct cache_entry *entry);
void decision_end_lookup(struct decision *d);
/* Write that calls of STATE's code are not compiled any more, with the REASON (a str, or NULL).
 * Does nothing if the trace already has this. */
void decision_write_actions(struct code_state *state, int64_t region, PyObject *reason);
/* Collect those facts of ENTRY whose reading may run code of the program: from its GUARD and
 * BACKEND. Called before other code can see ENTRY. MARK is the mark of its code object. Returns a
 * new reference; NULL if ENTRY is not to be recorded. */
PyObject *decision_birth(struct cache_entry *entry, uintptr_t mark, PyObject *guard,
                         PyObject *backend);
/* Write the facts of ENTRY, which has just got into STATE's list. BIRTH is what decision_birth()
 * returned. Runs no Python code; neither do the next functions. */
void decision_write_entry_birth(PyObject *birth, struct cache_entry *entry,
                                const struct code_state *state);
/* Write a new order in which the guards of ENTRY are tried: that of TREE, or ORDINALS (a str with a
 * JSON array). */
void decision_write_guard_order(struct cache_entry *entry, PyObject *tree, uint64_t clock);
void decision_write_guard_ordinals(struct cache_entry *entry, PyObject *ordinals);
void decision_write_entry_death(struct cache_entry *entry, const char *cause);

/* The watcher of capture, which runs calls whose lookup missed (watcher.h); all zero if there is
 * none. Defined in tracer/evaluator/decide.c, and set by attach_watcher() in tracer/services.c. */
extern struct watcher shim_watcher;
static inline bool callback_is_watcher(PyObject *callback)
{
    return Py_IS_TYPE(callback, shim_watcher.type);
}
/* Add `_shim` to the module (tracer/services.c). Returns -1 with an exception. */
int services_ready(PyObject *module);

/* ---- settings of the shim, and steps of a decision (tracer/evaluator/decide.c) ---- */
extern struct shim_settings {
    unsigned long recompile_limit, accumulated_limit;
    /* owned: functions that the program wants called when a guard raises or fails; or NULL */
    PyObject *guard_error_hook, *guard_fail_hook;
    /* owned: two objects that the callback of torch 2.6 may return instead of a strategy; or
     * NULL */
    PyObject *skip_recursively, *limit_reached;
    /* owned: a callback that each thread gets at its first frame; or NULL */
    PyObject *for_all;
    /* owned: not NULL if torch also decides frames that run while CPython's tracing is set */
    PyObject *while_tracing;
} shim_settings;
/* Does the shim decide calls for FRONT now? Not while ts->tracing is set. CPython sets it while
 * trace and profile functions, monitoring callbacks and audit hooks run, and we set it while our
 * own code runs. */
static inline bool shim_is_deciding(const struct tracer *t, const PyThreadState *ts,
                                    const struct front *front)
{
    return likely(ts->tracing <= 0) ||
           (shim_settings.while_tracing && !t->quiet && front != &front_own);
}
PyObject *decide_frame(PyThreadState *ts, compat_frame *frame, int throwflag);
/* The shim's own steps of decide_call_and_run(). shim_look_up stores a new reference to the first
 * entry that matches in *FOUND, or NULL. Returns -1 if a guard raised, or returned something else
 * than a bool. */
int shim_look_up(struct code_state *state, PyObject *backend, struct decision *d,
                 struct cache_entry **found);
PyObject *shim_run(struct tracer *t, PyThreadState *ts, compat_frame *frame, PyObject *callback,
                   PyObject *under, struct cache_entry *entry, PyObject *code);
/* Return the backend that CALLBACK wraps, perhaps through several wrappers: a new reference.
 * Reading the attributes may run code of the program. */
PyObject *shim_backend_of(PyObject *callback);
/* May a lookup for backend WANTED hit an entry with backend ENTRY? Runs their __eq__. WANTED is
 * Py_False for run-only. */
bool shim_may_use_backend(PyObject *entry, PyObject *wanted);
/* Return a view of the decided frame for a callback: a new reference. shim_close_frame_view ends
 * it. */
PyObject *shim_frame_open(const struct decision *d);
void shim_close_frame_view(PyObject *view);

/* What a callback has answered. */
struct answer {
    PyObject *guarded; /* owned: the GuardedCode; NULL if there is no code */
    PyObject *reason;  /* owned: the reason why there is no code, or NULL */
    struct code_actions actions;
    bool for_code; /* the actions are for later calls of the code object, too */
};
/* Read RESULT, which a callback has returned, into ANSWER. Returns -1 with an exception. The caller
 * releases the members of ANSWER in either case. */
int answer_read(PyObject *result, struct answer *answer);
/* Return the outcome of a call that got ANSWER. The answer's code, if any, must be valid. */
enum outcome answer_get_outcome(const struct answer *answer, const struct front *front);
/* Read STRATEGY, a FrameExecStrategy, into ACTIONS: its action for the call itself, and its action
 * for callees. Returns -1 with an exception. */
int answer_read_strategy(PyObject *strategy, struct code_actions *actions);

/* ---- functions of the shim that Python calls (tracer/evaluator/api.c) ---- */
/* Set the callback of this thread to CALLBACK (a callable, False or None), of the front end FRONT.
 * Returns the old callback, or NULL with an exception. */
PyObject *shim_set_eval_frame(PyObject *callback, const struct front *front);
/* Set the callback for the running stack of frames only, until the former callback is set again.
 * Other greenlets keep their callbacks. */
PyObject *shim_set_on_stack(PyObject *callback, const struct front *front);
/* Functions that torch's front end has under the same names. */
PyObject *shim_get_eval_frame_callback(PyObject *module, PyObject *ignored);
PyObject *shim_set_code_exec_strategy(PyObject *module, PyObject *args);
PyObject *shim_reset_code(PyObject *module, PyObject *object);
/* Return the state of OBJECT, a code object. MAKE: make it if there is none. Returns NULL if there
 * is none; or with an exception, if OBJECT is no code object or memory has run out. */
struct code_state *shim_get_state(PyObject *object, bool make);
/* Return a new list of the entries of OBJECT, a code object; PRECOMPILED: of those that torch has
 * loaded from a file. REGION and FRONT choose among them; SHIM_ALL_REGIONS and NULL mean all. Lower
 * regions come first. */
PyObject *shim_list(PyObject *object, bool precompiled, int64_t region, const struct front *front);
#define SHIM_ALL_REGIONS INT64_MIN
/* Set *SLOT to VALUE; None becomes NULL. Returns the old value. */
PyObject *shim_exchange(PyObject **slot, PyObject *value);
/* Note whether thread T has a callback. The hook is installed for the first thread that has one,
 * and removed after the last. */
void shim_note_thread_active(struct tracer *t, bool active);
extern PyMethodDef shim_methods[];
int shim_types_ready(PyObject *module);
/* `dyntrace run --capture`: each thread gets CALLBACK at its first frame. Keeps a new reference. */
int tracer_set_callback_for_all_threads(PyObject *callback);
/* Fill in the functions of tracer/hooks.h that the evaluator provides. */
void evaluator_register(void);

#endif
