/* trace/whatif/like.c -- would the guards of one call's entry let another call pass? See trace/whatif/like.h.
 *
 * Runs in: the viewer.
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

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/remedy.h"
#include "lib/say.h"
#include "trace/whatif/facts.h"
#include "trace/whatif/pairs.h"

struct cause {
    uint32_t made, older; /* entries */
    char *kind, *source;  /* owned */
    bool shaped;          /* is about a size or stride */
    int dimension;        /* of which; -1: not known */
};

/* How strictly the guards of a code object look at one of its names. */
struct name {
    uint32_t code;
    char *name; /* owned */
    bool guarded, exact, typed, opaque;
    struct shape shape; /* sizes that all its entries have alike; SIZE_ANY where one has it dynamic */
    uint32_t varied;    /* bits: sizes that were told apart by several entries, none of them dynamic */
    int values;         /* different exact values, at most 2 */
    char *value;        /* owned */
};

/* A value that guards of a code object hold something against, which is no name. */
struct value {
    uint32_t code;
    char *source; /* owned */
    bool several; /* its entries hold it against two values or more */
};

/* What is known of a pair: a class made, and calls of another one. */
enum {
    SEEN_PASS = 1,
    SEEN_FAIL = 2,
    FIRST_FAIL = 4,
    SEEN_MISMATCH = 8,
    APART_KNOWN = 16,
    APART = 32,
    WEAK_KNOWN = 64,
    WEAK_SHIFT = 8
};

struct likeness {
    struct db *db;                    /* borrowed */
    const struct replay *r;           /* borrowed */
    const struct whatif_knobs *knobs; /* borrowed */
    uint32_t *classes;                /* by lookup */
    uint32_t class_count, class_room;
    int64_t *class_signature; /* by class: row id, or -1 */
    uint32_t *class_code;
    bool *class_hidden; /* by class: something that is not in the signature told its calls apart */
    uint32_t *class_backend;
    bool *founded;     /* by entry: a recorded call made it */
    uint32_t *founder; /* by entry: that lookup */
    struct pairs pairs;
    struct facts facts;
    struct cause *causes; /* sorted by made */
    size_t cause_count;
    struct name *names;
    size_t name_count;
    struct value *values;
    size_t value_count;
    char **backends;
    size_t backend_count;
    bool *lambdas;   /* by code: guards of it are functions */
    bool *varied;    /* by code: something that is not in signatures made recompiles */
    bool *namesakes; /* by code: two of its backends have one name */
    bool floats_later; /* of any process: see struct replay_process */
    struct drop {
        uint32_t code;
        char *kind, *source;
    } drops[WHATIF_DROPS]; /* owned: what an id in knobs->drops is; SOURCE NULL: a kind */
    bool weaker;           /* the knobs make guards weaker */
    bool relaxed;          /* that counts just now */
    bool failed;
    int assumed;
};

/* ---- guards ---------------------------------------------------------------- */

static bool torch_code(const struct likeness *l, uint32_t entry)
{
    uint32_t process = l->r->entries.at[entry].process;

    return process != REPLAY_NONE && l->r->processes.at[process].torch;
}

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

/* Is the type of local NAME settled by one of GUARDS? */
static bool type_settled(const struct guards *guards, const char *name)
{
    for (size_t i = 0; i < guards->count; i++) {
        const struct guard *g = &guards->items[i];
        size_t bytes;
        const char *rest, *local = source_local(g->source, &bytes, &rest);
        if (local && !*rest && bytes == strlen(name) && !strncmp(local, name, bytes) &&
            (g->shape.rank >= 0 || !strcmp(g->kind, "EQUALS_MATCH") || !strcmp(g->kind, "CONSTANT_MATCH") ||
             !strcmp(g->kind, "TYPE_MATCH")))
            return true;
    }
    return false;
}

static bool types_apart(struct likeness *l, uint32_t one, uint32_t other)
{
    const struct signature *a = facts_signature(&l->facts, l->class_signature[one]),
                           *b = facts_signature(&l->facts, l->class_signature[other]);

    for (int i = 0; a && b && i < a->count; i++) {
        const struct part *x = &a->parts[i], *y = signature_part(b, x->name);
        if (y && !parts_typed_alike(x, y) && type_settled(facts_guards(&l->facts, one), x->name) &&
            type_settled(facts_guards(&l->facts, other), x->name))
            return true;
    }
    return false;
}

/* No call fits the guards of both. */
static bool entries_apart(struct likeness *l, uint32_t one, uint32_t other)
{
    const struct guards *a = facts_guards(&l->facts, one), *b = facts_guards(&l->facts, other);
    bool torch = torch_code(l, one);
    size_t i = 0, k = 0;

    while (i < a->count && k < b->count) {
        int order = strcmp(a->items[i].source, b->items[k].source);
        size_t end = k;
        if (order) {
            order < 0 ? i++ : k++;
            continue;
        }
        for (; end < b->count && !strcmp(b->items[end].source, a->items[i].source); end++)
            if (guards_exclude(&a->items[i], &b->items[end], torch))
                return true;
        i++;
    }
    return types_apart(l, one, other);
}

