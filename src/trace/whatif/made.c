/* trace/whatif/made.c -- makes up guards for entries that were not recorded. See
 * trace/whatif/like.h.
 *
 * In the simulation a call may be compiled that was not compiled in the recording. The new entry is
 * assumed to have the guards of the newest recorded entry whose inputs had the same types. These
 * guards then expect the values of the call. If a value is not known, or if there is no such
 * recorded entry, the expected value is not known either. */
#include "trace/whatif/like.h"

/* Do inputs A and B have the same type, and the same rank if they are tensors? */
static bool parts_alike(const struct part *a, const struct part *b)
{
    size_t bytes = strcspn(a->text, " [");

    if (strcspn(b->text, " [") != bytes || strncmp(a->text, b->text, bytes))
        return false;
    return a->shape.rank == b->shape.rank;
}

/* Do signatures A and B have equally many inputs, and if TYPED, the same inputs with the same
 * types? */
static bool signatures_alike(const struct signature *a, const struct signature *b, bool typed)
{
    if (!b || a->parts.count != b->parts.count)
        return false;
    for (size_t i = 0; typed && i < a->parts.count; i++) {
        const struct part *mine = &a->parts.at[i];
        const struct part *theirs = signature_part(b, mine->source);
        if (!theirs || !parts_alike(mine, theirs))
            return false;
    }
    return true;
}

/* Return the newest recorded entry of CLASS_'s code object whose inputs have the types of CLASS_'s
 * inputs (any types unless TYPED), or REPLAY_NONE. If TYPED, an entry whose guards hold for CLASS_
 * (like_stands()) is preferred to a newer one. */
static uint32_t most_alike(struct whatif *w, uint32_t class_, bool typed)
{
    const struct signature *mine = signature_of(w, class_at(w, class_)->signature);
    uint32_t newest = REPLAY_NONE;

    if (!mine)
        return REPLAY_NONE;
    for (uint32_t i = (uint32_t)w->r->entries.count; i--;) {
        const struct like_class *entry = class_at(w, i);
        if (entry->code != class_code(w, class_))
            continue;
        if (!signatures_alike(mine, signature_of(w, entry->signature), typed))
            continue;
        if (newest == REPLAY_NONE)
            newest = i;
        if (!typed || like_stands(w, i, class_, NULL))
            return i;
    }
    return newest;
}

/* Dimensions of a tensor: a set has a bit for each dimension. */
struct sizes_seen {
    uint32_t several; /* dimensions that have different sizes in recorded entries */
    uint32_t any;     /* dimensions that are dynamic in a recorded entry */
};

/* Add dimension D to SEEN: its size is A in one entry and B in another. Torch always compiles sizes
 * 0 and 1 apart, so a difference between them and other sizes means nothing. */
static void size_seen(const struct whatif *w, struct sizes_seen *seen, int d, int64_t a, int64_t b)
{
    bool apart = w->torch && (a <= 1 || b <= 1);

    if (b == SIZE_ANY)
        seen->any |= 1u << d;
    else if (a != b && !apart)
        seen->several |= 1u << d;
}

/* Return in which dimensions the tensor at G's source differs between recorded entries of CODE, or
 * is dynamic. If G checks a plain value that differs, all bits of `several` are set. */
static struct sizes_seen sizes_seen(struct whatif *w, uint32_t code, const struct guard *g)
{
    const struct shape *a = &g->want.sizes;
    struct sizes_seen seen = {0};

    if (g->about != ABOUT_VALUE && g->about != ABOUT_TENSOR)
        return seen;
    for (struct look at = {0}; guard_next(w, code, g->source, &at);) {
        const struct shape *b = &at.g->want.sizes;
        if (at.g->about != g->about)
            continue;
        if (g->about == ABOUT_VALUE && strcmp(at.g->expression, g->expression))
            seen.several = ~0u;
        for (int d = 0; d < a->rank && b->rank == a->rank; d++)
            size_seen(w, &seen, d, a->size[d], b->size[d]);
    }
    return seen;
}

/* Return the kind of guard that torch uses for the constant LITERAL. */
static const char *constant_kind(const char *literal)
{
    if (!strcmp(literal, "None"))
        return "NONE_MATCH";
    return strcmp(literal, "True") ? "FALSE_MATCH" : "TRUE_MATCH";
}

/* Complete MADE, a guard on a value. SEVERAL: recorded entries expect different values there.
 * Returns false if the value is not known. */
static bool make_value(struct guard *made, bool several)
{
    const struct value *v = &made->want;

    if (!v->literal) {
        made->loose = false;
        return false;
    }
    made->loose = !several && v->low == v->high;
    if (strcmp(made->kind, "EQUALS_MATCH") && strcmp(made->kind, "CONSTANT_MATCH")) {
        made->id = 0;
        made->kind = constant_kind(v->literal);
    }
    return true;
}

/* Complete MADE, a guard on a tensor. It does not check the sizes that are dynamic when the entry
 * is made. G is the guard of the most similar entry. Returns false if the sizes are not known. */
