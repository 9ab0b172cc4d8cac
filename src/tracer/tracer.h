/* tracer/tracer.h -- what the files of the extension share.
 *
 * Runs in: the traced process. A thread's own struct tracer is touched by that thread only. The
 * shim's state belongs to one interpreter, the home (tracer/place.c), whose GIL guards it. State
 * shared by all interpreters, which may have their own GILs, is guarded by tracer_lock(): files,
 * rings, ids of code and threads.
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
 *   attach.c           `dyntrace attach`: joins and leaves at a signal; inherit.c: frames that ran
 *                      already
 *   builtins.c         children, and the environment that makes them trace themselves; perf's
 *                      trampolines
 *   evaluator/         the shim: which code runs for a call
 *   guards/            the checks of guards
 *   torch/             torch's front end
 *   resume/            splits a function in two, for compilers
 *   compat/            differences between CPython versions, and repairs
 *
 * The traced program comes first: nothing here raises, prints or exits. */
#ifndef DYNTRACE_TRACER_H
#define DYNTRACE_TRACER_H

#include "tracer/references.h"

#include "clock.h"
#include "ring.h"

/* Place functions that every call runs next to each other in memory, so that they share instruction
 * cache lines. */
#define HOT __attribute__((hot))
/* Compile without a stack protector, like the files that the Makefile lists in HOT: these functions
 * have no buffers. */
#if __has_attribute(no_stack_protector)
    #define UNGUARDED __attribute__((no_stack_protector))
#else
    #define UNGUARDED
#endif

/* A recorded frame that is running. Lives on the C stack of its evaluator call. */
struct open_frame {
    struct open_frame *outer; /* the recorded frame that called this one, or NULL */
    uint32_t code;            /* code id, with the OPEN_ bits below */
    uint32_t ordinal;         /* number of the frame's ENTER among those of its ring */
    /* how many recorded frames are around this one; kept only with --max-depth */
    uint32_t depth;
};

#define OPEN_LOST (UINT32_C(1) << 31) /* the frame's ENTER is not in the ring */
/* The frame was running when `dyntrace attach` began, so it is no struct on a C stack, and its end
 * is not seen (tracer/inherit.c). */
#define OPEN_FOUND (UINT32_C(1) << 30)
#define OPEN_BASE (UINT32_C(1) << 29) /* `outer` has OPEN_FOUND */
#define OPEN_BITS (OPEN_LOST | OPEN_FOUND | OPEN_BASE)

/* The part of a thread's state that belongs to the running stack of frames: it points into this
 * stack, or is valid only while the code on this stack runs. While another stack runs, the values
 * are kept in struct tracer_stack. docs/internals.md lists the members. */
#define STACK_STATE                                                                                \
    PyObject *callback;        /* owned: False or a callable; NULL stands for None */              \
    const struct front *front; /* the callback's front end; NULL before the first callback */      \
    bool masked; /* guards or a callback are running, and `callback` is None meanwhile */          \
    /* the frame that torch's own evaluator is deciding; tracer/torch/observe.c */                 \
    struct pending *pending;                                                                       \
    struct pending *observed_at; /* the frame in whose compile `observed` was set; or NULL */      \
    unsigned quiet;              /* > 0: dyntrace's own Python code runs, which is not recorded */ \
    PyCodeObject *replacement;   /* borrowed: code that is about to run in place of a frame */     \
    /* borrowed: the callback's code for `replacement`; see call_flat() */                         \
    PyCodeObject *replacement_for;                                                                 \
    compat_frame *replaced;    /* the frame whose arguments the replacement takes; or NULL */      \
    struct capture *capturing; /* the call being watched: evaluator/watcher.h; or NULL */          \
    /* the result of a watched call, which its new code returns at its first run; or NULL */       \
    struct watched_rest *replay;
struct stack_state {
    STACK_STATE
};

/* A stack of frames. Each thread has one, and one more for each greenlet. */
struct tracer_stack {
    const void *bottom; /* the stack's lowest chunk (compat_chunk), or NULL if it has none yet */
    /* the innermost recorded frame, kept while another stack runs; greenlet may then move the
     * frames' C stack */
    struct open_frame *open;
    char *stack_low;        /* struct tracer.stack_low, kept while another stack runs */
    uint32_t thread;        /* id of the stack's FACT_THREAD in the ring below */
    uint32_t rings;         /* the ring in which `thread` was written, by struct tracer.rings */
    bool apart;             /* the callback in `own` differs from the thread's `given` */
    struct stack_state own; /* the stack's state, kept while another stack runs */
};

