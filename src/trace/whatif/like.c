/* trace/whatif/like.c -- would another call pass an entry's guards? See trace/whatif/like.h.
 *
 * If the call tried the entry in the recording, the answer is the recorded result, unless a setting
 * (dynamic, drop_guard) makes the guard that failed weaker. Otherwise each guard of the entry is
 * evaluated with the values of the call that are in the trace (trace/whatif/facts.c). The answer is
 * no if a guard fails, and yes if all guards hold. Every other answer is a guess, and is reported
 * as a guess. */
#include "trace/whatif/like.h"

#include <math.h>

#include "schema.h"
#include "trace/db.h"

enum { ANY = -2 };

/* ---- does a guard hold under the settings (the knobs)? ------------------- */

/* Return the text behind BASE in SOURCE. Returns NULL if SOURCE does not begin with BASE. */
static const char *text_after(const char *source, const char *base)
{
    size_t bytes = strlen(base);

    return strncmp(source, base, bytes) ? NULL : source + bytes;
}

static bool do_settings_apply_to_code(const struct whatif *w, uint32_t code)
{
    return !w->knobs->codes || w->knobs->codes[code];
}

/* Is SOURCE equal to BASE, or is it a size or stride of BASE? */
static bool is_value_of(const char *source, const char *base)
{
    const char *rest = text_after(source, base);

    if (!rest)
        return false;
    return !*rest || text_after(rest, ".size()") || text_after(rest, ".stride()");
}

/* Do the settings make a dimension of SOURCE dynamic? DIMENSION is its number; -1 means
 * the value itself, ANY means at least one dimension. A source such as "L['x'].size()[0]"
 * belongs to "L['x']". */
static bool is_made_dynamic(const struct whatif *w, uint32_t code, const char *source,
                            int dimension)
{
    if (!do_settings_apply_to_code(w, code))
        return false;
    list_each(d, &w->knobs->dynamic) {
        bool whole = d->dimension < 0 || dimension == ANY;
        bool same = whole || d->dimension == dimension;
        if (same && is_value_of(source, d->source))
            return true;
    }
    return w->knobs->dynamic_all;
}

static bool is_guard_dropped(const struct whatif *w, uint32_t code, const struct guard *g)
{
    if (!w->drops.count || !do_settings_apply_to_code(w, code))
        return false;
    list_each(d, &w->drops) {
        if (strcmp(d->kind, g->kind))
            continue;
        if (!d->source)
            return true;
        if (d->code == code && !strcmp(d->source, g->source))
            return true;
    }
    return false;
}

/* A question that guards answer: would a call of the class OTHER hit the entry of
 * the class MADE? */
struct asked {
    struct whatif *w;
    uint32_t made;
    uint32_t other;
    uint32_t code; /* the code object of the class MADE */
    bool first;    /* the question is about the call that made the entry of the class OTHER */
};

/* Does the guard hold for the call that ASKED is about? */
static enum like does_guard_hold_for_call(const struct asked *a, const struct guard *g)
{
    return guard_holds_for_class(a->w, g, a->other, a->first);
}

/* Return what the trace tells about the value at SOURCE in the call that ASKED is about. */
static struct value value_in_call(const struct asked *a, const char *source)
{
    return value_at_source(a->w, a->other, a->first, source);
}

/* Is SOURCE a parameter, buffer or submodule of a module? torch never makes the sizes of such a
 * value dynamic by itself. */
static bool is_held_by_module(const char *source)
{
    return strstr(source, "._parameters") || strstr(source, "._buffers") ||
           strstr(source, "._modules");
}

bool like_has_dynamic_input(struct whatif *w, uint32_t class_)
{
    const struct like_class *c = class_at(w, class_);
    const struct signature *s = signature_with_id(w, c->signature);

    if (!s)
        return false;
    list_each(part, &s->parts)
        if (is_made_dynamic(w, c->code, part->source, ANY))
            return true;
    return false;
}

/* A and B are guards on the same source. Have they the same kind, and do they expect
 * different values? */
static bool do_guards_expect_other_values(const struct guard *a, const struct guard *b)
{
    return !strcmp(a->kind, b->kind) && strcmp(a->expression, b->expression);
}

/* Do the guards of CODE with the kind and source of ONE expect several values, or did
 * one of them fail? */
static bool find_guard_with_varying_value(struct whatif *w, uint32_t code, const struct guard *one)
{
    const struct guard *before = NULL;

    for (struct look at = {0}; guard_next_on_source(w, code, one->source, &at);) {
        if (*one->kind && strcmp(at.g->kind, one->kind))
            continue;
        if (map_get(&w->failing, at.g->id))
            return true;
        if (before && do_guards_expect_other_values(before, at.g))
            return true;
        before = at.g;
    }
    return false;
}

