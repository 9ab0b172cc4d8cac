/* tracer/tracer.h -- what the files of the extension share.
 *
 * Runs in: the traced process. A thread's own struct tracer is touched by that thread only.
 * The shim's state belongs to one interpreter, the home (tracer/place.c), whose GIL guards it.
 * State shared by all interpreters, which may have their own GILs, is guarded by tracer_lock():
 * files, rings, ids of code and threads.
 *
 *   module.c           the module: start, pause, resume; what all parts register (hooks.h)
 *   tracer_shim.c      the PEP 523 hook: an ENTER and an EXIT word per frame (record.h)
 *   state.c            the state of process and threads, and the lock
 *   place.c            sub-interpreters, and a main one that is initialised again
 *   slot.c             whether our hook is still called, or somebody else has its place
 *   session.c joining a session, and fork(); file.c, ring.c: memory shared with the collector
 *   code.c             code objects: their ids, names, and whether to record them
 *   values.c           text of the program's values; quiet.c: code of ours runs unseen
 *   stack.c            deep recursion: more C stack when a thread's runs short
 *   greenlet.c         one thread, several stacks of frames
 *   builtins.c         children, and the environment that makes them trace themselves; perf's
 *                      trampolines
 *   evaluator/         the shim: which code runs for a call; guards/: its checks; torch/: torch's
 *                      front end
 *   resume/            a function split in two, for compilers
 *   compat/            differences between CPython versions, and repairs
 *
 * The traced program comes first: nothing here raises, prints or exits. */
#ifndef DYNTRACE_TRACER_H
#define DYNTRACE_TRACER_H

#include "tracer/references.h"

#include "clock.h"
#include "ring.h"

/* Keep functions that every call runs together in memory: they then share instruction cache lines.
 */
#define HOT __attribute__((hot))
/* No stack protector, as in the files that the Makefile calls HOT: nothing here is a buffer. */
#if __has_attribute(no_stack_protector)
    #define UNGUARDED __attribute__((no_stack_protector))
#else
    #define UNGUARDED
#endif

/* A recorded frame that is running; lives on the C stack of its evaluator call. */
struct open_frame {
    struct open_frame *outer; /* the recorded frame around it, or NULL */
    uint32_t code;            /* its code id, with OPEN_LOST if its ENTER is not in the ring */
    uint32_t ordinal;         /* its number among the ENTERs of its ring */
    uint32_t depth;           /* recorded frames around it; kept only with --max-depth */
};

#define OPEN_LOST (UINT32_C(1) << 31)

/* What of a thread's state belongs to the stack that runs: it points into that stack, or holds only
 * while the code does that put it there. While another stack runs it is in struct tracer_stack.
 * docs/internals.md lists it. */
#define STACK_STATE                                                                                \
    PyObject *callback;        /* owned: False or a callable; NULL = None */                       \
    const struct front *front; /* the callback's front end; NULL: there was no callback yet */     \
    bool masked;               /* guards or a callback run; restore it afterwards */               \
    /* the frame that torch's own evaluator has; tracer/torch/observe.c */                         \
    struct pending *pending;                                                                       \
    struct pending *observed_at; /* the frame in whose compile `observed` was set; or NULL */      \
    unsigned quiet;              /* > 0: dyntrace's own Python code runs, which is not recorded */ \
    PyCodeObject *replacement;   /* borrowed: code about to run in place of a frame, and */        \
    /* the code that it replaces, or the same; see tracer/evaluator/decide.c */                    \
    PyCodeObject *replacement_for;                                                                 \
    compat_frame *replaced;    /* the frame whose arguments it takes over, or NULL */              \
    struct capture *capturing; /* the call being watched: evaluator/watcher.h; or NULL */          \
    /* the result that its code returns at its first run; or NULL */                               \
    struct watched_rest *replay;
struct stack_state {
    STACK_STATE
};

