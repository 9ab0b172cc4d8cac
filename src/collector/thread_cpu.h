/* collector/thread_cpu.h -- the processor time of a process's threads, sampled from outside.
 *
 * Runs in: the collector. The program pays nothing: the kernel counts each thread's processor time,
 * and anybody may read it in /proc/PID/task/TID/schedstat. Samples become rows of `thread_cpu`.
 * The decoder tells of stretches in which a thread began and ended no frame (traced_stretch). At
 * the end of the recording one statement works out from the samples how long each stretch was
 * certainly on a processor, and how long certainly off it (recorder/stretches). */
#ifndef DYNTRACE_THREAD_CPU_H
#define DYNTRACE_THREAD_CPU_H

#include "lib/list.h"
#include "recorder_sqlite.h"

enum { STRETCH_NS = 1000000 /* shorter stretches are not reported */ };

/* A thread as it was read last. Times are in nanoseconds. */
struct sampled_thread {
    int64_t os_tid;
    uint32_t thread_id; /* its row */
    int fd;             /* owned: descriptor of the thread's schedstat */
    uint64_t at_ns;     /* time of the reading; 0 if the thread has not been read yet */
    /* time on a processor, and time ready but without a processor, since the thread began */
    uint64_t cpu_ns, queued_ns;
    uint64_t ran_ns; /* when it was last found to have run */
    /* the sample is held back, because the next one may have the same processor time */
    bool is_held;
};

/* The threads of one process that are sampled. Zeroed: none. */
struct thread_samples {
    LIST(struct sampled_thread) threads; /* owned */
};

/* Sample thread OS_TID of process PID from now on, for the row THREAD_ID. A greenlet has the OS_TID
 * of its thread, which is sampled once. Nothing happens if the thread cannot be read. */
void thread_cpu_add(struct thread_samples *samples, uint32_t pid, uint32_t thread_id,
                    int64_t os_tid);
/* Read the threads that are due at NOW_NS, and write what changed to R. IS_IDLE: the process wrote
 * no events since the last call. */
void thread_cpu_sample(struct thread_samples *samples, struct recorder *r, uint64_t now_ns,
                       bool is_idle);
/* Write the last samples to R, and give back what SAMPLES owns. */
void thread_cpu_end(struct thread_samples *samples, struct recorder *r);

#endif
