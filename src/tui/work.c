/* tui/work.c -- runs queries in threads, so that keys need not wait. See tui/work.h.
 *
 * A job first waits, then runs, and then has ended. It is changed only under `lock`, and
 * `changed` is signalled at each step.
 *
 * work_drop() frees a job, unless a thread is running it; then that thread frees it at its end. */
#include "tui/work.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "clock.h"
#include "lib/say.h"
#include "trace/db.h"

enum { THREADS = 3 };

struct worker {
    struct work *work; /* borrowed */
    pthread_t thread;
    struct db *db; /* owned */
    /* the generation of `db`; if work->generation is newer, the thread must open a
     * new connection */
    int generation;
};

struct work {
    struct worker workers[THREADS];
    int started, slow_running;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *jobs; /* jobs that have not ended, oldest first; if a job runs, job->db is set */
    bool closing;
    bool damaged;   /* a job found that the trace is damaged */
    char *path;     /* owned: the path of the trace */
    int generation; /* counts the calls of work_reconnect() */
    int ended_fd;   /* borrowed: an eventfd to write to when a job has ended */
};

/* Evaluate EXPRESSION while WORK's lock is held. */
#define locked(work, expression)                      \
    ({                                                \
        pthread_mutex_lock(&(work)->lock);            \
        __typeof__(expression) found_ = (expression); \
        pthread_mutex_unlock(&(work)->lock);          \
        found_;                                       \
    })

void *job_make(size_t size, void (*run)(struct job *job, struct db *db),
               void (*free)(struct job *job), bool slow)
{
    struct job *job = calloc(1, size);

    job->run = run;
    job->free = free;
    job->slow = slow;
    return job;
}

static void free_job(struct job *job)
{
    if (job->free)
        job->free(job);
    free(job->error);
    free(job);
}

int job_percent(struct job *job)
{
    long long all = atomic_load(&job->all);

    return all > 0 ? (int)(100.0 * (double)atomic_load(&job->done) / (double)all) : 0;
}

/* Return the oldest job that may run now, or NULL. A slow job must leave one thread for others.
 * Called with the lock held. */
static struct job *find_next_job(const struct work *work)
{
    struct job *job = work->jobs;

    while (job && (job->db || (job->slow && work->slow_running >= THREADS - 1)))
        job = job->next;
    return job;
}

/* Keep LINE, an error that was reported while a job ran. Only the first error is kept, because
 * later ones follow from it. If the job was cancelled, the error is "cancelled". */
static void keep_first_error_of_job(void *context, const char *line)
{
    struct job *job = context;
    const char *path = db_get_path(job->db);
    size_t length = strlen(path);

    /* leave out the name of the file, which is on the screen anyway */
    if (length && !strncmp(line, path, length) && line[length] == ':' && line[length + 1] == ' ')
        line += length + 2;
    if (!job->error)
        job->error = strdup(atomic_load(&job->cancelled) ? "cancelled" : line);
}

static void stop_job_if_cancelled(void *context)
{
    struct job *job = context;

    /* interrupt again: if cancel_job() interrupted before the statement ran, that had no effect */
    if (atomic_load(&job->cancelled))
        db_interrupt(job->db);
}

/* Open a connection to the trace, with a small page cache, because there are
 * several connections. */
static struct db *open_connection(const char *path)
{
    struct db *db = db_open(path);

    if (db)
        db_run(db, "PRAGMA cache_size = -6000");
    return db;
}

/* Remove JOB from the list of jobs that have not ended. Called with the lock held. */
static void remove_job(struct work *work, const struct job *job)
{
    struct job **at = &work->jobs;

    while (*at && *at != job)
        at = &(*at)->next;
    if (*at)
        *at = job->next;
}

