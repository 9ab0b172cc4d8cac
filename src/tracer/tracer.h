/* tracer/tracer.h -- declarations that the files of the extension share.
 *
 * Runs in: the traced process. A thread's own struct tracer is touched by that thread only. The
 * shim's state belongs to one interpreter, the home (tracer/place.c), whose GIL guards it. State
 * shared by all interpreters, which may have their own GILs, is guarded by tracer_lock(): files,
 * rings, ids of code and threads. For free-threaded builds, which have no GIL, tracer/world.h has
 * the rules.
 *
 *   module.c           the module: start, pause, resume; what all parts register (hooks.h)
 *   tracer_shim.c      the PEP 523 hook: an ENTER and an EXIT word per frame (record.h)
 *   state.c            the state of process and threads, and the lock
 *   place.c            sub-interpreters, and a main interpreter that is initialised again
 *   slot.c             notices when another evaluator replaces our hook
 *   session.c joining a session, and fork(); file.c, ring.c: memory shared with the collector
 *   code.c             code objects: their ids, names, and whether to record them
 *   values.c           text of the program's values; quiet.c: hides our own Python code
 *   stack.c            deep recursion: more C stack when a thread's runs short
 *   greenlet.c         one thread, several stacks of frames
 *   attach.c           `dyntrace attach`: joins and leaves at a signal; inherit.c: frames that were
 *                      running before
 *   collect.c          starts the process that writes the trace of dyntrace.record()
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

#include "tracer/world.h"

#include "clock.h"
#include "ring.h"

/* Place these functions next to each other in memory: every call runs them, so they should share
 * lines of the instruction cache. */
#define HOT __attribute__((hot))
/* Compile this function without a stack protector, because it has no buffers. (HOT in the Makefile
 * does the same for whole files.) */
#if __has_attribute(no_stack_protector)
    #define UNGUARDED __attribute__((no_stack_protector))
#else
    #define UNGUARDED
#endif

/* A recorded frame that is open. Lies on the C stack of the call that evaluates it. */
struct open_frame {
    struct open_frame *outer; /* the innermost recorded frame around this one, or NULL */
    uint32_t code;            /* code id, and the OPEN_ bits */
    uint32_t ordinal;         /* number of the frame's ENTER among all ENTERs of its ring */
    /* with --max-depth: how many recorded frames are around this one */
    uint32_t depth;
};

#define OPEN_LOST (UINT32_C(1) << 31) /* the frame's ENTER is not in the ring */
/* The frame was running when `dyntrace attach` began: its struct lies on the heap, and our hook
 * does not see its end (tracer/inherit.c). */
#define OPEN_FOUND (UINT32_C(1) << 30)
#define OPEN_BASE (UINT32_C(1) << 29) /* `outer` has OPEN_FOUND */
#define OPEN_BITS (OPEN_LOST | OPEN_FOUND | OPEN_BASE)

/* What a thread has for each stack of frames: it points into the stack, or is valid only while code
 * on the stack runs. While another stack runs, struct tracer_stack keeps it. docs/internals.md
 * lists the members. */
#define STACK_STATE                                                                                \
    PyObject *callback;        /* owned: False or a callable; NULL stands for None */              \
    const struct front *front; /* the callback's front end; NULL before the first callback */      \
    bool masked; /* guards or a callback are running, and `callback` is None meanwhile */          \
    /* the frame that torch's own evaluator is deciding; tracer/torch/observe.c */                 \
    struct pending *pending;                                                                       \
    struct pending *observed_at; /* the frame in whose compile `observed` was set; or NULL */      \
    unsigned quiet;              /* > 0: dyntrace's own Python code runs, which is not recorded */ \
    PyCodeObject *replacement;   /* borrowed: code that is about to run in place of a frame */     \
    /* borrowed: the callback's code for `replacement`; see call_with_arguments_of_frame() */      \
    PyCodeObject *replacement_for;                                                                 \
    compat_frame *replaced;    /* the call's own frame, whose arguments go to it; or NULL */       \
    struct capture *capturing; /* the call being watched: evaluator/watcher.h; or NULL */          \
    /* the result of a watched call, which its new code returns at its first run; or NULL */       \
    struct watched_rest *replay;
