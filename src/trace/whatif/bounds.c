/* trace/whatif/bounds.c -- bounds of a prediction: "1 to 4 compiles". See trace/whatif/whatif.h.
 *
 * trace/whatif/decide.c marks a call as undecided when its outcome depends on something that the
 * trace does not have, and whatever depends on that call as well. So a call that is not marked
 * comes out as predicted, however the marked ones do:
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
    return whatif_range_is_exact(&f->compiles) && whatif_range_is_exact(&f->hits) &&
           whatif_range_is_exact(&f->eager);
}

void whatif_range_add(struct whatif_range *sum, const struct whatif_range *more)
{
    bool bounded = sum->high != WHATIF_NO_BOUND && more->high != WHATIF_NO_BOUND;

    sum->low += more->low;
    sum->high = bounded ? sum->high + more->high : WHATIF_NO_BOUND;
}

char *whatif_range_text(char text[WHATIF_RANGE_TEXT], const struct whatif_range *range)
{
    if (whatif_range_is_exact(range))
        snprintf(text, WHATIF_RANGE_TEXT, "%" PRId64, range->low);
    else if (range->high == WHATIF_NO_BOUND)
        snprintf(text, WHATIF_RANGE_TEXT, "%" PRId64 " or more", range->low);
    else
        snprintf(text, WHATIF_RANGE_TEXT, "%" PRId64 " to %" PRId64, range->low, range->high);
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

void bounds_call(struct bounds *b, const struct decided *d)
{
    bool certain = !d->undecided && !d->trusting && !b->open && !b->lost;
    bool possible = !certain && d->compilable && !d->settled;
    bool recorded = d->recorded && d->alike;

    if (possible && recorded && is_counted(b, d->class_))
        possible = false;
    if (recorded && (possible || (certain && d->outcome == OUTCOME_COMPILED)))
        *list_add(&b->compiled) = d->class_;
    add(&b->compiles, certain && d->outcome == OUTCOME_COMPILED, possible);
    add(&b->hits, certain && d->outcome == OUTCOME_HIT, !certain);
    add(&b->eager, certain && d->outcome != WHATIF_GONE && outcome_facts[d->outcome].python,
        !certain);
    b->open = b->open || d->trusting || (possible && !d->recorded);
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

void bounds_end(struct bounds *b, int64_t most, struct whatif_function *f)
{
    if (most >= b->compiles.low && most < b->compiles.high)
        b->compiles.high = most;
    whatif_range_add(&f->compiles, &b->compiles);
    whatif_range_add(&f->hits, &b->hits);
    whatif_range_add(&f->eager, &b->eager);
    list_free(&b->compiled);
}