/* A stack of frames. A thread has one, and one more for each greenlet. */
struct tracer_stack {
    const void *bottom; /* its lowest chunk (compat_chunk); NULL: none yet */
    /* while another stack runs: its innermost recorded frame, on a C stack that may be moved */
    struct open_frame *open;
    char *stack_low;        /* likewise: the thread's */
    uint32_t thread;        /* its FACT_THREAD ... */
    uint32_t rings;         /* ... in its ring of this number */
    bool apart;             /* its callback (in `own`) differs from `given` */
    struct stack_state own; /* while another runs */
};

enum { TRACER_NO_CALLBACK = 1 }; /* ACTION_SKIP of tracer/evaluator/cache.h */

/* A compile requested from a thread's callback. Allocated on the heap, because greenlet may move
 * the C stack meanwhile. */
struct asking {
    struct asking *around; /* the compile begun before it; owned */
    const void *stack;     /* bottom of the stack that it runs on (tracer_stack_bottom) */
    PyCodeObject *code;    /* owned */
    uint32_t compile;      /* compile id + 1, 0: it is not recorded */
    bool ended;            /* ended while a later compile still runs on another stack */
};

/* One thread's state. Only its own thread touches it, under the GIL of the interpreter in which it
 * runs; `next_tracer` alone is under tracer_lock().
 *
 * Invariants between two events:
 *
 *   The words [head, limit) are free to write, and limit is at most the ring's tail + its size; or
 *   limit is 0, and the slow path (tracer_room) decides.
 *
 *   `open` leads through the recorded frames of the stack `here`, innermost first. All of them lie
 *   on that stack, so nothing follows the list while another stack runs.
 *
 *   `written` is `here`, or the next event writes a CONTROL_SWITCH first.
 *
 *   An open frame without OPEN_LOST has its ENTER in the ring. Frames with OPEN_LOST are the
 *   innermost ones.
 *
 *   If `gone`, `ring` is NULL or no longer read, and nothing is written.
 *
 *   `active` says whether tracer_process.active_threads counts this thread. */
struct tracer {
    /* the ring, as this producer sees it */
    uint64_t *words;   /* shared; NULL until the first event after a fork */
    uint64_t mask;     /* words in the ring - 1 */
    uint64_t head;     /* next word to write */
    uint64_t limit;    /* may write below this without rereading the tail */
    uint64_t until;    /* past this clock a full one is written first */
    struct ring *ring; /* shared */
    /* frames */
    struct open_frame *open; /* innermost recorded frame */
    uint32_t entered;        /* ENTERs so far: the next frame's ordinal */
    /* compat_chunk() at the last event; when it changes, the stack may have changed */
    const void *chunk;
    /* the running stack, and the stack that the ring's last words are about */
    struct tracer_stack *here, *written;
    PyThreadState *switches; /* borrowed, compared only: the thread state that owns the stacks */
    void *stacks;            /* a tsearch() tree of this thread's struct tracer_stack; owned */
    uint32_t rings;          /* rings used so far */
    bool greenlets;          /* it has had more than one stack */
    bool gone;               /* no ring, or it is no longer read: count losses, write nothing */
    compat_frame *finished_under; /* the frame whose generator has just finished, */
    uint32_t finished_at;         /* `entered` then; see tracer/compat/mend.c */
    Py_tracefunc trace;           /* the program's trace function behind ours; or NULL */
    /* the shim */
    union {
        struct stack_state own;
        struct {
            STACK_STATE
        };
    };
    /* owned: the callback that the program set for the thread, and its front end. A stack that runs
     * none of our code uses them */
    PyObject *given;
    const struct front *given_front;
    /* borrowed: the capsule in its thread state, or NULL (tracer/evaluator/api.c) */
    PyObject *shim;
    unsigned apart; /* waiting stacks with a callback of their own */
    bool active;    /* counted among the threads with a callback */
    /* owned: the callable that the other front end's callback has replaced; or NULL */
    PyObject *aside;
    const struct front *aside_front; /* whose that is */
    int64_t region;                  /* torch's region of this thread, -1 = the common one */
    int observed;                    /* enum frame_action: torch's own callback; SKIP = none */
    /* owned: its open compiles, latest first; tracer/evaluator/decision.c */
    struct asking *asking;
    /* C stack */
    char *stack_low;            /* below this address the stack runs short */
    char *spare;                /* an unused stack segment (tracer/stack.c), or NULL */
    struct tracer *next_tracer; /* list of all threads; under tracer_lock() */
};