struct stack_state {
    STACK_STATE
};

/* A stack of frames. A thread has one, and one more for each greenlet. */
struct tracer_stack {
    const void *bottom; /* the stack's lowest chunk (compat_chunk), or NULL if it has none yet */
    /* the innermost recorded frame of the stack while another stack runs; greenlet may then have
     * moved it */
    struct open_frame *open;
    char *stack_low; /* value of struct tracer.stack_low while another stack runs */
    uint32_t thread; /* id of the FACT_THREAD that stands for the stack */
    /* value of struct tracer.rings when `thread` was written, which tells in which ring that was */
    uint32_t rings;
    bool apart;             /* the stack's callback, in `own`, is not the thread's `given` */
    struct stack_state own; /* what belongs to the stack, while another stack runs */
};

enum { TRACER_NO_CALLBACK = 1 }; /* the same as ACTION_SKIP of tracer/evaluator/cache.h */

/* A compile that the thread's callback is running. It lies on the heap, because greenlet may move
 * the C stack meanwhile. */
struct asking {
    struct asking *around; /* owned: the compile that was running when this one began; or NULL */
    /* tracer_stack_bottom() of the stack on which the compile runs */
    const void *stack;
    PyCodeObject *code; /* owned */
    uint32_t compile;   /* 1 + the compile id; 0 if the compile is not recorded */
    bool torch;         /* the callback is torch's compiler */
    bool ended;         /* the compile has ended, but not a later one that runs on another stack */
};

/* Rules that torch's Python code sets for calls from now on. */
struct call_rules {
    /* number of compiled frames that have run since torch began to count; -1 if it does not
     * count */
    long fullgraph_frames;
    /* a compile below a fullgraph frame is an error; if false, torch does not compile there */
    bool fullgraph_fails;
    /* torch's stance skip_guard_eval_unsafe: only the guards that tell entries apart are checked,
     * and a miss is an error */
    bool skip_guards_unsafe;
};

/* One thread's state. Only its own thread touches it, under the GIL of the interpreter in which it
 * runs, or, without a GIL, another thread while the world is stopped; `next_tracer` alone is under
 * tracer_lock().
 *
 * Invariants between two events:
 *
 *   The words [head, limit) are free to write, and limit is at most the ring's tail + its size; or
 *   limit is 0, and the slow path (tracer_make_room_at_frame) decides.
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
    /* The ring, of which this thread is the producer: */
    /* the ring's words, in shared memory; NULL until the first event after a fork */
    uint64_t *words;
    uint64_t mask;     /* number of words in the ring, minus 1 */
    uint64_t head;     /* count of the next word to write */
    uint64_t limit;    /* up to this count words may be written without reading the tail again */
    uint64_t until;    /* if an event is later than this, an epoch word comes first */
    struct ring *ring; /* shared */
    /* frames */
    struct open_frame *open; /* the innermost recorded frame that is open, or NULL */
    /* number of the thread's ENTERs so far, which is the next frame's ordinal */
    uint32_t entered;
    /* compat_chunk() at the last event; if it has changed, another stack may run */
    const void *chunk;
    /* here: the running stack. written: the stack that the last words in the ring are about; NULL
     * makes the next event write a CONTROL_SWITCH */
    struct tracer_stack *here, *written;
    PyThreadState *switches; /* borrowed, only compared: the thread state whose stacks these are */
    /* owned: the thread's stacks (struct tracer_stack), in a tree of tsearch() */
    void *stacks;
    uint32_t rings; /* how many rings the thread has had so far */
    bool greenlets; /* the thread has had more than one stack */
    /* Nothing more is written, and losses are counted: the thread has no ring, or nobody reads
     * it. */
    bool gone;
    bool folding; /* a phase of torch's work runs: the last CONTROL_PHASE was not PHASE_NONE */
    /* the frame that was awaiting or iterating over the generator that finished last
     * (tracer/compat/mend.c) */
    compat_frame *finished_under;
    uint32_t finished_at; /* value of `entered` when that generator finished */
    Py_tracefunc trace;   /* the program's trace function, to which ours passes events; or NULL */
    /* the shim */
    union {
        struct stack_state own;
        struct {
            STACK_STATE
        };
    };
    /* owned: the callback that the program has set for the thread, and its front end. Each stack of
     * the thread has this callback, unless code of ours is running on it. */
    PyObject *given;
    const struct front *given_front;
    /* borrowed: the capsule that the thread state's dict has for us (tracer/evaluator/api.c); or
     * NULL */
    PyObject *shim;
    unsigned apart; /* how many other greenlets of this thread have a callback of their own */
    bool active;    /* tracer_process.active_threads counts this thread */
    /* owned: a callable that another front end's callback has replaced for a while; or NULL */
    PyObject *aside;
    const struct front *aside_front; /* the front end of `aside` */
    /* torch's region in which this thread is; -1 is the common region */
    int64_t region;
    struct call_rules rules; /* torch's rules for this thread, from torch 2.15 on */
    /* kind of the callback that torch's own evaluator has: an enum frame_action, ACTION_SKIP for
     * none */
    int observed;
    /* owned: the compiles that run in this thread, the latest first
     * (tracer/evaluator/decision.c) */
    struct asking *asking;
    /* C stack */
    char *stack_low; /* a deeper call is close to the end of the C stack */
    /* a stack segment for the next deep recursion (tracer/stack.c), or NULL */
    char *spare;
    struct tracer *next_tracer; /* next in the list of all threads; guarded by tracer_lock() */
    /* the kernel's number of the thread, and CPython's id of its state */
    uint64_t os_tid, thread_state;
    bool awaited; /* the struct was made for a thread that has had no event yet */
    /* owned: all inherited frames (OPEN_FOUND), also those that have returned */
    struct inherited *found;
};