/* Return find_guard_with_varying_value() for the guard ONE. The result is kept in w->varying. */
static bool has_varying_value(struct whatif *w, uint32_t code, const struct guard *one)
{
    int64_t *known = map_put(&w->varying, one->id);

    if (!one->id || !*known)
        *known = find_guard_with_varying_value(w, code, one) ? 2 : 1;
    return *known == 2;
}

bool like_do_guards_hold(struct whatif *w, uint32_t entry, uint32_t class_, const struct guard *but)
{
    const struct guards *guards = guards_of_class(w, entry);

    list_each(g, guards) {
        enum like like;
        if (g == but)
            continue;
        like = guard_holds_for_class(w, g, class_, true);
        if (like == LIKE_NO)
            return false;
        if (like != LIKE_YES && has_varying_value(w, class_code(w, entry), g))
            return false;
    }
    return true;
}

static bool does_guard_check_value(const struct guard *g)
{
    return g->about == ABOUT_TENSOR || g->about == ABOUT_VALUE;
}

/* G is a condition on a number. Does ENTRY have a guard on this number that failed in the
 * recording, and that the settings drop? */
static bool has_dropped_number(struct whatif *w, uint32_t entry, const struct guard *g)
{
    const struct guards *guards = guards_of_class(w, entry);

    list_each(h, guards) {
        if (!does_guard_check_value(h) || !strstr(g->source, h->source))
            continue;
        if (map_get(&w->failing, h->id) && is_guard_dropped(w, class_code(w, entry), h))
            return true;
    }
    return false;
}

/* Is has_dropped_number() true for the condition G and some recorded entry of CODE? */
static bool find_dropped_number(struct whatif *w, uint32_t code, const struct guard *g)
{
    if (!w->drops.count)
        return false;
    for (uint32_t i = 0; is_recorded(w, i); i++) {
        bool of_code = entry_at(w, i)->code == code;
        if (of_code && has_dropped_number(w, i, g))
            return true;
    }
    return false;
}

/* May the condition G on a number not exist under the settings? It may if a guard on this number
 * failed in the recording, and if the settings drop this guard: torch made the number dynamic
 * because of a recompile, and this recompile does not happen now. */
static bool may_condition_vanish(struct whatif *w, uint32_t code, const struct guard *g)
{
    int64_t *known = map_put(&w->symbols, g->id);
    bool found;

    if (g->id && *known)
        return *known == 2;
    found = find_dropped_number(w, code, g);
    *map_put(&w->symbols, g->id) = found ? 2 : 1;
    return found;
}

/* Does the guard check a number or sizes that may be dynamic under the settings, and that may have
 * another value in the call? */
static bool may_number_differ(const struct asked *a, const struct guard *h)
{
    if (!does_guard_check_value(h))
        return false;
    if (!h->loose && !is_made_dynamic(a->w, a->code, h->source, ANY))
        return false;
    return does_guard_hold_for_call(a, h) != LIKE_YES;
}

/* May the condition G of the entry be another one under the settings? It may if G is a guess,
 * or if it is about a number that may be dynamic now: instead of "5 <= size" the entry may
 * have "n <= size". */
static bool may_condition_differ(const struct asked *a, const struct guard *g)
{
    struct whatif *w = a->w;
    const struct guards *guards;

    if (!g->condition || is_guard_dropped(w, a->code, g))
        return false;
    if (g->loose)
        return true;
    if (w->torch && may_condition_vanish(w, a->code, g))
        return true;
    guards = guards_of_class(w, a->made);
    list_each(h, guards)
        if (may_number_differ(a, h))
            return true;
    return false;
}

/* Does the condition G of ENTRY have the same result for two numbers: A, with which the entry of
 * the class MADE was compiled, and B? The answer is known only if G reads no other number than the
 * one at SOURCE. */
static enum like does_condition_agree(struct whatif *w, uint32_t made, uint32_t entry,
                                      const struct guard *g, const char *source,
                                      const struct value *a, const struct value *b)
{
    enum like of_a, of_b;
    bool known;

    if (g->about != ABOUT_NUMBER || strcmp(g->source, source))
        return LIKE_GUESS_NO;
    of_a = number_is_in_bounds(&g->want, a);
    of_b = number_is_in_bounds(&g->want, b);
    known = of_a != LIKE_GUESS_NO && of_b != LIKE_GUESS_NO;
    if (!known)
        return LIKE_GUESS_NO;
    if (of_a == of_b)
        return LIKE_YES;
    return like_do_guards_hold(w, entry, made, g) ? LIKE_NO : LIKE_GUESS_NO;
}