static bool make_tensor(const struct whatif *w, const struct guard *g, struct sizes_seen seen,
                        struct guard *made)
{
    struct shape *sizes = &made->want.sizes;

    if (sizes->rank < 0 || sizes->rank != g->want.sizes.rank)
        return false;
    for (int d = 0; d < sizes->rank; d++) {
        uint32_t bit = 1u << d;
        bool dynamic = seen.any & bit || g->want.sizes.size[d] == SIZE_ANY;
        if (w->torch && sizes->size[d] <= 1)
            continue; /* torch compiles the sizes 0 and 1 separately */
        if (dynamic)
            sizes->size[d] = SIZE_ANY;
        else if (!(seen.several & bit))
            made->loose |= bit;
    }
    return true;
}

/* Make MADE a copy of a recorded guard that holds for the calls of CLASS_ and checks the same
 * property of the same source as G. Returns false if there is no such guard. STANDS: all guards of
 * the most similar entry hold for CLASS_. */
static bool make_condition(struct whatif *w, uint32_t class_, const struct guard *g, bool stands,
                           struct guard *made)
{
    const struct value *v = &made->want;
    bool number = w->torch && g->about == ABOUT_NUMBER;
    bool known = v->low == v->high;
    uint32_t code = class_code(w, class_);
    bool apart = known && v->low <= 1; /* torch compiles the numbers 0 and 1 separately */

    if (number && apart) {
        made->loose = false;
        return true;
    }
    made->loose = !stands;
    for (struct look at = {0}; guard_next(w, code, g->source, &at);) {
        if (at.g->about != g->about)
            continue;
        if (guard_holds(w, at.g, class_, true) != LIKE_YES)
            continue;
        *made = *at.g;
        made->loose = !stands;
        return true;
    }
    return false;
}

/* Return guard G of the most similar entry as it would be in an entry for CLASS_: it expects the
 * value in CLASS_'s calls, if that value is known. STANDS: all guards of the most similar entry
 * hold for CLASS_; if not, the conditions may differ. */
static struct guard guard_made(struct whatif *w, uint32_t class_, const struct guard *g,
                               bool stands)
{
    struct sizes_seen seen = sizes_seen(w, class_code(w, class_), g);
    struct guard made = *g;
    struct value *v = &made.want;
    bool known;

    *v = value_of(w, class_, true, g->source);
    v->type = g->about == ABOUT_LENGTH ? g->want.type : value_type(w, v);
    made.expression = NULL;
    switch (g->about) {
    case ABOUT_TYPE:
        known = v->type;
        break;
    case ABOUT_VALUE:
        known = make_value(&made, seen.several);
        break;
    case ABOUT_LENGTH:
        known = v->length >= 0;
        break;
    case ABOUT_TENSOR:
        known = make_tensor(w, g, seen, &made);
        break;
    case ABOUT_SOMETHING:
        known = v->literal || v->something || v->type;
        break;
    default:
        known = make_condition(w, class_, g, stands, &made);
    }
    if (!known)
        made.about = ABOUT_UNKNOWN;
    return made;
}

/* Does every recorded entry of CODE check a type at SOURCE? */
static bool types_settled(struct whatif *w, uint32_t code, const char *source)
{
    uint32_t last = REPLAY_NONE;
    int64_t missing = 0;

    for (uint32_t i = 0; is_recorded(w, i); i++) {
        bool of_code = entry_at(w, i)->code == code;
        if (of_code)
            missing++;
    }
    for (struct look at = {0}; guard_next(w, code, source, &at);) {
        bool typed = at.g->want.type || at.g->about == ABOUT_TENSOR;
        if (at.entry == last || !typed)
            continue;
        last = at.entry;
        missing--;
    }
    return !missing;
}

/* Return a guess at a guard for inputs whose types no entry was compiled for: assume that the entry
 * reads the same sources as the entry with G, and checks at least their types. */
static struct guard guard_guessed(struct whatif *w, uint32_t class_, const struct guard *g)
{
    struct guard made = {
        .id = -g->id,
        .kind = strstr(g->kind, "LAMBDA") ? "LAMBDA" : "",
        .source = g->source,
        .about = ABOUT_UNKNOWN,
    };

    made.want = value_of(w, class_, true, g->source);
    made.want.type = value_type(w, &made.want);
    if (made.want.type && types_settled(w, class_code(w, class_), g->source))
        made.about = ABOUT_ALIKE;
    return made;
}

void guards_make(struct whatif *w, uint32_t class_, struct guards *g)
{
    uint32_t model = most_alike(w, class_, true);
    bool typed = model != REPLAY_NONE;
    bool stands = typed && like_stands(w, model, class_, NULL);
    const struct guards *like;

    if (!typed)
        model = most_alike(w, class_, false);
    g->unlike = model == REPLAY_NONE;
    if (g->unlike)
        return;
    like = guards_of(w, model);
    list_each(one, like) {
        struct guard *made = list_add(g);
        if (typed)
            *made = guard_made(w, class_, one, stands);
        else
            *made = guard_guessed(w, class_, one);
    }
}
