/* trace/whatif/like.c -- would the guards of one call's entry let another call pass? See trace/whatif/like.h.
 *
 * What is asked, best answer first:
 *
 *     the call's own guard checks       it tried that entry: recorded
 *     other calls of its class          they tried it, and it always ended alike
 *     the guards of both entries        x must be 4 in one and 5 in the other: no call fits both
 *     the signatures of both            compared name by name, as strictly as the guards recorded for that name are:
 *                                       what no guard looks at does not count
 *     nothing of that                   a guess, and said to be one
 *
 * A setting that makes guards weaker (dynamic, drop_guard) turns a no into a yes when everything that told the two
 * apart is weakened: the recorded causes of the recompile say what that was, else the signatures. */
#include "trace/whatif/like.h"

#include "schema.h"
#include "trace/db.h"

/* ---- guards ---------------------------------------------------------------- */

/* Sizes that exclude each other. Torch compiles 0 and 1 apart from dynamic sizes. */
static bool sizes_apart(int64_t a, int64_t b, bool torch)
{
    if (a != SIZE_ANY && b != SIZE_ANY)
        return a != b;
    return torch && a != b && ((a >= 0 && a <= 1) || (b >= 0 && b <= 1));
}

static bool guards_exclude(const struct guard *a, const struct guard *b, bool torch)
{
    bool null = !strcmp(a->kind, "NONE_MATCH"), tensor = a->shape.rank >= 0;

    if (strcmp(a->kind, b->kind)) /* on one source: None, a tensor, or something else */
        return (null != !strcmp(b->kind, "NONE_MATCH") || tensor != (b->shape.rank >= 0)) &&
               (guard_exact(a->kind) || tensor) && (guard_exact(b->kind) || b->shape.rank >= 0);
    if (tensor && b->shape.rank >= 0) {
        if (a->before != b->before || strncmp(a->expression, b->expression, (size_t)a->before) ||
            a->shape.rank != b->shape.rank)
            return true;
        for (int i = 0; i < a->shape.rank; i++)
            if (sizes_apart(a->shape.size[i], b->shape.size[i], torch))
                return true;
        return false;
    }
    return guard_exact(a->kind) && strcmp(a->expression, b->expression);
}

/* What follows BASE in SOURCE; NULL: it does not begin so. */
static const char *after(const char *source, const char *base)
{
    size_t bytes = strlen(base);

    return strncmp(source, base, bytes) ? NULL : source + bytes;
}

static bool holds_value(const char *kind)
{
    return !strcmp(kind, "EQUALS_MATCH") || !strcmp(kind, "CONSTANT_MATCH");
}

/* Is the type of SOURCE settled by one of GUARDS? */
static bool type_settled(const struct guards *guards, const char *source)
{
    for (size_t i = 0; i < guards->count; i++) {
        const struct guard *g = &guards->at[i];
        if (!strcmp(g->source, source) &&
            (g->shape.rank >= 0 || holds_value(g->kind) || !strcmp(g->kind, "TYPE_MATCH")))
            return true;
    }
    return false;
}

/* The part of SIGNATURE that is SOURCE; NULL: it has none. */
static const struct part *signature_part(const struct signature *signature, const char *source)
{
    for (size_t i = 0; i < signature->parts.count; i++)
        if (!strcmp(signature->parts.at[i].source, source))
            return &signature->parts.at[i];
    return NULL;
}

/* Both are of one type. */
static bool typed_alike(const struct part *a, const struct part *b)
{
    size_t bytes = strcspn(a->text, " [");

    return strcspn(b->text, " [") == bytes && !strncmp(a->text, b->text, bytes);
}

static bool types_apart(struct whatif *w, uint32_t one, uint32_t other)
{
    const struct signature *a = signature_of(w, w->classes.at[one].signature),
                           *b = signature_of(w, w->classes.at[other].signature);

    for (size_t i = 0; a && b && i < a->parts.count; i++) {
        const struct part *x = &a->parts.at[i], *y = signature_part(b, x->source);
        if (y && !typed_alike(x, y) && type_settled(guards_of(w, one), x->source) &&
            type_settled(guards_of(w, other), x->source))
            return true;
    }
    return false;
}