/* The whole process. */
struct tracer_process {
    const struct session_file *session; /* shared, read only; NULL: not started */
    struct process_file *file;          /* shared; NULL: could not be made */
    /* shared; the file that contains `file`, or `file` itself; without `file` the parent's */
    struct process_file *root;
    char session_directory[256];
    char spill_directory[256];  /* for rings when that is full; "" = none */
    char *inject_directory;     /* directory of sitecustomize.py: inject.h; owned */
    char file_name[64];         /* within its directory */
    const char *file_directory; /* session_directory or spill_directory */
    /* the evaluator that we found in `interpreter` */
    _PyFrameEvalFunction evaluate;
    /* our hook, while it is in the slot or below another evaluator there; or NULL */
    _PyFrameEvalFunction hook;
    unsigned long active_threads; /* threads whose callback is not None */
    bool recording;               /* frames go to a ring */
    bool detour;                  /* frames do not go to a ring, or some thread has a callback */
    bool slot_watched;            /* each event calls slot_reached() */
    bool decided_only;            /* record only frames that a compiler decides */
    /* record all frames, at any depth, by the cycle counter: the fast path */
    bool every_frame;
    /* torch_attach() was called: no need to wait for torch's import */
    bool torch_seen;
    uint32_t max_depth;       /* of recorded frames; 0: no limit */
    enum session_clock clock; /* what is read */
    /* SESSION_MONOTONIC: nanoseconds ahead of the recorder's clock, in a time namespace */
    int64_t clock_ahead_ns;
    /* shared; the time that SESSION_COARSE reads; NULL: another clock */
    const _Atomic uint64_t *now;
    Py_ssize_t extra;                       /* code-extra slot, the same in all interpreters */
    uint32_t codes;                         /* code ids given */
    uint32_t threads;                       /* FACT_THREAD ids given */
    uint32_t entries, compiles, signatures; /* FACT_ENTRY, FACT_COMPILE, FACT_SIGNATURE ids given */
    char standard_library[512];      /* prefix of the standard library's files, "" = unknown */
    PyInterpreterState *interpreter; /* the main one; NULL: not seen yet */
    bool interpreters;               /* there are others, or were */
    uint64_t *left_out;              /* by enum left_out; in `file`, or unread */
};

/* Not exported. Declared here too, so that other files need not load the address from the GOT. */
#define HIDDEN __attribute__((visibility("hidden")))
extern struct tracer_process tracer_process HIDDEN;
extern __thread struct tracer *tracer_thread __attribute__((tls_model("initial-exec")));

/* tracer/place.c */
enum tracer_place {
    PLACE_HOME,  /* the main interpreter of the first initialisation: recording and the shim */
    PLACE_AGAIN, /* ... initialised again: recording only */
    PLACE_SUB,   /* a sub-interpreter: recording only */
    PLACE_NONE,  /* one in which our code-extra index was taken */
};
/* The place of the running interpreter. The first call in an interpreter registers it. */
enum tracer_place tracer_place(void);
/* tracer/module.c */
/* The session that is open records the interpreter that runs as well, from here on. */
void tracer_join_interpreter(void);

/* tracer_shim.c */
/* Put the hook that recording and the shim need now into the main interpreter's slot. In other
 * interpreters: does nothing. */
void tracer_rehook(void);
void tracer_record(bool on);
/* Put the hook into, or out of, the slot of the sub-interpreter that runs. */
void tracer_hook_sub(bool on);

