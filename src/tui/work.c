/* tui/work.c -- queries that run beside the keys. See tui/work.h.
 *
 * Runs in: the viewer.
 *
 *     waiting -> running -> done        under `lock`; `changed` is signalled at each step
 *
 * A job is freed by whoever comes last: work_drop() when it is done, its thread
 * when it was dropped before. */
#include "tui/work.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "trace/db.h"
#include "lib/say.h"

enum { THREADS = 3, WAITING = 0, RUNNING, DONE };

struct work {
    pthread_t threads[THREADS];
    struct db *dbs[THREADS]; /* owned: one for each thread */
    int started, slow_running, pending;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, **last; /* waiting, oldest first */
    bool closing;
    char *path;                /* owned */
    atomic_int generation;     /* of connections */
    int fd;                    /* owned: an eventfd */
};

int64_t work_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void *job_new(size_t size, void (*run)(struct job *job, struct db *db), void (*free)(struct job *job), bool slow)
{
    struct job *job = calloc(1, size);

    if (job) {
        job->run = run;
        job->free = free;
        job->slow = slow;
    }
    return job;
}

static void job_free(struct job *job)
{
    job->free(job);
    free(job->error);
    free(job);
}

int job_percent(struct job *job)
{
    long long all = atomic_load(&job->all);

    return all > 0 ? (int)(100.0 * (double)atomic_load(&job->done) / (double)all) : 0;
}

/* The next job that may run now, taken out of the queue. One thread stays free of slow ones. Call locked. */
static struct job *job_take(struct work *work)
{
    for (struct job **at = &work->first; *at; at = &(*at)->next) {
        struct job *job = *at;
        if (job->slow && work->slow_running >= THREADS - 1)
            continue;
        *at = job->next;
        if (work->last == &job->next)
            work->last = at;
        job->next = NULL;
        return job;
    }
    return NULL;
}

/* An error that a job met: the first is kept, it has the cause. */
static void job_said(void *context, const char *line)
{
    struct job *job = context;
    const char *path = job->db ? db_path(job->db) : "";
    size_t length = strlen(path);

    /* Which file it is about is on the screen already. */
    if (length && !strncmp(line, path, length) && line[length] == ':' && line[length + 1] == ' ')
        line += length + 2;
    if (!job->error)
        job->error = strdup(line);
}

static void job_tick(void *context)
{
    struct job *job = context;

    /* An interrupt that came between two statements would be forgotten. */
    if (atomic_load(&job->cancelled))
        db_interrupt(job->db);
}

/* A connection whose memory is that of one of several. */
static struct db *connect(const char *path)
{
    struct db *db = db_open(path);
    struct query *query = db ? db_query(db, "PRAGMA cache_size = -6000") : NULL;

    while (query_step(query))
        ;
    query_close(query);
    return db;
}

struct thread_argument {
    struct work *work;
    int number;
};