/* No call fits the guards of both. */
static bool entries_apart(struct whatif *w, uint32_t one, uint32_t other)
{
    const struct guards *a = guards_of(w, one), *b = guards_of(w, other);
    size_t i = 0, k = 0;

    while (i < a->count && k < b->count) {
        int order = strcmp(a->at[i].source, b->at[k].source);
        if (order) {
            order < 0 ? i++ : k++;
            continue;
        }
        for (size_t end = k; end < b->count && !strcmp(b->at[end].source, a->at[i].source); end++)
            if (guards_exclude(&a->at[i], &b->at[end], w->torch))
                return true;
        i++;
    }
    return types_apart(w, one, other);
}

/* ---- how strictly names are looked at -------------------------------------- */

static void shape_learn(struct name *n, const struct shape *shape)
{
    if (n->shape.rank < 0)
        n->shape = *shape;
    for (int k = 0; k < shape->rank && n->shape.rank == shape->rank; k++)
        if (shape->size[k] == SIZE_ANY)
            n->shape.size[k] = SIZE_ANY;
        else if (n->shape.size[k] != SIZE_ANY && n->shape.size[k] != shape->size[k])
            n->varied |= 1u << k;
}

static void name_learn(struct name *n, const struct guards *guards)
{
    for (size_t i = 0; i < guards->count; i++) {
        const struct guard *g = &guards->at[i];
        const char *rest = after(g->source, n->source);
        if (!rest)
            continue;
        n->guarded = true;
        if (*rest) {
            n->opaque = n->opaque || (!after(rest, ".size()") && !after(rest, ".stride()"));
        } else if (g->shape.rank >= 0) {
            shape_learn(n, &g->shape);
        } else if (!strcmp(g->kind, "TYPE_MATCH")) {
            n->typed = true;
        } else if (guard_exact(g->kind)) {
            n->exact = true;
            if (!n->value)
                n->value = g->expression;
            n->several = n->several || strcmp(n->value, g->expression);
        }
    }
}

static const struct name *name_of(struct whatif *w, uint32_t code, const char *source)
{
    struct name *n;

    for (size_t i = 0; i < w->names.count; i++)
        if (w->names.at[i].code == code && !strcmp(w->names.at[i].source, source))
            return &w->names.at[i];
    n = list_add(&w->names);
    *n = (struct name){.code = code, .source = text_copy(w, source), .shape = {.rank = -1}};
    for (size_t i = 0; i < w->r->entries.count; i++)
        if (w->r->entries.at[i].code == code)
            name_learn(n, guards_of(w, (uint32_t)i));
    return n;
}

/* ---- the knobs ------------------------------------------------------------- */

static bool knobs_meant(const struct whatif *w, uint32_t code)
{
    return !w->knobs->codes || w->knobs->codes[code];
}

/* Is dimension DIMENSION (-1: the value) of SOURCE made dynamic? "L['x'].size()[0]" is of L['x']. */
static bool made_dynamic(const struct whatif *w, uint32_t code, const char *source, int dimension)
{
    if (!knobs_meant(w, code))
        return false;
    for (size_t i = 0; i < w->knobs->dynamic.count; i++) {
        const struct whatif_dimension *d = &w->knobs->dynamic.at[i];
        const char *rest = after(source, d->source);
        if (rest && (!*rest || after(rest, ".size()") || after(rest, ".stride()")) &&
            (d->dimension < 0 || d->dimension == dimension))
            return true;
    }
    return w->knobs->dynamic_all;
}

/* Is a guard of KIND at SOURCE dropped? SOURCE may be narrower than the guard's own: "L['x'].size()[0]". */
static bool dropped(const struct whatif *w, uint32_t code, const char *kind, const char *source)
{
    for (size_t i = 0; i < w->drops.count && knobs_meant(w, code); i++) {
        const struct drop *d = &w->drops.at[i];
        if (!strcmp(d->kind, kind) &&
            (!d->source || (d->code == code && !strncmp(d->source, source, strlen(d->source)))))
            return true;
    }
    return false;
}

/* ---- two signatures -------------------------------------------------------- */

static enum like least(enum like a, enum like b)
{
    return a < b ? a : b;
}