enum { TRACER_NO_CALLBACK = 1 }; /* ACTION_SKIP of tracer/evaluator/cache.h */

/* A compile that a thread's callback is running. Allocated on the heap, because greenlet may move
 * the C stack meanwhile. */
struct asking {
    struct asking *around; /* owned: the compile that began before this one and has not ended */
    /* bottom of the stack of frames that the compile runs on (tracer_stack_bottom) */
    const void *stack;
    PyCodeObject *code; /* owned */
    uint32_t compile;   /* compile id + 1; 0 if the compile is not recorded */
    bool torch;         /* torch's compiler runs */
    bool ended;         /* the compile has ended while a later one still runs on another stack */
};

/* What torch's Python code has set around the calls that run now. */
struct call_rules {
    /* how many compiled frames have run since torch began to count; -1 if torch does not count */
    long fullgraph_frames;
    /* a compile below a fullgraph frame is an error; if false, it is skipped */
    bool fullgraph_fails;
    /* torch's stance of that name: check only guards that tell entries apart; a miss is an error */
    bool skip_guards_unsafe;
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
    /* The ring, as this producer sees it: */
    uint64_t *words;   /* shared; NULL until the first event after a fork */
    uint64_t mask;     /* words in the ring - 1 */
    uint64_t head;     /* next word to write */
    uint64_t limit;    /* words below this count may be written without rereading the tail */
    uint64_t until;    /* past this clock an epoch word is written first */
    struct ring *ring; /* shared */
    /* frames */
    struct open_frame *open; /* innermost recorded frame; NULL if there is none */
    uint32_t entered;        /* number of ENTERs so far, which is the next frame's ordinal */
    /* compat_chunk() at the last event; when it changes, the stack may have changed */
    const void *chunk;
    /* here: the running stack; written: the stack that the ring's last words are about */
    struct tracer_stack *here, *written;
    PyThreadState *switches; /* borrowed, compared only: the thread state that owns the stacks */
    void *stacks;            /* owned: a tsearch() tree of this thread's struct tracer_stack */
    uint32_t rings;          /* how many rings the thread has used so far */
    bool greenlets;          /* the thread has had more than one stack */
    /* the thread has no ring, or nobody reads its ring: count losses, and write nothing */
    bool gone;
    bool folding; /* the last CONTROL_PHASE was not PHASE_NONE */
    /* the frame whose generator has just finished; see tracer/compat/mend.c */
    compat_frame *finished_under;
    uint32_t finished_at; /* the value of `entered` when that generator finished */
    Py_tracefunc trace;   /* the program's trace function behind ours; or NULL */
    /* the shim */
    union {
        struct stack_state own;
        struct {
            STACK_STATE
        };
    };
    /* owned: the callback that the program set for the thread, and its front end. A stack has this
     * callback unless code of ours is running on it. */
    PyObject *given;
    const struct front *given_front;
    /* borrowed: the capsule in the thread state's dict, or NULL (tracer/evaluator/api.c) */
    PyObject *shim;
    unsigned apart; /* number of this thread's other greenlets that have a callback of their own */
    bool active;    /* counted among the threads with a callback */
    /* owned: a callable that the callback of the other front end has replaced; or NULL */
    PyObject *aside;
    const struct front *aside_front; /* the front end of `aside` */
    int64_t region;                  /* torch's region of this thread; -1 is the common region */
    struct call_rules rules;         /* torch 2.15 and later: what holds on this thread */
    /* enum frame_action: the callback of torch's own evaluator; ACTION_SKIP if there is none */
    int observed;
    /* owned: the thread's open compiles, latest first; tracer/evaluator/decision.c */
    struct asking *asking;
    /* C stack */
    char *stack_low;            /* below this address little of the C stack is left */
    char *spare;                /* an unused stack segment (tracer/stack.c), or NULL */
    struct tracer *next_tracer; /* list of all threads; under tracer_lock() */
    /* which thread it is, by the kernel and by CPython */
    uint64_t os_tid, thread_state;
    bool awaited;            /* made for a thread that has had no event yet */
    struct inherited *found; /* owned: frames with OPEN_FOUND, those that have returned, too */
};

