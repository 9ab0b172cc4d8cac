/* tracer/world.h -- protects the tracer's state in a free-threaded build of CPython (PEP 703).
 *
 * Runs in: the traced process.
 *
 * With the GIL nothing here has an effect. Without the GIL threads run in parallel, and the files
 * that say "under the GIL" are right for these reasons:
 *
 *   own      A thread's struct tracer, its ring and its open frames are touched by this thread
 *            alone, or while the world is stopped.
 *   world    State that every call reads and that seldom changes (most of struct tracer_process,
 *            the hook in the interpreter's slot) changes while the world is stopped. world_stop()
 *            waits until each other thread is detached, or at a point where it would also have
 *            released a GIL. So a piece of C code that calls nothing of CPython's that may wait
 *            runs as if under a GIL. A call that makes or frees objects, or takes a lock of
 *            CPython's, may wait, and values read before it must be read again.
 *   lock     tracer_lock() guards ids, files, rings and the list of threads.
 *   gate     One thread at a time joins a session, leaves it, or changes the hook.
 *   object   An object of the program is read through a reference of our own, and a container in a
 *            critical section of CPython's.
 *
 * A free-threaded build records only frames, spans and arguments. The shim and the parts above it
 * (guards, torch, resume, capture) are not available: COMPAT_FREE_THREADED in tracer/module.c. */
#ifndef DYNTRACE_TRACER_WORLD_H
#define DYNTRACE_TRACER_WORLD_H

#include <unistd.h>

#include "tracer/references.h"

#if COMPAT_FREE_THREADED

    /* Stop all other threads of INTERPRETER, and let them go on. While they are stopped, do not
     * stop them again, and call nothing that may wait for another thread. */
    #define world_stop(interpreter) _PyEval_StopTheWorld(interpreter)
    #define world_start(interpreter) _PyEval_StartTheWorld(interpreter)

    /* Read or write a variable that other threads may write or read at the same time, if its order
     * with other variables does not matter. */
    #define world_get(variable) __atomic_load_n(&(variable), __ATOMIC_RELAXED)
    #define world_set(variable, value) __atomic_store_n(&(variable), value, __ATOMIC_RELAXED)

    /* While a thread is between world_hold() and world_release() for OBJECT, no other thread is
     * there for the same object. */
    #define world_hold(object)               \
        {                                    \
            PyCriticalSection world_section; \
            PyCriticalSection_Begin(&world_section, (PyObject *)(object))
    #define world_release()                    \
        PyCriticalSection_End(&world_section); \
        }

#else

    #define world_stop(interpreter) ((void)(interpreter))
    #define world_start(interpreter) ((void)(interpreter))
    #define world_get(variable) (variable)
    #define world_set(variable, value) ((void)((variable) = (value)))
    #define world_hold(object) {
    #define world_release() }

#endif

/* A lock that lets one thread at a time inside, which may enter it again. world_enter_gate() waits
 * until no other thread is inside; world_try_to_enter_gate() returns false instead of waiting. */
struct world_gate {
    uintptr_t owner; /* an address that tells which thread is inside; 0 if none is */
    unsigned depth;
};
extern __thread char world_self __attribute__((tls_model("initial-exec")));

static inline bool world_try_to_enter_gate(struct world_gate *gate)
{
    const uintptr_t self = (uintptr_t)&world_self;
    uintptr_t nobody = 0;

    if (!COMPAT_FREE_THREADED)
        return true;
    if (__atomic_load_n(&gate->owner, __ATOMIC_RELAXED) != self &&
        !__atomic_compare_exchange_n(&gate->owner, &nobody, self, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    gate->depth++;
    return true;
}

static inline void world_enter_gate(struct world_gate *gate)
{
    PyThreadState *detached;

    while (!world_try_to_enter_gate(gate)) {
        detached = PyEval_SaveThread();
        usleep(200);
        PyEval_RestoreThread(detached);
    }
}

static inline void world_leave_gate(struct world_gate *gate)
{
    if (!COMPAT_FREE_THREADED)
        return;
    if (--gate->depth == 0)
        __atomic_store_n(&gate->owner, 0, __ATOMIC_RELEASE);
}

/* For a forked child. If another thread of the parent had entered GATE when it forked, mark GATE as
 * free: the child does not have that thread, so nobody would leave GATE. */
static inline void world_empty_gate_after_fork(struct world_gate *gate)
{
    if (gate->owner != (uintptr_t)&world_self)
        *gate = (struct world_gate){0};
}

#endif