/* What the whole process has. Unless a member's comment says otherwise, it is changed under the GIL
 * of the home interpreter, or, in a free-threaded build, while all other threads are stopped. The
 * counters that give ids are changed under tracer_lock() or atomically. */
struct tracer_process {
    /* in shared memory, read only; NULL if no session was joined */
    const struct session_file *session;
    /* header of this process's file, in shared memory; NULL if it could not be made */
    struct process_file *file;
    /* header at the start of the same file: `file` itself, or that of a parent in whose file this
     * process is nested; in a child without a file, the parent's */
    struct process_file *root;
    char session_directory[256];
    /* a second directory for rings when session_directory is full; "" if there is none */
    char spill_directory[256];
    char *inject_directory;     /* owned: directory of sitecustomize.py (inject.h) */
    char file_name[64];         /* name of the process file in file_directory */
    const char *file_directory; /* session_directory or spill_directory */
    /* the evaluator that was in the slot of `interpreter` before our hook */
    _PyFrameEvalFunction evaluate;
    /* our hook, if it is in the slot, or below an evaluator that is; or NULL */
    _PyFrameEvalFunction hook;
    unsigned long active_threads; /* how many threads have a callback other than None */
    bool recording;               /* frames are written to rings */
    bool
        /* recording is off, or some thread has a callback, so the hook must do other than just
         * record */
        detour;
    bool slot_watched; /* each event must call slot_note_arrival(); changed inside tracer_gate */
    bool decided_only; /* only frames that a compiler decides are recorded */
    /* the fast case: all frames are recorded, at any depth, and timed by the CPU's counter */
    bool every_frame;
    /* torch_load_bridge() was called, so there is no need to wait for torch's import */
    bool torch_seen;
    uint32_t max_depth;       /* frames deeper than this are not recorded; 0: no limit */
    enum session_clock clock; /* the clock by which events are timed */
    /* with SESSION_MONOTONIC, in another time namespace: by how many ns this process's clock is
     * ahead of the recorder's */
    int64_t clock_ahead_ns;
    /* with SESSION_COARSE, the time to read, in shared memory; NULL with another clock */
    const _Atomic uint64_t *now;
    /* our code-extra index (PyUnstable_Eval_RequestCodeExtraIndex), the same in all interpreters */
    Py_ssize_t extra;
    uint32_t codes;   /* how many code objects have got an id */
    uint32_t threads; /* how many ids of FACT_THREAD were given */
    /* how many ids of FACT_ENTRY, FACT_COMPILE and FACT_SIGNATURE were given */
    uint32_t entries, compiles, signatures;
    /* how many spans have got an id, and how many of these in a process that forked this one */
    uint32_t spans, spans_inherited;
    uint32_t sessions; /* how many sessions this process has joined */
    /* a hash of --include, --exclude and --frames user of the first session, by which code was
     * marked */
    uint64_t selection;
    uint32_t uncaught; /* how many facts UNCAUGHT this process has written */
    /* some session had --args, so the marks of code objects may have CODE_ARGS */
    bool had_arguments;
    /* Marks may still have CODE_ARGS from an earlier session, so the mark of each frame's code is
     * checked again. max_depth is set then, too: the fastest hooks are those without a depth limit,
     * and they do not read `rechecks`. */
    bool rechecks;
    char standard_library[512];      /* the directory of the standard library; "" if not known */
    PyInterpreterState *interpreter; /* the main interpreter; NULL if it has not loaded us yet */
    /* There are or were sub-interpreters, or this is a free-threaded build. So there is no single
     * GIL that guards what threads share. */
    bool interpreters;
    /* `dyntrace attach` has made the program join while it ran, so running frames are recorded as
     * inherited */
    bool inherits;
    /* With `run --standby`: borrowed, the directory of sitecustomize.py. Programs that are started
     * outside of a session get it, too, so that they are on standby (inject.h). Otherwise NULL. */
    const char *standby;
    /* where events that are left out are counted, by enum left_out: in `file`, or in
     * tracer_left_uncounted, which nobody reads */
    uint64_t *left_out;
};