/* The whole process. */
struct tracer_process {
    const struct session_file *session; /* shared, read only; NULL if no session was joined */
    struct process_file *file;          /* shared; NULL if it could not be made */
    /* shared; the file that contains `file`, or `file` itself; in a child without a file, the
     * parent's */
    struct process_file *root;
    char session_directory[256];
    char spill_directory[256];  /* for rings when session_directory is full; "" if there is none */
    char *inject_directory;     /* directory of sitecustomize.py: inject.h; owned */
    char file_name[64];         /* name within file_directory */
    const char *file_directory; /* session_directory or spill_directory */
    /* the evaluator that was in the slot of `interpreter` before our hook */
    _PyFrameEvalFunction evaluate;
    /* our hook, while it is in the slot or below another evaluator there; or NULL */
    _PyFrameEvalFunction hook;
    unsigned long active_threads; /* threads whose callback is not None */
    bool recording;               /* frames go to a ring */
    bool
        detour; /* the hook must not just record: recording is off, or some thread has a callback */
    bool slot_watched; /* each event calls slot_reached() */
    bool decided_only; /* record only frames that a compiler decides */
    /* record all frames, at any depth, by the cycle counter: the fast path */
    bool every_frame;
    /* torch_attach() was called: no need to wait for torch's import */
    bool torch_seen;
    uint32_t max_depth;       /* deepest recorded frame; 0 if there is no limit */
    enum session_clock clock; /* the clock that events are stamped with */
    /* SESSION_MONOTONIC: nanoseconds ahead of the recorder's clock, in a time namespace */
    int64_t clock_ahead_ns;
    /* shared; the time that SESSION_COARSE reads; NULL with another clock */
    const _Atomic uint64_t *now;
    Py_ssize_t extra; /* our code-extra index, the same in all interpreters */
    uint32_t codes;   /* number of code ids given so far */
    uint32_t threads; /* number of FACT_THREAD ids given so far */
    /* number of FACT_ENTRY, FACT_COMPILE and FACT_SIGNATURE ids given so far */
    uint32_t entries, compiles, signatures;
    /* number of span ids given so far, and how many of them a parent process gave */
    uint32_t spans, spans_inherited;
    uint32_t sessions;  /* number of sessions joined so far */
    uint64_t selection; /* a hash of what the first session that marked code selected */
    bool had_arguments; /* a session had --args, so code objects may have CODE_ARGS */
    /* code objects may have an earlier session's CODE_ARGS. There is a max_depth then, so that the
     * fastest ways to record a frame need not look here */
    bool rechecks;
    char standard_library[512];      /* the directory of the standard library; "" if not known */
    PyInterpreterState *interpreter; /* the main interpreter; NULL if not seen yet */
    bool interpreters;               /* there are sub-interpreters, or were */
    /* the session was joined while the program ran, by `dyntrace attach`: frames that are running
     * are written as inherited */
    bool inherits;
    /* `run --standby`: programs started outside of a session are on standby, too; inject.h.
     * Borrowed, or NULL */
    const char *standby;
    /* counts by enum left_out: in `file`, or in tracer_left_uncounted, which nobody reads */
    uint64_t *left_out;
};

/* Not exported. Declared hidden here, too, so that other files need not load the address from the
 * GOT. */
#define HIDDEN __attribute__((visibility("hidden")))
extern struct tracer_process tracer_process HIDDEN;
extern __thread struct tracer *tracer_thread __attribute__((tls_model("initial-exec")));

/* tracer/place.c */
enum tracer_place {
    PLACE_HOME,  /* the main interpreter after the first initialisation: recording and the shim */
    PLACE_AGAIN, /* the main interpreter, initialised again: recording only */
    PLACE_SUB,   /* a sub-interpreter: recording only */
    PLACE_NONE,  /* another extension has our code-extra index in this interpreter: nothing */
};
/* Return the place of the running interpreter. The first call in an interpreter registers it. */
enum tracer_place tracer_place(void);
/* tracer/module.c */
/* Record the running interpreter, too, in the session that is open. */
void tracer_join_interpreter(void);

/* tracer_shim.c */
/* Put the hook that recording and the shim need now into the main interpreter's slot. Does nothing
 * in other interpreters. */
void tracer_rehook(void);
void tracer_record(bool on);
/* Put the hook into the slot of the running sub-interpreter, or take it out. */
void tracer_hook_sub(bool on);

/* tracer/slot.c: has another evaluator replaced our hook in the interpreter's slot? */
/* our hook was put into the slot, or lies below an evaluator that calls it */
void slot_begin(void);
/* Put EVALUATOR into the main interpreter's slot. slot.c then knows that the change is ours. */
void slot_set_evaluator(_PyFrameEvalFunction evaluator);
/* Accept all changes of the slot so far without a loss row: CPython's trampolines made them, or
 * nothing was recorded meanwhile. */