/* ---- how strictly names are looked at -------------------------------------- */

static void name_learn(struct likeness *l, struct name *n, const struct guards *guards)
{
    for (size_t i = 0; i < guards->count; i++) {
        const struct guard *g = &guards->items[i];
        size_t bytes;
        const char *rest, *local = source_local(g->source, &bytes, &rest);
        if (!local || bytes != strlen(n->name) || strncmp(local, n->name, bytes))
            continue;
        n->guarded = true;
        if (*rest) {
            n->opaque = n->opaque || (strncmp(rest, ".size()", 7) && strncmp(rest, ".stride()", 9));
        } else if (g->shape.rank >= 0) {
            if (n->shape.rank < 0) {
                n->shape = g->shape;
            } else if (n->shape.rank == g->shape.rank) {
                for (int k = 0; k < g->shape.rank; k++)
                    if (g->shape.size[k] == SIZE_ANY)
                        n->shape.size[k] = SIZE_ANY;
                    else if (n->shape.size[k] != SIZE_ANY && n->shape.size[k] != g->shape.size[k])
                        n->varied |= 1u << k;
            }
        } else if (!strcmp(g->kind, "TYPE_MATCH")) {
            n->typed = true;
        } else if (guard_exact(g->kind)) {
            n->exact = true;
            if (!n->value)
                n->value = strdup(g->expression), n->values = 1;
            else if (strcmp(n->value, g->expression))
                n->values = 2;
        }
    }
    (void)l;
}

static const struct name *name_of(struct likeness *l, uint32_t code, const char *text)
{
    struct name *more, *n;

    for (size_t i = 0; i < l->name_count; i++)
        if (l->names[i].code == code && !strcmp(l->names[i].name, text))
            return &l->names[i];
    more = realloc(l->names, (l->name_count + 1) * sizeof *more);
    if (!more)
        goto err;
    l->names = more;
    n = &more[l->name_count];
    *n = (struct name){.code = code, .name = strdup(text), .shape = {.rank = -1}};
    if (!n->name)
        goto err;
    l->name_count++;
    for (size_t i = 0; i < l->r->entries.count; i++)
        if (l->r->entries.at[i].code == code)
            name_learn(l, n, facts_guards(&l->facts, (uint32_t)i));
    return n;
err:
    l->failed = true;
    return NULL;
}

/* ---- the knobs ------------------------------------------------------------- */

static bool knobs_meant(const struct likeness *l, uint32_t code)
{
    return !l->knobs->codes || l->knobs->codes[code];
}

/* "x" and "L['x']" are the same source. */
static bool same_source(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b), bytes;
    const char *rest, *local;

    if ((local = source_local(a, &bytes, &rest)) && !*rest)
        a = local, m = bytes;
    if ((local = source_local(b, &bytes, &rest)) && !*rest)
        b = local, n = bytes;
    return m == n && !strncmp(a, b, n);
}

/* Is dimension DIMENSION (-1: the value) of SOURCE made dynamic? */
static bool made_dynamic(const struct likeness *l, uint32_t code, const char *source, int dimension)
{
    if (!knobs_meant(l, code))
        return false;
    if (l->knobs->dynamic_all)
        return true;
    for (int i = 0; i < l->knobs->dynamic_count; i++) {
        const struct whatif_dimension *d = &l->knobs->dynamic[i];
        if (same_source(d->source, source) && (d->dimension < 0 || d->dimension == dimension))
            return true;
    }
    return false;
}

/* Is a guard of KIND at SOURCE dropped? SOURCE may be narrower than the guard's own: "L['x'].size()[0]". */
static bool dropped(const struct likeness *l, uint32_t code, const char *kind, const char *source)
{
    if (!l->knobs->drop_count || !knobs_meant(l, code))
        return false;
    for (int i = 0; i < l->knobs->drop_count; i++) {
        const struct drop *d = &l->drops[i];
        if (!d->source ? !strcmp(l->knobs->drops[i], kind)
                       : d->code == code && !strcmp(d->kind, kind) && !strncmp(d->source, source, strlen(d->source)))
            return true;
    }
    return false;
}

static bool local_dropped(const struct likeness *l, uint32_t code, const char *kind, const char *name)
{
    char source[256];

    snprintf(source, sizeof source, "L['%s']", name);
    return dropped(l, code, kind, source);
}

/* ---- two signatures -------------------------------------------------------- */

static enum like least(enum like a, enum like b)
{
    return a == LIKE_NO || b == LIKE_NO ? LIKE_NO : a < b ? a : b;
}