/* Do the recorded conditions on the number at SOURCE have the same results for two numbers: A, with
 * which the entry of the class MADE was compiled, and B? If the number is dynamic, this entry has
 * the conditions of all recorded entries whose other guards hold for it. If a condition also reads
 * other numbers, its result is not known. */
static enum like do_conditions_agree(struct whatif *w, uint32_t made, const char *source,
                                     const struct value *a, const struct value *b)
{
    enum like like = LIKE_YES;

    for (uint32_t i = 0; like && is_recorded(w, i); i++) {
        const struct guards *guards;
        if (entry_at(w, i)->code != class_code(w, made))
            continue;
        guards = guards_of_class(w, i);
        list_each(g, guards) {
            if (g->condition && strstr(g->source, source))
                like = least(like, does_condition_agree(w, made, i, g, source, a, b));
        }
    }
    return like;
}

/* Is a dimension of SOURCE (DIMENSION -1: the number itself) dynamic in a recorded entry whose
 * guards hold for MADE's call? If so, the guards of this entry show all conditions of the code on
 * this number. The guards of an entry for one fixed number do not. */
static bool is_dynamic_in_fitting_entry(struct whatif *w, uint32_t made, const char *source,
                                        int dimension)
{
    uint32_t fixed = REPLAY_NONE; /* the last entry that has a guard on one fixed number */

    for (struct look at = {0}; guard_next_on_source(w, class_code(w, made), source, &at);) {
        const struct shape *sizes = &at.g->want.sizes;
        bool symbol;
        if (at.g->about == ABOUT_VALUE)
            /* guards on one source are sorted by kind, so the guard on the value comes before the
             * guard on the type */
            fixed = at.entry;
        if (dimension < 0)
            symbol = at.g->about == ABOUT_TYPE && at.entry != fixed;
        else
            symbol = dimension < sizes->rank && sizes->size[dimension] == SIZE_ANY;
        if (symbol && like_do_guards_hold(w, at.entry, made, NULL))
            return true;
    }
    return false;
}

/* Return do_conditions_agree() for DIMENSION of the tensor at SOURCE, which guards write as
 * .size()[N] or .shape[N]. */
static enum like do_size_conditions_agree(struct whatif *w, uint32_t made, const char *source,
                                          int dimension, const struct value *a,
                                          const struct value *b)
{
    static const char *const ways[] = {"%.500s.size()[%d]", "%.500s.shape[%d]"};
    enum like like = LIKE_YES;
    char number[600];

    for (int i = 0; i < 2 && like != LIKE_NO; i++) {
        snprintf(number, sizeof number, ways[i], source, dimension);
        like = least(like, do_conditions_agree(w, made, number, a, b));
    }
    return like;
}

/* Are both numbers known, and are they equal? */
static bool is_same_number(const struct value *a, const struct value *b)
{
    bool known = a->low == a->high && b->low == b->high;

    return known && a->low == b->low;
}

/* If the settings make a number dynamic, would a call with the number B hit the entry that was made
 * for the number A? The number is DIMENSION of SOURCE, or SOURCE itself if DIMENSION is -1. */
static enum like would_dynamic_value_pass(struct whatif *w, uint32_t made, const char *source,
                                          int dimension, const struct value *a,
                                          const struct value *b)
{
    bool size = dimension >= 0;
    bool is_small;
    enum like like;

    assume(w, ASSUMED_DYNAMIC);
    if (is_same_number(a, b))
        return LIKE_YES;
    /* On a size of 0 or 1, mark_dynamic() raises or warns, depending on torch's version. Plain
     * numbers do not always behave like that. */
    is_small = a->high <= 1 || b->high <= 1;
    if (w->torch && is_small)
        return size && w->knobs->dynamic_all ? LIKE_NO : LIKE_GUESS_NO;
    if (size)
        like = do_size_conditions_agree(w, made, source, dimension, a, b);
    else
        like = do_conditions_agree(w, made, source, a, b);
    if (like != LIKE_YES || !w->torch)
        return like;
    if (b->low <= 1 || !is_dynamic_in_fitting_entry(w, made, source, dimension))
        return LIKE_GUESS_YES;
    return LIKE_YES;
}

static struct value make_number_value(int64_t size)
{
    if (size == SIZE_ANY)
        return (struct value){.low = 0, .high = INFINITY};
    return (struct value){.low = (double)size, .high = (double)size};
}

/* May torch have made dimension I of the tensor of guard G dynamic by itself, because its size was
 * first X and then Y? */
static bool may_be_automatic(const struct whatif *w, const struct guard *g, int i, int64_t x,
                             int64_t y)
{
    bool loose = w->torch && g->loose & 1u << i;

    return loose && x > 1 && y != 0 && y != 1;
}

