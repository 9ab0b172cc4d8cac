/* trace/whatif/made.c -- makes up guards for entries that were not recorded. See
 * trace/whatif/like.h.
 *
 * In the simulation a call may be compiled that was not compiled in the recording. The new entry is
 * assumed to have the guards of the newest recorded entry whose inputs had the same types. These
 * guards then expect the values of the call. If a value is not known, or if there is no such
 * recorded entry, the expected value is not known either. */
#include "trace/whatif/like.h"

/* Have the inputs A and B the same type and, if they are tensors, the same rank? */
static bool have_same_type(const struct part *a, const struct part *b)
{
    size_t bytes = strcspn(a->text, " [");

    if (strcspn(b->text, " [") != bytes || strncmp(a->text, b->text, bytes))
        return false;
    return a->shape.rank == b->shape.rank;
}

/* Have the signatures A and B the same number of inputs? If TYPED, have they the same inputs with
 * the same types? */
static bool are_signatures_alike(const struct signature *a, const struct signature *b, bool typed)
{
    if (!b || a->parts.count != b->parts.count)
        return false;
    for (size_t i = 0; typed && i < a->parts.count; i++) {
        const struct part *mine = &a->parts.at[i];
        const struct part *theirs = signature_find_part(b, mine->source);
        if (!theirs || !have_same_type(mine, theirs))
            return false;
    }
    return true;
}

/* Return the newest recorded entry of the code object of the class CLASS_. If TYPED, the entry must
 * have the types of the class's inputs, and an entry whose guards hold for the class
 * (like_do_guards_hold) is preferred to a newer one. Returns REPLAY_NONE if there is none. */
static uint32_t find_most_alike(struct whatif *w, uint32_t class_, bool typed)
{
    const struct signature *mine = signature_with_id(w, class_at(w, class_)->signature);
    uint32_t newest = REPLAY_NONE;

    if (!mine)
        return REPLAY_NONE;
    for (uint32_t i = (uint32_t)w->r->entries.count; i--;) {
        const struct like_class *entry = class_at(w, i);
        if (entry->code != class_code(w, class_))
            continue;
        if (!are_signatures_alike(mine, signature_with_id(w, entry->signature), typed))
            continue;
        if (newest == REPLAY_NONE)
            newest = i;
        if (!typed || like_do_guards_hold(w, i, class_, NULL))
            return i;
    }
    return newest;
}

/* Dimensions of a tensor: a set has a bit for each dimension. */
struct sizes_seen {
    uint32_t several; /* dimensions that have different sizes in recorded entries */
    uint32_t any;     /* dimensions that are dynamic in a recorded entry */
};

/* Dimension D has the size A in one entry and the size B in another: add it to SEEN. A difference
 * from 0 or 1 does not count, because torch compiles these sizes separately. */
static void add_varying_size(const struct whatif *w, struct sizes_seen *seen, int d, int64_t a,
                             int64_t b)
{
    bool apart = w->torch && (a <= 1 || b <= 1);

    if (b == SIZE_ANY)
        seen->any |= 1u << d;
    else if (a != b && !apart)
        seen->several |= 1u << d;
}

/* Return the dimensions of the tensor at the guard's source that have different sizes in recorded
 * entries of CODE, or that are dynamic. If the guard checks a plain value that differs, all bits of
 * `several` are set. */
static struct sizes_seen collect_sizes(struct whatif *w, uint32_t code, const struct guard *g)
{
    const struct shape *a = &g->want.sizes;
    struct sizes_seen seen = {0};

    if (g->about != ABOUT_VALUE && g->about != ABOUT_TENSOR)
        return seen;
    for (struct look at = {0}; guard_next_on_source(w, code, g->source, &at);) {
        const struct shape *b = &at.g->want.sizes;
        if (at.g->about != g->about)
            continue;
        if (g->about == ABOUT_VALUE && strcmp(at.g->expression, g->expression))
            seen.several = ~0u;
        for (int d = 0; d < a->rank && b->rank == a->rank; d++)
            add_varying_size(w, &seen, d, a->size[d], b->size[d]);
    }
    return seen;
}

/* Return the kind of guard that torch uses for the constant LITERAL. */
static const char *choose_constant_kind(const char *literal)
{
    if (!strcmp(literal, "None"))
        return "NONE_MATCH";
    return strcmp(literal, "True") ? "FALSE_MATCH" : "TRUE_MATCH";
}

/* Complete the made-up guard MADE on a value. SEVERAL: recorded entries expect different values at
 * its source. Returns false if the value is not known. */