static void *work_thread(void *argument)
{
    struct thread_argument *given = argument;
    struct work *work = given->work;
    struct db *db = work->dbs[given->number];
    int number = given->number, generation = 0;

    free(given);
    pthread_mutex_lock(&work->lock);
    for (;;) {
        struct job *job = work->closing ? NULL : job_take(work);
        if (work->closing)
            break;
        if (!job) {
            pthread_cond_wait(&work->changed, &work->lock);
            continue;
        }
        job->state = RUNNING;
        job->db = db;
        work->slow_running += job->slow;
        pthread_mutex_unlock(&work->lock);

        say_divert(job_said, job);
        if (generation != atomic_load(&work->generation)) {
            struct db *fresh = connect(work->path);
            generation = atomic_load(&work->generation);
            if (fresh) {
                db_close(db);
                pthread_mutex_lock(&work->lock);
                work->dbs[number] = job->db = db = fresh;
                pthread_mutex_unlock(&work->lock);
            }
        }
        db_on_progress(db, job_tick, job);
        if (!atomic_load(&job->cancelled))
            job->run(job, db);
        db_on_progress(db, NULL, NULL);
        say_divert(NULL, NULL);

        pthread_mutex_lock(&work->lock);
        work->slow_running -= job->slow;
        work->pending--;
        job->state = DONE;
        job->db = NULL;
        if (job->dropped)
            job_free(job);
        pthread_cond_broadcast(&work->changed);
        eventfd_write(work->fd, 1);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

struct work *work_open(const char *path)
{
    struct work *work = calloc(1, sizeof *work);
    sigset_t all, old;
    pthread_condattr_t attributes;

    if (!work)
        return NULL;
    work->last = &work->first;
    work->path = strdup(path);
    work->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&work->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&work->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    /* Signals are for the thread that has the terminal. */
    sigfillset(&all);
    for (size_t i = 0; i < 5; i++)
        sigdelset(&all, (int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (work->started < THREADS) {
        struct thread_argument *argument = malloc(sizeof *argument);
        if (!argument)
            break;
        *argument = (struct thread_argument){work, work->started};
        if (!(work->dbs[work->started] = connect(path)) ||
            pthread_create(&work->threads[work->started], NULL, work_thread, argument) != 0) {
            free(argument);
            break;
        }
        work->started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (work->started < THREADS || work->fd < 0) {
        work_close(work);
        return NULL;
    }
    return work;
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
        pthread_join(work->threads[i], NULL);
    /* Those that were dropped while they waited have no other owner. */
    while (work->first) {
        struct job *job = work->first;
        work->first = job->next;
        if (job->dropped)
            job_free(job);
    }
    for (int i = 0; i < THREADS; i++)
        db_close(work->dbs[i]);
    if (work->fd >= 0)
        close(work->fd);
    pthread_cond_destroy(&work->changed);
    pthread_mutex_destroy(&work->lock);
    free(work->path);
    free(work);
}

void work_reconnect(struct work *work)
{
    pthread_mutex_lock(&work->lock);
    atomic_fetch_add(&work->generation, 1);
    pthread_mutex_unlock(&work->lock);
}

void work_start(struct work *work, struct job *job)
{
    pthread_mutex_lock(&work->lock);
    job->state = WAITING;
    job->next = NULL;
    *work->last = job;
    work->last = &job->next;
    work->pending++;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

bool work_done(struct work *work, struct job *job)
{
    bool done;

    pthread_mutex_lock(&work->lock);
    done = job->state == DONE;
    pthread_mutex_unlock(&work->lock);
    return done;
}

void work_cancel(struct work *work, struct job *job)
{
    pthread_mutex_lock(&work->lock);
    atomic_store(&job->cancelled, true);
    if (job->db)
        db_interrupt(job->db);
    pthread_mutex_unlock(&work->lock);
}

void work_drop_(struct work *work, struct job *job)
{
    bool done;

    if (!job)
        return;
    pthread_mutex_lock(&work->lock);
    done = job->state == DONE;
    job->dropped = true;
    atomic_store(&job->cancelled, true);
    if (!done && job->db)
        db_interrupt(job->db);
    pthread_mutex_unlock(&work->lock);
    if (done)
        job_free(job);
}

bool work_wait(struct work *work, struct job *job, int ms)
{
    struct timespec until;
    bool done;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000)
        until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_mutex_lock(&work->lock);
    while (job->state != DONE)
        if (ms < 0)
            pthread_cond_wait(&work->changed, &work->lock);
        else if (pthread_cond_timedwait(&work->changed, &work->lock, &until) != 0)
            break;
    done = job->state == DONE;
    pthread_mutex_unlock(&work->lock);
    return done;
}

int work_fd(const struct work *work)
{
    return work->fd;
}

void work_quiet(struct work *work)
{
    eventfd_t count;

    eventfd_read(work->fd, &count);
}

int work_pending(struct work *work)
{
    int pending;

    pthread_mutex_lock(&work->lock);
    pending = work->pending;
    pthread_mutex_unlock(&work->lock);
    return pending;
}