/* Not exported from the extension. The declaration says so, too, so that other files need not load
 * the address from the GOT. */
#define HIDDEN __attribute__((visibility("hidden")))
extern struct tracer_process tracer_process HIDDEN;
extern __thread struct tracer *tracer_thread __attribute__((tls_model("initial-exec")));

/* How the running interpreter takes part in the recording (tracer/place.c). */
enum tracer_place {
    PLACE_HOME,  /* the main interpreter as it was first initialised: has recording and shim */
    PLACE_AGAIN, /* the main interpreter after it was initialised again: has recording only */
    PLACE_SUB,   /* a sub-interpreter: has recording only */
    /* nothing is recorded: another extension has our code-extra index in this interpreter, or it is
     * a sub-interpreter of a free-threaded build */
    PLACE_NONE,
};
/* Return the place of the running interpreter. The first call in an interpreter registers it. */
enum tracer_place tracer_place(void);
/* ---- sessions and other interpreters (tracer/module.c) ---- */
/* Record the running interpreter, too, in the session that was joined. */
void tracer_join_interpreter(void);

/* Entered by a thread that joins or leaves a session, or changes the hook, because only one may do
 * this at a time (tracer/world.h). With a GIL the gate does nothing. */
extern struct world_gate tracer_gate HIDDEN;

/* tracer_shim.c */
/* Put the hook into the main interpreter's slot that recording and shim need now. Does nothing in
 * another interpreter. */
void tracer_install_needed_hook(void);
void tracer_set_recording(bool on);
/* If the collector has closed the session, stop recording frames. */
void tracer_handle_recording_end(void);
/* Put the hook into the slot of the running sub-interpreter, or take it out. */
void tracer_hook_subinterpreter(bool on);

/* ---- find out whether another evaluator has replaced our hook in the slot (tracer/slot.c) ---- */
/* Without a GIL the callers of slot_begin_watching, slot_set_evaluator and slot_accept_changes are
 * inside tracer_gate. */
/* Begin to watch the slot. Our hook was just put into it, or below an evaluator that calls it. */
void slot_begin_watching(void);
/* Put EVALUATOR into the main interpreter's slot, and note that this change is ours. */
void slot_set_evaluator(_PyFrameEvalFunction evaluator);
/* Write no loss row for the changes of the slot so far: CPython's trampolines have made them, or
 * nothing was recorded meanwhile. */
