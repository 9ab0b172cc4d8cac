/* trace/whatif/like.c -- would the guards of one call's entry let another call pass? See
 * trace/whatif/like.h.
 *
 * A call that tried the entry did what was recorded, unless a setting (dynamic, drop_guard) weakens
 * the guard that failed. For others each guard of the entry is asked of what is known of the call's
 * values (trace/whatif/facts.c): one that does not hold is a no, a yes needs all. Everything else
 * is a guess, and said to be one. */
#include "trace/whatif/like.h"

#include <math.h>

#include "schema.h"
#include "trace/db.h"

enum { ANY = -2 };

/* ---- the knobs ----------------------------------------------------------- */

/* What follows BASE in SOURCE; NULL: it does not begin so. */
static const char *after(const char *source, const char *base)
{
    size_t bytes = strlen(base);

    return strncmp(source, base, bytes) ? NULL : source + bytes;
}

static bool knobs_meant(const struct whatif *w, uint32_t code)
{
    return !w->knobs->codes || w->knobs->codes[code];
}

/* Is dimension DIMENSION (-1: the value, or ANY of them) of SOURCE made dynamic? "L['x'].size()[0]"
 * is of L['x']. */
static bool made_dynamic(const struct whatif *w, uint32_t code, const char *source, int dimension)
{
    if (!knobs_meant(w, code))
        return false;
    for (size_t i = 0; i < w->knobs->dynamic.count; i++) {
        const struct whatif_dimension *d = &w->knobs->dynamic.at[i];
        const char *rest = after(source, d->source);
        if (rest && (!*rest || after(rest, ".size()") || after(rest, ".stride()")) &&
            (d->dimension < 0 || d->dimension == dimension || dimension == ANY))
            return true;
    }
    return w->knobs->dynamic_all;
}

static bool dropped(const struct whatif *w, uint32_t code, const struct guard *g)
{
    for (size_t i = 0; i < w->drops.count && knobs_meant(w, code); i++) {
        const struct drop *d = &w->drops.at[i];
        if (!strcmp(d->kind, g->kind) &&
            (!d->source || (d->code == code && !strcmp(d->source, g->source))))
            return true;
    }
    return false;
}

/* Is what a module holds at SOURCE? Torch never makes its sizes dynamic by itself. */
static bool held_by_module(const char *source)
{
    return strstr(source, "._parameters") || strstr(source, "._buffers") ||
           strstr(source, "._modules");
}

bool like_symbols(struct whatif *w, uint32_t class_)
{
    const struct signature *s = signature_of(w, w->classes.at[class_].signature);
    size_t i = 0;

    while (s && i < s->parts.count &&
           !made_dynamic(w, w->classes.at[class_].code, s->parts.at[i].source, ANY))
        i++;
    return s && i < s->parts.count;
}

/* Do guards of CODE like ONE want several things, or did one of them fail? */
static bool varies(struct whatif *w, uint32_t code, const struct guard *one)
{
    const struct guard *before = NULL;
    int64_t *known = map_put(&w->varying, one->id), found = 1;

    if (one->id && *known)
        return *known == 2;
    for (struct look at = {0}; found == 1 && guard_next(w, code, one->source, &at);) {
        if (*one->kind && strcmp(at.g->kind, one->kind))
            continue;
        if (map_get(&w->failing, at.g->id) || (before && !strcmp(before->kind, at.g->kind) &&
                                               strcmp(before->expression, at.g->expression)))
            found = 2;
        before = at.g;
    }
    *known = found;
    return found == 2;
}

bool like_stands(struct whatif *w, uint32_t entry, uint32_t class_, const struct guard *but)
{
    const struct guards *guards = guards_of(w, entry);

    for (size_t i = 0; i < guards->count; i++) {
        const struct guard *g = &guards->at[i];
        enum like like = g == but ? LIKE_YES : guard_holds(w, g, class_, true);
        if (like == LIKE_NO || (like != LIKE_YES && varies(w, w->classes.at[entry].code, g)))
            return false;
    }
    return true;
}