void slot_excuse(void);
/* Compare the slot with our hook, and note a foreign evaluator. Runs no Python code. */
void slot_compare(void);
/* Compare the slot with our hook. If another evaluator has been there since the last look, or if
 * this is the LAST look, find out whether it calls our hook. That may run any code. */
void slot_look(bool last);
/* Look for the last time: the interpreter or the recording ends. */
void slot_end(void);
/* Note that a frame has reached our hook while slot_watched. */
void slot_reached(void);
/* Called in a forked child that has a file of its own. */
void slot_forked(void);
bool slot_is_probe(const PyCodeObject *code);

/* tracer/session.c */
/* Join the session in DIRECTORY. Returns NULL, or a static text: the reason why this process is not
 * recorded. */
const char *tracer_open_session(const char *directory);
void tracer_close_session(void); /* leave the session of dyntrace.record(); another may follow */
void session_forked(void);       /* the function for the member `forked` of hooks.h */

/* tracer/state.c */
/* Guards state shared by interpreters. While it is held, call nothing that may run Python code or
 * wait for a GIL. */
void tracer_lock(void);
void tracer_unlock(void);
/* Called in the parent, before a fork() and after it; and in the child. */
void fork_begins(void);
void fork_ends(void);
void fork_child(void);
/* Do in a forked child what our fork handler would do. Handlers that were registered before ours
 * run before it in the child, and may run Python code: so the first event in the child comes
 * here. */
void fork_check(void);
/* Is a fork() under way? Then the next event may be in the child. */
bool fork_is_near(void);

/* tracer/ring.c and file.c. All are slow paths; they keep the pending exception. */
/* Forget what threads keep of the shim. The main interpreter is initialised again, so the objects
 * of the former one are gone. */
void tracer_forget_callbacks(void);
/* Make the next event of each thread go through tracer_room(). */
void rings_go_slow(void);
/* Make this thread's tracer. FRAME is the thread's first frame, or NULL. Returns NULL without
 * memory. */
struct tracer *tracer_attach(compat_frame *frame);
static inline struct tracer *tracer_here(void)
{
    return tracer_thread ? tracer_thread : tracer_attach(NULL);
}
/* Make room for an ENTER or EXIT of clock NOW. Returns its clock, which is later than NOW after a
 * wait, or 0 if nothing must be written. A long wait releases the GIL: values read before are
 * stale. */
uint64_t tracer_room(struct tracer *t, uint64_t now);
/* Make room for a record about the innermost open frame. The GIL stays held. Returns false if
 * nothing must be written. */
bool tracer_room_within(struct tracer *t);
/* Do what record_enter() does, where room has to be made first. Without room OPEN may still become
 * an open frame, because recording may go on while the frame runs. Returns 0 if OPEN is not
 * open. */
uint64_t tracer_enter(struct tracer *t, struct open_frame *open, uint32_t code, enum ring_tag tag,
                      uint64_t now);
/* Write a fact for the collector: tracer_fact(GUARD, .entry = 3, ...), see facts.h. */
#define tracer_fact(NAME, ...) tracer_put_fact(FACT_##NAME, &(struct fact_##NAME){__VA_ARGS__})
void tracer_put_fact(enum fact_kind kind, const void *fact);
/* Note that a cache entry died, in a session or between two sessions. The next session does not
 * list the entry. */
void facts_entry_died(uint32_t entry);
/* Write a loss row: something is missing from here on, because of CAUSE. */
void tracer_loss(const char *cause);

/* Count one more event of kind WHAT that is left out. With a single interpreter the GIL guards the
 * count. */
extern uint64_t tracer_left_uncounted[LEFT_KINDS] HIDDEN;
static inline void tracer_left_out(enum left_out what)
{
    uint64_t *count = &tracer_process.left_out[what];

    if (unlikely(tracer_process.interpreters))
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    else
        ++*count;
}

/* The mark of a code object, in its extra slot or in its code_state (tracer/evaluator/cache.h). 0
 * if not seen yet. Made by tracer/code.c. */