/* If the settings make dimension I of the tensor at SOURCE dynamic, does the call pass? The size
 * was X when the entry was made, and is Y in the call. */
static enum like would_dynamic_size_pass(const struct asked *a, const char *source, int i,
                                         int64_t x, int64_t y)
{
    struct value then = make_number_value(x);
    struct value now = make_number_value(y);
    char size[600];

    if (y == SIZE_ANY) {
        snprintf(size, sizeof size, "%.500s.size()[%d]", source, i);
        now = value_in_call(a, size);
    }
    return would_dynamic_value_pass(a->w, a->made, source, i, &then, &now);
}

/* Does the guard, which checks a tensor, hold for the call? Sizes that the settings or torch itself
 * may have made dynamic may differ. */
static enum like would_tensor_guard_pass(const struct asked *a, const struct guard *g)
{
    struct whatif *w = a->w;
    const struct shape *wanted = &g->want.sizes;
    struct value v = value_in_call(a, g->source);
    struct guard weaker = *g;
    bool held = w->knobs->dynamic_all && is_held_by_module(g->source);
    bool settable = w->weaker && !held;
    enum like like = LIKE_YES;

    weaker.id = 0; /* no recorded call failed this weaker guard, because it was not recorded */
    for (int i = 0; i < wanted->rank; i++) {
        int64_t x = wanted->size[i];
        int64_t y = v.sizes.size[i];
        bool set = settable && is_made_dynamic(w, a->code, g->source, i);
        if (v.sizes.rank != wanted->rank)
            break;
        if (x == SIZE_ANY || x == y)
            continue;
        if (set) {
            like = least(like, would_dynamic_size_pass(a, g->source, i, x, y));
            weaker.want.sizes.size[i] = SIZE_ANY;
        } else if (may_be_automatic(w, g, i, x, y)) {
            /* an entry's guards do not show which sizes torch will make dynamic in
             * the next entry */
            assume(w, ASSUMED_AUTOMATIC);
            like = least(like, LIKE_GUESS_YES);
            weaker.want.sizes.size[i] = SIZE_ANY;
        }
    }
    return least(like, does_guard_hold_for_call(a, &weaker));
}

/* Is SOURCE a plain variable such as L['x']? */
static bool is_variable(const char *source)
{
    const char *end = text_after(source, "L['") ? strstr(source, "']") : NULL;

    return end && !end[2];
}

/* If the settings make the number dynamic that the guard G checks, would a call with the number V
 * hit MADE's entry? */
static enum like would_dynamic_number_pass(struct whatif *w, uint32_t made, const struct guard *g,
                                           const struct value *v)
{
    bool all = w->knobs->dynamic_all;
    bool is_float = !strcmp(v->type, "float");

    if (all) {
        if (is_float && w->floats_later)
            return LIKE_GUESS_NO;
        /* some versions of torch make a number in a container dynamic, too */
        if (!is_variable(g->source))
            return g->loose ? LIKE_GUESS_NO : LIKE_NO;
    }
    if (is_float) { /* torch treats the integers 0 and 1 specially, but no floats */
        assume(w, ASSUMED_DYNAMIC);
        return do_conditions_agree(w, made, g->source, &g->want, v);
    }
    return would_dynamic_value_pass(w, made, g->source, -1, &g->want, v);
}

/* The guard checks one number, which the settings, or torch itself, may have made dynamic. Does the
 * guard let the call pass because of that? */
static enum like would_number_guard_pass(const struct asked *a, const struct guard *g)
{
    struct whatif *w = a->w;
    struct value v = value_in_call(a, g->source);
    bool set = w->weaker && is_made_dynamic(w, a->code, g->source, -1);

    if (!v.type || !g->want.type)
        return LIKE_NO;
    if (strcmp(v.type, g->want.type))
        return LIKE_NO;
    if (set && !is_held_by_module(g->source))
        return would_dynamic_number_pass(w, a->made, g, &v);
    if (!w->torch || !g->loose) /* torch itself makes plain numbers dynamic, even 0 and 1 */
        return LIKE_NO;
    assume(w, ASSUMED_AUTOMATIC);
    return LIKE_GUESS_YES;
}

/* Does SOURCE contain the variable at the start of VARIABLE, which has BYTES bytes, but no
 * attribute of it? For L['d'] the answer is yes with "L['d']" and "list(dict.keys(L['d']))[0]", no
 * with "L['d'].x". */
static bool does_source_contain_variable(const char *source, const char *variable, size_t bytes)
{
    const char *in = memmem(source, strlen(source), variable, bytes);

    if (!in)
        return false;
    return in > source || !in[bytes];
}

