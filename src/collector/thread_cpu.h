/* collector/thread_cpu.h -- the processor time of a process's threads, sampled from outside.
 *
 * Runs in: the collector. The program pays nothing: the kernel counts each thread's processor time,
 * and anybody may read it in /proc/PID/task/TID/schedstat. Samples become rows of `thread_cpu`. The
 * decoder reports stretches, in which a thread began and ended no frame
 * (traced_write_quiet_stretch). At the end of the recording one SQL statement computes from the
 * samples how long the thread was certainly on a processor during each stretch, and how long
 * certainly off it (recorder/stretches). */
#ifndef DYNTRACE_THREAD_CPU_H
#define DYNTRACE_THREAD_CPU_H

#include "lib/list.h"
#include "recorder_sqlite.h"

enum {
    STRETCH_NS = 1000000 /* a stretch, in which a thread begins and ends no frame, is at least so
                             * long */
};

/* A thread that is sampled, with the times of its last sample in nanoseconds. */
struct sampled_thread {
    int64_t os_tid;
    uint32_t thread_id; /* its row */
    int fd;             /* owned: descriptor of the thread's schedstat */
    uint64_t at_ns;     /* time of the last sample; 0 if there is none yet */
    /* Times since the thread began: on a processor; and ready to run, but without a processor. */
    uint64_t cpu_ns, queued_ns;
    uint64_t ran_ns; /* time of the last sample that showed that the thread had run */
    /* the last sample is not written yet, because the next may have the same processor time */
    bool is_held;
};

/* The threads of one process that are sampled. Zero it before use. */
struct thread_samples {
    LIST(struct sampled_thread) threads; /* owned */
};

/* From now on sample thread OS_TID of process PID, for the row THREAD_ID. A greenlet has the OS_TID
 * of its thread, which is sampled only once. If the thread cannot be read, do nothing. */
void thread_cpu_add(struct thread_samples *samples, uint32_t pid, uint32_t thread_id,
                    int64_t os_tid);
/* Sample the threads whose turn it is at NOW_NS, and write new samples to R. IS_IDLE: the process
 * has written no events since the last call. */
void thread_cpu_read_all(struct thread_samples *samples, struct recorder *r, uint64_t now_ns,
                         bool is_idle);
/* Write the last samples to R, and free what SAMPLES owns. */
void thread_cpu_end(struct thread_samples *samples, struct recorder *r);

#endif