void slot_accept_changes(void);
/* Compare the slot with our hook, and note it if there is another evaluator. Runs no Python
 * code. */
void slot_compare_with_hook(void);
/* Compare the slot with our hook. If another evaluator was in the slot at the last look, too, find
 * out whether it calls our hook, which may run any code. LAST: find out now, because this is the
 * last look. */
void slot_check_hook(bool last);
/* Look at the slot for the last time, because the interpreter or the recording ends. */
void slot_check_last_time(void);
/* A frame has reached our hook while slot_watched is set: note this. */
void slot_note_arrival(void);
/* In a forked child that has its own file: if our hook is lost, write the loss row again. */
void slot_report_after_fork(void);
/* Is CODE that of the frame with which slot.c tests whether our hook is called? If so, note that
 * this frame has reached the hook. */
bool slot_is_probe(const PyCodeObject *code);

/* ---- join and leave a session (tracer/session.c) ---- */
/* Join the session in DIRECTORY. Returns NULL, or a static text with the reason why this process is
 * not recorded. */
const char *tracer_open_session(const char *directory);
/* leave a session of dyntrace.record(), after which another may be joined */
void tracer_close_session(void);
void session_handle_fork_in_child(void); /* what hooks.h calls as `forked` */

/* ---- the lock between interpreters, and fork() (tracer/state.c) ---- */
/* The lock that guards what interpreters share. Under it call nothing that may run Python code or
 * wait for a GIL. */
void tracer_lock(void);
void tracer_unlock(void);
/* fork_note_begin is called before a fork(), fork_note_end_in_parent after it in the parent,
 * fork_note_child in the child. */
void fork_note_begin(void);
void fork_note_end_in_parent(void);
void fork_note_child(void);
/* If this is a forked child, and our fork handler has not run in it yet, do its work. (Handlers
 * that were registered before ours run earlier and may run Python code, so each thread's next event
 * calls this.) */
void fork_handle_if_child(void);
/* Is a fork() under way? Then the next event may already be in the child. */
bool fork_is_under_way(void);

/* ---- rings and facts (tracer/ring.c, tracer/file.c); all are slow paths, and keep a pending
 * exception ---- */
/* Set all references that threads have to the shim's objects to NULL, without releasing them: the
 * main interpreter was initialised again, so these objects are gone. */
void tracer_forget_callbacks(void);
/* Make each thread call tracer_make_room_at_frame() at its next event. Does nothing in a
 * free-threaded build, where a thread calls it after RING_EPOCH_TICKS at the latest. */
void rings_request_slow_path(void);
/* Make the struct tracer of this thread. FRAME is the thread's first frame, or NULL. Returns NULL
 * without memory. */
struct tracer *tracer_attach(compat_frame *frame);
static inline struct tracer *tracer_of_this_thread(void)
{
    return tracer_thread ? tracer_thread : tracer_attach(NULL);
}
/* Make room for an ENTER or EXIT at clock NOW. Returns the clock to write, which is later after a
 * wait; 0 if nothing must be written. A long wait releases the GIL, so values read before are
 * stale. */
uint64_t tracer_make_room_at_frame(struct tracer *t, uint64_t now);
/* Make room for a record about the innermost open frame, with the GIL held. Returns false if
 * nothing must be written. */
bool tracer_make_room_within_frame(struct tracer *t);
/* Like record_begin_frame(), but make room first. Even without room OPEN may become an open frame,
 * because there may be room again while the frame runs. Returns 0 if it does not. */
uint64_t tracer_make_room_and_enter(struct tracer *t, struct open_frame *open, uint32_t code,
                                    enum ring_tag tag, uint64_t now);
/* Write a fact (facts.h) for the collector: tracer_fact(GUARD, .entry = 3, ...). */
#define tracer_fact(NAME, ...) tracer_put_fact(FACT_##NAME, &(struct fact_##NAME){__VA_ARGS__})
void tracer_put_fact(enum fact_kind kind, const void *fact);
/* Note that cache entry number ENTRY has died, in a session or between two: the next session must
 * not list it. */
