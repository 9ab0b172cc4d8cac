/* tracer/hooks.h -- callbacks by which the base of the tracer calls the folders above it.
 *
 * Runs in: the traced process.
 *
 * Calls run downwards: module.c > torch/, resume/ > evaluator/ > guards/ > the base, which is the
 * other files of tracer/ itself, tracer_shim.c and compat/. The base calls no function of those
 * folders directly, only members of this table. Each folder fills in its members in its
 * X_register(), which module.c calls when the extension is loaded, before anything is recorded.
 * From then on only the owner of a member changes it, under the home's GIL. A NULL member is not
 * called.
 *
 * "GIL": the caller holds the GIL of the interpreter that runs, or, in a free-threaded build, its
 * thread state is attached (tracer/world.h). No member is called under tracer_lock(). */
#ifndef DYNTRACE_TRACER_HOOKS_H
#define DYNTRACE_TRACER_HOOKS_H

#include "tracer/tracer.h"

/* What a call of a function with CODE_RANGE does to torch's profiler ranges
 * (tracer/torch/ranges.c). */
enum range_act {
    RANGE_NONE,
    RANGE_ENTER,
    RANGE_EXIT,
    RANGE_PUSH,
    RANGE_POP,
    RANGE_START,
    RANGE_END
};

/* A call that begins or ends a range, between range_before() and range_after(). */
struct range_call {
    enum range_act act;
    PyObject *subject; /* owned: first argument of the call; NULL with RANGE_NONE */
};

struct tracer_hooks {
    /* ---- provided by evaluator/api.c ---- */

    /* Evaluates frames while a thread has a callback, or while only decided frames are recorded.
     * tracer_shim.c puts it into the interpreter's slot; if another evaluator is in the slot and
     * calls us, tracer_shim.c calls it. GIL of the main interpreter; runs the program's code. */
    _PyFrameEvalFunction decide;
    /* The running thread has got its struct tracer, at its first frame. tracer_attach() calls this
     * once for each thread. GIL; the pending exception is put aside; may run the program's code. */
    void (*thread_begins)(void);
    /* The main interpreter was finalized and is initialised again: forget all references into the
     * former one, without releasing them. tracer_place() calls this at the first call in the new
     * interpreter. GIL. */
    void (*home_gone)(void);
    /* CPython frees a code object whose extra slot has SLOT, a mark or a code_state. GIL; an
     * exception may be pending, and stays pending. */
    void (*code_freed)(void *slot);

    /* ---- provided by resume/resume.c ---- */

    /* Is CODE a resume function? Then store in *ORIGIN a new reference to the code that was split,
     * or NULL if that code is gone. tracer_mark_code() calls it for code that gets an id. GIL; runs
     * no code of the program. */
    bool (*is_resume)(PyCodeObject *code, PyCodeObject **origin);

    /* ---- provided by torch/bridge.c ---- */

    /* The module torch._dynamo is about to run in the home interpreter; LATE: it ran before the
     * session began. tracer_mark_code() calls this after it has set the code's mark. GIL; the
     * pending exception is put aside; runs code of ours. */
    void (*torch_begins)(bool late);
    /* Return the evaluator to put into the main interpreter's slot while frames are recorded: HOOK
     * itself, or an evaluator that calls HOOK. HOOK is NULL if we need no hook.
     * tracer_install_needed_hook() calls it. GIL; runs no code of the program. */
    _PyFrameEvalFunction (*hook_over)(_PyFrameEvalFunction hook);
    /* `run --set`: if a setting changes the recompile limits of CODE, change *RECOMPILE and
     * *ACCUMULATED. evaluator/decide.c calls it at a miss; NULL while there is no such setting.
     * GIL; runs code of ours. */
    void (*limits)(PyCodeObject *code, unsigned long *recompile, unsigned long *accumulated);
    /* Return a description of VALUE, a new str, if it is a tensor. Returns NULL if it is none, or
     * with an exception. evaluator/decision.c calls it for the values of a call that missed,
     * attributes.c for recorded values. GIL; runs code of ours. */
    PyObject *(*describe)(PyObject *value);

    /* ---- provided by torch/ranges.c ---- */

    /* Does the function NAME of FILE begin or end a range of torch's profiler? tracer_mark_code()
     * calls it. GIL; runs no code of the program. */
    bool (*is_range)(const char *file, const char *name);
    /* Called around the evaluation of FRAME, whose code has CODE_RANGE: range_before() before its
     * ENTER, when it has not started, range_after() after its EXIT. RESULT is NULL if it raised.
     * GIL; a pending exception stays pending; runs no code of the program. */
    struct range_call (*range_before)(compat_frame *frame);
    void (*range_after)(struct range_call *call, PyObject *result);

    /* ---- provided by torch/observe.c ---- */

    /* Is EVALUATE torch's evaluator, or one of the hooks around it? slot.c calls it. GIL of the
     * main interpreter; runs no code of the program. */
    bool (*is_observed)(_PyFrameEvalFunction evaluate);
    /* Is EVALUATE torch's evaluator or a hook around it, and does it call our hook through
     * tracer_process.hook? tracer_install_needed_hook() calls it. GIL of the main interpreter; runs
     * no code of the program. */
    bool (*is_around)(_PyFrameEvalFunction evaluate);
    /* Recording has begun or ended; tracer_set_recording() calls this. GIL of any interpreter; runs
     * no code of the program. */
    void (*record_changed)(void);

    /* ---- provided by the base itself, for calls that would close a circle of files ---- */

    /* tracer_handle_recording_end() of tracer_shim.c. ring.c calls it when the session is over.
     * GIL. */
    void (*record_over)(void);
    /* tracer_mark_code() of code.c. inherit.c calls it for frames that are running. GIL. */
    uintptr_t (*mark_code)(PyCodeObject *code);
    /* slot_note_arrival() of slot.c: a frame has reached our hook while slot_watched is set. ring.c
     * calls it at that frame's ENTER. GIL; runs no code of the program. */
    void (*slot_note_arrival)(void);
    /* session_handle_fork_in_child() of session.c, which must be called in the child of a fork()
     * before it touches anything that the parent shared. state.c calls it once, inside fork() or at
     * the first event after it. There is no other thread, the lock is free, and only
     * async-signal-safe calls are allowed. */
    void (*forked)(void);
};
extern struct tracer_hooks tracer_hooks HIDDEN;

#endif
