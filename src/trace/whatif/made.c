/* trace/whatif/made.c -- the guards of entries that were not recorded. See trace/whatif/like.h.
 *
 * A call that was not compiled would have been: its entry has the guards of the newest entry whose
 * inputs had the same types, on the values of that call. Where those values are not known, or no
 * entry is like it, the expected values of its guards are not known either. */
#include "trace/whatif/like.h"

/* Are A and B inputs of one type, tensors also of one rank? */
static bool parts_alike(const struct part *a, const struct part *b)
{
    size_t bytes = strcspn(a->text, " [");

    if (strcspn(b->text, " [") != bytes || strncmp(a->text, b->text, bytes))
        return false;
    return a->shape.rank == b->shape.rank;
}

/* Have A and B the same sources, if TYPED of the same types? */
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

/* The newest recorded entry of CLASS_'s code whose inputs had, if TYPED, the types that those of
 * CLASS_ have, or REPLAY_NONE; if there is one, of those that stand for CLASS_. */
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

/* Dimensions of a tensor, as bits. */
struct sizes_seen {
    uint32_t several; /* differ between recorded entries */
    uint32_t any;     /* dynamic in one */
};

/* Dimension D is A in one entry and B in another. Torch's 0 and 1 tell nothing: they are compiled
 * apart. */
static void size_seen(const struct whatif *w, struct sizes_seen *seen, int d, int64_t a, int64_t b)
{
    bool apart = w->torch && (a <= 1 || b <= 1);

    if (b == SIZE_ANY)
        seen->any |= 1u << d;
    else if (a != b && !apart)
        seen->several |= 1u << d;
}

/* The sizes of G's tensor in the recorded entries of its code. Of a value: all bits of `several` if
 * it differs. */
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

/* Torch has a kind of guard for each constant. */
static const char *constant_kind(const char *literal)
{
    if (!strcmp(literal, "None"))
        return "NONE_MATCH";
    return strcmp(literal, "True") ? "FALSE_MATCH" : "TRUE_MATCH";
}

/* MADE wants the value of its source, which recorded entries want SEVERAL of. False: it is not
 * known. */
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

/* MADE wants the sizes of its tensor, but for those that are dynamic by then. G: of the entry most
 * like it. False: they are not known. */
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
            continue; /* compiled apart */
        if (dynamic)
            sizes->size[d] = SIZE_ANY;
        else if (!(seen.several & bit))
            made->loose |= bit;
    }
    return true;
}

/* MADE becomes a recorded guard like G that holds for CLASS_. False: there is none. STANDS: the
 * entry most like it stands for CLASS_. */
static bool make_condition(struct whatif *w, uint32_t class_, const struct guard *g, bool stands,
                           struct guard *made)
{
    const struct value *v = &made->want;
    bool number = w->torch && g->about == ABOUT_NUMBER;
    bool known = v->low == v->high;
    uint32_t code = class_code(w, class_);
    bool apart = known && v->low <= 1; /* torch compiles it so */

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

/* G, of the entry most like it, as it would be for CLASS_: it wants the value of CLASS_, as far as
 * that is known. That entry STANDS for CLASS_, or else conditions may be others. */
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

/* Does every recorded entry of CODE want one type at SOURCE? */
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

/* For inputs of types that no entry was made for: assume that it reads the same sources as the
 * entry with G and guards at least their types. */
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