void facts_note_entry_death(uint32_t entry);
/* Write a loss row: something is missing from here on, because of CAUSE. */
void tracer_write_loss(const char *cause);

/* Count one more event of kind WHAT as left out. The GIL guards the count if there is one GIL; if
 * not, it is counted atomically. */
extern uint64_t tracer_left_uncounted[LEFT_KINDS] HIDDEN;
static inline void tracer_count_left_out(enum left_out what)
{
    uint64_t *count = &tracer_process.left_out[what];

    if (unlikely(tracer_process.interpreters))
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    else
        ++*count;
}

/* The mark of a code object, which tracer/code.c makes: whether its frames are recorded, and its
 * id. It is in the code's extra slot, or in its code_state (tracer/evaluator/cache.h). 0 if the
 * code has none yet. */
enum {
    CODE_SEEN = 1,
    /* frames of this code are not recorded: CODE_LEFT or CODE_EXCLUDED says why; without either,
     * the code is dyntrace's own */
    CODE_SKIP = 2,
    /* --frames user leaves out frames of this code, but decisions about it are recorded */
    CODE_LEFT = 4,
    /* --include or --exclude leaves out this code's frames, and decisions about it */
    CODE_EXCLUDED = 8,
    /* together with CODE_LEFT: the code has an id, because a decision about it was recorded */
    CODE_NAMED = 16,
    CODE_INIT = 32, /* the code is an __init__ */
    /* arguments and return values of this code's frames are recorded (--args), or it is a module's
     * body (tracer/uncaught.h) */
    CODE_ARGS = 64,
    /* calls of this code begin or end a range of torch's profiler (tracer/torch/ranges.c) */
    CODE_RANGE = 128,
    CODE_NOTED = CODE_ARGS | CODE_RANGE,
    /* 16 bits from here: tracer_process.sessions when CODE_ARGS was last checked */
    CODE_STAMP_SHIFT = 8,
    CODE_SHIFT = 24
};
/* Has a code object with MARK an id in the trace? */
static inline bool tracer_has_id(uintptr_t mark)
{
    return mark & CODE_SEEN && (mark & CODE_NAMED || !(mark & CODE_SKIP));
}
/* Is SLOT, what a code object has in its extra slot, a pointer to a code_state? */
static inline bool tracer_is_slot_code_state(uintptr_t slot)
{
    return slot && !(slot & CODE_SEEN);
}
/* Return the mark in SLOT, what a code object has in its extra slot: the mark, or a pointer to a
 * code_state, which begins with the mark. */
static inline uintptr_t tracer_mark_in_slot(uintptr_t slot)
{
    return tracer_is_slot_code_state(slot) ? *(const uintptr_t *)slot : slot;
}
uintptr_t tracer_mark_code(PyCodeObject *code);
/* Set or clear CODE_ARGS in MARK, the mark of CODE, by the patterns of this session's --args.
 * Returns the new mark. Called only if tracer_process.rechecks is set. */
uintptr_t tracer_update_mark(PyCodeObject *code, uintptr_t mark);
/* Return the mark of CODE, and give CODE an id even if its frames are left out (CODE_LEFT), because
 * a decision about it is recorded. */
uintptr_t tracer_mark_code_with_id(PyCodeObject *code);
/* A compiler decides about a call of CODE, whose mark has CODE_SKIP. Return the mark without
 * CODE_SKIP, so that the call is recorded. If options leave out all of CODE, the mark keeps
 * CODE_SKIP, and the caller counts one more decision as left out. */
uintptr_t tracer_mark_decided_code(PyCodeObject *code);
/* Would frames of CODE be recorded? */
bool tracer_is_code_recorded(PyCodeObject *code);
/* Is CODE the program's own? False for code of the standard library, of installed packages and of
 * dyntrace. */
bool tracer_is_user_code(PyCodeObject *code);

/* ---- make text of the program's values (tracer/values.c) ---- */
/* Return how many of the BYTES bytes of UTF8 to keep: at most MOST, and only whole characters. */
size_t values_cut_utf8(const char *utf8, size_t bytes, size_t most);
/* Return TEXT as UTF-8, at most MOST bytes, cut between characters. Lone surrogates, which UTF-8
 * cannot express, become \udcXX. The result is borrowed from TEXT or from *KEEP, which the caller
 * releases. */