/* Sizes of a name that differ: does an entry made for A take B? DUCK: sizes of one symbol, see shapes_like. */
static enum like sizes_like(struct likeness *l, uint32_t code, const struct name *n, const struct part *a,
                            const struct part *b, int i, bool torch)
{
    int64_t x = a->shape.size[i], y = b->shape.size[i];
    bool small = torch && (x <= 1 || y <= 1);

    if (x == y)
        return LIKE_YES;
    if (l->relaxed && made_dynamic(l, code, n->name, i)) {
        l->assumed |= ASSUMED_DYNAMIC;
        if (small && !l->knobs->dynamic_all) /* mark_dynamic on a size of 0 or 1 is an error or a warning, by version */
            return LIKE_GUESS_NO;
        return small ? LIKE_NO : LIKE_YES;
    }
    if (n->shape.rank == a->shape.rank && n->shape.size[i] == SIZE_ANY)
        return small ? LIKE_NO : LIKE_YES;
    if (!torch || n->varied & 1u << i || small)
        return n->shape.rank < 0 && !n->opaque ? LIKE_GUESS_NO : LIKE_NO;
    l->assumed |= ASSUMED_AUTOMATIC; /* one entry tells nothing of how the next is made */
    return LIKE_GUESS_YES;
}

/* Does an entry made for a call with part A take a call with part B? */
static enum like parts_like(struct likeness *l, uint32_t code, const struct part *a, const struct part *b, bool torch)
{
    const struct name *n;
    enum like like = LIKE_YES;

    if (!l->facts.blind && !strcmp(a->text, b->text))
        return LIKE_YES;
    if (!(n = name_of(l, code, a->name)))
        return LIKE_GUESS_NO;
    if (!strcmp(a->text, b->text)) /* as far as it was recorded */
        return n->exact || n->opaque ? LIKE_GUESS_YES : LIKE_YES;
    if (l->lambdas[code] && !n->guarded) { /* who knows what it looks at */
        l->assumed |= ASSUMED_LAMBDA;
        return LIKE_GUESS_NO;
    }
    if (!n->guarded)
        return LIKE_YES;
    if (a->shape.rank >= 0 && b->shape.rank >= 0) {
        if (local_dropped(l, code, "TENSOR_MATCH", a->name))
            return LIKE_YES;
        if (a->before != b->before || strncmp(a->text, b->text, (size_t)a->before) ||
            strcmp(a->text + a->after, b->text + b->after) || a->shape.rank != b->shape.rank)
            return LIKE_NO;
        for (int i = 0; i < a->shape.rank; i++)
            like = least(like, sizes_like(l, code, n, a, b, i, torch));
        return like;
    }
    if (!parts_typed_alike(a, b)) /* of other types */
        return n->exact || n->typed || n->shape.rank >= 0 ? LIKE_NO : LIKE_GUESS_NO;
    if (n->exact &&
        (local_dropped(l, code, "EQUALS_MATCH", a->name) || local_dropped(l, code, "CONSTANT_MATCH", a->name)))
        return LIKE_YES;
    if (l->relaxed && made_dynamic(l, code, n->name, -1) &&
        (!strncmp(a->text, "int ", 4) || !strncmp(a->text, "float ", 6))) {
        bool small = torch && (!strcmp(a->text, "int 0") || !strcmp(a->text, "int 1") || !strcmp(b->text, "int 0") ||
                               !strcmp(b->text, "int 1"));
        if (l->floats_later && !strncmp(a->text, "float ", 6))
            return LIKE_GUESS_NO;
        l->assumed |= ASSUMED_DYNAMIC;
        return small ? LIKE_NO : LIKE_YES;
    }
    if (!n->exact)
        return n->opaque ? LIKE_GUESS_NO : LIKE_YES;
    if (torch && n->values < 2 && (!strncmp(a->text, "int ", 4) || !strncmp(a->text, "float ", 6))) {
        l->assumed |= ASSUMED_AUTOMATIC;
        return LIKE_GUESS_YES;
    }
    return LIKE_NO;
}

/* Under dynamic=True sizes that were equal in A are one symbol: they must be equal in B. */
static bool ducks_fit(const struct likeness *l, uint32_t code, const struct signature *a, const struct signature *b)
{
    for (int i = 0; i < a->count; i++) {
        const struct part *x = &a->parts[i], *p = signature_part(b, x->name);
        for (int d = 0; p && d < x->shape.rank && p->shape.rank == x->shape.rank; d++)
            for (int k = i; k < a->count; k++) {
                const struct part *y = &a->parts[k], *q = signature_part(b, y->name);
                for (int e = 0; q && e < y->shape.rank && q->shape.rank == y->shape.rank; e++)
                    if (x->shape.size[d] > 1 && x->shape.size[d] == y->shape.size[e] &&
                        p->shape.size[d] != q->shape.size[e] && made_dynamic(l, code, x->name, d) &&
                        made_dynamic(l, code, y->name, e))
                        return false;
            }
    }
    return true;
}