/* Sizes of a name that differ: does an entry made for A take B? */
static enum like sizes_like(struct whatif *w, uint32_t code, const struct name *n, const struct part *a,
                            const struct part *b, int i)
{
    int64_t x = a->shape.size[i], y = b->shape.size[i];
    bool small = w->torch && (x <= 1 || y <= 1);

    if (x == y)
        return LIKE_YES;
    if (w->relaxed && made_dynamic(w, code, n->source, i)) {
        w->assumed[ASSUMED_DYNAMIC] = true;
        if (small && !w->knobs->dynamic_all) /* mark_dynamic on a size of 0 or 1 is an error or a warning, by version */
            return LIKE_GUESS_NO;
        return small ? LIKE_NO : LIKE_YES;
    }
    if (n->shape.rank == a->shape.rank && n->shape.size[i] == SIZE_ANY)
        return small ? LIKE_NO : LIKE_YES;
    if (!w->torch || n->varied & 1u << i || small)
        return n->shape.rank < 0 && !n->opaque ? LIKE_GUESS_NO : LIKE_NO;
    w->assumed[ASSUMED_AUTOMATIC] = true; /* one entry does not show how the next is made */
    return LIKE_GUESS_YES;
}

static enum like shapes_like(struct whatif *w, uint32_t code, const struct name *n, const struct part *a,
                             const struct part *b)
{
    enum like like = LIKE_YES;

    if (dropped(w, code, "TENSOR_MATCH", a->source))
        return LIKE_YES;
    if (a->before != b->before || strncmp(a->text, b->text, (size_t)a->before) ||
        strcmp(a->text + a->after, b->text + b->after) || a->shape.rank != b->shape.rank)
        return LIKE_NO;
    for (int i = 0; i < a->shape.rank; i++)
        like = least(like, sizes_like(w, code, n, a, b, i));
    return like;
}

/* "int 0", "int 1": torch takes them for constants. */
static bool zero_or_one(const struct part *p)
{
    return !strcmp(p->text, "int 0") || !strcmp(p->text, "int 1");
}

/* Does an entry made for a call with part A take a call with part B? */
static enum like parts_like(struct whatif *w, uint32_t code, const struct part *a, const struct part *b)
{
    bool same = !strcmp(a->text, b->text), number = !strncmp(a->text, "int ", 4) || !strncmp(a->text, "float ", 6);
    const struct name *n;

    if (same && !w->blind)
        return LIKE_YES;
    n = name_of(w, code, a->source);
    if (same) /* as far as it was recorded */
        return n->exact || n->opaque ? LIKE_GUESS_YES : LIKE_YES;
    if (w->codes[code].lambdas && !n->guarded) { /* who knows what it looks at */
        w->assumed[ASSUMED_LAMBDA] = true;
        return LIKE_GUESS_NO;
    }
    if (!n->guarded)
        return LIKE_YES;
    if (a->shape.rank >= 0 && b->shape.rank >= 0)
        return shapes_like(w, code, n, a, b);
    if (!typed_alike(a, b))
        return n->exact || n->typed || n->shape.rank >= 0 ? LIKE_NO : LIKE_GUESS_NO;
    if (n->exact && (dropped(w, code, "EQUALS_MATCH", a->source) || dropped(w, code, "CONSTANT_MATCH", a->source)))
        return LIKE_YES;
    if (number && w->relaxed && made_dynamic(w, code, n->source, -1)) {
        if (w->floats_later && *a->text == 'f')
            return LIKE_GUESS_NO;
        w->assumed[ASSUMED_DYNAMIC] = true;
        return w->torch && (zero_or_one(a) || zero_or_one(b)) ? LIKE_NO : LIKE_YES;
    }
    if (!n->exact)
        return n->opaque ? LIKE_GUESS_NO : LIKE_YES;
    if (number && w->torch && !n->several) {
        w->assumed[ASSUMED_AUTOMATIC] = true;
        return LIKE_GUESS_YES;
    }
    return LIKE_NO;
}

