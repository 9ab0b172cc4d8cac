/* collector/thread_cpu.c -- the processor time of a process's threads, sampled from outside. See
 * collector/thread_cpu.h. */
#include "collector/thread_cpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <unistd.h>

/* When threads are read: each every PERIOD_NS; with many threads, every PER_THREAD_NS times their
 * number. In a process that writes no events, a thread that does not run is read less and less
 * often: after an eighth of the time since it last ran, but at least every IDLE_NS. */
enum {
    PERIOD_NS = 10000000,
    PER_THREAD_NS = 400000,
    IDLE_NS = 500000000,
    IDLE_SHARE = 8,
    THREADS_MAX = 256 /* the most threads of a process that are sampled */
};

void thread_cpu_add(struct thread_samples *samples, uint32_t pid, uint32_t thread_id,
                    int64_t os_tid)
{
    bool is_full = samples->threads.count == THREADS_MAX;
    struct sampled_thread *thread;
    char path[64];
    int fd;

    if (!thread_id || is_full)
        return;
    list_each(other, &samples->threads)
        if (other->os_tid == os_tid)
            return;
    snprintf(path, sizeof path, "/proc/%u/task/%lld/schedstat", pid, (long long)os_tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    thread = list_add(&samples->threads);
    if (!thread) {
        close(fd);
        return;
    }
    *thread = (struct sampled_thread){.thread_id = thread_id, .os_tid = os_tid, .fd = fd};
}

static void write_sample_row(struct recorder *r, const struct sampled_thread *thread)
{
    recorder_put(r, THREAD_CPU,
                 {
                     .thread_id = thread->thread_id,
                     .at_ns = (int64_t)thread->at_ns,
                     .cpu_ns = (int64_t)thread->cpu_ns,
                     .queued_ns = (int64_t)thread->queued_ns,
                 });
}

/* Write the sample of THREAD that was held back, if there is one. Of samples in a row with the same
 * processor time only the first and the last are written. */
static void write_held_back_sample(struct recorder *r, struct sampled_thread *thread)
{
    if (thread->is_held)
        write_sample_row(r, thread);
    thread->is_held = false;
}

/* Read the processor time of THREAD at NOW_NS. Returns false if the thread has ended. */
static bool read_thread_cpu_time(struct sampled_thread *thread, struct recorder *r, uint64_t now_ns)
{
    char text[64];
    ssize_t bytes = pread(thread->fd, text, sizeof text - 1, 0);
    uint64_t cpu_ns;
    bool has_run;
    char *rest;

    if (bytes <= 0)
        return false;
    text[bytes] = 0;
    cpu_ns = strtoull(text, &rest, 10);
    has_run = !thread->at_ns || cpu_ns != thread->cpu_ns;
    if (has_run) {
        write_held_back_sample(r, thread);
        thread->ran_ns = now_ns;
    }
    thread->at_ns = now_ns;
    thread->cpu_ns = cpu_ns;
    thread->queued_ns = strtoull(rest, NULL, 10);
    thread->is_held = !has_run;
    if (has_run)
        write_sample_row(r, thread);
    return true;
}

static void thread_forget(struct thread_samples *samples, struct recorder *r, size_t i)
{
    struct sampled_thread *thread = &samples->threads.at[i];

    write_held_back_sample(r, thread);
    close(thread->fd);
    *thread = samples->threads.at[samples->threads.count - 1];
    samples->threads.count--;
}

void thread_cpu_read_all(struct thread_samples *samples, struct recorder *r, uint64_t now_ns,
                         bool is_idle)
{
    uint64_t period = MAX((uint64_t)PERIOD_NS, samples->threads.count * PER_THREAD_NS);

    for (size_t i = samples->threads.count; i--;) {
        struct sampled_thread *thread = &samples->threads.at[i];
        uint64_t idle = MIN((thread->at_ns - thread->ran_ns) / IDLE_SHARE, (uint64_t)IDLE_NS);
        uint64_t pause = is_idle ? MAX(period, idle) : period;
        bool is_due = !thread->at_ns || now_ns >= thread->at_ns + pause;
        if (is_due && !read_thread_cpu_time(thread, r, now_ns))
            thread_forget(samples, r, i);
    }
}

void thread_cpu_end(struct thread_samples *samples, struct recorder *r)
{
    while (samples->threads.count)
        thread_forget(samples, r, samples->threads.count - 1);
    list_free(&samples->threads);
}