static void *run_jobs_of_thread(void *argument)
{
    struct worker *worker = argument;
    struct work *work = worker->work;

    pthread_mutex_lock(&work->lock);
    while (!work->closing) {
        struct job *job = find_next_job(work);
        struct db *fresh = NULL;
        bool stale = worker->generation != work->generation;
        if (!job) {
            pthread_cond_wait(&work->changed, &work->lock);
            continue;
        }
        job->db = worker->db;
        work->slow_running += job->slow;
        worker->generation = work->generation;
        pthread_mutex_unlock(&work->lock);
        say_redirect_errors(keep_first_error_of_job, job);
        /* if no new connection can be opened, the old one still works */
        if (stale && (fresh = open_connection(work->path))) {
            pthread_mutex_lock(&work->lock);
            db_close(worker->db);
            job->db = worker->db = fresh;
            pthread_mutex_unlock(&work->lock);
        }
        db_allow_retry(job->db);
        db_set_progress_callback(job->db, stop_job_if_cancelled, job);
        if (atomic_load(&job->cancelled))
            keep_first_error_of_job(job, "cancelled");
        else
            job->run(job, job->db);
        db_set_progress_callback(job->db, NULL, NULL);
        say_redirect_errors(NULL, NULL);
        pthread_mutex_lock(&work->lock);
        remove_job(work, job);
        work->damaged = work->damaged || (job->error && strstr(job->error, "is damaged"));
        work->slow_running -= job->slow;
        job->db = NULL;
        job->ended = true;
        if (job->dropped)
            free_job(job);
        pthread_cond_broadcast(&work->changed);
        eventfd_write(work->ended_fd, 1);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

struct work *work_open(const char *path, int ended_fd)
{
    struct work *work = calloc(1, sizeof *work);
    sigset_t all, old;

    *work = (struct work){.path = strdup(path),
                          .ended_fd = ended_fd,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
    /* block all signals in the threads, except those of crashes: the main thread handles them */
    sigfillset(&all);
    for (size_t i = 0; i < 5; i++)
        sigdelset(&all, (int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; work->started < THREADS; work->started++) {
        struct worker *worker = &work->workers[work->started];
        worker->work = work;
        if (!(worker->db = open_connection(path)) ||
            pthread_create(&worker->thread, NULL, run_jobs_of_thread, worker) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (work->started < THREADS) {
        work_close(work);
        return NULL;
    }
    return work;
}

bool work_is_trace_damaged(struct work *work)
{
    return locked(work, work->damaged);
}

void work_close(struct work *work)
{
    if (!work)
        return;
    pthread_mutex_lock(&work->lock);
    work->closing = true;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
    for (int i = 0; i < work->started; i++)
        pthread_join(work->workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        db_close(work->workers[i].db);
    free(work->path);
    free(work);
}

void work_reconnect(struct work *work)
{
    locked(work, work->generation++);
}

void work_start_job(struct work *work, struct job *job)
{
    struct job **last = &work->jobs;

    pthread_mutex_lock(&work->lock);
    while (*last)
        last = &(*last)->next;
    *last = job;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

/* Cancel JOB, and interrupt its query if it runs. Called with the lock held. */
static void cancel_job(struct job *job)
{
    atomic_store(&job->cancelled, true);
    if (job->db)
        db_interrupt(job->db);
}

bool work_cancel_all(struct work *work)
{
    bool any;

    pthread_mutex_lock(&work->lock);
    any = work->jobs;
    for (struct job *job = work->jobs; job; job = job->next)
        cancel_job(job);
    pthread_mutex_unlock(&work->lock);
    return any;
}

void work_drop_job_(struct work *work, struct job *job)
{
    bool idle;

    if (!job)
        return;
    pthread_mutex_lock(&work->lock);
    cancel_job(job);
    job->dropped = true;
    idle = !job->db;
    if (idle)
        remove_job(work, job);
    pthread_mutex_unlock(&work->lock);
    if (idle)
        free_job(job);
}

bool work_wait_for_job(struct work *work, struct job *job, int ms)
{
    int64_t end = clock_monotonic_ms() + ms;
    struct timespec until = {end / 1000, end % 1000 * 1000000};
    bool done;

    pthread_mutex_lock(&work->lock);
    while (!job->ended && ms &&
           pthread_cond_clockwait(&work->changed, &work->lock, CLOCK_MONOTONIC, &until) == 0)
        continue;
    done = job->ended;
    pthread_mutex_unlock(&work->lock);
    return done;
}

bool work_is_job_pending(struct work *work)
{
    return locked(work, work->jobs != NULL);
}