const char *values_convert_to_utf8(PyObject *text, size_t most, size_t *bytes, PyObject **keep);
/* Return a new str: the qualified name of OBJECT if it is a function, otherwise the name of its
 * type. */
PyObject *values_name(PyObject *object);
/* Write the format and shape of array VALUE, such as " f[2, 3]", to TEXT, which has ROOM bytes.
 * Writes "" for other values, and if the buffer would come from a method of the program. */
void values_describe_shape(PyObject *value, char *text, size_t room);
/* Return which values of the program may be recorded in this session
 * (python/dyntrace/_guard_words.py). */
static inline enum session_values values_get_session_option(void)
{
    return tracer_process.session ? (enum session_values)tracer_process.session->values
                                  : SESSION_VALUES_ALL;
}

/* ---- calls of __init__ that a CPython hides from the hook (tracer/compat/init.c) ---- */
/* Make sure that the hook sees each call of an __init__ in the running interpreter, also of classes
 * that are made later. Without SHIM, a class whose __init__ is not recorded gets CPython's
 * specialised calls back as soon as the hook has seen that __init__. */
void tracer_route_all_inits_to_hook(bool shim);
/* The recording has ended: undo tracer_route_all_inits_to_hook(false). Does nothing after
 * tracer_route_all_inits_to_hook(true), which the shim needs. */
void tracer_undo_routing_of_inits(void);
/* The hook has seen a call of the __init__ of SELF: note whether it is recorded (WANTED). */
void tracer_route_init_to_hook(PyObject *self, bool wanted);
/* ---- repairs that some versions of CPython need (tracer/compat/mend.c) ---- */
/* Return the mark of CODE, which all interpreters share (COMPAT_SHARES_CODE). If it has none, make
 * MARK its mark and return MARK; with 0 it gets none. */
uintptr_t tracer_shared_mark_setdefault(PyCodeObject *code, uintptr_t mark);
/* A generator has finished while a trace function is set: note it for our trace function
 * (COMPAT_SEND_RAISES_UNDER_HOOK). */
void tracer_trace_generator_return(struct tracer *t, PyThreadState *ts);

/* ---- several stacks of frames in a thread (tracer/greenlet.c) ---- */
/* Return the lowest memory chunk of the running stack of frames. Each stack has another one. */
const void *tracer_stack_bottom(PyThreadState *ts);
/* The memory chunk with the frames' data has changed: find out which stack of frames runs now.
 * FRAME is about to begin, or NULL. */
void tracer_find_running_stack(struct tracer *t, PyThreadState *ts, compat_frame *frame);
/* Make a further stack of thread T. BOTTOM is its lowest chunk, or NULL if it is not known yet.
 * Returns NULL without memory. */
struct tracer_stack *tracer_make_stack(struct tracer *t, const void *bottom);
void tracer_stacks_release(struct tracer *t);
/* Set the references that the stacks of thread T have to NULL, without releasing them: the
 * interpreter that owned them is gone. */
void tracer_forget_stack_references(struct tracer *t);
/* Call this before each event. Afterwards T->open is the innermost open frame of the stack that
 * runs. */
static inline __attribute__((always_inline)) void
tracer_update_running_stack(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    if (unlikely(compat_chunk(ts) != t->chunk))
        tracer_find_running_stack(t, ts, frame);
}

/* Make TS the thread state that owns the stacks of thread T, and let T's present stack be the one
 * that runs now. */
void tracer_claim_running_stack(struct tracer *t, PyThreadState *ts);

/* ---- frames that were running when `dyntrace attach` began (tracer/inherit.c) ---- */
/* Insert those running frames of thread state TS that are not recorded into the list of open frames
 * of thread T, each where it belongs. */
void tracer_insert_running_frames(struct tracer *t, PyThreadState *ts);
/* Remove inherited frames that have returned from the inner end of thread T's open frames. Returns
 * true if there were any. */
