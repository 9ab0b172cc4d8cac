/* lib/bounds.c -- limits on the memory and processor time of a reader of traces. See lib/bounds.h.
 *
 * Runs in: the viewer. */
#include "lib/bounds.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lib/list.h"

enum {
    BASE_S = 60,
    BASE_MB = 512,
    S_PER_GB = 600,
    SIZES = 4, /* bytes of memory allowed for each byte of a trace */
    AT_END = 4,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map traces;   /* size of each trace's file, by device and inode */
static int64_t trace_bytes; /* size of all traces together, in bytes */
enum mode { TIMED, ATTENDED, TIMELESS };
static atomic_int mode; /* an enum mode */
static atomic_bool armed, needed;
/* time_ns: the limit. since_ns: the process's processor time when the counting began */
static atomic_llong time_ns, since_ns;
static struct rlimit data_before;
/* text for a signal handler, formatted before a signal comes */
static char name[600], memory_words[300], time_words[300];
static void (*at_end[AT_END])(void);
static atomic_flag ending = ATOMIC_FLAG_INIT;

static int64_t processor_time_used(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Print WORDS and end the process. Safe in a signal handler. */
static _Noreturn void end_process(const char *words)
{
    char line[sizeof name + sizeof memory_words + 20];

    if (atomic_flag_test_and_set(&ending))
        for (;;) /* wait, because another thread is ending the process already */
            pause();
    for (int i = 0; i < AT_END; i++)
        if (at_end[i])
            at_end[i]();
    strcpy(stpcpy(stpcpy(stpcpy(line, "dyntrace: "), name), words), "\n");
    if (write(STDERR_FILENO, line, strlen(line)) < 0)
        _exit(2);
    _exit(2);
}

static void end_when_time_is_over(int unused)
{
    if (mode == TIMED)
        end_process(time_words);
}

/* Start the timer with the time that is left, or stop it if the time is not limited. */
static void set_timer(void)
{
    int64_t left = atomic_load(&time_ns) - (processor_time_used() - atomic_load(&since_ns));
    /* The signal is repeated every second, because a signal during an interactive wait is
     * ignored. */
    struct itimerval timer = {{1, 0}, {0, 0}};

    if (left < 1000000)
        left = 1000000;
    timer.it_value = (struct timeval){left / 1000000000, left / 1000 % 1000000};
    if (mode != TIMED)
        timer = (struct itimerval){0};
    setitimer(ITIMER_PROF, &timer, NULL);
}

/* Read DYNTRACE_LIMITS. Returns false if it says "off". */
static bool read_limits(int64_t *seconds, int64_t *megabytes)
{
    const char *text = getenv("DYNTRACE_LIMITS");
    long long s, mb;
    char rest;

    if (text && sscanf(text, "%lld:%lld%c", &s, &mb, &rest) == 2 && s >= 1 && s <= 1000000 &&
        mb >= 16 && mb <= 1 << 24) {
        *seconds = s;
        *megabytes = mb;
    }
    return !text || strcmp(text, "off") != 0;
}

static void set_memory_limit(int64_t bytes)
{
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer's shadow memory alone would exceed the limit */
    struct rlimit limit = data_before;
    if (limit.rlim_max == RLIM_INFINITY || (rlim_t)bytes < limit.rlim_max)
        limit.rlim_cur = (rlim_t)bytes;
    if (data_before.rlim_cur == RLIM_INFINITY || limit.rlim_cur < data_before.rlim_cur)
        setrlimit(RLIMIT_DATA, &limit);
#endif
}

/* Return how many bytes of disk a file takes. Its size would not do: a sparse file may claim any
 * size. */
static int64_t allocated_bytes(const struct stat *st)
{
    int64_t blocks = (int64_t)st->st_blocks * 512;

    return blocks < st->st_size ? blocks : st->st_size;
}

void bounds_set_for_trace(const char *path)
{
    struct sigaction action = {.sa_handler = end_when_time_is_over, .sa_flags = SA_RESTART};
    int64_t seconds = BASE_S;
    int64_t megabytes = BASE_MB;
    int64_t bytes, *known;
    char *log, *safe;
    struct stat file, logged;

    if (!read_limits(&seconds, &megabytes) || stat(path, &file) != 0)
        return;
    log = say_print("%s-wal", path);
    bytes = allocated_bytes(&file) + (stat(log, &logged) == 0 ? allocated_bytes(&logged) : 0);
    free(log);
    safe = say_escape(path, strnlen(path, 140));
    pthread_mutex_lock(&lock);
    known = map_put(&traces, (int64_t)(file.st_dev << 48 ^ file.st_ino));
    trace_bytes += bytes - *known; /* add only the growth, because this trace was counted before */
    *known = bytes;
    seconds += trace_bytes / 1000000 * S_PER_GB / 1000;
    megabytes += trace_bytes / 1000000 * SIZES;
    snprintf(name, sizeof name, "%s: ", safe);
    snprintf(time_words, sizeof time_words,
             "took more than %lld s of processor time, which no trace of its size needs, so "
             "reading it was ended; DYNTRACE_LIMITS=off lifts the limit",
             (long long)seconds);
    snprintf(memory_words, sizeof memory_words,
             "asks for more than %lld MB of memory, which no trace of its size needs, so reading "
             "it was ended; DYNTRACE_LIMITS=off lifts the limit",
             (long long)megabytes);
    if (!armed) {
        getrlimit(RLIMIT_DATA, &data_before);
        sigaction(SIGPROF, &action, NULL);
    }
    armed = true;
    set_memory_limit(megabytes * 1000000);
    atomic_store(&time_ns, seconds * 1000000000);
    set_timer();
    pthread_mutex_unlock(&lock);
    free(safe);
}

void bounds_lift_time_limit(void)
{
    mode = TIMELESS;
    if (armed)
        set_timer();
}

void bounds_wait_for_interrupt(void)
{
    atomic_store(&since_ns, processor_time_used());
    if (atomic_exchange(&mode, ATTENDED) != ATTENDED && armed)
        set_timer();
}

const char *bounds_get_time_message(void)
{
    bool over = armed && mode == ATTENDED &&
                processor_time_used() - atomic_load(&since_ns) > atomic_load(&time_ns);

    return over ? time_words : NULL;
}

void bounds_end_without_memory(void)
{
    if (armed)
        end_process(memory_words);
    if (needed)
        end_process("out of memory");
}

void bounds_allow_memory_failure(bool is)
{
    needed = is;
}

void bounds_call_at_end(void (*call)(void))
{
    for (int i = 0; i < AT_END && at_end[i] != call; i++)
        if (!at_end[i]) {
            at_end[i] = call;
            break;
        }
}

void bounds_reset_in_child(void)
{
    if (armed)
        setrlimit(RLIMIT_DATA, &data_before);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);

static void *end_without_memory(void *made, size_t wanted)
{
    if (!made && wanted)
        bounds_end_without_memory();
    return made;
}

void *__wrap_malloc(size_t size)
{
    return end_without_memory(__real_malloc(size), size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return end_without_memory(__real_calloc(count, size), count && size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return end_without_memory(__real_realloc(old, size), size);
}

char *__wrap_strdup(const char *text)
{
    return end_without_memory(__real_strdup(text), 1);
}
