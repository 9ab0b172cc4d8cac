/* tui/work.h -- queries that run beside the keys.
 *
 * Runs in: the viewer; a job's run() in threads of its own.
 *
 *     struct flame_job *job = job_new(sizeof *job, run, free, slow);      a struct that begins with
 *     a struct job work_start(work, &job->job);
 *     ... work_done(job) becomes true; what run() made is then the caller's to read ...
 *     work_drop(work, job);               at any time: cancelled if it still runs, freed when it
 *                                         has ended; then NULL
 *
 * Each thread has a connection of its own to the trace, so one slow query holds up neither the keys
 * nor the quick ones. */
#ifndef DYNTRACE_TUI_WORK_H
#define DYNTRACE_TUI_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct work;

struct job {
    void (*run)(struct job *job, struct db *db); /* in a thread; may look at `cancelled` */
    /* what it owns but itself, by whoever is last; or NULL */
    void (*free)(struct job *job);
    /* may take seconds: a thread is kept free of these */
    bool slow;
    /* frames that it reads, for a first look; 0: all */
    int64_t most;
    atomic_bool cancelled;
    char *error;            /* owned: what was said while it ran, or NULL */
    atomic_llong done, all; /* how far it has come, where it says so */

    /* of tui/work.c */
    struct job *next;
    struct db *db;
    bool ended, dropped;
};

/* Connections to the trace at PATH. ENDED_FD, an eventfd, is written to when a job has ended. NULL:
 * the error has been reported. */
struct work *work_open(const char *path, int ended_fd);
void work_close(struct work *work); /* harmless on NULL */

/* SIZE bytes, zeroed, that begin with a job. */
void *job_new(size_t size, void (*run)(struct job *job, struct db *db),
              void (*free)(struct job *job), bool slow);

void work_start(struct work *work, struct job *job);

/* HELD, a pointer to a struct that begins with a job, or NULL, becomes NULL. */
#define work_drop(work, held) (work_drop_(work, (struct job *)(held)), (held) = NULL)
void work_drop_(struct work *work, struct job *job);

/* How far it has come, in per cent. */
int job_percent(struct job *job);

/* Ask all that have not ended to end early; they are done soon, with an error. False: there are
 * none. */
bool work_cancel(struct work *work);

/* Wait until JOB is done, at most MS milliseconds. False: it is not. */
bool work_wait(struct work *work, struct job *job, int ms);
#define work_done(work, job) work_wait(work, job, 0)

/* From the next job on, new connections: the file was changed in a way that the old ones do not
 * see. */
void work_reconnect(struct work *work);

/* Some job has found the trace damaged. */
bool work_damaged(struct work *work);

/* There are jobs that have not ended. */
bool work_pending(struct work *work);

#endif