static bool complete_value(struct guard *made, bool several)
{
    const struct value *v = &made->want;

    if (!v->literal) {
        made->loose = false;
        return false;
    }
    made->loose = !several && v->low == v->high;
    if (strcmp(made->kind, "EQUALS_MATCH") && strcmp(made->kind, "CONSTANT_MATCH")) {
        made->id = 0;
        made->kind = choose_constant_kind(v->literal);
    }
    return true;
}

/* Complete the made-up guard MADE on a tensor: it must not check sizes that torch makes dynamic. G
 * is the guard of the most similar entry. Returns false if the sizes are not known. */
static bool complete_tensor(const struct whatif *w, const struct guard *g, struct sizes_seen seen,
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

/* Find a recorded guard that holds for calls of the class CLASS_ and checks the same property of
 * the same source as the guard G, and make MADE a copy of it. Returns false if there is none.
 * STANDS: all guards of the most similar entry hold for the class. */
static bool copy_condition(struct whatif *w, uint32_t class_, const struct guard *g, bool stands,
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
    for (struct look at = {0}; guard_next_on_source(w, code, g->source, &at);) {
        if (at.g->about != g->about)
            continue;
        if (guard_holds_for_class(w, at.g, class_, true) != LIKE_YES)
            continue;
        *made = *at.g;
        made->loose = !stands;
        return true;
    }
    return false;
}

/* G is a guard of the most similar entry. Return a copy of it for an entry of the class CLASS_: it
 * expects the value that the class's calls have, if this value is known. STANDS: all guards of the
 * most similar entry hold for the class; if not, the new entry may have other conditions. */
static struct guard adapt_guard(struct whatif *w, uint32_t class_, const struct guard *g,
                                bool stands)
{
    struct sizes_seen seen = collect_sizes(w, class_code(w, class_), g);
    struct guard made = *g;
    struct value *v = &made.want;
    bool known;

    *v = value_at_source(w, class_, true, g->source);
    v->type = g->about == ABOUT_LENGTH ? g->want.type : value_find_type(w, v);
    made.expression = NULL;
    switch (g->about) {
    case ABOUT_TYPE:
        known = v->type;
        break;
    case ABOUT_VALUE:
        known = complete_value(&made, seen.several);
        break;
    case ABOUT_LENGTH:
        known = v->length >= 0;
        break;
    case ABOUT_TENSOR:
        known = complete_tensor(w, g, seen, &made);
        break;
    case ABOUT_SOMETHING:
        known = v->literal || v->something || v->type;
        break;
    default:
        known = copy_condition(w, class_, g, stands, &made);
    }
    if (!known)
        made.about = ABOUT_UNKNOWN;
    return made;
}

/* Has every recorded entry of CODE a guard on the type at SOURCE? */
static bool is_type_always_guarded(struct whatif *w, uint32_t code, const char *source)
{
    uint32_t last = REPLAY_NONE;
    int64_t missing = 0;

    for (uint32_t i = 0; is_recorded(w, i); i++) {
        bool of_code = entry_at(w, i)->code == code;
        if (of_code)
            missing++;
    }
    for (struct look at = {0}; guard_next_on_source(w, code, source, &at);) {
        bool typed = at.g->want.type || at.g->about == ABOUT_TENSOR;
        if (at.entry == last || !typed)
            continue;
        last = at.entry;
        missing--;
    }
    return !missing;
}

/* Return a guess at a guard for inputs of types for which no entry was compiled: the new
 * entry is assumed to read the same sources as the entry of the guard G, and to check at
 * least their types. */
static struct guard guess_guard(struct whatif *w, uint32_t class_, const struct guard *g)
{
    struct guard made = {
        .id = -g->id,
        .kind = strstr(g->kind, "LAMBDA") ? "LAMBDA" : "",
        .source = g->source,
        .about = ABOUT_UNKNOWN,
    };

    made.want = value_at_source(w, class_, true, g->source);
    made.want.type = value_find_type(w, &made.want);
    if (made.want.type && is_type_always_guarded(w, class_code(w, class_), g->source))
        made.about = ABOUT_ALIKE;
    return made;
}

void guards_make_up(struct whatif *w, uint32_t class_, struct guards *g)
{
    uint32_t model = find_most_alike(w, class_, true);
    bool typed = model != REPLAY_NONE;
    bool stands = typed && like_do_guards_hold(w, model, class_, NULL);
    const struct guards *like;

    if (!typed)
        model = find_most_alike(w, class_, false);
    g->unlike = model == REPLAY_NONE;
    if (g->unlike)
        return;
    like = guards_of_class(w, model);
    list_each(one, like) {
        struct guard *made = list_add(g);
        if (typed)
            *made = adapt_guard(w, class_, one, stands);
        else
            *made = guess_guard(w, class_, one);
    }
}