static enum like signatures_like(struct likeness *l, uint32_t code, int64_t made, int64_t other, bool torch)
{
    const struct signature *a = facts_signature(&l->facts, made), *b = facts_signature(&l->facts, other);
    enum like like = LIKE_YES;

    if (!a || !b)
        return LIKE_GUESS_NO;
    if (made == other && !l->facts.blind) {
        l->assumed |= ASSUMED_SIGNATURE;
        return LIKE_YES;
    }
    for (int i = 0; i < a->count; i++) {
        const struct part *p = signature_part(b, a->parts[i].name);
        like = least(like, p ? parts_like(l, code, &a->parts[i], p, torch) : LIKE_GUESS_NO);
    }
    if (a->count != b->count)
        like = least(like, LIKE_GUESS_NO);
    if (like != LIKE_NO && torch && l->relaxed && l->knobs->dynamic_all && !ducks_fit(l, code, a, b))
        return LIKE_NO;
    if (like != LIKE_NO)
        l->assumed |= ASSUMED_SIGNATURE;
    return like;
}

/* ---- weaker guards --------------------------------------------------------- */

static bool holds_value(const char *kind)
{
    return !strcmp(kind, "EQUALS_MATCH") || !strcmp(kind, "CONSTANT_MATCH");
}

static bool value_learn(struct likeness *l, uint32_t code, const char *source)
{
    const char *value = NULL;

    for (uint32_t i = 0; i < l->r->entries.count; i++) {
        const struct guards *guards = l->r->entries.at[i].code == code ? facts_guards(&l->facts, i) : NULL;
        for (size_t k = 0; guards && k < guards->count; k++) {
            const struct guard *g = &guards->items[k];
            if (strcmp(g->source, source) || !holds_value(g->kind))
                continue;
            if (value && strcmp(value, g->expression))
                return true;
            value = g->expression;
        }
    }
    return false;
}

/* Do the entries of CODE hold the value at SOURCE against two values or more? */
static bool several_values(struct likeness *l, uint32_t code, const char *source)
{
    struct value *more, *v;

    for (size_t i = 0; i < l->value_count; i++)
        if (l->values[i].code == code && !strcmp(l->values[i].source, source))
            return l->values[i].several;
    more = realloc(l->values, (l->value_count + 1) * sizeof *more);
    if (!more)
        goto err;
    l->values = more;
    v = &more[l->value_count];
    *v = (struct value){code, strdup(source), value_learn(l, code, source)};
    if (!v->source)
        goto err;
    l->value_count++;
    return v->several;
err:
    l->failed = true;
    return true;
}

/* Is what a guard of KIND at SOURCE told apart weakened (LIKE_YES)? DIMENSION of SOURCE, or -1. */
static enum like weakened(struct likeness *l, uint32_t code, const char *kind, const char *source, bool shaped,
                          int dimension)
{
    const char *aspect = strstr(source, ".size()") ? strstr(source, ".size()") : strstr(source, ".stride()"), *rest;
    bool value = holds_value(kind), weak;
    size_t bytes;
    char *base;

    if (dropped(l, code, kind, source)) {
        l->assumed |= ASSUMED_DROPPED;
        return LIKE_YES;
    }
    if (!l->knobs->dynamic_all && !l->knobs->dynamic_count)
        return LIKE_NO;
    if (!knobs_meant(l, code))
        return LIKE_NO;
    if (l->knobs->dynamic_all) { /* what a module holds stays as it is */
        if (strstr(source, "._parameters") || strstr(source, "._buffers") || strstr(source, "._modules"))
            return LIKE_NO;
        if (shaped || !strcmp(kind, "SHAPE_ENV") || (value && source_local(source, &bytes, &rest) && !*rest))
            return LIKE_YES;
        /* Other numbers: some torches make them dynamic, too; where there is a second value, this one did not. */
        return value && !several_values(l, code, source) ? LIKE_GUESS_NO : LIKE_NO;
    }
    /* "L['x'].size()[0]" of L['x']; "L['self'].w.size()[0]" of L['self'].w */
    base = strndup(source, aspect ? (size_t)(aspect - source) : strlen(source));
    weak = base && made_dynamic(l, code, base, dimension) && (shaped || value);
    free(base);
    return weak ? LIKE_YES : LIKE_NO;
}

/* Entry MADE against the class OTHER, with weaker guards: does what told them apart still do so? */
static enum like weak_like(struct likeness *l, uint32_t made, uint32_t other, bool torch)
{
    uint32_t entries = (uint32_t)l->r->entries.count, code = l->class_code[made];
    bool told = false; /* all that told them apart is known */
    enum like like, weakest = LIKE_YES;