/* Return the length of the variable at the beginning of SOURCE: 6 for "L['x'].y". Returns 0 if
 * SOURCE does not begin with a variable, or is nothing but a variable. */
static size_t count_variable_bytes(const char *source)
{
    const char *end = text_after(source, "L['") ? strstr(source, "']") : NULL;

    if (!end || !end[2])
        return 0;
    return (size_t)(end + 2 - source);
}

/* Does a guard of the entry that the settings drop check the variable with which this
 * guard's source begins? If so, this guard was perhaps never evaluated, because the
 * dropped guard failed first. */
static bool may_guard_never_have_run(const struct asked *a, const struct guard *g)
{
    const struct guards *guards = guards_of_class(a->w, a->made);
    size_t bytes = count_variable_bytes(g->source);

    if (!bytes || !a->w->drops.count)
        return false;
    list_each(h, guards) {
        bool gone = is_guard_dropped(a->w, a->code, h);
        if (gone && does_source_contain_variable(h->source, g->source, bytes))
            return true;
    }
    return false;
}

/* The trace does not tell whether the guard G holds. May the simulation assume that it does? It may
 * if recorded calls evaluated G, and if guards of the same kind and source never failed and never
 * expected different values. */
static bool may_assume_holding(const struct asked *a, const struct guard *g)
{
    bool input = is_recorded(a->w, a->other) && text_after(g->source, "L[");

    if (!a->w->steady || input)
        return false;
    return !has_varying_value(a->w, a->code, g) && !may_guard_never_have_run(a, g);
}

/* Does the guard, which the settings do not drop, hold for the call under the settings? */
static enum like does_guard_hold_under_settings(const struct asked *a, const struct guard *g)
{
    enum like like = does_guard_hold_for_call(a, g);
    bool value = g->about == ABOUT_VALUE;
    bool one_number = value && g->want.low == g->want.high;

    if (like == LIKE_YES)
        return like;
    if (g->about == ABOUT_ALIKE && a->w->weaker)
        /* it is not known which guard the entry would have at this source */
        return LIKE_GUESS_NO;
    if (g->about == ABOUT_TENSOR)
        return would_tensor_guard_pass(a, g);
    if (one_number && like == LIKE_NO)
        return would_number_guard_pass(a, g);
    /* the guard failed, and it does not expect a number, so a dynamic number does not help */
    if (like == LIKE_NO && g->want.literal)
        return like;
    if (value && is_made_dynamic(a->w, a->code, g->source, -1)) {
        /* would the call pass the guard with any number? */
        bool any = would_number_guard_pass(a, g) == LIKE_YES;
        return any ? LIKE_YES : LIKE_GUESS_NO;
    }
    return like;
}

/* Does the guard hold for the call under the settings? If the settings drop it, yes. */
static enum like does_guard_pass(const struct asked *a, const struct guard *g)
{
    struct whatif *w = a->w;
    enum like like;

    if (is_guard_dropped(w, a->code, g)) {
        assume(w, ASSUMED_DROPPED);
        return LIKE_YES;
    }
    like = does_guard_hold_under_settings(a, g);
    if (like != LIKE_GUESS_NO)
        return like;
    if (may_assume_holding(a, g)) {
        assume(w, ASSUMED_HIDDEN);
        return LIKE_YES;
    }
    assume(w, strstr(g->kind, "LAMBDA") ? ASSUMED_LAMBDA : ASSUMED_HIDDEN);
    return like;
}

/* Is CLASS_ the oldest recorded entry of its code object? */
static bool is_oldest(const struct whatif *w, uint32_t class_)
{
    for (uint32_t i = 0; i < class_ && is_recorded(w, i); i++)
        if (entry_at(w, i)->code == class_code(w, class_))
            return false;
    return true;
}

/* Do the settings make DIMENSION of SOURCE dynamic? They do not if the tensor is
 * held by a module. */
static bool is_size_made_dynamic(const struct whatif *w, uint32_t code, const char *source,
                                 int dimension)
{
    return is_made_dynamic(w, code, source, dimension) && !is_held_by_module(source);
}

/* A and B are guards on two tensors. X and Y are the values of these tensors in a later call.
 * Returns true if both conditions hold: at the compile, dimension D of A and dimension E of B had
 * equal sizes, so that torch uses one symbol for both; and in the later call the sizes differ. */
static bool is_shared_symbol_split(const struct whatif *w, uint32_t code, const struct guard *a,
                                   int d, const struct guard *b, int e, const struct value *x,
                                   const struct value *y)
{
    int64_t size = a->want.sizes.size[d];
    bool one = size > 1 && size == b->want.sizes.size[e];

    if (!one || x->sizes.size[d] == y->sizes.size[e])
        return false;
    return is_size_made_dynamic(w, code, a->source, d) &&
           is_size_made_dynamic(w, code, b->source, e);
}