/* Is G a condition on a number that guards looked at which are dropped, and of which one failed?
 * Torch made the number a symbol because of a compile that is not needed now. */
static bool symbol_unsure(struct whatif *w, uint32_t code, const struct guard *g)
{
    int64_t *known = map_put(&w->symbols, g->id), found = 1;

    if (g->id && *known)
        return *known == 2;
    for (uint32_t i = 0; w->drops.count && found == 1 && i < w->r->entries.count; i++)
        for (size_t k = 0; w->r->entries.at[i].code == code && k < guards_of(w, i)->count; k++) {
            const struct guard *h = &guards_of(w, i)->at[k];
            if ((h->about == ABOUT_TENSOR || h->about == ABOUT_VALUE) &&
                strstr(g->source, h->source) && map_get(&w->failing, h->id) && dropped(w, code, h))
                found = 2;
        }
    *map_put(&w->symbols, g->id) = found;
    return found == 2;
}

/* Is G, of the entry made for MADE, a condition that may be another one for OTHER? It is not sure
 * to be the entry's, or it came of a number that is a symbol now: "5 <= size" where that is "n <=
 * size". */
static bool condition_moved(struct whatif *w, uint32_t made, const struct guard *g, uint32_t other,
                            bool first)
{
    uint32_t code = w->classes.at[made].code;
    bool is = g->condition && !dropped(w, code, g),
         moved = is && (g->loose || (w->torch && symbol_unsure(w, code, g)));

    for (size_t i = 0; is && !moved && i < guards_of(w, made)->count; i++) {
        const struct guard *h = &guards_of(w, made)->at[i];
        moved = (h->about == ABOUT_TENSOR || h->about == ABOUT_VALUE) &&
                (h->loose || made_dynamic(w, code, h->source, ANY)) &&
                guard_holds(w, h, other, first) != LIKE_YES;
    }
    return moved;
}

/* Do the conditions that entries of its code have for the number at SOURCE say the same of A, which
 * MADE was compiled for, and B? With a symbol there it would have those of the entries that else
 * stand for it; what relates it to other numbers is not known. */
static enum like conditions_agree(struct whatif *w, uint32_t made, const char *source,
                                  const struct value *a, const struct value *b)
{
    enum like like = LIKE_YES;

    for (uint32_t i = 0; like && i < w->r->entries.count; i++)
        for (size_t k = 0;
             w->r->entries.at[i].code == w->classes.at[made].code && k < guards_of(w, i)->count;
             k++) {
            const struct guard *g = &guards_of(w, i)->at[k];
            bool alone = g->about == ABOUT_NUMBER && !strcmp(g->source, source), known;
            enum like x = alone ? number_holds(&g->want, a) : LIKE_GUESS_NO,
                      y = alone ? number_holds(&g->want, b) : x;
            known = x != LIKE_GUESS_NO && y != LIKE_GUESS_NO;
            if (g->condition && strstr(g->source, source) && !(known && x == y))
                like = least(like, known && like_stands(w, i, made, g) ? LIKE_NO : LIKE_GUESS_NO);
        }
    return like;
}

/* Has an entry of its code that else takes MADE's call a symbol for DIMENSION (-1: the number) of
 * SOURCE? Then its guards have all conditions that the code sets to it; those of code for one
 * number are not known. */
static bool symbol_seen(struct whatif *w, uint32_t made, const char *source, int dimension)
{
    uint32_t fixed = REPLAY_NONE; /* the last entry that was made for one number */

    for (struct look at = {0}; guard_next(w, w->classes.at[made].code, source, &at);) {
        if (at.g->about == ABOUT_VALUE)
            fixed = at.entry; /* its kinds come before TYPE_MATCH */
        if ((dimension < 0 ? at.g->about == ABOUT_TYPE && at.entry != fixed
                           : at.g->want.sizes.rank > dimension &&
                                 at.g->want.sizes.size[dimension] == SIZE_ANY) &&
            like_stands(w, at.entry, made, NULL))
            return true;
    }
    return false;
}