    if (made < entries && other < entries) {
        size_t low = 0, high = l->cause_count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (l->causes[middle].made < other)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < l->cause_count && l->causes[low].made == other; low++) {
            const struct cause *c = &l->causes[low];
            if (c->older != made)
                continue;
            told = true;
            weakest = least(weakest, weakened(l, code, c->kind, c->source, c->shaped, c->dimension));
            if (weakest == LIKE_NO)
                return LIKE_NO;
        }
    }
    like = least(weakest, signatures_like(l, code, l->class_signature[made], l->class_signature[other], torch));
    if (like == LIKE_YES && !told && l->varied[code]) {
        l->assumed |= ASSUMED_HIDDEN;
        return LIKE_GUESS_NO;
    }
    return like;
}

/* ---- the question ---------------------------------------------------------- */

/* What LOOKUP's own check of entry MADE said: 1 it passed, 0 it failed, -1 it was not tried. *FAILED: by which guard.
 * */
static int own_check(const struct likeness *l, uint32_t made, uint32_t lookup, int64_t *failed)
{
    const struct replay_lookup *k = &l->r->lookups.at[lookup];

    for (uint32_t i = 0; i < k->check_count; i++) {
        const struct replay_check *c = &l->r->checks.at[k->checks + i];
        if (c->entry == made) {
            *failed = l->r->failed[k->checks + i];
            return c->result == CHECK_PASS ? 1 : 0;
        }
    }
    return -1;
}

static const struct guard *guard_with(struct likeness *l, uint32_t entry, int64_t id)
{
    const struct guards *g = facts_guards(&l->facts, entry);

    for (size_t i = 0; i < g->count; i++)
        if (g->items[i].id == id)
            return &g->items[i];
    return NULL;
}

/* Without weaker guards. FIRST: the call is the one that the other class's entry was made for, or ran none. */
static enum like plain_like(struct likeness *l, uint32_t made, uint32_t other, bool first, bool torch)
{
    uint32_t *bits = pairs_at(&l->pairs, pairs_key(made, other)), entries = (uint32_t)l->r->entries.count;

    if (!bits)
        return LIKE_GUESS_NO;
    if (*bits & SEEN_MISMATCH)
        return LIKE_NO;
    if (first && *bits & FIRST_FAIL)
        return LIKE_NO;
    if ((*bits & (SEEN_PASS | SEEN_FAIL)) == (SEEN_PASS | SEEN_FAIL))
        return LIKE_GUESS_NO;
    if (*bits & (SEEN_PASS | SEEN_FAIL)) {
        l->assumed |= ASSUMED_ALIKE;
        return *bits & SEEN_PASS ? LIKE_YES : LIKE_NO;
    }
    if (made < entries && other < entries) {
        if (!(*bits & APART_KNOWN)) {
            *bits |= APART_KNOWN | (entries_apart(l, made, other) ? APART : 0);
            bits = pairs_at(&l->pairs, pairs_key(made, other));
        }
        if (*bits & APART)
            return LIKE_NO;
        if (*bits & FIRST_FAIL)
            return LIKE_GUESS_NO; /* its first call did not fit; others ran what was made for that one */
    }
    return signatures_like(l, l->class_code[made], l->class_signature[made], l->class_signature[other], torch);
}

enum like likeness_fits(struct likeness *l, uint32_t made, uint32_t lookup)
{
    uint32_t other = l->classes[lookup], entries = (uint32_t)l->r->entries.count, *bits;
    bool first = other >= entries || l->founder[other] == lookup, torch;
    enum like like;
    int64_t failed = -1;
    int own;

    if (made == other) {
        if (other >= entries && l->class_hidden[other]) {
            l->assumed |= ASSUMED_HIDDEN;
            return LIKE_GUESS_YES;
        }
        return LIKE_YES;
    }
    torch = l->r->caches.at[l->r->lookups.at[lookup].cache].process != REPLAY_NONE &&
            l->r->processes.at[l->r->caches.at[l->r->lookups.at[lookup].cache].process].torch;
    own = made < entries ? own_check(l, made, lookup, &failed) : -1;
    l->relaxed = false;
    like = own == 1 ? LIKE_YES : own == 0 ? LIKE_NO : plain_like(l, made, other, first, torch);
    l->relaxed = l->weaker;
    if (like == LIKE_YES || !l->relaxed || !knobs_meant(l, l->class_code[made]))
        return like;
    bits = pairs_at(&l->pairs, pairs_key(made, other));
    if (!bits || *bits & SEEN_MISMATCH)
        return LIKE_NO;
    if (own == 0 && failed >= 0) { /* the first guard that did not hold, as recorded */
        const struct guard *g = guard_with(l, made, failed);
        if (g && g->shape.rank < 0 &&
            weakened(l, l->class_code[made], g->kind, g->source, strstr(g->source, ".size()") != NULL, -1) == LIKE_NO)
            return LIKE_NO;
    }
    if (!(*bits & WEAK_KNOWN)) {
        like = weak_like(l, made, other, torch);
        if ((bits = pairs_at(&l->pairs, pairs_key(made, other))))
            *bits = (*bits & ~(3u << WEAK_SHIFT)) | WEAK_KNOWN | (uint32_t)like << WEAK_SHIFT;
    }
    return bits ? (enum like)(*bits >> WEAK_SHIFT & 3) : LIKE_GUESS_NO;
}