/* Is there a symbol (a dynamic size) for sizes of both tensors, those of the guards G and H,
 * although the sizes differ in the call? */
static bool are_symbols_split(const struct asked *a, const struct guard *g, const struct guard *h)
{
    struct value x = value_in_call(a, g->source);
    struct value y = value_in_call(a, h->source);
    int g_rank = g->want.sizes.rank;
    int h_rank = h->want.sizes.rank;

    if (x.sizes.rank != g_rank || y.sizes.rank != h_rank)
        return false;
    for (int d = 0; d < g_rank; d++)
        for (int e = 0; e < h_rank; e++)
            if (is_shared_symbol_split(a->w, a->code, g, d, h, e, &x, &y))
                return true;
    return false;
}

/* Are sizes with the same symbol equal in the call? With dynamic=True, torch uses one symbol for
 * all sizes that were equal at the compile. A later call hits the entry only if they are equal in
 * the call, too. But a size that torch saw to vary before has a symbol of its own. */
static enum like are_shared_sizes_equal(const struct asked *a, const struct guards *guards)
{
    const struct guard *end = guards->at + guards->count;

    list_each(g, guards) {
        if (g->about != ABOUT_TENSOR)
            continue;
        for (const struct guard *h = g; h < end; h++) {
            bool tensor = h->about == ABOUT_TENSOR;
            if (tensor && are_symbols_split(a, g, h))
                return is_oldest(a->w, a->made) ? LIKE_NO : LIKE_GUESS_NO;
        }
    }
    return LIKE_YES;
}

/* In the recording the guard failed for the call. Does it hold under the settings? */
static enum like would_failed_guard_pass(const struct asked *a, const struct guard *g)
{
    bool dynamic = does_guard_check_value(g) && is_made_dynamic(a->w, a->code, g->source, ANY);

    if (!dynamic && !is_guard_dropped(a->w, a->code, g))
        return LIKE_NO;
    return does_guard_pass(a, g);
}

/* Does the evaluator certainly re-evaluate the guard after a miss? To list all causes, it
 * re-evaluates the guards that run no code of the program. If such a guard is not among the
 * causes, it passed. */
static bool is_reevaluated(const struct guard *g)
{
    static const char *const quiet[] = {
        "TYPE_MATCH",    "ID_MATCH",      "NONE_MATCH",     "NOT_NONE",
        "TRUE_MATCH",    "FALSE_MATCH",   "LIST_LENGTH",    "TUPLE_LENGTH",
        "DICT_LENGTH",   "DICT_CONTAINS", "FUNCTION_MATCH", "DICT_NOT_CONTAINS",
        "CLOSURE_MATCH", "BUILTIN_MATCH", "MODULE_MATCH",   "WEAKREF_ALIVE",
    };

    if (!is_variable(g->source))
        return false;
    if (!strcmp(g->kind, "EQUALS_MATCH"))
        return g->want.literal;
    for (size_t i = 0; i < array_count(quiet); i++)
        if (!strcmp(g->kind, quiet[i]))
            return true;
    return false;
}

/* The results of an entry's guards in a call that tried the entry. `guards` maps the
 * row id of a guard to PASSED or FAILED. `all`: the map has every guard that failed and could
 * be re-evaluated. */
struct tried {
    struct map guards;
    bool all;
};
enum { PASSED = 1, FAILED = 2 };

/* In the recording the call tried the entry, with the results TRIED. Does the guard hold
 * under the settings? */
static enum like would_tried_guard_pass(const struct asked *a, const struct guard *g,
                                        const struct tried *tried)
{
    const int64_t *known = map_get(&tried->guards, g->id);

    if (known && *known & FAILED)
        return would_failed_guard_pass(a, g);
    if (known)
        return LIKE_YES;
    if (tried->all && is_reevaluated(g))
        return LIKE_YES;
    return does_guard_pass(a, g);
}

/* Turn a certain answer into a guess: yes into LIKE_GUESS_YES, no into LIKE_GUESS_NO. */
static enum like turn_into_guess(enum like like)
{
    return like >= LIKE_GUESS_YES ? LIKE_GUESS_YES : LIKE_GUESS_NO;
}

/* Do all guards of the entry hold for the call under the settings? TRIED has the recorded results
 * if the call tried the entry, otherwise it is NULL. */
static enum like do_all_guards_pass(const struct asked *a, const struct tried *tried)
{
    struct whatif *w = a->w;
    const struct guards *guards = guards_of_class(w, a->made);
    bool ducks = w->torch && w->knobs->dynamic_all;
    enum like like = LIKE_YES;