/* tracer/slot.c: has another evaluator replaced our hook? */
void slot_begin(void); /* it was put there, or is below an evaluator that calls it */
/* Put EVALUATOR into the main interpreter's slot: a change of ours, which slot.c knows of. */
void slot_put(_PyFrameEvalFunction evaluator);
/* What has changed the slot until now costs no frames: CPython's trampolines did it, or nothing was
 * recorded meanwhile. */
void slot_excuse(void);
/* Compare the slot with our hook. Runs no Python code. */
void slot_glance(void);
/* Compare, and if another evaluator has been there since the last look, or this is the LAST look,
 * find out whether it calls our hook. That may run any code. */
void slot_look(bool last);
/* The last look: the interpreter ends, or the recording. */
void slot_end(void);
/* A frame has reached our hook while slot_watched. */
void slot_reached(void);
/* In a forked child, which has a file of its own. */
void slot_forked(void);
bool slot_is_probe(const PyCodeObject *code);

/* tracer/session.c */
/* NULL, or why this process is not recorded (static) */
const char *tracer_open_session(const char *directory);
void tracer_close_session(void); /* of dyntrace.record(): another may follow */
void session_forked(void);       /* hooks.h: forked */

/* tracer/state.c */
/* Guards state shared by interpreters. While it is held, call nothing that may run Python code or
 * wait for a GIL. */
void tracer_lock(void);
void tracer_unlock(void);
/* In the parent, before a fork() and after it; in the child. */
void fork_begins(void);
void fork_ends(void);
void fork_child(void);
/* Handlers of fork() that were registered before ours run before it in the child, and may be Python
 * code: the first thing that comes here does what ours would do. */
void fork_check(void);
/* Is a fork() under way? Then the next event may be the child's. */
bool fork_is_near(void);

/* tracer/ring.c and file.c. All are slow paths; they keep the pending exception. */
/* The interpreter is initialised again: what threads kept of the shim went with the one before. */
void tracer_forget_callbacks(void);
/* The next event of each thread goes through tracer_room(). */
void rings_go_slow(void);
/* Make this thread's tracer; FRAME is its first, or NULL. NULL: no memory. */
struct tracer *tracer_attach(compat_frame *frame);
static inline struct tracer *tracer_here(void)
{
    return tracer_thread ? tracer_thread : tracer_attach(NULL);
}
/* Make room for an ENTER or EXIT of clock NOW. Returns its clock, later than NOW if it had to wait;
 * 0: write nothing. A long wait releases the GIL: values read before are stale. */
uint64_t tracer_room(struct tracer *t, uint64_t now);
/* Likewise for a record about the innermost open frame. The GIL stays held. */
bool tracer_room_within(struct tracer *t);
/* record_enter() where that has to make room first. When there is none the frame may be open all
 * the same: recording may go on while it runs. */
uint64_t tracer_enter(struct tracer *t, struct open_frame *open, uint32_t code, enum ring_tag tag,
                      uint64_t now);
/* A fact for the collector: tracer_fact(GUARD, .entry = 3, ...), see facts.h. */
#define tracer_fact(NAME, ...) tracer_put_fact(FACT_##NAME, &(struct fact_##NAME){__VA_ARGS__})
void tracer_put_fact(enum fact_kind kind, const void *fact);
/* A cache entry died, in a session or between two. The next session does not list it. */
void facts_entry_died(uint32_t entry);
/* Record that something is missing from here on: CAUSE. */
void tracer_loss(const char *cause);

/* Count one more event that is left out, of kind WHAT. The GIL guards the count if there is only
 * one. */
extern uint64_t tracer_left_uncounted[LEFT_KINDS] HIDDEN;
static inline void tracer_left_out(enum left_out what)
{
    uint64_t *count = &tracer_process.left_out[what];

    if (unlikely(tracer_process.interpreters))
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    else
        ++*count;
}