static void drops_free(struct likeness *l)
{
    for (int i = 0; i < WHATIF_DROPS; i++) {
        free(l->drops[i].kind);
        free(l->drops[i].source);
        l->drops[i] = (struct drop){0};
    }
}

/* What the guards are whose ids are to be dropped. */
static void drops_read(struct likeness *l)
{
    drops_free(l);
    for (int i = 0; i < l->knobs->drop_count; i++) {
        struct query *query;
        if (l->knobs->drops[i][strspn(l->knobs->drops[i], "0123456789")])
            continue;
        query = db_query(
            l->db,
            "SELECT e.code_id, g.kind, g.source FROM guard g JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id"
            " WHERE g.guard_id = CAST(?1 AS INTEGER)");
        query_bind_text(query, 1, l->knobs->drops[i]);
        if (query_step(query))
            l->drops[i] = (struct drop){replay_index(&l->r->code_ids, query_integer(query, 0)),
                                        strdup(query_text(query, 1, NULL)), strdup(query_text(query, 2, NULL))};
        if (!query_close(query) || (l->drops[i].kind && !l->drops[i].source))
            l->failed = true;
    }
}

void likeness_begin(struct likeness *l, const struct whatif_knobs *knobs)
{
    l->knobs = knobs;
    drops_read(l);
    l->weaker = l->relaxed = knobs->dynamic_all || knobs->dynamic_count || knobs->drop_count;
    l->assumed = 0;
    for (size_t i = 0; i < l->pairs.room; i++)
        l->pairs.values[i] &= ~(uint32_t)(WEAK_KNOWN | 3u << WEAK_SHIFT);
}

int likeness_assumed(const struct likeness *l)
{
    return l->assumed;
}

uint32_t likeness_class(const struct likeness *l, uint32_t lookup)
{
    return l->classes[lookup];
}

uint32_t likeness_classes(const struct likeness *l)
{
    return l->class_count;
}

bool likeness_namesakes(const struct likeness *l, uint32_t code)
{
    return l->namesakes[code];
}

uint32_t likeness_backend(const struct likeness *l, uint32_t class_)
{
    return l->class_backend[class_];
}

/* ---- learning from the trace ----------------------------------------------- */

static bool classes_room(struct likeness *l, uint32_t count)
{
    uint32_t room = l->class_room;

    if (count <= room)
        return true;
    room = count > room * 2 ? count + 16 : room * 2;
#define GROW_(array)                                             \
    do {                                                         \
        void *more = realloc(l->array, room * sizeof *l->array); \
        if (!more)                                               \
            return false;                                        \
        l->array = more;                                         \
    } while (0)
    GROW_(class_signature);
    GROW_(class_code);
    GROW_(class_hidden);
    GROW_(class_backend);
#undef GROW_
    l->class_room = room;
    return true;
}

static int by_made(const void *a, const void *b)
{
    const struct cause *x = a, *y = b;

    return x->made != y->made ? (x->made < y->made ? -1 : 1) : (x->older > y->older) - (x->older < y->older);
}

static bool load_causes(struct likeness *l)
{
    struct query *query =
        db_query(l->db, "SELECT m.cache_entry_id, r.cache_entry_id, r.kind, r.source, r.aspect, r.dimension FROM recompile_cause r"
                        " JOIN compile m ON m.compile_id = r.compile_id WHERE m.cache_entry_id IS NOT NULL");
    bool ok = true;

    while (ok && query_step(query)) {
        uint32_t made = replay_index(&l->r->entry_ids, query_integer(query, 0)),
                 older = replay_index(&l->r->entry_ids, query_integer(query, 1));
        const char *aspect = query_text(query, 4, NULL);
        struct cause *c;
        if (made == REPLAY_NONE || older == REPLAY_NONE)
            continue;
        if (!(l->cause_count & (l->cause_count - 1))) {
            struct cause *more = realloc(l->causes, (l->cause_count ? l->cause_count * 2 : 1) * sizeof *more);
            if (!more) {
                ok = false;
                break;
            }
            l->causes = more;
        }
        c = &l->causes[l->cause_count++];
        *c = (struct cause){.made = made,
                            .older = older,
                            .kind = strdup(query_text(query, 2, NULL)),
                            .source = strdup(query_text(query, 3, NULL))};
        ok = c->kind && c->source;
        if (ok && strcmp(c->kind, "BACKEND_MATCH") && guard_hidden(&l->facts, c->kind, c->source))
            l->varied[l->r->entries.at[made].code] = true;
        c->shaped = !strcmp(aspect, "size") || !strcmp(aspect, "stride");
        /* A stride follows from the sizes of other dimensions. */
        c->dimension = !strcmp(aspect, "size") && query_type(query, 5) == QUERY_INTEGER ? (int)query_integer(query, 5) : -1;
        pairs_add(&l->pairs, older, made, !strcmp(c->kind ? c->kind : "", "BACKEND_MATCH") ? SEEN_MISMATCH : FIRST_FAIL);
    }
    ok = query_close(query) && ok;
    if (l->cause_count)
        qsort(l->causes, l->cause_count, sizeof *l->causes, by_made);
    return ok;
}