/* Under dynamic=True sizes that were equal in A are one symbol: they must be equal in B. */
static bool ducks_fit(const struct whatif *w, uint32_t code, const struct signature *a, const struct signature *b)
{
    for (size_t i = 0; i < a->parts.count; i++) {
        const struct part *x = &a->parts.at[i], *p = signature_part(b, x->source);
        for (int d = 0; p && d < x->shape.rank && p->shape.rank == x->shape.rank; d++)
            for (size_t k = i; k < a->parts.count; k++) {
                const struct part *y = &a->parts.at[k], *q = signature_part(b, y->source);
                for (int e = 0; q && e < y->shape.rank && q->shape.rank == y->shape.rank; e++)
                    if (x->shape.size[d] > 1 && x->shape.size[d] == y->shape.size[e] &&
                        p->shape.size[d] != q->shape.size[e] && made_dynamic(w, code, x->source, d) &&
                        made_dynamic(w, code, y->source, e))
                        return false;
            }
    }
    return true;
}

static enum like signatures_like(struct whatif *w, uint32_t made, uint32_t other)
{
    uint32_t code = w->classes.at[made].code;
    int64_t one = w->classes.at[made].signature, two = w->classes.at[other].signature;
    const struct signature *a = signature_of(w, one), *b = signature_of(w, two);
    enum like like = LIKE_YES;

    if (!a || !b)
        return LIKE_GUESS_NO;
    if (one == two && !w->blind) {
        w->assumed[ASSUMED_SIGNATURE] = true;
        return LIKE_YES;
    }
    for (size_t i = 0; i < a->parts.count; i++) {
        const struct part *p = signature_part(b, a->parts.at[i].source);
        like = least(like, p ? parts_like(w, code, &a->parts.at[i], p) : LIKE_GUESS_NO);
    }
    if (a->parts.count != b->parts.count)
        like = least(like, LIKE_GUESS_NO);
    if (like != LIKE_NO && w->torch && w->relaxed && w->knobs->dynamic_all && !ducks_fit(w, code, a, b))
        return LIKE_NO;
    if (like != LIKE_NO)
        w->assumed[ASSUMED_SIGNATURE] = true;
    return like;
}

/* ---- weaker guards --------------------------------------------------------- */

/* Is what a guard of KIND at SOURCE told apart weakened (LIKE_YES)? DIMENSION of SOURCE, or -1. */
static enum like weakened(struct whatif *w, uint32_t code, const char *kind, const char *source, bool shaped,
                          int dimension)
{
    bool value = holds_value(kind);
    const char *rest;

    if (dropped(w, code, kind, source)) {
        w->assumed[ASSUMED_DROPPED] = true;
        return LIKE_YES;
    }
    if (!knobs_meant(w, code))
        return LIKE_NO;
    if (w->knobs->dynamic_all) { /* what a module holds stays as it is */
        if (strstr(source, "._parameters") || strstr(source, "._buffers") || strstr(source, "._modules"))
            return LIKE_NO;
        if (shaped || !strcmp(kind, "SHAPE_ENV") || (value && (rest = source_local(source)) && !*rest))
            return LIKE_YES;
        /* Other numbers: some torches make them dynamic, too; where there is a second value, this one did not. */
        return value && !name_of(w, code, source)->several ? LIKE_GUESS_NO : LIKE_NO;
    }
    return (shaped || value) && made_dynamic(w, code, source, dimension) ? LIKE_YES : LIKE_NO;
}

/* Entry MADE against the class OTHER, with weaker guards: does what told them apart still do so? */
static enum like weak_like(struct whatif *w, uint32_t made, uint32_t other)
{
    uint32_t code = w->classes.at[made].code;
    size_t at = sorted_count(w->differences.count, i, w->differences.at[i].made < other);
    bool known = false; /* all that told them apart is known */
    enum like like, weakest = LIKE_YES;

    for (; at < w->differences.count && w->differences.at[at].made == other; at++) {
        const struct difference *c = &w->differences.at[at];
        if (c->older != made)
            continue;
        known = true;
        weakest = least(weakest, weakened(w, code, c->kind, c->source, c->shaped, c->dimension));
        if (weakest == LIKE_NO)
            return LIKE_NO;
    }
    like = least(weakest, signatures_like(w, made, other));
    if (like == LIKE_YES && !known && w->codes[code].varied) {
        w->assumed[ASSUMED_HIDDEN] = true;
        return LIKE_GUESS_NO;
    }
    return like;
}

/* ---- the question ---------------------------------------------------------- */

/* LOOKUP's own check of entry MADE: LIKE_YES it passed, LIKE_NO it failed, LIKE_GUESS_NO it was not tried. *FAILED: by
 * which guard. */
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

