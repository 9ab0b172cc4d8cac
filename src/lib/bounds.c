/* lib/bounds.c -- how much memory and processor time a reader of traces may take. See lib/bounds.h.
 *
 * Runs in: the viewer. */
#include "lib/bounds.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lib/say.h"

enum {
    BASE_S = 60,
    BASE_MB = 512,
    S_PER_GB = 600,
    SIZES = 4,          /* bytes of memory for each byte of a trace */
    AT_END = 4,
    TRACES = 64,        /* told apart; of more than these the later ones count each time they are opened */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace {
    dev_t device;
    ino_t inode;
} traces[TRACES];
static int trace_count;
static int64_t trace_bytes;             /* of all of them */
static atomic_bool armed, attended, timeless, needed;
static atomic_llong time_ns, since_ns;  /* the bound, and where it counts from */
static struct rlimit data_before;
static char memory_text[700], time_text[700]; /* whole lines, made beforehand: they are said from a signal handler */
static size_t time_words;               /* where the words begin in time_text */
static void (*at_end[AT_END])(void);
static atomic_flag ending = ATOMIC_FLAG_INIT;

static int64_t time_used(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Say LINE and end. Safe in a signal handler. */
static _Noreturn void end(const char *line)
{
    if (atomic_flag_test_and_set(&ending))
        for (;;) /* another thread is at it */
            pause();
    for (int i = 0; i < AT_END; i++)
        if (at_end[i])
            at_end[i]();
    if (write(STDERR_FILENO, line, strlen(line)) < 0)
        _exit(2);
    _exit(2);
}

static void on_time(int unused)
{
    (void)unused;
    if (!attended && !timeless)
        end(time_text);
}

/* The signal after the rest of the time, or none. */
static void timer_set(void)
{
    int64_t left = atomic_load(&time_ns) - (time_used() - atomic_load(&since_ns));
    struct itimerval timer = {{1, 0}, {0, 0}}; /* again each second: one that came while attended is forgotten */

    if (left < 1000000)
        left = 1000000;
    timer.it_value = (struct timeval){left / 1000000000, left / 1000 % 1000000};
    if (attended || timeless)
        timer = (struct itimerval){0};
    setitimer(ITIMER_PROF, &timer, NULL);
}

/* DYNTRACE_LIMITS, if it says something else. False: there are none. */
static bool limits_read(int64_t *seconds, int64_t *megabytes)
{
    const char *text = getenv("DYNTRACE_LIMITS");
    long long s, mb;
    char rest;

    if (text && sscanf(text, "%lld:%lld%c", &s, &mb, &rest) == 2 && s >= 1 && s <= 1000000 && mb >= 16 &&
        mb <= 1 << 24) {
        *seconds = s;
        *megabytes = mb;
    }
    return !text || strcmp(text, "off") != 0;
}

static void memory_set(int64_t bytes)
{
    sqlite3_hard_heap_limit64(bytes / 4 * 3);
#ifndef __SANITIZE_ADDRESS__ /* whose shadow is all of the address space */
    struct rlimit limit = data_before;
    if (limit.rlim_max == RLIM_INFINITY || (rlim_t)bytes < limit.rlim_max)
        limit.rlim_cur = (rlim_t)bytes;
    if (data_before.rlim_cur == RLIM_INFINITY || limit.rlim_cur < data_before.rlim_cur)
        setrlimit(RLIMIT_DATA, &limit);
#endif
}

/* What a file really takes on the disk: one with holes may claim any size. */
static int64_t bytes_of(const struct stat *st)
{
    int64_t blocks = (int64_t)st->st_blocks * 512;

    return blocks < st->st_size ? blocks : st->st_size;
}

/* The lines that are said at a bound, of a trace at PATH. */
static void texts_make(const char *path, int64_t seconds, int64_t megabytes)
{
    char *safe = say_escape(path, strnlen(path, 200));

    time_words = (size_t)snprintf(time_text, sizeof time_text, "dyntrace: %s: ", safe);
    snprintf(time_text + time_words, sizeof time_text - time_words,
             "took more than %lld s of processor time, which no trace of its size needs, so reading it was ended; "
             "DYNTRACE_LIMITS=off lifts the limit\n", (long long)seconds);
    snprintf(memory_text, sizeof memory_text,
             "dyntrace: %s: asks for more than %lld MB of memory, which no trace of its size needs, so reading it was ended; "
             "DYNTRACE_LIMITS=off lifts the limit\n", safe, (long long)megabytes);
    free(safe);
}

void bounds_trace(const char *path)
{
    struct sigaction action = {.sa_handler = on_time, .sa_flags = SA_RESTART};
    int64_t seconds = BASE_S, megabytes = BASE_MB, bytes;
    struct stat st;
    bool known = false;
    char *log;

    if (!limits_read(&seconds, &megabytes) || stat(path, &st) != 0)
        return;
    bytes = bytes_of(&st);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < trace_count && !known; i++)
        known = traces[i].device == st.st_dev && traces[i].inode == st.st_ino;
    if (!known && trace_count < TRACES)
        traces[trace_count++] = (struct trace){st.st_dev, st.st_ino};
    log = say_print("%s-wal", path);
    if (stat(log, &st) == 0)
        bytes += bytes_of(&st);
    free(log);
    /* One that is opened once more may have grown since. */
    trace_bytes = known ? (bytes > trace_bytes ? bytes : trace_bytes) : trace_bytes + bytes;
    seconds += trace_bytes / 1000000 * S_PER_GB / 1000;
    megabytes += trace_bytes / 1000000 * SIZES;
    texts_make(path, seconds, megabytes);
    if (!armed)
        getrlimit(RLIMIT_DATA, &data_before);
    memory_set(megabytes * 1000000);
    atomic_store(&time_ns, seconds * 1000000000);
    if (!armed)
        sigaction(SIGPROF, &action, NULL);
    armed = true;
    timer_set();
    pthread_mutex_unlock(&lock);
}

void bounds_no_time(void)
{
    timeless = true;
    if (armed)
        timer_set();
}

void bounds_attended(void)
{
    bool before = atomic_exchange(&attended, true);

    atomic_store(&since_ns, time_used());
    if (armed && !before)
        timer_set();
}

bool bounds_time_over(void)
{
    return armed && attended && !timeless && time_used() - atomic_load(&since_ns) > atomic_load(&time_ns);
}

const char *bounds_time_words(void)
{
    return time_text + time_words;
}

void bounds_memory_over(void)
{
    if (armed)
        end(memory_text);
    if (needed)
        end("dyntrace: out of memory\n");
}

void bounds_memory_needed(bool is)
{
    needed = is;
}

void bounds_at_end(void (*call)(void))
{
    for (int i = 0; i < AT_END && at_end[i] != call; i++)
        if (!at_end[i]) {
            at_end[i] = call;
            break;
        }
}

void bounds_child(void)
{
    if (armed)
        setrlimit(RLIMIT_DATA, &data_before);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);

static void *given(void *made, size_t wanted)
{
    if (!made && wanted)
        bounds_memory_over();
    return made;
}

void *__wrap_malloc(size_t size)
{
    return given(__real_malloc(size), size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return given(__real_calloc(count, size), count && size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return given(__real_realloc(old, size), size);
}

char *__wrap_strdup(const char *text)
{
    return given(__real_strdup(text), 1);
}
