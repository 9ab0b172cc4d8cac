/* lib/times.h -- computes with the times of a trace without overflow.
 *
 * Runs in: the viewer. A trace's times may be any 64-bit numbers. */
#ifndef DYNTRACE_TIMES_H
#define DYNTRACE_TIMES_H

#include <stdint.h>
#include <string.h>

/* Return how many nanoseconds the unit WORD has, such as "ms" (BYTES long); 0 if it is not a unit
 * that a user may type. */
static inline double times_parse_unit(const char *word, size_t bytes)
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

/* Return A + B, or the nearest int64_t if the sum overflows. */
static inline int64_t times_add(int64_t a, int64_t b)
{
    int64_t made;

    return __builtin_add_overflow(a, b, &made) ? (a < 0 ? INT64_MIN : INT64_MAX) : made;
}

static inline int64_t times_subtract(int64_t a, int64_t b)
{
    int64_t made;

    return __builtin_sub_overflow(a, b, &made) ? (a < b ? INT64_MIN : INT64_MAX) : made;
}

/* Return END - START. Returns 0 if END is before START, or if the difference overflows. */
static inline int64_t times_span_or_zero(int64_t start, int64_t end)
{
    int64_t made;

    return end < start || __builtin_sub_overflow(end, start, &made) ? 0 : made;
}

#endif