/* Does an entry made for the number A of SOURCE, or of its DIMENSION, which a setting made a
 * symbol, take B? */
static enum like symbol_takes(struct whatif *w, uint32_t made, const char *source, int dimension,
                              const struct value *a, const struct value *b)
{
    bool small = w->torch && (a->high <= 1 || b->high <= 1), maybe_small = w->torch && b->low <= 1,
         size = dimension >= 0;
    enum like like = LIKE_YES;
    char number[600];

    w->assumed[ASSUMED_DYNAMIC] = true;
    if (a->low == a->high && a->low == b->low && a->low == b->high)
        return LIKE_YES;
    /* mark_dynamic on a size of 0 or 1 is an error or a warning, by version; of numbers it is not
     * the rule */
    if (small)
        return size && w->knobs->dynamic_all ? LIKE_NO : LIKE_GUESS_NO;
    for (int i = 0; size && i < 2 && like != LIKE_NO; i++) {
        snprintf(number, sizeof number, i ? "%.500s.shape[%d]" : "%.500s.size()[%d]", source,
                 dimension);
        like = least(like, conditions_agree(w, made, number, a, b));
    }
    if (!size)
        like = conditions_agree(w, made, source, a, b);
    if (like == LIKE_YES && (maybe_small || (w->torch && !symbol_seen(w, made, source, dimension))))
        return LIKE_GUESS_YES;
    return like;
}

static struct value number_of(int64_t size)
{
    return (struct value){.low = size == SIZE_ANY ? 0 : (double)size,
                          .high = size == SIZE_ANY ? INFINITY : (double)size};
}

/* G, of a tensor, with the sizes that are made dynamic, or that torch may have made so. */
static enum like tensor_takes(struct whatif *w, uint32_t made, const struct guard *g,
                              uint32_t other, bool first)
{
    struct value v = value_of(w, other, first, g->source);
    struct guard weaker = *g;
    enum like like = LIKE_YES, rest;

    weaker.id = 0; /* no call failed that one */
    for (int i = 0; i < g->want.sizes.rank && v.sizes.rank == g->want.sizes.rank; i++) {
        int64_t x = g->want.sizes.size[i], y = v.sizes.size[i];
        struct value a = number_of(x), b = number_of(y);
        char source[600];
        if (x == SIZE_ANY || x == y)
            continue;
        if (w->weaker && made_dynamic(w, w->classes.at[made].code, g->source, i) &&
            !(w->knobs->dynamic_all && held_by_module(g->source))) {
            snprintf(source, sizeof source, "%.500s.size()[%d]", g->source, i);
            if (y == SIZE_ANY)
                b = value_of(w, other, first, source);
            like = least(like, symbol_takes(w, made, g->source, i, &a, &b));
            weaker.want.sizes.size[i] = SIZE_ANY;
        } else if (w->torch && g->loose & 1u << i && x > 1 && y != 0 && y != 1) {
            w->assumed[ASSUMED_AUTOMATIC] = true; /* one entry does not show how the next is made */
            like = least(like, LIKE_GUESS_YES);
            weaker.want.sizes.size[i] = SIZE_ANY;
        }
    }
    rest = guard_holds(w, &weaker, other, first);
    return least(like, rest);
}

