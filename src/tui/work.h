/* tui/work.h -- runs queries in threads, so that keys need not wait.
 *
 * Runs in: the viewer; a job's run() in a worker thread.
 *
 *     struct flame_job *job = job_make(sizeof *job, run, free, slow); // begins with a struct job
 *     work_start_job(work, &job->job);
 *     ... when work_done(work, &job->job) is true, the caller may read what run() has stored ...
 *     work_drop(work, job); // cancels the job if it runs, frees it when it has ended, and sets
 *                           // the pointer to NULL; may be called at any time
 *
 * Each thread has its own connection to the trace, so a slow query delays neither keys nor quick
 * queries. */
#ifndef DYNTRACE_TUI_WORK_H
#define DYNTRACE_TUI_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct work;

struct job {
    /* do the work of the job, in a thread; may read `cancelled` */
    void (*run)(struct job *job, struct db *db);
    /* optional: free what the job owns, but not the job itself; called in a worker thread or
     * by work_drop() */
    void (*free)(struct job *job);
    /* the job may take seconds; slow jobs never occupy all threads */
    bool slow;
    /* for a first look: most frames that run() reads; 0 means all */
    int64_t most;
    atomic_bool cancelled;
    char *error;            /* owned: the first error that was reported during run(), or NULL */
    atomic_llong done, all; /* how much of all is done, if run() tells it */

    /* ---- used only by tui/work.c ---- */
    struct job *next;
    struct db *db;
    bool ended, dropped;
};

/* Start the threads, with connections to the trace at PATH. When a job ends, ENDED_FD, an
 * eventfd, becomes readable. Returns NULL on error, which has been reported. */
struct work *work_open(const char *path, int ended_fd);
void work_close(struct work *work); /* End the threads and free WORK, which may be NULL. */

/* Allocate a job: SIZE zeroed bytes for a struct whose first member is a struct job. */
void *job_make(size_t size, void (*run)(struct job *job, struct db *db),
               void (*free)(struct job *job), bool slow);

void work_start_job(struct work *work, struct job *job);

/* Cancel the job HELD, free it, and set HELD to NULL. HELD is a variable: a pointer to a struct
 * that begins with a struct job, or NULL. */
#define work_drop(work, held) (work_drop_job_(work, (struct job *)(held)), (held) = NULL)
void work_drop_job_(struct work *work, struct job *job);

/* Return the progress of JOB in per cent. */
int job_percent(struct job *job);

/* Cancel all jobs that have not ended. They end soon, with an error. Returns false if there are
 * none. */
bool work_cancel_all(struct work *work);

/* Wait at most MS milliseconds until JOB has ended. Returns false if it has not. */
bool work_wait_for_job(struct work *work, struct job *job, int ms);
#define work_done(work, job) work_wait_for_job(work, job, 0)

/* The file was changed in a way that open connections do not see: let each thread open a new
 * connection before its next job. */
void work_reconnect(struct work *work);

/* Has a job found that the trace is damaged? */
bool work_is_trace_damaged(struct work *work);

/* Are there jobs that have not ended? */
bool work_is_job_pending(struct work *work);

#endif
