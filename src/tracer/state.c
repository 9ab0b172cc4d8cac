/* tracer/state.c -- the process's and threads' state, and the lock between interpreters. See
 * tracer.h and hooks.h.
 *
 * Runs in: the traced process. This is the lowest file: it calls none of the others.
 *
 * Without a GIL: tracer_lock() is the lock that tracer/world.h names, and is held during the whole
 * of a fork(). Nothing that may wait for another thread is called under it.
 *
 * The lock and fork() are in one file because a child starts with the parent's lock state: the
 * first call in the child that touches shared state resets it. */
#include "tracer/hooks.h"

#include <pthread.h>
#include <stdatomic.h>

uint64_t tracer_left_uncounted[LEFT_KINDS];

struct tracer_process tracer_process = {
    .extra = -1, .evaluate = _PyEval_EvalFrameDefault, .left_out = tracer_left_uncounted};
__thread struct tracer *tracer_thread __attribute__((tls_model("initial-exec")));
struct tracer_hooks tracer_hooks;
struct world_gate tracer_gate;
__thread char world_self __attribute__((tls_model("initial-exec")));

/* recursive, because a fork handler in Python may fork once more */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* how many threads are in fork(), and in which process */
static atomic_int forking;
static _Atomic pid_t forking_pid;

void fork_note_begin(void)
{
    forking_pid = getpid();
    forking++;
}

void fork_note_end_in_parent(void)
{
    forking--;
}

void fork_note_child(void)
{
    if (!fork_is_under_way())
        return;
    forking = 0;
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    world_empty_gate_after_fork(&tracer_gate);
    tracer_hooks.forked();
}

void fork_handle_if_child(void)
{
    if (unlikely(fork_is_under_way()) && getpid() != forking_pid)
        fork_note_child();
}

bool fork_is_under_way(void)
{
    return atomic_load_explicit(&forking, memory_order_relaxed);
}

void tracer_lock(void)
{
    fork_handle_if_child();
    pthread_mutex_lock(&lock);
}

void tracer_unlock(void)
{
    pthread_mutex_unlock(&lock);
}
