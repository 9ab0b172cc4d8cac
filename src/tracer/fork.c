/* tracer/fork.c -- the lock for what interpreters share, and what fork() makes of it.
 *
 * Runs in: the traced process; everything here is a slow path.
 *
 * The child handler makes a file for the child, or a nested one (ring.h), and
 * forgets the parent's rings. The child's first event attaches a ring and writes
 * an ENTER for each frame that was open (tracer/gap.c). */
#include "tracer/file.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define P tracer_process

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* again: Python code in a handler of fork() */
static pid_t forking_pid;   /* the process that is in fork(), 0: none */
static uint64_t fork_clock; /* of the last fork() */
static bool watched;

/* Before a fork(). A child has what there was at this time: it may begin to run much later. What the lock guards is whole
 * then. It stays locked where interpreters have GILs of their own, and only there: handlers that run Python code may
 * let go of the GIL. */
static void forking(void)
{
    tracer_lock();
    fork_clock = tracer_now(P.monotonic);
    forking_pid = getpid();
    if (tracer_thread)
        tracer_thread->limit = 0;
    if (!P.interpreters)
        tracer_unlock();
}

/* After it, in the parent. */
static void has_forked(void)
{
    forking_pid = 0;
    if (P.interpreters)
        tracer_unlock();
}

/* In the child, inside fork(): only this thread exists, and little is safe to
 * call. Once, by whoever is first. The parent's rings and facts are unmapped so that nothing can write to
 * them, and its header too once the child has a file of its own. */
static void forked(void)
{
    int saved_errno = errno;
    struct tracer *t = tracer_thread;
    char parent[sizeof P.file_name];

    if (!forking_pid)
        return;
    forking_pid = 0;
    tracer_perf_forked();
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    if (!P.session)
        return;
    memcpy(parent, P.file_name, sizeof parent);
    if (!P.file)
        parent[0] = 0;
    file_forked();
    rings_forked(t);
    file_open(parent, *parent ? fork_clock : tracer_now(P.monotonic));
    if (t)
        t->gone = !P.file;
    errno = saved_errno;
}

void fork_check(void)
{
    if (unlikely(forking_pid) && getpid() != forking_pid)
        forked();
}

bool fork_is_near(void)
{
    return forking_pid;
}

int fork_watch(void)
{
    int error = watched ? 0 : pthread_atfork(forking, has_forked, forked);

    watched = !error;
    return error;
}

void tracer_lock(void)
{
    fork_check();
    pthread_mutex_lock(&lock);
}

void tracer_unlock(void)
{
    pthread_mutex_unlock(&lock);
}