/* G, of a number that is made dynamic, or that torch may have made so. */
static enum like number_takes(struct whatif *w, uint32_t made, const struct guard *g,
                              uint32_t other, bool first)
{
    struct value v = value_of(w, other, first, g->source);
    const char *end = strncmp(g->source, "L['", 3) ? NULL : strstr(g->source, "']");

    if (!v.type || !g->want.type || strcmp(v.type, g->want.type))
        return LIKE_NO;
    if (w->weaker && made_dynamic(w, w->classes.at[made].code, g->source, -1) &&
        !held_by_module(g->source)) {
        if (w->floats_later && w->knobs->dynamic_all && !strcmp(v.type, "float"))
            return LIKE_GUESS_NO;
        if (w->knobs->dynamic_all && !(end && !end[2])) /* some torches make it a symbol, too */
            return g->loose ? LIKE_GUESS_NO : LIKE_NO;
        if (!strcmp(v.type, "float")) { /* of which none is special */
            w->assumed[ASSUMED_DYNAMIC] = true;
            return conditions_agree(w, made, g->source, &g->want, &v);
        }
        return symbol_takes(w, made, g->source, -1, &g->want, &v);
    }
    if (w->torch && g->loose) { /* 0 and 1 by themselves are no constants either */
        w->assumed[ASSUMED_AUTOMATIC] = true;
        return LIKE_GUESS_YES;
    }
    return LIKE_NO;
}

/* Is what G looks at within something that a dropped guard of that entry looked at? Then perhaps no
 * call came as far as G. */
static bool shadowed(struct whatif *w, uint32_t made, const struct guard *g)
{
    const char *end = after(g->source, "L['") ? strstr(g->source, "']") : NULL, *in;
    size_t bytes = end ? (size_t)(end + 2 - g->source) : 0;
    bool within = false;

    for (size_t i = 0; bytes && g->source[bytes] && !within && i < guards_of(w, made)->count; i++) {
        const struct guard *h = &guards_of(w, made)->at[i];
        /* "L['d']", "list(dict.keys(L['d']))[0]" */
        in = memmem(h->source, strlen(h->source), g->source, bytes);
        within = in && (in > h->source || !in[bytes]) && dropped(w, w->classes.at[made].code, h);
    }
    return within;
}

/* Does guard G of an entry made for MADE hold for a call of class OTHER, as the knobs have it? */
static enum like guard_takes(struct whatif *w, uint32_t made, const struct guard *g, uint32_t other,
                             bool first)
{
    uint32_t code = w->classes.at[made].code;
    enum like like;
    bool unknown;

    if (dropped(w, code, g)) {
        w->assumed[ASSUMED_DROPPED] = true;
        return LIKE_YES;
    }
    like = guard_holds(w, g, other, first);
    /* values may not have been recorded (--values), though the guard was seen to fail */
    unknown = like == LIKE_GUESS_NO || (like == LIKE_NO && !g->want.literal);
    if (like == LIKE_NO && g->about == ABOUT_ALIKE && w->weaker)
        like = LIKE_GUESS_NO; /* which kind would say so is not known */
    if (like != LIKE_YES && g->about == ABOUT_TENSOR)
        like = tensor_takes(w, made, g, other, first);
    else if (like == LIKE_NO && g->about == ABOUT_VALUE && g->want.low == g->want.high)
        like = number_takes(w, made, g, other, first);
    else if (unknown && g->about == ABOUT_VALUE && made_dynamic(w, code, g->source, -1))
        like = number_takes(w, made, g, other, first) == LIKE_YES
                   ? LIKE_YES /* whichever number it is */
                   : LIKE_GUESS_NO;
    if (like != LIKE_GUESS_NO ||
        (w->steady && (other >= w->r->entries.count || !after(g->source, "L[")) &&
         !varies(w, code, g) && !shadowed(w, made, g))) {
        w->assumed[ASSUMED_HIDDEN] = w->assumed[ASSUMED_HIDDEN] || like == LIKE_GUESS_NO;
        return like == LIKE_GUESS_NO ? LIKE_YES : like;
    }
    w->assumed[strstr(g->kind, "LAMBDA") ? ASSUMED_LAMBDA : ASSUMED_HIDDEN] = true;
    return like;
}

/* Is CLASS_ the first entry of its code? */
static bool is_oldest(const struct whatif *w, uint32_t class_)
{
    uint32_t i = 0;

    while (i < class_ && i < w->r->entries.count &&
           w->r->entries.at[i].code != w->classes.at[class_].code)
        i++;
    return i == class_;
}