/* tracer/code.c: the mark in a code object's extra slot (or in its code_state,
 * tracer/evaluator/cache.h), 0 = not seen yet. */
enum {
    CODE_SEEN = 1,
    CODE_SKIP = 2,     /* its frames are not recorded: code of dyntrace, or one of: */
    CODE_LEFT = 4,     /* --frames user leaves out its frames, not its decisions */
    CODE_EXCLUDED = 8, /* --include or --exclude leaves out frames and decisions */
    CODE_NAMED = 16,   /* CODE_LEFT, with a decision: it has an id */
    CODE_INIT = 32,    /* it is an __init__ */
    CODE_SHIFT = 6
};
/* Has the trace an id for the code with MARK? */
static inline bool tracer_has_id(uintptr_t mark)
{
    return mark & CODE_SEEN && (mark & CODE_NAMED || !(mark & CODE_SKIP));
}
/* Does SLOT lead to a code_state? */
static inline bool tracer_is_state(uintptr_t slot)
{
    return slot && !(slot & CODE_SEEN);
}
/* The mark that SLOT is or, being a code_state, begins with. */
static inline uintptr_t tracer_mark_in(uintptr_t slot)
{
    return tracer_is_state(slot) ? *(const uintptr_t *)slot : slot;
}
uintptr_t tracer_mark_code(PyCodeObject *code);
/* Something is decided about CODE: it gets an id even if it is CODE_LEFT. Its mark. */
uintptr_t tracer_name_code(PyCodeObject *code);
/* A call of CODE, which is CODE_SKIP, is decided. The mark by which it is recorded: without
 * CODE_SKIP unless all of CODE is left out, and then one decision more is. */
uintptr_t tracer_mark_decided(PyCodeObject *code);
/* Would frames of CODE be recorded? */
bool tracer_is_wanted(PyCodeObject *code);
/* Neither of the standard library nor of an installed package, nor ours? */
bool tracer_is_users(PyCodeObject *code);

/* tracer/values.c */
/* TEXT as UTF-8, cut between two characters where it is longer than MOST bytes. Lone surrogates,
 * which UTF-8 cannot hold, become \udcXX. Borrowed from TEXT or from *KEEP, which the caller
 * releases. */
const char *values_utf8(PyObject *text, size_t most, size_t *bytes, PyObject **keep);
/* The name of a function as its def has it, else the type of OBJECT: a new string. */
PyObject *values_name(PyObject *object);
/* What of the program's values may be recorded: python/dyntrace/_guard_words.py. */
static inline enum session_values values_kept(void)
{
    return tracer_process.session ? (enum session_values)tracer_process.session->values
                                  : SESSION_VALUES_ALL;
}

/* tracer/compat/init.c (COMPAT_INIT_BYPASSES_HOOK) */
/* Make calls of all types of the running interpreter reach the hook, including types created later.
 * Without SHIM, a type whose __init__ is not recorded is given back to CPython once the hook has
 * seen that __init__. */
void tracer_fix_all_types(bool shim);
/* The recording has ended: undo that, but for the shim. */
void tracer_unfix_all_types(void);
/* The hook has met a call of an __init__ of SELF, which is recorded (WANTED) or not. */
void tracer_fix_init(PyObject *self, bool wanted);
/* tracer/compat/mend.c, each only where a CPython needs it */
/* CODE's mark, which is MARK if it has none yet; 0: none, and none given (COMPAT_SHARES_CODE). */
uintptr_t tracer_shared_mark(PyCodeObject *code, uintptr_t mark);
/* A generator's last frame ended while a trace function is set (COMPAT_SEND_RAISES_UNDER_HOOK). */
void tracer_generator_finished(struct tracer *t, PyThreadState *ts);

