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

struct tracer_hooks {
    /* ---- evaluator/api.c ---- */

    /* The evaluator of frames while a thread has a callback, or while only decided frames are
     * recorded. tracer_shim.c puts it into the interpreter's slot, and calls it from below a
     * foreign one. GIL of the main interpreter; runs the program's code. */
    _PyFrameEvalFunction decide;
    /* The running thread has got its struct tracer, at its first frame. tracer_attach() calls it
     * once for each thread. GIL; the pending exception is put aside; may run the program's code. */
    void (*thread_begins)(void);
    /* The main interpreter is initialised again: forget, without releasing, all references into the
     * former one. tracer_place() calls it at the first call in the new one. GIL. */
    void (*home_gone)(void);
    /* CPython frees a code object whose slot has SLOT, a mark or a code_state. It calls this
     * function itself. GIL; an exception may be pending, and stays so. */
    void (*code_freed)(void *slot);

    /* ---- resume/resume.c ---- */

    /* Is CODE a resume function? Then *ORIGIN is a new reference to the code that was split, or
     * NULL if that is gone. tracer_mark_code() calls it for code that gets an id. GIL; runs
     * nothing. */
    bool (*is_resume)(PyCodeObject *code, PyCodeObject **origin);

    /* ---- torch/bridge.c ---- */

    /* The module code of torch._dynamo is about to run in the home, or, LATE, has run before the
     * session began. tracer_mark_code() calls it, once the code's mark is kept. GIL; the pending
     * exception is put aside; runs code of ours. */
    void (*torch_begins)(bool late);
    /* HOOK (NULL: none) is about to be put into the main interpreter's slot while frames are
     * recorded: the evaluator to put there in its place, which calls it; or HOOK itself.
     * tracer_rehook() calls it. GIL; runs nothing. */
    _PyFrameEvalFunction (*hook_over)(_PyFrameEvalFunction hook);
    /* `run --set`: the limits of CODE where settings change them. evaluator/decide.c calls it at a
     * miss; NULL while there are none. GIL; runs code of ours. */
    void (*limits)(PyCodeObject *code, unsigned long *recompile, unsigned long *accumulated);
    /* The words for VALUE if it is a tensor: a new str; NULL: not a tensor, or an exception.
     * evaluator/decision.c calls it for values that missed. GIL; runs code of ours. */
    PyObject *(*describe)(PyObject *value);

    /* ---- torch/observe.c ---- */

    /* Is EVALUATE torch's evaluator, or one of the hooks around it? slot.c calls it. GIL of the
     * main interpreter; runs nothing, as the next. */
    bool (*is_observed)(_PyFrameEvalFunction evaluate);
    /* ... and does it call our hook below it, which it finds in tracer_process.hook?
     * tracer_rehook() calls it. */
    bool (*is_around)(_PyFrameEvalFunction evaluate);
    /* Recording began, or ended. tracer_record() calls it. GIL of any interpreter; runs nothing. */
    void (*record_changed)(void);

    /* ---- within the base: calls that would close a circle of files ---- */

    /* tracer_shim.c: tracer_record(). ring.c calls it when the session is over. GIL. */
    void (*record)(bool on);
    /* slot.c: a frame has reached our hook while tracer_process.slot_watched. ring.c calls it at
     * that frame's ENTER. GIL; runs nothing. */
    void (*slot_reached)(void);
    /* session.c: this is the child of a fork(), before it touches anything that the parent shared.
     * state.c calls it once, inside fork() or at the first event after it. No other thread exists;
     * the lock is free; only async-signal-safe calls are allowed. */
    void (*forked)(void);
};
extern struct tracer_hooks tracer_hooks HIDDEN;

#endif