/* Does dynamic=True give dimension DIMENSION of SOURCE a symbol? Not if a module holds it. */
static bool size_is_symbol(const struct whatif *w, uint32_t code, const char *source, int dimension)
{
    return made_dynamic(w, code, source, dimension) && !held_by_module(source);
}

/* Under dynamic=True sizes that were equal in the call that MADE was compiled for are one symbol:
 * they must be equal in others, too; but sizes that torch has seen to vary by then have a symbol
 * each. */
static enum like ducks_fit(struct whatif *w, uint32_t made, const struct guards *guards,
                           uint32_t other, bool first)
{
    uint32_t code = w->classes.at[made].code;

    for (size_t i = 0; i < guards->count; i++)
        for (size_t k = i; k < guards->count; k++) {
            const struct guard *a = &guards->at[i], *b = &guards->at[k];
            struct value x, y;
            if (a->about != ABOUT_TENSOR || b->about != ABOUT_TENSOR)
                continue;
            x = value_of(w, other, first, a->source);
            y = value_of(w, other, first, b->source);
            for (int d = 0; d < a->want.sizes.rank && x.sizes.rank == a->want.sizes.rank; d++)
                for (int e = 0; e < b->want.sizes.rank && y.sizes.rank == b->want.sizes.rank; e++)
                    if (a->want.sizes.size[d] > 1 &&
                        a->want.sizes.size[d] == b->want.sizes.size[e] &&
                        x.sizes.size[d] != y.sizes.size[e] &&
                        size_is_symbol(w, code, a->source, d) &&
                        size_is_symbol(w, code, b->source, e))
                        return is_oldest(w, made) ? LIKE_NO : LIKE_GUESS_NO;
        }
    return LIKE_YES;
}

/* G did not hold for a call of class OTHER: do the knobs change that? */
static enum like failed_takes(struct whatif *w, uint32_t made, const struct guard *g,
                              uint32_t other, bool first)
{
    uint32_t code = w->classes.at[made].code;
    bool dynamic = (g->about == ABOUT_TENSOR || g->about == ABOUT_VALUE) &&
                   made_dynamic(w, code, g->source, ANY);

    return dynamic || dropped(w, code, g) ? guard_takes(w, made, g, other, first) : LIKE_NO;
}

/* Is G certainly re-evaluated after a miss? The evaluator does that for guards that run no code of
 * the program, to list all that fail: such a guard passed if it is not among the causes. */
static bool is_asked_again(const struct guard *g)
{
    static const char *const quiet[] = {
        "TYPE_MATCH",    "ID_MATCH",      "NONE_MATCH",     "NOT_NONE",
        "TRUE_MATCH",    "FALSE_MATCH",   "LIST_LENGTH",    "TUPLE_LENGTH",
        "DICT_LENGTH",   "DICT_CONTAINS", "FUNCTION_MATCH", "DICT_NOT_CONTAINS",
        "CLOSURE_MATCH", "BUILTIN_MATCH", "MODULE_MATCH",   "WEAKREF_ALIVE"};
    const char *name = after(g->source, "L['"), *end = name ? strstr(name, "']") : NULL;
    const bool is_variable = end && !end[2];

    if (is_variable && !strcmp(g->kind, "EQUALS_MATCH"))
        return g->want.literal;
    for (size_t i = 0; is_variable && i < sizeof quiet / sizeof *quiet; i++)
        if (!strcmp(g->kind, quiet[i]))
            return true;
    return false;
}

/* What became of an entry's guards when a call tried it: by row id PASSED or FAILED; ALL: all that
 * failed and could be asked again are there. */
struct tried {
    struct map guards;
    bool all;
};
enum { PASSED = 1, FAILED = 2 };

/* Do all guards of an entry made for class MADE hold for a call of class OTHER, which TRIED it, or
 * NULL? FIRST as in guard_holds(). */
