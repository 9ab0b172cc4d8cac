/* trace/whatif/made.c -- the guards of entries that were not recorded. See trace/whatif/like.h.
 *
 * A call that was not compiled would have been: its entry has the guards of the newest entry whose
 * inputs had the same types, on the values of that call. Where those are not known, or no entry is
 * like it, what it wants is not either. */
#include "trace/whatif/like.h"

/* The newest recorded entry of CLASS_'s code whose inputs had, if TYPED, the types that those of
 * CLASS_ have, or REPLAY_NONE; if there is one, of those that stand for CLASS_. */
static uint32_t most_alike(struct whatif *w, uint32_t class_, bool typed)
{
    const struct signature *mine = signature_of(w, w->classes.at[class_].signature), *s;
    uint32_t newest = REPLAY_NONE;

    for (size_t i = w->r->entries.count; mine && i--;) {
        bool alike = w->r->entries.at[i].code == w->classes.at[class_].code &&
                     (s = signature_of(w, w->classes.at[i].signature)) &&
                     s->parts.count == mine->parts.count;
        for (size_t k = 0; alike && typed && k < mine->parts.count; k++) {
            const struct part *a = &mine->parts.at[k], *b = signature_part(s, a->source);
            size_t bytes = strcspn(a->text, " [");
            alike = b && strcspn(b->text, " [") == bytes && !strncmp(a->text, b->text, bytes) &&
                    a->shape.rank == b->shape.rank;
        }
        if (alike && newest == REPLAY_NONE)
            newest = (uint32_t)i;
        if (alike && (!typed || like_stands(w, (uint32_t)i, class_, NULL)))
            return (uint32_t)i;
    }
    return newest;
}

/* Which sizes of G's tensor differ between the recorded entries of its code, or are dynamic in one:
 * bits. Torch's 0 and 1 say nothing: they are compiled apart. */
static void sizes_seen(struct whatif *w, uint32_t code, const struct guard *g, uint32_t *several,
                       uint32_t *any)
{
    const struct shape *a = &g->want.sizes;

    for (struct look at = {0}; guard_next(w, code, g->source, &at);) {
        const struct shape *b = &at.g->want.sizes;
        if (at.g->about != g->about)
            continue;
        *several |= g->about == ABOUT_VALUE && strcmp(at.g->expression, g->expression);
        for (int d = 0; d < a->rank && b->rank == a->rank; d++)
            if (b->size[d] == SIZE_ANY)
                *any |= 1u << d;
            else if (b->size[d] != a->size[d] &&
                     !(w->torch && (a->size[d] <= 1 || b->size[d] <= 1)))
                *several |= 1u << d;
    }
}

/* G, of the entry most like it, as it would be for CLASS_: it wants what is known of that value.
 * That entry STANDS for CLASS_, or else conditions may be others. */
static struct guard guard_made(struct whatif *w, uint32_t class_, const struct guard *g,
                               bool stands)
{
    struct guard made = *g;
    struct value *v = &made.want;
    uint32_t several = 0, any = 0;
    bool known = false, apart;

    *v = value_of(w, class_, true, g->source);
    v->type = g->about == ABOUT_LENGTH ? g->want.type : value_type(w, v);
    made.expression = NULL;
    if (g->about == ABOUT_VALUE || g->about == ABOUT_TENSOR)
        sizes_seen(w, w->classes.at[class_].code, g, &several, &any);
    switch (g->about) {
    case ABOUT_TYPE:
        known = v->type;
        break;
    case ABOUT_VALUE:
        known = v->literal;
        made.loose = known && !several && v->low == v->high;
        /* of a kind for each constant */
        if (known && strcmp(g->kind, "EQUALS_MATCH") && strcmp(g->kind, "CONSTANT_MATCH")) {
            made.id = 0;
            made.kind = !strcmp(v->literal, "None")   ? "NONE_MATCH"
                        : !strcmp(v->literal, "True") ? "TRUE_MATCH"
                                                      : "FALSE_MATCH";
        }
        break;
    case ABOUT_LENGTH:
        known = v->length >= 0;
        break;
    case ABOUT_TENSOR:
        known = v->sizes.rank == g->want.sizes.rank && v->sizes.rank >= 0;
        for (int d = 0; known && d < v->sizes.rank; d++)
            if (w->torch && v->sizes.size[d] <= 1)
                continue; /* compiled apart */
            else if (any & 1u << d || g->want.sizes.size[d] == SIZE_ANY)
                v->sizes.size[d] = SIZE_ANY;
            else if (!(several & 1u << d))
                made.loose |= 1u << d;
        break;
    case ABOUT_SOMETHING:
        known = v->literal || v->something || v->type;
        break;
    default:
        /* as torch compiles it */
        apart = known = w->torch && g->about == ABOUT_NUMBER && v->low == v->high && v->low <= 1;
        for (struct look at = {0};
             !known && guard_next(w, w->classes.at[class_].code, g->source, &at);)
            if ((known = at.g->about == g->about && guard_holds(w, at.g, class_, true) == LIKE_YES))
                made = *at.g;
        made.loose = !stands && !apart;
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

    for (uint32_t i = 0; i < w->r->entries.count; i++)
        missing += w->r->entries.at[i].code == code;
    for (struct look at = {0}; guard_next(w, code, source, &at);)
        if (at.entry != last && (at.g->want.type || at.g->about == ABOUT_TENSOR)) {
            last = at.entry;
            missing--;
        }
    return !missing;
}

/* For inputs of types that no entry was made for: it looks where the entry with GUARDS does, and
 * wants their types at least. */
static struct guard guard_guessed(struct whatif *w, uint32_t class_, const struct guard *g)
{
    struct guard made = {.id = -g->id,
                         .kind = strstr(g->kind, "LAMBDA") ? "LAMBDA" : "",
                         .source = g->source,
                         .about = ABOUT_UNKNOWN};

    made.want = value_of(w, class_, true, g->source);
    made.want.type = value_type(w, &made.want);
    if (made.want.type && types_settled(w, w->classes.at[class_].code, g->source))
        made.about = ABOUT_ALIKE;
    return made;
}

void guards_make(struct whatif *w, uint32_t class_, struct guards *g)
{
    uint32_t model = most_alike(w, class_, true),
             any = model == REPLAY_NONE ? most_alike(w, class_, false) : model;
    bool stands = model != REPLAY_NONE && like_stands(w, model, class_, NULL);

    g->unlike = any == REPLAY_NONE;
    for (size_t i = 0; !g->unlike && i < guards_of(w, any)->count; i++) {
        const struct guard *one = &guards_of(w, any)->at[i];
        *list_add(g) =
            model == any ? guard_made(w, class_, one, stands) : guard_guessed(w, class_, one);
    }
}