    if (guards->unlike)
        return a->made == a->other ? LIKE_GUESS_YES : LIKE_GUESS_NO;
    list_each(g, guards) {
        enum like one = tried ? would_tried_guard_pass(a, g, tried) : does_guard_pass(a, g);
        if (may_condition_differ(a, g))
            one = turn_into_guess(one);
        like = least(like, one);
        if (like == LIKE_NO)
            return LIKE_NO;
    }
    if (ducks && do_settings_apply_to_code(w, a->code))
        like = least(like, are_shared_sizes_equal(a, guards));
    if (like != LIKE_NO)
        assume(w, ASSUMED_SIGNATURE);
    return like;
}

/* ---- does a call hit an entry? ------------------------------------------- */

/* Return the result of the check that LOOKUP made of the entry MADE: LIKE_YES if it passed,
 * LIKE_NO if it failed, LIKE_GUESS_NO if there was no check. *FAILED gets the row id of the
 * guard that failed. */
static enum like find_recorded_result(const struct whatif *w, uint32_t made, uint32_t lookup,
                                      int64_t *failed)
{
    const struct replay_lookup *k = lookup_at(w, lookup);
    const struct replay_check *checks = w->r->checks.at + k->checks;

    if (!is_recorded(w, made))
        return LIKE_GUESS_NO;
    for (uint32_t i = 0; i < k->check_count; i++) {
        if (checks[i].entry != made)
            continue;
        *failed = checks[i].failed;
        return checks[i].result == CHECK_PASS ? LIKE_YES : LIKE_NO;
    }
    return LIKE_GUESS_NO;
}

/* Return do_all_guards_pass() for the call of LOOKUP, which tried the entry, so that the results of
 * guards are known. */
static enum like would_tried_entry_pass(const struct asked *a, uint32_t lookup)
{
    struct whatif *w = a->w;
    bool founded = a->first && is_recorded(w, a->other);
    int64_t founded_id = founded ? entry_at(w, a->other)->id : 0;
    struct tried tried = {.all = false};
    enum like like = LIKE_GUESS_NO;

    db_rows(row, w->db, schema_statement("whatif/tried"), lookup_at(w, lookup)->id,
            entry_at(w, a->made)->id, founded_id)
    {
        int64_t *result = map_put(&tried.guards, query_integer(row, 0));
        *result |= query_integer(row, 1) ? PASSED : FAILED;
        if (!w->torch && query_integer(row, 2))
            tried.all = true;
    }
    if (tried.guards.count)
        like = do_all_guards_pass(a, &tried);
    map_free(&tried.guards);
    return like;
}

/* Return do_all_guards_pass(). It is computed only once for each pair of classes. */
static enum like does_class_pass(const struct asked *a)
{
    int shift = a->first ? KNOWN_SHIFT + 2 : KNOWN_SHIFT;
    int known = a->first ? KNOWN_FIRST : KNOWN;
    int64_t bits = *pair_result_at(a->w, a->made, a->other);

    if (!(bits & known)) {
        enum like like = do_all_guards_pass(a, NULL);
        bits |= known | (int64_t)like << shift;
        *pair_result_at(a->w, a->made, a->other) |= bits;
    }
    return (enum like)(bits >> shift & 3);
}

/* In the recording the guard failed for the call. Does it certainly fail under the
 * settings, too? */
static bool does_guard_still_fail(const struct asked *a, const struct guard *g)
{
    return would_failed_guard_pass(a, g) == LIKE_NO && !may_condition_differ(a, g);
}

/* Return like_does_entry_fit(), but as if the last check of LOOKUP had run all guards. */
static enum like does_entry_fit_call(struct whatif *w, uint32_t made, uint32_t lookup)
{
    const struct replay_lookup *k = lookup_at(w, lookup);
    uint32_t other = w->class_of[lookup];
    bool first = !is_recorded(w, other) || class_at(w, other)->founder == lookup;
    struct asked asked = {
        .w = w,
        .made = made,
        .other = other,
        .code = class_code(w, made),
        .first = first,
    };
    const struct guard *g = NULL;
    enum like like, own;
    int64_t failed = 0;
    int64_t bits;
    bool unseen;