static enum like guards_take(struct whatif *w, uint32_t made, uint32_t other, bool first,
                             const struct tried *tried)
{
    const struct guards *guards = guards_of(w, made);
    uint32_t code = w->classes.at[made].code;
    enum like like = LIKE_YES;

    if (guards->unlike)
        return made == other ? LIKE_GUESS_YES : LIKE_GUESS_NO;
    for (size_t i = 0; i < guards->count && like != LIKE_NO; i++) {
        const struct guard *g = &guards->at[i];
        const int64_t *known = tried ? map_get(&tried->guards, g->id) : NULL;
        bool passed = known || (tried && tried->all && is_asked_again(g));
        enum like one = known && *known & FAILED ? failed_takes(w, made, g, other, first)
                        : passed                 ? LIKE_YES
                                                 : guard_takes(w, made, g, other, first);
        if (condition_moved(w, made, g, other, first))
            one = one >= LIKE_GUESS_YES ? LIKE_GUESS_YES : LIKE_GUESS_NO;
        like = least(like, one);
    }
    if (like != LIKE_NO && w->torch && w->knobs->dynamic_all && knobs_meant(w, code))
        like = least(like, ducks_fit(w, made, guards, other, first));
    if (like != LIKE_NO)
        w->assumed[ASSUMED_SIGNATURE] = true;
    return like;
}

/* ---- the question -------------------------------------------------------- */

/* LOOKUP's own check of entry MADE: LIKE_YES it passed, LIKE_NO it did not, LIKE_GUESS_NO it was
 * not tried. *FAILED: by which guard. */
static enum like own_check(const struct whatif *w, uint32_t made, uint32_t lookup, int64_t *failed)
{
    const struct replay_lookup *k = &w->r->lookups.at[lookup];

    for (uint32_t i = k->checks; made < w->r->entries.count && i < k->checks + k->check_count; i++)
        if (w->r->checks.at[i].entry == made) {
            *failed = w->r->checks.at[i].failed;
            return w->r->checks.at[i].result == CHECK_PASS ? LIKE_YES : LIKE_NO;
        }
    return LIKE_GUESS_NO;
}

/* The same for LOOKUP, a call of that class, which tried the entry. */
static enum like rest_takes(struct whatif *w, uint32_t made, uint32_t other, uint32_t lookup,
                            bool first)
{
    const struct replay_entry *entries = w->r->entries.at;
    struct tried tried = {.all = false};
    enum like like;

    db_rows(row, w->db, schema_statement("whatif/tried"), w->r->lookups.at[lookup].id,
            entries[made].id, first && other < w->r->entries.count ? entries[other].id : 0)
    {
        *map_put(&tried.guards, query_integer(row, 0)) |= query_integer(row, 1) ? PASSED : FAILED;
        tried.all = tried.all || (!w->torch && query_integer(row, 2));
    }
    like = tried.guards.count ? guards_take(w, made, other, first, &tried) : LIKE_GUESS_NO;
    map_free(&tried.guards);
    return like;
}

static enum like fits(struct whatif *w, uint32_t made, uint32_t lookup)
{
    uint32_t other = w->class_of[lookup], entries = (uint32_t)w->r->entries.count;
    bool first = other >= entries || w->classes.at[other].founder == lookup;
    int shift = first ? KNOWN_SHIFT + 2 : KNOWN_SHIFT, known = first ? KNOWN_FIRST : KNOWN;
    const struct guard *g = NULL;
    enum like like, own;
    int64_t failed = 0, bits;

