/* tracer/hooks.h -- callbacks by which the tracer's base calls the parts above it.
 *
 * Runs in: the traced process.
 *
 * Calls run downwards: module.c > torch/, resume/ > evaluator/ > guards/ > the base, which is the
 * other files of tracer/ itself, tracer_shim.c and compat/. The base calls no function of those
 * parts directly, only members of this table.
 *
 * Each part fills in its members in its X_register(), which module.c calls when the extension is
 * loaded, before anything is recorded. From then on only the owner of a member changes it, under
 * the home's GIL. A NULL member is not called.
 *
 * "GIL": the caller holds the GIL of the interpreter that runs. No member is called under
 * tracer_lock(). */
#ifndef DYNTRACE_TRACER_HOOKS_H
#define DYNTRACE_TRACER_HOOKS_H

#include "tracer/tracer.h"

/* What a function of CODE_RANGE does: tracer/torch/ranges.c. */
enum range_act {
    RANGE_NONE,
    RANGE_ENTER,
    RANGE_EXIT,
    RANGE_PUSH,
    RANGE_POP,
    RANGE_START,
    RANGE_END
};

/* A call of a function that begins a range. */
struct range_call {
    enum range_act act;
    PyObject *subject; /* owned: its first argument; NULL with RANGE_NONE */
};

struct tracer_hooks {
    /* ---- evaluator/api.c ---- */

    /* Evaluates frames while a thread has a callback, or while only decided frames are recorded.
     * tracer_shim.c puts this function into the interpreter's slot, and calls it if a foreign
     * evaluator above our hook calls us. GIL of the main interpreter; runs the program's code. */
    _PyFrameEvalFunction decide;
    /* Called when the running thread has got its struct tracer, at its first frame: once for each
     * thread, by tracer_attach(). GIL; the pending exception is put aside; may run the program's
     * code. */
    void (*thread_begins)(void);
    /* Forget, without releasing them, all references into the former main interpreter, which is
     * initialised again. Called by tracer_place() at the first call in the new interpreter. GIL. */
    void (*home_gone)(void);
    /* Called by CPython when it frees a code object whose extra slot has SLOT, a mark or a
     * code_state. GIL; an exception may be pending, and stays pending. */
    void (*code_freed)(void *slot);

    /* ---- resume/resume.c ---- */

    /* Is CODE a resume function? If so, store in *ORIGIN a new reference to the code that was
     * split, or NULL if that is gone. tracer_mark_code() calls it for code that gets an id. GIL;
     * runs no code of the program. */
    bool (*is_resume)(PyCodeObject *code, PyCodeObject **origin);

    /* ---- torch/bridge.c ---- */

    /* Called when the module code of torch._dynamo is about to run in the home; with LATE, if it
     * ran before the session began. tracer_mark_code() calls it, after it has set the code's mark.
     * GIL; the pending exception is put aside; runs code of ours. */
    void (*torch_begins)(bool late);
    /* Return the evaluator to put into the main interpreter's slot in place of HOOK, while frames
     * are recorded: HOOK itself, or one that calls it. HOOK is NULL if we need none.
     * tracer_rehook() calls it. GIL; runs no code of the program. */
    _PyFrameEvalFunction (*hook_over)(_PyFrameEvalFunction hook);
    /* `run --set`: change the limits of CODE if settings do. evaluator/decide.c calls it at a miss;
     * NULL while no setting does. GIL; runs code of ours. */
    void (*limits)(PyCodeObject *code, unsigned long *recompile, unsigned long *accumulated);
    /* Return a description of VALUE if it is a tensor, a new str. Returns NULL if it is no tensor,
     * or with an exception. evaluator/decision.c calls it for values that missed. GIL; runs code of
     * ours. */
    PyObject *(*describe)(PyObject *value);

    /* ---- torch/ranges.c ---- */

    /* Does the function NAME of FILE begin or end a range of torch's profiler? tracer_mark_code()
     * calls it. GIL; runs no code of the program. */
    bool (*is_range)(const char *file, const char *name);
    /* Called around the evaluation of FRAME, whose code has CODE_RANGE and which has not started:
     * before its ENTER and after its EXIT. RESULT is NULL if it raised. GIL; a pending exception
     * stays pending; runs no code of the program. */
    struct range_call (*range_before)(compat_frame *frame);
    void (*range_after)(struct range_call *call, PyObject *result);

    /* ---- torch/observe.c ---- */

    /* Is EVALUATE torch's evaluator, or one of the hooks around it? slot.c calls it. GIL of the
     * main interpreter; runs no code of the program. */
    bool (*is_observed)(_PyFrameEvalFunction evaluate);
    /* Is EVALUATE torch's evaluator or a hook around it, and does it call our hook through
     * tracer_process.hook? tracer_rehook() calls it. GIL of the main interpreter; runs no code of
     * the program. */
    bool (*is_around)(_PyFrameEvalFunction evaluate);
    /* Called by tracer_record() when recording began or ended. GIL of any interpreter; runs no code
     * of the program. */
    void (*record_changed)(void);

    /* ---- within the base: calls that would close a circle of files ---- */

    /* Call tracer_record() of tracer_shim.c. ring.c calls it when the session is over. GIL. */
    void (*record)(bool on);
    /* Call tracer_mark_code() of code.c. inherit.c calls it for frames that are running. GIL. */
    uintptr_t (*mark_code)(PyCodeObject *code);
    /* Call slot_reached() of slot.c: a frame has reached our hook while
     * tracer_process.slot_watched. ring.c calls it at that frame's ENTER. GIL; runs no code of the
     * program. */
    void (*slot_reached)(void);
    /* Call session_forked() of session.c in the child of a fork(), before it touches anything that
     * the parent shared. state.c calls it once, inside fork() or at the first event after it. No
     * other thread exists; the lock is free; only async-signal-safe calls are allowed. */
    void (*forked)(void);
};
extern struct tracer_hooks tracer_hooks HIDDEN;

#endif