enum {
    CODE_SEEN = 1,
    /* frames of this code are not recorded; without one of the next two bits, because it is
     * dyntrace's */
    CODE_SKIP = 2,
    /* --frames user leaves out frames of this code, but records decisions about it */
    CODE_LEFT = 4,
    CODE_EXCLUDED = 8, /* --include or --exclude leaves out frames and decisions of this code */
    CODE_NAMED = 16,   /* with CODE_LEFT: a decision was recorded, so the code has an id */
    CODE_INIT = 32,    /* the code is an __init__ */
    CODE_ARGS = 64,    /* --args: arguments and return values of this code's frames are recorded */
    CODE_RANGE = 128,  /* begins or ends a range of torch's profiler: tracer/torch/ranges.c */
    CODE_NOTED = CODE_ARGS | CODE_RANGE,
    CODE_STAMP_SHIFT = 8, /* 16 bits: tracer_process.sessions when CODE_ARGS was checked again */
    CODE_SHIFT = 24
};
/* Does the trace have an id for the code with MARK? */
static inline bool tracer_has_id(uintptr_t mark)
{
    return mark & CODE_SEEN && (mark & CODE_NAMED || !(mark & CODE_SKIP));
}
/* Is SLOT, the content of an extra slot, a pointer to a code_state? */
static inline bool tracer_is_state(uintptr_t slot)
{
    return slot && !(slot & CODE_SEEN);
}
/* Return the mark in SLOT, which is the mark itself, or a pointer to a code_state that begins with
 * the mark. */
static inline uintptr_t tracer_mark_in(uintptr_t slot)
{
    return tracer_is_state(slot) ? *(const uintptr_t *)slot : slot;
}
uintptr_t tracer_mark_code(PyCodeObject *code);
/* Return CODE's mark, now MARK, by the patterns of this session's --args. Only for rechecks. */
uintptr_t tracer_recheck(PyCodeObject *code, uintptr_t mark);
/* Return CODE's mark, and give the code an id even if it is CODE_LEFT: a decision about it is
 * recorded. */
uintptr_t tracer_name_code(PyCodeObject *code);
/* Return the mark with which to record a decided call of CODE, which is CODE_SKIP. The mark has no
 * CODE_SKIP, except if all of CODE is left out: the caller then counts one more decision as left
 * out. */
uintptr_t tracer_mark_decided(PyCodeObject *code);
/* Would frames of CODE be recorded? */
bool tracer_is_wanted(PyCodeObject *code);
/* Is CODE the program's own: not of the standard library, of an installed package, or ours? */
bool tracer_is_users(PyCodeObject *code);

/* tracer/values.c */
/* Return TEXT as UTF-8, cut between two characters if it is longer than MOST bytes. Lone
 * surrogates, which UTF-8 cannot hold, become \udcXX. The result is borrowed from TEXT or from
 * *KEEP, which the caller releases. */
const char *values_utf8(PyObject *text, size_t most, size_t *bytes, PyObject **keep);
/* Return a new string: the qualified name of a function, or the name of OBJECT's type. */
PyObject *values_name(PyObject *object);
/* Write format and shape of an array, " f[2, 3]", to TEXT of ROOM bytes. Writes "" for other
 * values, and for those whose buffer a method of the program would make. */
void values_shape(PyObject *value, char *text, size_t room);
/* Which of the program's values may be recorded; python/dyntrace/_guard_words.py applies this. */
static inline enum session_values values_kept(void)
{
    return tracer_process.session ? (enum session_values)tracer_process.session->values
                                  : SESSION_VALUES_ALL;
}

/* tracer/compat/init.c, for CPythons with COMPAT_INIT_BYPASSES_HOOK */
/* Make calls of all types of the running interpreter reach the hook, including types created later.
 * Without SHIM, a type whose __init__ is not recorded gets CPython's own calls back once the hook
 * has seen that __init__. */
void tracer_fix_all_types(bool shim);
/* Undo tracer_fix_all_types(false), because the recording has ended. What the shim needs stays. */
void tracer_unfix_all_types(void);
/* Note that the hook has met a call of the __init__ of SELF. WANTED says whether it is recorded. */
void tracer_fix_init(PyObject *self, bool wanted);
/* tracer/compat/mend.c, each function only for a CPython that needs it */
/* Return the mark of CODE, which is shared between interpreters, and set it to MARK if it has none.
 * Returns 0 if it has none and MARK is 0 (COMPAT_SHARES_CODE). */
uintptr_t tracer_shared_mark(PyCodeObject *code, uintptr_t mark);
/* Note that a generator's last frame ended while a trace function is set
 * (COMPAT_SEND_RAISES_UNDER_HOOK). */
void tracer_generator_finished(struct tracer *t, PyThreadState *ts);