    if (made == other && other < entries)
        return LIKE_YES;
    bits = *pair_at(w, made, other);
    w->torch = replay_torch(w->r, w->r->lookups.at[lookup].cache);
    w->steady = w->torch && !w->r->lookups.at[lookup].observed;
    if (bits & SEEN_MISMATCH)
        return LIKE_NO;
    own = own_check(w, made, lookup, &failed);
    if (own == LIKE_GUESS_NO && first && bits & FIRST_FAIL && w->r->lookups.at[lookup].observed)
        own = LIKE_NO; /* it was seen from outside, and found nothing */
    if (own == LIKE_YES ||
        (own == LIKE_NO && (!w->weaker || !knobs_meant(w, w->classes.at[made].code))))
        return own;
    if (own == LIKE_NO && failed && (g = guard_of(w, made, failed)) &&
        failed_takes(w, made, g, other, first) == LIKE_NO &&
        !condition_moved(w, made, g, other, first))
        return LIKE_NO;
    if (!(bits & known)) {
        bits |= known | (int64_t)guards_take(w, made, other, first, NULL) << shift;
        *pair_at(w, made, other) |= bits;
    }
    like = (enum like)(bits >> shift & 3);
    if (like == LIKE_GUESS_NO && g)
        like = rest_takes(w, made, other, lookup, first);
    return like == LIKE_GUESS_NO && made == other ? LIKE_GUESS_YES : like;
}

enum like like_fits(struct whatif *w, uint32_t made, uint32_t lookup)
{
    const struct replay_lookup *k = &w->r->lookups.at[lookup];
    enum like like = fits(w, made, lookup);

    if (k->entry == made || !k->check_count ||
        w->r->checks.at[k->checks + k->check_count - 1].failed != REPLAY_IN_PART)
        return like;
    /* its inputs may be others than its entry's */
    return like >= LIKE_GUESS_YES ? LIKE_GUESS_YES : LIKE_GUESS_NO;
}

enum like like_dies(struct whatif *w, uint32_t entry)
{
    const struct guards *guards = w->drops.count ? guards_of(w, entry) : NULL;
    const int64_t *killer = map_get(&w->killers, w->r->entries.at[entry].id);
    const struct guard *of = killer ? guard_of(w, entry, *killer) : NULL;
    bool gone = false, stays = false;

    for (size_t i = 0; guards && i < guards->count; i++) {
        const struct guard *g = &guards->at[i];
        bool names = g->about == ABOUT_OBJECT || !strcmp(g->kind, "CLOSURE_MATCH") ||
                     !strcmp(g->kind, "WEAKREF_ALIVE") ||
                     ((!of || of->about == g->about) &&
                      (g->about == ABOUT_TYPE || g->about == ABOUT_TENSOR));
        if (dropped(w, w->classes.at[entry].code, g))
            gone = gone || (of ? g == of : names);
        else if (names && of && !strcmp(g->source, of->source) && g->about != ABOUT_TYPE &&
                 g->about != ABOUT_TENSOR)
            return LIKE_YES; /* the same object */
        else
            stays = stays || names;
    }
    return !gone ? LIKE_YES : stays ? LIKE_GUESS_YES : LIKE_NO;
}

/* What the kinds and ids of guards stand for that are to be dropped. */
static void drops_read(struct whatif *w)
{
    w->drops.count = 0;
    for (size_t i = 0; i < w->knobs->drops.count; i++) {
        struct query *query = db_query(w->db, schema_statement("whatif/dropped"));
        query_bind_text(query, 1, w->knobs->drops.at[i]);
        if (query_step(query))
            *list_add(&w->drops) =
                (struct drop){.code = replay_index(&w->r->code_ids, query_integer(query, 0)),
                              .kind = text_copy(w, query_text(query, 1, NULL)),
                              .source = query_type(query, 2) == QUERY_NULL
                                            ? NULL
                                            : text_copy(w, query_text(query, 2, NULL))};
        query_close(query);
    }
}

void like_begin(struct whatif *w)
{
    const struct whatif_knobs *knobs = w->knobs;

    drops_read(w);
    map_free(&w->symbols);
    w->weaker = knobs->dynamic_all || knobs->dynamic.count || knobs->drops.count;
    memset(w->assumed, 0, sizeof w->assumed);
    w->strangers = false;
    for (size_t i = 0; i < w->pairs.room; i++)
        w->pairs.slots[i].value &= ~(int64_t)(KNOWN | KNOWN_FIRST | 15 << KNOWN_SHIFT);
}