bool tracer_remove_returned(struct tracer *t);
void tracer_inherited_release(struct tracer *t);
static inline bool tracer_is_inherited(const struct open_frame *open)
{
    return open && open->code & OPEN_FOUND;
}
/* Give a ring to each thread that runs Python code, and write its running frames as inherited. */
void rings_give_to_running_threads(void);

/* ---- more C stack for deep recursion (tracer/stack.c) ---- */
PyObject *tracer_evaluate_on_new_stack(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                       int throwflag, _PyFrameEvalFunction evaluate);
/* The old stack runs again after tracer_evaluate_on_new_stack(): set t->stack_low back to LOW, its
 * value before that call. */
void tracer_return_to_thread_stack(struct tracer *t, char *low);
char *tracer_find_stack_limit(bool most);
void tracer_free_spare_stack(struct tracer *t);

/* ---- run Python code of our own (tracer/quiet.c) ---- */
/* Between torch_quiet_begin() and torch_quiet_end() Python code of our own runs: its frames are not
 * recorded, trace functions do not see it, and no garbage is collected. */
struct torch_quiet {
    struct tracer_exception pending;
    bool collects;
};
void torch_quiet_begin(struct torch_quiet *q);
void torch_quiet_end(struct torch_quiet *q);

/* ---- functions of CPython that we wrap (tracer/builtins.c) ---- */
/* Wrap the functions of sys that switch CPython's perf trampolines on and off. */
void tracer_wrap_perf_functions(void);
void tracer_remove_hook_in_forked_child(
    void); /* repeat in a forked child what perf's trampolines need */
/* From now on programs that this one starts load the sitecustomize.py in directory INJECT. */
void tracer_record_child_programs(const char *inject);

/* Read the attribute NAME of OBJECT. Unlike PyObject_GetAttrString(), this interns the name: a new
 * string at each call would take places of the program's attributes in CPython's cache of type
 * attributes, which has 4,096 places, chosen by the string's address. */
static inline PyObject *tracer_get_attribute(PyObject *object, const char *name)
{
    OWNED PyObject *word = PyUnicode_InternFromString(name);

    return word ? PyObject_GetAttr(object, word) : NULL;
}
/* Call OBJECT.NAME with those of the arguments A, B, C that come before the first NULL. */
static inline PyObject *tracer_call_method(PyObject *object, const char *name, PyObject *a,
                                           PyObject *b, PyObject *c)
{
    OWNED PyObject *word = PyUnicode_InternFromString(name);

    return word ? PyObject_CallMethodObjArgs(object, word, a, b, c, NULL) : NULL;
}

static inline uint64_t tracer_read_clock(const enum session_clock clock)
{
    /* `now` may be NULL, because a frame may outlive its session */
    if (clock == SESSION_COARSE && likely(tracer_process.now))
        return atomic_load_explicit(tracer_process.now, memory_order_relaxed);
    return clock == SESSION_MONOTONIC
               ? clock_monotonic_ns() - (uint64_t)tracer_process.clock_ahead_ns
               : clock_counter();
}
static inline uint64_t tracer_read_session_clock(void)
{
    return tracer_read_clock(tracer_process.clock);
}

static inline void tracer_put_word(struct tracer *t, uint64_t word)
{
    /* a copy, because the compiler must assume that storing the word changes t->head */
    const uint64_t head = t->head;

    t->words[head & t->mask] = word;
    t->head = head + 1;
    /* Barrier A of ring.h: this store publishes the word; it matches barrier B in the collector. */
    atomic_store_explicit(&t->ring->head, head + 1, memory_order_release);
}

/* Write a control word and the COUNT words in WORDS that belong to it, and publish them
 * together. */
static inline void tracer_put_control_record(struct tracer *t, enum ring_control what,
                                             uint64_t payload, uint32_t count,
                                             const uint64_t *words)
{
    t->words[t->head++ & t->mask] = RING_CONTROL_WORD(what, count + 1, payload);
    while (count-- > 1)
        t->words[t->head++ & t->mask] = *words++;
    tracer_put_word(t, *words);
}

#endif
