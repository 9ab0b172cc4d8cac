/* lib/times.h -- sums and durations of a trace's times, which may be any number.
 *
 * Runs in: the viewer. Units are those that a user types, too. */
#ifndef DYNTRACE_TIMES_H
#define DYNTRACE_TIMES_H

#include <stdint.h>
#include <string.h>

/* Nanoseconds of the unit WORD (BYTES long); 0: not a unit. */
static inline double times_unit(const char *word, size_t bytes)
{
    static const struct {
        const char *word;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].word) == bytes && !memcmp(units[i].word, word, bytes))
            return units[i].ns;
    return 0;
}

/* A + B, saturating. */
static inline int64_t times_sum(int64_t a, int64_t b)
{
    int64_t made;

    return __builtin_add_overflow(a, b, &made) ? (a < 0 ? INT64_MIN : INT64_MAX) : made;
}

static inline int64_t times_difference(int64_t a, int64_t b)
{
    int64_t made;

    return __builtin_sub_overflow(a, b, &made) ? (a < b ? INT64_MIN : INT64_MAX) : made;
}

/* END - START; 0 if END is not after START, or the difference is absurdly long. */
static inline int64_t times_span(int64_t start, int64_t end)
{
    int64_t made;

    return end < start || __builtin_sub_overflow(end, start, &made) ? 0 : made;
}

#endif