/* Without weaker guards. FIRST: the call is the one that the other class's entry was made for, or ran none. */
static enum like plain_like(struct whatif *w, uint32_t made, uint32_t other, bool first)
{
    int64_t bits = *pair_at(w, made, other);
    uint32_t entries = (uint32_t)w->r->entries.count;

    if (bits & SEEN_MISMATCH || (first && bits & FIRST_FAIL))
        return LIKE_NO;
    if ((bits & (SEEN_PASS | SEEN_FAIL)) == (SEEN_PASS | SEEN_FAIL))
        return LIKE_GUESS_NO;
    if (bits & (SEEN_PASS | SEEN_FAIL)) {
        w->assumed[ASSUMED_ALIKE] = true;
        return bits & SEEN_PASS ? LIKE_YES : LIKE_NO;
    }
    if (made < entries && other < entries) {
        if (!(bits & APART_KNOWN)) {
            bits |= APART_KNOWN | (entries_apart(w, made, other) ? APART : 0);
            *pair_at(w, made, other) |= bits;
        }
        if (bits & APART)
            return LIKE_NO;
        if (bits & FIRST_FAIL)
            return LIKE_GUESS_NO; /* its first call did not fit; others ran what was made for that one */
    }
    return signatures_like(w, made, other);
}

enum like like_fits(struct whatif *w, uint32_t made, uint32_t lookup)
{
    uint32_t other = w->class_of[lookup], entries = (uint32_t)w->r->entries.count, code = w->classes.at[made].code;
    enum like like, own;
    int64_t failed = 0, bits;
    bool first;

    if (made == other && (other < entries || !w->classes.at[other].hidden))
        return LIKE_YES;
    if (made == other) {
        w->assumed[ASSUMED_HIDDEN] = true;
        return LIKE_GUESS_YES;
    }
    w->torch = replay_torch(w->r, w->r->lookups.at[lookup].cache);
    own = own_check(w, made, lookup, &failed);
    w->relaxed = false;
    first = other >= entries || w->classes.at[other].founder == lookup;
    like = own != LIKE_GUESS_NO ? own : plain_like(w, made, other, first);
    w->relaxed = w->weaker;
    if (like == LIKE_YES || !w->relaxed || !knobs_meant(w, code))
        return like;
    bits = *pair_at(w, made, other);
    if (bits & SEEN_MISMATCH)
        return LIKE_NO;
    if (own == LIKE_NO && failed) { /* the first guard that did not hold, as recorded */
        const struct guard *g = guard_of(w, made, failed);
        if (g && g->shape.rank < 0 &&
            weakened(w, code, g->kind, g->source, strstr(g->source, ".size()") != NULL, -1) == LIKE_NO)
            return LIKE_NO;
    }
    if (bits & WEAK_KNOWN)
        return (enum like)(bits >> WEAK_SHIFT & 3);
    like = weak_like(w, made, other);
    *pair_at(w, made, other) |= WEAK_KNOWN | (int64_t)like << WEAK_SHIFT;
    return like;
}

/* What the kinds and ids of guards stand for that are to be dropped. */
static void drops_read(struct whatif *w)
{
    w->drops.count = 0;
    for (size_t i = 0; i < w->knobs->drops.count; i++) {
        struct query *query = db_query(w->db, schema_statement("whatif/dropped"));
        query_bind_text(query, 1, w->knobs->drops.at[i]);
        if (query_step(query))
            *list_add(&w->drops) = (struct drop){
                .code = replay_index(&w->r->code_ids, query_integer(query, 0)),
                .kind = text_copy(w, query_text(query, 1, NULL)),
                .source = query_type(query, 2) == QUERY_NULL ? NULL : text_copy(w, query_text(query, 2, NULL))};
        query_close(query);
    }
}

void like_begin(struct whatif *w)
{
    const struct whatif_knobs *knobs = w->knobs;

    drops_read(w);
    w->weaker = w->relaxed = knobs->dynamic_all || knobs->dynamic.count || knobs->drops.count;
    memset(w->assumed, 0, sizeof w->assumed);
    for (size_t i = 0; i < w->pairs.room; i++)
        w->pairs.slots[i].value &= ~(int64_t)(WEAK_KNOWN | 3 << WEAK_SHIFT);
}