/* tracer/greenlet.c */
/* Return the lowest chunk of the running stack, which identifies the stack. */
const void *tracer_stack_bottom(PyThreadState *ts);
/* Find out which stack runs, because the memory chunk of the frames' data has changed. FRAME is the
 * frame that is about to begin, or NULL. */
void tracer_switched(struct tracer *t, PyThreadState *ts, compat_frame *frame);
/* Make another stack of T. BOTTOM is its lowest chunk, or NULL if that is not known yet. Returns
 * NULL without memory. */
struct tracer_stack *tracer_stack_new(struct tracer *t, const void *bottom);
void tracer_stacks_release(struct tracer *t);
/* Forget what T's stacks hold, without releasing it: their interpreter is gone. */
void tracer_stacks_forget(struct tracer *t);
/* Call before each event. Afterwards T->open belongs to the running stack. */
static inline __attribute__((always_inline)) void tracer_follow(struct tracer *t, PyThreadState *ts,
                                                                compat_frame *frame)
{
    if (unlikely(compat_chunk(ts) != t->chunk))
        tracer_switched(t, ts, frame);
}

/* Note that T's frames are those of TS, on the stack that runs now. */
void tracer_stack_claim(struct tracer *t, PyThreadState *ts);

/* tracer/inherit.c */
/* Put the frames of TS that are running and not recorded among T's open frames, each at its
 * place. */
void tracer_inherit(struct tracer *t, PyThreadState *ts);
/* Remove those inherited frames from T's open ones that have returned. Returns true if there were
 * any. */
bool tracer_inherited_returned(struct tracer *t);
void tracer_inherited_release(struct tracer *t);
static inline bool tracer_is_found(const struct open_frame *open)
{
    return open && open->code & OPEN_FOUND;
}
/* Make the rings of all threads, and write the frames that they are running. */
void rings_inherit(void);

/* tracer/stack.c */
PyObject *tracer_evaluate_on_new_stack(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                       int throwflag, _PyFrameEvalFunction evaluate);
/* Called after tracer_evaluate_on_new_stack: the old stack runs again, whose t->stack_low was
 * LOW. */
void tracer_back_on_stack(struct tracer *t, char *low);
char *tracer_stack_low(bool most);
void tracer_stack_release(struct tracer *t);

/* tracer/quiet.c */
/* Between torch_quiet_begin() and torch_quiet_end() code of ours runs unseen: not recorded, not
 * traced, without garbage collection. */
struct torch_quiet {
    struct tracer_exception pending;
    bool collects;
};
void torch_quiet_begin(struct torch_quiet *q);
void torch_quiet_end(struct torch_quiet *q);

/* tracer/builtins.c */
void tracer_perf_start(void);
void tracer_perf_forked(void); /* called in a forked child */
/* Make programs started by this one load the sitecustomize.py in directory INJECT. */
void tracer_follow_children(const char *inject);

/* Read an attribute by name. PyObject_GetAttrString() would make a new string each time, and
 * CPython's cache of type attributes (4,096 places, chosen by the string's address) would put that
 * string in the place of an attribute of the program. */
static inline PyObject *tracer_attribute(PyObject *object, const char *name)
{
    OWNED PyObject *word = PyUnicode_InternFromString(name);

    return word ? PyObject_GetAttr(object, word) : NULL;
}
/* Call OBJECT.NAME(A, B, C), with the arguments before the first NULL. */
static inline PyObject *tracer_call(PyObject *object, const char *name, PyObject *a, PyObject *b,
                                    PyObject *c)
{
    OWNED PyObject *word = PyUnicode_InternFromString(name);

    return word ? PyObject_CallMethodObjArgs(object, word, a, b, c, NULL) : NULL;
}

static inline uint64_t tracer_now_by(const enum session_clock clock)
{
    /* a frame may outlive its session */
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
    /* a copy, because the compiler must assume that storing the word changes t->head */
    const uint64_t head = t->head;

    t->words[head & t->mask] = word;
    t->head = head + 1;
    /* A: publishes the word above; matches the collector's B. */
    atomic_store_explicit(&t->ring->head, head + 1, memory_order_release);
}

/* Write a control word and its COUNT WORDS, published together. */
static inline void tracer_put_control(struct tracer *t, enum ring_control what, uint64_t payload,
                                      uint32_t count, const uint64_t *words)
{
    t->words[t->head++ & t->mask] = RING_CONTROL_WORD(what, count + 1, payload);
    while (count-- > 1)
        t->words[t->head++ & t->mask] = *words++;
    tracer_put(t, *words);
}

#endif