    if (made == other && is_recorded(w, other))
        return LIKE_YES;
    bits = *pair_result_at(w, made, other);
    w->torch = replay_uses_torch(w->r, k->cache);
    w->steady = w->torch && !k->observed;
    if (bits & SEEN_MISMATCH)
        return LIKE_NO;
    own = find_recorded_result(w, made, lookup, &failed);
    unseen = k->observed && first && bits & FIRST_FAIL;
    if (unseen && own == LIKE_GUESS_NO)
        own = LIKE_NO; /* in observe mode: the entry was alive, but the call did not hit it */
    if (own == LIKE_YES)
        return LIKE_YES;
    if (own == LIKE_NO) {
        if (!w->weaker || !do_settings_apply_to_code(w, asked.code))
            return LIKE_NO;
        g = failed ? guard_find(w, made, failed) : NULL;
        if (g && does_guard_still_fail(&asked, g))
            return LIKE_NO;
    }
    like = does_class_pass(&asked);
    if (like == LIKE_GUESS_NO && g)
        like = would_tried_entry_pass(&asked, lookup);
    if (like == LIKE_GUESS_NO && made == other)
        return LIKE_GUESS_YES;
    return like;
}

/* Did the last check of LOOKUP pass although it did not run all guards? */
static bool was_checked_in_part(const struct whatif *w, const struct replay_lookup *k)
{
    const struct replay_check *checks = w->r->checks.at + k->checks;

    return k->check_count && checks[k->check_count - 1].failed == REPLAY_IN_PART;
}

enum like like_does_entry_fit(struct whatif *w, uint32_t made, uint32_t lookup)
{
    const struct replay_lookup *k = lookup_at(w, lookup);
    enum like like = does_entry_fit_call(w, made, lookup);

    if (k->entry == made || !was_checked_in_part(w, k))
        return like;
    return turn_into_guess(like); /* the guards that were not run may fail for the call */
}

static bool does_guard_check_type(const struct guard *g)
{
    return g->about == ABOUT_TYPE || g->about == ABOUT_TENSOR;
}

/* If the object that a guard checks dies, does this invalidate the entry? OF is the guard on the
 * object that died in the recording, or NULL if it is not known. If it is known, a guard on a type
 * or a tensor counts only if it checks the same property as OF. */
static bool may_entry_die_with_object(const struct guard *g, const struct guard *of)
{
    if (g->about == ABOUT_OBJECT)
        return true;
    if (!strcmp(g->kind, "CLOSURE_MATCH") || !strcmp(g->kind, "WEAKREF_ALIVE"))
        return true;
    return does_guard_check_type(g) && (!of || of->about == g->about);
}

/* Do the guards G and OF check the same object? If OF is NULL, no. */
static bool do_guards_check_same_object(const struct guard *g, const struct guard *of)
{
    if (!of || does_guard_check_type(g))
        return false;
    return !strcmp(g->source, of->source);
}

enum like like_does_entry_die(struct whatif *w, uint32_t entry)
{
    const struct guards *guards;
    const int64_t *killer = map_get(&w->killers, entry_at(w, entry)->id);
    const struct guard *of = killer ? guard_find(w, entry, *killer) : NULL;
    bool gone = false;
    bool stays = false;

    if (!w->drops.count)
        return LIKE_YES;
    guards = guards_of_class(w, entry);
    list_each(g, guards) {
        bool names = may_entry_die_with_object(g, of);
        if (is_guard_dropped(w, class_code(w, entry), g)) {
            gone = gone || (of ? g == of : names);
            continue;
        }
        if (names && do_guards_check_same_object(g, of))
            return LIKE_YES;
        stays = stays || names;
    }
    if (!gone)
        return LIKE_YES;
    return stays ? LIKE_GUESS_YES : LIKE_NO;
}

/* Fill w->drops with the kind and source of each guard that the settings drop. */
static void list_dropped_guards(struct whatif *w)
{
    w->drops.count = 0;
    for (size_t i = 0; i < w->knobs->drops.count; i++) {
        struct query *query = db_query(w->db, schema_statement("whatif/dropped"));
        query_bind_text(query, 1, w->knobs->drops.at[i]);
        while (query_step(query)) {
            struct drop *d = list_add(&w->drops);
            d->code = replay_index_of_id(&w->r->code_ids, query_integer(query, 0));
            d->kind = text_keep_copy(w, query_text(query, 1, NULL));
            if (query_type(query, 2) != QUERY_NULL)
                d->source = text_keep_copy(w, query_text(query, 2, NULL));
        }
        query_close(query);
    }
}

void like_begin_simulation(struct whatif *w)
{
    const struct whatif_knobs *knobs = w->knobs;
    int64_t known = KNOWN | KNOWN_FIRST | 15 << KNOWN_SHIFT;

    list_dropped_guards(w);
    map_free(&w->symbols);
    w->weaker = knobs->dynamic_all || knobs->dynamic.count || knobs->drops.count;
    memset(w->assumed, 0, sizeof w->assumed);
    w->strangers = false;
    for (size_t i = 0; i < w->pairs.room; i++)
        w->pairs.slots[i].value &= ~known;
}
