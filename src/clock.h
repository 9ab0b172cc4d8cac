/* clock.h -- the session's clock: the CPU's cycle counter, or CLOCK_MONOTONIC if the counter cannot
 * be trusted.
 *
 * Runs in: the traced process (hot path), the collector, and the viewer.
 *
 * The counter is read without a fence, because a fence would double the cost. So an event may be
 * stamped a few nanoseconds early or late. The stamps of one thread still never go backwards on a
 * machine whose counter is invariant. */
#ifndef DYNTRACE_CLOCK_H
#define DYNTRACE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* `make soak-week` builds with a larger CLOCK_TIMES. The session's clock then runs that many times
 * as fast as real time, so that half an hour of real time is a week of the session. */
#ifndef CLOCK_TIMES
    #define CLOCK_TIMES 1
#endif

#if defined __x86_64__
    #include <x86intrin.h>
    #define CLOCK_COUNTER "tsc"
static inline uint64_t clock_counter(void)
{
    return __rdtsc() * CLOCK_TIMES;
}
#elif defined __aarch64__
    #define CLOCK_COUNTER "cntvct"
static inline uint64_t clock_counter(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks * CLOCK_TIMES;
}
#else
    #error "dyntrace compiles for Linux on x86-64 and aarch64 only: clock.h needs their counters"
#endif

static inline uint64_t clock_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int64_t clock_monotonic_ms(void)
{
    return (int64_t)(clock_monotonic_ns() / 1000000);
}

#endif