static bool load_backends(struct likeness *l)
{
    struct query *query = db_query(l->db, "SELECT cache_entry_id, backend FROM cache_entry");
    bool ok = true;

    while (ok && query_step(query)) {
        uint32_t entry = replay_index(&l->r->entry_ids, query_integer(query, 0)), at = 0;
        const char *name = query_text(query, 1, NULL);
        while (at < l->backend_count && strcmp(l->backends[at], name))
            at++;
        if (at == l->backend_count) {
            char **more = realloc(l->backends, (l->backend_count + 1) * sizeof *more);
            if (!more || !(more[l->backend_count] = strdup(name)))
                ok = false;
            l->backends = more ? more : l->backends;
            l->backend_count += ok;
        }
        if (entry != REPLAY_NONE)
            l->class_backend[entry] = at;
    }
    return query_close(query) && ok;
}

/* Codes with guards that are functions. */
static bool load_lambdas(struct likeness *l)
{
    struct query *query = db_query(
        l->db, "SELECT DISTINCT e.code_id FROM guard g JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id"
               " WHERE g.kind = 'LAMBDA' AND COALESCE(g.source, '') = ''");

    while (query_step(query)) {
        uint32_t code = replay_index(&l->r->code_ids, query_integer(query, 0));
        if (code != REPLAY_NONE)
            l->lambdas[code] = true;
    }
    return query_close(query);
}

/* The class of a call that ran no entry: its code, its signature, and the guards that failed where those look at
 * something else. */
static uint32_t miss_class(struct likeness *l, struct pairs *known, uint32_t lookup, int64_t signature)
{
    const struct replay_lookup *k = &l->r->lookups.at[lookup];
    uint32_t code = l->r->caches.at[k->cache].code, backend = REPLAY_NONE, *at;
    uint64_t key = (uint64_t)code * 0x9e3779b97f4a7c15u ^ (uint64_t)signature * 0xc2b2ae3d27d4eb4fu;
    bool unseen = signature < 0;

    for (uint32_t i = 0; i < k->check_count; i++) {
        const struct replay_check *c = &l->r->checks.at[k->checks + i];
        int64_t failed = l->r->failed[k->checks + i];
        const struct guard *g;
        if (c->entry == REPLAY_CHECK_NONE)
            continue;
        if (c->result != CHECK_BACKEND_MISMATCH)
            backend = l->class_backend[c->entry];
        if (c->result == CHECK_FAIL && failed >= 0 && (g = guard_with(l, c->entry, failed)) &&
            guard_hidden(&l->facts, g->kind, g->source)) {
            unseen = true;
            key = key * 31 + (uint64_t)failed;
        }
    }
    key = (key ^ (backend * 0x9e3779b9u)) & ~(UINT64_C(1) << 63); /* not UINT64_MAX */
    at = pairs_at(known, key);
    if (!at)
        return REPLAY_NONE;
    if (!*at) {
        if (!classes_room(l, l->class_count + 1)) {
            l->failed = true;
            return REPLAY_NONE;
        }
        l->class_signature[l->class_count] = signature;
        l->class_code[l->class_count] = code;
        l->class_hidden[l->class_count] = unseen;
        l->class_backend[l->class_count] = backend;
        *at = ++l->class_count;
    }
    return *at - 1;
}

/* A call that was seen from outside and found nothing: the entries that were there did not fit. */
static void learn_unseen(struct likeness *l, uint32_t lookup)
{
    const struct replay_lookup *k = &l->r->lookups.at[lookup];
    const struct replay_cache *cache = &l->r->caches.at[k->cache];

    for (uint32_t i = 0; i < cache->entry_count && l->r->entries.at[cache->entries[i]].born_ns < k->start_ns; i++) {
        uint32_t entry = cache->entries[i];
        if (l->r->entries.at[entry].died_ns > k->end_ns && l->r->entries.at[entry].region < 0 && entry != l->classes[lookup])
            pairs_add(&l->pairs, entry, l->classes[lookup], FIRST_FAIL);
    }
}

