/* trace/whatif/bounds.c -- bounds of a prediction: "1 to 4 compiles". See trace/whatif/whatif.h.
 *
 * trace/whatif/decide.c marks a call as undecided if its outcome depends on data that the trace
 * does not have, or on another undecided call. A call without the mark has the predicted outcome,
 * whatever the marked calls do. So the number of calls with some outcome is
 *
 *     at least   the number of unmarked calls with this outcome
 *     at most    that number plus the marked calls that may have this outcome
 *
 * A compile that was not recorded makes later calls uncertain, too. The compile may give no code:
 * then the function is given up, and later calls may not be looked up. Or calls that were predicted
 * to miss may hit the new code. So after the first such compile (`open`) only one thing is certain:
 * a call for which an entry exists is not compiled. A reset of the cache ends this state.
 *
 * If the simulation makes calls that are not in the trace, there is no upper bound. */
#include <inttypes.h>

#include "trace/whatif/like.h"

bool whatif_is_exact(const struct whatif_function *f)
{
    if (!whatif_range_is_exact(&f->compiles))
        return false;
    if (!whatif_range_is_exact(&f->hits))
        return false;
    return whatif_range_is_exact(&f->eager);
}

void whatif_range_add(struct whatif_range *sum, const struct whatif_range *more)
{
    sum->low += more->low;
    if (sum->high == WHATIF_NO_BOUND || more->high == WHATIF_NO_BOUND)
        sum->high = WHATIF_NO_BOUND;
    else
        sum->high += more->high;
}

void ranges_add(struct whatif_function *sum, const struct whatif_function *more)
{
    whatif_range_add(&sum->compiles, &more->compiles);
    whatif_range_add(&sum->hits, &more->hits);
    whatif_range_add(&sum->eager, &more->eager);
    whatif_range_add(&sum->misses, &more->misses);
    whatif_range_add(&sum->calls, &more->calls);
}

void ranges_drop_upper_bounds(struct whatif_function *f)
{
    f->compiles.high = WHATIF_NO_BOUND;
    f->hits.high = WHATIF_NO_BOUND;
    f->eager.high = WHATIF_NO_BOUND;
    f->misses.high = WHATIF_NO_BOUND;
    f->calls.high = WHATIF_NO_BOUND;
}

char *whatif_format_range(char text[WHATIF_RANGE_TEXT], const struct whatif_range *range)
{
    int bytes = snprintf(text, WHATIF_RANGE_TEXT, "%" PRId64, range->low);
    size_t room = WHATIF_RANGE_TEXT - (size_t)bytes;

    if (range->high == WHATIF_NO_BOUND)
        snprintf(text + bytes, room, "+");
    else if (!whatif_range_is_exact(range))
        snprintf(text + bytes, room, "-%" PRId64, range->high);
    return text;
}

static void add_call_to_range(struct whatif_range *range, bool certain, bool possible)
{
    if (certain)
        range->low++;
    if (certain || possible)
        range->high++;
}

/* Have the bounds counted a compile for CLASS_, a class that has a recorded entry? If so, no other
 * call of the class is compiled, because all of them hit the entry as long as it lives. */
static bool has_counted_compile(const struct bounds *b, uint32_t class_)
{
    list_each(compiled, &b->compiled)
        if (*compiled == class_)
            return true;
    return false;
}

/* May the call DECIDED, whose outcome is not certain, be compiled? */
static bool may_call_compile(const struct bounds *b, const struct decided *d)
{
    bool one_compile = d->recorded && d->alike;

    if (!d->compilable || d->settled)
        return false;
    return !one_compile || !has_counted_compile(b, d->class_);
}

/* Count a call whose outcome is certain in all bounds. */
static void count_certain_call(struct bounds *b, struct decided *d)
{
    bool hits = d->outcome == OUTCOME_HIT;
    bool compiles = d->outcome == OUTCOME_COMPILED;

    if (d->outcome == WHATIF_GONE) {
        d->eager = false;
        add_call_to_range(&b->calls, d->called, false);
        return;
    }
    d->eager = outcome_facts[d->outcome].python;
    add_call_to_range(&b->calls, true, false);
    add_call_to_range(&b->hits, hits, false);
    add_call_to_range(&b->misses, outcome_facts[d->outcome].missed, false);
    add_call_to_range(&b->compiles, compiles, false);
    add_call_to_range(&b->eager, d->eager, false);
    if (!hits && !compiles)
        b->others += !d->eager;
}

/* Count a call with several possible outcomes in the bounds. COMPILES: one of these
 * outcomes is a compile. */
static void count_uncertain_call(struct bounds *b, struct decided *d, bool compiles)
{
    bool doubtful = b->open || b->lost;

    d->eager = d->runnable || d->limited || doubtful;
    /* the compile may give no code, and then later calls of the function run as Python */
    if (d->fresh)
        d->eager = true;
    add_call_to_range(&b->calls, d->called && !doubtful, true);
    add_call_to_range(&b->hits, false, d->hittable || doubtful);
    add_call_to_range(&b->misses, false, !d->settled);
    add_call_to_range(&b->compiles, false, compiles);
    add_call_to_range(&b->eager, false, d->eager);
    b->others += d->raising;
}

void bounds_add_call(struct bounds *b, struct decided *d)
{
    bool doubtful = b->open || b->lost || d->trusting;
    bool compiles, one_compile;

    d->certain = !d->undecided && !doubtful;
    if (d->certain)
        compiles = d->outcome == OUTCOME_COMPILED;
    else
        compiles = may_call_compile(b, d);
    one_compile = d->recorded && d->alike;
    if (compiles && one_compile)
        *list_add(&b->compiled) = d->class_;
    d->fresh = d->trusting;
    if (d->certain) {
        count_certain_call(b, d);
    } else {
        if (compiles && !d->recorded)
            d->fresh = true;
        count_uncertain_call(b, d, compiles);
    }
    b->open = b->open || d->fresh;
}

void bounds_add_death(struct bounds *b, uint32_t class_)
{
    size_t kept = 0;

    list_each(compiled, &b->compiled) {
        if (*compiled == class_)
            continue;
        b->compiled.at[kept] = *compiled;
        kept++;
    }
    b->compiled.count = kept;
}

void bounds_reset(struct bounds *b)
{
    b->open = false;
    b->compiled.count = 0;
}

/* Raise the lower bound of PART, the calls with one certain outcome. At most OTHERS of CALLS have
 * another outcome, so the rest of CALLS belong to PART. */
static void raise_lower_bound(struct whatif_range *part, const struct whatif_range *calls,
                              int64_t others)
{
    int64_t rest = calls->low - others;

    if (rest > part->low)
        part->low = rest;
}

void bounds_finish(struct bounds *b, int64_t most, struct whatif_function *f)
{
    struct whatif_range *hits = &b->hits;
    struct whatif_range *compiles = &b->compiles;
    struct whatif_range *eager = &b->eager;
    struct whatif_function sum = {0};

    if (most >= compiles->low && most < compiles->high)
        compiles->high = most;
    raise_lower_bound(hits, &b->calls, compiles->high + eager->high + b->others);
    raise_lower_bound(compiles, &b->calls, hits->high + eager->high + b->others);
    raise_lower_bound(eager, &b->calls, hits->high + compiles->high + b->others);
    sum.compiles = *compiles;
    sum.hits = *hits;
    sum.eager = *eager;
    sum.misses = b->misses;
    sum.calls = b->calls;
    ranges_add(f, &sum);
    list_free(&b->compiled);
}
