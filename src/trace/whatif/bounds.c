/* trace/whatif/bounds.c -- bounds of a prediction: "1 to 4 compiles". See trace/whatif/whatif.h.
 *
 * trace/whatif/decide.c marks a call as undecided when its outcome depends on something that the
 * trace does not have, or on another undecided call. So a call that is not marked ends as
 * predicted, however the marked ones end:
 *
 *     at least   the calls that are not marked
 *     at most    these, and each marked call that may come out so
 *
 * Two more things are in the bounds. A compile that was not recorded may give no code: then the
 * function is given up, and none of its later calls is certain to be looked up. And its code may
 * take other calls than predicted. So from the first such compile on (`open`) nothing is certain;
 * a call for which an entry is there can only not be compiled. A reset ends that.
 *
 * Where the trace has no lookup of some calls there is no upper bound. */
#include <inttypes.h>

#include "trace/whatif/like.h"

bool whatif_is_exact(const struct whatif_function *f)
{
    const struct whatif_range *parts[] = {&f->compiles, &f->hits, &f->eager};

    for (int i = 0; i < 3; i++)
        if (!whatif_range_is_exact(parts[i]))
            return false;
    return true;
}

void whatif_range_add(struct whatif_range *sum, const struct whatif_range *more)
{
    bool bounded = sum->high != WHATIF_NO_BOUND && more->high != WHATIF_NO_BOUND;

    sum->low += more->low;
    sum->high = bounded ? sum->high + more->high : WHATIF_NO_BOUND;
}

void ranges_add(struct whatif_function *sum, const struct whatif_function *more)
{
    whatif_range_add(&sum->compiles, &more->compiles);
    whatif_range_add(&sum->hits, &more->hits);
    whatif_range_add(&sum->eager, &more->eager);
    whatif_range_add(&sum->misses, &more->misses);
    whatif_range_add(&sum->calls, &more->calls);
}

void ranges_open(struct whatif_function *f)
{
    f->compiles.high = WHATIF_NO_BOUND;
    f->hits.high = WHATIF_NO_BOUND;
    f->eager.high = WHATIF_NO_BOUND;
    f->misses.high = WHATIF_NO_BOUND;
    f->calls.high = WHATIF_NO_BOUND;
}

char *whatif_range_text(char text[WHATIF_RANGE_TEXT], const struct whatif_range *range)
{
    int bytes = snprintf(text, WHATIF_RANGE_TEXT, "%" PRId64, range->low);
    size_t room = WHATIF_RANGE_TEXT - (size_t)bytes;

    if (range->high == WHATIF_NO_BOUND)
        snprintf(text + bytes, room, "+");
    else if (!whatif_range_is_exact(range))
        snprintf(text + bytes, room, "-%" PRId64, range->high);
    return text;
}

static void add(struct whatif_range *range, bool certain, bool possible)
{
    range->low += certain;
    range->high += certain || possible;
}

/* May a call of CLASS_, that of a recorded entry, be compiled though B counts a compile for it
 * already? No: that made the entry, which takes all calls of its class while it lives. */
static bool is_counted(const struct bounds *b, uint32_t class_)
{
    for (size_t i = 0; i < b->compiled.count; i++)
        if (b->compiled.at[i] == class_)
            return true;
    return false;
}

/* May D be compiled, though it is not certain how it ends? */
static bool may_compile(const struct bounds *b, const struct decided *d, bool recorded)
{
    if (!d->compilable || d->settled)
        return false;
    return !recorded || !is_counted(b, d->class_);
}

void bounds_call(struct bounds *b, struct decided *d)
{
    bool doubtful = b->open || b->lost;
    bool certain = !d->undecided && !d->trusting && !doubtful;
    bool recorded = d->recorded && d->alike;
    bool possible = !certain && may_compile(b, d, recorded);
    bool called = certain && d->outcome != WHATIF_GONE;
    bool hits = called && d->outcome == OUTCOME_HIT;
    bool compiles = called && d->outcome == OUTCOME_COMPILED;
    bool missed = called && outcome_facts[d->outcome].missed;
    bool python = called && outcome_facts[d->outcome].python;
    bool other = called && !hits && !compiles && !python;

    if (recorded && (possible || compiles))
        *list_add(&b->compiled) = d->class_;
    d->certain = certain;
    d->fresh = d->trusting || (possible && !d->recorded);
    /* without code the function runs as Python */
    d->eager = python;
    if (!certain && (d->runnable || d->limited || doubtful || d->fresh))
        d->eager = true;
    add(&b->calls, called || (d->called && !doubtful), !certain);
    add(&b->hits, hits, !certain && (d->hittable || doubtful));
    add(&b->misses, missed, !certain && !d->settled);
    add(&b->compiles, compiles, possible);
    add(&b->eager, python, d->eager);
    b->others += other || (!certain && d->raising);
    b->open = b->open || d->fresh;
}

void bounds_death(struct bounds *b, uint32_t class_)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->compiled.count; i++)
        if (b->compiled.at[i] != class_)
            b->compiled.at[kept++] = b->compiled.at[i];
    b->compiled.count = kept;
}

void bounds_reset(struct bounds *b)
{
    b->open = false;
    b->compiled.count = 0;
}

/* Raise the lower bound of PART, one kind of CALLS. At most OTHERS calls are of other kinds, so
 * PART has at least all the rest. */
static void raise_low(struct whatif_range *part, const struct whatif_range *calls, int64_t others)
{
    if (calls->low - others > part->low)
        part->low = calls->low - others;
}

void bounds_end(struct bounds *b, int64_t most, struct whatif_function *f)
{
    struct whatif_function sum = {0};

    if (most >= b->compiles.low && most < b->compiles.high)
        b->compiles.high = most;
    raise_low(&b->hits, &b->calls, b->compiles.high + b->eager.high + b->others);
    raise_low(&b->compiles, &b->calls, b->hits.high + b->eager.high + b->others);
    raise_low(&b->eager, &b->calls, b->hits.high + b->compiles.high + b->others);
    sum.compiles = b->compiles;
    sum.hits = b->hits;
    sum.eager = b->eager;
    sum.misses = b->misses;
    sum.calls = b->calls;
    ranges_add(f, &sum);
    list_free(&b->compiled);
}