static bool learn(struct likeness *l)
{
    const struct replay *r = l->r;
    struct pairs known = {0};

    for (size_t i = 0; i < r->lookups.count; i++) { /* who made what */
        const struct replay_lookup *k = &r->lookups.at[i];
        if (k->outcome == OUTCOME_COMPILED && k->entry != REPLAY_NONE && !l->founded[k->entry]) {
            l->founded[k->entry] = true;
            l->founder[k->entry] = (uint32_t)i;
            l->class_signature[k->entry] = r->signatures[i];
        }
    }
    for (size_t i = 0; i < r->lookups.count && !l->failed; i++) {
        const struct replay_lookup *k = &r->lookups.at[i];
        bool ran = k->entry != REPLAY_NONE && (k->outcome == OUTCOME_HIT || k->outcome == OUTCOME_COMPILED), first;
        l->classes[i] = ran ? k->entry : miss_class(l, &known, (uint32_t)i, r->signatures[i]);
        if (l->classes[i] == REPLAY_NONE)
            break;
        first = !ran || k->outcome == OUTCOME_COMPILED;
        if (k->observed && first)
            learn_unseen(l, (uint32_t)i);
        for (uint32_t c = 0; c < k->check_count; c++) {
            const struct replay_check *check = &r->checks.at[k->checks + c];
            if (check->entry == REPLAY_CHECK_NONE || check->entry == l->classes[i])
                continue;
            if (check->result == CHECK_BACKEND_MISMATCH && l->class_backend[check->entry] == l->class_backend[l->classes[i]])
                l->namesakes[r->caches.at[k->cache].code] = true;
            if (check->result == CHECK_BACKEND_MISMATCH)
                pairs_add(&l->pairs, check->entry, l->classes[i], SEEN_MISMATCH);
            else if (check->result == CHECK_PASS || check->result == CHECK_FAIL)
                pairs_add(&l->pairs, check->entry, l->classes[i],
                         first && check->result == CHECK_FAIL ? FIRST_FAIL
                         : check->result == CHECK_PASS        ? SEEN_PASS
                                                              : SEEN_FAIL);
        }
    }
    l->failed = l->failed || known.failed || l->pairs.failed;
    pairs_free(&known);
    return !l->failed && !l->facts.failed;
}

struct likeness *likeness_open(struct db *db, const struct replay *r)
{
    struct likeness *l = calloc(1, sizeof *l);
    bool ok = false;

    if (!l)
        goto out;
    l->db = db;
    l->r = r;
    l->classes = malloc((r->lookups.count + 1) * sizeof *l->classes);
    l->founded = calloc(r->entries.count + 1, sizeof *l->founded);
    l->founder = malloc((r->entries.count + 1) * sizeof *l->founder);
    l->lambdas = calloc(r->codes.count + 1, sizeof *l->lambdas);
    l->varied = calloc(r->codes.count + 1, sizeof *l->varied);
    l->namesakes = calloc(r->codes.count + 1, sizeof *l->namesakes);
    if (!l->classes || !l->founded || !l->founder || !l->lambdas || !l->varied || !l->namesakes ||
        !classes_room(l, (uint32_t)r->entries.count + 1))
        goto out;
    l->class_count = (uint32_t)r->entries.count;
    for (size_t i = 0; i < r->entries.count; i++) {
        l->class_signature[i] = -1;
        l->class_code[i] = r->entries.at[i].code;
        l->class_hidden[i] = false;
        l->class_backend[i] = REPLAY_NONE;
        l->founder[i] = REPLAY_NONE;
    }
    for (size_t i = 0; i < r->processes.count; i++)
        l->floats_later = l->floats_later || r->processes.at[i].floats_later;
    ok = facts_open(&l->facts, db, r) && load_backends(l) && load_lambdas(l) && load_causes(l) && learn(l);
    l->pairs.full = true;
out:
    if (!ok) {
        if ((!l || l->failed || l->facts.failed) && !db_damaged(db))
            say_error("out of memory");
        likeness_free(l);
        return NULL;
    }
    return l;
}

void likeness_free(struct likeness *l)
{
    if (!l)
        return;
    facts_close(&l->facts);
    drops_free(l);
    for (size_t i = 0; i < l->cause_count; i++) {
        free(l->causes[i].kind);
        free(l->causes[i].source);
    }
    for (size_t i = 0; i < l->name_count; i++) {
        free(l->names[i].name);
        free(l->names[i].value);
    }
    for (size_t i = 0; i < l->value_count; i++)
        free(l->values[i].source);
    for (size_t i = 0; i < l->backend_count; i++)
        free(l->backends[i]);
    free(l->causes);
    free(l->names);
    free(l->values);
    free(l->backends);
    free(l->lambdas);
    free(l->varied);
    free(l->namesakes);
    free(l->classes);
    free(l->founded);
    free(l->founder);
    free(l->class_signature);
    free(l->class_code);
    free(l->class_hidden);
    free(l->class_backend);
    pairs_free(&l->pairs);
    free(l);
}