/* tracer/greenlet.c */
/* A stack's identity: its lowest chunk. */
const void *tracer_stack_bottom(PyThreadState *ts);
/* The memory chunk of the frames' data has changed. FRAME is about to begin, or NULL. */
void tracer_switched(struct tracer *t, PyThreadState *ts, compat_frame *frame);
/* Another stack of T, with the lowest chunk BOTTOM; NULL: not known yet. NULL: no memory. */
struct tracer_stack *tracer_stack_new(struct tracer *t, const void *bottom);
void tracer_stacks_release(struct tracer *t);
/* The interpreter of T's stacks is gone, and all that their states hold. */
void tracer_stacks_forget(struct tracer *t);
/* Call before each event. Afterwards T->open belongs to the running stack. */
static inline __attribute__((always_inline)) void tracer_follow(struct tracer *t, PyThreadState *ts,
                                                                compat_frame *frame)
{
    if (unlikely(compat_chunk(ts) != t->chunk))
        tracer_switched(t, ts, frame);
}

/* tracer/stack.c */
PyObject *tracer_evaluate_on_new_stack(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                       int throwflag, _PyFrameEvalFunction evaluate);
/* Behind that: the stack that runs short at LOW, as t->stack_low was, runs again. */
void tracer_back_on_stack(struct tracer *t, char *low);
char *tracer_stack_low(bool most);
void tracer_stack_release(struct tracer *t);

/* tracer/quiet.c */
/* While these enclose it, code of ours runs unseen: not recorded, not traced, without garbage
 * collection. */
struct torch_quiet {
    struct tracer_exception pending;
    bool collects;
};
void torch_quiet_begin(struct torch_quiet *q);
void torch_quiet_end(struct torch_quiet *q);

/* tracer/builtins.c */
void tracer_perf_start(void);
void tracer_perf_forked(void); /* in the child */
/* Make programs started by this one load the sitecustomize.py in directory INJECT. */
void tracer_follow_children(const char *inject);

/* Attributes by name. PyObject_GetAttrString() makes a new string each time, and CPython's cache of
 * type attributes (4,096 places, chosen by the string's address) would keep it where an attribute
 * of the program was. */
static inline PyObject *tracer_attribute(PyObject *object, const char *name)
{
    OWNED PyObject *word = PyUnicode_InternFromString(name);

    return word ? PyObject_GetAttr(object, word) : NULL;
}
/* OBJECT.NAME(A, B, C), with the arguments before the first NULL. */
static inline PyObject *tracer_call(PyObject *object, const char *name, PyObject *a, PyObject *b,
                                    PyObject *c)
{
    OWNED PyObject *word = PyUnicode_InternFromString(name);

    return word ? PyObject_CallMethodObjArgs(object, word, a, b, c, NULL) : NULL;
}

static inline uint64_t tracer_now_by(const enum session_clock clock)
{
    /* a frame may outlive the session that it began in */
    if (clock == SESSION_COARSE && likely(tracer_process.now))
        return atomic_load_explicit(tracer_process.now, memory_order_relaxed);
    return clock == SESSION_MONOTONIC
               ? clock_monotonic_ns() - (uint64_t)tracer_process.clock_ahead_ns
               : clock_counter();
}
static inline uint64_t tracer_now(void)
{
    return tracer_now_by(tracer_process.clock);
}

static inline void tracer_put(struct tracer *t, uint64_t word)
{
    /* a word might be written over t->head, for all the compiler knows */
    const uint64_t head = t->head;

    t->words[head & t->mask] = word;
    t->head = head + 1;
    /* A: publishes the word above; matches the collector's B. */
    atomic_store_explicit(&t->ring->head, head + 1, memory_order_release);
}

/* A control word and the COUNT WORDS that belong to it: published together. */
static inline void tracer_put_control(struct tracer *t, enum ring_control what, uint64_t payload,
                                      uint32_t count, const uint64_t *words)
{
    t->words[t->head++ & t->mask] = RING_CONTROL_WORD(what, count + 1, payload);
    while (count-- > 1)
        t->words[t->head++ & t->mask] = *words++;
    tracer_put(t, *words);
}

#endif
